"""Model calls with files, tools, fields in the answer, and asynchronous models."""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Literal

import numpy as np
import pytest

import gradops
from gradops import Parameter, Variable, text
from gradops.autodiff import no_grad
from gradops.errors import ArgumentError, ArgumentTypeError, ModelError, ShapeError

PNG = b"\x89PNG\r\n\x1a\n"
PDF = b"%PDF-1.7"


def said(variable):
    return [] if variable.grad is None else [str(s) for s in variable.grad.data]


def naming_critic():
    """A critic whose remark is the name of the input."""
    return text.scripted({"": lambda prompt: "about " + _words(prompt).split('<input role="')[1].split('"')[0]})


def _words(prompt):
    return "".join(map(str, prompt)) if isinstance(prompt, list) else prompt


# Files


def test_files_are_parts_of_the_prompt_where_they_were_written():
    photo, paper = text.File(PNG, role="photo"), text.File(PDF, role="paper")
    model = text.scripted({"": "ok"})
    text.call(model, ["What is this?", photo, "And this?", "Really?", paper])
    text.call(model, "Compare {a} with {b}, {n} words.", "Be brief.", a=photo, b=paper, n=3)
    text.call(model, [{"role": "user", "content": [photo]}, {"role": "assistant", "content": "Hm."}])
    assert model.calls == [
        (["What is this?", photo, "And this?\nReally?", paper], None),
        (["Compare ", photo, " with ", paper, ", 3 words."], "Be brief."),
        (["User: ", photo, "Assistant: Hm."], None),
    ]
    assert text.scripted({r"see \[image photo\]": "yes"})(["see ", photo]) == "yes"


def test_a_list_of_files_is_a_batch():
    one, two = text.File(PNG, role="one"), text.File(PNG, role="two")
    question = Parameter(["What?", "Who?"], role="question")
    answers = text.call(
        lambda parts: _words(parts), "{q} {image}", q=question, image=[one, two], critic=naming_critic()
    )
    assert answers.tolist() == ["What? [image one]", "Who? [image two]"]
    answers[1].backward("hm")
    assert said(question) == ["about question"] and question.grad.data[0].places == (1,)
    with pytest.raises(ShapeError, match="2 and 3"):
        text.call(lambda parts: "", "{q} {image}", q=question, image=[one] * 3)


def test_critic_and_optimizer_see_the_files_of_call_and_remarks():
    photo, target = text.File(PNG, role="photo"), text.File(PNG, role="target")
    critic = text.scripted({"": "draw it"})
    question = Parameter("What is this?", role="question")
    answer = text.call(lambda parts: "a boat", [question, photo], critic=critic)
    answer.backward(["more like this", target, "shorter"])
    ((parts, system),) = critic.calls
    assert [part for part in parts if isinstance(part, text.File)] == [photo, target]
    assert parts[0].endswith("<user>\nWhat is this?") and parts[2].endswith("<feedback>\n- more like this")
    assert parts[4].startswith("- shorter\n</feedback>")
    model = text.scripted({"": "<text>What boat?</text>"})
    question.zero_grad()
    judge = text.judge(lambda answer: ["more like this", target])
    judge(question).backward()
    text.Descent(question, model).step()
    assert question.item() == "What boat?" and model.calls[0][0][1] == target


def test_files_are_read_once_and_addresses_never(tmp_path):
    path = tmp_path / "plot.png"
    path.write_bytes(PNG)
    file = text.File(path)
    path.unlink()
    assert (file.data, file.media_type, file.name, str(file)) == (PNG, "image/png", "plot.png", "[image plot.png]")
    assert file.url == "data:image/png;base64,iVBORw0KGgo=" and text.File(file.url) == text.File(PNG)
    assert pickle.loads(pickle.dumps(file)) == file
    far = text.File("https://example.org/a/paper.pdf?x=1")
    assert (far.data, far.kind, far.url) == (None, "document", "https://example.org/a/paper.pdf?x=1")
    assert text.File(b"RIFF....WEBP").media_type == "image/webp" and text.File(b"x", "audio/wav").kind == "audio"


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ((b"x",), ArgumentError, "`media_type` is missing"),
        (("none.png",), ArgumentError, "no file 'none.png'"),
        ((3,), ArgumentTypeError, "`source` must be bytes, a path or an address; got int"),
        (("data:image/png,x",), ArgumentError, "in base64"),
        ((PNG, 3), ArgumentTypeError, "`media_type` must be a text; got int"),
        ((PNG, None, 3), ArgumentTypeError, "`role` must be a text; got int"),
    ],
)
def test_wrong_files_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        text.File(*arguments)


