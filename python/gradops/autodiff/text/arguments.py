"""What calls and judges take for texts."""

from __future__ import annotations

from ...ops.joining import stack
from ..variable import Variable, data_of
from .values import Texts, convert


def is_text(x) -> bool:
    """Whether ``x`` is a text or several, variable or not; a list is none yet."""
    return isinstance(x, (str, Texts)) or isinstance(x, Variable) and x.dtype is str


def is_list_of_texts(x) -> bool:
    return isinstance(x, (list, tuple)) and len(x) > 0 and all(is_text(y) and value_of(y).shape == () for y in x)


def several(texts) -> Variable | Texts:
    """A list of texts as several texts, recorded where a variable is among them."""
    return stack(list(texts)) if any(isinstance(text, Variable) for text in texts) else Texts(texts)


def value_of(x):
    """A variable's data; a string as a text."""
    value = data_of(x)
    return convert(value) if isinstance(value, str) else value
