"""Elementwise ops that every backend has, family by family: arithmetic, exponentials, trigonometry, comparisons."""

from __future__ import annotations

from math import inf

from ..annotations import Integer, Operand, Tensor
from ._checks import check_real
from ._dispatch import alias, op

__family__ = """Arithmetic.

Elementwise: the operands broadcast, dtypes promote, and the gradient of a broadcast
operand is summed over the dimensions along which it was repeated.

See Also:
    :func:`power` and other powers, :func:`maximum`, :func:`bitwise_and` and :func:`gcd` for whole numbers,
    :func:`matmul`.
"""


@op(elementwise=True, linear=("x1", "x2"), exact=True)
def add(x1: Operand, x2: Operand) -> Tensor:
    """``x1 + x2``, elementwise.

    Gradient:
        1 and 1, summed over broadcast dimensions.

    Examples:
        >>> print(ops.add(1.5, 2.0), *gradops.grad(ops.add, argnums=(0, 1))(1.5, 2.0))
        3.5 1.0 1.0
    """
    ...


@op(elementwise=True, linear=("x1", "x2"), exact=True)
def subtract(x1: Operand, x2: Operand) -> Tensor:
    """``x1 - x2``, elementwise.

    Raises:
        ShapeError: shapes that do not broadcast.
        ArgumentTypeError: two bools, as in NumPy.

    Gradient:
        1 and -1, summed over broadcast dimensions.

    Examples:
        >>> print(ops.subtract(1.5, 2.0), *gradops.grad(ops.subtract, argnums=(0, 1))(1.5, 2.0))
        -0.5 1.0 -1.0
    """
    ...


@op(elementwise=True, multilinear=("x1", "x2"), exact=True)
def multiply(x1: Operand, x2: Operand) -> Tensor:
    """``x1 * x2``, elementwise.

    Gradient:
        ``x2`` and ``x1``, summed over broadcast dimensions.

    Examples:
        >>> print(ops.multiply(1.5, 2.0), *gradops.grad(ops.multiply, argnums=(0, 1))(1.5, 2.0))
        3.0 2.0 1.5
    """
    ...


@op(elementwise=True, linear=("x1",), exact=True)
def divide(x1: Operand, x2: Operand) -> Tensor:
    """``x1 / x2``, elementwise.

    Returns:
        A tensor of the broadcast shape, in the operands' promoted dtype; integers give ``floatx``.

    Gradient:
        ``1 / x2`` and ``-x1 / x2**2``, summed over broadcast dimensions.

    Examples:
        >>> print(ops.true_divide(1.5, 2.0), *gradops.grad(ops.true_divide, argnums=(0, 1))(1.5, 2.0))
        0.75 0.5 -0.375

    See Also:
        :func:`fmod`, :func:`multiply`, :func:`floor_divide`.
    """
    ...


true_divide = alias("true_divide", divide)


@op(check=check_real, elementwise=True, steps=True)
def floor_divide(x1: Operand, x2: Operand) -> Tensor:
    """``floor(x1 / x2)``, elementwise.

    Raises:
        ShapeError: shapes that do not broadcast.
        ArgumentError: a whole number divided by 0 (in JAX's traces the library's number).
        ArgumentTypeError: complex operands.

    Gradient:
        0, as in PyTorch.

    Examples:
        >>> print(ops.floor_divide(5.0, 2.0), *gradops.grad(ops.floor_divide, argnums=(0, 1))(5.0, 2.0))
        2.0 0.0 0.0

    See Also:
        :func:`fmod`, :func:`divide_no_nan`, :func:`true_divide`.
    """
    ...


