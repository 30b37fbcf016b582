"""NumPy kernels: attention, a block of targets at a time."""

import numpy as np

from .convolution import pieces

LOGITS = 2**20
"""How many bytes of logits there are at once."""


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
    for block in pieces(places, sources * query.itemsize, LOGITS):
        whose = (*block[:2], 0) if len(block) == 4 else block[:2]
        rows = block[3] if len(block) == 4 else slice(0, targets)
        seen = slice(0, min(sources, rows.stop)) if is_causal else slice(0, sources)
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
    """Values weighted by the softmax of the logits, which are overwritten; 0 where all of them are -inf."""
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
