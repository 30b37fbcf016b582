"""``torch.autograd`` behaviours, run on torch tensors and on variables, and compared.

Each scenario below is a function of a namespace ``lib`` with the same names for both. Its result, or the kind of error
it raises, must be equal.
"""

from __future__ import annotations

import copy
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from gradops import Variable, autodiff, ops
from gradops.errors import ArgumentTypeError, GradientError, ShapeError

torch = pytest.importorskip("torch")


def _leaf(*values, grad=True):
    return Variable(np.array(values, float), requires_grad=grad)


TAPE = SimpleNamespace(
    leaf=_leaf,
    array=lambda *v: np.array(v, float),
    exp=ops.exp,
    where=ops.where,
    cat=ops.concatenate,
    stack=ops.stack,
    abs=ops.abs,
    real=ops.real,
    conj=ops.conj,
    z=lambda *v: Variable(np.array(v, complex), requires_grad=True),
    backward=autodiff.backward,
    grad=autodiff.grad,
    no_grad=autodiff.no_grad,
    enable_grad=autodiff.enable_grad,
    inference_mode=autodiff.inference_mode,
    set_grad_enabled=autodiff.set_grad_enabled,
    is_grad_enabled=autodiff.is_grad_enabled,
    Function=autodiff.Function,
    once_differentiable=autodiff.once_differentiable,
    detect_anomaly=autodiff.detect_anomaly,
    gradcheck=autodiff.gradcheck,
    gradgradcheck=autodiff.gradgradcheck,
)
TORCH = SimpleNamespace(
    leaf=lambda *v, grad=True: torch.tensor(v, dtype=torch.float64, requires_grad=grad),
    array=lambda *v: torch.tensor(v, dtype=torch.float64),
    exp=torch.exp,
    where=torch.where,
    cat=torch.cat,
    stack=torch.stack,
    abs=torch.abs,
    real=torch.real,
    conj=torch.conj,
    z=lambda *v: torch.tensor(v, dtype=torch.complex128, requires_grad=True),
    backward=torch.autograd.backward,
    grad=torch.autograd.grad,
    no_grad=torch.no_grad,
    enable_grad=torch.enable_grad,
    inference_mode=torch.inference_mode,
    set_grad_enabled=torch.set_grad_enabled,
    is_grad_enabled=torch.is_grad_enabled,
    Function=torch.autograd.Function,
    once_differentiable=torch.autograd.function.once_differentiable,
    detect_anomaly=torch.autograd.detect_anomaly,
    gradcheck=torch.autograd.gradcheck,
    gradgradcheck=torch.autograd.gradgradcheck,
)

SCENARIOS = []


def scenario(f):
    SCENARIOS.append(f)
    return f


def failed(f, *args, **kwargs):
    """Return the kind of error of a call: the built-in exception class that catches it."""
    try:
        f(*args, **kwargs)
    except RuntimeError:
        return "RuntimeError"
    except ValueError:
        return "ValueError"
    except Exception as error:
        return type(error).__name__
    return "no error"


def plain(value):
    if isinstance(value, (Variable, torch.Tensor)):
        return np.asarray(
            value.detach().resolve_conj().numpy() if isinstance(value, torch.Tensor) else value.detach().numpy()
        )
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def same(a, b, where="result"):
    if isinstance(a, list):
        assert isinstance(b, list) and len(a) == len(b), (where, a, b)
        for i, (x, y) in enumerate(zip(a, b)):
            same(x, y, f"{where}[{i}]")
    elif isinstance(a, np.ndarray):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12, err_msg=where)
        assert a.shape == b.shape, where
    else:
        assert a == b, (where, a, b)


@scenario
def accumulation(lib):
    x = lib.leaf(1, 2)
    found = []
    for _ in range(3):
        (x * x).sum().backward()
        found.append(x.grad.tolist() if hasattr(x.grad, "tolist") else x.grad)
    kept = x.grad
    (x * x).sum().backward()
    return found, x.grad is kept, x.grad.requires_grad, x.grad.is_leaf


@scenario
def accumulation_with_graph_replaces(lib):
    x = lib.leaf(1, 2)
    (x * x).sum().backward()
    kept = x.grad
    (x * x * x).sum().backward(create_graph=True)
    return x.grad, kept, x.grad is kept, x.grad.requires_grad


@scenario
def vector_jacobian_products(lib):
    x = lib.leaf(1, 2)
    y = x * x
    lib.backward([y, y.sum()], [lib.array(1, 2), None])
    return x.grad, failed((x * x).backward), failed((x * x).backward, lib.array(1, 2, 3)) != "no error"


