"""What a notebook shows of a graph on a server is what it shows of one here."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

import omnigraph
from omnigraph.server.graphs import Graphs
from omnigraph.server.service import Service
from tests.server.serving import serving
from tests.unit.show.views import NETWORK, make_people, views


def in_order(view: str) -> str:
    """A table of a query without an order may have its rows in any."""
    return "".join(sorted(re.split(r"(?=<tr>)", view)))


def test_every_view_is_the_same(tmp_path: Path) -> None:
    root = str(tmp_path / "people")
    make_people(root).close()
    with (
        serving(Service(Graphs({"people": root}))) as site,
        omnigraph.open(f"{site.url}/graphs/people") as there,
        omnigraph.open(root) as here,
    ):
        far, near = views(there), views(here)
        assert {name: in_order(view) for name, view in far.items()} == {
            name: in_order(view) for name, view in near.items()
        }
        arrays = [g.query(NETWORK).to_arrays(dtype="float64") for g in (there, here)]
        for kind in ("Person", "Place"):
            one, other = (each.nodes[kind] for each in arrays)
            assert (one.ids, one.features) == (other.ids, other.features)
            assert np.array_equal(one.x, other.x, equal_nan=True)
        for key, one_edge in arrays[0].edges.items():
            assert np.array_equal(one_edge.index, arrays[1].edges[key].index)
        assert there.query(NETWORK).to_igraph().ecount() == 24
