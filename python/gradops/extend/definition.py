"""Definition of ops: from a Python function, with kernels for libraries and derivative rules.

:func:`op` registers a function as an op. :func:`derivative` registers its rules for the tape and wraps its kernels
(:class:`_Ruled`), so that libraries that differentiate by themselves use the same rules.
"""

from __future__ import annotations

import functools
import inspect
import keyword
import types
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from .. import backends
from ..autodiff import Function, record
from ..errors import ArgumentError, ArgumentTypeError, TypeOf, meant
from ..flow import custom_gradient
from ..ops import conj, dtype
from ..ops._dispatch import NUMBERS, Op, define, registry
from ..ops._registry import FACTS

F = TypeVar("F", bound=Callable)


def op(function: F | None = None, *, name: str | None = None, differentiable: bool = True, **facts) -> Any:
    """Make an op of a function; the result takes tensors of every library, variables, numbers and lists.

    Args:
        function: the op. Its parameters are annotated with :data:`Tensor`, :data:`Operand` (a Python number takes the
            dtype of the others), :data:`Tensors`, or :data:`Indices`. A parameter with neither annotation nor default
            is a ``Tensor``, any other a setting. The body composes the op of other ops, for libraries without a kernel
            for it; a docstring alone, or ``...``, means that there are only kernels.
        name: the op's name in messages, programs and graphs; by default the package's and the function's name.
            An op of the same name is replaced, so that a notebook cell can run again.
        differentiable: False for an op whose derivative is 0 wherever it exists: on variables it runs on their
            values and has no gradient.
        **facts: its properties, which gradops relies on, see :class:`Facts`: ``elementwise=True``,
            ``moves=True``, ``reduces=True``, ``linear=("x",)``, ``multilinear=("x1", "x2")``. They must be
            true; :func:`check` tests each one.

    Returns:
        A function with the signature and docstring of ``function``; used as a decorator, with or without arguments.

    Raises:
        ArgumentTypeError: ``function`` is not a function, or a fact is unknown.
        ArgumentError: an op without a tensor argument, or linear in an argument that it does not have.

    Gradient:
        As :func:`derivative` defines it. Without it, the derivative of the body; on libraries that differentiate by
        themselves, their own derivative of the kernel.

    Examples:
        >>> import gradops
        >>> from gradops import extend, ops
        >>> @extend.op(elementwise=True)
        ... def softsquare(x):
        ...     return ops.square(x) / (1 + ops.abs(x))
        >>> print(softsquare(3.0), gradops.grad(softsquare)(3.0))
        2.25 0.9375

    See Also:
        :func:`derivative`, :func:`kernel`, :func:`check`; :func:`gradops.custom_gradient`, for a function that need not
        be an op.
    """

    def decorate(function: F) -> F:
        if not inspect.isfunction(function):
            raise ArgumentTypeError(
                "`function` must be a Python function; got {function}.", argument="function", function=TypeOf(function)
            )
        unknown = sorted(set(facts) - set(FACTS))
        if unknown:
            hint = f"the facts are {', '.join(FACTS)}"
            raise ArgumentTypeError(
                f"`op` has no fact {unknown[0]!r}.", argument=unknown[0], hint=meant(unknown[0], FACTS) or hint
            )
        if name is not None and not isinstance(name, str):
            raise ArgumentTypeError("`name` must be text; got {name}.", argument="name", name=TypeOf(name))
        named = name or f"{function.__module__.partition('.')[0].strip('_')}.{function.__name__}"
        if not all(part.isidentifier() and not keyword.iskeyword(part) for part in named.split(".")):
            raise ArgumentError(f"`name` must be a Python name, or several with dots; got {named!r}.", argument="name")
        if named in registry and not hasattr(registry[named].call, "extends"):
            raise ArgumentError(
                f"`name`: gradops has an op {named!r}.", argument="name", hint="put your package's name before it"
            )
        backends.forget_kernels(named)
        try:
            entry = define(_annotated(function), named, differentiable, **facts)
        except ValueError as error:
            raise ArgumentError(str(error), argument="facts") from None
        if not entry.tensors:
            raise ArgumentError(
                f"`{function.__name__}` has no tensor argument.",
                argument="function",
                hint="annotate one with `extend.Tensor`, or leave out its default",
            )
        entry.call.extends = True  # type: ignore[attr-defined]
        return entry.call  # type: ignore[return-value]

    return decorate if function is None else decorate(function)


