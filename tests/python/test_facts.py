"""What ops declare of themselves (``ops/_facts.py``), as laws: what is declared holds, and what holds is declared.

The inputs are those of the parity cases, on NumPy. A law that an input cannot tell about (of one element, of whole
numbers for linearity) gives None.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import warnings
from collections import defaultdict

import cases
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from parity import flat

from gradops import backends, config, errors
from gradops.ops._dispatch import Op, registry
from gradops.ops._facts import FACTS

BY_OP = defaultdict(list)
for _module in sorted(m.name for m in pkgutil.iter_modules(cases.__path__)):
    for _case in importlib.import_module(f"cases.{_module}").CASES:
        if _case.op in registry and _case.function() is registry[_case.op].call:
            BY_OP[registry[_case.op].name].append(_case)

few = settings(max_examples=3, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None)


def results(entry: Op, arguments: dict) -> list[np.ndarray]:
    return [np.asarray(y) for y in flat(entry.call(**arguments))]


def tensors(entry: Op, arguments: dict) -> dict:
    return {name: arguments[name] for name in entry.tensors if arguments.get(name) is not None}


def alike(found, expected) -> bool:
    return all(
        a.shape == b.shape and np.allclose(a, b, rtol=1e-9, atol=1e-9, equal_nan=True) for a, b in zip(found, expected)
    )


def first(entry: Op, arguments: dict):
    """The first argument, where it is an array of numbers or truth values."""
    x = arguments.get(entry.parameters[0])
    return x if entry.parameters[0] in entry.tensors and isinstance(x, np.ndarray) else None


# Each law gives what holds: True or False, or the arguments in which an op is linear; None where it cannot tell.


def elementwise(entry: Op, arguments: dict):
    """Where all elements are those of one place, so are all results."""
    given, ys = tensors(entry, arguments), results(entry, arguments)
    if (
        not given
        or not all(isinstance(x, (np.ndarray, np.generic, int, float, complex)) for x in given.values())
        or len(ys) != 1
    ):
        return False if given else None
    try:
        shape = np.broadcast_shapes(*map(np.shape, given.values()))
    except ValueError:
        return False
    if ys[0].shape != shape:
        return False
    size = ys[0].size
    if size < 2 or (ys[0] == ys[0].flat[0]).all():
        return None
    for k in (0, size // 2, size - 1):
        same = {name: np.broadcast_to(np.broadcast_to(x, shape).flat[k], shape) for name, x in given.items()}
        if not alike(results(entry, {**arguments, **same}), [np.broadcast_to(ys[0].flat[k], shape)]):
            return False
    return True


def moves(entry: Op, arguments: dict):
    """Positions in the place of the first argument's elements come out where the elements do."""
    x = first(entry, arguments)
    if x is None or not x.size:
        return None
    expected = results(entry, arguments)
    positions = results(entry, {**arguments, entry.parameters[0]: np.arange(float(x.size)).reshape(x.shape)})
    whole = [np.isreal(p) & np.isfinite(p) & (p == np.floor(p.real)) for p in positions if p.dtype.kind in "fciu"]
    if len(whole) != len(expected) or not all(map(np.all, whole)):
        return False
    places = [p.real.astype(int) for p in positions]
    if any(((p < 0) | (p >= x.size)).any() for p in places):
        return False
    return alike([x.reshape(-1)[p] for p in places], expected) if x.size > 1 else None


def reduces(entry: Op, arguments: dict):
    """Results have the shape of a sum, and are the same where all lines are."""
    x = first(entry, arguments)
    if x is None or entry.parameters[1:2] != ("axis",):
        return False
    axis, ys = arguments.get("axis"), results(entry, arguments)
    axis = tuple(axis) if isinstance(axis, list) else axis
    if len(ys) != 1 or ys[0].shape != np.sum(x, axis, keepdims=arguments.get("keepdims", False)).shape:
        return False
    if axis is None or x.ndim < 2 or not x.size:
        return None
    axes = [a % x.ndim for a in (axis if isinstance(axis, tuple) else (axis,))]
    line = tuple(slice(None) if a in axes else slice(0, 1) for a in range(x.ndim))
    if ys[0].size < 2:
        return None
    y = results(entry, {**arguments, entry.parameters[0]: np.ascontiguousarray(np.broadcast_to(x[line], x.shape))})[0]
    return alike([y], [np.full_like(y, ys[0].flat[0])])


