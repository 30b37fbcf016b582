"""Parameters by name and as one vector: which are estimated, which are random, fixed or shared."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from .. import _names, _tree, backends, config, ops
from ..autodiff.variable import data_of
from ..errors import ArgumentError, ArgumentTypeError, TypeOf
from ..ops._structures import check_functions
from ..scipy._tensors import constant_like
from .observations import scope
from .transforms import Transform

C = TypeVar("C")


def made_by(function: str) -> Callable[[type[C]], type[C]]:
    """Decorate a class whose objects only ``function`` may create.

    Raises:
        ArgumentTypeError: the class is called by users: no argument is a layout or has one.
    """

    def decorate(cls: type[C]) -> type[C]:
        initialize: Any = cls.__init__
        first = list(inspect.signature(initialize).parameters)[1]

        @functools.wraps(initialize)
        def checked(self, *args, **kwargs):
            if not any(isinstance(getattr(x, "layout", x), Layout) for x in (*args, *kwargs.values())):
                raise ArgumentTypeError(
                    f"`inference.{cls.__name__}`: objects of this class are made by `inference.{function}()`.",
                    argument=first,
                )
            initialize(self, *args, **kwargs)

        cls.__init__ = checked  # type: ignore[method-assign]
        return cls

    return decorate


class Layout:
    """How the vector of all parameters is made of estimated parameters, random effects and fixed values.

    Args:
        values: the starting values of all parameters.
        names: their names.
        random: True for each random effect.
        labels: an integer for each parameter: parameters with the same label share a value, -1 fixes. By default each
            has a label of its own.
        profiled: True for each random effect that is maximised over, not integrated out.

    Attributes:
        theta, u: the starting values of the estimated parameters and of the random effects.
        names_of_theta, names_of_u: their names.
        integrated: for each random effect, whether it is integrated out.
        transformed: whether the parameters are unconstrained, and transforms make the user's of them.
    """

    transformed = False

    def __init__(self, values, names: list[str], random=None, labels=None, profiled=None):
        self.values, self.names = np.array(values, float).reshape(-1), list(names)
        size = self.values.size
        random = np.zeros(size, bool) if random is None else np.asarray(random, bool)
        labels = np.arange(size) if labels is None else np.asarray(labels)
        free = labels >= 0
        mixed = np.intersect1d(labels[free & random], labels[free & ~random])
        if mixed.size:
            found = [self.names[k] for k in np.flatnonzero(labels == mixed[0])]
            raise ArgumentError(f"`map`: {listed(found)} share a value, but not all are random.", argument="map")
        sources = []
        self._place = np.zeros(size, np.int64)
        start = 0
        for chosen in (free & ~random, free & random):
            _, first, back = np.unique(labels[chosen], return_index=True, return_inverse=True)
            order = np.argsort(first)  # in order of first appearance
            rank = np.empty_like(order)
            rank[order] = np.arange(len(order))
            self._place[chosen] = start + rank[back.reshape(-1)]
            sources.append(np.flatnonzero(chosen)[first[order]])
            start += len(order)
        self._first = sources[0]
        profiled = np.zeros(size, bool) if profiled is None else np.asarray(profiled, bool)
        self.integrated = ~profiled[sources[1]]
        fixed = np.flatnonzero(~free)
        self._place[fixed] = start + np.arange(len(fixed))
        self._fixed = self.values[fixed]
        self._among = random
        (self.theta, self.u), (self.names_of_theta, self.names_of_u) = (
            [self.values[s] for s in sources],
            [[self.names[k] for k in s] for s in sources],
        )

    def vector(self, theta, u):
        """Return the vector of all parameters from tensors of the estimated parameters and the random effects."""
        sizes = self.theta.size, self.u.size, self._fixed.size
        return _taken([theta, u, constant_like(self._fixed, theta)], sizes, self._place)

    def kind(self) -> tuple:
        """Return a key that is equal for layouts that differ in their starting values only."""
        return self.theta.size, self.u.size, self._place.tobytes(), self._among.tobytes(), self._fixed.tobytes()

    def halves(self, theta, u) -> tuple:
        """Return :meth:`vector` in two parts: parameters that are not random, and random effects if there are any.

        In one vector every element would seem to depend on the random effects.
        """
        fixed, count = constant_like(self._fixed, theta), self.theta.size
        place = self._place[~self._among]
        place = np.where(place < count, place, place - self.u.size)
        first = _taken([theta, fixed], (count, self._fixed.size), place)
        if not self._among.any():
            return (first,)
        return first, _taken([u, fixed], (self.u.size, self._fixed.size), self._place[self._among] - count)

    def numbers(self, theta, u) -> np.ndarray:
        """Return :meth:`vector` for NumPy arrays."""
        return np.concatenate([theta, u, self._fixed])[self._place]

    def spread(self, of_theta, of_u) -> np.ndarray:
        """Distribute values of the estimated parameters and random effects to all parameters; NaN if fixed."""
        return np.concatenate([of_theta, of_u, np.full(self._fixed.size, np.nan)])[self._place]

    def columns(self, jacobian: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return derivatives by the estimated parameters and by the random effects, from those by all parameters."""
        sizes = self.theta.size, self.u.size, self._fixed.size
        found = np.zeros((len(jacobian), sum(sizes)))
        np.add.at(found.T, self._place, jacobian.T)
        return found[:, : sizes[0]], found[:, sizes[0] : sum(sizes[:2])]

    def gathered(self, values: np.ndarray) -> np.ndarray:
        """Return for each estimated parameter the value of the first parameter that shares it."""
        return values[self._first]


