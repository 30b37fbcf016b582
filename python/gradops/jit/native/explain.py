"""What of a compiled program runs natively, and why the rest does not."""

from __future__ import annotations

from collections.abc import Mapping

from ..scalar_blocks import count
from ..steps import Step
from . import machine
from .run import Run


class Explained:
    """What :meth:`Compiled.explain` says of one program.

    Attributes:
        steps: how many steps the program has.
        native: how many of them run natively.
        runs: in how many runs.
        refused: how many do not, by op and reason.
        bytes: the size of the native code with its memory.
    """

    def __init__(self, steps: list[Step], runs: list[Run], refused: Mapping[tuple[str, str], int]):
        self.steps = count(steps)
        self.native = sum(sum(run.names.values()) for run in runs)
        self.runs = len(runs)
        self.refused = dict(refused)
        self.bytes = sum(run.bytes for run in runs)

    def __str__(self) -> str:
        if machine.machine() is None:
            return f"{_count(self.steps)}, none native: {machine.why_not()}"
        lines = [f"{_count(self.steps)}, {self.native} native"]
        if self.runs:
            lines[0] += f" in {self.runs} run{'s' if self.runs > 1 else ''} ({self.bytes / 1024:.0f} KiB)"
        for (name, reason), times in sorted(self.refused.items(), key=lambda item: -item[1]):
            lines.append(f"  {name}{f' ({times} times)' if times > 1 else ''}: {reason}")
        return "\n".join(lines)


def _count(steps: int) -> str:
    return f"{steps} step{'' if steps == 1 else 's'}"
