"""Owns the operations on branches and tags: made, deleted, held, protected."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from omnigraph.engine.graph import Graph
from omnigraph.model.options import CommitWords
from tests.sim.world.hands import (
    BRANCHES,
    TAGS,
    HeldBranch,
    draw_place,
    foresee_place,
    take,
)
from tests.sim.world.model import Refused, Unsure
from tests.sim.world.refs import PerhapsGone, draw_ref, resolve, write_ref
from tests.sim.world.steps import Fault, Operation, Record, Step, operation

if TYPE_CHECKING:
    from tests.sim.world.world import World


# Branches


def draw_create(world: World, chance: Random) -> dict[str, Any] | None:
    free = [one for one in BRANCHES[1:] if one not in world.past.lines]
    free = [one for one in free if one in world.held] or free
    name = chance.choice(free) if free and chance.random() < 0.9 else chance.choice(BRANCHES + TAGS)
    if chance.random() < 0.3:
        return draw_place(world, chance) | {"name": name}
    return {"name": name, "from": draw_ref(world, chance)}


def _source(world: World, step: Step) -> str:
    if "from" in step.args:
        return resolve(world, step.args["from"])
    foresee_place(world, {"branch": step.args["branch"]}, writing=False)
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


def _said(record: Record) -> CommitWords:
    """What every commit says of itself."""
    return {"actor": record.step.by, "message": record.step.label}


def perform_create(world: World, g: Graph, record: Record) -> None:
    name = record.args["name"]
    if "from" in record.args:
        made = g.create_branch(name, write_ref(world, record.args["from"]), **_said(record))
    else:
        made = g.create_branch(name, record.args["branch"], **_said(record))
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
        ("Graph.create_branch",),
        draw_create,
        perform_create,
        foresee_create,
        settle=settle_create,
    )
)


def draw_delete(world: World, chance: Random) -> dict[str, Any] | None:
    args = draw_place(world, chance)
    others = [one for one in sorted(world.held) if one in world.past.lines and one != "main"]
    if others and chance.random() < 0.5:  # so that somebody holds what is made again
        return {"branch": chance.choice(others), "via": "graph"}
    return args if args["branch"] != "main" or chance.random() < 0.1 else None


def foresee_delete(world: World, step: Step) -> None:
    if step.args["branch"] == "main":
        raise Refused("main stays")
    foresee_place(world, step.args)


def perform_delete(world: World, g: Graph, record: Record) -> None:
    take(world, g, record.args).call("delete", **_said(record))


def settle_delete(world: World, record: Record) -> None:
    del world.past.lines[record.args["branch"]]


operation(
    Operation(
        "delete_branch",
        4,
        ("Graph.delete_branch",),
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
        made = g.create_tag(name, write_ref(world, record.args["from"]), **_said(record))
    else:
        made = g.create_tag(name, record.args["branch"], **_said(record))
    record.facts["at"] = made.id


def settle_tag(world: World, record: Record) -> None:
    _require_source(world, record)
    world.past.tags[record.args["name"]] = record.facts["at"]


operation(
    Operation(
        "tag", 4, ("Graph.create_tag",), draw_tag, perform_tag, foresee_create, settle=settle_tag
    )
)


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
        lambda world, g, record: g.delete_tag(record.args["name"], **_said(record)),
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
    method = "protect" if record.args["on"] else "unprotect"
    take(world, g, record.args).call(method, **_said(record))


operation(
    Operation(
        "protect",
        3,
        ("Graph.protect", "Graph.unprotect"),
        draw_protect,
        perform_protect,
        lambda world, step: foresee_place(world, step.args, writing=False),
    )
)
