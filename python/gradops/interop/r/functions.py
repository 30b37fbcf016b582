"""R functions as ops.

:func:`r_function` serves Python sessions that run R; :func:`extended_op` serves ops defined by R packages and scripts.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _functions, backends, extend
from ...errors import ArgumentTypeError, TypeOf
from ...ops._dispatch import registry
from . import rpy2, threads
from .callbacks import Held, drop_defaults, signature
from .calls import op
from .host import Outside, host_function
from .values import from_r


def r_function(f, gradient=None, *, shape=None) -> Callable:
    """Return an R function as an op with a gradient, on every backend, also in compiled programs.

    Args:
        f: an R function: an rpy2 object, or R source text such as ``"dnorm"`` or ``"function(x) dnorm(x)"``.
        gradient: the R function ``gradient(x, ..., upstream)``, in the same forms. It returns an array or a number, or
            a list in the order of the arguments or named by them, with ``NULL`` for no gradient. For second
            derivatives pass an ``r_function`` that itself has a gradient. With None, differentiating is an error.
        shape: the shape of the value, or a function that returns it from the arguments' shapes. ``jax.jit`` and
            ``tf.function`` need it before values exist. Without it, tracing calls ``f`` and ``gradient`` with
            made-up values between 0 and 1.

    Returns:
        A function of tensors of one backend, numbers, text, lists, dicts, data frames and R objects. R gets tensors as
        doubles, integers or logicals: vectors (with a dim if of length one), matrices and arrays. A result of length
        one without a dim becomes a scalar, a data frame a matrix. Floating results have the widest floating dtype of
        the tensors, or ``floatx`` without tensors; integers are int64, complex results complex.

    Raises:
        RError: an error in R, with ``r_message``, ``r_call`` and ``r_class``. Compiled programs of JAX and TensorFlow
            raise their own error with R's message in its text. R's warnings become Python warnings.
        ThreadError: R's thread has ended, or waits in a library's compiled code: see ``call_in_thread``.
        BackendError: rpy2 or R is missing.

    An interrupt ends the wait, not R's computation: later calls wait until R has finished. (The interrupt handler that
    R installs during ``Sys.sleep`` and while it waits for a socket works only if R runs on the main thread. On another
    thread an interrupt then ends the process.)

    R runs on a single thread: a thread of its own if gradops starts R, the main thread if the program does, for example
    by ``import rpy2.robjects``. ``jax.vmap`` and ``torch.func.vmap`` call it once per row; ``torch.compile`` breaks the
    graph there.
    """
    rpy2.start()
    name = f if isinstance(f, str) and f.isidentifier() else getattr(f, "__rname__", None) or "an R function"
    made = None if gradient is None else gradient if isinstance(gradient, Outside) else _callable(gradient, "gradient")
    return host_function(_callable(f, "f"), made, f"`{name}`" if " " not in name else name, shape)


def _callable(f, argument: str) -> Callable:
    """Return a Python function that calls an R function, with the signature of its formals."""
    found = rpy2.function_of(f)
    if found is None:
        raise ArgumentTypeError(
            f"`{argument}` must be an R function, an object of rpy2's or R source text; got {{f}}"
            + (f" {f!r}." if isinstance(f, str) else "."),
            argument=argument,
            f=TypeOf(f),
        )
    names, defaults = rpy2.formals(found)
    held = Held(found)

    def run(*args, **kwargs):
        args, kwargs = drop_defaults(names, args, kwargs)
        return rpy2.call_r(held.function, args, kwargs)

    run.__signature__ = signature(names, defaults)  # type: ignore[attr-defined]
    return run


def as_numpy(value) -> Any:
    """Convert an rpy2 object to Python.

    Vectors, matrices and arrays become read-only, column-major views of R's memory. A vector of length one without a
    dim becomes a number, a list a list, a named list or data frame a dict, text ``str`` and ``NULL`` None. NA in
    integers and logicals becomes NaN.
    """
    rpy2.start()
    return threads.call(rpy2.from_r, value)


def as_r(value) -> Any:
    """Convert a Python value to an rpy2 object; a view made by :func:`as_numpy` gives back its R object.

    Raises:
        ArgumentTypeError: an object that has no R equivalent.
    """
    rpy2.start()
    return threads.call(rpy2.as_r, value)


def call_in_thread(f: Callable, /, *args, **kwargs):
    """Call ``f(*args, **kwargs)`` on another thread if this is R's thread, which meanwhile serves calls of R.

    Use it for functions that wait in compiled code for threads that call R, such as a ``tf.function`` containing an
    ``r_function`` when R runs on the main thread. Recording (tapes, modes) carries over to the other thread.
    """
    return threads.run(f, *args, **kwargs)


# Ops that R packages and scripts define -------------------------------------------------------------------------------


def extended_op(name: str, body: Callable, is_composed: bool, kernels, rules, facts) -> Callable:
    """Define an op by R functions and return its R form; formals of ``body`` without a default are its tensors."""
    named: dict[str, Any] = {f: tuple(v) if isinstance(v, list) else v for f, v in dict(facts).items()}
    made = extend.op(_function(re.sub(r"\W", "_", name), body, is_composed), name=name, **named)
    for backend, kernel in dict(kernels).items():
        extend.kernel(made, backend, _wrap_results(backend, kernel))
    if rules:
        extend.derivative(made, **dict(rules))
    return op(name)


def _wrap_results(name: str, kernel: Callable) -> Callable:
    """Wrap an R kernel so that its results, which may be R's numbers and arrays, become a library's tensors."""

    def call(*arguments):
        found = kernel(*arguments)
        owner = backends.lookup(name)
        several = isinstance(found, (list, tuple))
        made = [y if backends.backend_of(y) is owner else owner.convert(y) for y in (found if several else [found])]
        return tuple(made) if several else made[0]

    return call


def _function(name: str, body: Callable, is_composed: bool) -> Callable:
    """Return a Python function that calls the R function ``body``, with its arguments declared for ``extend.op``."""
    parameters = inspect.signature(body).parameters.values()
    tensors = [p.name for p in parameters if p.default is p.empty]
    given = ", ".join(p.name if p.default is p.empty else f"{p.name}=None" for p in parameters)
    passed = ", ".join(p.name for p in parameters)
    source = f"def {name}({given}):\n    {f'return body({passed})' if is_composed else '...'}\n"
    function = _functions.function(source, name, f"R op {name}", {"body": body, "__name__": "r"})
    kind = "Operand" if len(tensors) > 1 else "Tensor"
    function.__annotations__ = dict.fromkeys(tensors, kind)
    return function


def check_extended_op(name: str, arguments: list, natural: bool, tolerance: float) -> None:
    """Run :func:`gradops.extend.check` on R's arguments."""
    entry = registry[name]
    given = from_r(tuple(arguments))
    for position in entry.positions:
        given = (*given[:position], np.asarray(given[position]), *given[position + 1 :])
    extend.check(entry.call, *given, natural=natural, tolerance=tolerance)
