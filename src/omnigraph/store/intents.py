"""Owns intents: the plan of a long operation, written before it begins.

Cleanup spares what an intent needs. A damaged intent is shown and never touched.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from omnigraph.errors import IntentNotFound, InvalidArgument
from omnigraph.model.stored_text import UNDECODABLE, BranchName, Moment, Number
from omnigraph.model.version import ForkPoint
from omnigraph.runtime import is_ulid
from omnigraph.store.encoding import encode_readable
from omnigraph.store.jobs import is_folder
from omnigraph.store.objects import Absent, ObjectStore

PREFIX = "__recovery/"
FORMAT = 1
LOCAL = "local"
"""The detail `engine` of operations in one process: without a plan nobody can continue them."""
PIN = "pin"
"""The kind of an intent that only keeps versions in place while something is bound to them."""


FILES = "files"
"""The detail with the name of its folder beside the graph, if it has one."""
ELSEWHERE = "pieces"
"""The value of that detail if the folder is on its own machine."""


class Intent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`heartbeat` is when it was last known to be alive; both times are in microseconds by the
    clock of its writer. `pins` are versions that it needs. `operation` is that of the commit it
    will make on `branch`, whose head was `base` when it began. `plan` is the unpublished rest as
    JSON, once everything is staged."""

    format: int = FORMAT
    id: str
    kind: str
    created_at: Moment
    heartbeat: Moment
    actor: str | None = None
    branch: BranchName | None = None
    base: Number | None = None
    incarnation: Number | None = None
    operation: str | None = None
    pins: tuple[ForkPoint, ...] = ()
    plan: str | None = None
    details: dict[str, str] = {}


@dataclass(frozen=True)
class KnownIntent:
    """An intent in the store. Without `intent` it cannot be read, and `problem` says why."""

    id: str
    key: str
    modified: int
    intent: Intent | None
    problem: str = ""


_DECODER = msgspec.json.Decoder(Intent)  # made before there are threads: see `store.versions`


def intent_key(id: str) -> str:
    if not is_ulid(id):
        raise InvalidArgument(f"{id!r} is not the id of an operation.", help=IntentNotFound.help)
    return f"{PREFIX}{id}.json"


def write_intent(objects: ObjectStore, intent: Intent) -> None:
    """Also used to write it again, with a newer heartbeat or a plan."""
    key = intent_key(intent.id)
    objects.put(key, encode_readable(intent, _DECODER, f"The intent of the {intent.kind}"))


def read_intent(objects: ObjectStore, id: str) -> Intent:
    """Raises `Absent`, or `InvalidArgument` if there is something other than an intent."""
    data = objects.get(intent_key(id))
    try:
        intent = _DECODER.decode(data)
    except UNDECODABLE as error:
        raise InvalidArgument(str(error)) from error
    if intent.id != id or intent.format > FORMAT:
        raise InvalidArgument(f"it is {intent.id} in format {intent.format}")
    files = intent.details.get(FILES, ELSEWHERE)
    if files != ELSEWHERE and not is_folder(files):
        raise InvalidArgument(f"its files are in {files!r}, which is no folder of a job")
    return intent


def list_intents(objects: ObjectStore) -> list[KnownIntent]:
    """Oldest first."""
    known = []
    for file in objects.files(PREFIX):
        name = file.key.removeprefix(PREFIX)
        if not (name.endswith(".json") and is_ulid(name.removesuffix(".json"))):
            continue  # not ours
        name = name.removesuffix(".json")
        try:
            intent = read_intent(objects, name)
            known.append(KnownIntent(name, file.key, file.modified, intent))
        except Absent:
            continue
        except InvalidArgument as error:
            known.append(KnownIntent(name, file.key, file.modified, None, str(error)))
    return known


def delete_intent(objects: ObjectStore, id: str) -> None:
    objects.delete(intent_key(id))
