"""Base class of the estimators that turn point clouds into functions, and how they read clouds.

Within a block of :func:`reuse_functions`, functions are computed once and used again.

Proof: doc/theory/people.md, "Clouds of people".
"""

import copy
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._typing import Bounds, FloatArray
from sklearn_dptda.filtration._cloud import Cloud, LatticeHistogram, is_one_cloud
from sklearn_dptda.filtration._filtration import POINT, Filtration
from sklearn_dptda.filtration._place_histogram import PlaceHistogram
from sklearn_dptda.filtration._released_cloud import ReleasedCloud
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import NoiseWarning, PrivacyGuarantee
from sklearn_dptda.privacy._asking import ask_before
from sklearn_dptda.privacy._guarantee import all_of_one_person
from sklearn_dptda.privacy._parameters import QuotedParametersMixin, quoted
from sklearn_dptda.privacy._release import digest_of
from sklearn_dptda.privacy._warnings import running_search, warn_caller, warn_of_time
from sklearn_dptda.utils._bounds import bounds_from_data, check_bounds
from sklearn_dptda.utils._frames import column_names
from sklearn_dptda.utils._people import warn_of_ids
from sklearn_dptda.utils._sklearn import Interval, ListInputMixin, ListOutputMixin
from sklearn_dptda.utils._tasks import parts_elsewhere, run
from sklearn_dptda.utils._validation import check_collection, first_places, without_quotes

# The estimators warn if one person can change a value by more than this share of the upper bound.
_HANDFUL = 0.1

# The internal forms of a point cloud.
AnyCloud: TypeAlias = Cloud | LatticeHistogram | PlaceHistogram | ReleasedCloud


class CloudInput:
    """Mixin of the estimators that read point clouds, possibly of people, in a public or found box.

    They have the parameters ``groups`` and, those with boxes, ``bounds``.
    """

    # For type checkers: parameters and an attribute that all subclasses have.
    groups: str | bool | None
    bounds: Bounds | PrivateBounds | None
    clipped_share_: float

    def _check(self, X: Iterable[Any], n_features: int | None = None) -> list[AnyCloud]:
        clouds: list[AnyCloud] = []
        # With a column of ids, each cloud is one data frame; a list of arrays is one cloud.
        for i, given in enumerate(check_collection(X)):
            cloud = self._read(given, f"X[{i}]", n_features)
            n_features = cloud.n_features
            clouds.append(cloud)
        return clouds

    def _check_to_fit(self, X: Iterable[Any]) -> tuple[list[AnyCloud], list[AnyCloud]]:
        """Return all clouds, and each distinct object once, so that repeated points count once."""
        items = check_collection(X)
        clouds = self._check(items)
        if not self.groups:
            warn_of_ids(column_names(items[0]))
        return clouds, [clouds[i] for i in sorted(set(first_places(items)))]

    def _read(self, cloud: Any, name: str, n_features: int | None) -> AnyCloud:
        """Read one cloud, or a histogram or a released cloud in place of one."""
        if not isinstance(cloud, LatticeHistogram | PlaceHistogram | ReleasedCloud):
            return Cloud.read_whole(cloud, self.groups, name, n_features)
        if isinstance(cloud, ReleasedCloud):
            if self.groups:
                raise ValueError(
                    f"{name} is a released cloud, which has no records any more. Leave groups out."
                )
        elif cloud.of_people != bool(self.groups):
            raise ValueError(
                f"{name} is a histogram that does not match groups: the records are people with "
                "groups, and points without. Create it with make_histogram() of this estimator."
            )
        if n_features not in (None, cloud.n_features):
            raise ValueError(
                f"{name} has {cloud.n_features} features, but {n_features} are expected."
            )
        if cloud.n_points < 2:
            raise ValueError(f"{name} has fewer than 2 {'people' if self.groups else 'points'}.")
        return cloud

    def _unit(self, n_clouds: int) -> str:
        """Describe the privacy unit, for the guarantees of releases."""
        if not self.groups:
            return POINT
        return all_of_one_person("point", self.groups, " in one cloud" * (n_clouds > 1))

    def _counted(self, X: Any, count: Callable[..., Any], empty: Any) -> Any:
        """Return a histogram of a cloud or its parts, counted where they are; empty without X."""
        if (parts := parts_elsewhere(X)) is not None:
            with without_quotes("a part of the cloud"):
                return parts.map_reduce(count)
        histogram = empty
        if X is not None:
            for part in [X] if is_one_cloud(X, self.groups) else X:
                histogram = count(part, histogram)
        return histogram

    def _box(
        self, clouds: list[AnyCloud], n_features: int, unit: str
    ) -> tuple[FloatArray, FloatArray, PrivacyGuarantee | None, list[str]]:
        """Return lower and upper bounds, the guarantee of a private box, and warnings to issue.

        Proof: doc/theory/private_bounds.md, "Composition".
        """
        finder = self._paid_first()
        if self.bounds is not None and finder is None:
            return *check_bounds(self.bounds, n_features), None, []
        if finder is None and (released := _released(clouds)):
            lows, highs = zip(*((cloud.low, cloud.high) for cloud in released), strict=True)
            return np.min(lows, axis=0), np.max(highs, axis=0), None, []
        in_memory = [cloud for cloud in clouds if isinstance(cloud, Cloud)]
        if len(in_memory) < len(clouds):
            raise ValueError(
                "bounds must be numbers if histograms or released clouds replace point clouds."
            )
        points = [cloud.points for cloud in in_memory]
        if finder is None:
            return *bounds_from_data(points, type(self).__name__), None, []
        adjacency = getattr(self, "adjacency", "replace-one")
        if finder.adjacency != adjacency:
            raise ValueError(
                f"bounds must have adjacency={adjacency!r}, as {type(self).__name__} has."
            )
        box = clone(finder)
        ids = [cloud.ids for cloud in in_memory] if self.groups else None
        remarks = box._fit_clouds(points, ids, unit)
        self.clipped_share_ = box.clipped_share_
        return *box.bounds_, box.privacy_guarantee_, remarks

    def _paid_first(self) -> Any:
        """Return the private estimator that ``fit`` fits, or None."""
        return self.bounds if isinstance(self.bounds, PrivateBounds) else None

    def _releases_of_box(
        self, method: str, n_features: int | None
    ) -> list[tuple[Any, PrivacyGuarantee]]:
        """Return the releases that ``fit`` makes of the box, as private estimators list theirs."""
        first = self._paid_first()
        if first is None:
            return []
        return [
            (payer, replace(guarantee, unit=self._unit(1)))
            for payer, guarantee in first._releases_ahead(method, n_features)
        ]


