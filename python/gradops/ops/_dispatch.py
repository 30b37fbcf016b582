"""Dispatch: an op finds its kernel by the types of its tensor arguments, in one dictionary.

``@op`` turns a signature with a docstring into a public op. The function made for it looks up its kernel in a table
keyed by argument types and calls it; the overhead is one dictionary access and one call. A key that is not yet in the
table is resolved once:

1. an argument of a traced type (``Variable``): the function that the tape made for the op, see ``trace_with``;
2. tensors of one backend: the backend's kernel of the op's name, else the op's own body;
3. no tensor at all: the arguments are converted to the default backend, then as in 2;
4. an unknown type: each call looks for the tensor that such an argument holds (as a Keras variable does).

An op whose body is ``...`` must have a kernel in each backend. Arguments annotated ``Tensor``,
``Operand``, ``Tensors`` and ``Indices`` (gradops.annotations) are the tensor arguments.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from .. import _functions, annotations, backends, config
from .._names import ARGUMENTS
from ..backends import tracing
from ..errors import ArgumentTypeError, BackendError, GradopsError, ShapeError
from . import _checks
from ._docstrings import op_docstring
from ._registry import Facts, names, publish
from ._registry import registry as _table
from ._symbolic import any_symbolic, call_symbolically
from .properties import holds_tensors

F = TypeVar("F", bound=Callable)

registry: dict[str, Op] = _table
of_kernels: dict[str, str] = {}
"""Op names by kernel name, in which underscores replace dots."""
_tracers: dict[type, Callable[[Op, tuple], Callable]] = {}
NUMBERS = (bool, int, float, complex)

observe: Callable[[Op, Callable, backends.Backend | None], Callable] | None = None
"""The wrapper around kernels, set by the first checkpoint scope (``flow/checkpointing/tape.py``)."""


def trace_with(kind: type, make: Callable[[Op, tuple], Callable]) -> None:
    """Register ``make(op, key)`` as the source of implementations for calls with an argument of type ``kind``."""
    _tracers[kind] = make
    for known in registry.values():
        known.kernels.clear()


class _Kernels(dict):
    """Implementations by argument types, filled on first use."""

    __slots__ = ("op",)

    def __missing__(self, key):
        return self.op.resolve(key)


class _Resolved:
    """Like ``_Kernels``, for code that a compiler reads (``tracing.read_as``): no table, as its growth recompiles."""

    __slots__ = ("op",)

    def __init__(self, op: Op):
        self.op = op

    def __getitem__(self, key):
        return self.op.read(key)


class _Chosen:
    """Like ``_Resolved``, for ops without lists of tensors; the choice is not read, since read code costs guards."""

    __slots__ = ("name",)

    def __init__(self, op: Op):
        self.name = op.name

    def __getitem__(self, key):
        choice = _choice(self.name, key) if observe is None else None
        if choice is None:
            return registry[self.name].read(key)
        return registry[self.name].body if choice == "body" else getattr(backends.kernels_as_read(), choice)


@tracing.constant
def _choice(name: str, key) -> str | None:
    """Return the kernel's name, or ``"body"``, if the implementation is that function itself; else None."""
    op = registry[name]
    kinds = key if type(key) is tuple else (key,)
    backend = backends.owner_as_read(kinds)
    if backend is None or any(map(backends.may_hold, kinds)):
        return None
    implementation = op._implementation(backend, kinds)
    if implementation is op.body:
        return "body"
    return name.replace(".", "_") if implementation is backend.kernel(name) else None


