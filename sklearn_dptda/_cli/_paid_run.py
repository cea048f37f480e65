"""The one path of every command that pays: plan, refuse, read, pay and write, in this order.

The budget of a run is its ledger, whether the run fits it, and what is left.
"""

import math
import os
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from sklearn_dptda._cli._command import SWITCH, Command
from sklearn_dptda._cli._output import output_folder, shown_loss, slow, write_csv, write_json
from sklearn_dptda._cli._read_points import TABLE_ARGUMENTS, Table, read_table
from sklearn_dptda._cli._run_folder import RunFolder
from sklearn_dptda._cli._terminal import say, tell
from sklearn_dptda.model_selection import planned_loss
from sklearn_dptda.plotting import release_report
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyBudgetExceeded, PrivacyLedgerError
from sklearn_dptda.privacy._guarantee import Sums
from sklearn_dptda.utils._people import remark_on_ids

_PAYING_HELP = """\
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
_PAYING_ARGUMENTS: dict[str, dict[str, Any]] = {
    "--ledger": {"metavar": "PATH", "help": "ledger that records the cost of this run"},
    "--budget": {
        "nargs": "+",
        "type": float,
        "metavar": "NUMBER",
        "help": "create the ledger with this total budget: EPSILON, or EPSILON DELTA",
    },
    "--dry-run": SWITCH | {"help": "print what the run would pay and what is left, then stop"},
    "--seed": {
        "type": int,
        "help": "seed of the noise, for study only: the noise can be removed by anyone who knows "
        "the seed (default: noise from the operating system's entropy)",
    },
    "-o --out": {"default": "dptda-out", "help": "folder for the results (default dptda-out)"},
    "--force": SWITCH | {"help": "overwrite an earlier release in the folder"},
    "--report": {
        "metavar": "FILE",
        "help": "write a page of HTML as well, for the files of a privacy officer: the guarantee, "
        "the budget before and after, the picture, and no record",
    },
    "--resume": SWITCH | {"help": "continue an interrupted run, without paying a second time"},
}
# Said once, when a ledger is created.
_NO_DELTA = (
    "note: the new ledger has no delta, so that it refuses every release with a delta above 0, "
    "which those of cluster have by default. To allow them, create the ledger with --budget "
    "EPSILON DELTA."
)


class PayingCommand(Command):
    """A command that makes one paid release.

    ``private`` is the estimator that pays, by default the last one of ``kinds``, and ``planned``
    is the estimator for which the loss is planned. Subclasses list the files that they write in
    ``files``, and override the methods that produce them. ``records`` is the table that was read.
    The results of ``describe``, ``content``, ``table``, ``picture`` and ``write_file`` must be
    differentially private or public.
    """

    files: ClassVar[tuple[str, ...]]
    arguments: ClassVar[Mapping[str, Mapping[str, Any]]] = TABLE_ARGUMENTS

    def __init__(self, args: Namespace, private: Any = None) -> None:
        super().__init__(args)
        self.private = self.made(self.kinds[-1]) if private is None else private
        self.planned = self.private
        # All estimators of the run, whose parameters the report shows.
        self.estimators: Sequence[Any] = [self.private]

    def made(self, kind: Callable[..., Any]) -> Any:
        """Return an estimator with the parameters that were given as options."""
        return kind(**self.given(kind), random_state=self.args.seed)

    @classmethod
    def help(cls) -> tuple[str, str]:
        """Return the help, with a part about the payment, which is the same for all commands."""
        description, rest = super().help()
        return description, rest.replace("what is written:", f"{_PAYING_HELP}\nwhat is written:")

    @classmethod
    def add_arguments(cls, parser):
        """Add the arguments for the records, the parameters and the payment."""
        super().add_arguments(parser)
        for names, takes in _PAYING_ARGUMENTS.items():
            parser.add_argument(*names.split(), **takes)

    def prepare(self) -> Any:
        """Read and check the records."""
        self.records = self.read()
        points = self.records.numbers(bool(getattr(self.private, "missing", False)))
        if remark_on_ids(self.records.names or ()):
            tell(
                "warning: a column seems to identify people or rows, and counts as a coordinate. "
                "If a person can have several rows, pass its name to --groups, which protects all "
                "of them. Otherwise, name the other columns by --columns."
            )
        return points

    def read(self, texts: Sequence[str] = ()) -> Table:
        """Read the file of rows; the columns that ``texts`` names stay as they are written."""
        return read_table(self.args.points, texts=texts, **self.stated(TABLE_ARGUMENTS))

    def remarks(self) -> Iterable[str]:
        """Return lines for a dry run, which follow from the arguments alone."""
        return ()

    def release(self, data: Any) -> None:
        """Pay, and draw the release."""
        raise NotImplementedError

    def describe(self) -> Iterable[str]:
        """Return the lines to be printed about the release, after the guarantee."""
        raise NotImplementedError

    def content(self) -> dict[str, Any]:
        """Return the fields of the JSON file that follow the guarantee."""
        raise NotImplementedError

    def table(self) -> tuple[Iterable[str], Iterable[Iterable[Any]]]:
        """Return the header and the rows of the CSV file."""
        raise NotImplementedError

    def picture(self) -> Any:
        """Display or figure for the report, if there is one."""
        return None

    def write_file(self, path: Path) -> None:
        """Write one file of the release."""
        if path.suffix == ".json":
            write_json(path, self.private.privacy_guarantee_, **self.content())
        else:
            write_csv(path, *self.table())

    def run(self) -> None:
        """Plan, and unless this is a dry run: refuse, read, pay, draw and write."""
        args, private = self.args, self.private
        for estimator in self.estimators:
            estimator._validate_params()
        if not 0 < private.epsilon < math.inf:
            raise ValueError(f"--epsilon must be positive and finite; got {private.epsilon}.")
        budget = RunBudget(args.ledger, args.budget)
        plan = planned_loss(self.planned, accountant=budget.plan_with)
        if args.dry_run:
            budget.print_plan(plan, self.remarks())
            return
        folder = RunFolder(args.out, self.files, shown_loss(plan.releases[0].guarantee))
        folder.refuse_overwriting(args.force)
        _refuse_one_file_twice(args, self.files)
        _check_report(args.report, args.out, args.force)
        if not args.resume:
            # The run may have used up the ledger, so its folder is reported before the ledger.
            folder.refuse_unfinished()
            plan.check()
        with folder.reported():
            with slow("reading and computing"):
                data = self.prepare()
            output_folder(args.out)
            with folder.reserved(budget.accountant, args.force, args.resume) as (payer, named):
                private.set_params(accountant=named)
                with slow("drawing the release"):
                    self.release(data)
                private.set_params(accountant=None)
                with slow("writing"):
                    out = folder.write_all(self.write_file)
            self._tell_of(out, budget, payer)

    def _tell_of(self, out, budget, accountant):
        """Print the result, and write the report.

        The release is complete and its name is deleted. No error may look as if the run had to be
        repeated, so errors become notes.
        """
        args, written = self.args, f"written to {', '.join(str(out / f) for f in self.files)}"
        with _noted(f"the release is complete and {written}, but"):
            say(self.private.privacy_guarantee_, *self.describe(), written)
        if args.report is not None:
            with _noted("the report was not written:"):
                # A ledger counts; a run without one has an accountant that counts this run alone.
                self._write_report(None if args.ledger is None else accountant)
        with _noted("the release is complete, but what is left was not printed:"):
            say(budget.left(accountant))
        if args.seed is not None:
            tell("note: a release with a seed is for study only; it is not private")

    def _write_report(self, accountant):
        args, path = self.args, Path(self.args.report)
        page = release_report(
            self.private,
            accountant=accountant,
            picture=self.picture(),
            statements=list(self.describe()),
            parameters={"file": Path(args.points).name, **self._public_parameters()},
            title=f"Report of a private release: {Path(self.files[0]).stem}",
        )
        if args.force:
            path.unlink(missing_ok=True)
        # A file that has appeared since the check is not overwritten, and no link is followed.
        with path.open("x", encoding="utf-8") as file:
            file.write(page)
        say(f"report: {path}")

    def _public_parameters(self):
        """Return how the file was read, and the parameters of all estimators."""
        found, options = self.stated(self.arguments), self.options()
        for estimator in self.estimators:
            parameters = estimator.get_params(deep=False)
            found |= {name: value for name, value in parameters.items() if name in options}
        return found


@contextmanager
def _noted(what):
    """Turn an error into a note, because libraries raise various errors in a picture or a text."""
    try:
        yield
    except Exception as error:
        tell(f"note: {what} {error}")


def _refuse_one_file_twice(args: Namespace, files: Sequence[str]) -> None:
    """Refuse to write to a file that the run reads, pays into or writes as well."""
    places = (os.path.normcase(os.path.realpath(Path(args.out) / name)) for name in files)
    used = dict.fromkeys(places, "a file of the release")
    others = {"the records": args.points, "--ledger": args.ledger, "--report": args.report}
    for what, name in others.items():
        if name is None or "://" in name:
            continue
        place = os.path.normcase(os.path.realpath(name))
        if place in used:
            raise ValueError(f"{what}: {name} is {used[place]}. Choose another name, or --out.")
        used[place] = f"the file of {what}"


def _check_report(name: str | None, out: str, force: bool) -> None:
    """Refuse a report that could not be written, before anything is paid."""
    if name is None:
        return
    path, folder = Path(name).absolute(), Path(out).absolute()
    if path.is_dir() or (os.path.lexists(path) and not force):
        raise ValueError(f"--report: {name} is there already: --force overwrites a file.")
    # The run creates the folder for its results.
    if not path.parent.is_dir() and path.parent not in (folder, *folder.parents):
        raise ValueError(f"--report: there is no folder {path.parent}. Create it first.")
    if path.parent.is_dir() and not os.access(path.parent, os.W_OK):
        raise ValueError(f"--report: the folder {path.parent} cannot be written to.")


class RunBudget:
    """The budget of one run: an existing ledger, a new ledger, or an unlimited count in memory.

    A new ledger is created by the method ``accountant``. Before that, all checks are made with
    ``plan_with``, a copy of the ledger in memory.
    """

    def __init__(self, path, numbers):
        if numbers is not None and len(numbers) > 2:
            raise ValueError(f"--budget takes EPSILON [DELTA]; got {len(numbers)} numbers.")
        if path is None and numbers is not None:
            raise ValueError("--budget needs a ledger: pass --ledger PATH as well.")
        self.path = path
        named = zip(("epsilon", "delta"), numbers or (), strict=False)
        self._budget: dict[str, Any] = {"epsilon": math.inf} if path is None else dict(named)
        self._is_new = False
        if path is not None:
            try:
                self.plan_with = PrivacyAccountant.open(path, **self._budget)
                return
            except PrivacyLedgerError:
                # If a server cannot be reached, the error occurs again when the ledger is created.
                if os.path.lexists(path) or ("://" in path and not self._budget):
                    raise
            if not self._budget:
                raise ValueError(
                    f"there is no ledger {self.path}: pass --budget EPSILON [DELTA] to create it."
                )
            self._is_new = True
        try:
            self.plan_with = PrivacyAccountant(**self._budget)
        except ValueError as error:
            raise ValueError(f"--budget: {error}") from None

    def _lacks_delta(self):
        return self._is_new and self.plan_with.delta == 0 and math.isfinite(self.plan_with.epsilon)

    def accountant(self, own, resumes):
        """Return the accountant that pays, at the path ``own`` if the run has no ledger.

        None if a resumed run would have to create it.
        """
        is_new = not own.exists() if self.path is None else self._is_new
        if not is_new:
            return self.plan_with if self.path else PrivacyAccountant.open(own, keep=0)
        if resumes:
            return None
        # A run without a ledger stores no release: it ends with its folder.
        kept = {"path": own, "keep": 0} if self.path is None else {"path": self.path}
        accountant = PrivacyAccountant(**self._budget, **kept)
        if self._lacks_delta():
            tell(_NO_DELTA)
        return accountant

    def print_plan(self, plan, remarks):
        """Print what a run would pay and what would be left, or say why it would be refused."""
        guarantees = [planned.guarantee for planned in plan.releases]
        kinds = sorted({f"{each.unit}; {each.adjacency}" for each in guarantees})
        say(
            *str(plan).splitlines(),
            f"privacy unit and adjacency: {' and '.join(kinds)}",
            self.left(self.plan_with) + (" before the run" if self.path is not None else ""),
            *remarks,
            *([_NO_DELTA] if self._lacks_delta() else []),
        )
        try:
            plan.check()
        except (PrivacyBudgetExceeded, ValueError) as error:
            raise ValueError(f"the run would be refused: {error}") from None
        if self.path is not None:
            state = self.plan_with._ledger.read()
            sums = Sums.of((each.guarantee.charge, each.count) for each in plan.releases)
            left = state.budget.rule().remaining(state.sums.plus(sums))
            say(f"left after the run: {shown_loss(left)}")

    def left(self, accountant):
        """Return a message about the remaining budget."""
        if self.path is None:
            return (
                "no ledger: the cost of this run is not recorded (pass --ledger PATH to record it)"
            )
        place = self.path + (", which would be created" if accountant.path is None else "")
        return f"left in {place}: {shown_loss(accountant.remaining())}"
