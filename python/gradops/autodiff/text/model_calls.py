"""``call``: a call of a model as an operation on the tape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Number
from typing import Any

from ...errors import ArgumentError, ArgumentTypeError, Code, Item, TypeOf
from ..graph import Rule, key
from ..modes import recording
from ..record import record
from ..state import wanted
from ..variable import Variable, check_role, wrap
from .batches import each
from .models import Messages, Model, as_model, ask
from .operations import is_list_of_texts, is_text, several, value_of
from .prompts import Quotes, chosen, fill, listed, places
from .values import Feedback, Said, Text, Texts, aligned, feedback


def call(
    model,
    prompt,
    system=None,
    *,
    role: str | None = None,
    critic=None,
    prompts: Mapping[str, str] | None = None,
    **fields,
) -> Variable | Text | Texts:
    """A model's answer to ``prompt``, as an operation: feedback on the answer becomes feedback on the inputs.

    Args:
        model: a model, or a value that :func:`as_model` takes.
        prompt: a text, or messages: ``[{"role": "user", "content": text}, ...]``, whose content may be a list of texts.
        system: a text for the system prompt.
        role: the purpose of the answer; "answer" by default.
        critic: the model that is asked for feedback; ``model`` by default.
        prompts: other words for the request: ``{"feedback": ..., "feedback_system": ...}``; see ``prompts.PROMPTS``.
        fields: the values for ``{name}`` in ``prompt`` and ``system``: texts and numbers, or a list of texts. Only
            the names that are given are places, and a value filled in is not looked at again. Without fields texts go
            as they are.

    Texts may be variables, strings, or several texts: then there is a call for each, at once, and several answers.

    Returns:
        A text variable; a ``Text`` where no argument is a variable.

    Raises:
        ArgumentTypeError: a prompt, a system prompt or a field that is no text, a message with more than a role and
            a content.
        ArgumentError: a field without a place in the prompt.
        ShapeError: several texts of different numbers.
        ModelError: the model failed or gave no text, with the answer's role and the inputs' roles.

    Gradient:
        For each input that requires feedback one request to ``critic``, with the call, the answer, and the remarks
        on it; none where nothing was said, and none for numbers. "nothing" as its answer is no feedback. After a
        request that failed the pass can be taken up again, and does not repeat those that were answered.

    Examples:
        Feedback on the answer becomes feedback on the instruction, when the critic is asked. The models here are
        for documents; a function of a prompt will do as well:

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
        :func:`judge` for a number of an answer, :class:`Descent` to rewrite, :func:`remembered` to ask once.
    """
    check_role(role)
    asked = as_model(model)
    fields = {name: _field(name, value) for name, value in fields.items()}
    made = _Call(_turns(prompt, system), fields, role or "answer", as_model(critic or asked), chosen(prompts))
    answers = each(lambda messages: ask(asked, messages, made.title), made.conversations())
    made.answers = list(map(str, answers))
    texts = [Text(answer, (made.role,)) for answer in made.answers]
    result = Texts(texts) if made.count is not None else texts[0]
    variables = made.variables()
    if not variables:
        return result
    edges = tuple(v._node or v if v.requires_grad else None for v in variables)
    if recording.get() and any(edge is not None for edge in edges):
        return record(_RULE, edges, (made,), result)
    return wrap(result)


_MESSAGES = Code(
    '`[{"role": "user", "content": text}]`; several texts are `Variable([...])`',
    '`list(list(role = "user", content = text))`',
)


def _turns(prompt, system) -> list[tuple[str, list]]:
    """The messages as pairs of who speaks and a list of texts."""
    if system is not None and not is_text(system):
        raise ArgumentTypeError("`system` must be a text; got {system}.", argument="system", system=TypeOf(system))
    turns = [] if system is None else [("system", [system])]
    if is_text(prompt):
        return [*turns, ("user", [prompt])]
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
        if not isinstance(who, str) or not parts or not all(map(is_text, parts)) or len(message) > 2:
            raise ArgumentTypeError(
                "{item} must be a message: a `role`, a `content` of texts, and nothing else.",
                argument="prompt",
                hint="messages are {messages}",
                item=Item("prompt", i),
                messages=_MESSAGES,
            )
        turns.append((who, list(parts)))
    return turns


def _field(name: str, value):
    """The value that is filled in for a name: a list of texts as several, as in a ``Variable``."""
    if is_list_of_texts(value):
        return several(value)
    if not is_text(value) and not isinstance(value, Number) and not _is_scalar(value):
        raise ArgumentTypeError(
            f"`{name}` must be a text, a list of texts or a number, to be filled in; got {{value}}.",
            argument=name,
            value=TypeOf(value),
        )
    return value


def _is_scalar(value) -> bool:
    return getattr(value, "shape", None) == () and hasattr(value, "item")


class _Call:
    """One operation: the request, and the data needed to ask for feedback."""

    def __init__(self, turns: list, fields: dict[str, Any], role: str, critic: Model, prompts: Mapping[str, str]):
        self.turns, self.fields, self.role, self.critic, self.prompts = turns, fields, role, critic, prompts
        self.quotes = Quotes(prompts.values(), [who for who, _ in turns])
        self.inputs = [(_name(who), part) for who, parts in turns for part in parts] + list(fields.items())
        self.answers: list[str] = []
        self.paid: dict[tuple, str] = {}
        self.values = {id(part): _now(part) for _, part in self.inputs}  # as in the request, also if they change then
        lists = [value for value in self.values.values() if isinstance(value, Texts)]
        self.count = len(aligned("call", *lists)) if lists else None
        self._check_places()

    @property
    def title(self) -> str:
        roles = ", ".join(repr(self._role(name, part)) for name, part in self.inputs)
        return f"the call for {self.role!r} (of {roles})"

    def variables(self) -> list[Variable]:
        """The variables among the inputs, each once."""
        return list({id(part): part for _, part in self.inputs if isinstance(part, Variable)}.values())

    def conversations(self) -> list[Messages]:
        return [self._messages(i) for i in range(self.count or 1)]

    def _messages(self, i: int) -> Messages:
        values = {name: self._at(part, i) for name, part in self.fields.items()}
        messages = []
        for who, parts in self.turns:
            texts = [self._at(part, i) for part in parts]
            messages.append({"role": who, "content": "\n".join(fill(t, values) if values else t for t in texts)})
        return messages

    def _check_places(self) -> None:
        if not self.fields:
            return
        texts = [self._at(part, i) for _, parts in self.turns for part in parts for i in range(self.count or 1)]
        there = {place for text in texts for place in places(text)}
        for name in self.fields:
            if name not in there:
                raise ArgumentError(
                    f"{self.title}: the prompt has no place for `{name}`.",
                    argument=name,
                    hint=f"write {{{name}}} in it where it belongs",
                )

    def feedback(self, g, seq: int, edges: Sequence) -> list[Feedback | None]:
        """The feedback on each variable, of that on the answer."""
        requests = []
        remarks = feedback(g, self.role)
        for j, (variable, edge) in enumerate(zip(self.variables(), edges)):
            if edge is None or variable.dtype is not str or not _is_wanted(edge):
                continue
            for i in range(self.count or 1):
                mine = remarks.of(i)
                if len(mine):
                    requests.append((j, i, mine))
        replies = each(self._ask, requests)
        found: list[list[Said]] = [[] for _ in edges]
        for (j, i, mine), reply in zip(requests, replies):
            if reply.strip().strip("\"'.").lower() != "nothing":
                name, variable = self._input(j)
                said = Said(reply.strip(), (self._role(name, variable),), seq, max(m.weight for m in mine))
                text = self.values[id(variable)]
                place = (i if len(text) > 1 else 0,) if isinstance(text, Texts) else None
                found[j].append(said.at(place))
        self.paid.clear()
        return [Feedback(said) if said else None for said in found]

    def _ask(self, request: tuple) -> str:
        """The answer to one request; paid for once, also where another of the same pass fails."""
        j, i, remarks = request
        asked = (j, i, tuple(map(str, remarks)))
        if asked not in self.paid:
            name, variable = self._input(j)
            role = self._role(name, variable)
            quoted, attribute = self.quotes.quoted, self.quotes.attribute
            said = [f"<{m['role']}>\n{quoted(m['content'])}\n</{m['role']}>" for m in self._messages(i)]
            values = {
                "call": "\n".join(said),
                "role": attribute(self.role),
                "answer": quoted(self.answers[i]),
                "remarks": quoted(listed(remarks)),
                "input_role": attribute(role),
                "input": quoted(self._at(variable, i)),
            }
            messages = [
                {"role": "system", "content": fill(self.prompts["feedback_system"], values)},
                {"role": "user", "content": fill(self.prompts["feedback"], values)},
            ]
            what = f"the request for feedback on {role!r}, of {self.title}"
            self.paid[asked] = str(ask(self.critic, messages, what, "`backward()` once more takes the pass up again"))
        return self.paid[asked]

    def _role(self, name: str, part) -> str:
        return getattr(self.values[id(part)], "role", None) or getattr(part, "role", None) or name

    def _at(self, part, i: int) -> str:
        """The text of one of the calls; numbers as Python writes them."""
        value = self.values[id(part)]
        return str(value[i if len(value) > 1 else 0]) if isinstance(value, Texts) else str(value)

    def _input(self, j: int) -> tuple[str, Variable]:
        variable = self.variables()[j]
        return next((name, part) for name, part in self.inputs if part is variable)


def _is_wanted(edge) -> bool:
    """True if feedback at an edge goes on to the variables that the pass is for."""
    ways = wanted.get()
    return ways is None or any(key(edge) in way for way in ways)


def _name(who: str) -> str:
    return {"user": "prompt", "system": "system prompt"}.get(who, f"{who}'s message")


def _now(part):
    """The value of an input as it is: a text, several, or a number."""
    value = value_of(part)
    return value.item() if hasattr(value, "item") else value


def _back(g, saved, node) -> list:
    return saved[0].feedback(g, node.seq, node.edges)


_RULE = Rule("call", vjp=_back, slots=(None,))
