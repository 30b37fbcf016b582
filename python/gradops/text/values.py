"""The arrays of the text backend, and their gradient, feedback."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

from .. import _display, backends
from ..autodiff.state import clock, moment
from ..autodiff.variable import Variable
from ..errors import ArgumentTypeError, Code, ShapeError, TypeOf
from .files import File


class Text(str):
    """A string with the roles of the texts that it was made from.

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
    calls: Sequence[Any] = ()  # of tools, for an answer: see `text.tool_calls`

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
        """The roles in words: ``"a"``, ``"a and b"``, ``"a, b and c"``."""
        *first, last = self.roles or (None,)
        return f"{', '.join(first)} and {last}" if first else last

    def with_role(self, role: str | None) -> Text:
        """Return this text with ``role`` as its only role."""
        return type(self)(str(self), () if role is None else (role,))

    def in_role_of(self, other: Text | Texts) -> Text:
        """Return this text with the roles of ``other``."""
        return Text(str(self), other.roles)

    def __add__(self, other):
        return add(self, convert(other))


class Verdict(Text):
    """A text in which an evaluator judges its inputs; ``backward()`` without arguments starts from its words."""


class Said(Text):
    """One remark.

    Attributes:
        role: the role of the text that the remark is on.
        places: the positions of the texts that the remark is on, among several; None for all texts, or a single one.
        weight: how much the remark matters: the magnitude of the upstream gradient of the critic's number.
        order: when the remark was made; remarks are listed in this order.
        source: the identity of the remark, which is the same on every path through the graph.
        files: images and documents that belong to the remark, tuple of :class:`File`; those who read the remark get
            them too.

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
    files: tuple[File, ...] = ()

    def __new__(
        cls,
        value: str = "",
        roles: tuple[str, ...] = (),
        order: int | None = None,
        weight: float = 1.0,
        files: Iterable[File] = (),
    ):
        if not isinstance(weight, (int, float)):
            raise ArgumentTypeError(
                "`weight` must be a number; got {weight}.", argument="weight", weight=TypeOf(weight)
            )
        self = super().__new__(cls, value, roles)
        self.order = (moment.get() or clock()) if order is None else order
        self.source = object()
        if weight != 1.0:
            self.weight = weight
        if given := _files(files):
            self.files = given
        return self

    def with_files(self, files: Iterable[File]) -> Said:
        """Return the same remark with more files."""
        said = _again(str(self), self.__dict__)
        said.files = (*self.files, *_files(files))
        return said

    def at(self, places: tuple[int, ...] | None) -> Said:
        """Return the same remark on the texts at positions ``places``."""
        if places == self.places:
            return self
        said = _again(str(self), self.__dict__)
        said.places = places
        return said

    def __reduce__(self):
        return _again, (str(self), {k: v for k, v in self.__dict__.items() if k != "source"})


def _files(files) -> tuple[File, ...]:
    if not isinstance(files, (list, tuple)) or not all(isinstance(file, File) for file in files):
        raise ArgumentTypeError("`files` must be a list of files; got {x}.", argument="files", x=TypeOf(files))
    return tuple(files)


def _again(value: str, attributes: dict) -> Said:
    said = Said(value)
    said.__dict__.update(attributes)
    return said


class Texts(Sequence):
    """Several texts, on which operations are elementwise; equal to a list of the same strings.

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
        """Return these texts with the roles of ``other``: elementwise if it is as many texts, else all of its roles."""
        roles = list(other) if isinstance(other, Texts) and len(other) == len(self) else [other] * len(self)
        return Texts([text.in_role_of(old) for text, old in zip(self, roles)])

    def __str__(self) -> str:
        return "\n".join(self)


class Feedback(Texts):
    """The gradient of a text: all remarks on it, in order.

    The sum of two feedbacks has the remarks of both. A remark that arrives on two paths of one pass counts once, with
    the positions of both.

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
    """The number of texts that empty feedback is for; None for a single text."""

    @property
    def shape(self) -> tuple:
        """``()`` unless a remark is on some of several texts."""
        return () if all(said.places is None for said in self) else (len(self),)

    def __add__(self, other):
        return both(self, other)

    def of(self, place: int) -> Feedback:
        """Return the feedback on the text at position ``place``."""
        return Feedback(said.at(None) for said in self if said.places is None or place in said.places)

    def at(self, where: Callable[[tuple[int, ...] | None], tuple[int, ...] | None]) -> Feedback:
        """Return the remarks with their positions mapped by ``where``; a remark mapped to an empty tuple is dropped."""
        moved = [(said, where(said.places)) for said in self]
        return Feedback(said.at(places) for said, places in moved if places is None or places)

    def whole(self) -> Feedback:
        """Return the remarks without positions, as feedback on a single text."""
        return self if all(said.places is None for said in self) else self.at(lambda places: None)

    def _repr_html_(self) -> str:
        rows = [[str(said), said.role or "", _positions_text(said.places), f"{said.weight:.4g}"] for said in self]
        head = ["remark", "on", "places", "weight"]
        return _display.block("Feedback", f"{len(self)} in all", _display.rows_of(rows, head, (0, 1, 2)))

    def __repr__(self) -> str:
        return f"Feedback({[(str(said), said.role) for said in self]})"


def _positions_text(places: tuple[int, ...] | None) -> str:
    return "all" if places is None else ", ".join(map(str, places))


def both(first, second) -> Feedback:
    """Return the remarks of two feedbacks, each remark once."""
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
    """Return feedback made of a string, a text variable, a feedback, or a list of these.

    A :class:`File` in a list belongs to the remark before it.

    Args:
        role: the role of the text that the remarks are on, for remarks without a role.
        order: when the remarks were made; now by default.

    Raises:
        ArgumentTypeError: a value of another type.

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
        remarks: list = []
        for item in value:
            if isinstance(item, File) and remarks:
                remarks[-1] = remarks[-1].with_files([item])
            else:
                remarks.extend(feedback(item, role, order))
        return Feedback(remarks)
    if isinstance(value, File):
        raise ArgumentTypeError(
            "a file goes after the remark that it belongs to.",
            argument="gradient",
            hint='give both in a list: `["it should look like this", file]`',
        )
    raise ArgumentTypeError("feedback on a text must be text; got {value}.", argument="gradient", value=TypeOf(value))


def convert(value, dtype=None, like=None):
    """Return a string as a ``Text``, a list of strings as ``Texts``, and numbers as a NumPy array."""
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
    """Return rows of corresponding texts; a single text is repeated to the length of the others.

    Raises:
        ShapeError: the numbers of texts differ and none of them is 1.
    """
    counts = {len(x) for x in texts if isinstance(x, (Texts, list))} - {1} or {1}
    if len(counts) > 1:
        got = " and ".join(str(len(x)) for x in texts if isinstance(x, (Texts, list)))
        raise ShapeError(f"`{name}`: texts go elementwise; got {got}.", argument="x2")
    (count,) = counts
    columns = [list(x) * (count if len(x) == 1 else 1) if isinstance(x, (Texts, list)) else [x] * count for x in texts]
    return list(zip(*columns))
