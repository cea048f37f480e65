#!/usr/bin/env bash
# meshio 5.3.5 ends the whole Python process, with exit status 1, where it is given a file of
# coloured points (COFF, which GUDHI 3.11 reads): its reader of OFF files raises SystemExit, which
# "except Exception" does not catch.
# Seen: "meshio: SystemExit" and "GUDHI: 3 points".
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q "meshio==5.3.5" "gudhi==3.11.0" "numpy<2.4"
cd "$folder"
printf 'COFF\n3 0 0\n0 0 0 1 2 3 4\n1 0 0 1 2 3 4\n0 1 0 1 2 3 4\n' > points.off
env/bin/python - > seen.txt <<'PY'
import contextlib, io
import gudhi, meshio
try:
    with contextlib.redirect_stdout(io.StringIO()):
        meshio.read("points.off")
except BaseException as error:
    print("meshio:", type(error).__name__)
print("GUDHI:", len(gudhi.read_points_from_off_file(off_file="points.off")), "points")
PY
cat seen.txt
diff <(printf 'meshio: SystemExit\nGUDHI: 3 points\n') seen.txt
