"""``gradops.array_api`` against ``array_api_strict``: its names, signatures, values on four libraries, and gradients.

The cases are made from the signatures of ``array_api_strict``: a new function or keyword is called, or fails for lack
of a case. ``tools/array_api_suite`` runs the standard's own suite.
"""

from __future__ import annotations

import inspect
import pickle

import array_api_strict as strict
import numpy as np
import pytest
from parity import BACKENDS, tensors

import gradops
from gradops import Variable, array_api, config, ops
from gradops._tree import flatten, unflatten
from gradops.errors import ArgumentError, GradientError

NOT_OF_THE_STANDARD = {"Device", "ArrayAPIStrictFlags", "fft", "linalg"}
FUNCTIONS = {
    f"{place}{name}": getattr(module, name)
    for place, module in (("", strict), ("linalg.", strict.linalg), ("fft.", strict.fft))
    for name in module.__all__
    if callable(getattr(module, name))
    and not name.endswith("_flags")
    and name not in NOT_OF_THE_STANDARD
    and not name.startswith("__")
}
X = np.array([[0.3, 0.7, 0.45], [0.6, 0.2, 0.9], [0.8, 0.35, 0.15]])
Y = X[::-1] * 1.3 + 1.1
POSITIVE = X @ X.T + np.eye(3)
WHOLE = np.array([[3, 1, 2], [5, 0, 3]])
LINE = X[0]
ARGUMENTS = {
    "acosh": (Y,),
    "asarray": ([[0.5, 2.0], [1.0, 3.0]],),
    "arange": (1.0, 4.0, 0.5),
    "astype": (X, "float32"),
    "broadcast_arrays": (X, LINE),
    "broadcast_shapes": ((3, 1), (4,)),
    "broadcast_to": (LINE, (2, 3)),
    "clip": (X, 0.3, 0.6),
    "empty": ((0, 2),),
    "empty_like": (X[:0],),
    "eye": (3, 4),
    **dict.fromkeys(["can_cast", "result_type"], ("int8", "int16")),
    **dict.fromkeys(["concat", "stack"], ([X, Y],)),
    **dict.fromkeys(["cumulative_prod", "cumulative_sum"], (LINE,)),
    **dict.fromkeys(["fft.fftfreq", "fft.rfftfreq"], (5,)),
    **dict.fromkeys(["linalg.cholesky", "linalg.eigh", "linalg.eigvalsh"], (POSITIVE,)),
    **dict.fromkeys(["ones", "zeros"], ((2, 3),)),
    **dict.fromkeys(["unique_counts", "unique_inverse", "unique_values"], (np.array([0.5, 0.2, 0.7]),)),
    **dict.fromkeys((f"fft.{name}" for name in "fft ifft fftn ifftn hfft irfft irfftn".split()), (X + 1j * X.T,)),
    "finfo": ("float32",),
    "iinfo": ("int16",),
    "full": ((2, 3), 0.5),
    "full_like": (X, 0.5),
    "imag": (X + 1j * Y,),
    "isdtype": ("int16", "integral"),
    "isin": (WHOLE, np.array([1, 5])),
    "linalg.cross": (X, Y),
    "linalg.matrix_power": (X, 3),
    "linalg.outer": (LINE, Y[1]),
    "linspace": (0.5, 2.0, 5),
    "meshgrid": (LINE, Y[0]),
    "moveaxis": (X[None], 0, 2),
    "permute_dims": (X[None], (2, 0, 1)),
    "repeat": (X, 2),
    "reshape": (X, (1, 9)),
    "roll": (X, 1),
    "searchsorted": (np.array([0.1, 0.4, 0.6]), X),
    "squeeze": (X[None], 0),
    "take": (X, np.array([2, 0])),
    "take_along_axis": (X, np.array([[2, 0], [1, 1], [0, 2]])),
    "tile": (X, (2, 1)),
    "where": (X > 0.4, X, Y),
}
"""Arguments of the functions that do not take one or two arrays."""
NEEDED = {"expand_dims": {"axis": 1}, "take": {"axis": 1}}
KEYWORDS: dict = {
    **dict.fromkeys(["copy", "descending", "include_initial", "keepdims", "upper"], True),
    **dict.fromkeys(["endpoint", "full_matrices", "stable"], False),
    **dict.fromkeys(["correction", "k", "offset", "ord"], 1),
    **dict.fromkeys(["append", "prepend"], X[:, :1]),
    **dict.fromkeys(["invert", "s"], None),  # array_api_strict 2.6 omits `invert`
    "axes": {"tensordot": 1, "linalg.tensordot": ((0,), (1,)), "": (0,)},
    "axis": {"squeeze": None, "take_along_axis": None, "vecdot": -2, "linalg.vecdot": -2, "linalg.cross": -2, "": 0},
    "d": 0.5,
    "dtype": {**dict.fromkeys(["arange", "astype", "fft.fftfreq", "linalg.trace"]), "": "float32"},
    "indexing": "ij",
    "mode": "complete",
    "n": {"diff": 2, "": 4},
    "norm": "ortho",
    "rtol": 1e-3,
    "side": "right",
    "sorter": np.array([0, 1, 2]),
}
"""Non-default values of keywords; by function where they differ, None to skip one."""
LEFT_OUT = {"device", "max", "min", "stop", "step", "n_cols", "repetitions", "api_version"}
"""Keywords with only one value, and keywords in ARGUMENTS."""
UP_TO_SIGNS = {"linalg.eigh", "linalg.qr", "linalg.svd"}


