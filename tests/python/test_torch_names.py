"""PyTorch's functions by its names: on the tape as on PyTorch's own tensors, and on the other libraries."""

from __future__ import annotations

import numpy as np
import pytest
from parity import numpy, on

import gradops
from gradops import Variable, autodiff, ops
from gradops.autodiff import forward_ad
from gradops.errors import ArgumentError, ArgumentTypeError, GradientError, ShapeError
from gradops.functional import functional_call, grad_and_value, jacfwd, jacrev, stack_module_state


def close(found, want):
    """Check that tensors are equal, or the tensors of two sequences."""
    if not isinstance(found, (list, tuple)):
        found, want = [found], [np.asarray(want) if isinstance(want, list) else want]
    for x, y in zip(found, want, strict=True):
        np.testing.assert_allclose(numpy(x), numpy(y), rtol=1e-9, atol=1e-12)


def leaf(kind: str, value):
    """A leaf that requires a gradient: of the tape, or PyTorch's own."""
    if kind == "tape":
        return Variable(np.array(value), requires_grad=True)
    return pytest.importorskip("torch").tensor(value, dtype=pytest.importorskip("torch").float64, requires_grad=True)


both = pytest.mark.parametrize("kind", ["tape", "torch"])


# gradops.functional


def test_derivatives_of_torch_func(backend, torch):
    x = np.array([0.5, 1.5])
    f, g = lambda x: ops.sin(x) * ops.sum(x), lambda x: torch.sin(x) * torch.sum(x)
    own, theirs = on(backend, x), torch.tensor(x)
    close(jacrev(f)(own), torch.func.jacrev(g)(theirs))
    close(jacfwd(f)(own), torch.func.jacfwd(g)(theirs))
    aux = jacfwd(lambda x: (f(x), "aux"), has_aux=True)(own)
    close(aux[0], torch.func.jacfwd(g)(theirs))
    assert aux[1] == "aux"
    close(grad_and_value(lambda x: ops.sum(f(x)))(own), torch.func.grad_and_value(lambda x: g(x).sum())(theirs))
    gradient, (value, name) = grad_and_value(lambda a, x: (ops.sum(a * f(x)), "aux"), argnums=1, has_aux=True)(2.0, own)
    close([gradient, value], torch.func.grad_and_value(lambda x: 2 * g(x).sum())(theirs))
    assert name == "aux"


def test_modules(torch):
    models = [torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3)).double() for _ in range(2)]
    found, want = stack_module_state(models), torch.func.stack_module_state(models)
    for ours, theirs in zip(found, want, strict=True):
        assert list(ours) == list(theirs)
        close(list(ours.values()), list(theirs.values()))
    x = torch.eye(2, dtype=torch.float64)
    one = [{k: v[0] for k, v in part.items()} for part in found]
    close(functional_call(models[1], tuple(one), x), models[0](x))
    for call, wrong in ((functional_call, 1), (stack_module_state, [1, 2])):
        with pytest.raises(ArgumentTypeError, match="must be modules of PyTorch; got int"):
            call(wrong, {}) if call is functional_call else call(wrong)
    with pytest.raises(ArgumentError, match="`models` must hold at least one module"):
        stack_module_state([])


def test_randomness_of_vmap(torch):
    x = torch.zeros(4)

    def f(x):
        return x + torch.rand(())

    for name, count in (("different", 4), ("same", 1), (None, 4)):
        assert len(set(gradops.vmap(f, randomness=name)(x).tolist())) == count
    with pytest.raises(RuntimeError, match="random"):
        gradops.vmap(f, randomness="error")(x)
    with pytest.raises(ArgumentError, match="`randomness` is a setting of PyTorch; got tensors of numpy"):
        gradops.vmap(ops.sin, randomness="same")(np.ones(2))
    with pytest.raises(ArgumentError, match="randomness"):
        gradops.vmap(ops.sin, randomness="some")


# Forward mode