@scenario
def freed_graphs(lib):
    x = lib.leaf(1, 2)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad, failed(y.backward)


@scenario
def no_graph(lib):
    x = lib.leaf(1, 2, grad=False)
    return failed(x.sum().backward), failed(lib.grad, x.sum(), x), failed(lib.leaf(1).detach().sum().backward)


@scenario
def inputs_of_backward(lib):
    x, w = lib.leaf(1, 2), lib.leaf(3, 4)
    (x * w).sum().backward(inputs=[x])
    return x.grad, w.grad, failed((x * w).sum().backward, inputs=[])


@scenario
def unused_inputs(lib):
    x, w = lib.leaf(1, 2), lib.leaf(3, 4)
    y = (x * 2).sum()
    return (
        failed(lib.grad, y, [x, w]),
        lib.grad((x * 2).sum(), [x, w], allow_unused=True),
        lib.grad((x * 2).sum(), [x, w], materialize_grads=True),
        failed(lib.grad, y, [x, w], allow_unused=False, materialize_grads=True),
    )


@scenario
def intermediate_inputs(lib):
    x = lib.leaf(1, 2)
    h = lib.exp(x)
    return lib.grad((h * h).sum(), [h, x])


@scenario
def higher_derivatives(lib):
    x = lib.leaf(0.5, 2)
    y, found = lib.exp(x * x), []
    for _ in range(4):
        (y,) = lib.grad(y.sum(), x, create_graph=True)
        found.append(y)
    return found


@scenario
def hessian_vector_product(lib):
    x = lib.leaf(0.5, 2)
    (g,) = lib.grad((x**3 * x.sum()).sum(), x, create_graph=True)
    return lib.grad(g, x, grad_outputs=lib.array(1, 2))


@scenario
def grad_outputs_are_differentiable(lib):
    x, v = lib.leaf(1, 2), lib.leaf(3, 4)
    (g,) = lib.grad(x * x, x, grad_outputs=v, create_graph=True)
    return lib.grad(g.sum(), [x, v])


@scenario
def leaves(lib):
    x, c = lib.leaf(1, 2), lib.leaf(1, 2, grad=False)
    y = x * 2
    return (
        x.is_leaf, c.is_leaf, y.is_leaf, (c * 2).is_leaf, y.requires_grad, (c * 2).requires_grad, x.grad_fn is None,
        y.grad_fn is None, y.detach().is_leaf, y.detach().requires_grad, failed(y.requires_grad_, False),
        (y + c).requires_grad, c.requires_grad_().requires_grad,
    )  # fmt: skip


@scenario
def detach_shares_memory(lib):
    y = lib.leaf(1, 2) * 1
    d = y.detach()
    d[0] = 5
    return y, d


@scenario
def detach_in_place(lib):
    x = lib.leaf(1, 2)
    y = x * 2
    y.detach_()
    return y.requires_grad, y.is_leaf, failed(y.sum().backward), failed((x * 2)[0:1].detach_)


@scenario
def retained_gradients(lib):
    x = lib.leaf(1, 2)
    y = x * 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = y.grad
    y.retain_grad()
    y.register_hook(lambda g: g * 2)
    (y * y).sum().backward(retain_graph=True)
    first = y.grad.clone() if hasattr(y.grad, "clone") else y.grad
    y.sum().backward()
    return before, first, y.grad, x.grad, y.retains_grad, x.retains_grad, failed(lib.leaf(1, grad=False).retain_grad)


@scenario
def warning_for_grad_of_a_result(lib):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (lib.leaf(1) * 2).grad  # noqa: B018
    return len(caught)


@scenario
def hooks(lib):
    x = lib.leaf(1, 2)
    seen = []
    handles = [
        x.register_hook(lambda g: seen.append(("first", g.tolist()))),
        x.register_hook(lambda g: g * 2),
        x.register_hook(lambda g: seen.append(("third", g.tolist()))),
    ]
    (x * x + x).sum().backward()
    handles[1].remove()
    (x * 1).sum().backward()
    return seen, x.grad, failed(lib.leaf(1, grad=False).register_hook, print)


@scenario
def hook_of_wrong_shape(lib):
    x = lib.leaf(1, 2)
    x.register_hook(lambda g: lib.array(1, 2, 3))
    return failed(x.sum().backward) != "no error"


@scenario
def hooks_after_accumulation(lib):
    x = lib.leaf(1, 2)
    seen = []
    handle = x.register_post_accumulate_grad_hook(lambda v: seen.append(v.grad.tolist()))
    x.sum().backward()
    (x * x).sum().backward()
    handle.remove()
    x.sum().backward()
    return seen, failed((x * 2).register_post_accumulate_grad_hook, print)


