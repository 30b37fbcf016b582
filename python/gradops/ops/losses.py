"""Losses.

One number for each element or row. Probabilities are kept ``config.epsilon()`` away from 0 and 1.

See Also:
    :func:`ctc_loss`, :func:`log_softmax`, :func:`sigmoid`, :func:`mean`, :func:`one_hot`.
"""

from __future__ import annotations

import numpy as np

from .. import config
from ..annotations import Axis, Indices, Tensor
from ..dtypes import is_floating
from ..errors import Position, ShapeError
from ._checks import check_axis, check_rank, check_real, describe
from ._compose import floats
from ._dispatch import op
from .activations import log_softmax, softplus
from .conversion import cast, dtype
from .elementwise import (
    add,
    divide,
    greater_equal,
    less,
    log,
    log1p,
    log10,
    logical_and,
    maximum,
    minimum,
    multiply,
    negative,
    subtract,
)
from .encoding import _check_labels
from .indexing import take_along_axis, where
from .norms import squared
from .properties import fits, shape
from .reductions import mean, sum
from .shaping import expand_dims, squeeze


def _same_shape(op: str, first, second, names) -> None:
    if not fits(shape(first), shape(second)):
        raise ShapeError(
            f"`{op}`: `{names[0]}` and `{names[1]}` must have the same shape; got {{first}} and {{second}}.",
            argument=names[1],
            first=describe(first),
            second=describe(second),
        )


def _kept_inside(probabilities):
    return minimum(maximum(probabilities, config.epsilon()), 1 - config.epsilon())


def _log_probabilities(output, from_logits, axis):
    output = floats(output)
    if from_logits:
        return log_softmax(output, axis)
    return log(_kept_inside(divide(output, sum(output, axis, True))))


@op(check=check_real, elementwise=True)
def binary_crossentropy(target: Tensor, output: Tensor, from_logits: bool = False) -> Tensor:
    """``-target * log(p) - (1 - target) * log(1 - p)`` of each element.

    Args:
        target: the true probabilities (often 0 or 1).
        output: the predicted probabilities ``p``; with ``from_logits`` numbers whose sigmoid they are,
            for which the formula neither overflows nor rounds to 0.
        from_logits: take ``output`` as logits, not as probabilities.

    Returns:
        A tensor of the shape of both.

    Raises:
        ShapeError: shapes that differ.
        ArgumentTypeError: a complex ``target`` or ``output``.

    Gradient:
        ``(p - target) / (p * (1 - p))``, 0 outside of ``epsilon`` and ``1 - epsilon``; with ``from_logits``
        ``p - target``.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> p = np.array([0.5, 0.8])
        >>> print(ops.binary_crossentropy([0.0, 1.0], p).round(4))
        [0.6931 0.2231]
        >>> print(gradops.grad(lambda p: ops.sum(ops.binary_crossentropy([0.0, 1.0], p)))(p))
        [ 2.   -1.25]

    See Also:
        :func:`categorical_crossentropy`, :func:`sparse_categorical_crossentropy`, :func:`psnr`.
    """
    _same_shape("binary_crossentropy", target, output, ("target", "output"))
    output = floats(output)
    if from_logits:
        return subtract(softplus(output), multiply(output, target))
    output = _kept_inside(output)
    if not is_floating(dtype(target)):  # 1 - 2 is no uint8
        target = cast(target, dtype(output))
    return negative(add(multiply(target, log(output)), multiply(subtract(1, target), log1p(negative(output)))))


@op(check=check_real)
def categorical_crossentropy(target: Tensor, output: Tensor, from_logits: bool = False, axis: Axis = -1) -> Tensor:
    """``-sum(target * log(p))`` along an axis.

    Args:
        target: the true probabilities of the classes (often one-hot).
        output: the predicted probabilities, divided by their sum to give ``p``; with ``from_logits``
            numbers whose softmax ``p`` is.
        from_logits: take ``output`` as logits, not as probabilities.

    Returns:
        A tensor without ``axis``.

    Raises:
        ShapeError: shapes that differ.
        ArgumentTypeError: a complex ``target`` or ``output``.

    Gradient:
        With ``from_logits`` and a target of sum 1, ``p - target``.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> target, logits = np.array([[0.0, 1.0]]), np.array([[0.0, 0.0]])
        >>> def loss(logits):
        ...     return ops.sum(ops.categorical_crossentropy(target, logits, from_logits=True))
        >>> print(gradops.grad(loss)(logits))
        [[ 0.5 -0.5]]

    See Also:
        :func:`sparse_categorical_crossentropy`, :func:`binary_crossentropy`, :func:`log_softmax`.
    """
    check_axis("categorical_crossentropy", axis, check_rank("categorical_crossentropy", output, 1, "output"))
    _same_shape("categorical_crossentropy", target, output, ("target", "output"))
    return negative(sum(multiply(target, _log_probabilities(output, from_logits, axis)), axis))


