"""Compare compiled programs with the reference executor: when a program is made, and at some of its calls.

:mod:`.emission` makes a :class:`Verification` for each program. The reference executor repeats calls 1, 2, 4, 8, ... of
the program, but later if checks would take more than 2 % of the time of the calls. If the results differ, the caller
gets the reference executor's, with a warning or error, and the program is not used again.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import operator
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import config
from ..autodiff.diagnostics import profiler
from ..errors import MismatchError
from . import native
from .agreement import agree, report, roundings
from .program import Program
from .reference import Reference
from .steps import Step
from .table import Rows

SHARE = 0.02
"""The largest share of the running time that checks take."""
ALL_CHECKED = 100
"""Mode ``"error"``: the number of first calls of a program that are all checked; later, one in ``ONE_IN`` is."""
ONE_IN = 10
LONGEST_SEARCH = 20_000
"""The largest number of rows of a program in which a failed check searches for the wrong op."""
NEVER, _ALWAYS = itertools.repeat(False), itertools.repeat(True)
_programs: weakref.WeakSet[Verification] = weakref.WeakSet()


class Verification:
    """The checks of one emitted function.

    The function starts with ``if next(unchecked, True): return checked(...)``; both names are in its globals.

    Args:
        scope: the function's globals.
        rows: the rows that the outputs need, without native code.
        is_guarded: True if the last output is the truth value of the guards.
        is_sampled: False for a function that a loop calls for each row, which is checked once.
    """

    def __init__(
        self,
        function: Any,
        scope: dict,
        program: Program,
        rows: Rows,
        outputs: list,
        is_guarded: bool,
        is_sampled: bool,
    ):
        self._function_of = weakref.ref(function)  # weak, as the function's globals refer to this object
        self._is_guarded = is_guarded
        self._reference = Reference.make(program, rows, outputs)
        self._is_sampled = is_sampled
        self._calls = 1
        self.failed = ""
        scope.update(checked=self._checked, unchecked=NEVER)
        if is_sampled:
            _programs.add(self)

    @property
    def _function(self) -> Any:
        return self._function_of()

    @property
    def _unchecked(self) -> Iterator:
        return self._function.__globals__["unchecked"]

    def _check_after(self, unchecked: Iterator) -> None:
        self._function.__globals__["unchecked"] = unchecked

    def prove(self, inputs: list, outputs: list) -> list | None:
        """Run the function on inputs with known outputs; return its results, or None if they are wrong."""
        start = time.perf_counter()
        try:
            found = self._function(*inputs)
        except MismatchError:  # in a loop's body
            raise
        except Exception:
            self._check_after(_ALWAYS)
            return None
        took = time.perf_counter() - start
        got = self._listed(found)
        rounded = functools.partial(self._reference.outputs_for, inputs)
        if not agree(got, outputs, rounded, self._reference.executed_rows()):
            self._check_after(_ALWAYS)  # not a fault yet: the trace may have written to the inputs, so compare again
            self._compare(inputs, found)
            return None
        self._wait(took, self._reference.seconds())
        return found

    def rounded(self, arrays: list) -> Callable[[Callable], list]:
        """Return the outputs for ``arrays`` as a function of a :class:`.Rounding`, see :func:`.agree`."""

        def outputs(rounding):
            found = self._reference.outputs_for(arrays, rounding)
            return found[:-1] if self._is_guarded else found

        return outputs

    def skip(self, calls: int) -> None:
        """Count calls that C code has made."""
        if self._unchecked not in (NEVER, _ALWAYS):
            self._calls += calls
            left = operator.length_hint(self._unchecked)
            self._check_after(itertools.repeat(False, max(0, left - calls)))

    def reset(self) -> None:
        """Check the next call, as settings have changed."""
        if not self.failed and self._function is not None:
            self._check_after(iter(()))

    def _listed(self, found: list | None) -> list:
        if not self._is_guarded:
            return found or []
        return [None] * (len(self._reference.outputs) - 1) + [np.False_] if found is None else [*found, np.True_]

    def _checked(self, *arrays) -> list | None:
        if self.failed:
            return self._given(self._reference.outputs_for(arrays))
        self._check_after(NEVER)
        if config.check() in ("off", "first"):
            return self._function(*arrays)
        if profiler.running():  # a profile must not include the reference executor
            found = self._function(*arrays)
            self._check_after(iter(()))
            return found
        start = time.perf_counter()
        try:
            found = self._function(*arrays)
        except MismatchError:
            raise
        except Exception as error:
            self._check_after(iter(()))
            outputs = self._outputs_after(error, arrays)
            if outputs is None:
                raise
            return outputs
        except BaseException:
            self._check_after(iter(()))
            raise
        took = time.perf_counter() - start
        start = time.perf_counter()
        result = self._compare(arrays, found)
        if not self.failed:
            self._wait(took, time.perf_counter() - start)
        return result

    def _wait(self, took: float, checking: float) -> None:
        """Schedule the next check."""
        mode = config.check()
        if mode == "always" or (mode == "error" and self._calls < ALL_CHECKED):
            self._calls += 1
            self._check_after(_ALWAYS)
        elif mode == "error":
            self._check_after(itertools.repeat(False, ONE_IN - 1))
        elif mode == "sample" and self._is_sampled:
            between = max(self._calls - 1, int(checking / (SHARE * max(took, 1e-7))))
            self._calls += between + 1
            self._check_after(itertools.repeat(False, between))
        else:
            self._check_after(NEVER)

    def _given(self, outputs: list) -> list | None:
        if not self._is_guarded:
            return outputs
        *outputs, holds = outputs
        return outputs if holds else None

    def _compare(self, arrays, found: list | None) -> list | None:
        """Return the function's results, or the reference executor's if they differ."""
        try:
            with np.errstate(all="ignore"):
                want = self._reference.outputs_for(arrays)
        except Exception:
            if found is None or self._raises_by_rounding(arrays):
                return found
            self._fail(arrays, [], [])
            raise
        got = self._listed(found)
        if self._is_guarded and not (found is not None and want[-1]):
            got, compared = got[-1:], want[-1:]  # outputs are not used if a guard fails
        else:
            compared = want

        def rounded(rounding):
            return self._reference.outputs_for(arrays, rounding)[-len(compared) :]

        if agree(got, compared, rounded, self._reference.executed_rows()):
            return found
        self._fail(arrays, got, compared)
        return self._given(want)

    def _outputs_after(self, error: Exception, arrays) -> list | None:
        """Report an error that the reference executor does not raise, and return its results; None if it raises."""
        # A guarded program may fail for arrays that take another branch. A FloatingPointError comes from NumPy's
        # settings.
        if self._is_guarded or isinstance(error, FloatingPointError):
            return None
        try:
            with np.errstate(all="ignore"):
                outputs = self._reference.outputs_for(arrays)
        except Exception:
            return None
        self._fail(arrays, [], [])
        return outputs

    def _raises_by_rounding(self, arrays) -> bool:
        """True if rounding errors decide whether the reference executor raises."""
        for rounding in roundings():
            with np.errstate(all="ignore"), contextlib.suppress(Exception):
                self._reference.outputs_for(arrays, rounding)
                return True
        return False

    def _fail(self, arrays, got: list, want: list) -> None:
        self.failed = "wrong"  # so that nothing is checked during the search and the report
        self._check_after(_ALWAYS)
        self._function.sole = None
        part, one, other = self._culprit(arrays)
        if part is None:
            part = "a compiled program"
            one, other = next(((x, y) for x, y in zip(got, want) if not agree([x], [y])), (None, None))
        self.failed = self._function.native.failed = report(part, one, other, stacklevel=5)

    def _culprit(self, arrays) -> tuple:
        """Return the first op whose native code is wrong, with its result and NumPy's, or three None."""
        if len(self._reference.rows) > LONGEST_SEARCH:
            return None, None, None
        try:
            with np.errstate(all="ignore"):
                return _wrong_op(self._reference, arrays)
        except Exception:
            return None, None, None


