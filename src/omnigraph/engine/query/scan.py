"""Owns finding the first entities of a pattern: by id, by a filter that Lance answers, or by
looking at columns in memory."""

from __future__ import annotations

from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.query.entities import NONE
from omnigraph.engine.query.frame import Frame
from omnigraph.engine.query.leaves import FrameLeaves
from omnigraph.engine.query.rows import TypeRows
from omnigraph.lang.gq.checked import (
    And,
    Comparison,
    Expression,
    Membership,
    Not,
    NullTest,
    Or,
    PropertyValue,
    SystemValue,
    Variable,
)
from omnigraph.lang.gq.walk import used_variables, walk
from omnigraph.model.identity import InvalidKeyError, derive_id
from omnigraph.model.types import FLOATS, ListType, ScalarType, VectorType
from omnigraph.plan.query.logical import KeyTest
from omnigraph.plan.values import evaluate

if TYPE_CHECKING:
    from omnigraph.engine.query.run import Run

_SMALL = 50_000


def find_by_key(run: Run, rows: TypeRows, key: KeyTest) -> np.ndarray:
    """Positions of the entities with these ids; what no id can be is nobody's."""
    texts = [text for text in _texts(run, rows, key) if text is not None]
    if not texts:
        return NONE
    _, positions = rows.find(("id",), list(dict.fromkeys(texts)))
    return np.sort(positions) if len(positions) > 1 else positions


def _texts(run: Run, rows: TypeRows, key: KeyTest) -> list[str | None]:
    leaves = FrameLeaves(Frame({}, 1), run)
    if key.ids is not None:
        value = _python(evaluate(key.ids, leaves))
        return (list(value) if value is not None else []) if key.many else [value]
    values = {name: _python(evaluate(value, leaves)) for name, value in key.values}
    if not key.many:
        return [_derived(rows, values)]
    ((name, listed),) = values.items()
    return [_derived(rows, {name: value}) for value in listed or ()]


def _python(value: Any) -> Any:
    held = value[0] if isinstance(value, pa.Array) else value
    return held.as_py()


def _derived(rows: TypeRows, values: dict[str, Any]) -> str | None:
    if any(value is None for value in values.values()):
        return None
    try:
        return derive_id(rows.kind, values)
    except InvalidKeyError:
        return None


def scan_type(
    run: Run, rows: TypeRows, variable: Variable, tests: tuple[Expression, ...]
) -> tuple[np.ndarray, tuple[Expression, ...]]:
    """Positions of all entities that may pass, and the tests that are still to be made."""
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
    place = variable.kind.types.index(rows.kind)
    conditions = [(test, pushed(test, run, rows, place)) for test in tests]
    pushable = [condition for _, condition in conditions if condition is not None]
    if not pushable:
        return rows.live, tests
    together = reduce(and_, pushable)
    rest = tuple(test for test, condition in conditions if condition is None)
    # Pending rows are few, and judged by the tests themselves.
    return rows.matching(together), rest if rows.is_plain else tests


def pushed(test: Expression, run: Run, rows: TypeRows, place: int) -> pc.Expression | None:
    """The test for Lance, over the table's columns; None where Lance would answer otherwise, as
    with floats, which it orders differently."""
    match test:
        case And(operands=operands) | Or(operands=operands):
            parts = [pushed(operand, run, rows, place) for operand in operands]
            if any(part is None for part in parts):
                return None
            return reduce(and_ if isinstance(test, And) else or_, parts)
        case Not(operand=operand):
            inner = pushed(operand, run, rows, place)
            return None if inner is None else ~inner
        case NullTest(operand=operand, negated=negated):
            field = _field(operand, rows, place)
            if field is None:
                return None
            return field[0].is_valid() if negated else field[0].is_null()
        case Comparison(operator=operator, left=left, right=right):
            flipped = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(operator, operator)
            return _compared(operator, left, right, run, rows, place) or _compared(
                flipped, right, left, run, rows, place
            )
        case Membership(item=item, list=held):
            return _listed(item, held, run, rows, place)
        case _:
            return None


def _field(
    value: Expression, rows: TypeRows, place: int
) -> tuple[pc.Expression, pa.DataType] | None:
    if isinstance(value, SystemValue):
        return pc.field(value.column), pa.string()
    if not isinstance(value, PropertyValue):
        return None
    prop = value.properties[place]
    kind = prop.type
    if isinstance(kind, ListType | VectorType):
        return None
    if isinstance(kind, ScalarType) and kind.base in FLOATS:
        return None
    return pc.field(rows.view.column_of(prop.name)), rows.view.schema.field(prop.name).type


def _compared(
    operator: str, side: Expression, other: Expression, run: Run, rows: TypeRows, place: int
) -> pc.Expression | None:
    field = _field(side, rows, place)
    if field is None or used_variables(other):
        return None
    value = _fitting(evaluate(other, FrameLeaves(Frame({}, 1), run)), field[1])
    if value is None:
        return None
    match operator:
        case "=":
            return field[0] == value
        case "!=":
            return field[0] != value
        case "<":
            return field[0] < value
        case "<=":
            return field[0] <= value
        case ">":
            return field[0] > value
        case _:
            return field[0] >= value


def _listed(
    item: Expression, held: Expression, run: Run, rows: TypeRows, place: int
) -> pc.Expression | None:
    field = _field(item, rows, place)
    if field is None or used_variables(held):
        return None
    listed = evaluate(held, FrameLeaves(Frame({}, 1), run))
    if isinstance(listed, pa.Array) or not listed.is_valid or not len(listed.values):
        return None
    values = [_fitting(value, field[1]) for value in listed.values]
    fitting = [value.as_py() for value in values if value is not None]
    return field[0].isin(pa.array(fitting, field[1])) if len(fitting) == len(values) else None


def _fitting(value: Any, kind: pa.DataType) -> pa.Scalar | None:
    """The value in the type of the column; None if that would change it."""
    held = value[0] if isinstance(value, pa.Array) else value
    if not held.is_valid or pa.types.is_floating(held.type):
        return None
    if held.type == kind:
        return held
    try:
        return held.cast(kind) if pa.types.is_integer(held.type) else None
    except pa.ArrowInvalid:
        return None
