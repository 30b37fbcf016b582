"""In-place writes: correct gradients, views, and overwritten saved tensors."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import gradops
from gradops import Variable, autodiff, ops
from gradops.autodiff import no_grad
from gradops.errors import ArgumentError, ArgumentTypeError, GradientError, ShapeError

torch = pytest.importorskip("torch")


def of(kind, values):
    """Return a leaf that requires a gradient: a variable over an array library, or a torch tensor."""
    values = np.asarray(values, float)
    if kind == "torch":
        return torch.tensor(values, requires_grad=True)
    if kind == "jax":
        jnp = pytest.importorskip("jax.numpy")
        gradops.config.set_backend("jax")
        return Variable(jnp.asarray(values), requires_grad=True)
    if kind == "tensorflow":
        return Variable(pytest.importorskip("tensorflow").constant(values), requires_grad=True)
    return Variable(values.copy(), requires_grad=True)


def values(x):
    return np.asarray(x.detach().numpy())


def fill(x, w):
    y = x * 2
    y[0] = w[1] * w[0]
    y[1:3] = w
    return y * y


def add(x, w):
    y = x * 1
    y += w.sum()
    y -= x
    return y * y


def multiply(x, w):
    y = x * 1
    y *= w[0]
    y /= x
    y *= 3
    return y * x


def power(x, w):
    y = x * 1
    y **= 2
    return y


def constant(x, w):
    y = x * 1
    y[...] = 7
    return y * w[0]


def view(x, w):
    y = x * 1
    u = y[1:3]
    u += 1
    u *= w
    u[0] = 3 * w[1]
    return y * y


def view_of_view(x, w):
    y = x * 2
    u = y[1:4]
    v = u[0:2]
    v *= w
    return (y * y).sum() + (u * u * u).sum() + v.sum()


def base_written_after_view(x, w):
    y = x * 2
    u = y[0:2]
    y[0] = w[0]
    z = u * u
    return z.sum() + y.sum()


def reshaped(x, w):
    y = x * 2
    m = y.reshape(2, 2)
    m[1] = w
    t = m.T
    t[0] = w * w
    return (y * y).sum() + (m * m).sum() + t[1].sum()


def onto_constant(x, w):
    y = x.detach() * 0
    for i in range(4):
        y[i] = x[i] * w[0]
    return y * y


def row_by_row(x, w):
    y = x * 1
    for i in range(3):
        y[i] += y[i + 1] + w[0]
    return y


def broadcast(x, w):
    y = x.reshape(2, 2) * 1
    y[:, 0] = w[0]
    y[1] += w
    return y * y


def mask(x, w):
    y = x * 1
    y[y > 2] = w[0]
    return y * y


def swap(x, w):
    y = x * 1
    y[0:2] = y[2:4] * 1
    return y * y * x


CASES = [
    fill, add, multiply, power, constant, view, view_of_view, base_written_after_view, reshaped, onto_constant,
    broadcast, mask, swap, row_by_row,
]  # fmt: skip
FUNCTIONAL = [fill, add, multiply, power, constant, onto_constant, broadcast, mask, swap, row_by_row]


def gradients(kind, f):
    x, w = of(kind, [1.0, 2, 3, 4]), of(kind, [5.0, 6])
    y = f(x, w)
    y.sum().backward()
    return values(y), *(values(v.grad) if v.grad is not None else 0 * values(v) for v in (x, w))


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_gradients_match_torch(f):
    for got, want in zip(gradients("numpy", f), gradients("torch", f)):
        np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.short_cases(3)
@pytest.mark.parametrize("f", FUNCTIONAL, ids=lambda f: f.__name__)
@pytest.mark.parametrize("kind", ["jax", "tensorflow"])
def test_immutable_arrays_match_torch(kind, f):
    for got, want in zip(gradients(kind, f), gradients("torch", f)):
        np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("f", [fill, view, reshaped, broadcast, view_of_view], ids=lambda f: f.__name__)
def test_second_derivative(f):
    def twice(kind, grad):
        x, w = of(kind, [1.0, 2, 3, 4]), of(kind, [5.0, 6])
        first = grad(f(x, w).sum(), [x, w], create_graph=True)
        total = (first[0] * first[0]).sum() + (first[1] * first[1]).sum()
        return [values(g) for g in grad(total, [x, w], allow_unused=True, materialize_grads=True)]

    for got, want in zip(twice("numpy", gradops.autodiff.grad), twice("torch", torch.autograd.grad)):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_duplicate_index_keeps_the_last_value():
    x, w = of("numpy", [1.0, 2, 3]), of("numpy", [5.0, 6])
    y = x * 1
    y[[0, 0]] = w
    y.backward([1.0, 10, 100])
    np.testing.assert_allclose(y.data, [6, 2, 3])
    np.testing.assert_allclose(w.grad.data, [0, 1])
    np.testing.assert_allclose(x.grad.data, [0, 10, 100])


def test_value_with_more_dimensions():
    x, w = of("numpy", np.zeros((2, 3))), of("numpy", [[[1.0, 2, 3]]])
    y = x * 1
    y[0] = w
    (y * y).sum().backward()
    np.testing.assert_allclose(w.grad.data, [[[2, 4, 6]]])


def test_array_is_written_in_place():
    array = np.zeros(3)
    v = Variable(array)
    v[1] = Variable(2.0, requires_grad=True)
    v += 1
    np.testing.assert_allclose(array, [1, 3, 1])
    assert v.data is array and v.requires_grad and not v.is_leaf


def test_out():
    x, w = of("numpy", [1.0, 2]), of("numpy", [3.0, 4])
    y = x * 1
    assert np.multiply(y, w, out=y) is y
    np.add(y, w, out=y)
    (y * y).sum().backward()
    total = 3 * 1 + 3, 4 * 2 + 4
    np.testing.assert_allclose(x.grad.data, [2 * total[0] * 3, 2 * total[1] * 4])
    np.testing.assert_allclose(w.grad.data, [2 * total[0] * 2, 2 * total[1] * 3])
    target = Variable(np.zeros(2))
    np.positive(x, out=target)
    target.sum().backward()
    assert target.data is not x.data and not target.is_leaf
    x.zero_grad()
    target = Variable(np.zeros(2))
    np.concatenate([x[:1], w[:1]], out=target)
    assert target.requires_grad
    with pytest.raises(GradientError, match="would lose it"):
        np.add(x, w, out=np.zeros(2))
    plain = np.ones(2)
    with pytest.raises(GradientError):
        plain += x
    with no_grad():
        plain += x
    np.testing.assert_allclose(plain, [2, 3])


def test_ufunc_at():
    x, w = of("numpy", [1.0, 2, 3]), of("numpy", [1.0, 10])
    y = x * 2
    np.add.at(y, [0, 0], w)
    np.subtract.at(y, [1], 1.0)
    np.testing.assert_allclose(y.data, [13, 3, 6])
    (y * y).sum().backward()
    np.testing.assert_allclose(w.grad.data, [26, 26])


def test_stale_saved_tensor():
    x = of("numpy", [1.0, 2])
    y = x * 2
    z = np.exp(y)
    z[0] = 0
    z += 1
    with pytest.raises(RuntimeError, match=r"`exp` saved a tensor of shape \(2,\).*at version 0;.*version 2\."):
        z.sum().backward()
    y = x * 2
    y[0] = 1
    z = y * y
    with no_grad():
        y += 1
    with pytest.raises(RuntimeError, match=r"`multiply`.*at version 1;.*version 2\."):
        z.sum().backward()


def test_stale_saved_tensor_through_views_and_detach():
    for change in (lambda y: y[0:1].__iadd__(1), lambda y: y.detach().__imul__(2), lambda y: y.T.__setitem__(0, 3)):
        y = of("numpy", [1.0, 2]) * 2
        z = y * y
        change(y)
        with pytest.raises(RuntimeError, match="`multiply` saved"):
            z.sum().backward()


def test_unsaved_tensors_may_be_written():
    x = of("numpy", [1.0, 2])
    y = x * 2
    z = y + 1
    u = y[0]
    w = y.sum()
    y += 5
    (z.sum() + w + u).backward()
    np.testing.assert_allclose(x.grad.data, [6, 4])


def test_many_writes_keep_memory_bounded():
    v = Variable(np.zeros(2))
    x = of("numpy", [1.0, 2])
    y = v * x
    for _ in range(1000):
        v += 1
    assert v._version == 1000
    with pytest.raises(GradientError, match="or older; in-place writes have since made it version 1000"):
        y.sum().backward()


def test_version_is_dropped_with_the_buffer():
    from gradops.autodiff import state

    before = len(state.written)
    v = Variable(np.zeros(2))
    v += 1
    assert len(state.written) == before + 1
    del v
    assert len(state.written) == before


def test_leaves():
    x = of("numpy", [1.0, 2])
    for write in (
        lambda: x.__setitem__(0, 1),
        lambda: x.__iadd__(1),
        lambda: x[0:1].__iadd__(1),
        lambda: x.reshape(2, 1).__setitem__(0, 1),
        lambda: np.add(x, 1, out=x),
        lambda: x[0:1].__setitem__(0, 1),
    ):
        with pytest.raises(RuntimeError, match="a leaf variable that requires a gradient"):
            write()
    np.testing.assert_allclose(x.data, [1, 2])
    with no_grad():
        x -= 1
        x[0] = 5
        x[0:1] *= 2
    np.testing.assert_allclose(x.data, [10, 1])
    assert x.is_leaf and x.requires_grad
    (x * x).sum().backward()
    np.testing.assert_allclose(x.grad.data, [20, 2])


@pytest.mark.parametrize("kind", ["jax", "tensorflow"])
def test_leaves_on_immutable_arrays(kind):
    x = of(kind, [1.0, 2])
    with pytest.raises(RuntimeError, match="leaf"):
        x += 1
    with pytest.raises(RuntimeError, match="leaf"):
        x[0] = 1
    with no_grad():
        x -= 1
        x[0] = 5
    np.testing.assert_allclose(values(x), [5, 1])
    assert x.is_leaf and x.requires_grad


def test_training_step_in_place():
    w = of("numpy", [1.0, 2])
    for _ in range(3):
        loss = (w * w).sum()
        loss.backward()
        with no_grad():
            w -= 0.1 * w.grad
            w.grad *= 0
    np.testing.assert_allclose(w.data, np.array([1, 2]) * 0.8**3)


def test_retained_gradient_belongs_to_the_new_value():
    x = of("numpy", [1.0, 2])
    y = x * 3
    y.retain_grad()
    y *= 2
    (y * y).sum().backward()
    np.testing.assert_allclose(y.grad.data, [12, 24])


def test_retained_gradients_of_views_belong_to_their_new_values():
    for write in (lambda u, v: u.__imul__(2), lambda u, v: v.__setitem__(..., 2 * v)):
        y = of("numpy", [1.0, 2]) * 3
        u, v = y[:], y[:1]
        for view in (u, v):
            view.retain_grad()
        write(u, v)
        ((u * u).sum() + 5 * v.sum()).backward()
        np.testing.assert_allclose(u.grad.data, 2 * u.data)
        np.testing.assert_allclose(v.grad.data, [5])


def test_errors():
    y = of("numpy", [1.0, 2]) * 1
    with pytest.raises(ShapeError, match="`value` must broadcast"):
        y[0:1] = np.ones(3)
    with pytest.raises(ShapeError, match="keep the shape"):
        y += np.ones((3, 2))
    with pytest.raises(ShapeError, match="keep the shape"):
        y *= of("numpy", [[1.0], [2]])
    with pytest.raises(ArgumentTypeError, match="complex"):
        y[0] = 1j
    with pytest.raises(ArgumentTypeError):
        y += 1j
    with pytest.raises(IndexError):
        y[5] = 1
    with pytest.raises(TypeError):
        y[0] = torch.ones(())
    with pytest.raises(ArgumentError, match="read-only"):
        frozen = np.ones(2)
        frozen.flags.writeable = False
        Variable(frozen)[0] = 1
    b = ops.broadcast_to(y, (3, 2))
    b[0] = 1
    np.testing.assert_allclose(y.data, [1, 2])
    i = Variable(np.arange(3))
    with pytest.raises(ArgumentTypeError):
        i += 0.5
    with pytest.raises(GradientError, match="view"):
        y[0:1].detach_()


def test_scalars():
    x = of("numpy", [1.0, 2])
    s = x.sum()
    s += 1
    s *= s
    s.backward()
    np.testing.assert_allclose(x.grad.data, [8, 8])


def test_view_is_pickled_and_copied_as_a_variable():
    v = Variable(np.arange(4.0))
    u = pickle.loads(pickle.dumps(v[1:3]))
    assert type(u) is Variable
    u[0] = 9
    np.testing.assert_allclose(v.data, np.arange(4))


def test_views_made_under_no_grad_are_constants():
    x = of("numpy", [1.0, 2])
    y = x * 1
    with no_grad():
        u, parts = y[0:1], ops.split(y, 2)
    u[0] = 2.0
    np.testing.assert_allclose(y.data, [2, 2])
    writes = [lambda v: v.__setitem__(0, x[1]), lambda v: v.__iadd__(x[1:]), lambda v: v.copy_(x[1:])]
    for v in (u, u[:], parts[0]):  # without the gradient through `x`, `y` would be 2 or 4
        for write in writes:
            with pytest.raises(GradientError, match="made where nothing is recorded"):
                write(v)
    np.testing.assert_allclose(y.data, [2, 2])


def test_mixed_dtypes():
    x = Variable(np.ones(2, np.float32), requires_grad=True)
    w = of("numpy", [2.0, 3])
    y = x * 1
    y *= w
    y[0] = w[1]
    assert y.dtype == np.float32
    y.sum().backward()
    assert x.grad.dtype == np.float32 and w.grad.dtype == np.float64
    np.testing.assert_allclose(w.grad.data, [0, 2])


def test_complex():
    z = Variable(np.array([1 + 2j, 3 - 1j]), requires_grad=True)
    t = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    for v in (z, t):
        y = v * 1
        y *= v
        y[0] = v[1] * 2j
        (abs(y) ** 2).sum().backward()
    np.testing.assert_allclose(z.grad.data, t.grad.numpy())


@pytest.mark.parametrize(
    "made",
    [
        lambda x: ops.broadcast_to(x[0:1] * 1.0, (3,)),
        lambda x: ops.real(ops.cast(x, "complex128") * 1.0),
        lambda x: ops.diagonal(ops.stack([x, x, x]) * 1.0),
        lambda x: gradops.grad(lambda v: ops.sum(v))(x),
    ],
    ids=["broadcast_to", "real", "diagonal", "a gradient"],
)
def test_views_of_a_copy_on_write_array(made):
    """After the copy they are views of the copy, whichever of them is written, and the source keeps its values."""
    for which in range(3):
        x = Variable(np.array([2.0, 2.0, 2.0]), requires_grad=True)
        z = made(x)
        before = z.data[0]
        w = z[:]
        v = (z, w, w[1:])
        v[which][-1:] = 5.0 * x[0:1]
        for y in v:
            np.testing.assert_array_equal(y.data, [before, before, 10.0][-len(y.data) :])
        np.testing.assert_array_equal(x.data, 2.0)
        (g,) = autodiff.grad(ops.sum(v[0]) + ops.sum(v[1]) + ops.sum(v[2] * 1.0), [x])
        assert g.data[0] >= 15.0  # each one sees the write


def _constant_first(x):
    y = ops.full_like(x, 1.0)  # has a view, but no node yet
    y[...] = x * x
    y[:0] *= -1.0
    return ops.sum(y)


def _read_and_written(x):
    y = ops.exp(x)  # saves its result
    z = y * y
    y[0] = 2.0
    row = y[None]
    y[1] *= 3.0
    return ops.sum(z) + ops.sum(row)


@pytest.mark.parametrize(
    "f, slope",
    [(_constant_first, lambda x: 2 * x), (_read_and_written, lambda x: 2 * np.exp(2 * x) + [0, 3] * np.exp(x))],
)
def test_results_may_be_written_inside_a_differentiated_function(f, slope):
    """Third-party code does this; values saved by operations must not change."""
    x = np.array([0.3, 0.7])
    np.testing.assert_allclose(gradops.grad(f)(x), slope(x))
