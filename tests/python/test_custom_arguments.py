"""``custom_gradient``: named and default arguments, and invalid gradient functions."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import gradops
from gradops import Variable, backends, custom_gradient, ops
from gradops.errors import GradientError, GradopsError

A, B = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])
ALL = pytest.mark.parametrize("backend", backends.NAMES)

by_order = custom_gradient(lambda x, k: (x * k, lambda upstream: (upstream * k, None)))
by_inputs = custom_gradient(lambda x, k: (x * k, lambda x, k, up: (up * k, None)))
by_two = custom_gradient(lambda x, k: x * k, lambda x, k, upstream: (upstream * k, None))
by_upstream = custom_gradient(lambda x, k: x * k, lambda x, k, up: {"x": up * k})
keyword = custom_gradient(lambda x, *, k: x * k, lambda x, upstream, *, k: (upstream * k, None))
keywords = custom_gradient(lambda x, **rest: x * rest["k"], lambda x, upstream, **rest: upstream * rest["k"])


@ALL
@pytest.mark.parametrize("f", [by_order, by_inputs, by_two, by_upstream, keyword, keywords])
def test_arguments_by_name_in_any_order(backend, f):
    """Gradients follow the order of the function's arguments, not of the call's."""
    x, k = (backends.lookup(backend).convert(v) for v in (A, B))
    np.testing.assert_allclose(gradops.grad(lambda x: ops.sum(f(x, k=k)))(x), B)
    np.testing.assert_allclose(gradops.grad(lambda x: ops.sum(f(k=k, x=x)))(x), B)
    np.testing.assert_allclose(gradops.grad(lambda x: ops.sum(f(x=x, k=k)))(x), B)


CONSTANTS = {
    "array": np.array([4.0, 5.0, 6.0]),
    "single": np.array([4.0, 5.0, 6.0], "float32"),
    "scalar": np.float64(4.0),
    "no dimensions": np.array(4.0),
    "integers": np.array([4, 5, 6]),
}
beside = [
    custom_gradient(lambda x, k: (ops.multiply(x, k), lambda upstream: (ops.multiply(upstream, k), None))),
    custom_gradient(lambda x, k: ops.multiply(x, k), lambda x, k, upstream: (ops.multiply(upstream, k), None)),
    custom_gradient(lambda x, k: ops.multiply(x, k), lambda x, k, upstream: {"x": ops.multiply(upstream, k)}),
]


@ALL
@pytest.mark.parametrize("f", beside, ids=["closure", "inputs", "names"])
@pytest.mark.parametrize("k", CONSTANTS.values(), ids=CONSTANTS)
def test_numpy_arrays_and_numbers_are_constants_next_to_tensors(backend, f, k):
    x = backends.lookup(backend).convert(A)
    np.testing.assert_allclose(gradops.grad(lambda x: ops.sum(f(x, k)))(x), A * 0 + k)
    np.testing.assert_allclose(gradops.grad(lambda x: ops.sum(f(x, k=k) * x))(x), 2 * A * k)
    second = gradops.grad(lambda x: ops.sum(gradops.grad(lambda x: ops.sum(f(x, k) * x))(x) * x))(x)
    np.testing.assert_allclose(second, 4 * A * k)


@ALL
def test_constant_written_before_the_backward_pass(backend):
    """The write goes through a variable over the array: NumPy itself does not count writes."""
    x, k = backends.lookup(backend).convert(A), B.copy()
    x = x.requires_grad_() if backend == "torch" else Variable(x, requires_grad=True)
    y = ops.sum(beside[1](x, k))
    written = Variable(k)
    written += 1.0
    assert k[0] == 5
    with pytest.raises(GradientError, match="written in place"):
        y.backward()


@ALL
@pytest.mark.parametrize(
    "f",
    [
        custom_gradient(lambda x, k=3.0: x * k, lambda x, k, upstream: (upstream * k, None)),
        custom_gradient(lambda x, k=3.0: x * k, lambda x, k, up: (up * k, None)),
        custom_gradient(lambda x, k=3.0: (x * k, lambda x, k, up: (up * k, None))),
        custom_gradient(lambda x, j=1.0, k=3.0: (x * k, lambda x, j, k, upstream: upstream * k)),
    ],
)
def test_default_arguments(backend, f):
    x = backends.lookup(backend).convert(A)
    np.testing.assert_allclose(gradops.grad(lambda x: ops.sum(f(x)))(x), [3.0, 3.0, 3.0])


@ALL
@pytest.mark.parametrize("value", ["text", None, object(), len], ids=["text", "None", "object", "function"])
def test_non_tensor_return_value_is_refused(backend, value):
    f, x = custom_gradient(lambda x: (value, lambda upstream: upstream)), backends.lookup(backend).convert(A)
    with pytest.raises(GradopsError, match="`f` must return"):
        gradops.grad(lambda x: ops.sum(f(x)))(x)


@ALL
def test_gradient_function_with_wrong_signature(backend):
    f = custom_gradient(lambda x: (x, lambda a, b, c: a))
    with pytest.raises(GradientError, match=r"must take the upstream gradient, alone or after the input; it takes 3"):
        gradops.grad(lambda x: ops.sum(f(x)))(backends.lookup(backend).convert(A))


# --- parameters with defaults


def squared(x):
    z = x * x
    return z


DEFAULTS = {
    "a number": lambda x, y: (squared(x) * y, lambda u, k=7.0: (u * k, u)),
    "the usual z=z": lambda x, y: (squared(x) * y, lambda u, z=7.0: (u * z, u)),
    "an argument's name": lambda x, y: (squared(x) * y, lambda u, y=y: (u * 7.0, u + 0 * y)),
    "after the inputs": lambda x, y: (squared(x) * y, lambda x, y, u, k=7.0: (u * k, u)),
    "by name": lambda x, y: (squared(x) * y, lambda x, y, upstream, k=7.0: (upstream * k, upstream)),
    "by name alone": lambda x, y: (squared(x) * y, lambda *, upstream, k=7.0: (upstream * k, upstream)),
    "upstream first": lambda x, y: (squared(x) * y, lambda upstream, x, y, k=7.0: (upstream * k, upstream + 0 * x)),
    "only defaults": lambda x, y: (squared(x) * y, lambda u=None, k=7.0: (u * k, u)),
    "of several outputs": lambda x, y: ((squared(x) * y, x), lambda a, b, k=7.0: (a * k, a)),
    "others": lambda x, y: (squared(x) * y, lambda upstream, *others: (upstream * 7.0, upstream)),
    "a partial": lambda x, y: (squared(x) * y, functools.partial(lambda u, k: (u * k, u), k=7.0)),
}


@ALL
@pytest.mark.parametrize("form", DEFAULTS)
def test_parameter_keeps_its_default(backend, form):
    f = custom_gradient(DEFAULTS[form])
    x, y = (backends.lookup(backend).convert(v) for v in (A, B))

    def total(x, y):
        value = f(x, y)
        return ops.sum(value[0] if isinstance(value, tuple) else value)

    for got, want in zip(gradops.grad(total, (0, 1))(x, y), (7.0, 1.0)):
        np.testing.assert_allclose(got, np.full(3, want))


@ALL
def test_defaults_next_to_the_inputs_of_the_two_function_form(backend):
    x, k = (backends.lookup(backend).convert(v) for v in (A, B))
    f = custom_gradient(lambda x: x * x, lambda x, upstream, scale=7.0: upstream * x * scale)
    np.testing.assert_allclose(gradops.grad(lambda x: ops.sum(f(x)))(x), 7 * A)
    shared = custom_gradient(lambda x, k=2.0: x * k, lambda x, upstream, k=3.0: (upstream * k * 10.0, None))
    np.testing.assert_allclose(gradops.grad(lambda x: ops.sum(shared(x, k)))(x), 10 * B)  # the argument of that name
    np.testing.assert_allclose(gradops.grad(lambda x: ops.sum(shared(x, k=k)))(x), 10 * B)
    np.testing.assert_allclose(gradops.grad(lambda x: ops.sum(shared(x)))(x), [30.0] * 3)  # not passed


@ALL
def test_form_that_would_lose_an_input_is_refused(backend):
    x, k = (backends.lookup(backend).convert(v) for v in (A, B))
    for f in (
        custom_gradient(lambda x, k: (x * k, lambda x, upstream: upstream)),
        custom_gradient(lambda x, k: x * k, lambda x, upstream: upstream),
        custom_gradient(lambda x, k: x * k, lambda upstream: upstream),
    ):
        with pytest.raises(GradientError, match="must take the upstream gradient.*after the 2 inputs"):
            gradops.grad(lambda x, f=f: ops.sum(f(x, k)))(x)


# --- what is returned


@ALL
@pytest.mark.parametrize("count", [1, 2])
def test_missing_return_is_an_error(backend, count):
    x = backends.lookup(backend).convert(A)

    def gradient(*upstream):
        upstream[0] * 7.0

    one = custom_gradient(lambda x: (x * x, gradient))
    two = custom_gradient(lambda x, y: (x * y, gradient))
    with pytest.raises(GradientError, match="the gradient function returned nothing") as caught:
        gradops.grad(lambda x: ops.sum(one(x) if count == 1 else two(x, x)))(x)
    assert "return" in caught.value.hint


@ALL
def test_none_in_a_container_is_no_gradient(backend):
    x = backends.lookup(backend).convert(A)
    for none in ((None,), [None], {"x": None}):
        f = custom_gradient(lambda x, none=none: (x * x, lambda upstream: none))
        np.testing.assert_allclose(gradops.grad(lambda x, f=f: ops.sum(f(x) + 3 * x))(x), [3.0] * 3)
    f = custom_gradient(lambda x, y: (x * y, lambda upstream: (None, upstream * 7.0)))
    np.testing.assert_allclose(gradops.grad(lambda x: ops.sum(f(x, x)))(x), [7.0] * 3)


@ALL
def test_gradient_dict_with_the_structure_of_the_only_dict_argument(backend):
    w, x = (backends.lookup(backend).convert(v) for v in (A, B))

    def gradient(upstream):
        return {"x": upstream * 7.0, "b": upstream}

    alone = custom_gradient(lambda p: (p["x"] * p["b"], gradient))
    beside = custom_gradient(lambda p, x: (p["x"] * p["b"] * x, gradient))
    named = custom_gradient(lambda p, *, power: (p["x"] * p["b"] ** power, gradient))
    for f in (alone, lambda p: beside(p, x), lambda p: beside(x=x, p=p), lambda p: named(p, power=2)):
        found = gradops.grad(lambda p, f=f: ops.sum(f(p)))({"x": w, "b": w})
        np.testing.assert_allclose(found["x"], [7.0] * 3)
        np.testing.assert_allclose(found["b"], [1.0] * 3)


@ALL
def test_gradient_dict_by_argument_name(backend):
    w, x = (backends.lookup(backend).convert(v) for v in (A, B))
    f = custom_gradient(lambda p, x: (p["w"] * x, lambda u: {"x": u * 2.0, "p": {"w": u * 7.0}}))
    p, g = gradops.grad(lambda p, x: ops.sum(f(p, x)), (0, 1))({"w": w}, x)
    np.testing.assert_allclose(p["w"], [7.0] * 3)
    np.testing.assert_allclose(g, [2.0] * 3)
    wrong = custom_gradient(lambda p, x: (p["w"] * x, lambda u: {"v": u}))
    with pytest.raises(GradientError, match="named 'v'; the arguments are p, x"):
        gradops.grad(lambda x: ops.sum(wrong({"w": w}, x)))(x)


def test_gradient_for_a_list_is_unpacked_or_rejected():
    x = [Variable(np.array(v), requires_grad=True) for v in (1.0, 2.0)]

    def of(result):
        return gradops.custom_gradient(lambda xs: (xs[0] * xs[1], lambda upstream: (result,)))(x)

    of(np.array([3.0, 4.0])).backward()
    assert [float(v.grad.data) for v in x] == [3.0, 4.0]
    for wrong in (np.array(3.0), 3.0):
        with pytest.raises(GradientError, match="argument of 2 parts must have as many"):
            of(wrong).backward()


STRUCTURES = {
    "dict": lambda a, b, c: ({"b": b, "a": a, "c": c},),
    "dict beside an array": lambda a, b, c: ({"b": b, "a": a}, c),
    "dict of one beside others": lambda a, b, c: ({"a": a}, b, c),
    "two dicts": lambda a, b, c: ({"a": a}, {"k": b, "l": c}),
    "nested": lambda a, b, c: ({"a": [a, {"z": b}], "d": c},),
    "list beside an array": lambda a, b, c: ([a, (b,)], c),
    "with a number": lambda a, b, c: ({"a": a, "k": 2.0, "z": b}, c),
}


@ALL
@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("of", [list, tuple])
def test_flat_list_has_one_gradient_per_tensor(backend, structure, of):
    """The contract of TensorFlow's `tf.custom_gradient` with nested arguments."""
    a, b, c = (backends.lookup(backend).convert(v) for v in (A, B, A))
    rows = []

    @custom_gradient
    def f(*arguments):
        tensors = [x for x in gradops._tree.flatten(arguments)[0] if not isinstance(x, float)]
        return tensors[0] * tensors[1] * tensors[2], lambda u: rows.append(1) or of([u * 10, u * 20, u * 30])

    def loss(a, b, c):
        return ops.sum(f(*STRUCTURES[structure](a, b, c)))

    found = gradops.grad(loss, argnums=(0, 1, 2))(a, b, c)
    for g, expected in zip(found, (10, 20, 30)):
        np.testing.assert_array_equal(ops.convert_to_numpy(g), np.full(3, expected))
    assert len(rows) == 1


@ALL
def test_upstream_has_the_structure_of_a_single_entry_dict(backend):
    x = backends.lookup(backend).convert(A)
    rules = [
        lambda x, upstream: upstream["b"] * 5,
        lambda *args, upstream: upstream["b"] * 5,
    ]
    for f in (custom_gradient(lambda x: ({"b": x * 2}, lambda u: u["b"] * 5)), *map(_of_dict, rules)):
        g = gradops.grad(lambda x, f=f: ops.sum(f(x)["b"]))(x)
        np.testing.assert_array_equal(ops.convert_to_numpy(g), np.full(3, 5.0))


def _of_dict(rule):
    return custom_gradient(lambda x: {"b": x * 2}, rule)
