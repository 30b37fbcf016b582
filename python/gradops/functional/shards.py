"""Objectives for optimisers: a function with its derivatives, or a sum over shards of data, computed where they are.

A sum maps :class:`Part` over the shards and adds up the results: by Dask's or Ray's tasks if they hold the shards,
otherwise in a loop in this process. Only the function, the parameters and the sums travel.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import _display, _tree
from .._display import track
from ..errors import (
    ArgumentError,
    ArgumentTypeError,
    Field,
    Given,
    GradientError,
    GradopsError,
    Item,
    ShardError,
    TypeOf,
)
from ..flow import custom_gradient, stop_gradient
from ..ops import _checks, conversion, elementwise
from ..ops._structures import check_functions
from . import matrices
from .reverse import _scalar, value_and_grad


class Objective:
    """``f(x)``, or the sum of ``f(x, shard)`` over shards; each method evaluates ``f`` once on every shard.

    ``x`` is a tensor or a nested structure of tensors, of any backend, and the results are of that backend.
    SciPy's optimisers take the methods directly: ``minimize(total.value_and_grad, x, jac=True)``.

    Raises:
        ShardError: ``f`` failed on a shard, or a shard was lost with its worker. The error names the shard:
            ``data[4]``, or in a bag ``data[2][0]``, the first item of a partition. On Dask only a scattered shard can
            be lost. If ``f`` kills its worker, Dask raises its own error, for a task with the shard's name.
        GradientError: ``x`` is differentiated from outside (as in ``grad(total)``) although Dask or Ray hold the
        shards;
            use the methods for derivatives. A sum over a list is differentiable like any function.
    """

    def __init__(self, f: Callable, data, progress: bool | None = None, reload: Callable | None = None):
        self.f, self.progress, self.reload = f, progress, reload
        self._reduced = _engine(data)
        self.data: list = [None] if data is None else list(data.to_delayed() if _is_bag(data) else data)
        self._held = data  # keeps a persisted bag alive: Dask frees the values with it
        self.places: Any = range(len(self.data))
        self.scale = 1.0

    def __call__(self, x):
        """The value, a scalar tensor."""
        return self._sum(_value, x)

    def value_and_grad(self, x):
        """The value, and the gradient in the structure of ``x``."""
        return self._sum(_value_and_grad, x)

    def grad(self, x):
        """The gradient without the value."""
        return self.value_and_grad(x)[1]

    def hvp(self, x, v):
        """The value and the product of the Hessian with ``v``, see :func:`gradops.functional.hvp`."""
        return self._sum(matrices.hvp, x, v)

    def hessian(self, x):
        """The Hessian, see :func:`gradops.functional.hessian`."""
        return self._sum(matrices.hessian, x)

    def batches(self, batch_size: int = 1, shuffle: bool = True, seed=None) -> Iterator[Objective]:
        """One epoch of mini-batches: objectives of ``batch_size`` shards each that together cover every shard once.

        Each is scaled by the total number of shards divided by its own, so that with ``shuffle`` its value and
        derivatives are unbiased estimates for the full sum (Robbins & Monro 1951).

        Args:
            batch_size: the number of shards, or partitions of a bag, in each; the last may have fewer.
            shuffle: True to draw the shards in random order.
            seed: an integer, or a ``numpy.random.Generator``, which continues from epoch to epoch.

        Raises:
            ArgumentError: a ``batch_size`` below 1.
        """
        batch_size = _checks.integer("Objective.batches", batch_size, "batch_size", 1)
        _checks.check_flags("Objective.batches", shuffle=shuffle)
        order = np.random.default_rng(seed).permutation(self.places).tolist() if shuffle else list(self.places)
        starts = range(0, len(order), batch_size)
        with track(len(starts), "batches", self.progress) as advance:
            for start in starts:
                part = Objective.__new__(Objective)
                part.__dict__.update(self.__dict__, places=order[start : start + batch_size])
                part.scale = self.scale * len(order) / len(part.places)
                yield part
                advance(1)

    def _sum(self, derivative: Callable, *arguments):
        if self._reduced in (alone, run_in_process):
            found = self._reduced(self, Part(self.f, derivative), arguments)
        else:
            reduced = custom_gradient(
                lambda *xs: self._reduced(self, Part(self.f, derivative), _concrete(xs)), _no_gradient
            )
            found = reduced(*arguments)
        return found if self.scale == 1 else _tree.map_leaves(lambda y: y * self.scale, found)

    def __repr__(self) -> str:
        return "<objective>" if self._reduced is alone else f"<objective, {self._about()}>"

    def _about(self) -> str:
        if self._reduced is alone:
            return "of the parameters only"
        engines = {run_in_process: "in process", run_dask: "on Dask", run_bags: "in Dask bags", run_ray: "on Ray"}
        return f"a sum over {len(self.places)} shards {engines[self._reduced]}"

    def _repr_html_(self) -> str:
        """The shards and their contents, as HTML."""
        if self._reduced is alone:
            return _display.block("objective", self._about())
        rows = [[f"data[{i}]", _shown(self.data[i])] for i in self.places]
        return _display.block("objective", self._about(), _display.rows_of(rows, ["shard", "has"], (0, 1)))


def _shown(shard) -> str:
    return "; ".join(_checks.describe(x).text.removeprefix("a tensor of ") for x in _tree.leaves_of(shard)[:9])


def objective(
    f: Callable[..., Any], data: Any = None, progress: bool | None = None, reload: Callable[..., Any] | None = None
) -> Objective:
    """``f(x)``, or the sum of ``f(x, shard)`` over shards of data, with derivatives in ``x``, for optimisers.

    Args:
        f: a function of the parameters, and of a shard if there are data, that returns a real scalar tensor. Dask and
            Ray send it to their workers by cloudpickle, so it may close over objects that can be pickled; gradops must
            be installed there.
        data: None, or the shards, each of them anything that ``f`` takes:

            - a list or tuple: one after the other, in this process;
            - a ``dask.bag.Bag``, whose items are shards, or a list of ``dask.delayed`` values or of futures of
              ``dask.distributed``: by Dask, on the current client or else its own scheduler. Persist shards that are
              costly to load (``bag.persist()``); otherwise they are loaded at each evaluation;
            - a list of Ray's object references: by Ray's tasks.

        progress: show a progress bar of the shards of a list, or of batches (with rich, if installed); by default after
            two seconds in a terminal. Dask and Ray have progress bars of their own.
        reload: a function that makes a shard, in this process, from its position. It is called for shards that
            ``client.scatter`` put on a Dask worker that is gone; they are scattered again, up to three times in an
            evaluation.

    Returns:
        An :class:`Objective`. Calling it returns the value; ``value_and_grad``, ``grad``, ``hvp`` and ``hessian`` are
        its derivatives; ``batches(batch_size)`` yields objectives of a few shards each, for stochastic optimisers.

    Raises:
        ArgumentTypeError: ``data`` is none of the above; ``reload`` is not a function.
        ArgumentError: no shards; ``reload`` for shards that are not futures of ``dask.distributed`` and cannot be lost.

    Gradient:
        Each shard is differentiated by the library of its tensors, and the derivatives are summed. The result is that
        of the sum in one process, up to the order of floating-point additions.

    Examples:
        As callbacks for SciPy's optimisers:

        >>> from scipy.optimize import minimize
        >>> from gradops.functional import objective
        >>> bowl = objective(lambda x: (x[0] - 1) ** 2 + x[1] ** 4 + x[1])
        >>> minimize(bowl, [0.0, 0.0], jac=bowl.grad, hess=bowl.hessian, method="trust-exact").x.round(3)
        array([ 1.  , -0.63])

        The sum of squares over two shards of data, with its minimum from the derivatives:

        >>> import numpy as np
        >>> from gradops import ops
        >>> shards = [np.array([[1.0, 2.0], [2.0, 3.9]]), np.array([[3.0, 6.2]])]
        >>> def loss(w, shard):
        ...     return ops.sum((shard[:, 1] - w * shard[:, 0]) ** 2)
        >>> total = objective(loss, shards)
        >>> value, gradient = total.value_and_grad(1.0)
        >>> print(value.round(4), gradient.round(4))
        14.85 -28.8
        >>> print((1.0 - gradient / total.hessian(1.0)).round(4))
        2.0286

        Stochastic gradient descent, with one shard in each step:

        >>> w, rng = 1.0, np.random.default_rng(0)
        >>> for epoch in range(100):
        ...     for batch in total.batches(1, seed=rng):
        ...         w = w - 0.1 / (epoch + 10) * batch.grad(w)
        >>> print(w.round(2))
        2.03

    See Also:
        :func:`gradops.value_and_grad` for data that are not split into shards.
    """
    if not callable(f):
        raise ArgumentTypeError("`f` must be a function; got {f}.", argument="f", f=TypeOf(f))
    made = Objective(f, data, progress, reload)
    if reload is not None:
        check_functions("objective", reload=reload)
        if not all(_library(shard) == "distributed" for shard in made.data):
            raise ArgumentError(
                "`objective`: `reload` is for futures of `dask.distributed`, which are lost with their worker.",
                argument="reload",
                hint="leave it out: Dask makes delayed values and bags again, and Ray what its tasks made",
            )
    return made


# The results of a shard, and their sum --------------------------------------------------------------------------------


class Part:
    """A derivative of ``f`` at single shards; it is sent to the workers."""

    def __init__(self, f: Callable, derivative: Callable):
        self.f = f
        self.derivative = derivative

    def result(self, place: int, shard, arguments: tuple):
        """The result for the shard at position ``place`` of a list."""
        return self._found(shard, arguments, Item("data", place))

    def partition_total(self, place: int, shards, arguments: tuple) -> list:
        """A list with the sum over all shards in a partition of a bag; an empty list for an empty partition."""
        found = [self._found(shard, arguments, Item(f"data[{place}]", i)) for i, shard in enumerate(shards)]
        return [added(*found)] if found else []

    def _found(self, shard, arguments: tuple, name: Field):
        try:
            return self.derivative(lambda x: _scalar(self.f(x, shard)), *arguments)
        except Exception as error:
            raise _failed("`f` has failed on {shard}: {error}", name, error) from error


def _failed(what: str, shard: Field, error: Exception) -> ShardError:
    return ShardError(what, argument="data", shard=shard, error=Given(f"{type(error).__name__}: {error}"))


def _value(f: Callable, x):
    return f(x)


def _value_and_grad(f: Callable, x):
    return value_and_grad(f)(x)


def added(total, *others):
    """The sum of structures of tensors."""
    for other in others:
        total = _tree.map_leaves(elementwise.add, total, other)
    return total


def _concrete(arguments: tuple) -> tuple:
    """The arguments as they are sent: tensors with values, detached from any recording."""

    def sent(x):
        x = stop_gradient(x)
        try:
            conversion.convert_to_numpy(x)
        except GradopsError as error:
            raise _not_from_outside() from error
        return x

    return _tree.map_leaves(sent, arguments)


def _no_gradient(*arguments, upstream=None):
    raise _not_from_outside()


def _not_from_outside() -> GradientError:
    return GradientError(
        "a sum over shards that Dask or Ray hold cannot be differentiated, compiled or vectorised from outside.",
        argument="x",
        hint="use its own `value_and_grad(x)`, `hvp(x, v)` and `hessian(x)`",
    )


# Engines: each maps the part over the shards and sums the results -----------------------------------------------------


def alone(whole: Objective, part: Part, arguments: tuple):
    """The result of a function without data; its errors name no shard."""
    return part.derivative(lambda x: _scalar(part.f(x)), *arguments)


def run_in_process(whole: Objective, part: Part, arguments: tuple):
    total = None
    with track(len(whole.places), "objective", whole.progress) as advance:
        for place in whole.places:
            found = part.result(place, whole.data[place], arguments)
            total = found if total is None else added(total, found)
            advance(1)
    return total


def run_dask(whole: Objective, part: Part, arguments: tuple):
    return _run_dask(whole, part, arguments, _part_result)


def run_bags(whole: Objective, part: Part, arguments: tuple):
    return _run_dask(whole, part, arguments, _partition_total)


def _run_dask(whole: Objective, part: Part, arguments: tuple, one: Callable):
    import dask
    from dask import bag

    sent = dask.delayed((part, arguments), traverse=False)
    at, add = dask.delayed(one, traverse=False), dask.delayed(_added, traverse=False)
    # Dask runs bags in processes and delayed values in threads by default.
    scheduler = dask.base.get_scheduler(cls=bag.Bag) if one is _partition_total else None
    for attempt in range(_MAX_RELOADS + 1):
        run = uuid.uuid4()  # Dask treats tasks of the same name as one task
        parts = [at(sent, i, whole.data[i], dask_key_name=f"data[{i}]-{run}") for i in whole.places]
        try:
            found = _task_tree(parts, add).compute(scheduler=scheduler)
            break
        except Exception as error:
            lost = [i for i in whole.places if _is_lost(whole.data[i])]
            if not lost:
                raise
            if whole.reload is None or attempt == _MAX_RELOADS:
                raise _lost("Dask", lost[0], error) from error
            for i in lost:
                whole.data[i] = whole.data[i].client.scatter(whole.reload(i))
    if not found:
        raise ArgumentError("`data` must hold at least one shard.", argument="data")
    return found[0]


_RESULTS_PER_TASK = 8
"""The number of results that one task adds up."""


def _task_tree(parts: list, add: Callable) -> Any:
    """The sum of an engine's results as a tree of tasks; each task adds up to ``_RESULTS_PER_TASK`` of them."""
    while len(parts) > 1:
        parts = [add(*parts[i : i + _RESULTS_PER_TASK]) for i in range(0, len(parts), _RESULTS_PER_TASK)]
    return parts[0]


