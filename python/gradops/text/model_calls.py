"""``call`` and ``judge``: a model's answer, and a critic, as operations on the tape."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping, Sequence
from numbers import Number
from operator import attrgetter
from typing import Any

import numpy as np

from ..autodiff.graph import Rule, key
from ..autodiff.modes import no_grad, recording
from ..autodiff.record import record
from ..autodiff.state import wanted
from ..autodiff.variable import Variable, check_role, data_of, wrap
from ..errors import ArgumentError, ArgumentTypeError, Code, Given, Item, ModelError, ShapeError, TypeOf
from .batches import each, settled
from .files import Content, File, joined
from .models import Messages, Model, as_model, ask, shortened
from .operations import is_list_of_texts, is_text, made, several, value_of
from .prompts import Quotes, chosen, fill, listed, places
from .schemas import Field, fields_of, mistake, object_schema, parsed_object, shortest
from .tools import Tool, ToolCall, listed_tools
from .values import Feedback, Said, Text, Texts, aligned, feedback


def call(
    model,
    prompt,
    system=None,
    *,
    role: str | None = None,
    critic=None,
    prompts: Mapping[str, str] | None = None,
    tools=(),
    rounds: int = 8,
    returns=None,
    **fields,
) -> Any:
    """Return a model's answer to ``prompt``, recorded: feedback on the answer becomes feedback on the inputs.

    Args:
        model: a model, or a value that :func:`as_model` takes.
        prompt: a text; a list of texts and files (:class:`File`); or messages: ``[{"role": "user", "content": text},
            ...]``, whose content may be such a list.
        system: the system prompt, a text.
        role: the purpose of the answer; "answer" by default.
        critic: the model that gives the feedback; ``model`` by default.
        prompts: replacements for the prompts to the critic: ``{"feedback": ..., "feedback_system": ...}``; see
            ``prompts.PROMPTS``.
        tools: functions that the model may ask to call, :class:`Tool`; their descriptions get feedback.
            :func:`tool_calls` lists the requests and results of an answer. A tool that returns a text variable gets
            feedback on it too. If a request does not fit the tool, the model is told so.
        rounds: the most times that the model may ask for tools before it answers.
        returns: the fields of the answer, ``{"city": str, "score": Annotated[float, "from 0 to 1"]}``: a dict from
            names to types (``str``, ``float``, ``int``, ``bool``, ``list[str]``, ``Literal["a", "b"]``), descriptions
            or JSON schemas; or a class with annotations. The model is asked for JSON, and asked again once if its
            answer does not fit. A description that is a text variable gets feedback.
        fields: the values for ``{name}`` in ``prompt`` and ``system``: texts, numbers and files, or a list of texts or
            files. Only the given names are replaced, and braces inside a value stay. Without fields, texts are sent
            unchanged.

    Texts may be variables or strings. With several texts, each is a call of its own; these run at once and give
    several answers.

    Returns:
        A text variable; a ``Text`` where no argument is a variable. With ``returns`` a dict of the fields, whose
        attribute ``text`` is the answer itself: a text is a text variable, a number a variable of floats; true or
        false, lists and objects are plain values.

    Raises:
        ArgumentTypeError: a prompt, a system prompt or a field is not a text, a message has more than a role and
            a content, or the model takes no tools.
        ArgumentError: the prompt has no ``{name}`` for a field, ``returns`` is empty, or ``rounds`` is below 1.
        ShapeError: the numbers of texts differ.
        ModelError: the model failed, gave no text or several, asked for tools too often, or gave no JSON for
            ``returns``; a tool failed. The error names the roles of the answer and of the inputs.

    Gradient:
        One request to ``critic`` for each text input that requires feedback, with the call, the answer and the remarks
        on the answer; no request if there are no remarks. The critic's answer "nothing" means no feedback. If a request
        fails, ``backward()`` can be called again and repeats only the requests that were not answered. A remark on a
        field names it; the gradient of a number says whether it should be lower or higher. The critic sees the files of
        the call and of the remarks.

    Examples:
        The critic turns feedback on the answer into feedback on the instruction. The models here have fixed answers;
        any function of a prompt works too:

        >>> from gradops import Variable, text
        >>> model = text.scripted({"ice": "Ice floats. It is less dense. It is cold."})
        >>> critic = text.scripted({"too long": "Ask for one sentence."})
        >>> instruction = Variable("Answer the question.", role="instruction", requires_grad=True)
        >>> answer = text.call(model, "Why does ice float?", instruction, critic=critic)
        >>> brief = text.judge(lambda answer: "The answer is too long." if len(answer) > 20 else None)
        >>> brief(answer).backward()
        >>> print(instruction.grad)
        Ask for one sentence.

    See Also:
        :func:`judge` to score an answer, :class:`Descent` to rewrite texts, :func:`remembered` to cache answers.
    """
    check_role(role)
    asked = as_model(model)
    fields = {name: _field(name, value) for name, value in fields.items()}
    offered = listed_tools(tools) if tools else []
    if offered and not asked.takes_tools:
        raise ArgumentTypeError(
            "`tools`: the model {name} takes no tools.",
            argument="tools",
            hint="a function takes them with a parameter `tools`; a client does by itself",
            name=Given(asked.name),
        )
    if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 1:
        raise ArgumentError(
            "`rounds` must be a positive whole number; got {given}.",
            argument="rounds",
            given=Given(repr(rounds), rounds),
        )
    answer_fields = None if returns is None else fields_of("returns", returns)
    calling = _Call(
        asked,
        _turns(prompt, system),
        fields,
        role or "answer",
        as_model(critic or asked),
        chosen(prompts),
        offered,
        rounds,
        answer_fields,
    )
    answers = each(calling.converse, calling.rows, threads=asked.limit or 8)
    calling.answers = dict(zip(calling.rows, answers))
    texts = [Text(answer, (calling.role,)) for answer in answers]
    for text, calls in zip(texts, calling.calls.values()):
        text.calls = calls
    result = Texts(texts) if calling.count is not None else texts[0]
    return calling.recorded(result) if answer_fields is None else _by_field(calling, result, answer_fields)


_MESSAGES = Code(
    '`[{"role": "user", "content": text}]`; several texts are `Variable([...])`',
    '`list(list(role = "user", content = text))`',
)


def _turns(prompt, system) -> list[tuple[str, list]]:
    """Return the messages as pairs: the speaker's role and a list of texts."""
    if system is not None and not is_text(system):
        raise ArgumentTypeError("`system` must be a text; got {system}.", argument="system", system=TypeOf(system))
    turns = [] if system is None else [("system", [system])]
    if is_text(prompt) or isinstance(prompt, File):
        return [*turns, ("user", [prompt])]
    if isinstance(prompt, (list, tuple)) and any(isinstance(part, File) for part in prompt):
        prompt = [{"role": "user", "content": prompt}]
    if not isinstance(prompt, (list, tuple)) or not prompt:
        raise ArgumentTypeError(
            "`prompt` must be a text or messages; got {prompt}.",
            argument="prompt",
            hint="messages are {messages}",
            prompt=TypeOf(prompt),
            messages=_MESSAGES,
        )
    for i, message in enumerate(prompt):
        content = message.get("content") if isinstance(message, Mapping) else None
        parts = content if isinstance(content, (list, tuple)) else [content]
        parts = [p.get("text") if isinstance(p, Mapping) else p for p in parts]
        who = message.get("role") if isinstance(message, Mapping) else None
        if not isinstance(who, str) or not parts or not all(map(_is_part, parts)) or len(message) > 2:
            raise ArgumentTypeError(
                "{item} must be a message: a `role`, a `content` of texts and files, and nothing else.",
                argument="prompt",
                hint="messages are {messages}",
                item=Item("prompt", i),
                messages=_MESSAGES,
            )
        turns.append((who, list(parts)))
    return turns


