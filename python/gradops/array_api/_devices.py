"""Devices of arrays of four libraries: a device also selects the library of a new array."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, NamedTuple

import numpy as np

from .. import backends, config, ops
from .._tree import map_items
from ..autodiff import inplace, to_backend
from ..autodiff.variable import Variable
from ..errors import ArgumentError, ArgumentTypeError, TypeOf
from ..ops.numpy_functions import is_ours

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")


class Device(NamedTuple):
    """The device of a variable; arrays created on it are variables of the same library."""

    library: str
    place: Any


def device_of(x) -> Any:
    """An array's device: its library's, or a :class:`Device` for gradops' own arrays."""
    if not is_ours(x):
        return getattr(x, "device", "cpu")
    inner = x.data if isinstance(x, Variable) else x.value
    return device_of(inner) if is_ours(inner) else Device(backends.backend_of(inner).name, device_of(inner))


def _library_of(device) -> str:
    if isinstance(device, Device):
        return device.library
    found = backends.device_backend(device)
    return config.backend() if found is None else found.name


def checked(device):
    """Return ``device``, which may be any hashable object.

    Raises:
        ArgumentTypeError: an array, or a list.
    """
    try:
        hash(device)
    except TypeError:
        raise ArgumentTypeError(
            "`device` must be a device as `x.device` is, or its name; got {device}.",
            argument="device",
            device=TypeOf(device),
        ) from None
    return device


def made_at(device, make, *arguments, **keywords):
    """A new array of the library and on the device of ``device``; None selects the defaults."""
    if checked(device) is None:
        made = make(*arguments, **keywords)
        return inplace.taking(made)
    library = _library_of(device)
    place = device.place if isinstance(device, Device) else device
    with config.backend_scope(library) if library != config.backend() else contextlib.nullcontext():
        made = to_backend(make(*arguments, **keywords), library)
    made = made if device_of(made) == place else to_backend(made, library, place)
    made = inplace.taking(made)
    return inplace.fillable(made) if isinstance(device, Device) and not is_ours(made) else made


def to_device(x, device, /, *, stream=None):
    """An array on a device of its library; ``x`` itself if it is already there.

    Args:
        device: a device such as ``x.device``, or its name.
        stream: None; other streams raise an error.

    Raises:
        ArgumentError: a ``stream``. ArgumentTypeError: ``device`` is not a device.
        GradientError: another device for a variable that requires a gradient.
    """
    if stream is not None:
        raise ArgumentError("`to_device`: `stream` must be {None}.", argument="stream")
    if checked(device) is None or device_of(x) == device:
        return x
    data = x.data if isinstance(x, Variable) else x
    place = device.place if isinstance(device, Device) else device
    if device_of(data) == place:
        return x
    moved = to_backend(x, backends.backend_of(data).name, place)
    return Variable(moved) if isinstance(x, Variable) else moved


def kept(x, result):
    """Results with NumPy arrays, from rows that only see values, converted to arrays of the kind of ``x``."""
    if isinstance(x, (np.ndarray, np.generic)) or not (is_ours(x) or ops.is_tensor(x)):
        return result
    return map_items(lambda part: _like(part, x) if isinstance(part, (np.ndarray, np.generic)) else part, result)


def _like(part, x):
    if isinstance(x, Variable):
        return Variable(_like(part, x.data))
    return inplace.taking(np.asarray(part)) if is_ours(x) else backends.backend_of(x).convert(part, None, x)


def array_namespace(api_version: str | None):
    """Return :mod:`gradops.array_api`, the namespace of the functions that accept gradops' own arrays.

    Raises:
        ValueError: an unsupported version of the standard.
    """
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(f"`api_version` must be one of {', '.join(VERSIONS)}; got {api_version!r}.")
    return sys.modules[__package__]


def call(name: str, *arguments, **keywords) -> Any:
    """Call a function of this module by its name; arrays have it for their members, see ``ops/operators.py``."""
    return globals()[name](*arguments, **keywords)
