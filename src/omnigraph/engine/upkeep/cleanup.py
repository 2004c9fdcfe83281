"""Owns cleanup: a tracing collector that never deletes what somebody reads or is about to publish.

The order makes it safe (hazard 7). First a commit on every branch says up to where the branch will
be cleaned. Then cleanup looks at what is needed. Only then does it delete. A writer binds to the
head of its branch, so it meets that commit and stages again what may be gone. An interrupted run
leaves nothing half done: the next one finds the same files again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from omnigraph.engine.session import Session
from omnigraph.engine.upkeep.announcement import Announcement
from omnigraph.engine.upkeep.checksums import keep_checksums
from omnigraph.engine.upkeep.cleanup_report import Cleaned, Reason, Removal
from omnigraph.engine.upkeep.object_deletion import delete_objects, delete_versions
from omnigraph.engine.upkeep.reachable_files import (
    Trace,
    holds,
    list_files,
    read_versions,
    require_version,
)
from omnigraph.engine.upkeep.store_time import read_store_time
from omnigraph.engine.upkeep.survey import FIRST, SurveyedChain, needed_versions, survey_chains
from omnigraph.errors import Corrupt, InvalidArgument
from omnigraph.model.version import GraphVersion
from omnigraph.plan.retention import Cutoffs, Policy, below_floor, resolve_cutoffs, resolve_floor
from omnigraph.runtime import reach
from omnigraph.store.files import TableFiles, is_candidate, location_of
from omnigraph.store.history import lost_version
from omnigraph.store.intents import LOCAL, PIN, KnownIntent, list_intents
from omnigraph.store.job_files import job_of
from omnigraph.store.jobs import is_passing
from omnigraph.store.objects import Absent, StoredFile
from omnigraph.store.ownership import is_unfinished
from omnigraph.store.versions import version_number
from omnigraph.telemetry import Ledger


@dataclass(frozen=True)
class _Needs:
    """What was found: chains, versions that are needed below their floors, and intents."""

    chains: dict[str, SurveyedChain]
    floors: dict[str, int]
    wanted: set[tuple[str, int]]
    kept: dict[str, tuple[int, ...]]
    intents: list[KnownIntent]
    cutoffs: Cutoffs


def cleanup(
    session: Session, policy: Policy, *, dry_run: bool, writable: bool, ledger: Ledger
) -> Cleaned:
    """Deletes versions that are neither among the last ones nor young, and every file that no
    version needs. If there is nothing to delete, it publishes nothing. A caller that may not write
    cannot ask the store for its time and uses its own clock."""
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
        self._listed: tuple[str, ...] = ()

    def run(self, now: int, *, dry_run: bool) -> Cleaned:
        session, report = self._session, Cleaned(dry_run=dry_run, io=self._ledger)
        needs, planned = self._decide(lambda: self._look(now))
        if dry_run or not planned:
            report.removed = planned
            # If there is nothing to delete, nothing is announced.
            report.floors = _changed(needs) if planned else {}
            report.spared = _spared(needs)
            return report
        told = Announcement(session, self._policy, needs.cutoffs, needs.wanted, self._ledger)
        told.publish(needs.chains)
        reach("cleanup announced")
        cutoffs, before = needs.cutoffs, needs.chains
        needs, removals = self._decide(lambda: self._settled(now, cutoffs, before))
        old = [one.key for one in removals if one.reason == "old version"]
        delete_versions(session, old, self._ledger)
        reach("cleanup pruned")
        spent = [one for one in removals if one.reason != "old version"]
        keep_checksums(session, self._listed, [one.key for one in spent], self._ledger)
        self._delete_files(spent)
        report.removed = removals
        report.floors = _changed(needs) | {
            branch: chain.end.floor for branch, chain in needs.chains.items() if chain.left
        }
        report.spared = _spared(needs)
        return report

    # Looking

    def _decide(self, look: Callable[[], _Needs]) -> tuple[_Needs, list[Removal]]:
        """What may be deleted. If another cleanup comes in between, the versions that it deleted
        are missing from this view, so everything is looked at again. Floors only ever rise."""
        while True:
            needs = look()
            reach("cleanup looked")
            try:
                return needs, self._spent(needs)
            except Corrupt:
                if not self._overtaken(needs):
                    raise

    def _overtaken(self, needs: _Needs) -> bool:
        session = self._session
        for branch, chain in needs.chains.items():
            session.forget_head(branch)
            head = session.head(branch, self._ledger)
            if (head.floor, head.kept) != (chain.end.floor, chain.end.kept):
                return True
        return False

    def _settled(self, now: int, cutoffs: Cutoffs, before: dict[str, SurveyedChain]) -> _Needs:
        needs = self._look(now, cutoffs=cutoffs, before=before)
        self._archive(needs)
        reach("cleanup archived")
        return needs

    def _look(
        self,
        now: int,
        *,
        cutoffs: Cutoffs | None = None,
        before: dict[str, SurveyedChain] | None = None,
    ) -> _Needs:
        """With the chains as they were `before` the announcement, the floors are those that the
        branches carry, whichever cleanup announced them."""
        settled = before is not None
        session, ledger = self._session, self._ledger
        chains = survey_chains(session, ledger)
        intents = list_intents(self._objects)
        if cutoffs is None:
            cutoffs = resolve_cutoffs(now, self._policy, oldest_intent=self._oldest(intents, now))
        floors = {
            branch: chain.end.floor
            if settled
            else resolve_floor(chain.versions, chain.put_at, self._policy, cutoffs)
            for branch, chain in chains.items()
        }
        retained = [
            version
            for branch, chain in chains.items()
            for version in chain.versions
            if version.version >= floors[branch] and not (version.deleted or chain.end.deleted)
        ]
        ends_now = [chain.end for chain in chains.values()]
        wanted = needed_versions(session, ends_now, ledger, retained)
        # A version counts if it was there before this cleanup announced its deletion: its holder
        # may have looked just before.
        ends = {branch: chain.end for branch, chain in (chains | (before or {})).items()}
        for known in intents:
            if known.intent is not None and not self._is_dead(known, now):
                wanted |= {
                    (pin.branch, pin.version)
                    for pin in known.intent.pins
                    if pin.branch in ends and ends[pin.branch].retains(pin.version)
                }
        if settled:
            for branch, chain in chains.items():
                wanted |= {(branch, number) for number in chain.end.kept}
        kept = below_floor(floors, wanted)
        return _Needs(chains, floors, wanted, kept, intents, cutoffs)

    def _oldest(self, intents: list[KnownIntent], now: int) -> int | None:
        """When the oldest operation began that may still go on or be resumed."""
        began = [
            known.modified if known.intent is None else min(known.intent.created_at, known.modified)
            for known in intents
            if not self._is_dead(known, now)
        ]
        return min(began, default=None)

    def _is_dead(self, known: KnownIntent, now: int) -> bool:
        """An intent that cannot be read is left alone, with everything that it may need."""
        if known.intent is None:
            return False
        patience, intent = self._policy.grace, known.intent
        alone = intent.details.get("engine") == LOCAL and intent.plan is None
        if intent.kind != PIN and not alone:  # somebody may want to resume it
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
                    raise lost_version(branch, number) from None

    def _spent(self, needs: _Needs) -> list[Removal]:
        """Every file that may be deleted: versions first, and the oldest first."""
        removals: list[Removal] = []
        for branch, chain in needs.chains.items():
            removals += [_removal(file, "old version") for file in chain.left]
            removals += [
                _removal(chain.files[version.version], "old version")
                for version in chain.versions
                if max(chain.end.bottom, FIRST + 1) <= version.version < needs.floors[branch]
            ]
        trace = Trace(self._session, self._ledger)
        trace.follow(self._roots(needs))
        for traced in trace.tables.values():
            if traced.error is not None:
                raise traced.error  # a damaged graph is not cleaned
        needed, locations = trace.needed(), trace.locations
        files = list_files(self._session, self._ledger)
        self._listed = tuple(files)
        for file in files.values():
            reason = self._reason(file, needed, locations, needs.cutoffs)
            if reason is not None:
                removals.append(_removal(file, reason))
        now = needs.cutoffs.files + self._policy.grace
        removals += [_removal(file, "old job") for file in self._old_jobs(files.values(), now)]
        for known in needs.intents:
            if self._is_dead(known, now):
                removals.append(Removal(known.key, 0, "dead intent"))
        return removals

    def _old_jobs(self, files: Iterable[StoredFile], now: int) -> Iterator[StoredFile]:
        """All objects of jobs of which nothing was heard for as long as versions are kept."""
        patience = max(self._policy.grace, self._policy.older_than)
        of_job: dict[str, list[StoredFile]] = {}
        for file in files:
            if (job := job_of(file.key)) is not None:
                of_job.setdefault(job, []).append(file)
        for held in of_job.values():
            if max(file.modified for file in held) < now - patience:
                yield from held

    def _reason(
        self, file: StoredFile, needed: TableFiles, locations: frozenset[str], cutoffs: Cutoffs
    ) -> Reason | None:
        """Why a file may be deleted, or None if it stays."""
        if is_passing(file.key):
            # Not every write has an intent. A long one is spared for as long as a dead intent is.
            patience = max(self._policy.grace, self._policy.older_than)
            passed = file.modified < cutoffs.files + self._policy.grace - patience
            return "unfinished write" if passed else None
        if file.modified >= cutoffs.files:
            return None
        if is_unfinished(file.key):
            return "unfinished write"
        location = location_of(file.key)
        if location is None:
            return None
        if location not in locations:
            return "dropped type"
        spent = is_candidate(file.key, location) and not holds(needed, file.key)
        return "unreferenced" if spent else None

    # Deleting

    def _archive(self, needs: _Needs) -> None:
        """Keeps the history: versions are archived before they leave the chain."""
        for branch, chain in needs.chains.items():
            first = [chain.files[FIRST]] if FIRST in chain.files and chain.end.bottom > 1 else []
            if not (chain.left or first):
                continue
            archive, objects = self._session.archive(branch), self._objects
            numbers = [_number(file) for file in (*first, *chain.left)]
            archived = set(archive.covers(objects, numbers))
            for run in _runs([number for number in numbers if number not in archived]):
                found = read_versions(self._session, branch, run, self._ledger)
                archive.write(objects, list(map(require_version, found)), chain.put_at)
            archive.merge_small(objects)

    def _delete_files(self, removals: Iterable[Removal]) -> None:
        """Deletes version files of tables last: as long as they exist, the remaining files can be
        identified."""
        files = list(removals)
        late = [one.key for one in files if "/_versions/" in one.key]
        early = [one.key for one in files if "/_versions/" not in one.key]
        delete_objects(self._session, early, self._ledger)
        reach("cleanup swept")
        delete_objects(self._session, late, self._ledger)


def _removal(file: StoredFile, reason: Reason) -> Removal:
    return Removal(file.key, file.size, reason)


def _number(file: StoredFile) -> int:
    return version_number(file.key)


def _runs(numbers: list[int]) -> list[list[int]]:
    """Groups consecutive numbers."""
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
