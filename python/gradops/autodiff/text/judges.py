"""``judge``: a critic as an operation on the tape: a number, and a remark as its gradient."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import ArgumentTypeError, Code, Given, ShapeError, TypeOf
from ..graph import Rule
from ..modes import no_grad, recording
from ..record import record
from ..variable import Variable, data_of, wrap
from .operations import is_list_of_texts, several
from .values import Feedback, Said, Texts, aligned


def judge(f: Callable) -> Callable:
    """Make ``f`` an evaluator of texts: a number for how bad they are, with a remark that says why.

    Args:
        f: ``f(text, ...)``, a function of strings (of the values, for variables) that returns one of

            - None: nothing to say; the number is 0;
            - a remark, or a list of remarks: the number is 1;
            - ``(number, remark)``: the remark None where there is nothing to say; a number alone is without remark.

    Returns:
        A function of texts, variables or strings, that gives a number: a variable where an argument is one. Several
        texts (a variable of several, a list of variables; a list of strings as the first argument) are judged one by
        one, with lists and arrays of as many elements beside them, and give a vector. ``backward()`` starts by
        itself, as from any number; weights and several critics are arithmetic: ``exact(y, target) + 0.1 * style(y)``.

    Raises:
        ArgumentTypeError: ``f`` is no function, or returned something else.
        ShapeError: several texts of different numbers, or a list of another length beside them.

    Gradient:
        The remark, to every text argument that requires it, with the size of the upstream number as its ``weight``;
        none where that is 0, nor where ``f`` had nothing to say: the operations before are then not asked for feedback.
        ``f`` runs without recording.

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
            rule = Rule(name, vjp=_back, slots=(None, None, None, None))
            return record(rule, edges, ([remarks for _, remarks in verdicts], sizes, roles, subject), result)
        return wrap(result)

    try:
        return functools.wraps(f)(judged)
    except AttributeError:
        return judged


def _stacked(x):
    """A list with text variables in it as several texts."""
    return several(x) if is_list_of_texts(x) and any(isinstance(item, Variable) for item in x) else x


def _plain(x):
    """The value that ``f`` sees: a string for a text; several texts stay together."""
    value = x.data if isinstance(x, Variable) and x.dtype is str else x
    return str(value) if isinstance(value, str) else value


def _column(name: str, x, count: int) -> list:
    """The values that texts are judged with: of a list or an array one for each text, all else for every one."""
    if isinstance(x, Texts) and len(x) == 1:
        return list(map(str, x)) * count
    if not isinstance(x, (Texts, list, tuple)) and not getattr(x, "shape", ()):
        return [x] * count
    if len(x) != count:
        raise ShapeError(
            f"`{name}`: {count} texts are judged one by one; the argument beside them has {len(x)} elements.",
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


def _back(g, saved, node) -> list:
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
