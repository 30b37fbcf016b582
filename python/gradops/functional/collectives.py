"""Reductions over the rows of a :func:`gradops.vmap` that has a name: ``psum`` and the like, and ``axis_index``.

A named map also maps over the numbers of the rows. A reduction is a function of a value and of these numbers with a
rule for all rows (:func:`.row_rules.call_by_rule`). It reduces in the map that the numbers belong to; in a map outside
or inside of that one, it applies itself to all rows. JAX has reductions of its own. For variables and TensorFlow's
tensors, which no map computes at once, the rows run in turn (:mod:`.lockstep`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np

from .. import _tree, backends, ops
from .._scopes import changed
from ..autodiff.variable import Variable, data_of
from ..errors import ArgumentError, ArgumentTypeError, GradientError, TypeOf
from ..flow import custom_gradient
from ..flow.gradient_functions import is_tensor
from ..ops._structures import Recorded, any_variable, as_tensor, owner_of
from ..ops.mapping import vectorized_rows
from .lockstep import Seat, Seats
from .row_rules import call_by_rule
from .symbolic_zeros import connected, moves

_axes: ContextVar[dict[Any, Any]] = ContextVar("gradops_axes", default={})  # noqa: B039  # replaced, never changed
"""The numbers of the rows of the enclosing maps, by the maps' names; the backend on JAX, a :class:`Seat` in turn."""


def named_rows(axis_name, function: Callable, rows: list, count: int, owner: backends.Backend, **settings):
    """``function`` of the rows of tensors, stacked; reductions inside of it may name the rows by ``axis_name``."""
    jax = owner.kernel("collective") is not None

    def named(numbers, *xs):
        with changed(_axes, {**_axes.get(), axis_name: numbers}):
            return function(*xs)

    batches = owner.kernel("vectorized_map") is None
    if (jax or batches or owner.kernel("custom_vmap")) and not any_variable(rows):
        try:
            if jax:
                return vectorized_rows("vmap", lambda *xs: named(owner, *xs), rows, owner, axis_name=axis_name)
            numbers = owner.convert(np.arange(count), like=data_of(rows[0]))
            return vectorized_rows("vmap", named, [numbers, *rows], owner, **settings)
        except Recorded:  # the function closes over variables
            pass
        except Exception:  # a batch refuses functions that read values
            if not batches:
                raise
    seats = Seats(count, lambda name, xs: _OF_ROWS[name](ops.stack(xs)), owner)
    found = seats.run(lambda seat: named(seat, *[x[seat.number] for x in rows]))
    leaves, forms = zip(*map(_tree.flatten, found))
    return _tree.unflatten(forms[0], [ops.stack(list(column)) for column in zip(*leaves)])


def psum(x, axis_name):
    """The sum of ``x`` over the rows of the enclosing :func:`gradops.vmap` of that name.

    Args:
        x: a tensor or number, or a structure of them.
        axis_name: the ``axis_name`` of an enclosing ``vmap``, or a tuple of several.

    Returns:
        Tensors of the shapes in ``x``, equal in all rows.

    Raises:
        ArgumentError: no enclosing ``vmap`` has the name.

    Gradient:
        The sum of the rows' gradients, as in JAX: inside of the mapped function each row is differentiated with respect
        to its own argument, and the sum's gradient is that of all rows. After ``jax.lax.psum``.

    Examples:
        Weights that add up to 1 over all rows:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> def share(x):
        ...     return x / gradops.psum(x, "rows")
        >>> print(gradops.vmap(share, axis_name="rows")(np.array([1.0, 3.0, 4.0])))
        [0.125 0.375 0.5  ]
        >>> slopes = gradops.vmap(gradops.grad(lambda x: gradops.psum(x**2, "rows")), axis_name="rows")
        >>> print(slopes(np.array([1.0, 3.0])))
        [ 4. 12.]

    See Also:
        :func:`pmean`, :func:`pmax`, :func:`axis_index`; :func:`gradops.vmap`.
    """
    return _reduced("psum", x, axis_name)


