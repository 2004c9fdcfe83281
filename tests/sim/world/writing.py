"""Owns the operations that write rows: transactions at once and over several steps, mutations,
units of work, loads, algorithms that write."""

from __future__ import annotations

import contextlib
import json
import zlib
from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from omnigraph.engine.graph import Graph
from omnigraph.engine.write.transaction import Transaction
from tests.sim.world import model
from tests.sim.world import statements as saying
from tests.sim.world.hands import draw_place, foresee_place, state_of, take
from tests.sim.world.model import Refused, State, Type, Unsure
from tests.sim.world.reading import key_rows
from tests.sim.world.statements import Statement, Where
from tests.sim.world.steps import Fault, Operation, Record, Step, operation

if TYPE_CHECKING:
    from tests.sim.world.world import World

NAMES = "abcdef"
WORDS = ("red", "blue", "green")
KEYED_FOR = 600.0
"""Seconds for which an idempotency key is kept at least."""


# Drawing


def draw_value(chance: Random, one: model.Property) -> Any:
    if one.declared.default is None and chance.random() < 0.15:
        return None
    match one.declared.kind:
        case "I64":
            return chance.randrange(12 if one.declared.unique else 4)
        case "Blob":
            return bytes([chance.randrange(3)]) * chance.randrange(1, 4)
    return chance.choice(WORDS)


def draw_row(world: World, chance: Random, state: State, kind: Type) -> dict[str, Any]:
    row: dict[str, Any] = {}
    if kind.ends is not None:
        ends = [one for one in state.types if one.uid == kind.ends[0]]
        there = sorted(state.rows[ends[0].uid]) if ends else []
        row = {end: draw_name(chance, there, 0.95) for end in ("from", "to")}
    for number, one in enumerate(kind.properties):
        if number == 0 and kind.identity == "mark":
            world.memory["marks"] = world.memory.get("marks", 0) + 1
            row[one.name] = f"m{world.memory['marks']}"
        elif number == 0 and kind.identity == "key":
            row[one.name] = draw_name(chance, sorted(state.rows[kind.uid]))
        elif chance.random() < 0.6:
            row[one.name] = draw_value(chance, one)
    return row


def draw_name(chance: Random, there: list[str], share: float = 0.6) -> str:
    return chance.choice(there) if there and chance.random() < share else chance.choice(NAMES)


def draw_rows(world: World, chance: Random, state: State, kind: Type) -> tuple[dict[str, Any], ...]:
    rows: dict[str, dict[str, Any]] = {}
    for _ in range(chance.choice((1, 1, 2, 3))):
        row = draw_row(world, chance, state, kind)
        rows[saying.identity_of(kind, row)] = row
    return tuple(rows.values())


def draw_where(chance: Random, state: State, kind: Type) -> Where | None:
    if chance.random() < 0.08:
        return None
    one = chance.choice(kind.properties[:1] if chance.random() < 0.7 else kind.properties)
    if one.declared.kind == "Blob" or kind.identity == "ends":
        one = kind.properties[0]
    there = [row[one.uid] for row in state.rows[kind.uid].values() if row[one.uid] is not None]
    value = chance.choice(there) if there else draw_value(chance, one)
    if value is None or one.declared.kind == "Blob":
        return None
    op: Any = chance.choice(("=", "=", "=", "<", ">=")) if one.declared.kind == "I64" else "="
    return Where(one.name, op, value)


def draw_statement(world: World, chance: Random, state: State, *, reads: bool) -> Statement:
    weight = {"Person": 4.0, "Knows": 2.0}
    kind = chance.choices(state.types, [weight.get(one.name, 1.0) for one in state.types])[0]
    verbs = ("append", "upsert", "update", "delete", "overwrite", "scan", "count")
    weights = (3, 7, 3, 2, 0.2, 1.5 if reads else 0, 1 if reads else 0)
    verb = chance.choices(verbs, weights)[0]
    match verb:
        case "append" | "upsert" | "overwrite":
            rows = draw_rows(world, chance, state, kind)
            held = state.rows[kind.uid]
            if verb == "append" and chance.random() < 0.9:
                rows = tuple(row for row in rows if saying.identity_of(kind, row) not in held)
            return Statement(verb if rows else "count", kind.name, rows)
        case "update":
            where = draw_where(chance, state, kind)
            free = kind.properties[0 if kind.identity == "ends" else 1 :]
            if not free:
                return Statement("count", kind.name)
            one = chance.choice(free)
            if one.declared.kind == "I64" and not one.declared.unique and chance.random() < 0.4:
                return Statement("update", kind.name, add=one.name, where=where)
            return Statement(
                "update", kind.name, set={one.name: draw_value(chance, one)}, where=where
            )
        case "delete":
            return Statement("delete", kind.name, where=draw_where(chance, state, kind))
    return Statement(verb, kind.name)


