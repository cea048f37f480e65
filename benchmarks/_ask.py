"""Jobs for peer libraries that are installed in separate environments or source folders.

``<PEER>_PYTHON`` names the interpreter of a peer, and ``<PEER>_FOLDER`` the source folder of a peer
that is not a package. A missing peer is left out, and a message says so.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np


def missing(peer, *, folder=False):
    """Return a message about the variables that are not set, or None if the peer is available."""
    names = [f"{peer}_PYTHON", *([f"{peer}_FOLDER"] if folder else [])]
    unset = [name for name in names if not os.environ.get(name)]
    return f"{' and '.join(unset)} not set" if unset else None


def ask(peer, job, arrays, *, folder=False, patience=None, **parameters):
    """Run a job of ``_foreign.py`` in the environment of a peer and return its answer.

    The answer is None if the peer is missing. With ``folder``, the peer is a source folder, which
    is put first on the path. If the job takes more than ``patience`` seconds, the answer is
    ``{"timeout": patience}``.
    """
    if missing(peer, folder=folder):
        return None
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    if folder:
        environment["PYTHONPATH"] = os.environ[f"{peer}_FOLDER"]
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "data.npz"
        np.savez(path, **arrays)
        command = [
            os.environ[f"{peer}_PYTHON"],
            str(Path(__file__).with_name("_foreign.py")),
            job,
            str(path),
            json.dumps(parameters),
        ]
        try:
            answer = subprocess.run(
                command,
                check=False,
                capture_output=True,
                text=True,
                cwd=place,
                env=environment,
                timeout=patience,
            )
        except subprocess.TimeoutExpired:
            return {"timeout": patience}
    if answer.returncode:
        raise RuntimeError(f"{peer}, {job}: {answer.stderr[-2000:]}")
    return json.loads(answer.stdout.splitlines()[-1])
