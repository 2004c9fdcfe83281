"""Owns the view of a graph: one pinned graph version, its catalog, and access to each table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from omnigraph.engine.permissions import Sight
from omnigraph.engine.session import Session
from omnigraph.errors import Corrupt, InvalidArgument, Reclaimed, TypeNotFound
from omnigraph.lang.suggestions import near
from omnigraph.model.call_types import Filter
from omnigraph.model.catalog import Catalog, GraphType, declared
from omnigraph.model.version import Commit, GraphVersion, TablePin
from omnigraph.store.versions import version_key
from omnigraph.telemetry import Ledger

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.engine.overlay import Overlay
    from omnigraph.engine.view import TableView


@dataclass(frozen=True)
class GraphView:
    """A pinned version. The branch may move on, be rewritten or deleted; the view stays as it was.
    With a `sight` it shows only what that allows: fewer types and fewer rows."""

    graph_version: GraphVersion = field(repr=False)
    catalog: Catalog = field(repr=False)
    _session: Session = field(repr=False)
    io: Ledger = field(default_factory=Ledger, repr=False)
    sight: Sight | None = field(default=None, repr=False)

    @property
    def branch(self) -> str:
        """The branch whose version this is.

        >>> g.snapshot().branch
        'main'
        """
        return self.graph_version.branch

    @property
    def version(self) -> int:
        """The number of the version on its branch.

        >>> g.snapshot().version
        2
        """
        return self.graph_version.version

    @property
    def commit(self) -> Commit:
        return self._commit()

    def _commit(self) -> Commit:
        commit = self.graph_version.commit
        return commit if self.sight is None else self.sight.shown(commit)

    @property
    def schema(self) -> str:
        """The accepted schema text of this version."""
        return self._schema

    @cached_property
    def _schema(self) -> str:
        from omnigraph.lang.pg.print import print_schema

        if self.sight is not None and self.sight.visible is not self.sight.catalog:
            return print_schema(declared(self.catalog))
        return self._session.read_schema_text(self.graph_version.schema, self.io)

    def types(self) -> list[str]:
        """Names of all node and edge types, in the order of the schema."""
        return [t.name for t in (*self.catalog.nodes, *self.catalog.edges)]

    def count(self, type: str) -> int:
        """How many entities a type has; no row is read."""
        kind = self.type(type)
        if self.sight is not None and not self.sight.sees_all(kind):
            return self.view(kind).count()
        return _named_pin(self, kind).rows

    def scan(
        self,
        type: str,
        *,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
    ) -> pa.RecordBatchReader:
        """Rows of a type as an Arrow stream; nothing is read until it is asked for."""

        import pyarrow as pa

        from omnigraph.engine.condition import scan_rows

        view, now = self.view(self.type(type)), self._session.runtime.now()
        schema, batches = scan_rows(view, self.catalog, columns, filter, now, self.io)
        return pa.RecordBatchReader.from_batches(schema, self._until_reclaimed(batches))

    def _until_reclaimed(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except Corrupt:
            self._require_unreclaimed()
            raise

    def _require_unreclaimed(self) -> None:
        """A missing file may have been deleted by cleanup after the version was pinned."""
        if self._session.was_reclaimed(self.graph_version, self.io):
            raise Reclaimed(
                f"Version {self.version} of {self.branch!r} was reclaimed while it was read."
            )

    def type(self, name: str) -> GraphType:
        """A node or edge type by its name, in the form that the engine uses."""
        return find_type(self.catalog, name)

    def view(self, kind: GraphType, overlay: Overlay | None = None) -> TableView:
        """The rows of a type, with pending rows on top, for the engine. What the caller does not
        see is hidden in the same way as what is deleted: whoever reads, reads through here."""

        from omnigraph.engine.row_masks import RowMasks

        view = self._open(kind, overlay)
        if self.sight is None or self.sight.sees_all(kind):
            return view
        masks = RowMasks(self._session, self.catalog, self.sight, self._open)
        hidden = masks.hidden(self._open(kind), self.io)
        return replace(view, overlay=view.overlay.hiding(hidden))

    def _open(self, kind: GraphType, overlay: Overlay | None = None) -> TableView:
        from omnigraph.engine.lookup import Lookups
        from omnigraph.engine.overlay import Overlay
        from omnigraph.engine.view import TableView

        pin = _named_pin(self, kind)
        try:
            table = self._session.tables.open(pin.location, pin.lance_version, self.io)
        except Corrupt:
            self._require_unreclaimed()
            raise
        return TableView(
            kind, table, overlay or Overlay.empty(kind), Lookups.shared_by(self._session)
        )


def view_of(session: Session, version: GraphVersion, ledger: Ledger) -> GraphView:
    """What the session's caller sees of a version."""
    return as_seen(full_view_of(session, version, ledger))


def full_view_of(session: Session, version: GraphVersion, ledger: Ledger) -> GraphView:
    """All of a version, for the engine's own work: what it checks and writes."""
    return GraphView(version, session.read_catalog(version.catalog, ledger), session, ledger)


def shown_commit(session: Session, version: GraphVersion, ledger: Ledger) -> Commit:
    """A commit, without the counts of what the caller may not see."""
    commit = version.commit
    if not session.permissions.restricted or not commit.statistics:
        return commit
    return session.permissions.sight(session.read_catalog(version.catalog, ledger)).shown(commit)


def shown_version(view: GraphView) -> GraphVersion:
    """The version without what is hidden: types, and the counts of types with hidden rows."""
    version, sight, kinds = view.graph_version, view.sight, view.catalog.by_key
    if sight is None or sight.whole:
        return version
    tables = [
        pin if sight.sees_all(kinds[pin.key]) else msgspec.structs.replace(pin, rows=0)
        for pin in version.tables
        if pin.key in kinds
    ]
    return msgspec.structs.replace(version, tables=tuple(tables), commit=view.commit)


def as_seen(view: GraphView) -> GraphView:
    """What the session's caller sees of a view."""
    permissions = view._session.permissions  # noqa: SLF001
    if not permissions.restricted or view.sight is not None:
        return view
    session, ledger = view._session, view.io  # noqa: SLF001
    # A type that was renamed was always the same type: a rule holds for its past too.
    newest = session.read_catalog(session.head("main", ledger, fresh=False).catalog, ledger)
    sight = permissions.sight(view.catalog, newest)
    return replace(view, catalog=sight.visible, sight=sight)


def find_type(catalog: Catalog, name: str) -> GraphType:
    if not isinstance(name, str):
        raise InvalidArgument(f"A type is named by a text, not by {type(name).__name__}.")
    kind = catalog.find(name)
    if kind is None:
        names = [t.name for t in (*catalog.nodes, *catalog.edges)]
        guess = near(name, names)
        hint = f"Did you mean {guess}?" if guess else f"There are: {', '.join(names[:20])}."
        raise TypeNotFound(f"There is no type {name!r}.", help=hint)
    return kind


def pin_of(view: GraphView, kind: GraphType) -> TablePin:
    """Where the rows of a type are; how many, if the caller sees all of them."""
    pin = _named_pin(view, kind)
    hidden = view.sight is not None and not view.sight.sees_all(kind)
    return msgspec.structs.replace(pin, rows=0) if hidden else pin


def _named_pin(view: GraphView, kind: GraphType) -> TablePin:
    """The pin that the version names. Schema and version come from two objects, so it is no
    matter of course that they know the same types."""
    pin = view.graph_version.pins.get(kind.table_key)
    if pin is None:
        raise Corrupt(
            f"{version_key(view.branch, view.version)} names no table of {kind.name}, which is "
            "in its schema."
        )
    return pin
