"""What pays for the few roundings of a short computation in floating point."""

# Five or so operations, each off by at most 2**-53 of its result.
ROUND_UP = 1 + 2.0**-50
ROUND_DOWN = 1 - 2.0**-50
