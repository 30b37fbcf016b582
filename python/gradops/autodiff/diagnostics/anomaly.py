"""Anomaly mode: names the forward call whose gradient failed, and finds where NaN first appears.

While the mode is on, every recorded operation remembers where it was called, and every step of a
backward pass is checked. While it is off, it costs nothing.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import traceback
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _call_sites, backends
from ...errors import GradientError, Position
from ...ops._checks import check_flags
from .. import state, torch_tape
from ..variable import data_of

_calls: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
_settings = {"on": False, "check_nan": True}


class set_detect_anomaly:
    """Switch anomaly mode on or off for the whole process, torch included; as a scope, until its end.

    Args:
        mode: whether anomaly mode is on.
        check_nan: whether a backward pass also raises an error where a gradient is NaN.

    After ``torch.autograd.set_detect_anomaly``.

    Examples:
        >>> import gradops
        >>> from gradops import autodiff
        >>> x = gradops.Variable(2.0, requires_grad=True)
        >>> with autodiff.set_detect_anomaly(True, check_nan=False):
        ...     (x**2).backward()
        >>> print(x.grad.numpy())
        4.0

    See Also:
        :func:`detect_anomaly`.
    """

    def __init__(self, mode: bool, check_nan: bool = True):
        check_flags("set_detect_anomaly", mode=mode, check_nan=check_nan)
        self._before = dict(_settings)
        self._torch_before = _torch_state()
        self._mode, self._check_nan = bool(mode), bool(check_nan)
        _switch(self._mode, self._check_nan)
        _switch_torch(self._mode, self._check_nan)

    def __enter__(self):
        return self

    def __exit__(self, *error) -> None:
        _switch(self._before["on"], self._before["check_nan"])
        if self._torch_before is not None:
            _switch_torch(*self._torch_before)
        else:
            _switch_torch(False, True)


class detect_anomaly:
    """Scope (or decorator) in which errors and NaN in gradients name their forward call.

    Run both the forward and the backward pass inside. For debugging only: recording is much slower.

    Args:
        check_nan: whether a backward pass raises an error where a gradient is NaN.

    Raises:
        GradientError: (a RuntimeError) a gradient in a backward pass is NaN; the error names the operation, the
            position of its input and the forward call. Other errors in a gradient are raised unchanged, after a
            warning that shows the forward call.

    After ``torch.autograd.detect_anomaly``, whose mode it also turns on.

    Examples:
        The gradient becomes NaN at ``sqrt``: its derivative at 0 is infinite, and 0 times infinity is NaN:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import autodiff, ops
        >>> x = gradops.Variable(0.0, requires_grad=True)
        >>> with autodiff.detect_anomaly(), np.errstate(all="ignore"):
        ...     y = ops.sqrt(x) * 0.0
        ...     try:
        ...         y.backward()
        ...     except gradops.errors.GradientError as error:
        ...         print(str(error).partition(".")[0])
        `sqrt` returned NaN as the gradient of its input 0

    See Also:
        :func:`set_detect_anomaly`, to turn it on permanently; ``gradops.autodiff.profiler.profile``.
    """

    def __init__(self, check_nan: bool = True):
        self._check_nan = check_nan
        self._scopes: list = []

    def __enter__(self):
        self._scopes.append(set_detect_anomaly(True, self._check_nan))
        return self

    def __exit__(self, *error) -> None:
        self._scopes.pop().__exit__(*error)

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with type(self)(self._check_nan):
                return function(*args, **kwargs)

        return wrapped


def is_anomaly_enabled() -> bool:
    """True if anomaly mode is on."""
    return _settings["on"]


def forward_call(node) -> str | None:
    """Return where a node's operation was called; None if anomaly mode was off."""
    found = _calls.get(node)
    if found is None or isinstance(found, str):
        return found
    return "".join(traceback.format_list(found))


def _switch(on: bool, check_nan: bool) -> None:
    _settings.update(on=on, check_nan=check_nan)
    for attached, function in ((state.watchers, _note_call), (state.observers, _observe)):
        if function in attached:
            attached.remove(function)
        if on:
            attached.append(function)


def _torch_state() -> tuple | None:
    torch = torch_tape.loaded()
    if torch is None:
        return None
    return torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()


def _switch_torch(on: bool, check_nan: bool) -> None:
    torch = torch_tape.loaded()
    if torch is None:
        return
    torch.set_anomaly_enabled(on, check_nan)
    if _call_sites.has_host():
        private = importlib.import_module(f"{backends.__name__}.torch._private")
        private.set_stack(_call_sites.host_calls if on else None)


def _note_call(node) -> None:
    described: Any = _call_sites.host_calls()
    if described is None:
        frames = [(frame, frame.f_lineno) for frame in itertools.islice(_call_sites.frames(), 20)]
        described = traceback.StackSummary.extract(reversed(frames), lookup_lines=False)
    _calls[node] = described


def _observe(node, apply):
    try:
        gradients = apply()
    except Exception:
        where = forward_call(node)
        if where is not None:
            warnings.warn(f"Error in the gradient of `{node.name}`. Its forward call:\n{where}", stacklevel=2)
        raise
    if _settings["check_nan"]:
        for i, g in enumerate(gradients):
            if g is not None and _has_nan(g):
                where = forward_call(node)
                shown = f" Its forward call:\n{where}" if where else " Its forward call was outside anomaly mode."
                raise GradientError(
                    f"`{node.name}` returned NaN as the gradient of its input {{i}}.{shown}", i=Position(i)
                )
    return gradients


def _has_nan(g) -> bool:
    if isinstance(g, dict):
        return any(map(_has_nan, g.values()))
    data = data_of(g)
    owner = backends.backend_of(data)
    if owner is None or getattr(data, "dtype", None) is str:
        return False
    try:
        return bool(np.isnan(owner.to_numpy(data)).any())
    except Exception:  # a tracer has no values
        return False
