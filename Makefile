# make demo        solve the paper's counter-example and grid world, with certificates
# make test        linters, types, all tests; PYTHON=/path/to/python3.12 for another Python, ORDER=7 to repeat an order
# make lint        linters and types alone
# make docs        the documentation as a site in site/, built without a network
# make reproduce   every figure, number and claim of the paper, as a page in reproduction/
# make bench       speed beside what a user would use instead
# make verified    the checker that is proved correct in Coq: cmpg-verify, and its proofs where Coq is installed
# make check       list all other checks; make check NAME="sweep --games 1000" runs one
# make clean       remove everything that was built

PYTHON ?= python3
# Every other Python has an environment of its own.
VENV := .venv$(if $(filter-out python python3,$(PYTHON)),-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])'))
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test browser ocaml lint docs reproduce bench verified check clean

# The kernels in C are built by the installation, and again after a change.
$(VENV)/installed: pyproject.toml constraints.txt setup.py $(shell find src -name '*.[ch]')
	$(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) -e .
	touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(PIP_INSTALL) -e '.[dev,docs,plot]'
	touch $@

$(VENV)/installed-plot: $(VENV)/installed
	$(PIP_INSTALL) -e '.[plot]'
	touch $@

$(VENV)/installed-docs: $(VENV)/installed
	$(PIP_INSTALL) -e '.[docs]'
	touch $@

demo: $(VENV)/installed
	$(BIN)/cmpg solve counter-example --restarts 10 --seed 1
	$(BIN)/cmpg solve grid-world

# Pages are tested in a real browser. Where there is none and chromium cannot be installed, those tests are skipped.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; } || \
	  echo "chromium is not installed, and cannot be: pages are not tested in a browser"

# The verified checker is built from its committed extraction. Where OCaml cannot be installed, its tests are skipped.
ocaml:
	@command -v ocamlfind >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends ocaml ocaml-findlib libzarith-ocaml-dev >/dev/null; } || \
	  echo "OCaml is not installed, and cannot be: the verified checker is not tested"

test: $(VENV)/installed-dev lint browser ocaml
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q $(if $(ORDER),--order $(ORDER))

lint: $(VENV)/installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

docs: $(VENV)/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html in any browser; for its search: $(BIN)/python -m http.server --directory site"

reproduce: $(VENV)/installed-plot
	$(BIN)/cmpg reproduce --out reproduction

bench: $(VENV)/installed-dev
	$(BIN)/python -m checks bench

check: $(VENV)/installed-dev
	$(BIN)/python -m checks $(NAME)

verified:
	$(MAKE) -C verified

clean:
	rm -rf .venv .venv-* site build dist reproduction .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .hypothesis
