"""The JSON files of all commands fit their schema, which refuses what they are not."""

import copy
import json
from importlib.resources import files

import numpy as np
import pytest

from sklearn_dptda.__main__ import main

jsonschema = pytest.importorskip("jsonschema")
SCHEMA = json.loads((files("sklearn_dptda") / "_cli" / "release.schema.json").read_text("utf-8"))
ROWS = "rows.npy --bounds 0 1 --epsilon 9"
COMMANDS = {
    "diagram": ["diagram", *ROWS.split(), "--resolution", "11", "--clipped-share"],
    "betti": ["betti", *ROWS.split(), "--resolution", "11"],
    "clusters": ["cluster", *ROWS.split()],
    "synthetic": ["synthesize", *ROWS.split()],
    "graph": ["graph", "edges.csv", "--nodes", "9", "--epsilon", "9"],
    "bounds": ["bounds", "rows.npy", "--epsilon", "9"],
}


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", np.random.default_rng(0).uniform(size=(400, 2)))
    (tmp_path / "edges.csv").write_text("0,1\n1,2\n3,4\n")

    def call(name, *more):
        assert main([*COMMANDS[name], *more, "-o", "out"]) == 0
        return json.loads((tmp_path / "out" / f"{name}.json").read_text())

    return call


def validator():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    return jsonschema.Draft202012Validator(SCHEMA)


@pytest.mark.conformance
@pytest.mark.parametrize("name", COMMANDS)
def test_what_a_command_writes_fits_the_schema(name, written):
    document = written(name)
    validator().validate(document)
    assert document["format_version"] == 1 and document["release"] == name
    # A schema that accepts everything would say nothing.
    required = SCHEMA["$defs"][name]["required"]
    for field in ["format_version", "guarantee", "release", *required]:
        broken = copy.deepcopy(document)
        del broken[field]
        assert not validator().is_valid(broken), field
    for change in ({"format_version": 2}, {"release": "other"}):
        assert not validator().is_valid({**document, **change})
    broken = copy.deepcopy(document)
    broken["guarantee"]["adjacency"] = "none"
    assert not validator().is_valid(broken)


@pytest.mark.conformance
@pytest.mark.parametrize("kind", ["mixture", "kmeans", "tree", "cube"])
def test_all_kinds_of_clusters_fit(kind, written):
    validator().validate(written("clusters", "--kind", kind))


@pytest.mark.conformance
def test_infinities_are_null(written):
    document = written("diagram", "--force")
    document["error_bound"] = None
    validator().validate(document)
