"""What is no fault of this program has its sentence and its exit code (docs/user/errors.md)."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import (
    Corrupt,
    GraphNotFound,
    NotFound,
    OutOfMemory,
    PermissionDenied,
    Unavailable,
    UnsafeStore,
)
from omnigraph.settings import Settings
from omnigraph.store.lance_errors import explain
from tests.bench.proxy import Proxy, Rule
from tests.bench.s3 import S3Server
from tests.cli.world import Program
from tests.hostile.world import SETTINGS, build_graph

SCHEMA = "node P { name: String @key }\n"


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    root = tmp_path / "graph"
    omnigraph.init(root, schema=SCHEMA, settings=SETTINGS).close()
    (tmp_path / "s.pg").write_text(SCHEMA)
    return root


def program(graph: Path, *words: str, **environment: str) -> Any:
    return Program(environment={"OMNIGRAPH_ROOT": str(graph), **environment})(words)


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_hard_links_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def link(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(UnsafeStore, match="makes no hard links") as told:
        omnigraph.init(tmp_path / "graph", schema=SCHEMA, settings=SETTINGS)
    assert told.value.exit_code == 7


def test_a_limit_of_threads_is_told_and_is_no_damage(
    graph: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    ran = program(graph, "verify")
    assert (ran.code, "No more threads" in ran.err) == (7, True), ran


@pytest.mark.parametrize(
    ("text", "kind", "code"),
    [
        ("failed to spawn thread: Os { code: 11, kind: WouldBlock }", OutOfMemory, 7),
        ("Generic S3 error: error sending request for url (http://x/y)", Unavailable, 7),
        ("LanceError(IO): ... Server returned non-2xx status code: 503 Service", Unavailable, 7),
        ("Generic S3 error: operation timed out", Unavailable, 7),
        ("<Code>NoSuchBucket</Code>", GraphNotFound, 3),
        ("Generic S3 error: 403 Forbidden: AccessDenied", PermissionDenied, 5),
        ("Object at location data/x.lance not found", Corrupt, 1),
    ],
)
def test_what_lance_says_of_a_store_has_the_code_of_its_kind(
    text: str, kind: type[Exception], code: int
) -> None:
    told = explain(OSError(text), "nodes/x", None)
    assert (type(told), told.exit_code) == (kind, code)


@pytest.mark.s3
def test_a_missing_bucket_is_not_found(
    s3_environment: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "s.pg").write_text(SCHEMA)
    root = "s3://no-such-bucket-here/x"
    for words in (["log"], ["verify"], ["init", "--schema", str(tmp_path / "s.pg")]):
        ran = Program()(["--root", root, *words])
        assert ran.code == 3, (words, ran)
        assert "no-such-bucket-here" in ran.err


@pytest.mark.slow
@pytest.mark.s3
def test_a_store_that_fails_inside_lance_is_unavailable(proxied_root: str, proxy: Proxy) -> None:
    settings = Settings(request_timeout=2.0)
    with omnigraph.init(proxied_root, schema=SCHEMA, settings=settings) as g:
        g.mutate('insert P { name: "a" }')
    rule = Rule("status", verb="GET", key_class="data", times=None)
    with proxy.rules(rule), omnigraph.open(proxied_root, settings=settings) as g:
        began = time.monotonic()
        with pytest.raises(Unavailable) as told:
            list(g.snapshot().scan("P"))
    assert told.value.exit_code == 7
    assert time.monotonic() - began >= 1.5


@pytest.mark.s3
@pytest.mark.parametrize("key_class", ["version", "data"])
def test_requests_are_tried_for_as_long_as_the_setting_says(
    proxied_root: str, proxy: Proxy, key_class: Any
) -> None:
    """More than the four tries, or the second, after which it was given up."""
    settings = Settings(request_timeout=20.0)
    with omnigraph.init(proxied_root, schema=SCHEMA, settings=settings) as g:
        g.mutate('insert P { name: "a" }')
    rule = Rule("status", verb="GET", key_class=key_class, times=6)
    with proxy.rules(rule), omnigraph.open(proxied_root, settings=settings) as g:
        assert [row for batch in g.snapshot().scan("P") for row in batch.to_pylist()]


@pytest.mark.parametrize("root", ["gs://nobody-has-this/x", "az://nobody-has-this/x"])
def test_a_store_without_credentials_names_its_own_variables(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(os.environ):
        if name.startswith(("AWS_", "GOOGLE_", "AZURE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("OMNIGRAPH_REQUEST_TIMEOUT", "1")
    ran = Program()(["--root", root, "log"])
    assert ran.code in (5, 7), ran
    assert "AWS_" not in ran.err
    assert "bug" not in ran.err


FOREIGN = b"\xff\xfe"


@pytest.mark.parametrize(
    ("name", "content", "words", "code"),
    [
        ("h.csv", b"na\xffme\nx\n", ["load", "h.csv", "--type", "P"], 6),
        ("v.csv", b"name\n\xff\n", ["load", "v.csv", "--type", "P"], 6),
        ("m.toml", b'x = "\xff"', ["load", ".", "--mapping", "m.toml"], 2),
        ("bad.pg", b"node \xff {}", ["schema", "plan", "bad.pg"], 2),
        ("bad.gq", b"match \xff", ["query", "bad.gq"], 2),
        ("bad.jsonl", b'{"type":"P","name":"\xff"}', ["load", "bad.jsonl"], 6),
        ("omnigraph.toml", b'root = "\xff"', ["log"], 2),
    ],
)
def test_a_file_that_is_no_utf8_is_told_by_its_name(
    graph: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    content: bytes,
    words: list[str],
    code: int,
) -> None:
    place = graph.parent / "files"
    place.mkdir()
    (place / name).write_bytes(content)
    monkeypatch.chdir(place)
    ran = program(graph, *words)
    assert ran.code == code, ran
    assert name in ran.err
    assert "UTF" in ran.err or "utf-8" in ran.err


def test_a_working_directory_that_is_gone_is_told(graph: Path, tmp_path: Path) -> None:
    """In a process of its own: a directory cannot be left that is gone."""
    script = (
        "import os, sys\n"
        f"os.chdir({str(tmp_path)!r}); os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')\n"
        "from omnigraph.cli.run import run\n"
        "for words in (['log'], ['--root', 'x', 'log'], ['export', 'out.jsonl'],\n"
        "              ['load', 'x.jsonl'], ['init', '--schema', 's.pg'], ['copy', 'there']):\n"
        "    print(words, run(words))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=dict(os.environ) | {"OMNIGRAPH_ROOT": str(graph), "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    codes = [line.rsplit(" ", 1)[1] for line in done.stdout.splitlines() if line.startswith("[")]
    assert codes == ["0", "2", "2", "3", "3", "2"], done
    assert "bug" not in done.stderr
    assert "directory is gone" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
@pytest.mark.parametrize("words", [["--help"], ["log", "--help"], ["version"], ["log"], ["branch"]])
def test_an_output_that_is_full_is_told(graph: Path, words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "omnigraph", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=120,
            env=dict(os.environ)
            | {"OMNIGRAPH_ROOT": str(graph), "PYTHONPATH": ":".join(filter(None, sys.path))},
        )
    assert done.returncode == 7, done
    assert "No space is left for the output" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("root", ["~nosuch", "~nosuch/x", "~no such"])
def test_the_home_of_nobody_is_told(root: str) -> None:
    ran = Program()(["--root", root, "log"])
    assert (ran.code, "no user of this name" in ran.err) == (2, True), ran


def test_a_missing_graph_that_was_there_is_told(tmp_path: Path) -> None:
    build_graph(tmp_path / "graph")
    with omnigraph.open(tmp_path / "graph", settings=SETTINGS) as g:
        shutil.rmtree(tmp_path / "graph")
        with pytest.raises((Corrupt, NotFound)):
            list(g.snapshot().scan("Person"))


def test_no_name_in_an_error_or_an_entity_moves_the_cursor(tmp_path: Path) -> None:
    root, name = tmp_path / "graph", "a\x1b]0;x\x07\x9b2J\u202e"
    with omnigraph.init(root, schema="node T { name: String @key }\n") as g:
        g.load([{"name": name}], type="T", engine="local")
    for words in (["load", "no" + name], ["entity", "T", name], ["entity", "T", "b" + name]):
        ran = program(root, *words)
        for sign in "\x1b\x07\x9b\u202e":
            assert sign not in ran.out + ran.err, words
