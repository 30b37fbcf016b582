"""``Descent``: the optimiser of texts, which has a model rewrite them according to their feedback."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .. import _display
from ..autodiff.variable import Variable
from ..errors import ArgumentError, ArgumentTypeError, Code, Given, Item, ModelError, TypeOf
from .batches import each
from .models import Messages, as_model, ask, shortened
from .prompts import Quotes, chosen, fill, listed, places, tagged_text
from .values import Feedback, Text, Texts


class Descent:
    """Textual gradient descent: a model rewrites each text that has feedback.

    Args:
        params: text variables that require feedback, one or several.
        model: a model, or a value that :func:`as_model` takes.
        memory: the number of earlier versions, each with its feedback, that the model is shown.
        constraints: rules, in words, that every new text must follow.
        prompts: replacements for the prompts of the request: ``{"rewrite": ..., "rewrite_system": ...}``; see
            ``prompts.PROMPTS``. The new text is what the answer has between <text> and </text>, or the whole answer if
            "rewrite" does not mention </text>.

    Raises:
        ArgumentTypeError: a parameter is not a text or requires no feedback, or a constraint is not a text.
        ArgumentError: there are no parameters, or one is given twice.

    Gradient:
        Reads ``grad`` and writes ``data``; records nothing. After textual gradient descent (Yuksekgonul et al. 2024).

    Examples:
        >>> from gradops import Variable, text
        >>> instruction = Variable("Answer.", role="instruction", requires_grad=True)
        >>> short = text.judge(lambda answer: None if "brief" in answer else "say that it must be brief")
        >>> short(instruction).backward()
        >>> optimizer = text.Descent(instruction, text.scripted({"brief": "<text>Answer; be brief.</text>"}))
        >>> optimizer.step()
        >>> print(instruction.data)
        Answer; be brief.

    See Also:
        :func:`judge`, :func:`call`.
    """

    def __init__(
        self,
        params,
        model,
        memory: int = 0,
        constraints: str | Iterable[str] = (),
        prompts: Mapping[str, str] | None = None,
    ):
        self.params = _listed("params", params, Variable)
        if not self.params:
            raise ArgumentError("`params` is empty.", argument="params")
        for i, param in enumerate(self.params):
            if not isinstance(param, Variable) or param.dtype is not str or not param.requires_grad:
                what = repr(param) if isinstance(param, Variable) else type(param).__name__
                raise ArgumentTypeError(
                    f"{{param}} must be a text variable that requires a gradient; got {what}.",
                    argument="params",
                    hint="make it with {call}",
                    call=Code('`Parameter("...", role="instruction")`', '`parameter("...", role = "instruction")`'),
                    param=Item("params", i),
                )
            if not param.is_leaf:
                raise ArgumentTypeError(
                    "{param} is the result of an operation.", argument="params", param=Item("params", i)
                )
        if len(set(map(id, self.params))) < len(self.params):
            raise ArgumentError("`params` has a variable twice.", argument="params")
        if isinstance(memory, bool) or not isinstance(memory, int) or memory < 0:
            raise ArgumentError(
                "`memory` must be a number of versions; got {given}.",
                argument="memory",
                given=Given(repr(memory), memory),
            )
        self.model = as_model(model)
        self.memory = memory
        self.constraints = _listed("constraints", constraints, str)
        for i, words in enumerate(self.constraints):
            if not isinstance(words, str):
                raise ArgumentTypeError(
                    "{item} must be a text; got {words}.",
                    argument="constraints",
                    item=Item("constraints", i),
                    words=TypeOf(words),
                )
        self._prompts = chosen(prompts)
        self._quotes = Quotes(self._prompts.values())
        self._past: list[list[tuple[str, list[str]]]] = [[] for _ in self.params]
        self._answered: dict[tuple, str] = {}
        self._refused: dict[tuple, list[str]] = {}

    def zero_grad(self) -> None:
        """Forget the feedback."""
        for param in self.params:
            param.zero_grad()

    def step(self) -> None:
        """Rewrite each parameter that has feedback, in order.

        Raises:
            ModelError: the model failed; or, on a second request too, its answer had no text, no text between tags, or
                a text without a ``{place}`` of the old one. No parameter has changed then; the next ``step()`` repeats
                only the requests that were not answered.
        """
        requests = []
        for i, param in enumerate(self.params):
            for place, (text, said) in enumerate(_each_text(param)):
                if len(said):
                    requests.append((i, place, text, said))
        replies = each(self._rewritten, requests)
        self._answered.clear()
        self._refused.clear()
        for i, param in enumerate(self.params):
            new = {place: reply for (j, place, _, _), reply in zip(requests, replies) if j == i}
            if new:
                if self.memory:
                    self._past[i] = [*self._past[i], (param.tolist(), _words(_said(param)))][-self.memory :]
                _set(param, new)

    def _rewritten(self, request: tuple) -> str:
        i, place, text, said = request
        key = (i, place, str(text), tuple(map(str, said)))
        if key not in self._answered:
            self._answered[key] = self._ask(i, place, str(text), said, self._refused.setdefault(key, []))
        return self._answered[key]

    def _ask(self, i: int, place: int, text: str, said: Feedback, refused: list[str]) -> str:
        """Return the new text. A second request names what was wrong with the first answer."""
        what = f"the request to rewrite {self.params[i].role or 'text'!r}"
        for _ in range(2):
            messages = self._request(i, place, text, said, refused)
            answer = str(ask(self.model, messages, what, "`step()` once more asks again"))
            new = tagged_text(answer) if "</text>" in self._prompts["rewrite"] else answer.strip()
            shown = f"Your answer {shortened(answer if new is None else new)!r}"
            if new:
                new = self._quotes.unquoted(new)
                lost = [f"{{{name}}}" for name in places(text) if name not in places(new)]
                if not lost:
                    return new
                failed = "the new text has no place {place} any more."
                refused.append(f"{shown} has lost {', '.join(lost)}.")
            else:
                lost = []
                failed = _EMPTY if new == "" else "the answer does not have one new text between <text> and </text>."
                refused.append(
                    _EMPTY if new == "" else f"{shown} does not have one new text between <text> and </text>."
                )
        raise ModelError(
            f"{{call}}: {failed}",
            hint="call `step()` again to repeat the request; the parameter has not changed",
            call=Given(what),
            place=Given(lost[0] if lost else ""),
        )

    def _request(self, i: int, place: int, text: str, said: Feedback, refused: list[str]) -> Messages:
        prompts, quoted = self._prompts, self._quotes.quoted
        versions = [
            fill(prompts["version"], {"text": quoted(_one(old, place)), "remarks": quoted(listed(remarks))})
            for old, remarks in self._past[i]
            if isinstance(old, str) or place < len(old)  # the parameter may have more texts now
        ]
        constraints = [*self.constraints, *(f"Keep {{{name}}} as it is." for name in places(text)), *refused]
        values = {
            "role": self._quotes.attribute(self.params[i].role or "text"),
            "text": quoted(text),
            "remarks": quoted(listed(_words(said))),
            "memory": fill(prompts["memory"], {"versions": "\n".join(versions)}) if versions else "",
            "constraints": fill(prompts["constraints"], {"constraints": listed(constraints)}) if constraints else "",
        }
        return [
            {"role": "system", "content": fill(prompts["rewrite_system"], values)},
            {"role": "user", "content": fill(prompts["rewrite"], values)},
        ]

    def state_dict(self) -> dict[str, Any]:
        """Return the earlier versions, lists and strings: ``{"past": [[(text, remarks), ...] for each parameter]}``."""
        return {"past": [[[text, list(remarks)] for text, remarks in rows] for rows in self._past]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the earlier versions that :meth:`state_dict` returned.

        Raises:
            ArgumentError: the state does not fit the parameters.
        """
        past: Any = state.get("past") if isinstance(state, Mapping) else None
        try:
            found = [[_version(*row) for row in rows] for rows in past]
        except TypeError:
            found = []
        if len(found) != len(self.params):
            raise ArgumentError(f"`state` must be that of {len(self.params)} parameters.", argument="state")
        self._past = found

    def _repr_html_(self) -> str:
        """The current texts, their feedback, and the number of versions remembered."""
        rows = [
            [param.role or "", str(param.data), "" if param.grad is None else str(param.grad.data), str(len(past))]
            for param, past in zip(self.params, self._past)
        ]
        head = ["parameter", "text", "feedback", "versions remembered"]
        kept = (
            [_display.folded("constraints", _display.verbatim("\n".join(self.constraints)))] if self.constraints else []
        )
        about = f"of {len(rows)} texts by {self.model.name}, memory of {self.memory}"
        return _display.block("Descent", about, _display.rows_of(rows, head, (0, 1, 2)), *kept)

    def __repr__(self) -> str:
        return f"Descent({[param.role for param in self.params]}, memory={self.memory})"


