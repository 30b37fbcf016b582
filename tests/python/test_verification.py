"""Compiled programs are checked against the reference executor: faults injected into native code are detected."""

import warnings

import numpy as np
import pytest

import gradops
from gradops import config, ops
from gradops.errors import ArgumentError, MismatchError, MismatchWarning
from gradops.jit import agreement, emission, reference, verification
from gradops.jit.native import loop_compiler, machine, registry, tile_run
from gradops.jit.native import run as native_run
from gradops.jit.reference import Reference

native = pytest.mark.skipif(machine.machine() is None, reason="llvmlite is not installed")
X = np.linspace(0.1, 2.0, 20)
LONG = np.linspace(0.1, 2.0, 6000)


@pytest.fixture
def sampled():
    """Set the default check mode of users; other tests run with "error"."""
    before = config.check()
    config.set_check("sample")
    yield
    config.set_check(before)
    agreement.reports.clear()


def loss(x):
    return ops.sum(ops.exp(x) * ops.log(x) / (1 + x**2) - ops.sin(x))


def wrong_exp(monkeypatch):
    """Make native code of `exp` compute the sine."""
    monkeypatch.setitem(ops.exp.op.rules, "native", registry.known_of("sin"))


def wrong_results(monkeypatch, owner):
    """Make native code return results with a relative error of one in a million."""
    computed = owner._computed
    monkeypatch.setattr(owner, "_computed", lambda self, arrays: [x * (1 + 1e-6) for x in computed(self, arrays)])