def pmean(x, axis_name):
    """The mean of ``x`` over the rows of the enclosing :func:`gradops.vmap` of that name.

    Args:
        x, axis_name: see :func:`psum`.

    Returns:
        Tensors of the shapes in ``x``, equal in all rows.

    Raises:
        ArgumentError: see :func:`psum`.

    Gradient:
        The mean of the rows' gradients, see :func:`psum`. After ``jax.lax.pmean``.

    Examples:
        Rows without their mean, as batch normalization has them:

        >>> import numpy as np
        >>> import gradops
        >>> print(gradops.vmap(lambda x: x - gradops.pmean(x, "batch"), axis_name="batch")(np.array([1.0, 2.0, 6.0])))
        [-2. -1.  3.]
        >>> centred = gradops.vmap(gradops.grad(lambda x: (x - gradops.pmean(x, "batch")) ** 2), axis_name="batch")
        >>> print(centred(np.array([1.0, 2.0, 6.0])))
        [-4. -2.  6.]

    See Also:
        :func:`psum`.
    """
    return _reduced("pmean", x, axis_name)


def pmax(x, axis_name):
    """The largest value of ``x`` over the rows of the enclosing :func:`gradops.vmap` of that name, elementwise.

    Args:
        x, axis_name: see :func:`psum`.

    Returns:
        Tensors of the shapes in ``x``, equal in all rows.

    Raises:
        ArgumentError: see :func:`psum`.
        GradientError: from a derivative; as in JAX, there is none.

    Gradient:
        None. For a stable softmax over rows, pass it a constant. After ``jax.lax.pmax``.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> def softmax(x):
        ...     weight = ops.exp(x - gradops.pmax(gradops.stop_gradient(x), "rows"))
        ...     return weight / gradops.psum(weight, "rows")
        >>> print(gradops.vmap(softmax, axis_name="rows")(np.array([0.0, np.log(3.0)])).round(4))
        [0.25 0.75]
        >>> print(gradops.vmap(gradops.grad(softmax), axis_name="rows")(np.array([0.0, 0.0])).round(4))
        [0. 0.]

    See Also:
        :func:`pmin`, :func:`psum`.
    """
    return _reduced("pmax", x, axis_name)


def pmin(x, axis_name):
    """The smallest value of ``x`` over the rows of the enclosing :func:`gradops.vmap` of that name, elementwise.

    Args:
        x, axis_name: see :func:`psum`.

    Returns:
        Tensors of the shapes in ``x``, equal in all rows.

    Raises:
        ArgumentError, GradientError: see :func:`pmax`.

    Gradient:
        None, see :func:`pmax`. After ``jax.lax.pmin``.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> def above(x):
        ...     return x - gradops.pmin(gradops.stop_gradient(x), "rows")
        >>> print(gradops.vmap(above, axis_name="rows")(np.array([3.0, 1.0])))
        [2. 0.]
        >>> print(gradops.vmap(gradops.grad(above), axis_name="rows")(np.array([3.0, 1.0])))
        [1. 1.]

    See Also:
        :func:`pmax`.
    """
    return _reduced("pmin", x, axis_name)


def axis_index(axis_name):
    """The number of the row in the enclosing :func:`gradops.vmap` of that name, from 0.

    Args:
        axis_name: the ``axis_name`` of an enclosing ``vmap``.

    Returns:
        An integer tensor.

    Raises:
        ArgumentError: see :func:`psum`.

    Gradient:
        None, as it is an integer. After ``jax.lax.axis_index``.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> def weighted(x):
        ...     return x * gradops.axis_index("rows")
        >>> print(gradops.vmap(weighted, axis_name="rows")(np.array([1.0, 1.0, 5.0])))
        [ 0.  1. 10.]
        >>> print(gradops.vmap(gradops.grad(weighted), axis_name="rows")(np.array([1.0, 1.0, 5.0])))
        [0. 1. 2.]

    See Also:
        :func:`psum`.
    """
    numbers = _bound("axis_index", axis_name)
    if numbers is None:
        raise _unbound("axis_index", axis_name)
    if isinstance(numbers, backends.Backend):
        return numbers.kernel("axis_index")(axis_name)
    return numbers.number if isinstance(numbers, Seat) else numbers


