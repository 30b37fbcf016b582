"""Jacobians, Hessians and their products with vectors, with the arguments of ``torch.autograd.functional``.

``inputs`` is a tensor (variable, number, list) or a tuple of tensors, and ``func`` returns a tensor or a tuple. The
result is a single tensor if both are single; otherwise it is a tuple, indexed by output, then by input. Inputs and
outputs may also be dicts of tensors, such as parameters; the results then have the same keys. PyTorch, JAX and
TensorFlow tensors are differentiated by their library, NumPy arrays and variables by the tape.
"""

from __future__ import annotations

from collections.abc import Callable

from .._functions import hint_arguments
from ..errors import ArgumentError, Position
from ..ops import _checks
from . import chunks, on_tape, point
from .point import EmptyOutput, Point, is_complex, is_empty
from .reverse import grad, value_and_grad
from .sparsity.matrices import sparse_hessian, sparse_jacobian
from .structured import takes_structures

STRATEGIES = ("reverse-mode", "forward-mode")


@takes_structures("rows")
@hint_arguments
def jacobian(
    func: Callable,
    inputs,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str | None = None,
    sparse: bool = False,
    chunk_size: int | None = None,
    *,
    has_aux: bool = False,
):
    """All first derivatives of ``func`` at ``inputs``.

    For complex numbers an element is the gradient ``d/dRe x + i d/dIm x`` of the real part of an output, so that the
    rows are gradients as :func:`grad` returns them; for a holomorphic function this is its derivative's conjugate,
    as in PyTorch. :func:`jvp` gives the full derivative of any function.

    Args:
        func: a function of as many tensors as ``inputs`` holds; it returns a tensor, or a tuple, dict or nested
            structure of tensors, of any shape.
        create_graph: make the result differentiable (on the tape and PyTorch; JAX and TensorFlow
            results always are, under their own transforms and tapes).
        strict: raise an error if an output does not depend on an input, instead of returning zeros.
        vectorize: let PyTorch and TensorFlow batch the passes. JAX always does; the tape does unless the function
            uses custom derivatives or ``create_graph`` is True.
        strategy: ``"reverse-mode"``, a pass for each element of the outputs, or ``"forward-mode"``, one
            for each element of the inputs. By default the one with fewer passes, but on PyTorch and
            TensorFlow reverse mode.
        sparse: return SciPy CSC matrices, with a row for each element of an output and a column for each element of an
            input, both in row-major order. The sparsity pattern, valid for all values of the inputs, is read from a
            recorded program; columns or rows without a common nonzero share a pass (Curtis, Powell & Reid 1974). NumPy
            only. For ``jit(func)`` everything but the passes themselves is done once.
        chunk_size: the most passes that are batched at once, which bounds the memory; chunks run one after the other,
            in a compiled function as a loop. 1 batches no passes. With it, ``vectorize`` has no effect.
        has_aux: True if ``func`` returns a pair of its value and auxiliary data. The auxiliary data come from an
            additional call of ``func`` at ``inputs``.

    Returns:
        A tensor of the output's shape followed by the input's. For several outputs or inputs, a structure like the
        outputs whose entries are structures like the inputs. With ``has_aux``, a pair of this and the auxiliary data.

    Raises:
        GradientError: an independent output with ``strict``; an integer or bool output; with ``sparse`` an input
            that requires a gradient.
        ArgumentTypeError: an input of an integer or bool dtype; with ``sparse`` of another library, or complex.
        ArgumentError: an unknown ``strategy``; ``create_graph`` or ``chunk_size`` with ``sparse``; a ``chunk_size``
            below 1.
        JitError: with ``sparse``, a function that :func:`gradops.jit` cannot trace.

    Gradient:
        Differentiable as described for ``create_graph``.

    Examples:
        From polar to Cartesian coordinates:

        >>> import numpy as np
        >>> from gradops import ops
        >>> from gradops.functional import jacobian
        >>> def cartesian(polar):
        ...     return ops.stack([polar[0] * ops.cos(polar[1]), polar[0] * ops.sin(polar[1])])
        >>> print(jacobian(cartesian, np.array([2.0, np.pi / 2])).round(6))
        [[ 0. -2.]
         [ 1.  0.]]

        For several arguments, one Jacobian each:

        >>> by_a, by_b = jacobian(lambda a, b: a * b, (np.array([1.0, 2.0]), np.array([3.0, 4.0])))
        >>> print(by_a)
        [[3. 0.]
         [0. 4.]]

    See Also:
        :func:`vjp` and :func:`jvp` for products with the Jacobian, which cost one pass; :func:`hessian`.
    """
    if strategy is not None:
        _checks.choice("jacobian", strategy, STRATEGIES, "strategy")
    _checks.check_flags("jacobian", create_graph=create_graph, strict=strict, vectorize=vectorize, sparse=sparse)
    chunk_size = checked_chunk_size("jacobian", chunk_size, sparse)
    at = Point(func, inputs, "jacobian", real=True)
    if sparse:
        return sparse_jacobian(at, jvp, vjp, create_graph, strict, strategy)
    if any(map(is_complex, at.leaves)):
        strategy, vectorize = "reverse-mode", False
    options = (create_graph, strict, vectorize, strategy)
    at.full = not any(map(is_empty, at.leaves))
    if at.full:
        try:
            if chunk_size is None:
                return at.derivatives.jacobian(at, *options)
            if at.derivatives.native:
                return chunks.jacobian(at, create_graph, strict, strategy, chunk_size)
            return on_tape.jacobian(at, *options, chunk_size)
        except EmptyOutput:
            at.full = False
    return point.jacobian(at, lambda full, inputs: jacobian(full, inputs, *options, chunk_size=chunk_size))


