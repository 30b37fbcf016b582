"""PyTorch kernels: reductions, products, normalisation."""

import torch

from . import _private, transforms
from .base import arithmetic, axes_of, floats, native_dtype, promoted, together


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
    """Without the division by elements in torch's derivatives, which loses their digits near 0 and at infinity."""
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
    return torch.logsumexp(x, dim=axes, keepdim=keepdims) if axes else x


def _running(function):
    def kernel(x, axis=None, dtype=None):
        if axis is None:
            x, axis = x.reshape(-1), 0
        if dtype is None and x.dtype is torch.uint64:
            return function(x.to(torch.int64), dim=axis).to(torch.uint64)
        if dtype is None:
            return function(x, dim=axis)
        final = native_dtype(dtype)
        x = x.to(final)  # before, as torch differentiates no sum in whole numbers
        return function(x, dim=axis).to(final) if final is torch.bool else function(x, dim=axis, dtype=final)

    return kernel


cumsum = _running(torch.cumsum)


@_running
def cumprod(x, dim, dtype=None):
    """The product by doubled steps where it is differentiated, without torch's division by the elements."""
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
    """A product also of bools, by way of whole numbers, and of whole numbers of a GPU, on the host."""

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
    if _private.forward_level() < 0:
        return torch.layer_norm(x, x.shape[x.ndim - rank :], gamma, beta, epsilon)
    axes = tuple(range(x.ndim - rank, x.ndim))  # the tangent of PyTorch's own tangent is wrong
    centered = x - x.mean(axes, True)
    y = centered / torch.sqrt((centered * centered).mean(axes, True) + epsilon)
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta
