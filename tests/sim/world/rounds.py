"""Owns rounds: steps that several actors take at once, and what must be true of them afterwards.

Nothing is foretold while a round runs. When it is over every commit must be the effect of its step
on the state before it, as if the steps had come one after the other in the order of the branch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

from omnigraph.engine.graph import Graph
from omnigraph.errors import Reclaimed
from tests.sim.world.actors import Actor, Schedule
from tests.sim.world.hands import foresee_place
from tests.sim.world.observing import Observer
from tests.sim.world.passing import require_claims
from tests.sim.world.place import HOUR
from tests.sim.world.reading import read_state
from tests.sim.world.statements import Statement, Where
from tests.sim.world.steps import OPERATIONS, Fault, Operation, Record, Step, compare, operation
from tests.sim.world.streams import settle_batches
from tests.sim.world.upkeep import kept_by
from tests.sim.world.writing import NAMES, remember_key

if TYPE_CHECKING:
    from tests.sim.world.world import World

TOGETHER = {
    "write": 10.0,
    "run": 4.0,
    "mutate": 4.0,
    "load": 3.0,
    "peek": 4.0,
    "merge": 6.0,
    "restore": 2.0,
    "revert": 1.0,
    "apply_schema": 3.0,
    "create_branch": 2.0,
    "delete_branch": 2.0,
    "tag": 1.0,
    "delete_tag": 0.5,
    "protect": 0.5,
    "optimize": 3.0,
    "cleanup": 2.0,
    "copy_beside": 1.0,
    "wait": 1.0,
    "burst": 1.0,
    "algorithm": 1.0,
    "store_queries": 3.0,
    "run_mutation": 2.0,
    "embed": 0.5,
    "publish": 6.0,
    "batch": 3.0,
    "look in passing": 8.0,
}
"""Operations that actors do at the same time, and how often."""
WEEK = 7 * 24 * HOUR
WRITERS = ("long", "fold", "late", "new")


# A look in passing


def perform_peek(world: World, g: Graph, record: Record) -> None:
    snapshot = g.at(record.args["branch"])
    record.facts["peeked"] = snapshot.commit.id
    try:
        record.facts["shown"] = read_state(world, snapshot).shown
    except Reclaimed:
        record.facts["shown"] = None


def _draw_peek(world: World, chance: Random) -> dict[str, Any] | None:
    return {"branch": chance.choice(sorted(world.past.lines))}


def _foresee_peek(world: World, step: Step) -> None:
    foresee_place(world, step.args, writing=False)


operation(
    Operation("peek", 0.5, ("Graph.at",), _draw_peek, perform_peek, _foresee_peek, reads=True)
)


# Rounds


def draw_round(world: World, chance: Random, number: int) -> list[Step]:
    """Steps of two or three actors, each with a handle of its own."""
    round_number = world.memory["rounds"] = world.memory.get("rounds", 0) + 1
    if chance.random() < 0.15 and not {"wait", "cleanup"} & world.without:
        return _draw_night(world, chance, number, round_number)
    if chance.random() < 0.15:
        return _draw_counts(world, chance, number, round_number)
    steps: list[Step] = []
    names = [one for one in TOGETHER if one not in world.without]
    for by in chance.sample(WRITERS, chance.choice((2, 2, 3))):
        for _ in range(chance.choice((1, 1, 2))):
            while True:
                (name,) = chance.choices(names, [TOGETHER[one] for one in names])
                args = OPERATIONS[name].draw(world, chance)
                if args is not None and _fits(name, args, steps):
                    break
            steps.append(Step(number + len(steps), name, by, args, round_number))
    if chance.random() < 0.15:
        steps = _share_a_key(steps)
    return steps


def _draw_night(world: World, chance: Random, number: int, round_number: int) -> list[Step]:
    """One adds somebody, and loses to the other again and again, while time passes and a cleanup
    comes: what it staged at first grows older than a cleanup leaves alone."""
    branch = chance.choice(sorted(world.past.lines))
    one, other = chance.sample(WRITERS, 2)
    new = ({"name": f"n{number}", "age": 1},)
    drawn: list[tuple[str, str, Mapping[str, Any]]] = [
        (
            one,
            "write",
            {
                "branch": branch,
                "statements": (Statement("append", "Person", new),),
                "retry_for": 6 * HOUR,
            },
        )
    ]
    for _ in range(chance.choice((4, 5, 6))):
        drawn.append((other, "wait", {"seconds": chance.choice((0.2, 0.3, 0.4)) * HOUR}))
        some = ({"name": chance.choice(NAMES[:3]), "age": chance.randrange(4)},)
        rows = (Statement("upsert", "Person", some),)
        drawn.append((other, "write", {"branch": branch, "statements": rows}))
    drawn.append((other, "cleanup", {"keep": 100, "older_than": WEEK, "dry_run": False}))
    return [
        Step(number + at, op, by, args, round_number) for at, (by, op, args) in enumerate(drawn)
    ]


def _draw_counts(world: World, chance: Random, number: int, round_number: int) -> list[Step]:
    """One is told how many people of an age there are, and changes them; the other makes them more
    or fewer meanwhile."""
    branch = chance.choice(sorted(world.past.lines))
    one, other = chance.sample(WRITERS, 2)
    of_age = Where("age", "=", chance.choice((1, 1, 2)))
    counted = Statement("update", "Person", set={"age": 3}, where=of_age)
    first = (counted, Statement("count", "Doc"))
    steps = [Step(number, "write", one, {"branch": branch, "statements": first}, round_number)]
    for at in range(1, chance.choice((2, 3, 4))):
        row = {"name": chance.choice(NAMES[:4]), "age": chance.choice((1, 2, 3))}
        rows = (Statement("upsert", "Person", (row,)),)
        args = {"branch": branch, "statements": rows}
        steps.append(Step(number + at, "write", other, args, round_number))
    return steps


def _fits(name: str, args: Mapping[str, Any], steps: list[Step]) -> bool:
    """Handles that are held belong to somebody, as open transactions do; answers that are compared
    at once belong to steps that are alone; and what a round makes must be there after it."""
    if args.get("via") == "held" or (name == "algorithm" and not args["write"]):
        return False
    if _is_long(name, args) and any(_takes(one.op, one.args) for one in steps):
        return False
    if _takes(name, args) and any(_is_long(one.op, one.args) for one in steps):
        return False
    slots = [one.args["slot"] for one in steps if "slot" in one.args]
    return args.get("slot") not in slots


def _is_long(name: str, args: Mapping[str, Any]) -> bool:
    return name == "wait" and args["seconds"] > HOUR / 4


def _takes(name: str, args: Mapping[str, Any]) -> bool:
    """A cleanup that may take commits of this very round before anybody has looked at them."""
    return name == "cleanup" and (args["keep"] < 10 or args["older_than"] < WEEK)


def _share_a_key(steps: list[Step]) -> list[Step]:
    """Two actors send one call with one key."""
    writes = [at for at, one in enumerate(steps) if one.op == "write"]
    if len(writes) < 2 or steps[writes[0]].by == steps[writes[1]].by:
        return steps
    first, second = steps[writes[0]], steps[writes[1]]
    args = {"key": f"r{first.number}", **first.args, "via": "graph"}
    args.pop("if", None)
    for at, one in ((writes[0], first), (writes[1], second)):
        steps[at] = Step(one.number, "write", one.by, args, one.round)
    return steps


def take_round(world: World, steps: Sequence[Step]) -> list[Record]:
    chance = Random(f"{world.seed} round {steps[0].round}")
    schedule = world.schedule = Schedule(chance, world.troubles, steps[0].by)
    before = _Before(world, steps)
    records: list[Record] = []

    def work(actor: Actor) -> None:
        for step in (one for one in steps if one.by == actor.name):
            actor.crashed = False
            acked = list(before.acked)
            record = world.perform(step)
            records.append(record)
            record.facts["acked"] = acked
            if record.outcome == "crashed":
                world.crash(step.by)
            if record.outcome == "ok" and record.commit is not None and not record.repeated:
                before.acked.append((step.args.get("branch", ""), record.commit))
            schedule.steps += 1
            schedule.pause()

    try:
        schedule.run([Actor(name, work) for name in dict.fromkeys(s.by for s in steps)])
    finally:
        world.schedule = None
    world.reopen()
    settle_round(world, records, before)
    return records


class _Before:
    """What was there when the round began, and what was acknowledged since."""

    def __init__(self, world: World, steps: Sequence[Step]) -> None:
        self.lines = {name: line.incarnation for name, line in world.past.lines.items()}
        self.acked: list[tuple[str, str]] = [(n, line.head) for n, line in world.past.lines.items()]
        self.kept = [(one, kept_by(world, one)) for one in steps if one.op == "cleanup"]


def settle_round(world: World, records: list[Record], before: _Before) -> None:
    touched = {
        record.args["name" if record.step.op == "create_branch" else "branch"]
        for record in records
        if record.step.op in ("create_branch", "delete_branch") or "create_from" in record.args
    }
    Observer(world).observe_round(records, touched)
    for record in records:
        _require_order(world, record, before)
        _require_answers(world, record, before)
        for name, (commit, shown) in record.facts.get("copied", {}).items():
            if commit in world.past.commits:  # else of a branch that came and went meanwhile
                compare(f"the copy of {name}", world.past.state(commit).shown(), shown)
        remember_key(world, record)
    _require_one_of_each_key(world, records)
    settle_batches(world, records)
    for step, kept in before.kept:
        if not step.args["dry_run"]:
            world.past.cleaned(kept)
            world.past.cleaned(kept_by(world, step))


def _require_order(world: World, record: Record, before: _Before) -> None:
    """What was acknowledged before a step began, it has seen."""
    past, branch = world.past, record.args.get("branch", "")
    line = past.lines.get(branch)
    if line is None or before.lines.get(branch) != line.incarnation or record.outcome != "ok":
        return
    peeked = record.facts.get("peeked")
    commit = peeked or (None if record.repeated else record.commit)
    if commit is None or commit not in past.commits:
        return
    if peeked and record.facts["shown"] is not None:
        compare(f"{record.step}", past.state(peeked).shown(), record.facts["shown"])
    missing = [
        one
        for where, one in record.facts["acked"]
        if where == branch and one in past.commits and one not in past.before(commit)
    ]
    if missing:
        raise Fault(f"{record.step.label} ({commit}) has not seen {missing}, acknowledged before")


def _require_answers(world: World, record: Record, before: _Before) -> None:
    branch = record.args.get("branch", "")
    line = world.past.lines.get(branch)
    if line is None or before.lines.get(branch) != line.incarnation or record.outcome != "ok":
        return
    acked = {one for where, one in record.facts["acked"] if where == branch}
    require_claims(world, record, line, acked & world.past.commits.keys())


def _require_one_of_each_key(world: World, records: list[Record]) -> None:
    by_key: dict[str, list[Record]] = {}
    for record in records:
        if "key" in record.args:
            by_key.setdefault(record.args["key"], []).append(record)
    for key, some in by_key.items():
        told = {one.commit for one in some if one.outcome == "ok" and one.commit is not None}
        made = [
            one.id
            for one in world.past.commits.values()
            if one.label in {record.step.label for record in some}
        ]
        if len(told) > 1 or len(made) > 1:
            raise Fault(f"the key {key} was told {sorted(told)} and made {made}")
