"""The profiler: time, calls, bytes and shapes of every operation, forward and backward.

While it is off, it costs nothing: switching it on empties the ops' tables of implementations, which are then filled
with measured ones. Times are wall-clock times of the calls; JAX and TensorFlow may still be computing when a call
returns. For torch tensors, torch's own profiler runs too, and its rows are in the same table.
"""

from __future__ import annotations

import functools
import json
import pathlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ... import _display
from ..._scopes import note_change
from ...errors import ArgumentError, Given, GradientError, meant
from ...ops import _dispatch
from .. import state
from ..variable import data_of

__all__ = ["Event", "Row", "profile", "record_function"]

_active: list[profile] = []
_local = threading.local()
_plain_resolve = _dispatch.Op.resolve

_SORTS = {
    "name": "name",
    "calls": "calls",
    "count": "calls",
    "total": "total",
    "total_time": "total",
    "cpu_time_total": "total",
    "self": "self",
    "self_time": "self",
    "self_cpu_time_total": "self",
    "mean": "mean",
    "mean_time": "mean",
    "cpu_time": "mean",
    "bytes": "bytes",
    "self_cpu_memory_usage": "bytes",
}


@dataclass
class Event:
    """One call.

    Attributes:
        name: the name of the operation, ``"<name> backward"`` for its gradient, or a label.
        kind: ``"forward"``, ``"backward"`` or ``"label"``.
        start, end: seconds since the start of the profile.
        inside: seconds spent in other events within this one.
        bytes: the size of the result.
        shapes: the shapes of the tensor arguments.
        depth: the number of events that enclose it.
        thread: the thread's number.

    Examples:
        >>> import gradops
        >>> from gradops.autodiff import profiler
        >>> x = gradops.Variable([1.0, 2.0], requires_grad=True)
        >>> with profiler.profile() as prof:
        ...     (x * x).sum().backward()
        >>> [(event.name, event.kind) for event in prof][:2]
        [('multiply', 'forward'), ('sum', 'forward')]

    See Also:
        :class:`Row`, :class:`profile`.
    """

    name: str
    kind: str
    start: float
    end: float = 0.0
    inside: float = 0.0
    bytes: int = 0
    shapes: tuple = ()
    depth: int = 0
    thread: int = 0

    @property
    def total(self) -> float:
        return self.end - self.start

    @property
    def self(self) -> float:
        return self.total - self.inside


@dataclass
class Row:
    """The totals of the calls of one operation; times in seconds.

    Examples:
        >>> import gradops
        >>> from gradops.autodiff import profiler
        >>> x = gradops.Variable([1.0, 2.0], requires_grad=True)
        >>> with profiler.profile() as prof:
        ...     (x * x * x).sum().backward()
        >>> {row.name: row.calls for row in prof.rows()}["multiply"]
        2

    See Also:
        :class:`Event`, :class:`profile`.
    """

    name: str
    kind: str
    calls: int = 0
    total: float = 0.0
    self: float = 0.0
    bytes: int = 0
    shapes: tuple = ()
    source: str = "tape"
    own: dict = field(default_factory=dict, repr=False)

    @property
    def mean(self) -> float:
        return self.total / self.calls if self.calls else 0.0


class Rows(list[Row]):
    """A list of rows with the method ``table()``, like PyTorch's."""

    def __init__(self, rows, of: profile, by_shape: bool):
        super().__init__(rows)
        self._of, self._by_shape = of, by_shape

    def table(self, sort_by: str | None = None, row_limit: int = 100) -> str:
        """Return the rows as text, as :meth:`profile.table` does."""
        return self._of.table(sort_by, min(row_limit, len(self)), self._by_shape)