def _wrong_op(reference: Reference, arrays) -> tuple:
    program, values = Program(), reference.values_for(arrays)
    size = max([0, *values]) + 1
    for place in range(1, size):
        program.new(values.get(place, 0.0) if values.get(place) is not None else 0.0)
    program.constants, program.inputs = dict(reference.constants), list(reference.inputs)
    made_by = {place: step for step in reference.rows for place in step.places}
    lowered, _ = native.lowered(program, reference.rows, set(made_by))
    for step in lowered:
        if not isinstance(step.function, (native.Run, native.Tiles)):
            continue
        found = step.function(*step.given(values.__getitem__))
        for place, x in zip(step.places, found):
            rounded = functools.partial(_rounded_result, made_by[place], values, place)
            if not agree([x], [values[place]], rounded):
                return f"`{made_by[place].name}` in native code", x, values[place]
    return None, None, None


def _rounded_result(step: Step, values: dict, place: int, rounding: Callable) -> list:
    """Return a result of a step whose operands carry rounding errors of earlier steps."""
    given = {p: rounding.rounded(values[p]) for p in step.uses}  # type: ignore[attr-defined]
    results = step.function(*step.given(given.__getitem__))
    return [results[step.places.index(place)] if step.several else results]


def reset() -> None:
    """Tell all programs that ``config.check()`` has changed."""
    for verification in list(_programs):
        verification.reset()


config.add_check_listener(reset)
