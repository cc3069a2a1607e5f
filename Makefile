# Two commands: `make demo` and `make test`. Both set up .venv by themselves; a second run reuses it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo demo-shelf demo-serve docs docs-serve docs-look picture dist browser test pytest test-processors lint bench bench-learners bench-small-data bench-models bench-large reproduce clean

demo: $(VENV)/.installed
	$(BIN)/dpplearn demo

# Raw orders of 13 categories to a shelf of models, and recommendations for all of them; a minute on 2 cores, the
# environment included. A second call does only what has changed.
demo-shelf: $(VENV)/.installed
	mkdir -p demo-shelf
	$(BIN)/python examples/orders.py demo-shelf/orders.parquet
	$(BIN)/dpplearn prepare demo-shelf/orders.parquet -o demo-shelf/prepared --min-count 50
	$(BIN)/dpplearn fit-all demo-shelf/prepared -o demo-shelf/shelf
	$(BIN)/dpplearn recommend-all demo-shelf/shelf demo-shelf/orders.parquet --unknown drop \
		-o demo-shelf/recommendations.parquet

# Learns a small shelf, serves it and prints the address; with CHECK=1, asks one request of each kind and leaves.
demo-serve: $(VENV)/.installed-serve
	$(BIN)/dpplearn demo-serve $(if $(CHECK),--check)

# The manual, in build/docs/html; a minute on 2 cores. Every warning is an error.
docs: $(VENV)/.installed-docs
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx -b html -W --keep-going -q docs build/docs/html
	@echo "The manual is in build/docs/html/index.html"

docs-serve: docs
	@echo "The manual is at http://127.0.0.1:8010/; Ctrl-C ends it"
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/docs/html 8010

# Every page in a browser, at the size of a desk and of a phone; screenshots in build/screenshots/manual.
docs-look: docs $(VENV)/.installed-test
	$(BIN)/python tests/look_at_manual.py

# The picture of the README, which is kept in the repository; a test says if it is not the script's.
picture: $(VENV)/.installed-report
	$(BIN)/python docs/figures/drawing.py docs/figures basket

# An sdist and a wheel in dist/, and the wheel in an empty environment, with all that it needs from the package index.
dist: $(VENV)/.installed-dist
	rm -rf dist build/dist-check
	$(BIN)/python -m build
	$(PYTHON) -m venv build/dist-check
	build/dist-check/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt dist/*.whl
	cd build/dist-check && bin/dpplearn --version && bin/dpplearn demo --quiet -n 500

# What the tests of the pages look for where it is not installed: axe-core and a browser, by npm.
browser:
	npm install --no-save --no-audit --no-fund axe-core @sparticuz/chromium

# Linters, all tests, and the short processor check.
test: lint pytest
	$(BIN)/python tests/processors.py --short

# One BLAS thread per worker: two workers keep two cores busy.
pytest: $(VENV)/.installed-test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

# Doctests and numerical tests as on other processors, with one and with two BLAS threads; half an hour on 2 cores.
test-processors: $(VENV)/.installed-test
	$(BIN)/python tests/processors.py

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks

# Every learner on every problem; two hours and a half. What is done is kept: a second call goes on.
bench-learners: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks.learners

# Priors on 2N, 5N, 20N and all baskets of every category; half an hour on 2 cores. A second call goes on.
bench-small-data: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks.small_data --processes 2

# The models beside each other and beside baselines; half an hour on 2 cores. A second call goes on.
bench-models: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks.models

# Large catalogues: Belgian retail, a known mixture of 100,000 items, growth; half an hour on 2 cores.
bench-large: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks.large

# The experiments of the paper; half an hour on 2 cores. Needs the authors' registries in data/registries or in
# $DPPLEARN_SHARED/data/registries. Options: make reproduce OPTIONS="--quick --generated".
DPPLEARN_SHARED ?= ../shared
reproduce: $(VENV)/.installed-report
	DPPLEARN_SHARED=$(DPPLEARN_SHARED) $(BIN)/python -m reproduction $(OPTIONS)

clean:
	rm -rf $(VENV) build dist demo-shelf docs/_drawn docs/reference/generated .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "dpplearn needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable .
	@touch $@

$(VENV)/.installed-test: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable '.[test]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-serve: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable '.[serve]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-bench: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable '.[bench,report,serve]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable '.[docs]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-dist: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) build
	@touch $@

$(VENV)/.installed-report: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable '.[report]'
	@touch $@ $(VENV)/.installed
