"""Whether operations are recorded: one flag, local to the thread or asyncio task."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from contextvars import ContextVar

recording: ContextVar[bool] = ContextVar("gradops_recording", default=True)


def is_grad_enabled() -> bool:
    """Whether operations on variables (and on torch tensors) are recorded for differentiation."""
    return recording.get()


own_gradient: ContextVar[bool] = ContextVar("gradops_own_gradient", default=False)
"""Whether a function runs whose gradient is its own, so that what leaves the graph in it loses nothing."""


_inferring: ContextVar[bool] = ContextVar("gradops_inferring", default=False)
"""Whether an :class:`inference_mode` holds, in which ``enable_grad`` records nothing."""
_entered: ContextVar[tuple] = ContextVar("gradops_entered", default=())
"""What to restore at the end of the scopes entered in this thread or task, the innermost last."""


class _Mode:
    """A scope that sets the flag: context manager, decorator with and without parentheses."""

    value: bool

    def __new__(cls, function=None):
        self = super().__new__(cls)
        return self if function is None else self(function)

    def __enter__(self):
        _entered.set((*_entered.get(), (recording.get(), _inferring.get(), self._enter_torch())))
        self._set()
        return self

    def _set(self) -> None:
        recording.set(self.value and not _inferring.get())

    def __exit__(self, *error):
        *outer, (before, inferring, native) = _entered.get()
        _entered.set(tuple(outer))
        recording.set(before)
        _inferring.set(inferring)
        if native is not None:
            native.__exit__(*error)

    def _enter_torch(self):
        torch = sys.modules.get("torch")
        if torch is None or not hasattr(torch, "set_grad_enabled"):
            return None
        native = self._torch_mode(torch)
        native.__enter__()
        return native

    def _torch_mode(self, torch):
        return torch.enable_grad() if self.value else torch.no_grad()

    def _again(self):
        return type(self)()

    def __call__(self, function):
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)
        if inspect.isasyncgenfunction(function):
            return self._wrap_async_generator(function)
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def wrapped_coroutine(*args, **kwargs):
                return await self._steps(function(*args, **kwargs).__await__())

            return wrapped_coroutine

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with self._again():
                return function(*args, **kwargs)

        return wrapped

    @types.coroutine
    def _steps(self, running):
        """The mode holds while the coroutine runs, not while it waits and others run."""
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

    def _wrap_async_generator(self, function):
        @functools.wraps(function)
        async def wrapped(*args, **kwargs):
            generator = function(*args, **kwargs)
            step = generator.asend(None)
            while True:
                try:
                    item = await self._steps(step.__await__())
                except StopAsyncIteration:
                    return
                try:
                    step = generator.asend((yield item))
                except GeneratorExit:
                    await self._steps(generator.aclose().__await__())
                    raise
                except BaseException as error:
                    step = generator.athrow(error)

        return wrapped

    def _wrap_generator(self, function):
        """The mode holds while the generator runs, not between its values."""

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            generator = function(*args, **kwargs)
            send, value = generator.send, None
            while True:
                try:
                    with self._again():
                        item = send(value)
                except StopIteration as stop:
                    return stop.value
                try:
                    value = yield item
                    send = generator.send
                except GeneratorExit:
                    with self._again():
                        generator.close()
                    raise
                except BaseException as error:
                    value, send = error, generator.throw

        return wrapped


class no_grad(_Mode):
    """Scope in which nothing is recorded: results on variables and torch tensors need no gradient.

    Use as ``with no_grad():`` or as decorator, with or without parentheses, on functions, coroutines
    and generators. Local to the thread or task and restored on error. After ``torch.no_grad``.
    """

    value = False


class enable_grad(_Mode):
    """Scope in which operations are recorded again, inside a :class:`no_grad`. After ``torch.enable_grad``."""

    value = True


class inference_mode(_Mode):
    """As :class:`no_grad`, and :class:`enable_grad` inside it records nothing either.

    Torch tensors made inside are torch's inference tensors. ``inference_mode(False)`` is a scope in which
    operations are recorded. After ``torch.inference_mode``.
    """

    value = False

    def __new__(cls, mode=True):
        if callable(mode):
            return super().__new__(cls, mode)
        self = super().__new__(cls)
        self.value = not mode
        return self

    def _again(self):
        return type(self)(not self.value)

    def _set(self) -> None:
        _inferring.set(not self.value)
        super()._set()

    def _torch_mode(self, torch):
        return torch.inference_mode(not self.value)


class set_grad_enabled(_Mode):
    """Record or not from here on, as a statement; as scope or decorator until its end. After ``torch``'s."""

    _before: bool

    def __new__(cls, mode: bool):
        self = super().__new__(cls)
        self.value = bool(mode)
        self._before = recording.get()
        self._set()
        torch = sys.modules.get("torch")
        if torch is not None and hasattr(torch, "set_grad_enabled"):
            torch.set_grad_enabled(self.value)
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        recording.set(self._before)
        torch = sys.modules.get("torch")
        if torch is not None and hasattr(torch, "set_grad_enabled"):
            torch.set_grad_enabled(self._before)

    def _again(self):
        return type(self)(self.value)

    def __call__(self, function):
        self.__exit__()
        return super().__call__(function)
