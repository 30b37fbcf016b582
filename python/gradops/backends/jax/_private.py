"""JAX: every name of its that is not public and that gradops uses, in this file alone."""

from __future__ import annotations

import jax

from .._names import PrivateNames

private = PrivateNames("JAX", jax.__version__)
SCOPES = "a scope around JAX's operations"

core = private.find(SCOPES, "jax._src.core", ())
"""The transformation in progress, and how operations reach it."""
DynamicJaxprTrace = private.find(SCOPES, "jax._src.interpreters.partial_eval.DynamicJaxprTrace", ())
"""The class of a trace that writes a program down."""
for _name in ("Trace", "Tracer", "trace_ctx", "eval_trace", "set_current_trace", "typeof", "Primitive.bind_with_trace"):
    private.find(SCOPES, f"jax._src.core.{_name}")

CALLBACK_LOGGER = "jax._src.callback"
"""The logger that prints the errors of callbacks, which JAX also raises."""
