"""Find everything that a traced function reads from outside, and test whether it has changed since the trace.

A trace holds the values that the function found in closures, global variables and objects: by reference if an array
went straight into an operation, by value if something was computed from it first, or if the function branched on it.
The two cannot be told apart, so all values are compared at each call: bindings and items by identity, arrays with a
copy. Arrays that cannot be written (``x.flags.writeable = False``, also in the arrays they view) and JAX's need no
copy.

A program depends on two sets of values. The key (:class:`.compiled.Signature`) has the arguments: structure with the
order of dicts, shapes, dtypes, Python's numbers by their bits, static arguments by value, ``floatx`` and ``epsilon``.
:class:`Captured` has everything that a call does not name: closures; globals, also those that could hide a builtin;
defaults, keyword defaults and code of functions; attributes of objects, classes and metaclasses; slots, properties and
descriptors; items of containers and their order; contents of arrays and tables; arguments of partial functions; the
registry of ``singledispatch``; the inputs and the cache of ``lru_cache``; values of context variables; the environment
and NumPy's settings if code names them; and everything that static arguments hold. The tests change each of these.
:class:`.compiled.Compiled` makes a :class:`Captured` in each trace and asks it :meth:`~Captured.changed` at each call.
"""

from __future__ import annotations

import array
import builtins
import collections
import contextvars
import dis
import functools
import gc
import itertools
import operator
import os
import pickle
import random
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from .. import _tree, backends
from ..autodiff.graph import Node
from ..autodiff.variable import Variable, is_active
from ..errors import JitError

_MISSING = object()
_STATE = operator.attrgetter("__code__", "__defaults__", "__kwdefaults__")
_CACHED: Any = type(functools.lru_cache(abs))
_PLAIN = frozenset((bool, int, float, complex, str, bytes, type(None)))
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()))
_PLAIN_CONTAINERS = frozenset((list, set, dict, collections.deque, tuple, frozenset, np.ndarray))
_METHODS = (types.FunctionType, staticmethod, classmethod, property)
_PARTS: dict[type, Callable[[Any], Iterable]] = {
    types.MethodType: operator.attrgetter("__func__", "__self__"),
    types.BuiltinMethodType: lambda x: [x.__self__],
    types.MethodWrapperType: lambda x: [x.__self__],
    functools.partial: operator.attrgetter("func", "args", "keywords"),
    functools.partialmethod: operator.attrgetter("func", "args", "keywords"),
    functools.cached_property: lambda x: [x.func],
    property: operator.attrgetter("fget", "fset", "fdel"),
    staticmethod: lambda x: [x.__func__],
    classmethod: lambda x: [x.__func__],
    operator.attrgetter: lambda x: [part for name in x.__reduce__()[1] for part in name.split(".")],
    operator.methodcaller: lambda x: x.__reduce__()[1],
    weakref.ref: lambda x: [x()],
    np.vectorize: lambda x: [x.pyfunc],
}
"""For Python's own objects that wrap or call others: a function to their parts, by type."""
_ASKING = frozenset(("vars", "__dict__", "asdict", "astuple", "__getattribute__"))
"""Names of functions that read attributes which the code does not name."""
_MAKING = frozenset(("type", "__class__", "copy", "deepcopy", "replace"))
"""Names whose use can make objects of a class without naming the class."""
_OF_ENVIRONMENT = frozenset(("environ", "getenv"))
_SETTINGS = {"geterr": np.geterr, "get_printoptions": np.get_printoptions}
"""For each function that reads NumPy's settings, the function itself."""
_IMPORTING = frozenset(("import_module", "__import__", "modules"))
_IMPORTS = dis.opmap["IMPORT_NAME"]
_LIBRARIES = frozenset(("builtins", "gradops", "numpy", "scipy", "torch", "tensorflow", "jax", "jaxlib", "rpycall"))
_WITHOUT_TABLES = _LIBRARIES - {"scipy", "builtins"}  # SciPy has sparse matrices, and Python has arrays
_NOT_CALLED = frozenset(
    f"__{name}__" for name in "init new post_init del repr str setattr delattr getstate setstate".split()
)
"""Methods that a traced function does not call on an object it finds, so the attributes they name are not read."""

_AROUND_OTHERS = (collections.UserDict, collections.UserList, collections.ChainMap)
"""Python's containers that wrap another one."""

_OF_NAMESPACES = ("types", "argparse")
"""Python's modules with namespace classes, whose attributes are the user's."""

