"""Utility on the walkers data set, which is public and three-dimensional."""

from benchmarks._table import Table
from benchmarks._timing import once
from sklearn_dptda import CubicalPersistence, DTMFiltration, PrivatePersistence
from sklearn_dptda.datasets import load_walkers
from sklearn_dptda.model_selection import privacy_utility_curve

MASS, BOUNDS, EPSILON, DIMENSIONS = 0.05, (-3, 3), 1.0, (0, 1, 2)


def walker_tables(n_replicates):
    """Yield one table, or a message if the data set is not available."""
    try:
        walkers = load_walkers(download=False)
    except FileNotFoundError as error:
        yield f"Walkers skipped: {error}\n"
        return
    rows = [
        _row(name, cloud, n_replicates)
        for name, cloud in zip(walkers.target_names, walkers.data, strict=True)
    ]
    yield Table(
        f"Walkers: epsilon = {EPSILON:g}, m = {MASS:g}, bounds {BOUNDS}",
        (
            "walker",
            *(f"d_B(H{q})" for q in DIMENSIONS),
            *(f"longest in H{q}" for q in DIMENSIONS),
            "sensitivity",
            "filtration, s",
            "a release, s",
        ),
        rows,
        f"Means of {n_replicates} seeded releases. Longest: the persistence of the longest feature "
        "of the exact diagram, without the essential class. The error of an empty diagram is half "
        "of this persistence, so a larger error hides the feature. The time of a release includes "
        "the exact diagrams.",
    )


def _row(name, cloud, n_replicates):
    estimator = DTMFiltration(MASS, bounds=BOUNDS).fit([cloud])
    filtration_seconds, filtrations = once(lambda: estimator.transform([cloud]))
    (exact,) = CubicalPersistence(DIMENSIONS).fit_transform(filtrations)
    seconds, curve = once(lambda: _errors(filtrations, n_replicates))
    return (
        name,
        *map(float, curve.mean()[0]),
        *(_longest(diagram, filtrations[0].upper) for diagram in exact),
        filtrations[0].sensitivity,
        filtration_seconds,
        seconds / n_replicates,
    )


def _errors(filtrations, n_replicates):
    return privacy_utility_curve(
        PrivatePersistence(homology_dimensions=DIMENSIONS),
        filtrations,
        param_range=[EPSILON],
        n_replicates=n_replicates,
        random_state=0,
    )


def _longest(diagram, upper):
    finite = diagram[diagram[:, 1] < upper]
    return float((finite[:, 1] - finite[:, 0]).max(initial=0.0))
