"""Attention with fully masked rows, with large logits, in bounded memory, and with bad input."""

import tracemalloc

import numpy as np
import pytest
from cases.attention import attention
from parity import BACKENDS, Case, native_gradient, numpy, scalar_function, tape_gradient, tensors

from gradops import ops
from gradops.errors import ShapeError

random = np.random.default_rng(0)


def some(*shape, dtype="float64"):
    return random.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("how", ["mask", "bias"])
def test_fully_masked_target_gives_zeros(how):
    """Its gradient is zero as well, on the tape and in every framework."""
    seen = np.array([[True, False, True], [False, False, False]])
    given = {"mask": seen} if how == "mask" else {"bias": np.where(seen, 0.5, -np.inf)}
    arguments = {"query": some(1, 2, 1, 4), "key": some(1, 3, 1, 4), "value": some(1, 3, 1, 4), **given}
    case = Case("dot_product_attention", None, gradients=["query", "key", "value"])
    xs = [arguments[name] for name in case.gradients]
    slopes = tape_gradient(scalar_function(case, arguments, "numpy"), xs)
    assert not slopes[0][0, 1].any() and all(np.isfinite(s).all() for s in slopes)
    for backend in BACKENDS:
        y = numpy(ops.dot_product_attention(**{k: tensors(v, backend) for k, v in arguments.items()}))
        assert not y[0, 1].any()
        np.testing.assert_allclose(y, attention(**arguments), rtol=1e-6)
        if backend != "numpy":
            natives = native_gradient(scalar_function(case, arguments, backend), xs, backend)
            for slope, native in zip(slopes, natives):
                np.testing.assert_allclose(slope, native, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_large_logits(backend):
    x = tensors(np.full((1, 2, 1, 4), 200.0, "float32"), backend)
    y = ops.dot_product_attention(x, x, x)
    assert ops.dtype(y) == "float32" and (numpy(y) == 200).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_half_precision(backend):
    q, k, v = (some(1, 4, 2, 8, dtype="float16") for _ in range(3))
    y = ops.dot_product_attention(*(tensors(x, backend) for x in (q, k, v)), is_causal=True)
    assert ops.dtype(y) == "float16"
    want = attention(*(x.astype("float64") for x in (q, k, v)), is_causal=True)
    np.testing.assert_allclose(numpy(y), want, rtol=5e-3, atol=5e-3)


@pytest.mark.parametrize("limit", [1, 100, 1000, 10**6])
def test_block_size_does_not_change_results(limit, monkeypatch):
    from gradops.backends.numpy import reductions as kernels

    monkeypatch.setattr(kernels, "MAX_LOGIT_BYTES", limit)
    q, k, v, bias = some(2, 5, 4, 3), some(2, 6, 2, 3), some(2, 6, 2, 3), some(2, 1, 5, 6)
    mask = random.random((4, 5, 6)) < 0.7
    for causal in (False, True):
        arguments = {"bias": bias, "mask": mask, "is_causal": causal}
        np.testing.assert_allclose(ops.dot_product_attention(q, k, v, **arguments), attention(q, k, v, **arguments))


def test_logits_are_never_all_in_memory():
    """All logits together would take 512 MiB."""
    x = some(1, 8192, 1, 4)
    tracemalloc.start()
    ops.dot_product_attention(x, x, x, is_causal=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32 * 2**20


def test_torch_uses_the_fused_kernel_without_gradients(torch):
    q = torch.tensor(some(1, 8, 2, 4), requires_grad=True)
    with torch.no_grad():
        plain = ops.dot_product_attention(q, q, q)
    torch.testing.assert_close(plain, ops.dot_product_attention(q, q, q, flash_attention=True))
    torch.testing.assert_close(plain, ops.dot_product_attention(q, q, q, flash_attention=False).detach())


def test_fused_attention_has_first_derivatives_only(torch):
    """Stated in docs/differences.md. Without ``flash_attention=True`` there is a second derivative."""
    q = torch.tensor(some(1, 8, 2, 4), requires_grad=True)
    for flash in (True, None):
        y = torch.sum(ops.dot_product_attention(q, q, q, flash_attention=flash) ** 2)
        (first,) = torch.autograd.grad(y, q, create_graph=True)
        if flash:
            with pytest.raises(RuntimeError, match="not implemented"):
                torch.autograd.grad(torch.sum(first), q)
        else:
            torch.autograd.grad(torch.sum(first), q)


@pytest.mark.parametrize("how", ["plain", "causal", "shared", "one without gradient"])
def test_torch_uses_the_fused_kernel_with_gradients(how, torch):
    """Values and gradients come from the fused kernel, second and third derivatives from the formula."""
    random = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn((2, 5, 3, 4), generator=random, dtype=torch.float64, requires_grad=True) for _ in range(3))
    if how == "shared":
        k, v = q * 2, q
    if how == "one without gradient":
        k = k.detach()
    options = {"is_causal": how == "causal"}
    leaves = [x for x in (q, k, v) if x.is_leaf and x.requires_grad]

    def derivatives(flash):
        y, found = ops.dot_product_attention(q, k, v, flash_attention=flash, **options), []
        kinds = y.grad_fn.next_functions[0][0].name()
        for _ in range(3):
            found.append(y)
            total = torch.sum(y**3)
            gradients = torch.autograd.grad(total, leaves, create_graph=True)
            y = torch.stack(list(gradients))
        again = torch.sum(ops.dot_product_attention(q, k, v, flash_attention=flash, **options) ** 3)
        once = torch.autograd.grad(again, leaves, retain_graph=True)
        return [*found, y, *once], kinds

    (got, fused), (want, plain) = derivatives(None), derivatives(False)
    assert fused == "_FusedBackward" != plain
    for g, w in zip(got, want):
        torch.testing.assert_close(g, w)
    assert not got[-1].requires_grad


def test_vmap_in_torch(torch):
    q = torch.tensor(some(3, 1, 4, 2, 4))
    together = torch.func.vmap(lambda q: ops.dot_product_attention(q, q, q))(q)
    torch.testing.assert_close(together, torch.stack([ops.dot_product_attention(x, x, x) for x in q]))


@pytest.mark.parametrize("backend", BACKENDS)
def test_bad_input(backend):
    x = tensors(np.ones((2, 3, 4, 5)), backend)
    for name in ("query", "key", "value"):
        with pytest.raises(ShapeError, match=f"`dot_product_attention`: `{name}`"):
            ops.dot_product_attention(**{"query": x, "key": x, "value": x, name: x[0]})
    with pytest.raises(ShapeError, match="`key` must have the batch"):
        ops.dot_product_attention(x, x[:, :, :3], x[:, :, :3])
    with pytest.raises(ShapeError, match="`value` must be of `key`'s"):
        ops.dot_product_attention(x, x, x[:, :2])
    with pytest.raises(ShapeError, match="mask"):
        ops.dot_product_attention(x, x, x, mask=tensors(np.ones((3, 4), bool), backend))
    with pytest.raises(ShapeError, match="`bias` must broadcast"):
        ops.dot_product_attention(x[:1], x[:1], x[:1], bias=tensors(np.ones((2, 4, 3, 3)), backend))