_OF_TORCH_MODULES = ("_parameters", "_buffers", "_modules", "_forward_hooks", "_forward_pre_hooks")


class Captured:
    """The bindings, arrays and random generators that ``f`` and the functions it calls close over.

    Each is stored with a name, which :meth:`changes` returns.

    Args:
        static: values that are passed to ``f`` and may be read, such as static arguments.
    """

    def __init__(self, f: Callable, static: Iterable = ()):
        self.cells: list[tuple[types.CellType, Any, str]] = []
        self.lookups: list[tuple[Mapping, str, Any, str]] = []
        self.functions: list[tuple[types.FunctionType, Any, Any, Any]] = []
        self.bindings: list[tuple[Callable[[], Any], Any, str]] = []
        self.contents: list[tuple[Callable[[Any, Any], bool], Any, Any, str]] = []  # of containers, arrays, tensors
        self.generators: list[Any] = []
        self._package = root_package(getattr(_inner(f), "__module__", None))
        self._seen: dict[int, Any] = {}
        self.caches: list[tuple[Any, list]] = []  # functions of `functools.lru_cache`, with their entries
        self._queue: list[tuple[Any, str]] = [(f, getattr(f, "__name__", type(f).__name__))]
        self._queue += [(value, type(value).__name__) for value in static]
        # An attribute is stored once its object and a function that names it have been found, in either order. So
        # objects wait in a dict by the names of their attributes, and each pair is handled once. Checking all objects
        # for each new name was quadratic: seconds for a chain of a thousand.
        self._names: set[str] = set()  # of attributes and variables in all functions
        self._asked: set[str] = set()  # names of attributes that code handles if they are absent
        self._by_any_name = False  # True if a function computes names of attributes
        self._objects: list[Any] = []
        self._waiting: dict[str, list[Any]] = {}  # objects by the name of an attribute that no function names so far
        self._attributes: list[tuple[Any, str]] = []  # pairs of an object and an attribute still to be stored
        self._noted: set[tuple[int, str]] = set()
        self._made: set[type] = set()  # classes whose objects functions may make
        self._to_import: set[str] = set()  # modules that functions import, and that are not imported yet
        while self._queue or self._attributes:
            if self._queue:
                self._visit(*self._queue.pop())
            else:  # after the queue, as a value that has another name is better known by it
                self._visit_attribute(*self._attributes.pop())

    def changed(self) -> bool:
        """True if a binding, an item, an array or a tensor has changed."""
        missing = _MISSING
        for names, name, value, _ in self.lookups:
            if names.get(name, missing) is not value:
                return True
        try:
            for cell, value, _ in self.cells:
                if cell.cell_contents is not value:
                    return True
        except ValueError:  # the cell is empty now
            return True
        for f, code, defaults, keywords in self.functions:
            if f.__code__ is not code or f.__defaults__ is not defaults or f.__kwdefaults__ is not keywords:
                return True
        for get, value, _ in self.bindings:
            if get() is not value:
                return True
        for differs, value, then, _ in self.contents:
            if differs(value, then):
                return True
        for cached, then in self.caches:
            if _differs_in_entries(cached, then):
                return True
        return False

    @property
    def is_fixed(self) -> bool:
        """True if only the functions that gradops' own functions are made of could change."""
        return not (self.lookups or self.functions or self.bindings or self.contents or self.caches)

    def changes(self) -> list[tuple[str, Any, Any]]:
        """Return what has changed, see :meth:`changed`: the name, the value in the trace, and the value now.

        For functions, containers and arrays the value in the trace is None.
        """
        return [
            *[(x, v, m.get(name, _MISSING)) for m, name, v, x in self.lookups if m.get(name, _MISSING) is not v],
            *[(where, v, _contents(cell)) for cell, v, where in self.cells if _contents(cell) is not v],
            *[(f.__name__, None, f) for f, *then in self.functions if any(map(operator.is_not, _STATE(f), then))],
            *[(where, value, get()) for get, value, where in self.bindings if get() is not value],
            *[(where, None, value) for differs, value, then, where in self.contents if differs(value, then)],
        ]

    def refuse_changes(self) -> None:
        """Raise if something :meth:`changed`, because then the traced function has changed it.

        New entries in caches are allowed and stored.
        """
        self.caches = [(cached, _entries(cached)) for cached, _ in self.caches]
        if changes := self.changes():
            names = ", ".join(f"`{name}`" for name in dict.fromkeys(name for name, *_ in changes))
            raise JitError(
                f"a compiled function changed what it reads, or others may read: {names}. Once compiled, it does not "
                "repeat the change.",
                hint="return the new value as a result, and pass it as an argument of the next call (in a loop, as "
                "part of its state); or change it outside of the compiled function",
            )

    def imported(self) -> bool:
        """True if a module that a function imports was not imported at the trace, and is now."""
        return any(name in sys.modules for name in self._to_import)  # there are few

    def random_state(self, backend) -> list:
        """Return the states of the global random generators and of those found.

        Generators of the backend that compiles are left out, as its programs draw from them at each call.
        """
        states = [_comparable(np.random.get_state()), random.getstate()]
        generators, torch = self.generators, sys.modules.get("torch")
        if torch is not None and not backend.is_tensor_type(torch.Tensor):
            states.append(torch.get_rng_state().numpy().tobytes())
        elif torch is not None:
            generators = [x for x in generators if not isinstance(x, torch.Generator)]
        return [*states, *map(_state, generators)]

    def _visit(self, value, where: str) -> None:
        """Store what can change in ``value``."""
        if id(value) in self._seen:
            return
        kind = type(value)
        if kind is str and value.isidentifier():
            self._add_names({value})  # may be the name of an attribute
        if kind in _PLAIN or isinstance(value, np.generic):
            return
        self._seen[id(value)] = value
        if isinstance(value, Variable):
            self._bind(functools.partial(getattr, value, "data"), where)
        elif isinstance(value, np.ndarray):
            self._visit_array(value, where)
        elif isinstance(value, _generators()) or _is_torch(value, "Generator"):
            self.generators.append(value)
        elif isinstance(value, types.FunctionType):
            self._visit_function(value)
        elif isinstance(value, _AROUND_OTHERS):
            self._visit_all([vars(value)], where)
        elif isinstance(value, (list, set, dict, collections.deque, types.MappingProxyType, *_VIEWS)):
            self.contents.append((_differs_in_items, value, _items(value), f"{where}[...]"))
            self._visit_all(_items(value), where)
        elif isinstance(value, (tuple, frozenset)):
            self._visit_all(value, where)
        elif isinstance(value, contextvars.ContextVar):
            self._bind(functools.partial(_context_value, value), value.name)
        elif kind is _CACHED:
            self.caches.append((value, _entries(value)))
            self._visit_all([value.__wrapped__], where)
        elif kind in _PARTS:
            self._visit_all(_PARTS[kind](value), where)
        elif _is_tensor(value):
            self.contents.append((_is_other_version, value, _version(value), where))
        elif _is_torch_module(value):
            self._visit_torch_module(value)
        else:
            if _holds_tensor(value):
                self._bind(functools.partial(backends.held, value), where)
            elif _is_table(value):
                self.contents.append((_differs_pickled, value, _Pickled(value).kept(), where))
            if not _is_library(value):
                self._visit_object(value)
            elif callable(value):
                self._visit_all([getattr(value, "__wrapped__", None)], where)
                if root_package(kind.__module__) == "gradops":  # such as a rule of a custom gradient
                    self._visit_all(filter(callable, getattr(value, "__dict__", {}).values()), where)
            return
        if kind not in _PLAIN_CONTAINERS and not _in_library(kind.__module__):  # a subclass, with attributes
            self._visit_object(value)

    def _visit_all(self, values: Iterable, where: str) -> None:
        self._queue += [(value, where) for value in values]

    def _visit_array(self, value: np.ndarray, where: str) -> None:
        if value.dtype == object:
            self.contents.append((_differs_in_items, value, _items(value), f"{where}[...]"))
            self._visit_all(value.flat, where)
        elif _may_change(value):
            few = value.nbytes <= _FEW and value.dtype.kind in "biufcmM" and value.dtype.char not in "gG"
            differs, then = (_differs_in_bits, _bits(value)) if few else (_differs, value.copy())
            self.contents.append((differs, value, then, where))
        if isinstance(value, np.ma.MaskedArray):
            self._visit_all([value.mask], where)

    def _visit_function(self, f: types.FunctionType) -> None:
        codes = list(codes_of(f.__code__))
        names = {name for code in codes for name in code.co_names}
        texts = {text for code in codes for text in _texts(code.co_consts)}
        self._add_names(names | {text for text in texts if text.isidentifier()})
        library = _in_library(f.__module__)
        for cell, name in zip(f.__closure__ or (), f.__code__.co_freevars):
            value = _contents(cell)
            if value is _MISSING:
                self._bind(functools.partial(_contents, cell), name)
            elif not library or callable(value):  # other values in a library's closures are its own state
                self.cells.append((cell, value, name))
                self._queue.append((value, name))
        self._visit_all([f.__defaults__, f.__kwdefaults__], f"{f.__name__}.__defaults__")
        if not library:
            self.functions.append((f, *_STATE(f)))
            self._add_object(f)
            self._visit_globals(f, names, texts)
            self._visit_imports(f, codes, names, texts)
            # The names in the code do not tell all attributes it reads: it may handle an absent one, and the trace then
            # depends on the absence; or it may compute the name.
            if "AttributeError" in names:
                self._ask(names)
            if not names.isdisjoint(("getattr", "hasattr")):
                self._ask(texts)
            if self._is_users(f.__module__) and (not names.isdisjoint(_ASKING) or any(map(_computes_names, codes))):
                self._open_all()
        registry = getattr(f, "registry", None)  # of `functools.singledispatch`
        found = registry if isinstance(registry, types.MappingProxyType) else None
        self._visit_all([getattr(f, "__wrapped__", None), found], f.__name__)

    def _visit_globals(self, f: types.FunctionType, names: set[str], texts: set[str]) -> None:
        for name in names | texts if "globals" in names else names:
            if name in f.__globals__ or hasattr(builtins, name) or "NameError" in names:  # a global may hide a builtin
                self._look_up(f.__globals__, name, name)
        if not names.isdisjoint(_OF_ENVIRONMENT):
            self._bind(_environment, "os.environ")
        for name in names & _SETTINGS.keys():
            self._bind(functools.partial(_settings, name), name)

    def _visit_imports(self, f: types.FunctionType, codes: list, names: set[str], texts: set[str]) -> None:
        """Store the modules that a function imports."""
        found = set(texts) if not names.isdisjoint(_IMPORTING) else set()
        if any(_IMPORTS in code.co_code[::2] for code in codes):
            package, within = f.__globals__.get("__package__") or "", {""}
            while package:  # relative names start at these packages
                within |= {package}
                package = package.rpartition(".")[0]
            found |= {f"{start}.{name}".strip(".") for start in within for name in (*names, "")}
        for name in filter(None, found):
            if name not in sys.modules:
                self._to_import.add(name)
            elif not _in_library(name):
                self._look_up(sys.modules, name, name)

    def _visit_object(self, value) -> None:
        self._add_object(value)
        if isinstance(value, types.ModuleType):
            return
        if isinstance(value, type):
            self._visit_methods(value, made=True)
            self._visit_methods(type(value), made=False)
            return
        if callable(value):
            self._visit_all([type(value).__call__], type(value).__name__)
        self._visit_methods(type(value), made=False)

    def _visit_methods(self, kind: type, made: bool) -> None:
        """Store the methods of a class that Python or a library's base class may call.

        Args:
            made: True if functions may make objects of the class.
        """
        if made:
            self._made.add(kind)
        users = self._users_classes(kind)
        may_call_by_base = any(
            k not in users and k is not object and not _is_stdlib(k.__module__) for k in kind.__mro__
        )
        for owner in users:
            for name, method in vars(owner).items():
                called = made or name not in _NOT_CALLED and not _is_dataclass_method(owner, method)
                special = name.startswith("__") and called and isinstance(method, types.FunctionType)
                if special or may_call_by_base and isinstance(method, _METHODS):
                    self._queue.append((method, owner.__name__))

    def _visit_torch_module(self, module) -> None:
        """Store the mode, parameters, buffers, submodules and forward hooks; for torch's own modules all attributes."""
        attributes, kind = vars(module), type(module).__name__
        for name in _OF_TORCH_MODULES:
            self._visit_all([attributes[name]], f"{kind}.{name}")
            for part, value in attributes[name].items():
                self._queue.append((value, f"{kind}.{part}"))
        if _is_library(module):
            self.contents.append((_differs_in_items, attributes, _items(attributes), f"{kind}.__dict__"))
            self._visit_all([part for name, part in attributes.items() if not name.startswith("_")], kind)
        else:
            self._add_names({"forward", "training"})
            self._visit_object(module)

    def _add_object(self, value) -> None:
        """Store the attributes of an object or module that functions name, now or later."""
        self._objects.append(value)
        own, kinds = self._parts_of(value)
        for name in dict.fromkeys(itertools.chain(own, *map(vars, kinds))):
            if name in self._names:
                self._attributes.append((value, name))
            else:
                self._waiting.setdefault(name, []).append(value)
        if self._asked and _may_lack(value):
            self._attributes += [(value, name) for name in self._asked]
        if self._is_opened(value):
            self._open(value)
        if not _MAKING.isdisjoint(self._names):
            self._make_all([value])

    def _add_names(self, names: set[str]) -> None:
        new = names - self._names
        if not _MAKING.isdisjoint(new):
            self._make_all(self._objects)
        self._names |= new
        for name in self._waiting.keys() & new:
            self._attributes += [(value, name) for value in self._waiting.pop(name)]

    def _ask(self, names: set[str]) -> None:
        """Store also the absence of attributes with these names, if functions name them."""
        new = names & self._names - self._asked
        self._asked |= new
        self._attributes += [(value, name) for value in self._objects if _may_lack(value) for name in new]

    def _make_all(self, objects: list) -> None:
        """Store methods that run when objects of these objects' classes are made."""
        for value in objects:
            _, kinds = self._parts_of(value)
            if kinds and kinds[0] not in self._made:
                self._visit_methods(kinds[0], made=True)

    def _open_all(self) -> None:
        if not self._by_any_name:
            self._by_any_name = True
            for value in filter(self._is_opened, self._objects):
                self._open(value)

    def _open(self, value) -> None:
        own, kinds = self._parts_of(value)
        if own:
            self.contents.append((_differs_in_items, own, _items(own), f"{_name_of(value)}.__dict__"))
        names = itertools.chain(own, *map(vars, kinds), self._asked if _may_lack(value) else ())
        self._attributes += [(value, name) for name in names if not name.startswith("__")]

    def _parts_of(self, value) -> tuple[dict, list[type]]:
        """Return an object's own attributes, and the user's classes that have its other attributes."""
        if isinstance(value, type):
            return {}, [*self._users_classes(value), *self._users_classes(type(value))]
        return getattr(value, "__dict__", {}), self._users_classes(type(value))

    def _is_opened(self, value) -> bool:
        """True if all attributes are stored, named or not. Only for the user's objects; others lead everywhere."""
        return self._by_any_name and (self._is_users(_module_of(value)) or type(value).__module__ in _OF_NAMESPACES)

    def _visit_attribute(self, value, name: str) -> None:
        if (id(value), name) in self._noted:
            return
        self._noted.add((id(value), name))
        own, kinds = self._parts_of(value)
        where = f"{_name_of(value)}.{name}"
        if isinstance(value, threading.local) and name in own:  # its `__dict__` differs by thread
            self._bind(functools.partial(getattr, value, name, _MISSING), where)
            return
        if name in own:
            self._look_up(own, name, where)
            return
        having = [i for i, kind in enumerate(kinds) if name in vars(kind)]
        for kind in kinds[: having[-1] + 1 if having else 1]:  # not only the first, as `super()` reaches the others
            self._look_up(vars(kind), name, where)
            if isinstance(vars(kind).get(name), types.MemberDescriptorType) and not isinstance(value, type):
                self._bind(functools.partial(getattr, value, name, _MISSING), where)
        if hasattr(value, "__dict__") and not isinstance(value, type):  # an own attribute could hide the class's
            self._look_up(own, name, where)

    def _users_classes(self, kind: type) -> list[type]:
        """Return the classes of ``kind`` that are the user's, not of a library or another installed package."""
        return [k for k in kind.__mro__ if self._is_users(k.__module__)]

    def _is_users(self, module: str) -> bool:
        return not _in_library(module) and (root_package(module) == self._package or not _installed(module))

    def _look_up(self, names: Mapping, name: str, where: str) -> None:
        value = names.get(name, _MISSING)
        self.lookups.append((names, name, value, where))
        self._queue.append((value, where))

    def _bind(self, get: Callable[[], Any], where: str) -> None:
        value = get()
        self.bindings.append((get, value, where))
        self._queue.append((value, where))


