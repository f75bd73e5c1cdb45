#!/usr/bin/env bash
# Builds the wheel and installs it into a clean environment of the oldest and the newest supported Python: the demo must
# work from it alone, in an empty folder. A Python that is not there is skipped with a word.
#   tests/run_wheel.sh PYTHON        PYTHON has hatchling
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
python=$(realpath -s "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cd "$root"
wheel=$work/$("$python" -c "from hatchling.build import build_wheel; print(build_wheel('$work'))" | tail -n 1)
mkdir "$work/empty"
cd "$work/empty"
for version in 3.11 3.13; do
  found=
  for candidate in "python$version" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$version"*/bin/python; do
    if "$candidate" -c '' 2>/dev/null; then found=$candidate; break; fi
  done
  if [ -z "$found" ]; then
    echo "Python $version: skipped, it is not installed"
    continue
  fi
  env=$work/$version
  "$found" -m venv "$env"
  "$env/bin/python" -m pip --disable-pip-version-check --quiet install --constraint "$root/constraints.txt" "$wheel" 2>&1 |
    { grep -v WARNING || true; }
  unset PYTHONPATH
  export TPROF_CACHE=0
  "$env/bin/tprof" demo -o "$version.html" >"$version.txt"
  grep -q 'took 6.11 s' "$version.txt"
  test -s "$version.html"
  "$env/bin/tprof" doctor --format json >doctor.json
  "$env/bin/python" -c 'import importlib.util as u; assert not u.find_spec("torch") and not u.find_spec("streamlit")'
  echo "Python $("$env/bin/python" -c 'import platform; print(platform.python_version())'): tprof demo works from the wheel alone"
done
