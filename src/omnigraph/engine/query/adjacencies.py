"""Owns the adjacency that is kept: built once for an edge table version, extended for relatives of
it, read from beside the table where it was written, all within bounds."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from omnigraph.engine.columns import Columns
from omnigraph.engine.query.adjacency import NOTHING, Adjacency, changed, derive, no_edges
from omnigraph.engine.query.artefact import artefact_key, decode_endpoints, encode_endpoints
from omnigraph.engine.query.rows import TypeRows
from omnigraph.engine.query.vertices import Vertices
from omnigraph.store.tables import FragmentMark, Table
from omnigraph.telemetry import Ledger

_VERSIONS = 3
_WORTH_WRITING = 50_000
"""Edges from which on an artefact saves time."""


class Adjacencies:
    """The adjacency of edge tables, for all versions that one open graph reads."""

    def __init__(
        self,
        columns: Columns,
        *,
        cache_bytes: int,
        read: Callable[[str, Ledger], bytes | None],
        write: Callable[[str, bytes, Ledger], None],
    ) -> None:
        self._columns = columns
        self._read = read
        self._write = write
        self._budget = cache_bytes
        self._lock = threading.Lock()
        self._vertices: dict[str, Vertices] = {}
        self._held: OrderedDict[tuple[str, str], Adjacency] = OrderedDict()
        self._touches: dict[tuple[str, str], int] = {}

    # Vertices

    def vertices(self, node: TypeRows) -> Vertices:
        location = node.view.table.location
        with self._lock:
            found = self._vertices.get(location)
            if found is None:
                found = self._vertices[location] = Vertices()
            return found

    def vertex_of(self, node: TypeRows, ledger: Ledger) -> np.ndarray:
        """The vertex of each position."""
        vertices = self.vertices(node)
        table = node.view.table

        def encode() -> np.ndarray:
            parts = [self._vertices_of_ids(vertices, table, m, ledger) for m in node.marks]
            return np.concatenate([np.array([], np.int32), *parts])

        if node.view.overlay.replaced:
            stored = np.array([], np.int32)
        else:
            stored = self._columns.remember((table.location, table.version, "vertex_of"), encode)
        pending = node.view.overlay.rows
        if not pending.num_rows:
            return stored
        given = vertices.encode(pending["id"].combine_chunks())
        return np.concatenate([stored, given])

    def _vertices_of_ids(
        self, vertices: Vertices, table: Table, mark: FragmentMark, ledger: Ledger
    ) -> np.ndarray:
        key = (table.location, mark.id, mark.files, "id", "vertices")
        found: np.ndarray = self._columns.remember(
            key, lambda: vertices.encode(self._columns.read(table, [mark], "id", ledger)[0])
        )
        return found

    def position_of(self, node: TypeRows, ledger: Ledger) -> np.ndarray:
        """The position of each vertex, -1 where the version has no such entity."""
        vertex_of = self.vertex_of(node, ledger)
        vertices = self.vertices(node)

        def invert() -> np.ndarray:
            positions = np.full(vertices.count, -1, np.int64)
            positions[vertex_of[node.live]] = node.live
            return positions

        if not node.is_plain:
            return invert()
        table = node.view.table
        key = (table.location, table.version, "position_of")
        found: np.ndarray = self._columns.remember(key, invert)
        return found

    def vertices_unless_same(self, node: TypeRows, ledger: Ledger) -> np.ndarray | None:
        """The vertex of each position; None if that is the position itself."""
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
        table = node.view.table
        same: np.ndarray = self._columns.remember(
            (table.location, table.version, what, len(numbers), "same"), compare
        )
        return bool(same[0])

    # Adjacency

    def is_near(self, edge: TypeRows) -> bool:
        """Whether the adjacency is there, or that of a relative."""
        table = edge.view.table
        with self._lock:
            return any(location == table.location for location, _ in self._held)

    def touch(self, edge: TypeRows) -> int:
        """How often this version was asked for without its adjacency."""
        key = (edge.view.table.location, edge.view.table.version)
        with self._lock:
            self._touches[key] = self._touches.get(key, 0) + 1
            if len(self._touches) > 4096:
                self._touches.clear()
                return 1
            return self._touches[key]

    def fits(self, edge: TypeRows) -> bool:
        return edge.stored * 40 <= self._budget

    def of(self, edge: TypeRows, source: TypeRows, target: TypeRows, ledger: Ledger) -> Adjacency:
        table = edge.view.table
        if edge.view.overlay.replaced:
            adjacency = no_edges()
        else:
            adjacency = self._stored(edge, source, target, ledger)
        if edge.is_plain:
            return adjacency
        hidden = edge.positions_of(edge.view.overlay.hidden) if table.marks else NOTHING
        pending = edge.view.overlay.rows
        src = self.vertices(source).encode(pending["src"].combine_chunks())
        dst = self.vertices(target).encode(pending["dst"].combine_chunks())
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
        table = edge.view.table
        key = (table.location, table.version)
        with self._lock:
            found = self._held.get(key)
            if found is not None:
                self._held.move_to_end(key)
                return found
            related = [a for (place, _), a in reversed(self._held.items()) if place == key[0]]
        src, dst = self._endpoints(edge, source, target, ledger)
        count = self._count(source, target)
        made = next(
            (m for a in related if (m := derive(a, edge, src, dst, count)) is not None),
            None,
        )
        if made is None:
            live = edge.with_nothing_pending().live
            made = Adjacency(tuple(edge.marks), live, src, dst, count)
        return self._keep(key, made)

    def _count(self, source: TypeRows, target: TypeRows) -> int:
        return max(self.vertices(source).count, self.vertices(target).count)

    def _endpoints(
        self, edge: TypeRows, source: TypeRows, target: TypeRows, ledger: Ledger
    ) -> tuple[np.ndarray, np.ndarray]:
        """The vertices of both ends of each edge, by position; only new files are read."""
        self.vertex_of(source, ledger)
        self.vertex_of(target, ledger)
        table = edge.view.table
        held: dict[tuple[int, str], np.ndarray] = {}
        missing = []
        for mark in edge.marks:
            for end in ("src", "dst"):
                key = (table.location, mark.id, mark.files, end, "vertices")
                found = self._columns.get(key)
                if found is not None:
                    held[mark.id, end] = found
            if (mark.id, "src") not in held or (mark.id, "dst") not in held:
                missing.append(mark)
        if sum(mark.physical for mark in missing) >= _WORTH_WRITING:
            missing = self._from_artefact(edge, source, target, missing, held, ledger)
        if missing:
            rows = table.read_physical(["src", "dst"], [m.id for m in missing], ledger)
            for end, node in (("src", source), ("dst", target)):
                numbers = self.vertices(node).encode(rows[end].combine_chunks())
                start = 0
                for mark in missing:
                    part = numbers[start : start + mark.physical].copy()
                    start += mark.physical
                    held[mark.id, end] = part
                    key = (table.location, mark.id, mark.files, end, "vertices")
                    self._columns.keep(key, part, part.nbytes)
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
        """The ids at these ends, each once, and for each end its place among them."""
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
        """Takes from the artefact what it has, and gives what is still missing."""
        data = self._read(artefact_key(edge.view.table.location), ledger)
        found = None if data is None else decode_endpoints(data)
        if found is None:
            return missing
        numbers = {
            "src": self.vertices(source).encode(found.sources),
            "dst": self.vertices(target).encode(found.targets),
        }
        rest = []
        for mark in missing:
            part = found.parts.get((mark.id, mark.files))
            if part is None or len(part[0]) != mark.physical:
                rest.append(mark)
                continue
            for end, places in zip(("src", "dst"), part, strict=True):
                held[mark.id, end] = numbers[end][places]
                key = (edge.view.table.location, mark.id, mark.files, end, "vertices")
                self._columns.keep(key, held[mark.id, end], held[mark.id, end].nbytes)
        return rest

    def _keep(self, key: tuple[str, str], adjacency: Adjacency) -> Adjacency:
        with self._lock:
            self._held[key] = adjacency
            self._held.move_to_end(key)
            same = [k for k in self._held if k[0] == key[0]]
            for old in same[:-_VERSIONS]:
                del self._held[old]
            while len(self._held) > 1 and self._size() > self._budget:
                self._held.popitem(last=False)
        return adjacency

    def _size(self) -> int:
        return sum(adjacency.nbytes for adjacency in self._held.values())
