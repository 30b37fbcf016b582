"""Docstrings of public functions: a runnable example with a derivative, and references to related functions."""

import ast
import doctest
import functools
import importlib
import importlib.util
import inspect
import math
import operator
import pathlib
import pickle
import re
import runpy
import sys
import traceback
import types

import numpy as np
import pytest
from scipy_checks import modules

import gradops
from gradops import config, ops

pytestmark = pytest.mark.documents

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "errors_page.py"

OPS = """abs associative_scan categorical_crossentropy cholesky clip concatenate cond conv custom_gradient diagonal
einsum exp fori_loop log_softmax logsumexp map matmul max mean norm relu scan segment_sum sigmoid softmax softplus
solve stack stop_gradient sum switch take top_k vectorized_map where while_loop""".split()
"""The most used ops."""

DERIVATIVE = re.compile(r"pushforward\(|grad\(|gradient\(|jacobian\(|hessian\(|[jvh]v?h?p\(|\.backward\b|gradcheck\(")


def public_functions() -> dict[str, object]:
    """Return the public functions outside ``gradops.ops`` by name, without error classes."""
    found: dict[str, object] = {"autodiff.profiler.profile": gradops.autodiff.profiler.profile}
    modules = [gradops]
    for module in modules:
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, types.ModuleType):
                if hasattr(value, "__all__") and value is not ops and value not in modules:
                    modules.append(value)
            elif callable(value) and not hasattr(value, "__metadata__"):  # `__metadata__` marks an annotation
                path = f"{module.__name__}.{name}".removeprefix("gradops.")
                found[path] = value
    return {path: value for path, value in found.items() if not _is_error(value)}


def scipys() -> dict[str, object]:
    """Return functions, classes and methods of ``gradops.scipy``, and its modules."""
    found: dict[str, object] = {}
    for module in modules():
        home = importlib.import_module(f"gradops.scipy.{module}")
        found[f"scipy.{module}"] = home
        values = {f"scipy.{module}.{name}": getattr(home, name) for name in home.__all__}
        found |= {
            path: value
            for path, value in values.items()
            if not getattr(value, "__module__", "").startswith("gradops.ops")
        }
    return found


def _is_error(value) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)


FUNCTIONS = {
    path: value for path, value in public_functions().items() if not path.startswith(("scipy.", "numpy.", "array_api."))
} | {
    "Variable.backward": gradops.Variable.backward,
    "numpy": gradops.numpy,
    "array_api": gradops.array_api,
}
SCIPY = scipys()
ERRORS = {f"errors.{name}": getattr(gradops.errors, name) for name in gradops.errors.__all__}
DOCUMENTED = (
    FUNCTIONS
    | {path: value for path, value in SCIPY.items() if inspect.ismodule(value)}  # functions: `test_scipy_docstrings.py`
    | {
        f"ops.{name}": op
        for name in sorted(ops._registry.names)
        if callable(op := operator.attrgetter(name)(ops)) and ">>>" in (op.__doc__ or "")
    }
)


def parts(path: str) -> list:
    """Return the text and the examples of a docstring, in order."""
    return doctest.DocTestParser().parse(inspect.getdoc((DOCUMENTED | ERRORS)[path]), path)


def runnable(path: str) -> list[doctest.Example]:
    """Return the examples, without those whose preceding paragraph names a missing library."""
    found, here = [], True
    for part in parts(path):
        if isinstance(part, doctest.Example):
            if here:
                found.append(part)
        elif part.strip():
            needed = re.findall(r"gradops\[(\w+)\]", part.rstrip().rpartition("\n\n")[2])
            here = all(importlib.util.find_spec(name) for name in needed)
    return found


@pytest.fixture(autouse=True)
def settings_restored():
    floatx, epsilon, backend = config.floatx(), config.epsilon(), config.backend()
    with config.backend_scope("numpy"):
        yield
    config.set_floatx(floatx)
    config.set_epsilon(epsilon)
    config.set_backend(backend)


SECTIONS = ["Args", "Attributes", "Returns", "Raises", "Gradient", "Examples", "See Also"]


def described(values: dict) -> dict[str, object]:
    """Return functions, modules and classes, with the methods of classes and distributions."""
    found = dict(values)
    for path, value in values.items():
        if not inspect.isfunction(value) and not inspect.ismodule(value):
            members = vars(value).items()
            found |= {f"{path}.{name}": m for name, m in members if callable(m) and not name.startswith("_")}
    return found


