"""Derivatives: the three sides of a convolution are each other's."""

from ...ops.convolution import conv_to_inputs, conv_to_kernel, conv_to_output
from ..record import derivative


def _sizes(shape, channels_first):
    return tuple(shape[2:] if channels_first else shape[1:-1])


def _output_inputs(g, kernel, shape, strides, padding, dilation, groups, channels_first):
    sizes = _sizes(shape, channels_first)
    return conv_to_inputs(g, kernel, sizes, strides, padding, dilation, groups, channels_first)


def _output_kernel(g, inputs, shape, strides, padding, dilation, groups, channels_first):
    return conv_to_kernel(inputs, g, tuple(shape[:-2]), strides, padding, dilation, groups, channels_first)


def _inputs_outputs(g, kernel, strides, padding, dilation, groups, channels_first):
    return conv_to_output(g, kernel, strides, padding, dilation, groups, channels_first)


def _inputs_kernel(g, outputs, shape, strides, padding, dilation, groups, channels_first):
    return conv_to_kernel(g, outputs, tuple(shape[:-2]), strides, padding, dilation, groups, channels_first)


def _kernel_inputs(g, outputs, shape, strides, padding, dilation, groups, channels_first):
    sizes = _sizes(shape, channels_first)
    return conv_to_inputs(outputs, g, sizes, strides, padding, dilation, groups, channels_first)


def _kernel_outputs(g, inputs, strides, padding, dilation, groups, channels_first):
    return conv_to_output(inputs, g, strides, padding, dilation, groups, channels_first)


derivative("conv_to_output", inputs=_output_inputs, kernel=_output_kernel)
derivative("conv_to_inputs", outputs=_inputs_outputs, kernel=_inputs_kernel)
derivative("conv_to_kernel", inputs=_kernel_inputs, outputs=_kernel_outputs)
