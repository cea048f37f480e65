"""How a text file of rows is written, and its cells.

clevercsv proposes the separator of tables of texts, and numbers decide it where every cell is one.
The decimal mark and the header, which no library reports, follow from the cells. What no file can
tell, such as whether ``36,8`` is one number, is asked for.
"""

import codecs
import csv
import io
import re
from collections import Counter
from typing import NamedTuple

import numpy as np

# Bytes at the start of a file that name its encoding.
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Windows-1252 has five unused bytes, which Latin-1 reads.
_ENCODINGS = ("utf-8", "cp1252", "latin-1")
# Largest share of control characters, and those that occur in texts.
_MOST_CONTROLS, _CONTROLS = 1e-3, frozenset(b"\t\n\v\f\r\x1a\x1b")
# Separators by the words for them, in the order in which they are tried; a blank stands for any
# white space, and nothing for a single column.
SEPARATORS = {";": ";", "tab": "\t", "|": "|", ",": ",", "space": " ", "none": ""}
# Lines and characters from which the format is guessed. clevercsv takes the square of the length of
# the longest cell.
_SAMPLED_LINES, _SAMPLED, _LONGEST_CELL = 200, 1 << 16, 1000
_COMMENT = re.compile(r"\s*(#|%|//)")
# The line by which a spreadsheet program states the separator of a file.
_STATED = re.compile(r'"?sep=(.)"?\n', re.IGNORECASE)
_NUMBERS = {
    mark: re.compile(
        rf"[+-]?(\d+|[1-9]\d{{0,2}}({re.escape(group)}\d{{3}})+)({re.escape(mark)}\d*)?([eE][+-]?\d+)?"
        rf"|[+-]?{re.escape(mark)}\d+([eE][+-]?\d+)?"
    )
    for mark, group in ((".", ","), (",", "."))
}
_DATE = re.compile(
    r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}([ T]\d{1,2}:\d{2}(:\d{2})?.*)?|\d{1,2}:\d{2}(:\d{2})?"
)
# A number whose mark may be that of the decimals or of the thousands.
_UNCLEAR = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")
# Words for a number that is missing, in lower case and without dashes and similar characters.
_MISSING = {"", "na", "n/a", "nan", "null", "none", "nil", "missing", "unknown", "inf", "infinity"}


class TextFormat(NamedTuple):
    """How a text file is written: ``n_before`` rows before ``n_headers`` rows of names."""

    encoding: str
    separator: str
    decimal: str
    n_headers: int
    n_before: int = 0

    def __str__(self):
        word = next((w for w, s in SEPARATORS.items() if s == self.separator), self.separator)
        return f"--separator {word!r} --decimal {self.decimal!r} --encoding {self.encoding}"


class _Reading(NamedTuple):
    """The rows of a sample as a separator and a decimal mark give them."""

    separator: str
    decimal: str
    rows: list[list[str]]
    width: int
    # Shares of the rows of this width, and of the cells that are numbers, dates or gaps.
    even: float
    known: float

    @property
    def is_certain(self):
        return self.even == self.known == 1

    @property
    def score(self):
        # Words in a column of texts are separated by blanks as well.
        doubt = 0.25 if self.separator == " " else 0.0
        score = self.even * (self.known + 0.3) - doubt
        return self.is_certain, self.even > 0.95, score, self.width


def is_missing(cell):
    """Whether a text stands for a number that is missing."""
    return cell.strip(".?*-_# ").lower() in _MISSING


def is_empty(cell):
    """Whether a text is no value of a list of categories: an answer may be "none" or "unknown"."""
    return cell.strip().lower() in ("", "na", "n/a", "nan", "null", "?")


def as_number_text(cell, decimal):
    """The text of a number in Python's notation; other texts are returned unchanged."""
    if not isinstance(cell, str) or not _NUMBERS[decimal].fullmatch(cell):
        return cell
    group = "," if decimal == "." else "."
    return cell.replace(group, "").replace(decimal, ".")


