"""Complex numbers."""

from __future__ import annotations

from ..annotations import Operand, Tensor
from ..errors import ArgumentTypeError, ShapeError
from . import _checks
from ._compose import as_float, is_complex, promoted
from ._dispatch import op
from .conversion import shape
from .elementwise import cos, imag, multiply, real, sin
from .joining import stack
from .properties import fits


def _check_pairs(op, x) -> None:
    _checks.check_rank(op.name, x, 1)
    if not fits(shape(x)[-1:], (2,)):
        raise ShapeError(
            f"`{op.name}`: the last size of `x` must be 2 (real and imaginary); got {{x}}.",
            argument="x",
            x=_checks.describe(x),
        )
    if is_complex(x):
        raise ArgumentTypeError(f"`{op.name}`: `x` must be real; got {{x}}.", argument="x", x=_checks.describe(x))


@op(check=_check_pairs, linear=("x",))
def view_as_complex(x: Tensor) -> Tensor:
    """Complex numbers of pairs of real ones.

    Args:
        x: a real tensor (..., 2): real and imaginary parts.

    Returns:
        A complex tensor without the last dimension: complex128 of float64 and of integers where ``floatx`` is
        float64, else complex64.

    Raises:
        ShapeError: a last dimension of another size than 2.
        ArgumentTypeError: a complex tensor.

    Gradient:
        The real and imaginary part of the upstream gradient.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.view_as_complex(x), gradops.grad(lambda x: ops.imag(ops.view_as_complex(x) ** 2))(x))
        (1+3j) [6. 2.]

    See Also:
        :func:`view_as_real`, :func:`polar`, :func:`conj`.
    """
    ...


@op(linear=("x",))
def view_as_real(x: Tensor) -> Tensor:
    """Real and imaginary parts of complex numbers, as pairs.

    Args:
        x: a complex tensor; of a real one the imaginary parts are 0.

    Returns:
        A real tensor of shape (..., 2).

    Gradient:
        The complex number of the upstream gradient's pair.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.view_as_real(ops.view_as_complex(x)))
        [1. 3.]
        >>> print(gradops.grad(lambda x: ops.sum(ops.view_as_real(ops.view_as_complex(x) ** 2)))(x))
        [ 8. -4.]

    See Also:
        :func:`view_as_complex`, :func:`polar`, :func:`conj`.
    """
    x = as_float(x)
    return stack([real(x), imag(x)], -1)


@op(elementwise=True)
def polar(abs_: Operand, angle: Operand) -> Tensor:
    """Complex numbers of absolute value and angle: ``abs_ * (cos(angle) + i sin(angle))``.

    Args:
        abs_: absolute values; real.
        angle: angles in radians; real.

    Returns:
        A complex tensor of the broadcast shape, of the operands' precision, at least complex64.

    Raises:
        ShapeError: shapes that do not broadcast.
        ArgumentTypeError: complex operands.

    Gradient:
        Of the real loss: ``Re(g conj(y)) / abs_`` and ``Im(g conj(y))``.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> r = np.array(2.0)
        >>> print(ops.polar(r, 0.0), gradops.grad(lambda r: ops.real(ops.polar(r, 1.0)))(r).round(4))
        (2+0j) 0.5403

    See Also:
        :func:`view_as_real`, :func:`conj`, :func:`view_as_complex`.
    """
    abs_, angle = promoted(abs_, angle, floating=True)
    if is_complex(abs_):
        raise ArgumentTypeError("`polar`: `abs_` and `angle` must be real.", argument="abs_")
    return to_complex(multiply(abs_, cos(angle)), multiply(abs_, sin(angle)))


def to_complex(re, im):
    """The complex tensor of two real parts of one shape."""
    return view_as_complex(stack([re, im], -1))
