"""Owns what a graph holds, as plain dicts, and what statements and schema changes make of it.

Written from the documentation alone, with no regard to cost: a state is never shared with another
and every rule is looked at anew. Types and properties have a number for life (`uid`), so that a
renamed one stays the same one and one that was dropped and added again is another.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Kind = Literal["I64", "String", "Blob"]
Identity = Literal["key", "ends", "mark"]
Row = dict[Any, Any]
"""Values by the uid of the property; edges also have "src" and "dst"."""
Rows = dict[str, Row]
"""Rows by identity: the key, the pair of ends, or the mark, which no statement changes."""

_UIDS = itertools.count(1)
PYTHON: dict[str, type] = {"I64": int, "String": str, "Blob": bytes}


class Refused(Exception):
    """The model says that this must be refused, with one of these codes (none: any)."""

    def __init__(self, why: str, *codes: str) -> None:
        super().__init__(why)
        self.codes = frozenset(codes)


class Unsure(Exception):
    """The documentation does not decide this; whatever happens is looked at, not foretold."""


@dataclass(frozen=True)
class Declared:
    """A property as a schema text declares it."""

    name: str
    kind: Kind
    default: Any = None
    unique: bool = False
    required: bool = False
    rename_from: str | None = None

    def text(self) -> str:
        nullable = "" if self.default is not None or self.required else "?"
        written = f"{self.name}: {self.kind}{nullable}"
        if self.default is not None:
            written += f" @default({json.dumps(self.default)})"
        if self.unique:
            written += " @unique"
        if self.rename_from:
            written += f' @rename_from("{self.rename_from}")'
        return written


@dataclass(frozen=True)
class DeclaredType:
    name: str
    identity: Identity
    properties: tuple[Declared, ...]
    ends: tuple[str, str] | None = None
    card: int | None = None
    rename_from: str | None = None

    def text(self) -> str:
        head = f"node {self.name}"
        if self.ends is not None:
            head = f"edge {self.name}: {self.ends[0]} -> {self.ends[1]}"
            head += "" if self.card is None else f" @card(0..{self.card})"
        if self.rename_from:
            head += f' @rename_from("{self.rename_from}")'
        body = [one.text() for one in self.properties]
        if self.identity == "key":
            body[0] += " @key"
        if self.identity == "ends":
            body.append("@key(src, dst)")
        return head + " {\n    " + "\n    ".join(body) + "\n}\n"


Text = tuple[DeclaredType, ...]


def schema_text(types: Text) -> str:
    return "\n".join(one.text() for one in types)


@dataclass(frozen=True)
class Property:
    uid: int
    declared: Declared
    filled: Any = None
    """What entities have that are older than the property."""

    @property
    def name(self) -> str:
        return self.declared.name


@dataclass(frozen=True)
class Type:
    uid: int
    declared: DeclaredType
    properties: tuple[Property, ...]
    ends: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        return self.declared.name

    @property
    def identity(self) -> Identity:
        return self.declared.identity

    @property
    def first(self) -> Property:
        """The key or the mark of a type that has one."""
        return self.properties[0]

    def find(self, name: str) -> Property:
        for one in self.properties:
            if one.name == name:
                return one
        raise Refused(f"{self.name} has no {name}")

    def named(self, row: Row) -> dict[str, Any]:
        """A row as a user sees it."""
        ends = {} if self.ends is None else {"src": row["src"], "dst": row["dst"]}
        return ends | {one.name: row[one.uid] for one in self.properties}


@dataclass
class State:
    """All that a reader can see of a graph version."""

    types: tuple[Type, ...] = ()
    rows: dict[int, Rows] = field(default_factory=dict)

    def copy(self) -> State:
        rows = {
            uid: {key: dict(row) for key, row in rows.items()} for uid, rows in self.rows.items()
        }
        return State(self.types, rows)

    def type(self, name: str) -> Type:
        for one in self.types:
            if one.name == name:
                return one
        raise Refused(f"there is no type {name}", "type_not_found", "invalid_query")

    def has(self, name: str) -> bool:
        return any(one.name == name for one in self.types)

    def of(self, name: str) -> Rows:
        return self.rows[self.type(name).uid]

    def shown(self) -> dict[str, dict[str, dict[str, Any]]]:
        """By the names that users see."""
        return {
            one.name: {key: one.named(row) for key, row in sorted(self.rows[one.uid].items())}
            for one in self.types
        }

    def text(self) -> Text:
        """The schema as it would be written down, without renames."""
        return tuple(
            replace(
                one.declared,
                rename_from=None,
                properties=tuple(replace(p.declared, rename_from=None) for p in one.properties),
            )
            for one in self.types
        )

    def same_schema(self, other: State) -> bool:
        def shape(state: State) -> Any:
            return {
                one.uid: (
                    one.name,
                    one.ends,
                    frozenset((p.uid, p.name, p.declared.unique) for p in one.properties),
                )
                for one in state.types
            }

        return bool(shape(self) == shape(other))


def renumber(state: State, old: int, new: int) -> None:
    """Two branches gave one thing two numbers; from now on it has one."""
    uids = {one.uid for one in state.types} | {p.uid for k in state.types for p in k.properties}
    if old not in uids or new in uids:
        return
    state.types = tuple(
        Type(
            new if kind.uid == old else kind.uid,
            kind.declared,
            tuple(replace(p, uid=new) if p.uid == old else p for p in kind.properties),
            None
            if kind.ends is None
            else (
                new if kind.ends[0] == old else kind.ends[0],
                new if kind.ends[1] == old else kind.ends[1],
            ),
        )
        for kind in state.types
    )
    state.rows = {
        new if uid == old else uid: {
            key: {new if name == old else name: value for name, value in row.items()}
            for key, row in rows.items()
        }
        for uid, rows in state.rows.items()
    }


# Statements


@dataclass(frozen=True)
class Where:
    property: str
    op: Literal["=", "<", ">="]
    value: Any

    def holds(self, kind: Type, row: Row) -> bool:
        held = row[kind.find(self.property).uid]
        if held is None:
            return False
        if type(held) is not type(self.value):
            raise Unsure("a comparison of two kinds")
        if self.op == "=":
            return bool(held == self.value)
        return bool(held < self.value if self.op == "<" else held >= self.value)


@dataclass(frozen=True)
class Statement:
    """`verb` is append, upsert, overwrite, update, delete, scan or count."""

    verb: str
    type: str
    rows: tuple[Mapping[str, Any], ...] = ()
    set: Mapping[str, Any] = field(default_factory=dict)
    add: str | None = None
    where: Where | None = None

    def __str__(self) -> str:
        parts = [repr(list(map(dict, self.rows)))] if self.rows else []
        parts += [f"set={dict(self.set)}"] if self.set else []
        parts += [f"{self.add} += 1"] if self.add else []
        parts += (
            [f"where {self.where.property} {self.where.op} {self.where.value!r}"]
            if self.where
            else []
        )
        return f"{self.verb} {self.type} {' '.join(parts)}".strip()


def run_statements(state: State, statements: Sequence[Statement]) -> tuple[State, list[Any]]:
    """What they leave, checked as a whole, and what each one tells its caller."""
    state = state.copy()
    told = [run_statement(state, one) for one in statements]
    check(state)
    return state, told


def run_statement(state: State, statement: Statement) -> Any:
    """Changes the state; what it tells."""
    kind = state.type(statement.type)
    rows = state.rows[kind.uid]
    match statement.verb:
        case "scan":
            return shown_rows(kind, rows)
        case "count":
            return len(rows)
        case "update":
            return _update(kind, rows, statement)
        case "delete":
            gone = [
                key
                for key, row in rows.items()
                if statement.where is None or statement.where.holds(kind, row)
            ]
            for key in gone:
                remove(state, kind, key)
            return len(gone)
        case "overwrite":
            rows.clear()
    given = [identity_of(kind, row) for row in statement.rows]
    if len(set(given)) != len(given):
        raise Refused("an id is given twice", "invalid_data")
    for row in statement.rows:
        give_row(state, kind, row, must_be_new=statement.verb == "append")
    return len(given)


def shown_rows(kind: Type, rows: Rows) -> dict[str, dict[str, Any]]:
    return {key: kind.named(row) for key, row in rows.items()}


def _update(kind: Type, rows: Rows, statement: Statement) -> int:
    changed = [
        row for row in rows.values() if statement.where is None or statement.where.holds(kind, row)
    ]
    for name, value in statement.set.items():
        one = kind.find(name)
        check_value(one, value)
        for row in changed:
            row[one.uid] = value
    if statement.add is not None:
        one = kind.find(statement.add)
        if one.declared.kind != "I64":
            raise Refused("only numbers are added to")
        for row in changed:
            row[one.uid] = None if row[one.uid] is None else row[one.uid] + 1
    return len(changed)


def identity_of(kind: Type, row: Mapping[str, Any]) -> str:
    if kind.identity == "ends":
        return pair(row["from"], row["to"])
    return str(row[kind.first.name]) if kind.first.name in row else ""


def pair(src: str, dst: str) -> str:
    return json.dumps([src, dst], separators=(",", ":"))


def give_row(state: State, kind: Type, given: Mapping[str, Any], *, must_be_new: bool) -> None:
    names = {one.name for one in kind.properties} | ({"from", "to"} if kind.ends else set())
    if set(given) - names:
        raise Refused(f"{kind.name} has no {set(given) - names}", "invalid_data")
    for one in kind.properties:
        if one.name in given:
            check_value(one, given[one.name])
        elif one.declared.required:
            raise Refused(f"{one.name} is required", "invalid_data")
    rows, key = state.rows[kind.uid], identity_of(kind, given)
    if key in rows and must_be_new:
        raise Refused(f"{kind.name} {key} is there already", "invalid_data")
    if key not in rows:
        rows[key] = {one.uid: one.declared.default for one in kind.properties}
        if kind.ends is not None:
            rows[key] |= {"src": given["from"], "dst": given["to"]}
    rows[key] |= {
        kind.find(name).uid: value for name, value in given.items() if name not in ("from", "to")
    }


def check_value(one: Property, value: Any) -> None:
    if value is None:
        if one.declared.default is not None or one.declared.required:
            raise Refused(f"{one.name} is not nullable", "invalid_data")
    elif type(value) is not PYTHON[one.declared.kind]:
        raise Unsure("a value of another kind")


def remove(state: State, kind: Type, key: str) -> None:
    """An entity, and with a node its edges."""
    del state.rows[kind.uid][key]
    for other in state.types:
        if other.ends is None or kind.ends is not None:
            continue
        held = state.rows[other.uid]
        for edge, row in list(held.items()):
            if (other.ends[0] == kind.uid and row["src"] == key) or (
                other.ends[1] == kind.uid and row["dst"] == key
            ):
                del held[edge]


def broken_rules(state: State) -> list[str]:
    """Edges without ends, values taken twice, too many edges."""
    broken = []
    for kind in state.types:
        rows = state.rows[kind.uid]
        if kind.ends is not None:
            ends = zip(("src", "dst"), kind.ends, strict=True)
            broken += [
                f"{kind.name} {key} has no {end}"
                for end, node in ends
                for key, row in rows.items()
                if row[end] not in state.rows[node]
            ]
            sources = [row["src"] for row in rows.values()]
            if kind.declared.card is not None:
                broken += [
                    f"{kind.name}: {one} has too many"
                    for one in set(sources)
                    if sources.count(one) > kind.declared.card
                ]
        for one in kind.properties:
            held = [row[one.uid] for row in rows.values() if row[one.uid] is not None]
            if one.declared.unique and len(set(held)) < len(held):
                broken.append(f"{kind.name}.{one.name} is not unique")
    return broken


def check(state: State) -> None:
    if broken := broken_rules(state):
        raise Refused("; ".join(broken), "invalid_data")


# Schemas


def begin(types: Text) -> State:
    return migrate(State(), types)


def migrate(state: State, types: Text) -> State:
    """The state under another schema text."""
    held = {one.name: one for one in state.types}
    nodes = {one.name for one in types if one.ends is None}
    for one in types:
        if one.ends is not None and not set(one.ends) <= nodes:
            raise Refused("an end is not there", "invalid_schema")
    made: dict[str, Type] = {}
    rows: dict[int, Rows] = {}
    for one in types:
        old = _renamed(held, one.name, one.rename_from)
        properties = _properties(
            old, one.properties, 0 if old is None else len(state.rows[old.uid])
        )
        uid = next(_UIDS) if old is None else old.uid
        ends = None if one.ends is None else (made[one.ends[0]].uid, made[one.ends[1]].uid)
        if old is not None and ends != old.ends:
            raise Refused("the ends of an edge type stay", "unsupported_change")
        made[one.name] = Type(uid, one, properties, ends)
        rows[uid] = _reshape(old, properties, {} if old is None else state.rows[old.uid])
    result = State(tuple(made.values()), rows)
    if broken := broken_rules(result):
        raise Refused("; ".join(broken), "invalid_data", "unsupported_change")
    return result


def _renamed(held: Mapping[str, Any], name: str, rename_from: str | None) -> Any:
    if rename_from is None:
        return held.get(name)
    if rename_from not in held:
        # A text that says again what was renamed before is not decided here.
        raise (
            Refused("nothing to rename", "unsupported_change") if name not in held else Unsure(name)
        )
    if name in held:
        raise Refused("the name is taken", "unsupported_change")
    return held[rename_from]


def _properties(
    old: Type | None, declared: tuple[Declared, ...], rows: int
) -> tuple[Property, ...]:
    held = {} if old is None else {one.name: one for one in old.properties}
    made = []
    for one in declared:
        before = _renamed(held, one.name, one.rename_from)
        if before is None:
            if one.required and rows:
                raise Refused(
                    "a required property for entities that are there", "unsupported_change"
                )
            made.append(Property(next(_UIDS), one, one.default))
        elif before.declared.kind != one.kind:
            raise Refused("values do not change their kind", "unsupported_change")
        elif (before.declared.default is None) != (one.default is None):
            raise Unsure("a property that becomes required, or nullable")
        else:
            made.append(Property(before.uid, one, before.filled))
    return tuple(made)


def _reshape(old: Type | None, properties: tuple[Property, ...], rows: Rows) -> Rows:
    if old is None:
        return {}
    return {key: reshape_row(properties, row) for key, row in rows.items()}


def reshape_row(properties: tuple[Property, ...], row: Row) -> Row:
    ends = {end: row[end] for end in ("src", "dst") if end in row}
    return ends | {one.uid: row.get(one.uid, one.filled) for one in properties}


# Differences

Change = tuple[str, str, str, tuple[str, ...]]
"""Operation, type, identity, and which properties an update changed."""


def differences(old: State, new: State) -> dict[str, set[Change] | None]:
    """What leads from one to the other, by the name of the type; None where the type has another
    shape, of which the documentation does not say what is a change."""
    before = {one.uid: one for one in old.types}
    after = {one.uid: one for one in new.types}
    found: dict[str, set[Change] | None] = {}
    for uid in before.keys() | after.keys():
        was, now = before.get(uid), after.get(uid)
        if was is None or now is None or _shape(was) != _shape(now):
            for one in (was, now):
                if one is not None:
                    found[one.name] = None
            continue
        found.setdefault(now.name, _row_changes(now, old.rows[uid], new.rows[uid]))
    return found


def _shape(kind: Type) -> Any:
    return kind.name, kind.ends, {(one.uid, one.name) for one in kind.properties}


def _row_changes(kind: Type, old: Rows, new: Rows) -> set[Change]:
    changes: set[Change] = set()
    for key in old.keys() | new.keys():
        if key not in old:
            changes.add(("insert", kind.name, key, ()))
        elif key not in new:
            changes.add(("delete", kind.name, key, ()))
        elif old[key] != new[key]:
            was, now = kind.named(old[key]), kind.named(new[key])
            names = tuple(sorted(name for name in now if was[name] != now[name]))
            changes.add(("update", kind.name, key, names))
    return changes
