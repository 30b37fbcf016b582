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

    ``except gradops.errors.GradopsError`` catches all of them. Where one of Python's own classes fits, an error is of
    that class, too: an :class:`ArgumentError` is a ``ValueError``.

    Cause: See the class of the error.

    Fix: The message names the argument, what was expected and what was given; ``argument``, ``message`` and ``hint``
    hold the parts.

    Examples:
        >>> import numpy as np
        >>> from gradops import errors, ops
        >>> try:
        ...     ops.sum(np.ones((2, 3)), axis=2)
        ... except errors.GradopsError as error:
        ...     print(type(error).__name__, "|", error.argument, "|", error.message)
        AxisError | axis | `sum`: `axis` must be between -2 and 1 for a tensor of 2 dimensions; got 2.
    """

    kind = "error"
    """The short name of R's condition class ``gradops_error_<kind>``."""

    def __init__(self, message: str, *, argument: str | None = None, hint: str | None = None, **fields: Field):
        """Word the message and the hint, where code is in backticks.

        ``{name}`` stands for the field of that name, or of :data:`LITERALS`; other words in braces stay as they are.
        """
        self.template = message
        self.argument = argument
        self.hint_template = hint
        self.fields = fields
        hint = self.hint
        self.args = (self.message if hint is None else f"{self.message}\nHint: {hint}",)
        self.__notes__ = [f"Causes and fixes: help(gradops.errors.{type(self).__name__})"]  # Python >= 3.11 shows it

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
    """An argument has the wrong value, shape, axis or number of elements.

    Cause: A name that does not exist, a number out of range, or arguments that do not fit together.

    Fix: Pass one of the values that the message lists. Names are compared exactly, so the hint shows the closest one.

    Examples:
        >>> import gradops
        >>> gradops.config.set_check("frist")
        Traceback (most recent call last):
            ...
        gradops.errors.ArgumentError: `mode` must be one of off, first, sample, always, error; got 'frist'.
        Hint: did you mean "first"?...
    """

    kind = "argument"


class ArgumentTypeError(GradopsError, TypeError):
    """An argument has the wrong type or dtype.

    Cause: An object that is no tensor, such as text or None; or integers where numbers need a derivative.

    Fix: Convert it, to an array or to a floating dtype.

    Examples:
        >>> import numpy as np
        >>> from gradops import Variable
        >>> Variable(np.array([1, 2]), requires_grad=True)
        Traceback (most recent call last):
            ...
        gradops.errors.ArgumentTypeError: `requires_grad`: only floating and complex tensors ...
        >>> Variable(np.array([1.0, 2.0]), requires_grad=True).requires_grad
        True
    """

    kind = "type"


def unknown_argument(function: str, name: str, own: Iterable[str], hint: str | None = None) -> ArgumentTypeError:
    """Return the error for a keyword that a function does not take; without ``hint`` it suggests the one meant."""
    own = [one for one in own if one != "self"]
    meant = next((one for one in (ARGUMENTS.get(name), closest(name, own)) if one in own), None)
    return ArgumentTypeError(
        f"`{function}` has the arguments {', '.join(f'`{one}`' for one in own)}, and none that is called `{name}`.",
        argument=name,
        hint=hint or meant and f"write `{meant}=`",
    )


class ShapeError(ArgumentError):
    """Shapes that do not match.

    Cause: Two tensors cannot be broadcast, multiplied or joined, or a shape has another number of elements.

    Fix: Compare the shapes in the message; transpose, reshape or add a dimension, for example by ``x[:, None]``.

    Examples:
        >>> import numpy as np
        >>> from gradops import ops
        >>> x = np.ones((2, 3))
        >>> ops.matmul(x, x)
        Traceback (most recent call last):
            ...
        gradops.errors.ShapeError: `matmul`: the sizes that are summed over must be equal; got ...
        >>> ops.matmul(x, x.T).shape
        (2, 2)
    """

    kind = "shape"


class AxisError(ArgumentError, IndexError):
    """An axis or index is out of range; ``position`` is the axis or index, counted from 0, if known.

    Cause: A dimension or element that the tensor does not have. Python counts from 0, R from 1.

    Fix: Use an axis within the range of the message, or a negative one, which counts from the end.

    Examples:
        >>> import numpy as np
        >>> from gradops import ops
        >>> ops.sum(np.ones((2, 3)), axis=2)
        Traceback (most recent call last):
            ...
        gradops.errors.AxisError: `sum`: `axis` must be between -2 and 1 for a tensor of 2 dimensions; got 2...
        >>> print(ops.sum(np.ones((2, 3)), axis=-1))
        [3. 3.]
    """

    kind = "axis"

    @property
    def position(self) -> int | None:
        found = self.fields.get("position")
        return found.place if isinstance(found, Position) else None


