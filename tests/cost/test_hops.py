"""Serial hops: the ledger sums them from the stages of a plan; here they are measured, as the
time that an operation waits longer when every request takes longer. A slope is a ratio, so it says
the same on a fast machine and on a slow one; the clock is the proxy's and runs only while requests
are under way, because a busy machine computes slowly but that is no hop."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.cost.conftest import MakeWorld
from tests.cost.meter import longest_chain, time_under_way
from tests.cost.operations import OPERATIONS, Operation
from tests.cost.world import World

LATENCY = 0.04
IN_FLIGHT = 8
REPEATS = 12


@dataclass(frozen=True)
class Timed:
    """`hops` by the ledger, `slope` by the clock, `chain` by who waited for whom on the wire."""

    hops: int
    slope: float
    chain: int


def time_once(world: World, operation: Operation, latency: float) -> tuple[float, int, int]:
    assert world.proxy is not None
    run = operation.prepare(world)
    world.runtime.rest()
    world.proxy.shape(latency=latency, concurrency=IN_FLIGHT)
    try:
        with world.proxy.counting() as seen:
            ledger = run()
    finally:
        world.proxy.shape()
    return time_under_way(seen.log), ledger.hops, longest_chain(seen.log)


def time_operation(world: World, operation: Operation) -> Timed:
    """The fastest of several, because noise only ever adds; as many as it takes to be clear."""
    quick: list[float] = []
    slow: list[tuple[float, int, int]] = []
    while True:
        quick.append(time_once(world, operation, 0.0)[0])
        slow.append(time_once(world, operation, LATENCY))
        (hops,) = {hops for _, hops, _ in slow}
        chain = min(chain for _, _, chain in slow)
        slope = (min(took for took, _, _ in slow) - min(quick)) / LATENCY
        clear = abs(slope - hops) < 0.5 and chain == hops
        if clear or len(slow) == REPEATS:
            return Timed(hops, slope, chain)


@pytest.mark.s3
def test_hops_are_what_latency_costs(make_s3_world: MakeWorld) -> None:
    world = make_s3_world()
    for operation in OPERATIONS:
        operation.prepare(world)()
    timed = {operation: time_operation(world, operation) for operation in OPERATIONS}
    for operation, found in timed.items():
        print(f"{operation}: {found}")
    over = {op.name: t for op, t in timed.items() if t.chain > op.hops}
    assert not over, "more hops than the table says"
    waited = {op.name: t for op, t in timed.items() if t.chain != t.hops}
    assert not waited, "the ledger's hops are not what the wire says"
    wrong = {op.name: t for op, t in timed.items() if abs(t.slope - t.hops) > 1}
    assert not wrong, "the ledger's hops are not what the clock says"
