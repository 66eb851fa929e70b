# make demo         solves the paper's counter-example and grid world, with certificates
# make test         linters, types, all tests
# make lint         linters and types alone
# make cover        all tests, then the branch coverage by file, and by room in docs/coverage.md
# make lowest       all tests with the lowest versions that pyproject.toml allows
# make sanitize     the tests of the C kernels, under AddressSanitizer and UBSan, with random and hostile games
# make fuzz         spoilt files at every door, and games of hard numbers: five minutes, or MINUTES=300; findings become tests
# make mutants      one decision of the library changed at a time, and whether a test notices: a sample, or SAMPLE=0 for all; docs/mutants.md
# make forgeries    two thousand forged claims, proofs and run folders, and as many about masks and support: each must be refused
# make oversized    a hundred requests that are too large, under an address space of 1 GiB
# make sweep        a hundred thousand random games before an exact judge, written to docs/sweep.md; stop it and start it as you like
# make docs         the documentation as a site in site/, built without a network
# make reproduce    every figure, number and claim of the paper, as a page in reproduction/
# make bench        ratios against what a user would pick instead, written to docs/benchmarks.md
# make oracles      answers beside those of Storm, OpenSpiel, Gambit, QuantEcon, Nashpy and cvxpy, written to docs/cross-checks.md
# make experiments  learning over hundreds of seeds, written to docs/experiments*.md; stop it and start it as you like
# make quality      how good one solve is over 52 games, written to docs/quality.md
# make hard-budgets budgets of zero: fleets and charging days, confirmed by reachability alone, written to docs/hard-budgets.md
# make resilience   kills sweeps and learners, workers and clients, and compares what they end with
# make picture      the README's picture, taken again
# make audit        known vulnerabilities of everything that constraints.txt pins, asked of PyPI
# make release      rehearses a release: builds twice, installs, solves every scenario, tests the source archive; publishes nothing

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := -m pip install --quiet --disable-pip-version-check
PIP_INSTALL := $(BIN)/python $(PIP) -c constraints.txt
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q

.PHONY: demo test browser lint sanitize cover lowest forgeries oversized sweep fuzz mutants docs reproduce bench oracles experiments quality hard-budgets picture audit release clean

