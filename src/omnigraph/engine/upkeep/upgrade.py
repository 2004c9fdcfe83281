"""Owns upgrading a graph to the format of this program: the branches first, the stamp last.

A commit on each branch makes older programs refuse it. A run that is interrupted, or meets another
one, continues from what it finds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from omnigraph.engine.session import Session
from omnigraph.engine.write.chain import Step, put_with_retry
from omnigraph.errors import Corrupt, OlderFormat
from omnigraph.model import version as model
from omnigraph.model.version import GraphStamp, GraphVersion
from omnigraph.plan.publish import Lineage
from omnigraph.plan.successor import Upgrade
from omnigraph.runtime import reach
from omnigraph.store.objects import Absent
from omnigraph.store.versions import STAMP_KEY
from omnigraph.telemetry import Ledger

ACTOR = "omnigraph:maintenance"
KIND = "upgrade"


@dataclass(frozen=True)
class FormatReport:
    """`branches` are those whose newest version has an older format than the program's."""

    stamp: int
    program: int
    oldest: int
    branches: tuple[str, ...] = ()

    @property
    def current(self) -> bool:
        return self.stamp == self.program and not self.branches

    def to_dict(self) -> dict[str, Any]:
        return {
            "current": self.current,
            "stamp": self.stamp,
            "program": self.program,
            "oldest": self.oldest,
            "branches": list(self.branches),
        }


def check_format(session: Session, ledger: Ledger) -> FormatReport:
    """Reads only."""
    versions = session.versions(ledger)
    waiting = []
    for branch in versions.list_branches():
        number = versions.find_head(branch)
        if versions.read_format(branch, number) < model.FORMAT:
            waiting.append(branch)
    try:
        stamp = versions.read_stamp()
    except Absent:
        raise Corrupt(f"{STAMP_KEY} is missing.") from None
    return FormatReport(stamp.format, model.FORMAT, model.OLDEST_FORMAT, tuple(waiting))


def upgrade(session: Session, ledger: Ledger) -> FormatReport:
    """Brings every branch, and then the stamp, to the format of the program. Returns the former
    format."""
    before = check_format(session, ledger)
    if before.stamp < model.OLDEST_FORMAT:
        raise OlderFormat(
            f"The graph has format {before.stamp}; this program reads {model.OLDEST_FORMAT} to "
            f"{model.FORMAT}."
        )
    for branch in before.branches:
        _upgrade_branch(session, branch, ledger)
        reach("branch upgraded")
    if before.stamp < model.FORMAT:
        graph = session.versions(ledger).read_stamp().graph
        stamp = GraphStamp(format=model.FORMAT, graph=graph)
        session.metered(ledger).put(STAMP_KEY, msgspec.json.encode(stamp))
    return before


def _upgrade_branch(session: Session, branch: str, ledger: Ledger) -> None:
    versions = session.versions(ledger)

    def look() -> GraphVersion | None:
        """The end of the chain, if it has an older format."""
        number = versions.find_head(branch)
        if versions.read_format(branch, number) >= model.FORMAT:
            return None
        end = versions.read(branch, number)
        session.saw_head(end)
        return end

    def propose(end: GraphVersion | None) -> Step | None:
        if end is None:
            return None
        lineage = Lineage(kind=KIND, operation=session.runtime.ulid(), actor=ACTOR)
        return Step(Upgrade(lineage))

    put_with_retry(
        session, branch, lambda _: look(), lambda _: propose(look()), ledger, stamped=False
    )
