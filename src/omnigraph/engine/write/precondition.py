"""Owns `if_commit`: whether a branch still shows what the caller saw. Maintenance since then does
not count."""

from __future__ import annotations

from omnigraph.engine.session import Session
from omnigraph.errors import PreconditionFailed
from omnigraph.model.options import CommitOptions
from omnigraph.model.version import GraphVersion
from omnigraph.store.objects import Absent
from omnigraph.telemetry import Ledger


def require_commit(session: Session, head: GraphVersion, commit: str, ledger: Ledger) -> str:
    """The commit that replaces the given one from here on: the one that a reader sees at the head,
    which maintenance does not change. Raises an error if a visible commit has come since."""
    if not _shows(session, head, commit, ledger):
        raise moved_on(head, commit)
    return head.visible


def pin_commit(
    session: Session, head: GraphVersion, options: CommitOptions, ledger: Ledger
) -> str | None:
    """The same for the options of a call, which may have no such condition."""
    if options.if_commit is None:
        return None
    return require_commit(session, head, options.if_commit, ledger)


def moved_on(head: GraphVersion, commit: str) -> PreconditionFailed:
    what = "tag" if head.tag else "branch"
    return PreconditionFailed(
        f"The {what} {head.branch!r} is at commit {head.commit.id}, not at {commit}.",
        expected=commit,
        actual=head.commit.id,
    )


def _shows(session: Session, head: GraphVersion, commit: str, ledger: Ledger) -> bool:
    """The head's own commit and the visible one are compared without a read. A commit that
    maintenance made in between is looked for among the versions since then. Ids grow along a
    branch, but another branch may have made a commit between two of them, by any clock."""
    if head.holds(commit):
        return True
    seen = head.seen
    if seen is None or not seen.commit < commit < head.commit.id:
        return False
    low, high = seen.version, head.version
    while high - low > 1:
        middle = (low + high) // 2
        found = _read(session, head.branch, middle, ledger)
        if found is None or found.commit.id == commit:
            return found is not None
        low, high = (middle, high) if found.commit.id < commit else (low, middle)
    oldest = _read(session, head.branch, low, ledger)
    if oldest is None or oldest.commit.id <= commit:
        return oldest is not None and oldest.commit.id == commit
    # The commit may belong to the branch that this one was made from.
    fork = oldest.forked_from
    origin = None if fork is None else _read(session, fork.branch, fork.version, ledger)
    return origin is not None and _shows(session, origin, commit, ledger)


def _read(session: Session, branch: str, number: int, ledger: Ledger) -> GraphVersion | None:
    """A copy of some branches may lack it."""
    try:
        return session.read_record(branch, number, ledger)
    except Absent:
        return None
