"""Draw the pictures of the user guide: ``python doc/pictures.py`` writes them to doc/images.

All data are simulated and all draws have a seed, so the pictures are reproducible.
"""

import runpy
import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from gudhi.sklearn import RipsPersistence
from sklearn.datasets import make_moons

from sklearn_dptda import (
    CubicalPersistence,
    DTMFiltration,
    PrivacyAccountant,
    PrivateBettiNumbers,
    PrivatePersistence,
)
from sklearn_dptda._cli import main as command_line
from sklearn_dptda.cluster import DPLloyd, DPToMATo
from sklearn_dptda.datasets import make_loops, make_two_circles
from sklearn_dptda.discriminant_analysis import DPLinearDiscriminantAnalysis
from sklearn_dptda.features import SortedLifetimes
from sklearn_dptda.filtration import distance_to_measure
from sklearn_dptda.graph import AdjacencySpectralEmbedding, EdgeFlip, make_rdpg
from sklearn_dptda.model_selection import planned_loss
from sklearn_dptda.persistence import DiagramErrors
from sklearn_dptda.plotting import FiltrationDisplay, PersistenceDiagramDisplay
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.synthetic import PrivateMeasure

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "doc" / "images"
BLUE, RED, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#999999"


def panels(number, width=4.2, height=3.4):
    """Create a figure with a row of axes."""
    figure, axes = plt.subplots(1, number, figsize=(width * number, height), layout="constrained")
    return figure, np.atleast_1d(axes)


def reading():
    """A private diagram and the meaning of its parts."""
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 4000)
    cloud = np.c_[np.cos(angle), np.sin(angle)]
    functions = DTMFiltration(0.2, bounds=(-1.2, 1.2)).fit_transform([cloud])
    private = PrivatePersistence(2.0, random_state=0)
    released = private.fit_transform(functions)[0]
    probability = private.posterior([released])[0].probability
    figure, axes = panels(2, height=4.2)
    FiltrationDisplay(functions[0], points=cloud[::4]).plot(axes[0])
    axes[0].set_title("not private")
    PersistenceDiagramDisplay(released, probability=probability).plot(axes[1])
    axes[1].set_title("released, ε = 2")
    loop = released[1][np.argmax(np.diff(released[1], axis=1))]
    axes[1].annotate(
        "the loop: born early,\ndies late, certain",
        loop,
        xytext=(0.5, 0.62),
        textcoords="axes fraction",
        arrowprops={"arrowstyle": "->"},
        fontsize=9,
    )
    return figure


def which_epsilon():
    """Advantage and posterior of the best attack, for three kinds of releases."""
    k_means = {"bounds": (0, 1), "delta": 1e-6, "adjacency": "replace-one"}
    kinds = {
        "counts, graphs, measures": (PrivateBettiNumbers, {}, GREY),
        "diagrams": (PrivatePersistence, {}, BLUE),
        "mixtures, k-means (delta 1e-6)": (DPLloyd, k_means, RED),
    }
    epsilons = np.geomspace(0.05, 10, 40)
    figure, axes = panels(2, height=3.8)
    for name, (kind, options, color) in kinds.items():
        risks = [
            planned_loss(kind(epsilon=epsilon, **options)).risk(prior=0.1, fpr=0.01)
            for epsilon in epsilons
        ]
        axes[0].semilogx(epsilons, [r.advantage for r in risks], color=color, label=name)
        axes[1].semilogx(epsilons, [r.posterior for r in risks], color=color, label=name)
    axes[0].set(xlabel="epsilon", ylabel="advantage of the best attack", ylim=(0, 1))
    axes[1].set(xlabel="epsilon", ylabel="what 10 % becomes", ylim=(0, 1))
    for ax in axes:
        ax.set_xticks([0.1, 0.5, 1, 2, 5, 10], ["0.1", "0.5", "1", "2", "5", "10"])
        ax.xaxis.minorticks_off()
        ax.grid(alpha=0.3)
    axes[0].legend(fontsize=8, loc="upper left")
    return figure