class profile:
    """Scope whose operations are measured, forward and backward.

    Args:
        enabled: if False, the scope does nothing.
        record_shapes: record the shapes of arguments; ``by_shape=True`` groups the table by them.
        with_torch: whether torch's own profiler runs too; by default if torch is loaded.

    ::

        with profiler.profile() as p:
            with profiler.record_function("forward"):
                loss = model(x)
            loss.backward()
        print(p.table(sort_by="self_time"))
        p.export_chrome_trace("trace.json")

    Raises:
        GradientError: results are read inside the scope.

    After ``torch.autograd.profiler.profile``.

    Examples:
        The operations of a backward pass, and their counts:

        >>> import gradops
        >>> from gradops.autodiff import profiler
        >>> x = gradops.Variable([1.0, 2.0], requires_grad=True)
        >>> with profiler.profile() as prof:
        ...     (x * x).sum().backward()
        >>> print(x.grad.numpy())
        [2. 4.]
        >>> print(sorted(entry.name for entry in prof.key_averages()))
        ['broadcast_to', 'multiply', 'multiply backward', 'sum', 'sum backward']

    See Also:
        :func:`gradops.autodiff.detect_anomaly`, :func:`gradops.autodiff.draw`.
    """

    def __init__(self, enabled: bool = True, *, record_shapes: bool = True, with_torch: bool | None = None):
        self.enabled = enabled
        self.record_shapes = record_shapes
        self._with_torch = with_torch
        self._events: list[Event] = []
        self._native: Any = None
        self._origin = self._end = 0.0
        self._running = False

    def __enter__(self) -> profile:
        if not self.enabled:
            return self
        loaded = sys.modules.get("torch")
        use = self._with_torch if self._with_torch is not None else hasattr(loaded, "profiler")
        if use:
            import torch

            self._native = torch.profiler.profile(
                activities=_torch_activities(torch), record_shapes=self.record_shapes, profile_memory=True
            )
            self._native.__enter__()
        self._running = True
        _active.append(self)
        note_change()
        if len(_active) == 1:
            _switch(True)
        self._origin = time.perf_counter()
        return self

    def __exit__(self, *error) -> None:
        if not self.enabled:
            return
        self._end = time.perf_counter()
        _active.remove(self)
        note_change()
        if not _active:
            _switch(False)
        self._running = False
        if self._native is not None:
            self._native.__exit__(*error)

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return wrapped

    @property
    def events(self) -> list[Event]:
        """The calls in order of their start."""
        self._check()
        return sorted(self._events, key=lambda e: e.start)

    @property
    def torch(self):
        """Torch's own profile, a ``torch.profiler.profile``; None if it did not run."""
        return self._native

    @property
    def wall_time(self) -> float:
        """Seconds from the start of the scope to its end."""
        return self._end - self._origin

    def rows(self, sort_by: str | None = None, by_shape: bool = False, limit: int | None = None) -> Rows:
        """Return the totals of each operation.

        Args:
            sort_by: ``"total_time"``, ``"self_time"``, ``"mean_time"``, ``"calls"``, ``"bytes"``, ``"name"``, or
                torch's names for them; by default in order of first occurrence.
            by_shape: one row for each combination of argument shapes.
            limit: the most rows to return.

        Raises:
            ArgumentError: an unknown ``sort_by``.
        """
        found: dict[tuple, Row] = {}
        for event in self.events:
            key = (_said(event), event.kind, event.shapes if by_shape else ())
            row = found.setdefault(key, Row(key[0], event.kind, shapes=key[2]))
            row.calls += 1
            row.total += event.total
            row.self += event.self
            row.bytes += event.bytes
        rows = [*found.values(), *self._torch_rows(by_shape)]
        if sort_by is not None:
            if sort_by not in _SORTS:
                raise ArgumentError(
                    f"`sort_by` must be one of {', '.join(_SORTS)}; got {{given}}.",
                    argument="sort_by",
                    hint=meant(sort_by, _SORTS),
                    given=Given(repr(sort_by), sort_by),
                )
            attribute = _SORTS[sort_by]
            rows.sort(key=lambda row: getattr(row, attribute), reverse=attribute != "name")
        return Rows(rows if limit is None else rows[:limit], self, by_shape)

    def key_averages(self, group_by_input_shape: bool = False) -> Rows:
        """Return :meth:`rows`, under PyTorch's name: ``prof.key_averages().table(sort_by="self_cpu_time_total")``."""
        return self.rows(by_shape=group_by_input_shape)

    def table(self, sort_by: str | None = "self_time", row_limit: int = 100, by_shape: bool = False) -> str:
        """Return the rows as text, with times in readable units and as percentages."""
        cells, rest = self._cells(sort_by, row_limit, by_shape)
        lines = _display.aligned(
            [cells[0], ["-" * max(map(len, column)) for column in zip(*cells)], *cells[1:]], (0, 7)
        )
        return "\n".join([*lines, *rest])

    def _cells(self, sort_by: str | None, row_limit: int, by_shape: bool) -> tuple[list[list[str]], list[str]]:
        """Return the cells of the table, the head first, and the lines below it."""
        rows = self.rows(sort_by, by_shape)
        whole = sum(r.self for r in rows if r.source == "tape") or 1.0
        cells = [["name", "self %", "self", "total", "mean", "calls", "bytes"] + (["shapes"] if by_shape else [])]
        for row in rows[:row_limit]:
            share = f"{100 * row.self / whole:.1f}%" if row.source == "tape" else "torch"
            cells.append(
                [row.name, share, *map(_seconds, (row.self, row.total, row.mean)), str(row.calls), _bytes(row.bytes)]
                + ([" ".join(map(str, row.shapes))] if by_shape else [])
            )  # fmt: skip
        more = [f"... and {len(rows) - row_limit} more"] if len(rows) > row_limit else []
        return cells, [*more, f"In all: {_seconds(whole)} in operations, {_seconds(self.wall_time)} by the clock"]

    def export_chrome_trace(self, path) -> None:
        """Write the calls, torch's events included, as JSON for ``chrome://tracing`` or Perfetto."""
        events = [
            {
                "name": e.name,
                "cat": e.kind,
                "ph": "X",
                "ts": 1e6 * e.start,
                "dur": 1e6 * e.total,
                "pid": 1,
                "tid": e.thread,
                "args": {"bytes": e.bytes, "shapes": [list(s) for s in e.shapes]},
            }
            for e in self.events
        ]
        for e in self._native.events() if self._native is not None else ():
            span = {"ts": e.time_range.start, "dur": e.time_range.elapsed_us(), "pid": 2, "tid": e.thread}
            events.append({"name": e.name, "cat": "torch", "ph": "X", **span})
        names = [
            {"name": "process_name", "ph": "M", "pid": pid, "args": {"name": name}}
            for pid, name in ((1, "gradops"), (2, "torch"))
        ]
        pathlib.Path(path).write_text(json.dumps({"traceEvents": names + events, "displayTimeUnit": "ms"}))

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        state = "running" if self._running else f"{len(self._events)} events"
        return f"<gradops profile, {state}>"

    def _repr_html_(self) -> str:
        if self._running:
            return _display.block("profile", "running")
        (head, *rows), rest = self._cells("self_time", 30, False)
        return _display.block(
            "profile", "by time of their own", _display.table(head, rows), _display.verbatim("\n".join(rest))
        )

    def _check(self) -> None:
        if self._running:
            raise GradientError("the profile is still running; read its results after the scope.")

    def _torch_rows(self, by_shape: bool) -> list[Row]:
        if self._native is None:
            return []
        rows, labels = [], {e.name for e in self.events if e.kind == "label"}
        for a in self._native.key_averages(group_by_input_shape=by_shape):
            if a.key in labels:  # gradops has a row for it
                continue
            size = max(0, getattr(a, "self_cpu_memory_usage", 0))
            shapes = tuple(tuple(s) if s else () for s in a.input_shapes or ()) if by_shape else ()
            times = 1e-6 * a.cpu_time_total, 1e-6 * a.self_cpu_time_total
            rows.append(Row(a.key, "torch", a.count, *times, size, shapes, "torch"))
        return rows


