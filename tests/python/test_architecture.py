"""docs/architecture.md and CONTRIBUTING.md name files that exist; the toy op, kernel and rule work on every backend."""

import fnmatch
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


FOLDERS = ("python", "R", "tests", "tools", "docs", "benchmarks", "inst", "examples", "src")


def code_of(page: pathlib.Path) -> str:
    """Return a page's text outside code blocks."""
    return re.sub(r"```.*?```", "", page.read_text(), flags=re.S)


def named_paths(page: pathlib.Path) -> list[str]:
    """Return the paths that a page names, also in commands, as patterns: ``{a,b}`` expanded, ``NAME`` as ``*``."""
    found = []
    for word in " ".join(re.findall(r"`([^`]+)`", code_of(page))).split():
        before, *parts = re.split(r"\{(.*?)\}", word)
        words = [f"{before}{choice}{parts[1]}" for choice in parts[0].split(",")] if parts else [word]
        words = [re.sub(r"[A-Z]{4,}|<\w+>", "*", each).rstrip("/") for each in words]
        found += [x for x in words if re.fullmatch(rf"(?:{'|'.join(FOLDERS)})/[\w./*-]+|[\w./*-]+\.(?:py|R)", x)]
    return found


@pytest.mark.repository
@pytest.mark.parametrize("page", [PAGE, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_the_named_files_exist(page):
    named = named_paths(page)
    assert len(named) > 20
    files = [f"/{path.relative_to(ROOT)}" for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    assert [name for name in named if not fnmatch.filter(files, f"*/{name}")] == []


@pytest.mark.repository
@pytest.mark.parametrize("page", [PAGE, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_files_define_what_the_page_says_is_in_them(page):
    claims = re.findall(r"`(\w+)(?:\(\))?`\s+in\s+`([\w./-]+\.(?:py|R))`", code_of(page))
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    for name, file in claims:
        texts = [path.read_text() for path in files if str(path).endswith(f"/{file}")]
        assert any(re.search(rf"\b{name}\b", text) for text in texts), f"{page.name}: `{name}` in `{file}`"


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


def tool_of_ops():
    spec = importlib.util.spec_from_file_location("ops_table", ROOT / "tools" / "ops_table.py")
    ops_table = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(ops_table)
    return ops_table


@pytest.mark.repository
def test_page_of_rules_is_current():
    ops_table = tool_of_ops()
    assert ops_table.RULES.read_text() == ops_table.rules_page(), "docs/rules.md is stale: run tools/ops_table.py"


@pytest.mark.repository
def test_ops_table_tells_where_an_op_and_its_rules_are():
    for library in ("torch", "tensorflow", "jax"):
        pytest.importorskip(library)
    ops_table = tool_of_ops()

    def line(op: str, what: str) -> str:
        path, number = dict(re.split(r": +", each, maxsplit=1) for each in ops_table.where(op))[what].split(":")
        return (ROOT / path).read_text().splitlines()[int(number) - 1]

    assert line("cumprod", "op").startswith("def cumprod(")
    assert line("cumprod", "kernel, torch").startswith("def cumprod(")
    assert line("softplus", "op").startswith("def softplus(")
    assert line("softplus", "derivative by x").startswith('derivative("softplus", x=')
    assert line("softplus", "native rule").startswith('@rule("softplus"')
    assert any("derivative: " in each and "body" in each for each in ops_table.where("cumprod"))
