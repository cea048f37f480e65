"""Linear discriminant analysis under differential privacy.

Proof: doc/theory/private_discriminants.md, "What is released".
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_expit, log_softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import Adjacency, FloatArray, RandomStateLike, RowBounds
from sklearn_dptda.discriminant_analysis._noisy_discriminants import (
    CHOICE_SHARE,
    LABEL,
    LabelledParts,
    classes_of,
    codes_of,
    labelled_tables,
    learn,
    read_labels,
)
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyGuarantee, PrivacyLeakWarning
from sklearn_dptda.privacy._asking import check_lengths
from sklearn_dptda.privacy._calibration import gaussian_mu_with_choice
from sklearn_dptda.privacy._every_estimator import without_weights
from sklearn_dptda.privacy._risk import LossLaw
from sklearn_dptda.privacy._warnings import NoiseWarning, warn_caller
from sklearn_dptda.rows._estimator import PrivateRowsEstimator
from sklearn_dptda.rows._methods import by_rows
from sklearn_dptda.rows._moments import FitBudget
from sklearn_dptda.rows._public_box import PublicBox
from sklearn_dptda.rows._rows import Box, Rows
from sklearn_dptda.rows._tables import open_chunks, opened_anew
from sklearn_dptda.utils._frames import open_frame, without_column
from sklearn_dptda.utils._tasks import of_dask, parts_elsewhere
from sklearn_dptda.utils._validation import without_quotes


@fill_doc
class DPLinearDiscriminantAnalysis(ClassifierMixin, PrivateRowsEstimator):
    """Linear discriminant analysis under differential privacy.

    A record is a row together with its label, so labels are protected as well. The
    fit releases noisy moments: a ball that contains most rows; a covariance, shrunk
    by its noise; and the means and weights of the classes, in coordinates that the
    covariance whitens. If the noise hides the covariance, the classifier is that of
    the nearest mean.

    Parameters
    ----------
    classes : array-like, default=None
        Public list of all labels. A label outside this list is refused before any
        budget is spent. None: the labels in ``y``, with a warning, since the
        presence of a class may reveal that a person is in the data.
    %(epsilon)s
    %(pure_or_gaussian_delta)s
    %(row_bounds)s
    %(row_adjacency)s
    %(row_groups)s
    %(missing_values)s
    %(fit_accountant_and_random_state)s

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    means_ : ndarray of shape (n_classes, n_features)
        Private means of the classes, moved into the bounds after ``coef_`` was found.
    priors_ : ndarray of shape (n_classes,)
        Private weights of the classes.
    covariance_ : ndarray of shape (n_features, n_features)
        Private covariance within classes.
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) for two classes
        Weights of the features.
    intercept_ : ndarray of shape (n_classes,), or (1,) for two classes
        Intercepts.
    %(bounds_of_rows)s
    %(share_of_missing_values)s
    %(fit_guarantee_and_columns)s

    See Also
    --------
    sklearn.discriminant_analysis.LinearDiscriminantAnalysis : Without privacy.
    sklearn_dptda.features.SortedLifetimes : A few features of each cloud.

    Notes
    -----
    .. rubric:: Privacy

    One fit releases bounds, and means, weights and a covariance of the classes. It
    is (``epsilon``, ``delta``)-differentially private for adding or removing one
    row with its label, or for replacing both. :meth:`predict` of other rows is
    post-processing; :meth:`score` on private rows is *not* private.
    %(privacy_of_groups)s

    Pass the bounds that you know, however wide they are: the fit first searches
    for a part of them that contains the rows.

    References
    ----------
    Y.-X. Wang, "Revisiting differentially private linear regression", UAI 2018,
    for the ridge. The rest is an addition of this implementation.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_dptda.discriminant_analysis import DPLinearDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> private = DPLinearDiscriminantAnalysis(
    ...     [0, 1, 2], epsilon=3.0, bounds=([4, 2, 1, 0], [8, 5, 7, 3]), random_state=0
    ... )
    >>> private.fit(X, y).score(X, y) > 0.8
    True
    """

    _parameter_constraints = {
        **PrivateRowsEstimator._parameter_constraints,
        "classes": ["array-like", None],
        "missing": ["boolean", list, tuple],
    }

    def __init__(
        self,
        classes: ArrayLike | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: RowBounds | None = None,
        *,
        adjacency: Adjacency = "add-remove",
        groups: str | None = None,
        unit: str = "one row",
        missing: bool | Sequence[Any] = False,
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
    ) -> None:
        self.classes = classes
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.adjacency = adjacency
        self.groups = groups
        self.unit = unit
        self.missing = missing
        self.accountant = accountant
        self.random_state = random_state

    @fill_doc
    @without_weights
    def fit(self, X: ArrayLike, y: ArrayLike, *, groups: ArrayLike | None = None) -> Self:  # type: ignore[override]
        """Spend the budget and learn from the rows and their labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Dask array or data frame
            Training rows. The parts of a Dask collection are counted where they are.
        y : array-like of shape (n_samples,)
            Labels. For a Dask collection ``X``, a Dask collection in as many parts.
        %(groups_of_fit)s

        Returns
        -------
        self

        %(refused_or_not_paid)s
        """
        if of_dask(y) or parts_elsewhere(X) is not None:
            self._refuse_ids_of_parts(groups)
            return self._fit_parts(LabelledParts.of(X, y, self._public_classes()))
        self._check_parameters()
        codes, labels = self._coded(y)
        with self._coding_by(labels):
            remarks = self._pay_and_learn(self._rows_of(X, groups, codes))
        for remark in remarks:
            warn_caller(remark, NoiseWarning)
        return self

    @fill_doc
    def fit_chunks(self, chunks: Iterable[Any] | Callable[[], Iterator[Any]]) -> Self:  # type: ignore[override]
        """Spend the budget and learn from rows and labels that come in chunks.

        Parameters
        ----------
        chunks : iterable of pairs (X, y), or callable that returns a new iterator of them
            Tables and labels. They are read once to check them, and once for each
            step. All passes must see the same rows.

        Returns
        -------
        self

        %(refused_or_not_paid)s
        """
        opened_anew(chunks)
        return self._fit_parts(partial(labelled_tables, chunks, self._public_classes()))

    def _fit_parts(self, parts: Any) -> Self:
        """Fit tables whose last column is the class."""
        self._check_parameters()
        with self._coding_by(self._public_classes()):
            rows = open_chunks(self, parts, self._check_labelled, self._coding(), label=LABEL)
            rows = replace(rows, unit=self._unit())
            remarks = self._pay_and_learn(rows)
        for remark in remarks:
            warn_caller(remark, NoiseWarning)
        return self

    @contextmanager
    def _coding_by(self, labels: NDArray[Any]) -> Iterator[None]:
        """Keep the labels of the codes for the time of a fit."""
        self._labels = labels
        try:
            yield
        finally:
            del self._labels

    def _records(self, rows: Rows) -> Any:
        # Rows hold numbers of classes.
        held = super()._records(rows)
        return None if held is None else (held, self._labels)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.classes is not None:
            self._public_classes()

    def _public_classes(self) -> NDArray[Any]:
        """The public labels, sorted. Rows in chunks need them."""
        if self.classes is None:
            raise ValueError(
                "classes must be given for rows that come in parts. Pass the list of all labels."
            )
        with without_quotes("classes"):
            given = np.asarray(self.classes)
            if given.ndim != 1:
                raise ValueError("classes must be a list of labels.")
            classes = np.unique(given)
        if len(classes) < 2:
            raise ValueError("classes must contain at least 2 labels.")
        return classes

    def _coded(self, y: Any) -> tuple[FloatArray, NDArray[Any]]:
        """Codes of the classes, and their labels."""
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None."
            )
        labels = read_labels(y)
        if self.classes is not None:
            classes = self._public_classes()
            return codes_of(labels, classes), classes
        classes = classes_of(labels)
        if len(classes) < 2:
            raise ValueError("y contains only one class; at least 2 classes are needed.")
        warn_caller(
            f"{type(self).__name__} was given no classes. They are taken from y, which the privacy "
            "guarantee does not cover. Pass the public list of all possible labels.",
            PrivacyLeakWarning,
        )
        return codes_of(labels, classes), classes

    def _refuse_labels(self, X: Any, y: Any, people: Any) -> None:
        check_lengths(X, y)
        if not of_dask(y):
            labels = self._coded(y)[0]
            self._check_labels(len(labels), labels, people)

    def _check_labelled(self, table: Any) -> Any:
        is_array = open_frame(table) is None
        rows = table[:, :-1] if is_array else without_column(table, LABEL)
        return self._check_table(rows, ensure_min_samples=0)

    def _public_box(self, n_features: int) -> PublicBox:
        d = getattr(self, "n_features_in_", n_features)
        box = super()._public_box(d)
        if n_features == d:
            return box
        # The last column is the code of the class, which starts at 0.
        high = np.append(box.high, len(self._labels) - 1.0)
        return replace(box, low=np.append(box.low, 0.0), high=high)

    def _guarantee(self, some_are_private: bool, unit: str) -> PrivacyGuarantee:
        guarantee = super()._guarantee(some_are_private, unit)
        return replace(guarantee, public_parameters=self.classes is not None, labels=True)

    def _release(
        self, rows: Rows, guarantee: PrivacyGuarantee, seed: Any, public_seed: Any = None
    ) -> list[str]:
        remarks = super()._release(rows, guarantee, seed, public_seed)
        low, high = self.bounds_
        self.bounds_ = low[:-1], high[:-1]
        return remarks

    def _learn(self, rows: Rows, budget: FitBudget, rng: np.random.Generator, box: Box) -> None:
        self.classes_ = self._labels
        # Bounds that were found privately already fit the rows.
        narrow = not self._public_box(self.n_features_in_).private.all()
        found = learn(rows, len(self.classes_), budget, narrow=narrow)
        found = found.moved(box.origin[:-1], box.unit[:-1])
        self.means_ = np.clip(found.means, box.low[:-1], box.high[:-1])
        self.priors_, self.covariance_ = found.priors, found.covariance
        coef, intercept = found.coef, found.intercept
        if len(self.classes_) == 2:
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        self.coef_, self.intercept_ = coef, intercept

    @staticmethod
    def _gaussian_loss(epsilon: float, delta: float) -> tuple[float, LossLaw]:
        # The choice of a part of the box is not a Gaussian mechanism.
        mu = gaussian_mu_with_choice(epsilon, delta, CHOICE_SHARE)
        choice = 2 * mu * math.sqrt(CHOICE_SHARE)
        # It depends on noisy counts that are drawn before.
        return mu, LossLaw(choices=(choice,), mu=mu * math.sqrt(1 - CHOICE_SHARE), mixed=True)

    def _mechanism(self) -> str:
        if self.delta == 0:
            return "discrete Laplace mechanism and permute-and-flip, composed"
        return "discrete Gaussian and exponential mechanisms, composed"

    def _released(self) -> str:
        return "means, weights and a common covariance of the classes"

    @by_rows
    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Scores of the classes: logarithms of their probabilities, up to a constant.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            For two classes, the score of the second class minus that of the first.
        """
        rows = self._rows(X)
        if np.isnan(rows).any():
            rows = self._completed(rows)
        scores: FloatArray = rows @ self.coef_.T + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _completed(self, rows: FloatArray) -> FloatArray:
        """Rows whose missing values are their means given the other values, over all classes."""
        mean = self.priors_ @ self.means_
        away = self.means_ - mean
        covariance = self.covariance_ + (away.T * self.priors_) @ away
        filled = rows.copy()
        patterns, which = np.unique(np.isnan(rows), axis=0, return_inverse=True)
        for number, gaps in enumerate(patterns):
            some, known = np.flatnonzero(which.ravel() == number), ~gaps
            slopes = np.linalg.pinv(covariance[np.ix_(known, known)], hermitian=True)
            offsets = (rows[some][:, known] - mean[known]) @ slopes
            filled[np.ix_(some, gaps)] = mean[gaps] + offsets @ covariance[np.ix_(known, gaps)]
        return filled

    @by_rows
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Most likely class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[chosen]

    @by_rows
    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        probabilities: FloatArray = np.exp(self.predict_log_proba(X))
        return probabilities

    @by_rows
    def predict_log_proba(self, X: ArrayLike) -> FloatArray:
        """Logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        logarithms: FloatArray = log_softmax(scores, axis=1)
        return logarithms

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Share of the rows whose class is predicted correctly. It is *not* private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            The labels of the rows.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        float
        """
        if parts_elsewhere(X) is not None:
            raise ValueError(
                "score compares rows with labels in memory, and does not gather parts from other "
                "machines. Compute X and y first, or count correct predictions where the rows are."
            )
        return float(super().score(X, y, sample_weight))

    @classmethod
    def _parameters_for_checks(cls) -> dict[str, Any]:
        return {"classes": [0, 1]}

    def __sklearn_tags__(self) -> Tags:
        """Declare that labels are needed, and protected."""
        tags = super().__sklearn_tags__()
        tags.privacy.labels = True
        tags.privacy.ragged = False
        # At the usual epsilon, the result on a few hundred rows is hardly above the noise.
        tags.classifier_tags.poor_score = True
        return tags
