"""Every op inside the libraries' own compilers, as tools/compiled.csv and docs/ops.md say it is."""

from __future__ import annotations

import compilers
import pytest
from test_parity import CASES

SAMPLE = ("einsum", "sort", "unique")
CHEAP = [name for name in ("torch.compile", "tf.function") if name in compilers.INSTALLED]
CHOSEN = compilers.chosen()


def check(op: str, compiler: str):
    assert compilers.cell(CHOSEN[op], compiler) == compilers.recorded()[op][compiler]


@pytest.mark.parametrize("compiler", CHEAP)
@pytest.mark.parametrize("op", SAMPLE)
def test_a_sample(op, compiler):
    check(op, compiler)


@pytest.mark.long
@pytest.mark.parametrize("compiler", compilers.INSTALLED)
@pytest.mark.parametrize("op", CHOSEN)
def test_every_op(op, compiler):
    check(op, compiler)


def test_the_record_is_of_every_op_and_says_why():
    rows = compilers.recorded()
    assert set(rows) == {case.op for case in CASES}
    assert {op for op, row in rows.items() if set(row.values()) != {"yes"}} == set(compilers.REASONS)
