"""All text for a terminal: results on stdout and messages on stderr, as lines that cannot harm it.

No other module of the command line prints. This module imports nothing that is slow.
"""

import re
import sys
from contextlib import suppress

# What follows the "://" of a URL. A user, a password or a query may contain any character, so a URL
# with a "?" before an "@" is left out as a whole. Of others, the group is the server.
_URL = re.compile(r"(?<=://)(?:.*\?.*@\S*|(?:.*@)?([^\s?]*)(?:\?\S*)?)")


def say(*lines):
    """Print results on stdout. An ``OSError`` says why they cannot be printed."""
    try:
        print(*(_visible(line, sys.stdout) for line in lines), sep="\n", flush=True)
    except OSError as error:
        # Python would try to print the rest when it ends, and change the exit status.
        sys.stdout = None
        reason = error.strerror or error
        raise OSError(f"the output could not be printed ({reason})") from None


def tell(message):
    """Print a message on stderr, if it can be printed: no run fails because of a message."""
    with suppress(OSError):
        print(_visible(message, sys.stderr), file=sys.stderr, flush=True)


def _visible(text, stream):
    """Return a text as one line, with escapes for all that a terminal would obey or cannot show.

    File names, column names and texts of a ledger may come from other people.
    """
    text = without_secrets(str(text))
    if not text.isprintable():
        shown = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
        text = "".join(shown)
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def without_secrets(text):
    """Return a text whose URLs have neither a user nor a password nor a query."""
    return _URL.sub(r"\1", text)