def _is_part(value) -> bool:
    return is_text(value) or isinstance(value, File)


def _field(name: str, value):
    """Return the value to fill in for a name; a list of texts becomes several texts, as in a ``Variable``."""
    if is_list_of_texts(value):
        return several(value)
    if isinstance(value, File) or _is_list_of_files(value):
        return value
    if not is_text(value) and not isinstance(value, Number) and not _is_scalar(value):
        raise ArgumentTypeError(
            f"`{name}` must be a text, a file, a list of either or a number, to be filled in; got {{value}}.",
            argument=name,
            value=TypeOf(value),
        )
    return value


def _is_list_of_files(value) -> bool:
    return isinstance(value, (list, tuple)) and len(value) > 0 and all(isinstance(item, File) for item in value)


def _is_scalar(value) -> bool:
    return getattr(value, "shape", None) == () and hasattr(value, "item")


class _Call:
    """Calls of one operation: the requests, and what the backward pass needs to ask for feedback.

    Attributes:
        rows: the positions of the texts that are called with, ``[0]`` for a single text.
        turns: for each message its role and parts; ``later`` has each row's messages about tools.
        inputs: pairs of a name and a text, file or number; ``results`` has each row's tool results that need feedback.
    """

    def __init__(
        self,
        model: Model,
        turns: list,
        fields: dict[str, Any],
        role: str,
        critic: Model,
        prompts: Mapping[str, str],
        tools: list[Tool],
        rounds: int,
        returns: list[Field] | None,
    ):
        self.model, self.critic, self.prompts = model, critic, prompts
        self.turns, self.fields, self.role = turns, fields, role
        self.tools, self.rounds, self.returns = tools, rounds, returns
        self.quotes = Quotes(prompts.values(), [*(who for who, _ in turns), "assistant", "tool", "tools"])
        self.inputs = [(_name(who), part) for who, parts in turns for part in parts] + list(fields.items())
        for field, owner in [
            *((f, f"the argument `{f.name}` of the tool `{tool.name}`") for tool in tools for f in tool.arguments),
            *((f, f"the field `{f.name}`") for f in returns or ()),
        ]:
            if field.description is not None:
                self.inputs.append((f"description of {owner}", field.description))
        self.inputs += [(f"description of the tool `{tool.name}`", tool.description) for tool in tools]
        self.answers: dict[int, str] = {}
        self.parts: list[tuple[str, str, Any]] = []  # the name, kind and values of each field with feedback
        self.paid: dict[tuple, str] = {}
        # The variables may change before the backward pass, which quotes the call as it was sent.
        self.values = {id(part): _now(part) for _, part in self.inputs}
        lists = [value for value in self.values.values() if isinstance(value, (Texts, list))]
        self.count = len(aligned("call", *lists)) if lists else None
        self.rows = list(range(self.count or 1))
        self.later: dict[int, list[dict]] = {row: [] for row in self.rows}
        self.calls: dict[int, list[ToolCall]] = {row: [] for row in self.rows}
        self.results: dict[int, list[tuple[str, Variable]]] = {row: [] for row in self.rows}
        self._check_places()

    @property
    def title(self) -> str:
        roles = ", ".join(repr(self._role(name, part)) for name, part in self.inputs)
        return f"the call for {self.role!r} (of {roles})"

    def all_inputs(self) -> list[tuple[str, Any]]:
        return [*self.inputs, *(pair for row in self.rows for pair in self.results[row])]

    def variables(self) -> list[Variable]:
        """Return the variables among the inputs, each once."""
        return list({id(part): part for _, part in self.all_inputs() if isinstance(part, Variable)}.values())

    # The call ---------------------------------------------------------------------------------------------------------

    def converse(self, row: int) -> str:
        """Return the model's answer in a row, after the tools that it asked for."""
        handles = {tool.name: _Handle(self, row, tool) for tool in self.tools}
        refused: list[dict] = []  # a first answer that did not fit, and why
        for _ in range(self.rounds + 1):
            reply = ask(self.model, [*self._messages(row), *refused], self.title, tools=handles)
            wrong = None if reply.calls else self._mistake(reply)
            if wrong and not refused:
                again = fill(self.prompts["fields_again"], {"wrong": wrong})
                refused = [{"role": "assistant", "content": str(reply)}, {"role": "user", "content": again}]
                reply = ask(self.model, [*self._messages(row), *refused], self.title, tools=handles)
                wrong = None if reply.calls else self._mistake(reply)
            if wrong:
                raise ModelError(
                    "{call}: the answer {answer} does not have the fields of `returns`: {wrong}.",
                    call=Given(self.title),
                    answer=Given(repr(shortened(str(reply)))),
                    wrong=Given(wrong),
                )
            if not reply.calls:
                return str(reply)
            for call in reply.calls:
                if call.name in handles:
                    handles[call.name].run(call)
                else:
                    names = ", ".join(f"`{name}`" for name in handles)
                    self.add_call(row, call, f"error: there is no tool `{call.name}`; the tools are {names}")
        raise ModelError(
            f"{{call}}: the model asked for tools more than {self.rounds} times in place of an answer.",
            hint="allow more with `rounds`, or say in the prompt when to answer",
            call=Given(self.title),
        )

    def _mistake(self, reply: str) -> str | None:
        return None if self.returns is None else mistake(self.returns, parsed_object(reply))

    def add_call(self, row: int, call: ToolCall, result) -> Content:
        """Add a request to call a tool and its result to the conversation; return the result as the model reads it."""
        asked = ToolCall(call.name, call.arguments, call.id or f"call_{len(self.calls[row]) + 1}")
        said = Text(str(asked), (f"request of `{asked.name}`",))
        asked.request = self._view(row, said).recorded(said)
        role = f"result of `{asked.name}`"
        if isinstance(result, File):
            content: Content = [result]
            asked.result = result
        else:
            if not is_text(result):
                data = data_of(result)
                result = shortest(data.tolist() if hasattr(data, "tolist") else data)
            content = str(value_of(result))
            asked.result = made(asked.name, [asked.request, result], Text(content, (role,)))
            if isinstance(result, Variable) and result.requires_grad:
                self.values[id(result)] = value_of(result)
                self.results[row].append((role, result))
        self.calls[row].append(asked)
        sent = {"id": asked.id, "name": asked.name, "arguments": shortest(asked.arguments)}
        self.later[row] += [
            {"role": "assistant", "content": str(asked), "tool_calls": [sent]},
            {"role": "tool", "content": content, "tool_call_id": asked.id},
        ]
        return content

    def _view(self, row: int, answer: Text) -> _Call:
        """Return a row of the conversation until now, with ``answer`` as its answer."""
        view = copy.copy(self)
        view.rows, view.count, view.answers, view.role, view.paid = [row], None, {row: str(answer)}, answer.roles[0], {}
        view.later, view.calls = {row: list(self.later[row])}, {row: list(self.calls[row])}
        view.results = {row: list(self.results[row])}
        return view

    def recorded(self, result):
        """Return an answer, or a list of parts of it, as results of the operation."""
        variables = self.variables()
        if not variables:
            return result
        edges = tuple(v._node or v if v.requires_grad else None for v in variables)
        if recording.get() and any(edge is not None for edge in edges):
            return record(_RULE, edges, (self,), result)
        return [wrap(part) for part in result] if isinstance(result, list) else wrap(result)

    def _messages(self, row: int) -> Messages:
        values = {name: self._input_content(part, row) for name, part in self.fields.items()}
        messages = []
        for who, parts in self.turns:
            given = [self._input_content(part, row) for part in parts]
            filled = [fill(t, values) if values and isinstance(t, str) else t for t in given]
            messages.append({"role": who, "content": joined(filled, "\n")})
        if self.returns is not None:
            asked = fill(self.prompts["fields"], {"fields": listed(self._lines(self.returns, row))})
            last = next((m for m in reversed(messages) if m["role"] == "user"), messages[-1])
            last["content"] = joined([last["content"], asked], "\n\n")
        return [*messages, *self.later[row]]

    def _lines(self, fields: list[Field], row: int) -> list[str]:
        return [field.line(self._description(field.description, row)) for field in fields]

    def _description(self, description, row: int) -> str | None:
        return None if description is None else str(self._input_content(description, row))

    def about(self, tool: Tool, row: int) -> dict:
        """Return a tool in the form of JSON schema, as clients take it."""
        described = {f.name: self._description(f.description, row) for f in tool.arguments}
        schema = object_schema(tool.arguments, {name: text for name, text in described.items() if text is not None})
        return {"name": tool.name, "description": self._description(tool.description, row), "parameters": schema}

    def _check_places(self) -> None:
        if not self.fields:
            return
        texts = [self._input_content(part, row) for _, parts in self.turns for part in parts for row in self.rows]
        there = {place for text in texts if isinstance(text, str) for place in places(text)}
        for name in self.fields:
            if name not in there:
                raise ArgumentError(
                    f"{self.title}: the prompt has no place for `{name}`.",
                    argument=name,
                    hint=f"write {{{name}}} in it where it belongs",
                )

    # Feedback ---------------------------------------------------------------------------------------------------------

    def remarks(self, g: list) -> Feedback:
        """Return the feedback on the answers, made of that on the answer as it is and on its fields."""
        found = list(feedback(g[0], self.role))
        for part, (name, kind, values) in zip(g[1:], self.parts):
            if kind == "string":
                for said in feedback(part, name):
                    on_field = Said(f"`{name}`: {said}", said.roles, said.order, said.weight, said.files)
                    found.append(on_field.at(said.places))
                continue
            for row, (slope, value) in enumerate(zip(np.ravel(data_of(part)), np.ravel(values))):
                if slope:
                    words = f"`{name}` should be {'lower' if slope > 0 else 'higher'} than {value:g}"
                    found.append(
                        Said(words, (name,), weight=abs(float(slope))).at(None if self.count is None else (row,))
                    )
        return Feedback(sorted(found, key=attrgetter("order")))

    def feedback(self, g, seq: int, edges: Sequence) -> list[Feedback | None]:
        """Return the feedback on each variable, given feedback ``g`` on the answer."""
        requests = []
        remarks = feedback(g, self.role)
        for j, (variable, edge) in enumerate(zip(self.variables(), edges)):
            if edge is None or variable.dtype is not str or not _is_wanted(edge):
                continue
            for position, row in enumerate(self.rows):
                mine = remarks.of(position)
                if len(mine) and self._is_input(variable, row):
                    requests.append((j, row, mine))
        replies = each(self._ask, requests, threads=self.critic.limit or 8)
        found: list[list[Said]] = [[] for _ in edges]
        for (j, row, mine), reply in zip(requests, replies):
            if reply.strip().strip("\"'.").lower() != "nothing":
                name, variable = self._input(j)
                said = Said(reply.strip(), (self._role(name, variable),), seq, max(m.weight for m in mine))
                text = self.values[id(variable)]
                place = (row if len(text) > 1 else 0,) if isinstance(text, Texts) else None
                found[j].append(said.at(place))
        self.paid.clear()
        return [Feedback(said) if said else None for said in found]

    def _is_input(self, variable: Variable, row: int) -> bool:
        return any(part is variable for _, part in (*self.inputs, *self.results[row]))

    def _ask(self, request: tuple) -> str:
        """Return the answer to one request; it is not sent again if another request of the pass fails."""
        j, row, remarks = request
        asked = (j, row, tuple(map(str, remarks)))
        if asked not in self.paid:
            name, variable = self._input(j)
            role = self._role(name, variable)
            quoted, attribute = self.quotes.quoted, self.quotes.attribute
            said = [
                joined([f"<{m['role']}>\n", quoted(m["content"]), f"\n</{m['role']}>"]) for m in self._messages(row)
            ]
            if self.tools:
                said.insert(0, f"<tools>\n{quoted(listed(self._tool_lines(row)))}\n</tools>")
            values = {
                "call": joined(said, "\n"),
                "role": attribute(self.role),
                "answer": quoted(self.answers[row]),
                "remarks": quoted(listed(remarks)),
                "input_role": attribute(role),
                "input": quoted(self._input_content(variable, row)),
            }
            messages = [
                {"role": "system", "content": fill(self.prompts["feedback_system"], values)},
                {"role": "user", "content": fill(self.prompts["feedback"], values)},
            ]
            what = f"the request for feedback on {role!r}, of {self.title}"
            self.paid[asked] = str(ask(self.critic, messages, what, "`backward()` once more takes the pass up again"))
        return self.paid[asked]

    def _tool_lines(self, row: int) -> list[str]:
        return [
            "\n- ".join([f"{tool.name}: {self._description(tool.description, row)}", *self._lines(tool.arguments, row)])
            for tool in self.tools
        ]

    def _role(self, name: str, part) -> str:
        return getattr(self.values[id(part)], "role", None) or getattr(part, "role", None) or name

    def _input_content(self, part, row: int) -> Content:
        """Return the text or file of an input in a row; a number is written as Python writes it."""
        value = self.values[id(part)]
        if isinstance(value, (Texts, list)):
            value = value[row if len(value) > 1 else 0]
        return [value] if isinstance(value, File) else str(value)

    def _input(self, j: int) -> tuple[str, Variable]:
        variable = self.variables()[j]
        return next((name, part) for name, part in self.all_inputs() if part is variable)


