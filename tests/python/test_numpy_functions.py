"""NumPy functions on variables behave as on arrays, for every keyword of their signatures."""

from __future__ import annotations

import inspect
import warnings
from operator import attrgetter

import numpy as np
import pytest

import gradops.numpy as gnp
from gradops import Variable, autodiff, grad, jit, ops, value_and_grad
from gradops.autodiff import gradcheck
from gradops.errors import ArgumentError, ArgumentTypeError, GradientError, GradopsError, JitError, ShapeError
from gradops.ops.numpy_functions import LISTS as LISTS_OF_ARRAYS
from gradops.ops.numpy_functions import ROWS

DISPATCHER = type(np.reshape)
MODULES = {"numpy": np, "numpy.linalg": np.linalg, "numpy.fft": np.fft}
FUNCTIONS = {
    f"{place}.{name}": f
    for place, module in MODULES.items()
    for name, f in sorted(vars(module).items())
    if isinstance(f, DISPATCHER) and not name.startswith("_")
}
MATRIX = np.array([[4.0, 1.5, 0.25], [-2.5, 3.0, -0.75], [1.25, 0.5, 2.0]])
SYMMETRIC = np.array([[4.0, 1.5, 0.25], [1.5, 3.0, -0.75], [0.25, -0.75, 2.0]])
WIDE = np.array([[4.0, 1.5, 0.25, 7.0], [-2.5, 3.0, -0.75, 0.5]])
VECTOR = np.array([3.0, -1.0, 2.0])

