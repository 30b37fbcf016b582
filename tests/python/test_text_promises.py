"""Promises of afnio and textgrad about their tapes and optimizers, and how gradops handles each.

Each promise is a function that tests it with gradops. ``python tests/python/test_text_promises.py`` writes the table in
``docs/text.md`` from them, and a test compares it.
"""

from __future__ import annotations

import copy
import json
import pickle
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import gradops
from gradops import Parameter, Variable, ops, text
from gradops.autodiff import Function, backward, no_grad, to_dot
from gradops.errors import ArgumentTypeError, BackendError, GradientError, ModelError, ShapeError
from gradops.text import format, join, split, upper
from gradops.text.prompts import PROMPTS

PAGE = Path(__file__).parents[2] / "docs" / "text.md"
ROWS: list = []


def promise(library: str, said: str, here: str = "the same", status: str = "yes"):
    """Register a promise of ``library`` with gradops' behaviour ``here``; ``status`` is "yes", "differs" or "no"."""

    def add(check):
        ROWS.append((library, said, here, status, check))
        return check

    return add


def p(words="abc", role="p"):
    return Parameter(words, role=role)


def said(variable):
    return [] if variable.grad is None else [str(s) for s in variable.grad.data]


def echo(prompt, system=None):
    return f"{system}: {prompt}" if system else prompt


# Variables.


@promise("both", "a variable is a text with a role", '`Variable("abc", role="greeting")`')
def _():
    assert Variable("abc", role="greeting").role == "greeting"


@promise("afnio", "`Variable()` is the empty text")
def _():
    assert Variable().item() == "" and Variable().dtype is str


@promise("afnio", "a variable may hold several texts", "and remarks on them know of which they are")
def _():
    x = Parameter(["a", "b"], role="x")
    x[1].backward("only b")
    assert x.tolist() == ["a", "b"] and x.grad.data[0].places == (1,)


@promise("afnio", "a list of texts and numbers is an error")
def _():
    with pytest.raises(ArgumentTypeError):
        Variable(["a", 1])


@promise("afnio", "a variable may hold numbers; integers among floats become floats")
def _():
    assert Variable([1, 2.5]).tolist() == [1.0, 2.5]


@promise("afnio", "`Parameter` requires a gradient")
def _():
    assert p().requires_grad and not Variable("abc").requires_grad


@promise(
    "afnio", "the role is the second argument", "it goes by name; a text there is an error that says so", "differs"
)
def _():
    with pytest.raises(ArgumentTypeError, match="role="):
        Parameter("abc", "system prompt")


@promise("textgrad", "a variable requires a gradient unless told otherwise", "a `Parameter` does", "differs")
def _():
    assert not Variable("abc").requires_grad


@promise("textgrad", "`set_value()`, `get_value()`", "`x.data = ...` and `x.item()`; the role stays")
def _():
    x = p()
    x.data = "new"
    assert x.item() == "new" and x.role == "p" and (x + "!").item() == "new!"


@promise("textgrad", "`set_role_description()`", "`x.role = ...`")
def _():
    x = p()
    x.role = "q"
    assert (x + "!").role == "q"


@promise("both", "`str(x)` is the text, `repr(x)` shows the role", "and whether feedback is required")
def _():
    assert str(p()) == "abc" and repr(p()) == "Parameter('abc', role='p', requires_grad=True)"


@promise("textgrad", "`get_short_value()`: the first and last words", "ordinary slices: `x.item()[:40]`", "differs")
def _():
    assert p("a long text").item()[:6] == "a long"


@promise("afnio", "`is_leaf`, `grad_fn`")
def _():
    y = p() + "!"
    assert p().is_leaf and not y.is_leaf and y.grad_fn.name == "add"


@promise("afnio", "`requires_grad_()`, `detach()`")
def _():
    assert Variable("a").requires_grad_().requires_grad and not p().detach().requires_grad


@promise("both", "variables can be copied and pickled")
def _():
    x = p()
    (x + "!").backward("hm")
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert y.item() == "abc" and y.role == "p" and said(y) == ["hm"]


