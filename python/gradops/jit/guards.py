"""The values that a compiled function branches on, while it is traced, and its programs: one for each way it went.

While a function is traced its values are known for the arguments at hand. Where it looks at one, as ``if x > 0`` does,
the program that is written holds for arguments with which it would have seen the same; it says so with its results.
For others the function is traced again. (Guards, as of the traces of LuaJIT and PyPy, which leave one where a guard
fails: https://doi.org/10.1145/1565824.1565827.)
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .. import _tree, backends, ops
from .._call_sites import users_line
from .._scopes import changed
from ..autodiff.variable import data_of, wrap
from ..backends.interface import GraphTooLongError, asked, looked_at_a_value, looks
from ..errors import JitError, MismatchError
from ..ops.conversion import dtype
from .array import Place, Traced
from .steps import same


class Answers(list):
    """The values that a traced function has seen, in order.

    Attributes:
        divergence: where this list first differs from all earlier ones of the function: the line of the user's code,
            the value seen there before, and now; None as long as it is the beginning of one.
    """

    def __init__(self, earlier: Iterable[list] = ()) -> None:
        super().__init__()
        self._alike = list(earlier)
        self.divergence: tuple[str, Any, Any] | None = None

    def note(self, answer: Any) -> None:
        """Append a value; the line is looked up only where it differs, as a walk up R's calls takes a millisecond."""
        if self._alike:
            i = len(self)
            alike = [then for then in self._alike if i < len(then) and same(then[i], answer)]
            if not alike:
                then = self._alike[0][i] if i < len(self._alike[0]) else None
                self.divergence = users_line(), then, answer
            self._alike = alike
        self.append(answer)


class Guards:
    """The values that a function has looked at while it was traced.

    Args:
        earlier: what the function saw in earlier traces.

    Attributes:
        hold: a traced truth value, True if all these values are the same again; None if the function has not looked.
        count: the number of these values.
        answers: the values, those of arrays as hashes of their bytes.
    """

    def __init__(self, earlier: Iterable[list] = ()) -> None:
        self.hold: Any = None
        self.answers = Answers(earlier)
        self._known: set[int] = set()

    @property
    def count(self) -> int:
        return len(self._known)

    def look(self, x: Traced, text: str | None = None):
        """Return the value of truth values or integers, to which the program is specialised from here on.

        Args:
            text: what the function is told, if ``x`` says whether it would be told the same again.
        """
        if x.stale:
            x.refuse_stale()
        if x.place in x.program.constants or x.place in self._known:
            return x.value
        self._known.add(x.place)
        value: Any = np.asarray(x.value)
        self.answers.note(text or (value.item() if not value.ndim else (hash(value.tobytes()),)))
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
        earlier: what the function saw in earlier traces.

    Attributes:
        found: the values that it was told.
        hold: a truth value of the library's, True if a program of this call holds; None if nothing was looked at.
    """

    def __init__(self, known: list | None = None, earlier: Iterable[list] = ()) -> None:
        self.known, self.found = known, Answers(earlier)
        self.hold: Any = None
        self._seen: dict[tuple, tuple] = {}

    def __call__(self, x, kind):
        # Asked again of the same tensor it is no other question: a backward pass asks a mask of the forward pass, in
        # some libraries in the trace only.
        if (id(x), kind) in self._seen:
            return self._seen[id(x), kind][1]
        value = self._value(x, kind)
        self._seen[id(x), kind] = x, value  # holds the tensor, whose number another would have
        self.found.note(value)
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
        except backends.backend_of(x).no_value as error:
            raise looked_at_a_value() from error


def made_by(x: Traced) -> tuple[str, tuple]:
    """The op that a traced array is the result of, and its arguments; the empty name where there is none."""
    program, place = x.program, int(x.place)

    def at(place: int) -> Traced:
        return Traced(program.values[place], program, Place(place))

    row = program.table.row_with(place)
    if row is None:
        return "", ()
    step = program.table.step(row)
    return step.name, step.given(at)


# Programs of a function that branches on values -----------------------------------------------------------------------


MOST = 32
"""The number of ways of a function's branches to compile; in others it runs as it would without ``jit``."""
FEW = 4
"""The number of ways to compile before any has come again. Where each call goes another way compiling only costs."""


