"""Owns the algorithms in a world, read and written, against networkx."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import networkx as nx

from omnigraph.engine.graph import Graph
from tests.sim.world.hands import draw_place, foresee_place, state_of, take
from tests.sim.world.model import State, Unsure
from tests.sim.world.steps import Fault, Operation, Record, Step, operation

if TYPE_CHECKING:
    from tests.sim.world.world import World


# Algorithms


def draw_algorithm(world: World, chance: Random) -> dict[str, Any] | None:
    args = draw_place(world, chance)
    args["name"] = chance.choice(("degrees", "connected_components", "triangle_count"))
    args["write"] = chance.random() < 0.3
    return args


def perform_algorithm(world: World, g: Graph, record: Record) -> None:
    args = record.args
    hand = take(world, g, args)
    options: dict[str, Any] = {"edges": ["Knows"], "engine": "local"}
    if args["write"]:
        options |= {"write_to": "age", "message": record.step.label, "actor": record.step.by}
        done = hand.call("algorithm", "degrees", **options)
        record.commit = None if done.commit is None else done.commit.id
        return
    rows = hand.call("algorithm", args["name"], **options).to_pylist()
    same_values(args["name"], rows, state_of(world, args["branch"]))


def same_values(name: str, rows: list[dict[str, Any]], state: State) -> None:
    found = {row["id"]: row["value"] for row in rows if row["type"] == "Person"}
    if any(row["src"] == row["dst"] for row in state.of("Knows").values()):
        return  # whether a loop counts once or twice is not said
    wanted = values_of(name, state)
    if name == "connected_components":
        found, wanted = _groups(found), _groups(wanted)
    if found != wanted:
        raise Fault(f"{name} gave {found}, and must give {wanted}")


def _groups(values: dict[str, Any]) -> Any:
    groups: dict[Any, set[str]] = {}
    for key, value in values.items():
        groups.setdefault(value, set()).add(key)
    return sorted(sorted(one) for one in groups.values())


def values_of(name: str, state: State) -> dict[str, Any]:
    edges = [(row["src"], row["dst"]) for row in state.of("Knows").values()]
    people = sorted(state.of("Person"))
    graph = nx.Graph(edges)
    graph.add_nodes_from(people)
    match name:
        case "degrees":
            return {one: sum((one == a) + (one == b) for a, b in edges) for one in people}
        case "triangle_count":
            graph.remove_edges_from(list(nx.selfloop_edges(graph)))
            return dict(nx.triangles(graph))
    found: dict[str, Any] = {}
    for part in nx.connected_components(graph):
        found |= dict.fromkeys(part, min(part))
    return found


def foresee_algorithm(world: World, step: Step) -> None:
    foresee_place(world, step.args, writing=step.args["write"])


def algorithm_effect(
    world: World, record: Record, before: State, parents: tuple[str, ...]
) -> State:
    state = before.copy()
    kind = state.type("Person")
    if any(row["src"] == row["dst"] for row in state.of("Knows").values()):
        raise Unsure("whether a loop counts once or twice is not said")
    for key, value in values_of("degrees", state).items():
        state.rows[kind.uid][key][kind.find("age").uid] = value
    return state


operation(
    Operation(
        "algorithm",
        2,
        ("algorithm",),
        draw_algorithm,
        perform_algorithm,
        foresee_algorithm,
        algorithm_effect,
    )
)
