"""Comparison of private releases: components, counts, bounds, and the noise that they need."""

from functools import partial

import numpy as np
from sklearn.datasets import load_digits

from benchmarks._ask import ask, missing
from benchmarks._table import Table
from benchmarks._timing import once, summary
from sklearn_dptda.datasets import load_table, make_two_circles
from sklearn_dptda.decomposition import PrivatePCA
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import NoiseSource, gaussian_mu

TOOLS = {"script": "_foreign_tools.py"}
DELTA = 1e-6
# Time limit of a peer in seconds, for all fits of one line.
PATIENCE = 60


def release_tables(quick):
    """Yield the tables of components, counts, bounds and noise."""
    yield _components(quick)
    yield _counts(quick)
    yield _bounds(quick)
    yield _noise()


def _components(quick):
    if reason := missing("DIFFPRIVLIB"):
        return f"Components are skipped: {reason}.\n"
    digits = load_digits().data
    sources = [("digits, 64 columns, the best eight", digits, 0.0, 16.0)]
    if not quick:
        try:
            X = load_table("pulsar").data
            X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
            sources.append(("pulsar, 8 columns, the best two", X, 0.0, 1.0))
        except FileNotFoundError as error:
            print(error)
    rows = [
        _component_row(*source, epsilon, 2 if quick else 5)
        for source in sources
        for epsilon in ((1.0,) if quick else (0.5, 1.0, 5.0, 20.0))
    ]
    return Table(
        "Private principal components: explained variance relative to the exact components",
        (
            "data",
            "epsilon",
            f"PrivatePCA, delta = {DELTA:g}",
            "PrivatePCA, delta = 0",
            "diffprivlib PCA, delta = 0",
            "PrivatePCA, s",
            "diffprivlib, s",
        ),
        rows,
        "Means and standard deviations over seeds. The box of the pixels is public. Adjacency: "
        "add-remove. diffprivlib receives the largest norm of a row of the box after centring.",
    )


def _component_row(name, X, low, high, epsilon, n_seeds):
    d, k = X.shape[1], 2 if X.shape[1] == 8 else 8
    C = np.cov(X.T)
    best = np.linalg.eigvalsh(C)[-k:].sum()

    def share(V):
        return np.trace(np.asarray(V) @ C @ np.asarray(V).T) / best

    def ours(delta):
        public = {"n_components": k, "epsilon": epsilon, "delta": delta, "bounds": (low, high)}
        models = [PrivatePCA(**public, random_state=seed) for seed in range(n_seeds)]
        seconds = [once(partial(model.fit, X))[0] for model in models]
        return [share(model.components_) for model in models], summary(seconds)

    gaussian, time = ours(DELTA)
    laplace, _ = ours(0.0)
    peer = ask(
        "DIFFPRIVLIB",
        "components",
        {"X": X, "low": np.full(d, low), "high": np.full(d, high)},
        n_components=k,
        epsilon=epsilon,
        repeats=n_seeds,
        patience=PATIENCE,
        **TOOLS,
    )
    theirs = [share(V) for V in peer.get("components", ())]
    cells = [
        f"{np.mean(v):.3f} ± {np.std(v):.3f}" if v else "-" for v in (gaussian, laplace, theirs)
    ]
    waited = f"{n_seeds} fits not within {PATIENCE}"
    seconds = f"{summary(peer['seconds'])}" if theirs else waited
    return (f"{name}, {len(X):,} rows", epsilon, *cells, f"{time}", seconds)


def _counts(quick):
    epsilon, bins, low, high, repeats = 1.0, 16 if quick else 64, -2.5, 3.0, 2 if quick else 5
    X = make_two_circles(20_000, random_state=0)
    exact = np.histogram2d(*X.T, bins=bins, range=[(low, high)] * 2)[0].ravel().astype(int)
    inside = np.clip(((X - low) / (high - low) * bins).astype(int), 0, bins - 1)

    def ours():
        counts = np.histogram2d(*X.T, bins=bins, range=[(low, high)] * 2)[0].ravel().astype(int)
        return counts + NoiseSource().discrete_laplace(1 / epsilon, len(counts))

    timings, released = zip(*(once(ours) for _ in range(repeats)), strict=True)
    answers = {"NoiseSource": {"seconds": timings, "counts": released[-1]}}
    answers |= {"OpenDP": _opendp_counts(exact, epsilon, repeats)}
    shared = {"epsilon": epsilon, "repeats": repeats, **TOOLS}
    answers["diffprivlib histogram2d"] = ask(
        "DIFFPRIVLIB", "histogram", {"X": X}, bins=bins, low=low, high=high, **shared
    )
    answers["Tumult Analytics"] = ask(
        "TUMULT",
        "spark_counts",
        {"cells": inside[:, 0] * bins + inside[:, 1]},
        n_cells=bins**2,
        **shared,
    )
    rows = []
    for name, answer in answers.items():
        if answer is None:
            rows.append((name, "not at hand", "", ""))
            continue
        error = np.abs(np.asarray(answer["counts"]) - exact).mean()
        least = int(np.min(answer["counts"]))
        rows.append((name, f"{error:.3f}", least, f"{summary(answer['seconds'])}"))
    scale = np.exp(-epsilon)
    return Table(
        f"Counts of {len(X):,} points in {bins} x {bins} cells, epsilon = {epsilon:g}, add-remove",
        ("release", "mean error of a cell", "least count", "seconds"),
        rows,
        f"Medians (range) of {repeats} calls, with noise from the operating system. Discrete "
        f"Laplace noise of this epsilon has the mean error {2 * scale / (1 - scale**2):.3f}. "
        "diffprivlib raises negative counts to zero. OpenDP adds noise to given counts.",
    )


