"""The command ``ledger``: the payments, stored releases and extracts of a ledger."""

import io
import json
import math
import zipfile
from contextlib import suppress
from pathlib import Path

from sklearn_dptda._cli._command import SWITCH, Command
from sklearn_dptda._cli._output import new_figure, shown_loss
from sklearn_dptda._cli._terminal import say
from sklearn_dptda.plotting._release_report import budget_over_time
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyLedgerError
from sklearn_dptda.privacy._ledger_extract import total_of
from sklearn_dptda.privacy._stored_release import to_bytes

# Largest number of dates below the axis of a picture.
_MOST_DAYS = 8
# The first bytes of an SQLite file.
_SQLITE = b"SQLite format 3\0"


class LedgerCommand(Command):
    """Print the releases that a ledger has paid for, their total loss, and the remaining budget.

    Options draw the remaining budget over time, write a stored release, or write an extract that
    can be checked without the ledger. The command spends nothing. A ledger contains no records.

    example:
      python -m sklearn_dptda ledger budget.db
      python -m sklearn_dptda ledger budget.db --picture
      python -m sklearn_dptda ledger budget.db --release 2 -o release.zip
      python -m sklearn_dptda ledger budget.db --extract -o december.json
      python -m sklearn_dptda ledger december.json --check november.json
    """

    name = "ledger"
    arguments = {
        "ledger": {"metavar": "PATH", "help": "path of the ledger's file, or its SQLAlchemy URL"},
        "--release": {
            "type": int,
            "metavar": "NUMBER",
            "help": "write the stored release of the payment with this number",
        },
        "--extract": SWITCH | {"help": "write all payments, linked by a chain of hashes"},
        "--picture": SWITCH | {"help": "draw the budget that was left after each payment"},
        "--check": {
            "nargs": "*",
            "metavar": "EARLIER",
            "help": "check an extract: PATH is an extract, not a ledger. Report what was changed "
            "in it, or since the extract EARLIER",
        },
        "-o --out": {
            "metavar": "FILE",
            "help": "output file of --release (a ZIP archive of JSON and NumPy arrays, default "
            "release.zip), --extract (JSON, default extract.json) or --picture (default "
            "budget.png)",
        },
    }

    def run(self):
        args = self.args
        if args.check is not None:
            _check_extract(args.ledger, *args.check)
            return
        accountant = _opened(args.ledger)
        if args.extract:
            text = json.dumps(accountant.extract(), indent=1) + "\n"
            _write_new(args.out or "extract.json", text.encode())
        elif args.picture:
            _draw_budget(accountant, args.out or "budget.png")
        elif args.release is not None:
            _write_release(accountant, args.release, args.out or "release.zip")
        else:
            spends = accountant.spends()
            say(
                *map(_line, spends),
                f"spent: {shown_loss(accountant.total())} by {accountant.composition} composition",
                f"left: {shown_loss(accountant.remaining())}",
                f"risk: {accountant.risk()}",
                _neighbours([(spend.unit, spend.adjacency) for spend in spends]),
            )


def _line(spend):
    """Return a payment as one line."""
    stored = "not stored" if spend.size is None else f"{spend.size} bytes"
    return (
        f"{spend.number}  {spend.time}  {shown_loss(spend)}  {spend.estimator or spend.what}  "
        f"{stored}"
    )


def _opened(path):
    """Return the accountant of a ledger; an error says if the path is that of an extract."""
    try:
        return PrivacyAccountant.open(path)
    except PrivacyLedgerError:
        document = None
        with suppress(OSError, ValueError, RecursionError):
            document = json.loads(Path(path).read_text(encoding="utf-8"))
        if isinstance(document, dict) and {"payments", "seal"} <= document.keys():
            raise ValueError(f"{path}: this is an extract: add --check.") from None
        raise


