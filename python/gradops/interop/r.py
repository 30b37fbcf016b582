"""What the R package calls: the ops as R writes them, R functions as Python ones, errors as values.

- Each op has a form for R: axes and indices count from 1, R's numbers pass as whole numbers where those are
  wanted, and a failure is returned, not raised: reticulate needs a millisecond to translate an exception.
- An R array travels as ``{"<R>": ndarray}``, so that it is known from a NumPy tensor that R holds: like a
  number or a list, it belongs to the backend of the other tensors, or to the default one.
- An R function is given the signature of its formals, as gradops looks at signatures.
"""

from __future__ import annotations

import inspect
import operator
import warnings
from collections.abc import Callable, Container
from typing import Any

import numpy as np

from .. import autodiff, backends, config, dtypes, ops
from ..errors import ArgumentTypeError, AxisError, GradopsError
from . import _r_subset

# Where R's functions give Inf, they do so silently.
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"gradops\.")

_MARK = "<R>"
_NA_INTEGER = -(2**31)
_CONTAINERS = frozenset((dict, list, tuple))

# Results that are positions: all of them (None), or those of a tuple, by an expression of the arguments.
INDEX_RESULTS: dict[str, str | None] = {
    "argmax": None,
    "argmin": None,
    "argpartition": None,
    "argsort": None,
    "ctc_decode": "(0,)",
    "digitize": None,
    "nanargmax": None,
    "nanargmin": None,
    "nonzero": None,
    "searchsorted": None,
    "top_k": "(1,)",
    "unique": "range(1, 1 + bool(return_index) + bool(return_inverse))",
    "unravel_index": None,
}


# Errors as values -----------------------------------------------------------------------------------------------------


class CallbackError(Exception):
    """An R function that gradops called has failed."""

    gradops_callback = True


class Failure:
    """An exception, returned to R."""

    def __init__(self, error: Exception):
        self.error = error

    def fields(self) -> dict:
        """What R makes a condition of; ``key`` where R has one already, of an error in an R function."""
        error: BaseException | None = self.error
        seen: list = []
        while error is not None and error not in seen:
            if hasattr(error, "gradops_key"):
                return {"kind": "callback", "message": str(error), "key": error.gradops_key}
            seen.append(error)
            error = error.__cause__ or error.__context__
        error = self.error
        if isinstance(error, GradopsError):
            return {
                "kind": error.kind,
                "message": error.message,
                "argument": error.argument,
                "hint": error.hint,
                "position": getattr(error, "position", None),
                "bound": getattr(error, "bound", None),
            }
        return {"kind": "python", "message": f"{type(error).__name__}: {error}"}


def guarded(function: Callable) -> Callable:
    """``function`` with R's arguments understood and failures returned."""

    def call(*arguments, **keywords):
        try:
            names = tuple(keywords)
            values = from_r((*arguments, *keywords.values()))
            split = len(arguments)
            return function(*values[:split], **dict(zip(names, values[split:])))
        except Exception as error:
            return Failure(error)

    return call


def invoke(function: Callable, arguments, keywords):
    """``function`` called as R would call it."""
    return function(*arguments, **dict(keywords))


def invoke_on_tensors(function: Callable, arguments, keywords):
    """As :func:`invoke`, with R's doubles as tensors too, so that R code in ``function`` sees tensors."""
    backend = _backend_of((arguments, keywords))
    return invoke(function, _floats(arguments, backend), _floats(keywords, backend))


def _floats(value, backend: backends.Backend):
    kind = value.__class__
    if kind is dict:
        return {name: _floats(item, backend) for name, item in value.items()}
    if kind is tuple or kind is list:
        return kind(_floats(item, backend) for item in value)
    return backend.convert(value) if kind is float else value


def function(forward: Callable, backward: Callable) -> Callable:
    """The ``apply`` of a ``Function`` of two R functions."""

    def returned(value):
        return tuple(value) if isinstance(value, list) else value

    methods = {
        "forward": staticmethod(lambda ctx, *inputs: returned(forward(ctx, *inputs))),
        "backward": staticmethod(lambda ctx, *gradients: returned(backward(ctx, *gradients))),
    }
    made: Any = type("RFunction", (autodiff.Function,), methods)
    return made.apply


