"""Laws of loading, on drawn data: pieces equal the whole, out and in again is the same, broken
files change nothing, the fast reader accepts exactly what the exact one does."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph import Graph
from omnigraph.errors import InvalidData
from omnigraph.plan.load import jsonl
from omnigraph.plan.load.fast_jsonl import line_offsets, read_chunk
from omnigraph.plan.load.lines import Entry, parse_line
from omnigraph.plan.load.places import SourceName, first_place
from tests.load.world import contents, knows, new_graph, person, write_lines

FEW = settings().max_examples // 6  # each example makes two graphs
_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=6)
_NAME = st.sampled_from([*"abcdefgh", "é", '"q"', "two words"])


def _optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional={n: st.none() | s for n, s in fields.items()})


_COORDINATE = st.sampled_from([0.0, -1.5]) | st.floats(2.0**-20, 2.0**20, width=32)
"""A vector has a length that a distance can be computed with, or is zero."""
_PERSON = _optional(
    age=st.integers(0, 150),
    mood=st.sampled_from(["calm", "wild"]),
    city=_TEXT,
    nick=st.text("abc", min_size=1, max_size=4),
)
_MEDIA = _optional(
    cover=st.sampled_from(["base64:", "base64:AAAA"]),
    place=st.lists(_COORDINATE, min_size=3, max_size=3),
    day=st.dates().map(str),
    at=st.integers(-(10**12), 10**12),
    scores=st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=3),
    words=st.lists(_TEXT, max_size=3),
    ok=st.booleans(),
    huge=st.integers(0, 2**64 - 1),
)


@st.composite
def _graphs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Entries of a sound graph, in any order."""
    names = draw(st.lists(_NAME, unique=True, max_size=6))
    people = [person(name, **draw(_PERSON)) for name in names]
    titles = draw(st.lists(_NAME, unique=True, max_size=3))
    media = [{"type": "Media", "data": {"title": t, **draw(_MEDIA)}} for t in titles]
    notes = [{"type": "Note", "id": f"n{i}", "data": {"text": draw(_TEXT)}} for i in range(2)]
    edges = []
    if names:
        ends = st.tuples(st.sampled_from(names), st.sampled_from(names))
        pairs = draw(st.lists(ends, unique=True, max_size=6))
        edges = [knows(a, b, **draw(_optional(since=st.dates().map(str)))) for a, b in pairs]
    return draw(st.permutations([*people, *media, *notes, *edges]))


def _graph(directory: str) -> Graph:
    return new_graph(Path(directory))


