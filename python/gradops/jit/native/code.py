"""Emit bytecode for the native machine, and allocate the memory cells that it works on.

:class:`Code` is one bytecode program under construction. The lowering rules call its methods with the cells of operands
and receive the cells of results; :class:`.run.Run` executes the finished code. Cells of an array are an integer array
of the value's shape, so an op that only moves elements (indexing, reshape, transpose, stack) emits no instruction:
NumPy indexes the cells instead.
"""

from __future__ import annotations

import contextlib
from array import array as words_of
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .instructions import FUNCTIONS, NUMBERS, OPERATIONS, ROWS, SHORT, WHOLES, integer_instruction
from .machine import Machine

Cells = "int | np.ndarray"
"""The cell of a number, or an array's cells, in an array of its shape."""

FLOATS = (np.dtype("float64"), np.dtype("float32"))
BOOL = np.dtype("bool")
_ROUNDED = {FLOATS[1]: "single", WHOLES[1]: "narrow"}
"""The instruction that rounds or wraps a result to its dtype; memory holds only float64 and int64."""


_FEW = 4
"""The largest number of elements that are copied, or in loops computed, by one scalar instruction each."""


_SOME = 64
"""The largest array of cells that is inspected as a Python list, which is faster than NumPy calls on so few."""


class NotNative(Exception):
    """Raised by a lowering rule; the text says why the step must stay a NumPy call."""


class Outside(NotNative):
    """Raised if NumPy kernels of steps in a loop must be called there, between two stretches of native code."""


class OutsideCall:
    """A NumPy kernel that is called while native code is suspended.

    Attributes:
        end: the index of the word where the code resumes.
    """

    def __init__(self, kernel: Callable, operands: list[tuple[np.ndarray, np.dtype]], results: list, end: int):
        self._kernel, self._operands, self._results, self.end = kernel, operands, results, end

    def run(self, memory: np.ndarray) -> None:
        """Call the kernel with operands from the memory, and write its results there."""
        whole = memory.view(np.int64)
        found = self._kernel(*[(whole if t in WHOLES else memory)[cells].astype(t) for cells, t in self._operands])
        for cells, x in zip(self._results, found if isinstance(found, (tuple, list)) else [found]):
            (whole if x.dtype in WHOLES else memory)[cells] = x


class Factor(NamedTuple):
    """The cells of an LU factorization.

    Attributes:
        matrix: L and U in one matrix, as LAPACK stores them.
        rows: the first cell of the row exchanges, which are 32-bit integers.
        regular: 1 for a regular matrix, 0 for a singular one.
        sign: the sign of the row permutation.
    """

    matrix: np.ndarray
    rows: int
    regular: int
    sign: int


