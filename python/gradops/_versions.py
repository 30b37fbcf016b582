"""Versions, processor, backends and settings, for reports of errors."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import pathlib
import platform
import sys

from . import _cache, backends, config, dtypes
from ._version import __version__
from .jit.native import machine

__all__ = ["show_versions"]

_BESIDE = ("jaxlib", "keras", "rpy2")
"""Packages that are listed only if they are installed."""


def show_versions() -> None:
    """Print what a report of an error needs: versions, processor, backends, native code, cache folder and settings.

    Libraries that are not imported yet are not imported for it. ``python -m gradops`` prints the same.

    Examples:
        >>> import gradops
        >>> gradops.show_versions()  # doctest: +ELLIPSIS
        gradops      ...

    See Also:
        :mod:`gradops.config`; R's ``gradops_sitrep()``.
    """
    found = facts()
    width = max(map(len, found))
    for name, value in found.items():
        print(f"{name:<{width}}  {value}")


def facts() -> dict[str, str]:
    """Return what :func:`show_versions` prints, by name."""
    found = {
        "gradops": f"{__version__} ({pathlib.Path(__file__).parent})",
        "Python": f"{platform.python_version()} ({sys.executable})",
        "platform": platform.platform(),
        "processor": f"{machine.processor() or platform.processor() or platform.machine()}, {os.cpu_count()} cores",
    }
    found |= {name: _backend(name) for name in backends.NAMES}
    found |= {name: _version(name) or "not installed" for name in ("scipy", "llvmlite")}
    found |= {name: version for name in _BESIDE if (version := _version(name))}
    native = machine.machine()
    found["native code"] = f"no: {machine.why_not()}" if native is None else "yes"
    if native is not None and not native.compiles:
        found["native code"] = f"yes, but loops are not compiled: {machine.why_not()}"
    found["cache folder"] = str(_cache.directory() or "none: compiled code is not stored")
    found["settings"] = f"backend {config.backend()}, floatx {dtypes.floatx()}, check {config.check()}"
    found |= {name: value for name, value in sorted(os.environ.items()) if name.startswith("GRADOPS_")}
    return found


def _backend(name: str) -> str:
    if not backends.installed(name):
        return "not installed"
    version = _version(name) or "of an unknown version"
    return version if backends.is_tested(name, version) else f"{version}, older than {backends.OLDEST[name]}"


def _version(module: str) -> str | None:
    """Return the version of the installed package that has a module, also of one with another name; None without one.

    One such package is ``tensorflow-cpu``.
    """
    try:
        return importlib.metadata.version(module)
    except importlib.metadata.PackageNotFoundError:
        if importlib.util.find_spec(module) is None:
            return None
    names = importlib.metadata.packages_distributions().get(module)  # reads the file lists of all packages: 0.2 s
    return importlib.metadata.version(names[0]) if names else None
