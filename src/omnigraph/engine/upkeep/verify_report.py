"""Owns the report of `verify`: findings, each about one object, and whether the graph is sound."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

from omnigraph.telemetry import Ledger

Severity = Literal["error", "note"]


@dataclass(frozen=True)
class Finding:
    """`object` is the key of a file, or the place of a rule. A note is not damage."""

    kind: str
    object: str
    message: str
    severity: Severity = "error"

    def to_dict(self) -> dict[str, str]:
        return {
            "kind": self.kind,
            "severity": self.severity,
            "object": self.object,
            "message": self.message,
        }


@dataclass
class Verification:
    """`looked_at` counts what was checked: versions, schemas, tables, files and, with `deep`, rows.
    Unreferenced files are notes: cleanup deletes them once they are old enough."""

    deep: bool
    findings: list[Finding] = field(default_factory=list)
    looked_at: Counter[str] = field(default_factory=Counter)
    io: Ledger = field(default_factory=Ledger, repr=False)

    @property
    def ok(self) -> bool:
        return not self.errors

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == "error"]

    def found(self, kind: str, object: str, message: str, *, severity: Severity = "error") -> None:
        self.findings.append(Finding(kind, object, message, severity))

    def to_dict(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "deep": self.deep,
            "looked_at": dict(sorted(self.looked_at.items())),
            "findings": [finding.to_dict() for finding in self.findings],
        }