@native
def test_fault_gives_numpy_result_and_one_warning_naming_the_op(sampled, monkeypatch):
    wrong_exp(monkeypatch)
    f = gradops.jit(loss)
    with pytest.warns(MismatchWarning, match="`exp` in native code gave another result than NumPy: .*report"):
        assert f(X) == loss(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert f(X + 1) == loss(X + 1)
    assert "not used: `exp` in native code" in f.explain()


@native
def test_error_raises(sampled, monkeypatch):
    wrong_exp(monkeypatch)
    config.set_check("error")
    with pytest.raises(MismatchError, match="`exp` in native code"):
        gradops.jit(loss)(X)


@native
def test_off_checks_nothing(sampled, monkeypatch):
    wrong_exp(monkeypatch)
    config.set_check("off")
    assert gradops.jit(loss)(X) != loss(X)


@native
@pytest.mark.parametrize("owner, x", [(native_run.Run, X), (tile_run.Tiles, LONG)], ids=["run", "tiles"])
def test_later_fault_is_detected(sampled, monkeypatch, owner, x):
    f = gradops.jit(loss)
    f(x)
    wrong_results(monkeypatch, owner)
    with pytest.warns(MismatchWarning) as warned:
        for _ in range(20_000):
            value = f(x)
            if len(warned):
                break
    assert value == pytest.approx(loss(x), rel=1e-13)


def test_fault_of_emitted_code_is_detected(sampled, monkeypatch):
    # Reuse memory that is still read.
    monkeypatch.setattr(emission, "reuse", lambda program, steps, last, wanted: ({1: program.inputs[0]}, set()))
    x = np.linspace(0.1, 1.0, 5000)
    f = gradops.jit(lambda x: ops.sin(ops.cos(x)) * x, native=False)
    with pytest.warns(MismatchWarning, match="a compiled program gave another result"):
        found = f(x.copy())
    assert found.shape == x.shape


LOOPS = {
    "scan": lambda x: ops.scan(lambda c, v: (c * 0.5 + ops.exp(v), c), x[0], x)[0],
    "while_loop": lambda x: ops.while_loop(lambda c: c < 3.0, lambda c: c + ops.exp(c), x[0]),
}


@native
@pytest.mark.parametrize("name", LOOPS)
def test_wrong_loop_is_detected(sampled, monkeypatch, name):
    wrong_exp(monkeypatch)
    with pytest.warns(MismatchWarning, match=f"`{name}` in native code"):
        assert gradops.jit(LOOPS[name])(X) == LOOPS[name](X)


def test_error_in_compiled_code_only_gives_numpy_result(sampled, monkeypatch):
    def fail(*arguments):
        raise RuntimeError("not NumPy's")

    f = gradops.jit(loss, native=False)
    f(X)
    function = f.programs.all()[0].flat
    kernel = next(name for name, x in function.__globals__.items() if name.startswith("k") and callable(x))
    monkeypatch.setitem(function.__globals__, kernel, fail)
    config.set_check("always")
    with pytest.warns(MismatchWarning, match="a compiled program gave another result"):
        assert f(X) == loss(X)


@pytest.mark.parametrize("length", [3, 1 << 16])
def test_reference_executor_runs_rows_in_blocks(sampled, monkeypatch, length):
    monkeypatch.setattr(reference, "LONGEST", length)
    config.set_check("error")

    def f(x):
        total = x[0]
        for i in range(200):
            total = ops.where(total > 1.0, total / (1.0 + x[i % 20]), total + ops.sin(x[i % 20]) * x[1])
        return total * x

    compiled = gradops.jit(gradops.value_and_grad(lambda x: ops.sum(f(x))))
    for scale in (1.0, 0.3, 2.0):
        compiled(X * scale)


@native
def test_llvm_loops_are_compared_with_the_interpreter(sampled, monkeypatch):
    compiled = loop_compiler.compiled

    def wrong(words, template, machine):
        parts = compiled(words, template, machine)

        class Wrong:
            table = parts.table

            def __call__(self, memory):
                raised = parts(memory)
                at = np.ctypeslib.as_array((np.ctypeslib.ctypes.c_double * template.size).from_address(memory))
                at *= 1.5
                return raised

        return Wrong()

    monkeypatch.setattr(loop_compiler, "WORTH", 1)
    monkeypatch.setattr(loop_compiler, "compiled", wrong)

    f = LOOPS["scan"]
    with pytest.warns(MismatchWarning, match="a loop compiled by LLVM"):
        assert gradops.jit(f)(X) == f(X)


@native
def test_llvm_groups_are_compared_with_tiles(sampled, monkeypatch):
    monkeypatch.setattr(tile_run, "WORTH", 1)
    f = gradops.jit(loss)
    made = tile_run.Tiles._run

    def wrong(self, plan, state, arrays, pace):
        found, raised = made(self, plan, state, arrays, pace)
        return (found, raised) if plan is self._plan else ([x * 1.5 for x in found], raised)

    monkeypatch.setattr(tile_run.Tiles, "_run", wrong)
    with pytest.warns(MismatchWarning, match="a group compiled by LLVM"):
        assert f(LONG) == pytest.approx(loss(LONG), rel=1e-13)


@native
def test_fault_in_a_new_branch_is_detected(sampled, monkeypatch):
    def f(x):
        return loss(x) if x[0] > 0.5 else ops.sum(ops.log(x) * x / (x + 1) - ops.cos(x))

    compiled = gradops.jit(f)
    assert compiled(X) == f(X)
    wrong_exp(monkeypatch)
    with pytest.warns(MismatchWarning, match="`exp`"):
        assert compiled(X + 1) == f(X + 1)


@native
def test_wrong_sparse_factor_is_detected(sampled, monkeypatch):
    import scipy.sparse

    from gradops.scipy.sparse import linalg
    from gradops.scipy.sparse._columns import ColumnFactor

    a = scipy.sparse.diags_array([np.full(29, -1.0), np.full(30, 2.5), np.full(29, -1.0)], offsets=[-1, 0, 1]).tocsc()
    make = ColumnFactor.__init__

    def wrong(self, columns, values):
        make(self, columns, values)
        self._elements[20] *= 1 + 1e-9

    monkeypatch.setattr(ColumnFactor, "__init__", wrong)
    with pytest.warns(MismatchWarning, match="a sparse factor in native code"):
        found = linalg.logdet(a)
    np.testing.assert_allclose(found, np.linalg.slogdet(a.toarray())[1], rtol=1e-13)


def count_checks(monkeypatch) -> list:
    seen = []
    outputs_for = Reference.outputs_for

    def counted(self, arrays, rounding=None):
        seen.append(self)
        return outputs_for(self, arrays, rounding)

    monkeypatch.setattr(Reference, "outputs_for", counted)
    return seen


def test_checks_stay_within_their_share_of_time(sampled, monkeypatch):
    seen = count_checks(monkeypatch)
    f = gradops.jit(loss)
    for _ in range(3000):
        f(X)
    assert len(seen) < 20  # calls 1, 2, 4, ... at most


def test_calls_between_checks_double_if_results_agree(sampled, monkeypatch):
    monkeypatch.setattr(verification, "SHARE", 1e9)  # as if checks took no time
    seen, calls = count_checks(monkeypatch), []
    f = gradops.jit(loss)
    for i in range(1, 70):
        before = len(seen)
        f(X)
        calls += [i] * (len(seen) > before)
    assert calls == [2, 4, 8, 16, 32, 64]


@pytest.mark.parametrize("mode, checked", [("error", 120), ("always", 300)])
def test_tests_check_the_first_hundred_calls_and_a_tenth_of_the_others(sampled, monkeypatch, mode, checked):
    config.set_check(mode)
    seen = count_checks(monkeypatch)
    f = gradops.jit(loss)
    for _ in range(301):
        f(X)
    assert abs(len(seen) - checked) <= 1


@native
def test_fault_in_late_calls_raises_within_ten_calls(sampled, monkeypatch):
    config.set_check("error")
    f = gradops.jit(loss)
    for _ in range(150):
        f(X)
    outputs_for = Reference.outputs_for
    monkeypatch.setattr(Reference, "outputs_for", lambda *given: [x + 1 for x in outputs_for(*given)])
    with pytest.raises(MismatchError):
        for _ in range(10):
            f(X)


@pytest.mark.parametrize("mode, checked", [("off", 0), ("first", 0), ("always", 9), ("error", 9)])
def test_modes(sampled, monkeypatch, mode, checked):
    config.set_check(mode)
    seen = count_checks(monkeypatch)
    f = gradops.jit(loss)
    for _ in range(10):
        f(X)
    assert len(seen) == checked  # the first call is compared with the traced values


def test_mode_applies_to_existing_programs(sampled, monkeypatch):
    f = gradops.jit(loss)
    f(X)
    config.set_check("always")
    seen = count_checks(monkeypatch)
    for _ in range(5):
        f(X)
    assert len(seen) == 5
    config.set_check("off")
    for _ in range(5):
        f(X)
    assert len(seen) == 5


def test_invalid_mode():
    with pytest.raises(ArgumentError, match="`mode` must be one of off, first, sample, always, error; got 'of'"):
        config.set_check("of")


def test_without_native_code():
    f = gradops.jit(loss, native=False)
    assert f(X) == loss(X)
    assert "none native: native=False" in f.explain()

    assert gradops.jit(LOOPS["scan"], native=False)(X) == LOOPS["scan"](X)
    with pytest.raises(TypeError, match="`native` must be True or False"):
        gradops.jit(loss, native=1)


# Results that differ by rounding only.


@pytest.mark.parametrize(
    "f, x",
    [
        (lambda x: ops.sum(x) - ops.sum(x[::-1]), np.random.default_rng(1).normal(size=200) * 1e6),
        (lambda x: ops.argmax(x * 3.0 / 3.0), np.full(50, 0.1) + np.array([0.0, 1e-17] * 25)),
        (lambda x: ops.log(ops.sum(ops.exp(x))) - ops.logsumexp(x), np.linspace(-3, 3, 60)),
        (
            lambda x: gradops.grad(lambda m: ops.sum((x - m) ** 2))(ops.mean(x)),
            np.random.default_rng(2).normal(size=99),
        ),
    ],
    ids=["sums", "ties", "logsumexp", "optimum"],
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_cancellation_is_not_a_fault(f, x, dtype):
    compiled = gradops.jit(f)
    for scale in (1.0, 0.7, 1.3):
        compiled((x * scale).astype(dtype))  # in mode "error", as in all tests


def outputs(f, x):
    """Return the reference executor's randomly rounded form of a plain function."""
    return lambda rounding: [rounding("exp", lambda x: f(rounding.rounded(x)), (x,))]


@pytest.mark.parametrize("factor", [1 + 1e-9, 1.5, np.nan, np.inf])
def test_error_above_rounding_is_a_fault(factor):
    x = np.linspace(0.5, 1.0, 30)
    want = np.exp(x)
    got = want.copy()
    got[7] *= factor
    assert not agreement.agree([got], [want], outputs(np.exp, x))
    assert agreement.agree([want * (1 + 2e-16)], [want], outputs(np.exp, x))
    assert not agreement.agree([want.astype("float32")], [want], outputs(np.exp, x))
    assert not agreement.agree([want[:-1]], [want], outputs(np.exp, x))


@pytest.mark.parametrize(("dtype", "accepts"), [("float64", True), ("complex128", True), ("float32", False)])
def test_programs_of_many_rows_may_differ_by_more_without_another_run(dtype, accepts):
    want = np.array([1.0, 2.0], dtype)
    got = want * (1 + 1000 * np.finfo(dtype).eps)
    calls = []
    assert agreement.agree([got], [want], lambda rounding: calls.append(1) or [want], 10_000) is accepts
    assert bool(calls) is not accepts
    assert not agreement.agree([got], [want], lambda rounding: [want], 1)
    assert not agreement.agree([want * (1 + 1e6 * np.finfo(dtype).eps)], [want], lambda rounding: [want], 10_000)


def test_booleans_and_indices_are_compared_except_for_ties():
    x = np.array([1.0, 2.0, 3.0])
    assert not agreement.agree([np.int64(1)], [np.int64(2)], outputs(lambda x: np.argmax(x), x))
    tied = np.array([1.0, 0.1 * 3, 0.3])
    assert agreement.agree([np.int64(1)], [np.int64(2)], outputs(lambda x: np.argmax(x[1:]) + 1, tied))
    assert not agreement.agree([x > 1], [x > 2], outputs(lambda x: x > 2.5, x))