ARRAYS = "a b x y z m v w arr ary array x1 x2 p c c_or_r fp xp values ar1 ar2 element test_elements q k n_ A B".split()
"""Parameters that take arrays."""
REQUIRED = {
    "shape": (9,),
    "newshape": (9,),
    "axis": 0,
    "axis1": 0,
    "axis2": 1,
    "source": 0,
    "destination": 1,
    "indices": np.array([0, 2]),
    "indices_or_sections": 3,
    "condition": np.array([True, False, True]),
    "repeats": 2,
    "reps": 2,
    "shift": 1,
    "q": 0.5,
    "pad_width": 1,
    "obj": 1,
    "n": 2,
    "kth": 1,
    "deg": 1,
    "bins": 4,
    "N": 3,
    "choices": [VECTOR, VECTOR * 2],
    "decimals": 1,
    "dtype": "float32",
    "mask": np.array([True, False, True]),
    "vals": np.array([7.0, 8.0]),
    "val": 9.0,
    "new_shape": (2, 3),
    "tup": None,
    "fill_value": 2.0,
    "a_min": 0.0,
    "a_max": 2.0,
}
SPECIAL: dict = {
    "numpy.where": (np.array([True, False, True]), VECTOR, VECTOR * 2),
    "numpy.einsum": ("ij,jk", MATRIX, MATRIX),
    "numpy.interp": (np.array([0.7, 1.4]), [0.1, 1.0, 2.0], VECTOR),
    **{f"numpy.{n}": (WIDE, VECTOR + 0.125) for n in ("union1d", "setdiff1d", "setxor1d")},
    "numpy.cross": (VECTOR, VECTOR[::-1] + 1),
    "numpy.linalg.cross": (VECTOR, VECTOR[::-1] + 1),
    "numpy.vander": (VECTOR,),
    **{f"numpy.linalg.{n}": (SYMMETRIC,) for n in ("cholesky", "eigh", "eigvalsh")},
    "numpy.linalg.lstsq": (MATRIX[:, :2], VECTOR),
    "numpy.linalg.solve": (MATRIX, MATRIX),
    "numpy.linalg.multi_dot": ([MATRIX, MATRIX, MATRIX],),
    "numpy.choose": (np.array([0, 1, 0]), [VECTOR, VECTOR * 2]),
    "numpy.select": ([VECTOR > 2, VECTOR > 0], [VECTOR, VECTOR * 2]),
    "numpy.take_along_axis": (MATRIX, np.argsort(MATRIX, 0), 0),
    "numpy.put_along_axis": (MATRIX.copy(), np.array([[0, 1, 2]]), 7.0, 0),
    "numpy.searchsorted": (np.sort(VECTOR), VECTOR),
    "numpy.digitize": (VECTOR, np.sort(VECTOR)),
    "numpy.convolve": (VECTOR, VECTOR[:2]),
    "numpy.correlate": (VECTOR, VECTOR[:2]),
    "numpy.rot90": (MATRIX,),
    "numpy.block": ([[MATRIX, MATRIX]],),
    "numpy.broadcast_arrays": (MATRIX, VECTOR),
    "numpy.broadcast_to": (VECTOR, (3, 3)),
    "numpy.squeeze": (MATRIX[:, :1],),
    "numpy.unravel_index": (np.array([0, 2]), (3, 3)),
    "numpy.diff": (MATRIX,),
    "numpy.clip": (MATRIX, 0.0, 2.0),
    "numpy.tensordot": (MATRIX, MATRIX),
    "numpy.linalg.tensordot": (MATRIX, MATRIX),
    "numpy.kron": (MATRIX, VECTOR),
    "numpy.copyto": (MATRIX.copy(), VECTOR),
    "numpy.place": (MATRIX.copy(), MATRIX > 1, np.array([7.0, 8.0])),
    "numpy.putmask": (MATRIX.copy(), MATRIX > 1, np.array([7.0, 8.0])),
    "numpy.put": (MATRIX.copy(), np.array([0, 4]), np.array([7.0, 8.0])),
    "numpy.fill_diagonal": (MATRIX.copy(), 5.0),
    "numpy.apply_along_axis": (np.sum, 0, MATRIX),
    "numpy.apply_over_axes": (np.sum, MATRIX, [0]),
    "numpy.piecewise": (VECTOR, [VECTOR > 0], [1.0, 2.0]),
    "numpy.trim_zeros": (np.array([0.0, 1.0, 2.0, 0.0]),),
    "numpy.expand_dims": (MATRIX, 0),
    "numpy.flip": (MATRIX,),
    "numpy.gradient": (MATRIX,),
    "numpy.linspace": (VECTOR, VECTOR + 1),
    "numpy.histogram": (VECTOR,),
    "numpy.histogram2d": (VECTOR, VECTOR),
    "numpy.roots": (VECTOR,),
    "numpy.polyfit": (VECTOR, VECTOR**2, 1),
    "numpy.linalg.matrix_power": (MATRIX, 2),
    "numpy.linalg.tensorsolve": (MATRIX, VECTOR),
    "numpy.linalg.tensorinv": (np.eye(4).reshape(2, 2, 2, 2) + 0.1,),
    "numpy.ix_": (np.array([0, 1]), np.array([0, 2])),
    "numpy.compress": (np.array([True, False, True]), MATRIX),
    "numpy.extract": (MATRIX > 1, MATRIX),
    "numpy.nan_to_num": (np.array([1.0, np.nan, np.inf]),),
    "numpy.array_split": (VECTOR, 2),
    "numpy.logspace": (VECTOR, VECTOR + 1),
    "numpy.geomspace": (VECTOR**2, VECTOR**2 + 1),
    "numpy.meshgrid": (VECTOR, VECTOR[:2]),
    "numpy.partition": (MATRIX, 1),
    "numpy.argpartition": (MATRIX, 1),
    "numpy.unwrap": (VECTOR * 3,),
    "numpy.linalg.vecdot": (MATRIX, MATRIX),
    "numpy.linalg.matmul": (MATRIX, MATRIX),
    "numpy.linalg.outer": (VECTOR, VECTOR),
    "numpy.atleast_1d": (VECTOR,),
    "numpy.atleast_2d": (VECTOR,),
    "numpy.atleast_3d": (VECTOR,),
    "numpy.lexsort": ((VECTOR, VECTOR),),
}
LISTS = {f"numpy.{n}": ([MATRIX, MATRIX * 2],) for n in "concatenate stack vstack hstack dstack column_stack".split()}
SPECIAL.update(LISTS)
FILES = ("save", "savez", "savez_compressed", "savetxt")

