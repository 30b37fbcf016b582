"""Lookup of a library's private names, done once; a name that a version lacks raises an error only where it is needed.

Each library's ``_private.py`` lists, by feature, all private names that gradops uses and is the only file that touches
them. tests/python/test_private.py fails on a library version that lacks one.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from ..errors import BackendError


class PrivateNames:
    """The private names of one library.

    Attributes:
        names: the dotted names that each feature needs.
        lacking: the names that this version does not have, by feature.
    """

    def __init__(self, library: str, version: str):
        self.library = library
        self.version = version
        self.names: dict[str, list[str]] = {}
        self.lacking: dict[str, list[str]] = {}

    def supported(self, feature: str) -> bool:
        """True if this version has all names that a feature needs."""
        return not self.lacking.get(feature)

    def find(self, feature: str, path: str, otherwise: Any = None) -> Any:
        """The object at a dotted path.

        Args:
            otherwise: returned if there is no such object; by default a function that raises a BackendError.
        """
        self.names.setdefault(feature, []).append(path)
        found = resolve(path)
        if found is not None:
            return found
        self.lacking.setdefault(feature, []).append(path)
        return self._absent(feature) if otherwise is None else otherwise

    def need(self, feature: str, hint: str | None = None) -> None:
        """Raise if this version lacks a name that a feature needs.

        Raises:
            BackendError: names the version and the missing names.
        """
        if not self.supported(feature):
            lacks = ", ".join(self.lacking[feature])
            raise BackendError(
                f"{feature} does not work with {self.library} {self.version}, which lacks {lacks}.", hint=hint
            )

    def attribute(self, feature: str, path: str, of_objects: bool = False) -> Callable:
        """A function that reads the attribute at the end of a path ``module.Class.attribute``.

        Args:
            of_objects: True if only instances have the attribute, so it can be checked only when it is read.
        """
        name = path.rpartition(".")[2]
        if not of_objects:
            found = self.find(feature, path, False)
            return attrgetter(name) if found is not False else self._absent(feature)
        self.names.setdefault(feature, []).append(path)

        def read(value):
            try:
                return getattr(value, name)
            except AttributeError:
                self.lacking.setdefault(feature, []).append(path)
                return self.need(feature)

        return read

    def _absent(self, feature: str) -> Callable:
        def absent(*_, **__):
            self.need(feature)

        return absent


def resolve(path: str) -> Any:
    """The object at a dotted path ``module.name``; None if it does not exist."""
    module, _, rest = path.partition(".")
    try:
        found = importlib.import_module(module)
        for name in rest.split(".") if rest else ():
            module = f"{module}.{name}"
            found = getattr(found, name) if hasattr(found, name) else importlib.import_module(module)
        return found
    except (ImportError, AttributeError):
        return None
