"""Owns the commits of tables. They are always detached, and each is guarded by a rule that keeps it
correct.

A detached commit checks almost nothing: stale deletes revive rows, stale appends duplicate them
(hazard 6). So every function here first proves that its operation fits the version it meets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.errors import Conflict, Corrupt, StoreFailure
from omnigraph.model.stored_text import UNDECODABLE, is_file_name
from omnigraph.store.damaged_files import reading
from omnigraph.store.fragments import mark_of
from omnigraph.store.lance_errors import explained
from omnigraph.store.staging import StagedDeletes
from omnigraph.store.table_checksums import noted, properties, sum_files
from omnigraph.store.tables import Table, fragment_keys
from omnigraph.telemetry import Ledger

Group = tuple[Sequence[str], Sequence[str]]
"""Old and new fragments of a compaction, as JSON."""


def append(table: Table, fragments: Sequence[str], fields: dict[int, str], ledger: Ledger) -> Table:
    """Adds fragments to this version, whatever version they were staged on. This is sound only if
    their columns mean the same here and if they are not here already."""
    from lance import LanceOperation

    added = [_fragment(table, text) for text in fragments]
    fresh = {path for fragment in added for path in mark_of(fragment).files}
    if any(not fresh.isdisjoint(mark.files) for mark in table.marks.values()):
        raise Conflict(f"Rows of {table.location} would be appended twice.")
    for fragment in added:
        for number in {number for file in fragment.files for number in file.fields}:
            if table.fields.get(number) != fields.get(number):
                # Two branches that each add a column give one id to two columns (hazard 5).
                raise Conflict(f"The columns of {table.location} changed under staged rows.")
    return commit_operation(
        table, LanceOperation.Append(added), added, ledger, sums=noted(fragments)
    )


def change(
    table: Table, base: str, deletes: StagedDeletes, fragments: Sequence[str], ledger: Ledger
) -> Table:
    """Removes rows and adds others. The deletion files were made for `base` alone: on any other
    version they would revive rows or lose deletes, and Lance would not notice."""
    from lance import LanceOperation

    _require_base(table, base)
    added = [_fragment(table, text) for text in fragments]
    updated = [_fragment(table, text) for text in deletes.updated]
    # Built by hand and never by merge_insert: a changed row gets a fresh identity, so no older
    # index segment can claim the new fragment (hazard 1).
    operation = LanceOperation.Update(
        removed_fragment_ids=list(deletes.removed),
        updated_fragments=updated,
        new_fragments=added,
        fields_modified=[],
        fields_for_preserving_frag_bitmap=[],
        update_mode="",
    )
    sums = noted([*fragments, *deletes.updated])
    return commit_operation(table, operation, [*added, *updated], ledger, sums=sums)


def overwrite(table: Table, base: str, fragments: Sequence[str], ledger: Ledger) -> Table:
    """Replaces every row but keeps the field ids and the numbering of fragments, which Lance's own
    Overwrite does not (hazards 3 and 5)."""
    return change(table, base, StagedDeletes(removed=tuple(table.marks)), fragments, ledger)


def number_fragments(
    table: Table, groups: Sequence[Group], *, beyond: int = 0
) -> tuple[Group, ...]:
    """Gives new fragments of a compaction numbers above every one that the table or a segment ever
    had (hazard 3). It leaves `beyond` numbers free, so that they remain valid after that many
    appends by others. Fragments that have valid numbers already keep them."""
    top = _highest_id(table)
    held = [json.loads(text).get("id", 0) for _, new in groups for text in new]
    if held and min(held) > top and len(set(held)) == len(held):
        return tuple(groups)
    numbers = iter(range(top + 1 + beyond, top + 1 + beyond + len(held)))
    return tuple(
        (old, tuple(json.dumps(json.loads(text) | {"id": next(numbers)}) for text in new))
        for old, new in groups
    )


def fits(table: Table, groups: Sequence[Group]) -> bool:
    """Whether each old fragment of a compaction is here unchanged, including its deletion file.
    Otherwise a deleted row would come back."""
    return all(
        table.marks.get(mark.id) == mark
        for old, _ in groups
        for mark in (mark_of(_fragment(table, text)) for text in old)
    )


def rewrite(table: Table, groups: Sequence[Group], ledger: Ledger) -> Table:
    """Compaction: the same rows in other fragments."""
    from lance import LanceOperation

    if not fits(table, groups):
        raise Conflict(f"A fragment of {table.location} changed while it was compacted.")
    prepared, added = [], []
    # Version metadata of the old rows would keep version files large (hazard 14).
    cleared = {
        "row_id_meta": None,
        "created_at_version_meta": None,
        "last_updated_at_version_meta": None,
    }
    for old, new in number_fragments(table, groups):
        written = [_fragment(table, json.dumps(json.loads(text) | cleared)) for text in new]
        prepared.append(
            LanceOperation.RewriteGroup(
                old_fragments=[_fragment(table, text) for text in old], new_fragments=written
            )
        )
        added += written
    operation = LanceOperation.Rewrite(groups=prepared, rewritten_indices=[])
    sums = noted([text for _, new in groups for text in new])
    return commit_operation(table, operation, added, ledger, sums=sums)


def add_columns(
    table: Table,
    base: str,
    columns: pa.Schema,
    fill: pa.RecordBatch | None,
    casts: dict[str, str],
    ledger: Ledger,
) -> Table:
    """New columns: null (metadata only), one value for all rows (`fill`, one row), or a cast of
    another column (`casts`: new name -> old name). The last two write one file per fragment."""
    _require_base(table, base)
    if there := sorted(set(columns.names) & set(table.schema.names)):
        raise StoreFailure(f"{table.location} has a column {there[0]!r} already.")
    filled = set(casts) | set(fill.schema.names if fill is not None else ())
    empty = [field for field in columns if field.name not in filled or not table.marks]
    if empty:
        table = _add_null_columns(table, empty, ledger)
    if filled and table.marks:
        types = {name: columns.field(name).type for name in casts}
        table = _add_filled_columns(table, fill, casts, types, ledger)
    return table


def _add_null_columns(table: Table, fields: Sequence[pa.Field], ledger: Ledger) -> Table:
    from lance import LanceOperation
    from lance.schema import LanceSchema

    wide = table.schema
    for new in fields:
        wide = wide.append(new)
    # Numbers the fields by position, as the table does, because none is ever taken out of it.
    with explained(table.location):
        numbered = LanceSchema.from_pyarrow(wide)
    current = [f.metadata for f in table.fragments(table.marks)]
    return _commit_schema(table, LanceOperation.Merge(current, numbered), [], ledger)


def _add_filled_columns(
    table: Table,
    fill: pa.RecordBatch | None,
    casts: dict[str, str],
    types: dict[str, pa.DataType],
    ledger: Ledger,
) -> Table:
    from lance import LanceOperation

    def compute(batch: pa.RecordBatch) -> pa.RecordBatch:
        first = pa.array(np.zeros(len(batch), dtype=np.int64))
        arrays = {name: batch.column(old).cast(types[name]) for name, old in casts.items()}
        if fill is not None:
            arrays |= {name: fill.column(name).take(first) for name in fill.schema.names}
        return pa.record_batch(arrays)

    sources = sorted(set(casts.values())) or ["id"]
    merged, schema = [], None
    with reading(table):
        for fragment in table.fragments(table.marks):
            metadata, schema = fragment.merge_columns(compute, columns=sources)
            merged.append(metadata)
    table.book(ledger, "data")
    return _commit_schema(table, LanceOperation.Merge(merged, schema), merged, ledger)


def _commit_schema(table: Table, operation: Any, files: list[Any], ledger: Ledger) -> Table:
    known = {path for mark in table.marks.values() for path in mark.files}
    named = [file.path for fragment in files for file in fragment.files]
    sums = sum_files(table, [f"data/{path}" for path in named if path not in known])
    new = commit_operation(table, operation, files, ledger, sums=sums)
    if any(new.fields.get(number) != meaning for number, meaning in table.fields.items()):
        raise StoreFailure(f"Lance renumbered the columns of {table.location}.")
    return new


def _highest_id(table: Table) -> int:
    """The highest id of all fragments that the table or any segment ever had, including those long
    gone. A reused id would be taken for the fragment that had it before (hazard 3)."""
    numbers = [table.highest_fragment, *table.marks]
    with explained(table.location):
        for index in table.handle.describe_indices():
            for segment in index.segments:
                numbers += list(segment.fragment_ids)
    return max(numbers)


def _require_base(table: Table, base: str) -> None:
    if base != table.version:
        raise Conflict(
            f"A change of {table.location} was staged on version {base}, not {table.version}."
        )


def commit_operation(
    table: Table,
    operation: Any,
    fragments: Sequence[Any],
    ledger: Ledger,
    *,
    extra: Sequence[str] = (),
    sums: Mapping[str, str] | None = None,
) -> Table:
    """The one place where a version comes into being after creation. `sums` are the checksums of
    its new files."""
    from lance import LanceDataset, Transaction

    transaction = Transaction(
        read_version=int(table.version),
        operation=operation,
        transaction_properties=properties(sums or {}),
    )
    with explained(table.location):
        handle = LanceDataset.commit(table.handle, transaction, detached=True)
        version = handle.version
    # Fragments keep their marks, except those that were given a new file.
    inherited = (table.marks, frozenset(f.id for f in fragments))
    unsynced = list(table.unsynced)
    if table.directory is not None:
        base = table.location
        unsynced.append(f"{base}/_versions/d{version}.manifest")
        unsynced.append(f"{base}/_transactions/{transaction.read_version}-{transaction.uuid}.txn")
        unsynced += [key for each in fragments for key in fragment_keys(table, each)]
        unsynced += [f"{base}/{path}" for path in extra]
    table.book(ledger, "table", reads=0, writes=2)
    return Table(
        handle,
        table.location,
        table.directory,
        inherited,
        tuple(unsynced),
        table.tally,
        table.own_blobs,
        table.sound_files,
    )


def _fragment(table: Table, text: str) -> Any:
    """A fragment from a plan, which may come from anybody: its files must be in the table."""
    from lance.fragment import FragmentMetadata

    try:
        with explained(table.location):
            fragment = FragmentMetadata.from_json(text)
        named = [(file.path, file.base_id) for file in fragment.files]
    except UNDECODABLE as error:
        raise Corrupt(f"A staged fragment cannot be read: {error}.") from error
    for path, base in named:
        if base is not None or not is_file_name(path):
            raise Corrupt(f"A staged fragment names the file {path!r}, outside of its table.")
    return fragment
