"""Checkpointing on the tape: kernels are noted as steps of a plan, and nodes save handles in place of arrays.

Arrays are identified by ``id`` while they live, and NumPy views by the array they are a view of. An array that another
scope made is an input of this scope and is saved, because scopes save their inputs.
"""

from __future__ import annotations

import contextlib
import weakref
from contextvars import ContextVar

import numpy as np

from ... import backends
from ..._scopes import changed
from ..._tree import items, map_items
from ...autodiff import state
from ...autodiff.saved_tensors import copy_to_cpu, restore_to_device
from ...backends import tracing
from ...backends.checkpoint_plan import Input, Origin, Plan, Result, Step
from ...ops import _dispatch


class TapePlan(Plan):
    """A plan whose versions are times of the graph's clock; the engine also detects writes by them."""

    @staticmethod
    def version(array):
        return state.clock()

    @staticmethod
    def changed(array, version):
        return bool(state.written) and state.written_since(array, version)

    @staticmethod
    def view(array, layout):
        shape, dtype, offset, strides = layout
        return np.ndarray(shape, dtype, array, offset, strides)

    @staticmethod
    def moved_to_cpu(array):
        copy, place = copy_to_cpu(array)
        return copy, lambda copy: restore_to_device((copy, place))

    @staticmethod
    def memory(array):
        return id(state.buffer(array))

    @contextlib.contextmanager
    def recomputing(self):
        with changed(current, None), np.errstate(all="ignore"):
            yield

    def run(self, kernel, arguments: tuple, product: bool):
        """The result of ``kernel(*arguments)``, noted as a step unless the policy saves it."""
        token = current.set(None)
        try:
            result = kernel(*arguments)
        finally:
            current.reset(token)
        if product and self.policy.products:
            return result
        step = Step(self, kernel, map_items(self._source, arguments))
        self.noted(step, arguments)
        for i, array in enumerate(items(result)):
            # A kernel may return its argument. That array already has a step, or is an input, which is saved anyway.
            if not any(array is a for a in arguments):
                _remember(array, Result(step, i))
        return result

    def _source(self, value):
        if backends.backend_of(value) is None:
            return value
        found = _find(value)
        return found[0] if found is not None and found[0].step.plan is self else Input(self, value)


current: ContextVar[TapePlan | None] = ContextVar("gradops_plan", default=None)
"""The plan of the open scope."""

_made: dict[int, tuple[Result, weakref.ref, int]] = {}
"""The living arrays that open and past scopes made, by ``id``: their results, references, and creation times."""


def _remember(array, result: Result) -> None:
    key = id(array)
    # An `id` is soon reused for another array, so each lookup checks that the reference still points to this one.
    if backends.backend_of(array) is None or key in _made and _made[key][1]() is array:
        return
    try:
        ref = weakref.ref(array, lambda _, key=key: _forget(key))  # type: ignore[misc]
    except TypeError:  # a NumPy scalar
        return
    _made[key] = result, ref, state.clock()
    if pack not in state.packers:
        state.packers.insert(0, pack)


def _forget(key: int) -> None:
    _made.pop(key, None)
    if not _made and pack in state.packers:
        state.packers.remove(pack)


def forget(arrays) -> None:
    """Allow ``arrays`` to be saved again."""
    for array in arrays:
        _forget(id(array))


def _find(array) -> tuple[Result, weakref.ref, int] | None:
    """The origin of an array, or of the array it is a NumPy view of; None if unknown, or written since then."""
    known = _made.get(id(array))
    if known is not None:
        return known if known[1]() is array and not TapePlan.changed(array, known[2]) else None
    base = getattr(array, "base", None) if array.__class__ is np.ndarray else None
    known = _made.get(id(base)) if base is not None else None
    if known is None or known[1]() is not base or base.__class__ is not np.ndarray:
        return None
    result, ref, since = known
    # A view is recreated from the recomputed base by offset and strides, so these must mean the same there. NumPy only
    # makes views of a buffer if its memory is contiguous.
    if not (base.flags.c_contiguous or base.flags.f_contiguous) or TapePlan.changed(base, since):
        return None
    offset = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return Result(result.step, result.index, (array.shape, array.dtype, offset, array.strides)), ref, since


def pack(saved: tuple) -> tuple:
    """The values that a node saves, with handles in place of arrays that a scope made."""
    if not any(type(v) is list or id(v) in _made or getattr(v, "base", None) is not None for v in saved):
        return saved
    packed = [_packed(v) for v in saved]
    return saved if all(p is v for p, v in zip(packed, saved)) else state.Packed(packed)


def _packed(value):
    if type(value) is list:
        items = [_packed(v) for v in value]
        return value if all(i is v for i, v in zip(items, value)) else items
    found = None if value is None or backends.backend_of(value) is None else _find(value)
    if found is None:
        return value
    result, ref, since = found
    plan, scope = result.step.plan, current.get()
    # An input of the open scope is saved by it; a handle would be recomputed for nothing.
    if scope is not None and plan is not scope:
        return value  # saved by the open scope
    handle = plan.handle(result, Origin(plan, ref, since))
    handle.keep_as_step_says(value)
    return handle


def named(x, name: str):
    """Return a variable ``x``, saved or not as the open scope's policy says for its name."""
    plan, found = open_plan(), _find(x.data)
    if plan is None or name not in plan.policy.named or found is None or found[0].step.plan is not plan:
        return x
    result, array = found[0], found[1]()
    how = plan.policy.saves(name)
    if not how:
        plan.free(result.step, array)
        return x
    result.step.offloaded = how == "offload"
    for handle in list(plan.handles.values()):
        its = handle.result
        if its.step is result.step and its.index == result.index:
            (handle.offload if result.step.offloaded else handle.keep)(
                array if its.layout is None else plan.view(array, its.layout)
            )
    if not result.step.offloaded:
        forget([array])
    return x


@tracing.left_out
def open_plan() -> TapePlan | None:
    """The plan of the open scope."""
    return current.get()


def observe(op, kernel, owner):
    """``kernel``, noted while a scope is open; unchanged for a library with its own tape, which has its own plan."""
    if owner is not None and owner.derivatives.own_tape:
        return kernel

    product = bool(op.facts.multilinear) and not op.facts.elementwise

    def noted(*arguments):
        plan = open_plan()
        return kernel(*arguments) if plan is None else plan.run(kernel, arguments, product)

    return noted


def start() -> None:
    """From now on look up every kernel through :func:`observe`."""
    if _dispatch.observe is None:
        _dispatch.observe = observe
        for op in list(_dispatch.registry.values()):
            op.kernels.clear()
