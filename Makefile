# flambeau's commands.  Each sets up what it needs: a machine with make and Python 3.11 is enough.

PYTHON ?= python3
JOBS   ?= $(shell nproc 2>/dev/null || sysctl -n hw.ncpu 2>/dev/null || echo 2)
ARGS   ?=
KIT    ?= -q
CUDA   ?= cuda12
WHOLE  ?= 0
NARROW ?=
SECONDS ?= 60

VENV     := .venv
RUN      := $(VENV)/bin/python
STEP     := $(PYTHON) .ci/step.py
# uv takes a fraction of pip's time, but knows nothing of the indexes that pip is told of.
INSTALL  := $(if $(shell command -v uv),sh -c 'uv pip install --python $(RUN) "$$@" || $(RUN) -m pip install "$$@"' -,$(RUN) -m pip install)
# Before the packages that ask for them, to say what takes the time.
OTHERS   := pluggy typing_extensions 'numpy>=2.1.2' scipy ml_dtypes threadpoolctl
# Tests are handed out in parts, and a worker that has none left takes some of another's: their times differ.
PYTEST    = $(RUN) -m pytest -n $(JOBS) --dist worksteal
PACKAGES := core nn backends/cpu_numpy backends/cpu_native backends/cpu_onednn backends/cuda_cupy backends/mpi
# What can be imported anywhere: flambeau_cupy needs CuPy.
DOCTESTED := $(filter-out backends/cuda_cupy,$(PACKAGES))
# Without compiled kernels: what they are built with is not what users install.
OLDEST   := core nn backends/cpu_numpy
# Half of their tests in a fifth of the time: what leans on the packages whose versions differ.
OLDEST_PART := type_info printing limited_dtypes complex storage plugin_host plugin_contract linalg \
  generator serialization samples array_api views_inplace reference quantiles exact_sampling
SOURCES  := $(shell find $(PACKAGES:%=%/src) -name '*.py')
MERGED   := build/merged
SITE     := build/docs
SANITIZED := $(CURDIR)/build/sanitized$(if $(NARROW),-narrow)
SPHINX    = $(RUN) -m sphinx --fail-on-warning --quiet -j $(JOBS) -c docs -d $(SITE)/doctrees

# Test workers share the cores already; a thread pool in each of them would fight over the same ones.
test oldest coverage parity docs foreign cuda-sources sanitize: export OMP_NUM_THREADS = 1
test oldest coverage parity docs foreign cuda-sources sanitize: export OPENBLAS_NUM_THREADS = 1

.PHONY: help venv demo test test-own test-kit test-accelerators programs fuzz mutants oldest cuda-sources gpu foreign foreign-kit sanitize coverage lint parity bench docs links wheels merged generate clean

help: ## this list
	@echo 'make [target] [PYTHON=python3.12] [JOBS=2] [ARGS="-m \"not slow\" -k view"]'
	@sed -n 's/^\([a-z-]*\):.* ## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

venv: $(VENV)/installed ## .venv with the packages installed for editing

demo: $(VENV)/with-demo ## train a convolutional network on handwritten digits
	@echo 'training a convolutional network on handwritten digits (10 to 30 s)'
	$(RUN) examples/digits.py $(ARGS)

# A part that fails keeps none of the others from running, and all that failed is named at the end.
test: $(VENV)/with-test ## every test that needs no PyTorch, and the conformance kit
	@# nproc counts no more cores than OMP_NUM_THREADS says, so the parts have to be told.
	@$(RUN) .ci/failures.py $(MAKE) --no-print-directory --keep-going JOBS=$(JOBS) \
	  test-own test-kit test-accelerators

test-own:
	$(PYTEST) --ignore=tests/parity $(ARGS)

test-kit:
	FLAMBEAU_BLOCK=flambeau-native,flambeau-onednn \
	$(PYTEST) --pyargs flambeau.testing.backend --device ref --device cpu $(KIT)

test-accelerators:
	@# The rest of cpu is the same with the accelerators: only what they compute is tested again.
	@bad=0; for package in flambeau_native flambeau_onednn; do \
	  ops=$$($(RUN) -m $$package) || { echo "$$package: has no library here; not tested"; continue; }; \
	  (set -x; $(PYTEST) --pyargs flambeau.testing.backend --device cpu $(KIT) -k "$$ops") \
	    || bad=1; \
	done; exit $$bad

fuzz: $(VENV)/with-test ## hostile calls of all that is public (SECONDS=60, ARGS="--seed 1 --first 0")
	$(RUN) tests/fuzz/calls_run.py --seconds $(SECONDS) $(ARGS)

mutants: $(VENV)/with-test ## kernels with one fault each: whether the conformance kit finds it (ARGS="--only sort")
	OMP_NUM_THREADS=1 $(RUN) tests/mutants/run.py $(ARGS)

