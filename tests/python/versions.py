"""Gaps of older library versions: skipped in tests here, described for users in docs/versions.md."""

from __future__ import annotations

import re
from importlib import metadata

import pytest


def numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)[:3]]


def older(library: str, than: str) -> bool:
    """Return True if a library is installed in a version before ``than``."""
    try:
        return numbers(metadata.version(library)) < numbers(than)
    except metadata.PackageNotFoundError:
        return False


ONE_GRAPH = not older("torch", "2.12")
"""True if ``torch.compile`` keeps a custom gradient in one graph; earlier versions break the graph there."""


def needs(library: str, since: str, reason: str) -> None:
    """Skip a test on versions that lack a feature."""
    if older(library, since):
        pytest.skip(f"{library} before {since}: {reason}")
