"""Text on the tape: strings whose gradient is feedback, in words.

A text variable is ``Variable("abc", role="greeting", requires_grad=True)``. ``+``, :func:`join`,
:func:`split`, :func:`format` and the like are recorded as operations on numbers are, and
``result.backward("too long")`` brings what was said to every leaf it was made from. ``Function`` and
``custom_gradient`` define further operations, so a language model, or any callable, can make a text and
write the feedback on its inputs. Text and numbers may stand in one graph. After afnio's autodiff, in
this process: nothing here calls anything.

To ``gradops.ops`` text is one more backend, "text", with kernels under the ops' own names:

- :class:`Text` and :class:`Texts` (several, elementwise) are the arrays; a text knows the roles it is made of;
- :class:`Feedback` is the gradient: all that was said, each a :class:`Said`, which knows of which role. Adding
  two is having both, and the shape operations leave it as it is, so that the rules of ops serve text too.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from .. import backends
from ..errors import ArgumentTypeError, BackendError, GradientError, ShapeError
from .graph import Rule
from .modes import recording
from .record import record
from .variable import Variable, wrap


class Text(str):
    """A string that knows the roles of the texts it was made from."""

    shape = ()
    dtype = str
    roles: tuple[str, ...] = ()

    def __new__(cls, value: str = "", roles: tuple[str, ...] = ()):
        self = super().__new__(cls, value)
        if roles:
            self.roles = roles
        return self

    @property
    def role(self) -> str | None:
        """The roles as words: ``"a"``, ``"a and b"``, ``"a, b and c"``."""
        *first, last = self.roles or (None,)
        return f"{', '.join(first)} and {last}" if first else last

    def with_role(self, role: str | None) -> Text:
        """The same text in another role."""
        return type(self)(str(self), () if role is None else (role,))

    def __add__(self, other):
        return _add(self, convert(other))


class Said(Text):
    """One thing that was said; ``role`` is that of the text it was said of."""


class Texts(Sequence):
    """Several texts; operations go elementwise. Equal to a list of the same strings."""

    dtype = str

    def __init__(self, values: Iterable[str] = ()):
        self._items = tuple(v if isinstance(v, Text) else Text(v) for v in values)

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, key):
        part = self._items[key]
        return part if isinstance(part, Text) else type(self)(part)

    def __eq__(self, other) -> bool:
        return list(self) == list(other) if isinstance(other, (Texts, list, tuple)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._items)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(map(str, self))})"

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)

    @property
    def roles(self) -> tuple[str, ...]:
        return _roles(*self)

    role = Text.role

    def with_role(self, role: str | None) -> Texts:
        return type(self)([text.with_role(role) for text in self])

    def __str__(self) -> str:
        return "\n".join(self)


class Feedback(Texts):
    """All that was said of a text: its gradient. What comes back by two paths was said once."""

    shape = ()  # type: ignore[assignment]

    def __add__(self, other):
        known = set(map(id, self))
        return Feedback((*self, *(said for said in other if id(said) not in known)))

    def __repr__(self) -> str:
        return f"Feedback({[(str(said), said.role) for said in self]})"


def feedback(value, role: str | None = None) -> Feedback:
    """What was said, as a gradient: from a string, a text variable, a feedback, or a list of these.

    Args:
        role: the role of the text it is said of, for what does not say so itself.

    Raises:
        ArgumentTypeError: anything else.
    """
    if isinstance(value, Variable):
        value = value.data
    if isinstance(value, Feedback):
        return value
    if isinstance(value, Said):
        return Feedback((value,))
    if isinstance(value, str):
        return Feedback((Said(value, () if role is None else (role,)),))
    if isinstance(value, (list, tuple, Texts)):
        return sum((feedback(v, role) for v in value), Feedback())
    raise ArgumentTypeError(f"feedback on a text must be text; got {type(value).__name__}.", argument="gradient")


def first_feedback(root: Variable, value) -> Feedback:
    """The feedback that a backward pass starts from.

    Raises:
        GradientError: none given.
    """
    if value is None:
        raise GradientError(
            "a text has no gradient to start from.",
            argument="gradient",
            hint='say what to feed back: `text.backward("shorter, please")`',
        )
    return feedback(value, root.role)


def merge(leaf: Variable, value) -> Variable:
    """``leaf.grad`` with more feedback appended."""
    said = feedback(value, leaf.role)
    if leaf._grad is not None:
        said = leaf._grad.data + said
    grad = wrap(said)
    grad._role = f"feedback on {leaf.role}" if leaf.role else "feedback"
    return grad


# Operations.


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
    result = Text(between.join(values), _roles(*values, between))
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
    return _recorded("format", [template, *texts], Text(filled, _roles(pattern, *map(_text, texts))))


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
        rule = Rule(name, whole=_to_all if not isinstance(result, list) else _parts_to_all)
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


def _roles(*texts) -> tuple[str, ...]:
    return tuple(dict.fromkeys(role for text in texts for role in text.roles))


# The backend.


def convert(value, dtype=None, like=None):
    """A text of a string, texts of a list of strings; numbers become NumPy arrays."""
    if isinstance(value, (Text, Texts)):
        return value
    if isinstance(value, str):
        return Text(value)
    if isinstance(value, (list, tuple)) and all(isinstance(v, str) for v in value):
        return Texts(value)
    return backends.by_name("numpy").convert(value, dtype)


def _prepare(floatx: str) -> None:
    raise BackendError('"text" cannot be the default backend.', argument="name")


def _add(x1, x2):
    if isinstance(x1, Feedback) or isinstance(x2, Feedback):
        return feedback(x1) + feedback(x2)
    for x in (x1, x2):
        if not isinstance(x, (Text, Texts)):
            raise ArgumentTypeError(f"`add`: text joins with text only; got {type(x).__name__}.")
    if isinstance(x1, Texts) or isinstance(x2, Texts):
        count = len(x1 if isinstance(x1, Texts) else x2)
        first = x1 if isinstance(x1, Texts) else [x1] * count
        second = x2 if isinstance(x2, Texts) else [x2] * count
        if len(first) != len(second):
            raise ShapeError(f"`add`: texts go elementwise; got {len(first)} and {len(second)}.", argument="x2")
        return Texts([_add(a, b) for a, b in zip(first, second)])
    return Text(str(x1) + str(x2), _roles(x1, x2))


def _sum(x, axis=None, keepdims=False):
    return Text("".join(x), x.roles) if isinstance(x, Texts) else x


def _concatenate(xs, axis=0):
    if any(isinstance(x, Feedback) for x in xs):
        return sum(map(feedback, xs), Feedback())
    return Texts([t for x in xs for t in (x if isinstance(x, Texts) else (x,))])


def _split(x, indices_or_sections, axis=0):
    if isinstance(x, Feedback):
        several = indices_or_sections
        return [x] * (several if isinstance(several, int) else len(several) + 1)
    raise BackendError("`split`: use `gradops.autodiff.text.split` for text.")


def _get_item(x, key):
    if isinstance(key, tuple) and len(key) == 1:
        (key,) = key
    if not isinstance(key, (int, slice)):
        places = np.asarray(key)
        if places.ndim and isinstance(x, Texts):
            return type(x)([x[i] for i in np.arange(len(x))[places].tolist()])
        key = places.item()
    return x[key] if isinstance(x, Texts) else Text(str(x)[key], x.roles)


def _compared(compare: Callable) -> Callable:
    def kernel(x1, x2):
        if isinstance(x1, Texts) or isinstance(x2, Texts):
            count = len(x1 if isinstance(x1, Texts) else x2)
            pairs = zip(*(x if isinstance(x, Texts) else [x] * count for x in (x1, x2)))
            return np.array([compare(str(a), str(b)) for a, b in pairs])
        return np.bool_(compare(str(x1), str(x2)))

    return kernel


def _same(x, *_, **__):
    return x


def _nothing(*_, **__):
    return Feedback()


_module: Any = SimpleNamespace(
    is_tensor_type=lambda kind: issubclass(kind, (Text, Texts)),
    convert=convert,
    dtype_name=lambda x: "str",
    to_numpy=lambda x: np.array(str(x) if isinstance(x, Text) else list(map(str, x))),
    prepare=_prepare,
    add=_add,
    sum=_sum,
    concatenate=_concatenate,
    stack=lambda xs, axis=0: Texts(xs),
    split=_split,
    get_item=_get_item,
    add_at=lambda x, key, updates: feedback(x) + feedback(updates),
    zeros=_nothing,
    zeros_like=_nothing,
    equal=_compared(lambda a, b: a == b),
    not_equal=_compared(lambda a, b: a != b),
    less=_compared(lambda a, b: a < b),
    greater=_compared(lambda a, b: a > b),
    **dict.fromkeys(("copy", "reshape", "broadcast_to", "expand_dims", "squeeze", "transpose", "array"), _same),
)
backends.register("text", _module, root=__name__)
