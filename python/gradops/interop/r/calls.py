"""The ops and other functions of gradops as R calls them.

R's arguments are converted (axes and positions count from 1), and errors are returned as :class:`.Failure`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import operator
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

import gradops

from ... import _functions, _tree, autodiff, backends, config, ops
from ...annotations import kind_of
from ...autodiff.variable import as_array, text_data
from ...backends.policy import NeedsPolicy
from ...ops._dispatch import facts_of, registry
from . import code_comparisons, host, indexing, threads, values
from .callbacks import Held, holding, keeping
from .errors import Failure
from .values import MARK, as_index, as_shape, backend_of, float_of, from_r, positions_from_r

TENSORS = ("Tensor", "Operand", "Input", "Tensors", "Structure", "Index", "Indices")
_CONVERSIONS = {
    "Axis": "as_axis",
    "Axes": "as_axis",
    "Index": "as_index",
    "Indices": "as_index",
    "Integer": "as_integer",
    "Integers": "as_integers",
    "Shape": "as_shape",
}


def find(name: str) -> Callable:
    """Return an op, or another public function of the package, by name."""
    for place in (ops, gradops):
        with contextlib.suppress(AttributeError):
            return operator.attrgetter(name)(place)
    return registry[name].call  # of another package


def annotation(parameter: inspect.Parameter) -> str:
    """Return the name that ``gradops.annotations`` gives a parameter's annotation."""
    if parameter.annotation is parameter.empty:
        return "Axes" if parameter.name.endswith("axis") else ""
    word = kind_of(parameter.annotation)
    if word == "X":  # a type variable: the result has the argument's type
        return ""
    return "Axis" if word == "Integer" and parameter.name == "axis" else word


def parameters(function: Callable) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(function).parameters)


def has_positions(name: str, function: Callable) -> bool:
    """Return True if the op takes or returns positions, so that its R form has ``zero_indexed``."""
    return bool(facts_of(name).positions) or any(
        annotation(p) in ("Index", "Indices") for p in parameters(function).values()
    )


_SPECIAL = {"indices_or_sections": "as_sections", ("tensordot", "axes"): "as_tensordot_axes"}

_TEMPLATE = """
def call({signature}):
    try:
{body}
    except Exception as error:
        return Failure(error)
"""


def op(name: str) -> Callable:
    """Compile the R form of an op: all arguments by position in Python's order, ``zero_indexed`` last.

    R passes ``*operands`` as one list and ``**lengths`` as one named list.
    """
    function = find(name)
    found = parameters(function)
    tensors = [p for p in found if annotation(found[p]) in ("", *TENSORS)]
    positions = [p for p in tensors if annotation(found[p]) in ("Index", "Indices")]
    others = [p for p in tensors if p not in positions]
    lines, call = [], []
    facts = facts_of(name)
    lines += [f"{name_} = whole({name_})" for name_ in facts.whole]  # R's doubles, if they are integers
    conditions = ("pred",) if name == "cond" else facts.conditions
    lines += [f"if {_may_be_missing(n)}: truth({n}, {n!r})" for n in conditions]
    if name == "while_loop":
        lines.append("cond = deciding(cond)")
    into, dtype = code_comparisons.INTO.get(name, ((), ""))
    lines += [f"given_{name_} = {name_}" for name_ in into]
    if others:
        lines.append(f"if {_any_container(others)}: {_listed(others)} = from_r(({_listed(others)}))")
    if positions:
        tensors_ = f"({_listed(others)})" if others else "()"
        read = f"positions_from_r(({_listed(positions)}), {tensors_})"
        lines.append(f"if {_any_container(positions)}: {_listed(positions)} = {read}")
    lines += [f"if {_may_be_missing(f'given_{n}')}: check_holds({name!r}, {n!r}, given_{n}, {dtype})" for n in into]
    for name_, parameter in found.items():
        kind = annotation(parameter)
        if kind in _CONVERSIONS:
            conversion = _SPECIAL.get((name, name_)) or _SPECIAL.get(name_) or _CONVERSIONS[kind]
            extra = ", zero_indexed" if conversion == "as_index" else ""
            lines.append(f"{name_} = {conversion}({name_}, {name_!r}{extra})")
        call.append(_CALLED[parameter.kind].format(name_))
    result = f"_function({', '.join(call)})"
    if facts.positions:
        which = None if facts.positions == "all" else facts.positions
        result = f"{result} if zero_indexed else one_based({result}, {which})"
    lines.append(f"return {result}")
    signature = [*found, "zero_indexed=False"] if has_positions(name, function) else found
    source = _TEMPLATE.format(signature=", ".join(signature), body="\n".join(f"        {line}" for line in lines))
    scope = {**vars(values), **vars(code_comparisons), "Failure": Failure, "_function": function}
    return _functions.function(source, "call", f"op {name} for R", scope)


def _listed(names: list[str]) -> str:
    return "".join(f"{name}, " for name in names)


