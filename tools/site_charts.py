"""Bar charts of gradops and its peers from benchmarks/results/, as SVG on the site's page of benchmarks/README.md."""

from __future__ import annotations

import csv
import html
import math
import re
from pathlib import Path
from typing import NamedTuple

RESULTS = Path(__file__).resolve().parents[1] / "benchmarks" / "results"


class Chart(NamedTuple):
    """A chart above the first table of a section, with one bar for each of ``series`` in each row of a file.

    Attributes:
        heading: the section of benchmarks/README.md.
        file: the name of a CSV file in benchmarks/results/, without its suffix.
        series: columns with the lengths of the bars, gradops' first.
        says: the caption, with the unit.
        rows: a regular expression that the names of the rows match from their start.
        labels: the number of columns that name a row.
    """

    heading: str
    file: str
    series: list[str]
    says: str
    rows: str = ""
    labels: int = 1


CHARTS = [
    Chart(
        "What does an operation cost?",
        "dispatch",
        ["gradops adds, us", "Keras adds, us"],
        "What an op adds to the native call, microseconds",
        labels=2,
    ),
    Chart(
        "What does an operation cost from R?",
        "calls_from_r",
        ["gradops, us", "bare reticulate call, us"],
        "A call from R, microseconds",
        rows="numpy",
    ),
    Chart(
        "How fast is the tape?",
        "tape",
        ["gradops", "autograd", "PyTorch"],
        "Value and all gradients, over the plain NumPy forward pass",
    ),
    Chart(
        "How much memory does the tape take?",
        "tape_memory",
        ["gradops, MB", "autograd, MB", "PyTorch, MB"],
        "Peak memory, MB",
    ),
    Chart(
        "How fast is compiled code on small numbers?",
        "compiled_loops",
        ["Kalman filter, 200 steps, us", "GARCH(1,1), 500 steps, us"],
        "Value and gradient of a loop of scalars, microseconds",
        rows=".*(?<!alone)$",
    ),
    Chart(
        "How fast are autograd's own examples?",
        "autograd_examples",
        ["autograd / eager", "jax.jit / jit"],
        "Time of autograd over gradops eager, and of `jax.jit` over `jit`",
    ),
    Chart(
        "How fast is compiled code on large arrays?",
        "arrays",
        ["gradops, us", "jax.jit, us"],
        "Value and gradient of large arrays, compiled, microseconds",
        rows=".*0000",
    ),
    Chart(
        "How fast are likelihoods from R?",
        "compiled_from_r",
        ["gradops, us", "RTMB, us"],
        "From R: `fn` then `gr`, microseconds",
    ),
    Chart(
        "How fast are likelihoods from R?",
        "compiled_from_r",
        ["gradops: first once, ms", "RTMB: first once, ms"],
        "From R: to the first gradient, milliseconds",
    ),
    Chart(
        "What do eager and compiled derivatives cost from R?",
        "likelihoods_from_r",
        ["logistic regression, n 2000, p 10, us"],
        "From R: value and gradient of a logistic regression, n = 2000, p = 10, microseconds",
        rows=".*(?<!value), 2026-11-22$",
        labels=2,
    ),
    Chart(
        "How fast are models with random effects?",
        "laplace",
        ["fit: gradops, ms", "fit: RTMB, ms"],
        "A fit with standard errors, milliseconds",
    ),
    Chart(
        "How fast are sparse factors?",
        "scipy_sparse",
        ["factor", "SuperLU: factor"],
        "A sparse factor by its rows, milliseconds",
    ),
    Chart(
        "What does a training step cost in PyTorch and JAX?",
        "engines",
        ["gradops, ms", "native, ms"],
        "A transformer's training step, milliseconds",
        labels=2,
    ),
    Chart(
        "What does a custom gradient cost?",
        "custom_gradients",
        ["gradops, us", "native, us"],
        "A custom gradient, forward and backward, microseconds",
        labels=3,
    ),
    Chart(
        "What does checkpointing save?",
        "checkpointing",
        ["peak MiB"],
        "Peak memory of a step of 50 layers, recomputed by",
        rows="torch",
        labels=2,
    ),
]

TABLE = re.compile(r"^\|.*\n\| ?[-|: ]+\n", flags=re.M)


def number(cell: str) -> float | None:
    """Return the first number of a cell, or None if the cell does not begin with one."""
    found = re.match(r"[\d.]+(e\d+)?", cell)
    return float(found[0]) if found else None


def result_rows(file: str) -> list[dict[str, str]]:
    """Return the rows of a file of benchmarks/results/."""
    with (RESULTS / f"{file}.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def bars(chart: Chart) -> list[tuple[str, list[float | None]]]:
    """Return the name and the numbers of each row of a chart."""
    found = []
    for row in result_rows(chart.file):
        name = ", ".join(cell for cell in list(row.values())[: chart.labels] if cell)
        numbers = [number(row[column]) for column in chart.series]
        if re.match(chart.rows, name) and any(value is not None for value in numbers):
            found.append((name, numbers))
    return found


def table_start(heading: str, page: str) -> int:
    """Return the position of the first table below a heading of level 2."""
    section = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", page, flags=re.M | re.S)
    table = TABLE.search(page, section.start(1), section.end(1)) if section else None
    if table is None:
        raise LookupError(f"benchmarks/README.md has no table below {heading!r}")
    return table.start()


def svg(chart: Chart, rows: list[tuple[str, list[float | None]]]) -> str:
    """Return the figure; bars are percentages of the page's width and text has one size, so any screen can show it."""
    values = [value for _, several in rows for value in several if value is not None]
    least, most = min(values), max(values)
    by_powers = most > 60 * least
    parts, y = [], 0
    for name, several in rows:
        y += 18
        parts.append(f'<text x="0" y="{y}" class="name">{html.escape(name)}</text>')
        for k, value in enumerate(several):
            if value is not None:
                part = math.log(2 * value / least) / math.log(2 * most / least) if by_powers else value / most
                y += 15
                parts.append(f'<rect x="0" y="{y - 10}" width="{80 * part:.2f}%" height="12" class="bar{k}"/>')
                parts.append(f'<text x="{80 * part:.2f}%" y="{y}" dx="6">{value:g}</text>')
        y += 8
    says = html.escape(chart.says) + (" (logarithmic)" if by_powers else "")
    says = re.sub("`(.*?)`", r"<code>\1</code>", says)
    key = "".join(
        f'<span class="key"><i class="bar{k}"></i>{html.escape(s)}</span>' for k, s in enumerate(chart.series)
    )
    alone = re.sub("<.*?>", "", says)
    return (
        f'<figure class="chart"><figcaption>{says}<br>{key}</figcaption>\n'
        f'<svg width="100%" height="{y + 4}" role="img" aria-label="{alone}">\n'
        + "\n".join(parts)
        + "\n</svg></figure>"
    )


def with_charts(page: str) -> str:
    """Return the page with each chart above the first table of its section."""
    drawn: dict[int, list[str]] = {}
    for chart in CHARTS:
        drawn.setdefault(table_start(chart.heading, page), []).append(svg(chart, bars(chart)))
    for start in sorted(drawn, reverse=True):
        figures = "\n".join(drawn[start])
        page = f"{page[:start]}````{{raw}} html\n{figures}\n````\n\n{page[start:]}"
    return page
