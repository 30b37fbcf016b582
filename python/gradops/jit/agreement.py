"""Compare compiled results with the reference executor's, and report differences.

Most results have the same bits. The rest differ because sums were added in another order, or because a function of the
C library rounds differently. How large the difference may be depends on the program: a gradient near an optimum is a
difference of large numbers. So the reference executor runs again with random rounding errors in those ops, which shows
how far they move this result. (Stochastic arithmetic: https://doi.org/10.1016/0378-4754(93)90003-D.)
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import config
from .._scopes import note_change
from .._tree import items, map_items
from ..errors import MismatchError, MismatchWarning
from ..ops._dispatch import facts_of

CLOSE = 16
"""Units of rounding below which a difference is accepted without running the reference executor again.

In double precision they are multiplied by the square root of the number of rows, as rounding errors are independent. In
single precision they are not: 1,000 units are 1e-4 there, which may be a wrong number.
"""
RUNS = 8
"""Runs of the reference executor with random rounding."""
ALLOWED = 64
"""Largest error of a result, in multiples of the largest difference that random rounding made."""


reports: list[str] = []
"""The differences found in this process; tests look here, as code may catch the error."""


def checks() -> bool:
    """True unless checks are off."""
    return config.check() != "off"


def agree(got: list, want: list, rounded: Callable[[Callable], list] | None = None, rows: float = 1) -> bool:
    """True if results equal the reference executor's, up to rounding.

    Args:
        rounded: the reference executor as a function of a :class:`Rounding`; without it the bits must be the same.
        rows: the number of rows that it runs, each as often as it runs.
    """
    if len(got) != len(want):
        return False
    doubtful = [i for i, (x, y) in enumerate(zip(got, want)) if not _are_close(x, y, rows if rounded else 0)]
    if not doubtful or rounded is None:
        return not doubtful
    if any(not _are_of_one_kind(got[i], want[i]) for i in doubtful):
        return False
    runs, eps = [], 0.0
    for rounding in roundings():
        try:
            with np.errstate(all="ignore"):
                found = rounded(rounding)
        except Exception:
            return True  # rounding decides whether there is a result at all
        if any(not _are_of_one_kind(found[i], want[i]) for i in doubtful):
            return True  # rounding decides the number of elements
        runs.append([found[i] for i in doubtful])
        eps = max(eps, rounding.eps)
        if len(runs) > 1 and all(_is_within(got[i], want[i], results, eps) for i, results in zip(doubtful, zip(*runs))):
            return True
    return False


def are_close(got: list, want: list, rows: float) -> bool:
    """True if results are equal, or differ by the rounding to expect of a number of rows."""
    return all(_are_close(x, y, rows) for x, y in zip(got, want, strict=True))


class Rounding:
    """Call kernels with random rounding errors in the ops that native code may round differently from NumPy.

    IEEE rounds additions, multiplications and square roots of single elements in one way only; moves, extrema and
    comparisons are exact. These ops get no errors. Elementwise functions get errors in their results. Sums, matrix
    products and all other ops also get errors in their operands, because the error of a sum scales with its terms.

    Attributes:
        eps: the largest unit of rounding among the dtypes that got errors.
    """

    def __init__(self, random: np.random.Generator):
        self._random = random
        self.eps = 0.0

    def __call__(self, name: str, kernel: Callable, arguments: tuple) -> Any:
        facts = facts_of(name)
        if facts.exact or facts.moves or name == "scalars":
            return kernel(*arguments)
        if facts.elementwise:
            return self.rounded(kernel(*arguments))
        results = kernel(*map_items(self._operand, arguments))
        if all(map(_is_integral, items(arguments))):
            return results
        return map_items(self.rounded, results)

    def rounded(self, x: Any, units: float = 2.0) -> Any:
        """Return ``x`` with random errors of up to ``units`` units in the last place."""
        if x.__class__ is float:
            x = np.float64(x)
        if not isinstance(x, (np.ndarray, np.generic)) or x.dtype.kind not in "fc":
            return x
        self.eps = max(self.eps, float(_eps(x.dtype)))
        error = units * float(_eps(x.dtype)) * self._random.uniform(-1, 1, x.shape)
        return (np.asarray(x) * (1 + error)).astype(x.dtype)[()]

    def _operand(self, x: Any) -> Any:
        """Return an operand of a sum with errors. Integers stay exact; sums that may overflow do so at random."""
        if not isinstance(x, (np.ndarray, np.generic)) or x.dtype.kind not in "fc":
            return x
        x = np.asarray(x)
        size = np.abs(x)
        # NumPy adds rows one after the other, with an error that grows with their number where all are alike.
        changed = self.rounded(x, 2.0 * max(1, *x.shape) if x.ndim else 2.0)
        huge = size > float(np.finfo(x.dtype).max) ** 0.5
        if huge.any():
            # Terms of both signs overflow in one order of addition and cancel in another.
            most = 1.0 if self._random.random() < 0.5 else 1 / max(1, x.size)
            changed = np.where(huge, x * self._random.uniform(0, most, x.shape), changed)
        return np.where(_are_integers(x) | ~np.isfinite(x), x, changed).astype(x.dtype)[()]


def _are_integers(x: np.ndarray) -> np.ndarray:
    """True for each element whose sums with others are exact."""
    return (np.trunc(x.real) == x.real) & (np.abs(x) < 2**20)


def _is_integral(x: Any) -> bool:
    if not isinstance(x, (np.ndarray, np.generic)) or x.dtype.kind not in "fc":
        return True
    return bool(_are_integers(np.asarray(x)).all())


def roundings() -> Iterator[Rounding]:
    """Yield independent random roundings."""
    random = np.random.default_rng(0)
    for _ in range(RUNS):
        yield Rounding(random)


def _is_floating(x) -> bool:
    return np.asarray(x).dtype.kind in "fc"


def _are_of_one_kind(x, y) -> bool:
    """True if two results have one shape and one dtype."""
    if not isinstance(y, (np.ndarray, np.generic)):
        return type(x) is type(y)
    return isinstance(x, (np.ndarray, np.generic)) and x.shape == y.shape and x.dtype == y.dtype


def _are_close(x: Any, y: Any, rows: float) -> bool:
    """True if results are equal, or differ by the rounding to expect of a number of rows; 0 stands for equal bits."""
    if not isinstance(y, (np.ndarray, np.generic)) or not isinstance(x, (np.ndarray, np.generic)):
        return x is y or type(x) is type(y) and bool(np.all(x == y))
    if not _are_of_one_kind(x, y):
        return False
    if y.dtype.kind not in "fc":
        return y.dtype == object or bool(np.array_equal(x, y))
    if np.array_equal(x, y, equal_nan=True):
        return True
    if not rows:
        return False
    units = CLOSE * math.sqrt(rows) if y.dtype.char in "dD" else CLOSE
    a, b = np.asarray(x), np.asarray(y)
    with np.errstate(all="ignore"):
        differs = ~_are_same(a, b)
        size, errors, unit = np.abs(b), np.abs(a[differs] - b[differs]), units * float(_eps(b.dtype))
        if not np.isfinite(a[differs]).all():
            return False
        # A small element among larger ones is often a difference of these, so it is compared with their size.
        return bool((errors <= unit * size[differs]).all()) or bool(
            (errors <= unit * np.maximum(size[differs], np.median(size[np.isfinite(size)]))).all()
        )


def _are_same(x, y):
    return (x == y) | (np.isnan(x) & np.isnan(y))


def _is_within(got, want, runs: Sequence, eps: float) -> bool:
    """True if a result is as close to the reference's as runs with random rounding are to each other.

    Args:
        eps: the unit of rounding of the least precise operation; a result that was converted from float32 to float64
            still differs by float32's units.
    """
    # Compare the runs with each other, not with `want`: its inputs may have been written to since.
    first, *others = map(np.asarray, runs)
    if not _is_floating(want):
        changed = np.any([first != x for x in others], axis=0)
        return bool(np.all((got == want) | changed))
    with np.errstate(all="ignore"):
        kinds = [(np.isfinite(x) != np.isfinite(want)) | (np.isnan(x) != np.isnan(want)) for x in runs]
        changed = np.any(kinds, axis=0)
        errors = np.max([np.abs(first - x) for x in others], axis=0)
        usual = np.mean(errors[np.isfinite(errors)]) if np.isfinite(errors).any() else 0.0
        allowed = ALLOWED * errors + usual + CLOSE * max(eps, float(_eps(want.dtype))) * np.abs(want)
        return bool(np.all(_are_same(got, want) | (np.isfinite(got) & (np.abs(got - want) <= allowed)) | changed))


def _eps(dtype: np.dtype):
    return np.finfo(dtype).eps


NATIVE = "The result is NumPy's, and this program runs without native code from now on."


def report(
    part: str, got: Any = None, want: Any = None, stacklevel: int = 3, other: str = "NumPy", then: str = NATIVE
) -> str:
    """Raise a MismatchError where ``config.check()`` is "error"; else warn, and return the sentence for `explain()`.

    Args:
        part: the compiled part that is wrong, as "`exp` in native code".
        other: what gives the right result.
        then: the sentence that says what is done.
    """
    message = f"{part} gave another result than {other}" + _difference(got, want)
    reports.append(message)
    note_change()  # C code that has the program stops using it
    if config.check() == "error":
        raise MismatchError(f"{message}.", hint="set `GRADOPS_NATIVE=off` to run without native code, and report this")
    warnings.warn(
        f"{message}. {then} Please report this with the function, or with the output of its `explain()`.",
        MismatchWarning,
        stacklevel=stacklevel,
    )
    return message


def _difference(got, want) -> str:
    """Return the first element that differs, as text."""
    if not isinstance(want, (np.ndarray, np.generic)) or not isinstance(got, (np.ndarray, np.generic)):
        return ""
    if not _are_of_one_kind(got, want):
        return f": {got.dtype}{list(got.shape)} for {want.dtype}{list(want.shape)}"
    with np.errstate(all="ignore"):
        differs = np.atleast_1d(~_are_same(got, want) if _is_floating(want) else got != want)
    at = tuple(np.argwhere(differs)[0]) if differs.any() else ()
    x, y = (np.atleast_1d(v)[at] if at else v for v in (got, want))
    return f": {x!s} for {y!s}"
