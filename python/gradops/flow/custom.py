"""``custom_gradient``: a function with a user-defined derivative, native on every backend.

The function runs with recording on, so values that its gradient function closes over (``e = exp(x)``) stay
connected to the inputs. Its result is then detached and given the custom derivative. First derivatives come
from the gradient function and higher ones from differentiating the gradient function itself, as in
``tf.custom_gradient`` and ``jax.custom_gradient``. Calls with tensors of one eager library take a fast path.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, overload

from .. import _functions, _tree, backends
from .._functions import hint_arguments
from ..annotations import P, R
from ..autodiff.derivatives import derivatives_of
from ..autodiff.variable import Variable, data_of, differentiable
from ..backends import owner, tracing
from ..backends.interface import tape
from ..errors import ArgumentTypeError, Code, GradientError, TypeOf
from ..ops._symbolic import call_symbolically
from .gradient_functions import check_unwritten, fit, is_tensor, leaf_gradients, read_by
from .signatures import Arguments, Form


@overload
def custom_gradient(f: Callable[P, tuple[R, Callable[..., Any]]], gradient: None = None) -> _Custom[P, R]: ...
@overload
def custom_gradient(f: Callable[P, R], gradient: Callable[..., Any]) -> _Custom[P, R]: ...
@hint_arguments
def custom_gradient(f: Callable, gradient: Callable | None = None) -> _Custom:
    """A function with a custom gradient, on every backend, to any order.

    Args:
        f: with ``gradient``, a function of tensors (and anything else) that returns a tensor or a structure of
            tensors. Without ``gradient``, it returns a pair: that value, and the gradient function. Methods work too.
        gradient: the gradient function, of the form ``gradient(x, ..., upstream)``.

    The gradient function may be any of ``grad(upstream)``, ``grad(*args, upstream=None)`` (both get
    the upstream gradient), ``grad(x, y, upstream)`` with the inputs, or have one parameter for each of
    several outputs; ``upstream`` has the structure of the value. It returns the gradient of a single
    input, a tuple or list in the order of the arguments, or a dict by argument name, with None for an
    argument without gradient. If exactly one argument is a dict, a dict with its keys is its gradient. If
    arguments are structures, a flat list may have a gradient for each tensor in them, with dicts in the order of their
    sorted keys. A number means a constant gradient; a gradient of a broadcast shape is summed to its input's shape.
    A parameter with a default (``lambda upstream, k=2.0``) keeps it.

    On TensorFlow a gradient function with a parameter ``variables`` gets the list of trainable ``tf.Variable`` that
    ``f`` read, and returns a pair: the gradients of the inputs, and a list with one for each variable. Elsewhere, and
    if ``f`` reads none, the parameter keeps its default.

    Returns:
        A function of the same arguments.

    Raises:
        GradientError: no gradient function is returned; the gradient function returns nothing, a wrong number of
            gradients, or one for an unknown argument name; the function closes over a variable that needs a gradient
            (pass it as an argument).
        ShapeError: a gradient cannot be reduced to its input's shape.

    Gradient:
        The gradient function's; it runs once in a backward pass. On JAX it is traced when the function is
        differentiated (``jax.custom_gradient``), so it cannot branch on values there. Under ``torch.func`` and in
        forward mode both functions run again for each derivative; forward mode uses the gradient function's transpose.

    Examples:
        A square root with a bounded gradient near 0:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> @gradops.custom_gradient
        ... def safe_sqrt(x):
        ...     y = ops.sqrt(x)
        ...     return y, lambda upstream: upstream * ops.minimum(0.5 / ops.maximum(y, 1e-12), 10.0)
        >>> print(gradops.grad(lambda x: ops.sum(safe_sqrt(x)))(np.array([0.0, 0.25, 4.0])))
        [10.    1.    0.25]

        The two functions may be passed separately; the gradient function then takes the arguments as well:

        >>> def limited(x, limit, upstream):
        ...     return ops.clip(upstream, -limit, limit), None
        >>> clipped = gradops.custom_gradient(lambda x, limit: x, limited)
        >>> print(gradops.grad(lambda x: 5.0 * clipped(x, 1.0))(2.0))
        1.0

    See Also:
        :class:`gradops.autodiff.Function`, the same in PyTorch's form; :func:`scaled_gradient` and
        :func:`stop_gradient` for common cases; :func:`gradops.autodiff.gradcheck` to check a gradient.
    """
    if not callable(f):
        raise ArgumentTypeError("`f` must be a function; got {f}.", argument="f", f=TypeOf(f))
    if gradient is not None and not callable(gradient):
        raise ArgumentTypeError(
            "`gradient` must be a function; got {gradient}.", argument="gradient", gradient=TypeOf(gradient)
        )
    return _Custom(f, gradient)


class _Custom(_functions.Made[P, R]):
    """The function that :func:`custom_gradient` returns; a descriptor, so that methods can be decorated.

    Attributes:
        is_closed: True if the function is known to close over no tensor.
    """

    def __init__(self, f: Callable, gradient: Callable | None):
        self.f = f
        self.gradient = gradient
        self.is_closed = False
        self._arguments: Arguments | None = None
        self._form = Form(gradient, True, self.arguments) if gradient is not None else None
        self._forms: dict[CodeType | None, Form] = {}
        _take_names(self, f)

    @property
    def __signature__(self) -> inspect.Signature:
        """The signature, for callers that do not follow ``__wrapped__``, such as Keras' `Lambda`."""
        return inspect.signature(self.f)

    def _made_of(self) -> tuple[Callable, tuple]:
        return _Custom, (self.f, self.gradient)

    def __repr__(self) -> str:
        return f"<custom_gradient of {getattr(self.f, '__name__', self.f)!r}>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        backend = None if kwargs or not args else owner(type(args[0]))
        if backend is None:
            return self._call_general(args, kwargs)
        derivatives, form = backend.derivatives, self._form
        inputs: tuple = args
        places = None
        if len(args) > 1 and not _NUMBERS.isdisjoint(map(type, args)):
            places = [i for i, x in enumerate(args) if type(x) not in _NUMBERS]
            inputs = tuple([args[i] for i in places])
        if not derivatives.eager() or len(inputs) > 1 and _owner(inputs) is None:
            return self._call_general(args, kwargs)
        returned = self.f(*args)
        if form is not None or type(returned) is not tuple or len(returned) != 2 or not callable(returned[1]):
            returned = self._pair(returned)
        value, gradient = returned
        if owner(type(value)) is backend:
            form = form or self._form_of(gradient)
            read = read_by(gradient, args if form.takes_inputs(1) else ())
            residuals = form, gradient, read, args, places, self
            if len(inputs) == 1:
                return derivatives.attach_one(value, _single_gradient, residuals, inputs[0])
            return derivatives.attach_to(value, _selected_gradients, residuals, inputs)
        values, structure, pull = self._rule(backend, inputs, returned, args, {}, places)
        values = derivatives.attach(values, pull, inputs)
        return values[0] if structure is _tree.LEAF else _tree.unflatten(structure, values)

    def _call_general(self, args, kwargs):
        """The value of a call with any arguments; the general path."""
        if kwargs:
            args, kwargs = self.arguments.positional(args, kwargs)
        elif args and (found := _owner(args)) is not None:
            return self._call_tensors(*found, args)
        leaves, form = _tree.flatten((args, kwargs))
        if any(map(backends.is_symbolic, leaves)):
            return call_symbolically(self, args, kwargs)
        leaves = [_read(leaf) for leaf in leaves]
        places = [i for i, leaf in enumerate(leaves) if is_tensor(leaf)]
        tensors = [leaves[i] for i in places]
        if not tensors:
            _refuse_components(leaves)
            value, gradient = self._parts(args, kwargs)
            tensors = [x for x in _tree.leaves_of(value) if is_tensor(x)]
            if not tensors or not (self._form or self._form_of(gradient)).variables:
                return value
        kinds = {type(data_of(x)) for x in tensors}
        backend: Any = backends.common_with_text(kinds, "custom_gradient")
        places = [i for i in places if not _is_constant(leaves[i], backend)]
        inputs = [leaves[i] for i in places]
        structure: Any = _tree.LEAF

        def run(*xs):
            nonlocal structure
            a, k = _tree.unflatten(form, _tree.filled(leaves, places, xs))
            values, structure, pull = self._rule(backend, xs, self._parts(a, k), a, k, places)
            return values, pull

        run.is_closed = self.is_closed  # type: ignore[attr-defined]
        run.takes_variables = self._takes_variables  # type: ignore[attr-defined]
        values = derivatives_of(backend, inputs).custom(run, inputs)
        return values[0] if structure is _tree.LEAF else _tree.unflatten(structure, values)

    def _call_tensors(self, backend, derivatives, inputs):
        """The value of a call with tensors of one library only, while it is traced or transformed."""
        structure: Any = _tree.LEAF

        def run(*xs):
            nonlocal structure
            values, structure, pull = self._rule(backend, xs, self._parts(xs, {}), xs, {})
            return values, pull

        run.is_closed = self.is_closed  # type: ignore[attr-defined]
        run.takes_variables = self._takes_variables  # type: ignore[attr-defined]
        values = derivatives.custom(run, inputs)
        return values[0] if structure is _tree.LEAF else _tree.unflatten(structure, values)

    def _rule(self, backend, xs, returned, args, kwargs, places=None):
        """The values of a call as a list, their structure, and a function from upstream gradients to gradients.

        Args:
            returned: the value and the gradient function.
            places: the positions of the tensors ``xs`` among the leaves of ``args`` and ``kwargs``; None if they are
                ``args``.
        """
        value, gradient = returned
        wants = self._form or self._form_of(gradient)
        if is_tensor(value):
            values, parts = [value], _tree.LEAF
            if wants.alone and places is None and not wants.variables:
                return values, parts, self._alone(gradient, xs)
        else:
            values, parts = _tree.flatten(value)
            values = [v if is_tensor(v) else _output(backend, v) for v in values or [value]]
        inputs = xs if places is None else _tree.flatten((args, kwargs))[0]
        read = read_by(gradient, inputs if wants.takes_inputs(len(values)) else ())

        def pull(upstreams, variables=()):
            check_unwritten(read)
            upstream = upstreams[0] if parts is _tree.LEAF else _tree.unflatten(parts, upstreams)
            others: list = []
            if variables:
                result, others = wants.call_with_variables(gradient, upstream, args, kwargs, list(variables))
            else:
                result = wants.call(gradient, upstream, args, kwargs)
            found = self._leaf_gradients(gradient, result, args, kwargs)
            found = found if places is None else [found[i] for i in places]
            return [fit(g, x) for g, x in zip([*found, *others], [*xs, *variables])]

        if wants.variables:
            pull.takes_variables = lambda: True  # type: ignore[attr-defined]
        return values, parts, pull

    def _alone(self, gradient, xs):
        """The pull function of ``_rule`` for one upstream gradient and arguments that are the tensors ``xs``."""
        read = read_by(gradient)

        def pull(upstreams):
            check_unwritten(read)
            result = gradient(upstreams[0])
            if len(xs) == 1 and is_tensor(result):  # like `_of_one`, but traced
                return (fit(result, xs[0]),)
            return [fit(g, x) for g, x in zip(self._leaf_gradients(gradient, result, xs, {}), xs)]

        return pull

    def _leaf_gradients(self, gradient, result, args, kwargs) -> list:
        """A gradient function's gradients, one for each leaf of the arguments; R's lists keep their own order."""
        return leaf_gradients(result, args, kwargs, self.arguments.names, hasattr(gradient, "own_order"))

    def _parts(self, args, kwargs):
        """The value and the gradient function of one call."""
        return self._pair(self.f(*args, **kwargs) if kwargs else self.f(*args))

    def _pair(self, result):
        """The value and the gradient function, taken from the result of ``f``."""
        if self.gradient is not None:
            return result, self.gradient
        if type(result) is tuple and len(result) == 2 and callable(result[1]):
            return result
        if isinstance(result, dict) and set(result) == {"value", "grad"}:
            result = (result["value"], result["grad"])
        if not isinstance(result, (tuple, list)) or len(result) != 2 or not callable(result[1]):
            came = f"a {type(result).__name__}" + (f" of {len(result)}" if isinstance(result, (tuple, list)) else "")
            raise GradientError(
                f"`f` must return a pair of its value and a gradient function; got {came}.",
                argument="f",
                hint="end it with {pair}, or pass the gradient function as the second argument",
                pair=Code("`return value, grad`", "`list(value, grad)`"),
            )
        return result

    @property
    @tracing.read_as(lambda self: Arguments(self.f))  # Dynamo recompiles if an attribute that it read changes
    def arguments(self) -> Arguments:
        """The parameters of ``f``."""
        if self._arguments is None:
            self._arguments = Arguments(self.f)
        return self._arguments

    def _takes_variables(self) -> bool:
        """True if a gradient function that is known so far takes ``variables``."""
        return any(form.variables for form in (self._form, *self._forms.values()) if form is not None)

    @tracing.read_as(lambda self, gradient: Form(gradient, False, self.arguments))
    def _form_of(self, gradient: Callable) -> Form:
        """How a gradient function returned by ``f`` takes its arguments; cached by its code."""
        # Each call returns a new gradient function with the same code, so its form is determined once for the code. A
        # function with attributes may have a signature of its own, and is not cached.
        code = gradient.__code__ if type(gradient) is FunctionType and not gradient.__dict__ else None
        form = self._forms.get(code)
        if form is None:
            form = Form(gradient, False, self.arguments)
            if code is not None:
                self._forms[code] = form
        return form