def variable(data, requires_grad: bool, role: str | None, parameter: bool = False):
    """A variable of R's: on PyTorch a leaf tensor, elsewhere a ``Variable`` or ``Parameter`` on data of its own."""
    if not isinstance(data, str):
        if backends.of(data) is None and not isinstance(data, autodiff.Variable):
            data = config.default_backend().convert(data)
        owner = backends.of(data)
        if owner is not None and owner.name == "torch":
            leaf = data.detach().clone()
            return leaf.requires_grad_() if requires_grad else leaf
        if isinstance(data, np.ndarray):
            data = data.copy()
    return (autodiff.Parameter if parameter else autodiff.Variable)(data, requires_grad, role)


def attribute(path: str) -> Callable:
    """The :func:`guarded` form of a function of gradops, by its dotted name."""
    function = operator.attrgetter(path)(_root())
    return function if function in (subset, assign) else guarded(function)


def subset(x, indices: list, drop: bool):
    """R's ``x[i, j]``."""
    try:
        (x,) = from_r((x,))
        return _r_subset.subset(x, _r_indices(indices), drop)
    except Exception as error:
        return Failure(error)


def assign(x, indices: list, value):
    """R's ``x[i, j] <- value``."""
    try:
        x, value = from_r((x, value))
        return _r_subset.assign(x, _r_indices(indices), value)
    except Exception as error:
        return Failure(error)


def get_item(x, key):
    """``x[key]`` by NumPy's rules, with positions from 1 and None for all of a dimension."""
    parts = key if isinstance(key, (list, tuple)) else [key]
    return ops.get_item(x, tuple(_key(part) for part in parts))


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
    return [index[_MARK] if index.__class__ is dict else index for index in indices]


def _root():
    import gradops

    return gradops


# Values from R --------------------------------------------------------------------------------------------------------


def from_r(values: tuple) -> tuple:
    """Arguments of one call, R's arrays as tensors of the other tensors' backend, or of the default one."""
    found: list = []
    values = _unmark(values, found)
    if not found:
        return values
    backend = _backend_of(values, {id(array) for array in found})
    if backend.name == "numpy":
        return values
    return _replace(values, {id(array): backend.convert(array) for array in found})


def _unmark(value, found: list):
    kind = value.__class__
    if kind is dict:
        if _MARK in value:
            array = _r_array(value[_MARK])
            found.append(array)
            return array
        return {name: _unmark(item, found) for name, item in value.items()}
    if kind is tuple or kind is list:
        return kind(_unmark(item, found) for item in value)
    return value


def _r_array(array: np.ndarray) -> np.ndarray:
    """R's integers as int64 and its doubles as ``floatx``, as numbers and lists would become."""
    kind = array.dtype.kind
    if kind == "i":
        return array.astype(np.int64)
    if kind in "fc" and config.floatx() not in ("float64", "bfloat16"):
        name = config.floatx()
        return array.astype(name if kind == "f" else dtypes.complex_of(name))
    return array


def _replace(value, converted: dict):
    kind = value.__class__
    if kind is dict:
        return {name: _replace(item, converted) for name, item in value.items()}
    if kind is tuple or kind is list:
        return kind(_replace(item, converted) for item in value)
    return converted.get(id(value), value)


def as_integer(value, name: str):
    """A whole number of R's as an int; tensors pass."""
    if value.__class__ is int and value != _NA_INTEGER:
        return value
    if value.__class__ is float and value.is_integer():
        return int(value)
    if isinstance(value, np.ndarray) and value.size == 1:
        return as_integer(value.item(), name)
    if value is None or ops.is_tensor(value):
        return value
    shown = "NA" if value == _NA_INTEGER or value != value else repr(value)
    raise ArgumentTypeError(f"`{name}` must be a whole number; got {shown}.", argument=name)


