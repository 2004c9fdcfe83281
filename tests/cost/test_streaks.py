"""What the contract leaves out, with its own bounds: writers who never rest, and local heads."""

from __future__ import annotations

import pytest

import omnigraph
from omnigraph.runtime import SystemRuntime
from tests.bench.proxy import Proxy
from tests.cost.world import EVENT


class Paced(SystemRuntime):
    """A clock that moves only when told to."""

    time = 1000.0

    def monotonic(self) -> float:
        return self.time


@pytest.mark.s3
@pytest.mark.parametrize(("pace", "looks"), [(0.2, 5), (0.6, 0)])
def test_a_writer_without_a_rest_looks_for_others_twice_a_second(
    proxied_root: str, proxy: Proxy, pace: float, looks: int
) -> None:
    """One LIST in half a second of back-to-back commits, so that others are not starved (hazard
    11); none for who pauses longer than that between commits."""
    clock = Paced()
    graph = omnigraph.init(proxied_root, schema=EVENT, runtime=clock)
    listed = 0
    with proxy.counting() as seen:
        for n in range(16):
            with graph.transaction() as tx:
                tx.append("Event", {"text": f"{n}"})
            clock.time += pace
            listed += tx.io.by_purpose.get("wait", {}).get("list", 0)
    assert listed == seen.by_verb["LIST"] == looks