class _Handle:
    """A tool within one conversation: a call is added to it."""

    def __init__(self, call: _Call, row: int, tool: Tool):
        self._call, self._row, self._tool = call, row, tool
        self.name, self.about = tool.name, call.about(tool, row)

    def __call__(self, **arguments) -> Content:
        """Return what the tool returns, as the model reads it."""
        return self.run(ToolCall(self.name, arguments))

    def run(self, asked: ToolCall) -> Content:
        tool, call = self._tool, self._call
        if wrong := mistake(tool.arguments, asked.arguments):
            return call.add_call(self._row, asked, f"error: {wrong}")
        try:
            result = settled(tool.f(**asked.arguments))
        except ModelError:
            raise
        except Exception as error:
            failure = error
        else:
            return call.add_call(self._row, asked, result)
        said = f"{type(failure).__name__}: {failure}"
        shown = call.model.hide_secrets(said)
        raise ModelError(  # outside of `except`, so that an error with secrets does not become its context
            "{call}: the tool {request} failed. {said}",
            hint="a tool may return its error as a text, for the model to read",
            call=Given(call.title),
            request=Given(call.model.hide_secrets(str(asked))),
            said=Given(shown),
        ) from (failure if shown == said else None)


class Fields(dict):
    """The fields of an answer by name; ``text`` is the answer itself."""

    text: Any