def test_a_remark_comes_before_its_file():
    answer = Parameter("a", role="answer")
    with pytest.raises(ArgumentTypeError, match="after the remark"):
        answer.backward([text.File(PNG), "x"])


def client(*responses, log):
    """A client for chat completions that returns these messages in turn."""
    answers = iter(responses)

    def create(**request):
        log.append(request)
        message = next(answers)
        return SimpleNamespace(choices=[SimpleNamespace(message=message)], usage=SimpleNamespace(total_tokens=5))

    return SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))


def test_clients_get_files_and_tools_in_their_own_form():
    log: list = []
    asked = SimpleNamespace(
        id="a1", function=SimpleNamespace(name="look_up", arguments='{"word": "ice"}'), type="function"
    )
    replies = [
        SimpleNamespace(content=None, tool_calls=[asked]),
        SimpleNamespace(content="It floats.", tool_calls=None),
    ]

    def look_up(word: Annotated[str, "one word"], most: int = 3) -> str:
        """Look up a word.

        More about it.
        """
        return f"{word}: floats"

    model = text.as_model(client(*replies, log=log), "gpt", temperature=0)
    answer = text.call(model, ["Why?", text.File(PNG), text.File(PDF), text.File(b"x", "audio/wav")], tools=look_up)
    assert answer == "It floats."
    parameters = {
        "type": "object",
        "properties": {"word": {"type": "string", "description": "one word"}, "most": {"type": "integer"}},
        "required": ["word"],
        "additionalProperties": False,
    }
    about = {"name": "look_up", "description": "Look up a word.", "parameters": parameters}
    first = {
        "role": "user",
        "content": [
            {"type": "text", "text": "Why?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
            {"type": "file", "file": {"filename": "document", "file_data": "data:application/pdf;base64,JVBERi0xLjc="}},
            {"type": "input_audio", "input_audio": {"data": "eA==", "format": "wav"}},
        ],
    }
    function = {"name": "look_up", "arguments": '{"word": "ice"}'}
    assert log == [
        {"model": "gpt", "temperature": 0, "messages": messages, "tools": [{"type": "function", "function": about}]}
        for messages in (
            [first],
            [
                first,
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "a1", "type": "function", "function": function}],
                },
                {"role": "tool", "content": "ice: floats", "tool_call_id": "a1"},
            ],
        )
    ]
    with pytest.raises(ModelError, match="as bytes, not as an address"):
        text.call(model, text.File("https://example.org/a.pdf"))


def test_recordings_know_files_by_their_bytes_and_replay_tool_calls(tmp_path):
    path, photo = tmp_path / "calls.jsonl", text.File(PNG, role="photo")
    asked = text.ToolCall("size", {"of": "boat"}, "t1")
    script = text.scripted({"Tool: 3 m": "3 metres", "How big": asked, "What": "a boat"})
    sizes: list = []
    size = text.Tool(lambda of: sizes.append(of) or "3 m", "The size of a thing.", name="size")
    for first in (script, None):
        model = text.remembered(first, path)
        assert text.call(model, ["What?", photo]) == "a boat"
        answer = text.call(model, "How big?", tools=[size])
        assert answer == "3 metres" and text.tool_calls(answer)[0].result == "3 m"
        with pytest.raises(ModelError):
            text.call(text.remembered(None, path), ["What?", text.File(PNG + b"x")])
    assert len(script.calls) == 3 and sizes == ["boat", "boat"] and "iVBOR" not in path.read_text()


# Tools


def weather(city: str, unit: Literal["C", "F"] = "C") -> str:
    """The weather of a city."""
    return f"{city}: 12 {unit}"


