"""Owns the change feed: what happened to a branch, commit by commit, from any point onwards.

Every commit on the first-parent history of the branch is one block, oldest first, across the
point where the branch was forked, as `git log --first-parent` tells it. A commit that changed
nothing that a reader or the filter can see is an empty block, so that its cursor moves on.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import msgspec

from omnigraph.engine.graph_view import GraphView, find_type, shown_commit, view_of
from omnigraph.engine.history.cursor import (
    BEGINNING,
    Cursor,
    Place,
    check_cursor,
    decode_cursor,
    is_cursor,
    recreated,
)
from omnigraph.engine.history.diff import Diff, DiffLike, make_diff
from omnigraph.engine.history.first_parents import Path
from omnigraph.engine.history.refs import History
from omnigraph.engine.session import Session, hash_call
from omnigraph.errors import InvalidArgument, RefNotFound
from omnigraph.model.catalog import Catalog
from omnigraph.model.refs import CommitRef, parse_ref
from omnigraph.model.version import Commit, GraphVersion
from omnigraph.plan.migrate import MigrationPlan
from omnigraph.telemetry import Ledger


@dataclass(frozen=True)
class FeedBlock:
    """One commit and what it did. `changes` are read type by type as they are iterated. `cursor` is
    the place after this block."""

    commit: Commit
    cursor: str
    changes: DiffLike

    @property
    def schema(self) -> MigrationPlan:
        """What the commit changed in the schema, without steps if it changed nothing."""
        return self.changes.schema


class Feed:
    """The changes of one branch. `types` are looked up in the newest schema of the branch and
    followed by their stable ids across renames."""

    def __init__(
        self,
        session: Session,
        branch: str,
        *,
        types: Sequence[str] | None,
        kinds: Sequence[str] | None,
        ops: Sequence[str] | None,
        ledger: Ledger,
    ) -> None:
        self._session = session
        self._branch = branch
        self._ledger = ledger
        head = session.live_head(branch, ledger)
        self._path = Path(session, head, ledger)
        present = view_of(session, head, ledger)
        self._chosen = make_diff(present, present, types=None, kinds=kinds, ops=ops)
        self._types: frozenset[str] | None = None
        if types is not None:
            self._types = frozenset(find_type(present.catalog, name).id for name in types)
        self._digest = hash_call(
            [
                None if self._types is None else sorted(self._types),
                sorted(self._chosen.kinds),
                sorted(self._chosen.ops),
            ]
        )

    def place_of(self, after: str) -> Place | None:
        """The place after which blocks begin. None is before the first commit."""
        if not isinstance(after, str):
            raise InvalidArgument(f"after is a text, not {type(after).__name__}.")
        if after == BEGINNING:
            return None
        if is_cursor(after):
            cursor = decode_cursor(after)
            head = self._path.head
            check_cursor(
                cursor,
                graph=head.graph,
                branch=self._branch,
                incarnation=head.incarnation,
                filter=self._digest,
            )
            return self._path.passed(cursor.place)
        ref = parse_ref(after)
        if isinstance(ref, CommitRef) and ref.branch is None:
            after = f"{self._branch}@{ref.commit}"
        version = History(self._session, self._ledger).resolve(after)
        place = self._path.settle(Place(version.branch, version.version))
        if not self._path.holds(place):
            raise RefNotFound(
                f"{after!r} is not in the history of the branch {self._branch!r}.",
                help="Changes go along the first parents, as the log of the branch does.",
            )
        return place

    def blocks(
        self,
        after: Place | None,
        *,
        limit: int | None,
        follow: bool,
        poll: float,
        stopped: Callable[[], bool],
    ) -> Generator[FeedBlock, None, None]:
        """Ends at the head or, with `follow`, never: until the generator is closed or `stopped`
        returns True. A block is complete before it is yielded, so it can be asked for again."""
        place = after
        while limit is None or limit > 0:
            step = self._step(place)
            if step is not None:
                old, new, place = step
                limit = None if limit is None else limit - 1
                yield self._block(old, new, place)
            elif not follow or stopped():
                return
            else:
                self._session.runtime.sleep(poll)
                if not stopped():
                    self._refresh()

    def _refresh(self) -> None:
        known = self._path.head
        head = self._session.live_head(self._branch, self._ledger)
        if head.incarnation != known.incarnation:
            raise recreated(self._branch)
        if head.version != known.version:
            self._path = Path(self._session, head, self._ledger)

    def _step(self, place: Place | None) -> tuple[GraphVersion | None, GraphVersion, Place] | None:
        """The versions before and after the next block, and its place."""
        path = self._path
        if place is None:
            return None, path.read(path.first()), path.first()
        if path.holds(place):
            following = path.after(place)
            if following is None:
                return None
            return path.read(place), path.read(following), following
        # A fast-forward took the branch to a past that does not lead through this place. One block
        # shows the difference.
        arrived = Place(self._branch, path.head.first)
        return path.read(place), path.read(arrived), path.settle(arrived)

    def _block(self, old: GraphVersion | None, new: GraphVersion, place: Place) -> FeedBlock:
        after = view_of(self._session, new, self._ledger)
        if old is None:
            nothing = msgspec.structs.replace(new, tables=())
            before = GraphView(nothing, Catalog(), self._session, self._ledger)
        else:
            before = view_of(self._session, old, self._ledger)
        head = self._path.head
        cursor = Cursor(
            graph=head.graph,
            branch=self._branch,
            incarnation=head.incarnation,
            filter=self._digest,
            place=place,
            commit=new.commit.id,
        )
        tables = self._changed_tables(before.graph_version, new)
        return FeedBlock(
            shown_commit(self._session, new, self._ledger),
            cursor.text,
            Diff(before, after, tables, self._chosen.kinds, self._chosen.ops),
        )

    def _changed_tables(self, old: GraphVersion, new: GraphVersion) -> frozenset[str]:
        """The tables in which a reader can see a difference. The tables themselves are not
        opened."""
        olds = {pin.type_id: pin for pin in old.tables}
        news = {pin.type_id: pin for pin in new.tables}
        changed = set()
        for type_id in olds.keys() | news.keys():
            was, now = olds.get(type_id), news.get(type_id)
            wanted = self._types is None or type_id in self._types
            if wanted and not (was and now and was.content == now.content):
                changed |= {pin.key for pin in (was, now) if pin is not None}
        return frozenset(changed)