cuda-sources: $(VENV)/with-test $(VENV)/with-nvrtc ## compile the CUDA kernels, and run them on the host
	$(PYTEST) backends/cuda_cupy/tests $(ARGS)
	@# CuPy can be imported without a device, but not into .venv: there it would be one that is broken.
	@# No folder in build may have a package's name: pyright would find it there from build/merged.
	@if [ -d build/with-cupy/cupy ] || $(RUN) -m pip install --quiet --no-deps --target build/with-cupy \
	    cupy-cuda12x==14.2.0 cuda-pathfinder; \
	  then (set -x; PYTHONPATH=$(CURDIR)/build/with-cupy $(PYTEST) backends/cuda_cupy/tests/test_names_of_cupy.py \
	    backends/cuda_cupy/tests/test_plugin.py); \
	  else echo 'skipped: CuPy cannot be installed here (no wheel for this machine, or no network)'; fi

gpu: $(VENV)/with-test ## on a machine with a GPU: its tests, the conformance kit, times (CUDA=cuda13)
	$(RUN) -m pip install --quiet -e './backends/cuda_cupy[$(CUDA),cudnn$(CUDA:cuda%=%),gemm$(CUDA:cuda%=%),nccl$(CUDA:cuda%=%)]'
	$(RUN) -m pytest backends/cuda_cupy/tests/test_gpu.py backends/cuda_cupy/tests/test_gpu_libraries.py $(ARGS)
	$(RUN) -m pytest --pyargs flambeau.testing.backend --device cuda $(KIT)
	$(RUN) benchmarks/run.py --device cuda

foreign: $(VENV)/with-test ## the backend on JAX: its own tests, the digits, the kit's first verdict
	@# Not into .venv, where `make test` would find it and run the whole kit on it.
	@if [ -d build/with-jax/jax ] || $(RUN) -m pip install --quiet --target build/with-jax --group foreign; \
	  then $(MAKE) --no-print-directory JOBS=$(JOBS) foreign-kit; \
	  else echo 'skipped: JAX cannot be installed here (no wheel for this Python, or no network)'; fi

# Compiling is what takes the time.
foreign-kit: export JAX_DISABLE_MOST_OPTIMIZATIONS = 1
foreign-kit:
	$(RUN) -m pip install --quiet --no-deps --upgrade --target build/with-foreign ./examples/backends/jax
	PYTHONPATH=$(CURDIR)/build/with-jax \
	$(PYTEST) tests/test_foreign_backends.py -k 'not conformance_kit and not toy' $(ARGS)
	PYTHONPATH=$(CURDIR)/build/with-foreign:$(CURDIR)/build/with-jax \
	$(PYTEST) --pyargs flambeau.testing.backend --device jax --quick --seconds 0 $(KIT)

# gcc's libraries have to be there before Python is.
SANITIZING = LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
  PYTHONPATH=$(SANITIZED)/site FLAMBEAU_TEST_WHOLE=$(WHOLE) FLAMBEAU_NATIVE_NARROW=$(NARROW)

sanitize: $(SANITIZED)/.stamp ## flambeau-native under gcc's ASan and UBSan (WHOLE=1: misfits in all dtypes; NARROW=1: no AVX)
	$(SANITIZING) $(PYTEST) backends/cpu_native/tests tests/test_races.py $(ARGS)
	$(SANITIZING) $(PYTEST) --pyargs flambeau.testing.backend.test_misfits --device cpu $(KIT)

oldest: $(VENV)/installed ## the core's tests with the oldest versions that the packages allow (PART=1: half)
	$(PYTHON) -m venv build/oldest
	build/oldest/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	build/oldest/bin/python -m pip install --quiet --constraint .ci/oldest.txt \
	  $(OLDEST:%=-e ./%) --group test
	build/oldest/bin/python -m pytest -n $(JOBS) --dist worksteal \
	  $(if $(PART),$(OLDEST_PART:%=core/tests/test_%.py),core/tests) -m 'not slow' $(ARGS)

coverage: $(VENV)/with-test $(VENV)/with-coverage ## the tests again, with the lines they miss
	$(PYTEST) --ignore=tests/parity --cov --cov-report=term $(ARGS)

lint: $(VENV)/with-lint $(MERGED)/.stamp ## style, generated files, types, layers
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m flambeau._tools.methods --check
	$(RUN) -m pyright --pythonpath $(RUN)
	$(RUN) tests/typing/check.py $(MERGED)
	PYTHONPATH=$(MERGED) $(VENV)/bin/lint-imports

parity: $(VENV)/with-parity ## the same programs on flambeau and on PyTorch
	$(PYTEST) tests/parity $(ARGS)

