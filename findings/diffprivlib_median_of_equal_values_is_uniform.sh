#!/usr/bin/env bash
# The median of diffprivlib 0.6.6 lies in an interval between two neighbouring values, drawn in
# proportion to its length, and intervals between equal values have none. If all of 1,000 values
# are 5, the median at epsilon = 1 is therefore uniform between the bounds, 0 and 10. If they are
# spread from 4.5 to 5.5, it is near 5. Where 100, 200, 400, 200 and 100 persons answer 1 to 5, it
# is anywhere between 2 and 4.
# Seen: "equal: 19 of 100 within 1 of 5" and "spread: 100 of 100 within 1 of 5".
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q "diffprivlib==0.6.6" "scikit-learn==1.5.2" "numpy<2.4"
cd "$folder"
env/bin/python -W ignore - > seen.txt <<'PY'
import numpy
from diffprivlib.tools import median
equal = numpy.full(1000, 5.0)
for name, values in [("equal", equal), ("spread", equal + numpy.linspace(-0.5, 0.5, 1000))]:
    found = [median(values, epsilon=1, bounds=(0, 10), random_state=seed) for seed in range(100)]
    print(f"{name}: {sum(abs(each - 5) <= 1 for each in found)} of 100 within 1 of 5")
PY
cat seen.txt
diff <(printf 'equal: 19 of 100 within 1 of 5\nspread: 100 of 100 within 1 of 5\n') seen.txt
