"""Checks of a ``gradops.scipy`` function against SciPy: values and derivatives, on each backend, in programs."""

from __future__ import annotations

import functools
import importlib
import types
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Literal

import numpy as np
import pytest
from parity import BACKENDS, finite_difference, flat, loss, native_gradient, numpy, tape_gradient, tensors, weights

import gradops
from gradops import backends, errors
from gradops.scipy import _names


def modules() -> list[str]:
    """Return the modules of ``gradops.scipy`` that mirror SciPy, with submodules: ``signal``, ``signal.windows``."""
    for name in (*gradops.scipy.__all__, "signal.windows"):
        importlib.import_module(f"gradops.scipy.{name}")
    return sorted(name.removeprefix("gradops.scipy.") for name in _names.REFUSED)


def scipys(module: str) -> set[str]:
    """Return the public functions and classes of a SciPy module."""
    found = importlib.import_module(f"scipy.{module}")
    return {
        name
        for name in getattr(found, "__all__", dir(found))
        if not name.startswith("_") and not isinstance(getattr(found, name, None), types.ModuleType)
    } - {"test"}


def agree(
    function: Callable,
    reference: Callable,
    *arrays,
    by: Sequence[int] | None = None,
    rtol: float = 1e-11,
    gradient_rtol: float = 1e-6,
    second: bool | Literal["all"] = True,
    over: Sequence[str] = BACKENDS,
    compiled: bool = True,
) -> None:
    """Check a function of arrays against its reference on each backend.

    Args:
        function: takes the arrays by position; returns a tensor or a nest of tensors. Settings are in a closure.
        reference: the SciPy function, on NumPy arrays.
        by: positions of the arguments to differentiate; by default all floating arrays. Arguments that the function
            is not differentiable in, such as an order, are left out.
        rtol: relative tolerance of values; the absolute one is 1e-14 of the largest value.
        gradient_rtol: tolerance of derivatives against finite differences; libraries agree with each other to a
            thousandth of it.
        second: also check second derivatives, on the first library besides NumPy; "all": on each.
        over: the backends.
        compiled: also check ``gradops.jit`` on NumPy and the compiler of JAX.
    """
    arrays = tuple(np.asarray(x) for x in arrays)
    by = [i for i, x in enumerate(arrays) if x.dtype.kind == "f"] if by is None else list(by)
    expected = [np.asarray(y) for y in flat(reference(*arrays))]
    for backend in over:
        found = flat(function(*[tensors(x, backend) for x in arrays]))
        assert len(found) == len(expected)
        for y, want in zip(found, expected):
            assert backends.backend_of(y).name == backend, f"{backend}: the result is of {backends.backend_of(y).name}"
            same(numpy(y), want, rtol, backend)
            assert numpy(y).dtype == want.dtype, f"{backend}: {numpy(y).dtype} in place of {want.dtype}"
    if compiled and "numpy" in over:
        for y, want in zip(flat(gradops.jit(function)(*arrays)), expected):
            same(numpy(y), want, rtol, "jit")
    if not by:
        return
    xs = [arrays[i] for i in by]

    def scalar(*values):
        given = list(arrays)
        for i, value in zip(by, values):
            given[i] = value
        like = values[0]
        results = flat(function(*[beside(x, like) for x in given]))
        return loss(results, weights(results))

    tape = tape_gradient(scalar, xs)
    rng, step = np.random.default_rng(11), 1e-6
    for _ in range(min(3, sum(x.size for x in xs))):  # along random directions, no wrong element can be missed
        line = [rng.uniform(0.5, 1.5, x.shape) * rng.choice([-1.0, 1.0], x.shape) for x in xs]
        high, low = (np.asarray(scalar(*[x + s * v for x, v in zip(xs, line)])) for s in (step, -step))
        got = sum(np.sum(g * v) for g, v in zip(tape, line))
        same(got, (high - low) / (2 * step), gradient_rtol, "tape against finite differences", 1e-7)
    for backend in over:
        if backend != "numpy":
            for got, want in zip(native_gradient(scalar, xs, backend, compiled=backend == "jax"), tape):
                same(got, want, gradient_rtol / 1000, f"{backend}'s gradient")
    if compiled and "numpy" in over:
        found = gradops.jit(gradops.grad(scalar, argnums=tuple(range(len(xs)))))(*xs)
        for got, want in zip(found, tape):
            same(np.asarray(got), want, gradient_rtol / 1000, "gradient under jit")
    if second:
        differences = finite_difference(lambda points: tape_gradient(scalar, points), xs)
        others = [backend for backend in over if backend != "numpy"]
        for backend in others if second == "all" else others[:1]:
            found = native_gradient(scalar, xs, backend, second=True, compiled=backend == "jax")
            for got, want in zip(found, differences):
                same(got, want, gradient_rtol * 10, f"{backend}'s second gradient", 1e-6)


QUICK: dict = {"over": ("numpy", "torch"), "compiled": False, "second": False}
"""The cases of the short suite."""


def each_case(cases: Sequence[tuple]) -> Callable:
    """Return a decorator for tests of ``name, arrays, settings, how``: the arguments of :func:`compare`."""
    names = ("name", "arrays", "settings", "how")
    return pytest.mark.parametrize(names, cases, ids=lambda value: value if isinstance(value, str) else "")


