#!/usr/bin/env bash
# giotto-tda 0.6.2 takes a zero in a dense matrix of numbers for an edge of length zero (its manual
# says so), where SciPy and networkx see no edge. In the path 0 - 1 - 2, the two ends, which have
# no edge, are then at distance 0 of each other, and neighbours at distance 1. The same matrix as
# booleans, or as a sparse one, gives the distances of the path.
# Seen: "integers: [0, 1, 0]", "booleans: [0, 1, 2]" and "sparse: [0, 1, 2]".
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q "giotto-tda==0.6.2"
cd "$folder"
env/bin/python -W ignore - > seen.txt <<'PY'
import numpy
from gtda.graphs import GraphGeodesicDistance
from scipy.sparse import csr_matrix
path = numpy.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
for name, graph in [("integers", path), ("booleans", path > 0), ("sparse", csr_matrix(path))]:
    print(f"{name}:", GraphGeodesicDistance().fit_transform([graph])[0][0].astype(int).tolist())
PY
cat seen.txt
diff <(printf 'integers: [0, 1, 0]\nbooleans: [0, 1, 2]\nsparse: [0, 1, 2]\n') seen.txt
