"""How a text file of rows is written, and its cells.

Every line is a record, unless an option says otherwise: the reader proposes options, and leaves
nothing out by itself. pandas reads the cells. The separator and the decimal mark follow from the
first lines. What no file can tell, such as whether ``36,8`` is one number, is asked for.
"""

import codecs
import csv
import io
import re
from collections import Counter
from functools import partial
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
# Separators by the words for them; a blank stands for any white space, and nothing for a single
# column.
SEPARATORS = {";": ";", "tab": "\t", "|": "|", ",": ",", "space": " ", "none": ""}
# Lines and characters from which the separator and the decimal mark follow.
_SAMPLED_LINES, _SAMPLED = 200, 1 << 16
# Marks of lines that may be comments.
_COMMENT = re.compile(rb"^[ \t]*(#|%|//)", re.MULTILINE)
# The line by which a spreadsheet program states the separator of a file.
_STATED = re.compile(rb'"?sep=(.)"?\n', re.IGNORECASE)
_NUMBERS = {
    mark: re.compile(
        rf"[+-]?(\d+|[1-9]\d{{0,2}}({re.escape(group)}\d{{3}})+)({re.escape(mark)}\d*)?([eE][+-]?\d+)?"
        rf"|[+-]?{re.escape(mark)}\d+([eE][+-]?\d+)?"
    )
    for mark, group in ((".", ","), (",", "."))
}
_DATE = re.compile(
    r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}([ T]\d{1,2}:\d{2}(:\d{2})?.*)?"
    r"|\d{1,2}:\d{2}(:\d{2})?( ?[AaPp][Mm])?"
)
# A number whose mark may be that of the decimals or of the thousands.
_UNCLEAR = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")
# Words for a number that is missing, in lower case and without dashes and similar characters.
_MISSING = {"", "na", "n/a", "nan", "null", "none", "nil", "missing", "unknown", "inf", "infinity"}


class Refusal(ValueError):
    """A file cannot be read. ``proposal`` has options with which it may be read."""

    def __init__(self, message, **proposal):
        super().__init__(message)
        self.proposal = proposal


class TextFormat(NamedTuple):
    """How a text file is written, as far as options state it."""

    # None for the rows of a sheet.
    encoding: str | None
    separator: str
    decimal: str
    skip_lines: int = 0
    skip_last: int = 0
    comment: str | None = None

    def __str__(self):
        word = next((w for w, s in SEPARATORS.items() if s == self.separator), self.separator)
        text = f"--separator {word!r} --decimal {self.decimal!r} --encoding {self.encoding}"
        stated = [
            text * (self.encoding is not None),
            f"--skip-lines {self.skip_lines}" * bool(self.skip_lines),
            f"--skip-last {self.skip_last}" * bool(self.skip_last),
            "" if self.comment is None else f"--comment {self.comment!r}",
        ]
        return " ".join(filter(None, stated))

    def without(self, rows, n_rows, has_names=False):
        """Advice to leave out some rows, if they are the first or the last, and its option."""
        n = len(rows)
        if not 0 < n < n_rows:
            return "", {}
        if rows == list(range(n)):
            n += self.skip_lines
            what = f"the first {n} line(s) are neither records nor names."
            if has_names:
                what = f"there are {n + 1} lines of names, so that the last of them counts."
            return f"Pass --skip-lines {n} if {what}", {"skip_lines": n}
        if rows == list(range(n_rows - n, n_rows)):
            n += self.skip_last
            return f"Pass --skip-last {n} if the last {n} line(s) are no records.", {"skip_last": n}
        return "", {}


class _Reading(NamedTuple):
    """The rows of a sample as a separator and a decimal mark give them."""

    separator: str
    decimal: str
    rows: list[list[str]]
    width: int
    # Whether all rows have this width, and all cells are numbers, dates or gaps.
    is_even: bool
    is_known: bool
    # Numbers of columns and of cells that are so.
    n_columns: int
    n_known: int


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


def decoded(path, raw, encoding=None):
    """Return a text in UTF-8 with line feeds alone at the ends of lines, and its encoding."""
    encoding = encoding or _encoding(raw)
    if encoding is None:
        raise Refusal(
            f"{path} is not a text file. If it is one, pass its encoding by --encoding, such as "
            "utf-16 or cp1250."
        )
    try:
        text = raw.decode(encoding)
    except LookupError:
        raise Refusal(f"--encoding: there is no encoding {encoding!r}.") from None
    except UnicodeError:
        raise Refusal(f"{path} is not a text file in the encoding {encoding}.") from None
    raw = raw if encoding == "utf-8" else text.encode()
    if b"\r" in raw:
        raw = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return raw, encoding


