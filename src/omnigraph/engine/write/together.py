"""Owns commits of several threads that are made ready together: which of them fit one after the
other on a head that none of them has landed on yet, and the table versions of all of them.

Only rows that are added can go together. The version of a table after the third commit is made
from the head's own version by the fragments of all three, so nobody waits for anybody's table.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from omnigraph.engine.session import Session
from omnigraph.engine.write.bind import advanced
from omnigraph.engine.write.chain import bear
from omnigraph.engine.write.published import find_keyed
from omnigraph.engine.write.recent import Added, Additive, changed_rows, commutes
from omnigraph.errors import OmnigraphError
from omnigraph.model.version import FORMAT, GraphVersion, TableStatistics
from omnigraph.plan.publish import Append, PublishPlan
from omnigraph.plan.successor import Advance, succeed
from omnigraph.store import commits
from omnigraph.store.tables import Table
from omnigraph.telemetry import Ledger

_PARALLEL = 32


@dataclass(frozen=True)
class Proposal:
    """One write of a group, as its thread came with it."""

    session: Session
    work: Additive
    ledger: Ledger


@dataclass(frozen=True)
class Ready:
    """A version that follows on the one before it in the group, with its tables before and
    after."""

    proposal: Proposal
    before: GraphVersion
    version: GraphVersion
    tables: dict[str, tuple[Table, Table]]
    unsynced: tuple[str, ...]


@dataclass
class _Line:
    """The writes that fit so far."""

    end: GraphVersion
    added: list[Added] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    taken: list[Proposal] = field(default_factory=list)


def may_join(plan: PublishPlan) -> bool:
    """Whether a plan only adds rows, and rests on nothing but the contents of tables."""
    lineage = plan.lineage
    return (
        bool(plan.actions)
        and all(isinstance(action, Append) for action in plan.actions)
        and (plan.schema, plan.queries, plan.if_commit) == (None, None, None)
        and (lineage.stream, lineage.merged) == (None, None)
        and plan.folded == 1
        and not plan.forgets
    )


def line_up(end: GraphVersion, proposals: Sequence[Proposal]) -> list[Proposal]:
    """Those that fit one after the other, in their order. The others go alone."""
    line = _Line(end)
    for one in proposals:
        if _fits(line, one):
            line.taken.append(one)
            line.added.append(changed_rows(one.work.plan, one.work))
            if one.work.plan.lineage.key is not None:
                line.keys.add(one.work.plan.lineage.key)
    return line.taken


def _fits(line: _Line, one: Proposal) -> bool:
    end, plan = line.end, one.work.plan
    if end.deleted or end.protected or end.format > FORMAT:
        return False
    if plan.base_incarnation != end.incarnation or one.work.stale(end):
        return False
    if one.session.held.get(end.branch) != end.incarnation:
        return False
    if one.session.permissions.restricted:
        catalog = one.session.read_catalog(end.catalog, one.ledger)
        tables = frozenset(action.table for action in plan.actions)
        try:
            one.session.permissions.require_tables(catalog, plan.lineage.kind, tables)
        except OmnigraphError:
            return False
    key = plan.lineage.key
    if key is not None and (
        key in line.keys or find_keyed(one.session, key, end, one.ledger) is not None
    ):
        return False
    return commutes(one.session, one.work, end, line.added)


def make_ready(end: GraphVersion, proposals: Sequence[Proposal]) -> list[Ready]:
    """The versions that follow on the end of the chain, one for each, and their tables."""
    so_far: dict[str, list[Append]] = {}
    steps: list[tuple[Proposal, str, tuple[Append, ...]]] = []
    for one in proposals:
        for action in one.work.plan.actions:
            assert isinstance(action, Append)
            of_table = so_far.setdefault(action.table, [])
            of_table.append(action)
            steps.append((one, action.table, tuple(of_table)))
    first = proposals[0]
    tables = {
        key: first.session.tables.open(
            end.pins[key].location, end.pins[key].lance_version, first.ledger
        )
        for key in so_far
    }

    def make(step: tuple[Proposal, str, tuple[Append, ...]]) -> tuple[Table, Ledger]:
        one, table, actions = step
        own = one.ledger.fork()
        fragments = [text for action in actions for text in action.fragments]
        return commits.append(tables[table], fragments, actions[-1].fields, own), own

    with ThreadPoolExecutor(_PARALLEL) as pool:
        made = list(pool.map(make, steps))
    after = {(id(one), table): new for (one, table, _), (new, _) in zip(steps, made, strict=True)}
    for one in proposals:
        one.ledger.join(
            [own for (of, _, _), (_, own) in zip(steps, made, strict=True) if of is one]
        )
    return _versions(end, proposals, tables, after)


def _versions(
    end: GraphVersion,
    proposals: Sequence[Proposal],
    tables: dict[str, Table],
    after: dict[tuple[int, str], Table],
) -> list[Ready]:
    ready: list[Ready] = []
    before, newest = end, dict(tables)
    synced: set[str] = set()
    for one in proposals:
        pins, statistics = dict(before.pins), {}
        changed: dict[str, tuple[Table, Table]] = {}
        for action in one.work.plan.actions:
            assert isinstance(action, Append)
            new = after[id(one), action.table]
            pins[action.table] = advanced(pins[action.table], new, one.session)
            changed[action.table] = (newest[action.table], new)
            newest[action.table] = new
            statistics[action.table] = TableStatistics(inserted=action.rows, bytes=action.bytes)
        change = Advance(one.work.plan.lineage, tuple(pins.values()), statistics)
        version = succeed(before, change, bear(one.session.runtime))
        files = dict.fromkeys(key for _, new in changed.values() for key in new.unsynced)
        unsynced = tuple(key for key in files if key not in synced)
        synced |= files.keys()  # with the one before, without which this one cannot land
        ready.append(Ready(one, before, version, changed, unsynced))
        before = version
    return ready
