"""Random arguments to every public function give a value or a gradops error, never another library's error."""

import importlib
import inspect
import operator
import random
import sys
import warnings

import numpy as np
import pytest
from scipy_checks import modules
from seeds import FIRST, LONG

import gradops
from gradops import Variable, _names, array_api, autodiff, config, extend, ops
from gradops.errors import ArgumentError, ArgumentTypeError, GradopsError

NOT_CALLED = (
    autodiff.Function,
    autodiff.forward_ad.enter_dual_level,
    autodiff.forward_ad.exit_dual_level,
    extend.Facts,
    array_api.from_dlpack,
    gradops.closure_convert,
)
"""Classes created elsewhere; levels that stay open; what raises the standard's `BufferError`; a function that calls the
user's function, whose error it passes on.
"""
BACKENDS = ("numpy", "torch", "tensorflow", "jax")


def functions() -> dict:
    """Return the ops and the differentiating functions, without settings, scopes and function introspection."""
    found = {}
    for path in ("ops", "ops.image", "functional"):
        module = operator.attrgetter(path)(gradops)
        for name in dir(module):
            value = getattr(module, name)
            if name.startswith("_") or inspect.isclass(value) or inspect.ismodule(value) or not callable(value):
                continue
            if getattr(value, "__module__", "").startswith("gradops"):
                found[f"{path}.{name}"] = value
    for name in ("gradient", "stop_gradient", "scaled_gradient", "scaled_gradient_ext", "set_requires_gradient"):
        found[name] = getattr(gradops, name)
    return found


def others() -> dict:
    """Return the remaining public functions: tape, custom gradients, checkpoints, settings, scopes, text."""
    found: dict = {}
    for path, module in _names.public_modules().items():
        of_scipy = ("gradops.ops", "gradops.scipy", "gradops.array_api.special")
        if path.startswith(of_scipy) or path in ("gradops.errors", "gradops.numpy"):
            continue  # `gradops.numpy` has NumPy's own functions and errors
        of_numpy = getattr(module, "_FUNCTIONS", {})  # by the standard's names
        for name in module.__all__:
            value = getattr(module, name)
            if hasattr(value, "__metadata__") or value in NOT_CALLED or name in of_numpy:
                continue
            if callable(value):
                found.setdefault(value, f"{path}.{name}")
    return {name: value for value, name in found.items()}


def scipys() -> dict:
    """Return the functions of ``gradops.scipy``."""
    found = {}
    for path in modules():
        module = importlib.import_module(f"gradops.scipy.{path}")
        found.update({f"scipy.{path}.{name}": getattr(module, name) for name in module.__all__})
    return {name: value for name, value in found.items() if inspect.isfunction(value)}


class ArrayType:
    """A type with an array's attributes, like ``np.float64``; calling it returns its argument."""

    shape = dtype = __array__ = property(len)

    def __new__(cls, x):
        return x


def values(backend: str) -> list:
    """Return arguments that users pass, intentionally or by mistake."""

    def tensor(value, dtype=None):
        return ops.convert_to_tensor(np.array(value), dtype)

    def identity(x):
        return x

    plain = [
        0,
        1,
        2,
        -1,
        1.5,
        float("nan"),
        float("inf"),
        2**40,
        10**30,
        1e300,
        True,
        None,
        1j,
        "a",
        "float32",
        "",
        b"x",
    ]
    plain += [(), [], [1, 2], (2, 1), [1.0, [2.0, 3.0]], {}, {"a": 1.0}, [None], ["a"], slice(None), object(), identity]
    plain.append(ArrayType)
    arrays = [np.array([None, 1], object), np.array(["a"]), np.array(["2020-01-01"], "datetime64[D]"), np.ones((2, 2))]
    with config.backend_scope(backend):
        tensors = [tensor([1.0, 2.0]), tensor([[2.0, 1.0], [1.0, 3.0]]), tensor(np.arange(6).reshape(2, 3)), tensor(2)]
        tensors += [tensor([True, False]), tensor(np.zeros((0, 2))), tensor(np.ones((1, 4, 4, 1))), tensor([1 + 2j])]
        tensors += [tensor([1, 2], "float32"), tensor([1.0], "float16"), tensor([1, 2], "uint8")]
        tensors.append(tensors[0] if backend == "torch" else Variable(tensors[0], requires_grad=True))
    return plain + arrays + tensors + [[tensors[0], tensors[0]]]