CHOICES: dict = {
    "axis": [0, 1, -1, (0, 1), None],
    "axes": [None, (1, 0), 1, ([0], [1])],
    "keepdims": [True, False],
    "dtype": ["float32", "int64", "complex128"],
    "out": ["out"],
    "order": ["F", "A", "K", "C", None],
    "where": [np.array([True, False, True])],
    "initial": [10.0],
    "ddof": [1],
    "correction": [1],
    "mean": [0.5],
    "mode": ["full", "same", "valid", "wrap", "clip", "reflect", "edge", "constant", "reduced", "complete", "r", "raw"],
    "method": ["lower", "nearest", "hazen"],
    "overwrite_input": [True],
    "weights": [np.array([1.0, 2.0, 3.0])],
    "returned": [True],
    "k": [1, -1],
    "n": [1, 2],
    "norm": ["ortho", "forward"],
    "ord": [1, 2, np.inf, "fro", "nuc", 0, -1, 3],
    "full_matrices": [False],
    "compute_uv": [False],
    "hermitian": [True],
    "UPLO": ["U"],
    "upper": [True],
    "rcond": [0.3],
    "rtol": [0.3],
    "tol": [0.3],
    "kind": ["stable", "heapsort"],
    "stable": [True],
    "descending": [True],
    "return_index": [True],
    "return_inverse": [True],
    "return_counts": [True],
    "equal_nan": [True],
    "sorted": [False],
    "side": ["right"],
    "sorter": [np.array([1, 2, 0])],
    "right": [True],
    "left": [-5.0],
    "period": [1.5],
    "prepend": [0.0],
    "append": [1.0],
    "to_end": [5.0],
    "to_begin": [5.0],
    "dx": [0.5],
    "x": [np.array([0.0, 1.0, 3.0])],
    "edge_order": [2],
    "offset": [1, -1],
    "copy": [False, True],
    "subok": [True],
    "nan": [5.0],
    "posinf": [5.0],
    "neginf": [5.0],
    "decimals": [1, -1],
    "rowvar": [False],
    "bias": [True],
    "fweights": [np.array([1, 2, 3])],
    "aweights": [np.array([1.0, 2.0, 3.0])],
    "casting": ["same_kind", "unsafe"],
    "optimize": [True],
    "indexing": ["ij"],
    "sparse": [True],
    "invert": [True],
    "assume_unique": [True],
    "range": [(0.0, 3.0)],
    "density": [True],
    "bins": [3, "auto"],
    "constant_values": [5.0],
    "end_values": [5.0],
    "stat_length": [1],
    "reflect_type": ["odd"],
    "num": [4],
    "endpoint": [False],
    "retstep": [True],
    "base": [3.0],
    "increasing": [True],
    "N": [2],
    "wrap": [True],
    "trim": ["f", "b"],
    "discont": [4.0],
    "min": [0.0],
    "max": [2.0],
    "repeats": [np.array([1, 0, 2])],
    "total_repeat_length": [5],
    "axisa": [0],
    "axisb": [0],
    "axisc": [0],
    "start": [1],
    "like": [MATRIX],
    "device": ["cpu"],
    "shape": [(9,), (3, 3)],
    "full": [True],
    "cov": [True],
    "w": [np.array([1.0, 2.0, 3.0])],
    "default": [5.0],
    "s": [(2, 2)],
    "ndim": [2],
    "precision": [2],
    "include_initial": [True],
    "p": [3],
    "atol": [0.5],
    "strict": [True],
    "a_min": [1.0],
    "a_max": [1.5],
    "max_line_width": [20],
    "threshold": [2],
    "size": [2],
    "newshape": [(9,)],
}


def parameters(f) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        return []


def first_arguments(name: str, f):
    """Return positional arguments for a function's required parameters; None if unknown."""
    if name in SPECIAL:
        return SPECIAL[name]
    found = []
    for parameter in parameters(f):
        if parameter.default is not parameter.empty or parameter.kind in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
            parameter.KEYWORD_ONLY,
        ):
            continue
        if parameter.name in REQUIRED and REQUIRED[parameter.name] is not None:
            found.append(REQUIRED[parameter.name])
        elif parameter.name in ARRAYS:
            found.append(MATRIX)
        else:
            return None
    return tuple(found) if found else None


def calls(name: str, f):
    """Yield ``(arguments, keywords)`` of a call without keywords, and of one call per keyword value."""
    arguments = first_arguments(name, f)
    if arguments is None:
        return
    yield arguments, {}
    rows = [arguments]
    if isinstance(arguments[0], np.ndarray) and arguments[0] is MATRIX:
        rows += [(x, *arguments[1:]) for x in (WIDE, np.asfortranarray(WIDE))]
    for row in rows:
        yield from _with_keywords(f, row)


