"""Ways from the passes of a merge tree up to the modes that they join."""

import math

import numpy as np

# Mean shift jumps: a path of full steps has kinks.
_STEPS, _DAMPING = 500, 0.2


def tree_paths(density, modes, saddles, linkage):
    """Ways from each pass up to the two modes that it joins, by mean shift.

    Where the two ways do not end in the two branches that the pass joins, they
    are straight lines to the nearest mode of each.
    """
    if len(saddles) == 0:
        return []
    below = [{mode} for mode in range(len(modes))]
    joined = linkage[:, :2].astype(int)
    for left, right in joined:
        below.append(below[left] | below[right])
    ways = _ascents(density, saddles)
    paths = []
    for i, (left, right) in enumerate(joined):
        pair = [ways[:, 2 * i], ways[:, 2 * i + 1]]
        ends = [_nearest(modes, way[-1]) for way in pair]
        if ends[0] in below[right]:
            pair, ends = pair[::-1], ends[::-1]
        if ends[0] not in below[left] or ends[1] not in below[right]:
            sides = [sorted(below[left]), sorted(below[right])]
            ends = [side[_nearest(modes[side], saddles[i])] for side in sides]
            pair = [saddles[i][None]] * 2
        paths += [
            np.vstack([saddles[i], way, modes[end]]) for way, end in zip(pair, ends, strict=True)
        ]
    return paths


def _ascents(density, saddles):
    """Damped mean shift from both sides of each saddle, two columns per saddle."""
    starts = []
    for saddle in saddles:
        values, vectors = np.linalg.eigh(density.slope_and_curvature(saddle)[1])
        away = 0.05 * vectors[:, 0] / math.sqrt(max(abs(values[0]), 1e-12))
        starts += [saddle + away, saddle - away]
    ways = [np.array(starts)]
    for _ in range(_STEPS):
        step = _DAMPING * (density.mean_shift(ways[-1]) - ways[-1])
        ways.append(ways[-1] + step)
    return np.array(ways)


def _nearest(points, point):
    return int(np.argmin(((points - point) ** 2).sum(axis=1)))
