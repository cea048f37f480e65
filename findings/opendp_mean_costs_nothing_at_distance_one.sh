#!/usr/bin/env bash
# OpenDP 0.16.0 counts a changed record as two changes, a removal and an addition. The mean of a
# known number of rows therefore costs nothing at distance 1, since two tables of one size are
# never at that distance, and its whole epsilon at 2. A sum over an unknown number of rows costs
# its whole epsilon at 1. Whoever asks both for their cost at distance 1 gets 0 for the mean.
# Seen: "mean: epsilon 0.00 at 1, 1.00 at 2" and "sum: epsilon 1.00 at 1, 2.00 at 2".
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q "opendp==0.16.0"
cd "$folder"
env/bin/python -W ignore - > seen.txt <<'PY'
import opendp.prelude as dp
dp.enable_features("contrib")
cells, metric = dp.atom_domain(bounds=(0.0, 10.0)), dp.symmetric_distance()
known, unknown = (dp.vector_domain(cells, size=100), metric), (dp.vector_domain(cells), metric)
mean = known >> dp.t.then_mean() >> dp.m.then_laplace(scale=0.1)
total = unknown >> dp.t.then_sum() >> dp.m.then_laplace(scale=10.0)
for name, release in [("mean", mean), ("sum", total)]:
    print(f"{name}: epsilon {release.map(1):.2f} at 1, {release.map(2):.2f} at 2")
PY
cat seen.txt
diff <(printf 'mean: epsilon 0.00 at 1, 1.00 at 2\nsum: epsilon 1.00 at 1, 2.00 at 2\n') seen.txt
