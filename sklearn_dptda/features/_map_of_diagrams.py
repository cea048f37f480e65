"""Maps of one diagram to numbers: nothing is learnt, and each diagram is treated by itself."""

from collections.abc import Iterable
from typing import Self

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.privacy._parameters import QuotedParametersMixin
from sklearn_dptda.utils._clouds import check_collection
from sklearn_dptda.utils._distances import as_diagram
from sklearn_dptda.utils._frames import refuse_dask
from sklearn_dptda.utils._sklearn import ListInputMixin, _fit_context


class MapOfDiagrams(ListInputMixin, QuotedParametersMixin, TransformerMixin, BaseEstimator):
    """Base class of transformers of diagrams that learn nothing."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Iterable[ArrayLike], y: object = None) -> Self:
        """Check the parameters; nothing is learnt.

        Parameters
        ----------
        X : list of array-like of shape (n, 2)
            Diagrams.
        y : Ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        read_diagrams(X)
        return self

    def _check_parameters(self) -> None:
        """Refuse parameters that do not go together."""

    def _learns_records(self) -> bool:
        return False

    def __sklearn_tags__(self) -> Tags:
        """Describe the input, and that nothing is learnt."""
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


def read_diagrams(X: Iterable[ArrayLike]) -> list[FloatArray]:
    """Diagrams of a list, checked."""
    refuse_dask(X)
    diagrams = [as_diagram(diagram, f"X[{i}]") for i, diagram in enumerate(check_collection(X))]
    if any((diagram[:, 1] < diagram[:, 0]).any() for diagram in diagrams):
        raise ValueError("X has points that die before they are born: these are no diagrams.")
    return diagrams
