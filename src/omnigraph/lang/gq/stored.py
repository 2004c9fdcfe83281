"""Owns what a stored query says under a schema: what it takes, gives, reads and writes, or every
mistake in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from omnigraph.lang.diagnostics import Diagnostic, Severity, Span, render_all
from omnigraph.lang.gq import compile_query
from omnigraph.lang.gq.check import queries_of
from omnigraph.lang.gq.checked import CheckedQuery
from omnigraph.lang.gq.lint import ColumnInfo, describe_query
from omnigraph.lang.gq.parse import parse_queries
from omnigraph.lang.gq.tree import Query
from omnigraph.model.catalog import Catalog
from omnigraph.model.types import type_text

_LEADING: Final = re.compile(r"(?:\s*(?://[^\n]*(?:\n|\Z)|/\*.*?\*/))+", re.DOTALL)
_MARKS: Final = re.compile(r"^\s*(?:/\*+|\*+/|//+|\*+)?\s?|\s*\*+/\s*$")


class QueryParameter(msgspec.Struct, frozen=True):
    """`kind` is the type as a query spells it. One that is not `required` has a default, or may be
    null."""

    name: str
    kind: str
    nullable: bool
    required: bool
    default: Any = None


class StoredQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query of the catalog. `kind` is "read" or "mutation"; a mutation has no `columns`. `reads`
    and `writes` are types by name, sorted. `problem` says what is wrong with a query that the
    schema does not allow: then nothing else is known of it."""

    name: str
    text: str
    kind: str = "read"
    parameters: tuple[QueryParameter, ...] = ()
    columns: tuple[ColumnInfo, ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    description: str | None = None
    instruction: str | None = None
    problem: str = ""

    @property
    def mutation(self) -> bool:
        return self.kind == "mutation"


class BrokenQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A stored query that a schema does not allow, and why."""

    name: str
    message: str
    diagnostics: tuple[Diagnostic, ...] = ()


def check_stored(name: str, text: str, catalog: Catalog) -> CheckedQuery | BrokenQuery:
    """A text is one query. If it has a header, this has the name under which it is stored."""
    parsed = parse_queries(text)
    if not parsed.diagnostics:
        queries = queries_of(parsed.file)
        if len(queries) != 1 or len(parsed.file.items) != 1 or not parsed.file.queries:
            return _wrong(name, text, "a stored query is one query, and nothing beside it")
        header = queries[0].name
        if header is not None and header.text != name:
            reason = f"the query `{header.text}` cannot be stored as `{name}`"
            return _wrong(name, text, reason, header.span)
    checked = compile_query(text, catalog)
    if checked.query is None:
        errors = tuple(d for d in checked.diagnostics if d.severity == "error")
        return BrokenQuery(name=name, message=_shown(name, text, errors), diagnostics=errors)
    return checked.query


def find_broken(queries: Mapping[str, str], catalog: Catalog) -> tuple[BrokenQuery, ...]:
    """Those of the queries that the schema does not allow, by name."""
    found = (check_stored(name, queries[name], catalog) for name in sorted(queries))
    return tuple(one for one in found if isinstance(one, BrokenQuery))


def describe_stored(name: str, text: str, catalog: Catalog) -> StoredQuery:
    query = check_stored(name, text, catalog)
    if isinstance(query, BrokenQuery):
        return StoredQuery(name=name, text=text, problem=query.message)
    info = describe_query(query, catalog)
    parameters = tuple(
        QueryParameter(
            name=p.name,
            kind=type_text(p.kind),
            nullable=p.nullable,
            required=not (p.nullable or p.has_default),
            default=p.default,
        )
        for p in query.parameters
    )
    return StoredQuery(
        name=name,
        text=text,
        kind=info.kind,
        parameters=parameters,
        columns=info.columns,
        reads=info.reads,
        writes=info.writes,
        description=query.description or _comment(text),
        instruction=query.instruction,
    )


def split_queries(text: str) -> Iterator[tuple[str | None, str]]:
    """The queries of a text that has no mistakes, each by its name with the comments before it."""
    start = 0
    for item in parse_queries(text).file.items:
        end = item.span.end
        if isinstance(item, Query):
            yield item.name.text if item.name else None, f"{text[start:end].strip()}\n"
        start = end


def _wrong(name: str, text: str, reason: str, span: Span | None = None) -> BrokenQuery:
    place = span or Span(0, min(1, len(text)))
    found = (Diagnostic(code="Q013", message=reason, span=place, severity=Severity.ERROR),)
    return BrokenQuery(name=name, message=_shown(name, text, found), diagnostics=found)


def _shown(name: str, text: str, errors: tuple[Diagnostic, ...]) -> str:
    return render_all(list(errors), text, name)


def _comment(text: str) -> str | None:
    """The comment with which the text begins, without its marks."""
    found = _LEADING.match(text)
    if found is None:
        return None
    lines = [_MARKS.sub("", line).strip() for line in found[0].splitlines()]
    return " ".join(line for line in lines if line) or None
