"""Value-dependent branches in compiled functions: one program per path taken."""

from __future__ import annotations

import gc
import math
import threading
import warnings
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parity import BACKENDS, numpy, tensors
from seeds import seeds

import gradops
from gradops import grad, ops, value_and_grad
from gradops.errors import GradopsError, JitError
from gradops.functional import hessian
from gradops.jit import guards, jit
from gradops.jit.guards import Looks

X = np.array([1.0, 2.0, 3.0])


def ways(compiled) -> int:
    return compiled.explain().count("specialised to the branches taken")


def penalised(x):
    if x[0] <= 0:
        return 1e10 + 0 * x[1]
    s = ops.log(x[0])
    return s * x[1] ** 2 if s > 1 and x[1] > s else s * x[1]


def root(x):
    y = x
    while abs(y * y / x - 1) > 1e-5:
        y = (y + x / y) / 2
    return y


def masked(x):
    big = x > 1.5
    return ops.sum(x[big] ** 2) + ops.sum(x[ops.nonzero(~big)[0]]) * int(len(x))


def sorted_out(x):
    return ops.sum(ops.stack([v**2 if v > 0 else -v for v in x]))


def chosen(x):
    return ops.sum(x**2) if ops.any(x > 2) or not ops.all(x < 5) else ops.prod(x)


POINTS = {
    penalised: [[1.0, 2.0], [-1.0, 2.0], [4.0, 2.0], [4.0, 0.5], [0.0, 1.0], [np.nan, 1.0], [1.0, np.inf]],
    root: [2.0, 3.0, 100.0, 1e-6],
    masked: [[1.0, 2.0, 3.0], [3.0, 1.0, 1.0], [0.0, 0.0, 0.0], [2.0, 2.0, 2.0], [np.nan, 1.0, 2.0]],
    sorted_out: [[1.0, -2.0, 3.0], [-1.0, -2.0, -0.0], [0.0, 1.0, np.inf]],
    chosen: [[1.0, 2.0, 3.0], [1.0, 1.0, 2.0], [-6.0, 1.0, 0.5]],
}


