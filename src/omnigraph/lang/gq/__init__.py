"""Owns `.gq`, the query language: text to checked queries, with all diagnostics."""

from __future__ import annotations

from omnigraph.lang.diagnostics import limit_diagnostics, sort_diagnostics
from omnigraph.lang.findings import Findings
from omnigraph.lang.gq.check import (
    Checked,
    CheckedFile,
    check_file,
    check_query,
    find_query,
    queries_of,
)
from omnigraph.lang.gq.checked import CheckedQuery
from omnigraph.lang.gq.codes import MORE, TITLES
from omnigraph.lang.gq.parameters import ParameterError, bind_parameters
from omnigraph.lang.gq.parse import Parsed, parse_queries
from omnigraph.model.catalog import Catalog

__all__ = [
    "TITLES",
    "Checked",
    "CheckedFile",
    "CheckedQuery",
    "ParameterError",
    "Parsed",
    "bind_parameters",
    "check_file",
    "check_query",
    "compile_file",
    "compile_query",
    "parse_queries",
    "queries_of",
]


def compile_query(text: str, catalog: Catalog, name: str | None = None) -> Checked:
    """The query of this name, or the only one. The whole text must parse, but only this query is
    checked."""
    parsed = parse_queries(text)
    if parsed.diagnostics:
        counted = "" if parsed.complete else "at least "
        found = limit_diagnostics(sort_diagnostics(parsed.diagnostics), MORE, counted)
        return Checked(None, found)
    findings = Findings()
    query = find_query(parsed.file, name, findings)
    if query is None:
        return Checked(None, tuple(findings.diagnostics))
    checked = check_query(query, catalog)
    if checked.query is not None:
        return checked
    return Checked(None, limit_diagnostics(sort_diagnostics(checked.diagnostics), MORE))


def compile_file(text: str, catalog: Catalog) -> CheckedFile:
    """Every query of the text, or every error, in text order. Queries without syntax errors are
    checked even if others have some."""
    parsed = parse_queries(text)
    checked = check_file(parsed.file, catalog)
    found = sort_diagnostics((*parsed.diagnostics, *checked.diagnostics))
    counted = "" if parsed.complete else "at least "
    return CheckedFile(checked.queries, limit_diagnostics(found, MORE, counted))
