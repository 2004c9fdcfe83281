"""Owns reading and writing the stored queries of graph versions, by the hash of their object."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict

from omnigraph.engine.graph_view import GraphView
from omnigraph.engine.session import Session
from omnigraph.errors import BrokenQueries, QueryNotFound
from omnigraph.lang.gq.checked import Read
from omnigraph.lang.gq.stored import BrokenQuery, check_stored, find_broken
from omnigraph.lang.suggestions import near
from omnigraph.model.catalog import Catalog
from omnigraph.model.permission import QueryResource, Verdict
from omnigraph.model.stored_queries import (
    NO_QUERIES,
    Queries,
    decode_queries,
    encode_queries,
    queries_key,
)
from omnigraph.store.content import read_content, write_content
from omnigraph.telemetry import Ledger

_KEPT = 16


class StoredQueries:
    """Those that this handle has read, by their hash, which never means anything else."""

    @classmethod
    def shared_by(cls, session: Session) -> StoredQueries:
        return session.shared(cls)

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._held: OrderedDict[str, Queries] = OrderedDict()

    def read(self, digest: str | None, ledger: Ledger) -> Queries:
        """Texts by name, of a version that has this hash. None is a version without any."""
        if digest is None:
            return NO_QUERIES
        with self._lock:
            if (known := self._held.get(digest)) is not None:
                self._held.move_to_end(digest)
                return known
        return self._keep(digest, self.fetch(digest, ledger))

    def fetch(self, digest: str, ledger: Ledger) -> Queries:
        """As they are on the store, whatever is known of them."""
        key = queries_key(digest)
        objects = self._session.metered(ledger)
        return decode_queries(read_content(objects, key, digest, "object of stored queries"), key)

    def write(self, queries: Queries, ledger: Ledger) -> str | None:
        """Stores them under their hash, which a version can then have."""
        if not queries:
            return None
        data = encode_queries(queries)
        digest = hashlib.sha256(data).hexdigest()
        write_content(self._session.metered(ledger), queries_key(digest), data)
        self._keep(digest, dict(queries))
        return digest

    def _keep(self, digest: str, queries: Queries) -> Queries:
        with self._lock:
            self._held[digest] = queries
            while len(self._held) > _KEPT:
                self._held.popitem(last=False)
        return queries


def queries_of_view(view: GraphView) -> Queries:
    """The stored queries of a pinned version. Who acts for somebody sees those that this caller may
    run, and that name nothing hidden."""
    held = StoredQueries.shared_by(view._session)  # noqa: SLF001  (a view is its session's)
    queries = held.read(view.graph_version.queries, view.io)
    if view.sight is None:
        return queries
    return {name: text for name, text in queries.items() if _may_run(view, name, text).allowed}


def require_stored(view: GraphView, name: str) -> str:
    """The text of a stored query that is to be run. One that the caller may not run is not there,
    and the audit hears of it."""
    held = StoredQueries.shared_by(view._session)  # noqa: SLF001
    queries = held.read(view.graph_version.queries, view.io)
    if view.sight is not None and name in queries:
        verdict = _may_run(view, name, queries[name])
        if not verdict.allowed:
            permissions = view._session.permissions  # noqa: SLF001
            permissions.denied("invoke", QueryResource(permissions.graph, name, False), verdict)
    return find_stored(queries_of_view(view), name)


def is_stored_mutation(view: GraphView, name: str) -> bool:
    """Whether a stored query that is there, and that the caller may run, changes something."""
    checked = check_stored(name, require_stored(view, name), view.catalog)
    return not isinstance(checked, BrokenQuery) and not isinstance(checked.body, Read)


def _may_run(view: GraphView, name: str, text: str) -> Verdict:
    checked = check_stored(name, text, view.catalog)
    if isinstance(checked, BrokenQuery):
        return Verdict(False, ("it names what is hidden",))
    permissions = view._session.permissions  # noqa: SLF001
    mutation = not isinstance(checked.body, Read)
    return permissions.ask("invoke", QueryResource(permissions.graph, name, mutation))


def find_stored(queries: Queries, name: str) -> str:
    """The text of a stored query."""
    text = queries.get(name)
    if text is None:
        guess = near(name, queries)
        hint = f"Did you mean {guess!r}?" if guess else None
        raise QueryNotFound(f"There is no stored query {name!r}.", help=hint)
    return text


def require_fitting(queries: Queries, catalog: Catalog) -> None:
    """Refuses a schema under which a stored query would not run any more."""
    if broken := find_broken(queries, catalog):
        raise refused(broken)


def refused(broken: tuple[BrokenQuery, ...]) -> BrokenQueries:
    count = "1 stored query" if len(broken) == 1 else f"{len(broken)} stored queries"
    shown = "\n".join(one.message for one in broken[:10])
    more = f"\n(and {len(broken) - 10} more)" if len(broken) > 10 else ""
    return BrokenQueries(f"{count} would not run under this schema.\n{shown}{more}", queries=broken)