@op(check=check_real, elementwise=True)
def mod(x1: Operand, x2: Operand) -> Tensor:
    """``x1 - floor(x1 / x2) * x2``, the remainder with the sign of ``x2``, elementwise.

    Raises:
        ShapeError: shapes that do not broadcast.
        ArgumentError: a whole number divided by 0 (in JAX's traces the library's number).
        ArgumentTypeError: complex operands.

    Gradient:
        1 and ``-floor(x1 / x2)``, summed over broadcast dimensions.

    Examples:
        >>> print(ops.mod(5.0, 2.0), *gradops.grad(ops.mod, argnums=(0, 1))(5.0, 2.0))
        1.0 1.0 -2.0

    See Also:
        :func:`divide_no_nan`, :func:`negative`, :func:`floor_divide`.
    """
    ...


@op(elementwise=True, linear=("x",), exact=True)
def negative(x: Tensor) -> Tensor:
    """``-x`` of each element.

    Returns:
        A tensor of ``x``'s shape and dtype.

    Gradient:
        -1.

    Examples:
        >>> print(ops.negative(0.5), gradops.grad(ops.negative)(0.5))
        -0.5 -1.0

    See Also:
        :func:`mod`, :func:`divide_no_nan`, :func:`floor_divide`.
    """
    ...


__family__ = """Powers and roots.

Elementwise. Roots of negative real numbers are NaN, except the cube root.

See Also:
    :func:`exp`, :func:`norm`, :func:`cholesky` for a root of a matrix, :func:`expm`.
"""


@op(elementwise=True)
def power(x1: Operand, x2: Operand) -> Tensor:
    """``x1**x2``, elementwise.

    Raises:
        ShapeError: shapes that do not broadcast.
        ArgumentError: a whole number to a negative power (in JAX's traces the library's number).

    Gradient:
        ``x2 * x1**(x2 - 1)`` and ``log(x1) * x1**x2``; where ``x1`` is 0 the second is 0. Summed over broadcast
        dimensions.

    Examples:
        >>> print(ops.power(1.5, 2.0))
        2.25
        >>> print(*(g.round(4) for g in gradops.grad(ops.power, argnums=(0, 1))(1.5, 2.0)))
        3.0 0.9123

    See Also:
        :func:`hypot`, :func:`square`, :func:`rsqrt`.
    """
    ...


@op(elementwise=True, exact=True)
def square(x: Tensor) -> Tensor:
    """``x**2`` of each element.

    Returns:
        A tensor of ``x``'s shape and dtype; of bools int64.

    Gradient:
        ``2 * x``.

    Examples:
        >>> print(ops.square(3.0), gradops.grad(ops.square)(3.0))
        9.0 6.0

    See Also:
        :func:`power`, :func:`sqrt`, :func:`hypot`.
    """
    ...


@op(elementwise=True, domain=(0, inf), exact=True)
def sqrt(x: Tensor) -> Tensor:
    """Square root of each element.

    Gradient:
        ``1 / (2 * sqrt(x))``; infinite at 0, as in the frameworks.

    Examples:
        >>> print(ops.sqrt(4.0), gradops.grad(ops.sqrt)(4.0))
        2.0 0.25
    """
    ...


@op(elementwise=True)
def reciprocal(x: Tensor) -> Tensor:
    """``1 / x`` of each element.

    Gradient:
        ``-1 / x**2``.

    Examples:
        >>> print(ops.reciprocal(0.5), gradops.grad(ops.reciprocal)(0.5))
        2.0 -4.0

    See Also:
        :func:`sqrt`, :func:`square`, :func:`power`.
    """
    ...


__family__ = """Exponentials and logarithms.

Elementwise. ``expm1`` and ``log1p`` keep the digits that ``exp(x) - 1`` and ``log(1 + x)`` lose near 0. The
logarithm of 0 is -inf, that of a negative real number NaN.

See Also:
    :func:`logsumexp` along axes, :func:`softmax`, :func:`sigmoid`, :func:`softplus`, :func:`sinh`, :func:`power`.
"""


@op(elementwise=True)
def exp(x: Tensor) -> Tensor:
    """``e**x`` of each element.

    Gradient:
        ``exp(x)``.

    Examples:
        >>> print(gradops.grad(ops.exp)(0.0), gradops.grad(gradops.grad(ops.exp))(0.0))
        1.0 1.0

    See Also:
        :func:`expm1`, :func:`log`, :func:`logsumexp`.
    """
    ...


