"""The arrays of text, and feedback, which is its gradient."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ... import backends
from ...errors import ArgumentTypeError, ShapeError
from ..variable import Variable


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
        return add(self, convert(other))


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
        return roles_of(*self)

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


def convert(value, dtype=None, like=None):
    """A text of a string, texts of a list of strings; numbers become NumPy arrays."""
    if isinstance(value, (Text, Texts)):
        return value
    if isinstance(value, str):
        return Text(value)
    if isinstance(value, (list, tuple)) and all(isinstance(v, str) for v in value):
        return Texts(value)
    return backends.by_name("numpy").convert(value, dtype)


def add(x1, x2):
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
        return Texts([add(a, b) for a, b in zip(first, second)])
    return Text(str(x1) + str(x2), roles_of(x1, x2))


def roles_of(*texts) -> tuple[str, ...]:
    return tuple(dict.fromkeys(role for text in texts for role in text.roles))
