"""``jit``: a function traced once for each signature, then run without calling it again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _tree, backends, config
from ..autodiff.variable import Variable
from ..errors import ArgumentTypeError, JitError
from .program import Place, Program

__all__ = ["JitError", "jit"]


def jit(f: Callable, static_argnums: int | tuple[int, ...] = ()) -> Callable:
    """``f``, traced once for each signature of shapes, dtypes and static arguments, and replayed after that.

    Args:
        f: a function of tensors, numbers and nested structures of them, made of gradops ops (of the
            library's own too on JAX, TensorFlow and PyTorch). Numbers are traced, not baked in.
        static_argnums: positions of arguments that are no tensors, by whose value it is traced anew.

    Returns:
        A function of the same arguments. JAX: ``jax.jit``. TensorFlow: ``tf.function``. PyTorch:
        ``torch.compile`` where a compiler is at hand, else a traced graph (``make_fx``). NumPy: a recorded program of
        NumPy calls, without the dispatch, the tape or ``f``; repeated and unneeded work is left out, and
        memory is used again. ``jit(value_and_grad(f))`` holds the forward and the backward pass.

    Raises:
        JitError: (a RuntimeError) the function branches on values, converts them to Python numbers or
            NumPy, or draws from NumPy's global random generator, while it is traced.

    Gradient:
        The result is differentiable: ``grad(jit(f))`` differentiates ``f``, and variables and tracers go to
        ``f`` itself. Arrays that ``f`` closes over are read anew at each call; what ``f`` computed from
        them alone, before the first op with an argument, is kept.
    """
    if not callable(f):
        raise ArgumentTypeError(f"`f` must be a function; got {type(f).__name__}.", argument="f")
    static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    programs: dict[Any, Callable] = {}

    @functools.wraps(f, updated=())
    def compiled(*args, **kwargs):
        if not kwargs and not static and all(type(a) is np.ndarray for a in args):
            program = programs.get((config.floatx(), *[(a.shape, a.dtype) for a in args]))
            if program is not None:
                return program(args)
        chosen = tuple(args[i] for i in static if i < len(args))
        rest = [a for i, a in enumerate(args) if i not in static]
        leaves, form = _tree.flatten((rest, kwargs))
        backend = backends.common([type(x.data if isinstance(x, Variable) else x) for x in leaves], "jit")
        if backend is None:
            backend = config.default_backend()
        if backend.name == "traced" or any(isinstance(x, Variable) for x in leaves):
            return f(*args, **kwargs)
        tensors = [x if backends.of(x) is backend else _as_tensor(x, backend) for x in leaves]

        def whole(*values):
            inner, keywords = _tree.unflatten(form, values)
            queue = iter(inner)
            picked = iter(chosen)
            return f(*[next(picked) if i in static else next(queue) for i in range(len(args))], **keywords)

        if backend.name != "numpy":
            key: tuple = (backend.name, form, chosen, config.floatx())
            if key not in programs:
                programs[key] = backend.module.gradients.compile(whole)
            return programs[key](*tensors)
        key = (form, chosen, config.floatx(), *[(x.shape, x.dtype) for x in tensors])
        program = programs.get(key)
        if program is None:
            program = programs[key] = _trace(whole, tensors)
            if not kwargs and not static and all(type(a) is np.ndarray for a in args):
                programs[(config.floatx(), *[(a.shape, a.dtype) for a in args])] = program
        return program(tensors)

    compiled.programs = programs  # type: ignore[attr-defined]
    return compiled


def _as_tensor(value, backend):
    try:
        return backend.convert(value)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(
            f"an argument of a compiled function must be a tensor, a number or a structure of them; "
            f"got {type(value).__name__}.",
            hint="name its position in `static_argnums`",
        ) from error


def _trace(f: Callable, tensors: list) -> Callable:
    """The program of one call of ``f``."""
    from . import traced  # with it NumPy's kernels, which the first op loads

    traced.register()
    program = Program()
    before: Any = np.random.get_state()
    result = f(*[program.input(np.asarray(x)) for x in tensors])
    after: Any = np.random.get_state()
    if before[2] != after[2] or not np.array_equal(before[1], after[1]):
        raise JitError(
            "a compiled function drew random numbers while it was traced; they would be the same at each call.",
            hint="draw them outside and pass them as an argument",
        )
    leaves, form = _tree.flatten(result)
    outputs = [_output(x, program) for x in leaves]
    function = program.function(outputs)

    def run(values):
        return _tree.unflatten(form, function(*values))

    run.source = function.source  # type: ignore[attr-defined]
    run.steps = function.steps  # type: ignore[attr-defined]
    program._values.clear()
    program._known.clear()
    return run


def _output(x, program: Program):
    from .traced import Traced

    if isinstance(x, Variable):
        x = x.data
    if isinstance(x, Traced):
        if x.program is not program:
            raise JitError("a compiled function returned an array of another function being traced.")
        return Place(x.place)
    return x