def _any_container(names: list[str]) -> str:
    return " or ".join(f"{name}.__class__ in CONTAINERS" for name in names)


def _may_be_missing(name: str) -> str:
    return f"{name}.__class__ in CONTAINERS or {name}.__class__ is float"


_CALLED = {
    inspect.Parameter.POSITIONAL_ONLY: "{0}",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "{0}",
    inspect.Parameter.VAR_POSITIONAL: "*{0}",
    inspect.Parameter.KEYWORD_ONLY: "{0}={0}",
    inspect.Parameter.VAR_KEYWORD: "**named({0})",
}


# The functions of gradops taking R's arguments, and functions that only R needs ---------------------------------------


def guarded(function: Callable) -> Callable:
    """Wrap ``function`` so that it converts R's arguments and returns failures."""

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
    """Call ``function`` for R and return its result.

    Args:
        numbers: the form of R's doubles. None passes numbers. ``"tensors"`` passes tensors, so that R code in
            ``function`` sees tensors. ``"alone"`` passes tensors only if no argument is a tensor; next to a tensor
            they stay numbers, without a gradient.
        keep: the R objects needed by the function and by everything this call makes; see :data:`callbacks.holding`.
        in_r: True to convert the result's tensors to R values.
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
    return values.r_arrays(result) if in_r else result


def _is_tensor(x) -> bool:
    return ops.is_tensor(x) or isinstance(x, autodiff.Variable)


class Made:
    """A function made from R functions, rebuilt for each call so that its graph keeps the R objects they need."""

    def __init__(self, make: Callable, functions: tuple):
        self._make, self._functions = make, functions

    def keeping(self, held: Held) -> Callable:
        return self._make(*[keeping(function, held) for function in self._functions])


def made(name: str, *functions: Callable, **settings) -> Made:
    """Return the result of gradops' function ``name`` for R functions, rebuilt at each :func:`invoke`."""
    return Made(functools.partial(operator.attrgetter(name)(gradops), **settings), functions)


def custom_jvp(f: Callable, rule: Callable) -> Callable:
    """Return ``gradops.custom_jvp(f)`` with its rule set."""
    function = gradops.custom_jvp(f)
    function.defjvp(rule)
    return function


def jit(f: Callable, static_argnums=(), native: bool = True) -> Callable:
    """Return ``gradops.jit(f)``; programs that may call R back from a library's threads run off R's thread."""
    compiled: Any = gradops.jit(f, static_argnums, native)

    def run(*arguments, **keywords):
        if not static_argnums and not keywords and values.is_plain(arguments):
            return compiled(*values.as_arrays(arguments))
        tensors = [x for x in _tree.leaves_of((arguments, keywords)) if ops.is_tensor(x)]
        if not static_argnums and all(ops.dtype(x) == "float64" for x in tensors):
            backend = backend_of((arguments, keywords))  # all float64: trace R's numbers as tensors, not as constants
            arguments, keywords = _floats(arguments, backend), _floats(keywords, backend)
        if host.exists and backend_of((arguments, keywords)).calls_from_threads:
            return threads.run(lambda: _computed(compiled(*arguments, **keywords)))
        return compiled(*arguments, **keywords)

    run.compiled, run.explain = compiled, compiled.explain  # type: ignore[attr-defined]
    return run


def explain(function: Any) -> str:
    """Explain the programs compiled for a function made by :func:`jit`, or for a :func:`.likelihood`."""
    if hasattr(function, "model"):
        function = function.model()
    return "not compiled yet: the first call compiles it" if function is None else function.explain()


def follow(function: Any, previous: Any, changes: list) -> None:
    """Have a compiled function go on with the retraces of the one that it replaces.

    Args:
        changes: lists of the name of what has changed, its value before and its value now, None where not single.
    """
    made, before = [getattr(x, "explain", None) for x in (function, previous)]
    if made is not None and before is not None:
        made.__self__.retraces = before.__self__.retraces
        made.__self__.retraces.forget(from_r(tuple(changes)))


def _computed(value):
    """Return ``value`` after JAX has computed it."""
    return _tree.map_leaves(lambda x: x.block_until_ready() if hasattr(x, "block_until_ready") else x, value)


def host_op(function: Callable, gradient: Callable | None, name: str, shape):
    """Return an op that runs R functions on R's numbers."""
    return host.host_function(function, gradient, name, None if shape is None else as_shape(shape, "shape"))


def to_r(value):
    """Return a tensor's values for R. While JAX computes them, calls of R are served."""
    ready = getattr(value, "is_ready", None)
    if host.exists and ready is not None and threads.is_current():
        threads.wait_until(ready, 0.001)
    return values.to_r(value)


def _floats(value, backend: backends.Backend, name: str | None = None):
    """Convert R's numbers to tensors of the floating dtype ``name``, by default ``floatx``."""
    kind = value.__class__
    if kind is dict:
        return {key: _floats(item, backend, name) for key, item in value.items()}
    if kind is tuple or kind is list:
        return kind(_floats(item, backend, name) for item in value)
    return backend.convert(value, name) if kind is float else value


