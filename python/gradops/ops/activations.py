"""Activations: elementwise functions, and functions that normalise along an axis.

Kinks are written with ``where``, so that the derivative at a kink is the same on every backend: the derivative of the
flat side, or of the left side if neither is flat. Conditions select where the function differs from its argument, so
that NaN stays NaN.
"""

from __future__ import annotations

import math

from ..annotations import Axes, Axis, Tensor
from ..errors import Position, ShapeError
from ._checks import check_axis, check_rank, check_real
from ._compose import compute_in_single, floats, is_complex
from ._dispatch import alias, op
from .bounds import clip
from .conversion import dtype
from .creation import ones_like
from .elementwise import (
    abs,
    add,
    divide,
    equal,
    expm1,
    greater,
    greater_equal,
    less_equal,
    logical_and,
    logical_or,
    maximum,
    minimum,
    multiply,
    negative,
    square,
    subtract,
    tanh,
)
from .indexing import where
from .joining import split
from .properties import shape
from .reductions import cumsum, sum
from .reductions import max as _largest
from .shaping import flip
from .sorting import sort
from .special import hypot

_SELU_ALPHA = 1.6732632423543772
_SELU_SCALE = 1.0507009873554805
_ROOT_2_OVER_PI = 0.7978845608028654


__family__ = """Rectifiers.

Functions that are 0 or nearly 0 for negative elements, and the identity or nearly so for large ones. The derivative at
a kink is that of the flat side, or of the left side if neither is flat. NaN stays NaN.

See Also:
    :func:`sigmoid`, :func:`soft_shrink`, :func:`maximum`, :func:`softmax`.
"""


@op(check=check_real, elementwise=True, exact=True)
def relu(x: Tensor) -> Tensor:
    """The larger of each element and 0 (Nair and Hinton 2010).

    Returns:
        A tensor of ``x``'s shape and dtype.

    Gradient:
        1 where ``x`` is above 0, else 0 (also at 0).

    Examples:
        The gradient at 0 is 0:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> print(gradops.grad(lambda x: ops.sum(ops.relu(x)))(np.array([-1.0, 0.0, 2.0])))
        [0. 0. 1.]

    See Also:
        :func:`leaky_relu`, :func:`gelu`, :func:`softplus`.
    """
    ...


@op(check=check_real, elementwise=True)
def relu6(x: Tensor) -> Tensor:
    """Each element, at least 0 and at most 6 (Krizhevsky 2010).

    Returns:
        A tensor of ``x``'s shape and dtype; bools give int64.

    Gradient:
        1 between 0 and 6, else 0 (also at both).

    Examples:
        >>> print(ops.relu6(0.5), gradops.grad(ops.relu6)(0.5))
        0.5 1.0
    """
    return where(greater_equal(x, 6), 6, relu(x))


@op(check=check_real, elementwise=True)
def leaky_relu(x: Tensor, negative_slope: float = 0.2) -> Tensor:
    """Each element where positive, ``negative_slope`` times it elsewhere (Maas et al. 2013).

    Args:
        negative_slope: the slope below 0.

    Gradient:
        1 where ``x`` is above 0, else ``negative_slope`` (also at 0).

    Examples:
        >>> print(ops.leaky_relu(-0.5), gradops.grad(ops.leaky_relu)(-0.5))
        -0.1 0.2
    """
    return where(greater(x, 0), x, multiply(x, float(negative_slope)))


@op(elementwise=True)
def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """Each element where positive, ``alpha * (exp(x) - 1)`` elsewhere (Clevert et al. 2015).

    Args:
        alpha: minus the limit far below 0.

    Gradient:
        1 where ``x`` is above 0, else ``alpha * exp(x)``.

    Examples:
        >>> print(ops.elu(-0.5).round(4), gradops.grad(ops.elu)(-0.5).round(4))
        -0.3935 0.6065
    """
    above = greater(x, 0)
    return where(above, x, multiply(expm1(where(above, 0.0, x)), float(alpha)))


@op(elementwise=True)
def selu(x: Tensor) -> Tensor:
    """``elu`` with the slope and scale that keep mean 0 and variance 1 (Klambauer et al. 2017).

    Gradient:
        1.0507 where ``x`` is above 0, else ``1.7581 * exp(x)``.

    Examples:
        >>> print(ops.selu(-0.5).round(4), gradops.grad(ops.selu)(-0.5).round(4))
        -0.6918 1.0663
    """
    return multiply(elu(x, _SELU_ALPHA), _SELU_SCALE)


