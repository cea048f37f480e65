"""Paragraphs that many docstrings share.

:func:`fill_doc` replaces each line ``%(name)s`` in the docstring of the decorated object by the
paragraph of that name, at the indentation of the line.
"""

import re
from collections.abc import Callable
from textwrap import dedent, indent
from typing import TypeVar

_T = TypeVar("_T", bound=Callable[..., object])


def fill_doc(documented: _T) -> _T:
    """Insert the shared paragraphs into a docstring."""

    def paragraph(match: re.Match[str]) -> str:
        indentation, name = match.groups()
        return indent(dedent(FRAGMENTS[name]).strip(), indentation)

    if documented.__doc__ is not None:  # ``python -OO`` removes it
        documented.__doc__ = re.sub(
            r"^( *)%\((\w+)\)s$", paragraph, documented.__doc__, flags=re.MULTILINE
        )
    return documented


FRAGMENTS = {
    "epsilon": """
        epsilon : float, default=1.0
            Privacy loss of one fit. Smaller values give more privacy and more noise.
            ``inf`` adds no noise and gives no privacy.
    """,
    "privacy_and_accuracy": """
        D1 : array-like of shape (n_points, n_points)
            Matrix of the distances in which privacy is measured.
        D2 : array-like of shape (n_points, n_points), default=None
            Matrix of the distances in which accuracy is measured. None uses ``D1``.
        alpha : float, default=1.0
            Privacy loss per unit of ``D1``. Smaller values give more privacy.
    """,
    # Releases of functions on grids.
    "function_bounds": """
        sensitivity : float, default=None
            Largest change of a filtration, in the sup norm, when one record is
            replaced. The noise is proportional to it. It is required for bare
            arrays. A :class:`GridFiltration` carries its own sensitivity.
        upper : float, default=None
            Public upper bound of the values of a filtration. It is required for bare
            arrays. For a :class:`GridFiltration`, it can lower the bound that the
            filtration carries.
    """,
    "pays_for_transform": """
        accountant : PrivacyAccountant, default=None
            Privacy budget from which each call of :meth:`transform` spends. One call
            is charged once for all of its clouds. None uses the accountant of the
            surrounding ``with`` block. Without such a block, losses are not counted.
        random_state : int, RandomState instance, Generator or None, default=None
            Source of the noise. None draws from the operating system's entropy. A
            seed makes the release reproducible and is for tests and study only,
            because the noise can be undone with the seed.
        n_jobs : int, default=None
            Number of filtrations that joblib processes in parallel. It has no effect
            on the result or on privacy.
    """,
    "refused_functions": """
        Raises
        ------
        PrivacyBudgetExceeded
            If the budget of the accountant does not cover the call. Nothing is
            spent and nothing is computed.
    """,
    "privacy_of_functions": """
        For each cloud, the release is ``epsilon``-differentially private under
        replacement of one point. The size of the cloud and all parameters are public.
        If each individual has points in only one cloud, the clouds of one call
        compose in parallel: the whole call is ``epsilon``-differentially private, and
        the accountant counts it once. Otherwise the losses add up over the clouds.
        They also add up over several calls. A fitted object holds only parameters and
        public numbers. The running time depends on the data, and the guarantee does
        not cover it. Values below zero count as zero.
    """,
    # Data sets.
    "data_home": """
        data_home : str or path, default=None
            Folder that holds the file, an ``.npz`` file with the name of the data set.
            None uses the folder named by the environment variable
            ``SKLEARN_DPTDA_DATA`` or, if that is not set, scikit-learn's data folder.
            Nothing is downloaded.
    """,
    "file_errors": """
        Raises
        ------
        FileNotFoundError
            If the file does not exist. The message says where to get it.

        Warns
        -----
        UserWarning
            If the SHA-256 digest of the numbers in the file differs from that of the
            published numbers.
    """,
    "noise_and_seed": """
        noise : float, default=0.0
            Standard deviation of the Gaussian noise that is added to each coordinate.
            It is part of the simulated data and gives no privacy.
        random_state : int, RandomState instance or None, default=None
            Seed of the generator. The data are simulated, so a seed does not affect
            privacy.
    """,
    "rate": """
        alpha : float, default=1.0
            Privacy loss per unit of distance. Smaller values give more privacy and
            more noise.
    """,
    "pays_for_releases": """
        accountant : PrivacyAccountant, default=None
            Privacy budget from which each release spends. The charge is the
            ``epsilon`` of the guarantee: ``alpha`` times the diameter of the set of
            possible releases. None uses the accountant of the surrounding ``with``
            block. Without such a block, losses are not counted.
        random_state : int, RandomState instance, Generator or None, default=None
            Source of the noise. None draws from the operating system's entropy. A
            seed is for tests and study only, because the noise can be undone with it.
    """,
    "promise_of_releases": """
        privacy_guarantee_ : MetricPrivacyGuarantee
            Guarantee of each release.
    """,
    "ignored_y_and_self": """
        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        self
    """,
    "pure_or_gaussian_delta": """
        delta : float, default=1e-6
            Failure probability of the guarantee. 0 gives pure differential privacy
            with Laplace noise. A positive ``delta`` gives Gaussian noise.
    """,
    "row_bounds": """
        bounds : pair of float or array-like, or dict, default=None
            Public lower and upper bounds of the columns, in the units of the columns.
            Rows are clipped to them. A dict gives pairs for some of the columns, by
            name. Bounds that you do not give are estimated privately, for at most a
            fifth of the privacy budget. Clusterings spend about a tenth of it on
            narrower bounds within the ones that you give, if there are enough rows.
            Generous bounds of one column then do not decide which rows are close to
            each other. Rows far outside the bounds that were found are left out if they
            are no cluster, which costs a fiftieth (with Laplace noise, a twenty-fifth).
    """,
    "bounds_of_rows": """
        bounds_ : tuple of two ndarray of shape (n_features,)
            Lower and upper bounds to which rows were clipped, given or estimated.
        clipped_share_ : float
            Private estimate of the share of rows outside of these bounds.
        units_ : ndarray of shape (n_features,)
            Length of each column that counts as one: half the width of an interval that
            contains ``bounds_``, the private unit of a clustering, or the side of a cell.
    """,
    "logarithms_of_columns": """
        logarithms_ : ndarray of shape (n_features,)
            Private scale ``s`` of each column that counts by its logarithm,
            ``sign(x) log2(1 + |x| / s)``; zero for the other columns. Points and their
            noise are in the units of the table. Lengths and covariances of such a column
            (``units_``, ``covariances_``) are those of its logarithm.
    """,
    "row_adjacency": """
        adjacency : {"add-remove", "replace-one"}, default="add-remove"
            Which tables count as neighbours. ``"add-remove"`` (unbounded): one row is
            added or removed, and the number of rows is private. ``"replace-one"``
            (bounded): one row is replaced, and the number of rows is public.
    """,
    "row_groups": """
        groups : str, default=None
            Name of the column of a data frame that identifies the person of each row,
            by a number, a string or a UUID. The column is not used as a feature. The
            guarantee then protects all rows of one person together, which have the
            same weight as those of any other person. None: the guarantee protects one
            row, unless you pass ``groups`` to ``fit``.
        unit : str, default="one row"
            Name of the privacy unit in guarantees, such as ``"one cloud"``. It has no
            effect on the noise.
    """,
    "column_units": """
        units : {"columns", "bounds"} or array-like of shape (n_features,), default="columns"
            How distances measure the columns. ``"columns"``: by private intervals and
            correlations, so that columns that have no part in the clusters, such as
            flags, do not decide, and columns of one sign over decades, such as amounts,
            by their logarithms (``logarithms_``). ``"bounds"``: by the widths of
            ``bounds``; equal widths mean one unit. An array contains public lengths that
            count as one.
    """,
    "groups_of_fit": """
        groups : array-like of shape (n_samples,), default=None
            Identifier of the person of each row, a number, string or UUID, if no column
            of ``X`` holds it. The guarantee then protects all rows of one person
            together.
    """,
    "privacy_of_groups": """
        With ``groups``, read "one row" as "all rows of one person".
    """,
    "cluster_covariances": """
        covariance_share : float, default=0.0
            Share of the privacy budget that is spent on the covariances of the
            clusters, which :class:`MorseMerging` needs. Shares from 0.25 to 0.75 work
            about equally well. Clusters whose size is hardly above the noise are then
            dropped. 0 releases no covariances.
    """,
    "fit_accountant_and_random_state": """
        accountant : PrivacyAccountant, default=None
            Privacy budget from which each fit spends. None uses the accountant of the
            surrounding ``with`` block. Without such a block, losses are not counted.
        random_state : int, RandomState instance, Generator or None, default=None
            Source of the noise. None draws from the operating system's entropy. A
            seed is for tests and study only, because the noise can be undone with it.
    """,
    "cluster_weights_and_covariances": """
        weights_ : ndarray of shape (n_clusters,)
            Private shares of the rows in each cluster.
        weights_noise_ : ndarray of shape (n_clusters,)
            Standard deviations of the privacy noise in ``weights_``.
        cluster_centers_noise_ : ndarray of shape (n_clusters, n_features)
            Standard deviations of the privacy noise in ``cluster_centers_``, in the
            units of the columns.
        within_noise_ : ndarray of bool, of shape (n_clusters,)
            Marks clusters whose number of rows is below three standard deviations of
            its noise. Such a cluster may have no rows.
        covariances_ : ndarray of shape (n_clusters, n_features, n_features)
            Private covariances. Present if ``covariance_share`` is positive.
    """,
    "noise_of_clusters": """
        .. rubric:: How far to trust it

        The attributes that end in ``_noise_`` are computed from the public noise
        scales and the released counts. They cost no privacy budget. They describe the
        noise of the last step, given all steps before it, to first order. They do not
        account for clipped rows, for other results of the earlier steps, or for
        :doc:`sampling </guide/sampling_error>`.
    """,
    "fit_guarantee_and_columns": """
        privacy_guarantee_ : PrivacyGuarantee
            Guarantee of the fit.
        n_features_in_ : int
            Number of columns.
        feature_names_in_ : ndarray of shape (`n_features_in_`,)
            Names of the columns. Defined only if the columns have names.
    """,
    "columns": """
        n_features_in_ : int
            Number of columns.
        feature_names_in_ : ndarray of shape (`n_features_in_`,)
            Names of the columns. Defined only if the columns have names.
    """,
    "fit_rows_or_parts": """
        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Dask collection
            The rows. A Dask array, a Dask data frame or a list of delayed tables is
            not gathered: :meth:`fit_chunks` explains how its parts are counted where
            they are.
        y : Ignored
            Not used, present for API consistency.
        groups : array-like of shape (n_samples,), default=None
            Identifier of the person of each row, a number, string or UUID, if no column
            of ``X`` holds it. The guarantee then protects all rows of one person
            together.

        Returns
        -------
        self
    """,
    "chunks_of_rows": """
        Parameters
        ----------
        chunks : iterable of array-like, callable, Dask collection, or object with ``map_reduce``
            Tables of shape (n_rows, n_features). They are read once for validation,
            and once for each step. All passes must see the same rows, in any order
            and in any division into parts. If they do not, the fit ends with a
            ValueError, and what was spent stays spent.

            A stream is a list, an object with ``__iter__``, or a function that
            returns a new iterator.

            Parts on other machines are a Dask array or data frame, a list of
            delayed tables, or an object with a method ``map_reduce(function)``. That
            method returns the sum, by ``+``, of ``function(part)`` over the parts of
            a table, in any order. Such functions hold only released values and public
            parameters. They draw no noise and spend nothing, so a part that is lost
            can be counted again: the calling process draws the noise once and pays
            once. The sums that they return are exact and *not* private. You must
            trust the machines that compute them.
    """,
    # Released measures.
    "sampled_rows": """
        Parameters
        ----------
        n_samples : int, default=None
            Number of rows to draw. None: ``n_samples_``.
        random_state : int, RandomState instance or None, default=None
            Seed of the draw.

        Returns
        -------
        array or data frame of shape (n_samples, n_features)
            A table of the same kind as that of ``fit``, with the same names and types.
    """,
    "confidence_and_bound": """
        Parameters
        ----------
        confidence : float, default=0.95
            Probability with which the bound holds, between 0 and 1. Bounds of one
            release at several levels do not hold all at once with this probability.

        Returns
        -------
        float
            At most 1, which says nothing about the release.
    """,
    "refused_or_not_paid": """
        Raises
        ------
        PrivacyBudgetExceeded
            If the budget of the accountant does not cover the fit. Nothing is spent.
    """,
    "one_number_for_each_row": """
        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Dask collection
            Rows with the same columns as in ``fit``.

        Returns
        -------
        ndarray of shape (n_samples,)
            One number for each row. For a Dask collection, the result is a Dask
            collection that is not computed yet.
    """,
    # Mixtures, and their components merged into clusters.
    "gaussian_delta": """
        delta : float, default=1e-6
            Probability with which the bound ``epsilon`` may fail. It must be positive,
            since the noise is Gaussian, and should be far below one over the number of
            rows.
    """,
    "mixture_fit": """
        covariance_type : {"auto", "full", "tied", "diag", "spherical"}, default="auto"
            Shape of the covariances. Fewer numbers take less noise.

            - ``"full"``: each component has a covariance matrix of its own.
            - ``"tied"``: all components share one covariance matrix.
            - ``"diag"``: each component has one variance for each column.
            - ``"spherical"``: each component has a single variance. All columns are
              then divided by one number, the largest width of the bounds.
            - ``"auto"``: begins with full covariances, and replaces them by a tied
              one if their differences turn out to be noise.
    """,
    "merging": """
        merge_threshold : float, default=None
            Merge modes across all saddles up to this height, in nats above the highest
            mode. It excludes ``n_clusters``.
        min_cluster_weight : float, default=0.0
            Least share of the mixture's weight that a cluster should have, in [0, 1).
            Lighter clusters are merged first. It helps if there are at least three
            times as many components as clusters, and no small clusters to be found.
    """,
    "mixture_covariances": """
        weights_ : ndarray of shape (n_kept,)
            Private weights of the components that were kept.
        means_ : ndarray of shape (n_kept, n_features)
            Private means of these components.
        covariances_ : ndarray
            Private covariances. Their shape depends on ``covariance_type``, as in
            scikit-learn: (n_kept, n_features, n_features) for ``"full"`` and
            ``"auto"``, (n_features, n_features) for ``"tied"``, (n_kept, n_features)
            for ``"diag"``, and (n_kept,) for ``"spherical"``.
    """,
    "landmark_components": """
        weights_ : ndarray of shape (n_kept,)
            Private weights of the components that were kept.
        means_ : ndarray of shape (n_kept, n_features)
            Private means of these components.
        covariances_ : ndarray of shape (n_kept, n_features, n_features)
            Private covariances of these components.
    """,
    "noise_of_components": """
        weights_noise_ : ndarray of shape (n_kept,)
            Standard deviations of the privacy noise in ``weights_``.
        means_noise_ : ndarray of shape (n_kept, n_features)
            Standard deviations of the privacy noise in ``means_``, in the units of the
            columns.
        within_noise_ : ndarray of bool, of shape (n_kept,)
            Marks components whose number of rows is at most three standard deviations
            of its noise. Such components are dropped, unless all components are of
            this kind. In that case the whole mixture may be noise.
    """,
    "merge_tree": """
        modes_ : ndarray of shape (n_modes, n_features)
            Modes of the density, the highest first.
        saddles_ : ndarray of shape (n_modes - 1, n_features)
            Saddles of the merge tree, the lowest first.
        linkage_ : ndarray of shape (n_modes - 1, 4)
            The merge tree in SciPy's format. Its distances are the heights of the
            saddles above the highest mode, in nats.
        mode_labels_ : ndarray of shape (n_modes,)
            Cluster of each mode.
    """,
    # Functions of clouds on grids.
    "grid_of_clouds": """
        bounds : tuple (low, high) or PrivateBounds, default=None
            Public bounding box, in the units of the data: two numbers, or two arrays with one
            number per coordinate. Points outside are clipped to it.

            A :class:`~sklearn_dptda.preprocessing.PrivateBounds` is fitted to the clouds in
            ``fit`` and spends its own privacy budget. The guarantee of private diagrams
            includes it.

            None computes the box from the data and warns, because the result is then not
            private.
        resolution : int or tuple of int, default=None
            Number of grid nodes along each axis. None uses 1001, 101, 41 or 17 in dimensions
            1 to 4. It does not affect privacy.
    """,
    "refinement": """
        refinement : int, default=None
            Number of lattice steps per grid step. None uses 4, 2, 1, 1 in dimensions 1 to 4,
            and more until the error of the lattice is below the sensitivity, as long as the
            computation takes at most about three seconds, or six with ``groups``. A histogram of
            points has the lattice of the first numbers.
    """,
    "people_memory_and_jobs": """
        groups : str or bool, default=None
            Defines the people, if one person can have several points. Pass the name of the
            column of ids if each cloud is a data frame, or True if each cloud is a list of
            arrays with one array per person. Each person then has the same mass, spread evenly
            over their points, and the privacy unit is all points of one person, whatever their
            number. None: the privacy unit is one point.
        memory : float, default=256.0
            Upper bound of the working memory for each cloud, in MiB.
        n_jobs : int, default=None
            Number of clouds that joblib processes in parallel. None means 1 unless in a
            :func:`joblib.parallel_config` context; -1 uses all processors.
    """,
    # Graphs.
    "missing_values": """
        missing : bool or list, default=False
            Whether values may be missing: None or NaN, in all columns, or in those of this list.
            The share of missing values is then released within the same budget, and columns of
            integers count as numbers, because their type may only tell that no value is missing.
            Otherwise, missing values are refused.
    """,
    "share_of_missing_values": """
        missing_share_ : ndarray of shape (n_features,)
            Private share of the rows whose value is missing, for each column.
    """,
    "flip_parameters": """
        nodes : int or array-like of shape (n_nodes,), default=None
            Public number of all nodes, or public list of their names, which are strings or
            integers. The input can then be a list of edges, and the release has the order and
            the names of this list. None requires a graph, whose nodes must be public.
        directed : bool, default=False
            Whether edges have a direction. Each direction is then a pair of its own.
        drop_self_loops : bool, default=False
            Whether to leave out edges that join a node with itself. If False, they are refused.
        storage : {"auto", "sparse", "packed"}, default="auto"
            Format of the noisy graph: a sparse matrix (:class:`NoisyAdjacency`), or an operator
            that stores eight pairs in a byte (:class:`PackedAdjacency`). ``"auto"`` chooses
            ``"packed"`` if there are at least 2000 nodes and the probability of a flip exceeds
            1/40, because a sparse matrix would then be larger.
        accountant : PrivacyAccountant, default=None
            Accountant whose budget is charged with ``epsilon`` for each release. None uses the
            accountant of the surrounding ``with`` block, if any.
        random_state : int, RandomState instance, Generator or None, default=None
            Source of the flips. None draws from the operating system's entropy. For a real
            release, leave it None: anyone who knows the seed can undo the flips.
    """,
    "flip_attributes": """
        flip_probability_ : float
            Public probability of a flip. It is stored with the release, so that an embedding can
            remove the bias.
        privacy_guarantee_ : PrivacyGuarantee
            The guarantee of each release.
        nodes_ : ndarray of shape (n_nodes,) or None
            Public names of the nodes; None if ``nodes`` is not a list of names.
        n_features_in_ : int
            Number of nodes.
    """,
}
