"""Scalar operations logged by R against the same ops one by one: values, and derivatives of all orders."""

from __future__ import annotations

import random
import tracemalloc
import warnings
from array import array
from itertools import product

import numpy as np
import pytest
from seeds import seeds

import gradops
from gradops import autodiff, flow, functional, ops
from gradops.autodiff import pushforward
from gradops.autodiff.variable import data_of
from gradops.errors import PartialGradientError
from gradops.jit import jit, native, scalar_logs, scalars
from gradops.jit import table as tables
from gradops.jit.backend import register
from gradops.jit.native import records
from gradops.jit.operations import COPY, NumberOperation, plain_operation
from gradops.jit.program import Program
from gradops.jit.scalar_logs import NAMES, OPERATIONS, Log, log
from gradops.jit.scalar_rules import template

OF_OPS = {name: len(what.pattern) for name, what in zip(NAMES, OPERATIONS[1:]) if hasattr(ops, name)}
BINARY, UNARY = ([name for name, operands in OF_OPS.items() if operands == count] for count in (2, 1))


class Logged:
    """A log as R writes it, for one vector; with ``one_by_one`` the same operations are called as ops."""

    def __init__(self, p, one_by_one: bool = False):
        self.p, self.one_by_one = p, one_by_one
        self.words: list[float] = []
        self.inputs: list = [] if one_by_one else [p]
        self.new: list = list(self.inputs)
        self.count = 0
        found = None if one_by_one else log(p)
        assert one_by_one or isinstance(found, Log)
        self.log = found

    def read(self, i: int):
        return self.p[i] if self.one_by_one else self._add(0, (0, 0.0), (0, float(i)))

    def op(self, name: str, x, y=None):
        if self.one_by_one:
            return getattr(ops, name)(x) if y is None else getattr(ops, name)(x, y)
        kinds = [self._operand(v) for v in (x, 0.0 if y is None else y)]
        return self._add(NAMES.index(name) + 1, *kinds)

    def call(self, function, *operands):
        """Call a function of single numbers, for which the last operand stands in the last record."""
        if self.one_by_one:
            return function(*operands)
        number, given = scalar_logs.function_number(function, len(operands)), list(map(self._operand, operands))
        given += [(0, 0.0)] * (len(given) % 2)
        for i in range(0, len(given), 2):
            last = i + 2 == len(given)
            found = self._add(number if last else OPERATIONS.index(scalar_logs.MORE), *given[i : i + 2])
        return found

    def tensor(self, x):
        """Return what R gets when it requests a result."""
        if not isinstance(x, tuple):
            return x
        self.log.record(self.words, self.new)
        self.words, self.new = [], []
        return self.log.element(x[1])

    def _add(self, code: int, x: tuple, y: tuple):
        self.words += [16 * code + 4 * x[0] + y[0], x[1], y[1]]
        self.count += 1
        return "result", self.count - 1

    def _operand(self, x) -> tuple:
        if isinstance(x, tuple):
            return 1, float(x[1])
        if isinstance(x, float):
            return 0, x
        assert self.log.takes(x) == 0
        self.inputs.append(x)
        self.new.append(x)
        return 2, float(len(self.inputs) - 1)


def both(f, x, derivative=gradops.value_and_grad):
    """Return the compiled results of ``f(log, p)`` with a log and with separate ops."""
    return [
        jit(derivative(lambda p, one=one: f(Logged(p, one), p)))(np.array(x))  # type: ignore[misc]
        for one in (False, True)
    ]


def filter_of(rows):
    """Return a Kalman filter over ``rows``."""

    def f(s, p):
        q, r = s.op("exp", s.read(0)), s.op("exp", s.read(1))
        a, P, total = 0.0, 10.0, 0.0
        for y in rows:
            P = s.op("add", P, q)
            S = s.op("add", P, r)
            v = s.op("subtract", y, a)
            total = s.op("add", total, s.op("add", s.op("log", S), s.op("divide", s.op("power", v, 2.0), S)))
            K = s.op("divide", P, S)
            a = s.op("add", a, s.op("multiply", K, v))
            P = s.op("multiply", P, s.op("subtract", 1.0, K))
        return s.tensor(total)

    # R itself computes `1.0 - 0.0` of two constants.
    def start(s, p):
        s.op = plain(s.op)
        return f(s, p)

    return start


