"""Recomputation plans: how the results of a checkpoint scope are computed again, for any library.

While a scope is open, each operation is noted as a ``Step``: the function, its constants, and a ``Source`` for each
array. A source is an earlier step's ``Result``, or an ``Input`` from outside, which is saved. Graph nodes save a
``Handle`` in place of a result, so the array is freed when the user drops it. The backward pass asks the handles for
values. The first request recomputes, once and in order, the values that all living handles of the plan need.

Memory is freed by ownership: a handle owns its step, a step its sources, and nothing else does. A recomputed value
belongs to the backward pass and is freed with its handle. So a step is freed with the last graph node that may need it,
and a value as soon as the pass no longer needs it.

A library defines the version and the view of its arrays in a subclass of ``Plan``.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from .._tree import Call, items
from ..errors import GradientError
from . import checkpoint_policies


class Plan:
    """The steps of one scope, and the handles that may request their results."""

    def __init__(self):
        self.handles: weakref.WeakValueDictionary[tuple, Handle] = weakref.WeakValueDictionary()
        self.lock = threading.RLock()
        self.policy = checkpoint_policies.current.get()
        self.recent: collections.deque[tuple[Step, list]] = collections.deque(maxlen=4)  # with arguments
        self.clock = itertools.count(1).__next__

    # Members that each library defines

    @staticmethod
    def version(array) -> Any:
        """The version of ``array``, for :meth:`changed` to tell later whether it was written."""
        raise NotImplementedError

    @staticmethod
    def changed(array, version) -> bool:
        """True if ``array`` was written since it had that version."""
        raise NotImplementedError

    @staticmethod
    def view(array, layout):
        """The view of a recomputed array that ``layout`` describes."""
        raise NotImplementedError

    @staticmethod
    def moved_to_cpu(array) -> tuple[Any, Callable]:
        """A copy of ``array`` in the memory of the CPU, and a function that moves the copy back.

        The array itself if it is there.
        """
        raise NotImplementedError

    @staticmethod
    def memory(array) -> Any:
        """A key of an array's memory, equal for arrays that share it."""
        raise NotImplementedError

    @staticmethod
    def stored(array) -> Any:
        """The array in a form that its own graph may save."""
        return array

    def recomputing(self) -> contextlib.AbstractContextManager:
        """A scope whose operations are not noted."""
        return contextlib.nullcontext()

    # Common to all libraries

    def handle(self, result: Result, origin: Origin | None) -> Handle:
        """The handle that stands for ``result``; there is one for all nodes that would save it."""
        key = (result.step, result.index, result.layout, result.after)
        handle = self.handles.get(key)
        if handle is None:
            handle = self.handles[key] = Handle(self, result, origin)
        return handle

    def noted(self, step: Step, arguments: tuple) -> None:
        """Remember for a while the arrays that ``step`` took, in case its result is named."""
        if self.policy.others:
            pairs = zip(items(step.arguments), items(arguments))
            self.recent.append((step, [(s, self.stored(x)) for s, x in pairs if isinstance(s, Result)]))

    def free(self, step: Step, array) -> None:
        """Have ``array``, a result of ``step``, recomputed from the step's arguments, which are saved instead."""
        step.saved = False
        for handle in list(self.handles.values()):
            if handle.result.step is step:
                handle.saved = None
        for source, given in next((pairs for known, pairs in self.recent if known is step), ()):
            if self.memory(given) == self.memory(array):
                self.free(source.step, given)
            elif source.step.saved:
                step.taken.append(self.handle(source, None))
                step.taken[-1].keep(given)

    def value(self, asked: Handle, done: dict) -> Any:
        """The value that ``asked`` stands for; ``done`` holds the values of the backward pass, by plan and handle."""
        # While the user holds the array, nothing needs to be computed. After a write it has another value; `Origin`
        # detects this by the version, and the original value is recomputed.
        value = asked.living()
        if value is not None:
            return value
        with self.lock:
            values = self.values(done)
            if asked not in values:
                self._recompute(asked, values)
            return values[asked]

    def values(self, done: dict) -> weakref.WeakKeyDictionary:
        """The values of this plan that a backward pass has recomputed."""
        values = done.get(self)
        return done.setdefault(self, weakref.WeakKeyDictionary()) if values is None else values

    def _recompute(self, asked: Handle, values) -> None:
        """Compute ``asked`` together with every living handle that would be requested next."""
        if asked.stale:
            raise GradientError(
                "one of the variables needed for gradient computation has been modified by an inplace operation "
                "in the checkpoint scope that made it."
            )
        # The backward pass requests handles from the scope's end to its beginning. Computing each on request would run
        # the scope's first steps again for each of them, a cost quadratic in the scope's length. So the first request
        # computes all handles that will be needed. The pass then holds the values that plain code would have saved for
        # this scope: results of intermediate steps are dropped after their last use (`over`), and a computed value is
        # dropped with its handle, that is, with the node that has used its step.
        known = list(self.handles.values())  # keeps handles, and the values saved by the policy, alive
        others = [h for h in known if h not in values and not h.stale and h.living() is None]
        wanted: dict[Step, list[Handle]] = {}
        for handle in {asked, *others}:
            wanted.setdefault(handle.result.ready(), []).append(handle)
        ordered = _ordered_steps(step for handles in wanted.values() for h in handles for step in h.result.steps())
        over = _last_uses(ordered, wanted)
        results: dict[Any, Sequence] = {}
        with self.recomputing():
            for step in ordered:
                results[step] = step.run(results)
                for handle in wanted.get(step, ()):
                    values[handle] = handle.result.value(results)
                for used in over[step]:
                    del results[used]


