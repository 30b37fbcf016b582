"""Guards: the values that a function branches on while it is traced, and one specialisation for each branch taken.

While a function is traced, its values are known for the arguments of the trace. Where it reads a value, as ``if x > 0``
does, :class:`Guards` records the value, and the program holds only for arguments that give the same value. At each call
:class:`Branching` runs the specialisations of the signature in turn; a program returns None where its guards fail. If
all fail, the function is traced again. :class:`OfLibrary` does the same with the compilers of JAX, TensorFlow and
PyTorch. (Guards as in the trace compilers LuaJIT and PyPy, which compile a side trace where a guard fails:
https://doi.org/10.1145/1565824.1565827.)
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
    """The values that a traced function has read, in order.

    Attributes:
        divergence: where this list first differs from all earlier traces: the line of the user's code, the earlier
            value, and the new one; None while it equals the beginning of an earlier list.
    """

    def __init__(self, earlier: Iterable[list] = ()) -> None:
        super().__init__()
        self._alike = list(earlier)
        self.divergence: tuple[str, Any, Any] | None = None

    def note(self, answer: Any) -> None:
        """Append a value. The user's line is found only if the value differs, as walking R's calls takes 1 ms."""
        if self._alike:
            i = len(self)
            alike = [then for then in self._alike if i < len(then) and same(then[i], answer)]
            if not alike:
                then = self._alike[0][i] if i < len(self._alike[0]) else None
                self.divergence = users_line(), then, answer
            self._alike = alike
        self.append(answer)


class Guards:
    """The guards of a function that is being traced.

    Args:
        earlier: the answers of earlier traces.

    Attributes:
        hold: a traced truth value, True if all guards hold; None if the function has not read a value.
        count: the number of guards.
        answers: the values that the function has read; for arrays, hashes of their bytes.
    """

    def __init__(self, earlier: Iterable[list] = ()) -> None:
        self.hold: Any = None
        self.answers = Answers(earlier)
        self._known: set[int] = set()

    @property
    def count(self) -> int:
        return len(self._known)

    def look(self, x: Traced, text: str | None = None):
        """Return the value of truth values or integers, and add a guard for it.

        Args:
            text: the text that the function reads, if ``x`` says whether the text is the same.
        """
        if x.stale:
            x.refuse_stale()
        if x.place in x.program.constants or x.place in self._known:
            return x.value
        self._known.add(x.place)
        value: Any = np.asarray(x.value)
        self.answers.note(text or (value.item() if not value.ndim else (hash(value.tobytes()),)))
        # A new object with the value at this moment. The function may write to `x`, or to an array that `x` is a view
        # of; the guard would then compare the new value and hold for arguments that take another branch.
        x = Traced(x.value, x.program, x.place)
        if x.dtype == bool and not x.ndim:
            same = x if x.value else ops.logical_not(x)
        else:
            same = ops.all(ops.equal(x, x.value))
        self.hold = same if self.hold is None else ops.logical_and(self.hold, same)
        return x.value


class Looks:
    """The values that one call of a function reads from another library's tensors, in order.

    Args:
        known: the values that the function read in its call before the trace; None where tensors have values.
        earlier: the answers of earlier traces.

    Attributes:
        found: the values that were read.
        hold: a truth value of the library, True if all guards hold; None if no value was read.
    """

    def __init__(self, known: list | None = None, earlier: Iterable[list] = ()) -> None:
        self.known, self.found = known, Answers(earlier)
        self.hold: Any = None
        self._seen: dict[tuple, tuple] = {}

    def __call__(self, x, kind):
        # A tensor that is read twice gets one guard. A backward pass reads a mask of the forward pass again, in some
        # libraries only while tracing, so the lists would not match.
        if (id(x), kind) in self._seen:
            return self._seen[id(x), kind][1]
        value = self._value(x, kind)
        self._seen[id(x), kind] = x, value  # holds the tensor, so that no other gets its `id`
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
                raise JitError("a compiled function read other values when it was traced than when it ran.")
            return self.known[len(self.found)]
        try:
            return kind(x)
        except backends.backend_of(x).no_value as error:
            raise looked_at_a_value() from error


def made_by(x: Traced) -> tuple[str, tuple]:
    """Return the name of the op that computed a traced array and its arguments; an empty name if no op did."""
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
"""The largest number of specialisations of a signature; for other branches the function runs uncompiled."""
FEW = 4
"""The number of specialisations before one is used again. If each call takes a new branch, compiling does not pay."""


class Guarded:
    """A program that checks its guards: it holds for the branches that its function took.

    Args:
        function: the result of :func:`.emission.function`.
        count: the number of guards.
    """

    def __init__(self, function: Any, count: int):
        self._function = function
        self.source, self.steps, self.native, self.count = function.source, function.steps, function.native, count
        self.sole, self.verification = function.sole, function.verification

    def __call__(self, *values) -> list | None:
        """Return the outputs, or None if a guard fails.

        If a guard fails, errors and warnings are suppressed: they come from rows that the function would not have
        reached.
        """
        # A program knows only at its end whether its guards hold. It may have divided by zero in a branch that the
        # function would not take for these arguments, so NumPy's warnings are only noted. If the guards hold and
        # something was noted, the program runs again, so that the caller gets the warning, or the error that
        # `np.errstate` asks for. Programs have no effects, so they may run twice.
        warned = _Warned()
        handled: Any = {name: "call" for name, how in np.geterr().items() if how != "ignore"}
        try:
            with np.errstate(call=warned, **handled):
                found = self._function(*values)
        except MismatchError:
            raise
        except Exception:
            return None  # the function itself runs next, and raises if the error is its own
        return self._function(*values) if warned.was and found is not None else found


class _Warned:
    was = False

    def __call__(self, what: str, flag: int) -> None:
        self.was = True


class Branching:
    """The specialisations of one signature, one for each branch taken, as a function of the list of tensors.

    Args:
        program: the first specialisation, from :func:`.compiled.trace`.
        trace: a function that makes a specialisation for other tensors; it also takes the answers of earlier traces.
        function: the function that is compiled, of the tensors.
        retraced: a function that is called with the first difference between a new specialisation and earlier ones.
    """

    def __init__(self, program: Any, trace: Callable, function: Callable, retraced: Callable):
        self._retraced = retraced
        self._specialisations: tuple[Any, ...] = (program,)
        self._trace, self._function = trace, function
        self._used = 0  # calls served by an existing specialisation
        self._warned = False

    def __call__(self, tensors):
        form, found = self.found(tensors)
        return _tree.unflatten(form, found)

    @property
    def first(self) -> Any:
        """The specialisation that is tried first."""
        return self._specialisations[0]

    @property
    def count(self) -> int:
        """The number of specialisations."""
        return len(self._specialisations)

    def found(self, tensors) -> tuple[Any, list]:
        """Return the structure of the result and its leaves.

        Warns:
            RuntimeWarning: once, if there are too many specialisations and this call runs uncompiled.
        """
        for program in self._specialisations:
            found = program.flat(*tensors)
            if found is not None:
                self._used += 1
                if program is not self._specialisations[0]:  # the next call often takes the same branch
                    self._specialisations = (program, *[p for p in self._specialisations if p is not program])
                return program.form, found
        count = len(self._specialisations)
        # Each specialisation that fails costs a run, besides the time to compile it. So a function gets new ones only
        # while the old ones are used: at least as many calls were served as there are specialisations.
        if count < FEW or count < MOST and self._used >= count:
            program = self._trace(tensors, earlier=[specialisation.answers for specialisation in self._specialisations])
            self._retraced(program.answers.divergence)
            self._specialisations = (program, *self._specialisations)
            proof = taken_proof(program)
            if proof is not None:
                return proof
            found = program.flat(*tensors)
            if found is not None:
                return program.form, found
        elif not self._warned:
            self._warned = True
            warnings.warn(
                f"a compiled function has {count} specialisations, one for each branch taken. It takes another branch "
                "now and runs uncompiled. Use `ops.where()` (R: `ifelse()`), `ops.cond()` or `ops.while_loop()`, and "
                "make no Python numbers or texts of values (`x.item()`, `str(x)`).",
                RuntimeWarning,
                stacklevel=2,
            )
        leaves, form = _tree.flatten(self._function(tensors))
        return form, [x.copy() if isinstance(x, np.ndarray) else x for x in map(data_of, leaves)]

    def explained(self) -> str:
        return "\n".join(program.explained() for program in self._specialisations)


def taken_proof(program: Any) -> tuple[Any, list] | None:
    """Return the results that a new program computed for the arguments of its trace, and remove them from it."""
    program = program.first if isinstance(program, Branching) else program
    proof = getattr(program, "proof", None)
    if proof is not None:
        program.proof = None
    return proof


class OfLibrary:
    """A function compiled by another library, with one program for each branch taken.

    Args:
        backend: the library's backend.
        function: the function that is compiled, of a list of tensors.
        traced: a function that calls its argument to be traced, and raises if the call had effects.
        retraced: see :class:`Branching`.
    """

    def __init__(self, backend: Any, function: Callable, traced: Callable, retraced: Callable):
        self._backend, self._function, self._traced, self._retraced = backend, function, traced, retraced
        self._whole = backend.derivatives.compile(lambda *tensors: traced(functools.partial(function, tensors)))
        self._specialisations: Branching | None = None
        self._too_long = ""

    def __call__(self, tensors):
        """Return the function's result.

        Warns:
            RuntimeWarning: once, if the function has too many operations and runs uncompiled.
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
        if self._specialisations is None:
            questions: list = []
            try:
                with changed(asked, questions):
                    return self._whole(*tensors)
            except Exception:
                if not questions:
                    raise
            self._specialisations = Branching(
                self._specialise(tensors), self._specialise, self._function, self._retraced
            )
        return self._specialisations(tensors)

    def explained(self) -> str:
        if self._too_long:
            return f"not compiled: {self._too_long}, each step of its loops counted"
        return (
            f"compiled by {self._backend.name}" if self._specialisations is None else self._specialisations.explained()
        )

    def _specialise(self, tensors, earlier: Iterable[list] = ()) -> Any:
        """Return the specialisation for these tensors, in the form of :func:`.compiled.trace`."""
        # Tensors of JAX and TensorFlow have no values while they are traced, and the libraries have no hook for code
        # that reads them. So the function first runs uncompiled on variables, which record the values that are read.
        # The trace then gets these values in the same order. They need not be right: the program compares each of them
        # with the tensor's value when it runs.
        answers = None if self._backend.derivatives.knows_values else self._answers(tensors, earlier)
        known, earlier = answers, () if answers is not None else earlier
        specialisation = _LibraryProgram()

        def f(*tensors):
            look = Looks(known, earlier)

            def call():  # may be called twice, see `Compiled._traced`
                nonlocal look
                look = Looks(known, earlier)
                with changed(looks, look):
                    return self._function(self._asked(tensors))

            leaves, specialisation.form = _tree.flatten(self._traced(call))
            specialisation.answers = look.found if answers is None else answers
            return [data_of(x) for x in leaves], True if look.hold is None else look.hold

        specialisation.compiled = self._backend.derivatives.compile(f)
        specialisation.compiled(*tensors)  # traced now, so that its errors come now
        specialisation.name = self._backend.name
        return specialisation

    def _asked(self, tensors) -> list:
        """Return tensors that report to ``looks`` when they are read."""
        return list(tensors) if self._backend.derivatives.knows_values else [wrap(x) for x in tensors]

    def _answers(self, tensors, earlier: Iterable[list]) -> Answers:
        """Return the values that the function reads, in order."""
        seen = Looks(earlier=earlier)
        try:
            with changed(looks, seen):
                self._function(self._asked(tensors))
        except JitError:
            raise
        except Exception as error:  # the function's own error, or one of a library's function that takes no variables
            self._function(tensors)
            raise looked_at_a_value() from error
        return seen.found


class _LibraryProgram:
    """A library's program for one branch."""

    answers: Answers
    form: Any
    compiled: Callable
    name: str

    def flat(self, *tensors) -> list | None:
        """Return the outputs, or None if a guard fails. An error counts as a failure; the function itself runs next."""
        try:
            leaves, holds = self.compiled(*tensors)
        except Exception:
            return None
        return leaves if bool(holds) else None

    def explained(self) -> str:
        return f"specialised to the branches taken, {len(self.answers)} guards: compiled by {self.name}"
