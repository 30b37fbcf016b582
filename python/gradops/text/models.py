"""Models: functions, clients and model names behind one interface, ``model(prompt, system=None) -> str``."""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import os
import re
import threading
import types
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from .._scopes import changed
from ..errors import ArgumentError, ArgumentTypeError, BackendError, Code, Given, ModelError, TypeOf
from .batches import settled
from .files import Content, File, is_content, joined, parts_of, plain_text
from .tools import ToolCall

Messages = list[dict[str, Any]]
"""Messages, ``{"role": "user", "content": content}``; an assistant's may have ``tool_calls``, a tool's its request."""


class Reply(str):
    """An answer.

    Attributes:
        tokens: the number of tokens of the call, if the model reports it.
        calls: the requests to call tools, which come in place of an answer.
    """

    tokens: int | None = None
    calls: tuple[ToolCall, ...] = ()

    def __new__(cls, answer: str, tokens: int | None = None, calls: Sequence[ToolCall] = ()):
        self = super().__new__(cls, answer)
        self.tokens = tokens
        self.calls = tuple(calls)
        return self


_sending: ContextVar[tuple[Any, ...]] = ContextVar("gradops_sending", default=())
"""The models whose calls the current code runs in."""


class Model:
    """A model.

    ``send(messages)`` answers messages; ``send(messages, tools)`` may also ask for tools, functions by name. Error
    messages never show ``secrets``. No more than ``limit`` calls run at once.
    """

    def __init__(
        self,
        send: Callable[..., Any],
        name: str,
        secrets: Sequence[Any] = (),
        takes_tools: bool = False,
        limit: int | None = None,
    ):
        self.name = name
        self.takes_tools = takes_tools
        self.limit = limit
        self._send = send
        self._secrets = tuple(s for s in secrets if isinstance(s, str) and s)
        self._turns: Any = contextlib.nullcontext() if limit is None else threading.BoundedSemaphore(limit)

    def send(self, messages: Messages, tools: Mapping[str, Any] | None = None):
        """Return the model's answer as it comes; an awaitable is awaited."""
        # A tool that the model calls may call the model in turn, which must not wait for itself.
        turn = contextlib.nullcontext() if self in _sending.get() else self._turns
        with turn, changed(_sending, (*_sending.get(), self)):
            return settled(self._send(messages, tools) if tools else self._send(messages))

    def __call__(self, prompt: Content | Messages, system: str | None = None) -> str:
        """Return the answer to a prompt or to messages."""
        return ask(self, as_messages(prompt, system), f"the model {self.name}")

    def __repr__(self) -> str:
        return f"<model {self.name}>"

    def hide_secrets(self, message: str) -> str:
        for secret in (*self._secrets, *_secrets()):
            message = message.replace(secret, "***")
        return _SECRET.sub("***", message)


_SECRET = re.compile(
    r"\b(?:sk|pk|gsk|key|xai|hf|r8)[-_][\w*.-]{6,}|\bAIza[\w-]{20,}|\bAKIA\w{12,}|\beyJ[\w-]+\.[\w-]+\.[\w-]*"
    r"|(?<=Bearer )\S+|(?<=api[-_]key[=:])\S+",
    re.IGNORECASE,
)


def _secrets() -> list[str]:
    """Return the API keys among the environment variables, where clients and litellm look for them."""
    return [v for name, v in os.environ.items() if len(v) > 7 and name.upper().endswith(("_KEY", "_TOKEN", "_SECRET"))]


def as_messages(prompt: Content | Messages, system: str | None = None) -> Messages:
    """Return a prompt, or messages, as messages.

    Raises:
        ArgumentTypeError: ``prompt`` is neither a text nor messages.
    """
    if system is not None and not isinstance(system, str):
        raise _no_text("system", "a text", system)
    start = [] if system is None else [{"role": "system", "content": str(system)}]
    if is_content(prompt):
        return [*start, {"role": "user", "content": joined([prompt], "\n")}]
    if not isinstance(prompt, (list, tuple)) or not prompt or not all(map(_is_message, prompt)):
        raise _no_text("prompt", "a text, texts and files, or messages, each a `role` and a `content`", prompt)
    return [*start, *prompt]


