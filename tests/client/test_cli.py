"""The command line with a root on a server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import omnigraph
from omnigraph.client.credentials import CredentialsFile
from omnigraph.policy.tokens import create_token
from tests.cli.world import Program, Ran
from tests.client.conftest import SCHEMA
from tests.client.served import Served, serving


def program(root: str, folder: Path, patch: pytest.MonkeyPatch) -> Program:
    """The program, in a folder of its own, which also keeps its tokens."""
    patch.chdir(folder)
    patch.setenv("OMNIGRAPH_CREDENTIALS", str(folder / "credentials.json"))
    kept = {"OMNIGRAPH_CREDENTIALS": str(folder / "credentials.json")}
    return Program(environment=kept | {"OMNIGRAPH_ROOT": root})


@pytest.fixture
def far(root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """The program, with a graph on a server as its root."""
    omnigraph.init(root, schema=SCHEMA).close()
    return program(root, tmp_path, monkeypatch)


def told(ran: Ran) -> str:
    assert ran.code == 0, ran.err
    return ran.out


def test_a_day_at_a_server(far: Program, tmp_path: Path) -> None:
    lines = [{"type": "Person", "data": {"name": n, "age": 30 + i}} for i, n in enumerate("ABC")]
    (tmp_path / "people.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert "+3" in told(far(["load", "people.jsonl", "-m", "three"]))
    told(far(["mutate", "-e", 'insert Knows { from: "A", to: "B", since: date("2020-02-01") }']))
    asked = "match { $p: Person $p knows $f } return { $p.name as who, $f.name as whom }"
    assert json.loads(told(far(["query", "-e", asked, "--json"]))) == [{"who": "A", "whom": "B"}]
    told(far(["branch", "create", "review"]))
    told(far(["mutate", "-b", "review", "-e", 'update Person set { age: 40 } where name = "A"']))
    assert "30 → 40" in told(far(["diff", "main", "review"]))
    assert "review" in told(far(["branch", "list"]))
    told(far(["merge", "review"]))
    told(far(["branch", "delete", "review"]))
    assert "40" in told(far(["entity", "Person", "A"]))
    assert "three" in told(far(["log", "--graph"]))
    assert "three" in told(far(["history", "Person", "B"]))
    told(far(["tag", "create", "v1"]))
    assert "v1" in told(far(["tag", "list"]))
    rows = json.loads(told(far(["stats", "--json"])))["types"]
    assert {row["type"]: row["entities"] for row in rows} == {"Person": 3, "Note": 0, "Knows": 1}
    assert json.loads(told(far(["snapshot", "--json"])))["branch"] == "main"
    told(far(["export", "out.jsonl"]))
    assert len(Path("out.jsonl").read_text().splitlines()) == 4
    (tmp_path / "new.pg").write_text(SCHEMA + "node Pet { name: String }\n")
    assert "Pet" in told(far(["schema", "plan", "new.pg"]))
    told(far(["schema", "apply", "new.pg"]))
    assert "Pet" in told(far(["schema", "show"]))
    told(far(["restore", "main~1", "--yes"]))
    assert "Pet" not in told(far(["schema", "show"]))


def test_mistakes_are_told_as_they_are_of_a_graph_here(far: Program) -> None:
    for words, code, told_ in (
        (["query", "-e", "match { $p: Persn } return { $p.name }"], 6, "did you mean `Person`"),
        (["mutate", "-e", "insert Person { name: 1 }"], 6, "error"),
        (["entity", "Person", "Nobody"], 3, "Nobody"),
        (["log", "nowhere"], 3, "nowhere"),
        (["mutate", "-e", "delete Person where true", "--if-commit", 26 * "0"], 4, "not at"),
        (["mutate", "--as", "bob", "-e", "delete Person where true"], 2, "the token says"),
        (["copy", "elsewhere"], 2, "cannot be copied"),
        (["embed"], 2, "embeds nothing"),
        (["--root", "http://127.0.0.1:1/x", "stats"], 2, "names no graph"),
    ):
        ran = far(words)
        assert (ran.code, told_ in ran.err) == (code, True), (words, ran.code, ran.err)


def test_one_logs_in_once_for_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = program("", tmp_path, monkeypatch)
    tokens = tmp_path / "tokens.json"
    token = create_token(tokens, "ada", roles=["admin"]).text
    more = f'[server.auth]\ntokens = "{tokens}"\n'
    with serving(tmp_path, more=more) as server:
        refused = run(["login", server.url], "ogt_no_token\n")
        assert refused.code == 5
        assert "ogt_no_token" not in refused.err + refused.out
        assert "ada" in told(run(["login", server.url], f"{token}\n"))
        assert CredentialsFile(run.environment).origins() == [server.url]
        assert "ada" in told(run(["whoami", server.url]))
        (tmp_path / "s.pg").write_text(SCHEMA)
        root = server.new_root()
        told(run(["init", root, "--schema", str(tmp_path / "s.pg")]))
        told(run(["--root", root, "mutate", "-e", 'insert Person { name: "A" }']))
        assert "ada" in told(run(["--root", root, "log"]))
        told(run(["logout", server.url]))
        assert run(["--root", root, "log"]).code == 5


def test_the_program_does_not_import_the_server(server: Served) -> None:
    code = (
        "import sys, omnigraph\n"
        "import omnigraph.client.opening\n"
        "wrong = ('omnigraph.server', 'fastapi', 'uvicorn', 'lance')\n"
        "print([m for m in sys.modules if m.startswith(wrong)])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
