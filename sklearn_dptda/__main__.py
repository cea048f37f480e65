"""Entry point of ``python -m sklearn_dptda``."""

import sys

from sklearn_dptda._cli import main

if __name__ == "__main__":
    sys.exit(main())
