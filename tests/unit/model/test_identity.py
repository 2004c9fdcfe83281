"""The canonical id of a key: what it is, and that rows and batches agree about it."""

from __future__ import annotations

import json
import math
import struct
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from omnigraph.model.arrow import arrow_type, row_schema
from omnigraph.model.catalog import EdgeType, NodeType, Property
from omnigraph.model.identity import InvalidKeyError, derive_id, derive_ids
from omnigraph.model.types import (
    INTEGER_RANGES,
    Base,
    EnumType,
    PropertyType,
    ScalarType,
    VectorType,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
KEY_BASES = [base for base in Base if base is not Base.BLOB]
any_text = st.text(st.characters(exclude_categories=["Cs"]))
moments = st.integers(-(10**13), 10**14).map(lambda ms: EPOCH + timedelta(milliseconds=ms))


def keyed(*types: PropertyType) -> NodeType:
    names = [f"k{i}" for i in range(len(types))]
    properties = tuple(
        Property(name=name, type=kind, id=name, column=name)
        for name, kind in zip(names, types, strict=True)
    )
    return NodeType(id="t", name="T", properties=properties, key=tuple(names))


def edge(key: tuple[str, ...]) -> EdgeType:
    kind = Property(name="kind", type=EnumType(("a", "b")), id="p", column="kind")
    return EdgeType(id="e", name="E", source="A", target="B", properties=(kind,), key=key)


def batch_of(kind: NodeType | EdgeType, rows: list[dict[str, Any]]) -> pa.RecordBatch:
    schema = row_schema(kind)
    names = [name for name in schema.names if name in kind.key]
    fields = pa.schema([schema.field(name) for name in names])
    return pa.RecordBatch.from_pylist(rows, schema=fields)


def values(base: Base) -> st.SearchStrategy[Any]:
    if base in INTEGER_RANGES:
        return st.integers(*INTEGER_RANGES[base])
    match base:
        case Base.BOOL:
            return st.booleans()
        case Base.F32:
            return st.floats(width=32, allow_nan=False, allow_infinity=False)
        case Base.F64:
            return st.floats(allow_nan=False, allow_infinity=False)
        case Base.DATE:
            return st.dates()
        case Base.DATETIME:
            return moments
        case _:
            return any_text


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (Base.STRING, 'a "quoted" \\ n\n', 'a "quoted" \\ n\n'),
        (Base.STRING, "", ""),
        (Base.BOOL, True, "true"),
        (Base.BOOL, False, "false"),
        (Base.I32, -(2**31), "-2147483648"),
        (Base.I64, 0, "0"),
        (Base.U64, 2**64 - 1, "18446744073709551615"),
        (Base.F64, 5.0, "5"),
        (Base.F64, 5, "5"),
        (Base.F64, -0.0, "0"),
        (Base.F64, 0.1, "0.1"),
        (Base.F64, -1.5, "-1.5"),
        (Base.F64, 1e-6, "0.000001"),
        (Base.F64, 1e-7, "1e-7"),
        (Base.F64, 1.25e-9, "1.25e-9"),
        (Base.F64, 123456789012345680000.0, "123456789012345680000"),
        (Base.F64, 1e21, "1e+21"),
        (Base.F64, 1.7976931348623157e308, "1.7976931348623157e+308"),
        (Base.F64, 5e-324, "5e-324"),
        (Base.F32, 0.1, "0.1"),
        (Base.F32, 16777216.0, "16777216"),
        (Base.F32, 3.4028234663852886e38, "3.4028235e+38"),
        (Base.F32, -0.0, "0"),
        (Base.DATE, date(1969, 12, 31), "1969-12-31"),
        (Base.DATE, date(1, 1, 1), "0001-01-01"),
        (Base.DATE, date(9999, 12, 31), "9999-12-31"),
        (Base.DATETIME, datetime(1970, 1, 1, 0, 0, 1, 5000, tzinfo=UTC), "1005"),
        (Base.DATETIME, datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC), "-1"),
    ],
)
def test_each_type_has_one_canonical_text(kind: Base, value: Any, expected: str) -> None:
    node = keyed(ScalarType(kind))
    assert derive_id(node, {"k0": value}) == expected
    assert derive_ids(node, batch_of(node, [{"k0": value}])).to_pylist() == [expected]


def test_a_time_in_another_zone_is_the_same_moment() -> None:
    node = keyed(ScalarType(Base.DATETIME))
    berlin = datetime(2020, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))
    assert derive_id(node, {"k0": berlin}) == derive_id(node, {"k0": datetime(2020, 1, 1)})  # noqa: DTZ001


def test_a_composite_is_a_json_array_of_texts_with_only_the_escapes_json_demands() -> None:
    node = keyed(*[ScalarType(b) for b in (Base.STRING, Base.I32, Base.BOOL)])
    row = {"k0": 'ü"\\/\x00\x1f\x7f\n\u2028😀', "k1": -7, "k2": True}
    expected = '["ü\\"\\\\/\\u0000\\u001f\x7f\\n\u2028😀","-7","true"]'
    assert derive_id(node, row) == expected
    plain = {"k0": "x", "k1": 1, "k2": False}
    assert derive_ids(node, batch_of(node, [plain, row, plain])).to_pylist() == [
        '["x","1","false"]',
        expected,
        '["x","1","false"]',
    ]


def test_an_edge_key_holds_its_ends() -> None:
    kind = edge(("src", "dst", "kind"))
    row = {"src": "a", "dst": '["b","1"]', "kind": "a"}
    assert derive_id(kind, row) == '["a","[\\"b\\",\\"1\\"]","a"]'
    assert derive_ids(kind, batch_of(kind, [row])).to_pylist() == [derive_id(kind, row)]


