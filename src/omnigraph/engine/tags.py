"""Owns tags: fixed names for versions, each the end of a chain of its own, so that a name is that
of a branch or of a tag and never of both."""

from __future__ import annotations

from omnigraph.engine.branches import require_free, withdraw
from omnigraph.engine.history.refs import History
from omnigraph.engine.session import Session
from omnigraph.engine.upkeep.pinning import held_version
from omnigraph.engine.write.publisher import commit_after, put_version
from omnigraph.errors import BranchMoved, BranchNotFound, Reclaimed, TagNotFound
from omnigraph.lang.near import near
from omnigraph.model.refs import check_branch_name
from omnigraph.model.version import Commit, GraphVersion
from omnigraph.model.words import read_word
from omnigraph.plan.succession import begin, follow
from omnigraph.store.versions import encode_branch
from omnigraph.telemetry import Ledger


def create_tag(session: Session, name: str, ref: str, ledger: Ledger) -> Commit:
    """One put. Whoever creates a branch of this name meets it there."""
    check_branch_name(name)
    encode_branch(name)
    with held_version(session, ref, ledger) as target:
        return _create(session, name, target, ledger)


def _create(session: Session, name: str, target: GraphVersion, ledger: Ledger) -> Commit:
    began = session.runtime.monotonic()
    previous = session.known_head(name)
    if previous is not None and (previous.tag or not previous.deleted):
        previous = session.head(name, ledger)
    while True:
        require_free(name, previous)
        version = begin(
            target,
            previous,
            branch=name,
            token=session.runtime.ulid(),
            maintained=target.maintained,
            deleted=True,
            tag=True,
        )
        taken = put_version(session, version, ledger, after=session.files_of(target))
        if taken is None:
            slow = session.runtime.monotonic() - began > session.settings.grace / 4
            if slow and session.was_reclaimed(target, ledger):
                # Cleanup passed it while the put was under way, and did not know this tag.
                withdraw(session, version, ledger)
                raise Reclaimed(f"Version {target.version} of {target.branch!r} was reclaimed.")
            return target.commit
        versions = session.versions(ledger)
        previous = versions.read_head(name) if previous is None else versions.read_newer(taken)


def delete_tag(session: Session, name: str, actor: str | None, ledger: Ledger) -> None:
    """A tombstone after the tag; the version that it stood for stays what it is."""
    actor = read_word("actor", actor)
    encode_branch(name)
    meant: int | None = None
    while True:
        end = _read_tag(session, name, ledger)
        if meant is not None and end.incarnation != meant:
            raise BranchMoved(
                f"The tag {name!r} was deleted and created again by somebody else meanwhile.",
                help="Nothing was changed; look at what it stands for now.",
            )
        meant = end.incarnation
        commit = commit_after(
            session, end, kind="tag_delete", operation=session.runtime.ulid(), actor=actor
        )
        version = follow(end, token=session.runtime.ulid(), commit=commit, tag=False)
        if put_version(session, version, ledger) is None:
            return


def list_tags(session: Session, ledger: Ledger) -> dict[str, Commit]:
    """The commits of all tags, by name."""
    return {end.branch: end.commit for end in History(session, ledger).ends() if end.tag}


def _read_tag(session: Session, name: str, ledger: Ledger) -> GraphVersion:
    try:
        end = session.head(name, ledger)
    except BranchNotFound:
        end = None
    if end is None or not end.tag:
        guess = near(name, list_tags(session, ledger))
        hint = f"Did you mean {guess!r}?" if guess else ""
        raise TagNotFound(f"There is no tag {name!r}.", help=hint)
    return end
