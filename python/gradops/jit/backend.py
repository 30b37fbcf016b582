"""The backend of traced arrays: each kernel runs NumPy's kernel and records the call as a row of the program.

While ``jit`` traces a function on NumPy, its arguments are ``Traced`` arrays, so the ops it calls are dispatched to
this module. A ``Traced`` has the value for the arguments of the trace, so shapes and dtypes are known, and the place of
that value in the program. Code that reads the value (a branch, ``x.item()``, a text) adds a guard (:mod:`.guards`).
Code that would take the value out of the program (``float()``, conversion to NumPy) raises a :class:`.JitError`.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import backends, ops
from .._tree import items, map_items
from ..autodiff.record import has_derivative
from ..autodiff.state import buffer
from ..autodiff.variable import data_of
from ..backends import numpy as _kernels
from ..errors import ArgumentTypeError, JitError
from ..ops import _pandas, numpy_functions, operators
from ..ops._dispatch import facts_of, of_kernels, registry
from ..ops._registry import rule, rule_of
from ..ops._structures import recorder
from . import promotion
from .array import Traced, Tracing
from .operations import number_operation
from .steps import Step, is_plain, place_of, values_of, with_arrays


def _augmented_assignment(op, name: str):
    """Return the method for ``x op= y``. It writes to arrays in place but rebinds single numbers, as NumPy does."""

    def operate(self, other):
        result = op(self, other)
        if not self.ndim and _is_number(self) or not isinstance(result, Traced):
            return result
        if result.shape != self.shape or not np.can_cast(result.dtype, self.dtype, "same_kind"):
            raise ArgumentTypeError(
                f"`{name}` in place: a result of shape {result.shape} and dtype {result.dtype} "
                f"does not fit into shape {self.shape} and dtype {self.dtype}."
            )
        self._write(result)
        return self

    return operate


def _is_number(x: Traced) -> bool:
    """True if a value without dimensions is a number, which ``+=`` rebinds; False for an array, which it writes to."""
    # `x[0]` is a number. A write to an array without dimensions is seen by all arrays on its memory. An argument is
    # always traced as an array; it is taken for a number unless it is a view of another array.
    return x.value.__class__ is not np.ndarray or x.program.memories.is_given(x) and not np.ndim(buffer(x.value))


def is_tensor_type(kind: type) -> bool:
    return issubclass(kind, Traced)


def prepare(floatx: str) -> None:
    """Do nothing, as there is nothing to set up."""


def dtype_name(x: Traced) -> str:
    return _name(x.dtype)


_name = functools.cache(operator.attrgetter("name"))  # NumPy computes a dtype's name each time


def to_numpy(x: Traced):
    x.refuse()


def components(x) -> None:
    """Return None: no object of this backend holds tensors."""


def convert(value, dtype=None, like=None):
    """Return a value as a constant of the program that is being traced."""
    if isinstance(value, Traced):
        return value if dtype is None else _recorded("cast", _kernels.base.cast)(value, dtype)
    if isinstance(value, (list, tuple)):
        found = next((v for v in items(value) if isinstance(v, Traced)), None)
        if found is not None:
            return ops.stack([convert(v, dtype, found) for v in value])
    array = _kernels.base.convert(value, dtype)
    if like is None:
        return array
    program = like.program
    traced = (program if program.current is program else _current()).constant(array)
    traced.axis_labels = _pandas.axes_of(value)
    return traced


def shown(x: Traced):
    """Return the values for a text, and guard them."""
    return x._read()


def concrete(x: Traced, kind: type):
    """Return a constant as a Python number; None if the value depends on the arguments."""
    return kind(x.value) if x.place.index in x.program.constants else None


_foreign = itertools.count()


def call_back(program, tensors: list) -> list:
    values = [getattr(t, "value", t) for t in tensors]
    program(*values)
    place = next(t.program for t in tensors if hasattr(t, "program"))
    return list(place.call(f"host {next(_foreign)}", program.cast, tensors, values))


def __getattr__(name: str) -> Any:
    op = of_kernels.get(name, name)
    kernel = backends.embedded().kernel(name)
    if not name.startswith("_") and callable(kernel):
        return _recorded(op, kernel)
    body = registry[op].body if op in registry and has_derivative(op) else None
    if body is None:
        raise AttributeError(name)
    return _composed(op, body)


def _composed(name: str, body: Callable) -> Callable:
    """Return the kernel of an op that is composed of others and has its own derivative rule, which is recorded."""

    def composed(*arguments):
        result = body(*arguments)
        if result.__class__ is Traced:
            given = [x for x in items(arguments) if isinstance(x, Traced)]
            if all(x.program is result.program and x.place != result.place for x in given):
                spec = with_arrays(place_of, arguments)
                result.program.composed[result.place] = Step(name, composed, spec, (result.place,), None)
        return result

    return composed


def static_value(x: Traced):
    """Return the value of an array that does not depend on the arguments; raises for others."""
    if x.place.index not in x.program.constants:
        x.refuse()
    return x.value


@functools.cache
def _recorded(name: str, kernel):
    """Return NumPy's kernel as a function that records its calls on traced arrays."""
    is_shape_only = facts_of(name).shape_only  # shapes are fixed in a program, so the result is equal for all arguments
    is_elementwise = facts_of(name).elementwise
    keeps_labels = name == "get_item" or is_elementwise  # results keep labels of a data frame
    look_rule = rule_of("look", name)

    def record(*arguments):
        program, is_folded, nested, foreign = None, True, False, False
        for x in arguments:
            if x.__class__ is Traced:
                program = x.program
                foreign = foreign or program.current is not program
                is_folded = is_folded and x.place in program.folded
                if x.stale:
                    x.refuse_stale(name, arguments)
            elif not is_plain(x):
                nested = True
        values: Any = arguments
        if nested:
            arguments = map_items(data_of, arguments)  # settings, as positions, may be computed from variables
            found = [x for x in items(arguments) if isinstance(x, Traced)]
            if found:
                program = found[0].program
                foreign = any(x.program.current is not x.program for x in found)
                is_folded = all(x.place in x.program.folded for x in found)
                for x in found:
                    if x.stale:
                        x.refuse_stale(name, arguments)
                # A list of indices, or an array in a key, is the user's, who may fill it with others before the next
                # call.
                arguments = program.snapshot(arguments)
                values = values_of(arguments)
        elif program is not None:
            if is_elementwise and not foreign and not is_folded:  # the most frequent case
                number = program.number(number_operation(name, kernel, len(arguments)), arguments)
                if number is not None:
                    return number
            values = [x.value if x.__class__ is Traced else x for x in arguments]
        if program is None:
            return kernel(*arguments)
        # An array may belong to an enclosing program, or to one whose trace has ended. `lift` makes it an argument of
        # the current program, or raises.
        if foreign:
            program = _current()
            arguments = with_arrays(program.lift, arguments)
        # A result that is equal for all arguments is computed now and not recorded. The zeros and ones that backward
        # passes start with disappear this way, and code that reads such a value needs no guard.
        if is_shape_only or is_folded:
            return program.fold(kernel(*values), arguments)
        guarded = None if look_rule is None else look_rule(*arguments)
        if guarded is not None:
            if program.may_look:
                return record(*guarded())
            raise JitError(
                f"`{name}`: the shape of the result depends on values, which a compiled function cannot look at.",
                hint="use `ops.where()` with three arguments, or keep it outside the compiled function",
            )
        labels = _pandas.result_labels(name, arguments) if _pandas.seen and keeps_labels else None
        write = program.call if foreign or nested else program.step
        result = write(name, kernel, arguments, values)
        if labels is not None and result.__class__ is Traced and result.ndim:
            result.axis_labels = labels
        return result

    if is_elementwise:
        record.numbers = (np.float64,)  # type: ignore[attr-defined]  # constant like Python's numbers
    return record


