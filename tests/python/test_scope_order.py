"""Scopes that end in any order: generators closed in opening order, overlapping tasks, threads."""

from __future__ import annotations

import asyncio
import itertools
import random
import threading

import numpy as np
import pytest

import gradops
from gradops import Variable, config, gradient_checkpoint_scope, ops, stop_gradient_scope
from gradops.autodiff import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled

torch = pytest.importorskip("torch")

SCOPES = {
    "no_grad": no_grad,
    "enable_grad": enable_grad,
    "inference_mode": inference_mode,
    "set_grad_enabled": lambda: set_grad_enabled(False),
    "stop_gradient_scope": stop_gradient_scope,
    "gradient_checkpoint_scope": gradient_checkpoint_scope,
    "numpy": lambda: config.backend_scope("numpy"),
    "torch": lambda: config.backend_scope("torch"),
}


MODES = ("no_grad", "enable_grad", "inference_mode", "set_grad_enabled", "stop_gradient_scope")
PAIRS = list(itertools.product(SCOPES, repeat=2))


def everything():
    """Return all state that scopes change."""
    from gradops.flow.checkpointing import tape

    return (
        is_grad_enabled(),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        config.backend(),
        tape.current.get() is None,
    )


@pytest.fixture(autouse=True)
def nothing_stays():
    before = everything()
    yield
    assert everything() == before
    x = torch.ones(2, requires_grad=True)
    assert ops.sum(x * 2).requires_grad
    v = Variable(np.ones(2), requires_grad=True)
    ops.sum(v * 2).backward()
    np.testing.assert_array_equal(v.grad.data, [2, 2])


def held(name: str):
    with SCOPES[name]():
        yield everything()


@pytest.mark.parametrize("first, second", PAIRS)
def test_generators_closed_in_opening_order(first, second):
    before = everything()
    a, b = held(first), held(second)
    next(a)
    next(b)
    a.close()
    b.close()
    assert everything() == before


@pytest.mark.parametrize("seed", range(30))
def test_many_generators_closed_in_any_order(seed):
    chance = random.Random(seed)
    before = everything()
    running = []
    for _ in range(40):
        if running and chance.random() < 0.5:
            running.pop(chance.randrange(len(running))).close()
        else:
            running.append(held(chance.choice(list(SCOPES))))
            next(running[-1])
    chance.shuffle(running)
    for generator in running:
        generator.close()
    assert everything() == before


def test_mode_while_generators_overlap():
    a, b = held("no_grad"), held("enable_grad")
    next(a)
    assert not is_grad_enabled() and not torch.is_grad_enabled()
    next(b)
    assert is_grad_enabled() and torch.is_grad_enabled()
    a.close()
    assert is_grad_enabled() and torch.is_grad_enabled()
    b.close()
    a, b = held("torch"), held("numpy")
    next(a)
    next(b)
    a.close()
    assert config.backend() == "numpy"
    b.close()


@pytest.mark.parametrize("first, second", PAIRS)
def test_overlapping_tasks(first, second):
    """Scopes are entered and left in the same order, so that neither contains the other."""

    async def main():
        both_in, first_out = asyncio.Event(), asyncio.Event()
        seen = {}

        async def one():
            with SCOPES[first]():
                await both_in.wait()
            seen["first"] = everything()
            first_out.set()

        async def two():
            with SCOPES[second]():
                both_in.set()
                await first_out.wait()
            seen["second"] = everything()

        before = everything()
        await asyncio.gather(one(), two())
        assert seen["second"] == before == everything()
        assert seen["first"][0] == before[0] and seen["first"][3:] == before[3:]
        if "inference_mode" not in (first, second) and (first in MODES or second not in MODES):
            assert seen["first"][1] == before[1]  # torch's mode belongs to the thread, and leaving a mode sets it

    asyncio.run(main())


def test_torch_scopes_between_gradops_scopes():
    with torch.no_grad():
        with enable_grad():
            assert torch.is_grad_enabled()
            with torch.no_grad():
                with enable_grad():
                    assert torch.is_grad_enabled()
                assert not torch.is_grad_enabled()
            assert torch.is_grad_enabled()
        assert not torch.is_grad_enabled()


def test_scope_left_by_another_thread():
    generator = held("no_grad")
    thread = threading.Thread(target=lambda: next(generator))
    thread.start()
    thread.join()
    generator.close()
    assert is_grad_enabled() and torch.is_grad_enabled()


def test_backend_scope_decorates_functions_that_run_later():
    @config.backend_scope("torch")
    def plain():
        return config.backend()

    @config.backend_scope("torch")
    def generator():
        for _ in range(2):
            yield config.backend()

    @config.backend_scope("torch")
    async def coroutine():
        await asyncio.sleep(0)
        return config.backend()

    @config.backend_scope("torch")
    async def async_generator():
        yield config.backend()
        await asyncio.sleep(0)
        yield config.backend()

    async def collect():
        found = []
        async for name in async_generator():
            found += [name, config.backend()]
        return found

    before = config.backend()
    assert plain() == "torch" and config.backend() == before
    running = generator()
    assert [next(running), config.backend(), next(running), config.backend()] == ["torch", before] * 2
    running.close()
    assert asyncio.run(coroutine()) == "torch"
    assert asyncio.run(collect()) == ["torch", before] * 2


def test_backend_scope_restores_jax_precision():
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    try:
        jax.config.update("jax_enable_x64", False)
        with config.backend_scope("jax"):
            assert jax.config.jax_enable_x64
            assert ops.dtype(ops.exp(1.0)) == "float64"
            assert ops.dtype(gradops.grad(ops.exp)(1.0)) == "float64"
            with config.backend_scope("jax"):
                pass
            assert jax.config.jax_enable_x64
        assert not jax.config.jax_enable_x64
        a, b = held_jax(), held_jax()
        next(a), next(b)
        a.close()
        assert jax.config.jax_enable_x64
        b.close()
        assert not jax.config.jax_enable_x64
        with pytest.raises(RuntimeError, match="inside"), config.backend_scope("jax"):
            raise RuntimeError("inside")
        assert not jax.config.jax_enable_x64
    finally:
        jax.config.update("jax_enable_x64", before)


def held_jax():
    with config.backend_scope("jax"):
        yield


def test_failing_exit_does_not_prevent_other_exits():
    from gradops._scopes import Ends

    ends, ended = Ends("test"), []

    def failing():
        raise ValueError("no end")

    ends.push("outer", lambda: ended.append("outer"))
    ends.push("inner", failing)
    ends.leave("outer")
    with pytest.raises(ValueError, match="no end"):
        ends.leave("inner")
    assert ended == ["outer"] and not ends.open()


def test_failed_entry_of_a_mode_changes_nothing(monkeypatch):
    torch = pytest.importorskip("torch")
    from gradops.autodiff import is_grad_enabled, modes, no_grad

    def failing(self, torch, stack):
        torch.set_grad_enabled(False)
        raise ValueError("no mode")

    monkeypatch.setattr(modes._Mode, "_enter_torch", failing)
    with pytest.raises(ValueError, match="no mode"), no_grad():
        pass
    assert is_grad_enabled() and torch.is_grad_enabled() and not modes.ends.open()
