"""The arrays of text, and feedback, which is its gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

from .. import _display, backends
from ..autodiff.state import clock, moment
from ..autodiff.variable import Variable
from ..errors import ArgumentTypeError, Code, ShapeError, TypeOf


class Text(str):
    """A string that knows the roles of the texts it was made from.

    Examples:
        >>> from gradops import Variable
        >>> answer = Variable("Ice floats.", role="answer", requires_grad=True) + Variable(" Why?", role="question")
        >>> print(answer.data, sorted(answer.data.roles))
        Ice floats. Why? ['answer', 'question']
        >>> answer.backward("too short")

    See Also:
        :class:`Texts`, :class:`gradops.Variable`, :class:`Feedback`.
    """

    shape = ()
    dtype = str
    roles: tuple[str, ...] = ()

    def __new__(cls, value: str = "", roles: tuple[str, ...] = ()):
        if not isinstance(roles, tuple):
            raise ArgumentTypeError(
                "`roles` must be a tuple of texts; got {roles}.", argument="roles", roles=TypeOf(roles)
            )
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

    def in_role_of(self, other: Text | Texts) -> Text:
        """The same text in the role of another."""
        return Text(str(self), other.roles)

    def __add__(self, other):
        return add(self, convert(other))


class Verdict(Text):
    """The text in which an evaluator judges its inputs: a backward pass starts with it by itself."""


class Said(Text):
    """One remark.

    Attributes:
        role: that of the text it is on.
        places: which of several texts it is of; None for all of them, or for one text.
        weight: how much it matters: the size of the number that a critic's remark came with.
        order: when it was said; remarks are listed in this order.
        source: the identity of the remark: the same by whichever paths it comes.

    Examples:
        >>> from gradops import Variable
        >>> answer = Variable("Ice floats.", role="answer", requires_grad=True)
        >>> (answer + " Why?").backward("too short")
        >>> said = answer.grad.data[0]
        >>> print(said, "/", said.role)
        too short / answer

    See Also:
        :class:`Feedback`.
    """

    places: tuple[int, ...] | None = None
    weight: float = 1.0
    order: int
    source: object

    def __new__(cls, value: str = "", roles: tuple[str, ...] = (), order: int | None = None, weight: float = 1.0):
        if not isinstance(weight, (int, float)):
            raise ArgumentTypeError(
                "`weight` must be a number; got {weight}.", argument="weight", weight=TypeOf(weight)
            )
        self = super().__new__(cls, value, roles)
        self.order = (moment.get() or clock()) if order is None else order
        self.source = object()
        if weight != 1.0:
            self.weight = weight
        return self

    def at(self, places: tuple[int, ...] | None) -> Said:
        """The same remark, on other places among several texts."""
        if places == self.places:
            return self
        said = _again(str(self), self.__dict__)
        said.places = places
        return said

    def __reduce__(self):
        return _again, (str(self), {k: v for k, v in self.__dict__.items() if k != "source"})


def _again(value: str, attributes: dict) -> Said:
    said = Said(value)
    said.__dict__.update(attributes)
    return said


class Texts(Sequence):
    """Several texts; operations go elementwise. Equal to a list of the same strings.

    Examples:
        >>> from gradops import Variable
        >>> answers = Variable(["Ice floats.", "It is cold."], role="answer", requires_grad=True)
        >>> (answers + " Why?").backward("too short")
        >>> print(answers.grad)
        too short

    See Also:
        :class:`Text`, :class:`Feedback`.
    """

    dtype = str

    def __init__(self, values: Iterable[str] = ()):
        if not isinstance(values, Iterable) or getattr(values, "shape", None) == ():
            raise ArgumentTypeError(
                "`values` must be a list of texts; got {values}.", argument="values", values=TypeOf(values)
            )
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

    def _repr_html_(self) -> str:
        rows = [[str(text), text.role or ""] for text in self]
        return _display.block(
            type(self).__name__, f"{len(self)} in all", _display.rows_of(rows, ["text", "role"], (0, 1))
        )

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)

    @property
    def roles(self) -> tuple[str, ...]:
        return roles_of(*self)

    role = Text.role

    def with_role(self, role: str | None) -> Texts:
        return type(self)([text.with_role(role) for text in self])

    def in_role_of(self, other: Text | Texts) -> Texts:
        """The same texts in the roles of others: each of its place's, where they are as many."""
        roles = list(other) if isinstance(other, Texts) and len(other) == len(self) else [other] * len(self)
        return Texts([text.in_role_of(old) for text, old in zip(self, roles)])

    def __str__(self) -> str:
        return "\n".join(self)


