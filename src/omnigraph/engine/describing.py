"""Owns the facts of a description: counts, and values of the first entities of each type."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from omnigraph.engine.graph_view import GraphView
from omnigraph.engine.view import TableView
from omnigraph.errors import InvalidArgument
from omnigraph.lang.pg.summary import TypeFacts, summarize
from omnigraph.model.catalog import GraphType
from omnigraph.model.types import Base, ScalarType

_EXAMPLES = 3
_LOOKED_AT = 8
_MOST_TYPES = 60
"""Of larger schemas no examples are read: they would not fit, and each type takes a request."""
LEAST = 200


def describe(pinned: GraphView, types: Sequence[str] | None, characters: int) -> str:
    if characters < LEAST:
        raise InvalidArgument(f"A description has at least {LEAST} characters, not {characters}.")
    shown = pinned.catalog
    if types is not None:
        wanted = {pinned.type(name).table_key for name in types}
        shown = msgspec.structs.replace(
            shown,
            nodes=tuple(kind for kind in shown.nodes if kind.table_key in wanted),
            edges=tuple(kind for kind in shown.edges if kind.table_key in wanted),
        )
    with_examples = len(shown.types) <= _MOST_TYPES
    facts = {kind.name: _facts(pinned, kind, with_examples) for kind in shown.types}
    return summarize(shown, facts, characters)


def _facts(pinned: GraphView, kind: GraphType, with_examples: bool) -> TypeFacts:
    names = [
        prop.name
        for prop in kind.properties
        if isinstance(prop.type, ScalarType) and prop.type.base != Base.BLOB
    ]
    count = pinned.count(kind.name)
    if not count or not names or not with_examples:
        return TypeFacts(count)
    rows = _first_rows(pinned, pinned.view(kind), names)
    return TypeFacts(count, {name: _texts(rows[name]) for name in names})


def _first_rows(pinned: GraphView, view: TableView, names: list[str]) -> pa.Table:
    """Few rows, by their places: what a table holds does not matter to the cost."""
    for mark in view.table.marks.values():
        if mark.deletion is None:
            offsets = np.arange(min(mark.physical, _LOOKED_AT), dtype=np.uint64)
        else:
            offsets = view.live_offsets(mark.id, pinned.io)[:_LOOKED_AT]
        places = offsets + (np.uint64(mark.id) << np.uint64(32))
        if len(view.overlay.hidden):
            places = places[~np.isin(places, view.overlay.hidden)]
        if len(places):
            return view.take(places, names, pinned.io)
    return view.take(np.array([], dtype=np.uint64), names, pinned.io)


def _texts(values: pa.ChunkedArray) -> list[str]:
    """The first different ones, as a query writes them."""
    found: dict[str, None] = {}
    for value in values.to_pylist():
        if value is not None:
            found.setdefault(_text(value))
    return list(found)[:_EXAMPLES]


def _text(value: Any) -> str:
    if isinstance(value, bool | int | float | str):
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(str(value), ensure_ascii=False)
