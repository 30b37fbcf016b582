"""Operations on texts, recorded on the tape like operations on numbers."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..autodiff.graph import Rule
from ..autodiff.modes import recording
from ..autodiff.record import record
from ..autodiff.variable import Variable, data_of, wrap
from ..errors import ArgumentError, ArgumentTypeError, Code, TypeOf
from ..ops._checks import check_flags, integer
from ..ops.joining import stack
from .values import Feedback, Text, Texts, aligned, convert, feedback, roles_of


def join(texts, separator: str = "") -> Any:
    """Return texts concatenated into one.

    Args:
        texts: a list of text variables and strings, or a variable of several texts.
        separator: a string or text variable to put between the texts.

    Returns:
        A text variable with the roles of its parts; a ``Text`` if no argument is a variable.

    Raises:
        ArgumentTypeError: a value that is not text.

    Gradient:
        The feedback, for the separator and every part that requires it.

    Examples:
        >>> import gradops
        >>> from gradops import Variable
        >>> first = Variable("Be brief.", role="style", requires_grad=True)
        >>> prompt = gradops.text.join([first, "Why does ice float?"], " ")
        >>> print(prompt.data)
        Be brief. Why does ice float?
        >>> prompt.backward("too curt")
        >>> print(first.grad)
        too curt

    See Also:
        :func:`split`, :func:`format`.
    """
    if not isinstance(texts, Iterable) or getattr(texts, "shape", None) == () and not isinstance(texts, Variable):
        raise ArgumentTypeError(
            "`join`: `texts` must be a list of texts; got {texts}.", argument="texts", texts=TypeOf(texts)
        )
    parts = [texts] if isinstance(texts, (Variable, str)) else list(texts)
    values: list[Text] = []
    for part in parts:
        value = _text(part, "join")
        values.extend(value if isinstance(value, Texts) else (value,))
    between = _single(separator, "join")
    result = Text(between.join(values), roles_of(*values, between))
    return made("join", [*parts, separator], result)


def split(text, separator: str | None = None, maxsplit: int = -1) -> list:
    """Return the parts of a text as a list of text variables, as ``str.split``.

    Raises:
        ArgumentTypeError: a value that is not text.
        ArgumentError: the separator is empty.

    Gradient:
        The feedback on each part, for the text.

    Examples:
        >>> import gradops
        >>> from gradops import Variable
        >>> text = Variable("ice, water", role="list", requires_grad=True)
        >>> first, second = gradops.text.split(text, ", ")
        >>> print(second.data)
        water
        >>> second.backward("name the kind of water")
        >>> print(text.grad)
        name the kind of water

    See Also:
        :func:`splitlines`, :func:`join`.
    """
    value, maxsplit = _single(text, "split"), integer("split", maxsplit, "maxsplit")
    if separator is not None and not (separator := _single(separator, "split")):
        raise ArgumentError(
            "`split`: `separator` must not be empty.", argument="separator", hint="leave it out for spaces"
        )
    parts = [Text(part, value.roles) for part in value.split(separator, maxsplit)]
    return made("split", [text], parts)


def splitlines(text, keepends: bool = False) -> list:
    r"""Return the lines of a text as a list of text variables, as ``str.splitlines``.

    Gradient:
        The feedback on each line, for the text.

    Examples:
        >>> import gradops
        >>> from gradops import Variable
        >>> text = Variable("ice\nwater", role="list", requires_grad=True)
        >>> first, second = gradops.text.splitlines(text)
        >>> second.backward("name the kind of water")
        >>> print(text.grad)
        name the kind of water

    See Also:
        :func:`split`.
    """
    check_flags("splitlines", keepends=keepends)
    value = _single(text, "splitlines")
    return made("splitlines", [text], [Text(line, value.roles) for line in value.splitlines(keepends)])


def format(template, *arguments, **named) -> Any:
    """Return ``template.format(...)`` of text variables, strings, numbers, and lists and dicts of these.

    Fields are ``{}``, ``{0}``, ``{name}`` and ``{name[key]}``, with conversions and format specs. Attributes are not
    allowed, so that a template written by a model can read nothing but its arguments. If the template or an argument is
    several texts, so is the result.

    Returns:
        A text variable with the roles of the template and of the texts filled in.

    Raises:
        ArgumentTypeError: the template is not text, a field has no value, or a field names an attribute.

    Gradient:
        The feedback, for the template and every text filled in; none for numbers.

    Examples:
        >>> import gradops
        >>> from gradops import Variable
        >>> template = Variable("Answer in {language}: {question}", role="template", requires_grad=True)
        >>> prompt = gradops.text.format(template, language="French", question="why?")
        >>> print(prompt.data)
        Answer in French: why?
        >>> prompt.backward("name the audience")
        >>> print(template.grad)
        name the audience

    See Also:
        :func:`join`, :func:`replace`, :func:`gradops.text.call`, which fills in fields itself.
    """
    pattern = _text(template, "format")
    used: list = []
    _find((arguments, named), used)
    several = [x for x in (pattern, *(_text(x, "format") for x in used)) if isinstance(x, Texts)]
    if several:
        count = len(aligned("format", *several))
        result: Any = Texts([_filled(pattern, arguments, named, i) for i in range(count)])
    else:
        result = _filled(pattern, arguments, named, 0)
    return made("format", [template, *used], result)


class _Formatter(string.Formatter):
    """``str.format`` without attributes; ``used`` collects the texts filled in."""

    def __init__(self, place: int):
        self.place = place
        self.used: list[Text] = []

    def get_field(self, field_name, arguments, named):
        first, *keys = re.split(r"\[([^\]]*)\]", field_name)
        if "." in first or any(keys[1::2]):
            raise ArgumentTypeError(
                f"`format`: {{{field_name}}} is an attribute, which a template has no access to.",
                argument="template",
                hint="pass it by a name of its own, or in a dict: `{user[name]}`",
            )
        found = self.get_value(int(first) if first.isdigit() else first, arguments, named)
        for key in keys[0::2]:
            found = found[int(key) if key.isdigit() and not isinstance(found, Mapping) else key]
        if found is None:
            raise KeyError(field_name)
        return _fill_data(found, self.place, self.used), first


def _fill_data(value, place: int, used: list):
    """Return the data to fill in for a value: the text at ``place`` among several, or a variable's number."""
    data = data_of(value)
    if isinstance(data, Texts):
        data = data[place if len(data) > 1 else 0]
    if isinstance(data, str):
        text = data if isinstance(data, Text) else Text(data)
        used.append(text)
        return str(text)
    if isinstance(value, Variable):
        return value.item() if value.shape == () else value.data
    return value


