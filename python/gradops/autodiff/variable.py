"""``Variable``: an array (NumPy, JAX, TensorFlow) or a text whose operations are recorded."""

from __future__ import annotations

from typing import Any

from .. import backends, config
from ..errors import ArgumentTypeError, BackendError, GradientError
from .graph import Node


class Variable:
    """A tensor whose operations are recorded on the tape.

    Args:
        data: an array of NumPy, JAX or TensorFlow, a number, a nested list, or a string. Numbers and
            lists go to the default backend. Arrays are not copied.
        requires_grad: whether ``backward`` accumulates into ``grad``. Needs a floating or complex dtype, or text.
        role: what a text is for; goes into feedback on it.

    Attributes:
        data: the array or string itself. Writing to it is not recorded.
        grad: the accumulated gradient, a variable, or None.
        requires_grad: whether a gradient goes to or through it.

    Raises:
        ArgumentTypeError: data that is no array, number, list or string, or of a dtype without gradients.
        BackendError: a torch tensor, which needs no variable: torch's tape is its tape.

    Gradient:
        Reverse mode over recorded operations, as in PyTorch's autograd (Paszke et al. 2017).
    """

    grad: Variable | None = None
    requires_grad: bool = False
    role: str | None = None
    _node: Node | None = None
    _hooks: dict | None = None

    def __init__(self, data, requires_grad: bool = False, role: str | None = None):
        self.data = _as_data(data)
        if role is not None:
            self.role = role
        if requires_grad:
            self.requires_grad_()

    @property
    def grad_fn(self) -> Node | None:
        """The recorded operation that made this variable; None for a leaf."""
        return self._node

    @property
    def is_leaf(self) -> bool:
        """Whether the user made it, rather than a recorded operation."""
        return self._node is None

    @property
    def shape(self) -> tuple:
        """Sizes of the dimensions; ``()`` for text."""
        return tuple(getattr(self.data, "shape", ()))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        from ..ops.conversion import size

        return size(self)

    @property
    def dtype(self):
        """The data's own dtype object; ``str`` for text."""
        return getattr(self.data, "dtype", str)

    @property
    def T(self):  # noqa: N802
        """The transpose."""
        from ..ops.shaping import transpose

        return transpose(self)

    def detach(self) -> Variable:
        """A variable on the same data that is not connected to the graph."""
        return wrap(self.data)

    def detach_(self) -> Variable:
        """Disconnect this variable from the graph, in place."""
        self._node = None
        self.requires_grad = False
        return self

    def requires_grad_(self, requires_grad: bool = True) -> Variable:
        """Ask, or no longer ask, for gradients, in place.

        Raises:
            GradientError: for a result of a recorded operation, which cannot be switched off.
            ArgumentTypeError: an integer or bool dtype.
        """
        if self._node is not None:
            if not requires_grad:
                raise GradientError(
                    "`requires_grad` of the result of an operation cannot be switched off.", hint="use `detach()`"
                )
            return self
        if requires_grad and not _differentiable(self.data):
            raise ArgumentTypeError(
                f"`requires_grad`: only floating and complex tensors and text have gradients; got dtype {self.dtype}.",
                argument="requires_grad",
                hint='cast it first, e.g. with `gradops.ops.cast(x, "float64")`',
            )
        self.requires_grad = requires_grad
        return self

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None) -> None:
        """:func:`gradops.autodiff.backward` from this variable."""
        from .engine import backward

        backward(self, gradient, retain_graph=retain_graph, create_graph=create_graph, inputs=inputs)

    def zero_grad(self) -> None:
        """Forget the accumulated gradient."""
        self.grad = None

    def numpy(self):
        """The data as a NumPy array.

        Raises:
            GradientError: for a variable that requires a gradient, which the array would lose silently.
        """
        if self.requires_grad:
            raise GradientError("`numpy()` of a variable that requires a gradient.", hint="use `detach().numpy()`")
        return backends.of(self.data).to_numpy(self.data)

    def item(self):
        """The one element as a Python number.

        Raises:
            ArgumentError: more than one element.
        """
        return backends.of(self.data).to_numpy(self.data).item()

    def tolist(self):
        """The data as nested lists of Python numbers."""
        return backends.of(self.data).to_numpy(self.data).tolist()

    def __len__(self) -> int:
        if not self.shape:
            if isinstance(self.data, str):
                return len(self.data)
            raise TypeError("a 0-d variable has no length")
        return self.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        return bool(self.data)

    def __float__(self) -> float:
        return float(self.data)

    def __int__(self) -> int:
        return int(self.data)

    def __complex__(self) -> complex:
        return complex(self.data)

    def __index__(self) -> int:
        return self.data.__index__()

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        if isinstance(self.data, str):
            body = repr(self.data)
        else:
            owner = backends.of(self.data)
            body = repr(self.data) if owner is None else _array_text(owner, self.data)
        parts = [body]
        if self.role:
            parts.append(f"role={self.role!r}")
        if self._node is not None:
            parts.append(f"grad_fn={self._node!r}")
        elif self.requires_grad:
            parts.append("requires_grad=True")
        return f"{type(self).__name__}({', '.join(parts)})"


class Parameter(Variable):
    """A :class:`Variable` that requires a gradient unless told otherwise: what a model learns."""

    def __init__(self, data, requires_grad: bool = True, role: str | None = None):
        super().__init__(data, requires_grad, role)


_new = object.__new__


def wrap(data) -> Variable:
    """A variable on raw data, without copying or checking it."""
    out = _new(Variable)
    out.data = data
    return out


def attach(data, node: Node) -> Variable:
    """The variable of a recorded result."""
    out = _new(Variable)
    out.data = data
    out._node = node
    out.requires_grad = True
    return out


def _as_data(data) -> Any:
    if isinstance(data, Variable):
        data = data.data
    if isinstance(data, str):
        return data
    owner = backends.of(data)
    if owner is None:
        try:
            name = config.backend()
            return backends.by_name("numpy" if name == "torch" else name).convert(data)
        except (TypeError, ValueError) as error:
            raise ArgumentTypeError(
                f"`data` must be an array, a number, a nested list or a string; got {type(data).__name__}.",
                argument="data",
            ) from error
    if owner.name == "torch":
        raise BackendError(
            "`data` is a torch tensor, which needs no Variable: torch records it.",
            argument="data",
            hint="use `tensor.requires_grad_()`; every gradops function takes torch tensors",
        )
    return owner.convert(data)


def _differentiable(data) -> bool:
    from .. import dtypes
    from ..ops.conversion import dtype

    return isinstance(data, str) or dtypes.is_floating(dtype(data))


def _array_text(owner, data) -> str:
    import numpy as np

    name = owner.dtype_name(data)
    try:
        body = np.array2string(owner.to_numpy(data), separator=", ", threshold=100, prefix="Variable(")
    except Exception:  # a tracer has no values
        body = f"<traced, shape {tuple(data.shape)}>"
    suffix = "" if owner.name == "numpy" else f", backend={owner.name!r}"
    return f"{body}, dtype={name}{suffix}"
