"""Operations on single numbers, written down to a program many at a time.

A loop over observations is thousands of operations on single float64 numbers. One by one each would go through an op,
the tape and the program. A caller that has them all beforehand, as R's side does, which logs them, writes them down at
once: as one :class:`Block` among a program's steps, and as one node of the tape. The rule of that node is again such
operations: an op's own rule is traced once for one number (:mod:`.scalar_rules`), and repeated for each.
"""

from __future__ import annotations

import functools
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from types import NoneType
from typing import Any

import numpy as np

from ..autodiff.graph import PICK, Cotangents, Node, Rule
from ..autodiff.modes import recording
from ..autodiff.state import clock, read, wanted
from ..autodiff.variable import attach, data_of, is_active, wrap
from ..errors import JitError
from ..ops._dispatch import registry
from ..ops._structures import recorder
from .array import Place, Traced
from .program import Program
from .scalar_blocks import LONGEST, WIDTH, Operation, operation
from .scalar_rules import kernel_of, template


class Numbers:
    """Operations on single numbers, written down to a program; each number is known by its place there."""

    def __init__(self, program: Program):
        self.program = program
        self._place, self._ones = program.operations.place, program.ones

    def literal(self, value) -> int:
        """A number that is the same at each call."""
        return self.program.literal(value, value.tobytes())

    def input(self, x) -> int:
        """A traced number, or the variable of one."""
        return self.take(self.program.written(data_of(x)).place.index, (x._node or x) if is_active(x) else None)

    def take(self, place: int, edge) -> int:
        """The number of the value at a place, whose gradient goes on to ``edge``."""
        return place

    def add(self, what: Operation, x: int, y: int = 0, z: int = 0) -> int:
        """The result of an operation on numbers; those that it does not take are 0."""
        if what is _MULTIPLY and (x in self._ones or y in self._ones):
            return self.program.operate(what, x, y)
        return self._place(what, x, y, z)

    def close(self) -> None:
        """End the record: nothing more is written down."""

    def result(self, number: int):
        """A number as a traced one."""
        return Traced(self.program.values[number], self.program, Place(number))


class Batches(Numbers):
    """The same with tensors in place of single numbers, as a batch has one for each of its members."""

    def __init__(self, program: Program):
        super().__init__(program)
        self._tensors: list = []

    def literal(self, value) -> int:
        return self.input(value)

    def input(self, x) -> int:
        self._tensors.append(x)
        return len(self._tensors) - 1

    def take(self, place: int, edge) -> int:
        traced = super().result(place)
        return self.input(traced if edge is None else attach(traced, edge) if isinstance(edge, Node) else edge)

    def add(self, what: Operation, *operands: int) -> int:
        given = what.arguments([self._tensors[i] for i in operands])
        return self.input(registry[what.name].call(*given))

    def result(self, number: int):
        return self._tensors[number]


