"""Owns putting: the one loop that makes a chain of graph versions longer, and the one put.

Nothing else puts graph versions; `group` calls the put for commits that it made ready together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from omnigraph.engine.session import Session
from omnigraph.engine.write.turns import hand_on, handed_on, take_turn
from omnigraph.errors import Contention, OmnigraphError, OutcomeUnknown
from omnigraph.model.version import GraphVersion
from omnigraph.plan.successor import Birth, Change, succeed
from omnigraph.runtime import Runtime, reach
from omnigraph.store.objects import Gone
from omnigraph.store.queue import Ticket
from omnigraph.store.versions import Put
from omnigraph.telemetry import Ledger


@dataclass(frozen=True)
class Step:
    """A change of a chain, and the files that must be on disk before anybody can see it."""

    change: Change
    after: Sequence[Path] = ()


Propose = Callable[[GraphVersion | None], Step | None]
"""The step that follows the end of a chain, or None if there is nothing left to do."""
Look = Callable[[bool], GraphVersion | None]
"""The end of the chain, looked up again if the argument is True."""


def put_with_retry(
    session: Session,
    name: str,
    look: Look,
    propose: Propose,
    ledger: Ledger,
    *,
    retry_for: float | None = None,
    stamped: bool = True,
    queues: bool = False,
) -> GraphVersion | None:
    """Puts the proposed step, and tries again on the new end if another writer was faster. Returns
    the version that landed, or None if nothing was left to do. With `queues` the writer waits its
    turn among the others, which is fair to slow writes, and begins with the end that it knows or is
    told: the put proves it. What is refused there is proposed once more to the end on the store.
    Without `queues`, no lock file is left behind for a chain that nobody else writes to."""
    patience = math.inf if retry_for is None else retry_for
    deadline = session.runtime.monotonic() + patience
    objects = session.metered(ledger)
    remote = queues and session.root.directory is None
    ticket: Ticket | None = None
    gave_way = remote and session.tickets.give_way(objects, name, deadline)
    try:
        with take_turn(session, name, deadline, queues=queues) as turn:
            told = None if gave_way else handed_on(session, turn, name)
            proven = told is None and (turn.waited or gave_way)
            end = look(proven) if told is None else told
            attempt = 0
            while True:
                try:
                    step = propose(end)
                except Exception:
                    if proven or not queues or end is None:
                        raise
                    newest, proven = look(True), True
                    if newest is None or newest.token == end.token:
                        raise
                    end = newest
                    continue
                if step is None:
                    return None
                version = succeed(end, step.change, bear(session.runtime))
                newer = put_version(session, version, ledger, after=step.after, stamped=stamped)
                if newer is None:
                    hand_on(session, turn, version)
                    session.tickets.landed(name, contended=attempt > 0)
                    session.permissions.wrote(version, step.change.lineage.kind)
                    return version
                end, proven = newer, True
                attempt += 1
                # A writer that slept through its whole time limit has tried only once, so it tries
                # once more.
                if session.runtime.monotonic() > deadline and (attempt > 1 or not patience):
                    raise Contention(
                        f"The branch {name!r} was written by others {attempt} times in "
                        f"{retry_for:g} s, each time before this write."
                    )
                if remote:
                    ticket, stood = session.tickets.stand_in_line(objects, name, ticket, deadline)
                    end = session.head(name, ledger) if stood else newer
                elif session.queue is None or not queues:
                    session.runtime.sleep(0.002 * attempt * session.runtime.random())
    finally:
        if ticket is not None:
            session.tickets.leave_line(objects, name, ticket)


def bear(runtime: Runtime) -> Birth:
    now, chance = runtime.now(), runtime.random()
    return Birth(id=runtime.ulid(), token=runtime.ulid(), now=now, chance=chance)


def put_version(
    session: Session,
    version: GraphVersion,
    ledger: Ledger,
    *,
    after: Sequence[Path] = (),
    stamped: bool = True,
) -> GraphVersion | None:
    """The one put. None means that it landed; a version is the head of a faster writer."""
    if stamped:
        session.require_safe_store(version.graph, version.format, ledger)
    versions, seen = session.versions(ledger), session.seen_before(version)
    base = None if seen is None else seen.version
    reach("before put")
    try:
        outcome = versions.put(version, after=after, base=base)
    except Gone:
        session.forget_head(version.branch)
        if version.version != version.first:
            head = session.head(version.branch, ledger)
            if base is None or head.token != base.token or not all(path.exists() for path in after):
                # Cleanup deleted what this writer had staged while it slept. The head says so.
                return head
            # It is still the same graph and the same head, of which cleanup took a table: a branch
            # that began too late is being taken back.
        # Or a branch begins with a version of another branch, which has moved to the archive
        # meanwhile.
        outcome = versions.put(version, after=[path for path in after if path.exists()])
    reach("after put")
    slept = session.slept_since(seen)
    match outcome.put:
        case Put.LANDED:
            if slept and version.version > 1:  # the first version of a branch follows nothing
                real = _real_head(session, version, ledger)
                if real.version > version.version and real.bottom > version.version:
                    versions.delete_ghost(version)
                    return real
            session.saw_head(version)
            return None
        case Put.TAKEN:
            assert outcome.taken_by is not None
            if slept or version.version == 1:
                # The version that holds the number may be a ghost below the floor. Also, cleanup
                # leaves the first version of a chain in place when it deletes those after it.
                session.forget_head(version.branch)
                return session.head(version.branch, ledger)
            session.met_company(outcome.taken_by)
            newer = versions.read_newer(outcome.taken_by)
            session.saw_head(newer)
            return newer
        case Put.UNKNOWN:
            raise OutcomeUnknown(
                f"It is not known whether commit {version.commit.id}, version {version.version} of "
                f"{version.branch!r}, will stay: {outcome.reason}.",
                commit=version.commit.id,
            )
        case put:
            assert_never(put)


def _real_head(session: Session, version: GraphVersion, ledger: Ledger) -> GraphVersion:
    """The head after a put that took long. Ours counts only if it is above the floor."""
    session.forget_head(version.branch)
    try:
        return session.head(version.branch, ledger)
    except OmnigraphError as error:
        raise OutcomeUnknown(
            f"Commit {version.commit.id} was put, but whether cleanup had passed it cannot "
            f"be read: {error.message}",
            commit=version.commit.id,
        ) from error
