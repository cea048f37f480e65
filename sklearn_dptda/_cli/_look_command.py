"""The command ``look``: what a file contains, and the commands that release it."""

import shlex
from pathlib import Path
from typing import Any

from sklearn_dptda._cli._command import Command
from sklearn_dptda._cli._formats import NETWORKS, suffix_of
from sklearn_dptda._cli._read_points import TABLE_ARGUMENTS, TEXT_ARGUMENTS, parsed, read_table
from sklearn_dptda._cli._terminal import say, tell
from sklearn_dptda._cli._text_table import Refusal, as_number_text, is_empty, is_missing
from sklearn_dptda.rows._look import TableFacts, column_facts

_NEXT = (
    "Replace each word in capitals by a choice that you make without looking at the data: by the "
    "meaning of a column, the answers of a form, or a code book. Bounds that you leave out are "
    "estimated privately, where a command can.",
    "  INTEGERS_OR_NOTHING: --integers with the columns that can only hold whole numbers; nothing "
    "if there are none.",
    "  MISSING_OR_NOTHING: --missing if values can be missing in such a table; nothing if they "
    "cannot. For a diagram, it is --drop-incomplete.",
    "  @FILE: @ and a file with the public list of values of a column, one per line.",
    "Which columns a command lists was read off the records: keep only those that you would list "
    "for any records.",
    "  HEADER_OR_NO_HEADER: --header if the first line contains names, which are published; "
    "--no-header if it is a record.",
)
# Largest number of categories that are listed in a command, and not in a file.
_MOST_LISTED = 20
# A single record decides whether a value is missing, or all are whole numbers, so that the printed
# command leaves these options open.
_MISSING = "MISSING_OR_NOTHING"
# Largest number of columns of a diagram on a grid.
_MOST_COORDINATES = 3
# Width of the lines of a command.
_WIDTH = 96
_READ = ("--key", "--columns", *TEXT_ARGUMENTS)


class Look(Command):
    """Show what a file contains and how it is read, and the commands that release it.

    It prints exact facts about the records, which are not private, for those who may see the
    records. It spends nothing and writes nothing.

    example:
      python -m sklearn_dptda look people.csv

    what is printed:
      how the file is written: separator, decimal mark, encoding, and header. If a line may be no
      record, it says which option decides this
      for each column: numbers, categories, dates, ids of people, and missing values
      commands for synthetic rows, clusters, a diagram or a graph, as far as the file suits them,
      with a word in capitals for each choice that must not depend on the records
    """

    name = "look"
    arguments = {name: TABLE_ARGUMENTS[name] for name in ("points", *_READ)}

    def run(self):
        args = self.args
        if suffix_of(Path(args.points)) in (*NETWORKS, ".mtx"):
            parts = ["graph", shlex.quote(args.points), "--nodes NUMBER_OR_FILE", "-o graph"]
            say("A network, which this command releases:", "", *_command(parts))
            return
        table, proposed = _proposed(args.points, self.stated(_READ))
        labels = [label.short() for label in table.labels]
        facts = TableFacts(
            len(table.columns[0]),
            [
                column_facts(name, _values(column, table.decimal))
                for name, column in zip(labels, table.columns, strict=True)
            ],
        )
        say(*facts.lines())
        if advice := table.advice():
            tell(f"note: {advice}")
        if table.form is not None:
            say("", f"The file is read with {table.form} {_header(table)}.")
        chosen = proposed.get("columns", args.columns)
        found = suggestions(args.points, facts, table, chosen, "header" in proposed, args.key)
        if not found:
            say("", "No command releases such a file as it is.")
            return
        text = " ".join(line for command in found for line in command)
        # The words that do not occur need no explanation.
        say("", *(s for s in _NEXT if s[0] != " " or s.strip().partition(":")[0] in text))
        for command in found:
            say("", *command)


def _proposed(path, how):
    """Return a table as it seems to be meant, and the options that were proposed for this."""
    proposed: dict[str, Any] = {}
    while True:
        try:
            return read_table(path, **how | proposed), proposed
        except Refusal as error:
            if error.proposal.items() <= proposed.items():
                raise
            tell(f"note: {error}")
            proposed |= error.proposal


