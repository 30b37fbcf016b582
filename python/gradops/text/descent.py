"""``Descent``: the optimiser of texts, which has a model rewrite them according to their feedback."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import isnan, nan
from typing import Any, NamedTuple

import numpy as np

from .. import _display
from ..autodiff.modes import no_grad
from ..autodiff.variable import Variable, data_of
from ..errors import ArgumentError, ArgumentTypeError, Code, Given, Item, ModelError, TypeOf
from .batches import each, settled
from .models import Messages, as_model, ask, shortened
from .prompts import Quotes, chosen, fill, listed, places, tagged_text
from .values import Feedback, Said, Text, Texts


class Descent:
    """Textual gradient descent: a model rewrites each text that has feedback.

    Args:
        params: text variables that require feedback, one or several; or groups with options of their own, ``[{"params":
            [...], "learning_rate": 0.2}, ...]``, which may have any of ``model``, ``memory``, ``constraints``,
            ``prompts`` and ``learning_rate``. ``param_groups`` holds the groups and may be changed between steps.
        model: a model, or a value that :func:`as_model` takes.
        memory: the number of earlier versions, each with its feedback, that the model is shown.
        constraints: rules, in words, that every new text must follow.
        prompts: replacements for the prompts of the request: ``{"rewrite": ..., "rewrite_system": ...}``; see
            ``prompts.PROMPTS``. The new text is what the answer has between <text> and </text>, or the whole answer if
            "rewrite" does not mention </text>.
        learning_rate: the largest share of its words that a step may replace, add or remove in a text, at least one
            word; None for any change.
        score: a function without arguments that says how good the current texts are, a number or one for each example
            of a validation set; the mean counts. A step then keeps new texts only if they score higher than
            the current ones. ``trials`` lists the scores, from that of the first texts on.
        candidates: the number of new texts that a step tries until one scores higher; each request tells the model
            what the texts before it scored.

    Raises:
        ArgumentTypeError: a parameter is not a text or requires no feedback, or a constraint is not a text.
        ArgumentError: there are no parameters, or one is given twice; a group has an option of another name; a setting
            is out of its range.

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
        learning_rate: float | None = None,
        score: Callable[[], Any] | None = None,
        candidates: int = 1,
    ):
        given = [params] if isinstance(params, Mapping) else _listed("params", params, Variable)
        if not given:
            raise ArgumentError("`params` is empty.", argument="params")
        groups = given if any(isinstance(group, Mapping) for group in given) else [{"params": given}]
        options = {
            "model": model,
            "memory": memory,
            "constraints": constraints,
            "prompts": prompts,
            "learning_rate": learning_rate,
        }
        self.param_groups = [_group(group, options) for group in groups]
        self.params = [param for group in self.param_groups for param in group["params"]]
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
        if score is not None and not callable(score):
            raise ArgumentTypeError(
                "`score` must be a function without arguments; got {score}.", argument="score", score=TypeOf(score)
            )
        _check_count("candidates", candidates, 1)
        self.score = score
        self.candidates = candidates
        self.trials: list[Trial] = []
        self._groups = [group for group in self.param_groups for _ in group["params"]]
        self._best: tuple[list, float] | None = None
        self._past: list[list[tuple[str, list[str]]]] = [[] for _ in self.params]
        self._answered: dict[tuple, str] = {}
        self._refused: dict[tuple, list[str]] = {}
        self._outscored: dict[tuple, list[str]] = {}

    def zero_grad(self) -> None:
        """Forget the feedback."""
        for param in self.params:
            param.zero_grad()

    def step(self) -> None:
        """Rewrite each parameter that has feedback, in order; with ``score``, keep the new texts if they score higher.

        Raises:
            ModelError: the model failed; or, on a second request too, its answer had no text, no text between tags, a
                text without a ``{place}`` of the old one, or a larger change than ``learning_rate``. No parameter has
                changed then; the next ``step()`` repeats only the requests that were not answered.
            ArgumentTypeError: ``score`` returned no number. No parameter has changed then.
        """
        for group in self.param_groups:
            _check_rate(group["learning_rate"])
        requests = [
            _Request(i, place, text, said)
            for i, param in enumerate(self.params)
            for place, (text, said) in enumerate(_each_text(param))
            if len(said)
        ]
        if not requests:
            return
        old = {i: (self.params[i].tolist(), list(map(str, _words(_said(self.params[i]))))) for i, *_ in requests}
        if self.score is None:
            self._write(requests, self._proposed(requests))
        elif not self._try_candidates(requests, self.score):
            return
        for i, version in old.items():
            if memory := self._groups[i]["memory"]:
                self._past[i] = [*self._past[i], version][-memory:]

    def _try_candidates(self, requests: list[_Request], score: Callable[[], Any]) -> bool:
        """Write new texts that score higher than the present ones; return False if none did, and write nothing."""
        present = [param.data for param in self.params]
        if self._best is None or self._best[0] != self._texts():
            self._best = self._texts(), _number(score)
            self.trials.append(Trial(self._best[1], True, self._best[0]))
        best = self._best[1]
        for _ in range(self.candidates):
            replies = self._proposed(requests)
            accepted = False
            try:
                self._write(requests, replies)
                value, texts = _number(score), self._texts()
                accepted = value > best
            finally:
                if not accepted:
                    for param, data in zip(self.params, present):
                        param.data = data
            self.trials.append(Trial(value, accepted, texts))
            if accepted:
                self._best = texts, value
                self._outscored.clear()
                return True
            for request, reply in zip(requests, replies):
                line = f"Improve on {reply!r}, which was tried: it scored {value:g}, and the present text {best:g}."
                self._outscored.setdefault(request.key, []).append(line)
        return False

    def _texts(self) -> list:
        return [param.tolist() for param in self.params]

    def _proposed(self, requests: list[_Request]) -> list[str]:
        """Return a new text for each request."""
        limits = [as_model(group["model"]).limit or 8 for group in self.param_groups]
        replies = each(self._rewritten, requests, threads=max(limits))
        self._answered.clear()
        self._refused.clear()
        return replies

    def _write(self, requests: list[_Request], replies: list[str]) -> None:
        for i, param in enumerate(self.params):
            new = {request.place: reply for request, reply in zip(requests, replies) if request.i == i}
            if new:
                _set(param, new)

    def _rewritten(self, request: _Request) -> str:
        outscored = self._outscored.get(request.key, [])
        key = (*request.key, *map(str, request.said), len(outscored))
        if key not in self._answered:
            self._answered[key] = self._ask(request, [*outscored, *self._refused.setdefault(key, [])], key)
        return self._answered[key]

    def _ask(self, request: _Request, refused: list[str], key: tuple) -> str:
        """Return the new text. A second request names what was wrong with the first answer."""
        group, text = self._groups[request.i], str(request.text)
        prompts = chosen(group["prompts"])
        quotes = Quotes(prompts.values())
        what = f"the request to rewrite {self.params[request.i].role or 'text'!r}"
        for _ in range(2):
            messages = self._messages(request, refused, prompts, quotes)
            answer = str(ask(as_model(group["model"]), messages, what, "`step()` once more asks again"))
            new = tagged_text(answer) if "</text>" in prompts["rewrite"] else answer.strip()
            shown = f"Your answer {shortened(answer if new is None else new)!r}"
            new = new and quotes.unquoted(new)
            lost = [f"{{{name}}}" for name in places(text) if new and name not in places(new)]
            most, changed = _most_changes(text, group["learning_rate"]), 0
            if new is None:
                failed, wrong = f"the answer {_UNTAGGED}", f"{shown} {_UNTAGGED}"
            elif not new:
                failed = wrong = _EMPTY
            elif lost:
                failed = "the new text has no place {place} any more."
                wrong = f"{shown} has lost {', '.join(lost)}."
            elif most is not None and (changed := word_changes(text, new)) > most:
                failed = f"the new text changes {changed} words; the learning rate allows {most}."
                wrong = f"{shown} changes {changed} words."
            else:
                return new
            refused.append(wrong)
            self._refused[key].append(wrong)
        raise ModelError(
            f"{{call}}: {failed}",
            hint="call `step()` again to repeat the request; the parameter has not changed"
            + ("; or raise `learning_rate`" if changed else ""),
            call=Given(what),
            place=Given(lost[0] if lost else ""),
        )

    def _messages(self, request: _Request, refused: list[str], prompts: Mapping[str, str], quotes: Quotes) -> Messages:
        i, place, text, said = request
        group, quoted = self._groups[i], quotes.quoted
        versions = [
            fill(prompts["version"], {"text": quoted(_one(old, place)), "remarks": quoted(listed(remarks))})
            for old, remarks in self._past[i]
            if isinstance(old, str) or place < len(old)  # the parameter may have more texts now
        ]
        most = _most_changes(text, group["learning_rate"])
        constraints = [
            *group["constraints"],
            *(f"Keep {{{name}}} as it is." for name in places(text)),
            *([] if most is None else [f"Change at most {most} of the {len(text.split())} words."]),
            *refused,
        ]
        values = {
            "role": quotes.attribute(self.params[i].role or "text"),
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
        constraints = list(dict.fromkeys(words for group in self.param_groups for words in group["constraints"]))
        kept = [_display.folded("constraints", _display.verbatim("\n".join(constraints)))] if constraints else []
        names = ", ".join(dict.fromkeys(as_model(group["model"]).name for group in self.param_groups))
        about = f"of {len(rows)} texts by {names}, memory of {self._memory()}"
        return _display.block("Descent", about, _display.rows_of(rows, head, (0, 1, 2)), *kept)

    def __repr__(self) -> str:
        return f"Descent({[param.role for param in self.params]}, memory={self._memory()})"

    def _memory(self) -> str:
        return ", ".join(dict.fromkeys(str(group["memory"]) for group in self.param_groups))


class Trial(NamedTuple):
    """A score of texts.

    Attributes:
        score: the mean score.
        accepted: True for the first texts, and for texts that scored higher than those before.
        texts: the text, or list of texts, of each parameter.
    """

    score: float
    accepted: bool
    texts: list


class _Request(NamedTuple):
    """A text to be rewritten: position ``place`` of parameter ``i``, and the feedback on it."""

    i: int
    place: int
    text: Text
    said: Feedback

    @property
    def key(self) -> tuple:
        return self.i, self.place, str(self.text)


_EMPTY = "the model returned an empty text."
_UNTAGGED = "does not have one new text between <text> and </text>."


def _group(group, options: dict[str, Any]) -> dict[str, Any]:
    """Return a group of parameters with all options, checked.

    Raises:
        ArgumentTypeError: an option is of another type, or the group is no dict.
        ArgumentError: the group has no parameters, or an option of another name; a number is out of its range.
    """
    if not isinstance(group, Mapping):
        raise ArgumentTypeError(
            "`params` has groups and other values; got {group}.", argument="params", group=TypeOf(group)
        )
    for name in group:
        if name not in ("params", *options):
            raise ArgumentError(
                f"a group of `params` has no option {name!r}; it has {', '.join(map(repr, options))}.",
                argument="params",
            )
    found = {**options, **group, "params": _listed("params", group.get("params", ()), Variable)}
    if not found["params"]:
        raise ArgumentError(
            "a group of `params` has no parameters.",
            argument="params",
            hint="write {call}",
            call=Code('`{"params": [...], "memory": 2}`', "`list(params = list(...), memory = 2)`"),
        )
    _check_count("memory", found["memory"], 0)
    _check_rate(found["learning_rate"])
    found["model"] = as_model(found["model"])
    found["constraints"] = _listed("constraints", found["constraints"], str)
    for i, words in enumerate(found["constraints"]):
        if not isinstance(words, str):
            raise ArgumentTypeError(
                "{item} must be a text; got {words}.",
                argument="constraints",
                item=Item("constraints", i),
                words=TypeOf(words),
            )
    chosen(found["prompts"])
    return found


def _check_count(name: str, value, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        what = "a number of versions" if name == "memory" else "a positive whole number"
        raise ArgumentError(f"`{name}` must be {what}; got {{given}}.", argument=name, given=Given(repr(value), value))


def _check_rate(rate) -> None:
    number = isinstance(rate, (int, float)) and not isinstance(rate, bool)
    if rate is not None and not (number and 0 < rate <= 1):
        raise ArgumentError(
            "`learning_rate` must be a share of the words, above 0 and up to 1; got {given}.",
            argument="learning_rate",
            given=Given(repr(rate), rate),
            hint="{none} allows any change",
            none=Code("`None`", "`NULL`"),
        )


def _number(score: Callable[[], Any]) -> float:
    """Return the mean of the scores of the current texts.

    Raises:
        ArgumentTypeError: ``score`` did not return numbers.
    """
    with no_grad():
        given = settled(score())
    try:
        value = float(
            np.mean(np.asarray([data_of(x) for x in given] if isinstance(given, list) else data_of(given), float))
        )
    except (TypeError, ValueError):
        value = nan
    if isnan(value):
        raise ArgumentTypeError(
            "`score` must return a number, or numbers; got {given}.",
            argument="score",
            given=Given(repr(given), given),
            hint="return the share of right answers, for example; higher is better",
        )
    return value


def _most_changes(text: str, rate: float | None) -> int | None:
    """Return the number of words that may change, at least one; None for any number."""
    return None if rate is None else max(1, int(rate * len(text.split())))


def word_changes(old: str, new: str) -> int:
    """Return the least number of words to replace, add or remove that makes ``new`` of ``old``."""
    first, second = old.split(), new.split()
    for at in (0, -1):  # what both begin or end with
        while first and second and first[at] == second[at]:
            first.pop(at), second.pop(at)
    row = list(range(len(second) + 1))
    for i, word in enumerate(first, 1):
        before, row = row, [i]
        for j, other in enumerate(second):
            row.append(min(before[j] + (word != other), before[j + 1] + 1, row[j] + 1))
    return row[-1]


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


def _words(said: Feedback) -> list[Said]:
    """Return the remarks, each once, the highest weight first, with weights if these differ."""
    ordered = sorted(said, key=lambda s: -s.weight)
    same = len({s.weight for s in ordered}) < 2
    lines = [Said(str(s) if same else f"{s} (weight {s.weight:g})", files=s.files) for s in ordered]
    return list({(str(line), line.files): line for line in lines}.values())


def _one(old, place: int) -> str:
    return old if isinstance(old, str) else old[place]
