"""The dtype rule, defined once for all libraries: names, kinds and promotion; and the default float type.

A dtype is identified by its name ("float32"). Two dtypes promote as follows: the wider kind wins
(bool < integer < float < complex), within a kind the wider type; an integer never widens a float.
Python numbers are weak: they take the tensor's dtype unless their kind is wider, and then
``floatx`` (or the complex type of its precision).
"""

from __future__ import annotations

from ._scopes import note_change
from .errors import ArgumentError, Given, meant

BOOL = ("bool",)
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
ALL = BOOL + INTEGERS + FLOATS + COMPLEX

EXTENDED = {"float96": "float64", "float128": "float64", "complex192": "complex128", "complex256": "complex128"}
"""NumPy's extended precision, which no other library has, is computed in double precision."""

_KINDS = {name: rank for rank, names in enumerate((BOOL, INTEGERS, FLOATS, COMPLEX)) for name in names}
_ALIASES = {"float": "float64", "double": "float64", "half": "float16", "int": "int64", "complex": "complex128"}
_ALIASES |= EXTENDED


def kind(name: str) -> int:
    """0 for bool, 1 for integers, 2 for floats, 3 for complex."""
    return _KINDS[name]


def is_floating(name: str) -> bool:
    """True if the dtype is real or complex floating, and so differentiable."""
    return _KINDS.get(name, 0) >= 2


def bits(name: str) -> int:
    return 8 if name == "bool" else int(name.lstrip("abcdefghijklmnopqrstuvwxyz"))


def canonical(dtype, argument: str = "dtype") -> str:
    """The name of a dtype given as a name, a Python type, or any library's dtype object."""
    if isinstance(dtype, str):
        if dtype in _KINDS:
            return dtype
        name = dtype
    elif isinstance(dtype, type) and dtype in (bool, int, float, complex):
        name = dtype.__name__
    else:
        name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    name = name.rpartition(".")[2]
    name = _ALIASES.get(name, name)
    if name not in _KINDS:
        raise ArgumentError(
            f"`{argument}` must be one of {', '.join(ALL)}; got {{given}}.",
            argument=argument,
            hint=meant(name, ALL),
            given=Given(repr(dtype), dtype),
        )
    return name


def promote(first: str, second: str) -> str:
    """The promoted dtype of two tensors.

    ``uint64`` with a signed integer gives ``int64``; ``float16`` with ``bfloat16`` gives ``float32``.
    """
    return _MEETS[first, second]


def _promote(first: str, second: str) -> str:
    if first == second:
        return first
    low, high = sorted((first, second), key=lambda name: (_KINDS[name], bits(name)))
    if _KINDS[low] != _KINDS[high]:
        if high == "complex64" and low == "float64":
            return "complex128"
        return high
    if _KINDS[high] == 2:
        return "float32" if bits(low) == bits(high) == 16 else high
    if _KINDS[high] == 1 and (low[0] == "u") != (high[0] == "u"):
        unsigned, signed = (low, high) if low[0] == "u" else (high, low)
        return signed if bits(signed) > bits(unsigned) else f"int{min(64, 2 * bits(unsigned))}"
    return high


def promote_number(name: str, number: type, floatx: str) -> str:
    """The promoted dtype of a tensor of dtype ``name`` and a Python number of type ``number``."""
    return _MEETS_NUMBER[number][name, floatx]


def _promote_number(name: str, number: type, floatx: str) -> str:
    wanted = {bool: 0, int: 1, float: 2, complex: 3}[number]
    have = _KINDS[name]
    if wanted <= have:
        return name
    if wanted == 1:
        return "int64"
    if wanted == 2:
        return floatx
    return complex_of(name if have == 2 else floatx)


def complex_of(name: str) -> str:
    """The complex dtype with the precision of a real dtype."""
    return "complex128" if name in ("float64", "complex128") else "complex64"


def real_of(name: str) -> str:
    """The dtype of a complex dtype's parts; a real dtype unchanged."""
    return {"complex64": "float32", "complex128": "float64"}.get(name, name)


_TAKEN_AS = {name: name for name in ALL} | EXTENDED
_MEETS = {(x, y): _promote(first, second) for x, first in _TAKEN_AS.items() for y, second in _TAKEN_AS.items()}
_MEETS_NUMBER: dict[type, dict[tuple[str, str], str]] = {
    number: {
        (x, default): _promote_number(name, number, default) for x, name in _TAKEN_AS.items() for default in FLOATS
    }
    for number in (bool, int, float, complex)
}
"""Tables, because Dynamo cannot read a cache; a single table with types as keys would get a guard for each key."""


# Settings: the default float type, and the small number in normalisations ---------------------------------------------


_settings: dict = {"floatx": "float64", "epsilon": 1e-7}


def floatx() -> str:
    """The dtype of numbers without a dtype of their own: ``"float64"`` unless set otherwise.

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
    note_change()


def epsilon() -> float:
    """The small number that normalisations and losses add by default: 1e-7.

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
    note_change()