@promise("textgrad", "a variable may hold an image", "`text.File`, which is no variable and gets no feedback", "no")
def _():
    with pytest.raises((ArgumentTypeError, BackendError)):
        Variable(b"\x89PNG")


# Operations.


@promise("both", "`a + b` joins texts; its role is both roles")
def _():
    assert (p("a", "x") + p("b", "y")).role == "x and y"


@promise("afnio", "`a += b`")
def _():
    y = p("a", "x") + ""
    y += p("b", "y")
    assert y.item() == "ab" and y.role == "x and y"


@promise("afnio", "only variables can be added", "strings too", "differs")
def _():
    assert ("Dear " + p() + "!").item() == "Dear abc!"


@promise("afnio", "lists of texts are added one by one; different lengths are an error")
def _():
    assert (Variable(["a", "b"]) + Variable(["c", "d"])).tolist() == ["ac", "bd"]
    with pytest.raises(ShapeError):
        Variable(["a", "b"]) + Variable(["c", "d", "e"])


@promise("both", "numbers with roles: a sum has both roles", "of those that require a gradient")
def _():
    x, y = (Variable(1.0, requires_grad=True, role=role) for role in ("x", "y"))
    assert (x + y).role == "x and y" and (x + y).item() == 2.0


@promise(
    "both", "`sum` of texts", "`text.join` and `sum()`: the texts themselves, without marks around each", "differs"
)
def _():
    a, b = p("a", "x"), p("b", "y")
    join([a, b], "\n").backward("hm")
    assert ops.sum(Variable(["a", "b"])).item() == "ab" and said(a) == said(b) == ["hm"]


@promise("afnio", "`Split`", "`text.split`, `x.split()`")
def _():
    assert [part.item() for part in split(p("a b"))] == [v.item() for v in p("a b").split()] == ["a", "b"]


@promise("afnio", "methods of strings: `x.upper()`", "those that have a meaning on the tape")
def _():
    x = p("abc ")
    x.strip().upper().replace("B", "-").backward("hm")
    assert upper(x).item() == "ABC " and said(x) == ["hm"]


@promise("both", "templates filled with variables", "`text.format`, `template.format()`; nested fields, no attributes")
def _():
    template, name = p("Dear {user[name]}", "template"), p("Ann", "name")
    template.format(user={"name": name}).backward("hm")
    assert said(template) == said(name) == ["hm"]
    with pytest.raises(ArgumentTypeError, match="attribute"):
        format("{0.__class__}", name)


@promise("both", "string code that leaves the graph is not noticed", "f-strings and `%` warn", "differs")
def _():
    for make in (lambda x: f"{x}", lambda x: "%s" % x, lambda x: "{}".format(x)):  # noqa: UP031, UP032
        with pytest.warns(UserWarning, match="no feedback goes through it"):
            make(p())


@promise(
    "textgrad",
    "any function of strings, with a purpose, is an operation",
    "`Function`, `custom_gradient`: with its own feedback",
)
def _():
    x = p()
    cut = gradops.custom_gradient(lambda x: (x.item()[:1], lambda g: f"cut, then {g}"))
    cut(x).backward("short")
    assert said(x) == ["cut, then short"]


@promise("afnio", "`Function.apply` takes messages of variables", "lists, dicts and names")
def _():
    class Chat(Function):
        @staticmethod
        def forward(ctx, messages, *, style):
            return messages[0]["content"].item() + style.item()

        @staticmethod
        def backward(ctx, g):
            return [{"content": f"messages: {g}"}], f"style: {g}"

    x, style = p(), p("!", "style")
    Chat.apply([{"role": "user", "content": x}], style=style).backward("hm")
    assert said(x) == ["messages: hm"] and said(style) == ["style: hm"]


@promise(
    "textgrad",
    "`aggregate` has a model summarise feedback",
    "remarks are listed as they are; `Descent` reads all",
    "no",
)
def _():
    x = p()
    (x + x).backward(["one", "two"])
    assert said(x) == ["one", "two"]


# The backward pass.


@promise("both", "`y.backward(feedback)`", "of a string, a variable or a list of these")
def _():
    x = p()
    (x + "!").backward(Variable("too loud", role="judge"))
    assert said(x) == ["too loud"]


