"""Models talk to a server: tokens and policy hold, nothing is kept between requests, and many
at once lose nothing."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client

import omnigraph
from omnigraph.policy.credentials import BearerCredentials
from omnigraph.policy.roles import Roles
from omnigraph.policy.tokens import Tokens, create_token
from omnigraph.runtime import SYSTEM
from omnigraph.server.graphs import Graphs
from omnigraph.server.service import Service
from tests.docs.examples import make_graph
from tests.mcp.clients import call, over_http, wrong
from tests.server.serving import Site, serving
from tests.server.test_running import running


@pytest.fixture
def root(tmp_path: Path) -> str:
    make_graph(str(tmp_path / "people")).close()
    return str(tmp_path / "people")


@pytest.fixture
def site(root: str) -> Iterator[Site]:
    with serving(Service(Graphs({"people": root}))) as found:
        yield found


def url(site: Site, graph: str = "people") -> str:
    return f"{site.url}/graphs/{graph}/mcp"


def token(path: Path, actor: str, role: str) -> str:
    made = create_token(
        str(path), actor, roles=(role,), groups=(), graphs=None, lasts=None, runtime=SYSTEM
    )
    return made.text


def test_a_session_over_http_is_the_same(site: Site, root: str) -> None:
    async def session(client: Client) -> str:
        error = await wrong(client, "query", query="match { $p: Persn } return { $p.name }")
        found = await call(client, "query", query=error["corrected"])
        assert found["row_count"] == 3
        done = await call(
            client, "mutate", query='insert Person { name: "Zoe" }', message="a new one"
        )
        search = await call(client, "search", text="ada")
        assert search["rows"][0]["id"] == "Ada"
        return str(done["branch"])

    branch = over_http(url(site), session)
    assert branch.startswith("agent/")
    with omnigraph.open(root) as g:
        assert g.at(branch).entity("Person", "Zoe") is not None
        assert g.entity("Person", "Zoe") is None


def test_clients_that_shake_hands_are_answered_too(site: Site) -> None:
    """Most clients speak the version before: a handshake, then calls; without a session."""
    headers: dict[str, Any] = {"accept": "application/json, text/event-stream"}
    hello = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "old", "version": "1"},
        },
    }  # fmt: skip
    told = site.post("/graphs/people/mcp", hello, **headers)
    assert told.status == 200
    assert "schema" in told.json["result"]["instructions"]
    ask = {
        "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "branches", "arguments": {}},
    }  # fmt: skip
    told = site.post("/graphs/people/mcp", ask, **headers, mcp_protocol_version="2025-06-18")
    assert told.json["result"]["structuredContent"]["branches"] == ["main"]


def test_what_is_not_there_is_a_problem(site: Site) -> None:
    assert site.post("/graphs/nothing/mcp", {}).code == "graph_not_found"
    assert site.post("/graphs/people/mcp?x=1", {}).code == "invalid_argument"


def test_a_server_may_be_told_not_to_speak_to_models(root: str) -> None:
    with serving(Service(Graphs({"people": root}), mcp_wanted=False)) as site:
        assert site.post("/graphs/people/mcp", {}).code == "engine_missing"


@pytest.fixture
def guarded(root: str, tmp_path: Path) -> Iterator[tuple[Site, dict[str, str]]]:
    path = tmp_path / "tokens.json"
    texts = {
        "eve": token(path, "eve", "agent"),
        "rita": token(path, "rita", "reader"),
        "max": token(path, "max", "maintainer"),
    }
    service = Service(
        Graphs({"people": root}),
        credentials=BearerCredentials(Tokens.read(str(path)), None, anonymous=None),
        guarded=True,
        policy=Roles(),
        mcp_merge=True,
    )
    with serving(service) as site:
        yield site, texts


def test_tokens_and_policy_hold(guarded: tuple[Site, dict[str, str]]) -> None:
    site, texts = guarded
    assert site.post("/graphs/people/mcp", {}).code == "unauthenticated"

    async def names(client: Client) -> set[str]:
        return {one.name for one in (await client.list_tools()).tools}

    eve, rita, boss = (over_http(url(site), names, texts[name]) for name in ("eve", "rita", "max"))
    assert "mutate" in eve
    assert "merge" not in eve
    assert not rita & {"mutate", "load", "branch_create", "merge"}
    assert "merge" in boss

    async def writes(client: Client) -> None:
        text = 'insert Person { name: "Zoe" }'
        assert (await wrong(client, "mutate", query=text, message="m", branch="main"))[
            "code"
        ] == "denied"
        done = await call(client, "mutate", query=text, message="m")
        assert done["branch"] == "agent/eve"
        error = await wrong(client, "mutate", query=text, message="m", branch="agent/max")
        assert error["code"] in ("branch_not_found", "denied")

    over_http(url(site), writes, texts["eve"])

    async def reads(client: Client) -> None:
        text = 'insert Person { name: "Ron" }'
        assert (await wrong(client, "mutate", query=text, message="m"))["code"] == "denied"

    over_http(url(site), reads, texts["rita"])

    async def merges(client: Client) -> None:
        preview = await call(client, "merge_preview", source="agent/eve")
        assert preview["merge"]["outcome"] == "fast_forward"
        done = await call(client, "merge", source="agent/eve", message="reviewed")
        assert done["merge"]["commit"]

    over_http(url(site), merges, texts["max"])


AGENTS, TURNS = 10, 3


def act(address: str, text: str, number: int) -> None:
    """One agent: it looks, and writes so often that the agents meet."""

    async def session(client: Client) -> None:
        await call(client, "schema")
        for turn in range(TURNS):
            text = f'insert Person {{ name: "a{number}-{turn}", age: {number} }}'
            done = await call(client, "mutate", query=text, message=f"turn {turn}")
            assert done["branch"] == f"agent/a{number}"
        if number == 0:
            rows = [{"name": "Ada", "rank": 0.5}]
            await call(client, "load", type="Person", rows=rows, message="ranked")

    over_http(address, session, text)


def test_ten_agents_at_once_through_two_workers_lose_nothing(root: str, tmp_path: Path) -> None:
    """Ten agents, each with its own token and branch, write at once; one reviewer merges all."""
    tokens = tmp_path / "tokens.json"
    texts = [token(tokens, f"a{number}", "agent") for number in range(AGENTS)]
    config = tmp_path / "omnigraph.toml"
    config.write_text(
        f"""[server]
