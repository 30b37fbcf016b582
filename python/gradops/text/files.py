"""Files, and the parts of a message: texts with images and documents between them."""

from __future__ import annotations

import base64
import mimetypes
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

from ..errors import ArgumentError, ArgumentTypeError, Code, Given, TypeOf


class File:
    """An image or a document, as part of a prompt or of a remark.

    Args:
        source: bytes; the path of a file, which is read now; or an address, ``"https://..."`` or ``"data:..."``, which
            is sent as it is and never read.
        media_type: ``"image/png"``, ``"application/pdf"``; by default that of the first bytes or of the file's ending.
        role: the purpose of the file, as of a variable.

    Attributes:
        data: the bytes; None for an ``"https://..."`` address.
        url: the address; for bytes a ``"data:..."`` address.
        name: the file's name; None for bytes.

    A file is a constant: it gets no feedback. The critic sees it where it was in the call.

    Raises:
        ArgumentError: there is no such file, or its media type cannot be told.
        ArgumentTypeError: ``source`` is none of these, or ``media_type`` or ``role`` is not a text.

    Examples:
        >>> from gradops import Variable, text
        >>> photo = text.File(bytes.fromhex("89504e470d0a1a0a"), role="photo")
        >>> photo
        File('image/png', 8 bytes, role='photo')
        >>> style = Variable("What is on {photo}?", role="question", requires_grad=True)
        >>> answer = text.call(lambda parts: "a boat", style, photo=photo, critic=lambda parts: "ask for its colour")
        >>> answer.backward("no colour")
        >>> print(style.grad)
        ask for its colour

    See Also:
        :func:`call`, :class:`Said`, whose ``files`` belong to a remark.
    """

    def __init__(self, source, media_type: str | None = None, role: str | None = None):
        for argument, value in (("media_type", media_type), ("role", role)):
            if value is not None and not isinstance(value, str):
                raise ArgumentTypeError(
                    f"`{argument}` must be a text; got {{value}}.", argument=argument, value=TypeOf(value)
                )
        self.role = role
        self.name: str | None = None
        self.data: bytes | None = None
        known = media_type
        if isinstance(source, (bytes, bytearray, memoryview)):
            self.data = bytes(source)
        elif isinstance(source, str) and source.startswith("data:"):
            head, _, content = source.partition(",")
            if not head.endswith(";base64"):
                raise ArgumentError("`source`: a data address must be in base64.", argument="source")
            self.data, known = base64.b64decode(content), media_type or head[5:-7]
        elif isinstance(source, str) and source.startswith(("https://", "http://")):
            self.name = source.split("?")[0].rstrip("/").rpartition("/")[2]
        elif isinstance(source, (str, os.PathLike)):
            path = Path(source)
            if not path.is_file():
                raise ArgumentError(
                    "`source`: there is no file {path}.", argument="source", path=Given(repr(str(path)), str(path))
                )
            self.name, self.data = path.name, path.read_bytes()
        else:
            raise ArgumentTypeError(
                "`source` must be bytes, a path or an address; got {source}.",
                argument="source",
                source=TypeOf(source),
                hint="write an image object into bytes first",
            )
        found = known or _media_type(self.data or b"") or (mimetypes.guess_type(self.name)[0] if self.name else None)
        if found is None:
            raise ArgumentError(
                "`media_type` is missing: neither the content nor the name tells it.",
                argument="media_type",
                hint="{call}",
                call=Code('`File(source, "image/png")`', '`text_file(source, "image/png")`'),
            )
        self.media_type = found
        self.url = source if self.data is None else f"data:{found};base64,{base64.b64encode(self.data).decode()}"

    @property
    def kind(self) -> str:
        """``"image"`` or ``"audio"``, or ``"document"`` for anything else."""
        kind = self.media_type.partition("/")[0]
        return kind if kind in ("image", "audio") else "document"

    def _key(self) -> tuple:
        return self.url, self.media_type, self.name, self.role

    def __eq__(self, other) -> bool:
        return self._key() == other._key() if isinstance(other, File) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        """The file in words, where a text is needed: ``[image photo.png]``."""
        return f"[{self.kind} {self.role or self.name or self.media_type}]"

    def __repr__(self) -> str:
        size = repr(self.url) if self.data is None else f"{len(self.data)} bytes"
        named = "" if self.name is None or self.data is None else f", name={self.name!r}"
        role = "" if self.role is None else f", role={self.role!r}"
        return f"File({self.media_type!r}, {size}{named}{role})"


_FIRST_BYTES = {
    b"\x89PNG": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"%PDF": "application/pdf",
}


def _media_type(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _FIRST_BYTES.items() if data.startswith(start)), None)


Content: TypeAlias = str | list[Any]
"""A text, or a list of texts and files, in reading order."""


def parts_of(content: Content) -> list:
    """Return the parts of a content as a list."""
    return [content] if isinstance(content, (str, File)) else list(content)


def joined(contents: Iterable[Content], separator: str = "") -> Content:
    """Return contents in sequence: a text if there is no file, else a list without empty or adjacent texts."""
    contents = list(contents)
    texts = [content for content in contents if isinstance(content, str)]
    if len(texts) == len(contents):
        return separator.join(texts)
    parts: list = []
    for content in contents:
        for i, part in enumerate(parts_of(content)):
            if isinstance(part, File) or not parts or isinstance(parts[-1], File):
                parts.append(part)
            else:
                parts[-1] = f"{parts[-1]!s}{'' if i else separator}{part!s}"
    if not any(isinstance(part, File) for part in parts):
        return "".join(parts)
    return [part if isinstance(part, File) else str(part) for part in parts if isinstance(part, File) or part.strip()]


def map_texts(f: Callable[[str], str], content: Content) -> Content:
    """Return the content with ``f`` of each text."""
    return f(content) if isinstance(content, str) else [p if isinstance(p, File) else f(p) for p in content]


def plain_text(content: Content) -> str:
    """Return a content as one text, with each file in words."""
    return "".join(map(str, parts_of(content)))


def is_content(value) -> bool:
    """True for a text, and for a list of texts and files with at least one file."""
    if isinstance(value, str):
        return True
    listed = isinstance(value, (list, tuple)) and all(isinstance(part, (str, File)) for part in value)
    return listed and any(isinstance(part, File) for part in value)
