"""Check the texts and the structure of the project: ``python .ci/style``.

Each problem is printed on one line. The exit status is 1 if there is any. The rules read files and
import the package, but compute nothing with it. All other checks are tests.
"""

import sys
from pathlib import Path

# The package beside these rules is checked, also where another copy is installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import hints
import house
import pages
import pointers
import project
import verdicts
import words

MODULES = (words, house, pointers, pages, verdicts, project, hints)


def main():
    """Print the problems, and return the exit status."""
    rules = [rule for module in MODULES for rule in module.RULES]
    found = 0
    for rule in rules:
        for problem in rule():
            print(problem)
            found += 1
    if not found:
        print(f"style: {len(rules)} rules, no problems")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