@scenario
def modes(lib):
    x = lib.leaf(1, 2)
    found = []
    with lib.no_grad():
        found.append((x * 2).requires_grad)
        with lib.enable_grad():
            found.append((x * 2).requires_grad)
        with lib.set_grad_enabled(True):
            found.append((x * 2).requires_grad)
        found.append(lib.is_grad_enabled())
    with lib.inference_mode():
        found.append((x * 2).requires_grad)

    @lib.no_grad()
    def quiet():
        return (x * 2).requires_grad

    found += [quiet(), (x * 2).requires_grad, lib.is_grad_enabled()]
    return found


@scenario
def create_graph_inside_no_grad(lib):
    x = lib.leaf(1, 2)
    y = (x * x * x).sum()
    with lib.no_grad():
        (g,) = lib.grad(y, x, create_graph=True)
    return g, lib.grad(g.sum(), x)


@scenario
def in_place_results(lib):
    x, w = lib.leaf(1, 2, 3), lib.leaf(4, 5, 6)
    y = x * 1
    y *= w
    y += 1
    y[1] = w[0] * 2
    y[0:2] *= 3
    z = y[1:]
    z -= x[1:]
    (y * y).sum().backward()
    return y, z, x.grad, w.grad


@scenario
def in_place_on_leaves(lib):
    x = lib.leaf(1, 2)
    found = [failed(x.__iadd__, 1), failed(x.__setitem__, 0, 1.0), failed(x[0:1].__imul__, 2)]
    with lib.no_grad():
        x -= 1
        x[0] = 7
    (x * x).sum().backward()
    return found, x, x.grad, x.is_leaf


@scenario
def stale_tensors(lib):
    found = []
    for change in (
        lambda y: y.__iadd__(1), lambda y: y.__setitem__(0, 1.0), lambda y: y[0:1].__imul__(2),
        lambda y: y.detach().__imul__(2), lambda y: y + 1,
    ):  # fmt: skip
        y = lib.leaf(1, 2) * 1
        z = y * y
        change(y)
        found.append(failed(z.sum().backward))
    y = lib.leaf(1, 2) * 1
    z = lib.exp(y)
    y += 1  # exp saves its result, not its argument
    found.append(failed(z.sum().backward))
    z = lib.exp(y)
    z += 1
    found.append(failed(z.sum().backward))
    y = lib.leaf(1, 2) * 1
    z = y + 1  # nothing kept
    y *= 2
    found.append(failed(z.sum().backward))
    return found


@scenario
def versions(lib):
    y = lib.leaf(1, 2) * 1
    found = [y._version]
    y += 1
    found.append(y._version)
    y[0:1] *= 2
    found.append(y.detach()._version == y._version)
    return found


@scenario
def constants_become_results(lib):
    c, w = lib.leaf(0, 0, grad=False), lib.leaf(3, 4)
    c[0] = w[1]
    c[1] = c[0] + w[0] * 2
    c.sum().backward()
    return c, c.is_leaf, c.requires_grad, w.grad


@scenario
def views_follow_their_base(lib):
    x, w = lib.leaf(1, 2, 3, 4), lib.leaf(5, 6)
    y = x * 1
    u = y[0:2]
    y[1] = w[0]
    v = y.reshape(2, 2)
    v[1] = w
    u *= 2
    return y, u, v, *lib.grad((u * u).sum() + (v * v * v).sum(), [x, w])


@scenario
def broadcasting(lib):
    x, s = lib.leaf(1, 2, 3).reshape(3, 1), lib.leaf(2)
    w = lib.leaf(1, 2)
    return lib.grad((x * w + s).sum() + (x / w).sum(), [x, w, s])


@scenario
def indexing(lib):
    x = lib.leaf(1, 2, 3, 4)
    return x[[0, 0, 3]], *lib.grad((x[[0, 0, 3]] ** 2).sum() + (x[x > 2] ** 3).sum() + x[-1] * x[None, 1:3].sum(), x)


@scenario
def joining_and_choosing(lib):
    x, w = lib.leaf(1, 2), lib.leaf(3, 4)
    y = lib.cat([x, w * x, x]) * lib.stack([x, w, w]).reshape(-1)
    return lib.grad((lib.where(y > 5, y, y * y)).sum(), [x, w])


@scenario
def kinks(lib):
    x = lib.leaf(-1, 0, 2)
    return lib.grad(lib.abs(x).sum(), x), lib.grad((x**2.0).sum() + (x**0).sum(), x)


