"""Language models through one interface: adapters, recordings, budgets, retries, secrets."""

from __future__ import annotations

import functools
import json
import re
import sys
import threading
import types

import pytest

from gradops import Parameter, Variable, text
from gradops.errors import ArgumentError, ArgumentTypeError, BackendError, BudgetError, GradopsError, ModelError
from gradops.text import recorded_models

KEY = "sk-proj-0123456789abcdef"


def upper(prompt, system):
    return f"{system}|{prompt}".upper()


def completion(answer, tokens=7):
    message = {"role": "assistant", "content": answer}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 5, "completion_tokens": tokens - 5, "total_tokens": tokens},
    }


# Adapters.


def test_functions():
    class Old:
        def __call__(self, prompt, system_prompt=None):
            return f"{system_prompt}/{prompt}"

    joined = [lambda prompt: prompt, lambda *, prompt="p": prompt]
    assert text.as_model(upper)("p", "s") == "S|P" and text.as_model(upper)("p") == "NONE|P"
    assert text.as_model(Old())("p", "s") == "s/p"
    assert text.as_model(joined[0])("p", "s") == "s\n\np" and text.as_model(joined[0])("p") == "p"
    assert text.as_model(lambda prompt, temperature=1: prompt)("p", "s") == "s\n\np"
    assert text.as_model(lambda *args: str(args))("p") == "('p', None)"
    assert text.as_model(lambda system, prompt: f"{system}/{prompt}")("p", "s") == "s/p"
    assert text.as_model(lambda question, *, system_prompt: f"{system_prompt}/{question}")("p", "s") == "s/p"
    made = text.as_model(upper)
    assert text.as_model(made) is made and repr(made) == "<model upper>"
    for wrong in (3, None, object()):
        with pytest.raises(ArgumentTypeError, match="a function, a client or a name"):
            text.as_model(wrong)
    with pytest.raises(ArgumentTypeError, match="`temperature`"):
        text.as_model(upper, temperature=0)


class Client:
    """The common interface of compatible clients."""

    api_key = KEY

    def __init__(self, answer):
        self.asked = []
        self.answer = answer
        self.chat = types.SimpleNamespace(completions=self)

    def create(self, **request):
        self.asked.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        message = types.SimpleNamespace(content=self.answer)
        return types.SimpleNamespace(choices=[types.SimpleNamespace(message=message)], usage=None)


def test_compatible_clients():
    client = Client("hello")
    model = text.as_model(client, "small", temperature=0)
    assert model("p", "s") == "hello"
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "p"}]
    assert client.asked == [{"model": "small", "messages": messages, "temperature": 0}]
    conversation = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    text.call(model, conversation)
    assert client.asked[1]["messages"] == conversation
    with pytest.raises(ArgumentTypeError, match="`model` is missing: the .* has several models"):
        text.as_model(client)
    with pytest.raises(ModelError, match="returned nothing"):
        text.as_model(Client(None), "small")("p")


def completed(*contents, reason="stop", **message):
    choices = [
        types.SimpleNamespace(message=types.SimpleNamespace(content=content, **message), finish_reason=reason)
        for content in contents
    ]
    return types.SimpleNamespace(choices=choices, usage=None)


TOOL = types.SimpleNamespace(id="1", type="function", function=types.SimpleNamespace(name="look_up", arguments="{}"))


@pytest.mark.parametrize(
    ("response", "said"),
    [
        (completed("a", "b", "c"), "gave 3 answers.*\\n?.*leave out the option `n`"),
        (completed(None, reason="tool_calls", tool_calls=[TOOL]), "asks to call `look_up`"),
        (completed("I look.", tool_calls=[TOOL, {"function": {"name": "other"}}]), "`look_up`, `other`"),
        (completed(None, function_call=types.SimpleNamespace(name="old")), "`old`"),
        (completed(None, reason="content_filter"), "no text, for the reason 'content_filter'"),
        (completed(None, refusal="I will not."), "refused: I will not"),
    ],
)
def test_responses_that_are_not_text_are_an_error(response, said):
    client = types.SimpleNamespace(
        chat=types.SimpleNamespace(completions=types.SimpleNamespace(create=lambda **_: response))
    )
    question = Variable("why?", requires_grad=True)
    with pytest.raises(ModelError, match=f"(?s)the call for 'answer'.*{said}"):
        text.call(text.as_model(client, "small"), question)


def test_message_without_tool_calls_is_its_text():
    response = completed("hello", tool_calls=None, refusal=None)
    client = types.SimpleNamespace(
        chat=types.SimpleNamespace(completions=types.SimpleNamespace(create=lambda **_: response))
    )
    assert text.as_model(client, "small")("p") == "hello"


