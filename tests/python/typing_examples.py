"""Examples for type checkers; never run. ``# error: CODE`` marks a mistake, with mypy's error code."""

# ruff: noqa: B015, B018, C416

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import assert_type

import gradops
import gradops.numpy as gnp
from gradops import Parameter, Variable, functional, inference, ops
from gradops.annotations import Number
from gradops.autodiff import backward, no_grad

Floats = NDArray[np.float64]

# Variables: operators.
v = Variable([1.0, 2.0], requires_grad=True)
a: Floats = np.array([1.0, 2.0])
i = np.array([1, 2])
assert_type(v * 2, Variable)
assert_type(2 * v, Variable)
assert_type(v + a, Variable)
assert_type(v - [1.0, 2.0], Variable)
assert_type(1.0 / v, Variable)
assert_type(v**2, Variable)
assert_type(v @ v, Variable)
assert_type(-v, Variable)
assert_type(+v, Variable)
assert_type(abs(v), Variable)
assert_type(round(v, 2), Variable)
assert_type(v // 2, Variable)
assert_type(v % 2, Variable)
assert_type(divmod(v, 2), tuple[Variable, Variable])
assert_type(v > 0, Variable)
assert_type(v == 1.0, Variable)
assert_type(v != a, Variable)
assert_type(~(v > 0), Variable)
assert_type((v > 0) & (v < 2), Variable)
assert_type(np.float64(2.0) * v, Variable)
v + None  # error: operator
v * object()  # error: operator
v @ {}  # error: operator
None - v  # error: operator
v < {1.0}  # error: operator
v << "a"  # error: operator

w = v
w += 1.0
w *= a
assert_type(w, Variable)
w -= None  # error: arg-type

# Elements.
assert_type(v[0], Variable)
assert_type(v[1:], Variable)
assert_type(v[..., None], Variable)
assert_type(v[v > 0], Variable)
v[0] = 1.0
v[:] = a
assert_type(len(v), int)
assert_type([x for x in v], list[Variable])
assert_type(float(v[0]), float)
assert_type(v.item(), Any)

# Attributes and methods.
assert_type(v.grad, Variable | None)
assert_type(v.requires_grad, bool)
assert_type(v.shape, tuple[int, ...])
assert_type(v.ndim, int)
assert_type(v.T, Variable)
assert_type(v.real, Variable)
assert_type(v.sum(), Variable)
assert_type(v.sum(axis=0, keepdims=True), Variable)
assert_type(v.mean(0), Variable)
assert_type(v.std(ddof=1), Variable)
assert_type(v.reshape(2, 1).sum(-1), Variable)
assert_type(v.reshape((2, 1)), Variable)
assert_type(v.max(), Variable)
assert_type(v.argmax(), Variable)
assert_type(v.astype("float32"), Variable)
assert_type(v.clip(0.0, 1.0), Variable)
assert_type(v.dot(a), Variable)
assert_type(v.nonzero(), tuple[Variable, ...])
assert_type(v.detach(), Variable)
assert_type(v.exp().log().sqrt(), Variable)
assert_type(v.copy(), Variable)
v.sum().backward()
v.sort()
v.gard  # error: attr-defined
v.sum(axes=0)  # error: call-arg
v.sum(axis="rows")  # error: arg-type
v.mean(keepdims=None)  # error: arg-type
v.sort().sum()  # error: func-returns-value
v.requires_grad_("yes")  # error: arg-type
v.expand_dims()  # error: call-arg
if v.grad is not None:
    assert_type(v.grad.numpy(), NDArray[Any])
v.grad.numpy()  # error: union-attr
Variable([1.0], require_grad=True)  # error: call-arg
Parameter("Be brief.", role="instruction")
assert_type(Parameter("x") + "y", Variable)

# NumPy functions, typed by NumPy's own stubs.
np.sin(v)
np.add(v, 2.0)
np.sum(v, axis=0)
np.mean(v)
np.dot(v, a)
np.stack([v, v])
np.linalg.norm(v)
np.where(v > 0, v, 0.0)
gnp.exp(v)
gnp.zeros(3)

# Ops: an array in, an array of the same library out.
assert_type(ops.exp(v), Variable)
assert_type(ops.exp(a), NDArray[Any])
assert_type(ops.exp(i), NDArray[Any])
assert_type(ops.exp(1.0), Number)
assert_type(ops.exp([1.0, 2.0]), Number)
assert_type(2 - ops.exp(1.0), Number)
assert_type(ops.exp(1.0) * v, Variable)
assert_type(v / ops.exp(1.0), Variable)
assert_type(ops.exp(ops.exp(1.0)), Number)
assert_type(float(ops.exp(1.0)), float)
ops.exp(1.0).gard  # error: attr-defined
ops.exp(1.0) + "a"  # error: operator
assert_type(ops.sum(v), Variable)
assert_type(ops.sum(v, axis=(0, 1)), Variable)
assert_type(ops.add(v, 2.0), Variable)
assert_type(ops.add(2.0, v), Variable)
assert_type(ops.add(a, v), Variable)
assert_type(ops.add(v, a), Variable)
assert_type(ops.add(a, a), NDArray[Any])
assert_type(ops.matmul(a, v), Variable)
ops.where(v > 0, v, 0.0)
assert_type(ops.reshape(v, (2, 1)), Variable)
assert_type(ops.reshape(a, -1), NDArray[Any])
assert_type(ops.clip(v, 0.0, 1.0), Variable)
assert_type(ops.nn.relu(v), Any)
assert_type(ops.shape(v), tuple[int, ...])
assert_type(ops.ndim(a), int)
assert_type(ops.dtype(a), str)
ops.stack([v, v])
ops.concatenate([v, a], axis=-1)
ops.einsum("i,i->", v, v)
ops.pad(v, [(1, 1)])
ops.exp("text")  # error: call-overload
ops.exp(v, v)  # error: call-overload
ops.exp()  # error: call-overload
ops.sum(v, axis="rows")  # error: arg-type
ops.add(v)  # error: call-overload
ops.add(None, None)  # error: call-overload
ops.sun(v)  # error: attr-defined
ops.reshape(v, "ij")  # error: arg-type


class Tensor:
    """A tensor of a library."""

    shape: tuple[int, ...]
    dtype: str


t = Tensor()
assert_type(ops.exp(t), Tensor)
assert_type(ops.sum(t, 0), Tensor)
assert_type(ops.add(t, 2.0), Tensor)
assert_type(ops.add(t, t), Tensor)
assert_type(ops.multiply(a, t), Tensor)


# Derivatives: functions of the same arguments.
def loss(w: Floats, scale: float = 1.0, *, power: int = 2) -> float:
    return float(scale * np.sum(w**power))


assert_type(loss(a), float)
assert_type(gradops.grad(loss)(a), Floats)
assert_type(gradops.grad(loss)(a, 2.0, power=3), Floats)
assert_type(gradops.value_and_grad(loss)(a), tuple[float, Floats])
assert_type(gradops.grad(loss, argnums=1)(a, 2.0), Any)
assert_type(gradops.grad(loss, (0, 1))(a, 2.0), Any)
assert_type(gradops.grad(loss, "w")(w=a), Any)
assert_type(gradops.grad(loss)(w=a, scale=2.0), Floats)
assert_type(gradops.value_and_grad(loss)(w=a), tuple[float, Floats])
assert_type(gradops.hessian(loss)(a), Floats)
assert_type(gradops.hessian(loss)(w=a, power=3), Floats)
assert_type(gradops.hessian(loss, "w")(a), Any)
assert_type(gradops.jacobian(loss)(a, power=2), Any)
gradops.grad(lambda x: np.sum(x**2))(a)
gradops.grad(gradops.grad(lambda x: x**3))(2.0)
slope: Callable[[float], float] = gradops.grad(lambda x: x**3)
gradops.grad(loss)("a")  # error: call-overload
gradops.grad(loss)(a, 2.0, 3.0)  # error: call-overload
gradops.grad(loss)(a, powr=2)  # error: call-overload
gradops.grad(loss, 1)(a, "b")  # error: arg-type
gradops.grad(3)  # error: call-overload
gradops.grad(loss, has_auks=True)  # error: call-overload
gradops.grad(loss)(a).backward()  # error: attr-defined
gradops.hessian(loss)("a")  # error: call-overload

value, pullback = gradops.vjp(loss, a)
assert_type(value, float)
assert_type(pullback(1.0), tuple[Any, ...])
assert_type(gradops.jvp(loss, (a,), (a,)), tuple[float, float])
gradops.vjp(3, a)  # error: call-overload
assert_type(functional.hessian(loss, a), Any)


# Decorators and attributes that preserve signatures.
@gradops.jit
def step(w: Floats, rate: float) -> Floats:
    return w - rate * gradops.grad(loss)(w)


assert_type(step(a, 0.1), Floats)
assert_type(step.explain(), str)
assert_type(gradops.jit(gradops.value_and_grad(loss))(a), tuple[float, Floats])
assert_type(gradops.vmap(step)(a, 0.1), Floats)
assert_type(gradops.checkpoint(step)(a, rate=0.1), Floats)
assert_type(gradops.checkpoint(step, gradops.save_only_these_names("a"))(gradops.checkpoint_name(a, "a"), 0.1), Floats)
gradops.jit(lambda x: x)(a)
gradops.vmap(lambda x: x * 2)(a)
step(a)  # error: call-arg
step("a", 0.1)  # error: arg-type
step(a, 0.1).gard  # error: attr-defined
step.explained()  # error: attr-defined
gradops.vmap(step)(a)  # error: call-arg
gradops.checkpoint(step)(a, "b")  # error: arg-type
gradops.jit(step, static_argnum=1)  # error: call-arg


class Model:
    """A class with a compiled method."""

    w: Floats

    @gradops.jit
    def predict(self, x: Floats) -> Floats:
        return x @ self.w


assert_type(Model().predict(a), Floats)
Model().predict(a).gard  # error: attr-defined


# Functions with custom derivatives.
@gradops.custom_gradient
def doubled(x: Floats) -> tuple[Floats, Callable[..., Any]]:
    return 2 * x, lambda upstream: 2 * upstream


@gradops.custom_jvp
def cubed(x: Floats) -> Floats:
    return x**3


@cubed.defjvp
def _rule(primals: Any, tangents: Any) -> Any:
    return primals[0] ** 3, 3 * primals[0] ** 2 * tangents[0]


assert_type(doubled(a), Floats)
assert_type(cubed(a), Floats)
assert_type(gradops.custom_gradient(step, lambda w, rate, upstream: (upstream, None))(a, 0.1), Floats)
gradops.custom_gradient(lambda x: (x, lambda upstream: upstream))(a)
assert_type(gradops.stop_gradient(v), Variable)
assert_type(gradops.scaled_gradient(a, 0.5), Floats)
gradops.scaled_gradient(a, [0.5, 1.0])
gradops.scaled_gradient(a, "a")  # error: arg-type
gradops.scaled_gradient_ext(a, scale=None)  # error: arg-type
doubled("a")  # error: arg-type
doubled(a, a)  # error: call-arg
cubed(a).gard  # error: attr-defined
gradops.stop_gradient(v).gard  # error: attr-defined

with no_grad():
    backward(v.sum())


@no_grad
def update(w: Floats, rate: float) -> Floats:
    return w - rate * w


assert_type(update(a, 0.1), Floats)
update(a)  # error: call-arg


# Fits: numbers for numbers, arrays for arrays.
def nll(p: Any) -> Any: ...


found = inference.fit(nll, {"m": 0.0})
assert_type(found.params["m"], np.float64)
assert_type(found.bse["m"], np.float64)
assert_type(inference.fit(nll, {"m": [0.0, 1.0]}).params["m"], Floats)
assert_type(inference.fit(nll, {"m": a, "s": 1.0}, random="m", nobs=3).params["s"], Number)
assert_type(inference.fit(nll, {"m": {"a": 0.0}}).params["m"], Any)
inference.fit(nll, {"m": 0.0}, nobss=3)  # error: call-overload
found.params["m"].gard  # error: attr-defined
