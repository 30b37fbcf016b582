"""Losses, and connectionist temporal classification."""

from __future__ import annotations

import numpy as np

from .. import config
from ..annotations import Axis, Index, Indices, Integer, Tensor
from ..dtypes import is_floating
from ..errors import ArgumentError, Position, ShapeError
from ._checks import check_axis, check_rank, check_real, choice, describe, integer
from ._compose import floats, rounded, wide
from ._dispatch import op
from .activations import log_softmax, softplus
from .control import scan
from .conversion import cast, dtype
from .creation import full_like
from .elementwise import (
    add,
    divide,
    equal,
    greater,
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
    not_equal,
    subtract,
)
from .elementwise_composed import logaddexp
from .encoding import _check_labels
from .indexing import take_along_axis, where
from .joining import concatenate, stack
from .properties import fits, shape
from .reductions import argmax, mean, squared, sum
from .reductions import max as _largest
from .shaping import expand_dims, reshape, squeeze, transpose
from .sorting import argsort


def _same_shape(op: str, first, second, names) -> None:
    if not fits(shape(first), shape(second)):
        raise ShapeError(
            f"`{op}`: `{names[0]}` and `{names[1]}` must have the same shape; got {{first}} and {{second}}.",
            argument=names[1],
            hint="classes as whole numbers go to `ops.sparse_categorical_crossentropy()`"
            if op == "categorical_crossentropy"
            else None,
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


__family__ = """Losses.

Losses of each element or row. Probabilities are clipped to stay ``config.epsilon()`` away from 0 and 1.

See Also:
    :func:`ctc_loss`, :func:`log_softmax`, :func:`sigmoid`, :func:`mean`, :func:`one_hot`.
"""


@op(check=check_real, elementwise=True)
def binary_crossentropy(target: Tensor, output: Tensor, from_logits: bool = False) -> Tensor:
    """``-target * log(p) - (1 - target) * log(1 - p)`` of each element.

    Args:
        target: the true probabilities (often 0 or 1).
        output: the predicted probabilities ``p``; with ``from_logits`` their logits, for which the formula neither
            overflows nor rounds to 0.
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
        >>> p = np.array([0.5, 0.8])
        >>> print(ops.binary_crossentropy([0.0, 1.0], p).round(4))
        [0.6931 0.2231]
        >>> print(gradops.grad(lambda p: ops.sum(ops.binary_crossentropy([0.0, 1.0], p)))(p))
        [ 2.   -1.25]
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
        >>> p = np.array([[0.5, 0.5], [0.2, 0.8]])
        >>> print(ops.sparse_categorical_crossentropy([0, 1], p).round(4))
        [0.6931 0.2231]
        >>> print(gradops.grad(lambda p: ops.sum(ops.sparse_categorical_crossentropy([0, 1], p)))(p))
        [[-1.    1.  ]
         [ 1.   -0.25]]
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
        >>> x = np.array([0.5, 0.8])
        >>> print(ops.psnr(x, [0.5, 1.0], 1.0).round(4))
        16.9897
        >>> print(gradops.grad(lambda x: ops.psnr(x, [0.5, 1.0], 1.0))(x).round(4))
        [-0.     43.4294]
    """
    _same_shape("psnr", x1, x2, ("x1", "x2"))
    noise = mean(squared(subtract(floats(x1), floats(x2))))
    return subtract(20 * float(np.log10(max_val)), multiply(log10(noise), 10.0))


def _check_batch(op: str, outputs, name: str, **others) -> None:
    check_rank(op, outputs, (3,), name)
    for other, (tensor, rank) in others.items():
        check_rank(op, tensor, (rank,), other)
        if not fits(shape(tensor)[:1], shape(outputs)[:1]):
            raise ShapeError(
                f"`{op}`: `{other}` must have the batch size of `{name}`, {shape(outputs)[0]}; got {{tensor}}.",
                argument=other,
                tensor=describe(tensor),
            )


_LOG_ZERO = -1e30
"""The logarithm of probability 0: finite, so that gradients are finite."""


__family__ = """Connectionist temporal classification.

Labels of a sequence whose timing is not known (Graves et al. 2006).

See Also:
    :func:`categorical_crossentropy`, :func:`log_softmax`, :func:`scan`.
"""


@op
def ctc_loss(
    target: Indices, output: Tensor, target_length: Tensor, output_length: Tensor, mask_index: Index = 0
) -> Tensor:
    """Negative log probability of the labels, summed over all their alignments with the steps.

    Args:
        target: ``(batch, labels)``, whole numbers.
        output: ``(batch, steps, classes)``: numbers whose softmax the probabilities of the classes are.
        target_length: ``(batch,)``: the number of labels.
        output_length: ``(batch,)``: the number of steps.
        mask_index: the blank class.

    Returns:
        ``(batch,)``; infinite where there are too few steps for the labels.

    Raises:
        ShapeError: other numbers of dimensions, or batches of different sizes.
        ArgumentTypeError: labels that are not whole numbers.
        AxisError: a ``mask_index`` that is not a class.

    Gradient:
        To ``output``, the softmax minus the posterior probability of the class at the step; 0 where the loss is
        infinite.

    Examples:
        >>> x = np.zeros((1, 3, 2))
        >>> print(ops.ctc_loss([[1]], x, [1], [3]).round(4))
        [0.2877]
        >>> print(gradops.grad(lambda x: ops.sum(ops.ctc_loss([[1]], x, [1], [3])))(x).ravel().round(4))
        [ 0.      0.      0.1667 -0.1667  0.      0.    ]
    """
    lengths = {"target_length": (target_length, 1), "output_length": (output_length, 1)}
    _check_batch("ctc_loss", output, "output", target=(target, 2), **lengths)
    _check_labels("ctc_loss", target, "target")
    labels, (steps, classes) = shape(target)[1], shape(output)[1:]
    mask_index = check_axis("ctc_loss", mask_index, classes, "mask_index")
    target, target_length, output_length = (cast(x, "int64") for x in (target, target_length, output_length))
    output, final = wide(output)

    # Blanks surround the labels: states 0, 2, ... are blanks, states 1, 3, ... labels.
    count = expand_dims(target_length, 1)
    target = where(less(np.arange(labels), count), target, mask_index)
    mask = full_like(target, mask_index)
    pairs = reshape(stack([mask, target], 2), (-1 if labels else shape(target)[0], 2 * labels))
    states = concatenate([pairs, full_like(count, mask_index)], 1)
    # A label may follow the previous one without a blank, unless both are equal.
    before = concatenate([full_like(states[:, :2], mask_index), states[:, :-2]], 1)
    skips = logical_and(not_equal(states, mask_index), not_equal(states, before))

    logs = log_softmax(output)
    emissions = take_along_axis(logs, add(expand_dims(states, 1), np.zeros((steps, 1), np.int64)), 2)
    counts = less(np.arange(steps).reshape(-1, 1, 1), reshape(output_length, (1, -1, 1)))
    never = full_like(emissions[:, :1, 0], _LOG_ZERO)
    first = concatenate([full_like(emissions[:, 0, :1], 0.0), full_like(emissions[:, 0, 1:], _LOG_ZERO)], 1)

    def step(alpha, row):
        emission, is_counted = row
        one = concatenate([never, alpha[:, :-1]], 1)
        two = where(skips, concatenate([never, never, alpha[:, :-2]], 1), _LOG_ZERO)
        return where(is_counted, add(logaddexp(logaddexp(alpha, one), two), emission), alpha), None

    alpha, _ = scan(step, first, (transpose(emissions, (1, 0, 2)), counts))
    place, end = np.arange(2 * labels + 1), multiply(count, 2)
    last = sum(where(equal(place, end), alpha, 0.0), 1)
    label = where(equal(place, subtract(end, 1)), alpha, 0.0)
    label = where(greater(target_length, 0), sum(label, 1), _LOG_ZERO)
    loss = negative(logaddexp(last, label))
    return rounded(where(greater(loss, -0.1 * _LOG_ZERO), np.inf, loss), final)


@op(differentiable=False, positions="(0,)")
def ctc_decode(
    inputs: Tensor,
    sequence_lengths: Tensor,
    strategy: str = "greedy",
    beam_width: Integer = 100,
    top_paths: Integer = 1,
    merge_repeated: bool = True,
    mask_index: Index = 0,
) -> tuple:
    """The most probable labels of sequences.

    Args:
        inputs: ``(batch, steps, classes)``: numbers whose softmax the probabilities of the classes are.
        sequence_lengths: ``(batch,)``: the number of steps.
        strategy: ``"greedy"``: the best class of each step; ``"beam_search"``: the labels of the largest
            probability summed over alignments, keeping ``beam_width`` prefixes after each step.
        top_paths: the number of results of a beam search.
        merge_repeated: greedy only: count a class repeated over consecutive steps once.
        mask_index: the class that stands for no label.
        beam_width: the number of prefixes that a beam search keeps after each step.

    Returns:
        The labels, positions among the classes, as int64 ``(1 or top_paths, batch, steps)`` with -1 after the
        last; and ``(batch, 1)`` with minus the sum of the best inputs, or ``(batch, top_paths)`` with the logs of
        the probabilities. They have no gradient.

    Raises:
        ShapeError: other numbers of dimensions, or batches of different sizes.
        ArgumentError: an unknown ``strategy``, or more ``top_paths`` than ``beam_width``.
        AxisError: a ``mask_index`` that is no class.
    """
    name = "ctc_decode"
    _check_batch(name, inputs, "inputs", sequence_lengths=(sequence_lengths, 1))
    choice(name, strategy, ("greedy", "beam_search"), "strategy")
    mask_index = check_axis(name, mask_index, shape(inputs)[2], "mask_index")
    inputs, sequence_lengths = floats(inputs), cast(sequence_lengths, "int64")
    if strategy == "greedy":
        return _greedy(inputs, sequence_lengths, merge_repeated, mask_index)
    beam_width, top_paths = integer(name, beam_width, "beam_width"), integer(name, top_paths, "top_paths")
    if not 1 <= top_paths <= beam_width:
        raise ArgumentError(
            f"`{name}`: `top_paths` must be between 1 and `beam_width`, {beam_width}; got {top_paths}.",
            argument="top_paths",
        )
    return ctc_beams(inputs, sequence_lengths, beam_width, top_paths, mask_index)


def _greedy(inputs, sequence_lengths, merge_repeated, mask_index):
    steps = np.arange(shape(inputs)[1])
    counts = less(steps, expand_dims(sequence_lengths, 1))
    best = argmax(inputs, 2)
    scores = negative(sum(where(counts, _largest(inputs, 2), 0.0), 1, True))
    emitted = logical_and(counts, not_equal(best, mask_index))
    if merge_repeated:
        before = concatenate([full_like(best[:, :1], -1), best[:, :-1]], 1)
        emitted = logical_and(emitted, not_equal(best, before))
    # Kept labels first, in their order.
    order = argsort(where(emitted, steps, steps + len(steps)), 1)
    found = less(steps, sum(emitted, 1, True))
    labels = where(found, take_along_axis(best, order, 1), -1)
    return expand_dims(labels, 0), scores


@op(public=False, differentiable=False)
def ctc_beams(inputs: Tensor, sequence_lengths: Tensor, beam_width, top_paths, mask_index) -> tuple:
    """:func:`ctc_decode` by beam search, on the host.

    Returns:
        The labels and the logs of their probabilities. They have no gradient.
    """
    ...
