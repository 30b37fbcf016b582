"""Text optimization: model calls, judges, the optimizer, batches."""

from __future__ import annotations

import json
import random
import re
import runpy
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import gradops
from gradops import Parameter, Variable, text
from gradops.autodiff import is_grad_enabled, no_grad
from gradops.errors import ArgumentError, ArgumentTypeError, BudgetError, GradopsError, ModelError, ShapeError
from gradops.text import join, prompts

NAMES = ["Descent", "as_model", "call", "each", "judge", "remembered", "scripted"]  # the functions that call models


def said(variable):
    return [] if variable.grad is None else [str(s) for s in variable.grad.data]


def echo(prompt, system):
    return f"{system}|{prompt}"


def test_exactly_seven_public_names():
    assert set(NAMES) < set(text.__all__) and gradops.text is text


def test_call_sends_exactly_its_arguments():
    asked = []
    model = text.as_model(lambda prompt, system: asked.append((prompt, system)) or "yes")
    answer = text.call(model, Variable("Why {x}?"), "Be brief.", role="reply")
    assert asked == [("Why {x}?", "Be brief.")]
    assert answer.item() == "yes" and answer.role == "reply" and not answer.requires_grad
    plain = text.call(model, "Why?")
    assert plain == "yes" and type(plain).__name__ == "Text"


def test_feedback_is_requested_once_per_input_that_needs_it():
    critic = text.scripted({'<input role="solver">': "name the unit", 'role="question and hint">': "Nothing."})
    solver = Parameter("Solve it.", role="solver")
    hint, given = Parameter("Use feet.", role="hint"), Variable("How far?", role="question")
    answer = text.call(echo, join([given, hint]), solver, role="answer", critic=critic)
    answer.backward("no unit")
    prompt, system = critic.calls[1]
    assert len(critic.calls) == 2 and system == prompts.PROMPTS["feedback_system"]
    for part in ("How far?Use feet.", "- no unit", '<answer role="answer">', "Solve it.|How far?Use feet."):
        assert part in prompt
    assert said(solver) == ["name the unit"] and solver.grad.data[0].role == "solver"
    assert hint.grad is None  # "question and hint": the critic had no complaint


def test_without_feedback_no_critic_is_called():
    critic = text.scripted({})
    solver = Parameter("Solve it.", role="solver")
    answer = text.call(echo, "2 + 2", solver, critic=critic)
    good = text.judge(lambda answer: None)
    (good(answer) * 3 + 0.0 * text.judge(lambda answer: "bad")(answer)).backward()
    assert solver.grad is None and critic.calls == []


def test_fields_are_filled_once_and_get_their_own_feedback():
    asked = []

    def model(prompt, system=None):
        asked.append(prompt)
        found = re.search('<input role="(.*?)">', prompt)
        return f"about {found[1]}" if found else "ok"

    template = Parameter("Explain {topic} to {who} in {n} words, {as is}.", role="template")
    topic, who = Parameter("{who} {0.__class__}", role="topic"), Variable("a child")
    answer = text.call(model, template, topic=topic, who=who, n=Variable(3.0))
    assert asked == ["Explain {who} {0.__class__} to a child in 3.0 words, {as is}."]
    answer.backward("dull")
    assert said(template) == ["about template"] and said(topic) == ["about topic"] and who.grad is None
    with pytest.raises(ArgumentError, match="no place for `topics`"):
        text.call(model, template, topics=topic)
    for missing in (None, {"a": 1}, np.ones(2), [1, 2]):
        with pytest.raises(ArgumentTypeError, match="`who` must be a text, a file, a list of either or a number"):
            text.call(echo, "for {who}", who=missing)
    assert text.call(lambda p: p, "for {who}", who=["Ann", Variable("Bob"), "Eve"]).tolist()[1:] == [
        "for Bob",
        "for Eve",
    ]