def _taken(parts: list, sizes: tuple, places: np.ndarray):
    """Take elements at ``places`` from the concatenation of ``parts``, leaving out the parts that none is in."""
    starts = np.cumsum([0, *sizes])
    used = [bool(((places >= start) & (places < end)).any()) for start, end in zip(starts, starts[1:])]
    chosen = [part for part, use in zip(parts, used) if use] or parts[:1]
    skipped = np.cumsum([0 if use else size for use, size in zip(used, sizes)])
    places = places - skipped[np.searchsorted(starts, places, side="right") - 1]
    whole = chosen[0] if len(chosen) == 1 else ops.concatenate(chosen)
    size = sum(size for size, use in zip(sizes, used) if use) if any(used) else sizes[0]
    return whole if np.array_equal(places, np.arange(size)) else ops.take(whole, places, 0)


class Parameters:
    """Conversion between the user's structure of parameters and the vectors of a :class:`Layout`.

    Raises:
        ArgumentTypeError: a parameter that is not a tensor or number; a transform of another type.
        ArgumentError: an unknown name in ``random``, ``map`` or ``transforms``; a map whose size differs from its
            parameter's; a start outside of its transform's range.
    """

    def __init__(self, start, random=(), map=None, names=None, transforms=None, profile=()):
        start = _as_arrays(start)
        leaves, self.structure = _tree.flatten(start)
        self.order = list(_tree.own_order(self.structure))
        self.backend = backends.common([type(data_of(x)) for x in leaves], "inference") or config.default_backend()
        arrays = [self._array(leaves[k]) for k in self.order]
        self.tops, titles = _titles(start, self.structure, self.order)
        given = values_by_name(transforms, "transforms")
        _known(tuple(given), self.tops, "transforms")
        self.transforms = [given.get(top) for top in self.tops]
        for k, transform in enumerate(self.transforms):
            if transform is not None:
                arrays[k], titles[k] = free_numbers(transform, arrays[k], titles[k]), f"{titles[k]} (free)"
        self._titles, self.shapes = titles, [x.shape for x in arrays]
        sizes = [x.size for x in arrays]
        values = np.concatenate([x.reshape(-1) for x in arrays]) if arrays else np.zeros(0)
        names = names or [name for title, shape in zip(titles, self.shapes) for name in _elements(title, shape)]
        chosen, profiled = (
            _known(_names_in(() if names is None else names, what), self.tops, what)
            for names, what in ((random, "random"), (profile, "profile"))
        )
        self.owners = np.repeat(np.array(self.tops, object), sizes)
        labels = _labels(values_by_name(map, "map"), self.owners, self.tops)
        self._random = [top in chosen or top in profiled for top in self.tops]
        among = np.repeat(np.array(self._random, bool), sizes)
        self.layout = Layout(values, names, among, labels, [top in profiled for top in self.owners])
        self.layout.transformed = bool(given)
        self._sizes = sizes

    def _array(self, x) -> np.ndarray:
        try:
            return np.asarray(ops.convert_to_numpy(data_of(x)) if backends.backend_of(data_of(x)) else x, float)
        except (TypeError, ValueError) as error:
            raise ArgumentTypeError(
                "`start`: a parameter must be a tensor, a number or a list of numbers; got {value}.",
                argument="start",
                value=TypeOf(x),
            ) from error

    def tree(self, vector, effects=None) -> Any:
        """Return the parameters in the user's structure, from one vector or the two of :meth:`Layout.halves`."""
        found: list = [None] * len(self.order)
        receiver = scope()
        among = zip(self.order, self._parts(vector, effects), self.transforms, self._random, self._titles)
        for k, part, transform, random, title in among:
            found[k] = part if transform is None else transform(part)
            if random and receiver is not None and receiver.effects:
                found[k] = receiver.observe(found[k], title)
        return _tree.unflatten(self.structure, found)

    def kind(self) -> tuple:
        """Return a key that is equal for parameters that differ in their starting values only."""
        transforms, orders = tuple(self.transforms), _tree.dict_orders(self.structure)
        return self.structure, orders, tuple(self.shapes), transforms, self.layout.kind()

    def _parts(self, vector, effects=None):
        starts = [0, 0]
        for shape, size, random in zip(self.shapes, self._sizes, self._random):
            half = random and effects is not None
            whole, start = effects if half else vector, starts[half]
            starts[half] += size
            yield ops.reshape(whole[start : start + size], shape) if shape else whole[start]

    def log_jacobian(self, vector):
        """Return the log Jacobian determinant of all transforms at unconstrained parameters; 0 without transforms."""
        found = [t.log_jacobian(x) for t, x in zip(self.transforms, self._parts(vector)) if t is not None]
        return sum(found) if found else 0.0

    def bounds(self, given: dict) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and upper bounds of the estimated parameters.

        Raises:
            ArgumentError: an unknown name; bounds that are not a pair, have the wrong size, or are crossed.
        """
        _known(tuple(given), list(self.tops), "bounds")
        both = [name for name, transform in zip(self.tops, self.transforms) if transform is not None and name in given]
        if both:
            message = f"`bounds`: {listed(both)} has a transform, which is within bounds of its own."
            raise ArgumentError(message, argument="bounds")
        ends = np.full((2, self.owners.size), [[-np.inf], [np.inf]])
        for name, pair in given.items():
            places = self.owners == name
            try:
                for end, x, side in zip(ends, pair, (-np.inf, np.inf), strict=True):
                    end[places] = side if x is None else np.reshape(x, -1)
            except (TypeError, ValueError) as error:
                raise ArgumentError(
                    f"`bounds`: `{name}` needs a pair of the least and the largest value, numbers or arrays of its "
                    f"{places.sum()} elements.",
                    argument="bounds",
                ) from error
        lower, upper = map(self.layout.gathered, ends)
        if (lower > upper).any():
            crossed = [n for n, bad in zip(self.layout.names_of_theta, lower > upper) if bad]
            raise ArgumentError(f"`bounds`: the least is above the largest of {listed(crossed)}.", argument="bounds")
        return lower, upper

    def tensor(self, x: np.ndarray):
        """Convert a NumPy array to a tensor of the parameters' library.

        Raises:
            ArgumentTypeError: the library has no double precision, like JAX without x64.
        """
        return double_tensor(self.backend, x)


def free_numbers(transform, x: np.ndarray, title: str) -> np.ndarray:
    """Return the unconstrained starting values of a transformed parameter.

    Raises:
        ArgumentTypeError: not a transform.
        ArgumentError: the values are not finite.
    """
    if not isinstance(transform, Transform):
        raise ArgumentTypeError(
            f"`transforms`: `{title}` needs a transform of `gradops.inference.transforms`; got {{value}}.",
            argument="transforms",
            value=TypeOf(transform),
        )
    with np.errstate(all="ignore"):
        found = np.asarray(ops.convert_to_numpy(transform.inverse(x)))
    if not np.isfinite(found).all():
        raise ArgumentError(f"`start`: `{title}` is not within {transform.name}; got {x}.", argument="start")
    return found


def double_tensor(backend, x: np.ndarray):
    """Convert a NumPy array to a backend's tensor; raises as :meth:`Parameters.tensor`."""
    if x.__class__ is np.ndarray and x.dtype == np.float64 and backend.is_tensor_type(np.ndarray):
        return x  # the rest would take a tenth of a short evaluation
    found = backend.convert(np.asarray(x, float))
    if ops.dtype(found) != "float64":
        raise ArgumentTypeError(
            f"`inference` needs double precision; {backend.name} made {ops.dtype(found)} of it.",
            argument="start",
            hint="it is a setting of the library: JAX's `jax_enable_x64`",
        )
    return found


