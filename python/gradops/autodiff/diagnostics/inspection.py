"""Views of the graphs of variables and of torch tensors: a list of nodes, DOT text, and pictures."""

from __future__ import annotations

import importlib
import os
import pathlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any
from zlib import crc32

from ... import _display, backends
from ...errors import ArgumentError, ArgumentTypeError, BackendError, Code, GradientError, TypeOf
from ..graph import PICK, Node
from ..variable import Variable, array_text


def nodes(y) -> list:
    """Return the recorded operations that ``y`` depends on, each before its inputs.

    Args:
        y: a variable or torch tensor, or several.

    Raises:
        GradientError: nothing was recorded.
    """
    return [place for place in _ordered(_roots(y)) if not _is_leaf(place)]


@dataclass
class Box:
    """An operation or a leaf in a picture of a graph.

    Attributes:
        name: the name of the operation, or the name or role of the leaf.
        about: dtype and shape, ``"float64 [2, 3]"``; empty for an operation with several results. For text, its
            beginning, if known, and a leaf's feedback.
        kind: ``"operation"``, ``"result"`` or ``"leaf"``.
        level: the row from the top: 0 for results; a box is below all boxes that use it.
        x, width: the centre and width, in widths of a letter.
        below: the keys of the boxes of its inputs.
    """

    name: str
    about: str
    kind: str
    level: int = 0
    x: float = 0.0
    width: float = 0.0
    below: list = field(default_factory=list)


def boxes(y, params: Mapping[str, Any] | None = None) -> dict[str, Box]:
    """Return the boxes in a picture of the graph of ``y``, by keys ``"n1"``, ``"n2"``, ..., results first.

    Args:
        y: a variable or torch tensor, or several.
        params: names for leaves.

    Raises:
        GradientError: nothing was recorded.
    """
    if not isinstance(params, Mapping | None) or not all(isinstance(name, str) for name in params or ()):
        raise ArgumentTypeError(
            "`params` must be {names}; got {params}.",
            argument="params",
            names=Code("a dict of tensors by their names", "a list of tensors with names"),
            params=TypeOf(params),
        )
    names = {id(v): name for name, v in (params or {}).items()}
    roots = _roots(y)
    results = set(map(id, roots))
    texts = {id(_shown(v.grad_fn)): v for v in _several(y) if isinstance(v, Variable) and v.dtype is str}
    places = _ordered(roots)
    keys = {id(place): f"n{i}" for i, place in enumerate(places, 1)}
    found = {}
    for place in places:
        box = found[keys[id(place)]] = Box(*_words(place, names), "result" if id(place) in results else "operation")
        if id(place) in texts and not _is_leaf(place):
            box.about = _quoted(texts[id(place)])
        if _is_leaf(place):
            box.kind = "leaf"
        box.width = 2 + max(len(box.name), len(box.about))
        box.below = [keys[id(_shown(p))] for p in _inputs(place)]
    for box in found.values():  # each box comes before the boxes below it
        for key in box.below:
            found[key].level = max(found[key].level, box.level + 1)
    return found


def arranged(found: dict[str, Box]) -> dict[tuple[str, str], list]:
    """Set the positions of boxes so that connected boxes are near each other.

    Returns:
        For each pair of a box and an input, the ``x`` of the line between them on each level that it passes.
    """
    rows: list[list[str]] = [[] for _ in range(1 + max(box.level for box in found.values()))]
    places = dict(found)
    near: dict[str, list[str]] = {}
    ways: dict[tuple[str, str], list] = {}
    for key, box in found.items():
        rows[box.level].append(key)
        for below in box.below:
            way = [key]
            for level in range(box.level + 1, found[below].level):  # empty boxes for the line to pass through
                way.append(f"{key}-{below}-{level}")
                if way[-1] not in places:
                    places[way[-1]] = Box("", "", "passing", level, width=1)
                    rows[level].append(way[-1])
            way.append(below)
            ways[key, below] = way
            for a, b in zip(way, way[1:]):
                near.setdefault(a, []).append(b)
                near.setdefault(b, []).append(a)
    for row in rows:
        _place_row(row, places)
    for sweep in range(8):
        for row in rows if sweep % 2 else reversed(rows):
            wish = {k: sum(places[n].x for n in near[k]) / len(near[k]) if k in near else places[k].x for k in row}
            row.sort(key=wish.__getitem__)
            _place_row(row, places, wish)
    left = min(box.x - box.width / 2 for box in places.values())
    for box in places.values():
        box.x -= left
    return {pair: [places[key].x for key in way] for pair, way in ways.items()}


