"""A function together with the inputs at which it is differentiated, as every library's derivatives need it.

:class:`Point` converts the inputs, runs the function, checks its outputs, and gives results the structure of inputs and
outputs. Inputs and outputs without elements, which some libraries reject, are handled by :func:`jacobian` and
:func:`hessian` here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import backends, config, dtypes
from ..autodiff.derivatives import derivatives_of
from ..autodiff.modes import differentiated
from ..autodiff.variable import Variable, data_of
from ..errors import ArgumentError, ArgumentTypeError, GradientError, Position, ShapeError, TypeOf
from ..ops import _checks, conversion, creation, elementwise, shaping
from .reverse import _prepare, _scalar, no_slope, unwrap_if_native, warn_of_numpy


class EmptyOutput(Exception):
    """Raised for an output without elements in a derivative that needs all outputs to have some."""


def is_empty(x) -> bool:
    return any(type(size) is int and size == 0 for size in conversion.shape(x))


class Point:
    """A function and the inputs at which it is differentiated; for a product also the vector ``v``.

    Attributes:
        leaves: the inputs, tensors of one backend or variables over them.
        backend, derivatives: the backend of the inputs, and its derivatives.
        full: True if an output without elements raises :class:`EmptyOutput`.
        several, several_outputs: True if the inputs, and the outputs once ``run`` was called, are a tuple.
        argument, vector: the names of the function and of the product's vector in errors.
        box: holds the function's auxiliary output under "aux", if there is one.

    Args:
        form: the structure whose leaves the inputs are, one part for each argument; errors use it to locate an input.
    """

    argument, vector = "func", "v"

    def __init__(self, func: Callable, inputs, name: str, v=None, real: bool = False, form=None):
        if not callable(func):
            raise ArgumentError("`func` must be a function; got {func}.", argument="func", func=TypeOf(func))
        self.name, self.real = name, real
        self.box: dict[str, Any] = {}
        self.several = isinstance(inputs, tuple)
        given = list(inputs) if self.several else [inputs]
        beside = v if isinstance(v, (tuple, list)) else (v,)
        self.backend, self.leaves = _prepare(
            given, tuple(range(len(given if form is None else form.parts))), form, beside
        )
        self.derivatives = derivatives_of(self.backend, self.leaves)
        self.several_outputs = False
        self.full = False
        self.given: Any = func

    def func(self, *xs):
        """The function's outputs, as tensors.

        Raises:
            GradientError: an output is not a tensor, or has an integer or bool dtype.
        """
        y = differentiated(xs, self.given, *xs)
        if isinstance(y, (tuple, list)):
            parts = [unwrap_if_native(part, xs) for part in y]
            y = tuple([self._tensor(part, "output {output}", Position(i)) for i, part in enumerate(parts)])
        else:
            y = self._tensor(unwrap_if_native(y, xs))
        if self.full and any(map(is_empty, y if isinstance(y, tuple) else (y,))):
            raise EmptyOutput
        return y

    def _tensor(self, y, which: str = "one", output: Position | None = None):
        y = backends.held(y)
        warn_of_numpy(y, self.backend, self.argument)
        if isinstance(y, (float, complex)):  # a constant
            kind: type = complex if isinstance(y, complex) else float
            dtype = dtypes.promote_number(conversion.dtype(self.leaves[0]), kind, config.floatx())
            return self.backend.convert(y, dtype)
        if isinstance(y, (bool, int)):
            raise no_slope(type(y).__name__, self.argument, "floating tensors", which, output)
        if not isinstance(y, Variable) and backends.backend_of(y) is None:
            raise GradientError(
                f"`{self.argument}` must return tensors; got {{value}}.",
                argument=self.argument,
                hint="return what the derivative is wanted of" if y is None else None,
                value=TypeOf(y),
            )
        if not dtypes.is_floating(conversion.dtype(y)):
            raise no_slope(conversion.dtype(y), self.argument, "floating tensors", which, output)
        return y if isinstance(y, Variable) or backends.backend_of(y) is self.backend else self.backend.convert(y)

    def call(self, *xs):
        """The function's outputs, or their real parts if these are to be differentiated."""
        y = self.func(*xs)
        if not self.real:
            return y
        return tuple(map(_real_part, y)) if isinstance(y, tuple) else _real_part(y)

    def scalar(self, *xs):
        """The output of a function whose second derivatives are needed.

        Raises:
            GradientError: the output is not a real floating scalar.
        """
        return _scalar(self.func(*xs))

    def run(self, *xs) -> list:
        """The outputs as a list of tensors."""
        y = self.call(*xs)
        self.several_outputs = isinstance(y, tuple)
        return list(y) if self.several_outputs else [y]

    def tangents(self, v) -> list:
        """``v`` as tensors of the inputs' shapes and dtypes; if it is omitted and the input has one element, ones.

        Raises:
            ShapeError: ``v`` has another shape.
            ArgumentTypeError: ``v`` is complex for a real input.
            ArgumentError: ``v`` is missing, or has another number of tensors.
        """
        return self._vectors(v, self.leaves, "input")

    def weights(self, v, outputs: list) -> list:
        """``v`` as tensors of the outputs' shapes and dtypes, like :meth:`tangents`."""
        return self._vectors(v, outputs, "output")

    def _vectors(self, v, like: list, what: str) -> list:
        if v is None:
            if len(like) != 1 or conversion.size(like[0]) != 1:
                raise ArgumentError(
                    f"`{self.vector}` is needed for {what}s of more than one element.", argument=self.vector
                )
            data = data_of(like[0])
            return [creation.ones_like(data)]
        given = list(v) if isinstance(v, (tuple, list)) and (len(like) > 1 or isinstance(v, tuple)) else [v]
        if len(given) != len(like):
            raise ArgumentError(
                f"`{self.vector}` must hold {len(like)} tensors, one for each {what}; got {len(given)}.",
                argument=self.vector,
            )
        vectors, name = [], self.vector
        for x, reference in zip(given, like):
            if not _checks.is_numeric(x):
                raise _checks.not_a_tensor(self.name, self.vector, x)
            if type(x) is int:  # a Python int may exceed the libraries' 64 bits
                x = float(x)
            if isinstance(x, (list, tuple)):
                with config.backend_scope(self.backend.name):
                    x = conversion.convert_to_tensor(x)
            owner = backends.backend_of(
                x
            )  # None for a number; another's if a traced program has this point as a constant
            kept = isinstance(x, Variable) or owner is not None and (owner.wraps or self.backend.yields)
            if not kept and owner is not self.backend:
                x = self.backend.convert(x, like=data_of(reference))
            if tuple(x.shape) != tuple(reference.shape):
                raise ShapeError(
                    f"`{name}` must have the shape {tuple(reference.shape)} of the {what}; got {tuple(x.shape)}.",
                    argument=self.vector,
                )
            if conversion.dtype(x) != conversion.dtype(reference):
                if is_complex(x) and not is_complex(reference):
                    raise ArgumentTypeError(
                        f"`{self.name}`: `{name}` must be real, as the {what} is; got dtype {conversion.dtype(x)}.",
                        argument=self.vector,
                        hint="take `real()` of it",
                    )
                x = conversion.cast(x, conversion.dtype(reference))
            vectors.append(x)
        return vectors

    def outputs(self, values):
        """Values, one for each output, in the structure of the outputs."""
        return tuple(values) if self.several_outputs else values[0]

    def inputs(self, values):
        """Values, one for each input, in the structure of the inputs."""
        return tuple(values) if self.several else values[0]

    def rows(self, rows: list[list]):
        """Derivatives by output and input, in the structures of both."""
        return self.outputs([self.inputs(row) for row in rows])

    def check_dependence(self, depends: list[list[bool]]) -> None:
        """Raise if no element of an output depends on an input.

        Raises:
            GradientError: names the output and the input.
        """
        for j, row in enumerate(depends):
            for i, found in enumerate(row):
                if not found:
                    raise GradientError(
                        f"`{self.name}`: output {{j}} does not depend on input {{i}}.",
                        argument="func",
                        i=Position(i),
                        j=Position(j),
                    )


