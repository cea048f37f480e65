# shellcheck shell=bash
# Data sets in a folder next to the checkout are used if there are any.
for folder in ../*/data; do
  if [ -z "${SKLEARN_DPTDA_DATA:-}" ] && [ -f "$folder/walkers.npz" ]; then
    SKLEARN_DPTDA_DATA=$(cd "$folder" && pwd)
    export SKLEARN_DPTDA_DATA
  fi
done
