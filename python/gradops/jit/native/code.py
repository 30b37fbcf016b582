"""Code for the native machine while it is written: positions in memory for the elements of each value.

An op that only moves elements (index, reshape, transpose, stack) writes no code: its result names the positions that
the operand's elements have.
"""

from __future__ import annotations

import contextlib
from array import array as words_of
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .instructions import FUNCTIONS, NUMBERS, OPERATIONS, ROWS, SHORT, VECTOR, WHOLES, named
from .machine import Machine

Cells = "int | np.ndarray"
"""The position of a number, or an array of the positions of an array's elements, of its shape."""

FLOATS = (np.dtype("float64"), np.dtype("float32"))
BOOL = np.dtype("bool")
_ROUNDED = {FLOATS[1]: "single", WHOLES[1]: "narrow"}
"""The operation that brings a result to a dtype's precision."""

_FEW = 4
"""Numbers that are copied by an instruction each, and in loops computed."""


_SOME = 64
"""Numbers that are looked at as Python's."""


class NotNative(Exception):
    """The reason why a step stays a call of NumPy."""


class Outside(NotNative):
    """The same of a step in a loop, whose own kernel can run there between two stretches of native code."""

    def __init__(self, step, reason: object):
        super().__init__(f"`{step.name}` in the loop: {reason}")
        self.step, self.reason = step, str(reason)


class OutsideCall:
    """A kernel that runs while native code waits.

    Attributes:
        end: where the instructions after it stand.
    """

    def __init__(self, kernel: Callable, operands: list[tuple[np.ndarray, np.dtype]], results: list, end: int):
        self._kernel, self._operands, self._results, self.end = kernel, operands, results, end

    def run(self, memory: np.ndarray) -> None:
        """Run the kernel on the memory."""
        whole = memory.view(np.int64)
        found = self._kernel(*[(whole if t in WHOLES else memory)[cells].astype(t) for cells, t in self._operands])
        for cells, x in zip(self._results, found if isinstance(found, (tuple, list)) else [found]):
            (whole if x.dtype in WHOLES else memory)[cells] = x


class Factor(NamedTuple):
    """The cells of a matrix' factors, of its exchanges of rows, of 0 if it is singular, and of the exchanges' sign."""

    matrix: np.ndarray
    rows: int
    regular: int
    sign: int


