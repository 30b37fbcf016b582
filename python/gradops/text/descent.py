"""``Descent``: the optimiser of texts, which has a model rewrite them by the feedback on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..autodiff.text.values import Feedback, Text, Texts
from ..autodiff.variable import Variable
from ..errors import ArgumentError, ArgumentTypeError, Code, Given, Item, ModelError
from .each import each
from .models import as_model, ask
from .prompts import chosen, fill, listed, places


class Descent:
    """Textual gradient descent: each text that got feedback is rewritten by a model.

    Args:
        params: text variables that require feedback, one or several.
        model: what :func:`as_model` takes.
        memory: how many of the earlier versions, each with the feedback it got, the model is shown.
        constraints: what every new text must keep to, in words.
        prompts: other words for the request: ``{"rewrite": ..., "rewrite_system": ...}``; see ``prompts.PROMPTS``.

    Raises:
        ArgumentTypeError: parameters that are no text, or require no feedback.
        ArgumentError: one that is there twice.

    Gradient:
        Reads ``grad`` and writes ``data``; records nothing. After textual gradient descent (Yuksekgonul et al. 2024).
    """

    def __init__(
        self,
        params,
        model,
        memory: int = 0,
        constraints: str | Iterable[str] = (),
        prompts: Mapping[str, str] | None = None,
    ):
        self.params = [params] if isinstance(params, Variable) else list(params)
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
        self.constraints = [constraints] if isinstance(constraints, str) else list(map(str, constraints))
        self._prompts = chosen(prompts)
        self._past: list[list[tuple[str, list[str]]]] = [[] for _ in self.params]
        self._answered: dict[tuple, str] = {}

    def zero_grad(self) -> None:
        """Forget the feedback."""
        for param in self.params:
            param.zero_grad()

    def step(self) -> None:
        """Rewrite each parameter that has feedback, in order; one without is left alone.

        Raises:
            ModelError: the model failed, gave no text, or lost a ``{place}`` of the old one. No parameter has changed
                then; ``step()`` once more asks only for what was not answered.
        """
        wanted = []
        for i, param in enumerate(self.params):
            for place, (text, said) in enumerate(_each_text(param)):
                if len(said):
                    wanted.append((i, place, text, said))
        replies = each(self._rewritten, wanted)
        self._answered.clear()
        for i, param in enumerate(self.params):
            new = {place: reply for (j, place, _, _), reply in zip(wanted, replies) if j == i}
            if new:
                if self.memory:
                    self._past[i] = [*self._past[i], (param.tolist(), _words(_said(param)))][-self.memory :]
                _set(param, new)

    def _rewritten(self, request: tuple) -> str:
        i, place, text, said = request
        key = (i, place, str(text), tuple(map(str, said)))
        if key not in self._answered:
            self._answered[key] = self._ask(i, place, str(text), said)
        return self._answered[key]

    def _ask(self, i: int, place: int, text: str, said: Feedback) -> str:
        prompts, role = self._prompts, self.params[i].role or "text"
        versions = [
            fill(prompts["version"], {"text": _one(old, place), "remarks": listed(remarks)})
            for old, remarks in self._past[i]
        ]
        named = places(text)
        constraints = self.constraints + [f"Keep {{{place}}} as it is." for place in named]
        values = {
            "role": role,
            "text": text,
            "remarks": listed(_words(said)),
            "memory": fill(prompts["memory"], {"versions": "\n".join(versions)}) if versions else "",
            "constraints": fill(prompts["constraints"], {"constraints": listed(constraints)}) if constraints else "",
        }
        what = f"the request to rewrite {role!r}"
        messages = [
            {"role": "system", "content": fill(prompts["rewrite_system"], values)},
            {"role": "user", "content": fill(prompts["rewrite"], values)},
        ]
        new = _between_tags(str(ask(self.model, messages, what)))
        if not new:
            raise ModelError(f"{what}: the model returned an empty text.")
        lost = [p for p in named if p not in places(new)]
        if lost:
            raise ModelError(
                f"{what}: the new text has no place {{{lost[0]}}} any more.",
                hint="`step()` once more asks again; the parameter is as it was",
            )
        return new

    def state_dict(self) -> dict[str, Any]:
        """What it remembers, as lists and strings: ``{"past": [[(text, remarks), ...] of each parameter]}``."""
        return {"past": [[[text, list(remarks)] for text, remarks in rows] for rows in self._past]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Remember what :meth:`state_dict` gave.

        Raises:
            ArgumentError: the state of other parameters.
        """
        past = state.get("past") if isinstance(state, Mapping) else None
        if not isinstance(past, (list, tuple)) or len(past) != len(self.params):
            raise ArgumentError(f"`state` must be that of {len(self.params)} parameters.", argument="state")
        self._past = [
            [(text, [remarks] if isinstance(remarks, str) else list(remarks)) for text, remarks in rows]
            for rows in past
        ]

    def __repr__(self) -> str:
        return f"Descent({[param.role for param in self.params]}, memory={self.memory})"


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
    """Remarks, those that matter most first, with their weights where these differ."""
    ordered = sorted(said, key=lambda s: -s.weight)
    if len({s.weight for s in ordered}) < 2:
        return list(dict.fromkeys(map(str, ordered)))
    return list(dict.fromkeys(f"{s} (weight {s.weight:g})" for s in ordered))


def _one(old, place: int) -> str:
    return old if isinstance(old, str) else old[place]


def _between_tags(answer: str) -> str:
    """What is between the first <text> and the last </text>; all of an answer without them."""
    start, end = answer.find("<text>"), answer.rfind("</text>")
    return (answer[start + 6 : end] if 0 <= start < end else answer).strip()
