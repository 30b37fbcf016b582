"""Every op in the libraries' own compilers behaves as tools/compiled.csv and docs/ops.md say."""

from __future__ import annotations

import compilers
import numpy as np
import pytest

import gradops
from gradops import ops

SAMPLE = ("einsum", "sort", "unique")
CHEAP = [name for name in ("torch.compile", "tf.function") if name in compilers.INSTALLED]
CHOSEN = compilers.chosen()


def check(op: str, compiler: str):
    assert compilers.cell(CHOSEN[op], compiler) == compilers.recorded()[op][compiler]


@pytest.mark.parametrize("compiler", CHEAP)
@pytest.mark.parametrize("op", SAMPLE)
def test_a_sample_of_ops(op, compiler):
    check(op, compiler)


@pytest.mark.long
@pytest.mark.parametrize("compiler", compilers.INSTALLED)
@pytest.mark.parametrize("op", CHOSEN)
def test_every_op(op, compiler):
    check(op, compiler)


@pytest.mark.long
@pytest.mark.parametrize("op", CHOSEN)
def test_every_op_in_torch_generated_code(op):
    pytest.importorskip("torch")
    assert compilers.cell(CHOSEN[op], compilers.CODE) == compilers.recorded()[op]["torch.compile"]


def test_record_lists_the_ops_that_have_a_reason():
    rows = compilers.exceptions()
    assert set(rows) == set(compilers.REASONS), "an op of tools/compiled.csv needs its reason in compilers.REASONS"
    assert set(rows) <= set(CHOSEN) and all(set(row.values()) != {"yes"} for row in rows.values())


def test_torch_compiles_once():
    """Other uses of the ops do not invalidate PyTorch's guards, which depend on the call alone."""
    torch = pytest.importorskip("torch")
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    own = gradops.custom_gradient(lambda x: (ops.sin(x), lambda upstream: upstream * 2.0))
    f = torch.compile(lambda x: ops.sum(own(ops.exp(x)) * ops.maximum(x, 0.5)), backend=backend, fullgraph=True)
    x = torch.ones(3, requires_grad=True)
    f(x)
    for other in (x, np.ones(3), gradops.Variable(np.ones(3), requires_grad=True), np.float32(1)):
        own(ops.exp(other)), ops.maximum(other, 0.5), ops.maximum(other, other)
        f(x).backward()
    assert len(graphs) == 1
    np.testing.assert_allclose(x.grad.numpy(), 4 * np.full(3, 2 * np.e + np.sin(np.e)), rtol=1e-6)
