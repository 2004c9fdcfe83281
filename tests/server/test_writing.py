"""Transactions, loads, exports, and graphs that come and go."""

from __future__ import annotations

import base64
import gzip
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import omnigraph
from omnigraph.server.graphs import Graphs
from omnigraph.server.limits import ServerLimits
from omnigraph.server.service import Service
from tests.docs.examples import SCHEMA, make_graph
from tests.server.serving import Site, serving

G = "/graphs/people"


def test_statements_are_one_commit(own: Site, graph: omnigraph.Graph) -> None:
    body = {
        "message": "several",
        "statements": [
            {"op": "upsert", "type": "Person", "rows": [{"name": "Dan", "age": 7}]},
            {"op": "append", "type": "Knows", "rows": [{"from": "Dan", "to": "Ada"}]},
            {"op": "update", "type": "Person", "set": {"age": 8}, "where": 'name = "Dan"'},
            {"op": "delete", "type": "Person", "where": 'name = "Cyd"'},
        ],
    }
    tried = own.post(f"{G}/transactions?preview=true", body).json
    assert (tried["counts"], tried["commit"]) == ([1, 1, 1, 1], None)
    assert graph.count("Person") == 3
    done = own.post(f"{G}/transactions", body, idempotency_key="t").json
    assert done["counts"] == [1, 1, 1, 1]
    assert graph.commit.id == done["commit"]
    assert graph.commit.message == "several"
    again = own.post(f"{G}/transactions", body, idempotency_key="t").json
    assert (again["repeated"], again["commit"]) == (True, done["commit"])


def test_a_preview_reads_what_would_be(own: Site) -> None:
    body = {
        "statements": [{"op": "delete", "type": "Person", "where": "age > 40"}],
        "scan": {"type": "Person", "columns": ["name"]},
    }
    told = own.post(f"{G}/transactions?preview=true", body).json
    assert sorted(row["name"] for row in told["rows"]) == ["Ada", "Cyd"]
    assert own.post(f"{G}/transactions", body).code == "invalid_argument"


def test_what_was_read_must_not_have_changed(own: Site) -> None:
    base = own.get(G).json["commit"]
    own.post(f"{G}/mutate", {"query": "delete Knows where true"})
    body = {
        "base": base,
        "reads": ["Person"],
        "statements": [{"op": "append", "type": "Person", "rows": [{"name": "Dan"}]}],
    }
    assert own.post(f"{G}/transactions", body).status == 200
    late = own.post(f"{G}/transactions", body | {"reads": ["Knows"]})
    assert (late.status, late.code) == (409, "conflict")
    assert late.json["manifest_conflict"]["table_key"] == "edge:Knows"
    assert late.json["retryable"] is True


def test_rows_may_come_as_arrow(own: Site, graph: omnigraph.Graph) -> None:
    sink = io.BytesIO()
    table = pa.table({"name": ["Dan", "Eve"], "age": pa.array([1, 2], pa.int32())})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    statements = {"statements": [{"op": "append", "type": "Person", "part": "people"}]}
    found = own.pool.request(
        "POST",
        f"{own.url}{G}/transactions",
        fields={
            "transaction": ("t", json.dumps(statements), "application/json"),
            "people": ("p", sink.getvalue(), "application/vnd.apache.arrow.stream"),
        },
    )
    assert found.status == 200, found.data
    assert graph.count("Person") == 5


def test_a_condition_of_a_statement_may_come_as_substrait(own: Site) -> None:
    schema = pa.schema([("age", pa.int32())])
    told = pa.substrait.serialize_expressions([pc.field("age") > 40], ["test"], schema)
    text = base64.b64encode(bytes(told)).decode()
    body = {"statements": [{"op": "delete", "type": "Person", "substrait": text}]}
    assert own.post(f"{G}/transactions", body).json["counts"] == [1]


@pytest.mark.parametrize(
    "body",
    [
        {"statements": [{"op": "wat"}]},
        {"statements": [{"op": "append", "type": "Person"}]},
        {"statements": [{"op": "append", "type": "Person", "part": "x"}]},
        {"reads": ["Person"]},
        {"unknown": 1},
    ],
)
def test_a_wrong_transaction_is_refused(site: Site, body: object) -> None:
    found = site.post(f"{G}/transactions", body)
    assert (found.status, found.code) == (400, "invalid_argument")


# Loads

LINE = b'{"type": "Person", "data": {"name": "%s"}}\n'
LINES = LINE % b"Dan" + LINE % b"Eve"


