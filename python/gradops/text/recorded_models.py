"""``remembered``: a model whose calls are recorded, repeated where they fail, and counted."""

from __future__ import annotations

import json
import os
import threading
import time
from codecs import BOM_UTF8
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import ArgumentError, ArgumentTypeError, BudgetError, Code, Given, ModelError, TypeOf
from .models import Messages, Model, Reply, as_model, as_prompt, shortened


def remembered(
    model,
    path: str | os.PathLike | None = None,
    *,
    calls: int | None = None,
    tokens: int | None = None,
    retries: int = 5,
    wait: float = 1.0,
) -> Model:
    """A model that remembers: it answers a repeated request from memory, and from ``path`` in later sessions.

    Args:
        model: a model, or a value that :func:`as_model` takes; None to answer from the recording alone, without
            requests.
        path: a file of JSON lines, ``{"model": "...", "messages": [...], "answer": "...", "tokens": n}``, one a call,
            written as the call ends, so that an interrupt loses nothing; existing lines are never changed. A model
            remembers the answers of a model of its name; without one those of any. None: memory alone.
        calls, tokens: the most calls of ``model`` and the most tokens of them, over the life of this object;
            answers from memory are free. Tokens are as the model says, else one for four characters.
        retries: how often a call is repeated that failed for the moment: a rate limit, a timeout, a lost connection,
            a server's error 5xx.
        wait: the seconds before the first repetition, doubled for each further one; where the server says how long,
            that long.

    Returns:
        A model. ``model.spent`` is ``{"calls": ..., "tokens": ..., "remembered": ...}``.

    Raises:
        ArgumentTypeError: a ``path`` that names no file.
        ArgumentError: ``retries`` or ``wait`` below 0; a file that is no recording (a line that an interrupt broke off
            is passed over), is not there for a replay, or cannot be written.
        BudgetError: when called, for a call that would go over the budget; it is not made.
        ModelError: when called without ``model``, for a request that was not recorded.

    Calls at once from several threads are made once for each text. A record holds texts and counts, never keys.

    Examples:
        >>> from gradops import text
        >>> model = text.remembered(text.scripted({"ice": "It is less dense."}), calls=10)
        >>> model("Why does ice float?") == model("Why does ice float?")
        True
        >>> model.spent
        {'calls': 1, 'tokens': 9, 'remembered': 1}

    See Also:
        :func:`as_model`, :func:`scripted`.
    """
    if model is None and path is None:
        raise ArgumentError("`path`: without a model, which recording is replayed?", argument="path")
    _check("retries", retries, int)
    _check("wait", wait)
    file = _file(path)
    if model is None and file is not None and not file.exists():
        raise ArgumentError(f"`path`: there is no recording {str(file)!r}.", argument="path")
    made = None if model is None else as_model(model)
    memory = _Memory(file, None if made is None else made.name)
    budget = _Budget(calls, tokens)

    def ask(messages: Messages) -> Reply:
        if made is None:
            prompt = as_prompt(messages)[0]
            raise ModelError(
                "the recording has no answer to {prompt}.",
                hint="record with a model, with the same texts",
                prompt=Given(repr(shortened(prompt))),
            )
        budget.take()
        try:
            answer = _repeated(lambda: made.send(messages), int(retries), wait)
        except BaseException:
            budget.give_back()
            raise
        if not isinstance(answer, str) or not answer.strip():
            return answer  # an error for who asked, and nothing to remember
        answer = answer if isinstance(answer, Reply) else Reply(answer)
        if answer.tokens is None:
            answer.tokens = (len(answer) + sum(len(m["content"]) for m in messages)) // 4
        budget.used += answer.tokens
        return answer

    def send(messages: Messages):
        return memory.get(messages, lambda: ask(messages))

    wrapped = _Remembered(send, "remembered" if made is None else f"{made.name}, remembered", memory, budget, made)
    return wrapped


def _file(path) -> Path | None:
    if path is None:
        return None
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path) or Path(path).is_dir():
        raise ArgumentTypeError("`path` must be the name of a file; got {path}.", argument="path", path=_given(path))
    return Path(path)


def _given(path) -> Given | TypeOf:
    return Given(repr(path), path) if isinstance(path, str) else TypeOf(path)


