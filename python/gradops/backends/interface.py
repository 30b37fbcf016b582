"""The requirements of gradops on an array library: two contracts, checked when a backend registers.

A backend is any namespace, usually a package of this folder, with the members of :class:`Backend` and the kernels of
:data:`required_kernels`. A library that differentiates by itself has the members of :class:`Derivatives` in
``derivatives``; one without has those of the tape (:class:`OnTape`), which the floors above put here. A floor above
adds its code for one library to that library's members with :func:`gradops.backends.joins`.

Members marked :func:`required` must be there; the others have the default that stands here. Nothing outside this
folder asks a backend for its name, but for messages: differences between libraries are members of a contract. Code
that a compiler reading Python line by line cannot follow is marked where it is defined, see ``backends.tracing``.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from ..errors import GRAD, VARIABLE, ArgumentError, BackendError, GradientError, JitError
from . import tracing

required_kernels: set[str] = set()
"""The ops that no body composes of others, so that each backend must have a kernel for them; noted as ops are made."""


def required(member: Callable) -> Callable:
    """A member without a default."""

    @functools.wraps(member)
    def absent(self, *_, **__):
        raise BackendError(f"{self.name} has no `{member.__name__}`.")

    absent.required = True
    return absent


class _Contract:
    """The members of a namespace, with the defaults of the class for those that it leaves out."""

    def __init__(self, name: str, given: Any):
        self.name = name
        self.adopt(given)

    def adopt(self, given: Any) -> None:
        """Take the members that ``given`` has."""
        for member in members(Backend if isinstance(self, Backend) else Derivatives):
            value = getattr(given, member, None)
            if value is not None:
                setattr(self, member, value)

    def __repr__(self) -> str:
        return f"<gradops {type(self).__name__.lower()} {self.name}>"


def members(contract: type) -> list[str]:
    """The names that a namespace may define for a contract."""
    own = ("adopt", "add_kernel", "kernel", "derivatives", "native")
    return [m for m in vars(contract) if not m.startswith("_") and m not in own]


def lacking(contract: type, given: Any) -> list[str]:
    """The required members that ``given`` does not have."""
    needed = [m for m in members(contract) if getattr(vars(contract)[m], "required", False)]
    return [m for m in needed if getattr(given, m, None) is None]


def check(name: str, given: Any, partial: bool) -> None:
    """Raise for a namespace that breaks the contract.

    Args:
        partial: True if kernels may be lacking; their ops are then errors where they are used.

    Raises:
        BackendError: a required member or kernel that is not there; names them all.
    """
    found = {"": lacking(Backend, given)}
    if getattr(given, "derivatives", None) is not None:
        found["derivatives."] = lacking(Derivatives, given.derivatives)
    if not partial:
        kernels = [op for op in sorted(required_kernels) if getattr(given, op.replace(".", "_"), None) is None]
        found["the kernels "] = kernels
    parts = [part + ", ".join(names) for part, names in found.items() if names]
    if parts:
        raise BackendError(
            f"The backend {name!r} lacks {'; '.join(parts)}.",
            argument="module",
            hint="`gradops.backends.interface` says what each has to do; `partial=True` registers it without kernels",
        )


looks: ContextVar[Any] = ContextVar("gradops_looks", default=None)
"""A function of a tensor and one that reads it (``bool``, ``int``), while another library than NumPy traces a function:
it gives the value, and the program then holds where that is the same (:mod:`gradops.jit.guards`). Else None."""


@tracing.read_as(lambda *_: NotImplemented)
def looked(x, read: Callable):
    """``read(x)``, to which the program being traced is specialised; NotImplemented where there are no ``looks``."""
    look = looks.get()
    return NotImplemented if look is None else look(x, read)


def known(x, read: Callable):
    """``read(x)``, which ``looks`` keep where there are any."""
    value = looked(x, read)
    return read(x) if value is NotImplemented else value


asked: ContextVar[list | None] = ContextVar("gradops_asked", default=None)
"""A list that notes each :func:`looked_at_a_value`, as an error that goes through R's code comes back as another."""


def looked_at_a_value(hint: str = "use `ops.where()` or `ops.cond()`, or make the argument static") -> JitError:
    """The error for asking a tensor that is being traced for its value."""
    if (noted := asked.get()) is not None:
        noted.append(hint)
    return JitError("a compiled function looked at a value: a branch or a Python number made of a tensor.", hint=hint)


class GraphTooLongError(Exception):
    """A function being compiled has more operations than its library traces in reasonable time; it runs uncompiled."""

    def __init__(self, operations: int):
        super().__init__(f"more than {operations:,} operations")


