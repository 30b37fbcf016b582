"""Every rule of an op against the op itself: native code, derivatives, batches. Rules are found, not listed.

The parity cases provide the arguments. ``make test-rules`` runs this file; ``tools/mutate`` shows that a wrong rule
makes it fail.
"""

from __future__ import annotations

import functools
import importlib
import pathlib
import subprocess
import sys
import warnings
from operator import attrgetter

import numpy as np
import pytest
from parity import flat, is_own
from test_facts import CASES_OF
from test_parity import OF_RULES

import gradops.scipy.special  # noqa: F401  # registers ops with native rules
from gradops import Variable, autodiff, backends, config, errors, functional, ops
from gradops.functional import batched
from gradops.functional.sparsity.patterns import pattern
from gradops.jit import jit, sparsity
from gradops.jit.compiled import trace
from gradops.ops._dispatch import registry

MANY_NUMBERS = np.array(
    [0.3, 0.7, 2.5, 0.05, 40.0, -0.8, 0.0, 1.0, -3.0, 800.0, 1e-9, np.inf, np.nan, 6.25, 0.5, -np.inf]
)
"""Values, including end points of functions and arguments of special formulas."""

rules = importlib.import_module("gradops.jit.native.registry")
plan = importlib.import_module("gradops.jit.native.plan")
run = importlib.import_module("gradops.jit.native.run")
machine = importlib.import_module("gradops.jit.native.machine")


@functools.cache
def examples(name: str) -> list[tuple]:
    """Return calls of an op: a function and its arguments by name."""
    if name.startswith("scipy."):
        entry = attrgetter(name)(importlib.import_module("gradops")).op
        # Kernels with limits leave native code for numbers beyond, so also call them with the numbers within.
        numbers = [MANY_NUMBERS, *([MANY_NUMBERS[np.abs(MANY_NUMBERS) < 50]] if rules.known_of(name).limits else [])]
        shifted = [[np.roll(x, 5 * i) for i in range(len(entry.parameters))] for x in numbers]
        return [(entry.call, dict(zip(entry.parameters, x))) for x in shifted]
    found: list[tuple] = []
    for case in CASES_OF[name]:
        found += [(case.function(), arguments) for arguments in case.examples(3)]
    return found


def quietly(test):
    """Run a test on NumPy with warnings ignored."""

    @functools.wraps(test)
    def run(name, *more):
        with config.backend_scope("numpy"), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            test(name, *more)

    return run


def arrays(arguments: dict) -> dict:
    """Return the array arguments, also those inside lists, each by its own name."""
    found = {}
    for name, value in arguments.items():
        for i, x in enumerate(value if isinstance(value, (list, tuple)) else [value]):
            if isinstance(x, np.ndarray):
                found[name, i if isinstance(value, (list, tuple)) else None] = x
    return found


def with_arrays(arguments: dict, changed: dict) -> dict:
    """Return the arguments with some arrays replaced."""
    given = {name: list(value) if isinstance(value, (list, tuple)) else value for name, value in arguments.items()}
    for (name, i), x in changed.items():
        if i is None:
            given[name] = x
        else:
            given[name][i] = x
    return given


# Native code.

LOOPS = {
    "scan": lambda x: ops.scan(lambda c, v: (c * 0.5 + ops.sin(v), c), x[0], x),
    "while_loop": lambda x: ops.while_loop(lambda c: c < 3.0, lambda c: c * 1.5 + 0.1, x[0] * x[0] + 0.1),
    "cond": lambda x: ops.cond(x[0] < x[1], lambda: ops.exp(x[2]), lambda: x[2] - 1.0),
}
NUMBERS = np.array([0.3, -0.8, 1.7, 0.25])
PUBLIC = [  # without aliases, and without ops that take complex numbers
    name for name, entry in registry.items() if name == entry.name and not name.startswith("scipy.special._")
]
NATIVE = sorted({*rules.LOOPS, *filter(rules.rule_of, PUBLIC)})


