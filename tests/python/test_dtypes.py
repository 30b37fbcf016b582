"""The dtype rule as a table: the result of two dtypes, or of a dtype and a Python number, on every backend."""

import itertools

import numpy as np
import pytest
from parity import BACKENDS

from gradops import Variable, backends, config, dtypes, ops
from gradops.errors import ArgumentError, ArgumentTypeError

SHORT = {
# ruff: noqa: E501
    "b": "bool", "i1": "int8", "u1": "uint8", "i2": "int16", "u2": "uint16", "i4": "int32", "u4": "uint32", "i8": "int64", "u8": "uint64",
    "f2": "float16", "bf": "bfloat16", "f4": "float32", "f8": "float64", "c8": "complex64", "c16": "complex128",
}  # fmt: skip

# An integer never widens a float; float16 with bfloat16 gives float32; uint64 with a signed integer gives int64.
TABLE = """
     b   i1  u1  i2  u2  i4  u4  i8  u8  f2  bf  f4  f8  c8  c16
b    b   i1  u1  i2  u2  i4  u4  i8  u8  f2  bf  f4  f8  c8  c16
i1   i1  i1  i2  i2  i4  i4  i8  i8  i8  f2  bf  f4  f8  c8  c16
u1   u1  i2  u1  i2  u2  i4  u4  i8  u8  f2  bf  f4  f8  c8  c16
i2   i2  i2  i2  i2  i4  i4  i8  i8  i8  f2  bf  f4  f8  c8  c16
u2   u2  i4  u2  i4  u2  i4  u4  i8  u8  f2  bf  f4  f8  c8  c16
i4   i4  i4  i4  i4  i4  i4  i8  i8  i8  f2  bf  f4  f8  c8  c16
u4   u4  i8  u4  i8  u4  i8  u4  i8  u8  f2  bf  f4  f8  c8  c16
i8   i8  i8  i8  i8  i8  i8  i8  i8  i8  f2  bf  f4  f8  c8  c16
u8   u8  i8  u8  i8  u8  i8  u8  i8  u8  f2  bf  f4  f8  c8  c16
f2   f2  f2  f2  f2  f2  f2  f2  f2  f2  f2  f4  f4  f8  c8  c16
bf   bf  bf  bf  bf  bf  bf  bf  bf  bf  f4  bf  f4  f8  c8  c16
f4   f4  f4  f4  f4  f4  f4  f4  f4  f4  f4  f4  f4  f8  c8  c16
f8   f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  c16 c16
c8   c8  c8  c8  c8  c8  c8  c8  c8  c8  c8  c8  c8  c16 c8  c16
c16  c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16
"""

# A Python number takes the tensor's dtype unless its kind is wider: then int64, floatx (float64) or its complex type.
NUMBERS = """
       b   i1  u1  i2  u2  i4  u4  i8  u8  f2  bf  f4  f8  c8  c16
True   b   i1  u1  i2  u2  i4  u4  i8  u8  f2  bf  f4  f8  c8  c16
2      i8  i1  u1  i2  u2  i4  u4  i8  u8  f2  bf  f4  f8  c8  c16
0.5    f8  f8  f8  f8  f8  f8  f8  f8  f8  f2  bf  f4  f8  c8  c16
1j     c16 c16 c16 c16 c16 c16 c16 c16 c16 c8  c8  c8  c16 c8  c16
"""


def parsed(table):
    header, *rows = (line.split() for line in table.strip().splitlines())
    return {(row[0], column): SHORT[name] for row in rows for column, name in zip(header, row[1:])}


MEET, WEAK = parsed(TABLE), parsed(NUMBERS)
WHOLE = [SHORT[s] for s in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")]
everywhere = pytest.mark.parametrize("backend", BACKENDS)


def tensor(backend, name, shape=(2,)):
    return backends.lookup(backend).convert(np.ones(shape, "bool"), name)


def known(backend, op="add"):
    """Return the dtypes of a backend, without NumPy's missing bfloat16 and dtypes an old PyTorch's `where` lacks."""
    lacking = {"bf"} if backend == "numpy" else set()
    if (backend, op) == ("torch", "where"):
        import torch

        if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 13):
            lacking = {"u2", "u4", "u8"}
    return {s: tensor(backend, name) for s, name in SHORT.items() if s not in lacking}


def test_rule_is_the_table():
    assert {pair: dtypes.promote(SHORT[pair[0]], SHORT[pair[1]]) for pair in MEET} == MEET
    for (number, short), name in WEAK.items():
        assert dtypes.promote_number(SHORT[short], type(eval(number)), "float64") == name, (number, short)


