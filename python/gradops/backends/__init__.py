"""Lookup of the backend that owns a value, by the value's type.

A backend is one package of this folder: its modules define kernels under the ops' names, ``base`` converts values and
names dtypes, and ``derivatives`` differentiates (the contracts are in :mod:`.interface`). :func:`owner` goes through a
type's base classes, so subclasses and tracers are found. It never imports a library: a value of a library's type can
exist only after the library is loaded.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import re
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .._names import BACKENDS
from ..errors import BackendError, Code, MixedBackendsError, meant
from . import tracing
from .interface import Backend

NAMES = ("numpy", "torch", "tensorflow", "jax")

_ROOTS = {"numpy": "numpy", "torch": "torch", "tensorflow": "tensorflow", "jax": "jax", "jaxlib": "jax"}
_INSTALL = {"torch": "torch", "tensorflow": "tensorflow", "jax": "jax"}
_loaded: dict[str, Backend] = {}
_PLAIN = dict.fromkeys((bool, int, float, complex, str, list, tuple, dict, type(None)))
_owners: dict[type, Any] = dict(_PLAIN)


def register(name: str, module: Any, root: str | None = None, partial: bool = False) -> Backend:
    """Register a module, or any namespace with the members of :class:`.interface.Backend`, as a backend.

    Args:
        root: the module, or top package, of its tensor types.
        partial: True if kernels may be missing; the ops without one then raise when they are used.

    Raises:
        BackendError: a required member or kernel is missing; the message names all of them.
    """
    backend = Backend(name, module, partial)
    if root is not None:
        _ROOTS[root] = name
    _owners.clear()
    _owners.update(_PLAIN)
    _loaded[name] = backend
    for op, make in _extending.get(name, {}).items():
        _add(backend, op, make)
    return backend


def _add(backend: Backend, op: str, make: Callable[[Backend], Any]) -> None:
    """Add a kernel to a backend; NumPy's when they are first used, as most are SciPy's, which takes long to import."""
    if backend.name == "numpy":
        backend.add_kernel_later(op, make)
    else:
        backend.add_kernel(op, make(backend))


_later: dict[str, str] = {}


def register_later(name: str, module: str) -> None:
    """Name the module that registers a backend, from a floor above: imported when the backend is first asked for."""
    _later[name] = module


_extending: dict[str, dict[str, Callable[[Backend], Any]]] = {}


def add_kernel(name: str, op: str, make: Callable[[Backend], Any]) -> None:
    """Add ``make(backend)`` as a backend's kernel of an op, at once or when the backend is loaded."""
    _extending.setdefault(name, {})[op] = make
    if name in _loaded:
        _add(_loaded[name], op, make)


def forget_kernels(op: str) -> None:
    """Remove the kernels of an op that :func:`add_kernel` added."""
    for name, kernels in _extending.items():
        if kernels.pop(op, None) is not None and name in _loaded:
            _add(_loaded[name], op, lambda _: None)


def _load_as_read(name: str) -> Backend:
    _load_for_reading()
    _load(name)
    return _loaded[name]


@tracing.read_as(_load_as_read)
def lookup(name: str) -> Backend:
    """The backend called ``name``; imports its library if needed.

    Raises:
        BackendError: an unknown name, or a library that is not installed.
    """
    _load(name)
    return _loaded[name]


_PROTOCOLS = {"__tf_tensor__": "tensorflow"}


def asking_by(protocol: str) -> Backend:
    """The backend whose library requests tensors from other objects through this special method."""
    return lookup(_PROTOCOLS[protocol])


@tracing.constant
def _load_for_reading() -> None:
    """Load the backends that Dynamo may meet, so that it guards a table that no longer changes."""
    for name in ("numpy", "torch"):
        _load(name)


@tracing.constant
def _load(name: str) -> None:
    known = isinstance(name, str)
    if known and name in _loaded:
        return
    if known and name in _later:
        importlib.import_module(_later[name])
        return
    if not known or name not in NAMES:
        raise BackendError(
            f"Unknown backend {name!r}: expected one of {', '.join(NAMES)}.",
            argument="name",
            hint=meant(BACKENDS.get(name, name) if known else name, NAMES),
        )
    if not installed(name):
        raise BackendError(
            f"The backend {name!r} needs the Python package {_INSTALL[name]!r}, which is not installed.",
            argument="name",
            hint="{install}",
            install=Code(f"pip install {_INSTALL[name]}", f'call `use_backend("{name}")` in a fresh R session'),
        )
    register(name, importlib.import_module(f"{__name__}.{name}"))
    _warn_if_old(name)


_load.autograph_info__ = None  # TensorFlow's AutoGraph would convert Python's import

OLDEST = {"numpy": "1.26", "torch": "2.5", "tensorflow": "2.16.1", "jax": "0.4.35"}
"""The oldest versions that pass the tests; older ones computed some wrong gradients without an error."""


def _warn_if_old(name: str) -> None:
    version = getattr(sys.modules[name], "__version__", "")
    if not is_tested(name, version):
        warnings.warn(
            f"gradops is tested with {name} {OLDEST[name]} and later; this is {version}, whose derivatives may be "
            "wrong. Update it.",
            stacklevel=2,
        )


def is_tested(name: str, version: str) -> bool:
    """True if gradops is tested with this version of a backend's library, or with older ones."""
    return _numbers(version) >= _numbers(OLDEST[name])


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)[:3]]


def embedded() -> Backend:
    """The NumPy backend, which is always available; other backends fall back to it."""
    return lookup("numpy")