@given(st.data())
def test_rows_and_batches_agree_for_every_type_of_key(data: st.DataObject) -> None:
    bases = data.draw(st.lists(st.sampled_from(KEY_BASES), min_size=1, max_size=3))
    node = keyed(*[ScalarType(base) for base in bases])
    row = st.fixed_dictionaries({f"k{i}": values(base) for i, base in enumerate(bases)})
    rows = data.draw(st.lists(row, max_size=6))
    batch = batch_of(node, rows)
    expected = [derive_id(node, r) for r in rows]
    assert derive_ids(node, batch).to_pylist() == expected
    stored = batch.to_pylist()
    assert [derive_id(node, r) for r in stored] == expected
    table = pa.Table.from_batches([batch, batch.slice(1)] if rows else [batch])
    assert derive_ids(node, table).to_pylist() == expected + expected[1:]


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(9007199254740993.0)
@example(1e23)
def test_the_text_of_a_double_reads_back_as_the_same_number(x: float) -> None:
    text = derive_id(keyed(ScalarType(Base.F64)), {"k0": x})
    assert float(text) == x
    assert len(text.lstrip("-").replace(".", "").split("e")[0].strip("0")) <= 17


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_the_text_of_a_float_reads_back_as_the_same_number(x: float) -> None:
    text = derive_id(keyed(ScalarType(Base.F32)), {"k0": x})
    assert struct.unpack("f", struct.pack("f", float(text)))[0] == x


@given(st.lists(st.tuples(any_text, any_text), min_size=2, max_size=2, unique=True))
def test_different_composites_never_share_an_id(pairs: list[tuple[str, str]]) -> None:
    node = keyed(ScalarType(Base.STRING), ScalarType(Base.STRING))
    ids = [derive_id(node, {"k0": a, "k1": b}) for a, b in pairs]
    assert ids[0] != ids[1]
    assert [tuple(json.loads(i)) for i in ids] == pairs


@pytest.mark.parametrize(
    ("base", "value"),
    [
        (Base.STRING, 1),
        (Base.STRING, "\ud800"),
        (Base.BOOL, 1),
        (Base.I32, True),
        (Base.I32, 2**31),
        (Base.U64, -1),
        (Base.I64, 1.0),
        (Base.F64, math.nan),
        (Base.F64, -math.inf),
        (Base.F64, "1"),
        (Base.F32, 1e39),
        (Base.DATE, "2020-01-01"),
        (Base.DATE, datetime(2020, 1, 1, tzinfo=UTC)),
        (Base.DATETIME, date(2020, 1, 1)),
        (Base.DATETIME, datetime(2020, 1, 1, microsecond=1, tzinfo=UTC)),
        (Base.STRING, None),
    ],
)
def test_a_value_without_canonical_text_is_refused_by_name(base: Base, value: Any) -> None:
    with pytest.raises(InvalidKeyError, match="'k0'") as refused:
        derive_id(keyed(ScalarType(base)), {"k0": value})
    assert refused.value.property == "k0"


@pytest.mark.parametrize(
    ("base", "array"),
    [
        (Base.STRING, pa.array(["a", None])),
        (Base.F64, pa.array([1.0, math.nan])),
        (Base.F32, pa.array([1.0, math.inf], pa.float32())),
        (Base.DATE, pa.array([0, 3_000_000], pa.int32()).cast(pa.date32())),
        (Base.DATE, pa.array([0, -719_163], pa.int32()).cast(pa.date32())),
    ],
)
def test_a_batch_names_the_first_row_it_refuses(base: Base, array: pa.Array) -> None:
    node = keyed(ScalarType(base))
    with pytest.raises(InvalidKeyError) as refused:
        derive_ids(node, pa.record_batch([array], ["k0"]))
    assert (refused.value.property, refused.value.row) == ("k0", 1)
    good = pa.record_batch([array.slice(0, 1)], ["k0"])
    with pytest.raises(InvalidKeyError) as refused:
        derive_ids(node, pa.Table.from_batches([good, pa.record_batch([array], ["k0"])]))
    assert refused.value.row == 2


def test_a_missing_key_column_is_refused_like_a_null() -> None:
    node = keyed(ScalarType(Base.STRING))
    with pytest.raises(InvalidKeyError, match="missing"):
        derive_ids(node, pa.record_batch([pa.array(["a"])], ["other"]))
    with pytest.raises(InvalidKeyError, match="missing"):
        derive_id(node, {})


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_other_encodings_of_a_string_give_the_same_ids(kind: pa.DataType) -> None:
    node = keyed(ScalarType(Base.STRING))
    batch = pa.record_batch([pa.array(["a", "b", "a"]).cast(kind)], ["k0"])
    ids = derive_ids(node, batch)
    assert ids.type == pa.string()
    assert ids.to_pylist() == ["a", "b", "a"]


def test_a_type_without_a_key_has_no_derived_ids() -> None:
    with pytest.raises(ValueError, match="has no key"):
        derive_id(NodeType(id="t", name="T"), {})


def test_a_vector_cannot_be_part_of_a_key() -> None:
    with pytest.raises(ValueError, match="cannot be part of a key"):
        derive_id(keyed(VectorType(2)), {"k0": [1.0, 2.0]})


def test_every_scalar_but_blob_can_be_a_key() -> None:
    for base in KEY_BASES:
        empty = pa.record_batch([pa.array([], arrow_type(ScalarType(base)))], ["k0"])
        assert derive_ids(keyed(ScalarType(base)), empty).type == pa.string()
