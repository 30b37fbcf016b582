"""The values that a compiled function branches on, while it is traced.

While a function is traced its values are known for the arguments at hand. Where it looks at one, as ``if x > 0`` does,
the program that is written holds for arguments with which it would have seen the same; it says so with its results.
For others the function is traced again. (Guards, as of the traces of LuaJIT and PyPy, which leave one where a guard
fails: https://doi.org/10.1145/1565824.1565827.)
"""

from __future__ import annotations

from typing import Any

from .. import backends, ops
from ..backends.interface import looked_at_a_value
from ..errors import JitError
from ..ops.conversion import dtype
from .array import Place, Traced
from .scalar_blocks import Operation
from .steps import Step


class Guards:
    """The values that a function has looked at while it was traced.

    Attributes:
        hold: a traced truth value, True if all these values are the same again; None if the function has not looked.
        count: the number of these values.
    """

    def __init__(self) -> None:
        self.hold: Any = None
        self._known: set[int] = set()

    @property
    def count(self) -> int:
        return len(self._known)

    def look(self, x: Traced):
        """The value of truth values or whole numbers, with which alone the program holds from here on."""
        if x.stale:
            x.refuse_stale()
        if x.place in x.program.constants or x.place in self._known:
            return x.value
        self._known.add(x.place)
        # The array as it is now. The function has `x` itself, and may write to it, or to what it is a view of: the
        # program would then ask for the new value, and be taken for arguments for which the branch goes another way.
        x = Traced(x.value, x.program, x.place)
        if x.dtype == bool and not x.ndim:
            same = x if x.value else ops.logical_not(x)
        else:
            same = ops.all(ops.equal(x, x.value))
        self.hold = same if self.hold is None else ops.logical_and(self.hold, same)
        return x.value


class Looks:
    """The values that a function of another library's tensors looks at, in order: the ``looks`` of one call.

    Args:
        known: the values that the same function saw at these places before; None where tensors have values.

    Attributes:
        found: the values that it was told.
        hold: a truth value of the library's, True if a program of this call holds; None if nothing was looked at.
    """

    def __init__(self, known: list | None = None) -> None:
        self.known, self.found = known, []  # type: ignore[var-annotated]
        self.hold: Any = None
        self._seen: dict[tuple, tuple] = {}

    def __call__(self, x, kind):
        # Asked again of the same tensor it is no other question: a backward pass asks a mask of the forward pass, in
        # some libraries in the trace only.
        if (id(x), kind) in self._seen:
            return self._seen[id(x), kind][1]
        value = self._value(x, kind)
        self._seen[id(x), kind] = x, value  # holds the tensor, whose number another would have
        self.found.append(value)
        if isinstance(value, bool):
            truth = x if dtype(x) == "bool" else ops.not_equal(x, 0)
            same = truth if value else ops.logical_not(truth)
        else:
            same = ops.equal(ops.trunc(x) if isinstance(value, int) and "float" in dtype(x) else x, value)
        same = ops.all(same)
        self.hold = same if self.hold is None else ops.logical_and(self.hold, same)
        return value

    def _value(self, x, kind):
        if self.known is not None:
            if len(self.found) == len(self.known):
                raise JitError("a compiled function looked at other values when it was traced than when it ran.")
            return self.known[len(self.found)]
        try:
            return kind(x)
        except backends.of(x).no_value as error:
            raise looked_at_a_value() from error


def made_by(x: Traced) -> tuple[str, tuple]:
    """The op that a traced array is the result of, and its arguments; the empty name where there is none."""
    program, place = x.program, int(x.place)

    def at(place: int) -> Traced:
        return Traced(program.values[place], program, Place(place))

    row = program.operations.row(place)
    if row is not None:
        number, _, *operands = row
        what = Operation.known[number]
        return what.name, tuple(map(at, operands[: what.operands]))
    for step in reversed(program.steps):
        if isinstance(step, Step) and place in step.places:
            return step.name, step.given(at)
    return "", ()
