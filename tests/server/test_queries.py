"""Stored queries over HTTP: what there is, what is stored, and each is run by its name."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from tests.server.serving import Site

OLDER = (
    "query older($n: I32) { match { $p: Person $p.age > $n } return { $p.name } order { $p.name } }"
)
ADD = "query add($name: String, $age: I32?) { insert Person { name: $name, age: $age } }"


@pytest.fixture
def stored(own: Site) -> Site:
    site = own
    done = site.ask("PATCH", "/graphs/people/queries", {"set": {"older": OLDER, "add": ADD}})
    assert done.status == 200, done.body
    assert (done.json["set"], done.json["removed"]) == (["add", "older"], [])
    assert done.headers["omnigraph-commit"] == done.json["commit"]
    return site


def test_the_catalog_is_typed(stored: Site) -> None:
    listed = stored.get("/graphs/people/queries")
    assert [(one["name"], one["kind"]) for one in listed.json["items"]] == [
        ("add", "mutation"),
        ("older", "read"),
    ]
    one = stored.get("/graphs/people/queries/older")
    assert one.json["parameters"][0]["name"] == "n"
    assert [column["name"] for column in one.json["columns"]] == ["p.name"]
    assert one.json["text"] == OLDER
    held = {"if_none_match": one.headers["etag"]}
    assert stored.get("/graphs/people/queries/older", **held).status == 304
    assert stored.get("/graphs/people/queries/olde").code == "query_not_found"
    assert "older" in stored.get("/graphs/people/queries/olde").json["help"]
    assert stored.get("/graphs/people/queries?ref=main~1").json["items"] == []
    first = stored.get("/graphs/people/queries?limit=1")
    rest = stored.get(f"/graphs/people/queries?cursor={first.json['cursor']}")
    assert [one["name"] for one in (*first.json["items"], *rest.json["items"])] == ["add", "older"]


def test_one_that_reads_is_run_by_its_name(stored: Site) -> None:
    path = "/graphs/people/queries/older/run"
    found = stored.post(path, {"params": {"n": 30}})
    assert [row["p.name"] for row in found.json["rows"]] == ["Ada", "Bob"]
    params = quote(json.dumps({"n": 30}))
    assert stored.get(f"{path}?params={params}").json["rows"] == found.json["rows"]
    page = stored.get(f"{path}?params={params}&limit=1")
    after = stored.get(f"{path}?params={params}&cursor={page.json['cursor']}")
    assert [*page.json["rows"], *after.json["rows"]] == found.json["rows"]
    other = quote(json.dumps({"n": 41}))
    assert stored.get(f"{path}?params={other}&cursor={page.json['cursor']}").code == (
        "cursor_mismatch"
    )
    lines = stored.post(path, {"params": {"n": 30}}, accept="application/jsonl")
    assert len(lines.body.splitlines()) == 2
    assert stored.post(path, {"params": {"n": "x"}}).code == "invalid_parameters"
    assert stored.get(f"{path}?params=[1]").code == "invalid_argument"
    assert stored.get(f"{path}?params=nonsense").code == "invalid_argument"
    assert stored.post(path, {"params": {"n": 1}, "ref": "main~1"}).code == "query_not_found"


def test_a_mutation_is_run_by_its_name_and_never_by_get(stored: Site) -> None:
    path = "/graphs/people/queries/add/run"
    body = {"params": {"name": "Eve", "age": 5}}
    done = stored.post(path, body, idempotency_key="k")
    assert (done.json["nodes"], done.json["repeated"]) == (1, False)
    assert stored.post(path, body, idempotency_key="k").json["repeated"] is True
    late = stored.post(path, {"params": {"name": "Fay"}, "branch": "main"}, if_match='"0"')
    assert late.code in ("precondition_failed", "invalid_argument")
    params = quote(json.dumps({"name": "Gil"}))
    refused = stored.get(f"{path}?params={params}")
    assert refused.code == "invalid_argument"
    assert "mutation" in refused.json["error"]
    assert stored.post(path, {"params": {"name": "Gil"}, "limit": 3}).code == "invalid_argument"
    both = {"params": {"name": "Gil"}, "limit": 3, "branch": "main"}
    assert stored.post(path, both).code == "invalid_argument"


def test_what_is_stored_is_checked(stored: Site) -> None:
    path = "/graphs/people/queries"
    wrong = stored.ask("PATCH", path, {"set": {"x": "match { $p: Persn } return { $p.name }"}})
    assert wrong.code == "invalid_query"
    assert wrong.json["diagnostics"]
    assert stored.ask("PATCH", path, {"set": {"X": OLDER}}).code == "invalid_argument"
    assert stored.ask("PATCH", path, {"remove": ["nothing"]}).code == "query_not_found"
    assert stored.ask("PATCH", path, {"sett": {}}).code == "invalid_argument"
    schema = stored.get("/graphs/people/schema").json["schema"].replace("age: I32?", "")
    broken = stored.post("/graphs/people/schema/apply", {"schema": schema, "allow_data_loss": True})
    assert broken.code == "broken_queries"
    assert {one["name"] for one in broken.json["queries"]} == {"add", "older"}
    gone = stored.ask("PATCH", path, {"remove": ["older"]})
    assert gone.json["removed"] == ["older"]
    assert stored.post(f"{path}/older/run", {"params": {"n": 1}}).code == "query_not_found"
