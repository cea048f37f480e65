#!/usr/bin/env bash
# A PLY file names the properties of its vertices, in any order. meshio 5.3.5 reads those of a
# binary file by name, and those of an ASCII file by position: x, y and z are coordinates only in
# the first, second and third place. Points written as x, y, intensity, z become points of the
# plane.
# Seen: "binary: [1.0, 2.0, 3.0]" and "ascii: [1.0, 2.0]".
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q "meshio==5.3.5" "numpy<2.4"
cd "$folder"
env/bin/python -W ignore - > seen.txt <<'PY'
import meshio, numpy
names = "".join(f"property float {name}\n" for name in ("x", "y", "intensity", "z"))
rows = numpy.array([[1, 2, 9, 3], [4, 5, 9, 6]], dtype="<f4")
for kind, name, body in [
    ("binary_little_endian", "binary", rows.tobytes()),
    ("ascii", "ascii", b"1 2 9 3\n4 5 9 6\n"),
]:
    header = f"ply\nformat {kind} 1.0\nelement vertex 2\n{names}end_header\n"
    with open("points.ply", "wb") as file:
        file.write(header.encode() + body)
    print(f"{name}:", meshio.read("points.ply").points[0].tolist())
PY
cat seen.txt
diff <(printf 'binary: [1.0, 2.0, 3.0]\nascii: [1.0, 2.0]\n') seen.txt