@tracing.left_out  # PyTorch before 2.12 cannot trace it
def _take_names(custom: _Custom, f: Callable) -> None:
    functools.update_wrapper(custom, f)


_NUMBERS = frozenset((int, float, bool, complex))


def _single_gradient(upstream, residuals):
    """The gradient of the only tensor, the first argument; the other arguments are numbers."""
    form, gradient, read, args, _, function = residuals
    if read:
        check_unwritten(read)
    result = gradient(upstream) if form.alone else form.call(gradient, upstream, args, {})
    x = args[0]
    g = result[0] if type(result) is tuple and len(result) == len(args) else result
    if g.__class__ is x.__class__ and g.dtype is x.dtype and g.shape == x.shape:
        return g
    return fit(g if is_tensor(g) else function._leaf_gradients(gradient, result, args, {})[0], x)


def _selected_gradients(upstream, residuals):
    """The gradients of a function's tensors, which are its arguments at ``places``; None means all arguments."""
    form, gradient, read, args, places, function = residuals
    if read:
        check_unwritten(read)
    result = gradient(upstream) if form.alone else form.call(gradient, upstream, args, {})
    if type(result) is not tuple or len(result) != len(args):
        result = function._leaf_gradients(gradient, result, args, {})
    return map(fit, result, args) if places is None else [fit(result[i], args[i]) for i in places]