def decoded(path, encoding=None):
    """Return the text of a file, with line feeds alone at the ends of lines, and its encoding."""
    raw = path.read_bytes()
    encoding = encoding or _encoding(raw)
    if encoding is None:
        raise ValueError(
            f"{path} is not a text file. If it is one, pass its encoding by --encoding, such as "
            "utf-16 or cp1250."
        )
    try:
        text = raw.decode(encoding)
    except LookupError:
        raise ValueError(f"--encoding: there is no encoding {encoding!r}.") from None
    except UnicodeError:
        raise ValueError(f"{path} is not a text file in the encoding {encoding}.") from None
    return text.replace("\r\n", "\n").replace("\r", "\n"), encoding


def _encoding(raw):
    for mark, name in _MARKS.items():
        if raw.startswith(mark):
            return name
    controls = sum(raw.count(byte) for byte in range(32) if byte not in _CONTROLS)
    if b"\0" in raw or controls > _MOST_CONTROLS * len(raw):
        return None
    for name in _ENCODINGS:
        try:
            raw.decode(name)
        except UnicodeDecodeError:
            continue
        return name
    raise AssertionError("Latin-1 reads all bytes.")


def read_cells(path, *, separator=None, decimal=None, encoding=None, header=None, pairs=False):
    """Return the names of a text file, its cells, how it is written, and notes on that.

    What is None is guessed. ``header`` says whether there is a row of names. With ``pairs``, two
    numbers with a comma between them are two cells. A ``ValueError`` says what cannot be told, and
    quotes no cell.
    """
    text, encoding = decoded(path, encoding)
    if stated := _STATED.match(text):
        text, separator = text[stated.end() :], separator or stated[1]
    text, comments = _without_comments(text)
    sample = _sample(text)
    if not sample.strip():
        raise ValueError(f"{path} is empty.")
    best = _format(path, sample, separator, decimal, pairs)
    if best.separator == "" and separator is None:
        # Raise the error of a table whose quotation marks are wrong, if it is one.
        for each in {",", ";", "\t"}.intersection(sample):
            _rows(text, each, path)
    rows = _without_last(_rows(text, best.separator, path), best.width)
    n_before = _n_before(rows, best)
    n_headers = 0 if header is False else _n_headers(best)
    rows = rows[n_before:]
    if header:
        rows, n_headers = _stated_header(path, rows, n_before, n_headers, comments, best)
    if decimal is None and _is_unclear(best._replace(rows=rows)):
        raise _unclear(path)
    names = rows[0] if n_headers else None
    rows = rows[n_headers:]
    if not rows:
        raise ValueError(f"{path} has a header but no rows.")
    if names is not None and len(names) == len(rows[0]) - 1:
        # Programs leave out the name of a column that numbers the rows, or write a separator
        # behind the last cell.
        is_open = not any(row[-1] for row in rows)
        names = [*names, ""] if is_open else ["", *names]
    width = len(rows[0] if names is None else names)
    if other := sum(len(row) != width for row in rows):
        raise ValueError(
            f"{path} has rows of different lengths: {other:,} of {len(rows):,} do not have the "
            f"{width} cells of the first row. Put quotation marks around cells that contain the "
            "separator, or pass another --separator."
        )
    found = TextFormat(encoding, best.separator, best.decimal, n_headers, n_before)
    cells = np.array(rows, dtype=object).reshape(len(rows), -1)
    return names, cells, found, list(_notes(path, found, header, len(comments)))


def _without_comments(text):
    """The text behind the comments at its start, and their lines.

    Further down, a line that looks like a comment may be a record.
    """
    lines = text.split("\n")
    n = next((i for i, line in enumerate(lines) if line.strip() and not _COMMENT.match(line)), 0)
    return "\n".join(lines[n:]), [line for line in lines[:n] if line.strip()]


def _stated_header(path, rows, n_before, n_headers, comments, best):
    """The rows with the names that are said to be in the first row, and the number of headers.

    Names are published, so a record must never be taken for them. Some programs write the names as
    a comment.
    """
    if n_before:
        raise ValueError(
            f"the first row of {path} does not have the {best.width} cells of the table, so it "
            "cannot contain the names of the columns. Remove it, or pass --no-header."
        )
    if comments:
        stated = _rows(_COMMENT.sub("", comments[-1]), best.separator, path)
        if stated and len(stated[0]) == best.width:
            return [stated[0], *rows], 1
    return rows, max(n_headers, 1)


