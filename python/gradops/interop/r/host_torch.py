"""Calls of host functions in PyTorch's transforms and traced graphs."""

from __future__ import annotations

import itertools
import weakref

import torch

from ...backends.torch import _private
from ...backends.torch.base import convert


def call_back(program, tensors: list) -> list | None:
    if any(isinstance(t, torch.Tensor) and _private.is_wrapped(t) for t in tensors):
        return list(Call.apply(program, *map(torch.as_tensor, tensors)))
    if _private.graph_in_progress() is not None:
        return recorded(program, list(map(torch.as_tensor, tensors)))
    return None


class Call(torch.autograd.Function):
    """The call for tensors of torch.func's transforms, which take their layers off; under vmap one by one."""

    @staticmethod
    def forward(program, *tensors):
        return tuple(_tensors(program, program(*tensors), tensors))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(*output)

    @staticmethod
    def backward(ctx, *upstreams):
        return (None,) * len(ctx.needs_input_grad)

    @staticmethod
    def vmap(info, in_dims, program, *tensors):
        rows = [
            Call.apply(program, *[t if d is None else t.select(d, i) for t, d in zip(tensors, in_dims[1:])])
            for i in range(info.batch_size)
        ]
        return tuple(map(torch.stack, zip(*rows))), (0,) * len(rows[0])


_programs: dict = {}
_numbers = itertools.count()


def recorded(program, tensors: list) -> list:
    """The call as an operation of the graph that ``make_fx`` records."""
    with _private.untraced():
        program(*tensors)
    number = next(_numbers)
    _programs[number] = program
    weakref.finalize(program.host, _programs.pop, number, None)
    return _host(number, tensors)


@torch.library.custom_op("gradops::host", mutates_args=(), schema="(int number, Tensor[] tensors) -> Tensor[]")
def _host(number: int, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    program = _programs[number]
    return _tensors(program, program.cast(*tensors), tensors)


def _tensors(program, results, tensors) -> list:
    return [convert(value, dtype, tensors[0]) for value, dtype in zip(results, program.dtypes)]
