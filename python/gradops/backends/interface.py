"""What gradops requires of an array library: the contracts ``Backend`` and ``Derivatives``, checked at registration.

A backend is any namespace, usually a package of this folder, that defines the members of :class:`Backend` and the
kernels of :data:`required_kernels`. A library that can differentiate also defines the members of :class:`Derivatives`
in ``derivatives``; the others use the tape (:class:`OnTape`), which higher floors fill in with
:func:`register_on_tape`. A higher floor adds its code for one library to that library's members with
:func:`gradops.backends.joins`.

Members marked :func:`required` must be defined; the others have the default given here. Outside this folder a backend's
name is used for messages only: whatever differs between libraries is a member of a contract. Code that a compiler
reading Python line by line cannot follow is marked at its definition, see ``backends.tracing``.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, NamedTuple

from ..errors import GRAD, VARIABLE, ArgumentError, BackendError, GradientError, JitError
from . import tracing

required_kernels: set[str] = set()
"""Ops without a body composed of other ops, so each backend must have a kernel for them; filled in as ops are made."""


def required(member: Callable) -> Callable:
    """Mark a contract member that has no default: calling it raises BackendError."""

    @functools.wraps(member)
    def absent(self, *_, **__):
        raise BackendError(f"{self.name} has no `{member.__name__}`.")

    absent.required = True
    return absent


class Residual(NamedTuple):
    """A tensor that a derivative saves, and words for where it was made."""

    dtype: str
    shape: tuple
    where: str

    @property
    def bytes(self) -> int:
        bits = int("".join(filter(str.isdigit, self.dtype.partition("_")[0])) or 8)
        return math.prod(self.shape) * bits // 8


class _Contract:
    """The members that a namespace defines, with this class's defaults for the rest."""

    def __init__(self, name: str, given: Any):
        self.name = name
        self.adopt(given)

    def adopt(self, given: Any) -> None:
        """Copy the contract members that ``given`` defines."""
        for member in members(Backend if isinstance(self, Backend) else Derivatives):
            value = getattr(given, member, None)
            if value is not None:
                setattr(self, member, value)

    def __repr__(self) -> str:
        return f"<gradops {type(self).__name__.lower()} {self.name}>"


def members(contract: type) -> list[str]:
    """The names that a namespace may define for a contract."""
    own = ("adopt", "add_kernel", "add_kernel_later", "kernel", "derivatives", "native")
    return [m for m in vars(contract) if not m.startswith("_") and m not in own]


def lacking(contract: type, given: Any) -> list[str]:
    """The required members that ``given`` does not define."""
    needed = [m for m in members(contract) if getattr(vars(contract)[m], "required", False)]
    return [m for m in needed if getattr(given, m, None) is None]


def check(name: str, given: Any, partial: bool) -> None:
    """Raise if a namespace breaks the contract.

    Args:
        partial: True if kernels may be missing; the ops without one then raise when they are used.

    Raises:
        BackendError: a required member or kernel is missing; the message names all of them.
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
            hint="`gradops.backends.interface` says what each has to do; an op with a body of other ops "
            "needs no kernel; `partial=True` registers the backend without kernels",
        )


looks: ContextVar[Any] = ContextVar("gradops_looks", default=None)
"""While a library other than NumPy traces a function: a function of a tensor and a reader (``bool``, ``int``), which
returns the tensor's value and guards the program by it (:mod:`gradops.jit.guards`). None otherwise."""


@tracing.read_as(lambda *_: NotImplemented)
def looked(x, read: Callable):
    """Return ``read(x)`` and specialise the program being traced to it; NotImplemented if ``looks`` is not set."""
    look = looks.get()
    return NotImplemented if look is None else look(x, read)


def known(x, read: Callable):
    """Return ``read(x)``; if ``looks`` is set, the program being traced is specialised to the result."""
    value = looked(x, read)
    return read(x) if value is NotImplemented else value


asked: ContextVar[list | None] = ContextVar("gradops_asked", default=None)
"""Collects the hints of :func:`looked_at_a_value`, because an error that passes through R comes back as another one."""


