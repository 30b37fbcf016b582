"""PyTorch kernels: attention."""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel


def attention_forward(query, key, value, bias, mask, scale, is_causal, flash_attention=None):
    if mask is not None or bias is not None:
        seen = torch.ones((query.shape[1], key.shape[1]), dtype=torch.bool, device=query.device)
        seen, is_causal = (torch.tril(seen) if is_causal else seen), False
        mask = seen if mask is None else seen & mask.to(torch.bool)
        if bias is not None:
            mask = torch.where(mask, bias, -torch.inf)
    arguments = [x.transpose(1, 2) for x in (query, key, value)]
    # The fused kernels have no second derivative.
    fused = flash_attention if flash_attention is not None else not torch.is_grad_enabled()
    kinds = [SDPBackend.MATH]
    if fused:
        kinds += [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION]
    with sdpa_kernel(kinds):
        result = torch.nn.functional.scaled_dot_product_attention(
            *arguments, attn_mask=mask, is_causal=is_causal, scale=scale, enable_gqa=key.shape[2] != query.shape[2]
        )
    return result.transpose(1, 2)