def plain(op):
    def call(name, x, y=None):
        if isinstance(x, float) and (y is None or isinstance(y, float)):
            return float(getattr(np, name)(x) if y is None else getattr(np, name)(x, y))
        return op(name, x, y)

    return call


def equal(a, b):
    a, b = (list(x) if isinstance(x, tuple) else [x] for x in (a, b))
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x, y)


def third(f):
    def of(x):
        return functional.jacobian(lambda u: functional.hessian(f, u), x)

    return of


@pytest.mark.parametrize(
    "derivative",
    [gradops.value_and_grad, lambda f: lambda x: functional.hessian(f, x), third],
    ids=["gradient", "hessian", "third"],
)
def test_filter_is_bitwise_equal_to_separate_ops(derivative):
    f = filter_of([0.3, -0.2, 0.5, 1.1])
    equal(*both(f, [-1.0, 0.3], derivative))


def test_forward_mode_and_products():
    f, v = filter_of([0.3, -0.2, 0.5]), np.array([0.7, -1.3])
    for derivative in (functional.jvp, functional.hvp):
        found, expected = both(f, [-1.0, 0.3], lambda g, d=derivative: lambda x: d(g, x, v))
        for a, b in zip(found, expected):
            np.testing.assert_allclose(a, b, rtol=1e-13)


def test_without_native_code(monkeypatch):
    monkeypatch.setattr(native.machine, "machine", lambda: None)
    f = filter_of([0.3, -0.2])
    compiled = jit(gradops.value_and_grad(lambda p: f(Logged(p), p)))
    found = compiled(np.array([-1.0, 0.3]))
    assert "none native" in compiled.explain()
    expected = gradops.value_and_grad(lambda p: f(Logged(p, True), p))(np.array([-1.0, 0.3]))
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a, b, rtol=1e-14)


def test_all_rules_have_scalar_operations_to_third_order():
    register()  # every trace does this first
    seen: set[NumberOperation] = set()
    wave = {what for what in OPERATIONS if isinstance(what, NumberOperation)}
    for _ in range(3):
        new: set[NumberOperation] = set()
        for what in wave - seen:
            for active in product((False, True), repeat=what.operands):
                exponents = [None, 2.0, 0.5, -1.0, 1.0, 0.0] if what.name == "power" and not active[1] else [None]
                for exponent in exponents:
                    rule = template(what, active, exponent)
                    rule.play(lambda made, *_: new.add(made), lambda i: i, range(3), 0, rule.constants)  # noqa: B023
        seen |= wave
        wave = new
    assert len(seen) > 30


def test_operations_are_created_once():
    assert plain_operation("add", 2, np.add) is plain_operation("add", 2, np.add)


def test_determinants_among_many_operations():
    """Each determinant is checked once its value is known; its error precedes any warning."""
    pytest.importorskip("llvmlite")

    def f(s, p):
        a, b = s.read(0), s.read(1)
        total = a
        for i in range(1, 61):
            det = s.op("subtract", a, 0.25 * i)
            parts = [s.op("divide" if s.one_by_one else "by_determinant", x, det) for x in (b, total)]
            total = s.op("add", s.op("multiply", total, 0.5), s.op("sin", s.op("add", *parts)))
        return s.tensor(total)

    equal(*both(f, [0.3, 0.7]))
    compiled = jit(gradops.value_and_grad(lambda p: f(Logged(p), p)))
    compiled(np.array([0.3, 0.7]))
    for singular in (0.25, 5.0, 15.0):
        with warnings.catch_warnings(), pytest.raises(gradops.errors.ArgumentError, match="singular"):
            warnings.simplefilter("error")
            compiled(np.array([singular, 0.7]))


# Results used outside of the log.


