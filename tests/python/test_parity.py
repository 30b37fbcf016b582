"""Every op on every backend: see ``parity``."""

from __future__ import annotations

import importlib
import os
import pkgutil

import cases
import numpy as np
import pytest
from parity import (
    BACKENDS,
    call,
    differentiated,
    finite_difference,
    flat,
    is_own,
    jax_gradients,
    native_gradient,
    numpy,
    scalar_function,
    tape_gradient,
    tape_second,
)

from gradops import backends, ops

CASES = [
    case
    for module in sorted(m.name for m in pkgutil.iter_modules(cases.__path__))
    for case in importlib.import_module(f"cases.{module}").CASES
]
SAMPLE = CASES[:: int(os.environ.get("GRADOPS_SAMPLE", 1))]  # nox takes a sample


def by_id(case):
    return case.id


FIRST = {case.op: case for case in reversed(CASES)}
COMPILING = ("jax", "tensorflow")
"""The libraries whose short tests run only the first case of each op: they compile, or start slowly, for each case."""


def is_short(case, backend: str) -> bool:
    return backend not in COMPILING or FIRST[case.op] is case


def short_backends(case, names) -> list[str]:
    return [name for name in names if is_short(case, name)]


def long_backends(case, names) -> list[str]:
    return [name for name in names if not is_short(case, name)]


OTHER_CASES = [case for case in SAMPLE if FIRST[case.op] is not case]


def on_each(case, names, compare):
    """Compare two examples of a case on each library; on JAX and TensorFlow only the last: they compile each shape."""
    names = [name for name in names if name not in case.skip and backends.installed(name)]
    *others, last = case.examples(2)
    for arguments in others:
        for name in names:
            if name not in COMPILING:
                compare(name, arguments)
    for name in names:
        compare(name, last)


@pytest.mark.parametrize("case", SAMPLE, ids=by_id)
def test_forward(case):
    check_forward(case, short_backends(case, BACKENDS))


@pytest.mark.long
@pytest.mark.parametrize("case", OTHER_CASES, ids=by_id)
def test_forward_of_other_cases(case):
    check_forward(case, long_backends(case, BACKENDS))


def check_forward(case, names) -> None:
    """Check values, shapes and dtypes against the reference on every backend."""
    reference = case.reference or (lambda **k: getattr(np, case.op)(*k.values()))

    def compare(backend, arguments):
        wanted = flat(numpy(reference(**arguments)))
        got = flat(numpy(call(case, backend, arguments)))
        assert len(got) == len(wanted), backend
        for g, w in zip(got, wanted):
            np.testing.assert_allclose(
                g, w, rtol=case.rtol, atol=case.atol, err_msg=f"{case.id} on {backend}: {arguments}"
            )
            assert np.shape(g) == np.shape(w), backend
            if case.same_dtype and hasattr(w, "dtype"):
                assert np.asarray(g).dtype == w.dtype, (backend, np.asarray(g).dtype, w.dtype)

    on_each(case, names, compare)


@pytest.mark.parametrize("case", [c for c in SAMPLE if c.gradients], ids=by_id)
def test_gradient(case):
    check_gradient(case, short_backends(case, case.native))


@pytest.mark.long
@pytest.mark.parametrize("case", [c for c in OTHER_CASES if c.gradients], ids=by_id)
def test_gradient_of_other_cases(case):
    check_gradient(case, long_backends(case, case.native))


def check_gradient(case, names) -> None:
    """Check the tape's gradient against the frameworks' own."""

    def compare(backend, arguments):
        xs = differentiated(case, arguments)
        got = tape_gradient(scalar_function(case, arguments, "numpy"), xs)
        assert [g.dtype for g in got] == [x.dtype for x in xs]
        want = native_gradient(scalar_function(case, arguments, backend), xs, backend, compiled=not case.by_value)
        for g, w in zip(got, want):
            np.testing.assert_allclose(
                g, w, rtol=10 * case.rtol, atol=10 * case.atol, err_msg=f"{case.id} vs {backend}: {arguments}"
            )

    on_each(case, names, compare)


