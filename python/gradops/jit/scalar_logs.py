"""``Log``: operations on single numbers in the order in which a caller did them, such as R's side logs them.

R logs the operations of a function on numbers instead of calling Python for each. It passes them to :meth:`Log.record`
in batches, and at the latest when it needs a result; each batch is recorded together (:mod:`.scalars`).
"""

from __future__ import annotations

import functools
import math
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .. import ops
from .._scopes import changed
from ..autodiff.graph import Node, Rule
from ..autodiff.modes import recording
from ..autodiff.state import observers
from ..autodiff.variable import Variable, attach, data_of, wrap
from ..errors import JitError, PartialGradientError
from ..ops._dispatch import registry
from ..ops._structures import recorder
from .array import Traced
from .native.registry import known_of
from .operations import COPY, NumberOperation, determinant_quotient, plain_operation
from .program import Program
from .scalar_rules import function_template, kernel_of
from .scalars import FEW, Scalars
from .table import WIDTH


class Log:
    """A caller's operations in order, recorded when it needs one of their results.

    Raises:
        JitError: the function is no longer being traced.
    """

    def __init__(self, program: Program, variables: bool):
        self.program = program
        self.variables = variables
        self._inputs: list = []
        self._count = 0
        self._starts: list[int] = []  # the index of the first result of each block
        # For each block, the numbers of its results; and for each read of an array the input and the position, else -1.
        self._parts: list[tuple[Scalars, np.ndarray, np.ndarray]] = []
        self._seen: dict[int, Any] = {}
        self._in_reads: set[int] = set()  # elements of arrays that were read as a whole; the gradient is the array's
        program.logs.append(self)

    def forget(self) -> None:
        """Release the records, as R may hold this object for long."""
        for table in (self._inputs, self._starts, self._parts, self._seen, self._in_reads):
            table.clear()

    def record(self, words: list[float], inputs: list) -> None:
        """Record operations.

        Args:
            words: three for each operation: 16 times its number in :data:`OPERATIONS` plus 4 times the kind of its
                first operand plus the kind of its second; then the two operands. Kind 0 is a number itself, 1 the index
                of a result, 2 the index of an input. The operands of a function of more than two are in operations
                :data:`MORE` before it, which have no result.
            inputs: tensors that earlier calls did not pass.
        """
        self._check()
        self._inputs += inputs
        block, given = Scalars(self.program), np.array(words, np.float64).reshape(-1, 3)
        if len(words) < 3 * FEW and all(word < 16 or isinstance(_entry(word), NumberOperation) for word in words[::3]):
            last = self._one_by_one(words, block)
        else:
            last = self._together(given, block)
        self._starts.append(self._count)
        self._parts.append((block, last, np.where(given[:, :1] < 16, given[:, 1:], -1).astype(np.intp)))
        self._count += len(last)
        block.close()

    def _one_by_one(self, words: list[float], block: Scalars) -> np.ndarray:
        """Record a few operations other than functions, one by one; return the numbers of their results."""
        rows: list[list[int]] = []  # operands below 0 are results: -1 less the index in this list
        outside: dict[tuple, int] = {}
        elements: dict[float, list[int]] = {}
        for word, x, place in zip(words[::3], words[1::3], words[2::3]):
            if word < 16:
                elements.setdefault(x, []).append(int(place))
        reads = {x: iter(_elements(self._inputs[int(x)], places, block)) for x, places in elements.items()}

        def number(kind: int, x: float) -> int:
            if kind == 0:
                return block.literal(np.float64(x))
            if kind == 1 and x >= self._count:
                return self._count - 1 - int(x)
            if (kind, x) not in outside:
                taken = block.take(*self._earlier_result(int(x))) if kind == 1 else block.input(self._inputs[int(x)])
                outside[kind, x] = taken
            return outside[kind, x]

        for word, x, y in zip(words[::3], words[1::3], words[2::3]):
            if word < 16:
                rows.append([COPY.number, next(reads[x]), 0, 0])
                continue
            what, kinds = _entry(word), int(word) & 15
            second = number(kinds & 3, y) if what.operands == 2 else 0
            rows.append([what.number, number(kinds >> 2, x), second, 0])
        base = len(block)
        written = np.array(rows, np.intc).reshape(-1, WIDTH - 1)
        written[written < 0] = base - 1 - written[written < 0]
        block.write(written)
        return np.arange(base, base + len(rows))

    def _together(self, given: np.ndarray, block: Scalars) -> np.ndarray:
        """Record operations together; return the numbers of their results."""
        codes, operands = given[:, 0].astype(np.intp), given[:, 1:]
        what = codes >> 4
        kinds = np.stack([codes >> 2 & 3, codes & 3], 1)
        number, count = (table[what] for table in _known())
        is_read, is_function, is_more = what == 0, number == _FUNCTION, number == _MORE
        is_single = number >= 0
        is_operand = (is_single & ~is_read)[:, None] & (np.arange(2) < count[:, None])
        is_taken = is_operand | (is_function | is_more)[:, None]

        # Numbers from outside, each once; other operands are results, whose numbers follow from the rows.
        found = np.zeros(operands.shape, np.intp)
        is_earlier = is_taken & (kinds == 1) & (operands < self._count)
        takes: list[tuple[np.ndarray, Callable]] = [
            (is_operand & (kinds == 0), block.literal),
            (is_earlier, lambda x: block.take(*self._earlier_result(int(x)))),
            (is_taken & (kinds == 2), lambda x: block.input(self._inputs[int(x)])),
        ]
        for those, take in takes:
            if those.any():
                found[those] = _map_distinct(operands[those], take)
        for x in dict.fromkeys(operands[is_read, 0].tolist()):
            reads_x = is_read & (operands[:, 0] == x)
            found[reads_x, 0] = _elements(self._inputs[int(x)], operands[reads_x, 1].astype(int).tolist(), block)

        # One row for each operation; a function has several and "more" has none.
        lengths = np.where(is_more, 0, 1)
        functions = []
        ends = np.flatnonzero(is_function)
        repeats, first_of = [np.zeros(0, np.intp)], np.arange(len(what))
        for which in np.unique(what[ends]).tolist():
            function, those = OPERATIONS[which], ends[what[ends] == which]
            pairs = (function.operands + 1) // 2
            span = those[:, None] + np.arange(1 - pairs, 1)
            taken = [x[span].reshape(len(those), 2 * pairs)[:, : function.operands] for x in (kinds, operands)]
            first = _first_of_equal(np.concatenate([taken[0], taken[1].view(np.int64)], 1))
            first_of[those] = those[first]
            repeats.append(those[first != np.arange(len(those))])
            calls = np.flatnonzero(first == np.arange(len(those)))
            for folded in function.folded(*(x[calls] for x in taken), block):
                at = calls[folded.calls]
                lengths[those[at]] = folded.is_new.sum(1)
                functions.append((folded, those[at], span[at]))
        base = len(block)  # no number comes from outside after this
        last = base + np.cumsum(lengths) - 1
        is_here = is_taken & (kinds == 1) & ~is_earlier
        found[is_here] = last[operands[is_here].astype(np.intp) - self._count]
        rows = np.zeros((int(lengths.sum()), WIDTH - 1), np.intc)
        to = last[is_single] - base
        rows[to, 0], rows[to, 1:3] = number[is_single], found[is_single]
        for folded, those, span in functions:
            results = folded.results(last[those])
            rows[results[folded.is_new] - base] = folded.of(found[span].reshape(len(those), -1), results)
        again = np.concatenate(repeats)  # calls of a function on the same numbers
        rows[last[again] - base, 0], rows[last[again] - base, 1] = COPY.number, last[first_of[again]]
        block.write(rows)
        return last

    def tensor(self, indices: list[int], shape: tuple[int, ...]):
        """Return several results as one tensor in column-major order, whose gradient may not be asked for.

        It is recorded in every mode, as the results are.
        """
        self._check()
        by_row = np.array(indices).reshape(shape, order="F").ravel().tolist()
        with changed(recording, True):
            found = self._read(by_row)
            if found is None:
                parts = [block.result(number) for block, number in map(self._found, by_row)]
                if self.variables and not any(isinstance(x, Variable) for x in parts):
                    parts[0] = wrap(parts[0])
                found = ops.stack(parts)
            if len(shape) > 1:
                found = ops.reshape(found, shape)
        return _together(found)

    def _read(self, indices: list[int]):
        """Return the results as one read of an array, or None if they are of several arrays or one has a tensor."""
        if not self._seen.keys().isdisjoint(indices):
            return None  # the gradient of that tensor may be asked for, which would be part of the array's
        found: list[np.ndarray] = []
        for (_, _, reads), at in map(self._part, indices):
            if reads[at][0] < 0 or found and reads[at][0] != found[0][0]:
                return None
            found.append(reads[at])
        which, places = np.array(found).T
        x = self._inputs[which[0]]
        self._in_reads.update(indices)
        if x.ndim == 1 and np.all(np.diff(places) == 1):
            return ops.get_item(x, slice(int(places[0]), int(places[-1]) + 1))
        return ops.get_item(x, _position(x.shape, places))

    def _check(self) -> None:
        writing = recorder.get()
        if writing is None or writing.program.root is not self.program:
            raise JitError("a number of a function that is no longer being traced was used.")

    def _found(self, index: int) -> tuple[Scalars, int]:
        """Return the block of a result, and the result's number in it."""
        (block, numbers, _), at = self._part(index)
        return block, int(numbers[at])

    def _part(self, index: int) -> tuple[tuple[Scalars, np.ndarray, np.ndarray], int]:
        """Return the part that has a result, and the result's index in it."""
        part = bisect_right(self._starts, index) - 1
        return self._parts[part], index - self._starts[part]

    def _earlier_result(self, index: int) -> tuple[int, Any]:
        """Return the place of a result of an earlier block, and its edge."""
        block, number = self._found(index)
        return block.places[number], block.edge(number)

    def takes(self, x) -> int:
        """Return the size of an array whose elements can be read, 0 for a single number, or -1 for anything else."""
        if not self.has_floats(x) or data_of(x).stale or 0 in x.shape:
            return -1
        return math.prod(x.shape) if x.ndim else 0

    def has_floats(self, x) -> bool:
        """True if ``x`` is a float64 tensor of the same function, and a variable if the log's numbers are."""
        data = data_of(x)
        mine = isinstance(x, Variable) == self.variables and isinstance(data, Traced) and data.program is self.program
        return mine and data.dtype == np.float64

    def element(self, index: int):
        """Return the tensor of a result."""
        self._check()
        found = self._seen.get(index)
        if found is None:
            block, number = self._found(index)
            found = block.result(number)
            if self.variables and isinstance(found, Traced):
                found = wrap(found)
            self._seen[index] = found = _together(found) if index in self._in_reads else found
        return found