@op(check=check_real)
def sparse_categorical_crossentropy(
    target: Indices, output: Tensor, from_logits: bool = False, axis: Axis = -1
) -> Tensor:
    """``-log(p[target])`` along an axis: :func:`categorical_crossentropy` of class labels.

    Args:
        target: whole numbers in ``output``'s shape without ``axis`` (or with a size of 1 there). A label
            that is negative or too large has loss 0.
        output: the predicted probabilities, divided by their sum to give ``p``; with ``from_logits``
            numbers whose softmax ``p`` is.
        from_logits: take ``output`` as logits, not as probabilities.

    Returns:
        A tensor without ``axis``.

    Raises:
        ShapeError: a ``target`` that does not fit.
        ArgumentTypeError: labels that are not whole numbers, or a complex ``output``.

    Gradient:
        With ``from_logits``, ``p - one_hot(target)``.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> p = np.array([[0.5, 0.5], [0.2, 0.8]])
        >>> print(ops.sparse_categorical_crossentropy([0, 1], p).round(4))
        [0.6931 0.2231]
        >>> print(gradops.grad(lambda p: ops.sum(ops.sparse_categorical_crossentropy([0, 1], p)))(p))
        [[-1.    1.  ]
         [ 1.   -0.25]]

    See Also:
        :func:`categorical_crossentropy`, :func:`psnr`, :func:`binary_crossentropy`.
    """
    name = "sparse_categorical_crossentropy"
    rank = check_rank(name, output, 1, "output")
    axis = check_axis(name, axis, rank)
    _check_labels(name, target, "target")
    before, classes, after = shape(output)[:axis], shape(output)[axis], shape(output)[axis + 1 :]
    fitting = ((*before, *after), (*before, 1, *after), (*before, *after, 1))
    if not any(fits(shape(target), wanted) for wanted in fitting):
        raise ShapeError(
            f"`{name}`: `target` must be of shape {(*before, *after)}, `output` without axis {{axis}}; got {{target}}.",
            argument="target",
            axis=Position(axis),
            target=describe(target),
        )
    if len(target.shape) == rank:
        target = squeeze(target, axis if shape(target)[axis] == 1 else -1)
    known = logical_and(greater_equal(target, 0), less(target, classes))
    labels = expand_dims(where(known, target, 0), axis)
    chosen = take_along_axis(_log_probabilities(output, from_logits, axis), labels, axis)
    return where(known, negative(squeeze(chosen, axis)), 0.0)


@op
def psnr(x1: Tensor, x2: Tensor, max_val: float) -> Tensor:
    """Peak signal-to-noise ratio in decibels: ``20 * log10(max_val) - 10 * log10(mean((x1 - x2)**2))``.

    Args:
        max_val: the largest value that a signal can have.

    Returns:
        A 0-d tensor; infinite for equal signals.

    Raises:
        ShapeError: shapes that differ.

    Gradient:
        ``-20 / log(10) * (x1 - x2) / sum((x1 - x2)**2)``.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> x = np.array([0.5, 0.8])
        >>> print(ops.psnr(x, [0.5, 1.0], 1.0).round(4))
        16.9897
        >>> print(gradops.grad(lambda x: ops.psnr(x, [0.5, 1.0], 1.0))(x).round(4))
        [-0.     43.4294]

    See Also:
        :func:`sparse_categorical_crossentropy`, :func:`categorical_crossentropy`, :func:`binary_crossentropy`.
    """
    _same_shape("psnr", x1, x2, ("x1", "x2"))
    noise = mean(squared(subtract(floats(x1), floats(x2))))
    return subtract(20 * float(np.log10(max_val)), multiply(log10(noise), 10.0))