def test_sections_are_in_order():
    for name, value in described(SCIPY).items():
        lines = inspect.cleandoc(value.__doc__ or "").splitlines()
        starts = [i for i, line in enumerate(lines) if re.fullmatch(r"[A-Z][A-Za-z ]+:", line)]
        titles = [lines[i][:-1] for i in starts]
        assert titles == sorted(set(titles), key=SECTIONS.index), name
        text = lines[: starts[0] if starts else None]
        assert not any(before == "" and after.startswith("    ") for before, after in zip(text, text[1:])), name
        within = [line for i, line in enumerate(lines) if starts and i > starts[0] and i not in starts]
        assert all(line == "" or line.startswith("    ") for line in within), name


@pytest.mark.parametrize("path", [*DOCUMENTED, *ERRORS])
def test_examples_give_the_printed_output(path):
    test = doctest.DocTest(runnable(path), {"__name__": "__main__"}, path, None, None, None)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    assert runner.run(test, out=report.append).failed == 0, "".join(report)


def test_each_error_class_has_a_cause_and_a_fix_which_its_traceback_names():
    assert len(ERRORS) > 15
    for path, error in ERRORS.items():
        assert re.search(r"\n\nCause: .*\n\nFix: ", inspect.getdoc(error), re.S), path
        if issubclass(error, gradops.errors.GradopsError):
            found, link = error("wrong"), f"help(gradops.{path})"
            assert str(found) == f"wrong{' (in R)' * (path == 'errors.RError')}" and link in found.__notes__[0]
            assert (link in "".join(traceback.format_exception(found))) == (sys.version_info >= (3, 11))
            assert pickle.loads(pickle.dumps(found)).__notes__ == found.__notes__


@pytest.mark.repository
def test_page_of_errors_in_r_has_every_class():
    page = (ROOT / "man" / "gradops_errors.Rd").read_text()
    listed = re.findall(r"^\\item \\code\{(gradops_\w+)\}: [a-zA-Z]", page, re.M)
    sources = "".join(path.read_text() for path in (ROOT / "R").glob("*.R"))
    used = set(re.findall(r'"(gradops_(?:error|warning)_\w+)"', sources)) | {"gradops_error_callback"}
    used |= {f"gradops_error_{kind}" for error in ERRORS.values() if (kind := getattr(error, "kind", None))}
    used |= {"gradops_warning_mismatch", "gradops_warning_python"}
    assert {*listed} == used - {"gradops_error_error"}
    assert {*listed} <= {*re.findall(r"^\\alias\{(\w+)\}", page, re.M)}


@pytest.mark.skipif(not TOOL.exists(), reason="the tools are not part of the source distribution")
def test_page_of_errors_is_current():
    pytest.importorskip("torch"), pytest.importorskip("jax")
    tool = runpy.run_path(str(TOOL))
    assert tool["page"]() == tool["PAGE"].read_text(), "run tools/errors_page.py"


def test_public_functions_and_common_ops_have_examples():
    needed = [*FUNCTIONS, *(f"ops.{name}" for name in OPS)]
    assert len(FUNCTIONS) > 50
    assert not [path for path in needed if ">>>" not in (DOCUMENTED.get(path).__doc__ or "")]
    assert not [path for path in DOCUMENTED if "\nSee Also:\n" not in inspect.getdoc(DOCUMENTED[path])]


def test_scipy_modules_have_examples_and_functions_document_returns_and_gradients():
    homes = [f"scipy.{module}" for module in modules()]
    assert not [path for path in homes if path not in DOCUMENTED]
    docs = {path: inspect.getdoc(SCIPY[path]) or "" for path in SCIPY if path not in homes}
    for needed in ("\nReturns:\n", "\nGradient:\n"):
        assert not [path for path in docs if needed not in docs[path]]


def test_every_op_documents_returns_and_gradient():
    found = {f"{module.__name__}.{name}": getattr(module, name) for module in (ops, ops.image) for name in dir(module)}
    docs = {name: inspect.getdoc(op) or "" for name, op in found.items() if isinstance(op, types.FunctionType)}
    assert len(docs) > 300
    assert not [name for name in docs if "\nReturns:\n" not in docs[name]]
    assert not [name for name in docs if "\nGradient:\n" not in docs[name] and "no gradient" not in docs[name]]
    assert not [name for name in docs if ">>>" not in docs[name] and "no gradient" not in docs[name].lower()]
    opening = re.compile(r"(What|Whether|How|Which)\b")
    assert not [name for name in docs if opening.match(docs[name])]


