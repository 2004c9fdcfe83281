"""Vectors that cannot be searched are refused on write; those that say nothing are kept."""

from __future__ import annotations

import math
from typing import Any

import pytest

from omnigraph.errors import OmnigraphError
from omnigraph.model import indexes
from tests.search.test_search_edges import NEAR, column, new
from tests.search.world import SEGMENTS, limits


@pytest.mark.parametrize(
    "vector",
    [[math.nan, 0, 1], [math.inf, 0, 0], [-math.inf, 1, 1], [1, None, 0], [1e-16, 0, 0],
     [1e16, 0, 0], [1, 2], [1, 2, 3, 4], [], "red", 7],
    ids=str,
)  # fmt: skip
def test_a_vector_that_cannot_be_searched_is_refused_on_write(vector: Any) -> None:
    with new() as g:
        with pytest.raises(OmnigraphError) as refused, g.transaction() as tx:
            tx.append("Doc", [{"slug": "a", "v": vector}])
        assert "v" in str(refused.value)
        with pytest.raises(OmnigraphError):
            g.load([{"slug": "a", "v": vector}], type="Doc")
        assert g.count("Doc") == 0


@pytest.mark.parametrize("vector", [None, [0, 0, 0]], ids=str)
def test_a_type_in_which_nothing_is_near_can_be_optimized(vector: Any) -> None:
    """As before the first embedding: there is nothing to train an index on."""
    with new() as g, limits(**SEGMENTS):
        with g.transaction() as tx:
            tx.append("Doc", [{"slug": f"d{n}", "text": "red", "v": vector} for n in range(20)])
        g.optimize()
        assert set(column(g, NEAR, "far", q=[1, 0, 0]).values()) == {None}
        with g.transaction() as tx:
            tx.append("Doc", {"slug": "there", "v": [1, 1, 0]})
        g.optimize()
        assert next(iter(column(g, NEAR, "far", q=[1, 0, 0]))) == "there"


def test_vectors_that_are_not_there_yet_are_no_reason_to_warn(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load before the first embedding asks Lance to train nothing."""
    monkeypatch.setattr(indexes, "_PARTITION", 4)
    with new() as g, limits(**SEGMENTS):
        with g.transaction() as tx:
            tx.append("Doc", [{"slug": f"d{n}", "text": "red"} for n in range(40)])
        g.optimize()
    assert "WARN" not in capfd.readouterr().err
