"""Owns restoring: a new commit whose contents are those of an older version, by reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec

from omnigraph.engine.history.pinning import held_version
from omnigraph.engine.session import Session
from omnigraph.engine.write.lineage import find_repeated, make_lineage
from omnigraph.engine.write.precondition import pin_commit
from omnigraph.engine.write.publisher import publish, require_unprotected
from omnigraph.errors import Conflict
from omnigraph.model.options import CommitOptions
from omnigraph.model.stored_queries import QueriesChange
from omnigraph.model.version import Commit, GraphVersion
from omnigraph.plan.publish import (
    Adopt,
    Lineage,
    PublishPlan,
    Register,
    SchemaChange,
    TableAction,
    Tombstone,
)
from omnigraph.telemetry import Ledger

KIND = "restore"


@dataclass
class _PinnedRef:
    """A restore as the publisher sees it: bound to one head. If the head moves, the caller plans it
    again."""

    plan: PublishPlan
    base: GraphVersion
    late: Callable[[], bool]

    def replan(self, head: GraphVersion) -> None:
        raise Conflict("The branch moved while it was restored.")

    def stale(self, head: GraphVersion) -> bool:
        """Whether cleanup may consider the intent that holds the target dead."""
        return self.late()


def restore(
    session: Session,
    ref: str,
    branch: str,
    options: CommitOptions,
    ledger: Ledger,
) -> Commit:
    """Makes tables, schema and stored queries what they were at the ref; no row is read or copied.
    If the branch moves meanwhile, its new head is restored. Returns the head's commit if nothing
    would change."""
    lineage = make_lineage(session, KIND, options, ref, branch)
    if (first := find_repeated(session, branch, lineage, ledger)) is not None:
        return first.commit
    with held_version(session, ref, ledger) as target:
        said = options.message or f"restore {target.commit.id}"
        lineage = msgspec.structs.replace(lineage, message=said)
        return _restore(session, target, branch, lineage, options, ledger)


def _restore(
    session: Session,
    target: GraphVersion,
    branch: str,
    lineage: Lineage,
    options: CommitOptions,
    ledger: Ledger,
) -> Commit:
    began = session.runtime.monotonic()
    deadline = began + options.patience(session.settings.retry_for)

    def late() -> bool:
        return session.runtime.monotonic() - began > session.settings.grace / 2

    while True:
        head = session.live_head(branch, ledger)
        session = session.holding(branch, head.incarnation)
        pinned = pin_commit(session, head, options, ledger)
        require_unprotected(head, KIND)
        actions = tuple(plan_actions(head, target))
        schema = _renew_schema(session, head, target, ledger)
        if not actions and schema is None and head.queries == target.queries:
            return head.commit
        plan = PublishPlan(
            branch=branch,
            base_version=head.version,
            base_incarnation=head.incarnation,
            actions=actions,
            lineage=lineage,
            # Rows that are written meanwhile would survive in the tables that stay as they are.
            reads={key: pin.content for key, pin in head.pins.items()},
            schema=schema,
            queries=QueriesChange(queries=target.queries),
            if_commit=pinned,
        )
        left = max(0.0, deadline - session.runtime.monotonic())
        try:
            work = _PinnedRef(plan, head, late)
            published = publish(session, work, ledger, retry_for=left)
        except Conflict as error:
            if not error.retryable or late() or session.runtime.monotonic() > deadline:
                raise
            continue
        version = published.version or published.first
        assert version is not None
        return version.commit


def plan_actions(head: GraphVersion, target: GraphVersion) -> Iterator[TableAction]:
    """The actions that turn the head's tables into the target's. Pure. Tables that were only
    compacted since stay compacted."""
    for key in head.pins.keys() - target.pins.keys():
        yield Tombstone(table=key)
    for key, pin in target.pins.items():
        now = head.pins.get(key)
        if now is None:
            number = pin.table_version + 1
            yield Register(table=key, pin=msgspec.structs.replace(pin, table_version=number))
        elif (now.type_id, now.content) != (pin.type_id, pin.content):
            yield Adopt(table=key, base=now.lance_version, pin=pin)


def _renew_schema(
    session: Session, head: GraphVersion, target: GraphVersion, ledger: Ledger
) -> SchemaChange | None:
    """The target's schema as a new generation, so that ids that are given later are new too."""
    if head.catalog == target.catalog:
        return None
    now = session.read_catalog(head.catalog, ledger)
    then = session.read_catalog(target.catalog, ledger)
    if head.schema == target.schema and now == msgspec.structs.replace(
        then, generation=now.generation
    ):
        return None
    renewed = msgspec.structs.replace(then, generation=max(now.generation, then.generation) + 1)
    text = session.read_schema_text(target.schema, ledger)
    schema, catalog = session.write_schema(text, renewed, ledger)
    return SchemaChange(schema=schema, catalog=catalog)
