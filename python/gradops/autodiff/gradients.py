"""``backward`` and ``grad``: a backward pass from results, with gradients added to leaves or returned."""

from __future__ import annotations

from contextvars import ContextVar

import numpy as np

from .. import backends
from ..errors import VARIABLE, ArgumentError, ArgumentTypeError, GradientError, Item, ShapeError, TypeOf
from ..ops import creation, mapping
from . import engine, initial_gradients, torch_tape
from .cotangents import zeros
from .graph import AccumulateGrad, GradientEdge, asked, key
from .state import hooks, observers
from .variable import Variable, attach, data_of, method, wrap


def backward(
    variables=None,
    grad_variables=None,
    retain_graph=None,
    create_graph=False,
    inputs=None,
    *,
    tensors=None,
    grad_tensors=None,
) -> None:
    """Compute gradients of ``variables`` and add them to the ``grad`` of the leaves they depend on.

    Args:
        variables: a variable or several, or results of :func:`get_gradient_edge` (or torch tensors, for which torch's
            own engine runs).
        grad_variables: the gradients to start from, each with the shape of its variable. May be omitted for
            scalars, whose gradient is then 1; None stands for these.
        retain_graph: keep the graph for another pass; by default the value of ``create_graph``.
        create_graph: record the pass, so that gradients can be differentiated.
        inputs: add to the ``grad`` of these variables only, and visit only the part of the graph that they need.
            Results among them also get their ``grad``.
        tensors, grad_tensors: PyTorch's names for ``variables`` and ``grad_variables``.

    Raises:
        GradientError: (a RuntimeError) a non-scalar without ``grad_variables``; a variable that requires
            no gradient; a graph that was freed; ``inputs`` that are not variables.
        ArgumentError: no ``variables``, or both names of one argument.
        ShapeError: a gradient of another shape than its variable.

    Gradient:
        Like ``torch.autograd.backward`` (Paszke et al. 2017). Safe to call from several threads: each adds its
        gradients.

    Examples:
        Two losses at once:

        >>> import gradops
        >>> from gradops import autodiff
        >>> w = gradops.Variable(2.0, requires_grad=True)
        >>> autodiff.backward([w**2, 3.0 * w])
        >>> print(w.grad.numpy())
        7.0

        A vector, with the gradient to start from:

        >>> x = gradops.Variable([1.0, 2.0], requires_grad=True)
        >>> autodiff.backward(x**2, gradops.ops.array([1.0, 10.0]))
        >>> print(x.grad.numpy())
        [ 2. 40.]

    See Also:
        :func:`grad`, which returns gradients instead; ``Variable.backward``.
    """
    variables = _argument_value("variables", variables, "tensors", tensors)
    grad_variables = _argument_value("grad_variables", grad_variables, "grad_tensors", grad_tensors)
    if variables is None:
        raise ArgumentError("`backward` needs `variables` to begin from.", argument="variables")
    roots = list(map(_root, _sequence(variables)))
    given = None if grad_variables is None else _remarks(roots, _sequence(grad_variables))
    if any(map(_is_torch, roots)):
        torch_tape.backward(roots, given, retain_graph=retain_graph, create_graph=create_graph, inputs=inputs)
        return
    wanted = None if inputs is None else _wanted(inputs)
    starts = _seeds(roots, given, create_graph)
    retain = create_graph if retain_graph is None else retain_graph
    gradients = engine.run(roots, starts, retain, create_graph, wanted)
    for x in wanted or ():
        if x._node is not None and (found := gradients.pop(key(asked(x)), None)) is not None and not x.retains_grad:
            gradients[-id(x)] = [x, found[1]]
    undelivered = held_back.get()
    if undelivered is None:
        deliver(gradients, create_graph)
    else:
        undelivered.append((gradients, create_graph))


def _argument_value(name: str, value, other: str, of_other):
    """The value of an argument that has two names; raises if both are given."""
    if value is not None and of_other is not None:
        raise ArgumentError(f"`backward`: pass `{name}` or `{other}`, two names of one argument.", argument=name)
    return of_other if value is None else value


