# flambeau's commands.  Each sets up what it needs: a machine with make and Python 3.11 is enough.

PYTHON ?= python3
JOBS   ?= $(shell nproc 2>/dev/null || sysctl -n hw.ncpu 2>/dev/null || echo 2)
ARGS   ?=
KIT    ?= -q

VENV     := .venv
RUN      := $(VENV)/bin/python
PACKAGES := core nn backends/cpu_numpy
SOURCES  := $(shell find $(PACKAGES:%=%/src) -name '*.py')
MERGED   := build/merged

# Test workers share the cores already; a thread pool in each of them would fight over the same ones.
test coverage parity docs: export OMP_NUM_THREADS = 1
test coverage parity docs: export OPENBLAS_NUM_THREADS = 1

.PHONY: help venv demo test coverage lint parity bench docs merged generate clean

help: ## this list
	@echo 'make [target] [PYTHON=python3.12] [JOBS=2] [ARGS="-m \"not slow\" -k view"]'
	@sed -n 's/^\([a-z]*\):.* ## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

venv: $(VENV)/installed ## .venv with the packages installed for editing

demo: $(VENV)/with-demo ## train a convolutional network on handwritten digits
	$(RUN) examples/digits.py $(ARGS)

test: $(VENV)/with-test ## every test that needs no PyTorch, in parallel, and the conformance kit
	$(RUN) -m pytest -n $(JOBS) --ignore=tests/parity $(ARGS)
	$(RUN) -m pytest -n $(JOBS) --pyargs flambeau.testing.backend --device ref --device cpu $(KIT)

coverage: $(VENV)/with-test $(VENV)/with-coverage ## the tests again, with the lines they miss
	$(RUN) -m pytest -n $(JOBS) --ignore=tests/parity --cov --cov-report=term $(ARGS)

lint: $(VENV)/with-lint $(MERGED)/.stamp ## style, generated files, types, layers
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m flambeau._tools.methods --check
	$(RUN) -m pyright --pythonpath $(RUN)
	PYTHONPATH=$(MERGED) $(VENV)/bin/lint-imports

parity: $(VENV)/with-parity ## the same programs on flambeau and on PyTorch
	$(RUN) -m pytest -n $(JOBS) tests/parity $(ARGS)

bench: $(VENV)/with-bench ## ratios to PyTorch and to bare NumPy, from one interleaved run
	$(RUN) benchmarks/run.py $(ARGS)

docs: $(VENV)/with-test ## run every example of the docstrings and of the pages
	$(RUN) -m pytest -n $(JOBS) --doctest-modules $(PACKAGES:%=%/src) tests/test_documentation.py \
	  --ignore=core/src/flambeau/testing/backend $(ARGS)

merged: $(MERGED)/.stamp ## the packages in one folder, as wheels install them

generate: $(VENV)/installed ## rewrite the generated files from the op declarations
	$(RUN) core/src/flambeau/_tools/methods.py

clean: ## remove what make made
	rm -rf $(VENV) build dist digits-out .coverage .coverage.* htmlcov
	rm -rf .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Dependency groups need pip 25.1, which is younger than Python 3.11 and 3.12.
$(VENV)/installed: pyproject.toml $(PACKAGES:%=%/pyproject.toml)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo '$(PYTHON) is older than 3.11; name a newer one: make PYTHON=python3.12' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --upgrade 'pip>=25.1'
	$(RUN) -m pip install --quiet $(PACKAGES:%=-e ./%)
	@touch $@

$(VENV)/with-%: $(VENV)/installed
	$(RUN) -m pip install --quiet --group $*
	@touch $@

$(MERGED)/.stamp: $(VENV)/installed $(SOURCES)
	rm -rf $(MERGED)
	$(RUN) -m pip install --quiet --no-deps --target $(MERGED) $(PACKAGES:%=./%)
	@touch $@
