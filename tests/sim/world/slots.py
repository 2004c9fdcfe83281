"""Owns transactions that stay open over several steps, while others write in between."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING, Any

from omnigraph.engine.graph import Graph
from omnigraph.engine.write.transaction import Transaction
from tests.sim.world import statements as saying
from tests.sim.world.hands import draw_place, foresee_place, is_stale, state_of, take
from tests.sim.world.model import Refused, State, Unsure
from tests.sim.world.reading import key_rows
from tests.sim.world.statements import Statement
from tests.sim.world.steps import Fault, Operation, Record, Step, operation
from tests.sim.world.writing import (
    compare_told,
    draw_statement,
    say,
)

if TYPE_CHECKING:
    from tests.sim.world.world import World


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
        if args["via"] == "held":
            self.incarnation = world.held[args["branch"]].incarnation
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
    if is_stale(world, step.args["branch"]) and step.args.get("via") == "held":
        raise Unsure("a transaction looks at its branch when it first has to")
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
        saying.run_statement(state, one)


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
    state, expected = saying.run_statements(state_of(world, opened.branch), opened.statements)
    unchanged = state.shown() == state_of(world, opened.branch).shown()
    if line.protected:
        raise Unsure("nothing to do") if unchanged else Refused("protected", "protected_branch")
    if _only_read(opened):
        raise Unsure("it has only read, and is done where it read")
    told = _comparable(world, opened)
    known = [dict(sorted(k.items())) if isinstance(k, dict) else k for k in expected]
    if told != known:
        if unchanged:
            raise Unsure("what was read has changed, but nothing is written")
        raise Refused("what was read has changed", "conflict")
    if _moved(world, opened):
        raise Unsure("a conflict that is more careful than it had to be")


def _only_read(opened: OpenTransaction) -> bool:
    """Where it looked, its statements affected nothing."""
    pairs = zip(opened.statements, opened.told, strict=True)
    return not any(told for one, told in pairs if one.verb != "scan")


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
    state, expected = saying.run_statements(before, opened.statements)
    compare_told(world, record, opened.statements, opened.told, expected)
    return state


def settle_publish(world: World, record: Record) -> None:
    opened = record.facts.get("opened")
    if opened is None or record.commit is not None or _only_read(opened):
        return
    if opened.branch in world.past.lines:
        before = state_of(world, opened.branch)
        after, _ = saying.run_statements(before, opened.statements)
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
        handed=True,
    )
)