@both
def test_dual_numbers(kind, torch):
    x, t = np.array([0.5, 1.5]), np.array([1.0, -2.0])
    x, t = (x, t) if kind == "tape" else (torch.tensor(x), torch.tensor(t))
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t)
        close(forward_ad.unpack_dual(dual), (x, t))
        y = ops.sin(dual) * ops.sum(dual)
        primal, tangent = forward_ad.unpack_dual(y)
        close([primal, tangent], gradops.jvp(lambda x: ops.sin(x) * ops.sum(x), (x,), (t,)))
        assert forward_ad.unpack_dual(ops.array(1.0)).tangent is None
    assert forward_ad.unpack_dual(y).tangent is None
    assert not getattr(primal, "requires_grad", False) and not getattr(tangent, "requires_grad", False)


@both
def test_reverse_over_forward_mode(kind):
    x, t = leaf(kind, 3.0), leaf(kind, 2.0)
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(forward_ad.make_dual(x, t) ** 3).tangent
    tangent.backward()
    close([tangent.detach(), x.grad, t.grad], [54.0, 36.0, 27.0])


@pytest.mark.parametrize("library", ["jax", "tensorflow", "numpy"])
def test_dual_numbers_of_libraries_without_their_own(library):
    x = gradops.to_backend(np.array([1.0, 2.0]), library)
    with forward_ad.dual_level():
        y = forward_ad.unpack_dual(ops.exp(forward_ad.make_dual(x, x)))
    close(y, [np.exp([1.0, 2.0]), np.array([1.0, 2.0]) * np.exp([1.0, 2.0])])
    assert type(y.tangent.data) is type(y.primal.data)


def test_nested_levels_give_second_derivatives():
    with forward_ad.dual_level() as outer:
        x = forward_ad.make_dual(2.0, 1.0)
        with forward_ad.dual_level():
            slope = forward_ad.unpack_dual(forward_ad.make_dual(x, 1.0) ** 4).tangent
        assert outer == 0 and forward_ad.unpack_dual(slope).tangent.item() == 48.0
        assert forward_ad.unpack_dual(forward_ad.make_dual(x, 3.0), level=0).tangent.item() == 3.0


def test_errors_of_dual_numbers():
    with pytest.raises(GradientError, match="called in a level.\nHint: put it in"):
        forward_ad.make_dual(1.0, 1.0)
    with pytest.raises(GradientError, match="no level is open"):
        forward_ad.exit_dual_level()
    with forward_ad.dual_level():
        for x, t, kind, message in (
            (np.ones(2), np.ones(3), ShapeError, r"must have the shape \(2,\) of `tensor`; got \(3,\)"),
            (np.ones(2), np.ones(2, "float32"), ArgumentTypeError, "must have the dtype float64"),
            (np.arange(2), np.arange(2), ArgumentTypeError, "must be floating; got dtype int64"),
            ("a", 1.0, ArgumentTypeError, "must be a tensor; got str"),
        ):
            with pytest.raises(kind, match=message):
                forward_ad.make_dual(x, t)
        with pytest.raises(GradientError, match="no dual level has the number 3; 1 are open"):
            forward_ad.unpack_dual(1.0, level=3)
        with pytest.raises(GradientError, match="closes the innermost level, 0; got 2"):
            forward_ad.exit_dual_level(level=2)


# Hooks of several tensors and of nodes


@both
@pytest.mark.parametrize("mode", ["all", "any"])
def test_hooks_of_several_tensors(kind, mode):
    a, b, c = (leaf(kind, x) for x in (2.0, 3.0, 5.0))
    y = a * b
    seen = []
    handle = autodiff.register_multi_grad_hook([a, y, c], lambda found: seen.append(found), mode=mode)
    (y * 2).backward(retain_graph=True)
    a.grad = b.grad = None
    (y * c).backward(retain_graph=True)
    shown = [[None if g is None else float(g) for g in x] if mode == "all" else float(x) for x in seen]
    assert shown == ([[6.0, 2.0, None], [15.0, 5.0, 6.0]] if mode == "all" else shown) and len(shown) == 2
    handle.remove()
    y.backward()
    assert len(seen) == 2


def test_errors_of_hooks_of_several_tensors():
    x = Variable(1.0, requires_grad=True)
    for tensors, fn, mode, kind in (
        ([x], 1, "all", ArgumentTypeError),
        ([x], print, "some", ArgumentError),
        ([], print, "all", ArgumentError),
        ([1.0], print, "all", ArgumentTypeError),
        ([Variable(1.0)], print, "all", GradientError),
    ):
        with pytest.raises(kind):
            autodiff.register_multi_grad_hook(tensors, fn, mode=mode)


