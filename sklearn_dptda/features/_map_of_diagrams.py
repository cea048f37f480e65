"""Base of transformers that map each diagram to numbers independently and learn nothing."""

from collections.abc import Iterable
from typing import Self

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.privacy._estimator import silent_arithmetic
from sklearn_dptda.privacy._parameters import QuotedParametersMixin
from sklearn_dptda.utils._distances import as_diagram
from sklearn_dptda.utils._sklearn import ListInputMixin, _fit_context
from sklearn_dptda.utils._validation import check_collection, refuse_dask


class MapOfDiagrams(ListInputMixin, QuotedParametersMixin, TransformerMixin, BaseEstimator):
    """Base class of transformers of diagrams that learn nothing."""

    @_fit_context(prefer_skip_nested_validation=True)
    @silent_arithmetic()
    def fit(self, X: Iterable[ArrayLike], y: object = None) -> Self:
        """Check the parameters and the input. Nothing is learnt from it.

        Parameters
        ----------
        X : list of array-like of shape (n, 2)
            Diagrams: births and deaths.
        y : Ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        read_diagrams(X)
        return self

    def _check_parameters(self) -> None:
        """Raise an error if parameters are incompatible."""

    def _learns_records(self) -> bool:
        return False

    def __sklearn_tags__(self) -> Tags:
        """Describe the input, and declare that no fit is required."""
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


def read_diagrams(X: Iterable[ArrayLike]) -> list[FloatArray]:
    """Return the diagrams of a list after checking them."""
    refuse_dask(X)
    diagrams = [as_diagram(diagram, f"X[{i}]") for i, diagram in enumerate(check_collection(X))]
    if any((diagram[:, 1] < diagram[:, 0]).any() for diagram in diagrams):
        raise ValueError(
            "X has points whose death precedes their birth, which diagrams cannot have."
        )
    return diagrams
