"""Docstrings of ``gradops.scipy``: examples with a derivative, checked against finite differences of SciPy."""

import contextlib
import doctest
import functools
import importlib
import inspect
import io
import re
import types
import warnings

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from scipy_checks import modules

import gradops
from gradops import ops
from gradops.scipy import _examples

pytestmark = pytest.mark.documents

MODULES = {module: importlib.import_module(f"gradops.scipy.{module}") for module in modules()}
ROWS = {module: list(_examples.rows(f"gradops.scipy.{module}")) for module in MODULES}
NUMBER = re.compile(r"-?(?:\d+\.?\d*(?:e[+-]?\d+)?|\bnan\b|\binf\b)")


class Differences:
    """Stands for ``gradops`` in an example of SciPy functions: Richardson differences instead of derivatives."""

    @staticmethod
    def jacobian(function):
        def of(x):
            x = np.asarray(x, dtype="float64")
            columns = []
            for place in np.ndindex(x.shape):
                step = np.zeros(x.shape)
                step[place] = max(1.0, abs(x[place])) / 2000
                y = {k: np.asarray(function((x + k * step)[()])) for k in (-2, -1, 1, 2)}
                columns.append((8 * (y[1] - y[-1]) - (y[2] - y[-2])) / (12 * step[place]))
            return np.moveaxis(np.array(columns), 0, -1).reshape((*columns[0].shape, *x.shape))[()]

        return of

    grad = jacobian


def examples(row: _examples.Row) -> list[doctest.Example]:
    return doctest.DocTestParser().get_examples(row.example)


def printed(row: _examples.Row, module: str, derivatives, functions, package) -> str:
    """Return the lines that an example prints with the given functions and derivatives."""
    package_name, _, name = module.rpartition(".")
    names = {"np": np, "ops": ops, "gradops": derivatives, package_name: package, name: functions}
    lines = io.StringIO()
    with contextlib.redirect_stdout(lines), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for example in examples(row):
            exec(example.source, names)
    return lines.getvalue()


SHARP = {
    "brent": {"tol": 1e-12},
    "curve_fit": {"ftol": 1e-13, "xtol": 1e-13},
    "fmin": {"xtol": 1e-9, "ftol": 1e-12},
    "fmin_powell": {"xtol": 1e-9, "ftol": 1e-12},
    "fmin_l_bfgs_b": {"approx_grad": True, "pgtol": 1e-9, "factr": 10.0},
    "fmin_tnc": {"approx_grad": True, "disp": 0},
    "approx_fprime": {"epsilon": 1e-5},
}
"""Functions of :mod:`scipy.optimize` that need tighter tolerances or an option for finite differences."""

OTHERS = {
    "fmin_ncg": lambda f, x, disp: scipy.optimize.fmin_bfgs(f, x, disp=disp),
    "check_grad": lambda f, slope, x: np.linalg.norm(slope(x) - scipy.optimize.approx_fprime(x, f, 1e-5)),
    "logdet": lambda A: np.linalg.slogdet(A.toarray())[1],
    "selected_inverse": lambda A: scipy.sparse.csc_array(np.linalg.inv(A.toarray())),
}
"""Functions missing in SciPy, or that only accept a derivative."""


def of_scipys(module: str) -> dict:
    """Return the functions of the installed SciPy by name, with tolerances tight enough for differences."""
    found = dict(vars(importlib.import_module(f"scipy.{module}")))
    if module == "optimize":
        found |= {name: functools.partial(found[name], **options) for name, options in SHARP.items()}
    return found | {name: f for name, f in OTHERS.items() if hasattr(MODULES[module], name)}


HEAVY = {"tplquad"}
"""Functions whose examples take seconds."""


def rows_of(module: str, heavy: bool = False) -> list[_examples.Row]:
    """Return the rows with an example, for functions of the installed SciPy."""
    here = of_scipys(module)
    return [row for row in ROWS[module] if row.example and row.name in here and (row.name in HEAVY) == heavy]


def is_so(module: str, rows: list[_examples.Row]) -> None:
    """Check that examples print what they show, and that differences of SciPy's functions print the same."""
    package, functions = module.partition(".")[0], types.SimpleNamespace(**of_scipys(module))
    wrong = {}
    for row in rows:
        said = "".join(example.want for example in examples(row))
        found = printed(row, module, gradops, MODULES[module], MODULES[package])
        other = printed(row, module, Differences, functions, importlib.import_module(f"scipy.{package}"))
        a, b = [np.array(NUMBER.findall(text), float) for text in (said, other)]
        if found != said or a.shape != b.shape or not np.allclose(a, b, rtol=1e-4, atol=2e-6):
            wrong[row.name] = (said, found, other)
    assert not wrong


@pytest.mark.parametrize("module", MODULES)
def test_examples_match_differences_of_scipy_functions(module):
    is_so(module, rows_of(module))


@pytest.mark.long
@pytest.mark.parametrize("module", ["integrate"])
def test_heavy_examples_match_differences_of_scipy_functions(module):
    is_so(module, rows_of(module, heavy=True))


@pytest.mark.parametrize("module", MODULES)
def test_each_function_has_an_example_with_a_derivative_and_related_functions(module):
    lost = []
    for name in MODULES[module].__all__:
        value = getattr(MODULES[module], name)
        if inspect.ismodule(value) or (getattr(value, "__module__", "") or "").startswith("gradops.ops"):
            continue
        text = inspect.getdoc(value)
        example = text.partition("\nExamples:\n")[2].partition("\n\n")[0]
        constant = re.search(r"\nGradient:\n    (None|An error)\b", text)
        if not constant and not re.search(r">>>.*\bgradops\.\w+\(", example):
            lost.append(f"{name}: an example with a derivative")
        needed = ["See Also", "Raises"] if constant is None else ["See Also"]
        lost += [f"{name}: {title}" for title in needed if f"\n{title}:\n" not in text]
    if lost:
        pytest.fail(f"add to python/gradops/scipy/_examples/ (see its __init__.py) or the docstring: {'; '.join(lost)}")


@pytest.mark.parametrize("module", MODULES)
def test_related_functions_exist(module):
    for row in ROWS[module]:
        assert row.see, row.name
        for path in row.see:
            home, _, name = path.rpartition(".")
            assert hasattr(importlib.import_module(home) if home else MODULES[module], name), f"{row.name}: {path}"


@pytest.mark.parametrize("module", MODULES)
def test_errors_implied_by_the_signature_are_raised(module):
    said = {
        "ArgumentTypeError: an argument that is not a number": "text",
        "ArgumentTypeError: a function that is not callable": 3.0,
    }
    for name in MODULES[module].__all__:
        value = getattr(MODULES[module], name)
        for wrong in [wrong for words, wrong in said.items() if words in (inspect.getdoc(value) or "")]:
            needed = [p for p in inspect.signature(value).parameters.values() if p.default is p.empty]
            with pytest.raises(gradops.errors.ArgumentTypeError):
                value(*[wrong] * len(needed))
                pytest.fail(name)