@pytest.fixture
def openai_client():
    openai = pytest.importorskip("openai")
    httpx = sys.modules.get("httpx2") or pytest.importorskip("httpx")
    requests = []

    def client(*responses):
        waiting = list(responses)

        def respond(request):
            requests.append(request)
            status, content = waiting.pop(0) if len(waiting) > 1 else waiting[0]
            return httpx.Response(status, json=content, headers={"retry-after": "0"})

        transport = httpx.Client(transport=httpx.MockTransport(respond))
        return openai.OpenAI(api_key=KEY, http_client=transport, max_retries=0), requests

    return client


def test_openai_with_its_mock_transport(openai_client, tmp_path):
    client, requests = openai_client((429, {"error": {"message": "slow down"}}), (200, completion("Paris")))
    path = tmp_path / "calls.jsonl"
    model = text.remembered(text.as_model(client, "small", temperature=0), path)
    answer = text.call(model, "Capital of France?", Parameter("Be brief.", role="instruction"), role="answer")
    assert answer.item() == "Paris" and len(requests) == 2
    sent = json.loads(requests[-1].content)
    assert sent["model"] == "small" and sent["temperature"] == 0 and sent["messages"][0]["content"] == "Be brief."
    assert model.spent == {"calls": 1, "tokens": 7, "remembered": 0}
    assert requests[-1].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in path.read_text() + repr(model) + repr(answer)


def test_openai_errors_hide_the_key(openai_client):
    client, _ = openai_client((401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}))
    with pytest.raises(ModelError, match="AuthenticationError") as caught:
        text.call(text.as_model(client, "small"), "q")
    assert KEY not in str(caught.value) and "***" in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__suppress_context__


def test_model_names_are_resolved_by_litellm(monkeypatch):
    client = Client("hi")
    monkeypatch.setitem(sys.modules, "litellm", types.SimpleNamespace(completion=client.create))
    model = text.as_model("anthropic/x", max_tokens=5, api_key="s3cret")
    assert model("p") == "hi" and client.asked[0]["model"] == "anthropic/x" and client.asked[0]["max_tokens"] == 5
    client.answer = ValueError("refused s3cret, sk-abcdef123456 and Bearer xyz")
    with pytest.raises(ModelError, match="refused .* Bearer") as caught:
        model("p")
    assert not any(secret in str(caught.value) for secret in ("s3cret", "abcdef", "xyz"))
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(BackendError, match="pip install litellm"):
        text.as_model("anthropic/x")


def test_litellm_with_its_mock(monkeypatch, tmp_path):
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # its import would fetch prices otherwise
    pytest.importorskip("litellm")
    monkeypatch.setattr(recorded_models.time, "sleep", lambda seconds: None)
    path = tmp_path / "calls.jsonl"
    model = text.remembered(text.as_model("gpt-4o-mini", mock_response="Paris", api_key=KEY), path)
    assert (
        text.call(model, "Capital of France?") == "Paris" and model.spent["tokens"] > 5 and KEY not in path.read_text()
    )
    limited = text.as_model("gpt-4o-mini", mock_response="litellm.RateLimitError", api_key=KEY)
    with pytest.raises(ModelError, match="RateLimitError"):
        text.remembered(limited, retries=1)("q")


def test_client_libraries_are_not_imported_at_start():
    import subprocess

    code = "import sys, gradops; print([m for m in ('openai', 'litellm', 'httpx', 'torch') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_keys_are_masked_in_errors_and_their_context(monkeypatch):
    keys = ["AIzaSyA1234567890abcdefghij", "eyJhbGciOi.e30.abc", "s3cret-of-mine"]
    monkeypatch.setenv("SOME_API_KEY", keys[-1])

    def model(prompt):
        raise ValueError(f"refused {prompt}")

    for key in keys:
        with pytest.raises(ModelError, match=r"refused \*\*\*") as caught:
            text.call(model, key)
        assert caught.value.__cause__ is None and caught.value.__context__ is None


def test_error_hints_are_worded_for_each_language():
    model = text.remembered(upper, calls=0)
    with pytest.raises(BudgetError, match="remembered.model, path, calls=") as caught:
        model("q")
    assert caught.value.worded(caught.value.hint_template, lambda field: field.r).startswith("`text_remembered(")


