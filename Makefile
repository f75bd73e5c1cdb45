# Each target does its own set-up: the virtual environment, what it needs in there, and for `test` a browser.
#   make install   the library and its command line      make lint    style, types, architecture
#   make demo      the main job on the sample traces     make bench   time and memory on large inputs
#   make app       the app on the sample traces          make docs      what is generated, and the site
#   make test      all tests                         make test-triton-versions   the recorder on five of them
#   make test-wheel   the demo from the wheel alone, on the oldest and newest Python
#   make coverage   which branches the tests reach

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.SUFFIXES:
.DELETE_ON_ERROR:
.PHONY: install demo app test coverage test-triton-versions test-wheel lint bench docs chromium

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
WITH := install --constraint constraints.txt
TRITONS := $(or $(TPROF_TRITONS),.tritons)# where test-triton-versions installs Triton's versions; bench measures each

# The first Python that runs and is new enough; `make PYTHON=/path/to/python3.12 ...` overrides it.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.14; do \
	if $$p -c '$(NEW_ENOUGH)' 2>/dev/null; then echo $$p; break; fi; done)

install: $(VENV)/.install

demo: $(VENV)/.install
	$(BIN)/tprof demo

app: $(VENV)/.app
	$(BIN)/tprof app

# Three processes side by side, each with its own log: two halves, and the kernels, which run through Triton's interpreter
# where there is no GPU.
HALF := tests/app tests/batch tests/cli tests/docs tests/record
test: $(VENV)/.test chromium
	@{ if $(BIN)/python -c 'import torch, triton' 2>/dev/null; \
		then export OMP_NUM_THREADS=1; $(BIN)/python -m pytest -q tests/kernels && \
			exec $(BIN)/python -m pytest -q tests/kernels/test_compiles.py; \
		else echo "skipped: torch and triton are not installed"; fi; } >$(VENV)/kernels.log 2>&1 & kernels=$$!; \
	$(BIN)/python -m pytest -q $(HALF) >$(VENV)/half.log 2>&1 & half=$$!; failed=0; \
	$(BIN)/python -m pytest -q $(HALF:%=--ignore=%) || failed=1; \
	echo "$(HALF):"; wait $$half || failed=1; cat $(VENV)/half.log; \
	echo "the kernels, interpreted and compiled:"; wait $$kernels || failed=1; cat $(VENV)/kernels.log; exit $$failed

# Of branches, without the kernels' own tests; a GPU's tests are not among them. Machine code is seen as the Python that
# it is written in (tests/support/plain_machine.py), without the large recordings.
PLAIN := tests/read/test_torch_scan.py tests/read/test_sqlite_pages.py tests/test_intervals.py tests/test_model.py
coverage: $(VENV)/.test chromium
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q
	NUMBA_DISABLE_JIT=1 $(BIN)/coverage run -m pytest -q -p support.plain_machine \
		-k "not real_traces and not is_scanned" $(PLAIN)
	$(BIN)/coverage combine -q
	$(BIN)/coverage report --sort=cover

test-triton-versions: $(VENV)/.test
	tests/run_triton_versions.sh $(BIN)/python

test-wheel: $(VENV)/.test
	tests/run_wheel.sh $(BIN)/python

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# BENCH: more for reading.py, such as --large
bench: $(VENV)/.fast $(VENV)/.app
	@test -e $(VENV)/hta/.done || { $(BIN)/python -m venv $(VENV)/hta && $(VENV)/hta/bin/python -m pip --quiet install \
		HolisticTraceAnalysis && touch $(VENV)/hta/.done; } || echo "HTA could not be installed: it is not measured" >&2
	$(BIN)/python benchmarks/reading.py $(BENCH) --write docs/benchmarks.md \
		$$(test -e $(VENV)/hta/.done && echo --hta $(VENV)/hta/bin/python)
	$(BIN)/python benchmarks/sweeps.py | tee -a docs/benchmarks.md
	$(BIN)/python benchmarks/app.py --write docs/benchmarks.md
	@for triton in $(if $(wildcard $(TRITONS)),$(TRITONS)/*,installed); do \
		if PYTHONPATH=$$triton $(BIN)/python -c 'import prometheus_client, torch, triton' 2>/dev/null; \
		then PYTHONPATH=$$triton $(BIN)/python benchmarks/launch_overhead.py; \
		else echo "launch overhead: not measured, torch, triton and prometheus-client are not installed here (make test installs them)"; fi; done

docs: $(VENV)/.docs
	$(BIN)/python docs/make_columns.py
	$(BIN)/python docs/make_pictures.py
	$(BIN)/python docs/make_architecture.py
	TPROF_CACHE=0 $(BIN)/python docs/make_notebook.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# ---- set-up: a stamp per set of dependencies, so that a second run is quick

$(BIN)/python:
	@if [ -z "$(PYTHON)" ]; then echo "tprof needs Python 3.11 or newer; name one with make PYTHON=..." >&2; exit 1; fi
	$(PYTHON) -m venv $(VENV)

$(VENV)/.install: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) $(WITH) --upgrade pip
	$(PIP) $(WITH) --editable .
	@touch $@

$(VENV)/.app: $(VENV)/.install
	$(PIP) $(WITH) --editable '.[app]'
	@touch $@

$(VENV)/.fast: $(VENV)/.install
	$(PIP) $(WITH) --editable '.[fast]'
	@touch $@

# The recorder's tests need torch and triton, on the CPU. PyPI's torch brings gigabytes of CUDA, so only a wheel that
# PIP_FIND_LINKS or pip's configuration offers is taken; without one those tests are skipped, and say so.
$(VENV)/.test: $(VENV)/.app $(VENV)/.docs
	$(PIP) $(WITH) --group test
	@if ! { $(PIP) install --no-index --no-deps "$$(grep ^torch== constraints.txt)" && \
		$(PIP) $(WITH) filelock fsspec networkx nvtx setuptools sympy triton; } 2>/dev/null; then \
		echo "no CPU build of torch at hand (PIP_FIND_LINKS): tests of recorder and kernels will be skipped" >&2; fi
	@touch $@

$(VENV)/.docs: $(VENV)/.install
	$(PIP) $(WITH) --group docs
	@touch $@

$(VENV)/.lint: $(VENV)/.app
	$(PIP) $(WITH) --group lint
	@touch $@

# Debian's Chromium for the browser test, which is skipped where there is none.
chromium:
	@if ! command -v chromium >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		{ apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends chromium >/dev/null; } \
		|| echo "Chromium could not be installed: the browser test will be skipped" >&2; \
	fi