def second_oracles(case) -> list[str]:
    """The oracles of the short suite, with PyTorch or differences for JAX, as they do not compile for each case."""
    torch = ["torch"] if "torch" in case.native and "torch" not in case.skip else []
    return [name for oracle in case.second for name in (torch if oracle == "jax" else [oracle])]


@pytest.mark.parametrize("case", [c for c in SAMPLE if c.gradients], ids=by_id)
def test_second_gradient(case):
    """The tape's second gradient equals the frameworks' own, or finite differences of the first."""
    second_gradient(case, second_oracles(case))


@pytest.mark.long
@pytest.mark.parametrize("case", [c for c in SAMPLE if c.gradients and "jax" in c.second], ids=by_id)
def test_second_gradient_of_jax(case):
    """Compare with JAX's own second gradients. The short test uses PyTorch's or differences instead."""
    second_gradient(case, ["jax"])


def second_gradient(case, oracles: list[str]) -> None:
    arguments = case.example()
    xs = differentiated(case, arguments)
    f = scalar_function(case, arguments, "numpy")
    got = tape_second(f, xs)
    second = list(filter(backends.installed, oracles))
    for backend in second:
        native = scalar_function(case, arguments, backend)
        if backend == "jax":
            first, want = jax_gradients(native, xs, compiled=not case.by_value)
            for g, w in zip(tape_gradient(f, xs), first):
                np.testing.assert_allclose(
                    g, w, rtol=10 * case.rtol, atol=10 * case.atol, err_msg=f"{case.id} vs jax: {arguments}"
                )
        else:
            want = native_gradient(native, xs, backend, second=True, compiled=not case.by_value)
        for g, w in zip(got, want):
            np.testing.assert_allclose(
                g, w, rtol=100 * case.rtol, atol=100 * case.atol, err_msg=f"{case.id} vs {backend}: {arguments}"
            )
    if oracles and not second:
        pytest.skip(f"none of {', '.join(oracles)} is installed")
    if not second:
        want = finite_difference(lambda points: tape_gradient(f, points), xs)
        for g, w in zip(got, want):
            np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5, err_msg=f"{case.id}: {arguments}")


@pytest.mark.short_cases(40, "tensorflow")
@pytest.mark.short_cases(20, "jax")
@pytest.mark.slow
@pytest.mark.parametrize("over", ["jax", "tensorflow"])
@pytest.mark.parametrize("case", {c.op: c for c in reversed(CASES) if c.gradients}.values(), ids=by_id)
def test_tape_over_other_arrays(case, over):
    """The tape's rules also serve variables over JAX and TensorFlow arrays."""
    pytest.importorskip(over)

    arguments = case.example()
    xs = differentiated(case, arguments)
    f = scalar_function(case, arguments, over)
    got = tape_gradient(f, xs, over, compiled=not case.by_value)
    want = tape_gradient(scalar_function(case, arguments, "numpy"), xs)
    for g, w in zip(got, want):
        np.testing.assert_allclose(g, w, rtol=10 * case.rtol, atol=10 * case.atol)


# Each library draws its own numbers: test_random_tensors.
RANDOM = {"random_binomial", "random_gamma", "random_normal", "random_uniform"}
# Helpers of derivative rules, with values 0 or an operand: test_kinks and test_linalg.
OF_RULES = {"kink", "kink_pulled", "kink_pushed", "kink_curve", "kink_curved", "crease", "undefined", "parted"}


OWN = {name for name, op in ops._dispatch.registry.items() if is_own(op)} - RANDOM - OF_RULES


@pytest.mark.parametrize("name", sorted(OWN))
def test_every_op_has_a_case(name):
    with_cases = {case.op for case in CASES}
    if not with_cases & {name, ops._dispatch.registry[name].name}:
        pytest.fail(f"add a case of {name} to the file of its family in tests/python/cases/")


def test_dir_lists_the_public_names():
    assert set(dir(ops)) == set(ops.__all__)
