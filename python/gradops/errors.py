"""The errors gradops raises. Each names the argument, the expected value and the one that came."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ._names import closest, namespace

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
    """A dimension, an argument or another place, counted from 0, or from the end with -1; or a structure of them."""

    def __init__(self, place):
        self.place = place

    def __str__(self) -> str:
        return str(self.place)


class Element(Field):
    """An element of a tensor, by its place in each dimension; ``part`` is the real or imaginary one."""

    def __init__(self, places: tuple[int, ...], part: str = ""):
        self.places, self.part = places, part

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.places))}]{self.part}"


class Bounds(Field):
    """The positions that a dimension of ``size`` has, those counted from the end from ``low`` on."""

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
    """A value that came: its ``text`` in Python, and the value itself where it is a plain one."""

    def __init__(self, text: str, value=...):
        self.text = text
        self.type = type(value)
        self.value = value if isinstance(value, (bool, int, float, str)) else None

    def __str__(self) -> str:
        return self.text


class Code(Field):
    """A piece of code that says what to do, in Python and in R."""

    def __init__(self, python: str, r: str):
        self.python, self.r = python, r

    def __str__(self) -> str:
        return self.python


def meant(given, options: Iterable) -> str | None:
    """The hint for a text that is not among the ``options``: the closest one, if one is close."""
    found = closest(given, [one for one in options if isinstance(one, str)]) if isinstance(given, str) else None
    return None if found is None else f'did you mean "{found}"?'


VARIABLE = Code("`x = gradops.Variable(x, requires_grad=True)`", "`x <- variable(x, requires_grad = TRUE)`")
GRAD = Code("`gradops.grad(f)`", "`gradient(f, x)`")
LITERALS = {"None": Code("None", "NULL"), "True": Code("True", "TRUE"), "False": Code("False", "FALSE")}
"""Fields that every message has: ``{None}``."""


class GradopsError(Exception):
    """Base of every error that gradops raises on purpose.

    ``kind`` is the short name under which R sees the condition: class ``gradops_error_<kind>``. ``{name}`` in the
    message and in the hint stands for the field of that name, or of :data:`LITERALS`; braces around other words are
    left alone. Code stands in backticks.
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
        """``template`` with the fields in the words of ``word``."""
        first, *rest = template.split("{")  # by means that PyTorch can trace, which then shows the message
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


class ShapeError(ArgumentError):
    """Shapes that do not fit each other."""

    kind = "shape"


class AxisError(ArgumentError, IndexError):
    """An axis or index out of range; ``position`` is which, where it is known, counted from 0."""

    kind = "axis"

    @property
    def position(self) -> int | None:
        found = self.fields.get("position")
        return found.place if isinstance(found, Position) else None


class BackendError(GradopsError, RuntimeError):
    """An unknown or uninstalled backend, or something one backend cannot do."""

    kind = "backend"


class MixedBackendsError(BackendError, TypeError):
    """Tensors of two array libraries in one op."""

    kind = "mixed_backends"


class GradientError(GradopsError, RuntimeError):
    """A gradient that cannot be computed, or a gradient function that broke its contract."""

    kind = "gradient"


class PartialGradientError(GradientError):
    """The gradient that was asked for is known in part only; R's side then computes that result another way."""

    kind = "partial_gradient"


class JitError(GradopsError, RuntimeError):
    """A function that cannot be compiled, as its course depends on values."""

    kind = "jit"


class MismatchError(GradopsError, RuntimeError):
    """A compiled program that gave another result than NumPy, where ``config.check()`` is ``"error"``.

    It is no JitError: code that runs uncompiled what cannot be compiled must not hide it.
    """

    kind = "mismatch"


class MismatchWarning(RuntimeWarning):
    """A compiled program that gave another result than NumPy; it runs without native code from now on."""


class InferenceError(GradopsError, RuntimeError):
    """A likelihood that is not a number, random effects without a mode, or a parameter that is not identified."""

    kind = "inference"


class ShardError(GradopsError, RuntimeError):
    """An objective that failed on a shard of its data, which it names."""

    kind = "shard"


class ThreadError(GradopsError, RuntimeError):
    """An R function called from a thread that cannot reach R's."""

    kind = "thread"


class ModelError(GradopsError, RuntimeError):
    """A language model that failed, said nothing, or was not recorded."""

    kind = "model"


class BudgetError(ModelError):
    """A call of a language model that would go over its budget; it was not made."""

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
