"""Derivatives: bounds and exceptions. All but these are composed of ops that have theirs."""

from ...ops import divide, multiply, negative, trunc, zeros_like
from ..record import derivative

derivative("fmod", x1=lambda g: g, x2=lambda g, x1, x2: negative(multiply(g, trunc(divide(x1, x2)))))
derivative("nextafter", x1=lambda g: zeros_like(g), x2=lambda g: zeros_like(g))
