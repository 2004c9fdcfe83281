"""What queries cost: a warm one only looks whether the head has moved, a cold one the same at any
depth of history, and one after a commit only what that commit brought."""

from __future__ import annotations

from typing import Any

from omnigraph.engine.graph import Graph
from omnigraph.telemetry import Ledger
from tests.cost.conftest import MakeWorld
from tests.cost.meter import Cost
from tests.cost.world import CORE, Measured, World, fillers

DEPTHS = (20, 200)

POINT = 'match { $p: Place {name: "solo1"} } return { $p.name, $p.seen }'
PREPARED = "query q($n: String) { match { $p: Person {name: $n} } return { $p.name, $p.age } }"
TWO_HOPS = """
match { $p: Person {name: "solo0"}  $p knows $q  optional { $q knows $r } }
return { count($q) as n, avg($r.age) as a }
"""
GROUPS = "match { $p: Person  $p $k:knows $q } return { $q.age, count($k) as n } order { n desc }"


def asked(graph: Graph, text: str, **params: Any) -> Ledger:
    result = graph.query(text, params=params or None)
    assert len(result) > 0
    return result.io


def asking(text: str, **params: Any) -> Any:
    def prepare(world: World) -> Measured:
        return lambda: asked(world.graph, text, **params)

    return prepare


def warm(world: World, text: str, **params: Any) -> Cost:
    asked(world.graph, text, **params)
    return world.measure(asking(text, **params))


def cold(world: World) -> Cost:
    """Nothing is known: the stamp, the head, the catalog, the table, its rows."""

    def prepare(world: World) -> Measured:
        def run() -> Ledger:
            graph = world.open()
            total = Ledger()
            for part in (graph.io, asked(graph, POINT)):  # one after the other: hops add up
                total.join([part])
            return total

        return run

    return world.measure(prepare)


LOOK = 1
"""Whether there is a newer version."""


def test_a_warm_query_is_a_look_at_the_head_and_a_cold_one_the_same_at_any_depth_and_width(
    make_world: MakeWorld,
) -> None:
    few, fifty = make_world(), make_world((*CORE, *fillers(45)))
    cold_costs = []
    for world, depth in ((few, DEPTHS[0]), (few, DEPTHS[1]), (fifty, DEPTHS[0])):
        world.grow(depth)
        costs = {
            "point": warm(world, POINT),
            "prepared": warm(world, PREPARED, n="bulk7"),
            "two hops": warm(world, TWO_HOPS),
            "groups": warm(world, GROUPS),
        }
        found = {name: (cost.reads, cost.writes, cost.hops) for name, cost in costs.items()}
        assert found == dict.fromkeys(costs, (LOOK, 0, LOOK))
        cold_costs.append(cold(world))
    assert all(cost == cold_costs[0] for cost in cold_costs), cold_costs
    assert cold_costs[0].writes == 0
    assert cold_costs[0].reads <= 10


def test_a_query_after_a_commit_reads_what_the_commit_brought(make_world: MakeWorld) -> None:
    """Not the history before it: the new version, the table of the version, its one new file."""
    world = make_world()
    found = []
    for depth in (20, 40):
        world.grow(depth)
        asked(world.graph, TWO_HOPS)
        cost = world.measure(asking(TWO_HOPS))
        for _ in range(2):
            with world.builder.transaction() as tx:
                tx.append("Knows", {"from": "solo0", "to": "bulk1", "since": world.number()})
            cost = world.measure(asking(TWO_HOPS))
        found.append(cost)
        assert warm(world, TWO_HOPS).reads == LOOK
    assert found[0] == found[1]
    assert found[0].reads <= 5, found


def test_a_query_of_the_past_only_finds_its_version(make_world: MakeWorld) -> None:
    """Its rows are in files that are known."""
    world = make_world()
    world.grow(20)
    asked(world.graph, TWO_HOPS)
    commit = world.graph.snapshot().commit.id
    world.grow(24)
    asked(world.graph, TWO_HOPS)

    def prepare(world: World) -> Measured:
        def run() -> Ledger:
            result = world.graph.at(f"main@{commit}").query(TWO_HOPS)
            assert len(result) == 1
            return result.io

        return run

    assert set(world.measure(prepare).requests) == {"get version"}
