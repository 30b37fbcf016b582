"""Record many operations on single numbers at once, and differentiate them together.

A loop over observations is thousands of operations on single float64 numbers. Each would otherwise go through an op,
the tape and the program. A caller that knows them beforehand, such as R's log (:mod:`.scalar_logs`), records them
together: as rows of the program and as one node of the tape. The derivative rule of that node records such operations
again: an op's own rule is traced once for one number (:mod:`.scalar_rules`), and repeated for each operation.
"""

from __future__ import annotations

import functools
from array import array
from collections import deque
from collections.abc import Iterable
from itertools import islice
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from ..autodiff.graph import PICK, Cotangents, Node, Rule
from ..autodiff.modes import recording
from ..autodiff.state import clock, read
from ..autodiff.variable import attach, data_of, is_active, wrap
from ..errors import PartialGradientError
from ..ops._dispatch import registry
from ..ops._structures import recorder
from .array import Place, Traced
from .native import records
from .operations import COPY, NumberOperation, plain_operation
from .program import Program
from .scalar_rules import kernel_of, template
from .table import LONGEST, WIDTH


class Numbers:
    """Operations on single numbers that are recorded by a program.

    Each literal, number from outside and result has an index here, in the order in which they come. Several numbers may
    have the same place in the program, as equal values may have different gradients.

    Attributes:
        places: the place of each number in the program.
        active: 1 for each number that has a gradient.
    """

    def __init__(self, program: Program):
        self.program = program
        self.places = array("i")
        self.active = array("b")
        self._literal_numbers: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self.places)

    def literal(self, value) -> int:
        """Return the index of a constant."""
        key = value.tobytes()
        found = self._literal_numbers.get(key)
        if found is None:
            found = self._literal_numbers[key] = self._new(self.program.literal(value, key), False)
        return found

    def input(self, x) -> int:
        """Return the index of a traced number, or of a variable of one."""
        return self.take(self.program.written(data_of(x)).place.index, (x._node or x) if is_active(x) else None)

    def take(self, place: int, edge) -> int:
        """Return the index of a new number with the value at a place, whose gradient goes to ``edge``."""
        return self._new(place, False)

    def write(self, rows: np.ndarray) -> None:
        """Record operations.

        Args:
            rows: for each operation its number and the indices of its operands, which may be earlier results; 0 for a
                missing operand. Each result gets the next index.
        """
        records.record(self.program, rows, self.places, self.active)

    def close(self) -> None:
        """End the record; no operations may follow."""

    def result(self, number: int):
        """Return a number as a traced array."""
        place = self.places[number]
        return Traced(self.program.values[place], self.program, Place(place))

    def _new(self, place: int, active: bool) -> int:
        self.places.append(place)
        self.active.append(active)
        return len(self.places) - 1


class Batches(Numbers):
    """Runs operations one by one as ops on tensors, such as batches of numbers, instead of recording them."""

    def __init__(self, program: Program):
        super().__init__(program)
        self._tensors: list = []

    def __len__(self) -> int:
        return len(self._tensors)

    def literal(self, value) -> int:
        return self.input(value)

    def input(self, x) -> int:
        self._tensors.append(x)
        return len(self._tensors) - 1

    def take(self, place: int, edge) -> int:
        traced = Traced(self.program.values[place], self.program, Place(place))
        return self.input(traced if edge is None else attach(traced, edge) if isinstance(edge, Node) else edge)

    def write(self, rows: np.ndarray) -> None:
        for number, *operands in rows.tolist():
            what = NumberOperation.known[number]
            given = [self._tensors[i] for i in operands[: what.operands]]
            self.input(given[0] if what is COPY else registry[what.name].call(*what.arguments(given)))

    def result(self, number: int):
        return self._tensors[number]


