"""Reasons why a compiled function was traced again: what differs from the programs that it already has.

:class:`.compiled.Compiled` notes each trace here, and ``explain()`` shows the reasons.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from .._call_sites import has_host

MAX_REASONS = 10
"""The number of reasons that are stored; :meth:`Retraces.lines` shows them."""
MAX_TEXT = 40
"""The largest number of characters of a value in a reason."""


class Held(NamedTuple):
    """The part of a cache key that belongs to one argument or setting.

    Attributes:
        kind: "tensor", "value" (of a number or static argument) or "setting".
        key: the part of the cache key; for a tensor, its dtype and shape.
        text: the text of the value in a reason.
    """

    kind: str
    key: Any
    text: str = ""

    def __str__(self) -> str:
        if self.kind != "tensor":
            return self.text
        dtype, shape = self.key
        return f"{getattr(dtype, 'name', None) or str(dtype).rpartition('.')[2]}{list(shape)}"


class Retraces:
    """The number of traces of a compiled function, and the reason for each trace after the first.

    Args:
        f: the function; its parameters name the arguments in reasons.

    Attributes:
        count: the number of traces.
        reasons: the latest reasons.
    """

    def __init__(self, f: Callable) -> None:
        self._f = f
        self.count = 0
        self.reasons: deque[str] = deque(maxlen=MAX_REASONS)
        self._signatures: deque[Mapping[tuple, Held]] = deque(maxlen=MAX_REASONS)
        self._changes: list[str] = []

    def forget(self, changes: Iterable[tuple[str, Any, Any]]) -> None:
        """Note that all programs were dropped because of ``changes``: names with the values before and now."""
        self._changes = [_changed(*change) for change in changes]
        self._signatures.clear()

    def note(self, signature: Mapping[tuple, Held]) -> None:
        """Note a trace for a signature, see :meth:`.Signature.described`."""
        self.count += 1
        if self._changes:
            self.reasons.append("; ".join(dict.fromkeys(self._changes)))
        elif self._signatures:
            nearest = min(reversed(self._signatures), key=lambda then: _distance(then, signature))
            self.reasons.append(_differences(nearest, signature, parameter_names(self._f)))
        elif self.count > 1:
            self.reasons.append("a static argument or a cached value has changed")
        self._changes = []
        self._signatures.append(signature)

    def branch(self, divergence: tuple[str, Any, Any] | None) -> None:
        """Note a trace for another branch; ``divergence`` is the user's line, the value before and the value now."""
        self.count += 1
        where, then, now = divergence or ("", None, None)
        seen = f" ({_text(then)} before, {_text(now)} now)" if _text(then) and _text(now) else ""
        self.reasons.append(f"another branch{' at ' * bool(where)}{where}{seen}")

    def lines(self) -> list[str]:
        """Return the lines on traces after the first for :meth:`.Compiled.explain`; none if there was only one."""
        if self.count < 2:
            return []
        left = self.count - 1 - len(self.reasons)
        more = [f"  (the reasons of {left} earlier traces are not held)"] if left else []
        return [f"traced {self.count} times, again because:", *more, *(f"  - {reason}" for reason in self.reasons)]


def _changed(name: str, then: Any = None, now: Any = None) -> str:
    texts = _text(then), _text(now)
    if " " in name:
        return f"{name} have changed"
    if not all(texts):
        return f"`{name}` has changed"
    if texts[0] == texts[1]:
        return f"`{name}` is another object of the same value {texts[1]}"
    return f"`{name}` changed from {texts[0]} to {texts[1]}"


def described(value: Any) -> str:
    """Return a short text of a plain value, or the type of another value."""
    return _text(value) or f"a value of type {type(value).__name__}"


def _text(value: Any) -> str:
    if isinstance(value, bool) and has_host():  # called from R, which writes TRUE
        return repr(value).upper()
    text = repr(value) if isinstance(value, (bool, int, float, complex, str)) else ""
    return text if len(text) <= MAX_TEXT else ""


def _distance(then: Mapping[tuple, Held], now: Mapping[tuple, Held]) -> int:
    """Return how many dtypes, shapes and values differ; for another structure, a larger number than any of these."""
    if then.keys() != now.keys():
        return 2 * len(now) + 1
    pairs = [(then[name], now[name]) for name in now if then[name] != now[name]]
    both = [x for x in pairs if x[0].kind == x[1].kind == "tensor"]
    return len(pairs) + sum(x.key[0] != y.key[0] and x.key[1] != y.key[1] for x, y in both)


def _differences(then: Mapping[tuple, Held], now: Mapping[tuple, Held], names: list[str]) -> str:
    if then.keys() != now.keys():
        return f"new structure of arguments: {_arguments(now, names)}; before {_arguments(then, names)}"
    pairs = [(_name(key, names), then[key], now[key]) for key in now if then[key] != now[key]]
    changes = [_difference(*pair) for pair in pairs]
    return "; ".join(changes) or "its program was dropped, as more signatures were used than are held"


def _arguments(signature: Mapping[tuple, Held], names: list[str]) -> str:
    return ", ".join(f"`{_name(key, names)}`" for key, held in signature.items() if held.kind != "setting")


def _name(key: tuple, names: list[str]) -> str:
    """Return an argument's name and the path in it; for an argument without a name (``*args``) its number from 1."""
    place, path = key
    if isinstance(place, int):
        place = names[place] if place < len(names) else f"argument {place + 1}"
    return place + path


def parameter_names(f: Callable) -> list[str]:
    """Return the names of a function's positional parameters; an empty list if its signature is unknown."""
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return []
    return [x.name for x in parameters if x.kind in (x.POSITIONAL_ONLY, x.POSITIONAL_OR_KEYWORD)]


def _difference(name: str, then: Held, now: Held) -> str:
    if then.kind == now.kind == "tensor":
        kind = "shape" if then.key[0] == now.key[0] else "dtype"
        return f"new {kind}: `{name}` was {then} and is {now}"
    if str(then) == str(now):
        return f"`{name}` has another value"
    return f"`{name}` changed from {then} to {now}"
