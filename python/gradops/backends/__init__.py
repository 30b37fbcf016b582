"""Which array library owns a value, found by its type and never imported before it is needed.

Requirements:

- a backend is found from a tensor's type through its class's ancestry, so subclasses and tracers count;
- no library is imported by asking: a value of a library's type can only exist once the library is loaded;
- a backend is one package here, whose modules define kernels under the ops' own names, and whose
  ``base`` module says how the library converts values and names dtypes.
"""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType
from typing import Any

from ..errors import BackendError, MixedBackendsError

NAMES = ("numpy", "torch", "tensorflow", "jax")

_ROOTS = {"numpy": "numpy", "torch": "torch", "tensorflow": "tensorflow", "jax": "jax", "jaxlib": "jax"}
_INSTALL = {"torch": "torch", "tensorflow": "tensorflow", "jax": "jax"}
_loaded: dict[str, Backend] = {}
_PLAIN = dict.fromkeys((bool, int, float, complex, str, list, tuple, dict, type(None)))
_owners: dict[type, Any] = dict(_PLAIN)


class Backend:
    """One array library: its kernels by op name, and how it converts.

    ``module`` is a package of this folder. Besides kernels it defines ``is_tensor_type(type)``, where its kernels
    do not take all that it owns ``owns(type)`` too (a ``tf.Variable`` is converted first),
    ``convert(value, dtype=None, like=None)``
    (``like``: a tensor whose device to go to), ``dtype_name(tensor)``, ``to_numpy(tensor)`` and ``prepare(floatx)``.
    """

    def __init__(self, name: str, module: ModuleType):
        self.name = name
        self.module = module
        self.convert = module.convert
        self.dtype_name = module.dtype_name
        self.to_numpy = module.to_numpy
        self.prepare = module.prepare
        self.is_tensor_type = module.is_tensor_type
        self.owns = getattr(module, "owns", module.is_tensor_type)

    def kernel(self, op: str):
        """The native kernel of an op, or None where the library leaves it to be composed."""
        return getattr(self.module, op.replace(".", "_"), None)

    def __repr__(self) -> str:
        return f"<gradops backend {self.name}>"


def register(name: str, module: ModuleType, root: str | None = None) -> Backend:
    """Make a module a backend. ``root`` is the module, or top package, of its tensor types."""
    if root is not None:
        _ROOTS[root] = name
    _owners.clear()
    _owners.update(_PLAIN)
    backend = _loaded[name] = Backend(name, module)
    return backend


def by_name(name: str) -> Backend:
    """The backend called ``name``, imported if need be.

    Raises:
        BackendError: an unknown name, or a library that is not installed.
    """
    backend = _loaded.get(name)
    if backend is not None:
        return backend
    if name not in NAMES:
        raise BackendError(f"Unknown backend {name!r}: expected one of {', '.join(NAMES)}.", argument="name")
    if not installed(name):
        raise BackendError(
            f"The backend {name!r} needs the Python package {_INSTALL[name]!r}, which is not installed.",
            argument="name",
            hint=f"pip install 'gradops[{name}]'",
        )
    return register(name, importlib.import_module(f"{__name__}.{name}"))


def installed(name: str) -> bool:
    """Whether a backend's library can be imported; does not import it."""
    return name in _loaded or importlib.util.find_spec(name) is not None


def owner(kind: type) -> Backend | None:
    """The backend whose tensors are of type ``kind``; None for numbers, lists and all else."""
    try:
        return _owners[kind]
    except KeyError:
        pass
    found = None
    for base in kind.__mro__:
        name = _ROOTS.get(base.__module__) or _ROOTS.get(base.__module__.partition(".")[0])
        if name is not None and by_name(name).owns(kind):
            found = by_name(name)
            break
    _owners[kind] = found
    return found


def of(value: Any) -> Any:
    """The backend that owns a tensor, or None where ``value`` is no tensor."""
    return owner(type(value))


def beside_text(kinds, op: str) -> Backend | None:
    """As :func:`common`, of what may be in one graph: text stands beside the tensors of any one library but torch.

    Raises:
        MixedBackendsError: types of two libraries, or text beside torch tensors, whose graph holds tensors alone.
    """
    found = common([kind for kind in kinds if getattr(owner(kind), "name", None) != "text"], op)
    return found if found is not None and found.name != "torch" else common(kinds, op)


def common(kinds, op: str | None = None) -> Backend | None:
    """The one backend of several types; NumPy arrays are constants beside any other library's tensors.

    Raises:
        MixedBackendsError: types of two libraries.
    """
    found = None
    for kind in kinds:
        backend = owner(kind)
        if backend is None or backend is found:
            continue
        if found is None or found.name == "numpy":
            found = backend
        elif backend.name != "numpy":
            where = f"`{op}`: " if op else ""
            raise MixedBackendsError(
                f"{where}all tensors must be of one backend; got {found.name} and {backend.name}.",
                hint=f"convert one of them, e.g. through `gradops.ops.convert_to_numpy()`, to {found.name}",
            )
    return found
