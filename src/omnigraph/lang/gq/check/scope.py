"""Owns which variables are known where, and the state of checking one query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from omnigraph.lang.diagnostics import Span
from omnigraph.lang.findings import Findings, Fix
from omnigraph.lang.gq.check.names import Names
from omnigraph.lang.gq.checked import EdgeKind, NodeKind, Parameter, Traversal, Variable
from omnigraph.lang.suggestions import near
from omnigraph.model.catalog import EdgeType

_COMPARED = 100


class Known:
    """A variable while its types are being found. `types` are the names of its possible node types,
    or None while nothing is known. `edges` are those of an edge variable. `is_declared` means that
    a binding declares it. `is_broken` means that an error about it was reported, so no further ones
    are."""

    def __init__(self, id: int, name: str | None, span: Span, *, is_edge: bool = False) -> None:
        self.id = id
        self.name = name
        self.span = span
        self.is_edge = is_edge
        self.is_optional = False
        self.is_declared = False
        self.is_broken = False
        self.types: frozenset[str] | None = None
        self.edges: tuple[EdgeType, ...] = ()

    def kind(self, names: Names) -> NodeKind | EdgeKind:
        if self.is_edge:
            return EdgeKind(self.edges)
        if self.types is None:
            return NodeKind(names.catalog.nodes)
        return NodeKind(names.in_catalog_order(self.types))

    def variable(self, names: Names) -> Variable:
        return Variable(self.id, self.name, self.kind(names), self.is_optional)


class KnownPath:
    """A named traversal. `traversal` is None until its types are known, and after an error."""

    def __init__(self, every: bool) -> None:
        self.every = every
        self.traversal: Traversal | None = None


class Context:
    """One query: the catalog, its parameters, the findings, and fresh ids."""

    def __init__(self, names: Names, parameters: dict[str, Parameter], findings: Findings) -> None:
        self.names = names
        self.parameters = parameters
        self.findings = findings
        self.used: set[str] = set()
        self._ids = count()

    def item(self) -> int:
        """The number of an item of a list, which no variable has."""
        return next(self._ids)

    def known(self, name: str | None, span: Span, *, is_edge: bool = False) -> Known:
        return Known(next(self._ids), name, span, is_edge=is_edge)


class Scope:
    """The variables of one pattern: its own, those of its optional blocks, and those of the
    surrounding scope. `is_optional` marks the scope of an optional block."""

    def __init__(self, parent: Scope | None = None, *, is_optional: bool = False) -> None:
        self.parent = parent
        self.is_optional = is_optional
        self.own: dict[str, Known] = {}
        self.anonymous: list[Known] = []
        self.optional: dict[str, Known] = {}
        self.paths: dict[str, KnownPath] = {}
        self.optional_paths: dict[str, KnownPath] = {}

    def find(self, name: str) -> tuple[Known, bool] | None:
        """The variable, and whether it may be null here."""
        if name in self.own:
            return self.own[name], False
        if name in self.optional:
            return self.optional[name], True
        return self.parent.find(name) if self.parent else None

    def path(self, name: str) -> tuple[KnownPath, bool] | None:
        """The path of this name, and whether it may be null here."""
        if name in self.paths:
            return self.paths[name], False
        if name in self.optional_paths:
            return self.optional_paths[name], True
        return self.parent.path(name) if self.parent else None

    def names(self) -> Iterator[str]:
        yield from self.own
        yield from self.optional
        yield from self.paths
        yield from self.optional_paths
        if self.parent:
            yield from self.parent.names()


def report_unknown(name: str, span: Span, scope: Scope, context: Context) -> None:
    help_ = meant_variable(name, [*scope.names(), *context.parameters])
    context.findings.add("T6", span, f"`${name}` is neither bound nor a parameter", help_)


def meant_variable(name: str, candidates: Sequence[str]) -> Fix | None:
    """Compares names without the dollar sign, so `$a` is not close to `$b`."""
    found = near(name, candidates) if len(candidates) <= _COMPARED else None
    return Fix(f"did you mean `${found}`?", f"${found}") if found else None
