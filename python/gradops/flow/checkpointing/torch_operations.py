"""The operations of a scope on PyTorch: a dispatch mode notes them, below autograd."""

from __future__ import annotations

import weakref

import torch

from ..._tree import items, map_items
from ...backends.torch import _private
from .plan import Drawn, Input, Step
from .torch_plan import TorchPlan, busy, outside_input


class Noting(_private.DispatchMode):
    """Notes the operations of a scope."""

    def __init__(self, plan: TorchPlan):
        super().__init__()
        self.plan = plan

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if busy or torch.is_inference_mode_enabled():
            return func(*args, **kwargs)
        plan, tensors, name = self.plan, _tensors(args, kwargs), func.overloadpacket.__name__
        drawn = Drawn([_generator(args, kwargs)]) if torch.Tag.nondeterministic_seeded in func.tags else None
        written, counted = _written_by(func, args, kwargs), name not in _UNCOUNTED
        reads = not _is_view(func)
        overwritten = written if _overwrites(func) else ()

        def source(x):
            if not isinstance(x, torch.Tensor):
                return x
            return plan.source(x, reads and not any(x is t for t in overwritten))

        sources = map_items(source, (*args, *kwargs.values()))
        for t in written:
            plan.before_write(t, counted)
        result = func(*args, **kwargs)
        step = Step(plan, _of_positions(func, tuple(kwargs)) if kwargs else func, sources, drawn)
        for t in written:
            plan.after_write(t, step, counted)
        for i, out in enumerate(items(result)):
            if isinstance(out, torch.Tensor) and not any(out is t for t in tensors):
                plan.remember(out, step, i, tensors, name in _BLANK)
        return result


class Watched(_private.DispatchMode):
    """Notes the tensors from outside that the operations in it use and do not write to."""

    def __init__(self):
        super().__init__()
        self.inputs: dict[int, Input] = {}
        self.made: dict[int, weakref.ref] = {}
        self.written: set[int] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        self.written.update(map(id, _written_by(func, args, kwargs)))
        for t in _tensors(args, kwargs):
            if id(t) not in self.inputs and not t.is_inference():
                made = self.made.get(id(t))
                if made is None or made() is not t:
                    self.inputs[id(t)] = outside_input(t)
        result = func(*args, **kwargs)
        for out in items(result):
            if isinstance(out, torch.Tensor) and id(out) not in self.inputs:
                self.made[id(out)] = weakref.ref(out)
        return result

    def check(self) -> None:
        """Raise if one was written to since."""
        for key, known in self.inputs.items():
            if key not in self.written:
                known.value({})


def _of_positions(func, names: tuple):
    """``func``, whose last arguments have names."""

    def call(*arguments):
        first = len(arguments) - len(names)
        return func(*arguments[:first], **dict(zip(names, arguments[first:])))

    return call


def _tensors(args, kwargs) -> list:
    return [x for x in items((args, *kwargs.values())) if isinstance(x, torch.Tensor)]


_RUNNING = dict.fromkeys(
    ("native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm", "_native_batch_norm_legit"), (3, 4)
)


_BLANK = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted"}
_OVERWRITES = set(
    "copy_ fill_ zero_ bernoulli_ normal_ uniform_ random_ exponential_ geometric_ log_normal_ cauchy_".split()
)


def _is_view(func) -> bool:
    returned = [r.alias_info for r in _private.schema(func).returns]
    return any(a is not None and not a.is_write for a in returned)


def _overwrites(func) -> bool:
    """Whether what an operation writes to does not depend on what was there: in place, or as ``out``."""
    return func.overloadpacket.__name__ in _OVERWRITES or any(
        a.kwarg_only and a.alias_info is not None and a.alias_info.is_write for a in _private.schema(func).arguments
    )


_UNCOUNTED = {*_RUNNING, "rrelu_with_noise", "rrelu_with_noise_"}
"""Operations whose writes torch does not count: what was saved just before is what they write."""


def _written_by(func, args, kwargs) -> list:
    """The tensors that an operation writes to."""
    written = []
    schema = _private.schema(func)
    if schema.is_mutable:
        for i, argument in enumerate(schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                written.append(args[i] if i < len(args) else kwargs.get(argument.name))
    elif func.overloadpacket.__name__ in _RUNNING:  # its schema does not say so
        written = [args[i] for i in _RUNNING[func.overloadpacket.__name__] if i < len(args)]
    return [t for t in items(written) if isinstance(t, torch.Tensor)]


def _generator(args, kwargs) -> tuple:
    """How to get and set the state of the generator that a random operation draws from."""
    given = list(items((args, *kwargs.values())))
    own = [x for x in given if isinstance(x, torch.Generator)]
    places = [
        x.device if isinstance(x, torch.Tensor) else x for x in given if isinstance(x, (torch.Tensor, torch.device))
    ]
    device = places[0] if places else torch.device("cpu")
    if own:
        generator = own[0]
    elif device.type == "cpu":
        generator = torch.default_generator
    else:
        library = getattr(torch, device.type)
        generator = library.default_generators[library.current_device() if device.index is None else device.index]
    return generator.get_state, generator.set_state


def watched(run):
    """``run``, whose later calls check that nothing was written to that the first one used."""
    if not torch.is_grad_enabled():
        return run
    used: list[Watched] = []

    def watching(*xs):
        if used:
            used[0].check()
            return run(*xs)
        used.append(Watched())
        with used[0]:
            return run(*xs)

    return watching
