"""Owns property types: a written type becomes a type of the model, or an error."""

from __future__ import annotations

from collections.abc import Container
from typing import Final, assert_never

from omnigraph.lang.findings import Findings
from omnigraph.lang.pg.tree import EnumNode, ListNode, Name, NamedNode, TypeNode, VectorNode
from omnigraph.lang.suggestions import near
from omnigraph.model.types import (
    Base,
    EnumType,
    ListType,
    PropertyType,
    ScalarType,
    VectorType,
)

LARGEST_DIMENSION: Final = 65_536

_BASES: Final = {base.value: base for base in Base}
_EXPECTED: Final = (*_BASES, "Vector(n)", "enum(a, b)", "[Type]")
_OTHER_LANGUAGES: Final = {
    "bigint": "I64",
    "binary": "Blob",
    "boolean": "Bool",
    "bytes": "Blob",
    "char": "String",
    "decimal": "F64",
    "double": "F64",
    "embedding": "Vector(n)",
    "enum": "enum(a, b)",
    "float": "F64",
    "float32": "F32",
    "float64": "F64",
    "int": "I64",
    "int32": "I32",
    "int64": "I64",
    "integer": "I64",
    "json": "String",
    "list": "[String]",
    "long": "I64",
    "number": "F64",
    "str": "String",
    "text": "String",
    "time": "DateTime",
    "timestamp": "DateTime",
    "uint": "U64",
    "uint32": "U32",
    "uint64": "U64",
    "uuid": "String",
    "varchar": "String",
    "vector": "Vector(n)",
}


def resolve_type(node: TypeNode, types: Container[str], findings: Findings) -> PropertyType | None:
    """`types` are the declared type names, which cannot be the type of a property."""
    match node.shape:
        case NamedNode(name=name):
            base = _resolve_base(name, types, findings)
            return ScalarType(base) if base else None
        case EnumNode():
            return _resolve_enum(node.shape, findings)
        case VectorNode():
            return _resolve_vector(node.shape, findings)
        case ListNode():
            return _resolve_list(node, node.shape, types, findings)
        case _:
            assert_never(node.shape)


def _resolve_base(name: Name, types: Container[str], findings: Findings) -> Base | None:
    base = _BASES.get(name.text)
    if base is not None:
        return base
    if name.text == "Vector":
        findings.add("P111", name.span, "a vector type needs its dimension", "write `Vector(384)`")
    elif name.text in types:
        message = f"`{name.text}` is a type of the graph, and properties hold plain values"
        findings.add("P110", name.span, message, "connect the two types by an edge", _EXPECTED)
    else:
        message = f"there is no property type `{name.text}`"
        findings.add("P110", name.span, message, _meant_type(name.text), _EXPECTED)
    return None


def _meant_type(text: str) -> str | None:
    meant = _OTHER_LANGUAGES.get(text.lower()) or near(text, _BASES)
    return f"did you mean `{meant}`?" if meant else None


def _resolve_enum(shape: EnumNode, findings: Findings) -> EnumType | None:
    seen: set[str] = set()
    sound = True
    for value in shape.values:
        if value.quoted:
            sound = False
            message = "enum values are written without quotes"
            findings.add(
                "P114", value.span, message, "use letters, digits, `_` and `-` for the value"
            )
        elif value.text in seen:
            sound = False
            findings.add("P113", value.span, f"`{value.text}` is already a value of this enum")
        seen.add(value.text)
    return EnumType(tuple(sorted(seen))) if sound else None


def _resolve_vector(shape: VectorNode, findings: Findings) -> VectorType | None:
    dimension = shape.dimension.value
    if isinstance(dimension, int) and 1 <= dimension <= LARGEST_DIMENSION:
        return VectorType(dimension)
    message = f"the dimension of a vector is a whole number from 1 to {LARGEST_DIMENSION}"
    findings.add("P111", shape.dimension.span, message)
    return None


def _resolve_list(
    node: TypeNode, shape: ListNode, types: Container[str], findings: Findings
) -> ListType | None:
    match shape.item:
        case EnumNode():
            message = "a list cannot hold enum values"
            findings.add("P112", node.span, message, "use `[String]`")
            return None
        case VectorNode():
            findings.add("P112", node.span, "a list cannot hold vectors")
            return None
        case NamedNode(name=name):
            base = _resolve_base(name, types, findings)
            if base is Base.BLOB:
                message = "a list cannot hold blobs"
                findings.add("P112", node.span, message, "give each blob a node of its own")
                return None
            if base is not None and shape.item_nullable:
                message = "the items of a list are never null"
                help_ = f"write `[{base.value}]`, or `[{base.value}]?` for a list that may be null"
                findings.add("P112", node.span, message, help_)
                return None
            return ListType(base) if base else None
        case _:
            assert_never(shape.item)