class Op:
    """One op: its name, signature, tensor arguments, body, and the table of implementations."""

    def __init__(self, function: Callable, name: str, differentiable: bool, check: Callable | None, facts: Facts):
        self.name = name
        self.differentiable = differentiable
        self.check = check
        self.body = None if _is_ellipsis(function) else function
        self.signature = inspect.signature(function)
        self.parameters = tuple(self.signature.parameters)
        kinds = {p.name: annotations.kind_of(p.annotation) for p in self.signature.parameters.values()}
        self.annotations = kinds
        tensor_kinds = ("Tensor", "Operand", "Tensors", "Indices")
        self.tensors = tuple(p for p in self.parameters if kinds[p] in tensor_kinds)
        self.positions = tuple(self.parameters.index(p) for p in self.tensors)
        self.sizes = tuple(i for i, p in enumerate(self.parameters) if kinds[p] in ("Integer", "Shape"))
        self.many = tuple(p for p in self.tensors if kinds[p] == "Tensors")
        self._places_of_many = frozenset(self.parameters.index(p) for p in self.many)
        self.weak = tuple(p for p in self.tensors if kinds[p] == "Operand")
        self.facts = facts
        self.rules: dict[str, Any] = {}
        """What upper floors know of the op, by kind of rule: :func:`._registry.rule`."""
        self.with_rule: Callable | None = None
        """Wraps a kernel so that its derivative is the op's rule, even where a library differentiates by itself."""
        for argument in (*facts.linear, *facts.multilinear):
            if argument not in self.tensors:
                raise ValueError(f"the op `{name}` has no tensor argument `{argument}` to be linear in.")
        self.kernels = _Kernels()
        self.kernels.op = self
        self.call = _public(self, function)

    def __repr__(self) -> str:
        return f"<gradops op {self.name}{self.signature}>"

    def resolve(self, key) -> Callable:
        kinds = key if type(key) is tuple else (key,)
        named = zip(self.positions, self.tensors, kinds)
        listed = [(p, name) for p, name, k in named if k in (list, tuple) or _LISTS & _contained_types(k)]
        found = self._choose_implementation(key, kinds, key)
        if not listed:
            return found

        def joined(*arguments):
            """Call with lists of tensors stacked into one tensor, of their promoted dtype and with their gradients."""
            given = list(arguments)
            for position, name in listed:
                try:
                    given[position] = stack_lists(given[position], position in self._places_of_many)
                except ShapeError:
                    raise _checks.ragged(self.name, name) from None
            if all(new is old for new, old in zip(given, arguments)):
                return found(*arguments)
            return self.kernels[self.key_of(given)](*given)

        if key in self.kernels:
            self.kernels[key] = joined
        return joined

    def read(self, key) -> Callable:
        """Return the implementation without storing it; kernels take lists of tensors as one tensor."""
        return self._choose_implementation(key, key if type(key) is tuple else (key,), None)

    def key_of(self, arguments) -> Any:
        """Return the table key of a call, as the public function computes it."""
        keys = [kind_of(arguments[p]) if p in self._places_of_many else type(arguments[p]) for p in self.positions]
        return keys[0] if len(keys) == 1 and not self.many else tuple(keys)

    def _choose_implementation(self, key, kinds: tuple, kept) -> Callable:
        flat = [t for k in kinds for t in (k if type(k) is frozenset else (k,))]
        if any(map(backends.may_hold, flat)):
            return self._held_implementation(key, kinds, flat)
        return self._resolved(kept, kinds, flat)

    def _held_implementation(self, key, kinds, flat) -> Callable:
        """Return an implementation that is called with the tensors that its arguments hold."""

        def implementation(*arguments):
            given = list(arguments)
            for position, name in zip(self.positions, self.tensors):
                value = given[position]
                several = name in self.many and isinstance(value, (list, tuple))
                given[position] = list(map(backends.held, value)) if several else backends.held(value)
            found = self.key_of(given)
            if found == key:  # no argument holds a tensor
                if any_symbolic(arguments):
                    return call_symbolically(self.name, *self._public_arguments(arguments))
                return self._resolved(None, kinds, flat)(*arguments)
            return self.kernels[found](*given)

        return implementation

    def _public_arguments(self, arguments) -> tuple[list, dict]:
        """Return a kernel's arguments as the positional and keyword arguments of the public function."""
        positional: list = []
        by_name: dict = {}
        for parameter, value in zip(self.signature.parameters.values(), arguments):
            if parameter.kind is parameter.VAR_POSITIONAL:
                positional.extend(value)
            elif parameter.kind is parameter.VAR_KEYWORD:
                by_name.update(value)
            elif parameter.kind is parameter.KEYWORD_ONLY:
                by_name[parameter.name] = value
            else:
                positional.append(value)
        return positional, by_name

    def _resolved(self, key, kinds, flat) -> Callable:
        for traced, make in reversed(_tracers.items()):  # ahead of these goes a matrix of variables
            if any(issubclass(kind, traced) for kind in flat):
                implementation = make(self, kinds)
                if key is not None:
                    self.kernels[key] = implementation
                return implementation
        backend = backends.common(flat, self.name)
        if backend is None:
            return self._call_without_tensor if observe is None else observe(self, self._call_without_tensor, None)
        backend = backends.computing(backend)
        implementation = self._implementation(backend, kinds)
        if observe is not None:
            implementation = observe(self, implementation, backend)
        if key is not None:
            self.kernels[key] = implementation
        return implementation

    def native(self, backend: backends.Backend) -> Callable:
        """Return the backend's kernel or the body; arguments must be tensors of the backend."""
        kernel = backend.kernel(self.name) or self.body
        if kernel is None:
            raise BackendError(f"`{self.name}` is not available on the backend {backend.name!r}.")
        if self.with_rule is not None and backend.derivatives.native:
            return self.with_rule(kernel, backend.derivatives)
        return kernel

    def _implementation(self, backend: backends.Backend, kinds: tuple) -> Callable:
        kernel = self.native(backend)
        is_native = backend.is_tensor_type
        numbers = getattr(kernel, "numbers", ())  # a library's tensors, which the kernel takes unchanged
        converting = []
        for name, position, kind in zip(self.tensors, self.positions, kinds):
            if type(kind) is frozenset:
                if not all(map(is_native, kind)):
                    converting.append((position, name, True))
            elif not (
                kind is type(None) or is_native(kind) or kind in numbers or name in self.weak and kind in NUMBERS
            ):
                converting.append((position, name, False))
        if not converting:
            return _number_kernel(kernel, kinds)

        def converted(*arguments):
            like = self._first_native(arguments, is_native)
            arguments = list(arguments)
            for position, name, many in converting:
                arguments[position] = self.converted(backend, name, arguments[position], many, like)
            return kernel(*arguments)

        return converted

    def _first_native(self, arguments, is_native):
        """Return a tensor of the call; constants are moved to its device."""
        for position in self.positions:
            value = arguments[position]
            for item in value if isinstance(value, (list, tuple)) else (value,):
                if is_native(type(item)):
                    return item
        return None

    def _call_without_tensor(self, *arguments):
        sizes = [arguments[p] for p in self.sizes]
        backend = _owner_of_unknown(sizes) or config.default_backend()
        kernel = self.native(backend)
        takes_numbers = getattr(kernel, "takes_numbers", False)
        if not self.tensors or takes_numbers and _numbers_alone(arguments[p] for p in self.positions):
            return kernel(*arguments)
        arguments = list(arguments)
        for name, position in zip(self.tensors, self.positions):
            value = arguments[position]
            if value is not None:
                many = name in self.many and isinstance(value, (list, tuple))
                arguments[position] = self.converted(backend, name, value, many)
        return kernel(*arguments)

    def converted(self, backend: backends.Backend, name: str, value, many: bool = False, like=None):
        """Return an argument as a tensor of a backend; for ``many``, its items.

        Raises:
            ArgumentTypeError, ShapeError: the value does not convert to a tensor.
        """
        is_native, convert = backend.is_tensor_type, backend.convert
        if self.facts.elementwise and len(self.tensors) == 2 and _checks.combines_arrays(type(value)):
            raise _checks.not_a_tensor(self.name, name, value)
        try:
            if many:
                return [v if is_native(type(v)) else convert(v, like=like) for v in value]
            return convert(value, like=like)
        except GradopsError:
            raise
        except Exception as error:
            raise _checks.not_a_tensor(self.name, name, value) from error


