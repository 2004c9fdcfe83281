"""Owns annotations: what each known one may contain and where. Unknown ones are kept as they
are."""

from __future__ import annotations

import math
import re
from typing import Final

import msgspec

from omnigraph.lang.diagnostics import Span
from omnigraph.lang.findings import Findings
from omnigraph.lang.pg.tree import AnnotationNode, Argument, LiteralNode, Name, RangeNode
from omnigraph.lang.tokens import SMALLEST_INTEGER
from omnigraph.model.schema import Annotation, Card, Embed, Literal

ON_PROPERTIES: Final = frozenset(
    {"key", "unique", "index", "default", "embed", "description", "instruction", "rename_from"}
)
ON_TYPES: Final = frozenset({"description", "instruction", "rename_from"})
CONSTRAINT_FORMS: Final = {
    "key": "@key(a, b)",
    "unique": "@unique(a, b)",
    "index": "@index(a, b)",
    "range": "@range(a, 0..100)",
    "check": '@check(a, "^[a-z]+$")',
}
KNOWN: Final = ON_PROPERTIES | ON_TYPES | frozenset({"range", "check", "card"})
_TYPE_NAME: Final = re.compile(r"[A-Z][A-Za-z0-9_]*", re.ASCII)
_PROPERTY_NAME: Final = re.compile(r"[a-z_][A-Za-z0-9_]*", re.ASCII)


class ReadAnnotation(msgspec.Struct):
    """The annotations of one type or property. `flags` are @key, @unique and @index. `spans` are
    the places of the known ones."""

    flags: list[AnnotationNode] = []
    default: LiteralNode | Name | None = None
    embed: Embed | None = None
    card: Card | None = None
    description: str | None = None
    instruction: str | None = None
    rename_from: str | None = None
    others: list[Annotation] = []
    spans: dict[str, Span] = {}


def read_annotations(
    nodes: tuple[AnnotationNode, ...], owner: Name, place: str, findings: Findings
) -> ReadAnnotation:
    """`place` is "property", "node", "edge" or "interface"."""
    read = ReadAnnotation()
    allowed = ON_PROPERTIES if place == "property" else ON_TYPES
    if place == "edge":
        allowed |= {"card"}
    elif place == "interface":
        allowed -= {"rename_from"}
    for node in nodes:
        name = node.name.text
        if name in KNOWN and name not in allowed:
            _misplaced(node, owner, place, findings)
        elif name in read.spans:
            findings.add("P140", node.span, f"`@{name}` is given twice")
        elif name in KNOWN:
            read.spans[name] = node.span
            _read_known(node, owner, place, read, findings)
        else:
            _keep(node, read, findings)
    return read


def _misplaced(node: AnnotationNode, owner: Name, place: str, findings: Findings) -> None:
    name = node.name.text
    if name in CONSTRAINT_FORMS and place == "property":
        form = CONSTRAINT_FORMS[name].replace("(a,", f"({owner.text},")
        message = f"`@{name}` of a property needs arguments"
        findings.add("P142", node.span, message, f"write `{form}`")
        return
    help_ = None
    if name in CONSTRAINT_FORMS:
        help_ = f"put `{CONSTRAINT_FORMS[name]}` into the body"
    elif name == "card":
        help_ = "cardinality belongs to edge types"
    elif name == "rename_from":
        help_ = "an interface has no data of its own: just rename it"
    elif name in ON_PROPERTIES:
        help_ = "put it after a property"
    article = "an" if place in {"edge", "interface"} else "a"
    what = place if place in {"property", "interface"} else f"{place} type"
    findings.add("P141", node.span, f"`@{name}` does not fit {article} {what}", help_)


def _read_known(
    node: AnnotationNode, owner: Name, place: str, read: ReadAnnotation, findings: Findings
) -> None:
    match node.name.text:
        case "key" | "unique" | "index":
            read.flags.append(node)
        case "default":
            read.default = _read_default(node, findings)
        case "embed":
            read.embed = _read_embed(node, findings)
        case "card":
            read.card = _read_card(node, findings)
        case "description":
            read.description = _read_text(node, findings)
        case "instruction":
            read.instruction = _read_text(node, findings)
        case _:
            read.rename_from = _read_rename(node, owner, place, findings)


def _wrong(node: AnnotationNode, form: str, findings: Findings) -> None:
    message = f"`@{node.name.text}` does not take these arguments"
    if not node.arguments:
        message = f"`@{node.name.text}` needs an argument"
    findings.add("P142", node.span, message, f"write `{form}`")


def _only(node: AnnotationNode) -> LiteralNode | RangeNode | Name | None:
    """The argument, if there is exactly one and it has no name."""
    if node.arguments is None or len(node.arguments) != 1:
        return None
    argument = node.arguments[0]
    return argument.value if argument.name is None else None