def test_gradients_hooks_and_tangents_of_results_without_later_operations():
    """The gradient of a result reaches its own node if only operations outside of the log use it."""

    def f(s, p):
        a, b = s.read(0), s.read(1)
        c = s.op("multiply", a, b)
        inner = s.tensor(c)
        end = ops.multiply(ops.exp(inner), s.tensor(s.op("sin", b)))
        seen = []
        inner.register_hook(lambda g: seen.append(g) or g * 3.0)
        (of_inner,) = autodiff.grad([end], [inner], retain_graph=True)
        (of_p,) = autodiff.grad([end], [p], retain_graph=True)
        (tangent,) = pushforward.push([end], [inner], [np.float64(1.5)])
        return ops.stack([of_inner.data, of_p[0].data, of_p[1].data, seen[-1].data, data_of(tangent)])

    x = np.array([0.4, -0.7])
    found, expected = [
        jit(lambda p, one=one: f(Logged(v := autodiff.Variable(p, requires_grad=True), one), v))(x)
        for one in (False, True)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize("asked", ["gradient", "hook", "tangent", "hook during a pass"])
def test_gradient_of_a_result_with_later_operations_is_refused(asked):
    """Only a part of its gradient would arrive, so the caller traces the function again without a log."""

    def f(p):
        s = Logged(v := autodiff.Variable(p, requires_grad=True), False)
        c = s.op("multiply", s.read(0), s.read(1))
        d = s.op("exp", c)
        inner, result = s.tensor(c), s.tensor(s.op("multiply", s.op("add", d, c), d))
        if asked == "gradient":
            autodiff.grad([result], [inner])
        elif asked == "hook":
            inner.register_hook(lambda g: None)
        elif asked == "tangent":
            pushforward.push([result], [inner], [np.float64(1.0)])
        else:
            y = ops.sin(result)
            y.register_hook(lambda g: inner.register_hook(lambda g: g * 3.0) and None)
            y.backward()
        return v.data

    with pytest.raises(PartialGradientError, match="later numbers were computed from"):
        jit(f)(np.array([0.4, -0.7]))


def test_stopped_value_next_to_its_original():
    def f(s, p):
        a = s.op("exp", s.read(0))
        stopped = flow.stop_gradient(s.tensor(a))
        b = s.op("multiply", a, stopped)
        return s.tensor(s.op("add", b, s.op("multiply", stopped, stopped)))

    equal(*both(f, [0.3]))
    value, gradient = both(f, [0.3])[0]
    np.testing.assert_allclose(gradient, np.exp(0.6), rtol=1e-14)


def test_custom_rules_between_scalar_operations():
    def f(s, p):
        a = s.op("exp", s.read(0))
        reversed_ = flow.scaled_gradient(s.tensor(a), -2.5)
        return s.tensor(s.op("multiply", s.op("log", reversed_), a))

    equal(*both(f, [0.3]))
    x = 0.3
    np.testing.assert_allclose(both(f, [x])[0][1], [-2.5 * 1 * np.exp(x) + x * np.exp(x)], rtol=1e-13)


def test_without_recording():
    def f(s, p):
        a = s.op("exp", s.read(0))
        s.tensor(a)  # R flushes its log before entering a scope
        with autodiff.no_grad():
            b = s.tensor(s.op("multiply", a, a))
        return s.tensor(s.op("multiply", a, b))

    equal(*both(f, [0.3]))


def test_values_without_derivatives():
    f = filter_of([0.3, -0.2])
    np.testing.assert_array_equal(*both(f, [-1.0, 0.3], lambda g: g))


def test_hard_points():
    x = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-320, 1e308, -2.0]
    for name in UNARY + BINARY:

        def f(s, p, name=name):
            found = []
            for i in range(len(x)):
                with np.errstate(all="ignore"):
                    found.append(
                        s.tensor(
                            s.op(name, s.read(i)) if name in UNARY else s.op(name, s.read(i), s.read(len(x) - 1 - i))
                        )
                    )
            return ops.sum(ops.stack(found) * np.arange(1.0, len(x) + 1))

        with np.errstate(all="ignore"):
            equal(*both(f, x))


def test_loop_bodies_have_no_log():
    def step(state, y):
        assert log(state) is None
        return state * y, None

    x = np.array([0.5, 0.25, 2.0, 1.5, 0.5])
    jit(gradops.value_and_grad(lambda p: ops.scan(step, p[0], p)[0]))(x)


def test_log_of_another_function_is_an_error():
    kept = []

    def f(s, p):
        kept.append((s, s.op("exp", s.read(0))))
        return s.tensor(s.op("exp", s.read(0)))

    with pytest.raises(gradops.errors.JitError, match="changed what it reads.*`kept"):
        both(f, [0.3])
    assert log(np.array([1.0])) is None
    s, x = kept[0]
    with pytest.raises(gradops.errors.JitError, match="no longer being traced"):
        s.op("exp", x)
        s.tensor(s.op("exp", x))