def _with_keywords(f, arguments):
    yield arguments, {}
    between = []
    for parameter in parameters(f)[len(arguments) :]:  # also by position, after defaults of earlier ones
        if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
            break
        for value in CHOICES.get(parameter.name, ()):
            if not isinstance(value, str) or value != "out":
                yield (*arguments, *between, value), {}
        between.append(parameter.default)
    named = [p.name for p in parameters(f)]
    for parameter in parameters(f)[len(arguments) :]:
        for value in CHOICES.get(parameter.name, ()):
            if parameter.name not in named[: len(arguments)]:
                yield arguments, {parameter.name: value}
    if not named:  # those of C
        for key in ("axis", "dtype", "out", "order", "casting"):
            for value in CHOICES[key]:
                yield arguments, {key: value}


def on_variables(value, made: list):
    """Replace each array of floats in ``value`` by a variable."""
    if isinstance(value, (list, tuple)):
        return type(value)(on_variables(v, made) for v in value)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.ndim:
        made.append(Variable(value.copy(), requires_grad=True))
        return made[-1]
    return value


def copied(value):
    if isinstance(value, (list, tuple)):
        return type(value)(map(copied, value))
    return value.copy() if isinstance(value, np.ndarray) else value


def plain(value):
    if isinstance(value, Variable):
        return value.data
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(map(plain, value))
    if hasattr(value, "_fields"):
        return tuple(map(plain, value))
    return value


def difference(expected, found) -> str | None:
    """Describe how two results differ, or return None."""
    if isinstance(expected, (list, tuple)):
        if not isinstance(found, (list, tuple)) or len(found) != len(expected):
            return f"{type(expected).__name__} of {len(expected)} became {type(found).__name__}"
        parts = [difference(e, g) for e, g in zip(expected, found)]
        return next((p for p in parts if p is not None), None)
    if isinstance(expected, (np.ndarray, np.generic)) or isinstance(expected, (int, float, complex)):
        a, b = np.asarray(expected), np.asarray(found)
        if a.dtype.kind in "USO":
            return None if str(expected) == str(found) else "another value"
        if a.shape != b.shape:
            return f"shape {a.shape} became {b.shape}"
        if a.dtype != b.dtype:
            return f"dtype {a.dtype} became {b.dtype}"
        return None if np.allclose(a, b, rtol=1e-6, atol=1e-9, equal_nan=True) else "another value"
    return None if expected == found or type(expected) is type(found) else f"{expected!r} became {found!r}"


def attempt(f, arguments, keywords):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return f(*arguments, **keywords), None
    except Exception as error:
        return None, error


def compare(name: str, f, arguments, keywords, on_tape: bool = True) -> str | None:
    """Return the fault of a call on variables; None if it equals the call on arrays or raises a clear error."""
    arrays = copied(arguments)
    given = dict(keywords)
    expected, failed = attempt(f, arrays, {k: v for k, v in given.items() if k != "out"})
    if "out" in given and isinstance(expected, np.ndarray):
        given["out"] = np.zeros_like(expected)
        attempt(f, copied(arguments), {**given, "out": np.zeros_like(expected)})
    elif "out" in given:
        return None
    made: list = []
    variables = on_variables(copied(arguments), made)
    if not made:
        return None
    if not on_tape:
        for v in made:
            v.requires_grad = False
    found, error = attempt(f, variables, given)
    if error is not None:
        if failed is not None or isinstance(error, GradopsError):
            return None
        return f"{type(error).__name__}: {str(error)[:100]}"
    if failed is not None:
        return f"NumPy raises {type(failed).__name__}: {str(failed)[:60]}; here {str(plain(found))[:60]!r}"
    if "out" in given and not on_tape:
        wrong = difference(expected, given["out"])
        if wrong:
            return "out: " + wrong
    if expected is None:  # functions that write in place
        return difference(arrays[0], plain(variables[0]))
    return difference(plain(expected), plain(found))


