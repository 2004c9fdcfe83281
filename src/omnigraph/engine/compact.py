"""Owns compaction as a write: the same rows in fewer fragments, published like any commit."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.engine.publisher import Publisher
from omnigraph.engine.session import Session
from omnigraph.errors import Conflict
from omnigraph.model.version import Commit, GraphVersion
from omnigraph.plan.publish import Lineage, PublishPlan, Rewrite, RewriteGroup
from omnigraph.store.staging import stage_compaction
from omnigraph.telemetry import Ledger

ACTOR = "omnigraph:maintenance"


@dataclass(frozen=True)
class Compacted:
    """`fragments` maps each compacted table to its number of fragments before."""

    commit: Commit | None
    fragments: dict[str, int]
    io: Ledger


class _Compaction:
    """A compaction as the publisher sees it. When its fragments have changed under it, there is
    nothing to carry over: it is given up and planned again."""

    def __init__(self, plan: PublishPlan, base: GraphVersion) -> None:
        self.plan = plan
        self._base = base

    @property
    def base(self) -> GraphVersion:
        return self._base

    def replan(self, head: GraphVersion) -> None:
        raise Conflict("The schema changed while tables were compacted.")

    def stale(self, head: GraphVersion) -> bool:
        return False


def compact(
    session: Session, branch: str, types: list[str] | None, *, attempts: int = 5
) -> Compacted:
    """Never fails a writer, and gives way to them: after some attempts it lets it be."""
    ledger = Ledger()
    for attempt in range(attempts):
        head = session.live_head(branch, ledger)
        snapshot = session.snapshot(head, ledger)
        keys = [snapshot.type(name).table_key for name in types] if types else list(head.pins)
        actions = []
        for key in keys:
            pin = head.pins[key]
            if pin.fragments < 2:
                continue
            table = session.tables.open(pin.location, pin.lance_version, ledger)
            if groups := stage_compaction(table, [list(table.marks)], ledger):
                rewritten = tuple(RewriteGroup(old=old, new=new) for old, new in groups)
                actions.append(Rewrite(table=key, groups=rewritten))
        if not actions:
            break
        lineage = Lineage(kind="optimize", operation=session.runtime.ulid(), actor=ACTOR)
        plan = PublishPlan(
            branch=branch,
            base_version=head.version,
            base_incarnation=head.incarnation,
            actions=tuple(actions),
            lineage=lineage,
        )
        try:
            published = Publisher(session).publish(
                _Compaction(plan, head), ledger, retry_for=session.settings.retry_for
            )
        except Conflict:
            if attempt + 1 == attempts:
                break
            continue
        assert published.version is not None
        before = {action.table: head.pins[action.table].fragments for action in actions}
        return Compacted(published.version.commit, before, ledger)
    return Compacted(None, {}, ledger)
