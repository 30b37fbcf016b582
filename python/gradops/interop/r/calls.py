"""The functions of gradops with R's arguments understood, and functions for R that have no Python name."""

from __future__ import annotations

import functools
import inspect
import operator
import pkgutil
from collections.abc import Callable
from typing import Any

import numpy as np

import gradops

from ... import _tree, autodiff, backends, config, ops
from ...autodiff.variable import as_array, as_words
from ...backends.policy import NeedsPolicy
from . import host, indexing, threads, values
from .callbacks import Held, holding, keeping
from .errors import Failure
from .values import MARK, as_index, as_shape, backend_of, float_of, from_r, positions_from_r


def guarded(function: Callable) -> Callable:
    """``function`` with R's arguments understood and failures returned."""

    def call(*arguments, **keywords):
        try:
            names = tuple(keywords)
            given = from_r((*arguments, *keywords.values()))
            split = len(arguments)
            return function(*given[:split], **dict(zip(names, given[split:])))
        except (Exception, NeedsPolicy) as error:
            return Failure(error)

    return call


def invoke(function: Callable, arguments, keywords=(), numbers: str | None = None, keep=None, in_r: bool = False):
    """``function`` called as R would call it.

    Args:
        numbers: the form of R's doubles. None: numbers. ``"tensors"``: tensors, so that R code in ``function`` sees
            some. ``"alone"``: the same where no argument is a tensor; beside one they stay numbers, without gradient.
        keep: the R objects that the function needs, and all that this call makes: see :data:`callbacks.holding`.
        in_r: True if the result's tensors become values that R has.
    """
    keywords = dict(keywords)
    if numbers == "tensors" or (
        numbers == "alone" and not any(map(_is_tensor, _tree.leaves_of((arguments, keywords))))
    ):
        given = (arguments, keywords)
        arguments, keywords = _floats(given, backend_of(given), float_of(given))
    if keep is not None:
        held = Held(keep)
        function = keeping(function.keeping(held) if hasattr(function, "keeping") else function, held)
    result = function(*arguments, **keywords)
    return values.in_r(result) if in_r else result


def _is_tensor(x) -> bool:
    return ops.is_tensor(x) or isinstance(x, autodiff.Variable)


class Made:
    """A function that is made for each call, of functions of R's, so that the graph has the objects that they need."""

    def __init__(self, make: Callable, functions: tuple):
        self._make, self._functions = make, functions

    def keeping(self, held: Held) -> Callable:
        return self._make(*[keeping(function, held) for function in self._functions])


def made(name: str, *functions: Callable, **settings) -> Made:
    """The result of gradops' function ``name`` for R functions, made anew for each :func:`invoke`."""
    return Made(functools.partial(operator.attrgetter(name)(gradops), **settings), functions)


def custom_jvp(f: Callable, rule: Callable) -> Callable:
    """``gradops.custom_jvp`` with its rule."""
    function = gradops.custom_jvp(f)
    function.defjvp(rule)
    return function


def jit(f: Callable, static_argnums=()) -> Callable:
    """``gradops.jit``, whose programs run on another thread where they may call R back from a third."""
    compiled: Any = gradops.jit(f, static_argnums)

    def run(*arguments, **keywords):
        if not static_argnums and not keywords and values.is_plain(arguments):
            return compiled(*values.as_arrays(arguments))
        tensors = [x for x in _tree.leaves_of((arguments, keywords)) if ops.is_tensor(x)]
        if not static_argnums and all(ops.dtype(x) == "float64" for x in tensors):
            backend = backend_of((arguments, keywords))  # R's numbers beside R's vectors are traced as they are
            arguments, keywords = _floats(arguments, backend), _floats(keywords, backend)
        if host.exists and backend_of((arguments, keywords)).calls_from_threads:
            return threads.run(lambda: _computed(compiled(*arguments, **keywords)))
        return compiled(*arguments, **keywords)

    run.compiled, run.explain = compiled, compiled.explain  # type: ignore[attr-defined]
    return run


def explain(function: Any) -> str:
    """An explanation of the programs compiled for a function that :func:`jit` made."""
    return function.explain()


def _computed(value):
    """``value`` once JAX has computed it."""
    return _tree.map_leaves(lambda x: x.block_until_ready() if hasattr(x, "block_until_ready") else x, value)


def host_op(function: Callable, gradient: Callable | None, name: str, shape):
    """An op of R functions of R's numbers."""
    return host.host_function(function, gradient, name, None if shape is None else as_shape(shape, "shape"))


def to_r(value):
    """A tensor's values for R, once JAX has computed them, which may take calls of R."""
    ready = getattr(value, "is_ready", None)
    if host.exists and ready is not None and threads.is_current():
        threads.wait_until(ready, 0.001)
    return values.to_r(value)


def _floats(value, backend: backends.Backend, name: str | None = None):
    """R's numbers as tensors, of the floating dtype ``name`` or, without, of ``floatx``."""
    kind = value.__class__
    if kind is dict:
        return {key: _floats(item, backend, name) for key, item in value.items()}
    if kind is tuple or kind is list:
        return kind(_floats(item, backend, name) for item in value)
    return backend.convert(value, name) if kind is float else value