def test_scripts():
    model = text.scripted({"^a.*b$": "both", "one": ["1", "2"], "up": lambda prompt, system: prompt.upper()})
    assert model("a\nb") == "both" and [model("one"), model("one"), model("one")] == ["1", "2", "2"]
    assert text.scripted({"": lambda prompt: prompt * 2})("x") == "xx"
    assert model("x", "shut up") == "X" and model.calls[-1] == ("x", "shut up")
    with pytest.raises(ModelError, match="no answer to 'zzz'"):
        model("zzz")
    for wrong in ("x", {"a": 3}, {"a": []}):
        with pytest.raises(ArgumentTypeError, match="answers"):
            text.scripted(wrong)


# Recordings.


def test_recording_replays_without_a_model(tmp_path):
    path = tmp_path / "sub" / "calls.jsonl"
    asked = []
    model = text.remembered(lambda p, s: asked.append(p) or upper(p, s), path)
    assert [model("ä\nb", "s"), model("ä\nb", "s"), model("ä\nb")] == ["S|Ä\nB", "S|Ä\nB", "NONE|Ä\nB"]
    assert len(asked) == 2 and model.spent["remembered"] == 1
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert re.fullmatch(r"<lambda> at test_text_models.py:\d+(:\d+)?:[0-9a-f]+", rows[0].pop("model"))
    assert rows[0] == {
        "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "ä\nb"}],
        "answer": "S|Ä\nB",
        "tokens": 2,
    }
    replay = text.remembered(None, path)
    assert replay("ä\nb", "s") == "S|Ä\nB" and replay.spent == {"calls": 0, "tokens": 0, "remembered": 1}
    with pytest.raises(ModelError, match="the recording has no answer to 'other'"):
        replay("other")
    with pytest.raises(ArgumentError, match="path"):
        text.remembered(None)


def test_lambdas_do_not_share_a_recording(tmp_path):
    path = tmp_path / "calls.jsonl"
    first, second = (lambda p: "one"), (lambda p: "two")

    def named(model):
        return text.remembered(model, path)

    for _ in range(2):
        assert [named(f)("x") for f in (first, second, functools.partial(first))] == ["one", "two", "one"]
    assert len(path.read_text().splitlines()) == 3
    assert text.as_model(upper).name == "upper" and text.as_model(functools.partial(upper)).name == "partial of upper"


def test_interrupted_recording_loses_at_most_one_line(tmp_path):
    path = tmp_path / "calls.jsonl"
    text.remembered(upper, path)("one")
    whole = path.read_bytes()
    broken = whole + b'{"messages": [{"role": "user", "content": "tw\xc3'
    path.write_bytes(broken)
    assert text.remembered(None, path)("one") == "NONE|ONE" and path.read_bytes() == broken
    text.remembered(upper, path)("two")
    assert path.read_bytes().startswith(broken + b"\n") and text.remembered(None, path)("two") == "NONE|TWO"
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    text.remembered(upper, path)("three")
    assert [text.remembered(None, path)(word) for word in ("one", "two", "three")][2] == "NONE|THREE"
    for notes in (b"no json\n" + whole, b"my notes", b"\xff\xfe\n", b'{"a": 1}\n'):
        path.write_bytes(notes)
        with pytest.raises(ArgumentError, match="line 1 of .* is no recorded call"):
            text.remembered(upper, path)
        assert path.read_bytes() == notes


def test_recordings_are_separated_by_model_name(tmp_path):
    path = tmp_path / "calls.jsonl"
    small, large = (text.as_model(Client(word), word) for word in ("small", "large"))
    assert [text.remembered(model, path)("q") for model in (small, large, small)] == ["small", "large", "small"]
    assert len(path.read_text().splitlines()) == 2 and text.remembered(None, path)("q") == "large"
    path.write_text(json.dumps({"messages": [{"role": "user", "content": "q"}], "answer": "of before"}))
    assert text.remembered(small, path)("q") == "of before"


def test_interrupted_call_is_repeated():
    stop = [True]

    def model(prompt, system):
        if stop[0]:
            raise KeyboardInterrupt
        return "ok"

    memory = text.remembered(model)
    with pytest.raises(KeyboardInterrupt):
        memory("q")
    stop[0] = False
    assert memory("q") == "ok" and memory.spent["calls"] == 1


def test_equal_questions_of_several_threads_are_asked_once():
    asked, gate = [], threading.Event()

    def slow(prompt, system):
        asked.append(prompt)
        gate.wait(5)
        return prompt

    model = text.remembered(slow)
    threading.Timer(0.1, gate.set).start()
    assert text.each(lambda i: str(model("q")), range(6)) == ["q"] * 6 and asked == ["q"]


class RateLimitError(Exception):
    pass


class StatusError(Exception):
    def __init__(self, status):
        super().__init__(f"status {status}")
        self.status_code = status


