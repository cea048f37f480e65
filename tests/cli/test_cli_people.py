"""Commands that protect people, whose ids are in a column of the file."""

import json

import numpy as np
import pytest

from sklearn_dptda import DTMFiltration, PrivatePersistence
from sklearn_dptda.__main__ import main
from sklearn_dptda._cli._formats import FORMATS
from sklearn_dptda.cluster import DPLloyd
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import PrivacyAccountant
from sklearn_dptda.synthetic import PrivateMeasure
from tests._refusals import failing
from tests.cli._paying import PAYING, failed, quickly

RNG = np.random.default_rng(0)
POINTS = RNG.uniform(-1, 1, size=(400, 2))
# Nobody's rows are adjacent.
IDS = RNG.permutation(np.repeat([f"p{j}" for j in range(80)], 5))

MORE = {"cluster": ["--delta", "0"], "synthesize": ["--header"]}


def write(path, points=POINTS, ids=IDS):
    rows = [f"{x!r},{who},{y!r}" for who, (x, y) in zip(ids, points.tolist(), strict=True)]
    path.write_text("\n".join(["x,patient,y", *rows]))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "visits.csv")
    return tmp_path


def call(name, *options):
    return main([name, "visits.csv", *quickly(name, *MORE.get(name, []), *options), "-o", "out"])


def written(folder):
    (path,) = (folder / "out").glob("*.json")
    return json.loads(path.read_text())


@pytest.mark.conformance
@pytest.mark.parametrize("name", sorted(PAYING.keys() - {"graph"}))
def test_groups_option_makes_one_person_the_unit(name, folder, capsys):
    budget = ["--ledger", "l.db", "--budget", "9", "1e-3"]
    assert call(name, "--groups", "patient", "--dry-run", *budget) == 0
    assert "one person" in capsys.readouterr().out.splitlines()[1]
    assert call(name, "--groups", "patient", *budget) == 0
    assert "one person" in written(folder)["guarantee"]["unit"]
    (line,) = PrivacyAccountant.open("l.db").spends()
    assert "one person" in line.unit
    # Rows cannot be added to people, neither in a run nor in its plan.
    for dry in ([], ["--dry-run"]):
        more = ["--columns", "x", "y", "--ledger", "l.db", "--force", *dry]
        assert "losses of" in failed(call(name, *more), capsys)
    assert len(PrivacyAccountant.open("l.db")) == 1


@pytest.mark.conformance
def test_groups_option_releases_the_diagrams_of_people(folder):
    dtm = DTMFiltration(0.3, bounds=(-1, 1), resolution=9, max_distance="private", groups=True)
    people = [POINTS[who == IDS] for who in np.unique(IDS)]
    private = PrivatePersistence(1.0, random_state=0)
    (expected,) = private.fit_transform(dtm.fit_transform([people]))
    assert call("diagram", "--groups", "patient", "--seed", "0") == 0
    for found, diagram in zip(written(folder)["diagrams"].values(), expected, strict=True):
        np.testing.assert_allclose(np.reshape(found, (-1, 2)), diagram)


@pytest.mark.conformance
@pytest.mark.parametrize(
    ("name", "field", "private", "attribute"),
    [
        ("cluster", "means", DPLloyd(2, delta=0.0, bounds=(-1, 1)), "cluster_centers_"),
        ("synthesize", "private_number_of_rows", PrivateMeasure(bounds=(-1, 1)), "n_samples_"),
        ("bounds", "bounds", PrivateBounds(1.0, start=(-9, 9), adjacency="replace-one"), "bounds_"),
    ],
)
def test_groups_option_releases_as_the_estimators(name, field, private, attribute, folder):
    assert call(name, "--groups", "patient", "--seed", "0") == 0
    private.set_params(random_state=0).fit(POINTS, groups=IDS)
    np.testing.assert_allclose(written(folder)[field], getattr(private, attribute))


