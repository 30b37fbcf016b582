"""Values and both derivatives of elementwise ops at numerically hard points, each library's own against the tape's.

Higher orders are not compared where a lower one is not finite. NumPy and SciPy compute the values on NumPy, so an error
shared by all libraries would come from there; finite differences guard the derivatives.
"""

import contextlib
import math

import flows
import numpy as np
import pytest
from parity import BACKENDS, is_own, native_gradient, numpy, tape_gradient, tape_second, tensors

import gradops
from gradops import Variable, autodiff, ops
from gradops.extend.laws import REALS
from gradops.ops._dispatch import registry

mp = pytest.importorskip("mpmath")
POINTS = np.concatenate([REALS, [np.inf, -np.inf, np.nan]])
SOME = [0.0, 1.0, -1.0, 0.5, 2.5, -3.0, 1e-30, -1e-30, 1e-8, 50.0, -50.0, -740.0, 800.0, 1e9, 1e155, -1e155]
PAIRS = [x.ravel() for x in np.meshgrid([*SOME, np.inf, -np.inf, np.nan], [*SOME, np.inf, -np.inf, np.nan])]


def of_tensors(count: int) -> dict:
    """Return elementwise ops with ``count`` tensors, no other required argument, and floating results."""
    found = {}
    for name, entry in list(registry.items()):  # a call may register ops of `gradops.scipy`
        needed = [p.name for p in entry.signature.parameters.values() if p.default is p.empty]
        if (
            is_own(entry)
            and entry.name == name
            and entry.facts.elementwise
            and needed == list(entry.tensors)
            and len(needed) == count
        ):
            with contextlib.suppress(gradops.errors.GradopsError, TypeError, ValueError):
                if np.asarray(entry.call(*[np.array([0.5])] * count)).dtype == float:
                    found[name] = entry.call
    return found


UNARY = of_tensors(1) | {
    "clip": lambda x: ops.clip(x, -1, 1),
    "gelu, exact": lambda x: ops.gelu(x, approximate=False),
    "polygamma 1": lambda x: ops.special.polygamma(x, 1),
    "polygamma 2": lambda x: ops.special.polygamma(x, 2),
    "power 0": lambda x: ops.power(x, 0.0),
    "power 1": lambda x: ops.power(x, 1),
    "power 2": lambda x: ops.power(x, 2),
    "power 3.0": lambda x: ops.power(x, 3.0),
}
BINARY = of_tensors(2)
# Functions with fewer digits in a library (error functions and log-gamma in TensorFlow and JAX), and small differences
# of large numbers.
LOOSE = {
    "lgamma": 1e-14,
    "softplus": 2e-15,
    "log_sigmoid": 2e-15,
    "gelu": 1e-13,
    "i0": 1e-13,
    "i1": 1e-13,
    "polygamma 0": 1e-14,
    "silu": 1e-13,
}


def derivatives(f, xs, backend):
    """Return the value, the derivatives, and the derivatives of their sum, for each argument; by the tape on NumPy."""
    zeros = [np.zeros(np.broadcast_shapes(*map(np.shape, xs)))] * len(xs)
    if backend == "numpy":
        leaves = [Variable(x, requires_grad=True) for x in xs]
        y = f(*leaves)
        if not y.requires_grad:
            return [numpy(y), *zeros, *zeros]
        first = autodiff.grad(ops.sum(y), leaves, create_graph=True, materialize_grads=True)
        linked = [g for g in first if g.requires_grad]
        second = autodiff.grad(ops.sum(sum(linked)), leaves, materialize_grads=True) if linked else zeros
    elif backend == "torch":
        import torch

        leaves = [tensors(x, backend).requires_grad_() for x in xs]
        y = f(*leaves)
        if not y.requires_grad:
            return [numpy(y), *zeros, *zeros]
        options = {"allow_unused": True, "materialize_grads": True}
        first = torch.autograd.grad(y.sum(), leaves, create_graph=True, **options)
        linked = [g for g in first if g.requires_grad]
        second = torch.autograd.grad(sum(linked).sum(), leaves, **options) if linked else zeros
    elif backend == "jax":
        import jax

        every = tuple(range(len(xs)))
        slopes = jax.grad(lambda *x: ops.sum(f(*x)), every)
        curvatures = jax.grad(lambda *x: ops.sum(sum(slopes(*x))), every)
        y, first, second = jax.jit(lambda *x: (f(*x), slopes(*x), curvatures(*x)))(*[tensors(x, backend) for x in xs])
    else:
        import tensorflow as tf

        leaves = [tensors(x, backend) for x in xs]
        with tf.GradientTape() as outer:
            outer.watch(leaves)
            with tf.GradientTape() as inner:
                inner.watch(leaves)
                y = f(*leaves)
            first = inner.gradient(y, leaves, unconnected_gradients="zero")
        second = outer.gradient(first, leaves, unconnected_gradients="zero")
    return [numpy(y), *map(numpy, first), *map(numpy, second)]


