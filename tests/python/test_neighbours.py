"""Operators between a variable and another type: the other class gets its turn, or the error says what to do."""

import operator
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from numpy.lib.mixins import NDArrayOperatorsMixin

from gradops import Variable, grad, ops
from gradops.errors import GradopsError
from gradops.jit import jit

ARITHMETIC = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
COMPARISONS = "eq ne lt le gt ge".split()


def _class(**attributes):
    """Return a class whose operators report the side they were called on."""

    def method(side):
        return lambda self, other: (side, other)

    own = {f"__{n}__": method("left") for n in ARITHMETIC} | {f"__{n}__": method("compared") for n in COMPARISONS}
    return type("Own", (), own | {f"__r{n}__": method("right") for n in ARITHMETIC} | attributes)()


OWN = {
    "plain": _class(),
    "with priority": _class(__array_priority__=2000),
    "without ufuncs": _class(__array_ufunc__=None),
}
REFUSED = {
    "None": None,
    "text": "a",
    "object": object(),
    "dict": {},
    "Decimal": Decimal("0.5"),
    "masked": np.ma.array([3.0, 4.0], mask=[0, 1]),
    "matrix": np.matrix([[3.0, 4.0]]),
    "objects": np.array([1, "a"], dtype=object),
    "sparse array": scipy.sparse.csr_array([[3.0, 0.0], [1.0, 2.0]]),
    "sparse matrix": scipy.sparse.csr_matrix([[3.0, 0.0], [1.0, 2.0]]),
}
FLOATS = [n for n in ARITHMETIC + COMPARISONS if n not in ("and", "or", "xor", "lshift", "rshift")]


def _variable():
    return Variable(np.array([1.0, 2.0]), requires_grad=True)


def _operator(name):
    return getattr(operator, f"__{name}__")


@pytest.mark.parametrize("name", ARITHMETIC + COMPARISONS)
@pytest.mark.parametrize("kind", OWN)
def test_classes_with_operators_get_their_turn(kind, name):
    v, other = _variable(), OWN[kind]
    if name in COMPARISONS:
        expected = ("compared", "compared")
    else:
        expected = ("right", "left")
    for result, side in zip((_operator(name)(v, other), _operator(name)(other, v)), expected):
        assert result[0] == side and result[1] is v


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("kind", REFUSED)
def test_non_numbers_are_refused_or_unequal(kind, name):
    v, other = _variable(), REFUSED[kind]
    for x, y in ((v, other), (other, v)):
        if name in ("eq", "ne") and kind in ("None", "text", "object", "dict"):
            assert _operator(name)(x, y) is (name == "ne")
        elif (kind, name) == ("text", "mod") and x is other:
            assert operator.mod(x, y) == "a"  # Python's string formatting
        else:
            errors = GradopsError if name != "pow" or x is v else Exception  # matrices define powers differently
            with pytest.raises(errors):
                _operator(name)(x, y)


def test_fractions_raise_with_a_hint():
    with pytest.raises(GradopsError, match="float"):
        _variable() * Fraction(1, 2)
    with pytest.raises(GradopsError, match="float"):
        _variable() == Fraction(1, 2)  # noqa: B015


def test_series_keep_the_gradient():
    values = pytest.importorskip("pandas").Series([3.0, 4.0])
    for name in FLOATS[:6]:
        v = _variable()
        _operator(name)(v, values).sum().backward()
        assert isinstance(v.grad, Variable), name
    with pytest.raises((GradopsError, TypeError)):
        values @ _variable()


class Named(NDArrayOperatorsMixin):
    """An array with a unit, as in xarray and pint: NumPy leaves its ufuncs to it."""

    def __init__(self, data):
        self.data = data

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.data, dtype)

    def __array_ufunc__(self, ufunc, method, *inputs):
        return Named(getattr(ufunc, method)(*(x.data if isinstance(x, Named) else x for x in inputs)))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", FLOATS[:5])
def test_classes_that_hold_arrays_can_hold_variables(name, compiled):
    given, of_ufunc = np.array([3.0, 4.0]), getattr(np, {"sub": "subtract", "mul": "multiply"}.get(name, "add"))
    calls = {
        "left": lambda x: _operator(name)(x, Named(given)),
        "right": lambda x: _operator(name)(Named(given), x),
        "both": lambda x: _operator(name)(x, _operator(name)(Named(given), x)),
        "ufunc": lambda x: np.sin(of_ufunc(x, Named(given))),
    }
    for case, call in calls.items():

        def f(x, call=call):
            return np.sum(call(x).data)

        x, apart = np.array([1.4, 1.3]), 1e-6 * np.eye(2)
        found = (jit(grad(f)) if compiled else grad(f))(x)
        expected = [(f(x + d) - f(x - d)) / 2e-6 for d in apart]
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6, err_msg=case)
    with pytest.raises(GradopsError, match="np.asarray"):
        ops.multiply(_variable(), Named(given))


@pytest.mark.parametrize("compiled", [False, True])
def test_comparisons_with_non_numbers(compiled):
    def f(x):
        found = (x == None, x != None, x == "a", x in [None, "a"], None in (x,))  # noqa: E711
        assert found == (False, True, False, False, False)
        return x.sum()

    np.testing.assert_array_equal((jit(grad(f)) if compiled else grad(f))(np.array([1.0, 2.0])), [1.0, 1.0])
