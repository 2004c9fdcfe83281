"""What a graph holds never moves the cursor of a terminal, renames its window or turns its lines
around, whichever command shows it; a file or a program gets every text as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import InvalidArgument
from omnigraph.settings import Settings
from tests.cli.world import Program

SIGNS = "\x1b\x07\x9b\u202e\x85\u2028"
ODD = f"a{SIGNS}b"
SCHEMA = f"""
// {ODD}
node T {{ name: String @key  text: String? @index @description({json.dumps(ODD)}) }}
edge To: T -> T
"""
STORED = f"// {ODD}\nmatch {{ $t: T }} return {{ $t.text as x, {json.dumps(ODD)} as y }}"
COMMANDS = (
    *(["search", "word"], ["search", ODD], ["stats"], ["schema", "show"], ["schema", "show", "T"]),
    *(["queries", "list"], ["queries", "show", "q"], ["queries", "run", "q"]),
    *(["jobs", "list"], ["jobs", "list", "--json"], ["jobs", "show", "JOB"]),
    *(["log"], ["log", "--graph"], ["show", "main"], ["history", "T", ODD], ["entity", "T", ODD]),
    *(["diff", "FIRST", "main"], ["changes"], ["snapshot"], ["branch", "list"], ["tag", "list"]),
    ["query", "-e", "match { $t: T } return { $t, $t.text }"],
    ["query", "-e", "match { $t: T } return { $t.text }", "--format", "csv"],
    ["query", "-e", "match { $t: T } return { $t.text }", "--format", "json"],
    ["query", "-e", "match { $t: T } return { $t.text }", "--format", "jsonl"],
    ["explain", "-e", f"match {{ $t: T {{ name: {json.dumps(ODD)} }} }} return {{ $t.text }}"],
    ["explain", "-e", f"match {{ $t: {ODD} }} return {{ 1 as x }}"],
    *(["schema", "plan", "new.pg"], ["lint", "bad.gq"], ["merge", "side"], ["jobs", "show", ODD]),
    *(["queries", "show", ODD], ["token", "create", ODD, "--role", "reader"], ["embed", ODD]),
    *(["load", "rows.jsonl"], ["mutate", "-e", f"insert {ODD}"], ["recover", "list"]),
    *(["export", "-", "--type", ODD], ["policy", "explain", ODD, "read", "-p", "bad.gq"]),
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("terminal") / "graph"
    with omnigraph.init(place, schema=SCHEMA, settings=Settings(folding="off")) as g:
        rows = [{"name": ODD, "text": f"word {ODD} word"}, {"name": "b"}]
        g.load(rows, type="T", engine="local", message=ODD, actor=f"ann {ODD}")
        g.store_queries({"q": STORED}, message=ODD, actor=ODD)
        g.create_branch("side")
        g.branch("side").mutate('update T set { text: "mine" } where name = "b"')
        g.mutate('update T set { text: "yours" } where name = "b"', message=ODD)
        g.create_tag("t")

        def fails(_: object) -> dict[str, str]:
            raise InvalidArgument(ODD)

        g.jobs.run(g.jobs.submit("verify", {ODD: ODD}, actor=ODD).id, fails)
    return place


def test_nothing_that_a_graph_holds_moves_the_cursor(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.pg").write_text(f"// {ODD}\nnode T {{ name: String @key {ODD}: I32? }}")
    (tmp_path / "bad.gq").write_text(f"match {{ {ODD} }}\n// {ODD}")
    (tmp_path / "rows.jsonl").write_text(json.dumps({"type": ODD, "data": {ODD: ODD}}))
    with omnigraph.open(root) as g:
        words = {"JOB": g.jobs.list()[0].id, "FIRST": list(g.log())[-2].id}
    program = Program(environment={"OMNIGRAPH_ROOT": str(root)}, width=80)
    for command in COMMANDS:
        ran = program([words.get(word, word) for word in command], terminal=True)
        for sign in SIGNS:
            assert sign not in ran.out + ran.err, (command, sign, ran.out, ran.err)
        assert ran.code in range(9), (command, ran)


def test_a_file_gets_a_text_as_it_is(root: Path) -> None:
    program = Program(environment={"OMNIGRAPH_ROOT": str(root)})
    assert program(["queries", "show", "q"]).out == f"{STORED}\n"
    assert program(["schema", "show"]).out.strip() == SCHEMA.strip()
    csv = ["query", "-e", "match { $t: T } return { $t.text }", "--format", "csv"]
    assert ODD in program(csv).out
    found = program([*csv[:-1], "json"]).out
    assert f"word {ODD} word" in [row["t.text"] for row in json.loads(found)]
