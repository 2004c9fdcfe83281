"""Owns index segments: which exist, building one over given fragments, and putting it in place.

A logical index is a list of segments over disjoint fragments, all of one name. Fragments without a
segment are searched row by row, so an index changes how long an answer takes, never the answer.
That holds only while four rules are kept (design, section 2): changed rows get a new place
(`commits.change`), a fragment number is never reused and rewritten fragments lose their version
metadata (`commits.rewrite`), and segments of one index never overlap (`replace_segments`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from omnigraph.errors import Conflict, Corrupt, StoreFailure
from omnigraph.model.analysis import ANALYSES, STANDARD
from omnigraph.model.indexes import IndexKind, IndexSpec, index_name
from omnigraph.store.commits import commit_operation
from omnigraph.store.damaged_files import reading
from omnigraph.store.fragments import KnownSegment
from omnigraph.store.lance_errors import explained
from omnigraph.store.table_checksums import sum_files
from omnigraph.store.tables import Table
from omnigraph.telemetry import Ledger

_UNTRAINABLE = "KMeans cannot train"
_PAGE_ROWS = (256, 512, 1024, 2048, 4096)
"""The possible sizes of a BTREE page. The last one is Lance's default."""


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """An index over some fragments that is built and not yet part of any version."""

    uuid: str
    name: str
    fields: tuple[int, ...]
    dataset_version: int
    fragment_ids: tuple[int, ...]
    index_version: int
    files: tuple[tuple[str, int], ...]
    details_url: str
    details: bytes
    sums: dict[str, str] = {}


def list_segments(table: Table) -> tuple[KnownSegment, ...]:
    """All segments of all indexes."""
    return table.segments


def files_of(table: Table, fragments: Sequence[int]) -> dict[int, tuple[str, ...]]:
    """The data files of fragments, for which a segment built now will be valid."""
    return {number: table.marks[number].files for number in fragments}


def fits(table: Table, files: Mapping[int, tuple[str, ...]], removed: Sequence[str]) -> bool:
    """Whether segments built over these files can still be put in place here. Rows that were
    deleted since, and new fragments, do no harm."""
    here = {segment.uuid for segment in list_segments(table)}
    same = all(n in table.marks and table.marks[n].files == held for n, held in files.items())
    return same and here.issuperset(removed)


def page_rows(rows: int) -> int:
    """The number of values on a BTREE page. The first lookup reads the first and last value of
    every page and then one page, so both should have about the same size. With pages of 4,096 a
    point query would read as many bytes as a small table has; with pages of 256 a large index would
    be slow to build and to open."""
    return next((size for size in _PAGE_ROWS if size * size >= rows), _PAGE_ROWS[-1])


def stage_segment(
    table: Table,
    column: str,
    kind: IndexKind,
    fragments: Sequence[int],
    ledger: Ledger,
    *,
    partitions: int | None = None,
    analysis: str = STANDARD.name,
) -> Segment:
    """Builds a segment over fragments of this version. Nobody can see it before it is put in
    place with `replace_segments`, in this version or in a later one that still has the same
    fragments. `partitions` is for vectors, `analysis` for texts."""
    from lance.indices import IndexConfig

    options: dict[str, Any] = {}
    how: Any = kind
    match kind:
        case "BTREE":
            rows = sum(table.marks[number].rows for number in fragments)
            how = IndexConfig(index_type=kind, parameters={"zone_size": page_rows(rows)})
        case "INVERTED":
            # Phrases need to know where words stand.
            options |= {"with_position": True, **dict(ANALYSES[analysis].options)}
        case "IVF_FLAT":
            options |= {"metric": "cosine", "num_partitions": partitions}
    own = table.own_handle()
    with reading(table):
        built = own.create_index_uncommitted(
            column,
            how,
            name=index_name(column, kind, analysis),
            fragment_ids=sorted(fragments),
            replace=True,
            **options,
        )
        if kind == "INVERTED":
            built = own.merge_existing_index_segments([built])
    table.book(ledger, "index")
    url, details = built.index_details or ("", b"")
    files = tuple((f.path, f.size_bytes) for f in built.files or ())
    return Segment(
        uuid=str(built.uuid),
        name=built.name,
        fields=tuple(built.fields),
        dataset_version=built.dataset_version,
        fragment_ids=tuple(sorted(built.fragment_ids)),
        index_version=built.index_version,
        files=files,
        sums=sum_files(table, [f"_indices/{built.uuid}/{path}" for path, _ in files]),
        details_url=url,
        details=details,
    )


