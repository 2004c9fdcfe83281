"""Who is let in, and what is told of it: tokens, roles, policies, the audit, the metrics; and a
configuration that changes while the server runs."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import InvalidArgument
from omnigraph.policy.oidc import Issuer
from omnigraph.policy.tokens import create_token
from omnigraph.server import running
from omnigraph.server.config import ServerConfig
from omnigraph.server.limits import ServerLimits
from omnigraph.server.logs import LogConfig
from omnigraph.server.running import make_service
from tests.docs.examples import make_graph
from tests.server.serving import Site, read_all, serving

G = "/graphs/people"
INSERT = {"query": 'insert Person { name: "Dan" }'}
ASK = {"query": "match { $p: Person } return { $p.name }"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    make_graph(str(tmp_path / "people")).close()
    make_graph(str(tmp_path / "other")).close()
    return tmp_path


@pytest.fixture
def config(place: Path) -> ServerConfig:
    return ServerConfig(
        graphs={"people": str(place / "people"), "other": str(place / "other")},
        tokens=str(place / "tokens.json"),
        log=LogConfig(audit=str(place / "audit.jsonl")),
    )


def token(place: Path, actor: str, role: str, **more: Any) -> str:
    return f"Bearer {create_token(place / 'tokens.json', actor, roles=[role], **more).text}"


def served(config: ServerConfig) -> Any:
    return serving(make_service(config, lambda: config))


def test_only_who_has_a_token_is_let_in(place: Path, config: ServerConfig) -> None:
    ada = token(place, "ada", "writer", graphs=["people"])
    old = token(place, "ada", "writer", lasts=-1.0)
    with served(config) as site:
        for wrong in ({}, {"authorization": ada[:-1]}, {"authorization": old}):
            refused = site.get(G, **wrong)
            assert (refused.status, refused.code) == (401, "unauthenticated")
            assert refused.headers["www-authenticate"] == "Bearer"
        for malformed in ("Basic YTpi", "Bearer", "Bearer ogt_x_y", "Bearer ü".encode("latin-1")):
            assert site.get(G, authorization=malformed).status == 401
        assert site.get("/whoami", authorization=ada).json["actor"] == "ada"
        assert site.get(G, authorization=ada).status == 200
        other = site.get("/graphs/other", authorization=ada)
        missing = site.get("/graphs/nothing", authorization=ada)
        assert (other.status, missing.status) == (404, 404)
        assert other.json["error"].replace("other", "nothing") == missing.json["error"]
        listed = site.get("/graphs", authorization=ada).json["items"]
        assert [one["name"] for one in listed] == ["people"]
        for path in ("/healthz", "/readyz", "/version", "/openapi.json", "/"):
            assert site.get(path).status == 200, path
        for path in ("/metrics", "/whoami", "/graphs"):
            assert site.get(path).status == 401, path


def test_roles_decide_and_who_reads_does_not_write(place: Path, config: ServerConfig) -> None:
    eve, ada = token(place, "eve", "reader"), token(place, "ada", "writer")
    with served(config) as site:
        assert site.post(f"{G}/query", ASK, authorization=eve).status == 200
        denied = site.post(f"{G}/mutate", INSERT, authorization=eve, x_request_id="req-1")
        assert (denied.status, denied.code) == (403, "denied")
        assert (denied.json["action"], denied.json["resource"]) == ("mutate", "branch 'main'")
        done = site.post(f"{G}/mutate", INSERT, authorization=ada, x_request_id="req-2")
        assert site.get(f"{G}/commits?limit=1", authorization=eve).json["items"][0]["actor"] == (
            "ada"
        )
        for path in ("/reload", f"{G}/schema/apply"):
            body = {} if path == "/reload" else {"schema": "node X { name: String }"}
            assert site.post(path, body, authorization=ada).status == 403, path
        metrics = site.get("/metrics", authorization=ada).body.decode()
    lines = [json.loads(line) for line in (place / "audit.jsonl").read_text().splitlines()]
    assert [
        (one["event"], one["actor"], one["action"], one["request_id"]) for one in lines[:2]
    ] == [("denied", "eve", "mutate", "req-1"), ("write", "ada", "mutate", "req-2")]
    assert lines[1]["commit"] == done.json["commit"]
    assert {one["action"] for one in lines[2:]} == {"admin", "schema_apply"}
    assert 'omnigraph_commits_total{graph="people",kind="mutate"} 1.0' in metrics
    assert 'omnigraph_policy_decisions_total{action="mutate",decision="deny"}' in metrics
    assert 'omnigraph_storage_requests_total{purpose="version",verb="put"}' in metrics
    assert "ogt_" not in metrics
    assert "ogt_" not in (place / "audit.jsonl").read_text()


def test_no_answer_is_kept_where_policies_hide_rows(place: Path, config: ServerConfig) -> None:
    eve = token(place, "eve", "reader")
    policy = place / "some.cedar"
    policy.write_text(
        'permit (principal, action in [Action::"read", Action::"query"], resource is Branch);\n'
        'permit (principal, action == Action::"see", resource is people::Person)\n'
        "when { resource has age && resource.age > 40 };\n"
    )
    one = replace(config, policies=(str(policy),), graphs={"people": str(place / "people")})
    with served(one) as site:
        found = site.post(f"{G}/query", ASK, authorization=eve)
        assert [row["p.name"] for row in found.json["rows"]] == ["Bob"]
        assert found.headers["cache-control"] == "no-store"
        held = {"if_none_match": found.headers["etag"], "authorization": eve}
        assert site.post(f"{G}/query", ASK, **held).status == 200
        assert site.get(f"{G}/schema", **held).status == 200
        assert "Knows" not in site.get(f"{G}/schema", authorization=eve).body.decode()
        hidden = site.get(f"{G}/entities/Person?id=Ada", authorization=eve)
        nothing = site.get(f"{G}/entities/Person?id=Adx", authorization=eve)
        assert (hidden.code, nothing.code) == ("entity_not_found", "entity_not_found")
        assert hidden.json["error"].replace("Ada", "Adx") == nothing.json["error"]
        assert site.get(f"{G}/export", authorization=eve).code == "denied"


def test_anonymous_callers_read_where_that_is_allowed(place: Path, config: ServerConfig) -> None:
    token(place, "ada", "writer")
    with served(replace(config, anonymous="reader")) as site:
        assert site.post(f"{G}/query", ASK).status == 200
        assert site.post(f"{G}/mutate", INSERT).status == 403
        assert site.get(G, authorization="Bearer ogt_wrong_wrong").status == 401


def test_an_issuer_is_told_to_who_has_no_token(place: Path, config: ServerConfig) -> None:
    issuer = Issuer("https://issuer.example", "omnigraph", "http://127.0.0.1:1/jwks", {})
    with served(replace(config, tokens=None, issuer=issuer)) as site:
        told = site.get(G).headers["www-authenticate"]
        place_of = told.removeprefix('Bearer resource_metadata="').removesuffix('"')
        found = site.get(place_of.removeprefix(site.url))
        assert found.json["authorization_servers"] == ["https://issuer.example"]
        assert found.json["resource"] == site.url
        assert site.get(G, host='x" y').headers["www-authenticate"] == "Bearer"
    token(place, "ada", "writer")
    with served(config) as site:
        assert site.get("/.well-known/oauth-protected-resource").status == 404


def test_one_actor_has_so_much_and_others_are_not_kept_waiting(
    place: Path, config: ServerConfig
) -> None:
    eve, ada = token(place, "eve", "reader"), token(place, "ada", "reader")
    few = replace(config, limits=ServerLimits(actor_rate=0.5, actor_burst=3))
    with served(few) as site:
        answers = [site.get("/whoami", authorization=eve) for _ in range(5)]
        assert [one.status for one in answers] == [200, 200, 200, 429, 429]
        assert answers[-1].code == "rate_limited"
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert site.get("/whoami", authorization=ada).status == 200


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_WATCH", 0.05)


def until(found: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.usefixtures("quick")
def test_changed_files_are_taken_without_being_asked(place: Path, config: ServerConfig) -> None:
    ada = token(place, "ada", "writer")
    service = make_service(config, lambda: config)
    running._watch_files(service, config)
    with serving(service) as site:
        assert site.get(G, authorization=ada).status == 200
        eve = token(place, "eve", "reader")
        until(lambda: site.get(G, authorization=eve).status == 200)
        (place / "tokens.json").write_text("{ nonsense")
        time.sleep(0.3)
        assert site.get(G, authorization=eve).status == 200  # what was there stays


def test_graphs_below_a_prefix_are_listed_and_made_where_that_is_allowed(place: Path) -> None:
    config = ServerConfig(prefix=str(place))
    (place / "no graph").mkdir()
    (place / "empty").mkdir()
    schema = {"name": "new", "schema": "node Note { text: String }"}
    with served(config) as site:
        names = [one["name"] for one in site.get("/graphs").json["items"]]
        assert names == ["other", "people"]
        assert site.post("/graphs", schema).code == "denied"
        assert site.ask("DELETE", "/graphs/other", {"confirm": "other"}).code == "denied"
    with served(replace(config, create=True)) as site:
        assert site.post("/graphs", schema).status == 201
        names = [one["name"] for one in site.get("/graphs").json["items"]]
        assert names == ["new", "other", "people"]


@pytest.fixture
def slow(place: Path) -> Iterator[Site]:
    limits = ServerLimits(header_seconds=0.5, body_rate=1_000_000)
    with served(ServerConfig(graphs={"people": str(place / "people")}, limits=limits)) as site:
        yield site


def test_a_body_that_comes_too_slowly_is_refused(slow: Site) -> None:
    head = (
        b"POST /graphs/people/query HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    )
    with socket.create_connection(slow.address, timeout=20) as sock:
        sock.sendall(head)
        began = time.monotonic()
        answer = read_all(sock)
    assert b"413" in answer.split(b"\r\n")[0]
    assert b"body_rate" in answer
    assert time.monotonic() - began < 15
    assert slow.get("/healthz").status == 200


def test_a_wrong_place_for_the_audit_refuses_to_start(config: ServerConfig) -> None:
    with pytest.raises((InvalidArgument, OSError)):
        make_service(replace(config, log=LogConfig(audit="/nowhere/at/all")), lambda: config)
