"""``scripted``: a model that answers by pattern."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Any

from ...errors import ArgumentError, ArgumentTypeError, Given, ModelError, TypeOf
from .models import Messages, Model, as_prompt, by_prompt_and_system, shortened


def scripted(answers: Mapping[str, Any]) -> Model:
    """A model for tests and documents: it answers by pattern, and calls nothing.

    Args:
        answers: regular expressions and what is answered where the first of them that is found in the prompt (the
            system prompt before it) matches: a text; a list of texts, one for each call, the last from then on; or a
            function, as for :func:`as_model`. Patterns are searched for with ``.`` matching newlines too.

    Returns:
        A model. ``model.calls`` are the ``(prompt, system)`` it was asked, in order.

    Raises:
        ArgumentTypeError: answers of other types.
        ArgumentError: a pattern that is no regular expression.
        ModelError: when called, for a prompt that no pattern matches.

    Examples:
        >>> from gradops import text
        >>> model = text.scripted({"ice": ["It floats.", "It is cold."], ".": "I do not know."})
        >>> [model("What of ice?"), model("What of ice?"), model("What of fire?")]
        ['It floats.', 'It is cold.', 'I do not know.']

    See Also:
        :func:`as_model`, :func:`call`.
    """
    if isinstance(answers, list) and all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in answers):
        pairs, answers = answers, {}  # from R, whose lists need no names
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
        several = isinstance(answer, (list, tuple)) and len(answer) > 0 and all(isinstance(a, str) for a in answer)
        if not (isinstance(answer, str) or callable(answer) or several):
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
        rows.append((found, by_prompt_and_system(answer) if callable(answer) else answer, [0]))
    calls: list[tuple[str, str | None]] = []
    lock = threading.Lock()

    def send(messages: Messages):
        prompt, system = as_prompt(messages)
        text = prompt if system is None else f"{system}\n\n{prompt}"
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
        return answer if isinstance(answer, str) else answer(prompt, system)

    model = Model(send, "scripted")
    model.calls = calls  # type: ignore[attr-defined]
    return model
