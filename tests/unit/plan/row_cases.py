"""Owns the types that the tests of rows share, and a shaper with ids that can be foretold."""

from __future__ import annotations

from collections.abc import Callable

from omnigraph.model.catalog import EdgeType, GraphType, NodeType, Property
from omnigraph.model.schema import Check, Default, Embed, Range
from omnigraph.model.types import (
    Base,
    EnumType,
    ListType,
    PropertyType,
    ScalarType,
    VectorType,
)
from omnigraph.plan.rows.typed import Shaped, shape_rows


def prop(
    name: str,
    kind: PropertyType | Base,
    *,
    nullable: bool = True,
    default: Default | None = None,
    embed: Embed | None = None,
) -> Property:
    return Property(
        id=f"p-{name}",
        column=name,
        name=name,
        type=ScalarType(kind) if isinstance(kind, Base) else kind,
        nullable=nullable,
        default=default,
        embed=embed,
    )


PERSON = NodeType(
    id="t-person",
    name="Person",
    key=("name",),
    properties=(
        prop("name", Base.STRING, nullable=False),
        prop("age", Base.I32),
        prop("mood", EnumType(values=("glad", "sad"))),
    ),
    ranges=(Range(property="age", low=0, high=150),),
    checks=(Check(property="name", pattern="^[^0-9]"),),
)
NOTE = NodeType(
    id="t-note",
    name="Note",
    properties=(
        prop("text", Base.STRING, nullable=False),
        prop("stars", Base.I64, nullable=False, default=Default(value=3)),
        prop(
            "meaning",
            VectorType(dimension=2),
            nullable=False,
            embed=Embed(source="text"),
        ),
    ),
)
KNOWS = EdgeType(
    id="t-knows",
    name="Knows",
    source="Person",
    target="Person",
    properties=(prop("since", Base.I32),),
)
LIKES = EdgeType(
    id="t-likes",
    name="Likes",
    source="Person",
    target="Person",
    key=("src", "dst", "what"),
    properties=(prop("what", Base.STRING, nullable=False),),
)
EVERYTHING = NodeType(
    id="t-everything",
    name="Everything",
    properties=(
        *(prop(base.value.lower(), base) for base in Base),
        prop("mood", EnumType(values=("glad", "sad"))),
        *(prop(f"{base.value.lower()}s", ListType(item=base)) for base in Base),
        prop("vector", VectorType(dimension=3)),
    ),
)


def counted_ids() -> Callable[[int], list[str]]:
    made = 0

    def new_ids(count: int) -> list[str]:
        nonlocal made
        made += count
        return [f"new-{i}" for i in range(made - count, made)]

    return new_ids


def shape(kind: GraphType, rows: object, *, complete: bool = True, limit: int = 100) -> Shaped:
    return shape_rows(kind, rows, complete=complete, new_ids=counted_ids(), limit=limit)


def one_property(kind: PropertyType | Base) -> NodeType:
    """A type without a key that has the one property `p`."""
    return NodeType(id="t-thing", name="Thing", properties=(prop("p", kind),))