def _values(column, decimal):
    """The numbers of a column if all of its texts are numbers or gaps, and its texts otherwise."""
    if column.dtype.kind in "iuf":
        return column
    cells = column.tolist()
    numbers = [parsed(as_number_text(c, decimal)) if isinstance(c, str) else c for c in cells]
    texts = (c for n, c in zip(numbers, cells, strict=True) if n is None and isinstance(c, str))
    if all(map(is_missing, texts)):
        return numbers
    return [None if isinstance(cell, str) and is_empty(cell) else cell for cell in cells]


def suggestions(path, facts, table, columns=None, is_proposed=False, key=None):
    """Lines of commands for a file, in which the public choices are words in capitals.

    ``is_proposed`` says that the first line was taken for names, and may be a record.
    """
    words = _words_for(facts, table)
    shared = [shlex.quote(str(path))]
    if key is not None:
        shared.append(f"--key {shlex.quote(key)}")
    if table.form is not None:
        shared += filter(None, [str(table.form)])
        shared.append("HEADER_OR_NO_HEADER" if is_proposed else _header(table))
    of_edges = ["graph", *shared, "--nodes NUMBER_OR_FILE", "-o graph"]
    if (groups := facts.groups()) is not None:
        shared += ["--groups", words[groups]]
    found = []
    if _are_edges(facts, table):
        found.append(of_edges)
    features = facts.features()
    # A diagram leaves out rows with a gap, so a column that is mostly empty would leave none. A
    # column of one value has no clusters.
    most = facts.n_rows / 2
    numeric = [c for c in features if c.is_numeric and c.n_missing < most and c.n_values > 1]
    chosen = [*shared, *_columns(numeric, facts, columns, words)]
    box = ["--bounds", *["LOW HIGH"] * len(numeric)]
    if numeric:
        found.append(["cluster", *chosen, *box, _MISSING, "--epsilon 1", "-o clusters"])
    if 1 < len(numeric) <= _MOST_COORDINATES:
        found.append(["diagram", *chosen, *box, _MISSING, "--epsilon 1", "-o diagram"])
    if features:
        parts = ["synthesize", *shared, *_columns(features, facts, columns, words)]
        parts += [f"--column-bounds {words[c.name]} LOW HIGH" for c in features if c.is_numeric]
        parts += ["INTEGERS_OR_NOTHING"] * any(c.is_numeric for c in features)
        listed = [
            f"{words[c.name]}={'A,B,C' if c.n_values <= _MOST_LISTED else '@FILE'}"
            for c in features
            if not c.is_numeric
        ]
        parts += ["--categories", *listed] * bool(listed)
        found.append([*parts, _MISSING, "--epsilon 1", "-o synthetic"])
    return list(map(_command, found))


def _command(parts):
    """Lines of a command, each but the last with a backslash at its end."""
    lines = ["python -m sklearn_dptda"]
    for part in parts:
        if len(lines[-1]) + len(part) < _WIDTH:
            lines[-1] += f" {part}"
        else:
            lines.append(f"    {part}")
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]


def _header(table):
    """The option for the header."""
    return "--no-header" if table.names is None else "--header"


def _words_for(facts, table):
    """What stands for each column in options: its name, or its number where the name cannot."""
    return {
        c.name: str(label.place) if _confuses(str(c.name)) else shlex.quote(str(c.name))
        for label, c in zip(table.labels, facts.columns, strict=True)
    }


def _confuses(name):
    """Whether an option would take a name for something else."""
    return name.startswith("-") or "=" in name or "," in name or not name.strip()


def _columns(chosen, facts, given, words):
    """The option that chooses some of the columns, if it is needed."""
    if len(chosen) == len(facts.columns) and given is None:
        return []
    return ["--columns", *(words[column.name] for column in chosen)]


def _are_edges(facts, table):
    """Whether the first two columns of two or three seem to be the ends of edges."""
    first = facts.columns[:2]
    kinds = {"id", "index", "integer", "category", "text"}
    if not 2 <= len(facts.columns) <= 3 or not {c.kind for c in first} <= kinds:
        return False
    ends = [set(map(str, column.tolist())) for column in table.columns[:2]]
    return 5 * len(ends[0] & ends[1]) >= min(map(len, ends))
