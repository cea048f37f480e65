"""Joint moments of private rows: read in batches, clipped, summed exactly, released with noise.

All that touches rows on the way to a private clustering goes through here, a share of a budget at
a time; what is done with the noisy moments is post-processing.
"""
