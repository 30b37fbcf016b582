"""A progress bar for long loops, where somebody is looking."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

patience = 2.0
"""How many seconds something takes before a bar is shown."""

host: Callable | None = None
"""The function that makes a bar instead of rich, where another language shows it: R."""


@contextlib.contextmanager
def track(total: int | None, label: str, wanted: bool | None = None) -> Iterator[Callable[[int], None]]:
    """A function that is called with each step's size and moves a bar; ``total``: None where nobody knows it.

    ``wanted``: True shows it from the start, without ``rich`` in lines of percents; False never;
    None after two seconds, where there is a terminal and ``rich``, so not in a notebook or a document.
    """
    progress = _Progress(total, label, 0.0 if wanted else patience, lines=bool(wanted))
    try:
        yield (lambda size: None) if wanted is False else progress.advance
    finally:
        if progress.bar is not None:
            progress.bar.stop()
            _Progress.shown = False


class _Progress:
    shown = False
    """True while there is a bar: what goes on within another loop shows none."""

    def __init__(self, total: int | None, label: str, patience: float, lines: bool):
        self.total, self.label, self.lines = total, label, lines
        self.done, self.tenth = 0, -1
        self.start = time.monotonic() + patience
        self.bar: Any = None

    def advance(self, size: int) -> None:
        self.done += size
        if self.bar is None and not _Progress.shown and time.monotonic() >= self.start:
            self.start = float("inf")
            self.bar = _bar(self.lines)
            if self.bar is not None:
                _Progress.shown = True
                self.bar.start()
                self.task = self.bar.add_task(self.label, total=self.total)
        if self.bar is not None:
            self.bar.update(self.task, completed=self.done)
        elif self.lines and self.total is not None:
            tenth = 10 * self.done // max(1, self.total)
            if tenth != self.tenth:
                self.tenth = tenth
                print(f"{self.label}: {10 * tenth}%", file=sys.stderr)


def _bar(anywhere: bool):
    if host is not None:
        return host()
    if not (anywhere or sys.stderr.isatty()):
        return None
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        return None
    return Progress(console=Console(stderr=True), transient=True)
