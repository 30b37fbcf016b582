"""An op of a function, its kernels, and its rules."""

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
    """An op of a function: the public function to call, on tensors of every library, on variables, numbers and lists.

    Args:
        function: the op. Its parameters are annotated with :data:`Tensor`, :data:`Operand` (a Python number takes the
            dtype of the others), :data:`Tensors`, :data:`Indices`; one without annotation and without default is a
            ``Tensor``, any other a setting. Its body composes the op of other ops, for libraries without a kernel of
            it; a docstring alone, or ``...``, says that there are kernels alone.
        name: the op's name in messages, programs and graphs; by default that of the function after its package's.
            An op of the same name is replaced, so that a cell of a notebook may run again.
        differentiable: False for an op whose derivative is 0 wherever there is one: on variables it runs on their
            values and gives no gradient.
        **facts: its properties, from which the rest follows, see :class:`Facts`: ``elementwise=True``,
            ``moves=True``, ``reduces=True``, ``linear=("x",)``, ``multilinear=("x1", "x2")``. Nothing that is not
            so may be said: :func:`check` has each fact as a law.

    Returns:
        A function with the signature and docstring of ``function``; used as a decorator, with or without arguments.

    Raises:
        ArgumentTypeError: ``function`` is none; facts that there are not.
        ArgumentError: an op without a tensor argument, or linear in an argument that it does not have.

    Gradient:
        That of :func:`derivative`. Without, the derivative of the body; and where a library differentiates by itself,
        its own derivative of the kernel.

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
        record.forget(named)
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
        op: an op of :func:`op`.
        backend: the library, by its backend's name; it need not be installed.
        function: takes the op's arguments by position, tensors as the library's own, and settings; gives a tensor of
            the library, or a tuple of them. Left out, ``kernel`` is a decorator.

    Returns:
        None; as a decorator the function itself.

    Raises:
        ArgumentTypeError: ``op`` is no op of :func:`op`.

    Gradient:
        With :func:`derivative`, that; then the library's derivative of the kernel is never asked for, and it may be
        any function, of C or Fortran, say. Without, on the libraries that differentiate by themselves, theirs of the
        kernel; and on variables that of the op's body.

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
    """Define an op's derivative by each of its tensor arguments: on every library, to any order.

    Args:
        op: an op of :func:`op`.
        several: the op gives a tuple of results: ``g`` and ``y`` are then lists, and the rule minds conjugates itself.
        complex_aware: the rule minds conjugates itself; otherwise it is that of a holomorphic function.
        **rules: for an argument's name the gradient by it: a function of ``g``, the gradient of the op's result, and
            of the values it names: arguments by their names, the result as ``y``, the argument's ``shape``; ``shapes``
            for ``Tensors``, whose rule gives a list. It is made of ops, so that it serves all libraries and has
            derivatives itself. It need not sum over dimensions that were broadcast. An argument without a rule has no
            gradient.

    Raises:
        ArgumentTypeError: a rule for a name that is no tensor argument; one that is no function; one that asks for a
            value that is not there.

    Gradient:
        The rules'; their own derivatives are those of higher order. Variables save only the values that the
        rules name, and so do PyTorch's tensors; JAX and TensorFlow compute ``y`` again for it.
        Forward mode is the transpose of the rules, by an additional pass, unless the facts say that the op is linear.

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
    """Give ops of gradops the tape's rules also where a library differentiates by itself."""
    for name in names:
        entry = registry[name]
        entry.with_rule = _Ruled(entry, record.rules(name), True)
        entry.kernels.clear()


