"""``backward`` and ``grad``: results and errors."""

from __future__ import annotations

import sys
import threading
import warnings

import numpy as np
import pytest

from gradops import Parameter, Variable, gradient, ops
from gradops.autodiff import backward, grad, no_grad
from gradops.errors import ArgumentError, ArgumentTypeError, BackendError, GradientError, ShapeError

torch = pytest.importorskip("torch")


def leaf(*values):
    return Variable(np.array(values, float), requires_grad=True)


def test_leaves_accumulate():
    x, w = leaf(1, 2), leaf(3, 4)
    for times in (1, 2, 3):
        (x * w).sum().backward()
        np.testing.assert_allclose(x.grad.data, times * w.data)
        np.testing.assert_allclose(w.grad.data, times * x.data)
    assert not x.grad.requires_grad and x.grad.grad_fn is None


def test_vector_jacobian_product():
    x = leaf(1, 2)
    y = x * x
    backward(y, np.array([1.0, 10]), retain_graph=True)
    np.testing.assert_allclose(x.grad.data, [2, 40])
    y.backward([1.0, 1], retain_graph=True)
    y.backward(Variable([1.0, 1]))
    np.testing.assert_allclose(x.grad.data, [6, 48])
    with pytest.raises(RuntimeError, match="non-scalar"):
        (x * x).backward()
    with pytest.raises(ShapeError, match=r"shape \(2,\) of `variables`; got \(3,\)"):
        (x * x).backward(np.ones(3))
    (x * x)[:1].backward()


def test_several_roots_and_none_entries():
    x = leaf(1, 2)
    y, z = (x * x).sum(), x * 3
    backward([y, z], [None, np.array([1.0, 0])])
    np.testing.assert_allclose(x.grad.data, [5, 4])
    x.zero_grad()
    backward([x.sum(), x.sum()])
    np.testing.assert_allclose(x.grad.data, [2, 2])
    with pytest.raises(GradientError, match="non-scalar"):
        backward([x.sum(), x * 3], [None, None])
    with pytest.raises(ArgumentError, match="one entry for each"):
        backward([x.sum()], [None, None])
    with pytest.raises(ArgumentError, match="empty"):
        backward([])


def test_leaf_can_be_the_root():
    x = leaf(2)
    x[0].backward()
    x = Variable(2.0, requires_grad=True)
    x.backward()
    x.backward(np.float64(3))
    assert x.grad.item() == 4


def test_roots_without_a_graph():
    for y in (Variable(1.0), leaf(1, 2).detach().sum()):
        with pytest.raises(RuntimeError, match="does not require"):
            y.backward()
    with pytest.raises(GradientError, match="expected variables"):
        backward(np.ones(2))


def test_inputs():
    x, w = leaf(1, 2), leaf(3, 4)
    h = x * w
    h.sum().backward(inputs=[w], retain_graph=True)
    assert x.grad is None
    np.testing.assert_allclose(w.grad.data, x.data)
    h.sum().backward(inputs=x)
    np.testing.assert_allclose(x.grad.data, w.data)
    with pytest.raises(RuntimeError, match="empty"):
        (h * 1).sum().backward(inputs=[])
    with pytest.raises(RuntimeError, match="variables"):
        (h * 1).sum().backward(inputs=[np.ones(2)])


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("retains", [False, True])
def test_non_leaf_inputs(retains, create_graph):
    """They receive their gradient, as in PyTorch, and tensors before them receive none."""

    def gradients(x):
        h = x * 3.0
        later = h * h
        if retains:
            h.retain_grad()
        loss = (later * later).sum()
        loss.backward(inputs=[h, later], retain_graph=True, create_graph=create_graph)
        loss.backward(inputs=[later], create_graph=create_graph)
        assert x.grad is None
        return [h.grad, later.grad]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = gradients(torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True))
        found = gradients(leaf(1, 2))
        for mine, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(mine.data, other.detach().numpy())


def test_pytorch_argument_names():
    x = leaf(1, 2)
    backward(tensors=[x * x], grad_tensors=[np.array([1.0, 10.0])])
    np.testing.assert_allclose(x.grad.data, [2, 40])
    backward(tensors=(x * 3.0).sum())
    np.testing.assert_allclose(x.grad.data, [5, 43])
    with pytest.raises(ArgumentError, match="`variables` or `tensors`"):
        backward(x, tensors=x)
    with pytest.raises(ArgumentError, match="needs `variables`"):
        backward()


def test_graphs_are_freed():
    x = leaf(1, 2)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    np.testing.assert_allclose(x.grad.data, [4, 8])
    with pytest.raises(RuntimeError, match="freed by an earlier backward pass.*\n.*retain_graph=True"):
        y.backward()
    h = ops.exp(x)
    h.sum().backward()
    with pytest.raises(RuntimeError, match="freed"):
        (h * 2).sum().backward()