def _neighbours(pairs):
    """Return the line about what losses protect, from the unit and the adjacency of each."""
    protected = "open, because the first payment fixes them"
    if pairs:
        units = dict.fromkeys(unit for unit, _ in pairs)
        protected = f"{' and '.join(units)}; {pairs[0][1]}"
    return f"privacy unit and adjacency: {protected}"


def _write_release(accountant, number, path):
    spend = next((each for each in accountant.spends() if each.number == number), None)
    if spend is None:
        raise ValueError(f"--release: the ledger has no payment with the number {number}.")
    try:
        release = accountant.release(spend.key)
    except LookupError as error:
        raise ValueError(f"--release {number}: {error.args[0]}.") from None
    payment = spend.columns()
    # The tag tells the records of a repeated run from others, and says nothing about the release.
    payment["parameters"].pop("tag", None)
    archive = io.BytesIO(to_bytes(release))
    # The arrays do not say what the ledger knows about the release.
    with zipfile.ZipFile(archive, "a") as file:
        file.writestr("payment.json", json.dumps(payment, indent=1))
    _write_new(path, archive.getvalue())
    say(
        f"payment {number} by {spend.estimator or 'a program of your own'}: {spend.what}",
        f"guarantee: {shown_loss(spend)}, {spend.adjacency}, {spend.unit}",
    )


def _draw_budget(accountant, path):
    """Draw what was left after each payment, relative to the current budget."""
    if math.isinf(accountant.epsilon):
        raise ValueError(
            "--picture: the budget has no limit, so there is no remaining budget to draw."
        )
    left = [loss.epsilon for loss in budget_over_time(accountant)]
    days = ["start", *(f"{spend.number}\n{spend.time}" for spend in accountant.spends())]
    figure = new_figure(7, 3.5)
    ax = figure.add_subplot()
    ax.plot(left, drawstyle="steps-post", marker="o", markersize=4)
    shown = range(0, len(left), math.ceil(len(left) / _MOST_DAYS))
    ax.set_xticks(shown, [days[number] for number in shown])
    ax.set(ylabel="remaining epsilon", xlabel="payment", ylim=(0, 1.05 * left[0]))
    buffer = io.BytesIO()
    figure.savefig(buffer, format=Path(path).suffix[1:] or "png")
    _write_new(path, buffer.getvalue())


def _write_new(path, content):
    """Write a new file.

    An existing file is never overwritten, because it may be the only copy of a release.
    """
    with open(path, "xb") as file:
        file.write(content)
    say(f"written to {path}")


def _check_extract(path, *earlier):
    if len(earlier) > 1:
        raise ValueError("--check compares an extract with one earlier extract.")
    if earlier == ("",):
        raise ValueError("--check: the name of the earlier extract is empty.")
    documents = [_read_extract(name) for name in (path, *earlier)]
    found = PrivacyAccountant.check_extract(*documents)
    if found:
        raise ValueError("; ".join(found))
    payments, (total, limit) = documents[0]["payments"], total_of(documents[0])
    say(
        f"{len(payments)} payment{'s' * (len(payments) != 1)}, no changes found",
        f"seal: {documents[0]['seal']}",
        f"spent: epsilon {total.epsilon:g} of {limit.epsilon:g}, "
        f"delta {total.delta:g} of {limit.delta:g}",
        _neighbours([(each["unit"], each["adjacency"]) for each in payments]),
    )


def _read_extract(name):
    content = b"" if "://" in name else Path(name).read_bytes()
    if "://" in name or content.startswith(_SQLITE):
        raise ValueError(f"{name}: --check reads an extract. Write one with --extract.")
    try:
        return json.loads(content.decode(), object_pairs_hook=_names_once)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        raise ValueError(f"{name} is not a JSON file.") from None


def _names_once(pairs):
    """Return a JSON object as a dictionary.

    A name that occurs twice is an error, because different readers would see different values.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("This is not an extract: one of its JSON objects contains a name twice.")
    return found
