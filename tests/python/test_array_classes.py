"""Subclasses of NumPy arrays: classes with their own arithmetic are refused, others are treated as arrays."""

import array
import warnings

import numpy as np
import pytest
from parity import BACKENDS, tensors
from test_options import FIRST

import gradops
from gradops import Variable, autodiff, config, functional, grad, jit, ops
from gradops.errors import ArgumentError, ArgumentTypeError, GradopsError

everywhere = pytest.mark.parametrize("backend", BACKENDS)


class Scaled(np.ndarray):
    """Numbers with a unit, as in astropy and unyt."""

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        raise AssertionError("its numbers alone are not what it is")

    @property
    def value(self):
        return np.asarray(self)


class Named(np.ndarray):
    """An array with a name and ordinary arithmetic."""

    name = "x"


MASKED = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])
REFUSED = [MASKED, np.ma.array([1.0, 2.0, 3.0]), np.matrix([[1.0, 2.0, 3.0]]), np.ones(3).view(Scaled)]


def memory(tmp_path, numbers) -> np.memmap:
    """Return an array on disk."""
    mapped = np.memmap(tmp_path / "numbers", np.asarray(numbers).dtype, "w+", shape=np.shape(numbers))
    mapped[:] = numbers
    return mapped


def masked(value):
    """Return the value with one element masked, also inside lists; None if there is no array."""
    if isinstance(value, np.ndarray) and value.size:
        mask = np.zeros(value.shape, bool)
        mask.flat[0] = True
        return np.ma.array(value, mask=mask)
    if isinstance(value, list) and any(isinstance(item, np.ndarray) for item in value):
        return [new if (new := masked(item)) is not None else item for item in value]
    return None


def taken(name: str, backend: str, inner=lambda x: x) -> list[str]:
    """Return an op's arguments whose masked elements were silently used as numbers, next to a backend's tensors."""
    case = FIRST[name]
    arguments = case.examples(3)[-1]
    found = []
    for argument, value in arguments.items():
        given = {k: inner(tensors(v, backend)) for k, v in arguments.items()}
        given[argument] = masked(value)
        if given[argument] is not None:
            try:
                with config.backend_scope(backend), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    case.function()(**given)
                found.append(argument)
            except GradopsError:
                pass
    return found


@pytest.mark.short_cases(0, "jax", "tensorflow")
@everywhere
def test_no_op_uses_masked_elements_as_numbers(backend):
    wrong = {
        name: found for name, case in FIRST.items() if backend not in case.skip and (found := taken(name, backend))
    }
    assert not wrong


def test_no_op_uses_masked_elements_next_to_variables():
    def variable(x):
        return Variable(x, requires_grad=x.dtype.kind in "fc") if isinstance(x, np.ndarray) else x

    wrong = {name: found for name in FIRST if (found := taken(name, "numpy", variable))}
    assert not wrong


@pytest.mark.parametrize("refused", REFUSED, ids=lambda x: type(x).__name__)
@everywhere
def test_arrays_with_their_own_arithmetic_are_refused(backend, refused):
    """In the tape's rules ``np.matrix`` would turn products into matrix products: a wrong gradient of sum(x * x)."""
    with config.backend_scope(backend):
        x = ops.ones((3,))
        calls = [
            lambda: ops.exp(refused),
            lambda: ops.multiply(x, refused),
            lambda: ops.array([refused, refused]),
            lambda: ops.stack([x, refused]),
            lambda: grad(lambda x: ops.sum(x * x))(refused),
            lambda: grad(lambda x: ops.sum(ops.multiply(refused, x)))(x),
            lambda: grad(lambda x: ops.sum(x), argnums=0)({"a": refused}),
            lambda: functional.jacobian(lambda x: x * 2, refused),
            lambda: functional.vjp(lambda x: x * 2, x, refused),
            lambda: functional.hvp(lambda x: ops.sum(x * x), x, refused),
            lambda: jit(lambda x: x * 2)(refused),
            lambda: gradops.to_backend(refused, backend),
        ]
        for i, call in enumerate(calls):
            with pytest.raises(ArgumentTypeError):
                pytest.fail(f"call {i} gave {call()}")


