python := .venv/bin/python
export TF_CPP_MIN_LOG_LEVEL ?= 2

.PHONY: setup demo test quick test-rules test-gpu test-long test-neighbours test-new-r check lint bench docs site

setup:
	tools/setup

demo:
	tools/demo

test:
	tools/test

quick:
	tools/test --quick

# Each rule of each op (native code, derivatives, batches, patterns) against the op itself, in some 30 seconds.
test-rules: setup
	$(python) -m pytest -q -n 2 -p no:benchmark tests/python/test_rules.py tests/python/test_facts.py

# What tensors of an NVIDIA GPU give, PyTorch's and JAX's, in an environment with their CUDA builds.
gpu_tests := parity contract custom_gradient custom_arguments flow checkpoint function modes functional transformations \
  linalg reductions shaping nesting scope_order dtypes batched scipy_special scipy_special_functions scipy_functions \
  scipy_stats scipy_stats_discrete scipy_stats_multivariate scipy_linalg scipy_signal scipy_interpolate scipy_integrate \
  scipy_optimize scipy_sparse scipy_fft scipy_ndimage scipy_spatial
test-gpu: export GRADOPS_TEST_DEVICE ?= cuda
test-gpu: export GRADOPS_TEST_BACKENDS ?= torch jax
test-gpu: export GRADOPS_ALL_CASES = 1
test-gpu: python = python3
test-gpu:
	$(python) -m pytest -q -n 8 -p no:benchmark -p no:cacheprovider -m "not long" -k "not tensorflow" \
	  $(gpu_tests:%=tests/python/test_%.py)

# The long suite, a part of it, or that of files: make test-long PART=2/40 FILES="tests/python/test_parity.py".
test-long:
	tools/test --long $(PART) $(FILES)

# The R tests with keras3, so tensorflow, loaded before gradops and after it, on each backend. GRADOPS_NEIGHBOURS names a
# library with keras3; `$GRADOPS_COMPANIONS/install LIBRARY keras3` makes one from a folder of sources.
test-neighbours: export RETICULATE_PYTHON = $(CURDIR)/$(python)
test-neighbours: export NOT_CRAN = true
test-neighbours: export GRADOPS_LONG ?= 0.1
test-neighbours: setup
	status=0; for backend in numpy torch tensorflow jax; do for order in before after; do \
	  Rscript tools/neighbours.R $$backend $$order || status=1; done; done; exit $$status

# The R tests on NumPy in Debian 13, whose R, Python, NumPy and SciPy are newer; or a command, such as
# make test-new-r COMMAND="Rscript tools/test.R --only=jit numpy".
DEBIAN13 ?= /var/tmp/gradops-debian13
test-new-r:
	tools/debian13 $(DEBIAN13) $(COMMAND)

# R CMD check as CRAN runs it, but for the manual, which needs LaTeX, and what asks CRAN itself; without a CRAN mirror that
# answers, which `--as-cran` asks for its packages, by R's own rules.
check: export RETICULATE_PYTHON = $(CURDIR)/$(python)
check: setup
	_R_CHECK_FORCE_SUGGESTS_=false _R_CHECK_CRAN_INCOMING_=false _R_CHECK_SYSTEM_CLOCK_=0 \
	  R CMD check $$(Rscript tools/r_packages.R --as-cran) $(if $(shell command -v pdflatex),,--no-manual) -o .build "$$(tools/build)"

lint: setup
	$(python) -m ruff check .
	$(python) -m ruff format --check .
	$(python) -m mypy
	tools/prose
	Rscript -e 'lints <- lintr::lint_package(); print(lints); quit(status = length(lints) > 0)'

bench: export RETICULATE_PYTHON = $(CURDIR)/$(python)
bench: setup
	for script in $(filter-out benchmarks/timing.py,$(wildcard benchmarks/*.py)); do $(python) $$script || exit; done
	for script in $(wildcard benchmarks/*.R); do Rscript $$script || exit; done

# What is made from the code, and whether the pages hold: links, index, charts, files and figures that they name.
page_tests := site architecture trust reviewers docstrings
docs: setup
	$(python) tools/generate_r
	$(python) tools/ops_table.py
	$(python) tools/engines_table.py
	$(python) tools/errors_page.py
	tools/setup # the wrappers made above; roxygen2 reads them installed, as it would need pkgbuild to compile src/
	# exports first, as the page of masked functions reads NAMESPACE
	Rscript -e 'for (roclets in list("namespace", NULL)) roxygen2::roxygenise(roclets = roclets, load_code = "installed")'
	$(python) -m pytest -q -p no:benchmark -m "not long" $(page_tests:%=tests/python/test_%.py)

# The web site, in .build/site; `make test-long` looks at it in a browser.
site:
	tools/site