def parameters():
    """The distance-to-measure of the same points for three masses."""
    cloud = make_two_circles(4000, random_state=0)
    figure, axes = panels(3)
    for ax, m in zip(axes, (0.02, 0.2, 0.6), strict=True):
        function = DTMFiltration(m, bounds=(-3, 3.5)).fit_transform([cloud])[0]
        lives = np.diff(CubicalPersistence(homology_dimensions=1).fit_transform([function])[0])
        FiltrationDisplay(function).plot(ax)
        longest = np.sort(np.append(lives, [0, 0]))[::-1][:2]
        ax.set_title(
            f"m = {m:g}: persistence of the loops {longest[0]:.2f}, {longest[1]:.2f}\n"
            f"one point changes the function by {function.sensitivity:.4f}",
            fontsize=9,
        )
    return figure


def tables():
    """A column of numbers and one of categories, in the table and in a synthetic table."""
    rng = np.random.default_rng(0)
    jobs = np.array(["cook", "nurse", "smith"])
    people = pd.DataFrame({"age": rng.gamma(9, 4.5, 5000).clip(0, 119).astype(int)})
    people["job"] = jobs[
        np.where(people.age < 35, rng.integers(0, 2, 5000), rng.integers(0, 3, 5000))
    ]
    private = PrivateMeasure(
        1.0, ([0], [120]), categories={"job": [*jobs, "other"]}, random_state=0
    ).fit(people)
    synthetic = private.sample(5000, random_state=0)
    figure, axes = panels(2)
    for frame, name, color, shift in (
        (people, "table", GREY, -0.2),
        (synthetic, "synthetic, ε = 1", BLUE, 0.2),
    ):
        axes[0].hist(
            frame.age, np.arange(0, 121, 6), histtype="step", lw=1.8, color=color, label=name
        )
        counts = frame.job.value_counts().reindex([*jobs, "other"], fill_value=0)
        axes[1].bar(np.arange(4) + shift, counts, 0.38, color=color, label=name)
    axes[0].set(xlabel="age", ylabel="rows")
    axes[1].set_xticks(range(4), [*jobs, "other"])
    axes[1].legend(frameon=False)
    return figure


def records():
    """The rows of four people, and the weight of each row for two privacy units."""
    rows = np.random.default_rng(3).integers(0, 4, 14)
    figure, axes = panels(2, width=5, height=2.3)
    counts = np.bincount(rows)
    for ax, weights, title in zip(
        axes,
        (np.ones(len(rows)), 1 / counts[rows]),
        ("one record is one row", "one record is one person"),
        strict=True,
    ):
        for place, person in enumerate(rows):
            color = [BLUE, RED, GREEN, "#CC79A7"][person]
            area = 160 * weights[place]
            ax.scatter(place, person, s=area, c=color, edgecolors="0.4", linewidths=1)
        ax.set_yticks(range(4), [f"person {i + 1}" for i in range(4)])
        ax.set(xlabel="rows of the table, in order", xticks=[], ylim=(-0.6, 3.6), title=title)
        ax.spines[["top", "right"]].set_visible(False)
    return figure


def populations():
    """One cloud for each person: lifetimes are rows, and a private rule separates the kinds."""
    clouds, kinds = make_loops(300, 60, noise=0.18, random_state=0)
    diagrams = RipsPersistence(homology_dimensions=1, threshold=3.0).fit_transform(clouds)
    X = SortedLifetimes(2, upper=2.0).fit_transform(diagrams)
    private = DPLinearDiscriminantAnalysis([1, 2], bounds=(0, 1), random_state=0).fit(X, kinds)
    figure, axes = panels(3, height=3.8)
    for axis, kind, colour in zip(axes, (1, 2), (BLUE, RED), strict=False):
        cloud = clouds[int(np.flatnonzero(kinds == kind)[0])]
        axis.plot(*cloud.T, ".", color=colour, ms=4)
        axis.set(title=f"a person of kind {kind}", aspect="equal", xticks=[], yticks=[])
    for kind, colour in ((1, BLUE), (2, RED)):
        axes[2].plot(*X[kinds == kind].T, ".", color=colour, ms=4, label=f"kind {kind}")
    along = np.array(axes[2].get_xlim())
    (slope,), (level,) = private.coef_, private.intercept_
    axes[2].plot(
        along, -(level + slope[0] * along) / slope[1], "--", color="black", label="private"
    )
    axes[2].set(
        title="all people, epsilon = 1",
        xlabel="longest loop",
        ylabel="second longest loop",
        ylim=(-0.02, 1.1 * X[:, 1].max()),
    )
    axes[2].legend()
    return figure


