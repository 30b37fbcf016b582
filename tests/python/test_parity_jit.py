"""Every op compiled by ``gradops.jit`` equals the uncompiled op: see ``parity``."""

from __future__ import annotations

import numpy as np
import pytest
from parity import BACKENDS, differentiated, flat, numpy, scalar_function, tensors
from test_parity import CASES, by_id

from gradops import backends, config, value_and_grad
from gradops.errors import ArgumentError, ArgumentTypeError, GradopsError, JitError
from gradops.jit import jit

OTHERS = [name for name in BACKENDS if name != "numpy"]
OF_VALUES = (
    "convert_to_numpy-0", "convert_to_numpy-1", "convert_to_numpy-2", "nonzero", "nonzero-vector",
    "unique", "unique-all", "unique-nan", "unique-rows", "unique-unsorted", "unique-empty",
    "bartlett", "blackman", "hamming", "hanning", "kaiser", "kaiser-numbers",
)  # fmt: skip
"""Cases refused in traces: their result, or its shape, depends on values."""
LOOKED_AT = ("nonzero", "nonzero-vector", "get_item-mask", "get_item-none chosen", "where-alone")
"""Cases whose NumPy programs hold only for the traced values, which they check."""
OF_WHOLE_NUMBERS = (
    "get_item-mask", "get_item-none chosen", "where-alone", "bincount-weights", "bincount-integers",
    "segment_sum-counted", "segment_prod-counted", "segment_max-counted", "segment_min-counted",
)  # fmt: skip
"""Cases whose integers, indices or masks must be known; floating tensors need not be."""
ELSEWHERE = (
    *OF_VALUES, *OF_WHOLE_NUMBERS, "add_at-mask", "add_at-none chosen", "set_at-mask", "set_at-none chosen",
    "ctc_decode-beams", "ctc_beams",
)  # fmt: skip
"""Cases that another library refuses as well."""
SHORTER = ("bincount", "bincount-rows", "bincount-empty")
"""Inside a trace `minlength` is the length: compared where the integers are known."""


def is_given(value, kinds: str) -> bool:
    """Return True if an argument is an array or list of arrays with a dtype of these kinds, to pass to a program."""
    items = value if isinstance(value, list) else [value]
    return any(isinstance(v, np.ndarray) and v.dtype.kind in kinds for v in items)


def turned(value):
    """Return other values with the same shape that suit an op: floating arrays reversed along each axis."""
    if isinstance(value, list):
        return [turned(v) for v in value]
    return np.array(np.flip(value)) if isinstance(value, np.ndarray) and value.dtype.kind in "fc" else value


def same(got, wanted, case, backend: str) -> None:
    got, wanted = flat(numpy(got)), flat(numpy(wanted))
    assert len(got) == len(wanted)
    for g, w in zip(got, wanted):
        np.testing.assert_allclose(g, w, rtol=case.rtol, atol=case.atol, err_msg=f"{case.id} on {backend}")
        assert np.shape(g) == np.shape(w)
        assert getattr(g, "dtype", None) == getattr(w, "dtype", None)


def compare(case, backend: str, f, values: list) -> None:
    """Call one program of ``f`` with the values it was traced with and with others.

    For NumPy the default backend is PyTorch: an op's tensors must belong to its arguments' library regardless.
    """
    with config.backend_scope("torch" if backend == "numpy" and values and "torch" in BACKENDS else backend):
        compiled = jit(f)
        for change in (lambda v: v, turned):
            given = [tensors(change(v), backend) for v in values]
            try:
                wanted = f(*given)
            except GradopsError:  # bins that are not ascending
                assert change is turned
                continue
            owners = {owner.name for owner in map(backends.backend_of, flat(wanted)) if owner is not None}
            assert owners <= {"numpy" if case.op == "convert_to_numpy" else backend}
            same(compiled(*given), wanted, case, backend)
        assert len(compiled.programs) <= 1


def check_value(case, backend: str, arguments: dict, kinds: str = "biufc") -> None:
    names = [name for name, value in arguments.items() if is_given(value, kinds)]
    function = case.function()  # the compiled function must not close over the case with hypothesis' data

    def f(*values):
        known = {name: tensors(value, backend) for name, value in arguments.items()}
        return function(**{**known, **dict(zip(names, values))})

    compare(case, backend, f, [arguments[name] for name in names])


def check_refusal(case, backend: str, arguments: dict) -> None:
    with pytest.raises((JitError, ArgumentError), match="value|trace|known"):
        check_value(case, backend, arguments)


def check_value_or_refusal(case, backend: str, arguments: dict) -> None:
    """Check the value or accept a refusal: some values are known to compilers, to TensorFlow's only at run time."""
    try:
        check_value(case, backend, arguments)
    except GradopsError:
        pass


def check_gradient(case, backend: str, arguments: dict) -> None:
    xs = differentiated(case, arguments)
    f = value_and_grad(scalar_function(case, arguments, backend), argnums=tuple(range(len(xs))))
    compare(case, backend, f, xs)


def run(case, backend: str, check, **keywords) -> None:
    check(case, backend, case.example(), **keywords)