def _check(name: str, value, kind: type = float) -> None:
    """Refuse all but numbers of at least 0; for ``kind`` int, all but whole ones."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not value >= 0 or kind is int and value % 1:
        raise ArgumentError(
            f"`{name}` must be a {'whole ' if kind is int else ''}number of at least 0; got {{value}}.",
            argument=name,
            value=Given(repr(value), value),
        )


class _Remembered(Model):
    def __init__(self, send, name: str, memory: _Memory, budget: _Budget, model: Model | None):
        super().__init__(send, name, model._secrets if model is not None else ())
        self._memory = memory
        self._budget = budget

    @property
    def spent(self) -> dict[str, int]:
        """Calls and tokens of the model, and how often memory answered."""
        return {"calls": self._budget.made, "tokens": self._budget.used, "remembered": self._memory.hits}


class _Budget:
    """Calls are counted before they are made, so that threads cannot go over."""

    def __init__(self, calls: int | None, tokens: int | None):
        for name, most in (("calls", calls), ("tokens", tokens)):
            if most is not None:
                _check(name, most, int)
        self.calls = None if calls is None else int(calls)
        self.tokens = None if tokens is None else int(tokens)
        self.made = self.used = 0
        self._lock = threading.Lock()

    def take(self) -> None:
        with self._lock:
            for name, most, used in (("calls", self.calls, self.made), ("tokens", self.tokens, self.used)):
                if most is not None and used >= most:
                    raise BudgetError(
                        f"the budget of {most} {name} is used up ({used}); the call was not made.",
                        hint="{call} with the same path goes on from here",
                        call=Code(
                            f"`remembered(model, path, {name}=...)`", f"`text_remembered(model, path, {name} = ...)`"
                        ),
                    )
            self.made += 1

    def give_back(self) -> None:
        with self._lock:
            self.made -= 1


class _Pending:
    """An answer that another thread is asking for."""

    def __init__(self):
        self.done = threading.Event()
        self.answer = None


class _Memory:
    """Answers by question; in ``path``, which is only ever added to."""

    def __init__(self, path: Path | None, model: str | None):
        self.path = path
        self.model = model
        self.hits = 0
        self._lock = threading.Lock()
        self._answers: dict[str, Reply] = {}
        self._pending: dict[str, _Pending] = {}
        self._ending = b""  # bytes missing at the end of the file, before which nothing can be added
        if path is not None and path.exists():
            self._load(path.read_bytes())
        if path is not None and model is not None:
            try:  # now, before anything is paid for
                path.parent.mkdir(parents=True, exist_ok=True)
                path.open("ab").close()
            except OSError as error:
                raise ArgumentError(f"`path`: nothing can be written there: {error}.", argument="path") from error

    def _load(self, content: bytes) -> None:
        if content and not content.endswith(b"\n"):
            self._ending = b"\n"
        for number, line in enumerate(content.removeprefix(BOM_UTF8).split(b"\n"), 1):
            if line.strip():
                self._learn(line, number)

    def _learn(self, line: bytes, number: int) -> None:
        try:
            row = json.loads(line.decode(errors="surrogatepass"))
        except ValueError:
            if line.startswith(_START):
                return  # broken off by an interrupt
            raise self._no_recording(number) from None
        try:
            key, answer, tokens, model = _key(row["messages"]), row["answer"], row.get("tokens"), row.get("model")
            if not isinstance(answer, str):
                raise TypeError
        except (KeyError, TypeError, AttributeError):
            raise self._no_recording(number) from None
        if self.model is None or model is None or model == self.model:
            self._answers[key] = Reply(answer, tokens)

    def _no_recording(self, number: int) -> ArgumentError:
        return ArgumentError(f"`path`: line {number} of {self.path} is no recorded call.", argument="path")

    def get(self, messages: Messages, ask: Callable[[], Reply]) -> Reply:
        """The remembered answer, or that of ``ask``; a second thread with the same question waits for the first."""
        key = _key(messages)
        while True:
            with self._lock:
                if key in self._answers:
                    self.hits += 1
                    return self._answers[key]
                pending = self._pending.get(key)
                if pending is None:
                    mine = self._pending[key] = _Pending()
                    break
            pending.done.wait()  # then it is remembered, or failed, and is this thread's to ask
        try:
            answer = ask()
            if isinstance(answer, str) and answer.strip():
                self._keep(key, messages, answer)
            return answer
        finally:
            with self._lock:
                del self._pending[key]
            mine.done.set()

    def _keep(self, key: str, messages: Messages, answer: Reply) -> None:
        row = {"model": self.model, "messages": messages, "answer": str(answer), "tokens": answer.tokens}
        line = (json.dumps(row, ensure_ascii=False) + "\n").encode(errors="surrogatepass")
        with self._lock:
            self._answers[key] = answer
            if self.path is not None:
                with self.path.open("ab", buffering=0) as file:
                    file.write(self._ending + line)  # one write: a line is there, or it is not
                self._ending = b""


_START = b'{"m'
"""The beginning of every line, in earlier versions too."""


def _key(messages) -> str:
    return json.dumps([[m["role"], m["content"]] for m in messages], ensure_ascii=False)


def _repeated(call: Callable[[], Any], retries: int, wait: float):
    for attempt in range(retries + 1):
        try:
            return call()
        except Exception as error:
            if attempt == retries or not _passing(error):
                raise
            pause = _retry_after(error)
            time.sleep(wait * 2**attempt if pause is None else pause)
    raise AssertionError  # not reached: the last attempt returns or raises


_PASSING = ("ratelimit", "timeout", "connection", "overloaded", "unavailable", "internalserver", "toomanyrequests")


def _passing(error: Exception) -> bool:
    """True if a failure is temporary."""
    status = getattr(error, "status_code", None) or getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(status, int):
        return status in (408, 409, 425, 429) or status >= 500
    if isinstance(error, (TimeoutError, ConnectionError)):
        return True
    names = "".join(kind.__name__ for kind in type(error).__mro__).lower()
    return any(word in names for word in _PASSING)


def _retry_after(error: Exception) -> float | None:
    """The seconds that the server asks to wait."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    try:
        return max(0.0, float(headers["retry-after"]))  # type: ignore[index]
    except (TypeError, KeyError, ValueError):
        return None
