"""Hooks for saved tensors, on variables of each library and on PyTorch's tensors."""

from __future__ import annotations

import contextlib
import gc
import threading
import tracemalloc

import numpy as np
import pytest
from parity import numpy, on

import gradops
from gradops import Variable, autodiff, backends, errors, ops
from gradops.autodiff import state
from gradops.autodiff.saved_tensors import copy_to_cpu, restore_to_device

X = np.array([0.5, -1.0, 2.0])


def recording(backend):
    """A tensor that records its history: a variable, or PyTorch's own."""
    x = on(backend, X)
    return x.requires_grad_() if backend == "torch" else Variable(x, requires_grad=True)


def loss(x):
    return ops.sum(ops.exp(x) * ops.sin(x)) + ops.sum(ops.matmul(ops.reshape(x, (1, 3)), x))


SLOPE = np.exp(X) * (np.sin(X) + np.cos(X)) + 2 * X


@pytest.fixture
def scopes_left():
    yield
    gc.collect()
    assert state.packers == []


def hooks(tmp_path):
    """Hooks that keep tensors in files."""
    names: list = []

    def pack(x):
        names.append(tmp_path / f"{len(names)}.npy")
        np.save(names[-1], numpy(x.detach() if hasattr(x, "detach") else x))
        return names[-1]

    def unpack(packed):
        return np.load(packed)

    return names, pack, unpack


def test_values_wait_in_files(backend, tmp_path, scopes_left):
    names, pack, unpack = hooks(tmp_path)
    x = recording(backend)
    with autodiff.saved_tensors_hooks(pack, unpack):
        y = loss(x)
    assert len(names) >= 5
    first = autodiff.grad(y, x, create_graph=True)[0]
    np.testing.assert_allclose(numpy(first.detach()), SLOPE, rtol=1e-12)
    second = autodiff.grad(ops.sum(first), x)[0]
    np.testing.assert_allclose(numpy(second.detach()), 2 * np.exp(X) * np.cos(X) + 2, rtol=1e-12)
    count = len(names)
    loss(x)
    assert len(names) == count  # the scope is over


def test_hooks_are_called_as_torch_calls_them(torch, scopes_left):
    def packs(x, scope):
        seen = []
        with scope(lambda t: seen.append(tuple(t.shape)) or t, lambda t: t):
            y = ops.exp(x)
            y = y * y * 3.0
            ops.sum(ops.matmul(ops.reshape(y, (1, 3)), y))
        return sorted(seen)

    theirs = packs(torch.tensor(X, requires_grad=True), torch.autograd.graph.saved_tensors_hooks)
    assert packs(torch.tensor(X, requires_grad=True), autodiff.saved_tensors_hooks) == theirs
    ours = packs(Variable(X, requires_grad=True), autodiff.saved_tensors_hooks)
    assert [s for s in ours if s == (3,)] == [s for s in theirs if s == (3,)]


def test_save_on_cpu(backend, scopes_left):
    x = recording(backend)
    with autodiff.save_on_cpu(), autodiff.save_on_cpu(pin_memory=False):
        y = loss(x)
    y.backward()
    np.testing.assert_allclose(numpy(x.grad.detach()), SLOPE, rtol=1e-12)


def test_save_on_cpu_moves_back():
    """An array of another device comes back to it."""
    moves = []

    class Elsewhere:
        device = "cuda:1"

        def place(self, x, device):
            moves.append(device)
            return x

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backends, "backend_of", lambda x: x)
        restore_to_device(copy_to_cpu(Elsewhere()))
    assert moves == ["cpu", "cuda:1"]
    assert copy_to_cpu(np.ones(3))[1] is None


def test_the_innermost_hooks_are_called(scopes_left):
    seen: list = []
    scope = lambda name: autodiff.saved_tensors_hooks(lambda t: seen.append(name) or t, lambda t: t)  # noqa: E731
    x = recording("numpy")
    with scope("outer"):
        with scope("inner"):
            ops.exp(x)
        ops.exp(x)
    assert seen == ["inner", "outer"]

    @scope("decorator")
    def decorated():
        ops.exp(ops.exp(x))  # an operation in a hook is not hooked

    decorated()
    assert seen[2:] == ["decorator"] * 2
    thread = threading.Thread(target=lambda: ops.exp(x))
    with scope("thread"):
        thread.start()
        thread.join()
    assert len(seen) == 4


