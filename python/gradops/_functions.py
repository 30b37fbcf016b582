"""Functions that gradops creates: from source code, visible in tracebacks, and from other functions, with pickling."""

from __future__ import annotations

import copy
import functools
import inspect
import linecache
import operator
import sys
import weakref
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar, cast, overload

from .annotations import A, Number, P, R, X
from .errors import ArgumentTypeError, Given, unknown_argument

F = TypeVar("F", bound=Callable)
M = TypeVar("M", bound="Made")


def hint_arguments(function: F) -> F:
    """Return ``function``; the error for a keyword that it does not take names the arguments that it takes."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            inside = error.__traceback__ is not None and error.__traceback__.tb_next
            unknown = [name for name in kwargs if name not in inspect.signature(function).parameters]
            if inside or not unknown:
                raise
        raise unknown_argument(function.__name__, unknown[0], inspect.signature(function).parameters)

    return cast(F, call)


class Made(Generic[P, R]):
    """Base of objects that gradops makes from functions: methods in classes, pickled by name or value, and copied like
    functions.

    ``copy.copy()`` returns the object itself. So does ``copy.deepcopy()``, unless it copies what the object is made of,
    such as the model of a bound method.
    """

    autograph_info__: dict = {}
    """Keeps TensorFlow's AutoGraph from converting the object."""

    def __init_subclass__(cls, is_public: bool = False):
        super().__init_subclass__()
        if not is_public:
            # Keras loads what its configuration calls a "function" by its registered name, or from `custom_objects`.
            cls.__name__ = "function"

    @overload
    def __get__(self: M, instance: None, owner=None) -> M: ...
    @overload
    def __get__(self, instance: object, owner=None) -> Callable[..., R]: ...
    def __get__(self, instance, owner=None) -> Any:
        return self if instance is None else functools.partial(cast(Callable, self), instance)

    def _made_of(self) -> tuple[Callable, tuple]:
        """A function that makes the object, and its arguments."""
        raise NotImplementedError

    def __reduce__(self):
        make, parts = self._made_of()
        return name_of(self, *parts) or (make, parts)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo: dict):
        make, parts = self._made_of()
        copied = [copy.deepcopy(part, memo) if callable(part) else part for part in parts]  # settings do not change
        return self if all(map(operator.is_, copied, parts)) else make(*copied)


def hides_arguments(f: Callable) -> Callable:
    """Mark a function that shows what it differentiates to the user's functions as variables only."""
    f.are_arguments_hidden = True  # type: ignore[attr-defined]
    return f


class Transformed(Made[P, R]):
    """The result of transforming a function; it is called like ``call``, and is a method if the function is.

    Args:
        call: the transformed function.
        transformation, f, settings: unpickling calls ``transformation(f, *settings)``.
    """

    def __init__(self, call: Callable, transformation: Callable, f: Callable, *settings):
        functools.update_wrapper(self, f, updated=())
        self._call, self._transformation, self._settings = call, transformation, settings
        self.are_arguments_hidden = getattr(call, "are_arguments_hidden", False)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._call(*args, **kwargs)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.__wrapped__)  # type: ignore[attr-defined]

    def _made_of(self) -> tuple[Callable, tuple]:
        return self._transformation, (self.__wrapped__, *self._settings)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        name = getattr(self.__wrapped__, "__qualname__", self.__wrapped__)  # type: ignore[attr-defined]
        transformation = getattr(self._transformation, "func", self._transformation)
        return f"<gradops {transformation.__name__} of {name}>"


