#!/usr/bin/env bash
# cofaces_of_persistence_pairs of GUDHI 3.11 tells at which pixels a component of an image is born
# and dies, by their indices in the input. NumPy numbers the pixels of an array by rows, and GUDHI
# numbers them by columns: values.ravel()[index] is another pixel, without an error.
# Seen: "births [1.0, 2.0], by rows [5.0, 9.0], by columns [1.0, 2.0]".
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q "gudhi==3.11.0" "numpy<2.4"
cd "$folder"
env/bin/python -W ignore - > seen.txt <<'PY'
import gudhi, numpy
values = numpy.array([[0.0, 5.0, 1.0, 5.0, 2.0], [5.0] * 5, [9.0] * 5])
cubes = gudhi.CubicalComplex(top_dimensional_cells=values)
cubes.compute_persistence()
bars = cubes.persistence_intervals_in_dimension(0)
births = sorted(bars[numpy.isfinite(bars[:, 1]), 0].tolist())
pixels = cubes.cofaces_of_persistence_pairs()[0][0][:, 0]
rows, columns = (sorted(values.ravel(order)[pixels].tolist()) for order in "CF")
print(f"births {births}, by rows {rows}, by columns {columns}")
PY
cat seen.txt
diff <(printf 'births [1.0, 2.0], by rows [5.0, 9.0], by columns [1.0, 2.0]\n') seen.txt