def compare(got, want, xs, name, backend, unlike=None):
    """Compare where the value, then the first derivatives, are finite (second derivatives: at finite arguments)."""
    n, tolerance = len(xs), LOOSE.get(name, 1e-15)
    defined = np.isfinite(want[0]) & np.isfinite(got[0])
    twice = defined & np.all([np.isfinite(v) for v in (*want[1 : n + 1], *got[1 : n + 1], *xs)], 0)
    where = [np.full(defined.shape, True), *[defined] * n, *[twice] * n]
    for order, (g, w, here) in enumerate(zip(got, want, where)):
        here = here if unlike is None else here & ~unlike
        small = 1e-100 if order == 0 and name != "lgamma" else tolerance
        wrong = here & ~np.isclose(g, w, rtol=2e-5 if name == "gelu" else 2e-6, atol=small, equal_nan=True)
        assert not wrong.any(), (f"{name} on {backend}, {order}", *[v[wrong] for v in (*xs, w, g)])
        assert g.dtype == w.dtype == "float64"


@pytest.mark.parametrize("name", UNARY)
def test_one_argument(name):
    """At zero, tiny, huge, infinite and NaN arguments, value, slope and curvature on each backend equal the tape's."""
    with np.errstate(all="ignore"):
        want = derivatives(UNARY[name], [POINTS], "numpy")
        for backend in BACKENDS[1:]:
            got = derivatives(UNARY[name], [POINTS], backend)
            compare(got, want, [POINTS], name, backend, UNLIKE_FAR.get(name, lambda x: None)(POINTS))


UNLIKE_FAR = {
    **dict.fromkeys(("polygamma", "polygamma 1", "polygamma 2"), np.isneginf),  # infinitely many poles in between
    # the libraries' own functions, stated in docs/differences.md
    **dict.fromkeys(("silu", "gelu, exact", "softsign", "squareplus"), np.isinf),
    "gelu": lambda x: (x < -8) | (np.abs(x) > 1e30),
}


@pytest.mark.short_cases(3)
@pytest.mark.parametrize("name", BINARY)
def test_two_arguments(name):
    """Covers ties, gaps that overflow, and infinities paired with NaN."""
    a, b = PAIRS
    with np.errstate(all="ignore"):
        want = derivatives(BINARY[name], PAIRS, "numpy")
        for backend in BACKENDS[1:]:
            got = derivatives(BINARY[name], PAIRS, backend)
            compare(got, want, PAIRS, name, backend, UNLIKE.get(name, lambda a, b: None)(a, b))


UNLIKE = {  # the differing points, stated in docs/differences.md
    "power": lambda a, b: (a <= 0) | (b == 0) & ~np.isfinite(a) | (np.abs(b) > 1e9) | (a == b) & (a == 1e-30),
    "arctan2": lambda a, b: (a == 0) & (b == 0),
    "binary_crossentropy": lambda a, b: np.abs(a) > 1e9,  # differences of large numbers
    # quotients that underflow
    "mod": lambda a, b: (np.abs(a) > 1e9) | (np.abs(b) > 1e9),
    "fmod": lambda a, b: (np.abs(a) > 1e9) | (np.abs(b) > 1e9),
    "floor_divide": lambda a, b: (np.abs(a) > 1e9) | (np.abs(b) > 1e9) & np.isfinite(b),
    "hypot": lambda a, b: (np.abs(a) == np.abs(b)) & (np.abs(a) < 1e-3) & (a != 0),  # differences of 1e30
    "divide": lambda a, b: (np.abs(a) > 1e9) & (np.abs(b) > 1e9),
    "divide_no_nan": lambda a, b: (np.abs(a) > 1e9) & (np.abs(b) > 1e9),
}
SMOOTH = np.array([0.31, 0.47, 0.73, 0.88])


