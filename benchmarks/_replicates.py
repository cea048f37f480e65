"""Wall time of a simulation study: many releases of one cloud."""

from benchmarks._table import Table
from benchmarks._timing import once
from sklearn_dptda import PrivatePersistence
from sklearn_dptda.model_selection import release_replicates


def replicate_table(filtrations, n_replicates):
    """Time the study with one worker and with two workers."""
    rows = []
    for epsilon in (1.0, 5.0):
        one, two = (_seconds(filtrations, epsilon, n_replicates, jobs) for jobs in (1, 2))
        rows.append((epsilon, one, two, one / two))
    return Table(
        f"{n_replicates} releases of two circles, n = {filtrations[0].n_points}: wall time",
        ("epsilon", "n_jobs=1, s", "n_jobs=2, s", "speed-up"),
        rows,
        "One measurement each. The workers were already running, and the filtration was computed "
        "before. Each release computes the exact diagrams again.",
    )


def _seconds(filtrations, epsilon, n_replicates, n_jobs):
    estimator = PrivatePersistence(epsilon)
    seconds, _ = once(
        lambda: release_replicates(
            estimator, filtrations, n_replicates, random_state=0, n_jobs=n_jobs
        )
    )
    return seconds
