"""Operations on single numbers that R has logged (R's ``lazy-scalars.R``), written down to the program being traced."""

from __future__ import annotations

from ...jit import scalar_logs as _logs
from .errors import Failure

scalar_names = _logs.NAMES
"""The operations by number, from 1; 0 reads an element of an array."""


def scalars(x):
    """A log for the elements of ``x``; None where there can be none, False where another tensor may have one."""
    return _logs.log(x)


def takes_scalars(log: _logs.Log, x) -> int:
    """The size of an array whose elements a log takes, 0 of a number that it takes; -1 of anything else."""
    return log.takes(x)


def floats_of_scalars(log: _logs.Log, x) -> bool:
    """Whether a log's numbers may be elements of ``x``."""
    return log.has_floats(x)


def write_scalars(log: _logs.Log, words: list[float], inputs: list, numbers: float | list[float] | None, shape: list):
    """Write operations down; the tensor of a result, or of several with a shape, by number."""
    try:
        if words or inputs:  # inputs come once, also where there is no operation on them
            log.record(words, inputs)
        if numbers is None:
            return None
        found = [int(number) for number in (numbers if isinstance(numbers, list) else [numbers])]
        return log.tensor(found, tuple(map(int, shape))) if shape else log.element(found[0])
    except Exception as error:
        return Failure(error)
