"""Templates: the derivative rule of an op, or a function composed of ops, as a list of operations on single numbers.

A rule is traced once, for numbers such as 0.5, and the recorded rows become the source of a Python function that adds
the same operations for other numbers. :mod:`.scalars` plays templates when it differentiates thousands of operations on
single numbers.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from .. import _functions
from .._scopes import changed
from ..autodiff import engine
from ..autodiff.derivatives import fresh
from ..autodiff.graph import key
from ..autodiff.modes import recording
from ..backends import numpy as kernels
from ..errors import GradopsError
from ..ops._dispatch import facts_of, registry
from ..ops._structures import recorder
from .array import Place, Traced
from .operations import NumberOperation, operation
from .program import Program
from .steps import OPERAND, direct


class Template(NamedTuple):
    """A derivative rule or a function as operations on single numbers.

    Attributes:
        play: ``play(add, number, operands, g, constants)`` adds the operations for given numbers. It returns the
            gradient of each operand, or None, and for a function its result. ``add(what, *numbers)`` adds an operation
            and returns its result. ``number(operand)`` is the number of an operand of the op; the last operand is the
            op's result.
        constants: the constants of the operations.
    """

    play: Callable[..., tuple]
    constants: list


def template(what: NumberOperation, active: tuple[bool, ...], exponent: Any = None) -> Template:
    """Return the derivative rule of an op for the operands that are ``active``.

    Args:
        exponent: the exponent of a power if it is a constant.

    Raises:
        TypeError: the rule needs other values than single numbers.
    """
    return _template(what, active, None if exponent is None else repr(float(exponent)))


@functools.cache
def _template(what: NumberOperation, active: tuple[bool, ...], exponent: str | None) -> Template:
    program = Program()
    with changed(recorder, _Recorder(program)), changed(recording, True), np.errstate(all="ignore"):
        return _traced(program, what, active, exponent)


class _Recorder(NamedTuple):
    """The recorder that ops find while a rule is traced."""

    program: Program


def _traced(program: Program, what: NumberOperation, active: tuple[bool, ...], exponent: str | None) -> Template:
    # A rule that branched on values would be traced for the branch that 0.5 takes. The only number that a rule branches
    # on is a constant exponent, which is part of the key.
    operands = [program.input(np.float64(0.5)) for _ in active]
    g = program.input(np.float64(1.5))
    variables = [fresh(x) if on else x for x, on in zip(operands, active)]
    given = [*variables[:-1], float(exponent)] if exponent is not None else variables
    start = len(program.table)
    y = registry[what.name].call(*what.arguments(given))
    if not getattr(y, "requires_grad", False):
        return Template(_player([], [None] * len(active)), [])
    result = y.data
    leaves = [x for x, on in zip(variables, active) if on]
    # The derivative of a composed op reads results of its operations, which a play of the rule computes again.
    before = len(program.table) if len(program.table) == start + 1 else start
    found = engine.run([y], [g], False, False, leaves)
    gradients = [found.get(key(x), (None, None))[1] if on else None for x, on in zip(variables, active)]

    names = {x.place.index: f"number(operands[{i}])" for i, x in enumerate((*operands, result))}
    names[g.place.index] = "g"
    return _written(program, before, f"the rule of `{what.name}`", names, gradients)


@functools.cache
def function_template(function: Callable, count: int, given: tuple[bool, ...] = ()) -> Template:
    """Return a function of single numbers that is composed of ops as a template.

    Args:
        given: True for each operand that is a constant, see :func:`is_given`.

    Raises:
        TypeError: it uses an op that needs other values than single numbers.
    """
    program = Program(of_single_numbers=True)
    with changed(recorder, _Recorder(program)), np.errstate(all="ignore"):
        operands = [program.input(np.float64(0.5)) for _ in range(count)]
        before = len(program.table)
        same = frozenset(x.place.index for x, on in zip(operands, given) if on)
        with changed(_same_at_each_call, same):
            result = function(*operands)
        names = {x.place.index: f"operands[{i}]" for i, x in enumerate(operands)}
        return _written(program, before, f"`{function}`", names, [result])


_same_at_each_call: ContextVar[frozenset[int]] = ContextVar("_same_at_each_call", default=frozenset())


def is_given(x: Traced) -> bool:
    """True for a number in a function's template that is computed from constant operands only."""
    known = set(_same_at_each_call.get())
    if known:
        for step in x.program.table.rows():
            if set(step.uses) - x.program.constants.keys() <= known:
                known.update(step.places)
    return x.place.index in known


