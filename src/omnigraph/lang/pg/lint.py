"""Owns advice on schemas that are correct but contain something superfluous or probably not
meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from omnigraph.lang.diagnostics import Diagnostic, Severity, Span, sort_diagnostics
from omnigraph.lang.pg.check.annotations import KNOWN
from omnigraph.lang.pg.tree import (
    AnnotationNode,
    ConstraintNode,
    EdgeNode,
    EnumNode,
    InterfaceNode,
    LiteralNode,
    Name,
    NodeNode,
    PropertyNode,
    RangeNode,
    SchemaTree,
    Wreck,
)
from omnigraph.lang.suggestions import near

Declared = InterfaceNode | NodeNode | EdgeNode


class _Listing(msgspec.Struct, frozen=True):
    """`@key`, `@unique` or `@index`, wherever it was written."""

    kind: str
    names: tuple[str, ...]
    span: Span


def lint_schema(tree: SchemaTree) -> tuple[Diagnostic, ...]:
    """Warnings for a tree that the checker accepts. They never change the meaning of the schema."""
    declared = [d for d in tree.declarations if not isinstance(d, Wreck)]
    interfaces = {d.name.text: d for d in declared if isinstance(d, InterfaceNode) and d.name}
    found = [*_unused(declared, interfaces), *_type_names(declared)]
    for declaration in declared:
        found += _annotations(declaration)
        found += _listings(declaration, interfaces)
        found += _values(declaration)
    return sort_diagnostics(found)


def _warn(code: str, span: Span, message: str, help_: str | None = None) -> Diagnostic:
    return Diagnostic(
        code=code, message=message, span=span, suggestion=help_, severity=Severity.WARNING
    )


def _properties(declaration: Declared) -> Iterator[PropertyNode]:
    for item in declaration.body.items if declaration.body else ():
        if isinstance(item, PropertyNode):
            yield item


def _unused(declared: list[Declared], interfaces: dict[str, InterfaceNode]) -> Iterator[Diagnostic]:
    used = {name.text for d in declared if isinstance(d, NodeNode) for name in d.implements}
    for name, interface in interfaces.items():
        if name not in used and interface.name:
            message = f"no node type implements `{name}`"
            yield _warn("L101", interface.name.span, message, "implement it or leave it out")


def _type_names(declared: list[Declared]) -> Iterator[Diagnostic]:
    nodes = [d.name for d in declared if isinstance(d, NodeNode | InterfaceNode) and d.name]
    edges = [d.name for d in declared if isinstance(d, EdgeNode) and d.name]
    yield from _same_but_case(nodes, "types")
    yield from _same_but_case(edges, "edges, which queries name in any case,")
    node_names = {name.text for name in nodes}
    for name in edges:
        if name.text in node_names:
            message = f"a node type is called `{name.text}` too"
            yield _warn("L111", name.span, message, "an edge is easier to read as a verb")


def _same_but_case(names: Iterable[Name], what: str) -> Iterator[Diagnostic]:
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.text.casefold(), name.text)
        if other != name.text:
            message = f"the {what} `{other}` and `{name.text}` differ only in case"
            yield _warn("L110", name.span, message)


def _annotations(declaration: Declared) -> Iterator[Diagnostic]:
    nodes: list[AnnotationNode] = [*declaration.annotations]
    for p in _properties(declaration):
        nodes += p.annotations
    for node in nodes:
        name = node.name.text
        if name not in KNOWN and (meant := near(name, sorted(KNOWN))):
            message = f"`@{name}` is kept but means nothing"
            yield _warn("L109", node.span, message, f"did you mean `@{meant}`?")
        if name == "card" and node.arguments and _is_whole(node.arguments[0].value):
            message = "every edge type has the cardinality `0..`"
            yield _warn("L108", node.span, message, "leave `@card` out")


def _is_whole(value: object) -> bool:
    low = value.low if isinstance(value, RangeNode) else None
    return isinstance(value, RangeNode) and value.high is None and not (low and low.value)


def _own_listings(declaration: Declared) -> Iterator[_Listing]:
    for item in declaration.body.items if declaration.body else ():
        match item:
            case PropertyNode():
                for node in item.annotations:
                    if node.name.text in {"key", "unique", "index"}:
                        yield _Listing(node.name.text, (item.name.text,), node.span)
            case ConstraintNode() if item.name.text in {"key", "unique", "index"}:
                names = tuple(a.value.text for a in item.arguments if isinstance(a.value, Name))
                yield _Listing(item.name.text, names, item.span)
            case _:
                pass


def _listings(declaration: Declared, interfaces: dict[str, InterfaceNode]) -> Iterator[Diagnostic]:
    """Declarations that the key, or another constraint, already covers: a unique property is unique
    together with any other, and needs no further index."""
    own = list(_own_listings(declaration))
    inherited = [
        listing
        for name in (declaration.implements if isinstance(declaration, NodeNode) else ())
        if name.text in interfaces
        for listing in _own_listings(interfaces[name.text])
    ]
    for listing in own:
        if listing.kind == "key":
            continue
        others = [other for other in (*inherited, *own) if other is not listing]
        warning = _superfluous(listing, others)
        if warning is not None:
            yield warning


def _superfluous(listing: _Listing, others: list[_Listing]) -> Diagnostic | None:
    text = f"`@{listing.kind}({', '.join(listing.names)})`"
    for other in others:
        reason = _implied(listing, other)
        if reason:
            shown = f"`@{other.kind}({', '.join(other.names)})`"
            return _warn(reason, listing.span, f"{text} is implied by {shown}", "leave it out")
    return None


def _implied(listing: _Listing, other: _Listing) -> str | None:
    """The code for how one follows from the other."""
    same = set(other.names) == set(listing.names)
    # If two say the same, only the later one is superfluous.
    later = not same or other.span < listing.span
    if listing.kind == "unique":
        if not set(other.names) <= set(listing.names):
            return None
        return {"key": "L102", "unique": "L105" if later else None}.get(other.kind)
    if not same:
        return None
    return {"key": "L103", "unique": "L104", "index": "L105" if later else None}[other.kind]


def _values(declaration: Declared) -> Iterator[Diagnostic]:
    yield from _same_but_case((p.name for p in _properties(declaration)), "properties")
    uniques = {listing.names for listing in _own_listings(declaration) if listing.kind == "unique"}
    for p in _properties(declaration):
        shape = p.type.shape
        if isinstance(shape, EnumNode):
            values = [Name(value.text, value.span) for value in shape.values]
            yield from _same_but_case(values, "values")
            if len(values) == 1:
                message = f"`{p.name.text}` can only ever be `{values[0].text}`"
                yield _warn("L106", p.type.span, message)
        for node in p.annotations:
            if node.name.text == "default" and p.type.nullable:
                message = f"`{p.name.text}` has a default, so it is null only if null is given"
                yield _warn("L107", node.span, message, "remove the `?` if it is never null")
            if node.name.text == "default" and (p.name.text,) in uniques:
                message = f"only one entity can have the default of `{p.name.text}`"
                yield _warn("L112", node.span, message)
    for item in declaration.body.items if declaration.body else ():
        if isinstance(item, ConstraintNode) and _is_empty_check(item):
            message = "every text matches the empty pattern"
            yield _warn("L108", item.span, message, "leave the check out")


def _is_empty_check(node: ConstraintNode) -> bool:
    value = node.arguments[-1].value
    return node.name.text == "check" and isinstance(value, LiteralNode) and value.value == ""
