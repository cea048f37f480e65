#!/usr/bin/env bash
# OpenDP 0.16.0 casts every text that is not empty to the boolean true, also "false" and "0". A
# count of the true cells in a column of "true" and "false" is then that of all its rows, however
# little noise is added.
# Seen: "true True, false True, 0 True, empty False".
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q "opendp==0.16.0"
cd "$folder"
env/bin/python -W ignore - > seen.txt <<'PY'
import opendp.prelude as dp
dp.enable_features("contrib")
texts = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
cells = ["true", "false", "0", ""]
found = dp.t.make_cast_default(*texts, TOA=bool)(cells)
print(", ".join(f"{cell or 'empty'} {value}" for cell, value in zip(cells, found)))
PY
cat seen.txt
diff <(printf 'true True, false True, 0 True, empty False\n') seen.txt