class Guarded:
    """A program that holds for the way that the branches of its function went.

    Args:
        function: the result of :func:`.emission.function` for it.
        count: the number of values that the function looks at.
    """

    def __init__(self, function: Any, count: int):
        self._function = function
        self.source, self.steps, self.native, self.count = function.source, function.steps, function.native, count
        self.sole, self.verification = function.sole, function.verification

    def __call__(self, *values) -> list | None:
        """The outputs; None where the branches go another way.

        Errors and warnings are then not the function's own: they come from steps that it would not have reached.
        """
        # The program runs to its end before it is known whether it holds, so it may divide by zero in a branch that
        # the function would not have entered for these arguments. What NumPy would have warned of is only noted; if
        # the program holds, and something was noted, it runs once more for the caller to hear it, or to get the error
        # that his `errstate` asks for. Programs have no effects, so that to run one twice, or in vain, is safe.
        warned = _Warned()
        handled: Any = {name: "call" for name, how in np.geterr().items() if how != "ignore"}
        try:
            with np.errstate(call=warned, **handled):
                found = self._function(*values)
        except MismatchError:
            raise
        except Exception:
            return None  # an error in the way that they go is raised by the function itself
        return self._function(*values) if warned.was and found is not None else found


class _Warned:
    was = False

    def __call__(self, what: str, flag: int) -> None:
        self.was = True


class Branching:
    """The programs of one signature, one for each way that branches went, called with the list of tensors.

    Args:
        program: the first, as :func:`.compiled.trace` gives it.
        trace: gives that of other tensors, and of what the function saw in earlier traces.
        function: the function being compiled, of the tensors.
        retraced: is told where a new program first differs from the others.
    """

    def __init__(self, program: Any, trace: Callable, function: Callable, retraced: Callable):
        self._retraced = retraced
        self._ways: tuple[Any, ...] = (program,)
        self._trace, self._function = trace, function
        self._used = 0  # how many calls went a way that was there
        self._warned = False

    def __call__(self, tensors):
        form, found = self.found(tensors)
        return _tree.unflatten(form, found)

    @property
    def first(self) -> Any:
        """The program of the way that is tried first."""
        return self._ways[0]

    def found(self, tensors) -> tuple[Any, list]:
        """The structure of the result and its leaves.

        Warns:
            RuntimeWarning: this way is not compiled; once.
        """
        for program in self._ways:
            found = program.flat(*tensors)
            if found is not None:
                self._used += 1
                if program is not self._ways[0]:  # the next call often goes the same way
                    self._ways = (program, *[p for p in self._ways if p is not program])
                return program.form, found
        count = len(self._ways)
        # Each program that does not hold costs a run in vain, beside the time to compile it. So a function gets new
        # ones as long as the old ones are used: at least as many calls found theirs as there are ways.
        if count < FEW or count < MOST and self._used >= count:
            program = self._trace(tensors, earlier=[way.answers for way in self._ways])
            self._retraced(program.answers.divergence)
            self._ways = (program, *self._ways)
            proof = taken_proof(program)
            if proof is not None:
                return proof
            found = program.flat(*tensors)
            if found is not None:
                return program.form, found
        elif not self._warned:
            self._warned = True
            warnings.warn(
                f"the branches of a compiled function went {count} ways, and now another, for which it is not "
                "compiled. Use `ops.where()` (R: `ifelse()`), `ops.cond()` or `ops.while_loop()`, and no Python "
                "numbers or texts (`x.item()`, `str(x)`) of its values.",
                RuntimeWarning,
                stacklevel=2,
            )
        leaves, form = _tree.flatten(self._function(tensors))
        return form, [x.copy() if isinstance(x, np.ndarray) else x for x in map(data_of, leaves)]

    def explained(self) -> str:
        return "\n".join(program.explained() for program in self._ways)


def taken_proof(program: Any) -> tuple[Any, list] | None:
    """The results that a new program gave for the arguments of its trace, for the call that made it; then None."""
    program = program.first if isinstance(program, Branching) else program
    proof = getattr(program, "proof", None)
    if proof is not None:
        program.proof = None
    return proof