def test_tool_results_go_back_to_the_model_until_it_answers():
    model = text.scripted(
        {
            "Tool: Oslo": "Both are cold.",
            "Tool: Rome": [text.ToolCall("weather", {"city": "Oslo", "unit": "F"})],
            "cold": text.ToolCall("weather", {"city": "Rome"}),
        }
    )
    answer = text.call(model, "Is it cold?", "Be brief.", tools=weather)
    conversation = 'User: Is it cold?\n\nAssistant: weather({"city": "Rome"})\n\nTool: Rome: 12 C'
    assert answer == "Both are cold." and model.calls == [
        ("Is it cold?", "Be brief."),
        (conversation, "Be brief."),
        (
            conversation + '\n\nAssistant: weather({"city": "Oslo", "unit": "F"})\n\nTool: Oslo: 12 F',
            "Be brief.",
        ),
    ]
    assert [(str(c), c.result) for c in text.tool_calls(answer)] == [
        ('weather({"city": "Rome"})', "Rome: 12 C"),
        ('weather({"city": "Oslo", "unit": "F"})', "Oslo: 12 F"),
    ]


def test_descriptions_of_tools_and_arguments_get_feedback_with_the_conversation():
    about, city = Parameter("The weather.", role="about"), Parameter("a city", role="city")
    system = Parameter("Be brief.", role="instruction")
    tool = text.Tool(lambda city: f"{city}: 12", about, name="weather", arguments={"city": Annotated[str, city]})
    model = text.scripted({"Tool:": "12", "cold": text.ToolCall("weather", {"city": "Rome"})})
    critic = naming_critic()
    answer = text.call(model, "Is it cold?", system, tools=[tool], critic=critic)
    answer.backward("which unit?")
    assert (said(about), said(city), said(system)) == (["about about"], ["about city"], ["about instruction"])
    assert len(critic.calls) == 3
    shown = critic.calls[0][0].split("<call>\n")[1].split("\n</call>")[0]
    assert shown == (
        "<tools>\n- weather: The weather.\n  - city (text): a city\n</tools>\n<system>\nBe brief.\n</system>\n"
        '<user>\nIs it cold?\n</user>\n<assistant>\nweather({"city": "Rome"})\n</assistant>\n<tool>\nRome: 12\n</tool>'
    )


def test_requests_and_results_are_variables_with_their_own_feedback():
    about, critic = Parameter("The weather.", role="about"), naming_critic()
    model = text.scripted({"Tool:": "12", "cold": text.ToolCall("weather", {"city": "Rome"})})
    answer = text.call(model, "Is it cold?", tools=[text.Tool(weather, about)], critic=critic)
    (asked,) = text.tool_calls(answer)
    assert asked.request.role == "request of `weather`" and asked.result.role == "result of `weather`"
    text.judge(lambda request: "name the country" if "country" not in request else None)(asked.request).backward(
        retain_graph=True
    )
    prompt = critic.calls[0][0]
    assert said(about) == ["about about"] and "- name the country" in prompt and "<tool>" not in prompt
    assert '<answer role="request of `weather`">\nweather({"city": "Rome"})\n</answer>' in prompt
    asked.result.backward("no unit")
    assert len(critic.calls) == 2 and "- no unit" in critic.calls[1][0]


def test_a_tool_that_calls_a_model_gets_feedback_on_its_result():
    expert = Parameter("You know ice.", role="expert")
    critic = naming_critic()

    def ask_expert(question: str):
        """Ask an expert."""
        return text.call(lambda prompt: f"expert on {prompt}", question, expert, role="advice", critic=critic)

    model = text.scripted({"Tool:": "done", "": text.ToolCall("ask_expert", {"question": "why?"})})
    answer = text.call(model, ["a", "b"] and "Ask.", tools=ask_expert, critic=critic)
    answer.backward("wrong")
    assert said(expert) == ["about expert"] and len(critic.calls) == 2
    assert '<input role="advice">' in critic.calls[0][0] and "- about advice" in critic.calls[1][0]


def test_each_answer_of_a_batch_has_its_own_conversation():
    about = Parameter("The weather.", role="about")
    model = text.scripted({"Tool: (.*)": lambda p: p[-10:], "": lambda p: text.ToolCall("weather", {"city": p})})
    answers = text.call(model, Variable(["Rome", "Oslo"]), tools=[text.Tool(weather, about)], critic=naming_critic())
    assert answers.tolist() == ["Rome: 12 C", "Oslo: 12 C"]
    assert [[str(c) for c in calls] for calls in text.tool_calls(answers)] == [
        ['weather({"city": "Rome"})'],
        ['weather({"city": "Oslo"})'],
    ]
    answers[1].backward("hm")
    assert said(about) == ["about about"]


