"""Rearranging by named dimensions: einops' patterns (Rogozhnikov 2022), implemented with shape ops."""

from __future__ import annotations

import re

from ..annotations import Tensor
from ..errors import ArgumentError, ShapeError
from ._checks import integer
from ._dispatch import op
from .joining import stack
from .properties import shape
from .properties import unknown as _is_unknown
from .shaping import reshape, transpose

__family__ = """Order of dimensions."""

_TOKEN = re.compile(r"\s*(\.\.\.|[()]|[^\s().]+|\.+)")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")


def _wrong(pattern: str, reason: str) -> ArgumentError:
    return ArgumentError(f"`rearrange`: the pattern {pattern!r} {reason}.", argument="pattern")


def _side(text: str, pattern: str) -> list[list[str]]:
    """Parse one side of a pattern: for each dimension, the names of its parts."""
    groups: list[list[str]] = []
    inside: list[str] | None = None
    for token in _TOKEN.findall(text):
        if token == "(":
            if inside is not None:
                raise _wrong(pattern, "has parentheses inside parentheses")
            inside = []
        elif token == ")":
            if inside is None:
                raise _wrong(pattern, "closes a parenthesis that is not open")
            groups.append(inside)
            inside = None
        elif token == "1":
            if inside is None:
                groups.append([])
        elif token == "..." or _NAME.match(token) and not token.endswith("_"):
            if inside is None:
                groups.append([token])
            else:
                inside.append(token)
        elif token.isdigit():
            raise _wrong(pattern, f"has the number {token}: only 1 may stand for a dimension, others need a name")
        elif set(token) == {"."}:
            raise _wrong(pattern, f"has {token!r}; an ellipsis is three dots")
        else:
            raise _wrong(pattern, f"has {token!r}, which is no name (letters, digits and _, a letter first)")
    if inside is not None:
        raise _wrong(pattern, "does not close a parenthesis")
    names = [name for group in groups for name in group]
    for name in names:
        if names.count(name) > 1:
            raise _wrong(pattern, f"has {name!r} twice on one side")
    return groups


def _parse(pattern: str) -> tuple[list[list[str]], list[list[str]]]:
    found = _parsed.get(pattern) if isinstance(pattern, str) else None
    if found is None:
        found = _read(pattern)
        if len(_parsed) < 512:
            _parsed[pattern] = found
    return found


_parsed: dict[str, tuple] = {}


def _read(pattern: str) -> tuple[list[list[str]], list[list[str]]]:
    if not isinstance(pattern, str) or pattern.count("->") != 1:
        raise _wrong(pattern, "must have one '->' between what comes in and what goes out")
    left, right = (_side(text, pattern) for text in pattern.split("->"))
    here, there = ({name for group in side for name in group} for side in (left, right))
    if here != there:
        lost, new = sorted(here - there), sorted(there - here)
        verbs = ("loses", lost), ("makes up", new)
        said = [f"{verb} {', '.join(map(repr, names))}" for verb, names in verbs if names]
        raise _wrong(pattern, f"{' and '.join(said)}: both sides must name the same dimensions")
    if ["..."] not in left and "..." in here:
        raise _wrong(pattern, "has '...' in parentheses on the left, where its dimensions are not to be told apart")
    return left, right


def _sizes(pattern: str, left, shape: tuple, given: dict) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return the size of each named dimension, and the names that replace the ellipsis."""
    open_ended = ["..."] in left
    extra = len(shape) - len(left) + open_ended
    if extra < 0 or extra and not open_ended:
        wanted = f"at least {len(left) - 1}" if open_ended else str(len(left))
        raise ShapeError(
            f"`rearrange`: the pattern {pattern!r} needs {wanted} dimensions; the tensor's shape is {shape}.",
            argument="tensor",
        )
    filler = tuple(f"...{i}" for i in range(extra))
    spelt: list[list[str]] = []
    for group in left:
        spelt.extend([name] for name in filler) if group == ["..."] else spelt.append(group)
    sizes = {name: integer("rearrange", value, name) for name, value in given.items()}
    alone = sum(map(_is_unknown, shape)) == 1  # a wrong size then shows as a wrong number of elements
    for group, size in zip(spelt, shape):
        unknown = [name for name in group if name not in sizes]
        product = 1
        for name in group:
            product *= sizes.get(name, 1)
        if len(unknown) > 1:
            raise ArgumentError(
                f"`rearrange`: the pattern {pattern!r} leaves the sizes of {', '.join(map(repr, unknown))} open: all "
                "but one must be given.",
                argument="axes_lengths",
            )
        text = f"({' '.join(group)})" if len(group) > 1 else "".join(group) or "1"
        if unknown and not _is_unknown(size) and (not product or size % product):
            raise ShapeError(
                f"`rearrange`: {product} does not divide the dimension {text} of {size} in {pattern!r}.",
                argument="tensor",
            )
        if not unknown and not (_is_unknown(size) and alone) and product != size:
            raise ShapeError(
                f"`rearrange`: the dimension {text} of {pattern!r} must be {product}; the tensor's shape is {shape}.",
                argument="tensor",
            )
        if unknown:
            sizes[unknown[0]] = size // product
    return sizes, filler


@op(name="rearrange", linear=("tensor",))
def _rearrange(tensor: Tensor, pattern: str, axes_lengths) -> Tensor:
    left, right = _parse(pattern)
    names = {name for group in left for name in group}
    for name in axes_lengths:
        if name not in names:
            raise ArgumentError(f"`rearrange`: {name!r} is not in the pattern {pattern!r}.", argument=name)
    sizes, filler = _sizes(pattern, left, shape(tensor), axes_lengths)

    def spelt(group):
        return [name for part in group for name in (filler if part == "..." else (part,))]

    before = [name for group in left for name in spelt(group)]
    after = [name for group in right for name in spelt(group)]
    wanted: list = []
    for group in right:
        product = 1
        for name in spelt(group):
            product *= sizes[name]
        wanted.extend([sizes[name] for name in filler] if group == ["..."] else [product])
    apart = reshape(tensor, [sizes[name] for name in before])
    order = [before.index(name) for name in after]
    return reshape(apart if order == sorted(order) else transpose(apart, order), wanted)


def rearrange(tensor: Tensor, pattern: str, **axes_lengths: int) -> Tensor:
    """``tensor`` with its dimensions named, reordered, split and joined: ``"b (h w) c -> b c h w"``.

    Args:
        tensor: a tensor, or a list of tensors of one shape, which are stacked first.
        pattern: the names of the dimensions and, after ``->``, of the result's dimensions. Names in parentheses
            are one dimension composed of several, the last varying fastest; ``1`` is a dimension of size 1,
            ``...`` any number of dimensions.
        axes_lengths: sizes, by name, that do not follow from the shape.

    Returns:
        A tensor of the same elements.

    Raises:
        ArgumentError: an invalid pattern, one that leaves sizes undetermined, or a size for a name that is not in it.
        ShapeError: a tensor that does not fit the pattern.

    Gradient:
        The upstream gradient, rearranged back.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> x = np.array([[1.0, 3.0], [2.0, 4.0]])
        >>> print(ops.rearrange(x, "i j -> (j i)"))
        [1. 2. 3. 4.]
        >>> print(gradops.grad(lambda x: ops.rearrange(x, "i j -> (j i)")[1])(x))
        [[0. 0.]
         [1. 0.]]
    """
    if isinstance(tensor, (list, tuple)):
        tensor = stack(tensor)
    return _rearrange(tensor, pattern, axes_lengths)
