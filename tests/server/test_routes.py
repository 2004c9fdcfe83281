"""Every route of a graph, on a real socket: what it answers, and what it refuses."""

from __future__ import annotations

import base64
import io
import json

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import omnigraph
from tests.docs.examples import SCHEMA
from tests.server.serving import Site

G = "/graphs/people"


def test_a_graph_tells_what_is_in_it(site: Site) -> None:
    told = site.get(G).json
    assert [(one["name"], one["kind"], one["count"]) for one in told["types"]] == [
        ("Person", "node", 3),
        ("Knows", "edge", 2),
    ]
    assert [one["name"] for one in told["branches"]] == ["main"]
    assert told["format"]["current"] is True
    assert site.get(G, if_none_match=site.get(G).headers["etag"]).status == 304


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/graphs/nothing", 404, "graph_not_found"),
        ("GET", "/graphs/UPPER", 400, "invalid_argument"),
        ("GET", "/graphs/people/nothing", 404, "not_found"),
        ("GET", f"{G}/query", 405, "method_not_allowed"),
        ("GET", f"{G}?wat=1", 400, "invalid_argument"),
        ("GET", f"{G}?ref=main&ref=main", 400, "invalid_argument"),
        ("GET", f"{G}?ref=nowhere", 404, "branch_not_found"),
        ("GET", f"{G}?ref=%ff", 400, "invalid_argument"),
        ("GET", f"{G}?ref=%00", 400, "invalid_argument"),
        ("GET", "/graphs/peo%70le", 400, "invalid_argument"),
        ("GET", f"{G}/commits/xyz", 400, "invalid_argument"),
        ("GET", f"{G}/commits/01M7P8FYQ8F3HMPGM5NAKXEY7K", 404, "ref_not_found"),
        ("GET", f"{G}/commits?limit=0", 400, "invalid_argument"),
        ("GET", f"{G}/commits?limit=1001", 400, "invalid_argument"),
        ("GET", f"{G}/commits?cursor=x", 400, "invalid_cursor"),
        ("GET", f"{G}/entities/Nobody?id=x", 404, "type_not_found"),
        ("GET", f"{G}/entities/Person?id=Zoe", 404, "entity_not_found"),
        ("GET", f"{G}/entities/Per-son?id=x", 400, "invalid_argument"),
        ("GET", f"{G}/entities/Person", 400, "invalid_argument"),
        ("GET", f"{G}/entities/Person/blobs/age?id=Ada", 400, "invalid_argument"),
        ("GET", f"{G}/diff?old=main", 400, "invalid_argument"),
        ("GET", f"{G}/changes?since=omnigraph-cursor-1.x", 400, "invalid_cursor"),
        ("GET", f"{G}/changes?wait=31", 400, "invalid_argument"),
        ("GET", f"{G}/keys?key=k", 404, "not_found"),
        ("GET", f"{G}/keys?key=", 400, "invalid_argument"),
    ],
)
def test_what_is_not_there_or_not_written_right(
    site: Site, method: str, path: str, status: int, code: str
) -> None:
    found = site.ask(method, path)
    assert (found.status, found.code) == (status, code), found.body


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_body_of_another_kind_is_refused(site: Site, kind: str) -> None:
    found = site.ask("POST", f"{G}/query", b'{"query": ""}', content_type=kind)
    assert (found.status, found.code) == (415, "unsupported_media_type")


# Texts


def test_a_query_is_explained(site: Site) -> None:
    body = {"query": "match { $p: Person } return { $p.name }"}
    assert "scan Person" in site.post(f"{G}/explain", body).json["plan"]
    assert "3 rows" in site.post(f"{G}/explain", body | {"analyze": True}).json["plan"]


