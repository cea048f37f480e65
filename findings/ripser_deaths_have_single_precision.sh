#!/usr/bin/env bash
# ripser.py 0.6.15 returns diagrams of the type float64 whose numbers were rounded to single
# precision: two points at a distance of 0.1 merge at 0.10000000149. GUDHI gives 0.1. Equal points
# of the diagrams of both are therefore not equal.
# Seen: "ripser: float64 0.10000000149011612" and "GUDHI: 0.1".
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q "ripser==0.6.15" "gudhi==3.11.0" "numpy<2.4"
cd "$folder"
env/bin/python -W ignore - > seen.txt <<'PY'
import gudhi, numpy
from ripser import ripser
points = numpy.array([[0.0], [0.1], [1.0]])
components = ripser(points)["dgms"][0]
print("ripser:", components.dtype, components[0, 1].item())
tree = gudhi.RipsComplex(points=points).create_simplex_tree(max_dimension=1)
tree.compute_persistence()
print("GUDHI:", tree.persistence_intervals_in_dimension(0)[0, 1].item())
PY
cat seen.txt
diff <(printf 'ripser: float64 0.10000000149011612\nGUDHI: 0.1\n') seen.txt