def divided_by_0(op: str) -> ArgumentError:
    """The error for a whole number that is divided by 0, of which there is no infinity."""
    return ArgumentError(
        f"`{op}`: `x2` must not be 0 where both are whole numbers.",
        argument="x2",
        hint="floats have an answer, infinite or NaN",
    )


class Backend(_Contract):
    """One array library: how it converts, its kernels by op name, and its derivatives."""

    yields: bool = False
    """True if its tensors give way: beside another library's they are constants of that one."""

    wraps: bool = False
    """True if its tensors hold those of other libraries, which are constants beside them."""

    no_value: tuple = ()
    """The library's errors for asking a tensor that is being traced for its value."""

    unwinds: tuple = ()
    """The library's exceptions that end a function whose values it has: they pass through whoever calls it."""

    calls_from_threads: bool = False
    """True if its compiled programs call Python back from threads of their own."""

    derivatives: Derivatives
    """How gradients flow through its tensors: the library's own way, or the tape's."""

    def __init__(self, name: str, given: Any, partial: bool = False):
        check(name, given, partial)
        super().__init__(name, given)
        self._kernels = given
        own = getattr(given, "derivatives", None)
        self.derivatives = OnTape(name) if own is None else Derivatives(name, own)

    @required
    def is_tensor_type(self, kind: type) -> bool:
        """True if kernels take values of type ``kind`` as tensors."""

    def owns(self, kind: type) -> bool:
        """True if values of type ``kind`` are the library's; those that are not tensors go through ``convert``."""
        return self.is_tensor_type(kind)

    @required
    def convert(self, value, dtype: str | None = None, like=None):
        """A tensor of ``value``: a tensor of the library, a NumPy array, a number, or nested lists of these.

        Floats become ``config.floatx()`` and whole numbers int64 where neither ``value`` nor ``dtype`` says another.

        Args:
            like: a tensor whose device the result goes to.

        Raises:
            TypeError, ValueError: ``value`` cannot be a tensor, or the library lacks the dtype.
        """

    @required
    def dtype_name(self, x) -> str:
        """The name of a tensor's dtype, one of ``gradops.dtypes.ALL``."""

    @required
    def to_numpy(self, x):
        """The values as a NumPy array, off the graph.

        Raises:
            JitError: a tensor that is being traced.
        """

    def handed_over(self, x):
        """``x`` with its values as they stand in memory, which others read by DLPack: a copy where they do not.

        Raises:
            TypeError: values that no other library can read.
        """
        return x

    def from_dlpack(self, x):
        """Another library's tensor as one of this, without a copy; None, or any error, where it must be copied."""
        return None

    def place(self, x, device):
        """A tensor on a device: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, or one of the library's own.

        Raises:
            BackendError: a device that the library does not have; an error of the library's own.
        """
        if device not in ("cpu", "cpu:0"):
            raise BackendError(f"`to_backend`: {self.name} has tensors on the device 'cpu' only.", argument="device")
        return x

    def sizes(self, x) -> tuple:
        """The sizes of a tensor's dimensions; 0-d tensors where they are not known before a graph runs."""
        return tuple(x.shape)

    def static_value(self, x):
        """The same as ``to_numpy`` for values known also while a program is traced; any error where they are not."""
        return self.to_numpy(x)

    def prepare(self, floatx: str) -> Callable[[], None] | None:
        """Set the library up for numbers of dtype ``floatx``; called when it is chosen.

        Returns:
            A function that sets it up as before; None where nothing had to be changed.
        """
        return None

    def prepared(self, floatx: str) -> contextlib.AbstractContextManager:
        """A scope, of the thread, in which the library is set up so; called when it is chosen for a while."""
        self.prepare(floatx)
        return contextlib.nullcontext()

    def call_back(self, program, tensors: list) -> list | None:
        """A call of ``program`` on the arrays of traced tensors, as an operation of the trace.

        Args:
            program: a function of another language, of NumPy arrays to a list: see ``gradops.interop.r.host``.
        """
        return None

    def on_host(self, name: str, function: Callable, xs: list, like: int | None = None):
        """``function``, elementwise and of NumPy's arrays, of tensors of one floating dtype, traced ones too.

        Args:
            name: what graphs call it; the same name is always the same function.
            like: of a function of matrices in the last two dimensions, which those before broadcast: the position of
                the tensor whose last two sizes the result has.
        """
        return self.convert(function(*map(self.to_numpy, xs)), self.dtype_name(xs[0]), xs[0])

    def eval_shape(self, run: Callable, looks: list) -> list:
        """Objects with the shapes and dtypes that the list ``run(*tensors)`` has, without values.

        Args:
            looks: the shape and dtype of each tensor.

        Returns:
            Whatever ``dtype_name`` and ``sizes`` take; NotImplemented: ``run`` is called with zeros.
        """
        return NotImplemented

    def kernel(self, op: str) -> Any:
        """The native kernel of an op, or None where the library leaves it to be composed."""
        return getattr(self._kernels, op.replace(".", "_"), None)

    def add_kernel(self, op: str, kernel: Any) -> None:
        """Make ``kernel`` the native kernel of an op, among the library's own, where others look, too."""
        setattr(self._kernels, op.replace(".", "_"), kernel)