@op(elementwise=True)
def celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """Each element where positive, ``alpha * (exp(x / alpha) - 1)`` elsewhere (Barron 2017).

    Args:
        alpha: minus the limit far below 0.

    Gradient:
        1 where ``x`` is above 0, else ``exp(x / alpha)``: continuous for every ``alpha``.

    Examples:
        >>> print(ops.celu(-0.5).round(4), gradops.grad(ops.celu)(-0.5).round(4))
        -0.3935 0.6065
    """
    above = greater(x, 0)
    return where(above, x, multiply(expm1(divide(where(above, 0.0, x), float(alpha))), float(alpha)))


@op(elementwise=True)
def silu(x: Tensor) -> Tensor:
    """``x * sigmoid(x)`` of each element, also called swish (Elfwing et al. 2017).

    Gradient:
        ``s + y * (1 - s)`` with ``s = sigmoid(x)``.

    Examples:
        >>> print(ops.swish(0.5).round(4), gradops.grad(ops.swish)(0.5).round(4))
        0.3112 0.74

    See Also:
        :func:`gelu`, :func:`celu`, :func:`glu`.
    """
    low = x if is_complex(x) else maximum(x, -750.0)  # minus infinity times 0 would be NaN
    return multiply(low, sigmoid(low))


swish = alias("swish", silu)


@op(check=check_real, elementwise=True)
@compute_in_single
def gelu(x: Tensor, approximate: bool = True) -> Tensor:
    """``x`` times the standard normal distribution function of ``x`` (Hendrycks and Gimpel 2016).

    Args:
        approximate: use ``0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))``.

    Gradient:
        ``Phi(x) + x * phi(x)`` with the normal distribution function and density, or the approximation's derivative.

    Examples:
        >>> print(ops.gelu(0.5).round(4), gradops.grad(ops.gelu)(0.5).round(4))
        0.3457 0.8674

    See Also:
        :func:`swish`, :func:`glu`, :func:`softplus`.
    """
    low = maximum(x, -40.0)  # minus infinity times 0 would be NaN
    if not approximate:
        return multiply(low, normal_cdf(low))
    inner = minimum(low, 40.0)
    inner = multiply(inner, multiply(add(multiply(square(inner), 0.044715), 1), 2 * _ROOT_2_OVER_PI))
    return multiply(low, sigmoid(inner))  # 1 + tanh(inner / 2) would cancel for large negative x


@op(public=False, check=check_real, elementwise=True)
def normal_cdf(x: Tensor) -> Tensor:
    """The standard normal distribution function of each element, also accurate far below 0.

    Gradient:
        The standard normal density.
    """
    ...


@op
def glu(x: Tensor, axis: Axis = -1) -> Tensor:
    """The first half of ``x`` along an axis times the sigmoid of the second (Dauphin et al. 2016).

    Returns:
        A tensor with half the size along ``axis``.

    Raises:
        ShapeError: an odd size along ``axis``.

    Gradient:
        ``sigmoid(b)`` to the first half ``a``, ``a * s * (1 - s)`` with ``s = sigmoid(b)`` to the second half ``b``.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.glu(x).round(4), gradops.grad(lambda x: ops.sum(ops.glu(x)))(x).round(4))
        [0.9526] [0.9526 0.0452]

    See Also:
        :func:`gelu`, :func:`softplus`, :func:`swish`.
    """
    axis = check_axis("glu", axis, check_rank("glu", x, 1))
    if shape(x)[axis] % 2:
        raise ShapeError(
            f"`glu`: `x` must have an even size along axis {{axis}}; got {shape(x)[axis]}.",
            argument="x",
            axis=Position(axis),
        )
    first, second = split(x, 2, axis)
    return multiply(first, sigmoid(second))


@op(check=check_real, elementwise=True)
def softplus(x: Tensor) -> Tensor:
    """``log(1 + exp(x))`` of each element, without overflow (Dugas et al. 2000).

    Gradient:
        ``sigmoid(x)``.

    Examples:
        >>> print(ops.softplus(1000.0), gradops.grad(ops.softplus)(0.0))
        1000.0 0.5

    See Also:
        :func:`relu`, :func:`log_sigmoid`.
    """
    ...


