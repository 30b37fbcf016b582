"""``call`` and ``judge``: a model's answer, and a critic, as operations on the tape."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from numbers import Number
from typing import Any

import numpy as np

from ..autodiff.graph import Rule
from ..autodiff.modes import no_grad, recording
from ..autodiff.record import record
from ..autodiff.variable import Variable, check_role, data_of, wrap
from ..errors import ArgumentError, ArgumentTypeError, Code, Given, Item, ShapeError, TypeOf
from .batches import each, settled
from .conversations import Conversations
from .files import File
from .models import as_model
from .operations import is_list_of_texts, is_text, several
from .prompts import chosen
from .schemas import Field, fields_of, parsed_object
from .tools import listed_tools
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
        prompts: replacements for the prompts to the critic, ``{"feedback": ..., "feedback_system": ...}``, and for
            those about ``returns``, ``{"fields": ..., "fields_again": ...}``; see ``prompts.PROMPTS``.
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
    calling = Conversations(
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
    return calling.recorded(result) if answer_fields is None else _separate_fields(calling, result, answer_fields)


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


class Fields(dict):
    """The fields of an answer by name; ``text`` is the answer itself."""

    text: Any


def _separate_fields(calling: Conversations, answer, fields: list[Field]) -> Fields:
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
