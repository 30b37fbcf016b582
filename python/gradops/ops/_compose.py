"""What composed ops share: the dtype rule applied by hand."""

from __future__ import annotations

from .. import config, dtypes
from .conversion import cast, dtype

NUMBERS = (bool, int, float, complex)


def as_float(x):
    """``x`` if floating or complex, else cast to ``floatx``."""
    return x if dtypes.is_floating(dtype(x)) else cast(x, config.floatx())


def promoted(*xs, floating: bool = False) -> list:
    """Operands as tensors of their promoted dtype, of a floating one with ``floating``.

    Python numbers stay weak.
    """
    found = None
    for x in xs:
        if type(x) not in NUMBERS:
            found = dtype(x) if found is None else dtypes.promote(found, dtype(x))
    for x in xs:
        if type(x) in NUMBERS:
            found = dtypes.promote_number(found or "bool", type(x), config.floatx())
    if floating and not dtypes.is_floating(found):
        found = config.floatx()
    return [cast(x, found) if dtype(x) != found or type(x) in NUMBERS else x for x in xs]


def is_complex(x) -> bool:
    """Whether ``x`` has a complex dtype."""
    return dtype(x) in dtypes.COMPLEX
