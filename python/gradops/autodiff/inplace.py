"""In-place writes to variables: recorded with the right gradients, and stale saved tensors are detected.

A NumPy array is written in place, as NumPy users expect; arrays of JAX and TensorFlow, NumPy scalars
and texts cannot be written, so their variable gets a new one. In both cases the variable moves on in the
graph: it becomes the result of the write.

- The values that a recorded operation saved must not change before the backward pass. Each write to
  a buffer is noted with its time (:func:`.state.bump`), which is compared with the time of the node.
- An operation that returns a view (``v[0:2]``, ``reshape``, ``transpose``) returns a :class:`View`, which
  knows its source. A write to it is also a write to its source. After a write to the source,
  the view updates its place in the graph when it is next used. As in PyTorch.
- Other results that happen to share memory are copied before they are written.

Not detected: writes to ``v.data`` by NumPy itself, or to another array on the same memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import ref

import numpy as np

from .. import backends, dtypes
from .._scopes import changed
from ..errors import ArgumentError, ArgumentTypeError, GradientError, MixedBackendsError, ShapeError
from ..ops import conversion, indexing, shaping
from ..ops._checks import check_held, has_own_arithmetic, is_numeric, not_a_tensor
from ..ops._dispatch import stack_lists
from ..ops._structures import as_tensor, recorder
from ..ops.indexing import explain_key
from ..ops.properties import holds_tensors
from . import hooks
from .cotangents import sum_to
from .graph import ALIAS, Node, Rule
from .modes import is_recorded, recording
from .state import buffer, bump, clock, written
from .variable import Variable, attach, data_of, is_active, method, wrap


class View(Variable):
    """A result that shares memory with the variable it was made from."""

    _source: Variable
    _origin: Variable  # the source at the end of a chain of writable views
    _again: Callable
    _rest: tuple
    _part: int | None
    _writable: bool

    # A write through another view, or to the source, gives this view other values and another place in the graph.
    # Updating all views at each write would cost a graph step for each, although hardly any is read again, and would
    # keep them alive. So a view checks when its place is requested: was its memory written since the last check
    # (`_time`)? If so, the op that made it is applied again to the present source. That op requests the source's place;
    # the source may be a view itself, so a chain of views is updated from its root on. Code that reads a variable's
    # place directly from `__dict__` would get the old one: a gradient without the write, and no error.

    @property
    def _node(self):
        if written:
            self._catch_up()
        return self.__dict__.get("_node")

    @_node.setter
    def _node(self, node):
        self.__dict__["_node"] = node

    @property
    def _active(self):
        if written:
            self._catch_up()
        return self.__dict__.get("_active", False)

    @_active.setter
    def _active(self, value):
        self.__dict__["_active"] = value

    def detach_(self):
        raise GradientError("a view cannot be detached in place.", hint="use `detach()`")

    def _catch_up(self) -> None:
        """After a write to the memory, become the view of the present source."""
        entry = written.get(id(buffer(self.data)))
        if entry is None or entry[2][-1] < self.__dict__["_time"]:
            return
        self.__dict__["_time"] = clock()
        with changed(recording, True):
            now = self._look(self._source)
        before = self.__dict__.get("_node")
        self.__dict__["_node"] = now.__dict__.get("_node")
        self.__dict__["_active"] = now.__dict__.get("_active", False)
        if self._active:
            hooks.moved(self, before)

    def _look(self, source):
        """This view, made of another value of the source: a variable, or an array."""
        seen = self._again(source, *self._rest)
        return seen if self._part is None else seen[self._part]


View.__name__ = View.__qualname__ = "Variable"


def viewing(op, recorded: Callable) -> Callable:
    """A recorder whose results are :class:`View`s if they share memory with the argument."""
    again, writable = op.call, op.facts.view == "writable"

    def with_view(x, *rest):
        out = recorded(x, *rest)
        if out is x or not isinstance(x, Variable):
            return out
        if out.__class__ is Variable:
            data = out._value
            if data.__class__ is np.ndarray and _shared(data, x._value):
                if recording.get():
                    _make_view(out, x, again, rest, None, writable)
                else:
                    out.__dict__["_unseen"] = True
        elif out.__class__ is list or out.__class__ is tuple:
            for i, part in enumerate(out):
                if part.data.__class__ is np.ndarray and _shared(part.data, x.data):
                    if recording.get():
                        _make_view(part, x, again, rest, i, writable)
                    else:
                        part.__dict__["_unseen"] = True
        return out

    return with_view


def _shared(data, source) -> bool:
    base = data.base
    return data is source or base is not None and (base is source or base is getattr(source, "base", None))


def _make_view(out, x, again, rest, part, writable) -> None:
    out.__class__ = View
    state = out.__dict__
    state["_source"], state["_again"], state["_rest"], state["_part"] = x, again, rest, part
    state["_writable"], state["_time"] = writable, clock()
    state["_origin"] = root = _root(x)
    if _shares(root):
        views = root.__dict__.get("_views")
        if views is None:
            views = root.__dict__["_views"] = {}  # weak and ordered; three times as fast as `WeakValueDictionary`
        views[id(out)] = ref(out, partial(views.pop, id(out)))
    else:
        root.__dict__["_viewed"] = True


def assign(variable: Variable, key, value) -> None:
    """``variable[key] = value``, recorded.

    Args:
        key: see ``get_item``.
        value: a variable, an array or a number that broadcasts to the selected part.

    Raises:
        GradientError: a leaf that requires a gradient, or a view of one, outside ``no_grad``; a value that requires
            one, for a view that was made in ``no_grad``.
        ShapeError: a value that does not broadcast to the part.
        ArgumentTypeError: text; a value that is not a number; a complex one for a real variable.
        ArgumentError: a number that the variable's integer dtype cannot hold.

    Gradient:
        To ``value``, the upstream gradient at ``key`` (summed where it was broadcast; for a position set
        twice, only to the last value); to the earlier values, 0 at ``key``. As in PyTorch.
    """
    data = variable.data
    if getattr(data, "dtype", None) is str:
        raise ArgumentTypeError("text cannot be changed in place.", hint="make a new text with `+` or `join()`")
    key = _raw_key(key)
    if holds_tensors(value):
        value = stack_lists(value)
    other = data_of(value)
    owner = backends.backend_of(other)
    if owner is not None and not owner.yields and owner is not backends.backend_of(data):
        raise MixedBackendsError(
            f"`set_item`: a {owner.name} tensor cannot be written to a variable over {_library(data)}.",
            argument="value",
        )
    refuse_leaf(variable)
    if isinstance(data, (np.ndarray, np.generic)) and not isinstance(other, (bool, int, float, complex)):
        other = as_tensor("set_item", other, backends.backend_of(data), "value")
        if not is_numeric(other):
            raise not_a_tensor("set_item", "value", other)
    _check_dtype(data, other)
    check_held("set_item", "value", other, conversion.dtype(data))
    tracked = recording.get() and (variable.requires_grad or is_active(value))
    # NumPy returns a scalar for an op's result without dimensions, and scalars cannot be written: the variable gets an
    # array of its own with the same value. Other holders of the scalar keep it.
    if isinstance(data, np.generic):
        data = variable._value = np.array(data)
    if not isinstance(data, np.ndarray):
        result = indexing.set_at(variable, key, value)
        _supersede(data, result.data)
        variable._value = result.data
        if tracked:
            _become(variable, result._node)
        return
    data = _own(variable)
    # The order matters: first read the places in the graph, then write, then set the variable's own new place, and note
    # the write last. `value` may be a view of the memory that is written (`x[1:] = x[:-1]`): after the note it would be
    # a view of the result, not of the values that were read. The variable's views look up their places from the note
    # on, when the variable must already have its own.
    edge_before = variable._node if tracked else None
    edge = None
    if tracked and is_active(value):
        _refuse_unseen(variable)
        edge = value._node or value
    try:
        data[key] = other
    except ValueError as error:
        raise _explained(error, data, key, other) from error
    except IndexError:
        explain_key("set_item", data, key)
        raise
    if tracked:
        node = None
        if _is_everything(key):
            edge_before = None
        if edge_before is not None or edge is not None:
            rule = Rule("set_item", vjp=_set_item_gradient(key, np.shape(other), data.shape), is_closed=True)
            node = Node(rule, (edge_before, edge), (), data.shape, data.dtype)
        _propagate(variable, node)
    bump(data)


def _set_item_gradient(key, value_shape: tuple, shape: tuple) -> Callable:
    def whole(g, saved, node):
        before, value = node.edges
        to_before = None if before is None else indexing.set_at(g, key, 0.0)
        if value is None:
            return to_before, None
        to_value = indexing.effective_updates(g, shape, key)
        if len(value_shape) > len(to_value.shape):
            trailing = value_shape[len(value_shape) - len(to_value.shape) :]
            to_value = shaping.reshape(sum_to(to_value, trailing), value_shape)
        return to_before, to_value

    return whole


def replace(variable: Variable, result) -> None:
    """Give ``variable`` the value of ``result`` and its place in the graph, as ``+=`` and ``out=`` do.

    Raises:
        GradientError: a leaf that requires a gradient, or a view of one, outside ``no_grad``.
        ShapeError: a result of another shape.
        ArgumentTypeError: a result of a wider kind of dtype, such as complex for real.

    Gradient:
        That of ``result``; none to the earlier value.
    """
    refuse_leaf(variable)
    data = variable.data
    value = data_of(result)
    node = result._node or (result if result.requires_grad else None) if isinstance(result, Variable) else None
    if getattr(data, "dtype", None) is str:
        variable._value = value
    elif tuple(value.shape) != tuple(data.shape):
        raise ShapeError(
            f"the result of an in-place operation must keep the shape {tuple(data.shape)}; got {tuple(value.shape)}."
        )
    elif isinstance(data, np.ndarray):
        if node is not None and recording.get():
            _refuse_unseen(variable)
        if not np.can_cast(value.dtype, data.dtype, "same_kind"):
            raise ArgumentTypeError(f"a result of dtype {value.dtype} does not fit in place into dtype {data.dtype}.")
        data = _own(variable)
        data[...] = value
    else:
        _check_dtype(data, value)
        _supersede(data, value)
        dtype = conversion.dtype(data)
        variable._value = value if conversion.dtype(value) == dtype else conversion.cast(value, dtype)
    if recording.get():
        if node is not None and not isinstance(node, Node):
            node = Node(ALIAS, (node,), (), value.shape, value.dtype)
        _propagate(variable, node)
    if isinstance(data, np.ndarray):
        bump(data)


def _supersede(data, value) -> None:
    """Tell an array being compiled that its variable has a new one: arrays that share its memory would change."""
    superseded = getattr(data, "_superseded", None)
    if superseded is not None:
        superseded(value)


_HAVE_NO_ANSWER = (np.floor_divide, np.mod, np.power)
"""Functions that have no result for some integers: the ops raise an error there, whereas NumPy returns 0."""


def operate(variable: Variable, op: Callable, ufunc, other):
    """``variable op= other``; returns the variable."""
    data = variable.data
    tracked = recording.get() and (variable.requires_grad or is_active(other))
    direct = ufunc is not None and isinstance(data, np.ndarray)
    if not tracked and direct and not (ufunc in _HAVE_NO_ANSWER and data.dtype.kind in "iu"):
        value = data_of(other)
        if isinstance(value, (np.ndarray, np.generic, bool, int, float, complex)):
            refuse_leaf(variable)
            if data.dtype.kind in "iu":
                check_held(op.__name__, "x2", value, data.dtype.name)
            data = _own(variable)
            try:
                ufunc(data, value, out=data, casting="same_kind")
            except TypeError as error:
                raise ArgumentTypeError(f"`{op.__name__}` in place: {error}") from error
            except ValueError as error:
                raise ShapeError(
                    f"`{op.__name__}` in place: the result must keep the shape {data.shape}; got {np.shape(value)}."
                ) from error
            bump(data)
            return variable
    refuse_leaf(variable)
    first = variable
    if isinstance(data, np.ndarray) and op.__name__ not in ("add", "subtract"):
        # `x *= y` saves x for the gradient of y and then writes to it, which would make it stale at once. Sums save no
        # operand.
        first = _value_before_write(variable)
        if other is variable:
            other = first
    replace(variable, op(first, other))
    return variable


def _value_before_write(variable: Variable) -> Variable:
    """The variable as it is before a write, on memory that the write does not change."""
    data = variable.data.copy()
    if variable._node is not None:
        return attach(data, variable._node)
    out = Variable(data)
    return out


@method("copy_")
def copy_(variable: Variable, source) -> Variable:
    """Replace the variable's value by that of ``source``, recorded; a text keeps its role.

    Raises:
        GradientError: a leaf that requires a gradient, outside ``no_grad``.
        ShapeError: numbers that do not broadcast to the variable's shape.
        ArgumentTypeError: numbers for a text, or a text for numbers.

    Gradient:
        To ``source`` the upstream gradient, to the earlier value 0. Like ``torch.Tensor.copy_``.
    """
    if variable.dtype is not str:
        assign(variable, ..., source)
        return variable
    refuse_leaf(variable)
    variable.data = source
    from_source = is_active(source) and recording.get()
    if from_source:
        made = source + ""
        variable._node, variable._active = made._node, True
    elif recording.get() or variable._node is not None:
        variable._node, variable._active = None, variable._active and variable._node is None
    return variable


def refuse_leaf(variable: Variable) -> None:
    """Raise for a variable that must not be changed in place: a leaf that requires a gradient, while recording.

    Raises:
        GradientError: such a leaf, or a view of one.
    """
    if not recording.get():
        return
    root: Any = variable
    while isinstance(root, View):
        root = root._source
    if root.requires_grad and root._node is None:
        what = "a leaf variable" if root is variable else "a view of a leaf variable"
        raise GradientError(
            f"{what} that requires a gradient cannot be changed in place.",
            hint="write inside `with gradops.autodiff.no_grad():`, or to a `clone()`",
        )


def _refuse_unseen(variable: Variable) -> None:
    """Raise for a write with a gradient to a view whose source would not record it."""
    if "_unseen" in _root(variable).__dict__:
        raise GradientError(
            "a view that was made where nothing is recorded cannot be written with a gradient: "
            "its source would change without one.",
            hint="make the view outside of `no_grad`, or write to a `clone()`",
        )


def _own(variable: Variable):
    """The variable's array, in memory that may be written for it and for its source."""
    root = _root(variable)
    # Ops that are no views may also return memory of their argument, as does a view that cannot be written, such as a
    # broadcast: a write there would change values that nobody writes to, without a trace in the graph. So such
    # variables move to their own memory at the first write. Their views still refer to the old memory then, and are
    # recreated on the new one in their order of creation, because one may be a view of another.
    if _shares(root) and not (_is_fillable(root) and sys.getrefcount(root._value) <= _UNSHARED_REFERENCES):
        if isinstance(root, View):
            root.__class__ = Variable  # type: ignore[assignment]
        known = root.__dict__.get("_views", {}) if _is_fillable(root) else root.__dict__.pop("_views", {})
        views = [view for kept in known.copy().values() if (view := kept()) is not None]
        for view in views:  # while the notes of writes belong to the old memory
            view._catch_up()
        root._value = root.data.copy(order="K")
        for view in views:  # sources come first
            view._value = view._look(view._source.data)
    if not isinstance(root, View):
        root.__dict__["_wrote"] = True
    return variable.data