def lost_gradient(result) -> bool:
    """True if the result of a trace has a gradient to a variable of numbers, which cannot be an argument."""
    pending = [x._node or x for x in _tree.flatten(result)[0] if is_active(x)]
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
    except Exception:  # for a traced tensor, each library raises its own error
        return False
    return True


def _inner(f):
    while isinstance(f, functools.partial):
        f = f.func
    return f


def _name_of(value) -> str:
    named = isinstance(value, (type, types.ModuleType, types.FunctionType))
    return value.__name__ if named else type(value).__name__


def _may_lack(value) -> bool:
    """True if functions may test whether a value has an attribute; modules and functions are left out."""
    return not isinstance(value, (types.ModuleType, types.FunctionType))


def _module_of(value) -> str:
    """Return the module that defines a class, a function or an object's class; a module's own name."""
    if isinstance(value, types.ModuleType):
        return value.__name__
    return (value if isinstance(value, (type, types.FunctionType)) else type(value)).__module__


def _is_dataclass_method(kind: type, method) -> bool:
    """True if ``dataclasses`` made a method, such as a comparison, which names all fields."""
    code = getattr(method, "__code__", None)
    return "__dataclass_fields__" in vars(kind) and code is not None and code.co_filename == "<string>"


def _items(container) -> list:
    if isinstance(container, np.ndarray):
        return container.ravel().tolist()
    is_mapping = isinstance(container, (dict, types.MappingProxyType))
    return [*container, *container.values()] if is_mapping else list(container)


