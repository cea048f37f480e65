#!/usr/bin/env bash
# Laplace noise of scale 1 is 1-differentially private, with delta = 0. Both accountants of
# dp-accounting 0.6.0 give it an infinite epsilon at delta = 0, and that of privacy losses, the
# tighter one of the two, still does at 1e-20, where that of moments (RDP) has an answer.
# Seen: "losses: inf at 0, inf at 1e-20, 1.000 at 1e-09" and "moments: inf at 0, 1.037 at 1e-20,
# 1.012 at 1e-09".
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q "dp-accounting==0.6.0" "numpy<2.4"
cd "$folder"
env/bin/python -W ignore - > seen.txt <<'PY'
from dp_accounting import LaplaceDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
for name, kind in [("losses", PLDAccountant), ("moments", RdpAccountant)]:
    spent = kind().compose(LaplaceDpEvent(1.0))
    found = [(delta, spent.get_epsilon(delta)) for delta in (0, 1e-20, 1e-9)]
    print(f"{name}:", ", ".join(f"{epsilon:.3f} at {delta}" for delta, epsilon in found))
PY
cat seen.txt
diff <(printf '%s\n' 'losses: inf at 0, inf at 1e-20, 1.000 at 1e-09' \
    'moments: inf at 0, 1.037 at 1e-20, 1.012 at 1e-09') seen.txt
