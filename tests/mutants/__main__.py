"""Plant each fault in a copy of the package and run tests: ``python -m tests.mutants [WORDS]``.

WORDS select the faults whose names contain one of them. Each fault is tried in a process that is
forked after the other libraries have been loaded. The tests of the unit layer named for its file
run first, and stop at the first failure. If they all pass, the whole unit layer runs. The command
prints which test detected which fault, and fails if any fault survived.
"""

import argparse
import importlib
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FAULTS = Path(__file__).with_name("faults.txt")
# Everything that tests of the unit layer import, except for the package itself.
LIBRARIES = (
    "dask.array", "dask.dataframe", "gudhi.hera", "joblib", "matplotlib.pyplot", "networkx",
    "opendp.prelude", "pandas", "polars", "pytest", "scipy.optimize", "scipy.stats",
    "sklearn.cluster", "sklearn.ensemble", "sklearn.linear_model", "sklearn.manifold",
    "sklearn.mixture", "sklearn.model_selection", "sklearn.utils.estimator_checks", "sqlite3",
)  # fmt: skip
# Some faults let a loop run for ever. No test of the unit layer takes nearly as long, in seconds.
LONGEST = 900.0
UNCHANGED, SURVIVED = "nothing is changed", "survived"


class Fault(NamedTuple):
    """A text of one file of the package, a wrong text in its place, and tests that run first."""

    name: str
    path: str
    right: str
    wrong: str
    tests: list[str]


def faults_of(text: str) -> list[Fault]:
    """Read the format of ``faults.txt``."""
    found, path, tests = [], "", []
    for line in text.splitlines():
        if line.startswith("    "):
            name, _, change = line.strip(" ").partition(" :: ")
            right, _, wrong = change.replace("\\n", "\n").partition(" >>> ")
            wrong = "" if wrong == "<nothing>" else wrong
            found.append(Fault(f"{path}: {name}", path, right, wrong, tests))
        elif line and not line.startswith("#"):
            path, _, names = line.partition(" | ")
            tests = names.split()
    return found


def faults_that_cannot_be_planted(root: Path = ROOT) -> Iterator[str]:
    """Name faults whose text is not exactly once in its file, or whose tests are gone."""
    where = "tests/mutants/faults.txt"
    for fault in faults_of((root / where).read_text(encoding="utf-8")):
        path = root / "sklearn_dptda" / fault.path
        number = path.read_text(encoding="utf-8").count(fault.right) if path.exists() else 0
        if number != 1:
            yield f"{where}: {fault.name}: its text is {number} times in the file. Adapt the fault"
        for test in fault.tests:
            if not (root / test).exists():
                yield f"{where}: {fault.path} names {test}, which does not exist. Correct it"


class Verdict(NamedTuple):
    """What happened to a fault: the test that failed, or how the run ended, and its CPU time."""

    fault: Fault
    detected: bool
    by: str
    seconds: float