def _without_last(rows, width):
    """The rows, without an empty cell behind the last column."""
    return [row[:-1] if len(row) == width + 1 and not row[-1] else row for row in rows]


def _notes(path, found, header, n_comments):
    """Yield what was guessed and could surprise."""
    if n_comments:
        yield f"{n_comments} line(s) of comments at the start of {path} are left out."
    if found.encoding not in ("utf-8", "utf-8-sig"):
        yield f"{path} is read in the encoding {found.encoding}. For another, pass --encoding."
    if found.decimal == ",":
        yield f"numbers of {path} have decimal commas. If they have not, pass --decimal '.'."
    if found.n_before:
        yield f"{found.n_before} row(s) with fewer cells before the table are left out."
    if (header is None and found.n_headers) or found.n_headers > 1:
        more = f", and {found.n_headers - 1} more are left out" if found.n_headers > 1 else ""
        yield (
            f"the first row of {path} is taken as the names of the columns{more}. If it is a "
            "record, pass --no-header."
        )


def _sample(text):
    lines = text.split("\n", _SAMPLED_LINES)[:_SAMPLED_LINES]
    sample = "\n".join(lines)
    if len(sample) > _SAMPLED and "\n" in sample[:_SAMPLED]:
        return sample[: sample.rindex("\n", 0, _SAMPLED)]
    return sample


def _rows(text, separator, path):
    """The cells of all rows that have one."""
    lines = text.split("\n")
    if separator == "":
        rows = [[re.sub(r'^"(.*)"$', r"\1", line.strip())] for line in lines]
    elif separator == " ":
        rows = [re.findall(r'"[^"]*"|\S+', line) for line in lines]
        rows = [[cell.strip('"') for cell in row] for row in rows]
    else:
        reader = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True)
        try:
            rows = [[cell.strip() for cell in row] for row in reader]
        except csv.Error:
            raise ValueError(f"{path} is not a table: a quotation mark may be missing.") from None
    # Cells that are all empty are a row, and a line without cells is none.
    return [row for row in rows if len(row) > 1 or any(row)]


def _format(path, sample, separator, decimal, pairs):
    """The best reading of a sample, or a ValueError that names the option that decides it."""
    marks = [decimal] if decimal else [".", ","]
    if separator is None:
        tried = [s for s in SEPARATORS.values() if not s.strip() or s in sample]
    else:
        tried = [SEPARATORS.get(separator, separator)]
        if len(tried[0]) > 1:
            raise ValueError(f"--separator takes one character or {', '.join(SEPARATORS)}.")
    found = []
    for each in tried:
        readings = [r for mark in marks if (r := _reading(sample, each, mark, path)) is not None]
        if readings:
            found.append(max(readings, key=lambda r: r.known))
    if not found:
        raise ValueError(f"{path} is empty.")
    best = _best(path, found, separator, decimal, pairs, sample)
    if decimal is None and _is_unclear(best):
        raise _unclear(path)
    return best


def _unclear(path):
    return ValueError(
        f"numbers of {path} such as 1.234 or 1,234 may have a decimal mark or one of the "
        "thousands. Pass --decimal '.' or --decimal ','."
    )


def _best(path, found, separator, decimal, pairs, sample):
    single = next((r for r in found if r.separator == ""), None)
    if separator is not None:
        return found[0]
    wide = [r for r in found if r.width > 1 and r.even > 0.8]
    if single is not None and not pairs:
        commas = _reading(sample, "", ",", path)
        pair = next((r for r in wide if r.separator == "," and r.is_certain), None)
        # Pairs of whole numbers, or one number with a decimal comma; a name tells which.
        if pair is not None and pair.width == 2 and commas.is_certain and decimal != ".":
            first = single.rows[0][0]
            if decimal == "," or not re.match(r"[-+\d,]", first):
                return pair if "," in first and decimal is None else commas
            if not _NUMBERS[","].fullmatch(first):
                return pair
            raise ValueError(
                f"rows of {path} such as 36,8 may be one number or two. Pass --separator none, or "
                "--separator ','."
            )
    if not wide:
        # Rows of different lengths are refused later, with their numbers.
        uneven = [r for r in found if r.width > 1 and r.even >= 0.5 and r.separator != " "]
        return max(uneven or [single], key=lambda r: r.even)
    best = max(wide, key=lambda r: r.score)
    if best.is_certain or len(wide) == 1 or _proposed(sample) == best.separator:
        return best
    raise ValueError(
        f"the separator of {path} is not clear. Pass --separator, such as ';', ',', tab or space."
    )