def function(forward: Callable, backward: Callable, evaluator: bool = False) -> Callable:
    """The ``apply`` of a ``Function`` of two R functions."""

    def returned(value):
        return tuple(value) if isinstance(value, list) else value

    formals = inspect.signature(forward)
    names = list(formals.parameters)[1:]

    def gradients_of(value):
        if not isinstance(value, dict) or not value.keys() <= set(names):
            return returned(value)
        last = max(map(names.index, value), default=-1)
        return tuple(value.get(name) for name in names[: last + 1])

    def begin(ctx, *inputs, **by_name):
        ctx.gradops_holding = holding.get()
        return returned(forward(ctx, *inputs, **by_name))

    begin.__signature__ = formals  # type: ignore[attr-defined]  # by which arguments that go by name find their place
    methods: dict[str, Any] = {
        "evaluator": evaluator,
        "forward": staticmethod(begin),
        "backward": staticmethod(lambda ctx, *gradients: gradients_of(backward(ctx, *gradients))),
    }
    made: Any = type("RFunction", (autodiff.Function,), methods)
    return made.apply


def variable(data, requires_grad: bool, role: str | None, parameter: bool = False):
    """A variable of R's: on PyTorch a leaf tensor, elsewhere a ``Variable`` or ``Parameter`` on data of its own."""
    if as_words(data) is None:
        if backends.of(data) is None and not isinstance(data, autodiff.Variable):
            data = as_array(data, config.default_backend())
        owner = backends.of(data)
        if owner is not None and owner.derivatives.own_tape:
            leaf = data.detach().clone()
            if requires_grad:
                gradops.set_requires_gradient(leaf)
            return leaf
        if isinstance(data, np.ndarray):
            data = data.copy(order="K")  # R's matrices by column
    return (autodiff.Parameter if parameter else autodiff.Variable)(data, requires_grad, role)


def _found(path: str) -> Any:
    try:
        return operator.attrgetter(path)(gradops)
    except AttributeError:  # in a module that is not imported before it is used
        return pkgutil.resolve_name(f"gradops.{path}")


def attribute(path: str) -> Callable:
    """The :func:`guarded` form of a function of gradops, by its dotted name."""
    function = jit if path == "jit" else _found(path)
    return function if function in (subset, assign, get_item, to_backend) else guarded(function)


def to_backend(x, backend: str, device=None):
    """``gradops.to_backend``; R's own numbers are copied, as R does not know who else writes to them."""
    try:
        with config.backend_scope(backend):
            (x,) = from_r((x,))
            return gradops.to_backend(x, backend, device)
    except Exception as error:
        return Failure(error)


def subset(x, indices: list, drop: bool):
    """R's ``x[i, j]``."""
    try:
        (x,) = from_r((x,))
        return indexing.subset(x, _r_indices(indices), drop)
    except Exception as error:
        return Failure(error)


def assign(x, indices: list, value):
    """R's ``x[i, j] <- value``."""
    try:
        x, value = from_r((x, value))
        return indexing.assign(x, _r_indices(indices), value)
    except Exception as error:
        return Failure(error)


def put(x, position: float, value):
    """R's ``x[i] <- value`` of one position, where vectors grow."""
    try:
        x, value = from_r((x, value))
        return indexing.put(x, position, value)
    except Exception as error:
        return Failure(error)


def get_item(x, key):
    """``x[key]`` by NumPy's rules, with positions from 1 and None for all of a dimension."""
    try:
        (x,) = from_r((x,))
        (key,) = positions_from_r((key,), (x,))
        parts = key if isinstance(key, (list, tuple)) else [key]
        return ops.get_item(x, tuple(_key(part) for part in parts))
    except Exception as error:
        return Failure(error)


def _key(part):
    if part is None:
        return slice(None)
    if isinstance(part, slice) or part is Ellipsis or "bool" in ops.dtype(part):
        return part
    return as_index(part, "key")


def vectorize(function: Callable, excluded, signature: str | None):
    return ops.vectorize(function, excluded=set(excluded) if excluded else None, signature=signature)


def _r_indices(indices) -> list:
    """Indices keep being R's: their arrays do not become tensors."""
    return [index[MARK] if index.__class__ is dict else index for index in indices]


def add_hook(x, method: str, hook: Callable):
    """A hook of an R function: a result that is not a tensor counts as none."""

    def call(value):
        result = hook(value)
        return result if backends.of(result) is not None or isinstance(result, autodiff.Variable) else None

    return getattr(x, method)(call if method == "register_hook" else lambda value: call(value) and None)


def check_gradients(function: Callable, inputs: list, **settings) -> bool:
    """``gradcheck`` at R's numbers: of torch tensors, where none requires a gradient all that can do."""
    backend = backend_of(inputs)
    values = _floats(tuple(inputs), backend)
    if backend.derivatives.own_tape and not any(getattr(v, "requires_grad", False) for v in values):
        floating = [backends.of(v) is backend and v.dtype.is_floating_point | v.dtype.is_complex for v in values]
        values = tuple(v.detach().clone().requires_grad_() if f else v for v, f in zip(values, floating))
    return autodiff.gradcheck(function, values, **settings)


def profile_rows(profile, sort_by: str) -> dict:
    """The rows of a profile as the columns of a data frame."""
    rows = profile.rows(sort_by)
    return {name: [getattr(row, name) for row in rows] for name in ("name", "kind", "calls", "self", "total", "bytes")}