def _names_in(given, argument: str) -> tuple:
    """Return a tuple of names, from one name or several.

    Raises:
        ArgumentTypeError: something other than names.
    """
    found = (given,) if isinstance(given, str) else given
    if not isinstance(found, (tuple, list, set)) or not all(isinstance(name, (str, int)) for name in found):
        raise ArgumentTypeError(
            f"`{argument}` must be names of parameters; got {{value}}.", argument=argument, value=TypeOf(given)
        )
    return tuple(found)


def values_by_name(given, argument: str) -> dict:
    """Return a dict with names of parameters as keys; an empty one for None.

    Raises:
        ArgumentTypeError: not a dict.
    """
    if given is not None and not isinstance(given, dict):
        raise ArgumentTypeError(
            f"`{argument}` must be a dict by names of parameters; got {{value}}.",
            argument=argument,
            value=TypeOf(given),
        )
    return given or {}


def check_likelihood(name: str, argument: str, f: Callable, data=None) -> None:
    """Raise unless ``f`` takes the parameters, and data if they are given."""
    try:
        check_functions(name, 1 if data is None else 2, **{argument: f})
    except ArgumentTypeError as error:
        if not callable(f):
            raise
        raise ArgumentTypeError(
            error.template, argument=argument, hint="all parameters are one argument, in the form of `start`"
        ) from None


