"""Owns the report of maintenance: its progress, what it did to each type, and what it left and
why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from omnigraph.model.version import Commit
from omnigraph.telemetry import Ledger


@dataclass(frozen=True)
class TypeReport:
    """What was or would be done to a type. `pending` says what was left, and why. Fragments and
    segments are counted before and after."""

    fragments: tuple[int, int]
    segments: tuple[int, int]
    rewritten: int = 0
    """Fragments that were rewritten."""
    rewritten_bytes: int = 0
    indexed: tuple[str, ...] = ()
    """Indexes that got a segment."""
    dropped: tuple[str, ...] = ()
    """Indexes that the schema no longer asks for."""
    pending: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return bool(self.rewritten or self.indexed or self.dropped) or (
            self.segments[0] != self.segments[1]
        )


@dataclass(frozen=True)
class Optimized:
    """`commit` is None if there was nothing to do, or if writers were always faster (`gave_way`).
    `folded` is how many versions moved, or would move, from the chain to the history."""

    commit: Commit | None
    types: dict[str, TypeReport]
    dry_run: bool
    gave_way: bool
    io: Ledger = field(repr=False)
    folded: int = 0
    repeated: bool = False
    """An earlier call with the same idempotency key had done it."""


@dataclass(frozen=True)
class Progress:
    """How many of the types are done. `doing` is what comes next."""

    done: int
    total: int
    type: str
    doing: str


OnProgress = Callable[[Progress], None]
