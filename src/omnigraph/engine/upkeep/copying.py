"""Owns copying a graph from one root to another, while writers go on: also backup and restore.

Everything but the ends of chains is immutable, so a copy is consistent when no end refers to what
was not copied. Tables go first, then versions, `main` last but one and the stamp last: before
that there is no graph at the target, and the same call goes on where it was interrupted.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import msgspec

from omnigraph.arguments import checked
from omnigraph.engine.session import Session
from omnigraph.engine.upkeep.checksums import known_checksums
from omnigraph.engine.upkeep.reachable_files import Trace, holds
from omnigraph.engine.upkeep.survey import (
    FIRST,
    SurveyedChain,
    needed_versions,
    survey_chain,
    survey_chains,
)
from omnigraph.errors import (
    Conflict,
    Corrupt,
    GraphExists,
    GraphNotFound,
    InvalidArgument,
    NotApplied,
    RefNotFound,
)
from omnigraph.model.stored_text import UNDECODABLE
from omnigraph.model.version import GraphVersion, chain_key
from omnigraph.runtime import SYSTEM, Runtime, reach
from omnigraph.settings import Settings
from omnigraph.store.file_checksums import write_digests
from omnigraph.store.files import is_candidate, location_of
from omnigraph.store.history import Archive, ArchiveSegment
from omnigraph.store.objects import Absent, Ambiguous, StoredFile
from omnigraph.store.ownership import is_of_the_system, list_occupants, refuse_foreign
from omnigraph.store.roots import parse_root
from omnigraph.store.table_checksums import ChecksumResult
from omnigraph.store.versions import STAMP_KEY, encode_version, named_branches, version_key
from omnigraph.telemetry import Ledger

_PARALLEL = 4
"""Files are held in memory while they are copied, so only a few are copied at once."""
_LARGE = 32 << 20
"""Files above this size are copied in parts."""
_ATTEMPTS = 5
_SCHEMA = re.compile(r"_schema/[0-9a-f]{64}\.(pg|json)|_queries/[0-9a-f]{64}\.json")


@dataclass
class Copied:
    """What was copied. `skipped` files were there already, from an earlier attempt."""

    branches: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    versions: int = 0
    files: int = 0
    bytes: int = 0
    skipped: int = 0
    io: Ledger = field(default_factory=Ledger, repr=False)


OnCopied = Callable[[int, int], None]
"""Called with the number of files done and of all files."""


@checked
def copy(
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    *,
    names: Sequence[str] | None = None,
    settings: Settings | None = None,
    runtime: Runtime = SYSTEM,
    progress: OnCopied | None = None,
) -> Copied:
    """Copies a graph with all its branches, tags and history, or with `names` only these branches
    and tags, and main. The target must not hold a graph. The copy is the same graph: cursors and
    commits mean the same in both.

    >>> omnigraph.copy(g.root, "memory://copied").branches
    ('main',)
    """
    settings = settings or Settings.from_environment()
    place = parse_root(src)
    source = Session(place, place.objects(settings), settings, runtime)
    return copy_graph(source, dst, names, progress)


def copy_graph(
    source: Session,
    root: str | os.PathLike[str],
    names: Sequence[str] | None = None,
    progress: OnCopied | None = None,
) -> Copied:
    place = parse_root(root)
    if source.root.uri == place.uri:
        raise InvalidArgument("A graph cannot be copied onto itself.")
    settings = source.settings
    target = Session(place, place.objects(settings), settings, source.runtime)
    return copy_between(source, target, names, progress)


def copy_between(
    source: Session,
    target: Session,
    names: Sequence[str] | None = None,
    progress: OnCopied | None = None,
) -> Copied:
    return _Copy(source, target, progress).run(names)


class _Copy:
    def __init__(self, source: Session, target: Session, progress: OnCopied | None) -> None:
        self._source = source
        self._target = target
        self._progress = progress
        self._ledger = Ledger()
        self.report = Copied(io=self._ledger)

    def run(self, names: Sequence[str] | None) -> Copied:
        stamp = self._read_stamp()
        if self._target.objects.exists(STAMP_KEY):
            raise GraphExists(f"There is a graph at {self._target.root.uri} already.")
        place = self._target.root
        refuse_foreign(place, list_occupants(place, self._target.objects))
        chains = self._survey(names)
        reach("chains surveyed")
        while not self._copied_tables(chains):
            chains = self._survey(names)
        self._copy_schemas()
        for branch in named_branches(self._source.objects.groups("__history/")):
            self._copy_history(branch, chains)
        reach("tables copied")
        for branch in sorted(chains, key=lambda name: (name == "main", name)):
            self._write_chain(chains[branch])
        reach("versions copied")
        self._put(STAMP_KEY, stamp)
        ends = [chain.end for chain in chains.values()]
        self.report.branches = tuple(end.branch for end in ends if not end.deleted)
        self.report.tags = tuple(end.branch for end in ends if end.tag)
        return self.report

    def _read_stamp(self) -> bytes:
        try:
            self._source.versions(self._ledger).read_stamp()  # a newer format is refused here
            return self._source.objects.get(STAMP_KEY)
        except Absent:
            raise GraphNotFound(f"There is no graph at {self._source.root.uri}.") from None

    # What there is

    def _survey(self, names: Sequence[str] | None) -> dict[str, SurveyedChain]:
        """The chains to copy, such that each end finds what it refers to. A merge may come between
        reading its source and reading its target."""
        chains = survey_chains(self._source, self._ledger)
        if names is not None:
            for name in names:
                if name not in chains or (chains[name].end.deleted and not chains[name].end.tag):
                    raise RefNotFound(f"There is no branch or tag {name!r}.", help="")
            wanted = self._closure({"main", *names}, chains)
            chains = {name: chain for name, chain in chains.items() if name in wanted}
        while True:
            late = {
                branch
                for chain in chains.values()
                for branch, number in _references(chain.versions)
                if branch in chains and number > chains[branch].end.version
            }
            if not late:
                return chains
            chains |= {branch: survey_chain(self._source, branch, self._ledger) for branch in late}

    def _closure(self, names: set[str], chains: dict[str, SurveyedChain]) -> set[str]:
        """Adds the chains that their history goes through, for logs and later merges."""
        found: set[str] = set()
        waiting = set(names)
        while waiting:
            name = waiting.pop()
            found.add(name)
            referred = {branch for branch, _ in _references(chains[name].versions)}
            waiting |= (referred & chains.keys()) - found
        return found

    def _moved(self, chains: dict[str, SurveyedChain]) -> bool:
        for branch, chain in chains.items():
            self._source.forget_head(branch)
            if self._source.head(branch, self._ledger).floor > chain.end.floor:
                return True
        return False

    # Tables

    def _copied_tables(self, chains: dict[str, SurveyedChain]) -> bool:
        """False means that cleanup of the source has deleted something, so the remaining versions
        are to be copied."""
        try:
            self._copy_tables(chains)
        except (Absent, Corrupt):
            if not self._moved(chains):
                raise
            return False
        return True

    def _copy_tables(self, chains: dict[str, SurveyedChain]) -> None:
        ledger, source = self._ledger, self._source
        trace = Trace(source, ledger)
        roots: list[GraphVersion] = []
        for chain in chains.values():
            roots += [one for one in chain.versions if one.tag or not one.deleted]
        ends = [chain.end for chain in chains.values()]
        for branch, number in needed_versions(source, ends, ledger, roots):
            with contextlib.suppress(Absent):
                roots.append(source.read_record(branch, number, ledger))
        for branch, chain in chains.items():
            roots += [source.read_record(branch, number, ledger) for number in chain.end.kept]
        trace.follow(roots)
        for traced in trace.tables.values():
            if traced.error is not None:
                raise traced.error
        needed = trace.needed()
        keys = [
            (file.key, file.size)
            for location in sorted(trace.locations)
            for file in source.objects.files(f"{location}/")
            if location_of(file.key) == location
            and not is_of_the_system(file.key)
            and "/_refs/" not in file.key
            and (holds(needed, file.key) or not is_candidate(file.key, location))
        ]
        listed = {key for key, _ in keys}
        for key in needed.files:
            if key not in listed:
                raise Corrupt(f"{key} is missing.")
        known = known_checksums(source, listed, ledger)
        self._copy_files(keys, known)
        if told := {key: value for key, value in known.items() if key in listed}:
            write_digests(self._target.metered(ledger), source.runtime.ulid(), told)

    def _copy_schemas(self) -> None:
        for prefix in ("_schema/", "_queries/"):
            files = self._source.objects.files(prefix)
            self._copy_files([(f.key, f.size) for f in files if _SCHEMA.fullmatch(f.key)])

    def _copy_history(self, branch: str, chains: dict[str, SurveyedChain]) -> None:
        """Copies the archive as far as the copy goes. Versions folded since then are not part of
        the copy, which will have other versions at their numbers. A segment that disappears
        meanwhile is part of a larger one."""
        objects, archive = self._source.metered(self._ledger), Archive(branch)
        end = chains[branch].end.version if branch in chains else None
        while True:
            segments = archive.segments(objects, fresh=True)
            whole = [one for one in segments if end is None or one.last <= end]
            cut = [one for one in segments if one not in whole and one.first <= (end or 0)]
            try:
                self._copy_files([(f.key, f.size) for f in self._listed(whole)])
                for one in cut:
                    numbers = range(one.first, (end or 0) + 1)
                    found = [archive.read_stored(objects, number) for number in numbers]
                    times = {v.version: time for v, time in found if time is not None}
                    versions = [version for version, _ in found]
                    Archive(branch).write(self._target.metered(self._ledger), versions, times)
            except Absent:
                continue
            return

    def _listed(self, segments: Sequence[ArchiveSegment]) -> list[StoredFile]:
        keys = {one.key for one in segments}
        prefixes = sorted({one.key.rsplit("/", 1)[0] + "/" for one in segments})
        return [f for p in prefixes for f in self._source.objects.files(p) if f.key in keys]

    def _copy_files(
        self, keys: Sequence[tuple[str, int]], known: Mapping[str, str] | None = None
    ) -> None:
        """Compares each file with its known checksums on the way, so that damage is not copied."""
        top = sorted({key.rsplit("/", 1)[0] + "/" for key, _ in keys})
        there = {
            file.key: file.size for prefix in top for file in self._target.objects.files(prefix)
        }
        waiting = [(key, size) for key, size in keys if there.get(key) != size]
        self.report.skipped += len(keys) - len(waiting)

        def one(item: tuple[str, int]) -> int:
            key, size = item
            sums = ChecksumResult(key, (known or {}).get(key))
            if size > _LARGE:
                parts = sums.passing(self._source.objects.get_parts(key))
                self._target.objects.put_parts(key, parts)
            else:
                self._put(key, b"".join(sums.passing(iter([self._source.objects.get(key)]))))
            return size

        copied = 0
        with ThreadPoolExecutor(_PARALLEL) as pool:
            for done, size in enumerate(pool.map(one, waiting)):
                self.report.files += 1
                copied += size
                if self._progress is not None:
                    self._progress(done + 1, len(waiting))
        self.report.bytes += copied
        self._ledger.record("get", "copy", count=len(waiting), size=copied)
        self._ledger.record("put", "copy", count=len(waiting), size=copied)

    # Versions

    def _write_chain(self, chain: SurveyedChain) -> None:
        end = chain.end
        versions = [version for version in chain.versions if version.version >= end.bottom]
        if end.bottom > FIRST:
            # The others are in the history. The first one keeps its number from being used again.
            versions.insert(0, self._source.read_record(end.branch, FIRST, self._ledger))
        for version in versions:
            self._put(version_key(version.branch, version.version), encode_version(version))
        self.report.versions += len(chain.versions)

    def _put(self, key: str, data: bytes) -> None:
        """Durable, and only where nothing else exists: two copies to one place do not mix."""
        objects = self._target.objects
        lost = ""
        for _ in range(_ATTEMPTS):
            try:
                if objects.put_if_absent(key, data):
                    return
            except Ambiguous as error:
                lost = str(error)
            try:
                held = objects.get(key)
            except Absent:
                continue
            if held == data:
                return
            if key.startswith("__manifest/") and _same_version(held, data):
                return
            raise Conflict(
                f"{self._target.root.uri}/{key} is there already, with something else in it.",
                help="Copy to an empty place.",
            )
        raise NotApplied(f"{self._target.root.uri}/{key} cannot be written: {lost}.")


def _same_version(held: bytes, data: bytes) -> bool:
    with contextlib.suppress(*UNDECODABLE):
        return bool(msgspec.json.decode(held) == msgspec.json.decode(data))
    return False


def _references(versions: Iterable[GraphVersion]) -> set[tuple[str, int]]:
    """The branches and versions that these versions have in their past."""
    found: set[tuple[str, int]] = set()
    for version in versions:
        for chain, number in version.ancestry.items():
            found.add((chain.split(":", 1)[1], number))
        if version.forked_from is not None:
            found.add((version.forked_from.branch, version.forked_from.version))
        found.discard((chain_key(version).split(":", 1)[1], version.version))
    return found


__all__ = ["Copied", "copy"]
