"""Second derivatives without the full matrix: the Hessian's diagonal and trace, Gauss-Newton and Fisher products."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from .. import _tree, ops
from ..errors import ArgumentError
from ..ops import _checks
from ..ops._compose import constant_like
from ..ops._structures import check_functions
from . import transformations
from .reverse import grad


def hessian_diagonal(f: Callable, x, probes: int | None = None, seed: int = 0):
    """The diagonal of the Hessian of a scalar function.

    Args:
        f: a function of ``x`` that returns a scalar.
        x: a tensor, a number, or a structure of them.
        probes: if None, the diagonal is exact and costs a product with the Hessian for each element of ``x``. If given,
            it is estimated from this many products with random signs, ``E[s * (H s)]`` (Bekas, Kokiopoulou & Saad
            2007); the estimate is exact for a diagonal Hessian.
        seed: the seed of the signs, which are drawn by NumPy.

    Returns:
        Second derivatives in the structure of ``x``.

    Raises:
        GradientError: a value that is not a scalar. ArgumentError, ArgumentTypeError: ``probes`` is not a positive
            integer.

    Gradient:
        Differentiable again, like :func:`gradops.hvp`.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> from gradops.functional import hessian_diagonal
        >>> def f(x):
        ...     return ops.sum(x**3) + x[0] * x[1]
        >>> print(hessian_diagonal(f, np.array([1.0, 2.0])))
        [ 6. 12.]
        >>> print(gradops.grad(lambda x: ops.sum(hessian_diagonal(f, x)))(np.array([1.0, 2.0])))
        [6. 6.]

    See Also:
        :func:`laplacian`, the sum of the diagonal; :func:`hessian`.
    """
    pairs = _products("hessian_diagonal", f, x, probes, seed)
    parts = [_tree.map_leaves(ops.multiply, product, direction) for direction, product in pairs]
    sums = functools.reduce(lambda a, b: _tree.map_leaves(ops.add, a, b), parts)
    return sums if probes is None else _tree.map_leaves(lambda s: s / probes, sums)


def laplacian(f: Callable, x, probes: int | None = None, seed: int = 0):
    """The trace of the Hessian of a scalar function, the sum of its second derivatives.

    Args:
        f, x, seed: see :func:`hessian_diagonal`.
        probes: see :func:`hessian_diagonal`; the estimate is ``E[s . (H s)]`` (Hutchinson 1989).

    Returns:
        A scalar tensor.

    Raises:
        The errors of :func:`hessian_diagonal`.

    Gradient:
        See :func:`hessian_diagonal`.

    Examples:
        The Laplacian of a harmonic function is 0:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> from gradops.functional import laplacian
        >>> x = np.array([1.0, 2.0, 2.0])
        >>> print(laplacian(lambda x: 1 / ops.sqrt(ops.sum(x**2)), x).round(12) + 0.0)
        0.0
        >>> print(gradops.grad(lambda x: laplacian(lambda x: ops.sum(x**4), x))(x))
        [24. 48. 48.]

    See Also:
        :func:`hessian_diagonal`.
    """
    pairs = _products("laplacian", f, x, probes, seed)
    total = functools.reduce(ops.add, [_inner(product, direction) for direction, product in pairs])
    return total if probes is None else total / probes


def gauss_newton_product(f: Callable, loss: Callable, x, v):
    """The product of the Gauss-Newton matrix of ``loss(f(x))`` with ``v``: ``J^T H J v``.

    Args:
        f: a function of ``x`` that returns a tensor or a structure of tensors, such as a model of its parameters.
        loss: a function of the value of ``f`` that returns a scalar; ``H`` is its Hessian, ``J`` the Jacobian of ``f``.
        x, v: tensors, or structures of them, both of one form.

    Returns:
        A vector in the form of ``x``. If ``loss`` is convex, the matrix is positive semidefinite. If ``loss`` is the
        negative log likelihood of an exponential family in its natural parameters, it is the Fisher information
        (Schraudolph 2002; Martens 2020).

    Raises:
        GradientError: ``loss`` does not return a scalar. ArgumentError, ShapeError: ``v`` has another form.

    Gradient:
        Differentiable again, like :func:`gradops.linearize`.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> from gradops.functional import gauss_newton_product
        >>> t = np.array([0.0, 1.0, 2.0])
        >>> def model(p):
        ...     return p[0] * ops.exp(-p[1] * t)
        >>> def half_squares(y):
        ...     return 0.5 * ops.sum((y - np.array([1.0, 0.5, 0.2])) ** 2)
        >>> p, v = np.array([1.0, 0.7]), np.array([1.0, 0.0])
        >>> print(gauss_newton_product(model, half_squares, p, v).round(4))
        [ 1.3074 -0.3682]
        >>> print(gradops.grad(lambda p: gauss_newton_product(model, half_squares, p, v)[0])(p).round(4))
        [ 0.     -0.7364]

    See Also:
        :func:`fisher_product`, from scores; :func:`gradops.hvp`, with the Hessian itself.
    """
    check_functions("gauss_newton_product", f=f, loss=loss)
    y, pushforward = transformations.linearize(f, x)
    _, pullback = transformations.vjp(f, x)
    _, curved = transformations.hvp(loss, (y,), (pushforward(v),))
    return pullback(curved)[0]


def fisher_product(log_likelihoods: Callable, x, v):
    """The product of the empirical Fisher information with ``v``: the sum over observations of ``s (s . v)``.

    Args:
        log_likelihoods: a function of ``x`` that returns a tensor with the log likelihood of each observation; its
            gradients are the scores ``s``.
        x, v: see :func:`gauss_newton_product`.

    Returns:
        A vector in the form of ``x``.

    Raises:
        The errors of :func:`gauss_newton_product`.

    Gradient:
        See :func:`gauss_newton_product`.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> from gradops.functional import fisher_product
        >>> y = np.array([1.0, 2.0, 4.0])
        >>> def log_likelihoods(p):
        ...     return -0.5 * ((y - p[0]) * p[1]) ** 2
        >>> p, v = np.array([2.0, 1.0]), np.array([1.0, 0.0])
        >>> print(fisher_product(log_likelihoods, p, v))
        [ 5. -7.]
        >>> print(gradops.grad(lambda p: fisher_product(log_likelihoods, p, v)[0])(p))
        [-2. 20.]

    See Also:
        :func:`gauss_newton_product`, which is the expected information of an exponential family.
    """
    check_functions("fisher_product", log_likelihoods=log_likelihoods)
    _, pushforward = transformations.linearize(log_likelihoods, x)
    _, pullback = transformations.vjp(log_likelihoods, x)
    return pullback(pushforward(v))[0]


def _products(name: str, f: Callable, x, probes: int | None, seed: int):
    """Yield directions, unit vectors or random signs, each with the Hessian's product with it."""
    check_functions(name, f=f)
    if probes is not None:
        probes = _checks.integer(name, probes, "probes", 1)
    x = _tree.map_leaves(lambda leaf: ops.convert_to_tensor(leaf) if type(leaf) in (int, float) else leaf, x)
    leaves, form = _tree.flatten(x)
    if not leaves:
        raise ArgumentError(f"`{name}`: `x` must hold a tensor.", argument="x")
    gradient = grad(f)
    _, push = transformations.linearize(gradient, x)
    shapes = [ops.shape(leaf) for leaf in leaves]
    ends = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes)])
    rng = np.random.default_rng(seed)
    for k in range(int(ends[-1]) if probes is None else probes):
        flat = np.arange(ends[-1]) == k if probes is None else rng.choice([-1.0, 1.0], int(ends[-1]))
        parts = [flat[i:j].reshape(shape) for i, j, shape in zip(ends, ends[1:], shapes)]
        direction = _tree.unflatten(
            form, [constant_like(part.astype(float), leaf) for part, leaf in zip(parts, leaves)]
        )
        yield direction, push(direction)


def _inner(a, b):
    """The inner product of two structures."""
    parts = [ops.sum(ops.multiply(x, y)) for x, y in zip(_tree.leaves_of(a), _tree.leaves_of(b))]
    return parts[0] if len(parts) == 1 else ops.sum(ops.stack(parts))