@pytest.mark.short_cases(8, "jax")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", UNARY)
def test_finite_differences_of_one_argument(name, backend):
    """At smooth points the derivatives match finite differences of the library's own values."""
    f, x = UNARY[name], SMOOTH + (0.9 if name == "arccosh" else 0)
    x = -x if name == "elu" else x

    def value(at):
        return numpy(f(tensors(at, backend)))

    h = 1e-4
    _, slope, curvature = derivatives(f, [x], backend)
    np.testing.assert_allclose(slope, (value(x + h) - value(x - h)) / (2 * h), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(curvature, (value(x + h) - 2 * value(x) + value(x - h)) / h**2, rtol=1e-4, atol=1e-5)


def _bell(scale: float, factor):
    """Slope and curvature of an integral of ``exp(scale * x**2)``."""

    def slope(x):
        return mp.mpf(0) if abs(x) > _FAR else factor * mp.exp(scale * x * x)

    return slope, lambda x: 2 * scale * x * slope(x)


_FAR = 10**6
"""Beyond this, mpmath takes long for exponentials that underflow every float."""


def _logistic(x):
    return mp.mpf(x > 0) if abs(x) > _FAR else 1 / (1 + mp.exp(-x))


def _sech2(x):
    return mp.mpf(0) if abs(x) > _FAR else 4 * mp.exp(-2 * abs(x)) / (1 + mp.exp(-2 * abs(x))) ** 2


def _bump(x):
    return _logistic(x) * _logistic(-x)


def _normal(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


def _density(x):
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def _gate_by_tanh(x):
    scale, factor = 2 * mp.sqrt(2 / mp.pi), mp.mpf("0.044715")
    inner, slope, bend = scale * x * (1 + factor * x * x), scale * (1 + 3 * factor * x * x), 6 * scale * factor * x
    bump = _bump(inner)
    return _logistic(inner), bump * slope, bump * ((1 - 2 * _logistic(inner)) * slope**2 + bend)


def _gated(gate):
    """Return slope and curvature of ``x`` times a gate with known value and derivatives."""

    def slope(x):
        return mp.mpf(x > 0) if abs(x) > _FAR else gate(x)[0] + x * gate(x)[1]

    return slope, lambda x: mp.mpf(0) if abs(x) > _FAR else 2 * gate(x)[1] + x * gate(x)[2]


def _tanh(x):
    return mp.sign(x) if abs(x) > _FAR else mp.tanh(x)


def _squareplus(x):
    root = mp.sqrt(x * x + 4)
    rest = 2 / ((root + abs(x)) * root)
    return rest if x < 0 else 1 - rest


EXACT = {  # slope and curvature, without cancellation
    "erf": _bell(-1, 2 / mp.sqrt(mp.pi)),
    "erfc": _bell(-1, -2 / mp.sqrt(mp.pi)),
    "normal_cdf": _bell(-mp.mpf(1) / 2, 1 / mp.sqrt(2 * mp.pi)),
    "arctan": (lambda x: 1 / (1 + x * x), lambda x: -2 * x / (1 + x * x) ** 2),
    "arcsinh": (lambda x: 1 / mp.sqrt(1 + x * x), lambda x: -x / mp.sqrt(1 + x * x) ** 3),
    "arccosh": (lambda x: 1 / mp.sqrt(x * x - 1), lambda x: -x / mp.sqrt(x * x - 1) ** 3),
    "cbrt": (lambda x: 1 / mp.cbrt(abs(x)) ** 2 / 3, lambda x: -2 * mp.sign(x) / mp.cbrt(abs(x)) ** 5 / 9),
    "exp2": (lambda x: mp.log(2) * 2**x, lambda x: mp.log(2) ** 2 * 2**x),
    "tanh": (_sech2, lambda x: -2 * (1 - 2 / (1 + mp.exp(2 * x))) * _sech2(x)),
    "sigmoid": (
        lambda x: _logistic(x) * _logistic(-x),
        lambda x: _logistic(x) * _logistic(-x) * (1 - 2 * _logistic(x)),
    ),
    "softplus": (_logistic, lambda x: _logistic(x) * _logistic(-x)),
    "log_sigmoid": (lambda x: _logistic(-x), lambda x: -_logistic(x) * _logistic(-x)),
    "silu": _gated(lambda x: (_logistic(x), _bump(x), _bump(x) * (1 - 2 * _logistic(x)))),
    "gelu": _gated(_gate_by_tanh),
    "gelu, exact": _gated(lambda x: (_normal(x), _density(x), -x * _density(x))),
    "softsign": (lambda x: 1 / (1 + abs(x)) ** 2, lambda x: -2 * mp.sign(x) / (1 + abs(x)) ** 3),
    "squareplus": (_squareplus, lambda x: 2 / mp.sqrt(x * x + 4) ** 3),
    "tanh_shrink": (lambda x: _tanh(x) ** 2, lambda x: 2 * _tanh(x) * _sech2(x)),
}
EVERYWHERE = ("erf", "erfc", "normal_cdf", "arctan", "arcsinh", "arccosh")
"""Functions whose library derivatives are accurate too; others lose the tails, as stated in docs/differences.md."""
PLACES = [0.3, 1.5, 3, 10, 20, 25, 40, 100, 300, 700, 1023, 1024, 6e4, 1e10, 1e22, 1e30, 1e155, 1e160, 1e300, np.inf]


@pytest.mark.short_cases(2, "jax")
@pytest.mark.short_cases(2, "tensorflow")
@pytest.mark.short_cases(2, "torch")
@pytest.mark.short_cases(18, "numpy")
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", EXACT)
def test_tails(name, backend, dtype):
    """Slopes and curvatures match mpmath's far from 0, and their limits at infinity."""
    if backend != "numpy" and name not in EVERYWHERE:
        pytest.skip("the library's own")
    limits, tolerance = np.finfo(dtype), {"float64": 1e-9, "float32": 2e-4, "float16": 2e-2}[dtype]
    with np.errstate(all="ignore"):
        x = np.unique(np.array([*PLACES, *(-x for x in PLACES)]).astype(dtype))
        x = x[x > 1] if name == "arccosh" else x
        found = derivatives(UNARY[name], [x], backend)[1:]
    for order, (f, got) in enumerate(zip(EXACT[name], found), 1):
        assert got.dtype == dtype
        for at, g in zip(x, got):
            want = mp.re(f(mp.mpf(float(at)) if np.isfinite(at) else int(np.sign(at)) * mp.mpf(10) ** 100000))
            want = float(want) if abs(want) < limits.max else np.inf if want > 0 else -np.inf
            message = f"{name} on {backend}, derivative {order} at {at}"
            np.testing.assert_allclose(float(g), want, tolerance, 4 * float(limits.tiny), err_msg=message)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_slopes_of_angles_for_tiny_and_huge_arguments(dtype):
    """Squares of the arguments underflow or overflow."""
    small, large = {"float64": (1e-170, 1e170), "float32": (1e-25, 1e25), "float16": (1e-3, 1e4)}[dtype]
    for size in (small, large):
        y, x = Variable(np.array([3 * size], dtype), True), Variable(np.array([4 * size], dtype), True)
        by_y, by_x = autodiff.grad(ops.sum(ops.arctan2(y, x)), [y, x])
        want = np.array([4, -3]) / 25 / float(x.data[0] / 4)
        np.testing.assert_allclose([by_y.data[0], by_x.data[0]], want, {"float16": 1e-2}.get(dtype, 1e-5))


def test_log_softmax_of_one_large_element():
    """``1 - softmax`` has no correct digits there."""
    x, tail = np.array([40.0, 0.0]), np.exp(-40.0) / (1 + np.exp(-40.0))
    found = gradops.functional.jacobian(ops.log_softmax, x)
    np.testing.assert_allclose(found, [[tail, -tail], [tail - 1, 1 - tail]], 1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_logsumexp_with_infinity(backend):
    """The difference is stated in docs/differences.md."""
    x = np.array([np.inf, 0.0, -np.inf])
    found = tape_gradient(ops.logsumexp, [x]) if backend == "numpy" else native_gradient(ops.logsumexp, [x], backend)
    np.testing.assert_array_equal(found[0], [np.nan] * 3 if backend == "numpy" else [np.nan, 0, 0])


LOST = {
    # the argument, and the derivative order at which PyTorch has no digits left
    "exp2": (1024.0, 1),
    "tanh": (40.0, 1),
    "sigmoid": (40.0, 1),
    "softplus": (40.0, 2),
    "log_sigmoid": (40.0, 2),
    "expm1": (-40.0, 1),
    "elu": (-40.0, 1),
    "selu": (-40.0, 1),
    "celu": (-40.0, 1),
    "silu": (40.0, 2),
    "gelu": (-20.0, 1),
    "softsign": (1e22, 1),
    "squareplus": (1e22, 2),
}


@pytest.mark.parametrize("name", LOST)
def test_torch_derivatives_lose_tails(name):
    """If this fails, PyTorch's derivatives are fixed: remove the row in docs/differences.md."""
    pytest.importorskip("torch")
    at, order = LOST[name]
    right, torchs = (derivatives(UNARY[name], [np.array([at])], b)[order][0] for b in ("numpy", "torch"))
    assert 0 < abs(right) < np.inf and torchs in (0, np.inf)


@pytest.mark.parametrize("name", ["silu", "softsign", "squareplus"])
def test_torch_slopes_at_infinity_are_nan(name):
    """If this fails, PyTorch's slopes are limits: remove the row in docs/differences.md."""
    pytest.importorskip("torch")
    right, torchs = (derivatives(UNARY[name], [np.array([np.inf])], b)[1][0] for b in ("numpy", "torch"))
    assert right == (0 if name == "softsign" else 1) and np.isnan(torchs)


def test_curvature_of_lgamma_on_tensorflow():
    """If this fails, TensorFlow's series no longer overflows: remove the row in docs/differences.md."""
    pytest.importorskip("tensorflow")
    right, tensorflows = (
        derivatives(ops.special.lgamma, [np.array([1e155])], b)[2][0] for b in ("numpy", "tensorflow")
    )
    np.testing.assert_allclose(right, 1e-155, rtol=1e-12)
    assert tensorflows == 0


@pytest.mark.short_cases(4, "jax")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "f, at, want",  # value, slope, curvature
    [
        (ops.softplus, -740.0, [4.199557e-322, 4.199557e-322, 4.199557e-322]),
        (lambda x: ops.logaddexp(x, 1000.0), 0.0, [1000, 0, 0]),
        (lambda x: ops.logaddexp(x, 0.0), 1e9, [1e9, 1, 0]),
        (lambda x: ops.logaddexp(x, -np.inf), -np.inf, [-np.inf, 0.5, None]),
        (lambda x: ops.gelu(x, approximate=False), -10.0, [-7.61985302416e-23, -7.618404e-22, -7.540660e-21]),
        (ops.squareplus, 1e155, [1e155, 1, 0]),
        (ops.squareplus, -1e155, [1e-155, 0, 0]),
        (ops.erfinv, 1e-30, [8.86226925452758e-31, 0.886226925452758, 1.39208e-30]),
        (ops.i0, 0.0, [1, 0, 0.5]),
        (ops.special.i1, 0.0, [0, 0.5, 0]),
        (ops.special.i1, 1e-8, [5e-9, 0.5, 3.75e-9]),
        (lambda x: ops.special.polygamma(x, 1), -8.6, [10.8018, -22.2883, 283.6]),
        (ops.elu, 0.0, [0, 1, 1]),
        (ops.softsign, 0.5, [1 / 3, 1 / 2.25, -2 / 3.375]),
        (ops.softsign, 0.0, [0, 1, 0]),
        (ops.tanh_shrink, 1e-8, [1e-24 / 3, 1e-16, 2e-8]),
        (ops.tanh_shrink, 0.25, [5.08133759629087e-3, 5.9985151193622e-2, 0.460454358818566]),
        (ops.sparse_plus, 1e200, [1e200, 1, 0]),
        (ops.sparse_plus, -np.inf, [0, 0, 0]),
        (ops.hard_silu, -np.inf, [0, 0, 0]),
        (ops.erf, np.inf, [1, 0, 0]),
        (ops.abs, 0.0, [0, 0, 0]),
        (ops.cbrt, 0.0, [0, np.inf, None]),
    ],
)
def test_known_values(f, at, want, backend):
    """References are arbitrary-precision values (mpmath) and closed forms."""
    for got, wanted in zip(derivatives(f, [np.array([at])], backend), want):
        if wanted is not None:
            np.testing.assert_allclose(got, [wanted], rtol=1e-5, atol=1e-200 if abs(at) > 700 else 1e-100)


@pytest.mark.parametrize("backend", BACKENDS)
def test_mixed_derivative_of_a_power_at_exponent_0(backend):
    """d2/dx dy of ``x ** y`` is 1 / x at ``y = 0``; the second derivative with respect to ``y`` is ``log(x) ** 2``."""
    x, y = np.array([0.5, 2.0]), np.zeros(2)
    *_, by_x, by_y = derivatives(ops.power, [x, y], backend)
    np.testing.assert_allclose(by_x, 1 / x, rtol=1e-12)
    np.testing.assert_allclose(by_y, 1 / x + np.log(x) ** 2, rtol=1e-12)


@pytest.mark.parametrize("exponent", [0, 0.0])
@pytest.mark.parametrize("backend", BACKENDS)
def test_constant_power_has_zero_gradient_even_if_the_outer_one_is_infinite(backend, exponent):
    """An example is ``log(1 - x ** 0)``, the log of a probability that is 0."""
    for outer in (ops.log, ops.sqrt, lambda x: ops.exp(ops.sum(ops.log(x)))):
        f = lambda x: ops.sum(outer(1 - ops.power(x, exponent)))  # noqa: B023, E731
        np.testing.assert_array_equal(recorded_gradient(f, np.array([0.5, 2.0]), backend), [0, 0])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "name", "relu6 hard_sigmoid hard_tanh hard_shrink soft_shrink sparse_plus sparse_sigmoid hard_silu".split()
)
def test_nan_gives_nan(name, backend):
    assert np.isnan(numpy(getattr(ops, name)(tensors(np.array([np.nan]), backend)))).all()


STEPS = {
    **{name: getattr(ops, name) for name in ("floor", "ceil", "trunc", "round", "sign")},
    "round(1)": lambda x: ops.round(x, 1),
    "floor_divide": lambda x: ops.floor_divide(x, 2.0),
    "divisor": lambda x: ops.floor_divide(7.0, x),
    "nextafter": lambda x: ops.nextafter(x, 9.0),
    "towards": lambda x: ops.nextafter(9.0, x),
}


@pytest.mark.short_cases(2, "jax")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", STEPS)
def test_steps_have_gradient_zero(name, backend):
    """Step functions stay connected: a backward pass through them gives zeros, even from infinite gradients."""
    x, f = np.array([2.5, -3.25, np.inf]), STEPS[name]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(recorded_gradient(lambda v: ops.sum(f(v)), x, backend), np.zeros(3))
    finite = x[:2]
    value, slope, again = derivatives(lambda v: f(v) * v, [finite], backend)
    np.testing.assert_allclose(slope, value / finite)
    np.testing.assert_array_equal(again, 0 * finite)
    point = tensors(finite, backend)
    np.testing.assert_array_equal(numpy(gradops.jvp(f, (point,), (point,))[1]), 0 * finite)


def recorded_gradient(f, x, backend):
    """Return the gradients of a library's own backward pass, None if disconnected."""
    if backend == "torch":
        leaf = tensors(x, backend).requires_grad_()
        f(leaf).backward()
        return numpy(leaf.grad)
    if backend == "tensorflow":
        import tensorflow as tf

        leaf = tensors(x, backend)
        with tf.GradientTape() as tape:
            tape.watch(leaf)
            y = f(leaf)
        return numpy(tape.gradient(y, leaf))
    if backend == "jax":
        import jax

        return numpy(jax.grad(f)(tensors(x, backend)))
    leaf = Variable(x, requires_grad=True)
    f(leaf).backward()
    return leaf.grad.numpy()


@pytest.mark.short_cases(0, "jax")
@pytest.mark.parametrize("backend", BACKENDS)
def test_complex_sign_matches_pytorch(backend):
    """Compares value and gradient, including 0, where both are 0."""
    torch = pytest.importorskip("torch")
    z = np.array([3 + 4j, -1e-3j, 2.0, 0.0, -1e100 + 1e100j])
    real, imag = np.array([1.0, -1.0, 0.0, 3.0, 1.0]), np.array([2.0, 0.0, 0.5, -1.0, 0.0])
    leaf = torch.tensor(z, requires_grad=True)
    y = torch.sgn(leaf)
    (slope,) = torch.autograd.grad((y.real * torch.tensor(real) + y.imag * torch.tensor(imag)).sum(), leaf)

    def loss(v):
        y = ops.sign(v)
        return ops.sum(ops.multiply(ops.real(y), real)) + ops.sum(ops.multiply(ops.imag(y), imag))

    np.testing.assert_allclose(numpy(ops.sign(tensors(z, backend))), y.detach().numpy(), rtol=1e-15)
    got = recorded_gradient(loss, z, backend)
    np.testing.assert_allclose(got.conj() if backend == "jax" else got, slope.numpy(), rtol=1e-12, atol=1e-120)


@pytest.mark.parametrize("backend", BACKENDS)
def test_signed_zero(backend):
    np.testing.assert_array_equal(numpy(ops.angle(tensors(np.array([-0.0, 0.0, -1.0]), backend))), [np.pi, 0, np.pi])


@pytest.mark.parametrize("backend", BACKENDS)
def test_denormal_numbers(backend):
    """TensorFlow and JAX flush them to 0."""
    got = numpy(ops.sqrt(tensors(np.array([1e-310]), backend)))
    np.testing.assert_allclose(got, [0.0 if backend in ("jax", "tensorflow") else 1e-155])


@pytest.mark.parametrize("exponent", [1, 2, 3.0])
@pytest.mark.parametrize("backend", BACKENDS)
def test_all_derivatives_of_integer_powers_at_zero(backend, exponent):
    f = lambda x: ops.power(x, exponent)  # noqa: E731
    for order in range(1, 6):
        f = gradops.grad(f)
        found = float(numpy(f(tensors(np.array(0.0), backend))))
        assert found == (math.factorial(order) if order == exponent else 0), order


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["prod", "nanprod", "cumprod", "nancumprod"])
def test_products_with_tiny_and_infinite_elements(name, backend):
    """A rule that divides by the elements loses its second derivative at tiny elements and is undefined at infinity."""
    f = lambda v: ops.reshape(getattr(ops, name)(v), (-1,))[-1]  # noqa: E731
    for x in ([1e-30, 0.5, -2.0], *([[np.inf, 0.5, -2.0]] if "cum" not in name else [])):
        value, slope, again = derivatives(f, [np.array(x)], backend)
        np.testing.assert_array_equal(value, np.prod(x))
        np.testing.assert_allclose(slope, [x[1] * x[2], x[0] * x[2], x[0] * x[1]], rtol=1e-12)
        if np.isfinite(x).all():  # the derivatives of the sum of slopes
            np.testing.assert_allclose(again, [x[1] + x[2], x[0] + x[2], x[0] + x[1]], rtol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", [ops.abs, ops.angle])
def test_complex_moduli_and_angles_at_0(f, backend):
    """At 0 both gradients are 0; the second derivative of the modulus is NaN there, that of the angle 0."""
    z = np.array([0.0, 3 + 4j])
    modulus = [0, (3 + 4j) / 5] if f is ops.abs else [0, (-4 + 3j) / 25]
    loss = lambda v: ops.sum(f(v))  # noqa: E731
    first = tape_gradient(loss, [z]) if backend == "numpy" else native_gradient(loss, [z], backend)
    np.testing.assert_allclose(first[0], modulus, rtol=1e-12)
    second = tape_second(loss, [z]) if backend == "numpy" else native_gradient(loss, [z], backend, second=True)
    assert np.isnan(second[0][0]) if f is ops.abs else second[0][0] == 0
    assert np.isfinite(second[0][1])


BASES = np.array([0.0, 0.0, 0.0, 0.0, 0.0, -2.0, -2.0, -2.0, 1.5, 1.5, 1.5])
EXPONENTS = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 0.0, 2.0, 3.0, 0.0, 1.0, 2.5])
COMPILED = [("torch", "func"), *((b, "compiled") for b in ("numpy", "jax", "tensorflow")), ("tensorflow", "inner")]
POWERS = [*((b, "eager") for b in BACKENDS), *COMPILED]


