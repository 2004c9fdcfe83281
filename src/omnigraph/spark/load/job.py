"""Owns jobs: loads with a name, which can be run again after their driver died and go on from what
was staged.

A run claims its job by creating the next numbered attempt, if it is not there yet; the newest one
holds the job. So of two runs that find the same dead one, one goes on, and a run that was taken for
dead finds out before it publishes. That the job is published once does not rest on this: its name
is the idempotency key of the commit.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from omnigraph.engine.load.spool import Spool
from omnigraph.engine.session import Session
from omnigraph.engine.upkeep.recovery import Recovery
from omnigraph.errors import Corrupt, InvalidArgument, JobRunning, OmnigraphError
from omnigraph.model.stored_text import UNDECODABLE, Moment, Number, Ulid
from omnigraph.model.version import GraphVersion
from omnigraph.runtime import reach
from omnigraph.spark.load.journal import Journal, create
from omnigraph.store.intents import Intent, read_intent
from omnigraph.store.jobs import delete_below, job_prefix
from omnigraph.store.objects import Absent, Ambiguous, ObjectStore
from omnigraph.telemetry import Ledger

BEAT = 10.0
"""Seconds between two heartbeats of a job."""

_SILENT = 6 * BEAT
_NUMBER = re.compile(r"[0-9]{8,19}")


class Attempt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run of a job. `call` is a digest of the arguments. `place` and `process` say where it
    runs, so that a process in the same place can check whether it still does."""

    number: Number
    name: str
    intent: Ulid
    operation: Ulid
    call: str
    place: str
    process: Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,9}(/|\Z)")]
    began: Moment
    ended: bool = False


_DECODER = msgspec.json.Decoder(Attempt)  # made before there are threads: see `store.versions`


@dataclass(frozen=True)
class Job:
    """A claimed job. `intent` is that of an earlier run, whose work is continued."""

    name: str
    attempt: Attempt
    prefix: str
    session: Session
    intent: Intent | None

    @property
    def spool(self) -> Spool:
        return Spool(
            self.session.root, f"{self.prefix}/pieces", self.session.settings, durable=True
        )

    @property
    def journal(self) -> Journal:
        made = Journal(self.session.root, f"{self.prefix}/journal", self.session.settings)
        return made.look() if self.intent is not None else made

    def require_held(self) -> None:
        """Raises if somebody else has taken the job over, or given it up."""
        numbers = _attempts(self.session, self.prefix)
        if not numbers or max(numbers) != self.attempt.number:
            what = "was taken over by another run" if numbers else "was given up"
            raise JobRunning(
                f"The job {self.name!r} {what} while this run of it was thought dead.",
                help="This run has published nothing.",
            )

    def release(self) -> None:
        """Ends the run but not the job, so the next run need not wait."""
        ended = msgspec.structs.replace(self.attempt, ended=True)
        with contextlib.suppress(OmnigraphError, Ambiguous):
            key = _attempt_key(self.prefix, ended.number)
            _objects(self.session).put(key, msgspec.json.encode(ended))

    def remove(self) -> None:
        """Deletes everything about the job, which is done or can never be."""
        delete_below(self.session.root, self.session.objects, self.prefix)


def begin_or_resume_job(session: Session, name: str, call: str) -> Job:
    """Claims the job, if nobody runs it. The work of an earlier run is reused if its arguments were
    the same."""
    prefix = job_prefix(name)
    last = _last_attempt(session, prefix)
    intent = None
    if last is not None:
        intent = _intent_of(session, last)
        _require_over(session, last, intent)
        if intent is not None and last.call != call:
            raise InvalidArgument(
                f"The job {name!r} was begun with other sources or options and did not end.",
                help=f"Run it as it was, give this load another name, or give the old one up: "
                f"g.recovery.discard({intent.id!r}).",
            )
    runtime = session.runtime
    going_on = last is not None and intent is not None
    attempt = Attempt(
        number=1 if last is None else last.number + 1,
        name=name,
        intent=last.intent if last is not None and going_on else runtime.ulid(),
        operation=last.operation if last is not None and going_on else runtime.ulid(),
        call=call,
        place=_place(),
        process=_process(os.getpid()),
        began=runtime.now(),
    )
    key = _attempt_key(prefix, attempt.number)
    data = msgspec.json.encode(attempt)
    if not create(_objects(session), key, data):
        raise _running(name, "begins at this moment in another process")
    reach("job claimed")
    job = Job(name, attempt, prefix, session, intent)
    if intent is None:
        _forget_work(session, prefix)
    return job


