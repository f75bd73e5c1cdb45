#!/bin/bash
# Runs the tests of recording and preparing on several Triton versions: tests/run_triton_versions.sh [PYTHON] [VERSION ...]
# PYTHON (default .venv/bin/python) has torch, nvtx, numpy, pytest and hypothesis. Each version is installed into a folder of
# its own under TPROF_TRITONS (default .tritons), once. Without versions: 3.2.0 3.4.0 3.6.0 3.8.0 and the newest.
set -euo pipefail
cd "$(dirname "$0")/.."
python="${1:-.venv/bin/python}"
folder="${TPROF_TRITONS:-.tritons}"
versions=("${@:2}")
[ ${#versions[@]} -gt 0 ] || versions=(3.2.0 3.4.0 3.6.0 3.8.0 newest)
failed=()
for version in "${versions[@]}"; do
  target="$folder/$version"
  if [ ! -d "$target/triton" ]; then
    wanted="triton==$version"
    [ "$version" != newest ] || wanted=triton
    "$python" -m pip --disable-pip-version-check --quiet install --no-deps --target "$target" "$wanted"
  fi
  echo "== triton $version: $(basename "$target"/triton-*.dist-info .dist-info)"
  PYTHONPATH="$target" "$python" -m pytest -q -p no:cacheprovider tests/record tests/prepare || failed+=("$version")
done
[ ${#failed[@]} -eq 0 ] || { echo "failed on triton ${failed[*]}" >&2; exit 1; }
