"""The methods of ``str`` that text variables have, and the warning where ordinary string code would lose feedback."""

from __future__ import annotations

import sys
from opcode import opname
from typing import Any

from ..autodiff.modes import lose_gradient, recording
from ..autodiff.variable import Variable, data_of
from . import operations

_NAMES = """strip lstrip rstrip lower upper title capitalize replace removeprefix removesuffix splitlines
    format""".split()
for _name in _NAMES:
    setattr(Variable, _name, getattr(operations, _name))

_split_numbers: Any = getattr(Variable, "split", None)


def _split(self, *arguments, **keywords):
    """Split a text as ``str.split`` does, or numbers as :func:`gradops.ops.split` does."""
    method = operations.split if self.dtype is str else _split_numbers
    return method(self, *arguments, **keywords)


def _join(self, texts):
    """Join texts with this one as the separator, as ``str.join`` does."""
    return operations.join(texts, self)


def _startswith(self, *arguments) -> bool:
    """True if the text begins with a prefix, as ``str.startswith``; a plain bool without feedback."""
    return str(self.data).startswith(*arguments)


def _endswith(self, *arguments) -> bool:
    """True if the text ends with a suffix, as ``str.endswith``; a plain bool without feedback."""
    return str(self.data).endswith(*arguments)


def _contains(self, part) -> bool:
    """True if a text contains ``part``, or if one of several texts or numbers equals it."""
    if self.dtype is str:
        part = data_of(part)
        return part in str(self.data) if isinstance(self.data, str) else part in map(str, self.data)
    return any(bool(element == part) for element in iter(self))


for _name, _method in {
    "split": _split,
    "join": _join,
    "startswith": _startswith,
    "endswith": _endswith,
    "__contains__": _contains,
}.items():
    setattr(Variable, _name, _method)

_format, _str = Variable.__format__, Variable.__str__


def _formatted(self, spec: str) -> str:
    if self.dtype is str:
        warn_of_string(self, "formatted into a string", 3)
    return _format(self, spec)


def _as_string(self) -> str:
    if self.dtype is str and self._active and _is_percent_format():
        warn_of_string(self, "formatted into a string", 3)
    return _str(self)


_FORMATTING = ("BINARY_OP", "BINARY_MODULO", "FORMAT_VALUE", "CONVERT_VALUE")


def _is_percent_format() -> bool:
    """True if the caller's caller evaluates ``"..." % x``; ``str(x)`` and ``print(x)`` show the text on purpose."""
    frame = sys._getframe(2)
    return opname[frame.f_code.co_code[frame.f_lasti]] in _FORMATTING


def warn_of_string(variable: Variable, how: str, level: int) -> None:
    """Warn that the feedback on a text variable ends here, where it would be lost silently."""
    if variable._active and recording.get():
        lose_gradient(
            f"a text variable that requires feedback was {how}: no feedback goes through it.",
            "use `+`, `template.format(x)` on a variable, or `gradops.text.format`; `x.item()` if only the "
            "string is wanted",
            level,
        )


Variable.__format__ = _formatted  # type: ignore[method-assign]
Variable.__str__ = _as_string  # type: ignore[method-assign]