def test_models_may_call_tools_themselves():
    seen = []

    def model(prompt, tools, system=None):
        seen.append((prompt, system, tools["weather"].about["description"]))
        return "It is " + tools["weather"](city="Rome")

    answer = text.call(model, "Cold?", "Brief.", tools=weather)
    assert answer == "It is Rome: 12 C" and seen == [("Cold?", "Brief.", "The weather of a city.")]
    assert str(text.tool_calls(answer)[0]) == 'weather({"city": "Rome"})'


def test_the_model_is_told_of_requests_that_do_not_fit():
    wrong = [
        text.ToolCall("wether", {}),
        text.ToolCall("weather", {"town": "Rome"}),
        text.ToolCall("weather", {}),
        text.ToolCall("weather", {"city": 3}),
        text.ToolCall("weather", {"city": "Rome", "unit": "K"}),
    ]
    answers = iter([*wrong, "sorry"])
    answer = text.call(lambda prompt, system, tools: next(answers), "Cold?", tools=weather)
    assert [str(c.result) for c in text.tool_calls(answer)] == [
        "error: there is no tool `wether`; the tools are `weather`",
        "error: it has `town`, which is not asked for",
        "error: `city` is missing",
        "error: `city` must be text; it is 3",
        'error: `unit` must be one of "C", "F"; it is "K"',
    ]


def test_errors_of_tools_name_the_call_and_leave_no_scope():
    def down(city: str):
        """The weather."""
        raise KeyError("sk-abcdef123456")

    model = text.scripted({"": text.ToolCall("down", {"city": "Rome"})})
    with pytest.raises(
        ModelError, match=r'the call for .reply. .*the tool down\(\{"city": "Rome"\}\) failed'
    ) as caught:
        text.call(model, "Cold?", role="reply", tools=down)
    assert "sk-abc" not in str(caught.value) and caught.value.__cause__ is None and caught.value.__context__ is None
    with pytest.raises(ModelError, match="asked for tools more than 2 times"):
        text.call(text.scripted({"": text.ToolCall("weather", {"city": "Rome"})}), "Cold?", tools=weather, rounds=2)
    with pytest.raises(ModelError, match="asks to call `weather`, but there are no tools"):
        text.call(text.scripted({"": text.ToolCall("weather")}), "Cold?")
    with pytest.raises(ArgumentTypeError, match="takes no tools"):
        text.call(lambda prompt: "x", "Cold?", tools=weather)
    with pytest.raises(ArgumentError, match="`rounds` must be a positive whole number; got 0"):
        text.call(model, "Cold?", tools=weather, rounds=0)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: text.Tool(3), "`f` must be a function; got int"),
        (lambda: text.Tool(lambda x: x, "about"), "`name` must be a word"),
        (lambda: text.Tool(weather, 3), "`description` must be one text; got int"),
        (lambda: text.Tool(lambda x: x, name="f"), "`description` must be one text; got NoneType"),
        (lambda: text.Tool(weather, arguments={"city": object}), "`arguments`: 'city' must be a type such as"),
        (lambda: text.Tool(weather, arguments=["city"]), "`arguments` must be names with types; got list"),
        (lambda: text.call(lambda p, tools: "x", "a", tools=[weather, 3]), r"`tools\[1\]` must be a tool; got int"),
        (lambda: text.call(lambda p, tools: "x", "a", tools=[weather] * 2), "two tools of the name `weather`"),
        (lambda: text.ToolCall(3), "`name` must be the name of a tool; got int"),
        (lambda: text.ToolCall("f", 3), "`arguments` must be values by name; got int"),
        (lambda: text.tool_calls(3), "`answer` must be an answer of `call`; got int"),
    ],
)
def test_wrong_tools_are_named(make, message):
    with pytest.raises(ArgumentTypeError, match=message):
        make()


# Fields of the answer


