"""PyTorch kernels: activations, attention, CTC."""

import math

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from ..numpy import nn as _numpy
from . import _private, transforms
from .base import axes_of, floating, floats, to_numpy

# Activations.

sigmoid = floating(torch.sigmoid)


def relu(x):
    return torch.relu(x) if x.dtype is not torch.bool else x


@floating
def normal_cdf(x):
    if x.dtype.itemsize == 2:  # of which the argument's rounding is the tail's error
        return normal_cdf(x.float()).to(x.dtype)
    return 0.5 * torch.erfc(x * -math.sqrt(0.5))  # torch.special.ndtr is 0 far below 0


def softplus(x):
    return torch.nn.functional.softplus(floats(x), threshold=40)  # beyond, of float64 too, it is x


def softmax(x, axis=-1):
    x = floats(x)
    if isinstance(axis, int):
        return torch.softmax(x, axis)
    axes = axes_of(x, axis)
    return torch.exp(x - torch.logsumexp(x, axes, keepdim=True))


def log_softmax(x, axis=-1):
    x = floats(x)
    if isinstance(axis, int):
        return torch.log_softmax(x, axis)
    axes = axes_of(x, axis)
    return x - torch.logsumexp(x, axes, keepdim=True)


# Native where the derivative at the kinks is the one that gradops documents.


def relu6(x):
    return torch.nn.functional.relu6(x if x.dtype is not torch.bool else x.to(torch.int64))


log_sigmoid = floating(torch.nn.functional.logsigmoid)
softsign = floating(torch.nn.functional.softsign)


@floating
def silu(x):
    return x * torch.sigmoid(x) if x.is_complex() else torch.nn.functional.silu(x)


def leaky_relu(x, negative_slope=0.2):
    return torch.nn.functional.leaky_relu(floats(x), negative_slope)


def gelu(x, approximate=True):
    x = floats(x)
    return torch.nn.functional.gelu(x, approximate="tanh") if approximate else x * normal_cdf(x)


# Attention.

_attention = torch.nn.functional.scaled_dot_product_attention


def attention_forward(query, key, value, bias, mask, scale, is_causal, flash_attention=None):
    if mask is not None or bias is not None:
        seen = torch.ones((query.shape[1], key.shape[1]), dtype=torch.bool, device=query.device)
        seen, is_causal = (torch.tril(seen) if is_causal else seen), False
        mask = seen if mask is None else seen & mask.to(torch.bool)
        if bias is not None:
            mask = torch.where(mask, bias, -torch.inf)
    inputs = [x.transpose(1, 2) for x in (query, key, value)]
    options = {"attn_mask": mask, "is_causal": is_causal, "scale": scale}
    options["enable_gqa"] = key.shape[2] != query.shape[2]
    if flash_attention is None and torch.is_grad_enabled():
        if torch.compiler.is_compiling() and not transforms.transforming():
            result = _attention(*inputs, **options)  # no compiled function has a second derivative
        elif mask is None and _private.is_fused_on_cpu(*inputs, options) and not transforms.active():
            result = _Fused.apply(*inputs, options)  # with a mask its gradients would be NaN where nothing is seen
        else:
            result = _by_formula(*inputs, options)
    elif flash_attention is False:
        result = _by_formula(*inputs, options)
    else:
        kinds = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION]
        with sdpa_kernel([SDPBackend.MATH, *kinds]):
            result = _attention(*inputs, **options)
    return result.transpose(1, 2)


def _by_formula(query, key, value, options: dict):
    with sdpa_kernel([SDPBackend.MATH]):
        return _attention(query, key, value, **options)


class _Fused(torch.autograd.Function):
    """The fused kernel, which has a first derivative; where a second one is wanted the first is the formula's."""

    @staticmethod
    def forward(ctx, query, key, value, options):
        result, *others = _private.fused_attention(query, key, value, options)
        ctx.options = options
        ctx.save_for_backward(query, key, value, result, *others)
        return result

    @staticmethod
    def backward(ctx, upstream):
        query, key, value, result, *others = ctx.saved_tensors
        if not torch.is_grad_enabled():
            return *_private.fused_gradients(upstream, query, key, value, result, others, ctx.options), None
        inputs = [x.view_as(x) if x.requires_grad else x for x in (query, key, value)]
        wanted = [x for x in inputs if x.requires_grad]
        found = iter(torch.autograd.grad(_by_formula(*inputs, ctx.options), wanted, upstream, create_graph=True))
        return *(next(found) if x.requires_grad else None for x in inputs), None


# Connectionist temporal classification.


def ctc_beams(inputs, sequence_lengths, beam_width, top_paths, mask_index):
    found = _numpy.ctc_beams(to_numpy(inputs), to_numpy(sequence_lengths), beam_width, top_paths, mask_index)
    labels, scores = (torch.from_numpy(x).to(inputs.device) for x in found)
    return labels, scores.to(inputs.dtype)