class Scalars(Numbers):
    """The same with the records that the tape needs to go back through them.

    Each number has a number of its own here: literals, numbers from outside, and results, in the order in which they
    came. One place of the program may have several, as the same value may have different gradients.

    Attributes:
        places: of each the place in the program.
        active: for each, True if it has a gradient.
        literals: the values of those that are the same at each call.
    """

    def __init__(self, program: Program):
        super().__init__(program)
        self.places = array("i")
        self.active = bytearray()
        self.literals: dict[int, Any] = {}
        self._of_literals: dict[bytes, int] = {}
        self._edges: dict[int, Any] = {}  # of numbers from outside
        self._picks: dict[int, Node] = {}  # of results that something outside uses
        self._pieces: list[Piece] = []
        self._first = 0
        # Those that a gradient goes through: the operation, its result, and its operands.
        self._operations = array("i")

    # Numbers and their edges.

    def literal(self, value) -> int:
        key = value.tobytes()
        found = self._of_literals.get(key)
        if found is None:
            found = self._of_literals[key] = self._new(self.program.literal(value, key), False)
            self.literals[found] = value
        return found

    def take(self, place: int, edge) -> int:
        number = self._new(place, edge is not None)
        if edge is not None:
            self._edges[number] = edge
        return number

    def add(self, what: Operation, x: int, y: int = 0, z: int = 0) -> int:
        places, active = self.places, self.active
        count = what.operands
        if count == 2:
            at, other, on = places[x], places[y], active[x] or active[y]
            if what is _MULTIPLY:
                if at in self._ones:
                    return y
                if other in self._ones:
                    return x
            place = self._place(what, at, other)
        elif count == 1:
            on, place = active[x], self._place(what, places[x])
        else:
            operands = (x, y, z)[:count]
            on = True in [active[i] for i in operands]
            place = self._place(what, *[places[i] for i in operands])
        number = len(places)
        places.append(place)
        active.append(on)
        if on:
            self._operations.extend((what.number, number, x, y, z))
        return number

    def copy(self, number: int) -> int:
        """Another number of the same value, which has a gradient of its own if it has one."""
        if not self.active[number]:
            return number
        own = self._new(self.places[number], True)
        self._operations.extend((_COPY.number, own, number, 0, 0))
        return own

    def _new(self, place: int, active: bool) -> int:
        self.places.append(place)
        self.active.append(active)
        return len(self.places) - 1

    # Written down.

    def close(self) -> None:
        """Record the operations on the tape."""
        if not recording.get():
            read(*self._edges.values())
        elif self._edges:
            self._first = clock()
            for _ in range(2 * len(self.places) + 1):
                clock()
            node = Node(_EMPTY, (), (), None, None)
            node.extra = None
            self._pieces = [Piece(self, node, 0, self._count(), list(self._edges), tuple(self._edges.values()))]
            self.program.logs.append(self)

    def _count(self) -> int:
        return len(self._operations) // WIDTH

    def _through(self, start: int, stop: int, step: int) -> Iterator[tuple[Operation, int, int, int, int]]:
        """Operations that a gradient goes through, with their results and operands, 0 for none."""
        known, rows = Operation.known, self._rows()[start:stop][::step]
        for first in range(0, len(rows), LONGEST):
            for number, *words in rows[first : first + LONGEST].tolist():
                yield known[number], *words

    def forget(self) -> None:
        """Let go of the graph, which leads back here."""
        self._pieces.clear()
        self._picks.clear()
        self._edges.clear()

    def result(self, number: int):
        """A number as a traced one, or as the variable of one where it has a gradient."""
        traced = super().result(self.places[number])
        edge = self.edge(number)
        if edge is None:
            return traced
        return attach(traced, edge) if isinstance(edge, Node) else edge

    def edge(self, number: int):
        """The edge to which the gradient of a number goes; None where there is none."""
        if not self.active[number] or not self._pieces:
            return None
        edge = self._edges.get(number)  # which may be a variable
        if edge is None:
            edge = self._picks.get(number)
        if edge is None:
            edge = self._picks[number] = Node(PICK, (self._piece_of(number).node,), (number,), (), np.dtype("float64"))
            edge.seq = self.time_of(number) + 1
        return edge

    def time_of(self, number: int) -> int:
        """The time of a piece that begins with a result, before that of the node of this result alone."""
        return self._first + 2 * number

    # Derivatives.

    def vjp(self, piece: Piece, g: Cotangents) -> list:
        """The gradients of the numbers that a piece takes from outside."""
        made = Derivative(self, g.values())
        out, active, rule = made.out, self.active, made.rule
        add, number, rules = out.add, made.number, made.rules
        cotangents = {i: out.input(ct) for i, ct in g.items()}
        for what, result, x, y, z in self._through(piece.start, piece.stop, -1):
            ct = cotangents.pop(result, None)
            if ct is None:
                continue
            if what.operands == 2:
                operands: tuple[int, ...] = x, y, result
                known = rules.get((what, active[x], active[y]))
                play, constants = rule(what, (active[x], active[y]), y) if known is None else known
            else:
                operands = (x, y, z)[: what.operands]
                play, constants = rule(what, tuple([active[i] for i in operands]), 0)
                operands = *operands, result
            for i, found in zip(operands, play(add, number, operands, ct, constants)):
                if found is not None:
                    before = cotangents.get(i)
                    cotangents[i] = found if before is None else add(_ADD, before, found)
        if cotangents.keys() - set(piece.takes):
            raise JitError(_TOO_LATE)
        out.close()
        return [made.tensor(cotangents.get(i)) for i in piece.takes]

    def jvp(self, piece: Piece, tangents: list) -> Tangents:
        """The tangents of a piece's results, for those of its inputs; the rules of single numbers are symmetric."""
        made = Derivative(self, tangents)
        out, rule = made.out, made.rule
        add, number = out.add, made.number
        # Most tangents of a direction that goes along one variable, or along those that share a colour, are zeros.
        moved = {i: out.input(t) for i, t in zip(piece.takes, tangents) if t is not None and not self._is_none(t)}
        for what, result, x, y, z in self._through(piece.start, piece.stop, 1):
            operands = (x, y) if what.operands == 2 else (x, y, z)[: what.operands]
            for i, flags in zip(operands, _ALONE[what.operands]):
                if i in moved:
                    play, constants = rule(what, flags, y)
                    found = play(add, number, (*operands, result), moved[i], constants)[flags.index(True)]
                    if found is not None:
                        before = moved.get(result)
                        moved[result] = found if before is None else add(_ADD, before, found)
        out.close()
        return Tangents(made, moved)

    def _is_none(self, tangent) -> bool:
        """True for a tangent that is 0 at each call."""
        if is_active(tangent):
            return False
        data = data_of(tangent)
        known = self.program.constants.get(data.place) if isinstance(data, Traced) else data
        return isinstance(known, (np.generic, np.ndarray)) and not known.ndim and not known

    # Gradients of results that are asked for.

    def _result_of(self, at: int) -> int:
        return self._operations[WIDTH * at + 1]

    def _rows(self) -> np.ndarray:
        """A row of each operation that a gradient goes through; a missing operand is 0, which is not a result."""
        return np.frombuffer(self._operations, np.intc).reshape(-1, WIDTH)

    def _piece_of(self, number: int) -> Piece:
        if len(self._pieces) == 1:
            return self._pieces[0]
        at = bisect_left(range(self._count()), number, key=self._result_of)
        return next(piece for piece in self._pieces if at < piece.stop)

    def whole(self, pick: Node) -> None:
        """Make the node of a result carry all of its gradient, by splitting the piece that computes it.

        The operations up to it become a piece of their own; the rest takes it, and all else that it uses of that piece,
        from there.

        Raises:
            JitError: the node is a copy; a pass with inputs is about to go through the piece.
        """
        # A piece is one node of the tape, and gradients between its operations never leave its rule. Who asks for the
        # gradient of a result in the middle, puts a hook on it, or begins there, would see the gradient from outside of
        # the piece at the node of this result alone, and miss that from the later operations of the piece. After a
        # split all of it arrives there. Edges to the piece exist by then: so the later half keeps the node, as its
        # results are used through it, and earlier results that are in use move to the new node. Each half has a later
        # time than its inputs (`time_of`), as the engine takes the youngest node first. Copies of the node keep the
        # old piece.
        (number,) = pick.saved
        if self._picks.get(number) is not pick:
            raise JitError("the gradient of a number inside of a function that a loop calls was asked for outside.")
        piece, rows = self._piece_of(number), self._rows()
        middle = bisect_right(range(self._count()), number, key=self._result_of)
        if middle == piece.stop or self._uses[1][number] < middle:
            return
        ways = wanted.get()
        if ways is not None and piece.node.seq in ways[1]:  # which has none to a new node
            raise JitError(_TOO_LATE)
        # A half takes what it may use and no more: a function of many results is split as often, and each piece goes
        # through all that it takes.
        taken, edges = np.array(piece.takes, np.intp), piece.node.edges
        sooner = np.flatnonzero(self._uses[0][taken] < middle)
        later = np.flatnonzero(self._uses[1][taken] >= middle)
        first = Node(_EMPTY, (), (), None, None)
        first.extra = None
        earlier = Piece(self, first, piece.start, middle, taken[sooner].tolist(), tuple(edges[k] for k in sooner))
        mine = rows[piece.start : middle, 1]
        for i in set(mine.tolist()) & self._picks.keys():
            self._picks[i].edges = (earlier.node,)
        at = self._pieces.index(piece)
        self._pieces.insert(at, earlier)
        crossing = mine[self._uses[1][mine] >= middle].tolist()
        takes = [*taken[later].tolist(), *crossing]
        edges = (*(edges[k] for k in later), *map(self.edge, crossing))
        self._pieces[at + 1] = Piece(self, piece.node, middle, piece.stop, takes, edges)

    @functools.cached_property
    def _uses(self) -> tuple[np.ndarray, np.ndarray]:
        """The first and the last operation that uses each number; behind the end and -1 where none does."""
        rows = self._rows()
        first, last = (np.full(len(self.places), none, np.intc) for none in (len(rows), -1))
        numbers = np.arange(len(rows), dtype=np.intc)
        for at in range(2, WIDTH):
            np.minimum.at(first, rows[:, at], numbers)
            np.maximum.at(last, rows[:, at], numbers)
        return first, last

    def begins(self, start: int) -> int:
        """The time of a piece."""
        return self.time_of(self._result_of(start)) if self._operations else self._first


