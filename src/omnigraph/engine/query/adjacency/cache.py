"""Owns the adjacency that is kept. It is built once for an edge table version, extended for related
versions, and read from a file beside the table if there is one, all within the budget of the
cache."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
import pyarrow as pa

from omnigraph.engine.cache import Cache, Key, checkpoint
from omnigraph.engine.columns import Columns
from omnigraph.engine.query.adjacency.arrays import NOTHING, Adjacency, changed, derive, no_edges
from omnigraph.engine.query.adjacency.file import artefact_key, decode_endpoints, encode_endpoints
from omnigraph.engine.query.adjacency.vertices import Vertices
from omnigraph.engine.query.rows import TypeRows
from omnigraph.engine.session import Session
from omnigraph.store.fragments import FragmentMark
from omnigraph.store.objects import Absent
from omnigraph.store.tables import Table
from omnigraph.telemetry import Ledger

_VERSIONS = 3
_WORTH_WRITING = 50_000
"""From this many edges on, a file saves time."""
_EDGE = 40
"""The approximate size of an edge in both directions."""

_Held = dict[tuple[str, int, int], Adjacency]
"""For one edge table: by version, and by the vertex numbers of both ends."""


class Adjacencies:
    """The adjacency of edge tables, for all versions that an open graph reads."""

    @classmethod
    def shared_by(cls, session: Session) -> Adjacencies:
        """The one of all handles of this session."""
        return session.shared(_adjacencies)

    def __init__(
        self,
        cache: Cache,
        columns: Columns,
        *,
        read: Callable[[str, Ledger], bytes | None],
        write: Callable[[str, bytes, Ledger], None],
    ) -> None:
        self._cache = cache
        self._columns = columns
        self._read = read
        self._write = write
        self._lock = threading.Lock()
        self._touches: dict[tuple[str, str], int] = {}

    # Vertices

    def vertices(self, node: TypeRows) -> Vertices:
        if node.vertices is None:
            key = ("vertices", node.view.table.location)
            with self._lock:
                found: Vertices | None = self._cache.get(key)
                if found is None:
                    found = Vertices()
                    self._cache.keep(key, found, found.nbytes)
            node.vertices = found
        return node.vertices

    def _encode(self, node: TypeRows, ids: pa.Array) -> np.ndarray:
        """The vertex of each id."""
        vertices = self.vertices(node)
        numbers = vertices.encode(ids)
        self._cache.rebook(("vertices", node.view.table.location), vertices, vertices.nbytes)
        return numbers

    def vertex_of(self, node: TypeRows, ledger: Ledger) -> np.ndarray:
        """The vertex of each position."""

        def encode() -> np.ndarray:
            parts = [self._vertices_of_ids(node, mark, ledger) for mark in node.marks]
            return np.concatenate([np.array([], np.int32), *parts])

        if node.view.overlay.replaced:
            stored = np.array([], np.int32)
        else:
            stored = self._columns.remember(self._of_version(node, "vertex_of"), encode)
        pending = node.view.overlay.rows
        if not pending.num_rows:
            return stored
        given = self._encode(node, pending["id"].combine_chunks())
        return np.concatenate([stored, given])

    def _vertices_of_ids(self, node: TypeRows, mark: FragmentMark, ledger: Ledger) -> np.ndarray:
        table = node.view.table
        found: np.ndarray = self._columns.remember(
            self._of_files(node, table, mark, "id"),
            lambda: self._encode(node, self._columns.read(table, [mark], "id", ledger)[0]),
        )
        return found

    def _of_version(self, node: TypeRows, *what: str | int) -> Key:
        table = node.view.table
        return (table.location, table.version, self.vertices(node).serial, *what)

    def _of_files(self, node: TypeRows, table: Table, mark: FragmentMark, column: str) -> Key:
        """The vertices of a column with ids of the node type."""
        return (table.location, mark.files, column, self.vertices(node).serial, "vertices")

    def position_of(self, node: TypeRows, ledger: Ledger) -> np.ndarray:
        """The position of each vertex, -1 if the version has no such entity."""
        vertex_of = self.vertex_of(node, ledger)
        vertices = self.vertices(node)

        def invert() -> np.ndarray:
            positions = np.full(vertices.count, -1, np.int64)
            positions[vertex_of[node.live]] = node.live
            return positions

        if not node.is_plain:
            return invert()
        found: np.ndarray = self._columns.remember(self._of_version(node, "position_of"), invert)
        return found

    def vertices_unless_same(self, node: TypeRows, ledger: Ledger) -> np.ndarray | None:
        """The vertex of each position, or None if vertex and position are the same."""
        found = self.vertex_of(node, ledger)
        return None if self._is_same(node, found, "vertex_of") else found

    def positions_unless_same(self, node: TypeRows, ledger: Ledger) -> np.ndarray | None:
        found = self.position_of(node, ledger)
        return None if self._is_same(node, found, "position_of") else found

    def _is_same(self, node: TypeRows, numbers: np.ndarray, what: str) -> bool:
        def compare() -> np.ndarray:
            return np.array([np.array_equal(numbers, np.arange(len(numbers)))])

        if not node.is_plain:
            return False
        key = self._of_version(node, what, len(numbers), "same")
        same: np.ndarray = self._columns.remember(key, compare)
        return bool(same[0])

    # Adjacency

    def is_near(self, edge: TypeRows) -> bool:
        """Whether the adjacency, or that of a relative, is in memory."""
        return bool(self._cache.get(_key(edge)))

    def touch(self, edge: TypeRows) -> int:
        """Counts how often this version was needed without its adjacency."""
        key = (edge.view.table.location, edge.view.table.version)
        with self._lock:
            self._touches[key] = self._touches.get(key, 0) + 1
            if len(self._touches) > 4096:
                self._touches.clear()
                return 1
            return self._touches[key]

    def fits(self, edge: TypeRows) -> bool:
        """Whether it fits beside everything else that following edges needs."""
        return edge.stored * _EDGE <= self._cache.limit // 2

    def of(self, edge: TypeRows, source: TypeRows, target: TypeRows, ledger: Ledger) -> Adjacency:
        table = edge.view.table
        if edge.view.overlay.replaced:
            adjacency = no_edges(self._grown(edge))
        else:
            adjacency = self._stored(edge, source, target, ledger)
        if edge.is_plain:
            return adjacency
        hidden = edge.positions_of(edge.view.overlay.hidden) if table.marks else NOTHING
        pending = edge.view.overlay.rows
        src = self._encode(source, pending["src"].combine_chunks())
        dst = self._encode(target, pending["dst"].combine_chunks())
        stored = edge.stored
        return changed(
            adjacency,
            adjacency.marks,
            hidden if not edge.view.overlay.replaced else NOTHING,
            np.arange(stored, edge.capacity, dtype=np.int64),
            np.concatenate([adjacency.src[:stored], src]),
            np.concatenate([adjacency.dst[:stored], dst]),
            self._count(source, target),
        )

    def _stored(
        self, edge: TypeRows, source: TypeRows, target: TypeRows, ledger: Ledger
    ) -> Adjacency:
        numbers = (self.vertices(source).serial, self.vertices(target).serial)
        key = (edge.view.table.version, *numbers)
        return self._cache.once(
            ("arranging", edge.view.table.location, *key),
            lambda: self._known(edge, key),
            lambda: self._arranged(edge, source, target, key, ledger),
        )

    def _known(self, edge: TypeRows, key: tuple[str, int, int]) -> Adjacency | None:
        with self._lock:
            held: _Held = self._cache.get(_key(edge)) or {}
            found = held.pop(key, None)
            if found is not None:
                held[key] = found  # the last one that was asked for
            return found

    def _arranged(
        self,
        edge: TypeRows,
        source: TypeRows,
        target: TypeRows,
        key: tuple[str, int, int],
        ledger: Ledger,
    ) -> Adjacency:
        with self._lock:
            held: _Held = self._cache.get(_key(edge)) or {}
            related = [a for known, a in reversed(held.items()) if known[1:] == key[1:]]
        checkpoint()
        src, dst = self._endpoints(edge, source, target, ledger)
        checkpoint()
        count = self._count(source, target)
        made = next(
            (m for a in related if (m := derive(a, edge, src, dst, count)) is not None),
            None,
        )
        if made is None:
            live = edge.with_nothing_pending().live
            made = Adjacency(tuple(edge.marks), live, src, dst, count, self._grown(edge))
        return self._keep(edge, key, made)

    def _count(self, source: TypeRows, target: TypeRows) -> int:
        return max(self.vertices(source).count, self.vertices(target).count)

    def _endpoints(
        self, edge: TypeRows, source: TypeRows, target: TypeRows, ledger: Ledger
    ) -> tuple[np.ndarray, np.ndarray]:
        """The vertices of both ends of each edge, by position. Only new files are read."""
        self.vertex_of(source, ledger)
        self.vertex_of(target, ledger)
        table = edge.view.table
        held: dict[tuple[int, str], np.ndarray] = {}
        missing = []
        for mark in edge.marks:
            for end, node in (("src", source), ("dst", target)):
                found = self._columns.get(self._of_files(node, table, mark, end))
                if found is not None:
                    held[mark.id, end] = found
            if (mark.id, "src") not in held or (mark.id, "dst") not in held:
                missing.append(mark)
        if sum(mark.physical for mark in missing) >= _WORTH_WRITING:
            missing = self._from_artefact(edge, source, target, missing, held, ledger)
        if missing:
            rows = table.read_physical(["src", "dst"], [m.id for m in missing], ledger)
            for end, node in (("src", source), ("dst", target)):
                numbers = self._encode(node, rows[end].combine_chunks())
                start = 0
                for mark in missing:
                    part = numbers[start : start + mark.physical].copy()
                    start += mark.physical
                    held[mark.id, end] = part
                    self._columns.keep(self._of_files(node, table, mark, end), part, part.nbytes)
        none = np.array([], np.int32)
        src = np.concatenate([none, *[held[mark.id, "src"] for mark in edge.marks]])
        dst = np.concatenate([none, *[held[mark.id, "dst"] for mark in edge.marks]])
        return src, dst

    # Beside the table

    def write_artefact(
        self, edge: TypeRows, source: TypeRows, target: TypeRows, ledger: Ledger
    ) -> None:
        """Writes the ends of all edges beside the table."""
        src, dst = self._endpoints(edge, source, target, ledger)
        sources, from_place = self._listed(source, src)
        targets, to_place = self._listed(target, dst)
        parts = [
            (
                mark,
                from_place[start : start + mark.physical],
                to_place[start : start + mark.physical],
            )
            for mark, start in zip(edge.marks, edge.starts.tolist(), strict=False)
        ]
        key = artefact_key(edge.view.table.location)
        self._write(key, encode_endpoints(sources, targets, parts), ledger)

    @staticmethod
    def is_worth_writing(edges: int) -> bool:
        return edges >= _WORTH_WRITING

    def _listed(self, node: TypeRows, ends: np.ndarray) -> tuple[pa.Array, np.ndarray]:
        """The distinct ids at these ends, and for each end the index of its id."""
        distinct, places = np.unique(ends, return_inverse=True)
        return self.vertices(node).ids(distinct), places

    def _from_artefact(
        self,
        edge: TypeRows,
        source: TypeRows,
        target: TypeRows,
        missing: list[FragmentMark],
        held: dict[tuple[int, str], np.ndarray],
        ledger: Ledger,
    ) -> list[FragmentMark]:
        """Takes what the file beside the table has, and returns what is still missing."""
        data = self._read(artefact_key(edge.view.table.location), ledger)
        found = None if data is None else decode_endpoints(data)
        if found is None:
            return missing
        table = edge.view.table
        ends = (
            ("src", source, self._encode(source, found.sources)),
            ("dst", target, self._encode(target, found.targets)),
        )
        rest = []
        for mark in missing:
            part = found.parts.get(mark.files)
            if part is None or any(len(places) != mark.physical for places in part):
                rest.append(mark)
                continue
            for (end, node, numbers), places in zip(ends, part, strict=True):
                vertices = held[mark.id, end] = numbers[places]
                key = self._of_files(node, table, mark, end)
                self._columns.keep(key, vertices, vertices.nbytes)
        return rest

    # What is kept

    def _keep(self, edge: TypeRows, key: tuple[str, int, int], adjacency: Adjacency) -> Adjacency:
        with self._lock:
            held: _Held = self._cache.get(_key(edge)) or {}
            held.pop(key, None)
            held[key] = adjacency
            for old in list(held)[:-_VERSIONS]:
                del held[old]
            self._cache.keep(_key(edge), held, _size(held.values()))
        return adjacency

    def _grown(self, edge: TypeRows) -> Callable[[], None]:
        return partial(self._measure, _key(edge))

    def _measure(self, key: Key) -> None:
        """Books memory that kept adjacency has grown by."""
        with self._lock:
            held: _Held | None = self._cache.get(key)
            if held is not None:
                self._cache.rebook(key, held, _size(held.values()))


def _key(edge: TypeRows) -> Key:
    return ("adjacency", edge.view.table.location)


def _size(held: Iterable[Adjacency]) -> int:
    """Versions share arrays that do not differ."""
    return sum({id(a): int(a.nbytes) for each in held for a in each.arrays()}.values())


def _adjacencies(session: Session) -> Adjacencies:
    def read(key: str, ledger: Ledger) -> bytes | None:
        try:
            return session.metered(ledger).get(key)
        except Absent:
            return None

    return Adjacencies(
        Cache.shared_by(session),
        Columns.shared_by(session),
        read=read,
        write=lambda key, data, ledger: session.metered(ledger).put(key, data),
    )
