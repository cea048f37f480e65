#!/usr/bin/env bash
# persim 0.4.1 leaves points that never die out of its distances, with a warning: two components
# born at 0 and at 1 have the bottleneck distance 0. GUDHI compares their births and returns 1.
# Seen: "persim: 0.0" and "GUDHI: 1.0".
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q "persim==0.4.1" "gudhi==3.11.0" "numpy<2.4"
cd "$folder"
env/bin/python -W ignore - > seen.txt <<'PY'
import numpy, persim
from gudhi.hera import bottleneck_distance
one, other = numpy.array([[0.0, numpy.inf]]), numpy.array([[1.0, numpy.inf]])
print("persim:", float(persim.bottleneck(one, other)))
print("GUDHI:", bottleneck_distance(one, other))
PY
cat seen.txt
diff <(printf 'persim: 0.0\nGUDHI: 1.0\n') seen.txt