def test_texts_are_checked_for_editors(site: Site) -> None:
    told = site.post(f"{G}/check", {"text": "query q(){match{$p:Persn}return{$p.name}}"}).json
    assert told["diagnostics"][0]["start"]["line"] == 1
    good = site.post(f"{G}/check", {"text": "query q(){match{$p:Person}return{$p.name}}"}).json
    assert (good["diagnostics"], good["formatted"].count("\n") > 2) == ([], True)
    schema = site.post(f"{G}/check", {"text": "node X { a: Strin }", "language": "pg"}).json
    assert schema["diagnostics"]


# Schema


def test_a_schema_is_shown_planned_and_applied(own: Site) -> None:
    told = own.get(f"{G}/schema").json
    assert told["schema"] == SCHEMA
    person = told["types"][0]
    assert (person["name"], person["key"]) == ("Person", ["name"])
    assert person["properties"][1] == {"name": "age", "type": "I32", "nullable": True}
    more = SCHEMA + "node Pet { name: String }\n"
    plan = own.post(f"{G}/schema/plan", {"schema": more}).json
    assert [step["step"] for step in plan["steps"]] == ["add_type"]
    done = own.post(f"{G}/schema/apply", {"schema": more, "message": "pets"}).json
    assert done["applied"] is True
    again = own.post(f"{G}/schema/apply", {"schema": more}).json
    assert (again["applied"], again["commit"]) == (False, None)
    wrong = own.post(f"{G}/schema/apply", {"schema": "node"})
    assert (wrong.status, wrong.code) == (422, "invalid_schema")
    no = own.post(f"{G}/schema/apply", {"schema": SCHEMA.replace("name: String", "name: I32")})
    assert (no.status, no.code) == (422, "unsupported_change"), no.body


# Names


def test_branches_and_tags_come_and_go(own: Site) -> None:
    made = own.post(f"{G}/branches", {"name": "review/one", "from": "main"})
    assert made.status == 201, made.body
    assert own.post(f"{G}/branches", {"name": "review/one"}).code == "branch_exists"
    closed = own.ask("PATCH", f"{G}/branches?name=review/one", {"protected": True}).json
    assert closed["protected"] is True
    refused = own.post(f"{G}/mutate", {"query": "delete Knows where true", "branch": "review/one"})
    assert (refused.status, refused.code) == (403, "protected_branch")
    own.ask("PATCH", f"{G}/branches?name=review/one", {"protected": False})
    assert own.post(f"{G}/tags", {"name": "v1"}).status == 201
    assert [one["name"] for one in own.get(f"{G}/tags").json["items"]] == ["v1"]
    first = own.get(f"{G}/branches?limit=1").json
    rest = own.get(f"{G}/branches?limit=1&cursor={first['cursor']}").json
    assert {first["items"][0]["name"], rest["items"][0]["name"]} == {"main", "review/one"}
    assert own.ask("DELETE", f"{G}/tags?name=v1").status == 200
    assert own.ask("DELETE", f"{G}/tags?name=v1").code == "tag_not_found"
    assert own.ask("DELETE", f"{G}/branches?name=review/one").status == 200
    assert own.ask("DELETE", f"{G}/branches?name=main").code == "main_branch"


# Merges


def test_branches_merge_and_conflicts_are_told(own: Site) -> None:
    own.post(f"{G}/branches", {"name": "review"})
    change = 'update Person set { age: 50 } where name = "Ada"'
    own.post(f"{G}/mutate", {"query": change, "branch": "review"})
    tried = own.post(f"{G}/merge", {"source": "review", "dry_run": True}).json
    assert (tried["outcome"], tried["commit"]) == ("fast_forward", None)
    own.post(f"{G}/mutate", {"query": change.replace("50", "60")})
    torn = own.post(f"{G}/merge", {"source": "review"})
    assert (torn.status, torn.code) == (409, "merge_conflict")
    assert torn.json["conflicts"][0]["id"] == "Ada"
    row = {"name": "Ada", "age": 55}
    body = {
        "source": "review",
        "resolve": [{"type": "Person", "id": "Ada", "row": row}],
        "delete_source": True,
    }
    done = own.post(f"{G}/merge", body).json
    assert done["outcome"] == "merged"
    assert own.get(f"{G}/entities/Person?id=Ada").json["age"] == 55
    assert [one["name"] for one in own.get(f"{G}/branches").json["items"]] == ["main"]
    assert own.post(f"{G}/merge", {"source": "main"}).code == "self_merge"


