"""Owns what is told of a text of queries: every mistake in it, what was probably meant, the queries
that it holds, and the text in the one style."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from omnigraph.lang.diagnostics import Diagnostic, Located, Severity, Source, sort_diagnostics
from omnigraph.lang.gq import compile_file
from omnigraph.lang.gq.format import format_queries
from omnigraph.lang.gq.lint import QueryInfo, lint_file
from omnigraph.lang.gq.parse import parse_queries
from omnigraph.model.catalog import Catalog

_ROUNDS = 4
"""A text that is mended may show mistakes that others had hidden."""


class CheckedText(msgspec.Struct, frozen=True, kw_only=True):
    """`corrected` is the text as it was probably meant: it has no mistake left. It is None where
    nothing is wrong, or where nobody can know what was meant. `formatted` is the text in the one
    style, None if it does not parse."""

    diagnostics: tuple[Located, ...]
    queries: tuple[QueryInfo, ...]
    formatted: str | None
    corrected: str | None

    @property
    def ok(self) -> bool:
        return all(one.severity != Severity.ERROR for one in self.diagnostics)


def check_text(text: str, catalog: Catalog) -> CheckedText:
    """All of it. Warnings count as no mistake."""
    errors = compile_file(text, catalog).diagnostics
    linted = lint_file(parse_queries(text).file, catalog)
    source = Source(text)
    found = sort_diagnostics((*errors, *linted.diagnostics))
    return CheckedText(
        diagnostics=tuple(source.locate(one) for one in found),
        queries=linted.queries,
        formatted=format_queries(text).text,
        corrected=correct_text(text, catalog),
    )


def correct_text(text: str, catalog: Catalog) -> str | None:
    """The text with every name and keyword that was probably meant, if it is right then."""
    mended = text
    for _ in range(_ROUNDS):
        errors = [
            one
            for one in compile_file(mended, catalog).diagnostics
            if one.severity == Severity.ERROR
        ]
        if not errors:
            return None if mended == text else mended
        better = _replaced(mended, errors)
        if better == mended:
            return None
        mended = better
    return None


def _replaced(text: str, errors: Sequence[Diagnostic]) -> str:
    end = len(text)
    for one in sorted(errors, key=lambda each: each.span, reverse=True):
        if one.replacement is not None and one.span.end <= end:
            text = text[: one.span.start] + one.replacement + text[one.span.end :]
            end = one.span.start
    return text
