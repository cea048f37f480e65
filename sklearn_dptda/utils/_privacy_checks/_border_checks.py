"""Checks of what enters the draws of a release, and of what these draws cost.

Draws are replayed: a release is made from one data set, and computed again from a neighbour with
the same results of all draws. What enters the later draws is then comparable, too.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from threading import get_ident
from typing import Any
from unittest import mock

import numpy as np
from sklearn.base import clone

from sklearn_dptda.privacy import NoiseSource, PrivacyGuarantee, pure_rho
from sklearn_dptda.privacy._border import Crossing, Law, watched_border
from sklearn_dptda.privacy._release import release
from sklearn_dptda.utils._privacy_checks._check_inputs import CheckData

# Allowance for the rounding of statistics in floating point.
_ROUNDING = 1e-9
# Methods that draw.
_DRAWS = ("below", "words", "discrete_laplace", "discrete_gaussian", "shuffle", "generator")


class _Consumed(list[Any]):
    """What an iterator has yielded."""


@dataclass
class Transcript:
    """The draws of a release, and how far their statistics move when they are replayed."""

    crossings: list[Crossing] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)
    # Distances of the statistics, in units of the declared sensitivities.
    moves: list[float] = field(default_factory=list)
    replayed: bool = False
    inside: bool = False

    def __call__(self, crossing: Crossing, draw: Callable[[Any], Any]) -> Any:
        """Make one draw, or return its earlier result."""
        if not self.replayed:
            self.crossings.append(_frozen(crossing))
            self.inside = True
            result = draw(crossing.statistic)
            self.results.append(_Consumed(result) if isinstance(result, Iterator) else result)
            self.inside = False
        else:
            place = len(self.moves)
            assert place < len(self.crossings), "neighbours differ in the number of draws."
            first = self.crossings[place]
            assert (first.sensitivity, first.rate) == (crossing.sensitivity, crossing.rate), (
                "the declared sensitivity or the rate of a draw depends on the records: "
                f"{first.sensitivity}, {first.rate} and {crossing.sensitivity}, {crossing.rate}."
            )
            self.moves.append(first.moved(crossing.statistic))
        result = self.results[len(self.moves) - 1 if self.replayed else -1]
        # The caller of a draw may consume or change its result.
        return iter(result) if isinstance(result, _Consumed) else copy.deepcopy(result)

    def replay(self, compute: Callable[[], Any]) -> list[float]:
        """Compute again, with the same results of all draws; return how far statistics moved."""
        self.replayed, self.moves = True, []
        with watched_border(self):
            compute()
        assert len(self.moves) == len(self.crossings), "neighbours differ in the number of draws."
        return self.moves

    def losses(self) -> tuple[float, float]:
        """Privacy loss between the two data sets: an epsilon, and zCDP."""
        pairs = zip(self.crossings, self.moves, strict=True)
        return composed([(c.loss * m, c.law) for c, m in pairs])

    def declared(self) -> tuple[float, float]:
        """The same loss if all statistics that moved had moved as far as declared."""
        pairs = zip(self.crossings, self.moves, strict=True)
        return composed([(c.loss, c.law) for c, m in pairs if m > 0])


def composed(losses: list[tuple[float, Law]]) -> tuple[float, float]:
    """Sum of the losses of draws as an epsilon, infinite for Gaussian noise, and as zCDP."""
    epsilon = sum(np.inf if law == "gaussian" and loss else loss for loss, law in losses)
    rho = {"gaussian": lambda mu: mu**2 / 2, "range": lambda e: e**2 / 8, "pure": pure_rho}
    return epsilon, sum(rho[law](loss) for loss, law in losses)


def recorded(compute: Callable[[], Any]) -> Transcript:
    """Draws of a computation, each of which must be made at the border."""
    transcript, here = Transcript(), get_ident()
    with ExitStack() as stack:
        for name in _DRAWS:
            honest = getattr(NoiseSource, name)

            def watched(self: Any, *args: Any, honest: Any = honest, **kwargs: Any) -> Any:
                # Other threads make their releases as ever.
                if get_ident() != here:
                    return honest(self, *args, **kwargs)
                assert transcript.inside, (
                    "noise is drawn for a statistic that is not known. Pass the statistic and the "
                    "draw to NoiseSource.cross."
                )
                if honest.__name__.startswith("discrete"):
                    _check_noise(transcript.crossings[-1], honest.__name__, *args, **kwargs)
                return honest(self, *args, **kwargs)

            stack.enter_context(mock.patch.object(NoiseSource, name, watched))
        stack.enter_context(watched_border(transcript))
        compute()
    return transcript


def _check_noise(crossing: Crossing, drawn: str, scale: float, size: Any) -> None:
    """Refuse noise of another law, or of a smaller scale, than what the crossing declares."""
    if callable(crossing.metric):
        return
    assert (drawn == "discrete_gaussian") == (crossing.law == "gaussian"), (
        f"{drawn} noise is drawn, but the declared law is {crossing.law!r}."
    )
    needed = 1 / (crossing.rate * max(crossing.weights, default=1.0))
    assert scale >= needed * (1 - _ROUNDING), (
        f"noise of scale {scale:g} is drawn, but the declared rate needs {needed:g}."
    )


def recorded_release(
    estimator: Any, data: Any, compute: Callable[[Any, Any], Any] = release
) -> tuple[Transcript, PrivacyGuarantee]:
    """Draws of a release of a seeded estimator from an input, and the guarantee."""
    estimator = clone(estimator)
    # Public choices of a replay, such as the first centres, must be the same.
    assert estimator.get_params()["random_state"] is not None
    transcript = recorded(lambda: compute(estimator, data))
    return transcript, estimator.privacy_guarantee_


def replayed(
    estimator: Any, first: Any, second: Any, compute: Callable[[Any, Any], Any] = release
) -> tuple[Transcript, PrivacyGuarantee]:
    """Draws of a release from one input, replayed for another, and the guarantee."""
    if estimator.get_params()["random_state"] is None:
        estimator = clone(estimator).set_params(random_state=0)
    transcript, guarantee = recorded_release(estimator, first, compute)
    transcript.replay(lambda: compute(clone(estimator), second))
    return transcript, guarantee


def within_promise(losses: tuple[float, float], guarantee: PrivacyGuarantee) -> bool:
    """Whether a composed loss is at most what a guarantee promises.

    An epsilon without delta bounds the epsilon; with delta, the zCDP is compared.
    """
    epsilon, rho = losses
    if guarantee.delta == 0:
        return bool(epsilon <= guarantee.epsilon * (1 + _ROUNDING))
    assert guarantee.rho is not None, "a guarantee with delta must state its zCDP."
    return bool(rho <= guarantee.rho * (1 + _ROUNDING))


def _frozen(crossing: Crossing) -> Crossing:
    return replace(crossing, statistic=_copied(crossing.statistic))


def _copied(value: Any) -> Any:
    """Copy arrays, also in a tuple; callers may change them."""
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(map(_copied, value))
    return value.copy() if isinstance(value, np.ndarray) else value


def check_statistics_move_within_the_sensitivity(estimator: Any, data: CheckData) -> None:
    """One record moves statistics, and none beyond its declared sensitivity."""
    furthest = 0.0
    for pair in data.neighbours:
        transcript, _ = replayed(estimator, pair.first, pair.second)
        for crossing, move in zip(transcript.crossings, transcript.moves, strict=True):
            assert move <= 1 + _ROUNDING, (
                f"{pair.name}: a statistic moves by {move:g} times its declared sensitivity of "
                f"{crossing.sensitivity:g}."
            )
            furthest = max(furthest, move)
    assert furthest > 0, "no pair of neighbours moves a statistic, so there is nothing to compare."


def check_draws_cost_at_most_the_promise(estimator: Any, data: CheckData) -> None:
    """All draws that one record can influence lose together what the guarantee promises."""
    for pair in data.neighbours:
        transcript, guarantee = replayed(estimator, pair.first, pair.second)
        assert within_promise(transcript.declared(), guarantee), (
            f"{pair.name}: the draws lose epsilon={transcript.declared()[0]:g} "
            f"(zCDP {transcript.declared()[1]:g}), more than the guarantee states: {guarantee}"
        )
