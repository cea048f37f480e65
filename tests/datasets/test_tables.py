from pathlib import Path

import numpy as np
import pytest

from sklearn_dptda.datasets import load_table
from tests._refusals import refuses
from tests.datasets._files import DATA, needs

NAMES = ("emg", "htru2", "pulsar", "magic", "shuttle", "sloan", "usps")
# These files are read after each change, and the others by the conformance layer.
SMALL = ("htru2", "sloan")


def layers(name):
    return [needs(name), *([] if name in SMALL else [pytest.mark.conformance])]


def cases(values):
    return [pytest.param(name, *value, marks=layers(name)) for name, value in values.items()]


def outside(data, bounds):
    low, high = np.broadcast_arrays(*bounds, data[0])[:2]
    assert np.isfinite([low, high]).all() and (low < high).all()
    return (data < low) | (data > high)


PUBLISHED = {
    "emg": (
        8,
        [9830, 10000, 9611, 10000, 9964, 9725],
        ["Bowing", "Clapping", "Handshaking", "Jumping", "Running", "Standing"],
    ),
    "htru2": (8, [16259, 1639], ["non-pulsar", "pulsar"]),
    "pulsar": (8, [8423, 850], ["non-pulsar", "pulsar"]),
    "magic": (10, [12332, 6688], ["gamma", "hadron"]),
    "shuttle": (
        9,
        [34108, 37, 132, 6748, 2458, 6, 11],
        ["Rad Flow", "Fpv Close", "Fpv Open", "High", "Bypass", "Bpv Close", "Bpv Open"],
    ),
    "sloan": (8, [4998, 850, 4152], ["GALAXY", "QSO", "STAR"]),
    "usps": (256, [1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644], list("0123456789")),
}


@pytest.mark.parametrize("name, n_columns, counts, classes", cases(PUBLISHED))
def test_load_table_is_as_published_and_within_its_bounds(name, n_columns, counts, classes):
    found = load_table(name)
    assert found.data.shape == (sum(counts), n_columns) and found.data.dtype == np.float64
    assert np.bincount(found.target).tolist() == counts
    assert found.target_names.tolist() == classes
    assert len(set(found.feature_names)) == n_columns
    if name in SMALL:
        X, y = load_table(name, data_home=DATA, return_X_y=True)
        np.testing.assert_array_equal(X, found.data)
        np.testing.assert_array_equal(y, found.target)
    check_bounds(name, found)


def check_bounds(name, found):
    sticks_out = outside(found.data, found.bounds)
    if name == "shuttle":
        # Spikes are clipped on purpose. The documentation says how many rows have one.
        assert sticks_out.any(axis=1).sum() == 191
        assert sticks_out[np.isin(found.target, [5, 6])].any(axis=1).all()
        assert sticks_out[:, [1, 3, 5]].sum() > 0.8 * sticks_out.sum()
    else:
        assert not sticks_out.any()
    # Bounds that are much wider than the data would make the noise too large.
    low, high = map(np.asarray, found.bounds)
    spread = np.ptp(np.clip(found.data, low, high), axis=0)
    assert (spread > 0.3 * (high - low)).all()


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=layers(n)) for n in ("emg", "htru2", "pulsar", "magic", "sloan")]
)
def test_load_table_has_the_names_of_the_file(name):
    with np.load(Path(DATA, f"{name}.npz"), allow_pickle=False) as archive:
        names = archive["feature_names"].tolist()
    found = load_table(name, **({"physical": False} if name == "sloan" else {}))
    assert found.feature_names.tolist() == names


@pytest.mark.parametrize("name", [pytest.param(n, marks=needs(n)) for n in ("htru2", "pulsar")])
def test_load_table_of_pulsars_has_interchanged_moments(name):
    # The documentation says so. Excess kurtosis >= skewness ** 2 - 2 holds for any sample.
    X = load_table(name).data
    for first in (2, 6):
        called_kurtosis, called_skewness = X[:, first], X[:, first + 1]
        assert (called_skewness >= called_kurtosis**2 - 2).all()
        assert (called_kurtosis < called_skewness**2 - 2).any()


