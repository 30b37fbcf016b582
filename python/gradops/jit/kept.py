"""Save what a loop computes for a later loop that would compute it again, where saving costs less.

The derivative of a loop reads the saved states in reverse order and computes each iteration's rows again. For sums and
products this is cheaper than an array of their results. For exponentials and other functions, matrix products and
linear solves it is not: the first loop then returns their results stacked over its iterations, and the later loop reads
them. :func:`save_for_later_loops` runs once on a finished program, when all derivatives have been taken, so the traced
bodies are not changed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._tree import map_items
from ..ops._dispatch import facts_of
from .array import Place
from .native.registry import calls_function
from .program import Program
from .steps import Step, key_of
from .table import Rows

LARGEST = 1_000_000
"""The largest size in elements of a saved array; native code has the same limit."""


def save_for_later_loops(program: Program, rows: Rows) -> Rows:
    """Return a program's rows with loops that read saved values of earlier loops; the same object if none does."""
    scans = [what.number for what in rows.operations if what.name == "scan"]
    loops = np.flatnonzero(np.isin(rows.words[:, 0], scans)).tolist() if len(scans) > 1 else []
    before = {i: rows.table.step(rows.words[i].tolist()) for i in loops}
    found = dict(before)
    for i in loops:
        for k in loops[: loops.index(i)]:
            found[k], found[i] = _share(program, found[k], found[i])
        body = found[i].arguments[0].body
        inner = save_for_later_loops(body.program, body.rows) if len(loops) > 1 else body.rows
        if inner is not body.rows:
            found[i] = _loop_step(found[i], body.changed(inner))
    changed = [i for i in loops if found[i] is not before[i]]
    if not changed:
        return rows
    words = rows.words.copy()
    words[changed] = rows.table.rows_of(found[i] for i in changed).words
    return Rows(rows.table, words)


def _loop_step(step: Step, body, rows: list[Any] | None = None, places: list[Any] | None = None) -> Step:
    """Return a loop's step with another body, and with other rows or results where given."""
    loop, state, before, held = step.arguments
    loop = type(loop)(body, loop.carries, loop.count, loop.reverse, loop.kept)
    given = before if rows is None else tuple(rows)
    return Step(step.name, step.function, (loop, state, given, held), tuple(places or step.places), step.several)


def _share(program: Program, first: Step, later: Step) -> tuple[Step, Step]:
    """Return two loop steps, where the second reads values that the first saves; unchanged if nothing is worth it."""
    loop, _, rows, held = first.arguments
    again, _, later_rows, later_held = later.arguments
    results, ends = list(first.places), loop.carries + loop.stacked
    if loop.count != again.count or set(results[ends:]).isdisjoint(later_rows):
        return first, later
    inputs, others = loop.body.program.inputs, again.body.program.inputs[again.carries :]
    row_inputs = dict(zip((*results[ends:], *rows), inputs))
    held_inputs = dict(zip(held, inputs[loop.carries + len(rows) :]))
    same = {own: row_inputs[p] for p, own in zip(later_rows, others) if p in row_inputs}
    same.update((own, held_inputs[p]) for p, own in zip(later_held, others[len(later_rows) :]) if p in held_inputs)

    steps, kept, rest = _split(loop.body, again.body, same, LARGEST // loop.count)
    if not kept:
        return first, later
    own, stacked = loop.body.program, list(loop.body.outputs[1])
    for place in dict.fromkeys(kept.values()):
        if place not in stacked:
            value = np.asarray(own.value(place))
            room = np.empty((loop.count, *value.shape), value.dtype)
            results.insert(loop.carries + len(stacked), Place(program.new(room)))
            stacked.append(Place(place))
    given = [results[loop.carries + stacked.index(place)] for place in kept.values()]
    body = loop.body.changed(own.table.rows_of(steps), [loop.body.outputs[0], stacked])
    new = again.body.changed(
        again.body.program.table.rows_of(rest),
        inputs=[*again.body.program.inputs[: again.carries + len(later_rows)], *kept],
    )
    new.program.inputs += again.body.program.inputs[again.carries + len(later_rows) :]
    return _loop_step(first, body, places=results), _loop_step(later, new, rows=[*later_rows, *given])


def _split(body, again, same: dict[int, int], largest: int) -> tuple[list, dict[int, int], list]:
    """Split the work of two loop bodies.

    Returns the steps of the first body; the saved values as places of the second body with their places in the first;
    and the steps that remain in the second body.

    Args:
        same: places of the second body with their equal places in the first: at first the inputs; others are added.
        largest: the largest number of elements of a saved value.
    """
    mine, others = list(body.rows), list(again.rows)
    made: dict[Any, Step] = {}
    softmaxes: dict[Any, Step] = {}
    for step in mine:
        made[_key(body.program, step)] = step
        if step.name == "logsumexp":
            softmaxes[_key(body.program, step, "softmax", step.arguments[:2])] = step
    found: dict[int, Step] = {}
    """The logsumexp step whose exponentials a softmax can share, by the place of the softmax."""
    for step in others:
        key = _key(again.program, step, same=same)
        if key is None:
            continue
        if key in made:
            same.update(zip(step.places, made[key].places))
        elif key in softmaxes and len(step.arguments) == 2:
            (place,) = step.places
            found[place] = softmaxes[key]
            same[place] = Place(body.program.new(again.program.value(place)))

    wanted = {place.index for group in again.outputs for place in group}
    kept: dict[int, int] = {}
    rest, before = [], {}
    for step in reversed(others):
        needed = [place for place in step.places if place in wanted]
        if needed and all(p in same for p in needed) and _is_costly(again.program, step, largest):
            kept.update((place, same[place]) for place in needed)
            if step.places[0] in found:
                sharing = found[step.places[0]]
                twin = (sharing.arguments[0], *step.arguments[1:])
                before[id(sharing)] = Step(step.name, step.function, twin, (same[step.places[0]],), step.several)
        elif needed:
            rest.append(step)
            wanted.update(step.uses)
    # The softmax goes before the logsumexp, as the compiler shares the exponentials of an earlier step.
    steps = [x for step in mine for x in ([before[id(step)], step] if id(step) in before else [step])]
    return steps, kept, rest[::-1]


def _key(program: Program, step: Step, name: str = "", arguments: tuple = (), same: dict | None = None):
    """Return the key of a call, with constants by their bits; None if it reads a place that ``same`` does not have."""

    def part(x):
        if x.__class__ is not Place:
            return x
        if x in program.constants:
            value = np.asarray(program.constants[x])
            return value.shape, str(value.dtype), value.tobytes()
        return x if same is None else Place(same[x])

    try:
        return key_of(name or step.name, map_items(part, arguments or step.arguments))
    except KeyError:
        return None


def _is_costly(program: Program, step: Step, largest: int) -> bool:
    """True if computing a step's results costs more than saving them; ``largest`` bounds their elements."""
    size = sum(np.size(program.value(place)) for place in step.places)
    if size > largest:
        return False
    facts = facts_of(step.name)
    if facts.multilinear and not facts.elementwise:  # a product
        return sum(np.size(program.value(place)) for place in step.uses) > 16 * size
    if step.name == "power":
        exponent = step.arguments[1]
        known = program.constants.get(exponent) if isinstance(exponent, Place) else exponent
        return known is None or bool(np.ndim(known)) or known not in (1, 2, 0.5)
    return facts.costly or calls_function(step.name)