@op(elementwise=True)
def squareplus(x: Tensor, b: float = 4) -> Tensor:
    """``(x + sqrt(x**2 + b)) / 2`` of each element, also accurate far below 0 (Barron 2021).

    Args:
        b: the roundness: the result at 0 is ``sqrt(b) / 2``.

    Gradient:
        ``(1 + x / sqrt(x**2 + b)) / 2``.

    Examples:
        >>> print(ops.squareplus(0.5).round(4), gradops.grad(ops.squareplus)(0.5).round(4))
        1.2808 0.6213
    """
    x = floats(x)
    root = hypot(x, math.sqrt(b))
    # For negative x the sum would cancel; this form is equal. The halves are added, as x + root may overflow.
    below = divide(0.25 * b, add(multiply(root, 0.5), multiply(abs(x), 0.5)))
    return where(greater(0, x), below, add(multiply(x, 0.5), multiply(root, 0.5)))


@op(elementwise=True)
@compute_in_single
def hard_silu(x: Tensor) -> Tensor:
    """``x * hard_sigmoid(x)`` of each element, also called hard swish (Howard et al. 2019).

    Gradient:
        0 up to -3, ``(2 * x + 3) / 6`` between -3 and 3, 1 from 3 on.

    Examples:
        >>> print(ops.hard_swish(0.5).round(4), gradops.grad(ops.hard_swish)(0.5).round(4))
        0.2917 0.6667
    """
    return where(less_equal(x, -3), 0.0, multiply(maximum(x, -4.0), hard_sigmoid(x)))


hard_swish = alias("hard_swish", hard_silu)


@op(elementwise=True)
def sparse_plus(x: Tensor) -> Tensor:
    """0 up to -1, ``(x + 1)**2 / 4`` between -1 and 1, ``x`` from 1 on.

    Gradient:
        :func:`sparse_sigmoid`.

    Examples:
        >>> print(ops.sparse_plus(0.5), gradops.grad(ops.sparse_plus)(0.5))
        0.5625 0.75

    See Also:
        :func:`hard_swish`, :func:`squareplus`, :func:`softplus`.
    """
    above, below = greater_equal(x, 1), less_equal(x, -1)
    middle = where(logical_or(above, below), 0.0, x)  # squares of large elements overflow
    return where(below, 0.0, where(above, x, multiply(square(add(middle, 1)), 0.25)))


__family__ = """Sigmoids.

Functions that rise from one bound to another. The derivative at a kink is that of the flat side. NaN stays NaN.

See Also:
    :func:`relu`, :func:`tanh`, :func:`softmax`, :func:`binary_crossentropy`.
"""


@op(elementwise=True)
def sigmoid(x: Tensor) -> Tensor:
    """``1 / (1 + exp(-x))`` of each element.

    Gradient:
        ``y * (1 - y)``.

    Examples:
        >>> print(ops.sigmoid(np.array([-800.0, 0.0, 800.0])))
        [0.  0.5 1. ]
        >>> print(gradops.grad(ops.sigmoid)(0.0))
        0.25

    See Also:
        :func:`log_sigmoid`, :func:`binary_crossentropy`.
    """
    ...


@op(check=check_real, elementwise=True)
def log_sigmoid(x: Tensor) -> Tensor:
    """``log(sigmoid(x))`` of each element, without overflow.

    Gradient:
        ``sigmoid(-x)``.

    Examples:
        >>> print(ops.log_sigmoid(0.5).round(4), gradops.grad(ops.log_sigmoid)(0.5).round(4))
        -0.4741 0.3775
    """
    return negative(softplus(negative(floats(x))))


@op(elementwise=True)
def softsign(x: Tensor) -> Tensor:
    """``x / (1 + abs(x))`` of each element (Turian et al. 2009).

    Gradient:
        ``1 / (1 + abs(x))**2``.

    Examples:
        >>> print(ops.softsign(0.5).round(4), gradops.grad(ops.softsign)(0.5).round(4))
        0.3333 0.4444
    """
    x = floats(x)
    if not is_complex(x):
        x = clip(x, -6e4, 6e4) if dtype(x) == "float16" else clip(x, -1e38, 1e38)  # infinity / infinity would be NaN
    return divide(x, add(abs(x), 1))


