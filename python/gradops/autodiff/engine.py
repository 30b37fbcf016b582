"""The backward pass: gradients go from results to leaves, youngest operation first."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from .. import backends, dtypes
from ..errors import ArgumentError, GradientError, ShapeError
from ..ops import conversion, elementwise, reductions, shaping
from .graph import PICK, RESULT, Node, Parts
from .modes import recording
from .state import Packed, check_versions, hooks, observers, special, written
from .variable import Variable, attach, wrap


class _ComplexDtypes(dict):
    """Whether a library's dtype is complex, found once for each."""

    def __missing__(self, dtype):
        self[dtype] = dtype is not None and dtype is not str and "complex" in dtypes.canonical(dtype)
        return self[dtype]


_is_complex = _ComplexDtypes()


def backward(variables, grad_variables=None, retain_graph=None, create_graph=False, inputs=None) -> None:
    """Compute gradients of ``variables`` and add them to the ``grad`` of the leaves they depend on.

    Args:
        variables: a variable or several (or torch tensors, for which torch's own engine runs).
        grad_variables: for each the gradient to start from, of its shape; may be left out for
            scalars (then 1), and None for those.
        retain_graph: keep the graph for another pass; by default what ``create_graph`` is.
        create_graph: record the pass, so that gradients can be differentiated.
        inputs: add to the ``grad`` of these leaves only.

    Raises:
        GradientError: (a RuntimeError) a non-scalar without ``grad_variables``; a variable that requires
            no gradient; a graph that was freed; ``inputs`` that are not leaves.
        ShapeError: a gradient of another shape than its variable.

    Gradient:
        As ``torch.autograd.backward`` (Paszke et al. 2017).
    """
    roots = _sequence(variables)
    if any(_is_torch(r) for r in roots):
        import torch

        from .anomaly import run_torch

        native = None if grad_variables is None else _sequence(grad_variables)
        run_torch(
            torch.autograd.backward,
            roots,
            native,
            retain_graph=retain_graph,
            create_graph=create_graph,
            inputs=inputs,
        )
        return
    starts = _starts(roots, grad_variables, create_graph)
    wanted = None
    if inputs is not None:
        wanted = _sequence(inputs)
        if not wanted:
            raise GradientError("`inputs` must not be empty.", argument="inputs")
        if any(not isinstance(v, Variable) or not v.is_leaf for v in wanted):
            raise GradientError("`inputs` must be leaf variables.", argument="inputs")
    keep = create_graph if retain_graph is None else retain_graph
    leaves = run(roots, starts, keep, create_graph)[0]
    only = None if wanted is None else {id(v) for v in wanted}
    for leaf, g in leaves.values():
        if only is None or id(leaf) in only:
            _accumulate(leaf, g, create_graph)
            for hook in list(leaf._after.values()) if leaf._after else ():
                hook(leaf)


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    allow_unused=None,
    materialize_grads=False,
) -> tuple:
    """Gradients of the sum of ``outputs`` (weighted by ``grad_outputs``) with respect to ``inputs``.

    Args:
        outputs, inputs: a variable or several (or torch tensors). Inputs need not be leaves.
        grad_outputs, retain_graph, create_graph: as of :func:`backward`.
        allow_unused: give None for inputs that the outputs do not depend on, instead of an error.
        materialize_grads: give zeros instead of None.

    Returns:
        A tuple of variables (torch tensors for torch tensors), one for each input. No ``grad`` changes.

    Raises:
        GradientError: (a RuntimeError) as :func:`backward`, and for an unused input unless allowed.

    Gradient:
        As ``torch.autograd.grad``; differentiable with ``create_graph=True``.
    """
    roots, targets = _sequence(outputs), _sequence(inputs)
    if allow_unused is False and materialize_grads:
        raise ArgumentError("`allow_unused` must not be False with `materialize_grads`.", argument="allow_unused")
    allowed = materialize_grads if allow_unused is None else allow_unused
    if any(_is_torch(r) for r in roots):
        import torch

        from .anomaly import run_torch

        native = None if grad_outputs is None else _sequence(grad_outputs)
        return run_torch(
            torch.autograd.grad,
            roots,
            targets,
            native,
            retain_graph=retain_graph,
            create_graph=create_graph,
            allow_unused=allowed,
            materialize_grads=materialize_grads,
        )
    for i, target in enumerate(targets):
        if not isinstance(target, Variable) or not target.requires_grad:
            raise GradientError(f"`inputs[{i}]` does not require a gradient.", argument="inputs")
    starts = _starts(roots, grad_outputs, create_graph)
    keep = create_graph if retain_graph is None else retain_graph
    leaves, results = run(roots, starts, keep, create_graph, targets)
    gradients: list = []
    for i, target in enumerate(targets):
        if target._node is None:
            g = leaves.get(id(target), (None, None))[1]
        else:
            g = results.get(target._node.seq)
        if g is None and not allowed:
            raise GradientError(
                f"`inputs[{i}]` was not used in the graph of the outputs.",
                argument="inputs",
                hint="set `allow_unused=True` if that is intended",
            )
        if g is None and materialize_grads:
            from ..ops.creation import zeros_like

            g = zeros_like(target.data)
        gradients.append(g if g is None or isinstance(g, Variable) else wrap(g))
    return tuple(gradients)


