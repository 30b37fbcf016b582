"""``closure_convert``: the tensors that a function closes over and that are being differentiated, as arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

from .. import _functions, _tree
from ..errors import GradientError
from ..flow import stop_gradient
from ..flow.gradient_functions import is_tensor
from ..ops._structures import any_variable, check_functions, owner_of
from .shapes import filled_with_zeros
from .symbolic_zeros import connected, moves


def closure_convert(fun: Callable, *example_args) -> tuple[Callable, list]:
    """``fun`` as a function that takes the differentiated tensors it closes over as further arguments, and these.

    A function with a custom derivative must take everything that it is differentiated by as an argument. If it gets a
    function of the user, this makes arguments of what that function closes over.

    Args:
        fun: a function of tensors and structures of tensors.
        example_args: its arguments; only their structure, shapes and dtypes matter.

    Returns:
        ``(converted, closed_over)``: ``converted(*args, *closed_over)`` is ``fun(*args)``. ``closed_over`` is a list of
        tensors that may be differentiated, found in closures, default arguments and :func:`functools.partial`, also
        inside of structures and of other functions there.

    Raises:
        GradientError: ``fun`` reads a tensor that may be differentiated from elsewhere, such as an attribute of an
            object or a global variable.

    Gradient:
        That of ``fun``, with respect to its arguments and what it closes over. Uses ``jax.closure_convert`` on JAX
        arrays; elsewhere ``fun`` is called once, with its arguments and closure held constant. After
        ``jax.closure_convert``.

    Examples:
        A function that is differentiated by its own rule, with respect to parameters it does not know:

        >>> import gradops
        >>> from gradops import ops
        >>> def doubled(f, x):
        ...     converted, closed_over = gradops.closure_convert(f, x)
        ...     rule = gradops.custom_vjp(lambda x, *w: 2.0 * converted(x, *w))
        ...     def forward(x, *w):
        ...         return 2.0 * converted(x, *w), (x, w)
        ...     def backward(saved, g):
        ...         x, w = saved
        ...         return gradops.vjp(converted, x, *w)[1](2.0 * g)
        ...     rule.defvjp(forward, backward)
        ...     return rule(x, *closed_over)
        >>> print(*gradops.grad(lambda x, a: doubled(lambda x: a * x**2, x), (0, 1))(3.0, 5.0))
        60.0 18.0

    See Also:
        :class:`gradops.custom_vjp`, :func:`gradops.custom_gradient`.
    """
    check_functions("closure_convert", fun=fun)
    args = filled_with_zeros("closure_convert", example_args)
    found: dict[int, Any] = {}
    _copy(fun, lambda x: found.setdefault(id(x), x) if moves(x) and connected(x) else x, {})
    tensors = [x for x in (*_tree.leaves_of(args), *found.values()) if is_tensor(x)]
    native = None if any_variable(tensors) else owner_of("closure_convert", *tensors).kernel("closure_convert")
    if native is not None:
        return native(fun, args)
    closed_over = list(found.values())

    def converted(*args):
        split = len(args) - len(closed_over)
        table = dict(zip(found, args[split:]))
        return _copy(fun, lambda x: table.get(id(x), x), {})(*args[:split])

    held = [stop_gradient(x) if is_tensor(x) else x for x in closed_over]
    value = converted(*_tree.map_leaves(lambda x: stop_gradient(x) if is_tensor(x) else x, args), *held)
    if any(moves(y) and connected(y) for y in _tree.leaves_of(value)):
        raise GradientError(
            "`closure_convert`: `fun` reads a tensor that is being differentiated from an object or a global variable.",
            argument="fun",
            hint="read it in a closure, or pass it as an argument",
        )
    return converted, closed_over


def _copy(value, replaced: Callable, done: dict[int, Any]):
    """``value``, a function or anything that one holds, with ``replaced(x)`` for each tensor ``x`` in it.

    Args:
        done: the copies of functions under way, which may contain themselves, by ``id``.
    """
    if id(value) in done:
        return done[id(value)]
    if is_tensor(value):
        return replaced(value)
    if isinstance(value, (dict, list, tuple)):
        leaves, form = _tree.flatten(value)
        copies = [_copy(x, replaced, done) for x in leaves]
        return value if all(a is b for a, b in zip(leaves, copies)) else _tree.unflatten(form, copies)
    if isinstance(value, functools.partial):
        parts = (value.func, value.args, value.keywords)
        f, args, keywords = (_copy(part, replaced, done) for part in parts)
        return functools.partial(f, *args, **keywords)
    if isinstance(value, _functions.Made):
        make, parts = value._made_of()
        copies = [_copy(part, replaced, done) for part in parts]
        return value if all(a is b for a, b in zip(parts, copies)) else make(*copies)
    return _copied_function(value, replaced, done) if type(value) is FunctionType else value


def _copied_function(f: FunctionType, replaced: Callable, done: dict[int, Any]) -> FunctionType:
    if not (f.__closure__ or f.__defaults__ or f.__kwdefaults__):
        return f
    cells = tuple([CellType() for _ in f.__closure__ or ()])
    new = FunctionType(f.__code__, f.__globals__, f.__name__, _copy(f.__defaults__, replaced, done), cells)
    done[id(f)] = new
    new.__kwdefaults__ = _copy(f.__kwdefaults__, replaced, done)
    new.__dict__.update(f.__dict__)
    for cell, old in zip(cells, f.__closure__ or ()):
        try:
            cell.cell_contents = _copy(old.cell_contents, replaced, done)
        except ValueError:  # a variable that is not bound yet
            pass
    return new
