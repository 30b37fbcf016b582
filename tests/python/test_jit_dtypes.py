"""Operators, NumPy functions and ops in compiled code keep the type, dtype, shape and value of uncompiled code.

An op has the same result dtype on all libraries; operators and NumPy functions on arrays follow NumPy.
"""

from __future__ import annotations

import operator
import warnings

import numpy as np
import pytest
from test_native import needs_machine

import gradops.numpy as gnp
from gradops import config, ops
from gradops.errors import GradopsError
from gradops.jit import jit
from gradops.jit.native import plan, tiles
from gradops.ops._dispatch import names, registry
from gradops.ops.numpy_functions import CALLS
from gradops.ops.operators import BINARY

DTYPES = "bool int8 int16 int32 int64 uint8 float16 float32 float64 complex64 complex128".split()
SHAPES = ((), (3,), (0,), (2, 3), (5000,))
"""Shapes: scalars, small arrays (native code), empty arrays, and arrays too large for native code."""

_NAMES = {"and": "and_", "or": "or_"}
OPERATORS = {
    **{name: getattr(operator, _NAMES.get(name, name)) for name in BINARY if name != "divmod"},
    "divmod": divmod,
    **{name: getattr(operator, name) for name in "eq ne lt le gt ge neg pos abs invert".split()},
}
UNARY = ("neg", "pos", "abs", "invert")
UFUNCS = {ufunc.__name__: ufunc for ufunc in CALLS if isinstance(ufunc, np.ufunc) and ufunc.nin <= 2}
NUMBERS = (2, 0.5, True, 1j, np.float32(0.5), np.float64(0.5), np.int32(2))

NOT_COMPILED = frozenset(
    """bartlett blackman hamming hanning kaiser bincount unique convert_to_numpy frexp spacing bitwise_count
    numpy is_tensor""".split()
)
"""Ops that depend on values, or take no array."""


ASCENDING = {
    "searchsorted": lambda known, x: ops.searchsorted(ops.sort(known), x),
    "digitize": lambda x, known: ops.digitize(x, ops.sort(known)),
}
"""Ops whose result is undefined unless numbers ascend."""


def _tensors_of(name: str) -> int:
    """Return the number of tensors of an op without other required arguments; 0 for other ops."""
    parameters = [k for k, p in registry[name].signature.parameters.items() if p.default is p.empty]
    kinds = [registry[name].annotations.get(k) for k in parameters]
    return len(kinds) if kinds and len(kinds) < 3 and all(kind in ("Tensor", "Operand") for kind in kinds) else 0


OPS = {name: _tensors_of(name) for name in sorted(names) if name in registry and "." not in name and _tensors_of(name)}


def array(shape, dtype: str, random):
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.asarray(random.random(shape) < 0.5)
    if kind in "iu":
        return np.asarray(random.integers(0 if kind == "u" else -3, 5, shape)).astype(dtype)
    return np.asarray(random.normal(size=shape) + (1j * random.normal(size=shape) if kind == "c" else 0)).astype(dtype)


def parts(x) -> list:
    return [part for item in x for part in parts(item)] if isinstance(x, (list, tuple)) else [x]


def kind_of(x) -> tuple:
    return type(x), getattr(x, "dtype", None), np.shape(x)


def check(f, *arrays) -> None:
    """Check that ``jit(f)`` gives what ``f`` gives, or a gradops error, if ``f`` accepts the arrays."""
    try:
        wanted = parts(f(*[x.copy() for x in arrays]))
    except Exception:  # NumPy's error for unsupported dtypes and shapes
        return
    try:
        found = parts(jit(f)(*arrays))
    except GradopsError:
        return
    given = [f"{x.dtype}{list(x.shape)}" for x in arrays]
    assert [kind_of(x) for x in found] == [kind_of(x) for x in wanted], given
    dtypes = {x.dtype.name for x in (*arrays, *wanted) if isinstance(x, (np.ndarray, np.generic))}
    near = 2e-2 if "float16" in dtypes else 1e-3 if dtypes & {"float32", "complex64"} else 1e-9
    for x, y in zip(found, wanted):
        np.testing.assert_allclose(x, y, rtol=near, atol=near, err_msg=str(given))


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(params=["as it is", pytest.param("natively", marks=needs_machine)])
def execution(request, monkeypatch):
    """Run programs of one step by NumPy, or natively by removing the minimum length."""
    if request.param == "natively":
        monkeypatch.setattr(plan, "FEWEST", 1)
        monkeypatch.setattr(tiles, "FEWEST", 1)


