"""All prompts that the package itself sends. ``call(..., prompts=)`` and ``Descent(..., prompts=)`` replace them.

``{name}`` is a placeholder. All placeholders are filled in one pass, so that braces in the values stay as they are. A
text between tags cannot close them: see :class:`Quotes`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import ArgumentError, ArgumentTypeError, Code, TypeOf
from .files import Content, joined, map_texts

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
    "fields": """\
Answer with a JSON object, and nothing else, that has these fields:
{fields}""",
    "fields_again": "That answer does not fit: {wrong}. Answer again, with the JSON object alone.",
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
    """Return the prompts with the replacements in ``prompts``.

    Raises:
        ArgumentError: there is no prompt of that name.
        ArgumentTypeError: a replacement is not a text.
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
    """Return the names of the placeholders, each once."""
    return list(dict.fromkeys(_PLACE.findall(template)))


def fill(template: str, values: Mapping[str, Content]) -> Any:
    """Return ``template`` with ``{name}`` replaced for each name in ``values``; other braces stay.

    It is a list of parts if a value has files.
    """
    words = _PLACE.split(template)  # texts and names in turn
    return joined(values.get(word, f"{{{word}}}") if i % 2 else word for i, word in enumerate(words))


def listed(remarks: Iterable[str]) -> Any:
    """Return remarks as a list, each on a line of its own, followed by its files."""
    lines = [("- " + str(remark).strip().replace("\n", "\n  "), getattr(remark, "files", ())) for remark in remarks]
    return joined([joined([line, *files]) for line, files in lines], "\n")


class Quotes:
    """Escapes texts that are quoted between tags in a request, and undoes it in the model's answer.

    In a quoted text the angle bracket of a tag that the request uses becomes ``&lt;`` (and ``&lt;`` before such a name
    becomes ``&amp;lt;``), so that the text cannot close its quotation or open another. Everything else is unchanged.

    Args:
        templates: the request's templates, from which the names of the tags are read.
        names: further tag names.
    """

    def __init__(self, templates: Iterable[str], names: Iterable[str] = ()):
        found = {name for template in templates for name in re.findall(r"</([\w-]+)>", template)}
        tags = "|".join(map(re.escape, sorted(found | set(names), key=len, reverse=True)))
        self._tags = re.compile(rf"(<|&(?:amp;)*lt;)(?=/?(?:{tags})(?![\w-]))", re.IGNORECASE) if tags else None

    def quoted(self, content: Content) -> Any:
        """Return the texts of ``content`` escaped, to be put between tags."""
        tags = self._tags
        return content if tags is None else map_texts(lambda text: tags.sub(_escaped, text), content)

    def unquoted(self, text: str) -> str:
        """Return the text that :meth:`quoted` escaped."""
        return text if self._tags is None else self._tags.sub(_unescaped, text)

    @staticmethod
    def attribute(text: str) -> str:
        """Return ``text`` escaped, to be put in the quotation marks of an attribute."""
        return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")


def _escaped(found: re.Match) -> str:
    return "&lt;" if found[1] == "<" else "&amp;" + found[1][1:]


def _unescaped(found: re.Match) -> str:
    return {"<": "<", "&lt;": "<"}.get(found[1], "&" + found[1][5:])


_TEXT = re.compile(r"<(/?)text(?:\s[^<>]*)?>", re.IGNORECASE)


def tagged_text(answer: str) -> str | None:
    """Return the text between <text> and </text>; None unless the answer has each tag once, in this order."""
    marks = list(_TEXT.finditer(answer))
    if [mark[1] for mark in marks] != ["", "/"]:
        return None
    return answer[marks[0].end() : marks[1].start()].strip()