def checked_chunk_size(name: str, chunk_size, sparse: bool = False) -> int | None:
    """Return the argument ``chunk_size`` of the function ``name`` after a check."""
    if chunk_size is None:
        return None
    if sparse:
        raise ArgumentError(
            f"`{name}`: `chunk_size` must be {{none}} with `sparse`, whose passes are one for each color.",
            argument="chunk_size",
            none=Position(None),
        )
    return _checks.integer(name, chunk_size, "chunk_size", 1)


@takes_structures("squares")
@hint_arguments
def hessian(
    func: Callable,
    inputs,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
    sparse: bool = False,
    chunk_size: int | None = None,
    *,
    has_aux: bool = False,
):
    """All second derivatives of a scalar ``func`` at ``inputs``.

    Args:
        outer_jacobian_strategy: how the gradient is differentiated: ``"reverse-mode"`` or ``"forward-mode"``.
        create_graph, strict, vectorize, chunk_size, has_aux: see :func:`jacobian`.
        sparse: see :func:`jacobian`. The passes are forward-over-reverse products, one for each colour of a star
            colouring (Gebremedhin, Manne & Pothen 2005): a banded or arrow-shaped Hessian needs only a few, whatever
            its size. If ``func`` uses custom derivatives, its Hessian need not be symmetric, and the products are one
            for each colour of its columns.

    Returns:
        A tensor whose shape is the input's shape twice; for several inputs a tuple of tuples of such tensors.

    Raises:
        GradientError: an output that is not a floating scalar.
        ArgumentTypeError, ArgumentError, JitError: with ``sparse`` or ``chunk_size``, see :func:`jacobian`.

    Gradient:
        See :func:`jacobian`.

    Examples:
        A Newton step, which finds the minimum of a quadratic function in a single step:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> from gradops.functional import hessian
        >>> a, b = np.array([[3.0, 1.0], [1.0, 2.0]]), np.array([1.0, -1.0])
        >>> def loss(x):
        ...     return 0.5 * ops.dot(x, a @ x) - ops.dot(b, x)
        >>> x = np.zeros(2)
        >>> print(x - np.linalg.solve(hessian(loss, x), gradops.grad(loss)(x)))
        [ 0.6 -0.8]

        Standard errors of a normal distribution's mean and log standard deviation, from the curvature at the
        estimate:

        >>> data = np.array([4.1, 5.3, 4.8, 6.0, 5.2])
        >>> def negative_log_likelihood(p):
        ...     return ops.sum(0.5 * ((data - p[0]) / ops.exp(p[1])) ** 2 + p[1])
        >>> estimate = np.array([data.mean(), np.log(data.std())])
        >>> print(np.sqrt(np.diag(np.linalg.inv(hessian(negative_log_likelihood, estimate)))).round(4))
        [0.2791 0.3162]

    See Also:
        :func:`hvp` for a product with the Hessian, which costs a few gradients; :func:`jacobian`.
    """
    _checks.choice("hessian", outer_jacobian_strategy, STRATEGIES, "outer_jacobian_strategy")
    _checks.check_flags("hessian", create_graph=create_graph, strict=strict, vectorize=vectorize, sparse=sparse)
    chunk_size = checked_chunk_size("hessian", chunk_size, sparse)
    at = Point(func, inputs, "hessian")
    if sparse:
        return sparse_hessian(at, hvp, create_graph, strict)
    options = (create_graph, strict, vectorize, outer_jacobian_strategy)
    if any(map(is_empty, at.leaves)):
        return point.hessian(at, lambda full, inputs: hessian(full, inputs, *options, chunk_size=chunk_size))
    if chunk_size is None:
        found = at.derivatives.hessian(at, *options)
        if found is not NotImplemented:
            return found
    gradient = grad(at.call, tuple(range(len(at.leaves))))
    rows = jacobian(lambda *xs: tuple(gradient(*xs)), tuple(at.leaves), *options, chunk_size=chunk_size)
    return rows if at.several else rows[0][0]