def _by_field(calling: _Call, answer, fields: list[Field]) -> Fields:
    """Return the fields of the answers as results of one operation."""
    several = calling.count is not None
    rows = [parsed_object(calling.answers[row]) for row in calling.rows]
    result = Fields()
    for field in fields:
        values: Any = [row.get(field.name) for row in rows]
        if field.kind in ("string", "number") and None not in values:
            if field.kind == "string":
                texts = [Text(value, (field.name,)) for value in values]
                values = Texts(texts) if several else texts[0]
            else:
                values = np.asarray(values if several else values[0], float)
            calling.parts.append((field.name, field.kind, values))
            result[field.name] = values
        else:
            result[field.name] = values if several else values[0]
    result.text, *recorded = calling.recorded([answer, *(values for _, _, values in calling.parts)])
    for (name, _, _), value in zip(calling.parts, recorded):
        if isinstance(value, Variable):
            value.role = name
        result[name] = value.item() if isinstance(value, np.ndarray) and not value.ndim else value
    return result


def tool_calls(answer) -> list:
    """Return the calls of tools that a model made for an answer, in order.

    Args:
        answer: what :func:`call` returned; its ``text`` for an answer with fields.

    Returns:
        A list of :class:`ToolCall`, whose ``request`` and ``result`` are text variables; for several answers a list of
        such lists.

    Raises:
        ArgumentTypeError: ``answer`` is not an answer.

    Gradient:
        Feedback on a request becomes feedback on the inputs of the call and on the descriptions of the tools; feedback
        on a result goes to its request.

    Examples:
        >>> from gradops import Variable, text
        >>> about = Variable("The weather.", role="description", requires_grad=True)
        >>> weather = text.Tool(lambda city: "12 C", about, name="weather")
        >>> def model(prompt, system, tools):
        ...     return tools["weather"](city="Paris")
        >>> answer = text.call(model, "Is it cold?", tools=weather, critic=lambda prompt: "ask for the country too")
        >>> (asked,) = text.tool_calls(answer)
        >>> print(asked)
        weather({"city": "Paris"})
        >>> asked.request.backward("which Paris?")
        >>> print(about.grad)
        ask for the country too

    See Also:
        :class:`ToolCall`, :class:`Tool`.
    """
    data = data_of(getattr(answer, "text", answer) if isinstance(answer, Fields) else answer)
    if isinstance(data, Texts):
        return [list(getattr(text, "calls", ())) for text in data]
    if not isinstance(data, Text):
        raise ArgumentTypeError(
            "`answer` must be an answer of `call`; got {answer}.", argument="answer", answer=TypeOf(answer)
        )
    return list(getattr(data, "calls", ()))


