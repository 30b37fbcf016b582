"""Store the bytecode of gradops' modules in the cache folder, if Python cannot store it next to their sources.

R installs the sources without bytecode, as it does not know the user's Python. In a library that the user may not write
to, Python would compile them in each process, which takes most of a second.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys

from . import _cache


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a module as Python does, with its bytecode below ``folder``."""

    folder = ""

    def get_code(self, fullname: str):
        before, sys.pycache_prefix = sys.pycache_prefix, self.folder
        try:
            return super().get_code(fullname)
        finally:
            sys.pycache_prefix = before


def install(root: str) -> None:
    """Load the modules in the folder ``root`` with this loader, if there is a trusted cache folder."""
    folder = _cache.own_folder("bytecode")
    if folder is None:
        return
    loader = type("_Loader", (_Loader,), {"folder": str(folder)})
    find = importlib.machinery.FileFinder.path_hook((loader, importlib.machinery.SOURCE_SUFFIXES))

    def hook(path: str):
        if path != root and not path.startswith(root + os.sep):
            raise ImportError
        return find(path)

    sys.path_hooks.insert(0, hook)
    sys.path_importer_cache.pop(root, None)


if not sys.dont_write_bytecode:
    install(os.path.dirname(__file__))
