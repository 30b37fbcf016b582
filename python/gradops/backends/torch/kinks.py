"""PyTorch: the kink of a norm at 0 as a function whose first derivative is 0 and whose second derivative is NaN.

:class:`_Kink` is the function, :class:`_Pulled` and :class:`_Pushed` its derivatives in reverse and forward mode, and
:class:`_Curved` and :class:`_Curve` theirs.
"""

import math

import torch

from . import _private, transforms


def kink(x, zero):
    """Zeros in the shape of ``zero``, see :func:`gradops.ops.reductions.kink`."""
    y = torch.zeros_like(zero, dtype=x.dtype)
    if torch.compiler.is_compiling() or torch.jit.is_tracing():  # compiled graphs have first derivatives only
        return y
    if not (transforms.active() or x.requires_grad and torch.is_grad_enabled()):
        return y
    if not transforms.active() and zero.device.type == "cpu" and not zero.any():
        return y
    return _Kink.apply(x, zero)


class _PointFunction(torch.autograd.Function):
    """A function of tensors ``t``, ``x`` and ``zero`` that is linear in each ``t``.

    The second derivative is NaN where both directions, or the direction and the upstream gradient, are nonzero. It is
    never computed as a product with the upstream gradient, which may be 0 where a derivative is infinite.
    """

    generate_vmap_rule = True

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)


class _Kink(_PointFunction):
    """Zeros in the shape of ``zero``."""

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


class _Pulled(_PointFunction):
    """The gradient of a kink: zeros in the shape of ``x``."""

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


class _Pushed(_PointFunction):
    """The tangent of a kink in the direction ``t``: zeros in the shape of ``zero``."""

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


class _Curved(_PointFunction):
    """The gradient of :class:`_Pushed` with respect to ``x`` for any upstream gradient ``u``."""

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


class _Curve(_PointFunction):
    """NaN for the nonzero vectors of ``t`` at ``zero``, and so are its derivatives in directions of ``x``."""

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
    """True at ``zero`` for the nonzero vectors of ``t``."""
    moved, axes = t != 0, _axes(t, zero)
    return zero & (moved.any(axes, keepdim=True) if axes else moved)
