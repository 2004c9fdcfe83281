"""Where a token comes from, and that it goes nowhere but to its server."""

from __future__ import annotations

import pickle
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import omnigraph
from omnigraph.client.address import read_address
from omnigraph.client.credentials import BearerToken, CredentialsFile, find_token
from omnigraph.client.remote_graph import RemoteGraph
from omnigraph.errors import (
    InvalidArgument,
    InvalidRoot,
    NotRemote,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
)
from omnigraph.settings import Settings

HERE = "https://graphs.example.com"
SECRET = "ogt_abc_0123456789"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"OMNIGRAPH_CREDENTIALS": str(tmp_path / "kept" / "credentials.json")}


def test_the_argument_wins_over_the_variable_and_this_over_the_file(
    environment: dict[str, str],
) -> None:
    assert find_token(HERE, None, environment) is None
    CredentialsFile(environment).keep(HERE, "from-file")
    variable = environment | {"OMNIGRAPH_TOKEN": "from-variable"}
    found = [
        find_token(HERE, None, environment),
        find_token(HERE, None, variable),
        find_token(HERE, "given", variable),
    ]
    assert [one.header() for one in found if one is not None] == [
        "Bearer from-file",
        "Bearer from-variable",
        "Bearer given",
    ]
    assert find_token("https://other.example.com", None, environment) is None


def test_the_file_is_for_its_user_alone(environment: dict[str, str]) -> None:
    kept = CredentialsFile(environment)
    kept.keep(HERE, "one")
    kept.keep("https://other.example.com", "two")
    assert kept.path.stat().st_mode & 0o777 == 0o600
    assert kept.path.parent.stat().st_mode & 0o777 == 0o700
    assert kept.forget(HERE)
    assert not kept.forget(HERE)
    assert kept.origins() == ["https://other.example.com"]
    kept.path.chmod(0o644)
    with pytest.raises(PermissionDenied, match="Others can read"):
        kept.token_of(HERE)


@pytest.mark.parametrize("text", ["[]", "{", '{"a": 1}', ""])
def test_a_file_that_holds_no_tokens_is_said_to_be_wrong(
    environment: dict[str, str], text: str
) -> None:
    kept = CredentialsFile(environment)
    kept.path.parent.mkdir()
    kept.path.write_text(text)
    kept.path.chmod(0o600)
    with pytest.raises(InvalidArgument, match="no file of tokens"):
        kept.token_of(HERE)


def test_a_token_is_never_shown_nor_pickled(g: RemoteGraph) -> None:
    token = BearerToken(SECRET)
    assert SECRET not in f"{token!r} {token}"
    for one in (token, g, g.branch("main"), g.snapshot(), g.transaction()):
        with pytest.raises(TypeError, match="pickled"):
            pickle.dumps(one)
    with pytest.raises(InvalidArgument):
        BearerToken("two\nlines")


@pytest.mark.parametrize(
    ("text", "uri"),
    [
        ("https://h/graphs/x", "https://h/graphs/x"),
        ("HTTPS://H:443/graphs/x/", "https://h/graphs/x"),
        ("https://h:8443/behind/a/proxy/graphs/x-1", "https://h:8443/behind/a/proxy/graphs/x-1"),
        ("http://127.0.0.1:8470/graphs/x", "http://127.0.0.1:8470/graphs/x"),
        ("http://[::1]:8470/graphs/x", "http://[::1]:8470/graphs/x"),
    ],
)
def test_an_address_is_read(text: str, uri: str) -> None:
    assert read_address(text).uri == uri


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("https://h/x", "names no graph"),
        ("https://h/graphs/", "names no graph"),
        ("https://h/graphs/A", "no name of a graph"),
        ("https://h/graphs/x?token=1", "goes on with"),
        ("https://u:secret@h/graphs/x", "no user and no password"),
        ("https://h:port/graphs/x", "no address"),
        ("https:///graphs/x", "no address"),
        ("http://10.0.0.1/graphs/x", "plain http"),
    ],
)
def test_what_is_no_address_is_refused_without_secrets(text: str, told: str) -> None:
    with pytest.raises(InvalidRoot, match=told) as caught:
        read_address(text)
    assert "secret" not in str(caught.value)


def test_plain_http_to_other_machines_is_a_setting() -> None:
    assert read_address("http://10.0.0.1/graphs/x", allow_http=True).origin == "http://10.0.0.1"
    assert Settings.from_environment({"OMNIGRAPH_ALLOW_HTTP": "1"}).allow_http


def test_what_a_server_decides_is_refused_at_an_address() -> None:
    for wrong in ({"actor": "ada"}, {"policy": object()}):
        with pytest.raises(NotRemote):
            omnigraph.open("https://h/graphs/x", **wrong)
    with pytest.raises(InvalidArgument, match="storage"):
        omnigraph.open("memory://x", token=SECRET)


@contextmanager
def answering(answer: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A server that says this to everything, and what it was asked."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                with client:
                    heard.append(client.recv(1 << 16))
                    client.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", heard


def test_a_redirect_is_refused_and_the_token_is_not_sent_on() -> None:
    with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}") as (elsewhere, other):
        moved = f"HTTP/1.1 307 Moved\r\nLocation: {elsewhere}/graphs/x\r\nContent-Length: 0\r\n\r\n"
        with answering(moved.encode()) as (url, heard):
            with pytest.raises(InvalidRoot, match="sends elsewhere"):
                omnigraph.open(f"{url}/graphs/x", token=SECRET)
            assert SECRET.encode() in heard[0]
        assert other == []


def test_an_error_that_repeats_the_token_does_not_show_it() -> None:
    body = b'{"code": "unauthenticated", "error": "What is ogt_abc_0123456789?", "help": ""}'
    head = (
        b"HTTP/1.1 401 No\r\nContent-Type: application/problem+json\r\nContent-Length: %d\r\n\r\n"
    )
    with (
        answering(head % len(body) + body) as (url, _),
        pytest.raises(Unauthenticated) as caught,
    ):
        omnigraph.open(f"{url}/graphs/x", token=SECRET)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 404 No\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello",
        b"SSH-2.0-OpenSSH_9.2\r\n",
    ],
)
def test_another_program_at_the_address_is_said_to_be_no_server(answer: bytes) -> None:
    with (
        answering(answer) as (url, _),
        pytest.raises((InvalidRoot, Unavailable)),
    ):
        omnigraph.open(f"{url}/graphs/x", settings=Settings(retry_for=0.2))


def test_a_server_that_is_not_there_is_told_soon() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(Unavailable, match="does not answer"):
        omnigraph.open(f"http://127.0.0.1:{port}/graphs/x", settings=Settings(retry_for=0.2))
