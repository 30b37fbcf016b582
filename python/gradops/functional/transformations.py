"""Transformations in JAX's form: they take functions of any structures of tensors, return functions, and compose.

``vjp(f, x)`` returns the value and a function; ``hessian(f)`` is a function. :mod:`.matrices` has the same derivatives
with PyTorch's arguments; both use the contract of :class:`gradops.backends.interface.Derivatives`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from .. import _functions, _tree, backends
from .._functions import Transformed, hides_arguments, hint_arguments
from .._scopes import changed
from ..annotations import P, R, X
from ..autodiff.modes import no_grad
from ..autodiff.variable import data_of
from ..errors import ArgumentError, ArgumentTypeError, Code, GradientError, JitError, Position, ShapeError, TypeOf
from ..flow import custom_gradient
from ..flow.gradient_functions import is_tensor
from ..flow.signatures import Arguments
from ..ops import _checks, conversion, creation, elementwise, shaping
from ..ops._matrices import epsilon
from ..ops._structures import as_tensor, check_functions, owner_of
from ..ops.mapping import map_rows
from ..ops.properties import known_sizes
from . import matrices
from .collectives import named_rows
from .point import Point, is_complex
from .reverse import chosen_of, grad, positions_of
from .shapes import filled_with_zeros
from .structured import pair
from .symbolic_zeros import connected, filled_zeros, moves, symbolic_zero

if TYPE_CHECKING:
    from .._functions import All, Curvature, Differentiable


class _Run:
    """A function at its arguments, as a function from the tensors in its arguments to the tensors in its value.

    Attributes:
        outputs: the value's tensors, after :meth:`value` was called.
    """

    def __init__(self, name: str, f: Callable, args: tuple, has_aux: bool = False, beside=()):
        check_functions(name, f=f)
        _checks.check_flags(name, has_aux=has_aux)
        self.f, self.has_aux = f, has_aux
        leaves, self.form = _tree.flatten(args)
        self.at = Point(self._flat, tuple(leaves), name, tuple(_tree.leaves_of(beside)), form=self.form)
        self.at.argument = "f"
        self.derivatives = self.at.derivatives

    def _flat(self, *xs):
        y = self.f(*_tree.unflatten(self.form, xs))
        if self.has_aux:
            y, self.at.box["aux"] = pair(y)
        leaves, self.value_form = _tree.flatten(y)
        if not leaves:
            raise GradientError("`f` must return tensors; got none.", argument="f")
        return tuple(leaves)

    def weights(self, name: str, given) -> list:
        """A cotangent in the structure of the value, as tensors like the outputs."""
        return self.at.weights(self._leaves(name, given, self.value_form), self.outputs)

    def tangents(self, name: str, given) -> list:
        """Tangents in the structure of the arguments, as tensors like the inputs."""
        return self.at.tangents(self._leaves(name, given, self.form))

    def _leaves(self, name: str, given, form: _tree.Structure) -> tuple:
        leaves, its = _tree.flatten(given)
        if its != form:
            raise ArgumentError(f"`{self.at.name}`: `{name}` must have the structure {form}; got {its}.", argument=name)
        self.at.vector = name
        return tuple(leaves)

    def value(self, outputs):
        self.outputs = list(outputs)
        return _tree.unflatten(self.value_form, self.outputs)


@overload
def vjp(f: Callable[..., R], *primals, has_aux: Literal[False] = False) -> tuple[R, Callable[[Any], tuple]]: ...
@overload
def vjp(f: Callable[..., tuple[R, X]], *primals, has_aux: bool) -> tuple[R, Callable[[Any], tuple], X]: ...
@hint_arguments
def vjp(f: Callable, *primals, has_aux: bool = False) -> Any:
    """The value of ``f`` and its pullback, a function from cotangents of the value to gradients.

    ``f`` runs once, however often the pullback is called: all rows of a Jacobian, or the gradients of several losses,
    need a single forward pass.

    Args:
        f: a function that returns a tensor or a structure of tensors; with ``has_aux`` a pair of that and auxiliary
            data.
        primals: the arguments of ``f``: tensors, variables, numbers, or nested structures of them.
        has_aux: True if ``f`` also returns auxiliary data, which are passed through.

    Returns:
        ``(value, pullback)``, or ``(value, pullback, aux)``. ``pullback(cotangent)`` takes the structure, shapes and
        dtypes of the value. It returns a tuple with a gradient for each of the ``primals``, in its structure; zeros
        where the value does not depend on it. Gradients of complex numbers are ``dL/dRe + i dL/dIm``, also on JAX.

    Raises:
        GradientError: a value that is not a floating tensor.
        ArgumentTypeError: an argument of an integer or bool dtype.
        ArgumentError, ShapeError: from the pullback, for a cotangent of another structure or shape.

    Gradient:
        The pullback can be differentiated with respect to its cotangents and everything ``f`` depends on, by enclosing
        derivatives, to any order. Uses the tape, torch's autograd, ``jax.vjp``, or a persistent ``tf.GradientTape``.
        After ``jax.vjp``.

    Examples:
        The gradients of two losses from one forward pass:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> value, pullback = gradops.vjp(lambda w: ops.stack([ops.sum(w**2), ops.sum(w)]), np.array([1.0, 2.0]))
        >>> print(value, *pullback(np.array([1.0, 0.0])), *pullback(np.array([0.0, 1.0])))
        [5. 3.] [2. 4.] [1. 1.]

    See Also:
        :func:`linearize`, for Jacobian-vector products; :func:`gradops.functional.vjp` with PyTorch's arguments.
    """
    run = _Run("vjp", f, primals, has_aux)
    outputs, pull = run.derivatives.pulling(run.at)

    def pullback(cotangent):
        return _tree.unflatten(run.form, pull(run.weights("cotangent", cotangent)))

    value = run.value(outputs)
    return (value, pullback, run.at.box["aux"]) if has_aux else (value, pullback)


@overload
def linearize(f: Callable[..., R], *primals, has_aux: Literal[False] = False) -> tuple[R, Callable[..., R]]: ...
@overload
def linearize(f: Callable[..., tuple[R, X]], *primals, has_aux: bool) -> tuple[R, Callable[..., R], X]: ...
@hint_arguments
def linearize(f: Callable, *primals, has_aux: bool = False) -> Any:
    """The value of ``f`` and its pushforward, a linear function from the arguments' tangents to the value's.

    Args:
        f, primals: see :func:`vjp`.
        has_aux: True if ``f`` returns a pair of its value and auxiliary data; these come from another run of ``f``.

    Returns:
        ``(value, pushforward)``, or ``(value, pushforward, aux)``. ``pushforward(*tangents)`` takes a tangent for each
        of the ``primals``, in its structure, and returns one in the structure of the value. ``f`` runs once,
        however often the pushforward is called.

    Raises:
        The errors of :func:`vjp`; ArgumentError, ShapeError from the pushforward, for tangents of another structure or
        shape.

    Gradient:
        See :func:`vjp`. On the tape, tangents propagate through the graph that ``f`` left, on JAX by ``jax.linearize``;
        on PyTorch and TensorFlow the pushforward is the transpose of the pullback (Townsend 2017), a pass through its
        graph.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> value, pushforward = gradops.linearize(np.square, np.array([1.0, 2.0, 3.0]))
        >>> print(pushforward(np.array([1.0, 0.0, 0.0])), pushforward(np.ones(3)))
        [2. 0. 0.] [2. 4. 6.]

    See Also:
        :func:`jvp` for one tangent; :func:`vjp`; :func:`linear_transpose`.
    """
    run = _Run("linearize", f, primals, has_aux)
    outputs, push = run.derivatives.pushing(run.at)

    def pushforward(*tangents):
        return _tree.unflatten(run.value_form, push(run.tangents("tangents", tangents)))

    value = run.value(outputs)
    return (value, pushforward, pair(f(*primals))[1]) if has_aux else (value, pushforward)


@overload
def jvp(f: Callable[..., R], primals, tangents, has_aux: Literal[False] = False) -> tuple[R, R]: ...
@overload
def jvp(f: Callable[..., tuple[R, X]], primals, tangents, has_aux: bool) -> tuple[R, R, X]: ...
@hint_arguments
def jvp(f: Callable, primals, tangents, has_aux: bool = False) -> Any:
    """The value of ``f`` and the product of its Jacobian with ``tangents``, by forward mode.

    Args:
        f: see :func:`vjp`.
        primals, tangents: tuples or lists, of the arguments of ``f`` and of a tangent for each in its structure.
        has_aux: see :func:`linearize`.

    Returns:
        ``(value, tangent)``, both in the structure of the value, or ``(value, tangent, aux)``.

    Raises:
        The errors of :func:`linearize`; ArgumentTypeError: ``primals`` or ``tangents`` is not a tuple or list.

    Gradient:
        See :func:`gradops.functional.jvp`. After ``jax.jvp``.

    Examples:
        >>> import gradops
        >>> from gradops import ops
        >>> value, tangent = gradops.jvp(lambda x, y: x * ops.exp(y), (2.0, 0.0), (1.0, 10.0))
        >>> print(value, tangent)
        2.0 21.0

    See Also:
        :func:`linearize` for many tangents at one point; :func:`hvp`.
    """
    _check_tuples("jvp", primals, tangents)
    run = _Run("jvp", f, tuple(primals), has_aux, beside=tangents)
    v = tuple(run.tangents("tangents", tuple(tangents)))
    outputs, products = run.derivatives.jvp(run.at, v, False, False)
    found = (run.value(outputs), _tree.unflatten(run.value_form, products))
    return (*found, pair(f(*primals))[1]) if has_aux else found


def _check_tuples(name: str, primals, tangents) -> None:
    for argument, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, (tuple, list)):
            raise ArgumentTypeError(
                f"`{name}`: `{argument}` must be a tuple, one for each argument of `f`; got {{given}}.",
                argument=argument,
                hint=f"`gradops.functional.{name}(f, x, v)` takes the tensors themselves",
                given=TypeOf(given),
            )


def linear_transpose(f: Callable, *primals) -> Callable[[Any], tuple]:
    """The transpose of a linear function.

    Args:
        f: a function that is jointly linear in all of its arguments.
        primals: arguments of ``f``; only their structure, shapes and dtypes matter, so a
            :class:`gradops.functional.ShapeDtypeStruct` may stand for a tensor.

    Returns:
        A function that takes a cotangent in the structure of the value of ``f`` and returns a tuple with one for each
        of ``primals``. For complex functions it is the transpose, as in JAX, whereas the pullback is its conjugate.

    Raises:
        The errors of :func:`vjp`; GradientError: ``f`` is not linear, as far as a second run at random arguments shows.
        In a compiled program, whose values are not known, this is not checked.

    Gradient:
        See :func:`vjp`.

    Examples:
        The adjoint of a moving average, without its matrix:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> transposed = gradops.linear_transpose(lambda x: (x[1:] + x[:-1]) / 2, np.zeros(4))
        >>> print(*transposed(np.array([2.0, 0.0, 4.0])))
        [1. 1. 2. 2.]
        >>> print(gradops.grad(lambda w: ops.sum(transposed(w)[0] ** 2))(np.array([2.0, 0.0, 4.0])))
        [2. 3. 4.]

    See Also:
        :func:`vjp`, for any function; :func:`linearize`.
    """
    run = _Run("linear_transpose", f, filled_with_zeros("linear_transpose", primals))
    outputs, pull = run.derivatives.pulling(run.at)
    run.value(outputs)
    _check_linear(run, pull)

    def transposed(cotangent):
        weights = [_conj(w) for w in run.weights("cotangent", cotangent)]
        return _tree.unflatten(run.form, [_conj(g) for g in pull(weights)])

    return transposed


def _conj(x):
    return elementwise.conj(x) if is_complex(x) else x


def _check_linear(run: _Run, pull: Callable) -> None:
    """Raise unless ``<w, f(x)> = <f^T(w), x>`` at another ``x`` than the one at which the transpose was taken."""
    rng = np.random.default_rng(0)

    def drawn(like: list) -> list:
        return [run.at.backend.convert(rng.normal(size=tuple(x.shape)), conversion.dtype(x), data_of(x)) for x in like]

    x, w = drawn(run.at.leaves), drawn(run.outputs)
    try:
        with no_grad():
            pairs = [*zip(w, run.at.run(*x)), *zip(pull(w), x)]
        products = [np.vdot(*(run.at.backend.to_numpy(data_of(z)) for z in two)).real for two in pairs]
    except JitError:
        return
    apart = sum(products[: len(w)]) - sum(products[len(w) :])
    if abs(apart) > max(map(epsilon, run.outputs)) ** 0.5 * sum(map(abs, products)):
        raise GradientError("`linear_transpose`: `f` must be linear in its arguments.", argument="f")


@hint_arguments
def jacobian(
    f: Callable[P, Any],
    argnums: int | str | tuple[int | str, ...] = 0,
    has_aux: bool = False,
    strategy: str | None = None,
    chunk_size: int | None = None,
) -> Transformed[P, Any]:
    """A function that returns the Jacobian of ``f``.

    Args:
        f, argnums: see :func:`gradops.grad`; the value of ``f`` may have any shape, or be a structure of tensors.
        has_aux: True if ``f`` returns a pair of its value and auxiliary data; these come from another run of ``f``.
        strategy: ``"reverse-mode"``, by rows (``jax.jacrev``); ``"forward-mode"``, by columns (``jax.jacfwd``);
            None selects the cheaper one on the tape and JAX.
        chunk_size: see :func:`gradops.functional.jacobian`.

    Returns:
        A function of the same arguments as ``f`` that returns the Jacobian, or ``(jacobian, aux)``: a structure like
        the value whose entries are structures like the argument (a tuple for several ``argnums``). Each tensor has the
        value's shape followed by the argument's.

    Raises:
        The errors of :func:`vjp`; ArgumentError: an unknown ``strategy``, or a ``chunk_size`` below 1.

    Gradient:
        See :func:`gradops.functional.jacobian`, which has PyTorch's arguments, and sparse Jacobians.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> found = gradops.jacobian(lambda p: p["a"] * p["x"])({"a": 2.0, "x": np.array([1.0, 3.0])})
        >>> print(found["a"], found["x"].tolist())
        [1. 3.] [[2.0, 0.0], [0.0, 2.0]]

    See Also:
        :func:`hessian`; :func:`vjp` and :func:`linearize` for products with the Jacobian.
    """

    def derived(run: _Run):
        rows = matrices.jacobian(run.at.given, tuple(run.at.leaves), strategy=strategy, chunk_size=chunk_size)
        return run.value_form, rows

    if strategy is not None:
        _checks.choice("jacobian", strategy, matrices.STRATEGIES, "strategy")
    chunk_size = matrices.checked_chunk_size("jacobian", chunk_size)
    derivative = _derivative("jacobian", derived, f, argnums, has_aux)
    return Transformed(derivative, jacobian, f, argnums, has_aux, strategy, chunk_size)


@overload
def hessian(
    f: Differentiable[X, P, All, Any],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    chunk_size: int | None = None,
) -> Curvature[X, P, All]: ...
@overload
def hessian(
    f: Callable[P, Any],
    argnums: int | str | tuple[int | str, ...] = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Transformed[P, Any]: ...
@hint_arguments
def hessian(
    f: Callable,
    argnums: int | str | tuple[int | str, ...] = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Transformed:
    """A function that returns the Hessian of ``f``.

    Args:
        f, argnums, has_aux, chunk_size: see :func:`jacobian`.

    Returns:
        A function of the same arguments as ``f`` that returns the Hessian, or ``(hessian, aux)``: a structure like the
        argument whose entries are again structures like the argument. If the value is not a scalar, this is nested in
        the value's structure, as in ``jax.hessian``.

    Raises:
        The errors of :func:`vjp`; ArgumentError: a ``chunk_size`` below 1.

    Gradient:
        See :func:`gradops.functional.hessian`, which has PyTorch's arguments, and sparse Hessians.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> print(gradops.hessian(ops.logsumexp)(np.zeros(2)))
        [[ 0.25 -0.25]
         [-0.25  0.25]]

    See Also:
        :func:`hvp` for a product with the Hessian; :func:`jacobian`.
    """

    def derived(run: _Run):
        def scalar(*xs):
            y = run.f(*_tree.unflatten(run.form, xs))
            leaves = _tree.leaves_of(y)
            if leaves and all(map(is_tensor, leaves)) and (leaves[0] is not y or conversion.size(y) != 1):
                raise _Several
            return y

        return None, matrices.hessian(scalar, tuple(run.at.leaves), chunk_size=chunk_size)

    chunk_size = matrices.checked_chunk_size("hessian", chunk_size)
    of_scalar = _derivative("hessian", derived, f, argnums, has_aux)

    def second(*args, **kwargs):
        try:
            return of_scalar(*args, **kwargs)
        except _Several:
            first = jacobian(f, argnums, has_aux, chunk_size=chunk_size)
            return jacobian(first, argnums, has_aux, chunk_size=chunk_size)(*args, **kwargs)

    return Transformed(hides_arguments(second), hessian, f, argnums, has_aux, chunk_size)


class _Several(Exception):
    """Raised for a value that is not a scalar."""


def _derivative(name: str, derived: Callable, f: Callable, argnums, has_aux: bool) -> Callable:
    """A function of the arguments of ``f`` that returns a derivative with respect to those at ``argnums``.

    Args:
        derived: maps a run to the structure of the rows (None if it is that of the columns) and the rows of blocks.
    """
    positions, several = positions_of(f, argnums, name)
    _checks.check_flags(name, has_aux=has_aux)

    def derivative(*args, **kwargs):
        args, kwargs, chosen = chosen_of(f, args, kwargs, positions)

        def of_chosen(*parts):
            result = f(*_tree.filled(args, chosen, parts), **kwargs)
            return pair(result)[0] if has_aux else result

        run = _Run(name, of_chosen, tuple([args[i] for i in chosen]))
        form, rows = derived(run)
        columns = run.form if several else run.form.parts[0]
        found = _tree.unflatten(form or columns, [_tree.unflatten(columns, row) for row in rows])
        return (found, pair(f(*args, **kwargs))[1]) if has_aux else found

    return derivative


@hint_arguments
def hvp(f: Callable, primals, tangents):
    """The gradient of ``f`` and the product of its Hessian with ``tangents``: forward over reverse.

    Args:
        f: a function to a scalar.
        primals, tangents: see :func:`jvp`.

    Returns:
        ``(gradient, product)``, as from ``jvp(grad(f), primals, tangents)``: each in the structure of the argument,
        a tuple for several arguments.

    Raises:
        The errors of :func:`jvp` and :func:`gradops.grad`.

    Gradient:
        See :func:`jvp`.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> gradient, product = gradops.hvp(lambda x: ops.sum(x**3), (np.array([1.0, 2.0]),), (np.array([1.0, 1.0]),))
        >>> print(gradient, product)
        [ 3. 12.] [ 6. 12.]

    See Also:
        :func:`hessian`; :func:`gradops.functional.hvp`, which returns the value and the product.
    """
    _check_tuples("hvp", primals, tangents)
    several = len(primals) > 1
    return jvp(grad(f, tuple(range(len(primals))) if several else 0), primals, tangents)


@hint_arguments
def vmap(
    f: Callable[P, R],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_size: int | None = None,
    chunk_size: int | None = None,
    axis_name: Any = None,
    randomness: str | None = None,
) -> Transformed[P, R]:
    """A function that applies ``f`` to all slices of its arguments and stacks the results.

    Args:
        f: a function of tensors, or structures of tensors, without the mapped dimension; it returns a structure of
            tensors.
        in_axes: the dimension of the arguments to map over; None marks shared arguments. A single axis for all
            arguments, or a tuple with one for each. An entry may be a structure like the argument; its parts apply to
            everything below. Arguments passed by name are mapped over their first dimension.
        out_axes: the position of the mapped dimension in the value: one for all tensors, or a structure of them.
        axis_size: the size of the mapped dimension; needed if all ``in_axes`` are None.
        chunk_size: the most slices that ``f`` is vectorized over at once, which bounds the memory; chunks run one after
            the other, in a compiled function as a loop. 1 runs slice by slice, without vectorization; None takes all.
        axis_name: a name of the mapped dimension, for :func:`psum`, :func:`pmean`, :func:`pmax`, :func:`pmin` and
            :func:`axis_index` in ``f``. Where rows are not computed at once, they run in turn from one reduction to the
            next, which all of them must come to.
        randomness: on PyTorch, what its random functions do in ``f``: ``"different"`` numbers for each row (the
            default), the ``"same"`` for all, or an ``"error"``. Other libraries have no such setting.

    Returns:
        A function of the arguments of ``f``, each with an additional dimension if it is mapped over.

    Raises:
        ShapeError: mapped dimensions of different sizes, or a number in place of a tensor.
        AxisError: an axis out of range.
        ArgumentError, ArgumentTypeError: axes of another structure; no axis at all and no ``axis_size``; a
            ``chunk_size`` below 1.

    Gradient:
        Through every call, to the arguments and the values ``f`` closes over. ``torch.func.vmap``, ``jax.vmap`` and
        ``tf.vectorized_map`` run ``f`` once; so do NumPy and :func:`jit`, with ops on all rows. ``f`` runs row by row,
        with the same results, if it reads values, if an enclosing derivative uses the tape, or if TensorFlow would lose
        a custom gradient. Draw random numbers outside, or with keys that are mapped over.

    Examples:
        Per-example gradients of a loss:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> def loss(w, x, y):
        ...     return (ops.dot(w, x) - y) ** 2
        >>> w, xs, ys = np.array([1.0, -1.0]), np.array([[1.0, 2.0], [3.0, 0.0]]), np.array([0.0, 1.0])
        >>> print(gradops.vmap(gradops.grad(loss), in_axes=(None, 0, 0))(w, xs, ys))
        [[-2. -4.]
         [12.  0.]]

    See Also:
        :func:`gradops.ops.vectorized_map` for the first dimension only, :func:`gradops.ops.map` to run row by row,
        :func:`gradops.ops.vectorize` for broadcasting.
    """
    if not callable(f):
        raise ArgumentTypeError("`f` must be a function; got {f}.", argument="f", f=TypeOf(f))
    if axis_size is not None:
        axis_size = _checks.integer("vmap", axis_size, "axis_size", 0)
    chunk_size = matrices.checked_chunk_size("vmap", chunk_size)
    if chunk_size is not None and axis_name is not None:
        raise ArgumentError(
            "`vmap`: `chunk_size` has no meaning with `axis_name`, whose reductions need all rows at once.",
            argument="chunk_size",
            hint="leave one of them out",
        )
    if randomness is not None:
        _checks.choice("vmap", randomness, ("error", "different", "same"), "randomness")

    def mapped(*args, **kwargs):
        leaves, form = _tree.flatten((args, kwargs))
        axes = [*_axes(in_axes, form.parts[0], "in_axes"), *[0] * form.parts[1].leaves]
        places = [i for i, axis in enumerate(axes) if axis is not None]
        owner = owner_of("vmap", *[leaves[i] for i in places])
        rows = [_first(as_tensor("vmap", leaves[i], owner, "in_axes"), axes[i]) for i in places]
        sizes = known_sizes(conversion.shape(x)[0] for x in rows) | (set() if axis_size is None else {axis_size})
        if len(sizes) > 1:
            shapes = ", ".join(f"{conversion.shape(leaves[i])} along {{axis_{i}}}" for i in places)
            wanted = "" if axis_size is None else f" of `axis_size` {axis_size}"
            along: dict[str, Any] = {f"axis_{i}": Position(axes[i]) for i in places}
            raise ShapeError(f"`vmap`: the mapped dimensions must be of one size{wanted}; got {shapes}.", **along)
        if not (sizes or rows):
            raise ArgumentError(
                "`vmap`: nothing is mapped over: no tensor has an axis in `in_axes`.",
                argument="in_axes",
                hint="give `axis_size` for as many equal calls",
            )

        def run(*xs):
            args, kwargs = _tree.unflatten(form, _tree.filled(leaves, places, xs))
            return f(*args, **kwargs)

        count = sizes.pop() if sizes else None
        rows = rows or [creation.zeros((count,))]
        settings = _random_settings(randomness, owner)
        if axis_name is None:
            stacked = map_rows("vmap", run, rows, count, owner, chunk_size, **settings)
        else:
            stacked = named_rows(axis_name, run, rows, conversion.shape(rows[0])[0], owner, **settings)
        found, value = _tree.flatten(stacked)
        to = _axes(out_axes, value, "out_axes")
        return _tree.unflatten(value, [y if a == 0 else shaping.moveaxis(y, 0, a) for y, a in zip(found, to)])

    return Transformed(mapped, vmap, f, in_axes, out_axes, axis_size, chunk_size, axis_name, randomness)


def _random_settings(randomness: str | None, owner: backends.Backend) -> dict[str, str]:
    """The settings of the library's map for random numbers.

    Raises:
        ArgumentError: another library than PyTorch.
    """
    if randomness is None:
        return {}
    if not owner.derivatives.own_tape:
        raise ArgumentError(
            f"`vmap`: `randomness` is a setting of PyTorch; got tensors of {owner.name}.",
            argument="randomness",
            hint="draw random numbers outside, or map over keys or seeds",
        )
    return {"randomness": randomness}


def _first(x, axis: int):
    """A tensor with an axis moved to the front."""
    if not len(conversion.shape(x)):
        raise ShapeError(
            "`vmap`: a number has no dimension to map over.",
            hint="give {None} for it, as in {axes}",
            axes=Code("`in_axes=(0, None)`", "`in_axes = list(1, NULL)`; `c()` would drop it"),
        )
    axis = _checks.check_axis("vmap", axis, len(conversion.shape(x)))
    return x if axis == 0 else shaping.moveaxis(x, axis, 0)


def _axes(axes, form: _tree.Structure, name: str) -> list:
    """The axis of each leaf; ``axes`` may have the leaves' structure or stop above it."""
    if isinstance(axes, (int, np.integer)) and not isinstance(axes, bool) or axes is None and name == "in_axes":
        return [axes] * form.leaves
    if isinstance(axes, dict) and form.kind == "dict" and set(axes) == set(form.keys):
        parts = [axes[key] for key in form.order]
    elif isinstance(axes, (list, tuple)) and form.kind == "sequence" and len(axes) == len(form.parts):
        parts = list(axes)
    else:
        wanted = "an axis" if name == "out_axes" else "an axis, {None}"
        raise ArgumentError(
            f"`vmap`: `{name}` must be {wanted} or a structure of them as {form}; got {{axes}}.",
            argument=name,
            axes=Position(axes),
        )
    return [axis for part, inner in zip(parts, form.parts) for axis in _axes(part, inner, name)]


