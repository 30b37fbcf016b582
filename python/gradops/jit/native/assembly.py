"""Elements of arrays in LLVM's text: ``%x = double %p[%i]`` reads one, and ``%p[%i] = double %x`` writes it.

LLVM has an instruction for the address and another for the value, each with a name. Here a position may also be a
product, ``%p[%i * %stride]``, and a distance in bytes, ``%p[%i * %step bytes]``.
"""

from __future__ import annotations

import itertools
import re

_NAME = r"%[\w.]+"
_PLACE = rf"(?P<array>{_NAME})\[(?P<at>[%\w.]+)( \* (?P<far>[%\w.]+))?(?P<bytes> bytes)?\]"
_READ = re.compile(rf"(?m)^ *(?P<x>{_NAME}) = (?P<type>\w+) {_PLACE}(?P<facts>.*)$")
_WRITTEN = re.compile(rf"(?m)^ *{_PLACE} = (?P<type>\w+) (?P<x>[%\w.-]+)(?P<facts>.*)$")


def assembled(text: str) -> str:
    """The text in LLVM's own instructions."""
    numbers = itertools.count()

    def addressed(found: re.Match) -> tuple[str, str]:
        name, at, lines = f"%at${next(numbers)}", found["at"], ""
        if found["far"]:
            lines, at = f"  {name}.o = mul i64 {at}, {found['far']}\n", f"{name}.o"
        kind = "i8" if found["bytes"] else found["type"]
        return name, f"{lines}  {name} = getelementptr {kind}, ptr {found['array']}, i64 {at}\n"

    def read(found: re.Match) -> str:
        name, lines = addressed(found)
        return f"{lines}  {found['x']} = load {found['type']}, ptr {name}{found['facts']}"

    def written(found: re.Match) -> str:
        name, lines = addressed(found)
        return f"{lines}  store {found['type']} {found['x']}, ptr {name}{found['facts']}"

    return _WRITTEN.sub(written, _READ.sub(read, text))