@promise(
    "both",
    "an evaluation starts the pass by itself",
    "a judge, as any number does; a `Function` with `evaluator = True`",
)
def _():
    class Check(Function):
        evaluator = True

        @staticmethod
        def forward(ctx, x):
            return "too short"

        @staticmethod
        def backward(ctx, g):
            return f"it was {g}"

    x, y = p(), p()
    Check.apply(x).backward()
    text.judge(lambda words: "too short")(y).backward()
    assert said(x) == ["it was too short"] and said(y) == ["too short"]
    with pytest.raises(GradientError, match="no gradient to start from"):
        (x + "!").backward()


@promise(
    "both",
    'feedback on a sum is wrapped: "the combined feedback for this and other variables"',
    "word for word, with the role it is on",
    "differs",
)
def _():
    a, b = p("a", "x"), p("b", "y")
    (a + b).backward("hm")
    assert said(a) == ["hm"] and a.grad.data[0].role == "x and y"


@promise("both", 'a gradient has the role "feedback to x"', '"feedback on x"', "differs")
def _():
    x = p()
    x.backward("hm")
    assert x.grad.role == "feedback on p"


@promise("afnio", "feedback of several passes is added up", "also the same words twice")
def _():
    x = p()
    x.backward("hm")
    x.backward("hm")
    assert said(x) == ["hm", "hm"]


@promise("textgrad", "feedback by two paths is there twice", "once", "differs")
def _():
    x = p()
    (x + x).backward("hm")
    assert said(x) == ["hm"]


@promise("textgrad", "feedback is a set, in no order", "in the order in which it was said", "differs")
def _():
    x = p()
    y1, y2 = x + "1", x + "2"
    backward([y1, y2], ["one", "two"])
    assert said(x) == ["one", "two"]


@promise("both", "feedback can be forgotten", "`zero_grad()`, `x.grad = None`")
def _():
    x = p()
    x.backward("hm")
    x.zero_grad()
    assert x.grad is None


@promise("afnio", "`retain_graph`; a second pass without it is an error")
def _():
    y = p() + "!"
    y.backward("a", retain_graph=True)
    y.backward("b")
    with pytest.raises(RuntimeError, match="freed"):
        y.backward("c")


@promise("afnio", "`retain_grad()` of results")
def _():
    y = p() + "!"
    y.retain_grad()
    (y + "?").backward("hm")
    assert said(y) == ["hm"]


@promise("afnio", "`inputs=`: feedback to these leaves alone")
def _():
    a, b = p("a", "x"), p("b", "y")
    (a + b).backward("hm", inputs=[a])
    assert said(a) == ["hm"] and b.grad is None


@promise("afnio", "`no_grad()`, `set_grad_enabled()`")
def _():
    with no_grad():
        assert not (p() + "!").requires_grad


@promise("afnio", "several results in one pass")
def _():
    a, b = p("a", "x"), p("b", "y")
    backward([a + "!", b + "!"], ["one", "two"])
    assert (said(a), said(b)) == (["one"], ["two"])


@promise("both", "one backward model for the process", "`critic=` of each call; nothing is global", "differs")
def _():
    x = p()
    text.call(echo, x, critic=text.scripted({"": "say more"})).backward("terse")
    assert said(x) == ["say more"]


@promise("textgrad", "the graph as a picture with values and feedback", "`to_dot`, `draw`")
def _():
    x = p()
    y = x + "!"
    y.backward("too loud", retain_graph=True)
    assert all(words in to_dot(y) for words in ("abc", "too loud", "abc!"))


@promise("both", "text and numbers are in separate graphs", "one graph: `exact(y) + 0.1 * style(y)`", "differs")
def _():
    x, w = p(), Variable(np.array(0.1), requires_grad=True)
    style = text.judge(lambda words: (2.0, "ugly"))
    (style(x) * w).backward()
    assert w.grad.item() == 2.0 and x.grad.data[0].weight == 0.1


