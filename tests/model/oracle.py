"""A naive graph in memory: every rule in the plainest words, as slow as it likes."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

Row = dict[str, Any]
Table = dict[str, Row]


class Refused(Exception):
    """The rules forbid it; the word says which rule."""


@dataclass(frozen=True)
class NodeRules:
    name: str
    properties: tuple[str, ...]
    key: str | None = None
    unique: str | None = None


@dataclass(frozen=True)
class EdgeRules:
    name: str
    source: str
    target: str
    low: int = 0
    high: int | None = None
    key: tuple[str, ...] = ()


Rules = NodeRules | EdgeRules


@dataclass
class Graph:
    """The state of one version."""

    rules: dict[str, Rules]
    tables: dict[str, Table] = field(default_factory=dict)

    def copy(self) -> Graph:
        return Graph(dict(self.rules), copy.deepcopy(self.tables))

    def seen(self) -> dict[str, list[tuple[Any, ...]]]:
        """What a reader can see, in an order that can be compared."""
        shown = {}
        for name in self.rules:
            columns = self.columns(name)
            found = [tuple(row.get(c) for c in columns) for row in self.tables[name].values()]
            shown[name] = sorted(found, key=repr)
        return shown

    def columns(self, name: str) -> list[str]:
        rules = self.rules[name]
        if isinstance(rules, EdgeRules):
            return ["id", "src", "dst"]
        return ["id", *rules.properties]


@dataclass
class Block:
    """A transaction on a copy of one version; `check` is called when it ends."""

    graph: Graph

    def __post_init__(self) -> None:
        self.before = self.graph.copy()

    def insert(self, name: str, rows: list[Row], how: Literal["append", "upsert"]) -> None:
        rules, table = self.graph.rules[name], self.graph.tables[name]
        ids = [identity(rules, row) for row in rows]
        if len(set(ids)) < len(ids):
            raise Refused("twice in one call")
        if how == "append" and any(i in table for i in ids):
            raise Refused("exists")
        for entity, row in zip(ids, rows, strict=True):
            table[entity] = {**table.get(entity, {}), **row, "id": entity}

    def overwrite(self, name: str, rows: list[Row]) -> None:
        rules = self.graph.rules[name]
        ids = [identity(rules, row) for row in rows]
        if len(set(ids)) < len(ids):
            raise Refused("twice in one call")
        self.graph.tables[name] = {i: {**row, "id": i} for i, row in zip(ids, rows, strict=True)}

    def update(self, name: str, values: Row, where: Row | None) -> None:
        for row in self._matching(name, where):
            row.update(values)

    def delete(self, name: str, where: Row | None) -> None:
        gone = [row["id"] for row in self._matching(name, where)]
        rules, table = self.graph.rules[name], self.graph.tables[name]
        for entity in gone:
            del table[entity]
        if isinstance(rules, NodeRules):
            self._cascade(name, set(gone))

    def _cascade(self, name: str, gone: set[str]) -> None:
        for edge, rules in self.graph.rules.items():
            if not isinstance(rules, EdgeRules):
                continue
            table = self.graph.tables[edge]
            for entity, row in list(table.items()):
                if (rules.source == name and row["src"] in gone) or (
                    rules.target == name and row["dst"] in gone
                ):
                    del table[entity]

    def check(self) -> None:
        for name, rules in self.graph.rules.items():
            match rules:
                case NodeRules(unique=str(column)):
                    held = [r.get(column) for r in self.graph.tables[name].values()]
                    counted = Counter(value for value in held if value is not None)
                    if any(count > 1 for count in counted.values()):
                        raise Refused("unique")
                case EdgeRules():
                    self._check_edges(name, rules)

    def _check_edges(self, name: str, rules: EdgeRules) -> None:
        sources, targets = self.graph.tables[rules.source], self.graph.tables[rules.target]
        table = self.graph.tables[name]
        for row in table.values():
            if row["src"] not in sources or row["dst"] not in targets:
                raise Refused("endpoint or orphan")
        counted = Counter(row["src"] for row in table.values())
        before = _by_source(self.before.tables[name])
        after = _by_source(table)
        for source in before.keys() | after.keys():
            if before.get(source) == after.get(source):
                continue  # only what a write has changed is counted
            if rules.high is not None and counted[source] > rules.high:
                raise Refused("card")
            if counted[source] < rules.low and source in sources:
                raise Refused("card")

    def _matching(self, name: str, where: Row | None) -> list[Row]:
        rows = list(self.graph.tables[name].values())
        if where is None:
            return rows
        return [r for r in rows if all(r.get(k) == v and v is not None for k, v in where.items())]


def _by_source(table: Table) -> dict[str, set[str]]:
    edges: dict[str, set[str]] = {}
    for entity, row in table.items():
        edges.setdefault(row["src"], set()).add(entity)
    return edges


def identity(rules: Rules, row: Row) -> str:
    match rules:
        case NodeRules(key=str(key)):
            return str(row[key])
        case EdgeRules(key=(end,)):
            return str(row[end])
        case EdgeRules(key=(_, _)):
            return f'["{row["src"]}","{row["dst"]}"]'
        case _:
            return str(row["id"])