def test_a_branch_goes_back(own: Site) -> None:
    done = own.post(f"{G}/mutate", {"query": "delete Knows where true"}).json
    back = own.post(f"{G}/revert", {"ref": done["commit"]}).json
    assert back["kind"] == "revert"
    assert (
        own.post(f"{G}/restore", {"ref": "main~2"}, idempotency_key="r").json["kind"] == "restore"
    )
    assert own.get(G).json["types"][1]["count"] == 2


# The past


def test_commits_are_listed_page_by_page(own: Site) -> None:
    for age in range(4):
        own.post(f"{G}/mutate", {"query": f"update Person set {{ age: {age} }} where true"})
    first = own.get(f"{G}/commits?limit=4").json
    rest = own.get(f"{G}/commits?limit=4&cursor={first['cursor']}").json
    assert (len(first["items"]), len(rest["items"]), rest["cursor"]) == (4, 2, None)
    newest = first["items"][0]
    assert newest["labels"] == ["main"]
    one = own.get(f"{G}/commits/{newest['commit']}").json
    assert one["commit"] == newest["commit"]
    changed = own.get(f"{G}/commits/{newest['commit']}/changes").json["items"]
    assert {change["id"] for change in changed} == {"Ada", "Bob", "Cyd"}
    other = own.get(f"{G}/commits?kind=write&limit=4&cursor={first['cursor']}")
    assert other.code == "cursor_mismatch"


def test_a_diff_is_a_page_or_a_stream(own: Site) -> None:
    own.post(f"{G}/mutate", {"query": "update Person set { age: 1 } where true"})
    page = own.get(f"{G}/diff?old=main~1&new=main&limit=2").json
    rest = own.get(f"{G}/diff?old=main~1&new=main&limit=2&cursor={page['cursor']}").json
    paged = page["items"] + rest["items"]
    lines = own.get(f"{G}/diff?old=main~1&new=main", accept="application/jsonl").body.splitlines()
    assert [json.loads(line) for line in lines] == paged
    assert len(paged) == 3
    summary = own.get(f"{G}/diff?old=main~1&new=main&summary=true").json
    assert summary["types"] == {"Person": {"update": 3}}
    none = own.get(f"{G}/diff?old=main~1&new=main&type=Knows").json
    assert none["items"] == []


def test_the_manifest_tells_the_tables(site: Site) -> None:
    rows = site.get(f"{G}/manifest").json["items"]
    assert {row["table_key"] for row in rows if row["table_key"]} == {"node:Person", "edge:Knows"}


def test_the_feed_goes_on_from_a_cursor(own: Site) -> None:
    told = own.get(f"{G}/changes").json
    assert [block["message"] for block in told["blocks"]][-1] == "three people"
    assert told["caught_up"] is True
    empty = own.get(f"{G}/changes?since={told['cursor']}&wait=0.2").json
    assert (empty["blocks"], empty["cursor"]) == ([], told["cursor"])
    own.post(f"{G}/mutate", {"query": "delete Knows where true"})
    new = own.get(f"{G}/changes?since={told['cursor']}&type=Knows")
    assert new.code == "cursor_mismatch"
    new = own.get(f"{G}/changes?since={told['cursor']}&wait=10")
    assert [change["op"] for change in new.json["blocks"][0]["changes"]] == ["delete", "delete"]
    one = own.get(f"{G}/changes?limit=1").json
    assert (len(one["blocks"]), one["caught_up"]) == (1, False)