class Code:
    """Bytecode and its memory while they are written.

    Attributes:
        words: the instructions.
        calls: the NumPy kernels that instructions ``outside`` call, in order.
        by_position: cells of arrays that are read or written at computed indices.
        size: the number of cells allocated so far.
        passes: instructions that loops execute in one call: the sum of iterations times body, each loop entered once.
        few: the largest array whose elements get one scalar instruction each instead of a vector instruction.
        initial: initial contents of the memory, as pairs of a first cell and values.
        outside: by the ``id`` of a step, why its NumPy kernel is called.
        called: the number of such calls, by op and reason.
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
        """Allocate consecutive cells for a value of a shape."""
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
        """Return the cells of a constant integer or integer array."""
        return self.constant(np.asarray(value, np.int64).view(np.float64))

    def constant(self, value):
        """Return the cells of a constant; equal numbers share a cell."""
        if isinstance(value, (bool, int, float, np.generic)) or not value.ndim:
            # The key is the bits: 0.0 and -0.0 compare equal but are different constants, and NaN differs from itself.
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
        """Return the initial memory, which each call starts from."""
        memory = np.zeros(max(self.size, 1))
        for start, values in self.initial:
            memory[start : start + values.size] = values
        return memory

    # Instructions.

    def number(self, name: str, operands: list) -> int:
        """Emit an operation on float64 numbers; return the cell of its result."""
        number, last = self.form(name)
        out = self.size
        self.size = out + 1
        self.words.extend((number, out, *operands, *last))
        return out

    def numbers(self, name: str, *operands: np.ndarray) -> np.ndarray:
        """Emit an operation once for each element of the operands; return the cells of the results.

        The instructions execute in order, so an operand may be an earlier result.
        """
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
        """Return the opcode of an operation on numbers, and the words that follow its operands."""
        form = self._forms.get(name)
        if form is None:
            number, last = self._operation(name)
            count = OPERATIONS[name].operands if name in OPERATIONS else FUNCTIONS[name].operands
            form = self._forms[name] = number, [*last, 0, 0][: SHORT - 2 - count]
        return form

    def elementwise(self, name: str, operands: list, shape: tuple[int, ...], dtype):
        """Emit an elementwise operation or function; return the cells of its result.

        Args:
            name: an elementwise instruction for floats, or one of :data:`FUNCTIONS`.
            operands: cells that broadcast to ``shape``.
            dtype: the dtype of the result; for an integer dtype the integer instruction is used.

        Raises:
            NotNative: there is no such instruction for integers.
        """
        if dtype in WHOLES:
            found = integer_instruction(name)
            if found is None:
                raise NotNative(f"dtype {dtype}")
            name = found
        return self.written(name, operands, shape, dtype)

    def written(self, name: str, operands: list, shape: tuple[int, ...], dtype):
        """Emit the elementwise instruction of exactly this name; otherwise as :meth:`elementwise`."""
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
        """Emit a reduction of a vector to a number, one of :data:`.REDUCTIONS`; return its cell."""
        if len(cells) == 1:  # NumPy's sum starts from 0.0, which turns -0.0 into 0.0
            return self.number("add", [int(cells[0]), self.constant(0.0)]) if name == "sum" else int(cells[0])
        out = self.new()
        start, stride = self._progression(cells)
        self._write_vector(NUMBERS[name], out, [start], len(cells), (stride,))
        self._round(out, 0, dtype)
        return out

    def row_function(self, name: str, cells: np.ndarray, dtype=None) -> np.ndarray:
        """Emit a function from a vector to a vector, one of :data:`.OF_ROWS`; return the cells of the result."""
        out = self.new((len(cells),))
        start, stride = self._progression(cells)
        self._write_vector(NUMBERS[name], int(out[0]), [start], len(cells), (stride,))
        self._round(int(out[0]), len(cells), dtype)
        return out

    def picked(self, cells: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Emit a gather from a vector at computed indices, which must be in bounds; return the cells of the result."""
        out = self.new(positions.shape)
        start, stride = self._progression(cells)
        self.by_position.append(range(start, start + stride * len(cells)))
        self._write_vector(NUMBERS["pick"], int(out.flat[0]), [start, self.contiguous(positions)], out.size, (stride,))
        return out

    def dot(self, x: np.ndarray, y: np.ndarray, dtype) -> int:
        """Emit the dot product of two vectors; return the cell of the result."""
        out = self.new()
        (a, sa), (b, sb) = self._progression(x), self._progression(y)
        self._write_vector(NUMBERS["dot"], out, [a, b], len(x), (sa, sb))
        self._round(out, 0, dtype)
        return out

    def product(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Emit a call of BLAS for the product of two float64 matrices; return the cells of the result."""
        out = self.new((len(x), y.shape[1]))
        (a, sa), (b, sb) = self._matrix(x), self._matrix(y)
        number = self.machine.vector(NUMBERS["product"])
        self.words.extend((number, int(out[0, 0]), a, b, y.shape[0], len(x), sa, sb, y.shape[1]))
        return out

    def factor(self, a: np.ndarray) -> Factor:
        """Emit a call of LAPACK that factors a square matrix, unless straight-line code before it has already."""
        found = self._factors.get(a.tobytes())
        if found is None:
            n = len(a)
            found = Factor(self._column_major(a), int(self.new((n,))[0]), self.new(), self.new())
            self._factors[a.tobytes()] = found
            words = (found.matrix[0, 0], found.rows, found.regular, found.sign, n, 0, 0, 0)
            self.words.extend(map(int, (self.machine.vector(NUMBERS["factor"]), *words)))
        return found

    def solved(self, a: np.ndarray, b: np.ndarray) -> tuple[Factor, np.ndarray]:
        """Emit a call of LAPACK that solves ``a x = b``; return the factor used and the cells of ``x``."""
        # A backward pass solves with the transpose of the matrix that the forward pass factored. LAPACK solves both
        # systems with one factorization.
        turned = a.tobytes() not in self._factors and np.ascontiguousarray(a.T).tobytes() in self._factors
        factor, out = self.factor(np.ascontiguousarray(a.T) if turned else a), self._column_major(b)
        words = (out[0, 0], factor.matrix[0, 0], factor.rows, out.shape[1], len(a), int(turned), 0, 0)
        self.words.extend(map(int, (self.machine.vector(NUMBERS["solved"]), *words)))
        return factor, out

    def inverse(self, a: np.ndarray) -> tuple[Factor, np.ndarray]:
        """Emit a call of LAPACK that inverts a matrix; return the factor used and the cells of the inverse."""
        factor, room = self.factor(a), self.new((len(a),))
        out = self._column_major(factor.matrix)
        words = (out[0, 0], factor.rows, room[0], 0, len(a), 0, 0, 0)
        self.words.extend(map(int, (self.machine.vector(NUMBERS["inverse"]), *words)))
        return factor, out

    def _column_major(self, cells: np.ndarray) -> np.ndarray:
        """Emit a copy of a matrix in column-major order; return its cells."""
        turned = cells.T
        out = self.new(turned.shape)
        self._copy(turned.ravel(), int(out[0, 0]))
        return out.T

    def _matrix(self, cells: np.ndarray) -> tuple[int, int]:
        """Return the first cell and the row stride of a matrix; for contiguous columns, minus the column stride.

        The matrix is copied first if neither its rows nor its columns are contiguous.
        """
        rows, columns = cells.shape
        first = int(cells[0, 0])
        down = int(cells[1, 0]) - first if rows > 1 else columns
        right = int(cells[0, 1]) - first if columns > 1 else 1
        if (cells == first + down * np.arange(rows)[:, None] + right * np.arange(columns)).all():
            if right == 1 and down >= columns:
                return first, down
            if down == 1 and right >= rows:
                return first, -right
        return self.contiguous(cells), columns

    def copied(self, cell: int) -> int:
        """Emit a copy of a number to a new cell, which the caller may overwrite."""
        return self.number("copy", [cell])

    def move(self, source: np.ndarray, cells: np.ndarray) -> None:
        """Emit a copy from ``source`` to ``cells``, which may overlap."""
        changed = source != cells
        source, cells = source[changed], cells[changed]
        # A state whose parts are swapped (`a, b = b, a`) would be half overwritten when it is read, so overlapping
        # values are copied elsewhere first.
        if np.isin(source, cells).any():
            source = np.arange(cells.size) + self._gathered(source)
        for part in np.split(np.arange(cells.size), np.flatnonzero(np.diff(cells) != 1) + 1):
            if part.size:
                self._copy(source[part], int(cells[part[0]]))

    # Computed indices, loops and branches.

    @contextlib.contextmanager
    def looping(self):
        """Enter the scope of a loop body, where arrays of up to four elements are computed by scalar instructions.

        Scalar instructions are faster than vector instructions on so few elements, and :mod:`.peephole` can merge them.
        """
        # Factors and gathered copies are reused only within straight-line code: one from before the loop is stale in
        # the next iteration, and one from inside may never have been computed if the body was skipped.
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

    def next_word(self) -> int:
        """Return the index of the next instruction's first word."""
        return len(self.words)

    def load(self, cells, source: int, counter: int, stride: int | None = None) -> None:
        """Emit a copy of one row to ``cells``.

        Args:
            cells: consecutive cells, which receive the row.
            source: the first cell of row 0.
            counter: the cell of the row's number, an integer.
            stride: cells from one row to the next; the size of a row by default.
        """
        size = np.size(cells)
        self._rows("load", int(np.min(cells)) if size else 0, source, counter, size, stride)

    def store(self, cells, room: int, counter: int, stride: int | None = None) -> None:
        """Emit a copy of ``cells`` to one row; ``room`` is the first cell of row 0, the rest as in :meth:`load`."""
        self._rows("store", room, self.contiguous(cells), counter, np.size(cells), stride)

    def _rows(self, name: str, out: int, a: int, counter: int, size: int, stride: int | None) -> None:
        stride = size if stride is None else stride
        short = f"{name}{'' if size == 1 else size}"
        if short in ROWS:
            self.words.extend((NUMBERS[short], out, a, counter, stride))
        elif size:
            self._write_vector(NUMBERS[name], out, [a, counter], size, (stride,))

    def index(self, cell: int, size: int, axis: int) -> int:
        """Emit a bounds check of an index into an axis of ``size``; return the cell of the nonnegative index.

        Execution ends if the index is out of bounds.
        """
        out = self.size
        self.size += 1
        self.words.extend((NUMBERS["index"], out, cell, size, axis))
        return out

    def insert_checks(self, words: np.ndarray, first: int, determinants: np.ndarray, zero: int) -> np.ndarray:
        """Insert checks into a table of instructions that end execution if a determinant is 0.

        Args:
            words: one instruction per row, to be appended next.
            first: the cell of the first row's result; the other results follow it.
            determinants: the cells to check, in increasing order; each check follows the instruction that computes it.
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
        """Emit a call of a NumPy kernel.

        Args:
            kernel: takes arrays and returns one array or several.
            given: the cells and dtype of each operand.
            results: the cells of each result.
        """
        self.words.extend((NUMBERS["outside"], len(self.calls), 0, 0, 0))
        self.calls.append(OutsideCall(kernel, given, results, self.next_word()))

    def require(self, cell: int) -> None:
        """Emit a check that ends execution if ``cell`` is 0; the reference executor then repeats the run."""
        self.words.extend((NUMBERS["require"], cell, 0, 0, 0))

    def skip_unless(self, cell: int) -> int:
        """Emit a forward jump that is taken if ``cell`` is 0; pass the result to :meth:`set_target` at the target."""
        self._forget()
        self.words.extend((NUMBERS["unless"], cell, 0, 0, 0))
        return len(self.words) - SHORT

    def set_target(self, skip: int) -> None:
        """Set the target of a forward jump to the next instruction."""
        self._forget()
        self.words[skip + 2] = len(self.words) - skip

    def end_loop(self, top: int, counter: int, order: range) -> None:
        """Emit the end of a loop: step the counter and jump back to ``top``, or fall through after the last number."""
        self.passes += len(order) * (self.next_word() - top) // SHORT
        self.words.extend((NUMBERS["again"], counter, self.next_word() - top, order.step, order[-1]))

    def contiguous(self, cells) -> int:
        """Return the first of consecutive cells that hold a value in row-major order; scattered values are copied."""
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
        """Round the results just written to float32 or wrap them to int32, if that is their dtype."""
        # Memory holds only float64 and int64. For sums, products, quotients and roots, an operation on two float32
        # numbers in double precision that is then rounded has the bits of the float32 operation (Figueroa 1995); int32
        # wraps like the low 32 bits of int64.
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
        self.words.extend((self.machine.vector(number), out, a, b, c, count, sa, sb, sc))

    def _flat(self, cells, shape: tuple[int, ...]):
        """Return the cell of a number, or the cells of an operand broadcast to ``shape`` as a vector."""
        if type(cells) is int:
            return cells
        return (cells if cells.shape == shape else np.broadcast_to(cells, shape)).ravel()

    def _progression(self, flat) -> tuple[int, int]:
        """Return the first cell and the stride of a vector; scattered elements are copied first."""
        if type(flat) is int:
            return flat, 0
        line = self._lines.get(id(flat.base))
        if line is not None and flat.size == line.size and flat.strides == line.strides:  # a whole value from `new`
            return int(flat[0]), 1
        first, *second = flat[:2].tolist()
        if not second:
            return first, 0
        stride = second[0] - first
        return (first, stride) if _is_progression(flat, stride) else (self._gathered(flat), 1)

    def _gathered(self, flat: np.ndarray) -> int:
        """Return the first cell of a contiguous copy, shared by the straight-line code that follows."""
        key = flat.tobytes()
        out = self._together.get(key)
        if out is None:
            out = self._together[key] = self.size
            self.size += flat.size
            self._copy(flat, out)
        return out

    def _copy(self, flat: np.ndarray, out: int) -> None:
        """Emit a copy of a vector of cells to consecutive cells from ``out`` on."""
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
    some = flat.tolist()  # faster than NumPy calls on so few
    first, last = some[0], some[-1]
    if stride == 0:
        return some.count(first) == len(some)
    return last == first + stride * (len(some) - 1) and some == list(range(first, last + stride, stride))
