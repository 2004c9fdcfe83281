"""Owns the static rules of `.gq`: a syntax tree becomes checked queries, or all errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from omnigraph.lang.diagnostics import Diagnostic
from omnigraph.lang.findings import Findings, Meant
from omnigraph.lang.gq import tree
from omnigraph.lang.gq.check.mutations import check_mutation
from omnigraph.lang.gq.check.names import Names
from omnigraph.lang.gq.check.parameters import check_parameters
from omnigraph.lang.gq.check.returns import check_part
from omnigraph.lang.gq.check.scope import Context
from omnigraph.lang.gq.check.unions import check_union
from omnigraph.lang.gq.checked import CheckedQuery
from omnigraph.model.catalog import Catalog

MOST_CLAUSES: Final = 1_000
MOST_COLUMNS: Final = 1_000
MOST_STATEMENTS: Final = 10_000


class Checked(msgspec.Struct, frozen=True):
    """`query` is None exactly if there is a diagnostic. `unused` lists parameters."""

    query: CheckedQuery | None
    diagnostics: tuple[Diagnostic, ...]
    unused: tuple[str, ...] = ()


class CheckedFile(msgspec.Struct, frozen=True):
    """The queries without errors, in text order, with their trees."""

    queries: tuple[tuple[tree.Query, CheckedQuery], ...]
    diagnostics: tuple[Diagnostic, ...]


def check_query(query: tree.Query, catalog: Catalog) -> Checked:
    """The query must have no syntax error."""
    findings = Findings()
    parameters = check_parameters(query, findings)
    context = Context(Names(catalog), parameters, findings)
    body: Any = None
    if _is_of_size(query, findings):
        if isinstance(query.body, tree.Read):
            check = check_union if query.body.others else check_part
            body = check(query.body, context)
        elif query.body is not None:
            body = tuple([check_mutation(statement, context) for statement in query.body])
    if findings.diagnostics or body is None:
        return Checked(None, tuple(findings.diagnostics))
    checked = CheckedQuery(
        query.name.text if query.name else None,
        tuple(parameters.values()),
        _annotation(query, "description"),
        _annotation(query, "instruction"),
        body,
    )
    return Checked(checked, (), tuple(name for name in parameters if name not in context.used))


def check_file(file: tree.File, catalog: Catalog) -> CheckedFile:
    """Checks every query of the file that has no syntax error. Names must be unique."""
    findings = Findings()
    _check_names(file, findings)
    found: list[tuple[tree.Query, CheckedQuery]] = []
    diagnostics = findings.diagnostics
    for query in queries_of(file):
        if query.is_broken:
            continue
        checked = check_query(query, catalog)
        diagnostics.extend(checked.diagnostics)
        if checked.query is not None:
            found.append((query, checked.query))
    return CheckedFile(tuple(found), tuple(diagnostics))


def queries_of(file: tree.File) -> tuple[tree.Query, ...]:
    """The queries of a file, including those that are to be explained."""
    found = [i.query if isinstance(i, tree.Explain) else i for i in file.items]
    return tuple(item for item in found if isinstance(item, tree.Query))


def find_query(file: tree.File, name: str | None, findings: Findings) -> tree.Query | None:
    """The query of this name, or the only one if no name is given."""
    queries = queries_of(file)
    if name is None and len(queries) == 1:
        return queries[0]
    names = [query.name.text for query in queries if query.name]
    named = [query for query in queries if query.name and query.name.text == name]
    if named:
        return named[0]
    if name is not None:
        message = f"there is no query `{name}`"
        findings.add("Q013", file.span, message, Meant(name, names))
    elif not queries:
        findings.add("Q013", file.span, "the text holds no query")
    else:
        message = f"the text holds {len(queries)} queries, and none is named"
        findings.add("Q013", file.span, message, f"name one of {', '.join(names[:10])}")
    return None


def _check_names(file: tree.File, findings: Findings) -> None:
    seen: set[str] = set()
    for query in queries_of(file):
        if query.name is None:
            continue
        if query.name.text in seen:
            message = f"there is already a query `{query.name.text}`"
            findings.add("Q014", query.name.span, message)
        seen.add(query.name.text)


def _annotation(query: tree.Query, name: str) -> str | None:
    for annotation in query.annotations:
        if annotation.name.text == name and len(annotation.values) == 1:
            value = annotation.values[0].value
            return value if isinstance(value, str) else None
    return None


def _is_of_size(query: tree.Query, findings: Findings) -> bool:
    if not isinstance(query.body, tree.Read):
        if len(query.body or ()) > MOST_STATEMENTS:
            message = f"a query holds at most {MOST_STATEMENTS} statements"
            findings.add("Q009", query.span, message, "load files instead")
            return False
        return True
    for parts, most, words in (
        (sum(_clauses(part.clauses) for part in query.body.parts), MOST_CLAUSES, "clauses"),
        (max(len(p.projections) for p in query.body.parts), MOST_COLUMNS, "result columns"),
        (len(query.body.order), MOST_COLUMNS, "order keys"),
    ):
        if parts > most:
            message = f"a query has at most {most} {words}, and this one has {parts}"
            findings.add("Q009", query.span, message, "split the query")
            return False
    return True


def _clauses(clauses: Sequence[tree.Clause]) -> int:
    """The clauses of blocks count too. Blocks are never nested deeply."""
    inner = [c.clauses for c in clauses if isinstance(c, tree.Block)]
    return len(clauses) + sum(_clauses(block) for block in inner)
