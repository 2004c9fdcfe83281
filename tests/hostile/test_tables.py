"""A Lance table can refer to any file of the machine: to large values, other folders, by links."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import Corrupt, OmnigraphError
from tests.hostile.world import CANARY, SETTINGS, World, read_everything


def table_of(world: World, key: str) -> dict[str, Any]:
    head = json.loads(world.head.read_bytes())
    found: dict[str, Any] = next(pin for pin in head["tables"] if pin["key"] == key)
    return found


def append_external(world: World) -> None:
    """A row of Person whose photo is the canary, put into the head by hand."""
    import lance
    from lance import Blob, LanceDataset, LanceOperation, Transaction, blob_array, blob_field

    pin = table_of(world, "node:Person")
    place = world.root / pin["location"]
    held = lance.dataset(place, version=int(pin["lance_version"]))
    canary = world.outside / "documents" / "canary.txt"
    rows = pa.table(
        [
            pa.array(["evil"]),
            pa.array(["evil"]),
            pa.array([1], pa.int32()),
            blob_array([Blob.from_uri(f"file://{canary}")]),
        ],
        schema=pa.schema(
            [
                pa.field("id", pa.string(), nullable=False),
                pa.field("name", pa.string()),
                pa.field("age", pa.int32()),
                blob_field("photo"),
            ]
        ),
    )
    fragments = lance.fragment.write_fragments(
        rows,
        held,
        schema=rows.schema,
        data_storage_version="2.2",
        allow_external_blob_outside_bases=True,
    )
    made = LanceDataset.commit(
        held,
        Transaction(read_version=held.version, operation=LanceOperation.Append(fragments)),
        detached=True,
    )

    def repin(version: dict[str, Any]) -> None:
        held = next(one for one in version["tables"] if one["key"] == "node:Person")
        held |= {
            "lance_version": str(made.version),
            "rows": held["rows"] + 1,
            "fragments": held["fragments"] + 1,
        }

    world.change_head(repin)


READS: dict[str, Callable[[Graph, Path], object]] = {
    "scan": lambda g, _: read_everything(g),
    "entity": lambda g, _: g.entity("Person", "evil"),
    "blob": lambda g, _: g.blob("Person", "evil", "photo"),
    "export": lambda g, to: g.export(to=to / "people.jsonl", types=["Person"]),
}


@pytest.mark.parametrize("read", READS)
def test_a_large_value_that_is_a_file_of_the_machine_is_not_read(
    world: World, tmp_path: Path, read: str
) -> None:
    append_external(world)
    with world.open() as g, pytest.raises(Corrupt, match="nodes/"):
        READS[read](g, tmp_path / "results")
    written = tmp_path / "results" / "people.jsonl"
    assert not written.exists()


def test_verify_tells_a_large_value_that_lies_outside(world: World) -> None:
    append_external(world)
    with world.open() as g:
        report = g.verify(deep=True)
    assert any("outside of the graph" in one.message for one in report.errors)


def test_a_version_file_that_names_other_folders_is_refused(world: World, tmp_path: Path) -> None:
    """A shallow clone of Lance: all its rows are somewhere else."""
    import lance

    pin = table_of(world, "node:Note")
    place = world.root / pin["location"]
    held = lance.dataset(place, version=int(pin["lance_version"]))
    elsewhere = lance.write_dataset(held.to_table(), tmp_path / "results" / "rows")
    shutil.rmtree(place)
    clone = elsewhere.shallow_clone(str(place), elsewhere.version)
    assert clone.count_rows() == pin["rows"]
    world.change_head(
        lambda version: next(one for one in version["tables"] if one["key"] == "node:Note").update(
            lance_version=str(clone.version)
        )
    )
    with pytest.raises(Corrupt, match="_versions/"), world.open() as g:
        read_everything(g)


def link_out(world: World, inside: str) -> None:
    """A folder of the graph becomes a link to the same folder of another graph."""
    path = world.root / inside
    shutil.rmtree(path)
    target = world.outside / "other.graph" / inside
    path.symlink_to(target, target_is_directory=True)


@pytest.mark.parametrize("folder", ["__manifest", "__manifest/main", "_schema", "nodes"])
def test_a_folder_that_is_a_link_out_of_the_root_is_refused(
    world: World, tmp_path: Path, folder: str
) -> None:
    link_out(world, folder)
    with pytest.raises(Corrupt, match=folder), world.open() as g:
        read_everything(g)
    uses: list[Callable[[Graph], object]] = [
        lambda g: g.mutate('insert Note { text: "x" }'),
        lambda g: g.mutate('insert Person { name: "x" }'),
        lambda g: g.optimize(),
        lambda g: g.cleanup(keep=1, older_than=0),
    ]
    for use in uses:
        with contextlib.suppress(OmnigraphError), world.open() as g:  # not all look there
            use(g)
    with pytest.raises(OmnigraphError):
        omnigraph.copy(world.root, tmp_path / "results", settings=SETTINGS)


@pytest.mark.parametrize("folder", ["data", "_versions"])
def test_a_folder_of_a_table_that_is_a_link_is_refused(world: World, folder: str) -> None:
    location = table_of(world, "node:Person")["location"]
    link_out(world, f"{location}/{folder}")
    with pytest.raises(Corrupt, match=location), world.open() as g:
        g.mutate('insert Person { name: "x" }')
    with pytest.raises(Corrupt, match=location), world.open() as g:
        read_everything(g)


def test_a_version_that_is_a_link_is_refused(world: World) -> None:
    target = world.outside / "other.graph" / "__manifest" / "main" / world.head.name
    head = world.head
    head.unlink()
    head.symlink_to(target)
    with pytest.raises(Corrupt, match="is a link"), world.open() as g:
        read_everything(g)


def test_discarding_does_not_delete_through_a_link(world: World) -> None:
    spool = "01J00000000000000000000000"
    (world.outside / "documents" / spool).mkdir()
    keep = world.outside / "documents" / spool / "canary.txt"
    keep.write_text(CANARY)
    (world.root / "__spool").symlink_to(world.outside / "documents")
    intent = world.write_intent(details={"files": f"__spool/{spool}"})
    with world.open() as g, pytest.raises(Corrupt, match="leads out"):
        g.recovery.discard(intent)
    assert keep.read_text() == CANARY
    keep.unlink()
    keep.parent.rmdir()


def test_cleanup_leaves_what_links_lead_to(world: World) -> None:
    """A link within a table is no file of it, and what it leads to is nobody's to delete."""
    location = world.root / table_of(world, "node:Person")["location"]
    (location / "data" / "stray.lance").symlink_to(world.outside / "documents" / "canary.txt")
    (location / "_indices").mkdir(exist_ok=True)
    (location / "_indices" / "stray").symlink_to(world.outside / "documents")
    with world.open() as g:
        g.cleanup(keep=1, older_than=0)
        assert read_everything(g)["Person"]