@pytest.mark.conformance
def test_groups_option_drops_ids_with_their_rows(folder):
    gaps = POINTS.copy()
    gaps[::7, 1] = np.nan
    kept = np.isfinite(gaps[:, 1])
    means = []
    for points, ids in ((gaps, IDS), (gaps[kept], IDS[kept])):
        write(folder / "visits.csv", points, ids)
        more = ["--header", "--groups", "1", "--drop-incomplete", "--seed", "0", "--force"]
        assert call("cluster", *more) == 0
        means.append(written(folder)["means"])
    assert means[0] == means[1]


NOBODY = ["--groups", "nobody"], "--groups: there is no column 'nobody'"
BOTH = ["--groups", "patient", "--columns", "x", "patient"], "--columns names the column of"
NUMBER = ["--groups", "patient", "--columns", "1"], "--columns names the column of"


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("diagram", *NOBODY),
        ("betti", *BOTH),
        ("cluster", *NUMBER),
        ("cluster", *NOBODY),
        ("synthesize", *BOTH),
        ("bounds", *NUMBER),
    ],
)
def test_groups_option_refuses_wrong_columns_unpaid(name, options, said, folder, capsys):
    assert said in failed(call(name, *options, "--ledger", "l.db", "--budget", "9", "1e-3"), capsys)
    assert not (folder / "l.db").exists() and not (folder / "out").exists()


def test_groups_option_takes_names_that_are_numbers(folder):
    means = []
    for names in ("x,patient,y", "2,1,0"):
        rows = (folder / "visits.csv").read_text().splitlines()
        (folder / "visits.csv").write_text("\n".join([names, *rows[1:]]))
        more = ["--groups", names[2:-2], "--header", "--seed", "0", "--force"]
        assert call("cluster", *more) == 0
        means.append(written(folder)["means"])
    assert means[0] == means[1]


def test_groups_option_refuses_a_column_that_numbers_rows(folder, capsys):
    rows = (folder / "visits.csv").read_text().splitlines()
    numbered = [f",{rows[0]}", *(f"{j},{row}" for j, row in enumerate(rows[1:]))]
    (folder / "visits.csv").write_text("\n".join(numbered))
    assert "seems to number the rows" in failed(call("cluster", "--groups", "patient"), capsys)
    assert call("cluster", "--groups", "patient", "--columns", "x", "y") == 0


def test_groups_option_refuses_a_file_of_ids_alone(folder, capsys):
    (folder / "visits.csv").write_text("\n".join(["patient", *IDS]))
    assert "no other column" in failed(call("cluster", "--groups", "patient"), capsys)


@pytest.mark.parametrize(
    ("gap", "more"), [("", []), ("NA", ["--fill", "0"]), ("?", ["--drop-incomplete"])]
)
def test_groups_option_refuses_missing_ids_and_quotes_none(gap, more, folder, capsys):
    ids = IDS.astype(object)
    ids[:3] = gap
    write(folder / "visits.csv", ids=ids)
    error = failed(call("cluster", "--groups", "patient", *more), capsys)
    assert "3 of 400 rows have no id in the column 'patient'" in error
    assert not any(who in error for who in set(IDS))


def test_resume_option_refuses_a_run_with_other_people(folder, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(
            "sklearn_dptda._cli._row_commands.Cluster.content", failing(KeyboardInterrupt)
        )
        assert call("cluster", "--groups", "patient", "--ledger", "l.db", "--budget", "9") == 130
    # One person has more rows than before, so that the others count less.
    write(folder / "visits.csv", ids=np.where(np.arange(len(IDS)) < 20, IDS[0], IDS))
    resumed = ["--groups", "patient", "--ledger", "l.db", "--resume"]
    assert "It had other options or another file" in failed(call("cluster", *resumed), capsys)
    write(folder / "visits.csv")
    assert call("cluster", *resumed) == 0
    assert len(PrivacyAccountant.open("l.db")) == 1


def test_large_ids_beside_floats_stay_apart(tmp_path):
    # Two of these ids are one number in floats.
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    ids = [2**53, 2**53 + 1, 2**53 + 2, 2**60, 2**60 + 1, 5]
    path = tmp_path / "t.parquet"
    pandas.DataFrame({"who": ids, "x": np.linspace(0, 1, 6)}).to_parquet(path)
    _, columns = FORMATS[".parquet"].read(path, {})
    assert columns[0].tolist() == ids and columns[1].max() == 1.0