class Feedback(Texts):
    """All remarks on a text: its gradient, in order.

    The sum of two of one pass has the remarks of both; one that comes by two paths counts once, with both their places.

    Examples:
        >>> from gradops import Variable
        >>> answer = Variable("Ice floats.", role="answer", requires_grad=True)
        >>> (answer + " Why?").backward("too short")
        >>> (answer + " How?").backward("no source")
        >>> [str(said) for said in answer.grad.data]
        ['too short', 'no source']

    See Also:
        :class:`Said`, :func:`feedback`.
    """

    size: int | None = None
    """The number of texts, in the zeros of several."""

    @property
    def shape(self) -> tuple:
        """The shape of one text, unless a remark is on some of several texts."""
        return () if all(said.places is None for said in self) else (len(self),)

    def __add__(self, other):
        return both(self, other)

    def of(self, place: int) -> Feedback:
        """The feedback that concerns one of several texts."""
        return Feedback(said.at(None) for said in self if said.places is None or place in said.places)

    def at(self, where: Callable[[tuple[int, ...] | None], tuple[int, ...] | None]) -> Feedback:
        """The remarks with other places, without those that then have none (an empty tuple)."""
        moved = [(said, where(said.places)) for said in self]
        return Feedback(said.at(places) for said, places in moved if places is None or places)

    def whole(self) -> Feedback:
        """The remarks as of one text."""
        return self if all(said.places is None for said in self) else self.at(lambda places: None)

    def _repr_html_(self) -> str:
        rows = [[str(said), said.role or "", _of(said.places), f"{said.weight:.4g}"] for said in self]
        head = ["remark", "on", "places", "weight"]
        return _display.block("Feedback", f"{len(self)} in all", _display.rows_of(rows, head, (0, 1, 2)))

    def __repr__(self) -> str:
        return f"Feedback({[(str(said), said.role) for said in self]})"


def _of(places: tuple[int, ...] | None) -> str:
    return "all" if places is None else ", ".join(map(str, places))


def both(first, second) -> Feedback:
    """The remarks of two feedbacks, each remark once."""
    if not len(first) or not len(second):
        return first if len(first) else second
    found: dict[int, Any] = {}
    for feedback in (first, second):
        for said in feedback:
            known = found.get(id(said.source))
            if known is not None and known.places != said.places:
                together = None not in (known.places, said.places)
                said = said.at(tuple(sorted({*known.places, *said.places})) if together else None)
            found[id(said.source)] = said
    return Feedback(sorted(found.values(), key=attrgetter("order")))


def feedback(value, role: str | None = None, order: int | None = None) -> Feedback:
    """Remarks as a gradient: from a string, a text variable, a feedback, or a list of these.

    Args:
        role: the role of the text that is remarked on, for remarks that do not name it themselves.
        order: the time of the remarks; now by default.

    Raises:
        ArgumentTypeError: anything else.

    Examples:
        >>> import gradops
        >>> from gradops import Variable
        >>> answer = Variable("Ice floats.", role="answer", requires_grad=True)
        >>> (answer + " Why?").backward(gradops.text.feedback(["too short", "no source"]))
        >>> print(answer.grad)
        too short
        no source

    See Also:
        :class:`Feedback`, ``Variable.backward``.
    """
    if isinstance(value, Variable):
        value = value.data
    if isinstance(value, Feedback):
        return value
    if isinstance(value, Said):
        return Feedback((value,))
    if isinstance(value, str):
        return Feedback((Said(str(value), () if role is None else (role,), order),))
    if isinstance(value, (list, tuple, Texts)):
        return Feedback(said for v in value for said in feedback(v, role, order))
    raise ArgumentTypeError("feedback on a text must be text; got {value}.", argument="gradient", value=TypeOf(value))


def convert(value, dtype=None, like=None):
    """A text of a string, texts of a list of strings; numbers become NumPy arrays."""
    if isinstance(value, (Text, Texts)):
        return value
    if isinstance(value, str):
        return Text(value)
    if isinstance(value, (list, tuple)) and all(isinstance(v, str) for v in value):
        return Texts(value)
    return backends.embedded().convert(value, dtype)


def add(x1, x2):
    if isinstance(x1, Feedback) or isinstance(x2, Feedback):
        return feedback(x1) + feedback(x2)
    for x in (x1, x2):
        if not isinstance(x, (Text, Texts)):
            raise ArgumentTypeError(
                "`add`: text joins with text only; got {x}.",
                hint="fill numbers in with {call}",
                x=TypeOf(x),
                call=Code('`text.format("{} grams", x)`', '`paste(x, "grams")`'),
            )
    if isinstance(x1, Texts) or isinstance(x2, Texts):
        return Texts([add(a, b) for a, b in aligned("add", x1, x2)])
    return Text(str(x1) + str(x2), roles_of(x1, x2))


def roles_of(*texts) -> tuple[str, ...]:
    return tuple(dict.fromkeys(role for text in texts for role in text.roles))


def aligned(name: str, *texts) -> list[tuple[Text, ...]]:
    """Texts element by element; single ones, and several of length one, beside each of the others.

    Raises:
        ShapeError: different numbers of texts.
    """
    counts = {len(x) for x in texts if isinstance(x, Texts)} - {1} or {1}
    if len(counts) > 1:
        got = " and ".join(str(len(x)) for x in texts if isinstance(x, Texts))
        raise ShapeError(f"`{name}`: texts go elementwise; got {got}.", argument="x2")
    (count,) = counts
    columns = [list(x) * (count if len(x) == 1 else 1) if isinstance(x, Texts) else [x] * count for x in texts]
    return list(zip(*columns))