@scenario
def complex_gradients(lib):
    z, w = lib.z(1 + 2j, -0.5 + 0.1j), lib.leaf(2, 3)
    loss = (lib.abs(z * z * w) + lib.real(lib.conj(z) * lib.exp(z))).sum()
    return lib.grad(loss, [z, w])


@scenario
def complex_backward_needs_a_gradient(lib):
    z = lib.z(1 + 2j)
    return failed((z * z).sum().backward) if lib is TORCH else "RuntimeError"


@scenario
def complex_vector_jacobian_product(lib):
    z = lib.z(1 + 2j, 3)
    cotangent = np.array([1 + 1j, 2])
    (z * z).backward(torch.tensor(cotangent) if lib is TORCH else cotangent)
    return z.grad


@scenario
def function_basics(lib):
    class Scaled(lib.Function):
        @staticmethod
        def forward(ctx, x, w, n):
            ctx.save_for_backward(x, w)
            ctx.n = n
            return x * w * n

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            return g * w * ctx.n, g * x * ctx.n if ctx.needs_input_grad[1] else None, None

    x, w = lib.leaf(1, 2), lib.leaf(3, 4)
    first = lib.grad(Scaled.apply(x, w, 5).sum(), [x, w], create_graph=True)
    second = lib.grad((first[0] * first[1]).sum(), [x, w])
    return first, second, Scaled.apply(x, w.detach(), 5).requires_grad, failed(Scaled.apply(x, w, 5).sum().backward)


@scenario
def function_with_several_outputs(lib):
    seen = []

    class Pair(lib.Function):
        @staticmethod
        def forward(x):
            return x * 2, x * 3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.set_materialize_grads(False)

        @staticmethod
        def backward(ctx, g, h):
            seen.append((g is None, h is None))
            return (0 if g is None else g * 2) + (0 if h is None else h * 3)

    x = lib.leaf(1, 2)
    a, b = Pair.apply(x)
    (b * b).sum().backward(retain_graph=True)
    (a + b).sum().backward()
    return seen, x.grad


@scenario
def function_errors(lib):
    class Two(lib.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, g):
            return g

    class Shape(Two):
        @staticmethod
        def backward(ctx, g):
            return lib.array(1, 2, 3), None

    class Bare(lib.Function):
        pass

    x = lib.leaf(1, 2)
    return (
        failed(Two.apply(x, x).sum().backward),
        failed(Shape.apply(x, x).sum().backward) != "no error",
        failed(Bare.apply, x),
    )


@scenario
def function_marks(lib):
    class Marks(lib.Function):
        @staticmethod
        def forward(ctx, x):
            constant = x * 0
            ctx.mark_non_differentiable(constant)
            x += 1
            ctx.mark_dirty(x)
            return x, constant

        @staticmethod
        def backward(ctx, g, h):
            return g * 2 + h

    x = lib.leaf(1, 2)
    y = x * 3
    z, c = Marks.apply(y)
    (z * z + c).sum().backward()
    return z is y, y, c.requires_grad, x.grad, failed(Marks.apply, lib.leaf(1, 2))


