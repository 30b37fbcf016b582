"""The gaps of older versions of the libraries: said where a test asks for it, in docs/versions.md for users."""

from __future__ import annotations

import re
from importlib import metadata

import pytest


def numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)[:3]]


def older(library: str, than: str) -> bool:
    """True if a library is there in a version before ``than``."""
    try:
        return numbers(metadata.version(library)) < numbers(than)
    except metadata.PackageNotFoundError:
        return False


ONE_GRAPH = not older("torch", "2.12")
"""True if ``torch.compile`` keeps a custom gradient in one graph; before, it breaks the graph there."""


def needs(library: str, since: str, reason: str) -> None:
    """Skip a test on a version that lacks something."""
    if older(library, since):
        pytest.skip(f"{library} before {since}: {reason}")
