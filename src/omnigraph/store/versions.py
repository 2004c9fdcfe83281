"""Owns the chains of graph versions: names, encoding, finding the head, and the one put."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, unquote

import msgspec
import xxhash

from omnigraph.errors import (
    Corrupt,
    GraphNotFound,
    InvalidBranchName,
    NewerFormat,
    OlderFormat,
    OmnigraphError,
)
from omnigraph.model.formats import lift
from omnigraph.model.stored_text import UNDECODABLE
from omnigraph.model.version import FORMAT, OLDEST_FORMAT, GraphStamp, GraphVersion
from omnigraph.runtime import SYSTEM, Runtime
from omnigraph.store.encoding import encode_readable
from omnigraph.store.objects import Absent, Ambiguous, Gone, ObjectStore, Unsettled
from omnigraph.store.version_files import version_file

STAMP_KEY = "_graph.json"
_TOP = 2**64 - 1
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_MOST_PACKED = 10_000
_COMPRESS_ABOVE = 4096
_LONGEST_NAME = 200
_WALK = 8
_PAGE = 1000
_VERSION_NAME = re.compile(r"[0-9]{20}\.json")
_ATTEMPTS = 8
_SUM = b',"sum":"'
_SUM_SIZE = len(_SUM) + 16 + len(b'"}')
_PAUSE = 0.1

T = TypeVar("T", GraphVersion, GraphStamp)


def encode_branch(name: str) -> str:
    """One path segment for any name, including `.` and `..`, which have a meaning in paths."""
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


def named_branches(groups: Iterable[str]) -> list[str]:
    """The branches with these folders, sorted. A folder of another form is not ours."""
    found = []
    for group in groups:
        name = unquote(group)
        with contextlib.suppress(InvalidBranchName):
            if encode_branch(name) == group:
                found.append(name)
    return sorted(found)


def version_key(branch: str, version: int) -> str:
    """Numbers are reversed, so that the newest name sorts first."""
    return f"__manifest/{encode_branch(branch)}/{_TOP - version:020d}.json"


def is_version(key: str) -> bool:
    """By the form of the name: anything else is not ours."""
    return _VERSION_NAME.fullmatch(key.rsplit("/", 1)[1]) is not None


def version_number(key: str) -> int:
    return _TOP - int(key.rsplit("/", 1)[1].removesuffix(".json"))


def encode_version(version: GraphVersion) -> bytes:
    what = f"Version {version.version} of {version.branch!r}"
    data = _with_sum(encode_readable(version, _DECODERS[GraphVersion], what))
    if len(data) <= _COMPRESS_ABOVE:
        return data
    # The size goes first, because the decompressor has to know it.
    import pyarrow as pa

    packed: bytes = pa.compress(data, codec="zstd", asbytes=True)
    return len(data).to_bytes(4, "big") + packed


def decode_version(data: bytes, key: str) -> GraphVersion:
    return _decode(_without_sum(_unpack(data, key), key), GraphVersion, key)


def _with_sum(data: bytes) -> bytes:
    """Adds a checksum of everything before it, as the last field (decision 37)."""
    return data[:-1] + _SUM + xxhash.xxh3_64_hexdigest(data).encode() + b'"}'


def _without_sum(data: bytes, key: str) -> bytes:
    """Versions from before there were checksums have none."""
    if data[-_SUM_SIZE : len(_SUM) - _SUM_SIZE] != _SUM:
        return data
    body = data[:-_SUM_SIZE] + b"}"
    if xxhash.xxh3_64_hexdigest(body).encode() != data[-18:-2]:
        raise Corrupt(f"{key} is not what was written: its checksum is another.")
    return body


def _unpack(data: bytes, key: str) -> bytes:
    if data[4:8] != _ZSTD_MAGIC:
        return data
    import pyarrow as pa

    size = int.from_bytes(data[:4], "big")
    if size > _MOST_PACKED * len(data):  # memory is allocated before a byte is unpacked
        raise Corrupt(f"The graph version {key} cannot be unpacked: {size} bytes cannot be in it.")
    try:
        unpacked: bytes = pa.decompress(
            data[4:],
            decompressed_size=size,
            codec="zstd",
            asbytes=True,
        )
    except (OSError, pa.ArrowException) as error:
        raise Corrupt(f"The graph version {key} cannot be unpacked: {error}.") from error
    return unpacked


def _decode(data: bytes, kind: type[T], key: str) -> T:
    try:
        stamp = _FORMAT_DECODER.decode(data)
    except UNDECODABLE as error:
        raise Corrupt(f"{key} is not readable ({len(data)} bytes): {error}.") from error
    _require_known(stamp.format, key)
    try:
        if stamp.format < FORMAT and kind is GraphVersion:
            held: T = msgspec.convert(lift(msgspec.json.decode(data), to=FORMAT), type=kind)
        else:
            held = _DECODERS[kind].decode(data)
    except UNDECODABLE as error:
        raise Corrupt(f"{key} is not a {kind.__name__}: {error}.") from error
    if isinstance(held, GraphVersion):
        _require_ordered(held, key)
    return held


def convert_version(fields: dict[str, Any], key: str) -> GraphVersion:
    """A version from its JSON, written in any format."""
    try:
        _require_known(fields.get("format", 0), key)
        held = msgspec.convert(lift(fields, to=FORMAT), type=GraphVersion)
    except UNDECODABLE as error:
        raise Corrupt(f"{key} does not hold versions: {error}.") from error
    _require_ordered(held, key)
    return held


def _require_ordered(version: GraphVersion, key: str) -> None:
    """Numbers that a version gives for its chain may not be above its own, because loops run up to
    them."""
    for name in ("first", "floor", "folded", "forgotten"):
        if (number := getattr(version, name)) > version.version:
            raise Corrupt(f"{key}, version {version.version}, says {number} for {name!r}.")
    if max(version.kept, default=0) > version.version:
        raise Corrupt(f"{key}, version {version.version}, keeps versions that come after it.")


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
    """TAKEN carries the foreign version that holds the number, which proves that ours did not
    land."""

    put: Put
    taken_by: GraphVersion | None = None
    reason: str = ""


class Versions:
    """The graph versions of one root. It has no state: callers keep what they have seen."""

    def __init__(self, objects: ObjectStore, runtime: Runtime = SYSTEM) -> None:
        self._objects = objects
        self._runtime = runtime

    def read_stamp(self) -> GraphStamp:
        return _decode(self._objects.get(STAMP_KEY), GraphStamp, STAMP_KEY)

    def write_stamp(self, stamp: GraphStamp, *, after: Sequence[Path] = ()) -> bool:
        """False means that there is one already. This also proves that the store keeps the promise
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
        """The format in which a version was written, whatever this program converts it to."""
        key = version_key(branch, version)
        try:
            data = _unpack(self._objects.get(key), key)
            return _FORMAT_DECODER.decode(data).format
        except UNDECODABLE as error:
            raise Corrupt(f"{key} is not readable: {error}.") from error

    def find_head(self, branch: str) -> int:
        """The number of the newest version. Raises `Absent`."""
        return self._list_newest(branch)[0]

    def read_head(self, branch: str) -> GraphVersion:
        """The newest version, found cold: by the highest name, with nothing missing below it
        (hazard 27). Raises `Absent` when the branch never existed."""
        known: tuple[int, int] | None = None
        while True:
            numbers = self._list_newest(branch)
            newest = missing = numbers[0]
            try:
                head = self.read(branch, newest)
            except Absent:
                pass  # perhaps a ghost that its writer has removed
            else:
                gap = _first_gap(numbers, head)
                if gap is None:
                    return head
                missing = gap
            if known == (newest, missing):
                raise Corrupt(
                    f"Version {missing} of the branch {branch!r} is missing "
                    f"({version_key(branch, missing)}): the branch goes on to version {newest}.",
                    help="Bring the object back from a copy. Nothing is written until then.",
                )
            known = newest, missing  # otherwise it has left the chain since it was listed

    def read_newer(self, known: GraphVersion) -> GraphVersion:
        """The head, given a recent head: one probe if nothing moved."""
        newest = known
        for _ in range(_WALK):
            try:
                newest = self._read_next(newest)
            except Absent:
                if not self._is_passed(newest):
                    return newest
        return self._read_far(newest)

    def _read_next(self, version: GraphVersion) -> GraphVersion:
        """The version directly after a known one. Raises `Absent`."""
        found = self.read(version.branch, version.version + 1)
        if found.graph != version.graph:
            raise another_graph()
        begins = found.first == found.version
        if not begins and found.commit.parents[:1] != (version.commit.id,):
            raise Corrupt(
                f"{version_key(found.branch, found.version)} does not follow on version "
                f"{version.version} of {version.branch!r}, commit {version.commit.id}."
            )
        return found

    def _is_passed(self, version: GraphVersion) -> bool:
        """Whether later versions exist although the next one did not exist a moment ago."""
        numbers = (version.version + 2, version.version + 3)
        beyond = self._objects.glance([version_key(version.branch, n) for n in numbers])
        return beyond is not None and any(beyond)

    def _read_far(self, known: GraphVersion) -> GraphVersion:
        """The head, if it is far ahead of a known version. On a disk numbers are probed in growing
        steps, because a listing is as long as the chain."""
        if self._objects.glance([]) is None:
            return self.read_head(known.branch)
        low, step = known.version, 1
        while self._is_there(known.branch, low + step):
            low, step = low + step, 2 * step
        high = low + step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._is_there(known.branch, middle) else (low, middle)
        found = known if low == known.version else self.read(known.branch, low)
        return self.read_head(known.branch) if self._is_passed(found) else found

    def _is_there(self, branch: str, number: int) -> bool:
        seen = self._objects.glance([version_key(branch, number)])
        return seen is not None and seen[0]

    def _list_newest(self, branch: str) -> list[int]:
        """The newest numbers of a chain, newest first, as many as one request lists."""
        keys = self._objects.list(f"__manifest/{encode_branch(branch)}/", limit=_PAGE)
        numbers = [version_number(key) for key in keys if is_version(key)]
        if not numbers:
            raise Absent(branch)
        return numbers

    def list_branches(self) -> list[str]:
        """Every branch that ever existed, including deleted ones."""
        return named_branches(self._objects.groups("__manifest/"))

    def put(
        self, version: GraphVersion, *, after: Sequence[Path] = (), base: GraphVersion | None = None
    ) -> PutOutcome:
        """The commit point, on top of `base` where that is known. After a lost answer the same
        bytes are put at the same key again, because the first put may still be under way. Only a
        foreign version proves that ours lost. An error is raised only when nothing of ours can be
        under way."""
        key = version_key(version.branch, version.version)
        data = encode_version(version)
        lost = ""
        if self._is_overtaken(version, base):
            return PutOutcome(Put.TAKEN, taken_by=self.read_head(version.branch))
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

    def _is_overtaken(self, version: GraphVersion, base: GraphVersion | None) -> bool:
        """Whether this number was there, and is lost or has left the chain, as far as that takes no
        request. Raises `Gone` if what the base names is not there: the graph was deleted, and
        perhaps another one was made at its place."""
        key, after_this = (version_key(version.branch, version.version + n) for n in (0, 1))
        pins = () if base is None else base.tables[:1]
        named = [version_file(pin.location, pin.lance_version) for pin in pins]
        seen = self._objects.glance([after_this, key, *named])
        if seen is None:
            return False
        if not all(seen[2:]):
            raise Gone(f"{named[0]} is gone")
        return tuple(seen[:2]) == (True, False)

    def _back_off(self, attempt: int) -> None:
        """At once after the first lost answer, then with growing pauses: a busy store, or a broken
        network, needs time and not attempts."""
        if attempt > 1:
            jitter = 0.5 + self._runtime.random() / 2
            self._runtime.sleep(_PAUSE * 2 ** (attempt - 2) * jitter)

    def delete_ghost(self, version: GraphVersion) -> None:
        """Removes a version of ours whose number cleanup had already passed."""
        self._objects.delete(version_key(version.branch, version.version))


def another_graph() -> GraphNotFound:
    return GraphNotFound(
        "The graph that was opened was deleted since, and what is at its place is another one.",
        help="Open it anew. Nothing was changed.",
    )


def _first_gap(numbers: Sequence[int], head: GraphVersion) -> int | None:
    """The newest missing number between the head and the bottom of its chain, as far as the numbers
    were listed."""
    lowest = max(head.bottom, numbers[-1])
    for listed, expected in zip(numbers, range(head.version, lowest - 1, -1), strict=False):
        if listed != expected:
            return expected
    return None
