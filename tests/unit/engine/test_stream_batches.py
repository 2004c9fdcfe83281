"""Batches of streams: each becomes one commit, and is known for as long as the stream is."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph import Graph
from omnigraph.engine.load.options import LoadOptions
from omnigraph.engine.load.result import LoadResult
from omnigraph.engine.load.run import load
from omnigraph.errors import IdempotencyMismatch
from tests.contract.graphs import rows
from tests.load.world import new_graph


@pytest.fixture
def g(tmp_path: Path) -> Graph:
    return new_graph(tmp_path)


def bring(g: Graph, stream: str, batch: int, text: str, branch: str = "main") -> LoadResult:
    entry = {"type": "Note", "data": {"text": text}}
    options = LoadOptions(stream=(stream, batch), engine="local", branch=branch)
    return load(g._session, [entry], options)


def texts(g: Graph, ref: str = "main") -> list[str]:
    return sorted(row["text"] for row in rows(g, "Note", ref=ref))


def test_a_batch_that_comes_again_is_the_commit_that_it_was(g: Graph) -> None:
    first = bring(g, "calls", 0, "one")
    again = bring(g, "calls", 0, "in another order, perhaps")
    assert (again.repeated, again.commit_id) == (True, first.commit_id)
    bring(g, "calls", 1, "two")
    bring(g, "mails", 0, "three")
    assert texts(g) == ["one", "three", "two"]


def test_it_is_known_after_many_other_keys_came(g: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.model.keys.RECENT", 2)
    first = bring(g, "calls", 7, "x")
    for number in range(6):
        query = f'query q() {{ insert Note {{ text: "{number}" }} }}'
        g.mutate(query, idempotency_key=str(number))
    again = bring(g, "calls", 7, "x")
    assert (again.repeated, again.commit_id) == (True, first.commit_id)
    assert texts(g) == ["0", "1", "2", "3", "4", "5", "x"]


def test_an_earlier_batch_is_refused_and_not_lost_in_silence(g: Graph) -> None:
    bring(g, "calls", 3, "x")
    with pytest.raises(IdempotencyMismatch, match=r"its batch 3 already.*another stream_id"):
        bring(g, "calls", 2, "of another checkpoint")
    assert texts(g) == ["x"]


def test_a_branch_knows_the_batches_that_it_was_made_with(g: Graph) -> None:
    bring(g, "calls", 0, "x")
    g.create_branch("side")
    assert bring(g, "calls", 0, "x", branch="side").repeated
    bring(g, "calls", 1, "y", branch="side")
    assert not bring(g, "calls", 1, "y").repeated
    assert texts(g) == texts(g, "side") == ["x", "y"]


def test_of_many_streams_those_that_lie_still_the_longest_are_forgotten(
    g: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnigraph.plan.successor.RECENT_STREAMS", 2)
    for stream in ("a", "b", "c"):
        bring(g, stream, 0, stream)
    assert len(g.snapshot().graph_version.streams) == 2
    assert bring(g, "b", 0, "b").repeated
    assert not bring(g, "a", 0, "a").repeated