class BackendError(GradopsError, RuntimeError):
    """A backend is unknown or not installed, or cannot do something.

    Cause: A misspelt name, a library that is not installed in this Python, or a function that one library lacks.

    Fix: ``gradops.show_versions()`` lists the installed backends; the hint says how to install a missing one.
    ``docs/differences.md`` has what the libraries lack.

    Examples:
        >>> import gradops
        >>> gradops.config.set_backend("pytorhc")
        Traceback (most recent call last):
            ...
        gradops.errors.BackendError: Unknown backend 'pytorhc': expected one of numpy, torch, tensorflow, jax...
    """

    kind = "backend"


class MixedBackendsError(BackendError, TypeError):
    """Tensors of two array libraries in one op.

    Cause: A model in one library gets data of another. Numbers, lists and NumPy arrays may be mixed with any library.

    Fix: Convert one of them by :func:`gradops.to_backend`.

    Examples:
        This example needs ``gradops[torch]`` and ``gradops[jax]``:

        >>> import numpy as np
        >>> import gradops
        >>> x, y = (gradops.to_backend(np.ones(2), name) for name in ("torch", "jax"))
        >>> gradops.ops.add(x, y)
        Traceback (most recent call last):
            ...
        gradops.errors.MixedBackendsError: `add`: all tensors must be of one backend; got torch and jax...
        >>> gradops.ops.add(x, gradops.to_backend(y, "torch"))
        tensor([2., 2.], dtype=torch.float64)
    """

    kind = "mixed_backends"


class GradientError(GradopsError, RuntimeError):
    """A gradient that cannot be computed, or a gradient function that broke its contract.

    Cause: The function does not return a scalar; a value leaves the graph on its way, through ``float()`` or another
    library's function; the graph was freed; or a custom gradient has another shape than its argument.

    Fix: The message says where the gradient stops. Use gradops' or NumPy's functions up to the result, reduce it to a
    scalar by ``sum()`` or ``mean()``, and mark what is meant to be constant by :func:`gradops.stop_gradient`.

    Examples:
        >>> import gradops
        >>> gradops.grad(lambda x: x * float(x))(3.0)
        Traceback (most recent call last):
            ...
        gradops.errors.GradientError: a variable that requires a gradient was made a Python float: ...
        >>> gradops.grad(lambda x: x * x)(3.0).item()
        6.0
    """

    kind = "gradient"


class PartialGradientError(GradientError):
    """Only a part of the requested gradient is known; the R package then computes that result in another way.

    Cause: R code used the elements of a vector one by one, and asks for the gradient of the vector.

    Fix: None is needed, as R catches it. If you see it, please report it.
    """

    kind = "partial_gradient"


class JitError(GradopsError, RuntimeError):
    """A function cannot be compiled because its control flow depends on values.

    Cause: While it is traced, the function makes a number of a traced array, draws random numbers, or writes to its
    arguments. The compiled program would repeat what it saw then.

    Fix: Use ops instead of functions of numbers, ``ops.where()`` or ``ops.cond()`` for decisions; pass what changes as
    an argument, or name it in ``static_argnums``.

    Examples:
        >>> import math
        >>> import numpy as np
        >>> import gradops
        >>> gradops.jit(lambda x: math.sin(x[0]) * x[1])(np.ones(2))
        Traceback (most recent call last):
            ...
        gradops.errors.JitError: a compiled function looked at a value: a branch, a Python number or text, ...
        >>> round(gradops.jit(lambda x: gradops.ops.sin(x[0]) * x[1])(np.ones(2)).item(), 4)
        0.8415
    """

    kind = "jit"


class MismatchError(GradopsError, RuntimeError):
    """A compiled program returned another result than NumPy while ``config.check()`` is ``"error"``.

    It is not a JitError, which code catches to run a function uncompiled: that must not hide a mismatch.

    Cause: An error in gradops, or in LLVM; or a function that gives another result at each call.

    Fix: Report the function with the output of its ``explain()`` and of ``gradops.show_versions()``. Until then
    ``gradops.jit(f, native=False)`` or the environment variable ``GRADOPS_NATIVE=off`` runs it by NumPy alone.

    Examples:
        >>> import gradops
        >>> print(gradops.jit(lambda x: x**2, native=False)(3.0))
        9.0
    """

    kind = "mismatch"


