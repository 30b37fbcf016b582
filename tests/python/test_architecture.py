"""docs/architecture.md is correct: its files exist, and its toy op works on every backend, with a kernel and a rule."""

import importlib.machinery
import importlib.util
import pathlib
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.documents

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "architecture.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.S)


@pytest.mark.repository
def test_the_named_files_exist():
    named = re.findall(r"`((?:python|R|tests|tools|docs|benchmarks)/[\w./-]*)`", PAGE.read_text())
    assert len(named) > 20
    missing = [path for path in named if not (ROOT / path).exists()]
    folders = [ROOT / name for name in ("python", "R", "tests", "tools", "docs", "benchmarks", "inst", "examples")]
    files = [str(file) for folder in folders for kind in ("py", "R") for file in folder.rglob(f"*.{kind}")]
    for name in re.findall(r"`([\w./-]+\.(?:py|R))`", PAGE.read_text()):
        if not any(file.endswith(f"/{name}") for file in files):
            missing.append(name)
    assert not missing


@pytest.mark.repository
def test_r_names_are_defined_once():
    """All R files share one namespace, where a second definition silently replaces the first."""
    files = sorted((ROOT / "R").glob("*.R"))
    names = [name for file in files for name in re.findall(r"^`?([\w.<\[\]$%-]+?)`? <- ", file.read_text(), flags=re.M)]
    assert len(names) > 1000
    assert sorted({name for name in names if names.count(name) > 1}) == []


TOY = (
    "\n".join(BLOCKS)
    + """
import importlib.util
import gradops
from gradops import backends, functional
from gradops.autodiff import Variable, gradcheck, gradgradcheck
from gradops.autodiff.record import has_derivative

x = np.array([-3.0, -0.4, 0.3, 2.5])
expected = huber_of_numpy(x, 1.5)
assert has_derivative("huber")
for name in backends.NAMES:
    if not backends.installed(name):
        continue
    with gradops.config.backend_scope(name):
        at = ops.convert_to_tensor(x.tolist())
        assert np.allclose(ops.convert_to_numpy(huber(at, 1.5)), expected), name
        first = gradops.grad(lambda t: ops.sum(huber(t, 1.5)))(at)
        assert np.allclose(ops.convert_to_numpy(first), np.clip(x, -1.5, 1.5)), name
        second = gradops.grad(lambda t: ops.sum(gradops.grad(lambda s: ops.sum(huber(s, 1.5)))(t)))(at)
        assert np.allclose(ops.convert_to_numpy(second), np.abs(x) < 1.5), name
composed = huber(x, 1.5)
import gradops.backends.numpy
gradops.backends.numpy.huber = huber_of_numpy
huber.op.kernels.clear()
assert huber.op.native(backends.lookup("numpy")) is huber_of_numpy
assert np.array_equal(huber(x, 1.5), composed)
v = Variable(x, requires_grad=True)
assert gradcheck(huber, v) and gradgradcheck(huber, v)
print("the toy works")
"""
)


@pytest.mark.long
@pytest.mark.slow
def test_toy_op_with_kernel_and_rule():
    run = subprocess.run([sys.executable, "-c", TOY], capture_output=True, text=True, cwd=ROOT / "python")
    assert run.returncode == 0, run.stderr[-2000:]
    assert "the toy works" in run.stdout


@pytest.mark.repository
def test_toy_op_has_an_r_function():
    namespace: dict = {}
    exec(BLOCKS[0].replace("@op\n", ""), namespace)  # its signature is all that the generator reads
    namespace["huber"].__module__ = "gradops.ops.toy"
    loader = importlib.machinery.SourceFileLoader("generate_r", str(ROOT / "tools" / "generate_r"))
    spec = importlib.util.spec_from_loader("generate_r", loader)
    generate_r = importlib.util.module_from_spec(spec)
    loader.exec_module(generate_r)
    row = {"r_name": "op_huber", "python_name": "huber", "r_args": ""}
    generate_r.OPS["huber"] = row, namespace["huber"]
    made = generate_r.wrapper(row, namespace["huber"])
    assert made.splitlines() == [
        "op_huber <- function(x, delta = 1) {",
        '  call_op("huber", operand(x), delta)',
        "}",
    ]
    page = generate_r.page("Losses", "Of each element.", [generate_r.Entry(namespace["huber"])], True)
    assert "#' @param delta Where it turns linear." in page and "(Huber 1964)" in page and "op_huber(x)" in page
