"""Owns the requests to one address: what is retried, for how long, and how failures are worded.

No message shows the key, not even when the other side repeats it.
"""

from __future__ import annotations

import urllib.request
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NoReturn, TypeVar
from urllib.parse import urlsplit

import msgspec
import urllib3

from omnigraph.errors import (
    InvalidEmbedding,
    ProviderRefused,
    ProviderUnavailable,
    TextRefused,
)
from omnigraph.runtime import Runtime
from omnigraph.settings import check_address

T = TypeVar("T")
_BUSY = frozenset({408, 409, 425, 429})
_TEXT = frozenset({400, 413, 422})
_NONSENSE_TRIES = 3
_SHORTEST, _LONGEST = 0.25, 20.0
_MOST = 512 * 1024 * 1024
_SHOWN = 300
_PIECE = 1024 * 1024
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What is wrong with an answer that is no JSON, or too deep."""
_LOOK_AT_KEY = "Look at the key: OMNIGRAPH_EMBED_KEY or OPENAI_API_KEY."
_LOOK_AT_ADDRESS = "Look at the address (OMNIGRAPH_EMBED_URL) and at the model's name."


class Nonsense(Exception):
    """An answer that came and cannot be used. The next one may be better."""


class _RetryLater(Exception):
    """The other side is down or busy. `after` is how many seconds it asks us to wait."""

    def __init__(self, reason: str, after: float = 0.0) -> None:
        super().__init__(reason)
        self.after = after


class Endpoint:
    """Posts JSON to an address, from any thread."""

    def __init__(
        self, address: str, runtime: Runtime, *, request_timeout: float, retry_for: float
    ) -> None:
        check_address(address)
        self.address = address
        self._runtime = runtime
        self._request_timeout = request_timeout
        self._retry_for = retry_for

    def ask(
        self,
        question: Mapping[str, Any],
        key: str,
        read: Callable[[bytes], T],
        *,
        within: float | None = None,
    ) -> T:
        """Returns what `read` makes of the answer. While the other side is down, busy or answers
        nonsense, the request is retried with jitter until the deadline."""
        body = msgspec.json.encode(question)
        allowed = self._retry_for if within is None else within
        deadline = self._runtime.monotonic() + allowed
        tries, nonsense = 0, 0
        reason: Exception
        while True:
            tries += 1
            try:
                return read(self._post(body, key, deadline))
            except Nonsense as error:
                nonsense += 1
                if nonsense == _NONSENSE_TRIES:
                    raise self._nonsense(error, key) from error
                after, reason = 0.0, error
            except _RetryLater as error:
                after, reason = error.after, error
            wait = max(after, self._jittered(tries))
            if self._runtime.monotonic() + wait >= deadline:
                self._give_up(reason, tries, allowed, key)
            self._runtime.sleep(wait)

    def _jittered(self, tries: int) -> float:
        longest: float = min(_LONGEST, _SHORTEST * 2.0 ** min(tries, 10))
        return longest * (0.5 + self._runtime.random() / 2)

    def _post(self, body: bytes, key: str, deadline: float) -> bytes:
        left = max(0.001, deadline - self._runtime.monotonic())
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        try:
            answer = _pool(self.address).request(
                "POST",
                self.address,
                body=body,
                headers=headers,
                timeout=min(self._request_timeout, left),
                retries=False,
                redirect=False,
                preload_content=False,
            )
            with answer:
                data = self._read_all(answer, deadline)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise _RetryLater(_told(error)) from None  # its message may contain headers
        if answer.status != 200:
            self._refuse(answer, data, key)
        return data

    def _read_all(self, answer: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
        """A timeout applies to each piece, so a sender of one byte at a time could go on for
        ever."""
        pieces, size = [], 0
        while piece := answer.read1(_PIECE, decode_content=True):
            pieces.append(piece)
            size += len(piece)
            if size > _MOST:
                raise Nonsense(f"the answer is longer than {_MOST} bytes")
            if self._runtime.monotonic() > deadline:
                raise _RetryLater("the answer takes too long")
        answer.release_conn()  # read to the end, so the next request can use the connection
        return b"".join(pieces)

    def _refuse(self, answer: urllib3.BaseHTTPResponse, data: bytes, key: str) -> NoReturn:
        status, shown = answer.status, _excerpt(data, key)
        if status in _BUSY or status >= 500:
            raise _RetryLater(
                f"status {status}{shown}", _retry_after(answer.headers.get("Retry-After"))
            )
        message = f"{self.address} refuses: status {status}{shown}."
        if status in _TEXT:
            raise TextRefused(message)
        denied = status in (401, 403)
        raise ProviderRefused(message, help=_LOOK_AT_KEY if denied else _LOOK_AT_ADDRESS)

    def _nonsense(self, error: Exception, key: str) -> InvalidEmbedding:
        told = _without(key, str(error))
        return InvalidEmbedding(
            f"{self.address} answers nonsense, {_NONSENSE_TRIES} times: {told}.",
            help=_LOOK_AT_ADDRESS,
        )

    def _give_up(self, reason: Exception, tries: int, allowed: float, key: str) -> NoReturn:
        times = "once" if tries == 1 else f"{tries} times"
        message = (
            f"{self.address} gave no embeddings within {allowed:g} s (asked {times}): "
            f"{_without(key, str(reason))}."
        )
        if isinstance(reason, Nonsense):
            raise InvalidEmbedding(message) from reason
        raise ProviderUnavailable(message) from None


@lru_cache(maxsize=16)
def _pool(address: str) -> urllib3.PoolManager:
    """The connections of the process, through the proxy that the environment names."""
    parts = urlsplit(address)
    proxy = urllib.request.getproxies().get(parts.scheme)
    if proxy and not urllib.request.proxy_bypass(parts.hostname or ""):
        return urllib3.ProxyManager(proxy, maxsize=8)
    return urllib3.PoolManager(maxsize=8)


def _told(error: Exception) -> str:
    """What failed, in a word or two, without the objects that urllib3 prints."""
    match error:
        case urllib3.exceptions.NewConnectionError() | ConnectionRefusedError():
            return "nobody answers there"
        case urllib3.exceptions.TimeoutError() | TimeoutError():
            return "it does not answer in time"
        case urllib3.exceptions.SSLError():
            return "the connection cannot be made safe (TLS)"
        case _:
            return f"the connection broke ({type(error).__name__})"


def _excerpt(data: bytes, key: str) -> str:
    """What the other side says about the failure, in one line. The key goes before anything is
    cut: half of it would be shown."""
    text = data.decode("utf-8", "replace")
    try:
        text = str(msgspec.json.decode(data)["error"]["message"])
    except (*UNREADABLE, TypeError, KeyError, IndexError):
        pass
    text = _without(key, text)[: 16 * _SHOWN]
    line = "".join(c if c.isprintable() else " " for c in text)
    line = " ".join(line.split())
    return f": {line[:_SHOWN].rstrip('.')}" if line else ""


def _without(key: str, text: str) -> str:
    return text.replace(key, "***") if key else text


def _retry_after(text: str | None) -> float:
    try:
        return max(0.0, float(text or 0))
    except ValueError:
        return 0.0  # a date: our own pause will do
