#!/usr/bin/env bash
# cripser 0.0.37 gives the component that never dies the largest double as its death, where GUDHI
# and ripser give infinity. A filter by isfinite keeps it, and the sum of two persistences overflows.
# Seen: "cripser: death 1.797693e+308, isfinite True" and "GUDHI: death inf".
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q "cripser==0.0.37" "gudhi==3.11.0" "numpy<2.4"
cd "$folder"
env/bin/python - > seen.txt <<'PY'
import cripser, gudhi, numpy
values = numpy.array([[1.0, 2.0, 1.5], [2.0, 3.0, 2.5], [0.5, 2.0, 1.0]])
pairs = cripser.computePH(values, maxdim=1)
death = pairs[pairs[:, 0] == 0][:, 2].max()
print(f"cripser: death {death:.6e}, isfinite {numpy.isfinite(death)}")
cubes = gudhi.CubicalComplex(vertices=values)
cubes.compute_persistence()
print("GUDHI: death", cubes.persistence_intervals_in_dimension(0)[:, 1].max())
PY
cat seen.txt
diff <(printf 'cripser: death 1.797693e+308, isfinite True\nGUDHI: death inf\n') seen.txt
