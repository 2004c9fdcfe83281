"""Values and rows that are too large for what reads them: told, and not held whole."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidData
from omnigraph.plan.rows import cast
from omnigraph.settings import Settings

SCHEMA = "node T { name: String @key t: String? tags: [String]? }\n"
SMALL = Settings(load_memory=32 << 20, durability="relaxed")


@pytest.fixture
def g(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "graph", schema=SCHEMA, settings=SMALL)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"a" * (40 << 20), "its first line is longer than 2,097,152 bytes"),
        (b"name," + b"a" * (40 << 20), "its first line is longer than 2,097,152 bytes"),
        (b'name,t\nx,"' + b"a" * (40 << 20), "a row is longer than can be read at a stretch"),
        (b"name,t\nx," + b"a" * (40 << 20) + b"\ny,1\n", "a row is longer than can be read"),
    ],
)
def test_a_csv_without_line_breaks_is_told_and_not_held(
    g: Graph, tmp_path: Path, data: bytes, reason: str
) -> None:
    path = tmp_path / "T.csv"
    path.write_bytes(data)
    del data
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        with pytest.raises(InvalidData) as told:
            g.load(path, engine="local")
        held = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert told.value.message.startswith("T.csv cannot be read from row 1 on: " + reason)
    assert held < 20 << 20
    assert pa.total_allocated_bytes() - before < 20 << 20


def test_many_names_are_read(g: Graph, tmp_path: Path) -> None:
    path = tmp_path / "T.csv"
    path.write_bytes(b"name," + b",".join(b"c%d" % n for n in range(200_000)) + b"\nx\n")
    with pytest.raises(InvalidData, match="Expected 200001 columns, got 1"):
        g.load(path, engine="local")


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_any_line_break_ends_the_names(g: Graph, tmp_path: Path, end: str) -> None:
    path = tmp_path / "T.csv"
    path.write_bytes(end.join(["name,t", "x,007", "y,1", ""]).encode())
    g.load(path, engine="local")
    assert [
        row["t"] for row in g.query("match { $t: T } return { $t.t as t } order { $t.name }")
    ] == [
        "007",
        "1",
    ]


def test_a_batch_above_what_offsets_address_is_read_in_pieces(
    g: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The largest size is set low, because 2 GB take long; the slow test takes them."""
    monkeypatch.setattr(cast, "_LARGEST_PIECE", 1000)
    table = pa.table(
        {
            "name": [f"n{i}" for i in range(100)],
            "t": pa.array(["x" * 500] * 100, pa.large_string()),
            "tags": pa.array([["y" * 50] * 4] * 100, pa.large_list(pa.large_string())),
        }
    )
    pq.write_table(table, tmp_path / "T.parquet")
    g.load(tmp_path / "T.parquet", engine="local")
    with g.transaction() as tx:
        tx.upsert("T", table)
    found = g.snapshot().scan("T").read_all()
    assert found.num_rows == 100
    assert set(found["t"].to_pylist()) == {"x" * 500}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "kind"),
    [("parquet", pa.string()), ("parquet", pa.large_string()), ("arrow", pa.large_string())],
    ids=str,
)
def test_a_batch_with_more_than_2_gb_of_text_is_loaded(
    tmp_path: Path, ending: str, kind: pa.DataType
) -> None:
    parts = [pa.array(["x" * (20 << 20)] * 55, kind)] * 2
    text = pa.chunked_array(parts)
    table = pa.table({"name": [f"n{i}" for i in range(110)], "t": text})
    path = tmp_path / f"T.{ending}"
    if ending == "parquet":
        pq.write_table(table, path, compression="zstd", use_dictionary=False, write_batch_size=1)
    else:
        table = table.combine_chunks()
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
    del table, text, parts
    with omnigraph.init(tmp_path / "graph", schema=SCHEMA) as g:
        g.load(path, engine="local")
        assert g.snapshot().count("T") == 110
        assert not g.verify().findings
