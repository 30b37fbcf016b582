"""``print_saved_residuals`` and ``checkpoint_sequential``, compared with what the libraries say and store."""

from __future__ import annotations

import contextlib
import io
import re

import numpy as np
import pytest
from parity import numpy, on

import gradops
from gradops import Variable, autodiff, errors, ops
from gradops.functional.residuals import saved_residuals

X, W = np.ones((2, 3)), np.ones((3, 4))


def layer(x, p):
    h = gradops.checkpoint_name(ops.exp(ops.matmul(x, p["w"])), "h")
    return ops.sum(ops.sin(h) * h)


def listed(f, *args):
    return sorted((x.shape, x.where.partition(" at ")[0]) for x in saved_residuals(f, *args))


def arguments(kind):
    if kind == "variable":
        return Variable(X), {"w": Variable(W)}
    return on(kind, X), {"w": on(kind, W)}


@pytest.mark.parametrize("kind", ["variable", "numpy", "torch"])
def test_saved_tensors_are_listed_by_their_origin(kind):
    given = [((2, 3), "argument x"), ((3, 4), "argument p['w']")]
    exp, sin = ((2, 4), "output of exp"), ((2, 4), "output of sin")
    assert listed(layer, *arguments(kind)) == sorted([*given, exp, sin])
    assert listed(gradops.checkpoint(layer), *arguments(kind)) == given
    names = gradops.checkpoint(layer, gradops.save_only_these_names("h"))
    assert listed(names, *arguments(kind)) == sorted([*given, exp])
    product = [x for x in listed(gradops.checkpoint(layer, "products"), *arguments(kind)) if x not in given]
    assert [shape for shape, _ in product] == [(2, 4)]

    def scope(x, p):
        with gradops.gradient_checkpoint_scope():
            h = ops.sin(ops.exp(ops.matmul(x, p["w"])))
        return ops.sum(h**2)

    assert listed(scope, *arguments(kind)) == given


def test_lines_have_sizes_sources_and_a_total(capsys):
    gradops.print_saved_residuals(layer, np.ones((200, 3)), {"w": np.ones((3, 4))})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "float64[200,3]  4,800 B  argument x"
    assert lines[1] == "float64[3,4]       96 B  argument p['w']"
    assert re.fullmatch(r"float64\[200,4\]  6,400 B  output of exp at test_residuals.py:\d+: `h = .*`", lines[2])
    assert lines[4:] == ["total: 17,696 B in 4 tensors"]
    gradops.print_saved_residuals(lambda x: x + 1.0, np.ones(3))
    assert capsys.readouterr().out == "total: 0 B in 0 tensors\n"


def test_torch_stores_the_listed_bytes(torch):
    """Hooks of PyTorch see the same tensors in its own backward graph."""
    sizes: dict = {}

    def pack(t):
        sizes[t.untyped_storage().data_ptr()] = t.nbytes
        return t

    given = [torch.tensor(v, requires_grad=True) for v in (X, W)]
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = layer(given[0], {"w": given[1]})
    assert sum(x.bytes for x in saved_residuals(layer, *arguments("torch"))) == sum(sizes.values())
    del y


def test_jax_lists_what_jax_prints(jax):
    def f(x, w):
        return ops.sum(ops.sin(ops.matmul(x, w)))

    x, w = on("jax", X), on("jax", W)
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        jax.ad_checkpoint.print_saved_residuals(f, x, w)
    theirs = [line.partition(" ")[0] for line in text.getvalue().splitlines()]
    ours = saved_residuals(f, x, w)
    assert [f"f{x.bytes * 8 // int(np.prod(x.shape))}[{','.join(map(str, x.shape))}]" for x in ours] == theirs
    assert [x.where for x in ours[:2]] == ["argument x", "argument w"]
    assert "test_residuals.py" in ours[2].where
    assert listed(gradops.checkpoint(f), x, w) == [((2, 3), "argument x"), ((3, 4), "argument w")]


def test_tensorflow_does_not_say(tf):
    with pytest.raises(errors.BackendError, match="tensorflow does not say what its derivatives save"):
        gradops.print_saved_residuals(layer, *arguments("tensorflow"))
    assert listed(ops.exp, Variable(on("tensorflow", X))) == [((2, 3), "output of exp")]


def test_arguments(capsys):
    gradops.print_saved_residuals(lambda x, k: x * x * k, np.ones(3), k=2)
    assert "argument x" in capsys.readouterr().out
    gradops.print_saved_residuals(lambda *xs: xs[0] * xs[1], np.ones(3), np.ones(3))
    assert "argument xs[1]" in capsys.readouterr().out
    with pytest.raises(errors.ArgumentTypeError, match="`f` must be a function"):
        gradops.print_saved_residuals(3, np.ones(3))
    with pytest.raises(errors.ArgumentTypeError):
        gradops.print_saved_residuals(lambda x: x, np.ones(3, int))
    with autodiff.saved_tensors_hooks(lambda x: 1, lambda x: x):  # nothing of an array is left
        assert listed(ops.exp, np.ones(3)) == []


LAYERS = [ops.sin, lambda x: ops.exp(x) / 2.0, lambda x: x * x, ops.cos, ops.tanh]


@pytest.mark.parametrize("segments", (1, 2, 3, 5))
def test_sequential_checkpoints_preserve_gradients(backend, segments):
    def plain(x):
        for f in LAYERS:
            x = f(x)
        return ops.sum(x)

    x = on(backend, [0.3, 0.7])
    found = gradops.value_and_grad(lambda x: ops.sum(gradops.checkpoint_sequential(LAYERS, segments, x)))(x)
    for a, b in zip(found, gradops.value_and_grad(plain)(x)):
        np.testing.assert_allclose(numpy(a), numpy(b), rtol=1e-12)


def test_sequential_saves_what_torch_saves(torch):
    x = -torch.ones(5, dtype=torch.float64)

    def count(f, x):
        return sorted(x.shape for x in saved_residuals(f, x))

    for layers in (torch.nn.Sequential(*[torch.nn.Tanh() for _ in range(7)]), [torch.exp] * 5):
        theirs = count(
            lambda x, f=layers: torch.utils.checkpoint.checkpoint_sequential(f, 3, x, use_reentrant=False), x
        )
        assert count(lambda x, f=layers: gradops.checkpoint_sequential(f, 3, x), x) == theirs
    assert count(lambda x: gradops.checkpoint_sequential([ops.exp] * 5, 3, x), x.numpy()) == theirs


def test_sequential_errors():
    with pytest.raises(errors.ArgumentError, match="`segments` must be at most 2, the number of functions; got 3"):
        gradops.checkpoint_sequential([ops.sin, ops.cos], 3, np.ones(2))
    with pytest.raises(errors.ArgumentError, match="`segments` must be at least 1; got 0"):
        gradops.checkpoint_sequential([ops.sin], 0, np.ones(2))
    with pytest.raises(errors.ArgumentTypeError, match=r"`functions\[1\]` must be a function"):
        gradops.checkpoint_sequential([ops.sin, 2], 1, np.ones(2))
    with pytest.raises(errors.ArgumentTypeError, match="`functions` must be a list of functions"):
        gradops.checkpoint_sequential(3, 1, np.ones(2))
