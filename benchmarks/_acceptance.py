"""Acceptance rate and running time of the exact sampler over a range of settings."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from time import perf_counter

import numpy as np

from benchmarks._diagrams import noisy_diagram
from benchmarks._table import Table
from benchmarks._timing import once
from sklearn_dptda.persistence._exact_sampler import DiagramBall, ExactSampler, decay_table
from sklearn_dptda.persistence._mechanisms import make_base_measure, make_grid
from sklearn_dptda.privacy import NoiseSource

SIZES, MAX_POINTS, EPSILONS = (3, 50, 500, 2000), (1, 3, 5, 10, 20), (0.1, 1.0, 10.0)
# Mean persistence of the noise. The last two values are hard cases, in which the noise is as large
# as that of the draw.
NOISES = (0.005, 0.02, 0.05)
UPPER = 1.0
SENSITIVITY = UPPER / 800
# A cell that is too slow is cut off after this many seconds. Its number of draws shows this.
BUDGET = 4.0


@dataclass(frozen=True)
class Cell:
    """One setting, its acceptance and its times."""

    noise: float
    size: int
    max_points: int
    epsilon: float
    acceptance: float
    setup: float
    per_draw: float
    n_draws: int

    def row(self):
        """Return the cell as a row of a table."""
        setting = self.noise, self.size, self.max_points, self.epsilon
        return *setting, self.acceptance, self.setup * 1e3, self.per_draw * 1e6, self.n_draws


def acceptance_tables(quick):
    """Yield a summary for each noise level, and tables of the cells of lowest acceptance."""
    sizes, n_draws = ((3, 50), 20) if quick else (SIZES, 300)
    settings = product(NOISES, sizes, MAX_POINTS, EPSILONS)
    cells = [measure(*setting, n_draws) for setting in settings]
    yield Table(
        "Acceptance of the exact sampler: draws per proposal",
        (
            "noise",
            "cells",
            "minimum",
            "median",
            "set-up ms, median",
            "set-up ms, max",
            "microseconds a draw, median",
            "microseconds a draw, max",
            "cells cut off",
        ),
        [_summary(noise, cells, n_draws) for noise in NOISES],
        f"Cells: |D| in {sizes}, max_points in {MAX_POINTS}, epsilon in {EPSILONS}; "
        f"sensitivity = upper / 800; spike-slab base measure. Each cell has {n_draws} draws and is "
        f"cut off after {BUDGET:g} s. The noise is the mean persistence of all points except "
        "three, in units of the range.",
    )
    worst = sorted(cells, key=lambda cell: cell.acceptance)[:10]
    yield Table("The ten cells of lowest acceptance", _columns(), [cell.row() for cell in worst])
    usual = [cell for cell in cells if cell.noise == NOISES[0]]
    worst = sorted(usual, key=lambda cell: cell.acceptance)[:10]
    title = f"The ten cells of lowest acceptance with noise {NOISES[0]:g}"
    yield Table(title, _columns(), [cell.row() for cell in worst])


def measure(noise, size, max_points, epsilon, n_draws):
    """Set up a sampler, draw from it and time both."""
    diagram = noisy_diagram(size, UPPER, noise)
    setup, sampler = once(lambda: _sampler(diagram, max_points, epsilon))
    source = NoiseSource(0)
    start, done = perf_counter(), 0
    while done < n_draws and perf_counter() - start < BUDGET:
        sampler.draw(source)
        done += 1
    per_draw = (perf_counter() - start) / done
    acceptance = done / sampler.n_proposals_
    return Cell(noise, size, max_points, epsilon, acceptance, setup, per_draw, done)


def _sampler(diagram, max_points, epsilon):
    """Set up a sampler in the same way as the mechanism, for one diagram of positive dimension."""
    grid = make_grid(SENSITIVITY, UPPER, epsilon)
    measure = make_base_measure("spike-slab", grid.size, max_points)
    per_step = Fraction(epsilon) / (2 * grid.sensitivity)
    table = decay_table(per_step.numerator, per_step.denominator, grid.size + 1)
    return ExactSampler([DiagramBall(grid.integers(diagram), measure)], table)


def _summary(noise, cells, n_draws):
    own = [cell for cell in cells if cell.noise == noise]
    acceptance = [cell.acceptance for cell in own]
    setup, per_draw = [cell.setup * 1e3 for cell in own], [cell.per_draw * 1e6 for cell in own]
    return (
        noise,
        len(own),
        float(min(acceptance)),
        float(np.median(acceptance)),
        float(np.median(setup)),
        max(setup),
        float(np.median(per_draw)),
        max(per_draw),
        sum(cell.n_draws < n_draws for cell in own),
    )


def _columns():
    return (
        "noise",
        "|D|",
        "max_points",
        "epsilon",
        "acceptance",
        "set-up ms",
        "microseconds a draw",
        "draws",
    )
