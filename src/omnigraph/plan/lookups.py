"""Owns how the rows of a condition can be looked up: by an id, a key, unique values, or an end of
an edge. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.lang.gq.checked import (
    And,
    Comparison,
    Expression,
    Membership,
    RowProperty,
    RowSystem,
)
from omnigraph.model.arrow import row_schema
from omnigraph.model.catalog import EdgeType, GraphType
from omnigraph.model.identity import InvalidKeyError, derive_id
from omnigraph.plan.text_equality import share_texts
from omnigraph.plan.validate import key_texts
from omnigraph.plan.values.rows import Bindings, fixed_value, is_fixed


@dataclass(frozen=True)
class Lookup:
    """Rows that meet the condition have one of these `texts` in `columns`, as `key_texts` spells
    them, and pass the remaining tests."""

    columns: tuple[str, ...]
    texts: tuple[str, ...]
    rest: tuple[Expression, ...]


@dataclass(frozen=True)
class _Given:
    """A test that a column equals a value or, with `many`, one of several values."""

    test: Expression
    value: Expression
    many: bool


def split_tests(*conditions: Expression) -> tuple[Expression, ...]:
    """`a and b` are two tests."""
    found: list[Expression] = []
    waiting = list(reversed(conditions))
    while waiting:
        top = waiting.pop()
        if isinstance(top, And):
            waiting.extend(reversed(top.operands))
        else:
            found.append(top)
    return tuple(found)


def find_lookup(kind: GraphType, tests: Sequence[Expression], bindings: Bindings) -> Lookup | None:
    """The lookup that leaves the fewest rows, or None if the condition offers none."""
    given: dict[str, _Given] = {}
    for test in tests:
        for column, found in _givens(test):
            given.setdefault(column, found)
    for columns in _candidates(kind):
        used = [given[column] for column in columns if column in given]
        if len(used) < len(columns) or (len(columns) > 1 and any(one.many for one in used)):
            continue
        rest = tuple(test for test in tests if all(test is not one.test for one in used))
        texts = _texts(kind, columns, used, bindings)
        if columns == tuple(kind.key):
            columns = ("id",)
        return Lookup(columns, tuple(dict.fromkeys(texts)), rest)
    return None


def _candidates(kind: GraphType) -> Iterator[tuple[str, ...]]:
    yield ("id",)
    if kind.key:
        yield tuple(kind.key)
    yield from (tuple(columns) for columns in kind.uniques)
    if isinstance(kind, EdgeType):
        yield from (("src",), ("dst",))


def _givens(test: Expression) -> Iterator[tuple[str, _Given]]:
    match test:
        case Comparison(operator="=", left=left, right=right):
            for side, other in ((left, right), (right, left)):
                column = _column(side, other)
                if column is not None:
                    yield column, _Given(test, other, many=False)
        case Membership(item=item, list=held):
            column = _column(item, held)
            if column is not None:
                yield column, _Given(test, held, many=True)


def _column(side: Expression, other: Expression) -> str | None:
    """The column, if the values that equal it have the same texts as its own. A float may equal an
    integer and has another text."""
    if not isinstance(side, RowProperty | RowSystem) or not is_fixed(other):
        return None
    if not share_texts(side.type.kind, other.type.kind):
        return None
    return side.column if isinstance(side, RowSystem) else side.property.name


def _texts(
    kind: GraphType, columns: tuple[str, ...], used: Sequence[_Given], bindings: Bindings
) -> list[str]:
    schema = row_schema(kind)
    held = [
        _values(one, schema.field(column).type, bindings)
        for column, one in zip(columns, used, strict=True)
    ]
    if not all(held):
        return []
    # Several columns have one value each; a single column may have many.
    rows = list(zip(*held, strict=True))
    if columns == tuple(kind.key):
        return [text for row in rows if (text := _derived(kind, columns, row)) is not None]
    table = pa.Table.from_arrays(
        [pa.array([row[n] for row in rows], schema.field(c).type) for n, c in enumerate(columns)],
        names=list(columns),
    )
    return [text for text in key_texts(table, columns) if text is not None]


def _values(given: _Given, kind: pa.DataType, bindings: Bindings) -> list[object]:
    """The values in the type of the column. A value that the column cannot hold matches no row."""
    value = fixed_value(given.value, bindings)
    listed = ([] if not value.is_valid else list(value.values)) if given.many else [value]
    found = []
    for one in listed:
        if not one.is_valid:
            continue
        try:
            found.append((one if one.type == kind else one.cast(kind)).as_py())
        except pa.ArrowInvalid:
            continue
    return found


def _derived(kind: GraphType, columns: tuple[str, ...], row: Sequence[object]) -> str | None:
    try:
        return derive_id(kind, dict(zip(columns, row, strict=True)))
    except InvalidKeyError:
        return None