@takes_structures("pulled", v="outputs")
@hint_arguments
def vjp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """The value of ``func`` and the product of ``v`` with its Jacobian.

    Args:
        v: a tensor of the output's shape (a tuple for several outputs), cast to its dtype; optional for a scalar.
        create_graph, strict: see :func:`jacobian`.

    Returns:
        ``(value, product)``, the product in the form of ``inputs``.

    Raises:
        ShapeError: ``v`` has another shape than the output.
        ArgumentTypeError: ``v`` is complex for a real output.
        ArgumentError: ``v`` is missing for an output that is not a scalar.

    Gradient:
        Differentiable again, inside a function that is differentiated and with ``create_graph``.

    Examples:
        >>> import numpy as np
        >>> from gradops.functional import vjp
        >>> value, product = vjp(lambda x: x**2, np.array([1.0, 2.0, 3.0]), np.array([1.0, 0.0, 10.0]))
        >>> print(value, product)
        [1. 4. 9.] [ 2.  0. 60.]

    See Also:
        :func:`jvp`, the product with a vector on the right; :func:`jacobian`; :func:`gradops.grad` for a scalar.
    """
    _checks.check_flags("vjp", create_graph=create_graph, strict=strict)
    at = Point(func, inputs, "vjp", v)
    return at.derivatives.vjp(at, v, create_graph, strict)


@takes_structures("pushed", v="inputs")
@hint_arguments
def jvp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """The value of ``func`` and the product of its Jacobian with ``v``, by forward mode.

    Args:
        v: a tensor or tuple in the form of ``inputs``, cast to its dtypes; optional for an input of one element.
        create_graph, strict: see :func:`jacobian`.

    Returns:
        ``(value, product)``, the product in the form of the output. On the tape it costs about one more
        forward pass for elementwise operations and about three for others.

    Raises:
        ShapeError: ``v`` has another shape than the inputs.
        ArgumentTypeError: ``v`` is complex for a real input.
        ArgumentError: ``v`` is missing for an input of more than one element.

    Gradient:
        Differentiable again, inside a function that is differentiated and with ``create_graph``.

    Examples:
        The change of a temperature profile when one point of it is warmed:

        >>> import numpy as np
        >>> from gradops import ops
        >>> from gradops.functional import jvp
        >>> value, change = jvp(lambda t: ops.exp(t / 10), np.array([0.0, 10.0, 20.0]), np.array([0.0, 1.0, 0.0]))
        >>> print(change.round(4))
        [0.     0.2718 0.    ]

    See Also:
        :func:`vjp`, the product with a vector on the left; :func:`jacobian`; :func:`hvp`.
    """
    _checks.check_flags("jvp", create_graph=create_graph, strict=strict)
    at = Point(func, inputs, "jvp", v)
    return at.derivatives.jvp(at, v, create_graph, strict)


