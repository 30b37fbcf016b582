"""Mistakes of newcomers who follow the pages, and the correction that each error message suggests."""

import types

import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate
import scipy.optimize
from parity import BACKENDS, tensors

import gradops
from gradops import errors, functional, grad, hvp, inference, ops, value_and_grad, vmap
from gradops.scipy import stats

ONE, TWO, START = np.array(1.0), np.ones(2), {"m": 0.0, "s": 1.0}


def with_constraint():
    keeps = {"type": "ineq", "fun": lambda x: x[0], "jac": grad(lambda x: np.array([x[0] - 1])[0])}
    scipy.optimize.minimize(lambda x: x[0] ** 2, [2.0], method="SLSQP", constraints=keeps)


WRITTEN = {
    "a pair, not declared": (
        lambda: value_and_grad(lambda x: (x * x, x))(1.0),
        errors.GradientError,
        "has_aux=True",
    ),
    "parameters in a class": (
        lambda: grad(lambda p: p.w)(types.SimpleNamespace(w=1.0)),
        errors.ArgumentTypeError,
        "named tuples",
    ),
    "no return": (lambda: grad(lambda x: None)(1.0), errors.GradientError, "`return`"),
    "hvp of the tensors": (
        lambda: hvp(ops.sum, {"a": TWO}, {"a": TWO}),
        errors.ArgumentTypeError,
        "`hvp`: `primals` must be a tuple.*\n.*functional.hvp",
    ),
    "backward of constants": (lambda: gradops.Variable(1.0).backward(), errors.GradientError, "requires_grad=True"),
    "vmap over a number": (lambda: vmap(lambda x, y: x * y)(TWO, 2.0), errors.ShapeError, r"in_axes=\(0, None\)"),
    "SciPy's quad": (
        lambda: grad(lambda a: scipy.integrate.quad(lambda x: a * x, 0, 1)[0])(2.0),
        errors.GradientError,
        "gradops.scipy.integrate.quad",
    ),
    "SciPy's spline": (
        lambda: grad(lambda y: scipy.interpolate.CubicSpline(np.arange(4.0), y)(1.5))(np.ones(4)),
        errors.ArgumentTypeError,
        "gradops.scipy.interpolate.CubicSpline`",
    ),
    "NumPy's array in a function that SciPy calls": (
        with_constraint,
        errors.ArgumentTypeError,
        "import gradops.numpy as np",
    ),
    "R's argument": (
        lambda: stats.norm.logpdf(TWO, 0, sd=1),
        errors.ArgumentTypeError,
        "its arguments are x, loc, scale",
    ),
    "a likelihood of each observation": (
        lambda: inference.fit(lambda p: -stats.norm.logpdf(TWO, p["m"], p["s"]), START),
        errors.ShapeError,
        r"ops.sum\(\)",
    ),
    "a likelihood without return": (lambda: inference.fit(lambda p: None, START), errors.ArgumentTypeError, "`return`"),
    "a likelihood of several arguments": (
        lambda: inference.fit(lambda m, s: m + s, START),
        errors.ArgumentTypeError,
        "function of one argument.*\n.*one argument, in the form of `start`",
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_error_says_what_to_write(name):
    call, kind, says = WRITTEN[name]
    with pytest.raises(kind, match=says):
        call()


@pytest.mark.parametrize("backend", BACKENDS)
def test_equation_without_solution_raises(backend):
    with pytest.raises(errors.GradientError, match="Jacobian of `f` in the unknowns is singular.*\n.*no solution"):
        functional.root(lambda z: z**2 + 1, tensors(ONE, backend))


def test_fit_attributes_have_statsmodels_names():
    rng = np.random.default_rng(1)
    y = rng.normal(3, 2, 50)
    found = inference.fit(lambda p, y: -ops.sum(stats.norm.logpdf(y, p["m"], p["s"])), START, y)
    z = np.array([found.params[name] / found.bse[name] for name in found.names])
    np.testing.assert_allclose(found.tvalues, z)
    np.testing.assert_allclose(found.pvalues, scipy.stats.norm.sf(abs(z)) * 2)
    assert repr(found.summary()) == str(found.summary()) and "std. error" in found.summary()