def test_messages():
    asked = []
    model = text.as_model(lambda prompt, system: asked.append((prompt, system)) or "ok")
    p, q = Parameter("Be kind.", role="tone"), Parameter("Hello", role="greeting")
    messages = [
        {"role": "system", "content": p},
        {"role": "user", "content": [q, "there"]},
        {"role": "assistant", "content": "Hi"},
        {"role": "user", "content": [{"type": "text", "text": q}]},
    ]
    text.call(model, messages)
    assert asked == [("User: Hello\nthere\n\nAssistant: Hi\n\nUser: Hello", "Be kind.")]
    critic = text.scripted({"Be kind.*greeting": "warmer", "tone": "softer"})
    text.call(model, messages, critic=critic).backward("cold")
    assert len(critic.calls) == 2 and said(p) and said(q)
    named = [{"role": "user", "content": "q", "name": "Ann"}]
    for wrong in (3, [], [{"role": "user"}], [{"role": "user", "content": 3}], ["a", "b"], named):
        with pytest.raises(ArgumentTypeError, match="prompt"):
            text.call(model, wrong)
    for wrong in (3, ["a", "b"]):
        with pytest.raises(ArgumentTypeError, match="system"):
            text.call(model, "q", wrong)


def test_request_is_sent_only_if_feedback_is_needed():
    critic = text.scripted({'<input role="question">\nhow far.*': "name the unit", '<input role="hint">': "shorter"})
    question, hint = Parameter("how far", role="question"), Parameter("in feet", role="hint")
    draft = text.call(echo, question, hint, role="draft", critic=critic)
    answer = text.call(echo, draft + "!", role="answer", critic=text.scripted({"": "unit"}))
    question.data = "how late"
    answer.backward("hm", inputs=[question])
    assert said(question) == ["name the unit"] and hint.grad is None and len(critic.calls) == 1


def test_several_texts_give_several_calls_and_feedback_by_element():
    answers = {"improve": lambda p, s: "was " + re.search(r"- (.*)", p)[1], "": lambda p, s: p.upper()}
    model = text.scripted(answers)
    questions = Parameter(["a", "b", "c"], role="question")
    solver = Parameter("Solve.", role="solver")
    answers = text.call(model, questions, solver, role="answer")
    assert answers.tolist() == ["A", "B", "C"] and answers[1].role == "answer"
    losses = text.judge(lambda answer, target: None if answer == target else f"not {target}")(answers, ["A", "X", "Y"])
    np.testing.assert_array_equal(losses.data, [0, 1, 1])
    losses.sum().backward()
    assert [(str(s), s.places) for s in questions.grad.data] == [("was not X", (1,)), ("was not Y", (2,))]
    assert said(solver) == ["was not X", "was not Y"] and solver.grad.data[0].places is None
    assert len(model.calls) == 3 + 4
    with pytest.raises(ShapeError, match="elementwise"):
        text.call(model, questions, Variable(["x", "y"]))


def test_judges():
    a = Parameter("aaa", role="word")
    seen = []

    @text.judge
    def length(word, most, *, unit="letters"):
        "Counts."
        seen.append((word, most, unit, is_grad_enabled()))
        return None if len(word) <= most else (len(word) - most, [f"too many {unit}", "shorter"])

    loss = length(a, 1, unit="signs")
    assert loss.item() == 2.0 and length.__name__ == "length" and length.__doc__ == "Counts."
    assert seen == [("aaa", 1, "signs", False)] and type(seen[0][0]) is str
    loss.backward()
    assert said(a) == ["too many signs", "shorter"] and a.grad.data[0].role == "word"
    assert length("aaa", 5) == 0 and not isinstance(length("aaa", 5), Variable)
    assert length(a, most=9).item() == 0
    for wrong in (True, 3j, object(), ("x", 3), {"a": 1}):
        with pytest.raises(ArgumentTypeError, match="must return None, a remark"):
            text.judge(lambda word, wrong=wrong: wrong)(a)


def test_arguments_of_judges_are_matched_elementwise():
    texts = Parameter(["1", "2"], role="word")
    other = text.judge(lambda word, of: None if word in map(str, np.atleast_1d(of)) else f"{word} is not {of}")
    for beside in (
        ["1", "3"],
        [1, 3],
        np.array([1, 3]),
        ("1", "3"),
        [["1", "2"], ["3"]],
        Variable([1.0, 3.0]).tolist(),
    ):
        np.testing.assert_array_equal(other(texts, beside).data[1], 1)
    np.testing.assert_array_equal(other(["1", "2"], [1, 3]), [0, 1])
    assert other("1", ["1", "3"]) == 0
    with pytest.raises(ShapeError, match="2 texts are judged one by one; another argument has 3"):
        other(texts, ["1", "2", "3"])
    a, b = Parameter("a", role="first"), Parameter("b", role="second")
    text.judge(lambda word: f"not {word}")([a, b]).sum().backward()
    assert (said(a), said(b)) == (["not a"], ["not b"])


