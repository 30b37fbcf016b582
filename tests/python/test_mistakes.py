"""Natural mistakes, typed by the habits of six kinds of users, and what the error must say.

Each was judged when it was added: the error names what was given and what to write, and no hint leads astray. Texts are
parts of the message; ``|`` separates two parts.
"""

import numpy as np
import pytest

import gradops
from gradops import Variable, autodiff, config, inference, ops, text  # noqa: F401
from gradops.scipy import optimize, special, stats  # noqa: F401

x, A = np.array([1.0, 2.0, 3.0]), np.arange(6.0).reshape(2, 3)
v = Variable(x, requires_grad=True)


def f(x):
    return ops.sum(x**2)


def nll(p):
    return -ops.sum(stats.norm.logpdf(x, p["m"], ops.exp(p["s"])))


class Doubled(autodiff.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_variables


class Table:
    __repr__ = "two\nlines".__str__


MISTAKES = {
    "keras3": {
        "ops.transpose(A, perm=(1, 0))": "write `axes=`",
        "ops.concatenate(x, x)": "`axis` must be a whole number; got a tensor|several tensors are one argument, a list",
        "ops.max(x, x)": "`ops.maximum()` compares two tensors",
        "ops.categorical_crossentropy(np.array([0]), A[:1])": "`ops.sparse_categorical_crossentropy()`",
        "ops.one_hot(x, 3)": "`x` must hold whole numbers; got dtype float64",
        "gradops.grad(gradops.custom_gradient(lambda x: ops.sum(x)))(x)": "`f` must return a pair|got a Variable",
        "gradops.grad(gradops.custom_gradient(lambda x: (x, lambda: x)))(1.0)": "must take the upstream gradient",
        "config.set_floatx('double')": "`dtype` must be one of float16|got 'double'",
        "gradops.to_backend(x, 'keras')": "Unknown backend 'keras': expected one of numpy, torch",
        "v.assign(x)": "`x.data = value`",
    },
    "PyTorch": {
        "ops.sum(A, dim=1)": "write `axis=`",
        "v.view(3, 1)": "`x.reshape(...)`",
        "v.cuda()": "`gradops.to_backend(x, \"torch\")`",
        "Doubled.apply(v).sum().backward()": "write `ctx.saved_tensors`",
        "v.clamp(0, 1)": "no attribute 'clamp'|`ops.clip(x, ...)`",
        "(v * 2).backward()": "non-scalar of shape (3,)|reduce it to a scalar",
        "(lambda y: (y.backward(), y.backward()))(ops.sum(v**2))": "`retain_graph=True`",
        "v.__setitem__(0, 5.0)": "gradops.autodiff.no_grad()",
        "v.item()": "`item` returns the only element; the variable has the shape (3,)|`x.tolist()`",
        "Variable(np.array([1, 2]), requires_grad=True)": "got dtype int64|ops.cast",
        "autodiff.grad(ops.sum(v**2), x)": "`inputs[0]` does not require a gradient|Variable(x, requires_grad=True)",
        "ops.gather(A, 1, [0])": "did you mean `ops.take_along_axis`?",
        "autodiff.gradcheck(f, np.array([1, 2]))": "no input requires a gradient|floating",
    },
    "JAX": {
        "gradops.grad(f, x)": "`argnums` must be|got ndarray|`grad(f)(x)`",
        "gradops.value_and_grad(f, x)": "`value_and_grad(f)(x)`",
        "gradops.grad(f, argnum=0)": "none that is called `argnum`|write `argnums=`",
        "gradops.grad(f, argnums=1)(x)": "the 1 positional arguments of the call; got 1|count from 0",
        "gradops.vmap(f, in_dims=0)": "write `in_axes=`",
        "gradops.vmap(lambda x, y: x * y)(x, x[:2])": "one size; got (3,) along 0, (2,) along 0",
        "gradops.jit(f, static_argnum=0)": "write `static_argnums=`",
        "v.at[0].set(1.0)": "`ops.scatter_update(x, indices, updates)`",
        "gradops.hvp(f, x, x)": "`primals` must be a tuple|`gradops.functional.hvp(f, x, v)`",
        "ops.scan(lambda c, x: c + x, 0.0, x)": "`f` must return a pair",
    },
    "TensorFlow": {
        "gradops.to_backend(x, 'tf')": "Unknown backend 'tf'|did you mean \"tensorflow\"?",
        "gradops.function(f)": "did you mean `gradops.jit`?",
        "ops.reduce_logsumexp(x)": "did you mean `ops.logsumexp`?",
        "gradops.gradient(ops.sum(x), x)": "`x = gradops.Variable(x, requires_grad=True)`",
        "v.assign_add(x)": "`x.data = value`",
        "ops.concat([x, x], 0)": "did you mean `ops.concatenate`?",
    },
    "statistician": {
        "gradops.scaled_gradient(x, 'a')": "`scaled_gradient`: `scale` must be a number|got 'a'",
        "inference.fit(nll, {'m': 0.0, 's': 0.0}).to_arviz()": "`fit.draws(n).to_arviz()`",
        "inference.fit(nll, {'m': 0.0, 's': 0.0}).coef": "`fit.params`",
        "inference.fit(nll, {'m': 0.0, 's': 0.0}).confint()": "`fit.conf_int()`",
        "inference.fit(nll, {'m': 0.0, 's': 0.0}).conf_int(level=0.9)": "the arguments `alpha`, `method`, and none",
        "inference.fit(nll, {'m': 0.0, 's': 0.0}).predict({'x': x})": "of the parameters, or a name; got dict",
        "inference.fit(nll, {'m': 0.0, 's': 0.0}).predict(newdata=x)": "has the arguments `g`, `se`, and none",
        "stats.norm.logpdf(x, sd=1)": "unexpected keyword argument 'sd'|x, loc, scale",
        "optimize.minimize(f, x, method='bfg')": "did you mean \"BFGS\"?",
        "special.digama(1.0)": "did you mean `digamma`?",
        "gradops.maximize_likelihood(nll, {'m': 0.0})": "did you mean `inference.fit`?",
        "gradops.grad(lambda p: np.array([p[0], p[1]]).sum())(x)": "`ops.stack([x, ...])`",
        "ops.exp(Table())": "got a Table.",
    },
    "texts": {"text.TGD": "did you mean `text.Descent`?", "text.TextLoss": "did you mean `text.judge`?"},
}  # fmt: skip
CASES = [(user, code) for user, codes in MISTAKES.items() for code in codes]


def said_by(code: str) -> str:
    with pytest.raises((AttributeError, TypeError, ValueError, RuntimeError)) as caught:
        eval(code)
    return str(caught.value)


@pytest.mark.parametrize("user, code", CASES)
def test_error_says_what_to_write(user, code):
    said = said_by(code)
    for part in MISTAKES[user][code].split("|"):
        assert part in said


def test_hints_name_no_page_and_no_unrelated_class():
    assert "docs/" not in said_by("np.asarray(v)")
    assert said_by("text.Optimizer") == "module 'gradops.text' has no attribute 'Optimizer'"


def test_unknown_parameter_in_a_likelihood_is_an_error_with_the_known_names():
    with pytest.raises(KeyError) as caught:
        inference.fit(lambda p: p["mu"] ** 2, {"m": 0.0})
    if hasattr(caught.value, "__notes__"):  # Python 3.11
        assert caught.value.__notes__ == ["The parameters are those of `start`: m."]


def test_attributes_of_other_libraries_are_hidden_and_absent():
    fitted = inference.fit(nll, {"m": 0.0, "s": 0.0})
    for one, name in ((v, "view"), (v, "cuda"), (fitted, "coef"), (fitted, "AIC")):
        assert not hasattr(one, name) and name not in dir(one)
    assert {"reshape", "grad"} <= set(dir(v)) and {"params", "theta"} <= set(dir(fitted))


@pytest.mark.parametrize("library", ["torch", "jax", "tensorflow"])
def test_tensor_of_a_library_that_records_itself(library):
    pytest.importorskip(library)
    tensor = gradops.to_backend(x, library)
    with pytest.raises(gradops.errors.GradopsError, match=r"`value_and_grad\(f\)\(x\)`"):
        gradops.value_and_grad(f, tensor)
    with pytest.raises(gradops.errors.MixedBackendsError, match="convert one of them"):
        ops.add(tensor, gradops.to_backend(x, "jax" if library == "torch" else "torch"))
