"""Every public method of the handles, and how each is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from omnigraph import Branch, Graph, Snapshot, Transaction
from omnigraph.model.caller import Caller
from omnigraph.model.catalog import GraphType
from omnigraph.model.permission import Request, TypeResource, Verdict
from omnigraph.model.row_rule import EVERY_ROW, NO_ROW, RowRule

SCHEMA = """
node Person { name: String @key age: I32? note: String? @index photo: Blob? rank: F64? }
node Team { name: String @key }
edge Knows: Person -> Person { since: I32? }
edge In: Person -> Team
"""
QUERY = "match { $p: Person } return { $p.name }"
WRITE = 'insert Person { name: "Zoe" }'
STORED = {"names": QUERY, "zoe": WRITE}
EVE = Caller("eve")


@dataclass
class Switch:
    """An authorizer that allows everything until it is switched, and knows what it was asked."""

    allows: bool = True
    asked: list[str] = field(default_factory=list)

    def decide(self, request: Request) -> Verdict:
        self.asked.append(request.action)
        return Verdict(self.allows)

    def rows(self, caller: Caller, kind: TypeResource, type: GraphType) -> RowRule:
        self.asked.append("see")
        return EVERY_ROW if self.allows else NO_ROW


Call = Callable[[Any], Any]
READS: dict[str, Call] = {
    "query": lambda s: s.query(QUERY).to_pylist(),
    "prepare": lambda s: s.prepare(QUERY)().to_pylist(),
    "explain": lambda s: s.explain(QUERY),
    "queries": lambda s: s.queries(),
    "run_query": lambda s: s.run_query("names").to_pylist(),
    "search": lambda s: s.search("x").to_pylist(),
    "indexes": lambda s: s.indexes(),
    "scan": lambda s: s.scan("Person").read_all(),
    "count": lambda s: s.count("Person"),
    "entity": lambda s: s.entity("Person", "Ada"),
    "blob": lambda s: s.blob("Person", "Ada", "photo"),
    "export": lambda s: s.export(to=_Sink()),
    "algorithm": lambda s: s.algorithm("degrees"),
    "diff": lambda s: s.diff("main").summary(),
    "log": lambda s: list(s.log()),
    "history": lambda s: list(s.history("Person", "Ada")),
    "blame": lambda s: s.blame("Person", "Ada"),
    "describe": lambda s: s.describe(),
    "schema_graph": lambda s: s.schema_graph(),
    "check": lambda s: s.check(QUERY),
    "commit": lambda s: s.commit,
    "schema": lambda s: s.schema,
    "types": lambda s: s.types(),
    "plan_schema": lambda s: s.plan_schema(SCHEMA),
    "manifest": lambda s: s.manifest(),
}
SNAPSHOT: dict[str, Call] = READS | {
    "type": lambda s: s.type("Person"),
    "view": lambda s: s.view(next(iter(s.catalog.nodes))),
}
BRANCH: dict[str, Call] = READS | {
    "snapshot": lambda b: b.snapshot(),
    "changes": lambda b: list(b.changes()),
    "transaction": lambda b: b.transaction(),
    "run": lambda b: b.run(lambda tx: tx.append("Team", {"name": "Run"})),
    "mutate": lambda b: b.mutate(WRITE),
    "store_queries": lambda b: b.store_queries({"more": QUERY}),
    "run_mutation": lambda b: b.run_mutation("zoe"),
    "load": lambda b: b.load([{"name": "Lea"}], type="Person"),
    "embed": lambda b: b.embed(dry_run=True),
    "stream_writer": lambda b: b.stream_writer("Person"),
    "apply_schema": lambda b: b.apply_schema(SCHEMA + "node More { x: String? }"),
    "merge": lambda b: b.merge("other", dry_run=True),
    "restore": lambda b: b.restore("main"),
    "revert": lambda b: b.revert("other"),
    "optimize": lambda b: b.optimize(dry_run=True),
}
GRAPH: dict[str, Call] = BRANCH | {
    "may": lambda g: g.may("mutate") or [],
    "at": lambda g: g.at("main"),
    "branch": lambda g: g.branch("main"),
    "branches": lambda g: g.branches(),
    "create_branch": lambda g: g.create_branch("made"),
    "delete_branch": lambda g: g.delete_branch("doomed"),
    "protected_branches": lambda g: g.protected_branches(),
    "protect": lambda g: g.protect("other"),
    "unprotect": lambda g: g.unprotect("other"),
    "tags": lambda g: g.tags(),
    "create_tag": lambda g: g.create_tag("t2"),
    "delete_tag": lambda g: g.delete_tag("t1"),
    "cleanup": lambda g: g.cleanup(dry_run=True),
    "verify": lambda g: g.verify(),
    "copy": lambda g: g.copy("memory://nowhere"),
    "format": lambda g: g.format(),
    "jobs": lambda g: g.jobs,
    "recovery": lambda g: g.recovery,
    "maintenance": lambda g: g.maintenance,
    "spark": lambda g: g.spark,
}
TRANSACTION: dict[str, Call] = {
    "append": lambda t: t.append("Person", {"name": "New"}),
    "upsert": lambda t: t.upsert("Person", {"name": "New2"}),
    "overwrite": lambda t: t.overwrite("Knows", []),
    "update": lambda t: t.update("Person", set={"age": 1}, where=None),
    "delete": lambda t: t.delete("Person", where=None),
    "query": lambda t: t.query(QUERY).to_pylist(),
    "scan": lambda t: t.scan("Person"),
    "count": lambda t: t.count("Person"),
    "publish": lambda t: (t.append("Team", {"name": "P"}), t.publish()),
}
TABLES: dict[type, dict[str, Call]] = {
    Snapshot: SNAPSHOT,
    Branch: BRANCH,
    Graph: GRAPH,
    Transaction: TRANSACTION,
}
ASKS_NOTHING = {
    "close", "root", "acting", "io", "name", "savepoint", "branch", "version",
    "graph_version", "catalog", "sight", "asked",
}  # fmt: skip
"""What is known without a look at the graph, or is a part of a handle that has asked."""


def public(kind: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")}


class _Sink:
    def write(self, data: bytes) -> int:
        return len(data)

    def flush(self) -> None:
        pass