class Derivatives(_Contract):
    """The derivatives of a library. Gradients of complex numbers are dL/dRe + i dL/dIm throughout.

    ``run`` is a function of as many tensors as there are ``leaves``, or ``inputs``. ``at`` is a function at the inputs
    where it is differentiated, a :class:`gradops.functional.point.Point`.
    """

    native: bool = True
    """True if this is the library's own way, not the tape's."""

    own_tape: bool = False
    """True if its tensors record themselves and have ``backward()``, so that none ever becomes a ``Variable``."""

    cuts_results: bool = False
    """True if ``stopped`` cannot see operations, so that only the results of a decorated function can be cut."""

    @required
    def stop(self, x):
        """``x`` as a constant."""

    @required
    def stopped(self):
        """A scope whose operations give no gradient to tensors outside."""

    def records_now(self) -> bool:
        """False inside of a mode of the library's own in which nothing is recorded."""
        return True

    def record(self, value: bool) -> None:
        """Set the mode of the library's own in which something, or nothing, is recorded, unseen by ``followed``."""

    def followed(self, off: Callable):
        """A scope in which the library's own mode, where it comes to record nothing, calls ``off()``.

        Its result is a function, which is called where the mode records again.
        """
        return contextlib.nullcontext()

    def forward_scope(self, value: bool):
        """A scope in which the library's forward mode is on or off, where that is under way."""
        return contextlib.nullcontext()

    @required
    def custom(self, run: Callable, inputs: list) -> list:
        """The values of ``run(*inputs) -> (values, pull)``, with ``pull`` as their derivative.

        ``pull(upstreams)`` gives for each input a gradient or None; it is differentiated for higher orders. A ``run``
        that closes over no tensor says so by ``run.is_closed``: a compiler need not trace its rule before it is used.

        Raises:
            GradientError: ``run`` uses a tensor that needs a gradient and is no input.
        """

    def eager(self) -> bool:
        """True if the running code is recorded as it runs, and in no other way, so that ``attach`` suffices."""
        return False

    def attach(self, values: list, pull: Callable, inputs) -> list:
        """``values`` that were computed from the ``inputs``, with ``pull`` as their derivative: see ``custom``."""
        raise NotImplementedError

    def attach_one(self, value, pull: Callable, residuals, x):
        """The same of one value and one input, whose gradient is ``pull(upstream, residuals)``."""
        raise NotImplementedError

    def attach_to(self, value, pull: Callable, residuals, inputs):
        """The same of one value and several inputs, whose gradients are ``pull(upstream, residuals)``."""
        raise NotImplementedError

    def apply(self, function, args: tuple):
        """``function.apply(*args)`` of the library's own class of functions, where it has one.

        Raises:
            GradientError: a tracer would lose its derivative.
        """
        raise NotImplementedError

    @required
    def value_and_grad(self, run: Callable, leaves: list) -> tuple:
        """The value of a scalar function and the list of its gradients, zeros where it does not depend on a leaf.

        Both are differentiable again, by derivatives around this one, also for tensors that ``run`` closes over. The
        item ``"aux"`` that ``run`` puts in its attribute ``box`` is not part of the derivative's graph.
        """

    @required
    def vjp(self, at, v, create_graph: bool, strict: bool):
        """``(value, product of v with the Jacobian)``: ``v`` as it was given, for ``at.weights(v, outputs)``."""

    @required
    def jvp(self, at, v, create_graph: bool, strict: bool):
        """``(value, product of the Jacobian with v)``: ``v`` as it was given, for ``at.tangents(v)``."""

    @required
    def pulling(self, at) -> tuple:
        """``(outputs, pull)``: ``pull(weights)`` is, for each input, the product of weights with the Jacobian.

        The function is run once and ``pull`` may be called many times. Results are as of ``value_and_grad``; the item
        ``"aux"`` that the function puts in ``at.box`` is treated as there.
        """

    @required
    def pushing(self, at) -> tuple:
        """``(outputs, push)``: ``push(tangents)`` is, for each output, the product of the Jacobian with tangents."""

    @required
    def jacobian(self, at, create_graph: bool, strict: bool, vectorize: bool, strategy: str | None):
        """The derivatives by output and input, each of the output's shape followed by the input's.

        Args:
            strategy: ``"reverse-mode"``, ``"forward-mode"``, or None for the better.
        """

    def hessian(self, at, create_graph: bool, strict: bool, vectorize: bool, strategy: str):
        """The library's own Hessian; NotImplemented: the Jacobian of the gradient."""
        return NotImplemented

    def hvp(self, at, v, create_graph: bool, strict: bool):
        """The library's own ``(value, product of the Hessian with v)``; NotImplemented: ``jvp`` of the gradient."""
        return NotImplemented

    def vhp(self, at, v, create_graph: bool, strict: bool):
        """The library's own ``(value, product of v with the Hessian)``; NotImplemented: ``vjp`` of the gradient."""
        return NotImplemented

    knows_values: bool = False
    """True if tensors have values while ``compile`` traces a function, and questions about them go to ``looks``
    while there is one."""

    @required
    def compile(self, f: Callable) -> Callable:
        """``f``, a function of tensors, as a program of the library's compiler.

        Raises:
            JitError: from the function returned, where ``f`` looks at a value.
        """

    def checkpoint(self, run: Callable, inputs: list, policy, in_scope: Callable) -> Any:
        """``run(*inputs)``, of any structure of tensors, with nothing stored but its inputs: it is run again.

        Args:
            run, inputs: the function, and its tensors.
            policy: the results that are stored beside (``backends/checkpoint_policies.py``).
            in_scope: ``(run, inputs)`` to the same by a checkpoint scope, for a library in which that is one.
        """
        raise BackendError(f"`checkpoint`: the backend {self.name!r} has no way to run a function again.", argument="f")

    def named(self, x, name: str):
        """``x``, known by ``name`` to the policy of the function that is checkpointed."""
        return x

    def checkpointed(self):
        """A scope whose tensors are computed again in the backward pass, as far as the library lets it be seen."""
        return contextlib.nullcontext()

    def gradient(self, y, xs: list) -> list:
        """Gradients of a tensor that knows its origin; None for inputs that it does not depend on."""
        raise GradientError(
            f"`y` is a {self.name} array, which does not know what it was computed from.",
            argument="y",
            hint="make `x` a variable: {variable}, or use {grad}",
            variable=VARIABLE,
            grad=GRAD,
        )

    def require(self, x) -> None:
        """Have gradients of ``x`` be known from here on."""
        raise GradientError(
            f"`x` must be a variable or a tensor whose library can mark it; got a {self.name} array, which cannot "
            "be marked.",
            argument="x",
            hint="make it a variable: {variable}",
            variable=VARIABLE,
        )

    def carried(self) -> Callable:
        """A function that gives a scope in which another thread takes part in this one's derivatives."""
        return contextlib.nullcontext

    def on_one_thread(self) -> None:
        """Have the backward passes that this thread starts run on it alone."""

    def results_of(self, node) -> tuple:
        """Objects with the known shapes and dtypes of the results of a node on the library's own tape."""
        return ()

    def linear_solve(self, matvec: Callable, b, solve: Callable):
        """``solve(matvec, b)`` as a linear function of ``b`` whose transpose solves with that of ``matvec``.

        NotImplemented: a custom gradient does it.
        """
        return NotImplemented

    def together(self, xs, ts) -> bool:
        """True if ``ts`` and one of ``xs`` are of one derivative, which asks for rules before it goes back."""
        return False

    def records(self, x) -> bool:
        """True if a derivative is being recorded for ``x``, so that its bare values would lose it."""
        return False


class OnTape(Derivatives):
    """The tape's derivatives: those of a library without its own, and those of variables over any library."""

    native = False

    def __init__(self, name: str):
        super().__init__(name, None)

    def stop(self, x):
        return x

    def stopped(self):
        return contextlib.nullcontext()

    def compile(self, f: Callable) -> Callable:
        raise BackendError(f"`jit`: the backend {self.name!r} has no compiler.", argument="f")


def by_tape(function: Callable, name: str | None = None) -> Callable:
    """Make a function the tape's way for the member of its name: how the floors above reach down."""
    setattr(OnTape, name or function.__name__, staticmethod(function))
    return function


tape = OnTape("variable")
"""The derivatives of variables."""
