"""PyTorch: control flow for ``torch.compile``, which does not know values, and calls of functions of NumPy arrays.

In eager code and in ``torch.func``'s transforms such a function is called at once; in graphs it is a custom operation
that finds the function by its name.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable

import torch

from ..tracing import compiling, reading
from . import _private
from .base import convert, dtype_name, to_numpy


def concrete(x, kind):
    """A 0-d tensor's value; None while ``torch.compile`` traces."""
    return None if reading() else kind(x)


def branch(index, functions):
    if index.dtype == torch.bool:
        return torch.cond(index, functions[1], functions[0], ())
    if len(functions) == 1:
        return functions[0]()
    return torch.cond(index <= 0, functions[0], lambda: branch(index - 1, functions[1:]), ())


def while_loop(holds, step, leaves, bound):
    """A loop that, unlike other libraries' loops, has a derivative, so a bound needs no scan.

    Its tensors must share no memory with each other or with tensors that the functions close over, hence the copies.
    """
    left = torch.full((), -1 if bound is None else bound, device=leaves[0].device)
    return list(
        torch.while_loop(
            lambda left, *xs: torch.logical_and(left != 0, holds(list(xs))),
            lambda left, *xs: (left - 1, *[x.clone() for x in step(list(xs))]),
            (left, *[x.clone() for x in leaves]),
        )[1:]
    )


# Functions of NumPy arrays, elementwise or of matrices: eager, in torch.func and in traced graphs ---------------------


_functions: dict[str, Callable] = {}


def foresee(name: str, function: Callable) -> None:
    """Register a function under a name for :func:`call_on_host`, because graphs cannot hold Python functions."""
    _functions[name] = function


def _function(name: str) -> Callable:
    """The function of a name; integers after blanks are settings, passed before the arrays."""
    found, *settings = name.split(" ")
    return functools.partial(_functions[found], *map(int, settings)) if settings else _functions[found]


def call_on_host(name: str, function: Callable, xs: list, like: int | None = None) -> torch.Tensor:
    if compiling():
        return _operation(name, xs, like)
    if any(map(_private.is_wrapped, xs)):
        return _Transformed.apply(name, like, *xs)
    if any(map(_private.is_traced, xs)):
        return _operation(name, xs, like)
    return _called(name, xs)


def _called(name: str, xs) -> torch.Tensor:
    return convert(_function(name)(*map(to_numpy, xs)), dtype_name(xs[0]), xs[0])


@torch.library.custom_op("gradops::on_host", mutates_args=(), schema="(str name, Tensor[] xs, int? like) -> Tensor")
def _operation(name: str, xs: list[torch.Tensor], like: int | None) -> torch.Tensor:
    return _called(name, xs)


@_operation.register_fake
def _(name: str, xs: list[torch.Tensor], like: int | None) -> torch.Tensor:
    if like is None:
        return xs[0].new_empty(torch.broadcast_shapes(*[x.shape for x in xs]))
    lead = torch.broadcast_shapes(*[x.shape[:-2] for x in xs])
    return xs[0].new_empty((*lead, *xs[like].shape[-2:]))


class _Transformed(torch.autograd.Function):
    """The call for tensors of ``torch.func``'s transforms, which unwraps them; the op itself defines the derivative."""

    @staticmethod
    def forward(name, like, *xs):
        return call_on_host(name, _function(name), list(xs), like)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output)

    @staticmethod
    def backward(ctx, upstream):
        return (None,) * len(ctx.needs_input_grad)

    @staticmethod
    def jvp(ctx, *tangents):
        return None

    @staticmethod
    def vmap(info, in_dims, name, like, *xs):
        """Move the batch first, followed by ones that give all tensors the same rank."""
        dims = in_dims[2:]
        rank = max(x.ndim - (d is not None) for x, d in zip(xs, dims))
        first = [x if d is None else x.movedim(d, 0) for x, d in zip(xs, dims)]
        aligned = [
            x if d is None else x.reshape(x.shape[0], *[1] * (rank + 1 - x.ndim), *x.shape[1:])
            for x, d in zip(first, dims)
        ]
        return call_on_host(name, _function(name), aligned, like), 0


# Functions of another language, called from transforms and traced graphs ----------------------------------------------


def call_back(program, tensors: list) -> list | None:
    if any(isinstance(t, torch.Tensor) and _private.is_wrapped(t) for t in tensors):
        return list(_Call.apply(program, *map(torch.as_tensor, tensors)))
    if _private.graph_in_progress() is not None:
        return _recorded(program, list(map(torch.as_tensor, tensors)))
    return None


class _Call(torch.autograd.Function):
    """The call for tensors of ``torch.func``'s transforms, which unwraps them; ``vmap`` calls it row by row."""

    @staticmethod
    def forward(program, *tensors):
        return tuple(_converted(program, program(*tensors), tensors))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(*output)

    @staticmethod
    def backward(ctx, *upstreams):
        return (None,) * len(ctx.needs_input_grad)

    @staticmethod
    def vmap(info, in_dims, program, *tensors):
        rows = [
            _Call.apply(program, *[t if d is None else t.select(d, i) for t, d in zip(tensors, in_dims[1:])])
            for i in range(info.batch_size)
        ]
        return tuple(map(torch.stack, zip(*rows))), (0,) * len(rows[0])


_programs: dict = {}
_numbers = itertools.count()


def _recorded(program, tensors: list) -> list:
    """Record the call as an operation of ``make_fx``'s graph."""
    with _private.untraced():
        program(*tensors)
    number = next(_numbers)
    _programs[number] = program
    weakref.finalize(program.host, _programs.pop, number, None)
    return _foreign(number, tensors)


@torch.library.custom_op("gradops::host", mutates_args=(), schema="(int number, Tensor[] tensors) -> Tensor[]")
def _foreign(number: int, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    program = _programs[number]
    return _converted(program, program.cast(*tensors), tensors)


def _converted(program, results, tensors) -> list:
    return [convert(value, dtype, tensors[0]) for value, dtype in zip(results, program.dtypes)]
