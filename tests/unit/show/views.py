"""A graph in which texts try everything, and every view that a notebook shows of it."""

from __future__ import annotations

from typing import Any

import omnigraph
from omnigraph import Graph
from omnigraph.engine.protocols import GraphLike

EVIL = '</script><script>parent.hit=1</script><img src=x onerror="parent.hit=2">\'&]]>'
SCHEMA = """interface Named { name: String }
node Person @description("Somebody <b>we</b> know") implements Named {
    key: String @key
    age: I32?
    happy: Bool?
    meaning: Vector(2)?
}
node Place implements Named { key: String @key }
edge Knows: Person -> Person { since: I32?  note: String? }
edge LivesIn: Person -> Place
"""
NETWORK = "match { $p: Person $p $k:knows $q $q $l:livesIn $c } return { $p, $k, $q, $c }"
PEOPLE = 8


def make_people(root: str) -> Graph:
    g = omnigraph.init(root, schema=SCHEMA)
    with g.transaction(actor="ada", message="first <i>people</i>") as tx:
        people = [
            {"key": f"p{n}", "name": f"Person {n}", "age": None if n == 3 else 20 + n,
             "happy": n % 2 == 0, "meaning": [float(n), 0.5]}
            for n in range(PEOPLE)
        ]  # fmt: skip
        people[1]["name"] = EVIL
        tx.append("Person", people)
        tx.append("Place", [{"key": EVIL, "name": "Nowhere"}, {"key": "rome", "name": "Rome"}])
        tx.append("Knows", [
            {"from": f"p{n}", "to": f"p{(n + step) % PEOPLE}", "since": 2000 + n, "note": EVIL}
            for n in range(PEOPLE) for step in (1, 3)
        ])  # fmt: skip
        tx.append("LivesIn", [
            {"from": f"p{n}", "to": EVIL if n % 2 else "rome"} for n in range(PEOPLE)
        ])  # fmt: skip
    g.create_branch("side", "main")
    with g.branch("side").transaction(actor=EVIL, message=EVIL) as tx:
        tx.upsert("Person", {"key": "p1", "name": "Eve", "age": 99})
        tx.append("Person", {"key": "new", "name": EVIL})
        tx.delete("Knows", where="since = 2004")
    with g.transaction(actor="ada", message="I know better") as tx:
        tx.upsert("Person", {"key": "p1", "name": EVIL, "age": 50})
    return g


def views(g: GraphLike) -> dict[str, str]:
    """Each view by its name, as a notebook gets it."""
    found: dict[str, Any] = {
        "table": g.query("match { $p: Person } return { $p.name, $p.age, $p.happy }"),
        "network": g.query(NETWORK),
        "graph": g.query("match { $p: Person $p $k:knows $q } return { $p.name }").graph(),
        "without-edges": g.query("match { $p: Person $p knows $q } return { $p.name }").graph(),
        "schema": g.schema_graph(),
        "log": g.log(all=True).lanes(),
        "diff": g.at("side").diff("main"),
        "conflicts": g.merge("side", dry_run=True),
        "algorithm": g.algorithm("degrees", edges="Knows"),
    }
    return {name: one._repr_html_() for name, one in found.items()}