def looked_at_a_value(hint: str = "use `ops.where()` or `ops.cond()`, or make the argument static") -> JitError:
    """The error for reading the value of a tensor that is being traced."""
    if (noted := asked.get()) is not None:
        noted.append(hint)
    return JitError("a compiled function looked at a value: a branch or a Python number made of a tensor.", hint=hint)


class GraphTooLongError(Exception):
    """A function being compiled has too many operations to be traced in reasonable time; it runs uncompiled."""

    def __init__(self, operations: int):
        super().__init__(f"more than {operations:,} operations")


def divided_by_0(op: str) -> ArgumentError:
    """The error for an integer division by 0, for which integers have no infinity."""
    return ArgumentError(
        f"`{op}`: `x2` must not be 0 where both are whole numbers.",
        argument="x2",
        hint="floats have an answer, infinite or NaN",
    )


class Backend(_Contract):
    """One array library: how it converts, its kernels by op name, and its derivatives."""

    yields: bool = False
    """True if its tensors become constants of another library's when the two are mixed."""

    wraps: bool = False
    """True if its tensors contain tensors of other libraries, which are constants when the two are mixed."""

    no_value: tuple = ()
    """The library's errors for reading the value of a tensor that is being traced."""

    unwinds: tuple = ()
    """Exceptions by which the library leaves a function whose values it already has; callers must let them pass."""

    calls_from_threads: bool = False
    """True if its compiled programs call back into Python from their own threads."""

    derivatives: Derivatives
    """How gradients flow through its tensors: by the library's own differentiation, or by the tape."""

    def __init__(self, name: str, given: Any, partial: bool = False):
        check(name, given, partial)
        super().__init__(name, given)
        self._kernels = given
        self._later: dict[str, Callable[[Backend], Any]] = {}
        own = getattr(given, "derivatives", None)
        self.derivatives = OnTape(name) if own is None else Derivatives(name, own)

    @required
    def is_tensor_type(self, kind: type) -> bool:
        """True if kernels take values of type ``kind`` as tensors."""

    def owns(self, kind: type) -> bool:
        """True if values of type ``kind`` are the library's; ``convert`` makes tensors of the others."""
        return self.is_tensor_type(kind)

    @required
    def convert(self, value, dtype: str | None = None, like=None):
        """Make a tensor of ``value``: a tensor of the library, a NumPy array, a number, or nested lists of these.

        Floats become ``config.floatx()`` and integers int64 unless ``value`` or ``dtype`` has a dtype.

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
        """The values as a NumPy array, detached from the graph.

        Raises:
            JitError: a tensor that is being traced.
        """

    def components(self, x) -> tuple[list, Callable] | None:
        """The tensors that an object of the library holds, and a function that rebuilds it from others.

        Such objects are ragged and sparse tensors. None for tensors of one block of memory, and for everything else.
        """
        return None

    def handed_over(self, x):
        """``x`` with its values laid out in memory as DLPack readers expect: a copy if they are not.

        Raises:
            TypeError: no other library can read the values.
        """
        return x

    def from_dlpack(self, x):
        """Another library's tensor as one of this library without a copy; None, or any error, if it must be copied."""
        return None

    def place(self, x, device):
        """Move a tensor to a device: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, or one of the library's own device objects.

        Raises:
            BackendError: the library does not have the device; a library may raise its own error instead.
        """
        if device not in ("cpu", "cpu:0"):
            raise BackendError(f"`to_backend`: {self.name} has tensors on the device 'cpu' only.", argument="device")
        return x

    def sizes(self, x) -> tuple:
        """The sizes of a tensor's dimensions; 0-d tensors where they are not known before a graph runs."""
        return tuple(x.shape)

    def static_value(self, x):
        """Like ``to_numpy``, for values that are known even during a trace; raises any error if they are not."""
        return self.to_numpy(x)

    def prepare(self, floatx: str) -> Callable[[], None] | None:
        """Set the library up for numbers of dtype ``floatx``; called when the backend is selected.

        Returns:
            A function that restores the previous set-up; None if nothing had to change.
        """
        return None

    def prepared(self, floatx: str) -> contextlib.AbstractContextManager:
        """A thread-local scope that sets the library up for ``floatx``; for backends selected in a scope."""
        self.prepare(floatx)
        return contextlib.nullcontext()

    def call_back(self, program, tensors: list) -> list | None:
        """Call ``program`` on the arrays of traced tensors, as an operation of the trace.

        Args:
            program: a function of another language, from NumPy arrays to a list: see ``gradops.interop.r.host``.
        """
        return None

    def call_on_host(self, name: str, function: Callable, xs: list, like: int | None = None):
        """Apply an elementwise function of NumPy arrays to tensors of one floating dtype, also traced ones.

        Args:
            name: what graphs call the function; a name always means the same function.
            like: for a function of matrices in the last two dimensions (the leading dimensions broadcast): the position
                of the tensor whose last two sizes the result has.
        """
        return self.convert(function(*map(self.to_numpy, xs)), self.dtype_name(xs[0]), xs[0])

    def eval_shape(self, run: Callable, looks: list) -> list:
        """Objects with the shapes and dtypes of the list ``run(*tensors)``, computed without values.

        Args:
            looks: the shape and dtype of each tensor.

        Returns:
            Anything that ``dtype_name`` and ``sizes`` accept. NotImplemented: the caller runs ``run`` on zeros instead.
        """
        return NotImplemented

    def kernel(self, op: str) -> Any:
        """The native kernel of an op, or None if the op is composed of others on this library."""
        name = op.replace(".", "_")
        make = self._later.get(name)
        if make is not None:
            self.add_kernel(op, make(self))
            self._later.pop(name, None)  # after the kernel is there, as another thread may ask for it
        return getattr(self._kernels, name, None)

    def add_kernel(self, op: str, kernel: Any) -> None:
        """Make ``kernel`` the native kernel of an op, in the namespace where the library's own kernels are."""
        setattr(self._kernels, op.replace(".", "_"), kernel)

    def add_kernel_later(self, op: str, make: Callable[[Backend], Any]) -> None:
        """Make ``make(backend)`` the native kernel of an op when it is first asked for."""
        self._later[op.replace(".", "_")] = make