@pytest.mark.filterwarnings("ignore:the branches")
@pytest.mark.parametrize("f", POINTS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_value_and_gradient_match_the_uncompiled_function(f, dtype):
    both = jit(value_and_grad(f))
    points = [np.array(x, dtype) for x in POINTS[f]]
    for _ in range(2):
        for x in points:
            with np.errstate(all="ignore"):
                wanted = value_and_grad(f)(x)
                found = both(x)
            for a, b in zip(found, wanted):
                assert a.dtype == b.dtype and a.shape == b.shape
                np.testing.assert_allclose(a, b, rtol=1e-5 if dtype == "float32" else 1e-12)
    assert 1 < ways(both) <= len(points)


def test_one_program_per_path_and_one_without_decisions():
    both = jit(value_and_grad(penalised))
    for x in ([1.0, 2.0], [1.5, 2.5], [2.0, 0.1]):
        both(np.array(x))
    assert ways(both) == 1
    both(np.array([-1.0, 2.0]))
    assert ways(both) == 2
    plain = jit(value_and_grad(lambda x: ops.sum(ops.where(x > 1, x, 0.0))))
    plain(X), plain(-X)
    assert ways(plain) == 0
    by_shape = jit(lambda x: x * 2 if x.ndim and x.shape[0] > 2 else x)
    by_shape(X)
    assert ways(by_shape) == 0


def test_second_derivatives():
    f = jit(lambda x: hessian(penalised, x))
    for x in map(np.array, POINTS[penalised][:5]):
        wanted = hessian(penalised, x)
        np.testing.assert_allclose(f(x), wanted, rtol=1e-12)
        np.testing.assert_allclose(hessian(jit(penalised), x), wanted, rtol=1e-12)


def test_failed_guard_leaves_no_warning_or_error():
    """Unreached code (a logarithm, a factorisation, an index) must neither warn nor fail."""

    def f(x, a):
        if ops.any(x <= 0):
            return ops.sum(x)
        return ops.sum(ops.log(x)) + ops.sum(ops.cholesky(a * x[0]))

    both = jit(value_and_grad(f))
    a = np.eye(40)
    both(X, a)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in (-X, 0 * X):
            value, slope = both(x, a)
            assert value == np.sum(x)
            np.testing.assert_array_equal(slope, 1)
        with np.errstate(all="raise"):
            assert both(-X, a)[0] == -6
            assert both(X, a)[0] == value_and_grad(f)(X, a)[0]


def test_warnings_and_errors_of_the_path_taken_are_kept():
    def f(x, a):
        return ops.log(x[0]) if x[1] > 0 else ops.sum(ops.cholesky(a))

    compiled = jit(f)
    compiled(X, np.eye(3)), compiled(-X, np.eye(3))
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        assert compiled(np.array([0.0, 1.0, 1.0]), np.eye(3)) == -np.inf
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        compiled(np.array([0.0, 1.0, 1.0]), np.eye(3))
    with np.errstate(divide="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled(np.array([0.0, 1.0, 1.0]), np.eye(3)) == -np.inf
    with pytest.raises(GradopsError, match="positive definite"):
        compiled(-X, -np.eye(3))
    assert compiled(-X, np.eye(3)) == 3
    with pytest.raises(ValueError, match="ambiguous"):
        jit(lambda x: x if x > 0 else -x)(X)


def test_error_raised_in_a_branch_propagates():
    def f(x):
        if x[0] < 0:
            raise KeyError("negative")
        return x * 2

    compiled = jit(f)
    for _ in range(2):
        np.testing.assert_array_equal(compiled(X), 2 * X)
        with pytest.raises(KeyError, match="negative"):
            compiled(-X)


def test_paths_with_different_structures_and_results_owned_by_the_caller():
    def f(x):
        if x[0] > 2:
            return {"twice": x * 2}
        return (x, x[1:]) if x[0] > 0 else 3.5

    compiled = jit(f)
    for _ in range(2):
        x = X.copy()
        first, second = compiled(x)
        first[:], second[:] = 0, 0
        np.testing.assert_array_equal(x, X)
        np.testing.assert_array_equal(compiled(X + 2)["twice"], 2 * X + 4)
        assert compiled(-X) == 3.5


def test_closed_over_arrays_are_tested_at_each_call():
    weights = np.array([1.0, -1.0])
    compiled = jit(lambda x: x * 2 if x[0] * weights[0] > 0 else -x)
    np.testing.assert_array_equal(compiled(X), 2 * X)
    weights[0] = -1.0
    np.testing.assert_array_equal(compiled(X), -X)
    np.testing.assert_array_equal(compiled(-X), -2 * X)


def test_decision_uses_the_value_before_later_writes():
    def itself(x):
        positive = ops.reshape(x[:1] > 0, ())
        y = x * 2 if positive else x * 3
        positive[...] = True
        return y

    def viewed(x):
        positive = x > 0
        y = x * 2 if ops.reshape(positive[:1], ()) else x * 3
        positive[0] = True
        return y * 2 if x[1] > 0 else y

    for f in (itself, viewed):
        compiled = jit(f)
        for x in (X, -X):
            np.testing.assert_array_equal(compiled(x), f(x))


def test_integers_decide_branches():
    def f(x, n):
        return x * 2 if n else -x

    compiled = jit(f)
    for n in (0, 1, 2, 0):
        np.testing.assert_array_equal(compiled(X, np.array(n)), f(X, n))
    assert ways(compiled) == 2  # by truth value, not by number


def test_paths_beyond_the_limit_run_uncompiled():
    def f(x):
        total = ops.sum(x)
        for v in x:
            total = total + (v**2 if v > 0 else -v)
        return total

    both = jit(value_and_grad(f))

    def check_at(x):
        for a, b in zip(both(x), value_and_grad(f)(x)):
            np.testing.assert_allclose(a, b, rtol=1e-12)

    points = [np.array([1.0 if i >> k & 1 else -1.0 for k in range(6)]) for i in range(2**6)]
    with pytest.warns(RuntimeWarning, match="takes another branch now") as seen:
        for x in points:
            check_at(x)
    assert ways(both) == guards.FEW  # since no path was taken twice
    for x in points:
        for factor in (1.0, 2.0, 3.0):
            check_at(x * factor)
    assert ways(both) == guards.MOST
    assert len([w for w in seen if "takes another branch" in str(w.message)]) == 1


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: int(x[0] + 1),
        lambda x: int(x[0] > 1),
        lambda x: math.floor(x[0]),
        lambda x: math.ceil(x[0]),
        lambda x: math.trunc(x[1]),
        lambda x: round(x[0]),
        lambda x: [5, 6, 7, 8, 9][int(np.abs(x[0]))],
        lambda x: len(range(np.argmax(x))),
        lambda x: 2 if np.allclose(x[:2], [1.2, 0.5]) else 3,
        lambda x: 2 if np.allclose(b=x[0], a=1.2, rtol=0.1) else 3,
        lambda x: 2 if np.isclose(x[0], 1.2) else 3,
        lambda x: 2 if np.array_equal(x, PAIRS[0]) else 3,
        lambda x: 2 if np.array_equal([np.nan, 1.0], x / x, equal_nan=True) else 3,
        lambda x: 2 if np.array_equal(x, [1.0]) else 3,
    ],
)
def test_integer_conversions_and_predicates_are_decisions(ask):
    def f(x):
        return ops.sum(x**2) * ask(x)

    compiled = jit(f)
    with np.errstate(invalid="ignore"):
        for x in (*PAIRS, *PAIRS, -PAIRS[0]):
            np.testing.assert_allclose(compiled(x), f(x))


