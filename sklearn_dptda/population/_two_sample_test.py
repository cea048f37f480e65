"""A private permutation test of whether two groups of people differ, in integers.

Proof: doc/theory/populations.md, "A test of two groups".
"""

import math
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array, check_scalar

from sklearn_dptda._typing import Bounds, FloatArray, IntArray, RandomStateLike
from sklearn_dptda.privacy import (
    NoiseSource,
    PrivacyAccountant,
    PrivacyGuarantee,
    pure_rho,
)
from sklearn_dptda.privacy._default_accountant import default_accountant
from sklearn_dptda.privacy._estimator import Paid
from sklearn_dptda.privacy._fixed_point import ROUND_UP
from sklearn_dptda.privacy._guarantee import all_of_one_person
from sklearn_dptda.privacy._noise import LARGEST_SCALE, public_generator, spawn_seeds
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.rows._assignments import clip_norm, row_products
from sklearn_dptda.utils._bounds import check_bounds
from sklearn_dptda.utils._frames import column_names
from sklearn_dptda.utils._people import check_ids, codes_of, split_people
from sklearn_dptda.utils._validation import refuse_lossy, without_quotes

# Accuracy only: frequencies are public, and a person's features are computed by themselves.
# Number of frequencies of the random features of each kernel.
_FREQUENCIES = 50
# Proof: doc/theory/populations.md, "A test of two groups".
# Features of a person are integers of this number of bits. Sums over 2**30 people are then exact in
# floating-point numbers.
_BITS = 22
# Accuracy only: the number of rows whose features are in memory at a time.
_BATCH = 2**14