def _is_wanted(edge) -> bool:
    """True if the feedback at an edge reaches the variables that the pass differentiates."""
    ways = wanted.get()
    return ways is None or any(key(edge) in way for way in ways)


def _name(who: str) -> str:
    return {"user": "prompt", "system": "system prompt"}.get(who, f"{who}'s message")


def _now(part):
    """Return the current value of an input: a text, several texts, or a number."""
    value = value_of(part)
    if isinstance(value, tuple):
        return list(value)
    return value.item() if hasattr(value, "item") else value


def _back(g, saved, node) -> list:
    calling = saved[0]
    return calling.feedback(calling.remarks(g) if isinstance(g, list) else g, node.seq, node.edges)


_RULE = Rule("call", vjp=_back, slots=(None,))


# ``judge``: a number, and a remark as its gradient --------------------------------------------------------------------


def judge(f: Callable) -> Callable:
    """Return an evaluator of texts made of ``f``: it gives a number for how bad they are, and a remark that says why.

    Args:
        f: ``f(text, ...)``, a function, also ``async``, that is called with strings and the values of variables. It
            returns one of

            - None: no remark; the number is 0;
            - a remark, or a list of remarks, each with its files after it (:class:`File`): the number is 1;
            - ``(number, remark)``, where the remark may be None; or a number, without a remark.

    Returns:
        A function of texts, variables or strings, that returns a number; a variable if an argument is one. Several
        texts (a variable of several, a list of variables, or a list of strings as the first argument) are judged one by
        one, together with the corresponding elements of other lists and arrays, and give a vector. ``backward()`` needs
        no argument. Weights and sums of critics are plain arithmetic: ``exact(y, target) + 0.1 * style(y)``.

    Raises:
        ArgumentTypeError: ``f`` is not a function, or it returned something else.
        ShapeError: the numbers of texts differ, or a list has another length than the texts.

    Gradient:
        The remark, for every text argument that requires feedback; its ``weight`` is the magnitude of the upstream
        gradient. There is no feedback where that is 0 or where ``f`` made no remark; earlier operations are then not
        asked for feedback. ``f`` runs without recording.

    Examples:
        >>> from gradops import Variable, text
        >>> @text.judge
        ... def brief(answer):
        ...     words = len(answer.split())
        ...     return words / 5, f"{words} words are too many" if words > 5 else None
        >>> answer = Variable("Ice is less dense than water is.", role="answer", requires_grad=True)
        >>> loss = brief(answer)
        >>> loss.backward()
        >>> print(loss.item(), answer.grad)
        1.4 7 words are too many

    See Also:
        :func:`call`, :class:`Descent`.
    """
    if not callable(f):
        raise ArgumentTypeError("`f` must be a function; got {f}.", argument="f", f=TypeOf(f))
    name = getattr(f, "__name__", type(f).__name__)

    def judged(*arguments, **keywords):
        given = [_stacked(x) for x in (*arguments, *keywords.values())]
        values = [_plain(x) for x in given]
        if values and is_list_of_texts(values[0]):
            values[0] = Texts(values[0])
        lists = [x for x in values if isinstance(x, Texts)]
        rows: list[Any] = [values]
        if lists:
            count = len(aligned(name, *lists))
            rows = list(zip(*(_column(name, x, count) for x in values)))
        first = len(arguments)
        with no_grad():
            verdicts = [_verdict(name, settled(f(*row[:first], **dict(zip(keywords, row[first:]))))) for row in rows]
        numbers = np.array([number for number, _ in verdicts])
        result: Any = numbers if lists else float(numbers[0])
        variables = list({id(x): x for x in given if isinstance(x, Variable)}.values())
        if not variables:
            return result
        result = np.asarray(result)
        edges = tuple(v._node or v if v.requires_grad and v.dtype is str else None for v in variables)
        if recording.get() and any(edge is not None for edge in edges):
            sizes = [len(v) if v.shape else None for v in variables]
            roles = [v.role for v in variables]
            subject = next(v.role for v, edge in zip(variables, edges) if edge is not None)
            rule = Rule(name, vjp=_judged, slots=(None, None, None, None))
            return record(rule, edges, ([remarks for _, remarks in verdicts], sizes, roles, subject), result)
        return wrap(result)

    try:
        return functools.wraps(f)(judged)
    except AttributeError:
        return judged


