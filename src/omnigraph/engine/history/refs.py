"""Owns resolving refs: it finds the graph version that a ref names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import assert_never

import msgspec

from omnigraph.engine.history.ancestry import contains
from omnigraph.engine.permissions import hidden_branch
from omnigraph.engine.session import Session
from omnigraph.errors import BranchNotFound, Reclaimed, RefNotFound
from omnigraph.model.permission import BranchResource
from omnigraph.model.refs import BranchRef, CommitRef, TimeRef, parse_ref
from omnigraph.model.version import UNSEEN, GraphVersion, chain_key
from omnigraph.runtime import encode_ulid
from omnigraph.store.history import lost_version
from omnigraph.store.objects import Absent
from omnigraph.telemetry import Ledger

_PARALLEL = 8
_LAST = 2**80 - 1
"""The highest id of a millisecond."""


class History:
    def __init__(self, session: Session, ledger: Ledger) -> None:
        self._session = session
        self._ledger = ledger
        self.asked: BranchResource | None = None
        """The branch by which the caller reached what was resolved."""

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
        """The versions along the first parents, newest first, one for each commit."""
        version: GraphVersion | None = start
        while version is not None:
            yield version
            version = self._parent(version)

    def _head(self, name: str) -> GraphVersion:
        """What is in the past of a branch is for everybody who may read the branch."""
        head = self._session.named_version(name, self._ledger)
        permissions = self._session.permissions
        branch = permissions.branch(head)
        if permissions.restricted and not permissions.shows_branch(branch):
            raise hidden_branch(name)
        self.asked = branch
        return head

    def _parent(self, version: GraphVersion) -> GraphVersion | None:
        if version.version > version.first:
            return self._read(version.branch, version.version - 1, version.floor)
        fork = self._fork(version)
        # The first version of a branch carries the commit that it was forked from.
        return None if fork is None else self._parent(fork)

    def _fork(self, version: GraphVersion) -> GraphVersion | None:
        """The version that a branch was made from. If that was the beginning of another branch and
        cleanup has deleted it, this is the version that the other branch was made from: the same
        commit."""
        fork = version.forked_from
        if fork is None:
            return None
        try:
            return self._read(fork.branch, fork.version, 1)
        except Reclaimed:
            beginning = self._record(fork.branch, fork.version)
            if not beginning.begins_at_fork:
                raise
            return self._fork(beginning)

    def _step_back(self, head: GraphVersion, back: int, text: str) -> GraphVersion:
        """A step is a commit whose work a reader can see, so maintenance does not count. The
        numbers of a branch have no gaps, so a step of any length costs one read, and a few more
        where maintenance ran."""
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
        """The commit with this many visible commits after it on its stretch of the branch."""
        wanted = head.version - head.maintained - back
        version = self._read(head.branch, head.version - back, head.floor)
        while (beyond := version.version - version.maintained - wanted) > 0:
            version = self._read(head.branch, version.version - beyond, head.floor)
        while version.commit.kind in UNSEEN and version.version > max(head.first, head.floor):
            version = self._read(head.branch, version.version - 1, head.floor)
        return version

    def _at_time(self, head: GraphVersion, time: int, text: str) -> GraphVersion:
        """The version of the branch at a time. Before the branch began, that is a version of its
        origin."""
        while True:
            near = encode_ulid(time // 1000, _LAST)
            found = self._bisect(head, near, lambda version: version.commit.created_at <= time)
            if found is None:
                found = self._bisect_records(head, lambda one: one.commit.created_at <= time)
            if found is not None:
                return self._retained(found, head)
            first = self._record(head.branch, head.first)
            earlier = self._stretch_before(first, head)
            if earlier is None and (fork := first.forked_from) is not None:
                earlier = self._taken_in(fork.branch, fork.version)
            if earlier is None:
                raise RefNotFound(f"{text!r} is before the first commit.", help="")
            head = earlier

    def _find_commit(self, ref: CommitRef, text: str) -> GraphVersion:
        """Looks on the chains themselves first, then on the chains in their past. A commit that the
        log shows may have been made on a branch that is gone. If cleanup has deleted it there,
        another branch may still have its contents."""
        starts = [self._head(ref.branch)] if ref.branch is not None else self._roots()
        reclaimed: Reclaimed | None = None
        for chain in self._chains(starts):
            try:
                if (found := self._find_on_chain(chain, ref.commit)) is not None:
                    if ref.branch is None:
                        self.asked = self._reached_by(found, starts)
                    return found
            except Reclaimed as error:
                reclaimed = error
        if reclaimed is not None:
            raise reclaimed
        if ref.branch is not None:  # perhaps one that the branch need not know any more
            try:
                self._find_commit(CommitRef(ref.commit), text)
            except Reclaimed:
                raise
            except RefNotFound:
                pass
        where = f" on branch {ref.branch!r}" if ref.branch else ""
        raise RefNotFound(f"There is no commit {ref.commit}{where}.", help="", ref=text)

    def _reached_by(self, version: GraphVersion, starts: list[GraphVersion]) -> BranchResource:
        holders = [start for start in starts if contains(start, version)]
        return self._session.permissions.branch((holders or [version])[0])

    def _chains(self, starts: list[GraphVersion]) -> Iterator[GraphVersion]:
        """The newest version of every chain in the past of these versions, these themselves
        first."""
        yield from starts
        known = {chain_key(start) for start in starts}
        for start in starts:
            for chain, number in reversed(start.ancestry.items()):
                if chain not in known:
                    known.add(chain)
                    taken_in = self._taken_in(chain.split(":", 1)[1], number)
                    if taken_in is not None:
                        yield taken_in

    def _find_on_chain(self, end: GraphVersion, commit: str) -> GraphVersion | None:
        """The version that brought a commit to this incarnation, up to the given version."""
        stretch: GraphVersion | None = end
        while stretch is not None:
            found = self._bisect(stretch, commit, lambda version: version.commit.id <= commit)
            if found is None and stretch.first < stretch.floor:
                found = self._bisect_records(stretch, lambda version: version.commit.id <= commit)
            if found is not None:
                if found.commit.id != commit or (found.deleted and not found.tag):
                    return None
                return self._retained(found, stretch)
            stretch = self._stretch_before(self._record(stretch.branch, stretch.first), stretch)
        return None

    def _stretch_before(self, first: GraphVersion, end: GraphVersion) -> GraphVersion | None:
        """In format 1 a fast-forward began a new stretch on the chain. This is the branch before
        it."""
        if first.version == 1:
            return None
        before = self._record(first.branch, first.version - 1)
        if before.deleted or before.incarnation != first.incarnation:
            return None
        return _placed(before, end)

    def _taken_in(self, branch: str, number: int) -> GraphVersion | None:
        """The newest version of a chain that another version has in its past. A copy of some
        branches may lack it."""
        try:
            end = self._session.head(branch, self._ledger)
            return _placed(self._session.read_record(branch, number, self._ledger), end)
        except (Absent, BranchNotFound):
            return None

    def _record(self, branch: str, number: int) -> GraphVersion:
        """The record of a version, whether or not the version can still be read."""
        try:
            return self._session.read_record(branch, number, self._ledger)
        except Absent:
            raise lost_version(branch, number) from None

    def _bisect_records(
        self, end: GraphVersion, early: Callable[[GraphVersion], bool]
    ) -> GraphVersion | None:
        """The newest version of this incarnation below the floor that is early enough."""
        low, high = end.first, end.floor
        if low >= high or not early(best := self._record(end.branch, low)):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            version = self._record(end.branch, middle)
            if early(version):
                low, best = middle, version
            else:
                high = middle
        return best

    def _retained(self, version: GraphVersion, end: GraphVersion) -> GraphVersion:
        """A version that cleanup kept, or a version that maintenance made of it, which reads the
        same."""
        if end.retains(version.version):
            return version
        if end.floor <= end.version and (oldest := self._oldest(end)).shows(version.version):
            return oldest
        raise Reclaimed(f"The commit {version.commit.id} of {version.branch!r} was reclaimed.")

    def _oldest(self, head: GraphVersion) -> GraphVersion:
        """The oldest readable version of a branch."""
        return self._read(head.branch, max(head.first, head.floor), head.floor)

    def heads(self) -> list[GraphVersion]:
        """The heads of all existing branches, main first."""
        return [head for head in self.ends() if not head.deleted]

    def _roots(self) -> list[GraphVersion]:
        """The versions behind which a commit may be: heads first, then tags, then deleted branches
        that cleanup has not removed."""
        ends = self.ends()
        tagged = [self._session.named_version(e.branch, self._ledger) for e in ends if e.tag]
        living = [end for end in ends if not end.deleted]
        return living + tagged + [end for end in ends if end.deleted and not end.tag]

    def ends(self) -> list[GraphVersion]:
        """The ends of all chains, main first: existing branches, deleted branches and tags."""

        from concurrent.futures import ThreadPoolExecutor

        names = self._session.versions(self._ledger).list_branches()
        names.sort(key=lambda name: (name != "main", name))
        own = [Ledger() for _ in names]
        with ThreadPoolExecutor(_PARALLEL) as pool:
            ends = list(pool.map(self._session.head, names, own))
        self._ledger.join(own)
        if self._session.permissions.restricted:
            return [end for end in ends if self._shows(end)]
        return ends

    def _shows(self, end: GraphVersion) -> bool:
        """A tag is seen by who sees the branch of what it stands for."""
        permissions = self._session.permissions
        branch = permissions.branch(end)
        if end.tag and end.forked_from is not None:
            name = end.forked_from.branch
            try:
                branch = permissions.branch(self._session.head(name, self._ledger))
            except BranchNotFound:
                branch = permissions.new_branch(name)
        return permissions.shows_branch(branch)

    def _bisect(
        self, head: GraphVersion, near: str, early: Callable[[GraphVersion], bool]
    ) -> GraphVersion | None:
        """The newest version of this incarnation that is early enough. Times and commit ids grow
        along a branch, so this takes a logarithmic number of reads on the chain. In the archive,
        the names of its segments say where ids `near` the wanted one are."""
        if early(head):
            return head
        low, high = max(head.first, head.floor), head.version
        if low >= high:
            return None
        chained = max(low, min(head.bottom, high))
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
        """The part of an archived stretch that begins with the last segment that is early enough.
        If the segment reaches back over the beginning of the branch, its name is not enough and it
        is read; other segments are not."""
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
            raise Absent(f"version {number} of {branch}")  # known from before cleanup deleted it
        except Absent:
            if number < max(floor, self._session.head(branch, self._ledger).floor):
                raise Reclaimed(f"Version {number} of {branch!r} was reclaimed.") from None
            raise lost_version(branch, number) from None


def _placed(version: GraphVersion, end: GraphVersion) -> GraphVersion:
    """A version, with what the end of its chain says about which versions can be read and where
    they are."""
    return msgspec.structs.replace(version, floor=end.floor, folded=end.folded, kept=end.kept)
