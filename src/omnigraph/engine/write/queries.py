"""Owns changes of stored queries as writes: some are set and some removed, as one commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from omnigraph.engine.session import Session
from omnigraph.engine.stored_queries import StoredQueries, find_stored
from omnigraph.engine.write.lineage import find_repeated, make_lineage
from omnigraph.engine.write.precondition import pin_commit
from omnigraph.engine.write.publisher import publish, require_unprotected
from omnigraph.errors import Conflict, InvalidArgument, InvalidQuery
from omnigraph.lang.gq.stored import BrokenQuery, check_stored
from omnigraph.model.options import CommitOptions
from omnigraph.model.stored_queries import QUERY, Queries, QueriesChange, require_query_name
from omnigraph.model.version import Commit, GraphVersion
from omnigraph.plan.publish import Lineage, PublishPlan
from omnigraph.plan.rebase import ExpectedVersionMismatch
from omnigraph.telemetry import Ledger

KIND = "queries"
_NAMED = 5


@dataclass(frozen=True)
class QueriesStored:
    """What was set and removed, by name. `commit` is None if all of it was so already."""

    branch: str
    set: tuple[str, ...]
    removed: tuple[str, ...]
    commit: Commit | None
    repeated: bool = False
    """An earlier call with the same idempotency key had done it."""
    io: Ledger = field(default_factory=Ledger, repr=False)


@dataclass
class _QueryWrite:
    """As the publisher sees it. On another head the same names get the same texts, unless another
    writer has changed one of them since this call began."""

    session: Session
    wanted: Mapping[str, str | None]
    lineage: Lineage
    if_commit: str | None
    ledger: Ledger
    base: GraphVersion
    before: Queries
    plan: PublishPlan = field(init=False)

    def replan(self, head: GraphVersion) -> None:
        held = StoredQueries.shared_by(self.session)
        now = held.read(head.queries, self.ledger)
        for name, text in self.wanted.items():
            if now.get(name) != self.before.get(name) and now.get(name) != text:
                raise Conflict(
                    f"The stored query {name!r} was changed by another commit.",
                    mismatch=ExpectedVersionMismatch(
                        table_key=f"{QUERY}:{name}",
                        expected=self.base.version,
                        actual=head.version,
                    ),
                )
        catalog = self.session.read_catalog(head.catalog, self.ledger)
        permissions = self.session.permissions
        if permissions.restricted:  # what is hidden is not told by a check either
            catalog = permissions.sight(catalog).visible
        for name, text in self.wanted.items():
            found = None if text is None else check_stored(name, text, catalog)
            if isinstance(found, BrokenQuery):
                count = len(found.diagnostics)
                raise InvalidQuery(
                    f"The query {name!r} has {count} mistake{'s' if count != 1 else ''}.\n"
                    f"{found.message}",
                    diagnostics=found.diagnostics,
                    query=name,
                )
        queries = {**now, **self.wanted}
        left = {name: text for name, text in queries.items() if text is not None}
        self.base, self.before = head, now
        self.plan = PublishPlan(
            branch=head.branch,
            base_version=head.version,
            base_incarnation=head.incarnation,
            actions=(),
            lineage=self.lineage,
            queries=QueriesChange(queries=held.write(left, self.ledger)),
            if_commit=self.if_commit,
        )

    def stale(self, head: GraphVersion) -> bool:
        return False  # what is named by its content is never taken


def store_queries(
    session: Session,
    branch: str,
    queries: Mapping[str, str],
    remove: Sequence[str],
    options: CommitOptions,
) -> QueriesStored:
    """All or nothing. Each text is checked against the schema of the branch."""
    ledger = Ledger()
    wanted = _read_wanted(queries, remove)
    lineage = make_lineage(
        session,
        KIND,
        options,
        branch,
        sorted(queries.items()),
        sorted(remove),
        message=_message(queries, remove),
    )
    told = (tuple(sorted(queries)), tuple(sorted(remove)))
    if (first := find_repeated(session, branch, lineage, ledger)) is not None:
        return QueriesStored(branch, *told, first.commit, repeated=True, io=ledger)
    head = session.live_head(branch, ledger)
    session = session.holding(branch, head.incarnation)
    pinned = pin_commit(session, head, options, ledger)
    require_unprotected(head, KIND)
    before = StoredQueries.shared_by(session).read(head.queries, ledger)
    for name in remove:
        find_stored(before, name)
    work = _QueryWrite(session, wanted, lineage, pinned, ledger, head, before)
    work.replan(head)
    change = work.plan.queries
    if change is not None and change.queries == head.queries:
        return QueriesStored(branch, *told, None, io=ledger)
    patience = options.patience(session.settings.retry_for)
    published = publish(session, work, ledger, retry_for=patience)
    made = published.version or published.first
    assert made is not None
    return QueriesStored(branch, *told, made.commit, published.repeated, ledger)


def _read_wanted(queries: Mapping[str, str], remove: Sequence[str]) -> dict[str, str | None]:
    if not queries and not remove:
        raise InvalidArgument("Nothing is to be stored, and nothing to be removed.")
    for name in (*queries, *remove):
        require_query_name(name)
    for name, text in queries.items():
        if not isinstance(text, str):
            raise InvalidArgument(f"The query {name!r} is a text, not {type(text).__name__}.")
    if both := sorted(set(queries) & set(remove)):
        raise InvalidArgument(f"The query {both[0]!r} is both to be stored and to be removed.")
    return {**queries, **dict.fromkeys(remove)}


def _message(queries: Mapping[str, str], remove: Sequence[str]) -> str:
    parts = [
        f"{verb} {_list(names)}"
        for verb, names in (("store", queries), ("remove", remove))
        if names
    ]
    return ", ".join(parts)


def _list(names: Mapping[str, str] | Sequence[str]) -> str:
    shown = ", ".join(sorted(names)[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"
