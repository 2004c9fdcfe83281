"""Owns staging: files of a table that are complete and that nobody can see yet."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from omnigraph.store.panics import explained
from omnigraph.store.tables import Table
from omnigraph.telemetry import Ledger


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
    table.book(ledger, "data", hops=1)
    return Staged(
        fragments=tuple(json.dumps(f.to_json()) for f in written),
        fields=table.fields,
        rows=sum(f.physical_rows for f in written),
        bytes=sum(d.file_size_bytes or 0 for f in written for d in f.files),
    )


def stage_deletes(table: Table, addresses: np.ndarray, ledger: Ledger) -> StagedDeletes:
    updated, removed = [], []
    with explained(table.location, missing=f"A file of the table {table.location}"):
        for number in np.unique(addresses >> 32).tolist():
            offsets = (addresses[addresses >> 32 == number] & 0xFFFFFFFF).tolist()
            changed = table.handle.get_fragment(number).delete_rows(offsets)
            if changed is None:
                removed.append(number)
            else:
                updated.append(json.dumps(changed.to_json()))
    table.book(ledger, "deletion", hops=1 if updated else 0)
    return StagedDeletes(tuple(updated), tuple(removed))


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
