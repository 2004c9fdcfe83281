"""What a graph has after years: versions in the history, whole ones and reclaimed ones, batches of
streams, idempotency keys, names that are gone, protection, checksums, an operation that died."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.load.options import LoadOptions
from omnigraph.engine.load.run import load
from omnigraph.engine.upkeep.optimize import optimize
from omnigraph.errors import Reclaimed
from omnigraph.plan.optimize import Limits
from omnigraph.plan.publish import Append, Lineage, PublishPlan
from omnigraph.settings import Settings
from omnigraph.store.staging import stage_rows
from omnigraph.telemetry import Ledger

SCHEMA = "node Person { name: String @key age: I32? @index }\nnode Note { text: String? }\n"
GRACE = 0.4
SETTINGS = Settings(folding="off", grace=GRACE)
KEYED = 'insert Person { name: "keyed" }'
BATCH = 7


def names(g: Graph, ref: str) -> list[str]:
    return sorted(g.at(ref).scan("Person").read_all()["name"].to_pylist())


def bring(g: Graph, batch: int) -> str:
    options = LoadOptions(stream=("stream", batch), engine="local")
    done = load(g._session, [{"type": "Note", "data": {"text": f"batch {batch}"}}], options)
    assert done.commit is not None
    return done.commit.id


def answers_aged(g: Graph) -> dict[str, Any]:
    commits = list(g.log(all=True))
    head = g.snapshot().graph_version
    told: dict[str, Any] = {
        "branches": g.branches(),
        "tags": {name: commit.id for name, commit in g.tags().items()},
        "names": {ref: names(g, ref) for ref in ["main", "side", "early", "locked", "main~3"]},
        "log": [
            [one.id, one.kind, one.actor, one.message, one.created_at, one.operation]
            for one in commits
        ],
        "statistics": [msgspec.to_builtins(one.statistics) for one in commits],
        "floor": head.floor,
        "folded": head.folded,
        "streams": {
            name: [mark.batch, mark.version, mark.commit] for name, mark in head.streams.items()
        },
        "under way": [[one.id, one.kind, one.actor, one.resumable] for one in g.recovery.list()],
    }
    oldest = next(one for one in commits if one.message == "p2")
    with pytest.raises(Reclaimed):
        g.at(f"main@{oldest.id}")
    return told


def build_aged(root: Path) -> Graph:
    g = omnigraph.init(root, schema=SCHEMA, actor="ann", settings=SETTINGS)
    for number in range(12):
        g.mutate(f'insert Person {{ name: "p{number}" }}', actor="ann", message=f"p{number}")
        if number == 5:
            g.create_tag("early")
    _fold(g)
    g.create_branch("side")
    g.branch("side").mutate('insert Person { name: "on side" }')
    g.create_branch("gone")
    g.delete_branch("gone")
    g.mutate('update Person set { age: 5 } where name = "p5"', actor="bob")
    g.merge("side")
    _sleep()
    g.cleanup(keep=3, older_than=0)
    for number in range(12, 24):
        g.mutate(f'insert Person {{ name: "p{number}" }}', message=f"p{number}")
    g.mutate(KEYED, idempotency_key="once")
    bring(g, BATCH)
    g.create_branch("locked")
    g.protect("locked")
    _fold(g)
    g.mutate('delete Person where name = "p13"')
    assert g.verify(deep=True).ok  # writes down checksums
    _die(g)
    return g


def _sleep() -> None:
    time.sleep(3 * GRACE)


def _fold(g: Graph) -> None:
    _sleep()
    assert optimize(g._session, "main", None, limits=Limits(versions=8)).folded


def _die(g: Graph) -> None:
    """A load that staged all of its rows, wrote down its plan, and was killed."""
    session = g._session
    head = session.live_head("main", Ledger())
    intent = g.recovery.begin("load", actor="eve", branch="main", base=head)
    pin = head.pins["node:Note"]
    table = session.tables.open(pin.location, pin.lance_version, Ledger())
    rows = pa.table({"id": pa.array(["late"]), "text": pa.array(["late"])})
    staged = stage_rows(table, rows, Ledger())
    append = Append(
        table=pin.key,
        fragments=staged.fragments,
        fields=staged.fields,
        rows=1,
        bytes=staged.bytes,
    )
    plan = PublishPlan(
        branch="main",
        base_version=head.version,
        base_incarnation=head.incarnation,
        actions=(append,),
        lineage=Lineage(kind="load", operation=session.runtime.ulid(), actor="eve"),
    )
    g.recovery.beat(intent, plan=plan)