@op(elementwise=True)
def exp2(x: Tensor) -> Tensor:
    """``2**x`` of each element.

    Gradient:
        ``log(2) * exp2(x)``.

    Examples:
        >>> print(ops.exp2(3.0), gradops.grad(ops.exp2)(3.0).round(4))
        8.0 5.5452

    See Also:
        :func:`exp`, :func:`expm1`, :func:`logaddexp2`.
    """
    ...


@op(elementwise=True)
def expm1(x: Tensor) -> Tensor:
    """``exp(x) - 1``, accurate near 0, of each element.

    Gradient:
        ``exp(x)``.

    Examples:
        >>> print(ops.expm1(0.5).round(4), gradops.grad(ops.expm1)(0.5).round(4))
        0.6487 1.6487
    """
    ...


@op(elementwise=True, domain=(0, inf))
def log(x: Tensor) -> Tensor:
    """Natural logarithm of each element.

    Gradient:
        ``1 / x``.

    Examples:
        >>> print(ops.log(2.0).round(4), gradops.grad(ops.log)(2.0))
        0.6931 0.5
    """
    ...


@op(elementwise=True, domain=(0, inf))
def log2(x: Tensor) -> Tensor:
    """Logarithm to base 2 of each element.

    Gradient:
        ``1 / (x * log(2))``.

    Examples:
        >>> print(ops.log2(8.0), gradops.grad(ops.log2)(8.0).round(4))
        3.0 0.1803
    """
    ...


@op(elementwise=True, domain=(0, inf))
def log10(x: Tensor) -> Tensor:
    """Logarithm to base 10 of each element.

    Gradient:
        ``1 / (x * log(10))``.

    Examples:
        >>> print(ops.log10(100.0), gradops.grad(ops.log10)(100.0).round(4))
        2.0 0.0043
    """
    ...


@op(elementwise=True, domain=(-1, inf))
def log1p(x: Tensor) -> Tensor:
    """``log(1 + x)``, accurate near 0, of each element.

    Gradient:
        ``1 / (1 + x)``.

    Examples:
        >>> print(ops.log1p(0.5).round(4), gradops.grad(ops.log1p)(0.5).round(4))
        0.4055 0.6667

    See Also:
        :func:`log10`, :func:`log2`, :func:`log`.
    """
    ...


__family__ = """Trigonometric functions.

Elementwise; angles are in radians. ``arcsin`` and ``arccos`` are NaN outside of [-1, 1], and their derivatives are
infinite at the ends.

See Also:
    :func:`sinh`, :func:`angle` of complex numbers, :func:`polar`, :func:`fft`.
"""


@op(elementwise=True)
def sin(x: Tensor) -> Tensor:
    """Sine of each element.

    Gradient:
        ``cos(x)``.

    Examples:
        >>> print(ops.sin(0.5).round(4), gradops.grad(ops.sin)(0.5).round(4))
        0.4794 0.8776

    See Also:
        :func:`sinc`, :func:`cos`, :func:`rad2deg`.
    """
    ...


@op(elementwise=True)
def cos(x: Tensor) -> Tensor:
    """Cosine of each element.

    Gradient:
        ``-sin(x)``.

    Examples:
        >>> print(ops.cos(0.5).round(4), gradops.grad(ops.cos)(0.5).round(4))
        0.8776 -0.4794

    See Also:
        :func:`sin`, :func:`tan`, :func:`sinc`.
    """
    ...


@op(elementwise=True)
def tan(x: Tensor) -> Tensor:
    """Tangent of each element.

    Gradient:
        ``1 + tan(x)**2``.

    Examples:
        >>> print(ops.tan(0.5).round(4), gradops.grad(ops.tan)(0.5).round(4))
        0.5463 1.2984
    """
    ...