def run(roots, starts, retain, create_graph, targets=None) -> tuple[dict, dict]:
    """One backward pass.

    Returns:
        ``{id(leaf): (leaf, gradient)}`` for the leaves reached, and ``{seq: gradient}`` for the targets
        that are results. Gradients are raw data, or variables with ``create_graph``.
    """
    heap: list[int] = []
    pending: dict[int, list] = {}
    leaves: dict[int, list] = {}
    results: dict[int, Any] = {}
    useful: set[int] | None = None
    collect: set[int] = set()
    if targets is not None:
        collect = {t._node.seq for t in targets if t._node is not None}
        useful = _leading_to(roots, targets)
    for root, start in zip(roots, starts):
        if start is not None:
            _pass_on(root._node or root, start, heap, pending, leaves)
    dtype, conjugate_dtype = None, False
    recomputed: dict = {}
    token = recording.set(bool(create_graph))
    quiet = np.errstate(all="ignore")
    quiet.__enter__()
    try:
        while heap:
            seq = -heappop(heap)
            node, g = pending.pop(seq)
            if hooks and seq in hooks:
                g = _run_hooks(hooks[seq], g, create_graph)
            if useful is not None:
                if seq in collect:
                    results[seq] = g
                if seq not in useful:
                    continue
            saved, rule, edges = node.saved, node.rule, node.edges
            if saved is None:
                raise GradientError(
                    f"the graph of `{node.name}` was freed by an earlier backward pass.",
                    hint="pass `retain_graph=True` to the earlier pass",
                )
            if written and rule.slots:
                check_versions(node)
            if saved.__class__ is Packed:
                saved = saved.unpack(recomputed)
            if create_graph:
                saved = _rejoin(node, saved)
            if node.dtype is not dtype:
                dtype = node.dtype
                conjugate_dtype = _is_complex[dtype]
            conjugate = conjugate_dtype and rule.naive
            if conjugate:
                g = elementwise.conj(g)
            parts = rule.parts
            if observers:
                gradients = _observed(node, g, saved)
            elif parts is None:
                if type(g) is Parts:
                    g = _materialize(g, node)
                gradients = rule.whole(g, saved, node)
            elif len(parts) == 1:
                gradients = (parts[0](g, saved, edges[0]),)
            else:
                gradients = [None if edge is None else part(g, saved, edge) for part, edge in zip(parts, edges)]
            for edge, gi in zip(edges, gradients):
                if edge is None or gi is None:
                    continue
                if conjugate:
                    gi = elementwise.conj(gi)
                if edge.__class__ is Node:
                    if edge.shape is not None and (gi.shape != edge.shape or gi.dtype is not edge.dtype):
                        gi = fit(gi, edge)
                    to = edge.seq
                    waiting = pending.get(to)
                    if waiting is None:
                        pending[to] = [edge, gi]
                        heappush(heap, -to)
                    else:
                        waiting[1] = _add(waiting[1], gi)
                else:
                    data = edge.data
                    if data.__class__ is not str and (gi.shape != data.shape or gi.dtype is not data.dtype):
                        gi = fit(gi, edge)
                    entry = leaves.get(id(edge))
                    if entry is None:
                        leaves[id(edge)] = [edge, gi]
                    else:
                        entry[1] = _add(entry[1], gi)
            if not retain:
                node.saved = None
                if rule is not PICK:
                    node.edges = ()
        for entry in leaves.values():
            if entry[0]._hooks:
                entry[1] = _run_hooks(entry[0]._hooks, entry[1], create_graph)
    finally:
        quiet.__exit__(None, None, None)
        recording.reset(token)
    return leaves, results


