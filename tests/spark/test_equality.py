"""Drawn data, sound and not: Spark and one process agree on every row and on every refusal."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.load.world import knows, person, write_lines
from tests.spark.twins import Twins

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.slow]

_NAME = st.sampled_from("abcdefg")
_PERSON = st.fixed_dictionaries(
    {},
    optional={
        "age": st.none() | st.integers(-5, 160),
        "email": st.none() | st.sampled_from(["x", "y", "z", "w"]),
        "mood": st.sampled_from(["calm", "wild", "odd"]),
        "city": st.none() | st.text(max_size=3),
    },
)
_WROTE = st.fixed_dictionaries({"how": st.none() | st.text(max_size=2)})
_ENTRY = st.one_of(
    st.builds(lambda name, data: person(name, **data), _NAME, _PERSON),
    st.builds(knows, _NAME, _NAME),
    st.builds(
        lambda name, stars: {"type": "Note", "id": name, "data": {"text": "t", "stars": stars}},
        st.sampled_from(["n", "m"]),
        st.none() | st.floats(allow_nan=False),
    ),
    st.builds(
        lambda name, start, end, data: {
            "edge": "Wrote",
            "id": name,
            "from": start,
            "to": end,
            "data": data,
        },
        st.sampled_from(["v", "w", "u"]),
        _NAME,
        st.sampled_from(["n", "m"]),
        _WROTE,
    ),
    st.sampled_from(["", "{", '{"type": "Person"}', '{"type": "Nobody", "data": {}}']),
)
_LOAD = st.tuples(
    st.lists(_ENTRY, max_size=12), st.sampled_from(["append", "merge", "merge", "overwrite"])
)


@given(st.lists(_LOAD, min_size=1, max_size=3))
@settings(max_examples=12)
def test_drawn_loads_come_to_the_same(loads: list[tuple[list[Any], Any]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        twins = Twins.make(Path(directory))
        for number, (entries, mode) in enumerate(loads):
            path = write_lines(Path(directory) / f"{number}.jsonl", entries)
            twins.attempt(path, mode=mode, on_error="quarantine")
