"""A graph to measure: its types, its first rows, its history, and a handle that is watched.

History is made through a second handle that does not pass the proxy. The watched handle then
meets that history as it would meet any other writer's, and is warmed up before it is measured.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import omnigraph
from omnigraph.engine.branch import Branch
from omnigraph.engine.graph import Graph
from omnigraph.engine.write.transaction import Transaction
from omnigraph.runtime import SystemRuntime
from omnigraph.settings import Settings
from omnigraph.telemetry import Ledger
from tests.bench.proxy import Proxy, Seen
from tests.cost.meter import Cost, Exported, Requests, booked, on_the_wire

Measured = Callable[[], Ledger]

# Folding would move the rows that operations are about, at times that have nothing to do with
# them; `test_folding` holds it to a ledger of its own and reads to a bound.
RELAXED = Settings(durability="relaxed", folding="off")

EVENT = "node Event { text: String }"
PERSON = "node Person { name: String @key  age: I64? }"
PLACE = "node Place { name: String @key  seen: I64? }"
KNOWS = "edge Knows: Person -> Person { since: I64? }"
LIVES = "edge Lives: Person -> Place @card(0..5000) { since: I64? }"
CORE = (EVENT, PERSON, PLACE, KNOWS, LIVES)

BULK = 200
SHARDS = 4
SOLO = 3


def fillers(count: int) -> tuple[str, ...]:
    """Types that only make the graph wider."""
    return tuple(f"node Filler{n} {{ name: String @key }}" for n in range(count))


class Rested(SystemRuntime):
    """A clock that can leap. A writer who goes on without a rest for half a second looks once
    whether others wait for their turn (hazard 11), which is booked as `list wait`; this contract
    is about writers who do not, and `test_streaks` about those who do."""

    def __init__(self) -> None:
        super().__init__()
        self._leapt = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self._leapt

    def rest(self) -> None:
        self._leapt += 1.0


@dataclass
class World:
    """`connect` points the environment at the proxy (True) or straight at the store (False)."""

    root: str
    exported: Exported
    proxy: Proxy | None = None
    connect: Callable[[bool], None] = lambda _: None
    types: tuple[str, ...] = CORE
    runtime: Rested = field(default_factory=Rested)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.connect(False)
        self.builder = omnigraph.init(
            self.root, schema="\n".join(self.types), settings=RELAXED, runtime=self.runtime
        )
        self._seed()
        self._bulk = itertools.count()
        self._shard = itertools.count()
        self.graph = self.open()
        self._handles: dict[tuple[Graph, str], Branch] = {}

    @property
    def kinds(self) -> set[str]:
        return {text.split()[1].rstrip(":") for text in self.types}

    def open(self) -> Graph:
        """Another handle, watched, that knows nothing yet."""
        self.connect(True)
        return omnigraph.open(self.root, settings=RELAXED, runtime=self.runtime)

    def number(self) -> int:
        return next(self.numbers)

    def bulk_name(self) -> str:
        """A row of the shared fragment that was not taken from it yet."""
        return f"bulk{next(self._bulk)}"

    def shard_names(self) -> list[str]:
        """The same of each shard."""
        n = next(self._shard)
        return [f"shard{shard}-{n}" for shard in range(SHARDS)]

    def grow(self, depth: int) -> None:
        """Commits until the branch has this many versions. Keyed types see the same few keys
        again and again, so their fragments stay as few as they were. The keyless type and the
        edges grow by one fragment a commit, because nothing is folded here: their tables are
        written to in this contract, which costs the same, but not read cold, which would cost a
        request for each fragment."""
        steps = [step for kind, step in _STEPS if kind in self.kinds]
        version = self.builder.snapshot().version
        for n in range(version, depth):
            with self.builder.transaction(message="history") as tx:
                steps[n % len(steps)](tx, n)

    def at(self, branch: str) -> Branch:
        """The handle on a branch, which looks at its head once, when it is first asked for."""
        if branch == "main":
            return self.graph
        if (self.graph, branch) not in self._handles:
            self._handles[self.graph, branch] = self.graph.branch(branch)
        return self._handles[self.graph, branch]

    def commit(self, write: Callable[[Transaction], object], *, branch: str = "main") -> Ledger:
        at = self.at(branch)
        with at.transaction() as tx:
            write(tx)
        return tx.io

    def measure(self, prepare: Callable[[World], Measured]) -> Cost:
        """The cost of an operation, on which ledger, metrics and wire must agree."""
        run = prepare(self)
        self.runtime.rest()
        before = self.exported.requests()
        with self.watching() as seen:
            ledger = run()
        exported = self.exported.requests() - before
        assert exported == ledger.counts, "metrics and ledger differ"
        tally = self.graph._session.tables.tally
        assert (tally.reads, tally.writes) == (0, 0), "requests that nobody booked"
        if seen is not None:
            assert booked(Counter(ledger.counts)) == on_the_wire(seen), f"wire: {seen}"
        return Cost.of(ledger, seen)

    def exchange(self, run: Callable[[], object]) -> tuple[Requests, Seen]:
        """What the metrics and the wire say of something that has no ledger to show."""
        self.runtime.rest()
        before = self.exported.requests()
        with self.watching() as seen:
            run()
        assert seen is not None
        return self.exported.requests() - before, seen

    @contextmanager
    def watching(self) -> Iterator[Seen | None]:
        if self.proxy is None:
            yield None
            return
        with self.proxy.counting() as seen:
            yield seen

    def _seed(self) -> None:
        """Bulk rows share a fragment, and so do those of each shard; a solo row has one to itself,
        which disappears when the row is replaced."""
        solos = [[{"name": f"solo{n}"}] for n in range(SOLO)]
        shared = ["bulk", *(f"shard{n}-" for n in range(SHARDS))]
        rows: dict[str, Sequence[list[dict[str, str]]]] = {
            "Person": [[{"name": f"{s}{n}"} for n in range(BULK)] for s in shared] + solos,
            "Place": solos,
        }
        for kind, batches in rows.items():
            for batch in batches if kind in self.kinds else ():
                with self.builder.transaction(message="seed") as tx:
                    tx.append(kind, batch)


def _event(tx: Transaction, n: int) -> None:
    tx.append("Event", {"text": f"history {n}"})


def _person(tx: Transaction, n: int) -> None:
    tx.upsert("Person", {"name": f"solo{n % SOLO}", "age": n})


def _place(tx: Transaction, n: int) -> None:
    tx.upsert("Place", {"name": f"solo{n % SOLO}", "seen": n})


def _knows(tx: Transaction, n: int) -> None:
    tx.append("Knows", {"from": "solo0", "to": f"bulk{n % BULK}"})


_STEPS: tuple[tuple[str, Callable[[Transaction, int], None]], ...] = (
    ("Event", _event),
    ("Person", _person),
    ("Place", _place),
    ("Knows", _knows),
)
