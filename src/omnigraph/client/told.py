"""Owns the values that are made again from what a server tells: commits, changes, plans, merges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from omnigraph.engine.history.blame import Origin
from omnigraph.engine.history.diff import QueryChange
from omnigraph.engine.merge.run import Merge
from omnigraph.model.changes import Change, Op
from omnigraph.model.conflicts import ConflictKind, MergeConflict
from omnigraph.model.version import Commit, TableStatistics
from omnigraph.plan.migrate import MigrationPlan
from omnigraph.wire.typed import untyped


def commit_of(record: Mapping[str, Any]) -> Commit:
    """The commit of a record."""
    moment = datetime.fromisoformat(record["created_at"])
    whole = int(moment.replace(microsecond=0).timestamp()) * 1_000_000 + moment.microsecond
    return Commit(
        id=record["commit"],
        parents=tuple(record["parents"]),
        kind=record["kind"],
        created_at=whole,
        operation=record["operation"],
        actor=record["actor"],
        message=record["message"],
        statistics=msgspec.convert(record["tables"], dict[str, TableStatistics]),
    )


def change_of(row: Mapping[str, Any]) -> Change:
    """The change that a row with typed values tells."""
    return Change(
        Op(row["op"]),
        row["kind"],
        row["type"],
        row["id"],
        untyped(row["before"]),
        untyped(row["after"]),
        tuple(row["changed"]),
    )


def conflict_of(row: Mapping[str, Any]) -> MergeConflict:
    """The conflict that a row tells, with values that carry their kinds or not."""
    return MergeConflict(**(untyped(dict(row)) | {"kind": ConflictKind(row["kind"])}))


def plan_of(record: Mapping[str, Any]) -> MigrationPlan:
    """The plan of a record."""

    from omnigraph.plan.migrate import MigrationPlan

    return msgspec.convert(record["record"], MigrationPlan)


def steps_of(record: Sequence[Any]) -> MigrationPlan:
    """The plan that has these steps."""

    from omnigraph.plan.migrate import MigrationPlan

    return msgspec.convert({"base": "", "steps": record}, MigrationPlan)


def query_changes_of(record: Sequence[Any]) -> tuple[QueryChange, ...]:
    return tuple(QueryChange(**one) for one in record)


def merge_of(row: Mapping[str, Any]) -> Merge:
    """The merge that a row with typed values tells; its commit is in `lineage`."""
    return Merge(
        row["outcome"],
        None if row["lineage"] is None else commit_of(row["lineage"]),
        row["base"],
        tuple(row["adopted"]),
        row["changes"],
        tuple(conflict_of(one) for one in row["conflicts"]),
        tuple(row["queries"]),
        row["repeated"],
    )


def origin_of(row: Mapping[str, Any]) -> Origin:
    """The origin that a row with typed values tells."""

    commit = row["commit"]
    held = None if commit is None else commit_of(commit)
    return Origin(row["property"], untyped(row["value"]), held)
