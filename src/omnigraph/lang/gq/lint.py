"""Owns warnings about queries that are allowed but probably not meant, and the summary of a
query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TypeVar

import msgspec

from omnigraph.lang.diagnostics import Diagnostic, Severity, Span, sort_diagnostics
from omnigraph.lang.gq import checked, tree
from omnigraph.lang.gq.check import check_query, queries_of
from omnigraph.lang.gq.check.kinds import kind_text
from omnigraph.lang.gq.checked import CheckedQuery, Match, NodeKind, Read
from omnigraph.lang.gq.walk import all_matches, patterns_of, used_variables
from omnigraph.model.catalog import Catalog, NodeType
from omnigraph.model.types import type_text

N = TypeVar("N", tree.Variable, tree.PathName)


class ColumnInfo(msgspec.Struct, frozen=True):
    name: str
    kind: str
    nullable: bool


class QueryInfo(msgspec.Struct, frozen=True):
    """What a query takes, returns, reads and writes, with sorted type names. `name` is None for a
    bare body."""

    name: str | None
    kind: str
    parameters: tuple[ColumnInfo, ...]
    columns: tuple[ColumnInfo, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]


class Linted(msgspec.Struct, frozen=True):
    queries: tuple[QueryInfo, ...]
    diagnostics: tuple[Diagnostic, ...]


def lint_file(file: tree.File, catalog: Catalog) -> Linted:
    """Warnings and summaries of the queries that have no errors."""
    found: list[QueryInfo] = []
    warnings: list[Diagnostic] = []
    mutations: list[tree.Mutation] = []
    for query in queries_of(file):
        if query.is_broken:
            continue
        result = check_query(query, catalog)
        if result.query is None:
            continue
        found.append(describe_query(result.query, catalog))
        warnings.extend(_unused(query, result.unused))
        if isinstance(query.body, tree.Read):
            for part, read in zip(query.body.parts, result.query.reads, strict=True):
                warnings.extend(_cross_products(part, read.match))
        elif isinstance(query.body, tuple):
            mutations.extend(query.body)
            warnings.extend(_without_parameters(query))
    warnings.extend(_never_set(mutations, catalog))
    return Linted(tuple(found), sort_diagnostics(warnings))


def describe_query(query: CheckedQuery, catalog: Catalog) -> QueryInfo:
    parameters = tuple(ColumnInfo(p.name, type_text(p.kind), p.nullable) for p in query.parameters)
    columns = tuple(
        ColumnInfo(c.name, kind_text(c.type.kind), c.type.nullable) for c in query.columns
    )
    if isinstance(query.body, Read):
        reads = sorted({name for read in query.reads for name in _read_types(read)})
        return QueryInfo(query.name, "read", parameters, columns, tuple(reads), ())
    writes = sorted({name for m in query.body for name in _written(m, catalog)})
    reads = sorted({m.type.name for m in query.body if isinstance(m, _SEARCHING)})
    return QueryInfo(query.name, "mutation", parameters, (), tuple(reads), tuple(writes))


_SEARCHING = (checked.Update, checked.Delete)


def _read_types(read: Read) -> Iterator[str]:
    values = [column.value for column in read.columns] + [key.value for key in read.order]
    if read.group is not None:
        values += [*read.group.keys, *read.group.aggregates]
    matches = [read.match, *(match for value in values for match in patterns_of(value))]
    for outermost in matches:
        for match in all_matches(outermost):
            for variable in match.variables:
                yield from (kind.name for kind in variable.kind.types)
            for traversal in match.traversals:
                yield from (step.edge.name for step in traversal.steps)


def _written(mutation: checked.Mutation, catalog: Catalog) -> Iterator[str]:
    """Deleting nodes deletes their edges too."""
    yield mutation.type.name
    if isinstance(mutation, checked.Delete) and isinstance(mutation.type, NodeType):
        name = mutation.type.name
        yield from (e.name for e in catalog.edges if name in (e.source, e.target))


def _warn(code: str, span: Span, message: str, help_: str | None = None) -> Diagnostic:
    return Diagnostic(
        code=code, message=message, span=span, severity=Severity.WARNING, suggestion=help_
    )


def _never_set(mutations: list[tree.Mutation], catalog: Catalog) -> Iterator[Diagnostic]:
    """Properties that some insert leaves null and that no statement of the file sets."""
    given: dict[str, set[str]] = {}
    inserts: dict[str, tree.Insert] = {}
    for mutation in mutations:
        if isinstance(mutation, tree.Insert):
            inserts.setdefault(mutation.type.text, mutation)
        if not isinstance(mutation, tree.Delete):
            names = {assignment.name.text for assignment in mutation.assignments}
            given.setdefault(mutation.type.text, set()).update(names)
    for name, insert in inserts.items():
        kind = catalog.find(name)
        empty = [
            f"`{prop.name}`"
            for prop in (kind.properties if kind is not None else ())
            if prop.nullable and not (prop.name in given[name] or prop.default or prop.embed)
        ]
        if empty:
            verb = "stay" if len(empty) > 1 else "stays"
            message = f"{', '.join(empty)} of `{name}` {verb} null: no statement here sets it"
            yield _warn("L201", insert.type.span, message)


def _without_parameters(query: tree.Query) -> Iterator[Diagnostic]:
    if query.name is not None and not query.parameters:
        message = f"`{query.name.text}` writes the same values each time"
        yield _warn("L202", query.name.span, message, "take them as parameters")


def _cross_products(read: tree.Read, match: Match) -> Iterator[Diagnostic]:
    spans = {v.name: v.span for v in _variables(read)}
    names = {v.id: v.name for m in all_matches(match) for v in m.variables}
    for pattern in all_matches(match):
        groups = _components(pattern)
        if len(groups) < 2:
            continue
        first, second = (min(group) for group in groups[:2])
        shown = " and ".join(f"`${names[i] or '_'}`" for i in (first, second))
        message = f"nothing joins {shown}: every row of the one meets every row of the other"
        span = spans.get(names[second] or "_", read.span)
        yield _warn("L203", span, message, "join them by a traversal or an equality")


def _components(match: Match) -> list[set[int]]:
    """Groups of connected variables. Everything that depends on the outside is one group."""
    groups = [{v.id} for v in match.variables if isinstance(v.kind, NodeKind)]
    ties = [{t.source, t.target} for t in match.traversals]
    ties += [set(used_variables(f)) for f in match.filters]
    outer = set(match.outer)
    for tie in ties:
        # Everything outside counts as one variable.
        tied = tie | (outer if tie & outer else set())
        touched = [group for group in groups if group & tied]
        merged = set().union(tied, *touched)
        groups = [merged, *(group for group in groups if group not in touched)]
    own = {v.id for v in match.variables if isinstance(v.kind, NodeKind)}
    return sorted((g & own for g in groups if g & own), key=min)


def _unused(query: tree.Query, parameters: tuple[str, ...]) -> Iterator[Diagnostic]:
    for parameter in query.parameters:
        if parameter.variable.name in parameters:
            message = f"the parameter `${parameter.variable.name}` is never used"
            yield _warn("L204", parameter.variable.span, message)
    if not isinstance(query.body, tree.Read):
        return
    for part in query.body.parts:
        yield from _unused_variables(part if query.body.others else query.body, query)


def _unused_variables(read: tree.Read, query: tree.Query) -> Iterator[Diagnostic]:
    declared = {parameter.variable.name for parameter in query.parameters}
    seen = [v for v in _variables(read) if v.name not in declared]
    counts = Counter(variable.name for variable in seen)
    paths = {path.span for path in _paths(read)}
    for variable in seen:
        if counts[variable.name] == 1 and not variable.is_anonymous:
            message = f"`${variable.name}` is never used"
            is_path = variable.span in paths
            help_ = "leave it out" if is_path else "write `$_` if it does not matter"
            yield _warn("L204", variable.span, message, help_)


def _variables(value: object) -> Iterator[tree.Variable]:
    """Every occurrence of a variable, in text order but for the names of paths."""
    return _of_type(tree.Variable, value)


def _paths(value: object) -> Iterator[tree.PathName]:
    return _of_type(tree.PathName, value)


def _of_type(wanted: type[N], value: object) -> Iterator[N]:
    stack = [value]
    while stack:
        top = stack.pop()
        if isinstance(top, wanted):
            yield top
        elif isinstance(top, tuple):
            stack.extend(reversed(top))
        elif isinstance(top, msgspec.Struct) and not isinstance(top, Span):
            stack.extend(getattr(top, name) for name in reversed(top.__struct_fields__))
