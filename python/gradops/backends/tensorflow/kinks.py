"""TensorFlow: the kink of a norm at 0, whose derivative is 0 and whose second one is NaN."""

import math

import tensorflow as tf

from . import _private, tapes


def kink(x, zero):
    """0 in the shape of ``zero``, see :func:`gradops.ops.reductions.kink`."""
    if tf.executing_eagerly() and not tapes.may_record():
        return tf.zeros_like(zero, x.dtype)
    if not tf.executing_eagerly():
        tapes.refuse_rows()  # of `ops.vectorized_map`, which takes them one after the other
    return _kink(x, zero)


# The second derivative is NaN where its two directions, or its one beside an upstream gradient, are not 0, and never a
# product with the upstream gradient, which may be 0 beside an infinite derivative.


def _ruled(function):
    """``tf.custom_gradient``; of copies, without which a graph loses its arguments in second derivatives."""
    return _private.custom_gradient(lambda *xs: function(*map(tf.identity, xs)))


@_ruled
def _kink(x, zero):
    return tf.zeros_like(zero, x.dtype), lambda g: (_pulled(g, x, zero), None)


@_ruled
def _pulled(t, x, zero):
    """The gradient of a kink: 0 in the shape of ``x``."""
    return tf.zeros_like(x), lambda g: (_pushed(g, x, zero), _curve(g, x, zero), None)


@_ruled
def _pushed(t, x, zero):
    """The tangent of a kink in the direction ``t``: 0 in the shape of ``zero``."""
    return tf.zeros_like(zero, x.dtype), lambda g: (_pulled(g, x, zero), _curved(g, t, x, zero), None)


@_ruled
def _curve(t, x, zero):
    """NaN for the vectors of ``t`` other than 0, at ``zero``; so are its derivatives in directions of ``x``."""

    def gradients(g):
        again = _curve(g, x, zero)
        return again, again, None

    return _nan(t, _moved(t, zero)), gradients


@_ruled
def _curved(u, t, x, zero):
    """The gradient of :func:`_pushed` by ``x`` from an upstream gradient ``u``, whatever that is."""
    moved = _moved(t, zero)

    def gradients(g):
        again = _curve(g, x, zero)
        return tf.reduce_sum(_curve(g, x, moved), _axes(zero), keepdims=True), again, again, None

    return _nan(t, moved), gradients


def _nan(t, where):
    return tf.where(where, tf.constant(math.nan, t.dtype), tf.zeros_like(t))


def _moved(t, zero):
    """True for the vectors of ``t`` other than 0, at ``zero``."""
    return tf.logical_and(zero, tf.reduce_any(tf.not_equal(t, 0), _axes(zero), keepdims=True))


def _axes(zero) -> list:
    return [i for i, n in enumerate(zero.shape) if n == 1]
