"""Versions, lower bounds and workflows agree in all files.

The rules read the files of a project in a folder, so that tests can pass a broken copy.
"""

import importlib
import re
import runpy
import tomllib

from _project import ROOT, text_of

WORKFLOWS = ("tests", "nightly", "release")


def metadata(root):
    """Return the table ``project`` of ``pyproject.toml``."""
    return tomllib.loads(text_of(root / "pyproject.toml"))["project"]


def names_and_least(requirements):
    """Return names with their lower bounds; those for one platform only are left out."""
    bounds = {}
    for requirement in requirements:
        if ";" not in requirement and ">=" in requirement:
            name, _, rest = requirement.partition(">=")
            bounds[name.strip()] = rest.partition(",")[0].strip()
    return bounds


def pythons_in(pattern, text):
    """Return the versions of Python in the part of a text that a pattern encloses."""
    found = re.search(pattern, text, flags=re.MULTILINE)
    return set(re.findall(r'"(3\.\d+)"', found[1])) if found else set()


def versions_that_differ(root=ROOT):
    """Name files whose version is not that of the package, where the build reads it."""
    project = metadata(root)
    version = importlib.import_module("sklearn_dptda").__version__
    if project.get("dynamic") != ["version"] or "version" in project:
        yield "pyproject.toml: the version stands in sklearn_dptda/__init__.py alone. Remove it"
    if f"\nversion: {version}\n" not in text_of(root / "CITATION.cff"):
        yield f"CITATION.cff: its version is not {version}. Change it"
    if f"\n## {version} (" not in text_of(root / "CHANGELOG.md"):
        yield f"CHANGELOG.md: it has no section {version}. Add `## {version} (unreleased)`"


# Names that conda-forge writes otherwise.
CONDA_NAMES = {"lazy-loader": "lazy_loader", "matplotlib": "matplotlib-base"}


def recipes_that_differ(root=ROOT):
    """Name what the recipe for conda-forge says otherwise than the package."""
    recipe, project = text_of(root / "recipe" / "recipe.yaml"), metadata(root)
    version = importlib.import_module("sklearn_dptda").__version__
    if f'\n  version: "{version}"\n' not in recipe:
        yield f"recipe/recipe.yaml: its version is not {version}. Change it"
    if f"    - python {project['requires-python']}\n" not in recipe:
        yield "recipe/recipe.yaml: its Python is not that of pyproject.toml. Change it"
    block = recipe.partition("\n  run:\n")[2].partition("\n\n")[0]
    listed = dict(re.findall(r"^    - ([\w-]+) >=([\d.]+)$", block, flags=re.MULTILINE))
    least = names_and_least(project["dependencies"])
    # One build serves all platforms, with the highest of their bounds.
    least |= names_and_least(r.partition(";")[0] for r in project["dependencies"] if ";" in r)
    wanted = {CONDA_NAMES.get(name, name): bound for name, bound in least.items()}
    for name in sorted(wanted.keys() | listed.keys() - {"python"}):
        if wanted.get(name) != listed.get(name):
            yield (
                f"recipe/recipe.yaml: {name} is {listed.get(name)}, and in pyproject.toml "
                f"{wanted.get(name)}. Make them equal"
            )


def bounds_that_are_not_tested(root=ROOT):
    """Name lower bounds that differ from the versions of the oldest session."""
    project = metadata(root)
    extras = project["optional-dependencies"]
    bounds = names_and_least(
        [*project["dependencies"], *extras["test"], *extras["pandas"], *extras["dask"]]
    )
    pins = re.findall(
        r'^    "([\w.,\[\]-]+)==([\d.]+)\.\*",$', text_of(root / "noxfile.py"), flags=re.MULTILINE
    )
    pinned = dict(pins)
    for name in sorted(bounds.keys() | pinned.keys()):
        if bounds.get(name) != pinned.get(name):
            yield (
                f"noxfile.py: {name} is tested with {pinned.get(name)}, and its lower bound in "
                f"pyproject.toml is {bounds.get(name)}. Change both to the same version"
            )
    if len(bounds) < 15:
        yield f"pyproject.toml: {len(bounds)} lower bounds are found, and 15 expected"


