"""Owns schema changes as writes: plans them, checks the data, and publishes one commit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from omnigraph.engine.session import Session
from omnigraph.engine.snapshot import Snapshot
from omnigraph.engine.write.publisher import Publisher
from omnigraph.engine.write.work import SHOWN, refuse
from omnigraph.errors import Conflict, InvalidArgument, InvalidSchema, UnsupportedChange
from omnigraph.lang.diagnostics import SHOWN_COLUMNS, render_all
from omnigraph.lang.pg import compile_schema
from omnigraph.model.catalog import Catalog, EdgeType, GraphType, table_schema
from omnigraph.model.schema import Schema
from omnigraph.model.types import arrow_type
from omnigraph.model.version import Commit, GraphVersion, TablePin
from omnigraph.model.violation import Violation
from omnigraph.model.words import read_word
from omnigraph.plan.convert import convert_values
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
from omnigraph.plan.validate import check_rows, key_texts
from omnigraph.runtime import Runtime, reach
from omnigraph.store.tables import Tables
from omnigraph.telemetry import Ledger

_PARALLEL = 8


@dataclass(frozen=True)
class Applied:
    """`applied` is False and `commit` None when the schema was that already."""

    applied: bool
    commit: Commit | None
    plan: MigrationPlan
    io: Ledger


def read_schema(text: str, path: str = "schema.pg", *, columns: int = SHOWN_COLUMNS) -> Schema:
    """A checked schema, or `InvalidSchema` with every mistake."""
    checked = compile_schema(text)
    errors = [d for d in checked.diagnostics if d.severity == "error"]
    if checked.schema is None or errors:
        count = f"{len(errors)} mistake{'s' if len(errors) != 1 else ''}"
        shown = render_all(errors, text, path, columns=columns)
        raise InvalidSchema(f"The schema has {count}.\n{shown}", diagnostics=errors)
    return checked.schema


def create_tables(
    tables: Tables, runtime: Runtime, kinds: list[GraphType], ledger: Ledger
) -> list[TablePin]:
    """One empty table per type. Two branches may create the same type, so the place is unique."""

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


class Migration:
    """A schema change under way, as the publisher sees it."""

    def __init__(
        self,
        session: Session,
        snapshot: Snapshot,
        text: str,
        lineage: Lineage,
        ledger: Ledger,
        *,
        forgets: bool = False,
    ) -> None:
        self._forgets = forgets
        self._session = session
        self._snapshot = snapshot
        self._ledger = ledger
        pins = snapshot.graph_version.pins
        populated = {key for key, pin in pins.items() if pin.rows}
        self.steps = plan_migration(snapshot.catalog, read_schema(text), populated=populated)
        self._refuse_unsupported()
        self._text = text
        self._lineage = lineage

    @property
    def base(self) -> GraphVersion:
        return self._snapshot.graph_version

    def prepare(self) -> None:
        """Checks the data and creates what can be created unseen."""
        snapshot = self._snapshot
        self._began = self._session.runtime.now()
        catalog = apply_steps(snapshot.catalog, self.steps.steps)
        checks = self._validate(catalog)
        schema, digest = self._session.write_schema(self._text, catalog, self._ledger)
        actions = tuple(self._actions(catalog))
        reach("schema staged")
        self.plan = PublishPlan(
            branch=snapshot.branch,
            base_version=snapshot.version,
            base_incarnation=self.base.incarnation,
            actions=actions,
            lineage=self._lineage,
            reads={table: self.base.pins[table].content for table in checks},
            schema=SchemaChange(schema=schema, catalog=digest),
            forgets=self._forgets and bool(self.steps.of_tier(Tier.DESTRUCTIVE)),
        )

    def replan(self, head: GraphVersion) -> None:
        raise Conflict("The graph moved while the schema was changed.")

    def stale(self, head: GraphVersion) -> bool:
        """Tables that were created for it may be gone (hazard 7); its caller begins anew."""
        return self._session.outlived(self._began, head)

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
        pins = create_tables(self._session.tables, self._session.runtime, new, self._ledger)
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
        """Existing rows against the new rules, for the types that have a validated step. Returns
        the tables that were looked at."""
        by_id = {kind.id: kind for kind in catalog.by_key.values()}
        keys = {step.type for step in self.steps.of_tier(Tier.VALIDATED)}
        violations: list[Violation] = []
        looked: set[str] = set()
        for old in self._snapshot.catalog.by_key.values():
            new = by_id.get(old.id)
            if new is None or new.table_key not in keys:
                continue
            looked.add(old.table_key)
            violations += self._check_type(old, new)
        refuse(violations[:SHOWN], more=len(violations) - SHOWN)
        return looked

    def _check_type(self, old: GraphType, new: GraphType) -> Iterator[Violation]:
        """Reads the old rows as the new type sees them."""
        was = {p.id: p.name for p in old.properties}
        kept = {p.name: was[p.id] for p in new.properties if p.id in was}
        added_uniques = [u for u in new.uniques if all(n in kept or n in ("src", "dst") for n in u)]
        seen: dict[tuple[str, ...], set[str]] = {u: set() for u in added_uniques}
        sources: dict[str, int] = {}
        card = isinstance(new, EdgeType) and any(
            isinstance(s, ChangeCard) and s.type == new.table_key for s in self.steps.steps
        )
        for batch in self._snapshot.view(old).scan(self._ledger):
            rows = _as_new(pa.Table.from_batches([batch]), new, kept)
            yield from check_rows(new, rows)
            for columns, texts in seen.items():
                for row, text in enumerate(key_texts(rows, columns)):
                    if text is not None and text in texts:
                        yield _duplicate(new, columns, rows["id"][row].as_py(), text)
                    if text is not None:
                        texts.add(text)
            if card:
                counted = rows["src"].value_counts()
                for value, count in zip(
                    counted.field("values").to_pylist(),
                    counted.field("counts").to_pylist(),
                    strict=True,
                ):
                    sources[value] = sources.get(value, 0) + count
        if card and isinstance(new, EdgeType):
            yield from _check_counts(new, sources)


def _as_new(rows: pa.Table, new: GraphType, kept: dict[str, str]) -> pa.Table:
    names = ["id", "src", "dst"] if isinstance(new, EdgeType) else ["id"]
    columns = {name: rows[name] for name in names}
    for p in new.properties:
        if p.name in kept:
            columns[p.name] = rows[kept[p.name]].cast(arrow_type(p.type))
    return pa.table(columns)


def _check_counts(kind: EdgeType, counts: dict[str, int]) -> Iterator[Violation]:
    for source, count in counts.items():
        high = kind.card.high
        if (high is not None and count > high) or count < kind.card.low:
            yield Violation(
                type=kind.name,
                rule="card",
                id=source,
                property="src",
                value=str(count),
                message=f"{kind.source} {source!r} has {count} {kind.name} edges, which "
                f"@card({kind.card.low}..{'' if high is None else high}) does not allow.",
            )


def _duplicate(kind: GraphType, columns: tuple[str, ...], entity: str, text: str) -> Violation:
    names = ", ".join(columns)
    return Violation(
        type=kind.name,
        rule="unique",
        id=entity,
        property=names,
        value=text[:80],
        message=f"{kind.name} {entity!r} has {names} = {text[:80]!r}, which another "
        f"{kind.name} has too.",
    )


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
    *,
    actor: str | None,
    message: str | None,
    retry_for: float,
    allow_data_loss: bool = False,
) -> Applied:
    """Publishes a schema as one commit. Rows written meanwhile make it start again; another
    schema change does not, because the plan was made against the one before it."""
    actor, message = read_word("actor", actor), read_word("message", message)
    ledger = Ledger()
    deadline = session.runtime.monotonic() + retry_for
    first_catalog: str | None = None
    while True:
        head = session.live_head(branch, ledger)
        session = session.holding(branch, head.incarnation)
        first_catalog = first_catalog or head.catalog
        lineage = Lineage(
            kind="schema", operation=session.runtime.ulid(), actor=actor, message=message
        )
        snapshot = session.snapshot(head, ledger)
        migration = Migration(session, snapshot, text, lineage, ledger, forgets=allow_data_loss)
        if not migration.steps.steps:
            return Applied(False, None, migration.steps, ledger)
        try:
            migration.prepare()
            published = Publisher(session).publish(migration, ledger, retry_for=retry_for)
        except Conflict:
            moved = session.live_head(branch, ledger)
            if moved.catalog != first_catalog or session.runtime.monotonic() > deadline:
                raise
            continue
        assert published.version is not None
        return Applied(True, published.version.commit, migration.steps, ledger)


def schema_text(schema: str | os.PathLike[str]) -> str:
    """A schema is a text if it holds a brace or is empty, else the path of a file."""
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
