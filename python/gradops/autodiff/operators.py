"""Python's operators and NumPy's functions on variables, and writes in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import ops
from .._names import OTHERS, add_elsewhere
from ..errors import ArgumentTypeError, GradientError
from ..ops import numpy_functions, operators, scipy_functions
from . import inplace, state
from .modes import recording
from .variable import Variable

_IN_PLACE = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.divide,
    "floordiv": np.floor_divide,
    "mod": np.mod,
    "pow": np.power,
    "matmul": None,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
}


def _inplace_operator(op, ufunc):
    return lambda self, other: inplace.operate(self, op, ufunc, other)


def _get_item(self, key):
    """``variable[key]``; variables in the key are replaced by their values."""
    return ops.get_item(self, inplace._raw_key(key))


def _constant(self, losing: str | None = None):
    """The array itself, for unrecorded uses; ``losing`` names a use that would lose the gradient.

    Raises:
        GradientError: the variable's gradient would be lost.
    """
    if losing is not None and self.requires_grad and recording.get():
        raise GradientError(
            f"{losing}: a result that requires a gradient cannot be written to a NumPy array, which would lose it.",
            hint="write `h = h / v` for `h /= v`; or write to a Variable, or to an array made with `zeros`, `array` or "
            "the like of `gradops.numpy` in the function that is differentiated; or `detach()` first",
        )
    return self.data


def _write(self, result) -> None:
    """Take the value of ``result``, recorded, in the present memory."""
    if tuple(result.shape) != self.shape:
        result = ops.broadcast_to(result, self.shape)
    if isinstance(self.data, np.ndarray) and getattr(result, "_node", None) is not None:
        _protect(result._node, self.data)
    inplace.replace(self, result)


def _protect(node, data) -> None:
    """Copy the values that a new operation saved from the memory that its own result will be written to."""
    owner = state.buffer(data)
    node.saved = type(node.saved)(
        v.copy() if isinstance(v, np.ndarray) and state.buffer(v) is owner else v for v in node.saved
    )


def _to_array(self, dtype=None, copy=None):
    if self.requires_grad and self.dtype is not str:
        raise ArgumentTypeError(
            "a variable that requires a gradient is not turned into a NumPy array implicitly: the array would lose it.",
            hint=scipy_functions.hint()
            or "to keep it: `ops.stack([x, ...])`, or `np.array([x, ...])` of `import gradops.numpy as np`; `np.dot("
            "table, x)` for `table @ x`, functions of gradops or NumPy for those of others; "
            "`variable.detach().numpy()` is the value without its record",
        )
    array = np.asarray(self.numpy(), dtype)
    return array.copy() if copy else array


operators.give(Variable)
operators.give_array_api(Variable)
numpy_functions.give(Variable)
_own: dict[str, Any] = {
    **{f"__i{name}__": _inplace_operator(operators.BINARY[name], ufunc) for name, ufunc in _IN_PLACE.items()},
    "__getitem__": _get_item,
    "__setitem__": inplace.assign,
    "__array__": _to_array,
    "__array_priority__": 1000,
    "_described": lambda self: self.data,
    "_constant": _constant,
    "_write": _write,
}
for _name, _value in _own.items():
    setattr(Variable, _name, _value)

_ELSEWHERE = {
    **{name: f"{ours}(x, ...)" for name, ours in OTHERS.items() if ours.startswith("ops.")},
    **{name: f"ops.{name}(x)" for name in "erf log_softmax logsumexp norm outer relu softmax softplus".split()},
    **dict.fromkeys(("cpu", "cuda", "to"), 'gradops.to_backend(x, "torch")`, whose tensors move: `x.to(device)'),
    **dict.fromkeys(("add_", "mul_", "sub_"), "x += value"),
    **dict.fromkeys(("assign", "assign_add", "assign_sub", "set_value"), "x.data = value"),
    "at": "ops.scatter_update(x, indices, updates)",
    "dim": "x.ndim",
    "double": 'x.astype("float64")',
    "float": 'x.astype("float32")',
    "t": "x.T",
    "trainable": "x.requires_grad",
    "view": "x.reshape(...)",
    "watch": "x.requires_grad_()",
}
"""Attributes of PyTorch's, JAX's and TensorFlow's tensors that variables lack, and what to write."""
add_elsewhere(Variable, _ELSEWHERE)