held_back: ContextVar[list | None] = ContextVar("gradops_held_back", default=None)
"""The list in which concurrent passes leave their gradients, to be added in order."""


def deliver(gradients: dict[int, list], create_graph: bool) -> None:
    """Add the gradients of a pass to the ``grad`` of its leaves."""
    for leaf, g in gradients.values():
        engine.accumulate(leaf, g, create_graph)


def _remarks(roots: list, given: list) -> list:
    """Combine several remarks on one text into one gradient."""
    if len(roots) == 1 and len(given) > 1 and getattr(roots[0], "dtype", None) is str:
        return [given]
    return given


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    allow_unused=None,
    materialize_grads=False,
    is_grads_batched=False,
) -> tuple:
    """Gradients of the sum of ``outputs`` (weighted by ``grad_outputs``) with respect to ``inputs``.

    Args:
        outputs, inputs: a variable or several (or torch tensors), or results of :func:`get_gradient_edge`. Inputs need
            not be leaves.
        grad_outputs, retain_graph, create_graph: see :func:`backward`.
        allow_unused: return None for inputs that the outputs do not depend on, instead of raising an error.
        materialize_grads: return zeros instead of None.
        is_grads_batched: True if each of ``grad_outputs`` has several gradients along a first dimension, as each result
            then does; they are propagated together if the rules on the way allow it. The graph is retained.

    Returns:
        A tuple of variables (torch tensors for torch tensors), one for each input, each in its own memory.
        No ``grad`` changes.

    Raises:
        GradientError: (a RuntimeError) see :func:`backward`; also for an unused input unless allowed.
        ArgumentError: ``materialize_grads`` with ``allow_unused=False``; ``is_grads_batched`` without ``grad_outputs``.
        ArgumentTypeError: an array as ``is_grads_batched`` or ``materialize_grads``.

    Gradient:
        Like ``torch.autograd.grad``; differentiable with ``create_graph=True``.

    Examples:
        The second derivative, from a recorded first derivative:

        >>> import gradops
        >>> from gradops import autodiff
        >>> x = gradops.Variable(2.0, requires_grad=True)
        >>> (first,) = autodiff.grad(x**3, x, create_graph=True)
        >>> (second,) = autodiff.grad(first, x)
        >>> print(first.item(), second.item())
        12.0 12.0

    See Also:
        :func:`backward`, which adds to ``grad``; :func:`gradops.gradient`; :func:`gradops.grad` for functions.
    """
    for name, flag in (("is_grads_batched", is_grads_batched), ("materialize_grads", materialize_grads)):
        if hasattr(flag, "shape") and not isinstance(flag, np.bool_):
            raise ArgumentTypeError(
                f"`{name}` must be {{True}} or {{False}}; got {{got}}.", argument=name, got=TypeOf(flag)
            )
    roots = [_root(backends.held(x)) for x in _sequence(outputs)]
    targets = list(map(backends.held, _sequence(inputs)))
    given = None if grad_outputs is None else _sequence(grad_outputs)
    if allow_unused is False and materialize_grads:
        raise ArgumentError("`allow_unused` must not be {False} with `materialize_grads`.", argument="allow_unused")
    allowed = materialize_grads if allow_unused is None else allow_unused
    if any(map(_is_torch, roots)):
        passing = {"retain_graph": retain_graph, "create_graph": create_graph, "is_grads_batched": is_grads_batched}
        unused = {"allow_unused": allowed, "materialize_grads": materialize_grads}
        return torch_tape.grad(roots, targets, given, **passing, **unused)
    if is_grads_batched:
        settings = {"create_graph": create_graph, "allow_unused": allow_unused, "materialize_grads": materialize_grads}
        return _batched(roots, targets, given, settings)
    for i, target in enumerate(targets):
        if not isinstance(target, (Variable, GradientEdge)) or not target.requires_grad:
            raise GradientError(
                "{item} does not require a gradient.",
                argument="inputs",
                hint="make a variable of it before computing with it: {variable}",
                item=Item("inputs", i),
                variable=VARIABLE,
            )
    starts = _seeds(roots, given, create_graph, ("outputs", "grad_outputs"))
    retain = create_graph if retain_graph is None else retain_graph
    ends = engine.run(roots, starts, retain, create_graph, targets)
    found = [_found(i, x, ends, allowed, materialize_grads) for i, x in enumerate(targets)]
    return tuple(unshared(found, [*targets, *starts]))