def test_rule_is_symmetric_and_associative():
    names = list(SHORT.values())
    for a, b in itertools.product(names, repeat=2):
        assert dtypes.promote(a, b) == dtypes.promote(b, a)
    for a, b, c in itertools.product([n for n in names if n != "uint64"], repeat=3):
        assert dtypes.promote(dtypes.promote(a, b), c) == dtypes.promote(a, dtypes.promote(b, c)), (a, b, c)


@everywhere
@pytest.mark.parametrize("op", ["where", "add"])
def test_pairs_of_dtypes(backend, op):
    """Covers every pair of dtypes."""
    here = known(backend, op)
    function = (lambda a, b: ops.where(here["b"], a, b)) if op == "where" else getattr(ops, op)
    wrong = {}
    for a, b in itertools.product(here, repeat=2):
        got = ops.dtype(function(here[a], here[b]))
        if got != MEET[a, b]:
            wrong[a, b] = got
    assert not wrong


@everywhere
@pytest.mark.parametrize("op", ["where", "multiply"])
def test_numbers(backend, op):
    """Python numbers are weak, on either side."""
    here = known(backend, op)
    function = (lambda a, b: ops.where(here["b"], a, b)) if op == "where" else getattr(ops, op)
    wrong = {}
    for (number, short), name in WEAK.items():
        if short in here:
            value = eval(number)
            got = ops.dtype(function(here[short], value)), ops.dtype(function(value, here[short]))
            if got != (name, name):
                wrong[number, short] = got
    assert not wrong


@everywhere
def test_number_and_integer_tensor_give_floatx(backend):
    config.set_floatx("float32")
    with config.backend_scope(backend):
        here = known(backend)
        assert ops.dtype(ops.add(here["i4"], 0.5)) == "float32"
        assert ops.dtype(ops.add(here["i4"], 1j)) == "complex64"
        assert ops.dtype(ops.exp(here["i8"])) == "float32"
        assert ops.dtype(ops.divide(here["i8"], here["i4"])) == "float32"
        assert ops.dtype(ops.convert_to_tensor(0.5)) == "float32"
        assert ops.dtype(ops.convert_to_tensor([1, 2])) == "int64"


@pytest.mark.short_cases(3, "jax")
@everywhere
@pytest.mark.parametrize(
    "op", ["exp", "sqrt", "sin", "mean", "std", "deg2rad", "erfc", "median", "logsumexp", "sigmoid"]
)
def test_floating_results(backend, op):
    """Floats keep their dtype; integers and bools give floatx."""
    function = getattr(ops, op)
    for short, x in known(backend).items():
        if short not in ("f2", "bf", "c8", "c16"):
            assert ops.dtype(function(x)) == (SHORT[short] if short[0] == "f" else "float64"), short


@pytest.mark.short_cases(1, "jax")
@everywhere
@pytest.mark.parametrize("op", ["sum", "prod", "cumsum", "cumprod"])
def test_integer_sums_use_64_bits(backend, op):
    function = getattr(ops, op)
    for short, x in known(backend).items():
        if SHORT[short] in ("bool", *WHOLE):
            assert ops.dtype(function(x)) == ("uint64" if short == "u8" else "int64"), short
        elif short not in ("f2", "bf"):
            assert ops.dtype(function(x)) == SHORT[short], short


@pytest.mark.short_cases(3, "jax")
@everywhere
@pytest.mark.parametrize("op", ["max", "min", "sort", "negative", "abs", "square", "sign", "floor", "flip", "copy"])
def test_dtype_is_preserved(backend, op):
    function = getattr(ops, op)
    for short, x in known(backend).items():
        if short in ("b", "c8", "c16", "f2", "bf") or backend == "torch" and short in ("u2", "u4", "u8"):
            continue
        if not (short[0] == "u" and op == "negative"):
            assert ops.dtype(function(x)) == SHORT[short], short


def test_wide_unsigned_integers_on_pytorch():
    """PyTorch stores and adds them but lacks most other kernels: the error says so (stated in docs/differences.md)."""
    for name in ("uint16", "uint32", "uint64"):
        with pytest.raises(ArgumentError, match="`max`: .*not implemented"):
            ops.max(tensor("torch", name))


@pytest.mark.short_cases(0, "jax")
@everywhere
def test_predicates_and_positions(backend):
    for short, x in known(backend).items():
        if short in ("c8", "c16") or backend == "torch" and short in ("u2", "u4", "u8"):
            continue
        for op in (ops.equal, ops.less, ops.greater_equal):
            assert ops.dtype(op(x, x)) == "bool", short
        for op in (ops.isnan, ops.isfinite, ops.logical_not, ops.all, ops.any):
            assert ops.dtype(op(x)) == "bool", short
        for op in (ops.argmax, ops.argmin, ops.argsort, ops.count_nonzero):
            assert ops.dtype(op(x)) == "int64", short


