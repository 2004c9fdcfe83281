"""A server on a real socket, in a thread of the test's process, and the simplest client for it."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import urllib3
import uvicorn

from omnigraph.server.app import make_app
from omnigraph.server.door import configure
from omnigraph.server.service import Service


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """That of the problem, which every error is."""
        assert self.headers["content-type"] == "application/problem+json", self.body
        problem = self.json
        assert problem["type"] == f"urn:omnigraph:{problem['code']}"
        assert problem["status"] == self.status
        assert problem["request_id"] in (None, self.headers.get("x-request-id"))
        return str(problem["code"])


class Site:
    """A server that runs; `url` is its address."""

    def __init__(self, url: str, service: Service) -> None:
        self.url = url
        self.service = service
        self.pool = urllib3.PoolManager(retries=False)

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.url.removeprefix("http://").rpartition(":")
        return host, int(port)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Names of headers are written with _; a body that is no bytes goes as JSON."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            named.setdefault("content-type", "application/json")
        found = self.pool.request(
            method, self.url + path, body=body, headers=named, decode_content=True
        )
        return Answer(found.status, found.headers, found.data)

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        return self.ask("POST", path, {} if body is None else body, **headers)

    def raw(self, data: bytes, *, wait: float = 10.0) -> bytes:
        """Everything that comes back for these bytes, until the server closes or says no more."""
        with socket.create_connection(self.address, timeout=wait) as sock:
            sock.sendall(data)
            return read_all(sock)


def read_all(sock: socket.socket) -> bytes:
    parts = []
    while True:
        try:
            part = sock.recv(65536)
        except (TimeoutError, ConnectionResetError):
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts)


@contextmanager
def serving(service: Service) -> Iterator[Site]:
    server = uvicorn.Server(configure(make_app(service), service.limits))
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.005)
        try:
            yield Site(f"http://127.0.0.1:{port}", service)
        finally:
            server.should_exit = True
            server.force_exit = True
            thread.join(timeout=10)
