"""Loads, exports and blobs on every kind of root, with the requests that they take."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from omnigraph.engine.load import indexing
from tests.load.world import SCHEMA, contents, knows, new_graph, person


def test_a_graph_goes_in_and_out_on_every_root(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "INDEXED_ROWS", 50)
    with omnigraph.init(root, schema=SCHEMA) as g:
        people = [person(f"p{i}", email=f"e{i}") for i in range(60)]
        media = {"type": "Media", "data": {"title": "m", "cover": "base64:AAEC"}}
        first = g.load([*people, media, *(knows("p0", f"p{i}") for i in range(60))])
        assert first.io.writes > 0
        g.load([person("p1", age=3), person("new")], mode="merge")
        g.load([knows("p0", "p1")], mode="overwrite")
        blob = g.blob("Media", "m", "cover")
        assert blob is not None
        assert blob.read(1, 1) == b"\x01"
        g.export(format="parquet", to=tmp_path / "out")
        again = new_graph(tmp_path / "again")
        again.load(tmp_path / "out")
        assert contents(again) == contents(g)


def test_a_small_load_takes_no_more_requests_than_a_transaction(tmp_path: Path) -> None:
    loaded, written = new_graph(tmp_path / "a"), new_graph(tmp_path / "b")
    for g in (loaded, written):
        g.load([person("a"), person("b")])
    rows = [{"name": "c"}, {"name": "d"}]
    result = loaded.load(rows, type="Person")
    with written.transaction() as tx:
        tx.append("Person", rows)
    assert result.io.writes == tx.io.writes
    assert result.io.reads <= tx.io.reads + 2
