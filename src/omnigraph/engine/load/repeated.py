"""Owns recognising a repeated load: its key, and the commit that an earlier call with this key
made."""

from __future__ import annotations

import contextlib

from omnigraph.engine.history.refs import History
from omnigraph.engine.load.options import LoadOptions
from omnigraph.engine.load.result import LoadResult
from omnigraph.engine.session import Session, hash_call
from omnigraph.engine.write.published import Published, recall
from omnigraph.errors import BranchNotFound, IdempotencyMismatch, OmnigraphError
from omnigraph.model.version import Commit, GraphVersion
from omnigraph.plan.digest import digest_values
from omnigraph.plan.publish import Lineage
from omnigraph.store.objects import Absent
from omnigraph.telemetry import Ledger


def load_lineage(session: Session, options: LoadOptions) -> Lineage:
    return Lineage(
        kind="load",
        operation=session.runtime.ulid(),
        actor=options.commit.actor,
        message=options.commit.message,
        key=options.key,
        call=digest_values([options.type, options.mode, options.branch, *options.names]),
        stream=None if options.stream is None else hash_call(options.stream[0]),
        batch=0 if options.stream is None else options.stream[1],
    )


def repeated_load(session: Session, options: LoadOptions, ledger: Ledger) -> LoadResult | None:
    """Returns the result of an earlier load with the same key, or of the same batch of a stream.
    It is asked for before the source is opened."""
    if options.key is None and options.stream is None:
        return None
    try:
        head = session.live_head(options.branch, ledger)
    except BranchNotFound:
        return None
    try:
        known = recall(session, load_lineage(session, options), head, ledger)
    except IdempotencyMismatch as error:
        if options.job is None:
            raise
        raise IdempotencyMismatch(
            f"The job {options.job!r} has loaded something else.",
            help="Nothing was changed; give a new load a new name.",
        ) from error
    if known is None:
        return None
    return LoadResult(
        branch=options.branch,
        mode=options.mode,
        commit=published_commit(session, known, head, ledger),
        counts={},
        engine="spark" if options.engine == "spark" else "local",
        reason="it was loaded before",
        repeated=True,
        io=ledger,
    )


def published_commit(
    session: Session, known: Published, head: GraphVersion, ledger: Ledger
) -> Commit:
    """The commit of a batch, on this branch or on the one that it was made from. If only its id is
    left, the commit says nothing else."""
    if known.first is not None:
        return known.first.commit
    marks = [mark for mark in head.streams.values() if mark.commit == known.commit]
    for mark in marks:
        with contextlib.suppress(Absent):
            held = session.read_record(head.branch, mark.version, ledger).commit
            if held.id == mark.commit:
                return held
    with contextlib.suppress(OmnigraphError):
        return History(session, ledger).resolve(known.commit).commit
    return Commit(id=known.commit, parents=(), kind="load", created_at=0, operation="")
