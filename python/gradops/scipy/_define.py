"""Decorators that define SciPy's functions for gradops.

:func:`ufunc` makes an op, which runs a library's own kernel if it has one and else SciPy's on the host.
:func:`composed` wraps a function composed of ops, so that its errors name the function and the argument.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import math
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from .. import backends, dtypes, extend, ops
from ..backends import Backend
from ..backends.numpy.base import function_of, number
from ..errors import ArgumentTypeError, BackendError, GradientError, meant
from ..ops import _checks
from ..ops._compose import NUMBERS, promoted
from ..ops._dispatch import Op
from ..ops._docstrings import completed
from ..ops._docstrings import family as docstrings_of
from ..ops._registry import Facts

F = TypeVar("F", bound=Callable)

LIBRARIES = ("torch", "jax", "tensorflow")


def ufunc(
    path: str | Callable | None = None, *, domain: tuple[float, float] | None = None, **named: Any
) -> Callable[[F], F]:
    """Return a decorator that makes an elementwise op from a signature with a docstring.

    The docstring describes what is particular to the op; the sections on results and errors that all such ops share are
    added to it.

    Args:
        path: SciPy's function, such as ``special.gammainc``, or a function of NumPy arrays; by default the op's own
            name in its module. An empty path means that there is none and the body composes the op.
        domain: for a function of one argument the interval outside which it is NaN, see :class:`.extend.Facts`.
        **named: a library's name with the path of its own function of the same arguments, such as ``special.gammainc``
            for ``torch.special.gammainc``, if that is fully accurate; other libraries call SciPy on the host. Or an
            argument's name with the rule of the derivative by it, see :func:`.extend.derivative`.
    """

    def decorate(function: F) -> F:
        name = _name(function)
        function.__doc__ = _documented(function)
        made = extend.op(function, name=name, elementwise=True, domain=domain)
        entry = made.op
        where = name.removeprefix("scipy.") if path is None else path
        if where:
            backends.add_kernel("numpy", name, functools.partial(_numpy_kernel, entry, where))
        for library in LIBRARIES:
            if library in named:
                backends.add_kernel(library, name, functools.partial(_library_kernel, library, named[library]))
            elif where:
                backends.add_kernel(library, name, functools.partial(_host_kernel, entry, where))
        rules = {argument: rule for argument, rule in named.items() if argument not in LIBRARIES}
        if rules:
            extend.derivative(made, **rules)
        return made

    return decorate


def grouped_op(function: F, group: Callable) -> F:
    """Return an op for a function that chooses between several formulas for each element.

    NumPy arrays are evaluated in groups of elements that use the same formula, so that no formula is computed in vain,
    and in chunks of 104 elements, whose intermediate results (76 nodes) stay in the cache.

    Args:
        function: an elementwise function composed of ops.
        group: returns the number of each element's group, given floating NumPy arrays of one shape.
    """
    name = f"{function.__module__.removeprefix('gradops.').replace('._', '.')}.{function.__name__.strip('_')}"
    made = extend.op(function, name=name, elementwise=True)

    def kernel(*xs):
        given = promoted(*xs, floating=True)
        shape = np.broadcast_shapes(*[x.shape for x in given])
        flat = [np.broadcast_to(x, shape).reshape(-1) for x in given]
        result = np.empty(flat[0].shape, given[0].dtype)
        if result.size:
            numbers = group(*flat)
            for number in np.unique(numbers):
                places = np.flatnonzero(numbers == number)
                for start in range(0, len(places), 104):
                    part = places[start : start + 104]
                    result[part] = function(*[x[part] for x in flat])
        return result.reshape(shape)[()]  # like NumPy's functions, a scalar rather than a 0-dimensional array

    extend.kernel(made, "numpy", kernel)
    return made


def composed(function: F) -> F:
    """Wrap a function composed of ops so that its errors name the function and the argument at fault.

    Arguments are checked only after the function has failed, against their annotations (:mod:`gradops.annotations` and
    ``Literal``). Errors raised by functions that users pass, annotated ``Function``, are not changed.
    """

    @functools.wraps(function)
    def public(*args, **kwargs):
        try:
            return unwrap_scalars(function(*args, **kwargs))
        except Exception as error:
            failure = _reason(function, error, args, kwargs)
        raise failure

    public.autograph_info__ = None  # type: ignore[attr-defined]  # TensorFlow's AutoGraph leaves it as it is
    return public  # type: ignore[return-value]


def unwrap_scalars(result):
    """Return a result with 0-dimensional NumPy arrays as numbers, as SciPy's functions return them."""
    if isinstance(result, tuple):
        parts = map(unwrap_scalars, result)
        if not hasattr(result, "_fields"):
            return tuple(parts)
        made = type(result)(*parts)
        for name, value in getattr(result, "__dict__", {}).items():  # SciPy's results have attributes besides fields
            setattr(made, name, unwrap_scalars(value))
        return made
    return number(result)


