"""Timing for the benchmarks: functions to compare take turns, and the best time of each counts."""

from __future__ import annotations

import time
from collections.abc import Callable


def compare(
    contenders: dict[str, Callable[[], object]], repeats: int = 15, budget: float = 0.02, clock=time.perf_counter
) -> dict[str, float]:
    """Return the seconds per call of each function, the best of ``repeats`` rounds of about ``budget`` seconds.

    The functions take turns. ``clock=time.process_time`` leaves out other processes; it is for functions on one thread.
    """
    counts = {}
    for name, call in contenders.items():
        call()
        start = clock()
        call()
        counts[name] = max(1, int(budget / max(clock() - start, 1e-7)))
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(repeats):
        for name, call in contenders.items():
            count = counts[name]
            start = clock()
            for _ in range(count):
                call()
            best[name] = min(best[name], (clock() - start) / count)
    return best


def table(header: list[str], rows: list[list[str]]) -> None:
    """Print a Markdown table."""
    widths = [max(len(r[i]) for r in [header, *rows]) for i in range(len(header))]
    for row in [header, ["-" * w for w in widths], *rows]:
        print("| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths)) + " |")
