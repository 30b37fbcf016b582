"""Operations on single numbers in the order in which a caller did them, as R's side logs them: see :mod:`.scalars`."""

from __future__ import annotations

import functools
import math
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import ops
from .._scopes import changed
from ..autodiff.graph import STEPS, Node, Rule
from ..autodiff.modes import recording
from ..autodiff.state import observers, packers
from ..autodiff.variable import Variable, attach, data_of, wrap
from ..errors import JitError, PartialGradientError
from ..ops._dispatch import registry
from ..ops._structures import recorder
from .array import Traced
from .native.registry import MOVES, rule_of
from .program import Program
from .scalar_blocks import Operation, by_determinant, operation
from .scalar_rules import function_template, kernel_of
from .scalars import Scalars


class Log:
    """Operations in the order in which a caller did them, written down when it asks for one of them.

    Raises:
        JitError: the function is no longer being traced.
    """

    def __init__(self, program: Program, variables: bool):
        self.program = program
        self.variables = variables
        self._inputs: list = []
        self._count = 0
        self._starts: list[int] = []  # of the results in each of these
        self._parts: list[tuple[Scalars, array]] = []
        self._seen: dict[int, Any] = {}
        program.logs.append(self)

    def forget(self) -> None:
        """Let go of the records: R may hold this for long."""
        for table in (self._inputs, self._starts, self._parts, self._seen):
            table.clear()

    def record(self, words: list[float], inputs: list) -> None:
        """Note operations.

        Args:
            words: three of each operation: 16 times its number in :data:`OPERATIONS`, with 4 times the kind of its
                first operand and the kind of its second; then the two. Kind 0 is a number itself, 1 which result, 2
                which input. A function of more than two operands follows operations :data:`MORE`, which hold the
                first of them and have no result.
            inputs: tensors that were not given before.
        """
        self._check()
        self._inputs += inputs
        block = Scalars(self.program)
        start, here = self._count, array("i")
        outside: dict = {}

        def number(kind: int, x: float) -> int:
            if kind == 0:
                return block.literal(np.float64(x))
            known = outside.get((kind, x))
            if known is None:
                known = block.take(*self._from_outside(int(x))) if kind == 1 else block.input(self._inputs[int(x)])
                outside[kind, x] = known
            return known

        add = block.add
        # Three numbers are an operation, whatever its operands: R fills one vector, without a list for each. A
        # function of more than two is spread over several, whose results nobody refers to; they are counted, as R
        # counts on for each.
        more: list[int] = []
        elements = self._read(words, block)
        for word, x, y in zip(words[::3], words[1::3], words[2::3]):
            entry, first, second, count = _decoded(word)
            if count == 0:
                here.append(next(elements[x]))
                continue
            x = here[int(x) - start] if first == 1 and x >= start else number(first, x)
            if count == 1:
                here.append(add(entry, x))
                continue
            y = here[int(y) - start] if second == 1 and y >= start else number(second, y)
            if count == 2:
                here.append(add(entry, x, y))
            elif entry is MORE:
                more += (x, y)
                here.append(-1)
            else:
                here.append(entry.written(block, [*more, x, y][: entry.operands]))
                more.clear()
        self._starts.append(start)
        self._parts.append((block, here))
        self._count += len(here)
        block.close()

    def _read(self, words: list[float], block: Scalars) -> dict[float, Iterator[int]]:
        """The elements that operations read of each input, in their order, as numbers of a block."""
        places: dict[float, list[int]] = {}
        for word, x, place in zip(words[::3], words[1::3], words[2::3]):
            if word < 16:  # times 16 it is the number of the operation that reads an element
                places.setdefault(x, []).append(int(place))
        return {x: iter(_elements(self._inputs[int(x)], of_x, block)) for x, of_x in places.items()}

    def tensor(self, indices: list[int], shape: tuple[int, ...]):
        """The tensor of several results, by column, seen only as a whole; recorded in every mode, as they are."""
        self._check()
        parts = []
        for at in np.arange(len(indices)).reshape(shape, order="F").ravel().tolist():
            block, number = self._found(indices[at])
            parts.append(block.result(number))
        if self.variables and not any(isinstance(x, Variable) for x in parts):
            parts[0] = wrap(parts[0])
        with changed(recording, True):
            found = ops.stack(parts)
            if len(shape) > 1:
                found = ops.reshape(found, shape)
        if not isinstance(found, Variable) or found._node is None:
            return found
        return attach(found._value, Node(_TOGETHER, (found._node,), (), found.shape, found.dtype))

    def _check(self) -> None:
        writing = recorder.get()
        if writing is None or writing.program.root is not self.program:
            raise JitError("a number of a function that is no longer being traced was used.")

    def _found(self, index: int) -> tuple[Scalars, int]:
        """The block of a result, and the result's number in it."""
        at = bisect_right(self._starts, index) - 1
        block, numbers = self._parts[at]
        return block, numbers[index - self._starts[at]]

    def _from_outside(self, index: int) -> tuple[int, Any]:
        """The place of a result of an earlier block, and its edge."""
        block, number = self._found(index)
        return block.places[number], block.edge(number)

    def takes(self, x) -> int:
        """The size of an array whose elements are taken, 0 for a number that is taken; -1 for anything else."""
        if not self.has_floats(x) or data_of(x).stale or 0 in x.shape:
            return -1
        return math.prod(x.shape) if x.ndim else 0

    def has_floats(self, x) -> bool:
        """True if ``x`` is a tensor of the same function whose elements are such numbers."""
        data = data_of(x)
        mine = isinstance(x, Variable) == self.variables and isinstance(data, Traced) and data.program is self.program
        return mine and data.dtype == np.float64

    def element(self, index: int):
        """The tensor of a result."""
        self._check()
        found = self._seen.get(index)
        if found is None:
            block, number = self._found(index)
            found = block.result(number)
            if self.variables and isinstance(found, Traced):
                found = wrap(found)
            self._seen[index] = found
        return found