def refused(function: str, argument: str, why: str = "") -> Callable:
    """Return a derivative rule that raises an error, for an argument by which a function has no derivative here.

    It raises for variables and NumPy arrays. Other libraries compute the gradients by all arguments at once, whether
    they are needed or not; there the rule returns NaN.
    """

    def rule(g):
        data = g.data if hasattr(g, "_node") else g
        if backends.backend_of(data) is not None and not isinstance(data, (np.ndarray, np.generic)):
            return ops.stop_gradient(g) * math.nan
        raise GradientError(
            f"`{function}` has no derivative by `{argument}`{': ' * bool(why)}{why}.",
            hint=f"`stop_gradient({argument})`, or a number",
        )

    return rule


def promoting(rule: Callable) -> Callable:
    """Wrap a rule to receive its arguments in their promoted floating dtype: orders are often integers."""

    @functools.wraps(rule)
    def promoted_rule(g, *xs):
        return rule(g, *_alike(xs))

    return promoted_rule


def _name(function: Callable) -> str:
    module = function.__module__.removeprefix("gradops.scipy.").partition(".")[0]
    return f"scipy.{module}.{function.__qualname__}"


@functools.cache
def _described(function: Callable) -> Op:
    return Op(function, _name(function), True, None, Facts())


def _reason(function: Callable, error: Exception, args: tuple, kwargs: dict) -> Exception:
    """Return the error to raise in place of ``error``: for the argument at fault, or with the function's name."""
    entry = _described(function)
    try:
        bound = entry.signature.bind(*args, **kwargs)
    except TypeError as wrong:
        unknown = next((name for name in kwargs if name not in entry.parameters), None)
        lacking = next((name for name in entry.parameters if f"{name!r}" in str(wrong)), None)
        return _caused(
            ArgumentTypeError(
                f"`{entry.name}`: {wrong}.",
                argument=unknown or lacking or "arguments",
                hint=meant(unknown, entry.parameters) or f"its arguments are {', '.join(entry.parameters)}",
            ),
            error,
        )
    bound.apply_defaults()
    options = typing.get_type_hints(function) if "Literal" in entry.annotations.values() else {}
    try:
        for name, value in bound.arguments.items():
            if value is None:
                continue
            if entry.annotations[name] in _checks.NORMALISE:
                _checks.NORMALISE[entry.annotations[name]](entry, value, name)
            elif name in options and entry.annotations[name] == "Literal":
                words = [typing.get_args(part) or (part,) for part in typing.get_args(options[name])]
                _checks.choice(
                    entry.name, value, [word for part in words for word in part if word is not type(None)], name
                )
            elif entry.annotations[name] == "Function" and not callable(value):
                raise ArgumentTypeError(
                    f"`{entry.name}`: `{name}` must be a function; got {{value}}.",
                    argument=name,
                    value=_checks.describe(value),
                )
    except Exception as wrong:
        return _caused(wrong, error)
    if "Function" in entry.annotations.values():
        return error
    return _checks.explain(entry, error, tuple(bound.arguments.values()))


def _caused(failure: Exception, by: Exception) -> Exception:
    failure.__cause__ = by
    return failure