@pytest.mark.short_cases(0, "jax")
@everywhere
def test_every_dtype_casts_to_every_other(backend):
    for _short, x in known(backend).items():
        for other in known(backend):
            y = ops.cast(x, SHORT[other])
            assert ops.dtype(y) == SHORT[other]
            np.testing.assert_array_equal(backends.lookup(backend).to_numpy(y), 1)


@pytest.mark.parametrize("backend", BACKENDS)
def test_numbers_out_of_range_of_a_dtype(backend):
    """PyTorch and TensorFlow would wrap around: 1 + 200 in int8 would be -55."""
    with config.backend_scope(backend):
        for name, number in (("int8", 200), ("uint8", -1), ("int32", 10**30), ("int16", 2**15)):
            x = ops.cast(ops.array([1, 2]), name)
            for op in (ops.add, ops.multiply, ops.maximum, ops.less):
                for operands, argument in (((x, number), "x2"), ((number, x), "x1")):
                    said = f"`{op.__name__}`: `{argument}` must be from .* {name}; got {number}"
                    with pytest.raises(ArgumentError, match=said):
                        op(*operands)
            with pytest.raises(ArgumentError, match="`x_max` must be from"):
                ops.clip(x, None, number)
        x = ops.array([1.0, 2.0])
        assert np.asarray(ops.convert_to_numpy(ops.add(x, 10**30)))[0] == pytest.approx(1e30)
        with pytest.raises(ArgumentError, match="`x2` must be a number that float.* holds; got one of 401 digits"):
            ops.add(x, 10**400)


BEYOND = {
    "array": lambda x: ops.array(200, "int8"),
    "array of a list": lambda x: ops.array([[1, 2], [3, -129]], "int8"),
    "convert_to_tensor": lambda x: ops.convert_to_tensor([float("nan")], "int32"),
    "full": lambda x: ops.full((2,), -1, "uint8"),
    "full_like": lambda x: ops.full_like(x, 200),
    "pad": lambda x: ops.pad(x, 1, constant_values=200),
    "set_item": lambda x: Variable(x).__setitem__(0, 200),
    "scatter_update": lambda x: ops.scatter_update(x, [[0]], [200]),
    "slice_update": lambda x: ops.slice_update(x, [0], [200]),
    "arange": lambda x: ops.arange(0, 300, 100, dtype="int8"),
    "linspace": lambda x: ops.linspace(0, 300, 4, dtype="int8"),
    "add": lambda x: Variable(x).__iadd__(200),
    "max": lambda x: ops.max(x, initial=200),
    "min": lambda x: ops.min(x, initial=-200),
}


@pytest.mark.parametrize(
    "name, backend",
    [(name, b) for name in BEYOND for b in BACKENDS if b != "torch" or name not in ("set_item", "add")],
)
def test_written_numbers_do_not_wrap_around(name, backend):
    """Unchecked, backends would wrap 200 to -56 in int8, and TensorFlow and JAX would ignore such an `initial`."""
    with config.backend_scope(backend):
        x = ops.cast(ops.array([1, 2]), "int8")
        with pytest.raises(ArgumentError, match=f"`{name.split()[0]}`"):
            BEYOND[name](x)
        assert ops.dtype(ops.max(x, initial=100)) == "int8" and int(ops.max(x, initial=100)) == 100
        assert ops.dtype(ops.arange(0, 128, dtype="int8")) == "int8"
        held = ops.cast(ops.array([200, 300]), "int8")  # a cast wraps around
        np.testing.assert_array_equal(backends.lookup(backend).to_numpy(held), [-56, 44])


@everywhere
def test_floats_beyond_an_integer_dtype(backend):
    with config.backend_scope(backend):
        x = ops.array([300.0, -300.0, float("nan")])
        to_numpy = backends.lookup(backend).to_numpy
        np.testing.assert_array_equal(to_numpy(ops.saturate_cast(x, "int8")), [127, -128, 0])
        with np.errstate(invalid="ignore"):
            found = to_numpy(ops.cast(x, "int8"))
        assert (found.tolist() == [127, -128, 0]) is (backend == "jax")


@everywhere
def test_products_in_a_small_dtype(backend):
    """PyTorch's own product would be int64."""
    for short, x in known(backend).items():
        assert ops.dtype(ops.prod(x, dtype=SHORT[short])) == SHORT[short]


@pytest.mark.parametrize("backend", BACKENDS)
def test_orders_of_polygamma(backend):
    with config.backend_scope(backend):
        x = ops.array([1.0, 2.0])
        for order in ([1, 2], ops.array([1, 2]), np.array([1.0, 2.0]), 1.5, None):
            with pytest.raises(ArgumentTypeError, match="`polygamma`: `n` must be a whole number"):
                ops.special.polygamma(x, order)
        with pytest.raises(ArgumentError, match="`polygamma`: `n` must be at least 0; got -1"):
            ops.special.polygamma(x, -1)
