"""What travels through Spark comes back as it was: values of every type, and errors."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.errors import MemoryLimit, OmnigraphError, ValueOutOfRange
from omnigraph.model.arrow import arrow_type
from omnigraph.model.types import Base, ListType, ScalarType, VectorType
from omnigraph.spark.query.arrow_types import carried, carry, restore
from omnigraph.spark.query.failures import TaskFailure, decoded_error, error_word, passing_errors

LATEST = datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)
VALUES: dict[Base, list[Any]] = {
    Base.STRING: ["", "ä\U0001f600", "x"],
    Base.BOOL: [True, False],
    Base.I32: [-(2**31), 2**31 - 1],
    Base.I64: [-(2**63), 2**63 - 1],
    Base.U32: [0, 2**32 - 1],
    Base.U64: [0, 2**64 - 1],
    Base.F32: [0.5, float("inf")],
    Base.F64: [0.1, -1e300],
    Base.DATE: [date(1, 1, 1), date(9999, 12, 31)],
    Base.DATETIME: [datetime(1, 1, 1, tzinfo=UTC), LATEST],
    Base.BLOB: [b"", b"\x00"],
}
ARRAYS = {
    **{b.value: pa.array([*v, None], arrow_type(ScalarType(b))) for b, v in VALUES.items()},
    **{
        f"[{b.value}]": pa.array([v, None, []], arrow_type(ListType(b)))
        for b, v in VALUES.items()
        if b is not Base.BLOB
    },
    "vector": pa.array([None, [1.0, 2.0], [3.0, -0.0]], arrow_type(VectorType(2))),
    "null": pa.nulls(3),
    "entity": pa.array(
        [{"@id": "a", "Name": "x", "name": 2**64 - 1}, None],
        pa.struct([("@id", pa.string()), ("Name", pa.string()), ("name", pa.uint64())]),
    ),
    "entities": pa.array(
        [[{"@id": "a", "n": 1}], [], None],
        pa.list_(pa.struct([("@id", pa.string()), ("n", pa.uint32())])),
    ),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_values_come_back_as_they_were(name: str) -> None:
    values = ARRAYS[name]
    for part in (values, values.slice(1), values.slice(0, 0)):
        travelled = carry(part, part.type)
        assert travelled.type == carried(part.type)
        back = restore(travelled, part.type)
        assert back.type == part.type
        assert back.to_pylist() == part.to_pylist()


@pytest.mark.parametrize("base", [b for b in VALUES if b not in (Base.BLOB, Base.BOOL)])
def test_values_travel_in_their_order(base: Base) -> None:
    values = pa.array(sorted(VALUES[base]), arrow_type(ScalarType(base)))
    travelled = carry(values, values.type).to_pylist()
    assert travelled == sorted(travelled)


@pytest.mark.parametrize(
    "error",
    [
        ValueOutOfRange('a "value" is too large', help="Take a smaller one."),
        MemoryLimit("too much", limit="memory_limit"),
    ],
)
def test_an_error_of_an_executor_is_heard_in_its_own_words(error: OmnigraphError) -> None:
    with pytest.raises(TaskFailure) as failed, passing_errors():
        raise error
    again = decoded_error(RuntimeError(f"Job aborted.\n\tat Python: {failed.value}\n\tat Java"))
    assert again is not None
    assert type(again) is type(error)
    assert again.to_dict() == error.to_dict()
    assert decoded_error(error_word(error)) is not None
    assert decoded_error(RuntimeError("something else")) is None
