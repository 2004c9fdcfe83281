"""Owns the log: commits in the order of the graph, through both parents of merges, read only as far
as asked for.

A version's first parent is the one before it on its chain. The second parent is on a chain of which
the merge took in more (`ancestry`), and is identified by its commit. The numbers of a chain have no
gaps, so versions are read ahead in parallel, further ahead the longer a chain is followed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol, TypedDict

from omnigraph.engine.graph_view import shown_commit
from omnigraph.engine.history.ancestry import contains
from omnigraph.engine.history.refs import History
from omnigraph.engine.session import Session
from omnigraph.errors import Corrupt, InvalidArgument, OmnigraphError
from omnigraph.model.version import Commit, GraphVersion, chain_key
from omnigraph.store.history import lost_version
from omnigraph.store.objects import Absent
from omnigraph.telemetry import Ledger

if TYPE_CHECKING:
    from omnigraph.plan.log_drawing import LogEntry
    from omnigraph.show.history import Lanes

_PARALLEL = 8
_DAY = 86_400_000_000


@dataclass(frozen=True)
class LogFilter:
    """Which commits of a log are shown. Times are in microseconds, and both ends are included."""

    limit: int | None = None
    actor: str | None = None
    kind: str | None = None
    since: int | None = None
    until: int | None = None

    def shows(self, commit: Commit) -> bool:
        return (
            self.actor in (None, commit.actor)
            and self.kind in (None, commit.kind)
            and (self.since is None or commit.created_at >= self.since)
            and (self.until is None or commit.created_at <= self.until)
        )

    @property
    def shows_all(self) -> bool:
        return (self.actor, self.kind, self.since, self.until) == (None,) * 4


class LogWords(TypedDict, total=False):
    """The keywords of a call that select the commits of a log."""

    limit: int | None
    actor: str | None
    kind: str | None
    since: str | datetime | None
    until: str | datetime | None
    first_parent: bool


def require_limit(limit: int | None) -> None:
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
        raise InvalidArgument(f"The limit of a log is a number of commits, not {limit!r}.")


def all_ends(session: Session, ledger: Ledger) -> list[GraphVersion]:
    """The starts of the log of every branch."""
    return [end for end in History(session, ledger).ends() if not end.deleted]


def make_log(
    session: Session,
    starts: list[GraphVersion],
    *,
    ledger: Ledger | None = None,
    limit: int | None = None,
    actor: str | None = None,
    kind: str | None = None,
    since: str | datetime | None = None,
    until: str | datetime | None = None,
    first_parent: bool = False,
) -> Log:
    """The starts are pinned. The commits behind them are read as the log is iterated."""
    require_limit(limit)
    wanted = LogFilter(limit, actor, kind, _moment(since, 0), _moment(until, _DAY - 1))
    return Log(session, starts, wanted, first_parent=first_parent, ledger=ledger or Ledger())


class LogLike(Protocol):
    """An iterator over commits, wherever they are."""

    io: Ledger

    def __iter__(self) -> Iterator[Commit]: ...

    def __next__(self) -> Commit: ...

    def labels(self) -> dict[str, tuple[str, ...]]: ...

    def lanes(self) -> Lanes: ...


class Log(Iterator[Commit]):
    """An iterator over commits: children before parents, later ones first, each once. `io` counts
    the requests so far."""

    def __init__(
        self,
        session: Session,
        starts: list[GraphVersion],
        wanted: LogFilter,
        *,
        first_parent: bool,
        ledger: Ledger,
    ) -> None:
        self.io = ledger
        self._session = session
        self._wanted = wanted
        self._left = wanted.limit
        self._parents = Parents(session, ledger, first_only=first_parent)
        self._commits = self._walk(starts)

    def __next__(self) -> Commit:
        return next(self._commits)

    def labels(self) -> dict[str, tuple[str, ...]]:
        """The names that point at commits: branches, then tags."""
        return read_labels(self._session, self.io)

    def lanes(self) -> Lanes:
        """Draws the remaining commits as a graph, with the branches that are at them. It prints
        itself in lines, and a notebook shows it as a picture."""

        from omnigraph.plan.log_drawing import draw_lanes
        from omnigraph.show.history import Lanes

        labels = self.labels()
        return Lanes(draw_lanes([entry_of(commit, labels.get(commit.id, ())) for commit in self]))

    def _walk(self, starts: list[GraphVersion]) -> Iterator[Commit]:
        """The open commits lead to every commit that was not yielded yet. So an open commit that is
        in the past of no other open one has no child left, whatever the clocks said."""
        open_ones = {version.commit.id: version for version in starts}
        while open_ones and self._left != 0:
            if len(open_ones) > 1:
                open_ones = {key: self._parents.origin(one) for key, one in open_ones.items()}
            version = _next(list(open_ones.values()))
            commit = version.commit
            del open_ones[commit.id]
            if self._wanted.shows(commit):
                self._left = None if self._left is None else self._left - 1
                yield shown_commit(self._session, version, self.io)
            if self._left == 0 or self._older(commit):
                continue
            wanted = self._left if self._wanted.shows_all else None
            for parent in self._parents.read(version, wanted):
                open_ones.setdefault(parent.commit.id, parent)

    def _older(self, commit: Commit) -> bool:
        return self._wanted.since is not None and commit.created_at < self._wanted.since


def _next(open_ones: list[GraphVersion]) -> GraphVersion:
    for version in sorted(open_ones, key=lambda one: (one.commit.created_at, one.commit.id))[::-1]:
        if not any(other is not version and contains(other, version) for other in open_ones):
            return version
    raise Corrupt("Versions of the graph are in each other's past.")


class Parents:
    """Finds the versions of a commit's parents."""

    def __init__(self, session: Session, ledger: Ledger, *, first_only: bool) -> None:
        self._session = session
        self._ledger = ledger
        self._first_only = first_only
        self._ahead: dict[tuple[str, int], GraphVersion] = {}
        self._windows: dict[str, int] = {}

    def read(self, version: GraphVersion, wanted: int | None) -> list[GraphVersion]:
        """`wanted` is how many more commits are needed, None if unknown."""
        ids = version.commit.parents[:1] if self._first_only else version.commit.parents
        if not ids:
            return []
        version = self.origin(version)
        before = self._previous(version, wanted)
        found = [before, *(self._taken_in(version, before, other) for other in ids[1:])]
        if before.commit.id != ids[0]:
            raise Corrupt(f"The commit {version.commit.id} does not follow on {ids[0]}.")
        return found

    def origin(self, version: GraphVersion) -> GraphVersion:
        """The version in which the commit was made. The first version of a branch, or after a
        fast-forward, carries a commit of another chain."""
        while version.version == version.first and (fork := version.forked_from) is not None:
            (version,) = self._side_by_side([(fork.branch, fork.version)])
        return version

    def _taken_in(self, version: GraphVersion, before: GraphVersion, id: str) -> GraphVersion:
        """The second parent of a merge. Format 1 did not say where it is: probably on the chain
        that the merge brought last, or on the one with the highest number. Its commit proves it."""
        if version.merged is not None:
            (found,) = self._side_by_side([(version.merged.branch, version.merged.version)])
            return found
        told = [
            (chain.split(":", 1)[1], number)
            for chain, number in version.ancestry.items()
            if number > before.ancestry.get(chain, 0)
        ]
        likely = told[-1:] + sorted(told[:-1], key=lambda one: -one[1])
        for start in range(0, len(likely), 2):
            for one in self._side_by_side(likely[start : start + 2]):
                if one.commit.id == id:
                    return one
        raise Corrupt(f"The commit {id}, merged by {version.commit.id}, is missing.")

    def _previous(self, version: GraphVersion, wanted: int | None) -> GraphVersion:
        branch, number = version.branch, version.version - 1
        if (found := self._ahead.pop((branch, number), None)) is not None:
            return found
        chain = chain_key(version)
        window = self._windows.get(chain, 1)
        self._windows[chain] = min(2 * window, _PARALLEL)
        if wanted is not None:
            window = min(window, wanted)
        lowest = max(version.first, number - window + 1)
        numbers = [number, *range(number - 1, lowest - 1, -1)]
        found, *others = self._side_by_side([(branch, n) for n in numbers], needed=1)
        self._ahead |= {(branch, one.version): one for one in others}
        return found

    def _side_by_side(
        self, keys: list[tuple[str, int]], *, needed: int | None = None
    ) -> list[GraphVersion]:
        """Only the first ones are `needed`. The others are left out if they cannot be read."""

        from concurrent.futures import ThreadPoolExecutor

        def read(key: tuple[str, int], own: Ledger) -> GraphVersion | Absent | OmnigraphError:
            try:
                return self._session.read_record(*key, own)
            except (Absent, OmnigraphError) as error:
                return error

        ledgers = [Ledger() for _ in keys]
        if len(keys) == 1:
            results = [read(keys[0], ledgers[0])]
        else:
            with ThreadPoolExecutor(_PARALLEL) as pool:
                results = list(pool.map(read, keys, ledgers))
        self._ledger.join(ledgers)
        for key, result in list(zip(keys, results, strict=True))[:needed]:
            if isinstance(result, Absent):
                raise self._missing(*key)
            if isinstance(result, OmnigraphError):
                raise result
        return [result for result in results if isinstance(result, GraphVersion)]

    def _missing(self, branch: str, number: int) -> OmnigraphError:
        return lost_version(branch, number)  # the records of deleted versions stay