def test_memory_of_a_logged_operation():
    """Operations and their tape records are integers in arrays."""
    pytest.importorskip("llvmlite")  # without native code each step is source

    def f(s, p):
        x = s.read(0)
        for i in range(10_000):
            x = s.op("sin", s.op("multiply", x, 0.999))
            if i % 1000 == 999:  # R flushes its log in such batches
                s.log.record(s.words, s.new)
                s.words, s.new = [], []
        return s.tensor(x)

    compiled = jit(gradops.value_and_grad(lambda p: f(Logged(p), p)))
    x = np.array([0.5])
    tracemalloc.start()
    try:
        compiled(x)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 230 * compiled.program(x).steps


def density(x, mean, deviation):
    """The log density of a normal distribution, which branches on its arguments and takes one logarithm."""
    z = ops.divide(ops.subtract(x, mean), deviation)
    inside = ops.subtract(ops.multiply(-0.5, ops.multiply(z, z)), ops.log(deviation))
    return ops.where(ops.greater_equal(x, 0.5), inside, ops.multiply(2.0, inside))


@pytest.mark.parametrize("derivative", [gradops.value_and_grad, lambda f: lambda x: functional.hessian(f, x)])
def test_calls_of_a_function_share_their_equal_operations(derivative):
    data = [1.0, 0.25, 1.0, 2.0, -0.0, 0.0]

    def f(s, p):
        means = [s.op("sin", s.read(0)), s.read(2)]
        deviation = s.op("exp", s.read(1))
        total = s.op("multiply", deviation, 0.0)
        for i, x in enumerate(data * 10):
            total = s.op("add", s.op("sin", total), s.call(density, x, means[i % 4 // 2], deviation))
        return s.tensor(s.op("add", total, s.call(density, means[0], means[1], deviation)))

    found, expected = both(f, [0.5, -0.3, 1.1], derivative)
    for x, y in zip(found, expected) if isinstance(found, tuple) else [(found, expected)]:
        np.testing.assert_allclose(x, y, rtol=1e-12)


def test_equal_calls_of_a_function_are_one_in_the_program_and_on_the_tape():
    def steps(calls):
        def f(s, p):
            mean, deviation = s.read(0), s.op("exp", s.read(1))
            total = s.op("multiply", mean, 1.5)
            for i in range(calls):
                total = s.op("add", total, s.call(density, float(i % 5 + 1), mean, deviation))
            return s.tensor(total)

        compiled = jit(gradops.value_and_grad(lambda p: f(Logged(p), p)))
        x = np.array([0.5, -0.3])
        compiled(x)
        return compiled.program(x).steps

    # Each further call is an addition, and one of the sums of gradients at the five different calls.
    assert steps(205) - steps(105) <= 2 * 100


# Random programs.


def random_function(seed: int, steps: int):
    """Return a function of three numbers: logged operations, some on tensors that were computed by ops, stopped or
    scaled.
    """
    rng = random.Random(seed)
    plan = []
    for i in range(steps):
        kind = rng.random()
        choice = [rng.randrange(3 + i), rng.randrange(3 + i), round(rng.uniform(-2, 2), 3)]
        if kind < 0.2:
            plan.append(("unary", rng.choice(["exp", "log1p", "sin", "tanh", "negative", "sqrt", "abs"]), *choice))
        elif kind < 0.65:
            plan.append(("binary", rng.choice(["add", "subtract", "multiply", "divide"]), *choice))
        elif kind < 0.85:
            plan.append(("literal", rng.choice(["add", "multiply", "power"]), *choice))
        elif kind < 0.92:
            plan.append(("tensor", rng.choice(["cos", "stop", "reverse", "square"]), *choice))
        else:
            plan.append(("seen", "", *choice))

    def f(s, p):
        values = [s.op("tanh", s.read(i)) for i in range(3)]
        seen = []
        for kind, name, i, j, number in plan:
            x, y = values[i], values[j]
            if kind == "unary":
                x = s.op("add", s.op("multiply", x, x), 0.5) if name in ("log1p", "sqrt") else s.op("tanh", x)
                new = s.op(name, x)
            elif kind == "binary":
                y = s.op("add", s.op("multiply", y, y), 1.0) if name == "divide" else y
                new = s.op(name, x, y)
            elif kind == "literal":
                exponent = float(round(number))
                new = (
                    s.op(name, s.op("add", s.op("abs", x), 0.5), exponent) if name == "power" else s.op(name, x, number)
                )
            elif kind == "tensor":
                x = s.tensor(x)
                new = {
                    "cos": ops.cos,
                    "stop": flow.stop_gradient,
                    "reverse": lambda x: flow.scaled_gradient(x, -0.5),
                    "square": ops.square,
                }[name](x)
            else:
                seen.append(s.tensor(x))
                new = x
            values.append(new)
        total = values[0]
        for value in values[-4:]:
            total = s.op("add", total, s.op("tanh", value))
        total = s.tensor(total)
        for value in seen:
            total = total + 0.1 * ops.tanh(value)
        return total

    return f


def check_random(seed: int, steps: int):
    f = random_function(seed, steps)
    x = [0.3, -0.8, 1.2]
    for derivative in (gradops.value_and_grad, lambda f: lambda x: functional.hessian(f, x)):
        found, expected = both(f, x, derivative)
        for a, b in zip(*(v if isinstance(v, tuple) else (v,) for v in (found, expected))):
            np.testing.assert_allclose(
                a, b, rtol=1e-9, atol=1e-12 * max(1.0, float(np.max(np.abs(b)))), err_msg=str(seed)
            )


@pytest.mark.parametrize("seed", range(6))
def test_random_programs(seed):
    check_random(seed, 25)


@pytest.mark.parametrize("seed", range(4))
def test_blocks_of_any_length(seed, monkeypatch):
    """Short blocks and a short operation cache must give the results of the default sizes."""
    monkeypatch.setattr(tables, "LONGEST", 3)
    monkeypatch.setattr(tables, "_RECENT", 5)
    monkeypatch.setattr(native.lowering, "FEW", 1)
    monkeypatch.setattr(scalars, "LONGEST", 2)
    monkeypatch.setattr(scalars, "FEW", 2 * (seed % 2))
    monkeypatch.setattr(scalar_logs, "FEW", 2 * (seed % 2))
    monkeypatch.setattr(native.records, "FEW", 1)
    check_random(500 + seed, 25)


@pytest.mark.parametrize("few", [0, 1000])
def test_random_programs_without_native_code(few, monkeypatch):
    monkeypatch.setattr(native.machine, "machine", lambda: None)
    monkeypatch.setattr(scalars, "FEW", few)
    monkeypatch.setattr(scalar_logs, "FEW", few)
    check_random(700, 25)


def test_native_code_records_as_python_does(monkeypatch):
    """Same slots, values and gradients' flags of the same operations, among them copies and products with 1."""
    register()
    random, names = np.random.default_rng(3), ("add", "multiply", "negative", "exp")
    known = [COPY, *[what for what in NumberOperation.known if what.name in names]]
    whats = [known[i] for i in random.integers(0, len(known), 400)]
    rows = np.zeros((len(whats), 4), np.intc)
    for k, what in enumerate(whats):
        rows[k, : 1 + what.operands] = what.number, *random.integers(0, 2 + k // 4, what.operands)

    def recorded():
        program = Program()
        places = array("i", [program.literal(x, np.float64(x).tobytes()) for x in (1.0, 0.5)])
        active = array("b", [0, 1])
        records.record(program, rows, places, active)
        return places, active, list(program.table.words), list(map(float, program.values.numbers))

    native_record = recorded()
    monkeypatch.setattr(records.machine, "machine", lambda: None)
    assert str(native_record) == str(recorded())  # text, as NaN is not equal to itself


def test_failed_operation_leaves_no_trace():
    """After an error while logging, earlier operations are unchanged and later ones are correct."""
    pytest.importorskip("llvmlite")

    def f(s, p):
        a, b = s.read(0), s.read(1)
        for _ in range(native.records.FEW):
            a = s.op("multiply", s.op("exp", a), 0.3)
        s.tensor(a)
        words = s.log.program.table.words[:]
        wrong = s.op("by_determinant", s.op("sin", b), s.op("subtract", b, b))
        with pytest.raises(gradops.errors.ArgumentError, match="singular"):
            s.tensor(wrong)
        assert s.log.program.table.words[: len(words)] == words
        t = Logged(s.p)
        return t.tensor(t.op("multiply", t.op("sin", t.read(1)), t.op("exp", t.read(0))))

    x = np.array([0.4, 0.7])
    found = jit(gradops.value_and_grad(lambda p: f(Logged(p), p)))(x)
    np.testing.assert_allclose(found[0], np.sin(0.7) * np.exp(0.4), rtol=1e-14)
    np.testing.assert_allclose(found[1], [np.sin(0.7) * np.exp(0.4), np.cos(0.7) * np.exp(0.4)], rtol=1e-14)


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(300))
def test_many_random_programs(seed):
    check_random(seed, 10 + seed % 60)
