"""
Your own file on the command line
=================================

``python -m sklearn_dptda diagram`` reads points from a file, releases their private
diagrams and writes them as JSON and as a picture. It writes no exact diagram and no
exact function.
"""

# %%
# A file of points
# ----------------
import json
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from sklearn_dptda._cli import main
from sklearn_dptda.datasets import make_two_circles

scratch = tempfile.TemporaryDirectory()
folder = Path(scratch.name)
X = make_two_circles(4000, noise=0.05, random_state=0)
np.savetxt(folder / "points.csv", X, delimiter=",", header="x,y", comments="")

# %%
# The command
# -----------
# This is the same as ``python -m sklearn_dptda diagram points.csv --header --bounds -3 3.5
# --epsilon 1 --m 0.2 -o .``.
command = f"diagram {folder}/points.csv --header --bounds -3 3.5 --epsilon 1 --m 0.2 -o {folder}"
assert main(command.split()) == 0

# %%
# What was written
# ----------------
content = json.loads((folder / "diagram.json").read_text())
print(content["guarantee"]["text"])
print(content["diagrams"], content["probability"], sep="\n")

# %%
# The picture
# -----------
# Points are as opaque as they are probable, with their probabilities beside them.
picture = plt.imread(folder / "diagram.png")
height, width = picture.shape[:2]
figure = plt.figure(figsize=(8, 8 * height / width))
axes = figure.add_axes((0, 0, 1, 1))
axes.imshow(picture)
axes.set_axis_off()
plt.show()
