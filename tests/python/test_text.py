"""Text on the tape."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import gradops
from gradops import Parameter, Variable, ops
from gradops.autodiff import Function, enable_grad, no_grad, text, to_dot
from gradops.errors import ArgumentTypeError, BackendError, GradientError, MixedBackendsError, ShapeError


def greeting():
    return (
        Variable("Hello ", role="greeting", requires_grad=True),
        Variable("Ann", role="name", requires_grad=True),
    )


def said(variable):
    return [(str(s), s.role) for s in variable.grad.data]


def test_sum_of_two():
    a, b = greeting()
    c = a + b
    assert c.data == "Hello Ann" and isinstance(c.data, str)
    assert c.role == "greeting and name" and c.requires_grad and not c.is_leaf
    assert (c + Variable("!", role="mark")).role == "greeting, name and mark"
    assert ("Say " + c + "!").data == "Say Hello Ann!" and ("Say " + c).role == "greeting and name"
    assert (a + a).role == "greeting"
    assert c.grad_fn.name == "add" and c.shape == () and c.dtype is str


def test_backward_appends_what_was_said_and_of_which_role():
    a, b = greeting()
    c = a + b
    c.backward("too long", retain_graph=True)
    assert said(a) == said(b) == [("too long", "greeting and name")]
    c.backward("too stiff")
    assert said(a) == [("too long", "greeting and name"), ("too stiff", "greeting and name")]
    assert a.grad.role == "feedback on greeting" and str(a.grad) == "too long\ntoo stiff"
    assert list(a.grad.data) == ["too long", "too stiff"] and len(a.grad) == 2
    a.zero_grad()
    assert a.grad is None
    with pytest.raises(RuntimeError, match="freed"):
        c.backward("again")


def test_the_same_feedback_by_two_paths_is_said_once():
    a, _ = greeting()
    (a + a + a).backward("hm")
    assert said(a) == [("hm", "greeting")]
    (a + a).backward("hm")
    assert len(a.grad) == 2


def test_kinds_of_feedback():
    a, b = greeting()
    feedback = Variable("rude", role="judge")
    (a + b).backward(feedback)
    assert said(a)[0][0] == "rude"
    (a + b).backward(["one", "two"])
    assert [s for s, _ in said(a)] == ["rude", "one", "two"]
    with pytest.raises(GradientError, match="no gradient to start from"):
        (a + b).backward()
    with pytest.raises(ArgumentTypeError, match="must be text"):
        (a + b).backward(3.0)


def test_lists_go_elementwise():
    names = Variable(["Ann", "Bob"], role="names", requires_grad=True)
    greet, _ = greeting()
    both = greet + names + "!"
    assert both.tolist() == ["Hello Ann!", "Hello Bob!"] and both.shape == (2,) and len(both) == 2
    assert both[1].data == "Hello Bob!" and [str(v) for v in both] == ["Hello Ann!", "Hello Bob!"]
    total = ops.sum(both)
    assert total.data == "Hello Ann!Hello Bob!" and both.sum().data == total.data
    total.backward("shout less")
    assert said(names) == said(greet) == [("shout less", "greeting and names")]
    names.zero_grad()
    both = names + Variable([" A", " B"])
    both[0].backward("only this")
    assert [s for s, _ in said(names)] == ["only this"]
    with pytest.raises(ShapeError, match="elementwise"):
        names + ["a", "b", "c"]


def test_operations():
    a, b = greeting()
    joined = text.join([a, "dear", b], ", ")
    assert joined.data == "Hello , dear, Ann" and joined.role == "greeting and name"
    parts = text.split(joined, ", ")
    assert [p.data for p in parts] == ["Hello ", "dear", "Ann"]
    parts[2].backward("last")
    assert said(a)[0][0] == said(b)[0][0] == "last"
    assert text.strip(a).data == "Hello" and text.upper(b).data == "ANN" and text.lower(b).data == "ann"
    assert text.replace(b, "A", "E").data == "Enn"
    assert text.upper(Variable(["x", "y"])).tolist() == ["X", "Y"]
    n = Variable(2.5, requires_grad=True)
    filled = text.format("{} gives {n:.2f} to {who}", b, n=n, who=a)
    assert filled.data == "Ann gives 2.50 to Hello " and filled.role == "name and greeting"
    filled.backward("dry")
    assert said(a)[-1] == ("dry", "name and greeting") and n.grad is None
    template = Variable("Dear {}", role="template", requires_grad=True)
    text.format(template, b).backward("formal")
    assert said(template) == [("formal", "template and name")]
    assert a[0:4].data == "Hell" and ops.copy(a).data == a.data
    assert text.join(Variable(["p", "q"]), "-").data == "p-q"
    assert type(text.join(["p", "q"], "-")) is text.Text
    assert bool(a == "Hello ") and not bool(a != "Hello ") and not bool(ops.equal(a, b))
    stacked = ops.stack([a, b])
    assert stacked.tolist() == ["Hello ", "Ann"]
    stacked[0].backward("each")
    assert said(a)[-1][0] == "each"
    with pytest.raises(ArgumentTypeError, match="expected a text"):
        text.join([a, 3])
    with pytest.raises(ArgumentTypeError, match="nothing is given"):
        text.format("{missing}", a)


def test_modes():
    a, b = greeting()
    with no_grad():
        c = a + b
        assert not c.requires_grad and c.role == "greeting and name"
        assert Parameter("xyz").requires_grad
        with enable_grad():
            assert (a + b).requires_grad
    assert not a.detach().requires_grad and a.detach().role == "greeting"
    assert not (Variable("x") + "y").requires_grad
    c = a + b
    c += "!"
    c.backward("hm")
    assert c.data == "Hello Ann!" and said(a)[0][0] == "hm"
    with pytest.raises(RuntimeError, match="leaf"):
        a += "!"
    with no_grad():
        a += "!"
    assert a.data == "Hello !" and a.is_leaf
    with pytest.raises(ArgumentTypeError, match="in place"):
        c[0] = "x"


def test_custom_gradient_with_a_model():
    calls = []

    def model(prompt):
        calls.append(str(prompt))
        return f"<{prompt}>"

    @gradops.custom_gradient
    def ask(system, question):
        answer = model(f"{system} {question}")

        def grad(upstream):
            return f"answer was {upstream}", model(f"criticize {question} given {upstream}")

        return answer, grad

    system = Variable("be brief", role="system", requires_grad=True)
    question = Variable("why?", role="question", requires_grad=True)
    answer = ask(system, question)
    assert answer.data == "<be brief why?>" and answer.requires_grad
    answer.backward("long")
    assert said(system) == [("answer was long", "system")]
    assert said(question) == [("<criticize why? given long>", "question")]
    with no_grad():
        ask(system, question)
    assert len(calls) == 3


def test_text_and_numbers_in_one_graph():
    a, b = greeting()
    score = gradops.custom_gradient(lambda t: (float(len(t.data)), lambda g: "shorter" if float(g) > 0 else "longer"))
    weight = Variable(np.array([1.0, 2.0]), requires_grad=True)
    loss = (score(a + b) * weight).sum()
    loss.backward()
    np.testing.assert_allclose(weight.grad.data, [9, 9])
    assert [s for s, _ in said(a)] == [s for s, _ in said(b)] == ["shorter"]
    (-score(a + b)).backward()
    assert [s for s, _ in said(a)] == ["shorter", "longer"]


class Counted(Function):
    """A number times the length of a text."""

    @staticmethod
    def forward(ctx, x, text):
        ctx.save_for_backward(x, text)
        return x * len(text.item())

    @staticmethod
    def backward(ctx, g):
        x, text = ctx.saved_tensors
        return g * len(text.item()), f"counts {float(g):g} times"


@pytest.mark.parametrize("library", ["numpy", "jax", "tensorflow"])
def test_text_beside_each_librarys_numbers(library):
    pytest.importorskip(library)
    x = Variable(gradops.backends.by_name(library).convert(2.0), requires_grad=True)
    text = Variable("four", role="word", requires_grad=True)
    (Counted.apply(x, text) * 3).backward()
    assert x.grad.item() == 12 and said(text) == [("counts 3 times", "word")]
    double = gradops.custom_gradient(lambda x, t: (x * 2, lambda g: (g * 5, "doubled")))
    (double(x, text) * 3).backward()
    assert x.grad.item() == 12 + 15 and said(text)[1:] == [("doubled", "word")]


def test_torchs_graph_holds_tensors_alone():
    torch = pytest.importorskip("torch")
    x, text = torch.tensor(2.0, requires_grad=True), Variable("four", requires_grad=True)
    with pytest.raises(MixedBackendsError, match="one backend"):
        Counted.apply(x, text)
    with pytest.raises(MixedBackendsError, match="torch tensors and variables"):
        Counted.apply(x, Variable(np.ones(2), requires_grad=True))


def test_places_of_several():
    texts = Variable(["a", "b", "c"], role="letters", requires_grad=True)
    assert texts[[2, 0]].tolist() == ["c", "a"] and texts[(1,)].item() == "b"
    assert texts[np.array([True, False, True])].tolist() == ["a", "c"]
    texts[np.array([1])].backward("second")
    assert said(texts) == [("second", "letters")]


def test_hooks_and_grad():
    a, b = greeting()
    seen = []
    a.register_hook(lambda g: seen.append(str(g)))
    b.register_hook(lambda g: "softened")
    (a + b).backward("bad")
    assert seen == ["bad"] and str(b.grad) == "softened"
    (g,) = gradops.autodiff.grad(a + b, a, "fine")
    assert str(g) == "fine"
    c = a + b
    c.retain_grad()
    (c + "!").backward("x")
    assert str(c.grad) == "x"


def test_looks():
    a, b = greeting()
    assert repr(a) == "Variable('Hello ', role='greeting', requires_grad=True)"
    assert repr(a + b) == "Variable('Hello Ann', role='greeting and name', grad_fn=<add backward>)"
    assert str(a) == "Hello " and f"{a}|{b:>5}" == "Hello |  Ann" and a.item() == "Hello "
    assert "greeting" in to_dot(a + b)
    (a + b).backward("x")
    assert "x" in repr(a.grad)


def test_copies():
    a, _ = greeting()
    for other in (copy.deepcopy(a), pickle.loads(pickle.dumps(a)), copy.copy(a)):
        assert other.data == a.data and other.role == "greeting" and other.requires_grad
    (a + "!").backward("x")
    other = pickle.loads(pickle.dumps(a))
    assert said(other) == said(a)


def test_errors():
    a, _ = greeting()
    with pytest.raises(ArgumentTypeError, match="text joins with text only"):
        a + 3
    with pytest.raises(BackendError, match="not available on the backend 'text'"):
        ops.exp(a)
    with pytest.raises(ArgumentTypeError):
        np.asarray(a)
    with pytest.raises(BackendError):
        gradops.config.set_backend("text")
    with pytest.raises(ArgumentTypeError):
        ops.exp("plain strings are no tensors")
    assert gradops.config.backend() == "numpy"
