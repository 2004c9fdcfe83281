"""Whoever does not see some rows gets the answers of a graph that never had them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

import pytest

from omnigraph.model.caller import Caller
from omnigraph.model.catalog import EdgeType, GraphType
from omnigraph.model.permission import Request, TypeResource, Verdict
from omnigraph.model.row_rule import EVERY_ROW, ColumnOf, IsOneOf, Negated, RowRule, columns_of
from tests.model.query_data import Dataset, Row
from tests.model.query_engine import KERNELS, EngineExecutor, mismatch
from tests.model.query_texts import draw_query
from tests.model.query_worlds import draw_dataset
from tests.model.test_query_model import SMALL

EVE = Caller("eve")


@dataclass
class Rules:
    """An authorizer that allows everything, but for rows."""

    rules: dict[str, RowRule]

    def decide(self, request: Request) -> Verdict:
        return Verdict(True)

    def rows(self, caller: Caller, kind: TypeResource, type: GraphType) -> RowRule:
        return self.rules[type.table_key]


def draw_rule(chance: Random, rows: list[Row]) -> RowRule:
    if not rows or chance.random() < 0.3:
        return EVERY_ROW
    some = chance.sample(rows, chance.randint(0, len(rows)))
    named = IsOneOf(ColumnOf("id"), tuple(row["id"] for row in some))
    return named if chance.random() < 0.5 else Negated(named)


def shows(rule: RowRule, row: Row) -> bool:
    match rule:
        case IsOneOf(values=values):
            return row["id"] in values
        case Negated(part=part):
            return not shows(part, row)
    return True


def seen(data: Dataset, rules: dict[str, RowRule]) -> Dataset:
    """What is left for whom these rules hold: an edge needs both of its ends."""
    nodes = {
        name: [row for row in rows if shows(rules[f"node:{name}"], row)]
        for name, rows in data.nodes.items()
    }
    ids = {name: {row["id"] for row in rows} for name, rows in nodes.items()}
    edges = {}
    for kind in data.catalog.edges:
        edges[kind.name] = [
            row
            for row in data.edges.get(kind.name, [])
            if shows(rules[f"edge:{kind.name}"], row)
            and row["src"] in ids.get(kind.source, ())
            and row["dst"] in ids.get(kind.target, ())
        ]
    return replace(data, nodes=nodes, edges=edges)


def check(seed: int, queries: int) -> int:
    """How many queries had another answer for who sees everything: those prove something."""
    chance = Random(seed)
    data = draw_dataset(chance)
    rules = {
        kind.table_key: draw_rule(
            chance,
            (data.edges if isinstance(kind, EdgeType) else data.nodes).get(kind.name, []),
        )
        for kind in data.catalog.types
    }
    left = seen(data, rules)
    executor = EngineExecutor(data, commits=2)
    whole = executor.graph
    executor.graph = whole.acting(EVE, Rules(rules))
    telling = 0
    try:
        for kind in data.catalog.types:
            held = left.edges if isinstance(kind, EdgeType) else left.nodes
            ids = {row["id"] for row in held.get(kind.name, [])}
            assert executor.graph.count(kind.table_key) == len(ids)
            rows = executor.graph.scan(kind.table_key, columns=["id"]).read_all()
            assert set(rows["id"].to_pylist()) == ids
        for _ in range(queries):
            query = draw_query(chance, data)
            for kernel in KERNELS:
                wrong = mismatch(executor, left, query, kernel=kernel)
                assert wrong is None, f"{data.schema}\n{rules}\n{query}\n{kernel}\n{wrong}"
            executor.graph, mine = whole, executor.graph
            wrong = mismatch(executor, data, query)
            assert wrong is None, f"what another does not see is missing\n{query}\n{wrong}"
            telling += mismatch(executor, left, query) is not None
            executor.graph = mine
    finally:
        executor.graph = whole
        executor.close()
    return telling


@pytest.mark.parametrize("seeds", [range(6), range(6, 12)], ids=str)
def test_queries_answer_as_if_hidden_rows_were_not_there(seeds: range) -> None:
    assert sum(check(seed, 6) for seed in seeds) >= 5


def test_so_they_do_as_if_rows_were_many(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, constants in SMALL.items():
        for name, value in constants.items():
            monkeypatch.setattr(f"omnigraph.{module}.{name}", value)
    assert sum(check(seed, 6) for seed in range(20, 26)) >= 5


@pytest.mark.slow
def test_a_thousand_worlds_answer_so() -> None:
    assert sum(check(seed, 6) for seed in range(1000, 2000)) >= 1000


def test_a_rule_names_its_columns() -> None:
    assert columns_of(Negated(IsOneOf(ColumnOf("id"), ("a",)))) == {"id"}
