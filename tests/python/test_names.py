"""Names: what ``dir()`` of public modules shows, and the errors for unknown names and arguments."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import random
import re
import subprocess
import sys
import types
import warnings
from pathlib import Path

import numpy as np
import pytest
from parity import BACKENDS
from scipy_checks import modules

import gradops
from gradops import Variable, _names, functional, ops
from gradops.errors import ArgumentTypeError, GradientError

SCIPY = [f"gradops.scipy.{name}" for name in modules()]
MODULES = {
    **_names.public_modules(),
    **{
        name: importlib.import_module(name)
        for name in ("gradops.array_api.special", "gradops.interop", "gradops.interop.r")
    },
}


def test_public_modules():
    assert set(MODULES) == {
        "gradops",
        *(
            f"gradops.{name}"
            for name in "autodiff config errors extend functional inference numpy ops text interop interop.r".split()
        ),
        "gradops.scipy",
        *SCIPY,
        "gradops.inference.transforms",
        *(f"gradops.array_api{name}" for name in ("", ".fft", ".linalg", ".special")),
        *(f"gradops.{name}" for name in "ops.image ops.nn autodiff.forward_ad autodiff.profiler".split()),
    }


def test_no_name_hides_a_module():
    """A module equals its package's attribute of that name, except ``gradops.jit``, a function that serves as a
    package.
    """
    hidden = []
    for name, module in sorted(sys.modules.items()):
        package, _, leaf = name.rpartition(".")
        if not isinstance(module, types.ModuleType):
            continue  # NumPy's modules, through `gradops.numpy`
        if name.startswith("gradops.") and getattr(sys.modules[package], leaf, module) is not module:
            hidden.append(name)
    assert hidden == ["gradops.jit"]
    for name, module in sorted(sys.modules.items()):
        if name.startswith("gradops.jit.") and name.count(".") == 2:
            assert getattr(gradops.jit, name.rpartition(".")[2]) is module, name


@pytest.mark.short_cases(1)
@pytest.mark.parametrize(
    "code",
    [
        "import gradops.jit.native; gradops.jit.native.lowered",
        "import gradops.jit.native.machine as machine; machine.Machine",
        "import gradops.interop.r, gradops.jit.scalar_logs as logs; logs.Log",
        "from gradops.jit import jit, native; import gradops; assert gradops.jit is jit and jit.native is native",
        "import gradops, pickle; assert pickle.loads(pickle.dumps(gradops.jit)) is gradops.jit",
    ],
)
def test_jit_modules_can_be_imported_in_every_form(code):
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


@pytest.mark.short_cases(2)
@pytest.mark.parametrize(
    "code",
    [
        "v = gradops.Variable('ab', requires_grad=True); (v + 'c').upper().backward('too long'); assert v.grad",
        "assert gradops.text.join(['a', 'b'], ' ') == 'a b'",
        "from gradops import text; assert text is gradops.text",
        "import gradops.text as text; assert text is gradops.text",
        "from gradops.text import join; assert join is gradops.text.join",
        "from gradops import *; assert text.join",
        "assert gradops.Parameter(['a', 'b']).strip().tolist() == ['a', 'b']",
        "import pickle; assert pickle.loads(b'cgradops.text.values\\nText\\n(S\\'a\\'\\ntR.') + 'b' == 'ab'",
        "assert not hasattr(gradops, 'jugde')",
    ],
)
def test_text_is_imported_when_it_is_first_used(code):
    before = "import gradops, sys; assert 'text' in dir(gradops) and 'gradops.text' not in sys.modules"
    code = f"{before}\n{code}\nassert 'gradops.text' in sys.modules"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("name", [name for name in MODULES if name != "gradops.numpy"])
def test_dir_shows_exactly_the_public_names(name):
    module = MODULES[name]
    assert dir(module) == sorted(set(module.__all__)) and len(set(module.__all__)) == len(module.__all__)
    for one in module.__all__:
        value = getattr(module, one)
        home = getattr(value, "__module__", None) or getattr(value, "__name__", "")
        assert not one.startswith("_") and (
            home.startswith("gradops") or not callable(value) or hasattr(value, "__metadata__")
        ), one


@pytest.mark.short_cases(12)
@pytest.mark.parametrize("name", MODULES)
def test_misspelled_names_get_a_suggestion(name):
    """Misspells each public name by exchanging two letters or leaving one out."""
    module, rng = MODULES[name], random.Random(name)
    if name == "gradops.interop":
        pytest.skip("it has one name, of one letter")
    for right in module.__all__:
        if len(right) < 5:
            continue
        i = rng.randrange(1, len(right) - 2)
        for wrong in (right[:i] + right[i + 1] + right[i] + right[i + 2 :], right[:i] + right[i + 1 :]):
            if hasattr(module, wrong):
                continue
            with pytest.raises(AttributeError, match=f"module '{name}' has no attribute '{wrong}'\nHint: did you mean"):
                getattr(module, wrong)


@pytest.mark.parametrize(
    "module, wrong, right",
    [
        (ops, "sofmax", "ops.softmax"),
        (gradops, "vhp", "functional.vhp"),
        (gradops, "hesian", "gradops.hessian"),
        (gradops, "no_grad", "autodiff.no_grad"),
        (gradops, "sum", "ops.sum"),
        (gradops, "backend_scope", "config.backend_scope"),
        (gradops, "value_and_gard", "gradops.value_and_grad"),
        (functional, "ArgumentError", "errors.ArgumentError"),
        (gradops, "jugde", "text.judge"),
        (ops, "resize", "ops.image.resize"),
    ],
)
def test_suggestion_for_a_name_of_another_module(module, wrong, right):
    with pytest.raises(AttributeError, match=f"did you mean `{right}`"):
        getattr(module, wrong)


@pytest.mark.parametrize("word", _names.OTHERS)
def test_names_of_other_libraries_get_a_suggestion(word):
    ours = _names.OTHERS[word]
    assert callable(functools.reduce(getattr, ours.split("."), gradops))
    module = ops if ours.startswith("ops.") else gradops
    with pytest.raises(AttributeError, match=rf"did you mean `(gradops\.)?{ours}`"):
        getattr(module, word)


def test_unrelated_name_gets_no_suggestion():
    with pytest.raises(AttributeError, match="no attribute 'dropout'$"):  # not `functional.root`
        ops.dropout  # noqa: B018


@pytest.mark.parametrize("code", ["from gradops import jacobain as f", "from gradops.scipy.special import gamaln"])
def test_misspelled_import_gets_a_suggestion(code):
    with pytest.raises(ImportError, match="did you mean `(gradops.jacobian|gammaln)`"):
        exec(code)
    assert not hasattr(gradops, "jacobain")


def test_unknown_name_and_private_attributes():
    with pytest.raises(AttributeError, match="^module 'gradops' has no attribute 'qqqq'$"):
        gradops.qqqq  # noqa: B018
    assert not hasattr(gradops, "__wrapped__") and getattr(ops, "_sum_", None) is None


@pytest.mark.parametrize("name", ["sum", "mean", "max", "softmax", "concatenate", "cumsum", "argmax", "norm"])
def test_pytorch_argument_names(name):
    x = [np.ones(2)] if name == "concatenate" else np.ones((2, 2))
    for given in (x, Variable(np.ones((2, 2)))) if name != "concatenate" else (x,):
        with pytest.raises(ArgumentTypeError, match=f"`{name}` has the arguments .*\n?.*write `axis=`") as caught:
            getattr(ops, name)(given, dim=0)
        assert caught.value.argument == "dim"
    if name in ("sum", "mean", "max", "norm"):
        with pytest.raises(ArgumentTypeError, match="write `keepdims=`"):
            getattr(ops, name)(x, keepdim=True)
        with pytest.raises(ArgumentTypeError, match="write `axis=`"):
            getattr(Variable(x), name if name != "norm" else "sum")(dim=None)


# Hints that lead to the intended call.


@pytest.mark.parametrize("wrong", [np.ones(2), 1.5, (np.ones(2), 1.0), True, None, [1.0, 2.0]])
def test_hint_for_grad_of_a_function_and_its_argument(wrong):
    for derivative in (gradops.grad, gradops.value_and_grad):
        written = rf"`{derivative.__name__}\(f\)\(x\)`"
        with pytest.raises(ArgumentTypeError, match=rf"`argnums` must be the position.*\n.*{written}"):
            derivative(ops.sum, wrong)
    assert gradops.grad(lambda x, y: ops.sum(x * y), np.int64(1))(2.0, 3.0) == 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradient_of_a_function(backend):
    x = {"a": gradops.to_backend(np.array([1.0, 2.0]), backend), "b": gradops.to_backend(np.array([3.0]), backend)}
    found = gradops.gradient(lambda x: ops.sum(x["a"] ** 2 * x["b"]), x)
    assert [ops.convert_to_numpy(found[k]).tolist() for k in "ab"] == [[6, 12], [5]]
    assert type(found["a"]) is type(x["a"])


@pytest.mark.parametrize("backend", BACKENDS)
def test_objective_without_data(backend):
    x = gradops.to_backend(np.array([1.0, 2.0]), backend)
    found = functional.objective(lambda x: ops.sum(x**3))
    values = [found(x), *found.value_and_grad(x), gradops.grad(found)(x), found.hessian(x), found.hvp(x, x)[1]]
    expected = [9, 9, [3, 12], [3, 12], [[6, 0], [0, 12]], [6, 24]]
    assert [ops.convert_to_numpy(value).tolist() for value in values] == expected
    assert repr(found) == "<objective>"
    with pytest.raises(GradientError, match="scalar"):
        functional.objective(lambda x: x)(x)


# Renamed functions.


def test_old_names_warn_once_and_work():
    assert _names.RENAMED
    for old, new in _names.RENAMED.items():
        module, _, name = old.rpartition(".")
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("default")
            for _ in range(2):
                found = getattr(importlib.import_module(module), name)
        assert found is pkgutil.resolve_name(new) and name not in dir(sys.modules[module])
        assert [str(one.message) for one in said] == [f"`{old}` is `{new}` now"]
        assert said[0].category is DeprecationWarning and said[0].filename == __file__
    with pytest.warns(DeprecationWarning), gradops.config.use_backend("numpy"):
        assert gradops.config.backend() == "numpy"


def test_non_numeric_scale():
    for scaled in (lambda x: gradops.scaled_gradient(x, "a"), lambda x: gradops.scaled_gradient_ext(x, scale="a")):
        for x in (np.ones(2), Variable(np.ones(2))):
            with pytest.raises(ArgumentTypeError, match="`scale` must be a number.* got 'a' of type str") as caught:
                scaled(x)
            assert caught.value.argument == "scale"
    with pytest.raises(ArgumentTypeError, match="`shift` must be a number"):
        gradops.scaled_gradient_ext(np.ones(2), scale=1.0, shift="a")


def test_array_of_variables_error_names_alternatives():
    p = Variable(np.array([1.0, 2.0]), requires_grad=True)
    for made in (lambda: np.array([p[0], 1.0]), lambda: np.asarray(p)):
        with pytest.raises(ArgumentTypeError, match=r"import gradops.numpy as np.*the value without"):
            made()
    assert ops.stack([p[0], 1.0]).requires_grad


# Names in both languages: docs/names.md.

ROOT = Path(__file__).parents[2]
NAMES_PAGE = (ROOT / "docs/names.md").read_text()
NAMESPACE = (ROOT / "NAMESPACE").read_text()
PREFIXES = {
    "gradops": ["", "op_"],
    "gradops.autodiff": ["", "autodiff_", "with_"],
    "gradops.functional": ["", "op_"],
    "gradops.config": ["config_"],
    "gradops.text": ["text_"],
    "gradops.inference": [""],
    "gradops.extend": ["extend_"],
    "gradops.ops": ["op_"],
    "gradops.ops.image": ["op_image_"],
    "gradops.autodiff.profiler": ["with_"],
}


def names_of_page(part: str, columns: slice) -> list[list[str]]:
    rows = [line.split("|")[1:-1] for line in part.splitlines() if line.startswith("|")][2:]
    return [re.findall(r"`([\w.$:]+)[^`]*`", "".join(row[columns])) for row in rows]


def in_r(name: str) -> bool:
    return re.search(rf"^(export\({name}\)|S3method\((\w+::)?{name},)", NAMESPACE, re.M) is not None


def test_page_of_names_lists_every_name_that_differs():
    table, old = NAMES_PAGE.split("## Old names")
    pythons = {name.rpartition(".")[2] for row in names_of_page(table, slice(1, 2)) for name in row}
    for module, prefixes in PREFIXES.items():
        for name in importlib.import_module(module).__all__:
            same = any(in_r(prefix + form) for prefix in prefixes for form in (name, name.lower()))
            assert same or name in pythons, f"{module}.{name}"
    public = {name for module in MODULES.values() for name in module.__all__}
    assert pythons <= public
    for row in names_of_page(table, slice(2, 3)):
        for name in row:
            other = "::" in name or name.startswith(("$", "gradops_error")) or name.endswith("_")
            assert other or in_r(name) or name == "variable", name
    python_rows = [row for row in names_of_page(old, slice(1, 2)) if not in_r(row[0])]
    said = {name.removeprefix("gradops.") for row in python_rows for name in row}
    assert all(any(done.endswith(f".{name}") for done in _names.RENAMED) for name in said)
    assert all(any(done.endswith(f".{name}") for name in said) for done in _names.RENAMED)