def _batched(roots: list, targets: list, given: list | None, settings: dict) -> tuple:
    """:func:`grad` for several gradients of each root, along a first dimension."""
    if given is None or all(g is None for g in given):
        raise ArgumentError("`is_grads_batched` needs `grad_outputs`.", argument="grad_outputs")
    _check_roots(roots, "outputs")
    given = initial_gradients.pair(roots, given, ("outputs", "grad_outputs"))
    places = [i for i, g in enumerate(given) if g is not None]
    rows = [initial_gradients.tensor(roots[i].data, given[i]) for i in places]
    for i, row in zip(places, rows):
        if backends.backend_of(data_of(row)) is None:
            raise initial_gradients.no_gradient("grad_outputs", given[i])
    rows = rows if settings["create_graph"] else list(map(data_of, rows))
    if any(not x.shape or x.shape[0] != rows[0].shape[0] for x in rows):
        raise ShapeError(
            f"`grad_outputs` must have a first dimension of one size with `is_grads_batched`; got shapes "
            f"{', '.join(str(tuple(x.shape)) for x in rows)}.",
            argument="grad_outputs",
        )

    def one(*row):
        seeds: list = [None] * len(given)
        for i, g in zip(places, row):
            seeds[i] = g
        found = grad(roots, targets, seeds, retain_graph=True, **settings)
        return found if settings["create_graph"] else tuple(None if g is None else data_of(g) for g in found)

    if hooks or observers:  # they would see batches
        found = mapping.map(lambda row: one(*row), tuple(rows))
    else:
        found = mapping.map_rows("grad", one, rows, rows[0].shape[0], backends.backend_of(data_of(rows[0])))
    return tuple(g if g is None or isinstance(g, Variable) else wrap(g) for g in found)


def leaf_gradients(y: Variable, leaves: list, retain_graph: bool = False, materialize_grads: bool = True) -> tuple:
    """:func:`grad` for a ``y`` that depends on no leaves other than these, so that the pass need not skip any."""
    ends = engine.run([y], [engine.seed(y, None, False)], retain_graph, False)
    return tuple(unshared([_found(i, x, ends, True, materialize_grads) for i, x in enumerate(leaves)], leaves))


def unshared(found: list, others: list) -> list:
    """``found``, with copies so that writing to one gradient changes neither another one nor one of ``others``."""
    taken = {id(data_of(x)) for x in others}
    for i, g in enumerate(found):
        data = getattr(g, "data", None)
        if isinstance(data, np.ndarray):
            # Rules may pass gradients on unchanged: `x + y` passes one array to both, and the seed itself may arrive.
            # Users scale gradients in place, so each one gets its own array.
            if id(data) in taken or data.base is not None or not data.flags.owndata:
                data = data.copy("K")
                found[i] = engine.alias(g, data)
        elif any(g is x for x in (*others, *found[:i])) and isinstance(g, Variable):
            found[i] = engine.alias(g, data)
        taken.add(id(data))
    return found


def _found(i: int, x, ends: dict, allowed: bool, materialize: bool) -> Variable | None:
    """The gradient of input ``i``, from the ends of a pass."""
    _, g = ends.get(key(asked(x)), (None, None))
    if g is None and not allowed:
        raise GradientError(
            "{item} was not used in the graph of the outputs.",
            item=Item("inputs", i),
            argument="inputs",
            hint="set `allow_unused=True` if that is intended",
        )
    if g is None and materialize:
        g = zeros(x.template) if isinstance(x, GradientEdge) else creation.zeros_like(x.data)
    return g if g is None or isinstance(g, Variable) else wrap(g)