def sampling_error():
    """Sampling error and error from privacy, against the number of points."""
    sizes, sampling, privacy = (300, 1000, 3000, 10_000, 30_000), [], {0.5: [], 2.0: []}
    rng = np.random.default_rng(1)
    grid = rng.uniform(-2, 2, (200, 2))
    for n in sizes:
        cloud = make_two_circles(n, random_state=0)
        function = distance_to_measure(cloud, grid, 0.2)
        changes = [
            np.abs(distance_to_measure(rng.choice(cloud, n), grid, 0.2) - function).max()
            for _ in range(40)
        ]
        sampling.append(np.quantile(changes, 0.95))
        filtration = DTMFiltration(0.2, bounds=(-3, 3.5), resolution=41).fit_transform([cloud])[0]
        for epsilon, bounds in privacy.items():
            private = PrivatePersistence(epsilon)
            public = filtration.sensitivity, filtration.upper
            bounds.append(DiagramErrors(private, [public]).bound)
    figure, (ax,) = panels(1, width=6)
    ax.loglog(sizes, sampling, "k-o", label="sampling (bootstrap, 95 %)")
    for (epsilon, bounds), line in zip(privacy.items(), ("--^", ":s"), strict=True):
        ax.loglog(sizes, bounds, line, color=RED, label=f"privacy, ε = {epsilon:g} (bound, 95 %)")
    ax.set(xlabel="number of points", ylabel="error of the diagram")
    ax.legend(frameon=False)
    return figure


def budgets():
    """A budget of 3, the payments from it, and a refused payment."""
    names = ["bounds", "diagram", "clusters", "synthetic rows"]
    losses = [0.1, 1.0, 0.9, 0.8]
    budget = PrivacyAccountant(3.0)
    for name, loss in zip(names, losses, strict=True):
        budget.spend(loss, what=name)
    figure, (ax,) = panels(1, width=8, height=1.7)
    left = 0.0
    for spend, color in zip(budget.spends(), (GREY, BLUE, GREEN, "#56B4E9"), strict=True):
        ax.barh(0, spend.epsilon, left=left, color=color, edgecolor="white")
        if spend.epsilon > 0.5:
            ax.text(
                left + spend.epsilon / 2,
                0,
                f"{spend.what}\n{spend.epsilon:g}",
                ha="center",
                va="center",
                color="white",
                fontsize=9,
            )
        left += spend.epsilon
    ax.barh(0, 1.0, left=left, color="none", edgecolor=RED, hatch="//")
    ax.text(
        # To the right of the line that marks the budget.
        3.05,
        0,
        "one more diagram:\nrefused",
        ha="left",
        va="center",
        color="black",
        fontsize=9,
        bbox={"fc": "white", "ec": "none", "alpha": 0.85},
    )
    ax.axvline(3.0, color="black", lw=2)
    ax.text(3.0, 0.5, " budget", va="bottom", ha="center")
    ax.set(xlabel="epsilon", yticks=[], xlim=(0, 4))
    ax.spines[["top", "right", "left"]].set_visible(False)
    return figure


def team_ledger():
    """The rest of a budget of 8 after each payment of a team, and a refused payment."""
    losses = [0.5, 1.0, 0.5, 0.5, 1.5, 1.0, 0.25, 0.25, 1.0]
    whose = ["Ana", "Ana", "Ben", "Cho", "Ana", "Ben", "Cho", "Cho", "Ben"]
    colors = {"Ana": BLUE, "Ben": GREEN, "Cho": GREY}
    budget = PrivacyAccountant(8.0)
    figure, (ax,) = panels(1, width=8, height=2.6)
    left = [budget.remaining().epsilon]
    for number, (loss, name) in enumerate(zip(losses, whose, strict=True), 1):
        budget.spend(loss, what=f"a release of {name}")
        left.append(budget.remaining().epsilon)
        ax.bar(number, loss, bottom=left[-1], color=colors[name], width=1.0, ec="white")
    ax.step(np.arange(len(left)) + 0.5, left, where="post", color="black", lw=1.5)
    number = len(left)
    ax.bar(number, 2.0, bottom=left[-1] - 2, color="none", edgecolor=RED, hatch="//", width=1.0)
    ax.text(number + 0.7, left[-1] - 0.5, "2 more:\nrefused", va="center")
    for name, color in colors.items():
        ax.bar(0, 0, color=color, label=f"paid by {name}")
    ax.axhline(0, color="black", lw=1)
    ax.set(xlabel="payment", ylabel="remaining epsilon", xlim=(0.3, number + 2))
    ax.set_xticks(range(1, number))
    ax.legend(frameon=False)
    return figure


