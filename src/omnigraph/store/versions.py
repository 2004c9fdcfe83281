"""Owns the chains of graph versions: names, encoding, finding the head, and the one put."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, unquote

import msgspec
import pyarrow as pa

from omnigraph.errors import (
    Corrupt,
    InvalidBranchName,
    NewerFormat,
    OlderFormat,
    OmnigraphError,
)
from omnigraph.model.formats import lift
from omnigraph.model.version import FORMAT, OLDEST_FORMAT, GraphStamp, GraphVersion
from omnigraph.runtime import SYSTEM, Runtime
from omnigraph.store.objects import Absent, Ambiguous, ObjectStore, Unsettled

STAMP_KEY = "_graph.json"
_TOP = 2**64 - 1
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_COMPRESS_ABOVE = 4096
_LONGEST_NAME = 200
_WALK = 8
_ATTEMPTS = 8
_PAUSE = 0.1

T = TypeVar("T", GraphVersion, GraphStamp)


def encode_branch(name: str) -> str:
    """One path segment for any name; `.` and `..` too, which a path would swallow."""
    if not isinstance(name, str) or not name:
        raise InvalidBranchName("A branch needs a name.")
    return _segment(name)


@functools.lru_cache(maxsize=1024)
def _segment(name: str) -> str:
    try:
        encoded = quote(name, safe="").replace("~", "%7E")
    except UnicodeEncodeError:
        raise InvalidBranchName(f"The branch name {name!r} is not a text.") from None
    if encoded.strip(".") == "":
        encoded = encoded.replace(".", "%2E")
    if len(encoded) > _LONGEST_NAME:
        raise InvalidBranchName(
            f"The branch name {name[:40]!r}… is too long: {len(encoded)} bytes encoded, "
            f"{_LONGEST_NAME} allowed."
        )
    return encoded


def version_key(branch: str, version: int) -> str:
    """Numbers are reversed, so that the newest name sorts first."""
    return f"__manifest/{encode_branch(branch)}/{_TOP - version:020d}.json"


def version_number(key: str) -> int:
    return _TOP - int(key.rsplit("/", 1)[1].removesuffix(".json"))


def encode_version(version: GraphVersion) -> bytes:
    data = msgspec.json.encode(version)
    if len(data) <= _COMPRESS_ABOVE:
        return data
    # The size goes first, because the decompressor has to know it.
    packed: bytes = pa.compress(data, codec="zstd", asbytes=True)
    return len(data).to_bytes(4, "big") + packed


def decode_version(data: bytes, key: str) -> GraphVersion:
    return _decode(_unpack(data, key), GraphVersion, key)


def _unpack(data: bytes, key: str) -> bytes:
    if data[4:8] != _ZSTD_MAGIC:
        return data
    try:
        unpacked: bytes = pa.decompress(
            data[4:],
            decompressed_size=int.from_bytes(data[:4], "big"),
            codec="zstd",
            asbytes=True,
        )
    except (OSError, pa.ArrowException) as error:
        raise Corrupt(f"The graph version {key} cannot be unpacked: {error}.") from error
    return unpacked


def _decode(data: bytes, kind: type[T], key: str) -> T:
    try:
        stamp = _FORMAT_DECODER.decode(data)
    except msgspec.DecodeError as error:
        raise Corrupt(f"{key} is not readable ({len(data)} bytes): {error}.") from error
    _require_known(stamp.format, key)
    try:
        if stamp.format < FORMAT and kind is GraphVersion:
            return msgspec.convert(lift(msgspec.json.decode(data), to=FORMAT), type=kind)
        held: T = _DECODERS[kind].decode(data)
        return held
    except msgspec.DecodeError as error:
        raise Corrupt(f"{key} is not a {kind.__name__}: {error}.") from error


def convert_version(fields: dict[str, Any], key: str) -> GraphVersion:
    """A version from what JSON has of it, written in whatever format."""
    _require_known(fields.get("format", 0), key)
    try:
        return msgspec.convert(lift(fields, to=FORMAT), type=GraphVersion)
    except msgspec.ValidationError as error:
        raise Corrupt(f"{key} does not hold versions: {error}.") from error


def _require_known(format: int, key: str) -> None:
    if format < OLDEST_FORMAT:
        raise OlderFormat(
            f"{key} has format {format}; this program reads {OLDEST_FORMAT} to {FORMAT}."
        )
    if format > FORMAT:
        raise NewerFormat(f"{key} has format {format}; this program knows up to {FORMAT}.")


class _OnlyFormat(msgspec.Struct):
    format: int


# Made once, before there are threads: msgspec finds out about a type when it is first decoded, and
# crashes if two threads do that at the same time.
_FORMAT_DECODER = msgspec.json.Decoder(_OnlyFormat)
_DECODERS: dict[type, msgspec.json.Decoder[Any]] = {
    kind: msgspec.json.Decoder(kind) for kind in (GraphVersion, GraphStamp)
}


class Put(Enum):
    LANDED = "landed"
    TAKEN = "taken"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class PutOutcome:
    """TAKEN carries the foreign version that holds the number: proof that ours did not land."""

    put: Put
    taken_by: GraphVersion | None = None
    reason: str = ""


class Versions:
    """The graph versions of one root. Holds no state: callers keep what they have seen."""

    def __init__(self, objects: ObjectStore, runtime: Runtime = SYSTEM) -> None:
        self._objects = objects
        self._runtime = runtime

    def read_stamp(self) -> GraphStamp:
        return _decode(self._objects.get(STAMP_KEY), GraphStamp, STAMP_KEY)

    def write_stamp(self, stamp: GraphStamp, *, after: Sequence[Path] = ()) -> bool:
        """False when there already is one: which also proves that the store keeps the promise
        of put-if-absent, because writing the same stamp twice must fail the second time."""
        return self._objects.put_if_absent(STAMP_KEY, msgspec.json.encode(stamp), after=after)

    def read(self, branch: str, version: int) -> GraphVersion:
        """Raises `Absent`."""
        key = version_key(branch, version)
        found = decode_version(self._objects.get(key), key)
        if (found.branch, found.version) != (branch, version):
            raise Corrupt(f"{key} holds version {found.version} of branch {found.branch!r}.")
        return found

    def read_format(self, branch: str, version: int) -> int:
        """The format that a version was written in, whatever this program makes of it."""
        key = version_key(branch, version)
        try:
            data = _unpack(self._objects.get(key), key)
            return _FORMAT_DECODER.decode(data).format
        except msgspec.DecodeError as error:
            raise Corrupt(f"{key} is not readable: {error}.") from error

    def find_head(self, branch: str) -> int:
        """The number of the newest version. Raises `Absent`."""
        return self._find_head(branch, at_least=1)

    def read_head(self, branch: str) -> GraphVersion:
        """The newest version, found cold. Raises `Absent` when the branch never existed."""
        return self.read(branch, self._find_head(branch, at_least=1))

    def read_newer(self, known: GraphVersion) -> GraphVersion:
        """The head, given one that was the head a moment ago: one probe when nothing moved."""
        newest = known
        for _ in range(_WALK):
            try:
                newest = self.read(known.branch, newest.version + 1)
            except Absent:
                return newest
        number = self._find_head(known.branch, at_least=newest.version)
        return newest if number <= newest.version else self.read(known.branch, number)

    def list_branches(self) -> list[str]:
        """Every branch that ever was, tombstones included."""
        return sorted(unquote(name) for name in self._objects.groups("__manifest/"))

    def put(self, version: GraphVersion, *, after: Sequence[Path] = ()) -> PutOutcome:
        """The commit point. After a lost answer the same bytes go to the same key again, because
        the first put may still be on its way: only a foreign version proves that it lost. An
        error is raised only while nothing of ours can be on its way."""
        key = version_key(version.branch, version.version)
        data = encode_version(version)
        lost = ""
        for attempt in range(_ATTEMPTS):
            self._back_off(attempt)
            try:
                if self._objects.put_if_absent(key, data, after=after):
                    return PutOutcome(Put.LANDED)
            except Ambiguous as error:
                lost = str(error)
            except Unsettled as error:
                return PutOutcome(Put.UNKNOWN, reason=error.message)
            except OmnigraphError:
                if not lost:
                    raise
                continue
            try:
                found = self.read(version.branch, version.version)
            except Absent:
                # Some stores answer "exists" to the losers of a race that nobody won.
                continue
            except OmnigraphError as error:
                if not lost or isinstance(error, NewerFormat):  # which ours is not
                    raise
                continue
            if found.token == version.token:
                return PutOutcome(Put.LANDED)
            return PutOutcome(Put.TAKEN, taken_by=found)
        return PutOutcome(
            Put.UNKNOWN,
            reason=lost or "the store says that the key is taken, and that it is absent",
        )

    def _back_off(self, attempt: int) -> None:
        """At once after the first lost answer, and then later and later: a store that is busy, or
        a network that is cut, needs seconds and not tries."""
        if attempt > 1:
            jitter = 0.5 + self._runtime.random() / 2
            self._runtime.sleep(_PAUSE * 2 ** (attempt - 2) * jitter)

    def delete_ghost(self, version: GraphVersion) -> None:
        """Removes a version of ours that won a number which cleanup had already passed."""
        self._objects.delete(version_key(version.branch, version.version))

    def _find_head(self, branch: str, *, at_least: int) -> int:
        return self._objects.last(
            f"__manifest/{encode_branch(branch)}/",
            lambda number: version_key(branch, number),
            version_number,
            at_least=at_least,
        )
