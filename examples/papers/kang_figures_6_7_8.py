"""
Figures 6, 7 and 8: three walkers
=================================

After T. Kang, S. Kim, J. Sohn, J. Awan, "Differentially private topological data analysis",
Section 6 and Appendix C. The data are three persons with 20,000 rows each, with m = 0.05, five
points for each diagram, and epsilon = 1. The paper runs a Markov chain of 50,000 steps and
releases its last state. The paper calls the data locations, and their source calls them
accelerations. One record is a row. Each person has many rows, and rows repeat, so the guarantee is
not about a person.

The paper prints six distances between exact and private diagrams, from 0.009 to 0.011. They depend
on the sensitivity, of which there are three versions:

- that of the theorem on the public box, ``2 diam / (m n)`` (Proposition 13);
- that of Appendix C.1, ``2 sqrt(2) / (m n)``, which is the sensitivity for a box of diameter
  ``sqrt(2)``;
- that of C.1 as the authors' script would use it: without the factor of two for two dimensions, and
  with each distance counted twice. The script has no code for the walkers, so this is our guess.

The law depends only on epsilon divided by the sensitivity. Therefore, we draw the second and the
third version at the epsilon that they really cost on this box. The box, the grid and the steps of
the chain are not in the paper, and we chose them ourselves.
"""

# %%
from functools import partial

import matplotlib.pyplot as plt
import numpy as np

from sklearn_dptda import (
    CubicalPersistence,
    DTMFiltration,
    PrivatePersistence,
    bottleneck_distance,
)
from sklearn_dptda.datasets import load_walkers
from sklearn_dptda.model_selection import release_replicates
from sklearn_dptda.published import PublishedPersistence

MASS, BOX, MAX_POINTS = 0.05, (-3.0, 3.0), 5
RESOLUTION, N_RELEASES, N_STEPS, STEP = 61, 20, 50_000, 0.02
# sphinx_gallery_start_ignore
import os

if os.environ.get("SKLEARN_DPTDA_QUICK"):
    RESOLUTION, N_RELEASES, N_STEPS, STEP = 13, 1, 500, 0.06
# sphinx_gallery_end_ignore
PUBLISHED = partial(PublishedPersistence, mechanism="exact", max_points=MAX_POINTS)
# The printed distances of H0 and H1, for walkers A, B and C.
PAPER = [(0.010, 0.009), (0.011, 0.009), (0.010, 0.010)]
COLORS, MARKERS, NAMES = ("#D55E00", "#009E73"), "o^", ("H0", "H1")
SHOWN, SHORT = 0.8, ("C.1", "C.1 by the script")


def sensitivities(n, diameter):
    """Sensitivities of the sum of two distances, by their source."""
    return {
        "the theorem's, on the box": 2 * diameter / (MASS * n),
        "Appendix C.1's": 2 * np.sqrt(2) / (MASS * n),
        "C.1's, by the script": np.sqrt(2) / (2 * MASS * n),
    }


# %%
# Figure 6: the rows
# ------------------
def scatter(walkers):
    """Draw every tenth row of each walker."""
    _, axes = plt.subplots(
        1, 3, figsize=(12, 4.2), layout="constrained", subplot_kw={"projection": "3d"}
    )
    ends = {"lim": (-2, 2), "ticks": [-2, 0, 2]}
    for ax, name, cloud in zip(axes, walkers.target_names, walkers.data, strict=True):
        ax.scatter(*cloud[::10].T, s=3, c=cloud[::10, 2], linewidths=0)
        ax.set(**{axis + key: value for axis in "xyz" for key, value in ends.items()})
        ax.set(xlabel="x", ylabel="y", zlabel="z", title=f"walker {name}")


# %%
# Six distances under three sensitivities
# ---------------------------------------
def distances(diagrams, exact):
    """Bottleneck distances of H0 and H1."""
    return list(map(bottleneck_distance, diagrams, exact))


def half_persistence(diagram, upper):
    """Distance to the empty diagram, without the essential class."""
    finite = diagram[diagram[:, 1] < upper]
    return float((finite[:, 1] - finite[:, 0]).max(initial=0.0)) / 2


def print_row(name, pairs):
    """Print two numbers for each walker."""
    numbers = [f"{walker} {a:.3f} {b:.3f}" for walker, (a, b) in zip("ABC", pairs, strict=True)]
    print(f"{name:50s}", *numbers, sep="   ")


def report(name, filtrations, exact, private):
    """Print the mean distances of several releases; return the first one."""
    releases = release_replicates(private, filtrations, N_RELEASES, random_state=0, n_jobs=2)
    found = np.mean(
        [[distances(*pair) for pair in zip(one, exact, strict=True)] for one in releases], axis=0
    )
    print_row(name, found)
    return releases[0]


def table(filtrations, exact, deltas):
    """Print the distances by sensitivity, beside the paper's and those of an empty diagram."""
    print_row("d_B(H0), d_B(H1): the paper, one release", PAPER)
    shares, upper = list(deltas.values()), filtrations[0].upper
    drawn = []
    for name, delta in deltas.items():
        epsilon = shares[0] / delta
        title = f"{name}, {delta:.5f}: epsilon {epsilon:.3g}"
        drawn.append(report(title, filtrations, exact, PUBLISHED(epsilon)))
    report("default, epsilon 1", filtrations, exact, PrivatePersistence(1.0))
    empty = [[half_persistence(diagram, upper) for diagram in pair] for pair in exact]
    print_row("an empty diagram", empty)
    return drawn[0]


