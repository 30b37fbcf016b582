"""What every backend must satisfy, tested through the backend contract alone, including backends defined by tests."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import fifth
import numpy as np
import pytest

import gradops
from gradops import Variable, backends, functional, ops
from gradops.backends import interface
from gradops.errors import BackendError, GradientError, MixedBackendsError

ALL = (*backends.NAMES, *fifth.FIFTH)
NAMES = (*ALL, "text", "traced", "batched")
pytestmark = pytest.mark.filterwarnings("ignore:You are comparing a array_api_strict dtype")
SOURCES = Path(gradops.__file__).parent
X = np.array([0.5, -1.0, 2.0])


@pytest.fixture(scope="module", params=ALL)
def backend(request):
    if request.param in fifth.FIFTH:
        fifth.FIFTH[request.param]()
    elif not backends.installed(request.param):
        pytest.skip(f"{request.param} is not installed")
    found = backends.lookup(request.param)
    found.prepare("float64")
    return found


def numbers(x) -> np.ndarray:
    """Return the values of a tensor or variable; nested structures as one array."""
    if isinstance(x, (tuple, list)):
        return np.stack([numbers(part) for part in x])
    return backends.backend_of(data := x.data if isinstance(x, Variable) else x).to_numpy(data)


def close(x, wanted) -> None:
    np.testing.assert_allclose(numbers(x), wanted, rtol=1e-12, atol=1e-14)


def f(x):
    return ops.sum(ops.sin(x) * x)


DF = np.sin(X) + X * np.cos(X)
DDF = 2 * np.cos(X) - X * np.sin(X)


@gradops.custom_gradient
def odd(x):
    """Return exp(x) with 7 x^2 as its declared derivative."""
    return ops.exp(x), lambda upstream: ops.multiply(upstream, ops.multiply(7.0, ops.square(x)))


# Values ---------------------------------------------------------------------------------------------------------------


def test_conversion(backend):
    for value in (X, X.tolist(), 1.5, True, [[1, 2], [3, 4]], np.array([1 + 2j]), np.float32(2)):
        x = backend.convert(value)
        assert backends.backend_of(x) is backend and backend.is_tensor_type(type(x)) and backend.owns(type(x))
        np.testing.assert_array_equal(backend.to_numpy(x), value)
        assert backends.backend_of(backend.convert(x)) is backend
    np.testing.assert_array_equal(numbers(backend.convert([backend.convert(1.0), backend.convert(2.0)])), [1, 2])
    with pytest.raises((TypeError, ValueError)):
        backend.convert(object())


@pytest.mark.parametrize("name", ["bool", "uint8", "int32", "int64", "float32", "float64", "complex64", "complex128"])
def test_dtypes(backend, name):
    x = backend.convert([0, 1], name)
    assert backend.dtype_name(x) == ops.dtype(x) == name
    assert backend.to_numpy(x).dtype.name == name
    assert ops.dtype(ops.cast(x, "float32")) == "float32"


def test_numbers_and_lists_get_the_default_dtypes(backend):
    assert backend.dtype_name(backend.convert(1.5)) == "float64"
    assert backend.dtype_name(backend.convert([1, 2])) == "int64"


def test_every_required_kernel_exists(backend):
    assert len(interface.required_kernels) > 100
    lacking = {op for op in interface.required_kernels if backend.kernel(op) is None}
    assert lacking == fifth.LACKING.get(backend.name, set())


def test_ops(backend):
    x = backend.convert(X)
    assert backends.backend_of(ops.exp(x)) is backend
    close(ops.exp(x), np.exp(X))
    close(ops.add(x, 1), X + 1)
    close(ops.softmax(x), np.exp(X) / np.exp(X).sum())
    close(ops.stack([x, X]), [X, X])
    close(ops.matmul(ops.reshape(x, (1, 3)), ops.reshape(x, (3, 1))), [[X @ X]])
    assert ops.shape(ops.concatenate([x, x])) == (6,)
    close(ops.mean(x), X.mean())  # composed or native


def test_the_default_backend(backend):
    with gradops.config.backend_scope(backend.name):
        assert backends.backend_of(ops.exp(1.0)) is backend


def test_mixing_two_libraries_raises(backend):
    library = next((name for name in ("torch", "jax", "tensorflow") if backends.installed(name)), "numpy")
    if backend.name in fifth.FIFTH and library == "numpy":
        pytest.skip("NumPy's arrays yield to it, and no other library is installed")
    other = fifth.strict() if backend.name not in fifth.FIFTH else backends.lookup(library)
    x, y = backend.convert(X), other.convert(X)
    if backend.yields:
        assert backends.backend_of(ops.add(x, y)) is other
        return
    with pytest.raises(MixedBackendsError, match="all tensors must be of one backend"):
        ops.add(x, y)
    assert backends.backend_of(ops.add(x, X)) is backend


# Derivatives ----------------------------------------------------------------------------------------------------------


def test_grad(backend):
    x = backend.convert(X)
    value, gradient = gradops.value_and_grad(f)(x)
    assert backends.backend_of(value) is backends.backend_of(gradient) is backend
    close(value, np.sum(np.sin(X) * X))
    close(gradient, DF)
    close(gradops.grad(lambda x: ops.sum(gradops.grad(f)(x)))(x), DDF)
    close(gradops.grad(lambda x: float(ops.sum(ops.exp(X))))(x), 0 * X)
    (value, rest), gradient = gradops.value_and_grad(lambda x: (f(x), {"x": ops.exp(x)}), has_aux=True)(x)
    assert backends.backend_of(rest["x"]) is backend
    close(gradops.grad(lambda x, y: ops.sum(x * y), (0, 1))(x, backend.convert(2 * X)), [2 * X, X])


def test_gradient_flow_functions(backend):
    x = backend.convert(X)
    close(gradops.grad(lambda x: ops.sum(gradops.stop_gradient(ops.exp(x)) * x))(x), np.exp(X))
    close(gradops.grad(lambda x: ops.sum(gradops.scaled_gradient(ops.exp(x), -3.0)))(x), -3 * np.exp(X))

    def scoped(x):
        with gradops.stop_gradient_scope():
            constant = ops.exp(x)
        return ops.sum(constant * x)

    close(gradops.grad(scoped)(x), np.exp(X))


def test_custom_gradients(backend):
    x = backend.convert(X)
    close(odd(x), np.exp(X))
    close(gradops.grad(lambda x: ops.sum(odd(x)))(x), 7 * X**2)
    close(gradops.grad(lambda x: ops.sum(gradops.grad(lambda x: ops.sum(odd(x)))(x)))(x), 14 * X)
    close(gradops.grad(lambda x: ops.sum(odd(ops.sin(x)) * 2))(x), 14 * np.sin(X) ** 2 * np.cos(X))


@pytest.mark.short_cases(0, "jax")
def test_gradcheck(backend):
    def tensor(values):
        x = backend.convert(values)
        return x.requires_grad_() if backend.derivatives.own_tape else x

    wrong = gradops.custom_gradient(lambda z: ops.exp(z), lambda z, upstream: ops.multiply(upstream, ops.sin(z)))
    for values in (X, X + 1j * X[::-1]):
        assert gradops.autodiff.gradcheck(lambda z: (ops.sin(z), ops.abs(z) * 2), tensor(values))
        assert gradops.autodiff.gradgradcheck(lambda z: ops.sin(z) ** 2, tensor(values))
        with pytest.raises(GradientError, match="is wrong at"):
            gradops.autodiff.gradcheck(wrong, tensor(values))
        assert not gradops.autodiff.gradcheck(wrong, tensor(values), fast_mode=True, raise_exception=False)


def test_products_and_matrices(backend):
    x, v = backend.convert(X), backend.convert(np.array([1.0, 2.0, -1.0]))
    w = numbers(v)
    y, product = functional.vjp(ops.sin, x, v)
    close(y, np.sin(X))
    close(product, w * np.cos(X))
    close(functional.jvp(ops.sin, x, v)[1], w * np.cos(X))
    close(functional.jacobian(ops.sin, x), np.diag(np.cos(X)))
    close(functional.jacobian(ops.sin, x, strategy="forward-mode"), np.diag(np.cos(X)))
    close(functional.jacobian(ops.sin, x, strategy="reverse-mode"), np.diag(np.cos(X)))
    close(functional.jacobian(odd, x, strategy="reverse-mode"), np.diag(7 * X**2))
    close(functional.hessian(f, x), np.diag(DDF))
    close(functional.hvp(f, x, v)[1], DDF * w)
    close(functional.vhp(f, x, v)[1], DDF * w)
    assert isinstance(functional.vjp(lambda a, b: (a * b, a), (x, v), (v, v))[1], tuple)
    with pytest.raises(GradientError, match="does not (depend|require gradients)"):
        functional.jacobian(lambda x: ops.exp(v), x, strict=True)


def test_checkpoints(backend):
    x = backend.convert(X)
    calls = []

    def layer(x):
        calls.append(1)
        return ops.sin(x) * x

    close(gradops.grad(lambda x: ops.sum(gradops.checkpoint(layer)(x)))(x), DF)
    assert calls
    close(gradops.grad(lambda x: ops.sum(gradops.checkpoint(odd)(x)))(x), 7 * X**2)


def test_jit(backend):
    x = backend.convert(X)
    calls = Mock()

    def counted(x):
        calls()
        return ops.sin(x) * x

    compiled = gradops.jit(counted)
    if backend.name in fifth.FIFTH:
        with pytest.raises(BackendError, match=f"`jit`: the backend '{backend.name}' has no compiler"):
            compiled(x)
        return
    close(compiled(x), np.sin(X) * X)
    traced = calls.call_count
    close(compiled(backend.convert(2 * X)), np.sin(2 * X) * 2 * X)
    assert calls.call_count == traced
    close(gradops.jit(gradops.grad(f))(x), DF)
    close(gradops.jit(gradops.grad(lambda x: ops.sum(odd(x))))(x), 7 * X**2)


def test_variables(backend):
    x = backend.convert(X)
    if backend.derivatives.own_tape:
        with pytest.raises(BackendError, match="needs no Variable"):
            Variable(x)
        x = x.requires_grad_()
        f(x).backward()
        close(x.grad, DF)
        return
    v = Variable(x, requires_grad=True)
    f(v).backward()
    assert backends.backend_of(v.grad.data) is backend
    close(v.grad, DF)
    f(v).backward()
    close(v.grad, 2 * DF)
    v = Variable(x, requires_grad=True)
    ops.sum(odd(v)).backward()
    close(v.grad, 7 * X**2)
    close(gradops.gradient(ops.sum(gradops.gradient(f(v), v)), v), DDF)


def test_unsupported_tensor_methods_raise(backend):
    x = backend.convert(X)
    if backend.derivatives.own_tape:
        pytest.skip("its tensors can")
    with pytest.raises(GradientError, match="make it a variable"):
        gradops.set_requires_gradient(x)
    with pytest.raises(GradientError, match="make `x` a variable"):
        gradops.gradient(ops.sum(x), x)


# Registration ---------------------------------------------------------------------------------------------------------


def namespace(**members):
    kernels = dict.fromkeys((op.replace(".", "_") for op in interface.required_kernels), lambda *_: None)
    needed = dict.fromkeys(interface.lacking(interface.Backend, None), lambda *_: None)
    return SimpleNamespace(**{**kernels, **needed, **members})


def test_incomplete_backend_is_refused():
    lacks = namespace(convert=None, exp=None, sum=None, derivatives=SimpleNamespace(stop=lambda x: x))
    with pytest.raises(BackendError) as caught:
        backends.register("broken", lacks)
    message = str(caught.value)
    assert "'broken' lacks convert; derivatives." in message
    assert "derivatives.stopped, custom, value_and_grad" in message and "stop," not in message
    assert "the kernels exp, sum." in message
    with pytest.raises(BackendError, match="Unknown backend 'broken'"):
        backends.lookup("broken")


def test_partial_backends_may_lack_kernels():
    root = "tests.partial"
    part = backends.register("partial", namespace(exp=None), root, partial=True)
    try:
        assert part.kernel("exp") is None and part.derivatives.native is False
    finally:
        del backends._loaded["partial"], backends._ROOTS[root]


def test_every_contract_member_has_a_docstring():
    for contract in (interface.Backend, interface.Derivatives):
        for member in interface.members(contract):
            value = vars(contract)[member]
            assert not callable(value) or value.__doc__, f"{contract.__name__}.{member}"


# Names ----------------------------------------------------------------------------------------------------------------

USERS_CHOICE = {"config.py"}
"""Files that deal with the backend named by the user."""


def asks_for_a_name(tree: ast.AST):
    """Yield code that compares with a backend's name, looks something up by it, or imports a backend by name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            parts = [part for s in sides for part in getattr(s, "elts", [s])]
            constants = {c.value for c in parts if isinstance(c, ast.Constant)} - {"text"}
            of_a_package = any(getattr(s, "id", "") == "package" for s in sides)  # names the package that raises
            if constants.intersection(NAMES) and not of_a_package:
                yield node
        elif isinstance(node, ast.Subscript) and ast.unparse(node.slice) in ("backend.name", "owner.name"):
            yield node
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "lookup":
            given = {c.value for a in node.args for c in ast.walk(a) if isinstance(c, ast.Constant)}
            if given - {"text"}:  # "text" is gradops' own, not a library
                yield node