class Trial:
    """A run of tests in a forked process, on a copy of the project with one fault."""

    def __init__(self, fault: Fault, copy: Path, stamp: int) -> None:
        self.fault, self.copy = fault, copy
        self.path = copy / "sklearn_dptda" / fault.path
        self.source = self.path.read_text(encoding="utf-8")
        self._write(self.source.replace(fault.right, fault.wrong), stamp)
        self.log, self.start = copy / "log.txt", time.monotonic()
        self.pid = os.fork()
        if self.pid == 0:
            self._run_tests()

    def _write(self, source: str, stamp: int) -> None:
        self.path.write_text(source, encoding="utf-8")
        # Compiled files are recognised by the time of their source in whole seconds.
        os.utime(self.path, (stamp, stamp))

    def _run_tests(self) -> None:
        # All processes that the tests start end with this one, if it takes too long.
        os.setsid()
        target = os.open(self.log, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        os.dup2(target, 1)
        os.dup2(target, 2)
        os.chdir(self.copy)
        # The child has not imported the package yet, and must not find the original.
        sys.path[:] = [str(self.copy), *(p for p in sys.path if Path(p or ".").resolve() != ROOT)]
        for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
            del sys.modules[name]
        pytest = importlib.import_module("pytest")
        code = 3
        try:
            options = ["-x", "-q", "-n0", "--tb=line", "-rfE", "--no-header"]
            code = int(pytest.main([*options, *self.fault.tests]))
            if code == 0 and self.fault.tests != ["tests"]:
                code = int(pytest.main([*options, "tests"]))
            package = importlib.import_module("sklearn_dptda")
            if not str(package.__file__).startswith(str(self.copy)):
                code = 4
        finally:
            sys.stdout.flush()
            os._exit(code)

    def ended(self, stamp: int) -> Verdict | None:
        """Return the verdict if the run has ended, after the fault was taken out again."""
        pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        late = time.monotonic() - self.start > LONGEST
        if pid == 0 and not late:
            return None
        if pid == 0:
            os.killpg(self.pid, signal.SIGKILL)
            _, status, usage = os.wait4(self.pid, 0)
        self._write(self.source, stamp)
        seconds = usage.ru_utime + usage.ru_stime
        text = self.log.read_text(encoding="utf-8", errors="replace")
        failed = re.findall(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", text, re.MULTILINE)
        code = os.waitstatus_to_exitcode(status)
        if code == 1 and failed:
            return Verdict(self.fault, True, failed[0], seconds)
        if code == 0:
            return Verdict(self.fault, False, SURVIVED, seconds)
        how = "ran too long" if late else f"the run ended with {code}: {text[-300:]}"
        return Verdict(self.fault, False, how, seconds)


def copy_of_project(folder: Path) -> Path:
    """A copy of the project, some of whose tests read its pages."""
    built = ("__pycache__", ".*_cache", ".git", ".venv", "_build", "auto_examples", "generated")
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*built))
    return folder


def verdicts_of(faults: list[Fault], n_jobs: int) -> list[Verdict]:
    """Try all faults, some at a time, and print each verdict."""
    waiting, running, found = deque(faults), {}, []
    stamp = int(time.time()) - 10 * len(faults) - 10
    with tempfile.TemporaryDirectory(prefix="mutants_") as folder:
        free = [copy_of_project(Path(folder).resolve() / str(i)) for i in range(n_jobs)]
        while waiting or running:
            while waiting and free:
                stamp += 1
                trial = Trial(waiting.popleft(), free.pop(), stamp)
                running[trial.pid] = trial
            time.sleep(0.05)
            for pid, trial in list(running.items()):
                stamp += 1
                verdict = trial.ended(stamp)
                if verdict is not None:
                    free.append(trial.copy)
                    del running[pid]
                    found.append(verdict)
                    print(_line(verdict), flush=True)
    return found


def _line(verdict: Verdict) -> str:
    word = "detected" if verdict.detected else "missed"
    return f"{word:8} {verdict.seconds:6.1f} s  {verdict.fault.name:80} {verdict.by}"


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("words", nargs="*", help="parts of names of faults")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    if problems := list(faults_that_cannot_be_planted()):
        print("\n".join(problems))
        return 1
    faults = faults_of(FAULTS.read_text(encoding="utf-8"))
    # Without a fault, no test may fail.
    unchanged = faults[0]._replace(name=UNCHANGED, wrong=faults[0].right, tests=["tests"])
    faults = [
        fault
        for fault in faults
        if not options.words or any(word in fault.name for word in options.words)
    ]
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MPLBACKEND="Agg")
    # Compiled tests are kept in the copies, because compiling them takes longer than many runs.
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for name in LIBRARIES:
        importlib.import_module(name)
    found = verdicts_of([unchanged, *faults], options.jobs)
    (without,) = (verdict for verdict in found if verdict.fault is unchanged)
    if without.by != SURVIVED:
        print(f"the tests fail without a fault: {without.by}")
        return 1
    found.remove(without)
    missed = [verdict for verdict in found if not verdict.detected]
    total = sum(verdict.seconds for verdict in found)
    print(f"{len(found) - len(missed)} of {len(found)} faults detected in {total:.0f} CPU seconds")
    for verdict in missed:
        print(f"missed: {verdict.fault.name}: {verdict.by}")
    return int(bool(missed) or not found)


if __name__ == "__main__":
    sys.exit(main())
