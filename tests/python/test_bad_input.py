"""A call that cannot work raises the same error on every backend, with the op's name."""

from __future__ import annotations

import numpy as np
import pytest
from parity import BACKENDS

import gradops
from gradops import Variable, autodiff, backends, config, functional, ops
from gradops.errors import ArgumentError, ArgumentTypeError, AxisError, GradopsError, ShapeError

A = np.arange(6.0).reshape(2, 3)
NONE, NO_ROWS, HALF = np.zeros(0), np.zeros((0, 3)), np.array([[0.5, 1.0]])

BAD = {
    "add of None": (ArgumentTypeError, "add", lambda c: ops.add(c(A), None)),
    "exp of None": (ArgumentTypeError, "exp", lambda c: ops.exp(None)),
    "sum of None": (ArgumentTypeError, "sum", lambda c: ops.sum(None)),
    "ragged": (ShapeError, "add", lambda c: ops.add(c(A), [[1, 2], [3]])),
    "ragged, of tensors": (ShapeError, "add", lambda c: ops.add(c(A), [c(A[0]), 3.0])),
    "max": (ArgumentError, "max", lambda c: ops.max(c(NONE))),
    "min by axis": (ArgumentError, "min", lambda c: ops.min(c(NO_ROWS), axis=0)),
    "ptp": (ArgumentError, "ptp", lambda c: ops.ptp(c(NONE))),
    "argmax": (ArgumentError, "argmax", lambda c: ops.argmax(c(NO_ROWS))),
    "argmin": (ArgumentError, "argmin", lambda c: ops.argmin(c(NO_ROWS), axis=0)),
    "matmul": (ShapeError, "matmul", lambda c: ops.matmul(c(A), c(A))),
    "matmul with a vector": (ShapeError, "matmul", lambda c: ops.matmul(c(A), c(np.ones(2)))),
    "matmul with a number": (ShapeError, "matmul", lambda c: ops.matmul(c(A), c(np.array(2.0)))),
    "dot": (ShapeError, "dot", lambda c: ops.dot(c(A), c(A))),
    "tensordot": (ShapeError, "tensordot", lambda c: ops.tensordot(c(A), c(A), 1)),
    "tensordot by axes": (ShapeError, "tensordot", lambda c: ops.tensordot(c(A), c(A), ([0], [1]))),
    "reshape": (ShapeError, "reshape", lambda c: ops.reshape(c(A), (4, 2))),
    "reshape with a rest": (ShapeError, "reshape", lambda c: ops.reshape(c(A), (4, -1))),
    "reshape, two unknown": (ArgumentError, "reshape", lambda c: ops.reshape(c(A), (-1, -1))),
    "transpose, one axis": (ArgumentError, "transpose", lambda c: ops.transpose(c(A), (0,))),
    "transpose, twice": (AxisError, "transpose", lambda c: ops.transpose(c(A), (0, 0))),
    "squeeze": (ShapeError, "squeeze", lambda c: ops.squeeze(c(A), 0)),
    "broadcast_to": (ShapeError, "broadcast_to", lambda c: ops.broadcast_to(c(A), (4, 3))),
    "einsum, sizes": (ShapeError, "einsum", lambda c: ops.einsum("ij,jk->ik", c(A), c(A))),
    "einsum, ranks": (ShapeError, "einsum", lambda c: ops.einsum("ijk->i", c(A))),
    "einsum, operands": (ArgumentError, "einsum", lambda c: ops.einsum("ij,jk", c(A))),
    "einsum, output": (ArgumentError, "einsum", lambda c: ops.einsum("ij->kk", c(A))),
    "sum, an axis twice": (AxisError, "sum", lambda c: ops.sum(c(A), axis=(0, -2))),
    "flip, an axis twice": (AxisError, "flip", lambda c: ops.flip(c(A), (0, 0))),
    "take at a half": (ArgumentTypeError, "take", lambda c: ops.take(c(A), c(HALF[0]), 1)),
    "take at a half of a list": (ArgumentTypeError, "take", lambda c: ops.take(c(A), [0.5], 0)),
    "take_along_axis at a half": (
        ArgumentTypeError,
        "take_along_axis",
        lambda c: ops.take_along_axis(c(A), c(HALF), 1),
    ),
    "in_top_k of a half": (ArgumentTypeError, "in_top_k", lambda c: ops.in_top_k(c(HALF[0]), c(A), 1)),
}


@pytest.mark.parametrize("case", BAD)
def test_same_error_everywhere(case):
    kind, name, call = BAD[case]
    messages = set()
    for backend in backends.NAMES:
        convert = backends.lookup(backend).convert
        for make in (convert, lambda value, convert=convert: Variable(convert(value), requires_grad=True)):
            if make is not convert and backend == "torch":
                continue
            with pytest.raises(GradopsError) as caught:
                call(make)
            assert type(caught.value) is kind, (backend, caught.value)
            messages.add(caught.value.message.replace("float32", "float64"))
    assert len(messages) == 1, messages
    assert f"`{name}`" in messages.pop()