def family(
    arguments: Mapping[str, str] | None = None, *, returns="", raises="", gradient="", within: Callable = composed
) -> Callable[[F], F]:
    """Return a decorator that applies :func:`gradops.ops._docstrings.family`, then ``within``."""

    described = docstrings_of(arguments, returns=returns, raises=raises, gradient=gradient)
    return lambda function: within(described(function))


def _documented(function: Callable) -> str:
    """Return a ufunc's docstring completed with the sections that all ufuncs share."""
    *others, last = [f"``{name}``" for name in inspect.signature(function).parameters]
    result = (
        f"A tensor of the shape that {', '.join(others)} and {last} broadcast to, of their promoted floating dtype."
        if others
        else f"A tensor of {last}'s shape, of a floating dtype."
    )
    own = "" if "Raises:\n" in (function.__doc__ or "") else _ERRORS
    return completed(function, {}, Returns=f"{result} NaN outside the domain.", Raises=own)


_ERRORS = """ArgumentTypeError: a complex tensor, a text or a function.
ShapeError: shapes that do not broadcast."""


def _found(package: str, path: str) -> Any:
    """Return a function by its path in a package."""
    module, _, name = f"{package}.{path}".rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except ImportError:  # the parent is an attribute, not a module, as `tensorflow.math`
        return functools.reduce(getattr, path.split("."), importlib.import_module(package))


def _host_function(path: str | Callable) -> Callable:
    """Return SciPy's function at a path. If this SciPy is too old to have it, calls raise an error."""
    try:
        return _found("scipy", path) if isinstance(path, str) else path
    except AttributeError:
        version = importlib.import_module("scipy").__version__

    def newer(*_):
        raise BackendError(f"SciPy {version} has no `scipy.{path}`.", hint="install a newer SciPy")

    return newer


def _giving_numbers(function: Callable) -> Callable:
    @functools.wraps(function)  # copies attributes such as `limits`
    def kernel(*xs):
        return number(function(*xs))

    return kernel


def _numpy_kernel(op: Op, path: str | Callable, _: Backend) -> Callable:
    """Return SciPy's function as NumPy's kernel."""
    function = _host_function(path)
    if not isinstance(function, np.ufunc):  # ufuncs return scalars themselves
        function = _giving_numbers(function)

    def of_floats(*xs):
        given = promoted(*xs, floating=True)
        y = function(*given)
        return y if y.dtype == given[0].dtype else y.astype(given[0].dtype)  # half precision comes back as single

    def of_one(x):
        return function(x) if x.dtype.char == "d" else of_floats(x)

    def of_two(x1, x2):
        if x1.__class__ is x2.__class__ and x1.dtype.char == "d" == x2.dtype.char:
            return function(x1, x2)
        return of_floats(x1, x2)

    def of_several(*xs):
        for x in xs:
            if type(x) in NUMBERS or x.dtype.char != "d":
                return of_floats(*xs)
        return function(*xs)

    kernel: Any = {1: of_one, 2: of_two}.get(len(op.parameters), of_several)
    kernel.direct = function
    kernel.function = path.removeprefix("special.") if isinstance(path, str) else function_of(path)
    kernel.limits = getattr(path, "limits", ())
    return kernel


def _library_kernel(library: str, own: str | Callable, _: Backend) -> Callable:
    """Return a library's own function as its kernel."""
    function = _found(library, own) if isinstance(own, str) else own

    def kernel(*xs):
        return function(*_alike(xs))

    return kernel


def _host_kernel(op: Op, path: str | Callable, backend: Backend) -> Callable:
    """Return SciPy's function, called on the host, as the kernel of a library that has none."""
    function = _host_function(path)

    def single(*xs):
        half = dtypes.bits(str(xs[0].dtype)) < 32
        return function(*[x.astype("float32") for x in xs] if half else xs)

    name, on_host = op.name, backend.call_on_host
    foresee = backend.kernel("foresee")
    if foresee is not None:  # the library's graphs call host functions by name
        foresee(name, single)

    def kernel(*xs):
        return on_host(name, single, _alike(xs))

    return kernel


def _alike(xs) -> list:
    """Return operands as tensors of their promoted floating dtype."""
    return promoted(*xs, floating=True)
