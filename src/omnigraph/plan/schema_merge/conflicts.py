"""Owns collecting conflicts: one merge reports every contradiction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

import msgspec

from omnigraph.model.schema import Annotation, PropertyDecl, same
from omnigraph.model.types import EnumType, ListType, ScalarType, VectorType, type_text
from omnigraph.plan.schema_merge.three_way import ContradictionError, merge_order, pick
from omnigraph.plan.schema_merge.values import SchemaConflict, SchemaConflictKind

T = TypeVar("T")
V = TypeVar("V")
Where = tuple[str, str | None]


class Sides(NamedTuple, Generic[V]):
    """One thing in the three catalogs, or None where it does not exist."""

    base: V | None
    ours: V | None
    theirs: V | None


class Conflicts:
    """`Where` is a table key and, for a property, its name."""

    def __init__(self) -> None:
        self.found: list[SchemaConflict] = []

    def add(
        self,
        kind: SchemaConflictKind,
        where: Where,
        message: str,
        values: tuple[object, object, object] = (None, None, None),
    ) -> None:
        base, ours, theirs = (_show(value) for value in values)
        self.found.append(
            SchemaConflict(
                kind=kind,
                type=where[0],
                property=where[1],
                base=base,
                ours=ours,
                theirs=theirs,
                message=message,
            )
        )

    def pick(self, what: str, where: Where, base: T, ours: T, theirs: T) -> T:
        try:
            return pick(base, ours, theirs)
        except ContradictionError:
            message = f"both sides changed {what} of {place(where)}, and not to the same"
            self.add(SchemaConflictKind.CHANGED_BOTH, where, message, (base, ours, theirs))
            return ours

    def merge_presence(
        self, where: Where, sides: Sides[V], both: Callable[[V | None, V, V], V]
    ) -> V | None:
        """Something that a side may have dropped. It is dropped if the other side has not changed
        it."""
        base, ours, theirs = sides
        if ours is not None and theirs is not None:
            return both(base, ours, theirs)
        left = ours if ours is not None else theirs
        if left is None or base is None:
            return left
        if same(base, left):
            return None
        dropped, changed = ("theirs", "ours") if theirs is None else ("ours", "theirs")
        message = f"{dropped} dropped {place(where)}, {changed} changed it"
        self.add(SchemaConflictKind.DROPPED_AND_CHANGED, where, message, (base, ours, theirs))
        return left

    def merge_annotations(
        self,
        where: Where,
        base: Sequence[Annotation],
        ours: Sequence[Annotation],
        theirs: Sequence[Annotation],
    ) -> tuple[Annotation, ...]:
        """Annotations merge by name; all of one name are one value."""
        before, left, right = _by_name(base), _by_name(ours), _by_name(theirs)
        merged = {
            name: self.pick(
                f"@{name}", where, before.get(name, ()), left.get(name, ()), right.get(name, ())
            )
            for name in dict.fromkeys([*left, *right])
        }
        members = [name for name, found in merged.items() if found]
        order = merge_order(list(before), list(left), list(right), members)
        return tuple(annotation for name in order for annotation in merged[name])


def place(where: Where) -> str:
    return where[0] if where[1] is None else f"{where[0]}.{where[1]}"


def _by_name(annotations: Iterable[Annotation]) -> dict[str, tuple[Annotation, ...]]:
    found: dict[str, tuple[Annotation, ...]] = {}
    for annotation in annotations:
        found[annotation.name] = (*found.get(annotation.name, ()), annotation)
    return found


def _show(value: object) -> str | None:
    match value:
        case None:
            return None
        case str():
            return value
        case ScalarType() | ListType() | EnumType() | VectorType():
            return type_text(value)
        case PropertyDecl():
            return f"{value.name}: {type_text(value.type)}{'?' if value.nullable else ''}"
        case msgspec.Struct() if hasattr(value, "name"):
            return str(value.name)
        case _:
            return msgspec.json.encode(value).decode()
