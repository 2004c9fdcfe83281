"""Owns the journal of a job: the answers of finished tasks, each under a digest of the task's
arguments.

The next run of the job takes the answer and skips the work.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, TypeVar

import msgspec
import numpy as np

from omnigraph.errors import Corrupt, StoreFailure
from omnigraph.model.stored_text import UNDECODABLE
from omnigraph.settings import Settings
from omnigraph.store.objects import Absent, Ambiguous, ObjectStore
from omnigraph.store.roots import Root

S = TypeVar("S", bound=msgspec.Struct)
_TRIES = 3
_ONE = threading.Lock()
_DECODERS: dict[type, msgspec.json.Decoder[Any]] = {}


def digest(*given: Any) -> str:
    """The same for equal values, in this process and in every other."""
    data = msgspec.msgpack.encode(given, enc_hook=_plain, order="deterministic")
    return hashlib.sha256(data).hexdigest()[:32]


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [value.dtype.str, hashlib.sha256(np.ascontiguousarray(value).data).digest()]
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no digest")


def _decoder(kind: type[S]) -> msgspec.json.Decoder[Any]:
    """One thread at a time: msgspec finds out about a type when it is first decoded, and crashes
    if two threads do that at once."""
    with _ONE:
        if kind not in _DECODERS:
            _DECODERS[kind] = msgspec.json.Decoder(list[kind])  # type: ignore[valid-type]
        return _DECODERS[kind]


def create(objects: ObjectStore, key: str, data: bytes) -> bool:
    """Whether the object is there with these bytes now. If the answer of the store is lost, the
    object is looked up; if nothing landed, the same bytes are put again."""
    for _ in range(_TRIES):
        try:
            if objects.put_if_absent(key, data):
                return True
        except Ambiguous:
            pass
        try:
            return objects.get(key) == data
        except Absent:
            continue
    raise StoreFailure(f"{key} could not be written, and nobody else wrote it.")


@dataclass(frozen=True)
class Journal:
    """Entries lie beside the graph, where executors and the next driver find them. `known` are the
    names of entries of an earlier run."""

    root: Root
    prefix: str
    settings: Settings
    known: frozenset[str] = frozenset()

    def look(self) -> Journal:
        """Reads the names of all existing entries."""
        keys = self.root.objects(self.settings).list(f"{self.prefix}/")
        names = (key.rsplit("/", 1)[1].removesuffix(".json") for key in keys)
        return replace(self, known=frozenset(names))

    def read(self, name: str, kind: type[S]) -> list[S] | None:
        try:
            data = self.root.objects(self.settings).get(self._key(name))
        except Absent:
            return None
        try:
            answers: list[S] = _decoder(kind).decode(data)
        except UNDECODABLE as error:
            raise Corrupt(
                f"{self._key(name)} does not say what a task came to: {error}.",
                help="Delete it, and the task runs again.",
            ) from error
        return answers

    def recall(self, name: str, kind: type[S]) -> list[S] | None:
        """The answer that an earlier run left under this name."""
        return self.read(name, kind) if name in self.known else None

    def note(self, name: str, answers: Sequence[S], kind: type[S]) -> list[S]:
        """Returns the entry that is there now. If a task is attempted twice, the answer of the
        first attempt to finish holds for both, and the other answer is never read."""
        objects = self.root.objects(self.settings)
        created = create(objects, self._key(name), msgspec.json.encode(answers))
        held = None if created else self.read(name, kind)
        return list(answers) if held is None else held

    def once(self, name: str, kind: type[S], work: Callable[[], Iterator[S]]) -> list[S]:
        """The answers of a task, which runs unless it has run before."""
        held = self.recall(name, kind)
        return self.note(name, list(work()), kind) if held is None else held

    def once_one(self, name: str, kind: type[S], work: Callable[[], S]) -> S:
        """The same for a task with a single answer."""
        return self.only(name, self.once(name, kind, lambda: iter([work()])))

    def only(self, name: str, answers: Sequence[S]) -> S:
        if len(answers) != 1:
            raise Corrupt(
                f"{self._key(name)} has {len(answers)} answers instead of one.",
                help="Delete it, and the task runs again.",
            )
        return answers[0]

    def _key(self, name: str) -> str:
        return f"{self.prefix}/{name}.json"
