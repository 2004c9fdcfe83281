"""Owns merging the stored queries of two sides, and the check that they run under the schema that
both imply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from omnigraph.engine.merge.base import MergeBase
from omnigraph.engine.session import Session
from omnigraph.engine.stored_queries import StoredQueries
from omnigraph.errors import InvalidArgument
from omnigraph.lang.gq.stored import find_broken
from omnigraph.model.catalog import Catalog
from omnigraph.model.conflicts import MergeConflict
from omnigraph.model.stored_queries import (
    NO_QUERIES,
    QUERY,
    Queries,
    QueriesChange,
    require_query_name,
)
from omnigraph.model.version import GraphVersion
from omnigraph.plan.merge import Strategy
from omnigraph.plan.query_merge import broken_after_merge, merge_queries
from omnigraph.telemetry import Ledger

Answers = Mapping[str, str | None]


@dataclass(frozen=True)
class MergedQueries:
    """`changed` are names whose text the merge brings to our side, or takes from it."""

    queries: Queries = field(default_factory=lambda: NO_QUERIES)
    changed: tuple[str, ...] = ()
    conflicts: tuple[MergeConflict, ...] = ()


def split_answers(strategy: Strategy) -> tuple[Strategy, Answers]:
    """A strategy for rows, and the texts that were given for stored queries."""
    rows = dict(strategy.rows or {})
    answers = {
        name: _text(name, rows.pop((kind, name))) for kind, name in list(rows) if kind == QUERY
    }
    if not answers:
        return strategy, {}
    return replace(strategy, rows=rows or None), answers


def _text(name: str, row: Mapping[str, Any] | None) -> str | None:
    require_query_name(name)
    if row is None:
        return None
    if set(row) != {"text"} or not isinstance(row["text"], str):
        raise InvalidArgument(
            f"What resolves the stored query {name!r} is its text, or None, not {dict(row)!r}.",
            help='Write {"text": "query …"}.',
        )
    return row["text"]


def merge_stored(
    session: Session,
    base: MergeBase,
    sides: tuple[GraphVersion, GraphVersion],
    catalog: Catalog,
    strategy: Strategy,
    answers: Answers,
    ledger: Ledger,
) -> MergedQueries:
    """What each side was checked with is known to run: under another schema, or beside a text that
    was given, all are checked again."""
    ours, theirs = sides
    held = StoredQueries.shared_by(session)
    mine, yours = (held.read(side.queries, ledger) for side in sides)
    if not (mine or yours or answers):
        return MergedQueries()
    was, contested = base.queries()
    merged = merge_queries(was, mine, yours, strategy, answers, contested)
    conflicts = merged.conflicts
    checked_before = [(mine, ours.catalog), (yours, theirs.catalog)]
    if answers or (merged.queries, catalog.digest) not in checked_before:
        unclear = merged.contested
        checked = {name: text for name, text in merged.queries.items() if name not in unclear}
        conflicts += broken_after_merge(find_broken(checked, catalog), was, mine, yours)
    changed = {*mine, *merged.queries}
    return MergedQueries(
        merged.queries,
        tuple(sorted(n for n in changed if mine.get(n) != merged.queries.get(n))),
        conflicts,
    )


def queries_change(session: Session, merged: MergedQueries, ledger: Ledger) -> QueriesChange:
    """What the commit of the merge leaves, once nothing is in conflict."""
    return QueriesChange(queries=StoredQueries.shared_by(session).write(merged.queries, ledger))