@pytest.mark.parametrize("refused", REFUSED, ids=lambda x: type(x).__name__)
def test_arrays_with_their_own_arithmetic_are_refused_by_variables(refused):
    v = Variable(np.ones(3), requires_grad=True)
    w, of_integers = v * 1, Variable(np.arange(3))
    calls = [
        lambda: Variable(refused),
        lambda: v * refused,
        lambda: np.ma.multiply(refused, v) if isinstance(refused, Scaled) else refused * v,
        lambda: refused.__radd__(v) if isinstance(refused, Scaled) else refused + v,
        lambda: v**refused,
        lambda: v @ refused.T,
        lambda: np.add(v, refused),
        lambda: np.concatenate([np.reshape(v, (1, 3)), refused.reshape(1, 3)]),
        lambda: v > refused,
        lambda: w.__iadd__(refused),
        lambda: w.__setitem__(slice(None), refused),
        lambda: v[refused > 1] if not isinstance(refused, Scaled) else Variable(refused),
        lambda: setattr(v, "grad", refused),
        lambda: setattr(of_integers, "data", refused),
        lambda: (v * 2).backward(refused),
        lambda: autodiff.grad(v * 2, v, refused),
        lambda: grad(lambda x: ops.sum(gradops.custom_gradient(lambda x: (x * 2, lambda g: refused))(x)))(np.ones(3)),
    ]
    for i, call in enumerate(calls):
        with pytest.raises(ArgumentTypeError):
            pytest.fail(f"call {i} gave {call()}")
    assert v.grad is None


def test_numpy_masked_array_functions_lose_no_gradient():
    """``np.ma`` reads the values of its arrays from ``_data``; a variable must have no attribute of that name."""
    v = Variable(np.ones(3), requires_grad=True)
    for call in (np.ma.add, np.ma.multiply, lambda x, y: np.ma.sum(y), lambda x, y: np.ma.getdata(y), np.ma.dot):
        with pytest.raises(ArgumentTypeError, match="is not turned into a NumPy array"):
            call(MASKED, v)


def test_error_names_the_conversion():
    with pytest.raises(ArgumentTypeError, match=r"`exp`: `x` .* got a MaskedArray.*\n?.*filled"):
        ops.exp(MASKED)
    with pytest.raises(ArgumentTypeError, match=r"got a matrix.*\n?.*np\.asarray"):
        ops.exp(np.matrix([[1.0]]))
    with pytest.raises(ArgumentTypeError, match=r"got MaskedArray.*\n?.*filled"):
        grad(ops.sum)(MASKED)


@pytest.mark.parametrize("kind", ["memmap", "subclass"])
@everywhere
def test_other_subclasses_are_arrays(backend, kind, tmp_path):
    numbers = np.array([1.0, 2.0, 3.0])
    x = memory(tmp_path, numbers) if kind == "memmap" else numbers.view(Named)
    with config.backend_scope(backend):
        tensor = ops.array(numbers)
        for given in (ops.exp(x), gradops.stop_gradient(ops.exp(x)), jit(lambda x: ops.exp(x))(x)):
            np.testing.assert_allclose(np.asarray(given), np.exp(numbers))
            assert type(given) is not type(x)
        np.testing.assert_allclose(np.asarray(ops.multiply(tensor, x)), numbers**2)
        np.testing.assert_allclose(np.asarray(grad(lambda t: ops.sum(ops.multiply(t, x)))(tensor)), numbers)
        assert ops.dtype(x) == "float64" and ops.shape(x) == (3,) and ops.is_tensor(x)
    np.testing.assert_allclose(grad(lambda t: ops.sum(t * t * x))(x), 2 * numbers**2)
    v = Variable(numbers, requires_grad=True)
    (x * v + v * x).backward(x)
    np.testing.assert_allclose(v.grad.numpy(), 2 * numbers**2)


