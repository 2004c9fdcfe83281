"""Owns interfaces, nodes and edges: their names, their references, and the schema that they
form."""

from __future__ import annotations

from typing import Any

import msgspec

from omnigraph.lang.findings import Findings, Meant
from omnigraph.lang.pg.check.annotations import ReadAnnotation, read_annotations
from omnigraph.lang.pg.check.body import BodyDraft, BodyProperty, check_sources, read_body
from omnigraph.lang.pg.check.constraints import Constraints, check_constraints
from omnigraph.lang.pg.tree import (
    ConstraintNode,
    EdgeNode,
    InterfaceNode,
    Name,
    NodeNode,
    SchemaTree,
    Wreck,
)
from omnigraph.model.schema import Card, EdgeDecl, InterfaceDecl, NodeDecl, PropertyDecl

AnyDeclaration = InterfaceNode | NodeNode | EdgeNode


class _Interface(msgspec.Struct, frozen=True):
    draft: BodyDraft
    constraints: Constraints


class Declarations:
    """Checks every declaration. Names are collected first, so the order does not matter."""

    def __init__(self, tree: SchemaTree, findings: Findings) -> None:
        self.findings = findings
        self.all = [d for d in tree.declarations if not isinstance(d, Wreck)]
        # Some declaration could not be read, so a name that seems to be missing may exist.
        self.damaged = len(self.all) < len(tree.declarations) or any(
            d.name is None for d in self.all
        )
        self.nodes: dict[str, NodeNode] = {}
        self.edges: dict[str, EdgeNode] = {}
        self.interfaces: dict[str, InterfaceNode] = {}
        self._checked: dict[str, _Interface] = {}
        self._renamed: dict[tuple[str, str], str] = {}
        for declaration in self.all:
            self._collect(declaration)
        self.types = {*self.nodes, *self.edges, *self.interfaces}

    def _collect(self, declaration: AnyDeclaration) -> None:
        name = declaration.name
        if name is None:
            return
        if not name.text[0].isupper():
            upper = name.text.lstrip("_")
            help_ = f"write `{upper[0].upper()}{upper[1:]}`" if upper[:1].isalpha() else None
            message = "type names begin with a capital letter"
            self.findings.add("P104", name.span, message, help_)
        clash = self._clash(declaration, name.text)
        if clash is not None:
            message, help_ = clash
            self.findings.add("P101", name.span, message, help_)
        elif isinstance(declaration, EdgeNode):
            self.edges[name.text] = declaration
        elif isinstance(declaration, NodeNode):
            self.nodes[name.text] = declaration
        else:
            self.interfaces[name.text] = declaration

    def _clash(self, declaration: AnyDeclaration, name: str) -> tuple[str, str | None] | None:
        """Nodes and interfaces share one set of names, because queries match both by name."""
        if isinstance(declaration, EdgeNode):
            taken = name in self.edges
            return (f"there is already an edge type `{name}`", None) if taken else None
        shared = "nodes and interfaces are matched by the same names"
        if name in self.nodes:
            help_ = shared if isinstance(declaration, InterfaceNode) else None
            return f"there is already a node type `{name}`", help_
        if name in self.interfaces:
            help_ = shared if isinstance(declaration, NodeNode) else None
            return f"there is already an interface `{name}`", help_
        return None

    def check_interface(self, node: InterfaceNode) -> InterfaceDecl | None:
        draft = read_body(node.body, "interface", self.types, self.findings)
        draft.damaged = draft.damaged or node.broken
        for item in list(draft.constraints):
            if isinstance(item, ConstraintNode):
                message = "an interface has properties only"
                help_ = "put the constraint into the node types that implement it"
                self.findings.add("P121", item.span, message, help_)
                draft.constraints.remove(item)
        constraints = check_constraints(draft, Constraints(), self.findings)
        check_sources(draft, self.findings)
        if node.name is None:
            return None
        read = read_annotations(node.annotations, node.name, "interface", self.findings)
        if self.interfaces.get(node.name.text) is node:
            self._checked[node.name.text] = _Interface(draft, constraints)
        return InterfaceDecl(
            name=node.name.text,
            properties=_decls(draft),
            key=constraints.key,
            uniques=tuple(constraints.uniques),
            indexes=tuple(constraints.indexes),
            description=read.description,
            instruction=read.instruction,
            annotations=tuple(read.others),
        )

    def check_node(self, node: NodeNode) -> NodeDecl | None:
        own = read_body(node.body, "node", self.types, self.findings)
        own.damaged = own.damaged or node.broken
        draft, inherited, implements = self._inherit(node, own)
        constraints = check_constraints(draft, inherited, self.findings)
        check_sources(draft, self.findings)
        if node.name is None:
            return None
        read = self._read(node, node.name, "node")
        return NodeDecl(
            name=node.name.text,
            **_contents(draft, constraints, read),
            implements=implements,
        )

    def check_edge(self, node: EdgeNode) -> EdgeDecl | None:
        draft = read_body(node.body, "edge", self.types, self.findings)
        draft.damaged = draft.damaged or node.broken
        constraints = check_constraints(draft, Constraints(), self.findings)
        check_sources(draft, self.findings)
        for end in (node.source, node.target):
            if end is not None:
                self._check_end(end)
        if node.name is None or node.source is None or node.target is None:
            return None
        read = self._read(node, node.name, "edge")
        return EdgeDecl(
            name=node.name.text,
            source=node.source.text,
            target=node.target.text,
            card=read.card or Card(),
            **_contents(draft, constraints, read),
        )

    def _read(self, node: NodeNode | EdgeNode, name: Name, place: str) -> ReadAnnotation:
        """The annotations of a type. Two types of a kind cannot both have been the same type."""
        read = read_annotations(node.annotations, name, place, self.findings)
        if read.rename_from is not None:
            other = self._renamed.setdefault((place, read.rename_from), name.text)
            if other != name.text:
                message = f"`{other}` is already renamed from `{read.rename_from}`"
                self.findings.add("P147", read.spans["rename_from"], message)
        return read

    def _check_end(self, end: Name) -> None:
        if end.text in self.nodes or self.damaged:
            return
        message = f"there is no node type `{end.text}`"
        if end.text in self.interfaces:
            message = f"`{end.text}` is an interface, and edges connect node types"
        elif end.text in self.edges:
            message = f"`{end.text}` is an edge type, and edges connect node types"
        self.findings.add("P105", end.span, message, Meant(end.text, self.nodes))

    def _inherit(
        self, node: NodeNode, own: BodyDraft
    ) -> tuple[BodyDraft, Constraints, tuple[str, ...]]:
        """The properties of the interfaces, then the node's own, which may repeat them."""
        draft = BodyDraft("node", {}, own.constraints, own.damaged)
        inherited = Constraints()
        origin: dict[str, str] = {}
        names: list[str] = []
        for name in node.implements:
            interface = self._find_interface(name, names, draft)
            if interface is None:
                continue
            names.append(name.text)
            for prop in interface.draft.properties.values():
                held = draft.properties.setdefault(prop.name.text, prop)
                if not _agree(held, prop):
                    other = origin[prop.name.text]
                    message = f"`{name.text}` and `{other}` disagree about `{prop.name.text}`"
                    self.findings.add("P120", name.span, message, "give it the same type in both")
                origin.setdefault(prop.name.text, name.text)
            draft.damaged = draft.damaged or interface.draft.damaged
            self._inherit_constraints(name, interface.constraints, inherited)
        for prop in own.properties.values():
            held = draft.properties.get(prop.name.text, prop)
            if not _agree(held, prop):
                other = origin[prop.name.text]
                message = f"`{other}` gives `{prop.name.text}` another type"
                self.findings.add("P120", prop.name.span, message, "leave the property out")
            draft.properties[prop.name.text] = prop
        return draft, inherited, tuple(names)

    def _inherit_constraints(
        self, name: Name, constraints: Constraints, inherited: Constraints
    ) -> None:
        if inherited.keyed and constraints.keyed and inherited.key != constraints.key:
            message = f"`{name.text}` brings a second key"
            self.findings.add("P130", name.span, message, "a type has one key")
        elif constraints.keyed:
            inherited.key, inherited.keyed = constraints.key, True
        for held, more in (
            (inherited.uniques, constraints.uniques),
            (inherited.indexes, constraints.indexes),
        ):
            held.update(more)

    def _find_interface(self, name: Name, before: list[str], draft: BodyDraft) -> _Interface | None:
        if name.text in before:
            self.findings.add("P108", name.span, f"`{name.text}` is given twice")
            return None
        found = self._checked.get(name.text)
        if found is not None:
            return found
        draft.damaged = True
        if not self.damaged:
            message = f"there is no interface `{name.text}`"
            if name.text in self.nodes:
                message = f"`{name.text}` is a node type, not an interface"
            self.findings.add("P106", name.span, message, Meant(name.text, self.interfaces))
        return None


def _agree(a: BodyProperty, b: BodyProperty) -> bool:
    """Whether two declarations of one property have the same type. A wrong one never clashes."""
    if a.decl is None or b.decl is None:
        return True
    return (a.decl.type, a.decl.nullable) == (b.decl.type, b.decl.nullable)


def _decls(draft: BodyDraft) -> tuple[PropertyDecl, ...]:
    return tuple(p.decl for p in draft.properties.values() if p.decl is not None)


def _contents(draft: BodyDraft, constraints: Constraints, read: ReadAnnotation) -> dict[str, Any]:
    """What node types and edge types declare in the same way."""
    return {
        "properties": _decls(draft),
        "key": constraints.key,
        "uniques": tuple(constraints.uniques),
        "indexes": tuple(constraints.indexes),
        "ranges": tuple(constraints.ranges.values()),
        "checks": tuple(constraints.checks),
        "description": read.description,
        "instruction": read.instruction,
        "annotations": tuple(read.others),
        "rename_from": read.rename_from,
    }
