"""Owns keeping an old version in place while something is bound to it.

The head of a branch is safe from cleanup for the grace period. An older version is not: cleanup may
decide to delete it at any moment. So this module first writes an intent that names the version, and
then checks that the version is still there. Cleanup works in the other order: it announces what it
will delete, and then looks for intents. Whatever happens in between, one of the two sees the other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from omnigraph.engine.history.refs import History
from omnigraph.engine.session import Session
from omnigraph.errors import OmnigraphError, Reclaimed
from omnigraph.model.refs import BranchRef, parse_ref
from omnigraph.model.version import GraphVersion
from omnigraph.plan.successor import point_to
from omnigraph.runtime import reach
from omnigraph.store.intents import PIN, Intent, delete_intent, write_intent
from omnigraph.telemetry import Ledger


@contextlib.contextmanager
def held_version(session: Session, ref: str, ledger: Ledger) -> Iterator[GraphVersion]:
    """The version that a ref names. It stays in place until the block ends."""
    version = History(session, ledger).resolve(ref)
    parsed = parse_ref(ref)
    if isinstance(parsed, BranchRef) and not parsed.back and parsed.branch == version.branch:
        yield version  # it was the head of a branch a moment ago
        return
    reach("before pin")
    with pinned(session, version, ledger):
        reach("pinned")
        if session.was_reclaimed(version, ledger) and not _is_tag(session, parsed, ledger):
            raise Reclaimed(f"Version {version.version} of {version.branch!r} was reclaimed.")
        yield version


@contextlib.contextmanager
def pinned(session: Session, version: GraphVersion, ledger: Ledger) -> Iterator[None]:
    now = session.runtime.now()
    intent = Intent(
        id=session.runtime.ulid(),
        kind=PIN,
        created_at=now,
        heartbeat=now,
        pins=(point_to(version),),
    )
    objects = session.metered(ledger)
    write_intent(objects, intent)
    try:
        yield
    finally:
        with contextlib.suppress(OmnigraphError):  # cleanup removes what a crash leaves
            delete_intent(objects, intent.id)


def _is_tag(session: Session, parsed: object, ledger: Ledger) -> bool:
    """The version of an existing tag is never deleted."""
    return (
        isinstance(parsed, BranchRef)
        and not parsed.back
        and session.head(parsed.branch, ledger).tag
    )
