"""How objects and long computations are shown: HTML for notebooks, and progress bars."""

from __future__ import annotations

import contextlib
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from typing import Any

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
MAX_CHARACTERS = 2000
"""The largest number of characters of a text that is shown in full; of a longer one, the beginning and the end."""
MAX_SHOWN_ROWS = 30
"""The largest number of rows of a table that are shown."""
CELLS, SIDE = 64, 240
"""The largest number of rows and columns of a pattern that are drawn, and the length of its sides."""


def words(text: str) -> str:
    """Text escaped for HTML or SVG; characters that both forbid (control characters, lone surrogates) are replaced."""
    return escape(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", text))


def block(title: str, about: str, *parts: str) -> str:
    """An object as HTML: its title, a description next to it, and parts that already are HTML.

    The classes keep Jupyter from rendering text after ``$`` as a formula.
    """
    head = f"<div><strong>{words(title)}</strong> {words(about)}</div>"
    return f'<div class="gradops tex2jax_ignore mathjax_ignore">{head}{"".join(parts)}</div>'


def verbatim(text: str) -> str:
    """A text as it is, with wide lines wrapped."""
    if len(text) > MAX_CHARACTERS:
        left = len(text) - MAX_CHARACTERS
        text = f"{text[: MAX_CHARACTERS * 3 // 4]}\n[... {left} characters ...]\n{text[-MAX_CHARACTERS // 4 :]}"
    return f'<pre style="white-space: pre-wrap; margin: 0.3em 0">{words(text)}</pre>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]], of_text: Sequence[int] = (0,)) -> str:
    """A table of strings; the columns ``of_text`` are aligned left, the others, which are numbers, right."""

    def line(kind: str, cells: Sequence[str]) -> str:
        sides = ("left" if i in of_text else "right" for i in range(len(cells)))
        scope = ' scope="col"' if kind == "th" else ""
        return "".join(f'<{kind}{scope} style="text-align: {s}">{words(c)}</{kind}>' for s, c in zip(sides, cells))

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{line('th', head)}</tr></thead><tbody>{body}</tbody></table>"


_LATEX = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {c: f"${c}$" for c in "<>|"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
)


def tabular(head: Sequence[str], rows: Iterable[Sequence[str]], notes: Sequence[str]) -> str:
    """A table of strings as LaTeX, the first column aligned left, the others right; with notes below it."""

    def line(cells: Sequence[str]) -> str:
        return " & ".join(cell.translate(_LATEX) for cell in cells) + r" \\"

    below = [rf"\multicolumn{{{len(head)}}}{{l}}{{{note.translate(_LATEX)}}} \\" for note in notes]
    body = [line(head), r"\hline", *map(line, rows), r"\hline", *below]
    return "\n".join([rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}", r"\hline", *body, r"\end{tabular}"])


def places(pattern: Any, title: str) -> str:
    """A picture of the nonzeros of a SciPy sparse matrix, at most :data:`CELLS` cells across."""
    size = max(pattern.shape)
    cells, found = min(size, CELLS), pattern.tocoo()
    filled = {(int(i) * cells // size, int(j) * cells // size) for i, j in zip(found.row, found.col)}
    path = "".join(f"M{j} {i}h1v1h-1z" for i, j in sorted(filled))
    wide, high = (-(-n * cells // max(size, 1)) for n in pattern.shape[::-1])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{SIDE * wide // max(cells, 1)}" '
        f'height="{SIDE * high // max(cells, 1)}" viewBox="0 0 {wide} {high}" role="img"><title>{words(title)}</title>'
        f'<rect width="{wide}" height="{high}" fill="none" stroke="#888" stroke-width="0.1"/>'
        f'<path d="{path}" fill="#4477aa"/></svg>'
    )


def aligned(rows: Sequence[Sequence[str]], of_text: Sequence[int] = (0,), least: Sequence[int] = ()) -> list[str]:
    """Rows of strings as lines with aligned columns, each as wide as its widest cell and at least as ``least``."""
    least = [*least, *[0] * len(rows[0])]
    widths = [max(w, *map(len, column)) for w, column in zip(least, zip(*rows))]
    sides = ["<" if i in of_text else ">" for i in range(len(widths))]
    return ["  ".join(f"{c:{s}{w}}" for c, s, w in zip(row, sides, widths)).rstrip() for row in rows]


def rows_of(rows: Sequence[Sequence[str]], head: Sequence[str], of_text: Sequence[int] = (0,)) -> str:
    """A table of the first of many rows, with the number of the remaining ones."""
    more = verbatim(f"[... {len(rows) - MAX_SHOWN_ROWS} more]") if len(rows) > MAX_SHOWN_ROWS else ""
    return table(head, rows[:MAX_SHOWN_ROWS], of_text) + more


def folded(title: str, part: str) -> str:
    """A part that is shown when its title is clicked."""
    return f"<details><summary>{words(title)}</summary>{part}</details>"


# A progress bar for long loops in interactive use ---------------------------------------------------------------------


patience = 2.0
"""The number of seconds after which a bar is shown."""

host: Callable | None = None
"""A function that makes a bar instead of rich; set by another language that shows it, such as R."""


@contextlib.contextmanager
def track(total: int | None, label: str, wanted: bool | None = None) -> Iterator[Callable[[int], None]]:
    """Yield a function that moves a progress bar by a step's size; ``total`` is None if it is unknown.

    ``wanted``: True shows the bar from the start, without ``rich`` as lines of percentages; False never;
    None after two seconds, if there is a terminal and ``rich``, so not in a notebook or a document.
    """
    progress = _Progress(total, label, 0.0 if wanted else patience, lines=bool(wanted))
    try:
        yield (lambda size: None) if wanted is False else progress.advance
    finally:
        if progress.bar is not None:
            progress.bar.stop()
            _Progress.shown = False


@contextlib.contextmanager
def untracked() -> Iterator[None]:
    """Show no progress bar inside the scope; for work that the user did not start."""
    before = _Progress.shown
    _Progress.shown = True
    try:
        yield
    finally:
        _Progress.shown = before


class _Progress:
    shown = False
    """True while a bar is shown: nested loops show none."""

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
