"""The command ``ledger``: the payments, stored releases and extracts of a ledger."""

import io
import json
import math
import zipfile
from dataclasses import asdict
from pathlib import Path

from matplotlib.figure import Figure

from sklearn_dptda._cli._command import Command
from sklearn_dptda._cli._terminal import say
from sklearn_dptda.plotting._release_report import budget_over_time
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyLedgerError
from sklearn_dptda.privacy._ledger_extract import total_of
from sklearn_dptda.privacy._ledger_stores import shown_location
from sklearn_dptda.privacy._stored_release import to_bytes

# Largest number of dates below the axis of a picture.
_MOST_DAYS = 8
# Stands for "no earlier extract". No name of a file contains this character.
_ALONE = "\0"
# The first bytes of an SQLite file.
_SQLITE = b"SQLite format 3\0"
# Member of the archive of --release that describes the payment.
_PAYMENT = "payment.json"


def _add_ledger(parser):
    parser.add_argument(
        "ledger", metavar="PATH", help="path of the ledger's file, or its SQLAlchemy URL"
    )
    parser.add_argument(
        "--release",
        type=int,
        metavar="NUMBER",
        help="write the stored release of the payment with this number",
    )
    parser.add_argument(
        "--extract", action="store_true", help="write all payments, linked by a chain of hashes"
    )
    parser.add_argument(
        "--picture", action="store_true", help="draw the budget that was left after each payment"
    )
    parser.add_argument(
        "--check",
        nargs="?",
        const=_ALONE,
        metavar="EARLIER",
        help="check an extract: PATH is an extract, not a ledger. Report what was changed in it, "
        "or since the extract EARLIER",
    )
    parser.add_argument(
        "-o",
        "--out",
        metavar="FILE",
        help="output file of --release (a ZIP archive of JSON and NumPy arrays, default "
        "release.zip), --extract (JSON, default extract.json) or --picture (default budget.png)",
    )


def _print_ledger(args):
    if args.check is not None:
        if not args.check:
            raise ValueError(
                "--check: the name of the earlier extract is empty. Give a name, or --check alone."
            )
        _check_extract(args.ledger, None if args.check == _ALONE else args.check)
        return
    accountant = _opened(args.ledger)
    if args.extract:
        text = json.dumps(accountant.extract(), indent=1) + "\n"
        _write_new(Path(args.out or "extract.json"), text.encode())
        return
    if args.picture:
        _draw_budget(accountant, Path(args.out or "budget.png"))
        return
    releases = accountant.releases()
    if args.release is not None:
        _write_release(accountant, releases, args.release, Path(args.out or "release.zip"))
        return
    spends, total, left = accountant.spends(), accountant.total(), accountant.remaining()
    say(
        *map(_line, spends, releases),
        f"spent: epsilon={total.epsilon:g}, delta={total.delta:g} by {accountant.composition} "
        "composition",
        f"left: epsilon={left.epsilon:g}, delta={left.delta:g}",
        _neighbours([(spend.unit, spend.adjacency) for spend in spends]),
    )


def _line(spend, release):
    """Return a payment as one line."""
    stored = "not stored" if release.size is None else f"{release.size} bytes"
    return (
        f"{spend.number}  {spend.time}  epsilon={spend.epsilon:g}, delta={spend.delta:g}"
        f"  {spend.estimator or spend.what}  {stored}"
    )


def _opened(path):
    """Return the accountant of a ledger; an error says if the path is that of an extract."""
    try:
        return PrivacyAccountant.open(path)
    except PrivacyLedgerError:
        if "://" not in path and _is_extract(Path(path)):
            raise ValueError(f"{path}: this is an extract: add --check.") from None
        raise


def _is_extract(path):
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(document, dict) and {"payments", "seal"} <= document.keys()


def _neighbours(pairs):
    """Return the line about what losses protect, from the unit and the adjacency of each."""
    protected = "open, because the first payment fixes them"
    if pairs:
        units = dict.fromkeys(unit for unit, _ in pairs)
        protected = f"{' and '.join(units)}; {pairs[0][1]}"
    return f"privacy unit and adjacency: {protected}"


