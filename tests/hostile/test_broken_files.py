"""Files whose bytes are broken, by hand and by seed: loaded, or refused with their name. Never a
crash, a trace or a word about a bug, and never a graph that is not sound."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.errors import InvalidData
from tests.hostile.files import SCHEMA, broken, plain, write_files


@dataclass(frozen=True)
class Outcome:
    path: str
    code: int
    err: str = ""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    omnigraph.init(tmp_path / "graph", schema=SCHEMA).close()
    return tmp_path / "graph"


def load_each(root: Path, paths: Sequence[Path]) -> list[Outcome]:
    """What the program made of each file, in one process for all of them. A crash fails with the
    name of the file."""
    listed, written = root.parent / "listed.json", root.parent / "written.jsonl"
    listed.write_text(json.dumps([str(path) for path in paths]))
    ran = subprocess.run(
        [sys.executable, "-m", "tests.hostile.file_loader", str(root), str(listed), str(written)],
        capture_output=True,
        text=True,
        check=False,
    )
    told = [json.loads(line) for line in written.read_text().splitlines()]
    assert ran.returncode == 0, f"{told[-1]['path']} ended the process: {ran.stderr[-2000:]}"
    for one in told:
        assert "trace" not in one, f"{one['path']}:\n{one['trace']}"
    return [Outcome(one["path"], one["code"], one["err"]) for one in told if "code" in one]


def require_told(outcomes: Sequence[Outcome]) -> None:
    for one in outcomes:
        assert one.code in (0, 6), one
        for word in ("bug", "Traceback", "panic", "nodes/"):
            assert word not in one.err, one
        if one.code:
            assert Path(one.path).name in one.err, one


# By seed


def load_broken(root: Path, tmp_path: Path, seeds: range) -> None:
    valid = write_files(tmp_path / "valid")
    assert {one.code for one in load_each(root, valid)} == {0}
    paths = []
    for seed in seeds:
        source = valid[seed % len(valid)]
        path = tmp_path / "broken" / f"{seed}-{source.parent.name}" / source.name
        path.parent.mkdir(parents=True)
        path.write_bytes(broken(source.read_bytes(), seed))
        paths.append(path)
    for start in range(0, len(paths), 500):
        require_told(load_each(root, paths[start : start + 500]))
    with omnigraph.open(root) as g:
        assert not g.verify(deep=True).findings
        for row in g.snapshot().scan("Thing").read_all().to_pylist():
            assert row["name"]


def test_a_broken_file_is_loaded_or_refused_by_its_name(root: Path, tmp_path: Path) -> None:
    load_broken(root, tmp_path, range(200))


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 10_000, 2_000))
def test_many_broken_files_are_loaded_or_refused(root: Path, tmp_path: Path, start: int) -> None:
    load_broken(root, tmp_path, range(start, start + 2_000))


# By hand

Column = Callable[[], pa.Array]
LATER: list[Callable[[], None]] = []


def from_numbers(
    kind: pa.DataType, sound: Sequence[int], hostile: Sequence[int], *buffers: bytes, **more: Any
) -> pa.Array:
    """Arrow looks at offsets, briefly, whenever something is made; so they change afterwards."""
    numbers = np.array(sound, np.int32)
    views = [pa.py_buffer(data) for data in buffers]
    length = len(sound) // 4 if kind == pa.string_view() else len(sound) - 1
    array = pa.Array.from_buffers(kind, length, [None, pa.py_buffer(numbers), *views], **more)
    LATER.append(lambda: numbers.__setitem__(slice(None), hostile))
    return array


def texts_with(offsets: Sequence[int], data: bytes = b"abcdef") -> pa.Array:
    return from_numbers(pa.string(), [0] * len(offsets), offsets, data)


def view_to(buffer: int, offset: int) -> pa.Array:
    sound, hostile = [1, 0x61, 0, 0], [20, 0x61616161, buffer, offset]
    return from_numbers(pa.string_view(), sound, hostile, b"a" * 32)


def coded(index: int) -> pa.Array:
    numbers = np.zeros(1, np.int32)
    indices = pa.Array.from_buffers(pa.int32(), 1, [None, pa.py_buffer(numbers)])
    array = pa.DictionaryArray.from_arrays(indices, pa.array(["a"]))
    LATER.append(lambda: numbers.__setitem__(slice(None), index))
    return array


def in_list(items: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array([0, len(items)], pa.int32()), items)


def in_dictionary(values: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), values, safe=False)


def list_with(offsets: Sequence[int]) -> pa.Array:
    items = pa.array(["a", "b"])
    return from_numbers(pa.list_(pa.string()), [0] * len(offsets), offsets, children=[items])


UNSOUND: dict[str, tuple[str, Column]] = {
    "offsets out of order": ("note", lambda: texts_with([5, 1])),
    "an offset beyond the data": ("note", lambda: texts_with([0, 2**30])),
    "an offset below zero": ("note", lambda: texts_with([-9, 3])),
    "bytes that are no text": ("note", lambda: texts_with([0, 3], b"\xff\xfe\xfd")),
    "half a surrogate": ("note", lambda: texts_with([0, 3], b"\xed\xa0\x80")),
    "a key that is no text": ("name", lambda: texts_with([0, 2], b"\xc3\x28")),
    "a view of no buffer": ("note", lambda: view_to(7, 0)),
    "a view beyond its buffer": ("note", lambda: view_to(0, 2**30)),
    "a view below zero": ("note", lambda: view_to(0, -5)),
    "a dictionary index outside": ("note", lambda: coded(99)),
    "a dictionary index below zero": ("note", lambda: coded(-1)),
    "a dictionary of no text": ("note", lambda: in_dictionary(texts_with([0, 2], b"\xc3\x28"))),
    "a dictionary with bad offsets": ("note", lambda: in_dictionary(texts_with([0, 2**29]))),
    "no text in a list": ("tags", lambda: in_list(texts_with([0, 2], b"\xc3\x28"))),
    "bad offsets in a list": ("tags", lambda: in_list(texts_with([4, 1]))),
    "an index outside in a list": ("tags", lambda: in_list(coded(99))),
    "a view beyond its buffer in a list": ("tags", lambda: in_list(view_to(0, 2**30))),
    "a list beyond its items": ("tags", lambda: list_with([0, 2**20])),
    "a list out of order": ("tags", lambda: list_with([2, 0])),
    "a list below zero": ("tags", lambda: list_with([-3, 1])),
    "bad offsets in a struct": (
        "note",
        lambda: pa.StructArray.from_arrays([texts_with([5, 1])], ["x"]),
    ),
}
OUTSIDE: dict[str, tuple[str, Column]] = {
    "a day after the year 9999": ("day", lambda: pa.array([2**30], pa.date32())),
    "a day before the year 1": ("day", lambda: pa.array([-(2**31)], pa.date32())),
    "milliseconds of a day outside": ("day", lambda: pa.array([2**62], pa.date64())),
    "a time after the year 9999": ("at", lambda: pa.array([2**62], pa.timestamp("s"))),
    "a time before the year 1": ("at", lambda: pa.array([-(2**63)], pa.timestamp("ms", "UTC"))),
    "a time in no zone": ("at", lambda: pa.array([2**62], pa.timestamp("us", "Mars/Base"))),
    "a day outside in a list": ("days", lambda: in_list(pa.array([2**30], pa.date32()))),
    "a day outside in a dictionary": (
        "day",
        lambda: in_dictionary(pa.array([2**30], pa.date32())),
    ),
    "a length of time": ("at", lambda: pa.array([2**62], pa.duration("s"))),
}
HOSTILE = UNSOUND | OUTSIDE
LENGTHS = ("an offset beyond the data", "a dictionary with bad offsets")
"""The C interface of Arrow hands over addresses without lengths: these offsets are the lengths, and
nobody on the other side can know better."""


def hostile_batch(case: str) -> pa.RecordBatch:
    name, make = HOSTILE[case]
    columns: dict[str, pa.Array] = {"name": pa.array(["thing"])}
    columns[name] = make()
    batch = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
    while LATER:
        LATER.pop()()
    return batch


def test_unsound_columns_in_files_are_refused(root: Path, tmp_path: Path) -> None:
    paths = []
    unwritten = set()
    for number, case in enumerate(HOSTILE):
        batch = hostile_batch(case)
        for ending in ("arrow", "feather", "arrows"):
            path = tmp_path / f"{number}-{ending}" / f"Thing.{ending}"
            path.parent.mkdir()
            write = pa.ipc.new_stream if ending == "arrows" else pa.ipc.new_file
            try:
                with write(path, batch.schema) as file:
                    file.write_batch(batch)
            except pa.ArrowInvalid:
                unwritten.add(case)  # Arrow counts with these offsets when it writes them
            else:
                paths.append(path)
    assert unwritten <= {"a list out of order", "a list below zero", "a list beyond its items"}
    outcomes = load_each(root, paths)
    require_told(outcomes)
    assert [one for one in outcomes if one.code != 6] == []
    with omnigraph.open(root) as g:
        assert g.entity("Thing", "thing") is None


def test_parquet_with_values_outside_is_refused(root: Path, tmp_path: Path) -> None:
    """Arrow writes texts and days of Parquet without a look at them, and reads them so."""
    paths: list[Path] = []
    for case in (
        "bytes that are no text",
        "half a surrogate",
        "a key that is no text",
        "no text in a list",
        "a day after the year 9999",
        "a day before the year 1",
        "a time after the year 9999",
        "a day outside in a list",
    ):
        path = tmp_path / str(len(paths)) / "Thing.parquet"
        path.parent.mkdir()
        table = pa.Table.from_batches([hostile_batch(case)])
        if case == "a time after the year 9999":
            table = table.set_column(1, "at", pa.array([2**62], pa.timestamp("us")))
        pq.write_table(table, path)
        paths.append(path)
    outcomes = load_each(root, paths)
    require_told(outcomes)
    assert [one for one in outcomes if one.code != 6] == []


IN_PYTHON = """
import sys
import pandas, polars, pyarrow as pa
import omnigraph
from omnigraph.errors import InvalidData
from tests.hostile.test_broken_files import HOSTILE, LENGTHS, hostile_batch

