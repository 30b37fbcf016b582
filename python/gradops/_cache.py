"""Store compiled code on disk, load it, and detect code that crashed an earlier process.

:mod:`gradops.jit.native.machine` stores the compiled interpreter and further functions here, and :mod:`._bytecode` the
bytecode of modules, if Python cannot.

The environment variable ``GRADOPS_CACHE`` names the folder; ``0`` or ``off`` turns the cache off. The default is the
platform's cache folder. R sets the variable to ``tools::R_user_dir("gradops", "cache")``.

Stored code is executed, so the folder and its files must belong to the user, must not be writable by others, and must
not be links. Each file begins with a checksum of the rest. Files are written under a temporary name and then renamed,
so processes that start at the same time read a complete file or none.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import stat
import sys
import tempfile
import time
from collections.abc import Iterator

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_OFF = ("0", "off", "no", "false")
OUTDATED = 180 * 86_400
"""The age in seconds at which a write removes a file; it belongs to an older version, or will be compiled again."""


def directory() -> pathlib.Path | None:
    """Return the cache folder, or None if the cache is off or the user has no folder for it."""
    named = os.environ.get("GRADOPS_CACHE", "")
    if named.lower() in _OFF:
        return None
    try:
        if named:
            return pathlib.Path(named).expanduser()
        home = pathlib.Path.home()
    except RuntimeError:
        return None
    if os.environ.get("HOME") == "" or not home.is_absolute():
        return None  # an empty or relative home would mean the root or the working directory
    if sys.platform == "win32":
        return _absolute("LOCALAPPDATA", home / "AppData" / "Local") / "gradops" / "Cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "gradops"
    return _absolute("XDG_CACHE_HOME", home / ".cache") / "gradops"


def _absolute(variable: str, default: pathlib.Path) -> pathlib.Path:
    """Return the folder that a variable names; relative paths are ignored, as the XDG standard requires."""
    named = pathlib.Path(os.environ.get(variable, ""))
    return named if named.is_absolute() else default


def read(name: str) -> bytes | None:
    """Return the contents stored under ``name``, or None if they are missing or not trusted."""
    place = _own_directory()
    if place is None:
        return None
    try:
        # Opening a pipe would block until its other end opens. Windows lacks the first two flags, but needs O_BINARY.
        flags = os.O_RDONLY | sum(getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
        with open(os.open(place / name, flags), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or not _is_own(status):
                return None
            stored = file.read()
    except OSError:
        return None
    checksum, contents = stored[:32], stored[32:]
    return contents if hashlib.sha256(contents).digest() == checksum else None


def write(name: str, contents: bytes) -> None:
    """Store ``contents`` under ``name`` and remove outdated files; do nothing if the folder cannot be used."""
    place = _own_directory(make=True)
    if place is None:
        return
    with contextlib.suppress(OSError):
        handle, written = tempfile.mkstemp(dir=place)  # readable only by the user
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(contents).digest() + contents)
            os.replace(written, place / name)
        except OSError:
            os.unlink(written)
            return
        for other in place.glob(f"{name.partition('-')[0]}-*"):
            if os.lstat(other).st_mtime < time.time() - OUTDATED:
                os.unlink(other)


def own_folder(name: str) -> pathlib.Path | None:
    """Return the folder ``name`` inside the cache folder, made if missing; None if it cannot be made or trusted."""
    place = _own_directory(make=True)
    return None if place is None else _trusted(place / name, make=True)


def remove(name: str) -> None:
    """Remove what is stored under ``name``."""
    place = _own_directory()
    if place is not None:
        with contextlib.suppress(OSError):
            os.unlink(place / name)


@contextlib.contextmanager
def attempt(name: str) -> Iterator[bool]:
    """Mark a scope in which the code stored under ``name`` runs for the first time, and may crash the process.

    Yields:
        True if an earlier process crashed in such a scope. Other processes then wait until this process has left it.
    """
    handle = _marker(f"{name}.trying")
    if handle is None:
        yield False
        return
    # A process holds a lock on the marker file for as long as it is in the scope, and the system releases the lock if
    # the process dies. So a nonempty marker without a lock was left by a crash, and live processes are not mistaken for
    # crashed ones.
    try:
        _lock(handle)
        is_left = os.fstat(handle).st_size > 0 and _is_alone(handle)
        os.write(handle, b"1")
        yield is_left
    finally:  # an exception is not a crash
        is_last = _is_alone(handle)
        if is_last:
            os.ftruncate(handle, 0)
        os.close(handle)
        if is_last:
            remove(f"{name}.trying")


def _marker(name: str) -> int | None:
    """Open a marker file for writing; return None if that fails."""
    place = _own_directory(make=True)
    if place is None:
        return None
    try:
        return os.open(place / name, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except OSError:
        return None


def _lock(handle: int) -> None:
    if fcntl is not None:
        with contextlib.suppress(OSError):  # file systems without locks
            fcntl.flock(handle, fcntl.LOCK_SH)


def _is_alone(handle: int) -> bool:
    """Return True if no other process has locked a file, and then lock it exclusively; True without locks."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        _lock(handle)
        return False
    except OSError:
        return True
    return True


def _own_directory(make: bool = False) -> pathlib.Path | None:
    """Return the cache folder, or None if it is missing, a link, owned by others, or writable by others.

    Args:
        make: create the folder if it is missing.
    """
    place = directory()
    return None if place is None else _trusted(place, make)


def _trusted(place: pathlib.Path, make: bool) -> pathlib.Path | None:
    try:
        if make:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = os.lstat(place)
    except OSError:
        return None
    return place if stat.S_ISDIR(status.st_mode) and _is_own(status) else None


def _is_own(status: os.stat_result) -> bool:
    if not hasattr(os, "getuid"):
        return True
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