def test_weights_and_sums_of_judges():
    a = Parameter("aaa", role="word")
    exact, style = text.judge(lambda w: "wrong"), text.judge(lambda w: (0.5, "ugly"))
    loss = exact(a) + 0.1 * style(a)
    assert loss.item() == pytest.approx(1.05)
    loss.backward()
    assert [(str(s), s.weight) for s in a.grad.data] == [("wrong", 1.0), ("ugly", 0.1)]
    with no_grad():
        assert not exact(a).requires_grad


def test_example_learns_in_37_calls_and_replays_without_a_model(tmp_path):
    path = Path(__file__).parents[2] / "examples" / "text_feedback.py"
    if not path.exists():
        pytest.skip("the examples are not part of the source distribution")
    example = runpy.run_path(str(path))
    file = tmp_path / "calls.jsonl"
    model = text.remembered(text.scripted(example["SCRIPT"]), file, calls=100)
    found = example["optimise"](model)
    assert found == ("Answer the question in one word.", "Write the answer in capitals.")
    assert model.spent["calls"] == 37 and len(file.read_text().splitlines()) == 37
    assert example["optimise"](text.remembered(None, file)) == found


@pytest.mark.repository
def test_pipeline_takes_16_lines_in_each_language():
    root = Path(__file__).parents[2]
    example, vignette = root / "examples" / "text_feedback.py", root / "vignettes" / "text-feedback.Rmd"
    if not example.exists():
        pytest.skip("the examples are not part of the source distribution")
    python = example.read_text().split("def optimise(model):\n")[1].split("\n\n")[0]
    page = vignette.read_text()
    critics = re.findall(r"^\w+ <- text_judge\(.*$", page, re.MULTILINE)
    r = "\n".join([*critics, page.split("optimise <- function(model) {\n")[1].split("\n}\n")[0]])
    for code in (python, r):  # lines that only print do not count
        lines = [line for line in code.splitlines() if not re.match(r"\s*(print|cat|return)\b", line)]
        assert 14 <= len(lines) <= 16, lines


# The optimizer.


def test_descent_rewrites_parameters_with_feedback_in_order():
    model = text.scripted(
        {'role="one"': "Sure!\n<text>\nfirst {x}\n</text>", 'role="two"': "<text>second</text>", "": "no"}
    )
    one, two, three = (Parameter(f"{w} {{x}}" if w == "one" else w, role=w) for w in ("one", "two", "three"))
    optimizer = text.Descent([two, one, three], model, constraints="at most five words")
    one.grad, two.grad = None, None
    (two + one).backward("say more")
    three.register_hook(lambda g: g)
    optimizer.step()
    assert (one.item(), two.item(), three.item()) == ("first {x}", "second", "three")
    assert [one.role, two.role] == ["one", "two"] and one.requires_grad and one.is_leaf
    assert 'role="two"' in model.calls[0][0] and len(model.calls) == 2
    assert "at most five words" in model.calls[0][0] and "Keep {x} as it is." in model.calls[1][0]
    optimizer.zero_grad()
    assert one.grad is None
    optimizer.step()
    assert len(model.calls) == 2


def test_memory_and_state():
    model = text.scripted({"improve": [f"<text>v{i}</text>" for i in (1, 2, 3, 4)]})
    p = Parameter("v0", role="p")
    optimizer = text.Descent(p, model, memory=2)
    for i in range(3):
        p.backward(f"remark {i}")
        optimizer.step()
        optimizer.zero_grad()
    assert "Earlier" not in model.calls[0][0]
    assert "v0" in model.calls[2][0] and "- remark 1" in model.calls[2][0] and p.item() == "v3"
    state = json.loads(json.dumps(optimizer.state_dict()))
    assert state == {"past": [[["v1", ["remark 1"]], ["v2", ["remark 2"]]]]}
    other = text.Descent(p, model, memory=2)
    other.load_state_dict(state)
    p.backward("remark 3")
    other.step()
    assert "v0" not in model.calls[3][0] and "v2" in model.calls[3][0] and "v3" in model.calls[3][0]
    with pytest.raises(ArgumentError, match="1 parameters"):
        other.load_state_dict({"past": []})


