"""Owns staging: complete files of a table that nobody can see yet."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.store.damaged_files import reading
from omnigraph.store.lance_errors import explained
from omnigraph.store.table_checksums import note_fragment
from omnigraph.store.tables import Table
from omnigraph.telemetry import Ledger

_PARALLEL = 8
_SORTED = 64 * 1024 * 1024
"""Up to this size, rows are sorted in memory when they are rewritten."""
_ONE_PUT = 5 * 1024 * 1024  # larger files are uploaded in parts


@dataclass(frozen=True)
class Staged:
    """Written fragments, as JSON. `fields` says what each of their field ids meant at the time."""

    fragments: tuple[str, ...]
    fields: dict[int, str]
    rows: int
    bytes: int


@dataclass(frozen=True)
class StagedDeletes:
    """Fragments with a new deletion file, and fragments that lost their last row."""

    updated: tuple[str, ...] = ()
    removed: tuple[int, ...] = ()


def stage_rows(table: Table, rows: pa.Table | pa.RecordBatchReader, ledger: Ledger) -> Staged:
    """Rows with the column names of the table. Columns that are left out are null."""
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
        fragments=tuple(note_fragment(table, fragment) for fragment in written),
        fields=table.fields,
        rows=sum(f.physical_rows for f in written),
        bytes=sum(sizes),
    )


def stage_deletes(table: Table, addresses: np.ndarray, ledger: Ledger) -> StagedDeletes:
    """In parallel: each fragment that keeps some rows gets a new deletion file, made from the old
    one."""

    def delete(number: int) -> Any:
        offsets = (addresses[addresses >> 32 == number] & 0xFFFFFFFF).tolist()
        (fragment,) = table.fragments([number])
        return fragment.delete_rows(offsets)

    numbers = np.unique(addresses >> 32).tolist()
    with reading(table):
        if len(numbers) == 1:
            changed = [delete(numbers[0])]
        else:
            with ThreadPoolExecutor(_PARALLEL) as pool:
                changed = list(pool.map(delete, numbers))
    updated = tuple(note_fragment(table, one, deletion=True) for one in changed if one is not None)
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
    table: Table,
    groups: Sequence[Sequence[int]],
    ledger: Ledger,
    *,
    target_rows: int = 1024 * 1024,
) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Writes the live rows of each group of fragments anew, into as few as they fit in. Gives
    (old fragments, new fragments), the new ones without numbers of their own. Lance's own plan
    is not used: it keeps apart what different segments cover (hazard 13). Groups that fit in
    memory are put in the order of their ids, as a load does: alike values lie together, and so do
    the rows that an index names one after the other, which halves what both take."""
    done = []
    for numbers in groups:
        size = sum(table.marks[number].bytes for number in numbers)
        rewrite = _rewrite_streamed if table.blobs or size > _SORTED else _rewrite_sorted
        done.append(rewrite(table, numbers, target_rows))
    table.book(ledger, "compaction")
    return done


_Rewritten = tuple[tuple[str, ...], tuple[str, ...]]


def _rewrite_sorted(table: Table, numbers: Sequence[int], target_rows: int) -> _Rewritten:
    from lance.fragment import write_fragments

    old = table.fragments(numbers)
    with reading(table):
        rows = table.handle.scanner(fragments=old).to_table()
        rows = rows.take(pc.sort_indices(rows["id"]))
        written = write_fragments(
            rows,
            table.handle,
            mode="append",
            max_rows_per_file=target_rows,
            enable_stable_row_ids=False,
        )
        return (
            tuple(json.dumps(fragment.metadata.to_json()) for fragment in old),
            tuple(note_fragment(table, fragment) for fragment in written),
        )


def _rewrite_streamed(table: Table, numbers: Sequence[int], target_rows: int) -> _Rewritten:
    from lance.optimize import Compaction, CompactionTask

    with reading(table):
        # The options of a plan are those of this release of Lance, defaults included.
        plan = Compaction.plan(table.handle, {"target_rows_per_fragment": target_rows})
        fragments = [one.metadata.to_json() for one in table.fragments(numbers)]
        task = CompactionTask.from_json(
            json.dumps(
                {
                    "task": {"fragments": fragments},
                    "read_version": int(table.version),
                    "options": json.loads(plan.json())["options"],
                }
            )
        )
        result = json.loads(task.execute(table.handle).json())
    return (
        tuple(json.dumps(fragment) for fragment in result["original_fragments"]),
        tuple(note_fragment(table, _metadata(fragment)) for fragment in result["new_fragments"]),
    )


def _metadata(fragment: dict[str, Any]) -> Any:
    from lance.fragment import FragmentMetadata

    return FragmentMetadata.from_json(json.dumps(fragment))


def shared_fragments(
    source: Table,
    target: Table,
    known: Collection[str],
    needed: Collection[str],
    unwanted: Collection[str],
) -> Iterator[tuple[int, str]]:
    """Fragments of one version that can be appended to another by metadata alone: not among the
    `known` (by their first file) nor in the target, without a deletion file (it cannot be
    renumbered), with columns that mean the same in both, and with all that are `needed`: one
    that a fragment does not have reads as null (hazards 5 and 7). None with an `unwanted` one,
    which the source does not use any more and the target does: its values would come back."""
    present = {path for mark in target.marks.values() for path in mark.files}
    for number, mark in source.marks.items():
        if mark.files[0] in known or mark.deletion is not None or present & set(mark.files):
            continue
        (fragment,) = source.fragments([number])
        metadata = fragment.metadata
        numbers = {n for file in metadata.files for n in file.fields if n in source.fields}
        if any(source.fields.get(n) != target.fields.get(n) for n in numbers):
            continue
        columns = {source.fields[n].split(" ")[0].split("/")[1] for n in numbers}
        if not set(needed) <= columns or not columns.isdisjoint(unwanted):
            continue
        cleared = {
            "id": 0,
            "row_id_meta": None,
            "created_at_version_meta": None,
            "last_updated_at_version_meta": None,
        }
        yield number, json.dumps(metadata.to_json() | cleared)
