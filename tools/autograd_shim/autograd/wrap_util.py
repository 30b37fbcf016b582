"""autograd's ``unary_to_nary``: operators on functions of one argument extended to functions of several.

Errors are translated to those that autograd's tests expect.
"""

from __future__ import annotations

import functools

from gradops.errors import GradientError


def unary_to_nary(operator):
    """Turn ``operator(f, x, ...)`` into ``operator(f, argnum, ...)(*args)``; GradientError becomes ``TypeError``."""

    @functools.wraps(operator)
    def of_function(fun, argnum=0, *options, **named):
        def call(*args, **kwargs):
            several = not isinstance(argnum, int)

            def unary(x):
                chosen = dict(zip(argnum, x) if several else [(argnum, x)])
                return fun(*(chosen.get(i, arg) for i, arg in enumerate(args)), **kwargs)

            unary.__name__ = getattr(fun, "__name__", "function")
            x = tuple(args[i] for i in argnum) if several else args[argnum]
            try:
                return operator(unary, x, *options, **named)
            except GradientError as error:
                raise TypeError(str(error)) from error

        return call

    return of_function
