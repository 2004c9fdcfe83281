"""Owns the short form of a schema: what somebody who writes queries has to know of it, in few
characters. What does not fit is left out in steps, and the text says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from omnigraph.model.catalog import Catalog, EdgeType, GraphType, Property
from omnigraph.model.types import type_text

_LONGEST_WORDS = 120
_LONGEST_VALUES = 60


@dataclass(frozen=True)
class TypeFacts:
    """How many entities there are, and values that some of them have, by property."""

    count: int
    examples: Mapping[str, Sequence[str]] = field(default_factory=dict)


def summarize(catalog: Catalog, facts: Mapping[str, TypeFacts], characters: int) -> str:
    """Types with their properties, descriptions, example values and counts; of large schemas first
    without the examples, then without descriptions, then without properties, and at last only as
    many types as fit."""
    for form in _FORMS:
        lines = [line for kind in catalog.types for line in form(kind, facts[kind.name])]
        text = "\n".join(lines)
        if len(text) <= characters:
            return text
    return _cut([_head(kind, facts[kind.name]) for kind in catalog.types], characters)


def _cut(lines: list[str], characters: int) -> str:
    kept: list[str] = []
    size = 0
    for number, line in enumerate(lines):
        more = f"({len(lines) - number} more types)"
        if size + len(line) + 1 + len(more) > characters:
            return "\n".join([*kept, more])
        kept.append(line)
        size += len(line) + 1
    return "\n".join(kept)


def _whole(kind: GraphType, facts: TypeFacts) -> Iterator[str]:
    yield _head(kind, facts) + _words(kind.description)
    for prop in kind.properties:
        yield _property(kind, prop) + _words(prop.description) + _values(facts, prop)


def _without_examples(kind: GraphType, facts: TypeFacts) -> Iterator[str]:
    yield _head(kind, facts) + _words(kind.description)
    for prop in kind.properties:
        yield _property(kind, prop) + _words(prop.description)


def _bare(kind: GraphType, facts: TypeFacts) -> Iterator[str]:
    yield _head(kind, facts)
    names = ", ".join(_property(kind, prop).strip() for prop in kind.properties)
    if names:
        yield f"  {names}"


def _only_names(kind: GraphType, facts: TypeFacts) -> Iterator[str]:
    names = ", ".join(prop.name for prop in kind.properties)
    yield _head(kind, facts) + (f": {names}" if names else "")


def _only_head(kind: GraphType, facts: TypeFacts) -> Iterator[str]:
    yield _head(kind, facts)


_FORMS: tuple[Callable[[GraphType, TypeFacts], Iterator[str]], ...] = (
    _whole,
    _without_examples,
    _bare,
    _only_names,
    _only_head,
)


def _head(kind: GraphType, facts: TypeFacts) -> str:
    if isinstance(kind, EdgeType):
        step = kind.name[0].lower() + kind.name[1:]
        return f"edge {kind.name}: {kind.source} -> {kind.target} ({facts.count:,}) as $a {step} $b"
    return f"node {kind.name} ({facts.count:,})"


def _property(kind: GraphType, prop: Property) -> str:
    marks = " key" if prop.name in kind.key else ""
    return f"  {prop.name}: {type_text(prop.type)}{'?' if prop.may_be_null else ''}{marks}"


def _words(text: str | None) -> str:
    return f" -- {_short(' '.join(text.split()), _LONGEST_WORDS)}" if text else ""


def _values(facts: TypeFacts, prop: Property) -> str:
    values = [_short(value, _LONGEST_VALUES) for value in facts.examples.get(prop.name, ())]
    return f"  e.g. {', '.join(values)}" if values else ""


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
