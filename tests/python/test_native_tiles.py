"""Steps on large arrays fused into one pass over tiles, against NumPy calls: values, shapes, warnings, threads."""

from __future__ import annotations

import math
import os
import platform
import warnings

import numpy as np
import pytest

from gradops import jit, ops, value_and_grad
from gradops._tree import items
from gradops.errors import GradopsError, MismatchError
from gradops.jit import reference
from gradops.jit.native import machine, tile_compiler, tile_plan, tile_run, tiles
from gradops.ops._dispatch import registry

mpmath = pytest.importorskip("mpmath")

needs_machine = pytest.mark.skipif(machine.machine() is None, reason="llvmlite is not installed")
ON_X86 = platform.machine() in ("x86_64", "AMD64")
"""On x86 the maximum of 0.0 and -0.0 is the second operand."""

rng = np.random.default_rng(0)


def chain(x):
    return ops.sum(ops.log1p(ops.exp(-x * x)) * ops.sin(x) + ops.tanh(x) / 2)


def groups(compiled) -> int:
    return sum(program.native.runs for program in compiled.programs.values())


def compare(f, *arguments, rtol=1e-12, grad=True, least=1):
    """Compare a function with its compiled form, including gradients, shapes and dtypes; check the number of groups."""
    of_all = value_and_grad(f, argnums=tuple(range(len(arguments)))) if grad else f
    wanted, compiled = of_all(*arguments), jit(of_all)
    for is_redone in (False, False, True):  # the last time by NumPy calls, as if there were a warning
        with pytest.MonkeyPatch.context() as patch:
            if is_redone:
                patch.setattr(tile_run, "is_warned_of", lambda raised: True)
                patch.setattr(tile_run._State, "run", lambda *_: 1)
                patch.setattr(tile_run._State, "shared", lambda *_: 1)
            results = compiled(*arguments)
        for a, b in zip(items(results), items(wanted), strict=True):
            assert a.shape == b.shape and a.dtype == b.dtype and type(a) is type(b)
            np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * np.max(np.abs(b), initial=0, where=np.isfinite(b)))
    assert groups(compiled) >= least
    return compiled


def by_llvm(f, *arguments):
    """Return a function whose groups are compiled by LLVM, and the number of compiled groups."""
    made, real = [], tile_compiler.compiled

    def noted(*given):
        made.append(real(*given))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tile_run, "WORTH", 1)
        patch.setattr(tile_compiler, "compiled", noted)
        compiled = jit(f)
        with np.errstate(all="ignore"):
            compiled(*arguments)
    return compiled, sum(plan.held is not None for plan in made)


def same_by_llvm(f, *arguments) -> int:
    """Check that results before and after LLVM are bitwise equal; return the number of groups that LLVM compiled."""
    (after, count), before = by_llvm(f, *arguments), jit(f)
    with np.errstate(all="ignore"):
        for a, b in zip(items(after(*arguments)), items(before(*arguments)), strict=True):
            np.testing.assert_array_equal(a, b)
            if ON_X86:
                np.testing.assert_array_equal(np.signbit(a) | np.isnan(a), np.signbit(b) | np.isnan(b))
    return count


@needs_machine
@pytest.mark.parametrize("size", [513, 1024, 4096, 5000, 20_001])
def test_chain_with_its_gradient_is_one_pass(size):
    compiled = compare(chain, rng.normal(size=size))
    assert compiled.explain().splitlines()[-1].endswith(")") and "in 1 run" in compiled.explain()
    compare(chain, rng.normal(size=size).astype("float32"), rtol=3e-5)
    assert same_by_llvm(value_and_grad(chain), rng.normal(size=size)) == 1