class Scalars(Numbers):
    """Operations on single numbers with what the tape needs to differentiate them.

    Attributes:
        literals: the values of the constants, by index.
    """

    def __init__(self, program: Program):
        super().__init__(program)
        self.literals: dict[int, Any] = {}
        self._edges: dict[int, Any] = {}  # of numbers from outside, by index
        self._picks: dict[int, Node] = {}  # nodes of results that are used outside, by index
        self._node: Any = None
        # The operations that a gradient goes through: number, result, operands.
        self._operations = array("i")

    # Numbers and their edges.

    def literal(self, value) -> int:
        number = super().literal(value)
        self.literals[number] = value
        return number

    def _remove_kinks(self, rows: np.ndarray, base: int) -> np.ndarray:
        """Return rows with ``x * x`` for each square of ``abs(x)``, see :mod:`gradops.autodiff.lengths`."""
        is_abs = rows[:, 0] == _ABS.number
        if not is_abs.any():
            return rows
        operands = rows[:, 1:3] - base
        of_abs = (operands >= 0) & is_abs[np.maximum(operands, 0)]
        inner = np.where(of_abs, rows[np.maximum(operands, 0), 1], -1)
        twos = [number for number, value in self.literals.items() if value == 2]
        squares = of_abs[:, 0] & (
            (rows[:, 0] == _SQUARE.number)
            | (rows[:, 0] == _POWER.number) & np.isin(rows[:, 2], twos)
            | (rows[:, 0] == _MULTIPLY.number) & (inner[:, 0] == inner[:, 1])
        )
        rows = rows.copy()
        rows[squares, 0] = _MULTIPLY.number
        rows[squares, 1] = rows[squares, 2] = inner[squares, 0]
        return rows

    def take(self, place: int, edge) -> int:
        number = self._new(place, edge is not None)
        if edge is not None:
            self._edges[number] = edge
        return number

    def write(self, rows: np.ndarray) -> None:
        base = len(self)
        rows = self._remove_kinks(rows, base)
        super().write(rows)
        on = np.flatnonzero(np.frombuffer(self.active, np.int8)[base:])
        kept = np.empty((len(on), WIDTH), np.intc)
        kept[:, 0], kept[:, 1], kept[:, 2:] = rows[on, 0], base + on, rows[on, 1:]
        self._operations.frombytes(kept.tobytes())

    # Record and nodes of the tape.

    def close(self) -> None:
        """Record the operations on the tape."""
        if not recording.get():
            read(*self._edges.values())
        elif self._edges:
            self._node = Node(self._rule(), tuple(self._edges.values()), (), None, None)
            self._node.extra = None
            deque(islice(iter(clock, None), len(self)), 0)  # the times of the results' own nodes
            self.program.logs.append(self)

    def _rule(self) -> Rule:
        return Rule(
            "scalars",
            vjp=lambda g, saved, node: self.vjp(g),
            jvp=self.jvp,
            partial=self._refuse_partial,
        )

    def forget(self) -> None:
        """Release the graph, which refers to this object."""
        self._node = None
        self._picks.clear()
        self._edges.clear()

    def result(self, number: int):
        """Return a number as a traced array, or as a variable of one if it has a gradient."""
        traced = super().result(number)
        edge = self.edge(number)
        if edge is None:
            return traced
        return attach(traced, edge) if isinstance(edge, Node) else edge

    def edge(self, number: int):
        """Return the edge that gets the gradient of a number, or None."""
        if not self.active[number] or self._node is None:
            return None
        edge = self._edges.get(number)  # may be a variable
        if edge is None:
            edge = self._picks.get(number)
        if edge is None:
            edge = self._picks[number] = Node(PICK, (self._node,), (number,), (), np.dtype("float64"))
            edge.seq = self._node.seq + 1 + number  # before all that uses the result, however late the node is made
        return edge

    # Derivatives.

    def vjp(self, g: Cotangents) -> list:
        """Return the gradients of the numbers from outside."""
        made, rows = Derivative(self, g.values()), self._rows()
        for i, ct in g.items():
            made.last[i] = made.out.input(ct)
        for stop in range(len(rows), 0, -LONGEST):
            made.back(rows[max(0, stop - LONGEST) : stop])
        made.out.close()
        return [made.tensor(i) for i in self._edges]

    def jvp(self, tangents: list) -> Derivative:
        """Return the tangents of the results, given those of the numbers from outside."""
        # The derivative of an operation on single numbers is a factor, so the rule of the backward pass serves as well.
        made, rows = Derivative(self, tangents), self._rows()
        # Most tangents are zeros if the direction goes along one variable, or along variables that share a colour.
        for i, t in zip(self._edges, tangents):
            if t is not None and not self._is_zero(t):
                made.last[i] = made.out.input(t)
        for start in range(0, len(rows), LONGEST):
            made.forward(rows[start : start + LONGEST])
        made.out.close()
        return made

    def _is_zero(self, tangent) -> bool:
        """True for a tangent that is always 0."""
        if is_active(tangent):
            return False
        data = data_of(tangent)
        known = self.program.constants.get(data.place) if isinstance(data, Traced) else data
        return isinstance(known, (np.generic, np.ndarray)) and not known.ndim and not known

    def _rows(self) -> np.ndarray:
        """Return the operations that a gradient goes through as rows; a missing operand is 0, which is not a result."""
        return np.frombuffer(self._operations, np.intc).reshape(-1, WIDTH)

    def _refuse_partial(self, pick: Node) -> None:
        """Raise a PartialGradientError if the gradient of a result comes from other operations here as well."""
        # Gradients between operations stay inside the rule, so the result's own node sees only those from outside.
        if pick.saved is not None and (self._rows()[:, 2:] == pick.saved[0]).any():
            raise PartialGradientError("the gradient of a number was asked for that later numbers were computed from.")


