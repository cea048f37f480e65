"""Verdicts on what the papers state are counted correctly, and follow from the numbers."""

import re
from collections import Counter

from _project import DOC, shown, text_of

PAGE = DOC / "reproduction.md"
# The papers that are reproduced, and the first words of the verdicts on their items.
PAPERS = ("Kang", "Byun", "Vishwanath", "Boedihardjo")
VERDICTS = {"faithful", "different", "impossible", "answered", "partly", "open", "ours"}
# Questions of a paper that are answered, partly answered and open, and how its section says so.
QUESTIONS = {
    "Kang": ([3, 4, 0], "three are answered and four in part"),
    "Boedihardjo": ([1, 1, 1], "Of the three open problems, (ii) is answered here"),
}


def reproduced(page):
    """Yield the first word, the rows of tables and the text of each section of a page."""
    for section in re.split(r"^#+ ", text_of(page), flags=re.MULTILINE)[1:]:
        lines = [line for line in section.splitlines() if line.startswith("|")]
        rows = [[c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
        # The rows below the names of columns and a rule.
        yield section.split()[0].rstrip(",:"), rows[2:], " ".join(section.split())


def counts_of_items(rows):
    """Return numbers of faithful, different and impossible items, after the number of all."""
    words = Counter(re.match(r"\w*", row[-1])[0] for row in rows)
    counts = [words[word] for word in ("faithful", "different", "impossible")]
    return [sum(counts), *counts]


def wrong_counts_of_items(page=PAGE):
    """Name papers whose verdicts are not those that the page counts."""
    found, claimed = {}, {}
    for name, rows, section in reproduced(page):
        if name in PAPERS:
            found[name] = counts_of_items(rows)
            printed = re.search(
                r"(\d+) items: (\d+) faithful, (\d+) different[^|]*?, (\d+) impossible", section
            )
            if printed is None or [*map(int, printed.groups())] != found[name]:
                items, faithful, different, impossible = found[name]
                yield (
                    f"{shown(page)}: the table of {name} has {items} items: {faithful} faithful, "
                    f"{different} different, {impossible} impossible. Write these numbers above it"
                )
        elif name == "Papers" and rows:
            claimed = {row[0].split(",")[0]: [int(number) for number in row[1:]] for row in rows}
    for name in PAPERS:
        if name not in found or claimed.get(name) != found[name]:
            yield (
                f"{shown(page)}: the first table counts {claimed.get(name)} items of {name}, and "
                f"its section has {found.get(name)}. Correct the first table"
            )
    for name in sorted(claimed.keys() - {*PAPERS}):
        yield f"{shown(page)}: {name} is not in PAPERS of .ci/style/verdicts.py. Add it"


def wrong_verdicts(page=PAGE):
    """Name unknown verdicts, and papers whose open questions are not those that are counted."""
    for name, rows, section in reproduced(page):
        if name in PAPERS:
            words = Counter(re.match(r"\w*", row[-1])[0] for row in rows)
            for word in sorted(words.keys() - VERDICTS):
                yield (
                    f'{shown(page)}: a row of {name} ends with a cell that begins with "{word}". '
                    "Begin it with a verdict"
                )
            expected, sentence = QUESTIONS.get(name, (None, ""))
            questions = [words[word] for word in ("answered", "partly", "open")]
            if expected not in (None, questions) or sentence not in section:
                yield (
                    f"{shown(page)}: the questions of {name} are {questions} (answered, partly, "
                    f'open), or "{sentence}" is not said. Correct the page, or QUESTIONS of '
                    ".ci/style/verdicts.py"
                )


def table_2(page):
    """Return the rows of Table 2, and the text of its section; nothing if it is not there."""
    tables = [(rows, section) for name, rows, section in reproduced(page) if name == "Table"]
    return tables[0] if len(tables) == 1 and len(tables[0][0]) == 32 else ([], "")


def wrong_verdicts_of_table_2(page=PAGE):
    """Name verdicts of Table 2 that do not follow from the numbers beside them."""
    rows, _ = table_2(page)
    if not rows:
        yield f"{shown(page)}: there is not one Table 2 with 32 rows. Restore it"
    for row in rows:
        # The last two columns are those of the two kinds of neighbours.
        for cell in row[-2:]:
            found = re.fullmatch(r"(above|below|unclear): (\S+) ± (\S+)", cell)
            if found is None:
                yield f'{shown(page)}: "{cell}" in Table 2 is no `verdict: mean ± error`. Fix it'
                continue
            word, mean, error = found.groups()
            # The standard deviation of a run: two standard errors of the difference.
            apart = (float(mean) - float(row[3])) / (float(error) * 20**0.5)
            right = "above" if apart > 1 else "below" if apart < -1 else "unclear"
            # Printed numbers are rounded, so that they do not decide a verdict near its limit.
            if word != right and abs(abs(apart) - 1) > 0.1:
                yield f'{shown(page)}: "{cell}" in Table 2 is {right}. Correct the verdict'


def sums_of_table_2(rows):
    """Return what the page says of Table 2, with the numbers of its rows."""
    # Verdicts under replace-one and add-remove, with six components and with more.
    six, more = (
        {
            word: [
                sum(row[kind].startswith(word) for row in rows if (row[2] == "6") == is_six)
                for kind in (-2, -1)
            ]
            for word in ("above", "below", "unclear")
        }
        for is_six in (True, False)
    )
    above, below, unclear = (
        [a + b for a, b in zip(six[word], more[word], strict=True)]
        for word in ("above", "below", "unclear")
    )
    # Two different numbers for six components would need another sentence.
    both = " and ".join(map(str, dict.fromkeys(six["above"])))
    return (
        f"Under replace-one, `DPMoGMorse` beats {above[0]} of the 32 published results, is worse "
        f"than {below[0]}, and {unclear[0]} are unclear.",
        f"Under add-remove, it beats {above[1]}, is worse than {below[1]}, and {unclear[1]} are "
        "unclear.",
        f"With six components, it beats {both} of the 8 published results under each,",
        f"With 10, 15 and 20 components, it beats {more['above'][0]} of 24 under replace-one and "
        f"{more['above'][1]} of 24 under add-remove",
        f"and is worse than {more['below'][0]} and {more['below'][1]}.",
    )


def wrong_sums_of_table_2(page=PAGE):
    """Name sentences about Table 2 whose numbers are not those of its verdicts."""
    rows, section = table_2(page)
    # Without rows, the rule above says so.
    for sentence in sums_of_table_2(rows) if rows else ():
        if sentence not in section:
            yield f'{shown(page)}: Table 2 gives "{sentence}". Write this sentence'


RULES = (
    wrong_counts_of_items,
    wrong_verdicts,
    wrong_verdicts_of_table_2,
    wrong_sums_of_table_2,
)