def _no_text(argument: str, expected: str, value) -> ArgumentTypeError:
    return ArgumentTypeError(
        f"`{argument}` must be {expected}; got {{value}}.",
        argument=argument,
        hint="{call} takes text variables",
        value=TypeOf(value),
        call=Code("`text.call(model, prompt)`", "`text_call(model, prompt)`"),
    )


def _is_message(value) -> bool:
    return (
        isinstance(value, Mapping)
        and set(value) == {"role", "content"}
        and isinstance(value["role"], str)
        and is_content(value["content"])
    )


def as_prompt(messages: Messages) -> tuple[Content, str | None]:
    """Return messages as one prompt and one system prompt; a conversation is written out turn by turn.

    The prompt is a list of texts and files if there are files; files of the system prompt go first.
    """
    systems = [m["content"] for m in messages if m["role"] == "system"]
    system = "\n\n".join("".join(part for part in parts_of(s) if isinstance(part, str)) for s in systems)
    files = [part for s in systems for part in parts_of(s) if isinstance(part, File)]
    turns = [m for m in messages if m["role"] != "system"]
    if len(turns) == 1:
        prompt = turns[0]["content"]
    else:
        said = [joined([f"{turn['role'].capitalize()}: ", turn["content"]]) for turn in turns]
        prompt = joined(said, "\n\n")
    return joined([files, prompt]) if files else prompt, system or None


def ask(
    model: Model, messages: Messages, what: str, hint: str | None = None, tools: Mapping[str, Any] | None = None
) -> Reply:
    """Return the model's answer, or its requests to call ``tools``.

    Raises:
        ModelError: the model raised an error, or returned no text. ``what`` names the call and ``hint`` says how to
            repeat it. A subclass, such as a ``BudgetError``, stays that subclass.
    """
    failure: ModelError | None = None
    cause: BaseException | None = None
    try:
        answer = model.send(messages, tools)
    except ModelError as error:
        cause = error.__cause__
        call = f"call{len(error.fields)}"  # a model may call another model, whose error already names a call
        fields: dict[str, Any] = {**error.fields, call: Given(what)}
        failure = type(error)(f"{{{call}}}: {error.template}", hint=error.hint_template, **fields)
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        shown = model.hide_secrets(said)
        cause = error if shown == said else None
        failure = ModelError("{call}: the model failed. {said}", hint=hint, call=Given(what), said=Given(shown))
    if failure is not None:
        raise failure from cause  # outside of `except`, so that an error with secrets does not become its context
    answer = as_reply(answer)
    if isinstance(answer, Reply) and answer.calls:
        if tools:
            return answer
        raise ModelError(
            "{call}: the model asks to call {tools}, but there are no tools.",
            hint="offer tools with {offer}",
            call=Given(what),
            tools=Given(", ".join(f"`{one.name}`" for one in answer.calls)),
            offer=Code("`text.call(..., tools=[...])`", "`text_call(..., tools = list(...))`"),
        )
    if not isinstance(answer, Reply):
        raise ModelError(
            f"{{call}}: the model returned {_kind(answer)}, which is no text.", hint=hint, call=Given(what)
        )
    if not answer.strip():
        raise ModelError("{call}: the model returned an empty text.", hint=hint, call=Given(what))
    return answer


def as_reply(answer):
    """Return a text, or a request to call a tool, or several, as a ``Reply``; any other value unchanged."""
    calls = [answer] if isinstance(answer, ToolCall) else answer
    if isinstance(calls, (list, tuple)) and calls and all(isinstance(call, ToolCall) for call in calls):
        return Reply("", None, calls)
    return Reply(answer) if isinstance(answer, str) and not isinstance(answer, Reply) else answer


def _kind(answer) -> str:
    return "nothing" if answer is None else f"a {type(answer).__name__}"


