"""Linear functions of complex tensors, part by part."""

from __future__ import annotations

from ._compose import is_complex
from .elementwise import add, imag, multiply, real


def by_parts(linear, x):
    """A linear function of ``x``, of complex numbers part by part."""
    return add(linear(real(x)), multiply(linear(imag(x)), 1j)) if is_complex(x) else linear(x)
