"""Owns the static rules of `.pg`: a syntax tree becomes a schema, or all errors."""

from __future__ import annotations

import msgspec

from omnigraph.lang.diagnostics import Diagnostic
from omnigraph.lang.findings import Findings
from omnigraph.lang.pg.check.declarations import Declarations
from omnigraph.lang.pg.tree import EdgeNode, InterfaceNode, NodeNode, SchemaTree
from omnigraph.model.schema import Schema


class CheckedSchema(msgspec.Struct, frozen=True):
    """`schema` is None exactly if there is a diagnostic."""

    schema: Schema | None
    diagnostics: tuple[Diagnostic, ...]


def check_schema(tree: SchemaTree) -> CheckedSchema:
    """Names that may have been lost to a syntax error are not reported as missing."""
    findings = Findings()
    declarations = Declarations(tree, findings)
    # Nodes copy from interfaces, so those come first.
    interfaces = [
        declarations.check_interface(d) for d in declarations.all if isinstance(d, InterfaceNode)
    ]
    nodes = [declarations.check_node(d) for d in declarations.all if isinstance(d, NodeNode)]
    edges = [declarations.check_edge(d) for d in declarations.all if isinstance(d, EdgeNode)]
    if findings.diagnostics:
        return CheckedSchema(None, tuple(findings.diagnostics))
    schema = Schema(
        interfaces=tuple(d for d in interfaces if d is not None),
        nodes=tuple(d for d in nodes if d is not None),
        edges=tuple(d for d in edges if d is not None),
    )
    return CheckedSchema(schema, ())