def _place_row(row: list[str], places: dict[str, Box], wish: dict[str, float] | None = None) -> None:
    """Place boxes next to each other in this order, and the row as near as possible to the positions in ``wish``."""
    gap, x, shift = 3.0, 0.0, 0.0
    for key in row:
        box = places[key]
        box.x = x + box.width / 2
        if wish is not None:
            box.x = max(box.x, wish[key])
            shift += wish[key] - box.x
        x = box.x + box.width / 2 + gap
    for key in row:
        places[key].x += shift / len(row) if wish is not None else -x / 2


def to_dot(y, params: Mapping[str, Any] | None = None) -> str:
    """Return the graph of ``y`` in the DOT language: operations are boxes, leaves ellipses; arrows point up to leaves.

    Args:
        y: a variable or torch tensor, or several.
        params: names for leaves.

    Raises:
        GradientError: nothing was recorded.

    Examples:
        >>> import gradops
        >>> from gradops import autodiff
        >>> x = gradops.Variable([1.0, 2.0], requires_grad=True)
        >>> print(autodiff.to_dot((x**2).sum()).splitlines()[0])
        digraph gradient {

    See Also:
        :func:`draw` for a picture.
    """
    found = boxes(y, params)
    lines = ["digraph gradient {", "  rankdir=BT;", '  node [fontname="sans-serif", fontsize=11];']
    for key, box in found.items():
        label = f"{box.name}\n{box.about}".strip()
        text = label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        shape = {"operation": "box", "leaf": "ellipse", "result": "box, style=rounded"}[box.kind]
        fill = ', style=filled, fillcolor="lightblue"' if box.kind == "leaf" else ""
        lines.append(f'  {key} [label="{text}", shape={shape}{fill}];')
    lines += [f"  {key} -> {below};" for key, box in found.items() for below in box.below]
    return "\n".join([*lines, "}", ""])


class Picture:
    """A picture of a graph, which notebooks show."""

    def __init__(self, svg: str):
        self.svg = svg

    def __repr__(self) -> str:
        return f"<gradops graph, {self.svg.count('<rect')} boxes>"

    def _repr_svg_(self) -> str:
        return self.svg


def draw(y, path=None, params: Mapping[str, Any] | None = None) -> pathlib.Path | Picture:
    """Write the graph of ``y`` as a picture, or show it in a notebook.

    Args:
        y, params: as in :func:`to_dot`.
        path: None returns a picture that notebooks show. A path ends in ``.svg``, which needs no other software; in
            ``.dot`` for :func:`to_dot`'s text; or in another format (``.png``, ``.pdf``), which needs the graphviz
            package and program.

    Returns:
        The path, or a :class:`Picture` if ``path`` is None.

    Raises:
        GradientError: nothing was recorded.
        BackendError: the format needs graphviz, which is not installed.
        ArgumentTypeError: ``path`` is not the name of a file.
        ArgumentError: ``path`` has no file extension.

    Examples:
        >>> import gradops
        >>> from gradops import autodiff
        >>> x = gradops.Variable([1.0, 2.0], requires_grad=True)
        >>> (slope,) = autodiff.grad((x**2).sum(), x, create_graph=True)
        >>> autodiff.draw(slope.sum())
        <gradops graph, 4 boxes>

    See Also:
        :func:`to_dot` for text in the DOT language.
    """
    if path is None:
        return Picture(to_svg(y, params))
    if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str):
        raise ArgumentTypeError("`path` must be the name of a file; got {path}.", argument="path", path=TypeOf(path))
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


