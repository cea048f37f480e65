"""The steps of every command that pays: plan, refuse, read, pay and write, in this order."""

import os
import uuid
from argparse import Namespace
from collections.abc import Iterable
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from sklearn_dptda._cli._command import output_folder, table_options
from sklearn_dptda._cli._output import slow, write_csv, write_json
from sklearn_dptda._cli._read_points import read_labelled_points
from sklearn_dptda._cli._run_budget import NO_DELTA, RunBudget
from sklearn_dptda._cli._run_folder import (
    NAME,
    begun,
    folder_beside,
    refuse_another_ledger,
    refuse_overwriting,
    reserved,
    write_all,
)
from sklearn_dptda._cli._terminal import say, tell
from sklearn_dptda.model_selection import planned_loss
from sklearn_dptda.plotting import release_report
from sklearn_dptda.privacy import PrivacyBudgetExceeded, PrivacyLedgerError
from sklearn_dptda.privacy._guarantee import kind_of_unit
from sklearn_dptda.privacy._ledger import AnotherRelease
from sklearn_dptda.privacy._release_key import payment_of
from sklearn_dptda.privacy._whole_file import whole_file

PAYING_HELP = """\
paying:
  --ledger PATH --budget EPSILON [DELTA]
             creates a ledger. It adds up the losses of all runs with --ledger PATH, and
             refuses a run that would exceed the budget. For later runs, --ledger PATH is
             enough.
  --dry-run  prints what the run would pay, and what is left before and after it, without
             opening the records. The exit status is 2 if the run would be refused.
  --resume   continues a run that was interrupted after it had paid. Repeat the same
             command with this option: it pays nothing a second time, and makes the
             release that was paid for.
"""


def add_paying(parser):
    """Add the arguments that all paying commands have."""
    parser.add_argument("--ledger", metavar="PATH", help="ledger that records the cost of this run")
    parser.add_argument(
        "--budget",
        nargs="+",
        type=float,
        metavar="NUMBER",
        help="create the ledger with this total budget: EPSILON, or EPSILON DELTA",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print what the run would pay and what is left, then stop",
    )
    parser.add_argument(
        "--seed",
        type=int,
        help="seed of the noise, for study only: the noise can be removed by anyone who knows the "
        "seed (default: noise from the operating system's entropy)",
    )
    parser.add_argument(
        "-o", "--out", default="dptda-out", help="folder for the results (default dptda-out)"
    )
    parser.add_argument(
        "--force", action="store_true", help="overwrite an earlier release in the folder"
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
        help="continue an interrupted run, without paying a second time",
    )


# Arguments that say where files are and how a run goes on, and nothing about the release.
_NOT_IN_REPORTS = {"run", "points", "graph", "ledger", "budget", "dry_run", "out"} | {
    "command",
    "force",
    "report",
    "resume",
    "seed",
}


class CommandRelease:
    """The release that one run of a command makes from its arguments.

    ``private`` is the estimator that pays, and ``planned`` is the estimator for which the loss is
    planned. Subclasses list the files that they write in ``files``, and override the methods that
    produce them. ``ids`` has the person of each row, if people are protected. The results of
    ``describe``, ``content``, ``table`` and ``write_file`` must be differentially private or
    public.
    """

    files: ClassVar[tuple[str, ...]]
    ids: Any = None

    def __init__(self, args: Namespace, private: Any) -> None:
        self.args = args
        self.private = self.planned = private

    def prepare(self) -> Any:
        """Read and check the records."""
        options = table_options(self.args)
        points, self.labels, self.ids = read_labelled_points(self.args.points, **options)
        return points

    def remarks(self) -> Iterable[str]:
        """Return warnings that follow from the arguments alone, for a dry run."""
        return ()

    def hints(self) -> Iterable[str]:
        """Return lines about what else can be known before the release, for a dry run."""
        return ()

    def release(self, data: Any) -> Any:
        """Pay, and draw the release."""
        return self.private.fit(data)

    def describe(self, result: Any) -> Iterable[str]:
        """Return the lines to be printed about the release, after the guarantee."""
        raise NotImplementedError

    def content(self, result: Any) -> dict[str, Any]:
        """Return the fields of the JSON file that follow the guarantee."""
        raise NotImplementedError

    def table(self, result: Any) -> tuple[Iterable[str], Iterable[Iterable[Any]]]:
        """Return the header and the rows of the CSV file."""
        raise NotImplementedError

    def picture(self, result: Any) -> Any:
        """Display or figure for the report, if there is one."""
        return None

    def write(self, folder: Path, result: Any) -> None:
        """Write all files."""
        for name in self.files:
            self.write_file(folder / name, result)

    def write_file(self, path: Path, result: Any) -> None:
        """Write one file."""
        if path.suffix == ".json":
            write_json(path, self.private.privacy_guarantee_, **self.content(result))
        else:
            write_csv(path, *self.table(result))