@takes_structures("pulled", v="inputs")
@hint_arguments
def hvp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """The value of a scalar ``func`` and the product of its Hessian with ``v``: forward over reverse.

    Args:
        func: a function of as many tensors as ``inputs`` holds; it returns a scalar.
        v: a tensor or tuple in the form of ``inputs``; optional for an input of one element.
        create_graph, strict: see :func:`jacobian`.

    Returns:
        ``(value, product)``, the product in the form of ``inputs``. The product costs a few gradients, whatever
        the number of inputs.

    Raises:
        GradientError: a value that is not a scalar.
        ShapeError: ``v`` has another shape than the inputs.
        ArgumentError: ``v`` is missing for an input of more than one element.

    Gradient:
        Differentiable again, inside a function that is differentiated and with ``create_graph``.

    Examples:
        A step of the conjugate gradient method needs products with the Hessian, never the whole matrix:

        >>> import numpy as np
        >>> from gradops import ops
        >>> from gradops.functional import hvp
        >>> def rosenbrock(x):
        ...     return ops.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
        >>> value, product = hvp(rosenbrock, np.ones(4), np.array([1.0, 0.0, 0.0, 0.0]))
        >>> print(product)
        [ 802. -400.    0.    0.]

    See Also:
        :func:`vhp`, the same product by two reverse passes; :func:`hessian`; ``scipy.optimize.minimize``, which takes
        the product as ``hessp``.
    """
    _checks.check_flags("hvp", create_graph=create_graph, strict=strict)
    at = Point(func, inputs, "hvp", v)
    found = at.derivatives.hvp(at, v, create_graph, strict)
    return found if found is not NotImplemented else _second_order(jvp, at, tuple(at.tangents(v)), create_graph, strict)


@takes_structures("pulled", v="inputs")
@hint_arguments
def vhp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """The value of a scalar ``func`` and the product of ``v`` with its Hessian: reverse over reverse.

    Args:
        func: a function of as many tensors as ``inputs`` holds; it returns a scalar.
        v: a tensor or tuple in the form of ``inputs``; optional for an input of one element.
        create_graph, strict: see :func:`jacobian`.

    Returns:
        ``(value, product)``, with the same numbers as :func:`hvp`.

    Raises:
        GradientError: a value that is not a scalar.
        ShapeError: ``v`` has another shape than the inputs.
        ArgumentError: ``v`` is missing for an input of more than one element.

    Gradient:
        Differentiable again, inside a function that is differentiated and with ``create_graph``.

    Examples:
        >>> import numpy as np
        >>> from gradops import ops
        >>> from gradops.functional import vhp
        >>> value, product = vhp(lambda x: ops.sum(x**3), np.array([1.0, 2.0]), np.array([1.0, 1.0]))
        >>> print(value, product)
        9.0 [ 6. 12.]

    See Also:
        :func:`hvp`, which is cheaper; :func:`hessian`.
    """
    _checks.check_flags("vhp", create_graph=create_graph, strict=strict)
    at = Point(func, inputs, "vhp", v)
    found = at.derivatives.vhp(at, v, create_graph, strict)
    return found if found is not NotImplemented else _second_order(vjp, at, tuple(at.tangents(v)), create_graph, strict)


def _second_order(product: Callable, at: Point, v: tuple, create_graph: bool, strict: bool):
    """The value, and the product (``jvp`` or ``vjp``) of the gradient's Jacobian with ``v``."""
    both = value_and_grad(at.call, tuple(range(len(at.leaves))))
    values: list = []

    def gradient(*xs):
        value, gradients = both(*xs)
        values.append(value)
        return tuple(gradients)

    result = product(gradient, tuple(at.leaves), v, create_graph, strict)[1]
    value = at.call(*at.leaves) if at.derivatives.native else on_tape.finish(at, values[-1], create_graph)
    return value, result if at.several else result[0]