if TYPE_CHECKING:
    _First = TypeVar("_First", contravariant=True)
    _Result = TypeVar("_Result", covariant=True)
    All = ParamSpec("All")

    class Differentiable(Protocol[_First, P, All, _Result]):
        """A function whose first argument can be passed by position or by name."""

        @overload
        def __call__(self, x: _First, /, *args: P.args, **kwargs: P.kwargs) -> _Result: ...
        @overload
        def __call__(self, *args: All.args, **kwargs: All.kwargs) -> _Result: ...

    class Slope(Transformed[All, R], Generic[X, P, All, R]):
        """A transformed function that knows the type of its first argument, which may be the type of its result."""

        @overload
        def __call__(self, x: X, /, *args: P.args, **kwargs: P.kwargs) -> R: ...
        @overload
        def __call__(self, *args: All.args, **kwargs: All.kwargs) -> R: ...
        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...  # type: ignore[misc]

    class Curvature(Transformed[All, Any], Generic[X, P, All]):
        """A Jacobian or Hessian: an array for an array or a number, a nested structure for a structure."""

        @overload
        def __call__(self: Curvature[A, P, All], x: A, /, *args: P.args, **kwargs: P.kwargs) -> A: ...
        @overload
        def __call__(self: Curvature[A, P, All], *args: All.args, **kwargs: All.kwargs) -> A: ...
        @overload
        def __call__(self: Curvature[float, P, All], x: float, /, *args: P.args, **kwargs: P.kwargs) -> Number: ...
        @overload
        def __call__(self, x: X, /, *args: P.args, **kwargs: P.kwargs) -> Any: ...
        @overload
        def __call__(self, *args: All.args, **kwargs: All.kwargs) -> Any: ...
        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...  # type: ignore[misc]


def name_of(made, *parts) -> str | None:
    """The name under which a pickle finds an object made from functions; to be called in ``__reduce__``.

    None if it has no such name, or if it belongs to a script being run and cloudpickle or dill pickle it: the
    process that reads the pickle runs another script.

    Raises:
        ArgumentTypeError: Python's own pickle cannot find the object or one of the functions in ``parts``.
    """
    by_value = _pickles_by_value(sys._getframe(2))
    if (made.__module__ != "__main__" or not by_value) and _is_found(made):
        return made.__qualname__
    for f in () if by_value else parts:
        if type(f) is FunctionType and not _is_found(f):
            raise ArgumentTypeError(
                "a function that gradops made of `{name}` cannot be pickled: pickle finds no function of that name in "
                "`{module}`.",
                hint="define it at the top of a module, by `def`, or pickle it by cloudpickle (as joblib and Dask do)",
                name=Given(f.__qualname__),
                module=Given(f.__module__),
            )
    return None


def _is_found(x) -> bool:
    """True if the module of ``x`` has ``x`` under its name."""
    found = sys.modules.get(getattr(x, "__module__", None) or "")
    for part in getattr(x, "__qualname__", "").split("."):
        found = getattr(found, part, None)
    return found is x


def _pickles_by_value(frame) -> bool:
    """True if the frame belongs to a pickler that pickles functions themselves."""
    name = frame.f_globals.get("__name__", "")
    return "cloudpickle" in name or name.partition(".")[0] == "dill"


# Functions made from source code at run time, shown in tracebacks like others -----------------------------------------


def function(source: str, name: str, place: str, scope: dict[str, Any]) -> Callable:
    """The function ``name`` that ``source`` defines.

    Args:
        place: its name in tracebacks; no two functions that live at once may share it.
        scope: the names that the source uses; they become the function's globals.
    """
    file = f"<gradops {place}>"
    exec(compile(source, file, "exec"), scope)
    return _shown(scope.pop(name), source, file)  # removed from its own globals, which would be a cycle


def alike(source: str, name: str, place: str, scope: dict[str, Any]) -> Callable:
    """Like :func:`function`, for sources that often differ in the name only, which are compiled once."""
    file = f"<gradops {place}>"
    exec(_compiled(source.replace(f"def {name}(", "def _(", 1)), scope)
    made = scope.pop("_")
    names = {field: name for field in ("co_name", "co_qualname") if hasattr(made.__code__, field)}  # Python 3.11
    made.__code__ = made.__code__.replace(co_filename=file, **names)
    return _shown(made, source, file)


@functools.lru_cache(maxsize=1024)
def _compiled(source: str) -> CodeType:
    return compile(source, "<gradops>", "exec")


def _shown(made: Callable, source: str, file: str) -> Callable:
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    weakref.finalize(made, linecache.cache.pop, file, None).atexit = False
    return made
