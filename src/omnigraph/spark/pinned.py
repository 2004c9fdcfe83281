"""Owns how a table gets to executors: as a pin, which executors open through the same view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from omnigraph.engine.cache import Cache
from omnigraph.engine.graph_view import GraphView, pin_of
from omnigraph.engine.lookup import Lookups
from omnigraph.engine.overlay import Overlay
from omnigraph.engine.view import TableView
from omnigraph.model.catalog import Catalog, GraphType, encode_catalog
from omnigraph.model.catalog_file import decode_catalog
from omnigraph.store.open_tables import Tables
from omnigraph.store.roots import Root, parse_root
from omnigraph.store.tables import Table
from omnigraph.telemetry import Ledger


@dataclass(frozen=True)
class PinnedTable:
    """A version of the table of one type, by value."""

    root: str
    table: str
    location: str
    version: str
    catalog: bytes
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def kind(self) -> GraphType:
        return read_catalog(self.catalog).by_key[self.table]

    def view(self) -> TableView:
        kind = self.kind
        table = open_table(self.root, self.location, self.version, self.options)
        return TableView(kind, table, Overlay.empty(kind), Lookups(Cache(0), rows=0))


def pin_table(root: Root | str, snapshot: GraphView, kind: GraphType) -> PinnedTable:
    """The root is resolved here, so executors need no variables of their own to reach it."""
    pin = pin_of(snapshot, kind)
    found = parse_root(root) if isinstance(root, str) else root
    return PinnedTable(
        root=found.uri,
        table=kind.table_key,
        location=pin.location,
        version=pin.lance_version,
        catalog=encode_catalog(snapshot.catalog),
        options=root_options(found),
    )


def group_fragments(sizes: Sequence[tuple[int, int]], rows: int) -> list[tuple[int, ...]]:
    """Fragments with their numbers of rows, in groups of about this many rows."""
    groups: list[tuple[int, ...]] = []
    held: list[int] = []
    count = 0
    for number, size in sizes:
        if held and count + size > rows:
            groups.append(tuple(held))
            held, count = [], 0
        held.append(number)
        count += size
    return [*groups, tuple(held)] if held else groups


def share_fragments(sizes: Sequence[tuple[int, int]], rows: int) -> list[tuple[int, ...]]:
    """Fragments with their numbers of rows, in groups of at most about this many rows and of
    similar size, so that the last task to end is not one that had more to do."""
    total = sum(size for _, size in sizes)
    share = total / max(-(-total // rows), 1)
    groups: list[list[int]] = []
    before = 0
    for number, size in sizes:
        if not groups or before + size / 2 > share * len(groups):
            groups.append([])
        groups[-1].append(number)
        before += size
    return [tuple(group) for group in groups]


@lru_cache(maxsize=8)
def read_catalog(data: bytes) -> Catalog:
    return decode_catalog(data)


def root_options(root: Root) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(root.options.items()))


def open_table(
    root: str, location: str, version: str, options: tuple[tuple[str, str], ...] = ()
) -> Table:
    return _tables(root, options).open(location, version, Ledger())


@lru_cache(maxsize=8)
def _tables(root: str, options: tuple[tuple[str, str], ...]) -> Tables:
    found = parse_root(root)
    return Tables(replace(found, options=dict(options)) if options else found)
