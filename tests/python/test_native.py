"""Native code against NumPy's replay of the same program: results, warnings, errors, the cache, and the fallback."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest
import random_programs
from scipy import special

from gradops import backends, ops, value_and_grad
from gradops.autodiff import profiler
from gradops.jit import jit
from gradops.jit.native import instructions, loop_compiler, machine, registry, tile_run
from gradops.scipy import special as special_ops

here = machine.machine() is not None
needs_machine = pytest.mark.skipif(not here, reason="llvmlite is not installed")

X = np.array([0.3, -0.8, 1.7, 0.0])
HARD = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 5e-324, 1e308, -1e308, 1.0, -2.5, 0.5, 3.0])


def both(f, *arguments):
    """Return a compiled function's results natively and by NumPy, as lists of arrays, and what runs natively."""
    compiled = jit(f)
    natively = compiled(*arguments)
    explained = next(iter(compiled.programs.values())).native
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "machine", lambda: None)
        by_numpy = jit(f)(*arguments)
    return natively, by_numpy, explained


def leaves(x):
    if isinstance(x, (list, tuple)):
        return [leaf for item in x for leaf in leaves(item)]
    return [x]


def assert_same_bits(got, wanted):
    for a, b in zip(leaves(got), leaves(wanted), strict=True):
        assert np.shape(a) == np.shape(b) and a.dtype == b.dtype and type(a) is type(b)
        np.testing.assert_array_equal(a, b)
        if a.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(a[a == a]), np.signbit(b[b == b]))


def assert_close(got, wanted, rtol=1e-13):
    for a, b in zip(leaves(got), leaves(wanted), strict=True):
        assert np.shape(a) == np.shape(b) and a.dtype == b.dtype and type(a) is type(b)
        np.testing.assert_allclose(a, b, rtol=rtol if a.dtype != np.float32 else 2e-6, atol=1e-300)


def padding(x):
    """Return ``x`` after enough steps to form a native run."""
    for _ in range(8):
        x = x + 1.0
    return x


# Numbers.


@needs_machine
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_arithmetic_and_comparisons_are_bitwise_equal(dtype):
    """Covers NaN, infinities, signed zeros and overflow, on scalars and arrays."""

    def f(a, b):
        compared = [ops.less(a, b), a <= b, a > b, a >= b, ops.equal(a, b), ops.not_equal(a, b)]
        return [a + b, a - b, a * b, a / b, -a, ops.abs(a), *compared, ops.where(a < b, a, b), ops.sign(a), ops.sqrt(a)]

    rng = np.random.default_rng(3)
    values = np.concatenate([HARD, rng.normal(size=8), 10.0 ** rng.uniform(-40, 40, 6)])
    with np.errstate(all="ignore"):
        values = values.astype(dtype)
        a, b = (m.ravel() for m in np.meshgrid(values, values))
        a, b = np.resize(a, 250), np.resize(b, 250)
        got, wanted, explained = both(f, a, b)
        assert explained.native == explained.steps
        assert_same_bits(got, wanted)
        compiled = jit(f)
        for x, y in zip(a[:40], b[:40]):
            assert_same_bits(compiled(np.asarray(x), np.asarray(y)), f(np.asarray(x), np.asarray(y)))


@needs_machine
@pytest.mark.parametrize("name", ["mod", "floor_divide", "fmod", "fmax", "fmin", "nextafter", "signbit", "angle"])
def test_remainders_and_signs_are_bitwise_equal(name):
    function = getattr(ops, name)
    values = np.array([*HARD, -0.3, 7.0, -7.0, 2.0, 1e16])
    a, b = (m.ravel() for m in np.meshgrid(values, values))
    one = name in ("signbit", "angle")
    with np.errstate(all="ignore"):
        got, wanted, explained = both(lambda a, b: (padding(a), function(a) if one else function(a, b)), a, b)
    assert explained.native == explained.steps, str(explained)
    assert_same_bits(got, wanted)