def put_native(patch: pytest.MonkeyPatch, name: str, rule) -> None:
    """Replace the native rule of an op or a loop."""
    table, key = (rules.LOOPS, name) if name in rules.LOOPS else (registry[name].rules, "native")
    patch.setitem(table, key, rules.known_of(name)._replace(rule=rule))


@pytest.mark.skipif(machine.machine() is None, reason="llvmlite is not installed")
@pytest.mark.parametrize("name", NATIVE)
@quietly
def test_native_code_equals_the_op(name):
    met, rule = [], rules.rule_of(name)

    def noting(*arguments):
        cells = rule(*arguments)
        met.append(name)  # not reached if the rule refuses
        return cells

    calls = [(LOOPS[name], {"x": NUMBERS})] if name in LOOPS else examples(name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "FEWEST", 1)  # otherwise NumPy runs single steps
        put_native(patch, name, noting)
        for f, arguments in calls:
            tensors = arrays(arguments)
            for traced in [tensors, *({place: x} for place, x in tensors.items() if len(tensors) > 1)]:
                before = len(met)
                results = compiled_and_not(f, arguments, traced)
                if len(met) > before and results is not None:
                    for a, b in zip(*results, strict=True):
                        single = b.dtype in (np.float32, np.float16)
                        rtol, atol = (1e-5, 1e-6) if single else (1e-11, 1e-12)
                        np.testing.assert_allclose(a, b, rtol, atol, strict=True)
                    with (
                        pytest.MonkeyPatch.context() as warned
                    ):  # a run that warns is repeated by the reference executor
                        warned.setattr(run.Run, "_computed", lambda self, values: self._reference(*values))
                        repeated = compiled_and_not(f, arguments, traced)
                    for a, b in zip(*repeated, strict=True):
                        np.testing.assert_allclose(a, b, 1e-5 if b.dtype.itemsize < 8 else 1e-14, strict=True)
    assert met, "no case of the op is native"


def compiled_and_not(f, arguments: dict, traced: dict) -> tuple | None:
    """Return the results of a call natively and by NumPy, other arrays being constants; None if it raises an error."""

    def program(p, *xs):
        return p + 1.0, f(**with_arrays(arguments, dict(zip(traced, xs))))

    given = (np.float64(0.5), *traced.values())
    try:
        return tuple([np.asarray(y) for y in flat(run(*given))] for run in (jit(program), program))
    except errors.GradopsError:
        return None


# Derivatives.


def scalar(f, arguments: dict, places: list):
    """Return a weighted sum of the results as a function of the arrays at ``places``."""
    drawn: list = []

    def loss(*xs):
        ys = [y for y in flat(f(**with_arrays(arguments, dict(zip(places, xs))))) if ops.dtype(y)[0] in "fc"]
        if not drawn:
            rng = np.random.default_rng(5)
            drawn.extend(rng.uniform(0.5, 1.5, (2, *y.shape)) for y in ys)
        parts = [ops.sum(ops.multiply(ops.real(y), w[0])) for y, w in zip(ys, drawn)]
        parts += [ops.sum(ops.multiply(ops.imag(y), w[1])) for y, w in zip(ys, drawn) if ops.dtype(y)[0] == "c"]
        return sum(parts, 0.0)

    return loss


def differs(loss, xs: list, place: int) -> float | None:
    """Return the relative error of the tape's directional derivative against a difference; None if undecidable."""
    rng = np.random.default_rng(11)
    x = xs[place]
    direction = rng.normal(size=x.shape) + (1j * rng.normal(size=x.shape) if x.dtype.kind == "c" else 0)

    def along(t: float) -> float:
        moved = [*xs[:place], x + t * direction, *xs[place + 1 :]]
        return float(np.real(ops.convert_to_numpy(loss(*moved))))

    leaf = Variable(x, requires_grad=True)
    y = loss(*xs[:place], leaf, *xs[place + 1 :])
    slope = 0.0
    if isinstance(y, Variable) and y.requires_grad:
        (g,) = autodiff.grad(y, [leaf], materialize_grads=True)
        slope = float(np.sum(np.real(np.conj(g.data) * direction)))
    h, scale = 1e-5, 1 + abs(slope)
    after, at, before = along(h), along(0), along(-h)
    difference, half = (after - before) / (2 * h), (along(h / 2) - along(-h / 2)) / h
    bend = (after - 2 * at + before) / h  # the change of the slope over one step
    if (
        not np.isfinite([slope, difference, half]).all()
        or abs(bend) > 1e-2 * scale
        or abs(difference - half) > 1e-4 * scale
    ):
        return None  # a kink, a jump, or the edge of the domain
    forward = slope
    if x.dtype.kind == "f" and isinstance(y, Variable):
        only = functools.partial(_at_place, loss, xs, place)
        forward = float(functional.jvp(only, x, direction)[1])
    return max(abs(slope - half), abs(forward - half)) / scale


