"""Owns the findings of one check: codes and spans in, diagnostics out."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from omnigraph.lang.diagnostics import Diagnostic, Span
from omnigraph.lang.near import near

_ADVISED = 200
"""After so many findings no suggestions are searched for: they are never shown."""


class Findings:
    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []

    def add(
        self,
        code: str,
        span: Span,
        message: str,
        help_: str | Callable[[], str | None] | None = None,
        expected: tuple[str, ...] = (),
    ) -> None:
        """`help_` may be a function: it is called only while advice is still of use."""
        if callable(help_):
            help_ = help_() if len(self.diagnostics) < _ADVISED else None
        self.diagnostics.append(
            Diagnostic(code=code, message=message, span=span, suggestion=help_, expected=expected)
        )


def meant(name: str, candidates: Iterable[str]) -> Callable[[], str | None]:
    """Advice to look up: the candidate that is close to the name."""

    def advise() -> str | None:
        found = near(name, candidates)
        return f"did you mean `{found}`?" if found else None

    return advise
