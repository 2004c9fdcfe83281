"""Owns prepared queries: checked queries and their plans, kept by text for repeated use."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from omnigraph.engine.graph_view import GraphView
from omnigraph.engine.session import Session
from omnigraph.engine.stored_queries import require_stored
from omnigraph.errors import InvalidArgument, InvalidQuery
from omnigraph.lang.diagnostics import render_all
from omnigraph.lang.gq import CheckedQuery, compile_query
from omnigraph.lang.gq.checked import Mutation, Read
from omnigraph.lang.gq.walk import all_matches, all_variables
from omnigraph.model.catalog import Catalog

if TYPE_CHECKING:
    from omnigraph.plan.query import Plan

_KEPT = 512
_LONGEST_KEPT = 256 * 1024


@dataclass(frozen=True)
class Prepared:
    """A checked query with its plans, by the sizes of its tables."""

    query: CheckedQuery
    types: tuple[str, ...]
    plans: dict[tuple[int, ...], Plan] = field(default_factory=dict)
    parts: tuple[Prepared, ...] = ()
    """Those of a union, each a query of its own."""

    @property
    def statements(self) -> tuple[Mutation, ...]:
        """The statements of a mutation; a read has none."""
        return () if isinstance(self.query.body, Read) else self.query.body

    def plan(self, sizes: Mapping[str, int]) -> Plan:
        """A plan depends on the sizes of tables only by powers of two."""

        from omnigraph.plan.query import plan_read

        key = tuple(sizes.get(name, 0).bit_length() for name in self.types)
        found = self.plans.get(key)
        if found is None:
            assert isinstance(self.query.body, Read)
            if len(self.plans) > 16:
                self.plans.clear()
            found = self.plans[key] = plan_read(self.query.body, sizes)
        return found


class Preparations:
    @classmethod
    def shared_by(cls, session: Session) -> Preparations:
        """The one of all handles of this session."""
        return session.shared(_preparations)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: OrderedDict[tuple[str, str | None, str], Prepared] = OrderedDict()

    def read(self, text: str, name: str | None, catalog: Catalog) -> Prepared:
        """A query that reads. A mutation is refused."""
        prepared = self.query(text, name, catalog)
        if not isinstance(prepared.query.body, Read):
            what = f"{prepared.query.name!r} is" if prepared.query.name else "This is"
            raise InvalidArgument(
                f"{what} a mutation, and query() only reads.", help="Give it to mutate()."
            )
        return prepared

    def mutation(self, text: str, name: str | None, catalog: Catalog) -> Prepared:
        """A query that writes. One that reads is refused."""
        prepared = self.query(text, name, catalog)
        if isinstance(prepared.query.body, Read):
            what = f"{prepared.query.name!r} only" if prepared.query.name else "This query only"
            raise InvalidArgument(
                f"{what} reads, and mutate() takes insert, update and delete.",
                help="Give it to query().",
            )
        return prepared

    def query(self, text: str, name: str | None, catalog: Catalog) -> Prepared:
        if not isinstance(text, str):
            raise InvalidArgument(f"A query is a text, not {type(text).__name__}.")
        if name is not None and not isinstance(name, str):
            raise InvalidArgument(f"A query is named by a text, not by {type(name).__name__}.")
        key = (text, name, catalog.digest)
        with self._lock:
            found = self._held.get(key)
            if found is not None:
                self._held.move_to_end(key)
                return found
        prepared = _prepare(text, name, catalog)
        if len(text) > _LONGEST_KEPT:
            return prepared
        with self._lock:
            self._held[key] = prepared
            while len(self._held) > _KEPT:
                self._held.popitem(last=False)
        return prepared


def prepare_stored(view: GraphView, name: str) -> Prepared:
    """A stored query that reads."""
    text = require_stored(view, name)
    shared = Preparations.shared_by(view._session)  # noqa: SLF001  (a view is its session's)
    prepared = shared.query(text, None, view.catalog)
    if not isinstance(prepared.query.body, Read):
        raise InvalidArgument(
            f"The stored query {name!r} is a mutation.", help="Run it with run_mutation()."
        )
    return prepared


def _prepare(text: str, name: str | None, catalog: Catalog) -> Prepared:
    checked = compile_query(text, catalog, name)
    if checked.query is None:
        errors = [d for d in checked.diagnostics if d.severity == "error"]
        count = f"{len(errors)} mistake{'s' if len(errors) != 1 else ''}"
        shown = render_all(errors, text, "query")
        raise InvalidQuery(f"The query has {count}.\n{shown}", diagnostics=errors)
    return _prepared(checked.query)


def _prepared(query: CheckedQuery) -> Prepared:
    parts = query.body.parts if isinstance(query.body, Read) else ()
    held = tuple(_prepared(msgspec.structs.replace(query, body=part)) for part in parts)
    return Prepared(query, _types(query), parts=held)


def _types(query: CheckedQuery) -> tuple[str, ...]:
    """Every table whose size may affect the plan."""
    found: set[str] = set()
    for match in (m for read in query.reads for m in all_matches(read.match)):
        for variable in all_variables(match):
            found |= {kind.table_key for kind in variable.kind.types}
        for traversal in match.traversals:
            found |= {step.edge.table_key for step in traversal.steps}
    return tuple(sorted(found))


def _preparations(_: Session) -> Preparations:
    return Preparations()