@op(elementwise=True, domain=(-1, 1))
def arcsin(x: Tensor) -> Tensor:
    """Inverse sine of each element.

    Gradient:
        ``1 / sqrt(1 - x**2)``.

    Examples:
        >>> print(ops.arcsin(0.5).round(4), gradops.grad(ops.arcsin)(0.5).round(4))
        0.5236 1.1547
    """
    ...


@op(elementwise=True, domain=(-1, 1))
def arccos(x: Tensor) -> Tensor:
    """Inverse cosine of each element.

    Gradient:
        ``-1 / sqrt(1 - x**2)``.

    Examples:
        >>> print(ops.arccos(0.5).round(4), gradops.grad(ops.arccos)(0.5).round(4))
        1.0472 -1.1547
    """
    ...


@op(elementwise=True)
def arctan(x: Tensor) -> Tensor:
    """Inverse tangent of each element.

    Gradient:
        ``1 / (1 + x**2)``.

    Examples:
        >>> print(ops.arctan(0.5).round(4), gradops.grad(ops.arctan)(0.5))
        0.4636 0.8
    """
    ...


@op(check=check_real, elementwise=True)
def arctan2(x1: Operand, x2: Operand) -> Tensor:
    """The angle of the point (``x2``, ``x1``) in radians, in ``[-pi, pi]``, elementwise.

    Gradient:
        ``x2 / (x1**2 + x2**2)`` and ``-x1 / (x1**2 + x2**2)``, summed over broadcast dimensions.

    Examples:
        >>> print(ops.arctan2(0.0, 2.0), *gradops.grad(ops.arctan2, argnums=(0, 1))(0.0, 2.0))
        0.0 0.5 -0.0

    See Also:
        :func:`arctan`, :func:`arccos`, :func:`arcsin`.
    """
    ...


__family__ = """Hyperbolic functions.

Elementwise. ``arccosh`` is NaN below 1, ``arctanh`` outside of [-1, 1]; their derivatives are infinite at the ends.

See Also:
    :func:`exp`, :func:`sin`, :func:`hard_tanh`, :func:`softsign`.
"""


@op(elementwise=True)
def sinh(x: Tensor) -> Tensor:
    """Hyperbolic sine of each element.

    Gradient:
        ``cosh(x)``.

    Examples:
        >>> print(ops.sinh(0.5).round(4), gradops.grad(ops.sinh)(0.5).round(4))
        0.5211 1.1276
    """
    ...


@op(elementwise=True)
def cosh(x: Tensor) -> Tensor:
    """Hyperbolic cosine of each element.

    Gradient:
        ``sinh(x)``.

    Examples:
        >>> print(ops.cosh(0.5).round(4), gradops.grad(ops.cosh)(0.5).round(4))
        1.1276 0.5211
    """
    ...


@op(elementwise=True)
def tanh(x: Tensor) -> Tensor:
    """Hyperbolic tangent of each element.

    Gradient:
        ``1 - tanh(x)**2``.

    Examples:
        >>> print(ops.tanh(0.5).round(4), gradops.grad(ops.tanh)(0.5).round(4))
        0.4621 0.7864
    """
    ...


@op(elementwise=True)
def arcsinh(x: Tensor) -> Tensor:
    """Inverse hyperbolic sine of each element.

    Gradient:
        ``1 / sqrt(x**2 + 1)``.

    Examples:
        >>> print(ops.arcsinh(0.5).round(4), gradops.grad(ops.arcsinh)(0.5).round(4))
        0.4812 0.8944
    """
    ...


@op(elementwise=True, domain=(1, inf))
def arccosh(x: Tensor) -> Tensor:
    """Inverse hyperbolic cosine of each element.

    Gradient:
        ``1 / sqrt(x**2 - 1)``.

    Examples:
        >>> print(ops.arccosh(2.0).round(4), gradops.grad(ops.arccosh)(2.0).round(4))
        1.317 0.5774
    """
    ...


