"""Graphs of recorded operations as R's data frames."""

from __future__ import annotations

from ...autodiff.diagnostics.inspection import arranged, boxes


def graph(y, params) -> dict:
    """The boxes and arrows of a graph's picture, as columns; boxes are counted from 1."""
    found = boxes(y, dict(params or {}))
    ways = arranged(found)
    number = {key: i for i, key in enumerate(found, 1)}
    columns = ("name", "about", "kind", "level", "x", "width")
    return {
        "boxes": {name: [getattr(box, name) for box in found.values()] for name in columns},
        "from": [number[key] for key, _ in ways],
        "to": [number[key] for _, key in ways],
        "ways": list(ways.values()),
    }