def draw_statements(
    world: World, chance: Random, branch: str, *, reads: bool
) -> tuple[Statement, ...]:
    if branch not in world.past.lines:
        branch = "main"
    state = state_of(world, branch)
    many = chance.choice((1, 1, 2, 3))
    drawn = [draw_statement(world, chance, state, reads=reads) for _ in range(many)]
    if not reads:
        drawn = [one for one in drawn if one.verb != "count"]
    return tuple(drawn)


# Carrying out


def chosen(statement: Statement, ways: int) -> int:
    """One of several ways to say the same, the same whenever it is said again."""
    return zlib.crc32(repr(statement).encode()) % ways


def condition(statement: Statement) -> Any:
    """As a text, or as an Arrow expression."""
    where = statement.where
    if where is None:
        return None
    spoken = isinstance(where.value, int | str) and where.property not in ("src", "dst")
    if spoken and chosen(statement, 2):
        return f"{where.property} {where.op} {json.dumps(where.value, ensure_ascii=False)}"
    held, value = pc.field(where.property), where.value
    return {"=": held == value, "<": held < value, ">=": held >= value}[where.op]


def say_in_vain(tx: Transaction, statement: Statement) -> None:
    """Does what is taken back at once, in one of three ways."""
    point = tx.savepoint()
    tx.delete(statement.type, where=None)
    if chosen(statement, 3) == 0:
        with contextlib.suppress(KeyError), tx.savepoint():
            tx.overwrite(statement.type, [])
            raise KeyError
    point.rollback()


def say(tx: Transaction, statement: Statement) -> Any:
    where = condition(statement)
    match statement.verb:
        case "append" | "upsert" | "overwrite":
            return getattr(tx, statement.verb)(
                statement.type, [dict(row) for row in statement.rows]
            )
        case "update":
            changes = dict(statement.set)
            if statement.add is not None:
                changes[statement.add] = pc.field(statement.add) + 1
            return tx.update(statement.type, set=changes, where=where)
        case "delete":
            return tx.delete(statement.type, where=where)
        case "scan":
            return tx.scan(statement.type).to_pylist()
    if statement.type == "Person" and chosen(statement, 2):
        found = tx.query("match { $x: Person } return { count($x) as n }").one()
        return found["n"]
    return tx.count(statement.type)


def compare_told(
    world: World, record: Record, statements: Any, told: list[Any], expected: list[Any]
) -> None:
    """What statements told the caller is what they tell on the state that they landed on."""
    for statement, answer, known in zip(statements, told, expected, strict=True):
        if statement.verb == "scan":
            answer = key_rows(world, statement.type, answer)
            known = dict(sorted(known.items()))
        if answer != known:
            raise Refused(f"{statement} told {answer}, and where it landed it is {known}")


def statements_effect(
    world: World, record: Record, before: State, parents: tuple[str, ...]
) -> State:
    statements = record.facts.get("statements", record.args.get("statements", ()))
    state, expected = saying.run_statements(before, statements)
    if "told" in record.facts:
        compare_told(world, record, statements, record.facts["told"], expected)
    return state


def settle_commit(record: Record, tx: Transaction) -> None:
    record.commit, record.repeated = tx.commit_id, tx.repeated


# A transaction in one step, with a condition or a key


def draw_write(world: World, chance: Random) -> dict[str, Any] | None:
    args = draw_place(world, chance)
    args["statements"] = draw_statements(world, chance, args["branch"], reads=True)
    roll = chance.random()
    if roll < 0.12:
        args["if"] = chance.choice(("head", "head", "older"))
    elif roll < (0.8 if world.seed % 5 == 1 else 0.3):  # some callers give a key with every call
        return draw_keyed(world, chance, args)
    return args


def draw_keyed(world: World, chance: Random, args: dict[str, Any]) -> dict[str, Any]:
    """A key that is new, or one of before, with the same call or, now and then, another."""
    known = world.memory.setdefault("drawn keys", {}).setdefault(args["branch"], [])
    if known and chance.random() < 0.6:
        key, statements = chance.choice(known)
        args["key"] = key
        if chance.random() < 0.8:
            args["statements"] = statements
        return args
    args["key"] = f"k{chance.getrandbits(32):08x}"
    known.append((args["key"], args["statements"]))
    return args