SHAPES = {
    "rows": lambda x: ops.sum(ops.exp(x - ops.max(x, axis=1, keepdims=True)) * ops.sum(x, axis=1, keepdims=True)),
    "columns": lambda x: ops.sum(((x - ops.mean(x, axis=0)) * ops.sum(x * x, axis=0, keepdims=True)) ** 2),
    "numbers of rows": lambda x: ops.sum(ops.log(ops.sum(ops.exp(x), axis=1)) * ops.mean(x, axis=-1)),
    "masks": lambda x: ops.sum(ops.where(x > 0, ops.sqrt(ops.abs(x)), x**3)) + ops.sum(ops.relu(x) * ops.sigmoid(x)),
    "another shape": lambda x: ops.sum(ops.exp(ops.reshape(x, (-1,))) * ops.reshape(x * 2, (-1,))),
    "softplus": lambda x: ops.sum(ops.softplus(x * 3) * ops.broadcast_to(ops.sum(x), x.shape)),
    "extremes": lambda x: ops.max(ops.exp(x) * x) + ops.min(x * x - x),
    "distributions": lambda x: ops.sum(ops.softmax(x) * x) + ops.sum(ops.log_softmax(x, -1) ** 3),
    "two means": lambda x: ops.sum(ops.exp(ops.mean(x, axis=1)) * ops.mean(x * x, axis=1)),
    "variances": lambda x: ops.sum(ops.var(ops.exp(x), axis=-1) * ops.mean(x, axis=-1) + ops.sum(x, axis=-1)),
    "evidence": lambda x: ops.sum(ops.logsumexp(x, axis=1) * ops.sum(x, axis=1)),
    "outputs of outputs": lambda x: ops.sum(ops.transpose(ops.exp(x) * 2) @ (x * 3)),
}


