"""Type stubs under mypy and pyright: exactly the mistakes marked in ``typing_examples.py`` are reported."""

import ast
import inspect
import json
import pathlib
import re
import runpy
import shutil
import subprocess
import sys
from types import FunctionType

import pytest

import gradops.text  # noqa: F401  # whose methods variables have
from gradops import Variable, ops
from gradops.ops._dispatch import Op

pytestmark = pytest.mark.documents

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EXAMPLES = pathlib.Path(__file__).with_name("typing_examples.py")
SCRIPT = pathlib.Path(__file__).with_name("typing_script.py")
MARKED = {
    number: found[1]
    for number, line in enumerate(EXAMPLES.read_text().splitlines(), 1)
    if (found := re.search(r"# error: (\S+)$", line))
}


@pytest.fixture(scope="module", autouse=True)
def stubs():
    subprocess.run([sys.executable, ROOT / "tools" / "stubs"], check=True)


def test_mypy_reports_exactly_the_marked_mistakes():
    pytest.importorskip("mypy")
    cache = f"--cache-dir={ROOT / '.mypy_cache'}"
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--follow-imports=silent", cache, str(EXAMPLES)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    found = re.findall(r"^[^:\n]*typing_examples\.py:(\d+): error: .*\[(\S+)\]$", ran.stdout, re.MULTILINE)
    assert {int(line) for line, _ in found} == MARKED.keys(), ran.stdout + ran.stderr
    assert MARKED.items() <= {(int(line), code) for line, code in found}


def diagnostics(path: pathlib.Path, folder: pathlib.Path, **settings) -> list[dict]:
    """Return what pyright reports of a file, which it checks in an empty folder."""
    (folder / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(ROOT / "python")], **settings}))
    shutil.copy(path, folder)
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(folder)]
    return json.loads(subprocess.run(command, capture_output=True, text=True).stdout)["generalDiagnostics"]


def test_pyright_reports_exactly_the_marked_mistakes(tmp_path):
    pytest.importorskip("pyright")
    found = diagnostics(EXAMPLES, tmp_path)
    errors = {(d["range"]["start"]["line"] + 1): d["message"] for d in found if d["severity"] == "error"}
    assert errors.keys() == MARKED.keys(), {n: errors.get(n) for n in errors.keys() ^ MARKED.keys()}


def test_a_script_is_correct_under_mypy_in_strict_mode():
    pytest.importorskip("mypy")
    cache = f"--cache-dir={ROOT / '.mypy_cache'}"
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", cache, str(SCRIPT)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_script_is_correct_under_pyright_in_strict_mode(tmp_path):
    pytest.importorskip("pyright")
    assert diagnostics(SCRIPT, tmp_path, typeCheckingMode="strict") == []


def test_the_script_runs(capsys):
    runpy.run_path(str(SCRIPT))
    assert capsys.readouterr().out.endswith("axis 2\n")


def arguments(stub: ast.FunctionDef) -> list[str]:
    listed = [*stub.args.args, stub.args.vararg, *stub.args.kwonlyargs, stub.args.kwarg]
    return [argument.arg for argument in listed if argument]


def test_stubs_hold_every_op_with_its_arguments():
    stub = ast.parse((ROOT / "python/gradops/ops/__init__.pyi").read_text()).body
    functions = {node.name: arguments(node) for node in stub if isinstance(node, ast.FunctionDef)}
    imported = {alias.asname for node in stub if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert set(ops.__all__) <= functions.keys() | imported
    for name, value in vars(ops).items():
        if isinstance(getattr(value, "op", None), Op):
            assert functions[name] == list(value.op.signature.parameters), name


def test_stubs_hold_every_method_of_variables():
    methods = ast.parse((ROOT / "python/gradops/autodiff/_methods.pyi").read_text()).body[-1].body
    own = re.findall(r"^    (?:def )?(\w+)\b", inspect.getsource(Variable), re.MULTILINE)
    described = {*own, *(node.name for node in methods)}
    added = {name for name, value in vars(Variable).items() if isinstance(value, (FunctionType, property))}
    assert {name for name in added if not name.startswith("_") or name.startswith("__")} <= described
    assert {"__add__", "__array_ufunc__", "mean", "T"} <= {node.name for node in methods}
