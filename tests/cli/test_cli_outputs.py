"""Output files: one run at a time writes them, and writes either all of them or none."""

import copy
import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import pytest

import sklearn_dptda
from sklearn_dptda.__main__ import main
from sklearn_dptda._cli._read_points import read_table
from sklearn_dptda.privacy import PrivacyAccountant
from tests.cli._paying import PAYING, call, failed

CLUSTER = ["cluster", "rows.npy", *PAYING["cluster"][0]]
SYNTHESIZE = ["synthesize", "rows.npy", *PAYING["synthesize"][0]]
LEDGER = ["--ledger", "l.db"]
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.path.dirname(os.path.dirname(sklearn_dptda.__file__)),
    "OMP_NUM_THREADS": "1",
}
TOO_MANY = ["--rows", "50000"]
# A mebibyte is reserved in advance. The disk has room for it, but not for a release.
MEBIBYTE = 1 << 20
LIMIT = MEBIBYTE + (MEBIBYTE >> 1)


@pytest.fixture
def folder(folder):
    PrivacyAccountant(20.0, 1e-3, path="l.db")
    return folder


def payments():
    return len(PrivacyAccountant.open("l.db"))


def contents(path):
    return {file.name: file.read_bytes() for file in path.iterdir()}


@pytest.mark.engines
def test_output_folder_of_runs_at_once_is_written_and_paid_once(folder):
    # The processes are started before the runs, so that the runs begin together.
    code = (
        "import sys\n"
        "from sklearn_dptda._cli import main\n"
        "for name in ('a', 'b', 'c', 'd', 'e'):\n"
        "    print('ready', flush=True)\n"
        "    sys.stdin.readline()\n"
        "    status = main([*sys.argv[1:], '-o', name])\n"
        "    print(f'status {status}', flush=True)\n"
    )
    command = [sys.executable, "-c", code, *CLUSTER, "--delta", "0", *LEDGER]
    runs = [
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
            cwd=folder,
        )
        for _ in range(2)
    ]
    try:
        for number, name in enumerate("abcde", start=1):
            for run in runs:
                assert run.stdout.readline() == "ready\n"
            for run in runs:
                run.stdin.write("\n")
                run.stdin.flush()
            printed = [_until_status(run) for run in runs]
            assert sorted(lines[-1] for lines in printed) == ["status 0", "status 2"]
            assert payments() == number
            (winner,) = (lines for lines in printed if lines[-1] == "status 0")
            content = json.loads((folder / name / "clusters.json").read_text())
            weights = ", ".join(f"{weight:.3g}" for weight in content["weights"])
            assert f"2 cluster(s) of weight {weights}" in winner
            assert sorted(os.listdir(name)) == ["clusters.csv", "clusters.json"]
        errors = [run.communicate(timeout=300)[1] for run in runs]
    finally:
        for run in runs:
            run.kill()
    refused = "".join(errors).splitlines()
    assert len(refused) == 5
    for line in refused:
        assert "another run is making this release" in line or "--force overwrites" in line


def _until_status(run):
    lines = []
    while not lines or not lines[-1].startswith("status"):
        line = run.stdout.readline()
        assert line, "a run has died"
        lines.append(line.rstrip())
    return lines


def test_output_folder_of_another_run_is_refused_unpaid(folder, capsys):
    (folder / "out" / ".clusters.json.part").mkdir(parents=True)
    for force in ([], ["--force"]):
        error = failed(main([*CLUSTER, *LEDGER, *force, "-o", "out"]), capsys)
        assert "another run is making this release" in error and error.count("\n") == 1
    assert payments() == 0
    # Files of another command have other names.
    assert main([*SYNTHESIZE, *LEDGER, "-o", "out"]) == 0
    (folder / "out" / ".clusters.json.part").rmdir()
    assert main([*CLUSTER, *LEDGER, "-o", "out"]) == 0
    assert len(os.listdir("out")) == 4


