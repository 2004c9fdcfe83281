"""Values and rows that are too large for what reads them: told, and not held whole."""

from __future__ import annotations

import io
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidData
from omnigraph.plan.rows import cast
from omnigraph.settings import Settings
from tests.hostile.load_peak import load_apart

SCHEMA = "node T { name: String @key t: String? tags: [String]? }\n"
SMALL = Settings(load_memory=32 << 20, durability="relaxed")


@pytest.fixture
def g(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "graph", schema=SCHEMA, settings=SMALL)


def load_csv_apart(place: Path, *, memory: int, times: int = 1) -> dict[str, Any]:
    warm = place / "warm" / "T.csv"
    warm.parent.mkdir(exist_ok=True)
    warm.write_text("name,t\nwarm,1\n")
    return load_apart(place / "graph", place / "T.csv", warm=warm, memory=memory, times=times)


@pytest.mark.parametrize(
    ("head", "tail", "reason"),
    [
        (b"", b"", "its first line is longer than 2,097,152 bytes"),
        (b"name,", b"", "its first line is longer than 2,097,152 bytes"),
        (b'name,t\nx,"', b"", "a row is longer than can be read at a stretch"),
        (b"name,t\nx,", b"\ny,1\n", "a row is longer than can be read"),
    ],
)
@pytest.mark.usefixtures("g")
def test_a_csv_without_line_breaks_is_told_and_not_held(
    tmp_path: Path, head: bytes, tail: bytes, reason: str
) -> None:
    with (tmp_path / "T.csv").open("wb") as file:
        file.write(head)
        for _ in range(160):
            file.write(b"a" * (1 << 20))
        file.write(tail)
    told = load_csv_apart(tmp_path, memory=SMALL.load_memory)
    assert told["message"].startswith("T.csv cannot be read from row 1 on: " + reason)
    assert told["peak"] < 80 << 20


@pytest.mark.usefixtures("g")
def test_a_process_ends_well_after_a_csv_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "T.csv").write_bytes(b"name,t\nx," + b"a" * (40 << 20) + b"\ny,1\n")
    told = load_csv_apart(tmp_path, memory=1 << 20, times=5)
    assert "a row is longer than can be read at a stretch" in told["message"]


def test_no_thread_of_arrow_calls_into_python_to_read_a_csv(
    g: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a thread reads ahead, also after a fault was told. When the interpreter ends meanwhile,
    the process crashes or never ends: two of five did."""
    readers: set[type[threading.Thread]] = set()

    class Watched(io.FileIO):
        def read(self, size: int | None = -1, /) -> bytes:
            readers.add(type(threading.current_thread()))
            return super().read(-1 if size is None else size)

    plain = Path.open
    path = tmp_path / "T.csv"
    path.write_bytes(b"name,t\nx," + b"a" * (4 << 20) + b"\ny,1\n")

    def opened(self: Path, *args: Any, **options: Any) -> Any:
        return Watched(self) if self == path else plain(self, *args, **options)

    monkeypatch.setattr(Path, "open", opened)
    with pytest.raises(InvalidData):
        g.load(path, engine="local")
    assert readers == {type(threading.main_thread())}


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