@needs_machine
@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_bitwise_integer_ops(dtype):
    """Covers shifts beyond the number of bits, and divisors passed as arguments."""
    info = np.iinfo(dtype)
    a, b = (
        m.ravel()
        for m in np.meshgrid(
            np.array([0, 1, -1, 7, -13, 31, 32, 63, 64, 90, info.max, info.min], dtype),
            np.array([5, 3, -4, 31, 33, 63, 64, 100, -2, info.max, info.min, 1], dtype),
        )
    )

    def f(a, b):
        bits = [a & b, a | b, a ^ b, ~a, ops.left_shift(a, b), ops.right_shift(a, b), ops.signbit(a)]
        return (
            padding(a),
            *bits,
            a // b,
            a % b,
            ops.fmod(a, b),
            ops.cumprod(a),
            ops.argmax(a),
            ops.argsort(b),
            ops.sort(a[:40]),
        )

    with np.errstate(all="ignore"):
        got, wanted, explained = both(f, a[:60], b[:60])
        assert explained.native == explained.steps, str(explained)
        assert_same_bits(got, wanted)
        for x in (a[60:120], a[60:120] * 0 + info.min):
            assert_same_bits(jit(f)(x, b[60:120]), f(x, b[60:120]))
        compiled = jit(f)
        compiled(a[:60], b[:60])
        assert_same_bits(compiled(a[:60], -np.ones_like(b[:60])), f(a[:60], -np.ones_like(b[:60])))
    with pytest.raises(Exception, match="0"):
        compiled(a[:60], 0 * b[:60])


@needs_machine
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_order_of_ties_and_nan(dtype):
    x = np.array([[3, 1, 2, 1, 3, 0], [0, 0, 0, 0, 0, 0], [5, -1, 5, -1, 2, 2]], dtype)
    if dtype != "int64":
        x = np.array([*x, [np.nan, 1, -np.inf, np.nan, np.inf, -0.0], [0.0, -0.0, 0.0, -0.0, 1, -1]], dtype)
    v = np.array([2, -1, 0, 5, 9], dtype) if dtype == "int64" else np.array([2, np.nan, -np.inf, 0.0, np.inf], dtype)

    def f(x, v):
        axes = [g(x, axis=k) for k in (0, 1, None) for g in (ops.sort, ops.argsort, ops.argmax, ops.argmin)]
        rows = ops.sort(x, axis=1)
        return padding(x), *axes, *[ops.searchsorted(rows[i], v, side=s) for i in (0, -1) for s in ("left", "right")]

    got, wanted, explained = both(f, x, v)
    assert explained.native == explained.steps, str(explained)
    assert_same_bits(got, wanted)


@needs_machine
@pytest.mark.parametrize(
    "x", [[1.0, 2.0, -1e9], [-np.inf, -np.inf], [np.inf, 1.0], [np.nan, 0.0], [1e308, -1e308], [700.0, 720.0] * 9]
)
def test_sums_of_exponentials_warn_and_end_as_numpy(x):
    def f(x):
        of_rows = [g(x, 0) for g in (ops.logsumexp, ops.softmax, ops.log_softmax)]
        return padding(x), *of_rows, value_and_grad(ops.logsumexp)(x), ops.logsumexp(ops.stack([x, x]), 1, True)

    def caught(g):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            return g(), {str(w.message) for w in found}

    x = np.array(x)
    got, of_native = caught(lambda: jit(f)(x))
    wanted, of_numpy = caught(lambda: f(x))
    assert_close(got, wanted, rtol=1e-14)
    assert of_native == of_numpy


@needs_machine
@pytest.mark.parametrize("name", sorted(filter(registry.instruction, {*instructions.FUNCTIONS} & {*dir(ops)})))
def test_functions_agree_up_to_rounding(name):
    function = getattr(ops, name)
    operands = instructions.FUNCTIONS[name].operands
    x = np.array([*HARD, *np.linspace(-0.99, 0.99, 20), *np.linspace(1.01, 30, 20)])

    def f(x, *rest):
        return padding(x), function(x, *rest)

    with np.errstate(all="ignore"):
        got, wanted, explained = both(f, *([x, x[::-1].copy()] if operands == 2 else [x]))
        assert explained.native == explained.steps, str(explained)
        assert_close(got, wanted, rtol=4e-15)
        compiled = jit(f)
        for number in x[:12]:
            given = [np.asarray(number)] * operands
            assert_close(compiled(*given), f(*given), rtol=4e-15)


