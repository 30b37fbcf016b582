"""Derivatives.

A derivative by the name that Keras has for it, so that models written for Keras run unchanged.

See Also:
    :func:`gradops.linearize`, :func:`gradops.vjp`, :func:`gradops.jacobian`.
"""

from __future__ import annotations

from collections.abc import Callable

from ..annotations import Function, Structure
from ._registry import functions, public
from ._structures import check_functions
from ._symbolic import any_symbolic, call_symbolically

product: Callable = None
"""The derivative by forward mode, registered by a floor above."""


@public
def jvp(fun: Function, primals: Structure, tangents: Structure, has_aux: bool = False) -> Structure:
    """The value of ``fun`` and the product of its Jacobian with ``tangents``, by forward mode; as ``keras.ops.jvp``.

    Args:
        fun: a function that returns a tensor or a structure of tensors.
        primals: a tuple or list of the arguments of ``fun``; they may be the KerasTensors of a functional model.
        tangents: a tuple or list with a tangent for each of ``primals``, in its structure.
        has_aux: whether ``fun`` returns a pair of its value and auxiliary data, which are passed through.

    Returns:
        The value and its tangent, in the structure of the value; with ``has_aux`` also the auxiliary data.

    Raises:
        ArgumentTypeError: ``primals`` or ``tangents`` is not a tuple or list, or ``fun`` is not a function.
        ArgumentError: ``tangents`` of another structure.
        ShapeError: a tangent of another shape.

    Gradient:
        Through the value and the tangent, to ``primals``, ``tangents`` and what ``fun`` closes over.

    Examples:
        >>> from gradops import ops
        >>> value, tangent = ops.jvp(lambda x, y: x * ops.exp(y), (2.0, 0.0), (1.0, 10.0))
        >>> print(value, tangent)
        2.0 21.0

    See Also:
        :func:`gradops.linearize`, for many tangents at one point; :func:`gradops.vjp`.
    """
    check_functions("jvp", fun=fun)
    if any_symbolic((primals, tangents)):
        return call_symbolically("jvp", (fun, primals, tangents, has_aux))
    return product(fun, primals, tangents, has_aux)


functions["jvp"] = jvp
jvp.autograph_info__ = None  # TensorFlow's AutoGraph must not convert `fun`