def falling(n, k: int):
    """``n * (n - 1) * ... * (n - k + 1)``."""
    return np.prod([n - i for i in range(k)], axis=0) if k else np.ones_like(n)


@pytest.mark.short_cases(0, "tensorflow")
@pytest.mark.parametrize("way", POWERS, ids="-".join)
def test_tensor_powers_differentiated_by_base(way):
    """At 0 and below, to fourth order: ``y * (y - 1) * ... * x**(y - k)``, which is 0 if a factor is."""
    with np.errstate(all="ignore"):
        found = flows.derivatives(way, lambda v: ops.power(v, flows.constant(v, EXPONENTS)), BASES, 4)
        for order, got in enumerate(found, 1):
            factor = falling(EXPONENTS, order)
            want = factor * BASES ** np.where(factor == 0, 1, EXPONENTS - order)
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14, err_msg=str(order))
    for n in (1.0, 3.0):  # one exponent for all, a scalar
        *_, third, fourth = flows.derivatives(way, lambda v, n=n: ops.power(v, flows.constant(v, n)), BASES, 4)
        np.testing.assert_allclose(third, 6.0 if n == 3 else 0.0, atol=1e-14)
        np.testing.assert_allclose(fourth, 0.0, atol=1e-13)


@pytest.mark.short_cases(0, "tensorflow")
@pytest.mark.parametrize("way", POWERS, ids="-".join)
def test_tensor_powers_differentiated_by_exponent(way):
    """``x**y * log(x)**k`` is 0 at ``x = 0`` and undefined below."""
    with np.errstate(all="ignore"):
        found = flows.derivatives(way, lambda v: ops.power(flows.constant(v, BASES), v), EXPONENTS, 4)
        for order, got in enumerate(found, 1):
            want = np.where(BASES == 0, 0.0, BASES**EXPONENTS * np.log(np.where(BASES == 0, 1.0, BASES)) ** order)
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14, err_msg=str(order))


