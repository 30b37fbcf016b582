"""Conversion of R values to tensors and to 0-based integers, and of tensors to R values.

An R array is passed as ``{"<R>": ndarray}`` to tell it from a NumPy tensor that R holds. Like a number or a list, it
takes the backend of the other tensors, or the default one. R has one type of real numbers, so an R vector, like a
number, carries no precision: it takes the floating dtype of the other tensors.
"""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from ... import _tree, autodiff, backends, config, dtypes, ops
from ...autodiff.variable import data_of
from ...errors import ArgumentTypeError, AxisError, Given
from ...ops import _checks
from ...ops._checks import known

MARK = "<R>"
CONTAINERS = frozenset((dict, list, tuple))
FLOAT = np.dtype("float64")
_NUMBERS = frozenset((bool, int, float, complex, str, type(None)))  # types that neither are nor hold tensors
_NA_INTEGER = -(2**31)

# From R ---------------------------------------------------------------------------------------------------------------


def from_r(values: tuple) -> tuple:
    """Convert R's arrays in the arguments of a call to tensors of the other tensors' backend and floating dtype.

    Without other tensors these are the default backend and ``floatx``.
    """
    found: list = []
    tensors: list = []
    values = _unmark(values, found, tensors)
    return values if not found else _insert_tensors(values, found, _backend(tensors), _float(tensors))


def positions_from_r(values: tuple, beside: tuple) -> tuple:
    """Convert arguments like :func:`from_r`, but not to the other tensors' dtype, which may not hold every position."""
    found: list = []
    tensors: list = []
    values = _unmark(values, found, tensors)
    _collect(beside, tensors)
    return values if not found else _insert_tensors(values, found, _backend(tensors), None)


def _insert_tensors(values, found: list, backend: backends.Backend, name: str | None):
    made = {id(array): _as_tensor(array, backend, name) for array in found}
    return _replace(values, made)


def _as_tensor(array: np.ndarray, backend: backends.Backend, name: str | None):
    if name is None or array.dtype.kind not in "fc":
        array, name = r_array(array), None
    else:
        name = name if array.dtype.kind == "f" else dtypes.complex_of(name)
        name = None if name == backends.embedded().dtype_name(array) else name
    return array if backend.yields and name is None else backend.convert(array, name)


def _unmark(value, found: list, tensors: list):
    """Return ``value`` with R's arrays unmarked; append these to ``found`` and other tensors to ``tensors``."""
    kind = value.__class__
    if kind is dict:
        if MARK in value:
            array = value[MARK]
            found.append(array)
            return array
        return {name: _unmark(item, found, tensors) for name, item in value.items()}
    if kind is tuple or kind is list:
        return kind([_unmark(item, found, tensors) for item in value])
    _note(value, tensors)
    return value


def _note(value, tensors: list) -> None:
    if value.__class__ in _NUMBERS:
        return
    owner = backends.backend_of(value)
    if owner is None:
        value = value.data if isinstance(value, autodiff.Variable) else backends.held(value)
        owner = backends.backend_of(value)
    if owner is not None or backends.is_symbolic(value):
        tensors.append((owner, value))


def _collect(value, tensors: list) -> None:
    kind = value.__class__
    if kind is dict or kind is tuple or kind is list:
        for item in value.values() if kind is dict else value:
            _collect(item, tensors)
    else:
        _note(value, tensors)


def is_plain(arguments: tuple) -> bool:
    """Return True if all arguments are NumPy float64 arrays, or Python floats that would become such arrays."""
    for x in arguments:
        if x.__class__ is not float and (x.__class__ is not np.ndarray or x.dtype is not FLOAT):
            return False
    return config.default_backend() is backends.embedded() and config.floatx() == "float64"


def as_arrays(arguments: tuple) -> list:
    """Return plain arguments as arrays."""
    return [np.array(x) if x.__class__ is float else x for x in arguments]


def r_array(array: np.ndarray) -> np.ndarray:
    """Return R's integers as int64 and doubles as ``floatx``, the dtypes that numbers and lists get."""
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
    """Return an R number as an int; tensors are returned unchanged."""
    if value.__class__ is int and value != _NA_INTEGER:
        return value
    if value.__class__ is float and value.is_integer():
        return int(value)
    if isinstance(value, np.ndarray) and value.size == 1:
        return as_integer(value.item(), name)
    if value is None or (ops.is_tensor(value) and not ops.ndim(value) and "complex" not in ops.dtype(value)):
        return value
    if hasattr(value, "shape"):  # a tensor or a data frame, which does not compare as a number does
        given = _checks.describe(value)
    else:
        given = Given("NA") if value == _NA_INTEGER or value != value else Given(repr(value), value)
    raise ArgumentTypeError(f"`{name}` must be a whole number; got {{given}}.", argument=name, given=given)


def as_integers(value, name: str):
    """Return R numbers as ints, nested as given."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [as_integers(item, name) for item in value]
    return as_integer(value, name)


def named(values) -> dict:
    """Return an R list as a dict; all its elements must have names."""
    if not isinstance(values, dict) and len(values):
        raise ArgumentTypeError("arguments in `...` must have names.", argument="...")
    return dict(values)


def as_shape(value, name: str):
    """Return a shape given as one integer or several."""
    value = as_integers(value, name)
    return tuple(value) if isinstance(value, list) else value if value is None else (value,)


def as_axis(value, name: str):
    """Return R's axis, axes or NULL as 0-based; negative axes count from the end."""
    value = as_integers(value, name)
    if isinstance(value, list):
        return tuple(as_axis(item, name) for item in value)
    if value is None or value < 0:
        return value
    if value == 0:
        raise AxisError(f"`{name}` must not be 0: axes count from 1, or from the end with -1.", argument=name)
    return value - 1