SPECIAL = [name for name in instructions.OF_SCIPY if registry.instruction(f"scipy.special.{name}")]


def test_ops_with_scipy_kernels_are_native():
    assert len(SPECIAL) > 50
    for name in instructions.OF_SCIPY:  # an op with a gradops kernel must not switch to SciPy's in native code
        direct = getattr(backends.embedded().kernel(f"scipy.special.{name}"), "direct", None)
        ours = direct is None or direct is not getattr(special, name) and getattr(direct, "function", None) != name
        assert registry.known_of(f"scipy.special.{name}").meaning == (None if ours else name)


@needs_machine
@pytest.mark.parametrize("name", ["gammainc", "gammaincc", "gammaincinv", "gammainccinv", "beta", "binom"])
def test_scipy_kernels_below_a_limit_and_gradops_kernels_above(name):
    function = getattr(special_ops, name)
    compiled = jit(lambda x, y: (padding(x), function(x, y), function(x[0], y[0]), ops.exp(function(x, y[0]))))
    y = np.array([0.25, 1e-9, 1.0])
    for x in (np.array([0.5, 2.0, 30.0]), np.array([0.5, 2e6, 30.0]), np.array([np.nan, 1.0, 1e7])):
        wanted = (padding(x), function(x, y), function(x[0], y[0]), ops.exp(function(x, y[0])))
        assert_close(compiled(x, y), wanted, rtol=4e-15)
    explained = next(iter(compiled.programs.values())).native
    assert explained.native == explained.steps, str(explained)


@needs_machine
def test_strided_elements_are_gathered_once_on_every_path():
    """Gathers the elements of a transposed matrix after a division that some calls leave to its kernel."""

    def f(m, divisors):
        turned = ops.transpose(m)
        return turned % divisors, turned + 1, turned * turned, padding(turned)

    m, divisors = np.arange(12).reshape(3, 4) ** 2, np.arange(1, 13).reshape(4, 3)
    compiled = jit(f)
    for d in (divisors, np.where(divisors == 5, -1, divisors), divisors):
        m = m + 1
        assert_same_bits(compiled(m, d), [m.T % d, m.T + 1, m.T * m.T, padding(m.T)])
    explained = next(iter(compiled.programs.values())).native
    assert explained.native == explained.steps, str(explained)


@needs_machine
@pytest.mark.parametrize("name", SPECIAL)
def test_functions_of_scipy_special(name):
    x = np.array([*HARD, *np.linspace(-4.0, 4.0, 41), 0.25, 0.5, 30.0, 800.0, -1e-9])
    function, rest = getattr(special_ops, name), [x[::-1].copy()] * (instructions.OF_SCIPY[name] - 1)

    def f(x, *rest):
        return padding(x), function(x, *rest)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got, wanted, explained = both(f, x, *rest)
    assert explained.native == explained.steps, str(explained)
    assert_same_bits(got, wanted)


@needs_machine
def test_special_functions_match_scipy():
    """The functions called by SciPy's ufuncs are used directly, without warnings in either case."""
    x = np.array([0.1, 2.5, 30.0, -1.5, 0.0, -0.0, -3.0, np.inf, -np.inf, np.nan])

    def f(x):
        return padding(x), ops.lgamma(x), ops.polygamma(x, 0), ops.erf(x), ops.erfc(x), ops.sigmoid(x)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got, wanted, explained = both(f, x)
    assert explained.native == explained.steps
    assert_same_bits(got, wanted)
    np.testing.assert_array_equal(got[2], special.digamma(x))
    got, wanted, _ = both(f, x.astype(np.float32))
    assert_close(got, wanted)


