"""PyTorch kernels: comparison of floating numbers."""

import torch

signbit = torch.signbit
