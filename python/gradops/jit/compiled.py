"""``Compiled``: the callable that ``jit`` returns. It finds the program of a call, or traces the function to make one.

A call's :class:`Signature` is the key of :class:`Programs`. If there is no program, or something that the function
reads from outside has changed (:mod:`.dependencies`), :func:`trace` calls the function on traced arrays and compiles
what was recorded (:mod:`.emission`). Other libraries' tensors go to their own compilers (:class:`.guards.OfLibrary`).
:class:`FunctionCheck` repeats some calls uncompiled and compares the results.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import operator
import re
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import _display, _functions, _tree, backends, config
from .._display import track, untracked
from .._scopes import changed, uncollected
from ..annotations import P, R
from ..autodiff.diagnostics import profiler
from ..autodiff.variable import Variable, data_of
from ..errors import ArgumentError, ArgumentTypeError, Given, JitError, Position, TypeOf
from ..ops._compose import has_extended_precision
from ..ops._structures import recorder
from . import emission
from .agreement import agree, report
from .array import Place
from .backend import Traced, register
from .control import Recorder
from .dependencies import Captured, lost_gradient
from .effects import only_computes
from .guards import Branching, Guarded, Guards, OfLibrary, taken_proof
from .hoisting import Hoisted
from .liveness import needed_rows
from .program import Program
from .reference import Reference
from .retraces import Held, Retraces, described
from .verification import ALL_CHECKED, NEVER, ONE_IN, SHARE

_NUMBERS = (bool, int, float, complex)
_FIXED = frozenset((*_NUMBERS, str, bytes, type(None), np.ndarray))
"""Types of static arguments whose values are in the key."""
MOST = 256
"""The largest number of programs of a function; a number or shape that changes at each call would add one each time."""


class Programs(dict):
    """The programs of a function by signature: the ``MOST / 2`` that were used last, and at most as many older ones.

    A lookup of a recently used program does not record the use, as each call of the function looks here.
    """

    def __init__(self) -> None:
        super().__init__()
        self.older: dict[Any, Callable] = {}
        self.of_static: dict[Any, Captured] = {}
        """The captured state that programs with mutable static arguments have read, by signature."""

    def find(self, key) -> Any:
        """Return the program of a signature and mark it as used; None if there is no program."""
        program = self.get(key)
        if program is None and (program := self.older.pop(key, None)) is not None:
            self[key] = program
        return program

    def __setitem__(self, key, program) -> None:
        if len(self) >= MOST // 2:
            self.older = dict(self)
            super().clear()
            self.of_static = {k: x for k, x in self.of_static.items() if k in self.older or k == key}
        super().__setitem__(key, program)

    def clear(self) -> None:
        super().clear()
        self.older.clear()
        self.of_static.clear()

    def all(self) -> list:
        """Return all programs, those used last at the end."""
        return [*self.older.values(), *self.values()]


class Compiled(_functions.Made[P, R]):
    """A function that is traced once for each signature of its arguments.

    Args:
        analyse: on NumPy, a function of a :class:`.Program` and its outputs; its result is the ``analysis`` of the
            compiled program.
        split: on NumPy, True if each item in a tuple of results gets a program of its own (see :meth:`part`), and no
            program computes all of them.
        native: on NumPy, False for programs without native code.
        static_names: the names of static arguments, for calls that pass them by name.
        frequent: on NumPy, the number of first tensors that change at each call, see :class:`.Hoisted`; None if all do.

    Attributes:
        programs: the compiled programs by signature, each a function of a list of tensors.
        derived: compiled functions that others made from this one, by name.
        retraces: why the function was traced again.
    """

    def __init__(
        self,
        f: Callable[P, R],
        static: tuple[int, ...],
        analyse: Callable | None = None,
        split: bool = False,
        native: bool = True,
        static_names: tuple[str, ...] = (),
        frequent: int | None = None,
    ):
        functools.update_wrapper(self, f, updated=())
        self.f = f
        self.static = static
        self.static_names = static_names
        self.analyse = analyse
        self.split = split
        self.native = native
        self.frequent = frequent
        self.derived: dict[str, Compiled] = {}
        self.programs = Programs()
        self.captured: Captured | None = None
        self.retraces = Retraces(f)
        self._function_check = FunctionCheck(self)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if next(self._function_check.unchecked, True):
            return self._function_check(args, kwargs)
        return self._computed(args, kwargs)

    def _computed(self, args: tuple, kwargs: dict) -> R:
        self._forget_changed()
        found = None if kwargs or self.static else self._known(args)
        if found is None:
            return self._called(Signature(args, kwargs, self.static, self.static_names))
        program, arrays = found
        return program(arrays)

    def known(self, args: tuple) -> tuple[Callable, list] | None:
        """Return the program for these arguments and its arrays (:func:`_quick_signature`); None without a program."""
        if self._function_check.failed:
            return None
        self._forget_changed()
        return self._known(args)

    def _known(self, args: tuple) -> tuple[Callable, list] | None:
        if (found := _quick_signature(args)) is None:
            return None
        arrays, key = found
        program = self.programs.get(key)
        return None if program is None else (program, arrays)

    def _forget_changed(self) -> None:
        if self.captured is not None and self.captured.changed():
            self.retraces.forget(self.captured.changes())
            self.programs.clear()

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.f)

    def _made_of(self) -> tuple[Callable, tuple]:
        """Pickle without the programs; another process compiles them again."""
        return Compiled, (self.f, self.static, self.analyse, self.split, self.native, self.static_names, self.frequent)

    def explain(self) -> str:
        """Return what was compiled, as text.

        For each signature: the steps of its program, how many run natively, why the others do not, and which loops of
        Python or R became one step. Then, if the function was traced more than once, what made each further trace
        necessary: a new shape, dtype or number, a variable that ``f`` reads and that has changed, or another branch.
        """
        if self._function_check.failed:
            return f"not compiled any more: {self._function_check.failed}"
        if not self.programs:
            return "not compiled yet: the first call compiles it"
        return "\n".join([*(p.explained() for p in self.programs.all()), *self.retraces.lines()])

    def __repr__(self) -> str:
        count = len(self.programs.all())
        return f"<gradops jit of {_title(self.f)}, {count} {'program' if count == 1 else 'programs'}>"

    def _repr_html_(self) -> str:
        found = self.programs.all()
        shown = [_display.verbatim(program.explained()) for program in found] or [_display.verbatim(self.explain())]
        for program in found:
            if hasattr(program, "source"):
                shown.append(_display.folded(f"{program.steps} steps", _display.verbatim(program.source)))
        return _display.block("jit", f"of {_title(self.f)}", *shown)

    def _called(self, signature: Signature):
        if signature.is_recorded:
            return self.f(*signature.args, **signature.kwargs)
        program = self._found(signature)
        if program is not None:
            return program(signature.tensors)
        program = self._compile(signature, is_called=True)
        proof = taken_proof(program)
        return program(signature.tensors) if proof is None else _tree.unflatten(*proof)

    def program(self, *args) -> Any:
        """Return the program for these arguments, a function of the list of tensors among them; traces if needed."""
        self._forget_changed()
        return self._program(Signature(args, {}, self.static))

    def part(self, k: int, *args, late: Sequence = (), turns: int = 0, most: int = 40) -> Any:
        """Return item ``k`` of the results, by a program that computes this item only; one trace serves all items.

        Args:
            late: arrays for the inputs that the function made while it was traced, whose sizes it found.
            turns, most: the number of calls of the item that the reference executor runs before the item is compiled:
                ``turns`` for a program of single numbers, fewer for arrays, and at most ``most``.

        Raises:
            JitError: the function branched on values while it was traced.
        """
        self._forget_changed()
        found: Any = self._known(args)
        program, arrays = (self.program(*args), list(args)) if found is None else found
        return program.part(k, turns, most)([*arrays, *late])

    def _program(self, signature: Signature) -> Callable:
        program = self._found(signature)
        return self._compile(signature) if program is None else program

    def _found(self, signature: Signature) -> Any:
        """Return the program for a signature, or None if there is no program or a static argument has changed."""
        program = self.programs.find(signature.key)
        if program is not None and (self.static or self.static_names):
            captured = self.programs.of_static.get(signature.key)
            if captured is not None and captured is not self.captured and captured.changed():
                return None
        return program

    def _compile(self, signature: Signature, is_called: bool = False) -> Callable:
        arguments = signature.arguments()

        def function(tensors):
            given, keywords = arguments(tensors)
            return self.f(*given, **keywords)

        static = [*map(signature.args.__getitem__, signature.static), *signature.named.values()]
        changing = tuple([x for x in static if type(x) not in _FIXED])
        traced = functools.partial(self._traced, signature.backend, changing, signature.key)
        if not signature.recordable:
            self.retraces.note(signature.described())
            program: Any = OfLibrary(signature.backend, function, traced, self.retraces.branch)
            self.programs[signature.key] = program
            return program

        def f(*tensors):
            return traced(functools.partial(function, tensors))

        if getattr(self.f, "are_arguments_hidden", False):
            _functions.hides_arguments(f)
        start = time.perf_counter()
        program = trace(f, signature.tensors, self.analyse, self.split, self.native, is_called, self.frequent)
        self.retraces.note(signature.described())
        if not self.split and program.answers:
            specialise = functools.partial(trace, f, native=self.native, is_called=True, frequent=self.frequent)
            program = Branching(program, specialise, function, self.retraces.branch)
        self.programs[signature.key] = program
        if not self.split:
            self._function_check.begin(time.perf_counter() - start)
        return program

    def _traced(self, backend, static: tuple, key, call: Callable):
        """Return the result of ``call``, which calls ``f`` with traced arguments, after a check for effects.

        If the call changed something that the function reads, it is called again: values that are made once (a cached
        value, an imported module) exist by then.

        Raises:
            JitError: random numbers were drawn, or the result carries a gradient to a tensor that is not an argument;
                or the second call also changed something that the function reads.
        """
        captured = Captured(self.f, static)
        random_state = functools.partial(captured.random_state, backend)
        before = random_state()
        result = call()
        if captured.changed() or captured.imported():
            captured = Captured(self.f, static)
            result = call()
            captured.refuse_changes()
        if random_state() != before:
            raise JitError(
                "a compiled function drew random numbers while it was traced; they would be the same at each call.",
                hint="draw them outside and pass them as an argument",
            )
        if lost_gradient(result):
            raise JitError(
                "the result of a compiled function depends on a variable that requires a gradient and is not an "
                "argument; the gradient would be lost.",
                hint="pass the variable as an argument, or use `variable.detach()`",
            )
        self.captured = captured
        if static:
            self.programs.of_static[key] = captured
        return result


class FunctionCheck:
    """Repeat some calls of a compiled function uncompiled, if the function has no effects, and compare the results.

    This finds faults that comparing programs cannot: a cache key or a guard that misses something the function reads.

    Attributes:
        unchecked: an iterator of False; when it is exhausted, the next call is checked.
        failed: the difference that was found; the function then runs uncompiled.
    """

    def __init__(self, compiled: Compiled):
        self._compiled = weakref.proxy(compiled)
        self.unchecked: Iterator[bool] = NEVER
        self.failed = ""
        self._calls, self._traced_in = 0, 0.0
        self._captured: Captured | None = None
        self._only_computes = False

    def begin(self, seconds: float) -> None:
        """Start checking calls; ``seconds`` is the time that tracing took."""
        self._traced_in = seconds
        if self.unchecked is NEVER and config.check() not in ("off", "first"):
            self._after(1 if config.check() == "sample" else 0)

    def __call__(self, args: tuple, kwargs: dict) -> Any:
        compiled, mode = self._compiled, config.check()
        if self.failed:
            return compiled.f(*args, **kwargs)
        if profiler.running():
            return compiled._computed(args, kwargs)
        self.unchecked = NEVER
        start = time.perf_counter()
        result = compiled._computed(args, kwargs)
        took = time.perf_counter() - start
        if mode in ("off", "first") or not self._has_no_effects() or _has_variables((args, kwargs)):
            return result
        if mode == "sample" and self._calls * SHARE * took < self._traced_in:
            self._after(int(self._traced_in / (SHARE * max(took, 1e-7))))
            return result
        start = time.perf_counter()
        with np.errstate(all="ignore"), untracked():
            want = compiled.f(*args, **kwargs)
        if not self._agree(result, want, args, kwargs):
            name = _title(compiled.f)
            self.unchecked = itertools.repeat(True)
            then = "The result is the function's own, and it runs uncompiled from now on."
            got, other = self._first(result, want)
            self.failed = report(f"the compiled `{name}`", got, other, 3, "uncompiled", then)
            compiled.programs.clear()
            return want
        if mode == "sample":
            self._after(max(self._calls, int((time.perf_counter() - start) / (SHARE * max(took, 1e-7)))))
        else:
            self._after(ONE_IN - 1 if mode == "error" and self._calls >= ALL_CHECKED else 0)
        return result

    def _after(self, calls: int) -> None:
        self._calls += calls + 1
        self.unchecked = itertools.repeat(False, calls)

    def _has_no_effects(self) -> bool:
        captured = self._compiled.captured
        if captured is not self._captured:
            self._captured = captured
            self._only_computes = captured is not None and only_computes(captured)
        return self._only_computes

    def _agree(self, result, want, args: tuple, kwargs: dict) -> bool:
        (got, form), (expected, other) = _tree.flatten(result), _tree.flatten(want)
        if form != other:
            return False
        signature = Signature(args, kwargs, self._compiled.static, self._compiled.static_names)
        program = self._compiled.programs.get(signature.key)
        verification = getattr(getattr(program, "first", program), "verification", None)
        if verification is None or verification.failed:
            return True
        # A compiled solver may stop at another iterate, so small differences are not a fault.
        pairs = [(np.asarray(x), np.asarray(y)) for x, y in zip(got, expected)]
        far = [(x, y) for x, y in pairs if x.shape != y.shape or not _are_near(x, y)]
        rounded = verification.rounded(signature.tensors)
        return not far or agree([x for x, _ in pairs], [y for _, y in pairs], rounded)

    @staticmethod
    def _first(result, want) -> tuple:
        """Return the first pair of leaves that differ."""
        pairs = zip(_tree.flatten(result)[0], _tree.flatten(want)[0])
        return next(((x, y) for x, y in pairs if not agree([x], [y])), (None, None))


def _are_near(x: np.ndarray, y: np.ndarray) -> bool:
    """True if all elements differ by less than a thousandth of the largest, and the same elements are finite."""
    if x.dtype.kind not in "fc" or y.dtype.kind not in "fc":
        return bool(np.array_equal(x, y))
    finite = np.isfinite(y)
    if not np.array_equal(finite, np.isfinite(x)):
        return False
    scale = np.abs(y[finite]).max(initial=0.0)
    return bool((np.abs(x[finite] - y[finite]) <= 1e-3 * scale + 1e-8).all())


def _has_variables(arguments) -> bool:
    return any(isinstance(x, (Variable, Traced)) for x in _tree.flatten(arguments)[0])


def _quick_signature(args: Sequence) -> tuple[list, tuple] | None:
    """Return the arrays and the signature if all arguments are NumPy arrays or structures of them, else None.

    :class:`Signature` finds the same in ten times as long.
    """
    arrays: list = []
    key = [config.floatx(), config.epsilon()]
    return (arrays, tuple(key)) if _add_arrays(args, arrays, key) and arrays else None


def _add_arrays(values: Iterable, arrays: list, key: list) -> bool:
    for x in values:
        kind = type(x)
        if kind is np.ndarray:
            arrays.append(x)
            key += (x.shape, x.dtype)
            continue
        if kind is list or kind is tuple:
            key += (kind, len(x))
        elif kind is dict:
            key += (kind, tuple(x))  # the function may iterate over a dict, so the order of its keys counts
            x = [x[name] for name in _tree.sorted_keys(x)]
        else:
            return False
        if not _add_arrays(x, arrays, key):
            return False
    return True


def _title(f: Callable) -> str:
    """Return a function's name, with its parameters if they are known."""
    name = getattr(f, "__qualname__", None) or repr(f)
    try:
        return f"{name}{inspect.signature(f)}"
    except (TypeError, ValueError):
        return name


