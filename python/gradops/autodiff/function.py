"""``Function``: an operation with user-defined forward and backward, for variables and torch tensors alike.

On torch tensors the class becomes a ``torch.autograd.Function`` (:mod:`.torch_tape`), on JAX and TensorFlow arrays a
custom gradient (:func:`_native`), and on variables one node of the tape (:class:`_Application`).
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from .. import backends, dtypes
from .._names import add_elsewhere
from .._scopes import changed
from ..errors import ArgumentTypeError, GradientError, MixedBackendsError, Position, TypeOf
from ..ops import creation
from . import inplace, state, structured_function, torch_tape
from .cotangents import fit, given_for, given_in, is_complex, one_for_each, zeros
from .engine import given, lent, rejoined
from .graph import PICK, Cotangents, Node, Rule
from .modes import no_grad, recording
from .variable import Variable, attach, attach_new, data_of, differentiable, edges_of, is_active, wrap


class Context:
    """The context that ``forward`` passes to ``backward``; other values may be stored on it as attributes.

    Attributes:
        saved_tensors: the saved values, as variables.
        needs_input_grad: for each argument of ``forward``, True if its gradient will be used.
    """

    needs_input_grad: tuple[bool, ...] = ()
    _to_save: tuple = ()
    _dirty: tuple = ()
    _constants: tuple = ()
    _materialize: bool = True
    _saved: tuple | None = None

    def save_for_backward(self, *tensors) -> None:
        """Save inputs, outputs or intermediate values (or None) for ``backward``.

        Unlike attributes of the context, they are checked for later in-place writes and are freed with the graph. If
        the gradient is itself differentiated, they are connected to the inputs; for intermediate variables ``forward``
        runs again, recorded. Call it once.
        """
        self._to_save = tensors

    @property
    def saved_tensors(self) -> tuple:
        """The values passed to :meth:`save_for_backward`, during ``backward``.

        Raises:
            GradientError: outside a backward pass.
        """
        if self._saved is None:
            raise GradientError("`saved_tensors` are available during `backward` only.")
        return self._saved

    def mark_dirty(self, *tensors) -> None:
        """Declare the inputs that ``forward`` changed in place; it must return them. Call it once."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors) -> None:
        """Declare the outputs that have no gradient; ``backward`` gets zeros for them."""
        self._constants = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Choose whether ``backward`` gets zeros, the default, or None for outputs that nothing depended on.

        For arrays of JAX and TensorFlow it always gets zeros, because the libraries pass zeros.
        """
        self._materialize = bool(value)


add_elsewhere(Context, {"saved_variables": "ctx.saved_tensors", "saved_values": "ctx.saved_tensors"})


class Function:
    """An operation with a user-defined gradient. Subclass it and call ``apply``.

    Define either ``forward(ctx, *inputs)``, or ``forward(*inputs)`` and ``setup_context(ctx, inputs, output)``;
    and ``backward(ctx, *gradients)``, which gets one gradient for each output and returns one for each
    input, or None. All are static methods. ::

        class Cube(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x**3

            @staticmethod
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                return 3 * x**2 * g

        y = Cube.apply(x)

    ``forward`` runs without recording. ``x`` may be a variable (over NumPy, JAX, TensorFlow or text), a torch
    tensor, for which the class becomes a ``torch.autograd.Function``, or an array of JAX or
    TensorFlow, for which it becomes a custom gradient. ``forward`` and ``backward`` see the
    caller's tensors: variables for variables, torch tensors for torch tensors; for variables they may return plain
    arrays.

    Raises:
        GradientError: from ``apply``: an output is marked dirty but is not an input, or a dirty input is a
            leaf requiring a gradient; in the backward pass: the wrong number of gradients, or one for an input
            that is not a tensor.
        ShapeError: a gradient cannot be reduced to its input's shape.

    Gradient:
        ``backward``'s; differentiable again if ``backward`` consists of recorded operations, unless it is
        decorated with :func:`once_differentiable`. After ``torch.autograd.Function``.

    Examples:
        A ReLU with a small gradient below 0:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import autodiff, ops
        >>> class LeakyBackward(autodiff.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return ops.maximum(x, 0.0)
        ...     @staticmethod
        ...     def backward(ctx, upstream):
        ...         (x,) = ctx.saved_tensors
        ...         return ops.where(x > 0, upstream, 0.1 * upstream)
        >>> print(gradops.grad(lambda x: ops.sum(LeakyBackward.apply(x)))(np.array([-1.0, 2.0])))
        [0.1 1. ]

    See Also:
        :func:`gradops.custom_gradient`, which needs no class; :func:`once_differentiable`.
    """

    evaluator = False
    """True if its result, a text, evaluates its inputs: ``backward()`` then starts with that text."""

    @staticmethod
    def forward(*args):
        raise NotImplementedError("a Function must define `forward`.")

    @staticmethod
    def setup_context(ctx, inputs: tuple, output) -> None:
        raise NotImplementedError

    @staticmethod
    def backward(ctx, *gradients):
        raise NotImplementedError("a Function must define `backward` to be differentiated.")

    def __init__(self):
        raise ArgumentTypeError(f"{type(self).__name__} is called as `{type(self).__name__}.apply(...)`.")

    @classmethod
    def apply(cls, *args, **keywords) -> Any:
        """Run ``forward`` on the arguments, recorded as one operation; lists and dicts may contain variables."""
        if keywords or _leaves_out(cls, args):
            args, keywords = structured_function.positional_arguments(
                _forward(cls), args, keywords, _setup(cls) is not None
            )
        if keywords or any(isinstance(a, _CONTAINERS) and structured_function.holds_variables(a) for a in args):
            flat, inner = structured_function.flat_form(Function, cls, args, keywords)
            return flat.apply(*inner)  # type: ignore[attr-defined]
        kinds = {type(data_of(a)) for a in args}
        owner = backends.common_with_text(kinds, cls.__name__)
        variables = any(isinstance(a, Variable) for a in args)
        if variables and owner is not None and owner.derivatives.own_tape:
            raise MixedBackendsError(
                f"`{cls.__name__}`: torch tensors and variables cannot be in one graph; got both.",
                hint="use torch tensors only, or variables on their values: `Variable(tensor.numpy())`",
            )
        if owner is not None and not variables:
            if owner.derivatives.own_tape:
                return owner.derivatives.apply(torch_tape.function_class(cls, _setup(cls)), args)
            if owner.derivatives.native:
                return _native(cls, owner, args)
        return _apply(cls, args)


_CONTAINERS = (list, tuple, dict)


def _setup(cls) -> Callable | None:
    """The class's own ``setup_context``, if it has one."""
    return None if cls.setup_context is Function.setup_context else cls.setup_context


def _leaves_out(cls, args: tuple) -> bool:
    """True if a class whose ``setup_context`` gets all inputs is applied to fewer than ``forward`` can take."""
    code = getattr(cls.forward, "__code__", None)
    return _setup(cls) is not None and code is not None and code.co_argcount > len(args)


def _forward(cls) -> Callable:
    """``forward`` as it is called, without ``ctx``."""
    return cls.forward if cls.setup_context is not Function.setup_context else functools.partial(cls.forward, None)


def _runs(cls) -> Callable:
    """A function of ``(ctx, args)`` that returns the output, for either of the two styles."""
    if cls.setup_context is Function.setup_context:
        return cls.forward

    def forward(ctx, *args):
        output = cls.forward(*args)
        cls.setup_context(ctx, args, output)
        return output

    return forward


def _apply(cls, args: tuple):
    edges = edges_of(args)
    active = recording.get() and any(edge is not None for edge in edges)
    # `forward` runs without recording, so an enclosing derivative would not learn that it read these.
    state.read(*edges)
    ctx = Context()
    ctx.needs_input_grad = tuple(edge is not None for edge in edges)
    with _unrecorded(args):
        output = _runs(cls)(ctx, *args)
    dirty = _dirty_inputs(cls, ctx, args)
    if not any(isinstance(a, Variable) for a in args):
        return output
    several = isinstance(output, (tuple, list))
    outputs = list(output) if several else [output]
    if not dirty <= {id(o) for o in outputs}:
        raise GradientError(f"{cls.__name__}: an input that is marked dirty must be returned.")
    data = _data_of_outputs(cls, args, outputs, dirty)
    if not active:
        results = [o if id(o) in dirty else _plain(o, d) for o, d in zip(outputs, data)]
    else:
        constants = {id(t) for t in ctx._constants}
        results = _record(cls, ctx, args, edges, outputs, data, constants, dirty)
    return type(output)(results) if type(output) is list else tuple(results) if several else results[0]


def _unrecorded(args) -> AbstractContextManager[Any]:
    """The scope for ``forward``: it records no gradient, but Taylor mode keeps its series."""
    wrapped = any(owner is not None and owner.wraps for owner in map(backends.backend_of, map(data_of, args)))
    return changed(recording, False) if wrapped else no_grad()


def _dirty_inputs(cls, ctx: Context, args: tuple) -> set[int]:
    """The identities of the inputs that ``forward`` changed in place.

    Raises:
        GradientError: a dirty tensor is not an input, or is a leaf that requires a gradient.
    """
    dirty = {id(t) for t in ctx._dirty}
    if dirty:
        if not dirty <= {id(a) for a in args}:
            raise GradientError(f"{cls.__name__}: `mark_dirty` takes inputs only.")
        for a in args:
            if id(a) in dirty and isinstance(a, Variable):
                inplace.refuse_leaf(a)
    return dirty


def _data_of_outputs(cls, args: tuple, outputs: list, dirty: set[int]) -> list:
    """The arrays of the outputs, each in its own memory.

    ``forward`` may return an input, or a view of one. A result on an argument's memory would change when the argument
    is written in place, so it is copied; an input that is marked dirty is the result itself.
    """
    data = [_data(o) for o in outputs]
    if cls.evaluator:
        data = [backends.lookup("text").kernel("verdict")(d) for d in data]
    own = [a.data for a in args if isinstance(a, Variable) and isinstance(a.data, np.ndarray)]
    for i, (o, d) in enumerate(zip(outputs, data)):
        if isinstance(d, np.ndarray) and id(o) not in dirty and any(np.may_share_memory(d, x) for x in own):
            data[i] = d.copy()
    return data


def _data(output):
    if isinstance(output, Variable):
        return output.data
    if output is None or backends.backend_of(output) is not None:
        return output
    if isinstance(output, (str, bool, int, float, complex)):
        return Variable(output).data
    return output


def _plain(output, data):
    """An output without gradient: never an input itself, so that changes to it do not change the input."""
    return wrap(data) if isinstance(output, Variable) or backends.backend_of(data) is not None else output


class _Application:
    """One application of a ``Function`` in the graph: exactly what its node needs to run ``backward``."""

    def __init__(self, cls, ctx, args, edges, outputs, data, dirty, places: list[int]):
        self.cls, self.ctx, self.places, self.count = cls, ctx, places, len(outputs)
        self.single = self.count == 1 and len(places) == 1
        self.materialize = ctx._materialize
        self.templates = [
            (d.shape, d.dtype, backends.backend_of(d)) if backends.backend_of(d) is not None else None for d in data
        ]
        self.about = [_about(a) if isinstance(a, Variable) else None for a in args]
        self.sources = [_source(tensor, args, edges, outputs, dirty) for tensor in ctx._to_save]
        known = {id(x) for x in (*args, *outputs)}
        saved = () if getattr(cls.backward, "once", False) else (*ctx._to_save, *vars(ctx).values())
        self.between = any(id(x) not in known and _is_between(x) for x in saved)
        self.args = [data_of(a) if e is not None else a for a, e in zip(args, edges)] if self.between else []
        self.writes = bool(dirty)

    def vjp(self, g, values, node) -> list:
        gradients = self._given(g)
        ctx, saved = self.ctx, tuple(_rejoined(v, s, node, self.single) for v, s in zip(values, self.sources))
        token = state.moment.set(node.seq)
        try:
            if self.between and recording.get():
                ctx, saved = self._connected(saved, node)
            ctx._saved = saved
            result = self.cls.backward(ctx, *map(_as_variable, gradients))
            return [lent(g) for g in _gradients(self.cls, result, self.about, node.edges)]
        finally:
            ctx._saved = None
            state.moment.reset(token)

    def _connected(self, saved: tuple, node) -> tuple[Context, tuple]:
        """Run ``forward`` again, recorded; return its context and saved values, connected to the inputs.

        Raises:
            GradientError: ``forward`` writes to an input, or another run of it gives another value.
        """
        if self.writes:
            raise torch_tape.unknown_derivative(self.cls, "writes to an input in place")
        again, connected = Context(), copy.copy(self.ctx)
        again.needs_input_grad = self.ctx.needs_input_grad
        inputs = [a if e is None else rejoined(a, e) for a, e in zip(self.args, node.edges)]
        _runs(self.cls)(again, *inputs)
        values = [
            self._same(v, x) if source == ("constant", 0) else v
            for v, x, source in zip(saved, again._to_save, self.sources)
        ]
        for name, x in vars(again).items():
            if _is_between(before := vars(connected).get(name)):
                setattr(connected, name, self._same(before, x))
        return connected, tuple(values)

    def _same(self, before, again):
        """The second run's value if it depends on the inputs, otherwise the first run's."""
        if not isinstance(again, Variable) or not is_active(again):
            return before
        owner = backends.backend_of(again.data)
        if owner.wraps or owner.derivatives.records(again.data) or hasattr(again.data, "_superseded"):
            return again  # values cannot be read
        first, second = [owner.to_numpy(data_of(x)) for x in (before, again)]
        if not np.array_equal(first, second, equal_nan=True):
            raise torch_tape.unknown_derivative(self.cls, "gives another value when it runs again")
        return again

    def _given(self, g) -> list:
        """The gradient that arrived for each output."""
        given: list = [None] * self.count
        if type(g) is Cotangents:
            for position, part in g.items():
                given[position] = part
        elif self.single:
            given[self.places[0]] = g
        if self.materialize:
            given = [zeros(t) if part is None and t is not None else part for part, t in zip(given, self.templates)]
        return given


def _is_between(x) -> bool:
    """True if a saved value may be an intermediate result of ``forward``, which has no recorded derivative."""
    return (
        isinstance(x, Variable)
        and not is_active(x)
        and backends.backend_of(x.data) is not None
        and differentiable(x.data)
    )


def _as_variable(g):
    """A gradient for ``backward``, which may write to it."""
    if g is None:
        return None
    own = given(g)
    return own if isinstance(own, Variable) else wrap(own)


def _record(cls, ctx, args, edges, outputs, data, constants, dirty) -> list:
    places = [
        i
        for i, (o, d) in enumerate(zip(outputs, data))
        if id(o) not in constants and backends.backend_of(d) is not None and differentiable(d)
    ]
    this = _Application(cls, ctx, args, edges, outputs, data, dirty, places)
    # Values are stored apart from their sources. The node stores arrays: a variable of its own result would refer back
    # to the node, a cycle that only Python's garbage collector frees.
    saved = tuple(data_of(tensor) for tensor in ctx._to_save)
    ctx._to_save = ()
    rule = Rule(cls.__name__, vjp=this.vjp, slots=(None,) * len(saved))
    if this.single:
        node = Node(rule, edges, saved, data[0].shape, data[0].dtype)
    else:
        node = Node(rule, edges, saved, None, None)
        node.extra = None
    return [
        _result(output, value, node, i, this.single, dirty) if i in places else _plain(output, value)
        for i, (output, value) in enumerate(zip(outputs, data))
    ]


def _result(output, value, node: Node, i: int, single: bool, dirty):
    """An output in the graph; an output that was written in place remains the same variable."""
    made = node if single else Node(PICK, (node,), (i,), value.shape, value.dtype)
    if id(output) not in dirty:
        return attach(value, made)
    inplace._propagate(output, made)
    if isinstance(value, np.ndarray):
        state.bump(value)
    return output


def _source(tensor, args, edges, outputs, dirty):
    """The source of a saved tensor: ``("input", i)``, ``("output", i)`` or None for a constant."""
    if tensor is None:
        return None
    for i, a in enumerate(args):
        if tensor is a and isinstance(a, Variable) and id(a) not in dirty:
            return ("input", i) if edges[i] is not None else ("constant", 0)
    for i, o in enumerate(outputs):
        if tensor is o:
            return ("output", i)
    return ("constant", 0) if isinstance(tensor, Variable) else None


def _about(variable: Variable) -> tuple:
    role = variable.role if variable.dtype is str else variable._role
    return variable.shape, role, variable.dtype, backends.backend_of(variable.data)


def _rejoined(value, source, node: Node, single: bool):
    """A saved value for ``backward``, connected to the graph if the pass is recorded."""
    if source is None:
        return value
    kind, i = source
    if not recording.get() or kind == "constant":
        return wrap(value)
    if kind == "output":
        return attach(value, node if single else Node(PICK, (node,), (i,), value.shape, value.dtype))
    return rejoined(value, node.edges[i])


def _gradients(cls, result, about, edges) -> list:
    """The checked gradients that ``backward`` returned: raw data, or variables in a pass that is recorded."""
    gradients = one_for_each(result, len(about), f"{cls.__name__}.backward", "input of `forward`")
    return [_gradient(cls, i, g, a, e) for i, (g, a, e) in enumerate(zip(gradients, about, edges))]


def _gradient(cls, i: int, g, about, edge):
    if g is None:
        return None
    if about is None:
        raise GradientError(
            f"{cls.__name__}.backward returned a gradient for input {{i}}, which is not a variable.",
            hint="return {None} for it",
            i=Position(i),
        )
    if edge is None:
        return None
    shape, role, dtype, owner = about
    if dtype in state.special:
        return state.special[dtype].convert(g, role)
    if isinstance(g, (int, float, complex)) and not isinstance(g, np.generic):  # NumPy scalars have a shape
        g = owner.convert(np.full(shape, g))
    elif not isinstance(g, Variable) and backends.backend_of(g) is None:
        raise ArgumentTypeError(
            f"{cls.__name__}.backward must return tensors or {{None}}; got {{g}} for input {{i}}.",
            g=TypeOf(g),
            i=Position(i),
        )
    elif isinstance(g, Variable) and not recording.get():
        g = g.data
    if is_complex(g.dtype) and not is_complex(dtype):
        g = given_in(g, dtypes.canonical(dtype), f"{cls.__name__}.backward")
    return given_for(g, shape, f"{cls.__name__}.backward", "input {i}", i=Position(i))


def once_differentiable(backward: Callable) -> Callable:
    """A decorator for a ``backward`` that cannot be differentiated: doing so raises an error, instead of being wrong.

    Raises:
        GradientError: (a RuntimeError) when its result is differentiated.

    Examples:
        >>> import gradops
        >>> from gradops import autodiff
        >>> class Square(autodiff.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x * x
        ...     @staticmethod
        ...     @autodiff.once_differentiable
        ...     def backward(ctx, upstream):
        ...         (x,) = ctx.saved_tensors
        ...         return 2 * x * upstream
        >>> print(gradops.grad(Square.apply)(3.0))
        6.0
        >>> gradops.grad(gradops.grad(Square.apply))(3.0)
        Traceback (most recent call last):
            ...
        gradops.errors.GradientError: this gradient was marked once_differentiable: it cannot be differentiated again...

    See Also:
        :class:`Function`.
    """

    @functools.wraps(backward)
    def wrapped(ctx, *gradients):
        if not isinstance(ctx, Context):
            return torch_tape.once_differentiable(backward)(ctx, *gradients)
        with no_grad():
            result = backward(ctx, *gradients)
        inputs = (*gradients, *(ctx._saved or ()))
        edges = tuple(g._node or g for g in inputs if is_active(g))
        if not recording.get() or not edges:
            return result
        rule = Rule("once_differentiable", vjp=_refuse)

        def cut(g):
            if g is None or isinstance(g, str):
                return g
            data = data_of(g)
            return attach_new(data, rule, edges, ())

        return type(result)(map(cut, result)) if isinstance(result, (tuple, list)) else cut(result)

    wrapped.once = True  # type: ignore[attr-defined]
    return wrapped


def _refuse(g, saved, node):
    raise GradientError("this gradient was marked once_differentiable: it cannot be differentiated again.")


def _native(cls, owner, args: tuple):
    """The class as a custom gradient of JAX or TensorFlow, in terms of variables over the library's arrays."""
    places = [i for i, a in enumerate(args) if backends.backend_of(a) is owner]
    box: dict[str, Any] = {}

    def run(*inputs):
        filled = list(args)
        for i, x in zip(places, inputs):
            filled[i] = wrap(x)
        about = [_about(a) if i in places else None for i, a in enumerate(filled)]
        likes = [a.data if i in places and differentiable(a.data) else None for i, a in enumerate(filled)]
        ctx = Context()
        ctx.needs_input_grad = tuple(like is not None for like in likes)
        with _unrecorded(filled):
            output = _runs(cls)(ctx, *filled)
        if ctx._dirty:
            raise GradientError(
                f"{cls.__name__}: `mark_dirty` of an array of {owner.name}, which cannot be changed in place.",
                hint="return a new one, or pass a `Variable` on it",
            )
        box["several"] = isinstance(output, (tuple, list))
        outputs = list(output) if box["several"] else [output]
        constants = {id(t) for t in ctx._constants}
        box["constants"] = [id(o) in constants for o in outputs]
        saved = ctx._to_save
        results = {id(o): i for i, o in enumerate(outputs) if not any(o is a for a in filled)}
        of_results = [results.get(id(tensor)) for tensor in saved]

        def linked() -> tuple:
            """The saved values; results are recomputed from the inputs, so that `backward` gives their derivative."""
            if all(i is None for i in of_results) or not any(map(owner.derivatives.records, inputs)):
                return tuple(saved)
            again = list(args)
            for i, x in zip(places, inputs):
                again[i] = x
            found = _native(cls, owner, tuple(again))
            found = found if box["several"] else (found,)
            return tuple([x if i is None else wrap(found[i]) for x, i in zip(saved, of_results)])

        def pull(upstreams):
            given = [creation.zeros_like(u) if c else u for u, c in zip(upstreams, box["constants"])]
            ctx._saved = linked()
            try:
                found = _gradients(cls, cls.backward(ctx, *map(wrap, given)), about, likes)
            finally:
                ctx._saved = None
            arrays = [_library_gradient(found[i], likes[i], owner) for i in places]
            return _cut(owner, arrays) if getattr(cls.backward, "once", False) else arrays

        return [owner.convert(_data(o)) for o in outputs], pull

    values = owner.derivatives.custom(run, [args[i] for i in places])
    values = [owner.derivatives.stop(v) if c else v for v, c in zip(values, box["constants"])]
    return tuple(values) if box["several"] else values[0]


def _library_gradient(g, like, owner):
    """A gradient as an array of the library, in the shape and dtype of its input."""
    if g is None:
        return None
    g = data_of(g)
    return fit(g if backends.backend_of(g) is owner else owner.convert(g), like)


def _cut(owner, gradients: list) -> list:
    """Gradients that raise an error when they are differentiated, in a library's own derivatives."""
    there = [g for g in gradients if g is not None]
    found = iter(owner.derivatives.custom(lambda *gs: (list(gs), lambda upstreams: _refuse(*[None] * 3)), there))
    return [None if g is None else next(found) for g in gradients]