@op(elementwise=True, domain=(-1, 1))
def arctanh(x: Tensor) -> Tensor:
    """Inverse hyperbolic tangent of each element.

    Gradient:
        ``1 / (1 - x**2)``.

    Examples:
        >>> print(ops.arctanh(0.5).round(4), gradops.grad(ops.arctanh)(0.5).round(4))
        0.5493 1.3333
    """
    ...


__family__ = """Special functions.

Elementwise, of real numbers.

See Also:
    :func:`exp`, :func:`gelu`, :func:`sinc`, :func:`kaiser`, which is made of :func:`i0`.
"""


@op(check=check_real, elementwise=True)
def erf(x: Tensor) -> Tensor:
    """Error function of each element: ``2 / sqrt(pi)`` times the integral of ``exp(-t**2)`` from 0 to ``x``.

    Gradient:
        ``2 / sqrt(pi) * exp(-x**2)``.

    Examples:
        >>> print(ops.erf(0.5).round(4), gradops.grad(ops.erf)(0.5).round(4))
        0.5205 0.8788

    See Also:
        :func:`gammaincc`, :func:`gammainc`, :func:`i0`.
    """
    ...


__family__ = """Absolute values and signs.

Elementwise. The derivative at 0 is 0, the middle of the subgradients.

See Also:
    :func:`relu`, :func:`norm`, :func:`angle`, :func:`maximum`.
"""


@op(elementwise=True, exact=True)
def abs(x: Tensor) -> Tensor:
    """Absolute value (for complex numbers the modulus) of each element.

    Returns:
        A tensor of ``x``'s shape and dtype; real for a complex ``x``.

    Gradient:
        ``sign(x)``, so 0 at 0.

    Examples:
        The derivative at 0 is 0:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> print(gradops.grad(lambda x: ops.sum(ops.abs(x)))(np.array([-2.0, 0.0, 2.0])))
        [-1.  0.  1.]

    See Also:
        :func:`sign`, :func:`norm`.
    """
    ...


absolute = alias("absolute", abs)


@op(public=False, elementwise=True, steps=True, exact=True)
def real_sign(x: Tensor) -> Tensor:
    """-1, 0 or 1 of each real element; its gradient is 0."""
    ...


__family__ = """Complex numbers.

The gradient of a real loss L by a complex tensor is dL/dRe + i dL/dIm, as in PyTorch and TensorFlow.

See Also:
    :func:`abs`, :func:`isreal`, :func:`fft`, :func:`vdot`.
"""


@op(elementwise=True, linear=("x",), exact=True)
def conj(x: Tensor) -> Tensor:
    """Complex conjugate of each element.

    Returns:
        A tensor of ``x``'s shape and dtype.

    Gradient:
        The conjugate of the upstream gradient.

    Examples:
        >>> z = np.array([1.0, 2.0])
        >>> print(ops.conjugate(ops.view_as_complex(z)))
        (1-2j)
        >>> print(gradops.grad(lambda z: ops.imag(ops.conjugate(ops.view_as_complex(z))))(z))
        [ 0. -1.]

    See Also:
        :func:`real`, :func:`polar`, :func:`imag`.
    """
    ...


conjugate = alias("conjugate", conj)


@op(elementwise=True, linear=("x",), view="constant", exact=True)
def real(x: Tensor) -> Tensor:
    """Real part of each element.

    Returns:
        A real tensor of ``x``'s shape.

    Gradient:
        The upstream gradient, as the real part.

    Examples:
        >>> z = np.array([1.0, 2.0])
        >>> print(ops.real(ops.view_as_complex(z)), gradops.grad(lambda z: ops.real(ops.view_as_complex(z)))(z))
        1.0 [1. 0.]

    See Also:
        :func:`conjugate`, :func:`imag`, :func:`angle`.
    """
    ...