def _stacked(x):
    """Return a list that holds text variables as several texts; anything else unchanged."""
    return several(x) if is_list_of_texts(x) and any(isinstance(item, Variable) for item in x) else x


def _plain(x):
    """Return the value that ``f`` gets: a string for a text; several texts stay together."""
    value = x.data if isinstance(x, Variable) and x.dtype is str else x
    return str(value) if isinstance(value, str) else value


def _column(name: str, x, count: int) -> list:
    """Return the values of an argument for each of ``count`` texts; a list or array has one for each text."""
    if isinstance(x, Texts) and len(x) == 1:
        return list(map(str, x)) * count
    if not isinstance(x, (Texts, list, tuple)) and not getattr(x, "shape", ()):
        return [x] * count
    if len(x) != count:
        raise ShapeError(
            f"`{name}`: {count} texts are judged one by one; another argument has {len(x)} elements.",
            argument="f",
        )
    return [_plain(item) for item in x]


def _verdict(name: str, answer) -> tuple[float, tuple[str, ...]]:
    if isinstance(answer, (tuple, list)) and len(answer) == 2 and _is_number(answer[0]):
        return float(answer[0]), _remarks(name, answer[1])
    if _is_number(answer):
        return float(answer), ()
    remarks = _remarks(name, answer)
    return float(bool(remarks)), remarks


