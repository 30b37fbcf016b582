"""The profiler."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest

import gradops
from gradops import Variable, ops
from gradops.autodiff import diagnostics, profiler, state
from gradops.ops import _dispatch

torch = pytest.importorskip("torch")


def work(n=3):
    x = Variable(np.ones((10, 20)), requires_grad=True)
    y = x
    for _ in range(n):
        y = ops.exp(y) * 0.1
    with profiler.record_function("loss"), profiler.record_function("inner"):
        loss = (y @ np.ones((20, 5))).sum()
    loss.backward()
    return x


def run():
    with profiler.profile(with_torch=False) as p:
        work()
    return p


def test_rows():
    rows = {r.name: r for r in run().rows()}
    assert rows["exp"].calls == rows["exp backward"].calls == 3
    assert rows["exp"].kind == "forward" and rows["exp backward"].kind == "backward"
    assert rows["exp"].bytes == 3 * 10 * 20 * 8
    assert rows["matmul"].calls == 2, "one forward, one inside its gradient"
    assert rows["loss"].calls == rows["inner"].calls == 1 and rows["loss"].kind == "label"
    assert rows["loss"].total >= rows["inner"].total >= rows["matmul"].self > 0
    for row in rows.values():
        assert 0 <= row.self <= row.total and row.mean == row.total / row.calls


def test_results_are_unchanged_and_no_hooks_remain():
    want = work().grad.data
    p = profiler.profile(with_torch=False)
    with p:
        got = work().grad.data
    np.testing.assert_array_equal(got, want)
    assert state.observers == [] and _dispatch.Op.resolve is diagnostics.profiler._plain_resolve
    count = len(p.events)
    work()
    assert len(p.events) == count
    assert all(f.__name__ != "measured" for op in _dispatch.registry.values() for f in op.kernels.values())


def test_table_is_sorted_as_requested():
    p = run()
    for by, attribute in (("self_time", "self"), ("total_time", "total"), ("calls", "calls"), ("bytes", "bytes")):
        values = [getattr(r, attribute) for r in p.rows(sort_by=by)]
        assert values == sorted(values, reverse=True)
    names = [r.name for r in p.rows(sort_by="name")]
    assert names == sorted(names)
    assert [r.name for r in p.rows("self_cpu_time_total")] == [r.name for r in p.rows("self_time")]
    table = p.table(sort_by="total_time", row_limit=2)
    lines = table.splitlines()
    assert lines[0].split()[0] == "name" and "more" in lines[4] and "by the clock" in lines[-1]
    assert str(p) == p.table()
    with pytest.raises(gradops.errors.ArgumentError, match="sort_by"):
        p.table(sort_by="nonsense")


def test_shapes():
    p = run()
    rows = {(r.name, r.shapes): r for r in p.rows(by_shape=True)}
    assert ("matmul", ((10, 20), (20, 5))) in rows
    assert "(10, 20) (20, 5)" in p.table(by_shape=True)
    with profiler.profile(record_shapes=False, with_torch=False) as q:
        work()
    assert all(e.shapes == () for e in q.events)


def test_nesting():
    p = run()
    by_name = {e.name: e for e in p.events}
    assert by_name["inner"].depth == by_name["loss"].depth + 1
    outer, inner = by_name["loss"], by_name["matmul"]
    assert outer.start <= by_name["inner"].start and by_name["inner"].end <= outer.end
    assert inner.depth >= 1
    composed = ops.std if hasattr(ops, "std") else ops.var
    with profiler.profile(with_torch=False) as q:
        composed(np.arange(5.0))
    top = q.events[0]
    assert top.depth == 0
    np.testing.assert_allclose(top.inside, sum(e.total for e in q.events if e.depth == 1))


def test_chrome_trace(tmp_path):
    p = run()
    p.export_chrome_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    calls = [e for e in trace if e["ph"] == "X"]
    assert {"exp", "exp backward", "loss"} <= {e["name"] for e in calls}
    assert all(e["dur"] >= 0 and e["ts"] >= 0 for e in calls)


def test_torch_has_its_own_profile(tmp_path):
    x = torch.ones(4, requires_grad=True)
    with profiler.profile() as p:
        with profiler.record_function("torch part"):
            y = ops.exp(x).sum()
        y.backward()
        work()
    rows = {(r.name, r.source) for r in p.rows()}
    assert {("exp", "tape"), ("aten::exp", "torch"), ("torch part", "tape"), ("exp backward", "tape")} <= rows
    assert ("torch part", "torch") not in rows
    assert any("ExpBackward0" in name for name, source in rows if source == "torch")
    assert p.torch.key_averages().table()
    assert "aten::exp" in p.table(sort_by="name")
    p.export_chrome_trace(tmp_path / "trace.json")
    assert "aten::exp" in (tmp_path / "trace.json").read_text()


def test_nested_profiles_threads_and_disabled():
    with profiler.profile(with_torch=False) as outer:
        ops.exp(np.ones(2))
        with profiler.profile(with_torch=False) as inner:
            ops.log(np.ones(2))
        thread = threading.Thread(target=lambda: ops.sin(np.ones(2)))
        thread.start()
        thread.join()
        with pytest.raises(RuntimeError, match="still running"):
            outer.table()
    assert [e.name for e in inner.events] == ["log"]
    assert [e.name for e in outer.events] == ["exp", "log", "sin"]
    assert len({e.thread for e in outer.events}) == 2
    with profiler.profile(enabled=False) as off:
        ops.exp(np.ones(2))
    assert off.events == []


def test_decorators_and_errors():
    @profiler.record_function("labelled")
    def labelled():
        raise KeyError

    p = profiler.profile(with_torch=False)

    @p
    def function():
        with pytest.raises(KeyError):
            labelled()
        with pytest.raises(gradops.errors.GradopsError):
            ops.exp("text")

    function()
    assert [e.name for e in p.events if e.kind == "label"] == ["labelled"]


def test_averages_have_pytorch_names():
    x = Variable(np.ones(3), requires_grad=True)
    with profiler.profile() as p:
        (x * x).sum().backward()
        (x * x * x).sum().backward()
    averages = p.key_averages()
    assert {row.name: row.calls for row in averages}["multiply"] == 3
    assert averages.table() == p.table(None)
    assert averages.table(sort_by="self_cpu_time_total", row_limit=2) == p.table("self_time", 2)
    assert p.key_averages(group_by_input_shape=True).table() == p.table(None, by_shape=True)
    assert len(p.rows(limit=2).table().splitlines()) < len(averages.table().splitlines())
