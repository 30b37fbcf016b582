"""``custom_gradient``: a function with its own derivative, native on every backend.

The function runs with recording on, so what its gradient function closes over (``e = exp(x)``) stays
connected to the inputs; its result is then cut off and given the custom derivative. First order comes
from the gradient function, higher orders from differentiating the gradient function itself, as in
``tf.custom_gradient`` and ``jax.custom_gradient``.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import sys
from collections.abc import Callable
from inspect import CO_VARARGS
from types import FunctionType
from typing import Any

from .. import _tree, backends
from ..autodiff.variable import Variable
from ..errors import ArgumentTypeError, GradientError, ShapeError
from ..ops import conversion
from ..ops.creation import full
from . import tape


def custom_gradient(f: Callable, gradient: Callable | None = None) -> Callable:
    """A function with its own gradient, on every backend, to any order.

    Args:
        f: with ``gradient`` a function of tensors (and anything else) to a tensor or a structure of
            them. Alone, it returns a pair: that value, and the gradient function. Methods work too.
        gradient: the gradient function of the form ``gradient(x, ..., upstream)``.

    The gradient function may be any of ``grad(upstream)``, ``grad(*args, upstream=None)`` (both hold
    the upstream gradient), ``grad(x, y, upstream)`` with the inputs, or have one parameter for each of
    several outputs; ``upstream`` has the structure of the value. It returns the gradient of the one
    input, a tuple or list in the order of the arguments, a dict by argument name, or None for an
    argument without gradient. A number stands for a constant gradient; a gradient of a broadcast shape
    is summed to its input's.

    Returns:
        A function of the same arguments.

    Raises:
        GradientError: no gradient function returned; the wrong number of gradients; an unknown
            argument name; a variable closed over that needs a gradient itself (pass it as an argument).
        ShapeError: a gradient that cannot be reduced to its input's shape.

    Gradient:
        The gradient function's, once a backward pass. On JAX it is traced when the function is
        differentiated (``jax.custom_gradient``), so it cannot branch on values there. Under ``torch.func`` and in
        forward mode both functions run again for each derivative; forward mode is the gradient function's transpose.
    """
    if not callable(f):
        raise ArgumentTypeError(f"`f` must be a function; got {type(f).__name__}.", argument="f")
    if gradient is not None and not callable(gradient):
        raise ArgumentTypeError(f"`gradient` must be a function; got {type(gradient).__name__}.", argument="gradient")
    _know_torch()
    return _Custom(f, gradient)


def _know_torch() -> None:
    """Have torch's types known before ``torch.compile`` traces a call: it cannot trace the import of a backend."""
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "nn") and backends.owner not in _known:
        backends.owner(torch.Tensor), backends.owner(torch.nn.Parameter)
        _known.append(backends.owner)


_known: list = []


