"""A provider of embeddings that speaks OpenAI's API over real HTTP, and misbehaves on demand.

A vector is made from the text's hash, so that the same text has the same vector and a test can
say which it has to be. Every request is written down.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np


def vector_of(text: str, dimension: int) -> list[float]:
    """What the provider answers, before it is brought to length 1."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return [float(x) for x in np.random.default_rng(seed).normal(size=dimension) * 3]


def unit_vector_of(text: str, dimension: int) -> list[float]:
    """What must be stored."""
    vector = np.array(vector_of(text, dimension))
    return [float(x) for x in (vector / np.linalg.norm(vector)).astype(np.float32)]


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def texts(self) -> list[str]:
        return list(self.body["input"])


@dataclass
class Provider:
    """`faults` are used up one a request, first to last; `always` is there when they are. `bad`
    are texts that it refuses. `raw` is answered as it is: status, headers, body."""

    url: str = ""
    dimension: int = 8
    faults: list[str] = field(default_factory=list)
    always: str = ""
    bad: frozenset[str] = frozenset()
    key: str = ""
    raw: tuple[int, dict[str, str], bytes] | None = None
    requests: list[Request] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    let_go: threading.Event = field(default_factory=threading.Event)

    @property
    def texts(self) -> list[str]:
        """All that were answered or refused, as they came."""
        return [text for request in self.requests for text in request.texts]

    def next_fault(self) -> str:
        with self.lock:
            return self.faults.pop(0) if self.faults else self.always


@contextmanager
def provider(**given: Any) -> Iterator[Provider]:
    told = Provider(**given)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (_Handler,), {"told": told}))
    server.daemon_threads = True
    told.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield told
    finally:
        told.let_go.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    told: Provider

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.told.lock:
            self.told.requests.append(Request(self.path, dict(self.headers), body))
        texts, fault = body["input"], self.told.next_fault()
        if self.told.raw is not None:
            status, headers, data = self.told.raw
            self.send_bytes(status, data, headers)
        elif self.told.key and self.headers.get("Authorization") != f"Bearer {self.told.key}":
            shown = self.headers.get("Authorization", "nothing")
            self.send(401, {"error": {"message": f"Wrong key: {shown}"}})
        elif any(text in self.told.bad for text in texts):
            self.send(400, {"error": {"message": "This input is too long."}})
        elif fault in ("hang", "cut", "drip"):
            self.break_off(fault)
        elif fault.isdigit():
            headers = {"Retry-After": "7"} if fault == "429" else {}
            self.send(int(fault), {"error": {"message": f"told to fail by {fault}"}}, headers)
        elif fault == "redirect":
            self.send(302, {}, {"Location": "http://127.0.0.1:1/elsewhere"})
        else:
            dimension = body.get("dimensions", self.told.dimension)
            self.send_bytes(200, _answer(fault, texts, dimension))

    def break_off(self, fault: str) -> None:
        self.close_connection = True
        if fault == "hang":
            self.told.let_go.wait(30)
        if fault == "drip":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            with contextlib.suppress(OSError):
                while not self.told.let_go.wait(0.02):
                    self.wfile.write(b" ")
                    self.wfile.flush()

    def send(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        self.send_bytes(status, json.dumps(body).encode(), headers)

    def send_bytes(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(OSError):  # who has heard enough goes
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _answer(fault: str, texts: list[str], dimension: int) -> bytes:
    size = dimension + (fault == "wrong_dimension")
    data: list[dict[str, Any]] = [
        {"object": "embedding", "index": n, "embedding": vector_of(text, size)}
        for n, text in enumerate(texts)
    ]
    match fault:
        case "not_json":
            return b"<html>welcome</html>"
        case "other_json":
            return b'{"data": "none"}'
        case "huge":
            first = str(data[0]["embedding"][0])
            return json.dumps({"data": data}).replace(first, "1e999").encode()
        case "nan":
            data[0]["embedding"][0] = float("nan")
        case "zero":
            data[0]["embedding"] = [0.0] * dimension
        case "too_few":
            data = data[:-1]
        case "same_index":
            data = [one | {"index": 0} for one in data]
        case "backwards":
            data = data[::-1]
        case _:
            pass
    return json.dumps({"object": "list", "data": data}).encode()
