"""What every command that pays does: plan, refuse, read, pay, write, in this order."""

import math
import os
import shutil
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from sklearn_dptda._cli._command import output_folder, table_options
from sklearn_dptda._cli._output import slow, write_csv, write_json
from sklearn_dptda._cli._read_points import read_points
from sklearn_dptda.model_selection import planned_loss
from sklearn_dptda.plotting import release_report
from sklearn_dptda.privacy import (
    PrivacyAccountant,
    PrivacyBudgetExceeded,
    PrivacyLedgerError,
    ReleaseKey,
)
from sklearn_dptda.privacy._digest import digest_of
from sklearn_dptda.privacy._release_key import under

# A disk must have room for so many bytes before a release is paid for: more than the files of most
# releases take.
_NEEDED_BYTES = 1 << 20

_NOTHING_SPENT = "nothing was spent"
# File of the key of a run, in the folder of what is being written: with it an interrupted run goes
# on. The noise can be undone with it, so it is removed when the release is there.
_KEY = "release.key"
# File that is locked while a run lives.
_LOCK = "lock"

PAYING_HELP = """\
paying:
  --ledger PATH --budget EPSILON [DELTA]
             makes a ledger that adds up the losses of all runs with --ledger PATH, and
             refuses what would exceed its budget. Once made, --ledger PATH is enough.
  --dry-run  prints what a run would pay and what is left, without opening the records.
  --resume   goes on with a run that was interrupted after it had paid: the same command
             pays nothing a second time, and its release is the one that was paid for.
"""


def add_paying(parser):
    """Add the arguments of all commands that pay."""
    parser.add_argument("--ledger", metavar="PATH", help="ledger that this run is paid from")
    parser.add_argument(
        "--budget",
        nargs="+",
        type=float,
        metavar="NUMBER",
        help="make that ledger, with this budget: EPSILON, or EPSILON DELTA",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print what would be paid and what is left; stop"
    )
    parser.add_argument(
        "--seed",
        type=int,
        help="a release for study: whoever knows the seed can undo the noise (default: the "
        "operating system's entropy)",
    )
    parser.add_argument("-o", "--out", default="dptda-out", help="folder (default dptda-out)")
    parser.add_argument(
        "--force", action="store_true", help="overwrite an earlier release in that folder"
    )
    parser.add_argument(
        "--report",
        metavar="FILE",
        help="write a page of HTML as well, for the files of a privacy officer: the guarantee, "
        "the budget before and after, the picture, and no record",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on with a run that was interrupted, and pay nothing a second time",
    )


class PaidRelease:
    """The release that one run of a command makes, by its arguments.

    ``private`` is the estimator that pays, and ``planned`` the one that the plan is made for. A
    subclass says in ``files`` what it writes, and in methods how. Whatever ``describe``,
    ``content``, ``table`` and ``write_file`` let out has to be private or public.
    """

    files: ClassVar[tuple[str, ...]]

    def __init__(self, args: Namespace, private: Any) -> None:
        self.args = args
        self.private = self.planned = private

    def prepare(self) -> Any:
        """Read and check the records."""
        return read_points(self.args.points, **table_options(self.args))

    def release(self, data: Any) -> Any:
        """Pay, and draw the release."""
        return self.private.fit(data)

    def describe(self, result: Any) -> Iterable[str]:
        """Lines about the release, after that of its guarantee."""
        raise NotImplementedError

    def content(self, result: Any) -> dict[str, Any]:
        """Fields of the JSON file, after the guarantee."""
        raise NotImplementedError

    def table(self, result: Any) -> tuple[Iterable[str], Iterable[Iterable[Any]]]:
        """Header and rows of the CSV file."""
        raise NotImplementedError

    def picture(self, result: Any) -> Any:
        """Display or figure for the report, if there is one."""
        return None

    def write(self, folder: Path, result: Any) -> None:
        """Write all files."""
        for name in self.files:
            self.write_file(folder / name, result)

    def write_file(self, path: Path, result: Any) -> None:
        """Write one of them."""
        if path.suffix == ".json":
            write_json(path, self.private.privacy_guarantee_, **self.content(result))
        else:
            write_csv(path, *self.table(result))


