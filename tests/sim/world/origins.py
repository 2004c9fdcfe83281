"""Owns the operations that explain: where each value of an entity comes from, what a schema says in
few words, and what is wrong with a query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.engine.graph import Graph
from tests.sim.world.asking import ask, draw_at, expected_state, foresee_at
from tests.sim.world.hands import state_of, take
from tests.sim.world.histories import draw_branch, foresee_branch
from tests.sim.world.steps import Fault, Operation, Record, operation
from tests.sim.world.writing import NAMES

if TYPE_CHECKING:
    from tests.sim.world.world import World


def perform_blame(world: World, g: Graph, record: Record) -> None:
    """Each property comes from the commit that the model finds by comparing commit with commit."""
    branch = record.args["branch"]
    hand = take(world, g, record.args)
    key = NAMES[record.args["roll"] % 4]
    if branch not in world.past.lines:
        hand.call("blame", "Person", key)
        return
    state, head = state_of(world, branch), world.past.lines[branch].head
    kind = state.type("Person")
    told = {one.property: one for one in hand.call("blame", kind.name, key)}
    row = state.rows[kind.uid].get(key)
    if row is None:
        if told:
            raise Fault(f"{key} is not there, and {sorted(told)} have an origin")
        return
    if told.keys() != {one.name for one in kind.properties}:
        raise Fault(f"of {key} only {sorted(told)} have an origin")
    lost = world.past.fragile | world.past.gone
    for one in kind.properties:
        found = told[one.name]
        if one.declared.kind != "Blob" and found.value != row[one.uid]:
            raise Fault(f"{one.name} of {key} is {found.value!r}")
        wanted = origin(world, head, kind.uid, key, one.uid)
        if wanted is None or (found.commit is None and lost):
            continue
        if found.commit is None or found.commit.id != wanted:
            raise Fault(f"{one.name} of {key} is said to be of {found.commit}, and is of {wanted}")


def origin(world: World, commit: str, type_uid: int, key: str, uid: int) -> str | None:
    """Back as long as a parent has the same value; None where types were another, of which the
    documentation does not say what is a change."""
    past = world.past
    while True:
        mine = past.state(commit).rows.get(type_uid, {}).get(key)
        if mine is None or uid not in mine:
            return None
        for number, parent in enumerate(past.commits[commit].parents):
            rows = past.state(parent).rows.get(type_uid)
            theirs = None if rows is None else rows.get(key)
            if rows is None or (theirs is not None and uid not in theirs):
                return None
            if theirs is not None and theirs[uid] == mine[uid]:
                commit = parent
                break
            if number == 1:
                return commit
        else:
            return commit


operation(
    Operation("blame", 1.5, ("blame",), draw_branch, perform_blame, foresee_branch, reads=True)
)


def perform_explaining(world: World, g: Graph, record: Record) -> None:
    """The short schema names every type with its count, and a slip in a query is mended."""
    text = ask(world, g, record, "describe")
    wrong = "match { $x: Persom } retrun { count($x) as n }"
    checked = ask(world, g, record, "check", wrong)
    drawn = ask(world, g, record, "schema_graph")
    expected = expected_state(world, record.args)
    if expected is None:
        return
    counts = {one.id: one.data["@count"] for one in (*drawn.nodes, *drawn.edges)}
    if counts != {kind.name: len(expected.rows[kind.uid]) for kind in expected.types}:
        raise Fault(f"the drawn schema counts {counts}")
    for kind in expected.types:
        if f" {kind.name}" not in text or f"({len(expected.rows[kind.uid]):,})" not in text:
            raise Fault(f"the short schema does not tell of {kind.name}")
    if expected.has("Person"):
        right = "match { $x: Person } return { count($x) as n }"
        if checked.ok or checked.corrected != right:
            raise Fault(f"the mended query is {checked.corrected!r}")
        if not ask(world, g, record, "check", right).ok:
            raise Fault("a right query is said to be wrong")


operation(
    Operation(
        "explaining",
        0.7,
        ("describe", "check", "schema_graph"),
        draw_at,
        perform_explaining,
        foresee_at,
        reads=True,
    )
)