_transposing: ContextVar[tuple] = ContextVar("gradops_transposing", default=())
"""The functions whose rules are being transposed by nested backward passes, outermost first."""

_applied: ContextVar[tuple] = ContextVar("gradops_applied", default=())
"""The functions whose rules are running, outermost first, with the rules' tangents."""

_MAX_NESTING = 20
"""The number of times a rule may run inside itself; more is an endless recursion."""


class custom_jvp(_functions.Made[P, R], is_public=True):
    """A function with a custom derivative in forward mode; reverse mode follows by transposition.

    Put ``@custom_jvp`` before the function and ``@f.defjvp`` before its rule. ``rule(primals, tangents)`` gets two
    tuples, the arguments and a tangent for each, and returns the value and its tangent, which must be linear in the
    tangents. ``f.defjvps(...)`` takes one rule for each argument, ``rule(tangent, value, *primals)``, which returns its
    part of the tangent; None stands for an argument without derivative. A tangent has the structure, shape and dtype of
    its argument; it is None if the argument is not a floating tensor or number. Methods can be decorated. After
    ``jax.custom_jvp``.

    Args:
        fun: a function of tensors, structures of tensors, and anything else, that returns a tensor or a structure of
            tensors.
        nondiff_argnums, nondiff_argnames: the positions or names of arguments without a tangent, which the rule gets
            before ``primals``.

    Returns:
        A function of the same arguments.

    Raises:
        GradientError: the function is called without a rule; or, from a derivative, the rule does not return a pair, or
            its tangent has another structure or shape than the value.
        ArgumentTypeError: ``fun`` is not a function, or ``nondiff_argnums`` are not positions. ArgumentError: ``fun``
            has no argument of a name in ``nondiff_argnames``.

    Gradient:
        The rule's, in forward and reverse mode, to any order, as far as the rule is differentiable. The function
        becomes a :func:`gradops.custom_gradient` whose gradient function is the transpose of the rule. The value is
        always the function's own, not the rule's. A rule may apply the function to tangents in which it is linear; the
        transpose then uses ``fun`` itself.

    Examples:
        A function that can be differentiated safely for large ``x``:

        >>> import gradops
        >>> from gradops import ops
        >>> @gradops.custom_jvp
        ... def log1pexp(x):
        ...     return ops.log(1.0 + ops.exp(x))
        >>> @log1pexp.defjvp
        ... def rule(primals, tangents):
        ...     (x,), (t,) = primals, tangents
        ...     return log1pexp(x), t * (1.0 - 1.0 / (1.0 + ops.exp(x)))
        >>> print(gradops.grad(log1pexp)(100.0), gradops.jvp(log1pexp, (0.0,), (2.0,))[1])
        1.0 1.0

        A rule for each argument:

        >>> scaled = gradops.custom_jvp(lambda x, k: k * x)
        >>> scaled.defjvps(lambda t, y, x, k: 10.0 * t, None)
        >>> print(*gradops.grad(scaled, (0, 1))(2.0, 3.0))
        10.0 0.0

    See Also:
        :func:`gradops.custom_gradient`, whose rule is given in reverse mode.
    """

    def __init__(
        self,
        fun: Callable[P, R],
        nondiff_argnums: int | tuple[int, ...] = (),
        nondiff_argnames: str | tuple[str, ...] = (),
    ):
        check_functions("custom_jvp", fun=fun)
        self.nondiff_argnums = fixed_positions("custom_jvp", fun, nondiff_argnums, nondiff_argnames)
        self.rule: Callable | None = None
        self.symbolic_zeros = False
        functools.update_wrapper(self, fun)
        self.fun, self._arguments = fun, Arguments(fun)

    def _made_of(self) -> tuple[Callable, tuple]:
        return _custom_jvp, (self.fun, self.nondiff_argnums, self.rule, self.symbolic_zeros)

    def __repr__(self) -> str:
        return f"<gradops custom_jvp of {getattr(self.fun, '__qualname__', self.fun)}>"

    def defjvp(self, jvp: Callable, symbolic_zeros: bool = False) -> Callable:
        """Set the rule.

        ``jvp(primals, tangents)`` returns the value and its tangent. With ``symbolic_zeros``, the tangent of a tensor
        that is not differentiated is a :class:`gradops.functional.SymbolicZero`, which the rule may also return.
        Returns ``jvp``, to be a decorator.
        """
        check_functions("custom_jvp.defjvp", jvp=jvp)
        _checks.check_flags("custom_jvp.defjvp", symbolic_zeros=symbolic_zeros)
        self.rule, self.symbolic_zeros = jvp, symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable | None) -> None:
        """Set a rule for each argument, or None; ``jvp(tangent, value, *primals)`` returns its part of the tangent."""

        call: Callable = self

        def rule(*given):
            *fixed, primals, tangents = given
            value = call(*all_arguments(self.nondiff_argnums, fixed, primals))
            parts = [jvp(t, value, *primals) for jvp, t in zip(jvps, tangents) if jvp is not None and t is not None]
            if not parts:
                return value, _tree.map_leaves(creation.zeros_like, value)
            return value, functools.reduce(lambda a, b: _tree.map_leaves(elementwise.add, a, b), parts)

        self.rule, self.symbolic_zeros = rule, False

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        rule = self.rule
        fun: Callable = self.fun
        if rule is None:
            raise GradientError(
                f"the `custom_jvp` function {getattr(self.fun, '__name__', self.fun)!r} has no rule.",
                argument="fun",
                hint="give it one by `f.defjvp(rule)`",
            )
        given = arguments_by_position("custom_jvp", self._arguments, args, kwargs)
        fixed = [given[i] for i in self.nondiff_argnums]
        primals = [x for i, x in enumerate(given) if i not in self.nondiff_argnums]
        leaves, form = _tree.flatten(primals)
        places = [i for i, x in enumerate(leaves) if moves(x) and (not self.symbolic_zeros or connected(x))]
        still = [symbolic_zero(x) if self.symbolic_zeros else 0.0 if type(x) is float else None for x in leaves]

        def filled(xs, others):
            found = dict(zip(places, xs))
            return tuple(_tree.unflatten(form, [found.get(i, x) for i, x in enumerate(others)]))

        def run(*xs):
            parts = filled(xs, leaves)
            value = fun(*all_arguments(self.nondiff_argnums, fixed, parts))
            like, value_form = _tree.flatten(value)

            def tangent(*ts):
                with changed(_applied, (*_applied.get(), (self, ts))):
                    made = rule(*fixed, parts, filled(ts, still))
                if not isinstance(made, (tuple, list)) or len(made) != 2:
                    raise GradientError(
                        "the rule of a `custom_jvp` must return a pair of the value and its tangent; got {given}.",
                        argument="rule",
                        given=TypeOf(made),
                    )
                return _smooth(_like(filled_zeros(made[1], value), like, value_form), like)

            def body(*xs):
                return _smooth(
                    _tree.leaves_of(fun(*all_arguments(self.nondiff_argnums, fixed, filled(xs, leaves)))), like
                )

            def pull(upstream):
                within = _transposing.get()
                if self in within:
                    _, pullback = vjp(body, *xs)
                else:
                    _, pullback = vjp(tangent, *[creation.zeros_like(x) for x in xs])
                with changed(_transposing, (*within, self)):
                    return pullback(_smooth(_tree.leaves_of(upstream), like))

            return value, pull

        given_to = [leaves[i] for i in places]
        own = [ts for f, ts in _applied.get() if f is self]
        if len(own) > _MAX_NESTING:
            raise GradientError(
                "the rule of a `custom_jvp` differentiates its own function, which calls the same rule without end.",
                argument="rule",
                hint="differentiate a function without the rule there",
            )
        on_tangents = any(_differentiated_with(given_to, ts) for ts in own)
        return custom_gradient(run)(*given_to) if places and not on_tangents else fun(*given)


