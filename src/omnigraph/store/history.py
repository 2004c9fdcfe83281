"""Owns the archive of a branch: graph versions that left the chain, columnar, found by number, by
commit and by time with few requests.

A segment is one Arrow stream for a stretch of numbers, named by them and never changed, so it needs
no pin: a number of a branch means one version for ever. Segments may overlap (two cleanups at
once); what they hold for a number is the same. Small ones are written together, and go once a
larger one holds all that they hold.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from omnigraph.errors import Corrupt
from omnigraph.model.version import GraphVersion
from omnigraph.store.history_steps import Fields
from omnigraph.store.objects import Absent, Ambiguous, ObjectStore
from omnigraph.store.versions import convert_version, encode_branch, version_key

SEGMENT = 1024
"""Versions in a segment: what one request of a log brings."""
SMALL_SEGMENTS = 8
"""How many consecutive segments may be incomplete before they are rewritten as one."""
_OPEN = 8
_ENDING = ".arrow.zst"
_NAME = re.compile(r"([0-9]{20})-([0-9]{20})-([0-9A-Z]{26})-([0-9A-Z]{26})" + re.escape(_ENDING))


@dataclass(frozen=True)
class ArchiveSegment:
    """Numbers and commits, from the first and lowest to the last and highest."""

    first: int
    last: int
    low: str
    high: str
    key: str

    def holds(self, number: int) -> bool:
        return self.first <= number <= self.last

    @property
    def size(self) -> int:
        return self.last - self.first + 1


_Rows = list[tuple[Fields, int | None]]


def archive_prefix(branch: str) -> str:
    return f"__history/{encode_branch(branch)}/"


def lost_version(branch: str, number: int) -> Corrupt:
    """The error for a version that should exist and is nowhere."""
    return Corrupt(
        f"Version {number} of the branch {branch!r} is missing: there is neither "
        f"{version_key(branch, number)} nor a segment of {archive_prefix(branch)} that holds it."
    )


class Archive:
    """The archived versions of one branch. Keeps a few segments, which never change."""

    def __init__(self, branch: str) -> None:
        self._branch = branch
        self._lock = threading.Lock()
        self._known: list[ArchiveSegment] | None = None
        self._open: OrderedDict[str, _Rows] = OrderedDict()

    def segments(self, objects: ObjectStore, *, fresh: bool = False) -> list[ArchiveSegment]:
        """Oldest first."""
        if self._known is None or fresh:
            listed = map(_segment, objects.list(archive_prefix(self._branch)))
            ours = [segment for segment in listed if segment is not None]
            self._known = sorted(ours, key=lambda one: (one.first, one.last))
        return self._known

    def read(self, objects: ObjectStore, number: int) -> GraphVersion:
        """Raises `Absent`."""
        return self.read_stored(objects, number)[0]

    def covers(self, objects: ObjectStore, numbers: Iterable[int]) -> list[int]:
        """Which of these versions are in the archive at the moment."""
        known = self.segments(objects, fresh=True)
        return [number for number in numbers if any(one.holds(number) for one in known)]

    def find_commit(
        self, objects: ObjectStore, commit: str, *, below: int | None = None
    ) -> GraphVersion | None:
        """The names of segments say which ids they may hold. This takes one listing and almost
        always one segment, because ids grow along a branch (except where it was forwarded)."""
        for segment in self.segments(objects, fresh=True):
            if segment.low <= commit <= segment.high:
                try:
                    rows = self._rows(objects, segment)
                except Absent:  # another has taken its place since
                    return self.find_commit(objects, commit, below=below)
                for place, (fields, _) in enumerate(rows):
                    number = segment.first + place
                    if fields["commit"]["id"] == commit and (below is None or number < below):
                        return self.read(objects, number)
        return None

    def write(
        self,
        objects: ObjectStore,
        versions: Sequence[GraphVersion],
        stored_at: Mapping[int, int] | None = None,
    ) -> None:
        """Versions with consecutive numbers, oldest first, with the times at which the store
        received them."""
        from omnigraph.store.history_rows import encode_rows  # needs Arrow

        for start in range(0, len(versions), SEGMENT):
            part = versions[start : start + SEGMENT]
            ids = [version.commit.id for version in part]
            numbers = f"{part[0].version:020d}-{part[-1].version:020d}"
            key = f"{archive_prefix(self._branch)}{numbers}-{min(ids)}-{max(ids)}{_ENDING}"
            data = encode_rows(part, stored_at or {})
            for _ in range(5):
                with contextlib.suppress(Ambiguous):
                    objects.put_if_absent(key, data)
                if objects.exists(key):
                    break
            else:
                raise Corrupt(f"{key} was written, and is not there.")
        self._known = None

    def check(self, objects: ObjectStore, segment: ArchiveSegment) -> None:
        """Raises `Absent`, or an error about a damaged segment."""
        from omnigraph.store.history_rows import decode_rows  # needs Arrow

        rows = list(decode_rows(objects.get(segment.key), segment.key))
        found = [convert_version(fields, segment.key) for fields, _ in rows]
        told = [(version.branch, version.version) for version in found]
        if told != [(self._branch, n) for n in range(segment.first, segment.last + 1)]:
            raise Corrupt(f"{segment.key} does not hold what its name says.")

    def merge_small(self, objects: ObjectStore) -> int:
        """Rewrites consecutive small segments as large ones, if there are many, and deletes every
        segment that lies within another. Returns how many were deleted."""
        known = self.segments(objects, fresh=True)
        for run in _small_runs(known):
            if len(run) <= SMALL_SEGMENTS:
                continue
            numbers = range(run[0].first, max(one.last for one in run) + 1)
            rows = [self.read_stored(objects, number) for number in numbers]
            times = {v.version: time for v, time in rows if time is not None}
            self.write(objects, [version for version, _ in rows], times)
        known = self.segments(objects, fresh=True)
        spent = [one for one in known if any(_within(one, other) for other in known)]
        for one in spent:
            objects.delete(one.key)
        if spent:
            self._known = None
        return len(spent)

    def read_stored(self, objects: ObjectStore, number: int) -> tuple[GraphVersion, int | None]:
        """A version, and the latest time at which the store can have received it, if known. Raises
        `Absent`."""
        for fresh in (False, True):
            for segment in self.segments(objects, fresh=fresh):
                if not segment.holds(number):
                    continue
                try:
                    fields, time = self._rows(objects, segment)[number - segment.first]
                except Absent:  # another has taken its place
                    continue
                found = convert_version(fields, segment.key)
                if (found.branch, found.version) != (self._branch, number):
                    raise Corrupt(f"{segment.key} holds another version for {number}.")
                return found, time
        raise Absent(f"version {number} of {self._branch}")

    def _rows(self, objects: ObjectStore, segment: ArchiveSegment) -> _Rows:
        from omnigraph.store.history_rows import decode_rows  # needs Arrow

        with self._lock:  # also while it is read: those who read ahead want the same one
            if (rows := self._open.get(segment.key)) is not None:
                self._open.move_to_end(segment.key)
                return rows
            rows = list(decode_rows(objects.get(segment.key), segment.key))
            if len(rows) != segment.size:
                raise Corrupt(f"{segment.key} holds {len(rows)} versions.")
            self._open[segment.key] = rows
            while len(self._open) > _OPEN:
                self._open.popitem(last=False)
            return rows


def _segment(key: str) -> ArchiveSegment | None:
    """None for a name of another form."""
    found = _NAME.fullmatch(key.rsplit("/", 1)[1])
    if found is None:
        return None
    first, last, low, high = found.groups()
    return ArchiveSegment(int(first), int(last), low, high, key)


def _within(one: ArchiveSegment, other: ArchiveSegment) -> bool:
    """Never in both directions: two segments with the same numbers have the same name."""
    return one.size < other.size and other.holds(one.first) and other.holds(one.last)


def _small_runs(segments: Sequence[ArchiveSegment]) -> Iterator[list[ArchiveSegment]]:
    """Incomplete segments that follow each other without a gap."""
    run: list[ArchiveSegment] = []
    for segment in segments:
        fits = run and segment.first <= max(one.last for one in run) + 1
        if segment.size >= SEGMENT or not fits:
            if run:
                yield run
            run = []
        if segment.size < SEGMENT:
            run.append(segment)
    if run:
        yield run