def run_paid(make_release, args):
    """Make one paid release: ``make_release(args)``."""
    release = make_release(args)
    files = release.files
    budget = RunBudget(args.ledger, args.budget)
    plan = planned_loss(release.planned, accountant=budget.plan_with)
    if args.dry_run:
        print(plan, budget.left(budget.plan_with), sep="\n")
        try:
            plan.check()
        except (PrivacyBudgetExceeded, ValueError) as error:
            print(f"it would be refused: {error}")
        return
    _refuse_overwriting(Path(args.out), files, args.force)
    _check_report(args.report, args.force)
    accountant = None
    if not args.resume:
        plan.check()
    try:
        with slow("reading and computing"):
            data = release.prepare()
        with _reserved(output_folder(args.out), files, args.force, args.resume) as beside:
            accountant = budget.accountant()
            with _repeatable(beside, accountant, (release.private, data), args.resume):
                with accountant, slow("drawing the release"):
                    result = release.release(data)
                try:
                    with slow("writing"):
                        out = _write(release, beside, result)
                finally:
                    # The release is paid for: it is printed, whatever becomes of the files.
                    lines = release.private.privacy_guarantee_, *release.describe(result)
                    print(*lines, sep="\n", flush=True)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_happened(accountant)) from None
    except Exception:
        if accountant is not None and accountant.spent != _NOTHING_SPENT:
            print(f"note: {_happened(accountant)}", file=sys.stderr)
        raise
    print(f"written to {', '.join(str(out / name) for name in files)}")
    if args.report is not None:
        # A ledger counts; a run without one has an accountant that counts this run alone.
        page = release_report(
            release.private,
            accountant=None if args.ledger is None else accountant,
            picture=release.picture(result),
            statements=list(release.describe(result)),
            title=f"Report of a private release: {Path(files[0]).stem}",
        )
        Path(args.report).write_text(page, encoding="utf-8")
        print(f"report: {args.report}")
    print(budget.left(accountant))
    if args.seed is not None:
        print("note: a seeded release is for study, and no private one", file=sys.stderr)


def _check_report(name, force):
    """Refuse a report that could not be written, before anything is paid."""
    if name is None:
        return
    path = Path(name)
    if path.is_dir() or (path.exists() and not force):
        raise ValueError(f"--report: {path} is there already: --force overwrites a file.")
    if not os.access(path.absolute().parent, os.W_OK):
        raise ValueError(f"--report: the folder {path.absolute().parent} cannot be written to.")


def _happened(accountant):
    """What an interrupted run has spent, in words, and how to go on."""
    if accountant is None or accountant.spent == _NOTHING_SPENT:
        return _NOTHING_SPENT
    return f"{accountant.spent}: the same command with --resume goes on, and pays nothing more"


@contextmanager
def _repeatable(beside, accountant, deciding, resumes):
    """Draw with coins of a key that stays while there is a payment and no release.

    ``deciding`` is all that decides about the release: estimator and records.
    """
    path, ends = beside / _KEY, True
    try:
        key = ReleaseKey.open(path)
        with under(key, key.child(digest_of(deciding))):
            yield
    except BaseException:
        # A run that resumes may end before it finds what an earlier one has paid.
        ends = not resumes and accountant.spent == _NOTHING_SPENT
        raise
    finally:
        if ends:
            path.unlink(missing_ok=True)


class WatchedAccountant(PrivacyAccountant):
    """An accountant that knows what this run has spent, in words."""

    spent = _NOTHING_SPENT

    def spend(self, epsilon, delta=0.0, **line):
        """Pay, and remember it, also where Ctrl-C comes in between."""
        before, loss = self.spent, f"epsilon={epsilon:g}, delta={delta:g}"
        self.spent = f"{loss} may have been spent"
        try:
            super().spend(epsilon, delta, **line)
        except (PrivacyBudgetExceeded, ValueError):
            self.spent = before
            raise
        self.spent = f"{loss} was spent"


