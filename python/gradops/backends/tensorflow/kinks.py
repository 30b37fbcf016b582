"""TensorFlow: the kink of a norm at 0, whose first derivative is 0 and whose second derivative is NaN."""

import math

import tensorflow as tf

from . import _private, tapes


def kink(x, zero):
    """Zeros in the shape of ``zero``, see :func:`gradops.ops.reductions.kink`."""
    if tf.executing_eagerly() and not tapes.may_record():
        return tf.zeros_like(zero, x.dtype)
    if not tf.executing_eagerly():
        tapes.refuse_rows()  # `ops.vectorized_map` then runs row by row
    return _kink(x, zero)


# The second derivative is NaN where both directions, or the direction and the upstream gradient, are nonzero. It is
# never computed as a product with the upstream gradient, which may be 0 where a derivative is infinite.


def _ruled(function):
    """``tf.custom_gradient`` of copies; without copies a graph loses its arguments in second derivatives."""
    return _private.custom_gradient(lambda *xs: function(*map(tf.identity, xs)))


@_ruled
def _kink(x, zero):
    return tf.zeros_like(zero, x.dtype), lambda g: (_pulled(g, x, zero), None)


@_ruled
def _pulled(t, x, zero):
    """The gradient of a kink: zeros in the shape of ``x``."""
    return tf.zeros_like(x), lambda g: (_pushed(g, x, zero), _curve(g, x, zero), None)


@_ruled
def _pushed(t, x, zero):
    """The tangent of a kink in the direction ``t``: zeros in the shape of ``zero``."""
    return tf.zeros_like(zero, x.dtype), lambda g: (_pulled(g, x, zero), _curved(g, t, x, zero), None)


@_ruled
def _curve(t, x, zero):
    """NaN for the nonzero vectors of ``t`` at ``zero``, and so are its derivatives in directions of ``x``."""

    def gradients(g):
        again = _curve(g, x, zero)
        return again, again, None

    return _nan(t, _moved(t, zero)), gradients


@_ruled
def _curved(u, t, x, zero):
    """The gradient of :func:`_pushed` with respect to ``x`` for any upstream gradient ``u``."""
    moved = _moved(t, zero)

    def gradients(g):
        again = _curve(g, x, zero)
        return tf.reduce_sum(_curve(g, x, moved), _axes(zero), keepdims=True), again, again, None

    return _nan(t, moved), gradients


def _nan(t, where):
    return tf.where(where, tf.constant(math.nan, t.dtype), tf.zeros_like(t))


def _moved(t, zero):
    """True at ``zero`` for the nonzero vectors of ``t``."""
    return tf.logical_and(zero, tf.reduce_any(tf.not_equal(t, 0), _axes(zero), keepdims=True))


def _axes(zero) -> list:
    return [i for i, n in enumerate(zero.shape) if n == 1]
