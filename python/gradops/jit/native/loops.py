"""Lowering rules of loops and branches: ``scan``, ``while_loop`` and ``cond``.

A body's steps are lowered once, into the same bytecode as the steps around the loop, between jump instructions. Each
rule takes a :class:`.Lowering`, the step and its arguments, which ``jit/loops.py`` and ``jit/control.py`` define.
"""

from __future__ import annotations

import numpy as np

from ..program import Program
from ..steps import Step
from .code import BOOL, FLOATS, Code, NotNative, Outside
from .instructions import WHOLES
from .lowering import Lowering
from .peephole import tightened
from .plan import LARGEST, Plan, is_known
from .registry import LOOPS, loop

LONGEST = 10_000_000
"""The most iterations of a native loop, which a keyboard interrupt cannot stop."""


@loop("scan")
def _scan(lowering: Lowering, step, loop, state, rows, held):
    code, body = lowering.code, loop.body
    inner = _body_lowering(lowering, body)
    if len(loop.order) > LONGEST:
        raise NotNative("a loop so long that an interrupt must be able to stop it")
    counter = code.copied(code.whole(loop.order[0]))
    current, whole = _state(lowering, state)
    loads, here = _rows(code, [lowering.array(x) for x in rows])
    inner.give([*current, *here, *map(lowering.cells, held)])
    after = [code.new((loop.count, *shape)) for shape, _ in loop.of_row]
    before = code.new((loop.count, whole.size)) if loop.kept else np.empty((loop.count, 0), int)

    top = code.next_word()
    for cells, source, stride in loads:
        code.load(cells, source, counter, stride)
    # The derivative needs the state before each row. It is stored before the body, whose instructions may then
    # overwrite the state with the next one.
    if before.size:
        code.store(whole, _first_cell(before), counter)
    begin, known = code.next_word(), len(code.by_position)
    with code.looping():
        new, results = inner.lowered(body)
    for y, room in zip(results, after):
        code.store(y, _first_cell(room), counter)
    following = _flat(new)
    left = tightened(code.words, begin, following, whole, code.by_position[known:])
    code.move(following[left], whole[left])
    code.end_loop(top, counter, loop.order)
    return [*current, *after, *(_columns(before, [x.shape for x in current]) if loop.kept else [])]


@loop("while_loop")
def _while(lowering: Lowering, step, loop, state, held_by_condition, held):
    if loop.bound is None or loop.bound > LONGEST:
        raise NotNative(
            "a loop without bound, which runs natively for a limited number of steps so that an interrupt can stop it"
        )
    code = lowering.code
    condition, body = _body_lowering(lowering, loop.condition), _body_lowering(lowering, loop.body)
    counter = code.copied(code.whole(0))
    current, whole = _state(lowering, state)
    condition.give([*current, *map(lowering.cells, held_by_condition)])
    body.give([*current, *map(lowering.cells, held)])

    # The state is updated only after a body whose condition was true. So it is the result whether the loop ends by its
    # condition or at its bound.
    top = code.next_word()
    with code.looping():
        ((holds,),) = condition.lowered(loop.condition)
        leave = code.skip_unless(int(holds))
        (new,) = body.lowered(loop.body)
    code.move(_flat(new), whole)
    code.end_loop(top, counter, range(loop.bound))
    code.set_target(leave)
    return current


@loop("cond")
def _cond(lowering: Lowering, step, branch, index, held):
    code, bodies = lowering.code, branch.bodies
    inners = [_body_lowering(lowering, body) for body in bodies]
    # Operands of the branches are converted and copied before the first jump. In a branch that would happen only if the
    # branch is taken, and later code, which reuses the copies, would read uninitialized cells.
    for inner, given in zip(inners, held):
        inner.give([*map(lowering.cells, given)])
    at = int(lowering.cells(index))
    if np.asarray(lowering.example(index)).dtype == BOOL:
        choices = [(inners[1], bodies[1], at), (inners[0], bodies[0], None)]
    else:
        tests = [code.number("whole_less_equal", [at, code.whole(i)]) for i in range(len(bodies) - 1)]
        choices = list(zip(inners, bodies, [*tests, None]))
    whole = code.new((sum(x.size for x in bodies[0].values(0)),))

    done = []
    for inner, body, test in choices:
        skip = None if test is None else code.skip_unless(test)
        (results,) = inner.lowered(body)
        code.move(_flat(results), whole)
        if skip is not None:
            done.append(code.skip_unless(code.constant(0.0)))
            code.set_target(skip)
    for skip in done:
        code.set_target(skip)
    return _parts(whole, [np.shape(x) for x in bodies[0].values(0)])


def _state(lowering: Lowering, state) -> tuple[list[np.ndarray], np.ndarray]:
    """Allocate a loop's state and copy its initial value there; return the cells of each part, and all cells."""
    starts = [lowering.array(x) for x in state]
    whole = lowering.code.new((sum(x.size for x in starts),))
    lowering.code.move(_flat(starts), whole)
    return _parts(whole, [x.shape for x in starts]), whole