def test_output_files_that_came_meanwhile_are_not_overwritten(folder, capsys, monkeypatch):
    def meanwhile(*arguments, **options):
        (folder / "out").mkdir()
        (folder / "out" / "clusters.csv").write_text("paid for")
        return read_table(*arguments, **options)

    monkeypatch.setattr("sklearn_dptda._cli._paid_run.read_table", meanwhile)
    assert "--force overwrites" in failed(main([*CLUSTER, *LEDGER, "-o", "out"]), capsys)
    assert payments() == 0 and contents(folder / "out") == {"clusters.csv": b"paid for"}


def test_output_files_are_moved_all_or_none(folder, capsys, monkeypatch):
    assert main([*SYNTHESIZE, *LEDGER, "-o", "out"]) == 0
    before, replace = contents(folder / "out"), os.replace

    def fail(source, target):
        if os.path.join("out", "synthetic.json") == str(target) and "old" not in str(source):
            raise PermissionError(1, "Operation not permitted")
        replace(source, target)

    monkeypatch.setattr("os.replace", fail)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    assert main([*SYNTHESIZE, *LEDGER, "--force", "-o", "out"]) == 0
    assert "Operation not permitted" in capsys.readouterr().err
    assert contents(folder / "out") == before and payments() == 2
    (other,) = folder.glob("dptda-out-*")
    assert contents(other).keys() == before.keys() and contents(other) != before


@contextmanager
def no_file_beyond(size):
    """Let this process write no file that is larger."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture(params=["limit", "disk"])
def small(request, folder, monkeypatch):
    """A folder with less room than a release takes."""
    place = folder / "small"
    place.mkdir()
    # Otherwise, the release would be written there instead of to a disk with room.
    monkeypatch.setattr("tempfile.tempdir", "small")
    if request.param == "limit":
        with no_file_beyond(LIMIT):
            yield place
        return
    mount = ["mount", "-t", "tmpfs", "-o", f"size={LIMIT}", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no small disk can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.conformance
def test_output_files_of_a_full_disk_are_not_cut_off(small, capsys):
    out = small / "out"
    synthesize = [*SYNTHESIZE, *LEDGER, "-o", "small/out"]
    assert main([*synthesize, *TOO_MANY]) == 2 and payments() == 1
    # The hidden folder contains only what is needed to continue.
    (hidden,) = out.iterdir()
    assert hidden.name.startswith(".")
    assert sorted(os.listdir(hidden)) == ["name"]
    assert list(small.glob("dptda-out-*")) == []
    note, error = capsys.readouterr().err.splitlines()
    assert note.startswith("note: epsilon=1, delta=0 was spent") and error.startswith("error: ")
    # The remaining files are not a release for the next run, which may draw fewer rows.
    assert main([*synthesize, "--rows", "10", "--resume"]) == 0 and payments() == 1
    before = contents(out)
    assert before.keys() == {"synthetic.csv", "synthetic.json"}
    # Nor are they lost to a run that fails.
    assert main([*synthesize, *TOO_MANY, "--force"]) == 2 and payments() == 2
    shutil.rmtree(hidden)
    assert contents(out) == before and list(small.glob("dptda-out-*")) == []


def test_output_folder_of_a_full_disk_is_refused_unpaid(folder, capsys):
    with no_file_beyond(MEBIBYTE - 1):
        assert main([*SYNTHESIZE, *LEDGER, "-o", "out"]) == 2
    assert payments() == 0 and os.listdir("out") == []
    error = capsys.readouterr().err
    assert "error: --out: out has no room for a release (File too large)." in error


# Schemas of what is written.


jsonschema = pytest.importorskip("jsonschema")
SCHEMA = json.loads((files("sklearn_dptda") / "_cli" / "release.schema.json").read_text("utf-8"))


def written(name, *options):
    assert call(name, *options, "--epsilon", "9") == 0
    (path,) = Path("out").glob("*.json")
    return path.stem, json.loads(path.read_text())


@pytest.fixture(scope="module")
def schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    return jsonschema.Draft202012Validator(SCHEMA)


@pytest.mark.conformance
@pytest.mark.parametrize("command", PAYING)
def test_release_schema_fits_what_commands_write_and_no_more(command, folder, schema):
    name, document = written(command, *["--clipped-share"] * (command == "diagram"))
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
def test_release_schema_fits_all_kinds_of_clusters(kind, folder, schema):
    schema.validate(written("cluster", "--kind", kind)[1])