@needs_machine
@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_integers_are_bitwise_equal(dtype):
    """Covers wrap-around, and mixing with floats and booleans."""
    info = np.iinfo(dtype)
    values = np.array([0, 1, -1, 2, 7, -13, info.max, info.min, info.max - 1, 2**31 - 5], dtype)
    floats = np.array([0.5, -0.0, np.nan, 3.0, 1e300])

    def f(a, b, x):
        compared = [a < b, a <= b, a > b, a >= b, ops.equal(a, b), ops.not_equal(a, b), a[:5] < x, ops.equal(a[:5], x)]
        logical = [ops.logical_and(a, b), ops.logical_not(a), ops.logical_or(a, x[0]), ops.isnan(a), ops.isfinite(b)]
        whole = [a + b, a - b, a * b, -a, ops.abs(a), ops.sign(a), ops.maximum(a, b), ops.minimum(a, b), a * 3 - 1]
        whole += [
            a // 3,
            a // -4,
            a % 5,
            a % -3,
            a % 2,
            ops.square(a),
            ops.floor(a),
            ops.where(a < b, a, b),
            a + (a > b),
        ]
        whole += [
            ops.sum(a),
            ops.prod(a[:4]),
            ops.max(a),
            ops.min(b),
            ops.cumsum(a),
            ops.sum(a > b),
            a[::-2],
            a[3] + b[4],
        ]
        mixed = [a[:5] + x, a / b, a * 0.5, ops.exp(a[:5] * 0.1), ops.mean(a), ops.where(a[:5] > 1, a[:5], x)]
        mixed += [ops.cast(a, "float64"), ops.cast(a, "float32"), ops.cast(a, "bool"), ops.cast(a > b, a.dtype)]
        mixed += [
            ops.cast(a, "int64"),
            ops.cast(a, "int32"),
            ops.cast(x[0] * 9.7, dtype),
            ops.stack([a[0] + 0.5, x[1]]),
        ]
        return compared + logical + whole + mixed

    with np.errstate(all="ignore"):
        got, wanted, explained = both(f, values, np.roll(values, 3), floats)
        assert explained.native == explained.steps, str(explained)
        assert_same_bits(got, wanted)
        compiled = jit(lambda a, b: [a + b, a * b - a, a < b, a % 7, a / b, ops.maximum(a, b), a + 0.5])
        for a in values:
            for b in values:
                assert_same_bits(compiled(np.asarray(a), np.asarray(b)), compiled.f(np.asarray(a), np.asarray(b)))


@needs_machine
def test_invalid_casts_to_integers_warn_as_numpy():
    compiled = jit(lambda x: [padding(x), ops.cast(x, "int64"), ops.cast(x, "int32")])
    assert_same_bits(compiled(np.float64(-7.9)), compiled.f(np.float64(-7.9)))
    with pytest.warns(RuntimeWarning, match="invalid value encountered in cast"):
        compiled(np.float64(np.nan))


@needs_machine
def test_computed_indices():
    m = np.arange(24.0).reshape(2, 3, 4)
    v = np.array([1.5, -2.0, 0.25, 8.0])

    def f(m, v, i, j, several):
        chosen = [v[i], m[i], m[i, j], m[:, j], m[..., i], m[i, :, j], m[i, 1:, ::-1], m[j % 2, None, i], m[i, [0, 2]]]
        chosen += [v[several], m[:, several], m[:, :, several][0], ops.take(m, several, 2), ops.take(m, i), several[i]]
        chosen += [ops.take(v, several % 4), (m > 3.0)[i, j], several[several[i] % 2], ops.take(m, j, 1)]
        written = [
            ops.scatter_update(v, ops.reshape(i, (1, 1)), v[:1] * 3),
            ops.scatter(ops.stack([[i, j]]), v[:1], (3, 4)),
        ]
        return [padding(v), *[x * 2 for x in chosen], *written]

    compiled = jit(f)
    for i, j, several in ((0, 2, [[0, 1], [2, -1]]), (1, -3, [[2, 2], [0, 0]]), (-2, 1, [[-2, 1], [1, -3]])):
        arguments = m, v, np.asarray(i), np.asarray(j), np.asarray(several)
        assert_same_bits(compiled(*arguments), f(*arguments))
    explained = next(iter(compiled.programs.values())).native
    assert not [reason for name, reason in explained.refused if name in ("get_item", "take", "set_at", "add_at")]
    for i, j, several, message in (
        (2, 0, [[0, 1], [2, 1]], "index 2 is out of bounds for axis 0 with size 2"),
        (0, -4, [[0, 1], [2, 1]], "index -4 is out of bounds for axis 1 with size 3"),
        (0, 0, [[0, 1], [2, 4]], "index 4 is out of bounds for axis 0 with size 4"),
    ):
        with pytest.raises(IndexError, match=message):
            compiled(m, v, np.asarray(i), np.asarray(j), np.asarray(several))