def log(x) -> Log | None | bool:
    """Return a log of operations on the elements of a traced vector.

    Returns None if there can be no log: in functions that loops and branches call, and while each operation is
    observed. Returns False if another tensor may have one.
    """
    writing = recorder.get()
    if writing is None or writing.unrolled or observers:
        return None
    program = writing.program
    if program.parent is not None or program.current is not program:
        return None
    data = data_of(x)
    is_here = isinstance(data, Traced) and data.program is writing.program
    return Log(program, isinstance(x, Variable)) if is_here else False


def _map_distinct(values: np.ndarray, take: Callable) -> np.ndarray:
    """Return ``take()`` of each value, called once for equal bits, as 0.0 and -0.0 differ."""
    bits = np.ascontiguousarray(values).reshape(-1).view(f"i{values.itemsize}")
    different, at = np.unique(bits, return_inverse=True)
    return np.array([take(x) for x in different.view(values.dtype)], np.intp)[at].reshape(values.shape)


def _first_of_equal(rows: np.ndarray) -> np.ndarray:
    """Return for each row of integers the index of the first row that is equal."""
    key, first = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.intp)
    for column in rows.T:
        if len(different := np.unique(column)) > 1:
            key = key * len(different) + np.searchsorted(different, column)
            _, first, key = np.unique(key, return_index=True, return_inverse=True)
            if len(first) == len(rows):
                break
    return first[key]