class Foreign:
    def __init__(self, batch):
        self.table = pa.Table.from_batches([batch])
    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)

def pandas_frame(batch):
    return pandas.DataFrame({
        name: pandas.Series(pandas.arrays.ArrowExtensionArray(pa.chunked_array([column])))
        for name, column in zip(batch.schema.names, batch.columns)
    })

FORMS = {
    "table": lambda batch: pa.Table.from_batches([batch]),
    "batch": lambda batch: batch,
    "reader": lambda batch: pa.RecordBatchReader.from_batches(batch.schema, [batch]),
    "foreign": Foreign,
    "pandas": pandas_frame,
}
with omnigraph.open(sys.argv[1]) as g:
    for case in HOSTILE:
        for form, make in FORMS.items():
            if form == "foreign" and case in LENGTHS:
                continue
            for verb in ("append", "upsert", "load", "quarantine"):
                print(case, form, verb, flush=True)
                try:
                    rows = make(hostile_batch(case))
                    if verb == "load":
                        g.load(rows, type="Thing")
                    elif verb == "quarantine":
                        result = g.load(rows, type="Thing", on_error="quarantine")
                        if result.rejected:
                            continue
                    else:
                        with g.transaction() as tx:
                            getattr(tx, verb)("Thing", rows)
                except InvalidData as error:
                    assert error.message.endswith((".", ")")), error.message
                else:
                    raise SystemExit(f"{case} {form} {verb}: it was taken")