def test_public_functions_document_arguments_returns_and_gradient():
    """Covers the top level, `functional` and `autodiff`, except functions without a derivative."""
    without_one = (
        "checkpoint_policy",
        "show_versions",
        "set_requires_gradient",
        "autodiff.is_",
        "autodiff.once_",
        "autodiff.gradgrad",
    )
    drawn = ("autodiff.draw", "autodiff.to_dot", "autodiff.get_gradient_edge", "autodiff.backward")
    looked = 0
    for path, function in FUNCTIONS.items():
        home = path.rpartition(".")[0]
        if inspect.isfunction(function) and home in ("", "functional", "autodiff"):
            if not path.startswith((*without_one, *drawn)):
                text, looked = inspect.getdoc(function), looked + 1
                needed = ["Args"] * bool(inspect.signature(function).parameters) + ["Returns", "Gradient"]
                assert not [title for title in needed if f"\n{title}:\n" not in text], path
    assert looked > 30


@functools.cache
def body_of(module: str) -> list[ast.stmt]:
    return ast.parse(inspect.getsource(importlib.import_module(module))).body


def raised(function) -> set[str]:
    """Return the errors that a function's own lines raise by name."""
    body = body_of(function.__module__)
    for name in function.__qualname__.split("."):
        found = [node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name]
        if not found or isinstance(found[0], ast.ClassDef):
            return set()
        body = found[0].body

    def lines(nodes):
        for node in nodes:
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                yield ast.unparse(node.exc.func).rpartition(".")[2]
            elif not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
                yield from lines(ast.iter_child_nodes(node))

    return vars(gradops.errors).keys() & set(lines(body))


def test_docstrings_list_the_errors_raised():
    found = {f"{module.__name__}.{name}": getattr(module, name) for module in (ops, ops.image) for name in dir(module)}
    functions = {path: value for path, value in (FUNCTIONS | SCIPY | found).items() if inspect.isfunction(value)}
    said = {path: inspect.getdoc(value).partition("\nRaises:\n")[2] for path, value in functions.items()}
    errors = {path: raised(value) for path, value in functions.items()}
    assert sum(map(bool, errors.values())) > 60
    assert not {path: lost for path in errors if (lost := {name for name in errors[path] if name not in said[path]})}


FORMULA = re.compile(r"(``[^`]+``|-?\d+)(?: and (``[^`]+``|-?\d+))?(?=[.;,:](?!\d))")


def formulas() -> dict[str, list[str]]:
    """Return the gradients of elementwise ops that are formulas, one per tensor, by op name."""
    found = {}
    for name in dir(ops):
        op = getattr(getattr(ops, name), "op", None)
        if op is not None and op.facts.elementwise:
            text = inspect.getdoc(op.call).partition("\nGradient:\n")[2].partition("\n\n")[0]
            match = FORMULA.match(" ".join(text.split()))
            given = [formula.strip("`") for formula in match.groups() if formula] if match else []
            if given and len(given) == len(op.tensors):
                found[name] = given
    return found


FORMULAS = formulas()


def test_many_gradients_are_formulas():
    assert len(FORMULAS) > 55


@pytest.mark.parametrize("name", FORMULAS)
def test_op_gradient_equals_the_docstring_formula(name):
    op = getattr(ops, name)
    defaults = {p.name: p.default for p in op.op.signature.parameters.values() if p.default is not p.empty}
    words = {**vars(ops), "pi": math.pi, "i1": ops.special.i1, **defaults}
    tensors, looked = op.op.tensors, 0
    for point in ((0.3, 0.7), (-0.6, 1.4), (1.3, 2.2)):
        at = dict(zip(tensors, point))
        with np.errstate(invalid="ignore"):
            words["y"] = y = op(*at.values())
        if not np.isfinite(y):
            continue  # outside the domain
        found = gradops.grad(op, argnums=tuple(range(len(tensors))))(*at.values())
        said = [eval(formula, words | at) for formula in FORMULAS[name]]
        np.testing.assert_allclose(np.array(found, dtype=float), np.array(said, dtype=float), rtol=1e-9, atol=1e-12)
        looked += 1
    assert looked


def test_examples_show_a_derivative():
    without_one = (
        "config.",
        "text.as_model",
        "text.remembered",
        "text.scripted",
        "autodiff.is_grad_",
        "show_versions",
        "autodiff.to_dot",
    )
    for path in DOCUMENTED:
        if not path.startswith(without_one):
            assert any(DERIVATIVE.search(part.source) for part in parts(path) if isinstance(part, doctest.Example)), (
                path
            )


def test_see_also_entries_exist():
    lost = []
    for path, function in DOCUMENTED.items():
        text = inspect.getdoc(function).partition("\nSee Also:\n")[2]
        parent = path.rpartition(".")[0]
        for name in re.findall(r":(?:func|class):`([\w.]+)`", text):
            names = (f"{parent}.{name}".lstrip("."), name.removeprefix("gradops."))
            if not any(_is_there(whole) for whole in names):
                lost.append(f"{path}: {name}")
    assert not lost


def _is_there(name: str) -> bool:
    place = gradops
    for part in name.split("."):
        place = getattr(place, part, None)
    return place is not None