@pytest.mark.parametrize("coding", ["identity", "gzip", "zstd"])
def test_a_body_is_loaded(own: Site, graph: omnigraph.Graph, coding: str) -> None:
    body = LINES if coding == "identity" else pa.compress(LINES, coding, asbytes=True)
    body = gzip.compress(LINES) if coding == "gzip" else body
    if coding == "zstd":
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, "zstd") as out:
            out.write(LINES)
        body = sink.getvalue().to_pybytes()
    ask = {"content_type": "application/jsonl", "content_encoding": coding, "idempotency_key": "l"}
    done = own.ask("POST", f"{G}/load?message=two", body, **ask)
    assert done.status == 200, done.body
    assert done.json["counts"]["Person"]["inserted"] == 2
    again = own.ask("POST", f"{G}/load?message=two", body, **ask).json
    assert (again["repeated"], again["commit"]) == (True, done.json["commit"])
    ask["content_encoding"] = "identity"
    other = own.ask("POST", f"{G}/load?message=two", LINES + LINES, **ask)
    assert (other.status, other.code) == (409, "idempotency_mismatch")
    assert graph.count("Person") == 5


def test_a_load_goes_to_a_new_branch_and_puts_wrong_rows_aside(own: Site) -> None:
    body = b"name,age\nDan,7\nEve,old\n"
    path = f"{G}/load?type=Person&branch=import&from=main&on_error=quarantine"
    done = own.ask("POST", path, body, content_type="text/csv").json
    assert (done["branch"], done["rejected"]) == ("import", 1)
    assert done["rejects"][0]["line"] == 3
    wrong = own.ask("POST", f"{G}/load?type=Person", body, content_type="text/csv")
    assert (wrong.status, wrong.code) == (422, "invalid_data")
    assert "/tmp" not in wrong.body.decode()
    assert own.ask("POST", f"{G}/load", b"x", content_type="text/html").status == 415
    bad = own.ask(
        "POST", f"{G}/load", b"x", content_type="application/jsonl", content_encoding="gzip"
    )
    assert (bad.status, bad.code) == (400, "invalid_argument")


def test_a_body_that_unpacks_too_large_is_refused(tmp_path: Path) -> None:
    make_graph(str(tmp_path / "g")).close()
    limits = ServerLimits(load_bytes=1 << 20)
    with serving(Service(Graphs({"people": str(tmp_path / "g")}), limits)) as site:
        bomb = gzip.compress(b"\n" * (8 << 20))
        found = site.ask(
            "POST",
            f"{G}/load",
            bomb,
            content_type="application/jsonl",
            content_encoding="gzip",
        )
        assert (found.status, found.code) == (413, "too_large")
        assert found.json["limit"] == "load_bytes"


# Exports


@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet", "arrow"])
def test_an_export_can_be_loaded_again(site: Site, tmp_path: Path, format: str) -> None:
    types = "" if format == "jsonl" else "&type=Person"
    found = site.get(f"{G}/export?format={format}{types}")
    assert found.status == 200, found.body
    path = tmp_path / f"people.{format}"
    path.write_bytes(found.body)
    with omnigraph.init(str(tmp_path / "g"), schema=SCHEMA) as g:
        g.load(path, type=None if format == "jsonl" else "Person")
        assert g.count("Person") == 3
    assert site.get(f"{G}/export", if_none_match=found.headers["etag"]).status == 304


def test_an_export_of_several_types_has_one_form(site: Site) -> None:
    found = site.get(f"{G}/export?format=csv")
    assert (found.status, found.code) == (400, "invalid_argument")


# Graphs


def test_graphs_come_and_go_below_a_prefix(tmp_path: Path) -> None:
    with serving(Service(Graphs({}, prefix=str(tmp_path)))) as site:
        assert site.get("/graphs").json["items"] == []
        made = site.post("/graphs", {"name": "pets", "schema": SCHEMA})
        assert (made.status, made.headers["location"]) == (201, "/graphs/pets")
        assert site.post("/graphs", {"name": "pets", "schema": SCHEMA}).code == "graph_exists"
        assert site.get("/graphs/pets").json["types"][0]["name"] == "Person"
        for name in ("..", "a/b", "A", "x" * 64, ""):
            refused = site.post("/graphs", {"name": name, "schema": SCHEMA})
            assert (refused.status, refused.code) == (400, "invalid_argument")
        assert site.ask("DELETE", "/graphs/pets", {"confirm": "x"}).status == 400
        assert site.ask("DELETE", "/graphs/pets", {"confirm": "pets"}).status == 200
        assert site.get("/graphs/pets").code == "graph_not_found"


def test_a_server_without_a_prefix_makes_no_graphs(site: Site) -> None:
    found = site.post("/graphs", {"name": "pets", "schema": SCHEMA})
    assert (found.status, found.code) == (403, "denied")
    assert [one["name"] for one in site.get("/graphs").json["items"]] == ["people"]


def test_a_graph_that_does_not_open_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "_graph.json").write_text("{")
    with serving(Service(Graphs({"broken": str(tmp_path / "broken")}))) as site:
        found = site.get("/graphs/broken")
        assert (found.status, found.code) == (503, "graph_unavailable")
        assert str(tmp_path) not in found.body.decode()
        assert found.headers["retry-after"]