def freed(library: str):
    """Return a leaf, a freed graph, and a separate branch that is not freed."""
    if library == "torch":
        x, w = (torch.tensor([float(i), 2.0], dtype=torch.float64, requires_grad=True) for i in (1, 3))
        sin = torch.sin
    else:
        make = {"numpy": np.array, "jax": lambda a: _jax(a), "tensorflow": lambda a: _tensorflow(a)}[library]
        x, w = (Variable(make([float(i), 2.0]), requires_grad=True) for i in (1, 3))
        sin = ops.sin
    y = sin(x)
    y.sum().backward()
    return x, w, y


def _jax(values):
    return pytest.importorskip("jax.numpy").asarray(values)


def _tensorflow(values):
    return pytest.importorskip("tensorflow").constant(values)


LIBRARIES = ["numpy", "torch", "jax", "tensorflow"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_second_pass_through_a_freed_graph_is_an_error(library):
    x, w, y = freed(library)
    loss = (y * w).sum()
    with pytest.raises(RuntimeError, match="freed|second time"):
        gradient(loss, x)
    with pytest.raises(RuntimeError, match="freed|second time"):
        grad(loss, x, retain_graph=True, materialize_grads=True)
    with pytest.raises(RuntimeError, match="freed|second time"):
        grad(loss, [w, x], retain_graph=True, allow_unused=True)
    with pytest.raises(RuntimeError, match="freed|second time"):
        backward(loss, retain_graph=True, inputs=[x])


@pytest.mark.parametrize("library", LIBRARIES)
def test_freed_branch_off_the_path_is_no_error(library):
    x, w, y = freed(library)
    before = np.array(ops.convert_to_numpy(x.grad))
    loss = (y * w).sum()
    backward(loss, retain_graph=True, inputs=[w])
    np.testing.assert_allclose(ops.convert_to_numpy(w.grad), np.sin([1.0, 2.0]), rtol=1e-6)
    np.testing.assert_allclose(ops.convert_to_numpy(grad(loss, w)[0].detach()), np.sin([1.0, 2.0]), rtol=1e-6)
    np.testing.assert_array_equal(ops.convert_to_numpy(x.grad), before)


def test_hooks_off_the_path_do_not_run():
    """A pass for some inputs does not visit the rest of the graph, like in PyTorch."""
    for make in (lambda v: Variable(np.array(v), requires_grad=True), lambda v: torch.tensor(v, requires_grad=True)):
        x, w, calls = make([1.0, 2.0]), make([3.0, 4.0]), []
        a, b = x * 2.0, w * 3.0
        for name, v in (("x", x), ("w", w), ("a", a), ("b", b)):
            v.register_hook(lambda g, name=name, calls=calls: calls.append(name))
        loss = (a * b).sum()
        backward(loss, retain_graph=True, inputs=[w])
        assert calls == ["b", "w"]
        grad(loss, [a], retain_graph=True)
        assert calls == ["b", "w", "a"]
        loss.backward()
        assert sorted(calls) == ["a", "a", "b", "b", "w", "w", "x"]


@pytest.mark.parametrize("library", ["numpy", "jax", "tensorflow"])
@pytest.mark.parametrize("retained", [False, True])
def test_threads_lose_no_gradient(library, retained):
    """Several threads call ``backward()`` to one leaf, or to one retained result."""
    make = {"numpy": np.array, "jax": _jax, "tensorflow": _tensorflow}[library]
    leaf = Variable(make([1.0, 2.0]), requires_grad=True)
    x = leaf * 1.0 if retained else leaf
    if retained:
        x.retain_grad()
    count, rounds = 8, 40 if library == "numpy" else 10
    start = threading.Barrier(count)
    failed = []

    def work():
        start.wait()
        try:
            for _ in range(rounds):
                backward((x * 3.0).sum(), retain_graph=True)
        except BaseException as error:
            failed.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not failed
    np.testing.assert_array_equal(ops.convert_to_numpy(leaf.grad), [3.0 * count * rounds] * 2)
    np.testing.assert_array_equal(ops.convert_to_numpy(x.grad), [3.0 * count * rounds] * 2)


def test_create_graph():
    x = leaf(1, 2)
    y = (x * x * x).sum()
    y.backward(create_graph=True)
    assert x.grad.requires_grad
    g = x.grad
    x.grad = None
    (g * g).sum().backward()
    np.testing.assert_allclose(x.grad.data, 36 * x.data**3)


def test_third_derivative():
    x = leaf(0.5, 2)
    y = ops.sin(x)
    for want in (np.cos, lambda v: -np.sin(v), lambda v: -np.cos(v), np.sin):
        (y,) = grad(y.sum(), x, create_graph=True)
        np.testing.assert_allclose(y.data, want(x.data), rtol=1e-12)


def test_grad():
    x, w = leaf(1, 2), leaf(3, 4)
    h = x * w
    y = (h * h).sum()
    gx, gh = grad(y, (x, h), retain_graph=True)
    np.testing.assert_allclose(gh.data, 2 * h.data)
    np.testing.assert_allclose(gx.data, 2 * h.data * w.data)
    assert x.grad is None and isinstance(gx, Variable)
    (g,) = grad(h, x, np.array([1.0, 0]), retain_graph=True)
    np.testing.assert_allclose(g.data, [3, 0])
    (g,) = grad([y, h], [w], [None, np.ones(2)])
    np.testing.assert_allclose(g.data, 2 * h.data * x.data + x.data)
    (g,) = grad(x, x, np.array([5.0, 6]))
    np.testing.assert_allclose(g.data, [5, 6])


def test_unused_inputs():
    x, w = leaf(1, 2), leaf(3, 4)
    y = (x * 2).sum()
    with pytest.raises(RuntimeError, match=r"`inputs\[1\]` was not used"):
        grad(y, (x, w), retain_graph=True)
    assert grad(y, (x, w), allow_unused=True, retain_graph=True)[1] is None
    assert grad(y, (x, w), materialize_grads=True, retain_graph=True)[1].tolist() == [0, 0]
    h = w * 2
    assert grad(y, (x, h), allow_unused=True, retain_graph=True)[1] is None
    with pytest.raises(ValueError, match="allow_unused"):
        grad(y, (x, w), allow_unused=False, materialize_grads=True)
    with pytest.raises(RuntimeError, match="does not require"):
        grad(y, [Variable(1.0)])


def test_grad_does_not_visit_unneeded_nodes():
    """Nodes that do not lead to the inputs are not visited, and so not freed."""
    x, w = leaf(1, 2), leaf(3, 4)
    h, k = ops.exp(x), ops.exp(w)
    y = (h * k).sum()
    (g,) = grad(y, h)
    np.testing.assert_allclose(g.data, np.exp(w.data))
    k.sum().backward()
    h.sum().backward()


def test_diamonds_and_shared_parts():
    x = leaf(1, 2)
    a = x * 2
    b, c = a * a, ops.exp(a)
    ((b + c) * b).sum().backward()
    a = 2 * x.data
    np.testing.assert_allclose(x.grad.data, 2 * (4 * a**3 + np.exp(a) * (a * a + 2 * a)))


def test_broadcasting():
    x, w, s = Variable(np.ones((3, 1)), requires_grad=True), leaf(1, 2, 3, 4), Variable(2.0, requires_grad=True)
    (x * w * s).sum().backward()
    assert x.grad.shape == (3, 1) and w.grad.shape == (4,) and s.grad.shape == ()
    np.testing.assert_allclose(x.grad.data, 20)
    np.testing.assert_allclose(w.grad.data, 6)
    np.testing.assert_allclose(s.grad.data, 30)


def test_dtypes():
    x = Variable(np.ones(3, np.float32), requires_grad=True)
    w = leaf(1, 2, 3)
    (x * w * np.arange(3)).sum().backward()
    assert x.grad.dtype == np.float32 and w.grad.dtype == np.float64


def test_integers_end_the_graph():
    x = Variable(np.array([1.5, 2.5]), requires_grad=True)
    for y in (x.astype("int64"), ops.cast(x, "bool"), ops.view(x, "int64")):
        assert not y.requires_grad and y.grad_fn is None
    assert x.astype("float32").requires_grad


def test_backward_is_quiet_about_infinities():
    x = leaf(0.0)
    with np.errstate(all="raise"):
        ops.sqrt(x).sum().backward()
    assert np.isinf(x.grad.data[0])


def test_errors_restore_the_mode():
    x = leaf(1, 2)
    x.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        x.sum().backward(create_graph=True)
    with no_grad(), pytest.raises(ZeroDivisionError):
        x2 = Variable(1.0, requires_grad=True)
        x2.register_hook(lambda g: 1 / 0)
        x2.backward()
    assert (x * 1).requires_grad


@pytest.mark.parametrize("key", [(), (0,), (0, 1)])
def test_element_read_twice_has_a_second_derivative(key):
    x = Variable(np.ones((2,) * len(key)) * 3.0, requires_grad=True)
    (g,) = grad(x[key] * x[key], x, create_graph=True)
    (g,) = grad(g.sum(), x)
    assert g.data.sum() == g.data[key] == 2.0


def test_torch_tensors_go_to_torch():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    backward(y, retain_graph=True)
    assert torch.equal(x.grad, 2 * x)
    (g,) = grad(y, x, create_graph=True)
    assert g.grad_fn is not None and isinstance(g, torch.Tensor)
    backward([y], [torch.tensor(2.0)], inputs=[x])
    assert torch.equal(x.grad, 6 * x.detach())
    z = torch.ones(1, requires_grad=True)
    assert grad(x.sum(), [x, z], allow_unused=True)[1] is None


@pytest.mark.parametrize("library", ["jax", "tensorflow"])
def test_jax_and_tensorflow_arrays(library):
    module = pytest.importorskip("jax.numpy" if library == "jax" else "tensorflow")
    make = module.asarray if library == "jax" else module.constant
    x = Variable(make(np.array([1.0, 2.0], np.float32)), requires_grad=True)
    w = Variable(make(np.array([3.0, 4.0], np.float32)), requires_grad=True)
    for _ in range(2):
        (x * ops.exp(w)).sum().backward()
    assert type(x.grad.data) is type(x.data)
    np.testing.assert_allclose(np.asarray(x.grad.data), 2 * np.exp([3, 4]), rtol=1e-5)
    (g,) = grad((x * x * x).sum(), x, create_graph=True)
    (g,) = grad(g.sum(), x)
    np.testing.assert_allclose(np.asarray(g.data), [6, 12], rtol=1e-6)


def test_complex_root_without_a_seed_is_an_error():
    """The gradient of the real part must not be taken silently; `grad()` and PyTorch raise as well."""
    z = Variable(np.array(1 + 2j), requires_grad=True)
    for start in (lambda y: y.backward(), lambda y: grad(y, z)):
        with pytest.raises(GradientError, match="complex number"):
            start(z * z)
    (g,) = grad(z * z, z, np.array(1.0 + 0j))
    np.testing.assert_allclose(g.data, 2 - 4j)


def test_freed_by_reference_counting_alone():
    import gc
    import weakref

    gc.disable()
    try:
        for finish in (
            lambda y, x: y.backward(),
            lambda y, x: y.backward(retain_graph=True),
            lambda y, x: y.backward(create_graph=True),
            lambda y, x: grad(y, x, create_graph=True),
            lambda y, x: None,
        ):
            x = leaf(1, 2)
            h = ops.exp(x)
            y = (h[0:1] * ops.split(h * x, 2)[0]).sum()
            nodes = [weakref.ref(h.grad_fn), weakref.ref(y.grad_fn)]
            result = finish(y, x)
            x.grad = None
            del y, h, result
            assert [n() for n in nodes] == [None, None]
    finally:
        gc.enable()


def test_buffers_are_freed_during_the_pass():
    import tracemalloc

    x = Variable(np.ones(50_000), requires_grad=True)
    y = x
    for _ in range(50):
        y = ops.exp(y * 1e-3)
    y = y.sum()
    tracemalloc.start()
    try:
        y.backward()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10 * x.data.nbytes, "the pass itself needs a few buffers, not one for each operation"


def test_failed_pass_can_be_resumed_from_a_missing_gradient():
    x = Variable(np.array([1.0, 2.0]), requires_grad=True)
    failed = []

    def hook(g):
        if not failed:
            failed.append(True)
            raise KeyboardInterrupt

    x.register_hook(hook)
    y = x * x
    with pytest.raises(KeyboardInterrupt):
        y.backward(np.array([np.nan, 1.0]))
    y.backward(np.array([np.nan, 1.0]))
    np.testing.assert_array_equal(x.grad.data, [np.nan, 4.0])


def test_pass_interrupted_by_a_leaf_hook_can_be_resumed():
    """No value is computed twice and no hook runs twice."""
    x, y = (Variable(np.array([1.0, 2.0]), requires_grad=True) for _ in range(2))
    calls = []

    def hook_x(g):
        calls.append("x")
        return g * 10.0

    def hook_y(g):
        calls.append("y")
        if calls.count("y") == 1:
            raise KeyboardInterrupt
        return g * 100.0

    x.register_hook(hook_x)
    y.register_hook(hook_y)
    z = (x * y).sum()
    with pytest.raises(KeyboardInterrupt):
        z.backward()
    assert x.grad is None and y.grad is None
    z.backward()
    np.testing.assert_allclose(x.grad.data, [10, 20])
    np.testing.assert_allclose(y.grad.data, [100, 200])
    assert calls.count("x") == 1 and calls.count("y") == 2


def test_errors_for_pytorch_habits():
    for make in (Variable, Parameter):
        with pytest.raises(BackendError, match=r"tensor.requires_grad_\(\)"):
            make(torch.ones(2))
    for name, arguments in {"zeros": (3,), "full": ((3,), 1.0), "arange": (3,), "array": ([1.0],)}.items():
        with pytest.raises(ArgumentTypeError, match=rf"gradops.Variable\(ops.{name}\(...\), requires_grad=True\)"):
            getattr(ops, name)(*arguments, requires_grad=True)
