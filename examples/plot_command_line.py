"""
Your own file, through the command line
=======================================

``python -m sklearn_dptda diagram`` reads points, releases their diagrams and
writes them as JSON and as a picture. Nothing else leaves: no exact diagram, no
exact function.
"""

# %%
# A file of points
# ----------------
import json
import os
from pathlib import Path

import numpy as np

from sklearn_dptda._cli import main
from sklearn_dptda.datasets import make_two_circles

out = Path(os.environ.get("SKLEARN_DPTDA_OUT", "examples/out"))
out.mkdir(parents=True, exist_ok=True)
points = out / "points.csv"
X = make_two_circles(4000, noise=0.05, random_state=0)
np.savetxt(points, X, delimiter=",", header="x,y", comments="")

# %%
# The command
# -----------
# The same as ``python -m sklearn_dptda diagram points.csv --bounds -3 3.5
# --epsilon 1 --m 0.2 -o command_line``.
folder = out / "command_line"
command = f"diagram {points} --bounds -3 3.5 --epsilon 1 --m 0.2 -o {folder}"
status = main(command.split())
if status:
    raise SystemExit(status)

# %%
# What was written
# ----------------
content = json.loads((folder / "diagram.json").read_text())
print(content["guarantee"]["text"])
print(content["diagrams"])
