"""``scan``, ``fori_loop``, ``cond``, ``switch`` and ``while_loop`` in compiled functions on NumPy: one program step
each.

The oracle is the tape, which unrolls them. Finite differences check the tape's rules, which both share.
"""

import gc
import warnings
from unittest.mock import Mock

import numpy as np
import pytest

import gradops
from gradops import functional, ops
from gradops.errors import ArgumentError, JitError, ShapeError
from gradops.functional import on_tape
from gradops.jit import accumulation, control, emission, kept, native
from gradops.jit.subprograms import Body

P = np.array([-1.0, 0.3, 2.0])
Y = np.random.default_rng(0).normal(size=30)

reversed_ = gradops.custom_gradient(lambda x: (x * 1.0, lambda upstream: upstream * -3.0))


@gradops.custom_gradient
def closing(x):
    """Return x^2 with a gradient function that reads a closed-over value and is no true derivative."""
    return x * x, lambda upstream: upstream * ops.sin(x) * 5.0


def kalman(p):
    q, r = ops.exp(p[0]), ops.exp(p[1])

    def step(state, y):
        a, P, total = state
        P = P + q
        S = P + r
        v = y - a
        K = P / S
        return (a + K * v, P * (1 - K), total + ops.log(S) + v * v / S), None

    return ops.scan(step, (0.0, 10.0, 0.0), Y)[0][2] / 2 + p[2]


def branches(p):
    return ops.cond(ops.sum(p) > 1.0, lambda: ops.log(p[2]) * p[0], lambda: ops.sqrt(p[1]) * p[0] ** 2 - p[2])


def switched(p):
    index = ops.cast(ops.floor(p[1] * 10.0), "int32")
    return ops.switch(index, [lambda x: x[0] * 2, lambda x: x[1] ** 3, lambda x: ops.exp(x[2])], p)


def branch_in_a_loop(p):
    """Branch in a loop; the branches close over a name that is rebound after the branch."""

    def step(c, y):
        c = ops.cond(y > c, lambda: c * p[0] + y, lambda: c - ops.exp(p[1]) * y)
        return c, c * c

    c, ys = ops.scan(step, 0.5, Y, reverse=True)
    return c + ops.sum(ys) * 0.1 + p[2]


def conditional_loop(p):
    x, n = ops.while_loop(
        lambda x, n: x < 100.0, lambda x, n: (x * (1 + p[2]) + p[1], n + 1), (ops.exp(p[0]), 0.0), maximum_iterations=30
    )
    return ops.log(x) * p[0] + n


def matrices(p):
    A = ops.reshape(ops.stack([p[0], p[1], p[1], p[2]]), (2, 2)) * 0.3

    def step(S, v):
        S = ops.matmul(ops.matmul(A, S), ops.transpose(A)) + ops.outer(v, v)
        return S, {"sum": ops.sum(S), "row": S[0]}

    S, ys = ops.scan(step, np.eye(2), Y.reshape(15, 2))
    return ops.sum(S) + ops.mean(ys["sum"]) + ops.sum(ys["row"] * p[0])


def nested(p):
    def outer(c, row):
        d, _ = ops.scan(lambda d, v: (d * ops.tanh(p[0]) + v * p[1], None), c, row)
        return d, d * p[2]

    return ops.sum(ops.scan(outer, 1.0, Y.reshape(6, 5))[1])


def swapped(p):
    c, _ = ops.scan(lambda c, v: ((c[1], c[0] + v, c[2]), None), (p[0], p[1], p[2]), Y)
    return c[0] * c[1] * c[2]


def differentiated_rows(p):
    c, ys = ops.scan(
        lambda c, v: (c * 0.9 + ops.sum(v * v), (v, c)), ops.sum(p), ops.transpose(ops.outer(p, Y)), reverse=True
    )
    return c + ops.sum(ys[0] * 2) + ops.max(ys[1])


