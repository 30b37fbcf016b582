"""Every op under the libraries' own vectorisation and forward mode: row after row, and the transpose, give the same."""

from __future__ import annotations

import numpy as np
import pytest
import vectorized
from test_parity import CASES

import gradops
from gradops import backends, ops

FEW = {  # in the ordinary run: what the libraries get wrong
    "torch.func.vmap": ("solve-complex128", "segment_prod"),
    "torch.func.jvp": ("cumprod",),
    "tf.vectorized_map": ("set_at-rows", "window_max-0"),
    "ops.vectorized_map": ("median",),
}


def installed(way: str) -> None:
    backend = vectorized.BACKEND[way.partition(".")[0]]
    if not backends.installed(backend):
        pytest.skip(f"needs {backend}")


@pytest.mark.parametrize("way, name", [(way, name) for way, names in FEW.items() for name in names])
def test_some_ops(way, name):
    installed(way)
    vectorized.check(next(c for c in CASES if c.gradients and name in (c.id, c.op)), way)


@pytest.mark.long
@pytest.mark.parametrize("way", vectorized.WAYS)
def test_every_op(way):
    installed(way)
    found = vectorized.tried(way)
    assert set(found) == {"torch.func.jvp": {"polygamma-derivative 1"}}.get(way, set()), found


def test_systems_of_other_ranks_in_rows():
    """PyTorch's own `vmap` of `linalg.solve` pairs rows with another dimension of the same size."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    a, b = torch.tensor(rng.normal(size=(3, 3, 2, 2))), torch.tensor(rng.normal(size=(3, 2)))
    want = np.stack([[np.linalg.solve(m, v) for m in rows] for rows, v in zip(a.numpy(), b.numpy())])
    np.testing.assert_allclose(torch.func.vmap(ops.solve)(a, b), want)
    got = torch.func.vmap(torch.func.grad(lambda a, b: ops.sum(ops.solve(a, b) ** 2)))(a, b)
    for i in range(3):
        own = gradops.grad(lambda m, i=i: ops.sum(ops.solve(m, b[i]) ** 2))(a[i])
        np.testing.assert_allclose(got[i], own)


def test_values_from_outside_of_pytorchs_transformations_are_known():
    """Labels and positions that a differentiated function closes over."""
    torch = pytest.importorskip("torch")
    ids, x = torch.tensor([0, 1, 1]), torch.tensor([1.0, 2.0, 3.0])
    np.testing.assert_allclose(torch.func.grad(lambda x: (ops.segment_sum(x, ids) ** 2).sum())(x), [2, 10, 10])
    with pytest.raises(gradops.errors.ArgumentError, match="out of range|between"):
        torch.func.grad(lambda x: ops.take(x, torch.tensor([5]), 0).sum())(x)
    half = torch.tensor([1.0, 2.0], dtype=torch.bfloat16)
    torch.func.grad(lambda x: x * float(ops.convert_to_numpy(half).sum()))(torch.tensor(1.0))


def test_pytorch_lacks_forward_mode_of_the_zeta_function():
    pytest.importorskip("torch")
    case = next(c for c in CASES if c.id == "polygamma-derivative 1")
    with pytest.raises(gradops.errors.GradopsError, match="`polygamma`.*forward AD"):
        vectorized.check(case, "torch.func.jvp")