class _Custom:
    """The function that :func:`custom_gradient` returns; a descriptor, so that it also makes methods."""

    autograph_info__: dict = {}
    """TensorFlow's AutoGraph leaves it alone."""

    def __init__(self, f: Callable, gradient: Callable | None):
        self.f = f
        self.gradient = gradient
        functools.update_wrapper(self, f)

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<custom_gradient of {getattr(self.f, '__name__', self.f)!r}>"

    def __call__(self, *args, **kwargs):
        owners = {backends.owner(type(x.data if isinstance(x, Variable) else x)) for x in args}
        if not kwargs and len(owners) == 1 and None not in owners:
            (backend,) = owners  # the usual case: tensors of one library and nothing else
            return self._apply(backend, list(args), range(len(args)), list(args), None, {})
        if kwargs:
            args, kwargs = self._in_order(args, kwargs)
        leaves, form = _tree.flatten((args, kwargs))
        if "tensorflow" in sys.modules:
            leaves = [_read(leaf) for leaf in leaves]
        places = [i for i, leaf in enumerate(leaves) if _is_tensor(leaf)]
        if not places:
            return self._parts(args, kwargs)[0]
        inputs = [leaves[i] for i in places]
        kinds = {type(x.data if isinstance(x, Variable) else x) for x in inputs}
        found = backends.beside_text(kinds, "custom_gradient")
        return self._apply(found, leaves, places, inputs, form, kwargs)

    def _apply(self, backend, leaves: list, places, inputs: list, form, kwargs: dict):
        box: dict[str, Any] = {}

        def run(*xs):
            if form is None:
                a, k = xs, kwargs
            else:
                filled = list(leaves)
                for i, x in zip(places, xs):
                    filled[i] = x
                a, k = _tree.unflatten(form, filled)
            value, gradient = self._parts(a, k)
            values, structure = ([value], _tree.LEAF) if _is_tensor(value) else _tree.flatten(value)
            if not values:
                values = [_output(backend, value)]
            box["form"] = structure
            values = [v if _is_tensor(v) else _output(backend, v) for v in values]

            def pull(upstreams):
                upstream = upstreams[0] if structure is _tree.LEAF else _tree.unflatten(structure, upstreams)
                result = _call(gradient, self.gradient is not None, upstream, a, k, self._defaults)
                if form is None and len(xs) == 1 and _is_tensor(result):
                    return [_fit(result, xs[0])]
                found = _by_leaf(result, a, k, self._names, len(leaves))
                return [_fit(found[i], x) for i, x in zip(places, xs)]

            return values, pull

        if backend.name == "numpy" or any(isinstance(x, Variable) for x in inputs):
            values = tape.custom(run, inputs)
        else:
            values = backend.module.derivatives.custom(run, inputs)
        return values[0] if box["form"] is _tree.LEAF else _tree.unflatten(box["form"], values)

    def _parts(self, args, kwargs):
        """The value and the gradient function of one call."""
        if self.gradient is not None:
            return self.f(*args, **kwargs), self.gradient
        result = self.f(*args, **kwargs)
        if isinstance(result, dict) and set(result) == {"value", "grad"}:
            result = (result["value"], result["grad"])
        if not isinstance(result, (tuple, list)) or len(result) != 2 or not callable(result[1]):
            came = f"a {type(result).__name__}" + (f" of {len(result)}" if isinstance(result, (tuple, list)) else "")
            raise GradientError(
                f"`f` must return a pair of its value and a gradient function; got {came}.",
                argument="f",
                hint="end it with `return value, grad`, or pass the gradient function as the second argument",
            )
        return result

    def _in_order(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """The arguments of one call in the order of ``f``'s, by position as far as that goes."""
        try:
            bound = inspect.signature(self.f).bind(*args, **kwargs)
        except (TypeError, ValueError):
            return args, kwargs
        return bound.args, bound.kwargs

    def _defaults(self, count: int) -> tuple:
        """The defaults of ``f``'s positional arguments after the first ``count``."""
        try:
            parameters = list(inspect.signature(self.f).parameters.values())[count:]
        except (TypeError, ValueError):
            return ()
        positional = (p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))
        return tuple(p.default for p in itertools.takewhile(lambda p: p.default is not p.empty, positional))

    def _names(self) -> list[str] | None:
        try:
            parameters = inspect.signature(self.f).parameters.values()
        except (TypeError, ValueError):
            return None
        return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def _is_tensor(value) -> bool:
    return isinstance(value, Variable) or backends.of(value) is not None


def _output(backend, value):
    """What is no tensor in a function's value as one."""
    try:
        if not callable(value) and value is not None:
            return backend.convert(value)
    except (TypeError, ValueError):
        pass
    raise ArgumentTypeError(
        f"`f` must return tensors or numbers, and with them a gradient function; got {type(value).__name__}.",
        argument="f",
    )


def _read(value):
    """A ``tf.Variable`` as a tensor, whose gradient goes on to it; anything else as it is."""
    owner = backends.of(value)
    return value if owner is None or owner.is_tensor_type(type(value)) else owner.convert(value)