def draw(function, pool: list, choose: random.Random) -> tuple[list, dict]:
    positional, named = [], {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.default is parameter.empty or choose.random() < 0.3:
            if parameter.kind is parameter.POSITIONAL_ONLY:
                positional.append(choose.choice(pool))
            else:
                named[parameter.name] = choose.choice(pool)
    return positional, named


def raw_errors(backend: str, seed: int, times: int, called: dict, pool: list | None = None) -> list[str]:
    choose, found = random.Random(seed), []
    pool = values(backend) if pool is None else pool
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, function in sorted(called.items()) * times:
            positional, named = draw(function, pool, choose)
            try:
                with config.backend_scope(backend):
                    function(*positional, **named)
            except (ArgumentError, ArgumentTypeError) as error:
                of_an_op = name.startswith("gradops.array_api")
                if error.argument is None and name in others() and not of_an_op:
                    found.append(f"{name}(*{positional!r:.80}, **{named!r:.200}): names no argument: {error!s:.120}")
            except GradopsError:
                pass
            except Exception as error:
                found.append(f"{name}(*{positional!r:.80}, **{named!r:.200}): {type(error).__name__}: {error!s:.120}")
    return found


@pytest.mark.short_cases(0, "jax")
@pytest.mark.parametrize("backend", BACKENDS)
def test_random_arguments_give_a_value_or_an_error_of_gradops(backend):
    found = raw_errors(backend, 2, 1, functions())
    assert not found, "\n".join(found)


def test_type_in_place_of_an_array_is_an_error():
    found = raw_errors("numpy", 1, 1, {**functions(), **scipys()}, [ArrayType])
    assert not found, "\n".join(found)


@pytest.mark.short_cases(0, "jax", "tensorflow")
@pytest.mark.parametrize("backend", BACKENDS)
def test_random_arguments_of_scipy_functions(backend):
    found = raw_errors(backend, 4, 1, scipys())
    assert not found, "\n".join(found)


@pytest.mark.long
@pytest.mark.parametrize("backend", BACKENDS)
def test_more_random_arguments_of_scipy_functions(backend):
    found = raw_errors(backend, FIRST, int(10 * LONG), scipys())
    assert not found, f"seed {FIRST}:\n" + "\n".join(found)


@pytest.mark.long
@pytest.mark.parametrize("backend", BACKENDS)
def test_more_random_arguments(backend):
    found = raw_errors(backend, FIRST, int(20 * LONG), functions())
    assert not found, f"seed {FIRST}:\n" + "\n".join(found)


@pytest.fixture
def as_it_was(tmp_path, monkeypatch):
    """Restore the settings afterwards, and write files to a temporary folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "litellm", None)
    before = config.backend(), config.floatx(), config.epsilon()
    check = config.check()
    yield
    config.set_backend(before[0])
    config.set_floatx(before[1])
    config.set_epsilon(before[2])
    config.set_check(check)
    config.set_lost_gradients("error")
    autodiff.set_detect_anomaly(False)
    autodiff.set_grad_enabled(True)


@pytest.mark.parametrize("backend", BACKENDS)
def test_random_arguments_of_other_functions(backend, as_it_was):
    """The tape, settings, scopes and text raise gradops errors that name the argument."""
    found = raw_errors(backend, 3, 2 if backend == "jax" else 5, others())
    assert not found, "\n".join(found)


@pytest.mark.long
@pytest.mark.parametrize("backend", BACKENDS)
def test_more_random_arguments_of_other_functions(backend, as_it_was):
    found = raw_errors(backend, FIRST, int(100 * LONG), others())
    assert not found, f"seed {FIRST}:\n" + "\n".join(found)


def test_number_of_tested_functions():
    """The number is quoted in docs/differences.md."""
    assert len(functions()) == 390