def _encoding(raw):
    for mark, name in _MARKS.items():
        if raw.startswith(mark):
            return name
    controls = len(raw) - len(raw.translate(None, bytes(set(range(32)) - _CONTROLS)))
    if b"\0" in raw or controls > _MOST_CONTROLS * len(raw):
        return None
    for name in _ENCODINGS:
        try:
            raw.decode(name)
        except UnicodeDecodeError:
            continue
        return name
    raise AssertionError("Latin-1 reads all bytes.")


def read_text(
    path,
    bytes_of,
    *,
    separator=None,
    decimal=None,
    encoding=None,
    header=None,
    skip_lines=0,
    skip_last=0,
    comment=None,
    texts=(),
    is_ragged=False,
):
    """Return the names of a text file, its columns, how it is written, and notes on that.

    ``bytes_of`` returns the bytes of the file, which a caller would otherwise keep in memory.
    A column is an array of numbers if all of its cells are numbers or empty, and otherwise of the
    texts of its cells, as are those that ``texts`` names. With ``is_ragged``, rows are edges: only
    their first two cells are needed, and two numbers with a comma between them are two cells. A
    ``ValueError`` says what cannot be told, and quotes no cell.
    """
    raw, encoding = decoded(path, bytes_of(path), encoding)
    n_lines = raw.count(b"\n") + (not raw.endswith(b"\n"))
    if stated := _STATED.match(raw):
        raw, separator = raw[stated.end() :], separator or stated[1].decode()
    raw, left_out = _records(path, raw, skip_lines, skip_last, comment, header)
    first = None
    if header:
        line, _, raw = raw.partition(b"\n")
        # Some programs write the names as a comment.
        first, left_out["of names"] = _COMMENT.sub(b"", line, count=1).decode(), 1
    if not raw.strip():
        raise Refusal(f"{path} " + ("is empty." if first is None else "has names but no rows."))
    best = _format(path, raw, separator, decimal, first, is_ragged)
    if header is None and not is_ragged and abs(len(best.rows[0]) - best.width) > 1:
        raise Refusal(
            f"the first line of {path} has {len(best.rows[0])} cell(s), and the others have "
            f"{best.width}. Pass --skip-lines {skip_lines + 1} if it is neither a record nor "
            "names.",
            skip_lines=skip_lines + 1,
        )
    if header is None and not is_ragged and may_be_names(best.rows, best.decimal):
        raise Refusal(
            f"the first line of {path} may contain the names of the columns. Pass --header if it "
            "does, or --no-header if it is a record.",
            header=True,
        )
    found = TextFormat(encoding, best.separator, best.decimal, skip_lines, skip_last, comment)
    names = None if first is None else _rows(first, best.separator, path)[0]
    given = names or []
    places = {given.index(t) if t in given else int(t) if t.isdecimal() else -1 for t in texts}
    measured = partial(_width, path, raw, best, is_ragged, found, first is None)
    width = measured() if is_ragged or not _is_even(raw, best) else best.width
    try:
        columns = _columns(raw, best, width, places)
    except (ValueError, OverflowError):
        # The errors of pandas, which quote cells.
        measured()
        raise _broken(path) from None
    if decimal is None and not is_ragged and _is_unclear(path, raw, best):
        raise _unclear(path)
    if names is not None:
        names = _names(path, names, columns)
    return names, columns, found, list(_notes(path, found, n_lines, len(columns[0]), left_out))


def _records(path, raw, skip_lines, skip_last, comment, header):
    """Return the lines that are records or names, and how many others there are of each kind."""
    left_out = {}
    if min(skip_lines, skip_last) < 0 or comment == "":
        raise Refusal(
            "--skip-lines and --skip-last take a number of lines, and --comment a mark, or none."
        )
    if skip_lines:
        lines = raw.split(b"\n", skip_lines)
        raw, left_out["skipped"] = lines[-1] if len(lines) > skip_lines else b"", skip_lines
    if comment not in (None, "none"):
        mark = re.escape(comment.encode())
        raw, left_out["of comments"] = re.subn(rb"(?m)^[ \t]*" + mark + rb".*\n?", b"", raw)
    if raw.startswith((b" ", b"\n")) or b"\n " in raw or b"\n\n" in raw:
        raw, left_out["without a cell"] = re.subn(rb"(?m)^ *\n", b"", raw)
    if skip_last:
        lines = raw.rstrip(b"\n").rsplit(b"\n", skip_last)
        raw, left_out["skipped"] = b"\n".join(lines[:-skip_last]), skip_lines + skip_last
    if comment is None and any(mark in raw for mark in (b"#", b"%", b"//")):
        found = _COMMENT.search(raw, raw.find(b"\n") + 1 if header else 0)
        if found is not None:
            mark = found[1].decode()
            raise Refusal(
                f"{path} has lines that begin with {mark}. Pass --comment '{mark}' if these lines "
                "are no records, or --comment none if they are records.",
                comment=mark,
            )
    return raw, left_out