class MismatchWarning(RuntimeWarning):
    """A compiled program returned another result than NumPy; it runs without native code from now on.

    Cause: See :class:`MismatchError`. The result that you get is NumPy's.

    Fix: Report it; nothing needs to change until then.

    Examples:
        A test suite makes it an error:

        >>> import gradops
        >>> before = gradops.config.check()
        >>> gradops.config.set_check("error")
        >>> gradops.config.set_check(before)
    """


class InferenceError(GradopsError, RuntimeError):
    """A likelihood is not a number, random effects have no mode, or a parameter is not identified.

    Cause: The start is outside the parameters' range, a logarithm of 0 or of a negative number, an overflow; random
    effects on which the data say nothing.

    Fix: The message names the parameters and the first operation that gives no number. Start elsewhere, or let the
    search run over all numbers: ``ops.exp(p["log_sd"])``, or ``transforms=`` of :func:`gradops.inference.fit`.

    Examples:
        >>> from gradops import inference, ops
        >>> inference.fit(lambda p: p["rate"] - 2 * ops.log(p["rate"]), {"rate": -1.0})
        Traceback (most recent call last):
            ...
        gradops.errors.InferenceError: the likelihood is nan at rate = -1: `log` is the first to give no number...
        >>> positive = {"rate": inference.transforms.positive}
        >>> fit = inference.fit(lambda p: p["rate"] - 2 * ops.log(p["rate"]), {"rate": 1.0}, transforms=positive)
        >>> round(float(fit.params["rate"]), 6)
        2.0
    """

    kind = "inference"


class ShardError(GradopsError, RuntimeError):
    """An objective failed on a shard of its data; the message names the shard.

    Cause: The function raised an error on that shard, or the worker that held it is gone.

    Fix: Call the function on the named shard alone, ``f(x, data[i])``; the original error is ``__cause__``.

    Examples:
        >>> import numpy as np
        >>> from gradops import functional, ops
        >>> data = [np.ones(2), np.ones(3)]
        >>> total = functional.objective(lambda x, shard: ops.sum((x - shard) ** 2), data)
        >>> total(np.zeros(2))
        Traceback (most recent call last):
            ...
        gradops.errors.ShardError: ...data[1]...
        >>> print(total(0.0))
        5.0
    """

    kind = "shard"


class ThreadError(GradopsError, RuntimeError):
    """An R function was called from a thread that cannot reach R's thread.

    Cause: R runs on one thread only. A library calls the function on a thread of its own while R's thread waits in
    compiled code, or has ended.

    Fix: Make the outer call by ``gradops.interop.r.call_in_thread()``, R's ``call_in_thread()``, so that R's thread
    stays free to answer.
    """

    kind = "thread"


class ModelError(GradopsError, RuntimeError):
    """A language model failed, returned nothing, or was not recorded.

    Cause: The network or the key; an empty answer; a replay without the model that meets a new request.

    Fix: The original error is ``__cause__``. :func:`gradops.text.remembered` repeats calls after temporary failures,
    and continues from its recording after an interrupt.

    Examples:
        >>> from gradops import text
        >>> text.call(lambda messages: "", "What is the capital of France?")
        Traceback (most recent call last):
            ...
        gradops.errors.ModelError: the call for 'answer' (of 'prompt'): the model returned an empty text...
    """

    kind = "model"


class BudgetError(ModelError):
    """A call of a language model would exceed its budget; it was not made.

    Cause: The limits ``calls`` or ``tokens`` of :func:`gradops.text.remembered` are used up.

    Fix: Raise the limit. With the same ``path`` the new model answers from the recording what was paid for already.

    Examples:
        >>> from gradops import text
        >>> model = text.remembered(text.scripted({"one": "1", "two": "2"}), calls=1)
        >>> print(text.call(model, "one"))
        1
        >>> text.call(model, "two")
        Traceback (most recent call last):
            ...
        gradops.errors.BudgetError: ...the budget of 1 calls is used up (1); the call was not made...
    """

    kind = "budget"


class RError(GradopsError):
    """An error in an R function: R's message, the call it is from, and the classes of its condition.

    Cause: The R function that ``gradops.interop.r.r_function()`` wraps has failed.

    Fix: Run the function in R with the same arguments. ``r_message``, ``r_call`` and ``r_class`` hold R's condition.
    """

    kind = "r"

    def __init__(self, message: str, *, call: str = "", classes: tuple[str, ...] = ()):
        super().__init__(f"{message} (in R, {call})" if call else f"{message} (in R)")
        self.r_message = message
        self.r_call = call
        self.r_class = classes


__dir__, __getattr__ = namespace(__name__)
