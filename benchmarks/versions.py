"""Times and seeded outputs of an earlier version of this library beside those of this one.

``OLD_CHECKOUT`` names a folder with the earlier version, such as a worktree of an older commit.
Both run in this environment, each in a process of its own, and are timed by turns.
"""

import json
import math
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
        # Names may have moved since the earlier version, which has cases of its own.
        own = Path(checkout, "benchmarks", CASES.name)
        self.process = subprocess.Popen(
            # The folder of the script contains modules with the names of others.
            [sys.executable, "-P", str(own if own.exists() else CASES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(checkout)},
        )
        self.names = self._answer()["names"]
        place = self._answer()["place"]
        if not Path(place).is_relative_to(Path(checkout).resolve()):
            raise ValueError(f"{checkout} contains no version of this library: {place} was used.")

    def ask(self, name, times):
        """Call a case this many times; with 0, its seeded output is answered as a digest."""
        self.process.stdin.write(json.dumps([name, times]) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("A version has ended, for the reason above.")
        return json.loads(line)

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
        names = [name for name in versions[-1].names if name in versions[0].names]
        names = names[: 3 if quick else None]
        rows = [_compared(name, versions, turns) for name in names]
    finally:
        for version in versions:
            version.close()
    yield Table(
        "This version and an earlier one",
        "case | earlier, ms | now, ms | now / earlier | seeded outputs",
        rows,
        f"Medians (range) of {turns} turns of at least {TURN} s, and the minimum of the CPU. The "
        "calls that are timed draw unseeded noise. Ratios are those of minima. A case is SLOWER if "
        f"both ratios exceed {SLOWER}.",
    )


def _compared(name, versions, turns):
    first, *others = [version.ask(name, 0) for version in versions]
    once = [version.ask(name, 1) for version in versions]
    if failed := [answer for answer in (first, *others, *once) if "error" in answer]:
        return name, "-", "-", "-", failed[0]["error"]
    times = math.ceil(TURN / min(answer["clock"] for answer in once))
    answers = []
    for turn in range(turns):
        # The order alternates, as what runs first may find an idle machine.
        ordered = versions if turn % 2 else versions[::-1]
        asked = {version: version.ask(name, times) for version in ordered}
        answers.append([asked[version] for version in versions])
    before, now = (
        summary([a["clock"] for a in column], [a["cpu"] for a in column])
        for column in zip(*answers, strict=True)
    )
    ratio = Ratio.of(now, before)
    verdict = " SLOWER" if min(ratio.clock, ratio.cpu) > SLOWER else ""
    same = "equal" if [first] == others else "different"
    return name, f"{before:ms}", f"{now:ms}", f"{ratio}{verdict}", same
