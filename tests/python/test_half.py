"""Every op's gradient has its input's dtype, also in half precision: by functions and by the tape, to second order."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from parity import BACKENDS, Case, flat, weights
from precision import KINDS, converted, each_array, loss, rounded, wide
from test_chosen import EACH
from test_parity import CASES
from test_precision import PUBLIC

import gradops
from gradops import Variable, autodiff, backends, ops

HALVES = [(b, name) for b in BACKENDS for name in ("float16", "bfloat16") if (b, name) != ("numpy", "bfloat16")]


def gradients_of(case: Case, backend: str, kinds: list[str], orders: int) -> dict[str, tuple]:
    """Return the dtypes of a case's gradients for differentiated arrays of ``kinds``, and the expected dtypes.

    Args:
        kinds: dtypes assigned to the arrays in turn; other arguments have the first one.
    """
    half = next(kind for kind in kinds if kind in KINDS)
    arguments = {k: each_array(v, lambda x: rounded(x, half)) for k, v in case.example().items()}
    arrays: list = []
    for name in case.gradients:
        each_array(arguments[name], arrays.append)
    own = {"c": "complex64"}
    leaves = [converted(x, backend, own | {"f": kinds[i % len(kinds)]}) for i, x in enumerate(arrays)]
    fixed = {k: converted(v, backend, own | {"f": kinds[0]}) for k, v in arguments.items() if k not in case.gradients}
    want = tuple(map(ops.dtype, leaves))
    found: dict[str, tuple] = {}

    def results(*values):
        queue = list(values)
        given = {k: each_array(arguments[k], lambda _: queue.pop(0)) for k in case.gradients}
        return flat(case.function()(**{k: given.get(k, fixed.get(k)) for k in arguments}))

    def scalar(*values):
        made = results(*values)
        return loss(made, weights(made))

    def note(what: str, gradients) -> None:
        dtypes = tuple(ops.dtype(g.data if isinstance(g, Variable) else g) for g in gradients)
        if dtypes != want:
            found[what] = (dtypes, want)

    def all_of_them(*values):
        f, every = scalar, tuple(range(len(values)))
        for order in range(1, orders + 1):
            gradient = gradops.grad(f, every)
            note(f"order {order}", gradient(*values))
            f = lambda *xs, g=gradient: loss(made := list(g(*xs)), weights(made, seed=11))  # noqa: E731
        if backend != "torch":  # PyTorch's own tape is the only one for its tensors
            variables = [Variable(x, requires_grad=True) for x in values]
            total = scalar(*variables)
            for order in range(1, orders + 1):
                if not total.requires_grad:
                    break
                made = list(autodiff.grad(total, variables, create_graph=True, materialize_grads=True))
                note(f"order {order} by the tape", made)
                total = loss(made, weights(made, seed=11))
        return 0.0

    if backend == "jax":
        import jax

        with contextlib.suppress(Exception):  # control flow depends on values
            jax.eval_shape(all_of_them, *leaves)
            return found
        found.clear()
    all_of_them(*leaves)
    return found


def check(cases, backend: str, kinds: list[str], orders: int) -> None:
    wrong: dict = {}
    for case in cases:
        if backend in case.skip or not case.gradients:
            continue
        try:
            found: object = gradients_of(case, backend, kinds, orders)
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        if found:
            wrong[case.id] = found
    assert not wrong, "\n".join(f"{k}: {v}" for k, v in wrong.items())


# JAX and TensorFlow compile again for each dtype.
@pytest.mark.short_cases(0, "jax", "tensorflow")
@pytest.mark.parametrize(
    "backend, name",
    [
        pytest.param(*half, marks=pytest.mark.long if half in (("jax", "bfloat16"), ("tensorflow", "bfloat16")) else ())
        for half in HALVES
    ],
)
def test_each_op(backend, name):
    check(EACH.values(), backend, [name], 1)


@pytest.mark.long
@pytest.mark.parametrize("backend, name", HALVES)
def test_second_derivatives_in_half_precision(backend, name):
    check(CASES, backend, [name], 2)


@pytest.mark.long
@pytest.mark.parametrize("backend, name", HALVES)
def test_mixed_with_single_precision(backend, name):
    """Each gradient has the dtype of its own input."""
    for kinds in ([name, "float32"], ["float32", name]):
        check((case for op, case in EACH.items() if op in PUBLIC), backend, kinds, 2)


@gradops.custom_gradient
def tripled(x):
    return ops.sin(x), lambda upstream: upstream * 3.0


FLOWS = {
    "custom": tripled,
    "scaled": lambda x: gradops.scaled_gradient(x * x, -2.0),
    "stopped": lambda x: gradops.stop_gradient(x) * x * x,
    "checkpoint": gradops.checkpoint(lambda x: ops.sin(x) * x),
    "custom in a checkpoint": gradops.checkpoint(lambda x: tripled(x) * x),
    "beside numbers": lambda x: (x * 2 + 0.5) / 3 - ops.power(x, 2),
    "divided by an array": lambda x: ops.divide(x * x, np.array([2, 3])),
    "under an array": lambda x: ops.divide(np.array([2, 3]), x + 1),
    "matrix": lambda x: ops.matmul(np.array([[2, 1], [0, 3]]), x * x),
    "arrays at choice": lambda x: ops.where(x > 0, x * x, np.array([2, 3])),
}


@pytest.mark.short_cases(0, "jax")
@pytest.mark.parametrize("backend, name", HALVES)
def test_flows(backend, name):
    """Covers integers in NumPy arrays, since NumPy lacks bfloat16."""
    x = backends.lookup(backend).convert(np.array([0.5, 1.0]), name)
    found = {}
    for what, f in FLOWS.items():
        first = gradops.grad(lambda v, f=f: ops.sum(f(v) * f(v)))
        dtypes = [first(x), gradops.grad(lambda v, g=first: ops.sum(g(v) * v))(x)]
        if backend != "torch":
            v = Variable(x, requires_grad=True)
            (g,) = autodiff.grad(ops.sum(f(v) * f(v)), [v], create_graph=True)
            dtypes += [g.data, autodiff.grad(ops.sum(g * v), [v])[0].data]
        found[what] = {*map(ops.dtype, dtypes)}
    assert found == dict.fromkeys(FLOWS, {name})


ONES, FIRST = np.ones(3000), np.zeros(3000, int)
LONG_SUMS = {
    "sum": lambda x: ops.sum(x),
    "rows": lambda x: ops.sum(ops.stack([x, x], 1), 0)[0],
    "mean": lambda x: ops.multiply(ops.mean(x), 3000),
    "norm": lambda x: ops.norm(x, 1),
    "average": lambda x: ops.multiply(ops.average(x, weights=x), 3000),
    "cumsum": lambda x: ops.cumsum(x)[-1],
    "dot": lambda x: ops.dot(x, x),
    "matmul": lambda x: ops.matmul(ops.reshape(x, (1, -1)), ops.reshape(x, (-1, 1)))[0, 0],
    "matmul of matrices": lambda x: ops.matmul(ops.stack([x, x]), ops.stack([x, x], 1))[0, 1],
    "tensordot": lambda x: ops.tensordot(ops.stack([x, x]), ops.stack([x, x]), ([1], [1]))[0, 1],
    "einsum of matrices": lambda x: ops.einsum("ij,jk->ik", ops.stack([x, x]), ops.stack([x, x], 1))[0, 1],
    "einsum of rows": lambda x: ops.einsum("ij->j", ops.stack([x, x], 1))[0],
    "correlate": lambda x: ops.correlate(x, x)[0],
    "conv": lambda x: ops.conv(ops.reshape(x, (1, -1, 1)), ops.reshape(x, (-1, 1, 1)))[0, 0, 0],
    "trapezoid": lambda x: ops.add(ops.trapezoid(x), 1),
    "cumsum of rows": lambda x: ops.cumsum(ops.stack([x, x], 1), 0)[-1, 0],
    "einsum": lambda x: ops.einsum("i,i->", x, x),
    "einsum of one": lambda x: ops.einsum("i->", x),
    "segments": lambda x: ops.segment_sum(x, FIRST, 2)[0],
    "bincount": lambda x: ops.bincount(FIRST, x)[0],
    "scatter": lambda x: ops.scatter(FIRST[:, None], x, (2,))[0],
    "scatter_update": lambda x: ops.subtract(ops.scatter_update(x, FIRST[:, None], x, "add")[0], 1),
    "average_pool": lambda x: ops.multiply(ops.average_pool(ops.reshape(x, (1, -1, 1)), 3000)[0, 0, 0], 3000),
    "adaptive": lambda x: ops.multiply(ops.adaptive_average_pool(ops.reshape(x, (1, -1, 1)), 1)[0, 0, 0], 3000),
}
WITHIN = {  # squares, sums or steps of these functions overflow half precision although the results do not
    "norm": (ops.norm, [300.0, 400.0]),
    "norm of small numbers": (ops.norm, [3e-5, 4e-5]),
    "norm of order 3": (lambda x: ops.norm(x, 3), [300.0, 400.0]),
    "std": (ops.std, [300.0, 60000.0]),
    "cdist": (lambda x: ops.cdist(ops.reshape(x, (2, 1)), ops.reshape(x, (2, 1)) * 0), [300.0, 400.0]),
    "corrcoef": (lambda x: ops.corrcoef(ops.reshape(x, (2, 3))), [300.0, 400, 600, 100, 700, 200]),
    "average": (lambda x: ops.average(x, weights=x), [300.0, 400.0]),
    "average_pool": (lambda x: ops.average_pool(ops.reshape(x, (1, 2, 1)), 2), [60000.0, 50000.0]),
    "adaptive": (lambda x: ops.adaptive_average_pool(ops.reshape(x, (1, 2, 1)), 1), [60000.0, 50000.0]),
    "linspace": (lambda x: ops.linspace(x[0], x[1], 5), [-60000.0, 60000.0]),
    "ldexp": (lambda x: ops.ldexp(x, np.array([39, 40])), [2.0**-24, 0.0]),
    "gelu": (ops.gelu, [-300.0, 300.0]),
}
NEAR = np.array([-9.0, -4, -2.9, -2, -1, -0.1, -0.01, 0.001, 0.1, 0.7, 1.5, 2.9, 4, 9])
EXACT = {
    "gelu": ops.gelu,
    "gelu by the normal distribution": lambda x: ops.gelu(x, approximate=False),
    "tanh_shrink": ops.tanh_shrink,
    "hard_sigmoid": ops.hard_sigmoid,
    "hard_silu": ops.hard_silu,
    "sinc": ops.sinc,
    "softplus": ops.softplus,
    "log_sigmoid": ops.log_sigmoid,
}


def in_half(backend: str, name: str, x) -> tuple:
    """Return a tensor in half precision, and its values in double precision."""
    x = backends.lookup(backend).convert(np.asarray(x, float), name)
    return x, wide(x)


def near(found, wanted, name: str, what: str) -> None:
    step = {"float16": 2.0**-10, "bfloat16": 2.0**-7}[name]
    assert ops.dtype(found) == name, what
    wanted = wide(wanted)
    if name == "float16":
        with np.errstate(over="ignore"):
            wanted = wanted.astype(name)  # infinite if out of range
    np.testing.assert_allclose(wide(found), wanted, rtol=2 * step, atol=1e-6, err_msg=what)


@pytest.mark.short_cases(0, "jax")
@pytest.mark.parametrize("backend, name", HALVES)
def test_long_sums_do_not_stagnate(backend, name):
    """In half precision adding 1 to 2048 (float16) or 256 (bfloat16) has no effect."""
    x, _ = in_half(backend, name, ONES)
    for what, f in LONG_SUMS.items():
        near(f(x), np.array(3000.0), name, what)
    if backend != "torch":
        one = Variable(in_half(backend, name, [1.0])[0], requires_grad=True)
        (gradient,) = autodiff.grad(ops.sum(ops.take(one, FIRST)), [one])
        near(gradient, np.array([3000.0]), name, "take")


@pytest.mark.short_cases(0, "jax")
@pytest.mark.parametrize("backend, name", HALVES)
def test_results_within_range_do_not_overflow(backend, name):
    for what, (f, numbers) in WITHIN.items():
        x, same = in_half(backend, name, numbers)
        near(f(x), f(same), name, what)
        near(
            gradops.grad(lambda v, f=f: ops.sum(f(v)))(x), gradops.grad(lambda v, f=f: ops.sum(f(v)))(same), name, what
        )


@pytest.mark.parametrize("backend, name", HALVES)
def test_values_are_single_precision_rounded(backend, name):
    x, same = in_half(backend, name, NEAR)
    for what, f in EXACT.items():
        near(f(x), f(same), name, what)


def own_gradient_of_element(backend: str, x):
    """Return the library's own gradient for an element gathered 3000 times."""
    if backend == "torch":
        leaf = x.clone().requires_grad_()
        leaf[FIRST].sum().backward()
        return leaf.grad
    if backend == "jax":
        import jax

        return jax.grad(lambda v: v[FIRST].sum())(x)
    import tensorflow as tf

    leaf = tf.Variable(x)
    with tf.GradientTape() as recorded:
        y = tf.reduce_sum(tf.gather(leaf, FIRST))
    return tf.convert_to_tensor(recorded.gradient(y, leaf))


@pytest.mark.parametrize("backend, name", [(b, name) for b, name in HALVES if b != "numpy"])
def test_gradients_of_repeated_elements_match_the_library(backend, name):
    """The libraries' own gradients accumulate in half precision."""
    x, _ = in_half(backend, name, [1.0, 1.0])
    own = wide(own_gradient_of_element(backend, x))
    assert own[0] == {"float16": 2048, "bfloat16": 256}[name]
    np.testing.assert_array_equal(wide(gradops.grad(lambda v: ops.sum(ops.take(v, FIRST)))(x)), own)