def _notes(path, found, n_lines, n_records, left_out):
    """Yield what was read, and what was guessed and could surprise."""
    others = "".join(f", {n:,} {what}" for what, n in left_out.items() if n)
    yield f"{path}: {n_lines:,} line(s), {n_records:,} record(s){others}."
    if found.encoding not in ("utf-8", "utf-8-sig"):
        yield f"{path} is read in the encoding {found.encoding}. For another, pass --encoding."
    if found.decimal == ",":
        yield f"numbers of {path} have decimal commas. If they have not, pass --decimal '.'."


def _names(path, names, columns):
    """Return a name for each column from the cells of the first line."""
    width = len(columns)
    if len(names) == width + 1 and not names[-1]:
        return names[:-1]
    if len(names) == width - 1:
        # Programs leave out the name of a column that numbers the rows, or write a separator
        # behind the last cell.
        is_open = columns[-1].dtype.kind == "f" and np.isnan(columns[-1]).all()
        return [*names, ""] if is_open else ["", *names]
    if len(names) != width or names.count("") > 1:
        raise Refusal(
            f"the first line of {path} does not have {width} names for the columns of the table, "
            "so it cannot contain the names of the columns. Pass --no-header if it is a record, or "
            "--skip-lines with the number of lines before the names."
        )
    return names


def _sample(raw):
    """Return the first lines, as far as they are whole."""
    end = max(raw.rfind(b"\n", 0, _SAMPLED), raw.find(b"\n"))
    if end < 0 or len(raw) <= _SAMPLED:
        end = len(raw)
    return "\n".join(raw[:end].decode().split("\n")[:_SAMPLED_LINES])


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
            raise _broken(path) from None
    # Cells that are all empty are a row, and a line without cells is none.
    return [row for row in rows if len(row) > 1 or any(row)]


def _broken(path):
    return Refusal(f"{path} is not a table: a quotation mark may be missing.")


def _format(path, raw, separator, decimal, first, is_ragged):
    """The best reading of the first lines, or a ValueError that names what decides it."""
    sample, marks = _sample(raw), [decimal] if decimal else [".", ","]
    if separator is None:
        tried = [s for s in SEPARATORS.values() if not s.strip() or s in sample]
    else:
        tried = [SEPARATORS.get(separator, separator)]
        if len(tried[0]) > 1:
            raise Refusal(f"--separator takes one character or {', '.join(SEPARATORS)}.")
    found = []
    for each in tried:
        readings = [r for mark in marks if (r := _reading(sample, each, mark, path)) is not None]
        if readings:
            found.append(max(readings, key=lambda r: r.n_known))
    if not found:
        raise _broken(path)
    if separator is not None:
        return found[0]
    best = _best(path, found, is_ragged)
    single = next(r for r in found if r.separator == "")
    is_pair = best.separator == "," and best.width == 2 and not is_ragged
    if is_pair and decimal != "." and all(_NUMBERS[","].fullmatch(row[0]) for row in single.rows):
        # Pairs of whole numbers, or one number with a decimal comma; a name tells which.
        if decimal == "," or (first is not None and "," not in first):
            return single._replace(decimal=",")
        if first is None:
            raise Refusal(
                f"rows of {path} such as 36,8 may be one number or two. Pass --separator none, or "
                "--separator ','."
            )
    return best


def _reading(sample, separator, decimal, path):
    try:
        rows = _rows(sample, separator, path)
    except ValueError:
        return None
    width = Counter(map(len, rows)).most_common(1)[0][0]
    # The first line may contain names.
    body = rows[1:] or rows
    known = [[_is_value(cell, decimal) or is_missing(cell) for cell in row] for row in body]
    is_even = all(len(row) == width for row in body)
    is_known, n_known = all(map(all, known)), sum(map(sum, known))
    n_columns = sum(map(all, zip(*known, strict=False)))
    return _Reading(separator, decimal, rows, width, is_even, is_known, n_columns, n_known)


def _best(path, found, is_ragged):
    """The reading in which all rows have equally many cells, if possible with numbers alone."""
    single = next(r for r in found if r.separator == "")
    wide = [r for r in found if r.width > 1 and (r.is_even or is_ragged)]
    # Blanks stand beside tabs and in texts as well.
    wide = [r for r in wide if r.separator != " "] or wide
    certain = [r for r in wide if r.is_known]
    if len(certain) == 1 or (is_ragged and certain):
        return certain[0]
    if wide:
        best = max(wide, key=lambda r: r.n_columns)
        if sum(r.n_columns == best.n_columns for r in wide) == 1:
            return best
        raise Refusal(
            f"the separator of {path} is not clear. Pass --separator, such as ';', ',', tab or "
            "space."
        )
    # Rows of different lengths are refused later, with their numbers.
    uneven = [r for r in found if r.width > 1 and r.separator != " "]
    return max(uneven, key=lambda r: r.n_known) if uneven and not single.is_known else single


