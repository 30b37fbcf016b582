"""Backends that consist of an array API namespace: parity with NumPy, derivatives by the tape."""

from __future__ import annotations

import contextlib
import re

import fifth
import numpy as np
import pytest
from parity import call, differentiated, flat, numpy, scalar_function, tape_gradient
from test_parity import CASES, by_id

from gradops.errors import BackendError

EACH = list({c.op: c for c in reversed(CASES)}.values())


@pytest.fixture(scope="module", params=["strict", pytest.param("dask.array", marks=pytest.mark.slow)])
def backend(request):
    return fifth.FIFTH[request.param]().name


@contextlib.contextmanager
def said(backend):
    """Accept only a BackendError that names the missing kernel."""
    try:
        yield
    except BackendError as error:
        named = re.match(rf"`([\w.]+)` is not available on the backend '{backend}'", str(error))
        assert named and (named[1] in fifth.LACKING[backend] or named[1].startswith("scipy.")), error


@pytest.mark.short_cases(120)
@pytest.mark.parametrize("case", EACH, ids=by_id)
def test_forward(case, backend):
    reference = case.reference or (lambda **k: getattr(np, case.op)(*k.values()))

    arguments = case.example()
    with said(backend):
        wanted = flat(numpy(reference(**arguments)))
        got = flat(numpy(call(case, backend, arguments)))
        assert len(got) == len(wanted)
        for g, w in zip(got, wanted):
            np.testing.assert_allclose(g, w, rtol=case.rtol, atol=case.atol, err_msg=f"{arguments}")
            assert np.shape(g) == np.shape(w)
            if case.same_dtype and hasattr(w, "dtype"):
                assert np.asarray(g).dtype == w.dtype


@pytest.mark.short_cases(72)
@pytest.mark.parametrize("case", [c for c in EACH if c.gradients], ids=by_id)
def test_gradient(case, backend):
    arguments = case.example()
    with said(backend):
        xs = differentiated(case, arguments)
        got = tape_gradient(scalar_function(case, arguments, backend), xs, backend)
        want = tape_gradient(scalar_function(case, arguments, "numpy"), xs)
        for g, w in zip(got, want):
            np.testing.assert_allclose(g, w, rtol=10 * case.rtol, atol=10 * case.atol)
