"""Owns `.pg`, the schema language: text becomes a checked schema and back, with all diagnostics."""

from __future__ import annotations

from omnigraph.lang.diagnostics import REPORTED, limit_diagnostics, sort_diagnostics
from omnigraph.lang.pg.check import CheckedSchema, check_schema
from omnigraph.lang.pg.codes import MORE, TITLES
from omnigraph.lang.pg.parse import ParsedSchema, parse_schema

__all__ = [
    "REPORTED",
    "TITLES",
    "CheckedSchema",
    "ParsedSchema",
    "check_schema",
    "compile_schema",
    "parse_schema",
]


def compile_schema(text: str) -> CheckedSchema:
    """The schema that the text declares, or every error in it, in text order. After syntax errors
    the rest of the text is still checked."""
    parsed = parse_schema(text)
    if not parsed.complete:
        return CheckedSchema(
            None, limit_diagnostics(sort_diagnostics(parsed.diagnostics), MORE, "at least ")
        )
    checked = check_schema(parsed.tree)
    found = (*parsed.diagnostics, *checked.diagnostics)
    if found:
        return CheckedSchema(None, limit_diagnostics(sort_diagnostics(found), MORE))
    return checked
