"""Operations of Keras's functional models made of gradops' functions; imported with the first KerasTensor."""

from __future__ import annotations

import functools
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

    def compute_output_spec(self, *arguments, **keywords):
        if self.function not in _SPARSE:
            arguments, keywords = keras.tree.map_structure(_dense, (arguments, keywords))
        if arguments and callable(arguments[0]):  # JAX would trace it like a tensor
            bound = Operation(functools.partial(self.call, arguments[0]))
            return bound.compute_output_spec(*arguments[1:], **keywords)
        return super().compute_output_spec(*arguments, **keywords)

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


_SPARSE = ("stop_gradient", "scaled_gradient_ext")
"""The functions that take sparse tensors and return them."""


def _dense(x):
    """A KerasTensor that is not marked as sparse: Keras 3.15 marks the product of any KerasTensor and a number."""
    return keras.KerasTensor(x.shape, x.dtype) if getattr(x, "sparse", False) else x


def _named(name: str) -> Callable:
    return registry[name].call if name in registry else functions[name]