def kernel(op: Callable, backend: str, function: Callable | None = None) -> Any:
    """Register a library's own kernel for an op.

    Args:
        op: an op made by :func:`op`.
        backend: the name of the library's backend; it need not be installed.
        function: takes the op's arguments by position, the library's tensors and settings; returns a tensor of
            the library, or a tuple of tensors. If omitted, ``kernel`` is a decorator.

    Returns:
        None; as a decorator the function itself.

    Raises:
        ArgumentTypeError: ``op`` was not made by :func:`op`.

    Gradient:
        As :func:`derivative` defines it; the kernel itself is then never differentiated and may be
        any function, for example one in C or Fortran. Without it, libraries that differentiate by themselves
        differentiate the kernel, and variables use the op's body.

    Examples:
        >>> import gradops
        >>> from scipy import special
        >>> from gradops import extend, ops
        >>> @extend.op(elementwise=True)
        ... def erfcx(x): ...
        >>> extend.kernel(erfcx, "numpy", special.erfcx)
        >>> extend.derivative(erfcx, x=lambda g, x, y: g * (2 * x * y - 2 / 3.141592653589793**0.5))
        >>> print(erfcx(30.0).round(6), gradops.grad(erfcx)(30.0).round(6))
        0.018796 -0.000626

    See Also:
        :func:`derivative`, :func:`op`.
    """
    entry = entry_of(op)

    def register(function: Callable) -> Callable:
        if not callable(function):
            raise ArgumentTypeError(
                "`function` must be a function; got {function}.", argument="function", function=TypeOf(function)
            )
        backends.add_kernel(backend, entry.name, lambda _: function)
        entry.kernels.clear()
        return function

    if function is None:
        return register
    register(function)
    return None


def derivative(op: Callable, *, several: bool = False, complex_aware: bool = False, **rules: Callable) -> None:
    """Define an op's derivative with respect to each of its tensor arguments: on every library, to any order.

    Args:
        op: an op made by :func:`op`.
        several: True if the op returns a tuple: ``g`` and ``y`` are then lists, and the rule handles conjugates itself.
        complex_aware: True if the rule handles conjugates itself; otherwise it is that of a holomorphic function.
        **rules: for an argument's name the gradient with respect to it: a function of ``g``, the gradient of the op's
            result, and of the values it names: arguments by their names, the result as ``y``, the argument's ``shape``.
            For ``Tensors`` it may name ``shapes`` and returns a list. A rule is composed of ops, so that it serves all
            libraries and has derivatives itself. It need not sum over broadcast dimensions. An argument without a rule
            has no gradient.

    Raises:
        ArgumentTypeError: a rule for a name that is not a tensor argument, that is not a function, or that names a
            value that does not exist.

    Gradient:
        The rules'; higher orders differentiate the rules. Variables and PyTorch tensors save only the values that the
        rules name; JAX and TensorFlow recompute ``y`` for them.
        Forward mode is the transpose of the rules, by an additional pass, unless the facts declare the op linear.

    Examples:
        >>> import gradops
        >>> from gradops import extend, ops
        >>> @extend.op(elementwise=True)
        ... def step(x):
        ...     return ops.where(x > 0, 1.0, 0.0)
        >>> extend.derivative(step, x=lambda g, x: g * ops.exp(-ops.abs(x)))  # a surrogate, to train through
        >>> print(gradops.grad(step)(0.0), gradops.grad(gradops.grad(step))(1.0).round(4))
        1.0 -0.3679

    See Also:
        :func:`kernel`, :func:`check`, :func:`gradops.custom_gradient`.
    """
    entry = entry_of(op)
    known = {"shape", "shapes", "y", *entry.parameters}
    for argument, rule in rules.items():
        if argument not in entry.tensors:
            raise ArgumentTypeError(
                f"`{entry.name}` has no tensor argument `{argument}`.",
                argument=argument,
                hint=f"it has {', '.join(entry.tensors)}",
            )
        if not callable(rule):
            raise ArgumentTypeError(
                f"the rule for `{argument}` must be a function; got {{rule}}.", argument=argument, rule=TypeOf(rule)
            )
        asked = list(inspect.signature(rule).parameters)[1:]
        for name in asked:
            if name not in known:
                raise ArgumentTypeError(
                    f"the rule for `{argument}` asks for `{name}`, which `{entry.name}` does not have.",
                    argument=argument,
                    hint=f"after the gradient it may ask for {', '.join(sorted(known))}",
                )
    record.derivative(entry.name, several=several, complex_aware=complex_aware, **rules)
    entry.with_rule = _Ruled(entry, rules, several or complex_aware)
    entry.kernels.clear()


