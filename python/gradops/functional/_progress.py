"""A progress bar for long loops, where somebody is looking."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

_PATIENCE = 2.0

host: Callable | None = None
"""What makes a bar instead of rich, where another language shows it: R."""


@contextlib.contextmanager
def track(total: int, label: str) -> Iterator[Callable[[int], None]]:
    """A function to be told of each step's size; it shows a bar after two seconds, with a terminal and ``rich``."""
    start, done, bar, task = time.monotonic(), 0, None, None

    def advance(size: int) -> None:
        nonlocal done, bar, task, start
        done += size
        if bar is None and time.monotonic() - start > _PATIENCE:
            start = float("inf")
            bar = _bar()
            if bar is not None:
                bar.start()
                task = bar.add_task(label, total=total)
        if bar is not None:
            bar.update(task, completed=done)

    try:
        yield advance
    finally:
        if bar is not None:
            bar.stop()


def _bar():
    if host is not None:
        return host()
    if not sys.stderr.isatty():
        return None
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        return None
    return Progress(console=Console(stderr=True), transient=True)