@dataclass(frozen=True)
class TwoSampleTest:
    """Result of :func:`private_two_sample_test`.

    Converted to a string, it is a sentence that states the decision and its guarantee.

    Parameters
    ----------
    rejected : bool
        Whether the test concludes that the groups differ.
    alpha : float
        Level of the test: the largest probability of rejection if the groups do not differ.
    n_permutations : int
        Number of permutations of the test.
    privacy_guarantee_ : PrivacyGuarantee
        The guarantee of the decision.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda.population import private_two_sample_test
    >>> X = np.random.default_rng(0).random((200, 2))
    >>> test = private_two_sample_test(X, X**3, bounds=(0, 1), random_state=0)
    >>> print(str(test).partition(".")[0])
    The groups differ, at the level 0
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
    """Test privately whether two groups of people have the same distribution.

    The level is exact for every number of people, and with enough people the test detects
    every difference between the distributions.

    Parameters
    ----------
    X, Y : array-like of shape (n_people, n_features)
        The rows of the two groups. The numbers of people are public.
    bounds : tuple (low, high)
        Public bounds of the columns, in their units: numbers, or arrays of shape
        (n_features,). Rows are clipped to them.
    epsilon : float, default=1.0
        Privacy loss. A smaller ``epsilon`` protects better and detects less. ``inf`` adds no
        noise.
    alpha : float, default=0.05
        Level of the test: the largest probability of rejection if the groups do not differ.
    bandwidths : sequence of float, default=(0.1, 0.2, 0.4, 0.8)
        Public bandwidths of Gaussian kernels, in units of the sides of the box. Fewer of
        them, close to the scale of the differences, make the test more powerful.
    n_permutations : int, default=199
        Number of permutations, which cost no privacy. ``alpha * (n_permutations + 1)`` must
        be at least 1.
    groups : str or pair of array-like, default=None
        Defines the people, if one person can have several rows: the name of a column of ids
        in both data frames, or the ids of the rows of ``X`` and those of ``Y``. All rows of
        one person together then weigh as much as one, and are the privacy unit. None: each
        row is one person.
    unit : str, default="one row"
        Name of a row in the guarantee, such as ``"one cloud"``.
    accountant : PrivacyAccountant, default=None
        Accountant whose budget is charged. None uses the accountant of the surrounding
        ``with`` block, if any.
    random_state : int, RandomState instance, Generator or None, default=None
        Source of the noise and the permutations. None draws from the operating system's
        entropy. For a real release, leave it None, because the noise can be removed with a
        seed.

    Returns
    -------
    TwoSampleTest
        The decision. There is no p-value, because it would cost more privacy.

    Raises
    ------
    PrivacyBudgetExceeded
        If the accountant's budget does not cover the test.

    Notes
    -----
    .. rubric:: Privacy

    The decision is ``epsilon``-differentially private for replacing one row, or with
    ``groups`` all rows of one person. The sizes of the groups are public.

    References
    ----------
    I. Kim, A. Schrab, "Differentially private permutation tests: applications to kernel
    methods", 2023, Section 3; A. Rahimi, B. Recht, "Random features for large-scale kernel
    machines", 2007, for the features.

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
        unit = all_of_one_person(unit, groups)
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
    if _scale(max(sizes), float(epsilon)) > LARGEST_SCALE:
        raise ValueError(f"epsilon={epsilon:g} is too small: its noise does not fit into 64 bits.")
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
    """Check the parameters, and return the bandwidths of the kernels."""
    check_scalar(alpha, "alpha", Real, min_val=0, max_val=1, include_boundaries="neither")
    if math.isnan(alpha):
        raise ValueError("alpha must be a number between 0 and 1; got nan.")
    check_scalar(n_permutations, "n_permutations", Integral, min_val=1)
    if not (isinstance(epsilon, Real) and float(epsilon) > 0):
        raise ValueError(f"epsilon must be a positive number, or inf; got {quoted(epsilon)}.")
    if alpha * (n_permutations + 1) < 1:
        raise ValueError(
            f"n_permutations={n_permutations} is too small for alpha={alpha:g}, because the test "
            f"could never reject. Pass at least {math.ceil(1 / alpha) - 1}."
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
    """Rows of one group, and the index of the person to whom each row belongs."""

    X: FloatArray
    codes: IntArray
    n_people: int

    def sums(self, features: "_Features") -> IntArray:
        """Return the features of each person: means of their rows, as integers of bounded norm."""
        rows = np.bincount(self.codes, minlength=self.n_people)
        total = np.zeros((self.n_people, features.width))
        for start in range(0, len(self.X), _BATCH):
            part = slice(start, start + _BATCH)
            np.add.at(total, self.codes[part], features(self.X[part]))
        # Rounding towards zero increases no norm.
        mean = clip_norm(total / rows[:, None], 1.0)
        steps: IntArray = np.trunc(np.ldexp(mean, _BITS)).astype(np.int64)
        return steps


def _tables(X: Any, Y: Any, groups: Any) -> list[_Group]:
    """Read both groups, and refuse a person who is in both."""
    ids: Any = (None, None)
    if groups is not None and not isinstance(groups, str):
        if not isinstance(groups, tuple | list) or len(groups) != 2:
            raise ValueError(
                "groups must be the name of a column, or a pair of the ids of X and those of Y."
            )
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
        raise ValueError("At least one person is in both X and Y. Each must be in only one group.")
    if read[0].X.shape[1] != read[1].X.shape[1]:
        raise ValueError(
            f"X has {read[0].X.shape[1]} columns, but Y has {read[1].X.shape[1]}. Both must have "
            "the same columns."
        )
    return read


@dataclass(frozen=True)
class _Features:
    """Random features of kernels: cosines and sines, whose norm is one for each row."""

    low: FloatArray
    high: FloatArray
    frequencies: FloatArray

    @classmethod
    def drawn(
        cls, widths: tuple[float, ...], low: FloatArray, high: FloatArray, rng: np.random.Generator
    ) -> "_Features":
        """Draw features of the mean of Gaussian kernels with these bandwidths."""
        normal = rng.standard_normal((len(widths), _FREQUENCIES, len(low)))
        return cls(low, high, np.concatenate(normal / np.array(widths)[:, None, None]))

    @property
    def width(self) -> int:
        """Number of features."""
        return 2 * len(self.frequencies)

    def __call__(self, X: FloatArray) -> FloatArray:
        inside = (np.clip(X, self.low, self.high) - self.low) / (self.high - self.low)
        # A matrix product may round a row differently depending on the other rows.
        angles = row_products(inside[..., None], self.frequencies)
        parts = np.hstack([np.cos(angles), np.sin(angles)])
        return parts / len(self.frequencies) ** 0.5


def _statistics(sums: list[IntArray], n_permutations: int, rng: np.random.Generator) -> list[int]:
    """Compute the distance of the group means, and that of random groups of the same sizes.

    Replacing one person changes each of these integers by at most ``2 max(n, m) 2**_BITS``.
    """
    n, m = map(len, sums)
    people = np.vstack(sums)
    members = np.zeros((n_permutations + 1, n + m), dtype=bool)
    members[0, :n] = True
    for row in members[1:]:
        row[rng.permutation(n + m)[:n]] = True
    # Sums of integers below 2**53 are exact in every order.
    of_group = sum(
        members[:, start : start + _BATCH].astype(float) @ people[start : start + _BATCH]
        for start in range(0, n + m, _BATCH)
    )
    # This is m of_group - n (total - of_group), in unbounded integers if 64 bits are too few.
    exact: Any = np.int64 if 2 * (n + m) ** 2 << _BITS < 2**63 else object
    apart = np.asarray(of_group).astype(np.int64).astype(exact) * (n + m)
    apart -= n * people.sum(axis=0).astype(exact)
    return [math.isqrt(sum(map(mul, row, row))) for row in apart.tolist()]


def _scale(larger: int, epsilon: float) -> float:
    """Return the scale of the noise. The statistic and a permuted one may both change."""
    return ROUND_UP * 2 * (2 * larger * 2**_BITS) / epsilon


def _decide(
    statistics: list[int], larger: int, epsilon: float, alpha: float, noise: NoiseSource
) -> bool:
    """Return whether few of the noisy permuted statistics reach that of the groups."""
    noisy = np.array(statistics, dtype=object)
    if math.isfinite(epsilon):
        scale = _scale(larger, epsilon)
        noisy = noise.cross(
            statistics,
            lambda exact: np.array(exact, dtype=object) + noise.discrete_laplace(scale, len(exact)),
            metric="linf",
            sensitivity=2 * larger * 2**_BITS,
            # The statistic and a permuted one may both change.
            rate=2 / scale,
        )
    # Ties count against rejection.
    reached = 1 + int(np.sum(noisy[1:] >= noisy[0]))
    return reached <= alpha * len(statistics)
