"""What a function reads from outside, and whether it has changed since the function was traced.

A trace holds what the function found in closures, global variables and objects: by reference where an array went
straight into an operation, by value where something was computed from it first, or a branch looked at it. Which, cannot
be told; so all of it is compared at each call, bindings and items by identity and arrays with a copy. Arrays that
cannot be written (``x.flags.writeable = False``) and JAX's need no copy.
"""

from __future__ import annotations

import array
import collections
import functools
import operator
import pickle
import random
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import _tree, backends
from ..autodiff.graph import Node
from ..autodiff.variable import Variable

_MISSING = object()
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_LIBRARIES = frozenset(("builtins", "gradops", "numpy", "scipy", "torch", "tensorflow", "jax", "jaxlib", "rpycall"))
_WITHOUT_TABLES = _LIBRARIES - {"scipy", "builtins"}  # but for sparse matrices, and Python's own arrays
_NOT_CALLED = frozenset(
    f"__{name}__" for name in "init new post_init del repr str eq hash setattr delattr getstate setstate".split()
)
"""Methods that a traced function does not call on an object it finds; they name attributes that it does not read."""

_AROUND_OTHERS = (collections.UserDict, collections.UserList, collections.ChainMap)
"""Python's containers that hold another one."""

_OF_TORCH_MODULES = ("_parameters", "_buffers", "_modules", "_forward_hooks", "_forward_pre_hooks")


