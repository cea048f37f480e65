"""Whether two groups of people differ: a private permutation test, in integers.

Proof: doc/theory/populations.md, "A test of two groups".
"""

import math
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array, check_scalar

from sklearn_dptda._typing import Bounds, FloatArray, IntArray, RandomStateLike
from sklearn_dptda.privacy import (
    NoiseSource,
    PrivacyAccountant,
    PrivacyGuarantee,
    default_accountant,
    pure_rho,
)
from sklearn_dptda.privacy._estimator import Paid
from sklearn_dptda.privacy._fixed_point import ROUND_UP
from sklearn_dptda.privacy._noise import public_generator, spawn_seeds
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.rows._assignments import clip_norm, row_products
from sklearn_dptda.utils._bounds import check_bounds
from sklearn_dptda.utils._frames import refuse_lossy, without_quotes
from sklearn_dptda.utils._people import check_ids, codes_of, column_names, split_people

# Frequencies of the random features of each kernel.
_FREQUENCIES = 50
# Features of a person are integers of so many bits; sums over 2**30 people are exact in floats.
_BITS = 22
# Noise of this scale stays within 64 bits, whatever is drawn.
_LARGEST_SCALE = 2.0**56
# Rows whose features are held at once.
_BATCH = 2**14


@dataclass(frozen=True)
class TwoSampleTest:
    """Result of :func:`private_two_sample_test`.

    Parameters
    ----------
    rejected : bool
        Whether the test finds that the groups differ.
    alpha : float
        Level: probability at most of a rejection where they do not differ.
    n_permutations : int
        Number of permutations.
    privacy_guarantee_ : PrivacyGuarantee
        What the decision promises.
    """

    rejected: bool
    alpha: float
    n_permutations: int
    privacy_guarantee_: PrivacyGuarantee

    def __str__(self) -> str:
        found = "The groups differ" if self.rejected else "No difference was found"
        return f"{found}, at the level {self.alpha:g}. {self.privacy_guarantee_}"


def private_two_sample_test(
    X: ArrayLike,
    Y: ArrayLike,
    *,
    bounds: Bounds,
    epsilon: float = 1.0,
    alpha: float = 0.05,
    bandwidths: Sequence[float] = (0.1, 0.2, 0.4, 0.8),
    n_permutations: int = 199,
    groups: str | tuple[ArrayLike, ArrayLike] | None = None,
    unit: str = "one row",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomStateLike = None,
) -> TwoSampleTest:
    """Test privately whether two groups of people have the same law.

    Do patients differ from controls? Each row is one person, such as the
    lifetimes of her cloud. The level is exact for every number of people, and
    whatever differs between the laws is seen with enough of them.

    Parameters
    ----------
    X, Y : array-like of shape (n_people, n_features)
        The rows of both groups. Their numbers of people are public.
    bounds : tuple (low, high)
        Public bounds of the columns, numbers or arrays of shape
        (n_features,). Rows are clipped to them.
    epsilon : float, default=1.0
        Privacy loss; ``inf`` adds no noise.
    alpha : float, default=0.05
        Level of the test.
    bandwidths : sequence of float, default=(0.1, 0.2, 0.4, 0.8)
        Public widths of Gaussian kernels, in units of the sides of the box.
        Differences on each of these scales are seen; fewer widths, near the
        right one, see more.
    n_permutations : int, default=199
        Number of permutations. They cost no privacy. ``alpha`` times one more
        than it must be at least 1.
    groups : str or pair of array-like, default=None
        Whose a row is: the name of a column of ids in both data frames, or the
        ids of the rows of both. All rows of one person weigh one together.
    unit : str, default="one row"
        What a row is, for the guarantee, such as ``"one cloud"``.
    accountant : PrivacyAccountant, default=None
        Charged before the decision is drawn. None takes the accountant of the
        surrounding ``with`` block.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws from the operating system's entropy. A seed is for tests and
        study only: whoever knows it can undo the noise.

    Returns
    -------
    TwoSampleTest
        The decision, which prints as a sentence. There is no p-value: it would
        cost more.

    Raises
    ------
    ValueError
        If a parameter or a table is refused, or if one person is in both
        groups. Nothing is spent.
    PrivacyBudgetExceeded
        If the accountant's budget does not cover the test.

    Notes
    -----
    .. rubric:: Privacy

    The decision is ``epsilon``-differentially private for replacing one row, or
    with ``groups`` all rows of one person. Sizes of groups are public.

    References
    ----------
    I. Kim, A. Schrab, "Differentially private permutation tests: applications
    to kernel methods", 2023, Section 3, for the test; A. Rahimi, B. Recht,
    "Random features for large-scale kernel machines", 2007, for the features.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda.population import private_two_sample_test
    >>> rng = np.random.default_rng(0)
    >>> patients, controls = rng.beta(4, 2, (300, 2)), rng.beta(2, 4, (300, 2))
    >>> test = private_two_sample_test(patients, controls, bounds=(0, 1), random_state=0)
    >>> test.rejected
    True
    """
    kernels = _checked(epsilon, alpha, bandwidths, n_permutations, unit)
    if groups is not None:
        unit = f"all {unit.removeprefix('one ')}s of one person"
        if isinstance(groups, str):
            unit += f", by {groups!r}"
    tables = _tables(X, Y, groups)
    low, high = check_bounds(bounds, tables[0].X.shape[1])
    guarantee = PrivacyGuarantee(
        epsilon=float(epsilon),
        delta=0.0,
        adjacency="replace-one",
        unit=unit,
        mechanism="discrete Laplace mechanism, behind a permutation test",
        released="whether two groups differ",
        seeded=random_state is not None,
        rho=pure_rho(float(epsilon)),
    )
    if not isinstance(accountant, PrivacyAccountant | None):
        raise ValueError(
            f"accountant must be a PrivacyAccountant or None; got {quoted(accountant)}."
        )
    seed, public_seed = spawn_seeds(random_state, 2)
    accountant = accountant if accountant is not None else default_accountant()
    sizes = [table.n_people for table in tables]
    if _scale(max(sizes), float(epsilon)) > _LARGEST_SCALE:
        raise ValueError(f"epsilon={epsilon:g} is too small for noise in 64 bits.")
    paid = Paid([seed], None if math.isinf(guarantee.epsilon) else accountant, uuid.uuid4().hex)
    if accountant is not None:
        accountant.spend(
            guarantee.epsilon,
            key=paid.key,
            rho=guarantee.rho,
            adjacency=guarantee.adjacency,
            unit=guarantee.unit,
            what=guarantee.released,
            estimator="private_two_sample_test",
            parameters={"alpha": alpha, "bandwidths": kernels, "n_permutations": n_permutations},
        )
    rng = public_generator(public_seed)
    with np.errstate(all="ignore"):
        features = _Features.drawn(kernels, low, high, rng)
        statistics = _statistics([table.sums(features) for table in tables], n_permutations, rng)
    noise = NoiseSource(*paid)
    rejected = _decide(statistics, max(sizes), float(epsilon), float(alpha), noise)
    paid.keep_result({"rejected": rejected})
    return TwoSampleTest(rejected, float(alpha), int(n_permutations), guarantee)


