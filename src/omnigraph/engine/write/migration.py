"""Owns schema changes as writes: it plans them, checks the data, and publishes one commit."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from omnigraph.engine.duckdb_sql import joining
from omnigraph.engine.graph_view import GraphView, full_view_of
from omnigraph.engine.session import Session
from omnigraph.engine.stored_queries import StoredQueries, queries_of_view, require_fitting
from omnigraph.engine.whole_table_rules import WholeTables
from omnigraph.engine.write.lineage import find_repeated, make_lineage
from omnigraph.engine.write.precondition import pin_commit
from omnigraph.engine.write.publisher import publish
from omnigraph.engine.write.work import SHOWN, refuse
from omnigraph.errors import Conflict, InvalidArgument, InvalidSchema, UnsupportedChange
from omnigraph.lang.diagnostics import SHOWN_COLUMNS, render_all
from omnigraph.lang.gq.stored import find_broken
from omnigraph.lang.pg import compile_schema
from omnigraph.model.arrow import arrow_type, table_schema
from omnigraph.model.catalog import Catalog, EdgeType, GraphType, system_columns
from omnigraph.model.options import CommitOptions
from omnigraph.model.schema import Schema
from omnigraph.model.version import Commit, GraphVersion, TablePin
from omnigraph.model.violation import Violation
from omnigraph.plan.migrate import MigrationPlan, apply_steps, plan_migration
from omnigraph.plan.migrate.steps import (
    AddProperty,
    AddType,
    ChangeCard,
    DropProperty,
    DropType,
    RenameType,
    Tier,
    WidenProperty,
)
from omnigraph.plan.publish import (
    AddColumns,
    DropColumns,
    Lineage,
    PublishPlan,
    Register,
    Rename,
    SchemaChange,
    TableAction,
    Tombstone,
)
from omnigraph.plan.rows.convert import convert_values
from omnigraph.plan.rules.book import CardRule, UniqueRule, final_rules
from omnigraph.plan.validate import check_rows
from omnigraph.runtime import Runtime, reach
from omnigraph.store.open_tables import Tables
from omnigraph.telemetry import Ledger

_PARALLEL = 8


@dataclass(frozen=True)
class Applied:
    """`applied` is False and `commit` None if the graph had this schema already."""

    applied: bool
    commit: Commit | None
    plan: MigrationPlan
    io: Ledger
    repeated: bool = False
    """An earlier call with the same idempotency key had made the change; `plan` then has no
    steps."""


def read_schema(text: str, path: str = "schema.pg", *, columns: int = SHOWN_COLUMNS) -> Schema:
    """A checked schema, or `InvalidSchema` with every error."""
    checked = compile_schema(text)
    errors = [d for d in checked.diagnostics if d.severity == "error"]
    if checked.schema is None or errors:
        count = f"{len(errors)} mistake{'s' if len(errors) != 1 else ''}"
        shown = render_all(errors, text, path, columns=columns)
        raise InvalidSchema(f"The schema has {count}.\n{shown}", diagnostics=errors)
    return checked.schema


def with_broken_queries(plan: MigrationPlan, view: GraphView) -> MigrationPlan:
    """The plan, with the stored queries that would not run any more."""
    held = StoredQueries.shared_by(view._session)  # noqa: SLF001  (a view is its session's)
    queries = held.read(view.graph_version.queries, view.io)
    if not queries or not plan.steps or plan.unsupported:
        return plan
    broken = find_broken(queries, apply_steps(view.catalog, plan.steps))
    return msgspec.structs.replace(plan, broken=broken)


def create_tables(
    tables: Tables, runtime: Runtime, kinds: list[GraphType], ledger: Ledger
) -> list[TablePin]:
    """One empty table for each type. Two branches may create the same type, so locations are
    unique."""

    def create(kind: GraphType) -> tuple[TablePin, Ledger]:
        own = Ledger()
        folder = "edges" if isinstance(kind, EdgeType) else "nodes"
        location = f"{folder}/{fnv1a64(kind.name):016x}-{runtime.ulid()}"
        table = tables.create(location, table_schema(kind), own)
        pin = TablePin(
            key=kind.table_key,
            type_id=kind.id,
            location=location,
            table_version=1,
            content=runtime.ulid(),
            lance_version=table.version,
            rows=0,
            fragments=0,
        )
        return pin, own

    with ThreadPoolExecutor(_PARALLEL) as pool:
        made = list(pool.map(create, kinds))
    ledger.join([own for _, own in made])
    return [pin for pin, _ in made]


def fnv1a64(text: str) -> int:
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    return value


@dataclass
class Migration:
    """A schema change as the publisher sees it."""

    session: Session
    snapshot: GraphView
    text: str
    lineage: Lineage
    ledger: Ledger
    forgets: bool = False
    if_commit: str | None = None
    steps: MigrationPlan = field(init=False)

    def __post_init__(self) -> None:
        pins = self.snapshot.graph_version.pins
        populated = {key for key, pin in pins.items() if pin.rows}
        schema = read_schema(self.text)
        self.steps = plan_migration(self.snapshot.catalog, schema, populated=populated)
        self._refuse_unsupported()

    @property
    def base(self) -> GraphVersion:
        return self.snapshot.graph_version

    def prepare(self) -> None:
        """Checks the data and creates what can be created before the commit."""
        snapshot = self.snapshot
        self._began = self.session.runtime.now()
        catalog = apply_steps(snapshot.catalog, self.steps.steps)
        require_fitting(queries_of_view(snapshot), catalog)
        checks = self._validate(catalog)
        schema, digest = self.session.write_schema(self.text, catalog, self.ledger)
        actions = tuple(self._actions(catalog))
        reach("schema staged")
        self.plan = PublishPlan(
            branch=snapshot.branch,
            base_version=snapshot.version,
            base_incarnation=self.base.incarnation,
            actions=actions,
            lineage=self.lineage,
            reads={table: self.base.pins[table].content for table in checks},
            schema=SchemaChange(schema=schema, catalog=digest),
            if_commit=self.if_commit,
            forgets=self.forgets and bool(self.steps.of_tier(Tier.DESTRUCTIVE)),
        )

    def replan(self, head: GraphVersion) -> None:
        raise Conflict("The graph moved while the schema was changed.")

    def stale(self, head: GraphVersion) -> bool:
        """Whether tables that were created for it may be gone (hazard 7). Its caller then starts
        again."""
        return self.session.outlived(self._began, head)

    def _refuse_unsupported(self) -> None:
        wrong = self.steps.unsupported
        if wrong:
            more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
            raise UnsupportedChange(
                f"{wrong[0].code}: {wrong[0].reason}{more}", help=wrong[0].help, steps=wrong
            )

    def _actions(self, catalog: Catalog) -> Iterator[TableAction]:
        added: dict[str, list[Any]] = {}
        dropped: dict[str, list[str]] = {}
        renamed: dict[str, str] = {}
        new: list[GraphType] = []
        for step in self.steps.steps:
            match step:
                case AddType(definition=kind):
                    new.append(kind)
                case RenameType():
                    prefix = step.type.split(":", 1)[0]
                    renamed[f"{prefix}:{step.new}"] = f"{prefix}:{step.old}"
                case DropType():
                    yield Tombstone(table=step.type)
                case AddProperty() | WidenProperty():
                    added.setdefault(step.type, []).append(step)
                case DropProperty():
                    dropped.setdefault(step.type, []).append(step.column)
        pins = create_tables(self.session.tables, self.session.runtime, new, self.ledger)
        for pin in pins:
            yield Register(table=pin.key, pin=pin)
        for key, old in renamed.items():
            yield Rename(table=old, to=key)
        for key, steps in added.items():
            table = renamed.get(key, key)
            yield _add_columns(table, self.base.pins[table].lance_version, steps, catalog, key)
        for key, columns in dropped.items():
            if key not in added:
                yield DropColumns(table=renamed.get(key, key), columns=tuple(columns))

    def _validate(self, catalog: Catalog) -> set[str]:
        """Checks existing rows against the new rules of types with a validated step. Returns the
        tables that were checked."""
        by_id = {kind.id: kind for kind in catalog.by_key.values()}
        keys = {step.type for step in self.steps.of_tier(Tier.VALIDATED)}
        old_of = {
            new.table_key: old
            for old in self.snapshot.catalog.by_key.values()
            if (new := by_id.get(old.id)) is not None and new.table_key in keys
        }
        violations: list[Violation] = []
        for key, old in old_of.items():
            violations += self._check_values(old, catalog.by_key[key])
        violations += self._check_rules(catalog, old_of)
        refuse(violations[:SHOWN], more=len(violations) - SHOWN)
        return {old.table_key for old in old_of.values()}

    def _check_values(self, old: GraphType, new: GraphType) -> Iterator[Violation]:
        kept = _kept(old, new)
        for batch in self.snapshot.view(old).scan(self.ledger):
            yield from check_rows(new, _as_new(pa.Table.from_batches([batch]), new, kept))

    def _check_rules(self, catalog: Catalog, old_of: dict[str, GraphType]) -> list[Violation]:
        """Ends do not change with a schema, so only the other rules are checked."""

        def read(new: GraphType, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
            old = old_of[new.table_key]
            kept = _kept(old, new)
            names = [kept.get(name, name) for name in columns]
            for batch in self.snapshot.view(old).scan(self.ledger, columns=names):
                rows = _as_new(pa.Table.from_batches([batch]), new, kept)
                yield from rows.select(list(columns)).combine_chunks().to_batches()

        counted = {step.type for step in self.steps.steps if isinstance(step, ChangeCard)}
        rules = [
            rule
            for rule in final_rules(catalog, old_of)
            if (isinstance(rule, UniqueRule) and _can_clash(old_of[rule.kind.table_key], rule))
            or (isinstance(rule, CardRule) and rule.kind.table_key in counted)
        ]
        if not rules:
            return []
        with joining(self.session.settings.load_memory // 2, "schema") as joins:
            return list(WholeTables(joins, read, SHOWN).check(rules))


def _kept(old: GraphType, new: GraphType) -> dict[str, str]:
    """The present names of the properties that the type has already."""
    was = {p.id: p.name for p in old.properties}
    return {p.name: was[p.id] for p in new.properties if p.id in was}


def _can_clash(old: GraphType, rule: UniqueRule) -> bool:
    """Rows have no values yet for a new property; the planner guarantees that."""
    kept = _kept(old, rule.kind)
    return all(name in kept or name in system_columns(rule.kind) for name in rule.columns)


def _as_new(rows: pa.Table, new: GraphType, kept: dict[str, str]) -> pa.Table:
    """Old rows in the form of the new type, with the columns that exist."""
    columns = {name: rows[name] for name in system_columns(new) if name in rows.column_names}
    for p in new.properties:
        if kept.get(p.name) in rows.column_names:
            columns[p.name] = rows[kept[p.name]].cast(arrow_type(p.type))
    return pa.table(columns)


def _add_columns(table: str, base: str, steps: list[Any], catalog: Catalog, key: str) -> AddColumns:
    kind = catalog.by_key[key]
    schema = table_schema(kind)
    fields, fills, casts = [], {}, {}
    for step in steps:
        if isinstance(step, WidenProperty):
            fields.append(schema.field(step.new_column))
            casts[step.new_column] = step.old_column
            continue
        fields.append(schema.field(step.property.column))
        if step.fill is not None and step.fill.value is not None:
            value = step.fill.value
            value = list(value) if isinstance(value, tuple) else value
            fills[step.property.column] = convert_values([value], step.property.type).array
    fill = None
    if fills:
        batch = pa.RecordBatch.from_arrays(
            [a.combine_chunks() if isinstance(a, pa.ChunkedArray) else a for a in fills.values()],
            schema=pa.schema([schema.field(name) for name in fills]),
        )
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        fill = bytes(sink.getvalue())
    return AddColumns(
        table=table,
        base=base,
        columns=bytes(pa.schema(fields).serialize()),
        fill=fill,
        casts=casts,
    )


def apply_schema(
    session: Session,
    branch: str,
    text: str,
    options: CommitOptions,
    *,
    allow_data_loss: bool = False,
) -> Applied:
    """Publishes a schema as one commit. If rows are written meanwhile, it starts again. If another
    schema change comes first, it fails, because the plan was made for the schema before that."""
    ledger = Ledger()
    lineage = make_lineage(session, "schema", options, text, branch, allow_data_loss)
    if (known := find_repeated(session, branch, lineage, ledger)) is not None:
        return Applied(True, known.commit, MigrationPlan(base=known.catalog), ledger, repeated=True)
    patience = options.patience(session.settings.retry_for)
    deadline = session.runtime.monotonic() + patience
    first_catalog: str | None = None
    while True:
        head = session.live_head(branch, ledger)
        session = session.holding(branch, head.incarnation)
        first_catalog = first_catalog or head.catalog
        pinned = pin_commit(session, head, options, ledger)
        lineage = msgspec.structs.replace(lineage, operation=session.runtime.ulid())
        snapshot = full_view_of(session, head, ledger)
        migration = Migration(
            session, snapshot, text, lineage, ledger, forgets=allow_data_loss, if_commit=pinned
        )
        if not migration.steps.steps:
            return Applied(False, None, migration.steps, ledger)
        try:
            migration.prepare()
            published = publish(session, migration, ledger, retry_for=patience)
        except Conflict:
            moved = session.live_head(branch, ledger)
            if moved.catalog != first_catalog or session.runtime.monotonic() > deadline:
                raise
            continue
        made = published.version or published.first
        assert made is not None
        return Applied(True, made.commit, migration.steps, ledger, repeated=published.repeated)


def schema_text(schema: str | os.PathLike[str]) -> str:
    """A text that contains a brace or is empty is a schema; any other text is the path of a
    file."""
    if not isinstance(schema, str | os.PathLike):
        raise InvalidArgument(f"A schema is a text or a path, not {type(schema).__name__}.")
    if isinstance(schema, str) and ("{" in schema or "\n" in schema or not schema.strip()):
        return schema
    try:
        return Path(schema).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(
            f"The schema {os.fspath(schema)!r} cannot be read: {error}."
        ) from None