def test_fields_are_asked_for_parsed_and_typed():
    @dataclass
    class City:
        name: str
        people: Annotated[int, "in millions"]
        share: float
        kind: Literal["old", "new"]
        capital: bool
        rivers: list[str]
        mayor: str | None

    words = '{"name": "Rome", "people": 3, "share": 0.5, "kind": "old", "capital": true, "rivers": ["Tiber"]}'
    model = text.scripted({"": f"Here it is:\n```json\n{words}\n```"})
    answer = text.call(model, Variable("Which city?"), returns=City)
    assert model.calls == [
        (
            "Which city?\n\nAnswer with a JSON object, and nothing else, that has these fields:\n- name (text)\n"
            '- people (a whole number): in millions\n- share (a number)\n- kind (one of "old", "new")\n'
            "- capital (true or false)\n- rivers (a list, each text)\n- mayor (text; may be left out)",
            None,
        )
    ]
    assert {name: value.item() if isinstance(value, Variable) else value for name, value in answer.items()} == {
        "name": "Rome",
        "people": 3.0,
        "share": 0.5,
        "kind": "old",
        "capital": True,
        "rivers": ["Tiber"],
        "mayor": None,
    }
    assert answer.text.item().startswith("Here it is") and answer["name"].role == "name"
    plain = text.call(model, "Which city?", returns=City)
    assert plain["name"] == "Rome" and type(plain["share"]) is float


def test_feedback_on_fields_names_them_and_numbers_say_where_to_go():
    system, scale = Parameter("Be fair.", role="instruction"), Parameter("from 0 to 10", role="scale")
    critic = naming_critic()
    model = text.scripted({"": '{"city": "Rome", "score": 7, "other": 2}'})
    returns = {"city": "the name", "score": Annotated[float, scale], "other": float}
    answer = text.call(model, "Rate it.", system, returns=returns, critic=critic)
    loss = 0.25 * (answer["score"] - 3.0) ** 2 - 3.0 * answer["other"] + text.judge(lambda c: "too big")(answer["city"])
    loss.backward()
    assert said(system) == ["about instruction"] and said(scale) == ["about scale"]
    remarks = critic.calls[0][0].split("<feedback>\n")[1].split("\n</feedback>")[0]
    assert sorted(remarks.split("\n")) == [
        "- `city`: too big",
        "- `other` should be higher than 2",
        "- `score` should be lower than 7",
    ]
    assert system.grad.data[0].weight == 3.0
    system.zero_grad(), scale.zero_grad()
    answer = text.call(model, "Rate it.", system, returns=returns, critic=critic)
    (0.0 * answer["score"]).backward()
    assert said(system) == [] and len(critic.calls) == 2
    answer = text.call(model, "Rate it.", system, returns=returns, critic=critic)
    answer.text.backward("no reason given")
    assert "<feedback>\n- no reason given\n</feedback>" in critic.calls[-1][0]


def test_fields_of_a_batch_are_several_texts_and_a_vector():
    question = Parameter(["a", "b"], role="question")
    model = text.scripted({"^a": '{"x": "A", "n": 1}', "^b": '{"x": "B", "n": 2}'})
    critic = naming_critic()
    answer = text.call(model, question, returns={"x": str, "n": float}, critic=critic)
    assert answer["x"].tolist() == ["A", "B"] and answer["n"].tolist() == [1.0, 2.0]
    (answer["n"] * np.array([0.0, 1.0])).sum().backward()
    assert question.grad.data[0].places == (1,) and "`n` should be lower than 2" in critic.calls[0][0]


def test_an_answer_that_does_not_fit_is_asked_for_once_more():
    model = text.scripted({"does not fit": '{"n": 3}', "": '{"n": "three"}'})
    assert text.call(model, "How many?", returns={"n": int}) == {"n": 3.0}
    asked = "How many?\n\nAnswer with a JSON object, and nothing else, that has these fields:\n- n (a whole number)"
    assert model.calls[1][0] == (
        f'User: {asked}\n\nAssistant: {{"n": "three"}}\n\nUser: That answer does not fit: `n` must be a whole number; '
        'it is "three". Answer again, with the JSON object alone.'
    )
    with pytest.raises(
        ModelError, match="the answer 'four' does not have the fields of `returns`: it must be an object"
    ):
        text.call(text.scripted({"": "four"}), "How many?", returns={"n": int})
    with pytest.raises(ArgumentError, match="`returns` is empty"):
        text.call(model, "How many?", returns={})
    with pytest.raises(ArgumentTypeError, match="`returns` must be names with types; got int"):
        text.call(model, "How many?", returns=3)


# Asynchronous models


