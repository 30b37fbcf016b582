"""The store of the compiled machine on disk: a directory of the user's own, a file for each version of it.

``GRADOPS_CACHE`` in the environment names another directory; ``0`` or ``off`` turns it off. Files are written under
another name and then renamed, so that processes that start together read a whole one or none. A file that is read
is run: it must have the checksum that it begins with, and be writable by the user alone.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import stat
import sys
import tempfile

_OFF = ("0", "off", "no", "false")


def directory() -> pathlib.Path | None:
    """The directory of the cache; None where it is turned off, or there is none for the user."""
    named = os.environ.get("GRADOPS_CACHE", "")
    if named.lower() in _OFF:
        return None
    if named:
        return pathlib.Path(named).expanduser()
    try:
        home = pathlib.Path.home()
    except RuntimeError:
        return None
    if sys.platform == "win32":
        return pathlib.Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "gradops" / "Cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "gradops"
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "gradops"


def read(name: str) -> bytes | None:
    """The contents stored under ``name``; None where there are none, or they are not to be trusted."""
    place = directory()
    if place is None:
        return None
    try:
        with open(place / name, "rb") as file:
            if not _is_own(os.fstat(file.fileno())):
                return None
            stored = file.read()
    except OSError:
        return None
    checksum, contents = stored[:32], stored[32:]
    return contents if hashlib.sha256(contents).digest() == checksum else None


def write(name: str, contents: bytes) -> None:
    """Store ``contents`` under ``name``, where that can be done."""
    place = directory()
    if place is None:
        return
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, written = tempfile.mkstemp(dir=place)  # readable by the user alone
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(contents).digest() + contents)
            os.replace(written, place / name)
        except OSError:
            os.unlink(written)
    except OSError:
        return


def _is_own(status: os.stat_result) -> bool:
    if not hasattr(os, "getuid"):
        return True
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
