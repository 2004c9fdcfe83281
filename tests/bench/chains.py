"""Versions that follow on others, made by hand: for histories that no call makes so quickly."""

from __future__ import annotations

from typing import Any

import msgspec

from omnigraph.engine.session import Session
from omnigraph.engine.write.chain import bear, put_version
from omnigraph.model.version import GraphVersion
from omnigraph.plan.publish import Lineage, Merged
from omnigraph.plan.successor import Advance, succeed
from omnigraph.telemetry import Ledger


def version_after(
    session: Session,
    end: GraphVersion,
    *,
    kind: str = "write",
    merged: Merged | None = None,
    message: str | None = None,
    actor: str | None = None,
    **changes: Any,
) -> GraphVersion:
    """What a commit that touches no table leaves, with anything else changed in it."""
    lineage = Lineage(kind=kind, operation="o", actor=actor, message=message, merged=merged)
    version = succeed(end, Advance(lineage, end.tables), bear(session.runtime))
    return msgspec.structs.replace(version, **changes)


def put(session: Session, version: GraphVersion) -> None:
    assert put_version(session, version, Ledger()) is None
