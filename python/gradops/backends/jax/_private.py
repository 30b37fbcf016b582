"""All names of JAX that gradops uses and that are not public, by feature."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import jax

from .._names import PrivateNames, resolve

private = PrivateNames("JAX", jax.__version__)
SCOPES = "a scope around JAX's operations"

core = private.find(SCOPES, "jax._src.core", ())
"""The module that holds the transform in progress and dispatches operations to it."""
DynamicJaxprTrace = private.find(SCOPES, "jax._src.interpreters.partial_eval.DynamicJaxprTrace", ())
"""The class of a trace that records a program."""
for _name in ("Trace", "Tracer", "trace_ctx", "eval_trace", "set_current_trace", "Primitive.bind_with_trace"):
    private.find(SCOPES, f"jax._src.core.{_name}")

typeof = getattr(jax, "typeof", None) or resolve("jax._src.api_util.shaped_abstractify")  # public from JAX 0.6
"""The abstract value of an array: shape and dtype."""

_bind = resolve("jax._src.core.Primitive.bind_with_trace")
if _bind is not None and "avals" in inspect.signature(_bind).parameters:  # JAX 0.9

    def bind(primitive, trace, functions: tuple, xs: tuple, params: dict):
        """Apply a primitive to functions and arrays under a transform."""
        params = dict(params, subfuns=functions) if functions else params
        return primitive.bind_with_trace(trace, xs, tuple(map(jax.typeof, xs)), params)

else:

    def bind(primitive, trace, functions: tuple, xs: tuple, params: dict):
        return primitive.bind_with_trace(trace, (*functions, *xs), params)


def older_stack():
    """JAX 0.4.35's stack of the transforms in progress; None in other versions."""
    return None if private.supported(SCOPES) else resolve("jax._src.core.thread_local_state.trace_state.trace_stack")


def transformations() -> list[type]:
    """The classes of the transforms in progress; if they cannot be determined, as if a program were being traced."""
    if not private.supported(SCOPES):
        stack = older_stack()
        return [DynamicJaxprTrace] if stack is None else [main.trace_type for main in stack.stack[1:]]
    found, trace = [], core.trace_ctx.trace
    while trace is not None and trace is not core.eval_trace:
        found.append(type(trace))
        trace = getattr(trace, "parent_trace", None)
    return found


BATCHING = "a custom gradient under jax.vmap"
_batching = "jax._src.interpreters.batching"
_takes_axes = resolve(f"{_batching}.fancy_primitive_batchers") is not None  # else JAX 0.4.35
_batchers = private.find(BATCHING, f"{_batching}.{'fancy' if _takes_axes else 'axis'}_primitive_batchers", {})


class _Axis(NamedTuple):
    size: int
    name: Any
    spmd_name: Any = None


def set_batcher(primitive, rule) -> None:
    """Set a primitive's batching ``rule(axis, values, dims, **params)``.

    ``axis`` has the size and names of the batch.
    """

    def of_older(size, name, _, values, dims, **params):
        return rule(_Axis(size, name), values, dims, **params)

    _batchers[primitive] = rule if _takes_axes else of_older


CLOSED_OVER = tuple(
    error
    for error in (jax.errors.UnexpectedTracerError, resolve("jax._src.interpreters.ad.CustomVJPException"))
    if error is not None
)
"""JAX's errors when a function with a custom derivative closes over an array that is being differentiated."""

exclude_from_sources = resolve("jax._src.source_info_util.register_exclusion") or (lambda path: None)
"""Make JAX name the caller's line, not one in this folder, as the source of an operation."""

CALLBACK_LOGGER = "jax._src.callback"
"""The logger that prints callbacks' errors, although JAX also raises them."""