class Captured:
    """What ``f`` and the functions it calls close over: their bindings, arrays and random generators."""

    def __init__(self, f: Callable):
        self.bindings: list[tuple[Callable[[], Any], Any]] = []
        self.containers: list[tuple[Any, list]] = []
        self.arrays: list[tuple[np.ndarray, np.ndarray]] = []
        self.tensors: list[tuple[Any, tuple]] = []
        self.tables: list[tuple[Any, _Pickled]] = []  # and the like
        self.generators: list[Any] = []
        self._package = _root(getattr(_inner(f), "__module__", None))
        self._seen: dict[int, Any] = {}
        self._queue: list[Any] = [f]
        self._names: set[str] = set()  # what all functions call attributes and variables
        self._objects: list[tuple[Any, set]] = []  # with the names of attributes noted
        while self._queue or self._more_attributes():
            if self._queue:
                self._visit(self._queue.pop())

    def changed(self) -> bool:
        """Whether a binding, an item, an array or a tensor is another than it was."""
        for get, value in self.bindings:
            if get() is not value:
                return True
        for tensor, version in self.tensors:
            if _version(tensor) != version:
                return True
        for table, then in self.tables:
            if _Pickled(table).differs(then):
                return True
        return any(map(_differs_in_items, self.containers)) or any(map(_differs, self.arrays))

    def forget_own_changes(self) -> None:
        """Compare no more what has been bound anew since: the function itself has done so while traced."""
        self.bindings = [(get, value) for get, value in self.bindings if get() is value]
        self.containers = [pair for pair in self.containers if not _differs_in_items(pair)]

    def random_state(self) -> list:
        """The states of NumPy's and Python's global generators, and of those found."""
        return [_comparable(np.random.get_state()), random.getstate(), *map(_state, self.generators)]

    def _visit(self, value) -> None:
        """Note what is in ``value``; objects' attributes come last, when all names are known."""
        if isinstance(value, _PLAIN) or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if isinstance(value, Variable):
            self._bind(functools.partial(getattr, value, "data"))
        elif isinstance(value, np.ndarray):
            if value.dtype == object:
                self.containers.append((value, _items(value)))
                self._queue.extend(value.flat)
            elif value.flags.writeable:
                self.arrays.append((value, value.copy()))
        elif isinstance(value, (np.random.Generator, np.random.RandomState, random.Random)):
            self.generators.append(value)
        elif isinstance(value, types.FunctionType):
            self._visit_function(value)
        elif isinstance(value, types.MethodType):
            self._queue += [value.__func__, value.__self__]
        elif isinstance(value, functools.partial):
            self._queue += [value.func, value.args, value.keywords]
        elif isinstance(value, property):
            self._queue.append(value.fget)
        elif isinstance(value, (staticmethod, classmethod)):
            self._queue.append(value.__func__)
        elif isinstance(value, (tuple, frozenset)):
            self._queue.extend(value)
        elif isinstance(value, _AROUND_OTHERS):
            self._queue.append(vars(value))
        elif isinstance(value, (list, set, dict, collections.deque)):
            self.containers.append((value, _items(value)))
            self._queue.extend(value.values() if isinstance(value, dict) else value)
        elif _is_tensor(value):
            self.tensors.append((value, _version(value)))
        elif _is_torch_module(value):
            self._visit_torch_module(value)
        else:
            if _holds_tensor(value):
                self._bind(functools.partial(backends.held, value))
            elif _is_table(value):
                self.tables.append((value, _Pickled(value).kept()))
            if not _is_library(value):
                self._visit_object(value)
            elif callable(value):
                self._queue.append(getattr(value, "__wrapped__", None))

    def _visit_function(self, f: types.FunctionType) -> None:
        codes = list(_codes(f.__code__))
        names = {name for code in codes for name in code.co_names}
        self._names |= names | {text for code in codes for text in _texts(code.co_consts)}
        library = _in_library(f.__module__)
        for cell in f.__closure__ or ():
            if not library or callable(_contents(cell)):  # a library's own notes are not the function's
                self._bind(functools.partial(_contents, cell))
        self._queue += [*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()]
        if not library:
            self._objects.append((f, set()))
            for name in names:
                if name in f.__globals__:
                    self._bind(functools.partial(f.__globals__.get, name, _MISSING))
        self._queue.append(getattr(f, "__wrapped__", None))

    def _visit_object(self, value) -> None:
        self._objects.append((value, set()))
        if isinstance(value, (type, types.ModuleType)):
            return
        if callable(value):
            self._queue.append(type(value).__call__)
        for kind in self._users_classes(type(value)):
            self._queue += [
                method
                for name, method in vars(kind).items()
                if name.startswith("__") and name not in _NOT_CALLED and isinstance(method, types.FunctionType)
            ]

    def _visit_torch_module(self, module) -> None:
        """Note its mode, parameters, buffers, parts and forward hooks; of torch's own modules all attributes."""
        attributes = vars(module)
        self._queue += [attributes[name] for name in _OF_TORCH_MODULES]
        if _is_library(module):
            self.containers.append((attributes, _items(attributes)))
            self._queue += [part for name, part in attributes.items() if not name.startswith("_")]
        else:
            self._names |= {"forward", "training"}
            self._visit_object(module)

    def _more_attributes(self) -> bool:
        """Note attributes that functions name, of the user's objects and modules; whether there were new ones."""
        found = False
        for value, noted in list(self._objects):
            kinds = self._users_classes(value if isinstance(value, type) else type(value))
            own = {} if isinstance(value, type) else getattr(value, "__dict__", {})
            for attributes in (own, *map(vars, kinds)):
                for name in self._names.intersection(attributes) - noted:
                    found = True
                    noted.add(name)
                    self._bind_attribute(value, name, own, kinds)
        return found

    def _bind_attribute(self, value, name: str, own: dict, kinds: list[type]) -> None:
        if name in own:
            self._bind(functools.partial(own.get, name, _MISSING))
            return
        for kind in kinds:  # not the first alone, as `super()` reaches the others
            if name in vars(kind):
                self._bind(functools.partial(vars(kind).get, name, _MISSING))
            if isinstance(vars(kind).get(name), types.MemberDescriptorType) and not isinstance(value, type):
                self._bind(functools.partial(getattr, value, name, _MISSING))
        if hasattr(value, "__dict__") and not isinstance(value, type):  # where an attribute could hide the class's
            self._bind(functools.partial(own.get, name, _MISSING))

    def _users_classes(self, kind: type) -> list[type]:
        """The classes of ``kind`` whose methods are looked into: not a library's, nor another installed package's."""
        return [
            k
            for k in kind.__mro__
            if not _in_library(k.__module__) and (_root(k.__module__) == self._package or not _installed(k.__module__))
        ]

    def _bind(self, get: Callable[[], Any]) -> None:
        value = get()
        self.bindings.append((get, value))
        self._queue.append(value)


def lost_gradient(result) -> bool:
    """Whether the result of a trace carries a gradient to a variable that holds numbers, so is no argument's."""
    pending = [x._node or x for x in _tree.flatten(result)[0] if isinstance(x, Variable) and x.requires_grad]
    seen = set()
    while pending:
        at = pending.pop()
        if at is None or id(at) in seen:
            continue
        seen.add(id(at))
        if isinstance(at, Node):
            pending += at.edges
        elif _has_numbers(at.data):
            return True
    return False


def _has_numbers(data) -> bool:
    try:
        np.asarray(data)
    except Exception:  # each library has its own for what is being traced
        return False
    return True


