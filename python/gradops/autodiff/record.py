"""Recording: what an op does when one of its arguments is a variable.

``derivative`` registers rules as data, one function for each differentiable argument of an op. A rule's
parameters say what it needs, and only that is kept for the backward pass:

- ``g``, first: the gradient of the op's result;
- an argument's name: its value; ``y``: the op's result (a list for several), unless an argument is so named;
- ``shape``: the shape of the argument that the rule is for; ``shapes`` for an argument of many tensors.

A rule need not sum over broadcast dimensions or cast back: the engine does that for all. Rules are
written with ``gradops.ops``, so they serve every backend and are themselves differentiable. For a
complex result a rule is taken as that of a holomorphic function, unless ``complex_aware=True``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

from numpy import ndarray

from .. import backends
from ..errors import GradientError
from ..ops import _dispatch, conversion
from .graph import PICK, RESULT, Node, Rule
from .inplace import VIEWS, viewing
from .modes import recording
from .variable import Variable, attach, differentiable, wrap

_derivatives: dict[str, tuple[dict[str, Callable], bool]] = {}


def derivative(op: str, *, complex_aware: bool = False, several: bool = False, **rules: Callable) -> None:
    """Register the rules of an op by argument; arguments without one get no gradient.

    ``several`` says that the op gives a tuple or list: a rule's ``g`` and ``y`` are then lists, and it
    minds conjugates itself.
    """
    entry = _dispatch.registry[op]
    unknown = set(rules) - set(entry.tensors)
    if unknown:
        raise TypeError(f"{op} has no tensor argument {', '.join(sorted(unknown))}")
    _derivatives[entry.name] = (rules, not complex_aware)
    if several:
        _MULTIPLE.add(entry.name)
    entry.kernels.clear()


def has_derivative(op: str) -> bool:
    """Whether an op has rules of its own; without, it is differentiated through what it is composed of."""
    return _dispatch.registry[op].name in _derivatives


def make_recorder(op: _dispatch.Op, kinds: tuple) -> Callable:
    """What ``op`` does for arguments of types ``kinds``, at least one of them a variable."""
    recorder = _recorder(op, kinds)
    return viewing(op, recorder) if op.name in VIEWS else recorder


def _recorder(op: _dispatch.Op, kinds: tuple) -> Callable:
    if not op.differentiable:
        return _on_data(op)
    if op.name not in _derivatives:
        return _composed(op)
    rules, naive = _derivatives[op.name]
    if op.many:
        return _of_many(op, rules, naive)
    if op.name in _MULTIPLE:
        return _of_several(op, rules, naive)
    only_tensors = len(op.parameters) == len(op.tensors)
    if len(op.tensors) == 1 and op.positions == (0,):
        return _unary(op, rules, naive) if only_tensors else _with_settings(op, rules, naive)
    if only_tensors and len(op.tensors) == 2:
        variables = [issubclass(k, Variable) for k in kinds]
        if all(variables):
            return _binary(op, rules, naive)
        return _with_constant(op, rules, naive, variables.index(True), kinds[variables.index(False)])
    return _of_several(op, rules, naive)


_MULTIPLE: set[str] = set()
_ELEMENTWISE = ("bounds", "elementwise", "special")
"""The families whose rules of tensors alone act on each element by itself."""


def _part(op: _dispatch.Op, rule: Callable) -> tuple[Callable, set[int]]:
    """A rule as a function of ``(g, saved, edge)``, and the positions of ``saved`` that it reads."""
    places: list[Any] = []
    for name in list(inspect.signature(rule).parameters)[1:]:
        if name in ("shape", "shapes"):
            places.append(name)
        else:
            is_result = name == "y" and "y" not in op.parameters
            places.append(len(op.parameters) if is_result else op.parameters.index(name))
    needed = {p for p in places if isinstance(p, int)}
    if not places:
        return (lambda g, saved, edge: rule(g)), needed
    if places == ["shape"]:
        return (lambda g, saved, edge: rule(g, edge.shape)), needed
    if places == ["shapes"]:
        return (lambda g, saved, edge: rule(g, edge)), needed
    if len(places) == 1:
        (i,) = places
        return (lambda g, saved, edge: rule(g, saved[i])), needed
    if len(places) == 2 and len(needed) == 2:
        i, j = places
        return (lambda g, saved, edge: rule(g, saved[i], saved[j])), needed

    def part(g, saved, edge):
        found = {"shapes": lambda: edge, "shape": lambda: edge.shape}
        return rule(g, *[saved[p] if isinstance(p, int) else found[p]() for p in places])

    return part, needed


def _unary(op, rules, naive):
    kernels = op.kernels
    part, needed = _part(op, rules[op.tensors[0]])
    keep_x, keep_y = 0 in needed, 1 in needed
    rule = Rule(op.name, parts=(part,), slots=(0, RESULT), naive=naive, elementwise=op.family in _ELEMENTWISE)
    is_recording = recording.get

    def recorded(x):
        data = x.data
        y = kernels[type(data)](data)
        if x._active and is_recording():
            return attach(
                y, Node(rule, (x._node or x,), (data if keep_x else None, y if keep_y else None), y.shape, y.dtype)
            )
        return wrap(y)

    return recorded


def _with_constant(op, rules, naive, position, constant_kind):
    """A binary op of a variable and something that is none."""
    kernels = op.kernels
    name = op.tensors[position]
    part, needed = _part(op, rules[name]) if name in rules else (_nothing, set())
    keep1, keep2, keep_y = (i in needed for i in range(3))
    slots = (0, None, RESULT) if position == 0 else (None, 0, RESULT)
    rule = Rule(op.name, parts=(part,), slots=slots, naive=naive, elementwise=op.family in _ELEMENTWISE)
    is_recording = recording.get

    def recorded(x1, x2):
        if position:
            x, data1, data2 = x2, x1, x2.data
            y = kernels[constant_kind, type(data2)](data1, data2)
        else:
            x, data1, data2 = x1, x1.data, x2
            y = kernels[type(data1), constant_kind](data1, data2)
        if x._active and is_recording():
            if y.__class__ is not ndarray and (keep1 or keep2):
                data1, data2 = _aligned(data1, y), _aligned(data2, y)
            saved = (data1 if keep1 else None, data2 if keep2 else None, y if keep_y else None)
            return attach(y, Node(rule, (x._node or x,), saved, y.shape, y.dtype))
        return wrap(y)

    return recorded


def _binary(op, rules, naive):
    kernels = op.kernels
    parts, needs = [], []
    for name in op.tensors:
        part, needed = _part(op, rules[name]) if name in rules else (_nothing, set())
        parts.append(part)
        needs.append(needed)
    rule = Rule(op.name, parts=tuple(parts), slots=(0, 1, RESULT), naive=naive, elementwise=op.family in _ELEMENTWISE)
    is_recording = recording.get
    keeps = {
        (a, b): tuple(i in ((needs[0] if a else set()) | (needs[1] if b else set())) for i in range(3))
        for a in (False, True)
        for b in (False, True)
    }

    def recorded(x1, x2):
        data1, active1, data2, active2 = x1.data, x1._active, x2.data, x2._active
        y = kernels[type(data1), type(data2)](data1, data2)
        if (active1 or active2) and is_recording():
            keep1, keep2, keep_y = keeps[active1, active2]
            if y.__class__ is not ndarray and (keep1 or keep2):
                data1, data2 = _aligned(data1, y), _aligned(data2, y)
            edges = (x1._node or x1 if active1 else None, x2._node or x2 if active2 else None)
            saved = (data1 if keep1 else None, data2 if keep2 else None, y if keep_y else None)
            return attach(y, Node(rule, edges, saved, y.shape, y.dtype))
        return wrap(y)

    return recorded


def _aligned(data, y):
    """A saved operand in the result's dtype, so that rules can use Python's operators on all backends."""
    if isinstance(data, (int, float, complex, str)) or isinstance(y, str):
        return data
    if isinstance(data, (list, tuple)):
        data = backends.of(y).convert(data, like=y)
    if data.dtype == y.dtype:
        return data
    return conversion.cast(data, conversion.dtype(y))


def _with_settings(op, rules, naive):
    """An op of one tensor, its first argument, and settings."""
    kernels = op.kernels
    part, needed = _part(op, rules[op.tensors[0]])
    last = len(op.parameters)
    keep_x, keep_y = 0 in needed, last in needed
    rule = Rule(op.name, parts=(part,), slots=(0, *(None,) * (last - 1), RESULT), naive=naive)
    is_recording = recording.get

    def recorded(x, *settings):
        data = x.data
        y = kernels[type(data)](data, *settings)
        if x._active and is_recording() and (y.dtype is data.dtype or differentiable(y)):
            saved = (data if keep_x else None, *settings, y if keep_y else None)
            return attach(y, Node(rule, (x._node or x,), saved, y.shape, y.dtype))
        return wrap(y)

    return recorded


def _of_several(op, rules, naive):
    """An op of any number of tensors, of settings, and with any number of results."""
    parts = [_part(op, rules[name]) if name in rules else (_nothing, set()) for name in op.tensors]
    slots: list = [None] * len(op.parameters) + [RESULT]
    for edge, position in enumerate(op.positions):
        slots[position] = edge
    settings = {i for i, slot in enumerate(slots) if slot is None}  # small, and forward mode reads them
    functions = tuple(part for part, _ in parts)
    if op.name in _MULTIPLE:

        def whole(g, saved, node):
            return [None if edge is None else part(g, saved, edge) for part, edge in zip(functions, node.edges)]

        rule = Rule(op.name, whole=whole, slots=tuple(slots), naive=naive)
    else:
        rule = Rule(op.name, parts=functions, slots=tuple(slots), naive=naive)
    kernels, first, alone = op.kernels, op.positions[0], len(op.positions) == 1
    tensors = tuple(zip(op.positions, [name in rules for name in op.tensors]))

    @cache
    def kept(*active):
        """Which values to save where these of the tensors are differentiated."""
        needed = settings.union(*(need for (_, need), on in zip(parts, active) if on))
        return tuple(i in needed for i in range(len(slots)))

    def recorded(*arguments):
        data = list(arguments)
        edges: list = []
        for position, has_rule in tensors:
            value, edge = arguments[position], None
            if isinstance(value, Variable):
                data[position] = value.data
                if has_rule and value._active:
                    edge = value._node or value
            edges.append(edge)
        y = kernels[type(data[first]) if alone else tuple([type(data[p]) for p in op.positions])](*data)
        active = [edge is not None for edge in edges]
        if not (any(active) and recording.get()):
            return _wrap_all(y)
        saved = tuple([v if keep else None for v, keep in zip((*data, y), kept(*active))])
        return record(rule, tuple(edges), saved, y)

    return recorded


def _nothing(g, saved, edge):
    """The rule of an argument without one."""


def _of_many(op, rules, naive):
    """An op that takes tensors in a list."""
    parts = {name: _part(op, rule) for name, rule in rules.items()}
    last = len(op.parameters)
    settings = frozenset(range(last)) - frozenset(op.positions)

    def recorded(*arguments):
        data = list(arguments)
        edges: list = []
        groups: list[tuple] = []  # argument, its edges from and to, the shapes in its list
        slots: list = [None] * last + [RESULT]
        for name, position in zip(op.tensors, op.positions):
            value, start, shapes = arguments[position], len(edges), None
            if name in op.many and isinstance(value, (list, tuple)):
                data[position] = [v.data if isinstance(v, Variable) else v for v in value]
                edges.extend(_edge(v) if name in parts else None for v in value)
                slots[position] = tuple(range(start, len(edges)))
                shapes = [getattr(v, "shape", ()) for v in data[position]]
            else:
                data[position] = unwrap(value)
                edges.append(_edge(value) if name in parts else None)
                slots[position] = start
            if any(e is not None for e in edges[start:]):
                groups.append((name, start, len(edges), shapes))
        y = op.call(*data)
        if not (groups and recording.get()):
            return _wrap_all(y)
        needed = settings.union(*(parts[name][1] for name, *_ in groups))
        saved = tuple([v if i in needed else None for i, v in enumerate((*data, y))])

        def whole(g, values, node):
            gradients = [None] * len(node.edges)
            for name, start, stop, shapes in groups:
                if shapes is None:
                    gradients[start] = parts[name][0](g, values, node.edges[start])
                else:
                    gradients[start:stop] = parts[name][0](g, values, shapes)
            return gradients

        return record(Rule(op.name, whole=whole, slots=tuple(slots), naive=naive), tuple(edges), saved, y)

    return recorded


def record(rule: Rule, edges: tuple, saved: tuple, y):
    """The variable, or list or tuple of variables, of a recorded result."""
    if not isinstance(y, (list, tuple)):
        return attach(y, Node(rule, edges, saved, y.shape, y.dtype))
    node = Node(rule, edges, saved, None, None)
    node.extra = [(part.shape, part.dtype, backends.of(part)) for part in y]
    picked = [attach(part, Node(PICK, (node,), (i,), part.shape, part.dtype)) for i, part in enumerate(y)]
    return rebuild(y, picked)


def rebuild(like, parts):
    """``parts`` as the list, tuple or named tuple that ``like`` is."""
    if isinstance(like, list):
        return list(parts)
    return type(like)(*parts) if hasattr(like, "_fields") else tuple(parts)


def _edge(value):
    if isinstance(value, Variable) and value.requires_grad:
        return value._node or value
    return None


def unwrap(value):
    """The raw data in a variable, or in a list or tuple of them; anything else as it is."""
    if isinstance(value, Variable):
        return value.data
    if isinstance(value, (list, tuple)):
        return rebuild(value, [unwrap(v) for v in value])
    return value


def _wrap_all(y):
    if isinstance(y, (list, tuple)):
        return rebuild(y, [_wrap_all(part) for part in y])
    return wrap(y) if backends.of(y) is not None or isinstance(y, str) else y


def _on_data(op):
    """An op without derivative: on the data, giving a variable without gradient."""

    def on_data(*arguments):
        return _wrap_all(op.call(*[unwrap(a) for a in arguments]))

    def convert_to_numpy(x):
        return op.call(x.data)

    return convert_to_numpy if op.name == "convert_to_numpy" else on_data


def _composed(op):
    """An op without rules: its body, whose ops are recorded one by one."""
    if op.body is None:

        def missing(*arguments):
            raise GradientError(f"`{op.name}` has no derivative.")

        return missing
    body = op.body

    def composed(*given):
        arguments = list(given)
        owner = _owner(op, arguments)
        for name, position in zip(op.tensors, op.positions):
            value = arguments[position]
            number = isinstance(value, (bool, int, float, complex)) and name not in op.weak
            if owner is not None and (number or isinstance(value, (list, tuple)) and name not in op.many):
                arguments[position] = owner.convert(value)
        return body(*arguments)

    return composed


def _owner(op, arguments):
    """The backend of the arrays in the variables of a call, to which lists and numbers beside them go."""
    for position in op.positions:
        value = arguments[position]
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, Variable):
                return backends.of(item.data)
    return None


_dispatch.trace_with(Variable, make_recorder)