def _checked(
    epsilon: Any, alpha: float, bandwidths: Any, n_permutations: int, unit: Any
) -> tuple[float, ...]:
    """Widths of the kernels; what cannot be computed with is refused."""
    check_scalar(alpha, "alpha", Real, min_val=0, max_val=1, include_boundaries="neither")
    if math.isnan(alpha):
        raise ValueError("alpha must be a number between 0 and 1; got nan.")
    check_scalar(n_permutations, "n_permutations", Integral, min_val=1)
    if not (isinstance(epsilon, Real) and float(epsilon) > 0):
        raise ValueError(f"epsilon must be a positive number, or inf; got {quoted(epsilon)}.")
    if alpha * (n_permutations + 1) < 1:
        raise ValueError(
            f"n_permutations={n_permutations} is too few for alpha={alpha:g}: the test could never "
            f"reject. At least {math.ceil(1 / alpha) - 1} are needed."
        )
    if not isinstance(unit, str):
        raise ValueError(f"unit must be a string; got {quoted(unit)}.")
    widths = tuple(bandwidths) if isinstance(bandwidths, Sequence | np.ndarray) else ()
    sound = widths and all(isinstance(w, Real) and 1e-6 <= float(w) <= 1e6 for w in widths)
    if isinstance(bandwidths, str) or not sound:
        raise ValueError(
            f"bandwidths must be a list of numbers from 1e-06 to 1e+06; got {quoted(bandwidths)}."
        )
    return tuple(map(float, widths))


@dataclass(frozen=True)
class _Group:
    """Rows of one group, and the numbers of the people whose they are."""

    X: FloatArray
    codes: IntArray
    n_people: int

    def sums(self, features: "_Features") -> IntArray:
        """Features of each person: means over her rows, as integers of a bounded norm."""
        rows = np.bincount(self.codes, minlength=self.n_people)
        total = np.zeros((self.n_people, features.width))
        for start in range(0, len(self.X), _BATCH):
            part = slice(start, start + _BATCH)
            np.add.at(total, self.codes[part], features(self.X[part]))
        # Towards zero, which makes no norm larger.
        mean = clip_norm(total / rows[:, None], 1.0)
        steps: IntArray = np.trunc(np.ldexp(mean, _BITS)).astype(np.int64)
        return steps


