"""The same rows give the same table, whichever library holds them."""

from __future__ import annotations

import math
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from importlib import import_module
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.model.arrow import arrow_type, row_schema
from omnigraph.model.types import INTEGER_RANGES, Base, ListType, VectorType
from omnigraph.plan.rows.typed import Shaped
from tests.unit.plan.row_cases import EVERYTHING, KNOWS, NOTE, PERSON, one_property, shape

pd: Any = import_module("pandas")  # its types are not installed

ITEMS: dict[Base, st.SearchStrategy[object]] = {
    Base.STRING: st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
    Base.BOOL: st.booleans(),
    **{base: st.integers(low, high) for base, (low, high) in INTEGER_RANGES.items()},
    Base.F32: st.floats(width=32, allow_nan=False),
    Base.F64: st.floats(allow_nan=False),
    Base.DATE: st.dates(),
    Base.DATETIME: st.datetimes().map(
        lambda d: d.replace(microsecond=d.microsecond // 1000 * 1000, tzinfo=UTC)
    ),
    Base.BLOB: st.binary(max_size=4),
}


def strategy(name: str) -> st.SearchStrategy[object]:
    kind = next(p.type for p in EVERYTHING.properties if p.name == name)
    if isinstance(kind, ListType):
        return st.none() | st.lists(ITEMS[kind.item], max_size=3)
    if isinstance(kind, VectorType):
        floats = ITEMS[Base.F32]
        return st.none() | st.lists(floats, min_size=kind.dimension, max_size=kind.dimension)
    return st.none() | ITEMS[getattr(kind, "base", Base.STRING)]


NAMES = [p.name for p in EVERYTHING.properties]
ids = st.lists(st.text("abc", min_size=1), max_size=4, unique=True)


@st.composite
def some_rows(draw: st.DrawFn) -> list[dict[str, object]]:
    """Rows with the same properties each, as a table has them."""
    chosen = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=6, unique=True))
    return [{"id": i, **{name: draw(strategy(name)) for name in chosen}} for i in draw(ids)]


def as_arrow(rows: list[dict[str, object]]) -> pa.Table:
    given = rows[0] if rows else {}
    schema = row_schema(EVERYTHING)
    return pa.Table.from_pylist(rows, pa.schema([schema.field(name) for name in given]))


def as_pandas(rows: list[dict[str, object]]) -> Any:
    """Columns of objects, the form that holds anything that pandas can hold."""
    return pd.DataFrame(
        {name: pd.Series([r[name] for r in rows], dtype=object) for name in rows[0]} if rows else {}
    )


def table_of(shaped: Shaped) -> pa.Table:
    assert shaped.violations == ()
    return shaped.groups[0].table


@given(some_rows())
def test_dicts_arrow_pandas_and_polars_give_the_same_table(rows: list[dict[str, object]]) -> None:
    arrow = as_arrow(rows)
    expected = table_of(shape(EVERYTHING, rows))
    expected.validate(full=True)
    assert expected.schema == row_schema(EVERYTHING)
    for source in (arrow, as_pandas(rows), pl.DataFrame(arrow), arrow.to_reader(max_chunksize=2)):
        found = table_of(shape(EVERYTHING, source))
        found.validate(full=True)
        assert found.equals(expected), type(source)


@given(some_rows())
def test_rows_that_were_shaped_are_shaped_the_same_again(rows: list[dict[str, object]]) -> None:
    once = table_of(shape(EVERYTHING, rows))
    assert table_of(shape(EVERYTHING, once)).equals(once)
    assert table_of(shape(EVERYTHING, once.to_pylist())).equals(once)


def test_duckdb_results_are_rows() -> None:
    result = duckdb.sql("select 'Ann' as name, 3::bigint as age union all select 'Bob', null")
    assert sorted(r["id"] for r in table_of(shape(PERSON, result)).to_pylist()) == ["Ann", "Bob"]


def test_a_record_batch_and_a_struct_array_are_rows() -> None:
    batch = pa.RecordBatch.from_pylist([{"name": "Ann"}])
    assert table_of(shape(PERSON, batch)).num_rows == 1
    assert table_of(shape(PERSON, batch.to_struct_array())).num_rows == 1


def test_nan_in_pandas_is_missing_and_elsewhere_a_number() -> None:
    thing = one_property(Base.F64)
    frame = pd.DataFrame({"p": [1.5, math.nan]})
    assert table_of(shape(thing, frame)).column("p").to_pylist() == [1.5, None]
    mixed = pd.DataFrame({"p": pd.Series([1.5, math.nan, None], dtype=object)})
    assert table_of(shape(thing, mixed)).column("p").to_pylist() == [1.5, None, None]
    for source in (pa.table({"p": [math.nan]}), pl.DataFrame({"p": [math.nan]}), {"p": math.nan}):
        assert math.isnan(table_of(shape(thing, source)).column("p")[0].as_py())