def compare(ours, theirs, name: str, arrays, settings: dict, how: dict, *, everywhere: bool = False) -> None:
    """Check a module's function against SciPy's.

    Args:
        how: further arguments of :func:`agree`; ``keys``: positions and names of the arrays; ``every``: all
            backends in the short suite as well.
        everywhere: check every backend, and second derivatives on each.
    """
    how = dict(how)
    keys, every = how.pop("keys", range(len(arrays))), how.pop("every", False)
    if everywhere:
        how["second"] = how.get("second", True) and "all"
    else:
        how = {"second": False, **({} if every else QUICK), **how}

    def call(function, *xs):
        positional = [x for key, x in zip(keys, xs) if isinstance(key, int)]
        named = {key: x for key, x in zip(keys, xs) if not isinstance(key, int)}
        return function(*positional, **named, **settings)

    def reference(*xs):
        return call(getattr(theirs, name), *[x if x.ndim else x.item() for x in xs])

    agree(functools.partial(call, getattr(ours, name)), reference, *arrays, **how)


def each_library(names: Iterable[str], quick: Container[str]) -> Callable:
    """Return a decorator for tests of ``name, backend``, for each library except NumPy.

    Functions composed of ops work alike on all libraries: the short suite has all names on PyTorch, and on other
    libraries the names in ``quick``.
    """
    cases = [
        pytest.param(name, backend, marks=[] if backend == "torch" or name in quick else [pytest.mark.long])
        for name in names
        for backend in BACKENDS
        if backend != "numpy"
    ]
    return pytest.mark.parametrize(("name", "backend"), cases)


def refused(call: Callable, argument: str) -> errors.GradopsError:
    """Return the error of a call and check that it names the argument."""
    with pytest.raises(errors.GradopsError) as caught:
        call()
    assert caught.value.argument == argument
    return caught.value


def complex_of(re, im):
    """Return a complex tensor from its real and imaginary parts."""
    return gradops.ops.view_as_complex(gradops.ops.stack([re, im], -1))


def in_programs(f: Callable, *arrays, compiled: Callable | Literal[False] | None = None, rtol: float = 1e-10) -> None:
    """Check a scalar function's gradients in ``torch.compile``, ``tf.function`` and ``jax.jit``, and under vmap.

    Args:
        compiled: a smaller function for ``torch.compile``, which takes a second per function call in ``f``, see
            :func:`each_program`; False to skip it.
    """
    places = tuple(range(len(arrays)))
    others = [x * 1.1 for x in arrays]  # rows that were confused with each other would show
    want, again = gradops.grad(f, argnums=places)(*arrays), gradops.grad(f, argnums=places)(*others)
    torch, tf, jax = (pytest.importorskip(name) for name in ("torch", "tensorflow", "jax"))
    if compiled is not False:
        compiled, xs = compiled or f, [torch.tensor(x, requires_grad=True) for x in arrays]
        found = torch.autograd.grad(torch.compile(compiled, backend="aot_eager", fullgraph=True)(*xs), xs)
        for got, expected in zip(found, gradops.grad(compiled, argnums=places)(*arrays)):
            np.testing.assert_allclose(got, expected, rtol)
    variables = [tf.Variable(x) for x in arrays]
    with tf.GradientTape() as tape:
        y = tf.function(f)(*variables)
    for got, expected in zip(tape.gradient(y, variables), want):
        np.testing.assert_allclose(got, expected, rtol)
    batches = [np.stack(pair) for pair in zip(arrays, others)]
    found = torch.func.vmap(torch.func.grad(f, argnums=places))(*map(torch.tensor, batches))
    of_jax = jax.jit(jax.vmap(jax.grad(f, argnums=places)))(*batches)
    for gradients in (found, of_jax):
        for got, *expected in zip(gradients, want, again):
            single = "64" not in str(got.dtype)
            np.testing.assert_allclose(got, np.stack(expected), 1e-3 if single else rtol, 1e-3 if single else 0)


def each_program(small: Callable) -> Callable:
    """Return a decorator for tests of ``compiled`` of :func:`in_programs`: ``small``, and all in the long suite."""
    return pytest.mark.parametrize(
        "compiled", [small, pytest.param(None, marks=pytest.mark.long)], ids=["a part", "all of it"]
    )


def parts(results) -> list:
    """Return real tensors: the real and imaginary parts of complex results."""
    found = []
    for y in flat(results):
        found += [gradops.ops.real(y), gradops.ops.imag(y)] if "complex" in str(gradops.ops.dtype(y)) else [y]
    return found


def beside(x: np.ndarray, like):
    """Return a constant array as a tensor of the library of ``like``."""
    data = getattr(like, "data", like) if isinstance(like, gradops.Variable) else like
    owner = backends.backend_of(data)
    return x if not isinstance(x, np.ndarray) or owner is None or owner.name == "numpy" else owner.convert(x)


def same(got, want, rtol: float, where: str, atol: float = 1e-14) -> None:
    """Compare with ``atol`` relative to the largest finite value as absolute tolerance."""
    finite = np.abs(want[np.isfinite(want)]) if np.size(want) else np.zeros(0)
    np.testing.assert_allclose(got, want, rtol, atol * max(1.0, finite.max(initial=0)), err_msg=where)
