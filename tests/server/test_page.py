"""The files of the web page, over a real socket."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.policy.credentials import BearerCredentials
from omnigraph.server.graphs import Graphs
from omnigraph.server.page import Page
from omnigraph.server.service import Service
from tests.server.serving import Site, serving

SCRIPT = b"export const answer = 42;\n" * 100


@pytest.fixture
def files(tmp_path: Path) -> Path:
    root = tmp_path / "web"
    (root / "vendor").mkdir(parents=True)
    (root / "index.html").write_text("<!doctype html><title>Graphs</title>")
    (root / "vendor" / "code.js").write_bytes(SCRIPT)
    (root / "notes.py").write_text("secret")
    (tmp_path / "outside.txt").write_text("secret")
    (root / "link.txt").symlink_to(tmp_path / "outside.txt")
    return root


@pytest.fixture
def page(files: Path, people: Path) -> Iterator[Site]:
    """A server that knows callers by tokens: the page itself is for anybody."""
    nobody = BearerCredentials(None, None, anonymous=None)
    graphs = Graphs({"people": str(people)})
    with serving(Service(graphs, credentials=nobody, guarded=True, page=Page(files))) as found:
        yield found


def test_the_page_may_run_only_what_the_server_sends(page: Site) -> None:
    found = page.get("/")
    assert (found.status, found.body) == (200, b"<!doctype html><title>Graphs</title>")
    assert found.headers["content-type"] == "text/html; charset=utf-8"
    assert found.headers["x-content-type-options"] == "nosniff"
    rules = found.headers["content-security-policy"].split("; ")
    assert {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} <= {*rules}
    assert not any("unsafe" in rule or "http" in rule for rule in rules)
    assert page.get("/graphs").status == 401


def test_a_file_comes_packed_and_once(page: Site) -> None:
    plain = page.get("/web/vendor/code.js", accept_encoding="identity")
    assert plain.body == SCRIPT
    assert "content-encoding" not in plain.headers
    assert plain.headers["content-type"].startswith("text/javascript")
    raw = page.raw(
        b"GET /web/vendor/code.js HTTP/1.1\r\nHost: localhost\r\n"
        b"Accept-Encoding: zstd, gzip\r\nConnection: close\r\n\r\n"
    )
    head, _, body = raw.partition(b"\r\n\r\n")
    assert b"content-encoding: gzip" in head.lower()
    assert gzip.decompress(body) == SCRIPT
    etag = plain.headers["etag"]
    for tags in (etag, f'"other", {etag}', f"W/{etag}", "*"):
        again = page.get("/web/vendor/code.js", if_none_match=tags)
        assert (again.status, again.body) == (304, b"")
    assert page.get("/web/vendor/code.js", if_none_match='"other"').status == 200
    asked = page.ask("HEAD", "/web/vendor/code.js", accept_encoding="identity")
    assert (asked.body, asked.headers["content-length"]) == (b"", str(len(SCRIPT)))


def test_a_file_that_has_changed_is_read_again(page: Site, files: Path) -> None:
    first = page.get("/").headers["etag"]
    (files / "index.html").write_text("<!doctype html><title>Other graphs</title>")
    assert b"Other graphs" in page.get("/", if_none_match=first).body


@pytest.mark.parametrize(
    "path",
    [
        "/web/",
        "/web/vendor",
        "/web/vendor/",
        "/web/nothing.js",
        "/web/notes.py",
        "/web/link.txt",
        "/web/vendor//code.js",
        "/web/.hidden.js",
        "/web//etc/passwd.txt",
    ],
)
def test_nothing_else_is_there(page: Site, path: str) -> None:
    found = page.get(path)
    assert (found.status, found.code) == (404, "not_found")


@pytest.mark.parametrize("path", ["/web/../outside.txt", "/web/vendor/../../outside.txt"])
def test_no_path_leads_out(page: Site, path: str) -> None:
    raw = page.raw(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    assert b" 404 " in raw.split(b"\r\n")[0]
    assert b"secret" not in raw


def test_a_server_may_be_without_a_page(people: Path) -> None:
    with serving(Service(Graphs({"people": str(people)}), page=None)) as site:
        assert site.get("/").status == 404