def _rows(code: Code, rows: list[np.ndarray]) -> tuple[list[tuple[np.ndarray, int, int]], list[np.ndarray]]:
    """Plan how a loop's body reads its row of each array.

    Returns:
        The loads at the start of each iteration, as target cells, first cell of row 0 and stride, where adjacent
        arrays share a load; and for each array the cells of its current row. An array whose rows are all the same cells
        needs no load.
    """
    loads: list[tuple[np.ndarray, int, int]] = []
    here = []
    for x in rows:
        lines = x.reshape(len(x), x[0].size)
        if not lines.size or (lines == lines[0]).all():
            here.append(x[0])
            continue
        source, stride = int(lines[0, 0]), int(lines[1, 0] - lines[0, 0])
        if (lines != source + stride * np.arange(len(x))[:, None] + np.arange(lines.shape[1])).any():
            source, stride = code.contiguous(x), lines.shape[1]
        cells = code.new((lines.shape[1],))
        here.append(cells.reshape(x.shape[1:]))
        if loads and (source, stride) == (loads[-1][1] + loads[-1][0].size, loads[-1][2]):
            cells, source = np.concatenate([loads[-1][0], cells]), loads.pop()[1]
        loads.append((cells, source, stride))
    return loads, here


def _first_cell(cells) -> int:
    return int(cells.flat[0]) if cells.size else 0


def _flat(parts: list) -> np.ndarray:
    return np.concatenate([np.ravel(x) for x in parts]) if parts else np.arange(0)


def _body_lowering(lowering: Lowering, body) -> Inner:
    """Return the lowering of a body, which writes to the same code.

    Raises:
        NotNative: a step of the body cannot be native, and its NumPy kernel cannot be called within the loop.
    """
    # All or nothing: a loop in native code cannot be split into phases as straight-line code can.
    plan = Plan(body.program, [step.uses for step in body.steps], is_body=True)
    plan.note_inputs(body.program.inputs)
    for step in body.steps:
        reason = plan.why_not(step, step.uses)
        if reason is not None and id(step) not in lowering.code.outside:
            _note_outside(lowering.code, body.program, step, reason)
        plan.take(step)
    for place in body.program.inputs:
        dtype = np.asarray(body.program.value(place)).dtype
        if dtype not in FLOATS and dtype not in WHOLES and dtype != BOOL:
            raise NotNative(f"a state or rows of dtype {dtype}")
    return Inner(body.program, lowering.code)


def _note_outside(code: Code, program: Program, step: Step, reason: object) -> None:
    """Have the NumPy kernel of a step called within the loop; raises NotNative if that is impossible."""
    values = [np.asarray(program.value(p)) for p in (*step.places, *step.uses) if p not in program.constants]
    unknown = [f"dtype {x.dtype}" for x in values if not is_known(x.dtype)]
    if unknown or step.name in LOOPS or any(x.size > LARGEST for x in values):
        raise NotNative(f"`{step.name}` in the loop: {(*unknown, reason)[0]}")
    code.outside[id(step)] = str(reason)


class Inner(Lowering):
    """Writes the code of a body's steps."""

    def give(self, cells: list) -> None:
        """Set the cells of the body's arguments."""
        for place, x in zip(self.program.inputs, cells, strict=True):
            self.take(place, x)

    def lowered(self, body) -> list[list]:
        """Write the code of the body's steps; return the cells of its groups of results.

        Raises:
            Outside: the code must be written again, as a rule refused a step when part of its code was written.
        """
        refused = False
        for step in body.steps:
            try:
                self.lower(step)
            except Outside:
                raise
            except NotNative as reason:
                _note_outside(self.code, self.program, step, reason)
                self.lower(step)  # so that all refusals are found at once
                refused = True
        if refused:
            raise Outside
        return [[self.cells(p, np.asarray(self.example(p)).dtype) for p in group] for group in body.outputs]


def _columns(cells: np.ndarray, shapes: list[tuple]) -> list[np.ndarray]:
    """Split a matrix of cells by columns; return the cells of arrays whose rows have the given shapes."""
    ends = np.cumsum([np.prod(shape, dtype=int) for shape in shapes])
    return [part.reshape(len(cells), *shape) for part, shape in zip(np.split(cells, ends[:-1], 1), shapes)]


def _parts(cells: np.ndarray, shapes: list[tuple]) -> list[np.ndarray]:
    """Split a vector of cells; return the cells of arrays with the given shapes."""
    ends = np.cumsum([np.prod(shape, dtype=int) for shape in shapes])
    return [part.reshape(shape) for part, shape in zip(np.split(cells, ends[:-1]), shapes)] if shapes else []
