"""Owns what statements make of a state, and what they tell."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.sim.world.model import (
    PYTHON,
    Property,
    Refused,
    Row,
    Rows,
    State,
    Type,
    Unsure,
    check,
)


@dataclass(frozen=True)
class Where:
    property: str
    op: Literal["=", "<", ">="]
    value: Any

    def holds(self, kind: Type, row: Row) -> bool:
        held = row[kind.find(self.property).uid]
        if held is None:
            return False
        if type(held) is not type(self.value):
            raise Unsure("a comparison of two kinds")
        if self.op == "=":
            return bool(held == self.value)
        return bool(held < self.value if self.op == "<" else held >= self.value)


@dataclass(frozen=True)
class Statement:
    """`verb` is append, upsert, overwrite, update, delete, scan or count."""

    verb: str
    type: str
    rows: tuple[Mapping[str, Any], ...] = ()
    set: Mapping[str, Any] = field(default_factory=dict)
    add: str | None = None
    where: Where | None = None

    def __str__(self) -> str:
        parts = [repr(list(map(dict, self.rows)))] if self.rows else []
        parts += [f"set={dict(self.set)}"] if self.set else []
        parts += [f"{self.add} += 1"] if self.add else []
        parts += (
            [f"where {self.where.property} {self.where.op} {self.where.value!r}"]
            if self.where
            else []
        )
        return f"{self.verb} {self.type} {' '.join(parts)}".strip()


def run_statements(state: State, statements: Sequence[Statement]) -> tuple[State, list[Any]]:
    """What they leave, checked as a whole, and what each one tells its caller."""
    state = state.copy()
    told = [run_statement(state, one) for one in statements]
    check(state)
    return state, told


def run_statement(state: State, statement: Statement) -> Any:
    """Changes the state; what it tells."""
    kind = state.type(statement.type)
    rows = state.rows[kind.uid]
    match statement.verb:
        case "scan":
            return shown_rows(kind, rows)
        case "count":
            return len(rows)
        case "update":
            return _update(kind, rows, statement)
        case "delete":
            gone = [
                key
                for key, row in rows.items()
                if statement.where is None or statement.where.holds(kind, row)
            ]
            for key in gone:
                remove(state, kind, key)
            return len(gone)
        case "overwrite":
            rows.clear()
    given = [identity_of(kind, row) for row in statement.rows]
    if len(set(given)) != len(given):
        raise Refused("an id is given twice", "invalid_data")
    for row in statement.rows:
        give_row(state, kind, row, must_be_new=statement.verb == "append")
    return len(given)


def shown_rows(kind: Type, rows: Rows) -> dict[str, dict[str, Any]]:
    return {key: kind.named(row) for key, row in rows.items()}


def _update(kind: Type, rows: Rows, statement: Statement) -> int:
    changed = [
        row for row in rows.values() if statement.where is None or statement.where.holds(kind, row)
    ]
    for name, value in statement.set.items():
        one = kind.find(name)
        check_value(one, value)
        for row in changed:
            row[one.uid] = value
    if statement.add is not None:
        one = kind.find(statement.add)
        if one.declared.kind != "I64":
            raise Refused("only numbers are added to")
        for row in changed:
            row[one.uid] = None if row[one.uid] is None else row[one.uid] + 1
    return len(changed)


def identity_of(kind: Type, row: Mapping[str, Any]) -> str:
    if kind.identity == "ends":
        return pair(row["from"], row["to"])
    return str(row[kind.first.name]) if kind.first.name in row else ""


def pair(src: str, dst: str) -> str:
    return json.dumps([src, dst], separators=(",", ":"))


def give_row(state: State, kind: Type, given: Mapping[str, Any], *, must_be_new: bool) -> None:
    names = {one.name for one in kind.properties} | ({"from", "to"} if kind.ends else set())
    if set(given) - names:
        raise Refused(f"{kind.name} has no {set(given) - names}", "invalid_data")
    for one in kind.properties:
        if one.name in given:
            check_value(one, given[one.name])
        elif one.declared.required:
            raise Refused(f"{one.name} is required", "invalid_data")
    rows, key = state.rows[kind.uid], identity_of(kind, given)
    if key in rows and must_be_new:
        raise Refused(f"{kind.name} {key} is there already", "invalid_data")
    if key not in rows:
        rows[key] = {one.uid: one.declared.default for one in kind.properties}
        if kind.ends is not None:
            rows[key] |= {"src": given["from"], "dst": given["to"]}
    rows[key] |= {
        kind.find(name).uid: value for name, value in given.items() if name not in ("from", "to")
    }


def check_value(one: Property, value: Any) -> None:
    if value is None:
        if one.declared.default is not None or one.declared.required:
            raise Refused(f"{one.name} is not nullable", "invalid_data")
    elif type(value) is not PYTHON[one.declared.kind]:
        raise Unsure("a value of another kind")


def remove(state: State, kind: Type, key: str) -> None:
    """An entity, and with a node its edges."""
    del state.rows[kind.uid][key]
    for other in state.types:
        if other.ends is None or kind.ends is not None:
            continue
        held = state.rows[other.uid]
        for edge, row in list(held.items()):
            if (other.ends[0] == kind.uid and row["src"] == key) or (
                other.ends[1] == kind.uid and row["dst"] == key
            ):
                del held[edge]
