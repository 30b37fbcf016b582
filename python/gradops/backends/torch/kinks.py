"""PyTorch: the kink of a norm at 0, whose derivative is 0 and whose second one is NaN."""

import math

import torch

from . import _private, transforms


def kink(x, zero):
    """0 in the shape of ``zero``, see :func:`gradops.ops.reductions.kink`."""
    y = torch.zeros_like(zero, dtype=x.dtype)
    if torch.compiler.is_compiling() or torch.jit.is_tracing():  # whose graphs have first derivatives alone
        return y
    if not (transforms.active() or x.requires_grad and torch.is_grad_enabled()):
        return y
    if not transforms.active() and zero.device.type == "cpu" and not zero.any():
        return y
    return _Kink.apply(x, zero)


class _OfPoint(torch.autograd.Function):
    """A function of ``x`` and ``zero``, and before them of a tensor ``t`` in which it counts as linear.

    The second derivative is NaN where its two directions, or its one beside an upstream gradient, are not 0, and never
    a product with the upstream gradient, which may be 0 beside an infinite derivative.
    """

    generate_vmap_rule = True

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)


class _Kink(_OfPoint):
    """0 in the shape of ``zero``."""

    @staticmethod
    def forward(x, zero):
        return torch.zeros_like(zero, dtype=x.dtype)

    @staticmethod
    def backward(ctx, g):
        return _Pulled.apply(g, *ctx.saved_tensors), None

    @staticmethod
    def jvp(ctx, dx, _):
        x, zero = ctx.saved_tensors
        with _private.forward_mode(True):  # see `transforms._Rule`
            return _Pushed.apply(dx, transforms.primal(x), zero)


class _Pulled(_OfPoint):
    """The gradient of a kink: 0 in the shape of ``x``."""

    @staticmethod
    def forward(t, x, zero):
        return torch.zeros_like(x)

    @staticmethod
    def backward(ctx, g):
        _, x, zero = ctx.saved_tensors
        return _Pushed.apply(g, x, zero), _Curve.apply(g, x, zero), None

    @staticmethod
    def jvp(ctx, dt, dx, _):
        _, x, zero = map(transforms.primal, ctx.saved_tensors)
        with _private.forward_mode(True):
            return (0 if dt is None else _Pulled.apply(dt, x, zero)) + (0 if dx is None else _Curve.apply(dx, x, zero))


class _Pushed(_OfPoint):
    """The tangent of a kink in the direction ``t``: 0 in the shape of ``zero``."""

    @staticmethod
    def forward(t, x, zero):
        return torch.zeros_like(zero, dtype=x.dtype)

    @staticmethod
    def backward(ctx, g):
        t, x, zero = ctx.saved_tensors
        return _Pulled.apply(g, x, zero), _Curved.apply(g, t, x, zero), None

    @staticmethod
    def jvp(ctx, dt, dx, _):
        t, x, zero = map(transforms.primal, ctx.saved_tensors)
        y = torch.zeros_like(zero, dtype=x.dtype)
        with _private.forward_mode(True):
            if dt is not None:
                y = y + _Pushed.apply(dt, x, zero)
            if dx is not None:
                y = y + _summed(_Curve.apply(dx, x, _moved(t, zero)), zero)
        return y


class _Curved(_OfPoint):
    """The gradient of :class:`_Pushed` by ``x`` from an upstream gradient ``u``, whatever that is."""

    @staticmethod
    def forward(u, t, x, zero):
        return torch.where(_moved(t, zero), math.nan, torch.zeros_like(t))

    @staticmethod
    def backward(ctx, g):
        _, t, x, zero = ctx.saved_tensors
        moved = _Curve.apply(g, x, zero)
        return _summed(_Curve.apply(g, x, _moved(t, zero)), zero), moved, moved, None

    @staticmethod
    def jvp(ctx, du, dt, dx, _):
        _, t, x, zero = map(transforms.primal, ctx.saved_tensors)
        with _private.forward_mode(True):
            moved = [_Curve.apply(d, x, zero) for d in (dt, dx) if d is not None]
            moved += [] if du is None else [_Curve.apply(du.expand_as(t), x, _moved(t, zero))]
            return sum(moved)


class _Curve(_OfPoint):
    """NaN for the vectors of ``t`` other than 0, at ``zero``; so are its derivatives in directions of ``x``."""

    @staticmethod
    def forward(t, x, zero):
        return torch.where(_moved(t, zero), math.nan, torch.zeros_like(t))

    @staticmethod
    def backward(ctx, g):
        _, x, zero = ctx.saved_tensors
        moved = _Curve.apply(g, x, zero)
        return moved, moved, None

    @staticmethod
    def jvp(ctx, dt, dx, _):
        _, x, zero = map(transforms.primal, ctx.saved_tensors)
        with _private.forward_mode(True):
            return sum(_Curve.apply(d, x, zero) for d in (dt, dx) if d is not None)


def _axes(x, zero) -> list:
    return [i for i, (n, m) in enumerate(zip(zero.shape, x.shape)) if n == 1 != m]


def _summed(x, zero):
    return x.sum(axes, keepdim=True) if (axes := _axes(x, zero)) else x


def _moved(t, zero):
    """True for the vectors of ``t`` other than 0, at ``zero``."""
    moved, axes = t != 0, _axes(t, zero)
    return zero & (moved.any(axes, keepdim=True) if axes else moved)
