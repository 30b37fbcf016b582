"""All prompts that the layer itself sends. ``call(..., prompts=)`` and ``Descent(..., prompts=)`` replace them.

``{name}`` marks a place. Places are filled in one pass, so that braces in the values filled in stay as they are. A
text between tags cannot end them: see :class:`Quotes`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ..errors import ArgumentError, ArgumentTypeError, Code, TypeOf

PROMPTS = {
    "feedback_system": "You help to improve the inputs of a language model. You say what to change; rewrite nothing.",
    "feedback": """\
A language model was called.

<call>
{call}
</call>

<answer role="{role}">
{answer}
</answer>

This was said of the answer:
<feedback>
{remarks}
</feedback>

One of the inputs of the call was this one:
<input role="{input_role}">
{input}
</input>

How should this input change, so that the answer gets better? Say it in one or two sentences that can be understood
without the call, or say "nothing" if it is good as it is.""",
    "rewrite_system": "You improve texts. You do what the feedback asks for, in all cases of its kind, and no more.",
    "rewrite": """\
Improve this text:
<text role="{role}">
{text}
</text>

The feedback on it:
<feedback>
{remarks}
</feedback>
{memory}{constraints}
Answer with the new text between <text> and </text>.""",
    "memory": """
Earlier versions, the oldest first, and the feedback on them:
{versions}
""",
    "version": """\
<version>
{text}
</version>
<feedback>
{remarks}
</feedback>""",
    "constraints": """
The new text must keep to this:
{constraints}
""",
}


def chosen(prompts: Mapping[str, str] | None) -> Mapping[str, str]:
    """The layer's prompts, with those that are replaced.

    Raises:
        ArgumentError: a name that is none of theirs.
        ArgumentTypeError: words that are no text.
    """
    if not isinstance(prompts, Mapping | None):
        raise ArgumentTypeError(
            "`prompts` must be {names}; got {prompts}.",
            argument="prompts",
            names=Code("a dict of texts", "a list of texts with names"),
            prompts=TypeOf(prompts),
        )
    for name, words in (prompts or {}).items():
        if name not in PROMPTS:
            raise ArgumentError(
                f"`prompts` has no {name!r}; its names are {', '.join(map(repr, PROMPTS))}.", argument="prompts"
            )
        if not isinstance(words, str):
            raise ArgumentTypeError(
                f"{name!r} of `prompts` must be a text; got {{words}}.", argument="prompts", words=TypeOf(words)
            )
    return {**PROMPTS, **(prompts or {})}


_PLACE = re.compile(r"\{([^\W\d]\w*)\}")


def places(template: str) -> list[str]:
    """The names in braces."""
    return list(dict.fromkeys(_PLACE.findall(template)))


def fill(template: str, values: Mapping[str, str]) -> str:
    """``template`` with ``{name}`` replaced for the names of ``values``; other braces stay."""
    return _PLACE.sub(lambda found: values.get(found[1], found[0]), template)


def listed(remarks: Iterable[str]) -> str:
    """Remarks, one a line."""
    return "\n".join("- " + str(remark).strip().replace("\n", "\n  ") for remark in remarks)


class Quotes:
    """Quotations between tags, and a model's answers between them.

    In a quoted text the angle bracket of a tag that the layer uses is ``&lt;`` (and ``&lt;`` before its name
    ``&amp;lt;``), so that the text cannot end its quotation or begin another; all else stays as it is.

    Args:
        templates: the requests, whose tags these are.
        names: further tags.
    """

    def __init__(self, templates: Iterable[str], names: Iterable[str] = ()):
        found = {name for template in templates for name in re.findall(r"</([\w-]+)>", template)}
        tags = "|".join(map(re.escape, sorted(found | set(names), key=len, reverse=True)))
        self._tags = re.compile(rf"(<|&(?:amp;)*lt;)(?=/?(?:{tags})(?![\w-]))", re.IGNORECASE) if tags else None

    def quoted(self, text: str) -> str:
        """``text`` as it stands between tags."""
        return text if self._tags is None else self._tags.sub(_escaped, text)

    def unquoted(self, text: str) -> str:
        """The text that was quoted so."""
        return text if self._tags is None else self._tags.sub(_unescaped, text)

    @staticmethod
    def attribute(text: str) -> str:
        """``text`` in the quotation marks of an attribute."""
        return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")


def _escaped(found: re.Match) -> str:
    return "&lt;" if found[1] == "<" else "&amp;" + found[1][1:]


def _unescaped(found: re.Match) -> str:
    return {"<": "<", "&lt;": "<"}.get(found[1], "&" + found[1][5:])


_TEXT = re.compile(r"<(/?)text(?:\s[^<>]*)?>", re.IGNORECASE)


def between_tags(answer: str) -> str | None:
    """The text between <text> and </text> in an answer; None unless each of the two is there once, in this order."""
    marks = list(_TEXT.finditer(answer))
    if [mark[1] for mark in marks] != ["", "/"]:
        return None
    return answer[marks[0].end() : marks[1].start()].strip()
