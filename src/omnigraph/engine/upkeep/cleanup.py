"""Owns cleanup: a tracing collector that never takes what somebody reads, or is about to publish.

The order is what makes it safe (hazard 7): first every branch says, by a commit, up to where it
will be cleaned; only then is looked at what is needed; only then is anything deleted. A writer
binds to the head of its branch, so it meets that commit, and stages again what may be gone. A run
that is interrupted leaves nothing half done: the next one finds the same files again.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import msgspec

from omnigraph.engine.session import Session
from omnigraph.engine.upkeep.cleanup_report import Cleaned, Reason, Removal
from omnigraph.engine.upkeep.survey import Chain, needed_versions, survey_chain, survey_chains
from omnigraph.engine.upkeep.trace import PARALLEL, Trace, holds
from omnigraph.engine.write.publisher import RECENT_SAME, commit_after, put_version
from omnigraph.errors import Corrupt, InvalidArgument
from omnigraph.model.version import GraphVersion
from omnigraph.plan.retain import Cutoffs, Policy, below_floor, resolve_cutoffs, resolve_floor
from omnigraph.runtime import reach
from omnigraph.store.files import TableFiles, is_candidate, location_of
from omnigraph.store.history import Archive
from omnigraph.store.intents import PIN, KnownIntent, list_intents
from omnigraph.store.jobs import is_passing
from omnigraph.store.objects import Absent, StoredFile
from omnigraph.store.versions import version_number
from omnigraph.telemetry import Ledger

ACTOR = "omnigraph:maintenance"
KIND = "cleanup"
_BATCH = 500


@dataclass(frozen=True)
class _Needs:
    """What was found: chains, what is needed below their floors, and intents."""

    chains: dict[str, Chain]
    floors: dict[str, int]
    wanted: set[tuple[str, int]]
    kept: dict[str, tuple[int, ...]]
    intents: list[KnownIntent]
    cutoffs: Cutoffs


def cleanup(
    session: Session, policy: Policy, *, dry_run: bool, writable: bool, ledger: Ledger
) -> Cleaned:
    """Deletes versions that are neither among the last ones nor young, and every file that no
    version needs. Without anything to delete it publishes nothing. Who may not write cannot ask
    the store for its time, and goes by their own."""
    if policy.keep < 1:
        raise InvalidArgument(f"keep={policy.keep}: a branch keeps at least its newest version.")
    if policy.grace < int(session.settings.grace * 1e6):
        raise InvalidArgument(
            f"The grace of {policy.grace / 1e6:g} s is shorter than the {session.settings.grace:g} "
            "s that writers rely on.",
            help="Set OMNIGRAPH_GRACE, or Settings(grace=...), for every process that writes.",
        )
    now = read_store_time(session, ledger) if writable else session.runtime.now()
    return _Cleanup(session, policy, ledger).run(now, dry_run=dry_run)


class _Cleanup:
    def __init__(self, session: Session, policy: Policy, ledger: Ledger) -> None:
        self._session = session
        self._policy = policy
        self._ledger = ledger
        self._objects = session.metered(ledger)

    def run(self, now: int, *, dry_run: bool) -> Cleaned:
        report = Cleaned(dry_run=dry_run, io=self._ledger)
        needs = self._look(now)
        planned = self._spent(needs)
        if dry_run or not planned:
            report.removed = planned
            report.floors = _changed(needs)
            report.spared = _spared(needs)
            return report
        self._announce(needs, now)
        reach("cleanup announced")
        needs = self._look(now, cutoffs=needs.cutoffs, before=needs.chains)
        self._archive(needs)
        reach("cleanup archived")
        removals = self._spent(needs)
        self._delete_versions(removals)
        reach("cleanup pruned")
        self._delete_files(one for one in removals if one.reason != "old version")
        report.removed = removals
        report.floors = _changed(needs) | {
            branch: chain.end.floor for branch, chain in needs.chains.items() if chain.left
        }
        report.spared = _spared(needs)
        return report

    # Looking

    def _look(
        self,
        now: int,
        *,
        cutoffs: Cutoffs | None = None,
        before: dict[str, Chain] | None = None,
    ) -> _Needs:
        """With the chains as they were `before` the announcement, floors are those that the
        branches carry, whoever announced them."""
        settled = before is not None
        session, ledger = self._session, self._ledger
        chains = survey_chains(session, ledger)
        intents = list_intents(self._objects)
        if cutoffs is None:
            cutoffs = resolve_cutoffs(now, self._policy, oldest_intent=self._oldest(intents, now))
        floors = {
            branch: chain.end.floor
            if settled
            else resolve_floor(chain.versions, chain.put_at(), self._policy, cutoffs)
            for branch, chain in chains.items()
        }
        wanted = needed_versions(session, [chain.end for chain in chains.values()], ledger)
        # A version counts that was there before this cleanup said that it would go: who holds it
        # may have looked just before.
        ends = {branch: chain.end for branch, chain in (chains | (before or {})).items()}
        for known in intents:
            if known.intent is not None and not self._is_dead(known, now):
                wanted |= {
                    (pin.branch, pin.version)
                    for pin in known.intent.pins
                    if pin.branch in ends and _is_there(ends[pin.branch], pin.version)
                }
        if settled:
            for branch, chain in chains.items():
                wanted |= {(branch, number) for number in chain.end.kept}
        kept = below_floor(floors, wanted)
        return _Needs(chains, floors, wanted, kept, intents, cutoffs)

    def _oldest(self, intents: list[KnownIntent], now: int) -> int | None:
        """When the oldest operation began that may still go on, or be resumed."""
        began = [
            known.modified if known.intent is None else min(known.intent.created_at, known.modified)
            for known in intents
            if not self._is_dead(known, now)
        ]
        return min(began, default=None)

    def _is_dead(self, known: KnownIntent, now: int) -> bool:
        """One that cannot be read is left alone, with what it may need."""
        if known.intent is None:
            return False
        patience = self._policy.grace
        if known.intent.kind != PIN:
            patience = max(patience, self._policy.older_than)
        return max(known.modified, known.intent.heartbeat) < now - patience

    def _roots(self, needs: _Needs) -> Iterable[GraphVersion]:
        for branch, chain in needs.chains.items():
            for version in chain.versions:
                if version.version >= needs.floors[branch] and (version.tag or not version.deleted):
                    yield version
            held = {version.version: version for version in chain.versions}
            for number in needs.kept.get(branch, ()):
                if number in held:
                    yield held[number]
                    continue
                try:
                    yield self._session.read_record(branch, number, self._ledger)
                except Absent:
                    raise Corrupt(
                        f"Version {number} of {branch!r} is needed, and is missing."
                    ) from None

    def _spent(self, needs: _Needs) -> list[Removal]:
        """Every file that may go, versions first, oldest first."""
        removals: list[Removal] = []
        for branch, chain in needs.chains.items():
            removals += [_removal(file, "old version") for file in chain.left]
            removals += [
                _removal(chain.files[version.version], "old version")
                for version in chain.versions
                if version.version < needs.floors[branch]
            ]
        trace = Trace(self._session, self._ledger)
        trace.follow(self._roots(needs))
        for traced in trace.tables.values():
            if traced.error is not None:
                raise traced.error  # what is damaged is not cleaned
        needed, locations = trace.needed(), trace.locations
        for file in self._objects.files(""):
            reason = self._reason(file, needed, locations, needs.cutoffs)
            if reason is not None:
                removals.append(_removal(file, reason))
        for known in needs.intents:
            if self._is_dead(known, needs.cutoffs.files + self._policy.grace):
                removals.append(Removal(known.key, 0, "dead intent"))
        return removals

    def _reason(
        self, file: StoredFile, needed: TableFiles, locations: frozenset[str], cutoffs: Cutoffs
    ) -> Reason | None:
        """Why a file may go, None if it stays."""
        if is_passing(file.key):
            # Not every write has an intent; one that lasts is given as long as a dead intent is.
            patience = max(self._policy.grace, self._policy.older_than)
            passed = file.modified < cutoffs.files + self._policy.grace - patience
            return "unfinished write" if passed else None
        if file.modified >= cutoffs.files:
            return None
        if "/.tmp-" in f"/{file.key}":
            return "unfinished write"
        location = location_of(file.key)
        if location is None:
            return None
        if location not in locations:
            return "dropped type"
        spent = is_candidate(file.key, location) and not holds(needed, file.key)
        return "unreferenced" if spent else None

    # Announcing

    def _announce(self, needs: _Needs, now: int) -> None:
        """Until every chain carries the cutoff: one that was created meanwhile may not yet."""
        waiting = dict(needs.chains)
        while waiting:
            for chain in waiting.values():
                self._announce_on(chain, needs, now)
            waiting = {
                branch: chain
                for branch, chain in survey_chains(self._session, self._ledger).items()
                if not chain.end.deleted and chain.end.gc_cutoff < needs.cutoffs.binding
            }

    def _announce_on(self, chain: Chain, needs: _Needs, now: int) -> None:
        session, ledger = self._session, self._ledger
        while True:
            end = chain.end
            floor = resolve_floor(chain.versions, chain.put_at(), self._policy, needs.cutoffs)
            if end.deleted and floor == end.floor:
                return  # nobody binds to it, and there is nothing to say
            # Not what was kept before: a tag that is gone needs nothing any more. Nor what another
            # cleanup has taken since this one looked.
            kept = {
                number
                for branch, number in needs.wanted
                if branch == end.branch and _is_there(end, number)
            }
            version = msgspec.structs.replace(
                end,
                token=session.runtime.ulid(),
                version=end.version + 1,
                floor=floor,
                kept=tuple(sorted(number for number in kept if number < floor)),
                gc_cutoff=max(end.gc_cutoff, needs.cutoffs.binding),
            )
            if end.tag:  # it goes on standing for the same commit
                version = msgspec.structs.replace(version, first=version.version)
            else:
                version = msgspec.structs.replace(
                    version,
                    commit=commit_after(
                        session, end, kind=KIND, operation=session.runtime.ulid(), actor=ACTOR
                    ),
                    same=(end.commit.id, *end.same)[:RECENT_SAME],
                    maintained=end.maintained + 1,
                )
            if put_version(session, version, ledger) is None:
                return
            chain = survey_chain(session, end.branch, ledger)

    # Deleting

    def _archive(self, needs: _Needs) -> None:
        """What happened stays known: versions go to the archive before they leave the chain."""
        for branch, chain in needs.chains.items():
            if not chain.left:
                continue
            archive = Archive(branch)
            archived = {
                number
                for one in archive.segments(self._objects)
                for number in range(one.first, one.last + 1)
            }
            numbers = [_number(file) for file in chain.left if _number(file) not in archived]
            for run in _runs(numbers):
                versions = self._session.versions(self._ledger)
                archive.write(self._objects, [versions.read(branch, number) for number in run])

    def _delete_versions(self, removals: Iterable[Removal]) -> None:
        """On a disk the head is found from the first version on as long as that is there, so on
        each chain it goes before all others."""
        chains: dict[str, list[str]] = {}
        for one in removals:
            if one.reason == "old version":
                chains.setdefault(one.key.rsplit("/", 1)[0], []).append(one.key)
        for keys in chains.values():
            # Names sort the newest first.
            oldest, *others = sorted(keys, reverse=True)
            self._objects.delete(oldest)
            self._delete(others)

    def _delete_files(self, removals: Iterable[Removal]) -> None:
        """Version files of tables last: as long as they are there, what is left can be told."""
        files = list(removals)
        late = [one.key for one in files if "/_versions/" in one.key]
        self._delete([one.key for one in files if "/_versions/" not in one.key])
        reach("cleanup swept")
        self._delete(late)

    def _delete(self, keys: list[str]) -> None:
        for start in range(0, len(keys), _BATCH):
            batch = keys[start : start + _BATCH]
            with ThreadPoolExecutor(PARALLEL) as pool:
                list(pool.map(self._session.objects.delete, batch))
            self._ledger.record("delete", "cleanup", count=len(batch))


def read_store_time(session: Session, ledger: Ledger) -> int:
    """What the store says is now: its clock stamps the files, so it decides how old they are."""
    key = f"__wait/clock-{session.runtime.ulid()}"
    objects = session.metered(ledger)
    objects.put(key, b"")
    try:
        (file,) = [one for one in objects.files("__wait/") if one.key == key]
        return file.modified
    finally:
        objects.delete(key)


def _is_there(end: GraphVersion, number: int) -> bool:
    """Whether no cleanup has passed a version of this chain."""
    return number >= end.floor or number in end.kept


def _removal(file: StoredFile, reason: Reason) -> Removal:
    return Removal(file.key, file.size, reason)


def _number(file: StoredFile) -> int:
    return version_number(file.key)


def _runs(numbers: list[int]) -> list[list[int]]:
    """Numbers that follow each other, together."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] + 1 == number:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _changed(needs: _Needs) -> dict[str, int]:
    return {
        branch: floor
        for branch, floor in needs.floors.items()
        if floor > needs.chains[branch].end.floor
    }


def _spared(needs: _Needs) -> list[str]:
    told = [
        f"The intent {known.id} cannot be read ({known.problem}): nothing younger was taken."
        for known in needs.intents
        if known.intent is None
    ]
    told += [
        f"The {known.intent.kind} {known.id} is under way: nothing younger was taken."
        for known in needs.intents
        if known.intent is not None and known.intent.kind != PIN
    ]
    return told