@op(elementwise=True, linear=("x",), view="constant", exact=True)
def imag(x: Tensor) -> Tensor:
    """Imaginary part of each element.

    Returns:
        A real tensor of ``x``'s shape; 0 for a real ``x``.

    Gradient:
        ``1j`` times the upstream gradient.

    Examples:
        >>> z = np.array([1.0, 2.0])
        >>> print(ops.imag(ops.view_as_complex(z)), gradops.grad(lambda z: ops.imag(ops.view_as_complex(z)))(z))
        2.0 [0. 1.]

    See Also:
        :func:`real`, :func:`angle`, :func:`conjugate`.
    """
    ...


@op(elementwise=True)
def angle(x: Tensor) -> Tensor:
    """The argument of each complex element, in radians; 0 or pi for real ones.

    Returns:
        A real tensor of ``x``'s shape.

    Gradient:
        ``1j * x / abs(x)**2`` for complex ``x``; 0 for real ones.

    Examples:
        >>> z = np.array([1.0, 1.0])
        >>> print(ops.angle(ops.view_as_complex(z)).round(4))
        0.7854
        >>> print(gradops.grad(lambda z: ops.angle(ops.view_as_complex(z)))(z).round(4))
        [-0.5  0.5]

    See Also:
        :func:`imag`, :func:`real`, :func:`conjugate`.
    """
    ...


__family__ = """Rounding and representation.

Elementwise. Rounded numbers are constant between jumps: their derivative is 0. To let the upstream gradient
through instead (a straight-through estimator), see ``custom_gradient``.

See Also:
    :func:`cast`, :func:`clip`, :func:`floor_divide`, :func:`sign`.
"""


@op(check=check_real, elementwise=True, steps=True, exact=True)
def floor(x: Tensor) -> Tensor:
    """The largest whole number not above each element.

    Returns:
        A tensor of ``x``'s shape and dtype.

    Gradient:
        0, as in PyTorch.

    Examples:
        >>> print(ops.floor(0.5), gradops.grad(ops.floor)(0.5))
        0.0 0.0

    See Also:
        :func:`nextafter`, :func:`ceil`, :func:`ldexp`.
    """
    ...


@op(check=check_real, elementwise=True, steps=True, exact=True)
def ceil(x: Tensor) -> Tensor:
    """The smallest whole number not below each element.

    Returns:
        A tensor of ``x``'s shape and dtype.

    Gradient:
        0, as in PyTorch.

    Examples:
        >>> print(ops.ceil(0.5), gradops.grad(ops.ceil)(0.5))
        1.0 0.0

    See Also:
        :func:`floor`, :func:`trunc`, :func:`nextafter`.
    """
    ...


@op(check=check_real, elementwise=True, steps=True, exact=True)
def trunc(x: Tensor) -> Tensor:
    """The whole part of each element: rounded towards 0.

    Returns:
        A tensor of ``x``'s shape and dtype.

    Gradient:
        0, as in PyTorch.

    Examples:
        >>> print(ops.trunc(-1.5), gradops.grad(ops.trunc)(-1.5))
        -1.0 0.0
    """
    ...


@op(elementwise=True, steps=True, exact=True)
def round(x: Tensor, decimals: Integer = 0) -> Tensor:
    """Each element rounded to ``decimals`` places, halves to even.

    Args:
        decimals: the number of decimal places.

    Returns:
        A tensor of ``x``'s shape and dtype.

    Gradient:
        0, as in PyTorch.

    Examples:
        >>> print(ops.round(2.4), gradops.grad(ops.round)(2.4))
        2.0 0.0

    See Also:
        :func:`trunc`, :func:`ceil`, :func:`floor`.
    """
    ...


__family__ = """Extremes of two tensors.

Elementwise and broadcast. At a tie each operand gets half of the upstream gradient.

See Also:
    :func:`max` and :func:`min` over axes, :func:`clip`, :func:`where`, :func:`logaddexp`, which is smooth.
"""


@op(check=check_real, elementwise=True, exact=True)
def maximum(x1: Operand, x2: Operand) -> Tensor:
    """The larger of two elements, elementwise. NaN wins.

    Gradient:
        The upstream gradient to the larger operand, half to each at a tie, summed over broadcast dimensions.

    Examples:
        >>> print(ops.maximum(1.5, 2.0), *gradops.grad(ops.maximum, argnums=(0, 1))(1.5, 2.0))
        2.0 0.0 1.0
    """
    ...