OTHERWISE = {
    ("numpy.linalg.cross", "axis"): "`axis=None` is the last one here",
    ("numpy.linalg.svd", "hermitian"): "the signs of singular vectors are free",
}
"""Errors and results that are not silently wrong."""


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if not name.endswith(FILES)])
def test_every_function_with_every_keyword(name):
    """Value, shape and type equal those on arrays, or a clear error is raised; recorded and unrecorded."""
    found = []
    for arguments, keywords in calls(name, FUNCTIONS[name]):
        if any((name, key) in OTHERWISE for key in keywords) or (name, "hermitian") in OTHERWISE and len(arguments) > 3:
            continue
        for on_tape in (True, False):
            wrong = compare(name, FUNCTIONS[name], arguments, keywords, on_tape)
            if wrong is not None:
                found.append((arguments[len(first_arguments(name, FUNCTIONS[name])) :], keywords, on_tape, wrong))
    assert not found


def test_most_functions_are_called():
    called = [name for name, f in FUNCTIONS.items() if next(calls(name, f), None) is not None]
    assert len(called) > 0.9 * len(FUNCTIONS) > 200


def total(y) -> tuple:
    """Return a real number that depends on every floating element of a result, each with a different weight."""
    parts = y if isinstance(y, (list, tuple)) else (y,)
    found = [p for p in parts if isinstance(p, (Variable, np.ndarray, np.generic)) and p.dtype.kind in "fc"]
    sums = [np.sum(np.real(p * np.cos(np.arange(float(np.size(p)))).reshape(np.shape(p)))) for p in found]
    return sum(sums, 0.0), any(isinstance(p, Variable) and p.requires_grad for p in found)


def with_arrays(value, arrays):
    """Replace each variable in ``value`` by the next of ``arrays``."""
    if isinstance(value, (list, tuple)):
        return type(value)(with_arrays(v, arrays) for v in value)
    return next(arrays) if isinstance(value, Variable) else value


def wrong_slope(f, arguments, keywords) -> str | None:
    """Describe how the derivative along a line differs from the slope of NumPy's values, or return None."""
    made: list = []
    variables = on_variables(copied(arguments), made)
    found, error = attempt(f, variables, keywords)
    if error is not None or not made or found is None:
        return None
    value, on_tape = total(found)
    if not on_tape:
        return None
    rng = np.random.default_rng(1)
    steps = [rng.standard_normal(v.shape) for v in made]
    exact = sum(np.sum(g.data * s) for g, s in zip(autodiff.grad(value, made, materialize_grads=True), steps))

    def at(t: float):
        moved = iter([v.data + t * s for v, s in zip(made, steps)])
        return total(attempt(f, with_arrays(variables, moved), keywords)[0])[0]

    slope = (at(1e-6) - at(-1e-6)) / 2e-6
    return None if np.allclose(exact, slope, rtol=2e-5, atol=2e-5, equal_nan=True) else f"{exact}, not {slope}"


SLOPELESS = {
    **dict.fromkeys(("histogram", "histogram_bin_edges", "round", "around", "fix"), "these jump"),
    **dict.fromkeys(("linalg.svd", "linalg.eig"), "vectors may turn"),
    **dict.fromkeys(("trim_zeros", "intersect1d"), "of zeros and equal elements"),
    "nan_to_num": "of infinite numbers",
}


@pytest.mark.parametrize("name", [n for n, f in FUNCTIONS.items() if f in ROWS and n[6:] not in SLOPELESS])
def test_every_function_with_every_keyword_has_its_gradient(name):
    """The derivative is compared with the slope of NumPy's own values."""
    found = []
    for arguments, keywords in calls(name, FUNCTIONS[name]):
        if any((name, key) in OTHERWISE for key in keywords):
            continue
        if not {"out", "dtype"} & set(keywords) and not any(type(a) is str and "float32" in a for a in arguments):
            wrong = wrong_slope(FUNCTIONS[name], arguments, keywords)
            if wrong is not None:
                found.append((arguments[1:], keywords, wrong))
    assert not found


NOT_DIFFERENTIATED = set(
    """numpy.busday_count numpy.busday_offset numpy.is_busday numpy.datetime_as_string numpy.packbits numpy.unpackbits
    numpy.histogram2d numpy.histogramdd numpy.save numpy.savetxt numpy.savez numpy.savez_compressed""".split()
)
"""Functions of dates, bits, counts and files."""
KEYWORDS = {
    "histogram_bin_edges": "weights",
    "intersect1d": "return_indices",
    "isin": "kind",
    "nanpercentile": "weights",
    "nanquantile": "weights",
    "percentile": "weights",
    "quantile": "weights",
    "polyfit": "full cov",
    **dict.fromkeys(("argpartition", "partition"), "kind order"),
    **dict.fromkeys(("argsort", "sort"), "order descending"),
    "unravel_index": "order",
}
"""Keywords that raise an error naming them."""