@needs_machine
def test_gradients_at_computed_indices():
    m = np.arange(12.0).reshape(3, 4) / 7

    def f(m, i, several):
        return (
            ops.sum(m[i] * m[:, several][0, 0]) + ops.sum(ops.take(m, several, 0) ** 2) * m[i, i] + ops.sum(m[several])
        )

    compiled = jit(value_and_grad(f))
    for i, several in ((0, [2, 2]), (2, [0, 1]), (-1, [-1, 0])):
        arguments = m, np.asarray(i), np.asarray(several)
        assert_close(compiled(*arguments), value_and_grad(f)(*arguments))
    explained = next(iter(compiled.programs.values())).native
    assert not [reason for name, reason in explained.refused if name in ("get_item", "take", "set_at", "add_at")]


@needs_machine
def test_shapes_and_indexing():
    """Covers all ways to move elements, and sums and products over them."""
    m = np.arange(12.0).reshape(3, 4) / 7 - 0.6
    v = np.array([1.5, -2.0, 0.25])

    def f(m, v):
        row, column = m[1], m[:, 2]
        moved = [row, column, m[::2, ::-1], m.T, m[[0, 2, 0]], m[np.array([True, False, True])], m[..., None, 1]]
        moved += [ops.reshape(m, (4, -1)), ops.flip(m, 0), ops.take(m, np.array([3, 0]), 1), ops.diagonal(m)]
        moved += [ops.stack([v, v * 2]), ops.concatenate([v, column, row]), ops.tril(m), ops.triu(m, 1)]
        moved += [ops.broadcast_to(v, (2, 3)), *ops.split(row, 2), ops.expand_dims(v, 1), *ops.unstack(m)]
        updated = [ops.scatter_update(v, np.array([[1]]), v[:1] * 3), ops.slice_update(m, (1, 1), m[:2, :2] * 2)]
        products = [m @ (v @ m), v @ m, ops.dot(v, v), ops.outer(v, v), m @ m.T, v[:, None] * m]
        sums = [ops.sum(m), ops.sum(m, 0), ops.sum(m, (0, 1), keepdims=True), ops.mean(m, 1), ops.max(m, 0)]
        sums += [ops.min(m), ops.prod(m, 1), ops.cumsum(m, 1), ops.cumsum(v)]
        return [padding(v), *[x * 1.5 for x in moved], *updated, *products, *sums]

    got, wanted, explained = both(f, m, v)
    assert explained.native >= explained.steps - 2, str(explained)
    assert_close(got, wanted)
    assert all(x.flags.writeable and x.flags.owndata for x in got if isinstance(x, np.ndarray))
    fortran, _, _ = both(f, np.asfortranarray(m), v)
    assert_same_bits(fortran, got)


@needs_machine
def test_sums_use_pairwise_summation_as_numpy():
    rng = np.random.default_rng(5)
    for n in (1, 2, 7, 8, 9, 31, 129, 256):
        x = rng.normal(size=n) * 10.0 ** rng.integers(-8, 8, n)
        got, wanted, _ = both(lambda x: (padding(x), ops.sum(x), ops.sum(ops.abs(x) * -0.0)), x)
        assert_same_bits(got, wanted)


@needs_machine
@pytest.mark.parametrize("seed", range(12))
def test_random_programs_natively_and_by_numpy(seed):
    program = random_programs.Program(seed)

    def loss(*inputs):
        return program.loss(*inputs)

    got, wanted, explained = both(value_and_grad(loss, argnums=tuple(range(len(program.inputs)))), *program.inputs)
    assert explained.native > 0
    assert_close(got, wanted, rtol=1e-4 if program.single else 1e-9)


