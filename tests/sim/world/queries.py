"""Owns queries that must give what the model holds: every row of a type, and one by its key."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.sim.world.model import State, Type
from tests.sim.world.steps import Fault

Found = list[dict[str, Any]]


def query_all(expected: State, kind: Type) -> tuple[str, list[str], Found]:
    """A query for every row of a type, by its columns or along its edges; what it returns, as it
    is written; and its rows."""
    names = [one.name for one in kind.properties if one.declared.kind != "Blob"]
    if kind.ends is None:
        pattern = f"$v: {kind.name}"
        values = [f"$v.{name} as {name}" for name in names]
    else:
        ends = [one.name for uid in kind.ends for one in expected.types if one.uid == uid]
        arrow = kind.name[0].lower() + kind.name[1:]
        pattern = f"$s: {ends[0]} $t: {ends[1]} $s $v:{arrow} $t"
        values = ["$s.name as src", "$t.name as dst"]
        values += [f"$v.{name} as {name}" for name in names]
        names = ["src", "dst", *names]
    text = f"match {{ {pattern} }} return {{ {', '.join(values)} }}"
    wanted = [
        {name: kind.named(row)[name] for name in names} for row in expected.rows[kind.uid].values()
    ]
    return text, values, wanted


def check_query(rows_of: Callable[[str], Found], expected: State, kind: Type) -> None:
    """Every row of a type, and one of them by its key."""
    text, values, wanted = query_all(expected, kind)
    same_rows(text, rows_of(text), wanted)
    if kind.identity == "key" and expected.rows[kind.uid]:
        key = max(expected.rows[kind.uid])
        first = kind.first.name
        pattern = f"$v: {kind.name} {{ {first}: {json.dumps(key)} }}"
        text = f"match {{ {pattern} }} return {{ {', '.join(values)} }}"
        same_rows(text, rows_of(text), [one for one in wanted if one[first] == key])


def same_rows(text: str, found: Found, wanted: Found) -> None:
    def ordered(rows: Found) -> list[str]:
        return sorted(repr(sorted(row.items())) for row in rows)

    if ordered(found) != ordered(wanted):
        raise Fault(f"{text}\n  gave {ordered(found)}\n  must be {ordered(wanted)}")