def _elements(x, places: list[int], block: Scalars) -> list[int]:
    """Return the elements at positions, counted from 0 in R's order, as numbers of a block."""
    if len(places) < _MANY:
        return [block.input(ops.get_item(x, _position(x.shape, place))) for place in places]
    # All reads are one row of the program and one node of the tape.
    different = list(dict.fromkeys(places))
    key = _position(x.shape, np.array(different))
    found = dict(zip(different, map(block.input, ops.unstack(ops.get_item(x, key)))))
    return [found[place] for place in places]


_MANY = 4
"""The smallest number of reads that are one row; a single read is found again if it is repeated later."""


def _position(shape: tuple, place):
    """Return the index of the element at a position in R's order (column-major), or an index of several positions."""
    if len(shape) == 1:
        return place
    position = []
    for size in shape:
        place, here = divmod(place, size)
        position.append(here)
    return tuple(position)


def _entry(word: float) -> Any:
    return OPERATIONS[int(word) >> 4]


_FUNCTION, _MORE = -2, -1


def _known() -> tuple[np.ndarray, np.ndarray]:
    """Return, for each opcode of a log, the number of its operation in a table and its operand count."""
    for what in OPERATIONS[len(_counts) :]:
        what = COPY if what is None else what  # an element has its own gradient each time it is read
        is_operation = isinstance(what, NumberOperation)
        _numbers.append(what.number if is_operation else _FUNCTION if isinstance(what, Function) else _MORE)
        _counts.append(what.operands if is_operation else 0)
    return np.frombuffer(_numbers, np.intc), np.frombuffer(_counts, np.intc)


