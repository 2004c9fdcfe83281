"""Filters over tables of every type: Lance does not take one beside lists of unsigned integers."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import omnigraph
from omnigraph.settings import Settings
from omnigraph.telemetry import Ledger

TYPES = ("U32", "U64", "[U32]", "[U64]", "[I64]", "[String]", "Vector(2)", "Blob")


@pytest.mark.parametrize("kind", TYPES)
def test_a_filter_is_answered_whatever_else_the_table_holds(kind: str) -> None:
    g = omnigraph.init(
        f"memory://filters-{TYPES.index(kind)}",
        schema=f"node P {{ name: String @key n: I32? other: {kind}? }}",
        settings=Settings(durability="relaxed"),
    )
    with g.transaction() as tx:
        tx.append("P", [{"name": name, "n": n} for n, name in enumerate("abc")])
    with g.transaction() as tx:
        tx.delete("P", where=pc.field("n") == 2)
    snapshot = g.snapshot()
    view = snapshot.view(snapshot.type("P"))
    condition = pc.field("id").isin(pa.array(["b", "c"])) & (pc.field("n") > 0)
    batches = list(view.matching(condition, ["n", "name"], Ledger()))
    assert [row["name"] for batch in batches for row in batch.to_pylist()] == ["b"]
    assert len(view.addresses_where(condition, Ledger())) == 1
    assert g.query('match { $p: P { name: "b" } } return { $p.n }').one() == {"p.n": 1}
