"""Owns `.pg`, the schema language: text to a checked schema and back, with all diagnostics."""

from __future__ import annotations

from omnigraph.lang.diagnostics import Diagnostic, Span, sort_diagnostics
from omnigraph.lang.pg.check import Checked, check_schema
from omnigraph.lang.pg.codes import MORE, TITLES
from omnigraph.lang.pg.parse import Parsed, parse_schema

REPORTED = 100
"""The most diagnostics that one text gets; one more then says how many are left."""

__all__ = [
    "REPORTED",
    "TITLES",
    "Checked",
    "Parsed",
    "check_schema",
    "compile_schema",
    "limit_diagnostics",
    "parse_schema",
]


def compile_schema(text: str) -> Checked:
    """The schema that the text declares, or everything that is wrong with it, in text order.

    After syntax errors the rest of the text is still checked.
    """
    parsed = parse_schema(text)
    if not parsed.complete:
        return Checked(None, limit_diagnostics(sort_diagnostics(parsed.diagnostics), "at least "))
    checked = check_schema(parsed.tree)
    found = (*parsed.diagnostics, *checked.diagnostics)
    if found:
        return Checked(None, limit_diagnostics(sort_diagnostics(found)))
    return checked


def limit_diagnostics(
    diagnostics: tuple[Diagnostic, ...], counted: str = ""
) -> tuple[Diagnostic, ...]:
    """The first ones, and one that says how many are left."""
    left = len(diagnostics) - REPORTED
    if left <= 0:
        return diagnostics
    end = diagnostics[REPORTED - 1].span.end
    message = f"{counted}{left} more problem{'s' if left > 1 else ''} after this one"
    more = Diagnostic(code=MORE, message=message, span=Span(end, end))
    return (*diagnostics[:REPORTED], more)