def _owner_of_unknown(sizes) -> backends.Backend | None:
    """Return the library of a size that its graph does not know; None if all sizes are known."""
    for value in sizes:
        for size in value if isinstance(value, (list, tuple)) else (value,):
            if type(size) is not int and (owner := backends.backend_of(size)) is not None:
                concrete = owner.kernel("concrete")
                if concrete is not None and concrete(size, lambda value: value) is None:
                    return owner
    return None


def _numbers_alone(values) -> bool:
    return all(value is None or type(value) in (int, float) for value in values)


_LISTS = frozenset((list, tuple))


def _contained_types(kind) -> frozenset:
    """Return the types in a ``Tensors`` argument."""
    return kind if type(kind) is frozenset else frozenset()


def stack_lists(value, many: bool = False):
    """Return a list that holds tensors as one tensor (for ``many``, the lists in it); any other value unchanged."""
    if not holds_tensors(value):
        return value
    parts = [stack_lists(item) for item in value]
    if many:
        return parts if any(new is not old for new, old in zip(parts, value)) else value
    return registry["stack"].call(parts)


def _number_kernel(kernel: Callable, kinds: tuple) -> Callable:
    """Return a binary kernel's faster form for a tensor and a Python number (``for_numbers``), if it has one."""
    variants = getattr(kernel, "for_numbers", None)
    if variants is not None and len(kinds) == 2:
        for variant, kind in zip(variants, kinds):
            if kind in (int, float):
                return variant
    return kernel