def rules_of_tape(*names: str) -> None:
    """Use the tape's rules for ops of gradops on libraries that differentiate by themselves as well."""
    for name in names:
        entry = registry[name]
        entry.with_rule = _Ruled(entry, entry.rules["vjp"].rules, True)
        entry.kernels.clear()


class _Ruled:
    """A decorator for kernels that replaces the library's own derivative by the rules of the op."""

    def __init__(self, entry: Op, rules: dict[str, Callable], minds_conjugates: bool):
        self.entry = entry
        self.rules = {name: (rule, list(inspect.signature(rule).parameters)[1:]) for name, rule in rules.items()}
        self.reads = {one for _, asked in self.rules.values() for one in asked}
        self.reads_result = "y" in self.reads
        self.minds_conjugates = minds_conjugates
        self._made: dict[tuple, Callable] = {}  # also by library, as an op's body may be the kernel of each

    def __call__(self, kernel: Callable, derivatives) -> Callable:
        key = kernel, derivatives
        if key not in self._made:
            general = custom_gradient(self._pair(kernel))
            if derivatives.own_tape and not derivatives.eager():  # Dynamo reads neither class definitions nor cells
                return _either(derivatives, lambda *arguments: self(kernel, derivatives)(*arguments), general)
            general.is_closed = all(map(_is_closed, (kernel, *[rule for rule, _ in self.rules.values()])))
            own = self._function(kernel) if derivatives.own_tape else None
            self._made[key] = general if own is None else _either(derivatives, own, general)
        return self._made[key]

    def _pair(self, kernel: Callable) -> Callable:
        """A function that returns the value and the gradient function, for any transform."""
        entry = self.entry

        def pair(*arguments):
            def gradient(upstream):
                # recomputed by the op, because the kernel's result may have the kernel's own derivative
                y = entry.call(*entry._public_arguments(arguments)[0]) if self.reads_result else None
                return tuple(self._gradients(upstream, y, arguments))

            return kernel(*arguments), gradient

        return pair

    def _function(self, kernel: Callable) -> Callable:
        """The kernel for a library whose tensors record themselves; it saves the values that the rules read."""
        gradients, parameters = self._gradients, self.entry.parameters
        reads, reads_result = self.reads, self.reads_result

        class Ruled(Function):
            """The op with flat arguments; ``counts`` has the lengths of arguments that are lists."""

            @staticmethod
            def forward(ctx, counts, *flat):
                y = kernel(*_regroup(counts, flat))
                ctx.counts, ctx.several = counts, isinstance(y, (tuple, list))
                ctx.known = [_Shape(x) if backends.backend_of(x) else x for x in flat]
                read = [x if name in reads else None for name, x in zip(_repeated(parameters, counts), flat)]
                results = [] if not reads_result else y if ctx.several else [y]
                ctx.save_for_backward(*[x if backends.backend_of(x) else None for x in read], *results)
                return tuple(y) if ctx.several else y

            @staticmethod
            def backward(ctx, *gs):
                saved, size = ctx.saved_tensors, len(ctx.known)
                flat = [known if x is None else x for x, known in zip(saved, ctx.known)]
                g, y = (gs, saved[size:] or None) if ctx.several else (gs[0], saved[size] if reads_result else None)
                return (None, *_one_by_one(gradients(g, y, _regroup(ctx.counts, flat)), ctx.counts)[1])

        Ruled.__name__ = Ruled.__qualname__ = self.entry.name

        def ruled(*arguments):
            counts, flat = _one_by_one(arguments)
            return Ruled.apply(counts, *flat)

        return ruled

    def _gradients(self, g, y, arguments) -> list:
        """The gradient with respect to each argument, or None."""
        if isinstance(g, tuple):
            g, y = list(g), None if y is None else list(y)
        conjugate = not self.minds_conjugates and dtype(g).startswith("complex")
        g = conj(g) if conjugate else g
        found: list = [None] * len(arguments)
        for i, (name, x) in enumerate(zip(self.entry.parameters, arguments)):
            if name not in self.rules or type(x) in NUMBERS:
                continue
            rule, asked = self.rules[name]
            about = {"y": y, **dict(zip(self.entry.parameters, arguments))}
            if "shape" in asked:
                about["shape"] = tuple(x.shape)
            if "shapes" in asked:
                about["shapes"] = [tuple(v.shape) for v in x]
            found[i] = rule(g, *[about[one] for one in asked])
            if conjugate and found[i] is not None:
                found[i] = conj(found[i])
        return found


