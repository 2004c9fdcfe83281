"""Owns staging: files of a table that are complete and that nobody can see yet."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from omnigraph.store.panics import explained
from omnigraph.store.tables import Table
from omnigraph.telemetry import Ledger

_PARALLEL = 8
_ONE_PUT = 5 * 1024 * 1024  # larger files are uploaded in parts


@dataclass(frozen=True)
class Staged:
    """Written fragments, as JSON. `fields` says what each of their field ids meant there."""

    fragments: tuple[str, ...]
    fields: dict[int, str]
    rows: int
    bytes: int


@dataclass(frozen=True)
class StagedDeletes:
    """Fragments with a new deletion file, and fragments that lost their last row."""

    updated: tuple[str, ...] = ()
    removed: tuple[int, ...] = ()


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """An index over some fragments, built and not yet part of any version."""

    uuid: str
    name: str
    fields: tuple[int, ...]
    dataset_version: int
    fragment_ids: tuple[int, ...]
    index_version: int
    files: tuple[tuple[str, int], ...]
    details_url: str
    details: bytes


def stage_rows(table: Table, rows: pa.Table | pa.RecordBatchReader, ledger: Ledger) -> Staged:
    """Rows with column names of the table; columns left out are null."""
    from lance.fragment import write_fragments

    with explained(table.location):
        written = write_fragments(rows, table.handle, mode="append", enable_stable_row_ids=False)
    sizes = [file.file_size_bytes or 0 for fragment in written for file in fragment.files]
    large = sum(size > _ONE_PUT for size in sizes)
    known = len(sizes) if not large and not table.blobs else None
    table.book(ledger, "data", reads=0, writes=known, hops=lambda *_: 1)
    if table.directory is None and large:
        # Lance counts the parts of an upload, not its beginning and its end.
        ledger.record("post", "data", count=2 * large, hops=2)
    return Staged(
        fragments=tuple(json.dumps(f.to_json()) for f in written),
        fields=table.fields,
        rows=sum(f.physical_rows for f in written),
        bytes=sum(sizes),
    )


def stage_deletes(table: Table, addresses: np.ndarray, ledger: Ledger) -> StagedDeletes:
    """Side by side: each fragment that keeps some rows gets a deletion file of its own, made
    from the one that it had."""

    def delete(number: int) -> Any:
        offsets = (addresses[addresses >> 32 == number] & 0xFFFFFFFF).tolist()
        return table.handle.get_fragment(number).delete_rows(offsets)

    numbers = np.unique(addresses >> 32).tolist()
    with explained(table.location, missing=f"A file of the table {table.location}"):
        if len(numbers) == 1:
            changed = [delete(numbers[0])]
        else:
            with ThreadPoolExecutor(_PARALLEL) as pool:
                changed = list(pool.map(delete, numbers))
    updated = tuple(json.dumps(after.to_json()) for after in changed if after is not None)
    again = any(table.marks[number].deletion for number in numbers)
    table.book(
        ledger,
        "deletion",
        reads=None if again else 0,
        writes=len(updated),
        hops=lambda reads, writes: (reads > 0) + (writes > 0),
    )
    return StagedDeletes(
        updated=updated,
        removed=tuple(n for n, after in zip(numbers, changed, strict=True) if after is None),
    )


def stage_compaction(
    table: Table, ledger: Ledger, *, target_rows: int = 1024 * 1024
) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Groups of (old fragments, new fragments) with the same rows."""
    from lance.optimize import Compaction

    groups = []
    with explained(table.location, missing=f"A file of the table {table.location}"):
        plan = Compaction.plan(table.handle, {"target_rows_per_fragment": target_rows})
        for task in plan.tasks:
            done = json.loads(task.execute(table.handle).json())
            old = tuple(json.dumps(f) for f in done["original_fragments"])
            groups.append((old, tuple(json.dumps(f) for f in done["new_fragments"])))
    table.book(ledger, "compaction")
    return groups


def shared_fragments(
    source: Table, target: Table, known: Collection[str], needed: Collection[str]
) -> Iterator[tuple[int, str]]:
    """Fragments of one version that can be appended to another by metadata alone: not among the
    `known` (by their first file) nor in the target, without a deletion file (it cannot be
    renumbered), with columns that mean the same in both, and with all that are `needed`: one
    that a fragment does not have reads as null (hazards 5 and 7)."""
    present = {path for mark in target.marks.values() for path in mark.files}
    for number, mark in source.marks.items():
        if mark.files[0] in known or mark.deletion is not None or present & set(mark.files):
            continue
        metadata = source.handle.get_fragment(number).metadata
        numbers = {n for file in metadata.files for n in file.fields if n in source.fields}
        if any(source.fields.get(n) != target.fields.get(n) for n in numbers):
            continue
        columns = {source.fields[n].split(" ")[0].split("/")[1] for n in numbers}
        if not set(needed) <= columns:
            continue
        cleared = {
            "id": 0,
            "row_id_meta": None,
            "created_at_version_meta": None,
            "last_updated_at_version_meta": None,
        }
        yield number, json.dumps(metadata.to_json() | cleared)


def stage_index(
    table: Table, column: str, kind: str, fragments: Sequence[int], ledger: Ledger
) -> Segment:
    with explained(table.location, missing=f"A file of the table {table.location}"):
        built = table.handle.create_index_uncommitted(
            column,
            kind,
            name=f"{column}_{kind.lower()}",
            fragment_ids=list(fragments),
            replace=True,
        )
        if kind == "INVERTED":
            built = table.handle.merge_existing_index_segments([built])
    table.book(ledger, "index")
    return _segment(built)


def _segment(built: Any) -> Segment:
    url, details = built.index_details or ("", b"")
    return Segment(
        uuid=str(built.uuid),
        name=built.name,
        fields=tuple(built.fields),
        dataset_version=built.dataset_version,
        fragment_ids=tuple(sorted(built.fragment_ids)),
        index_version=built.index_version,
        files=tuple((f.path, f.size_bytes) for f in built.files or ()),
        details_url=url,
        details=details,
    )
