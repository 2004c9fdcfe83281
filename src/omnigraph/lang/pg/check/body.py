"""Owns the properties of a body: their names, types and annotations, before any constraint."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Final, assert_never

import msgspec

from omnigraph.lang.diagnostics import Span
from omnigraph.lang.findings import Findings, Meant
from omnigraph.lang.pg.check.annotations import ReadAnnotation, read_annotations
from omnigraph.lang.pg.check.types import resolve_type
from omnigraph.lang.pg.tree import (
    AnnotationNode,
    Body,
    ConstraintNode,
    LiteralNode,
    Name,
    PropertyNode,
    Wreck,
)
from omnigraph.lang.values import MisfitError, fit_value
from omnigraph.model.analysis import ANALYSES, ANNOTATION
from omnigraph.model.schema import Default, Embed, Literal, PropertyDecl
from omnigraph.model.types import (
    Base,
    EnumType,
    ListType,
    PropertyType,
    ScalarType,
    VectorType,
)

RESERVED_WORDS: Final = frozenset({"and", "or", "not", "is", "in", "null", "true", "false"})
_RESERVED_NAMES: Final = {
    "node": frozenset({"id"}),
    "interface": frozenset({"id"}),
    "edge": frozenset({"id", "src", "dst", "from", "to"}),
}
_WRONG_CASE: Final = re.compile(r"[A-Z]", re.ASCII)


class BodyProperty(msgspec.Struct, frozen=True):
    """`decl` is None if the name is known but the rest of the property is wrong."""

    name: Name
    decl: PropertyDecl | None
    default_span: Span | None = None
    embed_span: Span | None = None


class Flag(msgspec.Struct, frozen=True):
    """`@key`, `@unique` or `@index` of one property, at its place among the constraints."""

    name: str
    property: str
    span: Span


class BodyDraft(msgspec.Struct):
    """A body while it is checked. `damaged` means that part of it could not be read, so names that
    seem to be missing may exist."""

    kind: str
    properties: dict[str, BodyProperty] = {}
    constraints: list[Flag | ConstraintNode] = []
    damaged: bool = False

    def decl(self, name: str) -> PropertyDecl | None:
        found = self.properties.get(name)
        return found.decl if found else None


def read_body(body: Body | None, kind: str, types: Container[str], findings: Findings) -> BodyDraft:
    draft = BodyDraft(kind)
    for item in body.items if body else ():
        match item:
            case PropertyNode():
                _read_property(item, draft, types, findings)
            case ConstraintNode():
                draft.constraints.append(item)
            case Wreck():
                draft.damaged = True
    _check_renames(draft, body, findings)
    return draft


def _read_property(
    node: PropertyNode, draft: BodyDraft, types: Container[str], findings: Findings
) -> None:
    name = node.name
    sound = _check_name(name, draft, findings)
    read = read_annotations(node.annotations, name, "property", findings)
    kind = resolve_type(node.type, types, findings)
    decl: PropertyDecl | None = None
    if kind is not None:
        _check_analyzer(node.annotations, kind, findings)
        decl = PropertyDecl(
            name=name.text,
            type=kind,
            nullable=node.type.nullable,
            default=_check_default(read, kind, findings),
            embed=_check_embed(read, kind, findings),
            description=read.description,
            instruction=read.instruction,
            annotations=tuple(read.others),
            rename_from=read.rename_from,
        )
    if name.text in draft.properties:
        findings.add("P102", name.span, f"there is already a property `{name.text}`")
        return
    spans = read.spans
    found = BodyProperty(name, decl if sound else None, spans.get("default"), spans.get("embed"))
    draft.properties[name.text] = found
    draft.constraints.extend(_flag(flag, name) for flag in read.flags)


def _check_analyzer(
    nodes: tuple[AnnotationNode, ...], kind: PropertyType, findings: Findings
) -> None:
    """`@analyzer("english")` is kept like any other annotation, and search knows the name."""
    given_here = [node for node in nodes if node.name.text == ANNOTATION]
    for node in given_here[1:]:
        findings.add("P140", node.span, f"`@{ANNOTATION}` is given twice")
    for node in given_here:
        arguments = node.arguments or ()
        value = arguments[0].value if len(arguments) == 1 else None
        given = value.value if isinstance(value, LiteralNode) else None
        if kind != ScalarType(Base.STRING):
            findings.add("P141", node.span, f"`@{ANNOTATION}` says how a String is searched")
        elif not isinstance(given, str) or given not in ANALYSES:
            message = f"`@{ANNOTATION}` names one of: {', '.join(ANALYSES)}"
            meant = Meant(given, list(ANALYSES)) if isinstance(given, str) else None
            findings.add("P142", node.span, message, meant)


def _flag(node: AnnotationNode, name: Name) -> Flag:
    return Flag(node.name.text, name.text, node.span)


def _check_name(name: Name, draft: BodyDraft, findings: Findings) -> bool:
    text = name.text
    if text in RESERVED_WORDS:
        message = f"`{text}` is a reserved word and cannot name a property"
    elif text.startswith("_"):
        message = "property names that start with `_` are reserved for the system"
    elif text in _RESERVED_NAMES[draft.kind]:
        message = f"every {draft.kind} already has `{text}`"
        if text in {"from", "to"}:
            message = f"`{text}` names an end of every edge"
    elif _WRONG_CASE.match(text):
        lower = text[0].lower() + text[1:]
        message = "property names begin with a small letter"
        findings.add("P104", name.span, message, f"write `{lower}`")
        return False
    else:
        return True
    findings.add("P103", name.span, message, "choose another name")
    return False


def _check_default(read: ReadAnnotation, kind: PropertyType, findings: Findings) -> Default | None:
    node = read.default
    if node is None:
        return None
    if isinstance(kind, VectorType) or kind == ScalarType(Base.BLOB):
        what = "vector" if isinstance(kind, VectorType) else "blob"
        findings.add("P145", read.spans["default"], f"a {what} property cannot have a default")
        return None
    value: Literal = node.value if isinstance(node, LiteralNode) else node.text
    if isinstance(node, Name) and not isinstance(kind, EnumType):
        findings.add("P144", node.span, f"`{node.text}` is not a value", f'write `"{node.text}"`')
        return None
    if value is None:
        message = "null is no default: a nullable property is null when it is left out"
        findings.add("P144", node.span, message, "leave `@default` out")
        return None
    try:
        return Default(fit_value(value, kind))
    except MisfitError as misfit:
        message = f"the default does not fit the property: {misfit}"
        help_ = Meant(str(value), kind.values) if isinstance(kind, EnumType) else None
        findings.add("P144", node.span, message, help_)
        return None


def _check_embed(read: ReadAnnotation, kind: PropertyType, findings: Findings) -> Embed | None:
    if read.embed is not None and not isinstance(kind, VectorType):
        message = "`@embed` fits only a vector property"
        findings.add("P141", read.spans["embed"], message, "make its type `Vector(n)`")
        return None
    return read.embed


def check_sources(draft: BodyDraft, findings: Findings) -> None:
    """The source of each embedding must be a String of the same type."""
    for found in draft.properties.values():
        if found.decl is None or found.decl.embed is None or found.embed_span is None:
            continue
        source = found.decl.embed.source
        if source in draft.properties:
            decl = draft.decl(source)
            if decl is not None and decl.type != ScalarType(Base.STRING):
                message = f"`{source}` is not a String, so it cannot be embedded"
                findings.add("P146", found.embed_span, message)
        elif not draft.damaged:
            strings = [
                name
                for name, p in draft.properties.items()
                if p.decl is not None and p.decl.type == ScalarType(Base.STRING)
            ]
            message = f"there is no property `{source}` to embed"
            findings.add("P146", found.embed_span, message, Meant(source, strings))


def _check_renames(draft: BodyDraft, body: Body | None, findings: Findings) -> None:
    """Two properties cannot both have been the same property."""
    seen: dict[str, str] = {}
    for item in body.items if body else ():
        if not isinstance(item, PropertyNode):
            continue
        decl = draft.decl(item.name.text)
        if decl is None or decl.rename_from is None:
            continue
        other = seen.setdefault(decl.rename_from, decl.name)
        if other != decl.name:
            message = f"`{other}` is already renamed from `{decl.rename_from}`"
            findings.add("P147", item.span, message)


def describe_type(kind: PropertyType, nullable: bool) -> str:
    """A type in the words of a reader."""
    match kind:
        case ScalarType(base=base):
            text = base.value
        case ListType():
            text = "list"
        case EnumType():
            text = "enum"
        case VectorType():
            text = "vector"
        case _:
            assert_never(kind)
    return f"nullable {text}" if nullable else text
