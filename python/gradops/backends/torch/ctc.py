"""PyTorch kernels: connectionist temporal classification."""

import torch

from ..numpy import ctc as _numpy
from .base import to_numpy


def ctc_beams(inputs, sequence_lengths, beam_width, top_paths, mask_index):
    found = _numpy.ctc_beams(to_numpy(inputs), to_numpy(sequence_lengths), beam_width, top_paths, mask_index)
    labels, scores = (torch.from_numpy(x).to(inputs.device) for x in found)
    return labels, scores.to(inputs.dtype)
