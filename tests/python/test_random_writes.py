"""Random programs of in-place writes and views: values and gradients match PyTorch's, in checkpoints as well."""

from __future__ import annotations

import contextlib
import random

import numpy as np
import pytest
from parity import BACKENDS
from seeds import seeds

from gradops import Variable, gradient_checkpoint_scope, ops

OPS = "product mean exp slice steps reshape join clone detach item add scale part fill".split()


class Writes:
    """A program on two vectors whose operations use, and write to, earlier results."""

    def __init__(self, seed: int):
        chance = random.Random(seed)
        self.inputs = np.random.RandomState(seed).rand(2, 4) + 0.5
        count = chance.randint(3, 10)
        self.steps = [(chance.choice(OPS), *[chance.random() for _ in range(3)]) for _ in range(count)]
        self.checkpointed = chance.randint(1, count)  # number of checkpointed operations

    def results(self, x, w, exp, join, scope=contextlib.nullcontext) -> list:
        made = [x * 1.0, w * 2.0]
        with scope():
            self._go(made, self.steps[: self.checkpointed], exp, join)
        self._go(made, self.steps[self.checkpointed :], exp, join)
        return made

    def _go(self, made: list, steps: list, exp, join) -> None:
        for op, a, b, c in steps:
            u, v = made[int(a * len(made))], made[int(b * len(made))]
            if op == "item":
                u[int(c * u.shape[0])] = v[0] * c
            elif op == "add":
                u += c
            elif op == "scale":
                u *= v.sum()
            elif op == "part":
                u[:1] -= v[-1:]
            elif op == "fill":
                u.copy_(v.sum())
            else:
                made.append(
                    {
                        "product": lambda u=u, v=v: u * v.sum(),
                        "mean": lambda u=u, v=v: u + v.mean(),
                        "exp": lambda u=u: exp(-u),
                        "slice": lambda u=u: u[1:] if len(u) > 2 else u[:],
                        "steps": lambda u=u: u[::2],
                        "reshape": lambda u=u: u.reshape(-1),
                        "join": lambda u=u, v=v: join([u, v])[:4],
                        "clone": lambda u=u: u.clone(),
                        "detach": lambda u=u: u.detach().clone(),
                    }[op]()
                )


def on_tape(program: Writes, scope=contextlib.nullcontext) -> list:
    """Return the results and both gradients."""
    x, w = (Variable(a, requires_grad=True) for a in program.inputs.copy())
    made = program.results(x, w, ops.exp, ops.concatenate, scope)
    total = sum(y.sum() * (k + 1) for k, y in enumerate(made))
    if total.requires_grad:  # everything was overwritten; PyTorch gives zeros then
        total.backward()
    return [*[y.data for y in made], *[np.zeros(4) if v.grad is None else v.grad.data for v in (x, w)]]


def in_torch(program: Writes) -> list:
    import torch

    x, w = (torch.tensor(a, requires_grad=True) for a in program.inputs)
    made = program.results(x, w, torch.exp, torch.cat)
    sum(y.sum() * (k + 1) for k, y in enumerate(made)).backward()
    return [*[y.detach().numpy() for y in made], x.grad.numpy(), w.grad.numpy()]


def check(seed: int) -> bool:
    """Return True if the results were compared: PyTorch refuses more programs, as it saves more overwritten values."""
    program = Writes(seed)
    try:
        expected = in_torch(program)
    except RuntimeError:
        return False
    for scope in (contextlib.nullcontext, gradient_checkpoint_scope):
        for got, want in zip(on_tape(program, scope), expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9)
    return True


@pytest.mark.skipif("torch" not in BACKENDS, reason="needs PyTorch")
def test_writes_and_views_match_pytorch_gradients():
    assert sum(map(check, range(100))) > 80


@pytest.mark.long
@pytest.mark.skipif("torch" not in BACKENDS, reason="needs PyTorch")
@pytest.mark.parametrize("seed", seeds(2000))
def test_many_writes_and_views_match_pytorch_gradients(seed):
    check(seed)