def arrays_held(handles: list[Handle]) -> list:
    """The arrays that are saved for the values of these handles: by the policy, and as inputs of the steps."""
    kept = [handle.saved.get() for handle in handles if handle.saved is not None]
    steps = _ordered_steps(s for handle in handles if handle.saved is None for s in handle.result.steps())
    for step in steps:
        kept += [x.saved() for x in items(step.arguments) if isinstance(x, Source)]
    return [array for array in kept if array is not None]


def _ordered_steps(wanted) -> list[Step]:
    """The steps that must run for the ``wanted`` ones, in their original order."""
    needed: set[Step] = set()
    stack = list(wanted)
    while stack:
        step = stack.pop()
        if step not in needed:
            needed.add(step)
            stack.extend(step.sources())
    return sorted(needed, key=lambda step: step.seq)


def _last_uses(ordered: list, wanted: dict) -> dict[Step, list[Step]]:
    """For each step, the steps whose results are not needed after it."""
    last: dict[Step, Step] = {}
    for step in ordered:
        last[step] = step
        for source in step.sources():
            last[source] = step
    # A step that writes in place turns an earlier result into another value, available once the step has run
    # (`Result.ready`). The result must be kept until then, even if no other step reads it.
    for moment, handles in wanted.items():
        for handle in handles:
            step = handle.result.step
            if last[step].seq < moment.seq:
                last[step] = moment
    over: dict[Step, list[Step]] = {step: [] for step in ordered}
    for step, moment in last.items():
        over[moment].append(step)
    return over


class Source:
    """The origin of a step's argument."""

    __slots__ = ()

    def steps(self) -> tuple[Step, ...]:
        """The steps that must have run."""
        return ()

    def saved(self) -> Any:
        """The value if it is saved, otherwise None."""
        return None

    def value(self, results: dict) -> Any:
        raise NotImplementedError


class Step(Call):
    """One operation to run again, on constants and on the values of its sources."""

    __slots__ = ("plan", "drawn", "seq", "saved", "offloaded", "taken", "__weakref__")
    kind = Source

    def __init__(self, plan: Plan, function: Callable, arguments: tuple, drawn: Drawn | None = None):
        super().__init__(function, arguments)
        self.plan = plan
        self.drawn = drawn
        self.seq = plan.clock()
        self.saved = plan.policy.others  # True if its results are saved where plain code would save them
        self.offloaded = False  # True if they are saved in the memory of the CPU
        self.taken: list[Handle] = []  # handles of arguments that are saved for it

    def sources(self) -> list[Step]:
        """The steps that must run before this one."""
        return [s for x in items(self.arguments) if isinstance(x, Source) for s in x.steps()]

    def run(self, results: dict) -> list:
        """The results of the step, given the results of earlier steps."""
        arguments = self.given(lambda source: source.value(results))
        # Dropout must drop the same elements again, or the gradient belongs to another function. Afterwards the
        # generator is restored to its present state, so that recomputing draws no numbers that the user could notice.
        found = self.function(*arguments) if self.drawn is None else self.drawn.again(self.function, arguments)
        return list(items(found))