def to_svg(y, params: Mapping[str, Any] | None = None) -> str:
    """Return the graph of ``y`` as an SVG picture with results at the top and leaves at the bottom."""
    found = boxes(y, params)
    ways = arranged(found)
    letter, step, tall, edge = 7, 62, 34, 14
    # The id must be unique, as all pictures of a page share one set of ids.
    tip = f"tip-{crc32(repr(found).encode('utf-8', 'replace')):x}"
    parts = []
    for (key, _), way in ways.items():
        level = found[key].level
        points = [(edge + letter * x, edge + step * (level + i)) for i, x in enumerate(way)]
        path = f"M{points[0][0]:.0f} {points[0][1] + tall}"
        for i, (x, y2) in enumerate(points[1:], 1):
            before, start = points[i - 1][0], points[i - 1][1] + tall
            end = y2 if i == len(points) - 1 else y2 + tall
            path += f" C{before:.0f} {start + 16} {x:.0f} {y2 - 16} {x:.0f} {y2}" + (f" L{x:.0f} {end}" * (end != y2))
        parts.append(f'<path d="{path}" fill="none" stroke="#888" marker-end="url(#{tip})"/>')
    for box in found.values():
        x, top, w = edge + letter * box.x, edge + step * box.level, letter * box.width
        color = {"operation": "#fff", "leaf": "#cfe8fc", "result": "#e8f5d0"}[box.kind]
        parts.append(
            f'<rect x="{x - w / 2:.0f}" y="{top}" width="{w:.0f}" height="{tall}" '
            f'rx="{17 if box.kind == "leaf" else 4}" fill="{color}" stroke="#888"/>'
        )
        lines = [line for line in (box.name, box.about) if line]
        for i, line in enumerate(lines):
            y2 = top + (21 if len(lines) == 1 else 14 + 14 * i)
            parts.append(f'<text x="{x:.0f}" y="{y2}" text-anchor="middle" fill="#000">{_display.words(line)}</text>')
    wide = 2 * edge + letter * max(
        [b.x + b.width / 2 for b in found.values()] + [x for way in ways.values() for x in way]
    )
    high = 2 * edge + step * max(box.level for box in found.values()) + tall
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide:.0f}" height="{high}" '
        f'viewBox="0 0 {wide:.0f} {high}" font-family="sans-serif" font-size="11" role="img">'
        f"<title>{_display.words(_told(found))}</title>"
        f'<defs><marker id="{tip}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z" fill="#888"/></marker></defs>' + "".join(parts) + "</svg>\n"
    )


def _told(found: dict[str, Box]) -> str:
    """Return a description of the picture for screen readers."""
    results = [box.name for box in found.values() if box.kind == "result"]
    leaves = [box.name for box in found.values() if box.kind == "leaf"]
    return f"The graph of {', '.join(results[:3])}: {len(found)} boxes, from {', '.join(leaves[:9]) or 'no leaves'}"


MAX_DRAWN_NODES = 60
"""The most operations and leaves of a graph that notebooks draw with its variable."""
MAX_SHOWN_TEXTS = 20
"""The most texts of one variable that are shown."""


