"""``grad`` and ``value_and_grad``: reverse-mode derivatives by the library of the tensors that are passed.

Arguments are flattened to tensors of one backend, checked, and differentiated by that backend's ``value_and_grad``;
the gradient gets the structure of the argument again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, Literal, overload

import numpy as np

from .. import _tree, backends, config, dtypes
from .._functions import Transformed, hides_arguments, hint_arguments
from ..annotations import P, R, X
from ..autodiff.derivatives import derivatives_of
from ..autodiff.modes import differentiated, lose_gradient
from ..autodiff.variable import Variable, data_of
from ..errors import ArgumentError, ArgumentTypeError, Code, GradientError, Position, TypeOf
from ..flow.elementary import gradient_of
from ..flow.gradient_functions import is_tensor
from ..flow.signatures import Arguments
from ..ops import _checks, conversion
from ..ops._structures import recorded

if TYPE_CHECKING:
    from .._functions import All, Differentiable, Slope


@overload
def value_and_grad(
    f: Differentiable[X, P, All, R], argnums: Literal[0] = 0, has_aux: Literal[False] = False
) -> Slope[X, P, All, tuple[R, X]]: ...
@overload
def value_and_grad(
    f: Callable[Concatenate[X, P], R], argnums: Literal[0] = 0, has_aux: Literal[False] = False
) -> Transformed[Concatenate[X, P], tuple[R, X]]: ...
@overload
def value_and_grad(
    f: Callable[P, R], argnums: int | str | tuple[int | str, ...] = 0, has_aux: bool = False
) -> Transformed[P, tuple[R, Any]]: ...
@hint_arguments
def value_and_grad(f: Callable, argnums: int | str | tuple[int | str, ...] = 0, has_aux: bool = False) -> Transformed:
    """A function that returns the value of ``f`` and its gradient.

    Args:
        f: a function that returns a scalar tensor, or with ``has_aux`` a pair of a scalar and auxiliary data.
        argnums: the position or name, or several, of the arguments to differentiate: tensors, variables,
            numbers, or nested structures of them. Numbers and lists are converted to the default backend.
        has_aux: True if ``f`` also returns auxiliary data, which are passed through.

    Returns:
        A function of the same arguments as ``f`` that returns ``(value, gradient)``, or ``((value, aux),
        gradient)``. The gradient has the structure of the argument, and is a tuple for several ``argnums``. A leaf
        that the value does not depend on has a gradient of zeros. Arrays give arrays, variables variables.

    Raises:
        GradientError: a value that is not a scalar.
        ArgumentTypeError: an argument of an integer or bool dtype, named by its position.

    Gradient:
        Differentiable again, to any order, also with respect to tensors that ``f`` closes over. NumPy arrays and
        variables use the tape, torch tensors torch's autograd, JAX ``jax.vjp``, TensorFlow ``GradientTape``.

    Examples:
        The loss of a logistic regression and its gradient, as optimisers need them:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> x, y = np.array([[1.0, 0.5], [1.0, 2.0], [1.0, -1.0]]), np.array([1.0, 1.0, 0.0])
        >>> def loss(w):
        ...     logits = x @ w
        ...     return ops.mean(ops.softplus(logits) - y * logits)
        >>> value, gradient = gradops.value_and_grad(loss)(np.zeros(2))
        >>> print(value, gradient)
        0.6931471805599453 [-0.16666667 -0.58333333]

        ``scipy.optimize`` accepts the pair with ``jac=True``:

        >>> from scipy.optimize import minimize
        >>> fit = minimize(gradops.value_and_grad(lambda w: loss(w) + 0.1 * ops.sum(w * w)), np.zeros(2), jac=True)
        >>> print(fit.x.round(3))
        [0.197 1.063]

        Parameters may be a structure, and so is their gradient:

        >>> value, gradient = gradops.value_and_grad(lambda p: p["a"] * p["b"] ** 2)({"a": 2.0, "b": 3.0})
        >>> print(gradient["a"], gradient["b"])
        9.0 12.0

    See Also:
        :func:`grad` for the gradient alone, :func:`gradops.jit` to compile the pair,
        :func:`gradops.functional.objective` for data in shards.
    """
    return Transformed(_value_and_gradient(f, argnums, has_aux, "value_and_grad"), value_and_grad, f, argnums, has_aux)


def _value_and_gradient(f: Callable, argnums, has_aux: bool, name: str) -> Callable:
    """Return a function of ``f``'s arguments for its value and gradient; errors call it ``name``."""
    positions, several = positions_of(f, argnums, name)
    _checks.check_flags(name, has_aux=has_aux)

    def value_and_gradient(*args, **kwargs):
        args, kwargs, chosen = chosen_of(f, args, kwargs, positions)
        leaves, form = _tree.flatten([args[i] for i in chosen])
        backend, leaves = _prepare(leaves, positions, form)
        box: dict[str, Any] = {}

        def run(*xs):
            call = partial(differentiated, xs, f, *_tree.filled(args, chosen, _tree.unflatten(form, xs)), **kwargs)
            result = recorded("natural", xs, call)
            if result is NotImplemented:
                result = call()
            if has_aux:
                if not isinstance(result, (tuple, list)) or len(result) != 2:
                    raise GradientError("`f` must return a pair of a scalar and anything else with `has_aux`.")
                result, box["aux"] = result
            result = unwrap_if_native(result, xs)
            warn_of_numpy(result, backend)
            return _scalar(result)

        run.box = box  # type: ignore[attr-defined]  # on JAX, `aux` must leave the trace as an output
        value, gradients = derivatives_of(backend, leaves).value_and_grad(run, leaves)
        parts = _tree.unflatten(form, gradients)
        gradient = tuple(parts) if several else parts[0]
        return ((value, box["aux"]) if has_aux else value), gradient

    return hides_arguments(value_and_gradient)


