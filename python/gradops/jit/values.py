"""What stands at the places of a program for the arguments that a function is traced with."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np


class Values:
    """Values by place, from 1 on: float64 numbers, which are most where there are many, eight bytes each.

    Attributes:
        numbers: single numbers and truth values, by place.
        others: all that is no float64 number, by place.
    """

    __slots__ = ("numbers", "others")

    def __init__(self) -> None:
        self.numbers = array("d", [0.0])
        self.others: dict[int, Any] = {0: None}

    def new(self, value) -> int:
        """The place of a new value."""
        place = len(self.numbers)
        if value.__class__ is np.float64 or value.__class__ is float:
            self.numbers.append(value)
            return place
        is_number = getattr(value, "shape", None) == () and value.dtype in (np.float64, np.bool_)
        self.numbers.append(value if is_number else np.nan)
        self.others[place] = value
        return place

    def __getitem__(self, place: int) -> Any:
        found = self.others.get(place)
        return np.float64(self.numbers[place]) if found is None else found

    def __len__(self) -> int:
        return len(self.numbers)

    def is_number(self, place: int) -> bool:
        """Whether it is a float64 number."""
        return place not in self.others

    def clear(self) -> None:
        """Let go of them."""
        del self.numbers[:]
        self.others.clear()
