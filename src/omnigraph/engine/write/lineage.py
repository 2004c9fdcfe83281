"""Owns the record of a commit, made from the options of its call, and the search for an earlier
call with the same idempotency key."""

from __future__ import annotations

from omnigraph.engine.session import Session
from omnigraph.engine.write.published import find_keyed, hash_key, recalled
from omnigraph.errors import BranchNotFound
from omnigraph.model.options import CommitOptions
from omnigraph.model.version import GraphVersion
from omnigraph.plan.digest import digest_values
from omnigraph.plan.publish import Lineage
from omnigraph.telemetry import Ledger


def make_lineage(
    session: Session,
    kind: str,
    options: CommitOptions,
    *call: object,
    message: str | None = None,
    actor: str | None = None,
) -> Lineage:
    """`call` is what tells this call from others that use the same key; `message` and `actor`
    stand where the caller says nothing."""
    key = hash_key(options.idempotency_key)
    return Lineage(
        kind=kind,
        operation=session.runtime.ulid(),
        actor=options.actor or actor,
        message=options.message or message,
        key=key,
        call=None if key is None else digest_values([kind, *call]),
    )


def find_repeated(
    session: Session, branch: str, lineage: Lineage, ledger: Ledger
) -> GraphVersion | None:
    """The version that an earlier call with this key made on a branch. It is asked for before
    anything else: that call was checked, and the branch is another one by now."""
    if lineage.key is None:
        return None
    try:
        head = session.live_head(branch, ledger)
    except BranchNotFound:
        return None  # which the call itself has better words for
    first = find_keyed(session, lineage.key, head, ledger)
    if first is not None:
        recalled(first, lineage.call)
    return first
