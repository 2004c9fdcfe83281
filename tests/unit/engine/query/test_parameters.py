"""Parameters that do not fit are named before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import InvalidArgument, InvalidParameters

_TEXT = (
    "query q($n: String, $k: I32 = 3) { match { $p: P { name: $n } } return { $p.name } limit $k }"
)


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        (None, InvalidParameters, "$n is missing, and it must be a String"),
        ({"n": None}, InvalidParameters, "$n is null, and it must be a String"),
        ({"n": 1}, InvalidParameters, "$n is int where String is needed"),
        (
            {"n": "x", "K": 1},
            InvalidParameters,
            "$K is no parameter of this query (did",
        ),
        ({"n": "x", "k": 2**40}, InvalidParameters, "I32 goes from"),
        ({"n": "x", "k": -1}, InvalidParameters, "a limit is not below zero"),
        (["x"], InvalidArgument, "params of query() is a mapping or None"),
    ],
)
def test_a_parameter_that_does_not_fit_is_named(
    tmp_path: Path, given: Any, kind: type[Exception], said: str
) -> None:
    with omnigraph.init(tmp_path / "g", schema="node P { name: String @key }") as graph:
        with pytest.raises(kind) as error:
            graph.query(_TEXT, params=given).to_arrow()
        assert said in str(error.value)
        assert graph.query(_TEXT, params={"n": "x"}).to_pylist() == []