@overload
def grad(
    f: Differentiable[X, P, All, Any], argnums: Literal[0] = 0, has_aux: Literal[False] = False
) -> Slope[X, P, All, X]: ...
@overload
def grad(
    f: Callable[Concatenate[X, P], Any], argnums: Literal[0] = 0, has_aux: Literal[False] = False
) -> Transformed[Concatenate[X, P], X]: ...
@overload
def grad(
    f: Callable[P, Any], argnums: int | str | tuple[int | str, ...] = 0, has_aux: bool = False
) -> Transformed[P, Any]: ...
@hint_arguments
def grad(f: Callable, argnums: int | str | tuple[int | str, ...] = 0, has_aux: bool = False) -> Transformed:
    """A function that returns the gradient of ``f``.

    Args:
        f: a function that returns a scalar tensor, or with ``has_aux`` a pair of a scalar and auxiliary data.
        argnums: the position or name, or several, of the arguments to differentiate, of any structure.
        has_aux: True if ``f`` also returns auxiliary data, which are passed through.

    Returns:
        A function of the same arguments as ``f`` that returns the gradient, or ``(gradient, aux)``. The gradient has
        the structure of the argument, and is a tuple for several ``argnums``.

    Raises:
        GradientError: a value that is not a scalar.
        ArgumentTypeError: an argument of an integer or bool dtype, named by its position.

    Gradient:
        Differentiable again, to any order, also with respect to tensors that ``f`` closes over: see
        :func:`value_and_grad`.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> x = np.array([1.0, 2.0, 3.0])
        >>> print(gradops.grad(lambda x: ops.sum(x**3))(x))
        [ 3. 12. 27.]

        Gradients of gradients, and gradients with respect to several arguments:

        >>> slope = gradops.grad(ops.tanh)
        >>> print(gradops.grad(slope)(0.5).round(4))
        -0.7269
        >>> print(*gradops.grad(lambda a, b: a * b**2, argnums=(0, 1))(2.0, 3.0))
        9.0 12.0
        >>> print(gradops.grad(lambda a, b: a * b**2, "b")(2.0, b=3.0))
        12.0

        PyTorch, TensorFlow and JAX tensors are differentiated by their own library (this example needs
        ``gradops[torch]``):

        >>> import torch
        >>> gradops.grad(lambda x: (x**3).sum())(torch.tensor([1.0, 2.0]))
        tensor([ 3., 12.])

    See Also:
        :func:`value_and_grad`, :func:`gradops.functional.jacobian` for results that are not scalars,
        :func:`gradops.gradient` for a value that has already been computed.
    """
    both = _value_and_gradient(f, argnums, has_aux, "grad")

    def gradient(*args, **kwargs):
        value, result = both(*args, **kwargs)
        return (result, value[1]) if has_aux else result

    return Transformed(hides_arguments(gradient), grad, f, argnums, has_aux)


