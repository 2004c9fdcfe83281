"""Mutations the simple way: rows in dicts, one statement after the other, one row at a time."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

SCHEMA = """
node Person {
  name: String @key
  age: I32? @range(age, -1000..1000)
  score: F64?
  tag: String? @unique
}
node Note { n: I64  text: String? @default("none") }
edge Knows: Person -> Person { since: I32? }
edge Likes: Person -> Person { w: I64?  @key(src, dst) }
"""
NODES = ("Person", "Note")
EDGES = ("Knows", "Likes")
PROPERTIES = {
    "Person": ("name", "age", "score", "tag"),
    "Note": ("n", "text"),
    "Knows": ("since",),
    "Likes": ("w",),
}
PARAMETERS = {"nan": math.nan, "none": None, "who": "a", "some": ["a", "b"]}
SIGNATURE = "$nan: F64, $none: I64?, $who: String, $some: [String]"

Row = dict[str, Any]
Expression = tuple[Any, ...]


class RefusedError(Exception):
    """The rules of the schema forbid it."""


# Expressions: text and value.


def text_of(e: Expression) -> str:
    match e:
        case ("value", value):
            return "null" if value is None else json.dumps(value, ensure_ascii=False)
        case ("param", name):
            return f"${name}"
        case ("column", name):
            return str({"src": "from", "dst": "to"}.get(name, name))
        case ("id",):
            return "@id"
        case ("not", inner):
            return f"not ({text_of(inner)})"
        case ("null?", inner, negated):
            return f"({text_of(inner)}) is {'not ' * negated}null"
        case ("call", name, *arguments):
            return f"{name}({', '.join(map(text_of, arguments))})"
        case (operator, left, right):
            return f"({text_of(left)}) {operator} ({text_of(right)})"
    raise TypeError(e)


def value_of(e: Expression, row: Row) -> Any:
    match e:
        case ("value", value):
            return value
        case ("param", name):
            return PARAMETERS[name]
        case ("column", name):
            return row[name]
        case ("id",):
            return row["id"]
        case ("not", inner):
            held = value_of(inner, row)
            return None if held is None else not held
        case ("null?", inner, negated):
            return (value_of(inner, row) is None) != negated
        case ("call", "coalesce", *arguments):
            return next((v for a in arguments if (v := value_of(a, row)) is not None), None)
        case ("call", "length", inner):
            held = value_of(inner, row)
            return None if held is None else len(held)
        case ("and", left, right):
            sides = [value_of(left, row), value_of(right, row)]
            return False if False in sides else None if None in sides else True
        case ("or", left, right):
            sides = [value_of(left, row), value_of(right, row)]
            return True if True in sides else None if None in sides else False
        case (operator, left, right):
            return _binary(operator, value_of(left, row), value_of(right, row))
    raise TypeError(e)


def _binary(operator: str, left: Any, right: Any) -> Any:
    if left is None or right is None:
        return None
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "%":
            return None if right == 0 else int(math.fmod(left, right))
        case "in":
            return left in right
        case "starts_with":
            return left.startswith(right)
    low: Any
    high: Any
    low, high = (left, right) if isinstance(left, str) else (_rank(left), _rank(right))
    return {
        "=": low == high,
        "!=": low != high,
        "<": low < high,
        "<=": low <= high,
        ">": low > high,
        ">=": low >= high,
    }[operator]


def _rank(number: float) -> tuple[bool, float]:
    """NaN equals NaN and is above all numbers."""
    return (True, 0.0) if math.isnan(number) else (False, number)


# Statements.


@dataclass(frozen=True)
class Insert:
    type: str
    values: tuple[tuple[str, Expression], ...]

    def text(self) -> str:
        names = {"src": "from", "dst": "to"}
        given = ", ".join(f"{names.get(n, n)}: {text_of(v)}" for n, v in self.values)
        return f"insert {self.type} {{ {given} }}"


@dataclass(frozen=True)
class Update:
    type: str
    values: tuple[tuple[str, Expression], ...]
    where: Expression

    def text(self) -> str:
        given = ", ".join(f"{name}: {text_of(value)}" for name, value in self.values)
        return f"update {self.type} set {{ {given} }} where {text_of(self.where)}"


@dataclass(frozen=True)
class Delete:
    type: str
    where: Expression

    def text(self) -> str:
        return f"delete {self.type} where {text_of(self.where)}"


Statement = Insert | Update | Delete
Program = list[Statement]


def program_text(program: Program) -> str:
    return f"query program({SIGNATURE}) {{\n" + "\n".join(s.text() for s in program) + "\n}"


@dataclass
class State:
    tables: dict[str, dict[str, Row]] = field(
        default_factory=lambda: {name: {} for name in (*NODES, *EDGES)}
    )
    made: int = 0

    def copy(self) -> State:
        rows = {name: {i: dict(r) for i, r in t.items()} for name, t in self.tables.items()}
        return State(rows, self.made)

    def seen(self) -> dict[str, Counter[tuple[str, ...]]]:
        """Without ids that were made up."""
        return {name: Counter(map(shown, table.values())) for name, table in self.tables.items()}


def shown(row: Row) -> tuple[str, ...]:
    """NaN is not equal to itself, but its text is."""
    return tuple(f"{name}={row[name]!r}" for name in sorted(row) if name != "id")


def apply(program: Program, before: State) -> tuple[State, Counter[tuple[str, str]]]:
    """The state afterwards and what was done to each type. Raises RefusedError."""
    state, effects = before.copy(), Counter[tuple[str, str]]()
    for statement in program:
        match statement:
            case Insert():
                _insert(state, statement, effects)
            case Update(type=name, values=values):
                for row in list(_matching(state, name, statement.where)):
                    new = {column: value_of(value, row) for column, value in values}
                    state.tables[name][row["id"]] = _checked(name, row | new)
                    effects[name, "updated"] += 1
            case Delete(type=name):
                gone = [row["id"] for row in _matching(state, name, statement.where)]
                for entity in gone:
                    del state.tables[name][entity]
                effects[name, "deleted"] += len(gone)
                if name == "Person":
                    _cascade(state, set(gone), effects)
    _check_all(state)
    return state, +effects


def _insert(state: State, statement: Insert, effects: Counter[tuple[str, str]]) -> None:
    name = statement.type
    given = {column: value_of(value, {}) for column, value in statement.values}
    if name == "Person":
        entity = given["name"]
    elif name == "Likes":
        entity = json.dumps([given["src"], given["dst"]])
    else:
        state.made += 1
        entity = f"made-{state.made}"
    new = dict.fromkeys(PROPERTIES[name])
    if name == "Note":
        new["text"] = "none"
    old = state.tables[name].get(entity)
    effects[name, "updated" if old else "inserted"] += 1
    state.tables[name][entity] = _checked(name, (old or {"id": entity, **new}) | given)


def _checked(name: str, row: Row) -> Row:
    if name == "Person" and row["age"] is not None and not -1000 <= row["age"] <= 1000:
        raise RefusedError("age")
    if name == "Knows" and row["since"] is not None and not -(2**31) <= row["since"] < 2**31:
        raise RefusedError("since")
    return row


def _matching(state: State, name: str, where: Expression) -> Iterator[Row]:
    return (row for row in list(state.tables[name].values()) if value_of(where, row) is True)


def _cascade(state: State, gone: set[str], effects: Counter[tuple[str, str]]) -> None:
    for name in EDGES:
        for row in list(state.tables[name].values()):
            if {row["src"], row["dst"]} & gone:
                del state.tables[name][row["id"]]
                effects[name, "deleted"] += 1


def _check_all(state: State) -> None:
    people = state.tables["Person"]
    tags = [row["tag"] for row in people.values() if row["tag"] is not None]
    if len(set(tags)) < len(tags):
        raise RefusedError("tag")
    for name in EDGES:
        for row in state.tables[name].values():
            if row["src"] not in people or row["dst"] not in people:
                raise RefusedError("endpoint")