def _opendp_counts(exact, epsilon, repeats):
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    release = space >> dp.m.then_laplace(1 / epsilon)
    values = exact.tolist()
    timings, counts = zip(*(once(partial(release, values)) for _ in range(repeats)), strict=True)
    return {"seconds": timings, "counts": counts[-1]}


def _bounds(quick):
    rng = np.random.default_rng(0)
    n, repeats, start = 5000, 2 if quick else 20, (-1000.0, 1000.0)
    columns = {
        "normal(0, 1)": rng.normal(size=n),
        "exp(normal)": np.exp(rng.normal(size=n)),
        "normal(500, 0.1)": rng.normal(500, 0.1, n),
    }
    rows = []
    for name, x in columns.items():
        for epsilon in (0.1, 1.0):
            found = {"PrivateBounds": _our_bounds(x, epsilon, start, repeats)}
            found["OpenDP quantiles"] = _opendp_bounds(x, epsilon, start, repeats)
            peer = ask(
                "DIFFPRIVLIB",
                "quantiles",
                {"x": x},
                epsilon=epsilon,
                start=start,
                repeats=repeats,
                **TOOLS,
            )
            found["diffprivlib percentiles"] = peer and peer["intervals"]
            rows.append((name, epsilon, *(_quality(x, ends) for ends in found.values())))
    return Table(
        "Private bounds of one column: share of clipped rows / width relative to the middle 98 %",
        ("column", "epsilon", "PrivateBounds", "OpenDP quantiles", "diffprivlib percentiles"),
        rows,
        f"Medians of {repeats} releases of {n:,} rows, with the public bounds [-1000, 1000]. The "
        "peers spend half of epsilon on each quantile (1 % and 99 %). OpenDP chooses among 4,001 "
        "candidates that are half a unit apart. PrivateBounds also releases the share of clipped "
        "rows. PrivateBounds is private for replacing a row, and the others for adding or removing "
        "one.",
    )


def _quality(x, intervals):
    if intervals is None:
        return "-"
    width = np.subtract(*np.percentile(x, [99, 1]))
    cut = [np.mean((x < low) | (x > high)) for low, high in intervals]
    widths = [(high - low) / width for low, high in intervals]
    return f"{np.median(cut):.3f} / {np.median(widths):.3g}"


def _our_bounds(x, epsilon, start, repeats):
    models = [PrivateBounds(epsilon, start=start, random_state=s) for s in range(repeats)]
    return [np.ravel(model.fit(x[:, None]).bounds_) for model in models]


def _opendp_bounds(x, epsilon, start, repeats):
    import opendp.prelude as dp

    dp.enable_features("contrib", "idealized-numerics")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    candidates = np.linspace(*start, 4001).tolist()

    def quantile(alpha):
        def make(scale):
            return space >> dp.m.then_private_quantile(
                dp.max_divergence(), candidates=candidates, alpha=alpha, scale=scale
            )

        return dp.binary_search_chain(make, d_in=1, d_out=epsilon / 2, T=float)

    low, high = quantile(0.01), quantile(0.99)
    values = x.tolist()
    return [sorted((low(values), high(values))) for _ in range(repeats)]


def _noise():
    rows = []
    for epsilon in (0.1, 1.0, 5.0):
        for count in (1, 10, 100):
            ours = np.sqrt(count) / gaussian_mu(epsilon, DELTA)
            rows.append((epsilon, count, ours, *(r / ours for r in _others(epsilon, count))))
    return Table(
        "Standard deviation of Gaussian noise for several releases of sensitivity 1, "
        f"delta = {DELTA:g}",
        (
            "epsilon",
            "releases",
            "ours (GDP)",
            "OpenDP (zCDP) / ours",
            "dp-accounting (PLD) / ours",
            "classical, advanced composition / ours",
        ),
        rows,
        "Noise that all releases need together. A ratio above 1 means more noise for the same "
        "guarantee. Classical: the textbook scale of each release, and advanced composition with "
        "half of delta.",
    )


def _others(epsilon, count):
    import opendp.prelude as dp
    from dp_accounting import GaussianDpEvent, SelfComposedDpEvent, pld
    from scipy.optimize import brentq

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float)

    def opendp(sigma):
        one = space >> dp.m.then_gaussian(sigma)
        all_of_them = dp.c.make_composition([one] * count)
        return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(all_of_them), DELTA).map(1.0)[0]

    def accounted(sigma):
        accountant = pld.PLDAccountant()
        accountant.compose(SelfComposedDpEvent(GaussianDpEvent(sigma), count))
        return accountant.get_epsilon(DELTA)

    def classical(sigma):
        # Each release receives an equal share of half of delta.
        one = np.sqrt(2 * np.log(1.25 * 2 * count / DELTA)) / sigma
        together = one * np.sqrt(2 * count * np.log(2 / DELTA)) + count * one * np.expm1(one)
        return min(count * one, together)

    guess = np.sqrt(count) / gaussian_mu(epsilon, DELTA)
    for law, high in ((opendp, 3), (accounted, 1.5), (classical, 30)):
        yield brentq(lambda s, law=law: law(s) - epsilon, 0.8 * guess, high * guess, rtol=1e-4)