workers = 2
[server.graphs]
people = "{root}"
[server.auth]
tokens = "{tokens}"
"""
    )
    with running(["--config", str(config), "--bind", "127.0.0.1:0"], tmp_path) as server:
        address = f"{server.wait().url}/graphs/people/mcp"
        with ThreadPoolExecutor(AGENTS) as pool:
            done = [pool.submit(act, address, texts[n], n) for n in range(AGENTS)]
        for one in done:
            one.result()
    with omnigraph.open(root) as g:
        branches = [name for name in g.branches() if name.startswith("agent/")]
        assert len(branches) == AGENTS
        for name in branches:
            g.merge(name, actor="ada", message=f"reviewed {name}")
        names = set(g.scan("Person", columns=["name"]).read_all()["name"].to_pylist())
        wanted = {f"a{agent}-{turn}" for agent in range(AGENTS) for turn in range(TURNS)}
        assert wanted | {"Ada", "Bob", "Cyd"} == names
        for name in sorted(wanted):
            agent, turn = name.split("-")
            assert authors(g, name) == {(agent, f"turn {turn}")}
        assert ("a0", "ranked") in authors(g, "Ada")


def authors(g: omnigraph.Graph, name: str) -> set[tuple[str | None, str | None]]:
    origins = g.blame("Person", name)
    return {(one.commit.actor, one.commit.message) for one in origins if one.commit}