@given(entries=_graphs(), data=st.data())
@settings(max_examples=FEW)
def test_random_pieces_by_merge_equal_one_piece(entries: list[Any], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as many:
        whole, pieces = _graph(one), _graph(many)
        whole.load(entries)
        # An edge comes after its nodes; else anything goes.
        rest = sorted(entries, key=lambda entry: "edge" in entry)
        while rest:
            size = data.draw(st.integers(1, len(rest)))
            path = write_lines(Path(many) / "piece.jsonl", rest[:size])
            pieces.load(path, mode="merge")
            if data.draw(st.booleans()):
                pieces.load(path, mode="merge")
            rest = rest[size:]
        assert contents(pieces) == contents(whole)


@given(entries=_graphs(), format=st.sampled_from(["jsonl", "csv", "parquet", "arrow"]))
@settings(max_examples=FEW)
def test_export_then_load_is_the_identity(entries: list[Any], format: Any) -> None:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        first, again = _graph(one), _graph(two)
        first.load(entries)
        first.export(format=format, to=Path(one) / "out")
        again.load(Path(one) / "out")
        assert repr(contents(again)) == repr(contents(first))


# Broken files


def _broken(seed: int) -> bytes:
    """A good file with something wrong in exactly one line, the last but one."""
    chance = random.Random(seed)
    good = [json.dumps(person(f"p{i}", age=i)) for i in range(4)]
    line = json.dumps(
        chance.choice(
            [
                person("x", age=5, mood="calm"),
                knows("p0", "p1", since="2020-01-01"),
                {"type": "Note", "data": {"text": "t", "stars": 1.5}},
            ]
        )
    )
    while True:
        broken = _mutate(line.encode(), chance)
        if b"\n" not in broken and not _sound(broken):
            return (
                "\n".join(good).encode()
                + b"\n"
                + broken
                + b"\n"
                + b'{"type":"Note","data":{"text":"z"}}\n'
            )


def _mutate(line: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(line))
    match chance.randrange(6):
        case 0:
            return line[:at]
        case 1:
            return line[:at] + line[at + 1 :]
        case 2:
            return line[:at] + bytes([chance.randrange(256)]) + line[at + 1 :]
        case 3:
            return line[:at] + chance.choice([b'"', b"{", b"}", b",", b"null", b"NaN"]) + line[at:]
        case 4:
            return line[:at] + line[at : at + 9] + line[at:]
        case _:
            return line.replace(b'"name"', b'"nome"').replace(b"5", b'"5"').replace(b"Knows", b"K")


def _sound(line: bytes) -> bool:
    """Whether a mutation happened to leave a good line, judged without any of our code."""
    if not line.strip(b" \t\r"):
        return True
    try:
        value = json.loads(line.decode())
    except (ValueError, UnicodeDecodeError):
        return False
    return isinstance(value, dict)


def _check_broken(directory: Path, seeds: range) -> None:
    g = new_graph(directory)
    head = g.snapshot().commit.id
    for seed in seeds:
        path = directory / "broken.jsonl"
        path.write_bytes(_broken(seed))
        with pytest.raises(InvalidData) as caught:
            g.load(path)
        assert "broken.jsonl line 5: " in caught.value.message, seed
        assert g.snapshot().commit.id == head
    assert not any(contents(g).values())


def test_a_file_with_one_broken_line_is_refused_with_its_number(tmp_path: Path) -> None:
    _check_broken(tmp_path, range(40))


@pytest.mark.slow
def test_a_thousand_broken_files_are_refused_with_the_line(tmp_path: Path) -> None:
    _check_broken(tmp_path, range(1000, 2000))


# The two readers


@given(
    lines=st.lists(
        st.one_of(
            _graphs().filter(bool).map(lambda entries: json.dumps(entries[0]).encode()),
            st.integers(0, 10**6).map(lambda seed: _broken(seed).splitlines()[4]),
            st.sampled_from(
                [
                    b"",
                    b'{"type":"Person","data":{"name":"a"}} {"type":"Person","data":{"name":"b"}}',
                    b'{"type":"Person","data":',
                    b'{"type":"Person","data":{"name":"a"}}}',
                    b' {"type":"Person","data":{"name":"a"}}',
                    b'{ "type" : "Person" , "data" : { "name" : "a" } }',
                    b'{"type":"Note","data":{"text":"a","stars":1e5}}',
                    b'{"type":"Note","data":{"text":"a","stars":9007199254740992}}',
                    b'{"type":"Note","data":{"text":"a","stars":-9007199254740993}}',
                    b'{"type":"Note","data":{"text":"a","stars":NaN}}',
                    b'{"type":"Note","data":{"text":"a\\u0000b"}}',
                    b'{"type":"Note","id":null,"data":{"text":"a"}}',
                    b'{"type":"Media","data":{"title":"a","scores":[1,NaN]}}',
                    b'{"type":"Media","data":{"title":"a","place":[1,2,9007199254740993]}}',
                ]
            ),
        ),
        max_size=8,
    ),
    complete=st.booleans(),
)
@settings(max_examples=3 * settings().max_examples)
def test_the_fast_reader_and_the_exact_one_agree(lines: list[bytes], complete: bool) -> None:
    chunk = b"".join(line + b"\n" for line in lines)
    catalog = _catalog()

    def shaped(fast: bool) -> tuple[list[Any], list[Any]]:
        made, _ = _shape(chunk, complete) if fast else _shape_exactly(chunk, complete)
        rows = [
            (row.pop("_at"), group.kind.name, group.given if not complete else None, repr(row))
            for group in made.groups
            for row in group.table.to_pylist()
        ]
        return sorted(rows, key=str), sorted((r.line, r.reason) for r in made.rejects)

    assert shaped(True) == shaped(False)
    for part in read_chunk(catalog, chunk, line_offsets(chunk), complete=complete).sound:
        for place in part.lines.tolist():
            assert isinstance(parse_line(catalog, lines[place] + b"\n"), Entry)


_NAMES = [SourceName("f.jsonl")]
_KEPT: dict[str, Any] = {}


def _catalog() -> Any:
    if not _KEPT:
        with tempfile.TemporaryDirectory() as directory:
            _KEPT["catalog"] = _graph(directory).snapshot().catalog
    return _KEPT["catalog"]


def _shape(chunk: bytes, complete: bool) -> Any:
    return jsonl.shape_jsonl(
        _catalog(),
        chunk,
        first_place(0, 1),
        _NAMES,
        complete=complete,
        new_ids=lambda count: ["new"] * count,
        every=True,
    )


def _shape_exactly(chunk: bytes, complete: bool) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            jsonl,
            "read_chunk",
            lambda catalog, chunk, offsets, complete: read_chunk(
                catalog, b"", offsets, complete=complete
            ),
        )
        return _shape(chunk, complete)
