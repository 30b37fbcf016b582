"""Operations of Keras's functional models made of gradops' functions; imported with the first KerasTensor."""

from __future__ import annotations

from collections.abc import Callable

import keras

from ..errors import ArgumentTypeError
from ._registry import functions, registry


@keras.saving.register_keras_serializable("gradops")
class Operation(keras.Operation):
    """A gradops function as a node of a functional model, saved and loaded with the model.

    Args:
        function: the name of a gradops function; or a function without one, such as a custom gradient, which must be
            registered by ``keras.saving.register_keras_serializable()`` for the model to be saved.
    """

    def __init__(self, function: str | Callable, name: str | None = None):
        super().__init__(name=name)
        self.function = keras.saving.deserialize_keras_object(function) if isinstance(function, dict) else function

    def call(self, *arguments, **keywords):
        function = _named(self.function) if isinstance(self.function, str) else self.function
        return function(*arguments, **keywords)

    def get_config(self) -> dict:
        if isinstance(self.function, str):
            return {"function": self.function, "name": self.name}
        registered = keras.saving.get_registered_name(self.function)
        if keras.saving.get_registered_object(registered) is self.function:
            return {"function": keras.saving.serialize_keras_object(self.function), "name": self.name}
        raise ArgumentTypeError(
            "a functional model with a function of your own in it, such as a custom gradient, cannot be saved.",
            hint="register the function by `keras.saving.register_keras_serializable()`, or call it in a layer, a "
            "subclass of `keras.layers.Layer` (in R `Layer()`)",
        )


def _named(name: str) -> Callable:
    return registry[name].call if name in registry else functions[name]