def _signature(gradient: Callable) -> tuple:
    """The names of a function's positional parameters but ``upstream``, whether it has that, and whether ``*args``.

    The names are None where the signature cannot be known.
    """
    if type(gradient) is FunctionType and not gradient.__dict__:  # R's have a ``__signature__`` of their own
        code = gradient.__code__
        count = code.co_argcount
        names = code.co_varnames[: count + code.co_kwonlyargcount]
        return [n for n in names[:count] if n != "upstream"], "upstream" in names, bool(code.co_flags & CO_VARARGS)
    try:
        parameters = list(inspect.signature(gradient).parameters.values())
    except (TypeError, ValueError):
        return None, False, False
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    named = any(p.name == "upstream" for p in parameters)
    return [n for n in positional if n != "upstream"], named, any(p.kind is p.VAR_POSITIONAL for p in parameters)


def _call(gradient: Callable, with_inputs: bool, upstream, args: tuple, kwargs: dict, defaults: Callable):
    """Call a gradient function in the form its signature asks for."""
    if isinstance(upstream, dict):
        ups = list(upstream.values())
    else:
        ups = list(upstream) if isinstance(upstream, (tuple, list)) else [upstream]
    others, named, variadic = _signature(gradient)
    if others is None:
        return gradient(*args, *ups) if with_inputs else gradient(*ups)
    exact = not kwargs and not named and len(others) == len(args) + len(ups)
    if (
        not exact
        and (kwargs or len(others) > len(args))
        and (with_inputs or (named and others) or len(others) > len(ups))
    ):
        gradient, args, others = _with_the_rest(gradient, args, kwargs, defaults, others, named)
    if with_inputs:
        if named:
            return gradient(*args, upstream=upstream)
        return gradient(*args, *(ups if variadic or len(others) == len(args) + len(ups) else [upstream]))
    if named and others:
        return gradient(*args, upstream=upstream)
    if variadic:
        return gradient(*ups, upstream=upstream) if named else gradient(*ups)
    if named:
        return gradient(upstream=upstream)
    if len(others) == len(ups):
        return gradient(*ups)
    if len(others) == 1:
        return gradient(upstream)
    if len(others) == len(args) + len(ups):
        return gradient(*args, *ups)
    if len(others) == len(args) + 1:
        return gradient(*args, upstream)
    upstreams = "the upstream gradient" if len(ups) == 1 else f"the {len(ups)} upstream gradients, or one list of them"
    inputs = "the input" if len(args) == 1 else f"the {len(args)} inputs"
    taken = f"{len(others)} arguments ({', '.join(others)})" if others else "none"
    raise GradientError(
        f"the gradient function must take {upstreams}, alone or after {inputs}; it takes {taken}.",
        argument="gradient",
    )


def _with_the_rest(gradient, args, kwargs, defaults, others, named) -> tuple:
    """A gradient function that takes inputs, those it is given by position, and the names that are left to those.

    What was given by name goes by name; what was not given has ``f``'s default.
    """
    by_name = {name: value for name, value in kwargs.items() if _accepts(gradient, name)}
    left = [name for name in others if name not in by_name]
    if not by_name and len(left) > len(args) + (not named):
        args = (*args, *defaults(len(args))[: len(left) - len(args) - (not named)])
    return functools.partial(gradient, **by_name) if by_name else gradient, args, left


def _accepts(function: Callable, name: str) -> bool:
    parameters = inspect.signature(function).parameters
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _by_leaf(result, args: tuple, kwargs: dict, names: Callable, count: int) -> list:
    """What a gradient function returned, for each leaf of the arguments in order; None for no gradient."""
    given = _by_argument(result, args, kwargs, names)
    found: list = []
    for value, part in zip(args, given[0]):
        _align(value, part, found)
    for name, value in kwargs.items():
        _align(value, given[1].get(name), found)
    assert len(found) == count
    return found