def function_of(f: Callable, parameters: Parameters) -> Callable:
    """Return ``f`` as a function of the vectors of estimated parameters and random effects."""

    def function(theta, u):
        tree = parameters.tree(*parameters.layout.halves(theta, u))
        try:
            return f(tree)
        except KeyError as error:
            if isinstance(tree, dict) and hasattr(error, "add_note"):  # Python 3.11
                error.add_note(f"The parameters are those of `start`: {listed(list(tree))}.")
            raise

    return function


def _as_arrays(x):
    """Replace lists of numbers in a structure by arrays."""
    if isinstance(x, dict):
        return {key: _as_arrays(part) for key, part in x.items()}
    if isinstance(x, list) and all(isinstance(item, (int, float)) for item in _tree.items(x)):
        try:
            return np.array(x, float)
        except ValueError:  # lists of several lengths are a structure
            return x
    return x


def _titles(start, structure, order) -> tuple[list, list[str]]:
    """Return the top-level key of each leaf, and its name: all keys joined by dots."""
    paths = [path for _, path in _paths(structure)]
    tops = [paths[k][0] if paths[k] else None for k in order]
    titles = titles_of(structure)
    return tops, [titles[k] for k in order]


def titles_of(structure) -> list[str]:
    """Return the name of each leaf: its keys joined by dots."""
    return [".".join(map(str, path)) or "x" for _, path in _paths(structure)]


def _paths(structure, path=()):
    if structure.kind == "leaf":
        yield structure, path
    for key, part in zip(structure.order or range(len(structure.parts)), structure.parts):
        yield from _paths(part, (*path, key))


def _elements(title: str, shape: tuple) -> list[str]:
    if not shape:
        return [title]
    return [f"{title}[{', '.join(map(str, at))}]" for at in np.ndindex(shape)]


def _known(given: tuple, tops: list, argument: str) -> tuple:
    for name in given:
        if name not in tops:
            there = [str(top) for top in dict.fromkeys(tops)]
            like = _names.closest(str(name), there)
            raise ArgumentError(
                f"`{argument}`: there is no parameter `{name}` among {listed(there)}.",
                argument=argument,
                hint=None if like is None else f"`{like}`",
            )
    return given


def _labels(map: dict, owners: np.ndarray, tops: list) -> np.ndarray:
    labels = np.arange(len(owners))
    for name in _known(tuple(map), tops, "map"):
        places, given = np.flatnonzero(owners == name), map[name]
        given = [None] * len(places) if given is None else list(np.asarray(given, object).reshape(-1))
        if len(given) != len(places):
            raise ArgumentError(f"`map`: `{name}` has {len(places)} elements; got {len(given)} labels.", argument="map")
        first: dict = {}
        for place, label in zip(places, given):
            labels[place] = -1 if label is None else first.setdefault(label, place)
    return labels


def listed(names: list[str], most: int = 6) -> str:
    shown = names[:most] + ([f"{len(names) - most} more"] if len(names) > most else [])
    return ", ".join(shown[:-1]) + (" and " if len(shown) > 1 else "") + shown[-1] if shown else "none"


def shown(names: list[str], values) -> str:
    """Format names with their values, for messages."""
    return listed([f"{name} = {float(value):.6g}" for name, value in zip(names, values)])
