"""The budget of one run: a ledger that exists, one that it makes, or a count without a limit."""

import math
import os
import shutil
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from sklearn_dptda._cli._arguments import output_folder
from sklearn_dptda._cli._output import slow
from sklearn_dptda.model_selection import planned_loss
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyBudgetExceeded, PrivacyLedgerError

NOTHING = "nothing was spent"


class WatchedAccountant(PrivacyAccountant):
    """An accountant that knows what this run has spent, in words."""

    spent = NOTHING

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


class Purse:
    """Where ``--ledger`` and ``--budget`` let a run pay from.

    A ledger that has to be made is made by ``accountant``, after everything that can be wrong has
    been checked against ``plan_with``, its double in memory.
    """

    def __init__(self, path, budget):
        self.path = path
        if budget is not None and len(budget) > 2:
            raise ValueError(f"--budget takes EPSILON [DELTA]; got {len(budget)} numbers.")
        self.budget = None if budget is None else tuple(budget)
        if path is None and budget is not None:
            raise ValueError("--budget belongs to a ledger: give --ledger PATH as well.")
        self._is_new = path is not None and not self._exists()
        if self._is_new and budget is None:
            raise ValueError(f"there is no ledger {path}: --budget EPSILON [DELTA] makes one.")
        self.plan_with = self._open()

    def _exists(self):
        if "://" not in self.path:
            return os.path.lexists(self.path)
        try:
            PrivacyAccountant.open(self.path)
        except PrivacyLedgerError:
            # Of a server that is out of reach the error comes again, and comes out.
            return self.budget is None
        return True

    def _open(self):
        if self.path is None:
            return WatchedAccountant(math.inf)
        if self._is_new:
            return WatchedAccountant(*self.budget)
        return WatchedAccountant.open(self.path, *(self.budget or ()))

    def accountant(self):
        """Return who pays."""
        return WatchedAccountant(*self.budget, path=self.path) if self._is_new else self.plan_with

    def left(self, accountant):
        """What is left, in words."""
        if self.path is None:
            return "no ledger: nobody counts what else is released of these data (--ledger PATH)"
        loss, place = accountant.remaining(), self.path
        if accountant.path is None:
            place += ", which would be made"
        return f"left in {place}: epsilon={loss.epsilon:g}, delta={loss.delta:g}"


# What every command that pays does: plan, refuse, read, pay, write, in this order.

# Bytes that a disk must have room for before a release is paid for.
_ROOM = 1 << 20

PAYING = """\
paying:
  --ledger PATH --budget EPSILON [DELTA]
             makes a ledger that adds up the losses of all runs with --ledger PATH, and
             refuses what would exceed its budget. Once made, --ledger PATH is enough.
  --dry-run  prints what a run would pay and what is left, without opening the records.
"""


def add_paying(parser):
    """Add what commands that pay have in common."""
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


def run_paid(args, estimator, files, prepare, release, write, describe):
    """Run one paid release.

    ``prepare()`` reads and checks, ``release(data)`` pays and draws, ``write(out, result)`` writes
    ``files``, ``describe(result)`` yields lines. ``estimator`` is what the plan is made for.
    """
    purse = Purse(args.ledger, args.budget)
    plan = planned_loss(estimator, accountant=purse.plan_with)
    if args.dry_run:
        print(plan, *_outlook(plan, purse), sep="\n")
        return
    _refuse_overwriting(Path(args.out), files, args.force)
    accountant = None
    plan.check()
    try:
        with slow("reading and computing"):
            data = prepare()
        with _reserved(output_folder(args.out), files, args.force) as beside:
            accountant = purse.accountant()
            with accountant, slow("drawing the release"):
                result = release(data)
            try:
                with slow("writing"):
                    out = _write(write, beside, result, files)
            finally:
                # What was paid for is seen, whatever becomes of the files.
                print(*describe(result), sep="\n", flush=True)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(NOTHING if accountant is None else accountant.spent) from None
    except Exception:
        if accountant is not None and accountant.spent != NOTHING:
            print(f"note: {accountant.spent}, whatever failed afterwards", file=sys.stderr)
        raise
    print(f"written to {', '.join(str(out / name) for name in files)}")
    print(purse.left(accountant))
    if args.seed is not None:
        print("note: a seeded release is for study, and no private one", file=sys.stderr)


@contextmanager
def _reserved(out, files, force):
    """Make the folder beside the results in which one run at a time writes them.

    Making a folder is atomic: of several runs one has it.
    """
    beside = out / f".{files[0]}.part"
    try:
        beside.mkdir()
    except FileExistsError:
        raise ValueError(
            f"{beside} is there: another run is making this release. If none is, an earlier one "
            "was killed: see whether that folder holds its files, and delete it."
        ) from None
    try:
        # Another run may have written its release since the first look.
        _refuse_overwriting(out, files, force)
        _check_room(beside)
        yield beside
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _check_room(folder):
    try:
        (folder / "room").write_bytes(bytes(_ROOM))
    except OSError as error:
        raise ValueError(
            f"--out: {folder.parent} has no room for a release ({error.strerror})."
        ) from None
    (folder / "room").unlink()


def _write(write, beside, result, files):
    """Write all files or none, and return their folder: another one if this one will not do."""
    out = beside.parent
    try:
        write(beside, result)
        for name in files:
            with (beside / name).open("rb+") as file:
                os.fsync(file.fileno())
        _move(beside, out, files)
    except Exception as error:
        # What was paid for must not be lost; what a library says of a full disk is up to it.
        other = Path(tempfile.mkdtemp(prefix="dptda-out-"))
        try:
            write(other, result)
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


def _outlook(plan, purse):
    """What is left, and whether the plan fits."""
    yield purse.left(purse.plan_with)
    try:
        plan.check()
    except (PrivacyBudgetExceeded, ValueError) as error:
        yield f"it would be refused: {error}"


def _refuse_overwriting(out, files, force):
    blocked = [name for name in files if (out / name).exists() and not (out / name).is_file()]
    if blocked:
        raise ValueError(f"{out / blocked[0]} is no file, and would have to be one.")
    earlier = [name for name in files if (out / name).exists()]
    if earlier and not force:
        raise ValueError(
            f"{out / earlier[0]} holds an earlier release, which was paid for: --force overwrites "
            "it, -o chooses another folder."
        )
