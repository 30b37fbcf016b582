"""``remembered``: a model whose calls are recorded, retried and counted."""

from __future__ import annotations

import json
import os
import threading
import time
from codecs import BOM_UTF8
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..errors import ArgumentError, ArgumentTypeError, BudgetError, Code, Given, ModelError, TypeOf
from .files import File, plain_text
from .models import Messages, Model, Reply, as_model, as_prompt, as_reply, shortened
from .tools import ToolCall


def remembered(
    model,
    path: str | os.PathLike | None = None,
    *,
    calls: int | None = None,
    tokens: int | None = None,
    retries: int = 5,
    wait: float = 1.0,
) -> Model:
    """Return a model that answers repeated requests from memory, and from ``path`` in later sessions.

    Args:
        model: a model, or a value that :func:`as_model` takes; None to replay the recording without sending requests.
        path: a file of JSON lines, ``{"model": "...", "messages": [...], "answer": "...", "tokens": n}``, one for each
            call; a :class:`File` is recorded by the hash of its bytes. A line is written when its call ends, so an
            interrupt loses nothing; existing lines are never changed.
            Only answers of a model with the same name are used; those of all models if ``model`` is None. Without a
            path, answers are kept in memory only.
        calls, tokens: the limits on calls of ``model`` and on their tokens, over the life of this object; answers from
            memory are free. Tokens are counted as the model reports them, or else as a quarter of the characters.
        retries: the number of times a call is repeated after a temporary failure: a rate limit, a timeout, a lost
            connection, or a server error 5xx.
        wait: the seconds before the first retry, doubled for each further one; a wait that the server asks for takes
            precedence.

    Returns:
        A model. ``model.spent`` is ``{"calls": ..., "tokens": ..., "remembered": ...}``.

    Raises:
        ArgumentTypeError: ``path`` does not name a file.
        ArgumentError: ``retries`` or ``wait`` is below 0; or the file is not a recording (a line cut off by an
            interrupt is ignored), does not exist for a replay, or cannot be written.
        BudgetError: when called after the budget is used up; the call is not made.
        ModelError: when called without ``model`` for a request that was not recorded.

    If several threads send the same request at once, one call is made. A record holds texts and counts, never keys.

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
        raise ArgumentError("`path` is missing: without a model there must be a recording to replay.", argument="path")
    _check("retries", retries, int)
    _check("wait", wait)
    file = _file(path)
    if model is None and file is not None and not file.exists():
        raise ArgumentError(f"`path`: there is no recording {str(file)!r}.", argument="path")
    made = None if model is None else as_model(model)
    memory = _Memory(file, None if made is None else made.name)
    budget = _Budget(calls, tokens)

    def ask(messages: Messages, tools) -> Reply:
        if made is None:
            prompt = plain_text(as_prompt(messages)[0])
            raise ModelError(
                "the recording has no answer to {prompt}.",
                hint="record with a model, with the same texts",
                prompt=Given(repr(shortened(prompt))),
            )
        budget.take()
        try:
            answer = _repeated(lambda: made.send(messages, tools), int(retries), wait)
        except BaseException:
            budget.give_back()
            raise
        answer = as_reply(answer)
        if not isinstance(answer, Reply) or not (answer.strip() or answer.calls):
            return answer  # the caller raises an error; there is nothing to remember
        if answer.tokens is None:
            answer.tokens = (len(answer) + sum(len(plain_text(m["content"])) for m in messages)) // 4
        budget.used += answer.tokens
        return answer

    def send(messages: Messages, tools=None):
        return memory.get(_recorded_form(messages, tools), lambda: ask(messages, tools))

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
    """Raise unless the value is a number of at least 0, and an integer if ``kind`` is int."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not value >= 0 or kind is int and value % 1:
        raise ArgumentError(
            f"`{name}` must be a {'whole ' if kind is int else ''}number of at least 0; got {{value}}.",
            argument=name,
            value=Given(repr(value), value),
        )