class Result(Source):
    """A step's result, or with ``layout`` a view of it, in its state after the step ``after`` has written to it."""

    __slots__ = ("step", "index", "layout", "after")

    def __init__(self, step: Step, index: int, layout=None, after: Step | None = None):
        self.step = step
        self.index = index
        self.layout = layout
        self.after = after

    def ready(self) -> Step:
        """The step after which the value is available."""
        return self.step if self.after is None or self.after.seq < self.step.seq else self.after

    def saved(self) -> Any:
        """The value if the policy saves it, otherwise None."""
        handle = self.step.plan.handles.get((self.step, self.index, self.layout, self.after))
        saved = handle is not None and handle.result.after is self.after and handle.saved
        return saved.get() if saved else None

    def steps(self):
        if self.saved() is not None:
            return ()
        return (self.step,) if self.after is None else (self.step, self.after)

    def value(self, results):
        saved = self.saved()
        if saved is not None:
            return saved
        array = results[self.step][self.index]
        return array if self.layout is None else self.step.plan.view(array, self.layout)


class Input(Source):
    """An array from outside; it is saved, and using it raises an error if it was written since then."""

    __slots__ = ("plan", "array", "version")

    def __init__(self, plan: Plan | type[Plan], array):
        self.plan = plan
        self.array = array
        self.version = plan.version(array)

    def saved(self) -> Any:
        return self.array

    def value(self, results):
        if self.plan.changed(self.array, self.version):
            raise GradientError(
                "an array that a checkpointed operation used was written in place, modified by an inplace operation "
                "or otherwise; the operation cannot be recomputed.",
                hint="write to a copy, or leave that operation out of the scope",
            )
        return self.array


class Origin:
    """The array that a handle stands for, as long as it is alive and unchanged."""

    __slots__ = ("plan", "ref", "version")

    def __init__(self, plan: Plan, ref: Callable, version):
        self.plan = plan
        self.ref = ref
        self.version = version

    def get(self) -> Any:
        array = self.ref()
        return None if array is None or self.plan.changed(array, self.version) else array


class Offloaded(Origin):
    """A private copy in the memory of the CPU."""

    __slots__ = ()

    def get(self) -> Any:
        return self.ref()


class Handle:
    """A stand-in for an array that was not saved.

    ``stale`` is True if the scope itself wrote to the array after it was to be saved: no step produces that value.
    ``saved`` is the array if the policy saves it.
    """

    __slots__ = ("plan", "result", "origin", "stale", "saved", "__weakref__")

    def __init__(self, plan: Plan, result: Result, origin: Origin | None):
        self.plan = plan
        self.result = result
        self.origin = origin
        self.stale = False
        self.saved: Origin | None = None

    def keep(self, array) -> None:
        """Save the array."""
        array = self.plan.stored(array)
        self.saved = Origin(self.plan, lambda: array, self.plan.version(array))

    def keep_as_step_says(self, array) -> None:
        """Save the array where the results of its step are saved, if they are."""
        if self.result.step.offloaded:
            self.offload(array)
        elif self.result.step.saved:
            self.keep(array)

    def offload(self, array) -> None:
        """Save the array in the memory of the CPU."""
        if isinstance(self.saved, Offloaded):
            return
        array = self.plan.stored(array)
        copy, back = self.plan.moved_to_cpu(array)
        if copy is array:
            self.keep(array)
        else:
            self.saved = Offloaded(self.plan, lambda: back(copy), None)

    def living(self) -> Any:
        """The array itself, as long as it is alive and unchanged."""
        if self.saved is not None and (array := self.saved.get()) is not None:
            return array
        array = self.origin.get() if self.origin is not None else None
        return array if array is None or self.result.layout is None else self.plan.view(array, self.result.layout)

    def get(self, done: dict) -> Any:
        return self.plan.value(self, done)


class Drawn:
    """The state of generators before something drew from them; :meth:`again` restarts from it.

    Args:
        generators: pairs of functions that get and set a generator's state.
    """

    __slots__ = ("generators", "states")

    def __init__(self, generators: Sequence[tuple[Callable, Callable]]):
        self.generators = tuple(generators)
        self.states = [get() for get, _ in self.generators]

    def again(self, function: Callable, arguments: Sequence) -> Any:
        """``function(*arguments)``, which draws the same numbers; the generators keep their present state."""
        now = Drawn(self.generators)
        self._put(now.states)
        try:
            return function(*arguments)
        finally:
            now._put(Drawn(self.generators).states)

    def are_other(self) -> bool:
        """False if the generators are certainly still in these states."""
        return any(get() is not state for (get, _), state in zip(self.generators, self.states))

    def _put(self, states: list) -> None:
        """Restore the states that differ from ``now``; comparing is cheaper than setting."""
        for (_, put), before, now in zip(self.generators, self.states, states):
            if now is not before:
                put(before)
