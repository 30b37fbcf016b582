"""Calls of a function that meet: each call waits at a reduction until all have come there.

Each call has a thread of its own, but only one of them runs at a time, from one meeting to the next. So results do
not depend on the order of threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from ..backends import Backend
from ..errors import GradientError


class Seat:
    """The place of one call among several.

    Attributes:
        number: the number of the call.
        owner: the library of the tensors.
        is_live: False once the call is over.
        posted: ``(name, x)`` of the reduction that the call has come to; None when it is over.
    """

    def __init__(self, number: int, owner: Backend):
        self.number, self.owner = number, owner
        self.is_live = True
        self.posted: tuple | None = None
        self.result: Any = None
        self.error: BaseException | None = None
        self.go, self.came = threading.Semaphore(0), threading.Semaphore(0)

    def reduced(self, name: str, x):
        """The reduction ``name`` of ``x`` over all calls; waits for them."""
        self.posted = name, x
        self.came.release()
        self.go.acquire()
        error, self.error = self.error, None
        if error is not None:
            raise error
        return self.result

    def step(self) -> None:
        """Let the call run to its next reduction, or to its end."""
        self.go.release()
        self.came.acquire()


class Seats:
    """Calls that meet at reductions.

    Args:
        reduce: ``reduce(name, xs)`` is the reduction of a list with a value of each call.
        owner: the library of the tensors.
    """

    def __init__(self, count: int, reduce: Callable, owner: Backend):
        self.seats = [Seat(i, owner) for i in range(count)]
        self.reduce, self.carried = reduce, owner.derivatives.carried

    def run(self, function: Callable) -> list:
        """``function(seat)`` for each seat.

        Raises:
            GradientError: some calls are over or at another reduction while others wait.
            The errors of ``function``.
        """
        found: list = [None] * len(self.seats)
        errors: list[BaseException] = []

        def call(seat: Seat, scope) -> None:
            seat.go.acquire()
            try:
                with scope():
                    found[seat.number] = function(seat)
            except BaseException as error:
                errors.append(error)
            seat.is_live, seat.posted = False, None
            seat.came.release()

        for seat in self.seats:
            thread = threading.Thread(target=copy_context().run, args=(call, seat, self.carried()), daemon=True)
            thread.start()
        waiting = self.seats
        try:
            while waiting:
                for seat in waiting:
                    seat.step()
                    if errors:
                        raise errors[0]
                waiting = [seat for seat in waiting if seat.posted is not None]
                if waiting:
                    self._meet(waiting)
        finally:
            self._dismiss()
        return found

    def _meet(self, waiting: list[Seat]) -> None:
        posts = [seat.posted for seat in waiting if seat.posted is not None]
        if len(waiting) < len(self.seats) or len({name for name, _ in posts}) > 1:
            raise GradientError(
                "in a `vmap` with an `axis_name` all rows must call the same reductions in the same order.",
                hint="do not branch on values of a row around `psum` and the like",
            )
        result, failed = None, None
        try:
            result = self.reduce(posts[0][0], [x for _, x in posts])
        except Exception as error:  # the calls may do without, as a map that then runs row by row
            failed = error
        for seat in waiting:
            seat.result, seat.error = result, failed

    def _dismiss(self) -> None:
        """End the calls that still wait."""
        for seat in self.seats:
            if seat.posted is not None:
                seat.error = GradientError("the function of another row of the `vmap` has failed.")
                seat.go.release()
                seat.came.acquire()