_EMPTY = "the model returned an empty text."


def _listed(name: str, values, one: type) -> list:
    """Return a single value of type ``one``, or several, as a list."""
    if isinstance(values, one):
        return [values]
    if not isinstance(values, Iterable) or getattr(values, "shape", None) == ():
        raise ArgumentTypeError(
            f"`{name}` must be one or a list; got {{values}}.", argument=name, values=TypeOf(values)
        )
    return list(values)


def _version(text, remarks) -> tuple:
    """Return a version and its remarks; R gives a single remark as a string."""
    remarks = [remarks] if isinstance(remarks, str) else list(remarks)
    for words in (*([text] if isinstance(text, str) else text), *remarks):
        if not isinstance(words, str):
            raise TypeError
    return text, remarks


def _said(param: Variable) -> Feedback:
    return Feedback() if param.grad is None else param.grad.data


def _each_text(param: Variable) -> list[tuple[Text, Feedback]]:
    said = _said(param)
    if isinstance(param.data, Texts):
        return [(text, said.of(i)) for i, text in enumerate(param.data)]
    return [(param.data, said)]


def _set(param: Variable, new: dict[int, str]) -> None:
    old = param.data
    if isinstance(old, Texts):
        param.data = Texts([Text(new.get(i, str(text)), text.roles) for i, text in enumerate(old)])
    else:
        param.data = Text(new[0], old.roles)


def _words(said: Feedback) -> list[str]:
    """Return the remarks as strings, the highest weight first, with weights if these differ."""
    ordered = sorted(said, key=lambda s: -s.weight)
    if len({s.weight for s in ordered}) < 2:
        return list(dict.fromkeys(map(str, ordered)))
    return list(dict.fromkeys(f"{s} (weight {s.weight:g})" for s in ordered))


def _one(old, place: int) -> str:
    return old if isinstance(old, str) else old[place]
