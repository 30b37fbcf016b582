"""SciPy's own functions on variables: ufuncs act as ops, other functions name their ``gradops.scipy`` counterpart."""

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.special
import scipy.stats

import gradops
from gradops import Variable
from gradops.errors import ArgumentTypeError
from gradops.scipy import special

UFUNCS = sorted(
    name
    for name in special.__all__
    if isinstance(getattr(scipy.special, name, None), np.ufunc) and hasattr(getattr(special, name), "op")
)


@pytest.mark.parametrize("name", UFUNCS)
def test_scipy_ufunc_equals_the_op(name):
    ufunc, op = getattr(scipy.special, name), getattr(special, name)
    points = [np.array([0.3, 0.6]), np.array([0.7, 0.4]), np.array([0.2, 0.5]), np.array([0.4, 0.9])][: ufunc.nin]
    xs = [Variable(x, requires_grad=True) for x in points]
    found = ufunc(*xs)
    assert isinstance(found, Variable) and found.requires_grad
    np.testing.assert_array_equal(found.detach().numpy(), op(*points))


def test_scipy_ufunc_is_compiled():
    @gradops.jit
    def f(a, x):
        return gradops.ops.sum(scipy.special.gammainc(a, x))

    x = np.array([0.5, 2.0])
    np.testing.assert_allclose(f(x, x), scipy.special.gammainc(x, x).sum())
    np.testing.assert_allclose(
        gradops.jit(gradops.grad(f))(x, x), gradops.grad(lambda a, x: special.gammainc(a, x).sum())(x, x), 1e-12
    )


@pytest.mark.parametrize(
    ("call", "path"),
    [
        (lambda v: scipy.special.logsumexp(v), "special.logsumexp"),
        (lambda v: scipy.special.softmax(v), "special.softmax"),
    ],
)
def test_other_functions_name_their_counterpart(call, path):
    with pytest.raises(ArgumentTypeError, match="is not turned into a NumPy array") as caught:
        call(Variable(np.array([1.0, 2.0]), requires_grad=True))
    assert f"`gradops.scipy.{path}`" in caught.value.hint


@pytest.mark.parametrize(
    ("call", "path"),
    [
        (lambda v: scipy.stats.norm.logpdf(v), "stats.norm.logpdf"),
        (lambda v: scipy.stats.gamma(2.0).cdf(v), "stats.gamma.cdf"),
        (lambda v: scipy.stats.zscore(v), "stats.zscore"),
        (lambda v: scipy.linalg.cholesky(v[:, None]), "linalg.cholesky"),
        (lambda v: scipy.integrate.trapezoid(v), "integrate.trapezoid"),
    ],
)
def test_scipy_function_is_named_in_the_error(call, path):
    """Holds with and without a counterpart in gradops."""
    with pytest.raises(ArgumentTypeError, match="is not turned into a NumPy array") as caught:
        call(Variable(np.array([1.0, 2.0]), requires_grad=True))
    assert f"scipy.{path}`" in caught.value.hint


def test_refused_calls():
    v = Variable(np.array([1.0, 2.0]), requires_grad=True)
    with pytest.raises(ArgumentTypeError, match=r"scipy\.special\.logit with `out` is not recorded"):
        scipy.special.logit(v, out=np.zeros(2))
    with pytest.raises(ArgumentTypeError, match=r"numpy\.isnat is not recorded"):
        np.isnat(v)
    with pytest.raises(ArgumentTypeError) as caught:
        np.asarray(v)
    assert "scipy." not in caught.value.hint