def test_results_belong_to_the_caller():
    compiled = jit(lambda x: (padding(x), x[:2], x))
    x = X.copy()
    first = compiled(x)
    for y in first:
        y[...] = 7.0
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(compiled(x)[0], padding(X))
    np.testing.assert_array_equal(compiled(x)[2], X)


def test_calls_from_several_threads():
    from concurrent.futures import ThreadPoolExecutor

    compiled = jit(lambda x: ops.sum(padding(x) * padding(2 * x)))
    xs = [np.full(4, float(i)) for i in range(40)]
    compiled(xs[0])
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(compiled, xs * 5))
    np.testing.assert_array_equal(found, [np.sum(padding(x) * padding(2 * x)) for x in xs] * 5)


# Warnings and errors.


@pytest.mark.parametrize("number", [True, False])
def test_warnings_match_numpy(number):
    def f(x):
        x = x[0] * 1.0 if number else x
        return padding(x), ops.log(x), 1.0 / x, ops.exp(x * 1e4)

    x = np.array([0.0, 1.0, -1.0])

    def warned():
        compiled = jit(f)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            compiled(x)
        return sorted(str(w.message) for w in found)

    natively = warned()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "machine", lambda: None)
        assert natively == warned()
    assert any("divide by zero encountered in log" in w for w in natively)
    compiled = jit(f)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(x)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        compiled(x)
    compiled(np.ones_like(x))


def test_singular_matrix_among_native_steps_is_an_error():
    def f(x):
        a = ops.stack([ops.stack([x[0], x[1]]), ops.stack([x[1], x[0]])]) * 1.0
        return padding(ops.solve(padding(a) - 8.0, x[:2])) * 2

    compiled = jit(f)
    x = np.array([2.0, 1.0])
    np.testing.assert_allclose(compiled(x), (np.linalg.solve([[2, 1], [1, 2]], x) + 8) * 2)
    with pytest.raises(Exception, match="singular"):
        compiled(np.array([1.0, 1.0]))
    np.testing.assert_allclose(compiled(x), (np.linalg.solve([[2, 1], [1, 2]], x) + 8) * 2)


# Reports of native and other steps.


def test_native_rules_match_numpy_kernels():
    """After a kernel is renamed its rule would silently no longer apply."""
    native = [entry.name for entry in ops._dispatch.registry.values() if "native" in entry.rules]
    assert len(native) > 50
    assert [name for name in native if not callable(backends.embedded().kernel(name))] == []


@needs_machine
def test_explain_reports_native_steps_and_reasons():
    compiled = jit(lambda x: (ops.expm(ops.diag(padding(x))), padding(padding(x) * 3)))
    assert "first call" in compiled.explain()
    compiled(X)
    assert "float64[4]" in compiled.explain() and "native in 1 run" in compiled.explain()
    assert "expm: the machine has no such operation" in compiled.explain()
    compiled = jit(padding)
    compiled(X.astype(complex))
    assert "add (8 times): dtype complex128" in compiled.explain()
    compiled = jit(lambda x: ops.sum(ops.flip(x)[:3]))
    compiled(np.ones(50000))
    assert "0 native" in compiled.explain() and "NumPy's own loops are as fast" in compiled.explain()


@needs_machine
def test_profiles_show_native_code():
    compiled = jit(lambda x: ops.sum(padding(x)))
    compiled(X)
    with profiler.profile(with_torch=False) as p:
        compiled(X)
        compiled(X)
    (row,) = p.rows()
    assert (row.name, row.kind, row.calls) == ("native code, 9 steps", "label", 2) and row.total > 0


# Without llvmlite.


def test_without_llvmlite_programs_run_by_numpy(without_native_code):
    compiled = jit(lambda x: ops.sum(padding(x)))
    assert compiled(X) == np.sum(padding(X))
    assert next(iter(compiled.programs.values())).native.native == 0