def extras_with_other_bounds(root=ROOT):
    """Name extras whose lower bound of a package is not that of the dependencies."""
    project = metadata(root)
    bounds = names_and_least(project["dependencies"])
    for extra, requirements in project["optional-dependencies"].items():
        for name, least in names_and_least(requirements).items():
            if bounds.get(name, least) != least:
                yield (
                    f"pyproject.toml: the extra {extra} has {name}>={least}, and the dependencies "
                    f"have {bounds[name]}. Change both to the same version"
                )


def pythons_that_are_not_tested(root=ROOT):
    """Name files whose versions of Python are not those of the classifiers."""
    project = metadata(root)
    named = {c.rpartition(" ")[2] for c in project["classifiers"] if re.search(r":: 3\.\d+$", c)}
    if not named:
        yield "pyproject.toml: no classifier names a version of Python. Add them"
        return
    for name, pattern in (
        (".github/workflows/tests.yml", r"^        python: \[(.*)\]$"),
        ("noxfile.py", r"python=\[(.*)\]\)\ndef latest"),
    ):
        tested = pythons_in(pattern, text_of(root / name))
        if tested != named:
            yield (
                f"{name}: it tests Python {', '.join(sorted(tested)) or 'nowhere'}, and the "
                f"classifiers of pyproject.toml name {', '.join(sorted(named))}. Change one"
            )
    oldest = min(named, key=lambda version: int(version[2:]))
    if project["requires-python"] != f">={oldest}":
        yield f"pyproject.toml: requires-python is not >={oldest}, the oldest that is named"


def unreadable_workflows(root=ROOT):
    """Name workflows with too many permissions, and jobs or steps that cannot run."""
    try:
        yaml = importlib.import_module("yaml")
    except ImportError:
        yield ".github/workflows: the rule that reads them needs PyYAML. Run `pip install pyyaml`"
        return
    for workflow in WORKFLOWS:
        where = f".github/workflows/{workflow}.yml"
        try:
            content = yaml.safe_load(text_of(root / where))
        except yaml.YAMLError as error:
            yield f"{where}: it is not valid YAML: {' '.join(str(error).split())}. Correct it"
            continue
        if content.get("permissions") != {"contents": "read"}:
            yield f"{where}: write `permissions: contents: read`, and give more to single jobs"
        for name, job in (content.get("jobs") or {"": {}}).items():
            steps = job.get("steps") or [{}]
            if not job.get("runs-on") or any(("run" in step) == ("uses" in step) for step in steps):
                yield (
                    f"{where}: the job {name!r} has no runs-on, or a step without either run or "
                    "uses. Add what is missing"
                )


def release_notes_that_fail(root=ROOT):
    """Report that the notes of the release cannot be printed, or are printed before its date."""
    where = ".ci/release_notes.py"
    version = importlib.import_module("sklearn_dptda").__version__
    script = runpy.run_path(str(root / where))
    if script["version"]() != version:
        yield f"{where}: it reads the version {script['version']()}, not {version}. Correct it"
    unreleased = f"\n## {version} (unreleased)" in text_of(root / "CHANGELOG.md")
    try:
        notes = script["notes"](version)
    except SystemExit as refusal:
        if not unreleased:
            yield f"CHANGELOG.md: the notes of {version} are refused: {refusal}. Correct that"
    else:
        if unreleased or not notes:
            yield f"{where}: it prints notes of {version} without a date or a text. Correct it"


def faults_that_cannot_be_planted(root=ROOT):
    """Name faults of ``tests/mutants`` that the code has outgrown."""
    runner = runpy.run_path(str(root / "tests" / "mutants" / "__main__.py"), run_name="runner")
    yield from runner["faults_that_cannot_be_planted"](root)


RULES = (
    versions_that_differ,
    recipes_that_differ,
    bounds_that_are_not_tested,
    extras_with_other_bounds,
    pythons_that_are_not_tested,
    unreadable_workflows,
    release_notes_that_fail,
    faults_that_cannot_be_planted,
)
