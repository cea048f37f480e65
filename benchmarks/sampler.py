"""The exact sampler: comparison with the published Markov chain, and acceptance."""

from dataclasses import replace

from benchmarks._acceptance import acceptance_tables
from benchmarks._diagrams import noisy_diagram
from benchmarks._table import Table
from benchmarks._timing import once, repeated
from sklearn_dptda.persistence._exact_sampler import decay_table
from sklearn_dptda.persistence._mechanisms import ExactMechanism
from sklearn_dptda.published._published_persistence import MarkovChainMechanism

CHAIN_STEPS = 10_000
# Number of timed steps for each size. Bottleneck distances between large diagrams are slow.
TIMED_STEPS = {3: 10_000, 50: 1000, 500: 300, 2000: 100}
QUICK_STEPS = {3: 300, 50: 100}
# Similar to the two-circle study, with capped distances and 800 neighbours.
UPPER = 3.9
PUBLIC = ((1,), UPPER / 800, UPPER, 0)
MAX_POINTS = 5
EPSILON = 1.0


def tables(quick):
    """Yield the tables of this benchmark."""
    yield _against_chain(quick)
    yield from acceptance_tables(quick)


def _against_chain(quick):
    steps, repeats = (QUICK_STEPS, 2) if quick else (TIMED_STEPS, 11)
    return Table(
        f"Set-up and one exact draw, compared with {CHAIN_STEPS} steps of the chain",
        (
            "|D|",
            "exact, ms",
            "steps timed",
            "microseconds a step",
            f"{CHAIN_STEPS} steps, s",
            "exact / chain",
        ),
        [_row(size, n_steps, repeats) for size, n_steps in steps.items()],
        f"Exact: median (range) of {repeats} calls, each of which computes its public table again. "
        f"Chain: the stated number of steps was timed once and scaled to {CHAIN_STEPS}. Proposals "
        "outside the domain are rejected without a bottleneck distance, and early steps may not be "
        "typical, so scaled times may be wrong by a factor of a few. Both: one diagram of "
        f"dimension 1, epsilon = {EPSILON:g}, max_points = {MAX_POINTS}, sensitivity = upper / "
        "800.",
    )


def _row(size, n_steps, repeats):
    diagram = noisy_diagram(size, UPPER)
    exact = ExactMechanism(EPSILON, True, MAX_POINTS, "spike-slab", 0.5, 2.0, False)

    def draw():
        # Releases with the same public numbers share the table, but each call recomputes it here.
        decay_table.cache_clear()
        exact.release([diagram], *PUBLIC)

    own = repeated(draw, repeats)
    chain = MarkovChainMechanism(EPSILON, True, MAX_POINTS, n_steps, 0.1)
    total = _chain_seconds(chain, diagram)
    return (
        size,
        f"{own:ms}",
        n_steps,
        total / CHAIN_STEPS * 1e6,
        total,
        own.median / total,
    )


def _chain_seconds(chain, diagram):
    """Scale the timed steps; the first distance, before any step, counts once."""
    start, _ = once(lambda: replace(chain, n_iter=0).release([diagram], *PUBLIC))
    seconds, _ = once(lambda: chain.release([diagram], *PUBLIC))
    return start + (seconds - start) * CHAIN_STEPS / chain.n_iter