def _pass_on(edge, g, heap, pending, leaves) -> None:
    if edge.__class__ is Node:
        waiting = pending.get(edge.seq)
        if waiting is None:
            pending[edge.seq] = [edge, g]
            heappush(heap, -edge.seq)
        else:
            waiting[1] = _add(waiting[1], g)
    else:
        entry = leaves.get(id(edge))
        if entry is None:
            leaves[id(edge)] = [edge, g]
        else:
            entry[1] = _add(entry[1], g)


def _add(first, second):
    if first.__class__ is np.ndarray and second.__class__ is np.ndarray:
        return first + second
    if type(first) is not Parts:
        return elementwise.add(first, second)
    total = Parts(first)
    for position, g in second.items():
        total[position] = elementwise.add(total[position], g) if position in total else g
    return total


def fit(g, edge):
    """``g`` summed over broadcast dimensions to the shape of what it is the gradient of, in its dtype.

    Raises:
        ShapeError: a shape that is not the result of broadcasting the edge's.
    """
    data = edge.data if isinstance(edge, Variable) else edge
    if data.dtype in special:
        return special[data.dtype].fit(g, data)
    if g.shape != data.shape:
        g = sum_to(g, tuple(data.shape))
    if g.dtype is data.dtype:
        return g
    have, want = conversion.dtype(g), dtypes.canonical(data.dtype)
    return g if have == want else conversion.cast(g, want)


def sum_to(g, shape: tuple):
    """``g`` summed over the dimensions along which ``shape`` was broadcast to ``g``'s."""
    axes = _summed(tuple(g.shape), shape)
    if axes:
        g = reductions.sum(g, axes)
    return g if axes is None or g.shape == shape else shaping.reshape(g, shape)


def _summed(have: tuple, shape: tuple) -> tuple | None:
    """The axes along which ``shape`` was broadcast to ``have``; None where a size is unknown."""
    extra = len(have) - len(shape)
    axes = list(range(extra))
    if None in have or None in shape:
        return None
    for i, size in enumerate(shape):
        if extra < 0 or size != 1 and size != have[i + extra]:
            raise ShapeError(f"a gradient of shape {have} cannot be reduced to its input's shape {shape}.")
        if size != have[i + extra]:
            axes.append(i + extra)
    return tuple(axes)


def _rejoin(node: Node, saved: tuple) -> tuple:
    """The node's saved values as variables in the graph, for a pass that is itself recorded."""
    values = []
    for value, slot in zip(saved, node.rule.slots):
        if value is None or slot is None:
            values.append(value)
        elif slot == RESULT:
            if node.shape is None and isinstance(value, (list, tuple)):
                values.append([attach(v, Node(PICK, (node,), (i,), v.shape, v.dtype)) for i, v in enumerate(value)])
            else:
                values.append(attach(value, node))
        elif isinstance(slot, tuple):
            values.append([_rejoin_one(v, node.edges[s]) for v, s in zip(value, slot)])
        else:
            values.append(_rejoin_one(value, node.edges[slot]))
    return tuple(values)


def _rejoin_one(value, edge):
    if edge is None:
        return value
    if edge.__class__ is Node:
        return attach(value, edge)
    return edge


def _materialize(parts: Parts, node: Node):
    """Zeros for the results that have no gradient; a node without templates wants the parts as they are."""
    if node.extra is None:
        return parts
    full = []
    for i, (shape, dtype, owner) in enumerate(node.extra):
        g = parts.get(i)
        if g is None:
            g = owner.module.zeros(tuple(shape), dtype if dtype is str else dtypes.canonical(dtype))
        full.append(g)
    return full