# %%
# Figures 7 and 8: exact diagrams, private diagrams and traces
# ------------------------------------------------------------
# In Algorithm 1, all points of both diagrams move at once, and either both moves are accepted or
# neither. The paper does not specify a rule for the edge of the triangle, or the size of the
# steps. Here, a move across the edge is rejected, and the steps have a standard deviation of 0.02.
# The start is uniform up to a public bound. The paper uses the largest value of the function on
# the data instead. The trace needs the exact diagram and is *not* private.
def algorithm_1(exact, delta, upper, seed):
    """Run the chain at epsilon = 1; return its last state, and both distances at each step."""
    rng = np.random.default_rng(seed)
    state = np.sort(rng.uniform(0, upper, (2, MAX_POINTS, 2)), axis=2)
    found, trace = distances(state, exact), np.empty((N_STEPS, 2))
    for step in range(N_STEPS):
        moved = state + STEP * rng.standard_normal(state.shape)
        if moved.min() >= 0 and moved.max() <= upper and (np.diff(moved) >= 0).all():
            new = distances(moved, exact)
            if np.log1p(-rng.random()) < (sum(found) - sum(new)) / (2 * delta):
                state, found = moved, new
        trace[step] = found
    return state, trace


def draw(ax, diagrams, title):
    """Draw the points that are born within the axes; longer lives end at the upper edge."""
    ax.plot([0, SHOWN], [0, SHOWN], color="0.6", lw=0.8)
    left_out = 0
    for points, color, marker, name in zip(diagrams, COLORS, MARKERS, NAMES, strict=True):
        inside = points[points[:, 0] <= SHOWN]
        left_out += len(points) - len(inside)
        shown = np.minimum(inside, SHOWN)
        ax.scatter(*shown.T, s=28, color=color, marker=marker, label=name, clip_on=False, zorder=3)
    ax.set(xlim=(0, SHOWN), ylim=(0, SHOWN), xlabel="birth", ylabel="death", aspect="equal")
    rest = f"\n{left_out} born later than {SHOWN:g}" if left_out else "\n"
    ax.set_title(title + rest, fontsize="medium")


def draw_trace(ax, trace, empty, title):
    """Draw both distances against the step, for several hundred steps."""
    steps = np.arange(0, N_STEPS, max(1, N_STEPS // 800))
    for q, color in enumerate(COLORS):
        ax.semilogy(steps, trace[steps, q], color=color, lw=0.9, label=f"d_B(H{q})")
        # An empty diagram may have a distance of zero, which this axis cannot show.
        if empty[q]:
            ax.axhline(empty[q], color=color, lw=1.2, ls="--", label=f"empty diagram, H{q}")
    ax.set(xlabel="step of the chain", ylim=(0.004, 4))
    ax.set_title(f"trace, {title}\nneeds the exact diagram: not private", fontsize="medium")


def pictures(walkers, filtrations, exact, deltas, drawn):
    """Draw Figure 7 (walker C) and Figure 8 (A and B), and print the last states of the chains."""
    upper, chains = filtrations[0].upper, list(deltas.items())[1:]
    _, axes = plt.subplots(3, 5, figsize=(18, 10.5), layout="constrained")
    for row, i in zip(axes, (2, 0, 1), strict=True):
        name = walkers.target_names[i]
        draw(row[0], exact[i], f"Figure {'7' if name == 'C' else '8'}, walker {name}: exact")
        draw(row[1], drawn[i], "Proposition 13, drawn exactly")
        empty = [half_persistence(diagram, upper) for diagram in exact[i]]
        runs = [algorithm_1(exact[i], delta, upper, i) for _, delta in chains]
        draw(row[2], runs[0][0], f"last state of the chain, {SHORT[0]}")
        for ax, short, (origin, _), (_, trace) in zip(row[3:], SHORT, chains, runs, strict=True):
            ends = " ".join(f"{x:.3f}" for x in (*trace[-1], *trace[N_STEPS // 2 :].mean(axis=0)))
            print(f"chain, {name}, {origin}: last step and mean of the second half {ends}")
            draw_trace(ax, trace, empty, short)
    axes[0, 0].legend(loc="lower right", frameon=False)
    axes[0, 3].legend(loc="upper right", fontsize="small")


def main(walkers):
    """Draw the three figures and print the table."""
    scatter(walkers)
    # The sensor of a phone has a public range, and three times gravity covers every walk.
    dtm = DTMFiltration(MASS, bounds=BOX, resolution=RESOLUTION, max_distance=np.inf, n_jobs=2)
    filtrations = dtm.fit_transform(walkers.data)
    exact = CubicalPersistence().fit_transform(filtrations)
    n, diameter = len(walkers.data[0]), np.sqrt(3) * (BOX[1] - BOX[0])
    deltas = sensitivities(n, diameter)
    print(f"box {BOX} in three dimensions, diameter {diameter:.2f}; {N_RELEASES} releases")
    drawn = table(filtrations, exact, deltas)
    pictures(walkers, filtrations, exact, deltas, drawn)


# %%
try:
    data = load_walkers(download=False)
except FileNotFoundError as error:
    print(f"skipped: {error}")
else:
    main(data)
plt.show()