def test_the_feed_comes_as_events(own: Site) -> None:
    cursor = own.get(f"{G}/changes").json["cursor"]
    found = own.pool.request(
        "GET",
        f"{own.url}{G}/changes",
        headers={"accept": "text/event-stream", "last-event-id": cursor},
        preload_content=False,
    )
    assert found.headers["content-type"].startswith("text/event-stream")
    done = own.post(f"{G}/mutate", {"query": "delete Knows where true"}).json
    seen = b""
    while b"event: commit" not in seen or not seen.endswith(b"\n\n"):
        seen += found.read1(65536)
    lines = dict(
        line.split(b": ", 1) for line in seen.splitlines() if line and not line.startswith(b":")
    )
    assert json.loads(lines[b"data"])["commit"] == done["commit"]
    assert lines[b"id"].decode() == json.loads(lines[b"data"])["cursor"]
    found.close()


# Entities


def test_an_entity_has_a_history(own: Site) -> None:
    assert own.get(f"{G}/entities/Person?id=Ada").json["age"] == 36
    own.post(f"{G}/mutate", {"query": 'update Person set { age: 37 } where name = "Ada"'})
    first = own.get(f"{G}/entities/Person/history?id=Ada&limit=1").json
    assert first["items"][0]["change"]["after"]["age"] == 37
    rest = own.get(f"{G}/entities/Person/history?id=Ada&limit=1&cursor={first['cursor']}").json
    assert rest["items"][0]["change"]["op"] == "insert"
    assert own.get(f"{G}/entities/Person?id=Ada&ref=main~1").json["age"] == 36


def test_a_blob_comes_whole_or_in_part(own: Site, graph: omnigraph.Graph) -> None:
    data = bytes(range(256)) * 20_000
    with graph.transaction() as tx:
        tx.upsert("Person", {"name": "Ada", "photo": data})
    path = f"{G}/entities/Person/blobs/photo?id=Ada"
    whole = own.get(path)
    assert (whole.status, whole.body == data) == (200, True)
    assert whole.headers["accept-ranges"] == "bytes"
    head = own.ask("HEAD", path)
    assert (head.status, head.headers["content-length"], head.body) == (200, str(len(data)), b"")
    for header, expected in (
        ("bytes=10-19", data[10:20]),
        ("bytes=5119990-", data[5119990:]),
        ("bytes=-5", data[-5:]),
        ("bytes=5119990-9999999", data[5119990:]),
    ):
        part = own.get(path, range=header)
        assert (part.status, part.body) == (206, expected), header
        assert part.headers["content-range"].endswith(f"/{len(data)}")
    assert own.get(path, range="bytes=0-4", if_range='"other"').status == 200
    assert own.get(path, range="bytes=0-4", if_range=whole.headers["etag"]).status == 206
    beyond = own.get(path, range="bytes=99999999-")
    assert (beyond.status, beyond.code) == (416, "range_not_satisfiable")
    assert own.get(path, if_none_match=whole.headers["etag"]).status == 304
    missing = own.get(f"{G}/entities/Person/blobs/photo?id=Bob")
    assert (missing.status, missing.code) == (404, "entity_not_found")


# Scans


def test_a_scan_gives_the_rows_of_a_type(site: Site) -> None:
    body = {"type": "Person", "columns": ["name"], "filter": "age > 40"}
    assert site.post(f"{G}/scan", body).json["rows"] == [{"name": "Bob"}]
    first = site.post(f"{G}/scan", {"type": "Person", "columns": ["name"], "limit": 2}).json
    more = {"type": "Person", "columns": ["name"], "limit": 2, "cursor": first["cursor"]}
    rows = first["rows"] + site.post(f"{G}/scan", more).json["rows"]
    assert {row["name"] for row in rows} == {"Ada", "Bob", "Cyd"}
    assert site.post(f"{G}/scan", {"type": "Nobody"}).code == "type_not_found"
    wrong = site.post(f"{G}/scan", {"type": "Person", "filter": "agge > 4"})
    assert (wrong.status, wrong.code) == (422, "invalid_query")