def rules(p):
    def step(c, v):
        return ops.tanh(
            reversed_(c * p[0]) + gradops.scaled_gradient(p[1], 5.0) * v + gradops.stop_gradient(p[2])
        ) + closing(c * p[1]), None

    return ops.scan(step, 0.1, Y)[0]


def counted(p):
    """Carry an integer state."""
    c, n = ops.scan(lambda s, y: ((s[0] * ops.cos(p[0]) + y * p[1], s[1] + 1), None), (p[2], 0), Y)[0]
    return c * ops.cast(n, "float64")


def without_rows(p):
    return ops.sum(ops.scan(lambda c, _: (c * p[0] + p[1], c), p[2], None, 7)[1])


def scoped(p):
    def step(c, y):
        with gradops.stop_gradient_scope():
            k = c * p[0]
        return k + y * p[1] * c, None

    return ops.scan(step, p[2], Y)[0]


def no_slope(p):
    def step(c, y):
        with gradops.autodiff.no_grad():
            k = c * p[0]
        return ops.sin(k + y * p[1]), None

    return ops.scan(step, p[2], Y)[0]


def by_position(p):
    """Read and write at loop indices, from both ends, with a custom gradient rule."""
    w = p * Y[:3]

    def body(i, state):
        x, total = state
        x = ops.scatter_update(x, ops.reshape(i, (1, 1)), ops.reshape(ops.tanh(x[i - 1] * p[0] + Y[i]), (1,)))
        return x, total + reversed_(x[-i] * w[i % 3]) * ops.cast(i, "float64") - gradops.stop_gradient(x[i] * p[2])

    x, total = ops.fori_loop(1, 20, body, (ops.outer(p, Y[:20])[1], p[1]))
    return total + ops.sum(x * x)


