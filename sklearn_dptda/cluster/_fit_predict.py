"""Labels of training rows from ``predict``, for estimators that keep none."""

from numpy.typing import ArrayLike

from sklearn_dptda._typing import IntArray
from sklearn_dptda.utils._row_methods import refuse_unmapped


class FitPredictMixin:
    """Mixin for clusterings whose labels follow from what they have learnt and a row."""

    def fit_predict(self, X: ArrayLike, y: object = None) -> IntArray:
        """Fit and assign the training rows: the labels are *not* private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Dask collection
        y : Ignored

        Returns
        -------
        ndarray of shape (n_samples,)
            Of a Dask collection one that is not computed.
        """
        refuse_unmapped(self, X, "predict")
        return self.fit(X).predict(X)  # type: ignore[attr-defined]