@promise(
    "both", "a pass that fails is lost", "it can be taken up again, without the calls that were paid for", "differs"
)
def _():
    asked = []

    def critic(prompt, system):
        asked.append(prompt)
        if len(asked) == 2:
            raise ConnectionError("rate limit")
        return "fine, but longer"

    x = p()
    y = text.call(echo, text.call(echo, x, role="draft", critic=critic), critic=critic)
    with pytest.raises(ModelError, match="rate limit"):
        y.backward("hm")
    y.backward("hm")
    assert said(x) == ["fine, but longer"] and len(asked) == 3


# Calls of models.


@promise("textgrad", "`BlackboxLLM(engine, system)(x)`, `LLMCall`", "`text.call(model, x, system)`")
def _():
    assert text.call(echo, p("q"), p("s"), role="answer").item() == "s: q"


@promise(
    "textgrad",
    "`FormattedLLMCall(format_string, fields)`",
    "`text.call(model, template, name=x)`: feedback for each field",
)
def _():
    x = p("rain", "topic")
    answer = text.call(echo, "About {topic}.", topic=x, critic=text.scripted({"": "wetter"}))
    answer.backward("dry")
    assert answer.item() == "About rain." and said(x) == ["wetter"]


@promise("afnio", "`ChatCompletion(messages, inputs)`", "messages and fields")
def _():
    messages = [{"role": "system", "content": [p("Be {how}.")]}, {"role": "user", "content": [Variable("Hi")]}]
    assert text.call(echo, messages, how="kind").item() == "Be kind.: Hi"


@promise("afnio", "a batch of inputs gives a batch of answers, at once")
def _():
    assert text.call(echo, Parameter(["a", "b"]), "s").tolist() == ["s: a", "s: b"]


@promise("afnio", "completion arguments, such as the temperature", '`as_model(client, "name", temperature=0)`')
def _():
    with pytest.raises(ArgumentTypeError, match="temperature"):
        text.as_model(echo, temperature=0)


@promise("afnio", "asynchronous clients", "the same, in one event loop; `as_model(client, limit=4)` bounds the calls")
def _():
    async def model(prompt, system):
        return "x"

    assert text.call(model, "q") == "x"


@promise("both", "multimodal calls", "`text.File` in prompts, fields and remarks")
def _():
    image = text.File(b"\x89PNG")
    assert text.call(lambda parts: repr(parts), ["What?", image]) == repr(["What?", image])


# Evaluators.


@promise(
    "afnio", "`DeterministicEvaluator(eval_fn, purpose)`", "`text.judge(f)`; `f` says the remark, no model is asked"
)
def _():
    x = p("green", "color")
    loss = text.judge(lambda color, target: None if color == target else f"it should be {target}")(x, "red")
    loss.backward()
    assert loss.item() == 1 and said(x) == ["it should be red"]


@promise("afnio", "`ExactMatchEvaluator`, with lists of targets", "a judge of several texts")
def _():
    exact = text.judge(lambda a, b: None if a == b else f"not {b}")
    np.testing.assert_array_equal(exact(Parameter(["a", "b"]), ["a", "c"]).data, [0, 1])


@promise(
    "both",
    "a model as judge: `LMJudgeEvaluator`, `TextLoss`",
    '`text.judge(lambda y: model(y, "Criticise."))`: one call in place of two',
)
def _():
    model = text.scripted({"Criticise": "too vague"})
    x = p()
    text.judge(lambda y: str(model(y, "Criticise.")))(x).backward()
    assert said(x) == ["too vague"] and len(model.calls) == 1


@promise("afnio", "`eval_mode=False`: the evaluator's own prompt learns", "`text.call` with the prompt as parameter")
def _():
    rubric = p("Be strict.", "rubric")
    verdict = text.call(echo, "the answer", rubric, role="verdict", critic=text.scripted({"": "stricter"}))
    verdict.backward("people were stricter")
    assert said(rubric) == ["stricter"]


@promise("afnio", "`success_fn`: what is right gets no gradients", "no remark, no calls")
def _():
    critic = text.scripted({})
    x = p()
    text.judge(lambda y: None)(text.call(echo, x, critic=critic)).backward()
    assert x.grad is None and critic.calls == []