def as_model(x, model: str | None = None, *, limit: int | None = None, **options) -> Model:
    """Return a model, ``model(prompt, system=None) -> str``, made of a function, a client or a name.

    Args:
        x: one of

            - a function of ``(prompt, system)``, in any order if one is named ``system`` or ``system_prompt``; or a
              function of the prompt, which then starts with the system prompt. A prompt with files is a list of texts
              and files. With a parameter ``tools``, a dict of functions, it may call tools itself, or return a
              :class:`ToolCall` or several;
            - a client with ``chat.completions.create``, such as ``openai``'s and compatible ones; a completion with
              several answers, or with tool calls that nobody offered, raises a ModelError;
            - the name of a model, which is called through ``litellm``: ``"anthropic/claude-..."``;
            - a model, which is returned.

            Functions and clients may be asynchronous: all are awaited in one event loop, on a thread of its own, so a
            call works where another loop is running, as in a notebook, which waits. To let that loop go on, use
            ``await asyncio.to_thread(text.call, model, prompt)``.
        model: the name of the client's model.
        limit: the most calls of this model that run at once; 8 of one batch by default.
        options: settings sent with each call: ``temperature=0``, ``max_tokens=200``.

    The model has the name of the function or of the client's model; :func:`remembered` uses it as a key. A lambda is
    named by its source position, so that two lambdas have separate recordings; lambdas made in a loop share one.

    Raises:
        ArgumentTypeError: ``x`` is none of these, a client comes without ``model``, or a plain function with options.
        ArgumentError: ``limit`` is not a positive whole number.
        BackendError: ``x`` is a name and litellm is not installed.

    Gradient:
        None; :func:`call` records a call as an operation.

    Examples:
        >>> from gradops import text
        >>> model = text.as_model(lambda prompt: prompt.upper())
        >>> model("why?")
        'WHY?'

    See Also:
        :func:`scripted`, :func:`remembered`, :func:`call`, whose answers have a gradient.
    """
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise ArgumentError(
            "`limit` must be a positive whole number; got {given}.", argument="limit", given=Given(repr(limit), limit)
        )
    if isinstance(x, Model):
        return _refuse_options(x, x, model, {**options, **({} if limit is None else {"limit": limit})})
    if isinstance(x, str):
        return _litellm_model(x, limit, options)
    completions = getattr(getattr(x, "chat", None), "completions", None)
    if completions is not None and callable(getattr(completions, "create", None)):
        return _client_model(x, completions.create, model, limit, options)
    if callable(x):
        send, takes_tools = _sender(x)
        return _refuse_options(x, Model(send, _name(x), (), takes_tools, limit), model, options)
    raise ArgumentTypeError(
        "a model must be a function, a client or a name; got {x}.",
        argument="model",
        hint="a function of a prompt and a system prompt that returns text works: {function}",
        x=TypeOf(x),
        function=Code("`lambda prompt, system: ...`", "`function(prompt, system) ...`"),
    )


def _name(function) -> str:
    """Return the name that identifies a function in recordings; a lambda's is its source position."""
    if isinstance(function, functools.partial):
        return f"partial of {_name(function.func)}"
    name = getattr(function, "__name__", type(function).__name__)
    code = getattr(function, "__code__", None)
    if name != "<lambda>" or code is None:
        return name
    where = f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"
    if hasattr(code, "co_positions"):  # from Python 3.11 on
        where += f":{next((column for _, _, column, _ in code.co_positions() if column), 0)}"
    constants = [x for x in code.co_consts if not isinstance(x, types.CodeType)]
    where += f":{zlib.crc32(repr((code.co_names, constants)).encode()):x}"  # in 3.12 returned constants lack a position
    return f"<lambda> at {where}"


def _refuse_options(x, made: Model, model, options) -> Model:
    if model is not None or options:
        name = "model" if model is not None else next(iter(options))
        raise ArgumentTypeError(
            f"`{name}`: {{x}} takes no options here.",
            argument=name,
            hint="give them where the model is made, or in the function",
            x=TypeOf(x),
        )
    return made


def _sender(function: Callable) -> tuple[Callable, bool]:
    """Return a function of messages, and of tools if ``function`` has a parameter ``tools``; and whether it has one."""
    try:
        takes_tools = "tools" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        takes_tools = False

    answer = None if takes_tools else prompt_function(function)

    def send(messages: Messages, tools=None):
        respond = answer or prompt_function(functools.partial(function, tools=tools or {}))
        return respond(*as_prompt(messages))

    return send, takes_tools


def prompt_function(function: Callable) -> Callable[[Any, str | None], Any]:
    """Return a function of ``(prompt, system)`` that passes ``system`` on by name, by position or in the prompt."""
    try:
        parameters = [p for p in inspect.signature(function).parameters.values() if p.name != "tools"]
    except (TypeError, ValueError):
        return function
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    for name in ("system", "system_prompt"):
        if name in names and names[0] != name:
            return lambda prompt, system: function(prompt, **{name: system})
        if name in names and len(positional) > 1:
            return lambda prompt, system: function(system, prompt)
    several = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if several or len([p for p in positional if p.default is p.empty]) == 2:
        return function
    return lambda prompt, system: function(prompt if system is None else joined([system, prompt], "\n\n"))


