"""Connectionist temporal classification.

Labels of a sequence whose timing is not known (Graves et al. 2006).

See Also:
    :func:`categorical_crossentropy`, :func:`log_softmax`, :func:`scan`.
"""

from __future__ import annotations

import numpy as np

from ..annotations import Index, Indices, Integer, Tensor
from ..errors import ArgumentError, ShapeError
from ._checks import check_axis, check_rank, choice, describe, integer
from ._compose import floats, rounded, wide
from ._dispatch import op
from .activations import log_softmax
from .control import scan
from .conversion import cast, shape
from .creation import full_like
from .elementwise import (
    add,
    equal,
    greater,
    less,
    logical_and,
    multiply,
    negative,
    not_equal,
    subtract,
)
from .encoding import _check_labels
from .indexing import take_along_axis, where
from .joining import concatenate, stack
from .logarithms import logaddexp
from .properties import fits
from .reductions import argmax, sum
from .reductions import max as _largest
from .shaping import expand_dims, reshape, transpose
from .sorting import argsort


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


RETURNS_POSITIONS = ("ctc_decode",)

_NEVER = -1e30
"""The logarithm of no probability, finite so that gradients are."""


@op
def ctc_loss(
    target: Indices, output: Tensor, target_length: Tensor, output_length: Tensor, mask_index: Index = 0
) -> Tensor:
    """Minus the log of the probability of the labels, over all the ways to time them.

    Args:
        target: ``(batch, labels)``, whole numbers.
        output: ``(batch, steps, classes)``: numbers whose softmax the probabilities of the classes are.
        target_length: ``(batch,)``: how many labels count.
        output_length: ``(batch,)``: how many steps count.
        mask_index: the class that stands for no label.

    Returns:
        ``(batch,)``; infinite where there are too few steps for the labels.

    Raises:
        ShapeError: other numbers of dimensions, or batches of different sizes.
        ArgumentTypeError: labels that are not whole numbers.
        AxisError: a ``mask_index`` that is no class.

    Gradient:
        To ``output``, the softmax less the probability that the class is meant at the step (0 where the loss
        is infinite).

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> x = np.zeros((1, 3, 2))
        >>> print(ops.ctc_loss([[1]], x, [1], [3]).round(4))
        [0.2877]
        >>> print(gradops.grad(lambda x: ops.sum(ops.ctc_loss([[1]], x, [1], [3])))(x).ravel().round(4))
        [ 0.      0.      0.1667 -0.1667  0.      0.    ]

    See Also:
        :func:`ctc_decode`.
    """
    lengths = {"target_length": (target_length, 1), "output_length": (output_length, 1)}
    _check_batch("ctc_loss", output, "output", target=(target, 2), **lengths)
    _check_labels("ctc_loss", target, "target")
    labels, (steps, classes) = shape(target)[1], shape(output)[1:]
    mask_index = check_axis("ctc_loss", mask_index, classes, "mask_index")
    target, target_length, output_length = (cast(x, "int64") for x in (target, target_length, output_length))
    output, final = wide(output)

    # Between, before and after the labels there is the mask: states 0, 2, ... are masks, 1, 3, ... labels.
    count = expand_dims(target_length, 1)
    target = where(less(np.arange(labels), count), target, mask_index)
    mask = full_like(target, mask_index)
    pairs = reshape(stack([mask, target], 2), (-1 if labels else shape(target)[0], 2 * labels))
    states = concatenate([pairs, full_like(count, mask_index)], 1)
    # A label may follow the one before it at once, unless it is the same.
    before = concatenate([full_like(states[:, :2], mask_index), states[:, :-2]], 1)
    skips = logical_and(not_equal(states, mask_index), not_equal(states, before))

    logs = log_softmax(output)
    emissions = take_along_axis(logs, add(expand_dims(states, 1), np.zeros((steps, 1), np.int64)), 2)
    counts = less(np.arange(steps).reshape(-1, 1, 1), reshape(output_length, (1, -1, 1)))
    never = full_like(emissions[:, :1, 0], _NEVER)
    first = concatenate([full_like(emissions[:, 0, :1], 0.0), full_like(emissions[:, 0, 1:], _NEVER)], 1)

    def step(alpha, row):
        emission, is_counted = row
        one = concatenate([never, alpha[:, :-1]], 1)
        two = where(skips, concatenate([never, never, alpha[:, :-2]], 1), _NEVER)
        return where(is_counted, add(logaddexp(logaddexp(alpha, one), two), emission), alpha), None

    alpha, _ = scan(step, first, (transpose(emissions, (1, 0, 2)), counts))
    place, end = np.arange(2 * labels + 1), multiply(count, 2)
    last = sum(where(equal(place, end), alpha, 0.0), 1)
    label = where(equal(place, subtract(end, 1)), alpha, 0.0)
    label = where(greater(target_length, 0), sum(label, 1), _NEVER)
    loss = negative(logaddexp(last, label))
    return rounded(where(greater(loss, -0.1 * _NEVER), np.inf, loss), final)


@op(differentiable=False)
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
        sequence_lengths: ``(batch,)``: how many steps count.
        strategy: ``"greedy"``: the best class of each step; ``"beam_search"``: the labels of the largest
            probability over all the ways to time them, keeping ``beam_width`` beginnings after each step.
        top_paths: the number of answers of a beam search.
        merge_repeated: greedy only: count a class that goes on over several steps once.
        mask_index: the class that stands for no label.
        beam_width: the number of beginnings that a beam search keeps after each step.

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