def _is_number(x) -> bool:
    return isinstance(x, (int, float, np.floating, np.integer)) and not isinstance(x, (bool, np.bool_))


def _remarks(name: str, answer) -> tuple[str, ...]:
    if answer is None:
        return ()
    if isinstance(answer, str):
        return (answer,) if answer.strip() else ()
    listed = isinstance(answer, (list, tuple)) and all(isinstance(a, (str, File)) for a in answer)
    if listed and not (answer and isinstance(answer[0], File)):
        return tuple(said for said in feedback(answer) if said.strip())
    raise ArgumentTypeError(
        f"`{name}` must return {{None}}, a remark, or a number with a remark; got {{answer}}.",
        argument="f",
        answer=Given(repr(answer), answer),
        hint="return {None} for a good text; for a bad one say why: {remark}",
        remark=Code('`return "too long"`', '`"too long"`'),
    )


def _judged(g, saved, node) -> list:
    verdicts, sizes, roles, subject = saved
    weights = np.abs(np.asarray(data_of(g), float)).reshape(-1)
    said = [
        [
            Said(remark, (subject,) if subject else (), node.seq, float(weight), getattr(remark, "files", ()))
            for remark in remarks
            if weight
        ]
        for remarks, weight in zip(verdicts, np.broadcast_to(weights, len(verdicts)))
    ]
    found: list[Feedback | None] = []
    for edge, size in zip(node.edges, sizes):
        if edge is None:
            found.append(None)
            continue
        rows = [(None if size is None else (i if size > 1 else 0,), row) for i, row in enumerate(said)]
        placed = [remark.at(place) for place, row in rows for remark in row]
        found.append(Feedback(placed) if placed else None)
    return found