PAIRS = [np.array([1.2, 0.5]), np.array([2.3, 3.7]), np.array([0.0, 1.0])]


def test_conversion_of_nan_to_int_raises_numpy_error():
    for x, error in ((np.nan, ValueError), (np.inf, OverflowError)):
        with pytest.raises(error):
            jit(lambda x: x * int(x))(np.array(x))
    with pytest.raises(TypeError):
        jit(lambda x: x * range(3)[x])(np.array(1.0))
    compiled = jit(lambda x: x * int(x))
    assert compiled(np.array(2.5)) == 5
    with pytest.raises(ValueError):
        compiled(np.array(np.nan))


def test_unsupported_branches_raise():
    """Affects functions passed to loops and branches, and functions analysed for sparsity."""
    with pytest.raises(JitError, match="looked at a value"):
        jit(lambda x: ops.scan(lambda c, y: (c + y if y > 0 else c, c), 0.0 * x[0], ops.concatenate([x, x]))[0])(X)
    with pytest.raises(JitError, match="looked at a value"):
        hessian(lambda x: ops.sum(x**2) if x[0] > 0 else ops.sum(x), X, sparse=True)
    for f in (lambda x: float(x[0]), lambda x: np.asarray(x), lambda x: x.numpy(), lambda x: range(x[0])):
        with pytest.raises((JitError, TypeError)):
            jit(f)(X)
    counted = jit(lambda x: ops.fori_loop(0, 6, lambda i, c: c * 2 if c < 10 else c, x))
    assert counted(np.array(1.0)) == 16 and counted(np.array(5.0)) == 10


@pytest.mark.parametrize("backend", BACKENDS)
def test_custom_gradients_and_scopes_in_branches(backend):
    def f(x):
        y = gradops.scaled_gradient(x, -1.0) if x[0] > 0 else gradops.stop_gradient(x)
        return ops.sum(y**2) + ops.sum(x)

    compiled = jit(grad(f))
    for x in (X, -X, X):
        x = tensors(x, backend)
        np.testing.assert_array_equal(numpy(compiled(x)), numpy(grad(f)(x)))
    np.testing.assert_array_equal(numpy(compiled(tensors(X, backend))), 1 - 2 * X)


# Other libraries ------------------------------------------------------------------------------------------------------

OTHERS = [name for name in BACKENDS if name != "numpy"]


def halved(x):
    while ops.sum(ops.abs(x)) > 1:
        x = x / 2
    return ops.sum(x * x)


def by_control_flow(x):
    first = ops.cond(ops.sum(x) > 0, lambda: ops.sum(x**2), lambda: ops.sum(-x))
    which = ops.cast(ops.clip(ops.sum(x), 0.0, 2.0), "int32")
    second = ops.switch(which, [lambda v: ops.sum(v**2), lambda v: ops.sum(v**3), lambda v: ops.sum(-v)], x)
    third = ops.while_loop(lambda v: ops.sum(v) < 10, lambda v: (v * 2,), (x,), maximum_iterations=20)[0]
    return first + second + ops.sum(third)


def whole(x):
    total = gradops.stop_gradient(ops.sum(x))
    return ops.sum(x**2) * (int(total) + [5, 6, 7][int(ops.sum(x) > 1)])