def test_each_numpy_function_and_keyword_is_known():
    """A new function or keyword of NumPy fails here until the table has a row or a reason for it."""
    assert {name for name, f in FUNCTIONS.items() if f not in ROWS} <= NOT_DIFFERENTIATED
    for row in ROWS.values():
        assert set(row.refused) <= set(KEYWORDS.get(row.path, "").split()), row.path


@pytest.mark.parametrize("density", [False, True])
@pytest.mark.parametrize("bins", [4, np.array([-1.0, 0.3, 0.5, 2.0])])
def test_weights_of_histograms(bins, density):
    x, w = np.array([0.5, -1.0, 2.0, 0.3, 0.9, 0.5, 9.0]), np.linspace(0.5, 2.0, 7)

    def f(np, w):
        found, edges = np.histogram(x, bins, (-1.0, 2.0), density, w)
        return found @ np.sin(np.arange(len(edges) - 1.0))

    numeric = [(f(np, w + d) - f(np, w - d)) / 2e-6 for d in 1e-6 * np.eye(7)]
    slope = value_and_grad(lambda w: f(np, w))
    for value, found in (slope(w), jit(slope)(w)):
        np.testing.assert_allclose(value, f(np, w), rtol=1e-13)
        np.testing.assert_allclose(found, numeric, rtol=1e-6, atol=1e-8)


UFUNCS = {name: f for name, f in vars(np).items() if isinstance(f, np.ufunc)}
PART = np.array([True, False, True])
OF_UFUNCS: dict = {
    "__call__": [("dtype", "float32"), ("dtype", "complex128"), ("order", "F"), ("where", PART), ("casting", "unsafe")],
    "reduce": [
        *[("axis", axis) for axis in (1, None, (0, 1))],
        *[("keepdims", True), ("dtype", "float32"), ("initial", 2.0), ("where", PART)],
    ],
    "accumulate": [("axis", 1), ("dtype", "float32")],
    "outer": [("dtype", "float32")],
    "reduceat": [("axis", 1)],
}


@pytest.mark.parametrize("name", UFUNCS)
def test_every_ufunc_with_every_keyword(name):
    ufunc, found = UFUNCS[name], []
    first, second = np.abs(MATRIX) / 5 + 0.1, np.abs(MATRIX.T) / 5 + 0.15
    given: dict = {"__call__": (first, second)[: ufunc.nin]}
    if (ufunc.nin, ufunc.nout) == (2, 1):
        given.update(reduce=(first,), accumulate=(first,), outer=(first, second), reduceat=(first, [0, 2]))
    for method, arguments in given.items():
        f = ufunc if method == "__call__" else getattr(ufunc, method)
        for keywords in [{}, {"out": "out"}, *({k: v} for k, v in OF_UFUNCS[method])]:
            for on_tape in (True, False):
                wrong = compare(name, f, arguments, keywords, on_tape)
                if wrong is not None:
                    found.append((method, keywords, on_tape, wrong))
    assert not found


METHODS: dict = {
    **dict.fromkeys(("sum", "prod"), ((), "axis dtype out keepdims initial where")),
    "mean": ((), "axis dtype out keepdims where"),
    **dict.fromkeys(("std", "var"), ((), "axis dtype out ddof keepdims where mean")),
    **dict.fromkeys(("max", "min", "all", "any"), ((), "axis out keepdims initial where")),
    **dict.fromkeys(("argmax", "argmin"), ((), "axis out keepdims")),
    **dict.fromkeys(("sort", "argsort"), ((), "axis kind order stable")),
    **dict.fromkeys(("partition", "argpartition"), ((1,), "axis kind order")),
    **dict.fromkeys(("cumsum", "cumprod"), ((), "axis dtype out")),
    **dict.fromkeys(("ravel", "flatten", "copy"), ((), "order")),
    "reshape": (((9,),), "order copy"),
    "resize": (((9,),), ""),
    "astype": (("float32",), "order casting subok copy"),
    "clip": ((0.0, 2.0), "out"),
    "diagonal": ((), "offset axis1 axis2"),
    "trace": ((), "offset axis1 axis2 dtype out"),
    "repeat": ((2,), "axis"),
    "round": ((), "decimals out"),
    "squeeze": ((), "axis"),
    "take": (([0, 2],), "axis out mode"),
    "transpose": ((), "axes"),
    "compress": (([True, False, True],), "axis out"),
    "put": (([0], [9.0]), ""),
    "fill": ((2.0,), ""),
    "dot": ((VECTOR,), "out"),
    "swapaxes": ((0, 1), ""),
    **dict.fromkeys("nonzero tolist conj conjugate item".split(), ((), "")),
}


