"""Owns the check of rows: every fragment can be read, and what is live obeys the schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.load.joins import Joins, as_keys, joining
from omnigraph.engine.session import Session
from omnigraph.engine.snapshot import Snapshot
from omnigraph.engine.upkeep.trace import Trace, pinned
from omnigraph.engine.upkeep.verify_report import Verification
from omnigraph.errors import OmnigraphError
from omnigraph.model.catalog import EdgeType, GraphType, row_schema
from omnigraph.model.identity import derive_ids
from omnigraph.model.types import Base, ScalarType
from omnigraph.model.version import GraphVersion
from omnigraph.plan.validate import check_rows
from omnigraph.store.tables import FragmentMark, Table, version_file
from omnigraph.telemetry import Ledger

_TOLD = 5
_MEMORY = 512 * 1024 * 1024


class RowChecks:
    """Each fragment is read once, whatever number of versions share it; rules are checked at the
    ends of branches and tags, where somebody will go on from."""

    def __init__(
        self, session: Session, trace: Trace, report: Verification, ledger: Ledger
    ) -> None:
        self._session = session
        self._trace = trace
        self._report = report
        self._ledger = ledger
        self._broken: set[tuple[str, str]] = set()

    def run(self, versions: Sequence[GraphVersion], heads: Sequence[GraphVersion]) -> None:
        seen: set[tuple[str, FragmentMark]] = set()
        for (location, number), traced in self._trace.tables.items():
            if traced.table is not None:
                self._read_fragments(location, number, traced.table, seen)
        del versions
        with joining(_MEMORY, "verify") as joins:
            self._check_heads(heads, joins)

    def _read_fragments(
        self, location: str, number: str, table: Table, seen: set[tuple[str, FragmentMark]]
    ) -> None:
        for mark in table.marks.values():
            if (location, mark) in seen:
                continue
            seen.add((location, mark))
            rows = 0
            try:
                for batch in table.scan(table.schema.names, self._ledger, fragments=[mark.id]):
                    rows += batch.num_rows
            except OmnigraphError as error:
                self._tell_unreadable(location, number, mark, error.message)
                continue
            self._report.looked_at["rows"] += rows
            if rows != mark.rows:
                self._tell_unreadable(
                    location, number, mark, f"It has {rows} rows instead of {mark.rows}."
                )

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
                snapshot = self._session.snapshot(head, self._ledger)
            except OmnigraphError:
                continue  # the catalog is a finding already
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

    def _check_type(self, snapshot: Snapshot, kind: GraphType, joins: Joins) -> None:
        try:
            for rule, example in self._broken_rules(snapshot, kind, joins):
                pin = snapshot.graph_version.pins[kind.table_key]
                self._report.found(rule, version_file(*pinned(pin)), example)
        except OmnigraphError as error:
            self._report.found("unreadable_rows", kind.table_key, error.message)

    def _broken_rules(
        self, snapshot: Snapshot, kind: GraphType, joins: Joins
    ) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        view = snapshot.view(kind)
        blobs = {p.name for p in kind.properties if p.type == ScalarType(Base.BLOB)}
        names = [name for name in view.schema.names if name not in blobs]
        for batch in view.scan(self._ledger, columns=names):
            rows = pa.Table.from_batches([batch])
            found += [
                (f"rule_{violation.rule}", violation.message)
                for violation in check_rows(kind, rows, limit=_TOLD)
                if violation.property not in blobs
            ]
            if kind.key and rows.num_rows:
                wrong = pc.not_equal(derive_ids(kind, rows), rows["id"])
                found += [
                    ("rule_key", f"{kind.name} {entity!r} has another key than its id.")
                    for entity in rows["id"].filter(wrong).slice(0, _TOLD).to_pylist()
                ]
        for columns in (("id",), *kind.uniques):
            found += self._repeated(snapshot, kind, columns, joins)
        if isinstance(kind, EdgeType):
            found += self._loose(snapshot, kind, joins)
            found += self._counts(snapshot, kind, joins)
        return found[: 4 * _TOLD]

    def _reader(
        self, snapshot: Snapshot, kind: GraphType, columns: Sequence[str]
    ) -> pa.RecordBatchReader:
        schema = row_schema(kind)
        names = list(dict.fromkeys(columns))
        batches = snapshot.view(kind).scan(self._ledger, columns=names)
        return pa.RecordBatchReader.from_batches(
            pa.schema([schema.field(name) for name in names]), batches
        )

    def _repeated(
        self, snapshot: Snapshot, kind: GraphType, columns: tuple[str, ...], joins: Joins
    ) -> list[tuple[str, str]]:
        keys, given = as_keys(kind, columns)
        names = ", ".join(f"k{i}" for i in range(len(columns)))
        again = joins.ask(
            f"WITH keyed AS (SELECT {keys} FROM rows WHERE {given}) "
            f"SELECT {names}, count(*) AS n FROM keyed GROUP BY {names} HAVING n > 1 "
            f"LIMIT {_TOLD}",
            rows=self._reader(snapshot, kind, columns),
        )
        rule = "rule_id" if columns == ("id",) else "rule_unique"
        shown = ", ".join(columns)
        return [
            (rule, f"{row['n']} entities of {kind.name} have the same {shown}: {row['k0']!r}.")
            for row in again.to_pylist()
        ]

    def _loose(self, snapshot: Snapshot, kind: EdgeType, joins: Joins) -> list[tuple[str, str]]:
        found = []
        for end, name in (("src", kind.source), ("dst", kind.target)):
            node = snapshot.catalog.node_names[name]
            loose = joins.ask(
                f"SELECT edges.id AS id, {end} AS v FROM edges ANTI JOIN nodes ON {end} = nodes.id "
                f"LIMIT {_TOLD}",
                edges=self._reader(snapshot, kind, ["id", end]),
                nodes=self._reader(snapshot, node, ["id"]),
            )
            found += [
                (
                    "rule_endpoint",
                    f"{kind.name} {row['id']!r} has {end} {row['v']!r}, which is no {name}.",
                )
                for row in loose.to_pylist()
            ]
        return found

    def _counts(self, snapshot: Snapshot, kind: EdgeType, joins: Joins) -> list[tuple[str, str]]:
        low, high = kind.card.low, kind.card.high
        if low == 0 and high is None:
            return []
        beyond = "false" if high is None else f"n > {high}"
        wrong = joins.ask(
            f"SELECT src, count(*) AS n FROM edges GROUP BY src HAVING n < {low} OR {beyond} "
            f"LIMIT {_TOLD}",
            edges=self._reader(snapshot, kind, ["src"]),
        )
        rule = f"{low}..{'' if high is None else high}"
        return [
            (
                "rule_card",
                f"{kind.source} {row['src']!r} has {row['n']} {kind.name} edges, not {rule}.",
            )
            for row in wrong.to_pylist()
        ]