class Piece:
    """A node of the tape: operations from ``start`` to before ``stop``, and the numbers that they take from outside."""

    def __init__(self, scalars: Scalars, node: Node, start: int, stop: int, takes: list[int], edges: tuple):
        self.node, self.start, self.stop, self.takes = node, start, stop, takes
        node.rule = Rule(
            "scalars",
            vjp=lambda g, saved, node: scalars.vjp(self, g),
            jvp=lambda tangents: scalars.jvp(self, tangents),
            partial=scalars.whole,
        )
        node.seq, node.edges = scalars.begins(start), edges


class Derivative:
    """Operations that take gradients or tangents through others; of tensors in a function that a loop calls."""

    def __init__(self, of: Scalars, given: Iterable):
        writing = recorder.get()
        here = writing is not None and writing.program is of.program and of.program.current is of.program
        self.of = of
        self._recorded = recording.get()
        if not here or any(not isinstance(data_of(x), (Traced, np.generic, np.ndarray, NoneType)) for x in given):
            self.out: Numbers = Batches(of.program)
        else:
            self.out = Scalars(of.program) if self._recorded else Numbers(of.program)
        self.number = of.places.__getitem__ if type(self.out) is Numbers else self._taken
        self._here: dict[int, int] = {}
        self.rules: dict[tuple, tuple[Callable, list[int]]] = {}  # but of powers, of which exponents make others

    def rule(self, what: Operation, flags: tuple, last: int) -> tuple[Callable, list[int]]:
        """An operation's rule for the operands that have a flag, as a :class:`.Template` plays it, with its constants.

        Args:
            last: the last operand, which of a power may be a number that is the same at each call.
        """
        if what is _COPY:
            return _passed_on, []
        exponent = self.of.literals.get(last) if what is _POWER else None
        key = (what, *flags) if what is not _POWER else (what, *flags, exponent)
        known = self.rules.get(key)
        if known is None:
            found = template(what, tuple(map(bool, flags)), exponent)
            known = self.rules[key] = found.play, list(map(self.out.literal, found.constants))
        return known

    def tensor(self, number: int | None):
        """A gradient or tangent, as a variable where the pass is recorded."""
        if number is None:
            return None
        found = self.out.result(number)
        return wrap(found) if self._recorded and isinstance(found, Traced) else found

    def _taken(self, i: int) -> int:
        found = self._here.get(i)
        if found is None:
            known = self.of.literals.get(i)
            if known is None:
                found = self.out.take(self.of.places[i], self.of.edge(i))
            else:
                found = self.out.literal(known)
            self._here[i] = found
        return found


class Tangents:
    """The tangents of results, by their numbers; None where there is none."""

    def __init__(self, made: Derivative, numbers: dict[int, int]):
        self._made, self._numbers = made, numbers

    def __getitem__(self, number: int):
        return self._made.tensor(self._numbers.get(number))


def _passed_on(add, number, operands, g, constants) -> tuple:
    return (g,)


_TOO_LATE = "the gradient of a number was asked for while a gradient went through its operations."

_ALONE = [[tuple(at == i for at in range(count)) for i in range(count)] for count in range(WIDTH - 1)]
"""By the number of operands, the flags of each of them alone."""

_COPY = operation("copy", (None,), np.positive)
_EMPTY = Rule("scalars", vjp=lambda g, saved, node: [])
_ADD, _MULTIPLY, _POWER = (operation(name, (None, None), kernel_of(name, 2)) for name in ("add", "multiply", "power"))