def _as_html(self: Variable) -> str:
    if self.dtype is str:
        values = [self.data] if isinstance(self.data, str) else self.tolist()
        about = "text" if isinstance(self.data, str) else f"{len(values)} text{'s' * (len(values) != 1)}"
        shown = [_display.verbatim(text) for text in values[:MAX_SHOWN_TEXTS]]
        shown += (
            [_display.verbatim(f"[... {len(values) - MAX_SHOWN_TEXTS} more]")] if len(values) > MAX_SHOWN_TEXTS else []
        )
    else:
        about = _about(self)
        shown = [_display.verbatim(array_text(self.data, ""))]
    about += f", {self.role}" if self.role else ""
    about += ", requires a gradient" if self.requires_grad and self._node is None else ""
    if self._grad is not None:
        text = str(self._grad.data) if self.dtype is str else array_text(self._grad.data, "")
        shown.append(_display.folded("grad", _display.verbatim(text)))
    if self._node is not None:
        roots = _roots(self)
        count = len(list(islice(_walk(roots), MAX_DRAWN_NODES + 1)))
        title = f"made by {self._node.name}, a graph of " + (
            f"more than {MAX_DRAWN_NODES}" if count > MAX_DRAWN_NODES else str(count)
        )
        picture = to_svg(self) if count <= MAX_DRAWN_NODES else _display.verbatim("`gradops.autodiff.draw()` draws it.")
        shown.append(_display.folded(title, picture))
    return _display.block(type(self).__name__, about, *shown)


Variable._repr_html_ = _as_html  # type: ignore[attr-defined]


def _walk(roots: list) -> Iterator:
    """Iterate over the operations and leaves of a graph, each once; lazy, so that a large graph can be cut short."""
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        place = stack.pop()
        if id(place) not in seen:
            seen.add(id(place))
            yield place
            stack.extend(map(_shown, _inputs(place)))


# A "place" is a node of the tape or of torch's graph, or a leaf: a variable or torch tensor.


def _roots(y) -> list:
    found = _several(y)
    roots = [getattr(v, "grad_fn", None) for v in found]
    if all(root is None for root in roots):
        raise GradientError("there is no graph: nothing was recorded.", argument="y")
    return [_shown(root) for root in roots if root is not None]


def _several(y) -> list:
    return list(y) if isinstance(y, (list, tuple)) else [y]


def _ordered(roots: list) -> list:
    """Return the places in topological order, results first."""
    done: dict[int, Any] = {}
    seen: set[int] = set()
    stack = [(root, False) for root in roots]
    while stack:
        place, below_done = stack.pop()
        if below_done:
            done[id(place)] = place
        elif id(place) not in seen:
            seen.add(id(place))
            stack.append((place, True))
            stack.extend((_shown(p), False) for p in _inputs(place))
    return list(done.values())[::-1]


def _inputs(place) -> list:
    if isinstance(place, Node):
        return [edge for edge in place.edges if edge is not None]
    return [] if _is_leaf(place) else [node for node, _ in place.next_functions if node is not None]


def _shown(place):
    """Return the leaf of torch's ``AccumulateGrad``, the operation that a picked result is of, or the place itself."""
    if isinstance(place, Node):
        return place.edges[0] if place.rule is PICK else place
    return place if isinstance(place, Variable) else getattr(place, "variable", place)


def _is_leaf(place) -> bool:
    return hasattr(place, "grad_fn")


def _words(place, names: dict[int, str]) -> tuple[str, str]:
    """Return the text of a box: a name, and dtype and shape."""
    if _is_leaf(place):
        name = names.get(id(place)) or getattr(place, "role", None) or type(place).__name__
        return name, _about(place)
    if isinstance(place, Node):
        return place.name, "" if place.shape is None else _about(place)
    tapes = [backend.derivatives for backend in backends.loaded_backends() if backend.derivatives.own_tape]
    results: Any = tapes[0].results_of(place) if tapes else ()
    name = place.name().rpartition("::")[2].rstrip("0123456789").removesuffix("Backward")
    return name, _about(results[0]) if len(results) == 1 else ""


def _quoted(variable: Variable) -> str:
    """Return the beginning of a text and of the feedback on it."""
    words = [variable, *([] if variable._grad is None else [variable._grad])]
    shown = [" ".join(str(word.data).split()) for word in words]
    return " <- ".join(repr(word if len(word) <= 30 else word[:27] + "...") for word in shown)


def _about(tensor) -> str:
    dtype = tensor.dtype
    if dtype is str and isinstance(tensor, Variable):
        return _quoted(tensor)
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype).rpartition(".")[2]
    return f"{name} {list(tensor.shape)}" if len(tensor.shape) else name