@pytest.mark.short_cases(0, "jax", "tensorflow")
@pytest.mark.parametrize("way", POWERS, ids="-".join)
def test_tensor_powers_differentiated_by_both(way):
    """``x**x`` in closed form; libraries lose its derivative where the exponent passes through 0."""
    x = np.array([1.0, 2.0, 0.7])
    log = np.log(x)
    y, a = x**x, log + 1
    wants = [y * a, y * (a**2 + 1 / x), y * (a**3 + 3 * a / x - 1 / x**2)]
    wants.append(y * (a**4 + 6 * a**2 / x - 4 * a / x**2 + 3 / x**2 + 2 / x**3))
    for got, want in zip(flows.derivatives(way, lambda v: ops.power(v, v), x, 4), wants):
        np.testing.assert_allclose(got, want, rtol=1e-10)


@pytest.mark.short_cases(1, "jax", "tensorflow")
@pytest.mark.parametrize("way", POWERS, ids="-".join)
@pytest.mark.parametrize("base", [0.0, -2.0, 0.5])
def test_powers_of_numbers(way, base):
    with np.errstate(all="ignore"):
        log = np.log(base) if base else 0.0
        found = flows.derivatives(way, lambda v: ops.power(base, v), np.array([1.0, 2.0, 3.0]), 3)
        for order, got in enumerate(found, 1):
            np.testing.assert_allclose(got, base ** np.array([1.0, 2.0, 3.0]) * log**order, rtol=1e-12)


