"""PyTorch 2.5 does not report its hooks for saved tensors; this module observes the scopes that set them."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable

from torch.autograd.graph import saved_tensors_hooks


class _Entered(threading.local):
    def __init__(self):
        self.scopes: list[saved_tensors_hooks] = []


def observed_hooks() -> Callable:
    """A function that returns a thread's innermost pair of hooks, or None, as newer versions have one.

    The ``__enter__`` and ``__exit__`` of the scopes' class are wrapped once, for the whole process. A scope entered
    before that is not known.
    """
    entered = _Entered()
    enter, leave = saved_tensors_hooks.__enter__, saved_tensors_hooks.__exit__

    @functools.wraps(enter)
    def __enter__(self):
        result = enter(self)
        entered.scopes.append(self)
        return result

    @functools.wraps(leave)
    def __exit__(self, *error):
        if entered.scopes:
            entered.scopes.pop()  # PyTorch also removes the innermost pair
        return leave(self, *error)

    def top(ignore_tracing: bool):
        scope = entered.scopes[-1] if entered.scopes else None
        return None if scope is None else (scope.pack_hook, scope.unpack_hook)

    saved_tensors_hooks.__enter__, saved_tensors_hooks.__exit__ = __enter__, __exit__
    return top
