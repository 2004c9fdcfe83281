"""Owns the check of rows: every fragment can be read, and live rows obey the schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.duckdb_sql import Joins, joining
from omnigraph.engine.graph_view import GraphView, full_view_of, pin_of
from omnigraph.engine.session import Session
from omnigraph.engine.upkeep.reachable_files import Trace, pinned
from omnigraph.engine.upkeep.verify_report import Verification
from omnigraph.engine.whole_table_rules import WholeTables
from omnigraph.errors import OmnigraphError, OutOfMemory
from omnigraph.model.catalog import EdgeType, GraphType
from omnigraph.model.identity import derive_ids
from omnigraph.model.types import Base, ScalarType
from omnigraph.model.version import GraphVersion
from omnigraph.model.violation import Violation, show_value
from omnigraph.plan.rules.book import OneRow, describe_key, final_rules
from omnigraph.plan.validate import check_rows
from omnigraph.store.fragments import FragmentMark
from omnigraph.store.tables import Table
from omnigraph.store.version_files import version_file
from omnigraph.telemetry import Ledger

_TOLD = 5
_MEMORY = 512 * 1024 * 1024


class RowChecks:
    """Each fragment is read once, however many versions share it. Rules are checked at the heads of
    branches and at tags, where work will continue."""

    def __init__(
        self, session: Session, trace: Trace, report: Verification, ledger: Ledger
    ) -> None:
        self._session = session
        self._trace = trace
        self._report = report
        self._ledger = ledger
        self._broken: set[tuple[str, str]] = set()

    def run(self, versions: Sequence[GraphVersion], heads: Sequence[GraphVersion]) -> None:
        seen: dict[tuple[str, FragmentMark], bool] = {}
        for (location, number), traced in self._trace.tables.items():
            if traced.table is not None:
                self._read_fragments(location, number, traced.table, seen)
        del versions
        with joining(_MEMORY, "verify") as joins:
            self._check_heads(heads, joins)

    def _read_fragments(
        self, location: str, number: str, table: Table, seen: dict[tuple[str, FragmentMark], bool]
    ) -> None:
        """`seen` says of each fragment whether it can be read, because versions share fragments."""
        for mark in table.marks.values():
            if (location, mark) in seen:
                if not seen[location, mark]:
                    self._broken.add((location, number))
                continue
            seen[location, mark] = False
            rows = 0
            try:
                for batch in table.scan(table.schema.names, self._ledger, fragments=[mark.id]):
                    rows += batch.num_rows
            except OutOfMemory:
                raise  # it says nothing about the graph
            except OmnigraphError as error:
                self._tell_unreadable(location, number, mark, error.message)
                continue
            self._report.looked_at["rows"] += rows
            if rows != mark.rows:
                self._tell_unreadable(
                    location, number, mark, f"It has {rows} rows instead of {mark.rows}."
                )
                continue
            seen[location, mark] = True

    def _tell_unreadable(self, location: str, number: str, mark: FragmentMark, why: str) -> None:
        self._broken.add((location, number))
        names = [f"{location}/data/{name}" for name in mark.files]
        if mark.deletion is not None:
            names.append(f"{location}/{mark.deletion}")
        self._report.found(
            "unreadable_rows", names[0], f"A fragment of {', '.join(names)} cannot be read: {why}"
        )

    # Rules

    def _check_heads(self, heads: Sequence[GraphVersion], joins: Joins) -> None:
        done: set[Any] = set()
        for head in heads:
            try:
                snapshot = full_view_of(self._session, head, self._ledger)
            except OutOfMemory:
                raise  # it says nothing about the graph
            except OmnigraphError:
                continue  # the catalog is already reported
            for kind in snapshot.catalog.types:
                needed = [kind.table_key]
                if isinstance(kind, EdgeType):
                    needed += [f"node:{kind.source}", f"node:{kind.target}"]
                pins = [head.pins.get(key) for key in needed]
                places = tuple(None if pin is None else pinned(pin) for pin in pins)
                if (kind, places) in done or self._broken.intersection(places):
                    continue
                done.add((kind, places))
                if None in places:
                    self._report.found(
                        "missing_table",
                        kind.table_key,
                        f"{head.branch!r} has no table for {needed[places.index(None)]}.",
                    )
                    continue
                if any(self._trace.tables[at].error for at in places if at is not None):
                    continue
                self._check_type(snapshot, kind, joins)

    def _check_type(self, snapshot: GraphView, kind: GraphType, joins: Joins) -> None:
        try:
            for rule, example in self._broken_rules(snapshot, kind, joins):
                pin = pin_of(snapshot, kind)
                self._report.found(rule, version_file(*pinned(pin)), example)
        except OutOfMemory:
            raise  # it says nothing about the graph
        except OmnigraphError as error:
            self._report.found("unreadable_rows", kind.table_key, error.message)

    def _broken_rules(
        self, snapshot: GraphView, kind: GraphType, joins: Joins
    ) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        view = snapshot.view(kind)
        blobs = {p.name for p in kind.properties if p.type == ScalarType(Base.BLOB)}
        names = [name for name in view.schema.names if name not in blobs]
        for batch in view.scan(self._ledger, columns=names):
            rows = pa.Table.from_batches([batch])
            found += [
                _finding(violation)
                for violation in check_rows(kind, rows, limit=_TOLD)
                if violation.property not in blobs
            ]
            if kind.key and rows.num_rows:
                wrong = pc.not_equal(derive_ids(kind, rows), rows["id"])
                found += [
                    _finding(describe_key(kind, entity))
                    for entity in rows["id"].filter(wrong).slice(0, _TOLD).to_pylist()
                ]
        whole = WholeTables(
            joins,
            lambda held, columns: snapshot.view(held).scan(self._ledger, columns=columns),
            _TOLD,
        )
        rules = final_rules(snapshot.catalog, {kind.table_key})
        found += [_finding(violation) for violation in whole.check([OneRow(kind), *rules])]
        return found[: 4 * _TOLD]


def _finding(violation: Violation) -> tuple[str, str]:
    """The sentence about an end does not say which edge it is about; here nothing else does."""
    kind, edge = f"rule_{violation.rule}", f"{violation.type} {show_value(violation.id)}"
    told = violation.message
    return kind, told if violation.rule != "endpoint" else f"{edge}: {told}"
