"""What a model gives a stored query beside its parameters: each wrong type is told as that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import InvalidArgument
from omnigraph.mcp.desk import Seat
from omnigraph.mcp.stored import OWN, run_stored
from omnigraph.settings import Settings

QUICK = Settings(durability="relaxed", folding="off")
PEOPLE = "query people() { match { $p: Person } return { $p.name } }"
ADD = "query add($n: String) { insert Person { name: $n } }"


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("value", [-1.5, True, [], {}, 2**70], ids=str)
def test_an_argument_of_a_wrong_type_is_told(tmp_path: Path, name: str, value: Any) -> None:
    root = tmp_path / "graph"
    with omnigraph.init(root, schema="node Person { name: String @key }", settings=QUICK) as g:
        g.store_queries({"people": PEOPLE, "add": ADD})
        queries, seat = g.queries(), Seat("graph", "eve", None)
        for query, given in (("people", {}), ("add", {"n": "x"})):
            with pytest.raises(InvalidArgument, match=name):
                run_stored(g, queries[query], given | {name: value}, seat)
        assert g.count("Person") == 0