def run_paid(make_release, args):
    """Make one paid release, which ``make_release(args)`` describes."""
    release = make_release(args)
    files = release.files
    budget = RunBudget(args.ledger, args.budget)
    plan = planned_loss(release.planned, accountant=budget.plan_with)
    check = partial(_check_plan, plan, budget, hasattr(args, "adjacency"))
    if args.dry_run:
        _print_plan(release, plan, budget, check)
        return
    refuse_overwriting(Path(args.out), files, args.force)
    _refuse_one_file_twice(args, files)
    _check_report(args.report, args.out, args.force)
    spent, unfinished = _Spent(plan), folder_beside(Path(args.out), files)
    if not args.resume:
        # The run may have used up the ledger, so its folder is reported before the ledger is asked.
        if (unfinished / NAME).exists():
            raise begun(unfinished)
        check()
    try:
        with slow("reading and computing"):
            data = release.prepare()
        with reserved(output_folder(args.out), files, args.force, args.resume) as beside:
            refuse_another_ledger(beside, budget.path, args.resume)
            accountant = budget.accountant(beside)
            with _repeatable(beside, accountant, spent, args.resume) as named:
                release.private.set_params(accountant=named)
                with slow("drawing the release"):
                    result = release.release(data)
                release.private.set_params(accountant=None)
                with slow("writing"):
                    out = write_all(release, beside, result)
            if budget.path is None:
                accountant._ledger.forget()
        _tell_of(release, result, out, budget, accountant)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_happened(spent, unfinished)) from None
    except Exception:
        if spent:
            tell(f"note: {_happened(spent, unfinished)}")
        raise


def _tell_of(release, result, out, budget, accountant):
    """Print the result, and write the report.

    The release is complete and its name is deleted. No error may look as if the run had to be
    repeated, so errors become notes.
    """
    args, written = release.args, f"written to {', '.join(str(out / f) for f in release.files)}"
    with _noted(f"the release is complete and {written}, but"):
        say(release.private.privacy_guarantee_, *release.describe(result), written)
    if args.report is not None:
        with _noted("the report was not written:"):
            # A ledger counts; a run without one has an accountant that counts this run alone.
            _write_report(release, result, None if args.ledger is None else accountant)
    with _noted("the release is complete, but what is left was not printed:"):
        say(budget.left(accountant))
    if args.seed is not None:
        tell("note: a release with a seed is for study only; it is not private")


@contextmanager
def _noted(what):
    """Turn an error into a note, because libraries raise various errors in a picture or a text."""
    try:
        yield
    except Exception as error:
        tell(f"note: {what} {error}")


def _print_plan(release, plan, budget, check):
    """Print what a run would pay and what would be left; an error says why it would be refused."""
    before = " before the run" if budget.path is not None else ""
    of_plan = (planned.guarantee for planned in plan.releases)
    kinds = sorted({f"{each.unit}; {each.adjacency}" for each in of_plan})
    say(
        *str(plan).splitlines(),
        f"privacy unit and adjacency: {' and '.join(kinds)}",
        f"{budget.left(budget.plan_with)}{before}",
        *(f"warning: {remark}" for remark in release.remarks()),
        *([f"note: {NO_DELTA}"] if budget.lacks_delta else []),
    )
    try:
        check()
    except (PrivacyBudgetExceeded, ValueError) as error:
        raise ValueError(f"the run would be refused: {error}") from None
    if budget.path is not None:
        loss = budget.left_after(plan)
        say(f"left after the run: epsilon={loss.epsilon:g}, delta={loss.delta:g}")
    for hint in release.hints():
        say(hint)


def _check_plan(plan, budget, has_adjacency):
    """Raise an error if the ledger does not cover the plan."""
    counted = budget.state()
    for planned in plan.releases:
        _check_neighbours(budget.shown, counted, planned.guarantee, has_adjacency)
    plan.check()