def fillable(data) -> Variable:
    """A variable on its own array, for code that alternately reads and fills it.

    A write does not change what operations saved for their gradients, nor what they read.
    """
    out = wrap(data)
    out.__dict__["_fillable"] = True
    return out


def taking(made) -> Any:
    """A NumPy array as one that accepts variables, while a function is recorded or compiled; other values unchanged."""
    if not isinstance(made, np.ndarray):
        return made
    tracing = recorder.get()
    data = made if tracing is None else tracing.program.current.fold(made)
    return fillable(data) if is_recorded() else data


_UNSHARED_REFERENCES = 3
"""The reference count of an array held only by its variable and a write: no view, and no operation that read it."""


def _root(variable: Variable) -> Variable:
    """The variable whose memory a write to this one changes: the origin of a writable view, otherwise itself."""
    return variable._origin if isinstance(variable, View) and variable._writable else variable


def _is_fillable(variable: Variable) -> bool:
    """True for :func:`fillable` variables, and for results in functions being differentiated, which others write.

    Not if it has unregistered views, from before it had a node: they would stay on the old memory.
    """
    state = variable.__dict__
    return "_fillable" in state or "_viewed" not in state and variable._node is not None and is_recorded()


def _shares(variable: Variable) -> bool:
    """True if the variable's memory may be shared, so that it is copied before it is written."""
    if isinstance(variable, View):
        return not variable._writable
    if _is_fillable(variable):
        return True
    shared = getattr(variable._value, "base", None) is not None
    return shared and variable._node is not None and "_wrote" not in variable.__dict__


