"""Owns the record of a commit, which is made from the options of its call, and the search for an
earlier call with the same idempotency key."""

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
    """`call` distinguishes this call from others with the same key. `message` and `actor` are
    defaults for options that the caller left out."""
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
    """The version that an earlier call with this key made on a branch. This is looked up first:
    that call was checked, and the branch has changed since."""
    if lineage.key is None:
        return None
    try:
        head = session.live_head(branch, ledger)
    except BranchNotFound:
        return None  # the call itself has a better message for this
    first = find_keyed(session, lineage.key, head, ledger)
    if first is not None:
        recalled(first, lineage.call)
    return first
