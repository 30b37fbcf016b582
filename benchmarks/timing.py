"""Side-by-side timing: contenders take turns, and the best of each counts."""

from __future__ import annotations

import time
from collections.abc import Callable


def compare(contenders: dict[str, Callable[[], object]], repeats: int = 15, budget: float = 0.02) -> dict[str, float]:
    """Seconds per call of each contender: the best of ``repeats`` rounds of about ``budget`` seconds, interleaved."""
    counts = {}
    for name, call in contenders.items():
        call()
        start = time.perf_counter()
        call()
        counts[name] = max(1, int(budget / max(time.perf_counter() - start, 1e-7)))
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(repeats):
        for name, call in contenders.items():
            count = counts[name]
            start = time.perf_counter()
            for _ in range(count):
                call()
            best[name] = min(best[name], (time.perf_counter() - start) / count)
    return best


def table(header: list[str], rows: list[list[str]]) -> None:
    """Print a Markdown table."""
    widths = [max(len(r[i]) for r in [header, *rows]) for i in range(len(header))]
    for row in [header, ["-" * w for w in widths], *rows]:
        print("| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths)) + " |")
