"""Owns the declared parameters of a query: their types and defaults."""

from __future__ import annotations

from typing import Final

from omnigraph.lang.findings import Findings, Meant
from omnigraph.lang.gq import tree
from omnigraph.lang.gq.check.kinds import BLOB, fitted, shown
from omnigraph.lang.gq.checked import Parameter, Type
from omnigraph.lang.values import MisfitError
from omnigraph.model.types import Base, ListType, PropertyType, ScalarType, VectorType

LARGEST_DIMENSION: Final = 65_536
_BASES: Final = {base.value: base for base in Base}


def check_parameters(query: tree.Query, findings: Findings) -> dict[str, Parameter]:
    """A wrongly declared parameter keeps its name, so its uses are not reported."""
    found: dict[str, Parameter] = {}
    for node in query.parameters:
        name = node.variable.name
        if node.variable.is_anonymous:
            findings.add("T3", node.variable.span, "a parameter needs a name")
            continue
        if name in found:
            findings.add("T13", node.variable.span, f"`${name}` is already a parameter")
            continue
        kind = _kind(node.type, findings)
        found[name] = _parameter(node, kind, findings)
    return found


def _kind(node: tree.TypeNode, findings: Findings) -> PropertyType | None:
    name = node.name.text
    if name == "Vector" and not node.is_list:
        if node.dimension is not None and 1 <= node.dimension <= LARGEST_DIMENSION:
            return VectorType(node.dimension)
        message = f"a vector type is `Vector(n)`, with n from 1 to {LARGEST_DIMENSION}"
        findings.add("T1", node.span, message)
        return None
    base = _BASES.get(name)
    if base is None or node.dimension is not None:
        message = f"there is no parameter type `{name}`"
        findings.add("T1", node.name.span, message, Meant(name, (*_BASES, "Vector")))
        return None
    if node.is_list and base is Base.BLOB:
        findings.add("T1", node.span, "a list cannot hold blobs")
        return None
    return ListType(base) if node.is_list else ScalarType(base)


def _parameter(node: tree.Parameter, kind: PropertyType | None, findings: Findings) -> Parameter:
    name, nullable = node.variable.name, node.type.is_nullable
    if kind is None or node.default is None:
        return Parameter(name, kind or ScalarType(Base.STRING), nullable, kind is None)
    value = node.default.value
    if value is None:
        if not nullable:
            message = f"`${name}` is never null, so its default cannot be"
            findings.add("T3", node.default.span, message, "add `?` to its type")
        return Parameter(name, kind, nullable, True)
    if kind == BLOB:
        findings.add("T3", node.default.span, "blobs have no literals")
        return Parameter(name, kind, nullable, True)
    try:
        return Parameter(name, kind, nullable, True, fitted(value, kind).value)
    except MisfitError as error:
        message = f"the default does not fit {shown(Type(kind))}: {error}"
        findings.add("T3", node.default.span, message)
        return Parameter(name, kind, nullable, True)
