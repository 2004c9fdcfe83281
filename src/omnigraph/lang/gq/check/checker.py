"""Owns the protocol by which parts of an expression are checked.

Operators, calls and searches take a `Checker`, so they need not import the module that calls them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from omnigraph.lang.diagnostics import Span
from omnigraph.lang.findings import Help
from omnigraph.lang.gq import tree
from omnigraph.lang.gq.check.scope import KnownPath, Scope
from omnigraph.lang.gq.checked import Expression, Match


class Checker(Protocol):
    """Checks expressions in one scope. `aggregates` and `ranks` say whether these are allowed."""

    aggregates: bool
    ranks: bool

    def add(self, code: str, span: Span, message: str, help_: Help = None) -> None:
        """Reports an error."""

    def check(self, node: tree.Expression, depth: int = 0) -> Expression | None:
        """The checked expression, or None after an error."""

    def pattern(self, clauses: Sequence[tree.Clause]) -> tuple[Match, Scope]:
        """A pattern inside the expression."""

    def path(self, name: str) -> tuple[KnownPath, bool] | None:
        """The path of this name, and whether it may be null here."""

    def inside(self, scope: Scope) -> Checker:
        """A checker for the expressions inside that pattern."""
