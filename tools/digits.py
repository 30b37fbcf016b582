#!/usr/bin/env python3
"""Writes the tables of docs/digits.md: the worst relative error of each `gradops.scipy` function that mpmath also has.

tools/digits.py             write and print the tables (takes a quarter of an hour)
tools/digits.py NAME ...    write and print the rows of these functions

The reference formulas are in tests/python/exact.py; computed references are cached in .build/digits.
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
import math
import os
import pathlib
import pickle
import sys
import warnings
from collections.abc import Callable, Sequence

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "python")]

import exact  # noqa: E402
import numpy as np  # noqa: E402
from parity import BACKENDS, numpy, tensors  # noqa: E402
from scipy_checks import parts  # noqa: E402

import gradops  # noqa: E402
from gradops import ops  # noqa: E402
from gradops.scipy import special, stats  # noqa: E402

PAGE = ROOT / "docs" / "digits.md"
KEPT = ROOT / ".build" / "digits"
SOURCE = (ROOT / "tests" / "python" / "exact.py").read_bytes()
AIMS = (1e-13, 1e-9)
"""Error aims for values and for derivatives."""
SECONDS = 4.0
"""The time limit for a reference value."""


class Row:
    """The worst errors of a function.

    Attributes:
        values: the worst error of the value on each backend.
        slopes: for each argument the worst error of the derivative on each backend.
        at: the worst error of all, in units of its aim, and the point where it occurred.
        lacking, count: the numbers of points without and with a reference.
    """

    def __init__(self, name: str):
        self.name, self.values, self.slopes = name, {}, {}
        self.at, self.lacking, self.count = (0.0, ""), 0, 0

    def note(self, backend: str, by: str, found: float, want: float, scale: float, where: str) -> None:
        """Record an error of the value, or of the derivative ``by`` an argument.

        It is relative to the exact number, or to ``scale / 1000`` if that is larger.
        """
        if not 1e-290 < abs(want) < 1e290:
            return
        error = abs(found - want) / max(abs(want), scale / 1e3) if math.isfinite(found) else math.inf
        worst = self.slopes.setdefault(by, {}) if by else self.values
        worst[backend] = max(worst.get(backend, 0.0), error)
        size = error / AIMS[bool(by)]
        if size > self.at[0]:
            self.at = size, f"{where}, by {by}" if by else where

    def worst(self, of_slopes: bool) -> float:
        each = self.slopes.values() if of_slopes else [self.values]
        return max((error for one in each for error in one.values()), default=0.0)


def references(
    name: str,
    function: Callable,
    points: Sequence[tuple],
    by: Sequence[int],
    inverse: int | None,
    starts: Sequence[float],
) -> list:
    """Return for each point the results in high precision, or None if they took too long or failed."""
    key = hashlib.sha256(repr((name, points, by, inverse)).encode() + SOURCE).hexdigest()[:20]
    kept = KEPT / f"{name}-{key}"
    if kept.exists():
        return pickle.loads(kept.read_bytes())
    found = []
    for point, start in zip(points, starts):
        if inverse is not None and not 1e-100 < abs(start) < 1e100:
            found.append(None)
            continue
        try:
            with exact.limited(SECONDS):
                found.append(exact.exactly(function, point, by, inverse, start))
        except (exact.Late, ArithmeticError, ValueError, NotImplementedError):
            found.append(None)
    KEPT.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(pickle.dumps(found))
    return found


def called(function: Callable, points: Sequence[tuple], by: Sequence[int], backend: str, apart: bool = True) -> list:
    """Return for each point the results of a gradops function and their derivatives by the arguments ``by``.

    Numbers are passed in arrays of :data:`exact.COUNT`, so that a library compiles once. If ``apart``, integers are
    passed as numbers.
    """
    if not apart:
        points = [tuple(map(float, point)) for point in points]
    found: list = [None] * len(points)
    whole = [tuple(x for x in point if isinstance(x, int)) for point in points]
    for chosen in dict.fromkeys(whole):
        places = [i for i, numbers in enumerate(whole) if numbers == chosen]
        for start in range(0, len(places), exact.COUNT):
            part = places[start : start + exact.COUNT]
            rows = list(itertools.islice(itertools.cycle(points[i] for i in part), exact.COUNT))
            arrays = [tensors(np.array(column), backend) for column in zip(*rows) if not isinstance(column[0], int)]

            def of(*floats, like=rows[0]):
                left = iter(floats)
                return parts(function(*[x if isinstance(x, int) else next(left) for x in like]))

            values = [numpy(y) for y in of(*arrays)]
            among = [i for i, x in enumerate(rows[0]) if not isinstance(x, int)]
            gradients = []
            for k in range(len(values)) if by else ():

                def total(*floats, k=k):
                    return ops.sum(of(*floats)[k])

                each = gradops.grad(total, argnums=tuple(among.index(i) for i in by))(*arrays)
                gradients.append([numpy(g) for g in each])
            for j, i in enumerate(part):
                found[i] = [
                    (float(y[j]), [float(g[j]) for g in gradients[k]] if by else []) for k, y in enumerate(values)
                ]
    return found


def compared(
    row: Row, own: Callable, points: Sequence[tuple], names: Sequence[str], by: Sequence[int], wanted, **how
) -> None:
    """Record the errors of a function at points in a row."""
    row.lacking += sum(want is None for want in wanted)
    row.count += sum(want is not None for want in wanted)
    for backend in BACKENDS:
        for point, found, want in zip(points, called(own, points, by, backend, **how), wanted):
            where = ", ".join(f"{name} {short(x)}" for name, x in zip(names, point))
            for (value, slopes), result in zip(found, want or ()):
                reach = [abs(point[i] * slope) for i, slope in zip(by, result.slopes)]
                row.note(backend, "", value, result.value, max(reach, default=0.0), where)
                for i, slope, exact_slope, curvature in zip(by, slopes, result.slopes, result.curvatures):
                    row.note(backend, names[i], slope, exact_slope, abs(point[i] * curvature), where)


def short(x: float) -> str:
    return f"{x:.4g}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")


def special_row(name: str, count: int = exact.COUNT) -> Row:
    function, own = exact.SPECIAL[name], getattr(special, name)
    points = function.sample(count)
    by = [i for i, x in enumerate(points[0]) if not isinstance(x, int)] if function.by is None else list(function.by)
    names = list(inspect.signature(own).parameters)
    starts = [0.0] * len(points)
    if function.inverse is not None:
        starts = [found[0][0] for found in called(own, points, [], "numpy")]
    row = Row(name)
    compared(row, own, points, names, by, references(name, function.exact, points, by, function.inverse, starts))
    return row


def places(own, shapes: tuple, discrete: bool) -> list[float]:
    """Return the points at which a family is tested: its quantiles."""
    with np.errstate(all="ignore"):
        lower = np.asarray(own.ppf(np.array([1e-300, 1e-20, 1e-3, 0.3, 0.7]), *shapes))
        upper = np.asarray(own.isf(np.array([1e-300, 1e-20, 1e-3]), *shapes))
    found = np.concatenate([lower, upper])
    a, b = [float(end) for end in own.support(*shapes)]
    if discrete:
        found = np.clip(found, max(a, -100), min(b, 5e8))
        return [int(k) for k in np.unique(found[np.isfinite(found)])]
    return [float(x) for x in np.unique(found) if a < x < b and 1e-100 < abs(x) < 1e100]


def family_rows(name: str) -> dict[str, Row]:
    """Return a row for each method of a family."""
    own = getattr(stats, name)
    discrete = name in exact.COUNTS
    family = exact.COUNTS[name] if discrete else exact.CONTINUOUS[name]
    points = [(x, *shapes) for shapes in family.shapes for x in places(own, shapes, discrete)]
    by = [i for i, x in enumerate(points[0]) if not isinstance(x, int)]
    names = ["k" if discrete else "x", *own.shapes]
    wanted = references(name, family.log_and_tails, points, by, None, [0.0] * len(points))
    rows = {}
    for i, method in enumerate(exact.METHODS):
        called_ = method.replace("pdf", "pmf") if discrete else method
        row = rows[method] = Row(f"{name}.{called_}")
        compared(row, getattr(own, called_), points, names, by, [want and [want[i]] for want in wanted], apart=False)
    if not discrete:
        tails = [1e-300, 1e-20, 1e-3, 0.3, 0.7, 1 - 1e-9]
        points = [(p, *shapes) for shapes in family.shapes for p in tails]
        starts = [found[0][0] for found in called(own.ppf, points, [], "numpy")]
        wanted = references(f"{name}.ppf", family.lower, points, by, 0, starts)
        row = rows["ppf"] = Row(f"{name}.ppf")
        compared(row, own.ppf, points, ["q", *own.shapes], by, wanted)
    return rows


# The page -------------------------------------------------------------------------------------------------------------


def digits(error: float) -> str:
    return "lost" if error >= 1 else f"{error:.0e}".replace("e-0", "e-") if error else "0"


def of_backends(values: dict[str, float]) -> str:
    """Return the worst error on NumPy, and on libraries where it differs by more than a factor of 2."""
    first = values.get("numpy", 0.0)
    others = [
        f"{name} {digits(x)}" for name, x in values.items() if not first / 2 <= max(x, 1e-16) <= max(2 * first, 4e-16)
    ]
    return ", ".join([digits(first), *(other for other in others if not other.startswith("numpy"))])


def special_line(row: Row) -> str:
    slopes = "; ".join(f"`{name}` {of_backends(errors)}" for name, errors in row.slopes.items())
    where = row.at[1] if row.at[0] > 0.01 else ""
    return f"| `{row.name}` | {of_backends(row.values)} | {slopes} | {where} |"


def family_line(name: str, rows: dict[str, Row]) -> str:
    cells = []
    for method in (*exact.METHODS, "ppf"):
        row = rows.get(method)
        cells.append("" if row is None else f"{digits(row.worst(False))}; {digits(row.worst(True))}")
    worst = max(rows.values(), key=lambda row: row.at[0])
    return f"| `{name}` | {' | '.join(cells)} | {worst.name.partition('.')[2]}, {worst.at[1]} |"


def main(names: Sequence[str]) -> None:
    warnings.filterwarnings("ignore")
    np.seterr(all="ignore")
    everything = []
    for key in ("special", "stats"):
        head, lines = table(key)
        order = (
            exact.SPECIAL if key == "special" else [x for x in stats.__all__ if x in exact.CONTINUOUS | exact.COUNTS]
        )
        for name in order:
            if names and name not in names:
                continue
            if key == "stats":
                rows = family_rows(name)
                lines[name], row = family_line(name, rows), rows["pdf"]
                everything += rows.values()
            else:
                row = special_row(name)
                lines[name] = special_line(row)
                everything.append(row)
            print(lines[name], f"{row.lacking} of {row.lacking + row.count}", flush=True)
        written = [*head, *(lines[name] for name in order if name in lines)]
        before, _, after = parted(key)
        PAGE.write_text(before + "\n".join(written) + after)
    count, lacking = (sum(getattr(row, key) for row in everything) for key in ("count", "lacking"))
    print(f"{count} points and functions, {lacking} more without a reference", file=sys.stderr)


def parted(key: str) -> tuple[str, str, str]:
    """Return the page before a table, the table, and the page after it."""
    text, begin, end = PAGE.read_text(), f"<!-- {key} -->\n", f"\n<!-- /{key} -->"
    before, _, rest = text.partition(begin)
    inside, _, after = rest.partition(end)
    return before + begin, inside, end + after


def table(key: str) -> tuple[list[str], dict[str, str]]:
    """Return the head of a table of the page, and its lines by name."""
    lines = parted(key)[1].splitlines()
    return lines[:2], {line.split("`")[1]: line for line in lines[2:]}


if __name__ == "__main__":
    main(sys.argv[1:])
