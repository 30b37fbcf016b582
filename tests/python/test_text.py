"""Text on the tape."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import gradops
from gradops import Parameter, Variable, ops, text
from gradops.autodiff import Function, enable_grad, no_grad, to_dot
from gradops.errors import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    BackendError,
    GradientError,
    MixedBackendsError,
    ShapeError,
)


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


def test_backward_appends_feedback_with_its_role():
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


def test_equal_feedback_by_two_paths_appears_once():
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


def test_lists_are_processed_elementwise():
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
    with pytest.raises(ArgumentTypeError, match="takes texts"):
        text.join([a, 3])
    for missing in ({}, {"missing": None}):
        with pytest.raises(ArgumentTypeError, match="nothing is given"):
            text.format("{missing}", a, **missing)


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
def test_text_with_numbers_of_each_library(library):
    pytest.importorskip(library)
    x = Variable(gradops.backends.lookup(library).convert(2.0), requires_grad=True)
    text = Variable("four", role="word", requires_grad=True)
    (Counted.apply(x, text) * 3).backward()
    assert x.grad.item() == 12 and said(text) == [("counts 3 times", "word")]
    double = gradops.custom_gradient(lambda x, t: (x * 2, lambda g: (g * 5, "doubled")))
    (double(x, text) * 3).backward()
    assert x.grad.item() == 12 + 15 and said(text)[1:] == [("doubled", "word")]


def test_torch_graphs_hold_tensors_only():
    torch = pytest.importorskip("torch")
    x, text = torch.tensor(2.0, requires_grad=True), Variable("four", requires_grad=True)
    with pytest.raises(MixedBackendsError, match="one backend"):
        Counted.apply(x, text)
    with pytest.raises(MixedBackendsError, match="torch tensors and variables"):
        Counted.apply(x, Variable(np.ones(2), requires_grad=True))


def test_indexing_several_texts():
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


def test_representations():
    a, b = greeting()
    assert repr(a) == "Variable('Hello ', role='greeting', requires_grad=True)"
    assert repr(a + b) == "Variable('Hello Ann', role='greeting and name', grad_fn=<add backward>)"
    assert str(a) == a.item() == "Hello "
    with no_grad():
        assert f"{a}|{b:>5}" == "Hello |  Ann"
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


# String methods, and variables inside lists.


def test_methods_of_strings():
    a, b = greeting()
    c = ",".join(["x", "y"])
    joined = b.join([a, Variable("c", role="c")])
    assert joined.item() == "Hello Annc" and joined.role == "greeting, c and name"
    assert [x.item() for x in Variable("a\nb").splitlines(True)] == ["a\n", "b"] and c == "x,y"
    assert b.removeprefix("A").title().item() == "Nn" and b.lstrip("A").rstrip("n").capitalize().item() == ""
    assert b.startswith("An") and b.endswith("n") and "nn" in b and "Ann" in Variable(["Ann", "Bob"])
    both = Variable(["a-b", "c-d"], requires_grad=True).replace("-", Variable(["+", "*"], requires_grad=True))
    assert both.tolist() == ["a+b", "c*d"]
    with pytest.raises(ArgumentTypeError, match="takes texts"):
        Variable(1.0).upper()


def test_templates_access_their_arguments_only():
    a, b = greeting()
    user = {"name": b, "tags": ["x", a]}
    filled = text.format("{user[name]}, {user[tags][1]}!", user=user)
    assert filled.item() == "Ann, Hello !" and filled.role == "name and greeting"
    filled.backward("hm")
    assert said(a)[0][0] == said(b)[0][0] == "hm"
    assert text.format("{:>5}|{!r}|{n:.1f}", b, "x", n=Variable(2.0)).item() == "  Ann|'x'|2.0"
    assert text.format("{} {}", Variable(["a", "b"]), "c").tolist() == ["a c", "b c"]
    for template in ("{0.data}", "{user.name}", "{user[name].data}", "{user[name]._node}"):
        with pytest.raises(ArgumentTypeError, match="attribute"):
            text.format(template, b, user=user)
    for template in ("{", "{}{}", "{user[nobody]}", "{:q}"):
        with pytest.raises(ArgumentTypeError):
            text.format(template, b, user=user)


@pytest.mark.parametrize("texts", ["a", ["a"], ["a", "b", "c"]])
@pytest.mark.parametrize("n", [0, 1, 2])
def test_repeated_texts_match_numpy(texts, n):
    t = Variable(texts, requires_grad=True)
    for op in ("repeat", "tile"):
        got = getattr(ops, op)(t, n)
        want = getattr(np, op)(texts, n)
        assert got.tolist() == want.tolist() and got.shape == want.shape and got.requires_grad
    assert ops.repeat(Variable(["a", "b"]), 2, axis=-1).tolist() == ["a", "a", "b", "b"]


def test_shapes_of_several_texts():
    t = Variable(["a", "b", "c"], requires_grad=True)
    assert ops.reshape(t, (-1,)).tolist() == ["a", "b", "c"] and ops.reshape(Variable("a"), (1,)).shape == (1,)
    assert ops.broadcast_to(Variable("a"), (2,)).tolist() == ["a", "a"] and ops.squeeze(t[:1]).shape == ()
    assert ops.take(t, [2, 0]).tolist() == ["c", "a"] and ops.concatenate([t, Variable(["d"])]).shape == (4,)
    for wrong in (
        lambda: ops.sum(t, axis=5),
        lambda: ops.reshape(t, (3, 1)),
        lambda: ops.broadcast_to(t, (2, 3)),
        lambda: ops.tile(t, (2, 2)),
        lambda: ops.transpose(t, (1, 0)),
        lambda: ops.squeeze(t, 0),
        lambda: ops.stack([t, t]),
        lambda: ops.concatenate([t[0], t]),
        lambda: t[5],
        lambda: t == ["a", "b"],
        lambda: t == 3,
    ):
        with pytest.raises((ShapeError, ArgumentTypeError, AxisError)):
            wrong()
    with pytest.raises(ShapeError, match="without further dimensions; `x\\[\\[0, 0, 1\\]\\]` picks"):
        ops.tile(t, (2, 1))
    for key in (None, ..., 1.0, "a"):
        with pytest.raises(AxisError, match="several texts have positions"):
            t[key]
    np.testing.assert_array_equal((t == "b").data, [False, True, False])
    assert bool(Variable("1") == "1") and bool(Variable("1") != "0")


def test_feedback_reaches_its_element_through_every_operation():
    for change, place in [
        (lambda t: t[1], 1),
        (lambda t: t[-2], 1),
        (lambda t: t[1:][0], 1),
        (lambda t: t[[2, 1]][1], 1),
        (lambda t: text.upper(t)[1], 1),
        (lambda t: (t + "!")[1], 1),
        (lambda t: ops.concatenate([Variable(["x"]), t])[2], 1),
        (lambda t: ops.take(t, [0, 2, 1])[2], 1),
        (lambda t: text.format("<{}>", t)[1], 1),
    ]:
        t = Variable(["a", "b", "c"], role="t", requires_grad=True)
        change(t).backward("only b")
        assert [s.places for s in t.grad.data] == [(place,)]
        assert [len(t.grad.data.of(i)) for i in range(3)] == [0, 1, 0]
    a, b = greeting()
    both = ops.stack([a, b])
    both[1].backward("one", retain_graph=True)
    assert a.grad is None and said(b) == [("one", "greeting and name")] or said(b)[0][0] == "one"
    t = Variable(["a", "b"], requires_grad=True)
    (ops.sum(t) + t)[0].backward("of the sum, and of the first")
    assert [s.places for s in t.grad.data] == [None]
    t = Variable(["a", "b", "c"], requires_grad=True)
    (t[0] + t[2]).backward("two of three")
    assert [s.places for s in t.grad.data] == [(0, 2)]


class Talk(Function):
    """Joins the contents of messages."""

    @staticmethod
    def forward(ctx, messages, *, tone=""):
        ctx.wants = ctx.needs_input_grad
        words = [m["content"].item() if isinstance(m["content"], Variable) else m["content"] for m in messages]
        return " ".join([*words, str(getattr(tone, "data", tone))])

    @staticmethod
    def backward(ctx, g):
        assert ctx.wants == (True, True)
        return [{"content": f"first: {g}"}, None, {"content": f"last: {g}"}], f"tone: {g}"


def test_function_receives_variables_in_containers_and_keywords():
    a, b = greeting()
    messages = [{"role": "system", "content": a}, {"content": "hi"}, {"role": "user", "content": a}]
    y = Talk.apply(messages, tone=b)
    assert y.item() == "Hello  hi Hello  Ann"
    y.backward("hm")
    assert [s for s, _ in said(a)] == ["first: hm", "last: hm"] and said(b) == [("tone: hm", "name")]
    x = Variable(np.ones(2), requires_grad=True)

    class Weighted(Function):
        @staticmethod
        def forward(ctx, xs, k=1.0):
            ctx.k = k
            return xs[0] * k + xs[1]["x"]

        @staticmethod
        def backward(ctx, g):
            return [ctx.k * g, {"x": g}], None

    Weighted.apply([x, {"x": x}], k=3.0).sum().backward()
    np.testing.assert_allclose(x.grad.data, 4)
    assert Weighted.apply([1.0, {"x": 2.0}], k=3.0) == 5.0

    class Wrong(Talk):
        @staticmethod
        def backward(ctx, g):
            return "hm", None

    with pytest.raises(GradientError, match="gradient of a list of 3"):
        Wrong.apply(messages, tone=b).backward("x")


# Values.


def test_optimizer_can_assign_data():
    p = Parameter("old", role="prompt")
    for value in ("new", Variable("new", role="other"), text.Text("new", ("x",))):
        p.data = value
        assert p.item() == "new" and p.role == "prompt" and (p + "!").role == "prompt" and type(p.data) is text.Text
    words = Variable(["a", "b"], role="w", requires_grad=True)
    words.data = ["c", "d", "e"]
    assert words.tolist() == ["c", "d", "e"] and words.role == "w"
    w = Variable(np.ones(2), requires_grad=True)
    for _ in range(2):
        (w * w).sum().backward()
        w.data = w.data - 0.1 * w.grad
        w.zero_grad()
    np.testing.assert_allclose(w.data, 0.64)
    assert isinstance(w.data, np.ndarray)
    for wrong in (lambda: setattr(p, "data", 3.0), lambda: setattr(w, "data", "x"), lambda: setattr(w, "data", [1, 2])):
        with pytest.raises(ArgumentTypeError, match="`data`"):
            wrong()


def test_copy_():
    p, q = Parameter("old", role="p"), Parameter("new", role="q")
    with pytest.raises(RuntimeError, match="leaf"):
        p.copy_(q)
    with no_grad():
        assert p.copy_(q) is p
    assert p.item() == "new" and p.role == "p" and p.is_leaf
    y = p + "!"
    y.copy_(q)
    y.backward("hm")
    assert p.grad is None and said(q) == [("hm", "p")] and y.item() == "new"
    x, z = Variable(np.ones(2), requires_grad=True), Variable(np.arange(2.0), requires_grad=True)
    y = x * 2
    y.copy_(z)
    y.sum().backward()
    np.testing.assert_allclose(z.grad.data, 1)
    assert x.grad is None  # gradients from before the copy have no effect


def test_missing_and_nested_values_are_not_text():
    assert Variable().item() == "" and Parameter().requires_grad
    for wrong in (None, ["a", None], ["a", float("nan")], ["a", 1], [["a"], ["b", "c"]], [["a", "b"]], [[None, "a"]]):
        with pytest.raises(ArgumentTypeError, match="`data"):
            Variable(wrong)
    for dtype in (str, object, np.dtypes.StringDType() if hasattr(np.dtypes, "StringDType") else str):
        assert Variable(np.array(["a", "b"], dtype)).tolist() == ["a", "b"]
    with pytest.raises(ArgumentTypeError, match="missing"):
        Variable(np.array(["a", None], object))
    for jagged in ([[1, 2], [3]], [[1, 2], 3]):
        with pytest.raises(ArgumentTypeError, match="the lists of `data` differ in length"):
            Variable(jagged)
    for kind in (Variable, Parameter):
        with pytest.raises(ArgumentTypeError, match="role=") as caught:
            kind("abc", "system prompt")
        assert caught.value.argument == "requires_grad"
        with pytest.raises(ArgumentTypeError, match="`role` must be a string; got list"):
            kind("abc", role=["a"])


def test_feedback_can_be_assigned():
    p = Parameter("abc", role="p")
    for remarks in ("one", ["one"], Variable("one"), text.feedback("one", "p")):
        p.grad = remarks
        (p + "!").backward("two")
        assert [s for s, _ in said(p)] == ["one", "two"] and p.grad.role == "feedback on p"
    with pytest.raises(ArgumentTypeError, match="feedback on a text must be text"):
        p.grad = 3


def test_roles_survive_operations_on_numbers():
    x, y = (Variable(np.ones(2), requires_grad=True, role=role) for role in ("x", "y"))
    assert (x * y + 1).role == "x and y" and ops.exp(x).sum().role == "x" and (x.detach() * 2).role is None
    assert (Variable(2.0, role="z") * 2).role is None  # operations without gradient are not recorded


class Check(Function):
    evaluator = True

    @staticmethod
    def forward(ctx, x):
        return "too short"

    @staticmethod
    def backward(ctx, g):
        return f"longer, as it was {g}"


def test_evaluation_without_feedback_starts_from_its_own():
    a, _ = greeting()
    Check.apply(a).backward()
    Check.apply(a).backward("very short")
    assert [s for s, _ in said(a)] == ["longer, as it was too short", "longer, as it was very short"]
    with pytest.raises(GradientError, match="no gradient to start from"):
        (Check.apply(a) + "!").backward()


def test_several_roots_in_one_pass_keep_their_order():
    a, b = greeting()
    y1, y2 = a + "1", a + b
    gradops.autodiff.backward([y1, y2], ["first", "second"])
    assert [s for s, _ in said(a)] == ["first", "second"]
    made = gradops.custom_gradient(lambda x: (x.item(), lambda g: f"on {g}"))
    y1, y2 = made(b), made(b)
    gradops.autodiff.backward([y1, y2], ["first", "second"])
    assert [s for s, _ in said(b)][-2:] == ["on first", "on second"]
    Check.apply(b).backward(["x"], retain_graph=True)
    (c1, c2), n = (Check.apply(b), Check.apply(b)), len(b.grad)
    gradops.autodiff.backward([c1, c2], ["one", "two"])
    assert [s for s, _ in said(b)][n:] == ["longer, as it was one", "longer, as it was two"]
    gradops.autodiff.backward(a + "!", ["third", "fourth"])
    assert [s for s, _ in said(a)] == ["first", "second", "third", "fourth"]


def test_pictures_show_values_and_feedback():
    a, b = greeting()
    y = a + b
    y.backward("much too long to be shown in full here", retain_graph=True)
    picture = to_dot(y)
    assert "'Hello' <- 'much too long to be shown i...'" in picture and "'Hello Ann'" in picture


@pytest.mark.parametrize("read", [np.asarray, lambda t: t.numpy()], ids=["asarray", "numpy"])
def test_error_hints_do_not_suggest_losing_feedback(read):
    for variable in (Variable("abc", role="r", requires_grad=True), Variable("abc")):
        with pytest.raises(ArgumentTypeError, match="not an array of numbers") as caught:
            read(variable)
        assert "detach" not in str(caught.value) and "item()" in str(caught.value)


def test_separator_must_be_nonempty_text():
    assert [str(part) for part in text.split("a, b", text.lower(","))] == ["a", " b"]
    for separator in (np.nan, 3, ["a"], lambda: None):
        with pytest.raises(ArgumentTypeError, match="`split` takes texts"):
            text.split("a", separator)
    with pytest.raises(ArgumentError, match="must not be empty"):
        text.split("a", "")