@pytest.mark.parametrize("backend", backends.NAMES)
def test_reductions_over_empty_axes(backend):
    x = backends.lookup(backend).convert(NO_ROWS)
    for axis, expected in ((None, -np.inf), (0, np.full(3, -np.inf)), (1, np.zeros(0))):
        np.testing.assert_array_equal(ops.convert_to_numpy(ops.logsumexp(x, axis)), expected)
        np.testing.assert_array_equal(ops.convert_to_numpy(ops.sum(x, axis)), np.exp(expected))


@pytest.mark.parametrize("backend", backends.NAMES)
def test_take_with_a_scalar_tensor_index(backend):
    x, one = (backends.lookup(backend).convert(value) for value in (np.array([10.0, 20.0, 30.0]), np.array(1)))
    taken = ops.take(x, one)
    assert tuple(taken.shape) == () and float(ops.convert_to_numpy(taken)) == 20.0


@pytest.mark.parametrize("library", ["numpy", "torch", "jax", "tensorflow"])
def test_lists_of_tensors_and_variables_are_tensors(library):
    """This holds if no other argument is a tensor and in nested lists; gradients flow back to the list's elements."""

    def leaf(value):
        x = backends.lookup(library).convert(np.asarray(value))
        return x.requires_grad_() if library == "torch" else Variable(x, requires_grad=True)

    a, b, x = leaf(2.0), leaf(3.0), leaf([5.0, 7.0])
    y = ops.sum(ops.matmul([[a, b], [b, 1.0]], x)) + ops.sum(ops.where([True, False], x, [a, a * b]))
    y = y + ops.sum(ops.exp([a])) * 0.0 + ops.sum(ops.concatenate([[a, b], [b, b]]))
    y.backward()
    grads = [np.asarray(v.grad.tolist()) for v in (a, b, x)]
    for got, want in zip(grads, (5 + 3 + 1, 7 + 5 + 2 + 3, [2 + 3 + 1, 3 + 1])):
        np.testing.assert_allclose(got, want)


NOT_NUMBERS = {"objects": np.array([1, 2], object), "dates": np.array(["2020-01-01"] * 2, "datetime64[D]")}


@pytest.mark.parametrize("kind", NOT_NUMBERS)
def test_non_numeric_arrays_are_refused(kind):
    x = NOT_NUMBERS[kind]
    for name in "add subtract multiply power matmul dot equal maximum".split():
        with pytest.raises(ArgumentTypeError, match=f"`{name}`"):
            getattr(ops, name)(x, x)
    for call in (
        lambda: ops.sum(x),
        lambda: ops.norm(x),
        lambda: ops.cast(x, "float64"),
        lambda: ops.where(True, x, x),
    ):
        with pytest.raises(ArgumentTypeError):
            call()


@pytest.mark.parametrize("backend", BACKENDS)
def test_element_counts_beyond_int64(backend):
    """XLA would abort the process."""
    with config.backend_scope(backend):
        for make in (
            lambda: ops.zeros((2**40, 2**40)),
            lambda: ops.ones((2**40, 2**40)),
            lambda: ops.full((2**40, 2**40), 2.0),
            lambda: ops.eye(2**40),
            lambda: ops.tri(2**40),
            lambda: ops.broadcast_to(ops.convert_to_tensor(1.0), (2**40, 2**40)),
        ):
            with pytest.raises(GradopsError):
                make()


X = np.array([0.5, -1.0, 2.0])


def test_functions_with_the_wrong_number_of_arguments():
    for call in (
        lambda f: ops.map(lambda: 1, X),
        lambda f: ops.scan(f, 0.0, X),
        lambda f: ops.associative_scan(f, X),
        lambda f: ops.fori_loop(0, 2, f, 0.0),
    ):
        with pytest.raises(ArgumentTypeError, match=r"must be a function of (one argument|2 arguments)\."):
            call(lambda x: x)
    np.testing.assert_array_equal(ops.associative_scan(np.add, X), np.cumsum(X))


@pytest.mark.parametrize("name", ["jacobian", "hessian", "vjp", "jvp", "hvp", "vhp"])
def test_strict_must_be_a_boolean(name):
    for value in ([], "yes", np.zeros((0, 2)), None):
        with pytest.raises(ArgumentTypeError, match=f"`{name}`: `strict` must be True or False"):
            getattr(functional, name)(ops.sum, X, strict=value)


