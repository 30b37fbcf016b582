"""Sparse Hessians as objects: pattern and colours are computed once, and the elements can be differentiated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _display, backends, ops
from ...autodiff.variable import data_of
from ...errors import ArgumentError, ArgumentTypeError, ShapeError, TypeOf
from ...jit import jit
from ..matrices import hvp
from ..point import Point
from ..reverse import grad
from ..structured import Flat
from ..transformations import linearize, vmap
from . import matrices, patterns, traces
from .strategy import hessian_plan

MAX_SINGLE_PRODUCTS = 8  # colours; up to this many products are faster one by one


class SparseHessian:
    """The sparse second derivatives of a scalar function with respect to some of its arguments.

    The arguments named by ``argnums`` form one vector, each in row-major order; the others are constants and take no
    part in the colouring. Pattern and colours are computed at once from a recorded program, and hold for all values of
    inputs of these shapes. The elements come from a product with the Hessian for each colour of a star colouring
    (Gebremedhin, Manne & Pothen 2005). These products are compiled, except on PyTorch.

    Args:
        func: a function of as many tensors as ``inputs`` holds; it returns a scalar.
        inputs: a tuple of tensors of one library, or a tensor. Their shapes matter, and their values if ``func``
            branches on them.
        argnums: the positions of the arguments to differentiate: an integer or a tuple of integers.
        pattern: a SciPy sparse matrix of the elements that may be nonzero. By default it is computed on NumPy. The
            other libraries do not report dependences, so every element may be nonzero there.

    Attributes:
        pattern: a SciPy CSC matrix of True, symmetric.
        colors: an array with the colour of each column, an integer from 0.
        count: the number of colours.

    Raises:
        ArgumentError: ``argnums`` are not positions of ``inputs``.
        ShapeError: ``pattern`` has another shape than the Hessian.
        ArgumentTypeError, JitError: see :func:`gradops.functional.hessian` with ``sparse=True``.

    Gradient:
        :meth:`values` has derivatives of every order with respect to all inputs.

    Examples:
        A chain needs three colours whatever its length; an element can be differentiated with respect to a parameter:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> from gradops.functional import SparseHessian
        >>> def energy(x, stiffness):
        ...     return ops.sum(stiffness * ops.cosh(x[1:] - x[:-1]))
        >>> x = np.zeros(5)
        >>> h = SparseHessian(energy, (x, 2.0))
        >>> h.count, h.pattern.nnz
        (3, 13)
        >>> print(h(x, 2.0).toarray()[0])
        [ 2. -2.  0.  0.  0.]
        >>> print(gradops.grad(lambda s: h.values(x, s)[0])(3.0))
        1.0

    See Also:
        :func:`gradops.functional.hessian`, :func:`gradops.scipy.sparse.linalg.logdet`.
    """

    def __init__(self, func: Callable, inputs, argnums: int | tuple[int, ...] = 0, pattern=None):
        inputs = inputs if isinstance(inputs, tuple) else (inputs,)
        if not callable(func):
            raise ArgumentTypeError(
                "`SparseHessian`: `func` must be a function; got {func}.", argument="func", func=TypeOf(func)
            )
        self.func = func
        self.argnums = argnums if isinstance(argnums, tuple) else (argnums,)
        if not self.argnums or not all(type(k) is int and 0 <= k < len(inputs) for k in self.argnums):
            raise ArgumentError(
                f"`SparseHessian`: `argnums` must be positions among {len(inputs)} inputs; got {argnums}.",
                argument="argnums",
            )
        at = Point(Flat(self._chosen_function(func, inputs), (), False), self._chosen(inputs), "SparseHessian")
        numpy = at.backend.is_tensor_type(np.ndarray)
        size = sum(ops.size(x) for x in at.leaves)
        if pattern is None and not numpy:
            pattern = np.ones((size, size), bool)
        if pattern is None:
            found = self._found(inputs, matrices.arrays(at, False))
        else:
            found = patterns.Found(patterns.csc(pattern, None).astype(bool), [], False, None, True)
            if found.pattern.shape != (size, size):
                raise ShapeError(
                    f"`SparseHessian`: `pattern` must have the shape {(size, size)}; got {found.pattern.shape}.",
                    argument="pattern",
                )
        plan = hessian_plan(found)
        self.pattern, self.colors, self.count = plan.pattern, plan.colors, plan.count
        rows, columns = plan.places
        self._places = rows * self.count + columns
        self._compiled = self._values if at.derivatives.own_tape else jit(self._values)

    def _chosen(self, inputs) -> tuple:
        return tuple(inputs[k] for k in self.argnums)

    def _chosen_function(self, func: Callable, inputs) -> Callable:
        """``func`` as a function of the chosen arguments, with the others fixed to their values in ``inputs``."""
        given = list(inputs)

        def chosen_function(*xs):
            for k, x in zip(self.argnums, xs):
                given[k] = x
            return func(*given)

        return chosen_function

    def _found(self, inputs, xs) -> Any:
        """Return the analysis of the function, with its constants as arguments: a constant 0 would hide dependences."""
        rest = [
            k for k, x in enumerate(inputs) if k not in self.argnums and isinstance(data_of(x), (np.ndarray, float))
        ]
        numbers = [np.asarray(data_of(inputs[k])) for k in rest]

        def flat(*parts):
            given = list(inputs)
            for k, x in zip((*self.argnums, *rest), parts):
                given[k] = x
            return self.func(*given)

        def product(func, all_parts, vs):
            count = len(xs)
            return hvp(lambda *parts: func(*parts, *all_parts[count:]), tuple(all_parts[:count]), tuple(vs))

        return matrices.program(Flat(flat, (), False), "hvp", product, [*xs, *numbers], xs).analysis

    def values(self, *inputs):
        """Return the elements in the order of :attr:`pattern`, by columns and in each by rows.

        Args:
            *inputs: inputs like the original ones, with the same shapes.

        Returns:
            A vector with as many elements as the pattern.

        Gradient:
            Of every order, with respect to all inputs.
        """
        return self._compiled(*inputs)

    def _values(self, *inputs):
        func, xs = self._chosen_function(self.func, inputs), self._chosen(inputs)

        def gradient(*xs):
            found = grad(func, tuple(range(len(xs))))(*xs)
            return ops.concatenate([ops.reshape(x, (-1,)) for x in found])

        return self.elements(linearize(gradient, *xs)[1], xs)

    def elements(self, push: Callable, xs: tuple, recorded: bool = False):
        """Return the elements at ``xs``; ``push`` maps tangents of ``xs`` to the product with the Hessian, a vector.

        Products for many colours are computed as one batch, and always if they are ``recorded``.
        """
        if not self.count:
            return ops.reshape(xs[0], (-1,))
        seeds = patterns.seeds(self.colors, [tuple(np.shape(data_of(x))) for x in xs])
        if recorded:
            return ops.take(ops.reshape(ops.transpose(traces.together(push, seeds)), (-1,)), self._places, 0)
        seeds = [_like(seed, x) for seed, x in zip(seeds, xs)]
        if self.count > MAX_SINGLE_PRODUCTS:
            products = vmap(push, out_axes=1)(*seeds)
        else:
            products = ops.stack([push(*(x[k] for x in seeds)) for k in range(self.count)], 1)
        return ops.take(ops.reshape(products, (-1,)), self._places, 0)

    def __call__(self, *inputs):
        """Return the Hessian as a SciPy CSC matrix of NumPy values; :meth:`values` is differentiable."""
        values = ops.convert_to_numpy(data_of(self.values(*inputs)))
        return patterns.csc((values, self.pattern.indices, self.pattern.indptr), self.pattern.shape)

    def __repr__(self) -> str:
        return f"<gradops sparse Hessian, {self._about()}>"

    def _about(self) -> str:
        rows, count = self.pattern.shape[0], self.pattern.nnz
        return f"{rows} x {rows}, {count} elements, {self.count} colours"

    def _repr_html_(self) -> str:
        picture = _display.places(self.pattern, f"The elements of a sparse Hessian, {self._about()}")
        return _display.block("sparse Hessian", self._about(), picture)


def _like(seeds: np.ndarray, x):
    data = data_of(x)
    return (backends.backend_of(data) or backends.backend_of(seeds)).convert(seeds, like=data)
