"""Anomaly mode."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import gradops
from gradops import Variable, _call_sites
from gradops.autodiff import Function, detect_anomaly, set_detect_anomaly, state
from gradops.autodiff.diagnostics import anomaly

torch = pytest.importorskip("torch")


def leaf(*values):
    return Variable(np.array(values), requires_grad=True)


def the_culprit(x):
    return np.sqrt(x)


def make_nan(x):
    return (the_culprit(x) * 0).sum()


def test_nan_gradient_raises_and_shows_the_forward_call():
    x = leaf(0.0, 1.0)
    with detect_anomaly():
        y = make_nan(x)
        with pytest.raises(RuntimeError, match=r"`sqrt` returned NaN as the gradient of its input 0") as error:
            y.backward()
    message = str(error.value)
    assert "return np.sqrt(x)" in message and "test_anomaly.py" in message and "the_culprit" in message
    assert "gradops/autodiff" not in message
    assert x.grad is None


def test_disabled_anomaly_mode_leaves_no_hooks():
    with detect_anomaly():
        assert gradops.autodiff.diagnostics.anomaly.is_anomaly_enabled()
    assert not anomaly.is_anomaly_enabled()
    assert state.watchers == [] and state.observers == []
    x = leaf(0.0, 1.0)
    make_nan(x).backward()
    assert np.isnan(x.grad.data[0])


def test_without_nan_check():
    x = leaf(0.0, 1.0)
    with detect_anomaly(check_nan=False):
        make_nan(x).backward()
    assert np.isnan(x.grad.data[0])


def test_forward_pass_outside_anomaly_mode():
    x = leaf(0.0, 1.0)
    y = make_nan(x)
    with detect_anomaly(), pytest.raises(RuntimeError, match="outside anomaly mode"):
        y.backward()


def test_error_in_a_gradient_shows_the_forward_call():
    class Fails(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            raise KeyError("mine")

    with detect_anomaly():
        y = Fails.apply(leaf(1.0)).sum()
        with pytest.warns(UserWarning, match="Fails.apply") as caught, pytest.raises(KeyError, match="mine"):
            y.backward()
    assert "test_anomaly.py" in str(caught[0].message)


def test_set_as_statement_and_scope():
    set_detect_anomaly(True)
    try:
        assert anomaly.is_anomaly_enabled() and torch.is_anomaly_enabled()
        with set_detect_anomaly(False):
            assert not anomaly.is_anomaly_enabled()
        assert anomaly.is_anomaly_enabled()
    finally:
        set_detect_anomaly(False)
    assert not anomaly.is_anomaly_enabled() and not torch.is_anomaly_enabled()


def test_decorator_and_nesting():
    @detect_anomaly()
    def run():
        with detect_anomaly(check_nan=False):
            make_nan(leaf(0.0)).backward()
        make_nan(leaf(0.0)).backward()

    with pytest.raises(RuntimeError, match="sqrt"):
        run()
    assert not anomaly.is_anomaly_enabled()


def test_torch_tensors():
    x = torch.zeros(2, requires_grad=True)
    with detect_anomaly(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = (gradops.ops.sqrt(x) * 0).sum()
        with pytest.raises(RuntimeError, match="nan"):
            y.backward()


def test_torch_tensors_through_our_backward(monkeypatch):
    monkeypatch.setattr(_call_sites, "_host", lambda: "log(v) in an R function")
    x = torch.zeros(2, requires_grad=True)
    with detect_anomaly():
        with pytest.raises(gradops.errors.GradientError, match=r"LogBackward[^:]*:\nlog\(v\) in an R function(\n|$)"):
            gradops.autodiff.backward((torch.log(x) * 0).sum())
    with warnings.catch_warnings(record=True) as heard:
        gradops.autodiff.backward((torch.log(x) * 0).sum())
    assert not heard and torch.isnan(x.grad).all()
    monkeypatch.setattr(_call_sites, "_host", None)
    with detect_anomaly():
        with pytest.raises(gradops.errors.GradientError, match="test_anomaly.py"):
            gradops.autodiff.grad((torch.log(x) * 0).sum(), x)
        assert gradops.autodiff.grad((x * 2).sum(), x)[0].tolist() == [2, 2]


def test_double_backward_and_call_site(monkeypatch):
    monkeypatch.setattr(_call_sites, "_host", lambda: "sqrt(x) in an R function")
    x = leaf(0.0, 4.0)
    with detect_anomaly():
        y = make_nan(x)
        with pytest.raises(RuntimeError, match=r"sqrt\(x\) in an R function"):
            gradops.autodiff.grad(y, x, create_graph=True)