def run_value(case, backend: str) -> None:
    if backend != "numpy" and case.id in ELSEWHERE:
        run(case, backend, check_value_or_refusal)
        return
    if backend != "numpy" and case.id in SHORTER:
        run(case, backend, lambda *given: check_value(*given[:2], {**given[2], "minlength": 9}))
        return
    if backend == "numpy" and case.id in LOOKED_AT:
        run(case, backend, check_value)
        return
    if case.id in (*OF_VALUES, *OF_WHOLE_NUMBERS):
        run(case, backend, check_refusal)
    if case.id not in OF_VALUES:
        known = case.id in (*OF_WHOLE_NUMBERS, *SHORTER)
        run(case, backend, check_value, kinds="fc" if known else "biufc")


def run_gradient(case, backend: str) -> None:
    refusal = check_refusal if backend == "numpy" else check_value_or_refusal
    run(case, backend, refusal if case.by_value else check_gradient)


@pytest.mark.parametrize("case", [c for c in CASES if "numpy" not in c.skip], ids=by_id)
def test_value(case):
    run_value(case, "numpy")


@pytest.mark.short_cases(392)
@pytest.mark.parametrize("case", [c for c in CASES if c.gradients], ids=by_id)
def test_gradient(case):
    run_gradient(case, "numpy")


@pytest.mark.long
@pytest.mark.parametrize("backend", OTHERS)
@pytest.mark.parametrize("case", CASES, ids=by_id)
def test_value_elsewhere(case, backend):
    if backend in case.skip:
        pytest.skip(case.skip[backend])
    run_value(case, backend)


@pytest.mark.long
@pytest.mark.parametrize("backend", OTHERS)
@pytest.mark.parametrize("case", [c for c in CASES if c.gradients], ids=by_id)
def test_gradient_elsewhere(case, backend):
    if backend not in case.native:
        pytest.skip("its gradient has another convention there")
    run_gradient(case, backend)


# Empty batches --------------------------------------------------------------------------------------------------------

EMPTIED = {
    "no rows": lambda x: x[:0] if x.ndim else x,
    "a batch of none": lambda x: np.zeros((0, *x.shape), x.dtype),
    "(0, 3)": lambda x: np.zeros((0, 3), x.dtype),
    "(0,)": lambda x: np.zeros(0, x.dtype),
}
"""Ways to empty the arrays of a case."""


def emptied(value, how):
    if isinstance(value, list):
        return [emptied(v, how) for v in value]
    return how(value) if isinstance(value, np.ndarray) else value


def answer(f, values: list):
    """Return the result of a call as NumPy arrays, or its error."""
    with np.errstate(all="ignore"):
        try:
            return flat(numpy(f(*values)))
        except Exception as error:
            return error


def check_emptied(case, backend: str, arguments: dict) -> None:
    """Check that compiled and uncompiled calls give equal values, shapes and dtypes, or the same class of error."""
    function = case.function()  # the compiled function must not close over the case with hypothesis' data
    for how, change in EMPTIED.items():
        changed = {name: emptied(value, change) for name, value in arguments.items()}
        names = [name for name, value in arguments.items() if is_given(value, "biufc")]

        fixed = {name: tensors(v, backend) for name, v in changed.items()}

        def of_value(*values, known=fixed, names=names):
            return function(**{**known, **dict(zip(names, values))})

        calls = [(of_value, [changed[name] for name in names])]
        if case.gradients:
            xs = differentiated(case, changed)
            f = scalar_function(case, changed, backend)
            calls.append((value_and_grad(f, argnums=tuple(range(len(xs)))), xs))
        for f, values in calls:
            given = [tensors(v, backend) for v in values]
            wanted = answer(f, given)
            compiled = jit(f)
            for _ in range(2):
                found = answer(compiled, given)
                where = f"{case.id} on {backend}, {how}: {found!r} for {wanted!r}"
                refused = case.id in (*ELSEWHERE, *SHORTER) and isinstance(found, ArgumentError | ArgumentTypeError)
                if isinstance(found, JitError) or refused:
                    continue  # depends on values, as for every program
                if backend == "tensorflow" and isinstance(wanted, Exception) and isinstance(found, Exception):
                    continue  # TensorFlow raises while differentiating or running its graph, outside any op
                if isinstance(wanted, Exception) or isinstance(found, Exception):
                    assert type(found) is type(wanted), where
                else:
                    same(found, wanted, case, backend)


def run_emptied(case, backend: str) -> None:
    check_emptied(case, backend, case.example())


ON_NUMPY = [c for c in CASES if "numpy" not in c.skip]
PRODUCTS = [c for c in ON_NUMPY if c.op == "attention_forward"]
"""Cases in which native code sums over zero rows."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", [c for c in ON_NUMPY[6::40] if "complex" not in c.id] + PRODUCTS, ids=by_id)
def test_empty(case):
    run_emptied(case, "numpy")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", ON_NUMPY, ids=by_id)
def test_empty_of_all(case):
    run_emptied(case, "numpy")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", OTHERS)
@pytest.mark.parametrize("case", CASES, ids=by_id)
def test_empty_elsewhere(case, backend):
    if backend not in case.skip:
        run_emptied(case, backend)
