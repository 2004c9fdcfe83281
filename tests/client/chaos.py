"""A line between client and server that breaks: what is cut, when, and what is answered instead, is
drawn from a seed for each connection."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_BUSY = b"HTTP/1.1 %d Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_PIECE = 4096


@dataclass
class Line:
    """`rate` is the share of connections that break. `fates` counts what became of them."""

    upstream: tuple[str, int]
    seed: int = 0
    rate: float = 0.5
    most: int = 3_000
    hang: float = 0.2
    fates: Counter[str] = field(default_factory=Counter)
    url: str = ""

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _fate(self) -> tuple[str, int]:
        with self._lock:
            if self._random.random() >= self.rate:
                fate, after = "whole", 1 << 62
            else:
                fate = self._random.choice(
                    ("no_request", "no_answer", "hang", "status", *4 * ("in_answer",))
                )
                after = self._random.randrange(1, self.most)
            self.fates[fate] += 1
            return fate, after

    def _serve(self, client: socket.socket) -> None:
        fate, after = self._fate()
        with client, contextlib.suppress(OSError):
            if fate == "no_request":
                client.recv(_PIECE)
                return
            if fate == "status":
                client.recv(1 << 16)
                with self._lock:
                    status = self._random.choice((502, 503, 504))
                client.sendall(_BUSY % status)
                return
            with socket.create_connection(self.upstream) as server:
                back = threading.Thread(target=_pour, args=(server, client, fate, after, self))
                back.start()
                with contextlib.suppress(OSError):
                    while data := client.recv(_PIECE):
                        server.sendall(data)
                    server.shutdown(socket.SHUT_WR)
                back.join()


def _pour(server: socket.socket, client: socket.socket, fate: str, after: int, line: Line) -> None:
    """The answers, up to the place where the connection breaks: the server has done its work."""
    with contextlib.suppress(OSError):
        while data := server.recv(_PIECE):
            if fate == "hang":
                time.sleep(line.hang)
            if fate in ("no_answer", "hang"):
                break
            if len(data) >= after:
                client.sendall(data[:after])
                break
            after -= len(data)
            client.sendall(data)
        client.shutdown(socket.SHUT_RDWR)


@contextmanager
def breaking(url: str, *, seed: int, rate: float = 0.5, most: int = 3_000) -> Iterator[Line]:
    """A line to the server at an address."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    line = Line((host, int(port)), seed, rate, most)
    try:
        yield line
    finally:
        line.close()