class Derivatives(_Contract):
    """How a library differentiates. Gradients of complex numbers are dL/dRe + i dL/dIm throughout.

    ``run`` is a function of as many tensors as there are ``leaves``, or ``inputs``. ``at`` is a function together with
    the inputs at which it is differentiated, a :class:`gradops.functional.point.Point`.
    """

    native: bool = True
    """True if the library differentiates by itself, False for the tape."""

    own_tape: bool = False
    """True if its tensors record their own history and have ``backward()``, so they never become a ``Variable``."""

    cuts_results: bool = False
    """True if ``stopped`` cannot intercept operations, so only the results of a decorated function can be detached."""

    @required
    def stop(self, x):
        """Return ``x`` as a constant."""

    @required
    def stopped(self):
        """A scope whose operations pass no gradient to tensors outside of it."""

    def records_now(self) -> bool:
        """False while a mode of the library itself, such as ``torch.no_grad()``, switches recording off."""
        return True

    def record(self, value: bool) -> None:
        """Switch the library's own recording on or off, without a report to the scopes of ``followed``."""

    def followed(self, off: Callable):
        """A scope that calls ``off()`` whenever the library's own mode switches recording off.

        ``off()`` returns a function, which is called when recording resumes.
        """
        return contextlib.nullcontext()

    def forward_scope(self, value: bool):
        """A scope that switches the library's forward mode, if it is under way, on or off."""
        return contextlib.nullcontext()

    @required
    def custom(self, run: Callable, inputs: list) -> list:
        """The values of ``run(*inputs) -> (values, pull)``, with ``pull`` as their derivative.

        ``pull(upstreams)`` gives for each input a gradient or None; it is differentiated for higher orders. A ``run``
        that closes over no tensor sets ``run.is_closed``: a compiler then traces its rule only when it is used.

        Raises:
            GradientError: ``run`` uses a tensor that needs a gradient and is not among the inputs.
        """

    def eager(self) -> bool:
        """True if the running code is recorded eagerly and by nothing else, so that ``attach`` suffices."""
        return False

    def attach(self, values: list, pull: Callable, inputs) -> list:
        """Return ``values``, computed from ``inputs``, with ``pull`` as their derivative: see ``custom``."""
        raise NotImplementedError

    def attach_one(self, value, pull: Callable, residuals, x):
        """``attach`` for one value and one input, whose gradient is ``pull(upstream, residuals)``."""
        raise NotImplementedError

    def attach_to(self, value, pull: Callable, residuals, inputs):
        """``attach`` for one value and several inputs, whose gradients are ``pull(upstream, residuals)``."""
        raise NotImplementedError

    def apply(self, function, args: tuple):
        """Call ``function.apply(*args)`` of the library's own function class, such as ``torch.autograd.Function``.

        Raises:
            GradientError: a tracer would lose its derivative.
        """
        raise NotImplementedError

    @required
    def value_and_grad(self, run: Callable, leaves: list) -> tuple:
        """The value of a scalar function and the list of its gradients; zeros for leaves that it does not depend on.

        Value and gradients can be differentiated again by enclosing derivatives, also with respect to tensors that
        ``run`` closes over. The item ``"aux"`` that ``run`` puts in its attribute ``box`` is not part of the
        derivative's graph.
        """

    @required
    def vjp(self, at, v, create_graph: bool, strict: bool):
        """``(value, vector-Jacobian product)``; ``v`` is what the caller passed, for ``at.weights(v, outputs)``."""

    @required
    def jvp(self, at, v, create_graph: bool, strict: bool):
        """``(value, Jacobian-vector product)``; ``v`` is what the caller passed, for ``at.tangents(v)``."""

    @required
    def pulling(self, at) -> tuple:
        """``(outputs, pull)``, where ``pull(weights)`` gives the product of weights with the Jacobian for each input.

        The function runs once and ``pull`` may be called many times. Results can be differentiated again and ``"aux"``
        in ``at.box`` is left out of the graph, as in ``value_and_grad``.
        """

    @required
    def pushing(self, at) -> tuple:
        """``(outputs, push)``; ``push(tangents)`` is the product of the Jacobian with tangents for each output."""

    @required
    def jacobian(self, at, create_graph: bool, strict: bool, vectorize: bool, strategy: str | None):
        """The derivatives by output and input; each has the output's shape followed by the input's.

        Args:
            strategy: ``"reverse-mode"``, ``"forward-mode"``, or None for the cheaper one.
        """

    takes_cheaper: bool = False
    """True if ``jacobian`` without a strategy takes the one with fewer passes, False if reverse mode."""

    @required
    def check_dependence(self, at, strict: bool) -> None:
        """With ``strict``, raise by ``at.check_dependence`` if an output does not depend on an input."""

    def hessian(self, at, create_graph: bool, strict: bool, vectorize: bool, strategy: str):
        """The library's own Hessian; NotImplemented: the caller takes the Jacobian of the gradient."""
        return NotImplemented

    def hvp(self, at, v, create_graph: bool, strict: bool):
        """The library's ``(value, Hessian-vector product)``; NotImplemented: callers use ``jvp`` of the gradient."""
        return NotImplemented

    def vhp(self, at, v, create_graph: bool, strict: bool):
        """The library's ``(value, vector-Hessian product)``; NotImplemented: callers use ``vjp`` of the gradient."""
        return NotImplemented

    knows_values: bool = False
    """True if tensors have values while ``compile`` traces a function; reads of these values go through ``looks``
    if it is set."""

    @required
    def compile(self, f: Callable) -> Callable:
        """Compile ``f``, a function of tensors, with the library's compiler.

        Raises:
            JitError: the compiled function raises it if ``f`` reads a value.
        """

    def checkpoint(self, run: Callable, inputs: list, policy, in_scope: Callable) -> Any:
        """Return ``run(*inputs)``, any structure of tensors, saving the inputs only; the backward pass runs it again.

        Args:
            run, inputs: the function, and its tensors.
            policy: the results that are saved additionally (``backends/checkpoint_policies.py``).
            in_scope: a function of ``(run, inputs)`` that does the same with a checkpoint scope, for libraries whose
                checkpoints are scopes.
        """
        raise BackendError(f"`checkpoint`: the backend {self.name!r} has no way to run a function again.", argument="f")

    def residuals(self, at, names: list[str]) -> list[Residual]:
        """The tensors that a reverse-mode derivative at a point saves.

        Args:
            names: what to call each of the point's inputs.
        """
        raise BackendError(
            f"`print_saved_residuals`: {self.name} does not say what its derivatives save.",
            argument="args",
            hint="make the arguments variables: `gradops.Variable(x)`",
        )

    def named(self, x, name: str):
        """Name ``x`` for the policy of the enclosing checkpointed function."""
        return x

    def checkpointed(self):
        """A scope whose tensors are recomputed in the backward pass, as far as the library can intercept them."""
        return contextlib.nullcontext()

    def hooked(self, pack: Callable, unpack: Callable):
        """Return a scope with hooks on the library's saved tensors, if it takes hooks."""
        return contextlib.nullcontext()

    def on_cpu(self, pin_memory: bool):
        """Return a scope with the library's saved tensors in the memory of the CPU, if it takes hooks."""
        return contextlib.nullcontext()

    def gradient(self, y, xs: list) -> list:
        """Gradients of a tensor that holds its own graph; None for inputs that it does not depend on."""
        raise GradientError(
            f"`y` is a {self.name} array, which does not know what it was computed from.",
            argument="y",
            hint="make `x` a variable: {variable}, or use {grad}",
            variable=VARIABLE,
            grad=GRAD,
        )

    def require(self, x) -> None:
        """Record gradients of ``x`` from here on."""
        raise GradientError(
            f"`x` must be a variable or a tensor whose library can mark it; got a {self.name} array, which cannot "
            "be marked.",
            argument="x",
            hint="make it a variable: {variable}",
            variable=VARIABLE,
        )

    def carried(self) -> Callable:
        """A function that returns a scope for another thread, to join this thread's derivatives."""
        return contextlib.nullcontext

    def use_one_thread(self) -> None:
        """Make the backward passes that this thread starts run on this thread alone."""

    def results_of(self, node) -> tuple:
        """Objects with the known shapes and dtypes of the results of a node of the library's own tape."""
        return ()

    def linear_solve(self, matvec: Callable, b, solve: Callable, transpose_solve: Callable | None):
        """``solve(matvec, b)`` as a linear function of ``b``; its transpose is ``transpose_solve(transpose, b)``.

        Without ``transpose_solve`` it has no transpose.

        NotImplemented: the caller uses a custom gradient.
        """
        return NotImplemented

    def together(self, xs, ts) -> bool:
        """True if ``ts`` and one of ``xs`` belong to one derivative, which needs its rules before the backward pass."""
        return False

    def records(self, x) -> bool:
        """True if a derivative is being recorded for ``x``, which reading its bare values would lose."""
        return False


class OnTape(Derivatives):
    """The tape's derivatives, for libraries without their own and for variables over any library."""

    native = False

    def __init__(self, name: str):
        super().__init__(name, None)

    def stop(self, x):
        return x

    def stopped(self):
        return contextlib.nullcontext()

    def compile(self, f: Callable) -> Callable:
        raise BackendError(f"`jit`: the backend {self.name!r} has no compiler.", argument="f")


def register_on_tape(function: Callable, name: str | None = None) -> Callable:
    """Register a function as the tape's member of the same name: how the higher floors fill in :class:`OnTape`."""
    setattr(OnTape, name or function.__name__, staticmethod(function))
    return function


tape = OnTape("variable")
"""The derivatives of variables."""
