#!/usr/bin/env bash
# A distance matrix with numbers on its diagonal, the births of the points, is a lower-star
# filtration. ripser.py 0.6.15 converts it to a sparse matrix and so loses each edge whose value is
# zero: two points born at -1 and joined at 0 stay apart until 5. Where all values are larger by
# 10, they are joined. giotto-ph 0.2.4 joins them at 0.
# Seen: "ripser: deaths 5, 5, inf", "ripser, values + 10: deaths 10, 15, inf" and "giotto-ph:
# deaths 0, 5, inf".
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q "ripser==0.6.15" "giotto-ph==0.2.4" "numpy<2.4"
cd "$folder"
env/bin/python -W ignore - > seen.txt <<'PY'
import numpy
from gph import ripser_parallel
from ripser import ripser
values = numpy.array([[-1.0, 0.0, 5.0], [0.0, -1.0, 5.0], [5.0, 5.0, -1.0]])


def deaths(found):
    return "deaths " + ", ".join(f"{death:g}" for death in sorted(found["dgms"][0][:, 1]))


print("ripser:", deaths(ripser(values, distance_matrix=True, maxdim=0)))
print("ripser, values + 10:", deaths(ripser(values + 10, distance_matrix=True, maxdim=0)))
print("giotto-ph:", deaths(ripser_parallel(values, metric="precomputed", maxdim=0)))
PY
cat seen.txt
diff <(printf '%s\n' 'ripser: deaths 5, 5, inf' 'ripser, values + 10: deaths 10, 15, inf' \
    'giotto-ph: deaths 0, 5, inf') seen.txt