@op(elementwise=True)
@compute_in_single
def hard_sigmoid(x: Tensor) -> Tensor:
    """``x / 6 + 0.5``, at least 0 and at most 1.

    Gradient:
        1/6 between -3 and 3, else 0 (also at both).

    Examples:
        >>> print(ops.hard_sigmoid(0.5).round(4), gradops.grad(ops.hard_sigmoid)(0.5).round(4))
        0.5833 0.1667
    """
    return where(less_equal(x, -3), 0.0, where(greater_equal(x, 3), 1.0, add(divide(x, 6.0), 0.5)))


@op(elementwise=True)
def hard_tanh(x: Tensor) -> Tensor:
    """Each element, at least -1 and at most 1 (Collobert 2004).

    Returns:
        A tensor of ``x``'s shape and dtype; bools give int64.

    Gradient:
        1 between -1 and 1, else 0 (also at both).

    Examples:
        >>> print(ops.hard_tanh(0.5), gradops.grad(ops.hard_tanh)(0.5))
        0.5 1.0
    """
    return where(less_equal(x, -1), -1, where(greater_equal(x, 1), 1, x))


@op(elementwise=True)
def sparse_sigmoid(x: Tensor) -> Tensor:
    """``(x + 1) / 2``, at least 0 and at most 1: the derivative of :func:`sparse_plus`.

    Gradient:
        1/2 between -1 and 1, else 0 (also at both).

    Examples:
        >>> print(ops.sparse_sigmoid(0.5), gradops.grad(ops.sparse_sigmoid)(0.5))
        0.75 0.5
    """
    return where(less_equal(x, -1), 0.0, where(greater_equal(x, 1), 1.0, multiply(add(x, 1), 0.5)))


__family__ = """Shrinkage and thresholds.

Functions that set small elements to 0. The derivative at a threshold is that of the flat side. NaN stays NaN.

See Also:
    :func:`relu`, :func:`clip`, :func:`where`.
"""


@op(elementwise=True)
@compute_in_single
def tanh_shrink(x: Tensor) -> Tensor:
    """``x - tanh(x)`` of each element.

    Gradient:
        ``tanh(x)**2``.

    Examples:
        >>> print(ops.tanh_shrink(0.5).round(4), gradops.grad(ops.tanh_shrink)(0.5).round(4))
        0.0379 0.2136
    """
    far = greater(abs(x), 0.25)
    near = where(far, 0.0, x)
    squares = square(near)
    fraction = 11.0  # the continued fraction of tanh (Lambert), which has no cancelling terms near 0
    for odd in (9.0, 7.0, 5.0, 3.0):
        fraction = add(divide(squares, fraction), odd)
    fraction = divide(squares, fraction)
    return where(far, subtract(x, tanh(x)), multiply(near, divide(fraction, add(fraction, 1))))


@op(elementwise=True)
def hard_shrink(x: Tensor, threshold: float = 0.5) -> Tensor:
    """Each element where its magnitude is above ``threshold``, else 0.

    Args:
        threshold: the largest magnitude that becomes 0.

    Returns:
        A tensor of ``x``'s shape and dtype; bools give int64.

    Gradient:
        1 where the magnitude is above ``threshold``, else 0.

    Examples:
        >>> print(ops.hard_shrink(0.7), gradops.grad(ops.hard_shrink)(0.7))
        0.7 1.0
    """
    small = logical_and(greater_equal(x, -float(threshold)), less_equal(x, threshold))  # abs(-128) is no int8
    return where(small, 0, x)


@op(elementwise=True)
def soft_shrink(x: Tensor, threshold: float = 0.5) -> Tensor:
    """Each element moved towards 0 by ``threshold``; 0 where its magnitude is at most ``threshold``.

    Args:
        threshold: the distance by which elements move.

    Gradient:
        1 where the magnitude is above ``threshold``, else 0.

    Examples:
        >>> print(ops.soft_shrink(0.7).round(4), gradops.grad(ops.soft_shrink)(0.7))
        0.2 1.0
    """
    x = floats(x)
    moved = where(greater(x, 0), subtract(x, threshold), add(x, threshold))
    return where(less_equal(abs(x), threshold), 0, moved)


