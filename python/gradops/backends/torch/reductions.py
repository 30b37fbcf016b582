"""PyTorch kernels: reductions, products, normalisation, activations, attention, CTC."""

import math

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from ..numpy import reductions as _numpy
from . import _private, transforms
from .base import arithmetic, axes_of, floating, floats, native_dtype, promoted, to_numpy, together


def sum(x, axis=None, keepdims=False):
    if axis is None and not keepdims:
        y = torch.sum(x)
    elif axis.__class__ is int and x.ndim:
        y = torch.sum(x, axis, keepdims)
    else:
        axes = axes_of(x, axis)
        y = torch.sum(x, dim=axes, keepdim=keepdims) if axes else _widened(x)
    return y if x.dtype is not torch.uint64 else y.to(torch.uint64)


def _widened(x):
    return x if x.is_floating_point() or x.is_complex() else x.to(torch.int64)


def mean(x, axis=None, keepdims=False):
    x = floats(x)
    axes = axes_of(x, axis)
    return torch.mean(x, dim=axes, keepdim=keepdims) if axes else x


def prod(x, axis=None, keepdims=False, dtype=None):
    final = native_dtype(dtype) if dtype is not None else torch.uint64 if x.dtype is torch.uint64 else None
    y = _widened(x if dtype is None else x.to(final))
    for a in sorted(axes_of(x, axis), reverse=True):
        y = product_by_halves(y, a, keepdims) if transforms.records(y) else torch.prod(y, dim=a, keepdim=keepdims)
    return y if final is None else y.to(final)


