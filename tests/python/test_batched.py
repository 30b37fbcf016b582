"""Batched unit vectors on the tape against one unit vector at a time, for every op's cases."""

from __future__ import annotations

import importlib
import itertools
import pkgutil

import cases
import numpy as np
import pytest
from parity import differentiated, flat

import gradops
from gradops import functional, ops
from gradops.errors import AxisError
from gradops.functional import batched, on_tape
from gradops.ops import mapping

CASES = [
    case
    for module in sorted(m.name for m in pkgutil.iter_modules(cases.__path__))
    for case in importlib.import_module(f"cases.{module}").CASES
    if case.gradients
]


@pytest.fixture
def fall_backs(monkeypatch):
    """Count how often a batch was refused."""
    found = []
    together = on_tape._together

    def counted(*arguments):
        try:
            return together(*arguments)
        except Exception as error:
            found.append(error)
            raise

    monkeypatch.setattr(on_tape, "_together", counted)
    return found


def by_id(case):
    return case.id


def floating(case, arguments):
    """Return the op as a function from its differentiated arguments to its floating results."""

    def f(*values):
        given, queue = dict(arguments), list(values)
        for name in case.gradients:
            several = isinstance(arguments[name], list)
            given[name] = [queue.pop(0) for _ in arguments[name]] if several else queue.pop(0)
        return tuple(y for y in flat(case.function()(**given)) if "float" in ops.dtype(y))

    return f


@pytest.mark.short_cases(400)
@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
@pytest.mark.parametrize("case", CASES, ids=by_id)
def test_batches_equal_single_rows(case, strategy, monkeypatch):
    arguments = case.example()
    inputs = tuple(differentiated(case, arguments))
    if any(map(np.iscomplexobj, inputs)):
        return
    f = floating(case, arguments)
    together = functional.jacobian(f, inputs, strategy=strategy)
    with monkeypatch.context() as patch:
        patch.setattr(on_tape, "_MAX_BATCH_ELEMENTS", 1)
        one_by_one = functional.jacobian(f, inputs, strategy=strategy)
    for a, b in zip(flat(together), flat(one_by_one)):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


AXES = ([1], [0]), ([0, 1], [1, 0]), ([], [])
TOGETHER = {
    **{f"tensordot-{i}": (lambda a, axes=axes: ops.tensordot(a, ops.sin(a), axes)) for i, axes in enumerate(AXES)},
    "dot": lambda a: ops.dot(a[0], a) + ops.dot(a[0], a[1]) + ops.dot(a[0, 0], a[1]),
    **{f"sort-{axis}": (lambda a, axis=axis: ops.sort(a, axis)) for axis in (0, -1)},
    **{f"softmax-{axis}": (lambda a, axis=axis: ops.softmax(a, axis) * a) for axis in (0, -1)},
    "take-of-argsort": lambda a: ops.take(a, ops.argsort(a[1]), 1),
    "take-positions": lambda a: ops.take(a, ops.argsort(a, 0)),
    "take-from-one": lambda a: ops.take(np.eye(3), ops.argsort(a, 0), 1) * a[0, 0],
    "take_along_axis": lambda a: ops.take_along_axis(a, ops.argsort(a, 0), 0),
    "median": lambda a: ops.median(a, 0),
    "roll": lambda a: ops.roll(a, 1) + ops.roll(a, (1, 2), (0, 1)),
    "diagonal": lambda a: ops.diagonal(a, 1) * ops.trace(a),
    "expand_dims": lambda a: ops.expand_dims(a, (0, -1)),
    "solve": lambda a: ops.solve(spread(a), a) + ops.solve(spread(a), a[0]) + ops.solve(np.eye(3), a),
    "inv": lambda a: ops.inv(spread(a)) * ops.slogdet(spread(a))[1] * ops.det(spread(a)),
    "cholesky": lambda a: ops.cholesky(spread(a) + ops.transpose(spread(a))),
    "eigh": lambda a: ops.eigh(spread(a) + ops.transpose(spread(a)))[0],
    "svd": lambda a: ops.svd(a)[1] + ops.sum(ops.qr(a)[1]),
}
"""Functions of a matrix that must run on a batch of matrices in one call."""


def spread(a):
    return a + 9.0 * np.eye(3)


@pytest.mark.parametrize("name", TOGETHER)
def test_one_call_for_all_rows(name, monkeypatch):
    f = TOGETHER[name]
    a = np.random.default_rng(0).normal(size=(4, 3, 3))
    g = gradops.grad(lambda a: ops.sum(ops.sin(f(a))))
    want = [np.stack([np.asarray(h(x)) for x in a]) for h in (f, g)]
    monkeypatch.setattr(batched, "_run_each", None)
    monkeypatch.setattr(mapping, "map", None)
    for h, expected in zip((f, g), want):
        np.testing.assert_allclose(gradops.vmap(h)(a), expected, rtol=1e-9)
        np.testing.assert_allclose(gradops.jit(gradops.vmap(h))(a), expected, rtol=1e-9)
        nested = gradops.vmap(gradops.vmap(h))(a.reshape(2, 2, 3, 3))
        np.testing.assert_allclose(nested, expected.reshape(2, 2, *expected.shape[1:]), rtol=1e-9)


def test_indices_out_of_range_in_a_batch():
    with pytest.raises(AxisError, match="between -3 and 2"):
        gradops.vmap(lambda a, i: ops.take(a, i, 0))(np.ones((4, 3, 3)), np.full((4, 2), 3))


def test_constant_keys_apply_alike_to_every_batch_member():
    members = np.random.default_rng(0).normal(size=(5, 3, 4, 2))
    arrays = [np.array([0, 1]), np.array([[1], [0]]), [1, 0], np.array([True, False, True])]
    parts = [0, slice(None), slice(0, 2), None, Ellipsis, True, *arrays]
    stayed = 0
    for key in itertools.chain.from_iterable(itertools.product(parts, repeat=n) for n in (1, 2, 3)):
        if sum(part is Ellipsis for part in key) > 1 or not batched._keeps_meaning(key):
            continue
        try:
            each = np.stack([member[key] for member in members])
        except (IndexError, ValueError):  # too many dimensions, or arrays that do not broadcast
            continue
        np.testing.assert_array_equal(members[(slice(None), *key)], each, err_msg=str(key))
        stayed += 1
    assert stayed > 200
    assert batched._keeps_meaning((np.array([0]), np.array([1]))) and not batched._keeps_meaning(
        (np.array([0]), slice(None), 1)
    )
