python := .venv/bin/python
export TF_CPP_MIN_LOG_LEVEL ?= 2

.PHONY: setup demo test quick test-long check lint bench docs site

setup:
	tools/setup

demo:
	tools/demo

test:
	tools/test

quick:
	tools/test --quick

# The random and long tests, which report their seeds: GRADOPS_LONG=<factor> makes them longer.
test-long: export GRADOPS_LONG ?= 1
test-long: setup
	$(python) -m pytest -q -n 2 -p no:benchmark -m long -rA
	NOT_CRAN=true RETICULATE_PYTHON=$(CURDIR)/$(python) GRADOPS_BACKEND=numpy Rscript -e 'library(gradops); testthat::test_file("tests/testthat/test-random-arguments.R", package = "gradops", load_package = "installed", stop_on_failure = TRUE)'

# R CMD check as CRAN runs it, but for the manual, which needs LaTeX, and what asks CRAN itself.
check: export RETICULATE_PYTHON = $(CURDIR)/$(python)
check: setup
	_R_CHECK_CRAN_INCOMING_=false _R_CHECK_SYSTEM_CLOCK_=0 \
	  R CMD check --as-cran $(if $(shell command -v pdflatex),,--no-manual) -o .build "$$(tools/build)"

lint: setup
	$(python) -m ruff check .
	$(python) -m ruff format --check .
	$(python) -m mypy
	Rscript -e 'lints <- lintr::lint_package(); print(lints); quit(status = length(lints) > 0)'

bench: export RETICULATE_PYTHON = $(CURDIR)/$(python)
bench: setup
	for script in $(filter-out benchmarks/timing.py,$(wildcard benchmarks/*.py)); do $(python) $$script || exit; done
	for script in $(wildcard benchmarks/*.R); do Rscript $$script || exit; done

docs: setup
	$(python) tools/generate_r
	$(python) tools/ops_table.py
	Rscript -e 'roxygen2::roxygenise()'

# The web site, in .build/site.
site:
	tools/site
