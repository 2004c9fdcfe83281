"""Owns when a vector is stale: its source has another text, and nobody has given a new vector.
Pure.

A stale vector becomes null in the same write. So an existing vector always belongs to its text, and
the rows alone show what has to be embedded.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model.catalog import GraphType


@lru_cache(maxsize=1024)
def embedded_from(kind: GraphType) -> tuple[tuple[str, str], ...]:
    """The vectors of a type that come from a text, each with the property that holds the text."""
    return tuple((p.name, p.embed.source) for p in kind.properties if p.embed is not None)


def watched_sources(kind: GraphType, given: Collection[str]) -> list[str]:
    """The properties whose old values a write needs to know, given the properties that it sets."""
    pairs = embedded_from(kind)
    return list(dict.fromkeys(s for v, s in pairs if s in given and v not in given))


def clear_stale(
    kind: GraphType,
    given: Collection[str],
    rows: pa.Table,
    old: pa.Table,
    places: np.ndarray[Any, Any] | None = None,
) -> pa.Table:
    """The rows without vectors of texts that they no longer have. `old` holds the former values of
    the watched sources, of the rows at `places` or of all rows."""
    for vector, source in embedded_from(kind):
        if source not in given or vector in given:
            continue
        at = np.arange(rows.num_rows) if places is None else places
        changed = at[_differ(rows[source].take(pa.array(at)), old[source])]
        if len(changed):
            place = rows.schema.get_field_index(vector)
            rows = rows.set_column(
                place, rows.schema.field(place), without_values(rows[vector], changed)
            )
    return rows


def without_values(column: pa.ChunkedArray, at: np.ndarray[Any, Any]) -> pa.ChunkedArray:
    """The column with null at some places."""
    kept = np.arange(len(column))
    mask = np.isin(kept, at)
    return column.take(pa.array(kept, mask=mask))


def _differ(now: pa.ChunkedArray, was: pa.ChunkedArray) -> np.ndarray[Any, Any]:
    """Where two columns differ. Two nulls are equal."""
    unequal = pc.fill_null(pc.not_equal(now, was), False)
    one_null = pc.xor(now.is_null(), was.is_null())
    return np.asarray(pc.or_(unequal, one_null)).astype(bool)
