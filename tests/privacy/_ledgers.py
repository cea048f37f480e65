"""Files of ledgers, seen and changed behind the back of the accountants."""

import contextlib
import os
import sqlite3

import pytest

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def edit(path, *statements):
    """Change a file."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(*([statement] if isinstance(statement, str) else statement))


def alter(path, *statements):
    """Change a file, or a database of a server."""
    if "://" not in str(path):
        return edit(path, *statements)
    sqlalchemy = pytest.importorskip("sqlalchemy")
    url = path.replace("postgresql:", "postgresql+psycopg:")
    with sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool).begin() as connection:
        for statement in statements:
            connection.execute(sqlalchemy.text(statement))


def look(path, query):
    """First row of an answer."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchone()