def _write_release(accountant, releases, number, path):
    keys = [release.key for release in releases if release.number == number]
    if not keys:
        raise ValueError(f"--release: the ledger has no payment with the number {number}.")
    try:
        release = accountant.release(keys[0])
    except LookupError as error:
        raise ValueError(f"--release {number}: {error.args[0]}.") from None
    (spend,) = (spend for spend in accountant.spends() if spend.number == number)
    payment = asdict(spend)
    # The tag tells the records of a repeated run from others, and says nothing about the release.
    payment["parameters"].pop("tag", None)
    _write_new(path, _with_payment(to_bytes(release), payment))
    say(
        f"payment {number} by {spend.estimator or 'a program of your own'}: {spend.what}",
        f"guarantee: epsilon={spend.epsilon:g}, delta={spend.delta:g}, {spend.adjacency}, "
        f"{spend.unit}",
    )


def _with_payment(archive, payment):
    """Add what the ledger knows about a release to its archive: the arrays do not say it."""
    buffer = io.BytesIO(archive)
    with zipfile.ZipFile(buffer, "a") as file:
        file.writestr(_PAYMENT, json.dumps(payment, indent=1))
    return buffer.getvalue()


def _draw_budget(accountant, path):
    """Draw what was left after each payment, relative to the current budget."""
    if math.isinf(accountant.epsilon):
        raise ValueError(
            "--picture: the budget has no limit, so there is no remaining budget to draw."
        )
    left = [loss.epsilon for loss in budget_over_time(accountant)]
    days = ["start", *(f"{spend.number}\n{spend.time}" for spend in accountant.spends())]
    figure = Figure(layout="constrained", figsize=(7, 3.5))
    ax = figure.add_subplot()
    ax.plot(left, drawstyle="steps-post", marker="o", markersize=4)
    shown = range(0, len(left), math.ceil(len(left) / _MOST_DAYS))
    ax.set_xticks(shown, [days[number] for number in shown])
    ax.set(ylabel="remaining epsilon", xlabel="payment", ylim=(0, 1.05 * left[0]))
    buffer = io.BytesIO()
    figure.savefig(buffer, format=path.suffix[1:] or "png")
    _write_new(path, buffer.getvalue())


def _write_new(path, content):
    """Write a new file.

    An existing file is never overwritten, because it may be the only copy of a release.
    """
    with path.open("xb") as file:
        file.write(content)
    say(f"written to {path}")


def _check_extract(path, earlier):
    documents = []
    for name in [path, *([earlier] if earlier else [])]:
        if _is_database(name):
            raise ValueError(
                f"{shown_location(name)}: --check reads an extract. Write one with --extract."
            )
        try:
            text = Path(name).read_text(encoding="utf-8")
            documents.append(json.loads(text, object_pairs_hook=_names_once))
        except _Twice:
            raise ValueError(
                f"{name} is not an extract: one of its JSON objects contains a name twice."
            ) from None
        except (ValueError, RecursionError):
            raise ValueError(f"{name} is not a JSON file.") from None
    found = PrivacyAccountant.check_extract(*documents)
    if found:
        raise ValueError("; ".join(found))
    payments, seal = documents[0]["payments"], documents[0]["seal"]
    number = "1 payment" if len(payments) == 1 else f"{len(payments)} payments"
    say(f"{number}, no changes found", f"seal: {seal}", *_totals(documents[0]))


def _is_database(name):
    if "://" in name:
        return True
    with Path(name).open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def _totals(extract):
    """Return the total loss of a checked extract, its budget, and what it protects, as lines."""
    total, limit = total_of(extract)
    return (
        f"spent: epsilon {total.epsilon:g} of {limit.epsilon:g}, "
        f"delta {total.delta:g} of {limit.delta:g}",
        _neighbours([(each["unit"], each["adjacency"]) for each in extract["payments"]]),
    )


class _Twice(ValueError):
    """An error for a JSON object that contains a name twice."""


def _names_once(pairs):
    """Return a JSON object as a dictionary.

    A name that occurs twice is an error, because different readers would see different values.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Twice
    return found


LEDGER = Command(
    name="ledger",
    description="Print the releases that a ledger has paid for, their total privacy loss, and\n"
    "the remaining budget. Options draw the remaining budget over time, write a\n"
    "stored release, or write an extract that can be checked without the ledger. The\n"
    "command spends nothing. A ledger contains no records.",
    epilog="examples:\n  python -m sklearn_dptda ledger budget.db\n"
    "  python -m sklearn_dptda ledger budget.db --picture\n"
    "  python -m sklearn_dptda ledger budget.db --release 2 -o release.zip\n"
    "  python -m sklearn_dptda ledger budget.db --extract -o december.json\n"
    "  python -m sklearn_dptda ledger december.json --check november.json",
    add_arguments=_add_ledger,
    run=_print_ledger,
)
