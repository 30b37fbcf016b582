"""Structures (nests): flattening and unflattening."""

from collections import OrderedDict, namedtuple

import pytest

from gradops import _tree
from gradops.errors import ArgumentError

Pair = namedtuple("Pair", "first second")


@pytest.mark.parametrize(
    "value",
    [
        1,
        None,
        (),
        [],
        {},
        (1,),
        [1, (2, None), {"b": 3, "a": [4, 5]}],
        Pair(1, {"x": Pair(2, None)}),
        OrderedDict([("z", 1), ("a", (2,))]),
        {1: "number", "1": "text"},
    ],
)
def test_round_trip(value):
    leaves, structure = _tree.flatten(value)
    again = _tree.unflatten(structure, leaves)
    assert again == value and type(again) is type(value)
    assert structure == _tree.flatten(again)[1] and hash(structure) == hash(_tree.flatten(again)[1])


def test_none_has_no_leaves():
    assert _tree.leaves_of([None, 1, {"a": None}]) == [1]


def test_dicts_are_flattened_by_key_and_keep_their_order():
    first, second = {"b": 1, "a": 2}, {"a": 20, "b": 10}
    assert _tree.leaves_of(first) == [2, 1]
    assert _tree.flatten(first)[1] == _tree.flatten(second)[1]
    summed = _tree.map_leaves(lambda x, y: x + y, first, second)
    assert summed == {"b": 11, "a": 22} and list(summed) == ["b", "a"]


def test_different_structures():
    assert _tree.flatten((1, 2))[1] != _tree.flatten([1, 2])[1]
    assert _tree.flatten((1, None))[1] != _tree.flatten((1, 2))[1]
    with pytest.raises(ArgumentError, match="structures must be the same"):
        _tree.map_leaves(lambda x, y: x, {"a": 1}, {"b": 1})
    with pytest.raises(ArgumentError, match="2 leaves"):
        _tree.unflatten(_tree.flatten((1, 2))[1], [1])


def test_repr_of_a_structure():
    assert repr(_tree.flatten([1, (2,), {"a": None}])[1]) == "[*, (*,), {'a': None}]"
