#!/usr/bin/env bash
# GUDHI 3.13 has wheels for glibc, macOS and Windows on x86, and no source distribution. So on Alpine
# and other systems with musl, and with Python for Windows on ARM, pip says that there is no version
# of it at all, and every package that requires it fails there, wherever its own wheels exist.
# Seen: "manylinux_2_28_x86_64 yes, musllinux_1_2_x86_64 no, win_arm64 no, source no".
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
has() { "$folder/env/bin/pip" download -q --no-deps -d "$folder" "$@" > "$folder/log" 2>&1 && echo yes || echo no; }
seen=""
for platform in manylinux_2_28_x86_64 musllinux_1_2_x86_64 win_arm64; do
    found=$(has --only-binary :all: --python-version 3.11 --platform "$platform" gudhi==3.13.0)
    seen+="$platform $found, "
done
seen+="source $(has --no-binary :all: gudhi==3.13.0)"
# A network that is down must not look like the finding.
[ "$(has --only-binary :all: --python-version 3.11 --platform musllinux_1_2_x86_64 numpy==2.2.6)" = yes ]
echo "$seen"
[ "$seen" = "manylinux_2_28_x86_64 yes, musllinux_1_2_x86_64 no, win_arm64 no, source no" ]
