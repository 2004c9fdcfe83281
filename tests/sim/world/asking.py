"""Owns the operations that read: each asks one handle, at one ref, and compares with the model."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from omnigraph.engine.graph import Graph
from omnigraph.engine.snapshot import Snapshot
from omnigraph.errors import Reclaimed
from tests.sim.world import statements
from tests.sim.world.hands import draw_place, foresee_place, state_of, take
from tests.sim.world.model import Refused, State, Unsure
from tests.sim.world.queries import check_query
from tests.sim.world.reading import key_rows, normal_ids, read_state
from tests.sim.world.refs import PerhapsGone, draw_ref, resolve, write_ref
from tests.sim.world.steps import Fault, Operation, Record, Step, compare, operation
from tests.sim.world.writing import NAMES

if TYPE_CHECKING:
    from tests.sim.world.world import World


def draw_at(world: World, chance: Random) -> dict[str, Any] | None:
    """A ref of the graph, or a branch through its own handle."""
    if chance.random() < 0.35:
        args = draw_place(world, chance)
        if args["via"] != "graph":
            return args | {"roll": chance.getrandbits(16)}
    return {"ref": draw_ref(world, chance), "roll": chance.getrandbits(16)}


def foresee_at(world: World, step: Step) -> None:
    if "ref" in step.args:
        resolve(world, step.args["ref"])
    else:
        foresee_place(world, step.args, writing=False)


def expected_state(world: World, args: Mapping[str, Any]) -> State | None:
    """What must be there; None if the model does not know."""
    if "ref" not in args:
        there = args["branch"] in world.past.lines
        return state_of(world, args["branch"]) if there else None
    try:
        return world.past.state(resolve(world, args["ref"]))
    except PerhapsGone as why:
        return world.past.state(why.commit)
    except (Refused, Unsure):
        return None


def ask(world: World, g: Graph, record: Record, method: str, *given: Any, **named: Any) -> Any:
    if "ref" in record.args:
        at = g.at(write_ref(world, record.args["ref"]))
        return at if method == "snapshot" else getattr(at, method)(*given, **named)
    return take(world, g, record.args).call(method, *given, **named)


# Snapshots, and what a handle and a graph tell as they do


def perform_tell(world: World, g: Graph, record: Record) -> None:
    expected = expected_state(world, record.args)
    if expected is None:
        ask(world, g, record, "snapshot")
        return
    kinds = sorted(one.name for one in expected.types)
    if sorted(ask(world, g, record, "types")) != kinds:
        raise Fault(f"the types are not {kinds}")
    kind = expected.types[record.args["roll"] % len(expected.types)]
    rows = expected.rows[kind.uid]
    if ask(world, g, record, "count", kind.name) != len(rows):
        raise Fault(f"{kind.name} counts another number than {len(rows)}")
    first = kind.first.name
    values = [row[kind.first.uid] for row in rows.values() if row[kind.first.uid] is not None]
    if values and isinstance(values[0], str | int):
        value = values[record.args["roll"] % len(values)]
        text = f"{first} = {json.dumps(value, ensure_ascii=False)}"
        for condition in (pc.field(first) == value, text):
            found = ask(world, g, record, "scan", kind.name, filter=condition).read_all()
            if found.num_rows != values.count(value):
                raise Fault(f"{condition} keeps {found.num_rows} of {kind.name}")
    asked = "match { $x: Person } return { count($x) as n }"
    if "Person" not in ask(world, g, record, "explain", asked):
        raise Fault("the plan does not name what is asked for")
    prepared = ask(world, g, record, "prepare", asked)
    known = [kind for kind in expected.types if kind.name == "Person"]
    for _ in range(2):
        if known and prepared().one()["n"] != len(expected.rows[known[0].uid]):
            raise Fault("a prepared query counts another number of Person")
    at = ask(world, g, record, "snapshot") if "ref" in record.args else None
    for one in (g, at):
        if one is not None and (one.commit is None or not one.schema):
            raise Fault("a graph without a commit or a schema")


operation(
    Operation(
        "tell",
        1.5,
        ("types", "count", "scan", "explain", "prepare", "commit", "schema", "Graph.at"),
        draw_at,
        perform_tell,
        foresee_at,
        reads=True,
    )
)


def perform_snapshot(world: World, g: Graph, record: Record) -> None:
    snapshot: Snapshot = ask(world, g, record, "snapshot")
    expected = expected_state(world, record.args)
    seen = read_state(world, snapshot)
    if expected is not None:
        compare(f"{record.step}", expected.shown(), seen.shown)
        for kind in expected.types:
            found = snapshot.type(kind.name)
            names = {one.name for one in found.properties}
            if names != {one.name for one in kind.properties}:
                raise Fault(f"{kind.name} has the properties {names}")
            if f" {kind.name}" not in snapshot.schema:
                raise Fault(f"the schema does not declare {kind.name}")
            view = snapshot.view(found)
            if view.count() != len(expected.rows[kind.uid]):
                raise Fault(f"the view of {kind.name} counts {view.count()}")
    if snapshot.version < 1 or snapshot.branch == "":
        raise Fault("a snapshot without a place")
    if expected is not None:
        known = world.past.commits.get(snapshot.commit.id)
        if known is None or known.state.shown() != expected.shown():
            raise Fault(f"{record.step} stands at {snapshot.commit.id}, which is another commit")
        held = world.memory.setdefault("snapshots", {})
        held[record.args["roll"] % 3] = (snapshot, expected)


operation(
    Operation(
        "snapshot",
        2,
        (
            "snapshot",
            "Snapshot.scan",
            "Snapshot.count",
            "Snapshot.types",
            "Snapshot.type",
            "Snapshot.view",
            "Snapshot.schema",
            "Snapshot.branch",
            "Snapshot.version",
            "Snapshot.commit",
        ),
        draw_at,
        perform_snapshot,
        foresee_at,
        reads=True,
    )
)


def draw_again(world: World, chance: Random) -> dict[str, Any] | None:
    held = world.memory.get("snapshots")
    return {"slot": chance.choice(sorted(held))} if held else None


def perform_again(world: World, g: Graph, record: Record) -> None:
    """A snapshot of an earlier step is what it was, or a cleanup took it and it says so."""
    held = world.memory.get("snapshots", {}).get(record.args["slot"])
    if held is None:
        return
    snapshot, expected = held
    try:
        seen = read_state(world, snapshot)
    except Reclaimed:
        if snapshot.commit.id not in world.past.gone | world.past.fragile:
            raise Fault(f"{snapshot.commit.id} was reclaimed, and nobody may have") from None
        return
    compare(f"{record.step}", expected.shown(), seen.shown)


operation(
    Operation("snapshot again", 3, (), draw_again, perform_again, lambda w, s: None, reads=True)
)


# Entities, blobs, queries


def perform_entities(world: World, g: Graph, record: Record) -> None:
    expected = expected_state(world, record.args)
    if expected is None:
        ask(world, g, record, "snapshot")
        return
    kinds = [one for one in expected.types if one.identity == "key" or expected.rows[one.uid]]
    kind = kinds[record.args["roll"] % len(kinds)]
    rows = expected.rows[kind.uid]
    for key in {*list(rows)[:6], *(NAMES[:3] if kind.identity == "key" else ())}:
        found = ask(world, g, record, "entity", kind.name, normal_ids(world, kind, key))
        known = key_rows(world, kind.name, [found]).get(key) if found else None
        wanted = kind.named(rows[key]) if key in rows else None
        if known != wanted:
            raise Fault(f"{kind.name} {key} is {found}, and must be {wanted}")
        for one in kind.properties:
            if one.declared.kind == "Blob" and key in rows:
                blob = ask(world, g, record, "blob", kind.name, key, one.name)
                if (None if blob is None else blob.read()) != rows[key][one.uid]:
                    raise Fault(f"the blob of {kind.name} {key} is {blob}")


operation(
    Operation("entity", 1.5, ("entity", "blob"), draw_at, perform_entities, foresee_at, reads=True)
)


def perform_query(world: World, g: Graph, record: Record) -> None:
    expected = expected_state(world, record.args)
    if expected is None:
        ask(world, g, record, "snapshot")
        return
    kernel = ("auto", "indexed", "adjacency")[record.args["roll"] % 3]

    def rows_of(text: str) -> list[dict[str, Any]]:
        return [dict(row) for row in ask(world, g, record, "query", text, kernel=kernel)]

    kind = expected.types[record.args["roll"] % len(expected.types)]
    check_query(rows_of, expected, kind)


operation(Operation("query", 1.5, ("query",), draw_at, perform_query, foresee_at, reads=True))


def perform_search(world: World, g: Graph, record: Record) -> None:
    """A search over one type finds the entities that have the word in any of their texts."""
    expected = expected_state(world, record.args)
    keyed = [] if expected is None else [one for one in expected.types if one.identity == "key"]
    if expected is None or not keyed:
        ask(world, g, record, "snapshot")
        return
    kind = keyed[record.args["roll"] % len(keyed)]
    word = NAMES[record.args["roll"] % len(NAMES)]
    wanted = having_word(expected, kind.name, word)
    hits = ask(world, g, record, "search", word, types=[kind.name], limit=1000).to_pylist()
    found = [hit["id"] for hit in hits]
    for one in ask(world, g, record, "indexes"):
        if not 0 <= one.covered <= one.rows:
            raise Fault(f"the index of {one} covers more than there is")
    if len(found) != len(wanted) or set(found) != wanted:
        raise Fault(f"a search for {word!r} in {kind.name} found {found}, must be {wanted}")


def having_word(state: State, name: str, word: str) -> set[str]:
    """The entities of a type that have a word in any of their texts."""
    kind = state.type(name)
    texts = [one.uid for one in kind.properties if one.declared.kind == "String"]
    return {
        key
        for key, row in state.rows[kind.uid].items()
        if any(word in re.findall(r"\w+", str(row[uid] or "").lower()) for uid in texts)
    }


operation(
    Operation("search", 1.0, ("search", "indexes"), draw_at, perform_search, foresee_at, reads=True)
)


# Exports, manifests


def perform_export(world: World, g: Graph, record: Record) -> None:
    expected = expected_state(world, record.args)
    stream = io.BytesIO()
    ask(world, g, record, "export", to=stream)
    if expected is not None:
        check_exported(stream.getvalue(), expected)


def check_exported(exported: bytes, expected: State) -> None:
    lines = [json.loads(line) for line in exported.splitlines()]
    for kind in expected.types:
        told = [one for one in lines if one.get("type", one.get("edge")) == kind.name]
        if len(told) != len(expected.rows[kind.uid]):
            raise Fault(
                f"{len(told)} of {kind.name} were exported, not {len(expected.rows[kind.uid])}"
            )
        for line in told:
            data = line["data"]
            key = (
                statements.pair(line["from"], line["to"])
                if kind.identity == "ends"
                else data[kind.first.name]
            )
            if key not in expected.rows[kind.uid]:
                raise Fault(f"{kind.name} {key} was exported, and is not there")
            row = kind.named(expected.rows[kind.uid][key])
            for name, value in row.items():
                if name in ("src", "dst"):
                    value, held = value, line[{"src": "from", "dst": "to"}[name]]
                elif isinstance(value, bytes):
                    continue
                else:
                    held = data.get(name)
                if held != value:
                    raise Fault(f"{kind.name} {key} was exported as {line}, and is {row}")


operation(Operation("export", 1, ("export",), draw_at, perform_export, foresee_at, reads=True))


def perform_manifest(world: World, g: Graph, record: Record) -> None:
    expected = expected_state(world, record.args)
    rows = ask(world, g, record, "manifest").to_pylist()
    if expected is not None:
        check_manifest(rows, expected)


def check_manifest(rows: list[dict[str, Any]], expected: State) -> None:
    counts = {
        row["table_key"].split(":", 1)[1]: row["row_count"]
        for row in rows
        if row["object_type"] == "table_version"
    }
    wanted = {one.name: len(expected.rows[one.uid]) for one in expected.types}
    if counts != wanted:
        raise Fault(f"the manifest counts {counts}, not {wanted}")


operation(
    Operation("manifest", 1, ("manifest",), draw_at, perform_manifest, foresee_at, reads=True)
)