def networks():
    """Positions of nodes with different activities, without and with normalization."""
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1, 2], [300, 250, 150])
    activity = np.exp(rng.uniform(-2, 0, (700, 1)))
    probabilities = np.full((3, 3), 0.1) + 0.8 * np.eye(3)
    graph = make_rdpg(activity * np.linalg.cholesky(probabilities)[group], random_state=0)
    noisy = EdgeFlip(4.0, random_state=0).fit_transform(graph)
    figure, axes = panels(2)
    for ax, normalize in zip(axes, (False, True), strict=True):
        Z = AdjacencySpectralEmbedding(3, normalize=normalize).fit_transform(noisy)
        for k, (color, marker) in enumerate(zip((BLUE, RED, GREEN), "o^s", strict=True)):
            ax.scatter(*Z[group == k, 1:].T, s=8, c=color, marker=marker, linewidths=0)
        ax.set(xticks=[], yticks=[], title=f"normalize={normalize}, ε = 4")
    return figure


def unknown_bounds():
    """A wide public box, the private box in it, and a private clustering in the private box."""
    rows, _ = make_moons(5000, noise=0.07, random_state=0)
    finder = PrivateBounds(0.1, shape="box", start=(-10, 10), random_state=0).fit(rows)
    (x0, y0), (x1, y1) = finder.bounds_
    figure, axes = panels(2)
    axes[0].plot(*rows[::5].T, ".", ms=1.5, color=GREY)
    axes[0].add_patch(plt.Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, ec=RED, lw=2))
    axes[0].set(
        xlim=(-10, 10), ylim=(-10, 10), aspect="equal", title="start and private box, ε = 0.1"
    )
    private = DPToMATo(epsilon=0.9, bounds=finder.bounds_, adjacency="replace-one", random_state=0)
    labels = private.fit(rows).predict(rows)
    axes[1].scatter(
        *rows[::3].T, s=3, c=np.array([BLUE, RED, GREEN])[labels[::3] % 3], linewidths=0
    )
    axes[1].set(xlim=(x0, x1), ylim=(y0, y1), title="clusters in the private box, ε = 0.9")
    return figure


def command_line_picture():
    """The picture that ``python -m sklearn_dptda diagram`` draws."""
    with tempfile.TemporaryDirectory() as folder:
        points = Path(folder) / "points.csv"
        np.savetxt(points, make_two_circles(4000, noise=0.05, random_state=0), delimiter=",")
        options = f"--bounds -3 3.5 --epsilon 2 --m 0.2 --seed 0 -o {folder}"
        assert command_line(["diagram", str(points), *options.split()]) == 0
        picture = plt.imread(Path(folder) / "diagram.png")
    height, width = np.array(picture.shape[:2]) / 110
    figure = plt.figure(figsize=(width, height))
    figure.figimage(picture)
    return figure


def of_example(name):
    """Return a function that runs an example in full and returns its last figure."""

    def run():
        shown = plt.show
        plt.show = lambda: None
        try:
            runpy.run_path(str(ROOT / "examples" / f"plot_{name}.py"))
        finally:
            plt.show = shown
        return plt.gcf()

    return run


PICTURES = {
    "reading": reading,
    "which_epsilon": which_epsilon,
    "parameters": parameters,
    "tables": tables,
    "records": records,
    "populations": populations,
    "sampling_error": sampling_error,
    "budgets": budgets,
    "team_ledger": team_ledger,
    "networks": networks,
    "unknown_bounds": unknown_bounds,
    "command_line": command_line_picture,
    "landmarks": of_example("landmarks"),
    "story": of_example("story"),
    "how_much_data": of_example("how_much_data"),
}

if __name__ == "__main__":
    for name in sys.argv[1:] or PICTURES:
        PICTURES[name]().savefig(IMAGES / f"{name}.png", dpi=110)
        plt.close("all")