def _check_neighbours(shown, counted, own, has_adjacency):
    """Refuse a loss that a ledger cannot add, in the words of the command line."""
    if counted.unit and kind_of_unit(counted.unit) != kind_of_unit(own.unit):
        raise ValueError(
            f"the ledger {shown} counts losses of {counted.unit}, and this command protects "
            f"{own.unit}, so that the losses cannot be added. Use another ledger for this command."
        )
    if counted.adjacency and counted.adjacency != own.adjacency:
        remedy = "Use a ledger in which all runs have this adjacency."
        if has_adjacency:
            remedy = f"Pass --adjacency {counted.adjacency}."
        raise ValueError(
            f"the ledger {shown} counts losses under {counted.adjacency} adjacency, and this run "
            f"has {own.adjacency} adjacency. {remedy}"
        )


def _refuse_one_file_twice(args, files):
    """Refuse to write to a file that the run reads, pays into or writes as well."""
    places = (os.path.normcase(os.path.realpath(Path(args.out) / name)) for name in files)
    used = dict.fromkeys(places, "a file of the release")
    others = [("the records", args.graph if "graph" in args else args.points)]
    others += [("--ledger", args.ledger), ("--report", args.report)]
    for what, name in others:
        if name is None or "://" in name:
            continue
        place = os.path.normcase(os.path.realpath(name))
        if place in used:
            raise ValueError(f"{what}: {name} is {used[place]}. Choose another name, or --out.")
        used[place] = f"the file of {what}"


def _check_report(name, out, force):
    """Refuse a report that could not be written, before anything is paid."""
    if name is None:
        return
    path, folder = Path(name).absolute(), Path(out).absolute()
    if not path.parent.exists() and path.parent in (folder, *folder.parents):
        # The run creates this folder for its results.
        return
    if path.is_dir() or (os.path.lexists(path) and not force):
        raise ValueError(f"--report: {name} is there already: --force overwrites a file.")
    if not path.parent.is_dir():
        raise ValueError(f"--report: there is no folder {path.parent}. Create it first.")
    if not os.access(path.parent, os.W_OK):
        raise ValueError(f"--report: the folder {path.parent} cannot be written to.")


def _write_report(release, result, accountant):
    """Write the report."""
    args = release.args
    page = release_report(
        release.private,
        accountant=accountant,
        picture=release.picture(result),
        statements=list(release.describe(result)),
        parameters={
            "file": Path(args.graph if "graph" in args else args.points).name,
            **{k: v for k, v in vars(args).items() if k not in _NOT_IN_REPORTS},
        },
        title=f"Report of a private release: {Path(release.files[0]).stem}",
    )
    path = Path(args.report)
    if args.force:
        path.unlink(missing_ok=True)
    # A file that has appeared since the check is not overwritten, and no link is followed.
    with path.open("x", encoding="utf-8") as file:
        file.write(page)
    say(f"report: {path}")


class _Spent:
    """What a run has spent, as far as its ledger knows: false if nothing was."""

    def __init__(self, plan):
        guarantee = plan.releases[0].guarantee
        self._loss = f"epsilon={guarantee.epsilon:g}, delta={guarantee.delta:g}"
        self._words = ""

    def look(self, accountant, name):
        """Ask the ledger whether the release under a name was paid for."""
        try:
            paid = accountant._ledger.is_paid(payment_of(name, 1))
        except PrivacyLedgerError:
            self._words = f"{self._loss} may have been spent"
        else:
            self._words = f"{self._loss} was spent" if paid else ""

    def __bool__(self):
        return self._words != ""

    def __str__(self):
        return self._words or "nothing was spent"


def _happened(spent, unfinished):
    """Return a message about what an interrupted run has spent, and how to continue it."""
    if not spent:
        return str(spent)
    if not (unfinished / NAME).exists():
        return f"{spent}, and the release is complete"
    return f"{spent}. Run the same command with --resume to continue; it pays nothing more"


@contextmanager
def _repeatable(beside, accountant, spent, resumes):
    """Yield the accountant under a name that is kept as long as a payment has no release."""
    # A second Ctrl-C must not delete the name of a release that was paid for.
    path, ends = beside / NAME, False
    with suppress(FileExistsError), whole_file(str(path)) as temporary:
        Path(temporary).write_text(uuid.uuid4().hex, encoding="utf-8")
    name = path.read_text(encoding="utf-8")
    try:
        yield accountant.under(name)
        spent.look(accountant, name)
        ends = True
    except AnotherRelease:
        # The name stays, because it belongs to the payment of the interrupted run.
        raise ValueError(
            f"the interrupted run in {beside.parent} had other arguments or another file. Nothing "
            "was charged. Repeat the original command with --resume."
        ) from None
    except BaseException:
        spent.look(accountant, name)
        # A resumed run may end before it finds the payment of the earlier run.
        ends = not resumes and not spent
        raise
    finally:
        if ends:
            path.unlink(missing_ok=True)
