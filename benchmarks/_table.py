"""Tables of results as Markdown."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A title, the columns, the rows, and a note for the reader."""

    title: str
    columns: tuple
    rows: list
    note: str = ""

    def __str__(self):
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        body = "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)
        note = f"\n{self.note}\n" if self.note else ""
        return f"### {self.title}\n\n{body}\n{note}"


def _cell(value):
    return f"{value:.3g}" if isinstance(value, float) else str(value).replace("|", "\\|")
