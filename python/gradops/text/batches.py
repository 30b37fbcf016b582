"""``each``: calls or backward passes on threads, with results in order; and the event loop of asynchronous models."""

from __future__ import annotations

import inspect
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterable
from contextvars import copy_context
from typing import Any

from .._display import track
from .._scopes import changed
from ..autodiff import gradients
from ..autodiff.variable import Variable
from ..errors import ArgumentError, ArgumentTypeError, Given, ModelError, TypeOf


def each(f: Callable, *iterables: Iterable, threads: int = 8, progress: Any = None) -> list:
    """Return ``[f(x, ...) for x, ... in zip(...)]``, computed on threads, for functions that wait for models.

    Modes such as ``no_grad`` hold in the threads too. ``each(Variable.backward, losses)`` runs backward passes; the
    feedback is added in the order of the batch, whichever pass ends first.

    Args:
        f: a function with one argument for each iterable; it may be ``async``.
        iterables: of equal lengths.
        threads: the most calls that run at once.
        progress: whether to show progress, as in ``gradcheck``; or a function of ``(done, total)`` to call.

    Returns:
        The results, in order.

    Raises:
        ArgumentError: iterables of different lengths.
        Exception: the error of the first item that failed, raised once the running calls have ended; waiting items are
            cancelled. Backward passes have not added to any ``grad`` then; the same call resumes where they stopped.
        ArgumentTypeError: ``f`` is not a function, or an argument is not iterable.

    Gradient:
        The gradient of the operations in ``f``.

    Examples:
        Two losses at once; their gradients are added in order:

        >>> from gradops import Variable, text
        >>> w = Variable(2.0, requires_grad=True)
        >>> losses = text.each(lambda target: (w - target) ** 2, [1.0, 5.0])
        >>> text.each(Variable.backward, losses)
        [None, None]
        >>> print(w.grad.numpy())
        -4.0

    See Also:
        :func:`call`, which also takes several prompts at once.
    """
    if not callable(f):
        raise ArgumentTypeError("`f` must be a function; got {f}.", argument="f", f=TypeOf(f))
    for column in iterables:
        if not isinstance(column, Iterable):
            raise ArgumentTypeError("`each` goes through iterables; got {x}.", argument="iterables", x=TypeOf(column))
    columns = [list(column) for column in iterables]
    sizes = [len(column) for column in columns]
    if not columns or len(set(sizes)) > 1:
        raise ArgumentError(f"`each` takes iterables of one length; got {sizes}.", argument="iterables")
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ArgumentError(
            "`threads` must be a positive whole number; got {given}.",
            argument="threads",
            given=Given(repr(threads), threads),
        )
    rows = list(zip(*columns))
    if f in (Variable.backward, gradients.backward):
        return _passes(f, rows, threads, progress)
    return _shown(f, rows, threads, progress)


def _passes(f: Callable, rows: list[tuple], threads: int, progress) -> list:
    """Run all backward passes, then add all gradients in order; if a pass fails, keep the others' for the next call."""
    found = [[] if (node := _node(row)) is None else _ended.pop(node, []) for row in rows]

    def run(i: int) -> None:
        if not found[i]:
            with changed(gradients.held_back, found[i]):
                f(*rows[i])

    try:
        _shown(run, [(i,) for i in range(len(rows))], threads, progress)
    except BaseException:
        for row, passes in zip(rows, found):
            if passes and _node(row) is not None:
                _ended[_node(row)] = passes
        raise
    for passes in found:
        for one in passes:
            gradients.deliver(*one)
    return [None] * len(rows)


def _node(row: tuple):
    return getattr(row[0], "grad_fn", None)


_ended: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
"""The gradients of passes that succeeded in a batch in which one failed, by the node that each pass started from."""


def _shown(f: Callable, rows: list[tuple], threads: int, progress) -> list:
    if callable(progress):
        return _run(f, rows, threads, progress)
    with track(len(rows), getattr(f, "__name__", "each"), progress or False) as advance:
        return _run(f, rows, threads, lambda done, total: advance(1))


def _run(f: Callable, rows: list[tuple], threads: int, shown: Callable) -> list:
    if len(rows) > 1 and threads > 1:
        return _run_threads(f, rows, threads, shown)
    results = []
    for row in rows:
        results.append(_result(f, row))
        shown(len(results), len(rows))
    return results


def _result(f: Callable, row: tuple):
    value = f(*row)
    return settled(value) if inspect.iscoroutine(value) else value  # a future of another library stays one


def _run_threads(f: Callable, rows: list[tuple], threads: int, shown: Callable) -> list:
    from concurrent.futures import ThreadPoolExecutor  # imported here, as the import takes milliseconds

    executor = ThreadPoolExecutor(min(threads, len(rows)), "gradops-each")
    try:
        futures = [executor.submit(copy_context().run, _result, f, row) for row in rows]
        _watch(futures, shown)
        for future in futures:
            if not future.cancelled() and future.exception() is not None:
                raise future.exception()  # type: ignore[misc]
        return [future.result() for future in futures]
    finally:
        executor.shutdown(wait=False, cancel_futures=True)


def _watch(futures: list, shown: Callable) -> None:
    """Wait for all futures; after a failure, cancel the futures that have not started."""
    waiting: set = set(futures)
    while waiting:
        done, waiting = _wait(waiting)
        if any(not future.cancelled() and future.exception() is not None for future in done):
            for future in waiting:
                future.cancel()
        for i in range(len(done)):
            shown(len(futures) - len(waiting) - len(done) + i + 1, len(futures))


def _wait(futures: set) -> tuple[set, set]:
    host = sys.modules.get("gradops.interop.r.threads")
    if host is not None and host.is_current():  # this thread must serve the other threads' calls into R
        host.wait_until(lambda: any(future.done() for future in futures), 0.02)
        done = {future for future in futures if future.done()}
        return done, futures - done
    from concurrent.futures import FIRST_COMPLETED, wait

    finished = wait(futures, return_when=FIRST_COMPLETED)
    return finished.done, finished.not_done


# The event loop: coroutines of asynchronous clients are awaited in one loop on a thread of its own, as a client keeps
# connections that belong to the loop of their first use. The caller may itself run in another loop.


def settled(value):
    """Return ``value``, or what it gives when awaited.

    Raises:
        ModelError: the caller runs in the package's loop, which cannot wait for itself.
    """
    if not inspect.isawaitable(value):
        return value
    import asyncio  # imported here, as the import takes milliseconds

    loop, thread = _event_loop()
    if threading.get_ident() == thread:
        if inspect.iscoroutine(value):
            value.close()
        raise ModelError(
            "an asynchronous model is called by another one, within the event loop that awaits both.",
            hint="call it on a thread: `await asyncio.to_thread(text.call, model, prompt)`",
        )

    async def waiting():
        return await value

    future = asyncio.run_coroutine_threadsafe(waiting(), loop)
    try:
        while not future.done():
            _wait({future})
        return future.result()
    except BaseException:
        future.cancel()
        raise


_loops: dict[int, tuple[Any, int | None]] = {}
"""The event loop and its thread, by process: a forked process has the loop but not its thread."""
_loops_lock = threading.Lock()


def _event_loop() -> tuple[Any, int | None]:
    import asyncio

    with _loops_lock:
        if os.getpid() not in _loops:
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever, name="gradops-awaiting", daemon=True)
            thread.start()
            _loops.clear()
            _loops[os.getpid()] = loop, thread.ident
        return _loops[os.getpid()]
