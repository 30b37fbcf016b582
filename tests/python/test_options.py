"""Each option of each op gives one result on all backends: a value with its gradient, or a gradops error.

The parity cases cover chosen options; here each option takes further values in turn, and the backends are compared with
each other.
"""

import re

import numpy as np
import pytest
from parity import BACKENDS, call, flat, numpy, tensors
from test_parity import CASES

import gradops
from gradops import config, dtypes, ops
from gradops.errors import GradopsError
from gradops.ops._dispatch import names, registry

OTHERS = {
    "Axis": (0, -1, 1, None, (0, 1), 5),
    "Axes": (0, -1, 1, None, (0, 1), [0, -1], 5),
    "DType": ("bool", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128", None),
    "Integer": (-1, 0, 1, 2, 3, 2.0, 1.5, True),
    "number": (0, 0.5, 1, 2.0, -1),
    "Tensor": (0, 0.5, 2, -1),
    "anything": (0, 0.5, 100, -100, 1, 2, float("inf")),
}
"""Values for each kind of option; words come from the op's docstring."""

SAMPLE = ("prod", "arange", "cumsum", "eye", "leaky_relu", "concatenate")
FIRST = {case.op: case for case in reversed(CASES) if case.using is None and case.op in names}


def options(case, arguments: dict):
    """Yield calls that differ in one option, each with a description and its arguments."""
    op = registry[case.op]
    words = sorted(set(re.findall(r'"(\w+)"', case.function().__doc__ or "")))
    for name, parameter in op.signature.parameters.items():
        kind, default = op.annotations.get(name), parameter.default
        value = arguments.get(name, default)
        if (case.op, name) == ("svd", "compute_uv"):  # the case unpacks three factors
            continue
        if isinstance(value, bool):
            others = (not value,)
        elif isinstance(value, str) or isinstance(default, str):
            others = words
        elif kind in ("Axis", "Axes", "DType", "Integer"):
            others = OTHERS[kind]
        elif kind in ("Tensor", "Operand"):
            others = OTHERS["Tensor"] if default is None else ()
        elif isinstance(default, (int, float)):
            others = OTHERS["number"]
        elif default is None and kind not in ("Function", "Structure", "Tensors", "Indices"):
            others = (*OTHERS["anything"], *words)
        else:
            others = ()
        for other in others:
            yield f"{name}={other!r}", {**arguments, name: other}


def outcome(compute):
    """Return the result of a computation as arrays with dtypes, or the gradops error it raises."""
    try:
        return [(ops.dtype(x) if hasattr(x, "dtype") else "", np.asarray(numpy(x))) for x in flat(compute())]
    except GradopsError as error:
        return error


def gradients(case, backend: str, arguments: dict):
    """Return the gradients of a weighted sum of all results."""
    given_ = {k: tensors(v, backend) for k, v in arguments.items()}

    def total(*xs):
        result = case.function()(**(given_ | dict(zip(case.gradients, xs))))
        each = [y for y in flat(result) if dtypes.is_floating(ops.dtype(y))]
        weights = [np.cos(1.0 + np.arange(ops.size(y))).reshape(ops.shape(y)) for y in each]
        return sum((ops.sum(ops.real(ops.multiply(y, tensors(w, backend)))) for y, w in zip(each, weights)), 0.0)

    with config.backend_scope(backend):
        places = tuple(range(len(case.gradients)))
        return gradops.grad(total, argnums=places)(*[given_[name] for name in case.gradients])


def difference(one, other, rounded: bool) -> str | None:
    """Describe how two outcomes differ; ``rounded`` if half precision was involved."""
    failed = [isinstance(each, GradopsError) for each in (one, other)]
    if any(failed):
        return None if all(failed) else f"{one!r}, {other!r}"
    if [(d, x.shape) for d, x in one] != [(d, x.shape) for d, x in other]:
        return f"{[(d, x.shape) for d, x in one]}, {[(d, x.shape) for d, x in other]}"
    for (name, x), (_, y) in zip(one, other):
        if x.dtype.kind not in "fc":
            same = np.array_equal(x, y)
        else:
            close = {"float16": 1e-2, "float32": 1e-4, "complex64": 1e-4}.get("float16" if rounded else name, 1e-7)
            same = np.allclose(x, y, rtol=close, atol=close, equal_nan=True)
        if not same:
            return f"{x.ravel()[:4]}, {y.ravel()[:4]}"
    return None


def check(name: str) -> int:
    """Compare the backends for each option of an op and return the number of options."""
    case, wrong, count = FIRST[name], [], 0
    known = case.examples(3)[-1]
    backends = [b for b in BACKENDS if b not in case.skip]
    continuous = case.gradients and all(
        getattr(known.get(k), "dtype", np.dtype(bool)).kind in "fc" for k in case.gradients
    )
    with np.errstate(all="ignore"):
        for words, arguments in options(case, known):
            count += 1
            computed = {b: outcome(lambda b=b, a=arguments: call(case, b, a)) for b in backends}
            valued = not any(isinstance(c, GradopsError) for c in computed.values())
            asked = [computed]
            if continuous and valued and all(x.size for _, x in computed[backends[0]]):
                asked.append({b: outcome(lambda b=b, a=arguments: gradients(case, b, a)) for b in backends})
            for results in asked:
                for b in backends[1:]:
                    if differs := difference(results[backends[0]], results[b], "float16" in words):
                        wrong.append(f"{name}({words}) on {b}: {differs}")
    assert not wrong, "\n".join(wrong)
    return count


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_of_ops(name):
    assert check(name)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(FIRST))
def test_every_op(name):
    check(name)


def test_options_are_found():
    words = {words for words, _ in options(FIRST["prod"], FIRST["prod"].examples(3)[-1])}
    assert {"axis=(0, 1)", "dtype='int32'"} <= words
