"""Owns the objects of jobs beside a graph: each is written by one process, so that conditional puts
decide everything.

`__job/<ulid>.json` says what is asked for, once. `__job/<ulid>.run-<n>.json` is claimed by being
created; its creator alone writes it again, with progress and the end. `__job/<ulid>.cancel.json`
asks whoever runs it to stop. What they say is data: nothing here acts on it.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from omnigraph.errors import InvalidArgument, JobNotFound
from omnigraph.model.stored_text import UNDECODABLE, Moment, Number, Ulid
from omnigraph.runtime import is_ulid
from omnigraph.store.encoding import encode_readable
from omnigraph.store.objects import Absent, Ambiguous, ObjectStore

PREFIX = "__job/"
LARGEST = 1 << 20
MOST_RUNS = 999
JobKind = Literal[
    "load", "export", "optimize", "cleanup", "verify", "algorithm", "resume", "discard"
]
RunState = Literal["running", "done", "failed", "cancelled"]
_Short = Annotated[str, Meta(max_length=1000)]
_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_NAME = re.compile(r"([0-9A-HJKMNP-TV-Z]{26})(?:\.(cancel)|\.run-([0-9]{3}))?\.json")


class JobRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What somebody asked for. `arguments` are checked by whoever runs it."""

    format: Literal[1] = 1
    id: Ulid
    kind: JobKind
    created_at: Moment
    arguments: dict[_Short, Any] = {}
    actor: _Short | None = None


class JobRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One try. `token` is that of its process; `done` of `total` steps, `doing` the next one."""

    token: Ulid
    state: RunState = "running"
    began_at: Moment
    heartbeat: Moment
    done: Number = 0
    total: Number | None = None
    doing: _Short = ""
    result: dict[_Short, Any] | None = None
    problem: dict[_Short, Any] | None = None


class CancelRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    at: Moment
    actor: _Short | None = None


@dataclass
class JobObjects:
    """What lies there of one job; without `request` it cannot be read, and `problem` says why."""

    id: str
    request: JobRequest | None = None
    runs: dict[int, JobRun] = field(default_factory=dict)
    cancel: CancelRequest | None = None
    heard: int = 0
    problem: str = ""

    @property
    def last(self) -> int:
        return max(self.runs, default=0)


_REQUESTS = msgspec.json.Decoder(JobRequest)  # made before there are threads
_RUNS = msgspec.json.Decoder(JobRun)
_CANCELS = msgspec.json.Decoder(CancelRequest)


def id_of_key(key: str) -> str:
    """The id of the job that was asked for with an idempotency key: the same for the same key."""
    number = int.from_bytes(hashlib.sha256(key.encode()).digest()[:16], "big")
    return "".join(_LETTERS[(number >> shift) & 31] for shift in range(125, -1, -5))


def request_key(id: str) -> str:
    if not is_ulid(id):
        raise JobNotFound(f"{id!r} is not the id of a job.")
    return f"{PREFIX}{id}.json"


def run_key(id: str, run: int) -> str:
    return request_key(id).removesuffix(".json") + f".run-{run:03d}.json"


def cancel_key(id: str) -> str:
    return request_key(id).removesuffix(".json") + ".cancel.json"


def job_of(key: str) -> str | None:
    """The job that an object belongs to, by its form."""
    found = _NAME.fullmatch(key.removeprefix(PREFIX)) if key.startswith(PREFIX) else None
    return None if found is None else found[1]


def write_request(objects: ObjectStore, request: JobRequest) -> JobRequest | None:
    """None if it is written down now; the request that has this id already, if there is one."""
    data = encode_readable(request, _REQUESTS, f"The {request.kind} job")
    if len(data) > LARGEST:
        raise InvalidArgument(f"The arguments of a job have at most {LARGEST:,} bytes.")
    key = request_key(request.id)
    try:
        if objects.put_if_absent(key, data):
            return None
    except Ambiguous:
        try:
            if objects.get(key) == data:
                return None
        except Absent:
            objects.put(key, data)
            return None
    return _REQUESTS.decode(objects.get(key))


def claim_run(objects: ObjectStore, id: str, run: int, first: JobRun) -> bool:
    """Whether this process is the one that does this run."""
    key = run_key(id, run)
    try:
        if objects.put_if_absent(key, msgspec.json.encode(first)):
            return True
    except Ambiguous:
        pass
    try:
        return _RUNS.decode(objects.get(key)).token == first.token
    except (Absent, *UNDECODABLE):
        return False


def write_run(objects: ObjectStore, id: str, run: int, state: JobRun) -> None:
    """Only by who claimed it."""
    objects.put(run_key(id, run), encode_readable(state, _RUNS, "What a job came to"))


def ask_cancel(objects: ObjectStore, id: str, request: CancelRequest) -> None:
    """Who asks first has asked."""
    key, data = cancel_key(id), msgspec.json.encode(request)
    try:
        objects.put_if_absent(key, data)
    except Ambiguous:
        objects.put(key, data)


def is_asked_to_cancel(objects: ObjectStore, id: str) -> bool:
    return objects.exists(cancel_key(id))


def read_job(objects: ObjectStore, id: str) -> JobObjects:
    """Raises `JobNotFound`."""
    stem = request_key(id).removesuffix(".json")
    for found in list_jobs(objects, only=stem.removeprefix(PREFIX)):
        return found
    raise JobNotFound(f"There is no job {id}.")


def list_jobs(objects: ObjectStore, only: str | None = None) -> list[JobObjects]:
    """Oldest first."""
    found: dict[str, JobObjects] = {}
    for file in objects.files(PREFIX):
        match = _NAME.fullmatch(file.key.removeprefix(PREFIX))
        if match is None or (only is not None and match[1] != only):
            continue  # not ours
        job = found.setdefault(match[1], JobObjects(match[1]))
        if file.size > LARGEST:
            job.problem = f"{file.key} has {file.size:,} bytes"
            continue
        try:
            data = objects.get(file.key)
            if match[2]:
                job.cancel = _CANCELS.decode(data)
            elif match[3]:
                job.runs[int(match[3])] = _RUNS.decode(data)
                job.heard = max(job.heard, file.modified)
            else:
                job.request = _REQUESTS.decode(data)
                if job.request.id != job.id:
                    job.request, job.problem = None, f"{file.key} is of another job"
        except Absent:
            continue
        except UNDECODABLE as error:
            job.problem = f"{file.key} cannot be read: {error}"
    for job in found.values():
        if job.request is None and not job.problem:
            job.problem = "nothing says what it was"
    return [job for _, job in sorted(found.items())]