class Derivative:
    """Operations that take gradients or tangents through others; on tensors if a batch or a loop's function asks.

    Attributes:
        out: the operations of the derivative.
        last: for each number the index, in ``out``, of its gradient or tangent so far; -1 if it has none.
    """

    def __init__(self, of: Scalars, given: Iterable):
        writing = recorder.get()
        here = writing is not None and writing.program is of.program and of.program.current is of.program
        self._of = of
        self._recorded = recording.get()
        if not here or any(not isinstance(data_of(x), (Traced, np.generic, np.ndarray, NoneType)) for x in given):
            self.out: Numbers = Batches(of.program)
        else:
            self.out = Scalars(of.program) if self._recorded else Numbers(of.program)
        self.last = np.full(len(of), -1, np.intc)
        self._here = np.full(len(of), -1, np.intc)  # the index of each number in `out`
        self._forms: dict[tuple, Form] = {}
        self._is_literal = np.zeros(len(of), bool)
        self._is_literal[list(of.literals)] = True

    def __getitem__(self, number: int):
        return self.tensor(number)

    def tensor(self, number: int):
        """Return the gradient or tangent of a number, as a variable if the pass is recorded; None if it has none."""
        at = int(self.last[number])
        if at < 0:
            return None
        found = self.out.result(at)
        return wrap(found) if self._recorded and isinstance(found, Traced) else found

    def back(self, rows: np.ndarray) -> None:
        """Take gradients backward through operations."""
        if len(rows) < FEW:
            self._one_by_one(rows[::-1].tolist(), True)
            return
        active = np.frombuffer(self._of.active, np.uint8)
        flags = (active[rows[:, 2:]] << _BITS).sum(1, dtype=np.uint8) & _OF_OPERANDS[_operands()[rows[:, 0]]]
        forms, which = self._forms_of(rows, flags)
        through = np.array([form.through for form in forms], np.uint8)[which]
        marks = (self.last >= 0).view(np.uint8)
        records.mark_operands(rows, through, marks)
        at = np.flatnonzero((through != 0) & (marks[rows[:, 1]] != 0))[::-1]
        self._do(forms, which[at], rows[at], rows[at, 1], None)
        self.last[rows[:, 1]] = -1

    def forward(self, rows: np.ndarray) -> None:
        """Take tangents forward through operations, through one operand at a time."""
        if len(rows) < FEW:
            self._one_by_one(rows.tolist(), False)
            return
        count = len(rows)
        flags = np.repeat(_BITS_OF_ONE[None], count, 0) & _OF_OPERANDS[_operands()[rows[:, 0]], None]
        forms, which = self._forms_of(np.repeat(rows, 3, 0), flags.ravel())
        through = np.array([form.through for form in forms], np.uint8)[which]
        marks = (self.last >= 0).view(np.uint8)
        records.mark_results(rows, np.bitwise_or.reduce(through.reshape(count, 3), 1), marks)
        operands = rows[:, 2:].ravel()
        at = np.flatnonzero((through != 0) & (marks[operands] != 0))
        each = rows[at // 3]
        self._do(forms, which[at], each, operands[at], each[:, 1])

    def _one_by_one(self, rows: list[list[int]], goes_back: bool) -> None:
        """Take gradients or tangents through a few operations, one by one."""
        of, last = self._of, self.last
        done: list[list[int]] = []  # operands below -1 are results: -2 less the index in this list
        for number, result, *operands in rows:
            count = NumberOperation.known[number].operands
            on = [of.active[x] << i for i, x in enumerate(operands[:count])]
            ways = [(sum(on), result)] if goes_back else [(1 << i, x) for i, x in enumerate(operands[:count])]
            for flags, source in ways:
                g = int(last[source])
                if g == -1 or not flags:
                    continue
                exponent = operands[1] if number == _POWER.number and operands[1] in of.literals else -1
                rule, first = self._form(number, flags, exponent), -2 - len(done)
                found = {THROUGH: g, **{i: self._taken((*operands, result)[i]) for i in rule.reads}}

                def value(token: int) -> int:
                    if token < 0:
                        return -1 - token
                    return found[token] if token < OWN else first - (token - OWN)  # noqa: B023

                done += [[what, *map(value, tokens), *(0, 0, 0)[len(tokens) :]] for what, tokens in rule.rows]
                for slot, token in rule.ends:
                    goal = operands[slot] if goes_back else result
                    if last[goal] == -1:
                        last[goal] = value(token)
                    else:
                        done.append([_ADD.number, int(last[goal]), value(token), 0])
                        last[goal] = -1 - len(done)
            if goes_back:
                last[result] = -1
        written, base = np.array(done, np.intc).reshape(-1, WIDTH - 1), len(self.out)
        for numbers in (written, last):
            here = numbers < -1
            numbers[here] = base - 2 - numbers[here]
        self.out.write(written)

    def _forms_of(self, rows: np.ndarray, flags: np.ndarray) -> tuple[list[Form], np.ndarray]:
        """Return the distinct rules of operations for the operands with set bits, and the index of each one's rule."""
        exponent = np.where((rows[:, 0] == _POWER.number) & self._is_literal[rows[:, 3]], rows[:, 3] + 1, 0)
        keys = (rows[:, 0].astype(np.int64) << 3 | flags) * (len(self._of) + 1) + exponent
        found, which = np.unique(keys, return_inverse=True)
        forms = []
        for key in found.tolist():
            rest, last = divmod(key, len(self._of) + 1)
            forms.append(self._form(rest >> 3, rest & 7, last - 1))
        return forms, which

    def _form(self, number: int, flags: int, last: int) -> Form:
        """Return an operation's rule for some operands; ``last`` is the literal exponent of a power, or -1."""
        key = number, flags, last
        if key not in self._forms:
            of_value = form(number, flags, None if last < 0 else repr(float(self._of.literals[last])))
            self._forms[key] = of_value.written(self.out)
        return self._forms[key]

    def _do(
        self, forms: list[Form], which: np.ndarray, rows: np.ndarray, source: np.ndarray, target: np.ndarray | None
    ) -> None:
        """Record the rules of operations, one after the other.

        Args:
            which: the index of each operation's rule.
            source: the number whose gradient or tangent each takes.
            target: the number that gets the result of each; None if the operands get the results.
        """
        if not len(which):
            return
        taken = rows[:, [2, 3, 4, 1]].astype(np.intp)
        order = np.argsort(which, kind="stable")
        groups = list(zip(forms, np.split(order, np.cumsum(np.bincount(which, minlength=len(forms)))[:-1])))
        self._take(np.concatenate([taken[js, i] for form, js in groups for i in form.reads] or [[]]))
        base, last, here = len(self.out), self.last, self._here

        # The ends of the rules, ordered by operation (`in_order`) and by the number that gets them (`by_goal`).
        ends = [(js, slot, token) for form, js in groups for slot, token in form.ends]
        sizes = [len(js) for js, _, _ in ends]
        j, slots = np.concatenate([js for js, _, _ in ends]), np.repeat([slot for _, slot, _ in ends], sizes)
        tokens = np.repeat([token for _, _, token in ends], sizes)
        goal = taken[j, slots] if target is None else target[j].astype(np.intp)
        in_order = np.argsort(j * 3 + slots, kind="stable")
        by_goal = in_order[np.argsort(goal[in_order], kind="stable")]
        again = np.flatnonzero(goal[by_goal[1:]] == goal[by_goal[:-1]])
        before = np.full(len(j), -1)
        before[by_goal[again + 1]] = by_goal[again]
        is_sum = (before >= 0) | (last[goal] >= 0)  # added to what the number has from earlier ends or rows

        # The rows of each operation are its rule's rows, then its sums.
        count = np.array([len(form.rows) for form in forms])[which]
        lengths = count + np.bincount(j, is_sum, len(which)).astype(np.intp)
        start = base + np.cumsum(lengths) - lengths
        earlier = np.empty(len(j), np.intp)
        earlier[in_order] = np.cumsum(is_sum[in_order]) - is_sum[in_order]
        first = np.full(len(which), len(j))
        np.minimum.at(first, j, earlier)
        through: Any = None  # set below

        def value(token: int, js: np.ndarray):
            if token < 0:
                return -1 - token
            if token < THROUGH:
                return here[taken[js, token]]
            return through[js] if token == THROUGH else start[js] + (token - OWN)

        passed_on = (tokens == THROUGH) & ~is_sum
        found = np.concatenate(
            [np.broadcast_to(0 if token == THROUGH else value(token, js), len(js)) for js, _, token in ends]
        )
        found[is_sum] = (start[j] + count[j] + earlier - first[j])[is_sum]
        # A rule may pass its gradient on unchanged, as that of a sum does. Follow such ends to where the value is made.
        latest = np.full(len(last), -1)
        latest[goal[by_goal]] = by_goal  # the last one, if a number has several
        at = np.where(passed_on, latest[source[j]], np.arange(len(j)))
        given = np.flatnonzero(at < 0)
        found[given], at[given] = last[source[j[given]]], given
        while (at[at] != at).any():
            at = at[at]
        found = found[at]
        summed = np.where(before >= 0, found[before], last[goal])
        last[goal[by_goal]] = found[by_goal]
        through = last[source].astype(np.intp)

        done = np.zeros((int(lengths.sum()), WIDTH - 1), np.intc)
        for form, js in groups:
            for i, (number, operands) in enumerate(form.rows):
                done[start[js] - base + i, 0] = number
                for k, token in enumerate(operands):
                    done[start[js] - base + i, 1 + k] = value(token, js)
        added = np.concatenate([np.broadcast_to(value(token, js), len(js)) for js, _, token in ends])
        sums = found[is_sum] - base
        done[sums, 0], done[sums, 1], done[sums, 2] = _ADD.number, summed[is_sum], added[is_sum]
        self.out.write(done)

    def _take(self, numbers: np.ndarray) -> None:
        """Give numbers of the differentiated operations an index in ``out``."""
        new = np.unique(numbers).astype(np.intp)
        new = new[self._here[new] < 0]
        of, out = self._of, self.out
        if type(out) is Numbers:
            self._here[new] = np.arange(len(out), len(out) + len(new))
            out.places.frombytes(np.frombuffer(of.places, np.intc)[new].tobytes())
            out.active.frombytes(bytes(len(new)))
            return
        for i in new.tolist():
            self._taken(i)

    def _taken(self, i: int) -> int:
        if self._here[i] < 0:
            of, out = self._of, self.out
            known = of.literals.get(i)
            self._here[i] = out.take(of.places[i], of.edge(i)) if known is None else out.literal(known)
        return int(self._here[i])


FEW = 80
"""The number of operations below which a Python loop is faster than handling them together."""


THROUGH, OWN = 4, 8


class Form(NamedTuple):
    """An operation's derivative rule as rows.

    A token stands for a value: 0 to 2 an operand, 3 the operation's result, :data:`THROUGH` the gradient or tangent
    that comes in, :data:`OWN` and up a result of the rule's rows, and below 0 a constant.

    Attributes:
        rows: operations by number, each with the tokens of its operands.
        ends: the operands that get a gradient, each with the gradient's token.
        constants: the constants of the rule.
    """

    rows: list[tuple[int, tuple[int, ...]]]
    ends: list[tuple[int, int]]
    constants: list

    @property
    def through(self) -> int:
        """The bits of the operands that get a gradient."""
        return sum(1 << slot for slot, _ in self.ends)

    @property
    def reads(self) -> set[int]:
        """The operands that the rule reads, and 3 for the result."""
        tokens = [token for _, taken in self.rows for token in taken] + [token for _, token in self.ends]
        return {token for token in tokens if 0 <= token < THROUGH}

    def written(self, out: Numbers) -> Form:
        """Return the rule with its constants as numbers of ``out``."""
        known = [-1 - out.literal(value) for value in self.constants]

        def of(token: int) -> int:
            return known[-1 - token] if token < 0 else token

        rows = [(number, tuple(map(of, tokens))) for number, tokens in self.rows]
        return Form(rows, [(slot, of(token)) for slot, token in self.ends], [])


@functools.cache
def form(number: int, flags: int, exponent: str | None) -> Form:
    """Return the rule of an operation for the operands whose bits are set in ``flags``."""
    what = NumberOperation.known[number]
    if what is COPY:
        return Form([], [(0, THROUGH)] if flags else [], [])
    rows: list[tuple[int, tuple[int, ...]]] = []

    def add(of: NumberOperation, *tokens: int) -> int:
        rows.append((of.number, tokens))
        return OWN + len(rows) - 1

    operands = tuple(range(what.operands))
    rule = template(what, tuple(bool(flags >> i & 1) for i in operands), exponent)
    constants = [-1 - i for i in range(len(rule.constants))]
    ends = rule.play(add, int, (*operands, 3), THROUGH, constants)
    return Form(rows, [(i, end) for i, end in enumerate(ends) if end is not None], rule.constants)


def _operands() -> np.ndarray:
    """Return the number of operands of each operation."""
    known = NumberOperation.known
    while len(_counts) < len(known):
        _counts.append(known[len(_counts)].operands)
    return np.frombuffer(_counts, np.int8)


_counts = array("b")
_BITS = np.array([0, 1, 2], np.uint8)
_BITS_OF_ONE = np.array([1, 2, 4], np.uint8)
_OF_OPERANDS = np.array([0, 1, 3, 7], np.uint8)
"""The bits of all operands, for each number of operands."""

_ADD, _MULTIPLY, _POWER = (plain_operation(name, 2, kernel_of(name, 2)) for name in ("add", "multiply", "power"))
_ABS, _SQUARE = (plain_operation(name, 1, kernel_of(name, 1)) for name in ("abs", "square"))
