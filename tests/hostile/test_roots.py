"""Roots: what is no address, what could be two, what is secret, and what others may have put."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import obstore
import pytest

import omnigraph
from omnigraph.errors import InvalidRoot, OmnigraphError, Unavailable
from omnigraph.settings import Settings
from omnigraph.store.queue import LocalQueue
from omnigraph.store.roots import parse_root
from tests.bench.s3 import S3Server

SCHEMA = "node A { name: String @key t: String? @index }\n"


@pytest.mark.parametrize(
    "text",
    [
        "s3://b/run#1",
        "s3://b/run?x=1",
        "s3://b/a%2Fb",
        "s3://b/a\\b",
        "s3://b/a/../c",
        "s3://b/..",
        "s3://b/./c",
        "s3://b/\x01",
        "s3://b/\udc80",
        "s3a://b/x/../y",
        "gs://b/x#1",
        "file:///tmp/run#1",
        "file:///tmp/a/../b",
        "file:///tmp/a/%2e%2e/b",
        "file://elsewhere/tmp",
        "~nosuchuser/graph",
        "\udc80/graph",
        "a\0b",
    ],
)
def test_an_address_that_could_mean_two_places_is_refused(text: str) -> None:
    with pytest.raises(InvalidRoot) as told:
        parse_root(text, {})
    assert told.value.message.endswith(".")


def test_names_in_memory_that_differ_are_two_graphs() -> None:
    names = ["a#1", "a#2", "a/b", "a_b", "a b", "..", "a#", "a%23", "a_23", "A", "a"]
    assert len({parse_root(f"memory://{name}").uri for name in names}) == len(names)
    parents = {Path(parse_root(f"memory://{name}").uri).parent for name in names}
    assert len(parents) == 1
    assert parents.isdisjoint(parse_root(f"memory://{name}").directory for name in names)


@pytest.mark.s3
@pytest.mark.parametrize("name", ["données", "a b", "a+b=c", "a&b", "日本"])
def test_an_unusual_prefix_holds_all_of_its_graph(
    s3_environment: S3Server, s3_prefix: str, name: str
) -> None:
    with omnigraph.init(s3_environment.url(f"{s3_prefix}/{name}"), schema=SCHEMA) as g:
        with g.transaction() as tx:
            tx.append("A", [{"name": "x", "t": "words"}])
        g.optimize()
    store = s3_environment.store(s3_prefix)
    keys = [entry["path"] for page in obstore.list(store) for entry in page]
    assert {key.split("/", 1)[0] for key in keys} == {name}


# Others on the same machine


def test_the_place_where_writers_queue_is_never_that_of_somebody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    link = tmp_path / f"omnigraph-{os.getuid()}"
    link.symlink_to(theirs)
    place = parse_root("s3://b/x", {}).queue_directory()
    with LocalQueue(place).turn("main", 0.1):
        assert not list(theirs.iterdir())
        assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
        assert not place.is_relative_to(link)
    link.unlink()
    link.mkdir(mode=0o777)
    link.chmod(0o777)
    assert parse_root("s3://b/x", {}).queue_directory().parent == link
    assert stat.S_IMODE(link.stat().st_mode) == 0o700


def test_a_directory_of_another_user_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    me = os.getuid() + 1  # so that what is made here is somebody else's
    theirs = tmp_path / f"omnigraph-{me}"
    theirs.mkdir()
    monkeypatch.setattr(os, "getuid", lambda: me)
    assert not parse_root("s3://b/x", {}).queue_directory().is_relative_to(theirs)


def test_a_lock_that_is_a_link_leads_nowhere(tmp_path: Path) -> None:
    place = tmp_path / "__wait"
    place.mkdir()
    (place / "main.lock").symlink_to(tmp_path / "made")
    with LocalQueue(place).turn("main", 0.1):
        assert not (tmp_path / "made").exists()


def test_graphs_in_memory_lie_where_nobody_can_have_put_a_link() -> None:
    show = (
        "import os; from omnigraph.store.roots import parse_root;"
        "d = parse_root('memory://x').directory.parent;"
        "print(os.getpid(), d, oct(d.stat().st_mode & 0o777))"
    )
    told = subprocess.run(
        [sys.executable, "-c", show], capture_output=True, text=True, check=True
    ).stdout.split()
    assert told[2] == "0o700"
    assert not told[1].endswith(f"-{told[0]}")  # more than the number of the process
    assert not Path(told[1]).exists()


# Secrets


@pytest.mark.parametrize(
    "text",
    [
        "s3://key:hunter2@bucket/x",
        "http://ada:hunter2@host/x",
        "https://ada:hunter2@host/x",
        "gs://ada:hunter2@bucket",
        "ftp://ada:hunter2@host/",
        "s3://bucket/x?secret=hunter2",
        "s3://bucket/x#hunter2",
    ],
)
def test_a_password_in_a_root_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(OmnigraphError) as told:
        omnigraph.open(text)
    shown = f"{told.value} {told.value!r} {told.value.to_dict()}"
    assert "hunter2" not in shown


def test_a_password_in_an_endpoint_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://ada:hunter2@127.0.0.1:9")
    monkeypatch.delenv("AWS_ALLOW_HTTP", raising=False)
    with pytest.raises(InvalidRoot) as refused:
        parse_root("s3://b/x")
    assert "hunter2" not in str(refused.value)
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    assert "hunter2" not in repr(parse_root("s3://b/x"))
    with pytest.raises(Unavailable) as told:
        omnigraph.open("s3://b/x", settings=Settings(request_timeout=1.0))
    assert "hunter2" not in f"{told.value} {told.value!r} {told.value.to_dict()}"