def start_over(job: Job) -> Job:
    """The same claim without the earlier work, some of which cleanup may have deleted."""
    _forget_work(job.session, job.prefix)
    return Job(job.name, job.attempt, job.prefix, job.session, None)


def forget_job(session: Session, name: str) -> None:
    """Deletes what remains of a job that has landed, if its run died before it could do so."""
    prefix = job_prefix(name)
    last = _last_attempt(session, prefix)
    if last is None:
        return
    intent = _intent_of(session, last)
    try:
        _require_over(session, last, intent)
    except JobRunning:
        return  # it is about to remove it
    if intent is not None:
        Recovery(session, writable=True).end(intent)
    Job(name, last, prefix, session, intent).remove()


def _forget_work(session: Session, prefix: str) -> None:
    """Deletes the journal first, because files that it names may go before it."""
    for part in ("journal", "pieces"):
        delete_below(session.root, session.objects, f"{prefix}/{part}")


# Attempts


def _objects(session: Session) -> ObjectStore:
    """Not those of the session, which remember directories that disappear with a job."""
    return session.root.objects(session.settings)


def _attempt_key(prefix: str, number: int) -> str:
    return f"{prefix}/attempts/{number:08d}.json"


def _attempts(session: Session, prefix: str) -> list[int]:
    keys = _objects(session).list(f"{prefix}/attempts/")
    names = [key.rsplit("/", 1)[1].removesuffix(".json") for key in keys]
    return [int(name) for name in names if _NUMBER.fullmatch(name)]


def _last_attempt(session: Session, prefix: str) -> Attempt | None:
    numbers = _attempts(session, prefix)
    if not numbers:
        return None
    key = _attempt_key(prefix, max(numbers))
    try:
        data = _objects(session).get(key)
    except Absent:  # it has just ended
        return None
    try:
        return _DECODER.decode(data)
    except UNDECODABLE as error:
        raise Corrupt(
            f"{key} does not say who ran a job: {error}.", help="Delete it to begin the job anew."
        ) from error


def _intent_of(session: Session, attempt: Attempt) -> Intent | None:
    try:
        return read_intent(session.metered(Ledger()), attempt.intent)
    except (Absent, InvalidArgument):
        return None


def _require_over(session: Session, last: Attempt, intent: Intent | None) -> None:
    if last.ended:
        return
    if last.place == _place():
        pid = last.process.split("/", 1)[0]
        if _process(int(pid)) == last.process:
            raise _running(last.name, f"is running in process {pid}")
        return
    heard = last.began if intent is None else max(last.began, intent.heartbeat)
    silent = (session.runtime.now() - heard) / 1e6
    if silent < _SILENT:
        host = last.place.split("/", 1)[0]
        raise _running(last.name, f"was heard of {silent:.0f} s ago on {host}")


def _running(name: str, how: str) -> JobRunning:
    return JobRunning(f"The job {name!r} {how}.")


def _place() -> str:
    """Where a process number has a meaning: a boot of a machine, and on it the processes that see
    each other."""
    told = [socket.gethostname()]
    with contextlib.suppress(OSError):
        told.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip())
        told.append(str(Path("/proc/self/ns/pid").readlink()))
    return "/".join(told)


def _process(pid: int) -> str:
    """A running process, by its number and start time, because numbers are used again; "" if there
    is none."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    try:
        told = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return str(pid)
    state, *fields = told.rsplit(")", 1)[1].split()
    return "" if state in "ZX" else f"{pid}/{fields[18]}"


def base_of(
    session: Session, intent: Intent, head: GraphVersion, ledger: Ledger
) -> GraphVersion | None:
    """The version that an earlier run was pinned to. None if its staged files may be gone, or the
    branch is another one by now."""
    if intent.created_at <= head.gc_cutoff or not intent.pins:
        return None
    (pin,) = intent.pins
    try:
        base = session.read_version(pin.branch, pin.version, ledger)
    except Absent:
        return None
    if pin.branch != head.branch:  # the branch was created from that version
        return head
    return base if base.incarnation == head.incarnation == pin.incarnation else None