def calls(name: str) -> list:
    """Return arguments and keywords: the function's defaults, and each keyword with another value."""
    parameters = inspect.signature(FUNCTIONS[name]).parameters.values()
    count = sum(p.default is p.empty and p.kind is p.POSITIONAL_ONLY for p in parameters)
    kind = WHOLE if name.startswith("bitwise_") else X > 0.4 if name.startswith("logical_") else X
    other = WHOLE if name.startswith("bitwise_") else Y < 2 if name.startswith("logical_") else Y
    arguments, needed = ARGUMENTS.get(name, (kind, other)[:count]), NEEDED.get(name, {})
    found = [(arguments, needed)]
    for p in parameters:
        if p.default is p.empty or p.name in LEFT_OUT:
            continue
        value = KEYWORDS[p.name]  # a KeyError means a keyword without a case
        value = value.get(name, value[""]) if isinstance(value, dict) else value
        if value is not None:
            found.append((arguments, {**needed, p.name: value}))
    return found


def call(module, name: str, arguments, keywords, convert):
    """Call a function of a namespace with its own arrays and dtypes."""

    def given(value):
        if isinstance(value, str) and hasattr(module, value) and isinstance(getattr(array_api, value), _DTYPE):
            return getattr(module, value)
        return [given(x) for x in value] if isinstance(value, list) else convert(value)

    function = module
    for part in name.split("."):
        function = getattr(function, part)
    return function(*map(given, arguments), **{k: given(v) for k, v in keywords.items()})


_DTYPE = type(array_api.float32)


def of(library):
    """Return a converter from NumPy arrays to a library's arrays; other values stay."""
    return lambda value: library(value) if isinstance(value, np.ndarray) else value


def parts(result) -> list:
    """Return the arrays of a result as NumPy arrays; other values unchanged."""
    if hasattr(result, "bits"):
        return [getattr(result, limit) for limit in ("bits", "max", "min")]
    if isinstance(result, (tuple, list)):
        return [x for part in result for x in parts(part)]
    if isinstance(result, type(strict.asarray(0))):
        return [np.asarray(result._array)]
    return [ops.convert_to_numpy(result)] if ops.is_tensor(result) else [result]


def test_every_name_of_the_standard_exists():
    names = {*strict.__all__} - NOT_OF_THE_STANDARD | {"fft", "linalg"}
    names -= {"__version__"} | {name for name in names if name.endswith("_flags")}
    assert not [name for name in sorted(names) if not hasattr(array_api, name)]
    for module in ("linalg", "fft"):
        assert {*getattr(strict, module).__all__} == {*getattr(array_api, module).__all__}
    assert array_api.__array_api_version__ == "2024.12"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signatures_match_the_standard(name):
    function = array_api
    for part in name.split("."):
        function = getattr(function, part)
    ours = inspect.signature(function).parameters
    for p in inspect.signature(FUNCTIONS[name]).parameters.values():
        if p.kind is p.KEYWORD_ONLY and p.name != "device":
            assert p.name in ours, p.name


@pytest.mark.short_cases(20, "jax")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_match_array_api_strict(name, backend):
    with config.backend_scope(backend):
        for arguments, keywords in calls(name):
            want = parts(call(strict, name, arguments, keywords, of(strict.asarray)))
            got = call(array_api, name, arguments, keywords, of(lambda x: tensors(x, backend)))
            of_library = [x for x in flatten(got)[0] if ops.is_tensor(x)]
            assert all(gradops.backends.backend_of(x).name == backend for x in of_library)
            assert len(parts(got)) == len(want)
            for x, y in zip(parts(got), want):
                if not isinstance(y, np.ndarray):
                    assert x == y or str(x).endswith(str(y).rpartition(".")[2]), keywords
                    continue
                assert x.dtype == y.dtype, keywords
                x, y = (abs(x), abs(y)) if name in UP_TO_SIGNS else (x, y)
                tolerance = 1e-5 if y.dtype in ("float32", "complex64") else 1e-12
                np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance, err_msg=str(keywords))


def _places(arguments) -> list[int]:
    """Return the positions of floating arrays among the leaves of arguments."""
    return [i for i, x in enumerate(flatten(list(arguments))[0]) if isinstance(x, np.ndarray) and x.dtype.kind in "fc"]


def _weighted(result):
    """Return a weighted sum of a result's floating parts."""
    total = 0.0
    for x in flatten(result)[0]:
        if ops.is_tensor(x) and array_api.isdtype(x.dtype, ("real floating", "complex floating")):
            x = array_api.real(x) + array_api.imag(x) * 0.7 if array_api.isdtype(x.dtype, "complex floating") else x
            x = array_api.astype(x, array_api.float64)
            weights = array_api.reshape(array_api.arange(ops.size(x), device=x.device) * 0.3 + 0.5, x.shape)
            total = total + array_api.sum(x * weights)
    return total


