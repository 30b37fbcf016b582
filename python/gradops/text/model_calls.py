"""``call`` and ``judge``: a model's answer, and a critic, as operations on the tape."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np

from ..autodiff.graph import Rule, key
from ..autodiff.modes import no_grad, recording
from ..autodiff.record import record
from ..autodiff.state import wanted
from ..autodiff.variable import Variable, check_role, data_of, wrap
from ..errors import ArgumentError, ArgumentTypeError, Code, Given, Item, ShapeError, TypeOf
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
    """Return a model's answer to ``prompt``, recorded: feedback on the answer becomes feedback on the inputs.

    Args:
        model: a model, or a value that :func:`as_model` takes.
        prompt: a text, or messages: ``[{"role": "user", "content": text}, ...]``, whose content may be a list of texts.
        system: the system prompt, a text.
        role: the purpose of the answer; "answer" by default.
        critic: the model that gives the feedback; ``model`` by default.
        prompts: replacements for the prompts to the critic: ``{"feedback": ..., "feedback_system": ...}``; see
            ``prompts.PROMPTS``.
        fields: the values for ``{name}`` in ``prompt`` and ``system``: texts and numbers, or a list of texts. Only
            the given names are replaced, and braces inside a value stay. Without fields, texts are sent unchanged.

    Texts may be variables or strings. With several texts, each is a call of its own; these run at once and give
    several answers.

    Returns:
        A text variable; a ``Text`` where no argument is a variable.

    Raises:
        ArgumentTypeError: a prompt, a system prompt or a field is not a text, or a message has more than a role and
            a content.
        ArgumentError: the prompt has no ``{name}`` for a field.
        ShapeError: the numbers of texts differ.
        ModelError: the model failed, gave no text or several, or asked to call tools; the error names the roles of the
            answer and of the inputs.

    Gradient:
        One request to ``critic`` for each text input that requires feedback, with the call, the answer and the remarks
        on the answer; no request if there are no remarks. The critic's answer "nothing" means no feedback. If a request
        fails, ``backward()`` can be called again and repeats only the requests that were not answered.

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
    """Return the messages as pairs: the speaker's role and a list of texts."""
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
    """Return the value to fill in for a name; a list of texts becomes several texts, as in a ``Variable``."""
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
    """One recorded call: its request, and what the backward pass needs to ask for feedback."""

    def __init__(self, turns: list, fields: dict[str, Any], role: str, critic: Model, prompts: Mapping[str, str]):
        self.turns, self.fields, self.role, self.critic, self.prompts = turns, fields, role, critic, prompts
        self.quotes = Quotes(prompts.values(), [who for who, _ in turns])
        self.inputs = [(_name(who), part) for who, parts in turns for part in parts] + list(fields.items())
        self.answers: list[str] = []
        self.paid: dict[tuple, str] = {}
        # The variables may change before the backward pass, which quotes the call as it was sent.
        self.values = {id(part): _now(part) for _, part in self.inputs}
        lists = [value for value in self.values.values() if isinstance(value, Texts)]
        self.count = len(aligned("call", *lists)) if lists else None
        self._check_places()

    @property
    def title(self) -> str:
        roles = ", ".join(repr(self._role(name, part)) for name, part in self.inputs)
        return f"the call for {self.role!r} (of {roles})"

    def variables(self) -> list[Variable]:
        """Return the variables among the inputs, each once."""
        return list({id(part): part for _, part in self.inputs if isinstance(part, Variable)}.values())

    def conversations(self) -> list[Messages]:
        return [self._messages(i) for i in range(self.count or 1)]

    def _messages(self, i: int) -> Messages:
        values = {name: self._input_text(part, i) for name, part in self.fields.items()}
        messages = []
        for who, parts in self.turns:
            texts = [self._input_text(part, i) for part in parts]
            messages.append({"role": who, "content": "\n".join(fill(t, values) if values else t for t in texts)})
        return messages

    def _check_places(self) -> None:
        if not self.fields:
            return
        texts = [self._input_text(part, i) for _, parts in self.turns for part in parts for i in range(self.count or 1)]
        there = {place for text in texts for place in places(text)}
        for name in self.fields:
            if name not in there:
                raise ArgumentError(
                    f"{self.title}: the prompt has no place for `{name}`.",
                    argument=name,
                    hint=f"write {{{name}}} in it where it belongs",
                )

    def feedback(self, g, seq: int, edges: Sequence) -> list[Feedback | None]:
        """Return the feedback on each variable, given feedback ``g`` on the answer."""
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
        """Return the answer to one request; it is not sent again if another request of the pass fails."""
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
                "input": quoted(self._input_text(variable, i)),
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

    def _input_text(self, part, i: int) -> str:
        """Return the text of an input in call ``i``; a number is written as Python writes it."""
        value = self.values[id(part)]
        return str(value[i if len(value) > 1 else 0]) if isinstance(value, Texts) else str(value)

    def _input(self, j: int) -> tuple[str, Variable]:
        variable = self.variables()[j]
        return next((name, part) for name, part in self.inputs if part is variable)


def _is_wanted(edge) -> bool:
    """True if the feedback at an edge reaches the variables that the pass differentiates."""
    ways = wanted.get()
    return ways is None or any(key(edge) in way for way in ways)


def _name(who: str) -> str:
    return {"user": "prompt", "system": "system prompt"}.get(who, f"{who}'s message")


def _now(part):
    """Return the current value of an input: a text, several texts, or a number."""
    value = value_of(part)
    return value.item() if hasattr(value, "item") else value


def _back(g, saved, node) -> list:
    return saved[0].feedback(g, node.seq, node.edges)


_RULE = Rule("call", vjp=_back, slots=(None,))


# ``judge``: a number, and a remark as its gradient --------------------------------------------------------------------


def judge(f: Callable) -> Callable:
    """Return an evaluator of texts made of ``f``: it gives a number for how bad they are, and a remark that says why.

    Args:
        f: ``f(text, ...)``, a function that is called with strings and the values of variables. It returns one of

            - None: no remark; the number is 0;
            - a remark, or a list of remarks: the number is 1;
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
            verdicts = [_verdict(name, f(*row[:first], **dict(zip(keywords, row[first:])))) for row in rows]
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
        return (str(answer),) if answer.strip() else ()
    if isinstance(answer, (list, tuple)) and all(isinstance(a, str) for a in answer):
        return tuple(str(a) for a in answer if a.strip())
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
        [Said(remark, (subject,) if subject else (), node.seq, float(weight)) for remark in remarks if weight]
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
