"""Each library's value, first and second gradient against the tape's at numerically hard inputs: a long test.

The parity cases provide the inputs, unchanged and made equal, zero, infinite, tiny, huge, empty or zero-dimensional.
Dtypes and shapes are compared as well; an input refused by the tape must be refused by the library.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from parity import BACKENDS, differentiated, flat, loss, numpy, scalar_function, tape_second, tensors, weights
from test_parity import CASES, by_id

from gradops import Variable, autodiff, ops
from gradops.errors import GradopsError


def strewn(x, *values):
    """Return ``x`` with its elements replaced by the values, every third element by the same value."""
    y = np.array(x).reshape(-1)
    for i, value in enumerate(values):
        y[i::3] = value
    return y.reshape(np.shape(x))


HARD = {
    "plain": lambda x: x,
    "ties": lambda x: np.round(2 * x) / 2,
    "zero": np.zeros_like,
    "tiny": lambda x: x * 1e-30,
    "huge": lambda x: x * 1e30,
    "infinite": lambda x: strewn(x, np.inf, -np.inf) if x.dtype.kind == "f" else x,
    "empty": lambda x: x[:0] if x.ndim else x,
    "0-d": lambda x: x.reshape(-1)[0] if x.size else x,
}
MAGNITUDES = ("zero", "tiny", "huge", "infinite")
_LINEAR = """cholesky cholesky_inverse det slogdet logdet adjugate inv expm pinv solve solve_triangular lstsq lu_factor
eigh eig qr svd""".split()
LINEAR = tuple(c.id for c in CASES if c.op in _LINEAR)
UNLIKE = [  # prefixes of cases, kinds, libraries (empty: all), reason
    (LINEAR, MAGNITUDES, (), "singular matrices and their like have tests of their own: test_linalg"),
    (("norm-2-",), (*MAGNITUDES, "ties"), (), "by singular values that are equal or 0"),
    (("log-complex", "sqrt-complex", "rsqrt-complex", "reciprocal-complex"), ("zero",), (), "poles and branch points"),
    (("lgamma", "polygamma"), ("zero", "infinite"), (), "poles"),
    (("svd", "qr"), ("empty",), ("jax",), "docs/differences.md: JAX has no derivative of full matrices"),
    (("extract_sequences", "get_item-int beside"), ("empty",), ("tensorflow",), "docs/differences.md"),
    (("sparsemax", "correlate", "nan_to_num"), ("infinite",), (), "differences of infinities, sums that overflow"),
    (("arctan2",), ("zero",), (), "docs/differences.md"),
    (("einsum-iij,jk,k",), ("infinite",), (), "docs/differences.md: which two of three are multiplied first"),
    (("window_max", "scatter_update", "segment_m"), ("infinite",), ("torch", "tensorflow"), "docs/differences.md"),
    (("logsumexp",), ("infinite",), (), "docs/differences.md: beside an infinite element"),
    (("conv_to_kernel",), ("empty",), (), "batches of two sizes"),
    (("add_at", "set_at"), ("empty",), (), "positions and updates that an empty tensor has no place for"),
    (("unstack",), ("empty",), (), "no results"),
    (("take_along_axis",), ("empty", "0-d"), ("jax",), "positions out of range in a trace"),
]


def changed(case, arguments: dict, kind: str) -> dict:
    """Change the differentiated floating arguments; only the first of them if they are emptied."""

    def change(x):
        return np.asarray(HARD[kind](x), x.dtype) if isinstance(x, np.ndarray) and x.dtype.kind in "fc" else x

    names = case.gradients[:1] if kind == "empty" else case.gradients
    return {
        k: v if k not in names else [change(x) for x in v] if isinstance(v, list) else change(v)
        for k, v in arguments.items()
    }


def of_the_tape(f, xs: list) -> list:
    variables = [Variable(x, requires_grad=True) for x in xs]
    y = f(*variables)
    if not isinstance(y, Variable) or not y.requires_grad:
        return [numpy(y), *[np.zeros_like(x) for x in xs] * 2]
    first = autodiff.grad(y, variables, retain_graph=True, materialize_grads=True)
    return [numpy(y), *map(numpy, first), *tape_second(f, xs)]


def of_torch(f, xs: list) -> list:
    import torch

    def slopes(y, create_graph=False):
        if not isinstance(y, torch.Tensor) or not y.requires_grad:
            return [torch.zeros_like(x) for x in leaves]
        return torch.autograd.grad(y, leaves, create_graph=create_graph, allow_unused=True, materialize_grads=True)

    leaves = [tensors(x, "torch").requires_grad_() for x in xs]
    y = f(*leaves)
    first = list(slopes(y, True))
    return [numpy(v) for v in (y.detach(), *(g.detach() for g in first), *slopes(loss(first, weights(first, seed=11))))]


def of_tensorflow(f, xs: list) -> list:
    import tensorflow as tf

    leaves = [tensors(x, "tensorflow") for x in xs]
    with tf.GradientTape() as outer:
        outer.watch(leaves)
        with tf.GradientTape() as inner:
            inner.watch(leaves)
            y = f(*leaves)
        first = [tf.convert_to_tensor(g) for g in inner.gradient(y, leaves, unconnected_gradients="zero")]
        total = loss(first, weights(first, seed=11))
    second = outer.gradient(total, leaves, unconnected_gradients="zero")
    return [numpy(tf.convert_to_tensor(v)) for v in (y, *first, *second)]


class OfJax:
    """Derivatives by JAX, compiled once per input shape unless the op depends on values."""

    def __init__(self, case):
        self.compiled: dict = {}
        self.by_value = case.by_value

    def __call__(self, f, xs: list) -> list:
        import jax

        every = tuple(range(len(xs)))

        def conjugate(gs):
            return [ops.conj(g) if "complex" in ops.dtype(g) else g for g in gs]

        def total(*values):
            y, first = jax.value_and_grad(f, every)(*values)
            first = conjugate(first)
            return loss(first, weights(first, seed=11)), (y, first)

        def both(*values):
            second, (y, first) = jax.grad(total, every, has_aux=True)(*values)
            return y, *first, *conjugate(second)

        if self.by_value:
            run = both
        else:
            run = self.compiled.setdefault(tuple(x.shape for x in xs), jax.jit(both))
        return [numpy(v) for v in run(*[tensors(x, "jax") for x in xs])]


def outcome(derivatives, f, xs: list):
    try:
        with np.errstate(all="ignore"):
            return derivatives(f, xs)
    except GradopsError as error:
        return error


def largest(x) -> float:
    return float(np.max(np.abs(x[np.isfinite(x)]), initial=0.0))


def compare(got: list, want: list, xs: list, case, kind: str) -> None:
    """Compare values; first gradients where the value is finite, second ones where everything before is finite."""
    count = len(xs)
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        order = 0 if i == 0 else 1 if i <= count else 2
        assert (g.shape, g.dtype) == (w.shape, w.dtype), (kind, order)
        before = [] if order < 2 else [*xs, *want[: 1 + count]]
        if order == 1 and np.isnan(want[0]) or not all(np.isfinite(v).all() for v in before):
            continue
        scale = largest(w)
        if order == 2:  # second derivatives lose digits by cancellation, depending on the size of the argument
            smallest = min((np.min(np.abs(x[x != 0]), initial=1.0) for x in xs), default=1.0)
            scale = max(scale, 1e-5 * max(map(largest, want[1 : 1 + count]), default=0.0) / smallest)
        np.testing.assert_allclose(
            g, w, rtol=max(case.rtol, 1e-6) * 10**order, atol=max(1e-8 * scale, 1e-14), err_msg=f"{kind}, {order}"
        )


def apart(case, kind: str, backend: str) -> bool:
    return any(case.id.startswith(ids) and kind in kinds and (not of or backend in of) for ids, kinds, of, _ in UNLIKE)


@pytest.mark.long
@pytest.mark.parametrize("backend", [name for name in BACKENDS if name != "numpy"])
@pytest.mark.parametrize("case", [c for c in CASES if c.gradients], ids=by_id)
def test_hard_points(case, backend):
    if backend not in case.native or backend in case.skip:
        pytest.skip("its gradient has another convention there")
    derivatives = {"torch": of_torch, "tensorflow": of_tensorflow, "jax": OfJax(case)}[backend]
    shared = None  # a JAX program belongs to one function
    for kind in HARD:
        arguments = changed(case, case.example(), kind)
        xs = differentiated(case, arguments)
        if apart(case, kind, backend) or not flat(xs):
            continue
        f = scalar_function(case, arguments, backend)
        if kind not in ("empty", "0-d"):
            f = shared = shared or f
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = outcome(of_the_tape, scalar_function(case, arguments, "numpy"), xs)
            got = outcome(derivatives, f, xs)
        if isinstance(want, GradopsError) and backend == "jax" and not case.by_value:
            continue  # a program does not know values that would be refused
        if isinstance(want, GradopsError) or isinstance(got, GradopsError):
            assert isinstance(want, GradopsError) and isinstance(got, GradopsError), (kind, want, got)
        else:
            compare(got, want, xs, case, kind)
