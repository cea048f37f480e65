#!/usr/bin/env bash
# The projective plane has the Betti numbers 1, 1, 1 over the field of two elements, the default of
# ripser.py 0.6.15, and 1, 0, 0 over that of eleven, the default of GUDHI 3.11. So one library
# finds a loop and a void that never die in the same distances, and the other finds none.
# Seen: "ripser: [1, 1, 1]", "GUDHI: [1, 0, 0]" and "GUDHI, field 2: [1, 1, 1]".
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q "ripser==0.6.15" "gudhi==3.11.0" "numpy<2.4"
cd "$folder"
env/bin/python -W ignore - > seen.txt <<'PY'
from itertools import combinations
import gudhi, numpy
from ripser import ripser
# Six vertices, ten triangles. The points are the faces, and faces of each other are at distance 1.
triangles = "014 015 023 024 035 123 125 134 245 345".split()
faces = list({frozenset(f) for t in triangles for k in (1, 2, 3) for f in combinations(t, k)})
distances = [[0.0 if a == b else 1.0 if a < b or b < a else 2.0 for b in faces] for a in faces]
diagrams = ripser(numpy.array(distances), distance_matrix=True, thresh=1, maxdim=2)["dgms"]
print("ripser:", [int(numpy.isinf(diagram[:, 1]).sum()) for diagram in diagrams])
rips = gudhi.RipsComplex(distance_matrix=distances, max_edge_length=1)
tree = rips.create_simplex_tree(max_dimension=3)
tree.compute_persistence(persistence_dim_max=True)
print("GUDHI:", tree.betti_numbers())
tree.compute_persistence(homology_coeff_field=2, persistence_dim_max=True)
print("GUDHI, field 2:", tree.betti_numbers())
PY
cat seen.txt
diff <(printf 'ripser: [1, 1, 1]\nGUDHI: [1, 0, 0]\nGUDHI, field 2: [1, 1, 1]\n') seen.txt
