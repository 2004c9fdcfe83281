"""Owns what is looked at after steps: every handle answers as the model, every ref stays."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from omnigraph.engine.graph import Graph
from omnigraph.errors import OmnigraphError, Reclaimed, RefNotFound
from tests.sim.world.model import Refused, Unsure
from tests.sim.world.queries import check_query
from tests.sim.world.reading import key_rows, normal_ids, read_state
from tests.sim.world.refs import PerhapsGone, draw_ref, resolve, write_ref
from tests.sim.world.steps import Fault, compare
from tests.sim.world.upkeep import check_sound

if TYPE_CHECKING:
    from tests.sim.world.world import World


def check_branch(world: World, g: Graph, who: str, branch: str, how: str) -> None:
    """One handle's view of a branch: by scans, by queries, by keys."""
    expected = world.past.head(branch).state
    what = f"{branch} through {who} by {how}"
    if how == "scan":
        compare(what, expected.shown(), read_state(world, g.at(branch)).shown)
    elif how == "query":
        for kind in expected.types:
            check_query(
                lambda text: [dict(row) for row in g.at(branch).query(text)], expected, kind
            )
    else:
        for kind in expected.types:
            rows = expected.rows[kind.uid]
            for key in {*list(rows)[:8], *("af" if kind.identity == "key" else "")}:
                found = g.at(branch).entity(kind.name, normal_ids(world, kind, key))
                known = key_rows(world, kind.name, [found]).get(key) if found else None
                if known != (kind.named(rows[key]) if key in rows else None):
                    raise Fault(
                        f"{what}: {kind.name} {key} is {known}, and must be {rows.get(key)}"
                    )


def check_some(world: World, chance: Random) -> None:
    """A few of all checks, by chance."""
    who = chance.choice(sorted([*world.handles, "new"]))
    g = world.handles.get(who) or world.place.open(mode="r")
    branch = chance.choice(sorted(world.past.lines))
    check_branch(world, g, who, branch, chance.choice(("scan", "query", "keys")))
    check_refs(world, chance, 1)
    if chance.random() < 0.1:
        check_sound(g)


def check_all(world: World) -> None:
    for who, g in {**world.handles, "new": world.place.open(mode="r")}.items():
        for branch in sorted(world.past.lines):
            for how in ("scan", "query", "keys"):
                check_branch(world, g, who, branch, how)
    check_refs(world, Random(world.seed), 12)


def check_refs(world: World, chance: Random, count: int) -> None:
    for _ in range(count):
        ref = draw_ref(world, chance)
        who = chance.choice(sorted({**world.handles, "new": None}))
        g = world.handles.get(who) or world.place.open(mode="r")
        gone = False
        try:
            commit = resolve(world, ref)
        except PerhapsGone as why:
            commit, gone = why.commit, True
        except (Refused, Unsure):
            continue
        try:
            seen = read_state(world, g.at(write_ref(world, ref)))
        except Reclaimed:
            if not gone:
                raise Fault(
                    f"{ref} ({commit}) through {who} was reclaimed, and must be kept"
                ) from None
            continue
        except RefNotFound as error:
            raise Fault(f"{ref} ({commit}) through {who} is not found: {error}") from None
        except OmnigraphError as error:
            raise Fault(f"{ref} ({commit}) through {who}: {error.code}: {error}") from None
        compare(f"{ref} through {who}", world.past.state(commit).shown(), seen.shown)
