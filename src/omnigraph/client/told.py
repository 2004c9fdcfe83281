"""Owns the values that are made again from what a server tells: commits, changes, plans, merges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from omnigraph.client.understanding import understanding
from omnigraph.engine.history.blame import Origin
from omnigraph.engine.history.diff import QueryChange
from omnigraph.engine.merge.run import Merge, Outcome
from omnigraph.model.changes import Change
from omnigraph.model.conflicts import MergeConflict
from omnigraph.model.version import Commit
from omnigraph.plan.migrate import MigrationPlan
from omnigraph.wire.typed import untyped


@understanding()
def commit_of(record: Mapping[str, Any]) -> Commit:
    """The commit of a record."""
    moment = datetime.fromisoformat(record["created_at"])
    whole = int(moment.replace(microsecond=0).timestamp()) * 1_000_000 + moment.microsecond
    told = {name: record[name] for name in ("parents", "kind", "operation", "actor", "message")}
    made = told | {"id": record["commit"], "created_at": whole, "statistics": record["tables"]}
    return msgspec.convert(made, Commit)


@understanding()
def change_of(row: Mapping[str, Any]) -> Change:
    """The change that a row with typed values tells."""
    names = ("op", "kind", "type", "id", "changed")
    sides = {name: untyped(row[name]) for name in ("before", "after")}
    return msgspec.convert({name: row[name] for name in names} | sides, Change)


@understanding()
def conflict_of(row: Mapping[str, Any]) -> MergeConflict:
    """The conflict that a row tells, with values that carry their kinds or not."""
    return msgspec.convert(untyped(dict(row)), MergeConflict)


@understanding()
def plan_of(record: Mapping[str, Any]) -> MigrationPlan:
    """The plan of a record."""

    from omnigraph.plan.migrate import MigrationPlan

    return msgspec.convert(record["record"], MigrationPlan)


@understanding()
def steps_of(record: Sequence[Any]) -> MigrationPlan:
    """The plan that has these steps."""

    from omnigraph.plan.migrate import MigrationPlan

    return msgspec.convert({"base": "", "steps": record}, MigrationPlan)


@understanding()
def query_changes_of(record: Sequence[Any]) -> tuple[QueryChange, ...]:
    return msgspec.convert(record, tuple[QueryChange, ...])


@understanding()
def merge_of(row: Mapping[str, Any]) -> Merge:
    """The merge that a row with typed values tells; its commit is in `lineage`."""
    texts = tuple[str, ...]
    return Merge(
        msgspec.convert(row["outcome"], Outcome),
        None if row["lineage"] is None else commit_of(row["lineage"]),
        msgspec.convert(row["base"], str | None),
        msgspec.convert(row["adopted"], texts),
        msgspec.convert(row["changes"], dict[str, dict[str, int]]),
        tuple(conflict_of(one) for one in row["conflicts"]),
        msgspec.convert(row["queries"], texts),
        row["repeated"],
    )


@understanding()
def origin_of(row: Mapping[str, Any]) -> Origin:
    """The origin that a row with typed values tells."""

    commit = row["commit"]
    held = None if commit is None else commit_of(commit)
    return Origin(msgspec.convert(row["property"], str), untyped(row["value"]), held)