def test_failed_step_changes_nothing_and_resumes_with_the_rest():
    fail = [True]

    def model(prompt, system):
        calls.append(prompt)
        if 'role="two"' in prompt and fail[0]:
            raise ConnectionError("down")
        return "<text>new {x}</text>"

    calls: list[str] = []
    one, two = Parameter("one", role="one"), Parameter("two {x}", role="two")
    optimizer = text.Descent([one, two], model)
    (one + two).backward("hm")
    with pytest.raises(ModelError, match="rewrite 'two': the model failed. ConnectionError: down"):
        optimizer.step()
    assert (one.item(), two.item()) == ("one", "two {x}")
    fail[0] = False
    optimizer.step()
    assert (one.item(), two.item()) == ("new {x}", "new {x}") and len(calls) == 3
    two.backward("again")
    with pytest.raises(ModelError, match=r"no place \{x\}"):
        text.Descent([two], lambda p, s: "<text>lost</text>").step()
    assert two.item() == "new {x}"


def test_answer_without_a_placeholder_is_requested_again_with_the_reason(tmp_path):
    p = Parameter("about {x}", role="p")
    p.backward("hm")
    model = text.scripted(
        {
            "Your answer 'gone' has lost {x}": ["<text>still gone</text>", "<text>with {x}</text>"],
            "": "<text>gone</text>",
        }
    )
    path = tmp_path / "calls.jsonl"
    optimizer = text.Descent(p, text.remembered(model, path))
    with pytest.raises(ModelError, match=r"no place \{x\}"):
        optimizer.step()
    optimizer.step()  # the rejected recorded answer is not replayed
    assert p.item() == "with {x}" and len(model.calls) == 3


@pytest.mark.parametrize(
    "answer, new",
    [
        ('<text role="p">\nnew\n</text>', "new"),
        ("<TEXT>new</TEXT> as asked", "new"),
        ("<text>a &lt;/text> b</text>", "a </text> b"),
        ("<text>a &amp;lt;/text> & &lt; b</text>", "a &lt;/text> & &lt; b"),
        ("a <textarea> and <text>new <textarea></text>", "new <textarea>"),
        ("<text>{0.__class__} %s ../x</text>", "{0.__class__} %s ../x"),
    ],
)
def test_text_between_tags_is_the_new_text(answer, new):
    p = Parameter("old", role="p")
    p.backward("hm")
    text.Descent(p, lambda prompt: answer).step()
    assert p.item() == new


@pytest.mark.parametrize(
    "answer",
    [
        "I cannot do that.",
        "<text>broken off",
        "</text>new<text>",
        "I write it between <text> and </text>: <text>new</text>",
        "<text>new</text> and then </text>",
        "<text>one</text> or <text>two</text>",
    ],
)
def test_unparsable_answer_is_requested_again_once_then_refused(answer):
    p = Parameter("old", role="p")
    p.backward("hm")
    model = text.scripted({"Your answer .* does not have one new text": "<text>new</text>", "": answer})
    text.Descent(p, model).step()
    assert p.item() == "new" and len(model.calls) == 2
    stubborn = text.scripted({"": answer})
    with pytest.raises(ModelError, match="rewrite 'p': the answer does not have one new text between <text>"):
        text.Descent(p, stubborn).step()
    assert p.item() == "new" and len(stubborn.calls) == 2
    text.Descent(p, stubborn, prompts={"rewrite": "Rewrite {text}."}).step()  # its prompt asks for no tags
    assert p.item() == answer


TAGS = ["</text>", "<text>", "</answer>", "</feedback>", "</call>", '<input role="x">', "</user>", "</version>", "</b>"]


