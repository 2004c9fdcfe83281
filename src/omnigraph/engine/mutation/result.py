"""Owns the result of a mutation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.model.changes import TypeCounts
from omnigraph.model.version import Commit
from omnigraph.telemetry import Ledger


@dataclass(frozen=True)
class MutationResult:
    """`nodes` and `edges` are how many were affected, `counts` what became of them by type, summed
    over the statements: an entity that one inserts and a later one deletes counts in both. Edges
    that went with their nodes count as deleted.

    `commit` is None if nothing matched, and if an earlier call with the same idempotency key had
    made it: then `repeated` is True and `commit_id` is that of the earlier call. `embedded` is how
    many vectors it got, if that was asked for.
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
