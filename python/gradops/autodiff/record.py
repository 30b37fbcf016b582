"""Recording: the implementation of an op for calls with a variable among the arguments.

``derivative`` registers rules as data, one function for each differentiable argument of an op. A rule's
parameters name the values it needs, and only these are saved for the backward pass:

- ``g``, first: the gradient of the op's result;
- an argument's name: its value; ``y``: the op's result (a list for several), unless an argument has that name;
- ``shape``: the shape of the rule's argument; ``shapes`` for an argument that is a list of tensors.

A rule need not sum over broadcast dimensions or cast back: the engine does this for all rules. Rules are
written with ``gradops.ops``, so they serve every backend and can themselves be differentiated. For a
complex result a rule is taken as that of a holomorphic function, unless ``complex_aware=True``.

``make_recorder`` returns a function specialised to an op and the types of its arguments (one tensor, two tensors, any
number, or lists), which computes the result and attaches a node with what the rules need.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from numpy import ndarray

from .. import _functions, backends
from .._tree import alike, map_items
from ..errors import GradientError
from ..ops import _dispatch, _pandas, _registry, conversion
from .graph import PICK, RESULT, Node, Rule
from .inplace import viewing
from .lengths import smooth_product, smooth_square
from .modes import recording
from .state import read
from .variable import Variable, attach_new, data_of, differentiable, wrap


class Derivative(NamedTuple):
    """The derivative of an op, as :func:`derivative` registers it."""

    rules: dict[str, Callable]
    holomorphic: bool
    several: bool
    joint: Callable | None


def derivative(
    op: str, *, complex_aware: bool = False, several: bool = False, joint: Callable | None = None, **rules: Callable
) -> None:
    """Register the rules of an op by argument; arguments without a rule get no gradient.

    ``several`` says that the op returns a tuple or list: a rule's ``g`` and ``y`` are then lists, and the rule
    handles conjugates itself. ``joint`` is for an op of two tensors whose rules share work: ``joint(g, x1, x2)``, or
    ``joint(g, x1, x2, y)``, returns both gradients, and is used if both are needed.
    """
    entry = _dispatch.registry[op]
    unknown = set(rules) - set(entry.tensors)
    if unknown:
        raise TypeError(f"{op} has no tensor argument {', '.join(sorted(unknown))}")
    entry.rules["vjp"] = Derivative(rules, not complex_aware, several, joint)
    rule_of.cache_clear()
    entry.kernels.clear()


def has_derivative(op: str) -> bool:
    """True if an op has its own rules; other ops are differentiated through the ops in their body."""
    return "vjp" in _dispatch.registry[op].rules


@cache
def rule_of(op: _dispatch.Op, name: str) -> Callable | None:
    """The rule of an op's argument as a function of ``(g, saved, edge)``, or None.

    ``saved`` are the op's arguments and its result, ``edge`` is anything with the argument's ``shape``.
    """
    rules = op.rules["vjp"].rules
    return _vjp(op, rules, name).function if name in rules else None


def make_recorder(op: _dispatch.Op, kinds: tuple) -> Callable:
    """The function that runs ``op`` on arguments of types ``kinds``, with at least one variable among them."""
    # A rule uses operators on its saved values. With `+` lists would be concatenated, and data frames align rows by
    # labels: a different result without an error. So these are converted to tensors before recording, by a recorder of
    # their own, because the dispatch has one for each combination of types and so decides only once.
    if any(_is_plain(op, name, kind) for name, kind in zip(op.tensors, kinds)):
        return _converting(op)
    recorder = _recorder(op, kinds)
    if "recorder" in op.rules:
        recorder = op.rules["recorder"](recorder)
    if _pandas.seen and len(op.tensors) > 1 and op.facts.elementwise:
        recorder = _pandas.following(op, recorder)
    return viewing(op, recorder) if op.facts.view else recorder


def _is_plain(op: _dispatch.Op, name: str, kind) -> bool:
    """True if an argument is, or contains, a list, another array-like, or a number where the op takes no numbers."""
    if name in op.many:
        return type(kind) is frozenset and any(map(_is_like_tensors, kind))
    return _is_like_tensors(kind) or kind in _dispatch.NUMBERS and name not in op.weak


def _is_like_tensors(kind: type) -> bool:
    """True for lists and for classes with their own operators, which rules must not use (data frames align labels)."""
    return kind in (list, tuple) or backends.may_hold(kind) and not issubclass(kind, Variable)


def _converting(op: _dispatch.Op) -> Callable:
    """A recorder that first converts lists, other array-likes, and numbers where the op takes none, to tensors."""

    def converting(*arguments):
        labels = _pandas.result_labels(op.name, arguments) if op.facts.elementwise else None
        given, backend = list(arguments), _owner(op, arguments)
        for name, position in zip(op.tensors, op.positions):
            value = given[position]
            if name not in op.many:
                if _is_plain(op, name, type(value)):
                    given[position] = op.converted(backend, name, value)
            elif isinstance(value, (list, tuple)):
                given[position] = [op.converted(backend, name, v) if _is_like_tensors(type(v)) else v for v in value]
        return _pandas.labelled(op.kernels[op.key_of(given)](*given), labels)

    return converting


def _recorder(op: _dispatch.Op, kinds: tuple) -> Callable:
    if not op.differentiable:
        return _data_recorder(op)
    if "vjp" not in op.rules:
        return _composed(op)
    rules, holomorphic, several, _ = op.rules["vjp"]
    if op.many:
        return _list_recorder(op, rules, holomorphic)
    if op.positions == (0,):
        return _unary_recorder(op, rules, holomorphic)
    if op.positions == (0, 1) == tuple(range(len(op.parameters))) and not several:
        return _binary_recorder(op, rules, holomorphic, [issubclass(kind, Variable) for kind in kinds])
    return _general_recorder(op, rules, holomorphic)


class _Vjp(NamedTuple):
    """The rule of an argument: a function of ``(g, saved, edge)``, the call inside, and the values it reads.

    Attributes:
        call: the call as Python source, with placeholders for the rule and the edge.
        needed: the positions in ``saved`` that it reads.
    """

    function: Callable
    call: str
    rule: Callable | None
    needed: set[int]


# Wrappers of recorders for ops that square an argument; a product is a square in some calls.


@_registry.rule("recorder", "square")
def _smooth_squares(recorder: Callable) -> Callable:
    return lambda x: smooth_square(x, recorder(x))


@_registry.rule("recorder", "power")
def _smooth_powers(recorder: Callable) -> Callable:
    def recorded(x1, x2):
        y = recorder(x1, x2)
        return smooth_square(x1, y) if x2.__class__ in (int, float) and x2 == 2 else y

    return recorded


def _vjp(op: _dispatch.Op, rules: dict, name: str) -> _Vjp:
    if name not in rules:
        return _NO_VJP
    rule = rules[name]
    needed: set[int] = set()
    given = ["g"]
    for parameter in list(inspect.signature(rule).parameters)[1:]:
        if parameter in _OF_EDGES:
            given.append(_OF_EDGES[parameter])
        else:
            is_result = parameter == "y" and "y" not in op.parameters
            position = len(op.parameters) if is_result else op.parameters.index(parameter)
            needed.add(position)
            given.append(f"saved[{position}]")
    call = f"{{rule}}({', '.join(given)})"
    return _Vjp(_calling(("rule",), "edge", call.format(rule="rule", edge="edge"))(rule), call, rule, needed)


_OF_EDGES = {"shape": "{edge}.shape", "shapes": "{edge}"}
"""Expressions for the parameters of rules that are not saved values."""


@cache
def _calling(rules: tuple[str, ...], edges: str, calls: str) -> Callable:
    """A function that takes rules and returns the function of ``(g, saved, edges)`` that calls them."""
    # Generated, because `rule(g, *[saved[i] for i in needed])` would build a list in each step of a pass. Rules that
    # read the same positions share the same source, which is compiled once; its name in tracebacks shows that it is
    # generated.
    source = f"def calling({', '.join(rules)}):\n    return lambda g, saved, {edges}: {calls}\n"
    return _functions.function(source, "calling", f"calls of rules {next(_numbers)}", {"__name__": __name__})


_numbers = itertools.count(1)


def _together(vjps: list[_Vjp]) -> Callable:
    """The ``pull`` of a :class:`.graph.Rule`, from the rules of its edges; an edge without a rule gets None."""
    calls = "".join(vjp.call.format(rule=f"rule{i}", edge=f"edges[{i}]") + ", " for i, vjp in enumerate(vjps))
    names = tuple(f"rule{i}" for i in range(len(vjps)))
    return _calling(names, "edges", f"({calls})")(*[vjp.rule for vjp in vjps])


_NO_VJP = _Vjp(lambda g, saved, edge: None, "None", None, set())


def _rule(op, vjps: list[_Vjp], slots: tuple, holomorphic: bool, elementwise: bool = False) -> Rule:
    functions = tuple([vjp.function for vjp in vjps])
    return Rule(op.name, functions, None, slots, holomorphic, elementwise, pull=_together(vjps))


def _unary_recorder(op, rules, holomorphic):
    """A recorder for an op of one tensor, its first argument, and settings."""
    kernels = op.kernels
    last = len(op.parameters)
    vjp = _vjp(op, rules, op.tensors[0])
    keep_x, keep_y = 0 in vjp.needed, last in vjp.needed
    elementwise = last == 1 and op.facts.elementwise
    slots = (0, *(None,) * (last - 1), RESULT)
    rule = _rule(op, [vjp], slots, holomorphic, elementwise)
    is_recording = recording.get

    def recorded(x):
        data = x._value
        y = kernels[type(data)](data)
        if x._active:
            if is_recording():
                saved = (data if keep_x else None, y if keep_y else None)
                return attach_new(y, rule, (x._node or x,), saved)
            read(x._node or x)
        return wrap(y)

    def recorded_with_settings(x, *settings):
        data = x._value
        y = kernels[type(data)](data, *settings)
        # A cast to integers has no gradient although its argument has: the result is a constant, and no node keeps the
        # argument. This is tested only if the dtype has changed.
        if x._active and (y.dtype is data.dtype or differentiable(y)):
            if is_recording():
                saved = (data if keep_x else None, *settings, y if keep_y else None)
                return attach_new(y, rule, (x._node or x,), saved)
            read(x._node or x)
        return wrap(y)

    def recorded_as_several(x, *settings):
        data = x._value
        y = kernels[type(data)](data, *settings)
        if x._active:
            if is_recording():
                saved = (data if keep_x else None, *settings, y if keep_y else None)
                return record(rule, (x._node or x,), saved, y)
            read(x._node or x)
        return _wrap_all(y)

    if op.rules["vjp"].several:
        return recorded_as_several
    return recorded if last == 1 else recorded_with_settings


def _binary_recorder(op, rules, holomorphic, variables):
    """A recorder for an op of two tensors; one of them may be a constant."""
    kernels = op.kernels
    first, second = variables
    vjps = [_vjp(op, rules, name) for name in op.tensors]
    slots = (0 if first else None, int(first) if second else None, RESULT)
    elementwise = op.facts.elementwise
    is_recording = recording.get
    # The saved values depend on the active operands: `x1 * x2` with a constant `x2` needs `x2` only. Saving all
    # operands would keep arrays alive unnecessarily, and make a write to one of them an error for no reason. Which
    # operands are active is known only at each call, so all three cases are prepared here.
    plans: dict[tuple[bool, bool], tuple[Rule, bool, bool, bool]] = {}
    for active in ((True, True), (True, False), (False, True)):
        chosen = [vjp if on else _NO_VJP for vjp, on in zip(vjps, active)]
        edges = [vjp for vjp, given in zip(chosen, variables) if given]
        needed = chosen[0].needed | chosen[1].needed
        plans[active] = _rule(op, edges, slots, holomorphic, elementwise), 0 in needed, 1 in needed, 2 in needed
    if (joint := op.rules["vjp"].joint) is not None:
        rule, *_ = plans[True, True]
        plans[True, True] = (rule, *_jointly(rule, joint))
    plan = plans[first, second]

    rule, keep1, keep2, keep_y = plan
    of_operands = keep1 or keep2
    is_product = op.name == "multiply"

    def recorded(x1, x2):
        data1, on1, data2, on2 = x1._value, x1._active, x2._value, x2._active
        y = kernels[type(data1), type(data2)](data1, data2)
        if on1 or on2:
            edges = (x1._node or x1 if on1 else None, x2._node or x2 if on2 else None)
            if is_recording():
                rule, keep1, keep2, keep_y = plan if on1 and on2 else plans[on1, on2]
                if y.__class__ is not ndarray and (keep1 or keep2):
                    data1, data2 = _aligned(data1, y), _aligned(data2, y)
                saved = (data1 if keep1 else None, data2 if keep2 else None, y if keep_y else None)
                result = attach_new(y, rule, edges, saved)
                if is_product and (first := x1._node) and (second := x2._node) and first.edges and second.edges:
                    if (
                        first is second
                        or first.edges[0] is second
                        or second.edges[0] is first
                        or first.rule is second.rule
                        and first.rule.name in ("abs", "hypot")
                    ):
                        return smooth_product(first, second, result)
                return result
            read(*edges)
        return wrap(y)

    def recorded_before_constant(x, data2):
        data1 = x._value
        y = kernels[type(data1), type(data2)](data1, data2)
        return attached(x, data1, data2, y) if x._active else wrap(y)

    def recorded_after_constant(data1, x):
        data2 = x._value
        y = kernels[type(data1), type(data2)](data1, data2)
        return attached(x, data1, data2, y) if x._active else wrap(y)

    def attached(x, data1, data2, y):
        if not is_recording():
            read(x._node or x)
            return wrap(y)
        if of_operands and y.__class__ is not ndarray:
            data1, data2 = _aligned(data1, y), _aligned(data2, y)
        saved = (data1 if keep1 else None, data2 if keep2 else None, y if keep_y else None)
        return attach_new(y, rule, (x._node or x,), saved)

    if first and second:
        return recorded
    return recorded_before_constant if first else recorded_after_constant


def _jointly(rule: Rule, joint: Callable) -> tuple[bool, bool, bool]:
    """Make a rule of two tensors return both gradients at once; returns which operands, and if the result, to save."""
    if "y" in inspect.signature(joint).parameters:
        rule.pull = lambda g, saved, edges: joint(g, *saved)
        return True, True, True
    rule.pull = lambda g, saved, edges: joint(g, saved[0], saved[1])
    return True, True, False


def _aligned(data, y):
    """A saved operand in the result's dtype, so that rules can use Python's operators on all backends."""
    if getattr(data, "dtype", None) is y.dtype or isinstance(data, (int, float, complex, str)) or isinstance(y, str):
        return data
    if isinstance(data, (list, tuple)):
        data = backends.backend_of(y).convert(data, like=y)
    if data.dtype == y.dtype:
        return data
    if isinstance(data, ndarray):  # NumPy lacks some of y's dtypes
        data = backends.backend_of(y).convert(data, like=y)
    return conversion.cast(data, conversion.dtype(y))


def _general_recorder(op, rules, holomorphic):
    """A recorder for an op of any number of tensors and settings, with one or several results."""
    vjps = [_vjp(op, rules, name) for name in op.tensors]
    tensors = tuple([(position, name in rules) for position, name in zip(op.positions, op.tensors)])
    slots = [None] * len(op.parameters) + [RESULT]
    for i, position in enumerate(op.positions):
        slots[position] = i
    kernels, first, alone = op.kernels, op.positions[0], len(op.positions) == 1

    @cache
    def plan(active: tuple) -> tuple[Rule, tuple]:
        chosen = [vjp if on else _NO_VJP for vjp, on in zip(vjps, active)]
        return _rule(op, chosen, tuple(slots), holomorphic), _kept(op, chosen)

    def recorded(*arguments):
        data, edges = list(arguments), []
        for position, has_rule in tensors:
            value, edge = arguments[position], None
            if isinstance(value, Variable):
                data[position] = value._value
                if has_rule and value._active:
                    edge = value._node or value
            edges.append(edge)
        y = kernels[type(data[first]) if alone else tuple([type(data[p]) for p, _ in tensors])](*data)
        active = tuple([edge is not None for edge in edges])
        if True not in active:
            return _wrap_all(y)
        if not recording.get():
            read(*edges)
            return _wrap_all(y)
        rule, keep = plan(active)
        saved = tuple([v if wanted else None for v, wanted in zip((*data, y), keep)])
        return record(rule, tuple(edges), saved, y)

    return recorded


def _list_recorder(op, rules, holomorphic):
    """A recorder for an op with an argument that is a list of tensors.

    A node has one row of edges, where the tensors of a list follow one another. So the lists' lengths are part
    of the plan, and the node's only rule counts along the row. The edge of a tensor without gradient is None, so no
    variable or node knows its shape, which the rule of the list needs: shapes are saved.
    """
    vjps = [_vjp(op, rules, name) for name in op.tensors]
    tensors = tuple([(position, name in rules, name in op.many) for position, name in zip(op.positions, op.tensors)])
    last = len(op.parameters)

    @cache
    def plan(counts: tuple, active: tuple) -> tuple[Rule, tuple]:
        """The rule, and the values to save, for these lengths of lists (None: no list) and active arguments."""
        slots: list = [None] * last + [RESULT]
        start = 0
        for (position, *_), count in zip(tensors, counts):
            slots[position] = start if count is None else tuple(range(start, start + count))
            start += 1 if count is None else count

        def of_row(g, saved, node):
            gradients: list = []
            shapes = iter(saved[last + 1 :])
            for vjp, count, on in zip(vjps, counts, active):
                like = node.edges[len(gradients)] if count is None else next(shapes)
                found = vjp.function(g, saved, like) if on else None
                gradients += [found] if count is None else [None] * count if found is None else found
            return gradients

        keep = _kept(op, [vjp for vjp, on in zip(vjps, active) if on])
        return Rule(op.name, vjp=of_row, slots=tuple(slots), holomorphic=holomorphic, is_closed=True), keep

    def recorded(*arguments):
        data, edges, counts, active, shapes = list(arguments), [], [], [], []
        for position, has_rule, many in tensors:
            value = arguments[position]
            is_list = many and isinstance(value, (list, tuple))
            values = value if is_list else [value]
            found = [v._node or v if has_rule and isinstance(v, Variable) and v._active else None for v in values]
            plain = [v._value if isinstance(v, Variable) else v for v in values]
            data[position] = plain if is_list else plain[0]
            edges += found
            counts.append(len(found) if is_list else None)
            active.append(any(edge is not None for edge in found))
            if is_list:
                shapes.append([getattr(v, "shape", ()) for v in plain])
        y = op.call(*data)
        if True not in active:
            return _wrap_all(y)
        if not recording.get():
            read(*edges)
            return _wrap_all(y)
        rule, keep = plan(tuple(counts), tuple(active))
        saved = tuple([v if wanted else None for v, wanted in zip((*data, y), keep)])
        return record(rule, tuple(edges), (*saved, *shapes), y)

    return recorded


def _kept(op, vjps: list[_Vjp]) -> tuple[bool, ...]:
    """For each argument and the result, True if it is saved.

    Settings always are: they are small, and forward mode reads them.
    """
    settings = frozenset(range(len(op.parameters))).difference(op.positions)
    needed = settings.union(*(vjp.needed for vjp in vjps))
    return tuple(i in needed for i in range(len(op.parameters) + 1))


def record(rule: Rule, edges: tuple, saved: tuple, y):
    """The variable, or list or tuple of variables, of a recorded result."""
    if not isinstance(y, (list, tuple)):
        return attach_new(y, rule, edges, saved)
    node = Node(rule, edges, saved, None, None)
    node.extra = [(part.shape, part.dtype, backends.backend_of(part)) for part in y]
    picked = [attach_new(part, PICK, (node,), (i,)) for i, part in enumerate(y)]
    return alike(y, picked)


def unwrap(value):
    """The raw data of a variable, or of a list or tuple of variables; other values unchanged."""
    return map_items(data_of, value)


def _wrap_all(y):
    return map_items(_wrapped, y)


def _wrapped(y):
    return wrap(y) if backends.backend_of(y) is not None or isinstance(y, str) else y


def _data_recorder(op):
    """A recorder for an op without a derivative: it computes on the data and returns a variable without gradient."""

    def on_data(*arguments):
        return _wrap_all(op.call(*[unwrap(a) for a in arguments]))

    def convert_to_numpy(x):
        return op.call(x.data)

    return convert_to_numpy if op.name == "convert_to_numpy" else on_data


def _composed(op):
    """A recorder for an op without rules: its body, whose ops are recorded one by one."""
    if op.body is None:

        def missing(*arguments):
            raise GradientError(
                f"`{op.name}` has no derivative.",
                hint="give the op a body of other ops, or a rule by `gradops.extend.derivative()`",
            )

        return missing
    return op.body


def _owner(op, arguments):
    """The backend of the arrays in the variables of a call; lists and numbers are converted to it."""
    for position in op.positions:
        value = arguments[position]
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, Variable):
                return backends.backend_of(item.data)
    return None


_dispatch.trace_with(Variable, make_recorder)