@needs("sloan")
def test_load_table_of_sloan_selects_physical_columns():
    some, everything = load_table("sloan"), load_table("sloan", physical=False)
    assert some.feature_names.tolist() == ["ra", "dec", "u", "g", "r", "i", "z", "redshift"]
    assert everything.data.shape == (10000, 16)
    assert not outside(everything.data, everything.bounds).any()
    where = [everything.feature_names.tolist().index(name) for name in some.feature_names]
    np.testing.assert_array_equal(everything.data[:, where], some.data)
    for part, whole in zip(some.bounds, everything.bounds, strict=True):
        np.testing.assert_array_equal(part, whole[where])
    X, _ = load_table("sloan", physical=False, return_X_y=True)
    np.testing.assert_array_equal(X, everything.data)


def test_load_table_refuses_unknown_tables_and_options():
    refuses(r"name must be one of emg, htru2, .*; got 'iris'", load_table, "iris")
    for name in {*NAMES} - {"sloan"}:
        refuses(f"'sloan', not of '{name}'", load_table, name, physical=True)


@pytest.mark.conformance
@needs("usps")
def test_load_table_of_usps_has_a_test_part():
    found = load_table("usps")
    assert found.bounds == (-1, 1)
    assert found.data_test.shape == (2007, 256) and found.data_test.dtype == np.float64
    assert not outside(found.data_test, found.bounds).any()
    counts = [359, 264, 198, 166, 200, 160, 170, 147, 166, 177]
    assert np.bincount(found.target_test).tolist() == counts
    assert found.feature_names[17] == "pixel_1_1"


@needs("sloan")
def test_load_table_returns_its_own_copy_of_bounds():
    found = load_table("sloan")
    least = found.bounds[0].copy()
    found.bounds[0][:] = -1e9
    assert np.array_equal(load_table("sloan").bounds[0], least)


@pytest.mark.parametrize("name", [NAMES[0], NAMES[-1]])
def test_load_table_says_what_to_do_without_a_file(name, tmp_path, monkeypatch):
    said = refuses(f"{name}.npz", load_table, name, data_home=tmp_path, error=FileNotFoundError)
    for word in (str(tmp_path), "https://", "data_home", "SKLEARN_DPTDA_DATA", "sha256"):
        assert word in said
    assert not list(tmp_path.iterdir())
    monkeypatch.setenv("SKLEARN_DPTDA_DATA", str(tmp_path / "elsewhere"))
    refuses("elsewhere", load_table, name, error=FileNotFoundError)
    monkeypatch.delenv("SKLEARN_DPTDA_DATA")
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "sklearn"))
    refuses("sklearn", load_table, name, error=FileNotFoundError)


def write(folder, name, n_columns, **more):
    arrays = {
        "X": np.zeros((3, n_columns), dtype=np.float32),
        "y": np.array([0, 1, 1]),
        "classes": np.array(["a", "b"]),
        **more,
    }
    np.savez(folder / f"{name}.npz", **{k: v for k, v in arrays.items() if v is not None})


def test_load_table_warns_of_a_file_of_other_data(tmp_path, monkeypatch):
    write(tmp_path, "magic", 10)
    with pytest.warns(UserWarning, match=r"magic\.npz does not contain the published data"):
        found = load_table("magic", data_home=tmp_path)
    assert found.data.dtype == np.float64 and found.target.tolist() == [0, 1, 1]
    monkeypatch.setenv("SKLEARN_DPTDA_DATA", str(tmp_path))
    with pytest.warns(UserWarning, match="sha256"):
        again, _ = load_table("magic", return_X_y=True)
    np.testing.assert_array_equal(again, found.data)


def test_load_table_refuses_a_wrong_file(tmp_path):
    write(tmp_path, "magic", 9)
    refuses("10 columns", load_table, "magic", data_home=tmp_path)
    write(tmp_path, "magic", 10, y=None)
    refuses("lacks the arrays y", load_table, "magic", data_home=tmp_path)
    write(tmp_path, "usps", 256)
    refuses("X_test, y_test", load_table, "usps", data_home=tmp_path)