class record_function:
    """Scope (or decorator) whose time appears in profiles under a label, torch's included; labels may nest.

    Examples:
        >>> import gradops
        >>> from gradops.autodiff import profiler
        >>> x = gradops.Variable([1.0, 2.0], requires_grad=True)
        >>> with profiler.profile() as prof:
        ...     with profiler.record_function("loss"):
        ...         loss = (x * x).sum()
        ...     loss.backward()
        >>> [event.name for event in prof if event.kind == "label"]
        ['loss']

    See Also:
        :class:`profile`.
    """

    def __init__(self, name: str):
        self.name = name
        self._open: list = []

    def __enter__(self) -> record_function:
        torch = sys.modules.get("torch")
        native = None
        if _active and torch is not None and hasattr(torch, "profiler"):
            native = torch.profiler.record_function(self.name)
            native.__enter__()
        self._open.append((_begin(self.name, "label") if _active else None, native))
        return self

    def __exit__(self, *error) -> None:
        event, native = self._open.pop()
        if event is not None:
            _finish(event)
        if native is not None:
            native.__exit__(*error)

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with record_function(self.name):
                return function(*args, **kwargs)

        return wrapped


_PARTS = {"conv_to_inputs": ("conv", 1), "conv_to_kernel": ("conv", 1), "conv_to_output": ("conv", 2)}
"""Internal ops, with the op that each is a derivative of, and the order of that derivative."""
_ORDERS = {2: "second", 3: "third"}