def test_writing_values_to_variables():
    """NumPy-style writes to a variable are recorded, and lists that hold variables keep their gradients."""
    v = Variable(np.array([1.0, 2.0, 3.0]), requires_grad=True)
    w = v * 1
    w[:2] = [v[2], 5.0]
    assert w.tolist() == [3.0, 5.0, 3.0]
    ops.sum(w * w).backward()
    np.testing.assert_allclose(v.grad.numpy(), [0, 0, 2 * 3 + 2 * 3])
    w = v * 1
    w[:2] = range(2)
    w[2:] = array.array("d", [7.0])
    assert w.tolist() == [0.0, 1.0, 7.0]
    for wrong in ("a", None, {}, object(), np.array(["a"]), np.array([None]), np.datetime64("2020-01-01")):
        with pytest.raises(ArgumentTypeError, match="`value`"):
            w[0] = wrong
    with pytest.raises(ArgumentTypeError, match="`key` must be whole numbers"):
        w["a"] = 0.0
    with pytest.raises(IndexError, match="`set_item`: `key`"):
        w[3] = 0.0


@pytest.mark.parametrize("wrong", ["a", {}, object(), [1.0, [2.0]]], ids=["str", "dict", "object", "ragged"])
def test_invalid_upstream_gradients(wrong):
    v = Variable(np.ones(3), requires_grad=True)
    for call in (
        lambda: (v * 2).backward(wrong),
        lambda: autodiff.grad(v * 2, v, [wrong]),
        lambda: setattr(v, "grad", wrong),
    ):
        with pytest.raises(ArgumentTypeError, match="grad"):
            call()


@pytest.fixture
def pd():
    return pytest.importorskip("pandas")


def test_data_frames_with_variables(pd):
    x = np.array([0.5, 1.5, 2.5])
    s, frame = pd.Series([1.0, 2.0, 3.0], index=[5, 6, 7]), pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    for f, known in (
        (lambda x: np.sum(s * x), s.to_numpy()),
        (lambda x: np.sum(x * s), s.to_numpy()),
        (lambda x: (s - x).sum(), -np.ones(3)),
        (lambda x: np.sum((s / x) * 2), -2 * s.to_numpy() / x**2),
        (lambda x: np.sum(np.where(s > 1, x, 0.0)), [0, 1, 1]),
        (lambda x: np.sum(frame * x[0]), [10, 0, 0]),
        (lambda x: np.sum((frame["b"] - x[0] - x[1] * frame["a"]) ** 2), [-3.0, -4.0, 0.0]),
        (lambda x: np.dot(frame, x[:2]).sum(), [3, 7, 0]),
        (lambda x: ops.sum(x[s.index - 5]), [1, 1, 1]),
    ):
        np.testing.assert_allclose(grad(f)(x), known)
        np.testing.assert_allclose(grad(jit(f))(x), known)
        np.testing.assert_allclose(jit(grad(f))(x), known)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, first, second: ops.dot(x * first, second),
        lambda x, first, second: ops.sum(ops.where(first > 0, x * second, 0.0) * first.to_numpy()),
        lambda x, first, second: ops.sum(ops.matmul(ops.stack([x * first, x]), second)) - ops.dot(x, second),
    ],
    ids=["dot", "where", "matmul"],
)
def test_pandas_labels_do_not_align_gradients(pd, f):
    """The tape must multiply gradients by position; pandas would align their rows by label."""
    first, second = pd.Series([1.0, 2.0, 3.0]), pd.Series([10.0, 20.0, 30.0], index=[2, 1, 0])
    x, known = np.ones(3), np.array([10.0, 40.0, 90.0])

    def g(x):
        return f(x, first, second)

    for gradient in (grad(g), jit(grad(g)), grad(jit(g))):
        np.testing.assert_allclose(gradient(x), known)
    product = functional.hvp(lambda x: g(x * x), x, np.ones(3))[1]
    np.testing.assert_allclose(product, 2 * known)


