"""Jobs for peers that live in an environment, or a folder of source, of their own.

``<PEER>_PYTHON`` names an interpreter, and ``<PEER>_FOLDER`` the source of a peer that is no
package. Who is missing is left out, with a line that says so.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np


def missing(peer, *, folder=False):
    """Say which variable is not set, or None where the peer is at hand."""
    names = [f"{peer}_PYTHON", *([f"{peer}_FOLDER"] if folder else [])]
    unset = [name for name in names if not os.environ.get(name)]
    return f"{' and '.join(unset)} not set" if unset else None


def ask(peer, job, arrays, *, script="_foreign.py", folder=False, patience=None, **parameters):
    """Run a job of a script in a peer's environment and return its answer; None without one.

    ``folder`` says that the peer is source in a folder, which is put first on the path. Who takes
    more than ``patience`` seconds answers ``{"timeout": patience}``.
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
            str(Path(__file__).with_name(script)),
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