class _Remembered(Model):
    def __init__(self, send, name: str, memory: _Memory, budget: _Budget, model: Model | None):
        super().__init__(send, name, model._secrets if model is not None else (), model is None or model.takes_tools)
        self.limit = None if model is None else model.limit
        self._memory = memory
        self._budget = budget

    @property
    def spent(self) -> dict[str, int]:
        """The calls and tokens of the model so far, and the number of answers from memory."""
        return {"calls": self._budget.made, "tokens": self._budget.used, "remembered": self._memory.hits}


class _Budget:
    """Limits on calls and tokens. A call is counted before it is made, so that threads cannot exceed the limit."""

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
    """An answer that a thread has requested and others wait for."""

    def __init__(self):
        self.done = threading.Event()
        self.answer = None


class _Memory:
    """Answers by request, in memory and in the file ``path``, which is only appended to."""

    def __init__(self, path: Path | None, model: str | None):
        self.path = path
        self.model = model
        self.hits = 0
        self._lock = threading.Lock()
        self._answers: dict[str, Reply] = {}
        self._pending: dict[str, _Pending] = {}
        self._ending = b""  # a newline, if the last line of the file lacks it
        if path is not None and path.exists():
            self._load(path.read_bytes())
        if path is not None and model is not None:
            try:  # fails here, before any call is paid for
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
                return  # cut off by an interrupt
            raise self._no_recording(number) from None
        try:
            key, answer, tokens, model = _key(row["messages"]), row["answer"], row.get("tokens"), row.get("model")
            if not isinstance(answer, str):
                raise TypeError
            calls = [ToolCall(**call) for call in row.get("tool_calls", ())]
        except (KeyError, TypeError, AttributeError):
            raise self._no_recording(number) from None
        if self.model is None or model is None or model == self.model:
            self._answers[key] = Reply(answer, tokens, calls)

    def _no_recording(self, number: int) -> ArgumentError:
        return ArgumentError(f"`path`: line {number} of {self.path} is no recorded call.", argument="path")

    def get(self, messages: Messages, ask: Callable[[], Reply]) -> Reply:
        """Return the remembered answer, or that of ``ask()``; another thread with the same request waits for it."""
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
            pending.done.wait()  # afterwards it is remembered; or it failed, and this thread asks
        try:
            answer = ask()
            if isinstance(answer, str) and (answer.strip() or answer.calls):
                self._keep(key, messages, answer)
            return answer
        finally:
            with self._lock:
                del self._pending[key]
            mine.done.set()

    def _keep(self, key: str, messages: Messages, answer: Reply) -> None:
        row = {"model": self.model, "messages": messages, "answer": str(answer), "tokens": answer.tokens}
        if answer.calls:
            row["tool_calls"] = [{"name": c.name, "arguments": c.arguments, "id": c.id} for c in answer.calls]
        line = (json.dumps(row, ensure_ascii=False) + "\n").encode(errors="surrogatepass")
        with self._lock:
            self._answers[key] = answer
            if self.path is not None:
                with self.path.open("ab", buffering=0) as file:
                    file.write(self._ending + line)  # one write, so that a line is written whole or not at all
                self._ending = b""


_START = b'{"m'
"""The start of every line, also in files of earlier versions; it tells a truncated record from a foreign line."""


def _key(messages) -> str:
    return json.dumps([[m["role"], m["content"]] for m in messages], ensure_ascii=False)


def _recorded_form(messages: Messages, tools) -> Messages:
    """Return messages for a record: a file by the hash of its bytes, and the offered tools as one more message."""
    rows = [{"role": m["role"], "content": _recorded_content(m["content"])} for m in messages]
    return [*rows, {"role": "tools", "content": [tool.about for tool in tools.values()]}] if tools else rows


def _recorded_content(content):
    if isinstance(content, str):
        return content
    return [_recorded_file(part) if isinstance(part, File) else part for part in content]


def _recorded_file(file: File) -> dict:
    source = file.url if file.data is None else f"sha256:{sha256(file.data).hexdigest()}"
    return {"file": source, "media_type": file.media_type}


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
    """Return the seconds that the server asks to wait; None if it does not say."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    try:
        return max(0.0, float(headers["retry-after"]))  # type: ignore[index]
    except (TypeError, KeyError, ValueError):
        return None