def _released(clouds: Sequence[AnyCloud]) -> list[ReleasedCloud]:
    """Return the clouds if all of them are released ones, and no cloud otherwise."""
    released = [cloud for cloud in clouds if isinstance(cloud, ReleasedCloud)]
    return released if len(released) == len(clouds) else []


class BaseFiltration(
    CloudInput,
    ListInputMixin,
    ListOutputMixin,
    QuotedParametersMixin,
    TransformerMixin,
    BaseEstimator,
):
    """Base of the estimators that compute one :class:`Filtration` for each point cloud.

    A subclass decides in ``fit`` where its function is evaluated, and evaluates it in ``_one``.
    """

    _parameter_constraints = {
        "groups": [str, bool, None],
        "memory": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
    }
    # For type checkers: parameters that all subclasses have.
    memory: float
    n_jobs: int | None

    def transform(self, X: Iterable[ArrayLike | LatticeHistogram]) -> list[Filtration]:
        """Compute the filtration of each point cloud.

        Parameters
        ----------
        X : list of array-like of shape (n_i, d), or array-like of shape (n_clouds, n, d)
            The point clouds, in the form that :meth:`fit` accepts. Points outside the
            bounds are clipped to them.

        Returns
        -------
        list of Filtration
            One for each cloud, in the same order, and the same one for each occurrence of one
            object in ``X``. They are exact statistics, *not* private.
        """
        check_is_fitted(self)
        items = check_collection(X)
        clouds = self._check(items, self.n_features_in_)
        ask_before(self, "statistic")
        unit, firsts = self._unit(len(items)), first_places(items)
        distinct, kept = sorted(set(firsts)), _kept_functions()
        self._warn_of_time([clouds[i] for i in distinct])
        filtrations = run(
            partial(_computed_once, self._one, self, kept),
            [(clouds[i], unit) for i in distinct],
            n_jobs=self.n_jobs,
            # Processes would not share what is kept.
            prefer=None if kept is None else "threads",
        )
        if self.groups and any(f.sensitivity > _HANDFUL * f.upper for f in filtrations):
            warn_caller(
                "One person can change the function by more than a tenth of its upper bound: there "
                "are too few people for a useful release. Raise m, or use more people.",
                NoiseWarning,
            )
        # Repeated clouds give one object, so that a release detects that the records are the same.
        of_cloud = dict(zip(distinct, filtrations, strict=True))
        return [of_cloud[i] for i in firsts]

    def _one(self, cloud: AnyCloud, unit: str) -> Filtration:
        """Compute the filtration of one cloud whose records are described by ``unit``."""
        raise NotImplementedError

    def _warn_of_time(self, clouds: list[AnyCloud]) -> None:
        seconds = sum(map(self._seconds_ahead, clouds)) / effective_n_jobs(self.n_jobs)
        warn_of_time(seconds, self._faster())

    def _seconds_ahead(self, cloud: AnyCloud) -> float:
        """Estimate the time for one cloud from its public numbers."""
        raise NotImplementedError

    def _faster(self) -> str:
        """Say what makes the computation faster."""
        raise NotImplementedError