def _at_place(loss, xs: list, place: int, x):
    return loss(*xs[:place], x, *xs[place + 1 :])


UNNATURAL = {"nextafter"}  # moves by one unit in the last place; its gradient is defined as 0


DERIVATIVES = sorted(
    entry.name
    for name, entry in registry.items()
    if "vjp" in entry.rules and name == entry.name and is_own(entry) and name not in UNNATURAL | OF_RULES
)


@pytest.mark.parametrize("name", DERIVATIVES)
@quietly
def test_derivatives_match_finite_differences(name):
    entry = registry[name]
    told = {argument: [] for argument in entry.rules["vjp"].rules}
    for f, arguments in examples(name):
        places = {
            p: x.astype(np.promote_types(x.dtype, "f8")) for p, x in arrays(arguments).items() if x.dtype.kind in "fc"
        }
        loss = scalar(f, arguments, list(places))
        for i, (argument, _) in enumerate(places):
            if argument not in told and f is entry.call or not places[argument, _].size:
                continue
            try:
                found = differs(loss, list(places.values()), i)
            except (errors.GradopsError, np.linalg.LinAlgError):
                continue
            if found is not None:
                assert found < 1e-4, (arguments, argument)
                for known in [argument] if argument in told else told:
                    told[known].append(found)
    assert all(told.values()), "no case tells"


# Batches.


def batches(arguments: dict, entry) -> list[tuple[dict, list[dict]]]:
    """Return batched arguments, with one tensor or all tensors batched, and the arguments of each batch member."""
    tensors = {place: x for place, x in arrays(arguments).items() if entry is None or place[0] in entry.tensors}
    found = []
    makers = [members_of] if entry is None or not entry.facts.elementwise else [members_of, special_members_of]
    for chosen in [*([place] for place in tensors), *([list(tensors)] if len(tensors) > 1 else [])]:
        for make in makers:
            rows = {place: make(tensors[place]) for place in chosen}
            whole = with_arrays(arguments, {place: batched.Batched(np.stack(xs)) for place, xs in rows.items()})
            found.append((whole, [with_arrays(arguments, {p: xs[k] for p, xs in rows.items()}) for k in range(3)]))
    return found


def special_members_of(x: np.ndarray) -> list[np.ndarray]:
    """Return three arrays of equal shape with zeros, NaN and infinities if floating."""
    some = [0.0, np.nan, np.inf, 1.0, -2.0] if x.dtype.kind in "fc" else [0, 1, 3]
    return [np.resize(np.roll(some, k), x.shape).astype(x.dtype) for k in range(3)]


def members_of(x: np.ndarray) -> list[np.ndarray]:
    """Return three different arrays; integers and booleans are only permuted, as they may be indices or masks."""
    if x.dtype.kind in "fc":
        return [x, (x * 0.875).astype(x.dtype), np.flip(x).copy() if x.ndim else x * x.dtype.type(1.125)]
    return [x, np.flip(x).copy(), np.roll(x, 1)]


def rule_names(kind: str, rule_of) -> list[str]:
    """Return the ops with a rule of their own, or with a rule that follows from their facts and a NumPy kernel."""
    return sorted(
        name
        for name in CASES_OF
        if kind in registry[name].rules
        or backends.embedded().kernel(name) is not None
        and rule_of(registry[name]) is not None
    )


BATCHED = rule_names("batch", batched.rule_of)


