"""Owns the branches and tags of a graph. One put creates, protects or deletes each.

A name belongs to a branch or to a tag, never to both. Each is a chain of versions, and the end of
the chain says which of the two it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.engine.graph_view import shown_commit
from omnigraph.engine.history.refs import History
from omnigraph.engine.session import Session
from omnigraph.errors import (
    BranchExists,
    BranchMoved,
    BranchNotFound,
    MainBranch,
    Reclaimed,
    TagExists,
    TagNotFound,
)
from omnigraph.lang.suggestions import near
from omnigraph.model.keys import KEPT
from omnigraph.model.options import CommitOptions
from omnigraph.model.refs import check_branch_name
from omnigraph.model.version import Commit, GraphVersion
from omnigraph.store.versions import encode_branch
from omnigraph.telemetry import Ledger

if TYPE_CHECKING:
    from omnigraph.engine.write.chain import Step
    from omnigraph.plan.publish import Lineage
    from omnigraph.plan.successor import Fork, Protect, Tag, Tombstone

MAIN = "main"


# What there is


def list_branches(session: Session, ledger: Ledger) -> list[str]:
    return [head.branch for head in History(session, ledger).heads()]


def list_protected(session: Session, ledger: Ledger) -> list[str]:
    return [head.branch for head in History(session, ledger).heads() if head.protected]


def list_tags(session: Session, ledger: Ledger) -> dict[str, Commit]:
    """The commits of all tags, by name."""
    tags = [end for end in History(session, ledger).ends() if end.tag]
    return {end.branch: shown_commit(session, end, ledger) for end in tags}


# Beginning


def create_branch(
    session: Session, name: str, source: str, options: CommitOptions, ledger: Ledger
) -> GraphVersion:
    """Starts a chain that shows the same tables: nothing is copied, whatever the size of the graph.
    A name that was used before continues its old chain, as a new incarnation."""

    from omnigraph.engine.history.pinning import held_version
    from omnigraph.plan.successor import Fork

    check_branch_name(name)
    lineage = _lineage(session, "branch_create", name, options, source)
    if (known := _repeated(session, name, lineage, ledger)) is not None:
        return known
    with held_version(session, source, ledger) as origin:
        return _begin(session, origin, Fork(lineage, name, origin), options, ledger)


def create_tag(
    session: Session, name: str, ref: str, options: CommitOptions, ledger: Ledger
) -> Commit:
    """Starts a chain with the name of the tag, so nobody can create a branch of this name."""

    from omnigraph.engine.history.pinning import held_version
    from omnigraph.plan.successor import Tag

    check_branch_name(name)
    lineage = _lineage(session, "tag_create", name, options, ref)
    if (known := _repeated(session, name, lineage, ledger)) is not None:
        return known.commit
    with held_version(session, ref, ledger) as target:
        return _begin(session, target, Tag(lineage, name, target), options, ledger).commit


def _begin(
    session: Session,
    origin: GraphVersion,
    change: Fork | Tag,
    options: CommitOptions,
    ledger: Ledger,
) -> GraphVersion:
    from omnigraph.engine.write.chain import Step, put_with_retry
    from omnigraph.engine.write.precondition import pin_commit

    pin_commit(session, origin, options, ledger)
    began = session.runtime.monotonic()

    def look(fresh: bool) -> GraphVersion | None:
        known = session.known_head(change.name)
        if fresh or (known is not None and (known.tag or not known.deleted)):
            return _find_end(session, change.name, ledger)
        return known

    def propose(end: GraphVersion | None) -> Step:
        _require_free(change.name, end)
        return Step(change, session.files_of(origin))

    patience = options.patience(session.settings.retry_for)
    first = put_with_retry(session, change.name, look, propose, ledger, retry_for=patience)
    assert first is not None
    slow = session.runtime.monotonic() - began > session.settings.grace / 4
    if slow and session.was_reclaimed(origin, ledger):
        # Cleanup took the version while the put was under way, because it did not know this name.
        _withdraw(session, first, ledger)
        raise Reclaimed(f"Version {origin.version} of {origin.branch!r} was reclaimed.")
    return first


def _require_free(name: str, end: GraphVersion | None) -> None:
    if end is not None and end.tag:
        raise TagExists(f"There is a tag {name!r} already.")
    if end is not None and not end.deleted:
        raise BranchExists(f"The branch {name!r} exists already.")


def _withdraw(session: Session, first: GraphVersion, ledger: Ledger) -> None:
    """Ends a branch or a tag that began with this version, and removes its beginning, so nothing of
    it can be read. Somebody else may have ended it already."""

    from omnigraph.engine.write.chain import Step, put_with_retry
    from omnigraph.plan.publish import Lineage
    from omnigraph.plan.successor import Tombstone

    def propose(end: GraphVersion | None) -> Step | None:
        assert end is not None
        if end.incarnation != first.incarnation or (end.deleted and not end.tag):
            return None
        lineage = Lineage(kind="branch_delete", operation=session.runtime.ulid())
        return Step(Tombstone(lineage, wholly=True))

    put_with_retry(
        session, first.branch, lambda _: session.head(first.branch, ledger), propose, ledger
    )


# Ending and protecting


def delete_branch(session: Session, name: str, options: CommitOptions, ledger: Ledger) -> None:
    """Puts a tombstone at the end of the chain. Open handles can still read what the chain
    holds."""

    from omnigraph.plan.successor import Tombstone

    if name == MAIN:
        raise MainBranch("The branch 'main' cannot be deleted.")
    change = Tombstone(_lineage(session, "branch_delete", name, options))
    _change(session, change, name, options, ledger)


def set_protection(
    session: Session, name: str, protected: bool, options: CommitOptions, ledger: Ledger
) -> None:
    """Makes one commit that changes nothing else on the branch, or none if nothing changes. Other
    writes that are under way meet it at their put, like any other commit."""

    from omnigraph.plan.successor import Protect

    lineage = _lineage(session, "protect" if protected else "unprotect", name, options)
    _change(session, Protect(lineage, protected), name, options, ledger)


def _change(
    session: Session,
    change: Tombstone | Protect,
    name: str,
    options: CommitOptions,
    ledger: Ledger,
) -> None:
    """Changes the branch that has the name now, and not one that takes the name later."""

    from omnigraph.engine.write.chain import Step, put_with_retry
    from omnigraph.engine.write.precondition import pin_commit
    from omnigraph.engine.write.publisher import require_unprotected
    from omnigraph.plan.successor import Protect

    if _repeated(session, name, change.lineage, ledger) is not None:
        return
    head = session.live_head(name, ledger)
    session = session.holding(name, head.incarnation)

    def propose(end: GraphVersion | None) -> Step | None:
        assert end is not None
        session.require_held(end)
        pin_commit(session, end, options, ledger)
        if isinstance(change, Protect):
            return None if end.protected == change.protected else Step(change)
        require_unprotected(end, change.lineage.kind)
        return Step(change)

    put_with_retry(
        session,
        name,
        lambda fresh: session.head(name, ledger) if fresh else head,
        propose,
        ledger,
        retry_for=options.patience(session.settings.retry_for),
    )


def delete_tag(session: Session, name: str, options: CommitOptions, ledger: Ledger) -> None:
    """Puts a tombstone after the tag. The version that the tag stood for stays."""

    from omnigraph.engine.write.chain import Step, put_with_retry
    from omnigraph.engine.write.precondition import pin_commit
    from omnigraph.plan.successor import Tombstone

    change = Tombstone(_lineage(session, "tag_delete", name, options))
    if _repeated(session, name, change.lineage, ledger) is not None:
        return
    tag = _read_tag(session, name, ledger)

    def propose(end: GraphVersion | None) -> Step:
        assert end is not None
        if not end.tag or end.incarnation != tag.incarnation:
            raise BranchMoved(
                f"The tag {name!r} was deleted by somebody else meanwhile.",
                help="Nothing was changed; look at what it stands for now.",
            )
        pin_commit(session, end, options, ledger)
        return Step(change)

    put_with_retry(
        session,
        name,
        lambda fresh: session.head(name, ledger) if fresh else tag,
        propose,
        ledger,
        retry_for=options.patience(session.settings.retry_for),
    )


def _read_tag(session: Session, name: str, ledger: Ledger) -> GraphVersion:
    tag = _find_end(session, name, ledger)
    if tag is None or not tag.tag:
        guess = near(name, list_tags(session, ledger))
        hint = f"Did you mean {guess!r}?" if guess else ""
        raise TagNotFound(f"There is no tag {name!r}.", help=hint)
    return tag


# What all of them say, and whether they were said before


def _lineage(
    session: Session, kind: str, name: str, options: CommitOptions, *arguments: str
) -> Lineage:
    from omnigraph.engine.write.lineage import make_lineage

    encode_branch(name)  # raises the error for an invalid name
    return make_lineage(session, kind, options, name, *arguments)


def _repeated(session: Session, name: str, lineage: Lineage, ledger: Ledger) -> GraphVersion | None:
    """The version that an earlier call with the same idempotency key made, on whatever branch or
    tag had the name then. A repeated call must not delete a new branch of the same name."""

    from omnigraph.engine.write.published import find_keyed, recalled

    if lineage.key is None:
        return None
    end = _find_end(session, name, ledger)
    oldest = session.runtime.now() - KEPT * 1_000_000
    while end is not None:
        if (first := find_keyed(session, lineage.key, end, ledger)) is not None:
            recalled(first, lineage.call)
            return first
        if end.first == 1 or (end.created is not None and end.created.at < oldest):
            return None
        end = session.read_record(name, end.first - 1, ledger)
    return None


def _find_end(session: Session, name: str, ledger: Ledger) -> GraphVersion | None:
    try:
        return session.head(name, ledger)
    except BranchNotFound:
        return None