@promise("afnio", "`reduction_fn` for the scores of a batch", "`losses.sum()`, `.mean()`, any arithmetic")
def _():
    losses = text.judge(lambda y: (float(len(y)), None))(Parameter(["a", "bbb"]))
    assert losses.mean().item() == 2


@promise(
    "textgrad", "`MultiFieldEvaluation`", "`text.call(model, template, **fields)`, or a judge of several arguments"
)
def _():
    assert text.judge(lambda a, b: (0.5, None))(p(), p()).item() == 0.5


@promise("textgrad", "`MultiFieldTokenParsedEvaluation`: what is between tags", "`returns=`: fields in JSON", "differs")
def _():
    answer = text.call(lambda prompt: '{"score": 0.5}', p(), returns={"score": float})
    assert answer["score"].item() == 0.5


@promise("DSPy", "`Signature` with output fields and types", "`text.call(..., returns={...})`: feedback by field")
def _():
    x = p("Name a city.", "question")
    answer = text.call(lambda prompt: '{"city": "Rome"}', x, returns={"city": str}, critic=lambda prompt: "name two")
    answer["city"].backward("only one")
    assert answer["city"].item() == "Rome" and said(x) == ["name two"]


@promise("DSPy", "`Tool`, `ReAct`", "`text.call(..., tools=[f])`; the description may be a `Parameter`")
def _():
    about = p("Doubles.", "description")
    double = text.Tool(lambda x: 2 * int(x), about, name="double")
    answer = text.call(lambda a, b, tools: tools["double"](x="21"), "21?", tools=double, critic=lambda prompt: "of x")
    answer.backward("hm")
    assert answer.item() == "42" and said(about) == ["of x"]


@promise("DSPy", "`Image`, `File`, `Audio` as inputs", "`text.File`")
def _():
    image = text.File(b"\x89PNG")
    assert text.call(lambda parts: str(len(parts)), "What is {x}?", x=image) == "3"


# The optimiser.


@promise("both", "`TGD`: `step()`, `zero_grad()`", "`text.Descent`; a parameter without feedback is left alone")
def _():
    x, y = p("a", "x"), p("b", "y")
    optimizer = text.Descent([x, y], lambda prompt, system: "<text>better</text>")
    x.backward("bad")
    optimizer.step()
    optimizer.zero_grad()
    assert (x.item(), y.item(), x.grad) == ("better", "b", None)


@promise("both", "`constraints`")
def _():
    model = text.scripted({"at most ten words": "<text>short</text>"})
    x = p()
    x.backward("hm")
    text.Descent(x, model, constraints=["at most ten words"]).step()
    assert x.item() == "short"


@promise("both", "momentum, gradient memory", "`memory=`: earlier versions with their feedback")
def _():
    model = text.scripted({"Earlier versions.*- first": "<text>third</text>", "": "<text>second</text>"})
    x = p("first version")
    optimizer = text.Descent(x, model, memory=1)
    for remark in ("first", "again"):
        x.backward(remark)
        optimizer.step()
        optimizer.zero_grad()
    assert x.item() == "third"


@promise("both", "messages, examples and tags of the optimiser can be replaced", "`prompts=`")
def _():
    model = text.scripted({"^S\n\nRewrite abc: - hm$": "new"})
    x = p()
    x.backward("hm")
    text.Descent(x, model, prompts={"rewrite": "Rewrite {text}: {remarks}", "rewrite_system": "S"}).step()
    assert x.item() == "new"


@promise("textgrad", "an answer without tags is an error", "after it was asked for once more, with what was wrong")
def _():
    x = p()
    x.backward("hm")
    with pytest.raises(ModelError, match="one new text between <text> and </text>"):
        text.Descent(x, lambda prompt: "plain").step()
    assert x.item() == "abc"


@promise("afnio", "`state_dict()`, `load_state_dict()`", "lists and strings, ready for JSON")
def _():
    optimizer = text.Descent(p(), echo, memory=1)
    optimizer.load_state_dict(json.loads(json.dumps(optimizer.state_dict())))


@promise("afnio", "parameter groups", "the same; `optimizer.param_groups`")
def _():
    x, y = p("a", "x"), p("b", "y")
    optimizer = text.Descent([{"params": x, "memory": 2}, {"params": [y]}], echo, memory=1)
    assert optimizer.params == [x, y] and [group["memory"] for group in optimizer.param_groups] == [2, 1]