"""


def test_unsound_columns_given_in_python_are_refused(root: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", IN_PYTHON, str(root)], capture_output=True, text=True, check=False
    )
    last = ran.stdout.splitlines()[-1:]
    assert ran.returncode == 0, f"{last}: {ran.stderr[-3000:]}"
    assert len(ran.stdout.splitlines()) == (len(HOSTILE) * 5 - len(LENGTHS)) * 4


def test_what_is_unsound_is_named(root: Path, tmp_path: Path) -> None:
    batch = hostile_batch("offsets out of order")
    path = tmp_path / "Thing.arrow"
    with pa.ipc.new_file(path, batch.schema) as file:
        file.write_batch(batch)
    with omnigraph.open(root) as g, pytest.raises(InvalidData) as told:
        g.load(path)
    assert told.value.message.startswith(
        "Thing.arrow cannot be read from row 1 on: the column 'note' is not sound: "
    )
    assert told.value.violations[0].rule == "source"


def test_a_file_that_is_cut_while_it_is_read_is_told(root: Path, tmp_path: Path) -> None:
    """A mapped file would end the process."""
    path = tmp_path / "Thing.arrow"
    table = pa.concat_tables([plain().select(["name", "note"])] * 3)
    with pa.ipc.new_file(path, table.schema) as file:
        for batch in table.to_batches():
            file.write_batch(batch)

    def cut(progress: Any) -> None:
        with path.open("r+b") as file:
            file.truncate(500)

    with omnigraph.open(root) as g, pytest.raises(InvalidData, match=r"Thing\.arrow"):
        g.load(path, progress=cut)
