"""``explain()`` of a compiled function: why it was traced again."""

import functools
import re

import numpy as np
import pytest
from parity import BACKENDS, tensors

from gradops import jit, ops
from gradops.jit.guards import Answers


def reasons(compiled) -> list[str]:
    """Return the reasons that ``explain()`` lists."""
    return re.findall(r"^  - (.*)$", compiled.explain(), re.MULTILINE)


def test_one_trace_needs_no_reason():
    compiled = jit(lambda x: ops.sum(x))
    for _ in range(3):
        compiled(np.ones(3))
    assert "traced" not in compiled.explain() and not reasons(compiled)


@pytest.mark.parametrize("backend", BACKENDS)
def test_shape_dtype_and_number(backend):
    compiled = jit(lambda x, n: ops.sum(x) * n)
    for x, n in ((np.ones(3), 2), (np.ones((3, 4)), 2), (np.ones((3, 4), "float32"), 2), (np.ones((3, 4)), 3.5)):
        x = tensors(x, backend)
        compiled(x, n)
    assert reasons(compiled) == [
        "new shape: `x` was float64[3] and is float64[3, 4]",
        "new dtype: `x` was float64[3, 4] and is float32[3, 4]",
        "`n` changed from 2 to 3.5",
    ]


def test_structures_keywords_and_static_arguments():
    compiled = jit(lambda p, mode, *, scale=1.0: ops.sum(p["w"]) * (mode == "a") * scale, static_argnums=1)
    w = np.ones(2)
    compiled({"w": w}, "a")
    compiled({"w": w}, "b")
    compiled({"w": w, "b": w}, "b")
    compiled({"w": w}, "b", scale=2.0)
    compiled({"w": w}, "b", scale=3.0)
    assert reasons(compiled) == [
        "`mode` changed from 'a' to 'b'",
        "new structure of arguments: `mode`, `p['b']`, `p['w']`; before `mode`, `p['w']`",
        "new structure of arguments: `mode`, `p['w']`, `scale`; before `mode`, `p['b']`, `p['w']`",
        "`scale` changed from 2.0 to 3.0",
    ]


def test_variables_that_the_function_reads():
    rate, data, helper = 0.1, np.arange(3.0), ops.sum

    def f(x):
        return helper(x) * rate + data[0]

    compiled = jit(f)
    compiled(np.ones(2))
    rate = 0.2
    compiled(np.ones(2))
    data[0] = 5.0
    helper = ops.prod
    compiled(np.ones(2))
    first, second = reasons(compiled)
    assert first == "`rate` changed from 0.1 to 0.2"
    assert sorted(second.split("; ")) == ["`data` has changed", "`helper` has changed"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_branches_name_the_line_that_decided(backend):
    def f(x):
        if ops.sum(x) > 0:
            return ops.sum(x)
        if ops.min(x) > -2:
            return ops.prod(x)
        return x[0]

    compiled = jit(f)
    x = tensors(np.ones(3), backend)
    for scale in (1.0, -1.0, 2.0, -3.0, 4.0):
        compiled(scale * x)
    first, second = reasons(compiled)
    file = re.escape("test_jit_retraces.py")
    assert re.fullmatch(rf"another branch at {file}:\d+: `if ops.sum\(x\) > 0:` \(True before, False now\)", first)
    assert re.fullmatch(rf"another branch at {file}:\d+: `if ops.min\(x\) > -2:` \(True before, False now\)", second)


def test_numbers_and_texts_that_the_function_read():
    compiled = jit(lambda x: ops.sum(x) * int(x[0]) + len(f"{x[1]:.1f}"))
    for x in ((2.0, 1.0), (3.0, 1.0), (3.0, 10.0)):
        compiled(np.array(x))
    integer, text = reasons(compiled)
    assert integer.endswith("(2.0 before, 3.0 now)") and text.endswith("('1.0' before, '10.0' now)")


def test_only_the_last_reasons_are_stored():
    compiled = jit(lambda x, n: x * n)
    for n in range(25):
        compiled(np.ones(2), n)
    assert "traced 25 times" in compiled.explain() and len(reasons(compiled)) == 10
    assert reasons(compiled)[-1] == "`n` changed from 23 to 24"


def test_arguments_without_names_have_numbers():
    compiled = jit(functools.partial(lambda *xs: sum(map(ops.sum, xs))))
    compiled(np.ones(2), np.ones(2))
    compiled(np.ones(2), np.ones(3))
    assert reasons(compiled) == ["new shape: `argument 2` was float64[2] and is float64[3]"]


def test_masks_that_the_function_read():
    """JAX and TensorFlow read a mask as an array, which has no single truth value."""
    read = [np.array([True, False]), 2.0]
    for mask, differs in ((read[0].copy(), False), (np.array([True, True]), True)):
        answers = Answers([read])
        answers.note(mask)
        assert (answers.divergence is not None) is differs
