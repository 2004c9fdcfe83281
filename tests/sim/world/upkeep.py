"""Owns the operations that keep a graph in shape, and time that passes."""

from __future__ import annotations

import shutil
from random import Random
from typing import TYPE_CHECKING, Any

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.engine.upkeep.optimize import optimize
from omnigraph.plan.optimize import Limits
from tests.sim.world.hands import draw_place, foresee_place, take
from tests.sim.world.past import Kept
from tests.sim.world.place import HOUR, QUICK
from tests.sim.world.reading import read_state
from tests.sim.world.steps import Fault, Operation, Record, Step, operation

if TYPE_CHECKING:
    from tests.sim.world.world import World


def always(world: World, step: Step) -> None:
    """Nothing keeps this from being done."""


def draw_optimize(world: World, chance: Random) -> dict[str, Any] | None:
    return draw_place(world, chance) | {"how": chance.choice(("whole", "small blocks", "dry run"))}


def perform_optimize(world: World, g: Graph, record: Record) -> None:
    hand = take(world, g, record.args)
    if record.args["how"] == "small blocks":
        # So that chains of a few versions are folded into the history as well.
        at = hand.held or g
        at._require_open(writing=True)
        optimize(at._session, hand.branch, None, limits=Limits(versions=3))
        return
    hand.call("optimize", dry_run=record.args["how"] == "dry run")


def foresee_optimize(world: World, step: Step) -> None:
    foresee_place(world, step.args, writing=False)


operation(
    Operation("optimize", 6, ("optimize",), draw_optimize, perform_optimize, foresee_optimize)
)


def draw_embed(world: World, chance: Random) -> dict[str, Any] | None:
    return draw_place(world, chance) | {"dry_run": chance.random() < 0.2}


def perform_embed(world: World, g: Graph, record: Record) -> None:
    """No type of the world has a vector: nothing may come of it. What comes of it where there are
    some is told by `tests/embed`."""
    done = take(world, g, record.args).call("embed", dry_run=record.args["dry_run"])
    if done.texts or done.commits:
        raise Fault(f"embedded {done.texts} texts where there is nothing to embed")


def foresee_embed(world: World, step: Step) -> None:
    foresee_place(world, step.args, writing=not step.args["dry_run"])


operation(Operation("embed", 0.5, ("embed",), draw_embed, perform_embed, foresee_embed))


def draw_cleanup(world: World, chance: Random) -> dict[str, Any] | None:
    return {
        "keep": chance.choice((1, 2, 3, 10)),
        "older_than": chance.choice((0.0, 0.0, HOUR, 7 * 24 * HOUR)),
        "dry_run": chance.random() < 0.1,
    }


def kept_by(world: World, step: Step) -> Kept:
    """What a cleanup now has to leave. A minute less, for clocks that differ."""
    longest = (step.args["older_than"] - 60.0, QUICK.grace - 60.0)
    return world.past.clean(world.place.clock.time, step.args["keep"], *longest)


def perform_cleanup(world: World, g: Graph, record: Record) -> None:
    args = record.args
    if not args["dry_run"]:
        record.facts["kept"] = kept_by(world, record.step)
    g.cleanup(keep=args["keep"], older_than=args["older_than"], dry_run=args["dry_run"])


def settle_cleanup(world: World, record: Record) -> None:
    if "kept" in record.facts:
        world.past.cleaned(record.facts["kept"])


operation(
    Operation(
        "cleanup",
        5,
        ("Graph.cleanup",),
        draw_cleanup,
        perform_cleanup,
        always,
        settle=settle_cleanup,
    )
)


def draw_wait(world: World, chance: Random) -> dict[str, Any] | None:
    return {"seconds": chance.choice((0.5, 60.0, 0.3 * HOUR, 1.1 * HOUR, 3 * HOUR, 30 * HOUR))}


def perform_wait(world: World, g: Graph, record: Record) -> None:
    world.place.clock.pass_on(world.place.directory, record.args["seconds"])


operation(Operation("wait", 6, (), draw_wait, perform_wait, always, reads=True))


def perform_verify(world: World, g: Graph, record: Record) -> None:
    check_sound(g)


def check_sound(g: Graph) -> None:
    report = g.verify(deep=True)
    if not report.ok:
        raise Fault(f"verify finds {[str(one.message) for one in report.errors[:3]]}")


operation(
    Operation("verify", 0.5, ("Graph.verify",), lambda w, c: {}, perform_verify, always, reads=True)
)


def perform_copy(world: World, g: Graph, record: Record) -> None:
    """The copy is the same graph."""
    target = world.place.directory.parent / f"copy-{record.step.label}"
    try:
        omnigraph.copy(world.place.directory, target, settings=QUICK, runtime=world.place.time())
        with omnigraph.open(target, mode="r", settings=QUICK, runtime=world.place.time()) as copied:
            if set(copied.branches()) != world.past.lines.keys():
                raise Fault(f"the copy has the branches {copied.branches()}")
            if {n: c.id for n, c in copied.tags().items()} != world.past.tags:
                raise Fault(f"the copy has the tags {copied.tags()}")
            for name in (*world.past.lines, *world.past.tags):
                seen = read_state(world, copied.at(name))
                commit = world.past.tags.get(name) or world.past.lines[name].head
                if seen.shown != world.past.state(commit).shown():
                    raise Fault(f"the copy of {name} is another")
            check_sound(copied)
        omnigraph.delete(target, settings=QUICK, runtime=world.place.time())
        if target.exists():
            raise Fault(f"the copy is deleted, and {sorted(target.rglob('*'))[:3]} is left")
    finally:
        shutil.rmtree(target, ignore_errors=True)


def perform_copy_beside(world: World, g: Graph, record: Record) -> None:
    """A copy that is made while others write: each branch of it is as some commit left it."""
    target = world.place.directory.parent / f"copy-{record.step.label}"
    time = world.place.time()
    try:
        g.copy(target)
        with omnigraph.open(target, mode="r", settings=QUICK, runtime=time) as copied:
            shown = {}
            for name in copied.branches():
                snapshot = copied.at(name)
                shown[name] = (snapshot.commit.id, read_state(world, snapshot).shown)
            record.facts["copied"] = shown
            check_sound(copied)
    finally:
        shutil.rmtree(target, ignore_errors=True)


operation(
    Operation(
        "copy_beside", 0, ("Graph.copy",), lambda w, c: {}, perform_copy_beside, always, reads=True
    )
)


operation(
    Operation(
        "copy",
        0.7,
        ("omnigraph.copy", "omnigraph.delete"),
        lambda w, c: {},
        perform_copy,
        always,
        reads=True,
    )
)


def perform_look(world: World, g: Graph, record: Record) -> None:
    """What tells of the graph as a whole."""
    report = g.format()
    if world.memory.get("crashed"):
        return
    if g.recovery.list():
        raise Fault(f"something is said to be under way: {g.recovery.list()}")
    if g.maintenance is not None and g.maintenance.failed is not None:
        raise Fault(f"maintenance failed: {g.maintenance.failed}")
    if not g.root.endswith(world.place.directory.name) or report is None:
        raise Fault(f"the root is {g.root}")


operation(
    Operation(
        "look",
        1,
        ("Graph.format", "Graph.recovery", "Graph.maintenance", "Graph.root"),
        lambda w, c: {},
        perform_look,
        always,
        reads=True,
    )
)