@hint_arguments
def gradient(y, x):
    """The gradient of a scalar ``y``, or of a function, with respect to ``x``, differentiable again.

    Args:
        y: a variable or tensor of one element, computed from ``x``; or a function of ``x`` that returns one.
        x: a variable or tensor that ``y`` was computed from, or a nested structure of them; if ``y`` is a function,
            its argument, see :func:`grad`.

    Returns:
        Gradients in the structure of ``x``; None for leaves that ``y`` does not depend on. The graph is retained.
        For a function ``f``, ``grad(f)(x)``.

    Raises:
        GradientError: ``y`` is not a scalar, or was not recorded; arrays of NumPy and JAX record nothing
            (use a ``Variable``).

    Gradient:
        Like ``torch.autograd.grad(create_graph=True)``; after RETURNN's ``gradient``.

    Examples:
        >>> import gradops
        >>> x = gradops.Variable(3.0, requires_grad=True)
        >>> y = x**4
        >>> first = gradops.gradient(y, x)
        >>> print(first.item(), gradops.gradient(first, x).item())
        108.0 108.0

        >>> print(gradops.gradient(lambda x: x**4, 3.0))
        108.0

        A gradient penalty is a term of the loss like any other:

        >>> loss = y + 0.1 * first**2
        >>> loss.backward()
        >>> print(x.grad.numpy())
        2440.8

    See Also:
        :func:`grad` for the gradient as a function, :func:`gradops.autodiff.grad` with all of PyTorch's options,
        ``Variable.backward``.
    """
    if callable(y) and not is_tensor(y):
        return grad(y)(x)
    return gradient_of(y, x)


def positions_of(f: Callable, argnums, name: str) -> tuple[tuple[int, ...], bool]:
    """``argnums`` as positions, and True if several were given; raises if ``f`` is not a function."""
    if not callable(f):
        raise ArgumentTypeError("`f` must be a function; got {f}.", argument="f", f=TypeOf(f))
    several = isinstance(argnums, (tuple, list))
    positions = tuple([_position(f, i) for i in argnums]) if several else (_position(f, argnums),)
    if not all(isinstance(i, (int, np.integer)) and not isinstance(i, bool) for i in positions):
        raise ArgumentTypeError(
            "`argnums` must be the position or name of an argument, or several; got {given}.",
            argument="argnums",
            hint=f"`{name}(f)` is a function: its value at `x` is `{name}(f)(x)`",
            given=TypeOf(argnums),
        )
    return tuple([int(i) for i in positions]), several


def _position(f: Callable, i):
    """The position of a parameter given by name; any other value unchanged."""
    if not isinstance(i, str):
        return i
    names = Arguments(f).names
    if i not in names:
        raise ArgumentError(
            f"`argnums` must name an argument that can be given by position: {', '.join(names) or 'none'}; got {i!r}.",
            argument="argnums",
        )
    return names.index(i)


def chosen_of(f: Callable, args: tuple, kwargs: dict, positions: tuple) -> tuple[tuple, dict, list[int]]:
    """The arguments of a call with the chosen ones passed by position, and the chosen positions, not negative."""
    if kwargs and not all(-len(args) <= i < len(args) for i in positions):
        args, kwargs = Arguments(f).positional(args, kwargs)
    chosen = []
    for position in positions:
        if not -len(args) <= position < len(args):
            raise ArgumentError(
                f"`argnums` must be positions of the {len(args)} positional arguments of the call; got {{given}}.",
                argument="argnums",
                hint="{count}, and the function takes its arguments like `f`: `grad(f)(x)`",
                given=Position(position),
                count=Code("positions count from 0", "positions count from 1"),
            )
        chosen.append(position % len(args))
    return args, kwargs, chosen