_OF_ROWS: dict[str, Callable] = {
    "psum": lambda x: ops.sum(x, axis=0),
    "pmean": lambda x: ops.mean(x, axis=0),
    "pmax": lambda x: ops.max(x, axis=0),
    "pmin": lambda x: ops.min(x, axis=0),
}


def _reduced(name: str, tree, axis_name):
    """The reduction ``name`` of the tensors of a structure along one or several named axes."""
    leaves, form = _tree.flatten(tree)
    for axis in axis_name if isinstance(axis_name, tuple) else (axis_name,):
        numbers: Any = _bound(name, axis)
        if isinstance(numbers, backends.Backend):
            leaves = [numbers.kernel("collective")(name, x, axis) for x in leaves]
        elif isinstance(numbers, Seat):
            leaves = [_reduced_in_turn(name, x, numbers) for x in leaves]
        elif numbers is not None:
            leaves = [_over_rows(name, x, numbers) for x in leaves]
        else:
            leaves = [_library_reduction(name, x, axis) for x in leaves]
    return _tree.unflatten(form, leaves)


def _bound(name: str, axis_name) -> Any:
    """The entry of :data:`_axes` for a name, or None."""
    try:
        return _axes.get().get(axis_name)
    except TypeError:
        raise ArgumentTypeError(
            f"`{name}`: `axis_name` must be a name or a tuple of names; got {{given}}.",
            argument="axis_name",
            given=TypeOf(axis_name),
        ) from None


def _library_reduction(name: str, x, axis_name):
    """A reduction along an axis that a map of the library itself has named."""
    call = owner_of(name, x).kernel("collective") if is_tensor(x) and not isinstance(x, Variable) else None
    try:
        if call is not None:
            return call(name, x, axis_name)
    except NameError:
        pass
    raise _unbound(name, axis_name)


def _unbound(name: str, axis_name) -> ArgumentError:
    known = ", ".join(map(repr, _axes.get())) or "none"
    return ArgumentError(
        f"`{name}`: no enclosing `vmap` has the `axis_name` {axis_name!r}; the names are {known}.",
        argument="axis_name",
        hint='name it by `gradops.vmap(f, axis_name="...")`',
    )


def _over_rows(name: str, x, numbers):
    x = as_tensor(name, x, owner_of(name, numbers), "x")

    def rule(size: int, in_batched: list, xs: list) -> tuple[list, list]:
        (x, numbers), (has_rows, is_axis) = xs, in_batched
        if not is_axis:  # the rows of another map
            return [_over_rows(name, x, numbers)], [True]
        if has_rows:
            return [_OF_ROWS[name](x)], [False]
        return [ops.multiply(x, size) if name == "psum" else x], [False]

    def again(x):
        _check_linear(name)
        return _over_rows(name, x, numbers)

    call = owner_of(name, x, numbers).kernel("reduced_rows")
    if call is not None:
        return call(rule, again, x, numbers)
    return call_by_rule(
        lambda x, numbers: [x], rule, [x, numbers], lambda _xs, _places, upstream: [again(upstream[0])]
    )[0]


def _check_linear(name: str) -> None:
    if name in ("pmax", "pmin"):
        raise GradientError(f"`{name}` has no derivative.", hint="pass it `gradops.stop_gradient(x)`")


def _reduced_in_turn(name: str, x, seat: Seat):
    """A reduction over rows that run in turn."""
    x = as_tensor(name, x, seat.owner, "x")

    @custom_gradient
    def reduced(x, total):
        def gradient(upstream):
            _check_linear(name)
            # A derivative inside of the row meets the other rows' derivatives. One outside of the map is a single pass
            # through all rows, which `total` connects.
            if not seat.is_live:
                return None, upstream
            found = _reduced_in_turn(name, upstream, seat)
            if not isinstance(found, Variable) and connected(found):
                raise GradientError(
                    f"`{name}`: on TensorFlow, derivatives inside of the mapped function are of first order, reverse "
                    "mode, and not compiled.",
                    hint="differentiate outside of the `vmap`, or use another library",
                )
            return found, None

        return total, gradient

    total = seat.reduced(name, x)
    return reduced(x, total) if moves(x) else total
