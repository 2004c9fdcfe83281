"""Owns requests to one server: one attempt, its answer or its error, and how attempts are repeated.

What may be sent again is decided by who asks; here is only what became of one attempt.
"""

from __future__ import annotations

import os
import re
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, NoReturn, TypeVar
from urllib.parse import urlencode
from weakref import WeakSet

import msgspec
import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NewConnectionError,
    SSLError,
)

from omnigraph.client.address import Address
from omnigraph.client.credentials import BearerToken
from omnigraph.errors import (
    BadAnswer,
    InvalidRoot,
    OmnigraphError,
    RateLimited,
    Unauthenticated,
    Unavailable,
)
from omnigraph.runtime import Runtime
from omnigraph.wire.problems import MEDIA_TYPE
from omnigraph.wire.remote_errors import error_of

T = TypeVar("T")
Query = Mapping[str, Any]
Body = bytes | IO[bytes] | None
CONNECT = 5.0
SILENCE = 120.0
"""Seconds without a byte after which an answer is given up."""
_FIRST_CONTACT = 3.0
"""Seconds in which a server that has never answered has to do so: its address may be wrong."""
_SHORTEST, _LONGEST = 0.05, 2.0
_KEEPALIVE = [
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 20),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
]
_GATEWAY = (502, 503, 504)
_NUMBER = re.compile(r"[0-9]{1,18}")
_MOST = 1 << 30
"""Bytes of an answer that is held as a whole. Packed, it may come as a thousandth of them."""
_PIECE = 1 << 20


