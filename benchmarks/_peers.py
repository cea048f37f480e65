"""Make the environments of the peers: ``eval "$(python -m benchmarks._peers FOLDER)"``.

It prints the variables that name them, for ``python -m benchmarks`` in the same shell. What exists
in the folder is used again. A peer that cannot be installed is left out, with a message.
"""

import argparse
import subprocess
import sys
import venv
from pathlib import Path
from shlex import quote

# diffprivlib as in the published tables; of clustering by Google, the newest source.
GOOGLE = "https://github.com/google/differential-privacy"
PACKAGES = {
    "DIFFPRIVLIB": ["diffprivlib==0.6.6", "scikit-learn==1.6.1"],
    "GOOGLE_DP": ["absl-py", "dp-accounting", "numpy", "scipy", "scikit-learn"],
}


def _run(*command):
    # The shell reads what is printed.
    subprocess.run(command, check=True, stdout=sys.stderr)


def _variables(peer, packages, folder):
    """Yield the names and values of the variables of a peer, after its installation."""
    python = folder / peer.lower() / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not python.exists():
        venv.create(folder / peer.lower(), with_pip=True)
    _run(str(python), "-m", "pip", "install", "--quiet", *packages)
    yield f"{peer}_PYTHON", python
    if peer == "GOOGLE_DP":
        source = folder / "differential-privacy"
        if not source.exists():
            _run("git", "clone", "--quiet", "--depth=1", GOOGLE, str(source))
        yield f"{peer}_FOLDER", source / "learning"


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks._peers", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the environments are, or will be")
    folder = parser.parse_args().folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    for peer, packages in PACKAGES.items():
        try:
            for name, value in [*_variables(peer, packages, folder)]:
                print(f"export {name}={quote(str(value))}")
        except subprocess.CalledProcessError as error:
            print(f"{peer} is left out: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