def as_integers(value, name: str):
    """Whole numbers, nested as they come."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [as_integers(item, name) for item in value]
    return as_integer(value, name)


def as_shape(value, name: str):
    """Sizes: several whole numbers, or one."""
    value = as_integers(value, name)
    return tuple(value) if isinstance(value, list) else value if value is None else (value,)


def as_axis(value, name: str):
    """An axis, several or none, from 1 to 0-based; negative ones count from the end."""
    value = as_integers(value, name)
    if isinstance(value, list):
        return tuple(as_axis(item, name) for item in value)
    if value is None or value < 0:
        return value
    if value == 0:
        raise AxisError(f"`{name}` must not be 0: axes count from 1, or from the end with -1.", argument=name)
    return value - 1


def as_sections(value, name: str):
    """A number of sections, or positions before which to cut, from 1."""
    several = isinstance(value, (list, tuple, np.ndarray))
    return as_axis(value, name) if several else as_integer(value, name)


def as_tensordot_axes(value, name: str):
    """A number of dimensions, or two lists of axes."""
    several = isinstance(value, (list, tuple))
    return tuple(map(list_of, as_axis(value, name))) if several else as_integer(value, name)


def list_of(value) -> list:
    return list(value) if isinstance(value, tuple) else [value]


def as_index(value, name: str, zero_indexed: bool = False):
    """Positions, a number, a list or a tensor, as whole numbers, 0-based; negative ones count from the end."""
    if value is None:
        return None
    if isinstance(value, (int, float, list, tuple, np.ndarray)):
        array = np.asarray(value)
        if array.dtype.kind == "f" and np.all(np.isfinite(array)) and np.all(array == np.round(array)):
            array = array.astype(np.int64)
        if array.dtype.kind not in "iu" or np.any(array == _NA_INTEGER):
            raise ArgumentTypeError(f"`{name}` must be whole numbers, without NA.", argument=name)
        if not zero_indexed and np.any(array == 0):
            raise AxisError(f"`{name}` must not be 0: positions count from 1, or from the end with -1.", argument=name)
        shifted = array if zero_indexed else array - (array > 0)
        return shifted if isinstance(value, np.ndarray) else shifted.tolist()
    positions = value if "int" in ops.dtype(value) else ops.cast(value, "int64")
    if zero_indexed:
        return positions
    return ops.subtract(positions, ops.cast(ops.greater(positions, 0), ops.dtype(positions)))


def whole(value):
    """A number or array of R's as integers where all are whole."""
    if value.__class__ is dict and _MARK in value:
        return {_MARK: whole(value[_MARK])}
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f" and np.all(np.mod(value, 1) == 0):
        return value.astype(np.int64)
    return value


def one_based(result, where: Container[int] | None):
    """A result's positions counted from 1."""
    if isinstance(result, (tuple, list)):
        return [_shifted(item) if where is None or number in where else item for number, item in enumerate(result)]
    return ops.add(result, 1) if where is None else result


def _shifted(positions):
    """Positions from 1; -1, which stands for none, stays."""
    return ops.where(ops.less(positions, 0), positions, ops.add(positions, 1))


# Ops ------------------------------------------------------------------------------------------------------------------

TENSORS = ("Tensor", "Operand", "Tensors", "Structure", "Index", "Indices")
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
    """The public function of an op, or of the package."""
    try:
        return operator.attrgetter(name)(ops)
    except AttributeError:
        return operator.attrgetter(name)(_root())


def annotation(parameter: inspect.Parameter) -> str:
    """The first word of a parameter's annotation: the name that ``gradops.types`` gives it."""
    if parameter.annotation is parameter.empty:
        return "Axes" if parameter.name.endswith("axis") else ""
    word = str(parameter.annotation).partition(" ")[0].partition("[")[0].rpartition(".")[2]
    return "Axis" if word == "Integer" and parameter.name == "axis" else word


def parameters(function: Callable) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(function).parameters)


def has_positions(name: str, function: Callable) -> bool:
    """Whether R's form has ``zero_indexed``: positions go in as tensors, or come out."""
    return name in INDEX_RESULTS or any(annotation(p) in ("Index", "Indices") for p in parameters(function).values())


_SPECIAL = {"indices_or_sections": "as_sections", ("tensordot", "axes"): "as_tensordot_axes"}