@pytest.mark.parametrize("backend", [*BACKENDS, "variable"])
@pytest.mark.parametrize("base", [np.array([-1.5, 2.0]), -2.0])
def test_complex_powers_of_negative_numbers(backend, base):
    """The logarithm of a negative base is complex, also if the base is real."""
    exponent = np.array([0.5 + 1j, 2 - 0.3j])
    power = np.asarray(base, complex) ** exponent
    first, second = (power * np.log(np.asarray(base, complex)) ** n for n in (1, 2))
    if backend == "variable":
        x = Variable(exponent, requires_grad=True)
    elif backend == "torch":
        x = tensors(exponent, backend).requires_grad_()
    if backend in ("variable", "torch"):
        by = base if backend == "variable" or isinstance(base, float) else tensors(base, backend)
        (g,) = autodiff.grad(ops.sum(ops.real(ops.power(by, x))), x, create_graph=True)
        (h,) = autodiff.grad(ops.sum(ops.real(g)), x)
    else:
        by = base if isinstance(base, float) else tensors(base, backend)
        one = gradops.grad(lambda x: ops.sum(ops.real(ops.power(by, x))))
        g = one(tensors(exponent, backend))
        h = gradops.grad(lambda x: ops.sum(ops.real(one(x))))(tensors(exponent, backend))
    np.testing.assert_allclose(numpy(g), first.conj(), rtol=1e-12)
    np.testing.assert_allclose(numpy(h), second.conj(), rtol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS[1:])
