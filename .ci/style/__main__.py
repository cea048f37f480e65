"""Check words, layers and pointers of the project: ``python .ci/style``.

Each problem is printed on one line. The exit status is 1 if there is any. The rules only read
files: of programs, syntax trees. ``tests/test_style.py`` has a broken text for each rule.
"""

import sys
from pathlib import Path

import house
import pointers
import words

ROOT = Path(__file__).resolve().parents[2]
# Each rule takes the folder of a project, and yields files with what is wrong in them.
RULES = (
    # What stands in doc/style.md as wrong, and folders of one machine.
    words.avoided_words,
    words.old_sentences,
    # Subpackages import only from lower floors of the map in CONTRIBUTING.md.
    house.upward_imports,
    house.cycles,
    house.code_that_is_ruled_out,
    # From code to proofs, from proofs to code and tests, and from pages to files.
    pointers.proofs_that_do_not_exist,
    pointers.statements_without_code_and_test,
    pointers.code_that_does_not_point_back,
    pointers.names_that_do_not_exist,
    pointers.files_that_do_not_exist,
    pointers.faults_that_cannot_be_planted,
)


def main():
    """Print the problems, and return the exit status."""
    problems = [problem for rule in RULES for problem in rule(ROOT)]
    for path, what in problems:
        print(f"{path.relative_to(ROOT).as_posix()}: {what}")
    if not problems:
        print(f"style: {len(RULES)} rules, no problems")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