def read_labels(session: Session, ledger: Ledger) -> dict[str, tuple[str, ...]]:
    """The names that point at a commit: branches, then tags."""
    labels: dict[str, tuple[str, ...]] = {}
    for end in sorted(History(session, ledger).ends(), key=lambda end: end.tag):
        if end.tag or not end.deleted:
            name = f"tag: {end.branch}" if end.tag else end.branch
            labels[end.commit.id] = (*labels.get(end.commit.id, ()), name)
    return labels


def entry_of(commit: Commit, labels: tuple[str, ...] = ()) -> LogEntry:
    """A commit in one line: what it is, who made it, and the first line of its message."""

    from omnigraph.plan.log_drawing import LogEntry

    lines = (commit.message or "").strip().splitlines()
    words = [commit.id, commit.kind, commit.actor and f"by {commit.actor}", *lines[:1]]
    return LogEntry(commit.id, commit.parents, labels, " ".join(word for word in words if word))


def _moment(given: str | datetime | None, rest_of_day: int) -> int | None:
    """In microseconds. A day without a time means its beginning as the lower bound, and its end as
    the upper one."""
    if given is None:
        return None
    moment = given
    if isinstance(given, str):
        try:
            moment = datetime.fromisoformat(given)
        except ValueError:
            raise InvalidArgument(
                f"{given!r} is not a time.", help="Write 2026-01-31 or 2026-01-31T12:00:00Z."
            ) from None
    if not isinstance(moment, datetime):
        raise InvalidArgument(f"A time is a text or a datetime, not {type(given).__name__}.")
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    whole = int(moment.replace(microsecond=0).timestamp()) * 1_000_000 + moment.microsecond
    only_a_day = isinstance(given, str) and len(given) == 10
    return whole + (rest_of_day if only_a_day else 0)
