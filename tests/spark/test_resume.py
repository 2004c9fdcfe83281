"""A driver that dies: what it staged can be published by somebody else, once, or given up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omnigraph import Graph, runtime
from omnigraph.engine.access import Access
from omnigraph.engine.upkeep.recovery import Recovery
from omnigraph.errors import IntentNotFound, InvalidArgument
from tests.contract.graphs import rows
from tests.load.world import knows, new_graph, person, write_lines

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.slow]


class Killed(BaseException):
    """Nothing of the driver runs after this."""


def kill_at(monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    def die(reached: str) -> None:
        if reached == point:
            raise Killed

    monkeypatch.setattr(runtime, "on_reach", die)
    monkeypatch.setattr("omnigraph.spark.load.heartbeat.Recovery.end", lambda *_: None)


@pytest.mark.parametrize("point", ["before put", "after put"])
def test_what_was_staged_is_published_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    g = new_graph(tmp_path)
    path = write_lines(tmp_path / "all.jsonl", [person("a"), person("b"), knows("a", "b")])
    with monkeypatch.context() as patch:
        kill_at(patch, point)
        with pytest.raises(Killed):
            g.load(path, engine="spark", actor="ada")
    again = Graph(g._session, Access("rw"), g.io)
    recovery = Recovery(again._session, writable=True)
    (report,) = recovery.list()
    assert (report.kind, report.actor, report.resumable) == ("load", "ada", True)
    recovery.resume(report.id)
    assert [row["name"] for row in rows(again, "Person")] == ["a", "b"]
    assert len(rows(again, "Knows")) == 1
    assert recovery.list() == []
    with pytest.raises(IntentNotFound):
        recovery.resume(report.id)


def test_what_was_not_staged_is_given_up_and_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    g = new_graph(tmp_path)
    path = write_lines(tmp_path / "all.jsonl", [person("a")])
    with monkeypatch.context() as patch:
        kill_at(patch, "load checked")
        with pytest.raises(Killed):
            g.load(path, engine="spark")
    recovery = Recovery(g._session, writable=True)
    (report,) = recovery.list()
    with pytest.raises(InvalidArgument, match="had not staged everything"):
        recovery.resume(report.id)
    recovery.discard(report.id)
    g.load(path, engine="spark")
    assert len(rows(g, "Person")) == 1
    assert recovery.list() == []


def test_a_load_that_ends_leaves_no_intent(tmp_path: Path, spark: Any) -> None:
    g = new_graph(tmp_path)
    g.load(spark.sql("select 'a' as name"), type="Person")
    with pytest.raises(Exception, match="exists already"):
        g.load(spark.sql("select 'a' as name"), type="Person")
    assert Recovery(g._session, writable=True).list() == []
