"""Owns what a graph holds, as plain dicts, and what statements and schema changes make of it.

Written from the documentation alone, with no regard to cost: a state is never shared with another
and every rule is looked at anew. Types and properties have a number for life (`uid`), so that a
renamed one stays the same one and one that was dropped and added again is another.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tests.sim.world import named

Kind = Literal["I64", "String", "Blob"]
Identity = Literal["key", "ends", "mark"]
Row = dict[Any, Any]
"""Values by the uid of the property; edges also have "src" and "dst"."""
Rows = dict[str, Row]
"""Rows by identity: the key, the pair of ends, or the mark, which no statement changes."""

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
    queries: dict[str, str] = field(default_factory=dict)

    def copy(self) -> State:
        rows = {
            uid: {key: dict(row) for key, row in rows.items()} for uid, rows in self.rows.items()
        }
        return State(self.types, rows, dict(self.queries))

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
        } | shown_queries(self.queries)

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


def shown_queries(texts: Mapping[str, str]) -> dict[str, dict[str, dict[str, Any]]]:
    """Stored queries, as if they were rows of a type."""
    return {named.QUERY: {name: {"text": text} for name, text in sorted(texts.items())}}


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


# Rules


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