def _client_model(client, create: Callable, model: str | None, limit: int | None, options: dict) -> Model:
    if model is None:
        raise ArgumentTypeError(
            "`model` is missing: the {client} has several models.",
            argument="model",
            hint="{call}",
            client=TypeOf(client),
            call=Code('`as_model(client, "name-of-the-model")`', '`text_as_model(client, "name-of-the-model")`'),
        )
    return _completing(
        functools.partial(create, model=model), model, [getattr(client, "api_key", None)], limit, options
    )


def _completing(create: Callable, name: str, secrets: Sequence[Any], limit: int | None, options: dict) -> Model:
    def send(messages: Messages, tools=None):
        offered = {"tools": [{"type": "function", "function": tool.about} for tool in tools.values()]} if tools else {}
        response = create(messages=[_sent(message) for message in messages], **offered, **options)
        return _answer_of(settled(response), bool(tools))

    return Model(send, name, secrets, True, limit)


def _sent(message: dict) -> dict:
    """Return a message in the form of a client for chat completions."""
    sent = {**message, "content": _sent_content(message["content"])}
    if "tool_calls" in message:
        sent["content"] = None
        sent["tool_calls"] = [
            {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}
            for call in message["tool_calls"]
        ]
    return sent


def _sent_content(content: Content) -> str | list[dict]:
    if isinstance(content, str):
        return content
    return [{"type": "text", "text": part} if isinstance(part, str) else _sent_file(part) for part in content]


def _sent_file(file: File) -> dict:
    if file.kind == "image":
        return {"type": "image_url", "image_url": {"url": file.url}}
    if file.data is None:
        raise ModelError(
            "the client takes a document as bytes, not as an address; got {file}.",
            hint="read the document and pass its bytes",
            file=Given(str(file)),
        )
    if file.kind == "audio":
        content = file.url.partition(",")[2]
        return {"type": "input_audio", "input_audio": {"data": content, "format": file.media_type.partition("/")[2]}}
    return {"type": "file", "file": {"filename": file.name or "document", "file_data": file.url}}


def _litellm_model(name: str, limit: int | None, options: dict) -> Model:
    try:
        from litellm import completion  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise BackendError(
            f"the model {name!r} is called through litellm, which is not installed.",
            hint="{install}; or pass a client or a function",
            install=Code("pip install litellm", "pip install litellm in Python"),
        ) from None
    return _completing(functools.partial(completion, model=name), name, [options.get("api_key")], limit, options)


def _answer_of(response, offered: bool) -> Reply | Any:
    """Return the text of a chat completion, or its requests to call tools if some were offered.

    Raises:
        ModelError: the completion has several answers, tool calls that were not offered, or no text; the error gives
            the reason it states.
    """
    choices = getattr(response, "choices", None)
    if not choices:
        return None
    if len(choices) > 1:
        raise ModelError(
            f"the model gave {len(choices)} answers; a call takes one.",
            hint="leave out the option `n`; for several answers pass a list of equal prompts",
        )
    message = choices[0].message
    tokens = getattr(getattr(response, "usage", None), "total_tokens", None)
    if offered and (calls := _part(message, "tool_calls")):
        return Reply("", tokens, [_tool_call(call) for call in calls])
    if tools := _tools(message):
        raise ModelError(
            "the model asks to call {tools}; the answer must be text.",
            hint="pass the tools to {call}, which calls them; not as an option of the client",
            call=Code("`text.call(..., tools=[...])`", "`text_call(..., tools = list(...))`"),
            tools=Given(tools),
        )
    answer = message.content
    refusal, reason = getattr(message, "refusal", None), getattr(choices[0], "finish_reason", None)
    if answer is None and (refusal or reason):
        why = f"refused: {refusal}" if refusal else f"gave no text, for the reason {reason!r}"
        raise ModelError("the model {why}.", why=Given(why))
    return Reply(answer, tokens) if isinstance(answer, str) else answer