@op(elementwise=True)
def threshold(x: Tensor, threshold: float, default_value: float) -> Tensor:
    """Each element where it is above ``threshold``, ``default_value`` elsewhere.

    Args:
        threshold: the bound above which elements stay.
        default_value: the value of all other elements.

    Returns:
        A tensor of ``x``'s shape, in the promoted dtype of ``x`` and ``default_value``.

    Gradient:
        1 where ``x`` is above ``threshold``, else 0.

    Examples:
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.threshold(x, 2.0, 0.0), gradops.grad(lambda x: ops.sum(ops.threshold(x, 2.0, 0.0) ** 2))(x))
        [0. 3.] [0. 6.]
    """
    return where(less_equal(x, threshold), default_value, x)


__family__ = """Softmax.

Probabilities along an axis, which are not negative and sum to 1, or their logarithms.

See Also:
    :func:`sigmoid`, :func:`logsumexp`, :func:`categorical_crossentropy`, :func:`dot_product_attention`.
"""


@op(check=check_real, costly=True)
def softmax(x: Tensor, axis: Axes = -1) -> Tensor:
    """``exp(x) / sum(exp(x))`` along an axis or several, without overflow.

    Returns:
        A tensor of ``x``'s shape and dtype; integers and bools give ``floatx``.

    Raises:
        ArgumentTypeError: a complex ``x``.

    Gradient:
        ``y * (g - sum(g * y))``.

    Examples:
        >>> logits = np.array([1.0, 2.0, 3.0])
        >>> print(ops.softmax(logits).round(4))
        [0.09   0.2447 0.6652]
        >>> print(gradops.grad(lambda x: ops.softmax(x)[0])(logits).round(4))
        [ 0.0819 -0.022  -0.0599]

    See Also:
        :func:`log_softmax`, which is exact where a probability is tiny; :func:`logsumexp`; :func:`sparsemax`.
    """
    ...


@op(check=check_real, costly=True)
def log_softmax(x: Tensor, axis: Axes = -1) -> Tensor:
    """``log(softmax(x))`` along an axis or several, without overflow.

    Returns:
        A tensor of ``x``'s shape and dtype; integers and bools give ``floatx``.

    Raises:
        ArgumentTypeError: a complex ``x``.

    Gradient:
        ``g - exp(y) * sum(g)``.

    Examples:
        The loss of a classifier; its gradient is the probabilities less 1 at the right class:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> logits = np.array([1.0, 2.0, 3.0])
        >>> print(gradops.grad(lambda x: -ops.log_softmax(x)[2])(logits).round(4))
        [ 0.09    0.2447 -0.3348]

    See Also:
        :func:`softmax`, :func:`categorical_crossentropy`.
    """
    ...


@op
def sparsemax(x: Tensor, axis: Axis = -1) -> Tensor:
    """The probabilities nearest to ``x`` along an axis: like softmax with exact zeros (Martins and Astudillo 2016).

    Returns:
        A tensor of ``x``'s shape, not negative and of sum 1 along ``axis``.

    Gradient:
        On the support, the upstream gradient less its mean there; 0 elsewhere.

    Examples:
        >>> x = np.array([1.0, 1.5, -1.0])
        >>> print(ops.sparsemax(x), gradops.grad(lambda x: ops.sparsemax(x)[0])(x))
        [0.25 0.75 0.  ] [ 0.5 -0.5 -0. ]
    """
    axis = check_axis("sparsemax", axis, check_rank("sparsemax", x, 1))
    x = floats(x)
    x = subtract(x, _largest(x, axis, True))
    support = sparsemax_support(x, axis)
    level = divide(subtract(sum(where(support, x, 0.0), axis, True), 1), sum(support, axis, True))
    return where(support, subtract(x, level), 0.0)


@op(public=False, differentiable=False)
def sparsemax_support(x: Tensor, axis: Axis) -> Tensor:
    """The support of :func:`sparsemax`: True where it is above 0; ``x`` must not be above 0."""
    ordered = flip(sort(x, axis), axis)
    excess = subtract(cumsum(ordered, axis), 1)
    count = cumsum(ones_like(x), axis)
    last = sum(greater(multiply(ordered, count), excess), axis, True)
    chosen = sum(where(equal(count, last), excess, 0.0), axis, True)
    return greater(x, divide(chosen, last))
