"""Owns the operations that write in other ways: units of work, mutations, loads, bursts."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING, Any

from omnigraph.engine.graph import Graph
from omnigraph.engine.write.transaction import Transaction
from tests.sim.world import statements as saying
from tests.sim.world.hands import draw_place, foresee_place, state_of, take
from tests.sim.world.model import State, Unsure
from tests.sim.world.statements import Statement
from tests.sim.world.steps import Operation, Record, Step, operation
from tests.sim.world.writing import (
    NAMES,
    draw_rows,
    draw_statements,
    foresee_write,
    say,
    settle_commit,
    settle_none,
    statements_effect,
)

if TYPE_CHECKING:
    from tests.sim.world.world import World


# A unit of work


def draw_run(world: World, chance: Random) -> dict[str, Any] | None:
    args = draw_place(world, chance)
    args["statements"] = draw_statements(world, chance, args["branch"], reads=True)
    return args


def perform_run(world: World, g: Graph, record: Record) -> None:
    held: list[Transaction] = []

    def unit(tx: Transaction) -> list[Any]:
        held[:] = [tx]
        return [say(tx, one) for one in record.args["statements"]]

    hand = take(world, g, record.args)
    record.facts["told"] = hand.call("run", unit, message=record.step.label, actor=record.step.by)
    settle_commit(record, held[0])


operation(
    Operation(
        "run", 5, ("run",), draw_run, perform_run, foresee_write, statements_effect, settle_none
    )
)


# A mutation


def draw_mutate(world: World, chance: Random) -> dict[str, Any] | None:
    args = draw_place(world, chance)
    drawn = draw_statements(world, chance, args["branch"], reads=False)
    statements = []
    for one in drawn:
        if one.verb in ("append", "overwrite"):
            one = Statement("upsert", one.type, one.rows)
        if any(isinstance(v, bytes) for row in (*one.rows, one.set) for v in row.values()):
            continue
        statements += [Statement("upsert", one.type, (row,)) for row in one.rows] or [one]
    if not statements:
        return None
    args["statements"] = tuple(statements)
    return args


def mutation_text(statements: tuple[Statement, ...]) -> str:
    parts = []
    for one in statements:
        where = ""
        if one.where is not None:
            where = f" where {one.where.property} {one.where.op} {json.dumps(one.where.value)}"
        match one.verb:
            case "upsert":
                values = ", ".join(f"{n}: {json.dumps(v)}" for n, v in one.rows[0].items())
                parts.append(f"insert {one.type} {{ {values} }}")
            case "update":
                values = ", ".join(f"{n}: {json.dumps(v)}" for n, v in one.set.items())
                if one.add:
                    values = f"{one.add}: {one.add} + 1"
                parts.append(f"update {one.type} set {{ {values} }}{where}")
            case "delete":
                parts.append(f"delete {one.type}{where}")
    return "\n".join(parts)


def perform_mutate(world: World, g: Graph, record: Record) -> None:
    hand = take(world, g, record.args)
    text = mutation_text(record.args["statements"])
    done = hand.call("mutate", text, message=record.step.label, actor=record.step.by)
    record.commit, record.repeated = done.commit_id, done.repeated


def foresee_mutate(world: World, step: Step) -> None:
    if any(
        one.where is None and one.verb in ("update", "delete") for one in step.args["statements"]
    ):
        raise Unsure("a mutation of everything")
    foresee_write(world, step)


operation(
    Operation(
        "mutate",
        8,
        ("mutate",),
        draw_mutate,
        perform_mutate,
        foresee_mutate,
        statements_effect,
        settle_none,
    )
)


# A load


def draw_load(world: World, chance: Random) -> dict[str, Any] | None:
    args = draw_place(world, chance)
    if args["branch"] not in world.past.lines:
        return None
    state = state_of(world, args["branch"])
    kinds = chance.sample(state.types, min(len(state.types), chance.choice((1, 1, 2))))
    mode = chance.choice(("append", "merge", "merge", "overwrite"))
    verb = {"append": "append", "merge": "upsert", "overwrite": "overwrite"}[mode]
    args["statements"] = tuple(
        Statement(verb, kind.name, draw_rows(world, chance, state, kind)) for kind in kinds
    )
    args["mode"], args["format"] = mode, chance.choice(("rows", "lines"))
    if args["format"] == "rows":
        args["statements"] = args["statements"][:1]
    if chance.random() < 0.15 and args["via"] == "graph":
        free = [one for one in ("x", "y") if one not in world.past.lines]
        if free:
            args["create_from"], args["branch"] = args["branch"], chance.choice(free)
    return args


def foresee_load(world: World, step: Step) -> None:
    args = step.args
    source = args.get("create_from")
    if source is not None:
        taken = args["branch"] in world.past.lines or args["branch"] in world.past.tags
        if taken or source not in world.past.lines:
            raise Unsure("a load that creates what is there, or from nothing")
    else:
        foresee_place(world, args)
    saying.run_statements(state_of(world, source or args["branch"]), args["statements"])


def perform_load(world: World, g: Graph, record: Record) -> None:
    args, hand = record.args, take(world, g, record.args)
    options: dict[str, Any] = {"mode": args["mode"], "engine": "local"}
    if "create_from" in args:
        hand = take(world, g, {"branch": args["create_from"]})
        options["new_branch"] = args["branch"]
    source: Any
    if args["format"] == "rows":
        options["type"] = args["statements"][0].type
        source = [dict(row) for row in args["statements"][0].rows]
    else:
        source = io.BytesIO(load_lines(world, args))
    done = hand.call("load", source, message=record.step.label, actor=record.step.by, **options)
    record.commit, record.repeated = done.commit_id, done.repeated


def load_lines(world: World, args: Mapping[str, Any]) -> bytes:
    lines = []
    for one in args["statements"]:
        for row in one.rows:
            data = {k: _as_json(v) for k, v in row.items() if k not in ("from", "to")}
            line: dict[str, Any] = {"data": data}
            if "from" in row:
                line |= {"edge": one.type, "from": row["from"], "to": row["to"]}
            else:
                line["type"] = one.type
            lines.append(json.dumps(line))
    return "\n".join(lines).encode()


def _as_json(value: Any) -> Any:
    return f"base64:{base64.b64encode(value).decode()}" if isinstance(value, bytes) else value


def settle_load(world: World, record: Record) -> None:
    if "create_from" in record.args:
        world.past.branch_off(
            record.args["branch"], world.past.lines[record.args["create_from"]].head
        )
    settle_none(world, record)


operation(
    Operation(
        "load",
        7,
        ("load",),
        draw_load,
        perform_load,
        foresee_load,
        statements_effect,
        settle_load,
    )
)


# Many small commits in a row, so that fragments, dead rows and versions become many


def draw_burst(world: World, chance: Random) -> dict[str, Any] | None:
    args = draw_place(world, chance)
    if args["branch"] not in world.past.lines or args["via"] == "held":
        return None
    return args | {"name": chance.choice(NAMES), "many": chance.randrange(3, 15)}


def foresee_burst(world: World, step: Step) -> None:
    foresee_place(world, step.args)
    saying.run_statements(state_of(world, step.args["branch"]), [_burst_statement(step, 0)])


def _burst_statement(step: Step, number: int) -> Statement:
    return Statement("upsert", "Person", ({"name": step.args["name"], "age": 100 + number},))


def perform_burst(world: World, g: Graph, record: Record) -> None:
    for number in range(record.args["many"]):
        hand = take(world, g, record.args)
        message = f"{record.step.label}.{number}"
        with hand.call("transaction", message=message, actor="burst") as tx:
            say(tx, _burst_statement(record.step, number))
        record.facts.setdefault("commits", []).append(tx.commit_id)


def burst_effect(world: World, record: Record, before: State, parents: tuple[str, ...]) -> State:
    return saying.run_statements(before, [_burst_statement(record.step, record.facts["number"])])[0]


operation(
    Operation("burst", 4, ("transaction",), draw_burst, perform_burst, foresee_burst, burst_effect)
)