def foresee_write(world: World, step: Step) -> None:
    args = step.args
    if "key" in args and (known := keyed(world, args)) is not None:
        foresee_place(world, args, writing=False)
        if known["call"] != repr(args["statements"]):
            if known["sure"]:
                raise Refused("the key is of another call", "idempotency_mismatch")
            raise Unsure("an old key")
        if not known["sure"]:
            raise Unsure("an old key")
        return
    foresee_place(world, args, writing=False)
    reasons = {"protected_branch"} if world.past.lines[args["branch"]].protected else set()
    if args.get("if") == "older" and len(world.past.visible(args["branch"])) > 1:
        reasons.add("precondition_failed")
    if reasons:
        state = state_of(world, args["branch"])
        if saying.run_statements(state, args["statements"])[0].shown() == state.shown():
            raise Unsure("nothing is to be done, on a branch where it must not be")
        raise Refused("the branch is protected, or has moved", "invalid_data", *reasons)
    saying.run_statements(state_of(world, args["branch"]), args["statements"])


def keyed(world: World, args: Mapping[str, Any]) -> dict[str, Any] | None:
    """The call that this key belongs to, on this very branch."""
    line = world.past.lines.get(args["branch"])
    known: dict[str, Any] | None = world.memory.setdefault("keys", {}).get(args["key"])
    if known is None or line is None:
        return None
    young = world.place.clock.time - known["at"] < (KEYED_FOR - 30) * 1e6
    same = (known["branch"], known["incarnation"]) == (args["branch"], line.incarnation)
    known["sure"] = young and same
    return known


def perform_write(world: World, g: Graph, record: Record) -> None:
    args, hand = record.args, take(world, g, record.args)
    options: dict[str, Any] = {}
    if "if" in args and args["branch"] in world.past.lines:
        seen = world.past.visible(args["branch"])
        head = world.past.lines[args["branch"]].head
        options["if_commit"] = seen[1] if args["if"] == "older" and len(seen) > 1 else head
    if "key" in args:
        options["idempotency_key"] = args["key"]
    if "retry_for" in args:
        options["retry_for"] = args["retry_for"]
    with hand.call("transaction", message=record.step.label, actor=record.step.by, **options) as tx:
        told = []
        for one in args["statements"]:
            if chosen(one, 4) == 0:
                say_in_vain(tx, one)
            told.append(say(tx, one))
    settle_commit(record, tx)
    if not record.repeated:
        record.facts["told"] = told


def settle_write(world: World, record: Record) -> None:
    args = record.args
    if "key" not in args:
        return settle_none(world, record)
    known = keyed(world, args)
    if known is not None and known["sure"]:
        if not record.repeated or record.commit != known["commit"]:
            raise Fault(
                f"{record.step.label} repeats {known['label']} ({known['commit']}) and was told "
                f"repeated={record.repeated}, {record.commit}"
            )
    elif known is None and record.repeated:
        raise Fault(f"{record.step.label} uses a new key and was told that it repeats")
    remember_key(world, record)
    return None


def remember_key(world: World, record: Record) -> None:
    """From now on the key belongs to this call, if it made a commit, or may have."""
    args = record.args
    line = world.past.lines.get(args.get("branch", ""))
    landed = record.commit is not None and not record.repeated
    if (
        "key" not in args
        or line is None
        or not (landed or record.outcome in ("unknown", "crashed"))
    ):
        return
    world.memory.setdefault("keys", {})[args["key"]] = {
        "call": repr(args["statements"]),
        "commit": record.commit,
        "label": record.step.label,
        "branch": args["branch"],
        "incarnation": line.incarnation if record.outcome == "ok" else -1,
        "at": world.place.clock.time,
    }


def settle_none(world: World, record: Record) -> None:
    """No commit is right only where there was nothing to do."""
    if record.commit is None:
        before = state_of(world, record.args["branch"])
        after, _ = saying.run_statements(before, record.args["statements"])
        if after.shown() != before.shown():
            raise Fault(f"{record.step.label} made no commit, and there was something to do")


operation(
    Operation(
        "write",
        22,
        (
            "transaction",
            "Transaction.append",
            "Transaction.upsert",
            "Transaction.overwrite",
            "Transaction.update",
            "Transaction.delete",
            "Transaction.scan",
            "Transaction.count",
            "Transaction.query",
            "Transaction.savepoint",
        ),
        draw_write,
        perform_write,
        foresee_write,
        statements_effect,
        settle_write,
    )
)
