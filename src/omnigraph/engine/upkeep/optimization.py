"""Owns one round of maintenance as the publisher sees it: what is staged for each type on one head,
whether it still fits another head, and staging it again there."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from omnigraph.engine.graph_view import full_view_of, pin_of
from omnigraph.engine.session import Session
from omnigraph.engine.upkeep.chain_archive import ChainFold
from omnigraph.engine.upkeep.heartbeat import Heartbeat
from omnigraph.engine.upkeep.optimize_report import OnProgress, Progress, TypeReport
from omnigraph.engine.upkeep.workers import OwnWorkers, Workers, pieces_of
from omnigraph.model.catalog import GraphType
from omnigraph.model.version import GraphVersion, TablePin
from omnigraph.plan.optimize import (
    Covered,
    IndexWork,
    Limits,
    plan_compaction,
    plan_index,
    wanted_indexes,
)
from omnigraph.plan.publish import (
    Index,
    Lineage,
    PublishPlan,
    Rewrite,
    RewriteGroup,
    TableAction,
)
from omnigraph.runtime import reach
from omnigraph.store import commits, indexes
from omnigraph.store.indexes import (
    Segment,
    files_of,
    list_segments,
    replace_segments,
)
from omnigraph.store.tables import Table
from omnigraph.telemetry import Ledger

ACTOR = "omnigraph:maintenance"
KIND = "optimize"
_BEYOND = 64
"""Fragment numbers left free for appends that land while a table is being optimized."""
_PARALLEL = 8
_QUICK = 2.0
"""Seconds for which planning again may hold up writers of the same machine."""


class NothingLeft(Exception):
    """The new head needs no maintenance any more, because somebody else has done it."""


class TooSlow(Exception):
    """What was staged no longer fits, and staging it again would hold up writers."""


class Optimization:
    """Maintenance as the publisher sees it. Planning again happens within the branch's turn, so
    that on one machine nobody can be faster a second time."""

    plan: PublishPlan

    def __init__(
        self,
        session: Session,
        branch: str,
        types: Sequence[str] | None,
        limits: Limits,
        progress: OnProgress | None,
        ledger: Ledger,
        fold: ChainFold | None = None,
        *,
        lineage: Lineage,
        if_commit: str | None = None,
        dry_run: bool,
        workers: Workers | None = None,
    ) -> None:
        self._workers = workers or OwnWorkers()
        self._fold = fold
        self._lineage = lineage
        self._if_commit = if_commit
        self._session = session
        self._branch = branch
        self._types = types
        self._limits = limits
        self._progress = progress
        self._ledger = ledger
        self._dry_run = dry_run
        self._staged_at = 0
        self._took = 0.0
        self.reports: dict[str, TypeReport] = {}
        self.tables: list[str] = []
        self.underway: Heartbeat | None = None

    @property
    def base(self) -> GraphVersion:
        return self._base

    @property
    def folded(self) -> int:
        """How many versions leave the chain, unless somebody else was faster."""
        if self._fold is None or self._fold.below <= self._base.bottom:
            return 0
        return self._fold.count

    @property
    def worth_it(self) -> bool:
        return bool(self.plan.actions or self.folded)

    def stage(self, head: GraphVersion) -> None:
        self._base = head
        if self.underway is not None:
            self.underway.renew()
        self._staged_at = self._session.runtime.now()
        began = self._session.runtime.monotonic()
        self.reports = {}
        snapshot = full_view_of(self._session, head, self._ledger)
        chosen = (
            snapshot.catalog.types
            if self._types is None
            else [snapshot.type(name) for name in self._types]
        )
        self.tables = [kind.table_key for kind in chosen]
        _open_tables(self._session, [pin_of(snapshot, kind) for kind in chosen], self._ledger)
        actions = []
        for done, kind in enumerate(chosen):
            if self._progress is not None:
                self._progress(Progress(done, len(chosen), kind.name, "looking"))
            pin = pin_of(snapshot, kind)
            action = self._stage_type(kind, pin, (done, len(chosen)))
            if action is not None:
                actions.append(action)
        self._took = self._session.runtime.monotonic() - began
        reach("staged")
        self.plan = PublishPlan(
            branch=self._branch,
            base_version=head.version,
            base_incarnation=head.incarnation,
            actions=tuple(actions),
            lineage=msgspec.structs.replace(self._lineage, operation=self._session.runtime.ulid()),
            if_commit=self._if_commit,
            folded=1 if self._fold is None else self._fold.below,
        )

    # What the publisher asks for

    def replan(self, head: GraphVersion) -> None:
        if self._took > _QUICK:
            raise TooSlow  # writers wait while this is done
        self.stage(head)
        if not self.worth_it:
            raise NothingLeft

    def stale(self, head: GraphVersion) -> bool:
        """Whether what was staged cannot be carried over to this head."""
        session = self._session
        known = self.underway is not None and self.underway.covers(head)
        if not known and session.outlived(self._staged_at, head):
            return True
        if head.version == self._base.version:
            return False
        for action in self.plan.actions:
            pin, was = head.pins.get(action.table), self._base.pins[action.table]
            if pin is None or pin.location != was.location:
                return True
            if pin.lance_version == was.lance_version:
                continue
            table = session.tables.open(pin.location, pin.lance_version, self._ledger)
            if not _still_fits(table, action):
                return True
        return False

    # One type

    def _stage_type(
        self, kind: GraphType, pin: TablePin, place: tuple[int, int]
    ) -> Rewrite | Index | None:
        if not pin.fragments:
            self.reports[kind.name] = TypeReport((0, 0), (0, 0))
            return None
        session, ledger = self._session, self._ledger
        base = session.tables.open(pin.location, pin.lance_version, ledger)
        table, groups = base, plan_compaction(pieces_of(base), self._limits)
        staged: tuple[commits.Group, ...] = ()
        if groups and not self._dry_run:
            self._tell(place, kind, f"writing {sum(map(len, groups))} fragments anew")
            written = self._workers.compact(base, groups, self._limits.target_rows, ledger)
            staged = commits.number_fragments(base, written, beyond=_BEYOND)
            table = commits.rewrite(base, staged, ledger)
        table, index, report = self._stage_indexes(kind, table, place)
        after = len(base.marks) - sum(map(len, groups)) + len(groups)
        self.reports[kind.name] = TypeReport(
            fragments=(len(base.marks), after if self._dry_run else len(table.marks)),
            segments=report.segments,
            rewritten=sum(map(len, groups)),
            rewritten_bytes=sum(base.marks[n].bytes for group in groups for n in group),
            indexed=report.indexed,
            dropped=report.dropped,
            pending=report.pending + self._waiting(base, groups),
        )
        if self._dry_run or (not staged and index is None):
            return None
        session.tables.keep(table)
        if not staged:
            assert index is not None
            return msgspec.structs.replace(
                index, base=base.version, staged=table.version, unsynced=table.unsynced
            )
        return Rewrite(
            table=kind.table_key,
            groups=tuple(RewriteGroup(old=tuple(old), new=tuple(new)) for old, new in staged),
            index=index,
            base=base.version,
            staged=table.version,
            unsynced=table.unsynced,
        )

    def _waiting(self, base: Table, groups: Sequence[Sequence[int]]) -> tuple[str, ...]:
        taken = {number for group in groups for number in group}
        floor = self._limits.floor
        left = [m for m in base.marks.values() if m.id not in taken and m.bytes < floor]
        if len(base.marks) < 2 or not left:
            return ()
        one = len(left) == 1
        told = "1 small fragment: it waits" if one else f"{len(left)} small fragments: they wait"
        return (f"{told} until more have come",)

    def _stage_indexes(
        self, kind: GraphType, table: Table, place: tuple[int, int]
    ) -> tuple[Table, Index | None, TypeReport]:
        known = list_segments(table)
        pieces = pieces_of(table)
        by_name: dict[str, list[Covered]] = {}
        for one in known:
            by_name.setdefault(one.name, []).append(Covered(one.uuid, one.fragments))
        wanted = [s for s in wanted_indexes(kind) if s.column in table.schema.names]
        names = {spec.name for spec in wanted}
        dropped = sorted(by_name.keys() - names)
        removed = [one.uuid for one in known if one.name in dropped]
        works: list[IndexWork] = []
        pending: list[str] = []
        for spec in wanted:
            name = spec.name
            match plan_index(spec, pieces, by_name.get(name, ()), self._limits):
                case IndexWork() as work:
                    works.append(work)
                case str(reason):
                    pending.append(f"{name}: {reason}")
        segments: list[Segment] = []
        built: list[str] = []
        made = self._build(kind, table, works, place)
        for work in works:
            name = work.spec.name
            if work.fragments and not self._dry_run:
                if not made[name]:
                    pending.append(f"{name}: too few vectors that are neither null nor zero")
                    continue
                segments += made[name]
            removed += work.removed
            built += [name] if work.fragments else []
        report = TypeReport(
            fragments=(0, 0),
            segments=(len(known), len(known) - len(removed) + max(len(built), len(segments))),
            indexed=tuple(built),
            dropped=tuple(dropped),
            pending=tuple(pending),
        )
        if self._dry_run or not (segments or removed):
            return table, None, report
        files = files_of(table, sorted({n for one in segments for n in one.fragment_ids}))
        action = Index(
            table=kind.table_key,
            segments=tuple(msgspec.Raw(msgspec.json.encode(segment)) for segment in segments),
            files=files,
            removed=tuple(removed),
        )
        table = replace_segments(table, files, segments, self._ledger, removed=removed)
        return table, action, report

    def _build(
        self, kind: GraphType, table: Table, works: Sequence[IndexWork], place: tuple[int, int]
    ) -> dict[str, tuple[Segment, ...]]:
        """The segments, by the names of their indexes."""
        wanted = [work for work in works if work.fragments]
        if self._dry_run or not wanted:
            return {}
        names = [work.spec.name for work in wanted]
        for name in names:
            self._tell(place, kind, f"building {name}")
        return dict(zip(names, self._workers.build(table, wanted, self._ledger), strict=True))

    def _tell(self, place: tuple[int, int], kind: GraphType, doing: str) -> None:
        if self._progress is not None:
            self._progress(Progress(*place, kind.name, doing))


def _still_fits(table: Table, action: TableAction) -> bool:
    if isinstance(action, Index):
        return indexes.fits(table, action.files, action.removed)
    assert isinstance(action, Rewrite)
    return commits.fits(table, [(group.old, group.new) for group in action.groups])


def _open_tables(session: Session, pins: Sequence[TablePin], ledger: Ledger) -> None:
    """In parallel, because a graph may have hundreds of tables."""
    ledgers = [ledger.fork() for _ in pins]
    with ThreadPoolExecutor(_PARALLEL) as pool:
        list(pool.map(lambda pin, own: _open(session, pin, own), pins, ledgers))
    ledger.join(ledgers)


def _open(session: Session, pin: TablePin, ledger: Ledger) -> Table | None:
    if not pin.fragments:
        return None
    return session.tables.open(pin.location, pin.lance_version, ledger)
