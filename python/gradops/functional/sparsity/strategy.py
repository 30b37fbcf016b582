"""How the elements of a Hessian are computed."""

from __future__ import annotations

from typing import Any

from .patterns import Found
from .separable import AffineParts, SeparableHessian, may_pay


def hessian_plan(found: Found | None = None, parts: AffineParts | None = None) -> Any:
    """Choose how the elements of a Hessian are computed.

    1. Partial separability, where a function takes its argument through affine maps and this saves products: asked
       first, with ``parts`` alone, as it needs no pattern of the Hessian.
    2. Products for the colours of a star colouring, where the Hessian is symmetric.
    3. Products for the colours of its columns, where a derivative of the user's own may make it unsymmetric.

    A dense Hessian is a pattern of all elements, in which each column has a colour of its own: on libraries other than
    NumPy, which do not say what depends on what.

    Args:
        found: the pattern, and whether the Hessian is symmetric.
        parts: the affine maps.

    Returns:
        A :class:`Plan`; with ``parts`` a :class:`SeparableHessian`, or None where that does not pay.
    """
    if parts is not None:
        if not parts.ends or not may_pay(maps := parts.pattern()):
            return None
        separable = SeparableHessian(maps, parts.pattern_by_ends())
        return separable if separable.pays else None
    assert found is not None
    return found.star_plan if found.natural else found.column_plan
