"""Owns the way back: from a ref to the graph version that it names, and the log of a branch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import assert_never

import msgspec

from omnigraph.engine.session import Session
from omnigraph.errors import BranchNotFound, Corrupt, Reclaimed, RefNotFound
from omnigraph.model.refs import BranchRef, CommitRef, TimeRef, parse_ref
from omnigraph.model.version import UNSEEN, GraphVersion, chain_key
from omnigraph.runtime import encode_ulid
from omnigraph.store.objects import Absent
from omnigraph.telemetry import Ledger

_PARALLEL = 8
_LAST = 2**80 - 1
"""The last id of a millisecond."""


class History:
    def __init__(self, session: Session, ledger: Ledger) -> None:
        self._session = session
        self._ledger = ledger

    def resolve(self, text: str) -> GraphVersion:
        ref = parse_ref(text)
        match ref:
            case BranchRef(branch=branch, back=back):
                return self._step_back(self._head(branch), back, text)
            case TimeRef(branch=branch, time=time):
                return self._at_time(self._head(branch), time, text)
            case CommitRef():
                return self._find_commit(ref, text)
            case _:
                assert_never(ref)

    def walk(self, start: GraphVersion) -> Iterator[GraphVersion]:
        """Versions along the first parents, newest first, one for each commit."""
        version: GraphVersion | None = start
        while version is not None:
            yield version
            version = self._parent(version)

    def _head(self, name: str) -> GraphVersion:
        return self._session.named_version(name, self._ledger)

    def _parent(self, version: GraphVersion) -> GraphVersion | None:
        if version.version > version.first:
            return self._read(version.branch, version.version - 1, version.floor)
        fork = self._fork(version)
        # The first version of a branch carries the commit that it was forked from.
        return None if fork is None else self._parent(fork)

    def _fork(self, version: GraphVersion) -> GraphVersion | None:
        if version.forked_from is None:
            return None
        return self._read(version.forked_from.branch, version.forked_from.version, 1)

    def _step_back(self, head: GraphVersion, back: int, text: str) -> GraphVersion:
        """Steps are commits that a reader can see the work of: maintenance makes none. Numbers
        of a branch are contiguous, so a step costs one read however long, and a few more where
        maintenance ran."""
        while back:
            steps = head.version - head.maintained - head.first
            if back <= steps:
                return self._visible(head, back)
            back -= steps
            first = self._read(head.branch, head.first, head.floor)
            fork = self._fork(first)
            if fork is None:
                raise RefNotFound(f"{text!r} goes back further than the history does.", help="")
            head = fork
        return head

    def _visible(self, head: GraphVersion, back: int) -> GraphVersion:
        """The commit that so many visible ones follow on its stretch of the branch."""
        wanted = head.version - head.maintained - back
        version = self._read(head.branch, head.version - back, head.floor)
        while (beyond := version.version - version.maintained - wanted) > 0:
            version = self._read(head.branch, version.version - beyond, head.floor)
        while version.commit.kind in UNSEEN and version.version > max(head.first, head.floor):
            version = self._read(head.branch, version.version - 1, head.floor)
        return version

    def _at_time(self, head: GraphVersion, time: int, text: str) -> GraphVersion:
        while True:
            near = encode_ulid(time // 1000, _LAST)
            found = self._bisect(head, near, lambda version: version.commit.created_at <= time)
            found = found or self._stands_for(head, time)
            if found is not None:
                return found
            first = self._read(head.branch, head.first, head.floor)
            earlier = self._stretch_before(first) or self._fork(first)
            if earlier is None:
                raise RefNotFound(f"{text!r} is before the first commit.", help="")
            head = earlier

    def _find_commit(self, ref: CommitRef, text: str) -> GraphVersion:
        """On the chains themselves first, then in what they took in: a commit that a log shows
        may have been made on a branch that is gone."""
        starts = [self._head(ref.branch)] if ref.branch is not None else self._roots()
        for start in starts:
            if (found := self._find_on_chain(start, ref.commit)) is not None:
                return found
        known = {chain_key(start) for start in starts}
        for start in starts:
            for chain, number in reversed(start.ancestry.items()):
                if chain in known:
                    continue
                known.add(chain)
                taken_in = self._taken_in(chain, number)
                found = taken_in and self._find_on_chain(taken_in, ref.commit)
                if found is not None:
                    return found
        where = f" on branch {ref.branch!r}" if ref.branch else ""
        raise RefNotFound(f"There is no commit {ref.commit}{where}.", help="", ref=text)

    def _find_on_chain(self, end: GraphVersion, commit: str) -> GraphVersion | None:
        """The version of this incarnation, up to the one given, with which a commit came."""
        stretch: GraphVersion | None = end
        while stretch is not None:
            found = self._bisect(stretch, commit, lambda version: version.commit.id <= commit)
            if found is not None:
                return found if found.commit.id == commit and not found.deleted else None
            if (found := self._archived(stretch, commit)) is not None:
                return found
            if stretch.first < stretch.floor:
                return None
            first = self._read(stretch.branch, stretch.first, stretch.floor)
            stretch = self._stretch_before(first)
        return None

    def _stretch_before(self, first: GraphVersion) -> GraphVersion | None:
        """In format 1 a fast-forward began a stretch of its own on the chain: what the branch was
        before."""
        if first.version == 1 or first.version <= first.floor:
            return None
        before = self._read(first.branch, first.version - 1, first.floor)
        if before.deleted or before.incarnation != first.incarnation:
            return None
        return msgspec.structs.replace(
            before, floor=first.floor, folded=first.folded, kept=first.kept
        )

    def _taken_in(self, chain: str, number: int) -> GraphVersion | None:
        """The newest version of a chain that another has in its past, with what the end of the
        chain says about where its versions are. A copy of some branches has not all of them."""
        branch = chain.split(":", 1)[1]
        try:
            end = self._session.head(branch, self._ledger)
            version = self._session.read_record(branch, number, self._ledger)
        except (Absent, BranchNotFound):
            return None
        return msgspec.structs.replace(version, floor=end.floor, folded=end.folded, kept=end.kept)

    def _archived(self, head: GraphVersion, commit: str) -> GraphVersion | None:
        """A commit that is older than the floor of its branch: there if something needs it."""
        if head.floor <= head.first:
            return None
        session = self._session
        found = session.archive(head.branch).find_commit(session.metered(self._ledger), commit)
        if found is not None and not head.retains(found.version):
            if (oldest := self._oldest(head)).holds(commit):
                return oldest  # what maintenance made of it, which reads the same
            raise Reclaimed(f"The commit {commit} of {head.branch!r} was reclaimed.")
        return found

    def _oldest(self, head: GraphVersion) -> GraphVersion:
        """The oldest version of a branch that can be read along it."""
        return self._read(head.branch, max(head.first, head.floor), head.floor)

    def _stands_for(self, head: GraphVersion, time: int) -> GraphVersion | None:
        """The oldest version, if at this time it was there as it was before maintenance."""
        if head.floor <= head.first or not (oldest := self._oldest(head)).same:
            return None
        before = self._session.read_record(head.branch, head.floor - 1, self._ledger)
        return oldest if before.commit.created_at <= time else None

    def heads(self) -> list[GraphVersion]:
        """Heads of all living branches, main first."""
        return [head for head in self.ends() if not head.deleted]

    def _roots(self) -> list[GraphVersion]:
        """Where commits may be: behind heads first, then what tags stand for, then what was
        deleted and not yet reclaimed."""
        ends = self.ends()
        tagged = [self._head(end.branch) for end in ends if end.tag]
        living = [end for end in ends if not end.deleted]
        return living + tagged + [end for end in ends if end.deleted and not end.tag]

    def ends(self) -> list[GraphVersion]:
        """The ends of all chains, main first: living branches, deleted ones and tags."""
        names = self._session.versions(self._ledger).list_branches()
        names.sort(key=lambda name: (name != "main", name))
        own = [Ledger() for _ in names]
        with ThreadPoolExecutor(_PARALLEL) as pool:
            ends = list(pool.map(self._session.head, names, own))
        self._ledger.join(own)
        return ends

    def _bisect(
        self, head: GraphVersion, near: str, early: Callable[[GraphVersion], bool]
    ) -> GraphVersion | None:
        """The newest version of this incarnation that is early enough. Times and commit ids
        grow along a branch, so it takes a logarithm of reads on the chain; of what is in the
        archive, the names of its segments tell where ids are that are `near`."""
        if early(head):
            return head
        low, high = max(head.first, head.floor), head.version
        chained = max(low, head.bottom)
        best = self._read(head.branch, chained, head.floor)
        if early(best):
            low = chained
        elif low < chained:
            low, high = self._narrowed(head, low, chained, near, early)
        if low != best.version:
            best = self._read(head.branch, low, head.floor)
        if not early(best):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            version = self._read(head.branch, middle, head.floor)
            if early(version):
                low, best = middle, version
            else:
                high = middle
        return best

    def _narrowed(
        self,
        head: GraphVersion,
        low: int,
        high: int,
        near: str,
        early: Callable[[GraphVersion], bool],
    ) -> tuple[int, int]:
        """Of a stretch in the archive, the part from the beginning of the last segment that is
        early enough. The name of a segment may promise too much if it reaches back over the
        beginning of the branch, so it is looked at; those that promise nothing are not."""
        session = self._session
        known = session.archive(head.branch).segments(session.metered(self._ledger), fresh=True)
        for segment in reversed([one for one in known if low <= one.last and one.first < high]):
            first = max(low, segment.first)
            if segment.low <= near and early(self._read(head.branch, first, head.floor)):
                return first, high
            high = min(high, first)
        return low, max(high, low + 1)

    def _read(self, branch: str, number: int, floor: int) -> GraphVersion:
        try:
            version = self._session.read_version(branch, number, self._ledger)
            if number >= floor or number in self._session.head(branch, self._ledger).kept:
                return version
            raise Absent(f"version {number} of {branch}")  # known from before cleanup passed it
        except Absent:
            if number < max(floor, self._session.head(branch, self._ledger).floor):
                raise Reclaimed(f"Version {number} of {branch!r} was reclaimed.") from None
            raise Corrupt(f"Version {number} of the branch {branch!r} is missing.") from None
