"""Owns how the engine's values are written as rows for programs: commits, changes, conflicts and
plans, the same on the command line and over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from omnigraph.model.catalog import EdgeType, GraphType
from omnigraph.model.changes import Change
from omnigraph.model.conflicts import MergeConflict
from omnigraph.model.types import type_text
from omnigraph.model.version import Commit
from omnigraph.wire.values import moment_text, plain

if TYPE_CHECKING:
    from omnigraph.engine.history.blame import Origin
    from omnigraph.engine.history.diff import QueryChange
    from omnigraph.engine.history.feed import FeedBlock
    from omnigraph.engine.merge.run import Merge
    from omnigraph.plan.log_drawing import LaneRow
    from omnigraph.plan.migrate import MigrationPlan


def change_row(change: Change) -> dict[str, Any]:
    """A change for programs."""
    return {
        "op": str(change.op),
        "kind": change.kind,
        "type": change.type,
        "id": change.id,
        "changed": list(change.changed),
        "before": change.before,
        "after": change.after,
    }


def query_change_row(change: QueryChange) -> dict[str, Any]:
    """A stored query that changed, in the form of any change."""
    before, after = (None if t is None else {"text": t} for t in (change.before, change.after))
    return {
        "op": str(change.op),
        "kind": "query",
        "type": "query",
        "id": change.name,
        "changed": ["text"] if before and after else [],
        "before": before,
        "after": after,
    }


def commit_row(commit: Commit, labels: Sequence[str] = ()) -> dict[str, Any]:
    """A commit for programs."""
    moment = datetime.fromtimestamp(commit.created_at / 1_000_000, UTC)
    return {
        "commit": commit.id,
        "parents": list(commit.parents),
        "kind": commit.kind,
        "actor": commit.actor,
        "message": commit.message,
        "created_at": moment_text(moment.replace(microsecond=commit.created_at % 1_000_000)),
        "labels": list(labels),
        "statistics": {
            key.split(":", 1)[1]: {
                name: count
                for name, count in (
                    ("inserted", s.inserted),
                    ("updated", s.updated),
                    ("deleted", s.deleted),
                )
                if count
            }
            for key, s in commit.statistics.items()
        },
    }


def commit_record(commit: Commit, labels: Sequence[str] = ()) -> dict[str, Any]:
    """A commit for a client, which makes the commit of it again: also the operation, and counts by
    table."""
    tables = {key: msgspec.to_builtins(one) for key, one in commit.statistics.items()}
    return commit_row(commit, labels) | {"operation": commit.operation, "tables": tables}


def lineage_of(commit: Commit | None) -> dict[str, Any] | None:
    return None if commit is None else commit_record(commit)


def origin_row(origin: Origin) -> dict[str, Any]:
    """Where a value comes from, for programs."""
    commit = origin.commit
    return {
        "property": origin.property,
        "value": origin.value,
        "commit": lineage_of(commit),
    }


def lane_row(row: LaneRow) -> dict[str, Any]:
    """A commit in a drawing of the log, with every line below it."""
    return {
        "commit": row.entry.id,
        "lane": row.lane,
        "edges": [
            {"from": e.from_lane, "to": e.to_lane, "parent": e.parent, "kind": e.kind}
            for e in row.edges
        ],
    }


def conflict_row(conflict: MergeConflict) -> dict[str, Any]:
    """A conflict for programs."""
    return {
        "kind": str(conflict.kind),
        "type": conflict.type,
        "id": conflict.id,
        "property": conflict.property,
        "message": conflict.message,
        "base": conflict.base,
        "ours": conflict.ours,
        "theirs": conflict.theirs,
    }


def plan_row(plan: MigrationPlan) -> dict[str, Any]:
    """A plan for programs."""

    from omnigraph.plan.migrate import Tier, step_text

    return {
        "steps": [{**plain(step), "text": step_text(step)} for step in plan.steps],
        "notes": list(plan.notes),
        "broken_queries": [plain(query) for query in plan.broken],
        "can_be_applied": plan.can_be_applied,
        "is_destructive": bool(plan.of_tier(Tier.DESTRUCTIVE)),
    }


def plan_record(plan: MigrationPlan) -> dict[str, Any]:
    """A plan for a client, which makes the plan of it again."""
    return plan_row(plan) | {"record": msgspec.to_builtins(plan)}


def block_row(block: FeedBlock) -> dict[str, Any]:
    """A commit of the change feed with what it changed, and the cursor after it."""

    from omnigraph.plan.migrate import step_text

    row = commit_row(block.commit)
    row["schema"] = [step_text(step) for step in block.schema.steps]
    row["changes"] = [change_row(change) for change in block.changes]
    row["cursor"] = block.cursor
    return row


def block_record(block: FeedBlock) -> dict[str, Any]:
    """A block for a client: with the record of its commit, and steps of the schema as values."""
    told = block_row(block) | commit_record(block.commit)
    queries = queries_record(block.changes.queries)
    return told | {"steps": steps_record(block.schema), "queries": queries}


def steps_record(plan: MigrationPlan) -> list[Any]:
    return [msgspec.to_builtins(step) for step in plan.steps]


def queries_record(changes: Sequence[QueryChange]) -> list[dict[str, Any]]:
    return [{"name": one.name, "before": one.before, "after": one.after} for one in changes]


def merge_row(done: Merge, source: str, into: str, *, dry_run: bool) -> dict[str, Any]:
    """What a merge did, or would do."""
    return {
        "outcome": done.outcome,
        "source": source,
        "into": into,
        "commit": None if done.commit is None else done.commit.id,
        "dry_run": dry_run,
        "base": done.base,
        "adopted": list(done.adopted),
        "changes": {name: dict(counts) for name, counts in done.changes.items()},
        "queries": list(done.queries),
        "conflicts": [conflict_row(conflict) for conflict in done.conflicts],
    }


def type_row(kind: GraphType) -> dict[str, Any]:
    """A type with its properties, as it was understood."""
    row: dict[str, Any] = {
        "name": kind.name,
        "kind": "edge" if isinstance(kind, EdgeType) else "node",
        "key": list(kind.key),
        "properties": [
            {"name": p.name, "type": type_text(p.type), "nullable": p.nullable}
            for p in kind.properties
        ],
    }
    if isinstance(kind, EdgeType):
        row |= {"source": kind.source, "target": kind.target}
    return row