ARRAY = np.ones(2)
LEAF = Variable(np.ones(2), requires_grad=True)
WRONG = {
    "to_dot": (lambda: autodiff.to_dot(LEAF * 2.0, ["x"]), "params"),
    "to_dot of an array": (lambda: autodiff.to_dot(LEAF * 2.0, ARRAY), "params"),
    "draw": (lambda: autodiff.draw(LEAF * 2.0, 3), "path"),
    "gradcheck": (lambda: autodiff.gradcheck(None, (ARRAY,)), "func"),
    "gradcheck eps": (lambda: autodiff.gradcheck(ops.sin, (ARRAY,), eps="a"), "eps"),
    "gradcheck fast_mode": (lambda: autodiff.gradcheck(ops.sin, (ARRAY,), fast_mode=ARRAY), "fast_mode"),
    "gradgradcheck": (lambda: autodiff.gradgradcheck(1, (ARRAY,)), "func"),
    "gradgradcheck atol": (lambda: autodiff.gradgradcheck(ops.sin, (ARRAY,), atol=[None]), "atol"),
    "ShapeDtypeStruct": (lambda: gradops.functional.ShapeDtypeStruct(1j), "shape"),
    "checkpoint": (lambda: gradops.checkpoint(ops.exp, "dots"), "policy"),
    "checkpoint names": (lambda: gradops.checkpoint(ops.exp, ["a"]), "policy"),
    "checkpoint_name": (lambda: gradops.checkpoint_name(ARRAY, 1), "name"),
    "save_only_these_names": (lambda: gradops.save_only_these_names("a", 1), "names"),
    "checkpoint_policy": (lambda: gradops.checkpoint_policy("a"), "primitive"),
    "root": (lambda: gradops.functional.root(3, 1.0), "f"),
    "root tol": (lambda: gradops.functional.root(lambda x: x, 1.0, tol="a"), "tol"),
    "root x0": (lambda: gradops.functional.root(lambda x: x, "a"), "x0"),
    "linear_solve tol": (lambda: gradops.functional.linear_solve(lambda x: x, 1.0, tol=None), "tol"),
    "linear_solve method": (lambda: gradops.functional.linear_solve(lambda x: x, 1.0, method="lu"), "method"),
    "grad by a name": (lambda: gradops.grad(lambda x: x, "y"), "argnums"),
    "fixed_point tol": (lambda: gradops.functional.fixed_point(lambda x: x * 0.5, 1.0, tol=None), "tol"),
    "root theta": (lambda: gradops.functional.root(lambda x, a: x - a, 1.0, object()), "theta"),
    "requires_grad": (lambda: Variable(ARRAY, requires_grad=ARRAY), "requires_grad"),
    "requires_grad_": (lambda: Variable(ARRAY).requires_grad_(ARRAY), "requires_grad"),
    "Parameter": (lambda: gradops.Parameter(ARRAY, requires_grad=ARRAY), "requires_grad"),
    "inference_mode": (lambda: autodiff.inference_mode(ARRAY), "mode"),
    "set_grad_enabled": (lambda: autodiff.set_grad_enabled(ARRAY), "mode"),
    "set_detect_anomaly": (lambda: autodiff.set_detect_anomaly(True, ARRAY), "check_nan"),
    "set_floatx": (lambda: gradops.config.set_floatx(ARRAY), "dtype"),
    "set_check": (lambda: gradops.config.set_check(ARRAY), "mode"),
    "set_lost_gradients": (lambda: gradops.config.set_lost_gradients(ARRAY), "action"),
    "Texts": (lambda: gradops.text.Texts(3), "values"),
    "join": (lambda: gradops.text.join(3), "texts"),
    "Descent": (lambda: gradops.text.Descent(np.array(2), print), "params"),
}


@pytest.mark.parametrize("case", WRONG)
def test_error_names_the_wrong_argument(case):
    call, argument = WRONG[case]
    with pytest.raises((ArgumentError, ArgumentTypeError)) as caught:
        call()
    assert caught.value.argument == argument
    assert autodiff.is_grad_enabled()


LEAF = gradops.Variable(np.array([1.0, 2.0]), requires_grad=True)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: gradops.autodiff.grad("a", LEAF, [1.0], is_grads_batched=True), "outputs"),
        (lambda: gradops.autodiff.grad([], LEAF, [1.0], is_grads_batched=True), "outputs"),
        (lambda: gradops.autodiff.grad(LEAF * LEAF, LEAF, is_grads_batched=np.ones(2)), "is_grads_batched"),
        (lambda: gradops.autodiff.register_multi_grad_hook(0, print), "tensors"),
        (lambda: gradops.text.Said("a", files=np.ones(2)), "files"),
    ],
)
def test_wrong_settings_of_the_tape_and_of_text_are_named(call, argument):
    with pytest.raises(GradopsError) as caught:
        call()
    assert caught.value.argument == argument


def test_dtypes_of_text_do_not_cast():
    with pytest.raises(GradopsError):
        gradops.array_api.can_cast(np.array(["a"]), "float32")