def _prepare(leaves: list, positions: tuple, form, beside=()) -> tuple[backends.Backend, list]:
    """The common backend of the arguments, and the arguments as its tensors.

    ``beside`` are further tensors of the derivative, such as tangents; they select the backend if all arguments are
    constants.
    """
    if not leaves:
        raise ArgumentError("there is nothing to differentiate: the argument holds no tensor.", argument="argnums")
    if not beside and all(x.__class__ is np.ndarray and x.dtype is _FLOAT64 for x in leaves):  # the common case
        return backends.backend_of(leaves[0]), leaves
    leaves = [backends.held(leaf) for leaf in leaves]
    kinds = [type(data_of(x)) for x in leaves]
    if not any(isinstance(x, Variable) for x in leaves):
        kinds += [type(x) for x in map(backends.held, beside) if not isinstance(x, Variable)]
    backend = backends.common(kinds, "grad") or config.default_backend()
    prepared = []
    for leaf in leaves:
        if isinstance(leaf, Variable):
            prepared.append(leaf)
        elif backends.backend_of(leaf) is backend:
            prepared.append(leaf)
        elif isinstance(leaf, int) and not isinstance(leaf, bool):
            prepared.append(backend.convert(float(leaf)))
        else:
            try:
                prepared.append(backend.convert(leaf))
            except (TypeError, ValueError) as error:
                place, path = _where(len(prepared), positions, form)
                raise ArgumentTypeError(
                    f"argument {{place}}{path} must be a tensor, a number or a structure of them; got {{leaf}}.",
                    argument="argnums",
                    hint=_checks.plain_hint(leaf) or "structures are {kinds}",
                    place=place,
                    leaf=TypeOf(leaf),
                    kinds=Code("dicts, lists, tuples and named tuples", "lists"),
                ) from error
    for i, leaf in enumerate(prepared):
        name = conversion.dtype(leaf)
        if not dtypes.is_floating(name):
            place, path = _where(i, positions, form)
            raise ArgumentTypeError(
                f"argument {{place}}{path} must be floating to be differentiated; got dtype {name}.",
                argument="argnums",
                place=place,
                hint='cast it first, e.g. with `gradops.ops.cast(x, "float64")`',
            )
    return backend, prepared


def _where(leaf: int, positions: tuple, form) -> tuple[Position, str]:
    """The argument that holds a leaf, and the leaf's path inside it."""
    if form is None:
        return Position(positions[leaf]), ""
    places = [(p, path) for p, part in zip(positions, form.parts) for path in _tree.paths(part)]
    position, path = places[leaf]
    return Position(position), f" (at {path})" if path else ""


def no_slope(
    dtype: str,
    argument: str = "f",
    wanted: str = "a floating scalar",
    came: str = "one",
    output: Position | None = None,
) -> GradientError:
    """The error for a rounded or compared result, whose derivative would otherwise silently be 0."""
    return GradientError(
        f"`{argument}` must return {wanted} to be differentiated; got {came} of dtype {dtype}.",
        argument=argument,
        hint="return the number before it was rounded or compared; a constant as a float",
        **({} if output is None else {"output": output}),
    )


def unwrap_if_native(y, xs):
    """A result of the inputs ``xs``; a variable is replaced by its data if the library itself records ``xs``."""
    return data_of(y) if isinstance(y, Variable) and not any(isinstance(x, Variable) for x in xs) else y


def warn_of_numpy(y, backend: backends.Backend, argument: str = "f") -> None:
    """Warn that a NumPy result for another library's tensors is a constant.

    TensorFlow's tensors silently become arrays.
    """
    if isinstance(y, (np.ndarray, np.generic)) and backend.derivatives.native:
        lose_gradient(
            f"`{argument}` returned NumPy's {type(y).__name__} for tensors of {backend.name}: its gradient is 0: none "
            "goes through NumPy's functions.",
            f"use gradops' or {backend.name}'s; return a constant as a Python number",
            5,
            inside=True,
        )


_FLOAT64 = np.dtype("float64")


def _scalar(y):
    if isinstance(y, Variable) and y._value.__class__ is np.float64:  # the common case, tested cheaply
        return y
    if isinstance(y, (list, tuple)) and len(y) == 1:
        y = y[0]
    if isinstance(y, float):
        return y
    if isinstance(y, (bool, int)):
        raise no_slope(type(y).__name__)
    if not isinstance(y, Variable) and backends.backend_of(y) is None:
        hint = None
        if isinstance(y, (list, tuple)):
            hint = "with `has_aux=True` it is a pair of the scalar and what else there is; `jacobian()` takes several"
        elif y is None:
            hint = "does it end with `return`?"
        raise GradientError("`f` must return a scalar tensor; got {y}.", argument="f", hint=hint, y=TypeOf(y))
    if conversion.size(y) != 1:
        empty = "it is empty, as arithmetic with NULL is; a misspelt name gives NULL"
        raise GradientError(
            f"`f` must return a scalar; got shape {conversion.shape(y)}.",
            argument="f",
            hint="reduce it with `sum()`, or use `gradops.functional.jacobian()`" if conversion.size(y) else "{empty}",
            empty=Code("it is empty", empty),
        )
    if not dtypes.is_floating(conversion.dtype(y)):
        raise no_slope(conversion.dtype(y))
    if "complex" in conversion.dtype(y):
        raise GradientError(
            "`f` must return a real scalar; got a complex one.", argument="f", hint="take `real()` or `abs()` of it"
        )
    return y
