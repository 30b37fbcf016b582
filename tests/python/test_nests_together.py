"""Random nests run concurrently, in threads and overlapping tasks, bitwise equal to running alone.

State that scopes change (modes, the default backend, JAX's precision) must belong to the thread and the task.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading

import nests
import numpy as np
import pytest
from parity import BACKENDS
from seeds import seeds
from test_random_nests import QUICK, STALE, WAYS, _numbers, leaves_of, twice

from gradops import autodiff, ops

AT_ONCE = 4


def outcome(way: str, seed: int):
    """Return the bits of a nest's loss and both derivatives, or the error it ends with."""
    derivatives, features = WAYS[way]
    return _bits(lambda: derivatives(nests.nest(seed, features=features)))


def _bits(derivatives) -> tuple | str:
    with np.errstate(all="ignore"):
        try:
            value, *others = derivatives()
        except Exception as error:
            return _said(error)
    return tuple(np.asarray(_numbers(x)).tobytes() for part in ([value], *others) for x in part)


def _said(error: Exception) -> str:
    """Return an error's text; PyTorch's messages about stale values, of its own or of a checkpoint, count as equal."""
    return "stale" if any(word in str(error) for word in STALE) else f"{type(error).__name__}: {error}"


@contextlib.contextmanager
def often_switched():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def check_threads(jobs: list[tuple[str, int]]) -> None:
    """Run all jobs in each thread, each thread starting at another job."""
    alone = {job: outcome(*job) for job in jobs}
    start = threading.Barrier(AT_ONCE)
    found: list[dict] = [{} for _ in range(AT_ONCE)]

    def work(number: int) -> None:
        first = number * len(jobs) // AT_ONCE
        start.wait()
        for job in jobs[first:] + jobs[:first]:
            found[number][job] = outcome(*job)
        found[number]["recording"] = autodiff.is_grad_enabled()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(AT_ONCE)]
    with often_switched():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for one in found:
        assert one.pop("recording")
        assert {job: bits for job, bits in one.items() if bits != alone[job]} == {}
        assert len(one) == len(alone)
    assert not all(isinstance(bits, str) for bits in alone.values())


async def overlapping(statements: list, registers: list, decorated: bool) -> None:
    """Run like :func:`nests.run`, but yield to other tasks after each statement, inside scopes as well."""
    for statement in statements:
        kind, *rest = statement
        if kind not in ("scope", "error"):
            nests.run([statement], registers)
            await asyncio.sleep(0)
            continue

        async def body(kind=kind, inner=rest[1]):
            await overlapping(inner, registers, decorated)
            if kind == "error":
                raise nests.Left

        scope = nests.SCOPES[rest[0]]()
        with contextlib.suppress(nests.Left):
            if decorated:  # the scope then applies only while the body runs, not while it waits
                await scope(body)()
            else:
                with scope:
                    await body()


def of_task(way: str, seed: int, decorated: bool):
    """Return a coroutine function that computes a nest's bits."""
    program = nests.nest(seed, features=WAYS[way][1])

    async def bits():
        try:
            leaves = leaves_of(IN_TASKS[way])
            registers = [ops.copy(x) for x in leaves]
            await overlapping(program, registers, decorated)
            y = nests.weighted(registers, ops.sum)
        except Exception as error:
            return _said(error)
        return _bits(lambda: (y, *twice(y, leaves, autodiff.grad)))

    return bits


def check_tasks(jobs: list[tuple[str, int]]) -> None:
    """Check tasks. PyTorch's mode belongs to the thread, so with PyTorch scopes are used as decorators only."""
    coroutines = [of_task(*job, decorated) for job in jobs for decorated in HELD[job[0] == "torch"]]

    async def together():
        return await asyncio.gather(*(coroutine() for coroutine in coroutines))

    alone = [asyncio.run(coroutine()) for coroutine in coroutines]
    found = asyncio.run(together())
    assert [i for i, (one, many) in enumerate(zip(alone, found)) if one != many] == [], jobs
    assert not all(isinstance(bits, str) for bits in alone)
    assert autodiff.is_grad_enabled()


HELD = {True: (True,), False: (True, False)}
IN_THREADS = {
    "numpy": ("variables", "numpy", "numpy, compiled"),
    "torch": ("torch",),
    "jax": ("jax", "variables on JAX"),
    "tensorflow": ("tensorflow", "variables on TensorFlow"),
}
IN_TASKS = {"variables": "numpy", "torch": "torch", "variables on JAX": "jax", "variables on TensorFlow": "tensorflow"}
IN_TASKS = {way: library for way, library in IN_TASKS.items() if library in BACKENDS}


@pytest.mark.short_cases(0, "jax")
@pytest.mark.parametrize("backend", BACKENDS)
def test_threads(backend):
    check_threads(
        [(way, seed) for way in IN_THREADS[backend] for seed in range(6 if backend in ("numpy", "torch") else 2)]
    )


@pytest.mark.parametrize("way", IN_TASKS)
def test_tasks(way):
    check_tasks([(way, seed) for seed in range(30 if way in ("variables", "torch") else 4)])


def test_tasks_on_several_backends():
    """PyTorch is left out, since its mode belongs to the thread: `docs/differences.md` describes the effects."""
    ways = [way for way in IN_TASKS if way != "torch"]
    check_tasks([(way, seed) for seed in range(4) for way in ways])


@pytest.mark.long
def test_many_in_threads():
    """Runs all backends at once."""
    quick = [(way, seed) for seed in seeds(60) for way in QUICK]
    slow = [(way, seed) for seed in seeds(10) for way in WAYS if way not in QUICK]
    check_threads(quick + slow)


@pytest.mark.long
@pytest.mark.parametrize("way", IN_TASKS)
def test_many_tasks(way):
    count = 200 if way in QUICK else 20
    chosen = list(seeds(count))
    for first in range(0, len(chosen), 10):
        check_tasks([(way, seed) for seed in chosen[first : first + 10]])