def _said(event: Event) -> str:
    """Return the name of an event's row; the gradient of a backward operation is named as a higher derivative."""
    if event.kind == "label":
        return event.name
    operation = event.name
    while operation.endswith(" backward"):
        operation = operation.removesuffix(" backward")
    name, order = _PARTS.get(operation, (operation, 0))
    order += event.name.count(" backward")
    if order < 2:
        return name + " backward" * order
    return f"{name}: {_ORDERS.get(order, f'{order}th')} derivative"


def running() -> bool:
    """True while a profile measures calls."""
    return bool(_active)


def _torch_activities(torch) -> list:
    kinds = torch.profiler.ProfilerActivity
    return [kinds.CPU, kinds.CUDA] if torch.cuda.is_available() else [kinds.CPU]


def _switch(on: bool) -> None:
    _dispatch.Op.resolve = _measured_resolve if on else _plain_resolve  # type: ignore[method-assign]
    for op in set(_dispatch.registry.values()):
        op.kernels.clear()
    if _observe in state.observers:
        state.observers.remove(_observe)
    if on:
        state.observers.append(_observe)


def _measured_resolve(op, key):
    implementation = _plain_resolve(op, key)
    name = op.name

    def measured(*arguments):
        stack = _stack()
        if stack and stack[-1].name == name and stack[-1].kind == "forward":
            return implementation(*arguments)  # the kernel on the arrays, inside the same op on variables
        event = _begin(name, "forward")
        try:
            result = implementation(*arguments)
            event.bytes = _size(result)
            event.shapes = _shapes(arguments)
            return result
        finally:
            _finish(event)

    if key in op.kernels:
        op.kernels[key] = measured
    return measured


def _observe(node, apply):
    event = _begin(f"{node.name} backward", "backward")
    try:
        gradients = apply()
        event.bytes = sum(map(_size, gradients))
        event.shapes = () if node.shape is None else (tuple(node.shape),)
        return gradients
    finally:
        _finish(event)


def _stack() -> list[Event]:
    try:
        return _local.stack
    except AttributeError:
        _local.stack = []
        return _local.stack


def _begin(name: str, kind: str) -> Event:
    stack = _stack()
    event = Event(name, kind, time.perf_counter(), depth=len(stack), thread=threading.get_ident())
    stack.append(event)
    return event


def _finish(event: Event) -> None:
    now = time.perf_counter()
    stack = _stack()
    while stack and stack.pop() is not event:
        pass
    length = now - event.start
    if stack:
        stack[-1].inside += length
    for p in _active:
        if event.start >= p._origin:
            copy = Event(**{**event.__dict__, "start": event.start - p._origin, "end": now - p._origin})
            if not p.record_shapes:
                copy.shapes = ()
            p._events.append(copy)


def _size(value) -> int:
    if isinstance(value, (list, tuple)):
        return sum(map(_size, value))
    data = data_of(value)
    size = getattr(data, "nbytes", None)
    if size is None and isinstance(data, str):
        return len(data)
    return int(size) if isinstance(size, int) else 0


def _shapes(arguments) -> tuple:
    found: list[tuple] = []
    for a in arguments:
        if isinstance(a, (list, tuple)):
            found.extend(tuple(x.shape) for x in a if hasattr(x, "shape"))
        elif hasattr(a, "shape"):
            found.append(tuple(a.shape))
    return tuple(found)


def _seconds(value: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(value) >= scale:
            return f"{value / scale:.3g} {unit}" if value / scale < 1000 else f"{value / scale:.0f} {unit}"
    return f"{value * 1e6:.2f} us"


def _bytes(value: int) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value} B"
