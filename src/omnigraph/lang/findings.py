"""Owns the findings of one check: codes and spans in, diagnostics out."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from omnigraph.lang.diagnostics import Diagnostic, Span
from omnigraph.lang.suggestions import near

_COMPARED = 200_000
"""How many names are compared for suggestions. Further ones would never be shown."""


class Meant(NamedTuple):
    """A suggestion to look up: the candidate that is closest to the name."""

    name: str
    candidates: Collection[str]


class Findings:
    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._compared = 0

    def add(
        self,
        code: str,
        span: Span,
        message: str,
        help_: str | Meant | None = None,
        expected: tuple[str, ...] = (),
    ) -> None:
        if isinstance(help_, Meant):
            help_ = self._advise(help_)
        self.diagnostics.append(
            Diagnostic(code=code, message=message, span=span, suggestion=help_, expected=expected)
        )

    def _advise(self, meant: Meant) -> str | None:
        self._compared += len(meant.candidates)
        if self._compared > _COMPARED:
            return None
        found = near(meant.name, meant.candidates)
        return f"did you mean `{found}`?" if found else None