class Code:
    """Instructions, and the memory that they work on.

    Attributes:
        words: the instructions.
        calls: the kernels for which they wait, by number.
        by_position: cells of arrays that are read or written where values say.
        size: the size of the memory in numbers.
        passes: the instructions that loops run in a call, of each its rounds times its body, as if it began once.
        few: the largest size of an array that is computed by an instruction for each number.
        initial: its first contents: positions and values.
        outside: by their ``id`` the steps whose own kernels run, and why.
        called: the number of these that there are, by op and reason.
    """

    def __init__(self, machine: Machine, outside: dict[int, str]):
        self.machine = machine
        self.outside = outside
        self.called: Counter[tuple[str, str]] = Counter()
        self.words = words_of("i")
        self.size = 0
        self.passes = 0
        self.few = 1
        self.initial: list[tuple[int, np.ndarray | np.float64]] = []
        self.calls: list[OutsideCall] = []
        self.by_position: list[range] = []
        self._numbers: dict[bytes, int] = {}
        self._forms: dict[str, tuple[int, list[int]]] = {}
        self._factors: dict[bytes, Factor] = {}
        self._together: dict[bytes, int] = {}
        self._lines: dict[int, np.ndarray] = {}

    # Memory.

    def new(self, shape: tuple[int, ...] = ()):
        """Cells of their own for a value of that shape."""
        count = 1
        for n in shape:
            count *= n
        first = self.size
        self.size += count
        if not shape:
            return first
        line = np.arange(first, self.size)
        if count > _SOME:
            line.flags.writeable = False
            self._lines[id(line)] = line
        return line.reshape(shape)

    def whole(self, value):
        """The cells of whole numbers that are the same at each call."""
        return self.constant(np.asarray(value, np.int64).view(np.float64))

    def constant(self, value):
        """The cells of a value that is the same at each call."""
        if isinstance(value, (bool, int, float, np.generic)) or not value.ndim:
            # By its bits: 0.0 and -0.0 are equal, but no one constant, and a NaN is not equal to itself.
            number = np.float64(value)
            key = number.tobytes()
            found = self._numbers.get(key)
            if found is None:
                found = self._numbers[key] = self.new()
                self.initial.append((found, number))
            return found
        cells = self.new(value.shape)
        if value.size:
            self.initial.append((int(cells.flat[0]), np.asarray(value, np.float64).ravel()))
        return cells

    def template(self) -> np.ndarray:
        """The memory before the first call."""
        memory = np.zeros(max(self.size, 1))
        for start, values in self.initial:
            memory[start : start + values.size] = values
        return memory

    # Instructions.

    def number(self, name: str, operands: list) -> int:
        """The cell of an operation's result on single numbers of float64."""
        number, last = self.form(name)
        out = self.size
        self.size = out + 1
        self.words.extend((number, out, *operands, *last))
        return out

    def numbers(self, name: str, *operands: np.ndarray) -> np.ndarray:
        """The cells of one operation's results on many single numbers, in turn: an operand may be an earlier result."""
        number, last = self.form(name)
        count = len(operands[0])
        words = np.empty((count, SHORT), np.intc)
        words[:] = [number, 0, *(0 for _ in operands), *last]
        out = words[:, 1] = np.arange(self.size, self.size + count)
        for i, cells in enumerate(operands):
            words[:, 2 + i] = cells
        self.size += count
        self.words.frombytes(words.tobytes())
        return out

    def form(self, name: str) -> tuple[int, list[int]]:
        """The number of an operation on single numbers, and the words after its operands."""
        form = self._forms.get(name)
        if form is None:
            number, last = self._operation(name)
            count = OPERATIONS[name].operands if name in OPERATIONS else FUNCTIONS[name].operands
            form = self._forms[name] = number, [*last, 0, 0][: SHORT - 2 - count]
        return form

    def elementwise(self, name: str, operands: list, shape: tuple[int, ...], dtype):
        """The cells of an operation's result; of a function's where ``name`` is one of :data:`FUNCTIONS`.

        Raises:
            NotNative: an operation on whole numbers that there is not.
        """
        if dtype in WHOLES:
            found = named(name)
            if found is None:
                raise NotNative(f"dtype {dtype}")
            name = found
        return self.written(name, operands, shape, dtype)

    def written(self, name: str, operands: list, shape: tuple[int, ...], dtype):
        """The same, of an instruction's own name."""
        number, last = self._operation(name)
        if shape == ():
            out = self.size
            self.size += 1
            self._write(number, out, [x if type(x) is int else int(x) for x in operands], last)
            self._round(out, 0, dtype)
            return out
        flat = [self._flat(x, shape) for x in operands]
        first = self.size
        out = self.new(shape)
        count = out.size
        if count <= self.few:
            for i, cell in enumerate(out.ravel().tolist()):
                self._write(number, cell, [x if type(x) is int else int(x[i]) for x in flat], last)
        elif count:
            starts, strides = zip(*map(self._progression, flat))
            self._write_vector(number, first, [*starts, *last], count, strides)
        if count:
            self._round(first, count, dtype)
        return out

    def reduced(self, name: str, cells: np.ndarray, dtype) -> int:
        """A number of all elements of a vector of cells."""
        if len(cells) == 1:  # of a sum, which begins with 0.0, another zero where it is -0.0
            return self.number("add", [int(cells[0]), self.constant(0.0)]) if name == "sum" else int(cells[0])
        out = self.new()
        start, stride = self._progression(cells)
        self._write_vector(NUMBERS[name], out, [start], len(cells), (stride,))
        self._round(out, 0, dtype)
        return out

    def of_row(self, name: str, cells: np.ndarray, dtype=None) -> np.ndarray:
        """The cells of a vector's image by one of :data:`OF_ROWS`."""
        out = self.new((len(cells),))
        start, stride = self._progression(cells)
        self._write_vector(NUMBERS[name], int(out[0]), [start], len(cells), (stride,))
        self._round(int(out[0]), len(cells), dtype)
        return out

    def picked(self, cells: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """The cells of the elements of a vector at positions that are known to be inside."""
        out = self.new(positions.shape)
        start, stride = self._progression(cells)
        self.by_position.append(range(start, start + stride * len(cells)))
        self._write_vector(
            NUMBERS["pick"], int(out.flat[0]), [start, self.side_by_side(positions)], out.size, (stride,)
        )
        return out

    def dot(self, x: np.ndarray, y: np.ndarray, dtype) -> int:
        """The sum of products of two vectors of cells."""
        out = self.new()
        (a, sa), (b, sb) = self._progression(x), self._progression(y)
        self._write_vector(NUMBERS["dot"], out, [a, b], len(x), (sa, sb))
        self._round(out, 0, dtype)
        return out

    def product(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The cells of the product of two matrices of float64, by BLAS."""
        out = self.new((len(x), y.shape[1]))
        (a, sa), (b, sb) = self._matrix(x), self._matrix(y)
        number = NUMBERS["product"] | VECTOR
        self.words.extend((number, int(out[0, 0]), a, b, y.shape[0], len(x), sa, sb, y.shape[1], 0))
        return out

    def factor(self, a: np.ndarray) -> Factor:
        """The factor of a square matrix by LAPACK, taken once for all that follows in straight code."""
        found = self._factors.get(a.tobytes())
        if found is None:
            n = len(a)
            found = Factor(self._by_column(a), int(self.new((n,))[0]), self.new(), self.new())
            self._factors[a.tobytes()] = found
            words = (found.matrix[0, 0], found.rows, found.regular, found.sign, n, 0, 0, 0, 0)
            self.words.extend(map(int, (NUMBERS["factor"] | VECTOR, *words)))
        return found

    def solved(self, a: np.ndarray, b: np.ndarray) -> tuple[Factor, np.ndarray]:
        """The factor of a matrix, or of its transpose if that has one, and the solution for some right sides."""
        # A backward pass solves with the transpose of the matrix that the forward pass has factored; LAPACK solves both
        # with one factor.
        turned = a.tobytes() not in self._factors and np.ascontiguousarray(a.T).tobytes() in self._factors
        factor, out = self.factor(np.ascontiguousarray(a.T) if turned else a), self._by_column(b)
        words = (out[0, 0], factor.matrix[0, 0], factor.rows, out.shape[1], len(a), int(turned), 0, 0, 0)
        self.words.extend(map(int, (NUMBERS["solved"] | VECTOR, *words)))
        return factor, out

    def inverse(self, a: np.ndarray) -> tuple[Factor, np.ndarray]:
        """The factor of a matrix, and its inverse."""
        factor, room = self.factor(a), self.new((len(a),))
        out = self._by_column(factor.matrix)
        words = (out[0, 0], factor.rows, room[0], 0, len(a), 0, 0, 0, 0)
        self.words.extend(map(int, (NUMBERS["inverse"] | VECTOR, *words)))
        return factor, out

    def _by_column(self, cells: np.ndarray) -> np.ndarray:
        """A copy whose columns lie one after the other."""
        turned = cells.T
        out = self.new(turned.shape)
        self._copy(turned.ravel(), int(out[0, 0]))
        return out.T

    def _matrix(self, cells: np.ndarray) -> tuple[int, int]:
        """First position and distance of rows, negative of columns; elements at other positions are put together."""
        rows, columns = cells.shape
        first = int(cells[0, 0])
        down = int(cells[1, 0]) - first if rows > 1 else columns
        right = int(cells[0, 1]) - first if columns > 1 else 1
        if (cells == first + down * np.arange(rows)[:, None] + right * np.arange(columns)).all():
            if right == 1 and down >= columns:
                return first, down
            if down == 1 and right >= rows:
                return first, -right
        return self.side_by_side(cells), columns

    def copied(self, cell: int) -> int:
        """A cell of its own with a number, which may be written over."""
        return self.number("copy", [cell])

    def move(self, source: np.ndarray, cells: np.ndarray) -> None:
        """Write the values in ``source`` to ``cells``, which may be among those of ``source``."""
        changed = source != cells
        source, cells = source[changed], cells[changed]
        # A state whose parts change places (`a, b = b, a`) would be half written when it is read: the old values are
        # put elsewhere first.
        if np.isin(source, cells).any():
            source = np.arange(cells.size) + self._gathered(source)
        for part in np.split(np.arange(cells.size), np.flatnonzero(np.diff(cells) != 1) + 1):
            if part.size:
                self._copy(source[part], int(cells[part[0]]))

    # Positions, loops and branches.

    @contextlib.contextmanager
    def looping(self):
        """A scope for code that runs many times: small arrays are computed number by number.

        That is quicker than as vectors, and leaves :mod:`.peephole` more to do.
        """
        # A factor that was taken before the loop is of another matrix in the next round, and one taken inside may be of
        # none after it, where the loop's body was skipped: neither is known on the other side. So it is with elements.
        before, self.few = self.few, _FEW
        self._forget()
        try:
            yield
        finally:
            self.few = before
            self._forget()

    def _forget(self) -> None:
        self._factors.clear()
        self._together.clear()

    def here(self) -> int:
        """The place of the next instruction."""
        return len(self.words)

    def load(self, cells, source: int, counter: int, stride: int | None = None) -> None:
        """Write the row of that number, of those from ``source`` on, to ``cells``; both lie side by side."""
        size = np.size(cells)
        self._rows("load", int(np.min(cells)) if size else 0, source, counter, size, stride)

    def store(self, cells, room: int, counter: int, stride: int | None = None) -> None:
        """Write ``cells`` to the row of that number from ``room`` on."""
        self._rows("store", room, self.side_by_side(cells), counter, np.size(cells), stride)

    def _rows(self, name: str, out: int, a: int, counter: int, size: int, stride: int | None) -> None:
        stride = size if stride is None else stride
        short = f"{name}{'' if size == 1 else size}"
        if short in ROWS:
            self.words.extend((NUMBERS[short], out, a, counter, stride))
        elif size:
            self._write_vector(NUMBERS[name], out, [a, counter], size, (stride,))

    def index(self, cell: int, size: int, axis: int) -> int:
        """The cell of a whole number as a position among ``size``; the program ends where it is none."""
        out = self.size
        self.size += 1
        self.words.extend((NUMBERS["index"], out, cell, size, axis))
        return out

    def with_checks(self, words: np.ndarray, first: int, determinants: np.ndarray, zero: int) -> np.ndarray:
        """Instructions in rows, after those of determinants others that end the program where one is 0.

        Args:
            words: the instructions, which come next.
            first: the cell of the first one's result, after which the others' come.
            determinants: cells, in rising order.
            zero: the cell of 0.
        """
        count, (number, more) = len(determinants), self.form("not_equal")
        is_good = self.new((count,))
        checks = np.zeros((count, 2, SHORT), np.intc)
        checks[:, 0, :4] = np.stack([np.full(count, number), is_good, determinants, np.full(count, zero)], 1)
        checks[:, 0, 4 : 4 + len(more)] = more
        checks[:, 1, 0], checks[:, 1, 1] = NUMBERS["require"], is_good
        before = np.maximum(determinants - first + 1, 0)
        return np.insert(words, np.repeat(before, 2), checks.reshape(-1, SHORT), 0)

    def call(self, kernel: Callable, given: list[tuple[np.ndarray, np.dtype]], results: list) -> None:
        """Run ``kernel`` on arrays, by their cells and dtypes, which gives those with the cells of ``results``."""
        self.words.extend((NUMBERS["outside"], len(self.calls), 0, 0, 0))
        self.calls.append(OutsideCall(kernel, given, results, self.here()))

    def require(self, cell: int) -> None:
        """End the program where ``cell`` is 0, as NumPy's kernels must run."""
        self.words.extend((NUMBERS["require"], cell, 0, 0, 0))

    def skip_unless(self, cell: int) -> int:
        """Go on elsewhere where ``cell`` is 0: at the place where :meth:`lands` is called with this result."""
        self._forget()
        self.words.extend((NUMBERS["unless"], cell, 0, 0, 0))
        return len(self.words) - SHORT

    def lands(self, skip: int) -> None:
        """Set the place where a skip continues: here."""
        self._forget()
        self.words[skip + 2] = len(self.words) - skip

    def again(self, top: int, counter: int, order: range) -> None:
        """Go back to the instruction at ``top`` with the next number, after the last go on."""
        self.passes += len(order) * (self.here() - top) // SHORT
        self.words.extend((NUMBERS["again"], counter, self.here() - top, order.step, order[-1]))

    def side_by_side(self, cells) -> int:
        """The first of the positions where a value's elements lie one after the other, row by row."""
        if type(cells) is int:
            return cells
        flat = cells.ravel()
        if not flat.size:
            return 0
        start, stride = self._progression(flat)
        return start if stride == 1 or flat.size == 1 else self._gathered(flat)

    def _operation(self, name: str) -> tuple[int, list[int]]:
        if name in NUMBERS:
            return NUMBERS[name], []
        function = FUNCTIONS[name]
        call = f"{'scipy' if function.of_scipy else 'c'}{function.operands}"
        return NUMBERS[call], [self.machine.needs(name)]

    def _round(self, out: int, count: int, dtype) -> None:
        """Bring the numbers just written to the precision of float32 or int32, where they are of that dtype."""
        # Memory is doubles and int64's alone. An operation on two float32 numbers in double precision, rounded once,
        # has the bits of float32's own for sums, products, quotients and roots (Figueroa 1995); int32 wraps as its low
        # 32 bits do.
        rounded = _ROUNDED.get(dtype)
        if rounded is None:
            return
        if count > 1:
            self._write_vector(NUMBERS[rounded], out, [out], count, (1,))
        else:
            self._write(NUMBERS[rounded], out, [out], [])

    def _write(self, number: int, out: int, operands: list[int], last: list[int]) -> None:
        a, b, c = (*operands, *last, 0, 0)[:3]
        self.words.extend((number, out, a, b, c))

    def _write_vector(self, number: int, out: int, operands: list[int], count: int, strides) -> None:
        a, b, c = (*operands, 0, 0, 0)[:3]
        sa, sb, sc = (*strides, 0, 0, 0)[:3]
        self.words.extend((number | VECTOR, out, a, b, c, count, sa, sb, sc, 0))

    def _flat(self, cells, shape: tuple[int, ...]):
        """A number's position, or those of all elements of an array of ``shape``."""
        if type(cells) is int:
            return cells
        return (cells if cells.shape == shape else np.broadcast_to(cells, shape)).ravel()

    def _progression(self, flat) -> tuple[int, int]:
        """First position and stride; elements at other positions are put together first."""
        if type(flat) is int:
            return flat, 0
        line = self._lines.get(id(flat.base))
        if line is not None and flat.size == line.size and flat.strides == line.strides:  # all of it, as it was made
            return int(flat[0]), 1
        first, *second = flat[:2].tolist()
        if not second:
            return first, 0
        stride = second[0] - first
        return (first, stride) if _is_progression(flat, stride) else (self._gathered(flat), 1)

    def _gathered(self, flat: np.ndarray) -> int:
        """The first cell of the values in cells, put together once for all that follows in straight code."""
        key = flat.tobytes()
        out = self._together.get(key)
        if out is None:
            out = self._together[key] = self.size
            self.size += flat.size
            self._copy(flat, out)
        return out

    def _copy(self, flat: np.ndarray, out: int) -> None:
        """Write the values in cells to those from ``out`` on."""
        if flat.size <= _FEW:
            for i, cell in enumerate(flat.tolist()):
                self._write(NUMBERS["copy"], out + i, [cell], [])
        elif _is_progression(flat, 1):
            self._write_vector(NUMBERS["copy"], out, [int(flat[0])], flat.size, (1,))
        else:
            self._write_vector(NUMBERS["gather"], out, [], flat.size, ())
            self.words.frombytes(flat.astype(np.intc).tobytes())


def _is_progression(flat: np.ndarray, stride: int) -> bool:
    if flat.size > _SOME:
        return bool((flat[1:] - flat[:-1] == stride).all())
    some = flat.tolist()  # NumPy's calls would take longer
    first, last = some[0], some[-1]
    if stride == 0:
        return some.count(first) == len(some)
    return last == first + stride * (len(some) - 1) and some == list(range(first, last + stride, stride))