def rows_by_position(p):
    m = ops.outer(p, Y[:4])

    def body(i, m):
        row = ops.sin(m[i // 4] + m[:, i % 4][0]) * m[i % 3, i % 4]
        return ops.slice_update(m, (0, 0), ops.stack([row])) + ops.take(m, ops.stack([i % 3, 0, i // 4]), 0) * 0.1

    return ops.sum(ops.fori_loop(0, 9, body, m))


def counted_in_both(p):
    """Nest two loops with counters, and branch on a counter."""

    def outer(i, total):
        def inner(j, c):
            return ops.cond(ops.equal((i + j) % 2, 0), lambda: c * p[0] + ops.cast(j, "float64"), lambda: c - p[1])

        return total + ops.fori_loop(0, 5, inner, p[2] * ops.cast(i, "float64"))

    return ops.fori_loop(2, 8, outer, 0.0)


def picked(p):
    """Switch by the counter of a loop."""

    def body(i, c):
        return ops.switch(i % 3, [lambda: c * p[0], lambda: ops.sin(c) + p[1], lambda: closing(c * p[2])])

    return ops.fori_loop(0, 8, body, p[1])


CASES = [
    kalman, by_position, rows_by_position, counted_in_both, picked, branches, switched, branch_in_a_loop,
    conditional_loop, matrices, nested, swapped, differentiated_rows, rules, counted, without_rows, scoped, no_slope,
]  # fmt: skip
NESTS = (branch_in_a_loop, rules, nested, by_position)
cases = pytest.mark.parametrize("f", CASES, ids=[f.__name__ for f in CASES])
PROGRAMS = {
    "value": lambda f: f,
    "gradient": lambda f: functional.value_and_grad(f),
    "hessian": lambda f: lambda x: functional.hessian(f, x),
    "hvp": lambda f: lambda x: functional.hvp(f, x, P * 0.7)[1],
    "jvp": lambda f: lambda x: functional.jvp(f, x, P * 0.7)[1],
    "third": lambda f: gradops.grad(lambda x: ops.sum(gradops.grad(lambda z: ops.sum(gradops.grad(f)(z) ** 2))(x))),
}


def check(f, tolerance=1e-9):
    compiled = gradops.jit(f)
    for x in (P, P * 0.7 + 0.1, P):  # the second takes other branches and more iterations
        wanted, got = f(x), compiled(x)
        for a, b in zip(*[v if isinstance(v, tuple) else (v,) for v in (wanted, got)], strict=True):
            assert np.shape(a) == np.shape(b) and np.asarray(a).dtype == np.asarray(b).dtype
            np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance)
    return compiled


@pytest.mark.short_cases(24)
@cases
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "third"])
def test_loops_have_the_derivatives_of_the_tape(f, name):
    check(PROGRAMS[name](f))


@cases
def test_without_native_code(f, monkeypatch):
    monkeypatch.setattr(native.machine, "machine", lambda: None)
    check(PROGRAMS["gradient"](f))


@pytest.mark.parametrize("f", [pytest.param(f, marks=[] if f in NESTS else pytest.mark.long) for f in CASES])
def test_third_derivatives(f):
    check(PROGRAMS["third"](f), 1e-7)


COSTLY = {
    "exp": lambda s, x, m: ops.exp(s * x[0]) - s,
    "tanh": lambda s, x, m: ops.tanh(ops.matmul(m, s) + x),
    "logsumexp": lambda s, x, m: ops.logsumexp(ops.reshape(s, (20, 1)) * 0.1 + m, 0) - x[0],
    "slogdet": lambda s, x, m: s * 0.5 + 0.01 * ops.slogdet(ops.eye(3) + s[:3] * s[:3])[1],
}
"""Number of loop steps, by the function whose result (or softmax) a derivative reads."""


@pytest.mark.parametrize("is_native", [True, False])
@pytest.mark.parametrize("name", COSTLY)
def test_expensive_results_are_saved_instead_of_recomputed(name, is_native, monkeypatch):
    if not is_native:
        monkeypatch.setattr(native.machine, "machine", lambda: None)
    found, rng = [], np.random.default_rng(1)

    def save_for_later_loops(*given):
        steps = kept.save_for_later_loops(*given)
        if any(step.name == "scan" for step in steps):
            found.append([[s.name for s in step.arguments[0].body.steps] for step in steps if step.name == "scan"])
        return steps

    monkeypatch.setattr(emission, "save_for_later_loops", save_for_later_loops)

    def f(x, rows, m):
        state, _ = ops.scan(lambda s, row: (COSTLY[name](s, row, m), None), x, rows)
        return ops.sum(state * x)

    given = 0.1 * rng.normal(size=20), 0.3 * rng.normal(size=(6, 20)), 0.1 * rng.normal(size=(20, 20))
    compiled, eager = (wrap(functional.value_and_grad(f, argnums=(0, 2))) for wrap in (gradops.jit, lambda g: g))
    for a, b in zip(_flat(compiled(*given)), _flat(eager(*given)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    first, later = found[-1]
    assert name in first
    # The slope of tanh uses an exponential of its operand, and the derivative of a product is a product.
    assert not {name, "softmax", *(["matmul"] if name != "tanh" else [])}.intersection(later)
    assert not {"add", "subtract", "multiply"}.isdisjoint(later)

    monkeypatch.setattr(kept, "LARGEST", 5)  # too small to save anything
    again = gradops.jit(functional.value_and_grad(f, argnums=(0, 2)))
    for a, b in zip(_flat(again(*given)), _flat(eager(*given)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    assert len(found[-1][1]) > len(later)


def _flat(found) -> list:
    value, gradients = found
    return [value, *gradients]


@pytest.mark.parametrize("f", [kalman, branch_in_a_loop, conditional_loop, matrices, nested, differentiated_rows])
def test_loops_against_finite_differences(f):
    compiled = gradops.jit(functional.value_and_grad(f))
    step = 1e-6
    numeric = [(compiled(P + step * e)[0] - compiled(P - step * e)[0]) / (2 * step) for e in np.eye(3)]
    np.testing.assert_allclose(compiled(P)[1], numeric, rtol=1e-5, atol=1e-6)


def test_program_size_is_independent_of_the_loop_length():
    def of(n):
        rows = np.linspace(0, 1, n)
        compiled = gradops.jit(gradops.grad(lambda p: ops.scan(lambda c, v: (ops.sin(c * p) + v, None), 0.5, rows)[0]))
        compiled(np.float64(0.3))
        return next(iter(compiled.programs.values())).steps

    assert of(5) == of(500) < 20


def test_program_size_is_independent_of_the_bounds():
    def of(n):
        compiled = gradops.jit(gradops.grad(lambda p: ops.fori_loop(0, n, lambda i, c: ops.sin(c * p) + i, 0.5)))
        compiled(np.float64(0.3))
        return next(iter(compiled.programs.values())).steps

    assert of(5) == of(500) < 20


def test_loop_bounds_may_be_arguments(monkeypatch):
    def f(n, x):
        return ops.fori_loop(n - 3, n, lambda i, c: ops.tanh(c * x) + ops.cast(i, "float64"), 1.0)

    compiled = gradops.jit(f)
    for n in (5, 9, 3):
        for dtype in ("int64", "int32"):
            n_ = np.asarray(n, dtype)
            np.testing.assert_allclose(compiled(n_, np.float64(0.3)), f(n_, np.float64(0.3)))
    upto = gradops.jit(lambda n: ops.fori_loop(0, n, lambda i, c: c + i, 0))
    monkeypatch.setattr(control, "STRETCH", 1_000)
    for n in (0, -4, 1, 2_501):  # more iterations than run natively at once
        assert upto(np.int64(n)) == max(n, 0) * (max(n, 0) - 1) // 2
    with pytest.raises(JitError, match="bounds do not depend on arguments"):
        gradops.jit(gradops.grad(f, argnums=1))(np.int64(5), np.float64(0.3))


def test_loop_that_cannot_be_compiled_is_unrolled():
    """Its body branches on the counter; errors raised by the body propagate."""

    def f(p):
        return ops.fori_loop(0, 6, lambda i, c: c * p if i % 2 else c + [1.0, 2.0][int(i) // 3], p)

    compiled = gradops.jit(gradops.grad(f))
    np.testing.assert_allclose(compiled(np.float64(1.5)), gradops.grad(f)(np.float64(1.5)))
    with pytest.raises(ShapeError, match="must keep its shapes"):
        gradops.jit(lambda p: ops.fori_loop(0, 6, lambda i, c: c * np.ones(3), p))(np.float64(1.0))


def test_maps_are_one_step_each():
    def f(p):
        return ops.sum(ops.map(lambda row: ops.sin(row * p) * row, Y)) + ops.sum(
            ops.vectorized_map(lambda row: ops.exp(row * p[0]), Y)
        )

    compiled = gradops.jit(f)
    np.testing.assert_allclose(compiled(P[:1]), f(P[:1]))
    assert next(iter(compiled.programs.values())).steps < 12


def test_explain_counts_a_loop_as_a_native_step():
    pytest.importorskip("llvmlite")
    compiled = gradops.jit(gradops.grad(kalman))
    compiled(P)
    assert "scan" not in compiled.explain() and "native in 1 run" in compiled.explain()
    for f in (counted, by_position, rows_by_position, counted_in_both, picked):
        compiled = gradops.jit(gradops.grad(f))
        compiled(P)
        assert "scan" not in compiled.explain() and "get_item" not in compiled.explain(), compiled.explain()
    compiled = gradops.jit(lambda z: ops.scan(lambda c, y: (c * z + y, None), z, Y)[0])
    compiled(np.complex128(1j))
    assert "scan: dtype complex128" in compiled.explain()


def test_float32_is_preserved():
    f = gradops.grad(lambda p: ops.scan(lambda c, v: (ops.tanh(c * p + v), None), np.float32(0.5), Y.astype("f4"))[0])
    got = gradops.jit(f)(np.float32(0.3))
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, f(np.float32(0.3)), rtol=1e-5)


def test_complex_states():
    def f(p):
        start = ops.cast(p[1], "complex128") + p[2] * 1j
        return ops.abs(ops.scan(lambda z, v: (z * ops.exp((0.1 + 1j) * p[0]) + v, None), start, Y)[0])

    check(functional.value_and_grad(f))


def test_warnings_and_floating_point_errors_match_numpy():
    compiled = gradops.jit(lambda p: ops.scan(lambda c, v: (c + ops.log(v - p), None), 0.0, np.arange(1.0, 9.0))[0])
    compiled(np.float64(0.5))
    with pytest.warns(RuntimeWarning, match="invalid value encountered in log"):
        assert np.isnan(compiled(np.float64(3.5)))
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        compiled(np.float64(3.5))
    guarded = gradops.jit(lambda p: ops.cond(p > 0, lambda: ops.log(p), lambda: p))
    with np.errstate(all="raise"):  # the untaken branch is not computed
        assert guarded(np.float64(-1.0)) == -1.0
        assert gradops.jit(gradops.grad(guarded.f))(np.float64(-2.0)) == 1.0


def test_fused_operations_warn_as_separate_ones():
    def f(p):
        def step(state, v):
            a, b, c = state
            return (a * v + b, b / v - a * p, c - v * a), a * a + c

        return ops.scan(step, (p, p * 2, p - 1), np.array([1.0, 2.0, 0.5, -0.0, 1e200, 3.0, 1e200]))

    for p in (0.0, 1e150):
        (state, ys), said = _with_warnings(gradops.jit(f), p)
        (wanted_state, wanted), wanted_said = _with_warnings(f, p)
        np.testing.assert_array_equal(np.hstack([*state, ys]), np.hstack([*wanted_state, wanted]))
        assert said == wanted_said and said


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_negations_fused_into_differences_are_bitwise_equal(dtype):
    def f(p, rows):
        def step(state, v):
            a, b = state
            left = (-a) * v
            right = v / (-b)
            both = -(left / p)
            return (left + right, b - both), (-v + a, (-b) - v, both + both, -(a - v), right - left)

        (a, b), ys = ops.scan(step, (p, p + p), rows)
        return ops.concatenate([ops.stack([a, b]), *ys])

    rows = np.array([1.0, -0.0, 0.3, 0.0, 1e30, -7.0, np.inf, 2.0, np.nan], dtype)
    for p in (dtype(0.7), dtype(-0.0)):
        with np.errstate(all="ignore"):
            got, wanted = gradops.jit(f)(p, rows), f(p, rows)
        np.testing.assert_array_equal(got, wanted)
        known = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(wanted[known]))


def _unused_root_of_a_loop(p):
    (c, _), roots = ops.scan(lambda s, v: ((s[0] * p + v, s[1]), ops.sqrt(s[1]) * p), (p, p - p), np.ones(6))
    return c


def _unused_root_of_a_branch(p):
    return ops.cond(p > 0.0, lambda: (p * p * p, ops.sqrt(p - p) * p), lambda: (p, p))[0]


@pytest.mark.parametrize("f", [_unused_root_of_a_loop, _unused_root_of_a_branch])
def test_results_without_a_gradient_do_not_propagate(f):
    """An infinite slope upstream of such a result has no effect, as on the tape."""

    with np.errstate(all="ignore"):
        slope = gradops.jit(gradops.grad(f))(np.float64(0.5))
        second = gradops.jit(gradops.grad(gradops.grad(f)))(np.float64(0.5))
    assert np.isfinite(slope) and np.isfinite(second)
    np.testing.assert_allclose(slope, gradops.grad(f)(np.float64(0.5)), rtol=1e-12)
    np.testing.assert_allclose(second, gradops.grad(gradops.grad(f))(np.float64(0.5)), rtol=1e-12)


def _with_warnings(f, p):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = f(np.float64(p))
    return result, {str(w.message).split(" encountered")[0] for w in caught}


def test_results_belong_to_the_caller():
    rows = np.arange(6.0)
    compiled = gradops.jit(lambda p: ops.scan(lambda c, v: (c + v * p, c), 0.0, rows))
    first = compiled(np.float64(1.0))
    copies = [np.array(x) for x in first]
    compiled(np.float64(2.0))
    for x, copy in zip(first, copies):
        np.testing.assert_array_equal(x, copy)


def test_body_with_side_effects_is_an_error():
    count = []

    def step(c, y):
        count.append(1)
        return c + y * len(count), None

    with pytest.raises(JitError, match="changed what it reads.*`count"):
        gradops.jit(lambda p: ops.scan(step, p, Y)[0])(np.float64(1.0))

    def seen_inside(loop):
        """Modify local state of the function, which is allowed."""

        def f(p):
            seen = []
            return loop(p, lambda c: seen.append(c) or c + p * len(seen)) + len(seen)

        return f

    loops = [
        lambda p, step: ops.scan(lambda c, y: (step(c), None), p, Y)[0],
        lambda p, step: ops.fori_loop(0, 5, lambda i, c: step(c), p),
        lambda p, step: ops.fori_loop(0, 5, lambda i, c: step(c) * [1.0, 2.0][int(i) % 2], p),
        lambda p, step: ops.while_loop(lambda c: c < 100, step, p),
        lambda p, step: ops.cond(p > 0, lambda: step(p), lambda: p),
    ]
    for loop in loops:
        with pytest.raises(JitError, match="changed what it reads.*`seen"):
            gradops.jit(seen_inside(loop))(np.float64(1.0))
    calls = Mock(return_value=None)
    compiled = gradops.jit(gradops.grad(lambda p: ops.scan(lambda c, v: (calls() or c * v, None), p, Y)[0]))
    compiled(np.float64(1.0))
    assert calls.call_count <= 3


def test_loop_over_constants_runs_in_python():
    def f(p):
        total, _ = ops.scan(lambda c, v: (c + v, None), 0.0, np.abs(Y))
        return p * 2 if float(total) > 1 else p

    assert gradops.jit(f)(np.float64(3.0)) == 6.0


def test_unrolled_on_request():
    calls = Mock(return_value=None)
    compiled = gradops.jit(lambda p: ops.scan(lambda c, v: (calls() or c * v, None), p, Y, unroll=True)[0])
    compiled(np.float64(1.0))
    assert calls.call_count == len(Y)


def test_arrays_that_escape_the_body_are_refused():
    seen = Mock()

    def step(c, y):
        seen(c * 2)
        return c + y, None

    def f(p):
        total = ops.scan(step, p, Y)[0]
        return total + seen.call_args[0][0]

    with pytest.raises(JitError, match="made in a function called by"):
        gradops.jit(f)(np.float64(1.0))

    def writes(p):
        room = p * 0.0 + np.zeros(3)

        def step(c, y):
            room[0] = c
            return c + y, None

        return ops.scan(step, p, Y)[0]

    with pytest.raises(JitError, match="wrote in place to an array from outside"):
        gradops.jit(writes)(np.float64(1.0))


def test_write_after_the_loop_does_not_change_its_derivative():
    def f(p):
        w = p * np.array([1.0, 2.0])
        y = ops.scan(lambda c, v: (c * w[0] + v * w[1], None), 0.5, Y)[0]
        w[0] = w[0] * 100.0
        return y + ops.sum(w)

    wanted = gradops.grad(lambda p: f_without_writing(p))(np.float64(0.3))
    np.testing.assert_allclose(gradops.jit(gradops.grad(f))(np.float64(0.3)), wanted)


def f_without_writing(p):
    w = p * np.array([1.0, 2.0])
    y = ops.scan(lambda c, v: (c * w[0] + v * w[1], None), 0.5, Y)[0]
    return y + w[0] * 100.0 + w[1]


def test_branches_with_different_shapes_are_an_error():
    with pytest.raises(ArgumentError, match="same shapes and dtypes"):
        gradops.jit(lambda x: ops.cond(ops.sum(x) > 0, lambda: x, lambda: x[0]))(P)


def test_derivative_of_a_while_loop_needs_a_bound():
    def f(p):
        return ops.while_loop(lambda x: x < 10.0, lambda x: (x * p,), (p,))[0]

    assert gradops.jit(f)(np.float64(2.0)) == 16.0 and gradops.jit(f)(np.float64(3.0)) == 27.0
    with pytest.raises(JitError, match="maximum_iterations"):
        gradops.jit(gradops.grad(f))(np.float64(2.0))


def test_while_loop_with_an_initially_constant_condition():
    def f(p):
        return ops.while_loop(lambda x, n: ops.logical_or(n < 2, x < 50.0), lambda x, n: (x * p, n + 1), (1.0, 0))[0]

    for p in (2.0, 3.0, 60.0):
        assert gradops.jit(f)(np.float64(p)) == f(np.float64(p))


def test_equations_solved_inside_a_compiled_function():
    def f(p):
        return functional.fixed_point(lambda x, a: ops.cos(x * a / 2), 0.5, p) + functional.root(
            lambda x, a: x**3 - a, 1.0, p
        )

    for derivative in (f, gradops.grad(f), gradops.grad(gradops.grad(f))):
        compiled = gradops.jit(derivative)
        for x in (0.8, 1.3):
            np.testing.assert_allclose(compiled(np.float64(x)), derivative(np.float64(x)), rtol=1e-8)


def test_long_loop_is_compiled_at_once():
    rows = np.sin(np.arange(200_000.0))
    rows.flags.writeable = False
    compiled = gradops.jit(functional.value_and_grad(lambda p: ops.scan(lambda c, v: (c * p + v, None), 0.0, rows)[0]))
    value, slope = compiled(np.float64(0.9))
    powers = 0.9 ** np.arange(2000)
    last = rows[::-1][:2000]
    np.testing.assert_allclose(value, np.sum(powers * last), rtol=1e-10)
    np.testing.assert_allclose(slope, np.sum(np.arange(2000) * powers / 0.9 * last), rtol=1e-8)


def test_sparsity_detection_sees_each_step():
    rows = np.linspace(0.1, 0.9, 12)

    def f(x):
        return ops.sum(ops.scan(lambda c, row: (row[0], (row[0] - c) ** 2 * row[1]), x[0], ops.stack([x, rows], 1))[1])

    found = functional.hessian(f, rows, sparse=True)
    assert found.nnz <= 3 * 12
    np.testing.assert_allclose(found.toarray(), functional.hessian(f, rows), atol=1e-12)


@pytest.mark.long
def test_jacobian_of_a_long_function_is_one_loop(monkeypatch):
    loops = Mock(wraps=ops.map)
    monkeypatch.setattr(on_tape.mapping, "map", loops)

    def chain(x):
        for k in range(120):
            x = ops.stack([x[1] * ops.cos(x[0]), x[2] + 0.1 * ops.sin(x[1] * k), x[0] - 0.01 * x[2]])
        return x

    def energy(x):
        return ops.sum(chain(x) ** 2)

    x = np.array([0.3, -0.4, 0.8])
    for made in (functional.hessian, lambda f, x: functional.jacobian(chain, x, strategy="forward-mode")):
        compiled = gradops.jit(lambda x, made=made: made(energy, x))
        np.testing.assert_allclose(compiled(x), made(energy, x), rtol=1e-9, atol=1e-12)
        assert loops.call_count == 1
        loops.reset_mock()
        weighted = gradops.grad(lambda x, made=made: ops.sum(made(energy, x) ** 2))
        np.testing.assert_allclose(gradops.jit(weighted)(x), weighted(x), rtol=1e-8)


def test_trace_is_released():
    def bodies():
        gc.collect()
        return [x for x in gc.get_objects() if isinstance(x, Body)]

    gc.collect()
    gc.freeze()  # existing objects are not searched
    rows = Y.astype("complex128")  # makes the loop NumPy's, which calls the bodies
    compiled = gradops.jit(gradops.grad(lambda p: ops.abs(ops.scan(lambda c, y: (c * p[0] + y, None), 1j, rows)[0])))
    compiled(P)
    assert bodies()
    for body in bodies():
        assert not body._results and not body.program.values and not body.edges
    del compiled, body
    assert not bodies()


@pytest.mark.parametrize("branching", [False, True])
def test_function_too_long_for_torch_runs_uncompiled(monkeypatch, branching):
    torch = pytest.importorskip("torch")
    from gradops.backends.torch import derivatives

    def loss(p):
        total = ops.scan(lambda h, x: (ops.tanh(p[0] * h + p[1] * x),) * 2, p[2] * 0.0, torch.arange(8.0) / 8)[1]
        return ops.sum(total) if not branching or p[2] > 0 else -ops.sum(total)

    p = torch.tensor([0.5, 0.3, 0.1])
    want = gradops.hessian(loss)(p)
    long, short = gradops.jit(gradops.hessian(loss)), gradops.jit(gradops.hessian(loss))
    monkeypatch.setattr(derivatives, "MAX_OPERATIONS", 300)
    with pytest.warns(RuntimeWarning, match="runs uncompiled: it has more than 300 operations") as seen:
        results = [long(p), long(p)]
    assert len(seen) == 1 and "not compiled: more than 300 operations" in long.explain()
    monkeypatch.undo()
    results += [short(p), short(p), long(p)]
    assert "not compiled" not in short.explain()
    for result in results:
        torch.testing.assert_close(result, want)


def _accumulating(kind):
    """Return a function of a matrix, whose gradient (or value) is a sum of products over a loop's iterations."""
    size, rng = 80, np.random.default_rng(3)
    rows = rng.normal(size=(6, size))

    def f(matrix, start):
        def step(state, x):
            vector, total = state
            new = ops.tanh(ops.matmul(matrix, vector) + x)
            if kind == "twice":
                new = new + ops.matmul(matrix, ops.sin(x))
            elif kind == "turned":
                new = new + ops.matmul(ops.transpose(matrix), x)
            elif kind == "columns":
                new = new + ops.sum(ops.matmul(matrix, ops.stack([x, vector], -1)), -1)
            elif kind == "value":  # the function itself adds outer products
                total = total + ops.matmul(ops.expand_dims(new, 1), ops.expand_dims(x, 0))
            elif kind == "read":  # an iteration reads the sum, so it stays in the loop
                total = total + ops.matmul(ops.expand_dims(new, 1), ops.expand_dims(x, 0))
                new = new + ops.matmul(total, x) / size
            return (new, total), ()

        zeros = np.ones((size, size)) * start[0]
        (vector, total), _ = ops.scan(step, (start, zeros), rows)
        return ops.sum(vector**2) + ops.sum(ops.sin(total)) * (kind in ("value", "read"))

    return f, (rng.normal(size=(size, size)) / size, rng.normal(size=size))


@pytest.mark.parametrize("kind", ["once", "twice", "turned", "columns", "value", "read"])
def test_sums_of_products_are_computed_after_the_loop(kind, monkeypatch):
    calls = []
    adding = accumulation.sum_of_products
    monkeypatch.setattr(accumulation, "sum_of_products", lambda *arguments: calls.append(1) or adding(*arguments))
    f, (matrix, start) = _accumulating(kind)
    compiled = gradops.jit(gradops.value_and_grad(f, (0, 1)))
    for scale in (1.0, 0.7):
        value, gradients = compiled(matrix * scale, start)
        want, wanted = gradops.value_and_grad(f, (0, 1))(matrix * scale, start)
        assert np.isclose(value, want, rtol=1e-12)
        for found, other in zip(gradients, wanted):
            np.testing.assert_allclose(found, other, rtol=1e-9, atol=1e-12)
    assert calls

    def along(scale):
        return f(matrix * scale[0] + scale[1], start * scale[0])

    at = np.array([1.1, 0.01])
    for transform in (gradops.hessian, lambda f: gradops.jacobian(gradops.grad(f))):
        np.testing.assert_allclose(gradops.jit(transform(along))(at), transform(along)(at), rtol=1e-8)
