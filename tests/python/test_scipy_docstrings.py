"""Docstrings of ``gradops.scipy``: examples with a derivative, whose numbers SciPy's differences confirm."""

import contextlib
import doctest
import importlib
import inspect
import io
import re
import warnings

import numpy as np
import pytest
from scipy_checks import modules

import gradops
from gradops import ops
from gradops.scipy import _examples

MODULES = {module: importlib.import_module(f"gradops.scipy.{module}") for module in modules()}
ALL_ROWS = {module: list(_examples.rows(f"gradops.scipy.{module}")) for module in MODULES}
ROWS = {module: rows for module, rows in ALL_ROWS.items() if rows}
NUMBER = re.compile(r"-?(?:\d+\.?\d*(?:e[+-]?\d+)?|\bnan\b|\binf\b)")


class Differences:
    """``gradops`` in an example of SciPy's functions: Richardson's differences in place of derivatives."""

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


def printed(row: _examples.Row, module: str, derivatives, functions) -> str:
    """The lines that an example prints, with the module's functions and the derivatives given."""
    names = {"np": np, "ops": ops, "gradops": derivatives, module.rpartition(".")[2]: functions}
    lines = io.StringIO()
    with contextlib.redirect_stdout(lines), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for example in examples(row):
            exec(example.source, names)
    return lines.getvalue()


def of_scipys(module: str):
    """SciPy's module, and the rows of the functions that it has: an older one has fewer."""
    home = importlib.import_module(f"scipy.{module}")
    return home, [row for row in ROWS[module] if row.example and hasattr(home, row.name)]


@pytest.mark.parametrize("module", ROWS)
def test_the_examples_print_what_they_say(module):
    _, rows = of_scipys(module)
    wrong = {}
    for row in rows:
        found, said = printed(row, module, gradops, MODULES[module]), "".join(e.want for e in examples(row))
        if found != said:
            wrong[row.name] = found
    assert not wrong


@pytest.mark.parametrize("module", ROWS)
def test_the_numbers_are_those_of_differences_of_scipys_functions(module):
    home, rows = of_scipys(module)
    wrong = {}
    for row in rows:
        found = printed(row, module, Differences, home)
        a, b = [np.array(NUMBER.findall(text), float) for text in ("".join(e.want for e in examples(row)), found)]
        if a.shape != b.shape or not np.allclose(a, b, rtol=1e-4, atol=2e-6):
            wrong[row.name] = found
    assert not wrong


@pytest.mark.parametrize("module", ROWS)
def test_each_function_has_an_example_with_a_derivative_and_others_to_see(module):
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
        lost += [f"{name}: {title}" for title in ("Raises", "See Also") if f"\n{title}:\n" not in text]
    assert not lost


@pytest.mark.parametrize("module", ROWS)
def test_the_functions_to_see_are_there(module):
    for row in ROWS[module]:
        assert row.see, row.name
        for path in row.see:
            home, _, name = path.rpartition(".")
            assert hasattr(importlib.import_module(home) if home else MODULES[module], name), f"{row.name}: {path}"