def _owner(args: tuple) -> tuple[Any, Any] | None:
    """The one backend of tensors and variables, and its derivatives; None if they do not have one backend."""
    first: Any = None
    derivatives = None
    for x in args:
        found = backends.owner(type(x))
        if found is None and isinstance(x, Variable):
            found, derivatives = backends.owner(type(x.data)), tape
        if found is None or found is not first is not None:
            return None
        first = found
    return first, derivatives or first.derivatives


def _is_constant(x, backend) -> bool:
    """True if a tensor is a NumPy array used with tensors of another library."""
    owner = backends.backend_of(x)
    return owner is not backend and owner is not None and owner.yields


def _refuse_components(leaves: list) -> None:
    """Raise if tensors that are parts of a ragged or sparse tensor would not get the custom gradient."""
    for leaf in leaves:
        parts = backends.components(leaf)
        if parts is not None and any(is_tensor(x) and differentiable(x) for x in parts[0]):
            raise ArgumentTypeError(
                "a function with a custom gradient takes tensors; got {leaf}, whose gradient would not be the custom "
                "one.",
                argument="f",
                hint="make it a function of the tensor of its values",
                leaf=TypeOf(leaf),
            )


def _output(backend, value):
    """A part of a function's value that is not a tensor, converted to one."""
    try:
        if not callable(value) and value is not None:
            return backend.convert(value)
    except (TypeError, ValueError):
        pass
    raise ArgumentTypeError(
        "`f` must return tensors or numbers, and with them a gradient function; got {value}.",
        argument="f",
        value=TypeOf(value),
    )


def _read(value):
    """The tensor inside a ``tf.Variable`` or another wrapper, still connected to it; other values unchanged."""
    value = backends.held(value)
    owner = backends.backend_of(value)
    return value if owner is None or owner.is_tensor_type(type(value)) else owner.convert(value)