def test_asynchronous_models_run_at_once_in_one_loop_within_the_limit():
    loops, running, most = set(), 0, 0

    async def model(prompt):
        nonlocal running, most
        loops.add(asyncio.get_running_loop())
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.02)
        running -= 1
        return prompt.upper()

    letters = list("abcdefgh")
    assert text.call(text.as_model(model, limit=3), Variable(letters)).tolist() == [x.upper() for x in letters]
    assert most == 3
    assert text.call(model, Variable(letters)).tolist() == [x.upper() for x in letters]
    assert most == 8 and len(loops) == 1
    assert text.each(model, letters) == [x.upper() for x in letters] and len(loops) == 1


def test_asynchronous_models_work_within_a_running_loop_and_in_the_backward_pass():
    async def model(prompt, system=None):
        await asyncio.sleep(0)
        return "about it" if "<input" in prompt else "ok"

    async def notebook():
        x = Parameter("a", role="x")
        answer = text.call(model, x)
        text.judge(_too_long)(answer).backward()
        return said(x), await asyncio.to_thread(text.call, model, "b")

    async def _too_long(answer):
        return "too long"

    assert asyncio.run(notebook()) == (["about it"], "ok")


def test_a_limited_model_may_be_called_by_its_own_tool():
    def model(prompt, system, tools):
        return prompt if not tools else tools["ask"](question="inner")

    def ask(question: str):
        """Ask again."""
        return text.call(limited, question)

    limited = text.as_model(model, limit=1)
    with ThreadPoolExecutor(1) as executor:
        answer = executor.submit(text.call, limited, "outer", tools=ask)
        assert answer.result(timeout=20) == "inner"


def test_futures_of_other_libraries_stay_futures():
    class Future:
        def __await__(self):
            raise AssertionError

    assert all(isinstance(x, Future) for x in text.each(lambda x: Future(), "ab"))


def test_errors_of_asynchronous_models_name_the_call():
    async def model(prompt):
        raise ConnectionError("down")

    async def outer(prompt):
        return text.call(model, "inner", role="inner")

    with pytest.raises(ModelError, match="the call for 'reply' .*ConnectionError: down"):
        text.call(model, "q", role="reply")
    with pytest.raises(ModelError, match="within the event loop that awaits both") as caught:
        text.call(outer, "q")
    assert "asyncio.to_thread" in str(caught.value)
    with pytest.raises(ArgumentError, match="`limit` must be a positive whole number; got 0"):
        text.as_model(model, limit=0)


def test_asynchronous_models_are_retried_and_modes_hold():
    failed, modes = [], []

    async def model(prompt):
        from gradops.autodiff import is_grad_enabled

        modes.append(is_grad_enabled())
        if not failed:
            failed.append(1)
            raise TimeoutError
        return "ok"

    with no_grad():
        assert text.call(text.remembered(model, wait=0.0), "q") == "ok"
    assert modes == [False, False]


def test_calls_leave_no_threads_or_objects():
    async def model(prompt, system=None, tools=None):
        return "ok" if "Tool:" in prompt or "<input" in prompt else text.ToolCall("weather", {"city": "Rome"})

    def run():
        x = Parameter("a", role="x")
        answer = text.call(model, x, tools=weather)
        answer.backward("hm")
        return weakref.ref(answer), weakref.ref(text.tool_calls(answer)[0])

    run()
    before = threading.active_count()
    refs = [ref for _ in range(5) for ref in run()]
    gc.collect()
    assert threading.active_count() == before and all(ref() is None for ref in refs)


