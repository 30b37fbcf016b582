"""The errors that gradops raises. Each names the argument, the expected value and the given one.

A message is a template whose fields (:class:`Field`) are worded for Python, or by R in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ._names import ARGUMENTS, closest, namespace

__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "AxisError",
    "BackendError",
    "BudgetError",
    "GradientError",
    "GradopsError",
    "InferenceError",
    "JitError",
    "MismatchError",
    "MismatchWarning",
    "MixedBackendsError",
    "ModelError",
    "PartialGradientError",
    "RError",
    "ShapeError",
    "ShardError",
    "ThreadError",
]


class Field:
    """A part of a message that a host language words in its own way; ``str()`` is Python's wording."""


class Position(Field):
    """A dimension, argument or other position, counted from 0, or from the end with -1; or a structure of them."""

    def __init__(self, place):
        self.place = place

    def __str__(self) -> str:
        return str(self.place)


class Element(Field):
    """An element of a tensor, by its position in each dimension; ``part`` is its real or imaginary part."""

    def __init__(self, places: tuple[int, ...], part: str = ""):
        self.places, self.part = places, part

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.places))}]{self.part}"


class Bounds(Field):
    """The valid positions of a dimension of ``size``, from ``low`` if they may count from the end."""

    def __init__(self, size: int, low: int):
        self.size, self.low = size, low

    def __str__(self) -> str:
        return f"between {self.low} and {self.size - 1}"


class Item(Field):
    """One of the values of an argument that is a list."""

    def __init__(self, argument: str, place: int):
        self.argument, self.place = argument, place

    def __str__(self) -> str:
        return f"`{self.argument}[{self.place}]`"


class TypeOf(Field):
    """The type of a value."""

    def __init__(self, value):
        self.type = type(value)

    def __str__(self) -> str:
        return self.type.__name__


class Given(Field):
    """A given value: its ``text`` in Python, and the value itself if it is a plain one."""

    def __init__(self, text: str, value=...):
        self.text = text
        self.type = type(value)
        self.value = value if isinstance(value, (bool, int, float, str)) else None

    def __str__(self) -> str:
        return self.text


class Code(Field):
    """Code that shows what to do, in Python and in R."""

    def __init__(self, python: str, r: str):
        self.python, self.r = python, r

    def __str__(self) -> str:
        return self.python


def meant(given, options: Iterable) -> str | None:
    """The hint for a string that is not among the ``options``: the closest option, if one is close."""
    found = closest(given, [one for one in options if isinstance(one, str)]) if isinstance(given, str) else None
    return None if found is None else f'did you mean "{found}"?'


VARIABLE = Code("`x = gradops.Variable(x, requires_grad=True)`", "`x <- variable(x, requires_grad = TRUE)`")
GRAD = Code("`gradops.grad(f)`", "`gradient(f, x)`")
LITERALS = {"None": Code("None", "NULL"), "True": Code("True", "TRUE"), "False": Code("False", "FALSE")}
"""Fields that every message has, such as ``{None}``."""


class GradopsError(Exception):
    """Base of every error that gradops raises on purpose.

    ``kind`` is the short name of R's condition class ``gradops_error_<kind>``. ``{name}`` in the
    message and in the hint stands for the field of that name, or of :data:`LITERALS`; braces around other words are
    left unchanged. Code is in backticks.
    """

    kind = "error"

    def __init__(self, message: str, *, argument: str | None = None, hint: str | None = None, **fields: Field):
        self.template = message
        self.argument = argument
        self.hint_template = hint
        self.fields = fields
        hint = self.hint
        self.args = (self.message if hint is None else f"{self.message}\nHint: {hint}",)

    @property
    def message(self) -> str:
        return self.worded(self.template, str)

    @property
    def hint(self) -> str | None:
        return None if self.hint_template is None else self.worded(self.hint_template, str)

    def worded(self, template: str, word: Callable[[Field], str]) -> str:
        """``template`` with the fields replaced by ``word(field)``."""
        first, *rest = template.split("{")  # uses only what Dynamo can trace, so that it can show the message
        words = [first]
        for part in rest:
            inside, closed, after = part.partition("}")
            name, _, form = inside.partition(":")
            named = self.fields.get(name) or LITERALS.get(name) if closed else None
            words.append("{" + part if named is None else format(word(named), form) + after)
        return "".join(words)


class ArgumentError(GradopsError, ValueError):
    """An argument has the wrong value, shape, axis or number of elements."""

    kind = "argument"


class ArgumentTypeError(GradopsError, TypeError):
    """An argument has the wrong type or dtype."""

    kind = "type"


def unknown_argument(function: str, name: str, own: Iterable[str], hint: str | None = None) -> ArgumentTypeError:
    """Return the error for a keyword that a function does not take; without ``hint`` it suggests the one meant."""
    own = list(own)
    meant = next((one for one in (ARGUMENTS.get(name), closest(name, own)) if one in own), None)
    return ArgumentTypeError(
        f"`{function}` has the arguments {', '.join(f'`{one}`' for one in own)}, and none that is called `{name}`.",
        argument=name,
        hint=hint or meant and f"write `{meant}=`",
    )


class ShapeError(ArgumentError):
    """Shapes that do not match."""

    kind = "shape"


class AxisError(ArgumentError, IndexError):
    """An axis or index is out of range; ``position`` is the axis or index, counted from 0, if known."""

    kind = "axis"

    @property
    def position(self) -> int | None:
        found = self.fields.get("position")
        return found.place if isinstance(found, Position) else None


class BackendError(GradopsError, RuntimeError):
    """A backend is unknown or not installed, or cannot do something."""

    kind = "backend"


class MixedBackendsError(BackendError, TypeError):
    """Tensors of two array libraries in one op."""

    kind = "mixed_backends"


class GradientError(GradopsError, RuntimeError):
    """A gradient that cannot be computed, or a gradient function that broke its contract."""

    kind = "gradient"


class PartialGradientError(GradientError):
    """Only a part of the requested gradient is known; the R package then computes that result in another way."""

    kind = "partial_gradient"


class JitError(GradopsError, RuntimeError):
    """A function cannot be compiled because its control flow depends on values."""

    kind = "jit"


class MismatchError(GradopsError, RuntimeError):
    """A compiled program returned another result than NumPy while ``config.check()`` is ``"error"``.

    It is not a JitError, which code catches to run a function uncompiled: that must not hide a mismatch.
    """

    kind = "mismatch"


class MismatchWarning(RuntimeWarning):
    """A compiled program returned another result than NumPy; it runs without native code from now on."""


class InferenceError(GradopsError, RuntimeError):
    """A likelihood is not a number, random effects have no mode, or a parameter is not identified."""

    kind = "inference"


class ShardError(GradopsError, RuntimeError):
    """An objective failed on a shard of its data; the message names the shard."""

    kind = "shard"


class ThreadError(GradopsError, RuntimeError):
    """An R function was called from a thread that cannot reach R's thread."""

    kind = "thread"


class ModelError(GradopsError, RuntimeError):
    """A language model failed, returned nothing, or was not recorded."""

    kind = "model"


class BudgetError(ModelError):
    """A call of a language model would exceed its budget; it was not made."""

    kind = "budget"


class RError(GradopsError):
    """An error in an R function: R's message, the call it is from, and the classes of its condition."""

    kind = "r"

    def __init__(self, message: str, *, call: str = "", classes: tuple[str, ...] = ()):
        super().__init__(f"{message} (in R, {call})" if call else f"{message} (in R)")
        self.r_message = message
        self.r_call = call
        self.r_class = classes


__dir__, __getattr__ = namespace(__name__)