DIFFERENTIATED = [name for name in FUNCTIONS if any(_places(arguments) for arguments, _ in calls(name))]
COUNTED = {"unique_all", "unique_counts", "unique_inverse", "unique_values", "nonzero"}
"""Functions whose result size depends on values: a compiled function refuses some of them."""


@pytest.mark.parametrize(
    "name", [name for name in DIFFERENTIATED if name not in ("astype", "from_dlpack", "nextafter")]
)
def test_gradients_match_finite_differences(name):
    """Directional derivatives of floating results by floating arguments, also compiled and on PyTorch."""
    for arguments, keywords in calls(name):
        leaves, form = flatten(list(arguments))
        places = _places(arguments)
        if keywords.get("dtype") == "float32":
            continue

        def f(xs):
            given = list(leaves)  # noqa: B023
            for i, x in zip(places, xs):  # noqa: B023
                given[i] = x
            return _weighted(call(array_api, name, unflatten(form, given), keywords, lambda x: x))  # noqa: B023

        xs = [leaves[i] for i in places]
        directions = [np.cos(np.arange(x.size) * 1.7).reshape(x.shape) for x in xs]
        directions = [d * (1 + 0.5j) if x.dtype.kind == "c" else d for x, d in zip(xs, directions)]
        ahead, behind = ([x + h * d for x, d in zip(xs, directions)] for h in (1e-6, -1e-6))
        want = (f(ahead) - f(behind)) / 2e-6
        if not ops.is_tensor(f(xs)):  # no floating part
            continue
        slopes = [gradops.grad(f)(xs), gradops.grad(f)(tensors(xs, "torch"))]
        slopes += [] if name in COUNTED else [gradops.jit(gradops.grad(f))(xs)]
        for slope in slopes:
            got = sum(float(np.real(np.conj(ops.convert_to_numpy(g)) * d).sum()) for g, d in zip(slope, directions))
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7, err_msg=str(keywords))


def filled(x):
    """Fill a new array by a recurrence, in the namespace of ``x``."""
    xp = x.__array_namespace__(api_version="2024.12")
    y = xp.zeros(3, dtype=x.dtype)
    for i in range(1, 3):
        y[i] = x[i] * y[i - 1] + x[0]
    return xp.sum(y) + xp.sum(xp.asarray([x[0], 1.0]))


@pytest.mark.parametrize("how", [lambda f: f, gradops.jit], ids=["eager", "compiled"])
def test_new_arrays_hold_variables_in_differentiated_functions(how):
    assert gradops.grad(filled)(LINE).tolist() == how(gradops.grad(filled))(LINE).tolist()
    np.testing.assert_allclose(gradops.grad(filled)(LINE), [LINE[2] + 3.0, 0.0, LINE[0]])


@pytest.mark.parametrize("backend", BACKENDS)
def test_new_arrays_are_constants_on_libraries_with_autodiff(backend):
    slope = gradops.grad(lambda x: ops.sum(ops.multiply(x, array_api.ones(3)) * ops.add(x * 0, gradops.numpy.ones(3))))
    assert ops.convert_to_numpy(slope(tensors(LINE, backend))).tolist() == [1.0, 1.0, 1.0]


def test_device_selects_the_type_of_new_arrays():
    v = Variable(LINE, requires_grad=True)
    for made in (array_api.arange(2, device=v.device), array_api.ones_like(v, device=v.device)):
        assert isinstance(made, Variable) and made.device == v.device
    assert v.to_device(v.device) is v
    for backend in BACKENDS:
        x = tensors(LINE, backend)
        with config.backend_scope(backend) if isinstance(x.device, str) else config.backend_scope("numpy"):
            for made in (array_api.zeros(2, device=x.device), array_api.asarray([1, 2], device=x.device)):
                assert gradops.backends.backend_of(made).name == backend
        if hasattr(x, "__dlpack__"):
            assert gradops.backends.backend_of(array_api.from_dlpack(x)).name == "numpy"
    with pytest.raises(GradientError):
        array_api.from_dlpack(v)
    with pytest.raises(ArgumentError, match="stream"):
        v.to_device(v.device, stream=1)
    with pytest.raises(ValueError, match="api_version"):
        v.__array_namespace__(api_version="2018.12")
    with pytest.raises(ValueError, match="copy"):
        array_api.asarray(v, dtype="float32", copy=False)


def test_dtypes_compare_equal_across_libraries():
    for backend in BACKENDS:
        assert tensors(LINE, backend).dtype == array_api.float64 != tensors(WHOLE, backend).dtype
        assert array_api.isdtype(tensors(WHOLE, backend).dtype, ("bool", "integral"))
    assert pickle.loads(pickle.dumps(array_api.int8)) == array_api.int8 and {array_api.int8: 1}[np.dtype("int8")] == 1
    with pytest.raises(ArgumentError, match="kind"):
        array_api.isdtype(array_api.int8, "whole")
