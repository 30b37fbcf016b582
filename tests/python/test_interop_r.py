"""Functions that R calls: conversion of values, arguments, functions and errors; generated R files."""

import gc
import inspect
import pathlib
import re
import shutil
import subprocess
import sys
import threading
from collections import deque

import numpy as np
import pytest

import gradops
from gradops import _names, errors
from gradops.errors import ArgumentTypeError, AxisError
from gradops.inference import fit
from gradops.interop import r
from gradops.interop.r import calls, jit, likelihoods, threads
from gradops.interop.r import errors as words
from gradops.ops._dispatch import registry

ROOT = pathlib.Path(__file__).parents[2]


def marked(*values):
    return {"<R>": np.array(values)}


@pytest.mark.repository
@pytest.mark.documents
def test_generated_r_files_are_current():
    roxygen = re.search(r"RoxygenNote: (.*)", (ROOT / "DESCRIPTION").read_text())[1]
    installed = ["Rscript", "-e", "cat(as.character(packageVersion('roxygen2')))"]
    if not shutil.which("Rscript") or subprocess.run(installed, capture_output=True, text=True).stdout != roxygen:
        pytest.skip(f"the pages are formatted by roxygen2 {roxygen}")
    done = subprocess.run([sys.executable, ROOT / "tools/generate_r", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_r_arrays_use_the_default_backend_unless_a_tensor_is_passed():
    torch = pytest.importorskip("torch")
    with gradops.config.backend_scope("torch"):
        assert isinstance(r.op("exp")(marked(1.0, 2.0)), torch.Tensor)
        assert isinstance(r.op("add")(marked(1.0, 2.0), np.ones(2)), np.ndarray)
    assert isinstance(r.op("exp")(marked(1.0, 2.0)), np.ndarray)
    assert isinstance(r.op("add")(marked(1.0, 2.0), torch.ones(2)), torch.Tensor)
    assert r.op("stack")([marked(1, 2), marked(3, 4)], 1.0).dtype == np.int64


@pytest.mark.parametrize(
    ("value", "expected"), [(1.0, 0), (-1, -1), ([1.0, 2.0], (0, 1)), (np.array([2.0]), (1,)), (None, None)]
)
def test_axes_count_from_1(value, expected):
    assert r.as_axis(value, "axis") == expected


@pytest.mark.parametrize(("value", "error"), [(0, AxisError), (1.5, ArgumentTypeError), (-(2**31), ArgumentTypeError)])
def test_invalid_axes(value, error):
    with pytest.raises(error, match="`axis`"):
        r.as_axis(value, "axis")


def test_data_frame_is_not_an_axis():
    frame = pytest.importorskip("pandas").DataFrame({"a": [1, 2], "b": ["x", "y"]})
    with pytest.raises(ArgumentTypeError, match="`axis` must be a whole number; got a DataFrame"):
        r.as_axis(frame, "axis")


def test_indices_count_from_1_in_arguments_and_results():
    x = np.array([3.0, 9.0, 5.0])
    assert r.op("argmax")(x, None, False) == 2
    assert r.op("argmax")(x, None, False, True) == 1
    np.testing.assert_array_equal(r.op("take")(x, [1.0, -1.0], None), [3, 5])
    np.testing.assert_array_equal(r.op("take")(x, np.array([1, 2]), None), [3, 9])
    assert [int(p) for p in r.op("top_k")(x, 2.0, True, True)[1]] == [2, 3]
    np.testing.assert_array_equal(r.op("unique")(x, True, False, True, False, None, None, None)[1], [1, 3, 2])


def test_failures_carry_the_fields_that_r_needs():
    failure = r.op("sum")(np.ones(3), 3.0, False)
    fields = failure.fields()
    assert (fields["kind"], fields["argument"]) == ("axis", "axis")
    assert fields["message"].startswith("`axis` must be from 1 to 1, or from -1 to -1 counted from the end,")
    assert fields["message"].endswith("got 3.")
    assert r.attribute("config.set_backend")("theano").fields()["kind"] == "backend"
    assert r.guarded(lambda: 1 / 0)().fields() == {"kind": "python", "message": "ZeroDivisionError: division by zero"}


def test_r_callbacks_have_the_signature_of_their_formals():
    f = r.callback(lambda *args, **kwargs: None, ["x.1", "...", "upstream"], ["none", "none", "null"])
    parameters = inspect.signature(f).parameters
    assert list(parameters) == ["x.1", "args", "upstream"]
    assert parameters["args"].kind is inspect.Parameter.VAR_POSITIONAL
    assert parameters["upstream"].kind is inspect.Parameter.KEYWORD_ONLY
    assert parameters["upstream"].default is None


def test_varianceof_r_functions_keep_their_key():
    f = r.callback(lambda x: {"<R error>": "7", "message": "mine", "python": None}, ["x"], ["none"])
    failure = r.guarded(gradops.grad(f))(1.0)
    assert failure.fields() == {"kind": "callback", "message": "mine", "key": "7"}


def test_python_exception_survives_the_round_trip_through_r():
    error = KeyError("a library waits for this")
    f = r.callback(lambda: {"<R error>": "8", "message": "", "python": error}, [], [])
    with pytest.raises(KeyError) as caught:
        f()
    assert caught.value is error


def test_varianceare_worded_in_r_from_their_fields():
    def said(template, **fields):
        error = gradops.errors.ArgumentError(template, **fields)
        return words.message(error, error.template)

    assert said("`pad`: dimension {axis} is empty.", axis=errors.Position(1)) == "dimension 2 is empty."
    assert said("axis {axis} of it", axis=errors.Position(-1)) == "axis -1 of it"
    assert said("{at:>8}|", at=errors.Element((0, 2), " Im")) == "[1, 3] Im|".rjust(9)
    assert said("{item} is none", item=errors.Item("inputs", 0)) == "`inputs[[1]]` is none"
    assert said("got {x}", x=errors.TypeOf("a")) == "got character"
    assert said("got {x}", x=errors.Given("'a' of type str", "a")) == 'got "a"'
    assert said("got {x}", x=errors.Given("2.5 of type float", 2.5)) == "got 2.5"
    assert said("got {x}", x=errors.Given("None", None)) == "got NULL"
    assert said("{names} stay, {None} and `f(gradops.ops.exp, True)` do not") == (
        "{names} stay, NULL and `f(op_exp, TRUE)` do not"
    )
    assert said("None of the gradops. True story: (3,)") == "None of the gradops. True story: (3)"
    code = errors.Code("`gradops.grad(f)`", "`gradient(f, x)`")
    assert str(gradops.errors.GradopsError("use {code}", code=code)) == "use `gradops.grad(f)`"
    assert said("use {code}", code=code) == "use `gradient(f, x)`"
    assert said("must be {within}", within=errors.Bounds(3, -3)).startswith("must be from 1 to 3, or from -1 to -3")


def test_braces_in_values_are_not_template_fields():
    error = gradops.errors.ArgumentError("no pattern like {x}; got {x:>3}.", x=errors.Given("{y}", "{y}"), y=None)
    assert error.message == "no pattern like {y}; got {y}."


def test_unresponsive_event_loop_is_not_notified_without_limit(monkeypatch):
    asked, results = [], []
    state = {"ident": threading.get_ident(), "_notify": asked.append, "_SIGNAL": None, "_notices": deque()}
    for name, value in state.items():
        monkeypatch.setattr(threads, name, value)

    def ask(numbers):
        worker = threading.Thread(target=lambda: results.extend(threads.call(abs, -n) for n in numbers))
        worker.start()
        while worker.is_alive():
            threads.serve()
            worker.join(0.001)

    ask(range(40))
    assert results == list(range(40))
    assert 0 < len(asked) < 32
    while asked:
        asked.pop()()
    ask([40])
    assert len(asked) == 1


@pytest.mark.parametrize("fails", [False, True])
def test_no_garbage_collection_while_another_thread_runs_for_r(fails, monkeypatch):
    """Finalizers of R objects wait for R's thread, which waits for the interpreter lock: a deadlock."""
    monkeypatch.setattr(threads, "is_current", lambda: threading.current_thread() is threading.main_thread())

    def work():
        if fails:
            raise ValueError("no")
        return gc.isenabled(), threading.current_thread().name

    assert gc.isenabled()
    if fails:
        with pytest.raises(ValueError, match="no"):
            threads.run(work)
    else:
        assert threads.run(work) == (False, "gradops")
    assert gc.isenabled()


def test_questions_about_a_likelihood_by_their_names():
    """R's questions give what a :class:`.Fit` of the same likelihood does."""
    y = np.array([4.1, 5.3, 4.8, 6.0, 5.2])

    def nll(v):
        return gradops.ops.sum(0.5 * ((y - v[0]) / gradops.ops.exp(v[1])) ** 2 + v[1])

    found = fit(lambda p: nll([p["mean"], p["log_sd"]]), {"mean": 4.0, "log_sd": 0.0})
    model = likelihoods.likelihood(nll, np.array([4.0, 0.0]), "mean\x1flog_sd", np.zeros(2), np.arange(2.0))
    ask = jit.direct(model)
    bounds = {"lower": np.full(2, -np.inf), "upper": np.full(2, np.inf)}
    ended = ask(found.theta, question="finished", **bounds)
    np.testing.assert_allclose(ended["covariance"], found.cov_params(), atol=1e-7)
    given = {**bounds, "hessian": found.hessian}
    np.testing.assert_array_equal(
        ask(found.theta, question="conf_int", alpha=0.1, **given), found.conf_int(0.1, "profile")
    )
    np.testing.assert_array_equal(
        ask(found.theta, question="profile", parameter=1.0, alpha=0.1, points=3.0, **given),
        found.profile("log_sd", 0.1, 3),
    )
    variance = ask(found.theta, question="propagated", covariance=found.cov_params(), jacobian=np.array([[2.0, 1.0]]))
    np.testing.assert_allclose(variance[0], found.delta(lambda p: 2 * p["mean"] + p["log_sd"])[1] ** 2)


def test_modules_that_r_asks_for_are_imported_without_a_search_for_similar_names(monkeypatch):
    monkeypatch.setattr(_names, "_suggested", lambda *names: pytest.fail(f"searched for {names}"))
    monkeypatch.delitem(sys.modules, "gradops.interop.r.matrices", raising=False)
    monkeypatch.delitem(vars(r), "matrices", raising=False)
    assert callable(calls.attribute("interop.r.matrices.eigen"))
    with pytest.raises(ModuleNotFoundError, match=r"gradops\.ops\.expp"):
        calls.attribute("ops.expp")


def test_axes_are_annotated_as_axes():
    """R counts axes from 1; the annotation is what has them converted, so one of another type would be off by one."""
    functions = {name: entry.call for name, entry in registry.items() if name == entry.name}
    functions |= {name: getattr(gradops, name) for name in ("scaled_gradient", "scaled_gradient_ext")}
    found = {
        (name, parameter): calls.annotation(kind)
        for name, function in functions.items()
        for parameter, kind in calls.parameters(function).items()
        if parameter.endswith(("axis", "axes"))
    }
    assert len(found) > 70
    others = {key for key, kind in found.items() if kind not in ("Axis", "Axes")}
    assert others == {("tensordot", "axes")}  # converted by a function of its own