def linear_in(entry: Op, arguments: dict, names: tuple):
    """Whether ``op(a x + b z) == a op(x) + b op(z)``, for all of ``names`` together."""
    x = {name: arguments.get(name) for name in names}
    parts = [v for value in x.values() for v in (value if isinstance(value, (list, tuple)) else [value])]
    if not parts or any(np.asarray(v).dtype.kind not in "fc" for v in parts) or not sum(map(np.size, parts)):
        return None
    numbers = np.random.default_rng(5)
    z = {
        name: [numbers.uniform(0.3, 0.9, np.shape(v)) for v in value]
        if isinstance(value, (list, tuple))
        else numbers.uniform(0.3, 0.9, np.shape(value))
        for name, value in x.items()
    }

    def joined(a, b, one, other):
        if isinstance(one, (list, tuple)):
            return [a * np.asarray(v) + b * w for v, w in zip(one, other)]
        return a * np.asarray(one) + b * other

    if any(map(np.any, results(entry, {**arguments, **{name: joined(0, 0, x[name], z[name]) for name in names}}))):
        return False
    both = {name: joined(1.25, -0.5, x[name], z[name]) for name in names}
    ys = [results(entry, {**arguments, **values}) for values in (x, z, both)]
    if not all(y.dtype.kind in "fc" and np.isfinite(y).all() for y in ys[0]):
        return None
    if [y.shape for y in ys[0]] != [y.shape for y in ys[1]]:
        return False
    if not any(map(np.any, ys[0])):
        return None
    tolerance = 1e-4 if any(y.dtype.itemsize <= 4 for y in ys[0]) else 1e-8
    return all(np.allclose(c, 1.25 * a - 0.5 * b, tolerance, tolerance) for a, b, c in zip(*ys))


@functools.cache
def examples(name: str) -> list[dict]:
    """Inputs of an op, a few of each of its cases."""
    found: list[dict] = []
    for case in BY_OP[name]:
        few(given(case.inputs)(lambda arguments: found.append(arguments)))()
    return found


def told(entry: Op, law) -> list:
    """What a law says for all inputs of an op that it can tell about."""
    found = []
    with config.use_backend("numpy"), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for arguments in examples(entry.name):
            try:
                found.append(law(entry, arguments))
            except (errors.GradopsError, OverflowError):  # the law's own inputs may be outside of the domain
                pass
    return [x for x in found if x is not None]


def is_composed(entry: Op) -> bool:
    """Whether an op is made of others, from whose facts its own follow."""
    return entry.body is not None and backends.by_name("numpy").kernel(entry.name) is None


OPS = sorted(set(BY_OP) - {"convert_to_numpy"})  # whose result is no tensor


def test_all_ops_with_cases_are_here():
    public = {entry.name for entry in registry.values() if not entry.facts == type(entry.facts)()}
    assert len(OPS) > 250 and len(public) > 150


@pytest.mark.parametrize("law", [elementwise, moves, reduces], ids=lambda law: law.__name__)
@pytest.mark.parametrize("name", OPS)
def test_of_elements(name, law):
    entry = registry[name]
    said, declared = told(entry, law), getattr(entry.facts, law.__name__)
    assert law.__name__ in FACTS
    if declared:
        assert all(said), "declared, but it does not hold"
    elif law is elementwise or not is_composed(entry):
        assert not said or not all(said), "it holds, but is not declared"


@pytest.mark.parametrize("name", OPS)
def test_of_linear(name):
    entry = registry[name]
    declared = [*filter(None, [entry.facts.linear]), *[(one,) for one in entry.facts.multilinear]]
    if entry.facts.moves:
        declared.append(entry.parameters[:1])
    for names in declared:
        assert all(told(entry, lambda entry, arguments, names=names: linear_in(entry, arguments, names))), names
    if is_composed(entry):
        return
    known = {one for names in declared for one in names}
    for one in set(entry.tensors) - known:
        said = told(entry, lambda entry, arguments, one=one: linear_in(entry, arguments, (one,)))
        assert not said or not all(said), f"linear in `{one}`, which is not declared"
