"""What the design takes for granted of Lance: when an upgrade breaks it, it says so here first."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance import LanceOperation as Op
from lance.fragment import FragmentMetadata, write_fragments
from lance.optimize import Compaction
from lance.schema import LanceSchema

from omnigraph.store.tables import Table

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("age", pa.int64()),
        ("bio", pa.string()),
        ("vec", pa.list_(pa.float32(), 8)),
    ]
)
New = Callable[..., Any]


def rows(*ids: str, age: int = 0, bio: str = "text about") -> pa.Table:
    numbers = pa.array(np.linspace(0, 1, 8 * len(ids), dtype=np.float32))
    return pa.table(
        {
            "id": list(ids),
            "age": [age] * len(ids),
            "bio": [f"{bio} {i}" for i in ids],
            "vec": pa.FixedSizeListArray.from_arrays(numbers, 8),
        },
        schema=SCHEMA,
    )


@pytest.fixture
def new(tmp_path: Path) -> New:
    made: list[Path] = []

    def create(*, table: pa.Table | None = None, stable: bool = False) -> Any:
        made.append(tmp_path / f"t{len(made)}.lance")
        given = rows() if table is None else table
        return lance.write_dataset(given, str(made[-1]), enable_stable_row_ids=stable)

    return create


def commit(ds: Any, operation: Any) -> Any:
    return lance.LanceDataset.commit(ds, operation, read_version=ds.version, detached=True)


def staged(ds: Any, table: pa.Table, *, stable: bool = False) -> list[Any]:
    return list(write_fragments(table, ds, mode="append", enable_stable_row_ids=stable))


def append(ds: Any, table: pa.Table) -> Any:
    return commit(ds, Op.Append(staged(ds, table)))


def with_null_column(ds: Any, name: str) -> Any:
    schema = LanceSchema.from_pyarrow(ds.schema.append(pa.field(name, pa.string())))
    return commit(ds, Op.Merge([f.metadata for f in ds.get_fragments()], schema))


def ids(ds: Any, **options: Any) -> list[str]:
    return sorted(ds.to_table(columns=["id"], **options)["id"].to_pylist())


def test_detached_commits_chain_and_fork_and_leave_the_head_alone(new: New) -> None:
    base = new()
    a = append(base, rows("a", "b"))
    b = append(a, rows("c"))
    fork = append(a, rows("z"))
    assert (ids(a), ids(b), ids(fork)) == (["a", "b"], ["a", "b", "c"], ["a", "b", "z"])
    head = lance.dataset(base.uri)
    assert (head.version, head.count_rows()) == (1, 0)
    assert ids(lance.dataset(base.uri, version=b.version)) == ["a", "b", "c"]


def test_detached_version_numbers_lie_above_two_to_the_63(new: New) -> None:
    assert append(new(), rows("a")).version >= 2**63


def test_a_detached_version_is_one_file_that_we_can_name_and_sync(new: New) -> None:
    ds = append(new(), rows("a"))
    assert (Path(ds.uri) / "_versions" / f"d{ds.version}.manifest").is_file()


def test_a_warm_append_is_three_writes_and_no_read_at_any_depth(new: New) -> None:
    ds = append(new(), rows("seed"))
    ds.io_stats_incremental()
    seen = set()
    for number in range(40):
        ds = append(ds, rows(f"r{number}"))
        stats = ds.io_stats_incremental()
        if number > 1:
            seen.add((stats.read_iops, stats.write_iops))
    assert seen == {(0, 3)}


def test_rows_are_deleted_by_offset_and_a_fragment_without_rows_is_none(new: New) -> None:
    ds = append(new(), rows("a", "b", "c"))
    fragment = ds.get_fragment(0)
    changed = fragment.delete_rows([1])
    assert changed.deletion_file is not None
    assert (changed.id, changed.num_rows, changed.physical_rows) == (0, 2, 3)
    assert (Path(ds.uri) / changed.deletion_file.path(0)).is_file()
    assert fragment.delete_rows([0, 1, 2]) is None


def test_an_update_built_by_hand_removes_and_adds_rows_detached(new: New) -> None:
    ds = append(append(new(), rows("a", "b", age=1)), rows("c", age=1))
    hand_made = Op.Update(
        removed_fragment_ids=[1],
        updated_fragments=[ds.get_fragment(0).delete_rows([0])],
        new_fragments=staged(ds, rows("a", "n", age=9)),
        fields_modified=[],
        fields_for_preserving_frag_bitmap=[],
        update_mode="",
    )
    changed = commit(ds, hand_made)
    assert sorted(changed.to_table(columns=["id", "age"]).to_pydict()["id"]) == ["a", "b", "n"]
    assert ids(changed, filter="age = 9") == ["a", "n"]
    assert ids(ds) == ["a", "b", "c"]
    assert changed.fragment_ids() == [0, 2]


def test_an_update_that_removes_every_fragment_goes_on_counting(new: New) -> None:
    ds = append(append(new(), rows("a")), rows("b"))
    field_ids = [f.id() for f in ds.lance_schema.fields()]
    emptied = commit(ds, Op.Update(removed_fragment_ids=[0, 1], new_fragments=[]))
    assert emptied.count_rows() == 0
    again = append(emptied, rows("c"))
    assert again.fragment_ids() == [2]
    assert [f.id() for f in again.lance_schema.fields()] == field_ids


def test_an_overwrite_numbers_fields_anew_which_is_why_we_do_not_use_it(new: New) -> None:
    """Hazard 5: staged rows would land under other columns."""
    ds = append(new(), rows("a"))
    narrow = rows("b").drop_columns(["age"])
    over = commit(ds, Op.Overwrite(narrow.schema, staged(ds, narrow)))
    before, after = ({f.name(): f.id() for f in d.lance_schema.fields()} for d in (ds, over))
    assert after["bio"] == before["age"]


def test_files_of_a_fragment_have_a_cheap_private_path(new: New) -> None:
    (fragment,) = append(new(), rows("a")).get_fragments()
    (file,) = fragment.metadata.files
    assert file._path == file.path
    assert set(file.fields) == {0, 1, 2, 3}


def test_taking_rows_by_address_leaves_out_the_deleted_ones(new: New) -> None:
    ds = append(new(), rows("a", "b", "c"))
    gone = commit(ds, Op.Update(updated_fragments=[ds.get_fragment(0).delete_rows([1])]))
    taken = gone._take_rows([2, 1, 0], columns=["id", "_rowaddr"])
    assert sorted(zip(taken["id"].to_pylist(), taken["_rowaddr"].to_pylist(), strict=True)) == [
        ("a", 0),
        ("c", 2),
    ]


def test_null_columns_are_metadata_and_keep_field_ids(new: New) -> None:
    ds = append(new(), rows("a", "b"))
    before = {f.name(): f.id() for f in ds.lance_schema.fields()}
    files = sorted((Path(ds.uri) / "data").iterdir())
    wide = with_null_column(ds, "nick")
    after = {f.name(): f.id() for f in wide.lance_schema.fields()}
    assert after.items() >= before.items()
    assert after["nick"] not in before.values()
    assert wide.to_table(columns=["id", "nick"]).to_pylist() == [
        {"id": "a", "nick": None},
        {"id": "b", "nick": None},
    ]
    assert sorted((Path(ds.uri) / "data").iterdir()) == files


def test_filled_columns_are_written_beside_the_old_files(new: New) -> None:
    ds = append(new(), rows("a", "b"))

    def fill(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch({"nick": pa.array(["x"] * len(batch))})

    merged, schema = ds.get_fragment(0).merge_columns(fill, columns=["id"])
    wide = commit(ds, Op.Merge([merged], schema))
    assert wide.to_table(columns=["nick"])["nick"].to_pylist() == ["x", "x"]
    assert ds.get_fragment(0).metadata.files[0].path == merged.files[0].path
    assert len(merged.files) == 2


def test_columns_that_a_write_leaves_out_are_null(new: New) -> None:
    ds = new()
    ds = commit(ds, Op.Append(staged(ds, rows("a").drop_columns(["bio"]))))
    assert ds.to_table(columns=["id", "bio"]).to_pylist() == [{"id": "a", "bio": None}]


def test_project_by_an_arrow_schema_is_a_trap_and_by_field_ids_is_right(new: New) -> None:
    """Hazard 4: why drops and renames are done by the catalog alone."""
    ds = new(table=pa.table({"id": ["a"], "x": [1], "y": [2]}))
    kept = pa.schema([ds.schema.field("id"), ds.schema.field("y")])
    wrong = commit(ds, Op.Project(kept))
    assert wrong.to_table()["y"].to_pylist() == [1]
    make, (meta, *protos) = ds.lance_schema.__reduce__()
    fields = zip(ds.lance_schema.fields(), protos, strict=True)
    right = commit(ds, Op.Project(make(meta, *[p for f, p in fields if f.name() != "x"])))
    assert right.to_table().to_pylist() == [{"id": "a", "y": 2}]


def test_two_forks_that_add_a_column_give_one_field_id_to_both(new: New) -> None:
    """Hazard 5: why staged fragments carry the meaning of their field ids."""
    ds = append(new(), rows("a"))
    left, right = with_null_column(ds, "left"), with_null_column(ds, "right")
    left_row = rows("b").append_column("left", pa.array(["from the left"]))
    moved = commit(right, Op.Append(staged(left, left_row)))
    assert ids(moved, filter="right = 'from the left'") == ["b"]


def add_segment(ds: Any, column: str, kind: str, fragments: list[int], **options: Any) -> Any:
    segment = ds.create_index_uncommitted(
        column, kind, name=f"{column}_idx", fragment_ids=fragments, replace=True, **options
    )
    if kind == "INVERTED":
        segment = ds.merge_existing_index_segments([segment])
    return commit(ds, Op.CreateIndex(new_indices=[segment], removed_indices=[]))


def test_index_segments_are_built_unseen_and_the_rest_is_still_searched(new: New) -> None:
    ds = append(new(), rows(*[f"p{number}" for number in range(300)]))
    ds = add_segment(ds, "id", "BTREE", [0])
    ds = add_segment(ds, "bio", "INVERTED", [0])
    ds = add_segment(ds, "vec", "IVF_FLAT", [0], num_partitions=2)
    assert "ScalarIndexQuery" in ds.scanner(filter="id = 'p7'").explain_plan()
    ds = append(ds, rows("late"))
    assert ids(ds, filter="id = 'late'") == ["late"]
    assert ids(ds, full_text_query="late") == ["late"]
    ds = add_segment(ds, "id", "BTREE", [1])
    assert [len(i.segments) for i in ds.describe_indices() if i.name == "id_idx"] == [2]
    assert ids(ds, filter="id in ('late', 'p7')") == ["late", "p7"]


def test_a_filter_given_as_an_arrow_expression_goes_through_substrait_to_the_index(
    new: New,
) -> None:
    ds = add_segment(append(new(), rows(*[f"p{n}" for n in range(300)])), "id", "BTREE", [0])
    wanted = ["p7", "p'8", "p9", "no such"]
    condition = pc.field("id").isin(wanted)
    assert ids(ds, filter=condition) == ["p7", "p9"]
    assert "ScalarIndexQuery" in ds.scanner(filter=condition).explain_plan()
    large = pc.field("id").isin([f"p{n}" for n in range(0, 4000, 2)])
    assert len(ids(ds, filter=large)) == 150


def test_compaction_is_a_detached_rewrite_with_ids_that_we_choose(new: New) -> None:
    ds = new()
    for number in range(6):
        ds = append(ds, rows(f"a{number}", f"b{number}"))
    groups = []
    for task in Compaction.plan(ds, {"target_rows_per_fragment": 1000}).tasks:
        done = task.execute(ds)
        new_ones = json.loads(done.json())["new_fragments"]
        fresh = [FragmentMetadata.from_json(json.dumps(f | {"id": 77})) for f in new_ones]
        groups.append(Op.RewriteGroup(old_fragments=done.original_fragments, new_fragments=fresh))
    small = commit(ds, Op.Rewrite(groups=groups, rewritten_indices=[]))
    assert small.fragment_ids() == [77]
    assert ids(small) == ids(ds)
    assert append(small, rows("more")).fragment_ids() == [77, 78]


def test_fragments_of_one_fork_can_be_adopted_by_another(new: New) -> None:
    base = append(new(), rows("a"))
    ours, theirs = append(base, rows("b")), append(base, rows("c", "d"))
    metadata = theirs.get_fragment(1).metadata.to_json()
    fields = json.loads(metadata) if isinstance(metadata, str) else dict(metadata)
    for name in ("row_id_meta", "created_at_version_meta", "last_updated_at_version_meta"):
        fields[name] = None
    adopted = FragmentMetadata.from_json(json.dumps(fields | {"id": 0}))
    merged = commit(ours, Op.Append([adopted]))
    found = merged.to_table(columns=["id"], with_row_id=True).to_pydict()
    assert sorted(found["id"]) == ["a", "b", "c", "d"]
    assert len(set(found["_rowid"])) == 4


def test_a_detached_commit_checks_nothing_so_stale_ones_lie(new: New) -> None:
    """Hazard 6: each of these is refused by our door and accepted by Lance."""
    ds = append(new(), rows("a", "b"))
    twice = staged(ds, rows("c"))
    assert ids(commit(commit(ds, Op.Append(twice)), Op.Append(twice))) == ["a", "b", "c", "c"]
    without_a = Op.Update(updated_fragments=[ds.get_fragment(0).delete_rows([0])])
    without_b = Op.Update(updated_fragments=[ds.get_fragment(0).delete_rows([1])])
    assert ids(commit(commit(ds, without_a), without_b)) == ["a"]  # came back


def test_stable_row_ids_make_added_segments_lie(new: New) -> None:
    """Why they are off: a changed row is still found by its old text."""
    found = {}
    for stable in (True, False):
        ds = new(stable=stable)
        ds = commit(ds, Op.Append(staged(ds, rows("a", "b", bio="old"), stable=stable)))
        ds = add_segment(ds, "bio", "INVERTED", [0])
        change, _ = (
            ds.merge_insert("id")
            .when_matched_update_all()
            .execute_uncommitted(rows("a", bio="new"))
        )
        ds = lance.LanceDataset.commit(ds, change, detached=True)
        ds = add_segment(ds, "bio", "INVERTED", [max(ds.fragment_ids())])
        found[stable] = ids(ds, full_text_query="old")
    assert found == {True: ["a", "b"], False: ["b"]}


def test_a_tag_names_a_detached_version_for_stock_readers(new: New) -> None:
    ds = append(new(), rows("a", "b"))
    lance.dataset(ds.uri).tags.create("main", ds.version)
    assert ids(lance.dataset(ds.uri, version="main")) == ["a", "b"]


def test_a_segment_remembers_fragments_that_are_gone(new: New) -> None:
    """Hazard 3: why new ids lie above those in any segment."""
    ds = append(append(new(), rows("a")), rows("b"))
    ds = add_segment(ds, "id", "BTREE", [0, 1])
    (index,) = commit(ds, Op.Update(removed_fragment_ids=[1])).describe_indices()
    assert [set(segment.fragment_ids) for segment in index.segments] == [{0, 1}]


def test_a_version_keeps_the_highest_fragment_id_ever_given_in_field_11(
    new: New, tmp_path: Path
) -> None:
    ds = append(append(new(), rows("a")), rows("b"))
    ds = commit(ds, Op.Update(removed_fragment_ids=[1]))
    table = Table(ds, "t0.lance", tmp_path)
    assert ds.fragment_ids() == [0]
    assert table.highest_fragment == 1


def test_segments_of_one_index_may_overlap_without_a_word(new: New) -> None:
    """Hazard 3: why our door counts what is covered."""
    ds = add_segment(append(new(), rows("a", "b")), "id", "BTREE", [0])
    doubled = add_segment(ds, "id", "BTREE", [0])
    (index,) = doubled.describe_indices()
    assert [set(segment.fragment_ids) for segment in index.segments] == [{0}, {0}]


def test_a_panic_of_lance_is_not_an_exception(new: New) -> None:
    """Hazard 19: the door catches it by name."""
    ds = add_segment(append(new(), rows("a", "b")), "bio", "INVERTED", [0])
    with pytest.raises(BaseException, match=r".") as caught:
        ids(add_segment(ds, "bio", "INVERTED", [0]), full_text_query="text")
    assert type(caught.value).__name__ == "PanicException"
    assert not isinstance(caught.value, Exception)