def _custom_jvp(
    fun: Callable, nondiff_argnums: tuple[int, ...], rule: Callable | None, symbolic_zeros: bool = False
) -> custom_jvp:
    made: custom_jvp = custom_jvp(fun, nondiff_argnums)
    made.rule, made.symbolic_zeros = rule, symbolic_zeros
    return made


def fixed_positions(name: str, fun: Callable, positions, names) -> tuple[int, ...]:
    """The positions of the arguments of ``fun`` that are not differentiated, given by position and by name."""
    found = [_checks.integer(name, i, "nondiff_argnums", 0) for i in _several(positions)]
    known = Arguments(fun).names
    for wanted in _several(names):
        if not isinstance(wanted, str) or wanted not in known:
            raise ArgumentError(
                f"`{name}`: `nondiff_argnames` must name arguments of `fun`: {', '.join(known)}; got {wanted!r}.",
                argument="nondiff_argnames",
            )
        found.append(known.index(wanted))
    return tuple(sorted(set(found)))


def _several(value) -> tuple:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def arguments_by_position(name: str, arguments: Arguments, args: tuple, kwargs: dict) -> tuple:
    """All arguments of a call of a function with a custom rule, by position, completed by defaults."""
    given, named = arguments.positional(args, kwargs)
    if named:
        raise ArgumentError(
            f"a `{name}` function takes its arguments by position; got {', '.join(named)} by name.", argument="fun"
        )
    return (*given, *arguments.defaults_after(len(given)))


