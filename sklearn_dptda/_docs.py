"""Paragraphs that many docstrings share.

A line ``%(name)s`` in the docstring of what :func:`fill_doc` decorates stands for the paragraph
of that name, at the line's own indentation.
"""

import re
from collections.abc import Callable
from textwrap import dedent, indent
from typing import TypeVar

_T = TypeVar("_T", bound=Callable[..., object])


def fill_doc(documented: _T) -> _T:
    """Put the shared paragraphs into a docstring.

    Raises
    ------
    KeyError
        If there is no paragraph of a name.
    """

    def paragraph(match: re.Match[str]) -> str:
        indentation, name = match.groups()
        return indent(dedent(FRAGMENTS[name]).strip(), indentation)

    if documented.__doc__ is not None:  # as with ``python -OO``
        documented.__doc__ = re.sub(
            r"^( *)%\((\w+)\)s$", paragraph, documented.__doc__, flags=re.MULTILINE
        )
    return documented


FRAGMENTS = {
    "epsilon": """
        epsilon : float, default=1.0
            Privacy loss of one fit. ``inf`` adds no noise.
    """,
    "privacy_and_accuracy": """
        D1 : array-like of shape (n_points, n_points)
            Distances of privacy.
        D2 : array-like of shape (n_points, n_points), default=None
            Distances of accuracy. None: the same.
        alpha : float, default=1.0
            Privacy loss per unit of ``D1``.
    """,
    "no_metric": """
        Raises
        ------
        ValueError
            If a matrix is no metric, or ``alpha`` is not positive.
    """,
    # Releases of functions on grids.
    "function_bounds": """
        sensitivity : float, default=None
            Sup-norm change of a filtration when one record is replaced. Only for
            bare arrays, which are refused without; a :class:`GridFiltration`
            carries its own.
        upper : float, default=None
            Public bound of the values. Needed for bare arrays; lowers the bound
            that a :class:`GridFiltration` carries.
    """,
    "pays_for_transform": """
        accountant : PrivacyAccountant, default=None
            Budget that every call of :meth:`transform` is paid from, once for all
            of its clouds. None takes the accountant of the surrounding ``with``
            block; without one, nobody keeps count.
        random_state : int, RandomState instance, Generator or None, default=None
            None draws from the operating system's entropy. A seed makes the
            release reproducible, for tests and study only: whoever knows it can
            undo the noise.
        n_jobs : int, default=None
            Number of filtrations that are worked on at a time, by joblib.
    """,
    "fit_functions": """
        Parameters
        ----------
        X : list of GridFiltration or of array-like
        y : Ignored

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter is out of range, or if a bare array comes without
            ``sensitivity`` and ``upper``.

        Warns
        -----
        UserWarning
            If public numbers show that the release will say nothing.
    """,
    "refused_functions": """
        Raises
        ------
        ValueError
            If the input or a changed parameter is refused. Nothing is spent.
        PrivacyBudgetExceeded
            If the accountant's budget does not cover the call. Nothing is
            spent and nothing is computed.
    """,
    "privacy_of_functions": """
        For each cloud it is ``epsilon``-differentially private under replacement
        of one point; the size of the cloud and all parameters are public. When
        every individual has points in one cloud only, the clouds of one call
        compose in parallel and the whole call is ``epsilon``-private, and counted
        once by the accountant; otherwise, and over several calls, losses add up.
        A fitted object holds parameters and public numbers only. Running time
        depends on the data and is outside the guarantee. Values below zero count
        as zero.
    """,
    # Data sets.
    "data_home": """
        data_home : str or path, default=None
            Folder that holds the file, an ``.npz`` of the name of the data. None: the
            folder named by the environment variable ``SKLEARN_DPTDA_DATA``, else
            scikit-learn's data folder. Nothing is downloaded.
    """,
    "file_errors": """
        Raises
        ------
        FileNotFoundError
            If the file is not there; the message says where to get it.
        ValueError
            If the file does not hold the expected arrays.

        Warns
        -----
        UserWarning
            If the numbers in the file are not the published ones, by their sha256.
    """,
    "noise_and_seed": """
        noise : float, default=0.0
            Standard deviation of Gaussian noise on each coordinate.
        random_state : int, RandomState instance or None, default=None
            Seeds the generator. This is simulated data: no privacy is at stake.
    """,
    "out_of_range": """
        Raises
        ------
        ValueError
            If a parameter is out of range.
    """,
    "rate": """
        alpha : float, default=1.0
            Privacy loss per unit of distance.
    """,
    "pays_for_releases": """
        accountant : PrivacyAccountant, default=None
            Charged with ``alpha`` times the diameter of what can be released, the
            ``epsilon`` of the guarantee, for each release.
        random_state : int, RandomState instance, Generator or None, default=None
            None draws from the operating system's entropy; a seed is for tests and
            study only.
    """,
    "promise_of_releases": """
        privacy_guarantee_ : MetricPrivacyGuarantee
            What each release promises.
    """,
    "ignored_y_and_self": """
        y : Ignored

        Returns
        -------
        self
    """,
    "pure_or_gaussian_delta": """
        delta : float, default=1e-6
            Failure probability. 0: pure differential privacy, with Laplace noise;
            otherwise Gaussian noise.
    """,
    "row_bounds": """
        bounds : pair of float or array-like, or dict, default=None
            Public lower and upper bounds of the columns; rows are clipped to them.
            A dict has a pair for each of some columns, by name. What is missing is
            found privately, and paid for.
        bounds_share : float, default=0.2
            Share of the budget for bounds that are missing, at most. Clusterings
            spend half of it on narrower bounds within those that you give, where
            there are rows enough, so that generous bounds of one column do not
            decide which rows are near.
    """,
    "bounds_of_rows": """
        bounds_ : tuple of two ndarray of shape (n_features,)
            Bounds that rows were clipped to, given or found.
        clipped_share_ : float
            Private share of the rows beyond them.
    """,
    "row_adjacency": """
        adjacency : {"add-remove", "replace-one"}, default="add-remove"
            Whether neighbours have one row more or less, the number of rows being
            private, or the same public number and one row replaced.
    """,
    "row_groups": """
        groups : str, default=None
            Name of the column of a data frame that says whose a row is, by a number
            or a string. The column is no feature, and the guarantee is about all
            rows of one person together. None: the guarantee is about one row,
            unless you pass ``groups`` to ``fit``.
        rows_per_group : int, default=None
            None: all rows of a person weigh as much together as those of anybody
            else, whatever their number, and you choose nothing. A number: the first
            so many rows of each person are used, with as many times the noise;
            ``adjacency="add-remove"`` only.
        unit : str, default="one row"
            What you call a row in guarantees, such as ``"one cloud"``. It changes
            no number.
    """,
    "groups_of_fit": """
        groups : array-like of shape (n_samples,), default=None
            Whose each row is, where no column of ``X`` says so: numbers or strings.
            The guarantee is then about all rows of one person.
    """,
    "privacy_of_groups": """
        With ``groups`` one row stands for all rows of one person.
    """,
    "cluster_covariances": """
        covariance_share : float, default=0.0
            Share of the budget for covariances of the clusters, which
            :class:`MorseMerging` needs; clusters hardly above the noise are then
            dropped. A quarter to three quarters serve about as well. 0 releases none.
        covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
            As in :class:`DPMoG`.
    """,
    "fit_accountant_and_random_state": """
        accountant : PrivacyAccountant, default=None
            Budget that each fit is paid from.
        random_state : int, RandomState instance, Generator or None, default=None
            Of the noise. None draws from the operating system's entropy; a seed is
            for tests and study only.
    """,
    "cluster_weights_scales_and_covariances": """
        weights_ : ndarray of shape (n_clusters,)
            Private shares of the rows.
        weights_noise_ : ndarray of shape (n_clusters,)
            Standard deviations of the privacy noise in ``weights_``.
        cluster_centers_noise_ : ndarray of shape (n_clusters, n_features)
            The same of ``cluster_centers_``, in the units of the columns.
        within_noise_ : ndarray of bool, of shape (n_clusters,)
            Clusters of fewer rows than three standard deviations of their noise:
            they may have none.
        scales_ : ndarray of shape (n_features,)
            Half widths of the intervals in which columns are measured: those of
            ``bounds_``, or of what was found around them where the bounds of a
            column are missing or five times as wide. Columns of different ranges
            count alike.
        covariances_ : ndarray
            Private covariances, with a ``covariance_share``, in the shape for
            ``covariance_type``.
    """,
    "noise_of_clusters": """
        .. rubric:: How far to trust it

        What ends in ``_noise_`` follows from public scales of noise and released
        counts, costs nothing, and is about the last release, given all before it,
        to first order. It does not speak of rows that were clipped, of steps that
        ended elsewhere, or of :doc:`sampling </guide/sampling_error>`.
    """,
    "fit_guarantee_and_columns": """
        privacy_guarantee_ : PrivacyGuarantee
            What the fit promises.
        n_features_in_ : int
            Number of columns.
        feature_names_in_ : ndarray of shape (`n_features_in_`,)
            Names of the columns, where they have names.
    """,
    "columns": """
        n_features_in_ : int
            Number of columns.
        feature_names_in_ : ndarray of shape (`n_features_in_`,)
            Names of the columns, where they have names.
    """,
    "fit_rows_or_parts": """
        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Dask collection
            An array or data frame of Dask, or a list of delayed tables, is
            counted where it is, as :meth:`fit_chunks` says.
        y : Ignored
        groups : array-like of shape (n_samples,), default=None
            Whose each row is, where no column of ``X`` says so: numbers or strings.
            The guarantee is then about all rows of one person.

        Returns
        -------
        self
    """,
    "chunks_of_rows": """
        Parameters
        ----------
        chunks : iterable of array-like, callable, Dask collection, or object with ``map_reduce``
            Of tables of shape (n_rows, n_features), which are read once to check
            them, and once for each step. All passes must see the same rows, in
            whatever order and parts: others end the fit with a ValueError, and
            what was paid stays spent.

            A stream is a list, an object with ``__iter__``, or a function that
            returns a new iterator.

            Parts on other machines are a Dask array or data frame, a list of
            delayed tables, or an object whose method ``map_reduce(function)``
            returns the sum, by ``+``, of ``function(part)`` over the parts of a
            table, in any order. Such functions hold released values and public
            parameters alone. They draw no noise and pay nothing, so that a part
            that is lost may be counted again: noise is drawn once, by the caller,
            who pays once. What they return is exact, *not* private: whoever runs
            them is trusted.
    """,
    "refused_or_not_paid": """
        Raises
        ------
        ValueError
            If a parameter or the input is refused. Nothing is spent.
        PrivacyBudgetExceeded
            If the accountant's budget does not cover the fit.
    """,
    "plan_parameters": """
        Parameters
        ----------
        estimator : estimator
            Private, or a pipeline, union or search that holds private ones.
        X : array-like, list of clouds or graph, default=None
            Its shape is used, where a number of rows or columns matters.
        y : Ignored
        cv : int, cross-validation generator or list of splits, default=None
            Plan :func:`~sklearn.model_selection.cross_validate` with it.
        scoring : as for :func:`~sklearn.model_selection.cross_validate`, default=None
            Of ``cv``.
        return_train_score : bool, default=False
            Of ``cv``.
        method : {"fit", "fit_transform", "transform", "predict", "score"}, default=None
            The call; ``"predict"`` stands for any that predicts. None:
            ``"fit"`` of a search, else ``"fit_transform"``, which costs as much
            where there is nothing to transform.
        accountant : PrivacyAccountant, default=None
            Pays for estimators without one of their own. None: that of the
            surrounding ``with`` block.
    """,
    "one_number_for_each_row": """
        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Dask collection

        Returns
        -------
        ndarray of shape (n_samples,)
            Of a Dask collection one that is not computed.
    """,
}
