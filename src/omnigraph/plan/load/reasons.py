"""Owns the words in which a load refuses rows that break a rule between rows, so that they are the
same whichever engine has found them."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.errors import InvalidData
from omnigraph.model.catalog import EdgeType, GraphType, NodeType
from omnigraph.model.violation import Violation, show_value

Reason = tuple[str, str]
"""Why a row is refused, and because of which property; "" if of none."""


def id_rule(kind: GraphType) -> str:
    return "key" if kind.key else "id"


def stands_twice(kind: GraphType, entity: str, first: str) -> Reason:
    """`first` is the text of the place where the id stood before."""
    made = f", which is made from {', '.join(f'`{n}`' for n in kind.key)}" if kind.key else ""
    return (
        f"the id {show_value(entity)} of {kind.name}{made}, stands in {first} already; give each "
        "entity once."
    ), ""


def exists_already(kind: GraphType, entity: str) -> Reason:
    return (
        f"{kind.name} {show_value(entity)} exists already; mode='merge' changes it, append does "
        "not."
    ), ""


def is_not_unique(kind: GraphType, columns: Sequence[str], entity: str, text: str | None) -> Reason:
    shown = ", ".join(columns)
    return (
        f"{kind.name} {show_value(entity)} has {shown} = {show_value(text)}, which another "
        f"{kind.name} has already; @unique({shown}) allows it once."
    ), shown


def has_no_end(kind: EdgeType, end: str, value: str) -> Reason:
    """`end` is `src` or `dst`."""
    name, node = ("from", kind.source) if end == "src" else ("to", kind.target)
    return (
        f"{kind.name} has `{name}` {show_value(value)}, but there is no {node} with that id."
    ), name


def has_too_many(kind: EdgeType, source: str, count: int) -> Reason:
    return _card(kind, source, count, f"at most {kind.card.high}"), "from"


def has_too_few(kind: EdgeType, source: str, count: int) -> Reason:
    return _card(kind, source, count, f"at least {kind.card.low}"), "from"


def _card(kind: EdgeType, source: str, count: int, limit: str) -> str:
    return (
        f"{kind.source} {show_value(source)} would have {count} {kind.name} edges; @card allows "
        f"{limit}."
    )


# What no single row is to blame for, so that nothing can be quarantined


def orphans(
    node: NodeType, edge: EdgeType, end: str, lost: Sequence[tuple[str, str]], total: int
) -> InvalidData:
    """`lost` are the first edges whose node would be gone: their ids and those of the nodes."""
    violations = [
        Violation(
            type=node.name,
            rule="orphan",
            id=value,
            message=f"{node.name} {show_value(value)} would be gone, but {edge.name} "
            f"{show_value(entity)} has it as its {end}.",
        )
        for entity, value in lost
    ]
    rest = f" (and {total - 1} more)" if total > 1 else ""
    return InvalidData(
        violations[0].message + rest, violations=violations, more=total - len(violations)
    )


def abandoned(kind: EdgeType, source: str, total: int) -> InvalidData:
    """A source keeps none of its edges, though it needs some."""
    message, _ = has_too_few(kind, source, 0)
    found = Violation(type=kind.name, rule="card", id=source, property="src", message=message)
    return InvalidData(message, violations=[found], more=total - 1)
