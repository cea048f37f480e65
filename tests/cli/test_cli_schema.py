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
    "diagram": ["diagram", *ROWS.split(), "--resolution", "9", "--clipped-share"],
    "betti": ["betti", *ROWS.split(), "--resolution", "9"],
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


@pytest.fixture(scope="module")
def schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    return jsonschema.Draft202012Validator(SCHEMA)


@pytest.mark.conformance
@pytest.mark.parametrize("name", COMMANDS)
def test_release_schema_fits_what_commands_write_and_no_more(name, written, schema):
    document = written(name)
    schema.validate(document)
    if name == "diagram":
        # Null stands for infinity: there may be no bound.
        schema.validate({**document, "error_bound": None})
    assert document["format_version"] == 1 and document["release"] == name
    # A schema that accepts everything would say nothing.
    required = SCHEMA["$defs"][name]["required"]
    for field in ["format_version", "guarantee", "release", *required]:
        broken = copy.deepcopy(document)
        del broken[field]
        assert not schema.is_valid(broken), field
    for change in ({"format_version": 2}, {"release": "other"}):
        assert not schema.is_valid({**document, **change})
    broken = copy.deepcopy(document)
    broken["guarantee"]["adjacency"] = "none"
    assert not schema.is_valid(broken)


@pytest.mark.conformance
@pytest.mark.parametrize("kind", ["mixture", "kmeans", "tree", "cube"])
def test_release_schema_fits_all_kinds_of_clusters(kind, written, schema):
    schema.validate(written("clusters", "--kind", kind))
