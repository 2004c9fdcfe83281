"""Owns the operations that write rows: transactions at once and over several steps, mutations,
units of work, loads, algorithms that write."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from omnigraph.engine.graph import Graph
from omnigraph.engine.write.transaction import Transaction
from tests.sim.world import model
from tests.sim.world.hands import draw_place, foresee_place, state_of, take
from tests.sim.world.model import Refused, State, Statement, Type, Unsure, Where
from tests.sim.world.reading import key_rows
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
        rows[model.identity_of(kind, row)] = row
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
                rows = tuple(row for row in rows if model.identity_of(kind, row) not in held)
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


def say(tx: Transaction, statement: Statement) -> Any:
    where = None
    if statement.where is not None:
        held, value = pc.field(statement.where.property), statement.where.value
        where = {"=": held == value, "<": held < value, ">=": held >= value}[statement.where.op]
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
    state, expected = model.run_statements(before, statements)
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
    elif roll < 0.3:
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
        if model.run_statements(state, args["statements"])[0].shown() == state.shown():
            raise Unsure("nothing is to be done, on a branch where it must not be")
        raise Refused("the branch is protected, or has moved", "invalid_data", *reasons)
    model.run_statements(state_of(world, args["branch"]), args["statements"])


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
    with hand.call("transaction", message=record.step.label, actor=record.step.by, **options) as tx:
        told = [say(tx, one) for one in args["statements"]]
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
        after, _ = model.run_statements(before, record.args["statements"])
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
        ),
        draw_write,
        perform_write,
        foresee_write,
        statements_effect,
        settle_write,
    )
)


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
        if args["branch"] in world.past.lines or source not in world.past.lines:
            raise Unsure("a load that creates what is there, or from nothing")
    else:
        foresee_place(world, args)
    model.run_statements(state_of(world, source or args["branch"]), args["statements"])


def perform_load(world: World, g: Graph, record: Record) -> None:
    args, hand = record.args, take(world, g, record.args)
    options: dict[str, Any] = {"mode": args["mode"], "engine": "local"}
    if "create_from" in args:
        options["create_branch_from"] = args["create_from"]
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


# A transaction over several steps, others in between


def draw_begin(world: World, chance: Random) -> dict[str, Any] | None:
    slot = chance.choice(("p", "q"))
    if slot in world.memory.get("open", {}):
        return None
    args = draw_place(world, chance)
    if args["branch"] not in world.past.lines:
        return None
    return args | {"slot": slot}


class OpenTransaction:
    def __init__(self, tx: Transaction, args: Mapping[str, Any], world: World) -> None:
        self.tx = tx
        self.branch = args["branch"]
        self.via = args["via"]
        self.began = world.past.lines.get(args["branch"])
        self.head = "" if self.began is None else self.began.head
        self.incarnation = 0 if self.began is None else self.began.incarnation
        self.statements: list[Statement] = []
        self.told: list[Any] = []


def perform_begin(world: World, g: Graph, record: Record) -> None:
    hand = take(world, g, record.args)
    if record.step.by not in world.handles:
        g = world.handle(record.step.by)
    tx = hand.call("transaction", message=f"{record.step.label}", actor="slot")
    opened = world.memory.setdefault("open", {})
    opened[record.args["slot"]] = OpenTransaction(tx, record.args, world)


operation(
    Operation(
        "begin",
        6,
        ("transaction",),
        draw_begin,
        perform_begin,
        lambda world, step: _foresee_begin(world, step),
        lambda world, record, before, parents: _published_effect(world, record, before, parents),
    )
)


def _foresee_begin(world: World, step: Step) -> None:
    foresee_place(world, step.args, writing=False)


def draw_do(world: World, chance: Random) -> dict[str, Any] | None:
    opened = world.memory.get("open", {})
    if not opened:
        return None
    slot = chance.choice(sorted(opened))
    branch = opened[slot].branch
    if branch not in world.past.lines:
        branch = "main"
    return {
        "slot": slot,
        "statement": draw_statement(world, chance, state_of(world, branch), reads=True),
    }


def _slot(world: World, step: Step) -> OpenTransaction:
    opened = world.memory.get("open", {}).get(step.args["slot"])
    if opened is None:
        raise Unsure("nothing is open")
    assert isinstance(opened, OpenTransaction)
    return opened


def _moved(world: World, opened: OpenTransaction) -> bool:
    line = world.past.lines.get(opened.branch)
    return line is None or line.head != opened.head or line.incarnation != opened.incarnation


def foresee_do(world: World, step: Step) -> None:
    opened = _slot(world, step)
    if _moved(world, opened) or world.past.lines[opened.branch].protected:
        raise Unsure("the branch has moved, or is protected and says so already")
    state = state_of(world, opened.branch).copy()
    for one in (*opened.statements, step.args["statement"]):
        model.run_statement(state, one)


def perform_do(world: World, g: Graph, record: Record) -> None:
    opened = world.memory.get("open", {}).get(record.args["slot"])
    if opened is None:
        return
    try:
        told = say(opened.tx, record.args["statement"])
    except BaseException:
        del world.memory["open"][record.args["slot"]]
        raise
    opened.statements.append(record.args["statement"])
    opened.told.append(told)


operation(Operation("do", 9, (), draw_do, perform_do, foresee_do, reads=True))


def draw_publish(world: World, chance: Random) -> dict[str, Any] | None:
    opened = world.memory.get("open", {})
    return {"slot": chance.choice(sorted(opened))} if opened else None


def foresee_publish(world: World, step: Step) -> None:
    opened = _slot(world, step)
    line = world.past.lines.get(opened.branch)
    if line is None or line.incarnation != opened.incarnation:
        if opened.via == "graph" and not opened.statements:
            raise Unsure("nothing was done yet")
        raise Refused("the branch is another") if opened.statements else Unsure("nothing to do")
    state, expected = model.run_statements(state_of(world, opened.branch), opened.statements)
    unchanged = state.shown() == state_of(world, opened.branch).shown()
    if line.protected:
        raise Unsure("nothing to do") if unchanged else Refused("protected", "protected_branch")
    told = _comparable(world, opened)
    known = [dict(sorted(k.items())) if isinstance(k, dict) else k for k in expected]
    if told != known:
        if unchanged:
            raise Unsure("what was read has changed, but nothing is written")
        raise Refused("what was read has changed", "conflict")
    if _moved(world, opened):
        raise Unsure("a conflict that is more careful than it had to be")


def _comparable(world: World, opened: OpenTransaction) -> list[Any]:
    return [
        key_rows(world, one.type, told) if one.verb == "scan" else told
        for one, told in zip(opened.statements, opened.told, strict=True)
    ]


def perform_publish(world: World, g: Graph, record: Record) -> None:
    opened = world.memory.get("open", {}).pop(record.args["slot"], None)
    if opened is None:
        return
    record.facts["opened"] = opened
    for other in reversed(world.records):
        if (
            other.step.op == "begin"
            and other.args["slot"] == record.args["slot"]
            and other is not record
        ):
            other.facts["opened"] = opened
            record.facts["label"] = other.step.label
            break
    opened.tx.publish()
    record.commit, record.repeated = opened.tx.commit_id, False


def _published_effect(
    world: World, record: Record, before: State, parents: tuple[str, ...]
) -> State:
    opened: OpenTransaction | None = record.facts.get("opened")
    if opened is None:
        raise Refused("it was never published")
    state, expected = model.run_statements(before, opened.statements)
    compare_told(world, record, opened.statements, opened.told, expected)
    return state


def settle_publish(world: World, record: Record) -> None:
    opened = record.facts.get("opened")
    if opened is None or record.commit is not None:
        return
    if opened.branch in world.past.lines:
        before = state_of(world, opened.branch)
        after, _ = model.run_statements(before, opened.statements)
        if after.shown() != before.shown():
            raise Fault(f"{record.step.label} made no commit, and there was something to do")


operation(
    Operation(
        "publish",
        6,
        ("Transaction.publish",),
        draw_publish,
        perform_publish,
        foresee_publish,
        settle=settle_publish,
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
    model.run_statements(state_of(world, step.args["branch"]), [_burst_statement(step, 0)])


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
    return model.run_statements(before, [_burst_statement(record.step, record.facts["number"])])[0]


operation(
    Operation("burst", 4, ("transaction",), draw_burst, perform_burst, foresee_burst, burst_effect)
)