_MAX_RELOADS = 3
"""The number of times lost shards are reloaded in an evaluation, as often as Dask retries a task whose worker died."""


def _is_lost(shard) -> bool:
    """True for a future whose value was lost with a worker."""
    return _library(shard) == "distributed" and shard.status in ("cancelled", "lost")


def _part_result(sent, place: int, shard) -> list:
    part, arguments = sent
    return [part.result(place, shard, arguments)]


def _partition_total(sent, place: int, shards) -> list:
    part, arguments = sent
    return part.partition_total(place, shards, arguments)


def _added(*parts: list) -> list:
    """A list with the sum of results, each in a list; an empty list if there are no results."""
    found = [x for some in parts for x in some]
    return [added(*found)] if found else []


def run_ray(whole: Objective, part: Part, arguments: tuple):
    import ray

    at, add = ray.remote(Part.result), ray.remote(added)
    sent, arguments = ray.put(part), ray.put(arguments)
    one = [at.options(name=f"data[{i}]").remote(sent, i, whole.data[i], arguments) for i in whole.places]
    try:
        return ray.get(_task_tree(one, add.remote))
    except ray.exceptions.RayError:
        for place, found in zip(whole.places, one):
            _raise_of(place, found)
        raise


def _raise_of(place: int, found) -> None:
    """Raise the error that Ray raised for a shard, with the shard's name."""
    import ray

    try:
        ray.get(found)
    except ShardError:
        raise
    except ray.exceptions.RayError as error:
        raise _lost("Ray", place, error) from error