def positive(x):
    return ops.mean(x[x > 0]) * ops.sum(x[1:])


FINITE = [[1.0, -2.0, 3.0], [-1.0, 2.0, -0.5], [0.0, 0.3, 9.0]]
HERE = {**POINTS, **dict.fromkeys((halved, by_control_flow, positive), FINITE)}
HERE[whole] = [[1.2, 0.5], [2.3, 3.7], [0.7, 0.2]]
del HERE[masked]  # TensorFlow tensors do not accept index arrays


@pytest.mark.short_cases(2)
@pytest.mark.filterwarnings("ignore:the branches")
@pytest.mark.parametrize("backend", OTHERS)
@pytest.mark.parametrize("f", HERE)
def test_branches_of_other_libraries(f, backend):
    """Checks value and gradient twice at each point; no call may silently take a wrong path."""
    both = jit(value_and_grad(f))
    for x in HERE[f] * 2:
        x = tensors(np.array(x), backend)
        for a, b in zip(both(x), value_and_grad(f)(x)):
            np.testing.assert_allclose(numpy(a), numpy(b), rtol=1e-12)
            assert type(a) is type(b) and a.dtype == b.dtype
    own = f is by_control_flow or f is positive and backend == "tensorflow"  # by the library's own conditions or sizes
    assert own and backend != "torch" or 1 < ways(both) <= len(HERE[f])


@pytest.mark.short_cases(0, "jax", "tensorflow")
@pytest.mark.parametrize("backend", OTHERS)
def test_second_derivatives_of_other_libraries(backend):
    f = jit(lambda x: hessian(penalised, x))
    for x in POINTS[penalised][:5]:
        x = tensors(np.array(x), backend)
        wanted = numpy(hessian(penalised, x))
        np.testing.assert_allclose(numpy(f(x)), wanted, rtol=1e-12)
        np.testing.assert_allclose(numpy(hessian(jit(penalised), x)), wanted, rtol=1e-12)


@pytest.mark.parametrize("backend", OTHERS)
def test_errors_structures_and_closures_of_other_libraries(backend):
    scale = tensors(np.array([2.0, -1.0]), backend)

    def f(x, negate=False):
        if x[0] < 0:
            raise KeyError("negative")
        if x[0] * scale[0] > 4:
            return {"twice": x * 2, "name": "large"}
        return x, -x if negate else 3.5

    compiled = jit(f, static_argnums=1)
    for _ in range(2):
        x = tensors(X, backend)
        first, second = compiled(x, negate=True)
        np.testing.assert_array_equal(numpy(first), -numpy(second))
        assert compiled(x)[1] == 3.5
        large = compiled(tensors(X + 2, backend))
        np.testing.assert_array_equal(numpy(large["twice"]), 2 * X + 4)
        assert large["name"] == "large"
        with pytest.raises(KeyError, match="negative"):
            compiled(tensors(-X, backend))


@pytest.mark.parametrize("backend", OTHERS)
def test_paths_beyond_the_limit_on_other_libraries(backend):
    compiled = jit(lambda x: x * int(x[0]))
    with pytest.warns(RuntimeWarning, match="takes another branch now"):
        for n in range(guards.FEW + 3):
            x = tensors(np.array([n + 0.5, 2.0]), backend)
            np.testing.assert_array_equal(numpy(compiled(x)), numpy(x) * n)
    assert ways(compiled) == guards.FEW


@pytest.mark.parametrize("backend", OTHERS)
def test_transformations_of_branches_on_other_libraries(backend):
    x = tensors(X - 2, backend)
    np.testing.assert_array_equal(numpy(gradops.vmap(jit(lambda x: x if x > 0 else -x))(x)), [1, 0, 1])
    np.testing.assert_array_equal(numpy(grad(jit(sorted_out))(x)), [-1, -1, 2])
    value, slope = gradops.jvp(jit(sorted_out), (x,), (tensors(np.ones(3), backend),))
    assert (float(value), float(slope)) == (2, 0)


@pytest.mark.parametrize("backend", OTHERS)
def test_tensors_of_a_trace_are_released(backend):
    compiled = jit(sorted_out)
    held = [tensors(np.array(x), backend) for x in FINITE]
    given = [weakref.ref(x) for x in held if compiled(x) is not None]
    del held
    gc.collect()
    assert ways(compiled) > 1 and not any(x() is not None for x in given)
    assert not [x for x in gc.get_objects() if isinstance(x, Looks)]