def test_powers_of_complex_0(backend):
    """A library gives the tape's result or NaN, never a different number: stated in docs/differences.md."""
    base, exponent = np.zeros(4, complex), np.array([2.0, 1.0, 0.0, 1.5 + 0.5j])

    def loss(y):
        return ops.sum(ops.real(y) + 2 * ops.imag(y))

    differs = 0
    with np.errstate(all="ignore"):
        want = ops.power(base, exponent)
        np.testing.assert_array_equal(want, [0, 0, 1, 0])
        found = [(numpy(ops.power(tensors(base, backend), tensors(exponent, backend))), want)]
        for x, f in (
            (base, lambda v: loss(ops.power(v, flows.constant(v, exponent)))),
            (exponent, lambda v: loss(ops.power(flows.constant(v, base), v))),
        ):
            found.append((native_gradient(f, [x], backend)[0], tape_gradient(f, [x])[0]))
            found.append((native_gradient(f, [x], backend, second=True)[0], tape_second(f, [x])[0]))
        for got, wanted in found:
            differs += np.isnan(got).sum() - np.isnan(wanted).sum()
            np.testing.assert_allclose(np.where(np.isnan(got), wanted, got), wanted, rtol=1e-10)
    assert differs > 0


@pytest.mark.short_cases(0, "jax")
@pytest.mark.parametrize("backend", BACKENDS)
def test_higher_derivatives_of_bessel_functions(backend):
    """Expected from the series ``1 + x**2 / 4 + x**4 / 64`` and ``x / 2 + x**3 / 16``."""
    x = np.array([0.0, 1e-8])
    for f, third, fourth in ((ops.i0, 24 / 64 * x, [0.375, 0.375]), (ops.special.i1, [0.375, 0.375], 120 / 384 * x)):
        *_, a, b = flows.derivatives((backend, "eager"), f, x, 4)
        np.testing.assert_allclose([a, b], [third, fourth], rtol=1e-6, atol=1e-20)