def _tools(message) -> str:
    """Return the names of the tools that a message asks to call, as words; empty without any."""
    calls = [*(getattr(message, "tool_calls", None) or ()), getattr(message, "function_call", None)]
    functions = [_part(call, "function") or call for call in calls if call is not None]
    names = [_part(function, "name") for function in functions]
    return ", ".join(f"`{name}`" if name else "a tool" for name in names)


def _tool_call(call) -> ToolCall:
    function = _part(call, "function")
    sent = _part(function, "arguments")
    try:
        arguments = json.loads(sent or "{}")
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        arguments = {"arguments": sent}  # which the tool refuses, so that the model is told
    return ToolCall(_part(function, "name"), arguments, _part(call, "id"))


def _part(value, name: str) -> Any:
    """Return an attribute of an object, or an item of a dict (some clients return dicts); None if it has none."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def shortened(text: str, size: int = 120) -> str:
    return text if len(text) <= size else f"{text[: size - 20]} ... {text[-15:]}"


_PLAIN = (str, ToolCall)


def scripted(answers: Mapping[str, Any]) -> Model:
    """Return a model with fixed answers, for tests and documentation.

    Args:
        answers: a dict from regular expressions to answers. The first expression found in the prompt, which starts with
            the system prompt, selects the answer; ``.`` also matches newlines, and a file is ``[image name]``. An
            answer is a text or a :class:`ToolCall`; a list of these, one for each call, the last of which is repeated;
            or a function, as for :func:`as_model`.

    Returns:
        A model. ``model.calls`` lists the ``(prompt, system)`` of its calls, in order; a prompt with files is a list.

    Raises:
        ArgumentTypeError: an answer of another type.
        ArgumentError: a pattern that is not a regular expression.
        ModelError: when called with a prompt that no pattern matches.

    Examples:
        >>> from gradops import text
        >>> model = text.scripted({"ice": ["It floats.", "It is cold."], ".": "I do not know."})
        >>> [model("What of ice?"), model("What of ice?"), model("What of fire?")]
        ['It floats.', 'It is cold.', 'I do not know.']

    See Also:
        :func:`as_model`, :func:`call`.
    """
    if isinstance(answers, list) and all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in answers):
        pairs, answers = answers, {}  # from R, where a list may have no names
        for pattern, answer in pairs:
            if pattern in answers:
                raise ArgumentError(f"`answers` has {pattern!r} twice.", argument="answers")
            answers[pattern] = answer
    if not isinstance(answers, Mapping):
        raise ArgumentTypeError(
            "`answers` must be patterns with their answers; got {answers}.", argument="answers", answers=TypeOf(answers)
        )
    rows = []
    for pattern, answer in answers.items():
        several = isinstance(answer, (list, tuple)) and len(answer) > 0 and all(isinstance(a, _PLAIN) for a in answer)
        if not (isinstance(answer, _PLAIN) or callable(answer) or several):
            raise ArgumentTypeError(
                f"`answers`: for {pattern!r} a text, a list of texts or a function; got {{answer}}.",
                argument="answers",
                answer=TypeOf(answer),
            )
        try:
            found = re.compile(pattern, re.DOTALL).search
            found("")
        except (re.error, TypeError) as error:
            raise ArgumentError(
                f"`answers`: {pattern!r} is no regular expression: {error}.", argument="answers"
            ) from None
        rows.append((found, prompt_function(answer) if callable(answer) else answer, [0]))
    calls: list[tuple[Content, str | None]] = []
    lock = threading.Lock()

    def send(messages: Messages, tools=None):
        prompt, system = as_prompt(messages)
        text = plain_text(prompt) if system is None else f"{system}\n\n{plain_text(prompt)}"
        with lock:
            calls.append((prompt, system))
            for found, answer, count in rows:
                if found(text):
                    count[0] += 1
                    if isinstance(answer, (list, tuple)):
                        answer = answer[min(count[0], len(answer)) - 1]
                    break
            else:
                raise ModelError(
                    "the script has no answer to {text}.",
                    hint="its patterns are {patterns}",
                    text=Given(repr(shortened(text))),
                    patterns=Given(", ".join(map(repr, answers))),
                )
        return answer if isinstance(answer, _PLAIN) else answer(prompt, system)

    model = Model(send, "scripted", takes_tools=True)
    model.calls = calls  # type: ignore[attr-defined]
    return model