def is_of_single_numbers(function: Callable, count: int) -> bool:
    """True if a function and its derivatives of all orders are operations on single numbers."""
    known: set[str] = set()  # by name: for `polygamma`, the rule of each order adds the next order
    new: list[NumberOperation] = []

    def add(what: NumberOperation, *numbers: int) -> int:
        new.append(what)
        return 0

    try:
        function_template(function, count).play(add, None, [0] * count, None, [0] * 1000)
        while new:
            what = new.pop()
            if what.name not in known and registry[what.name].differentiable:
                known.add(what.name)
                template(what, (True,) * what.operands).play(add, int, [0] * (what.operands + 1), 0, [0] * 1000)
    except (TypeError, GradopsError):
        return False
    return True


def _written(program: Program, before: int, source: str, names: dict[int, str], results: list) -> Template:
    """Return the rows of a program from number ``before`` on as a template.

    Args:
        source: a description of the rows, for errors.
        names: by place, Python expressions for numbers that these rows do not compute.
        results: traced numbers, constants and None.
    """
    constants: list = []
    operations: list[tuple[str, NumberOperation, list[str]]] = []

    def constant(value) -> str:
        constants.append(np.float64(value) if not isinstance(value, np.bool_) else value)
        return f"constants[{len(constants) - 1}]"

    def name(place: int) -> str:
        if place not in names:
            if place not in program.constants:
                raise TypeError(f"{source} takes a value that it has not computed")
            names[place] = constant(program.constants[place])
        return names[place]

    for step in program.table.rows(before):
        value = program.value(step.places[0])
        if step.several or np.ndim(value) or value.dtype not in (np.float64, np.bool_):
            raise TypeError(f"{source} takes `{step.name}`, which takes more than single numbers")
        pattern, taken = [], []
        numbers = registry[step.name].positions
        for at, x in enumerate(step.arguments):
            if isinstance(x, Place):
                taken.append(name(x.index))
            elif at in numbers and isinstance(x, (int, float, np.float64)):
                taken.append(constant(float(x)))
            else:
                pattern.append(x)
                continue
            pattern.append(OPERAND)
        if facts_of(step.name).folds or step.name == "mean":  # such as the sum of a single number
            names[step.places[0]] = taken[0]
            continue
        own = names[step.places[0]] = f"s{len(operations)}"
        op, kernel = _TRUTH_OPERATIONS.get(step.name, (step.name, step.function))
        operations.append((own, operation(op, tuple(pattern), kernel), taken))
    ends = [None if x is None else name(x.place.index) if isinstance(x, Traced) else constant(x) for x in results]
    return Template(_player(operations, ends), constants)


_TRUTH_OPERATIONS: dict[str, tuple[str, Callable]] = {
    f"bitwise_{name}": (f"logical_{name}", getattr(np, f"logical_{name}")) for name in ("and", "or", "xor", "not")
}
"""For each op on integers, the operation with the same meaning on truth values."""


def _player(operations: list[tuple[str, NumberOperation, list[str]]], results: list[str | None]) -> Callable:
    """Return a function that adds operations; each has the name of its result and the sources of its operands."""
    scope: dict[str, Any] = {f"of_{own}": what for own, what, _ in operations}
    lines = ["def play(add, number, operands, g, constants):\n"]
    lines += [f"    {own} = add(of_{own}, {', '.join(taken)})\n" for own, _, taken in operations]
    lines.append(f"    return ({', '.join(map(str, results))},)\n")
    return _functions.function("".join(lines), "play", f"rule {next(_numbers)}", scope)


_numbers = itertools.count(1)


def kernel_of(name: str, count: int) -> Callable:
    """Return the NumPy function that an op runs on single float64 numbers."""
    return direct(getattr(kernels, name), [np.float64(0)] * count)
