"""Derivatives: activations."""

import math

from ...ops import cast, divide, dtype, exp, greater, multiply, sigmoid, square, subtract, sum
from ..record import derivative

derivative("sigmoid", x=lambda g, y: g * (y * (1 - y)))
derivative("relu", x=lambda g, x: multiply(g, cast(greater(x, 0), dtype(g))))
derivative("softplus", x=lambda g, x: multiply(g, sigmoid(x)))
derivative(
    "normal_cdf", x=lambda g, x: multiply(g, multiply(exp(multiply(square(x), -0.5)), 1 / math.sqrt(2 * math.pi)))
)
derivative("softmax", x=lambda g, y, axis: y * (g - sum(g * y, axis, True)))
derivative("log_softmax", x=lambda g, y, axis: subtract(g, multiply(exp(y), sum(g, axis, True))))


def _sparsemax(g, y, axis):
    support = cast(greater(y, 0), dtype(g))
    mean = divide(sum(multiply(g, support), axis, True), sum(support, axis, True))
    return multiply(subtract(g, mean), support)


derivative("sparsemax", x=_sparsemax)
