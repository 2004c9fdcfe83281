"""Owns the rules between rows: which there are, their order, and the sentence for each violation.
Every surface takes the order and the words from here."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, assert_never

from omnigraph.model.catalog import Catalog, EdgeType, GraphType, NodeType
from omnigraph.model.violation import Violation, show_value
from omnigraph.plan.rows.row_type import ENDS as SHOWN

End: TypeAlias = Literal["src", "dst"]
ENDS: tuple[End, End] = ("src", "dst")


@dataclass(frozen=True)
class OneRow:
    """An id may appear only once in the input. Offending rows have `id`."""

    kind: GraphType


@dataclass(frozen=True)
class NewId:
    """An entity that is appended must not exist yet. Offending rows have `id`."""

    kind: GraphType


@dataclass(frozen=True)
class UniqueRule:
    """No two entities may share these values. Offending rows have `id` and `text`, the values."""

    kind: GraphType
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Ends:
    """Both ends of an edge must exist. Offending rows have `id` and `node`, the missing end."""

    kind: EdgeType
    end: End
    node: NodeType


@dataclass(frozen=True)
class CardRule:
    """A node must have as many edges as `@card` allows. Offending rows have `src` and `n`, their
    number."""

    kind: EdgeType


@dataclass(frozen=True)
class Orphans:
    """Replacing all nodes must leave no edge without its node. Offending rows are edges: `id` and
    `node`."""

    kind: NodeType
    edge: EdgeType
    end: End


Rule: TypeAlias = OneRow | NewId | UniqueRule | Ends | CardRule | Orphans


def final_rules(
    catalog: Catalog, changed: Collection[str], replaced: Collection[str] = ()
) -> Iterator[Rule]:
    """The rules for the state after a change, in order. `changed` are the keys of the tables that
    the change touches, `replaced` those of tables that it replaces completely.

    Unique values come first, and nodes before edges: an edge of a wrong row is not the cause.
    """
    kinds = [kind for kind in catalog.types if kind.table_key in changed]
    edges = [kind for kind in kinds if isinstance(kind, EdgeType)]
    yield from (UniqueRule(kind, columns) for kind in kinds for columns in kind.uniques)
    for edge in edges:
        yield from (Ends(edge, end, node) for end, node in ends_of(catalog, edge))
    yield from (CardRule(edge) for edge in edges if is_bounded(edge))
    for node in catalog.nodes:
        if node.table_key in replaced:
            for edge, end in edges_of(catalog, node):
                if edge.table_key not in replaced:
                    yield Orphans(node, edge, end)


def free_ends(kind: GraphType) -> tuple[End, ...]:
    """The ends that an edge changes when it is written again: those that are no part of its key. An
    edge without a key keeps both."""
    if not isinstance(kind, EdgeType) or not kind.key:
        return ()
    return tuple(end for end in ENDS if end not in kind.key)


def is_bounded(edge: EdgeType) -> bool:
    return edge.card.low > 0 or edge.card.high is not None


def ends_of(catalog: Catalog, edge: EdgeType) -> list[tuple[End, NodeType]]:
    names = catalog.node_names
    return [("src", names[edge.source]), ("dst", names[edge.target])]


def edges_of(catalog: Catalog, node: NodeType) -> list[tuple[EdgeType, End]]:
    """The ends of edges that must be nodes of this type."""
    return [
        (edge, end)
        for edge in catalog.edges
        for end, held in ends_of(catalog, edge)
        if held.name == node.name
    ]


def code_of(rule: Rule) -> str:
    match rule:
        case OneRow(kind) | NewId(kind):
            return "key" if kind.key else "id"
        case UniqueRule():
            return "unique"
        case Ends():
            return "endpoint"
        case CardRule():
            return "card"
        case Orphans():
            return "orphan"
        case _:
            assert_never(rule)


def describe(rule: Rule, row: Mapping[str, Any]) -> Violation:
    """The violation for a row that breaks the rule. The class of the rule says which columns the
    row has."""
    match rule:
        case OneRow(kind):
            return _blame(rule, row["id"], _repeats(kind, row["id"]), _key_name(kind), row["id"])
        case NewId(kind):
            return _blame(rule, row["id"], _exists(kind, row["id"]), _key_name(kind), row["id"])
        case UniqueRule(kind, columns):
            names = ", ".join(SHOWN.get(c, c) if _is_end(kind, c) else c for c in columns)
            message = (
                f"{kind.name} {show_value(row['id'])} has {names} = {show_value(row['text'])}, "
                f"which another {kind.name} has already; @unique({', '.join(columns)}) allows it "
                "once."
            )
            return _blame(rule, row["id"], message, names, row["text"])
        case Ends(kind, end, node):
            name = SHOWN[end]
            message = (
                f"{kind.name} has `{name}` {show_value(row['node'])}, but there is no {node.name} "
                "with that id."
            )
            return _blame(rule, row["id"], message, name, row["node"])
        case CardRule(kind):
            return _blame(rule, row["src"], _counted(kind, row["src"], row["n"]), "from", row["n"])
        case Orphans(kind, edge, end):
            message = (
                f"{kind.name} {show_value(row['node'])} would be gone, but {edge.name} "
                f"{show_value(row['id'])} has it as `{SHOWN[end]}`."
            )
            return _blame(rule, row["node"], message, None, row["node"])
        case _:
            assert_never(rule)


def describe_move(kind: EdgeType, entity: str, end: End, was: str, now: str) -> Violation:
    """An edge keeps its ends: an edge with other ends is another edge."""
    name = SHOWN[end]
    return Violation(
        type=kind.name,
        rule="endpoint",
        id=entity,
        property=name,
        value=show_value(now),
        message=f"{kind.name} {show_value(entity)} has `{name}` {show_value(was)}, which cannot "
        f"become {show_value(now)}; delete the edge and insert another.",
    )


def describe_missing(kind: GraphType, name: str, entity: str) -> Violation:
    """A new entity needs properties that an existing one would keep."""
    return Violation(
        type=kind.name,
        rule="required",
        id=entity,
        property=name,
        message=f"`{name}` of {kind.name} is required, but the new entity {show_value(entity)} is "
        "not given it.",
    )


def describe_added(kind: EdgeType, rows: int) -> str:
    """What a merge of edges without a key did, and which keys would do what was probably meant."""
    added = f"{rows:,} {kind.name} edge{'s were' if rows > 1 else ' was'} added"
    return (
        f"{kind.name} has no key, so {added} and would be added again. With @key(src, dst) a merge "
        "changes the edge between two nodes; with @key(src) it moves the one edge of a node."
    )


def describe_key(kind: GraphType, entity: str) -> Violation:
    """An id is made from the key and never changes."""
    return Violation(
        type=kind.name,
        rule="key",
        id=entity,
        message=f"{kind.name} {show_value(entity)} has another key than its id.",
    )


def _blame(
    rule: Rule, entity: str | None, message: str, name: str | None, value: object
) -> Violation:
    type_name = rule.kind.name
    return Violation(
        type=type_name,
        rule=code_of(rule),
        message=message,
        id=entity,
        property=name,
        value=show_value(value),
    )


def _is_end(kind: GraphType, column: str) -> bool:
    return isinstance(kind, EdgeType) and column in SHOWN


def _key_name(kind: GraphType) -> str | None:
    """The one property that the id is, or is made from."""
    if len(kind.key) > 1:
        return None
    (name,) = kind.key or ("id",)
    return SHOWN[name] if _is_end(kind, name) else name


def _repeats(kind: GraphType, entity: str) -> str:
    names: Sequence[str] = [SHOWN[n] if _is_end(kind, n) else n for n in kind.key]
    made = f", which is made from {', '.join(f'`{n}`' for n in names)}" if names else ""
    return (
        f"More than one row of {kind.name} has the id {show_value(entity)}{made}; give each "
        "entity once."
    )


def _exists(kind: GraphType, entity: str) -> str:
    return (
        f"{kind.name} {show_value(entity)} exists already; append adds only what is new. To change "
        "it, use upsert, or mode='merge' in a load."
    )


def _counted(kind: EdgeType, source: str, count: int) -> str:
    high = kind.card.high
    beyond = high is not None and count > high
    limit = f"at most {high}" if beyond else f"at least {kind.card.low}"
    edges = f"1 {kind.name} edge" if count == 1 else f"{count} {kind.name} edges"
    return (
        f"{edges} from {kind.source} {show_value(source)} {'is' if count == 1 else 'are'} too "
        f"{'many' if beyond else 'few'}; @card allows {limit}.{_moving(kind) if beyond else ''}"
    )


def _moving(kind: EdgeType) -> str:
    """What people mean who write another edge where one is allowed."""
    if kind.key or kind.card.high != 1:
        return ""
    return " With @key(src) a second one would move the first."