def _is_closed(x, within: tuple = ()) -> bool:
    """True for a function whose closure holds only constants and such functions, so no tensor of a tracing library."""
    if x is None or isinstance(x, (str, bool, *NUMBERS, np.ndarray, np.ufunc, type, types.ModuleType)):
        return True
    if hasattr(x, "op") or x in within:
        return True
    if isinstance(x, tuple):
        return all(_is_closed(part, within) for part in x)
    if isinstance(x, functools.partial):
        return all(_is_closed(part, within) for part in (x.func, *x.args, *x.keywords.values()))
    if isinstance(x, types.BuiltinFunctionType):
        return True
    if not isinstance(x, types.FunctionType):
        return False
    try:
        held = [cell.cell_contents for cell in x.__closure__ or ()]
    except ValueError:  # an empty cell
        return False
    defaults = (*(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values())
    return all(_is_closed(part, (*within, x)) for part in (*held, *defaults))


def _either(derivatives, own: Callable, general: Callable) -> Callable:
    """``own`` if only the library's tape is active, otherwise ``general``."""

    def ruled(*arguments):
        return own(*arguments) if derivatives.eager() else general(*arguments)

    return ruled


def _one_by_one(arguments, counts=None) -> tuple[tuple, list]:
    """The length of each argument that is a list, None for others; and all arguments in one flat list."""
    if counts is None:
        counts = tuple([len(a) if isinstance(a, (list, tuple)) else None for a in arguments])
    flat: list = []
    for count, argument in zip(counts, arguments):
        flat += [argument] if count is None else [None] * count if argument is None else argument
    return counts, flat


def _repeated(names, counts) -> list:
    """The name of the original argument for each of the flat arguments of :func:`_one_by_one`."""
    return [name for name, count in zip(names, counts) for _ in range(1 if count is None else count)]


class _Shape:
    """The shape of a tensor, as a stand-in for a tensor that no rule reads."""

    def __init__(self, x):
        self.shape = tuple(x.shape)


def _regroup(counts, flat) -> list:
    """The inverse of :func:`_one_by_one`."""
    rest = iter(flat)
    return [next(rest) if count is None else [next(rest) for _ in range(count)] for count in counts]


def _annotated(function: Callable) -> Callable:
    """``function`` with parameters that have neither annotation nor default annotated as tensors."""
    for parameter in inspect.signature(function).parameters.values():
        if parameter.annotation is parameter.empty and parameter.default is parameter.empty:
            function.__annotations__[parameter.name] = "Tensor"
    return function


def entry_of(op: Callable) -> Op:
    entry = getattr(op, "op", None)
    if not isinstance(entry, Op) or not hasattr(op, "extends"):
        raise ArgumentTypeError(
            "`op` must be an op that `extend.op()` made; got {op}.",
            argument="op",
            hint="ops of gradops itself cannot be changed: make your own op from it",
            op=TypeOf(op),
        )
    return entry


# The libraries divide by gaps between eigenvalues that are rounding errors, and return numbers without a derivative.
rules_of_tape("eigh", "eig", "svd")