def _propagate(variable: Variable, node: Node | None) -> None:
    """Move a written variable on to ``node``, and the source that it views to the node of the write.

    Called before the write is noted; its views look up their places afterwards.
    """
    # From the written view up to the variable that owns the memory, which alone moves on: each source is the result of
    # "set this part of me", whose gradient for the earlier values is 0 in the part. The views on the way, including the
    # written one, are later recreated from that variable, as views of its new value.
    while isinstance(variable, View) and variable._writable:
        source, look = variable._source, variable._look
        before = source._node if source.requires_grad else None
        # The view covers its whole source: no earlier value remains, and none gets a gradient.
        if source.shape == variable.shape and variable.data is source.data:
            before = None
        if node is None and before is None:
            variable = source
            continue
        rule = Rule("set_view", vjp=_set_view_gradient(look, source.shape), is_closed=True)
        node = Node(rule, (before, node), (), source.data.shape, source.data.dtype)
        variable = source
    _become(variable, node)


def _set_view_gradient(look: Callable, shape: tuple) -> Callable:
    def whole(g, saved, node):
        before, value = node.edges
        to_before = None
        if before is not None:
            # The view's position is found by making the same view of a mask. The mask is contiguous, so every op that
            # can be written through returns a view of it, even if the array's own memory is laid out differently.
            mask = np.zeros(shape, bool)
            look(mask)[...] = True
            to_before = indexing.where(mask, 0.0, g)
        return to_before, None if value is None else look(g)

    return whole