@op(check=check_real, elementwise=True, exact=True)
def minimum(x1: Operand, x2: Operand) -> Tensor:
    """The smaller of two elements, elementwise. NaN wins.

    Gradient:
        The upstream gradient to the smaller operand, half to each at a tie, summed over broadcast dimensions.

    Examples:
        >>> print(ops.minimum(1.5, 2.0), *gradops.grad(ops.minimum, argnums=(0, 1))(1.5, 2.0))
        1.5 1.0 0.0
    """
    ...


__family__ = """Comparison.

Elementwise and broadcast, except :func:`allclose`. A truth value has no gradient: a loss gets its gradient through the
values that a comparison selects.

See Also:
    :func:`where`, :func:`logical_and`, :func:`isnan`, :func:`sort`.
"""


@op(differentiable=False, elementwise=True, exact=True)
def equal(x1: Operand, x2: Operand) -> Tensor:
    """``x1 == x2``, elementwise."""
    ...


@op(differentiable=False, elementwise=True, exact=True)
def not_equal(x1: Operand, x2: Operand) -> Tensor:
    """``x1 != x2``, elementwise."""
    ...


@op(differentiable=False, check=check_real, elementwise=True, exact=True)
def less(x1: Operand, x2: Operand) -> Tensor:
    """``x1 < x2``, elementwise."""
    ...


@op(differentiable=False, check=check_real, elementwise=True, exact=True)
def less_equal(x1: Operand, x2: Operand) -> Tensor:
    """``x1 <= x2``, elementwise."""
    ...


@op(differentiable=False, check=check_real, elementwise=True, exact=True)
def greater(x1: Operand, x2: Operand) -> Tensor:
    """``x1 > x2``, elementwise."""
    ...


@op(differentiable=False, check=check_real, elementwise=True, exact=True)
def greater_equal(x1: Operand, x2: Operand) -> Tensor:
    """``x1 >= x2``, elementwise."""
    ...


__family__ = """Logical operations.

Elementwise and broadcast. Elements that are not 0 count as true, NaN among them.

See Also:
    :func:`equal`, :func:`all`, :func:`bitwise_and`, :func:`where`.
"""


@op(differentiable=False, elementwise=True, exact=True, conditions=("x1", "x2"))
def logical_and(x1: Tensor, x2: Tensor) -> Tensor:
    """Logical and of truth values, elementwise."""
    ...


@op(differentiable=False, elementwise=True, exact=True, conditions=("x1", "x2"))
def logical_or(x1: Tensor, x2: Tensor) -> Tensor:
    """Logical or of truth values, elementwise."""
    ...


@op(differentiable=False, elementwise=True, exact=True, conditions=("x1", "x2"))
def logical_xor(x1: Tensor, x2: Tensor) -> Tensor:
    """Logical exclusive or of truth values, elementwise."""
    ...


@op(differentiable=False, elementwise=True, exact=True, conditions=("x",))
def logical_not(x: Tensor) -> Tensor:
    """True for each element that is 0 or False."""
    ...


__family__ = """Tests of numbers.

A truth value for each element. A loss gets its gradient through the values that a test selects.

See Also:
    :func:`nan_to_num`, :func:`where`, :func:`nansum`, :func:`equal`.
"""


@op(differentiable=False, elementwise=True, exact=True)
def isnan(x: Tensor) -> Tensor:
    """True for NaN, for each element."""
    ...


@op(differentiable=False, elementwise=True, exact=True)
def isfinite(x: Tensor) -> Tensor:
    """True for numbers that are neither infinite nor NaN, for each element."""
    ...


@op(differentiable=False, elementwise=True, exact=True)
def isinf(x: Tensor) -> Tensor:
    """True for infinities, for each element."""
    ...
