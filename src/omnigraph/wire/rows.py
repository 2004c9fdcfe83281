"""Owns how the engine's values are written as rows for programs: commits, changes, conflicts and
plans, the same on the command line and over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from omnigraph.engine.history.diff import QueryChange
from omnigraph.engine.history.feed import FeedBlock
from omnigraph.engine.merge.run import Merge
from omnigraph.model.catalog import EdgeType, GraphType
from omnigraph.model.changes import Change
from omnigraph.model.conflicts import MergeConflict
from omnigraph.model.types import type_text
from omnigraph.model.version import Commit
from omnigraph.plan.migrate import MigrationPlan, Tier, step_text
from omnigraph.wire.values import moment_text, plain


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
    return {
        "steps": [{**plain(step), "text": step_text(step)} for step in plan.steps],
        "notes": list(plan.notes),
        "broken_queries": [plain(query) for query in plan.broken],
        "can_be_applied": plan.can_be_applied,
        "is_destructive": bool(plan.of_tier(Tier.DESTRUCTIVE)),
    }


def block_row(block: FeedBlock) -> dict[str, Any]:
    """A commit of the change feed with what it changed, and the cursor after it."""
    row = commit_row(block.commit)
    row["schema"] = [step_text(step) for step in block.schema.steps]
    row["changes"] = [change_row(change) for change in block.changes]
    row["cursor"] = block.cursor
    return row


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
