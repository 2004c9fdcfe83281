"""Everything that a load may be given, and how it is told what it is."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from omnigraph import Graph
from omnigraph.engine.load.progress import LoadProgress
from omnigraph.errors import EngineMissing, InvalidArgument, TypeNotFound
from tests.contract.graphs import rows
from tests.load.world import knows, new_graph, person, refused, write_lines

PEOPLE = pa.table({"name": ["a", "b"], "age": pa.array([3, None], pa.int32())})


@pytest.fixture
def g(tmp_path: Path) -> Graph:
    return new_graph(tmp_path)


def ages(g: Graph) -> list[tuple[str, int | None]]:
    return [(p["name"], p["age"]) for p in rows(g, "Person")]


@pytest.mark.parametrize(
    "source",
    [
        PEOPLE,
        PEOPLE.to_batches()[0],
        PEOPLE.to_reader(),
        PEOPLE.to_pylist(),
        iter(PEOPLE.to_pylist()),
        PEOPLE.to_pandas(),
        pl.from_arrow(PEOPLE),
        pd.DataFrame({"name": ["a", "b"], "age": [3.0, float("nan")]}),
    ],
    ids=lambda source: type(source).__name__,
)
def test_rows_of_any_kind_are_loaded_as_the_type_that_is_named(g: Graph, source: Any) -> None:
    result = g.load(source, type="Person")
    assert result.counts["Person"].inserted == 2
    assert ages(g) == [("a", 3), ("b", None)]


def test_dicts_without_a_type_are_entries(g: Graph) -> None:
    g.load([person("a"), knows("a", "a")])
    assert [e["id"] for e in rows(g, "Knows")] == ['["a","a"]']
    error = refused(g, [person("b"), {"type": "Nobody"}])
    assert "rows row 2: there is no node type" in error.message


def test_a_frame_must_be_told_its_type(g: Graph) -> None:
    with pytest.raises(InvalidArgument, match="do not say what they are"):
        g.load(PEOPLE)
    with pytest.raises(TypeNotFound, match="Did you mean Person"):
        g.load(PEOPLE, type="Persn")


@pytest.mark.parametrize("packing", ["", ".gz", ".zst"])
def test_packed_files_are_unpacked_as_they_are_read(g: Graph, tmp_path: Path, packing: str) -> None:
    plain = write_lines(tmp_path / "plain.jsonl", [person("a", age=3), person("b")]).read_bytes()
    path = tmp_path / f"people.jsonl{packing}"
    match packing:
        case ".gz":
            path.write_bytes(gzip.compress(plain))
        case ".zst":
            with pa.CompressedOutputStream(str(path), "zstd") as file:
                file.write(plain)
        case _:
            path.write_bytes(plain)
    g.load(path)
    assert ages(g) == [("a", 3), ("b", None)]


def test_a_packed_file_that_ends_early_is_refused(g: Graph, tmp_path: Path) -> None:
    path = tmp_path / "people.jsonl.gz"
    whole = gzip.compress(
        b"".join(b'{"type":"Note","data":{"text":"%d"}}\n' % i for i in range(99))
    )
    path.write_bytes(whole[:-20])
    assert "people.jsonl.gz" in refused(g, path).message


def test_a_stream_and_the_standard_input_are_lines(
    g: Graph, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = write_lines(tmp_path / "f.jsonl", [person("a", age=3)]).read_bytes()
    g.load(io.BytesIO(text))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.replace(b'"a"', b'"b"'))))
    g.load("-")
    assert ages(g) == [("a", 3), ("b", 3)]


def write_directory(directory: Path) -> Path:
    directory.mkdir()
    pq.write_table(PEOPLE, directory / "Person.parquet")
    pcsv.write_csv(
        pa.table({"from": ["a"], "to": ["b"], "since": ["2020-01-01"]}), directory / "Knows.csv"
    )
    with pa.ipc.new_stream(directory / "Note.arrow", pa.schema([("text", pa.string())])) as out:
        out.write_table(pa.table({"text": ["n"]}))
    (directory / "README.md").write_text("not data")
    return directory


def test_a_directory_and_a_glob_hold_one_type_a_file_by_its_name(g: Graph, tmp_path: Path) -> None:
    directory = write_directory(tmp_path / "data")
    result = g.load(directory)
    assert {n: c.inserted for n, c in result.counts.items()} == {"Person": 2, "Knows": 1, "Note": 1}
    g.load(str(directory / "No*.arrow"))
    assert len(rows(g, "Note")) == 2
    with pytest.raises(InvalidArgument, match="No file matches"):
        g.load(str(directory / "*.none"))
    with pytest.raises(InvalidArgument, match="There is no file"):
        g.load(directory / "missing.csv")
    with pytest.raises(InvalidArgument, match="cannot be told"):
        g.load(directory / "README.md")


def test_a_mapping_names_files_types_and_columns(g: Graph, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pcsv.write_csv(
        pa.table({"who": ["a", "b"], "years": [3, 4], "x": [1, 2]}), tmp_path / "in/p.csv"
    )
    pcsv.write_csv(pa.table({"x": ["a"], "y": ["b"]}), tmp_path / "in/k.csv")
    mapping = tmp_path / "in" / "map.toml"
    mapping.write_text(
        '[[source]]\nfile = "p.csv"\ntype = "Person"\ncolumns = {name = "who", age = "years"}\n'
        '[[source]]\nfile = "k.csv"\ntype = "Knows"\nfrom = "x"\nto = "y"\n'
    )
    g.load(mapping)
    assert ages(g) == [("a", 3), ("b", 4)]
    assert [(e["src"], e["dst"]) for e in rows(g, "Knows")] == [("a", "b")]
    wrong = {"source": [{"file": "p.csv", "type": "Person", "columns": {"name": "nobody"}}]}
    assert "has no column 'nobody'" in refused(g, tmp_path / "in", mapping=wrong).message
    for text, message in [
        ("x = 1", r"must consist of \[\[source\]\]"),
        ('[[source]]\nfile = "p.csv"', "`type` must be given"),
        ('[[source]]\nfil = "p.csv"', "Did you mean `file`"),
        ("[[source]", "cannot be read"),
    ]:
        mapping.write_text(text)
        with pytest.raises(InvalidArgument, match=message):
            g.load(mapping)


CSV: list[tuple[str, str]] = [
    ("name,age\na,x\n", "line 2: `age` of Person must be a whole number"),
    ("name,age\na,1\nb,200\n", "line 3: `age` of Person must be between 0 and 150"),
    ('name,nick\n"a\nb",c\nd,E\n', "line 4: `nick` of Person must match"),
    ("name,nope\na,1\n", "Person has no property `nope`"),
    ("age\n1\n", "`name` of Person is part of the key"),
    ("name,age\na,1,2\n", "cannot be read from"),
    ("name,name\na,b\n", "given twice"),
]


@pytest.mark.parametrize(("text", "message"), CSV)
def test_a_mistake_in_csv_is_told_with_its_line(
    g: Graph, tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "Person.csv"
    path.write_text(text)
    error = refused(g, path)
    assert "Person.csv" in error.message
    assert message in error.message


def test_an_empty_field_is_null_and_a_quoted_one_is_empty_text(g: Graph, tmp_path: Path) -> None:
    path = tmp_path / "Person.csv"
    path.write_text('name,email,age\na,"",\nb,,5\n')
    g.load(path)
    assert [(p["email"], p["age"]) for p in rows(g, "Person")] == [("", None), (None, 5)]


def test_parquet_tells_the_row(g: Graph, tmp_path: Path) -> None:
    path = tmp_path / "Person.parquet"
    pq.write_table(pa.table({"name": ["a", "b", None]}), path)
    assert "Person.parquet row 3: `name` is part of the key" in refused(g, path).message
    path.write_bytes(path.read_bytes()[:-10])
    assert "Person.parquet cannot be read from row 1 on" in refused(g, path).message


def test_progress_is_told_and_arguments_are_checked(g: Graph, tmp_path: Path) -> None:
    seen: list[LoadProgress] = []
    path = write_lines(tmp_path / "f.jsonl", [person("a")])
    g.load(path, progress=seen.append)
    assert [p.stage for p in seen] == ["reading", "checking", "writing", "indexing", "publishing"]
    assert (seen[-1].rows, seen[-1].bytes, seen[-1].total_bytes) == (
        1,
        path.stat().st_size,
        path.stat().st_size,
    )
    for options, message in [
        ({"mode": "upsert"}, "`mode` is one of"),
        ({"on_error": "skip"}, "`on_error` is one of"),
        ({"engine": "flink"}, "`engine` is one of"),
    ]:
        with pytest.raises(InvalidArgument, match=message):
            g.load(path, **options)  # type: ignore[arg-type]
    for source in (None, 5, b"x"):
        with pytest.raises(InvalidArgument):
            g.load(source)


def test_an_engine_that_is_not_there_is_a_clear_error(
    g: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: ())
    with pytest.raises(EngineMissing, match=r"pip install 'omnigraph\[spark\]'"):
        g.load([person("a")], engine="spark")
