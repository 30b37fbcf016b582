"""JAX: the kink of a norm at 0, whose first derivative is 0 and whose second derivative is NaN, as primitives.

``jax.custom_jvp`` is not enough: second derivatives of loops differentiate the function's own code.
"""

import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, mlir

from .._shared import weight
from ._private import set_batcher


def kink(x, zero):
    """Zeros in the shape of ``zero``, see :func:`gradops.ops.reductions.kink`."""
    axes = tuple(i for i, (n, m) in enumerate(zip(zero.shape, x.shape)) if n == 1 != m)
    x = jnp.where(zero, x, 0.0)  # other vectors get a direction of 0
    if axes:  # a combination of elements that is 0 only if all of them are
        count = 1
        for i in axes:
            count *= x.shape[i]
        weights = weight(np.arange(1, count + 1)).astype(x.dtype)
        x = jnp.sum(x * weights.reshape([x.shape[i] if i in axes else 1 for i in range(x.ndim)]), axes, keepdims=True)
    return _value.bind(x)


def _elementwise(name: str, function) -> Primitive:
    """A primitive of tensors of one shape and dtype."""
    primitive = Primitive(name)
    primitive.def_impl(function)
    primitive.def_abstract_eval(lambda first, *_: first)
    mlir.register_lowering(primitive, mlir.lower_fun(function, multiple_results=False))

    def batch(axis, values, dims):
        if all(d is None for d in dims):
            return primitive.bind(*values), None
        rows = [
            jnp.broadcast_to(v, (axis.size, *v.shape)) if d is None else jnp.moveaxis(v, d, 0)
            for v, d in zip(values, dims)
        ]
        return primitive.bind(*rows), 0

    set_batcher(primitive, batch)
    return primitive


def _nan(t):
    return jnp.where(t == 0, 0.0, jnp.nan).astype(t.dtype)


# The second derivative is NaN where both directions, or the direction and the cotangent, are nonzero. It is never
# computed as a product with the cotangent, which may be 0 where a derivative is infinite. So the maps of tangents and
# cotangents, both 0, are two primitives with derivatives of their own. All are linear in their first argument.

_value = _elementwise("gradops_kink", jnp.zeros_like)
_pushed = _elementwise("gradops_kink_pushed", lambda t, x: jnp.zeros_like(t))
_pulled = _elementwise("gradops_kink_pulled", lambda g, x: jnp.zeros_like(g))
_curved = _elementwise("gradops_kink_curved", lambda s, t, x: _nan(jnp.where(t == 0, t, s)))
_curve = _elementwise("gradops_kink_curve", lambda t, x: _nan(t))


def _is_zero(t) -> bool:
    return type(t) is ad.Zero


def _value_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return _value.bind(x), dx if _is_zero(dx) else _pushed.bind(dx, x)


def _moved_by(primitive, curve):
    """The JVP of a primitive that is linear in its first argument; ``curve`` gives the tangents of the others."""

    def moved(primals, tangents):
        first, *rest = tangents
        parts = [] if _is_zero(first) else [primitive.bind(first, *primals[1:])]
        parts += [curve(t, *primals) for t in rest if not _is_zero(t)]
        return primitive.bind(*primals), sum(parts[1:], parts[0]) if parts else first

    return moved


def _transposed(transpose):
    return lambda g, first, *rest: (g if _is_zero(g) else transpose(g, *rest), *[None] * len(rest))


ad.primitive_jvps[_value] = _value_jvp
ad.primitive_jvps[_pushed] = _moved_by(_pushed, lambda s, t, x: _curved.bind(s, t, x))
ad.primitive_jvps[_pulled] = _moved_by(_pulled, lambda s, g, x: _curve.bind(s, x))
ad.primitive_jvps[_curved] = _moved_by(_curved, lambda r, s, t, x: _curve.bind(r, x))
ad.primitive_jvps[_curve] = _moved_by(_curve, lambda r, t, x: _curve.bind(r, x))
ad.primitive_transposes[_pushed] = _transposed(_pulled.bind)
ad.primitive_transposes[_pulled] = _transposed(_pushed.bind)
ad.primitive_transposes[_curved] = _transposed(lambda g, t, x: _curve.bind(t, x))
ad.primitive_transposes[_curve] = _transposed(_curve.bind)
