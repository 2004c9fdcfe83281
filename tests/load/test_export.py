"""Export writes what load reads: the same graph comes back, ids included."""

from __future__ import annotations

import gzip
import io
import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph import Graph
from omnigraph.engine.export import ExportFormat
from omnigraph.errors import EntityNotFound, InvalidArgument, InvalidData
from tests.load.world import contents, knows, new_graph, person

ENTRIES: list[Any] = [
    person("a", age=1, email="", mood="calm", city=None),
    person('q"uo,te\n', email="x\ny"),
    knows("a", "a", since="1969-12-31"),
    {"type": "Note", "id": "1", "data": {"text": "NaN", "stars": 0.1}},
    {"type": "Note", "id": "2", "data": {"text": "", "stars": -0.0}},
    {"edge": "Wrote", "from": "a", "to": "1", "data": {"how": "ä"}},
    {
        "type": "Media",
        "data": {
            "title": "t",
            "cover": "base64:AAH/",
            "place": [0.1, 2, 3],
            "day": "0001-01-01",
            "at": "9999-12-31T23:59:59.999Z",
            "scores": [0.1, 1e300],
            "words": ["", "a,b", '"'],
            "ok": False,
            "huge": 2**64 - 1,
            "small": 0.1,
        },
    },
    {"type": "Media", "data": {"title": "u", "words": [], "cover": "base64:"}},
]


@pytest.fixture
def g(tmp_path: Path) -> Graph:
    graph = new_graph(tmp_path)
    graph.load(ENTRIES)
    return graph


@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet", "arrow"])
def test_a_round_trip_gives_an_equal_graph(g: Graph, tmp_path: Path, format: Any) -> None:
    result = g.export(format=format, to=tmp_path / "out")
    assert result.counts["Person"] == 2
    again = new_graph(tmp_path / "again")
    again.load(tmp_path / "out")
    assert contents(again) == contents(g)
    assert not list((tmp_path / "out").glob(".*"))


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_jsonl_goes_to_a_file_packed_by_its_name(g: Graph, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"all.jsonl{suffix}"
    assert g.export(to=path).files == (path,)
    again = new_graph(tmp_path / "again")
    again.load(path)
    assert contents(again) == contents(g)
    if suffix == ".gz":
        lines = gzip.decompress(path.read_bytes()).splitlines()
        assert json.loads(lines[-1])["edge"] == "Wrote"


def test_types_refs_and_streams_can_be_chosen(g: Graph, capsysbinary: Any) -> None:
    before = g.snapshot().commit.id
    g.load([person("later")])
    stream = io.BytesIO()
    g.at(f"main@{before}").export(types=["Person"], to=stream)
    assert len(stream.getvalue().splitlines()) == 2
    g.export(types=["Knows"])
    assert b'"edge":"Knows"' in capsysbinary.readouterr().out
    table = io.BytesIO()
    g.branch("main").export(types=["Knows"], format="arrow", to=table)
    assert pa.ipc.open_stream(table.getvalue()).read_all().column_names[:3] == ["id", "from", "to"]


def test_what_cannot_be_exported_is_refused(g: Graph, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="one type in a file"):
        g.export(format="csv", to=io.BytesIO())
    with pytest.raises(InvalidArgument, match="`format` is one of"):
        g.export(format="xml", to=tmp_path)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="a path or a stream"):
        g.export(to=5)
    with pytest.raises(InvalidArgument, match="twice"):
        g.export(types=["Note", "Note"], to=tmp_path)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_json_cannot_hold_nan_but_parquet_and_csv_can(tmp_path: Path, value: float) -> None:
    g = new_graph(tmp_path)
    g.load(pa.table({"id": ["n"], "text": ["t"], "stars": [value]}), type="Note")
    with pytest.raises(InvalidData, match=r"`stars` of Note 'n' is NaN or infinite.*Parquet"):
        g.export(to=tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()
    held: tuple[ExportFormat, ...] = ("parquet", "csv")
    for name in held:
        g.export(format=name, to=tmp_path / name)
        again = new_graph(tmp_path / f"again-{name}")
        again.load(tmp_path / name)
        assert repr(contents(again)["Note"]) == repr(contents(g)["Note"])


def test_a_blob_is_read_in_parts_and_only_those(tmp_path: Path) -> None:
    import base64
    import os

    g = new_graph(tmp_path)
    data = os.urandom(3_000_000)
    text = "base64:" + base64.b64encode(data).decode()
    media = [("m", text), ("none", None), ("empty", "base64:")]
    g.load([{"type": "Media", "data": {"title": t, "cover": c}} for t, c in media])
    blob = g.blob("Media", "m", "cover")
    assert blob is not None
    assert blob.size == len(data)
    before = blob.io.read_bytes
    assert blob.read(1_000_000, 10) == data[1_000_000:1_000_010]
    assert blob.io.read_bytes - before < 100_000
    assert blob.read() == data
    assert blob.read(len(data) - 3, 100) == data[-3:]
    assert blob.read(len(data) + 5) == b""
    empty = g.blob("Media", "empty", "cover")
    assert empty is None or empty.read() == b""
    assert g.blob("Media", "none", "cover") is None
    assert g.branch("main").blob("Media", "none", "cover") is None
    with pytest.raises(EntityNotFound):
        g.blob("Media", "nobody", "cover")
    with pytest.raises(InvalidArgument, match="is no blob"):
        g.blob("Media", "m", "title")
    with pytest.raises(InvalidArgument, match="has no property"):
        g.blob("Media", "m", "cver")
    with pytest.raises(InvalidArgument, match="0 or more"):
        blob.read(-1)
