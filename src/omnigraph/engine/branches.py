"""Owns the life of branches: creating, deleting and creating again, one put each."""

from __future__ import annotations

from omnigraph.engine.history.refs import History
from omnigraph.engine.session import Session
from omnigraph.engine.upkeep.pinning import held_version
from omnigraph.engine.write.publisher import commit_after, put_version, require_unprotected
from omnigraph.errors import BranchExists, MainBranch, Reclaimed, TagExists
from omnigraph.model.keys import NO_KEYS
from omnigraph.model.refs import check_branch_name
from omnigraph.model.version import GraphVersion, past
from omnigraph.model.words import read_word
from omnigraph.plan.succession import begin, follow
from omnigraph.store.versions import encode_branch
from omnigraph.telemetry import Ledger

MAIN = "main"


def create_branch(session: Session, name: str, source: str, ledger: Ledger) -> GraphVersion:
    """The same pins under a new chain: nothing is copied, whatever the size of the graph. A name
    that was used before goes on with its chain, as a new incarnation."""
    check_branch_name(name)
    encode_branch(name)
    with held_version(session, source, ledger) as origin:
        return _create(session, name, origin, ledger)


def _create(session: Session, name: str, origin: GraphVersion, ledger: Ledger) -> GraphVersion:
    began = session.runtime.monotonic()
    previous = session.known_head(name)
    if previous is not None and (previous.tag or not previous.deleted):
        previous = session.head(name, ledger)
    while True:
        require_free(name, previous)
        version = begin(
            origin,
            previous,
            branch=name,
            token=session.runtime.ulid(),
            ancestry=past(origin),
        )
        previous = put_version(session, version, ledger, after=session.files_of(origin))
        if previous is not None:
            continue
        slow = session.runtime.monotonic() - began > session.settings.grace / 4
        if slow and session.was_reclaimed(origin, ledger):
            # Cleanup passed it while the put was under way, and did not know this branch.
            withdraw(session, version, ledger)
            raise Reclaimed(f"Version {origin.version} of {origin.branch!r} was reclaimed.")
        return version


def delete_branch(session: Session, name: str, actor: str | None, ledger: Ledger) -> None:
    """A tombstone at the end of the chain; what it holds stays readable by who has it open."""
    actor = read_word("actor", actor)
    if name == MAIN:
        raise MainBranch("The branch 'main' cannot be deleted.")
    head = session.live_head(name, ledger)
    session = session.holding(name, head.incarnation)
    while True:
        require_unprotected(head, "branch_delete")
        commit = commit_after(
            session, head, kind="branch_delete", operation=session.runtime.ulid(), actor=actor
        )
        version = follow(
            head, token=session.runtime.ulid(), commit=commit, deleted=True, keys=NO_KEYS
        )
        taken = put_version(session, version, ledger)
        if taken is None:
            return
        head = session.live_head(name, ledger)


def withdraw(session: Session, first: GraphVersion, ledger: Ledger) -> None:
    """Ends a branch or a tag that began with this version, together with its beginning: nothing
    of it can be read. Somebody else may have ended it already."""
    while True:
        end = session.head(first.branch, ledger)
        if end.incarnation != first.incarnation or (end.deleted and not end.tag):
            return
        commit = commit_after(session, end, kind="branch_delete", operation=session.runtime.ulid())
        version = follow(
            end,
            token=session.runtime.ulid(),
            commit=commit,
            deleted=True,
            tag=False,
            keys=NO_KEYS,
            floor=end.version + 1,
        )
        if put_version(session, version, ledger) is None:
            return


def require_free(name: str, end: GraphVersion | None) -> None:
    """A name is that of a branch or that of a tag: the end of its chain says which."""
    if end is not None and end.tag:
        raise TagExists(f"There is a tag {name!r} already.")
    if end is not None and not end.deleted:
        raise BranchExists(f"The branch {name!r} exists already.")


def list_branches(session: Session, ledger: Ledger) -> list[str]:
    return [head.branch for head in History(session, ledger).heads()]
