"""Type stubs under mypy and pyright: exactly the mistakes marked in ``typing_examples.py`` are reported."""

import json
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.documents

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EXAMPLES = pathlib.Path(__file__).with_name("typing_examples.py")
MARKED = {
    number: found[1]
    for number, line in enumerate(EXAMPLES.read_text().splitlines(), 1)
    if (found := re.search(r"# error: (\S+)$", line))
}


def test_mypy_reports_exactly_the_marked_mistakes():
    pytest.importorskip("mypy")
    cache = f"--cache-dir={ROOT / '.mypy_cache'}"
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--follow-imports=silent", cache, str(EXAMPLES)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    found = re.findall(r"^[^:\n]*typing_examples\.py:(\d+): error: .*\[(\S+)\]$", ran.stdout, re.MULTILINE)
    assert {int(line) for line, _ in found} == MARKED.keys(), ran.stdout + ran.stderr
    assert MARKED.items() <= {(int(line), code) for line, code in found}


def test_pyright_reports_exactly_the_marked_mistakes(tmp_path):
    pytest.importorskip("pyright")
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(ROOT / "python")]}))
    shutil.copy(EXAMPLES, tmp_path)
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True)
    found = json.loads(ran.stdout)["generalDiagnostics"]
    errors = {(d["range"]["start"]["line"] + 1): d["message"] for d in found if d["severity"] == "error"}
    assert errors.keys() == MARKED.keys(), {n: errors.get(n) for n in errors.keys() ^ MARKED.keys()}


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.4.0", reason="the methods' arguments are this NumPy's")
def test_stubs_match_the_ops():
    ran = subprocess.run([sys.executable, ROOT / "tools" / "stubs", "--check"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
