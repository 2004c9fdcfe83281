"""Owns finding the first entities of a pattern: by id, by a filter that Lance evaluates, or by
reading columns in memory."""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.query.entities import NONE
from omnigraph.engine.query.frame import Frame
from omnigraph.engine.query.leaves import FrameLeaves
from omnigraph.engine.query.rows import TypeRows
from omnigraph.engine.query.search.searches import fixed_value
from omnigraph.lang.gq.checked import (
    Expression,
    PropertyValue,
    SystemValue,
    TextSearch,
    Variable,
)
from omnigraph.lang.gq.walk import used_variables, walk
from omnigraph.plan.query.keys import asked_ids
from omnigraph.plan.query.logical import KeyTest
from omnigraph.plan.values.push import Field, is_comparable, pushed
from omnigraph.plan.values.rows import Bindings

if TYPE_CHECKING:
    from omnigraph.engine.query.context import QueryContext

_SMALL = 50_000


def find_by_key(run: QueryContext, rows: TypeRows, key: KeyTest) -> np.ndarray:
    """Positions of the entities with these ids."""
    texts = asked_ids(rows.kind, key, Bindings(run.parameters, run.now))
    if not texts:
        return NONE
    _, positions = rows.find(("id",), texts)
    return np.sort(positions) if len(positions) > 1 else positions


def scan_type(
    run: QueryContext, rows: TypeRows, variable: Variable, tests: tuple[Expression, ...]
) -> tuple[np.ndarray, tuple[Expression, ...]]:
    """Positions of all entities that may pass, and the tests that remain."""
    searches = [t for t in tests if isinstance(t, TextSearch) and _is_fixed(t)]
    if searches:
        return _searched(run, rows, variable, searches), tuple(
            test for test in tests if not any(test is one for one in searches)
        )
    if not tests or rows.stored < _SMALL:
        return rows.live, tests
    names = {
        prop.name
        for test in tests
        for part in walk(test)
        if isinstance(part, PropertyValue) and part.variable == variable.id
        for prop in part.properties
    }
    if all(rows.is_held(name) for name in names) or rows.wants(sorted(names)):
        return rows.live, tests
    column = _column_of(rows, variable.kind.types.index(rows.kind))
    fixed = FrameLeaves(Frame({}, 1), run)
    conditions = [(test, pushed(test, column, fixed)) for test in tests]
    pushable = [condition for _, condition in conditions if condition is not None]
    if not pushable:
        return rows.live, tests
    together = reduce(and_, pushable)
    rest = tuple(test for test, condition in conditions if condition is None)
    # Pending rows are few and are checked by the tests themselves.
    return rows.matching(together), rest if rows.is_plain else tests


def _is_fixed(test: TextSearch) -> bool:
    """Whether the value to look for is the same for all rows."""
    parts = (test.words,) if test.edits is None else (test.words, test.edits)
    return not any(used_variables(part) for part in parts)


def _searched(
    run: QueryContext, rows: TypeRows, variable: Variable, searches: list[TextSearch]
) -> np.ndarray:
    """Positions of the entities whose texts match, found by an index."""
    fixed = FrameLeaves(Frame({}, 1), run)
    place = variable.kind.types.index(rows.kind)
    found: np.ndarray | None = None
    for one in searches:
        words = fixed_value(one.words, fixed)
        edits = None if one.edits is None else fixed_value(one.edits, fixed)
        positions = run.searches.positions(one, words, edits, rows, place)
        found = positions if found is None else np.intersect1d(found, positions)
    assert found is not None
    return found


def _column_of(rows: TypeRows, place: int) -> Field:
    """The column of the table that holds a property or a system value."""

    def column(value: Expression) -> tuple[pc.Expression, pa.DataType] | None:
        if isinstance(value, SystemValue):
            return pc.field(value.column), pa.string()
        if not isinstance(value, PropertyValue):
            return None
        prop = value.properties[place]
        if not is_comparable(prop.type):
            return None
        return pc.field(rows.view.column_of(prop.name)), rows.view.schema.field(prop.name).type

    return column
