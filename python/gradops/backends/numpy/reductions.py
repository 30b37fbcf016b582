"""NumPy kernels: reductions, products, normalisation, activations, attention, CTC."""

import math

import numpy as np

from ...errors import ArgumentError
from .base import FLOATING, arithmetic, axes_of, check_held, floats, number, promoted, scipy_special, together
from .signals import pieces

_FLOAT64 = np.dtype("float64")
_HALF = np.dtype("float16")
"""Sums are accumulated in float32: in half precision, 2048 + 1 is 2048."""


def _wide(x):
    """The accumulator dtype for bools and small integers; None for other dtypes."""
    kind = x.dtype.kind
    if kind not in "biufc":
        raise TypeError(f"an array of dtype {x.dtype} is not numeric")
    if kind == "b" or kind == "i" and x.dtype.itemsize < 8:
        return "int64"
    if kind == "u" and x.dtype.itemsize < 8:
        return "int64"
    return None


def sum(x, axis=None, keepdims=False):
    if x.dtype is _FLOAT64 and (axis is None or axis.__class__ is int and x.ndim):  # the common case, tested cheaply
        return np.add.reduce(x, axis, None, None, keepdims)
    if x.dtype is _HALF:
        return np.add.reduce(x, axis=axes_of(x, axis), keepdims=keepdims, dtype=np.float32).astype(_HALF)
    return np.add.reduce(x, axis=axes_of(x, axis), keepdims=keepdims, dtype=None if x.dtype in FLOATING else _wide(x))


def mean(x, axis=None, keepdims=False):
    axis = axes_of(x, axis)
    if x.dtype is _FLOAT64 and x.__class__ is np.ndarray and (axis is None or axis.__class__ is int) and x.size:
        total = np.add.reduce(x, axis, keepdims=keepdims)  # `np.mean` takes three times as long
        return total / (x.size if axis is None else x.shape[axis])
    return np.mean(floats(x), axis, keepdims=keepdims)


def prod(x, axis=None, keepdims=False, dtype=None):
    return np.multiply.reduce(x, axis=axes_of(x, axis), keepdims=keepdims, dtype=dtype or _wide(x))


def max(x, axis=None, keepdims=False, initial=None):
    if initial is None:
        return np.maximum.reduce(x, axis=axes_of(x, axis), keepdims=keepdims)
    check_held(initial, x.dtype)
    return np.maximum.reduce(x, axis=axes_of(x, axis), keepdims=keepdims, initial=initial)


def min(x, axis=None, keepdims=False, initial=None):
    if initial is None:
        return np.minimum.reduce(x, axis=axes_of(x, axis), keepdims=keepdims)
    check_held(initial, x.dtype)
    return np.minimum.reduce(x, axis=axes_of(x, axis), keepdims=keepdims, initial=initial)


def all(x, axis=None, keepdims=False):
    return np.logical_and.reduce(x, axis=axes_of(x, axis), keepdims=keepdims)


def any(x, axis=None, keepdims=False):
    return np.logical_or.reduce(x, axis=axes_of(x, axis), keepdims=keepdims)


def argmax(x, axis=None, keepdims=False):
    return np.argmax(x, axis=axis, keepdims=keepdims)


def argmin(x, axis=None, keepdims=False):
    return np.argmin(x, axis=axis, keepdims=keepdims)


def logsumexp(x, axis=None, keepdims=False):
    x, axis = floats(x), axes_of(x, axis)
    top = np.max(x.real, axis=axis, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, x.real.dtype.type(0))
    with np.errstate(divide="ignore", over="ignore"):
        y = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top
    return y if keepdims else number(np.squeeze(y, axis))


def cumsum(x, axis=None, dtype=None):
    if x.dtype is _HALF and dtype is None:
        return cumsum(x, axis, np.float32).astype(_HALF)
    y = np.cumsum(x, axis=axis, dtype=dtype or _wide(x))
    return y if x.ndim or axis is None else y.reshape(())


def cumprod(x, axis=None, dtype=None):
    y = np.cumprod(x, axis=axis, dtype=dtype or _wide(x))
    return y if x.ndim or axis is None else y.reshape(())


dot = arithmetic(np.dot)