@pytest.mark.parametrize("error", [RateLimitError("x"), StatusError(503), TimeoutError(), ConnectionResetError()])
def test_temporary_failures_are_retried_with_growing_delays(monkeypatch, error):
    waits, left = [], [3]
    monkeypatch.setattr(recorded_models.time, "sleep", waits.append)

    def model(prompt, system):
        left[0] -= 1
        if left[0]:
            raise error
        return "ok"

    assert text.remembered(model, wait=0.5)("q") == "ok" and waits == [0.5, 1.0]
    left[0] = 9
    with pytest.raises(ModelError, match=type(error).__name__):
        text.remembered(model, wait=0.5, retries=1)("q")


@pytest.mark.parametrize("error", [ValueError("x"), StatusError(400), StatusError(401)])
def test_permanent_failures_are_not_retried(monkeypatch, error):
    waits = []
    monkeypatch.setattr(recorded_models.time, "sleep", waits.append)

    def model(prompt, system):
        raise error

    with pytest.raises(ModelError, match=type(error).__name__):
        text.remembered(model)("q")
    assert waits == []


def test_budgets(tmp_path):
    path = tmp_path / "calls.jsonl"
    model = text.remembered(lambda p, s: "a" * 40, path, tokens=20)
    model("q" * 40)
    assert model.spent["tokens"] == 20
    with pytest.raises(BudgetError, match="budget of 20 tokens is used up"):
        model("r")
    assert model("q" * 40) and text.remembered(None, path)("q" * 40)
    calls = text.remembered(upper, calls=3)
    with pytest.raises(BudgetError):
        text.each(calls, [str(i) for i in range(10)])
    assert calls.spent["calls"] == 3
    for wrong in (-1, "3", True, 1.5):
        with pytest.raises(ArgumentError, match="calls"):
            text.remembered(upper, calls=wrong)


def test_model_output_is_never_used_as_a_path_or_template(tmp_path):
    evil = "{0.__class__} {x} ../../etc/passwd %s ${HOME} {None} {call} {said}"
    model = text.remembered(lambda p, s: evil, tmp_path / "c.jsonl")
    draft = text.call(model, Parameter("q", role="q"), role="{role}")
    seen = []
    text.call(lambda p, s: seen.append(p) or "x", "Check: {draft}", draft=draft)
    with pytest.raises(ModelError) as caught:
        text.scripted({"z": "x"})(evil)
    assert evil in str(caught.value)

    def failing(prompt):
        return text.as_model(lambda prompt: {}[prompt])(prompt)

    with pytest.raises(ModelError) as caught:
        text.call(failing, evil, role="{call}")
    assert evil in str(caught.value) and str(caught.value).startswith(
        "the call for '{call}' (of 'prompt'): the model <lambda> at test_text_models.py:"
    )
    assert seen == ["Check: " + evil] and [p.name for p in tmp_path.iterdir()] == ["c.jsonl"]


@pytest.mark.parametrize(
    "make, argument",
    [
        (lambda: text.scripted({"(": "x"}), "answers"),
        (lambda: text.remembered(lambda p, s: "x", retries=-1), "retries"),
        (lambda: text.remembered(lambda p, s: "x", wait=float("nan")), "wait"),
        (lambda: text.as_model(lambda p, s: "x")(3), "prompt"),
        (lambda: text.as_model(lambda p, s: "x")(Variable("abc")), "prompt"),
        (lambda: text.as_model(lambda p, s: "x")([{"role": "user"}]), "prompt"),
        (lambda: text.as_model(lambda p, s: "x")([]), "prompt"),
        (lambda: text.as_model(lambda p, s: "x")([{"role": "user", "content": "q", "name": "n"}]), "prompt"),
        (lambda: text.as_model(lambda p, s: "x")("q", 3), "system"),
        (lambda: text.as_model(lambda p, s: "x")("q", Parameter("s")), "system"),
        (lambda: text.scripted({b"a": "x"}), "answers"),
        (lambda: text.remembered(upper, 3), "path"),
        (lambda: text.remembered(upper, ""), "path"),
        (lambda: text.remembered(upper, "/"), "path"),
        (lambda: text.remembered(None, "/not/there.jsonl"), "path"),
        (lambda: text.remembered(upper, retries=1.5), "retries"),
        (lambda: text.remembered(upper, tokens=float("nan")), "tokens"),
        (lambda: text.each(upper, 3), "iterables"),
        (lambda: text.each(upper, [], threads=True), "threads"),
    ],
)
def test_error_names_the_wrong_argument(make, argument):
    with pytest.raises(GradopsError) as caught:
        make()
    assert caught.value.argument == argument
