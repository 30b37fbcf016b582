"""``gradops.scipy.integrate`` against SciPy, closed forms and differences of the results."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.integrate
import scipy.special
from parity import BACKENDS, numpy, tensors
from scipy_checks import agree

import gradops
from gradops import functional, ops
from gradops.errors import ArgumentError, ArgumentTypeError, GradientError, JitError, ShapeError
from gradops.scipy import integrate, optimize

RNG = np.random.default_rng(5)
Y, EVEN, NINE = RNG.normal(size=(2, 7)), RNG.normal(size=(2, 6)), RNG.normal(size=9)
X, X_EVEN = np.cumsum(RNG.uniform(0.3, 1.0, 7)), np.cumsum(RNG.uniform(0.3, 1.0, 6))

SAMPLES = [
    ("trapezoid", (Y, X), {}),
    ("trapezoid", (Y,), {"dx": 0.3, "axis": 0}),
    ("cumulative_trapezoid", (Y, X), {"initial": 0}),
    ("cumulative_trapezoid", (Y,), {"axis": 0}),
    ("simpson", (Y, X), {}),
    ("simpson", (EVEN, X_EVEN), {}),
    ("simpson", (EVEN,), {"dx": 0.4}),
    ("simpson", (Y,), {"axis": 0}),
    ("simpson", (NINE,), {}),
    ("cumulative_simpson", (Y,), {"dx": 0.2, "initial": 1.5}),
    ("cumulative_simpson", (EVEN,), {}),
    ("cumulative_simpson", (Y,), {"axis": 0}),
    ("romb", (NINE,), {"dx": 0.3}),
]


def one_by_one(function, count):
    """Call with ``x`` by position, even if SciPy requires the keyword."""
    return function if count == 1 else lambda y, x: function(y, x=x)


@pytest.mark.parametrize(("name", "arrays", "settings"), SAMPLES)
def test_samples(name, arrays, settings):
    over = BACKENDS if name == "simpson" and len(arrays) == 2 else ("numpy", "torch")

    def of(module):
        return one_by_one(lambda *y, **k: getattr(module, name)(*y, **k, **settings), len(arrays))

    ours, theirs = of(integrate), of(scipy.integrate)
    agree(ours, theirs, *arrays, over=over, second=over is BACKENDS, rtol=1e-10)


def test_cumulative_simpson_at_given_points():
    agree(
        lambda y, x: integrate.cumulative_simpson(y, x=x, initial=0.5),
        lambda y, x: scipy.integrate.cumulative_simpson(y, x=x, initial=0.5),
        Y, X, over=("numpy", "torch"), second=False,
    )  # fmt: skip


def test_repeated_points():
    """For two equal points SciPy omits the undefined part; the gradient must not contain NaN either."""
    x = np.array([0.0, 1.0, 1.0, 2.0, 3.0])
    np.testing.assert_allclose(integrate.simpson(NINE[:5], x), scipy.integrate.simpson(NINE[:5], x=x))
    assert np.isfinite(functional.grad(lambda x: integrate.simpson(NINE[:5], x))(x)).all()


def test_fixed_quad():
    def ours(a, b, c):
        return integrate.fixed_quad(lambda x, c: ops.cos(c * x), a, b, (c,), n=6)[0]

    def theirs(a, b, c):
        return scipy.integrate.fixed_quad(lambda x, c: np.cos(c * x), a, b, (c,), n=6)[0]

    agree(ours, theirs, 0.2, 1.4, 0.9)


def difference(function, a, step=1e-5):
    return (np.asarray(function(a + step)) - np.asarray(function(a - step))) / (2 * step)


def bell(x, a):
    return ops.exp(-a * x * x)


def swing(t, y, a):
    return [y[1], -a * y[0]]


INTEGRALS = {
    "quad": lambda a: integrate.quad(bell, 0.1, a, (a,))[0],
    "quad_vec": lambda a: ops.sum(integrate.quad_vec(lambda x: ops.stack([bell(x, a), x * a]), -a, 2.0)[0] ** 2),
    "dblquad": lambda a: integrate.dblquad(lambda y, x, a: a * x * y * y, 0.0, a, 0.0, lambda x: a * x, (a,))[0],
    "nquad": lambda a: integrate.nquad(lambda y, x: a * x + y * a**2, [lambda x: (0.0, a * x), (0.0, 1.0)])[0],
    "tplquad": lambda a: integrate.tplquad(lambda z, y, x: a * x + y * z, 0, 1, 0, a, 0, lambda x, y: a * x)[0],
    "solve_ivp": lambda a: ops.sum(
        integrate.solve_ivp(swing, (0.0, 2.0), [1.0, a], args=(a,), t_eval=[0.5, 2.0], rtol=1e-9, atol=1e-9).y ** 2
    ),
    "odeint": lambda a: ops.sum(integrate.odeint(lambda y, t: [y[1], -a * y[0]], [1.0, a], [0.0, 0.5, 2.0]) ** 2),
}


def test_each_function_has_a_case():
    constants = {"newton_cotes", "lebedev_rule"}
    assert set(integrate.__all__) == set(INTEGRALS) | {name for name, *_ in SAMPLES} | constants | {"fixed_quad"}
    for name in constants:
        for got, want in zip(getattr(integrate, name)(3), getattr(scipy.integrate, name)(3)):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long) if name == "tplquad" else name for name in INTEGRALS]
)
def test_integrals_to_second_order(name):
    function = INTEGRALS[name]
    first = functional.grad(function)
    np.testing.assert_allclose(first(1.2), difference(function, 1.2), 1e-6)
    if name != "tplquad":
        np.testing.assert_allclose(functional.grad(first)(1.2), difference(first, 1.2), 1e-6)


@pytest.mark.short_cases(1, "jax", "tensorflow")
@pytest.mark.parametrize("backend", BACKENDS[1:])
@pytest.mark.parametrize("name", ["quad", "solve_ivp", "odeint"])
def test_integrals_on_libraries(name, backend):
    function = INTEGRALS[name]
    found = functional.grad(function)(tensors(np.asarray(1.2), backend))
    assert gradops.backends.backend_of(found).name == backend
    np.testing.assert_allclose(numpy(found), functional.grad(function)(1.2), 1e-8)


@pytest.mark.long
def test_library_transformations():
    expected = functional.hessian(INTEGRALS["quad"], 1.2)
    if "torch" in BACKENDS:
        import torch

        a = torch.tensor(1.2, dtype=torch.float64)
        np.testing.assert_allclose(torch.func.hessian(INTEGRALS["quad"])(a), expected)
        for name in ("quad", "solve_ivp"):
            _, tangent = torch.func.jvp(INTEGRALS[name], (a,), (torch.ones_like(a),))
            np.testing.assert_allclose(tangent, functional.grad(INTEGRALS[name])(1.2))
    if "jax" in BACKENDS:
        import jax

        np.testing.assert_allclose(jax.hessian(INTEGRALS["quad"])(tensors(np.asarray(1.2), "jax")), expected)


def test_closed_forms():
    """Covers infinite limits, a singular end point, and a step function whose integral moves with the limit."""
    area = functional.grad(lambda a: integrate.quad(bell, -np.inf, np.inf, (a,))[0])
    np.testing.assert_allclose(area(2.0), -0.5 * np.sqrt(np.pi) * 2**-1.5, 1e-10)
    below = functional.grad(lambda a: integrate.quad(lambda x: ops.exp(a * x), -np.inf, 0.0)[0])
    np.testing.assert_allclose(below(2.0), -0.25, 1e-10)
    power = functional.grad(lambda a: integrate.quad(lambda x: ops.exp(-a * ops.log(x)), 0.0, 1.0)[0])
    np.testing.assert_allclose(power(0.3), 1 / 0.7**2, 1e-6)
    # Next to the singular end point 1 - x rounds to 1, and the function is infinite.
    rounded = functional.grad(lambda a: integrate.quad(lambda x: (-ops.log(1 - x)) ** (-1 / a), 0.0, 1.0)[0])
    np.testing.assert_allclose(rounded(2.0), scipy.special.gamma(0.5) * scipy.special.digamma(0.5) / 4, 1e-6)
    step = functional.grad(lambda b: integrate.quad(lambda x: ops.where(x < 1.0, 0.0, 3.0), 0.0, b, points=[1.0])[0])
    np.testing.assert_allclose(step(2.0), 3.0)
    back = functional.grad(lambda b: integrate.quad(lambda x: b * x, 2.0, b)[0])
    np.testing.assert_allclose(back(1.0), (1 - 4) / 2 + 1)
    third = functional.grad(functional.grad(functional.grad(lambda b: integrate.quad(ops.sin, 0.0, b)[0])))
    np.testing.assert_allclose(third(0.7), -np.sin(0.7), 1e-6)


def test_values_without_a_gradient_match_scipy():
    assert integrate.quad(bell, 0, 1, (2.0,)) == scipy.integrate.quad(lambda x: np.exp(-2 * x * x), 0, 1)
    assert len(integrate.quad(bell, 0, 1, (2.0,), full_output=1)) == 3
    ours = integrate.solve_ivp(lambda t, y: -y, (0, 1), [1.0], dense_output=True, events=lambda t, y: y[0] - 0.5)
    theirs = scipy.integrate.solve_ivp(
        lambda t, y: -y, (0, 1), [1.0], dense_output=True, events=lambda t, y: y[0] - 0.5
    )
    np.testing.assert_array_equal(ours.y, theirs.y)
    np.testing.assert_array_equal(ours.t_events[0], theirs.t_events[0])


@pytest.mark.parametrize("method", ["RK23", "RK45", "DOP853"])
def test_recorded_steps_match_scipy(method):
    places = np.linspace(0.0, 2.0, 7)
    for t_eval in (None, places, places[2:4], places[::-1]):
        ends = (0.0, 2.0) if t_eval is not places[::-1] else (2.0, 0.0)
        ends = (2.0, 0.0) if t_eval is not None and t_eval[0] > t_eval[-1] else ends
        a = gradops.Variable(1.5, requires_grad=True)
        ours = integrate.solve_ivp(swing, ends, [1.0, 0.5], method, t_eval, args=(a,))
        theirs = scipy.integrate.solve_ivp(swing, ends, [1.0, 0.5], method, t_eval, args=(1.5,))
        np.testing.assert_array_equal(ours.t, theirs.t)
        np.testing.assert_allclose(ours.y.detach().numpy(), theirs.y, 1e-12, 1e-13)


@pytest.mark.parametrize("method", ["RK45", "LSODA", "Radau", "BDF"])
def test_adjoint(method):
    def end(a, y0):
        settings = {"rtol": 1e-8, "atol": 1e-9, "t_eval": [1.0, 2.0], "gradient": "adjoint"}
        return ops.sum(integrate.solve_ivp(swing, (0.0, 2.0), y0, method, args=(a,), **settings).y)

    def closed(a, y0):
        w, t = ops.sqrt(a), np.array([1.0, 2.0])
        x = y0[0] * ops.cos(w * t) + y0[1] * ops.sin(w * t) / w
        return ops.sum(x) + ops.sum(-w * y0[0] * ops.sin(w * t) + y0[1] * ops.cos(w * t))

    y0 = np.array([1.0, 0.5])
    found, wanted = (functional.grad(f, argnums=(0, 1))(1.5, y0) for f in (end, closed))
    for got, want in zip(found, wanted):
        np.testing.assert_allclose(got, want, 3e-6, 3e-6)
    if method == "RK45":
        second, expected = (functional.grad(functional.grad(f))(1.5, y0) for f in (end, closed))
        np.testing.assert_allclose(second, expected, 1e-5)
    with pytest.raises(GradientError):
        functional.grad(lambda a: integrate.solve_ivp(
            lambda t, y: -a * y, (0.0, 1.0), [1.0], method, gradient="adjoint").y[0, -1])(1.0)  # fmt: skip


def test_adjoint_of_odeint():
    def end(a, gradient):
        return integrate.odeint(lambda y, t, a: -a * y, [1.0], [0.0, 2.0], (a,), gradient=gradient)[-1, 0]

    for gradient in ("steps", "adjoint"):
        np.testing.assert_allclose(functional.grad(lambda a, g=gradient: end(a, g))(0.7), -2 * np.exp(-1.4), 1e-6)


def test_derivatives_with_respect_to_times():
    def end(t):
        return integrate.solve_ivp(lambda t, y: -y * t, (0.0, t), [1.0], rtol=1e-10, atol=1e-12).y[0, -1]

    np.testing.assert_allclose(functional.grad(end)(1.3), -1.3 * np.exp(-(1.3**2) / 2), 1e-6)

    def at(t):
        return integrate.odeint(lambda y, t: -y * t, [1.0], [0.0, t, 2.0])[1, 0]

    np.testing.assert_allclose(functional.grad(at)(1.3), -1.3 * np.exp(-(1.3**2) / 2), 1e-5)


def decay(t, y):
    return -t * y


def decayed(first, last):
    """Return the solution of ``decay`` that is 1 at ``first``."""
    return ops.exp((first * first - last * last) / 2)


MOVING = {  # times that depend on t, and the solution there
    "end": (lambda t: ((0.1, t), None), lambda t: decayed(0.1, t)),
    "start": (lambda t: ((t, 0.9), None), lambda t: decayed(t, 0.9)),
    "t_eval": (lambda t: ((0.1, 1.0), [0.3, t]), lambda t: decayed(0.1, t)),
    "all": (lambda t: ((t, 2 * t), ops.stack([t, 1.5 * t])), lambda t: decayed(t, 1.5 * t)),
    "no interval": (lambda t: ((0.6, t), None), lambda t: decayed(0.6, t)),
}


@pytest.mark.short_cases(2, "jax", "tensorflow")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "method", ["RK45", "LSODA", *(pytest.param(name, marks=pytest.mark.long) for name in ("Radau", "BDF"))]
)
@pytest.mark.parametrize("which", MOVING)
def test_adjoint_derivatives_with_respect_to_times(which, method, backend):
    """``dy(T)/dT`` is the slope at ``T``."""
    times, closed = MOVING[which]

    def end(t):
        span, t_eval = times(t)
        settings = {"t_eval": t_eval, "rtol": 1e-8, "atol": 1e-10, "gradient": "adjoint"}
        return integrate.solve_ivp(decay, span, [1.0], method, **settings).y[0, -1]

    t = tensors(np.asarray(0.6), backend)
    np.testing.assert_allclose(numpy(functional.grad(end)(t)), functional.grad(closed)(0.6), 1e-6)
    if backend == "numpy":
        second = functional.grad(functional.grad(end))(t)
        np.testing.assert_allclose(numpy(second), functional.grad(functional.grad(closed))(0.6), 1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_adjoint_of_odeint_with_respect_to_times(backend):
    def at(t):
        return integrate.odeint(lambda y, t: -t * y, [1.0], t, gradient="adjoint")[:, 0]

    t, weights = np.array([0.2, 0.5, 1.1]), np.array([1.0, 2.0, -3.0])
    found = functional.grad(lambda t: ops.sum(at(t) * tensors(weights, backend)))(tensors(t, backend))
    want = functional.grad(lambda t: sum(w * decayed(t[0], x) for w, x in zip(weights, t)))(t)
    np.testing.assert_allclose(numpy(found), want, 1e-5)


# Events, dense output and checkpoints ---------------------------------------------------------------------------------


def falling(t, y, height, gravity):
    return [y[1], -gravity]


def ground(t, y, height, gravity):
    return y[0]


ground.terminal, ground.direction = True, -1


def landing(height, gravity, settings):
    """Return the time and the speed of a falling ball at the ground, as an event and as the end of the solution."""
    found = integrate.solve_ivp(
        falling, (0.0, 9.0), [height, 0.0], events=ground, args=(height, gravity), rtol=1e-8, atol=1e-10, **settings
    )
    return ops.stack([found.t_events[0][0], found.t[-1], found.y_events[0][0, 1], found.y[1, -1]])


def landed(height, gravity):
    time, speed = ops.sqrt(2 * height / gravity), -ops.sqrt(2 * height * gravity)
    return ops.stack([time, time, speed, speed])


EXACT = [{}, {"gradient": "checkpoints"}, {"gradient": "adjoint"}, {"method": "DOP853"}]
STIFF = [{"method": "LSODA"}, {"method": "Radau", "gradient": "checkpoints"}]


@pytest.mark.parametrize("settings", EXACT + STIFF)
def test_terminal_event_of_a_falling_ball(settings):
    how = {"argnums": (0, 1), "strategy": "reverse-mode"}
    found = gradops.jacobian(lambda h, g: landing(h, g, settings), **how)(5.0, 9.8)
    for got, want in zip(found, gradops.jacobian(landed, **how)(5.0, 9.8)):
        np.testing.assert_allclose(got, want, 1e-7)
    if settings in EXACT:
        second = functional.hessian(lambda g: landing(5.0, g, settings)[0] + landing(5.0, g, settings)[3], 9.8)
        np.testing.assert_allclose(second, functional.hessian(lambda g: landed(5.0, g)[0] + landed(5.0, g)[3], 9.8))


def test_orders_of_derivatives_of_event_times():
    def third(f):
        return functional.grad(functional.grad(functional.grad(lambda g: f(g)[0])))

    at = third(lambda g: landing(5.0, g, {}))
    np.testing.assert_allclose(at(9.8), third(lambda g: landed(5.0, g))(9.8), 1e-7)
    with pytest.raises(GradientError, match="order above 3"):
        functional.grad(at)(9.8)


@pytest.mark.short_cases(1, "jax", "tensorflow")
@pytest.mark.parametrize("backend", BACKENDS[1:])
@pytest.mark.parametrize(
    "settings", [EXACT[0], *(pytest.param(x, marks=pytest.mark.long) for x in (EXACT[1], EXACT[2], STIFF[1]))]
)
def test_events_on_libraries(settings, backend):
    weights = np.array([1.0, 2.0, 0.5, -1.0])

    def loss(g):
        return ops.sum(landing(5.0, g, settings) * tensors(weights, backend))

    found = functional.grad(loss)(tensors(np.asarray(9.8), backend))
    assert gradops.backends.backend_of(found).name == backend
    np.testing.assert_allclose(numpy(found), functional.grad(lambda g: ops.sum(landed(5.0, g) * weights))(9.8), 1e-6)


def up(t, y, a):
    return y[0]


def still(t, y, a):
    return y[1]


up.direction, still.terminal = 1, 4
CROSSED = [
    {},
    {"t_eval": [0.5, 1.0, 30 / 7]},
    {"t_eval": [0.5, 1.0, 30 / 7], "gradient": "checkpoints"},
    {"t_eval": [15.0]},
    {"gradient": "adjoint", "t_eval": [0.5]},
    {"gradient": "checkpoints", "method": "LSODA"},
]


def outcomes(module, a, settings):
    given = {k: v for k, v in settings.items() if module is integrate or k != "gradient"}
    found = module.solve_ivp(
        swing, (0.0, 20.0), [0.3, 1.0], events=[up, still], args=(a,), dense_output=True, rtol=1e-7, atol=1e-9, **given
    )
    return [found.t, found.y, *found.t_events, *found.y_events, found.sol(1.3), found.sol([1.3, 0.2, 2.0])]


@pytest.mark.parametrize(
    "settings", [pytest.param(x, marks=[pytest.mark.long] * ("LSODA" in x.values())) for x in CROSSED]
)
def test_events_and_dense_output_match_scipy_and_differences(settings):
    want = outcomes(scipy.integrate, 4.0, settings)
    for a, exact in ((4.0, True), (gradops.Variable(4.0, requires_grad=True), False)):
        for got, values in zip(outcomes(integrate, a, settings), want):
            got = got.detach().numpy() if isinstance(got, gradops.Variable) else np.asarray(got)
            assert got.shape == np.shape(values)
            np.testing.assert_allclose(got, values, *((0, 0) if exact else (1e-12, 1e-12)))

    def loss(a):
        t, y, ups, stills, y_ups, y_stills, one, several = outcomes(integrate, a, settings)
        more = ops.sum(y[:, -1]) if len(t) else 0.0
        return ops.sum(ups) + 2 * stills[1] + ops.sum(y_ups) + y_stills[3, 0] + ops.sum(one) + several[0, 1] + more

    def closed(a):
        """Return ``loss`` in closed form: a harmonic oscillator of frequency ``sqrt(a)``."""
        w = ops.sqrt(a)

        def y(t):
            return ops.stack([0.3 * ops.cos(w * t) + ops.sin(w * t) / w, ops.cos(w * t) - 0.3 * w * ops.sin(w * t)])

        first = ops.arctan2(1.0, 0.3 * w)
        crossings, stills = (1.5 * np.pi + first) / w, [(first + k * np.pi) / w for k in range(4)]
        ends = {0: stills[3], 3: 30 / 7, 1: 0.5}[0 if "t_eval" not in settings else len(settings["t_eval"])]
        more = ops.sum(y(ends)) if settings.get("t_eval") != [15.0] else 0.0
        rest = ops.sum(y(1.3)) + y(0.2)[0] + more
        return crossings + 2 * stills[1] + ops.sum(y(crossings)) + y(stills[3])[0] + rest

    np.testing.assert_allclose(loss(4.0), closed(4.0), 1e-5)
    np.testing.assert_allclose(functional.grad(loss)(4.0), functional.grad(closed)(4.0), 1e-4)


@pytest.mark.parametrize("settings", [{}, {"method": "LSODA"}, {"t_eval": [], "gradient": "checkpoints"}])
def test_dense_output_by_time_and_parameters(settings):
    """The derivative of dense output by time is the right-hand side, also if nothing else moves."""

    def at(t, a):
        precise = {"dense_output": True, "rtol": 1e-9, "atol": 1e-11}
        found = integrate.solve_ivp(lambda t, y, a: -a * t * y, (0.0, 2.0), [1.0], args=(a,), **precise, **settings)
        return ops.sum(found.sol(t))

    def closed(t, a):
        return ops.sum(ops.exp(-a * t * t / 2))

    for t in (0.7, np.array([1.9, 0.4])):
        for got, want in zip(*(functional.grad(f, argnums=(0, 1))(t, 1.3) for f in (at, closed))):
            np.testing.assert_allclose(got, want, 1e-6)
        np.testing.assert_allclose(functional.grad(lambda t: at(t, 1.3))(t), functional.grad(closed)(t, 1.3), 1e-6)


def test_event_function_with_a_parameter_of_its_own():
    def passed(level):
        found = integrate.solve_ivp(lambda t, y: -y, (0.0, 3.0), [1.0], events=lambda t, y: y[0] - level, rtol=1e-9)
        return found.t_events[0][0]

    assert gradops.autodiff.gradcheck(passed, (np.array(0.4),), atol=1e-4)
    np.testing.assert_allclose(functional.grad(passed)(0.4), -1 / 0.4, 1e-6)
    np.testing.assert_allclose(functional.grad(functional.grad(passed))(0.4), 1 / 0.4**2, 1e-6)


def test_checkpoints_bound_the_memory_of_the_backward_pass():
    def end(a, gradient):
        y0 = np.ones(20_000)
        return ops.sum(integrate.solve_ivp(
            lambda t, y: -a * y * y, (0.0, 1.0), y0, t_eval=[1.0], max_step=1 / 50, gradient=gradient).y)  # fmt: skip

    peaks, found = {}, {}
    for gradient in ("steps", "checkpoints"):
        tracemalloc.start()
        a = gradops.Variable(0.7, requires_grad=True)
        end(a, gradient).backward()
        found[gradient] = a.grad.data
        peaks[gradient] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    np.testing.assert_allclose(found["checkpoints"], found["steps"], 1e-13)
    np.testing.assert_allclose(found["steps"], -20_000 / 1.7**2, 1e-4)
    assert peaks["checkpoints"] < 0.3 * peaks["steps"]


@pytest.mark.parametrize("method", ["BDF", pytest.param("Radau", marks=pytest.mark.long), "LSODA"])
def test_checkpoints_of_a_stiff_equation(method):
    """Solved backwards, this solution grows by a factor ``exp(200)``."""

    def end(a):
        return integrate.solve_ivp(
            lambda t, y, a: [-200 * (y[0] - a * ops.cos(t))], (0.0, 1.0), [0.0], method, [0.5, 1.0], args=(a,),
            rtol=1e-5, atol=1e-7, gradient="checkpoints",
        ).y[0, -1]  # fmt: skip

    np.testing.assert_allclose(functional.grad(end)(2.0), (200**2 * np.cos(1) + 200 * np.sin(1)) / (200**2 + 1), 1e-4)
    with pytest.raises(GradientError, match="first derivatives in reverse mode only"):
        functional.grad(functional.grad(end))(2.0)


def test_checkpoints_of_odeint():
    def end(a):
        return integrate.odeint(lambda y, t: -a * y, [1.0], [0.0, 1.0, 2.0], gradient="checkpoints")[-1, 0]

    np.testing.assert_allclose(functional.grad(end)(0.7), -2 * np.exp(-1.4), 1e-6)


def test_errors_of_events_and_dense_output():
    def flat(a):
        return integrate.solve_ivp(lambda t, y: 0 * y, (0.0, 1.0), [a - 1.0], events=lambda t, y: y[0]).t_events[0][0]

    with pytest.raises(GradientError, match="no slope along the solution"):
        functional.grad(flat)(1.0)

    def outside(a, **settings):
        return integrate.solve_ivp(swing, (0, 1), [1, 0], args=(a,), dense_output=True, **settings).sol(1.5)[0]

    np.testing.assert_allclose(outside(1.0), np.cos(1.5), 0.1)  # SciPy extrapolates
    with pytest.raises(ArgumentError, match="between 0.0 and 1.0"):
        functional.grad(lambda a: outside(a, gradient="adjoint"))(1.0)
    with pytest.raises(ShapeError, match="number or vector"):
        integrate.solve_ivp(swing, (0, 1), [1, 0], args=(1.0,), dense_output=True).sol(np.ones((2, 2)))
    with pytest.raises(ArgumentError, match="'steps', 'checkpoints', 'adjoint' or None"):
        integrate.solve_ivp(swing, (0, 1), [1, 0], args=(1.0,), gradient="step")
    with pytest.raises(JitError, match="not known in a compiled function"):
        gradops.jit(lambda g: landing(5.0, g, {})[0])(np.array(9.8))


def turning(t, y, a):
    """Return the right-hand side of a complex equation; ``a`` is real."""
    a, t = (ops.cast(ops.convert_to_tensor(x), "complex128") for x in (a, t))
    return ops.stack([1j * a * y[0], 0.5j * t * y[0] - y[1]])


@pytest.mark.short_cases(1, "torch", "jax", "tensorflow")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("settings", [("RK45", "steps"), ("DOP853", "steps"), ("RK45", "adjoint"), ("BDF", "adjoint")])
def test_complex_equations(settings, backend):
    """Values match SciPy's; derivatives by a real parameter, the end and the complex start match differences."""
    method, gradient = settings
    a, end, y0 = 0.7, 0.6, np.array([1 + 0.5j, 0.3 - 1j])
    precise = {"rtol": 1e-8, "atol": 1e-10}

    def loss(y):
        re, im = ops.real(y), ops.imag(y)
        return re[0] + 2 * im[0] + re[1] * im[1]

    def solved(a, end, y0, **settings):
        return integrate.solve_ivp(turning, (0.0, end), y0, method, args=(a,), **precise, **settings).y

    theirs = scipy.integrate.solve_ivp(turning, (0.0, end), y0, method, args=(a,), **precise)
    given = [tensors(np.asarray(x), backend) for x in (a, end, y0)]
    found = numpy(solved(*given))
    assert found.dtype == "complex128"
    np.testing.assert_allclose(found, theirs.y, 1e-10)

    def ours(*given):
        return loss(solved(*given, gradient=gradient)[:, -1])

    def reference(a, end, y0):
        settings = {"args": (a,), "rtol": 1e-12, "atol": 1e-13}
        return float(loss(scipy.integrate.solve_ivp(turning, (0.0, end), y0, "DOP853", **settings).y[:, -1]))

    got = [numpy(g) for g in functional.grad(ours, argnums=(0, 1, 2))(*given)]
    np.testing.assert_allclose(got[0], difference(lambda x: reference(x, end, y0), a), 1e-5)
    np.testing.assert_allclose(got[1], difference(lambda x: reference(a, x, y0), end), 1e-5)
    unit = np.eye(2)
    want = [
        sum(w * difference(lambda x, w=w, e=e: reference(a, end, y0 + w * x * e), 0.0) for w in (1, 1j)) for e in unit
    ]
    np.testing.assert_allclose(got[2], want, 1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_complex_integrands(backend):
    """``quad_vec`` accepts complex integrands as in SciPy; real-only functions raise a clear error."""

    def area(a, b):
        y = integrate.quad_vec(lambda x: ops.exp(1j * ops.cast(ops.convert_to_tensor(a * x), "complex128")), 0.0, b)[0]
        return ops.real(y) + 3 * ops.imag(y)

    def closed(a, b):
        return (ops.sin(a * b) + 3 * (1 - ops.cos(a * b))) / a

    a, b = (tensors(np.asarray(x), backend) for x in (0.7, 1.2))
    np.testing.assert_allclose(numpy(area(a, b)), closed(0.7, 1.2), 1e-10)
    for i in range(2):
        got = numpy(functional.grad(area, argnums=i)(a, b))
        np.testing.assert_allclose(got, functional.grad(closed, argnums=i)(0.7, 1.2), 1e-8)

    def turn(y, a):
        return 1j * ops.cast(y * a, "complex128")

    one = tensors(np.ones(1), backend)
    for call in (
        lambda: integrate.quad(lambda x: turn(x, a), 0.0, 1.0),
        lambda: integrate.dblquad(lambda y, x: turn(x, a), 0.0, 1.0, 0.0, 1.0),
        lambda: integrate.solve_ivp(lambda t, y: turn(y, a), (0.0, 1.0), one),
        lambda: integrate.odeint(lambda y, t: turn(y, a), one, [0.0, 1.0]),
        lambda: integrate.odeint(lambda y, t: y, ops.cast(one, "complex128"), [0.0, 1.0]),
        lambda: optimize.least_squares(lambda x: turn(x, a), [1.0]),
        lambda: optimize.root(lambda x: turn(x, a), [1.0]),
        lambda: optimize.minimize(lambda x: turn(x[0], a), [1.0]),
    ):
        with pytest.raises(ArgumentTypeError, match="real"):
            call()


@pytest.mark.long
def test_single_precision():
    def end(a):
        return integrate.solve_ivp(swing, (0.0, 2.0), [1.0, 0.5], args=(a,), rtol=1e-4).y[0, -1]

    for backend in BACKENDS:
        a = tensors(np.asarray(1.5, "float32"), backend)
        for function in (INTEGRALS["quad"], end):
            found = functional.grad(function)(a)
            assert numpy(found).dtype == "float32"
            np.testing.assert_allclose(numpy(found), functional.grad(function)(1.5), 2e-4)


class Broken(Exception):
    pass


def test_errors():
    def broken(*_):
        raise Broken("mine")

    for call in (
        lambda: integrate.quad(broken, 0, 1),
        lambda: integrate.nquad(broken, [(0, 1), (0, 1)]),
        lambda: integrate.fixed_quad(broken, 0, 1),
        lambda: integrate.solve_ivp(broken, (0, 1), [1.0]),
        lambda: integrate.odeint(broken, [1.0], [0.0, 1.0]),
    ):
        with pytest.raises(Broken, match="mine"):
            call()
    with pytest.raises(ShapeError, match="7 elements of `y`"):
        integrate.trapezoid(Y, X_EVEN)
    with pytest.raises(ShapeError, match="samples along `axis`"):
        integrate.romb(Y[:, :6])
    with pytest.raises(ArgumentError, match="takes no `weight`"):
        integrate.quad(bell, 0, 1, (1.0,), weight="cos", wvar=1.0)
    with pytest.raises(ArgumentError, match="`method` must be one of"):
        integrate.solve_ivp(swing, (0, 1), [1.0, 0.0], "Euler", args=(1.0,))
    with pytest.raises(ArgumentError, match="must give 2 numbers"):
        integrate.solve_ivp(lambda t, y: y[:1], (0, 1), [1.0, 0.0])
    with pytest.raises(AttributeError, match="shooting"):
        integrate.solve_bvp  # noqa: B018
    with pytest.raises(JitError, match="not known in a compiled function"):
        gradops.jit(INTEGRALS["quad"])(np.array(1.2))


@pytest.mark.filterwarnings("ignore")  # SciPy warns about the value
def test_unconverged_derivative_is_an_error():
    def f(a):
        return integrate.quad(lambda x: ops.sin(a / x) / x, 0.0, 1.0)[0]

    with pytest.raises(GradientError, match="no derivative here: 400 parts"):
        gradops.grad(f)(1.0)


def test_inner_integral_is_recorded_only_with_the_outer_one():
    calls = []

    def height(y, x, b):
        calls.append(x)
        return b * x * y

    assert gradops.grad(lambda b: integrate.dblquad(height, 0.0, 2.0, 0.0, 1.0, (b,))[0])(2.0) == pytest.approx(1.0)
    places = 21  # of a rule; SciPy's value and the outer rule need values only, a first point and the sum are recorded
    assert len(calls) <= 2 * places**2 + (places + 1) * (3 * places + 1)


@pytest.mark.parametrize("name", ["cumulative_trapezoid", "cumulative_simpson"])
def test_cumulative_integral_of_one_sample(name):
    for axis in (0, 1):
        y = np.ones((1, 3) if axis == 0 else (3, 1))
        found, want = (getattr(module, name)(y, axis=axis, initial=0) for module in (integrate, scipy.integrate))
        np.testing.assert_array_equal(found, want)
