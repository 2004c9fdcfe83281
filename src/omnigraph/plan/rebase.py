"""Owns the rebase table: what happens to a plan when the branch has moved on. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

import msgspec

from omnigraph.model.version import GraphVersion
from omnigraph.plan import publish


class ExpectedVersionMismatch(msgspec.Struct, frozen=True, kw_only=True):
    """A table that is not at the version that the write needs. None stands for a missing table."""

    table_key: str
    expected: int | None
    actual: int | None


@dataclass(frozen=True)
class Keep:
    """Bind the same plan to the new head."""


@dataclass(frozen=True)
class Rerun:
    """Run the statements again on the new snapshot: the query is the transaction."""

    because: str


@dataclass(frozen=True)
class BranchGone:
    """The branch was deleted, or is another branch of the same name."""


@dataclass(frozen=True)
class HeadMoved:
    """The caller pinned the head, and it has moved."""


@dataclass(frozen=True)
class Clash:
    mismatch: ExpectedVersionMismatch
    because: str


Verdict = Keep | Rerun | BranchGone | HeadMoved | Clash


def resolve_rebase(plan: publish.PublishPlan, base: GraphVersion, head: GraphVersion) -> Verdict:
    """Decides for the whole plan: the worst verdict of any part."""
    if head.deleted or head.incarnation != plan.base_incarnation:
        return BranchGone()
    if plan.if_commit is not None and not head.holds(plan.if_commit):
        return HeadMoved()
    for table, content in plan.reads.items():
        if not _holds(head, table, content):
            because = "it was read in the transaction and has changed since"
            return Clash(_mismatch(table, base, head), because)
    if head.catalog != base.catalog:
        if plan.schema is None:
            return Rerun("the schema changed")
        versions = ExpectedVersionMismatch(
            table_key="schema", expected=base.version, actual=head.version
        )
        return Clash(versions, "the schema was changed by another commit")
    verdicts: list[Verdict] = [_resolve_action(action, base, head) for action in plan.actions]
    if head.queries != base.queries and (plan.queries is not None or plan.schema is not None):
        verdicts.append(Rerun("the stored queries changed"))
    verdicts += [
        Rerun(f"{table} changed")
        for table, content in plan.checks.items()
        if not _holds(head, table, content)
    ]
    worst = sorted(verdicts, key=lambda v: (not isinstance(v, Clash), not isinstance(v, Rerun)))
    return worst[0] if worst else Keep()


def _resolve_action(action: publish.TableAction, base: GraphVersion, head: GraphVersion) -> Verdict:
    pin = head.pins.get(action.table)
    match action:
        case (
            publish.Append()
            | publish.Rewrite()
            | publish.Index()
            | publish.Rename()
            | publish.DropColumns()
            | publish.Tombstone()
        ):
            # The table door checks fragments one by one for Rewrite and Index.
            if pin is None:
                return Clash(_mismatch(action.table, base, head), "its type was dropped")
            if isinstance(action, publish.Tombstone) and _moved(action.table, base, head):
                return Clash(_mismatch(action.table, base, head), "it was written to")
            return Keep()
        case publish.Upsert() | publish.Update() | publish.Delete():
            if pin is None or pin.lance_version != action.base:
                return Rerun(f"{action.table} changed")
            return Keep()
        case publish.Overwrite() | publish.AddColumns() | publish.Adopt():
            if pin is None or pin.lance_version != action.base:
                if isinstance(action, publish.Overwrite) and not _moved(action.table, base, head):
                    return Rerun(f"{action.table} was compacted")
                return Clash(_mismatch(action.table, base, head), "it was written to")
            return Keep()
        case publish.Register():
            if pin is not None and action.table not in base.pins:
                return Clash(_mismatch(action.table, base, head), "the type exists already")
            return Keep()
        case _:
            assert_never(action)


def _holds(version: GraphVersion, table: str, content: str) -> bool:
    """Whether readers find the same contents there. Compaction and indexes make no difference."""
    pin = version.pins.get(table)
    return pin is not None and pin.content == content


def _moved(table: str, base: GraphVersion, head: GraphVersion) -> bool:
    before = base.pins.get(table)
    return before is None or not _holds(head, table, before.content)


def _mismatch(table: str, base: GraphVersion, head: GraphVersion) -> ExpectedVersionMismatch:
    before, after = base.pins.get(table), head.pins.get(table)
    return ExpectedVersionMismatch(
        table_key=table,
        expected=None if before is None else before.table_version,
        actual=None if after is None else after.table_version,
    )