programs: $(VENV)/with-parity ## other people's programs on PyTorch and on flambeau (ARGS='--sources DIR "*vae*"')
	@# Not into .venv: what they need is large, and would be found by the tests.
	@[ -d build/programs/venv ] || { $(PYTHON) -m venv build/programs/venv \
	  && build/programs/venv/bin/pip install --quiet -r tests/programs/requirements.txt $(PACKAGES:%=-e ./%); }
	$(RUN) tests/programs/run.py --python build/programs/venv/bin/python $(ARGS)

bench: $(VENV)/with-bench ## ratios to PyTorch and to bare NumPy, as docs/benchmarks.md (DEVICE=cuda: on a GPU)
	$(RUN) benchmarks/run.py $(if $(DEVICE),--device $(DEVICE) $(ARGS),$(or $(ARGS),--write))

docs: $(VENV)/with-docs ## the site in build/docs/html, its links, and every example in it and in docstrings
	$(RUN) docs/_ext/pages.py $(SITE)/source
	$(SPHINX) -b html $(SITE)/source $(SITE)/html
	@# torch.ops has an attribute of every name: pytest would take one for the module's plugins.
	@# Two files for event files are imported where the package tensorboard is, and have no examples.
	$(PYTEST) --doctest-modules $(DOCTESTED:%=%/src) tests/test_documentation.py \
	  tests/test_documentation_site.py --ignore=core/src/flambeau/testing/backend \
	  --ignore=core/src/flambeau/compat/_torch/ops.py \
	  --ignore=core/src/flambeau/utils/tensorboard/summary.py \
	  --ignore=core/src/flambeau/utils/tensorboard/_by_tensorboard.py $(ARGS)

links: $(VENV)/with-docs ## whether the addresses outside of the site still answer
	$(RUN) docs/_ext/pages.py $(SITE)/source
	$(SPHINX) -b linkcheck $(SITE)/source $(SITE)/links

wheels: $(VENV)/installed ## dist: a wheel of each package, the same bytes for the same commit, and what is in them
	$(RUN) .ci/wheels.py dist $(PACKAGES)

merged: $(MERGED)/.stamp ## the packages in one folder, as wheels install them

generate: $(VENV)/installed ## rewrite the generated files from the op declarations
	$(RUN) core/src/flambeau/_tools/methods.py
	$(RUN) -m flambeau._tools.contract --write
	$(RUN) -m flambeau._tools.scaffolds

clean: ## remove what make made
	rm -rf $(VENV) build dist digits-out .coverage .coverage.* htmlcov
	rm -rf .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The versions that wheels are built with need pip 25.3, which is younger than Python 3.11 and 3.12.
$(VENV)/installed: pyproject.toml $(PACKAGES:%=%/pyproject.toml) $(wildcard backends/cpu_native/csrc/*)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo '$(PYTHON) is older than 3.11; name a newer one: make PYTHON=python3.12' >&2; exit 1; }
	@$(STEP) 'an environment in $(VENV), and pip (5 to 10 s)' sh -c "$(PYTHON) -m venv $(VENV) && \
	  $(RUN) -m pip install --upgrade 'pip>=25.3'"
	@$(STEP) 'NumPy, SciPy and the rest that flambeau computes with (5 to 30 s)' $(INSTALL) $(OTHERS)
	@$(STEP) 'flambeau itself, whose kernels are compiled (20 to 60 s of one core)' $(INSTALL) $(PACKAGES:%=-e ./%)
	@touch $@

$(VENV)/with-%: $(VENV)/installed
	@$(STEP) 'packages of other people for $* (5 to 60 s)' $(INSTALL) --group $*
	@touch $@

# In a folder of its own: .venv keeps the library that was built without.
$(SANITIZED)/.stamp: $(VENV)/with-test $(wildcard backends/cpu_native/csrc/*) $(wildcard backends/cpu_native/src/*/*.py)
	rm -rf $(SANITIZED)
	mkdir -p $(SANITIZED)
	printf '[build]\nbuild_base=$(SANITIZED)/objects\n' > $(SANITIZED)/setup.cfg
	FLAMBEAU_NATIVE_SANITIZE=1 FLAMBEAU_NATIVE_NARROW=$(NARROW) DIST_EXTRA_CONFIG=$(SANITIZED)/setup.cfg \
	$(RUN) -m pip install --quiet --no-deps --target $(SANITIZED)/site ./backends/cpu_native
	@touch $@

$(MERGED)/.stamp: Makefile $(VENV)/installed $(SOURCES)
	rm -rf $(MERGED)
	$(RUN) -m pip install --quiet --no-deps --target $(MERGED) $(PACKAGES:%=./%)
	@touch $@
