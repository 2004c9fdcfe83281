"""Owns the outcome of a write: the version that it made, or the one that an earlier call had
made."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from omnigraph.engine.session import Session
from omnigraph.engine.write.known_keys import KnownKeys
from omnigraph.errors import IdempotencyMismatch
from omnigraph.model.keys import NO_KEYS, Keys
from omnigraph.model.version import GraphVersion
from omnigraph.plan.publish import Lineage
from omnigraph.store.history import lost_version
from omnigraph.store.objects import Absent
from omnigraph.store.tables import Table
from omnigraph.telemetry import Ledger


@dataclass(frozen=True)
class Published:
    """If `repeated`, `commit` is that of an earlier call with the same idempotency key, and `first`
    is the version that it made. `tables` holds the versions of each table before and after; if they
    are `carried`, what was looked up before is known of the new ones."""

    version: GraphVersion | None
    commit: str
    repeated: bool = False
    first: GraphVersion | None = None
    tables: dict[str, tuple[Table, Table]] = field(default_factory=dict, repr=False)
    carried: bool = False


def hash_key(key: str | None) -> str | None:
    """The part of an idempotency key that is stored."""
    return None if key is None else hashlib.sha256(key.encode()).hexdigest()[:16]


def recall(
    session: Session, lineage: Lineage, head: GraphVersion, ledger: Ledger
) -> Published | None:
    """An earlier call with this idempotency key, or for this batch, has done the work already."""
    if lineage.stream is not None and (mark := head.streams.get(lineage.stream)) is not None:
        if mark.batch > lineage.batch:
            raise IdempotencyMismatch(
                f"The stream has brought its batch {mark.batch} already, in commit {mark.commit}, "
                f"and this is batch {lineage.batch}.",
                help="A stream that begins anew, with another checkpoint, needs another stream_id.",
            )
        if mark.batch == lineage.batch:
            return Published(None, mark.commit, repeated=True)
    if lineage.key is None:
        return None
    first = find_keyed(session, lineage.key, head, ledger)
    return None if first is None else recalled(first, lineage.call)


def find_keyed(
    session: Session, key: str, head: GraphVersion, ledger: Ledger
) -> GraphVersion | None:
    """The record of the version whose commit used a key, even if cleanup has deleted the
    version."""

    def read(number: int) -> Keys:
        try:
            return session.read_record(head.branch, number, ledger).keys
        except Absent:  # a copy of the graph may have no more than this
            return NO_KEYS

    known = KnownKeys.shared_by(session)
    number = known.find(bytes.fromhex(key), head, session.runtime.now(), read)
    if number is None:
        return None
    try:
        return session.read_record(head.branch, number, ledger)
    except Absent:
        raise lost_version(head.branch, number) from None


def recalled(first: GraphVersion, call: str | None) -> Published:
    """The answer to a call whose key the commit of this version used. Before format 2, calls were
    not recorded."""
    if first.keys.call and first.keys.call.hex() != call:
        raise another_call(first)
    return Published(None, first.commit.id, repeated=True, first=first)


def another_call(first: GraphVersion) -> IdempotencyMismatch:
    return IdempotencyMismatch(
        f"The idempotency key belongs to commit {first.commit.id}, which did something else."
    )