def product_by_halves(x, axis, keepdims=False):
    """A product by halving: torch's derivative divides by the elements, which loses digits near 0 and at infinity."""
    if not x.shape[axis]:
        return torch.prod(x, dim=axis, keepdim=keepdims)
    while (size := x.shape[axis]) > 1:
        first, second, rest = torch.split(x, [size // 2, size // 2, size % 2], axis)
        x = torch.cat([first * second, rest], axis)
    return x if keepdims else x.squeeze(axis)


def _extreme(function, bound):
    def kernel(x, axis=None, keepdims=False, initial=None):
        axes = axes_of(x, axis)
        if initial is not None:
            initial = torch.as_tensor(initial, dtype=x.dtype, device=x.device)
            if 0 in [x.shape[a] for a in axes]:
                shape = [1 if i in axes else n for i, n in enumerate(x.shape) if keepdims or i not in axes]
                return initial.expand(shape).clone()
        y = function(x, dim=axes, keepdim=keepdims) if axes else x
        return y if initial is None else bound(y, initial)

    return kernel


max = _extreme(torch.amax, torch.maximum)
min = _extreme(torch.amin, torch.minimum)


def all(x, axis=None, keepdims=False):
    x = x.to(torch.bool)
    for a in sorted(axes_of(x, axis), reverse=True):
        x = torch.all(x, dim=a, keepdim=keepdims)
    return x


def any(x, axis=None, keepdims=False):
    x = x.to(torch.bool)
    for a in sorted(axes_of(x, axis), reverse=True):
        x = torch.any(x, dim=a, keepdim=keepdims)
    return x


def argmax(x, axis=None, keepdims=False):
    y = torch.argmax(_comparable(x), dim=axis, keepdim=keepdims and axis is not None)
    return y.reshape((1,) * x.ndim) if keepdims and axis is None else y


def argmin(x, axis=None, keepdims=False):
    y = torch.argmin(_comparable(x), dim=axis, keepdim=keepdims and axis is not None)
    return y.reshape((1,) * x.ndim) if keepdims and axis is None else y


def _comparable(x):
    return x if x.dtype is not torch.bool else x.to(torch.uint8)


def logsumexp(x, axis=None, keepdims=False):
    x = floats(x)
    axes = axes_of(x, axis)
    if not axes:
        return torch.logsumexp(x.unsqueeze(-1), dim=-1) if x.is_complex() else x
    if not x.numel():
        return torch.logsumexp(x, dim=axes, keepdim=keepdims)
    # PyTorch's gradient is exp(x - result), which is wrong if a large result is rounded.
    top = (x.real if x.is_complex() else x).detach().amax(axes, keepdim=True)
    top = torch.where(torch.isfinite(top), top, torch.zeros_like(top))
    y = torch.logsumexp(x - top, dim=axes, keepdim=True) + top
    return y if keepdims else y.squeeze(axes)


def _running(function):
    def kernel(x, axis=None, dtype=None):
        if axis is None:
            x, axis = x.reshape(-1), 0
        if dtype is None and x.dtype is torch.uint64:
            return function(x.to(torch.int64), dim=axis).to(torch.uint64)
        if dtype is None:
            return function(x, dim=axis)
        final = native_dtype(dtype)
        x = x.to(final)  # cast first: torch does not differentiate a sum in integers
        return function(x, dim=axis).to(final) if final is torch.bool else function(x, dim=axis, dtype=final)

    return kernel


cumsum = _running(torch.cumsum)


@_running
def cumprod(x, dim, dtype=None):
    """Running product, by doubling steps if it is differentiated: torch's derivative divides by the elements."""
    if not (x.ndim and transforms.records(x)):
        return torch.cumprod(x, dim=dim, dtype=dtype)
    x = _widened(x) if dtype is None else x.to(dtype)
    size, step = x.shape[dim], 1
    while step < size:
        first, rest = torch.split(x, [step, size - step], dim)
        x = torch.cat([first, rest * x.narrow(dim, 0, size - step)], dim)
        step *= 2
    return x


def _exact(product):
    """Extend a product to bools, computed as integers, and to integers on a GPU, computed on the host."""

    def kernel(*xs):
        first = xs[0]
        if first.dtype is torch.bool:
            return kernel(*(x.to(torch.int32) for x in xs)) != 0
        if first.is_floating_point() or first.is_complex() or first.device.type in ("cpu", "meta"):
            return product(*xs)
        return product(*(x.cpu() for x in xs)).to(first.device)

    return kernel


matmul = arithmetic(_exact(torch.matmul))


def tensordot(x1, x2, axes=2):
    return _exact(lambda x1, x2: torch.tensordot(x1, x2, dims=axes))(*promoted(x1, x2))


def einsum(subscripts, operands):
    return _exact(lambda *xs: torch.einsum(subscripts, *xs))(*together(operands))


def sliding_product(x, window):
    if x.is_floating_point() or x.is_complex():
        return torch.nn.functional.conv1d(x[None, None], window[None, None])[0, 0]
    return (x.unfold(0, window.shape[0], 1) * window).sum(-1).to(x.dtype)


def standardized(x, gamma, beta, rank, epsilon):
    if torch.compiler.is_compiling() or torch.jit.is_tracing():  # compiled graphs have first derivatives only
        differentiated = _private.forward_level() >= 0
    elif transforms.active():
        differentiated = True
    else:
        if [t for t in (x, gamma, beta) if t is not None and transforms.records(t)]:
            return _Standardized.apply(x, gamma, beta, rank, epsilon)
        differentiated = False
    return (_standardized if differentiated else _layer_norm)(x, gamma, beta, rank, epsilon)


def _layer_norm(x, gamma, beta, rank, epsilon):
    return torch.layer_norm(x, x.shape[x.ndim - rank :], gamma, beta, epsilon)


def _standardized(x, gamma, beta, rank, epsilon):
    axes = tuple(range(x.ndim - rank, x.ndim))
    centered = x - x.mean(axes, True)
    y = centered / torch.sqrt((centered * centered).mean(axes, True) + epsilon)
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta


class _Standardized(torch.autograd.Function):
    """``torch.layer_norm`` with a correct second derivative; torch's treats the mean and deviation as constants.

    A gradient that is differentiated again is computed from the formula.
    """

    @staticmethod
    def forward(ctx, x, gamma, beta, rank, epsilon):
        ctx.save_for_backward(x, gamma, beta)
        ctx.settings = rank, epsilon
        return _layer_norm(x, gamma, beta, rank, epsilon)

    @staticmethod
    def backward(ctx, upstream):
        again = torch.is_grad_enabled()
        with torch.enable_grad():
            # Aliases, because `gamma` may itself be computed from `x`: these derivatives are partial ones.
            given = [
                t if t is None else t.view_as(t) if again else t.detach().requires_grad_(needed)
                for t, needed in zip(ctx.saved_tensors, ctx.needs_input_grad)
            ]
            y = (_standardized if again else _layer_norm)(*given, *ctx.settings).to(upstream.dtype)
        wanted = [t for t, needed in zip(given, ctx.needs_input_grad) if needed]
        gradients = iter(torch.autograd.grad(y, wanted, upstream, create_graph=again))
        return *(next(gradients) if needed else None for needed in ctx.needs_input_grad[:3]), None, None


# Activations, attention, CTC ------------------------------------------------------------------------------------------


# Activations.

sigmoid = floating(torch.sigmoid)


def relu(x):
    return torch.relu(x) if x.dtype is not torch.bool else x


@floating
def normal_cdf(x):
    if x.dtype.itemsize == 2:  # rounding the argument would spoil the tail
        return normal_cdf(x.float()).to(x.dtype)
    return 0.5 * torch.erfc(torch.clamp(x, -40, 40) * -math.sqrt(0.5))  # torch.special.ndtr underflows to 0 too early


def softplus(x):
    return torch.nn.functional.softplus(floats(x), threshold=40)  # beyond it, softplus(x) is x even in float64


def softmax(x, axis=-1):
    x = floats(x)
    if isinstance(axis, int):
        return torch.softmax(x, axis)
    axes = axes_of(x, axis)
    return torch.exp(x - torch.logsumexp(x, axes, keepdim=True))


def log_softmax(x, axis=-1):
    x = floats(x)
    if isinstance(axis, int):
        return torch.log_softmax(x, axis)
    axes = axes_of(x, axis)
    return x - torch.logsumexp(x, axes, keepdim=True)


# Native where torch's derivative at the kinks is the one that gradops documents.


def relu6(x):
    return torch.nn.functional.relu6(x if x.dtype is not torch.bool else x.to(torch.int64))


log_sigmoid = floating(torch.nn.functional.logsigmoid)
softsign = floating(torch.nn.functional.softsign)


@floating
def silu(x):
    return x * torch.sigmoid(x) if x.is_complex() else torch.nn.functional.silu(x)


def leaky_relu(x, negative_slope=0.2):
    return torch.nn.functional.leaky_relu(floats(x), negative_slope)


def gelu(x, approximate=True):
    x = floats(x)
    return torch.nn.functional.gelu(x, approximate="tanh") if approximate else x * normal_cdf(x)


# Attention.

_attention = torch.nn.functional.scaled_dot_product_attention


def attention_forward(query, key, value, bias, mask, scale, is_causal, flash_attention=None):
    if mask is not None or bias is not None:
        seen = torch.ones((query.shape[1], key.shape[1]), dtype=torch.bool, device=query.device)
        seen, is_causal = (torch.tril(seen) if is_causal else seen), False
        mask = seen if mask is None else seen & mask.to(torch.bool)
        if bias is not None:
            mask = torch.where(mask, bias, -torch.inf)
    inputs = [x.transpose(1, 2) for x in (query, key, value)]
    options = {"attn_mask": mask, "is_causal": is_causal, "scale": scale}
    options["enable_gqa"] = key.shape[2] != query.shape[2]
    if flash_attention is None and torch.is_grad_enabled():
        if torch.compiler.is_compiling() and not transforms.transforming():
            result = _attention(*inputs, **options)  # compiled functions have no second derivative
        elif mask is None and _private.is_fused_on_cpu(*inputs, options) and not transforms.active():
            result = _Fused.apply(*inputs, options)  # with a mask, rows that see nothing would have NaN gradients
        else:
            result = _math_attention(*inputs, options)
    elif flash_attention is False:
        result = _math_attention(*inputs, options)
    else:
        kinds = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION]
        with sdpa_kernel([SDPBackend.MATH, *kinds]):
            result = _attention(*inputs, **options)
    return result.transpose(1, 2)


def _math_attention(query, key, value, options: dict):
    with sdpa_kernel([SDPBackend.MATH]):
        return _attention(query, key, value, **options)


class _Fused(torch.autograd.Function):
    """Attention by the fused kernel, which has a first derivative only; a second one differentiates the formula."""

    @staticmethod
    def forward(ctx, query, key, value, options):
        result, *others = _private.fused_attention(query, key, value, options)
        ctx.options = options
        ctx.save_for_backward(query, key, value, result, *others)
        return result

    @staticmethod
    def backward(ctx, upstream):
        query, key, value, result, *others = ctx.saved_tensors
        if not torch.is_grad_enabled():
            return *_private.fused_gradients(upstream, query, key, value, result, others, ctx.options), None
        inputs = [x.view_as(x) if x.requires_grad else x for x in (query, key, value)]
        wanted = [x for x in inputs if x.requires_grad]
        found = iter(torch.autograd.grad(_math_attention(*inputs, ctx.options), wanted, upstream, create_graph=True))
        return *(next(found) if x.requires_grad else None for x in inputs), None


# Connectionist temporal classification.


def ctc_beams(inputs, sequence_lengths, beam_width, top_paths, mask_index):
    found = _numpy.ctc_beams(to_numpy(inputs), to_numpy(sequence_lengths), beam_width, top_paths, mask_index)
    labels, scores = (torch.from_numpy(x).to(inputs.device) for x in found)
    return labels, scores.to(inputs.dtype)