# Ops whose result has one element per True of a mask. A rule returns a function that guards the masks and gives the
# arguments with the masks' values, or None if no mask is traced.


@rule("look", "get_item")
def _guarded_key(x, *key) -> Callable | None:
    if not any(isinstance(y, Traced) and y.dtype == bool for y in items(key)):
        return None
    return lambda: (x, *map(_mask_values, key))


@rule("look", "nonzero", "where")
def _guarded_condition(condition, *others) -> Callable | None:
    if not isinstance(condition, Traced) or any(x is not None for x in others):
        return None
    return lambda: (_mask_values(condition if condition.dtype == bool else ops.not_equal(condition, 0)), *others)


def _mask_values(x):
    return map_items(lambda y: y.program.look(y) if isinstance(y, Traced) and y.dtype == bool else y, x)


def _current() -> Tracing:
    """Return the program that records a call on arrays of several programs.

    Raises:
        JitError: no function is being traced.
    """
    writing = recorder.get()
    if writing is None:
        raise JitError("an array of a function that is no longer being traced was used.")
    return writing.program


def _array_equal(a1, a2, equal_nan=False):
    a1, a2 = (x if isinstance(x, Traced) else np.asarray(x) for x in (a1, a2))
    if a1.shape != a2.shape:
        return False
    same = ops.equal(a1, a2)
    if equal_nan:
        same = ops.logical_or(same, ops.logical_and(ops.not_equal(a1, a1), ops.not_equal(a2, a2)))
    return ops.all(same)


def _close(op: Callable) -> Callable:
    return lambda a, b, rtol=1e-05, atol=1e-08, equal_nan=False: op(a, b, rtol, atol, equal_nan)


_QUESTIONS = {np.allclose: _close(ops.allclose), np.isclose: _close(ops.isclose), np.array_equal: _array_equal}
"""NumPy's functions that decide on values, as ops; the answer is a traced truth value, as for ``x > 0``."""


def _array_function(array_function: Callable) -> Callable:
    """Return ``__array_function__`` with the functions of :data:`_QUESTIONS`."""

    def call(self, function, types, arguments, keywords):
        question = _QUESTIONS.get(function)
        if question is None:
            return array_function(self, function, types, arguments, keywords)
        return question(*arguments, **keywords)

    return call


@functools.cache
def register() -> None:
    """Register traced arrays as a backend and define their operators."""
    import sys

    backends.register("traced", sys.modules[__name__], root="gradops")
    operators.give(Traced)
    operators.give_array_api(Traced)
    numpy_functions.give(Traced, JitError)
    promotion.give()
    kind: Any = Traced
    kind.__array_function__ = _array_function(kind.__array_function__)
    for name in operators.BINARY:
        setattr(
            Traced,
            f"__i{name}__",
            _augmented_assignment(getattr(Traced, f"__{name}__"), operators.BINARY[name].__name__),
        )