def test_gelu_by_tanh_far_from_0():
    """PyTorch's kernel has no third derivative there. If this fails, remove the row in docs/differences.md."""
    torch = pytest.importorskip("torch")

    def third(start, grad):
        y = ops.gelu(start)
        for _ in range(3):
            (y,) = grad([y], [start], create_graph=True)
        return y

    assert third(Variable(np.array(40.0), requires_grad=True), autodiff.grad).data == 0
    assert torch.isnan(third(torch.tensor(40.0, dtype=torch.float64, requires_grad=True), torch.autograd.grad))


def twice(g, x):
    """Return the derivative of the summed slopes of ``g``, compiled by JAX."""
    import jax

    return jax.jit(jax.grad(lambda v: jax.grad(lambda v: g(v).sum())(v).sum()))(tensors(np.array(x), "jax"))


IN_LOOPS = {
    **{n: UNARY[n] for n in ("softplus", "log_sigmoid", "i0", "i1", "relu", "silu", "gelu", "sinc", "normal_cdf")}
}
IN_LOOPS |= {name: lambda x, f=BINARY[name]: f(x, 0.0 * x) for name in ("logaddexp", "logaddexp2", "maximum", "hypot")}


@pytest.mark.short_cases(3)
@pytest.mark.parametrize("name", IN_LOOPS)
def test_second_derivatives_in_jax_loops(name):
    """JAX ignores a ``custom_jvp`` in a loop body there, so the function itself must have correct derivatives."""
    jax = pytest.importorskip("jax")
    f, x = IN_LOOPS[name], [0.0, 0.05, -0.3, 2.0]
    np.testing.assert_allclose(twice(lambda v: jax.lax.map(f, v), x), twice(f, x), rtol=1e-12, atol=1e-15)


def test_second_derivatives_of_powers_in_jax_loops_are_nan():
    """If this fails, remove the row in docs/differences.md."""
    jax = pytest.importorskip("jax")
    f = lambda v: ops.power(v, tensors(np.array(1.0), "jax"))  # noqa: E731
    np.testing.assert_array_equal(twice(f, [0.0, 2.0]), [0, 0])
    np.testing.assert_array_equal(twice(lambda v: jax.lax.map(f, v), [0.0, 2.0]), [np.nan, 0])


@pytest.mark.short_cases(0, "jax")
@pytest.mark.parametrize("backend", BACKENDS)
def test_extremes_of_nan(backend):
    """Elements compared with NaN have gradient NaN in reductions; in elementwise ops other elements keep theirs."""
    x = tensors(np.array([[1.0, np.nan, 2.0], [3.0, 3.0, 1.0]]), backend)
    for op in (ops.max, ops.min, ops.ptp, ops.amax, ops.amin):
        value, gradient = gradops.value_and_grad(lambda x, op=op: ops.sum(op(x, axis=1)))(x)
        assert np.isnan(numpy(value)) and np.isnan(numpy(gradient)[0]).all(), op
        assert np.isfinite(numpy(gradient)[1]).all(), op
    np.testing.assert_array_equal(numpy(gradops.grad(lambda x: ops.sum(ops.max(x, axis=1)))(x))[1], [0.5, 0.5, 0])
    assert np.isnan(numpy(gradops.grad(lambda x: ops.norm(x[0], ord=np.inf))(x))[0]).all()
    for op in (lambda x: ops.maximum(x, 0.5), lambda x: ops.clip(x, 0.5, 9.0), ops.relu, ops.relu6, ops.abs):
        value, gradient = gradops.value_and_grad(lambda x, op=op: ops.sum(op(x)))(x)
        assert np.isnan(numpy(value)) and np.isfinite(numpy(gradient)).sum() >= 5
