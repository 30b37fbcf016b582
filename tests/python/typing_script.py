"""A script as a user writes it, without a mistake under mypy and pyright in strict mode; ``test_typing.py`` runs it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from typing_extensions import assert_type

import gradops
from gradops import Variable, config, errors, functional, inference, ops
from gradops.annotations import Number
from gradops.autodiff import no_grad

Floats = NDArray[np.float64]
Parameters = Mapping[str, Variable]

rng = np.random.default_rng(1)
x: Floats = rng.normal(size=(50, 2))
y: Floats = x @ np.array([1.0, -2.0]) + 0.1 * rng.normal(size=50)


# Derivatives of functions of arrays and of numbers.
def mean_square(w: Floats, power: int = 2) -> float:
    residuals: Floats = ops.subtract(y, ops.matmul(x, w))
    return float(ops.mean(ops.power(ops.abs(residuals), power)))


def quadratic(w: Floats) -> Floats:
    residuals = ops.subtract(y, ops.matmul(x, w))
    return ops.mean(ops.square(residuals))


def quartic(t: float) -> float:
    return t**4


start: Floats = np.zeros(2)
slope = gradops.grad(quadratic)(start)
assert_type(slope, Floats)
value, slope = gradops.value_and_grad(quadratic)(start)
curvature = gradops.hessian(quadratic)(start)
assert_type(curvature, Floats)
w = start - np.linalg.solve(curvature, slope)
error: float = float(np.abs(w - np.linalg.lstsq(x, y)[0]).max())
assert error < 1e-10 and mean_square(w) < mean_square(start)
assert_type(gradops.hessian(quartic)(2.0), Number)
assert float(gradops.hessian(quartic)(2.0)) == 48.0

# Numbers, and what ops make of them.
one = ops.exp(0.0)
assert_type(one, Number)
assert_type(2 * one + 1, Number)
assert_type(one * x, Floats)
assert_type(one * Variable(1.0), Variable)
three: float = float(2 * one + 1)
if one > 0.5:
    three += 0.0

# The tape.
v = Variable(start, requires_grad=True)
loss = ops.mean(ops.subtract(y, ops.matmul(x, v)) ** 2)
assert_type(loss, Variable)
loss.backward()
if v.grad is not None:
    assert np.allclose(v.grad.numpy(), slope)
with no_grad():
    v -= 0.1 * v


# Compiled functions keep their signature.
@gradops.jit
def step(w: Floats, rate: float) -> Floats:
    return w - rate * gradops.grad(quadratic)(w)


for _ in range(3):
    w = step(w, 0.1)
report: str = step.explain()
reversed_: Floats = gradops.scaled_gradient(w, -1.0)
constant: Floats = gradops.stop_gradient(w)
total = functional.objective(quadratic)


# A fit: numbers for numbers, arrays for arrays.
def nll(p: Parameters) -> Variable:
    scaled = ops.subtract(y, ops.matmul(x, p["beta"])) / ops.exp(p["log_sd"])
    return ops.sum(0.5 * scaled**2 + p["log_sd"])


def single_loss(p: Parameters) -> Variable:
    return ops.sum((p["m"] - y) ** 2)


single = inference.fit(single_loss, {"m": 0.0})
assert_type(single.params["m"], np.float64)
assert_type(inference.fit(single_loss, {"m": [0.0]}).params["m"], Floats)
found = inference.fit(nll, {"beta": start, "log_sd": 0.0}, nobs=50)
assert_type(found.params["beta"], Number)
intervals: Floats = found.conf_int(alpha=0.1)
print(found.summary(), found.bic, intervals.shape, sep="\n")

# Settings and errors.
with config.lost_gradients_scope("error"):
    try:
        ops.sum(x, axis=2)
    except errors.AxisError as failure:
        print(failure.argument, failure.position)
