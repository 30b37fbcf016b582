"""Derivatives: activations."""

from ...ops import cast, dtype, exp, greater, multiply, sigmoid, subtract, sum
from ..record import derivative

derivative("sigmoid", x=lambda g, y: g * (y * (1 - y)))
derivative("relu", x=lambda g, x: multiply(g, cast(greater(x, 0), dtype(g))))
derivative("softplus", x=lambda g, x: multiply(g, sigmoid(x)))
derivative("softmax", x=lambda g, y, axis: y * (g - sum(g * y, axis, True)))
derivative("log_softmax", x=lambda g, y, axis: subtract(g, multiply(exp(y), sum(g, axis, True))))