@both
@pytest.mark.parametrize("create_graph", [False, True])
def test_hooks_of_nodes(kind, create_graph):
    x, w = leaf(kind, [1.0, 2.0]), leaf(kind, [3.0, 4.0])
    y = x * w
    node, seen = y.grad_fn, []
    node.metadata["note"] = 1
    assert y.grad_fn.metadata == {"note": 1}
    before = node.register_prehook(lambda outputs: seen.append(numpy(outputs[0]).tolist()))
    scaled = node.register_prehook(lambda outputs: (outputs[0] * 10.0,))

    def after(inputs, outputs):
        seen.append([numpy(g).tolist() for g in (*inputs, *outputs)])
        return inputs[0] * 2.0, inputs[1]

    handle = node.register_hook(after)
    y.sum().backward(retain_graph=True, create_graph=create_graph)
    assert seen == [[1.0, 1.0], [[30.0, 40.0], [10.0, 20.0], [10.0, 10.0]]]
    close([x.grad.detach(), w.grad.detach()], [[60.0, 80.0], [10.0, 20.0]])
    for one in (before, scaled, handle):
        one.remove()
    x.grad = w.grad = None
    y.sum().backward()
    close([x.grad, w.grad], [[3.0, 4.0], [1.0, 2.0]])


@both
def test_hooks_of_nodes_of_complex_numbers(kind):
    """A hook sees the gradient itself, not the conjugate that the rule works on."""
    x = leaf(kind, [1.0, 2.0])
    z = ops.exp(ops.multiply(x, 1j))
    seen = []
    z.grad_fn.register_hook(lambda inputs, outputs: seen.append((inputs[0], outputs[0])))
    ops.sum(ops.imag(z)).backward()
    close(seen[0][1], [1j, 1j])
    close(seen[0][0], 1j * np.conj(np.exp(1j * np.array([1.0, 2.0]))))
    close(x.grad, np.cos([1.0, 2.0]))


def test_a_hook_of_a_node_reads_another_derivatives_variable():
    def scaled(x, k):
        y = x**2
        y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * k,))
        return y

    mixed = gradops.grad(lambda k: gradops.grad(lambda x: scaled(x, k))(3.0))
    assert mixed(5.0) == 6.0


def test_hooks_of_nodes_see_single_gradients():
    x = Variable([1.0, 2.0], requires_grad=True)
    y, seen = x**2, []
    y.grad_fn.register_prehook(lambda outputs: seen.append(outputs[0].shape))
    (found,) = autodiff.grad(y, x, np.eye(2), is_grads_batched=True)
    close(found, np.diag([2.0, 4.0]))
    assert seen == [(2,), (2,)]


def test_hooks_of_nodes_with_several_results():
    x = Variable(np.arange(4.0), requires_grad=True)
    first, second = ops.split(x * 2.0, 2)
    node, seen = first.grad_fn.next_functions[0][0], []
    node.register_prehook(lambda outputs: seen.append([g.data.tolist() for g in outputs]))
    ops.sum(first * 3.0).backward()
    assert seen == [[[3.0, 3.0], [0.0, 0.0]]]
    close(x.grad, [6.0, 6.0, 0.0, 0.0])
    y = x * 1.0
    y.grad_fn.register_hook(lambda inputs, outputs: (None, None, None))
    with pytest.raises(GradientError, match="must return 1 gradients, as `grad_inputs`; got 3|must return 2"):
        y.sum().backward()
    with pytest.raises(ArgumentTypeError, match="`fn` must be a function"):
        y.grad_fn.register_hook(1)
    z = x * x
    z.sum().backward()
    with pytest.raises(GradientError, match="was freed"):
        z.grad_fn.register_hook(print)


# Saved tensors that are written


@both
def test_mutation_of_saved_tensors(kind):
    w = leaf(kind, [1.0, 2.0])
    with autodiff.allow_mutation_on_saved_tensors():
        x = w * 3.0
        y = (x**2).sum() + ops.sum(ops.matmul(x, x))
        x[0] = 100.0
        z = (x * w).sum()
        x.mul_(2.0) if kind == "torch" else x.__imul__(2.0)
        (y + z).backward()
    close(w.grad, [36.0 + 100.0, 72.0 + 12.0])
    x = w * 3.0
    y = (x**2).sum()
    x[0] = 100.0
    with pytest.raises(RuntimeError, match="version|modified"):
        y.backward()


