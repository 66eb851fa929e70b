# make demo   solves the paper's counter-example and grid world, with certificates
# make test   linters, types, all tests
# make bench  ratios against what a user would pick instead, written to docs/benchmarks.md
# make experiments  learning over hundreds of seeds, written to docs/experiments.md; stop it and start it as you like
# make reproduce  every figure, number and claim of the paper, as a page in reproduction/

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test browser lint bench experiments reproduce clean

# The kernels in C are built by the installation, and again after a change.
$(VENV)/installed: pyproject.toml constraints.txt setup.py $(wildcard src/cmpg/cmdp/kernels/*.[ch])
	$(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) -e .
	touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(PIP_INSTALL) -e '.[dev,plot,report]'
	touch $@

$(VENV)/installed-plot: $(VENV)/installed
	$(PIP_INSTALL) -e '.[plot]'
	touch $@

demo: $(VENV)/installed
	$(BIN)/cmpg solve counter-example --restarts 10 --seed 1
	$(BIN)/cmpg solve grid-world

# The page is tested in a real browser. Where chromium cannot be installed, those tests are skipped, and say so.
browser:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; } || \
	  echo "chromium is not installed, and cannot be: THE PAGE IS NOT TESTED IN A BROWSER"

test: $(VENV)/installed-dev lint browser
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q

lint: $(VENV)/installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: $(VENV)/installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks --page docs/benchmarks.md

experiments: $(VENV)/installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments --jobs 2

reproduce: $(VENV)/installed-plot
	$(BIN)/cmpg reproduce --out reproduction

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
