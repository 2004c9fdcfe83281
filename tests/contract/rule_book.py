"""One faulty input for each rule between rows, and how to give it to every surface: what is told
must be the same. Spark gets them from `tests/spark/test_rule_book.py`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidData, MergeFailed

SCHEMA = """
node Person { name: String @key  email: String? @unique }
node Note { text: String? }
edge Knows: Person -> Person
edge Wrote: Person -> Note @card(0..1)
"""
LOOSE = SCHEMA.replace(" @unique", "").replace(" @card(0..1)", "")
"""The same types without the rules that a schema change can bring."""

Entry = dict[str, Any]
Told = list[tuple[str, str, str | None]]
"""Code, sentence and property of what is wrong, each once, in order."""


def person(name: str, **data: Any) -> Entry:
    return {"type": "Person", "data": {"name": name, **data}}


def note(id: str) -> Entry:
    return {"type": "Note", "id": id, "data": {}}


def edge(kind: str, id: str, source: str, target: str) -> Entry:
    return {"edge": kind, "id": id, "from": source, "to": target}


@dataclass(frozen=True)
class Fault:
    """`before` is sound, and with `change` it is not. A merge has `change` on one branch and `ours`
    on the other; None where a merge cannot break the rule."""

    before: list[Entry]
    change: list[Entry]
    told: Told
    ours: Callable[[Graph], object] | None = None
    mode: str = "append"
    surfaces: frozenset[str] = frozenset()


UNIQUE = (
    "unique",
    (
        'Person "Bob" has email = "e", which another Person has already; @unique(email) allows it '
        "once."
    ),
    "email",
)
ENDPOINT = ("endpoint", 'Knows has `to` "Zed", but there is no Person with that id.', "to")
CARD = (
    "card",
    (
        '2 Wrote edges from Person "Ann" are too many; @card allows at most 1. With @key(src) a '
        "second one would move the first."
    ),
    "from",
)
WRITES = frozenset({"transaction", "load", "spark"})
BASE = [person("Ann"), note("n1"), note("n2")]
FAULTS = {
    "key": Fault(
        [],
        [person("Ann"), person("Ann")],
        [
            (
                "key",
                (
                    'More than one row of Person has the id "Ann", which is made from `name`; give '
                    "each entity once."
                ),
                "name",
            )
        ],
        surfaces=WRITES | {"verify"},
    ),
    "new id": Fault(
        BASE,
        [person("Ann")],
        [
            (
                "key",
                (
                    'Person "Ann" exists already; append adds only what is new. To change it, use '
                    "upsert, or mode='merge' in a load."
                ),
                "name",
            )
        ],
        surfaces=WRITES,
    ),
    "unique": Fault(
        BASE,
        [person("Bob", email="e")],
        [UNIQUE],
        ours=lambda g: g.load([person("Eve", email="e")]),
        surfaces=WRITES | {"mutation", "schema", "merge", "verify"},
    ),
    "endpoint": Fault(
        BASE,
        [edge("Knows", "k", "Ann", "Zed")],
        [ENDPOINT],
        ours=lambda g: g.mutate('delete Person where name = "Zed"'),
        surfaces=WRITES | {"mutation", "merge", "verify"},
    ),
    "card": Fault(
        BASE,
        [edge("Wrote", "w2", "Ann", "n2")],
        [CARD],
        ours=lambda g: g.load([edge("Wrote", "w1", "Ann", "n1")]),
        surfaces=WRITES | {"mutation", "schema", "merge", "verify"},
    ),
    "orphan": Fault(
        [*BASE, person("Zed"), edge("Knows", "k", "Ann", "Zed")],
        [person("Ann")],
        [("orphan", 'Person "Zed" would be gone, but Knows "k" has it as `to`.', None)],
        mode="overwrite",
        surfaces=WRITES,
    ),
    "several at once": Fault(
        BASE,
        [
            edge("Wrote", "w2", "Ann", "n2"),
            edge("Knows", "k", "Ann", "Zed"),
            person("Bob", email="e"),
        ],
        [UNIQUE, ENDPOINT, CARD],
        ours=lambda g: (
            g.load([person("Eve", email="e"), edge("Wrote", "w1", "Ann", "n1")]),
            g.mutate('delete Person where name = "Zed"'),
        ),
        surfaces=WRITES | {"mutation", "merge", "verify"},
    ),
}
"""Some of them need what stands in `ours` before: see `prepared`."""


def new(directory: Path, schema: str = SCHEMA) -> Graph:
    return omnigraph.init(str(directory / "g"), schema=schema)


def prepared(g: Graph, fault: Fault) -> Graph:
    """The graph just before the change, with what makes it wrong."""
    if fault.before:
        g.load([entry for entry in fault.before if "type" in entry], engine="local")
    edges = [entry for entry in fault.before if "edge" in entry]
    if edges:
        g.load(edges, engine="local")
    if fault.ours is not None:
        fault.ours(g)
    return g


def of_error(error: InvalidData) -> Told:
    """Without the place that a load says first and the one that it repeats last."""
    found = []
    for violation in error.violations:
        message = re.sub(r"^[^:]* (line|row|entry) \d+: ", "", violation.message)
        message = message.split(" It stands in ", 1)[0]
        found.append((violation.rule, message, violation.property))
    return list(dict.fromkeys(found))


def by_load(directory: Path, fault: Fault, engine: str) -> Told:
    g = prepared(new(directory), fault)
    with pytest.raises(InvalidData) as error:
        g.load(fault.change, engine=engine, mode=fault.mode)  # type: ignore[arg-type]
    return of_error(error.value)


def by_transaction(directory: Path, fault: Fault) -> Told:
    g = prepared(new(directory), fault)
    rows: dict[str, list[dict[str, Any]]] = {}
    for entry in fault.change:
        kind, row = as_row(entry)
        rows.setdefault(kind, []).append(row)

    def write() -> None:
        with g.transaction() as tx:
            for kind, given in rows.items():
                (tx.append if fault.mode == "append" else tx.overwrite)(kind, given)

    with pytest.raises(InvalidData) as error:
        write()
    return of_error(error.value)


def as_row(entry: Entry) -> tuple[str, dict[str, Any]]:
    if "edge" in entry:
        return entry["edge"], {"id": entry["id"], "from": entry["from"], "to": entry["to"]}
    named = {"id": entry["id"]} if "id" in entry else {}
    return entry["type"], named | entry["data"]


def by_mutation(directory: Path, fault: Fault) -> Told:
    g = prepared(new(directory), fault)
    lines = []
    for entry in fault.change:
        kind, row = as_row(entry)
        row.pop("id", None)
        values = ", ".join(f'{name}: "{value}"' for name, value in row.items())
        lines.append(f"insert {kind} {{ {values} }}")
    with pytest.raises(InvalidData) as error:
        g.mutate("\n".join(lines))
    return of_error(error.value)


def by_schema(directory: Path, fault: Fault) -> Told:
    g = prepared(new(directory, LOOSE), fault)
    g.load(fault.change, engine="local")
    with pytest.raises(InvalidData) as error:
        g.apply_schema(SCHEMA)
    return of_error(error.value)


def by_merge(directory: Path, fault: Fault) -> Told:
    """Both branches begin with everybody that the change names."""
    g = new(directory)
    g.load([*fault.before, person("Zed")], engine="local")
    g.create_branch("theirs")
    g.branch("theirs").load(fault.change, engine="local")
    assert fault.ours is not None
    fault.ours(g)
    with pytest.raises(MergeFailed) as error:
        g.merge("theirs")
    codes = {
        "OrphanEdge": "endpoint",
        "UniqueViolation": "unique",
        "CardinalityViolation": "card",
    }
    found = [(codes[str(c.kind.value)], c.message, c.property) for c in error.value.conflicts]
    return list(dict.fromkeys(found))


def by_verify(directory: Path, fault: Fault, monkeypatch: pytest.MonkeyPatch) -> Told:
    """The rows get in while nobody looks."""
    g = prepared(new(directory), fault)
    with monkeypatch.context() as unwatched:
        for name in ("check_ids", "check_new", "check_rules"):
            unwatched.setattr(f"omnigraph.engine.load.checks.{name}", lambda relations: None)
        g.load(fault.change, engine="local")
    report = g.verify(deep=True)
    shown = {rule: name for rule, _, name in fault.told}
    found = []
    for finding in report.errors:
        code = finding.kind.removeprefix("rule_")
        message = finding.message.removeprefix('Knows "k": ')
        found.append((code, message, shown[code]))
    return list(dict.fromkeys(found))