# Tensor arguments that hold whole numbers (and all of the bitwise ops): R's doubles pass where they are whole.
_WHOLE = {
    "bincount": ("x",),
    "gcd": ("x1", "x2"),
    "lcm": ("x1", "x2"),
    "ldexp": ("x2",),
    "left_shift": ("x", "y"),
    "right_shift": ("x", "y"),
}

_TEMPLATE = """
def call({signature}):
    try:
{body}
    except Exception as error:
        return Failure(error)
"""


def op(name: str) -> Callable:
    """The form of an op for R: all arguments by position in Python's order, ``zero_indexed`` last.

    ``*operands`` come as one list, ``**lengths`` as one named list.
    """
    function = find(name)
    found = parameters(function)
    several = ", ".join(p for p in found if annotation(found[p]) in ("", *TENSORS))
    lines, call = [], []
    for name_ in several.split(", ") if name.startswith("bitwise_") else _WHOLE.get(name, ()):
        lines.append(f"{name_} = whole({name_})")
    if several:
        tests = " or ".join(f"{p}.__class__ in _CONTAINERS" for p in several.split(", "))
        lines.append(f"if {tests}: {several}, = from_r(({several},))")
    for name_, parameter in found.items():
        kind = annotation(parameter)
        if kind in _CONVERSIONS:
            conversion = _SPECIAL.get((name, name_)) or _SPECIAL.get(name_) or _CONVERSIONS[kind]
            extra = ", zero_indexed" if conversion == "as_index" else ""
            lines.append(f"{name_} = {conversion}({name_}, {name_!r}{extra})")
        call.append(_CALLED[parameter.kind].format(name_))
    result = f"_function({', '.join(call)})"
    if name in INDEX_RESULTS:
        result = f"{result} if zero_indexed else one_based({result}, {INDEX_RESULTS[name]})"
    lines.append(f"return {result}")
    signature = [*found, "zero_indexed=False"] if has_positions(name, function) else found
    source = _TEMPLATE.format(signature=", ".join(signature), body="\n".join(f"        {line}" for line in lines))
    scope = {**globals(), "_function": function}
    exec(compile(source, f"<gradops op {name} for R>", "exec"), scope)
    return scope["call"]


_CALLED = {
    inspect.Parameter.POSITIONAL_ONLY: "{0}",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "{0}",
    inspect.Parameter.VAR_POSITIONAL: "*{0}",
    inspect.Parameter.KEYWORD_ONLY: "{0}={0}",
    inspect.Parameter.VAR_KEYWORD: "**dict({0})",
}


# R functions ----------------------------------------------------------------------------------------------------------


class _Default:
    """Stands for a default that R knows: never passed on."""

    def __repr__(self) -> str:
        return "<R default>"


_DEFAULT = _Default()


def callback(function: Callable, names: list[str], defaults: list[str]) -> Callable:
    """A Python function of an R function, with a signature as R's formals say.

    ``function`` returns R's value, or ``{"<R error>": key, ...}``, which is raised: as the Python exception that
    caused it, if one did, since a library may wait for its own. ``defaults`` holds, for each formal,
    ``"none"`` for a formal without default, ``"null"`` for ``NULL`` and ``"r"`` for any other.
    """

    def call(*arguments, **keywords):
        for name in [name for name, value in keywords.items() if value is _DEFAULT]:
            del keywords[name]
        result = function(*(a for a in arguments if a is not _DEFAULT), **keywords)
        if result.__class__ is dict and "<R error>" in result:
            error: Any = result["python"] or CallbackError(result["message"])
            error.gradops_key = result["<R error>"]
            raise error
        return _result(result, (arguments, keywords))

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = []
    for name, default in zip(names, defaults):
        if name == "...":
            signature.append(inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL))
            kind = inspect.Parameter.KEYWORD_ONLY  # type: ignore[assignment]
            continue
        value = {"none": inspect.Parameter.empty, "null": None, "r": _DEFAULT}[default]
        parameter = inspect.Parameter("x", kind, default=value)
        parameter._name = name  # type: ignore[attr-defined]  # R's names may have dots
        signature.append(parameter)
    call.__signature__ = _signature(signature)  # type: ignore[attr-defined]
    return call


