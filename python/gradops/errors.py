"""The errors gradops raises. Each names the argument, says what was expected and what came."""

from __future__ import annotations


class GradopsError(Exception):
    """Base of every error that gradops raises on purpose.

    ``kind`` is the short name under which R sees the condition: class ``gradops_error_<kind>``.
    """

    kind = "error"

    def __init__(self, message: str, *, argument: str | None = None, hint: str | None = None):
        super().__init__(message if hint is None else f"{message}\nHint: {hint}")
        self.message = message
        self.argument = argument
        self.hint = hint


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
    """An axis or index out of range. ``position`` is 0-based; R reports it 1-based."""

    kind = "axis"

    def __init__(self, message: str, *, position: int | None = None, bound: int | None = None, **keywords):
        super().__init__(message, **keywords)
        self.position = position
        self.bound = bound


class BackendError(GradopsError, RuntimeError):
    """An unknown or uninstalled backend, or something one backend cannot do."""

    kind = "backend"


class MixedBackendsError(BackendError, TypeError):
    """Tensors of two array libraries met in one op."""

    kind = "mixed_backends"


class GradientError(GradopsError, RuntimeError):
    """A gradient that cannot be computed, or a gradient function that broke its contract."""

    kind = "gradient"


class JitError(GradopsError, RuntimeError):
    """A function that cannot be compiled, as its course depends on values."""

    kind = "jit"


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
