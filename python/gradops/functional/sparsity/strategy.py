"""The decision on how the elements of a Hessian are computed, for all callers."""

from __future__ import annotations

from typing import Any

from .patterns import Found
from .separable import AffineParts, SeparableHessian, may_pay


def hessian_plan(found: Found | None = None, parts: AffineParts | None = None) -> Any:
    """Choose how the elements of a Hessian are computed.

    1. Partial separability, if the function uses its argument through affine maps and this saves products. It is tried
       first, with ``parts`` alone, as it needs no pattern of the Hessian.
    2. Products for the colours of a star colouring, if the Hessian is symmetric.
    3. Products for the colours of its columns, if a custom derivative may make the Hessian unsymmetric.

    A dense Hessian has a pattern of all elements, so each column has its own colour. This is the case on libraries
    other than NumPy, where dependences are not known.

    Args:
        found: the pattern, and whether the Hessian is symmetric.
        parts: the affine maps.

    Returns:
        A :class:`Plan`; with ``parts`` a :class:`SeparableHessian`, or None if it does not pay.
    """
    if parts is not None:
        if not parts.ends or not may_pay(maps := parts.pattern()):
            return None
        separable = SeparableHessian(maps, parts.pattern_by_ends())
        return separable if separable.pays else None
    assert found is not None
    return found.star_plan if found.natural else found.column_plan