def outer(x1, x2):
    return np.outer(*promoted(x1, x2))


def einsum(subscripts, operands):
    operands = together(operands)
    if operands[0].dtype == np.float16:  # half-precision sums stop growing
        return np.asarray(einsum(subscripts, [x.astype(np.float32) for x in operands])).astype(np.float16)
    return np.einsum(subscripts, *operands, optimize=len(operands) > 2)


def sliding_product(x, window):
    return np.correlate(x, window.conj(), "valid")


def countable(x, length):
    """Return ``x`` if all its elements can be counted; a compiled function on NumPy calls this check."""
    if x.size and not 0 <= x.min() <= x.max() < length:
        wrong = x.min() if x.min() < 0 else x.max()
        raise ArgumentError(
            f"`bincount`: in a compiled function `x` must be between 0 and {length - 1}, as `minlength` is the length; "
            f"got {int(wrong)}.",
            argument="x",
        )
    return x


# Activations, attention, CTC ------------------------------------------------------------------------------------------


# Activations.

normal_cdf = scipy_special("ndtr")
_expit = scipy_special("expit")


def sigmoid(x):
    return 1 / (1 + np.exp(-x)) if x.dtype.kind == "c" else _expit(x)


sigmoid.function = "expit"


def relu(x):
    return np.maximum(x, x.dtype.type(0))


def softmax(x, axis=-1):
    x, axis = floats(x), axes_of(x, axis)
    y = np.asarray(x - x.max(axis, keepdims=True, initial=-np.inf))
    np.exp(y, out=y)
    y /= y.sum(axis, keepdims=True)
    return y


def log_softmax(x, axis=-1):
    x, axis = floats(x), axes_of(x, axis)
    y = np.asarray(x - x.max(axis, keepdims=True, initial=-np.inf))
    y -= np.log(np.exp(y).sum(axis, keepdims=True))
    return y


def softplus(x):
    x = floats(x)
    return np.logaddexp(x, x.dtype.type(0))


def gelu(x, approximate=True):
    x = floats(x)
    if x.dtype == np.float16:  # half precision loses the tail
        return gelu(x.astype(np.float32), approximate).astype(x.dtype)
    low = np.maximum(x, x.dtype.type(-40))  # -inf * 0 would be NaN
    if not approximate:
        return low * normal_cdf(low)
    inner = np.minimum(low, x.dtype.type(40))
    square = np.square(inner)
    square *= x.dtype.type(0.044715)
    square += x.dtype.type(1)
    square *= x.dtype.type(2 * math.sqrt(2 / math.pi))
    square *= inner
    return low * _expit(square)  # `1 + tanh(square / 2)` cancels for large negative `x`


# Attention, over one block of target positions after another.

MAX_LOGIT_BYTES = 2**20
"""The largest number of bytes of logits that are in memory at once."""