@pytest.mark.parametrize("seed", range(20))
def test_quoted_tags_do_not_end_a_quotation(seed):
    """With random texts containing tags, every tag in a request is the layer's own, and texts round-trip unchanged."""
    rng = random.Random(seed)

    def words():
        return "".join(rng.choice([*TAGS, "&lt;/text>", "&amp;lt;text>", "&", "a ", "\n"]) for _ in range(12)) + "z"

    old, remark, answered = words(), words(), words()
    requests = []

    def critic(prompt, system):
        requests.append(prompt)
        return remark

    def rewriter(prompt, system):
        requests.append(prompt)
        return re.search(r"<text role=[^\n]*>\n.*?\n</text>", prompt, re.DOTALL)[0]

    p = Parameter(old, role='a "role" <x>')
    optimizer = text.Descent(p, rewriter, memory=2)
    for _ in range(2):
        text.call(lambda prompt, system: answered, p, role="</answer>", critic=critic).backward(words())
        optimizer.step()
        optimizer.zero_grad()
        assert p.item() == old.strip()
    layers = ("call", "answer", "feedback", "input", "text", "version")
    for request in requests:
        for tag in (*layers, "user") if "<call>" in request else layers:
            opened = re.findall(rf"^<{tag}(?: role=\"[^\"<>]*\")?>$", request, re.MULTILINE)
            anywhere = re.findall(rf"</?{tag}\b", request.replace("between <text> and </text>", ""))
            assert len(anywhere) == 2 * len(opened), (tag, request)


def test_several_texts_are_rewritten_by_element():
    words = Parameter(["a", "b", "c"], role="words")
    words[2].backward("louder")
    found = re.compile('<text role="words">\n(.*?)\n').search
    model = text.scripted({"": lambda p, s: f"<text>{found(p)[1].upper()}</text>"})
    text.Descent(words, model).step()
    assert words.tolist() == ["a", "b", "C"] and words.role == "words" and len(model.calls) == 1
    optimizer = text.Descent(words, model, memory=1)
    for texts in (["a"], ["a", "b"]):  # fewer and more than before
        words.data, words.grad = texts, None
        words[-1].backward("louder")
        optimizer.step()
    assert words.tolist() == ["a", "B"]


def test_invalid_parameters_of_descent():
    for wrong in ([Variable("a")], [Parameter(1.0)], ["a"], [Parameter("a") + "b"]):
        with pytest.raises(ArgumentTypeError, match=r"params\[0\]"):
            text.Descent(wrong, echo)
    p = Parameter("a")
    with pytest.raises(ArgumentError, match="twice"):
        text.Descent([p, p], echo)
    with pytest.raises(ArgumentError, match="memory"):
        text.Descent([p], echo, memory=-1)
    with pytest.raises(ArgumentError, match="rewritten"):
        text.Descent([p], echo, prompts={"rewritten": ""})
    for argument, wrong in [("params", None), ("params", []), ("constraints", None), ("constraints", ["a", 3])]:
        with pytest.raises(GradopsError, match=argument):
            text.Descent(**{"params": p, "model": echo, argument: wrong})
    for wrong in (3, {"rewrite": None}):
        with pytest.raises(ArgumentTypeError, match="prompts"):
            text.Descent([p], echo, prompts=wrong)
    for wrong in ({"past": [3]}, {"past": [[["a", [3]]]]}, {"past": [[["a"]]]}, {}, 3):
        with pytest.raises(ArgumentError, match="state"):
            text.Descent([p], echo).load_state_dict(wrong)


def test_prompts_are_replaced_and_filled_once():
    p = Parameter("{role}", role="{text}")
    model = text.scripted({"": "new {role}"})
    p.backward("{remarks} {model.__class__}")
    text.Descent(p, model, prompts={"rewrite": "R {role} T {text} F {remarks}", "rewrite_system": "S"}).step()
    assert model.calls == [("R {text} T {role} F - {remarks} {model.__class__}", "S")]
    critic = text.scripted({"": "fb"})
    answer = text.call(echo, p, critic=critic, prompts={"feedback": "{input_role}: {input} / {remarks}"})
    answer.backward("x")
    assert critic.calls[0][0] == "{text}: new {role} / - x"


# Batches.


def test_each_runs_concurrently_and_keeps_order_and_modes():
    started = threading.Barrier(4, timeout=10)

    def f(x, y):
        started.wait()
        time.sleep(0.02 * (4 - x))
        return x + y, is_grad_enabled()

    seen = []
    with no_grad():
        out = text.each(f, range(4), [10] * 4, progress=lambda done, total: seen.append((done, total)))
    assert out == [(x + 10, False) for x in range(4)] and seen[-1] == (4, 4)
    assert text.each(lambda x: x, []) == [] and text.each(str, [1], threads=1) == ["1"]
    with pytest.raises(ArgumentError, match="one length"):
        text.each(f, [1, 2], [1])


