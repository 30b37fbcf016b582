"""A call from R under profilers: how long Python's own code takes, and which of its functions take how long."""

from __future__ import annotations

import cProfile
import pstats
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from . import session


class Clock:
    """The time that R's calls spend in Python, without that in the R functions which Python calls meanwhile."""

    def __init__(self):
        self.seconds = 0.0
        self._since: float | None = None

    def start(self) -> None:
        session.clock = self

    def stop(self) -> float:
        session.clock = None
        return self.seconds

    def call(self, function: Callable, *arguments, **keywords):
        """A call from R."""
        return self._turned(perf_counter(), function, arguments, keywords)

    def paused(self, function: Callable) -> Callable:
        """An R function that Python calls."""
        return lambda *arguments, **keywords: self._turned(None, function, arguments, keywords)

    def _turned(self, since: float | None, function: Callable, arguments, keywords):
        before = self._note(since)
        try:
            return function(*arguments, **keywords)
        finally:
            self._note(None if before is None else perf_counter())

    def _note(self, since: float | None) -> float | None:
        before, self._since = self._since, since
        if before is not None:
            self.seconds += perf_counter() - before
        return before


class Functions:
    """Python's profiler on the thread of R, and the profiler that was there before it."""

    def start(self) -> None:
        self._before = sys.getprofile()
        self._profile = cProfile.Profile()
        self._profile.enable()

    def stop(self) -> dict[str, list]:
        """A row for each function, as columns; those that lead into R, and its own, are left out."""
        self._profile.disable()
        stats = pstats.Stats(self._profile).stats  # type: ignore[attr-defined]
        sys.setprofile(self._before)  # after `Stats`, which disables once more
        found = []
        for (file, line, name), (_, calls, own, total, _) in stats.items():
            if file != __file__ and "rpytools" not in file and "rpycall" not in name:
                place = "" if file == "~" else f"{'/'.join(Path(file).parts[-3:])}:{line}"
                found.append((name, place, calls, own, total))
        columns = zip(*found) if found else [[]] * 5
        return dict(zip(("name", "place", "calls", "self", "total"), map(list, columns)))
