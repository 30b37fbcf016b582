"""R functions as ops: of a session in which Python is the host, and of R packages and scripts."""

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
from .callbacks import Held, signature, without_defaults
from .calls import op
from .host import Outside, host_function
from .values import from_r


def r_function(f, gradient=None, *, shape=None) -> Callable:
    """An R function as an op with a gradient, on every backend, called by value or back from compiled programs.

    Args:
        f: an R function: an object of rpy2's, or R source text such as ``"dnorm"`` or ``"function(x) dnorm(x)"``.
        gradient: the R function ``gradient(x, ..., upstream)``, in the same forms: it returns an array or
            number, a list in the order of the arguments or named by them, ``NULL`` for none. Or an
            ``r_function`` with a gradient of its own, for second derivatives. None: differentiating is an error.
        shape: the shape of the value, or a function of the arguments' shapes that gives it, for ``jax.jit``
            and ``tf.function``, which must know it before there are values. Without it ``f`` is called
            with made-up values (between 0 and 1) when they trace it; so is ``gradient``.

    Returns:
        A function of tensors of one backend, numbers, text, lists, dicts, data frames and R objects. Tensors go to R as
        doubles, integers or logicals: vectors (of length one with a dim), matrices and arrays. A value of length
        one without a dim is a scalar, a data frame a matrix. Floating values have the widest floating dtype of the
        tensors, ``floatx`` without; integers are int64, complex ones complex.

    Raises:
        RError: an error in R, with ``r_message``, ``r_call`` and ``r_class``; where a library passes on text
            alone (a program of JAX's or TensorFlow's), its error has R's message in it. R's warnings are Python's.
        ThreadError: R's thread is over, or waits in a library's compiled code: see ``call_in_thread``.
        BackendError: rpy2 or R is missing.

    An interrupt ends the wait, not R's computation: later calls wait for that. (R's own handler of interrupts,
    which it installs while it is in ``Sys.sleep`` or waits for a socket, works only where R is on the main thread;
    elsewhere an interrupt then ends the process.)

    R runs on one thread: one of its own where gradops starts it, the main thread where the program does,
    as ``import rpy2.robjects``. ``jax.vmap`` and ``torch.func.vmap`` call it for one row after the other;
    ``torch.compile`` breaks the graph there.
    """
    rpy2.start()
    name = f if isinstance(f, str) and f.isidentifier() else getattr(f, "__rname__", None) or "an R function"
    made = None if gradient is None else gradient if isinstance(gradient, Outside) else _callable(gradient, "gradient")
    return host_function(_callable(f, "f"), made, f"`{name}`" if " " not in name else name, shape)


def _callable(f, argument: str) -> Callable:
    """A function of NumPy arrays and other Python values, with the signature of the formals."""
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
        args, kwargs = without_defaults(names, args, kwargs)
        return rpy2.call_r(held.function, args, kwargs)

    run.__signature__ = signature(names, defaults)  # type: ignore[attr-defined]
    return run


def as_numpy(value) -> Any:
    """An R object of rpy2's as Python's: vectors, matrices and arrays as read-only, column-major views of R's memory.

    A vector of length one without a dim is a number; a list a list, with names (a data frame too) a dict;
    text ``str`` and ``NULL`` None. NA of integers and logicals is NaN.
    """
    rpy2.start()
    return threads.call(rpy2.from_r, value)


def as_r(value) -> Any:
    """A Python value as an R object of rpy2's; a view made by :func:`as_numpy` as the object that it is of.

    Raises:
        ArgumentTypeError: an object that R has no value for.
    """
    rpy2.start()
    return threads.call(rpy2.as_r, value)


def call_in_thread(f: Callable, /, *args, **kwargs):
    """``f(*args, **kwargs)``, on another thread while R's, if it is this one, serves.

    For functions that wait in compiled code for threads that call R, such as a ``tf.function`` with an
    ``r_function`` in it where R's thread is the main one. Recording (tapes, modes) is as it is here.
    """
    return threads.run(f, *args, **kwargs)


# Ops that R packages and scripts define -------------------------------------------------------------------------------


def extended_op(name: str, body: Callable, is_composed: bool, kernels, rules, facts) -> Callable:
    """The R form of an op of R functions; those formals of ``body`` that have no default are its tensors."""
    named: dict[str, Any] = {f: tuple(v) if isinstance(v, list) else v for f, v in dict(facts).items()}
    made = extend.op(_function(re.sub(r"\W", "_", name), body, is_composed), name=name, **named)
    for backend, kernel in dict(kernels).items():
        extend.kernel(made, backend, _of_library(backend, kernel))
    if rules:
        extend.derivative(made, **dict(rules))
    return op(name)


def _of_library(name: str, kernel: Callable) -> Callable:
    """``kernel``, whose results may be numbers and arrays of R's, with those of a library."""

    def call(*arguments):
        found = kernel(*arguments)
        owner = backends.by_name(name)
        several = isinstance(found, (list, tuple))
        made = [y if backends.of(y) is owner else owner.convert(y) for y in (found if several else [found])]
        return tuple(made) if several else made[0]

    return call


def _function(name: str, body: Callable, is_composed: bool) -> Callable:
    """``body``, an R function, as one of Python's that declares its arguments."""
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
    """:func:`gradops.extend.check` of R's arguments."""
    entry = registry[name]
    given = from_r(tuple(arguments))
    for position in entry.positions:
        given = (*given[:position], np.asarray(given[position]), *given[position + 1 :])
    extend.check(entry.call, *given, natural=natural, tolerance=tolerance)
