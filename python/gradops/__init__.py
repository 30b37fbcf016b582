"""gradops: one gradient vocabulary, with one meaning, on NumPy, PyTorch, TensorFlow and JAX."""

from . import autodiff, config, ops
from .autodiff import Parameter, Variable

__version__ = "0.1.0"
__all__ = ["Parameter", "Variable", "autodiff", "config", "ops"]
