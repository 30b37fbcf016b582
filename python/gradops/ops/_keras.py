"""gradops' functions as operations of Keras's functional models; imported once a KerasTensor comes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from operator import attrgetter

import keras

from ..errors import ArgumentTypeError
from ._registry import registry


@keras.saving.register_keras_serializable("gradops")
class Operation(keras.Operation):
    """A function of gradops as a node of a functional model, which saves and loads with the model.

    Args:
        function: its name, or a function that has none, as a custom gradient: the model then trains, but is not saved.
    """

    def __init__(self, function: str | Callable, name: str | None = None):
        super().__init__(name=name)
        self.function = function

    def call(self, *arguments, **keywords):
        function = _named(self.function) if isinstance(self.function, str) else self.function
        return function(*arguments, **keywords)

    def get_config(self) -> dict:
        if isinstance(self.function, str):
            return {"function": self.function, "name": self.name}
        raise ArgumentTypeError(
            "a functional model with a function of your own in it, such as a custom gradient, cannot be saved.",
            hint="call the function in a layer, a subclass of `keras.layers.Layer` (in R `Layer()`)",
        )


def _named(name: str) -> Callable:
    return registry[name].call if name in registry else attrgetter(name)(sys.modules["gradops"])