def test_integers_that_pandas_had_to_make_floats_are_integers_again() -> None:
    frame = pd.DataFrame({"p": [1, None, 3]})
    assert frame["p"].dtype == np.float64
    shaped = shape(one_property(Base.I32), frame)
    assert table_of(shaped).column("p").to_pylist() == [1, None, 3]


@pytest.mark.parametrize(
    ("base", "value", "problem"),
    [
        (Base.I32, 1.5, "1.5 is not a whole number"),
        (Base.I32, math.inf, "inf is not a whole number"),
        (Base.I32, 2.0**31, "2147483648 is out of range"),
        (Base.I64, 2.0**60, "1.152921504606847e+18 is too large to be exact"),
    ],
)
def test_floats_of_pandas_that_are_no_integers_are_refused(
    base: Base, value: float, problem: str
) -> None:
    shaped = shape(one_property(base), pd.DataFrame({"p": [1.0, value, None]}))
    (found,) = shaped.violations
    assert found.row == 1
    assert found.message.endswith(f"but {problem}.")
    assert shaped.groups[0].table.column("p").to_pylist() == [1, None]


def test_floats_of_arrow_and_polars_are_never_integers() -> None:
    for source in (pa.table({"p": [1.0]}), pl.DataFrame({"p": [1.0]})):
        (found,) = shape(one_property(Base.I32), source).violations
        assert found.message.endswith("but the column holds double.")


@pytest.mark.parametrize(
    ("base", "series", "stored"),
    [
        (Base.STRING, pd.Series(["a", None], dtype="category"), ["a", None]),
        (Base.STRING, pd.Series(["a", None], dtype="string"), ["a", None]),
        (Base.I64, pd.Series([1, None], dtype="Int64"), [1, None]),
        (Base.BOOL, pd.Series([True, None], dtype="boolean"), [True, None]),
        (Base.BOOL, pd.Series([True, None], dtype=object), [True, None]),
        (Base.I32, pd.Series([1, None], dtype=pd.ArrowDtype(pa.int16())), [1, None]),
        (
            Base.DATETIME,
            pd.Series([pd.Timestamp("2024-01-01"), pd.NaT]),
            [datetime(2024, 1, 1, tzinfo=UTC), None],
        ),
        (Base.DATE, pd.Series([date(2024, 1, 1), None]), [date(2024, 1, 1), None]),
    ],
)
def test_columns_of_pandas_are_read_by_their_type(
    base: Base, series: Any, stored: list[object]
) -> None:
    table = table_of(shape(one_property(base), pd.DataFrame({"p": series})))
    assert table.column("p").to_pylist() == stored
    assert table.schema.field("p").type == arrow_type(one_property(base).properties[0].type)


@pytest.mark.parametrize(
    "series",
    [
        pd.Series(pd.period_range("2024-01", periods=2)),
        pd.Series(pd.interval_range(0, 2)),
        pd.Series([timedelta(1)]),
        pd.Series([1 + 2j]),
    ],
)
def test_columns_of_pandas_that_are_no_property_are_refused(series: Any) -> None:
    for base in Base:
        assert shape(one_property(base), pd.DataFrame({"p": series})).violations


def test_the_index_of_pandas_is_not_a_column() -> None:
    frame = pd.DataFrame({"name": ["Ann"]}, index=pd.Index([7], name="age"))
    assert table_of(shape(PERSON, frame)).column("age").to_pylist() == [None]


def test_polars_categories_and_strings_are_text() -> None:
    frame = pl.DataFrame({"from": ["a"], "to": pl.Series(["b"], dtype=pl.Categorical)})
    assert table_of(shape(KNOWS, frame)).column("dst").to_pylist() == ["b"]


def test_rows_without_columns_count_in_dicts_only() -> None:
    assert table_of(shape(one_property(Base.I32), [{}, {}])).num_rows == 2
    assert table_of(shape(one_property(Base.I32), pa.table({}))).num_rows == 0


def test_a_null_id_in_a_frame_is_a_new_id() -> None:
    table = pa.table({"id": pa.array(["a", None, None]), "text": ["x", "y", "z"]})
    assert table_of(shape(NOTE, table)).column("id").to_pylist() == ["a", "new-0", "new-1"]


def test_shaping_dicts_imports_no_library_that_it_does_not_need() -> None:
    code = (
        "import sys; from tests.unit.plan.row_cases import shape, PERSON; "
        "assert not shape(PERSON, {'name': 'Ann'}).violations; "
        "print([m for m in ('polars', 'duckdb', 'lance') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
