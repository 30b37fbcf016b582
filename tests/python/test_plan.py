"""The recomputation plan on toy arrays: selection and order of the steps, and release of memory."""

from __future__ import annotations

import gc
import random
import weakref

import pytest

from gradops.backends.checkpoint_plan import Drawn, Input, Origin, Plan, Result, Step
from gradops.errors import GradientError


class Array:
    """A list of numbers that counts its writes; the class tracks which are alive."""

    alive: weakref.WeakSet[Array] = weakref.WeakSet()

    def __init__(self, *numbers):
        self.numbers = list(numbers)
        self.writes = 0
        Array.alive.add(self)

    def write(self, i, number):
        self.numbers[i] = number
        self.writes += 1


class ToyPlan(Plan):
    ran: list[str]
    most: int

    def __init__(self):
        super().__init__()
        self.ran = []
        self.most = 0

    @staticmethod
    def version(array):
        return array.writes

    @staticmethod
    def changed(array, version):
        return array.writes != version

    @staticmethod
    def view(array, layout):
        return Array(*array.numbers[layout:])

    def step(self, name, function, *args, drawn=None, **kwargs) -> Result:
        def run(*given):
            self.ran.append(name)
            self.most = max(self.most, len(Array.alive))
            return function(*given[: len(args)], **dict(zip(kwargs, given[len(args) :])))

        return Result(Step(self, run, (*args, *kwargs.values()), drawn), 0)


def added(*arrays):
    return Array(*map(sum, zip(*(a.numbers for a in arrays))))


def value(handle, done):
    return handle.get(done).numbers


def test_one_request_runs_shared_steps_once_and_in_order():
    plan, x = ToyPlan(), Array(1, 2)
    a = plan.step("a", added, Input(plan, x), Input(plan, x))
    b = plan.step("b", added, a, a)
    c = plan.step("c", added, b, Input(plan, x))
    plan.step("never asked for", added, a)
    last, first = plan.handle(c, None), plan.handle(a, None)
    done: dict = {}
    assert value(last, done) == [5, 10] and plan.ran == ["a", "b", "c"]
    assert value(first, done) == [2, 4] and plan.ran == ["a", "b", "c"]
    assert value(last, {}) == [5, 10] and plan.ran == ["a", "b", "c"] * 2  # another pass


def test_one_handle_per_result():
    plan = ToyPlan()
    a = plan.step("a", lambda: Array(1, 2, 3))
    handles = [plan.handle(Result(a.step, 0), None) for _ in range(2)]
    assert handles[0] is handles[1]
    view = plan.handle(Result(a.step, 0, layout=1), None)
    assert view is not handles[0]


def test_views_of_recomputed_results():
    plan = ToyPlan()
    a = plan.step("a", lambda: Array(1, 2, 3))
    tail = plan.handle(Result(a.step, 0, layout=1), None)
    assert value(tail, {}) == [2, 3]


def test_several_results_and_nested_arguments():
    plan, x = ToyPlan(), Array(1, 2)
    split = plan.step("split", lambda a: (Array(a.numbers[0]), [Array(a.numbers[1])]), Input(plan, x))
    second = Result(split.step, 1)
    joined = plan.step("joined", lambda parts, extra: added(*parts, extra), [split, (second)], extra=second)
    assert value(plan.handle(joined, None), {}) == [5]


def test_chain_holds_two_results_at_a_time():
    gc.collect()
    plan, x = ToyPlan(), Array(1)
    before, result = len(Array.alive), Input(plan, x)
    for i in range(20):
        result = plan.step(str(i), added, result, result)
    handle = plan.handle(result, None)
    assert value(handle, {}) == [2**20]
    assert plan.most - before <= 2


def test_values_and_steps_are_released_with_their_last_users():
    gc.collect()
    plan, done, before = ToyPlan(), {}, len(Array.alive)
    a = plan.step("a", lambda: Array(1))
    b = plan.step("b", added, a, a)
    steps = [weakref.ref(a.step), weakref.ref(b.step)]
    one, two = plan.handle(a, None), plan.handle(b, None)
    del a, b
    one.get(done), two.get(done)
    assert len(Array.alive) - before == 2
    del two
    assert len(Array.alive) - before == 1 and [s() is None for s in steps] == [False, True]
    del one
    assert len(Array.alive) == before and steps[0]() is None and not plan.handles


def test_live_results_are_not_recomputed():
    plan = ToyPlan()
    array = Array(7)
    a = plan.step("a", lambda: Array(7))
    handle = plan.handle(a, Origin(plan, weakref.ref(array), array.writes))
    assert handle.get({}) is array and not plan.ran
    array.write(0, 8)
    assert value(handle, {}) == [7] and plan.ran == ["a"]


def test_overwritten_input_is_refused():
    plan, x = ToyPlan(), Array(1)
    handle = plan.handle(plan.step("a", added, Input(plan, x), Input(plan, x)), None)
    x.write(0, 2)
    with pytest.raises(GradientError, match="written in place.*cannot be recomputed"):
        handle.get({})


def test_writes_in_the_scope_are_repeated_and_overwritten_values_refused():
    plan = ToyPlan()
    a = plan.step("a", lambda: Array(1, 1))
    before = plan.handle(a, None)
    write = plan.step("write", lambda x: x.write(0, 5), a)
    after = plan.handle(Result(a.step, 0, after=write.step), None)
    other = plan.step("other", added, Result(a.step, 0, after=write.step))
    before.stale = True
    done: dict = {}
    assert value(plan.handle(other, None), done) == value(after, done) == [5, 1]
    assert plan.ran == ["a", "write", "other"]
    with pytest.raises(GradientError, match="modified by an inplace operation"):
        before.get(done)


def test_random_numbers_are_replayed_and_the_stream_continues():
    generator = random.Random(3)
    pair = generator.getstate, generator.setstate
    plan = ToyPlan()
    drawn = Drawn([pair])
    first = generator.random()
    handle = plan.handle(plan.step("draw", lambda: Array(generator.random()), drawn=drawn), None)
    middle = generator.getstate()
    assert value(handle, {}) == [first] and generator.getstate() == middle
    with pytest.raises(ZeroDivisionError):
        drawn.again(lambda x: generator.random() / x, (0,))
    assert generator.getstate() == middle


def test_failed_step_leaves_no_partial_results():
    plan, fails = ToyPlan(), [True]

    def sometimes(a):
        if fails:
            raise ValueError("not now")
        return added(a, a)

    a = plan.step("a", lambda: Array(2))
    handle = plan.handle(plan.step("b", sometimes, a), None)
    done: dict = {}
    with pytest.raises(ValueError, match="not now"):
        handle.get(done)
    fails.clear()
    assert value(handle, done) == [4]
