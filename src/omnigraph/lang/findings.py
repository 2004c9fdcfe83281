"""Owns the findings of one check: codes and spans in, diagnostics out."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, TypeAlias

from omnigraph.lang.diagnostics import Diagnostic, Span
from omnigraph.lang.suggestions import near

_COMPARED = 200_000
"""How many names are compared for suggestions. Further ones would never be shown."""


class Meant(NamedTuple):
    """A suggestion to look up: the candidate that is closest to the name."""

    name: str
    candidates: Collection[str]


class Fix(NamedTuple):
    """Advice whose text is known: what to say, and what to write in place of the span."""

    advice: str
    replacement: str


Help: TypeAlias = str | Meant | Fix | None


class Findings:
    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._compared = 0

    def add(
        self,
        code: str,
        span: Span,
        message: str,
        help_: Help = None,
        expected: tuple[str, ...] = (),
    ) -> None:
        if isinstance(help_, Meant):
            help_ = self._advise(help_, span)
        known = help_ if isinstance(help_, Fix) else None
        self.diagnostics.append(
            Diagnostic(
                code=code,
                message=message,
                span=span,
                suggestion=known.advice if known else help_,  # type: ignore[arg-type]
                expected=expected,
                replacement=known.replacement if known else None,
            )
        )

    def _advise(self, meant: Meant, span: Span) -> Help:
        self._compared += len(meant.candidates)
        if self._compared > _COMPARED:
            return None
        found = near(meant.name, meant.candidates)
        if found is None:
            return None
        advice = f"did you mean `{found}`?"
        is_name = span.end - span.start == len(meant.name)  # and not the text around it
        return Fix(advice, found) if is_name else advice