def as_sections(value, name: str):
    """Return a number of sections, or 0-based positions before which to split."""
    several = isinstance(value, (list, tuple, np.ndarray))
    return as_axis(value, name) if several else as_integer(value, name)


def as_tensordot_axes(value, name: str):
    """Return a number of dimensions, or two lists of 0-based axes."""
    several = isinstance(value, (list, tuple))
    return tuple(map(list_of, as_axis(value, name))) if several else as_integer(value, name)


def list_of(value) -> list:
    return list(value) if isinstance(value, tuple) else [value]


def as_index(value, name: str, zero_indexed: bool = False):
    """Return positions (a number, a list or a tensor) as 0-based integers; negative ones count from the end.

    Position 0 raises an error if values are known. In a trace it becomes a position out of range.

    Raises:
        ArgumentTypeError: a value that is not an integer.
        AxisError: position 0, unless ``zero_indexed``.
    """
    if value is None:
        return None
    if isinstance(value, (int, float, list, tuple, np.ndarray)):
        try:
            array = np.asarray(value)
        except ValueError as error:  # lists of different lengths
            raise ArgumentTypeError(f"`{name}` must be whole numbers in lists of one length.", argument=name) from error
        if array.dtype.kind == "f" and np.all(np.isfinite(array)) and np.all(array == np.round(array)):
            array = array.astype(np.int64)
        if array.dtype.kind not in "iu" or np.any(array == _NA_INTEGER):
            raise ArgumentTypeError(f"`{name}` must be whole numbers, without NA.", argument=name)
        if not zero_indexed and np.any(array == 0):
            raise _position_0(name)
        shifted = array if zero_indexed else array - (array > 0)
        return shifted if isinstance(value, np.ndarray) else shifted.tolist()
    return _tensor_index(value, name, zero_indexed)


def _tensor_index(value, name: str, zero_indexed: bool):
    values = known(value)
    if values is None:
        positions = value if "int" in ops.dtype(value) else ops.cast(value, "int64")
        if zero_indexed:
            return positions
        nowhere = np.iinfo(np.int32).min // 2
        return ops.where(ops.equal(positions, 0), nowhere, zero_based(positions))
    if values.dtype.kind not in "iu" and not (values.dtype.kind == "f" and np.all(values == np.round(values))):
        raise ArgumentTypeError(f"`{name}` must be whole numbers, without NA.", argument=name)
    positions = value if values.dtype.kind in "iu" else ops.cast(value, "int64")
    if zero_indexed:
        return positions
    if np.any(values == 0):
        raise _position_0(name)
    return zero_based(positions)


def zero_based(positions):
    """Return positions that count from 1 as 0-based positions; negative ones are unchanged."""
    return ops.subtract(positions, ops.cast(ops.greater(positions, 0), ops.dtype(positions)))


def _position_0(name: str) -> AxisError:
    return AxisError(
        f"`{name}` must not be 0: positions and classes count from 1, negative positions from the end.",
        argument=name,
        hint="`zero_indexed = TRUE` says that they count from 0",
    )


def whole(value):
    """Return an R number or array as integers if all its values are integers, else unchanged."""
    if value.__class__ is dict and MARK in value:
        return {MARK: whole(value[MARK])}
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f" and np.all(np.mod(value, 1) == 0):
        return value.astype(np.int64)
    return value


def one_based(result, where: Container[int] | None):
    """Return a result with its positions counted from 1; ``where`` lists those in a tuple, None for all."""
    if isinstance(result, (tuple, list)):
        return [_shifted(item) if where is None or number in where else item for number, item in enumerate(result)]
    return ops.add(result, 1) if where is None else result


def _shifted(positions):
    """Return positions counted from 1; -1, which means no position, is unchanged."""
    return ops.where(ops.less(positions, 0), positions, ops.add(positions, 1))


def backend_of(value) -> backends.Backend:
    """Return the backend of nested tensors, or the default one without any."""
    tensors: list = []
    _collect(value, tensors)
    return _backend(tensors)


def float_of(value) -> str | None:
    """Return the promoted floating dtype of nested tensors; None if none is floating."""
    tensors: list = []
    _collect(value, tensors)
    return _float(tensors)


def _backend(tensors: list) -> backends.Backend:
    found = None
    for owner, _ in tensors:
        if owner is not None and (found is None or found.yields):
            found = owner
    return found or config.default_backend()


def _float(tensors: list) -> str | None:
    found = None
    for owner, tensor in tensors:
        name = ops.dtype(tensor) if owner is None else owner.dtype_name(tensor)
        if name != found and dtypes.is_floating(name):
            name = dtypes.real_of(name)
            found = name if found is None else dtypes.promote(found, name)
    return found


# For R ---------------------------------------------------------------------------------------------------------------


def to_r(value):
    """Return a tensor's values in a dtype that R has: int32 if they fit, float64, bool, complex128, or text."""
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


def r_arrays(value):
    """Return nested tensors as arrays for R, with at least one dimension so that R keeps lists of them as lists."""
    return _tree.map_leaves(_r_leaf, value)


def _r_leaf(x):
    if not (isinstance(x, autodiff.Variable) or backends.backend_of(x) is not None):
        return x
    return np.atleast_1d(to_r(x))


def describe(value) -> dict:
    """Return what R's ``print`` and ``format`` show of a tensor apart from its values."""
    data = data_of(value)
    text = isinstance(data, str)
    owner = None if text else backends.backend_of(data)
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


def _operation(value) -> str | None:
    """Return the name of the op, or of torch's node, that made a recorded value."""
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
    """Return the sizes for R's ``dim``; -1 where a graph does not know a size."""
    return [-1 if size is None else int(size) for size in value.shape]