def _signature(found: list[inspect.Parameter]) -> inspect.Signature:
    """R allows a formal without default after one with; Python does not."""
    try:
        return inspect.Signature(found)
    except ValueError:
        empty = inspect.Parameter.empty
        return inspect.Signature([p.replace(default=_DEFAULT) if p.default is empty else p for p in found])


adopt: Callable | None = None
"""R's function that makes a ``callback`` of the R function in a capsule; set when R loads this module."""


def set_adopt(function: Callable) -> None:
    global adopt
    adopt = function


def _result(value, arguments):
    """What an R function returned: its arrays as tensors of the arguments' backend, its functions with signatures."""
    kind = value.__class__
    if kind is dict and _MARK not in value:
        return {name: _result(item, arguments) for name, item in value.items()}
    if kind is tuple or kind is list:
        return kind(_result(item, arguments) for item in value)
    if kind is dict:
        array = _r_array(value[_MARK])
        return _backend_of(arguments).convert(array)
    code = getattr(value, "__code__", None)
    if code is not None and code.co_filename.endswith("call.py") and code.co_name == "python_function":
        return adopt(value.__closure__[0].cell_contents) if adopt is not None else value
    return value


def _backend_of(value, but=frozenset()) -> backends.Backend:
    """The backend of nested tensors, apart from those whose id is in ``but``; the default one without any."""
    found = None
    for owner in _owners(value, but):
        if found is None or found.name == "numpy":
            found = owner
    return found or config.default_backend()


def _owners(value, but):
    kind = value.__class__
    if kind is dict or kind is tuple or kind is list:
        for item in value.values() if kind is dict else value:
            yield from _owners(item, but)
    elif id(value) not in but:
        owner = backends.of(value.data if isinstance(value, autodiff.Variable) else value)
        if owner is not None:
            yield owner


# Values for R ---------------------------------------------------------------------------------------------------------


def to_r(value):
    """A tensor's values in a dtype that R has: int32 where they fit, float64, bool, complex128, or text."""
    if isinstance(value, autodiff.Variable):
        value = value.data
    if isinstance(value, str):
        return value
    array = np.asarray(ops.convert_to_numpy(value))
    kind = array.dtype.kind
    if not array.ndim:
        item = array.item()
        return float(item) if kind in "iu" and not _NA_INTEGER < item < 2**31 else item
    if kind in "iu" and array.dtype != np.int32:
        fits = array.size == 0 or (array.max() < 2**31 and array.min() > _NA_INTEGER)
        return array.astype(np.int32 if fits else np.float64)
    if kind == "f" and array.dtype != np.float64:
        return array.astype(np.float64)
    return array.astype(np.complex128) if kind == "c" and array.dtype != np.complex128 else array


def describe(value) -> dict:
    """What R's ``print`` and ``format`` show of a tensor beside its values."""
    data = value.data if isinstance(value, autodiff.Variable) else value
    text = isinstance(data, str)
    owner = None if text else backends.of(data)
    return {
        "backend": "text" if text or owner is None else owner.name,
        "kind": type(value).__name__.lower() if isinstance(value, autodiff.Variable) else "tensor",
        "dtype": "" if text or owner is None else owner.dtype_name(data),
        "shape": [] if text else [-1 if size is None else int(size) for size in data.shape],
        "requires_grad": bool(getattr(value, "requires_grad", False)),
        "operation": _operation(value),
        "role": getattr(value, "role", None),
        "traced": not text and _is_traced(data),
    }


def profile_rows(profile, sort_by: str) -> dict:
    """The rows of a profile as the columns of a data frame."""
    rows = profile.rows(sort_by)
    return {name: [getattr(row, name) for row in rows] for name in ("name", "kind", "calls", "self", "total", "bytes")}


def _operation(value) -> str | None:
    """What made a recorded value: the name of an op, or of torch's node."""
    made_by = getattr(value, "grad_fn", None)
    name = getattr(made_by, "name", None)
    return name() if callable(name) else name


def _is_traced(data) -> bool:
    try:
        np.asarray(ops.convert_to_numpy(data))
        return False
    except Exception:
        return True


def dim(value) -> list:
    """Sizes for R's ``dim``; -1 where a graph does not know."""
    return [-1 if size is None else int(size) for size in value.shape]
