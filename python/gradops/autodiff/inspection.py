"""Looking at a graph: as a list of nodes, as DOT text, as a picture."""

from __future__ import annotations

import importlib
import pathlib
from collections.abc import Mapping
from html import escape
from typing import Any

from ..errors import ArgumentError, BackendError, GradientError
from .graph import Node
from .variable import Variable


def nodes(y) -> list[Node]:
    """The recorded operations that ``y`` was made by, the youngest first.

    Args:
        y: a variable, or several.

    Raises:
        GradientError: nothing was recorded.
    """
    found: dict[int, Node] = {}
    stack = [v._node for v in _several(y) if v._node is not None]
    while stack:
        node = stack.pop()
        if node.seq not in found:
            found[node.seq] = node
            stack.extend(e for e in node.edges if isinstance(e, Node))
    return [found[seq] for seq in sorted(found, reverse=True)]


def to_dot(y, params: Mapping[str, Variable] | None = None) -> str:
    """The graph of ``y`` in the DOT language: operations as boxes, leaves as ellipses, gradients' way upwards.

    Args:
        y: a variable, or several.
        params: names for leaves.

    Raises:
        GradientError: nothing was recorded.
    """
    boxes, arrows = _drawn(y, params)
    lines = ["digraph gradient {", "  rankdir=BT;", '  node [fontname="sans-serif", fontsize=11];']
    for key, (label, kind, _) in boxes.items():
        text = label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        shape = {"node": "box", "leaf": "ellipse", "result": "box, style=rounded"}[kind]
        fill = ', style=filled, fillcolor="lightblue"' if kind == "leaf" else ""
        lines.append(f'  {key} [label="{text}", shape={shape}{fill}];')
    lines += [f"  {a} -> {b};" for a, b in arrows]
    return "\n".join([*lines, "}", ""])


def draw(y, path, params: Mapping[str, Variable] | None = None) -> pathlib.Path:
    """Write the graph of ``y`` as a picture.

    Args:
        y, params: as of :func:`to_dot`.
        path: ends in ``.svg``, which needs nothing installed; ``.dot`` for :func:`to_dot`'s text; or in
            another format (``.png``, ``.pdf``), which the graphviz library and program make.

    Returns:
        The path.

    Raises:
        GradientError: nothing was recorded.
        BackendError: a format that needs graphviz, which is not installed.
    """
    path = pathlib.Path(path)
    kind = path.suffix[1:]
    if not kind:
        raise ArgumentError("`path` must end in .svg, .dot, .png or another format of graphviz.", argument="path")
    if kind in ("dot", "gv"):
        path.write_text(to_dot(y, params))
    elif kind == "svg":
        path.write_text(to_svg(y, params))
    else:
        try:
            graphviz: Any = importlib.import_module("graphviz")
            path.write_bytes(graphviz.Source(to_dot(y, params)).pipe(format=kind))
        except Exception as error:
            raise BackendError(
                f"a .{kind} picture needs graphviz: {error}", argument="path", hint="pip install graphviz, or use .svg"
            ) from error
    return path


def to_svg(y, params: Mapping[str, Variable] | None = None) -> str:
    """The graph of ``y`` as an SVG picture: results at the top, leaves at the bottom."""
    boxes, arrows = _drawn(y, params)
    rows: dict[int, list[str]] = {}
    for key, (_, _, depth) in boxes.items():
        rows.setdefault(depth, []).append(key)
    widths = {k: 14 + 7 * max(map(len, label.split("\n"))) for k, (label, _, _) in boxes.items()}
    total = max(sum(widths[k] + 20 for k in row) for row in rows.values()) + 20
    places, parts = {}, []
    for level, row in sorted(rows.items()):
        x = (total - sum(widths[k] + 20 for k in row)) / 2 + 10
        for key in row:
            places[key] = (x + widths[key] / 2, 20 + 62 * level)
            x += widths[key] + 20
    for a, b in arrows:
        (x1, y1), (x2, y2) = places[a], places[b]
        parts.append(
            f'<path d="M{x1:.0f} {y1 + 34:.0f} C {x1:.0f} {y1 + 48:.0f} {x2:.0f} {y2 - 14:.0f} {x2:.0f} {y2:.0f}" '
            'fill="none" stroke="#555" marker-end="url(#tip)"/>'
        )
    for key, (label, kind, _) in boxes.items():
        x, top = places[key]
        w = widths[key]
        color = {"node": "#fff", "leaf": "#cfe8fc", "result": "#e8f5d0"}[kind]
        parts.append(
            f'<rect x="{x - w / 2:.0f}" y="{top:.0f}" width="{w}" height="34" rx="{17 if kind == "leaf" else 4}" '
            f'fill="{color}" stroke="#333"/>'
        )
        lines = label.split("\n")
        for i, line in enumerate(lines):
            parts.append(
                f'<text x="{x:.0f}" y="{top + (21 if len(lines) == 1 else 14 + 14 * i):.0f}" '
                f'text-anchor="middle">{escape(line)}</text>'
            )
    height = 80 + 62 * max(rows)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total:.0f}" height="{height}" '
        f'viewBox="0 0 {total:.0f} {height}" font-family="sans-serif" font-size="11">'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z" fill="#555"/></marker></defs>' + "".join(parts) + "</svg>\n"
    )


def _drawn(y, params) -> tuple[dict, list]:
    """Boxes ``{key: (label, kind, depth)}`` and arrows between keys."""
    names = {id(v): name for name, v in (params or {}).items()}
    depth: dict[Any, int] = {}
    found = nodes(y)
    for node in found:  # the youngest first: whoever uses a node came before it
        level = depth.setdefault(node.seq, 0)
        for edge in node.edges:
            if edge is not None:
                place = edge.seq if isinstance(edge, Node) else id(edge)
                depth[place] = max(depth.get(place, 0), level + 1)
    results = {v._node.seq: v for v in _several(y) if v._node is not None}
    boxes: dict[str, tuple] = {}
    arrows = []
    for node in found:
        about = "" if node.shape is None else f"\n{_about(node.shape, node.dtype)}"
        boxes[f"n{node.seq}"] = (node.name + about, "result" if node.seq in results else "node", depth[node.seq])
        for edge in node.edges:
            if edge is None:
                continue
            if isinstance(edge, Node):
                arrows.append((f"n{node.seq}", f"n{edge.seq}"))
                continue
            key = f"v{id(edge)}"
            name = names.get(id(edge)) or edge.role or type(edge).__name__
            boxes[key] = (f"{name}\n{_about(edge.shape, edge.dtype)}", "leaf", depth[id(edge)])
            arrows.append((f"n{node.seq}", key))
    return boxes, arrows


def _about(shape, dtype) -> str:
    return f"{tuple(shape)} {getattr(dtype, 'name', None) or getattr(dtype, '__name__', dtype)}"


def _several(y) -> list[Variable]:
    found = list(y) if isinstance(y, (list, tuple)) else [y]
    if not all(isinstance(v, Variable) for v in found) or not any(v._node is not None for v in found):
        raise GradientError("there is no graph: nothing was recorded.", argument="y")
    return found
