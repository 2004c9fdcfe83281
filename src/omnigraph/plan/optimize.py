"""Owns the decisions of maintenance: which fragments to rewrite and which indexes to build.

Pure: from the sizes of fragments, from what segments cover and from limits. Nothing here looks at
rows, so it costs nothing to ask after every commit.

Fragments are merged as in a binary counter: one joins those that are smaller only once they are
together as large as it is. So a row is rewritten at most once for each doubling of its fragment,
a logarithm of the table however often maintenance runs, and what is left behind are fragments of
growing size, a logarithm of them as well. Segments are merged by the same rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

from omnigraph.model.analysis import analysis_of
from omnigraph.model.catalog import GraphType, system_columns
from omnigraph.model.indexes import IndexKind, IndexSpec
from omnigraph.model.types import FLOATS, Base, EnumType, ListType, ScalarType, VectorType


@dataclass(frozen=True)
class Limits:
    """`tail`: so many fragments may wait to be merged. `floor`: fragments below so many bytes
    are all alike, because a request costs more than to write them again. `target_rows` and
    `target_bytes`: a fragment of this size is left alone, unless `deleted` of its rows are gone.
    `index_rows`: tables with fewer rows, and with `backlog` rows that no segment covers, need no
    index, because reading them is as fast. `vector_rows`: the same for vectors. `versions`: so
    many old graph versions are folded into the history at a time, and no fewer.
    `segment_rows`: a segment of half this size is left alone, as long as an index has at most
    `segments`."""

    tail: int = 1
    floor: int = 64 * 1024
    target_rows: int = 1024 * 1024
    target_bytes: int = 512 * 1024 * 1024
    deleted: float = 0.15
    index_rows: int = 1024
    backlog: int = 1
    vector_rows: int = 1000
    versions: int = 1024
    segment_rows: int = 4 * 1024 * 1024
    segments: int = 8


BY_HAND = Limits(deleted=0.1)
BY_ITSELF = Limits(tail=12, backlog=1024, versions=4096)
_DEAD = 0.1
LAGGING = 4
"""By which factor a tail may be too long before writers must wait."""


@dataclass(frozen=True)
class Piece:
    """The sizes of a fragment. `rows` does not count the `deleted` ones."""

    id: int
    rows: int
    deleted: int
    bytes: int


@dataclass(frozen=True)
class Covered:
    """A segment: its name in the store, and the fragments over which it was built."""

    uuid: str
    fragments: frozenset[int]


@dataclass(frozen=True)
class IndexWork:
    """A segment to build over `fragments` (none if there is nothing to cover) that replaces those
    in `removed`."""

    spec: IndexSpec
    fragments: tuple[int, ...]
    removed: tuple[str, ...]


def plan_compaction(pieces: Iterable[Piece], limits: Limits) -> tuple[tuple[int, ...], ...]:
    """Groups of fragments, each to be written as one, or as few as are large enough."""
    pieces = list(pieces)
    small = [p for p in pieces if p.rows < limits.target_rows and p.bytes < limits.target_bytes]
    small.sort(key=lambda p: (p.bytes, p.id))
    joined: list[int] = []
    waiting: list[int] = []
    for run in _runs([p.bytes for p in small], limits.floor):
        waiting += [small[n].id for n in run]
        if len(run) > limits.tail:
            # Smaller fragments join this run: together they are less than the next piece.
            joined, waiting = joined + waiting, []
    groups = [tuple(sorted(joined))] if len(joined) > 1 else []
    taken = set(joined)
    for piece in pieces:
        share = piece.deleted / max(piece.rows + piece.deleted, 1)
        worth = piece.bytes >= limits.floor or limits.tail == 1
        if piece.id not in taken and piece.deleted and share >= limits.deleted and worth:
            groups.append((piece.id,))
    return tuple(groups)


def tail_length(pieces: Iterable[Piece], limits: Limits) -> int:
    """How many fragments wait to be merged, at most. Reads are as slow as this is long."""
    sizes = sorted(
        p.bytes for p in pieces if p.bytes < limits.target_bytes and p.rows < limits.target_rows
    )
    return max((len(run) for run in _runs(sizes, limits.floor)), default=0)


def _runs(sizes: Sequence[int], floor: int) -> Iterator[range]:
    """Splits growing sizes where one is larger than the sum of all before it."""
    begin, total = 0, 0
    for place, size in enumerate(sizes):
        if place > begin and size > max(total, floor):
            yield range(begin, place)
            begin = place
        total += size
    if begin < len(sizes):
        yield range(begin, len(sizes))


def wanted_indexes(kind: GraphType) -> tuple[IndexSpec, ...]:
    """Ids and the ends of edges, and what `@key`, `@unique` and `@index` name; of several
    properties together each has its own."""
    specs = dict.fromkeys(IndexSpec(name, "BTREE") for name in system_columns(kind))
    types = {p.name: p for p in kind.properties}
    found_by_value = [kind.key, *kind.uniques]
    groups = [*((group, True) for group in found_by_value), *((g, False) for g in kind.indexes)]
    for group, by_value in groups:
        for name in group:
            if name not in types:
                continue  # src and dst have theirs
            declared = types[name]
            match declared.type:
                case ScalarType(base=Base.BLOB):
                    kinds: tuple[IndexKind, ...] = ()
                case ScalarType(base=Base.BOOL) | EnumType():
                    kinds = ("BITMAP",)
                case ScalarType(base=Base.STRING):
                    kinds = ("BTREE",) if by_value else ("BTREE", "INVERTED")
                case ScalarType(base=base):
                    # Lance orders floats totally and queries by IEEE: they are never asked by
                    # index (decision 5).
                    kinds = () if base in FLOATS else ("BTREE",)
                case ListType(item=item):
                    kinds = () if item in FLOATS else ("LABEL_LIST",)
                case VectorType():
                    kinds = ("IVF_FLAT",)
                case _:
                    assert_never(declared.type)
            analysis = analysis_of(declared).name
            size = declared.type.dimension if isinstance(declared.type, VectorType) else 1
            specs |= dict.fromkeys(
                IndexSpec(declared.column, one, analysis, size)
                if one == "INVERTED"
                else IndexSpec(declared.column, one, dimension=size)
                for one in kinds
            )
    return tuple(specs)


def plan_index(
    spec: IndexSpec, pieces: Iterable[Piece], segments: Iterable[Covered], limits: Limits
) -> IndexWork | str | None:
    """What to do for one index: build over what no segment covers together with segments that
    are no larger; or why that has to wait; or None, when all is covered."""
    pieces = list(pieces)
    rows = {p.id: p.rows for p in pieces}
    total = sum(rows.values())
    live = {s.uuid: [n for n in s.fragments if n in rows] for s in segments}
    known = {s.uuid: s for s in segments}
    dead = {p.id: p.deleted for p in pieces}
    stale = {u for u, left in live.items() if _is_stale(spec, known[u], left, rows, dead)}
    covered = {n for u, left in live.items() if u not in stale for n in left}
    missing = sorted(set(rows) - covered)
    if not missing and not stale:
        return _merged(spec, live, rows, limits)
    least = limits.vector_rows if spec.kind == "IVF_FLAT" else limits.index_rows
    if total < least and not live:
        return f"fewer than {least:,} rows: reading them is as fast"
    backlog = sum(rows[n] for n in missing)
    if backlog < limits.backlog and not stale:
        return f"{backlog:,} rows are not covered yet: too few for a segment of their own"
    joined, removed = list(missing), sorted(stale)
    size = max(backlog, limits.index_rows)
    few = len(live) < limits.segments
    for uuid in sorted(live.keys() - stale, key=lambda u: (_rows(live[u], rows), u)):
        own = _rows(live[uuid], rows)
        if own > size or (few and _is_full(own, limits)):
            break
        size += own
        joined += live[uuid]
        removed.append(uuid)
    return IndexWork(spec, tuple(sorted(joined)), tuple(removed))


def _is_stale(
    spec: IndexSpec, segment: Covered, left: list[int], rows: dict[int, int], dead: dict[int, int]
) -> bool:
    """Whether a segment should be built anew. Most of its fragments are gone: it holds more dead
    entries than live ones. Words of rows that are gone also count in the scores of the others, so
    a segment of words goes with the first rewrite under it, and with a tenth of its rows."""
    if 2 * len(left) < len(segment.fragments):
        return True
    if spec.kind != "INVERTED":
        return False
    gone = sum(dead[n] for n in left)
    return len(left) < len(segment.fragments) or gone > _DEAD * (gone + _rows(left, rows))


def _merged(
    spec: IndexSpec, live: dict[str, list[int]], rows: dict[int, int], limits: Limits
) -> IndexWork | None:
    """Everything is covered, but by too many segments."""
    order = sorted(live, key=lambda u: (_rows(live[u], rows), u))
    if len(live) <= limits.segments:
        order = [u for u in order if not _is_full(_rows(live[u], rows), limits)]
    sizes = [_rows(live[u], rows) for u in order]
    for run in _runs(sizes, limits.index_rows):
        if len(run) > 1:
            chosen = [order[n] for n in run]
            fragments = sorted(n for u in chosen for n in live[u])
            return IndexWork(spec, tuple(fragments), tuple(chosen))
    return None


def _rows(fragments: Sequence[int], rows: dict[int, int]) -> int:
    return sum(rows[n] for n in fragments)


def _is_full(rows: int, limits: Limits) -> bool:
    """Parts of what was split are of about the same number of bytes, and not of rows."""
    return 2 * rows >= limits.segment_rows


def split_segment(pieces: Sequence[Piece], limits: Limits) -> list[tuple[int, ...]]:
    """The fragments of a segment, in as many parts as are worth a segment of their own, of about
    the same number of bytes: each is built by a task, and each costs every lookup a read."""
    count = min(sum(p.rows for p in pieces) // limits.segment_rows, limits.segments, len(pieces))
    if count < 2:
        return [tuple(p.id for p in pieces)]
    share = sum(p.bytes for p in pieces) / count
    parts: list[list[int]] = [[]]
    before = 0
    for piece in pieces:
        if parts[-1] and len(parts) < count and before + piece.bytes / 2 > share * len(parts):
            parts.append([])
        parts[-1].append(piece.id)
        before += piece.bytes
    return [tuple(part) for part in parts]
