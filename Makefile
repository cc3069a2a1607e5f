# Start with `make demo` and `make test`. Both create .venv; a second run reuses it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo demo-orders demo-serve docs docs-serve docs-look picture dist browser test pytest quick test-processors lint bench bench-learners bench-small-data bench-models bench-large reproduce clean

# The paper's comparison on generated registries, and what the mixture adds.
demo: $(VENV)/.installed
	$(BIN)/python examples/demo.py

# Raw orders of 13 categories to one model per category, and recommendations for all baskets; about a minute on 2 cores.
# A second call does only what has changed.
demo-orders: $(VENV)/.installed
	mkdir -p demo-orders
	$(BIN)/python examples/orders.py demo-orders/orders.parquet
	$(BIN)/dpplearn prepare demo-orders/orders.parquet -o demo-orders/prepared --min-count 50
	$(BIN)/dpplearn fit-all demo-orders/prepared -o demo-orders/models
	$(BIN)/dpplearn recommend demo-orders/models --baskets demo-orders/orders.parquet --unknown drop -k 10 \
		-o demo-orders/recommendations.parquet

# Fit models of three categories and serve them; with CHECK=1, send one request to each endpoint and stop.
demo-serve: $(VENV)/.installed-serve
	$(BIN)/python examples/serve.py $(if $(CHECK),--check)

# Build the manual in build/docs/html; a minute on 2 cores. Every warning is an error.
docs: $(VENV)/.installed-docs
	rm -rf docs/reference/generated
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx -b html -W --keep-going -q docs build/docs/html
	@echo "The manual is in build/docs/html/index.html"

docs-serve: docs
	@echo "The manual is at http://127.0.0.1:8010/; Ctrl-C ends it"
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/docs/html 8010

# Open every page in a browser, in desktop and phone size; screenshots in build/screenshots/manual.
docs-look: docs $(VENV)/.installed-test
	$(BIN)/python tests/look_at_manual.py

# Draw the figure of the README. A test checks that the committed files are up to date.
picture: $(VENV)/.installed-report
	$(BIN)/python docs/figures/drawing.py docs/figures basket

# Build an sdist and a wheel in dist/. Install the wheel with its dependencies in an empty environment and fit a model.
dist: $(VENV)/.installed-dist
	rm -rf dist build/dist-check
	$(BIN)/python -m build
	$(PYTHON) -m venv build/dist-check
	build/dist-check/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt dist/*.whl
	cp examples/first_model.py build/dist-check
	cd build/dist-check && bin/dpplearn --version && bin/python first_model.py && bin/dpplearn describe model.safetensors

# What the tests of the pages look for where it is not installed: axe-core and a browser, by npm.
browser:
	npm install --no-save --no-audit --no-fund axe-core @sparticuz/chromium

# Linters, all tests, and the short processor check; six minutes on 2 cores.
test: lint pytest
	$(BIN)/python tests/processors.py --short

# All tests, with those that are marked slow. One BLAS thread per worker: two workers keep two cores busy.
pytest: $(VENV)/.installed-test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m ""

# The default tests, without those that start processes, servers, browsers or clusters.
quick: $(VENV)/.installed-test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

# Doctests and numerical tests as on other processors, with one and with two BLAS threads; a quarter of an hour on 2 cores.
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

# Shrinkage on 2N, 5N, 20N and all baskets of eight categories; a few minutes. A second call continues.
bench-small-data: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks.small_data

# The models beside each other and beside baselines; half an hour on 2 cores. A second call goes on.
bench-models: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks.models

# Large catalogues: Belgian retail and a known mixture of 100,000 items; some minutes on 2 cores.
bench-large: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks.large

# The experiments of the paper; half an hour on 2 cores. Needs the authors' registries in data/registries or in
# $DPPLEARN_SHARED/data/registries. Options: make reproduce OPTIONS="--quick --generated".
DPPLEARN_SHARED ?= ../shared
reproduce: $(VENV)/.installed-report
	DPPLEARN_SHARED=$(DPPLEARN_SHARED) $(BIN)/python -m reproduction $(OPTIONS)

clean:
	rm -rf $(VENV) build dist demo-orders docs/_drawn docs/reference/generated .mypy_cache .ruff_cache .pytest_cache .hypothesis

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
