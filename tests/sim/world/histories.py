"""Owns the operations that read the past: logs, differences, the change feed, lives of entities."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from omnigraph.engine.graph import Graph
from omnigraph.errors import HistoryGap
from tests.sim.world import model
from tests.sim.world.asking import expected_state
from tests.sim.world.hands import draw_place, foresee_place, state_of, take
from tests.sim.world.model import Refused, State
from tests.sim.world.past import UNSEEN
from tests.sim.world.refs import draw_ref, resolve, write_ref
from tests.sim.world.steps import Fault, Operation, Record, Step, operation
from tests.sim.world.writing import NAMES

if TYPE_CHECKING:
    from tests.sim.world.world import World


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
            check_block(world, block.commit.id, told_changes(world, block.changes))
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


def check_block(world: World, commit: str, told: dict[str, set[model.Change]]) -> None:
    """What the feed tells of a commit is what it did."""
    known = world.past.commits[commit]
    before = world.past.state(known.parents[0]) if known.parents else State()
    if known.kind in UNSEEN and told:
        raise Fault(f"the feed tells of changes by {known.kind}")
    same_changes(f"the feed at {known.label}", told, before, known.state)


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
    if line is not None:
        check_life(world, line.commits, kind.name, key, told, gap=gap)


def check_life(
    world: World, path: list[str], kind: str, key: str, told: dict[str, str], *, gap: bool
) -> None:
    """What the history of an entity tells is what the commits of a branch did to it."""
    if gap and not any(one in world.past.fragile for one in path):
        raise Fault(f"the history of {key} has a gap, and everything is kept")
    for commit in reversed(path[1:]):
        known = world.past.commits[commit]
        lost = world.past.fragile | world.past.gone
        if gap and (commit in lost or known.parents[0] in lost):
            break  # what it did is told by what was there before
        changes = model.differences(world.past.state(known.parents[0]), known.state)
        of = changes.get(kind)
        if of is None:
            continue
        ops = [one[0] for one in of if one[2] == key]
        if told.get(commit) != (ops[0] if ops else None):
            raise Fault(
                f"the history of {key} has {told.get(commit)} at {known.label}, and must have {ops}"
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
