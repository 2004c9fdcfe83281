"""Owns the path to a head: the versions along the first parents, as places, in both directions.

A branch begins with a version that repeats the commit it was forked from, and so does a
fast-forwarded branch. On the path, a commit appears only where it was made.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.engine.history.cursor import Place
from omnigraph.engine.session import Session
from omnigraph.errors import HistoryGap
from omnigraph.model.version import GraphVersion
from omnigraph.store.history import lost_version
from omnigraph.store.objects import Absent
from omnigraph.telemetry import Ledger


@dataclass(frozen=True)
class Stretch:
    """Consecutive versions of one branch."""

    branch: str
    low: int
    high: int

    def holds(self, place: Place) -> bool:
        return self.branch == place.branch and self.low <= place.version <= self.high


class Path:
    """The versions of a branch are numbered without gaps, so the path takes one read for each fork
    on it."""

    def __init__(self, session: Session, head: GraphVersion, ledger: Ledger) -> None:
        self._session = session
        self._ledger = ledger
        self.head = head
        self._stretches = self._find()

    def first(self) -> Place:
        """Where the history begins."""
        return Place(self._stretches[0].branch, self._stretches[0].low)

    def holds(self, place: Place) -> bool:
        return any(stretch.holds(place) for stretch in self._stretches)

    def after(self, place: Place) -> Place | None:
        """The next place, or None at the head. The given place must be on the path."""
        index = next(i for i, stretch in enumerate(self._stretches) if stretch.holds(place))
        if place.version < self._stretches[index].high:
            return Place(place.branch, place.version + 1)
        if index + 1 == len(self._stretches):
            return None
        return Place(self._stretches[index + 1].branch, self._stretches[index + 1].low)

    def passed(self, place: Place) -> Place:
        """The place of a commit. If cleanup has deleted it but kept a version that maintenance made
        from it, this is the place of that version: no reader can tell them apart."""
        head = self.head
        if place.branch == head.branch and head.first <= place.version < head.floor:
            oldest = Place(head.branch, head.floor)
            if self.read(oldest).shows(place.version):
                return oldest
        return place

    def settle(self, place: Place) -> Place:
        """The place at which the commit of a place was made."""
        version = self._read_beginning(place)
        while (fork := version.forked_from) is not None and version.begins_at_fork:
            place = Place(fork.branch, fork.version)
            version = self._read_beginning(place)
        return place

    def read(self, place: Place) -> GraphVersion:
        head = self.head
        gone = place.branch == head.branch and place.version < head.floor
        if not gone:
            try:
                return self._session.read_version(place.branch, place.version, self._ledger)
            except Absent:
                gone = place.version < self._session.head(place.branch, self._ledger).floor
        if gone:
            raise HistoryGap(
                f"The history of {head.branch!r} can no longer be read at version "
                f"{place.version} of {place.branch!r}: cleanup has passed it."
            )
        raise lost_version(place.branch, place.version)

    def _find(self) -> list[Stretch]:
        """Oldest first. The path ends where cleanup has deleted versions. If the first place is
        gone, reading it raises the error."""
        found: list[Stretch] = []
        version = self.head
        while True:
            fork = version.forked_from
            low = version.first + (fork is not None)
            if low <= version.version:
                found.append(Stretch(version.branch, low, version.version))
            if fork is None:
                return found[::-1]
            try:
                version = self._read_beginning(Place(fork.branch, fork.version))
            except HistoryGap:
                found.append(Stretch(fork.branch, fork.version, fork.version))
                return found[::-1]

    def _read_beginning(self, place: Place) -> GraphVersion:
        """The version that a branch was made from. If that is the beginning of another branch,
        which cleanup may have deleted, it is what that branch was made from: the same commit."""
        try:
            return self.read(place)
        except HistoryGap:
            try:
                known = self._session.read_record(place.branch, place.version, self._ledger)
            except Absent:
                known = None
            if known is None or not known.begins_at_fork:
                raise
            return known