class Lost(Exception):
    """An attempt without an answer. `sent`: the server may have had the whole request."""

    def __init__(self, reason: str, *, sent: bool, error: OmnigraphError | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.sent = sent
        self.error = error
        self.after = 0.0 if error is None else _seconds(error.details.get("retry_after"))


@dataclass(frozen=True)
class Answered:
    """An answer that is here as a whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        try:
            return msgspec.json.decode(self.body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise InvalidRoot(
                "What answers at this address is no server of OmniGraph: it gave no JSON.",
                help="Look at the address.",
            ) from None

    @property
    def object(self) -> dict[str, Any]:
        """One JSON object."""
        told = self.json
        if not isinstance(told, dict):
            raise BadAnswer("The server gave an answer that is no object of JSON.")
        return told

    @property
    def commit(self) -> str | None:
        """The commit that the answer is about."""
        return self.headers.get("omnigraph-commit")


class Connection:
    """Requests to the server of one address, from any thread and also after a fork."""

    def __init__(
        self, address: Address, token: BearerToken | None, runtime: Runtime, *, retry_for: float
    ) -> None:
        self.address = address
        self.runtime = runtime
        self.retry_for = retry_for
        self._token = token
        self._lock = threading.Lock()
        self._pool: urllib3.PoolManager | None = None
        self._process = 0
        self._has_answered = False
        self.followed: WeakSet[Any] = WeakSet()
        """Answers without an end, which end with the graph."""

    def __repr__(self) -> str:
        return f"Connection({self.address.origin!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "A graph on a server is not pickled: it has a token. Open it in the other process."
        )

    def close(self) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is None or self._process != os.getpid():
            return
        pool.clear()
        for response in list(self.followed):
            shut(response)

    # One attempt

    def once(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Body = None,
        headers: Mapping[str, str] | None = None,
        silence: float = SILENCE,
    ) -> Answered:
        """The answer; what the server says against it is raised; no answer is `Lost`."""
        response = self.begin(
            method, path, query=query, body=body, headers=headers, silence=silence
        )
        try:
            answer = Answered(response.status, response.headers, _read_all(response))
        except BaseException:
            response.close()
            raise
        response.release_conn()
        return answer

    def begin(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Body = None,
        headers: Mapping[str, str] | None = None,
        silence: float = SILENCE,
    ) -> urllib3.BaseHTTPResponse:
        """An answer whose body is still to be read, by who closes it."""
        url = self.address.origin + path
        if pairs := _pairs(query):
            url = f"{url}?{urlencode(pairs)}"
        sent = {"User-Agent": "omnigraph-client", "Accept": "application/json"}
        sent |= headers or {}
        if self._token is not None:
            sent["Authorization"] = self._token.header()
        try:
            response = self._pooled().request(
                method,
                url,
                body=body,
                headers=sent,
                timeout=urllib3.Timeout(connect=CONNECT, read=silence),
                retries=False,
                redirect=False,
                preload_content=False,
                decode_content=True,
            )
        except (NewConnectionError, ConnectTimeoutError) as error:
            raise Lost(f"{self._here} does not answer: {_reason(error)}.", sent=False) from None
        except SSLError as error:
            raise Unavailable(
                f"{self._here} cannot be trusted: {_reason(error)}.",
                help="Look at its certificate, and at SSL_CERT_FILE.",
            ) from None
        except (HTTPError, OSError) as error:
            raise Lost(
                f"The connection to {self._here} was lost: {_reason(error)}.", sent=True
            ) from None
        if not _has_end(response):
            response.close()
            raise Lost(f"The answer of {self._here} broke off in its headers.", sent=True)
        self._has_answered = True
        if response.status >= 300 and response.status != 304:
            try:
                self._refuse(response)
            finally:
                response.close()
        return response

    def _refuse(self, response: urllib3.BaseHTTPResponse) -> NoReturn:
        status = response.status
        kind = response.headers.get("content-type", "").split(";")[0]
        if kind == MEDIA_TYPE:
            error = self._told(_read_all(response))
            wait = response.headers.get("retry-after", "")
            if _NUMBER.fullmatch(wait):
                error.details["retry_after"] = int(wait)
            if status in _GATEWAY or status == 429:
                raise Lost(error.message, sent=error.applied is not False, error=error)
            raise error
        if 300 <= status < 400:
            raise InvalidRoot(
                f"{self._here} sends elsewhere ({status}), and a token is sent to one server only.",
                help="Open the address that it should be.",
            )
        if status in _GATEWAY:
            raise Lost(f"{self._here} answered {status}.", sent=True)
        if status == 429:
            raise Lost(f"{self._here} answered 429.", sent=False, error=RateLimited("Too many."))
        if status in (401, 407):
            raise Unauthenticated(f"{self._here} wants to know who asks ({status}).")
        raise InvalidRoot(
            f"{self._here} is no server of OmniGraph: it answered {status} to {response.url}.",
            help="Look at the address.",
        )

    def _told(self, data: bytes) -> OmnigraphError:
        try:
            problem = msgspec.json.decode(data, type=dict[str, Any])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return Unavailable(f"{self._here} gave an error that cannot be read.")
        if self._token is not None:
            for name in ("error", "help"):
                problem[name] = self._token.hidden_in(str(problem.get(name) or ""))
        return error_of(problem)

    def _pooled(self) -> urllib3.PoolManager:
        """A pool of this process: two processes must never talk on one connection."""
        with self._lock:
            if self._pool is None or self._process != os.getpid():
                self._process = os.getpid()
                self._pool = urllib3.PoolManager(
                    num_pools=1, maxsize=32, socket_options=_KEEPALIVE, retries=False
                )
            return self._pool

    @property
    def _here(self) -> str:
        return self.address.origin

    # Several attempts

    def repeat(self, attempt: Callable[[], T], *, patience: float | None = None) -> T:
        """An attempt that changes nothing, until it is answered."""
        pauses = Pauses(self, self.retry_for if patience is None else patience)
        while True:
            try:
                return attempt()
            except Lost as lost:
                if not pauses.take(lost):
                    raise failure_of(lost) from None

    def new_key(self) -> str:
        """A key that no other write of this actor has."""
        return key_of_id(self.runtime.ulid())


class Pauses:
    """The waiting between attempts: longer each time, never two clients alike, and no longer than
    the patience of the caller."""

    def __init__(self, connection: Connection, patience: float) -> None:
        self._connection = connection
        self._began = connection.runtime.monotonic()
        self._patience = patience
        self._taken = 0

    @property
    def left(self) -> float:
        patience = self._patience
        if not self._connection._has_answered:  # noqa: SLF001
            patience = min(patience, _FIRST_CONTACT)
        return patience - (self._connection.runtime.monotonic() - self._began)

    def take(self, lost: Lost) -> bool:
        """Waits; False if there is no time left. What will not change is raised."""
        if lost.error is not None and not (lost.error.retryable or lost.error.applied is None):
            raise lost.error from None
        runtime = self._connection.runtime
        pause = min(_LONGEST, _SHORTEST * 2**self._taken) * (0.5 + runtime.random())
        pause = max(pause, min(lost.after, 30.0))
        if pause >= self.left:
            return False
        self._taken += 1
        runtime.sleep(pause)
        return True


def _seconds(told: Any) -> float:
    """How long to wait, if that was said."""
    known = isinstance(told, int | float) and 0 <= told <= 1e9
    return float(told) if known else 0.0


def key_of_id(id: str) -> str:
    return f"client/{id}"


def failure_of(lost: Lost) -> OmnigraphError:
    """The error of an attempt that was repeated in vain, and changed nothing."""
    if lost.error is not None:
        return lost.error
    return Unavailable(lost.reason, help="Is it running there? Try again later.")


def shut(response: urllib3.BaseHTTPResponse) -> None:
    """Ends an answer that another thread may be waiting for."""
    try:
        if isinstance(response, urllib3.HTTPResponse):
            response.shutdown()
    except (OSError, ValueError, RuntimeError):
        response.close()


def _has_end(response: urllib3.BaseHTTPResponse) -> bool:
    """Whether the headers say where the body ends. Python takes a connection that is cut between
    two headers for the end of them, and then what follows for whole, however short."""
    if response.status in (204, 304):
        return True
    chunked = response.headers.get("transfer-encoding", "").lower() == "chunked"
    return chunked or _NUMBER.fullmatch(response.headers.get("content-length", "")) is not None


def _read_all(response: urllib3.BaseHTTPResponse) -> bytes:
    pieces, size = [], 0
    try:
        for piece in response.stream(_PIECE):
            size += len(piece)
            if size > _MOST:
                raise BadAnswer(f"The server gave an answer of more than {_MOST:,} bytes.", help="")
            pieces.append(piece)
        return b"".join(pieces)
    except (HTTPError, OSError) as error:
        raise Lost(f"The answer broke off: {_reason(error)}.", sent=True) from None


def _pairs(query: Query | None) -> list[tuple[str, str]]:
    """Names and values of an address; None is left out, and a list is a name several times."""
    found: list[tuple[str, str]] = []
    for name, value in (query or {}).items():
        several = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        found += [(name, _text(one)) for one in several if one is not None]
    return found


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _reason(error: BaseException) -> str:
    """The last cause in a few words, without addresses of objects."""
    inner = error
    while (deeper := inner.__cause__ or inner.__context__) is not None:
        inner = deeper
    if isinstance(inner, OSError) and inner.strerror:
        return inner.strerror.lower() if not inner.strerror.isupper() else inner.strerror
    text = str(inner).split(" object at ")[0].strip() or type(inner).__name__
    return text.rstrip(".")[:200]