def test_each_raises_the_first_error_and_starts_no_further_calls():
    ran = []

    def f(x):
        ran.append(x)
        if x == 2:
            raise ValueError("two")
        time.sleep(0.01)
        return x

    with pytest.raises(ValueError, match="two"):
        text.each(f, range(100), threads=2)
    assert len(ran) < 100


def test_concurrent_backward_passes_give_feedback_in_batch_order():
    p = Parameter("p", role="p")

    def slow(x, name):
        @gradops.custom_gradient
        def f(x):
            def grad(upstream):
                time.sleep(0.05 if name == "0" else 0)
                return f"remark {name}"

            return x.data + name, grad

        return f(x)

    results = [slow(p, str(i)) for i in range(6)]
    judge = text.judge(lambda t: "bad")
    text.each(Variable.backward, [judge(r) for r in results])
    assert said(p) == [f"remark {i}" for i in range(6)]


def test_failed_concurrent_passes_resume_without_repeating_paid_calls():
    asked, broken = [], [True]

    def critic(prompt, system):
        found = re.search(r'<answer role="answer">\n(.)', prompt)[1]
        asked.append(found)
        if found == "2" and broken[0]:
            raise ConnectionError("rate limit")
        return f"remark {found}"

    p = Parameter("p", role="p")
    bad = text.judge(lambda t: "bad")
    losses = [bad(text.call(lambda q, s: q, str(i), p, critic=critic, role="answer")) for i in range(4)]
    with pytest.raises(ModelError, match="rate limit"):
        text.each(Variable.backward, losses, threads=4)
    assert p.grad is None
    broken[0] = False
    text.each(Variable.backward, losses)
    assert said(p) == [f"remark {i}" for i in range(4)]
    assert len(asked) == 5


def test_failed_pass_can_be_resumed():
    asked = []

    def critic(prompt, system):
        role = re.search('<input role="(.*?)">', prompt)[1]
        asked.append(role)
        if len(asked) == 4:
            raise TimeoutError
        return f"on {role}"

    a, b, c = (Parameter(w, role=w) for w in "abc")
    draft = text.call(echo, a, b, role="draft", critic=critic)
    answer = text.call(echo, draft, c, role="answer", critic=critic)
    hooked = []
    answer.register_hook(lambda g: hooked.append(len(g)))
    with pytest.raises(ModelError, match="TimeoutError"):
        answer.backward(["one", "two"])
    assert a.grad is b.grad is c.grad is None
    answer.backward(["one", "two"])
    assert [said(x) for x in (a, b, c)] == [["on a"], ["on b"], ["on c"]]
    assert len(asked) == 5 and hooked == [2]
    with pytest.raises(RuntimeError, match="freed"):
        answer.backward("again")


# Faulty models.


@pytest.mark.parametrize(
    "model, message",
    [
        (lambda p, s: None, "returned nothing, which is no text"),
        (lambda p, s: 3, "returned a int, which is no text"),
        (lambda p, s: " \n", "empty text"),
        (lambda p, s: 1 / 0, "the model failed. ZeroDivisionError: division by zero"),
    ],
)
def test_failing_model_is_named_with_the_call_and_its_inputs(model, message):
    with pytest.raises(ModelError, match=message) as caught:
        text.call(model, Variable("q", role="question"), Parameter("s", role="instruction"), role="draft")
    assert "the call for 'draft' (of 'instruction', 'question')" in str(caught.value)
    answer = text.call(echo, Parameter("q", role="question"), role="draft", critic=model)
    with pytest.raises(ModelError, match="feedback on 'question', of the call for 'draft'"):
        answer.backward("hm")


def test_budget_stops_before_the_call(tmp_path):
    path = tmp_path / "calls.jsonl"
    model = text.remembered(lambda p, s: p.upper(), path, calls=2)
    assert text.call(model, "a") == "A" and text.call(model, "b") == "B" and text.call(model, "a") == "A"
    with pytest.raises(BudgetError, match="budget of 2 calls is used up"):
        text.call(model, "c")
    assert model.spent["calls"] == 2 and len(path.read_text().splitlines()) == 2


def test_backward_passes_of_losses_that_are_leaves():
    leaves = [Parameter("a", role="first"), Parameter("b", role="second")]
    text.each(Variable.backward, leaves, ["hm", "well"])
    assert [str(said) for leaf in leaves for said in leaf.grad.data] == ["hm", "well"]
