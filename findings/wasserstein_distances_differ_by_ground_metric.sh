#!/usr/bin/env bash
# The Wasserstein distance of one point (0, 2) and no point is the square root of 2 in persim 0.4.1,
# whose ground metric is Euclidean and cannot be chosen, and 1 in GUDHI 3.11, whose default is the
# maximum norm. Published distances of diagrams need the name of the library.
# Seen: "persim: 1.4142" and "GUDHI: 1.0000".
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q "persim==0.4.1" "gudhi==3.11.0" "numpy<2.4"
cd "$folder"
env/bin/python -W ignore - > seen.txt <<'PY'
import numpy, persim
from gudhi.hera import wasserstein_distance
none, point = numpy.empty((0, 2)), numpy.array([[0.0, 2.0]])
print(f"persim: {persim.wasserstein(none, point):.4f}")
print(f"GUDHI: {wasserstein_distance(none, point):.4f}")
PY
cat seen.txt
diff <(printf 'persim: 1.4142\nGUDHI: 1.0000\n') seen.txt
