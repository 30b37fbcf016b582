"""Conversations with a model: the requests of a call, its tools, and the requests for feedback on its inputs."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from ..autodiff.graph import Rule, key
from ..autodiff.modes import recording
from ..autodiff.record import record
from ..autodiff.state import wanted
from ..autodiff.variable import Variable, data_of, wrap
from ..errors import ArgumentError, Given, ModelError
from .batches import each, settled
from .files import Content, File, joined
from .models import Messages, Model, ask, shortened
from .operations import is_text, join, made, value_of
from .prompts import Quotes, fill, listed, places
from .schemas import Field, mistake, object_schema, parsed_object, shortest
from .tools import Tool, ToolCall
from .values import Feedback, Said, Text, Texts, aligned, feedback


class Conversations:
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
        later = ("assistant", "tool", "tools") if tools else ()
        self.quotes = Quotes(prompts.values(), [*(who for who, _ in turns), *later])
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
        handles = {tool.name: Handle(self, row, tool) for tool in self.tools}
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
            if isinstance(value_of(result), Texts):
                result = join(result, "\n")
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

    def _view(self, row: int, answer: Text) -> Conversations:
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


class Handle:
    """A tool within one conversation: a call is added to it."""

    def __init__(self, call: Conversations, row: int, tool: Tool):
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
