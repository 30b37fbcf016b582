"""Smooth squares of lengths: ``norm(x)**2``, ``hypot(a, b)**2`` and ``abs(x)**2``, although a length has a kink at 0.

At the kink the chain rule for the second derivative is 0 times infinity. So the square of a length is recorded as the
sum of squares under the length's root: :func:`smooth_square` and :func:`smooth_product` recognise squares of lengths in
the recorded graph, through a few scalings, and attach the result to that sum.
"""

from __future__ import annotations

import math
from typing import Any

from ..errors import GradientError
from ..ops import elementwise, indexing, reductions
from ..ops._registry import registry, rule, rule_of
from .engine import rejoin
from .graph import ALIAS, RESULT, Node
from .state import Packed, check_versions, written
from .variable import Variable, attach_new

_MAX_DEPTH = 5
"""The largest number of operations between a length and its square for which the square is recognised."""


def smooth_square(length: Variable, result: Variable) -> Variable:
    """``result``, the recorded square of ``length``, attached to the sum of squares if one is known."""
    node = length._node
    if node is None or result._node is None or not _leads_to_length(node):
        return result
    return _recorded_as(_squares(node, _MAX_DEPTH), result)


def smooth_product(first: Node, second: Node, result: Variable) -> Variable:
    """``result``, the recorded product of two nodes' results, attached likewise if it is a multiple of a square.

    One node equals the other, computes the same value, or is a multiple of it, as in ``-y * y``.
    """
    if not _leads_to_length(first if second.edges[0] is first else second):
        return result
    if _is_same(first, second, _MAX_DEPTH):
        return _recorded_as(_squares(first, _MAX_DEPTH) if _is_saved(second) else None, result)
    for factor, length in ((first, second), (second, first)):
        if rule_of("squares", factor.rule.name) is _product_squares and _is_saved(factor):
            for edge, operate in _operands(factor):
                squares = _squares(length, _MAX_DEPTH) if edge is length else None
                if squares is not None:
                    return _recorded_as(operate(squares, lambda x: x), result)
    return result


def _leads_to_length(node, depth: int = _MAX_DEPTH) -> bool:
    """True if a node may be a length, judged by op names only: squares are frequent, and most are not of lengths."""
    if node.__class__ is not Node or not depth:
        return False
    find = rule_of("squares", node.rule.name)
    if find is _product_squares:
        first, *others = node.edges
        if _leads_to_length(first, depth - 1):
            return True
        return bool(others) and others[0] is not first and _leads_to_length(others[0], depth - 1)
    if find is _moved_squares or find is _singleton_squares:
        return _leads_to_length(node.edges[0], depth - 1)
    return find is not None


def _recorded_as(smooth, result: Variable) -> Variable:
    return result if smooth is None else attach_new(result._value, ALIAS, (smooth._node,), ())


def _is_same(first, second, depth: int) -> bool:
    """True if two nodes have the same result: they are identical, or both are ``abs(x)`` of the same ``x``."""
    if first is second:
        return True
    if not (first.__class__ is second.__class__ is Node and depth) or first.rule is not second.rule:
        return False
    if not (_is_saved(first) and _is_saved(second)):
        return False
    settings = [
        (a, b) for a, b, slot in zip(first.saved, second.saved, first.rule.slots) if slot is None and a is not b
    ]  # values with a slot belong to the edges
    return (
        rule_of("squares", first.rule.name) is not None
        and all(_is_same(a, b, depth - 1) for a, b in zip(first.edges, second.edges))
        and all(_is_equal(a, b) for a, b in settings)
    )


def _is_equal(a, b) -> bool:
    if type(a) is tuple and type(b) is tuple:
        return len(a) == len(b) and all(map(_is_equal, a, b))
    return a is b or isinstance(a, (int, float, slice)) and type(a) is type(b) and a == b


def _squares(node, depth: int) -> Any:
    """The squares of a node's result, recorded without a kink; None if the result is not known to be a length."""
    find = rule_of("squares", node.rule.name) if node.__class__ is Node and depth else None
    return None if find is None or not _is_saved(node) else find(node, depth - 1)


def _is_saved(node: Node) -> bool:
    """True if a node has its saved values, and these have not been written since then."""
    if node.saved is None or node.saved.__class__ is Packed or not node.rule.slots:
        return False
    if written:
        try:
            check_versions(node)
        except GradientError:  # a backward pass will raise it
            return False
    return True


@rule("squares", "where")
def _root_squares(node: Node, depth: int):
    """See :func:`gradops.ops.reductions.root`: ``where(zero, kink(x, zero), sqrt(where(zero, 1, squares)))``."""
    _, kink, root = node.edges
    if not (kink.__class__ is root.__class__ is Node) or (kink.rule.name, root.rule.name) != ("kink", "sqrt"):
        return None
    if not _is_saved(root):
        return None
    zero, squares = node.saved[0], root.edges[0].edges[2]
    data = indexing.where(zero, 0.0, elementwise.square(root.saved[RESULT]))
    return attach_new(data, ALIAS, (squares,), ())


@rule("squares", "abs")
def _abs_squares(node: Node, depth: int):
    return reductions.squared(rejoin(node, node.saved)[0])


@rule("squares", "hypot")
def _hypot_squares(node: Node, depth: int):
    first, second = rejoin(node, node.saved)[:2]
    return first * first + second * second


@rule("squares", "cast", "copy", "real", "reshape", "squeeze", "expand_dims", "get_item", "transpose", "swapaxes")
def _moved_squares(node: Node, depth: int):
    squares = _squares(node.edges[0], depth)
    return None if squares is None else registry[node.rule.name].call(squares, *node.saved[1:-1])


@rule("squares", "sum")
def _singleton_squares(node: Node, depth: int):
    """Squares of sums over dimensions of size 1."""
    return _moved_squares(node, depth) if math.prod(node.edges[0].shape) == math.prod(node.shape) else None


@rule("squares", "multiply", "divide", "negative")
def _product_squares(node: Node, depth: int):
    for edge, operate in _operands(node):
        squares = _squares(edge, depth)
        if squares is not None:
            return operate(squares, lambda x: x * x)
    return None


def _operands(node: Node):
    """Yield the factors of a node's result, each with a function ``(product, power)`` that puts a product in its place.

    ``power`` is applied to the other factor.
    """
    name = node.rule.name
    if name == "negative":
        yield node.edges[0], lambda product, power: product * power(-1.0)
        return
    seen = None
    for i in (0, 1) if name == "multiply" else (0,):
        slot = node.rule.slots[i]
        if slot is None or node.edges[slot] is None or node.edges[slot] is seen:
            continue
        seen = node.edges[slot]

        def operate(product, power, i=i):
            return getattr(elementwise, name)(product, power(rejoin(node, node.saved)[1 - i]))

        yield seen, operate
