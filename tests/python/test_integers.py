"""Every op of integers and booleans gives one result on all backends, also at the limits of the dtypes.

All backends could share one mistake, such as computing in too small a dtype. Therefore results are also compared with
float64 results for the same numbers; integer results as far as their dtype can hold them.
"""

import operator

import numpy as np
import pytest
from parity import BACKENDS, call, numpy, tensors
from test_options import FIRST, outcome

import gradops
from gradops import config, dtypes, ops
from gradops.errors import ArgumentError, ArgumentTypeError, GradopsError
from gradops.ops._dispatch import registry

everywhere = pytest.mark.parametrize("backend", BACKENDS)

DTYPES = ("int8", "uint8", "int16", "int32", "int64", "bool")
SAMPLE = ("floor_divide", "mod", "power", "fmod", "softsign", "log_sigmoid", "square", "max", "sparsemax", "correlate")
ASCENDING = ("digitize", "searchsorted")
ILL = ("dot_product_attention", "eig", "expm", "lstsq")
"""Ops whose results for huge numbers depend on intermediate rounding, or whose order is arbitrary."""


def whole(x, dtype: str, hard: bool, random, ascending: bool):
    """Turn arrays of floats into integers, some at the limits of the dtype; leave other values unchanged."""
    if isinstance(x, (list, tuple)):
        return type(x)(whole(item, dtype, hard, random, ascending) for item in x)
    if not isinstance(x, np.ndarray) or x.dtype.kind not in "fc":
        return x
    if dtype == "bool":
        pool = [False, True]
    elif hard:
        low, high = (np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype != "int64" else (-(2**40), 2**40)
        pool = [low, low + 1, *([-2, -1] if low else []), 0, 1, 2, high - 1, high]
    else:
        pool = list(range(-3 if np.iinfo(dtype).min else 0, 8))
    chosen = np.array(random.choice(pool, size=x.shape), dtype=dtype)
    return np.sort(chosen) if ascending else chosen


def in_float64(x):
    if isinstance(x, (list, tuple)):
        return type(x)(in_float64(item) for item in x)
    return x.astype("float64") if isinstance(x, np.ndarray) and x.dtype.kind in "iub" else x


def close(x, y, relative: float) -> bool:
    """Return True if two arrays are equal up to rounding relative to their largest element."""
    largest = np.max(np.abs(y), initial=1, where=np.isfinite(y))
    return bool(np.allclose(x, y, rtol=relative, atol=relative * largest, equal_nan=True))


def difference(one, other) -> str | None:
    """Describe how the outcomes of two backends differ, or return None."""
    failed = [isinstance(each, GradopsError) for each in (one, other)]
    if any(failed):
        return None if all(failed) else f"{one!r}, {other!r}"
    if [(d, x.shape) for d, x in one] != [(d, x.shape) for d, x in other]:
        return f"{[(d, x.shape) for d, x in one]}, {[(d, x.shape) for d, x in other]}"
    for (_, x), (_, y) in zip(one, other):
        if not (close(x, y, 1e-6) if x.dtype.kind in "fc" else np.array_equal(x, y)):
            return f"{x.ravel()[:6].tolist()}, {y.ravel()[:6].tolist()}"
    return None


def beside_floats(found, floats) -> str | None:
    """Describe how results of integers differ from float64 results; None if equal or not comparable."""
    if isinstance(found, GradopsError) or isinstance(floats, GradopsError) or len(found) != len(floats):
        return None
    for (name, x), (_, y) in zip(found, floats):
        if x.shape != y.shape or y.dtype.kind not in "fiub":
            return None
        if dtypes.is_floating(name):
            same = close(x, y, 1e-6)
        elif name in dtypes.INTEGERS and y.dtype.kind == "f" and np.all(np.abs(y) < 2**53):
            held = (y >= np.iinfo(name).min) & (y <= np.iinfo(name).max)
            same = np.all(np.abs(x.astype("float64") - y)[held] < 1)
        else:
            same = True
        if not same:
            return f"{x.ravel()[:6].tolist()} for {y.ravel()[:6].tolist()} of float64"
    return None


def check(name: str) -> None:
    case, wrong, random = FIRST[name], [], np.random.default_rng(3)
    known = case.examples(3)[-1]
    backends = [b for b in BACKENDS if b not in case.skip]
    with np.errstate(all="ignore"):
        for dtype in DTYPES:
            for hard in (False, True):
                if hard and name in ILL:
                    continue
                arguments = {k: whole(v, dtype, hard, random, name in ASCENDING) for k, v in known.items()}
                found = {b: outcome(lambda b=b, a=arguments: call(case, b, a)) for b in backends}
                where = f"{name} of {dtype}{' at its ends' if hard else ''} on"
                for b in backends[1:]:
                    if differs := difference(found[backends[0]], found[b]):
                        wrong.append(f"{where} {b}: {differs}")
                floats = outcome(lambda a=arguments: call(case, "numpy", {k: in_float64(v) for k, v in a.items()}))
                for b in backends:
                    if differs := beside_floats(found[b], floats):
                        wrong.append(f"{where} {b}: {differs}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.short_cases(4)
@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_of_ops(name):
    check(name)


OPS = sorted(set(FIRST) - {"svd"})  # singular vectors have arbitrary signs


@pytest.mark.long
@pytest.mark.parametrize("name", OPS)
def test_each_op(name):
    check(name)


BINARY = (
    "add", "multiply", "power", "mod", "fmod", "floor_divide", "divide", "maximum", "minimum", "arctan2", "hypot",
    "bitwise_and", "left_shift", "right_shift", "gcd", "lcm", "less", "equal", "logaddexp", "heaviside", "fmax",
)  # fmt: skip


@pytest.mark.short_cases(63)
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", DTYPES)
def test_pairs_at_the_limits(name, dtype):
    """Leaves out pairs for which NumPy itself raises an error."""
    if dtype == "bool":
        points = np.array([False, True])
    elif name == "power":  # overflowing powers differ between libraries
        points = np.arange(0 if np.iinfo(dtype).min == 0 else -3, 4).astype(dtype)
    else:
        ends = np.iinfo(dtype)
        points = np.array(sorted({ends.min, ends.min + 1, 0, 1, 2, 7, 31, 63, ends.max - 1, ends.max}), dtype)
        points = points if ends.min == 0 else np.append(points, np.array([-1, -7], dtype))
    first, second = (x.ravel() for x in np.meshgrid(points, points))
    with np.errstate(all="ignore"):

        def of(backend, first, second):
            def compute():
                return registry[name].call(tensors(first, backend), tensors(second, backend))

            return outcome(compute)

        alone = [of("numpy", first[i : i + 1], second[i : i + 1]) for i in range(len(first))]
        fine = [i for i, answer in enumerate(alone) if not isinstance(answer, GradopsError)]
        for backend in BACKENDS[1:]:
            if len(fine) < len(first):
                assert isinstance(of(backend, first, second), GradopsError)
            if fine:
                assert not difference(of("numpy", first[fine], second[fine]), of(backend, first[fine], second[fine]))


@everywhere
def test_integer_division_by_zero(backend):
    """The libraries alone would give 0 (NumPy), -1 or -2 (JAX), or errors of their own (PyTorch, TensorFlow)."""
    with config.backend_scope(backend):
        x, y = ops.array([4, 6]), ops.array([0, 2])
        for divide in (ops.floor_divide, ops.mod, ops.fmod):
            for a, b in ((x, y), (x, 0), (7, y), (ops.cast(x, "uint8"), ops.cast(y, "uint8"))):
                with pytest.raises(ArgumentError, match="`x2` must not be 0 where both are whole numbers"):
                    divide(a, b)
        with np.errstate(all="ignore"):
            assert np.isinf(numpy(ops.floor_divide(x, 0.0))).all()
        for a, b in ((x, ops.array([-1, 2])), (x, -1), (2, ops.array([-1, 2]))):
            with pytest.raises(ArgumentError, match="`x2` must not be negative where both are whole numbers"):
                ops.power(a, b)
        np.testing.assert_allclose(numpy(ops.power(ops.cast(x, "float64"), -1)), [1 / 4, 1 / 6])
        with pytest.raises(ArgumentTypeError, match="must not both be bools"):
            ops.subtract(x > 5, x > 5)


def test_integer_division_by_zero_on_variables():
    x, zero = gradops.Variable(np.array([4, 6])), np.array([0, 2])
    for divide in (operator.floordiv, operator.mod, operator.ifloordiv, operator.imod):
        with pytest.raises(ArgumentError, match="must not be 0"):
            divide(x, zero)
    with pytest.raises(ArgumentError, match="must not be negative"):
        operator.ipow(x, -1)
    assert x.data.tolist() == [4, 6]
    compiled = gradops.jit(lambda x, y: x // y)
    assert compiled(np.array([4, 6]), np.array([3, 2])).tolist() == [1, 3]
    with pytest.raises(ArgumentError, match="`floor_divide`: `x2` must not be 0"):
        compiled(np.array([4, 6]), zero)


def test_integer_division_by_zero_in_a_trace():
    """With unknown values the result is JAX's."""
    jax = pytest.importorskip("jax")
    with config.backend_scope("jax"):
        x = ops.array([4, 6])
        for function, theirs in ((ops.floor_divide, jax.numpy.floor_divide), (ops.power, jax.numpy.power)):
            for other in ([3, 2], [0, 2], [-1, 2]):
                y = ops.array(other)
                np.testing.assert_array_equal(jax.jit(function)(x, y), jax.jit(theirs)(x, y))
        weights = jax.grad(lambda w: ops.sum(w * (x // ops.array([3, 2]))))(ops.array([1.0, 2.0]))
        np.testing.assert_array_equal(weights, [1, 3])


@everywhere
def test_dtypes_of_boolean_arithmetic(backend):
    with config.backend_scope(backend):
        x = ops.array([True, False])
        kinds = {
            "int64": [ops.square(x), ops.power(x, x), ops.negative(x), ops.mod(x, ops.array([True, True])), ops.sum(x)],
            "bool": [ops.conj(x), ops.real(x), ops.relu(x), ops.max(x), ops.add(x, x), ops.matmul(x, x)],
        }
        kinds["int64"] += [ops.segment_sum(x, ops.array([0, 0])), ops.segment_prod(x, ops.array([0, 1]))]
        for dtype, found in kinds.items():
            assert [ops.dtype(y) for y in found] == [dtype] * len(found)
        assert numpy(ops.segment_sum(ops.array([True, True, False]), ops.array([0, 0, 1]))).tolist() == [2, 0]
        assert numpy(ops.segment_max(x, ops.array([0, 2]))).tolist() == [True, False, False]
        assert numpy(ops.max(x, initial=True)).tolist() is True


@everywhere
def test_activations_of_uint8_images(backend):
    """Computed in eight bits, log_sigmoid(1) would be -255 and softsign(255) infinite."""
    with config.backend_scope(backend):
        x = np.array([0, 1, 128, 255], "uint8")
        for f in (ops.log_sigmoid, ops.softsign, ops.squareplus, ops.soft_shrink, ops.sparsemax):
            np.testing.assert_allclose(numpy(f(tensors(x, backend))), numpy(f(tensors(x.astype("float64"), backend))))
