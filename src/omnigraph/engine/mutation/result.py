"""Owns the result of a mutation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.model.changes import TypeCounts
from omnigraph.model.version import Commit
from omnigraph.telemetry import Ledger


@dataclass(frozen=True)
class MutationResult:
    """`nodes` and `edges` count the affected entities. `counts` says by type what happened to them,
    summed over the statements: an entity that one statement inserts and a later one deletes counts
    in both. Edges that were deleted with their nodes count as deleted.

    `commit` is None if nothing matched, or if an earlier call with the same idempotency key made
    the commit: then `repeated` is True and `commit_id` is that of the earlier call. `embedded`
    counts new vectors, if they were asked for.
    """

    branch: str
    query: str | None
    nodes: int
    edges: int
    counts: Mapping[str, TypeCounts]
    commit: Commit | None
    commit_id: str | None
    repeated: bool = False
    embedded: int = 0
    io: Ledger = field(default_factory=Ledger, repr=False)
