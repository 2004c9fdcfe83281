"""A model talks to a process of its own: what it is offered and told, what it may not do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError

import omnigraph
from omnigraph.mcp.desk import CELL, CHARACTERS
from tests.docs.examples import make_graph
from tests.mcp.clients import call, over_stdio, wrong

READS = [
    "schema", "language", "query", "search", "explain", "check", "entity", "log", "diff",
    "branches", "merge_preview",
]  # fmt: skip
ALL = "match { $p: Person } return { $p.name } order { $p.name }"


@pytest.fixture
def root(tmp_path: Path) -> str:
    place = str(tmp_path / "people")
    with make_graph(place) as g:
        g.store_queries(
            {
                "older": "/* People above an age. */ query older($n: I32, $tags: [String]?) { "
                "match { $p: Person $p.age > $n } return { $p.name } order { $p.name } }",
                "add": "query add($name: String) { insert Person { name: $name } }",
            }
        )
    return place


def test_an_agent_finds_its_way_from_a_wrong_query_to_a_review(root: str) -> None:
    """The whole way: schema, a wrong query, the corrected one, a write on its branch, a preview."""

    async def session(client: Client) -> None:
        told = await call(client, "schema")
        assert "edge Knows: Person -> Person (2) as $a knows $b" in told["text"]
        error = await wrong(client, "query", query="match { $p: Persn } retrun { $p.name }")
        assert (error["code"], error["diagnostics"][0]["start"]["line"]) == ("invalid_query", 1)
        assert error["corrected"] == "match { $p: Person } return { $p.name }"
        found = await call(client, "query", query=error["corrected"])
        assert {row["p.name"] for row in found["rows"]} == {"Ada", "Bob", "Cyd"}
        text = 'insert Person { name: "Zoe" } insert Knows { from: "Zoe", to: "Ada" }'
        done = await call(client, "mutate", query=text, message="Zoe was missing")
        assert (done["branch"], done["counts"]["Person"]["inserted"]) == ("agent/eve", 1)
        assert "made from main" in done["note"]
        again = await call(client, "query", query=ALL, ref="agent/eve")
        assert again["row_count"] == 4
        assert (await call(client, "query", query=ALL))["row_count"] == 3
        entity = await call(client, "entity", type="Person", id="Zoe", ref="agent/eve", blame=True)
        origin = entity["origins"][0]["commit"]
        assert (origin["actor"], origin["message"]) == ("eve", "Zoe was missing")
        preview = await call(client, "merge_preview")
        assert preview["merge"]["changes"]["Person"] == {"insert": 1}
        denied = await wrong(client, "merge", source="agent/eve", message="done")
        assert denied["code"] == "not_found"

    over_stdio(root, session)
    with omnigraph.open(root) as g:
        assert g.merge("agent/eve", actor="ada", message="reviewed").outcome == "fast_forward"
        assert {one.commit.message for one in g.blame("Person", "Zoe") if one.commit} == {
            "Zoe was missing"
        }


def test_the_tools_are_typed_and_say_what_they_do(root: str) -> None:
    async def session(client: Client) -> dict[str, Any]:
        return {one.name: one for one in (await client.list_tools()).tools}

    tools = over_stdio(root, session)
    writes = ["mutate", "load", "branch_create"]
    assert [*tools] == [*READS, *writes, "q_add", "q_older"]
    for name, tool in tools.items():
        assert tool.input_schema["type"] == tool.output_schema["type"] == "object"
        assert tool.annotations.read_only_hint == (name not in {*writes, "q_add"})
        assert tool.description
    older = tools["q_older"]
    assert older.description == "People above an age."
    assert older.input_schema["properties"]["n"] == {"type": "integer"}
    assert older.input_schema["required"] == ["n"]
    rows = older.output_schema["properties"]["rows"]["items"]["properties"]
    assert rows == {"p.name": {"description": "String"}}
    reader = over_stdio(root, session, "--role", "reader")
    assert [*reader] == [*READS, "q_older"]
    admin = over_stdio(root, session, "--role", "admin", "--merge")
    assert admin["merge"].annotations.destructive_hint


def test_stored_queries_are_tools(root: str) -> None:
    async def session(client: Client) -> None:
        found = await call(client, "q_older", n=40)
        assert found["rows"] == [{"p.name": "Bob"}]
        error = await wrong(client, "q_older", m=40)
        assert error["code"] == "invalid_parameters"
        done = await call(client, "q_add", name="New", message="by its name")
        assert (done["branch"], done["counts"]["Person"]["inserted"]) == ("agent/eve", 1)
        assert (await wrong(client, "q_none"))["code"] == "not_found"

    over_stdio(root, session)


def test_answers_are_bounded_and_go_on_from_a_cursor(root: str) -> None:
    with omnigraph.open(root) as g:
        rows = [{"name": f"n{number:04}"} for number in range(300)]
        g.load([*rows, {"name": "x" * 5_000}], type="Person")
        every = sorted(row["name"] for row in g.scan("Person").read_all().to_pylist())

    async def session(client: Client) -> None:
        names: list[str] = []
        cursor = None
        while True:
            page = await call(client, "query", query=ALL, cursor=cursor)
            assert page["row_count"] == len(page["rows"]) <= 100
            names += [row["p.name"] for row in page["rows"]]
            cursor = page["cursor"]
            if cursor is None:
                break
        assert len(names) == len(every)
        assert names[:-1] == every[:-1]
        assert len(names[-1]) <= CELL
        assert "5,000 characters" in names[-1]
        free = await call(client, "query", query="match { $p: Person } return { $p.name }")
        assert (free["truncated"], free["cursor"]) == (True, None)
        assert "order" in free["note"]
        wide = "match { $p: Person } return { $p.name, $p.name as b, $p.name as c } limit 1000"
        result = await client.call_tool("query", {"query": wide, "limit": 1000})
        assert len(result.content[0].text) < CHARACTERS + 2_000  # type: ignore[union-attr]
        assert (await wrong(client, "query", query=ALL, limit=1001))["code"] == "invalid_argument"
        other = ALL.replace("$p.name }", "$p.age }", 1)
        page = await call(client, "query", query=ALL, limit=1)
        error = await wrong(client, "query", query=other, cursor=page["cursor"])
        assert error["code"] == "cursor_mismatch"
        log = await call(client, "log", limit=1)
        assert log["truncated"]
        second = await call(client, "log", limit=1, cursor=log["cursor"])
        assert second["items"][0]["commit"] != log["items"][0]["commit"]
        parts = await call(client, "diff", old="main~1", new="main", limit=2)
        more = await call(client, "diff", old="main~1", new="main", limit=2, cursor=parts["cursor"])
        assert len({one["id"] for one in [*parts["items"], *more["items"]]}) == 4

    over_stdio(root, session)


def test_what_is_wrong_is_told_so_that_it_can_be_mended(root: str) -> None:
    async def session(client: Client) -> None:
        assert "Did you mean 'mutate'" in (await wrong(client, "mutat"))["help"]
        assert "It takes query" in (await wrong(client, "query", text="x"))["help"]
        error = await wrong(client, "entity", type="Persn", id="Ada")
        assert (error["code"], error["help"]) == ("type_not_found", "Did you mean Person?")
        rows = [{"name": "Ada"}]
        error = await wrong(client, "load", type="Person", rows=rows, message="m", mode="append")
        assert error["code"] == "invalid_data"
        assert error["violations"]
        text = 'insert Person { name: "Zoe" }'
        error = await wrong(client, "mutate", query=text, message="m", branch="main")
        assert error["code"] == "denied"
        error = await wrong(client, "mutate", query="insert Persn { name: 1 }", message="m")
        assert error["diagnostics"]
        checked = await call(client, "check", text="match { $p: Person } return { $p.nme }")
        assert (checked["ok"], checked["corrected"]) == (
            False,
            "match { $p: Person } return { $p.name }",
        )

    over_stdio(root, session)


def test_resources_and_prompts_are_there(root: str) -> None:
    async def session(client: Client) -> None:
        listed = [str(one.uri) for one in (await client.list_resources()).resources]
        assert "omnigraph://people/schema" in listed
        assert "omnigraph://people/schema/Person" in listed
        for uri in listed:
            assert (await client.read_resource(uri)).contents[0].text  # type: ignore[union-attr]
        with omnigraph.open(root) as g:
            commit = g.commit.id
        found = await client.read_resource(f"omnigraph://people/commits/{commit}")
        assert commit in found.contents[0].text  # type: ignore[union-attr]
        for uri in ("omnigraph://other/schema", "omnigraph://people/schema/None"):
            with pytest.raises(MCPError):
                await client.read_resource(uri)
        names = [one.name for one in (await client.list_prompts()).prompts]
        assert names == ["explore", "write_query", "review_branch"]
        text = await client.get_prompt("write_query", {"question": "Who is old?"})
        assert "Who is old?" in text.messages[0].content.text  # type: ignore[union-attr]
        with pytest.raises(MCPError):
            await client.get_prompt("write_query", {})

    over_stdio(root, session)
