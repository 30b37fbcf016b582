"""Scopes: settings for a block, a function, or the steps of a generator or coroutine, which may end in any order.

:class:`Scope` makes a context manager a decorator, :class:`Ends` ends scopes of one kind in the right order, and
:class:`changed` sets a context variable for a block.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import inspect
import threading
import types
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar, overload

changes = ctypes.c_int64()
"""The number of changes of settings that compiled programs depend on, in memory that C code reads without Python."""


def note_change() -> None:
    """Count a change of such a setting in :data:`changes`."""
    changes.value += 1


class Ends:
    """The open scopes of one kind, in each thread and task; the last scope entered ends first.

    A scope that is left before a scope entered later, as may happen in generators, ends together with that one.
    """

    def __init__(self, name: str):
        self._open: ContextVar[tuple] = ContextVar(name, default=())

    def open(self) -> tuple:
        """The scopes that were entered in this thread or task and have not ended."""
        return self._open.get()

    def push(self, scope: Any, end: Callable[[], Any]) -> None:
        """Note that ``scope`` was entered, and how to end it."""
        self._open.set((*self._open.get(), (scope, end)))

    def leave(self, scope: Any) -> None:
        """End ``scope`` once the scopes entered after it have ended; does nothing for a scope of another task."""
        entered = self._open.get()
        if entered and entered[-1][0] is scope and (len(entered) == 1 or entered[-2][0] is not None):
            self._open.set(entered[:-1])  # the common case: the last scope entered
            entered[-1][1]()
            return
        entries = list(entered)
        for i in reversed(range(len(entries))):
            if entries[i][0] is scope:
                entries[i] = (None, entries[i][1])
                break
        due = []
        while entries and entries[-1][0] is None:
            due.append(entries.pop()[1])
        self._open.set(tuple(entries))
        with ExitStack() as stack:  # ends all of them, even if one raises
            for end in reversed(due):
                stack.callback(end)


class EndsOfThread(Ends):
    """``Ends`` for modes that libraries store per thread, whichever task entered a scope."""

    def __init__(self):
        self._open = _ThreadValue()  # type: ignore[assignment]


class _ThreadValue(threading.local):
    value: tuple = ()

    def get(self) -> tuple:
        return self.value

    def set(self, value: tuple) -> None:
        self.value = value


class changed:
    """A scope that gives a setting of the thread or task another value."""

    __slots__ = ("_setting", "_value", "_token")

    def __init__(self, setting: ContextVar, value: Any):
        self._setting, self._value = setting, value

    def __enter__(self) -> None:
        self._token = self._setting.set(self._value)

    def __exit__(self, *_) -> None:
        self._setting.reset(self._token)


F = TypeVar("F", bound=Callable)
S = TypeVar("S", bound="Scope")


class Scope:
    """A context manager that is also a decorator, with and without parentheses.

    As a decorator of a generator or coroutine it is active while that runs, not while it waits and other code runs.
    """

    def __enter__(self):
        raise NotImplementedError

    def __exit__(self, *error):
        raise NotImplementedError

    def _again(self) -> Scope:
        """A new scope for one call."""
        return type(self)()

    def __call__(self, function: F) -> F:
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)
        if inspect.isasyncgenfunction(function):
            return self._wrap_async_generator(function)
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def wrapped_coroutine(*args, **kwargs):
                return await self._awaited(function(*args, **kwargs).__await__())

            return wrapped_coroutine  # type: ignore[return-value]

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with self._again():
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]

    def _steps(self, running):
        """The steps of a generator, or of a coroutine's ``__await__``, each run inside the scope."""
        send, value = running.send, None
        while True:
            try:
                with self._again():
                    item = send(value)
            except StopIteration as stop:
                return stop.value
            try:
                value = yield item
                send = running.send
            except BaseException as error:
                value, send = error, running.throw

    _awaited = types.coroutine(_steps)

    def _wrap_async_generator(self, function):
        @functools.wraps(function)
        async def wrapped(*args, **kwargs):
            generator = function(*args, **kwargs)
            step = generator.asend(None)
            while True:
                try:
                    item = await self._awaited(step.__await__())
                except StopAsyncIteration:
                    return
                try:
                    step = generator.asend((yield item))
                except GeneratorExit:
                    await self._awaited(generator.aclose().__await__())
                    raise
                except BaseException as error:
                    step = generator.athrow(error)

        return wrapped

    def _wrap_generator(self, function):
        """Decorate a generator: the scope is active while it runs, not between its values."""

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            return (yield from self._steps(function(*args, **kwargs)))

        return wrapped


class PlainScope(Scope):
    """A scope without settings: the class itself is a decorator, as in ``@no_grad``."""

    @overload
    def __new__(cls, function: F) -> F: ...  # type: ignore[misc]
    @overload
    def __new__(cls: type[S], function: None = None) -> S: ...
    def __new__(cls, function=None) -> Any:
        self = super().__new__(cls)
        return self if function is None else self(function)


_heap_is_frozen = False
"""True once the process has called ``gc.freeze()``; ``gc.get_freeze_count()`` visits every frozen object."""


@contextmanager
def uncollected():
    """A scope without garbage collection, which would repeatedly visit everything that is created and kept in it.

    With it, the time per created object would grow with their number.
    """
    global _heap_is_frozen
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            _heap_is_frozen = _heap_is_frozen or gc.get_freeze_count() > 0
            if not _heap_is_frozen:  # moves new objects to the oldest generation without a visit
                gc.freeze()
                gc.unfreeze()
            gc.enable()