def check_dtypes(f, count: int, shapes=SHAPES) -> None:
    random = np.random.default_rng(0)
    for first in DTYPES:
        for second in DTYPES if count == 2 else [""]:
            for shape in shapes:
                check(f, *[array(shape, dtype, random) for dtype in (first, second)[:count]])


@pytest.mark.parametrize("name", ["mul", "truediv", "pow", "pos", "lt"])
def test_operators_of_two_dtypes(name):
    random = np.random.default_rng(0)
    count = 1 if name in UNARY else 2
    for dtypes in (("int32", "float32"), ("float32", "float64"), ("int8", "bool"), ("int64", "complex64")):
        for shape in ((), (3,)):
            check(OPERATORS[name], *[array(shape, dtype, random) for dtype in dtypes[:count]])


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float32"])
def test_integrals_and_polynomials_of_small_dtypes(dtype):
    """NumPy sums in the dtype of the values, and gives real coefficients for integers."""
    y = np.array([[100, 100, 0, 1], [3, 120, 7, 90]]).astype(dtype)
    trapezoid = getattr(np, "trapezoid", None) or np.trapz
    check(trapezoid, y)
    check(trapezoid, y, y[::-1].copy())
    check(lambda y, x: trapezoid(y, x, axis=0), y, y[:, 0].copy())
    check(lambda y: trapezoid(y, dx=2, axis=0), y)
    for poly in (np.poly, gnp.poly):
        check(poly, y[1])
        check(poly, y[0] != 0)


@pytest.mark.long
@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name, execution):
    check_dtypes(OPERATORS[name], 1 if name in UNARY else 2)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in OPERATORS if name not in UNARY])
def test_operators_with_numbers(name):
    random, f = np.random.default_rng(0), OPERATORS[name]
    for dtype in DTYPES:
        for number in NUMBERS:
            for shape in ((), (3,)):
                x = array(shape, dtype, random)
                check(lambda x, number=number: f(x, number), x)
                check(lambda x, number=number: f(number, x), x)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in UFUNCS if name not in NOT_COMPILED])
def test_ufuncs(name):
    check_dtypes(UFUNCS[name], UFUNCS[name].nin)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in OPS if name not in NOT_COMPILED])
def test_ops(name, execution):
    shapes = ((), (3,), (0,), (5000,)) if OPS[name] == 1 else ((), (3,), (0,))
    check_dtypes(ASCENDING.get(name, getattr(ops, name)), OPS[name], shapes)


@pytest.mark.long
@pytest.mark.parametrize("floatx", ["float32", "float16"])
def test_floatx_does_not_affect_numpy_operators(floatx, monkeypatch):
    monkeypatch.setattr("gradops.dtypes._settings", {**config.floatx.__globals__["_settings"], "floatx": floatx})
    for name in ("truediv", "mul", "pow"):
        for dtype in ("int32", "float32", "bool"):
            x = np.arange(1, 4).astype(dtype)
            check(lambda x, f=OPERATORS[name]: f(x, 0.5), x)
            check(OPERATORS[name], x, x)


def test_copies_and_parts_of_scalars():
    """Covers programs of native code."""

    def f(x):
        for _ in range(9):
            x = x * 1.1 + 1.0
        return ops.copy(x), ops.imag(x), ops.real(x), +x, x * True, x.reshape(()), np.floor(ops.cast(x, "int64"))

    check(f, np.array(2.0))
    check(lambda x: (ops.copy(x), ops.real(x), ops.imag(x), +x, np.positive(x), x * True), np.array(2.0))


@pytest.mark.parametrize("operation", [operator.pos, np.positive, np.floor, np.ceil, np.trunc, lambda x: x * 1])
def test_operator_results_own_their_memory(operation):
    def f(x):
        x = x * 2
        y = operation(x)
        y[0] = 9
        return x, y

    for dtype in ("int64", "float64"):
        check(f, np.array([1, 2, 3], dtype))


def test_copysign_of_mixed_precisions():
    for shape in ((), (3,), (5000,)):
        random = np.random.default_rng(0)
        check(np.copysign, array(shape, "float32", random), array(shape, "float64", random))


@pytest.mark.parametrize("axis", [None, 0, -1])
def test_sorts_and_sums_of_zero_dimensional_arrays(axis, execution):
    for dtype in DTYPES:
        for op in (ops.argsort, ops.sort, ops.cumsum, ops.cumprod, np.argsort, np.sort, np.cumsum, np.cumprod):
            check(lambda x, op=op: op(x, axis=axis), np.array(3).astype(dtype))