@pytest.mark.parametrize("name", BATCHED)
@quietly
def test_batches_equal_their_members(name):
    batched.register()
    entry, whole = registry[name], 0
    with pytest.MonkeyPatch.context() as patch:
        apart: list = []
        one_by_one = batched._run_each
        patch.setattr(batched, "_run_each", lambda *arguments: (apart.append(1), one_by_one(*arguments))[1])
        for f, arguments in examples(name):
            for given, each in batches(arguments, entry if f is entry.call else None):
                apart.clear()
                try:
                    wanted = [[np.asarray(y) for y in flat(f(**one))] for one in each]
                    found = flat(f(**given))
                except (batched.Refused, errors.GradopsError, np.linalg.LinAlgError):
                    continue
                whole += not apart
                for i, y in enumerate(found):
                    rows = batched.members(y, 3)
                    for k in range(3):
                        assert rows[k].dtype == wanted[k][i].dtype
                        np.testing.assert_allclose(rows[k], wanted[k][i], rtol=1e-9, atol=1e-12, strict=True)
    assert whole, "no case goes through the rule"


# Patterns.


def special(name: str) -> list[tuple]:
    """Return the calls with zeros, NaN and infinities in all arrays."""
    return [
        (f, with_arrays(arguments, {place: special_members_of(x)[0] for place, x in arrays(arguments).items()}))
        for f, arguments in examples(name)
    ]


def others(x: np.ndarray, place: int) -> list[np.ndarray]:
    """Return the array with other values of one element."""
    element = x.flat[place]
    values = (
        [element + 0.01, -3.7, 3.3] if x.dtype.kind in "fc" else [x.dtype.type(not element), 5][: 1 + (x.dtype != bool)]
    )
    found = []
    for value in values:
        found.append(x.copy())
        found[-1].flat[place] = value
    return found


PATTERNS = rule_names("pattern", lambda entry: sparsity.rule_of(entry.name))


@pytest.mark.parametrize("name", PATTERNS)
@quietly
def test_patterns_contain_every_dependency(name):
    """A result that changes with an element must depend on it; sparse patterns must not be completely dense."""
    entry, sparse, tried = registry[name], 0, 0
    for f, arguments in [*examples(name), *(special(name) if entry.facts.elementwise else [])]:
        kinds = "fcbiu" if entry.facts.elementwise or entry.facts.reduces else "fc"
        places = {p: x for p, x in arrays(arguments).items() if x.dtype.kind in kinds and x.size}

        def program(*xs, f=f, arguments=arguments, places=places):
            return [ops.copy(y) for y in flat(f(**with_arrays(arguments, dict(zip(places, xs)))))]

        try:
            found = trace(program, list(places.values()), lambda p, ys: pattern(p, ys, p.inputs)).analysis.toarray()
            before = np.concatenate([np.ravel(y) for y in program(*places.values())])
        except (errors.GradopsError, np.linalg.LinAlgError, ValueError):
            continue
        column = 0
        for place, x in places.items():
            for i, moved in ((k, y) for k in range(x.size) for y in others(x, k)):
                try:
                    after = np.concatenate([np.ravel(y) for y in program(*{**places, place: moved}.values())])
                except (errors.GradopsError, np.linalg.LinAlgError):
                    continue
                changed = (after != before) & ~(np.isnan(after) & np.isnan(before))
                assert not (changed & ~found[:, column + i]).any(), (arguments, place, i)
            column += x.size
        sparse, tried = sparse + (not found.all()), tried + (found.size > 1)
    assert sparse or not tried or entry.facts.reduces, "all depends on all"


# Tests of the tests.


@pytest.mark.long
def test_wrong_rules_are_detected():
    """Tries some rules of each table; ``tools/mutate --all`` tries every rule."""
    tool = pathlib.Path(__file__).parents[2] / "tools" / "mutate"
    wrong = (
        "native:reciprocal native:reshape derivative:divide.x2 derivative:sum.x batch:where batch:exp pattern:cumsum"
    )
    done = subprocess.run([sys.executable, tool, *wrong.split()], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": noticed") == 7
