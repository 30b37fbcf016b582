"""Random loops built from a seed: nested, with branches, gradient rules and closures."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradops
from gradops import ops

SHAPES = ((), (2,), (2, 2))
UNARY = ("sin", "cos", "tanh", "sigmoid", "arctan", "square", "abs", "negative", "exp", "erf", "softplus", "lgamma")
BINARY = ("add", "subtract", "multiply", "maximum", "logaddexp")
OF_ROWS = ("softmax", "log_softmax", "cumsum")

reversed_ = gradops.custom_gradient(lambda x: (x * 1.0, lambda upstream: upstream * -2.0))


@gradops.custom_gradient
def unnatural(x):
    return ops.tanh(x), lambda upstream: upstream * ops.cos(x)


RULES = (reversed_, unnatural, gradops.stop_gradient, lambda x: gradops.scaled_gradient(x, 0.5))


class Loops:
    """A function of ``inputs`` (a vector and a matrix), rebuilt with the same choices at each call.

    Args:
        depth: of loops and branches within each other.
    """

    def __init__(self, seed: int, depth: int = 2):
        self.seed, self.depth = seed, depth
        rng = np.random.default_rng(seed)
        self.inputs = [rng.normal(size=(2,)), rng.normal(size=(2, 2))]

    def __call__(self, *inputs):
        rng = np.random.default_rng(self.seed + 1)
        state = self._statement(rng, [inputs[0], inputs[1], ops.sum(inputs[0])], list(inputs), self.depth)
        return sum(ops.sum(x * float(rng.normal())) for x in state)

    def _statement(self, rng, state: list, outside: list, depth: int) -> list:
        """Return the next state, with the same shapes."""
        choices = rng.integers(2**32, size=8)
        kind = rng.choice(["plain", "scan", "cond", "while", "several", "for"]) if depth else "plain"
        again = lambda i: np.random.default_rng(choices[i])  # noqa: E731
        if kind == "several":
            return self._statement(
                again(1), self._statement(again(0), state, outside, depth - 1), [*outside, *state], depth - 1
            )
        if kind == "cond":
            return ops.cond(
                ops.sum(state[0]) + float(rng.normal()) > ops.sum(outside[-1]) * 0.1,
                lambda: self._statement(again(0), state, outside, depth - 1),
                lambda: self._statement(again(1), state, [*outside, *state], depth - 1),
            )
        if kind == "scan":
            count = int(rng.integers(4, 7))
            rows = rng.normal(size=(count, *SHAPES[rng.integers(3)]))
            if rng.random() < 0.5:
                rows = ops.multiply(rows, ops.mean(outside[0]))

            def step(state, row):
                new = self._statement(again(0), state, [*outside, row], depth - 1)
                return new, [new[again(1).integers(len(new))], ops.sum(state[0]) * ops.sum(row)]

            state, ys = ops.scan(step, state, rows, reverse=bool(rng.random() < 0.5))
            return [*state[:-1], ops.tanh(state[-1] + ops.mean(ys[0]) - ops.mean(ys[1]))]
        if kind == "for":
            lower, count = (int(n) for n in rng.integers((-3, 4), (3, 7)))
            rows = ops.multiply(rng.normal(size=(9, 2)), ops.mean(outside[-1]))

            def numbered(i, state):
                at = ops.multiply(i, int(again(1).integers(1, 3))) % 2
                here = [*outside, rows[i], rows[1 - i, at], rows[:, at][0], ops.cast(i, "float64") * 0.2]
                first, *rest = self._statement(again(0), state, here, depth - 1)
                written = ops.scatter_update(
                    first, ops.reshape(at, (1, 1)), ops.reshape(first[1 - at] * rows[i, at], (1,))
                )
                return [written, *rest]

            return ops.fori_loop(lower, lower + count, numbered, state)
        if kind == "while":

            def body(n, *state):
                return (n + 1.0, *self._statement(again(0), list(state), outside, depth - 1))

            bound = float(rng.integers(1, 6))
            found = ops.while_loop(
                lambda n, *state: n + 0.1 * ops.tanh(ops.sum(state[0])) < bound, body, (0.0, *state), 8
            )
            return list(found[1:])
        return [self._expression(again(i), x, [*state, *outside]) for i, x in enumerate(state)]

    def _expression(self, rng, like, pool: list) -> Any:
        """Return an expression of the shape of ``like`` that uses a few of ``pool``."""
        x = like
        for _ in range(rng.integers(1, 4)):
            other = pool[rng.integers(len(pool))]
            if ops.shape(other) != ops.shape(like) and ops.shape(other) != ():
                other = ops.mean(other)
            x = getattr(ops, str(rng.choice(BINARY)))(x, other)
            name = str(rng.choice(UNARY))
            x = getattr(ops, name)(ops.tanh(x) + 2.0 if name == "lgamma" else ops.clip(x, -9.0, 9.0))
            if rng.random() < 0.15:
                x = RULES[rng.integers(len(RULES))](x)
            if ops.shape(x) == (2, 2) and rng.random() < 0.3:
                x = ops.matmul(x, like)
            if ops.shape(x) and rng.random() < 0.3:
                axis = int(rng.integers(len(ops.shape(x))))
                more = rng.random() < 0.5
                x = (
                    x - ops.logsumexp(x, axis, keepdims=True)
                    if more
                    else getattr(ops, str(rng.choice(OF_ROWS)))(x, axis)
                )
        return ops.tanh(x)