def _by_argument(result, args: tuple, kwargs: dict, names) -> tuple[list, dict]:
    total = len(args)
    if isinstance(result, dict) and not (total == 1 and not kwargs and _same_keys(args[0], result)):
        known = list(names() or [])[:total] + list(kwargs)
        unknown = [k for k in result if k not in known]
        if unknown:
            raise GradientError(
                f"the gradient function returned a gradient named {unknown[0]!r}; the arguments are "
                f"{', '.join(known) or 'not named'}.",
                argument="gradient",
            )
        return [result.get(n) for n in known[:total]], {k: result.get(k) for k in kwargs}
    differentiable = [i for i, value in enumerate(args) if _has_tensor(value)]
    if total == 1 and not isinstance(args[0], (tuple, list)):
        parts = list(result) if isinstance(result, (tuple, list)) else [result]
    elif total == 1:
        aligned = isinstance(result, (tuple, list)) and len(result) == len(args[0])
        parts = [result] if aligned or not isinstance(result, (tuple, list)) else list(result)
    else:
        parts = list(result) if isinstance(result, (tuple, list)) else [result]
    if len(parts) == total:
        return parts, {}
    if len(parts) == total + len(kwargs):
        return parts[:total], dict(zip(kwargs, parts[total:]))
    if result is None:
        return [None] * total, {}
    if not kwargs and len(parts) == len(names() or ()) > total:
        return parts[:total], {}  # the others were left to their defaults
    if len(parts) == len(differentiable):
        spread: list = [None] * total
        for i, part in zip(differentiable, parts):
            spread[i] = part
        return spread, {}
    raise GradientError(
        f"the gradient function must return {total} gradient{'s' if total != 1 else ''}, one for each argument; "
        f"got {len(parts)}.",
        argument="gradient",
        hint="return None for an argument without gradient",
    )


def _same_keys(value, result) -> bool:
    return isinstance(value, dict) and set(result) <= set(value)


def _has_tensor(value) -> bool:
    return any(map(_is_tensor, _tree.flatten(value)[0]))


def _align(value, part, found: list) -> None:
    """Append to ``found`` the part of a gradient for each leaf of ``value``."""
    if value is None:
        return
    if isinstance(value, dict):
        for key in _tree._sorted(value):
            _align(value[key], part.get(key) if isinstance(part, dict) else None, found)
    elif isinstance(value, (tuple, list)):
        items = [None] * len(value) if part is None else list(part)
        if len(items) != len(value):
            raise GradientError(
                f"the gradient of an argument of {len(value)} parts must have as many; got {len(items)}.",
                argument="gradient",
            )
        for item, piece in zip(value, items):
            _align(item, piece, found)
    else:
        found.append(part)


def _fit(g, x):
    """A returned gradient as a tensor of ``x``'s backend, shape and dtype; None stays."""
    if g is None or g.__class__ is x.__class__ and g.dtype == x.dtype is not str and g.shape == x.shape:
        return g
    data = x.data if isinstance(x, Variable) else x
    if data.dtype is str:
        from ..autodiff.text import feedback

        return feedback(g, x.role)
    dtype = conversion.dtype(data)
    if isinstance(g, (bool, int, float, complex)):
        return full(tuple(data.shape), _like(float(g) if not isinstance(g, complex) else g, data), dtype)
    if not _is_tensor(g) or (backends.of(g) is not None and backends.of(g) is not backends.of(data)):
        g = _like(g, data)
    from ..autodiff.cotangents import sum_to

    try:
        g = sum_to(g, tuple(data.shape))
    except ShapeError:
        raise ShapeError(
            f"a gradient of shape {tuple(g.shape)} was returned for an input of shape {tuple(data.shape)}; "
            "it must have that shape, or one that broadcasting made of it.",
            argument="gradient",
        ) from None
    have = conversion.dtype(g)
    if have != dtype:
        g = conversion.cast(g, dtype)
    return g


def _like(value, data):
    owner = backends.of(data)
    try:
        return owner.convert(value, like=data)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(
            f"the gradient function must return tensors, numbers or None; got {type(value).__name__}.",
            argument="gradient",
        ) from error
