"""Random nests of scopes, custom gradients, checkpoints and in-place writes, and a slow interpreter for them.

The interpreter is the oracle. Its values are immutable: a write makes a new one, so nothing can be stale; a scope is a
flag; a gradient walks over everything a value was made from, newest first.
"""

from __future__ import annotations

import contextlib
import itertools

import numpy as np

import gradops
from gradops import autodiff, ops

SIZE = 3
CONSTANTS = {"stop": gradops.stop_gradient_scope, "no_grad": autodiff.no_grad}
KEEPING = {"checkpoint": gradops.gradient_checkpoint_scope, "enable_grad": autodiff.enable_grad}
SCOPES = {**CONSTANTS, **KEEPING}


class Left(Exception):
    """Raised to leave a scope of a nest by an error."""


def nest(seed: int, length: int = 14, features=("write", "no_grad", "checkpoint")) -> list:
    """Return a random program on two registers of 3 numbers: a list of statements, some with a body of their own."""
    rng = np.random.default_rng(seed)
    return _body(rng, length, 2, 0, features)[0]


def _body(rng, length: int, count: int, depth: int, features, recording: bool = True) -> tuple[list, int]:
    statements: list = []
    while len(statements) < length:
        kind = str(rng.choice(KINDS, p=WEIGHTS))
        a, b = (int(rng.integers(max(0, count - 5), count)) for _ in range(2))
        if kind in ("scope", "error") and depth < 3:
            names = ["stop", *(n for n in ("no_grad", "checkpoint") if n in features)]
            if not recording and "no_grad" in features and depth:
                names.append("enable_grad")
            name = str(rng.choice(names))
            inside = recording and name not in CONSTANTS or name == "enable_grad"
            body, made = _body(rng, int(rng.integers(1, 5)), count, depth + 1, features, inside)
            statements.append((kind, name, body))
            count += made
        elif kind == "call" and depth < 3:
            body, _ = _body(rng, int(rng.integers(1, 5)), count + 1, depth + 1, (), recording)
            statements.append((kind, str(rng.choice(["checkpoint", "grad"])), body, a))
            count += 1
        elif kind == "write":
            if "write" in features:
                statements.append((kind, a, b, str(rng.choice(["set", "add", "multiply"]))))
        elif kind not in ("scope", "error", "call") and (recording or kind != "view"):  # a view is a constant there
            statements.append((kind, a, b, float(rng.choice([-2.0, 0.5, 3.0]))))
            count += 1
    return statements, sum(map(_made, statements))


def _made(statement: tuple) -> int:
    if statement[0] in ("scope", "error"):
        return sum(map(_made, statement[2]))
    return statement[0] != "write"


KINDS = "add multiply sin tanh custom pair scaled stopped clone view scope error call write".split()
WEIGHTS = np.array([3, 4, 3, 2, 3, 2, 2, 1, 2, 2, 4, 1, 3, 4]) / 36


# With gradops -----------------------------------------------------------------------------------------------------


@gradops.custom_gradient
def custom(x):
    e = ops.exp(ops.tanh(x))
    return ops.sin(x), lambda upstream: upstream * e * 3.0


@gradops.custom_gradient
def pair(x, y):
    return ops.tanh(x * y), lambda upstream: (upstream * 5.0, upstream * x)


OPERATIONS = {
    "add": lambda x, y, k: x + y * k,
    "multiply": lambda x, y, k: ops.tanh(x * y),
    "sin": lambda x, y, k: ops.sin(x * k),
    "tanh": lambda x, y, k: ops.tanh(x),
    "custom": lambda x, y, k: custom(x),
    "pair": lambda x, y, k: pair(x, y),
    "scaled": lambda x, y, k: gradops.scaled_gradient(x, k),
    "stopped": lambda x, y, k: gradops.stop_gradient(x) * k,
    "clone": lambda x, y, k: ops.copy(x),
    "view": lambda x, y, k: x[:],
}


def run(statements: list, registers: list) -> None:
    """Execute a program with gradops on variables or tensors and append the results."""
    for kind, *rest in statements:
        if kind == "scope":
            with SCOPES[rest[0]]():
                run(rest[1], registers)
        elif kind == "error":
            with contextlib.suppress(Left), SCOPES[rest[0]]():
                run(rest[1], registers)
                raise Left
        elif kind == "call":
            how, body, a = rest

            def f(v, body=body, now=tuple(registers)):  # a checkpoint calls it again later
                inner = [*now, v]
                run(body, inner)
                return ops.copy(inner[-1])  # the result shares no memory with what the function closes over

            x = registers[a]
            registers.append(gradops.checkpoint(f)(x) if how == "checkpoint" else gradops.grad(_summed(f))(x))
        elif kind == "write":
            a, b, how = rest
            target, source = registers[a], registers[b]
            if how == "set":
                target[0:2] = ops.copy(source)[1:3]  # PyTorch cannot copy between overlapping parts of a tensor
            elif how == "add":
                target += source
            else:
                target *= source
        else:
            a, b, k = rest
            registers.append(OPERATIONS[kind](registers[a], registers[b], k))


def _summed(f):
    return lambda v: ops.sum(f(v))


def loss(statements: list, inputs: list):
    """Return the weighted sum of all registers."""
    registers = [ops.copy(x) for x in inputs]
    run(statements, registers)
    return weighted(registers, ops.sum)


def weighted(values: list, sum):
    total = 0.0
    for i, x in enumerate(values):
        total = total + sum(x * (1.0 + 0.1 * i))
    return total


