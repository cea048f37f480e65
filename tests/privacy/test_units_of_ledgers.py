"""A ledger of people refuses losses of rows and points, and vice versa, naming both."""

import itertools
import math
import shutil

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from sklearn_dptda import DTMFiltration, PrivatePersistence
from sklearn_dptda.cluster import DPLloyd
from sklearn_dptda.graph import EdgeFlip
from sklearn_dptda.model_selection import planned_loss, release_replicates
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import PrivacyAccountant
from sklearn_dptda.privacy._guarantee import all_of_one_person, kind_of_unit
from tests._refusals import refuses
from tests.privacy._guarantees import guarantee, pay_ahead

BOX = (-1.0, 1.0)
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(90, 2))
FRAME = pd.DataFrame(X, columns=["x", "y"]).assign(patient_id=np.arange(90) // 3)
GRAPH = np.triu(RNG.uniform(size=(20, 20)) < 0.3, 1)


@pytest.fixture
def accountant():
    return PrivacyAccountant(math.inf)


def cloud_pipeline(**options):
    return make_pipeline(
        DTMFiltration(0.3, bounds=BOX, resolution=9, **options), PrivatePersistence(1.0)
    )


def lloyd(accountant, **options):
    return DPLloyd(2, bounds=BOX, adjacency="replace-one", accountant=accountant, **options)


# Privacy units and releases of each. The losses of one list add up.
PEOPLE = {
    "all rows of one person, by 'patient_id'": lambda accountant: lloyd(
        accountant, groups="patient_id"
    ).fit(FRAME),
    "all points of one person, by 'patient_id'": lambda accountant: (
        cloud_pipeline(groups="patient_id")
        .set_params(privatepersistence__accountant=accountant)
        .fit_transform([FRAME])
    ),
    "one person": lambda accountant: lloyd(accountant, unit="one person").fit(X),
}
PARTS = {
    "one row": lambda accountant: lloyd(accountant).fit(X),
    "one point of a cloud": lambda accountant: (
        cloud_pipeline().set_params(privatepersistence__accountant=accountant).fit_transform([X])
    ),
    "one edge, there or not": lambda accountant: EdgeFlip(1.0, accountant=accountant).fit_transform(
        GRAPH | GRAPH.T
    ),
    "one record": lambda accountant: accountant.spend(0.5),
}
CLOUDS = {"one cloud": lambda accountant: lloyd(accountant, unit="one cloud").fit(X)}
KINDS = [PEOPLE, PARTS, CLOUDS]

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.mark.parametrize("kind", KINDS, ids=["people", "parts", "clouds"])
def test_accountant_adds_losses_of_one_kind_of_unit(accountant, kind):
    for release in kind.values():
        release(accountant)
    assert accountant.spends()["unit"].tolist() == list(kind)


@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(KINDS, 2)))
def test_accountant_refuses_losses_of_another_kind_of_unit(accountant, first, second):
    (counted, release), *_ = first.items()
    release(accountant)
    for unit, another in second.items():
        said = refuses("counts losses of", another, accountant)
        assert counted in said and unit in said
    assert len(accountant) == 1


def test_accountant_keeps_its_unit_and_no_limit_in_files_and_servers(ledger_path):
    lloyd(PrivacyAccountant(math.inf, path=ledger_path), unit="one person").fit(X)
    again = PrivacyAccountant.open(ledger_path)
    refuses("counts losses of one person", PARTS["one row"], again)
    assert again.spends()["unit"].tolist() == ["one person"] and again.epsilon == math.inf


def test_check_refuses_two_kinds_of_units_ahead(accountant):
    both = [(guarantee(unit="one row"), 1), (guarantee(unit="all rows of one person"), 1)]
    refuses("counts losses of", accountant.check, both)
    with pytest.raises(ValueError, match="counts losses of"):
        pay_ahead(accountant, [(each, "Something", count) for each, count in both])
    assert len(accountant) == 0
    accountant.spend(1.0, unit="all rows of one person")
    accountant.check(both[1:])
    refuses("counts losses of all rows of one person; a loss of one", accountant.check, both[:1])


def test_accountant_takes_an_own_name_as_an_own_kind_of_unit():
    own = ("one recording", "one pointing device", "all rows of one hospital", "one person-day")
    known = ("one row", "one person", "all rows of one person, by 'id'")
    for unit, other in itertools.product((*own, "one cloud"), known):
        accountant = PrivacyAccountant(9.0)
        accountant.spend(0.1, unit=unit)
        accountant.spend(0.1, unit=unit)
        refuses("counts losses of", accountant.spend, 0.1, unit=other)


@pytest.mark.parametrize("part", ["one row", "one visit, in a hospital", "day of one clinic"])
def test_units_of_people_are_of_people_whatever_their_parts_are_called(part):
    for groups, where in itertools.product(("id", "of one, by", True, None), ("", " in one cloud")):
        assert kind_of_unit(all_of_one_person(part, groups, where)) == "person"


@pytest.mark.parametrize("unit", ["", None, 3])
def test_accountant_refuses_a_unit_without_a_name(unit):
    refuses("unit", PrivacyAccountant(1.0).spend, 0.1, unit=unit)
    refuses("unit", lloyd(None, unit=unit).fit, X, error=(ValueError, TypeError))


def test_planned_loss_knows_people(accountant):
    people = cloud_pipeline(groups="patient_id")
    (release,) = planned_loss(people, [FRAME]).releases
    promised = people.fit([FRAME])[-1].privacy_guarantee_
    assert release.guarantee.unit == promised.unit == "all points of one person, by 'patient_id'"
    assert planned_loss(cloud_pipeline(), [X]).releases[0].guarantee.unit == "one point of a cloud"
    boxed = cloud_pipeline(groups="patient_id").set_params(
        dtmfiltration__bounds=PrivateBounds(1.0, start=(-9, 9), accountant=accountant)
    )
    assert {"person" in r.guarantee.unit for r in planned_loss(boxed, [FRAME]).releases} == {True}
    PEOPLE["all rows of one person, by 'patient_id'"](accountant)
    planned_loss(people, [FRAME], accountant=accountant).check()
    refuses("counts losses of", planned_loss(cloud_pipeline(), [X], accountant=accountant).check)
    with accountant:
        assert len(release_replicates(people, [FRAME], 3)) == 3
    assert len(accountant) == 4


def test_accountant_unit_is_known_to_moved_files(path, tmp_path):
    PEOPLE["one person"](PrivacyAccountant(9.0, 1e-3, path=path))
    moved = PrivacyAccountant.open(shutil.move(path, tmp_path / "b.db"), moved=True)
    refuses("counts losses of one person", moved.spend, 0.1)
    moved.spend(0.1, unit="one person")
