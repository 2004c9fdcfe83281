"""Owns the report of a cleanup: which files were or would be deleted, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from omnigraph.telemetry import Ledger

Reason = Literal[
    "old version",
    "unreferenced",
    "dropped type",
    "unfinished write",
    "dead intent",
    "old job",
]


@dataclass(frozen=True)
class Removal:
    key: str
    bytes: int
    reason: Reason


@dataclass
class Cleaned:
    """`removed` lists every file that was deleted, or with `dry_run` would be. `floors` are the
    oldest remaining versions by branch, where they changed. `spared` says what kept cleanup from
    deleting more."""

    dry_run: bool
    removed: list[Removal] = field(default_factory=list)
    floors: dict[str, int] = field(default_factory=dict)
    spared: list[str] = field(default_factory=list)
    io: Ledger = field(default_factory=Ledger, repr=False)

    @property
    def files(self) -> int:
        return len(self.removed)

    @property
    def bytes(self) -> int:
        return sum(one.bytes for one in self.removed)

    def by_reason(self) -> dict[str, tuple[int, int]]:
        """The number of files and bytes by reason."""
        told: dict[str, tuple[int, int]] = {}
        for one in self.removed:
            files, size = told.get(one.reason, (0, 0))
            told[one.reason] = (files + 1, size + one.bytes)
        return dict(sorted(told.items()))

    def to_dict(self) -> dict[str, Any]:
        return {
            "dry_run": self.dry_run,
            "files": self.files,
            "bytes": self.bytes,
            "by_reason": {
                reason: {"files": files, "bytes": size}
                for reason, (files, size) in self.by_reason().items()
            },
            "floors": self.floors,
            "spared": self.spared,
            "removed": [
                {"key": one.key, "bytes": one.bytes, "reason": one.reason} for one in self.removed
            ],
        }
