"""Owns the survey of a graph: its chains, when the store received each version, and which versions
are still needed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from omnigraph.engine.history.ancestry import find_merge_bases, shared_past
from omnigraph.engine.session import Session
from omnigraph.engine.upkeep.reachable_files import PARALLEL, read_versions
from omnigraph.errors import OmnigraphError
from omnigraph.model.version import GraphVersion
from omnigraph.plan.merge_points import Points
from omnigraph.store.history import lost_version
from omnigraph.store.objects import Absent, StoredFile
from omnigraph.store.versions import encode_branch, is_version, version_number
from omnigraph.telemetry import Ledger

FIRST = 1
"""The first number of a chain. Its object stays for ever, although the archive has it too: a writer
that creates a branch or a tag puts this number and must find out that the name was used."""


@dataclass(frozen=True)
class SurveyedChain:
    """All readable versions of a chain, oldest first and without gaps up to the end, with the times
    at which the store received them. Those below the bottom are in the archive. `files` are on the
    chain. `left` are files below its bottom that an earlier cleanup or fold did not delete."""

    versions: tuple[GraphVersion, ...]
    put_at: dict[int, int]
    files: dict[int, StoredFile]
    left: tuple[StoredFile, ...]

    @property
    def end(self) -> GraphVersion:
        return self.versions[-1]


def survey_chains(session: Session, ledger: Ledger) -> dict[str, SurveyedChain]:
    """Every chain at the moment, read in parallel. A version that cannot be read stops the survey:
    a damaged graph is not cleaned."""
    branches = session.versions(ledger).list_branches()
    ledgers = [ledger.fork() for _ in branches]
    with ThreadPoolExecutor(PARALLEL) as pool:
        chains = list(pool.map(lambda *one: survey_chain(session, *one), branches, ledgers))
    ledger.join(ledgers)
    return dict(zip(branches, chains, strict=True))


def survey_chain(session: Session, branch: str, ledger: Ledger) -> SurveyedChain:
    while True:
        held = list_chain(session, branch, ledger)
        end = session.versions(ledger).read(branch, max(held))
        session.saw_head(end)
        numbers = list(range(end.bottom, end.version + 1))
        found = [*read_versions(session, branch, numbers[:-1], ledger), end]
        if any(isinstance(one, Absent) for one in found) and _moved(session, end, ledger):
            continue  # another cleanup ran meanwhile
        versions, put_at = _folded(session, end, ledger)
        for number, one in zip(numbers, found, strict=True):
            if isinstance(one, Absent):
                raise lost_version(branch, number)
            if isinstance(one, OmnigraphError):
                raise one
            versions.append(one)
        put_at |= {number: file.modified for number, file in held.items()}
        left = tuple(held[number] for number in sorted(held) if FIRST < number < end.bottom)
        return SurveyedChain(tuple(versions), put_at, held, left)


def list_chain(session: Session, branch: str, ledger: Ledger) -> dict[int, StoredFile]:
    """The objects of a chain by their numbers, newest first."""
    return {
        version_number(file.key): file
        for file in session.metered(ledger).files(f"__manifest/{encode_branch(branch)}/")
        if is_version(file.key)
    }


def _folded(
    session: Session, end: GraphVersion, ledger: Ledger
) -> tuple[list[GraphVersion], dict[int, int]]:
    """Readable versions that are not on the chain any more, oldest first."""
    archive, objects = session.archive(end.branch), session.metered(ledger)
    versions, put_at = [], {}
    for number in range(end.floor, end.bottom):
        try:
            version, stored = archive.read_stored(objects, number)
        except Absent:
            raise lost_version(end.branch, number) from None
        versions.append(version)
        # If it is not known, it was folded once it was old enough.
        put_at[number] = stored or 0
    return versions, put_at


def _moved(session: Session, end: GraphVersion, ledger: Ledger) -> bool:
    session.forget_head(end.branch)
    return session.head(end.branch, ledger).bottom > end.bottom


def needed_versions(
    session: Session,
    ends: Iterable[GraphVersion],
    ledger: Ledger,
    retained: Iterable[GraphVersion] = (),
) -> set[tuple[str, int]]:
    """The versions that tags stand for, and those that later merges will compare with: merges of
    existing branches, and of branches made from an older version that is `retained` or found to be
    needed here."""
    found: set[tuple[str, int]] = set()
    waiting: list[GraphVersion] = []
    for end in ends:
        if end.tag and end.forked_from is not None:
            found.add((end.forked_from.branch, end.forked_from.version))
        waiting.append(end)
    waiting += retained
    for branch, number in sorted(found):
        with contextlib.suppress(Absent):
            waiting.append(session.read_record(branch, number, ledger))
    points = Points()
    compared: set[tuple[tuple[str, int], ...]] = set()
    while waiting:
        one = waiting.pop()
        if one.deleted or not points.add(one):
            continue  # nobody continues from a tombstone, nor from a tag itself
        for other in points.beside(one):
            shared = tuple(sorted(shared_past([one], other).items()))
            if shared not in compared:
                compared.add(shared)
                waiting += _add_bases(session, [one], other, found, ledger)
    return found


def _add_bases(
    session: Session,
    ours: list[GraphVersion],
    theirs: GraphVersion,
    found: set[tuple[str, int]],
    ledger: Ledger,
) -> list[GraphVersion]:
    """If there are several bases, they are merged with each other first, so their bases are needed
    too."""
    bases = find_merge_bases(session, ours, theirs, ledger)
    found.update((base.branch, base.version) for base in bases)
    others = list(bases)
    for step in range(1, len(bases)):
        others += _add_bases(session, bases[:step], bases[step], found, ledger)
    return others
