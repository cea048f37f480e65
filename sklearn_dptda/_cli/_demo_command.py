"""The command ``demo``: private persistence diagrams of simulated and of real data."""

import textwrap

import numpy as np
from sklearn.datasets import load_digits

from sklearn_dptda._cli._command import Command, at_least_one
from sklearn_dptda._cli._output import new_figure, output_folder, rounded_probability, slow
from sklearn_dptda._cli._terminal import say
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.filtration import DTMFiltration
from sklearn_dptda.model_selection import privacy_utility_curve
from sklearn_dptda.persistence import CubicalPersistence, PrivatePersistence
from sklearn_dptda.plotting import FiltrationDisplay, PersistenceDiagramDisplay

CAPTION = (
    "Left: the points and their distance-to-measure function. Right: birth and death of the "
    "components (H0) and loops (H1) of this function. Features far from the diagonal persist "
    "long. Hollow markers: exact diagram, shown because these data are public. Filled markers: "
    "private release. They are as opaque as they are probable, given the release. With a tenth of "
    "the points, the noise is ten times as large and hides the loops."
)
# Largest number of points of a cloud that the picture shows.
_MAX_POINTS_DRAWN = 2000


class Demo(Command):
    """Compute private persistence diagrams of public data, and show the errors.

    The data are simulated points on two circles, many and few, and the ink of a handwritten digit
    (included in scikit-learn). The command prints the guarantee and the errors, and writes a
    picture. All data sets are public, so the picture shows the exact diagrams together with the
    private ones.
    """

    name = "demo"
    arguments = {
        "--epsilon": {"type": float, "default": 1.0, "help": "privacy loss (default 1)"},
        "--releases": {
            "type": at_least_one,
            "default": 20,
            "help": "number of releases over which the errors are averaged (default 20)",
        },
        "--seed": {"type": int, "help": "seed for reproducible noise, for tests only"},
        "-o --out": {"default": "dptda-out", "help": "folder for the picture (default dptda-out)"},
    }

    def run(self):
        args = self.args
        out = output_folder(args.out)
        private = PrivatePersistence(epsilon=args.epsilon, random_state=args.seed)
        few = make_two_circles(400, random_state=0)
        # Each case consists of a name, a cloud, its public bounds, a mass and the privacy unit.
        cases = [
            ("two circles", make_two_circles(4000, random_state=0), (-3, 3.5), 0.2, "one point"),
            ("circles, few points", few, (-3, 3.5), 0.2, "one point"),
            ("ink of the digit 0", _digit_ink(0), (0, 7), 0.1, "one dot of ink"),
        ]
        say(
            f"{'data':<20}{'n':>7}{'privacy unit':>16}{'epsilon':>9}{'error H0':>10}"
            f"{'error H1':>10}  loops of one release: persistence (probability)"
        )
        drawn = []
        for name, cloud, bounds, m, unit in cases:
            with slow(f"computing and releasing {name}"):
                functions = DTMFiltration(m=m, bounds=bounds).fit_transform([cloud])
                exact = CubicalPersistence().fit_transform(functions)[0]
                release = private.fit_transform(functions)[0]
                curve = privacy_utility_curve(
                    private,
                    functions,
                    param_range=[args.epsilon],
                    n_replicates=args.releases,
                    random_state=args.seed,
                )
            error = curve.mean()[0]
            probability = private.posterior([release])[0].probability
            loops = ", ".join(
                f"{length:.2f} ({rounded_probability(p)})"
                for length, p in zip(np.ptp(release[1], axis=1), probability[1], strict=True)
            )
            say(
                f"{name:<20}{len(cloud):>7}{unit:>16}{args.epsilon:>9g}{error[0]:>10.3f}"
                f"{error[1]:>10.3f}  {loops or 'none'}"
            )
            display = PersistenceDiagramDisplay(release, reference=exact, probability=probability)
            drawn.append((name, cloud, functions[0], display))
        _draw(drawn, args.epsilon, out / "demo.png")
        say(
            "",
            "error H0, error H1: mean bottleneck distance to the exact diagram over "
            f"{args.releases} releases (not private, because it is computed from the exact "
            "diagram)",
            "probability: how probable it is that the exact diagram has this loop, on average over "
            "a public prior",
            f"whatever the data are, in the last release: {private.error_statement_}",
            f"guarantee of each release: {private.privacy_guarantee_}",
            f"picture: {out / 'demo.png'}",
        )


def _digit_ink(digit):
    """Return all ink of one digit as a point cloud: a pixel of grey level v holds v dots."""
    digits = load_digits()
    clouds = []
    for image in digits.images[digits.target == digit].astype(int):
        row, column = np.nonzero(image)
        clouds.append(np.repeat(np.c_[column, 7 - row], image[row, column], axis=0))
    return np.concatenate(clouds).astype(float)


def _draw(drawn, epsilon, path):
    """Draw the functions and the diagrams, one row of panels for each data set."""
    # A narrow picture can be read on a phone.
    figure = new_figure(8.4, 4.1 * len(drawn))
    axes = figure.subplots(len(drawn), 2)
    finite = [d[d[:, 1] < row[2].upper] for row in drawn for d in row[3].reference]
    limit = 1.3 * max(float(d.max()) for d in finite if len(d))
    for row, (name, cloud, function, display) in zip(axes, drawn, strict=True):
        _draw_cloud(cloud, function, row[0])
        row[0].set_title(name)
        display.upper = limit
        display.plot(row[1])
        row[1].set_title(f"private diagram, epsilon = {epsilon:g}")
    figure.supxlabel(textwrap.fill(CAPTION, 88), fontsize=12)
    # An earlier picture is replaced. If it is a link, its target stays.
    path.unlink(missing_ok=True)
    figure.savefig(path, dpi=110)


def _draw_cloud(cloud, function, ax):
    """Draw a function and its points, or the grey levels if many points are at one place."""
    places, ink = np.unique(cloud, axis=0, return_counts=True)
    if len(places) > len(cloud) / 2:
        some = cloud[:: max(1, len(cloud) // _MAX_POINTS_DRAWN)]
        FiltrationDisplay(function, points=some).plot(ax)
        return
    FiltrationDisplay(function).plot(ax)
    column, row = places.astype(int).T
    # White, and as opaque as there is ink, with a transparent margin.
    image = np.ones((row.max() + 3, column.max() + 3, 4))
    image[:, :, 3] = 0
    image[row + 1, column + 1, 3] = ink / ink.max()
    limits = ax.get_xlim(), ax.get_ylim()
    sides = (-1.5, column.max() + 1.5, -1.5, row.max() + 1.5)
    ax.imshow(image, extent=sides, origin="lower", interpolation="bicubic", zorder=2)
    ax.set(xlim=limits[0], ylim=limits[1])
