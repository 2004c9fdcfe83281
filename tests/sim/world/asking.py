"""Owns the operations that read: each asks one handle, at one ref, and compares with the model."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING, Any

import networkx as nx

from omnigraph.engine.graph import Graph
from omnigraph.engine.snapshot import Snapshot
from omnigraph.errors import HistoryGap, Reclaimed
from tests.sim.world import model
from tests.sim.world.checks import compare, normal_ids
from tests.sim.world.hands import draw_place, foresee_place, state_of, take
from tests.sim.world.model import Refused, State, Unsure
from tests.sim.world.past import UNSEEN
from tests.sim.world.reading import key_rows, read_state
from tests.sim.world.refs import PerhapsGone, Ref, draw_ref, resolve, write_ref
from tests.sim.world.steps import Fault, Operation, Record, Step, operation
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
        return state_of(world, args["branch"])
    try:
        return world.past.state(resolve(world, args["ref"]))
    except PerhapsGone as why:
        return world.past.state(why.commit)
    except (Refused, Unsure):
        return None


def ask(world: World, g: Graph, record: Record, method: str, *given: Any, **named: Any) -> Any:
    if "ref" in record.args:
        return getattr(g, method)(*given, ref=write_ref(world, record.args["ref"]), **named)
    return take(world, g, record.args).call(method, *given, **named)


# Snapshots


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


def check_query(rows_of: Any, expected: State, kind: model.Type) -> None:
    """Every row of a type, by its columns or along its edges, and one of them by its key."""
    names = [one.name for one in kind.properties if one.declared.kind != "Blob"]
    if kind.ends is None:
        pattern = f"$v: {kind.name}"
        values = [f"$v.{name} as {name}" for name in names]
    else:
        ends = [one.name for uid in kind.ends for one in expected.types if one.uid == uid]
        arrow = kind.name[0].lower() + kind.name[1:]
        pattern = f"$s: {ends[0]} $t: {ends[1]} $s $v:{arrow} $t"
        values = ["$s.name as src", "$t.name as dst"]
        values += [f"$v.{name} as {name}" for name in names]
        names = ["src", "dst", *names]
    text = f"match {{ {pattern} }} return {{ {', '.join(values)} }}"
    wanted = [
        {name: kind.named(row)[name] for name in names} for row in expected.rows[kind.uid].values()
    ]
    same_rows(text, rows_of(text), wanted)
    if kind.identity == "key" and expected.rows[kind.uid]:
        key = max(expected.rows[kind.uid])
        first = kind.first.name
        found = f"$v: {kind.name} {{ {first}: {json.dumps(key)} }}"
        text = f"match {{ {found} }} return {{ {', '.join(values)} }}"
        same_rows(text, rows_of(text), [one for one in wanted if one[first] == key])


def same_rows(text: str, found: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:
    def ordered(rows: list[dict[str, Any]]) -> list[str]:
        return sorted(repr(sorted(row.items())) for row in rows)

    if ordered(found) != ordered(wanted):
        raise Fault(f"{text}\n  gave {ordered(found)}\n  must be {ordered(wanted)}")


operation(Operation("query", 1.5, ("query",), draw_at, perform_query, foresee_at, reads=True))


# Exports, manifests


def perform_export(world: World, g: Graph, record: Record) -> None:
    expected = expected_state(world, record.args)
    stream = io.BytesIO()
    ask(world, g, record, "export", to=stream)
    if expected is None:
        return
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    for kind in expected.types:
        told = [one for one in lines if one.get("type", one.get("edge")) == kind.name]
        if len(told) != len(expected.rows[kind.uid]):
            raise Fault(
                f"{len(told)} of {kind.name} were exported, not {len(expected.rows[kind.uid])}"
            )
        for line in told:
            data = line["data"]
            key = (
                model.pair(line["from"], line["to"])
                if kind.identity == "ends"
                else data[kind.first.name]
            )
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
    if expected is None:
        return
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


# Histories


def draw_branch(world: World, chance: Random) -> dict[str, Any] | None:
    return draw_place(world, chance) | {"roll": chance.getrandbits(16)}


def foresee_branch(world: World, step: Step) -> None:
    foresee_place(world, step.args, writing=False)


def perform_log(world: World, g: Graph, record: Record) -> None:
    branch, roll = record.args["branch"], record.args["roll"]
    hand = take(world, g, record.args)
    line = world.past.lines.get(branch)
    options: dict[str, Any] = {}
    if roll % 3:
        options["limit"] = roll % 4
    first = [one.id for one in hand.call("log", first_parent=True, **options)]
    if line is None:
        return
    wanted = line.commits[::-1][: options.get("limit", len(line.commits))]
    if first != wanted:
        raise Fault(f"the log of {branch} is {first}, and must be {wanted}")
    every = [one.id for one in hand.call("log")]
    if len(every) != len(set(every)) or set(every) != world.past.before(line.head):
        raise Fault(f"the log of {branch} through all parents is {every}")
    by = [one.id for one in hand.call("log", actor="long", kind="write")]
    mine = {
        one.id
        for one in map(world.past.commits.__getitem__, every)
        if one.kind == "write"
        and world.by_label[one.label].step.by == "long"
        and world.by_label[one.label].step.op not in ("begin", "burst")
    }
    if set(by) != mine:
        raise Fault(f"the log of one actor is {by}, and must be {sorted(mine)}")


operation(Operation("log", 1, ("log",), draw_branch, perform_log, foresee_branch, reads=True))


def told_changes(world: World, changes: Any) -> dict[str, set[model.Change]]:
    told: dict[str, set[model.Change]] = {}
    for one in changes:
        row = one.after if one.after is not None else one.before
        key = row.get("mark", one.id)
        of = told.setdefault(one.type, set())
        of.add((str(one.op), one.type, key, tuple(sorted(one.changed))))
    return told


def same_changes(what: str, told: dict[str, set[model.Change]], old: State, new: State) -> None:
    wanted = model.differences(old, new)
    for name, changes in wanted.items():
        if changes is not None and told.get(name, set()) != changes:
            raise Fault(f"{what}: {name} has {told.get(name, set())}, and must have {changes}")
    if stray := told.keys() - wanted.keys():
        raise Fault(f"{what}: changes of {stray}")


def draw_diff(world: World, chance: Random) -> dict[str, Any] | None:
    return draw_place(world, chance) | {"ref": draw_ref(world, chance)}


def foresee_diff(world: World, step: Step) -> None:
    foresee_place(world, step.args, writing=False)
    resolve(world, step.args["ref"])


def perform_diff(world: World, g: Graph, record: Record) -> None:
    hand = take(world, g, record.args)
    found = list(hand.call("diff", write_ref(world, record.args["ref"])))
    old = expected_state(world, record.args)
    if old is not None and record.args["branch"] in world.past.lines:
        new = state_of(world, record.args["branch"])
        same_changes(f"{record.step}", told_changes(world, found), old, new)


operation(Operation("diff", 2, ("diff",), draw_diff, perform_diff, foresee_diff, reads=True))


def perform_changes(world: World, g: Graph, record: Record) -> None:
    """From the cursor of an earlier look, or from the beginning: block by block what each commit
    did."""
    branch = record.args["branch"]
    hand = take(world, g, record.args)
    line = world.past.lines.get(branch)
    cursors = world.memory.setdefault("cursors", {})
    place = cursors.get((branch, record.step.by)) if record.args["roll"] % 4 else None
    since = "beginning" if place is None else place[0]
    at = 0 if place is None else place[1]
    if line is None:
        list(hand.call("changes", since))
        return
    other = place is not None and place[2] != line.incarnation
    path = line.commits
    try:
        for block in hand.call("changes", since):
            if other:
                raise Fault("a cursor of another branch of this name goes on")
            if at >= len(path) or block.commit.id != path[at]:
                raise Fault(f"the feed of {branch} tells {block.commit.id} at {at} of {path}")
            known = world.past.commits[block.commit.id]
            told = told_changes(world, block.changes)
            before = world.past.state(known.parents[0]) if known.parents else State()
            if known.kind in UNSEEN and told:
                raise Fault(f"the feed tells of changes by {known.kind}")
            same_changes(f"the feed at {known.label}", told, before, known.state)
            at += 1
            cursors[branch, record.step.by] = (block.cursor, at, line.incarnation)
    except HistoryGap:
        missing = [one for one in path[max(at - 1, 0) :] if one in world.past.fragile]
        if not missing:
            raise Fault(f"the feed of {branch} has a gap, and everything is kept") from None
        cursors.pop((branch, record.step.by), None)
        return
    except Exception:
        cursors.pop((branch, record.step.by), None)
        raise
    if at != len(path):
        raise Fault(f"the feed of {branch} ends at {at} of {len(path)}")


def foresee_changes(world: World, step: Step) -> None:
    foresee_place(world, step.args, writing=False)
    place = world.memory.get("cursors", {}).get((step.args["branch"], step.by))
    line = world.past.lines[step.args["branch"]]
    if step.args["roll"] % 4 and place is not None and place[2] != line.incarnation:
        raise Refused("the cursor is of another branch", "cursor_mismatch")


operation(
    Operation("changes", 3, ("changes",), draw_branch, perform_changes, foresee_changes, reads=True)
)


def perform_history(world: World, g: Graph, record: Record) -> None:
    """Of each commit that left the shape of the type alone: whether it changed the entity."""
    branch = record.args["branch"]
    line = world.past.lines.get(branch)
    hand = take(world, g, record.args)
    state = state_of(world, branch if line else "main")
    kind = state.type("Person")
    key = NAMES[record.args["roll"] % 4]
    told: dict[str, str] = {}
    gap = False
    try:
        for moment in hand.call("history", kind.name, key):
            if moment.commit.id in told:
                raise Fault(f"the history of {key} tells {moment.commit.id} twice")
            told[moment.commit.id] = str(moment.change.op)
    except HistoryGap:
        gap = True
    if line is None:
        return
    if gap and not any(one in world.past.fragile for one in line.commits):
        raise Fault(f"the history of {key} has a gap, and everything is kept")
    for commit in reversed(line.commits[1:]):
        known = world.past.commits[commit]
        if gap and commit in world.past.fragile:
            break
        changes = model.differences(world.past.state(known.parents[0]), known.state)
        of = changes.get(kind.name)
        if of is None:
            continue
        ops = [one[0] for one in of if one[2] == key]
        if told.get(commit) != (ops[0] if ops else None):
            raise Fault(
                f"the history of {key} on {branch} has {told.get(commit)} at {known.label}, "
                f"and must have {ops}"
            )


operation(
    Operation(
        "history", 1.5, ("history",), draw_branch, perform_history, foresee_branch, reads=True
    )
)


def perform_names(world: World, g: Graph, record: Record) -> None:
    if set(g.branches()) != world.past.lines.keys():
        raise Fault(f"the branches are {g.branches()}")
    if {name: one.id for name, one in g.tags().items()} != world.past.tags:
        raise Fault(f"the tags are {g.tags()}")
    protected = {name for name, line in world.past.lines.items() if line.protected}
    if set(g.protected_branches()) != protected:
        raise Fault(f"protected are {g.protected_branches()}")


operation(
    Operation(
        "names",
        0.7,
        ("Graph.branches", "Graph.tags", "Graph.protected_branches"),
        lambda w, c: {},
        perform_names,
        lambda w, s: None,
        reads=True,
    )
)


# Algorithms


def draw_algorithm(world: World, chance: Random) -> dict[str, Any] | None:
    args = draw_place(world, chance)
    args["name"] = chance.choice(("degrees", "connected_components", "triangle_count"))
    args["write"] = chance.random() < 0.3
    return args


def perform_algorithm(world: World, g: Graph, record: Record) -> None:
    args = record.args
    hand = take(world, g, args)
    options: dict[str, Any] = {"edges": ["Knows"], "engine": "local"}
    if args["write"]:
        options |= {"write_to": "age", "message": record.step.label, "actor": record.step.by}
        done = hand.call("algorithm", "degrees", **options)
        record.commit = None if done.commit is None else done.commit.id
        return
    found = {
        row["id"]: row["value"]
        for row in hand.call("algorithm", args["name"], **options).to_pylist()
        if row["type"] == "Person"
    }
    loops = any(
        row["src"] == row["dst"] for row in state_of(world, args["branch"]).of("Knows").values()
    )
    if not loops:  # whether a loop counts once or twice is not said
        wanted = values_of(args["name"], state_of(world, args["branch"]))
        if args["name"] == "connected_components":
            found, wanted = _groups(found), _groups(wanted)
        if found != wanted:
            raise Fault(f"{record.step} gave {found}, and must give {wanted}")


def _groups(values: dict[str, Any]) -> Any:
    groups: dict[Any, set[str]] = {}
    for key, value in values.items():
        groups.setdefault(value, set()).add(key)
    return sorted(sorted(one) for one in groups.values())


def values_of(name: str, state: State) -> dict[str, Any]:
    edges = [(row["src"], row["dst"]) for row in state.of("Knows").values()]
    people = sorted(state.of("Person"))
    graph = nx.Graph(edges)
    graph.add_nodes_from(people)
    match name:
        case "degrees":
            return {one: sum((one == a) + (one == b) for a, b in edges) for one in people}
        case "triangle_count":
            graph.remove_edges_from(list(nx.selfloop_edges(graph)))
            return dict(nx.triangles(graph))
    found: dict[str, Any] = {}
    for part in nx.connected_components(graph):
        found |= dict.fromkeys(part, min(part))
    return found


def foresee_algorithm(world: World, step: Step) -> None:
    foresee_place(world, step.args, writing=step.args["write"])


def algorithm_effect(
    world: World, record: Record, before: State, parents: tuple[str, ...]
) -> State:
    state = before.copy()
    kind = state.type("Person")
    if any(row["src"] == row["dst"] for row in state.of("Knows").values()):
        raise Unsure("whether a loop counts once or twice is not said")
    for key, value in values_of("degrees", state).items():
        state.rows[kind.uid][key][kind.find("age").uid] = value
    return state


operation(
    Operation(
        "algorithm",
        2,
        ("algorithm",),
        draw_algorithm,
        perform_algorithm,
        foresee_algorithm,
        algorithm_effect,
    )
)

__all__ = ["Ref"]
