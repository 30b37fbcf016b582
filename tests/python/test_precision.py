"""Half precision and complex64 on every backend: dtypes are kept; values and gradients match double precision."""

import precision
import pytest
from parity import BACKENDS
from test_parity import CASES

from gradops import backends, ops

if "jax" in BACKENDS:
    backends.lookup("jax").prepare("float64")  # NumPy's default float64 determines indices and sizes

# Ops about a dtype, cases about a dtype's contents, and numbers without a tensor that determines their precision.
OF_A_DTYPE = {"array", "cast", "convert_to_numpy", "convert_to_tensor", "nextafter", "view"}
OF_ITS_RANGE = {"nan_to_num-complex", "nan_to_num-float32", "nan_to_num-holes"} | {
    "kaiser-numbers",
    "ldexp-extremes",
    "saturate_cast-to float16",
    "signbit",
}

FEW = {  # in the short suite: ops that a library lacks in some precision or handles differently
    "float16": {"linspace-()-()-num=5", "logspace", "kaiser", "rfft", "average_pool-3-D"},
    "bfloat16": {"round", "abs", "segment_max", "fft-pair", "nan_to_num-given"},
    "complex64": {"abs-complex", "fft-complex", "solve-complex128", "multiply-complex"},
}


def tried(name: str) -> list:
    """Return the cases for a precision; in complex64 one case for each op without a complex case."""
    cases = [c for c in CASES if c.op not in OF_A_DTYPE and c.id not in OF_ITS_RANGE]
    if name != "complex64":
        return [c for c in cases if "f" in precision.kinds(c.example())]
    own = [c for c in cases if "c" in precision.kinds(c.example())]
    first = {c.op: c for c in reversed(cases) if c.gradients and c.op in PUBLIC}
    return own + [c for op, c in first.items() if op not in {c.op for c in own}]


PUBLIC = ops._registry.names
SOME = [(name, case) for name, ids in FEW.items() for case in CASES if case.id in ids]


def by_id(value):
    return value if isinstance(value, str) else value.id


@pytest.mark.parametrize("name, case", SOME, ids=by_id)
def test_sample_of_ops_in_other_precisions(name, case):
    for backend in BACKENDS:
        if (backend, name) != ("numpy", "bfloat16"):  # NumPy lacks bfloat16
            assert precision.check(case, name, backend, int(name == "complex64")) == [], backend


@pytest.mark.long
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", precision.KINDS)
def test_every_op_in_other_precisions(name, backend):
    """Half precision to the first derivative, complex64 to the second."""
    if (backend, name) == ("numpy", "bfloat16"):
        pytest.skip("NumPy lacks the dtype")
    wrong = {}
    for case in tried(name):
        found = precision.check(case, name, backend, 2 if name == "complex64" else 1)
        if found:
            wrong[case.id] = found
    assert not wrong
