"""Owns reading a graph into what the model can compare with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from omnigraph.engine.snapshot import Snapshot
from omnigraph.model.types import type_text
from tests.sim.world.model import State, Type, shown_queries
from tests.sim.world.named import QUERY
from tests.sim.world.steps import Fault, Shown

if TYPE_CHECKING:
    from tests.sim.world.world import World


@dataclass
class Seen:
    """What a snapshot shows: rows by type and identity, and the schema."""

    shown: Shown
    snapshot: Snapshot

    def adopt(self, sides: list[State], others: list[State]) -> tuple[State, list[tuple[int, int]]]:
        """A state of what is seen, where the model could not foretell it, and which numbers turned
        out to mean one thing: types and properties are those of the states that it came from, by
        name, or of any other."""
        types, rows, twins = [], {}, []
        for kind in (*self.snapshot.catalog.nodes, *self.snapshot.catalog.edges):
            known = [state.type(kind.name) for state in sides if state.has(kind.name)]
            every = [state.type(kind.name) for state in others if state.has(kind.name)]
            known = known or every[:1]
            if not known:
                raise Fault(f"the type {kind.name} comes from nowhere")
            properties = []
            for one in kind.properties:
                kinds = {p.uid: p for k in (*known, *every) for p in k.properties}
                mine = {p.uid for k in known for p in k.properties}
                named = [
                    p
                    for p in kinds.values()
                    if (p.name, p.declared.kind) == (one.name, type_text(one.type))
                ]
                held = [p for p in named if p.uid in mine] or named[:1]
                if not held:
                    raise Fault(f"{kind.name}.{one.name} comes from nowhere")
                properties.append(held[0])
                twins += [(p.uid, held[0].uid) for p in held if p.uid != held[0].uid]
            twins += [(one.uid, known[0].uid) for one in known if one.uid != known[0].uid]
            made = replace(known[0], properties=tuple(properties))
            types.append(made)
            names = {p.name: p.uid for p in properties}
            rows[made.uid] = {
                key: {names.get(name, name): value for name, value in row.items()}
                for key, row in self.shown[kind.name].items()
            }
        queries = {name: one["text"] for name, one in self.shown[QUERY].items()}
        return State(tuple(types), rows, queries), twins


def read_state(world: World, snapshot: Snapshot) -> Seen:
    shown: Shown = {}
    for name in snapshot.types():
        rows = snapshot.scan(name).read_all().to_pylist()
        shown[name] = key_rows(world, name, rows)
        if snapshot.count(name) != len(rows):
            raise Fault(f"{name} counts {snapshot.count(name)} and has {len(rows)} rows")
    texts = {name: one.text for name, one in snapshot.queries().items()}
    return Seen(shown | shown_queries(texts), snapshot)


def key_rows(world: World, name: str, rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """By identity; an entity without a key keeps the id that it was given."""
    keyed: dict[str, dict[str, Any]] = {}
    for row in rows:
        row = dict(row)
        given = row.pop("id")
        key = row.get("mark", given)
        if world.ids.setdefault(key, given) != given:
            raise Fault(f"{name} {key} has the id {given} and had {world.ids[key]}")
        if key in keyed:
            raise Fault(f"{name} {key} is there twice")
        keyed[key] = row
    return dict(sorted(keyed.items()))


def normal_ids(world: World, kind: Type, key: str) -> str:
    """The id by which the graph knows an entity."""
    return world.ids.get(key, key) if kind.identity == "mark" else key
