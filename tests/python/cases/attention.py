"""Cases: attention, against a loop over batch, heads and targets."""

import numpy as np
from parity import Case, arrays

from .normalization import fixed


def attention(
    query,
    key,
    value,
    bias=None,
    mask=None,
    scale=None,
    is_causal=False,
    flash_attention=None,
    attn_logits_soft_cap=None,
):
    (batch, targets, heads, width), (_, sources, groups, _) = query.shape, key.shape
    shape = (batch, heads, targets, sources)
    bias = np.broadcast_to(0.0 if bias is None else bias, shape)
    mask = np.broadcast_to(True if mask is None else mask, shape)
    out = np.zeros((batch, targets, heads, value.shape[-1]))
    for b, n, t in np.ndindex(batch, heads, targets):
        g = n // (heads // groups)
        logits = key[b, :, g] @ query[b, t, n] * (width**-0.5 if scale is None else scale)
        if attn_logits_soft_cap:
            logits = attn_logits_soft_cap * np.tanh(logits / attn_logits_soft_cap)
        seen = mask[b, n, t] & (np.arange(sources) <= t if is_causal else True)
        weights = np.where(seen, np.exp(logits + bias[b, n, t]), 0)
        out[b, t, n] = weights / max(weights.sum(), 1e-300) @ value[b, :, g]
    return out


three = ["query", "key", "value"]
plain = {"query": (2, 3, 2, 4), "key": (2, 5, 2, 4), "value": (2, 5, 2, 3)}
grouped = {"query": (2, 3, 4, 2), "key": (2, 3, 2, 2), "value": (2, 3, 2, 2)}
masks = arrays((2, 1, 3, 5), dtype="bool")
causal = arrays((3, 3), dtype="bool")


def case(label, gradients=three, **arguments):
    return Case("dot_product_attention", fixed(**arguments), attention, gradients=gradients, label=label)


forward = {"scale": 0.3, "is_causal": False}

CASES = [
    case("", **plain),
    case("mask and bias", [*three, "bias"], **plain, bias=(1, 2, 1, 5), mask=masks),
    case("grouped, causal", **grouped, is_causal=True),
    case("grouped, causal, mask", **grouped, is_causal=True, mask=causal, scale=0.5),
    case("soft cap", [*three, "bias"], **plain, bias=(3, 5), attn_logits_soft_cap=0.5),
    Case("dot_product_attention", fixed(**plain, flash_attention=True), attention, label="flash"),
    Case("attention_forward", fixed(**plain, bias=None, mask=masks, **forward), attention, gradients=three),
    Case(
        "attention_forward",
        fixed(**grouped, bias=(4, 3, 3), mask=None, scale=1.0, is_causal=True),
        attention,
        gradients=[*three, "bias"],
        label="grouped",
    ),
]
