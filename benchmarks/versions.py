"""Times and seeded outputs of an earlier version of this library beside those of this one.

``OLD_CHECKOUT`` names a folder with the earlier version, such as a worktree of an older commit.
Both run in this environment, each in a process of its own, and are timed by turns.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks._table import Table
from benchmarks._timing import Ratio, summary

ROOT = Path(__file__).parents[1]
CASES = Path(__file__).with_name("_version_cases.py")
# A turn lasts at least this many seconds on the clock, so that small calls are repeated in it.
TURN = 0.1
SLOWER = 1.05


class _Version:
    """A process that answers with the times of one version."""

    def __init__(self, checkout):
        self.process = subprocess.Popen(
            [sys.executable, str(CASES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": str(checkout)},
        )

    def ask(self, name, times):
        """Call a case so often; with 0, its seeded output is answered as a digest."""
        self.process.stdin.write(json.dumps([name, times]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def tables(quick):
    """Yield the table of this benchmark, or a message about the missing checkout."""
    old = os.environ.get("OLD_CHECKOUT")
    if not old:
        yield "An earlier version is left out: OLD_CHECKOUT is not set.\n"
        return
    turns = 1 if quick else 9
    versions = [_Version(old), _Version(ROOT)]
    try:
        rows = [_compared(name, versions, turns) for name in _names()[: 3 if quick else None]]
    finally:
        for version in versions:
            version.close()
    yield Table(
        "This version and an earlier one",
        ("case", "earlier, ms", "now, ms", "now / earlier", "seeded outputs"),
        rows,
        f"Medians (range) of {turns} turns of at least {TURN} s, and the minimum of the CPU, with "
        "noise from the operating system; ratios are those of minima. A case is SLOWER if both "
        f"ratios exceed {SLOWER}.",
    )


def _names():
    # In a process of its own, as the cases import the library.
    code = "import json, _version_cases as v; print(json.dumps(list(v.CASES)))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(CASES.parent)])}
    answer = subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
    )
    return json.loads(answer.stdout)


def _compared(name, versions, turns):
    digests = [version.ask(name, 0) for version in versions]
    if "error" in digests[0]:
        return name, "-", "-", "-", digests[0]["error"]
    firsts = [version.ask(name, 1)["clock"] for version in versions]
    times = max(1, int(TURN / min(firsts)))
    answers = [[version.ask(name, times) for version in versions] for _ in range(turns)]
    before, now = (
        summary([a["clock"] for a in column], [a["cpu"] for a in column])
        for column in zip(*answers, strict=True)
    )
    ratio = Ratio.of(now, before)
    verdict = " SLOWER" if min(ratio.clock, ratio.cpu) > SLOWER else ""
    same = "equal" if digests[0] == digests[1] else "different"
    return name, f"{before:ms}", f"{now:ms}", f"{ratio}{verdict}", same
