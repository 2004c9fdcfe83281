"""Owns the operations on stored queries: some are set and removed, some are run."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from omnigraph.engine.graph import Graph
from tests.sim.world import named
from tests.sim.world import statements as saying
from tests.sim.world.asking import ask, draw_at, expected_state, foresee_at
from tests.sim.world.hands import draw_place, foresee_place, state_of, take
from tests.sim.world.model import Refused, State, Unsure
from tests.sim.world.queries import same_rows
from tests.sim.world.statements import Statement, Where
from tests.sim.world.steps import Fault, Operation, Record, Step, operation

if TYPE_CHECKING:
    from tests.sim.world.world import World

NAMES = ("q", "r", "s", "w")
"""The last one is a mutation."""


def draw_store(world: World, chance: Random) -> dict[str, Any] | None:
    args = draw_place(world, chance)
    if args["branch"] not in world.past.lines:
        return None
    state = state_of(world, args["branch"])
    if state.queries and chance.random() < 0.3:
        return args | {"set": {}, "remove": (chance.choice(sorted(state.queries)),)}
    texts = {}
    for name in chance.sample(NAMES, chance.choice((1, 1, 2))):
        kinds = [one for one in state.types if one.ends is None]
        kind = chance.choice([*kinds, *(one for one in kinds if one.name == "Person")])
        free = [one.name for one in kind.properties if one.declared.kind != "Blob"]
        one = chance.choice(free if chance.random() < 0.95 else ["nothing"])
        if name == "w":
            texts[name] = named.write_text(name, "Person", chance.choice(("age", "p", "q")))
        else:
            texts[name] = named.read_text(kind.name, one, chance.choice(("red", "blue")))
    gone = chance.sample(NAMES, 1) if chance.random() < 0.1 else []
    return args | {"set": texts, "remove": tuple(one for one in gone if one not in texts)}


def _stored(state: State, args: Any) -> State:
    if missing := [one for one in args["remove"] if one not in state.queries]:
        raise Refused(f"there is no {missing}", "query_not_found")
    if wrong := named.misfits(state.types, args["set"]):
        raise Refused(f"{wrong} do not fit", "invalid_query")
    after = state.copy()
    after.queries |= args["set"]
    for one in args["remove"]:
        del after.queries[one]
    return after


def foresee_store(world: World, step: Step) -> None:
    foresee_place(world, step.args)
    _stored(state_of(world, step.args["branch"]), step.args)


def perform_store(world: World, g: Graph, record: Record) -> None:
    done = take(world, g, record.args).call(
        "store_queries",
        record.args["set"],
        remove=record.args["remove"],
        message=record.step.label,
        actor=record.step.by,
    )
    record.commit = None if done.commit is None else done.commit.id


def store_effect(world: World, record: Record, before: State, parents: tuple[str, ...]) -> State:
    """In a round another writer may have removed the same one before."""
    after = before.copy()
    after.queries |= record.args["set"]
    for one in record.args["remove"]:
        after.queries.pop(one, None)
    return after


def settle_store(world: World, record: Record) -> None:
    if record.commit is None and not record.step.round:
        state = state_of(world, record.args["branch"])
        if store_effect(world, record, state, ()).queries != state.queries:
            raise Fault(f"{record.step.label} made no commit, and there was something to do")


operation(
    Operation(
        "store_queries",
        5,
        ("store_queries",),
        draw_store,
        perform_store,
        foresee_store,
        store_effect,
        settle_store,
    )
)


def perform_run(world: World, g: Graph, record: Record) -> None:
    expected = expected_state(world, record.args)
    found = ask(world, g, record, "queries")
    if expected is None:
        return
    if {name: one.text for name, one in found.items()} != expected.queries:
        raise Fault(f"the stored queries are {found}, and must be {expected.queries}")
    for name, text in expected.queries.items():
        one = found[name]
        if one.problem or one.mutation != named.is_write(text):
            raise Fault(f"the catalog tells {one}")
        if one.mutation:
            continue
        kind = expected.type(named.parts_of(text)[0])
        wanted = [
            {"v": row[kind.find(named.parts_of(text)[1]).uid]}
            for row in expected.rows[kind.uid].values()
        ]
        rows = [dict(row) for row in ask(world, g, record, "run_query", name)]
        same_rows(text, rows, wanted)


operation(
    Operation(
        "run_query", 2, ("queries", "run_query"), draw_at, perform_run, foresee_at, reads=True
    )
)


def draw_mutation(world: World, chance: Random) -> dict[str, Any] | None:
    args = draw_place(world, chance)
    there = args["branch"] in world.past.lines
    if not there or "w" not in state_of(world, args["branch"]).queries:
        return None
    return args | {"x": chance.randrange(4)}


def _mutated(state: State, args: Any) -> State:
    text = state.queries.get("w")
    if text is None:
        raise Refused("there is no such query", "query_not_found")
    kind, name = named.parts_of(text)
    one = Statement("update", kind, set={name: args["x"]}, where=Where("name", "=", "a"))
    return saying.run_statements(state, (one,))[0]


def foresee_mutation(world: World, step: Step) -> None:
    foresee_place(world, step.args)
    _mutated(state_of(world, step.args["branch"]), step.args)


def perform_mutation(world: World, g: Graph, record: Record) -> None:
    done = take(world, g, record.args).call(
        "run_mutation",
        "w",
        {"x": record.args["x"]},
        message=record.step.label,
        actor=record.step.by,
    )
    record.commit = done.commit_id


def mutation_effect(world: World, record: Record, before: State, parents: tuple[str, ...]) -> State:
    if record.step.round:
        raise Unsure("its text was perhaps another one when it was asked for")
    return _mutated(before, record.args)


operation(
    Operation(
        "run_mutation",
        1.5,
        ("run_mutation",),
        draw_mutation,
        perform_mutation,
        foresee_mutation,
        mutation_effect,
    )
)