def _wanted(inputs) -> list:
    found = [x.node.variable if _is_leaf_edge(x) else x for x in _sequence(inputs)]
    if not found:
        raise GradientError("`inputs` must not be empty.", argument="inputs")
    other = next((x for x in found if not isinstance(x, Variable)), None)
    if other is not None:
        raise GradientError(
            f"`inputs` must be variables or edges of leaves, which have `grad`; got {type(other).__name__}.",
            argument="inputs",
            hint="`grad()` returns the gradients of other edges",
        )
    return found


def _check_roots(roots: list, argument: str) -> None:
    for root in roots:
        if not isinstance(root, Variable):
            raise GradientError(
                "expected variables or torch tensors; got {root}.",
                argument=argument,
                hint="wrap the input: {variable}",
                variable=VARIABLE,
                root=TypeOf(root),
            )


def _seeds(
    roots: list, given: list | None, create_graph: bool, names: tuple[str, str] = initial_gradients.NAMES
) -> list:
    _check_roots(roots, names[0])
    pairs = zip(roots, initial_gradients.pair(roots, given, names))
    return [engine.seed(root, g, create_graph, names) for root, g in pairs]


def _is_leaf_edge(value) -> bool:
    return isinstance(value, GradientEdge) and isinstance(value.node, AccumulateGrad)


def _root(value):
    """The variable that stands for an edge where a pass begins; other values unchanged."""
    if not isinstance(value, GradientEdge):
        return value
    if _is_leaf_edge(value):
        return value.node.variable
    return attach(zeros(value.template), value.node)


def _sequence(value) -> list:
    several = isinstance(value, (list, tuple)) and not hasattr(value, "output_nr")  # PyTorch's edges are tuples
    return list(value) if several else [value]


def _is_torch(value) -> bool:
    """True for a torch tensor, or PyTorch's edge."""
    owner = backends.backend_of(value)
    return owner is not None and owner.derivatives.own_tape or hasattr(value, "output_nr")


def get_gradient_edge(variable):
    """The place in the graph that the gradient of a variable, or of a torch tensor, goes to.

    It keeps the graph alive but not the variable's data. It stands for the variable in ``inputs`` of :func:`grad` and,
    if the variable is a leaf, of :func:`backward`, even after the name is rebound or the variable is written in place.

    Returns:
        A ``GradientEdge`` with ``node`` and ``output_nr``; PyTorch's own for a torch tensor.

    Raises:
        GradientError: the variable requires no gradient.
        ArgumentTypeError: a value that is neither a variable nor a torch tensor.

    Examples:
        >>> import gradops
        >>> from gradops import autodiff
        >>> x = gradops.Variable(3.0, requires_grad=True)
        >>> y = x * 2
        >>> edge = autodiff.get_gradient_edge(y)
        >>> y = y * y
        >>> print(autodiff.grad(y, edge)[0].item())
        12.0

    See Also:
        ``torch.autograd.graph.get_gradient_edge``, the model for this function.
    """
    if _is_torch(variable):
        return torch_tape.gradient_edge(variable)
    if not isinstance(variable, Variable):
        raise ArgumentTypeError(
            "`variable` must be a variable or a torch tensor; got {variable}.",
            argument="variable",
            hint="wrap the input: {example}",
            example=VARIABLE,
            variable=TypeOf(variable),
        )
    if not variable.requires_grad:
        raise GradientError("`variable` does not require a gradient.", argument="variable")
    return GradientEdge(variable._node or AccumulateGrad(variable), backends.backend_of(variable.data))


@method("backward")
def _backward(self: Variable, gradient=None, retain_graph=None, create_graph=False, inputs=None) -> None:
    """:func:`gradops.autodiff.backward` from this variable.

    Examples:
        >>> import gradops
        >>> x = gradops.Variable([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> print(x.grad.numpy())
        [2. 4.]

    See Also:
        :func:`backward`, :func:`grad`.
    """
    backward([self], [gradient], retain_graph=retain_graph, create_graph=create_graph, inputs=inputs)