def _with_state(array, name: str, arguments, keywords):
    """Return the result of a method, and the array after the call."""
    return getattr(array, name)(*arguments, **keywords), array


@pytest.mark.parametrize("name", METHODS)
def test_every_method_with_every_keyword(name):
    """Covers methods of NumPy arrays that write in place: checks the result and the array afterwards."""
    given, keywords = METHODS[name]
    choices = {**CHOICES, "axis1": [1], "axis2": [0]}
    rows: list = [((), {}), *(((), {k: v}) for k in keywords.split() for v in choices[k] if k != "out")]
    rows += [((v,), {}) for v in choices.get(keywords.partition(" ")[0], ())]
    found = []
    for x in (MATRIX, np.asfortranarray(MATRIX), WIDE, np.asfortranarray(WIDE), VECTOR):
        for more, named in rows:
            expected, failed = attempt(_with_state, (x.copy("K"), name, (*given, *more), named), {})
            for on_tape in (True, False):
                z = Variable(x.copy("K"), requires_grad=on_tape) * 1.0
                got, error = attempt(_with_state, (z, name, (*given, *more), named), {})
                if error is not None:
                    clear = isinstance(error, (GradopsError, TypeError, AttributeError))
                    wrong = None if failed is not None or clear else repr(error)
                elif failed is not None:
                    wrong = f"NumPy raises {failed!r}"
                else:
                    wrong = difference(plain(expected), plain(got))
                if wrong is not None:
                    found.append((x.shape, more, named, on_tape, wrong))
    assert not found


def _sorted(x, **keywords):
    z = x * 1.0
    z.sort(**keywords)
    return z


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.reshape(x, (4, 2), order="F"),
        lambda x: x.reshape(-1, order="F"),
        lambda x: np.ravel(x, "F"),
        lambda x: x.flatten("F"),
        lambda x: _sorted(x),
        lambda x: _sorted(x, axis=0),
        lambda x: np.linalg.lstsq(x.T, np.arange(4.0) ** 2)[0],
        lambda x: np.linalg.lstsq(x.T, np.arange(4.0) ** 2)[1],
        lambda x: np.linalg.lstsq(x.T, np.arange(4.0) ** 2)[3],
        lambda x: np.linalg.eig(x[:, :2] @ x[:, :2].T)[0],
    ],
)
def test_gradients_of_compiled_numpy_calls(f):
    def total(x):
        y = f(x)
        return ops.sum(y * np.cos(np.arange(float(np.size(y)))).reshape(np.shape(y)))

    assert gradcheck(f, (Variable(WIDE.copy(), requires_grad=True),))
    np.testing.assert_allclose(total(Variable(WIDE)).data, total(WIDE))
    np.testing.assert_allclose(jit(total)(WIDE), total(WIDE))
    np.testing.assert_allclose(jit(grad(total))(WIDE), grad(total)(WIDE))


def test_memory_order_is_known_or_requested():
    for x in (WIDE, np.asfortranarray(WIDE)):
        for order in "AK":
            np.testing.assert_array_equal(np.ravel(Variable(x), order).data, np.ravel(x, order))
    strided = np.arange(24.0).reshape(2, 3, 4).swapaxes(0, 1)
    with pytest.raises(ArgumentTypeError, match="numpy.ravel of an array in neither of the two orders"):
        np.ravel(Variable(strided), "K")
    with pytest.raises(ArgumentError, match="`order` must be one of 'C', 'F', 'A'; got 'K'"):
        np.reshape(Variable(WIDE), (8,), order="K")
    for f in (lambda x: ops.sum(np.ravel(x, "A")), grad(lambda x: ops.sum(np.ravel(x, "A")))):
        with pytest.raises((JitError, ArgumentTypeError)):
            jit(f)(WIDE)