def installed(name: str) -> bool:
    """True if a backend's library can be imported; does not import it."""
    return name in _loaded or importlib.util.find_spec(name) is not None


def loaded_backends() -> list[Backend]:
    """The backends whose libraries are fully loaded; only their tensors can exist."""
    for name in NAMES:
        if name not in _loaded and loaded(name):
            lookup(name)
    return list(_loaded.values())


def loaded(name: str) -> bool:
    """True if a library is fully loaded, not halfway through its import."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return spec is not None and not getattr(spec, "_initializing", False)


def _computing_as_read(backend: Backend) -> Backend:
    return lookup("torch") if backend.name == "numpy" else backend


@tracing.read_as(_computing_as_read)
def computing(backend: Backend) -> Backend:
    """The backend that runs a backend's kernels: itself, or PyTorch where Dynamo reads NumPy arrays as tensors."""
    return backend


def owner_as_read(kinds) -> Backend | None:
    """The backend that Dynamo takes these types for: PyTorch if they are its tensors and NumPy arrays only."""
    names = {found.name for kind in kinds if (found := owner(kind)) is not None}
    return _loaded["torch"] if "torch" in names and names <= {"torch", "numpy"} else None


def kernels_as_read() -> Any:
    """The module with PyTorch's kernels, which Dynamo reads."""
    _load_for_reading()
    return _loaded["torch"]._kernels


def count() -> int:
    """The number of backends that have been registered."""
    return len(_loaded)


def _owner_as_read(kind: type) -> Backend | None:
    _load_for_reading()
    name = _owner_of(kind)
    return None if name is None else _loaded[name]


@tracing.read_as(_owner_as_read)  # Dynamo would recompile each time the cache `_owners` grows
def owner(kind: type) -> Backend | None:
    """The backend whose tensors are of type ``kind``; None for numbers, lists and anything else."""
    try:
        return _owners[kind]
    except KeyError:
        pass
    name = _owner_of(kind)
    found = _owners[kind] = None if name is None else lookup(name)
    return found


@tracing.constant
def _owner_of(kind: type) -> str | None:
    for base in kind.__mro__ if kind not in _PLAIN else ():
        name = _ROOTS.get(base.__module__) or _ROOTS.get(base.__module__.partition(".")[0])
        if name is not None and lookup(name).owns(kind):
            return name
    return None


def backend_of(value: Any) -> Any:
    """The backend that owns a tensor, or None if ``value`` is not a tensor."""
    return owner(type(value))


def device_backend(device: Any) -> Backend | None:
    """The backend whose library defines the type of ``device``; None for devices given by name."""
    name = _ROOTS.get(type(device).__module__.partition(".")[0])
    return None if name is None else lookup(name)


def may_hold(kind: type) -> bool:
    """True if values of a type that no backend owns may hold a tensor."""
    return owner(kind) is None and kind not in _PLAIN and kind.__module__.partition(".")[0] != "gradops"


def is_symbolic(value: Any) -> bool:
    """True if ``value`` is a KerasTensor, a symbolic value of a Keras model that has only a shape and a dtype."""
    kind = type(value)
    return kind.__name__ == "KerasTensor" and kind.__module__.partition(".")[0] == "keras"


def held(value: Any) -> Any:
    """The tensor that ``value`` wraps; otherwise ``value`` itself.

    Wrappers are a Keras variable, flax's ``nnx.Param``, an object with ``__jax_array__`` or with a tensor as its
    ``value``, and a ``np.memmap``.
    """
    if not may_hold(type(value)) or is_symbolic(value):
        return value
    if isinstance(value, np.ndarray):
        with contextlib.suppress(TypeError):
            return embedded().convert(value)
        return value  # conversion raises an error for it; `value.value` would be a quantity without its unit
    if hasattr(type(value), "__jax_array__"):
        return value.__jax_array__()
    inner = getattr(value, "value", None)
    return value if backend_of(inner) is None else inner


@tracing.read_as(lambda value: None)
def components(value: Any) -> tuple[list, Callable] | None:
    """The tensors that a ragged or sparse tensor holds, and a function that rebuilds it; None for other values.

    A class of its own, on a floor above, has them as ``_gradops_components()``.
    """
    kind = type(value)
    backend = owner(kind)
    if backend is not None:
        return backend.components(value)
    if hasattr(kind, "_gradops_components"):
        return value._gradops_components()
    if not may_hold(kind):
        return None
    return next((found for one in loaded_backends() if (found := one.components(value)) is not None), None)


def common_with_text(kinds, op: str) -> Backend | None:
    """``common`` for the types of one graph, where text may accompany tensors of any library without a tape.

    Raises:
        MixedBackendsError: types of two libraries, or text with tensors whose library has a tape of its own.
    """
    found = common([kind for kind in kinds if getattr(owner(kind), "name", None) != "text"], op)
    return found if found is not None and not found.derivatives.own_tape else common(kinds, op)


def common(kinds, op: str | None = None) -> Backend | None:
    """The one backend of several types; NumPy arrays become constants of any other library's.

    Raises:
        MixedBackendsError: types of two libraries.
    """
    found = None
    for kind in kinds:
        backend = owner(kind)
        if backend is None or backend is found:
            continue
        if found is None or found.yields or backend.wraps:
            found = backend
        elif not backend.yields and not found.wraps:
            where = f"`{op}`: " if op else ""
            raise MixedBackendsError(
                f"{where}all tensors must be of one backend; got {found.name} and {backend.name}.",
                hint=f"convert one of them, e.g. through `gradops.ops.convert_to_numpy()`, to {found.name}",
            )
    return found