class Signature:
    """The key of a call: its backend, structure, shapes and dtypes, numbers and static arguments.

    Python numbers are part of the key and not tensors, as they take the dtype of the tensors they are used with.

    Raises:
        ArgumentTypeError: an argument is neither a tensor nor static, or a static argument cannot be compared.
        ArgumentError: a negative position of a static argument is before the first argument.
    """

    def __init__(self, args: tuple, kwargs: dict, static: tuple[int, ...], static_names: tuple[str, ...] = ()):
        self.args, self.kwargs, self.static = args, kwargs, _static_positions(static, len(args))
        self.named = {name: kwargs[name] for name in static_names if name in kwargs}
        dynamic = [x for i, x in enumerate(args) if i not in self.static]
        by_name = {name: x for name, x in kwargs.items() if name not in self.named} if self.named else kwargs
        self.leaves, self.form = _tree.flatten((dynamic, by_name))
        found = backends.common([type(data_of(x)) for x in self.leaves], "jit")
        self.backend = found or config.default_backend()
        self.is_recorded = any(isinstance(x, (Variable, Traced)) for x in self.leaves)
        if self.is_recorded:
            return
        self.is_number = [type(x) in _NUMBERS for x in self.leaves]
        self.tensors = [_as_tensor(x, self.backend) for x, number in zip(self.leaves, self.is_number) if not number]
        self.recordable = self.backend.is_tensor_type(np.ndarray)
        if not kwargs and not static and (quick := _quick_signature(args)) is not None:
            arrays, key = quick
            if all(map(operator.is_, arrays, self.tensors)):
                self.key = key
                return
        compared: list[Any] = [key_of_value(args[i], Position(i)) for i in self.static]
        compared += [(name, key_of_value(x, Given(repr(name)))) for name, x in self.named.items()]
        numbers = enumerate(zip(self.leaves, self.is_number))
        compared += [key_of_value(x, Position(i)) if is_number else None for i, (x, is_number) in numbers]
        shapes = [(x.shape, x.dtype) for x in self.tensors]
        orders = _tree.dict_orders(self.form)
        self.key = (self.backend.name, self.form, orders, *compared, config.floatx(), config.epsilon(), *shapes)

    def described(self) -> dict[tuple, Held]:
        """Return what the key holds of each argument and setting.

        The keys of the dict are the position or name of an argument and a path within it, as in ``(0, "['w']")``.
        """
        dynamic = [i for i in range(len(self.args)) if i not in self.static]
        tensors: Iterator = iter(self.tensors)
        static = {i: self.args[i] for i in self.static} | self.named
        found = {(i, ""): Held("value", key_of_value(x, Given(repr(i))), described(x)) for i, x in static.items()}
        for path, leaf, is_number in zip(_tree.paths(self.form), self.leaves, self.is_number):
            place, rest = re.fullmatch(r"\[\d\]\[(.*?)\](.*)", path).groups()  # type: ignore[union-attr]
            name = dynamic[int(place)] if path.startswith("[0]") else ast.literal_eval(place)
            if is_number:
                found[name, rest] = Held("value", repr(leaf), described(leaf))
            else:
                tensor = next(tensors)
                found[name, rest] = Held("tensor", (tensor.dtype, tuple(tensor.shape)))
        settings = {"backend": self.backend.name, "floatx": config.floatx(), "epsilon": config.epsilon()}
        return found | {(name, ""): Held("setting", value, described(value)) for name, value in settings.items()}

    def arguments(self) -> Callable:
        """Return a function that puts tensors into the call's structure; it does not hold the call's own tensors."""
        form, is_number, count = self.form, self.is_number, len(self.args)
        numbers = [x if number else None for x, number in zip(self.leaves, is_number)]
        chosen, named = {i: self.args[i] for i in self.static}, self.named

        def arguments(tensors) -> tuple[list, dict]:
            given = iter(tensors)
            leaves = [x if number else next(given) for x, number in zip(numbers, is_number)]
            dynamic, kwargs = _tree.unflatten(form, leaves)
            queue = iter(dynamic)
            return [chosen[i] if i in chosen else next(queue) for i in range(count)], {**kwargs, **named}

        return arguments


