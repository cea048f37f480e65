"""Commands that pay, with the arguments that make them quick, and their records."""

from itertools import pairwise

import numpy as np

from sklearn_dptda.__main__ import main
from sklearn_dptda._cli._read_points import read_table

RNG = np.random.default_rng(0)


ROWS = RNG.uniform(-1, 1, size=(400, 2))


UPPER = np.triu(RNG.random((30, 30)) < 0.2, 1)


ADJACENCY = (UPPER | UPPER.T).astype(float)


# For each name: the arguments after the file, and the written files.
PAYING = {
    "diagram": (
        ["--bounds", "-1", "1", "--resolution", "9", "--m", "0.3"],
        ["diagram.json", "diagram.csv", "diagram.pers", "diagram.png"],
    ),
    "cloud": (
        ["--bounds", "-1", "1", "--resolution", "9", "--m", "0.3"],
        ["cloud.json", "cloud.csv", "regions.geojson", "cloud.png"],
    ),
    "betti": (
        ["--bounds", "-1", "1", "--resolution", "9", "--m", "0.3", "--threshold", "0.1"],
        ["betti.json", "betti.csv"],
    ),
    "cluster": (
        ["--bounds", "-1", "1", "--kind", "kmeans", "--n-clusters", "2"],
        ["clusters.json", "clusters.csv"],
    ),
    "synthesize": (["--bounds", "-1", "1"], ["synthetic.csv", "synthetic.json"]),
    "graph": ([], ["graph.json", "graph.npz"]),
    "bounds": (["--epsilon", "1", "--start", "-9", "9"], ["bounds.json", "bounds.csv"]),
}


def quickly(name, *options):
    """Return options, and those of the options that make a command quick that are not among them.

    No option may be given twice.
    """
    words, quick = PAYING[name][0], []
    starts = [place for place, word in enumerate(words) if word.startswith("--")]
    for start, end in pairwise([*starts, len(words)]):
        quick += [] if words[start] in options else words[start:end]
    return [*quick, *options]


def call(name, *options):
    """Run a command on its file, with the arguments that make it quick."""
    path = "graph.npy" if name == "graph" else "rows.npy"
    return main([name, path, *quickly(name, *options), "-o", "out"])


def read_points(path, **options):
    """Return the numbers in a file."""
    return read_table(path, **options).numbers()


def interrupted(*_, **__):
    raise KeyboardInterrupt


def interrupt(monkeypatch, where, name, *options):
    """Run a command, which Ctrl-C ends where it calls a function of the package."""
    with monkeypatch.context() as patch:
        patch.setattr(f"sklearn_dptda.{where}", interrupted)
        assert call(name, *options) == 130


LEDGER_OF_ONE = ("--ledger", "one.db", "--budget", "1", "1e-3")


def failed(code, capsys):
    """Return what a command has said that must have failed."""
    assert code == 2
    return capsys.readouterr().err
