"""The exact sampler: against the published Markov chain, and its acceptance."""

from dataclasses import replace

from benchmarks._acceptance import acceptance_tables
from benchmarks._diagrams import noisy_diagram
from benchmarks._table import Table, at_most
from benchmarks._timing import once, repeated
from sklearn_dptda.persistence._exact_sampler import decay_table
from sklearn_dptda.persistence._mechanisms import ExactMechanism, MarkovChainMechanism

CHAIN_STEPS = 10_000
# How many steps are timed for each size; a bottleneck distance gets slow on large diagrams.
TIMED_STEPS = {3: 10_000, 50: 1000, 500: 300, 2000: 100}
QUICK_STEPS = {3: 300, 50: 100}
# Of the order of the two-circle study: capped distances, 800 neighbours.
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
        f"Set-up and one exact draw against {CHAIN_STEPS} steps of the chain",
        (
            "|D|",
            "exact, ms",
            "steps timed",
            "microseconds a step",
            f"{CHAIN_STEPS} steps, s",
            "exact / chain",
        ),
        [_row(size, n_steps, repeats) for size, n_steps in steps.items()],
        f"Exact: median (range) of {repeats} calls, each of which makes its public table anew. "
        f"Chain: the steps that are named were timed once and scaled to {CHAIN_STEPS}; proposals "
        "outside the domain are rejected without a bottleneck distance, and early steps need not "
        "be typical, so scaled times hold up to a factor of a few. Both: one diagram of dimension "
        f"1, epsilon = {EPSILON:g}, max_points = {MAX_POINTS}, sensitivity = upper / "
        "800. A ratio of 1/500 is 0.002.",
    )


def _row(size, n_steps, repeats):
    diagram = noisy_diagram(size, UPPER)
    exact = ExactMechanism(EPSILON, True, MAX_POINTS, "spike-slab", 0.5, 2.0, False)

    def draw():
        # The table is shared by all releases with the same public numbers; here each one pays.
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
        at_most(own.median / total, 1 / 500),
    )


def _chain_seconds(chain, diagram):
    """Scale the timed steps up; the first distance, before any step, counts once."""
    start, _ = once(lambda: replace(chain, n_iter=0).release([diagram], *PUBLIC))
    seconds, _ = once(lambda: chain.release([diagram], *PUBLIC))
    return start + (seconds - start) * CHAIN_STEPS / chain.n_iter
