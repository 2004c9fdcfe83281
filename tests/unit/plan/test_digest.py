"""The digest of values: equal for equal values, whatever holds them, and for nothing else."""

from __future__ import annotations

import enum
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.plan.digest import DigestColumn, digest_values

TEXTS = pa.array(["p", None, "r"])
LISTS = pa.array([[1, 2], None, [], [3]])
VECTORS = pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2))
STRUCTS = pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}])
SOME = pa.array([True, False, True])


class Colour(enum.Enum):
    RED = "red"


def odd_nan() -> np.ndarray[Any, Any]:
    bits = np.array([1.0, np.nan]).view("u8").copy()
    bits[1] |= 1
    return bits.view("f8")


def isin(values: Any) -> pc.Expression:
    return pc.field("n").isin(values)


EQUAL: dict[str, Sequence[object]] = {
    "texts": [
        DigestColumn(TEXTS),
        DigestColumn(TEXTS.cast(pa.large_string())),
        DigestColumn(TEXTS.cast(pa.string_view())),
        DigestColumn(TEXTS.dictionary_encode()),
        DigestColumn(pa.chunked_array([TEXTS[:1], TEXTS[1:]])),
        DigestColumn(pa.array(["before", "p", None, "r", "after"]).slice(1, 3)),
        DigestColumn(pc.if_else(SOME, pa.array(["p", "under the null", "r"]), None)),
    ],
    "numbers": [
        DigestColumn(pa.array([1, None, 3])),
        DigestColumn(pc.if_else(SOME, pa.array([1, 77, 3]), None)),
        DigestColumn(pa.chunked_array([pa.array([1, None]), pa.array([3])])),
        DigestColumn(pa.array([9, 1, None, 3]).slice(1)),
    ],
    "lists": [
        DigestColumn(LISTS),
        DigestColumn(LISTS.cast(pa.large_list(pa.int64()))),
        DigestColumn(pa.array([[9], [1, 2], None, [], [3]]).slice(1)),
        DigestColumn(pa.chunked_array([LISTS[:2], LISTS[2:]])),
    ],
    "vectors": [DigestColumn(VECTORS), DigestColumn(pa.chunked_array([VECTORS[:1], VECTORS[1:]]))],
    "structs": [DigestColumn(STRUCTS), DigestColumn(pa.concat_arrays([STRUCTS, STRUCTS]).slice(3))],
    "truth": [
        DigestColumn(pa.array([True, None, False])),
        DigestColumn(pa.array([False, True, None, False]).slice(1)),
    ],
    "floats": [DigestColumn(pa.array([1.0, float("nan")])), DigestColumn(pa.array(odd_nan()))],
    "decimals": [
        DigestColumn(pa.array([Decimal("1.10")])),
        DigestColumn(pa.array([Decimal("9.99"), Decimal("1.10")]).slice(1)),
    ],
    "an integer": [1, np.int64(1), np.uint8(1), pa.scalar(1), np.array(1)],
    "a list": [
        [1, 2],
        (1, 2),
        np.array([1, 2]),
        pa.array([1, 2]),
        pd.Series([1, 2]),
        pl.Series([1, 2]),
    ],
    "not a number": [float("nan"), np.float32("nan"), np.float64("nan"), odd_nan()[1]],
    "a decimal": [Decimal("1.10"), Decimal("1.1"), pa.scalar(Decimal("1.10"))],
    "a text": [
        "red",
        np.str_("red"),
        Colour.RED,
        pa.scalar("red"),
        pa.scalar("red", pa.large_string()),
    ],
    "bytes": [b"x", bytearray(b"x"), memoryview(b"x")],
    "a mapping": [{"a": 1, "b": 2}, {"b": 2, "a": 1}],
    "a moment": [
        datetime(2020, 1, 1, 12, tzinfo=UTC),
        datetime(2020, 1, 1, 13, tzinfo=timezone(timedelta(hours=1))),
        pd.Timestamp(2020, 1, 1, 12, tz="UTC"),
    ],
    "a time without a zone": [
        datetime(2020, 1, 1, 12),  # noqa: DTZ001
        pd.Timestamp(2020, 1, 1, 12),
        np.datetime64("2020-01-01T12:00:00"),
    ],
    "a date": [date(2020, 1, 1), np.datetime64("2020-01-01"), pa.scalar(date(2020, 1, 1))],
    "a condition": [
        isin(pa.array(range(3000))),
        isin(pa.array(range(-5, 3000)).slice(5)),
        isin(list(range(3000))),
    ],
    "a condition on texts": [isin(pa.array(["a"])), isin(pa.array(["a"], pa.large_string()))],
}