def test_methods_whose_arguments_differ_from_the_function():
    v, x = Variable(VECTOR, requires_grad=True), VECTOR
    for f in (lambda x: x.clip(0.0), lambda x: x.clip(max=1.0), lambda x: x.compress([True, False, True])):
        np.testing.assert_array_equal(f(v).data, f(x))
    z = v * 1.0
    z.partition(1)
    z.fill(2.0)
    np.testing.assert_array_equal(z.data, 2.0)
    with pytest.raises(TypeError):
        v.sum(0, True)  # NumPy's second argument is `dtype`
    with pytest.raises(ArgumentTypeError, match="write `axis=`"):
        v.sum(dim=0)


def test_sort_is_in_place():
    z = Variable(VECTOR.copy())
    assert z.sort() is None
    np.testing.assert_array_equal(z.data, [-1, 2, 3])
    with pytest.raises(GradientError, match="in place"):
        Variable(VECTOR.copy(), requires_grad=True).sort()
    with pytest.raises(ArgumentTypeError, match="axis"):
        z.sort(axis=None)


def test_extremes_of_complex_numbers():
    """NumPy compares real parts, then imaginary parts; the gradient goes to the selected element."""
    z = np.array([[1 + 2j, 1 - 1j, 0.5 + 9j], [1 + 1j, -1 - 3j, -1 + 0j]])
    v = Variable(z, requires_grad=True)
    for extreme in (np.max, np.min):
        for keywords in ({}, {"axis": 0}, {"axis": (0, 1)}, {"axis": 1, "keepdims": True}):
            found, wanted = extreme(v, **keywords), extreme(z, **keywords)
            np.testing.assert_array_equal(found.data, wanted)
            assert found.shape == wanted.shape
    slope = grad(lambda z: np.real(np.max(z) * (2 - 1j)))(z[:, 1:])
    np.testing.assert_array_equal(slope, [[2 + 1j, 0], [0, 0]])


def _of_one_argument() -> list[str]:
    """Return the functions that need a matrix only and return numbers."""
    found = []
    for row in dict.fromkeys(ROWS.values()):
        try:
            result = row.function(list(SYMMETRIC))
        except Exception:  # needs more arguments
            continue
        numbers = all(isinstance(part, np.ndarray | np.number | float) for part in _parts(result))
        if numbers and row.defaults and next(iter(row.defaults)) not in LISTS_OF_ARRAYS and "empty" not in row.path:
            found.append(row.path)
    return found


def _parts(result):
    return result if isinstance(result, (list, tuple)) else [result]


@pytest.mark.parametrize("path", _of_one_argument())
def test_list_of_rows_acts_as_an_array(path):
    """Value and gradient equal the array's, for functions of ``gradops.numpy``."""
    own, numpys = attrgetter(path)(gnp), attrgetter(path)(np)
    seen = []

    def total(result):
        seen.append(parts := [np.asarray(getattr(part, "data", part)) for part in _parts(result)])
        return sum(
            np.sum(np.abs(part) * (i + 2)) for i, part in enumerate(_parts(result)) if parts[i].dtype.kind in "fc"
        )

    of_rows = grad(lambda x: total(own(list(x))) + np.sum(x))(SYMMETRIC)
    of_whole = grad(lambda x: total(numpys(ops.copy(x))) + np.sum(x))(SYMMETRIC)
    for of_list, of_array, plain in zip(seen[0], seen[1], _parts(numpys(list(SYMMETRIC)))):
        np.testing.assert_array_equal(of_list, of_array)
        np.testing.assert_allclose(of_list, plain, atol=1e-14)
    np.testing.assert_array_equal(of_rows, of_whole)


def test_list_of_arrays_stays_a_list_for_functions_of_several_arrays():
    def joined(x):
        return np.sum(gnp.concatenate([x[:1], x]) * np.arange(4.0)) + gnp.mean([x[:2], x[1:]], axis=0)[1]

    np.testing.assert_allclose(grad(joined)(VECTOR), [1.0, 2.5, 3.5])
    with pytest.raises(ShapeError):
        grad(lambda x: gnp.mean([x[:2], x], axis=0)[0])(VECTOR)
