"""R inside Python through rpy2: the cases of rpy2_cases.py, each run in a process that embeds R."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("rpy2") is None or not (os.environ.get("R_HOME") or shutil.which("R")),
    reason="needs rpy2 and R",
)


def python(*arguments, **environment):
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(HERE.parents[1] / "python"), **environment},
        capture_output=True,
        text=True,
        timeout=400,
        cwd=HERE,
    )


@pytest.mark.parametrize(
    ("where", "cases"),
    [
        ("own", "numpy or thread or robjects or conditions"),
        pytest.param("own", "", marks=pytest.mark.long),
        pytest.param(
            "main", "numpy or thread or robjects or tf_function or conditions or views", marks=pytest.mark.long
        ),
    ],
)
def test_r_on_a_separate_thread_and_on_the_main_thread(where, cases):
    options = ["-q", "-x", "--capture=sys", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not long", "-k", cases]
    done = python("-m", "pytest", *options, "rpy2_cases.py", R_THREAD=where)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    assert "skipped" not in done.stdout


@pytest.mark.long
def test_long_runs():
    done = python("-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "long", "rpy2_cases.py", R_THREAD="own")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]


CALL = "from gradops.interop.r import r_function; r_function('dnorm')(0.0)"


def test_missing_rpy2_error_says_what_to_install():
    done = python("-c", f"import sys; sys.modules['rpy2'] = None; {CALL}")
    assert "BackendError" in done.stderr
    assert "pip install rpy2" in done.stderr


def test_missing_r_error_says_so():
    done = python("-c", CALL, R_HOME="/nowhere", PATH="/nowhere")
    assert "BackendError" in done.stderr
    assert "install R" in done.stderr


def test_r_in_python_in_r_is_refused():
    done = python("-c", f"import sys, types; sys.modules['rpycall'] = types.ModuleType('rpycall'); {CALL}")
    assert "R runs this Python" in done.stderr