@pytest.mark.parametrize("case", EQUAL)
def test_equal_values_have_one_digest(case: str) -> None:
    assert len({digest_values([one]) for one in EQUAL[case]}) == 1


def test_whatever_differs_has_another() -> None:
    middle = [*range(1500), -1, *range(1501, 3000)]
    others: list[object] = [
        *(values[0] for values in EQUAL.values()),
        DigestColumn(pa.array(["p", "", "r"])),
        DigestColumn(pa.array(["pr", None, ""])),
        DigestColumn(pa.array([None, "p", "r"])),
        DigestColumn(pa.array(["p", "r"])),
        DigestColumn(pa.array([b"p", None, b"r"])),
        DigestColumn(pa.array([[1], [2], [], [3]])),
        DigestColumn(pa.array([[1, 2, 3], None, [], []])),
        DigestColumn(pa.array([[1, 2], [], None, [3]])),
        DigestColumn(pa.array([1.0, 2.0])),
        DigestColumn(pa.array([1.0, 2.0], pa.float32())),
        DigestColumn(pa.array([], pa.int64())),
        DigestColumn(pa.array([], pa.string())),
        DigestColumn(pa.array([None, None], pa.int64())),
        [],
        [[]],
        [[1], [2]],
        [[1, 2], []],
        1.5,
        True,
        "1",
        b"1",
        None,
        "",
        {},
        {1},
        np.arange(2000, dtype=np.float32),
        np.array([*range(1000), -1, *range(1001, 2000)], dtype=np.float32),
        isin(pa.array(middle)),
        pc.field("n") == "a",
        pc.field("n") == "b",
        pc.field("m") == "a",
        pc.field("n") > "a",
        pc.scalar("a"),
        timedelta(seconds=1),
    ]
    digests = [digest_values([one]) for one in others]
    assert len(set(digests)) == len(digests)
    assert digest_values(["a", "b"]) != digest_values(["ab"])
    assert digest_values([["a"], "b"]) != digest_values(["a", ["b"]])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)


@given(VALUES, VALUES)
def test_digests_are_equal_just_when_the_values_are(one: object, other: object) -> None:
    assert (digest_values([one]) == digest_values([other])) is (repr(one) == repr(other))


@given(st.lists(st.none() | st.text(max_size=3), max_size=8), st.data())
def test_pieces_do_not_matter(values: list[str | None], data: st.DataObject) -> None:
    whole = pa.array(values, pa.string())
    cuts = sorted(data.draw(st.lists(st.integers(0, len(values)), max_size=3)))
    places = [0, *cuts, len(values)]
    chunks = [whole.slice(a, b - a) for a, b in pairwise(places)]
    cut = pa.chunked_array(chunks, pa.string())
    assert DigestColumn(cut).digest() == DigestColumn(whole).digest()


SAME = """
import datetime, pyarrow as pa, pyarrow.compute as pc
from omnigraph.plan.digest import DigestColumn, digest_values
rows = pa.table({"a": ["x", None], "b": [1.5, float("nan")]})
print(digest_values([
    {"k": {1, 2, 3}, "l": frozenset("abc")},
    datetime.date(2020, 1, 1),
    pc.field("n").isin(["a", "b"]),
    *map(DigestColumn, rows.columns),
]))
"""


def test_another_process_comes_to_the_same() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", SAME],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
