"""A server that lies: it passes requests on to a real one, and changes what that answers, one place
at a time, as a seed says."""

from __future__ import annotations

import gzip
import http.client
import json
import random
import threading
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from tests.hostile.test_fields import HOSTILE, places, replaced

LIES = (*HOSTILE, "\x1b]0;x\x07", "9" * 5000, "²", [[[]]], {"value": 1}, {"@kind": "date"}, 10**19)
HEADERS = ("5", "", "-1", "²", "9" * 5000, "x" * 60, "bytes 0-9/5", '"x"', "application/json")
_HOP = {"connection", "transfer-encoding", "content-length", "date", "server", "keep-alive"}


@dataclass(frozen=True)
class Told:
    """One answer."""

    status: int
    headers: dict[str, str]
    body: bytes


CODES: tuple[Any, ...] = (
    *("conflict", "invalid_data", "invalid_query", "merge_conflict", "outcome_unknown"),
    *("unsupported_change", "invalid_parameters", "range_not_satisfiable", "x" * 99, 5),
)
NAMES = (
    *("violations", "diagnostics", "conflicts", "steps", "problems", "manifest_conflict"),
    *("more", "commit", "limit", "message", "self", "help", "size", "retry_after", "error"),
)
Lie = Callable[[Told, random.Random], Told]


def lie_of_json(told: Told, draw: random.Random) -> Told:
    """One place of an object is something else; of a stream, one line."""
    kind = told.headers.get("content-type", "")
    if "json" not in kind:
        return lie_of_bytes(told, draw)
    lines = told.body.split(b"\n") if "jsonl" in kind or "event-stream" in kind else [told.body]
    number = draw.randrange(len(lines))
    try:
        value = json.loads(lines[number])
    except ValueError:
        return told
    path = draw.choice(list(places(value)))
    if path and draw.random() < 0.3:
        changed = _without(value, path)
    else:
        changed = replaced(value, path, draw.choice(LIES))
    lines[number] = json.dumps(changed).encode()
    return Told(told.status, told.headers, b"\n".join(lines))


def _without(value: Any, path: tuple[Any, ...]) -> Any:
    changed = replaced(value, path, None)
    held = changed
    for step in path[:-1]:
        held = held[step]
    del held[path[-1]]
    return changed


def lie_of_bytes(told: Told, draw: random.Random) -> Told:
    """Some bytes are others, or fewer, with a length that fits them."""
    data = bytearray(told.body)
    match draw.randrange(3) if data else 2:
        case 0:
            for _ in range(draw.randrange(1, 4)):
                data[draw.randrange(len(data))] = draw.randrange(256)
        case 1:
            del data[draw.randrange(len(data)) :]
        case _:
            data = bytearray(draw.choice((b"", b"{}", b"[]", b"null", b"\xff", b"<html>" * 99)))
    return Told(told.status, told.headers, bytes(data))


def lie_of_headers(told: Told, draw: random.Random) -> Told:
    headers = dict(told.headers)
    name = draw.choice(sorted(headers))
    if draw.random() < 0.3:
        del headers[name]
    else:
        headers[name] = draw.choice(HEADERS)
    return Told(told.status, headers, told.body)


def lie_of_status(told: Told, draw: random.Random) -> Told:
    status = draw.choice((200, 201, 202, 204, 206, 301, 304, 400, 401, 404, 409, 429, 500, 503))
    return Told(status, told.headers, told.body)


def lie_of_problem(told: Told, draw: random.Random) -> Told:
    """A problem with fields that nobody expects."""
    code = draw.choice(CODES)
    problem = {"code": code, "error": "no"}
    problem |= {name: draw.choice(LIES) for name in draw.sample(NAMES, 3)}
    headers = {"content-type": "application/problem+json", "retry-after": draw.choice(HEADERS)}
    return Told(draw.choice((400, 409, 422, 429, 503)), headers, json.dumps(problem).encode())


ALL: tuple[Lie, ...] = (
    *(lie_of_json,) * 5,
    lie_of_bytes,
    lie_of_headers,
    lie_of_status,
    lie_of_problem,
)


@dataclass
class Liar:
    """Tells one lie, at the `at`-th answer from now; then the truth. `about`: it lies of requests
    with this header alone."""

    upstream: str
    url: str = ""
    at: int = 1 << 60
    lie: Lie = lie_of_json
    draw: random.Random = field(default_factory=lambda: random.Random(0))
    said: str = ""
    about: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def change(self, told: Told, asked: Container[str]) -> Told:
        with self._lock:
            if self.about and self.about not in asked:
                return told
            self.at -= 1
            if self.at != 0:
                return told
            changed = self.lie(told, self.draw)
            self.said = f"{changed.status} {changed.headers} {changed.body[:2000]!r}"
            return changed


def _handler(liar: Liar) -> type[BaseHTTPRequestHandler]:
    host = urlsplit(liar.upstream).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass_on(self) -> None:
            size = int(self.headers.get("content-length") or 0)
            body = self.rfile.read(size)
            asked = {name: value for name, value in self.headers.items() if name.lower() != "host"}
            asked["accept-encoding"] = "identity"
            line = http.client.HTTPConnection(host, timeout=30)
            try:
                line.request(self.command, self.path, body or None, asked)
                answer = line.getresponse()
                headers = {name.lower(): value for name, value in answer.getheaders()}
                kept = {name: value for name, value in headers.items() if name not in _HOP}
                told = liar.change(
                    Told(answer.status, kept, answer.read()), set(map(str.lower, self.headers))
                )
            finally:
                line.close()
            self.send_response(told.status)
            for name, value in told.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(told.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(told.body)

        do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = _pass_on  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


@contextmanager
def lying(upstream: str) -> Iterator[Liar]:
    liar = Liar(upstream)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(liar))
    server.daemon_threads = True
    liar.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield liar
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def bomb(size: int) -> bytes:
    """So many bytes, in a thousandth of them."""
    return gzip.compress(b" " * size)
