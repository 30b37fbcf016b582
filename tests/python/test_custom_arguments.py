"""``custom_gradient``: arguments given by name or left to their defaults, and what no gradient function may be."""

from __future__ import annotations

import numpy as np
import pytest

import gradops
from gradops import backends, custom_gradient, ops
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
    """A gradient is its argument's, in the order of the function's arguments, not of the call's."""
    x, k = (backends.by_name(backend).convert(v) for v in (A, B))
    np.testing.assert_allclose(gradops.grad(lambda x: ops.sum(f(x, k=k)))(x), B)
    np.testing.assert_allclose(gradops.grad(lambda x: ops.sum(f(k=k, x=x)))(x), B)
    np.testing.assert_allclose(gradops.grad(lambda x: ops.sum(f(x=x, k=k)))(x), B)


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
def test_arguments_left_to_their_defaults(backend, f):
    x = backends.by_name(backend).convert(A)
    np.testing.assert_allclose(gradops.grad(lambda x: ops.sum(f(x)))(x), [3.0, 3.0, 3.0])


@ALL
@pytest.mark.parametrize("value", ["text", None, object(), len], ids=["text", "None", "object", "function"])
def test_a_value_that_is_no_tensor(backend, value):
    f = custom_gradient(lambda x: (value, lambda upstream: upstream))
    with pytest.raises(GradopsError, match="`f` must return"):
        gradops.grad(lambda x: ops.sum(f(x)))(backends.by_name(backend).convert(A))


@ALL
def test_a_gradient_function_of_a_wrong_signature(backend):
    f = custom_gradient(lambda x: (x, lambda a, b, c: a))
    with pytest.raises(GradientError, match=r"must take the upstream gradient, alone or after the input; it takes 3"):
        gradops.grad(lambda x: ops.sum(f(x)))(backends.by_name(backend).convert(A))
