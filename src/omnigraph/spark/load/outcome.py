"""Owns what a run of a job leaves for the next one: the version that it rests on, and what checking
and staging came to there."""

from __future__ import annotations

import msgspec

from omnigraph.engine.session import Session
from omnigraph.model.version import GraphVersion
from omnigraph.plan.load.places import Reject
from omnigraph.plan.publish import TableAction
from omnigraph.spark.load.rejected_files import RejectedFile
from omnigraph.store.intents import Intent
from omnigraph.store.objects import Absent
from omnigraph.telemetry import Ledger


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What checking and staging on one base came to."""

    actions: tuple[TableAction, ...]
    checks: tuple[str, ...]
    rejects: tuple[Reject, ...]
    aside: tuple[RejectedFile, ...]


def base_of(
    session: Session, intent: Intent, head: GraphVersion, ledger: Ledger
) -> GraphVersion | None:
    """The version that an earlier run was pinned to. None if what it staged may be gone, or the
    branch is another one by now."""
    if intent.created_at <= head.gc_cutoff or not intent.pins:
        return None
    (pin,) = intent.pins
    try:
        base = session.read_version(pin.branch, pin.version, ledger)
    except Absent:
        return None
    if pin.branch != head.branch:  # the branch was created from that version
        return head
    return base if base.incarnation == head.incarnation == pin.incarnation else None
