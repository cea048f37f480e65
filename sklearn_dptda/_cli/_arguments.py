"""Arguments that commands share."""

import argparse
import os
from pathlib import Path


def at_least_one(text):
    """Turn an argument into a positive integer."""
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text) > 0):
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1; got {text!r}")
    return int(text)


def output_folder(name):
    """Make the folder for the results, or say why it cannot be written, before anything is paid."""
    out = Path(name)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"--out: cannot make the folder {out} ({error.strerror}).") from None
    if not os.access(out, os.W_OK | os.X_OK):
        raise ValueError(f"--out: the folder {out} cannot be written to.")
    return out
