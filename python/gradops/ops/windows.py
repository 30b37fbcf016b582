"""Window functions.

Weights that fall off towards both ends, for signals and spectra.

See Also:
    :func:`stft`, :func:`fft`, :func:`sinc`, :func:`i0`.
"""

from __future__ import annotations

import numpy as np

from .. import backends, config
from ..annotations import Operand, Tensor
from ..backends import tracing
from ..errors import ArgumentError
from ._checks import describe, integer, known
from ._compose import beside, promoted, wide
from ._dispatch import op
from ._docstrings import family
from ._structures import as_tensor, owner_of
from .conversion import cast, dtype
from .elementwise import divide, multiply
from .special import i0


def _of_numbers(body):
    """Numbers go to the op as they are: a tensor's value is unknown where the op is traced."""
    body.of_numbers = True
    return body


def _window(op: str, x):
    """NumPy's window of that name, on the backend of its length where that is a tensor."""
    owner = backends.of(x) or config.default_backend()
    return owner.convert(_numpys(op, _points(op, x)), config.floatx(), x if backends.of(x) else None)


@tracing.constant
def _numpys(name: str, points: int) -> np.ndarray:
    return getattr(np, name)(points)


def _points(op: str, x) -> int:
    if isinstance(x, (int, float)):
        return integer(op, x, "x")
    values = known(x)
    if values is None or values.ndim:
        raise ArgumentError(f"`{op}`: `x` must be one known number; got {{given}}.", argument="x", given=describe(x))
    return integer(op, values.item(), "x")


window = family(
    {"x": "the number of points."},
    returns="A vector of ``floatx``, empty where ``x`` is below 1. It has no gradient.",
    raises="ArgumentTypeError: an ``x`` that is not a whole number.",
)


@op(differentiable=False)
@_of_numbers
@window
def bartlett(x: Operand) -> Tensor:
    """The triangular window, 0 at both ends."""
    return _window("bartlett", x)


@op(differentiable=False)
@_of_numbers
@window
def blackman(x: Operand) -> Tensor:
    """The Blackman window: ``0.42 - 0.5 * cos(2 * pi * n / (x - 1)) + 0.08 * cos(4 * pi * n / (x - 1))``."""
    return _window("blackman", x)


@op(differentiable=False)
@_of_numbers
@window
def hamming(x: Operand) -> Tensor:
    """The Hamming window: ``0.54 - 0.46 * cos(2 * pi * n / (x - 1))``."""
    return _window("hamming", x)


@op(differentiable=False)
@_of_numbers
@window
def hanning(x: Operand) -> Tensor:
    """The Hann window: ``0.5 - 0.5 * cos(2 * pi * n / (x - 1))``."""
    return _window("hanning", x)


@op
@_of_numbers
@window
def kaiser(x: Operand, beta: Operand) -> Tensor:
    """The Kaiser window: ``i0(beta * sqrt(1 - (2 * n / (x - 1) - 1)**2)) / i0(beta)``.

    Args:
        x: the number of points.
        beta: the steepness of its fall; 0 for a rectangle.

    Returns:
        A vector of ``beta``'s dtype, of ``floatx`` for a number, empty where ``x`` is below 1.

    Gradient:
        To ``beta``, through :func:`i0`, whose derivative is the Bessel function ``i1``.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> beta = np.array(2.0)
        >>> print(ops.kaiser(3, beta).round(4))
        [0.4387 1.     0.4387]
        >>> print(gradops.grad(lambda beta: ops.sum(ops.kaiser(3, beta)))(beta).round(4))
        -0.6122

    See Also:
        :func:`hanning`, :func:`hamming`, :func:`blackman`.
    """
    points = _points("kaiser", x)
    x = points if isinstance(x, int) else x  # a number, known also where this is traced
    owner = owner_of("kaiser", x, beta)
    beta = as_tensor("kaiser", beta, owner, "beta", x if backends.of(x) is owner else None)
    (beta,) = promoted(beta, floating=True)
    exact, _ = wide(beta)
    circle = beside(_circle(points), exact, config.floatx())
    return cast(divide(i0(multiply(circle, exact)), i0(exact)), dtype(beta))


@tracing.constant
def _circle(points: int) -> np.ndarray:
    """Half a circle over the points: ``sqrt(1 - t**2)`` for ``t`` from -1 to 1."""
    t = np.linspace(-1, 1, points) if points > 1 else np.zeros(max(points, 0))
    return np.sqrt(np.maximum(1 - t**2, 0))
