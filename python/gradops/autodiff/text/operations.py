"""What is done with texts, recorded as operations on numbers are."""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any

from ...errors import ArgumentTypeError
from ..graph import Rule
from ..modes import recording
from ..record import record
from ..variable import Variable, wrap
from .values import Feedback, Text, Texts, feedback, roles_of


def join(texts, separator: str = "") -> Any:
    """Texts one after the other.

    Args:
        texts: a list of text variables and strings, or a variable of several texts.
        separator: a string or text variable between them.

    Returns:
        A text variable whose roles are those of its parts; a ``Text`` where there is no variable.

    Raises:
        ArgumentTypeError: what is not text.

    Gradient:
        The feedback, to every part that requires it and to the separator.
    """
    parts = [texts] if isinstance(texts, (Variable, str)) else list(texts)
    values: list[Text] = []
    for part in map(_text, parts):
        values.extend(part if isinstance(part, Texts) else (part,))
    between = _single(separator)
    result = Text(between.join(values), roles_of(*values, between))
    return _recorded("join", [*parts, separator], result)


def split(text, separator: str | None = None, maxsplit: int = -1) -> list:
    """The parts of a text, as ``str.split``: a list of text variables.

    Gradient:
        The feedback on each part, to the text.
    """
    value = _single(text)
    parts = [Text(part, value.roles) for part in value.split(separator, maxsplit)]
    return _recorded("split", [text], parts)


def format(template, *arguments, **named) -> Any:
    """``template.format(...)`` with text variables, strings, numbers and number variables filled in.

    Returns:
        A text variable whose roles are those of the template and of what was filled in.

    Raises:
        ArgumentTypeError: a template that is not text, or a name in it that is not given.

    Gradient:
        The feedback, to the template and every text that was filled in; none to numbers.
    """
    pattern = _single(template)
    values = [*arguments, *named.values()]
    texts = [v for v in values if isinstance(v, str) or isinstance(v, Variable) and v.dtype is str]
    try:
        filled = string.Formatter().vformat(str(pattern), arguments, named)
    except (KeyError, IndexError) as error:
        raise ArgumentTypeError(
            f"`format`: nothing is given for {error} of the template.", argument="template"
        ) from error
    return _recorded("format", [template, *texts], Text(filled, roles_of(pattern, *map(_text, texts))))


def _mapped(name: str, method: Callable, doc: str) -> Callable:
    def operation(text, *arguments):
        value = _text(text)
        if isinstance(value, Texts):
            result: Any = Texts([Text(method(v, *arguments), v.roles) for v in value])
        else:
            result = Text(method(value, *arguments), value.roles)
        return _recorded(name, [text], result)

    operation.__name__ = operation.__qualname__ = name
    operation.__doc__ = f"{doc} Elementwise on several.\n\n    Gradient:\n        The feedback.\n    "
    return operation


strip = _mapped("strip", str.strip, "A text without what surrounds it, as ``str.strip``.")
lower = _mapped("lower", str.lower, "A text in lower case.")
upper = _mapped("upper", str.upper, "A text in upper case.")
replace = _mapped("replace", str.replace, "A text with one part replaced by another, as ``str.replace``.")


def _recorded(name: str, inputs: list, result):
    variables = [x for x in inputs if isinstance(x, Variable)]
    if not variables:
        return result
    edges = tuple(x._node or x if x.requires_grad else None for x in variables)
    if recording.get() and any(edge is not None for edge in edges):
        rule = Rule(name, vjp=_to_all if not isinstance(result, list) else _parts_to_all)
        return record(rule, edges, (), result)
    return [wrap(part) for part in result] if isinstance(result, list) else wrap(result)


def _to_all(g, saved, node) -> list:
    return [g] * len(node.edges)


def _parts_to_all(g, saved, node) -> list:
    return [sum((feedback(part) for part in g), Feedback())] * len(node.edges)


def _text(value) -> Text | Texts:
    data = value.data if isinstance(value, Variable) else value
    if isinstance(data, (Text, Texts)):
        return data
    if isinstance(data, str):
        return Text(data)
    raise ArgumentTypeError(f"expected a text; got {type(data).__name__}.")


def _single(value) -> Text:
    text = _text(value)
    if isinstance(text, Texts):
        raise ArgumentTypeError("expected one text; got several.")
    return text