class _Ruled:
    """A decorator of kernels that gives them the rules of their op as derivative, in place of the library's own."""

    def __init__(self, entry: Op, rules: dict[str, Callable], minds_conjugates: bool):
        self.entry = entry
        self.rules = {name: (rule, list(inspect.signature(rule).parameters)[1:]) for name, rule in rules.items()}
        self.reads = {one for _, asked in self.rules.values() for one in asked}
        self.reads_result = "y" in self.reads
        self.minds_conjugates = minds_conjugates
        self._made: dict[tuple, Callable] = {}  # by the library, too: an op's body is the kernel of each

    def __call__(self, kernel: Callable, derivatives) -> Callable:
        key = kernel, derivatives
        if key not in self._made:
            general = custom_gradient(self._pair(kernel))
            if derivatives.own_tape and not derivatives.eager():  # a compiler reads no definition of a class, no cells
                return _either(derivatives, lambda *arguments: self(kernel, derivatives)(*arguments), general)
            general.is_closed = all(map(_is_closed, (kernel, *[rule for rule, _ in self.rules.values()])))
            own = self._function(kernel) if derivatives.own_tape else None
            self._made[key] = general if own is None else _either(derivatives, own, general)
        return self._made[key]

    def _pair(self, kernel: Callable) -> Callable:
        """The value and the gradient function: for any transformation."""
        entry = self.entry

        def pair(*arguments):
            def gradient(upstream):
                # computed again, as the op: the kernel's result has the kernel's derivative where there is one
                y = entry.call(*entry._as_called(arguments)[0]) if self.reads_result else None
                return tuple(self._gradients(upstream, y, arguments))

            return kernel(*arguments), gradient

        return pair

    def _function(self, kernel: Callable) -> Callable:
        """The same for a library whose tensors record themselves, which saves what the rules read."""
        gradients, parameters = self._gradients, self.entry.parameters
        reads, reads_result = self.reads, self.reads_result

        class Ruled(Function):
            """The op of its arguments one by one, also those in lists; ``counts`` says how many are in each list."""

            @staticmethod
            def forward(ctx, counts, *flat):
                y = kernel(*_in_lists(counts, flat))
                ctx.counts, ctx.several = counts, isinstance(y, (tuple, list))
                ctx.known = [_Shape(x) if backends.of(x) else x for x in flat]
                read = [x if name in reads else None for name, x in zip(_repeated(parameters, counts), flat)]
                results = [] if not reads_result else y if ctx.several else [y]
                ctx.save_for_backward(*[x if backends.of(x) else None for x in read], *results)
                return tuple(y) if ctx.several else y

            @staticmethod
            def backward(ctx, *gs):
                saved, size = ctx.saved_tensors, len(ctx.known)
                flat = [known if x is None else x for x, known in zip(saved, ctx.known)]
                g, y = (gs, saved[size:] or None) if ctx.several else (gs[0], saved[size] if reads_result else None)
                return (None, *_one_by_one(gradients(g, y, _in_lists(ctx.counts, flat)), ctx.counts)[1])

        Ruled.__name__ = Ruled.__qualname__ = self.entry.name

        def ruled(*arguments):
            counts, flat = _one_by_one(arguments)
            return Ruled.apply(counts, *flat)

        return ruled

    def _gradients(self, g, y, arguments) -> list:
        """The gradient by each argument, or None."""
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
    """True for a function whose closure can hold no tensor of a library that traces: functions like it, constants."""
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
    except ValueError:  # a cell that is not filled yet
        return False
    defaults = (*(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values())
    return all(_is_closed(part, (*within, x)) for part in (*held, *defaults))


def _either(derivatives, own: Callable, general: Callable) -> Callable:
    """``own`` where nothing but the library's tape looks on, else ``general``."""

    def ruled(*arguments):
        return own(*arguments) if derivatives.eager() else general(*arguments)

    return ruled


def _one_by_one(arguments, counts=None) -> tuple[tuple, list]:
    """The length of each argument that is a list, None for others; and all arguments in one list."""
    if counts is None:
        counts = tuple([len(a) if isinstance(a, (list, tuple)) else None for a in arguments])
    flat: list = []
    for count, argument in zip(counts, arguments):
        flat += [argument] if count is None else [None] * count if argument is None else argument
    return counts, flat


def _repeated(names, counts) -> list:
    """The name of each argument of those that :func:`_one_by_one` makes of the named ones."""
    return [name for name, count in zip(names, counts) for _ in range(1 if count is None else count)]


class _Shape:
    """The shape of a tensor, in the place of one that no rule reads."""

    def __init__(self, x):
        self.shape = tuple(x.shape)


def _in_lists(counts, flat) -> list:
    """The arguments of which :func:`_one_by_one` made ``flat``."""
    rest = iter(flat)
    return [next(rest) if count is None else [next(rest) for _ in range(count)] for count in counts]


def _annotated(function: Callable) -> Callable:
    """``function`` with its parameters without annotation and default annotated as tensors."""
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
            hint="an op of gradops itself is not changed: make one of your own of it",
            op=TypeOf(op),
        )
    return entry


# The libraries divide by gaps between eigenvalues that are roundings, and give numbers where there is no derivative.
rules_of_tape("eigh", "eig", "svd")