def kind_of(value) -> Any:
    """Return the key of a ``Tensors`` argument: the set of its elements' types, or its own type."""
    return frozenset(map(type, value)) if isinstance(value, (list, tuple)) else type(value)


def op(
    function: F | None = None,
    *,
    name: str | None = None,
    public: bool = True,
    differentiable: bool = True,
    check=None,
    **facts,
):
    """Make a function a public op with the same signature, annotations and docstring.

    Args:
        function: the op. A body of ``...`` means that every backend has a kernel; any other body is the composed op,
            used where a backend has no kernel.
        name: the op's name if it differs from the function's (``image.resize``).
        public: False for internal ops, which the tape's rules are made of.
        differentiable: False for ops without a derivative (comparisons, ``floor``, ``argmax``): on
            variables they run on the data and give no gradient.
        check: ``check(op, *arguments)``, run before the kernel if a backend would accept wrong arguments.
        **facts: the op's facts, see :class:`Facts`.
    """

    def decorate(function: F) -> F:
        entry = define(function, name or function.__name__, differentiable, check, **facts)
        if public:
            publish(function, entry.name)
            entry.call.__doc__ = op_docstring(entry, function)
        if entry.body is None:
            backends.interface.required_kernels.add(entry.name)
        return entry.call  # type: ignore[return-value]

    return decorate if function is None else decorate(function)


def define(function: Callable, name: str, differentiable: bool = True, check=None, **facts) -> Op:
    """Add an op to the registry, replacing one of the same name."""
    entry = registry[name] = Op(function, name, differentiable, check, Facts(**facts))
    of_kernels[name.replace(".", "_")] = name
    return entry


def facts_of(name: str) -> Facts:
    """Return the facts of an op by name; empty facts for steps of the tape and of programs that are not ops."""
    return registry[name].facts if name in registry else _NONE


_NONE = Facts()


def alias(name: str, target: Callable) -> Callable:
    """Add a second name for an op; both names give the same function."""
    registry[name] = registry[target.__name__ if target.__name__ in registry else target.op.name]
    names.add(name)
    return target


_TEMPLATE = """
def {name}({signature}):
{refusal}{prologue}    try:
{check}        return kernels[{key}]({call})
    except Exception as error:
        failure = explain(op, error, ({tuple}))
    if failure.__class__ is tuple:
        return failure[0]
    raise failure
"""