_numbers, _counts = array("i"), array("i")


def _refuse(node: Node) -> None:
    raise PartialGradientError("the gradient of a vector whose elements were used one by one was asked for.")


def _together(x):
    """Return a tensor whose gradient may not be asked for, as only part of it arrives there."""
    if not isinstance(x, Variable) or x._node is None:
        return x
    return attach(x._value, Node(_TOGETHER, (x._node,), (), x.shape, x.dtype))


_TOGETHER = Rule("numbers", vjps=(lambda g, saved, edge: g,), elementwise=True, partial=_refuse)


def _loggable_ops() -> dict[str, NumberOperation]:
    """Return the operations that a log takes, by the name of the op: one or two operands, with native code.

    Step functions are excluded, as their results may become R's numbers, and so are the ops of :mod:`gradops.scipy`,
    which is imported later.
    """
    found = {"sign": _operation("real_sign", 1)}  # for real numbers both are the same
    found["by_determinant"] = plain_operation("divide", 2, determinant_quotient)
    for name, entry in registry.items():
        count = len(entry.tensors)
        is_plain = name == entry.name and "." not in name and entry.parameters == entry.tensors and count < 3
        is_smooth = entry.facts.elementwise and entry.differentiable and not entry.facts.steps
        if is_plain and is_smooth and not (known := known_of(name)).moves and known.rule is not None:
            found[name] = _operation(name, count)
    return found


def _operation(name: str, count: int) -> NumberOperation:
    return plain_operation(name, count, kernel_of(name, count))


MORE = object()
"""An entry of a log with two operands of the function that follows."""


class Function:
    """A function of single numbers that is composed of ops, and recorded as their operations."""

    def __init__(self, function: Callable, operands: int):
        self.function, self.operands = function, operands

    def folded(self, kinds: np.ndarray, operands: np.ndarray, block: Scalars) -> Iterator[Folded]:
        """Yield the operations for calls of the function; an operation on literals alone is computed here instead.

        Args:
            kinds, operands: the kinds and values of the operands, a row for each call; kind 0 is a literal.
        """
        is_given = kinds == 0
        identities = (2 * operands + (kinds == 2)).astype(np.int64) * ~is_given
        for pattern in np.unique(is_given, axis=0):
            left = [np.flatnonzero((is_given == pattern).all(1))]
            while left:
                calls = left.pop()
                try:
                    values = [x if on else None for x, on in zip(operands[calls].T, pattern)]
                    yield self._folded(calls, values, identities, block)
                except _Undecided as choice:
                    left += [calls[choice.chosen], calls[~choice.chosen]]

    def _folded(self, calls: np.ndarray, values: list, identities: np.ndarray, block: Scalars) -> Folded:
        rows: list[tuple[int, tuple[int, ...]]] = []
        literals: list = []

        def constant(value) -> int:
            value = np.asarray(value)
            value = value if value.dtype == np.bool_ else value.astype(np.float64, copy=False)
            bits = value if value.dtype == np.bool_ else value.view(np.int64)
            literals.append(value[0] if value.ndim and (bits == bits[0]).all() else value)
            return -len(literals)

        def add(what: NumberOperation, *given: int) -> int:
            known = [literals[-1 - token] if token < 0 else None for token in given]
            if what.name == "where" and known[0] is not None and any(x is None for x in known):
                chosen = np.broadcast_to(known[0], calls.shape)
                if chosen.any() and not chosen.all():
                    raise _Undecided(chosen)
                return given[1] if chosen.all() else given[2]
            if all(token < 0 for token in given):
                with np.errstate(all="ignore"):
                    return constant(what.kernel(*what.arguments(known)))
            rows.append((what.number, given))
            return _OWN + len(rows) - 1

        play, constants = function_template(self.function, self.operands, tuple(x is not None for x in values))
        operands = [i if value is None else constant(value) for i, value in enumerate(values)]
        (result,) = play(add, None, operands, None, [constant(value) for value in constants])
        if result != _OWN + len(rows) - 1 or not rows:
            rows.append((COPY.number, (result,)))
        used = {token for _, given in rows for token in given if token < 0}
        found = {token: _map_distinct(literals[-1 - token], block.literal) for token in used}
        return Folded(calls, rows, found, _doers(rows, found, identities[calls]))


