"""What every command that pays does: plan, refuse, read, pay, write, in this order."""

import sys
import tempfile
from pathlib import Path

from sklearn_dptda._cli._arguments import output_folder
from sklearn_dptda._cli._progress import slow
from sklearn_dptda._cli._purse import NOTHING, Purse
from sklearn_dptda.model_selection import planned_loss
from sklearn_dptda.privacy import PrivacyBudgetExceeded

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
        out = output_folder(args.out)
        accountant = purse.accountant()
        with accountant, slow("drawing the release"):
            result = release(data)
        try:
            with slow("writing"):
                out = _write(write, out, result)
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


def _write(write, out, result):
    """Write files, and return the folder: another one if this one will not do."""
    try:
        write(out, result)
    except OSError as error:
        # What was paid for must not be lost.
        other = Path(tempfile.mkdtemp(prefix="dptda-out-"))
        write(other, result)
        print(f"note: not written to {out} but to {other}: {error}", file=sys.stderr)
        return other
    return out


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
