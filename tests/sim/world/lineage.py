"""Owns the operations on branches and tags: made, deleted, merged, restored, protected."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from omnigraph.engine.graph import Graph
from tests.sim.world import merging, model
from tests.sim.world.hands import (
    BRANCHES,
    TAGS,
    HeldBranch,
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


# Branches


def draw_create(world: World, chance: Random) -> dict[str, Any] | None:
    free = [one for one in BRANCHES[1:] if one not in world.past.lines]
    name = chance.choice(free) if free and chance.random() < 0.9 else chance.choice(BRANCHES + TAGS)
    if chance.random() < 0.3:
        return draw_place(world, chance) | {"name": name}
    return {"name": name, "from": draw_ref(world, chance)}


def _source(world: World, step: Step) -> str:
    if "from" in step.args:
        return resolve(world, step.args["from"])
    foresee_place(world, step.args, writing=False)
    return world.past.lines[step.args["branch"]].head


def foresee_create(world: World, step: Step) -> None:
    taken = world.past.lines.keys() | world.past.tags.keys()
    try:
        _source(world, step)
    except Refused as why:
        if step.args["name"] in taken:
            raise Refused(str(why)) from None
        raise
    if step.args["name"] in taken:
        raise Refused("the name is taken", "branch_exists", "already_exists", "tag_exists")


def perform_create(world: World, g: Graph, record: Record) -> None:
    name = record.args["name"]
    if "from" in record.args:
        made = g.create_branch(name, write_ref(world, record.args["from"]))
    else:
        made = take(world, g, record.args).call("create_branch", name)
    record.facts["at"] = made.id


def settle_create(world: World, record: Record) -> None:
    _require_source(world, record)
    world.past.branch_off(record.args["name"], record.facts["at"])


def _require_source(world: World, record: Record) -> None:
    """What was made stands where the model says, but for maintenance."""
    try:
        source = _source(world, record.step)
    except PerhapsGone as why:
        source = why.commit
    except Unsure:
        return
    past, at = world.past, record.facts["at"]
    if at not in past.commits or past.seen(at) != past.seen(source):
        raise Fault(f"{record.step.label} stands at {at}, and the model says {source}")


operation(
    Operation(
        "create_branch",
        6,
        ("create_branch",),
        draw_create,
        perform_create,
        foresee_create,
        settle=settle_create,
    )
)


def draw_delete(world: World, chance: Random) -> dict[str, Any] | None:
    args = draw_place(world, chance)
    return args if args["branch"] != "main" or chance.random() < 0.1 else None


def foresee_delete(world: World, step: Step) -> None:
    if step.args["branch"] == "main":
        raise Refused("main stays")
    foresee_place(world, step.args)


def perform_delete(world: World, g: Graph, record: Record) -> None:
    take(world, g, record.args).call("delete")


def settle_delete(world: World, record: Record) -> None:
    del world.past.lines[record.args["branch"]]


operation(
    Operation(
        "delete_branch",
        4,
        ("Graph.delete_branch", "Branch.delete"),
        draw_delete,
        perform_delete,
        foresee_delete,
        settle=settle_delete,
    )
)


def draw_hold(world: World, chance: Random) -> dict[str, Any] | None:
    return {"branch": chance.choice(sorted(world.past.lines))}


def perform_hold(world: World, g: Graph, record: Record) -> None:
    record.facts["held"] = g.branch(record.args["branch"])


def settle_hold(world: World, record: Record) -> None:
    name = record.args["branch"]
    if record.step.by == "read":
        return
    world.held[name] = HeldBranch(record.facts["held"], world.past.lines[name].incarnation)


operation(
    Operation(
        "hold_branch",
        3,
        ("Graph.branch",),
        draw_hold,
        perform_hold,
        lambda world, step: foresee_place(world, step.args, writing=False),
        settle=settle_hold,
        reads=True,
    )
)


# Tags


def draw_tag(world: World, chance: Random) -> dict[str, Any] | None:
    name = chance.choice(TAGS if chance.random() < 0.9 else BRANCHES)
    if chance.random() < 0.3:
        return draw_place(world, chance) | {"name": name}
    return {"name": name, "from": draw_ref(world, chance)}


def perform_tag(world: World, g: Graph, record: Record) -> None:
    name = record.args["name"]
    if "from" in record.args:
        made = g.tag(name, write_ref(world, record.args["from"]))
    else:
        made = take(world, g, record.args).call("tag", name)
    record.facts["at"] = made.id


def settle_tag(world: World, record: Record) -> None:
    _require_source(world, record)
    world.past.tags[record.args["name"]] = record.facts["at"]


operation(Operation("tag", 4, ("tag",), draw_tag, perform_tag, foresee_create, settle=settle_tag))


def draw_untag(world: World, chance: Random) -> dict[str, Any] | None:
    return {"name": chance.choice(TAGS)} if world.past.tags or chance.random() < 0.1 else None


def foresee_untag(world: World, step: Step) -> None:
    if step.args["name"] not in world.past.tags:
        raise Refused("there is no such tag", "tag_not_found")


def settle_untag(world: World, record: Record) -> None:
    del world.past.tags[record.args["name"]]


operation(
    Operation(
        "delete_tag",
        2,
        ("Graph.delete_tag",),
        draw_untag,
        lambda world, g, record: g.delete_tag(record.args["name"]),
        foresee_untag,
        settle=settle_untag,
    )
)


# Protection


def draw_protect(world: World, chance: Random) -> dict[str, Any] | None:
    args = draw_place(world, chance)
    line = world.past.lines.get(args["branch"])
    # What is protected does not stay so for long: most steps write.
    on = chance.random() < 0.2 if line is not None and line.protected else chance.random() < 0.5
    return args | {"on": on}


def perform_protect(world: World, g: Graph, record: Record) -> None:
    take(world, g, record.args).call("protect" if record.args["on"] else "unprotect")


operation(
    Operation(
        "protect",
        3,
        ("protect", "unprotect"),
        draw_protect,
        perform_protect,
        lambda world, step: foresee_place(world, step.args, writing=False),
    )
)


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
    if merged.shown() == past.state(ours).shown():
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
        # So it is also when all that is new there is that it was brought up to this one.
        if merge_effect_of(world, args, ours, theirs).shown() != past.state(ours).shown():
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
    foresee_place(world, step.args)
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
    if "target" not in record.facts:
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

__all__ = ["model"]