# Edges as roots, and several gradients at once


@both
def test_gradient_edge_as_a_root(kind):
    x = leaf(kind, [1.0, 2.0])
    y = x**3
    edge, ones = autodiff.get_gradient_edge(y), ops.array([1.0, 10.0])
    ones = ones if kind == "tape" else gradops.to_backend(ones, "torch")
    (found,) = autodiff.grad(edge, x, ones, retain_graph=True)
    close(found, [3.0, 120.0])
    autodiff.backward([edge], [ones], retain_graph=True)
    close(x.grad, [3.0, 120.0])
    x.grad = None
    total = autodiff.get_gradient_edge(y.sum())
    autodiff.backward(total) if kind == "tape" else autodiff.backward(total, gradops.to_backend(np.array(1.0), "torch"))
    close(x.grad, [3.0, 12.0])
    close(autodiff.grad(autodiff.get_gradient_edge(x), x, ones), [ones])


@both
@pytest.mark.parametrize("create_graph", [False, True])
def test_several_gradients_at_once(kind, create_graph):
    x, w = leaf(kind, [1.0, 2.0]), leaf(kind, 3.0)
    y = ops.exp(x) * w
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 5.0]])
    rows = rows if kind == "tape" else gradops.to_backend(rows, "torch")
    found = autodiff.grad(y, [x, w], rows, retain_graph=True, create_graph=create_graph, is_grads_batched=True)
    single = [autodiff.grad(y, [x, w], row, retain_graph=True) for row in rows]
    close([g.detach() for g in found], [np.stack([numpy(s[i]) for s in single]) for i in range(2)])
    if create_graph:
        (second,) = autodiff.grad(found[0].sum(), w)
        close(second, float(np.sum(numpy(rows) @ np.exp([1.0, 2.0]))))


def test_several_gradients_through_a_rule_that_reads_values():
    """Such a rule runs once for each gradient."""

    @gradops.custom_gradient
    def clipped(x):
        return x * 1.0, lambda g: g if float(ops.sum(g)) > 1.0 else 0.0 * g

    x = Variable([1.0, 2.0], requires_grad=True)
    (found,) = autodiff.grad(clipped(x), x, np.array([[1.0, 1.0], [0.5, 0.0]]), is_grads_batched=True)
    close(found, [[1.0, 1.0], [0.0, 0.0]])
    with pytest.raises(ArgumentError, match="needs `grad_outputs`"):
        autodiff.grad(x * x, x, is_grads_batched=True)
    with pytest.raises(ShapeError, match="first dimension of one size"):
        autodiff.grad([x * x, x * 2], x, [np.ones((2, 2)), np.ones((3, 2))], is_grads_batched=True)


# gradcheck


@pytest.mark.parametrize("fast", [False, True])
def test_checks_of_forward_mode_and_batches(backend, fast):
    def f(x):
        return ops.exp(x), ops.sum(x**2)

    x = on(backend, np.array([0.5, 1.5]))
    if backend == "torch":
        x.requires_grad_()
    assert autodiff.gradcheck(f, (x,), check_forward_ad=True, check_batched_grad=True, fast_mode=fast)


def test_checks_find_wrong_derivatives(torch):
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

        @staticmethod
        def jvp(ctx, t):
            return 3 * ctx.saved_tensors[0] * t

        @staticmethod
        def vmap(info, places, x):
            return Wrong.apply(x), 0

    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    assert autodiff.gradcheck(Wrong.apply, (x,))
    for fast in (False, True):
        with pytest.raises(GradientError, match="forward derivative of output 0 for input 0 is wrong"):
            autodiff.gradcheck(Wrong.apply, (x,), check_forward_ad=True, fast_mode=fast)

    class Branching(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0

        @staticmethod
        def backward(ctx, g):
            return g if g.sum() > 0 else 1.0 * g

    assert autodiff.gradcheck(Branching.apply, (x,))
    with pytest.raises(GradientError, match="several upstream gradients at once of output 0 raise an error"):
        autodiff.gradcheck(Branching.apply, (x,), check_batched_grad=True)
