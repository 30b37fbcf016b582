"""``jit``: a function traced once for each signature, then run without calling it again.

``compiled`` finds or makes the program of a call, ``dependencies`` sees the things that the function reads from
outside, ``guards`` the values that it branches on, with a program for each way. On NumPy a ``backend`` of traced
arrays, whose operators have NumPy's dtypes by ``promotion``, writes down a ``program`` of ``steps``, of which
``emission`` makes a Python function, with runs of ``native`` code in it; ``control`` writes down ``loops`` and
``branches``, and ``subprograms`` traces the functions that they call.
"""

from __future__ import annotations

from collections.abc import Callable

from ..annotations import P, R
from ..errors import ArgumentTypeError, Given, JitError, TypeOf
from .compiled import Compiled

__all__ = ["JitError", "jit"]


def jit(f: Callable[P, R], static_argnums: int | tuple[int, ...] = (), native: bool = True) -> Compiled[P, R]:
    """``f``, traced once for each signature of shapes, dtypes, numbers and static arguments, then replayed.

    Args:
        f: a function of tensors, numbers and nested structures of them, made of gradops ops (of the
            library's own too on JAX, TensorFlow and PyTorch). Python numbers take the tensors' dtype, as
            without ``jit``, and ``f`` is traced anew for each value: pass those that change often as tensors.
        static_argnums: positions of arguments that are no tensors, by whose value it is traced anew; negative ones
            count from the last argument of a call.
        native: on NumPy False for a program of NumPy calls alone, without native code. ``GRADOPS_NATIVE=off`` in the
            environment does that for all programs.

    Returns:
        A function of the same arguments. JAX: ``jax.jit``. TensorFlow: ``tf.function``. PyTorch: a traced graph
        (``make_fx``). NumPy: a recorded program of
        NumPy calls, without the dispatch, the tape or ``f``; repeated and unneeded work is left out, and
        memory is used again. Where llvmlite is installed (``gradops[native]``) steps on numbers and small arrays run as
        native code, in arithmetic to the same bits (sums of float32 are of double precision, rounded once); the
        function's ``explain()`` says which do not and why. What LLVM compiles is one loop for all programs, stored in
        the user's cache directory (called from R: ``tools::R_user_dir("gradops", "cache")``), or where
        ``GRADOPS_CACHE`` in the environment says (``off``: nowhere), if nobody else can write there. Its results
        are the caller's: arguments, what ``f`` closes over and views come as copies. ``jit(value_and_grad(f))`` holds
        the forward and the backward pass. ``ops.scan()``, ``fori_loop()``, ``cond()``, ``switch()`` and
        ``while_loop()`` are one step each, of any length; the functions given to them are called two or three times,
        to be traced.

    ``f`` may branch on values (``if x > 0``, ``while``, ``assert``), make whole numbers of them (``int()``,
    ``range(n)``) and take elements by masks (``x[x > 0]``, ``nonzero``), on NumPy also ask ``math.floor()`` and
    ``np.allclose()``: a program holds for arguments with which ``f`` would go the same way, which it looks for at each
    call before it gives results, and ``f`` is traced again for another way. Up to 32 ways of one signature are
    compiled, as long as those that are there come again; where ``f`` goes another it runs uncompiled, with one
    RuntimeWarning. (Guards, as of trace compilers: https://doi.org/10.1145/1565824.1565827.) Not in the functions that
    ``ops.scan()`` and its kin call. On JAX and TensorFlow ``f`` then runs on variables, once before each trace, and
    must be made of gradops' ops; ``ops.cond()``, ``switch()`` and ``while_loop()`` are the library's own there, and
    one program; on PyTorch they are branches as ``if`` is (``torch.cond`` has no second derivative), and
    ``torch.cond``, ``torch.while_loop`` under ``torch.compile``.

    On PyTorch each step of a loop is traced, about a thousand operations in a second. A function of more than 10,000
    (``MOST_OPERATIONS`` of ``gradops.backends.torch.derivatives``), as the Hessian of a long ``scan`` has, is left
    uncompiled, with one RuntimeWarning.

    Raises:
        JitError: (a RuntimeError) the function converts values to Python numbers (but for ``int()`` and
            ``item()``) or arrays, gives those that it branches on to a library's own function, or draws from a random
            generator of NumPy's, Python's or another library's that was there before, while it is traced; it changes
            what it reads from outside; or its result carries a gradient to a Variable that is no argument, which
            would be lost. A function that a loop calls did something else the second time.
        ArgumentTypeError: an argument that is no tensor and not static; a static one that cannot be compared;
            ``static_argnums`` that are no whole numbers.

    What ``f`` reaches is compared at each call with what it was when traced, and ``f`` is traced again where it is
    another. It reaches what its code and that of your functions and methods it calls names: closures, global variables,
    defaults, attributes of your objects, classes and modules, also of modules that are imported inside, the arguments
    of ``functools.partial``, a ``ContextVar``, what functions of ``functools.lru_cache`` read and have in their caches,
    and what static arguments hold; from there the items of lists, tuples, sets, dicts and deques, the ``data`` of a
    Variable, and the mode, parameters, buffers, parts and forward hooks of torch modules. Where it asks for attributes
    by names that it computes (``getattr(x, name)``, ``vars(x)``) all of the objects found are compared; where it names
    ``os.environ``, ``np.geterr`` or ``np.get_printoptions``, all of that. All are compared by identity, NumPy's arrays,
    data frames and the like (what has ``__array__``), SciPy's sparse arrays and Python's own (``array``) by contents,
    torch tensors by version and address, functions by their code and defaults. This costs a pass over each captured
    array, but none over those that cannot be written (``x.flags.writeable = False``) and are views of none that can.
    What changes at each step is better passed as an argument.

    What ``f`` itself changes at each call of what it reaches (a counter, a moving mean, a list it appends to) is an
    error that names it, as compiled it would not do so; what it makes once (a cached value) is none.

    Not compared: other objects and settings of libraries and of Python, methods of other installed packages, iterators,
    clocks, files, what ``eval()`` names, attributes that tell static arguments apart which are equal, and writes that
    torch does not count (``w.data.mul_(2)``). A random generator that ``f`` makes itself without a seed gives the
    trace's numbers.

    A function holds up to 256 programs (``MOST`` of ``gradops.jit.compiled``), among them those of the 128 signatures
    used last; others are compiled anew where they come again.

    Gradient:
        The result is differentiable: ``grad(jit(f))`` differentiates ``f``, and variables and tracers go to
        ``f`` itself.

    Examples:
        A log likelihood with its gradient, compiled together:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> counts = np.array([2.0, 0.0, 3.0, 1.0])
        >>> @gradops.jit
        ... def loss(rate):
        ...     return ops.sum(rate - counts * ops.log(rate))
        >>> both = gradops.jit(gradops.value_and_grad(loss))
        >>> value, gradient = both(np.array(2.0))
        >>> print(value.round(4), gradient)
        3.8411 1.0

        A function may branch on values; each way is compiled:

        >>> @gradops.jit
        ... def huber(x):
        ...     return 0.5 * x * x if abs(x) < 1.0 else abs(x) - 0.5
        >>> print(gradops.grad(huber)(0.25), gradops.grad(huber)(-3.0))
        0.25 -1.0

    See Also:
        :func:`value_and_grad`, ``gradops.ops.scan`` for loops that compile as one step.
    """
    if not callable(f):
        raise ArgumentTypeError("`f` must be a function; got {f}.", argument="f", f=TypeOf(f))
    positions = tuple(static_argnums) if isinstance(static_argnums, (tuple, list)) else (static_argnums,)
    for position in positions:
        if isinstance(position, bool) or not isinstance(position, int):
            raise ArgumentTypeError(
                "`static_argnums` must be positions of arguments; got {given}.",
                argument="static_argnums",
                given=Given(repr(position), position),
            )
    if not isinstance(native, bool):
        raise ArgumentTypeError(
            "`native` must be True or False; got {native}.", argument="native", native=TypeOf(native)
        )
    return Compiled(f, positions, native=native)


# The function hides this package from `gradops.jit.native` and `import gradops.jit.native as native`, which ask for
# attributes of `gradops.jit`. So those of the function are the package's own, modules that are imported later too.
jit.__dict__ = globals()
