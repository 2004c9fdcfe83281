"""Owns what the last commits added, row by row where they were made by this handle, so that a write
which looked up other values need not run again after them.

Of a commit of another process it is known whether it only added rows, not which: that is enough for
who looked up only what was there. A commit that removed or replaced rows counts for every row of
the tables that it touched.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import msgspec
import numpy as np
import pyarrow as pa

from omnigraph.engine.session import Session
from omnigraph.model.version import GraphVersion
from omnigraph.plan.publish import Append, Index, PublishPlan, Rename, Rewrite
from omnigraph.plan.rebase import Keep, resolve_rebase
from omnigraph.plan.validate import key_texts

KEPT = 1024
"""How many commits are remembered."""
_ROWS, _BYTES = 64, 64 * 1024

Looked = dict[tuple[str, ...], set[str]]
"""The values that were looked up in a table, by columns. Their canonical texts, as in an id."""


class More(Enum):
    """What is known of a commit if its rows are not."""

    ROWS = "it added rows and did nothing else"


Added = Mapping[str, pa.Table | More | None]
"""The rows that a commit added to each table that it touched, None if it did anything else."""
_PLAIN = frozenset({"write", "mutate", "load"})
"""Kinds of commits whose statistics tell all that they did to a table."""


class Additive(Protocol):
    """What a write says about itself, so that others need not run again after it, nor it after
    them."""

    plan: PublishPlan

    @property
    def base(self) -> GraphVersion: ...

    @property
    def looked(self) -> dict[str, Looked | None]:
        """What it looked up in each table, None if that was everything."""

    def added(self, table: str) -> pa.Table | None:
        """The rows that it adds to a table."""

    def staged_rows(self, table: str) -> tuple[pa.Table, np.ndarray]:
        """The same rows by column, as they were staged, and the addresses that were hidden."""

    def stale(self, head: GraphVersion) -> bool:
        """Whether staged files may be gone by the time the plan is bound."""


@dataclass(frozen=True)
class _Commit:
    before: str
    added: Added


class RecentCommits:
    """By the tokens of their versions, which no two versions share."""

    @classmethod
    def shared_by(cls, session: Session) -> RecentCommits:
        """The one of all handles of this session."""
        return session.shared(_recent_commits)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._commits: OrderedDict[str, _Commit] = OrderedDict()

    def note(self, before: str, after: str, added: Added) -> None:
        kept = {key: More.ROWS if _is_large(rows) else rows for key, rows in added.items()}
        with self._lock:
            self._commits[after] = _Commit(before, kept)
            while len(self._commits) > KEPT:
                self._commits.popitem(last=False)

    def between(
        self, session: Session, base: GraphVersion, head: GraphVersion
    ) -> list[Added] | None:
        """What each commit after the base did, up to the head. None if one of them is unknown. It
        takes no request."""
        found: list[Added] = []
        after = head
        while after.token != base.token:
            before: GraphVersion | None = base
            if after.version - 1 != base.version:
                before = session.remembered(after.branch, after.version - 1)
            if before is None or not base.version <= before.version < after.version:
                return None
            added = self._of(before, after)
            if added is None:
                return None
            found.append(added)
            after = before
        return found

    def _of(self, before: GraphVersion, after: GraphVersion) -> Added | None:
        with self._lock:
            own = self._commits.get(after.token)
        if own is not None:
            return own.added if own.before == before.token else None
        follows = after.commit.parents[:1] == (before.commit.id,)
        return _told(before, after) if follows else None


def _told(before: GraphVersion, after: GraphVersion) -> Added:
    """What another process did, as far as its commit tells."""
    added: dict[str, More | None] = {}
    for key in before.pins.keys() | after.pins.keys():
        old, new = before.pins.get(key), after.pins.get(key)
        if old is not None and new is not None and old.content == new.content:
            continue
        done = after.commit.statistics.get(key)
        only_added = (
            after.commit.kind in _PLAIN
            and None not in (old, new)
            and done is not None
            and (done.inserted > 0, done.updated, done.deleted) == (True, 0, 0)
        )
        added[key] = More.ROWS if only_added else None
    return added


def untouched(table: str, looked: Looked | None, commits: Iterable[Added]) -> bool:
    """Whether these commits only added rows to a table, with none of the values that were looked
    up there. None stands for a look at everything."""
    for added in commits:
        if table not in added:
            continue
        rows = added[table]
        if rows is None or looked is None:
            return False
        if rows is More.ROWS:
            if any(looked.values()):
                return False
            continue
        if any(not set(columns) <= set(rows.column_names) for columns in looked):
            return False  # under another schema in between
        if any(not texts.isdisjoint(key_texts(rows, columns)) for columns, texts in looked.items()):
            return False
    return True


def commutes(
    session: Session, work: Additive, head: GraphVersion, others: Sequence[Added] = ()
) -> bool:
    """Whether a plan can be bound after the commits since its base, and `others` on top of the
    head, as if none of them had been there."""
    plan, base = work.plan, work.base
    between = RecentCommits.shared_by(session).between(session, base, head)
    touched = {table for added in others for table in added}
    if not touched.isdisjoint(plan.reads):
        return False
    checks = dict(plan.checks)
    for table in plan.checks:
        looked = work.looked.get(table)
        if between is not None and untouched(table, looked, [*between, *others]):
            del checks[table]
        elif table in touched:
            return False
    same = msgspec.structs.replace(plan, checks=checks)
    return resolve_rebase(same, base, head) == Keep()


def changed_rows(plan: PublishPlan, additive: Additive | None) -> dict[str, pa.Table | More | None]:
    """What a plan does to each table whose contents it changes."""
    changed: dict[str, pa.Table | More | None] = {}
    for action in plan.actions:
        if isinstance(action, Rewrite | Index):
            continue
        done: pa.Table | More | None = None
        if isinstance(action, Append):
            done = More.ROWS if additive is None else additive.added(action.table)
        if action.table in changed:
            done = None if done is None or changed[action.table] is None else More.ROWS
        changed[action.table] = done
        if isinstance(action, Rename):
            changed[action.to] = None
    return changed


def _is_large(rows: pa.Table | More | None) -> bool:
    return isinstance(rows, pa.Table) and (rows.num_rows > _ROWS or rows.nbytes > _BYTES)


def _recent_commits(_: Session) -> RecentCommits:
    return RecentCommits()
