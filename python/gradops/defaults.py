"""The default float type and the small number of normalisations: settings that need no backend."""

from __future__ import annotations

from .errors import ArgumentError, Given, meant

FLOATS = ("bfloat16", "float16", "float32", "float64")

_settings: dict = {"floatx": "float64", "epsilon": 1e-7}


def floatx() -> str:
    """The dtype of numbers without one of their own: ``"float64"`` unless set otherwise.

    Examples:
        >>> from gradops import config
        >>> config.floatx()
        'float64'

    See Also:
        :func:`set_floatx`, :func:`epsilon`.
    """
    return _settings["floatx"]


def set_floatx(dtype: str) -> None:
    """Set the default float type: one of ``"float16"``, ``"bfloat16"``, ``"float32"``, ``"float64"``.

    Raises:
        ArgumentError: any other dtype.

    Examples:
        >>> import gradops
        >>> gradops.config.set_floatx("float32")
        >>> print(gradops.grad(lambda x: x**2)(3.0).dtype)
        float32
        >>> gradops.config.set_floatx("float64")

    See Also:
        :func:`floatx`.
    """
    if not isinstance(dtype, str) or dtype not in FLOATS:
        raise ArgumentError(
            f"`dtype` must be one of {', '.join(FLOATS)}; got {{given}}.",
            argument="dtype",
            hint=meant(dtype, FLOATS),
            given=Given(repr(dtype), dtype),
        )
    _settings["floatx"] = dtype


def epsilon() -> float:
    """The small number that normalisations and losses add where nothing else is given: 1e-7.

    Examples:
        >>> from gradops import config
        >>> config.epsilon()
        1e-07

    See Also:
        :func:`set_epsilon`, :func:`floatx`.
    """
    return _settings["epsilon"]


def set_epsilon(value: float) -> None:
    """Set :func:`epsilon`.

    Raises:
        ArgumentError: a value that is not a positive number.

    Examples:
        >>> from gradops import config
        >>> config.set_epsilon(1e-6)
        >>> config.epsilon()
        1e-06
        >>> config.set_epsilon(1e-7)

    See Also:
        :func:`epsilon`.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise ArgumentError(
            "`value` must be a positive number; got {value}.", argument="value", value=Given(repr(value), value)
        )
    _settings["epsilon"] = float(value)