@pytest.mark.parametrize("backend", OTHERS)
def test_unobservable_value_reads_are_errors(backend):
    """Covers ``float()``, NumPy functions, and functions that modify what they read."""
    x = tensors(X, backend)
    for f in (lambda x: x * float(x[0]), lambda x: np.asarray(x) * 2):
        with pytest.raises(JitError, match="looked at a value"):
            jit(f)(x)
    count = []

    def counting(x):
        count.append(1)
        return x if x[0] > 0 else -x

    with pytest.raises(JitError, match="changed what it reads"):
        jit(counting)(x)


@pytest.mark.filterwarnings("ignore:the branches")  # two threads compiling at once count a path twice
def test_threads_at_once():
    both = jit(value_and_grad(sorted_out))
    points = [np.array(x) * s for x in POINTS[sorted_out][:2] for s in (1.0, -1.0)]
    wanted = [value_and_grad(sorted_out)(x) for x in points]
    failed = []

    def run(k):
        for i in range(60):
            j = (i + k) % len(points)
            for a, b in zip(both(points[j]), wanted[j]):
                if not np.allclose(a, b, rtol=1e-12, atol=0):
                    failed.append((j, a, b))

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed


# Random programs ------------------------------------------------------------------------------------------------------


def random_function(seed: int):
    """Return a random function of some forty lines with value-dependent branches, masks and loops."""
    rng = np.random.default_rng(seed)
    lines = [(int(rng.integers(7)), *map(int, rng.integers(0, 1000, 3)), float(rng.normal())) for _ in range(40)]

    def f(x):
        numbers, vectors = [x[0], x[1]], [x, x * 0.5 + 0.1]
        for kind, i, j, k, c in lines:
            a, b = numbers[i % len(numbers)], numbers[j % len(numbers)]
            v, w = vectors[i % len(vectors)], vectors[k % len(vectors)]
            if kind == 0:
                numbers.append(ops.tanh(a * c + b))
            elif kind == 1:
                numbers.append(a * b if a > c else a - b)
            elif kind == 2:
                numbers.append(ops.sum(v[v > c]) * 0.3 if ops.any(v > c) and a < 1 else ops.sin(b))
            elif kind == 3:
                vectors.append(ops.where(w > c, v, -w) if not (b < a or a < c) else ops.tanh(v + w))
            elif kind == 4:
                while abs(a) > 0.5:
                    a = a / 2
                numbers.append(a)
            elif kind == 5:
                vectors.append(v * a if ops.sum(v) > ops.sum(w) * c else ops.cos(w))
            else:
                numbers.append(ops.max(v) if v[k % 4] > 0 else ops.sum(ops.tanh(w)))
        return sum(numbers) + ops.sum(ops.tanh(vectors[-1]))

    return f


def check(seed: int, backend: str = "numpy", points: int = 6) -> None:
    f = random_function(seed)
    both = jit(value_and_grad(f))
    rng = np.random.default_rng(seed + 1)
    found = rng.normal(size=(points, 4)) * 2
    for x in (*found[: points // 2], *found):
        x = tensors(x, backend)
        for a, b in zip(both(x), value_and_grad(f)(x)):
            np.testing.assert_allclose(numpy(a), numpy(b), rtol=1e-9, atol=1e-12, err_msg=f"seed {seed}")


@pytest.mark.filterwarnings("ignore:the branches")
@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_random_programs(seed):
    check(seed)


@pytest.mark.filterwarnings("ignore:the branches")
@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(200))
def test_many_random_programs(seed):
    check(seed)


@pytest.mark.short_cases(0, "jax", "tensorflow")
@pytest.mark.filterwarnings("ignore:the branches")
@pytest.mark.parametrize("backend", OTHERS)
def test_random_programs_of_other_libraries(backend):
    check(7, backend, points=2)


@pytest.mark.filterwarnings("ignore:the branches")
@pytest.mark.long
@pytest.mark.parametrize("backend", OTHERS)
@pytest.mark.parametrize("seed", seeds(10))
def test_many_random_programs_of_other_libraries(backend, seed):
    check(seed, backend)