def _filled(pattern, arguments, named, place: int) -> Text:
    template = pattern[place if len(pattern) > 1 else 0] if isinstance(pattern, Texts) else pattern
    formatter = _Formatter(place)
    try:
        filled = formatter.vformat(str(template), arguments, named)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        if isinstance(error, ArgumentTypeError):
            raise
        if isinstance(error, (KeyError, IndexError)):
            message = f"`format`: nothing is given for {error} of the template."
        else:
            message = f"`format`: {error}."
        raise ArgumentTypeError(message, argument="template") from error
    return Text(filled, roles_of(template, *formatter.used))


def _find(value, found: list) -> None:
    """Add the texts in nested arguments to ``found``."""
    if isinstance(value, (str, Texts)) or isinstance(value, Variable) and value.dtype is str:
        found.append(value)
    elif isinstance(value, Mapping):
        for part in value.values():
            _find(part, found)
    elif isinstance(value, (list, tuple)):
        for part in value:
            _find(part, found)


def _mapped(name: str, doc: str, *example: str) -> Callable:
    method = getattr(str, name)

    def operation(text, *arguments):
        given = [_text(x, name) if isinstance(x, (Variable, str)) else x for x in arguments]
        words = [x for x in given if isinstance(x, (Text, Texts))]
        value = _text(text, name)
        if isinstance(value, Texts) or any(isinstance(x, Texts) for x in words):
            rows = aligned(name, value, *words)
            result: Any = Texts([_applied(method, row[0], given, iter(row[1:])) for row in rows])
        else:
            result = _applied(method, value, given, iter(words))
        return made(name, [text, *arguments], result)

    operation.__name__ = operation.__qualname__ = name
    before, *rest = map(repr, example)
    operation.__doc__ = f"""{doc}, as ``str.{name}``; elementwise on several texts.

    Gradient:
        The feedback.

    Examples:
        >>> import gradops
        >>> from gradops import Variable
        >>> text = Variable({before}, role="answer", requires_grad=True)
        >>> changed = gradops.text.{name}({", ".join(("text", *rest))})
        >>> print(changed.data)
        {method(*example)}
        >>> changed.backward("too short")
        >>> print(text.grad)
        too short

    See Also:
        ``str.{name}``, :func:`format`, :func:`join`.
    """
    return operation


def _applied(method: Callable, text: Text, given: Sequence, words) -> Text:
    used = [next(words) if isinstance(x, (Text, Texts)) else x for x in given]
    texts = [x for x in used if isinstance(x, Text)]
    try:
        return Text(method(text, *used), roles_of(text, *texts))
    except TypeError as error:
        raise ArgumentTypeError(f"`{method.__name__}`: {error}.", argument="arguments") from error


