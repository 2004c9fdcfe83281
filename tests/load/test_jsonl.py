"""Load files line by line: what is accepted, and every mistake with its line and its message."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.engine.load.chunks import LongLine, cut_lines
from tests.contract.graphs import rows
from tests.hostile.load_peak import load_apart
from tests.load.world import contents, knows, new_graph, person, refused, write_lines


def test_a_file_of_nodes_and_edges_becomes_one_commit(tmp_path: Path) -> None:
    g = new_graph(tmp_path)
    source = write_lines(
        tmp_path / "all.jsonl",
        [knows("a", "b", since="2020-02-29"), person("a", age=3), "", person("b", email="x")],
    )
    result = g.load(source, actor="me", message="first")
    assert result.commit is not None
    assert (result.commit.kind, result.commit.actor, result.commit.message) == (
        "load",
        "me",
        "first",
    )
    assert g.snapshot().commit.id == result.commit_id
    assert {name: c.inserted for name, c in result.counts.items()} == {"Person": 2, "Knows": 1}
    assert (result.engine, result.rejected) == ("local", ())
    assert result.io.writes > 0
    assert [(p["id"], p["age"], p["city"]) for p in rows(g, "Person")] == [
        ("a", 3, "Bonn"),
        ("b", None, "Bonn"),
    ]
    assert rows(g, "Knows") == [
        {"id": '["a","b"]', "src": "a", "dst": "b", "since": date(2020, 2, 29)}
    ]


def test_every_type_of_value_is_read(tmp_path: Path) -> None:
    g = new_graph(tmp_path)
    data = {
        "title": "t",
        "cover": "base64:AAH/",
        "place": [1, 2.5, -3],
        "day": 19_000,
        "at": "2024-05-31T10:00:00.123+02:00",
        "scores": [1, 0.1],
        "words": ["ä", ""],
        "ok": True,
        "huge": 2**64 - 1,
        "small": 0.5,
    }
    g.load(write_lines(tmp_path / "m.jsonl", [{"type": "Media", "data": data}]))
    assert rows(g, "Media") == [
        data
        | {
            "id": "t",
            "cover": b"\x00\x01\xff",
            "place": [1.0, 2.5, -3.0],
            "day": date(2022, 1, 8),
            "at": datetime(2024, 5, 31, 8, 0, 0, 123000, tzinfo=UTC),
            "scores": [1.0, 0.1],
        }
    ]


def test_null_and_absent_differ_where_there_is_a_default(tmp_path: Path) -> None:
    g = new_graph(tmp_path)
    g.load(write_lines(tmp_path / "a.jsonl", [person("a", city=None), person("b")]))
    assert [p["city"] for p in rows(g, "Person")] == [None, "Bonn"]


def test_ids_of_keyless_entities_may_be_given_beside_or_in_the_data(tmp_path: Path) -> None:
    g = new_graph(tmp_path)
    entries = [
        {"type": "Note", "id": "one", "data": {"text": "x"}},
        {"type": "Note", "data": {"id": "two", "text": "y"}},
        {"type": "Note", "data": {"text": "z"}},
        {"type": "Person", "id": "p", "data": {"name": "p"}},
        {"edge": "Wrote", "id": "w", "src": "p", "dst": "two"},
    ]
    g.load(write_lines(tmp_path / "n.jsonl", entries))
    ids = [note["id"] for note in rows(g, "Note")]
    assert {"one", "two"} < set(ids)
    assert sorted(map(len, ids)) == [3, 3, 26]
    assert rows(g, "Wrote")[0]["id"] == "w"


LINES: list[tuple[str, str]] = [
    ('{"type":"Person"', "this is not JSON: Expecting ',' delimiter at column 17"),
    ("[1]", "a line is a JSON object, but this is [1]"),
    ("{}", "neither `type` nor `edge`"),
    ('{"type":"Person","edge":"Knows"}', "`type` or `edge`, not both"),
    ('{"type":5}', "`type` must be the name of a type, but it is 5"),
    ('{"type":"Persn","data":{}}', 'no node type "Persn"; did you mean `Person`?'),
    ('{"type":"Knows","data":{}}', "`Knows` is given with `edge`"),
    ('{"type":"Person","dta":{}}', "`dta` is not a key; did you mean `data`?"),
    ('{"type":"Person","from":"a"}', "`from` is not a key"),
    ('{"type":"Person","data":[]}', "`data` must be an object, but it is []"),
    ('{"type":"Person","data":null}', "`data` must be an object, but it is null"),
    ('{"type":"Person","data":{"name":"x","nme":1}}', "Person has no property `nme`"),
    ('{"type":"Person","data":{"name":"x","name":"x"}}', "the member `name` comes twice"),
    ('{"type":"Person","type":"Person","data":{"name":"x"}}', "the member `type` comes twice"),
    ('{"type":"Person","data":{"name":5}}', "`name` of Person must be a string"),
    ('{"type":"Person","data":{"name":"x","age":"5"}}', "`age` of Person must be a whole number"),
    ('{"type":"Person","data":{"name":"x","age":5.0}}', "`age` of Person must be a whole number"),
    ('{"type":"Person","data":{"name":"x","age":true}}', "`age` of Person must be a whole number"),
    ('{"type":"Person","data":{"name":"x","age":3000000000}}', "is out of range"),
    ('{"type":"Person","data":{"name":"x","age":151}}', "must be between 0 and 150"),
    ('{"type":"Person","data":{"name":"x","mood":"mad"}}', "must be one of `calm`, `wild`"),
    ('{"type":"Person","data":{"name":"x","nick":"X"}}', "must match the pattern"),
    ('{"type":"Person","data":{"age":5}}', "`name` of Person is part of the key"),
    ('{"type":"Person","data":{"name":null}}', "must not be null"),
    ('{"type":"Person","data":{"name":""}}', "must not be empty"),
    ('{"type":"Person","id":"y","data":{"name":"x"}}', '`id` of Person must be "x"'),
    ('{"type":"Person","id":"x","data":{"name":"x","id":"x"}}', "both beside and in `data`"),
    ('{"type":"Note","data":{}}', "`text` of Note is required"),
    ('{"type":"Note","data":{"text":null}}', "`text` of Note is required, but it is null"),
    ('{"type":"Note","data":{"text":"x","stars":NaN}}', "NaN is not JSON; Parquet and Arrow may"),
    ('{"type":"Note","data":{"text":"x","stars":-Infinity}}', "-Infinity is not JSON"),
    ('{"type":"Note","data":{"text":"x","stars":1e999}}', "1e999 is too large"),
    ('{"type":"Note","data":{"text":"x","stars":9007199254740993}}', "no exact floating-point"),
    ('{"type":"Note","data":{"text":"\\ud800"}}', "half of a surrogate pair"),
    ('{"type":"Media","data":{"title":"t","cover":"hi"}}', "begins with `base64:`"),
    ('{"type":"Media","data":{"title":"t","cover":"base64:?"}}', "valid Base64"),
    ('{"type":"Media","data":{"title":"t","place":[1,2]}}', "a list of 3 numbers"),
    ('{"type":"Media","data":{"title":"t","place":[1,2,"x"]}}', "`place[2]`"),
    ('{"type":"Media","data":{"title":"t","words":["a",null]}}', "`words[1]`"),
    ('{"type":"Media","data":{"title":"t","words":"a"}}', "must be a list"),
    ('{"type":"Media","data":{"title":"t","day":"2024-05-31T00:00:00Z"}}', "`day` of Media"),
    ('{"type":"Media","data":{"title":"t","day":"2024-02-30"}}', "`day` of Media"),
    ('{"type":"Media","data":{"title":"t","at":"yesterday"}}', "`at` of Media"),
    ('{"type":"Media","data":{"title":"t","huge":-1}}', "`huge` of Media"),
    ('{"type":"Media","data":{"title":"t","small":1e300}}', "`small` of Media"),
    ('{"edge":"Knows","from":"a"}', "`to` of Knows must be the id of a node"),
    ('{"edge":"Knows","from":"a","to":null}', "`to` of Knows must be the id of a node"),
    ('{"edge":"Knows","from":"a","to":5}', "`to` of Knows must be a string"),
    ('{"edge":"Knows","from":"a","to":""}', "`to` of Knows must be the id of a node"),
    ('{"edge":"Knows","from":"a","to":"zz"}', 'has `to` "zz", but there is no Person'),
    ('{"edge":"Knows","from":"a","src":"a","to":"a"}', "both `from` and `src`"),
    ('{"edge":"Knows","data":{"from":"a","to":"a"}}', "the ends of an edge stand beside `data`"),
]


@pytest.mark.parametrize(("line", "message"), LINES)
def test_a_mistake_is_told_with_its_line_and_changes_nothing(
    tmp_path: Path, line: str, message: str
) -> None:
    g = new_graph(tmp_path)
    source = write_lines(tmp_path / "f.jsonl", [person("a"), "", person("b"), line, person("c")])
    error = refused(g, source)
    assert "f.jsonl line 4: " in error.message
    assert message in error.message
    assert error.violations[0].row == 4


WHOLE: list[tuple[list[Any], dict[str, Any], str]] = [
    ([person("x"), person("x")], {}, 'line 2: More than one row of Person has the id "x"'),
    (
        [person("x"), person("x")],
        {"mode": "merge"},
        "give each entity once. It stands in f.jsonl line 1 already.",
    ),
    ([person("old")], {}, 'Person "old" exists already; append adds only what is new'),
    ([person("x", email="e")], {}, 'has email = "e", which another Person has already'),
    ([person("x", email="z"), person("y", email="z")], {}, "line 2: Person"),
    (
        [{"edge": "Wrote", "from": "old", "to": "n"}] * 3,
        {},
        '3 Wrote edges from Person "old" are too many',
    ),
    ([{"edge": "Owns", "from": "old", "to": "m"}], {}, "@card allows at least 2"),
    ([person("x")], {"mode": "overwrite"}, 'Person "old" would be gone, but Knows'),
    ([{"type": "Note", "id": "q", "data": {"stars": 1}}], {"mode": "merge"}, "not given it"),
]


@pytest.mark.parametrize(("entries", "options", "message"), WHOLE)
def test_a_rule_between_rows_is_told_with_its_line_and_changes_nothing(
    tmp_path: Path, entries: list[Any], options: dict[str, Any], message: str
) -> None:
    g = new_graph(tmp_path)
    g.load(
        [
            person("old", email="e"),
            knows("old", "old"),
            {"type": "Note", "id": "n", "data": {"text": "t"}},
            {"type": "Media", "data": {"title": "m"}},
        ]
    )
    error = refused(g, write_lines(tmp_path / "f.jsonl", entries), **options)
    assert message in error.message


def test_invalid_utf8_is_told_with_its_line(tmp_path: Path) -> None:
    g = new_graph(tmp_path)
    path = tmp_path / "f.jsonl"
    path.write_bytes(
        b'{"type":"Note","data":{"text":"a"}}\n{"type":"Note","data":{"text":"\xff"}}\n'
    )
    assert "line 2: byte 32 is not valid UTF-8" in refused(g, path).message


def test_a_file_that_ends_in_the_middle_of_a_line_is_refused(tmp_path: Path) -> None:
    g = new_graph(tmp_path)
    whole = write_lines(tmp_path / "f.jsonl", [person("a"), person("b")]).read_bytes()
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(whole[:-5])
    assert "cut.jsonl line 2: this is not JSON" in refused(g, cut).message
    cut.write_bytes(whole[:-1])
    g.load(cut)
    assert len(rows(g, "Person")) == 2


def test_a_byte_order_mark_and_windows_line_ends_are_fine(tmp_path: Path) -> None:
    g = new_graph(tmp_path)
    path = tmp_path / "f.jsonl"
    text = "\r\n".join(json.dumps(person(name)) for name in "abc") + "\r\n"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    g.load(path)
    assert [p["id"] for p in rows(g, "Person")] == ["a", "b", "c"]


def test_a_line_longer_than_a_chunk_is_read_and_a_broken_one_is_told(tmp_path: Path) -> None:
    g = new_graph(tmp_path, load_memory=8 << 20)
    long = "x" * 1_000_000
    g.load(
        write_lines(tmp_path / "f.jsonl", [person("a"), {"type": "Note", "data": {"text": long}}])
    )
    assert len(rows(g, "Note")[0]["text"]) == len(long)
    broken = json.dumps({"type": "Note", "data": {"text": long}})[:-1]
    error = refused(g, write_lines(tmp_path / "g.jsonl", [person("b"), broken]))
    assert "g.jsonl line 2: this is not JSON" in error.message
    assert len(error.message) < 1000


def test_a_line_of_a_hundred_megabytes_is_refused_and_takes_no_memory(tmp_path: Path) -> None:
    g = new_graph(tmp_path)
    path = tmp_path / "f.jsonl"
    with path.open("w") as file:
        file.write(json.dumps(person("a")) + '\n{"type":"Note","data":{"text":"')
        for _ in range(100):
            file.write("x" * 1_000_000)
        file.write('"}}\n' + json.dumps(person("b")) + "\n")
    warm = write_lines(tmp_path / "warm.jsonl", [person("w")])
    told = load_apart(tmp_path / "graph", path, warm=warm, memory=1 << 30)
    assert "f.jsonl line 2: this line is 100,000,034 bytes long, and at most" in told["message"]
    assert "raise the setting load_memory" in told["message"]
    assert told["peak"] < 2 * (64 << 20)  # what may be held of a line, and a chunk
    done = g.load(path, on_error="quarantine")
    (reject,) = done.rejected
    assert (reject.line, len(reject.row)) == (2, 201)
    assert [p["id"] for p in rows(g, "Person")] == ["a", "b", "w"]


@given(
    text=st.text("ab\n", max_size=60).map(str.encode),
    size=st.integers(1, 9),
    beyond=st.integers(0, 12),
)
def test_lines_are_cut_as_a_plain_split_cuts_them(text: bytes, size: int, beyond: int) -> None:
    longest = size + beyond
    stream = io.BytesIO(text)
    found: list[bytes | int] = []
    for chunk in cut_lines(stream.read, size, longest):
        if isinstance(chunk, LongLine):
            assert chunk.size > longest
            found.append(chunk.size)
        else:
            assert chunk.endswith(b"\n")
            found += chunk[:-1].split(b"\n")
    lines = text.split(b"\n")
    lines = lines if lines[-1] else lines[:-1]
    assert found == [line if len(line) <= longest else len(line) for line in lines]


def test_a_very_long_key_is_refused_with_its_line(tmp_path: Path) -> None:
    g = new_graph(tmp_path)
    longest = "k" * (64 << 10)
    g.load(write_lines(tmp_path / "f.jsonl", [person(longest), knows(longest, longest)]))
    assert rows(g, "Knows")[0]["src"] == longest
    for key in (longest + "x", "k" * 10_000_000):
        error = refused(g, write_lines(tmp_path / "g.jsonl", [person("a"), person(key)]))
        assert f"g.jsonl line 2: The id of this Person would be {len(key):,}" in error.message
        assert len(error.message) < 1000


def test_all_mistakes_are_counted_and_the_first_hundred_told(tmp_path: Path) -> None:
    g = new_graph(tmp_path)
    source = write_lines(tmp_path / "f.jsonl", [person(f"p{i}", age="x") for i in range(250)])
    error = refused(g, source)
    assert [v.row for v in error.violations] == list(range(1, 101))
    assert error.more == 150
    assert "(and 249 more)" in error.message


def test_an_empty_file_is_no_commit(tmp_path: Path) -> None:
    g = new_graph(tmp_path)
    head = g.snapshot().commit.id
    result = g.load(write_lines(tmp_path / "f.jsonl", ["", "  "]))
    assert (result.commit, result.counts, g.snapshot().commit.id) == (None, {}, head)
    assert contents(g)["Person"] == []