def _leading_to(roots, targets) -> set[int]:
    """The nodes on paths from the roots to the targets, by ``seq``."""
    wanted = {id(t) for t in targets if t._node is None}
    aims = {t._node.seq for t in targets if t._node is not None}
    nodes: dict[int, Node] = {}
    stack = [r._node for r in roots if r._node is not None]
    while stack:
        node = stack.pop()
        if node.seq not in nodes:
            nodes[node.seq] = node
            stack.extend(e for e in node.edges if e.__class__ is Node)
    useful: set[int] = set()
    for seq in sorted(nodes):
        for edge in nodes[seq].edges:
            if edge is None:
                continue
            if edge.__class__ is Node:
                if edge.seq in useful or edge.seq in aims:
                    useful.add(seq)
                    break
            elif id(edge) in wanted:
                useful.add(seq)
                break
    return useful


def _starts(roots, gradients, create_graph) -> list:
    if not roots:
        raise ArgumentError("`variables` must not be empty.", argument="variables")
    given = [None] * len(roots) if gradients is None else _sequence(gradients)
    if len(given) != len(roots):
        raise ArgumentError(
            f"`grad_variables` must have one entry for each variable: expected {len(roots)}, got {len(given)}.",
            argument="grad_variables",
        )
    starts = []
    for root, g in zip(roots, given):
        if not isinstance(root, Variable):
            raise GradientError(
                f"expected variables or torch tensors; got {type(root).__name__}.",
                argument="variables",
                hint="wrap the input: `x = gradops.Variable(x, requires_grad=True)`",
            )
        if not root.requires_grad:
            raise GradientError("the variable does not require a gradient and has no `grad_fn`.", argument="variables")
        if root.dtype in special:
            starts.append(special[root.dtype].seed(root, g))
            continue
        if g is None:
            if conversion.size(root.data) != 1:
                raise GradientError(
                    f"`grad_variables` is needed for a non-scalar of shape {root.shape}.",
                    argument="grad_variables",
                    hint="reduce it to a scalar, or pass the gradient to start from",
                )
            from ..ops.creation import ones_like

            g = ones_like(root.data)
        else:
            if not isinstance(g, Variable) and backends.of(g) is None:
                g = backends.of(root.data).convert(g, conversion.dtype(root.data))
            if tuple(g.shape) != root.shape:
                raise ShapeError(
                    f"`grad_variables` must have the variable's shape {root.shape}; got {tuple(g.shape)}.",
                    argument="grad_variables",
                )
            if not create_graph and isinstance(g, Variable):
                g = g.data
        starts.append(wrap(g) if create_graph and not isinstance(g, Variable) else g)
    return starts


def _accumulate(leaf: Variable, g, create_graph: bool) -> None:
    """Add to ``leaf.grad``: in place, in the leaf's memory layout, unless the pass was recorded."""
    if leaf.dtype in special:
        leaf.grad = special[leaf.dtype].accumulate(leaf, g)
        return
    if create_graph:
        leaf.grad = g if leaf.grad is None else elementwise.add(leaf.grad, g)
        return
    g = g.data if isinstance(g, Variable) else g
    before = leaf._grad
    if before is None:
        if backends.of(leaf.data).name == "numpy":
            fresh = np.empty_like(leaf.data, subok=False)
            fresh[...] = g
            g = fresh
        leaf._grad = wrap(g)
        return
    data = before.data
    if data.__class__ is np.ndarray and data.flags.writeable and before._node is None and isinstance(g, _NUMPY):
        np.add(data, g, out=data)
    else:
        leaf._grad = wrap(elementwise.add(data, g))


_NUMPY = (np.ndarray, np.generic)


def _run_hooks(registered: dict, g, create_graph: bool):
    for hook in list(registered.values()):
        given = g if isinstance(g, Variable) else wrap(g)
        replaced = hook(given)
        if replaced is not None:
            g = replaced if create_graph else (replaced.data if isinstance(replaced, Variable) else replaced)
    return g


def _observed(node: Node, g, saved):
    def apply():
        rule = node.rule
        if rule.parts is None:
            return rule.whole(_materialize(g, node) if type(g) is Parts else g, saved, node)
        return [None if edge is None else part(g, saved, edge) for part, edge in zip(rule.parts, node.edges)]

    for observe in observers:
        apply = functools.partial(observe, node, apply)
    return apply()


def _sequence(value) -> Sequence:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _is_torch(value) -> bool:
    owner = backends.of(value)
    return owner is not None and owner.name == "torch"
