"""The options of the command line that send work to Spark."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.spark.session import active_session
from tests.cli.world import Program
from tests.spark.conftest import entry_point

SCHEMA = "node Person { name: String @key  rank: F64? }\nedge Knows: Person -> Person\n"
DATA = """{"type": "Person", "data": {"name": "ada"}}
{"type": "Person", "data": {"name": "bob"}}
{"edge": "Knows", "from": "ada", "to": "bob"}
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.pg").write_text(SCHEMA)
    (tmp_path / "people.jsonl").write_text(DATA)
    program = Program(environment={"OMNIGRAPH_ROOT": "g"})
    assert program(["init", "g", "--schema", "people.pg"]).code == 0
    return program


def test_what_is_loaded_and_asked_on_spark_is_what_it_is_here(program: Program, spark: Any) -> None:
    loaded = program(["load", "people.jsonl", "--engine", "spark", "--json"])
    assert (loaded.code, json.loads(loaded.out)["engine"]) == (0, "spark")
    assert "It ran on spark: asked for." in loaded.err
    asked = ["query", "-e", "match { $p: Person $p knows $q } return { $p.name, $q.name as to }"]
    here, there = program([*asked, "--json"]), program([*asked, "--json", "--engine", "spark"])
    assert (there.code, there.out) == (0, here.out)
    assert active_session() is not None  # it was there before, so it stays


@pytest.mark.usefixtures("spark_engine")
def test_what_is_wrong_with_the_graph_is_told_before_spark_starts(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(name: str) -> Any:
        raise AssertionError(f"{name} was started.")

    monkeypatch.setattr("omnigraph.engine.executors.find_executor", start)
    for words in (
        ["load", "people.jsonl"],
        ["query", "-e", "match { $p: Person } return { $p }"],
        ["explain", "-e", "match { $p: Person } return { $p }"],
        ["algo", "degrees"],
        ["algo", "degrees", "--write-to", "rank"],
        ["optimize"],
        ["export", "out.jsonl"],
    ):
        ran = program([*words, "--engine", "spark", "--root", "nowhere"])
        assert ran.code == 3, (words, ran.err)
        assert "nowhere" in ran.err


@pytest.mark.slow
def test_every_command_with_an_engine_takes_a_master_and_settings(
    program: Program, spark: Any
) -> None:
    assert program(["load", "people.jsonl"]).code == 0
    place = ["--master", "local[2]", "--conf", "spark.sql.shuffle.partitions=3"]
    for words in (
        ["load", "people.jsonl", "--mode", "merge"],
        ["query", "-e", "match { $p: Person } return { count($p) as n }"],
        ["explain", "-e", "match { $p: Person } return { $p.name }"],
        ["algo", "degrees", "--write-to", "rank"],
    ):
        ran = program([*words, *place])
        assert ran.code == 0, ran.err
        assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
        spark.conf.set("spark.sql.shuffle.partitions", "2")
    far = program(["query", "-e", "match { $p: Person } return { $p }", "--master", "spark://x:1"])
    assert far.code == 2
    assert "A Spark session on local[2,3] is running" in far.err


@pytest.mark.slow
@pytest.mark.usefixtures("spark_engine")
def test_a_session_that_a_command_starts_ends_with_it(program: Program) -> None:
    before = active_session()
    if before is not None:
        before.stop()
    ran = program(["load", "people.jsonl", "--master", "local[1]"])
    assert ran.code == 0, ran.err
    assert active_session() is None


@pytest.mark.slow
def test_ctrl_c_in_a_load_on_spark_is_one_line(program: Program, tmp_path: Path) -> None:
    people = Path("many.jsonl")
    with people.open("w") as file:
        file.writelines(
            f'{{"type": "Person", "data": {{"name": "{n}"}}}}\n' for n in range(500_000)
        )
    places = [str(Path(omnigraph.__file__).parents[1]), str(entry_point(tmp_path))]
    process = subprocess.Popen(
        [sys.executable, "-m", "omnigraph", "load", str(people), "--engine", "spark"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(places), "OMNIGRAPH_ROOT": "g"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not list(Path("g").glob("__recovery/*")) and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, out, err) == (130, "", "Interrupted. The graph is as it was.\n")
    with omnigraph.open("g") as g:
        assert g.snapshot().version == 1