@pytest.mark.parametrize("error", [ImportError("libLLVM.so: cannot open"), AttributeError("too old")])
def test_broken_llvmlite_gives_one_warning(monkeypatch, error):
    class Broken:
        def __getattr__(self, name):
            raise error

    monkeypatch.setattr("llvmlite.binding", Broken())
    machine.machine.cache_clear()
    try:
        with pytest.warns(RuntimeWarning, match="run without native code") as found:
            assert machine.machine() is None
            assert machine.machine() is None
        assert len(found) == 1
    finally:
        machine.machine.cache_clear()


def test_missing_llvmlite_gives_no_warning(monkeypatch):
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    machine.machine.cache_clear()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert machine.machine() is None
            compiled = jit(padding)
            compiled(X)
            assert "none native: llvmlite is not installed" in compiled.explain()
    finally:
        machine.machine.cache_clear()


@needs_machine
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
def test_boolean_reductions_of_small_arrays(axis):
    def f(x):
        y = x * 2 - 1
        found = [ops.any(y > 0, axis), ops.all(y > 0, axis, keepdims=True), ops.any(ops.isnan(y), axis)]
        return [*found, ops.where(found[1], x, -x), ops.logical_and(found[0], ops.all(x < 9, axis))]

    for x in (np.eye(3), np.ones((2, 4)), np.array([[np.nan, 0.0], [1.0, -0.0]]), np.zeros((1, 3))):
        natively, by_numpy, explained = both(f, x)
        assert_same_bits(natively, by_numpy)
        assert not explained.refused


@needs_machine
def test_kernels_in_native_loops_warn_and_end_as_numpy():
    """A loop stays native around NumPy's own kernels, with their values, warnings and errors."""

    def f(x):
        def step(state, row):
            w, v = ops.eigh(ops.outer(row, row) + ops.diag(state))
            state = state * 0.5 + ops.log(w[::-1]) + v[0] * 0.0 + ops.gcd(ops.argmax(row), 2)
            return state, ops.sum(ops.sort(state)[:2]) / state[1]

        return ops.scan(step, ops.abs(x[0]), x)

    def caught(g, x):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            return g(x), [str(w.message) for w in found]

    rng = np.random.default_rng(2)
    x = rng.normal(size=(6, 3))
    compiled = jit(value_and_grad(lambda x: ops.sum(f(x)[1])))
    assert_close(compiled(x), value_and_grad(lambda x: ops.sum(f(x)[1]))(x), rtol=1e-9)
    explained = next(iter(compiled.programs.values())).native
    assert explained.native == explained.steps
    assert {name for name, _ in explained.called} == {"eigh", "gcd"}
    assert "eigh in a native loop is NumPy's own" in str(explained)

    def warned_of(x):
        return ops.scan(lambda state, row: (state / row[0], ops.ldexp(row, 2000)), ops.sum(x), x)

    x[2, 0] = 0.0
    (got, of_native), (wanted, of_numpy) = caught(jit(warned_of), x), caught(warned_of, x)
    assert_close(got, wanted)
    kinds = [{text.split(" encountered")[0] for text in texts} for texts in (of_native, of_numpy)]
    assert kinds == [{"overflow", "divide by zero"}] * 2
    compiled = jit(f)
    with pytest.raises(Exception, match="finite"):
        compiled(np.full((6, 3), np.nan))
    assert_close(compiled(x), f(x), rtol=1e-9)


@needs_machine
def test_power_does_not_depend_on_other_warnings():
    """NumPy's array power is C's pow, also in a repeated run: (-inf) ** 0.5 is inf."""
    x, half = np.array([-np.inf]), np.array([0.5])
    powers = lambda x, y: [ops.add(ops.power(x, y), k * y) for k in range(6)]  # noqa: E731
    for f in (powers, lambda x, y: [*powers(x, y), ops.log(x)]):
        with warnings.catch_warnings():  # errstate() would prevent the repeated run
            warnings.simplefilter("ignore")
            found, wanted = jit(f)(x, half), f(x, half)
        np.testing.assert_array_equal(found, wanted)
        assert found[0] == np.inf


