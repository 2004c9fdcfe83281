"""Owns what stored queries are to the model: texts by name, which schemas fit, how they merge."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.sim.world.model import Type

QUERY = "query"
Texts = Mapping[str, Any]
"""Texts by name; at the base of a merge also what several bases do not agree on."""
_READ = re.compile(r"match \{ \$v: (\w+) \} return \{ \$v\.(\w+) as v \}(?: // \w+)?")
_WRITE = re.compile(
    r"query \w+\(\$x: I64\) \{ update (\w+) set \{ (\w+): \$x \} where name = \"a\" \}"
)


def read_text(kind: str, name: str, word: str) -> str:
    return f"match {{ $v: {kind} }} return {{ $v.{name} as v }} // {word}"


def write_text(query: str, kind: str, name: str) -> str:
    return f'query {query}($x: I64) {{ update {kind} set {{ {name}: $x }} where name = "a" }}'


def is_write(text: str) -> bool:
    return _WRITE.fullmatch(text) is not None


def parts_of(text: str) -> tuple[str, str]:
    """The type and the property that a text names."""
    found = _READ.fullmatch(text) or _WRITE.fullmatch(text)
    assert found is not None, text
    return found[1], found[2]


def misfits(types: tuple[Type, ...], queries: Texts) -> list[str]:
    """Queries that a schema does not allow."""
    kinds = {one.name: one for one in types}
    wrong = []
    for name, text in queries.items():
        kind, asked = parts_of(text)
        found = kinds.get(kind)
        named = [] if found is None else [p for p in found.properties if p.name == asked]
        if not named or (is_write(text) and named[0].declared.kind != "I64"):
            wrong.append(name)
    return wrong


def merge(
    base: Texts,
    ours: Texts,
    theirs: Texts,
    pick: Callable[[str, str | None], str | None],
    resolve: Mapping[tuple[str, str], Any],
    conflicts: list[str],
) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for name in {*ours, *theirs, *(key for kind, key in resolve if kind == QUERY)}:
        was, mine, yours = base.get(name), ours.get(name), theirs.get(name)
        if (QUERY, name) in resolve:
            row = resolve[QUERY, name]
            text = None if row is None else row["text"]
        elif mine == yours or was == yours:
            text = mine
        elif was == mine:
            text = yours
        else:
            who = pick(QUERY, name)
            if who is None:
                conflicts.append(f"Query {name}")
            text = yours if who == "theirs" else mine
        if text is not None:
            merged[name] = text
    return merged