def _lost(engine: str, place: int, error: Exception) -> ShardError:
    said = Given(f"{type(error).__name__}: {error}")
    return ShardError(f"{engine} has lost {{shard}}: {{said}}", argument="data", shard=Item("data", place), said=said)


_ENGINES = {"dask": run_dask, "distributed": run_dask, "ray": run_ray}


def _engine(data) -> Callable:
    """The function that evaluates a sum over these shards."""
    if data is None:
        return alone
    if _is_bag(data):
        return run_bags
    if not isinstance(data, (list, tuple)):
        raise ArgumentTypeError(
            "`data` must be a list of shards or a `dask.bag.Bag`; got {data}.",
            argument="data",
            hint="the partitions of another Dask collection are `list(data.to_delayed())`",
            data=TypeOf(data),
        )
    if not data:
        raise ArgumentError("`data` must hold at least one shard.", argument="data")
    engines = {_ENGINES.get(_library(shard), run_in_process) for shard in data}
    if len(engines) > 1:
        raise ArgumentTypeError(
            f"the shards in `data` must all be held by one engine; got {', '.join(sorted(map(_library, data)))}.",
            argument="data",
        )
    return engines.pop()


def held(data) -> bool:
    """True if ``data`` is, or contains, shards held by an engine."""
    return _is_bag(data) or isinstance(data, (list, tuple)) and any(_library(shard) in _ENGINES for shard in data)


def _library(x) -> str:
    return type(x).__module__.partition(".")[0]


def _is_bag(data) -> bool:
    return _library(data) == "dask" and hasattr(data, "fold")