def stage_index(
    table: Table, spec: IndexSpec, fragments: Sequence[int], ledger: Ledger
) -> Segment | None:
    """A segment of an index over these fragments. None means that too few of its vectors have a
    direction to find partitions by, because most are null or zero. Searching them one by one is
    always correct."""
    rows = sum(table.marks[number].rows for number in fragments)
    partitions = spec.partitions(rows)
    if partitions is not None and not _has_vectors(table, spec.column, fragments, partitions):
        return None  # before Lance says so in its own words, on the user's terminal
    try:
        return stage_segment(
            table,
            spec.column,
            spec.kind,
            fragments,
            ledger,
            partitions=partitions,
            analysis=spec.analysis,
        )
    except (StoreFailure, Corrupt) as error:
        if _UNTRAINABLE not in error.message:
            raise
        table.book(ledger, "index")
        return None


def _has_vectors(table: Table, column: str, fragments: Sequence[int], count: int) -> bool:
    """Whether so many of the vectors are not null."""
    with reading(table):
        held = [table.handle.get_fragment(number) for number in fragments]
        scanner = table.handle.scanner(
            columns=["_rowid"], filter=f"{column} IS NOT NULL", limit=count, fragments=held
        )
        return bool(scanner.to_table().num_rows >= count)


def replace_segments(
    table: Table,
    files: Mapping[int, tuple[str, ...]],
    segments: Sequence[Segment],
    ledger: Ledger,
    *,
    removed: Sequence[str] = (),
) -> Table:
    """A version with these segments and without the `removed` ones (by uuid). Each covered fragment
    must have the data files over which the segments were built (`files`), and no index may cover a
    fragment twice: Lance would silently give wrong answers (hazard 3)."""
    from lance import LanceOperation

    leaving = [index for index in _indices(table) if index.uuid in set(removed)]
    if len(leaving) != len(set(removed)):
        raise Conflict(f"An index of {table.location} was replaced by somebody else.")
    covered: dict[str, set[int]] = {}
    for known in list_segments(table):
        if known.uuid not in removed:
            covered.setdefault(known.name, set()).update(known.fragments)
    for segment in segments:
        for number in segment.fragment_ids:
            if number not in table.marks or table.marks[number].files != files.get(number):
                raise Conflict(f"A fragment of {table.location} changed while it was indexed.")
        seen = covered.setdefault(segment.name, set())
        if seen.intersection(segment.fragment_ids):
            raise Conflict(f"The index {segment.name} of {table.location} would overlap.")
        seen.update(segment.fragment_ids)
    operation = LanceOperation.CreateIndex(
        new_indices=[_index(segment) for segment in segments], removed_indices=leaving
    )
    paths = [f"_indices/{segment.uuid}/{path}" for segment in segments for path, _ in segment.files]
    sums = {path: value for segment in segments for path, value in segment.sums.items()}
    return commit_operation(table, operation, [], ledger, extra=paths, sums=sums)


def _indices(table: Table) -> list[Any]:
    """Segments in the form that Lance needs to remove them: it looks at their uuids."""
    from lance.dataset import Index

    with explained(table.location):
        return [
            Index(
                uuid=str(segment.uuid),
                name=index.name,
                fields=list(index.fields),
                dataset_version=segment.dataset_version_at_last_update,
                fragment_ids=set(segment.fragment_ids),
                index_version=segment.index_version,
            )
            for index in table.handle.describe_indices()
            for segment in index.segments
        ]


def _index(segment: Segment) -> Any:
    from lance.dataset import Index, IndexFile

    return Index(
        uuid=segment.uuid,
        name=segment.name,
        fields=list(segment.fields),
        dataset_version=segment.dataset_version,
        fragment_ids=set(segment.fragment_ids),
        index_version=segment.index_version,
        files=[IndexFile(path=path, size_bytes=size) for path, size in segment.files],
        index_details=(segment.details_url, segment.details),
    )