def _differs_in_items(container, then: list) -> bool:
    now = _items(container)
    return len(now) != len(then) or not all(map(operator.is_, now, then))


def _may_change(x: np.ndarray) -> bool:
    """True if an array, or the object that it is a view of, can be written."""
    at: Any = x
    while isinstance(at, np.ndarray):
        if at.flags.writeable:
            return True
        at = at.base
    return at is not None and not isinstance(at, bytes)


def _entries(cached) -> list:
    """Return the entries in the cache of a function; an entry is a new object if its result was computed again."""
    # `cache_info()` is not enough: after `cache_clear()` and the same calls it is as before.
    own = vars(cached)
    tables = [x for x in gc.get_referents(cached) if type(x) is dict and x is not own]
    return [entry for table in tables for entry in table.values()]


def _differs_in_entries(cached, then: list) -> bool:
    now = _entries(cached)
    return len(now) != len(then) or not all(map(operator.is_, now, then))


def _context_value(variable: contextvars.ContextVar):
    try:
        return variable.get()
    except LookupError:
        return _MISSING


def _environment() -> str:
    """Return the environment as text, which is the same object as long as no variable changes."""
    return sys.intern(repr(sorted(os.environ.items())))


def _settings(name: str) -> str:
    """Return NumPy's settings as text, which is the same object as long as they do not change."""
    return sys.intern(repr(_SETTINGS[name]()))