def log(x) -> Log | None | bool:
    """A log of operations on the elements of a traced vector.

    None where there can be none: in functions that loops and branches call, and while something looks at each
    operation. False where another tensor may have one.
    """
    writing = recorder.get()
    if writing is None or writing.unrolled or observers or packers:
        return None
    program = writing.program
    if program.parent is not None or program.current is not program:
        return None
    data = data_of(x)
    is_here = isinstance(data, Traced) and data.program is writing.program
    return Log(program, isinstance(x, Variable)) if is_here else False


def _elements(x, places: list[int], block: Scalars) -> list[int]:
    """The elements after so many others, in R's order; each has a gradient of its own, also where one is read twice."""
    if len(places) < _MANY:
        return [block.input(ops.get_item(x, _position(x.shape, place))) for place in places]
    # One step of the program and one node of the tape for all reads, where each read alone would be one of both.
    different = list(dict.fromkeys(places))
    key = _position(x.shape, np.array(different))
    found = dict(zip(different, map(block.input, ops.unstack(ops.get_item(x, key)))))
    return [block.copy(found[place]) for place in places]


_MANY = 4
"""Reads of an array in one step: of fewer each is one, which is found again where it is read again later."""


def _position(shape: tuple, place):
    """The position of the element after ``place`` others, or those of several, in R's order: by column."""
    if len(shape) == 1:
        return place
    position = []
    for size in shape:
        place, here = divmod(place, size)
        position.append(here)
    return tuple(position)


@functools.cache
def _decoded(word: float) -> tuple[Any, int, int, int]:
    """The operation that a word means, the kinds of its operands, and how many there are.

    0 of an element's, 3 of functions of any number, and of the operands before the last two.
    """
    what, kinds = divmod(int(word), 16)
    entry = OPERATIONS[what]
    count = 0 if entry is None else len(entry.pattern) if isinstance(entry, Operation) else 3
    return entry, kinds >> 2, kinds & 3, count


def _refuse(node: Node) -> None:
    raise PartialGradientError("the gradient of a vector whose elements were used one by one was asked for.")


_TOGETHER = Rule("numbers", vjps=(lambda g, saved, edge: g,), elementwise=True, partial=_refuse)


def _of_ops() -> dict[str, Operation]:
    """The operations that a log takes, by the name of the op: those of one or two numbers that are native.

    Not of steps, whose results may become R's numbers, nor those of :mod:`gradops.scipy`, which comes later.
    """
    found = {"sign": _operation("real_sign", 1)}  # which it is of real numbers
    found["by_determinant"] = operation("divide", (None, None), by_determinant)
    for name, entry in registry.items():
        count = len(entry.tensors)
        is_plain = name == entry.name and "." not in name and entry.parameters == entry.tensors and count < 3
        is_smooth = entry.facts.elementwise and entry.differentiable and name not in STEPS
        if is_plain and is_smooth and name not in MOVES and rule_of(name) is not None:
            found[name] = _operation(name, count)
    return found


def _operation(name: str, count: int) -> Operation:
    return operation(name, (None,) * count, kernel_of(name, count))


MORE = object()
"""Two operands of the function that follows."""


class Function:
    """A function of single numbers that is composed of ops, and recorded as their operations."""

    def __init__(self, function: Callable, operands: int):
        self.function, self.operands = function, operands

    def written(self, block: Scalars, operands: list[int]) -> int:
        """Its result in a block; what depends on numbers only is computed here."""
        literals = block.literals

        def add(what: Operation, *given: int) -> int:
            if what.name == "where" and given[0] in literals:
                return given[1] if literals[given[0]] else given[2]
            if all(number in literals for number in given):
                with np.errstate(all="ignore"):
                    value = what.compute(*[literals[number] for number in given])
                return block.literal(np.bool_(value) if isinstance(value, (bool, np.bool_)) else np.float64(value))
            return block.add(what, *given)

        play, constants = function_template(self.function, self.operands)
        return play(add, None, operands, None, [block.literal(value) for value in constants])[0]


_OF_OPS = _of_ops()
OPERATIONS: list = [None, *_OF_OPS.values(), MORE]
"""The operations that a log takes, by number; None: to read an element of an array. Functions follow."""

NAMES = [*_OF_OPS]
"""The names of the ops among them, from the second operation on; :data:`MORE` follows them."""


@functools.cache
def function_number(function: Callable, operands: int) -> int:
    """The number of a function of single numbers, for logs."""
    OPERATIONS.append(Function(function, operands))
    return len(OPERATIONS) - 1
