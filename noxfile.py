"""Test with the oldest and the latest supported dependencies: ``nox``, or ``nox -s oldest``."""

import nox

nox.options.sessions = ["oldest", "latest", "types"]

# The lower bounds of pyproject.toml. The last entries are indirect dependencies that cause warnings
# if they are newer than the packages that use them.
OLDEST = [
    "gudhi==3.11.*",
    "joblib==1.4.*",
    "lazy-loader==0.4.*",
    "matplotlib==3.8.*",
    "narwhals==2.0.*",
    "numpy==1.26.*",
    "opendp==0.16.*",
    "scikit-learn==1.6.*",
    "scipy==1.12.*",
    "threadpoolctl==3.1.*",
    "pandas==2.1.*",
    "pyarrow==14.*",
    "networkx==3.2.*",
    "meshio==5.3.*",
    "openpyxl==3.1.*",
    "pyreadstat==1.2.*",
    "dp-accounting==0.6.*",
    "dask[array,dataframe,distributed]==2024.8.*",
    "jsonschema==4.18.*",
    "polars==1.0.*",
    "riskcal==1.5.*",
    "psycopg[binary]==3.1.*",
    "sqlalchemy==2.0.*",
    "pytest==8.0.*",
    "pytest-xdist==3.5.*",
    "rich==13.*",
    "pyparsing<3.2",
]
TESTS = ["-m", "pytest", "--doctest-modules", "-q", "-m", "unit or conformance"]


@nox.session(python="3.11")
def oldest(session):
    """Run unit and conformance tests with the oldest supported dependencies."""
    session.install(".[test,dask]", *OLDEST)
    session.run("python", *TESTS, *session.posargs)


@nox.session(python=["3.11", "3.12", "3.13", "3.14"])
def latest(session):
    """Run unit and conformance tests with the latest dependencies."""
    session.install("--upgrade", ".[test,dask]")
    session.run("python", *TESTS, *session.posargs)


@nox.session(python="3.11")
def types(session):
    """Check the type hints of the public interface."""
    session.install(".", "mypy")
    session.run("mypy")