def test_a_condition_may_come_as_substrait(site: Site) -> None:
    schema = pa.schema([("age", pa.int32()), ("name", pa.string())])
    told = pa.substrait.serialize_expressions([pc.field("age") > 40], ["test"], schema)
    text = base64.b64encode(bytes(told)).decode()
    body = {"type": "Person", "columns": ["name"], "substrait": text}
    assert site.post(f"{G}/scan", body).json["rows"] == [{"name": "Bob"}]
    stream = site.post(f"{G}/scan", body, accept="application/vnd.apache.arrow.stream")
    table = pa.ipc.open_stream(io.BytesIO(stream.body)).read_all()
    assert table.to_pydict() == {"name": ["Bob"]}
    damaged = site.post(f"{G}/scan", body | {"substrait": "AAAA"})
    assert (damaged.status, damaged.code) == (400, "invalid_argument")


# Keys


def test_a_key_tells_what_became_of_a_write(own: Site) -> None:
    body = {"query": 'insert Person { name: "Dan" }'}
    done = own.post(f"{G}/mutate", body, idempotency_key="k-1").json
    assert own.get(f"{G}/keys?key=k-1").json["commit"] == done["commit"]
    assert own.get(f"{G}/keys?key=k-2").code == "not_found"


@pytest.mark.parametrize("route", ["plan", "apply"])
def test_a_schema_is_never_the_name_of_a_file(site: Site, route: str) -> None:
    found = site.post(f"{G}/schema/{route}", {"schema": "/etc/passwd"})
    assert (found.status, found.code) == (422, "invalid_schema")
    assert "root" not in found.body.decode()


def test_who_set_what_is_told(own: Site) -> None:
    own.post(
        "/graphs/people/mutate",
        {"query": 'update Person set { age: 37 } where name = "Ada"', "message": "birthday"},
    )
    told = own.get("/graphs/people/entities/Person/blame?id=Ada")
    found = {one["property"]: one for one in told.json["items"]}
    assert found["age"]["value"] == 37
    assert found["age"]["commit"]["message"] == "birthday"
    assert found["name"]["commit"]["actor"] == "ada"
    assert own.get("/graphs/people/entities/Person/blame?id=Zoe").code == "entity_not_found"


def test_the_log_is_told_as_a_drawing(own: Site) -> None:
    own.post("/graphs/people/branches", {"name": "side"})
    for branch in ("side", "main"):
        text = f'insert Person {{ name: "{branch}" }}'
        own.post("/graphs/people/mutate", {"query": text, "branch": branch})
    own.post("/graphs/people/merge", {"source": "side", "into": "main"})
    rows = own.get("/graphs/people/commits/lanes").json["items"]
    assert [row["kind"] for row in rows] == ["merge", "mutate", "mutate", "write", "init"]
    assert [row["lane"] for row in rows[:4]] == [0, 0, 1, 0] or rows[1]["lane"] == 1
    assert {edge["kind"] for row in rows for edge in row["edges"]} >= {"merge", "fork"}
    page = own.get("/graphs/people/commits/lanes?limit=1").json["items"]
    assert {edge["kind"] for edge in page[0]["edges"]} == {"cut", "merge"} or len(page) == 1


def test_the_schema_is_told_in_few_words(site: Site) -> None:
    told = site.get("/graphs/people/schema/summary?characters=500&type=Person").json
    assert told["text"].startswith("node Person (3)")
    assert "Knows" not in told["text"]
    assert site.get("/graphs/people/schema/summary?characters=1").code == "invalid_argument"


def test_a_wrong_query_comes_back_corrected(site: Site) -> None:
    told = site.post("/graphs/people/check", {"text": "match { $p: Persn } retrun { $p.name }"})
    assert told.json["corrected"] == "match { $p: Person } return { $p.name }"