def attention_forward(query, key, value, bias, mask, scale, is_causal, flash_attention=None):
    dtype = query.dtype
    if dtype == np.float16:
        query, key, value = (x.astype(np.float32) for x in (query, key, value))
    (batch, targets, heads, width), (_, sources, groups, _) = query.shape, key.shape
    places = (batch, groups, heads // groups, targets)

    def by_place(x):
        return None if x is None else np.broadcast_to(x, (batch, heads, targets, sources)).reshape(*places, sources)

    query = query.reshape(batch, targets, groups, -1, width).transpose(0, 2, 3, 1, 4)
    key, value = key.transpose(0, 2, 3, 1)[:, :, None], value.transpose(0, 2, 1, 3)[:, :, None]
    bias, mask = by_place(bias), by_place(mask)
    out = np.empty((batch, targets, heads, value.shape[-1]), query.dtype)
    result = out.reshape(batch, targets, groups, -1, out.shape[-1]).transpose(0, 2, 3, 1, 4)
    for block in pieces(places, sources * query.itemsize, MAX_LOGIT_BYTES):
        whose = (*block[:2], 0) if len(block) == 4 else block[:2]
        rows = block[3] if len(block) == 4 else slice(0, targets)
        seen = slice(0, rows.stop if is_causal else sources)
        logits = query[block] @ key[whose][..., seen]
        logits *= logits.dtype.type(scale)
        if bias is not None:
            logits += bias[block][..., seen]
        if mask is not None:
            np.copyto(logits, -np.inf, where=mask[block][..., seen] == 0)
        if is_causal:
            own = np.arange(targets)[rows]
            np.copyto(logits, -np.inf, where=np.arange(sources)[seen] > own[:, None])
        result[block] = _average(logits, value[whose][..., seen, :], mask is not None)
    return out.astype(dtype, copy=False)


def _average(logits, value, may_be_empty):
    """Values weighted by the softmax of the logits, which are overwritten; 0 where all logits are -inf."""
    if not logits.shape[-1]:
        return np.zeros((*logits.shape[:-1], value.shape[-1]), logits.dtype)
    top = logits.max(-1, keepdims=True)
    if may_be_empty:
        top[top == -np.inf] = 0
    logits -= top
    np.exp(logits, out=logits)
    total = logits.sum(-1, keepdims=True)
    if may_be_empty:
        total[total == 0] = 1
    average = logits @ value
    average /= total
    return average


# Connectionist temporal classification.


def ctc_beams(inputs, sequence_lengths, beam_width, top_paths, mask_index):
    batch, steps, _ = inputs.shape
    labels = np.full((top_paths, batch, steps), -1, np.int64)
    scores = np.full((batch, top_paths), -np.inf, inputs.dtype)
    logs = log_softmax(np.asarray(inputs, np.promote_types(inputs.dtype, np.float32)))
    for b, length in enumerate(sequence_lengths):
        found = _search(logs[b, : int(length) if length > 0 else 0], beam_width, mask_index)
        for i, (path, score) in enumerate(found[:top_paths]):
            labels[i, b, : len(path)] = path
            scores[b, i] = score
    return labels, scores


def _search(logs, width, mask):
    """Find label prefixes and their log probabilities by beam search, the best first (Hannun et al. 2014).

    A prefix is a node of a tree, identified by its parent and last label. It has two probabilities: of ending in the
    mask (blank) label, after which its last label may be repeated, and of ending in its last label.
    """
    parents, labels, children = [-1], [-1], {}
    nodes, masked, labelled = np.zeros(1, int), np.zeros(1), np.full(1, -np.inf)
    for log in logs:
        whole, last = np.logaddexp(masked, labelled), np.array([labels[n] for n in nodes])
        longer = whole[:, None] + log
        again = np.flatnonzero(last >= 0)
        longer[again, last[again]] = masked[again] + log[last[again]]
        longer[:, mask] = -np.inf
        masked, labelled = whole + log[mask], labelled + np.where(last >= 0, log[last], -np.inf)
        # A prefix that is extended by a label may already be among the beams: add the probabilities.
        place = {node: i for i, node in enumerate(nodes)}
        for i, node in enumerate(nodes):
            j = place.get(parents[node])
            if j is not None:
                labelled[i] = np.logaddexp(labelled[i], longer[j, labels[node]])
                longer[j, labels[node]] = -np.inf
        scores = np.concatenate([np.logaddexp(masked, labelled), longer.ravel()])
        best = _best(scores, width)
        old, new = best[best < len(nodes)], best[best >= len(nodes)]
        fresh = []
        for j, label in zip(*np.divmod(new - len(nodes), len(log))):
            key = (nodes[j], label)
            if key not in children:
                children[key] = len(parents)
                parents.append(nodes[j])
                labels.append(label)
            fresh.append(children[key])
        nodes = np.concatenate([nodes[old], np.array(fresh, int)])
        masked = np.concatenate([masked[old], np.full(len(new), -np.inf)])
        labelled = np.concatenate([labelled[old], scores[new]])
    whole = np.logaddexp(masked, labelled)
    found = []
    for i in np.argsort(-whole, kind="stable"):
        path, node = [], nodes[i]
        while node:
            path.append(labels[node])
            node = parents[node]
        found.append((path[::-1], whole[i]))
    return found


def _best(scores, count):
    """The positions of the ``count`` largest scores above -inf, in ascending order."""
    if len(scores) > count:
        best = np.sort(np.argpartition(-scores, count - 1)[:count])
    else:
        best = np.arange(len(scores))
    return best[scores[best] > -np.inf]