class _KeptFunctions:
    """Functions by the digest of everything that decides about them, the latest ones last."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self._bytes = max_bytes, 0
        self._kept: OrderedDict[bytes, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        # A worker process keeps nothing.
        return type(None), ()

    def get(self, key: bytes) -> Any:
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def put(self, key: bytes, function: Any, size: int) -> None:
        with self._lock:
            if key in self._kept or size > self._max_bytes:
                return
            self._kept[key] = function, size
            self._bytes += size
            while self._bytes > self._max_bytes:
                _, (_, dropped) = self._kept.popitem(last=False)
                self._bytes -= dropped


_SHELVES: list[_KeptFunctions] = []
# Functions of searches that are running, and how many bytes each of them keeps.
_OF_SEARCHES: WeakKeyDictionary[Any, _KeptFunctions] = WeakKeyDictionary()
_BYTES_OF_SEARCH = 1 << 28


@contextmanager
def reuse_functions(max_bytes: int = 1 << 30) -> Iterator[None]:
    """Compute the function of a cloud once for all fits of a block.

    Within this block, ``transform`` of a filtration looks up the functions that it has
    computed before, for equal points and equal parameters. The results are the same. A search of
    scikit-learn without workers does so by itself, with up to 256 MiB, and so does
    :class:`~sklearn_dptda.model_selection.PrivateSearchCV`.

    Parameters
    ----------
    max_bytes : int, default=2**30
        Memory for functions. Beyond it, those used least recently are computed again.

    Notes
    -----
    .. rubric:: Privacy

    The functions are exact and *not* private. They stay in the memory of this
    process until the end of the block, and are never pickled or written to a file.
    Releases, payments and guarantees do not change: equal clouds of two people remain
    two records. Worker processes do not share the block: use ``n_jobs=None`` or
    joblib's backend ``"threading"`` for the search. A filtration with ``n_jobs`` uses
    threads within the block.

    Examples
    --------
    >>> from sklearn_dptda import DTMFiltration
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> from sklearn_dptda.filtration import reuse_functions
    >>> clouds = [make_two_circles(500, random_state=seed) for seed in range(4)]
    >>> with reuse_functions():
    ...     first = DTMFiltration(m=0.2, bounds=(-3, 3.5)).fit_transform(clouds)
    ...     again = DTMFiltration(m=0.2, bounds=(-3, 3.5)).fit_transform(clouds)
    >>> bool((first[0].values == again[0].values).all()), first[0] is again[0]
    (True, False)
    """
    if not max_bytes > 0:
        raise ValueError(f"max_bytes must be positive; got {quoted(max_bytes)}.")
    shelf = _KeptFunctions(max_bytes)
    _SHELVES.append(shelf)
    try:
        yield
    finally:
        _SHELVES.remove(shelf)


def _kept_functions() -> _KeptFunctions | None:
    """Return the functions of the surrounding block or search, or None without one."""
    if _SHELVES:
        return _SHELVES[-1]
    search = running_search()
    if search is None:
        return None
    return _OF_SEARCHES.setdefault(search, _KeptFunctions(_BYTES_OF_SEARCH))


def _computed_once(
    compute: Callable[..., Any],
    estimator: Any,
    kept: _KeptFunctions | None,
    cloud: Any,
    unit: str,
) -> Any:
    """Return ``compute(cloud, unit)``, or an equal object if it was computed before.

    Equal clouds of two people must not become one object, since releases tell records by objects.
    """
    if kept is None:
        return compute(cloud, unit)
    try:
        key = digest_of((estimator, cloud, unit))
    except ValueError:
        # What has no description, such as a weight of your own, is computed each time.
        return compute(cloud, unit)
    function = kept.get(key)
    if function is None:
        function = compute(cloud, unit)
        kept.put(key, function, _size(function))
    # Arrays of a filtration cannot be written to, so that copies may share them.
    return copy.copy(function)


def _size(value: Any) -> int:
    """Bytes of the arrays that an object holds."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, list | tuple):
        return sum(map(_size, value))
    return sum(map(_size, vars(value).values())) if hasattr(value, "__dict__") else 0