def _real_part(y):
    # times 1, because PyTorch's forward mode cannot take the real part of a lazy conjugate
    return elementwise.real(elementwise.multiply(y, 1)) if is_complex(y) else y


def is_complex(x) -> bool:
    return "complex" in conversion.dtype(x)


def jacobian(at: Point, rows_of: Callable):
    """The Jacobian at ``at`` from ``rows_of(func, inputs)``, which sees only inputs and outputs with elements."""
    nonempty = [i for i, x in enumerate(at.leaves) if not is_empty(x)]
    outputs = at.run(*at.leaves)

    def full(*xs):
        return tuple(y for y in at.run(*_filled(at.leaves, nonempty, xs)) if not is_empty(y))

    some = nonempty and not all(map(is_empty, outputs))
    rows = iter(rows_of(full, tuple(at.leaves[i] for i in nonempty)) if some else ())
    return at.rows(
        [_block_row(y, at.leaves, nonempty, next(rows) if some and not is_empty(y) else ()) for y in outputs]
    )


def hessian(at: Point, rows_of: Callable):
    """The Hessian at ``at`` from ``rows_of(func, inputs)``, which sees only inputs with elements."""
    nonempty = [i for i, x in enumerate(at.leaves) if not is_empty(x)]

    def full(*xs):
        return at.scalar(*_filled(at.leaves, nonempty, xs))

    inputs = tuple(at.leaves[i] for i in nonempty)
    if not nonempty:
        full()
    rows = iter(rows_of(full, inputs) if nonempty else ())
    found = [_block_row(x, at.leaves, nonempty, () if is_empty(x) else next(rows)) for x in at.leaves]
    return at.inputs([at.inputs(row) for row in found])


def _filled(leaves: list, nonempty: list[int], xs) -> list:
    given = iter(xs)
    return [next(given) if i in nonempty else x for i, x in enumerate(leaves)]


def _block_row(y, leaves: list, nonempty: list[int], row) -> list:
    """A row of blocks for all inputs: blocks from ``row``, and empty blocks for the inputs without elements."""
    there = dict(zip(nonempty, row))
    return [there[i] if i in there else _nothing(y, x) for i, x in enumerate(leaves)]


def _nothing(y, x):
    y, x = (data_of(z) for z in (y, x))
    block = shaping.reshape(y if is_empty(y) else x, (*conversion.shape(y), *conversion.shape(x)))
    return creation.zeros_like(conversion.cast(block, conversion.dtype(x)))