@scenario
def anomalies(lib):
    x = lib.leaf(0, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with lib.detect_anomaly():
            y = ((x**0.5) * 0).sum()
            return failed(y.backward), x.grad


@scenario
def checks(lib):
    class Wrong(lib.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 3

    x, z = lib.leaf(0.5, -1.5), lib.z(0.5 + 1j, -1 + 0.2j)
    return (
        lib.gradcheck(lambda x: lib.exp(x) * x, (x,)),
        lib.gradcheck(lambda z: lib.abs(z) * z, (z,)),
        lib.gradgradcheck(lambda x: lib.exp(x) * x, (x,)),
        lib.gradgradcheck(lambda z: z * lib.conj(z) * z, (z,)),
        failed(lib.gradcheck, Wrong.apply, (x,)),
        lib.gradcheck(Wrong.apply, (x,), raise_exception=False),
        failed(lib.gradcheck, lib.exp, (x.detach(),)),
    )


@scenario
def graph(lib):
    x, w = lib.leaf(1, 2), lib.leaf(3, 4)
    y = lib.exp(x * w)
    (product, zero), *rest = y.grad_fn.next_functions
    ends = [n for n, _ in product.next_functions]
    return zero, len(rest), len(ends), [e.variable is v for e, v in zip(ends, (x, w))]


@scenario
def copies(lib):
    x = lib.leaf(1, 2)
    x.sum().backward()
    y = copy.deepcopy(x)
    y.sum().backward()
    return y, y.grad, x.grad, y.requires_grad, failed(copy.deepcopy, x * 2)


@scenario
def reading_values(lib):
    x = lib.leaf(3)
    return (
        x[0].item(),
        float(x.detach()[0]),
        failed(x.numpy),
        x.tolist(),
        failed(lib.leaf(1, 2).item) != "no error",
        len(x),
    )


@scenario
def user_gradient_keeps_its_memory(lib):
    x = lib.leaf(1, 2)
    g = lib.leaf(10, 20, grad=False)
    x.grad = g
    (x * x).sum().backward()
    return g, x.grad is g


@scenario
def gradient_strides(lib):
    found = []
    for make in (lambda a: a, lambda a: a.T, lambda a: a[::2]):
        array = make(np.arange(12.0).reshape(4, 3))
        t = torch.from_numpy(array) if lib is TORCH else array
        x = t.requires_grad_() if lib is TORCH else Variable(array, requires_grad=True)
        (x * 2).sum().backward()
        strides = x.grad.stride() if lib is TORCH else x.grad.data.strides
        found.append([s * (8 if lib is TORCH else 1) for s in strides])
    return found


@scenario
def hooks_that_meddle(lib):
    x, w, seen, handles = lib.leaf(2.0), lib.leaf(3.0), [], []

    def once(g):
        seen.append(g)
        handles[0].remove()

    def nested(g):
        with lib.enable_grad():
            (w * w).sum().backward()
        x.register_hook(lambda g: g + 100)
        return g * 2

    handles.append(x.register_hook(once))
    y = x * x
    y.register_hook(nested)
    y.register_hook(lambda g: g + 1)
    y.sum().backward(retain_graph=True)
    (x * 5).sum().backward()
    return [x.grad, w.grad, seen, lib.is_grad_enabled()]


@scenario
def a_hook_or_rule_that_fails_leaves_the_graph(lib):
    fail = [True]

    class Fragile(lib.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            if fail[0]:
                raise KeyError("rule")
            return g * 2

    x, w = lib.leaf(1.0, 2.0), lib.leaf(5.0, 6.0)
    y = (Fragile.apply(x) * w).sum()
    errors = [failed(y.backward, retain_graph=True), x.grad is None, lib.is_grad_enabled()]
    fail[0] = False
    y.backward()
    return [*errors, x.grad]


@scenario
def requires_grad_is_guarded(lib):
    x = lib.leaf(1.0)
    y = x * 2
    x.requires_grad = False
    return [failed(setattr, y, "requires_grad", False), y.requires_grad, x.requires_grad, (x * 2).requires_grad]


@scenario
def nothing_is_recorded_in_inference(lib):
    x, out = lib.leaf(1.0), []
    with lib.inference_mode():
        out.append((x * 2).requires_grad)
        with lib.enable_grad():
            out.append((x * 2).requires_grad)
        with lib.inference_mode(False):
            out.append((x * 2).requires_grad)
        with lib.set_grad_enabled(True):
            out.append((x * 2).requires_grad)
    return [*out, (x * 2).requires_grad]


@scenario
def powers(lib):
    x, out = lib.leaf(0.0, -1.0, 2.0), []
    for p in (0, 1, 2, 3, -1, 0.5, 2.5):
        first = lib.grad((x**p + x * x * x).sum(), x, create_graph=True)[0]
        out += [first, lib.grad(first.sum(), x)[0]]
    return [*out, lib.grad((2.0**x).sum(), x)[0]]


@pytest.mark.filterwarnings("ignore:Using backward", "ignore:(divide by zero|invalid value) encountered in power")
@pytest.mark.parametrize("run", SCENARIOS, ids=lambda f: f.__name__)
def test_tape_behaves_as_torch(run):
    want, got = plain(run(TORCH)), plain(run(TAPE))
    same(got, want)


def test_seed_gradients_may_be_numbers():
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    autodiff.backward(x * x, [[1.0, 10.0]])
    np.testing.assert_array_equal(x.grad, [2.0, 40.0])
    (found,) = autodiff.grad((x * x).sum(), [x], [1.5])
    np.testing.assert_array_equal(found, [3.0, 6.0])
    with pytest.raises(ArgumentTypeError, match="grad_variables"):
        autodiff.backward(x * x, ["a"])


@pytest.mark.parametrize(
    "step", [autodiff.backward, lambda y, g=None: autodiff.grad(y, [y], g)], ids=["backward", "grad"]
)
def test_invalid_roots_raise_gradops_errors(step):
    leaf = torch.ones(2, requires_grad=True)
    with pytest.raises(GradientError, match="does not require a gradient"):
        step(torch.ones(()))
    with pytest.raises(GradientError, match="needed for a non-scalar"):
        step(leaf * 2)
    with pytest.raises(ShapeError, match="must have the shape"):
        step(leaf * 2, torch.ones(()))