def _texts(constants) -> Iterator[str]:
    """Yield the strings among constants, which may be names, as in ``getattr(x, "name")``."""
    for constant in constants:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, tuple):
            yield from _texts(constant)


def _computes_names(code: types.CodeType) -> bool:
    """True if code uses ``getattr`` or ``hasattr`` other than in a call with a name that is written there."""
    if {"getattr", "hasattr"}.isdisjoint(code.co_names):
        return False
    since: list[dis.Instruction] | None = None  # the instructions since `getattr` or `hasattr` was loaded
    for step in dis.get_instructions(code):
        if step.argval in ("getattr", "hasattr"):
            if since is not None:
                return True
            since = []
        elif since is not None and step.opname not in ("PRECALL", "PUSH_NULL"):
            since.append(step)
            if step.opname.startswith("CALL"):
                if step.argval not in (2, 3) or len(since) < step.argval:
                    return True
                name = since[-step.argval]  # the second argument
                if name.opname != "LOAD_CONST" or not isinstance(name.argval, str):
                    return True
                since = None
    return since is not None


def codes_of(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes_of(constant)


def _contents(cell):
    try:
        return cell.cell_contents
    except ValueError:  # the cell is empty
        return _MISSING


def root_package(module: str | None) -> str:
    return (module or "").partition(".")[0]


def _in_library(module: str | None) -> bool:
    return root_package(module) in _LIBRARIES or _is_stdlib(module)


def _is_stdlib(module: str | None) -> bool:
    root = root_package(module)
    return root in sys.stdlib_module_names and root != "__main__"


def _is_library(value) -> bool:
    """True if a value is a library's module, class or object, which does not change; False for plain namespaces."""
    if isinstance(value, types.ModuleType):
        return _in_library(value.__name__)
    if isinstance(value, type):
        return _in_library(value.__module__)
    return root_package(type(value).__module__) in _LIBRARIES


def _installed(module: str) -> bool:
    path = getattr(sys.modules.get(module), "__file__", None) or ""
    return "site-packages" in path or "dist-packages" in path


def _is_torch(value, name: str) -> bool:
    """True if a value is of a class of PyTorch; does not import PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, getattr(torch, name))


def _is_tensor(value) -> bool:
    return _is_torch(value, "Tensor") and not value.is_inference()


def _is_torch_module(value) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def _holds_tensor(value) -> bool:
    """True if a value wraps a tensor, as Keras's variables and flax's ``nnx.Param`` do."""
    like = hasattr(type(value), "__array__") or hasattr(type(value), "__jax_array__")
    return like and not isinstance(value, type) and backends.held(value) is not value


def _is_table(value) -> bool:
    """True if an object's numbers may change in place: data frames, sparse matrices, Python's own arrays."""
    kind = type(value)
    if isinstance(value, type) or root_package(kind.__module__) in _WITHOUT_TABLES:
        return False
    if backends.owner(kind) is not None:  # such as a Keras variable on TensorFlow, which programs read
        return False
    return hasattr(kind, "__array__") or isinstance(value, (array.array, bytearray, memoryview)) or _is_sparse(value)


def _is_sparse(value) -> bool:
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(value)


class _Pickled:
    """The contents of an object, including labels: its pickle, and the memory that the pickle refers to."""

    def __init__(self, value):
        shown: list[pickle.PickleBuffer] = []
        try:
            self.text = pickle.dumps(value, protocol=5, buffer_callback=shown.append)
            self.memory = [np.frombuffer(part.raw(), np.uint8) for part in shown]
        except Exception:  # each class raises its own error
            self.text, self.memory = b"", _numbers(value)

    def kept(self) -> _Pickled:
        """Return the object with copies of the memory, for later comparison."""
        self.memory = [part.copy() for part in self.memory]
        return self

    def differs(self, then: _Pickled) -> bool:
        pairs = zip(self.memory, then.memory)
        return self.text != then.text or any(not np.array_equal(now, before) for now, before in pairs)


def _differs_pickled(table, then: _Pickled) -> bool:
    return _Pickled(table).differs(then)


def _numbers(value) -> list[np.ndarray]:
    try:
        return [np.asarray(value)]
    except Exception:  # also for tensors being traced
        return []


def _version(tensor) -> tuple:
    """Return a key that changes with a write in place, and with ``tensor.data = ...``."""
    try:
        return tensor._version, tensor.data_ptr()
    except RuntimeError:  # a tensor without a single storage, such as a sparse one
        return tensor._version, 0


def _is_other_version(tensor, then: tuple) -> bool:
    return _version(tensor) != then


def _differs(now: np.ndarray, then: np.ndarray) -> bool:
    """True if an array has other bits than its copy; the order in memory does not count."""
    if now.shape != then.shape or now.dtype != then.dtype:
        return True
    # Bits are compared if possible: a NaN or a missing date differs from itself, and 0.0 equals -0.0, though they are
    # on different branches of a square root.
    if now.dtype.kind == "c":
        return _differs(now.real, then.real) or _differs(now.imag, then.imag)
    if now.dtype.kind in "biufmM" and now.itemsize in (1, 2, 4, 8):
        bits = f"i{now.itemsize}"
        return bool((now.view(bits) != then.view(bits)).any())
    return not np.array_equal(now, then, equal_nan=now.dtype.kind == "f")


_FEW = 32_768
"""The largest size in bytes of an array that is compared as bytes, which takes a third of the time for 100 numbers."""


def _bits(x: np.ndarray) -> tuple:
    return x.shape, x.dtype, x.tobytes()


def _differs_in_bits(now: np.ndarray, then: tuple) -> bool:
    return _bits(now) != then


def _state(generator):
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.RandomState):
        return _comparable(generator.get_state())
    if _is_torch(generator, "Generator"):
        return generator.get_state().numpy().tobytes()
    return repr(generator.bit_generator.state)


def _comparable(state) -> tuple:
    return tuple(part.tobytes() if isinstance(part, np.ndarray) else part for part in state)


@functools.cache
def _generators() -> tuple:
    """Return the classes of random generators; NumPy imports its own at first use."""
    return np.random.Generator, np.random.RandomState, random.Random
