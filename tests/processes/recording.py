"""What recorded processes do: each transaction writes down what it read, was told and wrote."""

from __future__ import annotations

import random
from typing import Any

import pyarrow.compute as pc

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.errors import Conflict, OmnigraphError, OutcomeUnknown
from omnigraph.settings import Settings

SCHEMA = """
node Account { name: String @key  value: I64 }
node Entry { mark: String @key  total: I64 }
"""
ACCOUNTS = [f"a{number}" for number in range(6)]
PATIENCE = 120.0

Record = dict[str, Any]


def live(root: str, seed: int, count: int) -> list[Record]:
    """One random transaction after the other, through one handle."""
    luck = random.Random(seed)
    made: list[Record] = []
    with omnigraph.open(root, settings=Settings(retry_for=PATIENCE)) as g:
        for number in range(count):
            act = luck.choice([_move, _move, _raise_some, _book, _mutate, _maintain])
            record: Record = {"mark": f"{seed}-{number}", "writes": []}
            try:
                act(g, luck, record)
            except OutcomeUnknown as error:
                record["unknown"] = error.commit
            except Conflict:
                record["writes"] = []
            made.append(record)
    return made


def _publish(g: Graph, record: Record, unit: Any) -> None:
    """As `Graph.run` does, and keeps what the attempt that landed has seen."""
    while True:
        record.update(reads=None, told=[], writes=[], commit=None)
        tx = g.transaction(retry_for=PATIENCE, message=record["mark"])
        try:
            unit(tx)
            tx.publish()
        except Conflict:
            continue
        record["commit"] = tx.commit_id
        return


def _seen(tx: Any, record: Record) -> dict[str, int]:
    rows = tx.scan("Account").to_pylist()
    seen = {row["id"]: row["value"] for row in rows}
    record["reads"] = seen
    return seen


def _put(tx: Any, record: Record, rows: dict[str, int]) -> None:
    tx.upsert("Account", [{"name": name, "value": value} for name, value in rows.items()])
    record["writes"].append(["put", rows])


def _move(g: Graph, luck: random.Random, record: Record) -> None:
    """From one account to another, as much as was seen there allows."""
    source, target, amount = *luck.sample(ACCOUNTS, 2), luck.randrange(1, 9)

    def unit(tx: Any) -> None:
        seen = _seen(tx, record)
        rows = {source: seen[source] - amount, target: seen[target] + amount}
        _put(tx, record, rows)

    _publish(g, record, unit)


def _raise_some(g: Graph, luck: random.Random, record: Record) -> None:
    """What a statement says that it changed decides on what is written next."""
    limit, value = luck.randrange(80, 120), luck.randrange(80, 120)

    def unit(tx: Any) -> None:
        told = tx.update("Account", set={"value": value}, where=pc.field("value") < limit)
        record["told"].append(["below", limit, told])
        record["writes"].append(["below", limit, value])
        tx.append("Entry", {"mark": record["mark"], "total": told})
        record["writes"].append(["entry", record["mark"], told])

    _publish(g, record, unit)


def _book(g: Graph, luck: random.Random, record: Record) -> None:
    """Writes down the sum of everything."""

    def unit(tx: Any) -> None:
        total = sum(_seen(tx, record).values())
        tx.append("Entry", {"mark": record["mark"], "total": total})
        record["writes"].append(["entry", record["mark"], total])

    _publish(g, record, unit)


def _mutate(g: Graph, luck: random.Random, record: Record) -> None:
    name, more = luck.choice(ACCOUNTS), luck.randrange(1, 5)
    text = f'update Account set {{ value: value + {more} }} where name = "{name}"'
    done = g.mutate(text, message=record["mark"], idempotency_key=record["mark"])
    record.update(commit=done.commit_id, writes=[["add", name, more]], told=[], reads=None)
    again = g.mutate(text, message=record["mark"], idempotency_key=record["mark"])
    assert (again.repeated, again.commit_id) == (True, done.commit_id)


def _maintain(g: Graph, luck: random.Random, record: Record) -> None:
    try:
        g.optimize()
    except OmnigraphError as error:
        if not error.retryable:
            raise