class RunBudget:
    """The budget of one run: a ledger that exists, one that it makes, or a count without a limit.

    A ledger that has to be made is made by ``accountant``, after everything that can be wrong has
    been checked against ``plan_with``, its double in memory.
    """

    def __init__(self, path, numbers):
        if numbers is not None and len(numbers) > 2:
            raise ValueError(f"--budget takes EPSILON [DELTA]; got {len(numbers)} numbers.")
        if path is None and numbers is not None:
            raise ValueError("--budget belongs to a ledger: give --ledger PATH as well.")
        self.path = path
        self._budget: dict[str, Any] = dict(zip(("epsilon", "delta"), numbers or (), strict=False))
        self._is_new = path is not None and not self._exists()
        if self._is_new and not self._budget:
            raise ValueError(f"there is no ledger {path}: --budget EPSILON [DELTA] makes one.")
        if path is None:
            self.plan_with = WatchedAccountant(math.inf)
        elif self._is_new:
            self.plan_with = WatchedAccountant(**self._budget)
        else:
            self.plan_with = WatchedAccountant.open(path, **self._budget)

    def _exists(self):
        if "://" not in self.path:
            return os.path.lexists(self.path)
        try:
            PrivacyAccountant.open(self.path)
        except PrivacyLedgerError:
            # If a server is out of reach, the error comes again, and comes out.
            return not self._budget
        return True

    def accountant(self):
        """Return the accountant that pays."""
        return WatchedAccountant(**self._budget, path=self.path) if self._is_new else self.plan_with

    def left(self, accountant):
        """What is left, in words."""
        if self.path is None:
            return "no ledger: nobody counts what else is released of these data (--ledger PATH)"
        loss, place = accountant.remaining(), self.path
        if accountant.path is None:
            place += ", which would be made"
        return f"left in {place}: epsilon={loss.epsilon:g}, delta={loss.delta:g}"


@contextmanager
def _reserved(out, files, force, resumes):
    """Make the folder beside the results in which one run at a time writes them.

    Making a folder is atomic: of several runs one has it. Where a run was interrupted after it had
    paid, the folder stays, and one that resumes it goes on with its key.
    """
    beside = out / f".{files[0]}.part"
    if resumes and not (beside / _KEY).exists():
        raise ValueError(f"--resume: no run that has paid was interrupted in {out}.")
    try:
        beside.mkdir(exist_ok=resumes)
    except FileExistsError:
        raise ValueError(
            f"{beside} is there: another run is making this release. If none is, an earlier one "
            "was interrupted: --resume goes on with it; or delete that folder."
        ) from None
    lock = _locked(beside)
    try:
        # Another run may have written its release since the first look.
        _refuse_overwriting(out, files, force)
        room = beside / "room"
        try:
            room.write_bytes(bytes(_NEEDED_BYTES))
        except OSError as error:
            raise ValueError(
                f"--out: {out} has no room for a release ({error.strerror})."
            ) from None
        room.unlink()
        yield beside
    finally:
        if not (beside / _KEY).exists():
            shutil.rmtree(beside, ignore_errors=True)
        elif beside.is_dir():
            # What is cut off is no release to anybody.
            for file in beside.iterdir():
                if file.name not in (_KEY, _LOCK):
                    file.unlink()
        lock.close()


def _locked(beside):
    """A file that is locked for as long as this run lives, where the system has such locks."""
    file = (beside / _LOCK).open("w")
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise ValueError(f"{beside} is there: another run is making this release.") from None
    return file


def _refuse_overwriting(out, files, force):
    earlier = [out / name for name in files if (out / name).exists()]
    blocked = [path for path in earlier if not path.is_file()]
    if blocked:
        raise ValueError(f"{blocked[0]} is no file, and would have to be one.")
    if earlier and not force:
        raise ValueError(
            f"{earlier[0]} holds an earlier release, which was paid for: --force overwrites it, -o "
            "chooses another folder."
        )


def _write(release, beside, result):
    """Write all files or none, and return their folder: another one if this one will not do."""
    out = beside.parent
    try:
        release.write(beside, result)
        for name in release.files:
            with (beside / name).open("rb+") as file:
                os.fsync(file.fileno())
        _move(beside, out, release.files)
    except Exception as error:
        # The release must not be lost, and libraries raise what they like for a full disk.
        other = Path(tempfile.mkdtemp(prefix="dptda-out-"))
        try:
            release.write(other, result)
        except BaseException:
            shutil.rmtree(other, ignore_errors=True)
            raise
        print(f"note: not written to {out} but to {other}: {error}", file=sys.stderr)
        return other
    return out


def _move(beside, out, files):
    """Move all files into their folder; if one cannot be moved, what was there comes back."""
    try:
        for name in files:
            if (out / name).exists():
                os.replace(out / name, beside / f"{name}.old")
            os.replace(beside / name, out / name)
    except BaseException:
        for name in files:
            if not (beside / name).exists():
                os.replace(out / name, beside / name)
            if (beside / f"{name}.old").exists():
                os.replace(beside / f"{name}.old", out / name)
        raise