def _static_positions(static: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Return the positions of the static arguments that were passed explicitly, counted from 0."""
    if static and min(static) < -count:
        raise ArgumentError(
            f"`static_argnums` names position {min(static)} of {count} arguments.", argument="static_argnums"
        )
    return tuple([i % count if i < 0 else i for i in static if i < count])


def _as_tensor(value, backend):
    if backends.backend_of(value) is backend and not has_extended_precision(value):
        return value
    try:
        return backend.convert(value)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(
            "an argument of a compiled function must be a tensor, a number or a structure of them; got {value}.",
            hint="name its position in `static_argnums`",
            value=TypeOf(value),
        ) from error


def key_of_value(value, position):
    """Return the key of a static argument; ``position`` names it in errors."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return ("array", value.shape, value.dtype, value.tobytes())
    if isinstance(value, (list, tuple)):
        return (type(value), *[key_of_value(item, position) for item in value])
    if isinstance(value, dict):
        return ("dict", *[(key, key_of_value(item, position)) for key, item in value.items()])
    try:
        hash(value)
    except TypeError as error:
        raise ArgumentTypeError(
            "the static argument {position} must be hashable, or an array, list or dict of hashables; got {value}.",
            argument="static_argnums",
            position=position,
            value=TypeOf(value),
        ) from error
    if isinstance(value, (float, complex)):
        return (type(value), repr(value))  # 0.0 is equal to -0.0
    return (type(value), value)


def trace(
    f: Callable,
    tensors: list,
    analyse: Callable | None = None,
    split: bool = False,
    native: bool = True,
    is_called: bool = False,
    frequent: int | None = None,
    earlier: Sequence[list] = (),
) -> Any:
    """Return the program of one call of ``f`` on NumPy arrays.

    Args:
        analyse, split, native, frequent: see :class:`Compiled`.
        is_called: True if the program is called next, with these arrays; its ``proof`` is then the result.
        earlier: the ``answers`` of the other programs of this signature.
    """
    guards = Guards(earlier)
    with uncollected(), track(2, "compiling") as advance:
        return _trace(f, tensors, analyse, split, native, is_called, frequent, guards, advance)


def _trace(
    f: Callable,
    tensors: list,
    analyse: Callable | None,
    split: bool,
    native: bool,
    is_called: bool,
    frequent: int | None,
    guards: Guards,
    advance: Callable,
) -> Any:
    register()
    program = Program(has_numbers=True, is_native=native)
    program.guards = guards if analyse is None and not split else None
    program.hidden = set() if getattr(f, "are_arguments_hidden", False) else None
    with changed(recorder, Recorder(program, unrolled=analyse is not None)):
        try:
            result = f(*[program.input(np.asarray(x)) for x in tensors])
        except (TypeError, ValueError) as error:
            if isinstance(error.__cause__, JitError):  # NumPy wraps it as "setting an array element with ..."
                raise error.__cause__ from None
            raise
    leaves, form = _tree.flatten(result)
    outputs = [_output(x, program) for x in leaves]
    advance(1)
    del result, leaves
    program.guards = None
    program.finish()
    takes = _InputTypes((x.dtype, list(x.shape)) for x in map(np.asarray, tensors))
    if split:
        return _Parts(program, outputs, form, takes)
    holds = None if guards.hold is None else guards.hold.place
    if frequent is None:
        function = emission.function(program, outputs, holds, is_called=is_called)
    else:
        function = Hoisted(program, outputs, holds, frequent, is_called)
    proof = function.proof
    if guards.count:
        function = Guarded(function, guards.count)

    def found(values):
        return form, function(*values)

    def run(values):
        return _tree.unflatten(form, function(*values))

    run.proof = None if proof is None else (form, proof)  # type: ignore[attr-defined]
    run.verification = function.verification  # type: ignore[attr-defined]
    run.sole = function.sole  # type: ignore[attr-defined]
    run.flat, run.form, run.found, run.answers = function, form, found, guards.answers  # type: ignore[attr-defined]
    run.source = function.source  # type: ignore[attr-defined]
    run.steps = function.steps  # type: ignore[attr-defined]
    run.native = function.native  # type: ignore[attr-defined]
    looks = f", specialised to the branches taken, {guards.count} guards" if guards.count else ""
    rolled = "".join(f"\n  a loop of {count} iterations became one step" for count in program.rolled)
    run.explained = lambda: f"({takes}){looks}: {function.native}{rolled}"  # type: ignore[attr-defined]
    run.analysis = None if analyse is None else analyse(program, outputs)  # type: ignore[attr-defined]
    program.forget()
    return run


class _InputTypes(list):
    """The dtypes and shapes of a program's inputs. The text is made on demand: a dtype's name takes a microsecond."""

    def __str__(self) -> str:
        return ", ".join([f"{dtype}{shape}" for dtype, shape in self])


SHORT = 2_000
"""The largest number of rows of a program whose items the reference executor runs before they are compiled."""
HALVING = 200
"""The mean number of elements of a program's values that halves the calls before an item is compiled."""


class _Parts:
    """A program for each item of a function's results; each is a function of a list of arrays, without guards."""

    def __init__(self, program: Program, outputs: list, form: _tree.Structure, takes: _InputTypes):
        self._program: Program | None = program
        self._made: dict[int, Any] = {}
        self._in_turn: dict[int, Any] = {}
        self._calls: Counter[int] = Counter()
        self._takes, self._parts, start = takes, [], 0
        for part in form.parts:
            self._parts.append((part, outputs[start : start + part.leaves]))
            start += part.leaves

    def part(self, k: int, turns: int, most: int) -> Callable:
        """Return the function of item ``k``.

        The reference executor runs its first calls, as there may be no others. Then the item is compiled; the traced
        program is held until all items are.

        Args:
            turns, most: the number of first calls for single numbers; arrays gain more from compiled code and get
                fewer, and no item gets more than ``most``.
        """
        found = self._made.get(k)
        if found is not None:
            return found
        turns = min(int(turns * self._share_of_turns), most)
        form, outputs = self._parts[k]
        self._calls[k] += 1
        if self._calls[k] == 1 and turns and len(self._program.table) <= SHORT:  # type: ignore[union-attr]
            rows = needed_rows(self._program, {o.index for o in outputs if isinstance(o, Place)})  # type: ignore[arg-type]
            reference = Reference.make(self._program, rows, outputs)  # type: ignore[arg-type]
            self._in_turn[k] = functools.partial(_unflattened, form, reference)
        if k in self._in_turn and self._calls[k] <= turns:
            return self._in_turn[k]
        with uncollected():
            function = emission.function(self._program, outputs)  # type: ignore[arg-type]
        self._in_turn.pop(k, None)
        found = self._made[k] = functools.partial(_unflattened, form, function)
        if len(self._made) == len(self._parts):
            self._program.forget()  # type: ignore[union-attr]
            self._program = None
        return found

    @functools.cached_property
    def _share_of_turns(self) -> float:
        values = self._program.values  # type: ignore[union-attr]
        elements = sum(map(np.size, values.others.values()))
        return HALVING / (HALVING + elements / max(1, len(values.numbers)))

    def __del__(self):
        if self._program is not None:
            self._program.forget()

    def explained(self) -> str:
        found = dict.fromkeys(self._in_turn, "not compiled yet")
        found.update((k, made.args[1].native) for k, made in self._made.items())
        return "\n".join(f"({self._takes}), part {k}: {found[k]}" for k in sorted(found))


def _unflattened(form: _tree.Structure, function: Callable, values: list):
    return _tree.unflatten(form, function(*values))


def _output(x, program: Program):
    if isinstance(x, Variable):
        x = x.data
    if not isinstance(x, Traced):
        return x
    if x.program is not program:
        raise JitError("a compiled function returned an array of another function being traced.")
    if x.stale:
        x.refuse_stale()
    return x.place