@pytest.mark.documents
def test_no_code_branches_on_a_backend_name():
    found = []
    for path in sorted(SOURCES.rglob("*.py")):
        file = path.relative_to(SOURCES).as_posix()
        if file.startswith("backends/") or file in USERS_CHOICE:
            continue
        asked = [f"{file}:{node.lineno}: {ast.unparse(node)}" for node in asks_for_a_name(ast.parse(path.read_text()))]
        found += asked
    assert found == []


def test_search_for_backend_names_works():
    asked = 'x.name == "numpy"; kind == "jax"; y.name in ("torch", "jax"); lookup("jax"); CALLS[backend.name]'
    asked += '; "torch" in sys.modules'
    assert len(list(asks_for_a_name(ast.parse(asked)))) == 6
    assert not list(asks_for_a_name(ast.parse('parameter.name == "upstream"; lookup(name); package == "torch"')))


# Quirks ---------------------------------------------------------------------------------------------------------------

OF_ONE_PLACE = {
    "PyTorch's compiler": (
        ("backends/torch/", "backends/tracing.py"),
        r"dynamo|torch\.compile|fullgraph|graph break|is_compiling",
    ),
    "pandas": ("ops/_pandas.py", r"(?<!\b_)pandas"),
}
"""For each quirk of a library: the one folder or file allowed to handle it, and words that reveal it elsewhere."""


def speaks_of(source: str, words: str) -> list[str]:
    """Return the lines of code and comments with one of the words; docstrings may mention a library to users."""
    if not re.search(words, source):
        return []
    tree = ast.parse(source)
    told = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    lines = enumerate(source.splitlines(), 1)
    return [f"{number}: {line.strip()}" for number, line in lines if number not in told and re.search(words, line)]


@pytest.mark.documents
@pytest.mark.parametrize("quirk", OF_ONE_PLACE)
def test_each_library_quirk_is_handled_in_one_place(quirk):
    home, words = OF_ONE_PLACE[quirk]
    files = {path.relative_to(SOURCES).as_posix(): path.read_text() for path in sorted(SOURCES.rglob("*.py"))}
    found = {file: speaks_of(text, words) for file, text in files.items()}
    assert any(lines for file, lines in found.items() if file.startswith(home))
    assert {file: lines for file, lines in found.items() if lines and not file.startswith(home)} == {}