def function(forward: Callable, backward: Callable, evaluator: bool = False) -> Callable:
    """Return the ``apply`` of a ``Function`` whose passes are two R functions."""

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

    begin.__signature__ = formals  # type: ignore[attr-defined]  # assigns arguments passed by name to positions
    methods: dict[str, Any] = {
        "evaluator": evaluator,
        "forward": staticmethod(begin),
        "backward": staticmethod(lambda ctx, *gradients: gradients_of(backward(ctx, *gradients))),
    }
    made: Any = type("RFunction", (autodiff.Function,), methods)
    return made.apply


def variable(data, requires_grad: bool, role: str | None, parameter: bool = False):
    """Return a new variable for R: a leaf tensor on PyTorch, else a ``Variable`` or ``Parameter`` on a copy of data."""
    if text_data(data) is None:
        if backends.backend_of(data) is None and not isinstance(data, autodiff.Variable):
            data = as_array(data, config.default_backend())
        owner = backends.backend_of(data)
        if owner is not None and owner.derivatives.own_tape:
            leaf = data.detach().clone()
            if requires_grad:
                gradops.set_requires_gradient(leaf)
            return leaf
        if isinstance(data, np.ndarray):
            data = data.copy(order="K")  # keep the column-major order of R's matrices
    return (autodiff.Parameter if parameter else autodiff.Variable)(data, requires_grad, role)


def _found(path: str) -> Any:
    """Return an object of gradops by its dotted name, and import the private modules on the way."""
    # Asking a module for a name that it does not have yet would import all modules, to look for a similar name.
    found: Any = gradops
    for name in path.split("."):
        if isinstance(found, ModuleType) and name not in vars(found) and name not in getattr(found, "__all__", ()):
            importlib.import_module(f"{found.__name__}.{name}")
        found = getattr(found, name)
    return found


def attribute(path: str) -> Callable:
    """Return the :func:`guarded` form of a function of gradops, by its dotted name."""
    function = jit if path == "jit" else _found(path)
    return function if function in (subset, assign, get_item, to_backend) else guarded(function)


def to_backend(x, backend: str, device=None):
    """Return ``gradops.to_backend(x)``; R's own numbers are copied, since R cannot see writes by others."""
    try:
        with config.backend_scope(backend):
            (x,) = from_r((x,))
            return gradops.to_backend(x, backend, device)
    except Exception as error:
        return Failure(error)


def subset(x, indices: list, drop: bool, exact: bool = False):
    """Return R's ``x[i, j]``, or ``x[[i, j]]`` if ``exact``."""
    try:
        (x,) = from_r((x,))
        return indexing.subset(x, _r_indices(indices), drop, exact)
    except Exception as error:
        return Failure(error)


def assign(x, indices: list, value):
    """Return ``x`` after R's ``x[i, j] <- value``."""
    try:
        x, value = from_r((x, value))
        return indexing.assign(x, _r_indices(indices), value)
    except Exception as error:
        return Failure(error)


def put(x, position: float, value):
    """Return ``x`` after R's ``x[i] <- value`` for one position; a vector grows as needed."""
    try:
        x, value = from_r((x, value))
        return indexing.put(x, position, value)
    except Exception as error:
        return Failure(error)


def get_item(x, key):
    """Return ``x[key]`` by NumPy's rules, with positions from 1 and None for a whole dimension."""
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
    """Unwrap R's indices; their arrays stay NumPy arrays rather than tensors."""
    return [index[MARK] if index.__class__ is dict else index for index in indices]


def add_hook(x, method: str, hook: Callable):
    """Register an R function as a hook; a result that is not a tensor counts as None."""

    def call(value):
        result = hook(value)
        return result if backends.backend_of(result) is not None or isinstance(result, autodiff.Variable) else None

    return getattr(x, method)(call if method == "register_hook" else lambda value: call(value) and None)


def check_gradients(function: Callable, inputs: list, **settings) -> bool:
    """Run ``gradcheck`` on R's inputs; torch tensors all require gradients if none does."""
    backend = backend_of(inputs)
    values = _floats(tuple(inputs), backend)
    if backend.derivatives.own_tape and not any(getattr(v, "requires_grad", False) for v in values):
        floating = [
            backends.backend_of(v) is backend and v.dtype.is_floating_point | v.dtype.is_complex for v in values
        ]
        values = tuple(v.detach().clone().requires_grad_() if f else v for v, f in zip(values, floating))
    return autodiff.gradcheck(function, values, **settings)


def profile_rows(profile, sort_by: str) -> dict:
    """Return the rows of a profile as the columns of a data frame."""
    rows = profile.rows(sort_by)
    return {name: [getattr(row, name) for row in rows] for name in ("name", "kind", "calls", "self", "total", "bytes")}
