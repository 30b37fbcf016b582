"""Make a Python function of a recorded program: the last step of ``jit`` on NumPy.

:func:`function` takes a finished :class:`.Program` and its outputs. It runs the passes (needed rows, values saved for
later loops, native code), then writes one line of Python per remaining step: a native run or a NumPy call. Large values
are deleted after their last use, and ufuncs write over operands that are not used again.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np

from .. import _functions
from ..backends.numpy import shaping
from ..backends.numpy.base import owned
from . import native
from .agreement import checks
from .array import Place
from .effects import calls_others
from .kept import save_for_later_loops
from .liveness import last_uses, needed_rows
from .operations import OPERATORS
from .program import Program
from .steps import Step, places
from .table import Rows
from .verification import Verification

_numbers = itertools.count(1)


def function(
    program: Program,
    outputs: list,
    holds: Place | None = None,
    *,
    rows: Rows | None = None,
    is_called: bool = False,
    is_repeated: bool = False,
) -> Any:
    """Return the program as a function of its inputs that gives the list of outputs.

    Args:
        outputs: places of traced arrays, or values that do not depend on the inputs.
        holds: the place of a truth value; the function returns None where it is false.
        rows: the rows of the program, if a pass has changed them; by default all rows of its table.
        is_called: True if a caller gets the results for the values of the trace.
        is_repeated: True for a function that a loop calls for each row.

    Returns:
        A function with these attributes: its ``source``; its number of ``steps``; ``native``, a report of the native
        ones; ``sole``, its :class:`Sole` if it is one run of native code; ``verification``, its
        :class:`.Verification` if checks are on; and ``proof``, the results for the values of the trace if
        ``is_called`` is True and they are right.
    """
    wanted = {o.index for o in (*outputs, holds) if isinstance(o, Place)}
    original = needed_rows(program, wanted, among=rows)
    needed = save_for_later_loops(program, original)
    steps, explained = native.lowered(program, needed, wanted)
    for step in steps:
        if step.name == "scan":  # a loop with saved values is compiled for example values, which are released later
            step.arguments[0].prepare(*[[program.value(place) for place in group] for group in step.arguments[1:]])
    last = last_uses(steps)
    over, own = reuse(program, steps, last, wanted)
    is_verified = checks() and not calls_others(original)
    source, scope = emit(program, steps, outputs, last, over, own, holds, is_verified)
    made: Any = _functions.alike(source, "program", f"program {next(_numbers)}", scope)
    made.source, made.steps, made.native = source, len(needed), explained
    made.sole = _sole(program, steps, outputs if holds is None else [*outputs, holds], holds is not None)
    made.verification = made.proof = None
    if is_verified:
        every = outputs if holds is None else [*outputs, holds]
        made.verification = Verification(made, scope, program, original, every, holds is not None, not is_repeated)
        inputs = [program.value(place) for place in program.inputs]
        results = [program.value(o.index) if isinstance(o, Place) else o for o in every]
        if is_called:  # these results are the caller's, so NumPy may warn
            made.proof = made.verification.prove(inputs, results)
        else:
            with np.errstate(all="ignore"):
                made.verification.prove(inputs, results)
    return made


class Sole(NamedTuple):
    """A program that is one run of native code.

    Attributes:
        inputs: the indices, among the program's inputs, of the arrays that the run takes.
        results: the indices, among the run's results, of the outputs and then of ``holds``.
        holds: True if the last result is the truth value of the guards.
    """

    run: native.Run
    inputs: list[int]
    results: list[int]
    holds: bool


def _sole(program: Program, steps: list[Step], outputs: list, holds: bool) -> Sole | None:
    if len(steps) != 1:
        return None
    step, run = steps[0], steps[0].function
    if not isinstance(run, native.Run):
        return None
    if not set(step.uses) <= set(program.inputs) or not all(x.__class__ is Place and x in step.places for x in outputs):
        return None
    inputs = [program.inputs.index(x.index) for x in step.arguments]
    return Sole(run, inputs, [step.places.index(x) for x in outputs], holds)


# Reuse of memory.


def reuse(program: Program, steps: list[Step], last: dict[int, int], wanted: set[int]) -> tuple[dict[int, int], set]:
    """Plan which memory is written again.

    Returns, by step, the operand whose memory a ufunc or a write into an array may use for its result; and the places
    whose memory belongs to the program alone. Such memory was made by a ufunc or native code, and no step has taken it
    whose result could be a view of it.
    """
    over: dict[int, int] = {}
    own: set[int] = set()
    for i, step in enumerate(steps):
        # The danger is a write to memory that something else still reads: a view, the caller's array, a constant, an
        # output. So only results of ufuncs and native code count, as these are always new memory; only until another
        # kind of step reads them, as its result may be a view; and only at their last use. A ufunc that reads an
        # operand twice may write over it, as it reads each element before it writes it.
        if isinstance(step.function, (native.Run, native.Tiles)):
            own.update(step.places)
            continue
        if step.function in (shaping.add_at, shaping.set_at):
            array, *others = step.arguments
            operands = (array,) if isinstance(array, Place) and array not in places(others) else ()
        elif isinstance(step.function, np.ufunc) and not step.several:
            operands = step.arguments
        else:
            own.difference_update(step.uses)
            continue
        for p in operands:
            if not isinstance(p, Place) or p.index not in own or p.index in wanted or last[p.index] != i:
                continue
            if _fits(program.value(p.index), program.value(step.places[0])):
                over[i] = p.index
                break
        own.add(step.places[0])
    return over, own


def _fits(operand, result) -> bool:
    """True if the result can be written over the operand; single numbers have no memory."""
    return (
        isinstance(result, np.ndarray)
        and result.ndim > 0
        and operand.shape == result.shape
        and operand.dtype == result.dtype
    )


# Source code.


def emit(
    program: Program,
    steps: list[Step],
    outputs: list,
    last: dict[int, int],
    over: dict[int, int],
    own: Collection[int],
    holds: Place | None = None,
    is_verified: bool = False,
) -> tuple[str, dict[str, Any]]:
    """Return the source and the scope of its names: kernels, constants, and other arguments that are not places."""
    scope: dict[str, Any] = {"__name__": __name__}  # warnings come from here
    # Variables are numbered from 0, so that programs of the same form, such as one native run, have the same source.
    name = _Names()
    parameters = ", ".join([name[p] for p in program.inputs])
    wanted = {o.index for o in (*outputs, holds) if isinstance(o, Place)}
    held = {*wanted, *program.constants, *program.inputs}  # not deleted: arguments belong to the caller
    lines = [f"if next(unchecked, True): return checked({parameters})"] if is_verified else []
    for i, step in enumerate(steps):
        call = [_source_of(a, name, scope, f"c{i}_{j}") for j, a in enumerate(step.arguments)]
        target = ", ".join([name[p] for p in step.places])
        target = f"[{target}]" if step.several else target  # a split may have no results
        if isinstance(step.function, np.ufunc) and step.function in OPERATORS and _is_number_step(program, step):
            sign, _ = OPERATORS[step.function]
            lines.append(f"{target} = {f' {sign} '.join(call) if len(call) > 1 else sign + call[0]}")
        else:
            scope[f"k{i}"] = step.function
            if i in over:
                call.append(f"out={name[over[i]]}")
            lines.append(f"{target} = k{i}({', '.join(call)})")
        # A local variable lives until the function returns. Without `del` a program would hold all its intermediate
        # results at once; the traced function, which rebinds its variables, does not.
        done = [p for p in step.uses if last[p] == i and p not in held and getattr(program.value(p), "ndim", None)]
        if done:
            lines.append(f"del {', '.join([name[p] for p in done])}")
    for place in program.constants.keys() & {*last, *wanted}:
        scope[name[place]] = program.constants[place]  # globals of the function, which it cannot delete or assign
    results = ", ".join([_source_of(o, name, scope, f"r{j}") for j, o in enumerate(outputs)])
    returned = f"[{results}]"
    if _may_share_memory(program, outputs, own):
        taken = {id(x) for x in scope.values() if isinstance(x, np.ndarray)}
        scope.update(owned=owned, taken=taken)
        returned = f"owned({returned}, taken.union(map(id, [{parameters}])))"
    if holds is not None:
        returned += f" if {name[holds]} else None"
    lines.append(f"return {returned}")
    return f"def program({parameters}):\n" + "".join(f"    {line}\n" for line in lines), scope


def _may_share_memory(program: Program, outputs: list, own: Collection[int]) -> bool:
    """True if an output may be an argument, a constant or another output, or share memory with one."""
    indices = [o.index for o in outputs if isinstance(o, Place)]
    arrays = [p for p in indices if isinstance(program.value(p), np.ndarray)]
    constants = any(isinstance(o, np.ndarray) for o in outputs)
    return constants or len(set(arrays)) < len(arrays) or not set(own).issuperset(arrays)


def _is_number_step(program: Program, step: Step) -> bool:
    """True if a step computes on single float64 numbers and at least one is NumPy's, so NumPy's rules apply."""
    operands = [program.value(x.index) if isinstance(x, Place) else x for x in step.arguments]
    numpy_values = [x for x in (*operands, program.value(step.places[0])) if isinstance(x, (np.ndarray, np.generic))]
    return all(x.ndim == 0 and x.dtype == np.float64 for x in numpy_values) and len(numpy_values) > 1


class _Names(dict):
    """Variable names by place; a new place gets the next number."""

    def __missing__(self, place: int) -> str:
        found = self[place] = f"v{len(self)}"
        return found


def _source_of(value, names: _Names, scope: dict, name: str) -> str:
    """Return an argument as source; a value without source goes into the scope under ``name``."""
    if isinstance(value, Place):
        return names[value]
    if isinstance(value, (list, tuple)) and places(value):
        inner = [_source_of(v, names, scope, f"{name}_{j}") for j, v in enumerate(value)]
        return f"[{', '.join(inner)}]" if isinstance(value, list) else f"({', '.join(inner)},)"
    if value is None or isinstance(value, (bool, int)):
        return repr(value)
    scope[name] = value
    return name
