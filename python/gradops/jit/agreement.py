"""Whether compiled results agree with the reference executor's, and the report where they do not.

Most results have the same bits. Where they have not, sums were added in another order, or a function of the C library
rounds in another way. How much of that a result may show depends on the program: a gradient near an optimum is a
difference of large numbers. So the reference executor runs again with each result rounded at random, which shows the
error that rounding makes in this result. (Stochastic arithmetic: https://doi.org/10.1016/0378-4754(93)90003-D.)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import config
from .._scopes import note_change
from ..errors import MismatchError, MismatchWarning

CLOSE = 16
"""Units of rounding by which elements may differ without a look at how rounding errors grow."""
RUNS = 8
"""Runs of the reference executor with random rounding."""
FEW = 1000
"""The largest result whose elements are looked for among operands of other shapes."""
ALLOWED = 64
"""Largest error of a result, in multiples of the largest difference that random rounding made."""


reports: list[str] = []
"""The differences found in this process; tests look here, as code may catch the error."""


def checks() -> bool:
    """True unless checks are off."""
    return config.check() != "off"


def agree(got: list, want: list, rounded: Callable[[Callable], list] | None = None) -> bool:
    """True if results are those of the reference executor, up to rounding.

    Args:
        rounded: the reference executor with a function that rounds each result; without it the bits must be the same.
    """
    if len(got) != len(want):
        return False
    doubtful = [i for i, (x, y) in enumerate(zip(got, want)) if not _are_close(x, y, CLOSE if rounded else 0)]
    if not doubtful or rounded is None:
        return not doubtful
    if any(not _are_of_one_kind(got[i], want[i]) for i in doubtful):
        return False
    runs = []
    for rounding in roundings():
        try:
            with np.errstate(all="ignore"):
                found = rounded(rounding)
        except Exception:
            return True  # rounding decides whether there is a result at all
        if any(not _are_of_one_kind(found[i], want[i]) for i in doubtful):
            return True  # rounding decides the number of elements
        runs.append([found[i] for i in doubtful])
        if len(runs) > 1 and all(_is_within(got[i], want[i], results) for i, results in zip(doubtful, zip(*runs))):
            return True
    return False


def roundings() -> Iterator[Callable]:
    """Functions that round results at random."""
    random = np.random.default_rng(0)
    for _ in range(RUNS):
        yield lambda x, given: _rounded(x, given, random)


def _is_floating(x) -> bool:
    return np.asarray(x).dtype.kind in "fc"


def _are_of_one_kind(x, y) -> bool:
    """True if two results have one shape and one dtype."""
    if not isinstance(y, (np.ndarray, np.generic)):
        return type(x) is type(y)
    return isinstance(x, (np.ndarray, np.generic)) and x.shape == y.shape and x.dtype == y.dtype


def _are_close(x: Any, y: Any, units: int) -> bool:
    """True if results are equal, or differ by a few units of rounding."""
    if not isinstance(y, (np.ndarray, np.generic)) or not isinstance(x, (np.ndarray, np.generic)):
        return x is y or type(x) is type(y) and bool(np.all(x == y))
    if not _are_of_one_kind(x, y):
        return False
    if y.dtype.kind not in "fc":
        return y.dtype == object or bool(np.array_equal(x, y))
    if np.array_equal(x, y, equal_nan=True):
        return True
    if not units:
        return False
    a, b = np.asarray(x), np.asarray(y)
    with np.errstate(all="ignore"):
        differs = ~_are_same(a, b)
        size, errors, unit = np.abs(b), np.abs(a[differs] - b[differs]), units * float(_eps(b.dtype))
        if not np.isfinite(a[differs]).all():
            return False
        # Elements near 0 among larger ones are differences of these.
        return bool((errors <= unit * size[differs]).all()) or bool(
            (errors <= unit * np.maximum(size[differs], np.median(size[np.isfinite(size)]))).all()
        )


def _are_same(x, y):
    return (x == y) | (np.isnan(x) & np.isnan(y))


def _is_within(got, want, runs: Sequence) -> bool:
    """True if a result differs by no more than the results of runs with random rounding."""
    # These are compared with each other, not with `want`, which may be of arrays that have been written to since.
    first, *others = map(np.asarray, runs)
    if not _is_floating(want):
        changed = np.any([first != x for x in others], axis=0)
        return bool(np.all((got == want) | changed))
    with np.errstate(all="ignore"):
        changed = np.any([np.isfinite(x) != np.isfinite(want) for x in runs], axis=0)
        errors = np.max([np.abs(first - x) for x in others], axis=0)
        allowed = ALLOWED * errors + CLOSE * float(_eps(want.dtype)) * np.abs(want)
        return bool(np.all(_are_same(got, want) | (np.isfinite(got) & (np.abs(got - want) <= allowed)) | changed))


def _eps(dtype: np.dtype):
    return np.finfo(dtype).eps


def _rounded(x: Any, given: Iterable, random: np.random.Generator) -> Any:
    """A result with an error of up to two units in the last place.

    Results that were not rounded stay as they are: integers, and those that are operands, as the largest of some are.
    """
    if x.__class__ is float:
        x = np.float64(x)
    if not isinstance(x, (np.ndarray, np.generic)) or x.dtype.kind not in "fc":
        return x
    x = np.asarray(x)
    size = np.abs(x)
    is_exact = (np.trunc(x.real) == x.real) & (size < 2**20) | ~np.isfinite(x)
    for operand in map(np.asarray, given):
        if operand.dtype == x.dtype and operand.shape == x.shape:
            is_exact |= np.abs(operand) == size
        elif operand.dtype == x.dtype and x.size <= FEW:
            is_exact |= np.isin(size, np.abs(operand))
    changed = (x * (1 + 2 * float(_eps(x.dtype)) * random.uniform(-1, 1, x.shape))).astype(x.dtype)
    return np.where(is_exact, x, changed).astype(x.dtype)[()]


def report(part: str, got: Any = None, want: Any = None, stacklevel: int = 3) -> str:
    """Raise a MismatchError where ``config.check()`` is "error"; else warn, and return the sentence for `explain()`.

    Args:
        part: the compiled part that is wrong, as "`exp` in native code".
    """
    message = f"{part} gave another result than NumPy" + _difference(got, want)
    reports.append(message)
    note_change()  # C code that has the program stops using it
    if config.check() == "error":
        raise MismatchError(f"{message}.", hint="set `GRADOPS_NATIVE=off` to run without native code, and report this")
    warnings.warn(
        f"{message}. The result is NumPy's, and this program runs without native code from now on. Please report this "
        "with the function, or with the output of its `explain()`.",
        MismatchWarning,
        stacklevel=stacklevel,
    )
    return message


def _difference(got, want) -> str:
    """The first element that differs, as text."""
    if not isinstance(want, (np.ndarray, np.generic)) or not isinstance(got, (np.ndarray, np.generic)):
        return ""
    if not _are_of_one_kind(got, want):
        return f": {got.dtype}{list(got.shape)} for {want.dtype}{list(want.shape)}"
    with np.errstate(all="ignore"):
        differs = np.atleast_1d(~_are_same(got, want) if _is_floating(want) else got != want)
    at = tuple(np.argwhere(differs)[0]) if differs.any() else ()
    x, y = (np.atleast_1d(v)[at] if at else v for v in (got, want))
    return f": {x!s} for {y!s}"
