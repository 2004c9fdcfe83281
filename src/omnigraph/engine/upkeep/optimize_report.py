"""Owns the report of maintenance: its progress, what it did to each type, and what it left and
why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from omnigraph.model.version import Commit
from omnigraph.telemetry import Ledger


@dataclass(frozen=True)
class TypeReport:
    """What was done to a type, or would be; `pending` says what was left, and why. Fragments and
    segments are counted before and after."""

    fragments: tuple[int, int]
    segments: tuple[int, int]
    rewritten: int = 0
    """Fragments that were written anew."""
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
    """`commit` is None when there was nothing to do, or when writers were faster all the time
    (`gave_way`). `folded` versions went from the chain to the history, or would."""

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
    """So many of all types are done; `doing` is what comes next."""

    done: int
    total: int
    type: str
    doing: str


OnProgress = Callable[[Progress], None]
