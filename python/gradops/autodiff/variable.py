"""``Variable``: an array (NumPy, JAX, TensorFlow) or a text whose operations are recorded on the tape.

A variable is its data and its place in the graph (``_node``; None for a leaf). Higher floors add methods with
:func:`method`; :func:`wrap`, :func:`attach` and :func:`attach_new` make variables without the constructor's checks.
"""

from __future__ import annotations

import copy as _copy
import operator
import warnings
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import backends, config, dtypes
from ..backends.interface import known
from ..errors import ArgumentError, ArgumentTypeError, BackendError, Given, GradientError, Item, ShapeError, TypeOf
from ..ops import conversion, scipy_functions
from ..ops._checks import check_flags, plain_hint
from ..ops._dispatch import facts_of
from . import state
from .graph import ALIAS, Node
from .initial_gradients import no_gradient
from .modes import lose_gradient, recording
from .state import clock, leavers, packers, watchers

if TYPE_CHECKING:
    from ._methods import Methods
else:
    Methods = object  # `give()` and higher floors add these; tools/stubs writes them for type checkers

_READING_TEXT = "`x.item()` and `x.tolist()` read it; its methods and `gradops.text` keep the feedback"


class Variable(Methods):
    """A tensor whose operations are recorded on the tape.

    Args:
        data: an array of NumPy, JAX or TensorFlow, a number, a nested list, a string or a list of
            strings. Numbers and lists are converted to the default backend. Arrays are not copied.
        requires_grad: True to accumulate gradients into ``grad``. Needs a floating or complex dtype, or text.
        role: the purpose of a text; it is included in feedback on the text.

    Attributes:
        data: the array or string itself. Writing to it, as an optimiser does, is not recorded. The new value may be
            anything that the constructor takes, or a variable; a text keeps its role.
        grad: the accumulated gradient, a variable, or None; for a text the feedback on it.
        role: the purpose; the result of an operation combines the roles of its arguments.

    Raises:
        ArgumentTypeError: data that are not an array, number, list or string, or have a dtype without gradients.
        BackendError: a torch tensor, which needs no variable: torch's autograd records it.

    Gradient:
        Reverse mode over recorded operations, as in PyTorch's autograd (Paszke et al. 2017).

    Examples:
        >>> import gradops
        >>> x = gradops.Variable([1.0, 2.0, 3.0], requires_grad=True)
        >>> y = (x**2).sum()
        >>> y.backward()
        >>> print(x.grad.numpy())
        [2. 4. 6.]

        Gradient descent, with steps that are not recorded:

        >>> w = gradops.Variable(0.0, requires_grad=True)
        >>> for _ in range(50):
        ...     loss = (w - 3.0) ** 2
        ...     loss.backward()
        ...     w.data = w.data - 0.1 * w.grad.data
        ...     w.grad = None
        >>> print(w.data.round(3))
        3.0

    See Also:
        :class:`Parameter`, :func:`gradops.autodiff.backward`, :func:`gradops.grad` for functions of plain arrays.
    """

    _active: bool = False
    retains_grad: bool = False
    _grad: Variable | None = None
    _role: str | None = None
    _node: Node | None = None
    _hooks: dict | None = None
    _after: dict | None = None
    _given: bool = False  # True if it is an argument of a function being differentiated

    # Methods that higher floors add with :func:`method`.
    backward: Callable[..., None]
    register_hook: Callable[..., Any]
    register_post_accumulate_grad_hook: Callable[..., Any]
    retain_grad: Callable[..., None]

    def __init__(self, data: Any = "", requires_grad: bool = False, role: str | None = None):
        self._value = _as_data(data)
        if isinstance(requires_grad, str):
            raise ArgumentTypeError(
                "`requires_grad` must be {True} or {False}; got {given}.",
                argument="requires_grad",
                hint="the role goes by name: `role=...`",
                given=Given(repr(requires_grad), requires_grad),
            )
        check_flags(type(self).__name__, requires_grad=requires_grad)
        if role is not None:
            self.role = role
        if requires_grad:
            self.requires_grad_()

    def _set_data(self, value) -> None:
        new = _as_data(value)
        if (new.dtype is str) is not (self.dtype is str):
            raise ArgumentTypeError(
                f"`data` must stay {_kind(self._value)}; got {_kind(new)}.",
                argument="data",
                hint="make another variable",
            )
        if self._active and not differentiable(new):
            raise ArgumentTypeError(
                f"`data`: only floating and complex tensors and text have gradients; got dtype {new.dtype}.",
                argument="data",
            )
        self._value = new.in_role_of(self._value) if new.dtype is str else new

    data: Any = property(attrgetter("_value"), _set_data)

    @property
    def grad(self) -> Variable | None:
        """The accumulated gradient of a leaf, or of a result after :meth:`retain_grad`.

        An assigned array becomes a variable. It must have the data's shape and dtype, keeps its strides, and
        later backward passes add to it in place. Numbers and lists take the data's dtype. For a text, assign
        remarks: a string, or a list of strings.
        """
        if self._grad is None and self._node is not None and not self.retains_grad:
            warnings.warn("`grad` of the result of an operation is not kept; call `retain_grad()`.", stacklevel=2)
        return self._grad

    @grad.setter
    def grad(self, value) -> None:
        special = state.special.get(self.dtype)
        if value is None or special is not None:
            self._grad = None
            if value is not None and special is not None:
                self._grad = special.accumulate(self, value)
            return
        if not isinstance(value, Variable):
            owner, mine = backends.backend_of(value), _owner(self.data)
            try:
                if owner is not mine:
                    value = mine.convert(value, mine.dtype_name(self.data) if owner is None else None)
            except (TypeError, ValueError) as error:
                raise no_gradient("grad", value) from error
            value = Variable(value)
        if value.shape != self.shape:
            raise ShapeError(f"`grad` must have the shape {self.shape}; got {value.shape}.", argument="grad")
        if value.dtype != self.dtype:
            raise ArgumentTypeError(
                f"`grad` must have the variable's dtype {self.dtype}; got {value.dtype}.",
                argument="grad",
                hint="cast it, e.g. with `gradops.ops.cast()`",
            )
        self._grad = value

    @property
    def requires_grad(self) -> bool:
        """True if a gradient flows to or through it; set by :meth:`requires_grad_`."""
        return self._active

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    @property
    def role(self) -> str | None:
        if self._role or self._node is None or self.dtype is str:
            return self._role or getattr(self._value, "role", None)
        return _words(dict.fromkeys(_roles_below(self._node)))

    @role.setter
    def role(self, value: str | None) -> None:
        check_role(value)
        if hasattr(self._value, "with_role"):
            self._value = self._value.with_role(value)
        else:
            self._role = value

    @property
    def grad_fn(self) -> Node | None:
        """The recorded operation that made this variable; None for a leaf."""
        return self._node

    @property
    def is_leaf(self) -> bool:
        """True if the user made it, not a recorded operation."""
        return self._node is None

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions; ``()`` for text."""
        return tuple(getattr(self._value, "shape", ()))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return conversion.size(self)

    @property
    def dtype(self) -> Any:
        """The data's own dtype object; ``str`` for text."""
        return getattr(self._value, "dtype", str)

    def detach(self) -> Variable:
        """A variable on the same data, disconnected from the graph and from the library's own derivatives."""
        if self._active:
            for see in leavers:
                see(self)
        data = self._value
        if data.__class__ is not np.ndarray:
            owner = backends.backend_of(data)
            if owner is not None and owner.derivatives.records(data):  # by an enclosing tracer or tape
                data = owner.derivatives.stop(data)
        return wrap(data)

    def detach_(self) -> Variable:
        """Disconnect this variable from the graph, in place.

        Raises:
            GradientError: it is a view of another variable.
        """
        self._node = None
        self._active = False
        return self

    def requires_grad_(self, requires_grad: bool = True) -> Variable:
        """Request gradients, or stop requesting them, in place.

        Raises:
            GradientError: it is the result of a recorded operation, for which gradients cannot be switched off.
            ArgumentTypeError: an integer or bool dtype.
        """
        check_flags("requires_grad_", requires_grad=requires_grad)
        if self._node is not None:
            if not requires_grad:
                raise GradientError(
                    "`requires_grad` of the result of an operation cannot be switched off.", hint="use `detach()`"
                )
            return self
        if requires_grad and not differentiable(self.data):
            raise no_gradient_error(self.dtype)
        self._active = bool(requires_grad)
        return self

    def zero_grad(self) -> None:
        """Drop the accumulated gradient."""
        self._grad = None

    def clone(self) -> Variable:
        """A copy in its own memory, connected to the graph."""
        return conversion.copy(self)

    copy = clone

    @property
    def _version(self) -> int:
        """The number of in-place writes to the data, by recorded operations or inside :class:`no_grad`."""
        return state.version(self.data)

    def numpy(self) -> np.ndarray:
        """The data as a NumPy array.

        Raises:
            GradientError: the variable requires a gradient, which the array would lose silently.
            ArgumentTypeError: it is a text.
        """
        if self.dtype is str:
            raise ArgumentTypeError("`numpy()` of a text, which is not an array of numbers.", hint=_READING_TEXT)
        if self.requires_grad:
            raise GradientError("`numpy()` of a variable that requires a gradient.", hint="use `detach().numpy()`")
        return _owner(self.data).to_numpy(self.data)

    def item(self) -> Any:
        """The only element as a Python number, or the text as a string.

        Raises:
            ArgumentError: more than one element.
        """
        if self.dtype is str:
            return str(self.data)
        shown = _shown(self.data)
        if shown.size != 1:
            raise ArgumentError(
                f"`item` returns the only element; the variable has the shape {tuple(shown.shape)}.",
                hint="`x.tolist()` returns all elements",
            )
        return shown.item()

    def tolist(self) -> Any:
        """The data as nested lists of Python numbers, or as a string or a list of strings."""
        if self.dtype is str:
            return str(self.data) if isinstance(self.data, str) else list(map(str, self.data))
        return _shown(self.data).tolist()

    def __len__(self) -> int:
        if self.dtype is str:
            return len(self.data)
        if not self.shape:
            raise TypeError("a 0-d variable has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Variable]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        return known(self.data, bool)

    def __float__(self) -> float:
        self._refuse_number("float")
        return float(self.data)

    def __int__(self) -> int:
        self._refuse_number("int")
        return known(self.data, int)

    def __trunc__(self) -> int:
        return int(self)

    def __complex__(self) -> complex:
        self._refuse_number("complex")
        return complex(self.data)

    def _refuse_number(self, kind: str) -> None:
        """Report that the gradient ends here, where it would be lost silently (``math.sin(v)``, ``array[0] = v``)."""
        if self._active and recording.get() and not (self._node is not None and facts_of(self._node.name).steps):
            lose_gradient(
                f"a variable that requires a gradient was made a Python {kind}: no gradient goes through it.",
                scipy_functions.hint()
                or "use gradops functions (`ops.sin` for `math.sin`, `ops.stack` for a list) or, to fill an array, "
                "`import gradops.numpy as np` to keep it; `x.item()` or `float(stop_gradient(x))` if only the value is "
                "wanted",
                3,
            )

    def __index__(self) -> int:
        return known(self.data, operator.index)

    def __hash__(self) -> int:
        """A hash by identity, for leaves only: a lookup by value would never find a result or an argument.

        Raises:
            ArgumentTypeError: it is a result, or an argument of a function being differentiated.
        """
        if self._node is not None or self._given:
            raise ArgumentTypeError(
                "a computed variable cannot be looked up in a set or dict, where it would be found by identity, not by "
                "its value.",
                hint="look up `x.item()` for its value, or `id(x)` for the variable itself",
            )
        return id(self)

    def __copy__(self) -> Variable:
        """Another variable on the same data; a leaf's copy is another leaf, without ``grad`` or hooks, as in PyTorch.

        A copy of a result, or of an argument of a differentiated function, stays connected to the graph.
        """
        if self._given and self._node is None:
            return attach_new(self.data, ALIAS, (self,), ())
        out: Variable = _new(_plain(type(self)))
        out.__dict__.update({k: v for k, v in self.__dict__.items() if k in _COPIED and k != "_grad"})
        if self._node is not None:
            out._node = self._node
        return out

    def __deepcopy__(self, memo: dict) -> Variable:
        """A leaf on a copy of the data, with a copy of ``grad``; hooks are not copied.

        For an argument of a differentiated function, a :meth:`clone`, which stays connected.
        """
        if self._given:
            return memo.setdefault(id(self), self.clone())
        self._refuse_result("deepcopy")
        out: Variable = _new(_plain(type(self)))
        memo[id(self)] = out
        for name in _COPIED:
            if name in self.__dict__:
                setattr(out, name, _copied(self.__dict__[name], memo))
        return out

    def __reduce__(self):
        self._refuse_result("pickle")
        return _rebuild, (_plain(type(self)), {k: v for k, v in self.__dict__.items() if k in _COPIED})

    def _refuse_result(self, what: str) -> None:
        if self._node is not None:
            raise GradientError(
                f"{what} of a variable that an operation made: its graph is not copied.",
                hint="take `detach()` of it first",
            )

    def __str__(self) -> str:
        return str(self.data) if self.dtype is str else repr(self)

    def __format__(self, spec: str) -> str:
        if self.dtype is str:
            return format(str(self.data), spec)
        return format(self.item(), spec) if spec or not self.shape else str(self)

    def __repr__(self) -> str:
        if self.dtype is str:
            body = repr(self.tolist())
        else:
            body = array_text(self.data)
        parts = [body]
        if self.role:
            parts.append(f"role={self.role!r}")
        if self._node is not None:
            parts.append(f"grad_fn={self._node!r}")
        elif self.requires_grad:
            parts.append("requires_grad=True")
        return f"{type(self).__name__}({', '.join(parts)})"


_COPIED = ("_value", "_active", "_role", "_grad")


def _owner(data) -> backends.Backend:
    owner = backends.backend_of(data)
    if owner is None:
        raise ArgumentTypeError("the variable's `data` is a {data}, which is not an array.", data=TypeOf(data))
    return owner


def _plain(kind: type) -> type:
    """A class that can be constructed: views are copied as variables."""
    return Variable if kind.__module__.endswith("autodiff.inplace") else kind


def _copied(value, memo: dict):
    if hasattr(value, "strides") and hasattr(value, "copy"):
        return value.copy(order="K")
    return _copy.deepcopy(value, memo)


def _rebuild(kind: type, state: dict) -> Variable:
    out: Variable = _new(kind)
    out.__dict__.update(state)
    return out


def method(name: str) -> Callable:
    """A decorator that makes a function a method of variables; higher floors add methods with it."""

    def put(function: Callable) -> Callable:
        function.__name__, function.__qualname__ = name, f"Variable.{name}"
        setattr(Variable, name, function)
        return function

    return put


class Parameter(Variable):
    """A :class:`Variable` that requires a gradient by default: a value that a model learns.

    Examples:
        >>> import gradops
        >>> w = gradops.Parameter([1.0, -2.0])
        >>> (w * w).sum().backward()
        >>> print(w.requires_grad, w.grad.numpy())
        True [ 2. -4.]

    See Also:
        :class:`Variable`.
    """

    def __init__(self, data="", requires_grad: bool = True, role: str | None = None):
        super().__init__(data, requires_grad, role)


_new = object.__new__


def edges_of(values) -> tuple:
    """The nodes and leaves that gradients for values go to; None for values without a gradient."""
    return tuple(x._node or x if isinstance(x, Variable) and x._active else None for x in values)


def is_active(x) -> bool:
    """True if a value is a variable that has a gradient."""
    return isinstance(x, Variable) and x._active


def data_of(x):
    """A variable's data; other values unchanged."""
    return x._value if isinstance(x, Variable) else x


def wrap(data) -> Variable:
    """A variable on raw data, without copying or checking it."""
    out = _new(Variable)
    out._value = data
    return out


def attach(data, node: Node) -> Variable:
    """The variable of a recorded result."""
    out = _new(Variable)
    out._value = data
    out._node = node
    out._active = True
    return out


def attach_new(data, rule, edges, saved) -> Variable:
    """The variable of a result with a new ``Node``: :func:`attach` at the speed that ops need."""
    node = _new(Node)
    node.rule = rule
    node.edges = edges
    node.saved = saved
    node.seq = clock()
    node.shape = data.shape
    node.dtype = data.dtype
    if packers or watchers:
        node.made()
    out = _new(Variable)
    out._value = data
    out._node = node
    out._active = True
    return out


def _as_data(data) -> Any:
    data = data.data if isinstance(data, Variable) else backends.held(data)
    words = text_data(data)
    if words is not None:
        return words
    owner = backends.backend_of(data)
    if owner is None:
        chosen = config.default_backend()
        return as_array(data, backends.embedded() if chosen.derivatives.own_tape else chosen)
    if owner.derivatives.own_tape:
        raise BackendError(
            f"`data` is a {owner.name} tensor, which needs no Variable: {owner.name} records it.",
            argument="data",
            hint="use `tensor.requires_grad_()`; every gradops function takes torch tensors",
        )
    return as_array(data, owner)


def text_data(data) -> Any:
    """``data`` as a text or several texts; None if it is not text.

    Raises:
        ArgumentTypeError: see :func:`check_words`.
    """
    if isinstance(data, np.ndarray) and data.dtype.kind in "UTO":
        data = data.tolist()
    if data is None or type(data) in (list, tuple):
        check_words(data)
    if isinstance(data, str) or type(data) in (list, tuple) and data and all(isinstance(s, str) for s in data):
        return backends.lookup("text").convert(data)
    return data if getattr(data, "dtype", None) is str else None


def as_array(data, backend: backends.Backend) -> Any:
    """An array of ``backend``.

    Raises:
        ArgumentTypeError: data that cannot be converted.
    """
    try:
        return backend.convert(data)
    except (TypeError, ValueError) as error:
        if type(data) in (list, tuple):
            jagged = len({len(x) if type(x) in (list, tuple) else None for x in data}) > 1
            message = "the lists of `data` differ in length." if jagged else f"`data`: {error}."
        elif backends.backend_of(data) is not None:
            message = f"`data`: {error}."
        else:
            message = "`data` must be an array, a number, a nested list or a string; got {data}."
        raise ArgumentTypeError(message, argument="data", hint=plain_hint(data), data=TypeOf(data)) from error


def check_words(data) -> None:
    """Raise for None, and for lists of texts that are nested or mixed.

    Raises:
        ArgumentTypeError: one of these.
    """
    if data is None:
        raise ArgumentTypeError("`data` is {None}: there is no value.", argument="data", hint='`""` is the empty text')
    words = [isinstance(item, str) for item in data]
    if any(words) and not all(words):
        i = words.index(False)
        missing = data[i] is None or data[i] != data[i]
        raise ArgumentTypeError(
            "{item} is missing among texts." if missing else "{item} is a {got} among texts.",
            argument="data",
            item=Item("data", i),
            got=TypeOf(data[i]),
        )
    if any(_holds_text(item) for item in data if type(item) in (list, tuple)):
        raise ArgumentTypeError("`data` holds lists of texts; pass several texts as one flat list.", argument="data")


def check_role(role) -> None:
    """Raise for a role that is not a string.

    Raises:
        ArgumentTypeError: anything but a string or None.
    """
    if role is not None and not isinstance(role, str):
        raise ArgumentTypeError("`role` must be a string; got {role}.", argument="role", role=TypeOf(role))


def _holds_text(value) -> bool:
    return isinstance(value, str) or type(value) in (list, tuple) and any(map(_holds_text, value))


def _kind(data) -> str:
    return "text" if data.dtype is str else "numbers"


def _roles_below(node: Node):
    """The roles of the leaves that a result was made from, in order."""
    seen: set[int] = set()
    stack: list = [node]
    while stack:
        place = stack.pop()
        if id(place) in seen:
            continue
        seen.add(id(place))
        if isinstance(place, Variable):
            if place.role:
                yield place.role
        else:
            stack.extend(edge for edge in reversed(place.edges) if edge is not None)


def _words(roles) -> str | None:
    *first, last = roles or (None,)
    return f"{', '.join(first)} and {last}" if first else last


def differentiable(data) -> bool:
    """True if data of this dtype have gradients: floating and complex numbers, and text."""
    dtype = getattr(data, "dtype", None)
    return dtype is _FLOAT64 or dtype in state.special or dtypes.is_floating(conversion.dtype(data))


_FLOAT64 = np.dtype("float64")


def _shown(data):
    """The values of a tensor as a NumPy array, for Python or a reader.

    A function being compiled is specialised to them.
    """
    owner = _owner(data)
    return known(data, owner.kernel("shown") or owner.to_numpy)


def array_text(data, prefix: str = "Variable(") -> str:
    """The text of a tensor's values with dtype and backend; for a large tensor the values at the corners."""
    owner = backends.backend_of(data)
    if owner is None:
        return repr(data)
    is_compiled = owner.kernel("shown") is not None
    try:
        body = np.array2string(np.asarray(_shown(data)), separator=", ", threshold=100, prefix=prefix)
    except Exception:
        if is_compiled:  # a text that a branch depends on must be exact
            raise
        body = f"<traced, shape {tuple(data.shape)}>"  # a library's tracer has no values
    suffix = "" if owner.yields or is_compiled else f", backend={owner.name!r}"
    return f"{body}, dtype={owner.dtype_name(data)}{suffix}"


def no_gradient_error(dtype) -> ArgumentTypeError:
    """The error for requesting gradients of a tensor whose dtype has none."""
    return ArgumentTypeError(
        f"`requires_grad`: only floating and complex tensors and text have gradients; got dtype {dtype}.",
        argument="requires_grad",
        hint='cast it first, e.g. with `gradops.ops.cast(x, "float64")`',
    )