class _Undecided(Exception):
    """Raised if a choice between literals differs between calls; ``chosen`` says for which."""

    def __init__(self, chosen: np.ndarray):
        self.chosen = chosen


class Folded(NamedTuple):
    """The operations of a function at some of its calls; the last one gives its result.

    Calls share equal operations on the same numbers, such as the logarithm of a parameter, except the last one.

    Attributes:
        calls: the indices of the calls.
        rows: operations by number, each with its operands as tokens: an operand by its position, :data:`_OWN` and up
            the result of a row, below 0 a literal.
        literals: the indices of the literals by token; an array if they differ by call.
        doers: for each call and row, which call does the operation first.
    """

    calls: np.ndarray
    rows: list[tuple[int, tuple[int, ...]]]
    literals: dict[int, np.ndarray]
    doers: np.ndarray

    @property
    def is_new(self) -> np.ndarray:
        """True for each call and row whose operation no earlier call does."""
        return self.doers == np.arange(len(self.calls))[:, None]

    def results(self, last: np.ndarray) -> np.ndarray:
        """Return the index of the result of each call and row, given the index of each call's last result."""
        is_new = self.is_new
        own = last[:, None] + is_new.cumsum(1) - is_new.sum(1, keepdims=True)
        return own[self.doers, np.arange(len(self.rows))]

    def of(self, operands: np.ndarray, results: np.ndarray) -> np.ndarray:
        """Return the new rows of each call, given its operands and results."""
        found = np.zeros((len(self.calls), len(self.rows), WIDTH - 1), np.intc)
        for at, (what, given) in enumerate(self.rows):
            found[:, at, 0] = what
            for k, token in enumerate(given):
                found[:, at, 1 + k] = (
                    self.literals[token]
                    if token < 0
                    else operands[:, token]
                    if token < _OWN
                    else results[:, token - _OWN]
                )
        return found[self.is_new]


def _doers(rows: list[tuple[int, tuple[int, ...]]], literals: dict[int, np.ndarray], operands: np.ndarray):
    """Return which call does each operation first; ``operands`` are equal integers where the operands are the same."""
    each = np.arange(len(operands))
    found = np.empty((len(each), len(rows)), np.intp)
    found[:, -1] = each
    for at, (_, given) in enumerate(rows[:-1]):
        key, first = np.zeros(1, np.int64), each[:1]
        for token in given:
            x = literals[token] if token < 0 else operands[:, token] if token < _OWN else found[:, token - _OWN]
            if len(first) < len(each) and np.ndim(x):
                _, first, key = np.unique(key * (int(x.max()) + 1) + x, return_index=True, return_inverse=True)
        found[:, at] = first[key]
    return found


_OWN = 16

_LOGGABLE_OPS = _loggable_ops()
OPERATIONS: list = [None, *_LOGGABLE_OPS.values(), MORE]
"""The operations of a log, by opcode. None reads an element of an array. Functions are appended."""

NAMES = [*_LOGGABLE_OPS]
"""The names of the ops, from opcode 1 on; :data:`MORE` follows them."""


@functools.cache
def function_number(function: Callable, operands: int) -> int:
    """Return the opcode of a function of single numbers in a log."""
    OPERATIONS.append(Function(function, operands))
    return len(OPERATIONS) - 1