# The kernels in C are built by the installation, and again after a change.
$(VENV)/installed: pyproject.toml constraints.txt setup.py $(wildcard src/cmpg/cmdp/kernels/*.[ch])
	$(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) -e .
	touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(PIP_INSTALL) -e '.[dev,docs,plot,report]'
	touch $@

$(VENV)/installed-plot: $(VENV)/installed
	$(PIP_INSTALL) -e '.[plot]'
	touch $@

$(VENV)/installed-docs: $(VENV)/installed
	$(PIP_INSTALL) -e '.[docs]'
	touch $@

.venv-lowest/installed: pyproject.toml constraints-lowest.txt
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python $(PIP) -c constraints-lowest.txt -e '.[plot,report,pettingzoo,frames]' \
	  pytest pytest-xdist hypothesis websocket-client cvxpy pygame-ce pyyaml build
	touch $@

# An extension of its own, in a copy of the sources; leaks are not looked for, since the interpreter keeps what it likes.
sanitize: $(VENV)/installed-dev
	rm -rf build/sanitized && mkdir -p build/sanitized && cp -r src setup.py pyproject.toml README.md LICENSE build/sanitized
	rm -f build/sanitized/src/cmpg/cmdp/kernels/*.so
	cd build/sanitized && CFLAGS="-O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all" \
	  LDFLAGS="-fsanitize=address,undefined" ../../$(BIN)/pip install -q --no-deps --target installed .
	LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libstdc++.so)" ASAN_OPTIONS=detect_leaks=0 \
	  CMPG_KERNELS=compiled PYTHONPATH=build/sanitized/installed PYTHONMALLOC=malloc OMP_NUM_THREADS=1 \
	  $(BIN)/python -m pytest -q -p no:cacheprovider tests/test_cmdp/test_kernels.py tests/test_cmdp/test_process_kernels.py \
	    tests/test_games/test_local_kernels.py tests/test_fuzzing.py::test_games_with_hard_numbers_end_with_a_status \
	    $(patsubst %,'tests/test_sweep.py::test_no_claim_about_a_random_game_is_wrong[%]',0 1 2 3 4)

demo: $(VENV)/installed
	$(BIN)/cmpg solve counter-example --restarts 10 --seed 1
	$(BIN)/cmpg solve grid-world

# The page is tested in a real browser. Where there is none, and chromium cannot be installed, those tests are skipped, and say so.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; } || \
	  echo "chromium is not installed, and cannot be: THE PAGE IS NOT TESTED IN A BROWSER"

test: $(VENV)/installed-dev lint browser
	$(PYTEST)

lint: $(VENV)/installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

cover: $(VENV)/installed-dev browser
	$(BIN)/coverage erase
	OMP_NUM_THREADS=1 $(BIN)/coverage run -m pytest -n 2 --dist worksteal -q
	$(BIN)/coverage combine --quiet
	mkdir -p build && $(BIN)/coverage json --quiet -o build/coverage.json
	$(BIN)/python -m checks cover
	$(BIN)/coverage report --include='*/equilibrium/certificate.py,*/files/*' --fail-under=100
	$(BIN)/coverage report --fail-under=95

lowest: .venv-lowest/installed browser
	OMP_NUM_THREADS=1 .venv-lowest/bin/python -m pytest -n 2 --dist worksteal -q

# Guided by coverage where atheris can be installed, door by door; then by the mutations of tests/fuzzing.
MINUTES ?= 5
GUIDED_MINUTES ?= 0.2
GUIDED := nfg map pairs network trips dpomdp sessions
fuzz: $(VENV)/installed-dev
	-$(PIP_INSTALL) -e '.[fuzz]' && for door in $(GUIDED); do \
	  $(BIN)/python -m checks fuzz --engine atheris --door $$door --minutes $(GUIDED_MINUTES) || exit 1; done
	$(BIN)/python -m checks fuzz --minutes $(MINUTES)

SAMPLE ?= 24
mutants: $(VENV)/installed-dev
	$(BIN)/python -m checks mutants --sample $(SAMPLE)

GAMES ?= 100000
forgeries: $(VENV)/installed-dev
	$(BIN)/python -m checks forgeries

oversized: $(VENV)/installed-dev
	$(BIN)/python -m checks oversized

sweep: $(VENV)/installed-dev
	$(BIN)/python -m checks sweep --games $(GAMES)

docs: $(VENV)/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html in any browser; for its search: $(BIN)/python -m http.server --directory site"

reproduce: $(VENV)/installed-plot
	$(BIN)/cmpg reproduce --out reproduction

bench: $(VENV)/installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m checks bench --page docs/benchmarks.md

# The tools of others are not pinned: a new release of one of them is what this is for. Of MOMAland only the environments are used.
.venv-oracles/installed: pyproject.toml
	$(PYTHON) -m venv .venv-oracles
	.venv-oracles/bin/python $(PIP) -e '.[oracles,frames,plot,report]' pytest hypothesis pygame-ce
	.venv-oracles/bin/python $(PIP) --no-deps momaland
	touch $@

MADP := $(wildcard ../shared/data/madp)

oracles: .venv-oracles/installed
	OMP_NUM_THREADS=1 .venv-oracles/bin/python -m pytest -q tests/test_interop docs/coming-from docs/coming-from.md
	OMP_NUM_THREADS=1 .venv-oracles/bin/python -m checks oracles --page docs/cross-checks.md $(if $(MADP),--madp $(MADP))

experiments: $(VENV)/installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m checks learning --jobs 2
	OMP_NUM_THREADS=1 $(BIN)/python -m checks learning --structured --jobs 2
	OMP_NUM_THREADS=1 $(BIN)/python -m checks learning-samples
	OMP_NUM_THREADS=1 $(BIN)/python -m checks bounds

quality: $(VENV)/installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m checks quality record build/quality/quality_after.json
	OMP_NUM_THREADS=1 $(BIN)/python -m checks tricks
	$(BIN)/python -m checks quality page

hard-budgets: $(VENV)/installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m checks hard-budgets

resilience: $(VENV)/installed-dev
	$(BIN)/python -m checks resilience $(if $(SESSIONS),--sessions $(SESSIONS))

picture: $(VENV)/installed-dev
	$(BIN)/python -m checks picture docs/charging-page.png

.venv-audit/installed:
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/python $(PIP) pip-audit
	touch $@

# What PyPI does not answer for is listed as skipped.
audit: .venv-audit/installed
	.venv-audit/bin/pip-audit --disable-pip --no-deps -r constraints.txt

release: $(VENV)/installed-dev browser
	$(BIN)/python -m checks release --tests

clean:
	rm -rf $(VENV) .venv-lowest .venv-oracles .venv-audit site build dist .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .hypothesis
