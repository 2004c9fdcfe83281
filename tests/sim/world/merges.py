"""Owns the operations that bring states together or back: merge, restore, revert."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from omnigraph.engine.graph import Graph
from tests.sim.world import merging
from tests.sim.world.hands import (
    draw_place,
    foresee_place,
    state_of,
    take,
)
from tests.sim.world.model import Refused, State, Unsure
from tests.sim.world.refs import PerhapsGone, Ref, draw_ref, resolve, write_ref
from tests.sim.world.steps import Fault, Operation, Record, Step, operation
from tests.sim.world.writing import draw_row

if TYPE_CHECKING:
    from tests.sim.world.world import World


# Merge


def draw_merge(world: World, chance: Random) -> dict[str, Any] | None:
    args = draw_place(world, chance)
    others = [one for one in sorted(world.past.lines) if one != args["branch"]]
    if not others and chance.random() < 0.9:
        return None
    args["source"] = chance.choice(others) if others else args["branch"]
    if "ff" in world.without and _is_fast_forward(world, args["source"], args["branch"]):
        return None
    state = state_of(world, args["source"])
    kind = chance.choice(state.types)
    args["strategy"] = chance.choice(
        (
            None,
            None,
            "ours",
            "theirs",
            "theirs",
            {kind.name: "theirs"},
            {f"{kind.name}.{chance.choice(kind.properties).name}": "ours"},
            {"query": chance.choice(("ours", "theirs"))},
            {"query.q": "theirs"},
        )
    )
    args["dry_run"] = chance.random() < 0.15
    if chance.random() < 0.15 and kind.ends is None and kind.identity == "key":
        row: dict[str, Any] | None = draw_row(world, chance, state, kind)
        assert row is not None
        key = row[kind.first.name]
        row = {one.name: one.declared.default for one in kind.properties} | row
        args["resolve"] = {(kind.name, key): row if chance.random() < 0.7 else None}
    return args


def _is_fast_forward(world: World, source: str, into: str) -> bool:
    if source not in world.past.lines or into not in world.past.lines:
        return False
    ours, theirs = world.past.lines[into].head, world.past.lines[source].head
    return world.past.is_behind(ours, theirs)


def foresee_merge(world: World, step: Step) -> None:
    args = step.args
    if args["source"] == args["branch"]:
        raise Refused("it is merged into itself")
    foresee_place(world, args, writing=False)
    foresee_place(world, {"branch": args["source"]}, writing=False)
    ours, theirs = (world.past.lines[args[one]].head for one in ("branch", "source"))
    _require_names(world, args, ours, theirs)
    if args.get("resolve"):
        _require_merge(world, args, ours, theirs)
    if world.past.is_up_to_date(ours, theirs) or world.past.is_behind(ours, theirs):
        return
    try:
        merge_effect_of(world, args, ours, theirs)
    except Refused:
        if not args["dry_run"]:
            raise


def _require_names(world: World, args: Any, ours: str, theirs: str) -> None:
    if not isinstance(args["strategy"], dict):
        return
    (name,) = args["strategy"]
    kind, _, one = name.partition(".")
    if kind == "query":
        return
    for state in (world.past.state(ours), world.past.state(theirs)):
        held = [p.name for p in state.type(kind).properties] if state.has(kind) else None
        if held is None or (one and one not in held):
            raise Unsure("the strategy names what is not there")


def _require_merge(world: World, args: Any, ours: str, theirs: str) -> None:
    """Rows that resolve are an error where nothing is merged."""
    past = world.past
    if past.is_up_to_date(ours, theirs) or past.is_behind(ours, theirs):
        raise Unsure("rows that resolve what is no merge")
    plain = {**args, "resolve": None}
    try:
        merged = merge_effect_of(world, plain, ours, theirs)
    except Refused:
        return
    if merged.shown() in (past.state(ours).shown(), past.state(theirs).shown()):
        # All that is new on one side is that it was brought up to the other, perhaps.
        raise Unsure("rows that resolve what may be no merge")


def merge_effect_of(world: World, args: Any, ours: str, theirs: str) -> State:
    past = world.past
    if past.is_up_to_date(ours, theirs):
        return past.state(ours)
    if past.is_behind(ours, theirs):
        return past.state(theirs).copy()
    base = past.base(ours, theirs)
    states = past.state(ours), past.state(theirs)
    return merging.merge(base, *states, args["strategy"], args.get("resolve"))


def perform_merge(world: World, g: Graph, record: Record) -> None:
    args = record.args
    hand = take(world, g, args)
    done = hand.call(
        "merge",
        args["source"],
        strategy=args["strategy"],
        resolve=args.get("resolve"),
        dry_run=args["dry_run"],
        message=record.step.label,
        actor=record.step.by,
    )
    record.facts["outcome"] = done.outcome
    record.facts["conflicts"] = done.conflicts
    record.commit = None if done.commit is None or args["dry_run"] else done.commit.id


def settle_merge(world: World, record: Record) -> None:
    """Its outcome is what the past says."""
    args, past = record.args, world.past
    ours, theirs = (past.lines[args[one]].head for one in ("branch", "source"))
    outcome = record.facts["outcome"]
    if past.is_up_to_date(ours, theirs):
        if outcome != "already_up_to_date":
            raise Fault(f"{record.step.label} was {outcome}, and there was nothing to merge")
        return
    if outcome == "already_up_to_date":
        # So it is also when all that is new there is that it was brought up to this one. Then
        # nothing is asked for in `resolve`.
        plain = {name: value for name, value in args.items() if name != "resolve"}
        if merge_effect_of(world, plain, ours, theirs).shown() != past.state(ours).shown():
            raise Fault(f"{record.step.label} says that there was nothing to merge")
        return
    if args["dry_run"]:
        try:
            merge_effect_of(world, args, ours, theirs)
            clean = True
        except Refused:
            clean = False
        except Unsure:
            return
        if clean != (not record.facts["conflicts"]):
            raise Fault(f"{record.step.label} foretells conflicts={record.facts['conflicts']}")
    elif record.commit is None:
        raise Fault(f"{record.step.label} was {outcome} and has no commit")


def merge_effect(world: World, record: Record, before: State, parents: tuple[str, ...]) -> State:
    if len(parents) != 2:
        raise Refused(f"a merge has two parents, not {len(parents)}")
    return merge_effect_of(world, record.args, *parents)


operation(
    Operation(
        "merge",
        12,
        ("merge",),
        draw_merge,
        perform_merge,
        foresee_merge,
        merge_effect,
        settle_merge,
    )
)


# Restore and revert


def draw_restore(world: World, chance: Random) -> dict[str, Any] | None:
    return draw_place(world, chance) | {"ref": draw_ref(world, chance)}


def foresee_restore(world: World, step: Step) -> None:
    """Where both the branch and the ref are refused, either may be told."""
    try:
        foresee_place(world, step.args)
    except Refused as why:
        try:
            resolve(world, step.args["ref"])
        except Refused:
            raise Refused(str(why)) from None
        except Unsure:
            pass
        raise
    resolve(world, step.args["ref"])


def perform_restore(world: World, g: Graph, record: Record) -> None:
    ref = write_ref(world, record.args["ref"])
    try:
        record.facts["target"] = resolve(world, record.args["ref"])
    except PerhapsGone as why:
        record.facts["target"] = why.commit
    except (Refused, Unsure):
        if record.args["ref"].form == "commit":
            record.facts["target"] = ref
    hand = take(world, g, record.args)
    done = hand.call("restore", ref, message=record.step.label, actor=record.step.by)
    record.commit = done.id


def restore_effect(world: World, record: Record, before: State, parents: tuple[str, ...]) -> State:
    moving = record.step.round and record.args["ref"].form not in ("commit", "at")
    if "target" not in record.facts or moving:
        raise Unsure("to something that the model does not know")
    return world.past.state(record.facts["target"]).copy()


def settle_restore(world: World, record: Record) -> None:
    if "target" in record.facts and record.commit in world.past.commits:
        held = world.past.state(record.commit).shown()
        if held != world.past.state(record.facts["target"]).shown():
            raise Fault(f"{record.step.label} did nothing, and there was something to restore")


operation(
    Operation(
        "restore",
        6,
        ("restore",),
        draw_restore,
        perform_restore,
        foresee_restore,
        restore_effect,
        settle_restore,
    )
)


def draw_revert(world: World, chance: Random) -> dict[str, Any] | None:
    args = draw_place(world, chance)
    line = world.past.lines.get(args["branch"])
    if line is None:
        return None
    commit = chance.choice(line.commits[-4:])
    return args | {"ref": Ref("commit", label=world.past.commits[commit].label)}


def foresee_revert(world: World, step: Step) -> None:
    foresee_place(world, step.args)
    commit = resolve(world, step.args["ref"])
    known = world.past.commits[commit]
    if commit not in world.past.lines[step.args["branch"]].commits:
        raise Unsure("it is not on the branch")
    if not known.parents:
        raise Unsure("the first commit")
    if known.parents[0] in world.past.fragile:
        raise Unsure("a cleanup may have taken what was before")
    before = world.past.state(known.parents[0])
    if known.kind in ("merge", "restore") and any(
        r.step.op == "apply_schema" for r in world.records
    ):
        raise Unsure("the catalog may count it as a change of the schema")
    merging.revert(before, known.state, state_of(world, step.args["branch"]))


def perform_revert(world: World, g: Graph, record: Record) -> None:
    ref = write_ref(world, record.args["ref"])
    record.facts["target"] = ref
    hand = take(world, g, record.args)
    done = hand.call("revert", ref, message=record.step.label, actor=record.step.by)
    record.commit = done.id


def revert_effect(world: World, record: Record, before: State, parents: tuple[str, ...]) -> State:
    known = world.past.commits[record.facts["target"]]
    if not known.parents:
        raise Unsure("the first commit")
    return merging.revert(world.past.state(known.parents[0]), known.state, before)


operation(
    Operation(
        "revert",
        5,
        ("revert",),
        draw_revert,
        perform_revert,
        foresee_revert,
        revert_effect,
    )
)
