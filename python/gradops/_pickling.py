"""How what a decorator made is pickled: by its name where a module has it under that, else by what it was made of."""

from __future__ import annotations

import sys


def name_of(x) -> str | None:
    """The name by which pickle finds ``x`` in its module.

    None where it is not there, and in a script that is run, which another process cannot import.
    """
    module, name = getattr(x, "__module__", "__main__"), getattr(x, "__qualname__", "")
    if module == "__main__":
        return None
    found = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return name if found is x else None