FORK = """
import os
from gradops import text

async def model(prompt):
    return "ok"

assert text.call(model, "q") == "ok"
child = os.fork()
if child == 0:
    os._exit(0 if text.call(model, "q") == "ok" else 1)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
def test_a_forked_process_has_its_own_loop():
    paths = {"PYTHONPATH": str(Path(gradops.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", FORK], check=True, timeout=60, env={**os.environ, **paths})


# The optimiser: groups, learning rates, scores


def rewriting(*answers):
    return text.scripted({"": [f"<text>{answer}</text>" for answer in answers]})


def test_groups_have_their_own_options():
    first, second = Parameter("a b c d", role="first"), Parameter("e f", role="second")
    slow, fast = rewriting("a b c x"), rewriting("y")
    groups = [
        {"params": [first], "learning_rate": 0.25, "constraints": ["no names"]},
        {"params": second, "model": fast},
    ]
    optimizer = text.Descent(groups, slow, memory=1)
    for x in (first, second):
        x.backward("hm")
    optimizer.step()
    assert (first.item(), second.item()) == ("a b c x", "y")
    rules = slow.calls[0][0].split("keep to this:\n")[1].split("\n\n")[0]
    assert rules == "- no names\n- Change at most 1 of the 4 words." and "keep to this" not in fast.calls[0][0]
    assert [group["memory"] for group in optimizer.param_groups] == [1, 1] and optimizer.params == [first, second]
    optimizer.param_groups[0]["learning_rate"] = 2
    with pytest.raises(ArgumentError, match="`learning_rate` must be a share of the words, above 0 and up to 1; got 2"):
        optimizer.step()


def test_learning_rate_bounds_the_words_that_change():
    x = Parameter("one two three four five six", role="x")
    model = rewriting("one 2 3 4 five six", "zero one two three 4 five six", "never")
    x.backward("hm")
    text.Descent(x, model, learning_rate=0.4).step()
    assert x.item() == "zero one two three 4 five six"
    assert "- Change at most 2 of the 6 words." in model.calls[0][0]
    assert "- Your answer 'one 2 3 4 five six' changes 3 words." in model.calls[1][0]
    with pytest.raises(ModelError, match="changes 8 words; the learning rate allows 2") as caught:
        text.Descent(x, rewriting("all other words in eight words of mine"), learning_rate=0.4).step()
    assert "raise `learning_rate`" in str(caught.value) and x.item() == "zero one two three 4 five six"


def test_a_candidate_is_kept_if_it_scores_higher():
    x, y = Parameter("start", role="x"), Parameter("other", role="y")
    scores = {"start": 0.5, "low": 0.2, "same": 0.5, "high": [0.5, 1.0]}
    model = rewriting("low", "same", "high", "low")
    optimizer = text.Descent([x, y], model, memory=2, score=lambda: scores[x.item()], candidates=2)
    x.backward("hm")
    optimizer.step()
    assert x.item() == "start" and len(model.calls) == 2
    assert "- Improve on 'low', which was tried: it scored 0.2, and the present text 0.5." in model.calls[1][0]
    optimizer.step()
    assert x.item() == "high" and len(model.calls) == 3 and "Improve on 'same'" in model.calls[2][0]
    assert [tuple(trial) for trial in optimizer.trials] == [
        (0.5, True, ["start", "other"]),
        (0.2, False, ["low", "other"]),
        (0.5, False, ["same", "other"]),
        (0.75, True, ["high", "other"]),
    ]
    assert optimizer.state_dict() == {"past": [[["start", ["hm"]]], []]}


def test_a_score_that_fails_restores_the_texts():
    x = Parameter("start", role="x")
    x.backward("hm")
    calls: list = []

    def score():
        calls.append(x.item())
        if len(calls) == 2:
            raise ValueError("no data")
        return 1.0

    optimizer = text.Descent(x, rewriting("new"), score=score)
    with pytest.raises(ValueError, match="no data"):
        optimizer.step()
    assert x.item() == "start" and calls == ["start", "new"]
    for wrong in ("good", None, float("nan")):
        with pytest.raises(ArgumentTypeError, match="`score` must return a number"):
            text.Descent(x, rewriting("new"), score=lambda wrong=wrong: wrong).step()
    assert x.item() == "start"


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ({"learning_rate": 0}, ArgumentError, "`learning_rate` must be a share of the words"),
        ({"learning_rate": "a"}, ArgumentError, "`learning_rate` must be a share of the words"),
        ({"score": 3}, ArgumentTypeError, "`score` must be a function without arguments; got int"),
        ({"candidates": 0}, ArgumentError, "`candidates` must be a positive whole number; got 0"),
        ({"params": [{"params": [], "memory": 1}]}, ArgumentError, "a group of `params` has no parameters"),
        ({"params": [{"lr": 1}]}, ArgumentError, "a group of `params` has no option 'lr'; it has 'model', 'memory'"),
        ({"params": [{"params": "x"}, 3]}, ArgumentTypeError, "`params` has groups and other values; got int"),
    ],
)
def test_wrong_settings_of_the_optimizer_are_named(arguments, error, message):
    x = Parameter("a", role="x")
    given = {"params": x, "model": rewriting("b"), **arguments}
    if isinstance(given["params"], list) and given["params"][0].get("params") == "x":
        given["params"][0] = {"params": x}
    with pytest.raises(error, match=message):
        text.Descent(**given)