def _become(variable: Variable, node: Node | None) -> None:
    before = variable._node
    variable._node = node
    variable._active = node is not None
    if variable.retains_grad and node is not None:
        hooks.moved(variable, before)


def _library(data) -> str:
    owner = backends.backend_of(data)
    return owner.name if owner is not None else type(data).__name__


def _raw_key(key):
    if key.__class__ is int or key.__class__ is slice:
        return key
    if isinstance(key, Variable):
        return key.data
    if isinstance(key, tuple):
        return tuple(map(_raw_key, key))
    if isinstance(key, list):
        return [_raw_key(k) for k in key]
    if has_own_arithmetic(key):
        raise not_a_tensor("get_item", "key", key)
    return key


def _is_everything(key) -> bool:
    return key is Ellipsis or isinstance(key, slice) and key == slice(None)


def _check_dtype(data, value) -> None:
    kind = 3 if isinstance(value, complex) else 0
    if backends.backend_of(value) is not None:
        kind = dtypes.kind(conversion.dtype(value))
    dtype = conversion.dtype(data)
    if kind == 3 and dtypes.kind(dtype) < 3:
        raise ArgumentTypeError(f"a complex value does not fit in place into dtype {dtype}.", argument="value")


def _explained(error: ValueError, data, key, value) -> Exception:
    if "read-only" in str(error):
        return ArgumentError("the variable's array is read-only.", hint="write to a `clone()`")
    try:
        part = data[key].shape
    except Exception:
        return error
    return ShapeError(f"`value` must broadcast to the part's shape {part}; got {np.shape(value)}.", argument="value")
