#!/usr/bin/env bash
# The OFF format lets the counts stand in the line of the word OFF. GUDHI 3.11's reader of points
# takes the next line, which is the first point, for the counts, and returns an empty list of points
# with NumPy's warning that the input contained no data.
# Seen: "0 points of 3".
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q "gudhi==3.11.0" "numpy<2.4"
cd "$folder"
printf 'OFF 3 0 0\n0 0 0\n1 0 0\n0 1 0\n' > points.off
env/bin/python -W ignore - > seen.txt <<'PY'
import gudhi
print(len(gudhi.read_points_from_off_file(off_file="points.off")), "points of 3")
PY
cat seen.txt
diff <(printf '0 points of 3\n') seen.txt
