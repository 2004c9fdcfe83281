"""What a stored object says can never lead out of the root: locations, names, folders of jobs."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.index_state import index_states
from omnigraph.errors import Corrupt, OmnigraphError
from tests.hostile.world import SETTINGS, JsonObject, World, read_everything

ELSEWHERE = "../outside/other.graph"


def other_location(world: World, folder: str = "nodes") -> str:
    held = next((world.outside / "other.graph" / folder).iterdir())
    return f"{ELSEWHERE}/{folder}/{held.name}"


def move_tables(world: World) -> None:
    """Every table of the head lies in another graph."""

    def change(version: JsonObject) -> None:
        for pin in version["tables"]:
            pin["location"] = f"{ELSEWHERE}/{pin['location']}"

    world.change_head(change)


USES: dict[str, Callable[[Graph], object]] = {
    "read": read_everything,
    "query": lambda g: g.query("match { $p: Person } return { $p.name }").to_pylist(),
    "mutate": lambda g: g.mutate('insert Person { name: "x" }'),
    "optimize": lambda g: g.optimize(),
    "cleanup": lambda g: g.cleanup(keep=1, older_than=0),
    "verify": lambda g: _require_sound(g),
}


def _require_sound(g: Graph) -> None:
    report = g.verify(deep=True)
    if not report.ok:
        raise Corrupt(report.errors[0].message)


@pytest.mark.parametrize("use", USES)
def test_a_table_that_lies_outside_of_the_root_is_refused(world: World, use: str) -> None:
    move_tables(world)
    with pytest.raises(Corrupt, match=world.head.name), world.open() as g:
        USES[use](g)


def test_a_copy_refuses_tables_that_lie_outside_of_the_root(world: World, tmp_path: Path) -> None:
    move_tables(world)
    with pytest.raises(Corrupt, match=world.head.name):
        omnigraph.copy(world.root, tmp_path / "results", settings=SETTINGS)


@pytest.mark.parametrize(
    "location",
    [
        "/etc",
        "nodes",
        "nodes/..",
        "nodes/../..",
        "nodes/0123456789abcdef-01J00000000000000000000000/../../..",
        "nodes/0123456789abcdef-01J00000000000000000000000\n",
        "Nodes/0123456789abcdef-01J00000000000000000000000",
        "nodes/0123456789ABCDEF-01J00000000000000000000000",
        "s3://bucket/nodes/0123456789abcdef-01J00000000000000000000000",
        "",
    ],
)
def test_a_location_has_one_form(world: World, location: str) -> None:
    world.change_head(lambda version: version["tables"][0].update(location=location))
    with pytest.raises(Corrupt, match=r"location"), world.open() as g:
        read_everything(g)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("schema", "../../outside/documents/canary"),
        ("catalog", "../../outside/documents/canary"),
        ("version", -1),
        ("version", 2**70),
        ("floor", -5),
        ("floor", 2**40),
        ("folded", 2**40),
        ("first", 2**40),
        ("kept", [2**70]),
        ("incarnation", -1),
    ],
)
def test_fields_of_a_version_are_what_a_version_can_have(
    world: World, field: str, value: object
) -> None:
    world.change_head(lambda version: version.update({field: value}))
    with pytest.raises(Corrupt, match=world.head.name), world.open() as g:
        read_everything(g)


@pytest.mark.parametrize("value", ["x", "-1", "1e5", "1\n", "../1", "9" * 40])
def test_the_number_of_a_table_version_has_digits_only(world: World, value: str) -> None:
    world.change_head(lambda version: version["tables"][0].update(lance_version=value))
    with pytest.raises(Corrupt, match=r"lance_version"), world.open() as g:
        read_everything(g)


def test_a_commit_that_is_no_ulid_is_refused_before_it_becomes_part_of_a_name(
    world: World,
) -> None:
    world.change_head(lambda version: version["commit"].update(id="../../../x"))
    with pytest.raises(Corrupt, match=world.head.name), world.open() as g:
        read_everything(g)


def test_a_location_in_the_archive_is_checked_like_one_on_the_chain(
    world: World, tmp_path: Path
) -> None:
    """The archive of a branch is written by hand here: what is in it is no more to be trusted."""
    from omnigraph.store.history_rows import encode_rows
    from omnigraph.store.versions import convert_version, decode_version

    data = world.head.read_bytes()
    version = decode_version(data, "head")
    moved = msgspec.structs.replace(
        version.tables[0], location=f"{ELSEWHERE}/{version.tables[0].location}"
    )
    hostile = msgspec.structs.replace(version, tables=(moved, *version.tables[1:]))
    from omnigraph.store.history_rows import decode_rows

    ((fields, _),) = decode_rows(encode_rows([hostile], {}), "segment")
    with pytest.raises(Corrupt, match="segment"):
        convert_version(fields, "segment")


@pytest.mark.parametrize(
    "files",
    [
        "__spool/../../outside/documents",
        "__jobs/../../outside/documents",
        "__spool/..",
        "__spool/",
        "__spool",
        "/etc",
        "../outside/documents",
        "__spool/01J00000000000000000000000/../../../outside/documents",
        "__jobs/.",
    ],
)
def test_an_intent_that_names_files_outside_of_its_own_is_not_carried_out(
    world: World, files: str
) -> None:
    (world.root / "__spool").mkdir()
    (world.root / "__spool" / "mine").write_text("x")
    (world.root / "__jobs").mkdir()
    intent = world.write_intent(details={"files": files})
    with world.open() as g:
        (told,) = g.recovery.list()
        assert told.problem
        with pytest.raises(Corrupt, match=intent):
            g.recovery.discard(intent)
        with pytest.raises(Corrupt, match=intent):
            g.recovery.resume(intent)
    assert (world.root / "__spool" / "mine").exists()
    assert (world.root / "_graph.json").exists()


def test_the_plan_of_an_intent_cannot_adopt_a_table_of_another_graph(world: World) -> None:
    head = json.loads(world.head.read_bytes())
    pin = next(pin for pin in head["tables"] if pin["key"] == "node:Note")
    plan = {
        "branch": "main",
        "base_version": head["version"],
        "base_incarnation": head["incarnation"],
        "actions": [
            {
                "type": "adopt",
                "table": "node:Note",
                "base": pin["lance_version"],
                "pin": pin | {"location": f"{ELSEWHERE}/{pin['location']}"},
            }
        ],
        "lineage": {"kind": "load", "operation": "01J00000000000000000000000"},
    }
    intent = world.write_intent(branch="main", base=head["version"], plan=json.dumps(plan))
    with world.open() as g:
        with pytest.raises(Corrupt, match=intent):
            g.recovery.resume(intent)
        assert g.snapshot().version == head["version"]


@pytest.mark.parametrize("path", ["../../../outside/x.lance", "/etc/passwd", "a/../../b.lance"])
def test_the_plan_of_an_intent_cannot_append_files_of_another_place(
    world: World, path: str
) -> None:
    head = json.loads(world.head.read_bytes())
    fragment = {
        "id": 0,
        "files": [
            {
                "path": path,
                "fields": [0],
                "column_indices": [0],
                "file_major_version": 2,
                "file_minor_version": 2,
                "file_size_bytes": 100,
                "base_id": None,
            }
        ],
        "deletion_file": None,
        "row_id_meta": None,
        "physical_rows": 1,
    }
    plan = {
        "branch": "main",
        "base_version": head["version"],
        "base_incarnation": head["incarnation"],
        "actions": [
            {
                "type": "append",
                "table": "node:Note",
                "fragments": [json.dumps(fragment)],
                "fields": {"0": "/id string False"},
                "rows": 1,
                "bytes": 1,
            }
        ],
        "lineage": {"kind": "load", "operation": "01J00000000000000000000000"},
    }
    intent = world.write_intent(branch="main", base=head["version"], plan=json.dumps(plan))
    with world.open() as g:
        with pytest.raises(Corrupt, match=r"outside|file"):
            g.recovery.resume(intent)
        assert g.snapshot().version == head["version"]


@pytest.mark.parametrize("name", ["../../outside/important", "/tmp/x", "a/b", "..", "A B", "", "Ü"])
@pytest.mark.parametrize("part", ["type", "property", "column", "edge"])
def test_names_in_a_catalog_are_names_of_the_language(
    world: World, tmp_path: Path, name: str, part: str
) -> None:
    def change(catalog: JsonObject) -> None:
        match part:
            case "type":
                catalog["nodes"][0]["name"] = name
            case "property":
                catalog["nodes"][0]["properties"][0]["name"] = name
            case "column":
                catalog["nodes"][0]["properties"][0]["column"] = name
            case _:
                catalog["edges"][0]["name"] = name

    world.change_catalog(change)
    with pytest.raises(Corrupt, match="_schema/"), world.open() as g:
        g.export(to=str(tmp_path / "results") + "/", format="csv")


def test_a_type_that_is_called_like_a_way_out_is_not_exported(world: World, tmp_path: Path) -> None:
    """All of it is consistent: catalog, pin and edges name the type alike."""
    name = "../outside/important"

    def rename(catalog: JsonObject) -> None:
        note = next(node for node in catalog["nodes"] if node["name"] == "Note")
        note["name"] = name

    world.change_catalog(rename)

    def repin(version: JsonObject) -> None:
        next(pin for pin in version["tables"] if pin["key"] == "node:Note")["key"] = f"node:{name}"

    world.change_head(repin)
    with pytest.raises(OmnigraphError), world.open() as g:
        g.export(to=str(world.root.parent / "results") + "/", format="csv")
    shutil.rmtree(world.root.parent / "results", ignore_errors=True)


OF_A_STRANGE_TYPE: dict[str, Callable[[Graph], object]] = {
    **{name: USES[name] for name in ("read", "optimize", "verify")},
    "query": lambda g: g.query("match { $p: Stranger } return { $p.name }").to_pylist(),
    "mutate": lambda g: g.mutate('insert Stranger { name: "x" }'),
    "search": lambda g: g.search("a").to_pylist(),
    "export": lambda g: g.export(to=io.BytesIO()),
    "stats": lambda g: index_states(g.snapshot()),
}


@pytest.mark.parametrize("use", OF_A_STRANGE_TYPE)
def test_a_schema_that_knows_another_type_than_its_version_is_damage(
    world: World, use: str
) -> None:
    """Each of the two is sound by itself."""

    def rename(catalog: JsonObject) -> None:
        (person,) = (node for node in catalog["nodes"] if node["name"] == "Person")
        person["name"] = "Stranger"
        for edge in catalog["edges"]:
            edge.update(
                {end: "Stranger" for end in ("source", "target") if edge.get(end) == "Person"}
            )

    world.change_catalog(rename)
    with pytest.raises(Corrupt, match="Stranger"), world.open() as g:
        OF_A_STRANGE_TYPE[use](g)


@pytest.mark.parametrize("use", ["read", "query", "search", "export", "entity"])
def test_a_schema_that_knows_another_column_than_its_table_is_damage(
    world: World, use: str
) -> None:
    uses = OF_A_STRANGE_TYPE | {
        "query": USES["query"],
        "entity": lambda g: g.entity("Person", "a"),
    }

    def rename(catalog: JsonObject) -> None:
        for node in catalog["nodes"]:
            for prop in node["properties"]:
                prop["column"] = "strange"

    world.change_catalog(rename)
    with pytest.raises(Corrupt, match=r"strange|column"), world.open() as g:
        uses[use](g)