@needs_machine
def test_arrays_of_many_numbers_stay_with_the_operations_on_the_numbers():
    """A loop that fills a vector of thousands of elements is one run, with its gradient."""
    noise = np.random.default_rng(1).normal(size=5_000)

    def f(p):
        state, states = p[0], []
        for e in noise:
            state = ops.add(ops.multiply(state, p[1]), float(e))
            states.append(state)
        filled = ops.stack(states)
        return ops.sum(ops.log(1 + filled**2)) + ops.sum(filled * noise)

    compiled = jit(value_and_grad(f))
    x = np.array([0.3, 0.5])
    value, gradient = compiled(x)
    np.testing.assert_allclose((value, *gradient), np.hstack(value_and_grad(f)(x)), rtol=1e-11)
    explained = next(iter(compiled.programs.values())).native
    assert explained.native == explained.steps, str(explained)
    assert explained.runs == 1


@needs_machine
@pytest.mark.parametrize("name", [name for name in instructions.OPERATIONS if name not in instructions.FUSED])
def test_vector_instructions_have_the_bits_of_those_on_numbers(name):
    """Sizes around each vector width, and all combinations of contiguous, strided and repeated operands."""
    count, number = instructions.OPERATIONS[name].operands, instructions.NUMBERS[name]
    found, rng = machine.machine(), np.random.default_rng(0)
    memory = rng.integers(1, 9, 600) if name.startswith("whole") else rng.normal(size=600).round(1) * 3
    memory = memory.view(np.float64).copy()
    cells = np.array([10, 150, 290])
    for n in (1, 2, 3, 4, 5, 8, 9, 17):
        for case in range(3**count):
            strides = np.array([case // 3**k % 3 if k < count else 0 for k in range(3)])
            on_numbers, on_vectors = memory.copy(), memory.copy()
            words = [[number, 450 + i, *(cells + i * strides)] for i in range(n)]
            for code, of in ((np.ravel(words), on_numbers), ([], on_vectors)):
                if of is on_vectors:
                    code = [found.vector(number), 450, *cells, n, *strides]
                code = np.append(code, instructions.END).astype(np.intc)
                found.run(code.ctypes.data, of.ctypes.data, found.functions)
            np.testing.assert_array_equal(on_vectors.view(np.int64), on_numbers.view(np.int64))


@needs_machine
@pytest.mark.parametrize("part", ["vector instruction", "hot loop", "large arrays"])
def test_native_code_that_llvm_cannot_compile_is_not_used(part, monkeypatch):
    real, own = machine._object_code, machine.machine.__wrapped__()

    def fail(binding, text, *arguments, **keywords):
        if bool(text) == (part != "vector instruction"):
            raise RuntimeError("no registers are left")
        return real(binding, text, *arguments, **keywords)

    def f(x):
        if part == "large arrays":
            return ops.sum(ops.exp(x) * x - ops.tanh(x))
        loop = ops.fori_loop(0, 5, lambda i, state: state * 0.5 + x[i], ops.sum(x))
        return loop + ops.sum(ops.argsort(x * 2) * x) if part == "vector instruction" else loop

    monkeypatch.setattr(loop_compiler, "WORTH", 1)
    monkeypatch.setattr(tile_run, "WORTH", 1)
    x = np.linspace(-1, 2, 20_000 if part == "large arrays" else 20)
    wanted = value_and_grad(f)(x)
    monkeypatch.setattr(machine, "_object_code", fail)
    monkeypatch.setattr(machine, "machine", lambda: own)
    monkeypatch.setenv("GRADOPS_CACHE", "off")
    compiled = jit(value_and_grad(f))
    with pytest.warns(RuntimeWarning, match="LLVM cannot compile .*no registers are left"):
        results = [compiled(x) for _ in range(3)]
    for value, gradient in results:
        np.testing.assert_allclose(value, wanted[0], rtol=1e-13)
        np.testing.assert_allclose(gradient, wanted[1], rtol=1e-13)
    assert ("none native: LLVM cannot compile" in compiled.explain()) == (part == "vector instruction")