SERIES = [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "f, aligned",
    [
        (lambda x, s, frame: (s[1:] - x[0] * s[:-1]).sum(), False),
        (lambda x, s, frame: (x[0] * s[1:] - s[:-1]).sum(), False),
        (lambda x, s, frame: (s[1:] - np.exp(x[0] * s[:-1])).sum(), False),
        (lambda x, s, frame: (x[1] * s[1:] - x[0] * s[:-1]).sum(), False),
        (lambda x, s, frame: ((x[1] * s[1:] + 1) ** 2 / np.sqrt(x[0] * s[:-1] + 2)).sum(), False),
        (lambda x, s, frame: (x * s * s.iloc[::-1]).sum(), False),
        (lambda x, s, frame: (frame[["a", "b"]] * x[:2] * frame[["b", "a"]]).sum(), False),
        (lambda x, s, frame: ((x[0] * s)[:2] * s[1:]).sum(), False),
        (lambda x, s, frame: (s[1:] - np.exp(x[0] * s[1:])).sum(), True),
        (lambda x, s, frame: (x[1] * s[1:] - x[0] * s[1:]).sum(), True),
        (lambda x, s, frame: (x * s).sum() + (x * s.iloc[::-1]).sum(), True),
        (lambda x, s, frame: (x[1] * s[1:]).sum() * (x[0] * s[:-1]).sum(), True),
        (lambda x, s, frame: (s[1:].to_numpy() - x[0] * s[:-1]).sum(), True),
        (lambda x, s, frame: ((x * s)[1] * s[1:]).sum(), True),
        (lambda x, s, frame: (frame[["a", "b"]] * x[:2] * frame[["a", "b"]]).sum(), True),
        (lambda x, s, frame: sum((np.exp(d["a"] * x[k]) * d["b"]).sum() for k, d in frame.groupby("g")), True),
        (lambda x, s, frame: sum(((d["a"] * x[0] - x[1]) * d["b"]).sum() for _, d in frame.groupby("g")), True),
    ],
)
def test_operations_that_pandas_would_align_raise(pd, f, aligned):
    """Equal labels give pandas' value; ``s[1:] - x * s[:-1]`` raises, as positions would give another number."""
    s, frame = pd.Series(SERIES), pd.DataFrame({"g": [0, 0, 1], "a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0]})
    x = np.array([0.3, 0.7, 1.1])

    def g(x):
        return f(x, s, frame)

    calls = [
        lambda: g(Variable(x, requires_grad=True)).item(),
        lambda: gradops.value_and_grad(g)(x)[0],
        lambda: jit(g)(x),
        lambda: gradops.value_and_grad(jit(g))(x)[0],
        lambda: jit(gradops.value_and_grad(g))(x)[0],
    ]
    for call in calls:
        if aligned:
            np.testing.assert_allclose(call(), np.sum(np.asarray(g(x))))
        else:
            with pytest.raises(ArgumentError, match="labels"):
                call()


def test_missing_values_and_non_numeric_series_of_pandas(pd):
    for dtype in ("Int64", "Float64", "float64"):
        assert np.isnan(ops.exp(pd.Series([1, None], dtype=dtype))).tolist() == [False, True]
    for wrong in (
        pd.Series(["a"], dtype="category"),
        pd.Series(pd.to_datetime(["2020-01-01"])),
        pd.Series(pd.to_timedelta([1])),
        pd.array([True, None], dtype="boolean"),
        pd.DataFrame({"a": [1.0], "b": ["x"]}),
    ):
        with pytest.raises(ArgumentTypeError):
            ops.exp(wrong)


def test_data_frames_lose_no_gradient(pd):
    v = Variable(np.ones(3), requires_grad=True)
    s, frame = pd.Series([1.0, 2.0, 3.0]), pd.DataFrame(np.ones((2, 3)))
    for call in (lambda: pd.Series(v), lambda: pd.DataFrame({"a": v}), lambda: s.dot(v), lambda: frame @ v):
        with pytest.raises(ArgumentTypeError, match="is not turned into a NumPy array"):
            call()


def _table(pd):
    return pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [4.0, 5.0, 6.0]}, index=[10, 11, 12])


