"""Owns the types a property can have; knows nothing of schemas."""

from __future__ import annotations

from enum import StrEnum
from typing import assert_never

import msgspec


class Base(StrEnum):
    """The named scalar types of the schema language."""

    STRING = "String"
    BOOL = "Bool"
    I32 = "I32"
    I64 = "I64"
    U32 = "U32"
    U64 = "U64"
    F32 = "F32"
    F64 = "F64"
    DATE = "Date"
    DATETIME = "DateTime"
    BLOB = "Blob"


class ScalarType(msgspec.Struct, frozen=True, tag="scalar", tag_field="is"):
    base: Base


class ListType(msgspec.Struct, frozen=True, tag="list", tag_field="is"):
    item: Base


class EnumType(msgspec.Struct, frozen=True, tag="enum", tag_field="is"):
    """A closed set of values; their order means nothing, so they are kept sorted."""

    values: tuple[str, ...]


class VectorType(msgspec.Struct, frozen=True, tag="vector", tag_field="is"):
    dimension: int


PropertyType = ScalarType | ListType | EnumType | VectorType

INTEGER_RANGES: dict[Base, tuple[int, int]] = {
    Base.I32: (-(2**31), 2**31 - 1),
    Base.I64: (-(2**63), 2**63 - 1),
    Base.U32: (0, 2**32 - 1),
    Base.U64: (0, 2**64 - 1),
}
FLOATS = frozenset({Base.F32, Base.F64})


def type_text(kind: PropertyType) -> str:
    """The type as a schema spells it, without the `?` of a nullable property."""
    match kind:
        case ScalarType(base=base):
            return base.value
        case ListType(item=item):
            return f"[{item.value}]"
        case EnumType(values=values):
            return f"enum({', '.join(values)})"
        case VectorType(dimension=dimension):
            return f"Vector({dimension})"
        case _:
            assert_never(kind)
