"""Owns the protection of branches: a setting that travels in the versions of the branch itself,
so that every writer meets it in the head that it reads anyway."""

from __future__ import annotations

from omnigraph.engine.history.refs import History
from omnigraph.engine.session import Session
from omnigraph.engine.write.publisher import commit_after, put_version
from omnigraph.model.words import read_word
from omnigraph.plan.succession import follow
from omnigraph.telemetry import Ledger


def set_protection(
    session: Session, branch: str, protected: bool, actor: str | None, ledger: Ledger
) -> None:
    """One commit on the branch that changes nothing else; none if it is so already. Writes that
    are under way meet it at their put, like any other commit."""
    actor = read_word("actor", actor)
    while True:
        head = session.live_head(branch, ledger)
        session = session.holding(branch, head.incarnation)
        if head.protected == protected:
            return
        commit = commit_after(
            session,
            head,
            kind="protect" if protected else "unprotect",
            operation=session.runtime.ulid(),
            actor=actor,
        )
        version = follow(head, token=session.runtime.ulid(), commit=commit, protected=protected)
        if put_version(session, version, ledger) is None:
            return


def list_protected(session: Session, ledger: Ledger) -> list[str]:
    return [head.branch for head in History(session, ledger).heads() if head.protected]
