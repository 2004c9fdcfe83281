"""Queries over HTTP: pages, streams, cursors, conditions and refusals."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pytest

from omnigraph.wire.streams import WholeArrow
from tests.server.serving import Site

NAMES = "match { $p: Person } return { $p.name as name, $p.age as age } order { name }"


def test_a_page_has_columns_rows_and_its_commit(site: Site) -> None:
    found = site.post("/graphs/people/query", {"query": NAMES})
    assert found.status == 200, found.body
    told = found.json
    assert told["rows"] == [
        {"name": "Ada", "age": 36},
        {"name": "Bob", "age": 41},
        {"name": "Cyd", "age": None},
    ]
    assert told["columns"] == [
        {"name": "name", "type": "String", "nullable": False},
        {"name": "age", "type": "I32", "nullable": True},
    ]
    assert (told["ref"], told["row_count"], told["truncated"]) == ("main", 3, False)
    assert found.headers["etag"] == f'"{told["commit"]}"'
    assert found.headers["omnigraph-commit"] == told["commit"]
    assert found.headers["vary"] == "Accept, Authorization"


def test_a_cursor_goes_on_with_the_next_rows(site: Site) -> None:
    asked = {"query": NAMES, "limit": 2}
    first = site.post("/graphs/people/query", asked).json
    assert (first["row_count"], first["truncated"]) == (2, True)
    rest = site.post("/graphs/people/query", asked | {"cursor": first["cursor"]}).json
    assert [row["name"] for row in rest["rows"]] == ["Cyd"]
    assert (rest["truncated"], rest["cursor"]) == (False, None)


def test_a_result_without_an_order_has_no_cursor(site: Site) -> None:
    text = "match { $p: Person } return { $p.name }"
    told = site.post("/graphs/people/query", {"query": text, "limit": 1}).json
    assert (told["truncated"], told["cursor"]) == (True, None)


def test_a_cursor_of_another_query_is_refused(site: Site) -> None:
    first = site.post("/graphs/people/query", {"query": NAMES, "limit": 1}).json
    other = {"query": NAMES + " limit 5", "cursor": first["cursor"]}
    assert site.post("/graphs/people/query", other).code == "cursor_mismatch"
    damaged = {"query": NAMES, "cursor": "x" + first["cursor"]}
    assert site.post("/graphs/people/query", damaged).code == "invalid_cursor"


def test_lines_come_as_they_are_found(site: Site) -> None:
    found = site.post("/graphs/people/query", {"query": NAMES}, accept="application/jsonl")
    assert found.headers["content-type"] == "application/jsonl"
    rows = [json.loads(line) for line in found.body.splitlines()]
    assert [row["name"] for row in rows] == ["Ada", "Bob", "Cyd"]


@pytest.mark.parametrize("compression", ["", ";compression=zstd", ";compression=lz4"])
def test_an_arrow_stream_is_whole(site: Site, compression: str) -> None:
    accept = "application/vnd.apache.arrow.stream" + compression
    found = site.post("/graphs/people/query", {"query": NAMES}, accept=accept)
    assert found.headers["content-type"] == accept
    table = pa.Table.from_batches(list(WholeArrow(io.BytesIO(found.body))))
    assert table.column("name").to_pylist() == ["Ada", "Bob", "Cyd"]


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
@pytest.mark.parametrize("accept", ["application/json", "application/jsonl"])
def test_answers_are_compressed_if_the_client_likes_that(
    site: Site, coding: str, accept: str
) -> None:
    text = "match { $p: Person $q: Person $r: Person $s: Person } return { $p.name, $q.name }"
    plain = site.post("/graphs/people/query", {"query": text}, accept=accept)
    packed = site.pool.request(
        "POST",
        site.url + "/graphs/people/query",
        body=json.dumps({"query": text}).encode(),
        headers={
            "content-type": "application/json",
            "accept": accept,
            "accept-encoding": coding,
        },
        decode_content=False,
    )
    assert packed.headers["content-encoding"] == coding
    assert len(packed.data) < len(plain.body)
    with pa.CompressedInputStream(pa.BufferReader(packed.data), coding) as stream:
        unpacked = stream.read()
    if accept == "application/jsonl":
        assert unpacked == plain.body
    else:
        assert json.loads(unpacked)["rows"] == plain.json["rows"]


def test_whole_numbers_come_as_texts_where_that_is_asked_for(site: Site) -> None:
    text = "match { $p: Person } return { count($p) as people, max($p.age) as oldest }"
    usual = site.post("/graphs/people/query", {"query": text}).json
    assert usual["rows"] == [{"people": 3, "oldest": 41}]
    told = site.post(
        "/graphs/people/query", {"query": text}, accept="application/json;int64=string"
    ).json
    assert told["rows"] == [{"people": "3", "oldest": 41}]


def test_parameters_and_names_are_passed_on(site: Site) -> None:
    text = """
    query older($n: I32) { match { $p: Person $p.age > $n } return { $p.name as name } }
    query all() { match { $p: Person } return { count($p) as people } }
    """
    body = {"query": text, "name": "older", "params": {"n": 40}}
    assert site.post("/graphs/people/query", body).json["rows"] == [{"name": "Bob"}]
    wrong = site.post("/graphs/people/query", body | {"params": {"m": 1}})
    assert (wrong.status, wrong.code) == (422, "invalid_parameters")
    assert wrong.json["problems"]


def test_a_graph_has_nodes_and_edges(site: Site) -> None:
    text = "match { $p: Person $p $k:knows $f } return { $p.name }"
    found = site.post("/graphs/people/query", {"query": text, "shape": "graph"})
    assert found.status == 200, found.body
    assert {node["id"] for node in found.json["nodes"]} == {"Ada", "Bob", "Cyd"}
    ends = {(edge["from"]["id"], edge["to"]["id"]) for edge in found.json["edges"]}
    assert ends == {("Ada", "Bob"), ("Bob", "Cyd")}


def test_what_the_client_has_is_not_sent_again(site: Site) -> None:
    etag = site.post("/graphs/people/query", {"query": NAMES}).headers["etag"]
    for form in ("application/json", "application/jsonl"):
        again = site.post("/graphs/people/query", {"query": NAMES}, if_none_match=etag, accept=form)
        assert (again.status, again.body) == (304, b"")
        assert again.headers["etag"] == etag
    weak = site.post("/graphs/people/query", {"query": NAMES}, if_none_match=f"W/{etag}")
    assert weak.status == 304
    other = site.post("/graphs/people/query", {"query": NAMES}, if_none_match='"x"')
    assert other.status == 200


def test_what_depends_on_the_time_is_never_kept(site: Site) -> None:
    text = "match { $p: Person } return { $p.name, now() as at }"
    found = site.post("/graphs/people/query", {"query": text})
    assert found.headers["cache-control"] == "no-store"
    assert "etag" not in found.headers
    etag = f'"{found.json["commit"]}"'
    assert site.post("/graphs/people/query", {"query": text}, if_none_match=etag).status == 200


def test_a_query_with_mistakes_names_each(site: Site) -> None:
    found = site.post("/graphs/people/query", {"query": "match { $p: Persn } return { $p.nam }"})
    assert (found.status, found.code) == (422, "invalid_query")
    assert found.json["diagnostics"][0]["span"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"query": NAMES, "limit": 0}, 400, "invalid_argument"),
        ({"query": NAMES, "limit": 10_001}, 400, "invalid_argument"),
        ({"query": NAMES, "timeout": 601}, 400, "invalid_argument"),
        ({"query": NAMES, "timeout": 0}, 400, "invalid_argument"),
        ({"query": NAMES, "memory_limit": 0}, 400, "invalid_argument"),
        ({"query": NAMES, "memory_limit": 1 << 60}, 413, "memory_limit"),
        ({"query": NAMES, "ref": "nowhere"}, 404, "branch_not_found"),
        ({"query": NAMES, "shape": "heap"}, 400, "invalid_argument"),
        ({"query": NAMES, "wat": 1}, 400, "invalid_argument"),
        ({"query": 7}, 400, "invalid_argument"),
        ({}, 400, "invalid_argument"),
        ([], 400, "invalid_argument"),
    ],
)
def test_a_wrong_body_is_refused(site: Site, body: object, status: int, code: str) -> None:
    found = site.post("/graphs/people/query", body)
    assert (found.status, found.code) == (status, code), found.body


def test_a_form_that_is_not_there_is_refused(site: Site) -> None:
    found = site.post("/graphs/people/query", {"query": NAMES}, accept="text/csv")
    assert (found.status, found.code) == (406, "not_acceptable")


def test_a_query_that_takes_too_long_is_stopped(site: Site) -> None:
    text = "match { " + " ".join(f"$p{i}: Person" for i in range(16)) + " } return { $p0.name }"
    for form in ("application/json", "application/jsonl"):
        body = {"query": text + " order { $p1.name }", "timeout": 0.2}
        found = site.post("/graphs/people/query", body, accept=form)
        assert (found.status, found.code) == (504, "timeout")