# Without ----------------------------------------------------------------------------------------------------------


class Value:
    """Numbers with their origin: pairs of a parent and how an upstream gradient is passed back to it."""

    clock = itertools.count()
    recording = True

    def __init__(self, numbers, *parents):
        self.numbers = np.asarray(numbers, float)
        self.parents = parents if Value.recording else ()
        self.age = next(Value.clock)

    def __add__(self, other):
        other = value(other)
        return Value(self.numbers + other.numbers, (self, lambda g: g), (other, lambda g: g))

    def __mul__(self, other):
        other = value(other)
        return Value(self.numbers * other.numbers, (self, lambda g: g * other), (other, lambda g: g * self))

    __radd__, __rmul__ = __add__, __mul__

    def __getitem__(self, key):
        return Value(self.numbers[key], (self, lambda g: g.spread(key)))

    def spread(self, key):
        numbers = np.zeros(SIZE)
        numbers[key] = self.numbers
        return Value(numbers, (self, lambda g: g[key]))


def value(x):
    return x if isinstance(x, Value) else Value(np.broadcast_to(float(x), SIZE))


def sin(x):
    return Value(np.sin(x.numbers), (x, lambda g: g * sin(x + np.pi / 2)))


def exp(x):
    return Value(np.exp(x.numbers), (x, lambda g: g * exp(x)))


def tanh(x):
    return Value(np.tanh(x.numbers), (x, lambda g: g * (tanh(x) * tanh(x) * -1.0 + 1.0)))


def own(numbers, *parents):
    """Return a value whose gradient rule is not its natural derivative."""
    return Value(numbers, *parents)


SLOW = {
    "add": lambda x, y, k: x + y * k,
    "multiply": lambda x, y, k: tanh(x * y),
    "sin": lambda x, y, k: sin(x * k),
    "tanh": lambda x, y, k: tanh(x),
    "custom": lambda x, y, k: own(np.sin(x.numbers), (x, lambda g: g * exp(tanh(x)) * 3.0)),
    "pair": lambda x, y, k: own(np.tanh(x.numbers * y.numbers), (x, lambda g: g * 5.0), (y, lambda g: g * x)),
    "scaled": lambda x, y, k: own(x.numbers, (x, lambda g: g * k)),
    "stopped": lambda x, y, k: Value(x.numbers * k),
    "clone": lambda x, y, k: own(x.numbers, (x, lambda g: g)),
}


class Memory:
    """The value written last, shared by a register and its views."""

    def __init__(self, x: Value):
        self.x = x


@contextlib.contextmanager
def records(on: bool):
    before, Value.recording = Value.recording, on
    try:
        yield
    finally:
        Value.recording = before


def interpret(statements: list, registers: list) -> None:
    for kind, *rest in statements:
        if kind in ("scope", "error"):
            name, body = rest
            with records(name == "enable_grad" or Value.recording and name not in CONSTANTS):
                interpret(body, registers)
        elif kind == "call":
            how, body, a = rest
            x = registers[a].x
            if how == "checkpoint":
                found = _called(body, registers, x)
            else:
                with records(True):
                    v = Value(x.numbers, (x, lambda g: g))
                    y = _called(body, registers, v)
                    found = gradients(y, value(1.0), [v])[0]
                if not Value.recording:
                    found = Value(found.numbers)
            registers.append(Memory(found))
        elif kind == "write":
            a, b, how = rest
            x, y = registers[a].x, registers[b].x
            if how == "set":
                y = y[1:3].spread(slice(0, 2)) + x[2:3].spread(slice(2, 3))
            made = y if how == "set" else x + y if how == "add" else x * y
            registers[a].x = made if Value.recording else _renumbered(x, made)
        elif kind == "view":
            registers.append(registers[rest[0]])
        else:
            a, b, k = rest
            registers.append(Memory(SLOW[kind](registers[a].x, registers[b].x, k)))


def _renumbered(x: Value, made: Value) -> Value:
    """Write without recording, as in PyTorch: new numbers at the same node of the graph."""
    with records(True):
        return Value(made.numbers, (x, lambda g: g))


def _called(body: list, registers: list, x: Value) -> Value:
    inner = [*registers, Memory(x)]
    interpret(body, inner)
    return SLOW["clone"](inner[-1].x, None, None)


def gradients(y: Value, seed: Value, xs: list[Value]) -> list[Value]:
    """Return the gradients of ``sum(y * seed)``, themselves differentiable if recorded."""
    arrived, waiting = {id(y): seed}, {id(y): y}
    while waiting:
        x = max(waiting.values(), key=lambda v: v.age)
        del waiting[id(x)]
        for parent, pull in x.parents:
            g = pull(arrived[id(x)])
            arrived[id(parent)] = arrived[id(parent)] + g if id(parent) in arrived else g
            waiting[id(parent)] = parent
    return [arrived.get(id(x), value(0.0)) for x in xs]


def slow_derivatives(statements: list, inputs: list) -> tuple:
    """Return the loss, its gradients, and the gradients of their weighted sum."""
    leaves = [Value(x) for x in inputs]
    registers = [Memory(Value(x.numbers, (x, lambda g: g))) for x in leaves]
    interpret(statements, registers)
    total = weighted([r.x for r in registers], lambda x: x)
    first = gradients(total, value(1.0), leaves)
    second = gradients(weighted(first, lambda x: x), value(1.0), leaves)
    return total.numbers.sum(), [g.numbers for g in first], [g.numbers for g in second]