def test_values_of_checkpoints_are_not_packed(backend, scopes_left):
    seen: list = []
    x = recording(backend)
    with autodiff.saved_tensors_hooks(lambda t: seen.append(t) or t, lambda t: t):
        with gradops.gradient_checkpoint_scope():
            h = ops.sin(ops.exp(x))
        y = ops.sum(h * h)
    if backend != "torch":  # PyTorch calls the innermost hooks only, which are the checkpoint's
        assert not seen
    y.backward()
    want = 2 * np.sin(np.exp(X)) * np.cos(np.exp(X)) * np.exp(X)
    np.testing.assert_allclose(numpy(x.grad.detach()), want, rtol=1e-12)


def test_packed_values_free_the_memory(tmp_path, scopes_left):
    _, pack, unpack = hooks(tmp_path)
    x = Variable(np.ones(100_000), requires_grad=True)

    def held(scope):
        tracemalloc.start()
        with scope:
            y = x
            for _ in range(8):
                y = ops.sin(y)
        found = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        y.backward(np.ones(100_000))
        return found

    assert held(autodiff.saved_tensors_hooks(pack, unpack)) < 0.2 * held(contextlib.nullcontext())


def test_errors(torch, scopes_left):
    with pytest.raises(errors.ArgumentTypeError, match="`pack_hook` must be a function; got 1"):
        autodiff.saved_tensors_hooks(1, lambda x: x)
    with pytest.raises(errors.ArgumentTypeError, match="`unpack_hook` must be a function"):
        autodiff.saved_tensors_hooks(lambda x: x, None)
    with pytest.raises(errors.ArgumentTypeError, match="`pin_memory` must be True or False"):
        autodiff.save_on_cpu(2)
    x = recording("numpy")
    for wrong, said in ((lambda x: x[:1], r"float64 and shape \(1,\)"), (lambda x: None, "got None")):
        with autodiff.saved_tensors_hooks(lambda x: x, wrong):
            y = ops.sum(ops.exp(x))
        with pytest.raises(errors.GradientError, match=f"`unpack_hook` must return what `pack_hook` got.*{said}"):
            y.backward()
    with autodiff.saved_tensors_hooks(lambda x: x, lambda x: x):
        h = ops.exp(x)
        y = ops.sum(h * h)
    h[0] = 3.0
    with pytest.raises(errors.GradientError, match="which `pack_hook` did not copy, was written in place"):
        y.backward()
    for scope in (autodiff.save_on_cpu(), autodiff.saved_tensors_hooks(lambda x: x, lambda x: x)):
        with pytest.raises(errors.GradientError, match="torch.func's transforms do not take hooks"):
            torch.func.grad(scope(lambda x: x * x))(torch.tensor(1.0))


def test_raw_jax_and_tensorflow_tensors_get_no_hooks(jax, tf):
    """Row of docs/differences.md."""
    seen: list = []
    for backend in ("jax", "tensorflow"):
        with autodiff.saved_tensors_hooks(lambda t: seen.append(t) or t, lambda t: t):
            found = gradops.grad(loss)(on(backend, X))
        np.testing.assert_allclose(numpy(found), SLOPE, rtol=1e-6)
        assert not seen


def test_compiled_programs(backend, scopes_left):
    """Hooks that a compiled function sets are part of its program; a scope around the call has no effect."""

    def f(x):
        with autodiff.saved_tensors_hooks(lambda t: t * 2.0, lambda t: t / 2.0):
            return loss(x)

    if backend in ("numpy", "torch"):
        found = gradops.jit(gradops.grad(f))(on(backend, X))
        np.testing.assert_allclose(numpy(found), SLOPE, rtol=1e-12)
    with autodiff.save_on_cpu():
        np.testing.assert_allclose(numpy(gradops.jit(gradops.grad(loss))(on(backend, X))), SLOPE, rtol=1e-6)
