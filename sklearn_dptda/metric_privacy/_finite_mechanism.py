"""Mechanisms that are matrices of probabilities."""

import secrets
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_dptda._typing import FloatArray, RandomStateLike
from sklearn_dptda.metric_privacy._finite_laws import draw, log_parameter
from sklearn_dptda.metric_privacy._finite_metrics import check_pair, check_places
from sklearn_dptda.privacy import NoiseSource, PrivacyAccountant, default_accountant
from sklearn_dptda.privacy._estimator import FRESH
from sklearn_dptda.privacy._noise import spawn_seeds


@dataclass(frozen=True)
class FiniteMechanism:
    """A mechanism on a finite public set: inputs and outputs are its points.

    Attributes
    ----------
    log_matrix : ndarray of shape (n_points, n_points)
        Logarithm of the probability of each output (column) for each input.
    alpha : float
        Privacy loss per unit of distance that it keeps.
    accuracy : float
        Mean distance of the output, for the input for which it is worst.
    optimum : float
        Accuracy of the program before the repair: no private mechanism is
        better, up to the precision of the solver.
    diameter : float
        Largest distance of privacy.
    """

    log_matrix: FloatArray
    alpha: float
    accuracy: float
    optimum: float
    diameter: float

    def __getstate__(self):
        # A cache that knew it by its pickle would replay old draws for nothing.
        return {**vars(self), FRESH: secrets.token_hex(16)}

    def __setstate__(self, state):
        vars(self).update({name: value for name, value in state.items() if name != FRESH})

    def sample(
        self,
        inputs: ArrayLike,
        *,
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
    ) -> NDArray[np.int64]:
        """Pay, and draw an output for each input.

        Parameters
        ----------
        inputs : array-like of int of shape (n_samples,)
            Numbers of points.
        accountant : PrivacyAccountant, default=None
            Charged with ``alpha`` times the diameter. None takes the accountant
            of the surrounding ``with`` block.
        random_state : int, RandomState instance, Generator or None, default=None
            None draws from the operating system's entropy.

        Returns
        -------
        ndarray of int of shape (n_samples,)

        Raises
        ------
        ValueError
            If the inputs are no numbers of points. Nothing is spent.
        """
        inputs = check_places(inputs, len(self.log_matrix))
        (seed,) = spawn_seeds(random_state, 1)
        accountant = accountant if accountant is not None else default_accountant()
        if accountant is not None:
            accountant.spend(
                self.alpha * self.diameter,
                adjacency="replace-one",
                what="a point of a finite space for each record",
                estimator="optimal_mechanism",
                parameters={"alpha": self.alpha},
            )
        return draw(self.log_matrix[inputs], NoiseSource(seed))


def privacy_parameter(M: ArrayLike, D: ArrayLike, *, log: bool = False) -> float:
    """Privacy loss per unit of distance of a finite mechanism.

    Parameters
    ----------
    M : array-like of shape (n_points, n_outputs)
        Probability of each output for each input, or its logarithm.
    D : array-like of shape (n_points, n_points)
        Distances of inputs.
    log : bool, default=False
        Whether ``M`` holds logarithms.

    Returns
    -------
    float
        ``inf`` where an output is possible for some inputs only.

    Raises
    ------
    ValueError
        If ``M`` is no matrix of probabilities, or ``D`` no metric.

    Examples
    --------
    >>> from sklearn_dptda.metric_privacy import privacy_parameter
    >>> round(privacy_parameter([[0.75, 0.25], [0.25, 0.75]], [[0, 2], [2, 0]]), 6)
    0.549306
    """
    D, _ = check_pair(D)
    logs = np.asarray(M, dtype=float)
    if not log:
        if (logs < 0).any() or np.abs(logs.sum(axis=1) - 1).max() > 1e-6:
            raise ValueError("M must hold probabilities, and each row sum to one.")
        with np.errstate(divide="ignore"):
            logs = np.log(logs)
    if logs.ndim != 2 or len(logs) != len(D) or np.isnan(logs).any():
        raise ValueError("M must have a row for each point of D.")
    return log_parameter(logs, D)