def _inner(f):
    while isinstance(f, functools.partial):
        f = f.func
    return f


def _items(container) -> list:
    if isinstance(container, np.ndarray):
        return container.ravel().tolist()
    return [*container, *container.values()] if isinstance(container, dict) else list(container)


def _differs_in_items(pair: tuple[Any, list]) -> bool:
    container, then = pair
    now = _items(container)
    return len(now) != len(then) or not all(map(operator.is_, now, then))


def _texts(constants) -> Iterator[str]:
    """The names among constants, as of ``getattr(x, "name")``."""
    for constant in constants:
        if isinstance(constant, str) and constant.isidentifier():
            yield constant
        elif isinstance(constant, tuple):
            yield from _texts(constant)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _contents(cell):
    try:
        return cell.cell_contents
    except ValueError:  # empty as yet
        return _MISSING


def _root(module: str | None) -> str:
    return (module or "").partition(".")[0]


def _in_library(module: str | None) -> bool:
    root = _root(module)
    return root in _LIBRARIES or root in sys.stdlib_module_names and root != "__main__"


def _is_library(value) -> bool:
    """Whether it is a module, a class or an object that stays as it is; Python's plain namespaces do not."""
    if isinstance(value, types.ModuleType):
        return _in_library(value.__name__)
    if isinstance(value, type):
        return _in_library(value.__module__)
    return _root(type(value).__module__) in _LIBRARIES


def _installed(module: str) -> bool:
    path = getattr(sys.modules.get(module), "__file__", None) or ""
    return "site-packages" in path or "dist-packages" in path


def _is_tensor(value) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor) and not value.is_inference()


def _is_torch_module(value) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def _holds_tensor(value) -> bool:
    """Whether it is a name of a tensor, as Keras's variables and flax's ``nnx.Param`` are."""
    like = hasattr(type(value), "__array__") or hasattr(type(value), "__jax_array__")
    return like and not isinstance(value, type) and backends.held(value) is not value


def _is_table(value) -> bool:
    """Whether an object holds numbers that may change in place: of pandas and its kin, sparse, Python's own arrays."""
    kind = type(value)
    if isinstance(value, type) or _root(kind.__module__) in _WITHOUT_TABLES:
        return False
    if backends.owner(kind) is not None:  # a variable of Keras on TensorFlow, which programs read
        return False
    return hasattr(kind, "__array__") or isinstance(value, (array.array, bytearray, memoryview)) or _is_sparse(value)


def _is_sparse(value) -> bool:
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(value)


class _Pickled:
    """What an object holds, labels and all: its pickle, and the memory that it shows beside it."""

    def __init__(self, value):
        shown: list[pickle.PickleBuffer] = []
        try:
            self.text = pickle.dumps(value, protocol=5, buffer_callback=shown.append)
            self.memory = [np.frombuffer(part.raw(), np.uint8) for part in shown]
        except Exception:  # each class has its own for what it cannot
            self.text, self.memory = b"", _numbers(value)

    def kept(self) -> _Pickled:
        """With copies of the memory, for later comparison."""
        self.memory = [part.copy() for part in self.memory]
        return self

    def differs(self, then: _Pickled) -> bool:
        pairs = zip(self.memory, then.memory)
        return self.text != then.text or any(not np.array_equal(now, before) for now, before in pairs)


def _numbers(value) -> list[np.ndarray]:
    try:
        return [np.asarray(value)]
    except Exception:  # also for what is being traced
        return []


def _version(tensor) -> tuple:
    """What is another after a write in place, or after ``tensor.data = ...``."""
    try:
        return tensor._version, tensor.data_ptr()
    except RuntimeError:  # without one storage, as sparse ones
        return tensor._version, 0


def _differs(pair: tuple[np.ndarray, np.ndarray]) -> bool:
    """Whether an array has other bits than its copy, in whatever order in memory."""
    now, then = pair
    if now.shape != then.shape or now.dtype != then.dtype:
        return True
    if now.dtype.kind in "fiu" and now.itemsize in (1, 2, 4, 8):
        bits = f"i{now.itemsize}"
        return bool((now.view(bits) != then.view(bits)).any())
    return not np.array_equal(now, then, equal_nan=now.dtype.kind == "c")


def _state(generator):
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.RandomState):
        return _comparable(generator.get_state())
    return repr(generator.bit_generator.state)


def _comparable(state) -> tuple:
    return tuple(part.tobytes() if isinstance(part, np.ndarray) else part for part in state)
