"""A progress bar for long loops, where somebody is looking."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator

_PATIENCE = 2.0


def track(items: Iterable, total: int, label: str) -> Iterator:
    """The items; after two seconds with a bar on the terminal, if there is one and ``rich`` is installed."""
    start, bar, task = time.monotonic(), None, None
    try:
        for done, item in enumerate(items):
            if bar is None and time.monotonic() - start > _PATIENCE:
                start = float("inf")
                bar = _bar()
                if bar is not None:
                    bar.start()
                    task = bar.add_task(label, total=total)
            if bar is not None:
                bar.update(task, completed=done)
            yield item
    finally:
        if bar is not None:
            bar.stop()


def _bar():
    if not sys.stderr.isatty():
        return None
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        return None
    return Progress(console=Console(stderr=True), transient=True)
