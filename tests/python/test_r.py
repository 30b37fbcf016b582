"""The long suite of R: each R test file on each backend, in a separate R process."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = sorted(path.stem.removeprefix("test-") for path in (ROOT / "tests" / "testthat").glob("test-*.R"))
pytestmark = [pytest.mark.long, pytest.mark.repository]


@pytest.mark.parametrize("backend", ["numpy", "torch", "tensorflow", "jax"])
@pytest.mark.parametrize("name", FILES)
def test_file(name, backend):
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed")
    environment = os.environ | {"GRADOPS_LONG": os.environ.get("GRADOPS_LONG", "1"), "NOT_CRAN": "true"}
    environment.setdefault("RETICULATE_PYTHON", sys.executable)
    command = ["Rscript", "tools/test.R", f"--only={name}", backend]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