strip = _mapped("strip", "Return a text without leading and trailing characters", " ice ")
lstrip = _mapped("lstrip", "Return a text without leading characters", " ice")
rstrip = _mapped("rstrip", "Return a text without trailing characters", "ice ")
lower = _mapped("lower", "Return a text in lower case", "Ice")
upper = _mapped("upper", "Return a text in upper case", "ice")
title = _mapped("title", "Return a text with each word capitalized", "ice floats")
capitalize = _mapped("capitalize", "Return a text with its first letter in upper case, the rest in lower", "ice")
replace = _mapped("replace", "Return a text with one part replaced by another", "ice sinks", "sinks", "floats")
removeprefix = _mapped("removeprefix", "Return a text without a prefix", "Answer: ice", "Answer: ")
removesuffix = _mapped("removesuffix", "Return a text without a suffix", "ice.", ".")


def made(name: str, inputs: Sequence, result) -> Any:
    """Return ``result`` (one text, several, or a list of texts) recorded as operation ``name`` of ``inputs``.

    The feedback on the result goes to all inputs; inputs that are not variables are ignored.
    """
    variables = [x for x in inputs if isinstance(x, Variable)]
    if not variables:
        return result
    edges = tuple(x._node or x if x.requires_grad and x.dtype is str else None for x in variables)
    if recording.get() and any(edge is not None for edge in edges):
        rule = Rule(name, vjp=_parts_to_all if isinstance(result, list) else _feedback_for_inputs)
        return record(rule, edges, (), result)
    return [wrap(part) for part in result] if isinstance(result, list) else wrap(result)


def made_by_host(name: str, inputs: Sequence, result) -> Any:
    """Return :func:`made` of strings that another language computed, with the roles of the inputs."""
    texts = [_text(x, name) for x in inputs if isinstance(x, str) or isinstance(x, Variable) and x.dtype is str]
    value = convert(result)
    if isinstance(value, Text):
        return made(name, inputs, Text(value, roles_of(*texts)))
    rows = [x for x in texts if isinstance(x, Text) or len(x) == len(value)]
    others = [x for x in texts if not any(x is row for row in rows)]
    found = [roles_of(*others, *(x[i] if isinstance(x, Texts) else x for x in rows)) for i in range(len(value))]
    return made(name, inputs, Texts([Text(text, roles) for text, roles in zip(value, found)]))


def _feedback_for_inputs(g, saved, node) -> list:
    """Return the feedback for each input; remarks keep their positions if the input is as many texts as the result."""
    said = feedback(g)
    return [None if edge is None else said if edge.shape == node.shape else said.whole() for edge in node.edges]


def _parts_to_all(g, saved, node) -> list:
    return [sum((feedback(part) for part in g), Feedback())] * len(node.edges)


def _text(value, name: str) -> Text | Texts:
    data = data_of(value)
    if isinstance(data, (Text, Texts)):
        return data
    if isinstance(data, str):
        return Text(data)
    got = "numbers" if isinstance(value, Variable) else "{value}"
    raise ArgumentTypeError(
        f"`{name}` takes texts; got {got}.",
        argument="text",
        hint="{format} fills numbers in",
        value=TypeOf(value),
        format=_FORMAT,
    )


def _single(value, name: str) -> Text:
    text = _text(value, name)
    if isinstance(text, Texts):
        raise ArgumentTypeError(
            f"`{name}` takes one text; got {len(text)}.",
            argument="text",
            hint="take them one by one: {each}",
            each=_EACH,
        )
    return text


_FORMAT = Code("`gradops.text.format`", "`text_format()`")
_EACH = Code("`for text in texts`", "`lapply(texts, ...)`")


def is_text(x) -> bool:
    """True if ``x`` is one text or several, as a variable or not; False for a list of texts."""
    return isinstance(x, (str, Texts)) or isinstance(x, Variable) and x.dtype is str


def is_one_text(x) -> bool:
    return is_text(x) and value_of(x).shape == ()


def is_list_of_texts(x) -> bool:
    return isinstance(x, (list, tuple)) and len(x) > 0 and all(map(is_one_text, x))


def several(texts) -> Variable | Texts:
    """Return a list of texts as several texts, recorded if one of them is a variable."""
    return stack(list(texts)) if any(isinstance(text, Variable) for text in texts) else Texts(texts)


def value_of(x):
    """Return a variable's data, a string as a ``Text``, and any other value unchanged."""
    value = data_of(x)
    return convert(value) if isinstance(value, str) else value
