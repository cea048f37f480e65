"""Private choice of centres among candidates, by swaps."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from sklearn_dptda.cluster._moments import row_products

# Costs of one record are integers up to here.
LARGEST_COST = 1 << 20


@dataclass(frozen=True)
class Candidates:
    """Points of a public or private list, and what they cost a record.

    Attributes
    ----------
    points : ndarray of shape (n_candidates, n_axes)
    radius : float
        Distance from which on a record's cost does not grow.
    """

    points: np.ndarray
    radius: float

    def costs(self, part):
        """Squared distances of records to all candidates, in whole steps.

        Parameters
        ----------
        part : ndarray of shape (n, n_axes)

        Returns
        -------
        ndarray of shape (n, n_candidates), dtype int64
        """
        out = np.empty((len(part), len(self.points)), dtype=np.int64)
        for j, point in enumerate(self.points):
            offsets = (part - point) / self.radius
            squared = np.minimum(row_products(offsets, offsets), 1.0)
            out[:, j] = LARGEST_COST * squared
        return out


def swap_costs(candidates, rows, chosen):
    """Cost of each set that differs from a given one by one centre.

    Parameters
    ----------
    candidates : Candidates
    rows : iterable of ndarray
    chosen : ndarray of shape (k,)
        Indices of the present centres.

    Returns
    -------
    ndarray of shape (k, n_candidates), dtype int64
        Entry (o, c): with c in the place of the o-th centre.
    """
    k = len(chosen)
    total = np.zeros((k, len(candidates.points)), dtype=np.int64)
    for part in rows:
        costs = candidates.costs(part)
        present = costs[:, chosen]
        nearest = present.argmin(axis=1)
        ordered = np.sort(present, axis=1)
        first = ordered[:, 0]
        # With its centre gone, a record goes to the second, or pays most.
        second = ordered[:, 1] if k > 1 else np.full(len(part), LARGEST_COST)
        kept = np.minimum(costs, first[:, None])
        lost = np.minimum(costs, second[:, None]) - kept
        members = csr_array(
            (np.ones(len(part), np.int64), (nearest, np.arange(len(part)))), (k, len(part))
        )
        total += kept.sum(axis=0) + members @ lost
    return total


def set_costs(candidates, rows, sets):
    """Cost of each of some sets of candidates.

    Parameters
    ----------
    candidates : Candidates
    rows : iterable of ndarray
    sets : list of ndarray of int

    Returns
    -------
    list of int
    """
    total = np.zeros(len(sets), dtype=np.int64)
    for part in rows:
        costs = candidates.costs(part)
        total += [costs[:, chosen].min(axis=1).sum() for chosen in sets]
    return total.tolist()


def search(candidates, rows, start, n_swaps, budget, share):
    """Swap centres privately, and choose the best set met on the way.

    Parameters
    ----------
    candidates : Candidates
    rows : iterable of ndarray
    start : ndarray of shape (k,)
    n_swaps : int
    budget : GaussianBudget
    share : float
        Of all choices together.

    Returns
    -------
    ndarray of shape (k,)
    """
    each = share / (n_swaps + 1)
    sets = [np.array(start)]
    for _ in range(n_swaps):
        costs = swap_costs(candidates, rows, sets[-1])
        index = budget.choose(costs.ravel().tolist(), LARGEST_COST, each)
        out, into = divmod(index, costs.shape[1])
        swapped = sets[-1].copy()
        swapped[out] = into
        sets.append(swapped)
    return sets[budget.choose(set_costs(candidates, rows, sets), LARGEST_COST, each)]