def _read_text(node: AnnotationNode, findings: Findings) -> str | None:
    value = _only(node)
    if isinstance(value, LiteralNode) and isinstance(value.value, str):
        return value.value
    _wrong(node, f'@{node.name.text}("…")', findings)
    return None


def _read_default(node: AnnotationNode, findings: Findings) -> LiteralNode | Name | None:
    value = _only(node)
    if isinstance(value, LiteralNode | Name):
        return value
    _wrong(node, "@default(value)", findings)
    return None


def _read_embed(node: AnnotationNode, findings: Findings) -> Embed | None:
    source: str | None = None
    model: str | None = None
    arguments = node.arguments or ()
    if arguments and arguments[0].name is None:
        source = _word(arguments[0])
    sound = source is not None and len(arguments) <= 2
    for argument in arguments[1:]:
        if argument.name is not None and argument.name.text == "model":
            model = _word(argument) if isinstance(argument.value, LiteralNode) else None
        sound = sound and bool(model)
    if source is None or not sound:
        _wrong(node, '@embed("source", model="name")', findings)
        return None
    return Embed(source, model)


def _word(argument: Argument) -> str | None:
    value = argument.value
    if isinstance(value, Name):
        return value.text
    if isinstance(value, LiteralNode) and isinstance(value.value, str):
        return value.value
    return None


def _read_card(node: AnnotationNode, findings: Findings) -> Card | None:
    value = _only(node)
    low = value.low.value if isinstance(value, RangeNode) and value.low else None
    high = value.high.value if isinstance(value, RangeNode) and value.high else None
    if not isinstance(low, int) or not isinstance(high, int | None):
        _wrong(node, "@card(0..1)", findings)
        return None
    if low < 0 or (high is not None and (high < low or high == 0)):
        message = "no edge can meet this cardinality"
        findings.add("P143", node.span, message, "the smaller number comes first: `@card(1..5)`")
        return None
    return Card(low, high)


def _read_rename(node: AnnotationNode, owner: Name, place: str, findings: Findings) -> str | None:
    value = _only(node)
    if isinstance(value, Name):
        _wrong(node, f'@rename_from("{value.text}")', findings)
        return None
    if not isinstance(value, LiteralNode) or not isinstance(value.value, str):
        _wrong(node, '@rename_from("old_name")', findings)
        return None
    pattern = _PROPERTY_NAME if place == "property" else _TYPE_NAME
    if not pattern.fullmatch(value.value):
        message = f"no {'property' if place == 'property' else 'type'} was ever called that"
        findings.add("P147", value.span, message)
    elif value.value == owner.text:
        message = f"`{owner.text}` already has this name"
        findings.add("P147", node.span, message, "leave `@rename_from` out")
    else:
        return value.value
    return None


def _keep(node: AnnotationNode, read: ReadAnnotation, findings: Findings) -> None:
    """Unknown annotations must still have a form: a value, or names with values."""
    arguments = node.arguments or ()
    named: dict[str, Literal] = {}
    value: Literal = None
    for number, argument in enumerate(arguments):
        content = _content(argument)
        name = argument.name.text if argument.name else None
        if isinstance(content, RangeNode) or (name is None) != (number == 0) or name in named:
            form = f"@{node.name.text}(value, name=value)"
            message = "an annotation takes one value and then names with values"
            findings.add("P142", argument.span, message, f"write `{form}`")
            return
        if not _fits_storage(content):
            message = f"the smallest integer that can be stored is {SMALLEST_INTEGER}"
            findings.add("P006", argument.value.span, message)
            return
        held = content if isinstance(content, tuple) else (content,)
        if any(isinstance(one, float) and math.isinf(one) for one in held):
            message = "this number is larger than any that can be stored"
            findings.add("P006", argument.value.span, message)
            return
        if name is None:
            value = content
        else:
            named[name] = content
    kept = Annotation(node.name.text, value, node.arguments is not None, tuple(named.items()))
    if kept in read.others:
        findings.add("P140", node.span, f"`@{node.name.text}` is given twice with the same value")
    else:
        read.others.append(kept)


def _fits_storage(content: Literal) -> bool:
    """The lexer, which does not know signs, has checked only the upper bound."""
    atoms = content if isinstance(content, tuple) else (content,)
    return all(not isinstance(atom, int) or atom >= SMALLEST_INTEGER for atom in atoms)


def _content(argument: Argument) -> Literal | RangeNode:
    match argument.value:
        case Name(text=text):
            return text
        case LiteralNode(value=value):
            return value
        case RangeNode():
            return argument.value