def _tables(X: Any, Y: Any, groups: Any) -> list[_Group]:
    """Both groups; one person in both is refused."""
    ids: Any = (None, None)
    if groups is not None and not isinstance(groups, str):
        if not isinstance(groups, tuple | list) or len(groups) != 2:
            raise ValueError("groups must be the name of a column, or the ids of X and those of Y.")
        ids = tuple(groups)
    frames: list[Any] = []
    read, people = [], []
    for name, table, given in (("X", X, ids[0]), ("Y", Y, ids[1])):
        whose = None
        refuse_lossy(table, name)
        if groups is not None:
            column = groups if isinstance(groups, str) else None
            table, whose = split_people(table, column, given)
        frames.append(table)
        with without_quotes(name):
            array: FloatArray = check_array(table, dtype=np.float64, input_name=name)
        persons, codes = codes_of(range(len(array)) if whose is None else whose)
        if len(persons) < 2:
            raise ValueError(f"{name} must have at least 2 people.")
        read.append(_Group(array, codes, len(persons)))
        people.append(set(persons) if whose is not None else set())
    check_ids([person for group in people for person in group])
    names = [column_names(table) for table in frames]
    if all(names) and names[0] != names[1]:
        raise ValueError("X and Y must have the same columns, in the same order.")
    if people[0] & people[1]:
        raise ValueError("one person is in both groups: each must be in one of them.")
    if read[0].X.shape[1] != read[1].X.shape[1]:
        raise ValueError(
            f"X has {read[0].X.shape[1]} columns and Y has {read[1].X.shape[1]}: they must be the "
            "same."
        )
    return read


@dataclass(frozen=True)
class _Features:
    """Random features of kernels: cosines and sines, of norm one for each row."""

    low: FloatArray
    high: FloatArray
    frequencies: FloatArray

    @classmethod
    def drawn(
        cls, widths: tuple[float, ...], low: FloatArray, high: FloatArray, rng: np.random.Generator
    ) -> "_Features":
        """Features of the mean of Gaussian kernels of some widths."""
        normal = rng.standard_normal((len(widths), _FREQUENCIES, len(low)))
        return cls(low, high, np.concatenate(normal / np.array(widths)[:, None, None]))

    @property
    def width(self) -> int:
        """Number of features."""
        return 2 * len(self.frequencies)

    def __call__(self, X: FloatArray) -> FloatArray:
        inside = (np.clip(X, self.low, self.high) - self.low) / (self.high - self.low)
        # Not a matrix product, which may round a row otherwise beside other rows.
        angles = np.column_stack([row_products(inside, f) for f in self.frequencies])
        parts = np.hstack([np.cos(angles), np.sin(angles)])
        return parts / len(self.frequencies) ** 0.5


def _statistics(sums: list[IntArray], n_permutations: int, rng: np.random.Generator) -> list[int]:
    """Distances of the means of both groups, and of random groups of their sizes, in integers.

    In units in which one person moves each of them by at most ``2 max(n, m) 2**_BITS``.
    """
    n, m = map(len, sums)
    people = np.vstack(sums)
    members = np.zeros((n_permutations + 1, n + m), dtype=bool)
    members[0, :n] = True
    for row in members[1:]:
        row[rng.permutation(n + m)[:n]] = True
    # Sums of integers below 2**53 are exact in any order.
    of_group = sum(
        members[:, start : start + _BATCH].astype(float) @ people[start : start + _BATCH]
        for start in range(0, n + m, _BATCH)
    )
    # m of_group - n (total - of_group), in integers without a bound.
    apart = np.asarray(of_group).astype(np.int64).astype(object) * (n + m)
    apart = apart - n * people.sum(axis=0).astype(object)
    return [math.isqrt(sum(each * each for each in row)) for row in apart]


def _scale(larger: int, epsilon: float) -> float:
    """Scale of the noise: a statistic, and the one that it is compared with, may both move."""
    return ROUND_UP * 2 * (2 * larger * 2**_BITS) / epsilon


def _decide(
    statistics: list[int], larger: int, epsilon: float, alpha: float, noise: NoiseSource
) -> bool:
    """Whether few of the noisy statistics of permutations reach that of the groups."""
    noisy = np.array(statistics, dtype=object)
    if math.isfinite(epsilon):
        noisy = noisy + noise.discrete_laplace(_scale(larger, epsilon), len(statistics))
    # Ties count against a rejection.
    reached = 1 + int(np.sum(noisy[1:] >= noisy[0]))
    return reached <= alpha * len(statistics)