def _reading(sample, separator, decimal, path):
    try:
        rows = _rows(sample, separator, path)
    except ValueError:
        return None
    if not rows:
        return None
    # A title or notes may stand before the table.
    body = rows[max(len(rows) // 4, min(len(rows) - 1, 1)) :]
    width = Counter(map(len, body)).most_common(1)[0][0]
    rows = _without_last(rows, width)
    cells = [cell for row in body if len(row) == width for cell in row]
    known = sum(_is_value(cell, decimal) or is_missing(cell) for cell in cells)
    even = sum(len(row) == width for row in body) / len(body)
    return _Reading(separator, decimal, rows, width, even, known / max(len(cells), 1))


def _is_value(cell, decimal):
    return bool(_NUMBERS[decimal].fullmatch(cell) or _DATE.fullmatch(cell))


def _is_unclear(reading):
    """Whether each number with a mark has three digits behind it, as thousands have.

    Points between commas, blanks or tabs are decimal marks.
    """
    cells = [cell for row in reading.rows for cell in row if len(row) == reading.width]
    marked = [c for c in cells if re.search("[.,]", c) and _NUMBERS[reading.decimal].fullmatch(c)]
    if reading.separator not in (";", "|") and not any("," in cell for cell in marked):
        return False
    return bool(marked) and all(_UNCLEAR.fullmatch(cell) for cell in marked)


def _proposed(sample):
    """The separator that clevercsv proposes, or None."""
    import clevercsv

    if max(map(len, re.split(r"[,;\t|\s]+", sample))) > _LONGEST_CELL:
        return None
    try:
        found = clevercsv.Sniffer().sniff(sample, delimiters=list(SEPARATORS.values()))
    except (clevercsv.Error, ValueError):
        return None
    return None if found is None else found.delimiter


def _n_before(rows, reading):
    """Number of rows with fewer cells before the table."""
    first = next((i for i, row in enumerate(rows) if len(row) == reading.width), 0)
    # The name of a column that numbers the rows may be missing.
    before = rows[first - 1] if first else []
    is_short = 1 < len(before) == reading.width - 1
    return first - (is_short and not any(_is_value(cell, reading.decimal) for cell in before))


def _n_headers(reading):
    """Number of rows before the first record.

    A record has a value in at least half of the columns that contain numbers or dates further down.
    """

    def is_value(cell):
        return _is_value(cell, reading.decimal)

    full = reading.rows[_n_before(reading.rows, reading) :]
    body = [row for row in full[len(full) // 2 :] if len(row) == reading.width]
    columns = [[c for c in column if not is_missing(c)] for column in zip(*body, strict=True)]
    numeric = [
        j for j, column in enumerate(columns) if column and _mostly(map(is_value, column), 0.8)
    ]
    if not numeric:
        return int(_is_header(full[0], is_value))
    for n, row in enumerate(full[:20]):
        shift = reading.width - len(row)
        cells = [row[j - shift] for j in numeric if j >= shift]
        names = [not is_value(cell) and not is_missing(cell) for cell in cells]
        if sum(names) <= sum(map(is_value, cells)) or not any(names):
            return n if n == 0 or any(map(is_value, cells)) else 1
    return 1


def _mostly(flags, share):
    flags = list(flags)
    return sum(flags) >= share * len(flags)


def _is_header(row, is_value):
    """Whether a first row is a header: it contains no number and no gap.

    A gap in the first cell is allowed, because the column of an index often has no name.
    """
    first, *rest = row
    named = rest or [first]
    return not is_value(first) and all(not is_missing(c) and not is_value(c) for c in named)
