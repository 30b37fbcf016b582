"""Diagonals, traces and products of second derivatives, against full Hessians."""

from __future__ import annotations

import numpy as np
import pytest
from parity import numpy, on

import gradops
from gradops import _tree, functional, ops
from gradops.errors import ArgumentError, GradientError

X = np.array([0.5, -1.0, 2.0])


def f(x):
    return ops.sum(ops.sin(x) * x) + x[0] * x[1] ** 2 * x[2]


def flat(tree):
    return np.concatenate([numpy(x).ravel() for x in _tree.leaves_of(tree)])


@pytest.mark.short_cases(0, "jax")
def test_exact(backend):
    x = on(backend, X)
    hessian = numpy(gradops.hessian(f)(x))
    np.testing.assert_allclose(numpy(functional.hessian_diagonal(f, x)), np.diag(hessian), rtol=1e-10)
    np.testing.assert_allclose(numpy(functional.laplacian(f, x)), np.trace(hessian), rtol=1e-10)
    slope = gradops.grad(lambda x: functional.laplacian(f, x))(x)
    third = gradops.grad(lambda x: sum(gradops.hessian(f)(x)[i, i] for i in range(3)))(x)
    np.testing.assert_allclose(numpy(slope), numpy(third), rtol=1e-10)


def test_structures(backend):
    x = {"a": on(backend, [1.0, 2.0]), "b": on(backend, 3.0)}

    def g(p):
        return ops.sum(p["a"] ** 3) * p["b"] ** 2

    diagonal = functional.hessian_diagonal(g, x)
    np.testing.assert_allclose(numpy(diagonal["a"]), [54.0, 108.0])
    np.testing.assert_allclose([numpy(diagonal["b"]), numpy(functional.laplacian(g, x))], [18.0, 180.0])


@pytest.mark.short_cases(0, "jax")
def test_random_probes(backend):
    """Exact for a diagonal Hessian; otherwise within the estimator's variance, the squared off-diagonal elements."""
    x = on(backend, X)
    np.testing.assert_allclose(
        numpy(functional.hessian_diagonal(lambda x: ops.sum(x**3), x, probes=1, seed=3)), 6 * X, rtol=1e-12
    )
    hessian = numpy(gradops.hessian(f)(x))
    beside = hessian - np.diag(np.diag(hessian))
    found = [float(numpy(functional.laplacian(f, x, probes=10, seed=seed))) for seed in range(4)]
    error = np.sqrt(2 * np.sum(beside**2) / 40)
    assert abs(np.mean(found) - np.trace(hessian)) < 4 * error
    assert len(set(found)) > 1


@pytest.mark.short_cases(0, "jax", "tensorflow")
def test_products(backend):
    p = {"w": on(backend, [[0.3, -0.2], [0.1, 0.4]]), "b": on(backend, [0.1, 0.2])}
    v = {"w": on(backend, [[1.0, 0.5], [0.0, -1.0]]), "b": on(backend, [2.0, 1.0])}
    inputs = on(backend, [[1.0, 2.0], [0.5, -1.0], [1.5, 0.3]])

    def model(p):
        return ops.tanh(ops.matmul(inputs, p["w"]) + p["b"])

    def loss(y):
        return ops.sum(ops.logsumexp(y, axis=1)) + ops.sum(y**4)

    def each(p):
        return ops.sum(model(p) ** 2, axis=1)

    def jacobian(g):
        rows = gradops.jacobian(g)(p)
        return np.concatenate([numpy(rows[k]).reshape(-1, numpy(p[k]).size) for k in sorted(p)], 1)

    jac, by_each, flat_v = jacobian(model), jacobian(each), flat(v)
    curved = numpy(gradops.hessian(loss)(model(p))).reshape(6, 6)
    np.testing.assert_allclose(
        flat(functional.gauss_newton_product(model, loss, p, v)), jac.T @ curved @ jac @ flat_v, rtol=1e-9
    )
    np.testing.assert_allclose(flat(functional.fisher_product(each, p, v)), by_each.T @ by_each @ flat_v, rtol=1e-9)


def test_derivatives_by_argument_name(backend):
    """Works for structures, whether the call passes the argument by position or by name."""
    a, p = on(backend, 2.0), {"b": on(backend, [1.0, 3.0]), "c": on(backend, 0.5)}

    def g(a, p, scale=1.0):
        return scale * a**2 * ops.sum(p["b"] ** 2) * p["c"]

    for found in (gradops.grad(g, "p")(a, p), gradops.grad(g, 1)(a, p=p), gradops.grad(g, "p")(p=p, a=a)):
        np.testing.assert_allclose(flat(found), [4.0, 12.0, 40.0])
    value, (by_p, by_a) = gradops.value_and_grad(g, ("p", "a"))(a, p=p, scale=3.0)
    np.testing.assert_allclose([numpy(value), numpy(by_a), *flat(by_p)], [60.0, 60.0, 12.0, 36.0, 120.0])
    blocks = gradops.hessian(g, "p")(a, scale=1.0, p=p)
    np.testing.assert_allclose(numpy(blocks["b"]["c"]), [8.0, 24.0])
    np.testing.assert_allclose(numpy(gradops.jacobian(g, "a")(p=p, a=a)), 20.0)


def test_compiled(backend):
    x = on(backend, X)
    hessian = numpy(gradops.hessian(f)(x))
    np.testing.assert_allclose(
        numpy(gradops.jit(lambda x: functional.hessian_diagonal(f, x))(x)), np.diag(hessian), rtol=1e-10
    )


def test_bad_input():
    with pytest.raises(ArgumentError, match="probes"):
        functional.laplacian(f, X, probes=0)
    with pytest.raises(GradientError, match="scalar"):
        functional.hessian_diagonal(lambda x: x, X)
    with pytest.raises(ArgumentError, match="structure"):
        functional.fisher_product(lambda x: x, X, (X, X))
