#!/usr/bin/env bash
# The persistence landscape of one point (0, 2) is a tent of height 1, by its definition and in
# persim 0.4.1. GUDHI 3.11 multiplies landscapes by the square root of 2. Landscapes of the two
# libraries cannot be averaged or compared.
# Seen: "persim: 1.0000" and "GUDHI: 1.4142".
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q "persim==0.4.1" "gudhi==3.11.0" "numpy<2.4"
cd "$folder"
env/bin/python -W ignore - > seen.txt <<'PY'
import numpy
from gudhi.representations import Landscape
from persim import PersLandscapeApprox
point = numpy.array([[0.0, 2.0]])
one = PersLandscapeApprox(start=0, stop=2, num_steps=5, dgms=[point], hom_deg=0).values
print(f"persim: {one.max():.4f}")
other = Landscape(num_landscapes=1, resolution=5, sample_range=[0, 2]).fit_transform([point])
print(f"GUDHI: {other.max():.4f}")
PY
cat seen.txt
diff <(printf 'persim: 1.0000\nGUDHI: 1.4142\n') seen.txt