def _is_value(cell, decimal):
    return bool(_NUMBERS[decimal].fullmatch(cell) or _DATE.fullmatch(cell))


def may_be_names(rows, decimal="."):
    """Whether the first row could be names: there is no number where numbers are further down."""
    first, *rest = rows
    if not rest:
        return not any(_is_value(cell, decimal) for cell in first)
    known = 0
    for cell, column in zip(first, zip(*rest, strict=False), strict=False):
        values = [_is_value(c, decimal) for c in column if not is_missing(c)]
        if 2 * sum(values) > len(values):
            known += 1
            if not (_is_value(cell, decimal) or is_missing(cell)):
                return True
    return known == 0


def _unclear(path):
    return Refusal(
        f"numbers of {path} such as 1.234 or 1,234 may have a decimal mark or one of the "
        "thousands. Pass --decimal '.' or --decimal ','."
    )


def _is_unclear(path, raw, reading):
    """Whether each number with a mark has three digits behind it, as thousands have.

    Points between commas, blanks or tabs are decimal marks.
    """
    for rows in (reading.rows, None):
        if rows is None:
            rows = _rows(raw.decode(), reading.separator, path)
        marked = [
            cell
            for row in rows
            for cell in row
            if ("." in cell or "," in cell) and _NUMBERS[reading.decimal].fullmatch(cell)
        ]
        if reading.separator not in (";", "|") and not any("," in cell for cell in marked):
            return False
        if marked and not all(map(_UNCLEAR.fullmatch, marked)):
            return False
    return bool(marked)


def _is_even(raw, reading):
    """Whether all rows have equally many cells, or one has more, which pandas refuses."""
    separator = reading.separator.encode()
    n_rows = raw.count(b"\n") + (not raw.endswith(b"\n"))
    is_plain = separator != b" " and b'"' not in raw
    return not separator or (is_plain and raw.count(separator) == (reading.width - 1) * n_rows)


def _width(path, raw, reading, is_ragged, found, has_no_names):
    """The number of cells of each row; ValueError if rows have different numbers of them."""
    separator, width = reading.separator, reading.width
    if separator == " " and b'"' not in raw:
        lengths = [n for n in map(len, map(bytes.split, raw.split(b"\n"))) if n]
    else:
        lengths = [len(row) for row in _rows(raw.decode(), separator, path)]
    if is_ragged and min(lengths) > 1:
        return max(lengths)
    other = [place for place, length in enumerate(lengths) if length != width]
    if not other:
        return width
    message = (
        f"{path} has rows of different lengths: {len(other):,} of {len(lengths):,} do not have the "
        f"{width} cells of the others."
    )
    advice, proposal = found.without(other, len(lengths))
    if proposal and (has_no_names or "skip_last" in proposal):
        raise Refusal(f"{message} {advice}", **proposal)
    raise Refusal(
        f"{message} Put quotation marks around cells that contain the separator, or pass another "
        "--separator."
    )


def before_pandas_31(**options):
    """Return options whose values have become the only ones in pandas 3.1."""
    import pandas as pd

    return options if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1) else {}


def _columns(raw, reading, width, texts):
    """Return the columns: arrays of numbers where all cells are, and of texts."""
    import pandas as pd

    marks = {" ": r"\s+", "": "\x1f"}
    read = partial(
        pd.read_csv,
        sep=marks.get(reading.separator, reading.separator),
        header=None,
        names=range(width),
        index_col=False,
        skipinitialspace=True,
        keep_default_na=False,
        encoding="utf-8",
        low_memory=False,
        **before_pandas_31(float_precision="round_trip"),
    )
    frame = read(
        io.BytesIO(raw),
        decimal=reading.decimal,
        na_values=[""],
        dtype=dict.fromkeys(texts & set(range(width)), str),
    )
    # Words such as True, and integers of any length, stay as they are written.
    others = [j for j in range(width) if frame[j].dtype.kind not in "iuf"]
    if changed := [j for j in others if not isinstance(frame[j].dtype, pd.StringDtype)]:
        written = read(io.BytesIO(raw), usecols=changed, dtype=str)
        frame = frame.drop(columns=changed).join(written)
    return [
        frame[j].fillna("").str.strip().to_numpy(dtype=object)
        if j in others
        else frame[j].to_numpy()
        for j in range(width)
    ]
