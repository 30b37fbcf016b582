"""Checks of every op on every backend, from one description of its inputs.

A ``Case`` says how to make inputs and what the result must be. For inputs drawn by hypothesis, the parity test checks
values and dtype on each backend against the reference, the tape's gradient against the autodiff of PyTorch, JAX and
TensorFlow through the same op, and the tape's second gradient against that of JAX or PyTorch.
"""

from __future__ import annotations

import functools
import itertools
import os
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings

from gradops import Variable, autodiff, backends, config, ops

BACKENDS = tuple(
    filter(backends.installed, os.environ.get("GRADOPS_TEST_BACKENDS", "numpy torch jax tensorflow").split())
)
SHAPES = ((2, 3), (), (4, 2, 3), (3,), (1, 3), (2, 1, 3), (1,), (3, 1))
_salts = itertools.count()
_three = settings(
    max_examples=3,
    phases=[Phase.generate],
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def _copied(value):
    if isinstance(value, (list, tuple)):
        return type(value)(map(_copied, value))
    return value.copy("K") if isinstance(value, np.ndarray) else value


@dataclass(frozen=True)
class Case:
    """One op under one kind of input.

    Attributes:
        op: the op's name in ``gradops.ops`` (``"image.resize"``).
        inputs: a strategy of keyword arguments; tensor arguments as NumPy arrays (or lists of them).
        reference: NumPy's or SciPy's function of the same keyword arguments; ``np.<op>`` by position if None.
        gradients: names of the arguments to differentiate; empty for ops without derivative.
        native: the backends whose own autodiff is an oracle for the gradient. Leave out a backend with another
            convention, with a comment at the case and a row in docs/differences.md.
        second: the backends whose own autodiff is an oracle for the second gradient; if empty, it is checked
            against finite differences of the first gradient.
        rtol, atol: tolerances of values; gradients have ten times these.
        label: distinguishes cases of one op.
        same_dtype: whether the result's dtype must equal the reference's on all backends.
        by_value: whether the op depends on values, which a compiled program does not know.
        using: called with the inputs instead of the op, if these are not the op's arguments (variadic ops).
    """

    op: str
    inputs: st.SearchStrategy[dict[str, Any]]
    reference: Callable | None = None
    gradients: Sequence[str] = ()
    native: Sequence[str] = ("torch", "jax", "tensorflow")
    second: Sequence[str] = ("jax",)
    rtol: float = 1e-6
    atol: float = 1e-8
    label: str = ""
    same_dtype: bool = True
    skip: dict[str, str] = field(default_factory=dict)
    by_value: bool = False
    using: Callable | None = None

    @property
    def id(self) -> str:
        return f"{self.op}-{self.label}" if self.label else self.op

    @functools.cached_property
    def _drawn(self) -> list[dict[str, Any]]:
        """The first examples that hypothesis draws, the simplest one first."""
        found: list[dict[str, Any]] = []
        seed(zlib.crc32(self.id.encode()))(_three(given(self.inputs)(lambda arguments: found.append(arguments))))()
        return found

    def examples(self, count: int) -> list[dict[str, Any]]:
        """Return up to three examples of the inputs, the same ones for every test, with arrays of their own."""
        return [{name: _copied(value) for name, value in each.items()} for each in self._drawn[:count]]

    def example(self) -> dict[str, Any]:
        """Return the first example of the inputs."""
        return self.examples(1)[0]

    def function(self) -> Callable:
        if self.using is not None:
            return self.using
        target: Any = ops
        for part in self.op.split("."):
            target = getattr(target, part)
        return target


def arrays(
    shape=None,
    low: float = -2.0,
    high: float = 2.0,
    dtype="float64",
    distinct: bool = False,
    away: Sequence[float] = (),
    salt: int | None = None,
):
    """Draw arrays of a shape (or a strategy's shapes; up to 3 dimensions if None), uniform in [low, high).

    ``distinct`` keeps elements apart (no ties); ``away`` keeps them 0.05 from kinks. Strategies with different ``salt``
    draw different numbers from one seed.
    """
    salt = next(_salts) if salt is None else salt
    shapes_ = shape if isinstance(shape, st.SearchStrategy) else (st.just(shape) if shape is not None else shapes())

    def build(drawn):
        sizes, seed = drawn
        rng = np.random.default_rng((seed, salt))
        if np.dtype(dtype).kind in "iu":
            return rng.integers(int(low), int(high), sizes).astype(dtype)
        if np.dtype(dtype).kind == "b":
            return rng.random(sizes) < 0.5
        x = rng.uniform(low, high, sizes)
        if distinct:
            count = max(x.size, 1)
            x = (rng.permutation(count) + rng.uniform(0.2, 0.8, count))[: x.size].reshape(sizes) / count * (
                high - low
            ) + low
        if np.dtype(dtype).kind == "c":
            x = x + 1j * rng.uniform(low, high, sizes)
        for kink in away:
            x = np.where(np.abs(x - kink) < 0.05, kink + 0.1, x)
        return np.asarray(x, dtype)

    return st.tuples(shapes_, st.integers(0, 2**32 - 1)).map(build)


def positional(function: Callable) -> Callable:
    """Turn a reference with positional arguments (a ufunc) into one with keyword arguments."""
    return lambda **keywords: function(*keywords.values())


def leading(function: Callable) -> Callable:
    """Turn a reference with a positional first argument into one with keyword arguments."""
    return lambda **keywords: function(*[keywords.pop(next(iter(keywords)))], **keywords)


def inputs(**values) -> st.SearchStrategy[dict[str, Any]]:
    """Draw keyword arguments in this order: strategies as given, other values as constants."""
    parts = {k: v if isinstance(v, st.SearchStrategy) else st.just(v) for k, v in values.items()}
    return st.fixed_dictionaries(parts).map(lambda drawn: {k: drawn[k] for k in parts})


def shapes(min_rank: int = 0, max_rank: int = 3):
    """Draw shapes from a short list, since JAX compiles each operation for each shape; hypothesis tries the first
    first.
    """
    return st.sampled_from([shape for shape in SHAPES if min_rank <= len(shape) <= max_rank])


@st.composite
def broadcastable(draw, count: int = 2, names=("x1", "x2"), **keywords):
    """Keyword arguments of arrays whose shapes broadcast."""
    base = draw(shapes())
    out = {}
    for i, name in enumerate(names[:count]):
        keep = draw(st.sampled_from([min(i, len(base)), *range(len(base) + 1)]))
        shape = tuple(1 if draw(st.booleans()) else n for n in base[keep:])
        out[name] = draw(arrays(shape, salt=i, **keywords))
    return out


def tensors(value, backend: str):
    """Convert NumPy arrays, also inside lists, to a backend's tensors; leave anything else unchanged."""
    if isinstance(value, np.ndarray):
        return backends.lookup(backend).convert(value)
    if isinstance(value, (list, tuple)) and any(isinstance(v, np.ndarray) for v in value):
        return [tensors(v, backend) for v in value]
    return value


def on(backend: str, value):
    """Return numbers as a backend's float64 tensor."""
    return tensors(np.asarray(value, float), backend)


def numpy(value):
    """Convert any result to NumPy arrays and keep its nesting; ``None`` and Python values stay."""
    if isinstance(value, Variable):
        value = value.data
    if isinstance(value, dict):
        return {k: numpy(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [numpy(v) for v in value]
    return value if backends.backend_of(value) is None else backends.backend_of(value).to_numpy(value)


def call(case: Case, backend: str, arguments: dict):
    with config.backend_scope(backend):
        return case.function()(**{k: tensors(v, backend) for k, v in arguments.items()})


def is_own(entry) -> bool:
    """Return True for ops of ``gradops.ops``, False for ops of ``gradops.scipy`` and of tests."""
    return not hasattr(entry.call, "extends")


def flat(value) -> list:
    if isinstance(value, dict):
        return [x for k in sorted(value) for x in flat(value[k])]
    return [x for v in value for x in flat(v)] if isinstance(value, (list, tuple)) else [value]


def weights(results: list, seed: int = 7) -> list:
    """Return fixed random weights that turn an op's results into a scalar loss."""
    rng = np.random.default_rng(seed)
    out = []
    for r in results:
        shape = tuple(getattr(r, "shape", ()))
        out.append((rng.uniform(0.5, 1.5, shape), rng.uniform(0.5, 1.5, shape)))
    return out


def loss(results: list, ws: list):
    """Return sum(w * Re r) + sum(v * Im r) over the floating results: a real scalar."""
    total: Any = None
    for r, (w, v) in zip(results, ws):
        name = ops.dtype(r)
        if "complex" in name:
            part = ops.sum(ops.real(r) * tensors_like(w, ops.real(r))) + ops.sum(
                ops.imag(r) * tensors_like(v, ops.real(r))
            )
        elif "float" in name:
            part = ops.sum(r * tensors_like(w, r))
        else:
            continue
        total = part if total is None else total + part
    return total


def tensors_like(value: np.ndarray, x):
    data = x.data if isinstance(x, Variable) else x
    owner = backends.backend_of(data)
    return owner.convert(value, ops.dtype(data)) if owner else value


def results_function(case: Case, arguments: dict, backend: str) -> Callable:
    """Return the results as a function of the differentiated arguments (tensors, flattened lists)."""
    fixed = {k: tensors(v, backend) for k, v in arguments.items()}
    # A program compares everything its function closes over, so exclude the case with hypothesis' data.
    function, by = case.function(), case.gradients

    def f(*values):
        given, queue = dict(fixed), list(values)
        for name in by:
            if isinstance(arguments[name], list):
                given[name] = [queue.pop(0) for _ in arguments[name]]
            else:
                given[name] = queue.pop(0)
        return flat(function(**given))

    return f


def scalar_function(case: Case, arguments: dict, backend: str) -> Callable:
    """Return the loss as a function of the differentiated arguments."""
    f = results_function(case, arguments, backend)

    def scalar(*values):
        results = f(*values)
        return loss(results, weights(results))

    return scalar


def differentiated(case: Case, arguments: dict) -> list[np.ndarray]:
    return [
        x
        for name in case.gradients
        for x in (arguments[name] if isinstance(arguments[name], list) else [arguments[name]])
    ]


def tape_gradient(f, xs: list, over: str = "numpy", compiled: bool = False) -> list[np.ndarray]:
    """Return the tape's gradient; ``compiled``: as one program on JAX, as in :func:`native_gradient`."""

    def gradient(*values):
        variables = [Variable(value, requires_grad=True) for value in values]
        return [g.data for g in autodiff.grad(f(*variables), variables, materialize_grads=True)]

    if compiled and over == "jax":
        import jax

        gradient = jax.jit(gradient)
    return [numpy(g) for g in gradient(*[tensors(x, over) for x in xs])]


def tape_second(f, xs: list, over: str = "numpy") -> list[np.ndarray]:
    variables = [Variable(tensors(x, over), requires_grad=True) for x in xs]
    first = autodiff.grad(f(*variables), variables, create_graph=True, materialize_grads=True)
    total = loss(list(first), weights(list(first), seed=11))
    if not isinstance(total, Variable) or not total.requires_grad:
        return [np.zeros(x.shape, x.dtype) for x in xs]
    return [numpy(g) for g in autodiff.grad(total, variables, materialize_grads=True)]


def native_gradient(f, xs: list, backend: str, second: bool = False, compiled: bool = False) -> list[np.ndarray]:
    """Return the framework's own (second) gradient, in gradops' complex convention (dL/dRe + i dL/dIm).

    ``compiled``: as one program on JAX, a third of the time of compiling each operation separately.
    """
    if backend == "torch":
        import torch

        leaves = [tensors(x, backend).requires_grad_() for x in xs]
        gs = torch.autograd.grad(f(*leaves), leaves, create_graph=second, allow_unused=True)
        gs = [torch.zeros_like(x) if g is None else g for g, x in zip(gs, leaves)]
        if second:
            total = loss(gs, weights(gs, seed=11))
            if not total.requires_grad:
                return [np.zeros(x.shape, x.dtype) for x in xs]
            gs = torch.autograd.grad(total, leaves, allow_unused=True)
            gs = [torch.zeros_like(x) if g is None else g for g, x in zip(gs, leaves)]
        return [numpy(g) for g in gs]
    if backend == "jax":
        import jax

        if second:
            return jax_gradients(f, xs, compiled)[1]
        first = _jax_gradient(f, len(xs))
        return [numpy(g) for g in (jax.jit(first) if compiled else first)(*[tensors(x, backend) for x in xs])]
    import tensorflow as tf

    leaves = [tensors(x, backend) for x in xs]
    with tf.GradientTape() as outer:
        outer.watch(leaves)
        with tf.GradientTape() as inner:
            inner.watch(leaves)
            y = f(*leaves)
        # the gradient of a gather is IndexedSlices
        gs = [tf.convert_to_tensor(g) for g in inner.gradient(y, leaves, unconnected_gradients="zero")]
        if second:
            total = loss(gs, weights(gs, seed=11))
    if second:
        gs = outer.gradient(total, leaves, unconnected_gradients="zero")
    return [numpy(tf.convert_to_tensor(g)) for g in gs]


def jax_gradients(f, xs: list, compiled: bool = False) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return JAX's own first and second gradients from one program: see :func:`native_gradient`."""
    import jax

    first = _jax_gradient(f, len(xs))

    def total(*values):
        gs = first(*values)
        return loss(gs, weights(gs, seed=11)), gs

    def both(*values):
        second, gs = jax.grad(total, argnums=tuple(range(len(xs))), has_aux=True)(*values)
        return gs, [ops.conj(g) if "complex" in ops.dtype(g) else g for g in second]

    gradients = (jax.jit(both) if compiled else both)(*[tensors(x, "jax") for x in xs])
    return tuple([numpy(g) for g in gs] for gs in gradients)


def _jax_gradient(f, count: int):
    import jax

    def first(*values):
        gs = jax.grad(f, argnums=tuple(range(count)))(*values)
        return [ops.conj(g) if "complex" in ops.dtype(g) else g for g in gs]

    return first


def finite_difference(gradient: Callable, xs: list, step: float = 1e-6) -> list[np.ndarray]:
    """Return the gradient of the weighted sum of ``gradient(xs)``, by central differences; real inputs."""
    ws = weights(xs, seed=11)

    def value(points):
        return sum(float(np.sum(g * w)) for g, (w, _) in zip(gradient(points), ws))

    out = []
    for i, x in enumerate(xs):
        g = np.zeros_like(x)
        for j in np.ndindex(*x.shape):
            high, low = [v.copy() for v in xs], [v.copy() for v in xs]
            high[i][j] += step
            low[i][j] -= step
            g[j] = (value(high) - value(low)) / (2 * step)
        out.append(g)
    return out