@promise(
    "DSPy", "GEPA keeps a candidate that scores higher on a minibatch", "`text.Descent(..., score=f, candidates=3)`"
)
def _():
    x = p("bad", "x")
    model = text.scripted({"bad": ["<text>worse</text>", "<text>good</text>"]})
    optimizer = text.Descent(x, model, score=lambda: float(x.item() == "good"), candidates=2)
    x.backward("hm")
    optimizer.step()
    assert x.item() == "good" and [trial.accepted for trial in optimizer.trials] == [True, False, True]


@promise("DSPy", "GEPA draws the next candidate from a Pareto front", "one text at a time: the best so far", "no")
def _():
    assert "Pareto" not in (text.Descent.__doc__ or "")


@promise("afnio", "`step(closure)`", "call the closure before", "no")
def _():
    with pytest.raises(TypeError):
        text.Descent(p(), echo).step(lambda: None)


# Around it.


@promise(
    "textgrad", "answers are cached on disk", "`text.remembered(model, path)`: JSON lines, also a recording to replay"
)
def _():
    assert text.remembered(echo)("a") == "a"


@promise("textgrad", "engines by name, through litellm", '`text.as_model("name")`; also clients and functions')
def _():
    assert text.as_model(echo)("q", "s") == "s: q"


@promise(
    "afnio", "usage and cost of a model", "`model.spent`: calls and tokens; a budget stops before the call; no prices"
)
def _():
    model = text.remembered(echo, calls=1)
    model("abcd")
    assert model.spent == {"calls": 1, "tokens": 2, "remembered": 0}


@promise("both", "modules: `Module`, `parameters()`, nested state", "functions, lists and dicts", "no")
def _():
    assert not hasattr(text, "Module")


@promise("afnio", "`Trainer`, `DataLoader`, samplers", "loops, and `text.each` for a batch at once", "no")
def _():
    assert text.each(lambda a, b: a + b, [1, 2], [3, 4]) == [4, 6]


@promise(
    "afnio",
    "needs an account, and a server for each operation",
    "runs in this process; only a model that you pass is called",
    "differs",
)
def _():
    assert (p() + "!").item() == "abc!"


@pytest.mark.parametrize("row", ROWS, ids=[f"{row[0]}: {row[1][:40]}" for row in ROWS])
def test_promise(row):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        row[-1]()


def table() -> str:
    words = {"yes": "yes", "differs": "otherwise", "no": "no"}
    count = {status: sum(row[3] == status for row in ROWS) for status in words}
    lines = [
        f"{len(ROWS)} promises: {count['yes']} kept, {count['differs']} kept otherwise, {count['no']} not.",
        "",
        "| promise | of | here | |",
        "|---|---|---|---|",
    ]
    lines += [f"| {said} | {library} | {words[status]} | {here} |" for library, said, here, status, _ in ROWS]
    return "\n".join(lines)


def prompts() -> str:
    return "\n\n".join(f"`{name}`:\n\n```text\n{words.strip()}\n```" for name, words in PROMPTS.items())


def page(before: str) -> str:
    """Return the page with the current table and prompts."""
    for name, made in (("table", table()), ("prompts", prompts())):
        start, end = f"<!-- {name}: made by tests/python/test_text_promises.py -->\n", f"<!-- end of {name} -->"
        head, tail = before.split(start)[0], before.split(end)[1]
        before = f"{head}{start}\n{made}\n\n{end}{tail}"
    return before


@pytest.mark.skipif(not PAGE.exists(), reason="the documents are not part of the source distribution")
def test_page_is_current():
    written = PAGE.read_text(encoding="utf-8")
    assert written == page(written), "run `python tests/python/test_text_promises.py`"


@pytest.mark.skipif(not PAGE.exists(), reason="the documents are not part of the source distribution")
def test_code_of_the_page_runs():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict = {}
    for block in blocks:
        exec(block, names)
    assert len(blocks) == 2 and names["prompt"].item() == "Answer in one word." and names["best"] == 0


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.exit()
