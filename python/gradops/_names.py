"""The names that ``dir()`` of a module shows, and the error for a name that is not there."""

from __future__ import annotations

import difflib
import importlib
import opcode
import pkgutil
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any


def namespace(
    name: str, later: tuple[str, ...] = (), renamed: Mapping[str, str] | None = None
) -> tuple[Callable[[], list[str]], Callable[[str], Any]]:
    """``__dir__`` and ``__getattr__`` of the module of that name: its ``__all__``, and a suggestion for other names.

    Args:
        later: its modules that are imported when they are first read, as they take long.
        renamed: old names, which warn, and where what they stand for is now.
    """
    LATER[name] = later
    RENAMED.update({f"{name}.{old}": new for old, new in (renamed or {}).items()})

    def __dir__() -> list[str]:
        return sorted(sys.modules[name].__all__)

    def __getattr__(wanted: str):
        if wanted in later:
            return importlib.import_module(f"{name}.{wanted}")
        new = RENAMED.get(f"{name}.{wanted}")
        if new is not None:
            warnings.warn(f"`{name}.{wanted}` is `{new}` now", DeprecationWarning, stacklevel=2)
            return pkgutil.resolve_name(new)
        message = f"module {name!r} has no attribute {wanted!r}"
        if not wanted.startswith("_"):
            found = _suggested(name, wanted)
            if found:
                message += f"\nHint: did you mean {' or '.join(f'`{one}`' for one in found)}?"
        raise missing(name, wanted, message)

    return __dir__, __getattr__


def missing(module: str, name: str, message: str) -> AttributeError | ImportError:
    """The error for a name that a module's ``__getattr__`` does not know.

    In ``from module import name`` Python would put its own words in the place of an AttributeError's.
    """
    frame = sys._getframe(2)
    if frame.f_code.co_code[frame.f_lasti] == _IMPORT_FROM:
        return ImportError(message.replace("has no attribute", "has no name", 1), name=module)
    return AttributeError(message)


_IMPORT_FROM = opcode.opmap["IMPORT_FROM"]

LATER: dict[str, tuple[str, ...]] = {}
"""The modules of a package that are imported when they are first read."""

RENAMED: dict[str, str] = {}
"""Old public names, and the new ones."""
OTHERS = dict(
    pair.split("=")
    for pair in """elementwise_grad=grad make_vjp=vjp make_jvp=jvp primitive=custom_gradient defvjp=extend.derivative
    check_grads=autodiff.gradcheck hessian_vector_product=hvp jacfwd=jacobian jacrev=jacobian custom_vjp=custom_gradient
    remat=checkpoint tensor=ops.array Tensor=Variable detach=stop_gradient clamp=ops.clip cat=ops.concatenate
    unsqueeze=ops.expand_dims permute=ops.transpose masked_fill=ops.where index_select=ops.take
    cross_entropy=ops.sparse_categorical_crossentropy GradientTape=gradient reduce_sum=ops.sum reduce_mean=ops.mean
    reduce_max=ops.max""".split()
)
"""Words of autograd, JAX, PyTorch and TensorFlow that are not like ours, and ours."""


def closest(wanted: str, known: Iterable[str], cutoff: float = 0.7) -> str | None:
    """The name among those known that one most likely meant; None if there is none like it."""
    known = list(known)
    alike = [name for name in known if name.lower() == wanted.lower()]
    if alike:
        return alike[0]
    found = difflib.get_close_matches(wanted, known, 1, cutoff)
    if found:
        return found[0]
    # difflib takes the first of the longest parts in common, which may leave nothing to compare: `l2plp` for `lp2lp`.
    found = difflib.get_close_matches(wanted[::-1], [name[::-1] for name in known], 1, cutoff)
    return found[0][::-1] if found else None


def public_modules() -> dict[str, ModuleType]:
    """``gradops`` and the modules that it shows, by name, imported if they were not yet."""
    found: dict[str, ModuleType] = {}
    waiting = ["gradops"]
    while waiting:
        name = waiting.pop(0)
        module = sys.modules.get(name)
        if module is None or name in found:
            continue
        found[name] = module
        names = getattr(module, "__all__", ())
        for later in LATER.get(name, ()):
            importlib.import_module(f"{name}.{later}")
        waiting += [f"{name}.{part}" for part in names if isinstance(vars(module).get(part), ModuleType)]
    return found


def _suggested(name: str, wanted: str) -> list[str]:
    """Ours for another library's name, else its places, the module's own name that is most like it, or another's."""
    if wanted in OTHERS:
        place, _, ours = f"gradops.{OTHERS[wanted]}".rpartition(".")
        return [_shown(place, ours)]
    modules = public_modules()
    there = [place for place, module in modules.items() if wanted in getattr(module, "__all__", ())]
    if there:
        return [_shown(place, wanted) for place in there[:3]]
    for place in (name, *modules):
        like = closest(wanted, sys.modules[place].__all__, 0.7 if place == name else 0.8)
        if like is not None:
            return [_shown(place, like)]
    return []


def _shown(place: str, name: str) -> str:
    """A name as one writes it after ``from gradops import ops``."""
    return f"gradops.{name}" if place == "gradops" else f"{place}.{name}".removeprefix("gradops.")
