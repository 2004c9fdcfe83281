"""Owns the engine as an executor of tests: a dataset in a graph, and steps that change both."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

import pyarrow.compute as pc

import omnigraph
from omnigraph import Transaction
from omnigraph.errors import InvalidQuery, ValueOutOfRange
from omnigraph.lang.gq import bind_parameters
from omnigraph.lang.gq.checked import Read
from tests.model.query_data import Dataset, Row
from tests.model.query_executors import Parameters, Refused, compiled, expected_answer
from tests.model.query_failures import may_fail
from tests.model.query_results import difference
from tests.model.query_texts import DrawnQuery
from tests.model.query_values import EvaluationError
from tests.model.query_worlds import IDS, draw_edge, draw_row

SETTINGS: Final = omnigraph.Settings(durability="relaxed")
KERNELS: Final = ("auto", "indexed", "adjacency")


def given(row: Mapping[str, Any]) -> Row:
    return {name: list(x) if isinstance(x, tuple) else x for name, x in row.items()}


class EngineExecutor:
    """`options` go to every query: `kernel="indexed"`, `ref="main~2"`. The data is written in as
    many `commits`, nodes before edges."""

    def __init__(self, data: Dataset, *, commits: int = 1, **options: Any) -> None:
        self.data = data
        self.options = options
        root = f"memory://{uuid.uuid4().hex}"
        self.graph = omnigraph.init(root, schema=data.schema, settings=SETTINGS)
        for turn in range(commits):
            with self.graph.transaction() as tx:
                for kind, rows in data.nodes.items():
                    tx.append(f"node:{kind}", [given(row) for row in rows[turn::commits]])
                for kind, rows in data.edges.items():
                    if turn == commits - 1:
                        tx.append(f"edge:{kind}", [given(row) for row in rows])
        self.head = self.graph.snapshot().commit.id
        """Of the data as it was given; an empty dataset makes no commit of its own."""

    def run(self, text: str, parameters: Parameters, **options: Any) -> list[dict[str, Any]]:
        try:
            given = self.options | options
            snapshot = self.graph.at(given.pop("ref", "main"))
            result = snapshot.query(text, params=dict(parameters), **given)
            rows: list[dict[str, Any]] = result.to_pylist()
        except InvalidQuery as error:
            codes = tuple(d.code for d in error.diagnostics)
            raise Refused(codes, str(error)) from error
        return rows

    def close(self) -> None:
        self.graph.close()
        shutil.rmtree(self.graph.root, ignore_errors=True)


def mismatch(
    executor: EngineExecutor, data: Dataset, query: DrawnQuery, **options: Any
) -> str | None:
    """Where the engine and the oracle part; None if they agree, or if the text does not check."""
    try:
        checked = compiled(data, query.text)
    except Refused:
        return None
    assert isinstance(checked.body, Read)
    try:
        answer = expected_answer(data, checked, query.parameters)
    except EvaluationError as error:
        if checked.body.limit is not None:
            return None  # rows that nobody sees need no values
        try:
            rows = executor.run(query.text, query.parameters, **options)
        except ValueOutOfRange:
            return None
        return f"expected an error, {error}\ngot: {rows}"
    try:
        rows = executor.run(query.text, query.parameters, **options)
    except ValueOutOfRange as error:
        bound = bind_parameters(checked, query.parameters)
        return None if may_fail(checked, data.world(), bound) else f"expected no error\n{error}"
    return difference(checked, answer, rows)


# A history: each step changes the graph by one commit and gives the data as it is then.


class History:
    def __init__(self, chance: Random, data: Dataset) -> None:
        self.chance = chance
        self.executor = EngineExecutor(data)
        self.versions = [(self.executor.head, data)]
        self.number = 100

    def go(self, steps: int) -> None:
        kinds: list[Callable[[Transaction, Dataset], None]] = [
            self._append, self._update, self._update, self._delete_node, self._delete_edge,
            self._overwrite,
        ]  # fmt: skip
        for _ in range(steps):
            data = copied(self.versions[-1][1])
            if self.chance.random() < 0.2:
                self.executor.graph.optimize()
                continue
            with self.executor.graph.transaction() as tx:
                for change in self.chance.sample(kinds, self.chance.randint(1, 2)):
                    change(tx, data)
            if tx.commit_id is not None:
                self.versions.append((tx.commit_id, data))

    def _append(self, tx: Transaction, data: Dataset) -> None:
        """Nodes where an id is free, then edges, also to the new ones."""
        for kind in data.catalog.nodes:
            taken = {row["id"] for row in data.nodes[kind.name]}
            free = [id_ for id_ in IDS if id_ not in taken]
            if kind.key or not free:
                continue
            row = {"id": self.chance.choice(free), **draw_row(self.chance, kind)}
            data.nodes[kind.name].append(row)
            tx.append(kind.table_key, given(row))
        for edge in data.catalog.edges:
            self.number += 1
            drawn = draw_edge(self.chance, data, edge, self.number)
            if drawn is not None:
                data.edges[edge.name].append(drawn)
                tx.append(edge.table_key, given(drawn))

    def _update(self, tx: Transaction, data: Dataset) -> None:
        kind = self.chance.choice(data.catalog.types)
        rows = (data.edges if kind in data.catalog.edges else data.nodes)[kind.name]
        if not rows:
            return
        for place in {self.chance.randrange(len(rows)) for _ in range(2)}:
            old = rows[place]
            fixed = {n: x for n, x in old.items() if n in ("id", "src", "dst", *kind.key)}
            rows[place] = old | draw_row(self.chance, kind) | fixed
            tx.upsert(kind.table_key, given(rows[place]))

    def _delete_node(self, tx: Transaction, data: Dataset) -> None:
        """Its edges go with it."""
        kind = self.chance.choice(data.catalog.nodes)
        rows = data.nodes[kind.name]
        if not rows:
            return
        gone = rows.pop(self.chance.randrange(len(rows)))["id"]
        for edge in data.catalog.edges:
            ends = [end for end, name in (("src", edge.source), ("dst", edge.target))
                    if name == kind.name]  # fmt: skip
            data.edges[edge.name][:] = [
                e for e in data.edges[edge.name] if all(e[end] != gone for end in ends)
            ]
        tx.delete(kind.table_key, where=pc.field("id") == gone)

    def _delete_edge(self, tx: Transaction, data: Dataset) -> None:
        kind = self.chance.choice(data.catalog.edges)
        rows = data.edges[kind.name]
        if rows:
            gone = rows.pop(self.chance.randrange(len(rows)))["id"]
            tx.delete(kind.table_key, where=pc.field("id") == gone)

    def _overwrite(self, tx: Transaction, data: Dataset) -> None:
        kind = self.chance.choice(data.catalog.edges)
        rows = data.edges[kind.name]
        rows[:] = [row for row in rows if self.chance.random() < 0.7]
        tx.overwrite(kind.table_key, [given(row) for row in rows])


def copied(data: Dataset) -> Dataset:
    return Dataset(
        data.schema,
        {kind: [dict(row) for row in rows] for kind, rows in data.nodes.items()},
        {kind: [dict(row) for row in rows] for kind, rows in data.edges.items()},
    )
