"""Owns running a mutation: text and parameters become the statements of one write.

After a lost race the statements run again on the new snapshot. If the schema has changed, the text
is checked again first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from omnigraph.engine.mutation.lower import is_blind, lower_mutation
from omnigraph.engine.mutation.result import MutationResult
from omnigraph.engine.query.ask import bound
from omnigraph.engine.query.prepare import Preparations, Prepared
from omnigraph.engine.session import Session
from omnigraph.engine.write.attempt import Write
from omnigraph.engine.write.published import Published, another_call
from omnigraph.engine.write.statements import Statement
from omnigraph.errors import Invalid, InvalidArgument, OmnigraphError
from omnigraph.model.catalog import Catalog
from omnigraph.model.changes import TypeCounts
from omnigraph.model.options import CommitOptions
from omnigraph.model.version import GraphVersion
from omnigraph.plan.digest import digest_values
from omnigraph.plan.values.rows import Bindings
from omnigraph.telemetry import Ledger


def mutate(
    session: Session,
    branch: str,
    text: str,
    name: str | None,
    params: Mapping[str, Any] | None,
    options: CommitOptions,
    finish: Callable[[Write], int] | None = None,
    stored: str | None = None,
) -> MutationResult:
    """One commit, none if nothing matched, or an error and no change. `finish` may run more
    statements on what the text did, and returns how many rows it embedded. With the name of a
    `stored` query, its text may be another one when the same call is repeated."""
    if params is not None and not isinstance(params, Mapping):
        raise InvalidArgument(f"Parameters are values by name, not {type(params).__name__}.")
    ledger = Ledger()
    call = _MutationCall(session, branch, text, name, params, session.runtime.now(), stored)
    write = Write(
        session,
        branch=branch,
        kind="mutate",
        options=options,
        reshape=lambda _, snapshot: call.lower(snapshot.catalog),
        ledger=ledger,
    )
    if (first := write.repeats()) is not None:
        return _repeated(call, write, first, ledger)
    try:
        embedded = _run(call, write, finish)
    except OmnigraphError:
        # Perhaps only on the head as it was last seen.
        if not write.begin_again():
            raise
        if (first := write.repeats()) is not None:
            return _repeated(call, write, first, ledger)
        embedded = _run(call, write, finish)
    return replace(_result(call, write, write.publish(), ledger), embedded=embedded)


def _run(call: _MutationCall, write: Write, finish: Callable[[Write], int] | None) -> int:
    """Applies the statements to the base of the write."""
    catalog = write.catalog(reading=False)
    statements = call.lower(catalog)
    reading = not all(is_blind(statement) for statement in statements)
    if reading and (newer := write.catalog(reading=True)).digest != catalog.digest:
        statements = call.lower(newer)
    write.call = call.digest
    for statement in statements:
        write.run(statement, reading=reading)
    return 0 if finish is None else finish(write)


def _repeated(
    call: _MutationCall, write: Write, first: GraphVersion, ledger: Ledger
) -> MutationResult:
    """The answer of the first call. A call that its schema does not allow was a different call."""
    try:
        call.read(write.catalog(reading=False))
    except Invalid as error:
        raise another_call(first) from error
    write.call = call.digest
    return _result(call, write, write.publish(), ledger)


@dataclass
class _MutationCall:
    """The arguments of the caller. Generated ids are the same on every run."""

    session: Session
    branch: str
    text: str
    name: str | None
    params: Mapping[str, Any] | None
    now: int
    stored: str | None = None
    digest: str = ""
    query: str | None = None
    catalog: Catalog = field(default_factory=Catalog)
    ids: list[str] = field(default_factory=list)

    def read(self, catalog: Catalog) -> tuple[Prepared, dict[str, Any]]:
        """The query under a schema, and a value for each of its parameters."""
        shared = Preparations.shared_by(self.session)
        if self.stored is not None and not shared.query(self.text, None, catalog).statements:
            raise InvalidArgument(
                f"The stored query {self.stored!r} only reads.", help="Run it with run_query()."
            )
        prepared = shared.mutation(self.text, self.name, catalog)
        values = bound(prepared, self.params)
        self.query, self.catalog = prepared.query.name or self.stored, catalog
        said = self.text if self.stored is None else None
        self.digest = digest_values([said, self.query, values])
        return prepared, values

    def lower(self, catalog: Catalog) -> list[Statement]:
        prepared, values = self.read(catalog)
        taken = 0

        def new_ids(count: int) -> list[str]:
            nonlocal taken
            lacking = taken + count - len(self.ids)
            self.ids += [self.session.runtime.ulid() for _ in range(lacking)]
            taken += count
            return self.ids[taken - count : taken]

        return lower_mutation(prepared.statements, Bindings(values, self.now), new_ids)


def _result(
    call: _MutationCall, write: Write, published: Published | None, ledger: Ledger
) -> MutationResult:
    effects = {key: count for key, count in write.effects.items() if count}
    counts: dict[str, TypeCounts] = {}
    for table, kind in call.catalog.by_key.items():
        of_type = {effect: count for (key, effect), count in effects.items() if key == table}
        if of_type:
            # A node type and an edge type may share their name.
            name = table if kind.name in counts else kind.name
            counts[name] = TypeCounts(**of_type)
    version = None if published is None else published.version
    return MutationResult(
        branch=call.branch,
        query=call.query,
        nodes=sum(n for (key, _), n in effects.items() if key.startswith("node:")),
        edges=sum(n for (key, _), n in effects.items() if key.startswith("edge:")),
        counts=counts,
        commit=None if version is None else version.commit,
        commit_id=None if published is None else published.commit,
        repeated=published is not None and published.repeated,
        io=ledger,
    )