def _written(pd, x):
    table = _table(pd)
    table.loc[10, "a"] = x[0]
    return ops.sum(table.to_numpy()) * x[1]


OF_PANDAS = {
    "sum": lambda pd, x: pd.Series(list(x)).sum() * x[0],
    "cumsum": lambda pd, x: pd.Series(list(x)).cumsum().iloc[-1] * x[0],
    "diff": lambda pd, x: pd.Series(list(x)).diff().iloc[-1] * x[0],
    "quantile": lambda pd, x: pd.Series(list(x)).quantile(0.5) * x[0],
    "fillna": lambda pd, x: ops.sum(ops.stack(list(pd.Series([1.0, np.nan]).fillna(x[0])))),
    "np.dot": lambda pd, x: ops.sum(np.dot(_table(pd), x[:2])),
    "@": lambda pd, x: ops.sum(_table(pd) @ x[:2]),
    "dot": lambda pd, x: ops.sum(_table(pd)["a"].dot(x)),
    "rolling": lambda pd, x: ops.sum(np.asarray(pd.Series(list(x)).rolling(2).mean())[1:]) * x[0],
    "expanding": lambda pd, x: ops.sum(np.asarray(pd.Series(list(x)).expanding().mean())) * x[0],
    "ewm": lambda pd, x: ops.sum(np.asarray(pd.Series(list(x)).ewm(2).mean())) * x[0],
    "rolling apply": lambda pd, x: (
        ops.sum(_table(pd)["a"].rolling(2).apply(lambda c: ops.sum(c.to_numpy() * x[:2])).to_numpy()[1:]) * x[0]
    ),
    "transform": lambda pd, x: ops.sum(_table(pd).transform(lambda c: c * x)),
    "grouped": lambda pd, x: ops.sum(_table(pd).groupby([0, 0, 1]).transform(lambda c: c * x[0])),
    "agg": lambda pd, x: ops.sum(_table(pd).agg(lambda c: c * x)),
    "mean": lambda pd, x: pd.Series(list(x)).mean() * x[0],
    "std": lambda pd, x: pd.Series(list(x)).std() * x[0],
    "cov": lambda pd, x: pd.DataFrame({"a": list(x), "b": [1.0, 2.0, 4.0]}).cov().iloc[0, 1],
    "astype": lambda pd, x: ops.sum(pd.Series(list(x)).astype(float).to_numpy()) * x[0],
    "loc": _written,
    "where": lambda pd, x: ops.sum(_table(pd)["a"].where(_table(pd)["a"] > 1, x[0])),
    "assign": lambda pd, x: ops.sum(_table(pd).assign(c=x).to_numpy()),
}


@pytest.mark.parametrize("name", OF_PANDAS)
def test_pandas_functions_keep_the_gradient_or_raise(pd, name):
    """The error is gradops', not pandas' own, such as "No numeric types to aggregate"."""
    f, x = OF_PANDAS[name], np.array([1.0, 2.0, 4.0])
    keeps = list(OF_PANDAS).index(name) < list(OF_PANDAS).index("@")
    if not keeps:
        for _ in range(2):
            with pytest.raises(GradopsError, match=r"no gradient goes through it|ops\.stack|`multiply`"):
                grad(lambda z: f(pd, z))(x)
        return
    steps = 1e-6 * np.eye(3)
    known = [(float(f(pd, x + step)) - float(f(pd, x - step))) / 2e-6 for step in steps]
    np.testing.assert_allclose(grad(lambda z: f(pd, z))(x), known, atol=1e-6)
