"""Runs a part of the Python tests on the versions of tools/versions.csv.

For each library the table has the oldest version that pyproject.toml claims, one in between, and the newest. `nox` runs
all but PyTorch, which is a download of gigabytes; `nox -t torch jax` runs those of some libraries; `nox --list` lists
them. Pythons are found on PATH; those of pyenv with PYENV_VERSION=3.10:3.11:3.12:3.13.
"""

import csv

import nox

nox.options.tags = ["numpy", "tensorflow", "jax"]
nox.options.envdir = ".venv-oldest"
nox.options.reuse_venv = "yes"
nox.options.error_on_missing_interpreters = True
TOOLS = "scipy absl-py array-api-strict flatbuffers hypothesis mpmath pytest pytest-xdist".split()
TESTS = (
    "contract custom_gradient custom_arguments flow stop_gradient_scope scope_order checkpoint "
    "function modes functional transformations"
)
# The other tests of gradops.scipy need the newest SciPy.
TESTS_OF_NUMPY = (
    "tape variable inplace jit jit_branches jit_loops tree scipy_formulas scipy_optimize scipy_stats_multivariate"
)
with open("tools/versions.csv", newline="") as table:
    ROWS = [
        nox.param(row["python"], row, id=f"{row['library']}-{row['version']}", tags=[row["library"]])
        for row in csv.DictReader(table)
    ]


@nox.session
@nox.parametrize(["python", "row"], ROWS)
def versions(session, row):
    numpy = row["library"] == "numpy"
    chosen = "not torch and not tensorflow and not jax" if numpy else row["library"]
    tests = [f"tests/python/test_{name}.py" for name in (TESTS + " " + TESTS_OF_NUMPY * numpy).split()]
    settings = {"TF_ENABLE_ONEDNN_OPTS": "0", "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}
    session.env.update(settings, GRADOPS_ALL_CASES="1")
    session.install("-q", *row["requirements"].split(), *TOOLS)
    run = ["pytest", "-q", "-n", "2", "-p", "no:cacheprovider"]
    session.run(*run, "-m", "not long", "-k", chosen, *tests)
    sampled = "test_forward or test_gradient or test_second_gradient"
    session.run(*run, "tests/python/test_parity.py", "-k", sampled, env={"GRADOPS_SAMPLE": "16"})