@needs_machine
@pytest.mark.parametrize("f", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("width", [2, 10, 100, 1500])
def test_shapes(f, width):
    x = rng.normal(size=(6000 // width + 1, width))
    compare(f, x)
    same_by_llvm(value_and_grad(f), x)


@needs_machine
@pytest.mark.parametrize("number", [-1.0, 0.0, *range(2, 30)])
def test_equal_constants_are_not_merged_with_other_values(number):
    """A constant equal to a slot number, or to another constant, must not be confused with it."""
    x, p = np.linspace(-1.5, 2, 5000), np.array([0.3, -0.7, 0.9])
    compare(lambda p: ops.sum((x - p[0] + p[1]) * ops.exp(p[2] * x) * number + x * p[1]), p)
    zeros = jit(lambda x: (ops.exp(x) * 0.0, ops.exp(x) * -0.0, ops.exp(x) * x))(x)
    assert not np.signbit(zeros[0]).any() and np.signbit(zeros[1]).all()


@needs_machine
def test_operands():
    def f(x, row, column, number):
        return ops.sum(ops.tanh(x * row + ops.expand_dims(column, 1)) * (x - number))

    x = rng.normal(size=(90, 70))
    compare(f, x, rng.normal(size=70), rng.normal(size=90), np.array([[0.3]]))
    compare(lambda x, b: ops.sum(ops.exp(x * b) - ops.mean(x, axis=(1, 2), keepdims=True) * x),
            rng.normal(size=(40, 20, 15)), rng.normal(size=(20, 15)))  # fmt: skip
    compare(lambda x, y: ops.sum(ops.exp(x) * y), rng.normal(size=(70, 90)).T, rng.normal(size=(180, 70))[::-2])
    compare(lambda x, k: ops.sum(ops.exp(x * x) * x) + ops.sum(x * k), x / 9, np.arange(70.0))
    compare(lambda x: (ops.exp(x) * 2, ops.reshape(ops.exp(x) * 2, (90, 70)), ops.sin(x) * x), x.ravel(), grad=False)
    compare(lambda x: ops.sum(ops.exp(x) * x), np.ones((0, 9)), least=0)


@needs_machine
@pytest.mark.parametrize("shape", [(700, 10), (2000, 3), (90, 100), (71, 37), (3, 2000)])
def test_products_with_vectors(shape):
    X, y, b = rng.normal(size=shape), rng.normal(size=shape[0]), rng.normal(size=shape[1])
    for f in (
        lambda b, X, y: ops.sum((ops.matmul(X, b) - y) ** 2) / len(y),
        lambda b, X, y: ops.sum(ops.softplus(X @ b) - y * (X @ b)),
        lambda b, X, y: ops.sum((y @ X) * b) + ops.sum((X @ ops.reshape(b, (-1, 1))) ** 2),
        lambda b, X, y: ops.sum(ops.transpose(X) @ ops.tanh(X @ b)) + ops.dot(y, ops.dot(X, b)),
    ):
        compare(f, b, X, y, rtol=1e-10)
        same_by_llvm(value_and_grad(f), b, X, y)
        compare(lambda b, f=f: f(b, X, y), b, rtol=1e-10, least=0)
        compare(lambda b, f=f: f(b, np.asfortranarray(X), y), b, rtol=1e-10, least=0)
    single = [x.astype("float32") for x in (b, X, y)]
    compare(lambda b, X, y: ops.sum((ops.matmul(X, b) - y) ** 2), *single, rtol=2e-3)


REPEATED = {
    "rows": lambda x: ops.repeat(x, 2, 0),
    "columns": lambda x: ops.repeat(x, 2, 1),
    "one row": lambda x: ops.broadcast_to(x[:1], x.shape),
    "one column": lambda x: ops.broadcast_to(x[:, :1], x.shape),
    "one number": lambda x: ops.broadcast_to(x[:1, :1], x.shape),
    "tiles": lambda x: ops.tile(x, (2, 1)),
    "every second row": lambda x: ops.reshape(ops.expand_dims(x, 0)[:, ::2], (-1, x.shape[1])),
}


@needs_machine
@pytest.mark.parametrize("name", REPEATED)
@pytest.mark.parametrize("shape", [(2050, 3), (90, 100), (4, 2000)])
def test_products_of_repeated_rows_and_columns(name, shape):
    x, of = rng.normal(size=shape), REPEATED[name]
    rows, columns = np.shape(of(x))
    v, w = rng.normal(size=columns), rng.normal(size=rows)
    compare(lambda x, v, w: ops.sum((of(x) @ v) ** 2) + ops.sum(w @ of(x)), x, v, w, rtol=1e-9, least=0)
    compare(lambda x, v, w: (of(x) @ v, w @ of(x)), x, v, w, rtol=1e-9, least=0, grad=False)


@needs_machine
def test_product_used_by_both_passes_is_one_pass():
    X, y = rng.normal(size=(2000, 10)), rng.normal(size=2000)
    compiled = compare(lambda b: ops.sum((ops.matmul(X, b) - y) ** 2), rng.normal(size=10), rtol=1e-10)
    assert groups(compiled) == 1 and "matmul" not in compiled.explain()
    compiled = compare(value_and_grad(lambda b, X: ops.sum((X @ b - y) ** 2)), rng.normal(size=10), X, grad=False)
    assert groups(compiled) == 1 and "matmul" not in compiled.explain()


@needs_machine
def test_integer_powers_are_within_one_unit_of_numpy():
    x = np.concatenate(
        [rng.normal(size=3000) * 10.0 ** rng.integers(-30, 30, 3000), [0.0, -0.0, np.inf, -np.inf, np.nan]]
    )
    for n in range(3, 10):
        compiled = jit(lambda x, n=n: x**n * 1.0 + 0.0)
        got, wanted = compiled(x), x.astype(float) ** n
        assert groups(compiled) == 1
        near = np.abs(got - wanted) <= np.spacing(np.abs(wanted))
        assert (near | (got == wanted) | np.isnan(wanted) & np.isnan(got)).all()


@needs_machine
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_trigonometric_functions_are_within_one_unit_of_numpy(name):
    quarters = np.arange(1, 3000) * (np.pi / 2)
    hard = [0.0, -0.0, 5e-324, -5e-324, 1e-310, 1e-8, np.pi, 355.0, 999_999.5, -1e6]
    x = np.concatenate([hard, quarters, np.nextafter(quarters, 0), rng.uniform(-1e6, 1e6, 3000), rng.normal(size=3000)])
    ours = jit(lambda x: getattr(ops, name)(x) * 1.0)
    got, wanted = ours(x), getattr(np, name)(x)
    assert groups(ours) == 1
    assert (np.abs(got - wanted) <= np.spacing(np.abs(wanted))).all()
    assert (np.signbit(got) == np.signbit(wanted)).all()
    with mpmath.workprec(200):
        exact = [getattr(mpmath, name)(mpmath.mpf(v)) for v in x[:: len(x) // 500].tolist()]
        error = [abs(mpmath.mpf(v) - e) for v, e in zip(got[:: len(x) // 500].tolist(), exact)]
    assert (np.array(error, float) <= 0.75 * np.spacing(np.abs(wanted[:: len(x) // 500]))).all()
    assert not np.array_equal(got, wanted)  # so it was the tile loop's result
    x[5:8] = np.nan, np.inf, 1e22
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(ours(x), getattr(np, name)(x), rtol=3e-16)


RANGES = {
    "exp": [(-0.4, 0.4), (-20.0, 20.0), (-745.0, 709.0)],
    "expm1": [(-1e-9, 1e-9), (-1.0, 1.0), (-50.0, 709.0)],
    "log": [(0.99, 1.01), (1e-3, 1e3), (0.0, 1e-307)],
    "log1p": [(-1e-9, 1e-9), (-0.9999, 0.5), (0.0, 1e17)],
    "tanh": [(-1e-9, 1e-9), (-1.0, 1.0), (-25.0, 25.0)],
}
EDGES = [0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 1e-310, 2.0**-1022, 709.78, 710.0, -745.2, -1e9, 1e308, -1e308, 22.5]
BEYOND = [np.inf, -np.inf, np.nan, -np.nan]


@needs_machine
@pytest.mark.parametrize("name", tile_plan.FUNCTIONS)
def test_functions_are_within_a_unit_with_numpy_exceptions(name, monkeypatch):
    x = np.concatenate([*(rng.uniform(*ends, 1000) for ends in RANGES[name]), EDGES, BEYOND])
    f, of_numpy = getattr(ops, name), getattr(np, name)
    ours, (compiled, count) = jit(lambda x: -f(x)), by_llvm(lambda x: -f(x), x)
    monkeypatch.setattr(tile_run, "is_warned_of", lambda raised: False)  # a warning would repeat the run by NumPy
    with np.errstate(all="ignore"):
        got, wanted = -ours(x), of_numpy(x)
        np.testing.assert_array_equal(got, -compiled(x))
        assert groups(ours) == count == 1
        np.testing.assert_array_equal(got[:999], jit(lambda x: f(x))(x[:999]))
    np.testing.assert_allclose(got, wanted, rtol=5e-16, atol=5e-324)
    assert (np.signbit(got) == np.signbit(wanted))[~np.isnan(got)].all()
    few = np.flatnonzero(np.isfinite(wanted) & (np.abs(wanted) > 1e-300))[::6]
    with mpmath.workprec(200):
        exact = [getattr(mpmath, name)(mpmath.mpf(v)) for v in x[few].tolist()]
        error = [abs(mpmath.mpf(v) - e) for v, e in zip(got[few].tolist(), exact)]
    assert (np.array(error, float) <= 1.5 * np.spacing(np.abs(wanted[few]))).all()
    monkeypatch.undo()
    for number in EDGES + BEYOND:
        raised = []
        for call in (of_numpy, ours):
            with np.errstate(all="raise", under="ignore"):
                try:
                    call(np.full_like(x, number))
                except FloatingPointError as error:
                    raised.append(str(error))
        assert raised in ([], [raised[0]] * 2 if raised else []), number


@needs_machine
def test_functions_of_masked_rows_are_not_repeated(monkeypatch):
    x = rng.normal(size=(200, 33))
    x[:, 3], x[:, 5], x[7, 6] = -1e9, -np.inf, np.nan
    compiled = jit(lambda x: (ops.softmax(x, axis=-1), ops.tanh(x), ops.expm1(x)))
    compiled(x)
    monkeypatch.setattr(reference.Reference, "__call__", None)
    with np.errstate(all="raise", under="ignore"):
        got = compiled(x)
    for a, b in zip(got, (ops.softmax(x, axis=-1), ops.tanh(x), ops.expm1(x)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


@needs_machine
def test_sums_are_as_accurate_as_numpy():
    x = rng.normal(size=300_000) * 10.0 ** rng.integers(-6, 6, 300_000)
    exact = math.fsum((x * 3.0).tolist())
    for n in (600, 1000, 1024):  # bitwise equal within one tile
        assert jit(lambda x: ops.sum(x * 3.0))(x[:n]) == np.sum(x[:n] * 3.0)
    compiled = jit(lambda x: ops.sum(x * 3.0))
    chance = np.finfo(float).eps / 16 * np.abs(x * 3.0).sum()  # NumPy's sum may happen to be exact
    assert abs(compiled(x) - exact) <= 4 * abs(np.sum(x * 3.0) - exact) + chance
    assert groups(compiled) == 1


def test_warnings_match_numpy():
    def f(x):
        return ops.log(x) * 2.0 + 1.0 / x, ops.exp(x * 1e4) * ops.cos(x)

    compiled, x = jit(f), np.resize([0.0, 1.0, -1.0, np.inf], 6000)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        compiled(x), found.clear()
        natively = compiled(x)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        for a, b, c in zip(natively, compiled(x), f(x)):
            np.testing.assert_allclose(a, c, rtol=1e-15)
            np.testing.assert_allclose(b, c, rtol=1e-15)
    messages = {str(w.message) for w in found}
    assert {"divide by zero encountered in log", "invalid value encountered in log"} <= messages
    assert {"divide by zero encountered in divide", "overflow encountered in exp"} <= messages
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        compiled(x)
    with np.errstate(all="raise"):
        compiled(np.full_like(x, 1e-3))


@needs_machine
def test_threads_give_the_same_bits_and_forks_restart_them(monkeypatch):
    monkeypatch.setattr(tile_run, "PARALLEL", 1)
    monkeypatch.setattr(tile_run._Pace, "shares", lambda self: True)
    x = rng.normal(size=20_077)
    compiled = jit(value_and_grad(chain))
    results = [by_llvm(value_and_grad(chain), x)[0](x)]
    for count in (1, 3):
        monkeypatch.setattr(tile_run, "threads", lambda count=count: count)
        tile_run._pool.cache_clear()
        results.append(compiled(x))
    results.append(by_llvm(value_and_grad(chain), x)[0](x))
    for other in results[1:]:
        for a, b in zip(items(results[0]), items(other)):
            np.testing.assert_array_equal(a, b)
    if hasattr(os, "fork"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a fork with threads
            child = os.fork()
        if not child:
            os._exit(0 if compiled(x)[0] == results[0][0] else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@needs_machine
@pytest.mark.parametrize("width", [3, 10, 33])
def test_short_rows_match_numpy_and_are_bitwise_equal_by_llvm(width):
    def f(x, scale):
        z = (x - ops.mean(x, axis=-1, keepdims=True)) * scale
        return ops.sum(
            ops.softmax(z, axis=-1) * x - ops.logsumexp(z, axis=-1, keepdims=True) + ops.max(x, axis=-1)[:, None]
        )

    x, scale = rng.normal(size=(9007 // width, width)), rng.normal(size=width)
    both = value_and_grad(f, argnums=(0, 1))
    assert same_by_llvm(both, x, scale)
    for a, b in zip(items(by_llvm(both, x, scale)[0](x, scale)), items(both(x, scale)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@needs_machine
def test_transposed_vector():
    def f(row, matrix):
        return ops.sum(ops.matmul(matrix, ops.transpose(row)))

    compare(f, rng.normal(size=(1, 3)), rng.normal(size=(2732, 3)))


ELEMENTWISE = [name for name, entry in list(registry.items()) if entry.facts.elementwise and "scipy" not in name]


def ops_of_tiles() -> list[str]:
    """Return the elementwise ops that tiles compute on arrays of thousands of elements."""
    return [name for name in ELEMENTWISE if _tiled(name)]


def _tiled(name: str) -> bool:
    met = []
    group = tiles._Grouping._group

    def noting(grouping, domain, members, works, needed):
        met.extend(grouping.given[i].name for i in members)
        return group(grouping, domain, members, works, needed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiles._Grouping, "_group", noting)
        try:
            tile_of(name)
        except (TypeError, ValueError, RuntimeError):
            return False
    return name in met


def tile_of(name: str) -> tuple:
    """Return an elementwise op's results on arrays of thousands of elements, compiled and uncompiled."""
    entry = registry[name]
    xs = [np.linspace(0.1, 1.9, 6000) ** (i + 1) for i in range(len(entry.tensors))]

    def f(*xs):
        y = entry.call(*xs)
        return (ops.cast(y, "float64") if ops.dtype(y) == "bool" else y) * 1.5 + xs[0]

    with np.errstate(all="ignore"):
        return jit(f)(*xs), f(*xs)


@needs_machine
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_ops_in_tiles(name):
    try:
        results = tile_of(name)
    except MismatchError:
        raise
    except (TypeError, ValueError, GradopsError):
        pytest.skip("does not take floats")
    np.testing.assert_allclose(*results, rtol=1e-13, atol=1e-13)


def test_tiles_are_shared_among_threads_if_that_is_faster(monkeypatch):
    now = 0.0
    monkeypatch.setattr(tile_run.time, "perf_counter", lambda: now)
    costs, chosen = {"alone": 2.0, "shared": 1.0}, []

    def take(name):
        nonlocal now
        now += costs[name]
        chosen.append(name)
        return len(chosen)

    pace = tile_run._Pace()
    for count in range(1, 101):
        assert pace.timed(lambda _: take("shared"), lambda: take("alone"), None) == count
    assert chosen[8:].count("shared") > 80 and "alone" in chosen[8:]
    costs["shared"] = 50.0  # as if other processes were running
    for _ in range(100):
        pace.timed(lambda _: take("shared"), lambda: take("alone"), None)
    assert chosen[-60:].count("alone") > 55
    costs["shared"], seen = 1.0, len(chosen)
    for _ in range(2000):
        pace.timed(lambda _: take("shared"), lambda: take("alone"), None)
    assert chosen[seen:].count("shared") > 0 and chosen[-1000:].count("shared") > 900


@needs_machine
def test_number_of_threads_follows_openmp_settings(monkeypatch):
    for named, count in (("1", 1), ("3,2", 3)):
        monkeypatch.setenv("OMP_NUM_THREADS", named)
        assert tile_run.threads.__wrapped__() == count
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert 1 <= tile_run.threads.__wrapped__() <= os.cpu_count()


@needs_machine
def test_concurrent_calls_and_results_owned_by_the_caller():
    from concurrent.futures import ThreadPoolExecutor

    compiled = jit(value_and_grad(chain))
    xs = [rng.normal(size=6000) for _ in range(8)]
    wanted = [compiled(x)[1].copy() for x in xs]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(compiled, xs * 4))
    for (_, got), x in zip(found, wanted * 4):
        np.testing.assert_array_equal(got, x)
        got[...] = 0.0
    np.testing.assert_array_equal(compiled(xs[0])[1], wanted[0])


def test_numpy_object_layouts_are_as_assumed():
    assert tile_run.are_known()
    assert tile_run.loop(np.exp, np.dtype("int64"), np.dtype("int64")) is None


HARD = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 5e-324, 1e-310, 1e308, -1e308, 3.0, 7e8]
)
OF_ONE = {
    **{name: getattr(ops, name) for name in ("negative", "abs", "sqrt", "sign", "floor", "ceil", "trunc", "relu")},
    **{name: lambda x, name=name: ops.where(getattr(ops, name)(x), x, 2.0) for name in ("isnan", "isinf", "isfinite")},
    **{f"power {n}": lambda x, n=n: x**n for n in (2, 3, 5, 8)},
}
OF_TWO = {
    **{name: getattr(ops, name) for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum")},
    **{
        name: lambda x, y, name=name: ops.where(getattr(ops, name)(x, y), x, y)
        for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
    },
    **{
        name: lambda x, y, name=name: ops.where(getattr(ops, name)(x > 0, y >= 0), x, y)
        for name in ("logical_and", "logical_or", "logical_xor")
    },
    "logical_not": lambda x, y: ops.where(ops.logical_not(x > y), x, y),
}


@needs_machine
def test_operations_by_llvm_at_hard_points():
    x, y = (np.resize(a, 1051).reshape(-1) for a in (np.repeat(HARD, len(HARD)), np.tile(HARD, len(HARD))))

    def f(x, y):
        return [g(x) * 1.0 for g in OF_ONE.values()] + [g(x, y) * 1.0 for g in OF_TWO.values()]

    assert same_by_llvm(f, x, y) == 1
    compiled, _ = by_llvm(f, x, y)
    with np.errstate(all="ignore"):
        for name, a, b in zip([*OF_ONE, *OF_TWO], compiled(x, y), f(x, y), strict=True):
            if name.startswith("power"):  # within one unit
                np.testing.assert_allclose(a, b, rtol=3e-16, err_msg=name)
            else:
                np.testing.assert_array_equal(a, b, err_msg=name)
                if ON_X86:
                    np.testing.assert_array_equal(np.signbit(a[b == b]), np.signbit(b[b == b]), err_msg=name)


@needs_machine
@pytest.mark.parametrize("size", [1, 7, 513, 519, 1000, 1023, 1025, 3000])
def test_sums_by_llvm_have_numpy_summation_order(size):
    # One tile, or more than one: NumPy halves 1,000 and 1,023 elements into other block sizes than 1,024.
    for x in (rng.normal(size=size) * 10.0 ** rng.integers(-6, 6, size), np.full(size, -0.0)):
        compiled, count = by_llvm(lambda x: (ops.sum(x * 3.0), ops.max(x * 2.0), ops.min(-x), ops.tanh(x)), x)
        assert count == (size > 512)
        got = compiled(x)
        if size <= 1024:
            assert got[0] == np.sum(x * 3.0) and np.signbit(got[0]) == np.signbit(np.sum(x * 3.0))
        assert got[1] == np.max(x * 2.0) and got[2] == np.min(-x)


@needs_machine
@pytest.mark.parametrize("width", [64, 71, 100, 129, 256, 1500, 4100])
def test_rows_by_llvm(width):
    x = rng.normal(size=(5000 // width + 3, width))

    def f(x, row):
        top, low = ops.max(x, axis=1, keepdims=True), ops.min(x, axis=1)
        total = ops.sum((x - top) * row, axis=1)
        return total * low, ops.mean(x * x, axis=1), x / ops.expand_dims(total, 1), top, low

    compiled, count = by_llvm(f, x, x[0])
    assert count == (width <= 4096)
    x[1, 3], x[2, -1] = np.nan, np.inf
    for given in (x, np.asfortranarray(x), np.repeat(x, 2, 0)[::2]):
        with np.errstate(invalid="ignore"):
            for a, b in zip(compiled(given, x[0]), f(given, x[0]), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)
    assert same_by_llvm(f, x, x[0]) == count
    assert same_by_llvm(f, x.astype("float32"), x[0].astype("float32")) == 0  # by NumPy's loops


@needs_machine
@pytest.mark.parametrize("width", range(513, 521))
def test_every_row_remainder_by_llvm(width):
    x = rng.normal(size=(15, width))

    def f(x):
        is_large = x > 0.1
        chosen = np.where(is_large, x, 0.3 * x) - 0.5
        return np.sum(x, axis=1), chosen, is_large, np.max(chosen * x, axis=1), np.tanh(x) * is_large

    assert same_by_llvm(f, x) > 0
    compiled, _ = by_llvm(f, x)
    for a, b in zip(compiled(x), f(x), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


COMPLEX = {
    "norm": np.linalg.norm,
    "parts": lambda z: np.real(z) ** 2 - 2.0 * np.imag(z),
    "part of a transform": lambda z: np.real(np.fft.fft(z)) * 2.0 + 1.0,
    "conjugate": lambda z: np.real(np.conj(z) * 1j) * 2.0 + np.real(np.conj(z)),
    "reshaped": lambda z: np.reshape(np.real(z), (2, -1)) * 3.0 + 1.0,
    "deviation": np.std,
    "largest part": lambda z: np.max(np.real(z) * 1.5 - 1.0),
    "sums of rows": lambda z: np.sum(np.exp(np.real(z)) * np.cos(np.imag(z)), axis=-1),
}


@needs_machine
@pytest.mark.parametrize("size", [256, 4096, 4098, 6000])
@pytest.mark.parametrize("dtype", ["complex64", "complex128", "float32", "float64"])
@pytest.mark.parametrize("name", COMPLEX)
def test_parts_of_complex_arrays_are_not_views_of_their_bytes(name, dtype, size):
    f, z = COMPLEX[name], (rng.normal(size=size) + 1j * rng.normal(size=size))
    z = z.astype(dtype) if dtype.startswith("complex") else np.real(z).astype(dtype)
    for x in (z, z.reshape(-1, 2)):
        got, wanted = np.asarray(jit(f)(x)), np.asarray(f(x))
        assert got.dtype == wanted.dtype and got.shape == wanted.shape
        rtol = 1e-10 if got.dtype.itemsize // (1 + (got.dtype.kind == "c")) == 8 else 1e-3
        np.testing.assert_allclose(got, wanted, rtol, rtol * np.max(np.abs(wanted)))


@needs_machine
def test_gradients_by_llvm_match_finite_differences():
    rng = np.random.default_rng(3)  # a fixed seed, as a difference across a kink is meaningless
    x = rng.normal(size=(71, 67))
    x[:, 0] = 0.0

    def f(x):
        scaled = (x - ops.mean(x, axis=1, keepdims=True)) / (1.0 + ops.sum(x * x, axis=1, keepdims=True))
        return ops.sum(ops.where(x > 0.3, scaled**3, ops.maximum(scaled, x) * ops.softmax(x))) + ops.sum(ops.abs(x - 2))

    (compiled, count), way, h = by_llvm(value_and_grad(f), x), rng.normal(size=x.shape), 1e-6
    assert count >= 1
    slope = (f(x + h * way) - f(x - h * way)) / (2 * h)
    np.testing.assert_allclose(np.sum(compiled(x)[1] * way), slope, rtol=1e-7)


@needs_machine
def test_warnings_by_llvm_match_numpy(monkeypatch):
    def f(x):
        return 1.0 / x + ops.relu(x) * ops.where(x > 1.0, x, 2.0), ops.sqrt(x) * 2.0

    x = np.resize([0.5, np.nan, 2.0], 5000)
    compiled, count = by_llvm(f, x)
    assert count == 1
    replays = []
    monkeypatch.setattr(reference.Reference, "__call__", lambda self, *arrays: replays.append(1))
    with np.errstate(all="raise"):
        compiled(x)
    assert not replays
    monkeypatch.undo()
    for number, message in ((0.0, "divide by zero encountered in divide"), (-1.0, "invalid value encountered in sqrt")):
        with pytest.warns(RuntimeWarning, match=message):
            got = compiled(np.full(5000, number))
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(got, f(np.full(5000, number)))


@needs_machine
def test_group_is_compiled_after_running_long_enough(monkeypatch):
    x, plans, calls = rng.normal(size=2000), [], 0
    monkeypatch.setattr(tile_run, "WORTH", 100_000)
    monkeypatch.setattr(tile_compiler, "compiled", lambda plan, *_: plans.append(plan) or plan)
    compiled = jit(value_and_grad(chain))
    while not plans and calls < 100:
        compiled(x)
        calls += 1
    compiled(x)
    assert len(plans) == 1 and (calls - 1) * plans[0].work < 100_000 <= calls * plans[0].work


@needs_machine
def test_row_statistics_of_a_square_matrix_used_as_a_row():
    a, x = rng.normal(size=(100, 100)), rng.normal(size=100)
    column = rng.normal(size=(100, 1))
    by_rows = [
        (lambda a: ops.exp(a) * ops.sqrt(ops.sum(a * a, 1)) + a, (a,)),
        (lambda a: a + ops.sum(a * a, 1), (a,)),
        (lambda a, x: ops.matmul(ops.transpose(a), ops.exp(x)) * 2 + ops.matmul(a, ops.exp(x)), (a, x)),
        (lambda a, x: ops.matmul(ops.transpose(a), ops.matmul(a, x) * 2) + ops.exp(x), (a, x)),
        (lambda a, y: ops.sum(ops.matmul(a, ops.matmul(a, y) / ops.sum(y)) * y), (a, column)),
    ]
    for f, arguments in by_rows:
        compare(lambda *xs, f=f: ops.sum(f(*xs) * 1e-2), *arguments, rtol=1e-11)
