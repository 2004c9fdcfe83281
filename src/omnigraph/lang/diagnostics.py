"""Owns diagnostics: a refusal as a value with a place in the text, and how it is shown."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


class Span(msgspec.Struct, frozen=True, order=True):
    """Characters [start, end) of the text."""

    start: int
    end: int


class Diagnostic(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    code: str
    message: str
    span: Span
    severity: Severity = Severity.ERROR
    expected: tuple[str, ...] = ()
    suggestion: str | None = None
