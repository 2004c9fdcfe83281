"""Owns the groups: threads of one process that write to the same branch at the same time. One of
them makes the commits of all who wait ready together, and puts them in the order in which they
came.

Alone, nothing is different. Whatever does not fit goes alone, and finds out there what is the
matter with it. The leader runs no statement of anybody, its own included.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from omnigraph.engine.after_commit import after_commit
from omnigraph.engine.lookup import Lookups
from omnigraph.engine.session import Session
from omnigraph.engine.write.chain import put_version
from omnigraph.engine.write.published import Published
from omnigraph.engine.write.recent import RecentCommits, changed_rows
from omnigraph.engine.write.together import Proposal, Ready, line_up, make_ready
from omnigraph.engine.write.turns import hand_on, handed_on, take_turn
from omnigraph.errors import OmnigraphError, OutcomeUnknown
from omnigraph.model.version import GraphVersion
from omnigraph.runtime import reach
from omnigraph.store.durability import paths_of

MOST = 32
"""How many commits are made ready together."""


class _Fate(Enum):
    WAITING = "waiting"
    LEADS = "leads"
    ALONE = "alone"
    LANDED = "landed"
    UNKNOWN = "unknown"


@dataclass(eq=False)
class _Member:
    proposal: Proposal
    fate: _Fate = _Fate.WAITING
    published: Published | None = None
    error: OmnigraphError | None = None
    told: threading.Event = field(default_factory=threading.Event)

    def tell(self, fate: _Fate) -> None:
        self.fate = fate
        self.told.set()


class Groups:
    """The groups of one open graph, by branch."""

    @classmethod
    def shared_by(cls, session: Session) -> Groups:
        """The one of all handles of this session."""
        return session.shared(_groups)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, deque[_Member]] = {}
        self._at_work: dict[str, int] = {}

    def publish(
        self, proposal: Proposal, alone: Callable[[], Published], *, patience: float
    ) -> Published:
        """One commit, together with those of other threads if they come while one is at work, else
        `alone`."""
        branch = proposal.work.plan.branch
        if self._at_work.get(branch) == threading.get_ident():
            return alone()  # a write within a write, for which nobody must wait
        if self._is_first(branch):
            try:
                return alone()
            finally:
                self._pass_on(branch)
        member = self._join(branch, proposal)
        if member is None or not self._was_told(branch, member, patience / 2):
            return alone()
        if member.fate is _Fate.LEADS:
            self._at_work[branch] = threading.get_ident()
            try:
                self._lead(branch, member, patience)
                return member.published or _alone(member, alone)
            finally:
                self._pass_on(branch)
        return member.published or _alone(member, alone)

    # Who is at work, and who waits

    def _is_first(self, branch: str) -> bool:
        """Whether nobody was at work, as somebody is from now on."""
        with self._lock:
            if branch in self._waiting:
                return False
            self._waiting[branch] = deque()
            self._at_work[branch] = threading.get_ident()
            return True

    def _join(self, branch: str, proposal: Proposal) -> _Member | None:
        """None if whoever was at work is done already."""
        with self._lock:
            line = self._waiting.get(branch)
            if line is None:
                return None
            member = _Member(proposal)
            line.append(member)
            return member

    def _was_told(self, branch: str, member: _Member, patience: float) -> bool:
        """Waits for a fate. False if nobody had taken it on in time. A thread that is stopped while
        it waits leaves nobody behind it without a leader."""
        try:
            if not member.told.wait(patience) and self._leave(branch, member):
                return False
            member.told.wait()
        except BaseException:
            if not self._leave(branch, member) and member.fate is _Fate.LEADS:
                self._pass_on(branch)
            raise
        return True

    def _leave(self, branch: str, member: _Member) -> bool:
        """Whether it still waited and nobody has taken it."""
        with self._lock:
            line = self._waiting.get(branch)
            if line is None or member not in line:
                return False
            line.remove(member)
            return True

    def _pass_on(self, branch: str) -> None:
        with self._lock:
            line = self._waiting[branch]
            self._at_work.pop(branch, None)
            if not line:
                del self._waiting[branch]
                return
            line.popleft().tell(_Fate.LEADS)

    def _followers(self, branch: str) -> list[_Member]:
        with self._lock:
            line = self._waiting[branch]
            return [line.popleft() for _ in range(min(len(line), MOST - 1))]

    # The work of a leader

    def _lead(self, branch: str, leader: _Member, patience: float) -> None:
        group = [leader, *self._followers(branch)]
        leader.fate = _Fate.WAITING
        try:
            if len(group) > 1:
                _publish_in_turn(leader.proposal.session, branch, group, patience)
        finally:
            for one in group:
                if one.fate is _Fate.WAITING:
                    one.tell(_Fate.ALONE)
                one.told.set()


def _alone(member: _Member, alone: Callable[[], Published]) -> Published:
    if member.error is not None:
        raise member.error
    return alone()


def _publish_in_turn(
    session: Session, branch: str, group: Sequence[_Member], patience: float
) -> None:
    """Whoever is not told anything here goes alone."""
    ledger = group[0].proposal.ledger
    deadline = session.runtime.monotonic() + patience
    by_proposal = {id(one.proposal): one for one in group}
    remote = session.root.directory is None
    gave_way = remote and session.tickets.give_way(session.metered(ledger), branch, deadline)
    with take_turn(session, branch, deadline, queues=True) as turn:
        try:
            end = None if gave_way else handed_on(session, turn, branch)
            if end is None:
                end = session.head(branch, ledger, fresh=turn.waited or gave_way)
            taken = line_up(end, [one.proposal for one in group])
            for one in group:
                if one.proposal not in taken:
                    one.tell(_Fate.ALONE)
            if len(taken) < 2:
                return
            ready = make_ready(end, taken)
        except OmnigraphError:  # each finds out alone what concerns it
            return
        reach("group made ready")
        last: GraphVersion | None = None
        try:
            for next_one in ready:
                if not _put(by_proposal[id(next_one.proposal)], next_one):
                    break  # another process was faster; nothing after this one can land
                last = next_one.version
        finally:
            if last is not None:
                hand_on(session, turn, last)


def _put(member: _Member, ready: Ready) -> bool:
    """Whether it landed. If not, nobody after it can land either."""
    session, version = ready.proposal.session, ready.version
    member.error = OutcomeUnknown(
        f"It is not known whether commit {version.commit.id}, version {version.version} of "
        f"{version.branch!r}, will stay: the thread that put it was stopped.",
        commit=version.commit.id,
    )
    member.fate = _Fate.UNKNOWN
    try:
        after = paths_of(session.root, ready.unsynced)
        newer = put_version(session, version, ready.proposal.ledger, after=after)
    except OutcomeUnknown as error:
        member.error = error
        return False
    except OmnigraphError:
        member.fate, member.error = _Fate.WAITING, None  # nothing of it is under way
        return False
    member.error = None
    if newer is not None:
        member.fate = _Fate.WAITING
        return False
    member.published = Published(version, version.commit.id, tables=ready.tables, carried=True)
    with after_commit("carrying lookups"):
        _carry(ready)
    for _, table in ready.tables.values():
        session.tables.keep(table)
    plan = ready.proposal.work.plan
    added = changed_rows(plan, ready.proposal.work)
    RecentCommits.shared_by(session).note(ready.before.token, version.token, added)
    session.tickets.landed(version.branch, contended=False)
    session.permissions.wrote(version, plan.lineage.kind)
    member.tell(_Fate.LANDED)
    return True


def _carry(ready: Ready) -> None:
    lookups = Lookups.shared_by(ready.proposal.session)
    for key, (old, new) in ready.tables.items():
        rows, hidden = ready.proposal.work.staged_rows(key)
        lookups.carry(old, new, rows, hidden)


def _groups(_: Session) -> Groups:
    return Groups()
