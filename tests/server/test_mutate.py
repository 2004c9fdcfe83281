"""Writes over HTTP: what they answer, under which conditions, and what a repeated one does."""

from __future__ import annotations

import omnigraph
from tests.server.serving import Site

INSERT = 'insert Person { name: "Dan" }'


def test_a_mutation_is_one_commit(own: Site, graph: omnigraph.Graph) -> None:
    found = own.post("/graphs/people/mutate", {"query": INSERT, "message": "one more"})
    assert found.status == 200, found.body
    told = found.json
    assert (told["branch"], told["nodes"], told["edges"]) == ("main", 1, 0)
    assert told["counts"] == {"Person": {"inserted": 1, "updated": 0, "deleted": 0}}
    assert found.headers["etag"] == f'"{told["commit"]}"'
    commit = next(iter(graph.log(limit=1)))
    assert (commit.id, commit.message) == (told["commit"], "one more")
    assert commit.actor == own.get("/whoami").json["actor"]


def test_a_mutation_that_finds_nothing_makes_no_commit(own: Site) -> None:
    told = own.post("/graphs/people/mutate", {"query": 'delete Person where name = "Zoe"'}).json
    assert told["commit"] is None


def test_if_match_is_the_commit_that_the_branch_is_at(own: Site) -> None:
    seen = own.get("/graphs/people").headers["etag"]
    first = own.post("/graphs/people/mutate", {"query": INSERT}, if_match=seen)
    assert first.status == 200
    late = own.post("/graphs/people/mutate", {"query": INSERT}, if_match=seen)
    assert (late.status, late.code) == (412, "precondition_failed")
    assert late.json["expected"] == seen.strip('"')
    assert late.json["actual"] == first.json["commit"]
    assert late.json["applied"] is False


def test_a_repeated_key_gets_the_first_answer(own: Site) -> None:
    ask = {"query": INSERT}
    first = own.post("/graphs/people/mutate", ask, idempotency_key="k1").json
    again = own.post("/graphs/people/mutate", ask, idempotency_key="k1").json
    assert (first["repeated"], again["repeated"]) == (False, True)
    assert again["commit"] == first["commit"]
    # A key is looked at before the condition, which the first call has made untrue.
    held = own.post("/graphs/people/mutate", ask, idempotency_key="k1", if_match='"x"')
    assert held.json["repeated"] is True
    other = own.post(
        "/graphs/people/mutate", {"query": 'insert Person { name: "E" }'}, idempotency_key="k1"
    )
    assert (other.status, other.code) == (409, "idempotency_mismatch")


def test_conditions_are_written_as_they_should_be(own: Site) -> None:
    for headers in (
        {"if_match": "x"},
        {"if_match": '"a", "b"'},
        {"idempotency_key": "a b"},
        {"idempotency_key": "k" * 129},
    ):
        found = own.post("/graphs/people/mutate", {"query": INSERT}, **headers)
        assert (found.status, found.code) == (400, "invalid_argument")


def test_a_rule_that_is_broken_is_told_and_nothing_is_changed(own: Site) -> None:
    found = own.post("/graphs/people/mutate", {"query": 'insert Knows { from: "Ada", to: "Zoe" }'})
    assert (found.status, found.code) == (422, "invalid_data")
    assert found.json["violations"][0]["type"] == "Knows"
    assert own.get("/graphs/people").json["types"][1]["count"] == 2


def test_a_read_is_no_mutation(own: Site) -> None:
    found = own.post("/graphs/people/mutate", {"query": "match { $p: Person } return { $p.name }"})
    assert (found.status, found.code) == (400, "invalid_argument")