def all_arguments(positions: tuple[int, ...], fixed, primals) -> list:
    """All arguments in order: the ``fixed`` ones, which are not differentiated, at ``positions``, and the others."""
    args = list(primals)
    for i, x in sorted(zip(positions, fixed), key=lambda pair: pair[0]):
        args.insert(i, x)
    return args


def _differentiated_with(xs: list, ts: tuple) -> bool:
    """True if one of ``xs`` depends on ``ts``, if the library knows this before a backward pass."""
    backend = backends.backend_of(ts[0])
    return backend is not None and backend.derivatives.together(xs, ts)


def _smooth(values: list, like: list) -> list:
    """The elements of ``values`` whose counterparts in ``like`` are floating."""
    return [v for v, y in zip(values, like) if type(y) is float or moves(y)]


def _like(tangent, like: list, form: _tree.Structure) -> list:
    """The leaves of a rule's tangent, after a check that it has the structure and shapes of the value."""
    leaves, its = _tree.flatten(tangent)
    shapes = [conversion.shape(y) for y in like]
    if its != form or [conversion.shape(t) for t in leaves] != shapes:
        raise GradientError(
            f"the rule of a `custom_jvp` must return a tangent like the value, {form} of shapes {shapes}; got {its} of "
            f"shapes {[conversion.shape(t) for t in leaves]}.",
            argument="rule",
        )
    return leaves
