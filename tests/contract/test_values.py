"""Values of every type survive a round trip, an update beside them, and compaction."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from omnigraph import Graph
from omnigraph.errors import InvalidData
from tests.contract.graphs import begin, field, ids, rows, write

FULL: dict[str, Any] = {
    "title": "t",
    "cover": b"\x00\xff" * 3,
    "place": [1.0, -2.5, 0.0],
    "day": date(1969, 12, 31),
    "at": datetime(2024, 2, 29, 23, 59, 59, 999000, tzinfo=UTC),
    "scores": [1.5, -0.0],
    "words": ["", "zwölf", "it's"],
    "ok": False,
    "huge": 2**64 - 1,
}
EMPTY = {name: None for name in FULL if name != "title"}


def shown(g: Graph, title: str) -> dict[str, Any]:
    (row,) = g.snapshot().scan("Media", filter=field("title") == title).read_all().to_pylist()
    return {name: row[name] for name in FULL}


def test_every_kind_of_value_comes_back_as_it_was(g: Graph) -> None:
    write(g, lambda tx: tx.append("Media", [FULL, {"title": "empty"}]))
    assert shown(g, "t") == FULL
    assert shown(g, "empty") == EMPTY | {"title": "empty"}


@pytest.mark.stored
def test_values_that_are_not_touched_stay(g: Graph) -> None:
    write(g, lambda tx: tx.append("Media", [FULL, {"title": "empty"}]))
    write(g, lambda tx: tx.upsert("Media", {"title": "t", "ok": True}))
    write(g, lambda tx: tx.update("Media", set={"huge": 5}, where=field("title") == "t"))
    write(g, lambda tx: tx.upsert("Media", {"title": "empty", "words": []}))
    assert shown(g, "t") == FULL | {"ok": True, "huge": 5}
    assert shown(g, "empty") == EMPTY | {"title": "empty", "words": []}
    g.optimize()
    assert shown(g, "t") == FULL | {"ok": True, "huge": 5}


def test_pending_values_are_read_as_they_will_be(g: Graph) -> None:
    write(g, lambda tx: tx.append("Media", FULL))
    with g.transaction() as tx:
        tx.upsert("Media", {"title": "t", "ok": True})
        tx.append("Media", FULL | {"title": "u"})
        found = {row["title"]: row for row in tx.scan("Media").to_pylist()}
    assert {name: found["t"][name] for name in FULL} == FULL | {"ok": True}
    assert {name: found["u"][name] for name in FULL} == FULL | {"title": "u"}
    assert shown(g, "u") == FULL | {"title": "u"}


def test_large_blobs_survive(g: Graph) -> None:
    large = bytes(range(256)) * 20_000
    write(g, lambda tx: tx.append("Media", [{"title": "a", "cover": large}, {"title": "b"}]))
    write(g, lambda tx: tx.upsert("Media", {"title": "a", "ok": True}))
    assert shown(g, "a")["cover"] == large
    assert shown(g, "b")["cover"] is None


def test_a_scan_has_the_types_that_the_schema_says(g: Graph) -> None:
    schema = g.snapshot().scan("Media").schema
    assert schema.field("place").type == pa.list_(pa.float32(), 3)
    assert schema.field("day").type == pa.date32()
    assert schema.field("at").type == pa.timestamp("ms", "UTC")
    assert schema.field("huge").type == pa.uint64()
    assert schema.field("words").type == pa.list_(pa.field("item", pa.string(), nullable=False))
    assert not schema.field("title").nullable
    assert g.snapshot().scan("Media").read_all().schema == schema
    write(g, lambda tx: tx.append("Media", FULL))
    assert g.snapshot().scan("Media").read_all().schema == schema


def test_names_and_values_that_look_like_sql_are_only_names_and_values(g: Graph) -> None:
    nasty = ["x' OR '1'='1", 'a"b', "`tick`", "-- comment", "null", "\\", "%", "line\nbreak", ""]
    write(g, lambda tx: tx.append("Note", [{"id": v or "-", "select": v} for v in nasty]))
    for value in nasty:
        with g.transaction() as tx:
            condition = field("select") == value
            assert tx.scan("Note", columns=["select"], filter=condition).num_rows == 1
            assert tx.update("Note", set={"text": value}, where=condition) == 1
    assert all(row["text"] == row["select"] for row in rows(g, "Note", "text", "select"))
    write(g, lambda tx: tx.delete("Note", where=field("select").isin(nasty[:4])))
    assert ids(g, "Note") == sorted(value or "-" for value in nasty[4:])


REQUIRED = "node Full { name: String @key  count: I64  tags: [String]  size: I32 @default(7) }"


def test_required_and_default_values(root: str) -> None:
    with begin(root, REQUIRED) as g:
        write(g, lambda tx: tx.append("Full", {"name": "a", "count": 1, "tags": []}))
        assert rows(g, "Full", "size", "tags") == [{"id": "a", "size": 7, "tags": []}]
        write(g, lambda tx: tx.upsert("Full", {"name": "a", "count": 2}))
        assert rows(g, "Full", "count", "size") == [{"id": "a", "count": 2, "size": 7}]
        refused: list[dict[str, Any]] = [{"name": "b"}, {"name": "b", "count": None, "tags": []}]
        for wrong in refused:
            for statement in ("append", "upsert", "overwrite"):
                with pytest.raises(InvalidData, match="`count` of Full is required"):
                    write(g, lambda tx, s=statement, w=wrong: getattr(tx, s)("Full", w))  # type: ignore[misc]
        with pytest.raises(InvalidData, match="required"):
            write(g, lambda tx: tx.update("Full", set={"count": None}, where=None))
        assert ids(g, "Full") == ["a"]
