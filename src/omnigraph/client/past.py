"""Owns what a server tells of the past: the log, differences, and blocks of the feed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, islice
from typing import Any, TypeVar

import msgspec

from omnigraph.client.served_graph import ServedGraph
from omnigraph.client.told import change_of, commit_of, query_changes_of, steps_of
from omnigraph.client.understanding import understanding
from omnigraph.engine.history.diff import QueryChange, ShownChanges
from omnigraph.engine.history.feed import FeedBlock
from omnigraph.engine.history.log import LogWords, entry_of, require_limit
from omnigraph.errors import InvalidArgument
from omnigraph.model.changes import Change, Op
from omnigraph.model.version import Commit
from omnigraph.plan.log_drawing import draw_lanes
from omnigraph.plan.migrate import MigrationPlan
from omnigraph.show.history import Lanes
from omnigraph.telemetry import Ledger

T = TypeVar("T")


def begun(items: Iterator[T]) -> Iterator[T]:
    """The same items; the first is fetched now, so that mistakes are told now."""
    first = list(islice(items, 1))
    return chain(first, items)


class RemoteLog(Iterator[Commit]):
    """The log of a server. The first page is fetched at once."""

    def __init__(
        self, served: ServedGraph, ref: str, *, all: bool = False, shown: LogWords
    ) -> None:
        self.io = Ledger()
        self._served = served
        limit = shown.get("limit")
        require_limit(limit)
        asked = {
            "ref": ref,
            "actor": shown.get("actor"),
            "kind": shown.get("kind"),
            "since": _moment(shown.get("since")),
            "until": _moment(shown.get("until")),
            "first_parent": shown.get("first_parent") or None,
            "all": all or None,
        }
        page = 100 if limit is None else max(1, min(limit, 1000))
        items = begun(served.items("/commits", asked, page=page))
        self._commits = (commit_of(one) for one in islice(items, limit))

    def __next__(self) -> Commit:
        return next(self._commits)

    @understanding()
    def labels(self) -> dict[str, tuple[str, ...]]:
        """The names that point at commits: branches, then tags."""
        told = self._served.get("")
        labels: dict[str, tuple[str, ...]] = {}
        named = [(one["name"], one["commit"]) for one in told["branches"]]
        named += [(f"tag: {one['name']}", one["commit"]) for one in told["tags"]]
        for name, commit in msgspec.convert(named, list[tuple[str, str]]):
            labels[commit] = (*labels.get(commit, ()), name)
        return labels

    def lanes(self) -> Lanes:
        """Draws the remaining commits as a graph, with the branches that are at them."""
        labels = self.labels()
        return Lanes(draw_lanes([entry_of(commit, labels.get(commit.id, ())) for commit in self]))


def _moment(given: str | datetime | None) -> str | None:
    if given is None or isinstance(given, str):
        return given
    if not isinstance(given, datetime):
        raise InvalidArgument(f"A time is a text or a datetime, not {type(given).__name__}.")
    return given.isoformat()


class RemoteDiff(ShownChanges):
    """What leads from one commit to another. The schemas are compared at once, which also checks
    the names; entities come when it is iterated."""

    def __init__(
        self,
        served: ServedGraph,
        old: str,
        new: str,
        types: Sequence[str] | None,
        kinds: Sequence[str] | None,
        ops: Sequence[str] | None,
    ) -> None:
        _check("kind", kinds, ("node", "edge"))
        _check("operation", ops, tuple(str(op) for op in Op))
        self.io = Ledger()
        self.types = None if types is None else frozenset(types)
        self._served = served
        self._asked: dict[str, Any] = {"old": old, "new": new, "type": types}
        self._asked |= {"kind": kinds, "op": ops}
        with understanding():
            told = served.get("/diff", self._asked | {"schema": True})
            self._asked |= {name: msgspec.convert(told[name], str) for name in ("old", "new")}
            self.schema: MigrationPlan = steps_of(told["steps"])
            self.queries: tuple[QueryChange, ...] = query_changes_of(told["queries"])

    def __iter__(self) -> Iterator[Change]:
        if any(self._asked[name] == [] for name in ("type", "kind", "op")):
            return iter(())
        return (change_of(row) for row in self._served.lines("/diff", self._asked))

    def summary(self) -> dict[str, dict[str, int]]:
        """Counts by type and operation."""
        with understanding():
            told = self._served.get("/diff", self._asked | {"summary": True})
            return msgspec.convert(told["types"], dict[str, dict[str, int]])


def _check(what: str, given: Sequence[str] | None, known: Sequence[str]) -> None:
    for name in given or ():
        if name not in known:
            raise InvalidArgument(
                f"{name!r} is not a {what} of change.", help=f"There are {', '.join(known)}."
            )


@dataclass(frozen=True)
class ToldChanges(ShownChanges):
    """The changes of one commit, which are here."""

    changes: tuple[Change, ...]
    schema: MigrationPlan
    queries: tuple[QueryChange, ...]
    types: frozenset[str] | None = None
    io: Ledger = field(default_factory=Ledger, repr=False)

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    def summary(self) -> dict[str, dict[str, int]]:
        """Counts by type and operation."""
        counts: dict[str, Counter[str]] = {}
        for change in self.changes:
            counts.setdefault(change.type, Counter())[str(change.op)] += 1
        return {name: dict(ops) for name, ops in counts.items()}


@understanding()
def block_of(record: Mapping[str, Any], types: Sequence[str] | None) -> FeedBlock:
    """The block that a record tells."""
    changes = ToldChanges(
        tuple(change_of(row) for row in record["changes"]),
        steps_of(record["steps"]),
        query_changes_of(record["queries"]),
        None if types is None else frozenset(types),
    )
    return FeedBlock(commit_of(record), msgspec.convert(record["cursor"], str), changes)
