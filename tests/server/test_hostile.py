"""Requests that mean harm, as bytes on a socket."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.server.graphs import Graphs
from omnigraph.server.limits import ServerLimits
from omnigraph.server.service import Service
from tests.server.serving import Site, read_all, serving

HOST = b"Host: 127.0.0.1\r\n"
QUERY = b"POST /graphs/people/query HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"


@pytest.fixture(scope="module")
def strict(people: Path) -> Iterator[Site]:
    """A server with little patience."""
    limits = ServerLimits(header_seconds=0.5, json_bytes=4096)
    with serving(Service(Graphs({"people": str(people)}), limits)) as found:
        yield found


@pytest.mark.parametrize(
    "head",
    [
        QUERY + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        QUERY + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
        QUERY + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\n{}{}",
        QUERY + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        QUERY + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        QUERY + b"Content-Length: -1\r\n\r\n",
        QUERY + b"Content-Length: +4\r\n\r\n{}{}",
        QUERY + b"Content-Length : 4\r\n\r\n{}{}",
        QUERY + b" Content-Length: 4\r\n\r\n{}{}",
        QUERY + HOST + b"\r\n",
        b"GET /version HTTP/1.1\r\n\r\n",
        b"GET /version\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
def test_a_request_that_two_readers_would_read_differently_is_closed(
    strict: Site, head: bytes
) -> None:
    """What follows in the same bytes is no request of its own."""
    smuggled = b"GET /version HTTP/1.1\r\n" + HOST + b"\r\n"
    answer = strict.raw(head + smuggled, wait=3)
    assert b" 200 " not in answer, answer
    assert answer.startswith((b"HTTP/1.1 400", b"")), answer
    assert b"api" not in answer
    assert strict.get("/healthz").status == 200


def test_slow_headers_are_closed(strict: Site) -> None:
    with socket.create_connection(strict.address, timeout=5) as sock:
        sock.sendall(b"GET /version HTTP/1.1\r\n" + HOST)
        began = time.monotonic()
        for _ in range(20):
            time.sleep(0.1)
            try:
                sock.sendall(b"X-A: b\r\n")
            except OSError:
                break
        assert read_all(sock) == b""
    assert time.monotonic() - began < 5


def test_a_connection_that_says_nothing_is_closed(strict: Site) -> None:
    with socket.create_connection(strict.address, timeout=5) as sock:
        assert read_all(sock) == b""


@pytest.mark.parametrize(
    "head",
    [
        b"GET /version HTTP/1.1\r\n" + HOST + b"X-A: " + b"a" * (1 << 20) + b"\r\n\r\n",
        b"GET /version HTTP/1.1\r\n" + HOST + b"X-A: b\r\n" * 200 + b"\r\n",
        b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET /version?a=" + b"a" * (1 << 20) + b" HTTP/1.1\r\n" + HOST + b"\r\n",
    ],
)
def test_a_head_that_is_too_large_is_closed(strict: Site, head: bytes) -> None:
    try:
        answer = strict.raw(head, wait=5)
    except (ConnectionResetError, BrokenPipeError):
        return
    assert answer == b"" or answer.startswith(b"HTTP/1.1 413"), answer[:200]


@pytest.mark.parametrize(
    "path",
    [
        "/graphs/../../etc/passwd",
        "/graphs/%2e%2e/%2e%2e/etc/passwd",
        "/graphs/people%00",
        "/graphs/people%ff",
        "/graphs/people/entities/..%2f..?id=x",
        "/graphs/people/commits/..",
        "//graphs/people",
        "/graphs/people/",
        "/graphs//query",
    ],
)
def test_a_path_leads_nowhere_else(strict: Site, path: str) -> None:
    request = f"GET {path} HTTP/1.1\r\n".encode() + HOST + b"Connection: close\r\n\r\n"
    answer = strict.raw(request)
    assert answer.split(b" ")[1] in (b"400", b"404"), answer
    assert b"root:" not in answer
    assert b"Traceback" not in answer


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b'{"query": "' + b"a" * 5000 + b'"}', 413, "too_large"),
        (b"[" * 2000 + b"]" * 2000, 413, "too_large"),
        (b'{"a":' * 500 + b"1" + b"}" * 500, 413, "too_large"),
        (b'{"query": "\\ud800"}', 400, "invalid_argument"),
        (b'{"query": "\xff"}', 400, "invalid_argument"),
        (b'{"query": NaN}', 400, "invalid_argument"),
        (b'{"query": ', 400, "invalid_argument"),
        (b"", 400, "invalid_argument"),
        (b"\xef\xbb\xbf{}", 400, "invalid_argument"),
    ],
)
def test_a_body_that_is_no_json_is_refused(
    strict: Site, body: bytes, status: int, code: str
) -> None:
    found = strict.ask("POST", "/graphs/people/query", body, content_type="application/json")
    assert (found.status, found.code) == (status, code), found.body


def test_a_body_larger_than_it_says_it_may_be_is_not_read(strict: Site) -> None:
    head = QUERY + b"Content-Length: 10000000000\r\nExpect: 100-continue\r\n\r\n"
    answer = strict.raw(head, wait=3)
    assert answer.startswith(b"HTTP/1.1 413"), answer


def test_a_chunked_body_that_never_ends_is_cut(strict: Site) -> None:
    with socket.create_connection(strict.address, timeout=5) as sock:
        sock.sendall(QUERY + b"Transfer-Encoding: chunked\r\n\r\n")
        sent = 0
        try:
            while sent < 1 << 22:
                sock.sendall(b"1000\r\n" + b"a" * 4096 + b"\r\n")
                sent += 4096
        except OSError:
            pass
        answer = read_all(sock)
    assert not answer or answer.startswith(b"HTTP/1.1 413"), answer


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "169.254.169.254", ""])
def test_a_server_for_this_machine_has_no_other_name(strict: Site, host: str) -> None:
    request = f"GET /graphs/people HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
    answer = strict.raw(request)
    assert answer.startswith(b"HTTP/1.1 403"), answer
    assert json.loads(answer.split(b"\r\n\r\n", 1)[1])["code"] == "denied"


def test_pages_of_other_sites_are_refused(strict: Site) -> None:
    assert strict.get("/version", origin="https://evil.example").code == "denied"
    assert strict.get("/version", origin="null").code == "denied"
    assert strict.get("/version", origin="http://localhost:3000").status == 200


def test_answers_tell_nothing_of_the_machine(strict: Site, people: Path) -> None:
    for path in ("/graphs/people", "/graphs", "/version", "/graphs/people/manifest", "/whoami"):
        assert str(people) not in strict.get(path).body.decode()