class OfLibrary:
    """The program that another library's compiler makes of a function, or one for each way that its branches go.

    Args:
        backend: the library's.
        function: the function being compiled, of a list of tensors.
        traced: gives the result of a call that is traced, after a look at its effects.
        retraced: as :class:`Branching` takes it.
    """

    def __init__(self, backend: Any, function: Callable, traced: Callable, retraced: Callable):
        self._backend, self._function, self._traced, self._retraced = backend, function, traced, retraced
        self._whole = backend.derivatives.compile(lambda *tensors: traced(functools.partial(function, tensors)))
        self._ways: Branching | None = None
        self._too_long = ""

    def __call__(self, tensors):
        """The function's result.

        Warns:
            RuntimeWarning: the function has too many operations and runs uncompiled; once.
        """
        if not self._too_long:
            try:
                return self._compiled(tensors)
            except GraphTooLongError as error:
                self._too_long = str(error)
            warnings.warn(
                f"a function given to `jit` runs uncompiled: it has {self._too_long}, which {self._backend.name} takes "
                "long to trace. Each step of `ops.scan()` and of other loops counts there. On NumPy and JAX a scan "
                "is compiled as one step; here, compute on more elements in fewer steps.",
                RuntimeWarning,
                stacklevel=2,
            )
        return self._function(tensors)

    def _compiled(self, tensors):
        if self._ways is None:
            questions: list = []
            try:
                with changed(asked, questions):
                    return self._whole(*tensors)
            except Exception:
                if not questions:
                    raise
            self._ways = Branching(self._way(tensors), self._way, self._function, self._retraced)
        return self._ways(tensors)

    def explained(self) -> str:
        if self._too_long:
            return f"not compiled: {self._too_long}, each step of its loops counted"
        return f"compiled by {self._backend.name}" if self._ways is None else self._ways.explained()

    def _way(self, tensors, earlier: Iterable[list] = ()) -> Any:
        """The program of the way that these tensors go, in the form of :func:`.compiled.trace`."""
        # JAX's and TensorFlow's tensors have no values while they are traced, and no hook for those who ask. So the
        # function runs once as it is, with variables for its arguments, which tell what they are asked for; in the
        # trace the answers are given again in their order. They need not be right: a program says itself whether each
        # tensor that it was asked for has the value with which it went on.
        answers = None if self._backend.derivatives.knows_values else self._answers(tensors, earlier)
        known, earlier = answers, () if answers is not None else earlier
        way = _Way()

        def f(*tensors):
            look = Looks(known, earlier)

            def call():  # may be called twice
                nonlocal look
                look = Looks(known, earlier)
                with changed(looks, look):
                    return self._function(self._asked(tensors))

            leaves, way.form = _tree.flatten(self._traced(call))
            way.answers = look.found if answers is None else answers
            return [data_of(x) for x in leaves], True if look.hold is None else look.hold

        way.compiled = self._backend.derivatives.compile(f)
        way.compiled(*tensors)  # traced now, for its errors
        way.name = self._backend.name
        return way

    def _asked(self, tensors) -> list:
        """Tensors that tell ``looks`` what they are asked for."""
        return list(tensors) if self._backend.derivatives.knows_values else [wrap(x) for x in tensors]

    def _answers(self, tensors, earlier: Iterable[list]) -> Answers:
        """The values that the function looks at, in order."""
        seen = Looks(earlier=earlier)
        try:
            with changed(looks, seen):
                self._function(self._asked(tensors))
        except JitError:
            raise
        except Exception as error:  # its own, or of the library's function that takes no variables
            self._function(tensors)
            raise looked_at_a_value() from error
        return seen.found


class _Way:
    """A library's program of one way that branches went."""

    answers: Answers
    form: Any
    compiled: Callable
    name: str

    def flat(self, *tensors) -> list | None:
        """The outputs; None where the branches go another way. Errors are then not the function's own."""
        try:
            leaves, holds = self.compiled(*tensors)
        except Exception:
            return None
        return leaves if bool(holds) else None

    def explained(self) -> str:
        return f"one way of its branches, {len(self.answers)} values looked at: compiled by {self.name}"
