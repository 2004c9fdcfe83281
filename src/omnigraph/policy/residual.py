"""Owns residuals: what is left of policies when everything is known but the row, as a row rule.

What a rule cannot say is refused. Nothing here guesses: whoever asks shows no row then.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import cedarpy

from omnigraph.model.catalog import GraphType
from omnigraph.model.permission import TypeResource
from omnigraph.model.row_rule import (
    EVERY_ROW,
    NO_ROW,
    ColumnOf,
    Compares,
    Holds,
    IsOneOf,
    IsThere,
    IsTrue,
    Operand,
    Resembles,
    RowRule,
    Value,
    all_of,
    any_of,
    negated,
)
from omnigraph.policy.cedar_schema import attributes, row_type

_Entity = tuple[str, str]


class UnsupportedResidualError(Exception):
    """A policy says something of rows that a row rule cannot say."""


@dataclass(frozen=True)
class RowOf:
    """The row that is not known: what is known of it is its type, and what that is in."""

    resource: TypeResource
    kind: GraphType

    @property
    def type(self) -> str:
        return row_type(self.resource.graph, self.resource.name)

    @property
    def ancestors(self) -> frozenset[_Entity]:
        graph = self.resource.graph
        return frozenset(
            {("Type", f"{graph}/{self.resource.name}"), ("Graph", graph), ("Server", "server")}
        )

    def column(self, name: str) -> ColumnOf:
        if name not in attributes(self.kind):
            raise UnsupportedResidualError(f"a row of {self.kind.name} has no {name!r}")
        return ColumnOf(name)

    def is_list(self, column: ColumnOf) -> bool:
        return attributes(self.kind)[column.name][0].startswith("Set<")

    def told(self, column: ColumnOf) -> str:
        return attributes(self.kind)[column.name][0].removeprefix("Set<").removesuffix(">")


def rule_of(residuals: Iterable[Mapping[str, Any]], row: RowOf) -> RowRule:
    """Any permit, and no forbid."""
    permits: list[RowRule] = []
    forbids: list[RowRule] = []
    for policy in residuals:
        conditions = []
        for one in policy["conditions"]:
            rule = condition(one["body"], row)
            conditions.append(rule if one["kind"] == "when" else negated(rule))
        (permits if policy["effect"] == "permit" else forbids).append(all_of(tuple(conditions)))
    return all_of((any_of(tuple(permits)), negated(any_of(tuple(forbids)))))


def condition(node: Mapping[str, Any], row: RowOf) -> RowRule:
    """A truth value of the row."""
    ((op, held),) = node.items()
    match op:
        case "Value" if isinstance(held, bool):
            return EVERY_ROW if held else NO_ROW
        case "&&":
            left = condition(held["left"], row)
            # As Cedar does: what follows a false part is not looked at.
            return NO_ROW if left == NO_ROW else all_of((left, condition(held["right"], row)))
        case "||":
            left = condition(held["left"], row)
            return EVERY_ROW if left == EVERY_ROW else any_of((left, condition(held["right"], row)))
        case "!":
            return negated(condition(held["arg"], row))
        case "has" | "is" | "in":
            _require_row(held["left"])
            return _of_the_row(op, held, row)
    return _of_a_value(op, node, row)


def _of_the_row(op: str, held: Mapping[str, Any], row: RowOf) -> RowRule:
    match op:
        case "has":
            known = attributes(row.kind).get(held["attr"])
            if known is None:
                return NO_ROW
            return IsThere(ColumnOf(held["attr"])) if known[1] else EVERY_ROW
        case "is":
            inside = "in" not in held or _is_in(held["in"], row)
            return EVERY_ROW if inside and held["entity_type"] == row.type else NO_ROW
    return _in(held, row)


def _of_a_value(op: str, node: Mapping[str, Any], row: RowOf) -> RowRule:
    held = node[op]
    match op:
        case ".":
            column = _column(node, row)
            _require_kind(column, "Bool", row)
            return IsTrue(column)
        case "==":
            return _equal(held["left"], held["right"], row)
        case "!=":
            return negated(_equal(held["left"], held["right"], row))
        case "<" | "<=" | ">" | ">=":
            left, right = _number(held["left"], row), _number(held["right"], row)
            if op in (">", ">="):
                left, right = right, left
            return Compares("<" if op in ("<", ">") else "<=", left, right)
        case "like":
            column = _column(held["left"], row)
            _require_kind(column, "String", row)
            return Resembles(column, _pattern(held["pattern"]))
        case "contains":
            return _contains(held["left"], held["right"], row)
    raise UnsupportedResidualError(f"{op!r} is not asked of rows")


def _in(held: Mapping[str, Any], row: RowOf) -> RowRule:
    own = [name for type_, name in _entities(held["right"]) if type_ == row.type]
    if _is_in(held["right"], row):
        return EVERY_ROW
    return IsOneOf(ColumnOf("id"), tuple(own)) if own else NO_ROW


def _is_in(node: Mapping[str, Any], row: RowOf) -> bool:
    return any(one in row.ancestors for one in _entities(node))


def _equal(left: Mapping[str, Any], right: Mapping[str, Any], row: RowOf) -> RowRule:
    if _is_row(right):
        left, right = right, left
    if _is_row(left):
        if _is_row(right):
            return EVERY_ROW
        ((type_, name),) = _entities(right)
        return Compares("==", ColumnOf("id"), name) if type_ == row.type else NO_ROW
    one, other = _operand(left, row), _operand(right, row)
    if isinstance(other, ColumnOf):
        one, other = other, one
    if not isinstance(one, ColumnOf):
        raise UnsupportedResidualError("nothing of the row is compared")
    if row.is_list(one):
        raise UnsupportedResidualError(f"the list {one.name!r} is compared as a whole")
    _require_same(one, other, row)
    return Compares("==", one, other)


def _contains(left: Mapping[str, Any], right: Mapping[str, Any], row: RowOf) -> RowRule:
    if "." in left:
        column, value = _column(left, row), _operand(right, row)
        if not row.is_list(column):
            raise UnsupportedResidualError(f"{column.name!r} is no list")
        _require_same(column, value, row)
        return Holds(column, value)
    column = _column(right, row)
    if row.is_list(column):
        raise UnsupportedResidualError(f"{column.name!r} is a list")
    values = tuple(_value(one) for one in _items(left))
    for value in values:
        _require_same(column, value, row)
    return IsOneOf(column, values)


def _number(node: Mapping[str, Any], row: RowOf) -> Operand:
    found = _operand(node, row)
    if isinstance(found, ColumnOf):
        _require_kind(found, "Long", row)
    elif isinstance(found, bool) or not isinstance(found, int):
        raise UnsupportedResidualError(f"{found!r} is no number")
    return found


def _operand(node: Mapping[str, Any], row: RowOf) -> Operand:
    return _column(node, row) if "." in node else _value(node)


def _column(node: Mapping[str, Any], row: RowOf) -> ColumnOf:
    held = node.get(".")
    if held is None:
        raise UnsupportedResidualError("a property of the row itself is looked at")
    _require_row(held["left"])
    return row.column(held["attr"])


def _value(node: Mapping[str, Any]) -> Value:
    value = node.get("Value")
    if not isinstance(value, str | int | bool):
        raise UnsupportedResidualError("a row is compared with texts, numbers and truth values")
    return value


def _items(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if "Set" in node:
        return list(node["Set"])
    held = node.get("Value")
    if not isinstance(held, list):
        raise UnsupportedResidualError("no list of values")
    return [{"Value": one} for one in held]


def _entities(node: Mapping[str, Any]) -> list[_Entity]:
    held = node.get("Value")
    listed = _items(node) if "Set" in node or isinstance(held, list) else [node]
    found = []
    for one in listed:
        entity = one.get("Value")
        if not isinstance(entity, dict) or "__entity" not in entity:
            raise UnsupportedResidualError("a row is in types and graphs, which are named")
        found.append((entity["__entity"]["type"], entity["__entity"]["id"]))
    return found


def _pattern(parts: list[Any]) -> tuple[str | None, ...]:
    return tuple(None if one == "Wildcard" else str(one["Literal"]) for one in parts)


def _is_row(node: Mapping[str, Any]) -> bool:
    return node.get("unknown") == [{"Value": "resource"}]


def _require_row(node: Mapping[str, Any]) -> None:
    if not _is_row(node):
        raise UnsupportedResidualError("only properties of the row itself are looked at")


def _require_kind(column: ColumnOf, told: str, row: RowOf) -> None:
    if row.told(column) != told or row.is_list(column):
        raise UnsupportedResidualError(f"{column.name!r} is no {told}")


def _require_same(column: ColumnOf, other: Operand, row: RowOf) -> None:
    """A value of another type is never equal in Cedar; in the schema that was checked it is of
    the same. Here it has changed since."""
    if isinstance(other, ColumnOf):
        told = row.told(other)
    else:
        told = "Bool" if isinstance(other, bool) else "String" if isinstance(other, str) else "Long"
    if told != row.told(column):
        raise UnsupportedResidualError(f"{column.name!r} is of another type")


# What policies say of rows, when they are read: a part of a condition that looks at the row must be
# of a form that a row rule has, whatever the rest of it comes to for somebody.

_LOGIC = {"&&", "||", "!"}
_TESTS = {"==", "!=", "<", "<=", ">", ">=", "in"}
_OTHERS = {"Type", "Branch", "Graph", "Server", "StoredQuery"}


def unsupported_conditions(
    text: str, lists: Mapping[str, Collection[str]]
) -> Iterator[tuple[str, str]]:
    """Policies that may be asked about rows and say what rows cannot be asked, with the reason.
    `lists` names the properties of each type of rows that are lists."""
    held = json.loads(cedarpy.policies_to_json_str(text))
    for key, policy in held["staticPolicies"].items():
        if not _is_of_rows(policy):
            continue
        for one in policy["conditions"]:
            for reason in [*_wrong(one["body"]), *_whole_lists(one["body"], _lists(policy, lists))]:
                yield (
                    key,
                    f"{reason}; a condition on rows uses && || ! == != < <= in like has contains",
                )
    if held.get("templates"):
        yield "template", "templates are not used here"


def _is_of_rows(policy: Mapping[str, Any]) -> bool:
    action, resource = policy["action"], policy["resource"]
    named = [action["entity"]] if "entity" in action else action.get("entities")
    if named is not None and not any(one["id"] == "see" for one in named):
        return False
    told = resource.get("entity_type")
    if resource["op"] == "==":
        told = resource["entity"]["type"]
    return told not in _OTHERS


def _wrong(node: Mapping[str, Any]) -> Iterator[str]:
    """Why this truth value cannot be asked of a row."""
    ((op, held),) = node.items()
    if not _looks_at_row(node):
        return
    if op in _LOGIC:
        for part in held.values():
            yield from _wrong(part)
    elif op in _TESTS:
        for part in (held["left"], held["right"]):
            yield from _wrong_operand(part)
    elif op == "contains":
        for part in (held["left"], held["right"]):
            if "Set" in part:
                if _looks_at_row(part):
                    yield "a list is made of what the row holds"
            else:
                yield from _wrong_operand(part)
    elif op in ("like", "has", "is"):
        yield from _wrong_operand(held["left"])
    elif op == ".":
        yield from _wrong_operand(node)
    else:
        yield f"{op!r} is used on a row"


def _wrong_operand(node: Mapping[str, Any]) -> Iterator[str]:
    if not _looks_at_row(node) or node.get("Var") == "resource":
        return
    held = node.get(".")
    if held is None or held["left"].get("Var") != "resource":
        yield "something is worked out of what the row holds"


def _lists(policy: Mapping[str, Any], lists: Mapping[str, Collection[str]]) -> set[str]:
    told = policy["resource"].get("entity_type")
    return {name for row, names in lists.items() if told in (None, row) for name in names}


def _whole_lists(node: object, lists: Collection[str]) -> Iterator[str]:
    if isinstance(node, Mapping):
        for op in ("==", "!="):
            for part in node.get(op, {}).values():
                held = part.get(".", {})
                if held.get("left", {}).get("Var") == "resource" and held["attr"] in lists:
                    yield f"the list {held['attr']!r} is compared as a whole"
        for part in node.values():
            yield from _whole_lists(part, lists)
    elif isinstance(node, list):
        for part in node:
            yield from _whole_lists(part, lists)


def _looks_at_row(node: object) -> bool:
    if isinstance(node, Mapping):
        return node.get("Var") == "resource" or any(map(_looks_at_row, node.values()))
    return isinstance(node, list) and any(map(_looks_at_row, node))