def _public(entry: Op, function: Callable) -> Callable:
    """Return the function that users call, generated for its signature so that a call costs one lookup."""
    signature = entry.signature
    defaults = {f"default_{p.name}": p.default for p in signature.parameters.values()}
    parts, call, seen_variadic = [], [], False
    for parameter in signature.parameters.values():
        text = parameter.name
        if parameter.kind is parameter.VAR_POSITIONAL:
            text, seen_variadic = f"*{text}", True
        elif parameter.kind is parameter.VAR_KEYWORD:
            text = f"**{text}"
        elif parameter.kind is parameter.KEYWORD_ONLY and not seen_variadic:
            parts.append("*")
            seen_variadic = True
        if parameter.default is not parameter.empty:
            text += f"=default_{parameter.name}"
        parts.append(text)
        call.append(parameter.name)
    refusal = ""
    others = [name for name, own in ARGUMENTS.items() if own in entry.parameters]
    if entry.name in _checks.CREATING:
        others.append(_checks.REQUIRES_GRAD)
    if others and all(p.kind is p.POSITIONAL_OR_KEYWORD for p in signature.parameters.values()):
        parts += [f"{name}=..." for name in others]  # no `**unknown`, which would cost every call 0.1 us
        given = " or ".join(f"{name} is not ..." for name in others)
        refusal = f"    if {given}:\n        raise other_name(op, {{{', '.join(f'{n!r}: {n}' for n in others)}}})\n"
    made = []
    for name, kind in entry.annotations.items():
        if kind in _checks.NORMALISE:
            needed = _checks.QUICK.get(kind, "{0}.__class__ is not int and {0} is not None").format(name)
            made.append(f"    if {needed}: {name} = {kind}(op, {name}, '{name}')\n")
    keys = [f"kind_of({t})" if t in entry.many else f"type({t})" for t in entry.tensors]
    key = keys[0] if len(keys) == 1 else f"({', '.join(keys)})"
    if len(keys) == 1 and entry.many:
        key = f"({key},)"
    plain = entry.name.replace(".", "_")
    source = _TEMPLATE.format(
        name=plain,
        signature=", ".join(parts),
        refusal=refusal,
        prologue="".join(made),
        check=_check_of(entry, call),
        key=key,
        call=", ".join(call),
        tuple="".join(f"{c}, " for c in call),
    )
    scope = {
        "kernels": entry.kernels,
        "kind_of": kind_of,
        "explain": _checks.explain,
        "other_name": _checks.other_name,
        "check": entry.check,
        "REAL": frozenset("fiub"),  # the kinds of NumPy's dtypes
        "op": entry,
        **_checks.NORMALISE,
        **defaults,
    }
    public: Any = _functions.alike(source, plain, f"op {entry.name}", scope)
    public.__module__, public.__qualname__ = function.__module__, function.__qualname__
    public.__name__, public.__doc__ = function.__name__, function.__doc__
    public.__signature__, public.__annotations__ = signature, function.__annotations__
    public.op = entry
    scope = scope | {"kernels": (_Resolved if entry.many else _Chosen)(entry)}
    read = FunctionType(public.__code__, scope, plain, public.__defaults__)
    read.__kwdefaults__ = public.__kwdefaults__
    public.autograph_info__ = None  # TensorFlow's AutoGraph must not convert it: there is no source
    return tracing.read_as(read)(public)


def failing(function: Any, explain: Callable) -> Any:
    """Return an op's public function that asks ``explain`` for the error to raise, or for the result in a tuple."""
    made: Any = FunctionType(function.__code__, function.__globals__ | {"explain": explain}, function.__name__)
    made.__defaults__ = function.__defaults__
    functools.update_wrapper(made, function)
    del made.__wrapped__
    return made


def _check_of(entry: Op, call: list[str]) -> str:
    if entry.check is None:
        return ""
    quick = ""
    if entry.check is _checks.check_real and len(entry.tensors) == 1:
        quick = f"if getattr(getattr({entry.tensors[0]}, 'dtype', None), 'kind', '?') not in REAL: "
    return f"        {quick}check(op, {', '.join(call)})\n"


def _is_ellipsis(function: Callable) -> bool:
    """True if a function's body is only a docstring, ``...``, or both."""
    code = function.__code__
    first, *others = code.co_consts  # the docstring as written, if any
    return code.co_code in _EMPTY and not code.co_names and isinstance(first, str | None) and {*others} <= {None, ...}


def _empty(): ...
def _described():
    """."""


def _both():
    """."""
    ...


_EMPTY = {function.__code__.co_code for function in (_empty, _described, _both)}


__all__ = ["Op", "alias", "kind_of", "op", "registry", "trace_with", "ArgumentTypeError"]
