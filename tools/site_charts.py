"""Bar charts of gradops and other libraries for the site, from the tables of benchmarks/README.md.

The SVG charts are inserted into the site's page above their tables.
"""

from __future__ import annotations

import html
import math
import re
from typing import NamedTuple


class Chart(NamedTuple):
    """A chart of the first table below ``heading`` with the columns ``series``; each row has a bar for each column.

    Attributes:
        heading: the heading on the page.
        series: columns with the bars' lengths, gradops first; the first number of a cell counts.
        says: the caption, with the unit.
        rows: a regular expression that the rows' names match.
        labels: the number of columns that name a row.
    """

    heading: str
    series: list[str]
    says: str
    rows: str = ""
    labels: int = 1


CHARTS = [
    Chart("Dispatch", ["gradops adds", "Keras adds"], "What an op adds to the native call, microseconds", labels=2),
    Chart("R", ["gradops", "bare reticulate call"], "A call from R, microseconds", rows="numpy"),
    Chart(
        "The tape",
        ["gradops", "autograd", "PyTorch"],
        "Value and all gradients, over the plain NumPy forward pass",
        rows="(?!peak)",
    ),
    Chart("The tape", ["gradops", "autograd", "PyTorch"], "Peak memory, MB", rows="peak"),
    Chart(
        "Derivatives of functions",
        ["logistic, n 2000, p 10"],
        "From R: value and gradient of a logistic regression, n = 2000, p = 10, microseconds",
        rows=".*(?<!value)$",
    ),
    Chart(
        "Compiled programs",
        ["Kalman filter, 200 steps", "GARCH(1,1), 500 steps"],
        "Value and gradient of a loop of scalars, microseconds",
        rows=".*(?<!alone)$",
    ),
    Chart(
        "Compiled programs",
        ["gradops, us", "jax.jit, us"],
        "Value and gradient of large arrays, compiled, microseconds",
        rows=".*0000",
    ),
    Chart("Compiled programs", ["gradops", "RTMB"], "From R: `fn` then `gr`, microseconds"),
    Chart("Compiled programs", ["gradops, once", "RTMB, once"], "From R: to the first gradient, milliseconds"),
    Chart(
        "autograd's examples",
        ["autograd / eager", "jax.jit / jit"],
        "How many times as long autograd takes as gradops eager, and `jax.jit` as `jit`",
    ),
    Chart("In the frameworks' engines", ["gradops", "native"], "A transformer's training step, milliseconds", labels=2),
    Chart("SciPy's functions", ["factor", "SuperLU: factor"], "A sparse factor by its rows, milliseconds"),
    Chart("Gradient flow", ["peak MiB"], "Peak memory of a step of 50 layers, recomputed by", rows="torch", labels=2),
    Chart(
        "Gradient flow",
        ["gradops us", "native us"],
        "A custom gradient, forward and backward, microseconds",
        labels=3,
    ),
]

TABLE = re.compile(r"^\|.*\n\| ?[-|: ]+\n(?:\|.*\n)*", flags=re.M)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def number(cell: str) -> float | None:
    found = re.match(r"[\d.]+(e\d+)?", cell)
    return float(found[0]) if found else None


def columns(table: str) -> list[str]:
    return [re.sub("`", "", cell) for cell in cells(table.split("\n")[0])]


def table_of(chart: Chart, page: str) -> re.Match | None:
    """Return the table that a chart shows."""
    heading = re.search(rf"^## {re.escape(chart.heading)}$", page, flags=re.M)
    if heading is None:
        return None
    end = re.compile("^## ", flags=re.M).search(page, heading.end())
    tables = TABLE.finditer(page, heading.end(), end.start() if end else len(page))
    return next((table for table in tables if set(chart.series) <= set(columns(table[0]))), None)


def bars(chart: Chart, table: str) -> list[tuple[str, list[float | None]]]:
    """Return each row's name and numbers."""
    places = [columns(table).index(name) for name in chart.series]
    rows = [cells(line) for line in table.strip().split("\n")[2:]]
    named = [(", ".join(re.sub("`", "", cell) for cell in row[: chart.labels] if cell), row) for row in rows]
    found = [(name, [number(row[i]) for i in places]) for name, row in named if re.match(chart.rows, name)]
    return [(name, values) for name, values in found if any(value is not None for value in values)]


def svg(chart: Chart, rows: list[tuple[str, list[float | None]]]) -> str:
    """Return the SVG; bars scale with the page's width and text does not, so it is readable on any screen."""
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
    """Return the page with the charts inserted above their tables."""
    places = {}
    for chart in CHARTS:
        table = table_of(chart, page)
        if table is None:
            raise LookupError(f"benchmarks/README.md has no table with {chart.series} below {chart.heading!r}")
        places.setdefault(table.start(), []).append(svg(chart, bars(chart, table[0])))
    for start in sorted(places, reverse=True):
        drawn = "\n".join(places[start])
        page = f"{page[:start]}````{{raw}} html\n{drawn}\n````\n\n{page[start:]}"
    return page
